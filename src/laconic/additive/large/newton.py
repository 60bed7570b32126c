"""Newton steps for rows that are summed block by block: exact slopes, curvatures of a sample.

At a point (b, g) one pass brings the loss and its slopes, over all rows. The quadratic model whose
minimum is the next point has those slopes, and the curvature c Z_s' h Z_s of the sample that the
process that fits holds, c the weight of all rows for each of the sample:

    m(d) = theta'd + c d'Z_s' h Z_s d / 2 + d'P d / 2 + penalty(g + d).

This is subsampled Newton (Byrd, Chin, Neveitt and Nocedal, *SIAM J. Optim.* 21, 2011): the error
shrinks with every pass by about the root of (free coordinates / rows of the sample). A slot that
the sample hardly sees would make steps far too long; P, diagonal, adds what its curvature over all
rows has beyond that of the sample. What the slopes of the last points say of the curvature of all
rows corrects the rest (the recursion of L-BFGS, Nocedal, *Math. Comp.* 35, 1980, around the model);
where the criterion rises all the same, P grows. It begins with what a sample of that size may miss
(:func:`_sample_doubt`): a step that is too long costs two passes more. The certificate is that of
all rows: nothing but the number of passes depends on the sample.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType

import numpy as np

from laconic._typing import Floats, Ints
from laconic.additive import tuning
from laconic.additive.criterion import (
    AdditivePoint,
    AdditiveProblem,
    LossState,
    balanced_shares,
    best_constant,
    curvature_blocks,
    penalty_gap,
)
from laconic.additive.large.passes import (
    BlockLabels,
    Layout,
    LossesAlong,
    PassPoint,
    RowGap,
    SlopeSums,
    unbanded,
)
from laconic.additive.solver import Descent, QuadraticModel
from laconic.additive.structure import AdditivePlan, Structure, Task
from laconic.additive.terms import TermSet
from laconic.core.losses import Solution, WhyStopped
from laconic.data.source import Source


@dataclass(frozen=True)
class Slopes:
    """Loss over all rows at a point, its sum of slopes of every score, and those of coordinates."""

    loss: float
    intercept: Floats
    theta: Floats


@dataclass(frozen=True)
class Facts:
    """What one pass tells beside the slopes: weights of classes, by coordinate, and curvatures."""

    classes: Floats
    class_sums: Floats
    curvature: Floats
    mass: tuple[Floats, ...]
    """Share of the weight in every slot of every term."""


class TermPasses:
    """Passes over all rows for one list of terms."""

    def __init__(self, source: Source, terms: TermSet, plan: AdditivePlan) -> None:
        self.source, self.terms, self.plan = source, terms, plan
        self.layout = Layout.of(terms)

    def point(self, b: Floats, g: Floats, blur: float) -> PassPoint:
        values = [self.terms.values(t, g) for t in range(len(self.terms.terms))]
        stacked = np.ascontiguousarray(np.concatenate([np.zeros((0, len(g))), *values]).T)
        plan = self.plan
        return PassPoint(self.layout, stacked, b, plan.loss, plan.n_classes, plan.C, blur)

    def slopes(self, b: Floats, g: Floats, blur: float) -> Slopes:
        loss, slope, sums = self.source.sum(SlopeSums(self.point(b, g, blur)))
        return Slopes(float(loss), slope, self._coordinates(sums))

    def whole(self, b: Floats, g: Floats, blur: float) -> tuple[Slopes, Facts]:
        point = SlopeSums(self.point(b, g, blur), whole=True)
        loss, slope, sums, classes, class_sums, *products = self.source.sum(point)
        curvature = np.zeros((len(g), self.terms.n_coordinates))
        for t, lines in enumerate(products):
            part = slice(self.terms.start[t], self.terms.start[t] + self.terms.rank[t])
            basis, width = self.terms.terms[t].shape.basis, self.terms.terms[t].width
            for k, own in enumerate(lines):
                curvature[k, part] = (basis * (unbanded(own, width) @ basis)).sum(axis=0)
        place, shares = self.layout.place, class_sums.sum(axis=0) / classes.sum()
        mass = tuple(shares[a:b] for a, b in pairwise(place))
        slopes = Slopes(float(loss), slope, self._coordinates(sums))
        return slopes, Facts(classes, self._coordinates(class_sums), curvature, mass)

    def _coordinates(self, sums: Floats) -> Floats:
        """B' of sums by slot: (lines, coordinates)."""
        place, terms = self.layout.place, self.terms.terms
        parts = [
            sums[:, place[t] : place[t + 1]] @ term.shape.basis for t, term in enumerate(terms)
        ]
        return np.concatenate([np.zeros((len(sums), 0)), *parts], axis=1)


