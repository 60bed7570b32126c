"""What every estimator shares: reading tables, labels and weights.

The only file that touches scikit-learn's private helpers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    check_consistent_length,
    check_is_fitted,
)

from laconic.data.columns import Schema, Table, shown

__all__ = [
    "Accepts",
    "Interval",
    "LabelledReader",
    "StrOptions",
    "TableClassifier",
    "TableReader",
    "Training",
    "fit_context",
    "take_rows",
]

fit_context = _fit_context


@dataclass(frozen=True)
class Accepts:
    """What an estimator's columns may hold."""

    categorical: bool = True
    missing: bool = True
    sparse: bool = False


@dataclass(frozen=True)
class Training:
    """Rows that count: ``y`` holds class codes, ``weight`` is positive, ``kept`` their place."""

    table: Table
    y: NDArray[np.int64]
    weight: NDArray[np.float64]
    kept: NDArray[np.int64]

    @property
    def n_rows(self) -> int:
        return len(self.y)


class TableReader(BaseEstimator):  # type: ignore[misc]
    """Reads X at fit and at predict time, by the rules of :mod:`laconic.data.columns`."""

    _accepts = Accepts()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = self._accepts.categorical
        tags.input_tags.string = self._accepts.categorical
        tags.input_tags.allow_nan = self._accepts.missing
        tags.input_tags.sparse = self._accepts.sparse
        return tags

    def _learn_columns(self, X: Any) -> Table:
        """Read training rows, remember their columns (``schema_``, names and width)."""
        who = type(self).__name__
        learned = Schema.learn(X, who=who, allow_sparse=self._accepts.sparse)
        self._refuse_cells(learned.table, X)
        self.schema_ = learned.schema
        self._publish_names()
        return learned.table

    def _publish_names(self) -> None:
        self.n_features_in_ = len(self.schema_.names)
        if self.schema_.named:
            self.feature_names_in_ = np.array(self.schema_.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _read_rows(self, X: Any) -> Table:
        """Read rows to predict: columns by name, categories by text, clear errors."""
        check_is_fitted(self, "schema_")
        who = type(self).__name__
        table = self.schema_.apply(X, who=who, allow_sparse=self._accepts.sparse)
        self._refuse_cells(table, X)
        return table

    def _refuse_cells(self, table: Table, X: Any) -> None:
        who = type(self).__name__
        if not self._accepts.categorical and not table.all_numeric:
            j = table.kinds.index("categorical")
            raw = np.asarray(X, dtype=object)[:, j] if isinstance(X, np.ndarray | list) else ()
            for cell in raw:
                if cell is not None and not isinstance(cell, str):
                    float(cell)  # a dict or a list: Python's own TypeError
            raise ValueError(
                f"Column {shown(table.names[j])} is categorical and {who} takes numbers only; "
                "encode it first, for instance with OneHotEncoder or ModlEncoder."
            )
        if not self._accepts.missing:
            j = _first_missing(table)
            if j is not None:
                raise ValueError(
                    f"Column {shown(table.names[j])} has missing values (NaN), which {who} does "
                    "not accept; impute them first, for instance with SimpleImputer, or choose a "
                    "model that takes them."
                )

    def _read_weight(self, sample_weight: Any, n_rows: int) -> NDArray[np.float64]:
        if sample_weight is None:
            return np.ones(n_rows)
        weight = _check_sample_weight(
            sample_weight, np.empty((n_rows, 0)), dtype=np.float64, ensure_non_negative=True
        )
        if not weight.any():
            raise ValueError("Sample weights must contain at least one non-zero number.")
        return weight


class LabelledReader(TableReader):
    """An estimator that learns from classes; ``fit`` starts with :meth:`_read_training`."""

    def _read_training(self, X: Any, y: Any, sample_weight: Any = None) -> Training:
        """Check X, y and weights; set ``classes_``; drop rows of zero weight."""
        weight, kept, labels = self._read_labels(X, y, sample_weight)
        if kept is not None:
            # categories, classes and cut points must not know rows that do not count
            X = take_rows(X, kept)
        table = self._learn_columns(X)
        codes = self._learn_classes(labels)
        rows = np.arange(len(labels)) if kept is None else kept
        return Training(table, codes, weight, rows)

    def _read_labels(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[NDArray[np.float64], NDArray[np.int64] | None, NDArray[Any]]:
        who = type(self).__name__
        if y is None:
            raise ValueError(f"{who} requires y to be passed, but the target y is None.")
        labels = _check_y(_as_labels(y), estimator=self)
        check_classification_targets(labels)
        if isinstance(X, dict) and not hasattr(X, "tocsr"):
            check_consistent_length(*X.values(), labels)
        elif hasattr(X, "shape") or hasattr(X, "__len__"):
            check_consistent_length(X, labels)
        weight = self._read_weight(sample_weight, len(labels))
        if (weight > 0).all():
            return weight, None, labels
        kept = np.flatnonzero(weight)
        return weight[kept], kept, labels[kept]

    def _learn_classes(self, labels: NDArray[Any]) -> NDArray[np.int64]:
        who = type(self).__name__
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"{who} needs at least two classes in y, but y has one class: "
                f"{shown(classes[0])}; give rows of another class."
            )
        self.classes_ = classes
        return codes.astype(np.int64)


class TableClassifier(ClassifierMixin, LabelledReader):  # type: ignore[misc]
    """A classifier that reads tables."""


def _as_labels(y: Any) -> Any:
    """Series of any frame library as arrays; missing labels become NaN, refused later."""
    if hasattr(y, "to_numpy") and not isinstance(y, np.ndarray):
        y = y.to_numpy()
    array = np.asarray(y)
    if array.dtype.kind == "O" and array.ndim == 1:
        gone = [cell is None or cell != cell for cell in array]
        if any(gone):
            raise ValueError(
                f"Input y contains NaN: {sum(gone)} labels are missing; drop those rows."
            )
    return y


def take_rows(X: Any, kept: NDArray[np.int64]) -> Any:
    """Some rows of any input that :mod:`laconic.data.columns` reads."""
    import narwhals as nw

    if hasattr(X, "tocsr"):
        return X.tocsr()[kept]
    if isinstance(X, dict):
        return {name: np.asarray(cells, dtype=object)[kept] for name, cells in X.items()}
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return frame[kept.tolist()].to_native()
    if isinstance(X, list | tuple):
        return [X[i] for i in kept]
    return np.asarray(X)[kept]


def _first_missing(table: Table) -> int | None:
    if table._matrix is not None:
        values = table._matrix.data if table.is_sparse else table._matrix
        with np.errstate(over="ignore", invalid="ignore"):
            if values.dtype.kind != "f" or np.isfinite(values.sum(dtype=np.float64)):
                return None
        if table.is_sparse:
            bad = np.unique(table._matrix.indices[np.isnan(values)])
            return int(bad[0]) if len(bad) else None
    for j in range(len(table.names)):
        values = table.column(j)
        gone = values == -1 if table.kinds[j] == "categorical" else np.isnan(values)
        if gone.any():
            return j
    return None
