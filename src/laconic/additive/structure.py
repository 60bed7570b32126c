"""Terms of a sparse additive model with their smoothness and group weights, and fits of them.

One *structure* is a list of terms with their smoothness and their adaptive group weights
1 / |g_t| (Zou, *JASA* 101, 2006), all learned on the rows it is given; its path raises the group
penalty from none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.additive.criterion import (
    AdditivePoint,
    AdditiveProblem,
    LossState,
    largest_group_penalty,
)
from laconic.additive.evidence import Smoothness, roughness_units
from laconic.additive.solver import solve_additive
from laconic.additive.terms import TermSet
from laconic.core.gray_zone import TruncatedLogistic
from laconic.core.solution import Solution

FEW_ROWS = 2_500
"""Fewer rows hardly ever justify more candidate pairs than columns, or tell amounts of smoothness
of columns apart; their held-out losses are too uncertain to weigh terms with."""

GUESS_TOL = 1e-2
"""Relative gap of fits that are not kept."""

_LEAST_NORM = 1e-3
_NEGLIGIBLE = 1e-3
_MOST_GROWN = 3.0


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
        self, terms: TermSet, y: Ints, weight: Floats, diagonal: Floats, group: Floats | None = None
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

    def carried(self, terms: TermSet, shrink: Floats | None = None) -> AdditivePoint:
        """The point on other terms, times ``shrink``: zero for those that are not known."""
        from laconic.additive._numba_rows import score_change

        own, point = self.smoothness.terms, self.point
        known = own.place_of
        g = np.zeros((len(point.coordinates), terms.n_coordinates))
        for t, term in enumerate(terms.terms):
            if term.columns in known:
                at, to, rank = own.start[known[term.columns]], terms.start[t], terms.rank[t]
                g[:, to : to + rank] = point.coordinates[:, at : at + rank]
        if shrink is not None:
            g *= shrink
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
    group_weights: Floats
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
    def diagonal(self) -> Floats:
        return self.smoothness.diagonal()

    def part(self, kept: Ints, point: AdditivePoint) -> Structure:
        """Only the kept terms, with their coordinates at ``point``."""
        from laconic.additive._numba_rows import score_change

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


def term_norms(terms: TermSet, point: AdditivePoint) -> Floats:
    """|g_t| of every term."""
    squares = (point.coordinates**2).sum(axis=0)
    return np.sqrt(np.bincount(terms.owner, squares, minlength=len(terms.terms)))


def adaptive_weights(terms: TermSet, point: AdditivePoint) -> Floats:
    return 1.0 / np.maximum(term_norms(terms, point), _LEAST_NORM)


def widened_to(point: AdditivePoint, terms: TermSet) -> AdditivePoint:
    """The same point with zeros for the terms that were added at the end."""
    g = np.zeros((len(point.coordinates), terms.n_coordinates))
    g[:, : point.coordinates.shape[1]] = point.coordinates
    return AdditivePoint(point.intercept, g, point.scores)


def solve_at(
    plan: AdditivePlan,
    structure: Structure,
    y: Ints,
    weight: Floats,
    ratio: float,
    start: AdditivePoint | None,
    tol: float,
    polish: bool = False,
    max_iter: int = 200,
) -> Solution:
    """The convex problem of one structure at one share of its largest group penalty."""
    problem = plan.problem(structure.terms, y, weight, structure.diagonal)
    if ratio > 0.0:
        top = largest_group_penalty(problem, structure.group_weights)
        problem = replace(problem, group=ratio * top * structure.group_weights)
    return solve_additive(problem, start, tol=tol, max_iter=max_iter, polish=polish)


def stepped_to(
    plan: AdditivePlan,
    structure: Structure,
    y: Ints,
    weight: Floats,
    ratios: Sequence[float],
    point: AdditivePoint,
) -> AdditivePoint:
    """The path from ``point`` through growing group penalties, one Newton step for each.

    It only tells which terms stay, and one step tells that: on the quadratic model of the fit
    without group penalty an adaptive penalty keeps the same terms (Wang and Leng, *JASA* 102,
    2007).
    """
    for ratio in ratios:
        point = solve_at(plan, structure, y, weight, ratio, point, GUESS_TOL, max_iter=1).point
    return point


def near_start(
    plan: AdditivePlan, structure: Structure, y: Ints, weight: Floats, guess: Stage | None
) -> AdditivePoint:
    """The point of the structure, or that of the guess if its criterion is less.

    A coordinate of the guess that is now penalised by D for D0 moves as it would alone: times
    (h + D0) / (h + D), with h the curvature of all rows, and at most times ``_MOST_GROWN``.
    """
    if guess is None:
        return structure.point
    problem = plan.problem(structure.terms, y, weight, structure.diagonal)
    state = LossState(problem, 1e-9)
    state.loss(guess.point.scores)
    h, D = state.curves.sum(axis=1, keepdims=True), structure.diagonal
    before = structure.smoothness.guided(guess.smoothness).diagonal()
    carried = guess.carried(structure.terms, np.minimum(_MOST_GROWN, (h + before) / (h + D)))
    return cheapest(problem, (structure.point, carried))


def cheapest(problem: AdditiveProblem, starts: Sequence[AdditivePoint]) -> AdditivePoint:
    """The point with the least criterion.

    A fit on other rows is a good start, or a hopeless one where a class is missing among them.
    """
    state = LossState(problem, 1e-9)
    values = [state.loss(p.scores) + problem.penalty.value(p.coordinates) for p in starts]
    return starts[int(np.argmin(values))]


def support(terms: TermSet, point: AdditivePoint) -> Ints:
    """Terms whose spread is not negligible beside the largest one."""
    norms = term_norms(terms, point)
    return np.flatnonzero(norms > _NEGLIGIBLE * norms.max(initial=0.0))
