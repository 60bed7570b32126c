"""PairwiseRanker: linear scores by Newton's method on a loss of the ordered pairs, never built.

    P(w) = |w|^2 / 2 + C R(X w),   R(f) = sum over y_i > y_j of s_i s_j phi(f_i - f_j)

The dual variables a_ij = -phi'(f_i - f_j) give w_a = -C X' R'(f), hence w - w_a = P'(w) and

    gap = C sum [phi(t_ij) + phi*(-a_ij) + a_ij t_ij] + |P'(w)|^2 / 2  >=  P(w) - P*.

For a smooth loss the first sum is zero. The hinge is rounded over a band that shrinks until the
first sum, which is computed for the hinge itself, is small enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.utils import Tags, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from laconic._typing import Floats
from laconic.convex.pair_sums import (
    HingePairs,
    LogisticPairs,
    PairLoss,
    Pairs,
    SortedPairs,
    SquaredHingePairs,
)
from laconic.convex.risk import numeric_target, read_numeric_training
from laconic.convex.tuning import BAND_SHARE, BAND_SHRINKS, IDLE_STEPS, MOST_PAIR_COLUMNS
from laconic.core.contract import (
    Accepts,
    Interval,
    StrOptions,
    TableReader,
    fit_context,
    numbers_of,
)
from laconic.core.losses import Solution, WhyStopped
from laconic.data.source import ArraySource, Block

PAIR_LOSSES = {
    "squared_hinge": SquaredHingePairs,
    "hinge": HingePairs,
    "logistic": LogisticPairs,
}


@dataclass(frozen=True)
class _Point:
    """A coefficient vector with all that Newton's step and the certificate need."""

    w: Floats
    scores: Floats
    at: SortedPairs
    gradient: Floats
    misfit: float
    value: float

    @property
    def gap(self) -> float:
        return self.misfit + float(self.gradient @ self.gradient) / 2.0


@dataclass(frozen=True)
class _Problem:
    source: ArraySource
    pairs: Pairs
    C: float

    def scores(self, w: Floats) -> Floats:
        return np.concatenate(list(self.source.map(lambda block: block.X @ w)))

    def transpose(self, values: Floats) -> Floats:
        def part(block: Block) -> Floats:
            return np.asarray(block.X.T @ values[block.rows])

        return np.asarray(self.source.sum(part))

    def look(self, loss: PairLoss, w: Floats, scores: Floats) -> _Point:
        at = self.pairs.sort(scores)
        slope = loss.slope(at)
        gradient = w + self.C * self.transpose(slope)
        value = float(w @ w) / 2.0 + self.C * loss.value(at)
        return _Point(w, scores, at, gradient, self.C * loss.misfit(at, slope), value)


@np.errstate(over="ignore", invalid="ignore")  # what overflows is a step too far, and ends the run
def rank_pairs(
    X: Any,
    pairs: Pairs,
    loss: str,
    C: float,
    *,
    tol: float = 1e-6,
    max_iter: int = 100,
) -> Solution:
    """Coefficients of a linear score that ranks, with ``gap <= tol * value``.

    Costs O(n d^2 + n d log L) per iteration for n rows, d columns and L distinct labels.
    """
    problem = _Problem(ArraySource(X), pairs, C)
    phi: PairLoss = PAIR_LOSSES[loss]()
    w = np.zeros(X.shape[1])
    point = problem.look(phi, w, problem.scores(w))
    best, n_iter, idle = point, 0, 0
    why: WhyStopped = "gap"
    while best.gap > tol * best.value:
        lost = not np.isfinite(point.gradient).all()  # a step beyond all numbers
        if n_iter >= max_iter or idle >= IDLE_STEPS or lost:
            why = "max_iter" if n_iter >= max_iter else "stalled"
            break
        if isinstance(phi, HingePairs) and point.gap - point.misfit < BAND_SHARE * point.misfit:
            phi = HingePairs(phi.band / BAND_SHRINKS)
            point = problem.look(phi, point.w, point.scores)
        point = _newton_step(problem, phi, point)
        n_iter += 1
        idle = 0 if point.gap < best.gap else idle + 1
        best = point if point.gap < best.gap else best
    return Solution(best.w, best.value, best.gap, n_iter, why)


