"""Terms of a sparse additive model with their smoothness and group weights, and fits of them.

One *structure* is a list of terms with their smoothness and their adaptive group weights
1 / |g_t| (Zou, *JASA* 101, 2006), all learned on the rows of one *task*; its path raises the group
penalty from none.

The smoothness of every term is found by marginal likelihood, inside the Newton iterations. The
quadratic penalty of a term is a normal prior with two variances: one for its bend, one for its
linear part. Both follow the generalised Fellner-Schall step (Wood and Fasiolo, *Biometrics* 73,
2017),

    l <- (f + a) / (e + a / m),    f = rank - l tr(V S),  e = g'S g,  V = (H + D)^-1,

which raises the marginal likelihood of the quadratic model under a gamma prior of mean m for the
smoothing parameter l, worth a degrees of freedom. V is taken term by term: the posterior covariance
between terms is left out, which keeps a step at the price of a sweep.

The prior is weak where there are many rows: m = 1 for a line, and so large for a bend that it may
become as smooth as it likes. A few hundred rows cannot tell the smoothing parameters of many
columns apart: each then frees or removes its term by chance. There the parameters of single columns
are *pooled*: they come from one population, whose m and a all columns estimate together (as the
moderated variances of Smyth, *Statistical Applications in Genetics and Molecular Biology* 3, 2004):
e l is chi-squared with f degrees of freedom, so that m e / f follows Fisher's F with f and a.

How a shape may bend is chosen for each term as well. With r_j the roughness of coordinate j over
that of the smoothest curved one, the prior precision of coordinate j is l r_j^p: p = 1 is the
penalty on second differences (a shape that bends slowly), p = 1/2 one on first differences (a shape
that wanders, like a random walk), p = 1/4 hardly asks neighbours to agree. The power with the
largest marginal likelihood wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from laconic._typing import Floats, Ints
from laconic.additive import tuning
from laconic.additive.criterion import (
    AdditivePoint,
    AdditiveProblem,
    CurvatureBlocks,
    LossState,
    largest_group_penalty,
)
from laconic.additive.row_newton import few_carry_most, few_directions
from laconic.additive.solver import solve_additive
from laconic.additive.terms import TermSet
from laconic.core.losses import Solution, TruncatedLogistic


@dataclass
class Smoothness:
    """Smoothing parameters: ``bend`` of the rough coordinates of a term, ``line`` of the others.

    ``power`` is the power of the roughness that ``bend`` multiplies; ``pooled`` says whether single
    columns share a prior.
    """

    terms: TermSet
    bend: Floats
    line: Floats
    power: Floats
    pooled: bool = False

    @classmethod
    def start(cls, terms: TermSet, fixed: float | None = None, pooled: bool = False) -> Smoothness:
        """Equal parameters: ``fixed``, on second differences, or a first guess."""
        return cls(terms, *_equal(terms, 0, tuning.FIRST_SMOOTHING, fixed), pooled)

    def copy(self) -> Smoothness:
        return replace(self, bend=self.bend.copy(), line=self.line.copy(), power=self.power.copy())

    def extended(
        self, terms: TermSet, fixed: float | None = None, guess: Floats | None = None
    ) -> Smoothness:
        """The same parameters for the first terms, a (larger) first guess for the added ones.

        ``guess``, if given, are theirs in units of their terms, at the middle power.
        """
        known = len(self.terms.terms)
        bend, line, power = _equal(terms, known, tuning.FIRST_PAIR_SMOOTHING, fixed)
        if guess is not None and fixed is None:
            bend = guess / roughness_units(terms)[known:]
            power = np.full(len(guess), tuning.WANDERING)
        return Smoothness(
            terms,
            np.append(self.bend, bend),
            np.append(self.line, line),
            np.append(self.power, power),
            self.pooled,
        )

    def part(self, terms: TermSet, kept: Ints) -> Smoothness:
        """The parameters of the kept terms, which are ``terms``."""
        return Smoothness(terms, self.bend[kept], self.line[kept], self.power[kept], self.pooled)

    def guided(self, other: Smoothness) -> Smoothness:
        """The parameters of ``other`` where it has a term of the same columns."""
        known = other.terms.place_of
        out = self.copy()
        for t, term in enumerate(self.terms.terms):
            if term.columns in known:
                out.bend[t] = other.bend[known[term.columns]]
                out.line[t] = other.line[known[term.columns]]
                out.power[t] = other.power[known[term.columns]]
        return out

    @cached_property
    def units(self) -> Floats:
        return roughness_units(self.terms)

    @cached_property
    def _relative(self) -> Floats:
        """Roughness of every coordinate, with the smoothest curved one of its term as the unit."""
        return np.asarray(self.terms.rough / self.units[self.terms.owner])

    def roughness(self) -> Floats:
        """What ``bend`` multiplies: the unit of the term times the power of the relative one."""
        owner, ratio = self.terms.owner, self._relative
        return np.asarray(np.where(ratio > 0, self.units[owner] * ratio ** self.power[owner], 0.0))

    def diagonal(self) -> Floats:
        """Quadratic penalty of every coordinate."""
        owner, rough = self.terms.owner, self.roughness()
        return np.where(rough > 0, self.bend[owner] * rough, self.line[owner])

    def update(self, point: Floats, blocks: CurvatureBlocks) -> None:
        """One Fellner-Schall step for the terms of the blocks."""
        from laconic.additive._numba_terms import evidence_sums

        work, packed = blocks.work, self.terms.packed[1]
        sums = np.empty((len(work), 6))
        much = tuning.ON_THEIR_OWN
        evidence_sums(packed, blocks, self.diagonal(), self.roughness(), point, much, sums)
        alike = np.ones(len(work))
        parts = (self.bend, self.units[work], sums[:, :3]), (self.line, alike, sums[:, 3:])
        found = [_freedom_and_energy(part, own[work], unit) for own, unit, part in parts]
        pooled = self.pooled & (packed.second[work] < 0)
        both = (np.concatenate([part[k][pooled] for part in found]) for k in (0, 1))
        common = population(*both) if pooled.any() else (tuning.WEAK_PRIOR, 1.0)
        for (own, unit, part), (freedom, energy) in zip(parts, found, strict=True):
            prior = np.where(pooled, common[0], tuning.WEAK_PRIOR)
            mean = np.where(pooled, common[1], unit**2)
            old = own[work]
            # Fellner and Schall (Wood and Fasiolo, 2017), with a gamma prior of ``prior`` freedoms
            wanted = (freedom + prior) / (energy + prior / mean) / unit
            wanted = np.clip(wanted, tuning.LEAST_SMOOTHING / unit, tuning.MOST_SMOOTHING / unit)
            # the Hessian is that of the old parameters: far from them the step knows nothing
            wanted = np.clip(wanted, old / tuning.MOST_CHANGE, old * tuning.MOST_CHANGE)
            own[work] = np.where(part[:, 0] > 0, wanted, old)

    def choose_powers(self, point: Floats, blocks: CurvatureBlocks) -> None:
        """The power of every term of the blocks with the largest evidence, and its best parameter.

        At the optimum of the quadratic model, b = (H + D) g is the slope of the loss alone; with
        the diagonal h of H, the log evidence of precisions d is
        (1/2) sum_j [b_j^2 / (h_j + d_j) - log(1 + h_j / d_j)].
        """
        work = blocks.work
        slope, h, place = self._data_slopes(point, blocks)
        ratio, curved = self._relative[place], self._relative[place] > 0
        starts = np.concatenate([[0], np.cumsum(self.terms.rank[work])[:-1]]).astype(np.int64)
        best = np.full((len(tuning.POWERS), len(work)), -np.inf)
        best_bend = np.ones_like(best)
        for p, power in enumerate(tuning.POWERS):
            rough = np.where(curved, ratio**power, 1.0)
            for bend in tuning.POWER_GRID:
                d = bend * rough
                value = 0.5 * (slope**2 / (h + d) - np.log1p(h / d)).sum(axis=0)
                found = np.add.reduceat(np.where(curved, value, 0.0), starts)
                better = found > best[p]
                best[p, better], best_bend[p, better] = found[better], bend
        own = np.argmin(np.abs(np.subtract.outer(tuning.POWERS, self.power[work])), axis=0)
        at = np.arange(len(work))
        other = best.argmax(axis=0)
        # a margin against turning back and forth between two powers of equal evidence
        moved = best[other, at] > best[own, at] + tuning.POWER_MARGIN
        chosen, to = work[moved], other[moved]
        self.power[chosen] = np.array(tuning.POWERS)[to]
        self.bend[chosen] = best_bend[to, at[moved]] / self.units[chosen]

    def _data_slopes(self, point: Floats, blocks: CurvatureBlocks) -> tuple[Floats, Floats, Ints]:
        """(H + D) g and the diagonal of H, both (scores, coordinates), and the coordinates."""
        D, K = self.diagonal(), len(point)
        slopes, diagonals, places = [], [], []
        for w, t in enumerate(blocks.work):
            r, s = int(self.terms.rank[t]), int(self.terms.start[t])
            block, g = blocks.of(w, K, r), point[:, s : s + r]
            slopes.append(np.einsum("kij,kj->ki", block, g) + D[s : s + r] * g)
            diagonals.append(np.diagonal(block, axis1=1, axis2=2))
            places.append(np.arange(s, s + r))
        return np.hstack(slopes), np.hstack(diagonals), np.concatenate(places)


def _freedom_and_energy(sums: Floats, smoothing: Floats, unit: Floats) -> tuple[Floats, Floats]:
    """Degrees of freedom that rows have determined, and the energy they found there."""
    rank, variance, energy = sums.T
    return np.maximum(rank - smoothing * variance, 0.0), np.where(rank > 0, energy / unit, 0.0)


def population(freedom: Floats, energy: Floats) -> tuple[float, float]:
    """Degrees of freedom and mean of the gamma population that many smoothing parameters come from.

    With ``freedom`` numbers of ``energy`` for each: the density of m e / f is Fisher's F with f
    and a, largest in m where

        m sum_t (f_t + a) e_t / (a + m e_t) = sum_t f_t,

    up to the weak prior of mean one.
    """
    some, weak = freedom > tuning.LEAST_FREEDOM, tuning.WEAK_PRIOR
    f, e, a = freedom[some], energy[some], tuning.PRIOR_FREEDOMS[:, None]
    mean = np.full((len(a), 1), (f.sum() + weak) / (e.sum() + weak))
    for _ in range(50):
        shared = ((f + a) * e / (a + mean * e)).sum(axis=1, keepdims=True)
        before, mean = mean, (f.sum() + weak) / (shared + weak)
        if (np.abs(mean - before) <= 1e-3 * mean).all():
            break
    densities = (
        gammaln(0.5 * (f + a))
        - gammaln(0.5 * a)
        + 0.5 * (f * np.log(mean) + a * np.log(a) - (f + a) * np.log(a + mean * e))
    )
    best = int(densities.sum(axis=1).argmax())
    return float(a[best, 0]), float(mean[best, 0])


def _equal(
    terms: TermSet, first: int, guess: float, fixed: float | None
) -> tuple[Floats, Floats, Floats]:
    units = roughness_units(terms)[first:]
    bend = guess if fixed is None else fixed
    return bend / units, np.full(len(units), min(bend, 1.0)), np.full(len(units), tuning.BENDING)


def roughness_units(terms: TermSet) -> Floats:
    """Roughness of the smoothest curved shape of unit variance: the unit of a term's parameter."""
    out = np.full(len(terms.terms), np.inf)
    bent = terms.rough > 0
    np.minimum.at(out, terms.owner[bent], terms.rough[bent])
    return np.where(np.isfinite(out), out, 1.0)


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
    def n_rows(self) -> int:
        return len(self.y)

    @property
    def few_rows(self) -> bool:
        return len(self.y) < tuning.FEW_ROWS

    @property
    def fold_tol(self) -> float:
        """Relative gap to which fits are solved that are compared on held-out rows."""
        return tuning.FOLD_TOL_OF_FEW if self.few_rows else tuning.FOLD_TOL

    def most_steps(self, otherwise: int, *, fold: bool) -> int:
        """Of a fit on all rows or on a fold: ``otherwise`` unless weights span decades."""
        if not few_carry_most(self.weight):
            return otherwise
        kinked = max(self.plan.loss.heights) > 0.0
        if few_directions(self.n_rows, self.plan.n_classes) and not kinked:
            return tuning.ROW_FOLD_STEPS if fold else tuning.ROW_STEPS
        return tuning.UNEVEN_FOLD_STEPS if fold else tuning.UNEVEN_STEPS

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
        tol, steps = tuning.GUESS_TOL, self.plain.most_steps(tuning.GUESS_STEPS, fold=True)
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
