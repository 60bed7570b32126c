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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from laconic import __version__
from laconic.core.decisions import class_prior
from laconic.core.form_prediction import Form, FormClassifier
from laconic.core.forms import AdditiveScore
from laconic.data.reading.reading import Reading
from laconic.data.tables.columns import MISSING, Schema, Table
from laconic.decide.costs import RowCosts
from laconic.decide.estimator import DecisionClassifier
from laconic.decide.promises import guaranteed_from_dict
from laconic.decide.reference import Reference, adopting, decisions_of
from laconic.export.atomic import write_atomically
from laconic.kernel.form import KernelForm
from laconic.kernel.rank_kernel import RankedKernel
from laconic.linear.form import LinearScore
from laconic.minimax.form import ProfileForm
from laconic.votes.form import VoteForm

__all__ = ["ModelFileError", "adopt", "load", "read_content", "save", "write_atomically"]

FORMAT = "laconic-model"
SCHEMA_VERSION = 1
_MOST_DIGITS = 18  # of a whole number: all of them fit 64 bits
_ENTRIES: dict[str, type | tuple[type, ...]] = {
    "format": str,
    "schema_version": int,
    "library_version": str,
    "family": str,
    "classes": list,
    "named": bool,
    "columns": list,
    "form": dict,
    "decision": dict,
    "certificates": dict,
    "summary": (dict, type(None)),
    "digest": str,
}
_OPTIONAL: dict[str, type | tuple[type, ...]] = {
    "reading": dict,
    "reference": dict,
    "history": list,
    "guarantee": dict,
    "positive": (str, int, float, bool),
    "row_costs": dict,
    "scenarios": dict,
}

_CERTIFICATES = (
    "objective", "duality_gap", "criterion", "compression", "c_bound", "minimax_risk",
    "page_objective", "page_gap",
)  # fmt: skip

_FORMS: dict[str, Any] = {
    "additive": AdditiveScore,
    "linear": LinearScore,
    "kernel-columns": KernelForm,
    "ranked-kernel": RankedKernel,
    "profile-rule": ProfileForm,
    "vote": VoteForm,
}


class ModelFileError(ValueError):
    """The file is not a model file of this library, or it was damaged; the sentence says how."""


