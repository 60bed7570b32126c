"""Convex risks over the functions of a kernel: what the classifier and the regressor share."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.criteria.protocol import ScoreLoss
from laconic.estimators.contract import Interval, StrOptions
from laconic.estimators.kernel_fit import KernelProblem, fit_rows
from laconic.estimators.kernel_form import KernelScore
from laconic.solvers.solution import Solution

Floats = NDArray[np.float64]
Index = NDArray[np.int64]

RISK_CONSTRAINTS: dict[str, list[Any]] = {
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

_OF_A_KERNEL = (
    "support_", "support_vectors_", "dual_coef_", "n_support_", "score_form_", "solver_", "gamma_",
)  # fmt: skip


class KernelRisk:
    """An estimator whose ``kernel`` is None (linear) or names the space of its functions."""

    kernel: Any
    warm_start: bool
    max_iter: int

    @property
    def _is_pairwise(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _refuse_warm_start(self) -> None:
        if self.kernel is not None and self.warm_start:
            raise ValueError(
                "warm_start=True is for linear models: with a kernel, leave it False (or set "
                "kernel=None)."
            )

    def _fit_kernel(
        self, loss: ScoreLoss, table: Any, targets: list[Floats], weight: Floats, kept: Index,
        n_given: int,
    ) -> list[Solution]:  # fmt: skip
        """Solve each target's problem and keep the multipliers, named as SVC names them."""
        problem = KernelProblem.of(self, table, weight, kept, n_given)
        # one sweep of pair steps is cheaper than one Newton iteration
        found = fit_rows(self, problem, loss, targets, weight, max_iter=10 * self.max_iter)
        used = np.any([fit.slopes != 0 for fit in found.fits], axis=0) | found.expanded
        kernel, vectors, coef = found.expansion()
        self.gamma_ = kernel.gamma
        self.solver_ = found.fits[0].solver
        self.support_ = kept[used]
        self.support_vectors_ = found.vectors(used)
        self.dual_coef_ = found.multipliers()[:, used]
        self._columns = kept[found.basis()] if self._is_pairwise else None
        self._expansion = (kernel, vectors, coef)
        if hasattr(self, "coef_"):
            del self.coef_
        remedy = "raise max_iter or tol, or scale X"
        return [fit.solution.warn_if_short(type(self).__name__, remedy) for fit in found.fits]

    def _forget_kernel(self) -> None:
        for name in _OF_A_KERNEL:
            if hasattr(self, name):
                delattr(self, name)

    def _store_form(self, classes: tuple[Any, ...], intercept: Floats, link: Any) -> None:
        kernel, vectors, coef = self.__dict__.pop("_expansion")
        self.score_form_ = KernelScore(classes, kernel, vectors, coef, intercept, link)

    def _kernel_scores(self, matrix: Any) -> Floats:
        """(rows, scores), from numbers or from the values of a precomputed kernel."""
        return self.score_form_.score(matrix if self._columns is None else matrix[:, self._columns])
