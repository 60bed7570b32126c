"""What convex models share: how they read numbers, and a risk that is linear or on a kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import Tags, check_array, column_or_1d
from sklearn.utils.validation import check_consistent_length

from laconic._typing import Floats, Ints
from laconic.convex.solver import solve_certified
from laconic.core.contract import LARGEST, Interval, StrOptions, TableReader, numbers_of
from laconic.core.losses import ScoreLoss, Solution
from laconic.data.source import Source
from laconic.kernel.fit import KernelProblem, fit_rows
from laconic.kernel.form import KernelScore

Class = TypeVar("Class", bound=type)

_REMEDY = "raise max_iter or tol, or scale X"

_PARAMETERS = """\
    C : float, default=1.0
        Weight of the losses.
    kernel : {"rbf", "poly", "linear", "precomputed"}, callable or None, default=None
        None is the linear model. "precomputed" takes the kernel matrix as X; a callable takes two
        tables and returns one value per pair of rows.
    gamma : {"scale", "auto"} or float, default="scale"
        Of "rbf", ``exp(-gamma |x - x'|^2)``, and "poly"; "scale" is 1 / (n_features * variance)
        and "auto" 1 / n_features.
    degree, coef0 : int and float, default=3 and 0.0
        Of "poly", (gamma x.x' + coef0)^degree.
    fit_intercept : bool, default=True
        Add an intercept, which is not penalised.
    tol : float, default=1e-8
        The optimiser stops when the duality gap is at most ``tol`` times the objective.
    max_iter : int, default=100
        Newton iterations allowed; with a kernel ten times as many, or sweeps of pair steps.
    warm_start : bool, default=False
        Start from the coefficients of the previous fit; linear models only.
    cache_size : float, default=500
        Megabytes of kernel values kept in memory.
"""

_ATTRIBUTES = """\
    support_, support_vectors_ : ndarray
        With a kernel: places of the rows with a part in the model, and these rows.
    dual_coef_ : ndarray of shape (n_scores, n_support)
        With a kernel: ``dual_coef_ @ k(support_vectors_, x) + intercept_`` is the score (up to the
        gap when ``solver_`` is "low-rank").
    score_form_ : KernelScore
        With a kernel: what predicts.
    solver_, gamma_ : str and float
        With a kernel: the solver used, and the width.
"""


def shares_documentation(cls: Class) -> Class:
    """Put the text of the common parameters and attributes where the class's text names them."""
    if cls.__doc__:  # none under python -OO
        for mark, text in (("parameters", _PARAMETERS), ("attributes", _ATTRIBUTES)):
            cls.__doc__ = cls.__doc__.replace(f"    (common {mark})\n", text)
    return cls


@dataclass(frozen=True)
class NumericTraining:
    """Rows that count: numbers, target (zeros when there is none), weights, and their place."""

    X: Any
    y: NDArray[np.float64]
    weight: NDArray[np.float64]
    kept: NDArray[np.int64]


def read_numeric_training(
    model: TableReader, X: Any, y: Any, sample_weight: Any = None, *, needs_y: bool = True
) -> NumericTraining:
    """Check X, a numeric y and weights; learn the columns; drop rows of zero weight."""
    who = type(model).__name__
    if needs_y and y is None:
        raise ValueError(f"{who} requires y to be passed, but the target y is None.")
    table = model._learn_columns(X)
    matrix = numbers_of(table)
    target = numeric_target(y) if needs_y else np.zeros(table.n_rows)
    check_consistent_length(matrix, target)
    weight = model._read_weight(sample_weight, table.n_rows)
    if (weight > 0).all():
        return NumericTraining(matrix, target, weight, np.arange(len(weight)))
    kept = np.flatnonzero(weight)
    return NumericTraining(matrix[kept], target[kept], weight[kept], kept)


def numeric_target(y: Any) -> NDArray[np.float64]:
    """A finite float64 vector."""
    if hasattr(y, "to_numpy") and not isinstance(y, np.ndarray):
        y = y.to_numpy()
    target = column_or_1d(y, warn=True)
    target = check_array(target, dtype=np.float64, ensure_2d=False, input_name="y")
    if np.abs(target).max(initial=0.0) > LARGEST:
        raise ValueError(f"y holds values larger than {LARGEST:g}; rescale it.")
    return np.asarray(target)


class ConvexRisk(TableReader):
    """An estimator whose ``kernel`` is None (linear) or names the space of its functions."""

    _parameter_constraints: dict[str, list[Any]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "kernel": [StrOptions({"rbf", "poly", "linear", "precomputed"}), callable, None],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "cache_size": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self, loss: Any, C: float, kernel: Any, gamma: Any, degree: int, coef0: float,
        fit_intercept: bool, tol: float, max_iter: int, warm_start: bool, cache_size: float,
    ) -> None:  # fmt: skip
        self.loss = loss
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.cache_size = cache_size

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_pairwise
        return tags

    @property
    def _is_pairwise(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _refuse_warm_start(self) -> None:
        if self.kernel is not None and self.warm_start:
            raise ValueError(
                "warm_start=True is for linear models: with a kernel, leave it False (or set "
                "kernel=None)."
            )

    def _solve(self, source: Source, loss: ScoreLoss, start: Floats | None) -> Solution:
        """One linear problem."""
        return solve_certified(
            source, loss, C=self.C, fit_intercept=self.fit_intercept, tol=self.tol,
            max_iter=self.max_iter, start=start,
        ).warn_if_short(type(self).__name__, _REMEDY)  # fmt: skip

    def _fit_kernel(
        self, loss: ScoreLoss, table: Any, targets: list[Floats], weight: Floats, kept: Ints,
        n_given: int,
    ) -> list[Solution]:  # fmt: skip
        """Solve each target's problem and keep the multipliers, named as SVC names them."""
        centre = self._centre(table)
        moved = table if centre is None else table - centre
        problem = KernelProblem.of(self, moved, weight, kept, n_given)
        # one sweep of pair steps is cheaper than one Newton iteration
        found = fit_rows(self, problem, loss, targets, weight, max_iter=10 * self.max_iter)
        used = np.any([fit.slopes != 0 for fit in found.fits], axis=0) | found.expanded
        kernel, vectors, coef = found.expansion()
        self.gamma_ = kernel.gamma
        self.solver_ = found.fits[0].solver
        self.support_ = kept[used]
        self.support_vectors_ = found.vectors(used) if centre is None else table[used]
        self.dual_coef_ = found.multipliers()[:, used]
        self._columns = kept[found.basis()] if self._is_pairwise else None
        self._expansion = (kernel, vectors, coef)
        self.__dict__.pop("coef_", None)
        if self.kernel == "linear":
            points = np.asarray(coef @ vectors)
            self.coef_ = points if is_classifier(self) else points[0]
        solved = [fit.solution.warn_if_short(type(self).__name__, _REMEDY) for fit in found.fits]
        if centre is None:
            return solved
        shifts = np.asarray(coef @ (vectors @ centre))
        return [
            replace(one, point=np.append(one.point[:-1], one.point[-1] - shift))
            for one, shift in zip(solved, shifts, strict=True)
        ]

    def _centre(self, table: Any) -> Floats | None:
        """What is taken from columns before their inner products: far from zero these would round
        away what tells the rows apart. The intercept, which costs nothing, takes it up."""
        if self.kernel != "linear" or not self.fit_intercept or not isinstance(table, np.ndarray):
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            centre = table.mean(axis=0)
        return centre if np.isfinite(centre).all() else None

    def _forget_kernel(self) -> None:
        for name in (
            "support_", "support_vectors_", "dual_coef_", "n_support_", "score_form_", "solver_",
            "gamma_",
        ):  # fmt: skip
            self.__dict__.pop(name, None)

    def _store_form(self, classes: tuple[Any, ...], intercept: Floats, link: Any) -> None:
        kernel, vectors, coef = self.__dict__.pop("_expansion")
        self.score_form_ = KernelScore(classes, kernel, vectors, coef, intercept, link)

    def _kernel_scores(self, matrix: Any) -> Floats:
        """(rows, scores), from numbers or from the values of a precomputed kernel."""
        return self.score_form_.score(matrix if self._columns is None else matrix[:, self._columns])
