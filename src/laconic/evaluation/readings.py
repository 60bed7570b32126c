"""What a display reads from a model: the probability of one class, and a name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length, column_or_1d

from laconic.criteria.decisions import class_codes

Floats = NDArray[np.float64]


def positive_proba(estimator: Any, X: Any, pos_label: Any = None) -> tuple[Floats, NDArray[Any]]:
    """Probability of one class (the last by default), and the classes."""
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(f"{type(estimator).__name__} has no predict_proba to display.")
    classes = np.asarray(estimator.classes_)
    if pos_label is None and len(classes) != 2:
        raise ValueError(f"Choose pos_label: the model has {len(classes)} classes.")
    label = classes[-1] if pos_label is None else pos_label
    column = class_codes(np.array([label]), classes, "pos_label")[0]
    return np.asarray(estimator.predict_proba(X), dtype=np.float64)[:, column], classes


def checked_proba(proba: ArrayLike, rows: NDArray[Any]) -> Floats:
    p: Floats = column_or_1d(np.asarray(proba, dtype=np.float64))
    check_consistent_length(rows, p)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError("proba must hold probabilities between 0 and 1.")
    return p


def name_of(estimator: Any) -> str:
    inner = getattr(estimator, "estimator", None)
    name = type(estimator).__name__
    return f"{name}({type(inner).__name__})" if inner is not None else name