def _newton_step(problem: _Problem, phi: PairLoss, point: _Point) -> _Point:
    step = _direction(problem, phi, point)
    along = problem.scores(step)
    length = _line_search(problem, phi, point, step, along)
    # scores are recomputed from w, not updated, so that rounding does not pile up
    w = point.w + length * step
    return problem.look(phi, w, problem.scores(w))


def _direction(problem: _Problem, phi: PairLoss, point: _Point) -> Floats:
    X = problem.source.X
    d = X.shape[1]
    if issparse(X) or d > MOST_PAIR_COLUMNS:
        return _direction_by_cg(problem, phi, point)
    H = np.empty((d, d))
    for first in range(0, d, 8):
        # a few columns at a time: memory stays O(n)
        block = slice(first, min(first + 8, d))
        bent = phi.laplacian(point.at, np.ascontiguousarray(X[:, block]))
        H[:, block] = problem.C * problem.transpose(bent)
    H = (H + H.T) / 2.0
    H[np.diag_indices(d)] += 1.0
    try:
        return np.asarray(cho_solve(cho_factor(H), -point.gradient))
    except LinAlgError:
        return _scaled_solve(H, -point.gradient)


def _scaled_solve(H: Floats, right: Floats) -> Floats:
    """Where rounding has hidden the identity beside columns of very different sizes."""
    unit = 1.0 / np.sqrt(np.maximum(np.diagonal(H), 1.0))  # H is the identity and more
    values, vectors = np.linalg.eigh(unit[:, None] * H * unit)
    values = np.maximum(values, len(H) * np.finfo(float).eps * values[-1])
    return np.asarray(unit * (vectors @ ((vectors.T @ (unit * right)) / values)))


def _direction_by_cg(problem: _Problem, phi: PairLoss, point: _Point) -> Floats:
    d = point.w.size

    def times(v: Floats) -> Floats:
        bent = phi.laplacian(point.at, problem.scores(v.ravel())[:, None])
        return v.ravel() + problem.C * problem.transpose(bent[:, 0])

    step, _ = cg(LinearOperator((d, d), matvec=times), -point.gradient, rtol=1e-2, maxiter=60)
    return np.asarray(step)


def _line_search(
    problem: _Problem, phi: PairLoss, point: _Point, step: Floats, along: Floats
) -> float:
    """A length where the slope along the step has shrunk; values are not compared.

    The objective is convex, so the slope along the step increases with the length: a root is
    bracketed and approached by the Illinois variant of false position.
    """

    def slope(length: float) -> float:
        at = problem.pairs.sort(point.scores + length * along)
        pull = float(phi.slope(at) @ along)
        return float(point.w @ step) + length * float(step @ step) + problem.C * pull

    start = float(point.gradient @ step)
    low, at_low, high, at_high = 0.0, start, 1.0, slope(1.0)
    if at_high <= 0.1 * abs(start):
        return high
    side = 0
    for _ in range(20):
        length = low - at_low * (high - low) / (at_high - at_low)
        found = slope(length)
        if abs(found) <= 0.1 * abs(start):
            return length
        if found < 0:
            low, at_low = length, found
            at_high /= 2.0 if side == -1 else 1.0
            side = -1
        else:
            high, at_high = length, found
            at_low /= 2.0 if side == 1 else 1.0
            side = 1
    return low or length


def _refuse_overflow(matrix: Any, weight: Floats, C: float) -> None:
    """Pairs weigh the product of their rows' weights: sums of squares must stay numbers."""
    size = float(abs(matrix).max()) if matrix.shape[0] * matrix.shape[1] else 0.0
    if math.sqrt(C) * float(weight.sum()) * size > 1e70:
        raise ValueError(
            f"sample_weight adds up to {float(weight.sum()):.3g} and X holds values up to "
            f"{size:.3g}, whose products overflow; rescale X, for instance with StandardScaler, "
            "and divide sample_weight by its mean."
        )


