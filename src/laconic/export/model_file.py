"""The model file: one readable JSON that never runs code when it is loaded.

Numbers are written so that reading them gives the same bits, and models predict through the form
that is written: predictions after a round trip are the same bytes. The file holds the columns
(names, kinds, category texts), the fitted form, the classes, the decision rule, the certificates
and a summary of the fit. Its digest tells a file that was cut or altered.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from laconic import __version__
from laconic.core.form_prediction import Form, FormClassifier
from laconic.core.forms import AdditiveScore
from laconic.data.tables.columns import Schema, Table
from laconic.data.tables.kinds import MISSING
from laconic.decide.estimator import DecisionClassifier
from laconic.export.atomic import write_atomically
from laconic.kernel.rank_kernel import RankedKernel
from laconic.linear.form import LinearScore

__all__ = ["ModelFileError", "load", "read_content", "save", "write_atomically"]

FORMAT = "laconic-model"
SCHEMA_VERSION = 1

_FORMS: dict[str, Any] = {
    "additive": AdditiveScore,
    "linear": LinearScore,
    "ranked-kernel": RankedKernel,
}


class ModelFileError(ValueError):
    """The file is not a model file of this library, or it was damaged; the sentence says how."""


def save(model: Any, path: str | Path, *, summary: Mapping[str, Any] | None = None) -> None:
    """Write a fitted model as JSON; the old file stays until the new one is complete.

    Parameters
    ----------
    model : LaconicClassifier, DecisionClassifier or a classifier of the library, fitted
        A bare classifier is written with the decision rule of its own ``predict``.
    path : str or Path
    summary : mapping, optional
        Numbers, texts, lists and mappings to keep beside the model, for instance a report's.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> from laconic import WeightedNaiveBayes, load, save
    >>> X, y = load_iris(return_X_y=True)
    >>> model = WeightedNaiveBayes(random_state=0).fit(X, y)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.json"
    >>> save(model, path)
    >>> bool((load(path).predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    decision = _decision_of(model)
    inner = decision.estimator_
    form = saved_form(inner)
    schema: Schema = inner.schema_
    content = {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "library_version": __version__,
        "family": getattr(inner, "family_", type(inner).__name__),
        "classes": _labels(decision.classes_),
        "named": schema.named,
        "columns": [
            {"name": name, "kind": kind, "categories": None if texts is None else list(texts)}
            for name, kind, texts in zip(schema.names, schema.kinds, schema.categories, strict=True)
        ],
        "form": form.to_dict(),
        "decision": {
            "costs": decision.cost_matrix_.tolist(),
            "train_prior": _as_list(decision.train_prior_),
            "prior": _as_list(decision.prior_),
            "reject_cost": None if decision.reject_cost is None else float(decision.reject_cost),
            "reject_label": None
            if decision.reject_cost is None
            else _plain(decision.reject_label_),
        },
        "certificates": _certificates(inner),
        "summary": None if summary is None else dict(summary),
    }
    content["digest"] = _digest(content)
    write_atomically(path, _readable(content))


def load(path: str | Path) -> DecisionClassifier:
    """Read a model file, check every part of it, and rebuild the model.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    DecisionClassifier
        Around a :class:`~laconic.core.form_prediction.FormClassifier`.
    """
    path = Path(path)
    content = read_content(path)
    try:
        return _rebuild(content)
    except (KeyError, TypeError, IndexError, ValueError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ModelFileError(f"{path.name} was altered or damaged ({reason}).") from error


def read_content(path: str | Path) -> dict[str, Any]:
    """The plain content of a model file whose format, version and digest are right."""
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelFileError(f"{path} does not exist.") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ModelFileError(f"{path.name} is not a complete model file: {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ModelFileError(f"{path.name} is JSON, but not a model written by laconic.")
    if content.get("schema_version") != SCHEMA_VERSION:
        raise ModelFileError(
            f"{path.name} has schema version {content.get('schema_version')!r}; this version of "
            f"laconic reads {SCHEMA_VERSION}."
        )
    if content.get("digest") != _digest(content):
        raise ModelFileError(
            f"{path.name} was altered or damaged after it was written (its digest is wrong)."
        )
    return content


def saved_form(model: Any) -> Form:
    """The form that a fitted classifier predicts through."""
    for name in ("linear_form_", "ranked_form_", "form_"):
        form = getattr(model, name, None)
        if form is not None:
            return form  # type: ignore[no-any-return]
    raise ValueError(
        f"A {type(model).__name__} cannot be written to a model file; it has no form of numbers "
        "and texts. Pickle it instead."
    )


def _decision_of(model: Any) -> DecisionClassifier:
    check_is_fitted(model)
    inner = getattr(model, "decision_", model)
    if isinstance(inner, DecisionClassifier):
        return inner
    if not hasattr(inner, "predict_proba") or not hasattr(inner, "schema_"):
        raise ValueError(
            f"A {type(inner).__name__} cannot be written to a model file; only classifiers of this "
            "library, alone or inside a DecisionClassifier, can."
        )
    costs = None
    threshold = getattr(inner, "threshold_", None)
    if threshold is not None and len(inner.classes_) == 2:
        costs = [[0.0, threshold], [1.0 - threshold, 0.0]]
    return DecisionClassifier(inner, costs=costs, prefit=True).fit(None, None)


def _certificates(model: Any) -> dict[str, float]:
    """Numbers that bound how far the model can be from the best of its family."""
    names = ("objective_", "duality_gap_", "criterion_", "compression_", "c_bound_")
    found = {}
    for name in names:
        value = getattr(model, name, None)
        if value is not None and np.ndim(value) == 0 and math.isfinite(value):
            found[name.rstrip("_")] = float(value)
    return found


def _readable(content: Mapping[str, Any]) -> str:
    """One line for each entry, each column and each term: short, and easy to compare."""
    lines = []
    for key, value in content.items():
        if key == "form" and isinstance(value, dict) and "terms" in value:
            head = {name: part for name, part in value.items() if name != "terms"}
            terms = ",\n".join("   " + _compact(term) for term in value["terms"])
            value_text = f'{_compact(head)[:-1]}, "terms": [\n{terms}\n  ]}}'
        elif key == "columns":
            value_text = "[\n" + ",\n".join("   " + _compact(part) for part in value) + "\n  ]"
        else:
            value_text = _compact(value)
        lines.append(f" {json.dumps(key)}: {value_text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False)


def _digest(content: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in content.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _rebuild(content: dict[str, Any]) -> DecisionClassifier:
    classes = np.array(_checked_labels(content["classes"]))
    columns = content["columns"]
    schema = Schema(
        tuple(_texts([column["name"] for column in columns], "column names")),
        tuple(_kind(column["kind"]) for column in columns),
        tuple(
            None if column["categories"] is None else tuple(_texts(column["categories"], "texts"))
            for column in columns
        ),
        bool(content["named"]),
    )
    kind = content["form"]["form"]
    if kind not in _FORMS:
        raise ValueError(f"unknown form {kind!r}")
    form = _FORMS[kind].from_dict(content["form"])
    if tuple(form.classes) != tuple(content["classes"]):
        raise ValueError("the form has other classes than the model")
    inner = FormClassifier.of(form, schema, classes, str(content["family"]))
    _try_out(inner)
    return _decision(content["decision"], inner)


def _decision(rule: Mapping[str, Any], inner: FormClassifier) -> DecisionClassifier:
    size = len(inner.classes_)
    reject = rule["reject_cost"]
    model = DecisionClassifier(
        inner,
        costs=_numbers(rule["costs"], (size, size), "costs"),
        prior=_prior(rule["prior"], size),
        train_prior=_prior(rule["train_prior"], size),
        reject_cost=None if reject is None else float(reject),
        reject_label="auto" if reject is None else rule["reject_label"],
        prefit=True,
    )
    return model.fit(None, None)


def _try_out(model: FormClassifier) -> None:
    """Two rows, one empty: a form that does not match its columns fails here and not later."""
    schema = model.schema_
    if isinstance(model.form_, LinearScore):
        if model.form_.coef.shape[1] != len(schema.names):
            raise ValueError("the coefficients do not match the columns")
        return
    columns = [
        np.array([MISSING, 0 if texts else MISSING], np.int32)
        if kind == "categorical"
        else np.array([np.nan, 0.0])
        for kind, texts in zip(schema.kinds, schema.categories, strict=True)
    ]
    rows = Table(schema.names, schema.kinds, schema.categories, columns)
    proba = model.form_.proba(rows)
    if proba.shape != (2, len(model.classes_)) or not np.isfinite(proba).all():
        raise ValueError("the form does not give probabilities")


def _labels(classes: NDArray[Any]) -> list[Any]:
    return _checked_labels([_plain(name) for name in classes])


def _checked_labels(labels: Any) -> list[Any]:
    if not isinstance(labels, list) or len(labels) < 2:
        raise ValueError("classes must be a list of at least two labels")
    kinds = {type(label) for label in labels}
    if len(kinds) != 1 or not kinds <= {str, int, float, bool}:
        raise ValueError("A model file needs classes that are all texts, or all numbers.")
    if len(set(labels)) != len(labels):
        raise ValueError("classes must be different labels")
    return labels


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _as_list(values: NDArray[Any] | None) -> list[float] | None:
    return None if values is None else [float(value) for value in values]


def _prior(values: Any, size: int) -> NDArray[Any] | None:
    return None if values is None else _numbers(values, (size,), "prior")


def _numbers(values: Any, shape: tuple[int, ...], name: str) -> NDArray[Any]:
    array = np.array(values, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers of shape {shape}, got {array.shape}")
    return array


def _texts(values: Any, name: str) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name} must be a list of texts")
    return values


def _kind(value: Any) -> Any:
    if value not in ("numeric", "boolean", "categorical"):
        raise ValueError(f"unknown column kind {value!r}")
    return value
