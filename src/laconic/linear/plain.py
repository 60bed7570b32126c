"""Plain logistic regression on a table as it comes: the baseline every model is compared with."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from laconic._typing import Floats
from laconic.core.contract import Interval, StrOptions, Training, fit_context
from laconic.core.form_prediction import FormPrediction
from laconic.core.forms import Link
from laconic.core.losses import TruncatedLogistic, TruncatedMultinomial
from laconic.linear.design import design, design_form, in_own_units, linear_columns
from laconic.linear.effects import spread_columns
from laconic.linear.fit import Fit, Task, fit_binary, fit_multinomial, stacked


class PlainLogisticRegression(FormPrediction):
    r"""Logistic regression on mixed columns: standardised numbers, one indicator per level.

    .. math:: \min_{w, b}\ \tfrac12 |w|^2 + C \sum_i s_i \log(1 + e^{-y_i (w \cdot x_i + b)})

    and the multinomial likelihood for more than two classes, where x holds the numbers in units
    of their deviation and the indicators. Levels that weigh less than five rows share one
    coefficient, and so do texts that were never seen; or every level has its own, as a random
    effect whose spread the rows choose (:mod:`laconic.linear.effects`). It is the baseline of every
    comparison in the library.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the quadratic penalty.
    levels : {"common", "all"}, default="common"
        "all": every level has a coefficient. Those of a column of ten or more are random effects
        with a common spread, found by marginal likelihood. Two classes.
    max_iter : int, default=100
        Newton iterations allowed.
    tol : float, default=1e-10
        Stop when ``duality_gap_ <= tol * objective_``.

    Attributes
    ----------
    columns_ : tuple of LinearColumn
        How each column enters the score.
    design_names_ : ndarray of str
        Names of the columns of :meth:`design`.
    coef_, intercept_ : ndarray of shape (1, n_design) and (1,), or (n_classes, ...)
        ``design(X) @ coef_.T + intercept_`` is the score: coefficients of the numbers in their own
        units, whatever units the penalty saw.
    objective_, duality_gap_ : float
        The least possible objective lies within ``duality_gap_`` below ``objective_``.
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
    >>> score = model.design(payments) @ model.coef_[0] + model.intercept_[0]
    >>> np.allclose(score, model.decision_function(payments))
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "levels": [StrOptions({"common", "all"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self, C: float = 1.0, *, levels: str = "common", max_iter: int = 100, tol: float = 1e-10
    ) -> None:
        self.C = C
        self.levels = levels
        self.max_iter = max_iter
        self.tol = tol

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PlainLogisticRegression:
        """Fit the coefficients."""
        rows = self._read_training(X, y, sample_weight)
        if self.levels == "common":
            self.columns_ = linear_columns(rows.table, rows.weight)
            fit = self._weigh(rows)
        else:
            fit = self._spread(rows)
        for solution in fit.solutions:
            solution.warn_if_short(type(self).__name__, "raise max_iter or tol, or lower C")
        self.objective_, self.duality_gap_ = float(fit.objective), float(fit.gap)
        self.n_iter_ = fit.n_iter
        names = [name for column in self.columns_ for name in column.names]
        self.design_names_ = np.array(names, dtype=object)
        coef = fit.coef[:, : len(names)]
        self.coef_, self.intercept_ = in_own_units(self.columns_, coef, fit.intercept)
        link: Link = "logit" if len(self.classes_) == 2 else "softmax"
        self.form_ = design_form(self.columns_, coef, fit.intercept, self.classes_, link)
        return self

    def _spread(self, rows: Training) -> Fit:
        """Every level weighed, those of many levels by a spread of their own."""
        if len(self.classes_) > 2:
            raise ValueError(
                f'levels="all" is for two classes and y has {len(self.classes_)}; leave it at '
                '"common".'
            )
        every = linear_columns(rows.table, rows.weight, 0.0)

        def solve(matrix: Any, start: Floats | None) -> Floats:
            fit = fit_binary(self._task(matrix, rows, 1e-4), TruncatedLogistic(), start)
            return np.asarray(stacked(fit.coef, fit.intercept)[0])

        given = rows.table, float(self.C) * rows.weight
        self.columns_, start = spread_columns(every, *given, solve)
        return self._weigh(rows, start)

    def _task(self, matrix: Any, rows: Training, tol: float) -> Task:
        if not matrix.shape[1]:
            matrix = np.zeros((rows.n_rows, 1))  # nothing but the intercept is left
        given = matrix, rows.y, rows.weight, float(self.C), True, "auto", tol
        return Task(*given, int(self.max_iter))

    def _weigh(self, rows: Training, start: Floats | None = None) -> Fit:
        matrix = design(self.columns_, rows.table)
        task = self._task(matrix, rows, float(self.tol))
        matrix = task.X
        if len(self.classes_) == 2:
            return _once_more(task, fit_binary(task, TruncatedLogistic(), start))
        # the best intercepts without any column: rows of tiny weight hardly move them
        start = np.zeros((len(self.classes_), matrix.shape[1] + 1))
        share = np.bincount(rows.y, rows.weight / rows.weight.max())
        constant = np.log(np.maximum(share, 1e-300))
        start[:, -1] = constant - constant.mean()
        return fit_multinomial(task, TruncatedMultinomial((1.0,) * len(start)), start)

    def design(self, X: Any) -> Any:
        """The rows as the coefficients see them: one column for each of ``design_names_``.

        Returns
        -------
        array or CSR matrix of shape (n_rows, n_design)
        """
        return design(self.columns_, self._read_rows(X), standard=False)


def _once_more(task: Task, found: Fit) -> Fit:
    """A last Newton step, of quadratic gain: equal problems then end at equal coefficients."""
    point = stacked(found.coef, found.intercept)[0]
    again = fit_binary(replace(task, tol=1e-300, max_iter=1), TruncatedLogistic(), point)
    if again.gap >= found.gap:
        return found
    return replace(again, n_iter=found.n_iter + 1, solutions=found.solutions)


__all__ = ["PlainLogisticRegression"]
