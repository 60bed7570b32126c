"""The fitted form of a linear score on mixed columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from laconic._typing import Floats
from laconic.core.contract import Interval, fit_context
from laconic.core.form_prediction import FormPrediction
from laconic.core.forms import AdditiveScore, LineTerm, SlotTerm, Term, plain_label
from laconic.core.links import Link
from laconic.data.source import one_blas_thread
from laconic.data.tables.axes import CategoryAxis
from laconic.data.tables.columns import Schema, Table
from laconic.data.tables.kinds import MISSING


def design_form(
    columns: Sequence[Any],
    schema: Schema,
    coef: Floats,
    intercept: Floats,
    classes: NDArray[Any],
    link: Link,
) -> AdditiveScore:
    """A linear score on the design matrix of :func:`laconic.linear.plain.design`."""
    terms: list[Term] = []
    start = 0
    for name, texts, column in zip(schema.names, schema.categories, columns, strict=True):
        own = coef[:, start : start + column.width].T
        start += column.width
        if not own.any():
            continue
        silent = np.zeros((1, own.shape[1]))
        missing = own[-1:] if column.has_missing else silent
        if column.kind == "categorical":
            axis = CategoryAxis(tuple((text,) for text in texts or ()))
            levels = own[: column.n_levels]
            terms.append(SlotTerm((name,), (axis,), np.concatenate([levels, silent, missing])))
        else:
            terms.append(LineTerm(name, own[0] / column.scale, column.centre, missing[0]))
    labels = tuple(plain_label(c) for c in classes)
    return AdditiveScore(labels, np.array(intercept), tuple(terms), link)


# Plain logistic regression on a table as it comes: the baseline every model is compared with.


@dataclass(frozen=True)
class LinearColumn:
    """How one column enters a linear score.

    Numeric: ``(x - centre) / scale``, and a missing cell counts as ``centre`` plus an indicator
    of its own where the training column had missing cells. Categorical: one indicator per level,
    the missing level included where it was seen; an unseen level counts as no level.
    """

    kind: str
    centre: float
    scale: float
    n_levels: int
    has_missing: bool

    @property
    def width(self) -> int:
        return (self.n_levels if self.kind == "categorical" else 1) + self.has_missing

    def write(self, values: NDArray[Any], out: NDArray[np.float64]) -> None:
        """Fill ``out`` (rows x width) with the column's share of the design matrix."""
        if self.kind != "categorical":
            gone = np.isnan(values)
            # the difference of halves does not overflow where that of the numbers would
            halves = 2.0 * (values / 2.0 / self.scale - self.centre / 2.0 / self.scale)
            out[:, 0] = np.where(gone, 0.0, halves)
            if self.has_missing:
                out[:, 1] = gone
            return
        rows = np.flatnonzero(values >= 0)
        out[rows, values[rows]] = 1.0
        if self.has_missing:
            out[:, -1] = values == MISSING


def linear_columns(table: Table, weight: NDArray[np.float64]) -> tuple[LinearColumn, ...]:
    """Centres (weighted means), scales (weighted deviations) and levels of every column."""
    found = []
    for j, kind in enumerate(table.kinds):
        values = table.column(j)
        if kind == "categorical":
            levels = len(table.categories[j] or ())
            found.append(LinearColumn(kind, 0.0, 1.0, levels, bool((values == MISSING).any())))
            continue
        seen = ~np.isnan(values)
        centre, scale = _centre_and_scale(values[seen], weight[seen])
        found.append(LinearColumn(kind, centre, scale, 0, not bool(seen.all())))
    return tuple(found)


def _centre_and_scale(
    values: NDArray[np.float64], weight: NDArray[np.float64]
) -> tuple[float, float]:
    if not len(values):
        return 0.0, 1.0
    unit = float(np.abs(values).max()) or 1.0
    share = weight / weight.sum()
    centre = float(share @ (values / unit))
    spread = float(np.sqrt(share @ (values / unit - centre) ** 2))
    return centre * unit, (spread * unit if spread > 1e-12 else unit)


def design(columns: tuple[LinearColumn, ...], table: Table) -> NDArray[np.float64]:
    """The design matrix of a linear score, without the intercept."""
    out = np.zeros((table.n_rows, sum(column.width for column in columns)))
    start = 0
    for j, column in enumerate(columns):
        column.write(table.column(j), out[:, start : start + column.width])
        start += column.width
    return out


class PlainLogisticRegression(FormPrediction):
    """Logistic regression on mixed columns: standardised numbers, one indicator per level.

    scikit-learn's :class:`~sklearn.linear_model.LogisticRegression` fits the coefficients; this
    class only prepares the table. It is the baseline of every comparison in the library.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the quadratic penalty.
    max_iter : int, default=100
        Newton iterations allowed.
    tol : float, default=1e-8
        Largest gradient at which the optimiser stops.

    Attributes
    ----------
    columns_ : tuple of LinearColumn
        How each column enters the score.
    coef_, intercept_ : ndarray
        Coefficients of the design matrix, as in scikit-learn.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
    n_iter_ : ndarray of shape (1,)

    Examples
    --------
    >>> from laconic import PlainLogisticRegression
    >>> from laconic.data.demo import make_payments
    >>> payments, label = make_payments(2000)
    >>> model = PlainLogisticRegression().fit(payments, label)
    >>> model.predict_proba(payments).shape
    (2000, 2)
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(self, C: float = 1.0, *, max_iter: int = 100, tol: float = 1e-8) -> None:
        self.C = C
        self.max_iter = max_iter
        self.tol = tol

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PlainLogisticRegression:
        """Fit the coefficients.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
        y : array of shape (n_rows,)
        sample_weight : array of shape (n_rows,), optional

        Returns
        -------
        self
        """
        rows = self._read_training(X, y, sample_weight)
        self.columns_ = linear_columns(rows.table, rows.weight)
        inner = LogisticRegression(
            C=self.C, solver="newton-cholesky", tol=self.tol, max_iter=self.max_iter
        )
        with one_blas_thread():  # the same bits whatever the number of threads
            inner.fit(design(self.columns_, rows.table), rows.y, sample_weight=rows.weight)
        self.coef_, self.intercept_, self.n_iter_ = inner.coef_, inner.intercept_, inner.n_iter_
        link: Link = "logit" if len(self.classes_) == 2 else "softmax"
        self.form_ = design_form(
            self.columns_, self.schema_, self.coef_, self.intercept_, self.classes_, link
        )
        return self


__all__ = ["LinearColumn", "PlainLogisticRegression", "design", "linear_columns"]
