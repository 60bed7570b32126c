"""ConvexRiskRegressor: any convex loss of the residual, linear or on a kernel, certified."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from laconic._typing import Floats
from laconic.convex.risk import ConvexRisk, shares_documentation
from laconic.core.contract import (
    Accepts,
    Interval,
    NumericTraining,
    StrOptions,
    TableReader,
    fit_context,
    numbers_of,
    read_numeric_training,
)
from laconic.core.losses import REGRESSION_LOSSES, get_loss
from laconic.core.protocol import ScoreLoss
from laconic.core.solution import Solution
from laconic.data.source import ArraySource


@shares_documentation
class ConvexRiskRegressor(ConvexRisk, RegressorMixin, TableReader):  # type: ignore[misc]
    """Linear or kernel regression for a convex loss of the residual, with a certificate.

    Minimises ``|w|^2 / 2 + C sum_i s_i phi(y_i - w.x_i - b)``. With a kernel, w.x becomes a
    function f of its space and ``|w|`` the norm of f.

    Parameters
    ----------
    loss : {"huber", "absolute", "squared"}, default="huber"
        "squared" is ridge regression, "absolute" the median, "huber" squared up to ``epsilon`` and
        absolute beyond (Bach's lecture notes, 2014, section 1).
    (common parameters)
    epsilon : float, default=1.35
        Residual beyond which Huber's loss is linear, in the units of y.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Linear models only.
    intercept_ : float
    (common attributes)
    duality_gap_ : float
        The objective is at most this far above its minimum.
    objective_ : float
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Examples
    --------
    >>> import numpy as np
    >>> from laconic.convex import ConvexRiskRegressor
    >>> draw = np.random.default_rng(0)
    >>> X = draw.normal(size=(200, 2))
    >>> y = X @ [1.0, -2.0] + 0.1 * draw.normal(size=200)
    >>> y[:2] = 1e6
    >>> ConvexRiskRegressor(loss="absolute", C=10.0).fit(X, y).coef_.round(2)
    array([ 0.99, -1.99])
    """

    _accepts = Accepts(categorical=False, missing=False, sparse=True)

    _parameter_constraints: dict[str, list[Any]] = {
        **ConvexRisk._parameter_constraints,
        "loss": [StrOptions(set(REGRESSION_LOSSES))],
        "epsilon": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        loss: str = "huber",
        C: float = 1.0,
        *,
        epsilon: float = 1.35,
        kernel: Any = None,
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        tol: float = 1e-8,
        max_iter: int = 100,
        warm_start: bool = False,
        cache_size: float = 500.0,
    ) -> None:
        super().__init__(
            loss, C, kernel, gamma, degree, coef0, fit_intercept, tol, max_iter, warm_start,
            cache_size,
        )  # fmt: skip
        self.epsilon = epsilon

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ConvexRiskRegressor:
        """Learn the coefficients from a table of numbers, dense or CSR."""
        self._refuse_warm_start()
        rows = read_numeric_training(self, X, y, sample_weight)
        parameters = {"epsilon": self.epsilon} if self.loss == "huber" else {}
        loss = get_loss(self.loss, task="regression", **parameters)
        # an intercept takes up any constant: a middling one keeps the scores small
        level = np.mean if self.loss == "squared" else np.median
        middle = float(level(rows.y)) if self.fit_intercept else 0.0
        if self.kernel is None:
            found = self._solve_linear(loss, rows, middle)
            self._forget_kernel()
            self.coef_: Floats = found.point[:-1]
        else:
            n_given = len(y) if hasattr(y, "__len__") else len(rows.y)
            targets = [rows.y - middle]
            found = self._fit_kernel(loss, rows.X, targets, rows.weight, rows.kept, n_given)[0]
            self._store_form((), np.array([found.point[-1] + middle]), "identity")
        self.intercept_ = float(found.point[-1]) + middle
        self.duality_gap_ = found.gap
        self.objective_ = found.value
        self.n_iter_ = found.n_iter
        return self

    def _solve_linear(self, loss: ScoreLoss, rows: NumericTraining, middle: float) -> Solution:
        if (rows.y == middle).all():  # the constant loses nothing, and no penalty is paid
            return Solution(np.zeros(rows.X.shape[1] + 1), 0.0, 0.0, 1, "gap")
        start = None
        if self.warm_start and hasattr(self, "coef_") and len(self.coef_) == rows.X.shape[1]:
            start = np.append(self.coef_, self.intercept_ - middle)
        return self._solve(ArraySource(rows.X, rows.y - middle, rows.weight), loss, start)

    def predict(self, X: Any) -> Floats:
        """The prediction for each row."""
        check_is_fitted(self)
        matrix = numbers_of(self._read_rows(X))
        if hasattr(self, "score_form_"):
            return self._kernel_scores(matrix)[:, 0]
        return np.asarray(matrix @ self.coef_) + self.intercept_
