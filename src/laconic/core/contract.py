"""What every estimator shares: reading tables, labels and weights.

The only file that touches scikit-learn's private helpers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from inspect import cleandoc, isfunction, signature
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if as _available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    check_consistent_length,
    check_is_fitted,
)

from laconic._typing import Keys
from laconic.core.explanation import (
    Explanation,
    adds_up,
    explain_form,
    own_way,
    sum_of_terms,
    switches_of,
)
from laconic.data.row_keys import content_keys
from laconic.data.scan.scan import Scan
from laconic.data.source import ArraySource, Recoded, Recoding, Source
from laconic.data.tables.columns import MISSING, Schema, Table, shown

__all__ = [
    "LARGEST",
    "Accepts",
    "Interval",
    "LabelledReader",
    "ScannedTraining",
    "StrOptions",
    "TableClassifier",
    "TableReader",
    "Training",
    "available_if",
    "by_blocks",
    "fit_context",
    "gives_probabilities",
    "log_of",
    "numbers_of",
    "refuse_huge",
    "take_rows",
]

Method = TypeVar("Method", bound=Callable[..., Any])


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[Method], Method]:
    """scikit-learn's check of ``_parameter_constraints`` before ``fit``, with its type kept."""
    decorate = _fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)
    return cast("Callable[[Method], Method]", decorate)


def available_if(check: Callable[[Any], bool]) -> Callable[[Method], Method]:
    """scikit-learn's method that is there only for models that pass ``check``, type kept."""
    return cast("Callable[[Method], Method]", _available_if(check))


@dataclass(frozen=True)
class Accepts:
    """What an estimator's columns may hold."""

    categorical: bool = True
    missing: bool = True
    sparse: bool = False
    scan: bool = False
    """Whether ``fit`` passes over the rows by sums alone, so that they may lie anywhere."""
    several_classes: bool = True


@dataclass(frozen=True)
class Training:
    """Rows that count: ``y`` holds class codes, ``weight`` is positive, ``kept`` their place."""

    in_memory = True

    table: Table
    y: NDArray[np.int64]
    weight: NDArray[np.float64]
    kept: NDArray[np.int64]
    named: bool = True
    """Whether the names of the columns came with the data."""

    @property
    def n_rows(self) -> int:
        return len(self.y)

    @cached_property
    def column_keys(self) -> Keys:
        """A key of each column from what it holds: neither its place nor its name changes it."""
        return content_keys(self.table, self.y)

    @property
    def source(self) -> Source:
        return ArraySource(self.table, self.y, self.weight)

    def recoded(self, name: str, recode: Callable[[Table], Any]) -> Source:
        """The rows as ``recode`` turns them."""
        return ArraySource(recode(self.table), self.y, self.weight)


@dataclass(frozen=True)
class ScannedTraining:
    """Rows that stay where they are; ``table`` has their columns and no rows."""

    table: Table
    source: Source
    n_rows: int
    missing: tuple[int, ...]
    """Places of the columns that have missing values."""
    in_memory = False

    def recoded(self, name: str, recode: Callable[[Table], Any]) -> Source:
        """The rows as ``recode`` turns them, kept so by whoever reads them."""
        return Recoded(self.source, Recoding(name, lambda block: recode(block.X)))


@dataclass(frozen=True)
class _Applied:
    """A method of a fitted estimator, as a function of a frame; it travels to the workers."""

    estimator: Any
    method: str
    arguments: tuple[Any, ...]
    named: dict[str, Any]

    def __call__(self, frame: Any) -> Any:
        return getattr(self.estimator, self.method)(frame, *self.arguments, **self.named)


def by_blocks(method: Method) -> Method:
    """The method, which for a scan yields one result per block of rows, in order."""

    @wraps(method)
    def over(self: Any, X: Any, *arguments: Any, **named: Any) -> Any:
        if not isinstance(X, Scan):
            return method(self, X, *arguments, **named)
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", X.columns)
        applied = _Applied(self, method.__name__, arguments, named)
        return X.map_given(applied, [str(name) for name in names])

    return cast("Method", over)


def gives_probabilities(model: Any) -> bool:
    return hasattr(model, "predict_proba")


def log_of(proba: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):  # the logarithm of a probability of 0 is no mistake
        return np.asarray(np.log(proba))


def _fit_or_refuse(fit: Any) -> Any:
    """``fit``, which refuses a scan with a sentence when it needs the rows in memory."""

    @wraps(fit)
    def fitted(self: Any, X: Any, *arguments: Any, **named: Any) -> Any:
        self._refuse_scan(self._accepts.scan or not isinstance(X, Scan))
        return fit(self, X, *arguments, **named)

    return fitted


def _block_after_block(partial_fit: Any) -> Any:
    """``partial_fit``, which for a scan learns from one block of rows after the other."""

    @wraps(partial_fit)
    def learned(self: Any, X: Any, y: Any = None, classes: Any = None, **named: Any) -> Any:
        if not isinstance(X, Scan):
            return partial_fit(self, X, y, classes, **named)
        _refuse_labels_of_scan(y, named.get("sample_weight"))
        _require_target(X, type(self).__name__)
        if classes is None and not hasattr(self, "classes_"):
            classes = X.survey.classes
        for block, labels, weight in X.given_blocks():
            partial_fit(self, block, labels, classes, **named, sample_weight=weight)
        return self

    return learned


