"""Quadratic model of an additive loss at the current scores, on the rows that curve.

Newton's direction needs the slopes of all rows, once, and products with the curvatures again and
again. Rows decided with near certainty (and rows held out) hardly curve: without those that
together carry at most a small share of the curvature the products cost a fraction, and the
direction stays one of descent, since the gradient is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky

from laconic._typing import Floats, Ints
from laconic.additive.criterion import (
    AdditivePoint,
    AdditiveProblem,
    LossState,
    certified_gap,
    null_point,
    slopes_by_term,
)
from laconic.additive.terms import TermSet
from laconic.core.solution import Solution, WhyStopped

if TYPE_CHECKING:
    from laconic.additive._numba_rows import Rows, Terms

T = TypeVar("T", bound=np.generic)

_FEW_ROWS = 1_000
_MOST_KEPT = 0.65
"""Copying the rows that curve pays, in time and memory, when they are at most this share."""


@dataclass(frozen=True)
class QuadraticModel:
    """Gradient at the start, curvatures of ``rows``, and what the moves have changed so far.

    ``theta`` and ``slope`` are exact sums of the slopes of all rows. ``residual``, the change of
    the gradient of the rows, and ``change``, that of their scores, start at zero.
    """

    rows: Rows
    terms: Terms
    theta: Floats
    slope: Floats
    curves: Floats
    residual: Floats
    change: Floats

    @classmethod
    def at(
        cls,
        terms: TermSet,
        work: Ints,
        theta: Floats,
        slopes: Floats,
        curves: Floats,
        negligible: float,
    ) -> QuadraticModel:
        """The model of the terms in ``work``, without rows below ``negligible`` times the mean."""
        rows, packed = terms.packed
        size = curves.sum(axis=0) if len(curves) > 1 else curves[0]
        kept = np.flatnonzero(size > negligible * float(size.mean()))
        if len(size) >= _FEW_ROWS and len(kept) <= _MOST_KEPT * len(size):
            rows, packed = compact(rows, packed, work, kept)
            curves = np.ascontiguousarray(curves[:, kept])
        nothing = np.zeros_like(curves)
        return cls(rows, packed, theta, slopes.sum(axis=1), curves, nothing, nothing.copy())

    @property
    def arrays(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """In the order of the compiled descent."""
        return self.theta, self.slope, self.curves, self.residual, self.change


def compact(rows: Rows, terms: Terms, work: Ints, kept: Ints) -> tuple[Rows, Terms]:
    """The kept rows, of the columns that the terms in ``work`` read, and the terms on them."""
    from laconic.additive._numba_rows import Rows

    first, second = terms.first[work], terms.second[work]
    pairs = second >= 0
    alone = np.unique(first[~pairs])
    coarse = np.unique(np.concatenate([first[pairs], second[pairs]]))
    place = np.full(len(rows.coarse_row), -1, dtype=np.int64)
    place[alone] = np.arange(len(alone))
    also = np.setdiff1d(coarse, alone)
    place[also] = len(alone) + np.arange(len(also))
    n_used = len(alone) + len(also)
    between = alone[rows.fraction_row[alone] >= 0]
    ways = coarse[rows.coarse_way[coarse] > 0]
    few = Rows(
        _taken(rows.slots, alone, kept),
        _taken(rows.fraction, rows.fraction_row[between], kept),
        _numbered(n_used, place[between], -1),
        _numbered(n_used, place[coarse], -1),
        _taken(rows.coarse_slots, rows.coarse_row[coarse], kept),
        _numbered(n_used, place[ways], 0),
        _taken(rows.coarse_fraction, np.append(0, rows.coarse_way[ways]), kept),
        _marked(n_used, place[alone[rows.yes_no[alone]]]),
        _marked(n_used, place[coarse[rows.coarse_yes_no[coarse]]]),
    )
    # terms outside ``work`` may point nowhere: they are not read
    return few, terms._replace(
        first=place[terms.first], second=np.where(terms.second >= 0, place[terms.second], -1)
    )


def _numbered(size: int, places: Ints, none: int) -> Ints:
    """``none`` everywhere, and the numbers after it at the places."""
    out = np.full(size, none, dtype=np.int64)
    out[places] = none + 1 + np.arange(len(places))
    return out


def _marked(size: int, places: Ints) -> NDArray[np.bool_]:
    out = np.zeros(size, dtype=bool)
    out[places] = True
    return out


def _taken(store: NDArray[T], which: Ints, kept: Ints) -> NDArray[T]:
    from laconic.additive._numba_rows import take_rows

    out = np.empty((len(which), len(kept)), dtype=store.dtype)
    take_rows(store, which, kept, out)
    return out


# Preconditioner of the conjugate steps: exact where rows tell much, diagonal elsewhere.
#
# Coordinates have unit variance, so the curvature of one is about the total h of the rows. Where
# its penalty D_j is large beside h, h + D_j is nearly all there is. What makes conjugate gradients
# slow are the few coordinates that the rows tell more about than the penalty, in columns that
# carry the same information: those are solved together, with the intercept, by one dense factor.
# Some thousand rows, drawn by their curvature, are enough for it: nothing but the number of steps
# depends on it. Where few rows carry most of the curvature (a rounded kink), the first sentence
# fails: ``uneven`` solves as many coordinates together as it may.


_TOLD = 3.0
"""Coordinates are solved together where the rows tell so many times more than the penalty."""

_MOST_JOINT, _SOME_JOINT, _JOINT_PER_TERM = 300, 40, 2
"""How many at most; with few terms, whose passes over the rows are cheap, a few for each."""

_ENOUGH_ROWS = 4_096
_RIDGE = 1e-8


@dataclass(frozen=True)
class Preconditioner:
    """``factors``, (scores, joint + 1, joint + 1) and upper, end with the intercept; ``scale`` is
    the diagonal of all coordinates, (scores, coordinates)."""

    joint: Ints
    factors: Floats
    scale: Floats

    @classmethod
    def at(
        cls,
        terms: TermSet,
        model: QuadraticModel,
        work: Ints,
        penalty: Floats,
        uneven: bool = False,
    ) -> Preconditioner:
        """For the terms in ``work``, with the diagonal ``penalty`` of all coordinates."""
        total = np.maximum(model.curves.sum(axis=1), 1e-300)
        inside = np.zeros(len(terms.terms), dtype=bool)
        inside[work] = True
        most = np.inf if uneven else total.max() / _TOLD
        told = np.flatnonzero(inside[terms.owner] & (penalty < most))
        some = _MOST_JOINT if uneven else _SOME_JOINT + _JOINT_PER_TERM * len(work)
        freest = np.argsort(penalty[told], kind="stable")[: min(some, _MOST_JOINT)]
        told = np.sort(told[freest])
        gram = _joint_curvature(terms, model, work, told)
        steep = np.append(penalty[told], 0.0) + _RIDGE * total[:, None]
        places = np.arange(len(told) + 1)
        gram[:, places, places] += steep
        factors = np.stack([cholesky(one, check_finite=False) for one in gram])
        return cls(told, factors, total[:, None] + penalty)

    @property
    def arrays(self) -> tuple[Ints, Floats, Floats]:
        """In the order of the compiled descent."""
        return self.joint, self.factors, self.scale


def _joint_curvature(terms: TermSet, model: QuadraticModel, work: Ints, told: Ints) -> Floats:
    """Z h Z' of the told coordinates and the intercept for every score, from some of the rows."""
    from laconic.additive._numba_rows import coordinate_rows

    rows, packed, curves = model.rows, model.terms, model.curves
    if curves.shape[1] > _ENOUGH_ROWS:
        up_to = np.cumsum(curves.sum(axis=0))
        steps = (np.arange(_ENOUGH_ROWS) + 0.5) * (up_to[-1] / _ENOUGH_ROWS)
        some = np.searchsorted(up_to, steps).astype(np.int64)
        rows, packed = compact(rows, packed, work, some)
        taken = curves[:, some]
        curves = taken / taken.sum(axis=0) * (up_to[-1] / _ENOUGH_ROWS)
    lines = np.ones((len(told) + 1, curves.shape[1]))
    lines[:-1] = 0.0
    coordinate_rows(rows, packed, terms.owner, told, lines)
    out = np.empty((len(curves), len(lines), len(lines)))
    for k, curve in enumerate(np.sqrt(np.maximum(curves, 0.0))):
        weighted = lines * curve
        np.matmul(weighted, weighted.T, out=out[k])
    return out


