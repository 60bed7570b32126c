"""Terms of a sparse additive model with their smoothness and group weights, and fits of them.

One *structure* is a list of terms with their smoothness and their adaptive group weights
1 / |g_t| (Zou, *JASA* 101, 2006), all learned on the rows of one *task*; its path raises the group
penalty from none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.additive import tuning
from laconic.additive.criterion import (
    AdditivePoint,
    AdditiveProblem,
    CurvatureBlocks,
    LossState,
    largest_group_penalty,
)
from laconic.additive.evidence import Smoothness, roughness_units
from laconic.additive.solver import solve_additive
from laconic.additive.terms import TermSet
from laconic.core.gray_zone import TruncatedLogistic
from laconic.core.solution import Solution


@dataclass(frozen=True)
class AdditivePlan:
    """What is fitted, apart from the group penalty and the number of pairs."""

    n_classes: int
    loss: TruncatedLogistic
    C: float = 1.0
    smoothness: float | None = None
    signs: tuple[int, ...] = ()
    relaxed: bool = True
    forbidden: frozenset[tuple[int, int]] = frozenset()
    """Pairs of columns, the smaller place first, that enter no term together."""

    def sign_of(self, columns: tuple[int, ...]) -> int:
        return self.signs[columns[0]] if self.signs and len(columns) == 1 else 0


@dataclass(frozen=True)
class Task:
    """Class codes and weights of the rows, and what is fitted on them."""

    plan: AdditivePlan
    y: Ints
    weight: Floats

    @cached_property
    def plain(self) -> Task:
        """With the plain likelihood, whatever the zone: a truncated one has no evidence."""
        return replace(self, plan=replace(self.plan, loss=TruncatedLogistic(), C=1.0))

    @property
    def few_rows(self) -> bool:
        return len(self.y) < tuning.FEW_ROWS

    @property
    def fold_tol(self) -> float:
        """Relative gap to which fits are solved that are compared on held-out rows."""
        return tuning.FOLD_TOL_OF_FEW if self.few_rows else tuning.FOLD_TOL

    def problem(
        self, terms: TermSet, diagonal: Floats, group: Floats | None = None
    ) -> AdditiveProblem:
        plan = self.plan
        group = np.zeros(len(terms.terms)) if group is None else group
        signs = np.array([plan.sign_of(t.columns) for t in terms.terms], dtype=np.int64)
        weight = plan.C * self.weight
        return AdditiveProblem(
            terms, self.y, weight, group, diagonal, plan.loss, plan.n_classes, signs
        )

    def solve(
        self,
        structure: Structure,
        ratio: float,
        start: AdditivePoint | None,
        tol: float,
        polish: bool = False,
        max_iter: int = tuning.MOST_STEPS,
    ) -> Solution:
        """The convex problem of one structure at one share of its largest group penalty."""
        problem = self.problem(structure.terms, structure.diagonal)
        if ratio > 0.0:
            top = largest_group_penalty(problem, structure.group_weights)
            problem = replace(problem, group=ratio * top * structure.group_weights)
        return solve_additive(problem, start, tol=tol, max_iter=max_iter, polish=polish)

    def stepped(
        self, structure: Structure, ratios: Sequence[float], point: AdditivePoint
    ) -> AdditivePoint:
        """The path from ``point`` through growing group penalties, one Newton step for each.

        It only tells which terms stay, and one step tells that: on the quadratic model of the fit
        without group penalty an adaptive penalty keeps the same terms (Wang and Leng, *JASA* 102,
        2007).
        """
        for ratio in ratios:
            point = self.solve(structure, ratio, point, tuning.GUESS_TOL, max_iter=1).point
        return point

    def evidence_fit(
        self,
        smoothness: Smoothness,
        start: AdditivePoint | None = None,
        max_iter: int = tuning.SINGLE_STEPS,
    ) -> Stage:
        """Fit without group penalty; smoothing parameters by marginal likelihood unless given."""
        problem = self.plain.problem(smoothness.terms, smoothness.diagonal())
        tol = tuning.EVIDENCE_TOL
        if self.plan.smoothness is not None:
            return Stage(smoothness, solve_additive(problem, start, tol=tol).point)
        found = smoothness.copy()
        step = 0

        def update(g: Floats, blocks: CurvatureBlocks) -> Floats:
            nonlocal step
            if g.any() and len(blocks.work):  # evidence may have switched all terms off
                if step % tuning.POWER_STEPS == tuning.POWER_STEPS - 1:
                    found.choose_powers(g, blocks)
                found.update(g, blocks)
            step += 1
            return found.diagonal()

        fit = solve_additive(problem, start, tol=tol, max_iter=max_iter, on_curvature=update)
        return Stage(found, fit.point)

    def guided_fit(self, first: Smoothness, guess: Stage) -> Stage:
        """The same from a guess: a fit at its parameters, then few steps of the evidence."""
        first = first.guided(guess.smoothness)
        problem, start = (
            self.plain.problem(first.terms, first.diagonal()),
            guess.carried(first.terms),
        )
        tol, steps = tuning.GUESS_TOL, tuning.GUESS_STEPS
        point = solve_additive(problem, start, tol=tol, max_iter=steps).point
        return self.evidence_fit(first, point, tuning.GUIDED_STEPS)

    def near_start(self, structure: Structure, guess: Stage | None) -> AdditivePoint:
        """The point of the structure, or that of the guess if its criterion is less.

        A fit on other rows is a good start, or a hopeless one where a class is missing among them.
        A coordinate of the guess that is now penalised by D for D0 moves as it would alone: times
        (h + D0) / (h + D), with h the curvature of all rows, and at most ``MOST_GROWN`` times.
        """
        if guess is None:
            return structure.point
        problem = self.problem(structure.terms, structure.diagonal)
        state = LossState(problem, 1e-9)
        state.loss(guess.point.scores)
        h, D = state.curves.sum(axis=1, keepdims=True), structure.diagonal
        before = structure.smoothness.guided(guess.smoothness).diagonal()
        shrink = np.minimum(tuning.MOST_GROWN, (h + before) / (h + D))
        starts = structure.point, guess.carried(structure.terms, shrink)
        values = [state.loss(p.scores) + problem.penalty.value(p.coordinates) for p in starts]
        return starts[int(np.argmin(values))]


@dataclass(frozen=True)
class Stage:
    """Smoothness and point at the end of one search by evidence: single terms, then pairs."""

    smoothness: Smoothness
    point: AdditivePoint

    def carried(self, terms: TermSet, shrink: Floats | None = None) -> AdditivePoint:
        """The point on other terms, times ``shrink``: zero for those that are not known."""
        own, point = self.smoothness.terms, self.point
        known = own.place_of
        g = np.zeros((len(point.coordinates), terms.n_coordinates))
        for t, term in enumerate(terms.terms):
            if term.columns in known:
                at, to, rank = own.start[known[term.columns]], terms.start[t], terms.rank[t]
                g[:, to : to + rank] = point.coordinates[:, at : at + rank]
        if shrink is not None:
            g *= shrink
        return AdditivePoint(point.intercept, g, terms.scores(point.intercept, g))


@dataclass(frozen=True)
class Structure:
    """Terms, their quadratic penalties, their group weights and the fit without group penalty.

    ``weak`` marks the pairs that share one smoothing parameter instead of having their own;
    ``together`` is that parameter if the evidence of all pairs together asks for one.
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
        terms = self.terms.subset([int(t) for t in kept])
        inside = np.isin(self.terms.owner, kept)
        g = np.ascontiguousarray(point.coordinates[:, inside])
        start = AdditivePoint(point.intercept, g, terms.scores(point.intercept, g))
        smoothness = self.smoothness.part(terms, kept)
        return Structure(terms, smoothness, self.group_weights[kept], start, self.weak[kept])

    def scaled(self, factor: float) -> Structure:
        """All smoothing parameters times ``factor``."""
        own = self.smoothness
        return replace(
            self, smoothness=replace(own, bend=factor * own.bend, line=factor * own.line)
        )

    def widened(self, point: AdditivePoint) -> AdditivePoint:
        """A point without the weak pairs as one with them, at zero."""
        g = np.zeros((len(point.coordinates), self.terms.n_coordinates))
        g[:, ~self.weak[self.terms.owner]] = point.coordinates
        return AdditivePoint(point.intercept, g, point.scores)

    def with_weak(self, smoothing: float, point: AdditivePoint | None = None) -> Structure:
        """Weak pairs at one common smoothing parameter; without them when it is infinite."""
        point = self.point if point is None else point
        if not np.isfinite(smoothing):
            kept = np.flatnonzero(~self.weak)
            return self.part(kept, point) if self.weak.any() else replace(self, point=point)
        units = roughness_units(self.terms)
        bend, line = self.smoothness.bend, self.smoothness.line
        if self.every_pair:
            # what all pairs tell together needs single terms as free as they are
            bend, line = np.minimum(bend, smoothing / units), np.minimum(line, smoothing)
        smoothness = replace(
            self.smoothness,
            bend=np.where(self.weak, smoothing / units, bend),
            line=np.where(self.weak, smoothing, line),
        )
        weights = adaptive_weights(self.terms, point)
        return Structure(self.terms, smoothness, weights, point, self.weak)


def term_norms(terms: TermSet, point: AdditivePoint) -> Floats:
    """|g_t| of every term."""
    squares = (point.coordinates**2).sum(axis=0)
    return np.sqrt(np.bincount(terms.owner, squares, minlength=len(terms.terms)))


def adaptive_weights(terms: TermSet, point: AdditivePoint) -> Floats:
    return 1.0 / np.maximum(term_norms(terms, point), tuning.LEAST_NORM)


def extended_to(point: AdditivePoint, terms: TermSet) -> AdditivePoint:
    """The same point with zeros for the terms that were added at the end."""
    g = np.zeros((len(point.coordinates), terms.n_coordinates))
    g[:, : point.coordinates.shape[1]] = point.coordinates
    return AdditivePoint(point.intercept, g, point.scores)


def support(terms: TermSet, point: AdditivePoint) -> Ints:
    """Terms whose spread is not negligible beside the largest one."""
    norms = term_norms(terms, point)
    return np.flatnonzero(norms > tuning.NEGLIGIBLE_TERM * norms.max(initial=0.0))