def _documented(accepts: Accepts) -> str:
    """The parameters of ``fit``, by what the columns may hold."""
    kinds = ["array", *["CSR matrix"] * accepts.sparse, "frame", *["scan"] * accepts.scan]
    cells = [] if accepts.categorical else ["Numbers only."]
    cells += [] if accepts.missing else ["Nothing missing."]
    labels = "Class labels" + "; those of a scan are one of its columns." * accepts.scan
    lines = [
        f"X : {', '.join(kinds[:-1])} or {kinds[-1]} of shape (n_rows, n_features)",
        *([f"    {' '.join(cells)}"] if cells else []),
        "y : array of shape (n_rows,)",
        f"    {labels.removesuffix('.')}.",
        "sample_weight : array of shape (n_rows,), optional",
        "    A weight is a repetition; a row of weight zero is absent.",
    ]
    text = ["", "", "Parameters", "----------", *lines, "", "Returns", "-------", "self", ""]
    return "\n".join(text)


def _refuse_labels_of_scan(y: Any, sample_weight: Any) -> None:
    if y is not None or sample_weight is not None:
        raise ValueError(
            "The labels and weights of a scan are columns: name them in scan(target=, weight=) "
            "and leave y and sample_weight out."
        )


def _require_target(rows: Scan, who: str) -> None:
    if rows.target is None:
        raise ValueError(
            f"{who} requires y to be passed, but the target y is None: name the column of "
            "labels in scan(target=)."
        )


# A family writes its methods for rows in memory. What a scan means for each of them is written
# once, above, and put around them when a class is made: a decorator on every method of thirty
# classes would be forgotten somewhere, and a scan that slips into numpy code fails far from the
# mistake.
_ON_SCANS: dict[str, Callable[[Any], Any]] = {
    "fit": _fit_or_refuse,
    "partial_fit": _block_after_block,
    "predict": by_blocks,
    "predict_proba": by_blocks,
    "decision_function": by_blocks,
    "transform": by_blocks,
}


class TableReader(BaseEstimator):  # type: ignore[misc]
    """Reads X at fit and at predict time, by the rules of :mod:`laconic.data.tables.columns`."""

    _accepts = Accepts()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Methods that the class itself defines learn what to do with a scan."""
        for name, on_scans in _ON_SCANS.items():
            method = cls.__dict__.get(name)
            if isfunction(method):  # what is inherited was wrapped in the class it comes from
                setattr(cls, name, on_scans(method))
        super().__init_subclass__(**kwargs)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = self._accepts.categorical
        tags.input_tags.string = self._accepts.categorical
        tags.input_tags.allow_nan = self._accepts.missing
        tags.input_tags.sparse = self._accepts.sparse
        return tags

    def _html_repr(self) -> str:
        """The fitted model in a few lines, then scikit-learn's diagram."""
        from laconic.core.compact import compact_html

        return compact_html(self) + str(super()._html_repr())

    def _learn_columns(self, X: Any) -> Table:
        """Read training rows, remember their columns (``schema_``, names and width)."""
        who = type(self).__name__
        learned = Schema.learn(X, who=who, allow_sparse=self._accepts.sparse)
        self._refuse_cells(learned.table, X)
        self.schema_ = learned.schema
        self._publish_names()
        return learned.table

    def _can_scan(self) -> bool:
        """Whether ``fit`` takes a scan with these parameters."""
        return self._accepts.scan

    def _refuse_scan(self, can: bool, what: str = "") -> None:
        if not can:
            raise TypeError(
                f"{type(self).__name__}{what} needs its rows in memory; fit it on rows read into "
                "memory (a sample of the files is often enough), or choose a model that fits from "
                "a scan, as WeightedNaiveBayes and GrayZoneLogisticRegression do."
            )

    def _publish_names(self) -> None:
        self.n_features_in_ = len(self.schema_.inputs)
        if self.schema_.named:
            self.feature_names_in_ = np.array(self.schema_.inputs, dtype=object)
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
            gone = _first_missing(table)
            if gone is not None:
                self._refuse_missing(table.names[gone])

    def _refuse_missing(self, name: str) -> None:
        raise ValueError(
            f"Column {shown(name)} has missing values (NaN), which {type(self).__name__} does not "
            "accept; impute them first, for instance with SimpleImputer, or choose a model that "
            "takes them."
        )

    def _read_weight(self, sample_weight: Any, n_rows: int) -> NDArray[np.float64]:
        if sample_weight is None:
            return np.ones(n_rows)
        weight: NDArray[np.float64] = _check_sample_weight(
            sample_weight, np.empty((n_rows, 0)), dtype=np.float64, ensure_non_negative=True
        )
        if not weight.any():
            raise ValueError("Sample weights must contain at least one non-zero number.")
        with np.errstate(over="ignore"):
            total = float(weight.sum())
        if total > LARGEST:
            raise ValueError(
                f"sample_weight adds up to {total:.3g}; a weight of 2 means two rows, so divide "
                "sample_weight by its mean."
            )
        return weight


