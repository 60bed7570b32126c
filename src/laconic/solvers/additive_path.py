"""From terms to a sparse additive model: smoothness, candidate pairs, a path of group penalties.

One *structure* is a list of terms with their smoothness and their adaptive group weights
1 / |g_t| (Zou, *JASA* 101, 2006), all learned on the rows it is given; its path lowers the group
penalty from the empty model. Cross-validation repeats all of it in every fold: pairs are screened
again, weights learned again, so that held-out rows know nothing of the choice they judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from laconic.criteria.gray_zone import TruncatedLogistic
from laconic.solvers.additive import (
    AdditivePoint,
    AdditiveProblem,
    largest_group_penalty,
    loss_slopes,
    solve_additive,
)
from laconic.solvers.additive_evidence import Smoothness, roughness_units
from laconic.solvers.additive_pairs import log_bayes_factors, screen_pairs
from laconic.solvers.additive_problem import LossState
from laconic.solvers.additive_terms import PairGrids, Term, TermSet
from laconic.solvers.additive_together import amount_together
from laconic.solvers.solution import Solution

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

WIDE = 400
"""Above this number of columns, a first path with equal weights keeps at most ``_KEPT`` of them."""

_KEPT = 120
_LEAST_NORM = 1e-3
_NEGLIGIBLE = 1e-3
_PAIR_COLUMNS = 120
FEW_ROWS = 2_500
"""Fewer rows hardly ever justify more candidate pairs than columns, or tell amounts of smoothness
of columns apart; their held-out losses are too uncertain to weigh terms with."""

MANY_PAIRS, TOGETHER_PAIRS = 2, 3
"""Candidate pairs for each column where the rows can tell so many; and where all of them together
are known to be worth something."""

_TOGETHER_MOST = 600

_PAIR_EVIDENCE = 1.5
_FEW_PAIRS = 45
_GUESS_TOL, _GUIDED_STEPS = 1e-2, 3
_POWER_STEPS = 3
"""Steps of the evidence after which the powers of the roughness are chosen again."""


@dataclass(frozen=True)
class AdditivePlan:
    """What is fitted, apart from the group penalty and the number of pairs."""

    n_classes: int
    loss: TruncatedLogistic
    C: float = 1.0
    smoothness: float | None = None
    signs: tuple[int, ...] = ()
    relaxed: bool = True

    def problem(
        self, terms: TermSet, y: Ints, weight: Array, diagonal: Array, group: Array | None = None
    ) -> AdditiveProblem:
        group = np.zeros(len(terms.terms)) if group is None else group
        signs = np.array([self.sign_of(t.columns) for t in terms.terms], dtype=np.int64)
        return AdditiveProblem(
            terms, y, self.C * weight, group, diagonal, self.loss, self.n_classes, signs
        )

    def sign_of(self, columns: tuple[int, ...]) -> int:
        return self.signs[columns[0]] if self.signs and len(columns) == 1 else 0


@dataclass(frozen=True)
class Stage:
    """Amounts and point at the end of one search by evidence: single terms, then strong pairs."""

    smoothness: Smoothness
    point: AdditivePoint

    def carried(self, terms: TermSet) -> AdditivePoint:
        """The point on other terms: zero for those that are not known."""
        from laconic.solvers.hot_additive_rows import score_change

        own, point = self.smoothness.terms, self.point
        known = own.place_of
        g = np.zeros((len(point.coordinates), terms.n_coordinates))
        for t, term in enumerate(terms.terms):
            if term.columns in known:
                at, to, rank = own.start[known[term.columns]], terms.start[t], terms.rank[t]
                g[:, to : to + rank] = point.coordinates[:, at : at + rank]
        scores = np.empty((len(g), terms.rows.n_rows))
        score_change(*terms.packed, np.flatnonzero(terms.rank > 0), g, point.intercept, scores)
        return AdditivePoint(point.intercept, g, scores)


@dataclass(frozen=True)
class Structure:
    """Terms, their quadratic penalties, their group weights and the fit without group penalty.

    ``weak`` marks the pairs that share one amount of smoothness instead of having their own;
    ``together`` is that amount if the evidence of all pairs together asks for one.
    """

    terms: TermSet
    smoothness: Smoothness
    group_weights: Array
    point: AdditivePoint
    weak: NDArray[np.bool_]
    stages: tuple[Stage, ...] = ()
    together: float = np.inf

    @property
    def every_pair(self) -> bool:
        """Are all pairs of its columns among the terms?"""
        n_pairs = sum(len(term.columns) == 2 for term in self.terms.terms)
        d = len(self.terms.terms) - n_pairs
        return 2 * n_pairs == d * (d - 1)

    @property
    def diagonal(self) -> Array:
        return self.smoothness.diagonal()

    def part(self, kept: Ints, point: AdditivePoint) -> Structure:
        """Only the kept terms, with their coordinates at ``point``."""
        from laconic.solvers.hot_additive_rows import score_change

        terms = self.terms.subset([int(t) for t in kept])
        inside = np.isin(self.terms.owner, kept)
        g = np.ascontiguousarray(point.coordinates[:, inside])
        scores = np.empty_like(point.scores)
        score_change(*terms.packed, np.arange(len(kept)), g, point.intercept, scores)
        amounts = self.smoothness.part(terms, kept)
        start = AdditivePoint(point.intercept, g, scores)
        return Structure(terms, amounts, self.group_weights[kept], start, self.weak[kept])

    def scaled(self, factor: float) -> Structure:
        """All amounts of smoothness times ``factor``."""
        own = self.smoothness
        amounts = replace(own, bend=factor * own.bend, line=factor * own.line)
        return replace(self, smoothness=amounts)

    def widened(self, point: AdditivePoint) -> AdditivePoint:
        """A point without the weak pairs as one with them, at zero."""
        g = np.zeros((len(point.coordinates), self.terms.n_coordinates))
        g[:, ~self.weak[self.terms.owner]] = point.coordinates
        return AdditivePoint(point.intercept, g, point.scores)

    def at_amount(self, amount: float, point: AdditivePoint | None = None) -> Structure:
        """Weak pairs at one common amount; without them when it is infinite."""
        point = self.point if point is None else point
        if not np.isfinite(amount):
            kept = np.flatnonzero(~self.weak)
            return self.part(kept, point) if self.weak.any() else self
        units = roughness_units(self.terms)
        bend, line = self.smoothness.bend, self.smoothness.line
        if self.every_pair:
            # what all pairs tell together needs single terms as free as they are
            bend, line = np.minimum(bend, amount / units), np.minimum(line, amount)
        amounts = replace(
            self.smoothness,
            bend=np.where(self.weak, amount / units, bend),
            line=np.where(self.weak, amount, line),
        )
        weights = adaptive_weights(self.terms, point)
        return Structure(self.terms, amounts, weights, point, self.weak)


def term_norms(terms: TermSet, point: AdditivePoint) -> Array:
    """|g_t| of every term."""
    squares = (point.coordinates**2).sum(axis=0)
    return np.sqrt(np.bincount(terms.owner, squares, minlength=len(terms.terms)))


def adaptive_weights(terms: TermSet, point: AdditivePoint) -> Array:
    return 1.0 / np.maximum(term_norms(terms, point), _LEAST_NORM)


def evidence_fit(
    plan: AdditivePlan,
    terms: TermSet,
    y: Ints,
    weight: Array,
    smoothness: Smoothness,
    start: AdditivePoint | None = None,
    max_iter: int = 12,
) -> tuple[Smoothness, AdditivePoint]:
    """Fit without group penalty; amounts of smoothness by marginal likelihood unless fixed.

    The likelihood is the plain one, whatever the zone: a truncated likelihood has no evidence.
    """
    plain = replace(plan, loss=TruncatedLogistic(), C=1.0)
    problem = plain.problem(terms, y, weight, smoothness.diagonal())
    if plan.smoothness is not None:
        return smoothness, solve_additive(problem, start, tol=1e-4).point
    amounts = smoothness.copy()
    step = 0

    def update(g: Array, H: Array, H_start: Ints, work: Ints) -> Array:
        nonlocal step
        if g.any():
            if step % _POWER_STEPS == _POWER_STEPS - 1:
                amounts.choose_powers(g, H, H_start, work)
            amounts.update(g, H, H_start, work)
        step += 1
        return amounts.diagonal()

    found = solve_additive(problem, start, tol=1e-4, max_iter=max_iter, on_curvature=update)
    return amounts, found.point


def build(
    plan: AdditivePlan,
    singles: TermSet,
    y: Ints,
    weight: Array,
    pairs: PairRule,
    guess: Sequence[Stage] = (),
) -> Structure:
    """Terms, smoothness and group weights from the rows of ``singles``.

    ``guess`` are the stages of a structure on (nearly) the same rows: where the search starts.
    """
    base = singles.subset(wide_screen(plan, singles, y, weight))
    drawn = singles.rows.n_rows < FEW_ROWS
    first = Smoothness.start(base, plan.smoothness, drawn)
    smooth, point = _guessed_fit(plan, base, y, weight, first, None, guess[:1])
    stages = [Stage(smooth, point)]
    strong, weak, together = pairs.candidates(plan, singles, smooth, y, weight, point)
    if strong:
        terms = base.extended(strong)
        first = smooth.extended(terms, plan.smoothness)
        start = _widened(point, terms)
        smooth, point = _guessed_fit(plan, terms, y, weight, first, start, guess[1:])
        stages.append(Stage(smooth, point))
    terms = smooth.terms.extended(weak)
    smooth = smooth.extended(terms, plan.smoothness)
    point = _widened(point, terms)
    shared = np.arange(len(terms.terms)) >= len(terms.terms) - len(weak)
    weights = adaptive_weights(terms, point)
    return Structure(terms, smooth, weights, point, shared, tuple(stages), together)


def _guessed_fit(
    plan: AdditivePlan,
    terms: TermSet,
    y: Ints,
    weight: Array,
    first: Smoothness,
    start: AdditivePoint | None,
    guess: Sequence[Stage],
) -> tuple[Smoothness, AdditivePoint]:
    """Evidence from ``first``; or from a guess, after a fit at its amounts, in few steps."""
    if not guess or plan.smoothness is not None:
        return evidence_fit(plan, terms, y, weight, first, start)
    first = first.guided(guess[0].smoothness)
    plain = replace(plan, loss=TruncatedLogistic(), C=1.0)
    problem = plain.problem(terms, y, weight, first.diagonal())
    point = solve_additive(problem, guess[0].carried(terms), tol=_GUESS_TOL, max_iter=12).point
    return evidence_fit(plan, terms, y, weight, first, point, _GUIDED_STEPS)


def _informed_slopes(
    plan: AdditivePlan, terms: TermSet, y: Ints, weight: Array, point: AdditivePoint
) -> tuple[Array, Array]:
    """Slopes and curvatures of the plain likelihood at the point, for evidence from one step.

    One row that is badly wrong has a large slope and hardly any curvature: averaged with the
    empirical information, the square of the slope, it cannot make a pair on its own.
    """
    plain = replace(plan, loss=TruncatedLogistic(), C=1.0)
    problem = plain.problem(terms, y, weight, np.zeros(terms.n_coordinates))
    slopes, curves = loss_slopes(problem, point.scores)
    return slopes, 0.5 * (curves + slopes**2 / np.where(weight > 0, weight, 1.0))


def _widened(point: AdditivePoint, terms: TermSet) -> AdditivePoint:
    """The same point with zeros for the terms that were added at the end."""
    g = np.zeros((len(point.coordinates), terms.n_coordinates))
    g[:, : point.coordinates.shape[1]] = point.coordinates
    return AdditivePoint(point.intercept, g, point.scores)


def _largest(
    plan: AdditivePlan,
    smooth: Smoothness,
    point: AdditivePoint,
    y: Ints,
    weight: Array,
    pairs: tuple[Term, ...],
    amount: float,
    most: int,
) -> tuple[Term, ...]:
    """The ``most`` pairs with the largest spread in a fit of all of them at one common amount.

    Beside all others a pair shows what only it tells; alone also what others tell better.
    """
    n, d = len(pairs), len(smooth.terms.terms)
    if n <= most:
        return pairs
    terms = smooth.terms.extended(pairs)
    amounts, weak = smooth.extended(terms, plan.smoothness), np.arange(d + n) >= d
    every = Structure(terms, amounts, np.ones(d + n), _widened(point, terms), weak)
    now = every.at_amount(amount)
    found = solve_at(plan, now, y, weight, 0.0, now.point, _GUESS_TOL).point
    largest = np.argsort(-term_norms(terms, found)[d:], kind="stable")[:most]
    return tuple(pairs[k] for k in np.sort(largest))


@dataclass(frozen=True)
class PairRule:
    """Which pairs become terms: the ``most`` with the largest gain at most.

    All of them are strong if ``forced``, else those whose evidence outweighs the number of pairs
    that were looked at (to the power 1.5, since the amount of smoothness in that evidence was
    itself the best of a grid). Strong pairs have their own smoothness. The others, unless
    ``forced`` or ``alone``, are weak: each too little to be sure of, together often worth it under
    one strong amount. ``together`` is that amount where it is known; None lets few rows tell it.
    """

    grids: PairGrids
    most: int
    forced: bool = False
    alone: bool = False
    together: float | None = None

    def candidates(
        self,
        plan: AdditivePlan,
        singles: TermSet,
        smooth: Smoothness,
        y: Ints,
        weight: Array,
        point: AdditivePoint,
    ) -> tuple[tuple[Term, ...], tuple[Term, ...], float]:
        """Strong pairs, weak pairs and the amount that all pairs together ask for."""
        if self.most == 0:
            return (), (), np.inf
        base = smooth.terms
        slopes, curves = _informed_slopes(plan, base, y, weight, point)
        norms = term_norms(base, point)
        free = [t for t in range(len(base.terms)) if plan.sign_of(base.terms[t].columns) == 0]
        best = sorted(free, key=lambda t: -norms[t])[:_PAIR_COLUMNS]
        columns = np.array(sorted(base.terms[t].columns[0] for t in best), dtype=np.int64)
        pairs, gains = screen_pairs(singles, columns, slopes, curves)
        if self.forced:
            return self.grids(pairs[: int((gains[: self.most] > 0).sum())]), (), np.inf
        every = self._every(singles, columns, len(pairs), float(weight.sum()))
        together = self.together
        if together is None:
            told = plan.smoothness is None and not (every or self.alone or any(plan.signs))
            diagonal = smooth.diagonal()
            together = amount_together(base, diagonal, slopes, curves) if told else np.inf
        most = self.most if together == np.inf else _TOGETHER_MOST
        more = self.grids(pairs if every else pairs[: int((gains[:most] > 0).sum())])
        if together < np.inf:
            most = TOGETHER_PAIRS * len(base.terms)
            more = _largest(plan, smooth, point, y, weight, more, together, most)
        table = log_bayes_factors(singles.extended(more), len(singles.terms), slopes, curves)
        strong = table.max(axis=1, initial=-np.inf) > _PAIR_EVIDENCE * np.log(max(1, len(pairs)))
        weak = ~strong & np.isfinite(table).all(axis=1) & (not self.alone)
        return tuple(compress(more, strong)), tuple(compress(more, weak)), together

    def _every(self, singles: TermSet, columns: Ints, n_pairs: int, total_weight: float) -> bool:
        """So few pairs of so few cells that the rows can tell all of them at once."""
        if self.alone or n_pairs > _FEW_PAIRS:
            return False
        most = [min(singles.coarse[j].axis.size - 1, singles.rank[j]) for j in columns]
        cells = np.array(most, dtype=float)
        freedom = cells.sum() + 0.5 * (cells.sum() ** 2 - (cells**2).sum())
        return bool(2.0 * freedom <= total_weight)


def wide_screen(plan: AdditivePlan, singles: TermSet, y: Ints, weight: Array) -> list[int]:
    """Terms to keep: all of them, or those that enter first on a path with equal weights."""
    seen = np.flatnonzero(singles.rank > 0)
    if len(seen) <= WIDE:
        return [int(t) for t in seen]
    smooth = Smoothness.start(singles, 10.0)
    problem = replace(plan, loss=TruncatedLogistic(), C=1.0).problem(
        singles, y, weight, smooth.diagonal()
    )
    ones = np.ones(len(singles.terms))
    top = largest_group_penalty(problem, ones)
    point, kept = None, seen[:0]
    for share in 0.75 ** np.arange(1, 16):
        found = solve_additive(replace(problem, group=share * top * ones), point, tol=1e-3)
        point = found.point
        on = np.flatnonzero(problem.penalty.norms(point.coordinates) > 0)
        if len(on) > _KEPT and len(kept):
            break
        kept = on
    return [int(t) for t in kept]


def solve_at(
    plan: AdditivePlan,
    structure: Structure,
    y: Ints,
    weight: Array,
    ratio: float,
    start: AdditivePoint | None,
    tol: float,
    polish: bool = False,
) -> Solution:
    """The convex problem of one structure at one share of its largest group penalty."""
    problem = plan.problem(structure.terms, y, weight, structure.diagonal)
    if ratio > 0.0:
        top = largest_group_penalty(problem, structure.group_weights)
        problem = replace(problem, group=ratio * top * structure.group_weights)
    return solve_additive(problem, start, tol=tol, max_iter=200, polish=polish)


def cheapest_start(
    plan: AdditivePlan,
    structure: Structure,
    y: Ints,
    weight: Array,
    starts: Sequence[AdditivePoint],
) -> AdditivePoint:
    """The point with the least criterion.

    A fit on other rows is a good start, or a hopeless one where a class is missing among them.
    """
    problem = plan.problem(structure.terms, y, weight, structure.diagonal)
    state = LossState(problem, 1e-9)
    values = [state.loss(p.scores) + problem.penalty.value(p.coordinates) for p in starts]
    return starts[int(np.argmin(values))]


def support(terms: TermSet, point: AdditivePoint) -> Ints:
    """Terms whose spread is not negligible beside the largest one."""
    norms = term_norms(terms, point)
    return np.flatnonzero(norms > _NEGLIGIBLE * norms.max(initial=0.0))