class PairwiseRanker(TableReader):
    """Linear scores that put rows in the order of y, learned from all pairs of rows.

    Minimises, over coefficients w and without intercept::

        |w|^2 / 2 + C * sum over pairs with y_i > y_j of s_i s_j phi(w.x_i - w.x_j)

    over the pairs of one group. The pairs are never built: one evaluation takes O(n log n) time and
    O(n) memory, also for a real-valued y and also for the logistic loss.

    Parameters
    ----------
    loss : {"squared_hinge", "hinge", "logistic"}, default="squared_hinge"
        phi. All three bound the number of pairs in the wrong order.
    C : float, default=1.0
        Weight of the sum over pairs. There are up to n (n - 1) / 2 of them: scale C down with n if
        the penalty is to keep its strength.
    tol : float, default=1e-6
        The optimiser stops when the duality gap is at most ``tol`` times the objective.
    max_iter : int, default=100
        Newton iterations allowed.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    duality_gap_ : float
        The objective is at most this far above its minimum.
    objective_ : float
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Examples
    --------
    >>> import numpy as np
    >>> from laconic.convex import PairwiseRanker
    >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [4.0, 0.0], [7.0, 1.0]])
    >>> ranker = PairwiseRanker().fit(X, [1, 2, 3, 4])
    >>> ranker.predict(X).argsort()
    array([0, 1, 2, 3])
    >>> ranker.score(X, [1, 2, 3, 4])
    1.0
    """

    _accepts = Accepts(categorical=False, missing=False, sparse=True)

    _parameter_constraints = {
        "loss": [StrOptions(set(PAIR_LOSSES))],
        "C": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self, loss: str = "squared_hinge", C: float = 1.0, *, tol: float = 1e-6, max_iter: int = 100
    ) -> None:
        self.loss = loss
        self.C = C
        self.tol = tol
        self.max_iter = max_iter

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # scikit-learn has no kind of its own for it; gradient boosting libraries say "ranker" too
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> PairwiseRanker:
        """Learn the scores.

        Parameters
        ----------
        X : table of numbers, dense or CSR
        y : array-like of shape (n_rows,)
            A larger value is to get a larger score.
        sample_weight : array-like of shape (n_rows,), default=None
            A pair counts with the product of its rows' weights; a weight is a repetition.
        groups : array-like of shape (n_rows,), default=None
            Only rows of one group (one query) are compared with each other.
        """
        rows = read_numeric_training(self, X, y, sample_weight)
        if groups is not None:
            check_consistent_length(y, groups)
            groups = column_or_1d(groups)[rows.kept]
        pairs = Pairs.of(rows.y, rows.weight, groups)
        if pairs.levels.max() < 2:
            raise ValueError(
                "y holds one class of values only within each group, so there is no pair to learn "
                "from; give rows with different values of y."
            )
        matrix = rows.X
        if not issparse(matrix):
            # only differences of rows count, and they are more exact between centred rows
            constant = matrix.min(axis=0) == matrix.max(axis=0)
            matrix = matrix - np.average(matrix, axis=0, weights=rows.weight)
            matrix[:, constant] = 0.0  # not the rounding of its mean
        _refuse_overflow(matrix, rows.weight, self.C)
        found = rank_pairs(
            matrix, pairs, self.loss, self.C, tol=self.tol, max_iter=self.max_iter
        ).warn_if_short(type(self).__name__, "raise max_iter or tol, or scale X")
        self.coef_: NDArray[np.float64] = found.point
        self.duality_gap_ = found.gap
        self.objective_ = found.value
        self.n_iter_ = found.n_iter
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Scores: only their order, and within one group, means something."""
        check_is_fitted(self)
        return np.asarray(numbers_of(self._read_rows(X)) @ self.coef_)

    def score(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> float:
        """Share of the pairs in the right order (ties count half): the AUC when y is binary."""
        scores = self.predict(X)
        target = numeric_target(y)
        weight = self._read_weight(sample_weight, len(target))
        return Pairs.of(target, weight, groups).accuracy(scores)