class LabelledReader(TableReader):
    """An estimator that learns from classes; ``fit`` starts with :meth:`_read_training`."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """A ``fit`` whose text has no parameters gets those that every one has."""
        super().__init_subclass__(**kwargs)
        fit, accepts = cls.__dict__.get("fit"), cls._accepts
        if not isfunction(fit) or not fit.__doc__ or "Parameters\n" in fit.__doc__:
            return  # under python -OO there is no text at all
        if "sample_weight" in signature(fit).parameters:
            known = accepts if isinstance(accepts, Accepts) else Accepts(scan=True)
            fit.__doc__ = cleandoc(fit.__doc__) + _documented(known)

    def _read_training(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Check X, y and weights; set ``classes_``; drop rows of zero weight."""
        if isinstance(X, Scan):
            return self._read_scan(X, y, sample_weight)
        weight, kept, labels = self._read_labels(X, y, sample_weight)
        if kept is not None:
            # categories, classes and cut points must not know rows that do not count
            X = take_rows(X, kept)
        table = self._learn_columns(X)
        codes = self._learn_classes(labels)
        rows = np.arange(len(labels)) if kept is None else kept
        return Training(table, codes, weight, rows, self.schema_.named)

    def _read_scan(self, rows: Scan, y: Any, sample_weight: Any) -> ScannedTraining:
        """The columns and classes of a scan, in one pass; the rows stay where they are."""
        _refuse_labels_of_scan(y, sample_weight)
        _require_target(rows, type(self).__name__)
        seen = rows.survey
        assert seen.classes is not None
        table = seen.schema().empty_table()
        self._refuse_cells(table, None)
        missing = seen.missing_columns()
        if missing and not self._accepts.missing:
            self._refuse_missing(table.names[missing[0]])
        self.schema_ = seen.schema()
        self._publish_names()
        check_classification_targets(seen.classes)
        self._learn_classes(seen.classes)
        return ScannedTraining(table, rows, rows.n_rows, tuple(missing))

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
        classes = np.unique(labels)
        if len(classes) < 2:
            raise ValueError(
                f"{who} needs at least two classes in y, but y has one class: "
                f"{shown(classes[0])}; give rows of another class."
            )
        self.classes_ = classes
        # found, not sorted with their places: a tenth of the time of a fast linear fit
        return np.searchsorted(classes, labels).astype(np.int64)


class TableClassifier(ClassifierMixin, LabelledReader):  # type: ignore[misc]
    """A classifier that reads tables."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._accepts.several_classes
        return tags

    @available_if(gives_probabilities)
    @by_blocks
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Natural logarithm of :meth:`predict_proba`; -inf where a probability is 0."""
        return log_of(self.predict_proba(X))

    @available_if(adds_up)
    def explain(self, X: Any) -> Explanation:
        """What each variable adds to the score of each row, exactly.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)

        Returns
        -------
        Explanation
            For two classes, contributions to the score of ``classes_[1]``.
        """
        check_is_fitted(self)
        form, rows = sum_of_terms(self), self._read_rows(X)
        if form is not None:
            why = explain_form(form, self.classes_, rows)
        else:
            other = own_way(self)
            assert other is not None
            why = other.explain(self.classes_, rows)
        return replace(why, switches=switches_of(self.schema_))

    def __call__(self, X: Any) -> NDArray[np.float64]:
        """The score that :meth:`explain` takes apart, for ``shap.Explainer(model, X)``."""
        return self.explain(X).score


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
    """Some rows of any input that :mod:`laconic.data.tables.columns` reads."""
    import narwhals as nw

    if isinstance(X, Table):
        return X[kept]
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
        gone = values == MISSING if table.kinds[j] == "categorical" else np.isnan(values)
        if gone.any():
            return j
    return None


LARGEST = 1e100
"""Cells above this overflow when they are squared and summed."""


def numbers_of(table: Table) -> Any:
    """Rows as float64, C-ordered (or CSR): the bytes of a product depend on the memory order."""
    matrix = table.matrix()
    refuse_huge(matrix, table.names)
    return matrix if issparse(matrix) else np.ascontiguousarray(matrix)


def refuse_huge(matrix: Any, names: tuple[str, ...]) -> None:
    """Refuse cells whose squares would overflow, naming the column."""
    if issparse(matrix):
        size = abs(matrix).max(axis=0).toarray().ravel() if matrix.nnz else np.zeros(0)
    else:
        # all squares at once: a maximum by column of row-ordered numbers takes ten times as long
        flat = matrix.ravel(order="K")
        with np.errstate(over="ignore"):
            if float(flat @ flat) <= LARGEST**2:
                return
        size = np.abs(matrix).max(axis=0)
    huge = np.flatnonzero(size > LARGEST)
    if len(huge):
        raise ValueError(
            f"Column {shown(names[huge[0]])} holds values larger than {LARGEST:g}; rescale it, "
            "for instance with StandardScaler."
        )