@dataclass(frozen=True)
class LargeTask:
    """Rows that are summed where they are; ``sample`` are some of them, in this process."""

    sample: Task
    source: Source
    n_rows: int
    weight: float
    masses: dict[tuple[int, ...], Floats] = field(default_factory=dict, compare=False)
    """Share of the weight in every slot of the terms that a pass has seen."""
    known: list[_Known] = field(default_factory=list, compare=False)
    """What the last fit learned."""

    def solve(
        self,
        structure: Structure,
        ratio: float,
        start: AdditivePoint,
        tol: float,
        polish: bool = False,
        max_iter: int = tuning.MOST_PASSES,
    ) -> Solution:
        """:meth:`Task.solve` on all rows; ``polish`` asks for no more than ``tol``."""
        plan, terms = self.sample.plan, structure.terms
        times = self.weight / float(self.sample.weight.sum())
        problem = replace(self.sample, weight=times * self.sample.weight).problem(
            terms, structure.diagonal
        )
        passes = TermPasses(self.source, terms, plan)
        point, n_iter, solution = start, 0, None
        for blur in tuning.BLURS if problem.kinked else (0.0,):
            at = point.intercept, point.coordinates, blur
            known = None if problem.kinked or not self.known else self.known[-1].of(terms)
            if known is None:
                slopes, facts = passes.whole(*at)
            else:
                slopes, facts = passes.slopes(*at), known.facts
            if n_iter == 0:
                columns = [term.columns for term in terms.terms]
                self.masses.update(zip(columns, facts.mass, strict=True))
                if ratio > 0.0:
                    top = _largest_group_penalty(problem, facts, structure.group_weights)
                    problem = replace(problem, group=ratio * top * structure.group_weights)
            moves = () if known is None else known.moves
            run = SampledDescent(problem, point, blur, passes, slopes, facts, moves)
            solution = run.to_gap(tol, max_iter - n_iter)
            self.known[:] = [_Known(terms, facts, tuple(run.moves))]
            n_iter, point = n_iter + solution.n_iter, solution.point
            if solution.why_stopped == "gap" or n_iter >= max_iter:
                break
        assert solution is not None
        return replace(solution, n_iter=n_iter)


def shifted(structure: Structure, sample: Task, classes: Floats) -> AdditivePoint:
    """The fit of a sample with intercepts for the classes as all rows have them.

    A class that the sample lacks has a probability of next to nothing there, from which no step
    comes back: the fit of all rows then starts at the best constant.
    """
    point, terms = structure.point, structure.terms
    own = np.bincount(sample.y, sample.weight, minlength=len(classes))
    if ((own == 0.0) & (classes > 0.0)).any():
        g = np.zeros_like(point.coordinates)
        b = best_constant(classes, sample.plan.loss)
        return AdditivePoint(b, g, terms.scores(b, g))
    if max(sample.plan.loss.heights) > 0.0:
        return point
    odds = np.log(classes / classes.sum()) - np.log(own / own.sum())
    b = point.intercept + (odds[1:] - odds[0] if len(odds) == 2 else odds - odds.mean())
    return AdditivePoint(b, point.coordinates, terms.scores(b, point.coordinates))