def save(
    model: Any,
    path: str | Path,
    *,
    summary: Mapping[str, Any] | None = None,
    reference: Reference | None = None,
) -> None:
    """Write a fitted model as JSON; the old file stays until the new one is complete.

    Parameters
    ----------
    model : LaconicClassifier, DecisionClassifier or a classifier of the library, fitted
        A bare classifier is written with the decision rule of its own ``predict``.
    path : str or Path
    summary : mapping, optional
        Numbers, texts, lists and mappings to keep beside the model, for instance a report's.
    reference : Reference, optional
        Counts of rows that the fit has not seen (:func:`laconic.decide.reference.reference_of`),
        by which :func:`laconic.watch` judges rows to come. No row is kept.

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
    write_atomically(path, as_text(model_content(model, summary=summary, reference=reference)))


def model_content(
    model: Any, *, summary: Mapping[str, Any] | None = None, reference: Reference | None = None
) -> dict[str, Any]:
    """What :func:`save` writes, as plain numbers, texts, lists and mappings."""
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
    if decision.guaranteed_ is not None:
        content["guarantee"] = decision.guaranteed_.to_dict()
    if decision.positive_ is not None and (
        decision.guaranteed_ is not None or decision.positive is not None
    ):
        content["positive"] = _plain(decision.positive_)
    for name in ("row_costs", "scenarios"):
        if getattr(decision, f"{name}_", None):
            content[name] = _plain_costs(getattr(decision, f"{name}_"))
    if "row_costs" in content:
        content["positive"] = _plain(decision.positive_)
    if isinstance(schema.reading, Reading):
        content["reading"] = schema.reading.to_dict()
    if reference is not None:
        content["reference"] = reference.to_dict()
    content["digest"] = _digest(content)
    return content


def _plain_costs(given: Any) -> dict[str, Any]:
    if isinstance(given, RowCosts):
        return given.to_dict()
    return {str(name): np.asarray(costs).tolist() for name, costs in given.items()}


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
    return _rebuild(read_content(path), path.name)


def read_content(path: str | Path) -> dict[str, Any]:
    """The plain content of a model file whose format, version and digest are right."""
    path = Path(path)
    try:
        content = _strict_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelFileError(f"{path} does not exist.") from None
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise ModelFileError(
            f"{path.name} is not a complete model file ({error}); give the model.json that laconic "
            "fit or laconic.save wrote."
        ) from error
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


def _strict_json(text: str) -> Any:
    """JSON with every key once and every number a finite one, as :func:`save` writes it."""

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a key stands twice in one mapping")
        return found

    def finite(digits: str) -> float:
        value = float(digits)
        if not math.isfinite(value):
            raise ValueError(f"{digits[:30]} is no finite number")
        return value

    def whole(digits: str) -> int:
        if len(digits) > _MOST_DIGITS:
            raise ValueError(f"{digits[:30]}… has too many digits")
        return int(digits)

    return json.loads(
        text, object_pairs_hook=mapping, parse_float=finite, parse_constant=finite, parse_int=whole
    )


def saved_form(model: Any) -> Form:
    """The form that a fitted classifier predicts through."""
    for name in (
        "kernel_form_", "linear_form_", "ranked_form_", "profile_form_", "forest_form_",
        "vote_form_", "form_",
    ):  # fmt: skip
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
    if is_classifier(inner) and hasattr(inner, "schema_") and not hasattr(inner, "predict_proba"):
        raise ValueError(
            f"This {type(inner).__name__} gives no probabilities, by which a model file decides; "
            "fit a loss that has them (logistic, exponential), or pickle it."
        )
    if not hasattr(inner, "predict_proba") or not hasattr(inner, "schema_"):
        raise ValueError(
            f"A {type(inner).__name__} cannot be written to a model file; only classifiers of this "
            "library, alone or inside a DecisionClassifier, can."
        )
    costs = getattr(inner, "cost_matrix_", None)
    threshold = getattr(inner, "threshold_", None)
    if threshold is not None and len(inner.classes_) == 2:
        costs = [[0.0, threshold], [1.0 - threshold, 0.0]]
    return DecisionClassifier(inner, costs=costs, prefit=True).fit(None, None)


def _certificates(model: Any) -> dict[str, float]:
    """Numbers that bound how far the model can be from the best of its family."""
    found = {}
    for name in _CERTIFICATES:
        value = getattr(model, f"{name}_", None)
        # of several votes, one for each class, the worst
        if value is not None and np.size(value) and math.isfinite(np.max(value)):
            found[name] = float(np.max(value))
    return found


def as_text(content: Mapping[str, Any]) -> str:
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


@contextmanager
def _part(file: str, place: str) -> Iterator[None]:
    """Whatever a damaged part raises becomes a sentence that names the file and the part."""
    try:
        yield
    except Exception as error:  # the content is anybody's: nothing it raises may pass as it is
        reason = f"{type(error).__name__}: {error}"
        raise ModelFileError(f"{file} was altered or damaged in its {place} ({reason}).") from error


def _rebuild(content: dict[str, Any], file: str) -> DecisionClassifier:
    with _part(file, "list of entries"):
        _check_entries(content)
    with _part(file, "certificates"):
        _check_certificates(content["certificates"])
    with _part(file, "classes"):
        classes = np.array(_checked_labels(content["classes"]))
    with _part(file, "columns"):
        schema = _schema(content["columns"], content["named"])
    with _part(file, "reading"):
        schema = replace(schema, reading=_reading(content.get("reading"), schema))
    with _part(file, "form"):
        form = _form(content["form"], content["classes"])
        inner = FormClassifier.of(form, schema, classes, content["family"])
        _try_out(inner)
    with _part(file, "decision"):
        model = _decision(content["decision"], inner, content.get("positive"))
    with _part(file, "costs"):
        shape = (len(classes), len(classes))
        for name, costs in content.get("scenarios", {}).items():
            model.scenarios_[name] = _numbers(costs, shape, name)
        if "row_costs" in content:
            classes.tolist().index(content["positive"])
            model.row_costs_ = RowCosts.from_dict(content["row_costs"])
    with _part(file, "guarantee"):
        if "guarantee" in content:
            if "weights" not in content["guarantee"]:
                classes.tolist().index(content["positive"])  # a promise is about a class
            model.hold(guaranteed_from_dict(content["guarantee"]))
    with _part(file, "reference"):
        if "reference" in content:
            model.reference_ = Reference.from_dict(content["reference"])
            if len(model.reference_.counts) != len(classes):
                raise ValueError("it counts other classes than the model has")
    return model


def adopt(path: str | Path, out: str | Path, *, prior: Any) -> None:
    """Write a model file whose decisions are for another class mix; the model stays as it is.

    The new file keeps the digest of the old one in its ``history``.

    Parameters
    ----------
    path, out : str or Path
        The old file and the new one; they may be the same.
    prior : float, array-like of shape (K,) or mapping
        Class shares where the model is used from now on, as in DecisionClassifier.
    """
    content = read_content(path)
    model = _rebuild(content, Path(path).name)
    if model.train_prior_ is None:
        raise ValueError(
            f"{Path(path).name} does not know the class shares of training, without which no "
            "other mix can be adopted."
        )
    shares = class_prior(prior, model.classes_)
    past = {"digest": content["digest"], "prior": content["decision"]["prior"]}
    content["decision"] = {**content["decision"], "prior": shares.tolist()}
    if model.guaranteed_ is not None:
        past["guarantee"] = content["guarantee"]
        content["guarantee"] = adopting(model, shares).guaranteed_.to_dict()
    content["history"] = [*content.get("history", []), past]
    if "reference" in content:  # what would have been decided, cell by cell
        known = model.reference_
        decided = decisions_of(model, known.proba, shares)
        content["reference"] = {**content["reference"], "decisions": decided.tolist()}
    content["digest"] = _digest(content)
    _rebuild(content, Path(out).name)
    write_atomically(out, as_text(content))


def _check_entries(content: Mapping[str, Any]) -> None:
    for name in _ENTRIES:
        if name not in content:
            raise ValueError(f"{name!r} is missing")
    for name, kind in (_ENTRIES | _OPTIONAL).items():
        if name in content and not isinstance(content[name], kind):
            raise ValueError(f"{name!r} is a {type(content[name]).__name__}")
    unknown = sorted(set(content) - set(_ENTRIES) - set(_OPTIONAL))
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not known")


def _check_certificates(found: Mapping[str, Any]) -> None:
    for name, value in found.items():
        if name not in _CERTIFICATES:
            raise ValueError(f"{name!r} is not known")
        if type(value) not in (int, float):
            raise ValueError(f"{name!r} is a {type(value).__name__}, not a number")


def _schema(columns: list[Any], named: bool) -> Schema:
    names = _texts([column["name"] for column in columns], "column names")
    if len(set(names)) < len(names):
        raise ValueError("two columns have one name")
    kinds = tuple(_kind(column["kind"]) for column in columns)
    texts = tuple(
        None if column["categories"] is None else tuple(_texts(column["categories"], "texts"))
        for column in columns
    )
    for name, kind, own in zip(names, kinds, texts, strict=True):
        if (kind == "categorical") != (own is not None) or len(set(own or ())) < len(own or ()):
            raise ValueError(f"the categories of {name!r} do not fit its kind")
    return Schema(tuple(names), kinds, texts, named)


def _reading(data: Any, schema: Schema) -> Reading | None:
    if data is None:
        return None
    reading = Reading.from_dict(data)
    if not schema.named or reading.made != schema.names or reading.to_dict() != data:
        raise ValueError("it does not make the columns of the model")
    return reading


def _form(data: dict[str, Any], classes: list[Any]) -> Form:
    kind = data["form"]
    if kind not in _FORMS:
        raise ValueError(f"unknown form {kind!r}")
    form: Form = _FORMS[kind].from_dict(data)
    if [*map(_typed, form.classes)] != [*map(_typed, classes)]:
        raise ValueError("the form has other classes than the model")
    written = form.to_dict()
    # what reads differently than it would be written is no content of ours: texts for numbers,
    # entries that nothing reads, lists of another depth
    for name, value in data.items():
        if name not in written or written[name] != value:
            raise ValueError(f"{name!r} is not as laconic writes it")
    return form


def _typed(label: Any) -> tuple[str, Any]:
    """A label with its type: 1, 1.0 and True are three labels."""
    return type(label).__name__, label


def _decision(rule: Mapping[str, Any], inner: FormClassifier, positive: Any) -> DecisionClassifier:
    size = len(inner.classes_)
    unknown = sorted(set(rule) - {"costs", "train_prior", "prior", "reject_cost", "reject_label"})
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not known")
    reject = rule["reject_cost"]
    if reject is not None and not isinstance(rule["reject_label"], str | int | float):
        raise ValueError("the label of an abstention must be a text or a number")
    model = DecisionClassifier(
        inner,
        costs=_numbers(rule["costs"], (size, size), "costs"),
        prior=_prior(rule["prior"], size),
        train_prior=_prior(rule["train_prior"], size),
        positive=positive,
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
    if isinstance(model.form_, ProfileForm | VoteForm | KernelForm):
        model.form_.check_columns(schema)
        return
    columns = [
        np.array([MISSING, 0 if texts else MISSING], np.int32)
        if kind == "categorical"
        else np.array([np.nan, 0.0])
        for kind, texts in zip(schema.kinds, schema.categories, strict=True)
    ]
    rows = Table(schema.names, schema.kinds, schema.categories, columns)
    proba = model.form_.proba(rows)
    sums_to_one = np.abs(proba.sum(axis=1) - 1.0).max() < 1e-9
    if proba.shape != (2, len(model.classes_)) or proba.min() < 0.0 or not sums_to_one:
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
