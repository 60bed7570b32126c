"""Proximal Newton for the additive criterion, with a working set and a certified gap.

Each iteration builds the quadratic model of the loss at the current scores and lowers it, with the
penalties as they are: term by term where a group penalty or a monotone cone is at work or evidence
moves the smoothing parameters, else over all terms at once by conjugate gradients. A line search on
the true criterion follows. Terms at zero stay out of the work until their slope exceeds their group
penalty. The truncated loss is not smooth: its kink is rounded over a width that shrinks until the
gap of the *true* criterion is small, so the certificate is exact. Few rows whose weights span
decades have steps of their own (:mod:`laconic.additive.row_newton`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky

from laconic._typing import Floats, Ints
from laconic.additive import tuning
from laconic.additive.criterion import (
    AdditivePoint,
    AdditiveProblem,
    CurvatureBlocks,
    LossState,
    certified_gap,
    curvature_blocks,
    null_point,
    slopes_by_term,
)
from laconic.additive.row_newton import RowNewton, few_carry_most
from laconic.additive.terms import TermSet
from laconic.core.losses import Solution, WhyStopped

if TYPE_CHECKING:
    from laconic.additive._numba_rows import Rows, Terms

T = TypeVar("T", bound=np.generic)

OnCurvature = Callable[[Floats, CurvatureBlocks], Floats]


class Penalties(NamedTuple):
    """Diagonal of the coordinates, group penalty of the terms."""

    diagonal: Floats
    group: Floats


class State(NamedTuple):
    """Coordinates, mu = group / |g| of every term, intercepts: what the compiled descent moves."""

    point: Floats
    shift: Floats
    intercept: Floats


class QuadraticModel(NamedTuple):
    """Gradient at the start, curvatures of ``rows``, and what the moves have changed so far.

    Newton's direction needs the slopes of all rows, once, and products with the curvatures again
    and again. Rows decided with near certainty (and rows held out) hardly curve: without those
    that together carry at most a small share of the curvature the products cost a fraction, and
    the direction stays one of descent: ``theta`` and ``slope`` are exact sums of the slopes of all
    rows. ``residual``, the change of the gradient of the rows, and ``change``, that of their
    scores, start at zero.
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
        # rows left out of the curvature stay in the gradient: the direction is still one of descent
        kept = np.flatnonzero(size > negligible * float(size.mean()))
        few = len(kept) <= tuning.COMPACTED_SHARE * len(size)
        if len(size) >= tuning.COMPACTED_ROWS and few:
            rows, packed = compact(rows, packed, work, kept)
            curves = np.ascontiguousarray(curves[:, kept])
        nothing = np.zeros_like(curves)
        return cls(rows, packed, theta, slopes.sum(axis=1), curves, nothing, nothing.copy())


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
    off_knots = coarse[rows.coarse_fraction_row[coarse] > 0]
    few = Rows(
        _taken(rows.slots, alone, kept),
        _taken(rows.fraction, rows.fraction_row[between], kept),
        _numbered(n_used, place[between], -1),
        _numbered(n_used, place[coarse], -1),
        _taken(rows.coarse_slots, rows.coarse_row[coarse], kept),
        _numbered(n_used, place[off_knots], 0),
        _taken(rows.coarse_fraction, np.append(0, rows.coarse_fraction_row[off_knots]), kept),
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


class Preconditioner(NamedTuple):
    """Of the conjugate steps: exact where rows determine much, diagonal elsewhere.

    Coordinates have unit variance, so the curvature of one is about the total h of the rows. Where
    its penalty D_j is large beside h, h + D_j is nearly all there is. What makes conjugate
    gradients slow are the few coordinates that the rows determine more than the penalty, in
    columns that carry the same information: those are solved together, with the intercept, by one
    dense factor. Some thousand rows, drawn by their curvature, are enough for it: nothing but the
    number of steps depends on it.

    ``factors``, (scores, joint + 1, joint + 1) and upper, end with the intercept; ``scale`` is the
    diagonal of all coordinates, (scores, coordinates).
    """

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
        """For the terms in ``work``, with the diagonal ``penalty`` of all coordinates.

        ``uneven``: few rows carry most of the curvature (a rounded kink), so that h says little of
        one coordinate; as many as may be are then solved together.
        """
        from laconic.additive._numba_rows import own_curvatures

        curves = model.curves
        if uneven and len(curves) > 1:
            # w p bounds a row that is certain by w, where it curves by w p (1 - p)
            curves = np.empty_like(model.curves)
            own_curvatures(model.curves, curves)
        total = np.maximum(curves.sum(axis=1), 1e-300)
        inside = np.zeros(len(terms.terms), dtype=bool)
        inside[work] = True
        least = np.inf if uneven else total.max() / tuning.JOINT_MARGIN
        joint = np.flatnonzero(inside[terms.owner] & (penalty < least))
        most = tuning.MOST_JOINT
        if not uneven:
            most = min(most, tuning.SOME_JOINT + tuning.JOINT_A_TERM * len(work))
        # the least penalised ones first: there the columns are told apart by the rows alone
        freest = np.argsort(penalty[joint], kind="stable")[:most]
        joint = np.sort(joint[freest])
        gram = _joint_curvature(terms, model._replace(curves=curves), work, joint)
        # where all rows are flat for now, the next model may curve and this factor still serve
        places = np.arange(len(joint) + 1)
        own = gram[:, places, places] + np.append(penalty[joint], 0.0)
        # of its own size each: weights may leave a coordinate less than rounding of the total
        gram[:, places, places] = np.maximum(
            own * (1.0 + tuning.JOINT_RIDGE), tuning.LEAST_CURVATURE
        )
        factors = np.stack([cholesky(one, check_finite=False) for one in gram])
        return cls(joint, factors, total[:, None] + penalty)


def _joint_curvature(terms: TermSet, model: QuadraticModel, work: Ints, joint: Ints) -> Floats:
    """Z h Z' of the joint coordinates and the intercept for every score, from some of the rows."""
    from laconic.additive._numba_rows import coordinate_rows

    rows, packed, curves = model.rows, model.terms, model.curves
    n = tuning.JOINT_ROWS
    if curves.shape[1] > n:
        # systematic sampling by curvature: one row at each of n equal steps of the cumulated sum
        up_to = np.cumsum(curves.sum(axis=0))
        steps = (np.arange(n) + 0.5) * (up_to[-1] / n)
        some = np.searchsorted(up_to, steps).astype(np.int64)
        rows, packed = compact(rows, packed, work, some)
        taken = curves[:, some]
        curves = taken / taken.sum(axis=0) * (up_to[-1] / n)
    lines = np.ones((len(joint) + 1, curves.shape[1]))
    lines[:-1] = 0.0
    coordinate_rows(rows, packed, terms.owner, joint, lines)
    out = np.empty((len(curves), len(lines), len(lines)))
    for k, curve in enumerate(np.sqrt(np.maximum(curves, 0.0))):
        weighted = lines * curve
        np.matmul(weighted, weighted.T, out=out[k])
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

    ``on_curvature(coordinates, blocks)`` may return new diagonal penalties at every iteration
    (marginal likelihood). The problem then changes on the way: the run ends when the value has
    settled to ``tol``, certifies nothing (gap = inf) and returns the last problem in
    ``details["problem"]``. ``polish`` adds a few exact steps once the gap is reached.
    """
    point = start or null_point(problem)
    solution = None
    n_iter = 0
    # a kink is rounded less and less, each problem started where the last one ended
    for blur in tuning.BLURS if problem.kinked else (0.0,):
        run = Descent(problem, point, blur)
        solution = run.until(tol, max_iter - n_iter, on_curvature, polish)
        n_iter += solution.n_iter
        point, problem = solution.point, solution.details["problem"]
        if solution.why_stopped == "gap" or n_iter >= max_iter:
            break
    assert solution is not None
    return replace(solution, n_iter=n_iter)


class Descent:
    """One run at a fixed rounding of the kink."""

    exact_tol = tuning.EXACT_STEP_TOL

    def __init__(self, problem: AdditiveProblem, start: AdditivePoint, blur: float) -> None:
        self.problem = problem
        self.state = LossState(problem, blur)
        self.b = start.intercept.copy()
        self.g = start.coordinates.copy()
        self.scores = start.scores.copy()
        self.shift = np.zeros(len(problem.group))
        self.uneven = problem.kinked or few_carry_most(problem.weight)
        self.in_rows = RowNewton(problem) if RowNewton.serves(problem) else None
        self.value = self.state.loss(self.scores) + problem.penalty.value(self.g)
        self.preconditioner: Preconditioner | None = None
        self.theta: Floats | None = None

    @property
    def point(self) -> AdditivePoint:
        return AdditivePoint(self.b, self.g, self.scores)

    def until(
        self, tol: float, max_iter: int, on_curvature: OnCurvature | None, polish: bool
    ) -> Solution:
        why: WhyStopped = "max_iter"
        gap = np.inf
        work = self._first_work()
        loose = tol > tuning.LOOSE_TOL
        # penalties that still move, or a loose target, do not deserve an exact Newton step
        n_conjugate = tuning.CONJUGATE_LOOSELY if loose else tuning.CONJUGATE
        if on_curvature is not None:
            n_conjugate = tuning.CONJUGATE_OF_EVIDENCE
        # a gap costs little beside a Newton step, which leaves far less than it has gained
        worth = tuning.GAP_WORTH_LOOSELY if loose else tuning.GAP_WORTH
        small = 0
        n_iter = 0
        while n_iter < max_iter:
            n_iter += 1
            before = self.value
            if n_iter % tuning.REFRESH == 0:
                self.preconditioner = None
            least = tuning.LEAST_CONJUGATE * (1 + n_iter // 4)
            decrease = self._step(work, on_curvature, n_conjugate, least)
            # the objective moves with the evidence: it has settled when two steps change little
            if on_curvature is not None:
                small = small + 1 if abs(before - self.value) <= tol * abs(self.value) else 0
                work = self._alive(work) if n_iter >= 4 else work
                if n_iter < max_iter and small < 2:
                    continue
                why = "gap"
                break
            if decrease > worth * tol * abs(self.value) and n_iter % tuning.GAP_STEPS:
                continue
            self.theta = theta = slopes_by_term(self.problem.terms, self.state.slopes)
            gap = certified_gap(self.problem, self.point, self.state.slopes, theta)
            if gap <= tol * abs(self.value):
                why = "gap"
                gap = self._polished(work, gap, tol) if polish else gap
                break
            grown = self._grown(theta)
            same = len(grown) == len(work)
            small = small + 1 if same and decrease <= 1e-13 * abs(self.value) else 0
            if not same:
                self.preconditioner = None
            work = grown
            if small >= 3:
                why = "stalled"
                break
        value = self._true_value()
        details = MappingProxyType({"problem": self.problem})
        return Solution(self.point, value, max(gap, 0.0), n_iter, why, details)

    def _polished(self, work: Ints, gap: float, tol: float) -> float:
        """A few exact Newton steps more, for results that agree to many digits; returns the gap.

        Where rounding lets the steps lose the certificate, the point that had it is kept.
        """
        reached = self.b, self.g, self.scores, self.value
        for _ in range(4):
            self.preconditioner = None
            self._step(work, None, tuning.CONJUGATE_POLISHED, tuning.CONJUGATE_POLISHED)
        polished = certified_gap(self.problem, self.point, self.state.slopes)
        if polished <= max(gap, tol * abs(self.value)):
            return polished
        self.b, self.g, self.scores, self.value = reached
        return gap

    def _true_value(self) -> float:
        if not self.problem.kinked:
            return self.value
        sign = np.where(self.problem.y > 0, 1.0, -1.0)
        rows = self.problem.loss.value(self.scores[0], sign)
        return float(self.problem.weight @ rows) + self.problem.penalty.value(self.g)

    def _first_work(self) -> Ints:
        """Terms that are not zero, or that would leave zero at the start."""
        self.theta = slopes_by_term(self.problem.terms, self.state.slopes)
        return self._grown(self.theta)

    def _alive(self, work: Ints) -> Ints:
        """Terms that the evidence has not switched off; the others stay at their tiny values."""
        norms = self.problem.penalty.norms(self.g)
        alive = work[norms[work] > tuning.NEGLIGIBLE_SPREAD]
        if len(alive) < len(work):
            self.preconditioner = None
        return alive

    def _grown(self, theta: Floats) -> Ints:
        """Terms off zero, and those whose slope exceeds their group penalty."""
        penalty = self.problem.penalty
        on = penalty.norms(self.g) > 0
        over = penalty.norms(theta) > self.problem.group
        on |= over | (self.problem.monotone != 0)
        return np.flatnonzero(on & (self.problem.terms.rank > 0))

    def _step(
        self, work: Ints, on_curvature: OnCurvature | None, n_conjugate: int, least: int
    ) -> float:
        held = self.problem.group[work].any() or self.problem.monotone[work].any()
        exact = n_conjugate > tuning.CONJUGATE
        if self.in_rows is not None and not held:
            return self._row_step(self.in_rows, work, on_curvature)
        model = self._model(work, exact, n_conjugate <= tuning.CONJUGATE_LOOSELY)
        g, b = self.g.copy(), self.b.copy()
        # parameters that follow the coordinates need every term moved all the way: term by term
        if on_curvature is None and not held:
            self.shift[work] = 0.0
            self._conjugate(work, g, b, model, max(n_conjugate, least), exact)
            return self._line_search(work, g - self.g, b - self.b)
        blocks = curvature_blocks(model.rows, model.terms, work, model.curves)
        if on_curvature is not None:
            self._moved_penalties(on_curvature(self.g, blocks))
        self._term_by_term(blocks, g, b, model, n_conjugate)
        decrease = self._line_search(work, g - self.g, b - self.b)
        if decrease <= 0.0 and n_conjugate and on_curvature is None:
            # near zero a group penalty bends more than its Hessian says: term by term is safe
            model, g, b = self._model(work, exact=False, loose=False), self.g.copy(), self.b.copy()
            self._term_by_term(blocks, g, b, model, 0)
            decrease = self._line_search(work, g - self.g, b - self.b)
        return decrease

    def _row_step(self, in_rows: RowNewton, work: Ints, on_curvature: OnCurvature | None) -> float:
        if on_curvature is not None:
            rows, packed = self.problem.terms.packed
            blocks = curvature_blocks(rows, packed, work, self.state.curves)
            self._moved_penalties(on_curvature(self.g, blocks))
        moved = State(self.g.copy(), self.shift, self.b.copy())
        in_rows.step(self.problem, self.state, self.scores, work, moved)
        return self._line_search(work, moved.point - self.g, moved.intercept - self.b)

    def _moved_penalties(self, diagonal: Floats) -> None:
        self.problem = replace(self.problem, diagonal=diagonal)
        self.state.problem = self.problem
        self.value = self.state.loss(self.scores) + self.problem.penalty.value(self.g)

    def _model(self, work: Ints, exact: bool, loose: bool) -> QuadraticModel:
        """Rounded kinks curve so much that the mean says nothing: there only zeros are left out."""
        negligible = tuning.NEGLIGIBLE_ROW_LOOSELY if loose else tuning.NEGLIGIBLE_ROW
        if exact or self.problem.kinked:
            negligible = 0.0
        terms, slopes = self.problem.terms, self.state.slopes
        theta = slopes_by_term(terms, slopes, work) if self.theta is None else self.theta
        return QuadraticModel.at(terms, work, theta, slopes, self.state.curves, negligible)

    def _conjugate(
        self, work: Ints, g: Floats, b: Floats, model: QuadraticModel, n_steps: int, exactly: bool
    ) -> None:
        """Conjugate gradients over all terms in ``work``; an older preconditioner will do."""
        from laconic.additive._numba_terms import conjugate_steps

        terms = self.problem.terms
        penalty = self.problem.diagonal + self.shift[terms.owner]
        if self.preconditioner is None:
            # a loose fit of few rows tells which terms stay: what is exact has a step of its own
            guessed = self.in_rows is not None and n_steps <= tuning.CONJUGATE_LOOSELY
            uneven = self.uneven and not guessed
            self.preconditioner = Preconditioner.at(terms, model, work, penalty, uneven)
        stop = self.exact_tol if exactly else tuning.STEP_TOL_LOOSELY
        state = State(g, self.shift, b)
        conjugate_steps(model, work, self.preconditioner, penalty, state, n_steps, stop)

    def _term_by_term(
        self, blocks: CurvatureBlocks, g: Floats, b: Floats, model: QuadraticModel, n_conjugate: int
    ) -> None:
        """Sweeps; if they have not settled, conjugate gradients over terms that are not zero."""
        from laconic.additive._numba_rows import curved
        from laconic.additive._numba_terms import decouple, sweeps

        p, work = self.problem, blocks.work
        decouple(model.terms, blocks, p.diagonal, tuning.ON_THEIR_OWN)
        penalties, state = Penalties(p.diagonal, p.group), State(g, self.shift, b)
        signs = p.monotone if p.monotone.any() else None
        loose = n_conjugate <= tuning.CONJUGATE_LOOSELY
        accuracy = tuning.STEP_TOL_LOOSELY if loose else tuning.STEP_TOL
        inner = tuning.SETTLED, accuracy
        done = sweeps(model, blocks, penalties, signs, state, tuning.N_SWEEPS, *inner)
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
        self._conjugate(free, g, b, model, n_conjugate, n_conjugate > tuning.CONJUGATE)
        if held:
            self.preconditioner = None
        sweeps(model, blocks, penalties, signs, state, 1, *inner)

    def _line_search(self, work: Ints, dg: Floats, db: Floats) -> float:
        from laconic.additive._numba_rows import score_change

        slope, change = self.state.slopes, np.empty_like(self.scores)
        score_change(*self.problem.terms.packed, work, dg, db, change)
        penalty = self.problem.penalty
        old = penalty.value(self.g)
        promised = float((slope * change).sum()) + penalty.value(self.g + dg) - old
        # an overflow in the direction, mostly of a worn preconditioner: no step, and a fresh one
        if not np.isfinite(promised):
            self.preconditioner = None
            return 0.0
        # at the end the step is more exact than the value: it may lose what rounding loses
        slack = 1e-14 * abs(self.value)
        step = 1.0
        for _ in range(40):
            scores = self.scores + step * change
            g = self.g + step * dg
            value = self.state.loss(scores) + penalty.value(g)
            # Armijo's rule with its usual constant
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
