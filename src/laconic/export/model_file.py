"""The model file: one readable JSON that never runs code when it is loaded.

Numbers are written so that reading them gives the same bits. The file holds the columns (names,
kinds, category texts), the fitted form, the classes, the decision rule and the summary of the fit.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from laconic import __version__
from laconic.data.columns import Schema
from laconic.estimators.decision import DecisionClassifier
from laconic.estimators.plain_logistic import LinearColumn, PlainLogisticRegression

FORMAT = "laconic-model"
SCHEMA_VERSION = 1


class ModelFileError(ValueError):
    """The file is not a model file of this library, or it was damaged; the sentence says how."""


def save(model: DecisionClassifier, path: str | Path, *, summary: dict[str, Any]) -> None:
    """Write a fitted decision model as JSON; the old file stays until the new one is complete."""
    check_is_fitted(model)
    inner = model.estimator_
    if not isinstance(inner, PlainLogisticRegression):
        raise ValueError(
            f"A {type(inner).__name__} cannot be written to a model file; pickle it instead."
        )
    kind = model.classes_.dtype.kind
    if kind not in "USO" or not all(isinstance(name, str) for name in model.classes_):
        raise ValueError("A model file needs classes that are texts; fit on y.astype(str).")
    if model.reject_cost is not None:
        raise ValueError("A model file cannot hold an abstention rule yet; leave out reject_cost.")
    content = {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "library_version": __version__,
        "classes": [str(name) for name in model.classes_],
        "columns": [
            {"name": name, "kind": kind, "categories": None if texts is None else list(texts)}
            for name, kind, texts in zip(
                inner.schema_.names, inner.schema_.kinds, inner.schema_.categories, strict=True
            )
        ],
        "named": inner.schema_.named,
        "form": {
            "kind": "linear",
            "terms": [asdict(column) for column in inner.columns_],
            "coef": inner.coef_.tolist(),
            "intercept": inner.intercept_.tolist(),
        },
        "decision": {
            "costs": model.cost_matrix_.tolist(),
            "train_prior": _as_list(model.train_prior_),
            "prior": _as_list(model.prior_),
        },
        "summary": summary,
    }
    write_atomically(path, json.dumps(content, indent=1, allow_nan=False) + "\n")


def load(path: str | Path) -> DecisionClassifier:
    """Read a model file, check every part of it, and rebuild the decision model."""
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
    try:
        return _rebuild(content)
    except (KeyError, TypeError, IndexError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ModelFileError(f"{path.name} was altered or damaged ({reason}).") from error


def write_atomically(path: str | Path, text: str) -> None:
    """Write beside the target, flush to disk, then rename: the target is old or new, never torn."""
    path = Path(path)
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".partial")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(partial, 0o666 & ~mask)  # mkstemp is private; a result is as readable as others
        os.replace(partial, path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise


def _rebuild(content: dict[str, Any]) -> DecisionClassifier:
    classes = np.array(_texts(content["classes"], "classes"))
    if len(set(classes.tolist())) != len(classes) or len(classes) < 2:
        raise ValueError("classes must be at least two different texts")
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
    inner = _rebuild_linear(content["form"], schema, classes)
    rule = content["decision"]
    model = DecisionClassifier(
        inner,
        costs=_numbers(rule["costs"], (len(classes), len(classes)), "costs"),
        prior=_prior(rule["prior"], len(classes)),
        train_prior=_prior(rule["train_prior"], len(classes)),
        prefit=True,
    )
    return model.fit(None, None)


def _rebuild_linear(
    form: dict[str, Any], schema: Schema, classes: np.ndarray[Any, Any]
) -> PlainLogisticRegression:
    if form["kind"] != "linear":
        raise ValueError(f"unknown form {form['kind']!r}")
    terms = tuple(LinearColumn(**term) for term in form["terms"])
    if len(terms) != len(schema.names):
        raise ValueError(f"{len(terms)} terms for {len(schema.names)} columns")
    for term, kind, texts in zip(terms, schema.kinds, schema.categories, strict=True):
        if term.kind != kind or term.n_levels != len(texts or ()):
            raise ValueError("a term does not match its column")
        if not (math.isfinite(term.centre) and math.isfinite(term.scale) and term.scale > 0):
            raise ValueError("a term has no finite scale")
    model = PlainLogisticRegression()
    model.schema_ = schema
    model._publish_names()
    model.classes_ = classes
    model.columns_ = terms
    n_scores = 1 if len(classes) == 2 else len(classes)
    width = sum(term.width for term in terms)
    model.coef_ = _numbers(form["coef"], (n_scores, width), "coef")
    model.intercept_ = _numbers(form["intercept"], (n_scores,), "intercept")
    return model


def _as_list(values: np.ndarray[Any, Any] | None) -> list[float] | None:
    return None if values is None else [float(value) for value in values]


def _prior(values: Any, size: int) -> np.ndarray[Any, Any] | None:
    return None if values is None else _numbers(values, (size,), "prior")


def _numbers(values: Any, shape: tuple[int, ...], name: str) -> np.ndarray[Any, Any]:
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