def _largest_group_penalty(problem: AdditiveProblem, facts: Facts, weights: Floats) -> float:
    """Least lambda that leaves every term at zero: the slopes at the best constant, by class."""
    n_classes = problem.n_classes
    labels = BlockLabels(np.arange(n_classes), facts.classes, problem.loss, n_classes)
    state = LossState(labels, 1e-9)
    intercept = best_constant(facts.classes, problem.loss)
    state.loss(np.repeat(intercept[:, None], n_classes, axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(facts.classes > 0, state.slopes / facts.classes, 0.0)
    norms = problem.penalty.norms(share @ facts.class_sums)
    some = problem.terms.rank > 0
    return float((norms[some] / weights[some]).max(initial=0.0))


@dataclass(frozen=True)
class _Pair:
    """Something for every coordinate and for every intercept: a move, or slopes."""

    g: Floats
    b: Floats

    def dot(self, other: _Pair) -> float:
        return float((self.g * other.g).sum() + (self.b * other.b).sum())

    def plus(self, share: float, other: _Pair) -> _Pair:
        return _Pair(self.g + share * other.g, self.b + share * other.b)


@dataclass(frozen=True)
class _Known:
    """What the passes of a fit told of its terms, of use for a later fit of some of them."""

    terms: TermSet
    facts: Facts
    moves: tuple[tuple[_Pair, _Pair], ...]

    def of(self, terms: TermSet) -> _Known | None:
        """The same for other terms; None where some are new.

        Curvatures are those of another point and moves lack the terms left out: both only make
        steps, which are taken where the criterion of all rows falls.
        """
        place = self.terms.place_of
        if any(term.columns not in place for term in terms.terms):
            return None
        own = [place[term.columns] for term in terms.terms]
        spans = [
            np.arange(a, a + r) for a, r in zip(self.terms.start, self.terms.rank, strict=True)
        ]
        kept = np.concatenate([np.zeros(0, dtype=np.int64), *(spans[t] for t in own)])
        facts = Facts(
            self.facts.classes,
            self.facts.class_sums[:, kept],
            self.facts.curvature[:, kept],
            tuple(self.facts.mass[t] for t in own),
        )
        moves = [tuple(_Pair(pair.g[:, kept], pair.b) for pair in pairs) for pairs in self.moves]
        bent = tuple((move, change) for move, change in moves if move.dot(change) > 0.0)
        return _Known(terms, facts, bent)


def _sample_doubt(seen: Floats, diagonal: Floats, curves: Floats) -> float:
    """Share of the curvature by which that of a sample may fall short in some direction.

    Of n rows and d free coordinates the least eigenvalue of the one in units of the other is near
    (1 - sqrt(d / n))^2 (Marchenko and Pastur, *Math. USSR-Sb.* 1, 1967). A coordinate is as free as
    its penalty leaves it, and unequal curvatures count as (sum h)^2 / sum h^2 rows.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        free = np.nan_to_num(seen / (seen + diagonal)).sum(axis=1)
        rows = np.nan_to_num(curves.sum(axis=1) ** 2 / (curves**2).sum(axis=1))
    share = float(np.sqrt(np.minimum(free / np.maximum(rows, 1.0), 1.0)).max(initial=0.0))
    return share * (2.0 - share)


class SampledDescent(Descent):
    """Steps by the curvature of the sample, with the slopes and the values of all rows."""

    exact_tol = tuning.SAMPLED_STEP_TOL

    def __init__(
        self,
        problem: AdditiveProblem,
        start: AdditivePoint,
        blur: float,
        passes: TermPasses,
        slopes: Slopes,
        facts: Facts,
        moves: Iterable[tuple[_Pair, _Pair]] = (),
    ) -> None:
        super().__init__(problem, start, blur)
        self.true, self.passes, self.facts, self.blur = problem, passes, facts, blur
        self.all_rows, self.theta = slopes, slopes.theta
        self.value = slopes.loss + problem.penalty.value(self.g)
        every = np.arange(len(problem.terms.terms))
        blocks = curvature_blocks(*problem.terms.packed, every, self.state.curves)
        seen = np.zeros_like(self.g)
        for t in every:
            rank, at = int(problem.terms.rank[t]), int(problem.terms.start[t])
            own = blocks.of(int(t), len(self.g), rank)
            seen[:, at : at + rank] = np.diagonal(own, axis1=1, axis2=2)
        self.unseen = np.maximum(facts.curvature - seen, 0.0).max(axis=0, initial=0.0)
        self.doubt = _sample_doubt(seen, problem.diagonal, self.state.curves)
        self._hold(0.0)
        self.moves = deque(moves, maxlen=tuning.REMEMBERED_MOVES)

    def _hold(self, caution: float) -> None:
        """P = what the sample does not see, and ``caution`` times the curvature."""
        self.caution = max(caution, self.doubt)
        self.prox = self.unseen + self.caution * self.facts.curvature.max(axis=0, initial=0.0)
        self.problem = replace(self.true, diagonal=self.true.diagonal + self.prox)
        self.preconditioner = None

    def to_gap(self, tol: float, max_iter: int) -> Solution:
        """Steps until the certified gap of all rows is at most ``tol`` times the value."""
        why: WhyStopped = "max_iter"
        gap, value, n_iter, small = np.inf, self.value, 0, 0
        while True:
            gap, value = self._gap(tol)
            if gap <= tol * abs(value):
                why = "gap"
                break
            if n_iter >= max_iter:
                break
            if self.true.kinked and np.isfinite(gap):
                why = "stalled"  # what is left is the rounding of the kink: round it less
                break
            if small >= tuning.STALLED_PASSES:
                why = "stalled"
                break
            n_iter += 1
            self.preconditioner = None
            work = self._grown(self.all_rows.theta)
            decrease = self._step(work, None, tuning.CONJUGATE_SAMPLED, tuning.CONJUGATE_SAMPLED)
            small = small + 1 if decrease <= 1e-13 * abs(self.value) else 0
        details = MappingProxyType({"problem": self.true})
        return Solution(self.point, value, max(gap, 0.0), n_iter, why, details)

    def _gap(self, tol: float) -> tuple[float, float]:
        """The certified gap and the true value; the rows are asked once the terms allow it."""
        slope, theta, classes = self.all_rows.intercept, -self.all_rows.theta, self.facts.classes
        got = classes + (np.array([-slope[0], slope[0]]) if len(slope) == 1 else slope)
        eps, q = balanced_shares(classes, got, float(classes.sum()))
        if eps > 0.0:
            sums, share = self.facts.class_sums, q[:, None] * self.facts.class_sums.sum(axis=0)
            drift = (sums - share)[-len(slope) :]
            theta = (1.0 - eps) * theta + eps * drift
        gap = penalty_gap(self.true, self.g, theta)
        if gap > tol * abs(self.value):
            return np.inf, self.value
        point = RowGap(self.passes.point(self.b, self.g, self.blur), eps, q)
        rows, loss = self.passes.source.sum(point)
        return gap + float(rows), float(loss) + self.true.penalty.value(self.g)

    def _slope(self) -> _Pair:
        """Gradient of the criterion without its group penalties."""
        return _Pair(
            self.all_rows.theta + self.true.diagonal * self.g, self.all_rows.intercept.copy()
        )

    def _conjugate(
        self, work: Ints, g: Floats, b: Floats, model: QuadraticModel, n_steps: int, exactly: bool
    ) -> None:
        """The step of the sample, corrected by the moves so far where no group is held."""
        free = not (self.true.group.any() or self.true.monotone.any())
        if not free or not self.moves:
            super()._conjugate(work, g, b, model, n_steps, exactly)
            return
        left, shares = self._slope(), []
        for move, change in reversed(self.moves):
            shares.append(move.dot(left) / move.dot(change))
            left = left.plus(-shares[-1], change)
        theta = left.g - self.problem.diagonal * self.g
        own = model._replace(theta=theta, slope=left.b)
        super()._conjugate(work, g, b, own, n_steps, exactly)
        step = _Pair(self.g - g, self.b - b)
        for (move, change), share in zip(self.moves, reversed(shares), strict=True):
            step = step.plus(share - change.dot(step) / move.dot(change), move)
        g[:], b[:] = self.g - step.g, self.b - step.b

    def _model(self, work: Ints, exact: bool, loose: bool) -> QuadraticModel:
        """Slopes of all rows, curvatures of the sample, and P around the point."""
        theta = self.all_rows.theta - self.prox * self.g
        negligible = 0.0 if self.problem.kinked else tuning.NEGLIGIBLE_ROW
        slopes, curves = self.state.slopes, self.state.curves
        model = QuadraticModel.at(self.problem.terms, work, theta, slopes, curves, negligible)
        return model._replace(slope=self.all_rows.intercept)

    def _line_search(self, work: Ints, dg: Floats, db: Floats) -> float:
        now, penalty = self.all_rows, self.true.penalty
        old = penalty.value(self.g)
        promised = float((now.theta * dg).sum() + (now.intercept * db).sum())
        promised += penalty.value(self.g + dg) - old
        if not np.isfinite(promised):
            return 0.0
        slack = 1e-14 * abs(self.value)
        g, b = self.g + dg, self.b + db
        found = self.passes.slopes(b, g, self.blur)
        value = found.loss + penalty.value(g)
        if value > self.value + 1e-4 * min(promised, 0.0) + slack:
            share = self._best_share(dg, db)
            self._hold(max(tuning.FIRST_CAUTION, tuning.MORE_CAUTION * self.caution))
            if share == 0.0:
                return 0.0
            g, b = self.g + share * dg, self.b + share * db
            found = self.passes.slopes(b, g, self.blur)
            value = found.loss + penalty.value(g)
        elif self.caution:
            self._hold(self.caution / tuning.MORE_CAUTION)
        decrease, before = self.value - value, self._slope()
        move = _Pair(g - self.g, b - self.b)
        self.g, self.b, self.value, self.all_rows = g, b, value, found
        change = self._slope().plus(-1.0, before)
        if move.dot(change) > 0.0:
            self.moves.append((move, change))
        self.scores = self.problem.terms.scores(b, g)
        self.state.loss(self.scores)
        return decrease

    def _best_share(self, dg: Floats, db: Floats) -> float:
        """The share of the step with the least criterion; 0 when none is less than here."""
        shares = tuning.STEP_SHARES
        start = self.passes.point(self.b, self.g, self.blur)
        end = self.passes.point(self.b + db, self.g + dg, self.blur)
        losses = self.passes.source.sum(LossesAlong(start, end, shares))
        penalty = self.true.penalty
        values = losses + [penalty.value(self.g + share * dg) for share in shares]
        best = int(np.argmin(values))
        return shares[best] if values[best] < self.value else 0.0
