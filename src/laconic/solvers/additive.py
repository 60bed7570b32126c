"""Block coordinate proximal Newton over terms, with a working set and a certified gap.

Each iteration builds the quadratic model of the loss at the current scores (a table of curvatures
for each term) and lowers it, with the penalties as they are, by exact minimisation over one term
at a time; a line search on the true criterion follows. Terms at zero stay out of the work until
their slope exceeds their group penalty. The truncated loss is not smooth: its kink is rounded over
a width that shrinks until the gap of the *true* criterion is small, so the certificate is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from laconic.criteria.additive import AdditivePenalty, balance, row_gap
from laconic.criteria.gray_zone import TruncatedLogistic
from laconic.solvers.additive_terms import TermSet
from laconic.solvers.solution import Solution, WhyStopped

Array = NDArray[np.float64]


_SETTLED = 0.05
"""A sweep that moves this share of what the first one moved ends the work on a quadratic model."""

OnCurvature = Callable[[Array, Array, NDArray[np.int64], NDArray[np.int64]], Array]


@dataclass(frozen=True)
class AdditiveProblem:
    """Terms, labels (class codes), row weights and penalties of one convex problem."""

    terms: TermSet
    y: NDArray[np.int64]
    weight: Array
    group: Array
    diagonal: Array
    loss: TruncatedLogistic = field(default_factory=TruncatedLogistic)
    n_classes: int = 2
    signs: NDArray[np.int64] | None = None

    @property
    def monotone(self) -> NDArray[np.int64]:
        """+1 (increasing), -1 (decreasing) or 0 for every term."""
        if self.signs is None:
            return np.zeros(len(self.group), dtype=np.int64)
        return self.signs

    def rises(self, t: int) -> Array:
        """Rows whose product with the coordinates of a monotone term must be >= 0."""
        knots = self.terms.terms[t].shape.basis[: self.terms.terms[t].n_knots]
        return np.asarray(self.monotone[t] * np.diff(knots, axis=0))

    @property
    def n_scores(self) -> int:
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def penalty(self) -> AdditivePenalty:
        return AdditivePenalty(self.terms.owner, self.group, self.diagonal)

    @property
    def kinked(self) -> bool:
        return max(self.loss.heights) > 0.0

    def one_hot(self) -> Array:
        hot = np.zeros((self.n_classes, len(self.y)))
        hot[self.y, np.arange(len(self.y))] = 1.0
        return hot


@dataclass(frozen=True)
class AdditivePoint:
    """Intercepts (scores,), coordinates (scores, coordinates) and the scores of the rows."""

    intercept: Array
    coordinates: Array
    scores: Array


def null_point(problem: AdditiveProblem) -> AdditivePoint:
    """All terms zero, intercept at the (clipped) log-odds of the class weights."""
    K = problem.n_scores
    share = np.bincount(problem.y, problem.weight, minlength=problem.n_classes)
    share = np.maximum(share / share.sum(), 1e-12)
    if K == 1:
        low, high = max(problem.loss.p_min, 1e-12), min(problem.loss.p_max, 1 - 1e-12)
        p = min(max(float(share[1]), low), high)
        b = np.array([np.log(p) - np.log1p(-p)])
    else:
        b = np.log(share) - np.log(share).mean()
    scores = np.repeat(b[:, None], len(problem.y), axis=1)
    return AdditivePoint(b, np.zeros((K, problem.terms.n_coordinates)), scores)


class _State:
    """Slopes and curvatures of the rows at the current scores."""

    def __init__(self, problem: AdditiveProblem, blur: float) -> None:
        self.problem = problem
        self.blur = blur
        shape = (problem.n_scores, len(problem.y))
        self.slopes, self.curves = np.empty(shape), np.empty(shape)
        low, high = problem.loss.positions
        heights, floors = problem.loss.heights, problem.loss.floors
        finite = [-low if heights[0] > 0 else 0.0, high if heights[1] > 0 else 0.0]
        self.zone = np.array([finite[0], heights[0], floors[0], finite[1], heights[1], floors[1]])

    def loss(self, scores: Array) -> float:
        from laconic.solvers.hot_additive_losses import binary_slopes, multinomial_slopes

        p = self.problem
        if p.n_scores == 1:
            return float(
                binary_slopes(
                    scores[0], p.y, p.weight, self.zone, self.blur, self.slopes[0], self.curves[0]
                )
            )
        return float(multinomial_slopes(scores, p.y, p.weight, self.slopes, self.curves))


def loss_slopes(problem: AdditiveProblem, scores: Array) -> tuple[Array, Array]:
    """Slopes and curvatures of the weighted loss at the scores."""
    state = _State(problem, 1e-9)
    state.loss(scores)
    return state.slopes, state.curves


def slopes_by_term(terms: TermSet, values: Array, wanted: NDArray[np.int64] | None = None) -> Array:
    """sum_i values[k, i] z_i for every coordinate (of the wanted terms)."""
    from laconic.solvers.hot_additive_rows import coordinate_sums

    rows, packed = terms.packed
    out = np.zeros((len(values), terms.n_coordinates))
    coordinate_sums(
        rows, packed, np.arange(len(terms.terms)) if wanted is None else wanted, values, out
    )
    return out


def largest_group_penalty(problem: AdditiveProblem, weights: Array) -> float:
    """Least lambda for which every term is zero when group = lambda * weights."""
    slopes = slopes_by_term(problem.terms, loss_slopes(problem, null_point(problem).scores)[0])
    norms = problem.penalty.norms(slopes)
    some = problem.terms.rank > 0
    return float((norms[some] / weights[some]).max(initial=0.0))


def certified_gap(
    problem: AdditiveProblem, point: AdditivePoint, slopes: Array, theta: Array | None = None
) -> float:
    """Upper bound on the distance of the criterion from its minimum (see criteria.additive).

    ``slopes`` are c_i (p_i - y_i) for the dual probabilities p; ``theta`` their sums by term.
    """
    weight, hot = problem.weight, problem.one_hot()
    safe = np.where(weight > 0, weight, 1.0)
    if problem.n_scores == 1:
        p1 = np.clip(hot[1] + slopes[0] / safe, 0.0, 1.0)
        p = np.stack([1.0 - p1, p1])
        hot_scores = hot[1:]
    else:
        p = np.clip(hot + slopes / safe, 0.0, 1.0)
        hot_scores = hot
    if theta is None:
        theta = slopes_by_term(problem.terms, slopes)
    theta = -theta
    eps, q = balance(p, hot, weight)
    if eps > 0.0:
        p = (1.0 - eps) * p + eps * q[:, None]
        share = q[1:] if problem.n_scores == 1 else q
        drift = slopes_by_term(problem.terms, weight * (hot_scores - share[:, None]))
        theta = (1.0 - eps) * theta + eps * drift
    penalty = problem.penalty
    rows = row_gap(point.scores, p, problem.y, weight, problem.loss)
    g = point.coordinates
    owner = problem.terms.owner
    T = len(problem.group)
    inner = np.bincount(owner, (theta * g).sum(axis=0), minlength=T)
    bends = np.bincount(owner, 0.5 * (g**2).sum(axis=0) * problem.diagonal, minlength=T)
    lifted = _lifted(problem, g, theta)
    parts = problem.group * penalty.norms(g) + bends + penalty.conjugate(lifted) - inner
    return rows + float(np.maximum(parts, 0.0).sum())


def _lifted(problem: AdditiveProblem, g: Array, theta: Array) -> Array:
    """th + R'nu with nu >= 0 for the monotone terms R g >= 0.

    On the cone th'g <= (th + R'nu)'g, so the conjugate without constraint at any such point
    bounds the one with it; nu is the multiplier that optimality asks for.
    """
    if not problem.monotone.any():
        return theta
    out = theta.copy()
    for t in np.flatnonzero(problem.monotone):
        part = problem.terms.owner == t
        rises, own = problem.rises(int(t)), g[0, part]
        if not len(rises) or not part.any():
            continue
        size = float(np.sqrt(own @ own))
        wanted = problem.diagonal[part] * own
        if size > 0:
            wanted = wanted + problem.group[t] * own / size
        out[0, part] += rises.T @ nnls(rises.T, wanted - theta[0, part])[0]
    return out


def solve_additive(
    problem: AdditiveProblem,
    start: AdditivePoint | None = None,
    *,
    tol: float = 1e-6,
    max_iter: int = 100,
    on_curvature: OnCurvature | None = None,
    polish: bool = False,
) -> Solution:
    """Minimise the criterion until gap <= tol * value.

    ``on_curvature(coordinates, H, H_start, work)`` may return new diagonal penalties at every
    iteration (marginal likelihood). The problem then changes on the way: the run ends when the
    value has settled to ``tol``, certifies nothing (gap = inf) and returns the last problem in
    ``details["problem"]``. ``polish`` adds a few exact steps once the gap is reached.
    """
    point = start or null_point(problem)
    blurs = [0.3, 0.03, 0.003, 3e-4, 3e-5] if problem.kinked else [0.0]
    solution = None
    n_iter = 0
    for blur in blurs:
        run = _Descent(problem, point, blur)
        solution = run.until(tol, max_iter - n_iter, on_curvature, polish)
        n_iter += solution.n_iter
        point, problem = solution.point, solution.details["problem"]
        if solution.why_stopped == "gap" or n_iter >= max_iter:
            break
    assert solution is not None
    return replace(solution, n_iter=n_iter)


class _Descent:
    """One run at a fixed rounding of the kink."""

    def __init__(self, problem: AdditiveProblem, start: AdditivePoint, blur: float) -> None:
        self.problem = problem
        self.state = _State(problem, blur)
        self.b = start.intercept.copy()
        self.g = start.coordinates.copy()
        self.scores = start.scores.copy()
        self.shift = np.zeros(len(problem.group))
        self.value = self.state.loss(self.scores) + problem.penalty.value(self.g)

    @property
    def point(self) -> AdditivePoint:
        return AdditivePoint(self.b, self.g, self.scores)

    def until(
        self,
        tol: float,
        max_iter: int,
        on_curvature: OnCurvature | None,
        polish: bool,
    ) -> Solution:
        why: WhyStopped = "max_iter"
        gap = np.inf
        work = self._first_work()
        # amounts that still move, or a loose target, do not deserve an exact Newton step
        n_conjugate = 6 if on_curvature is not None or tol > 1e-4 else 30
        small = 0
        n_iter = 0
        while n_iter < max_iter:
            n_iter += 1
            before = self.value
            decrease = self._step(work, on_curvature, n_conjugate)
            if on_curvature is not None:
                small = small + 1 if abs(before - self.value) <= tol * abs(self.value) else 0
                work = self._alive(work) if n_iter >= 4 else work
                if n_iter < max_iter and small < 2:
                    continue
                why = "gap"
                break
            if decrease > 0.3 * tol * abs(self.value) and n_iter % 8:
                continue
            theta = slopes_by_term(self.problem.terms, self.state.slopes)
            gap = certified_gap(self.problem, self.point, self.state.slopes, theta)
            if gap <= tol * abs(self.value):
                why = "gap"
                gap = self._polished(work) if polish else gap
                break
            grown = self._grown(work, theta)
            small = (
                small + 1 if len(grown) == len(work) and decrease <= 1e-13 * abs(self.value) else 0
            )
            work = grown
            if small >= 3:
                why = "stalled"
                break
        value = self._true_value()
        details = MappingProxyType({"problem": self.problem})
        return Solution(self.point, value, max(gap, 0.0), n_iter, why, details)

    def _polished(self, work: NDArray[np.int64]) -> float:
        """A few exact Newton steps more, for results that agree to many digits; returns the gap."""
        for _ in range(4):
            if self._step(work, None, 200) <= 1e-15 * abs(self.value):
                break
        return certified_gap(self.problem, self.point, self.state.slopes)

    def _true_value(self) -> float:
        if not self.problem.kinked:
            return self.value
        sign = np.where(self.problem.y > 0, 1.0, -1.0)
        rows = self.problem.loss.value(self.scores[0], sign)
        return float(self.problem.weight @ rows) + self.problem.penalty.value(self.g)

    def _first_work(self) -> NDArray[np.int64]:
        """Terms that are not zero, or that would leave zero at the start."""
        theta = slopes_by_term(self.problem.terms, self.state.slopes)
        return self._grown(np.zeros(0, dtype=np.int64), theta)

    def _alive(self, work: NDArray[np.int64]) -> NDArray[np.int64]:
        """Terms that the evidence has not switched off; the others stay at their tiny values."""
        return work[self.problem.penalty.norms(self.g)[work] > 1e-3]

    def _grown(self, work: NDArray[np.int64], theta: Array) -> NDArray[np.int64]:
        penalty = self.problem.penalty
        on = penalty.norms(self.g) > 0
        over = penalty.norms(theta) > self.problem.group
        on[work] = on[work] | over[work]
        on |= over | (self.problem.monotone != 0)
        return np.flatnonzero(on & (self.problem.terms.rank > 0))

    def _step(
        self,
        work: NDArray[np.int64],
        on_curvature: OnCurvature | None,
        n_conjugate: int,
    ) -> float:
        from laconic.solvers.hot_additive import conjugate_steps, curvature_blocks, sweeps
        from laconic.solvers.hot_additive_losses import curved

        K = self.problem.n_scores
        rows, packed = self.problem.terms.packed
        rank = packed.rank[work]
        H_start = np.concatenate([[0], np.cumsum(K * rank**2)]).astype(np.int64)
        H = np.empty(H_start[-1])
        pad = int((packed.size[work] + packed.width[work] + 2).max(initial=2))
        curvature_blocks(rows, packed, work, self.state.curves, H, H_start, np.empty(pad * pad))
        if on_curvature is not None:
            diagonal = on_curvature(self.g, H, H_start, work)
            self.problem = replace(self.problem, diagonal=diagonal)
            self.state.problem = self.problem
            self.value = self.state.loss(self.scores) + self.problem.penalty.value(self.g)
        g, b = self.g.copy(), self.b.copy()
        change = np.zeros_like(self.scores)
        slope = self.state.slopes
        residual = slope.copy()
        penalties = (self.problem.diagonal, self.problem.group, self.problem.monotone)
        model = (self.state.curves, residual, change, b)
        done = sweeps(
            rows, packed, work, H, H_start, *penalties, g, self.shift, *model, 3, _SETTLED
        )
        if (done < 0 or K > 1) and n_conjugate:
            if K > 1:
                # the sweeps lowered an upper bound of the model; from here on it is the model
                curved(self.state.curves, change, residual)
                residual += slope
            free = (self.shift[work] < np.inf) & (self.problem.monotone[work] == 0)
            on = work[free]
            at = np.searchsorted(work, on)
            conjugate_steps(
                rows, packed, on, H, H_start[at], self.problem.diagonal, g, self.shift, *model,
                n_conjugate, 1e-2 if n_conjugate <= 30 else 1e-16,
            )  # fmt: skip
            sweeps(rows, packed, work, H, H_start, *penalties, g, self.shift, *model, 1, _SETTLED)
        return self._line_search(g - self.g, b - self.b, change, slope)

    def _line_search(self, dg: Array, db: Array, change: Array, slope: Array) -> float:
        penalty = self.problem.penalty
        old = penalty.value(self.g)
        promised = float((slope * change).sum()) + penalty.value(self.g + dg) - old
        step = 1.0
        for _ in range(40):
            scores = self.scores + step * change
            g = self.g + step * dg
            value = self.state.loss(scores) + penalty.value(g)
            if value <= self.value + 1e-4 * step * min(promised, 0.0) or step < 1e-9:
                break
            step *= 0.5
        if value > self.value:
            self.value = self.state.loss(self.scores) + old
            return 0.0
        decrease = self.value - value
        self.g, self.b, self.scores, self.value = g, self.b + step * db, scores, value
        return decrease