# Block coordinate proximal Newton over terms, with a working set and a certified gap.
#
# Each iteration builds the quadratic model of the loss at the current scores (a table of curvatures
# for each term) and lowers it, with the penalties as they are, by exact minimisation over one term
# at a time; a line search on the true criterion follows. Terms at zero stay out of the work until
# their slope exceeds their group penalty. The truncated loss is not smooth: its kink is rounded
# over a width that shrinks until the gap of the *true* criterion is small, so the certificate is
# exact.


_SETTLED = 0.05
"""A sweep that moves this share of what the first one moved ends the work on a quadratic model."""

_LEAST_CONJUGATE = 12
"""Conjugate steps when there is nothing else; as many again after every four Newton steps, where
fewer would need ever more of those."""

_NEGLIGIBLE, _NEGLIGIBLE_LOOSELY = 0.01, 0.1
"""Rows whose curvature is below this share of the mean stay out of the products with it."""

_REFRESH = 4
"""Steps after which a preconditioner is made again."""

OnCurvature = Callable[[Floats, Floats, NDArray[np.int64], NDArray[np.int64]], Floats]


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
        self.state = LossState(problem, blur)
        self.b = start.intercept.copy()
        self.g = start.coordinates.copy()
        self.scores = start.scores.copy()
        self.shift = np.zeros(len(problem.group))
        self.value = self.state.loss(self.scores) + problem.penalty.value(self.g)
        self.preconditioner: Preconditioner | None = None
        self.theta: Floats | None = None

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
        n_conjugate = 3 if on_curvature is not None else 6 if tol > 1e-4 else 30
        # a gap costs little beside a Newton step, which leaves far less than it has gained
        worth = 3.0 if tol > 1e-4 else 0.3
        small = 0
        n_iter = 0
        while n_iter < max_iter:
            n_iter += 1
            before = self.value
            if n_iter % _REFRESH == 0:
                self.preconditioner = None
            least = _LEAST_CONJUGATE * (1 + n_iter // 4)
            decrease = self._step(work, on_curvature, n_conjugate, least)
            if on_curvature is not None:
                small = small + 1 if abs(before - self.value) <= tol * abs(self.value) else 0
                work = self._alive(work) if n_iter >= 4 else work
                if n_iter < max_iter and small < 2:
                    continue
                why = "gap"
                break
            if decrease > worth * tol * abs(self.value) and n_iter % 8:
                continue
            self.theta = theta = slopes_by_term(self.problem.terms, self.state.slopes)
            gap = certified_gap(self.problem, self.point, self.state.slopes, theta)
            if gap <= tol * abs(self.value):
                why = "gap"
                gap = self._polished(work) if polish else gap
                break
            grown = self._grown(work, theta)
            small = (
                small + 1 if len(grown) == len(work) and decrease <= 1e-13 * abs(self.value) else 0
            )
            if len(grown) != len(work):
                self.preconditioner = None
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
            self.preconditioner = None
            self._step(work, None, 200, 200)
        return certified_gap(self.problem, self.point, self.state.slopes)

    def _true_value(self) -> float:
        if not self.problem.kinked:
            return self.value
        sign = np.where(self.problem.y > 0, 1.0, -1.0)
        rows = self.problem.loss.value(self.scores[0], sign)
        return float(self.problem.weight @ rows) + self.problem.penalty.value(self.g)

    def _first_work(self) -> NDArray[np.int64]:
        """Terms that are not zero, or that would leave zero at the start."""
        self.theta = slopes_by_term(self.problem.terms, self.state.slopes)
        return self._grown(np.zeros(0, dtype=np.int64), self.theta)

    def _alive(self, work: NDArray[np.int64]) -> NDArray[np.int64]:
        """Terms that the evidence has not switched off; the others stay at their tiny values."""
        alive = work[self.problem.penalty.norms(self.g)[work] > 1e-3]
        if len(alive) < len(work):
            self.preconditioner = None
        return alive

    def _grown(self, work: NDArray[np.int64], theta: Floats) -> NDArray[np.int64]:
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
        least: int,
    ) -> float:
        held = self.problem.group[work].any() or self.problem.monotone[work].any()
        # amounts that follow the coordinates need every term moved all the way: term by term
        jointly = on_curvature is None and not held
        model = self._model(work, exact=n_conjugate > 30, loose=n_conjugate <= 6)
        g, b = self.g.copy(), self.b.copy()
        if jointly:
            self.shift[work] = 0.0
            self._conjugate(work, g, b, model, max(n_conjugate, least), n_conjugate > 30)
            return self._line_search(work, g - self.g, b - self.b)
        blocks = self._curvature_blocks(work, model)
        if on_curvature is not None:
            diagonal = on_curvature(self.g, *blocks, work)
            self.problem = replace(self.problem, diagonal=diagonal)
            self.state.problem = self.problem
            self.value = self.state.loss(self.scores) + self.problem.penalty.value(self.g)
        self._term_by_term(work, blocks, g, b, model, n_conjugate)
        decrease = self._line_search(work, g - self.g, b - self.b)
        if decrease <= 0.0 and n_conjugate and on_curvature is None:
            # near zero a group penalty bends more than its Hessian says: term by term is safe
            model, g, b = self._model(work, exact=False, loose=False), self.g.copy(), self.b.copy()
            self._term_by_term(work, blocks, g, b, model, 0)
            decrease = self._line_search(work, g - self.g, b - self.b)
        return decrease

    def _model(self, work: NDArray[np.int64], exact: bool, loose: bool) -> QuadraticModel:
        """Rounded kinks curve so much that the mean says nothing: there only zeros are left out."""
        negligible = _NEGLIGIBLE_LOOSELY if loose else _NEGLIGIBLE
        if exact or self.problem.kinked:
            negligible = 0.0
        terms, slopes = self.problem.terms, self.state.slopes
        theta = slopes_by_term(terms, slopes, work) if self.theta is None else self.theta
        return QuadraticModel.at(terms, work, theta, slopes, self.state.curves, negligible)

    def _conjugate(
        self,
        work: NDArray[np.int64],
        g: Floats,
        b: Floats,
        model: QuadraticModel,
        n_steps: int,
        exactly: bool,
    ) -> None:
        """Conjugate gradients over all terms in ``work``; an older preconditioner will do."""
        from laconic.additive._numba_solver import conjugate_steps

        terms = self.problem.terms
        penalty = self.problem.diagonal + self.shift[terms.owner]
        if self.preconditioner is None:
            uneven = self.problem.kinked
            self.preconditioner = Preconditioner.at(terms, model, work, penalty, uneven)
        stop = 1e-10 if exactly else 3e-2
        inner = (model.rows, model.terms, work, *self.preconditioner.arrays, penalty)
        conjugate_steps(*inner, g, self.shift, *model.arrays, b, n_steps, stop)

    def _term_by_term(
        self,
        work: NDArray[np.int64],
        blocks: tuple[Floats, NDArray[np.int64]],
        g: Floats,
        b: Floats,
        model: QuadraticModel,
        n_conjugate: int,
    ) -> None:
        """Sweeps; if they have not settled, conjugate gradients over terms that are not zero."""
        from laconic.additive._numba_blocks import ON_THEIR_OWN, decouple
        from laconic.additive._numba_solver import curved, sweeps

        p = self.problem
        decouple(model.terms, work, *blocks, p.diagonal, ON_THEIR_OWN)
        terms = (model.rows, model.terms, work, *blocks, p.diagonal, p.group, p.monotone)
        accuracy = 3e-2 if n_conjugate <= 6 else 1e-7
        done = sweeps(*terms, g, self.shift, *model.arrays, b, 3, _SETTLED, accuracy)
        if not n_conjugate or (done > 0 and p.n_scores == 1):
            return
        if p.n_scores > 1:
            # the sweeps lowered an upper bound of the model; from here on it is the model
            curved(model.curves, model.change, model.residual)
        free = work[(self.shift[work] < np.inf) & (p.monotone[work] == 0)]
        # an older preconditioner will do unless the group penalties have changed what is free
        held = p.group[work].any()
        if held:
            self.preconditioner = None
        self._conjugate(free, g, b, model, n_conjugate, n_conjugate > 30)
        if held:
            self.preconditioner = None
        sweeps(*terms, g, self.shift, *model.arrays, b, 1, _SETTLED, accuracy)

    def _curvature_blocks(
        self, work: NDArray[np.int64], model: QuadraticModel
    ) -> tuple[Floats, NDArray[np.int64]]:
        """H of every term in ``work``, one block after the other, and where each starts."""
        from laconic.additive._numba_solver import curvature_blocks

        packed = model.terms
        sizes = self.problem.n_scores * packed.rank[work] ** 2
        H_start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        H = np.empty(H_start[-1])
        pad = int((packed.size[work] + packed.width[work] + 2).max(initial=2))
        curvature_blocks(model.rows, packed, work, model.curves, H, H_start, np.empty(pad * pad))
        return H, H_start

    def _line_search(self, work: NDArray[np.int64], dg: Floats, db: Floats) -> float:
        from laconic.additive._numba_rows import score_change

        slope, change = self.state.slopes, np.empty_like(self.scores)
        score_change(*self.problem.terms.packed, work, dg, db, change)
        penalty = self.problem.penalty
        old = penalty.value(self.g)
        promised = float((slope * change).sum()) + penalty.value(self.g + dg) - old
        # at the end the step is more exact than the value: it may lose what rounding loses
        slack = 1e-14 * abs(self.value)
        step = 1.0
        for _ in range(40):
            scores = self.scores + step * change
            g = self.g + step * dg
            value = self.state.loss(scores) + penalty.value(g)
            if value <= self.value + 1e-4 * step * min(promised, 0.0) + slack or step < 1e-9:
                break
            step *= 0.5
        if value > self.value + slack:
            self.value = self.state.loss(self.scores) + old
            return 0.0
        decrease = self.value - value
        self.theta = None
        self.g, self.b, self.scores, self.value = g, self.b + step * db, scores, value
        return decrease
