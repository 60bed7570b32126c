"""From terms to a sparse additive model: smoothness, candidate pairs, a path of group penalties.

One *structure* is a list of terms with their smoothness and their adaptive group weights
1 / |g_t| (Zou, *JASA* 101, 2006), all learned on the rows it is given; its path lowers the group
penalty from the empty model. Cross-validation repeats all of it in every fold: pairs are screened
again, weights learned again, so that held-out rows know nothing of the choice they judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
from laconic.solvers.additive_evidence import Smoothness
from laconic.solvers.additive_pairs import log_bayes_factors, screen_pairs
from laconic.solvers.additive_terms import Term, TermSet, pair_terms
from laconic.solvers.solution import Solution

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

RATIOS = (0.0, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
"""Group penalties of the path, as shares of the one that empties the model."""

WIDE = 400
"""Above this number of columns, a first path with equal weights keeps at most ``_KEPT`` of them."""

_KEPT = 120
_LEAST_NORM = 1e-3
_PAIR_COLUMNS = 120


@dataclass(frozen=True)
class AdditivePlan:
    """What is fitted, apart from the group penalty and the number of pairs."""

    n_classes: int
    loss: TruncatedLogistic
    C: float = 1.0
    smoothness: float | None = None
    signs: tuple[int, ...] = ()

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
class Structure:
    """Terms, their quadratic penalties, their group weights and the fit without group penalty."""

    terms: TermSet
    smoothness: Smoothness
    group_weights: Array
    point: AdditivePoint

    @property
    def diagonal(self) -> Array:
        return self.smoothness.diagonal()


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

    def update(g: Array, H: Array, H_start: Ints, work: Ints) -> Array:
        if g.any():
            amounts.update(g, H, H_start, work)
        return amounts.diagonal()

    found = solve_additive(problem, start, tol=1e-4, max_iter=max_iter, on_curvature=update)
    return amounts, found.point


def build(
    plan: AdditivePlan,
    singles: TermSet,
    y: Ints,
    weight: Array,
    pairs: PairRule,
    guess: Array | None = None,
) -> Structure:
    """Terms, smoothness and group weights from the rows of ``singles``.

    ``guess`` = (bend, line) amounts of all single terms, where the evidence starts.
    """
    kept = wide_screen(plan, singles, y, weight)
    base = singles.subset(kept)
    first = Smoothness.start(base, plan.smoothness)
    if guess is not None:
        first = Smoothness(base, guess[0, kept], guess[1, kept])
    n_iter = 12 if guess is None else 7
    smooth, point = evidence_fit(plan, base, y, weight, first, max_iter=n_iter)
    more = pairs.candidates(plan, singles, base, y, weight, point)
    if more:
        terms = base.extended(more)
        g = np.zeros((len(point.coordinates), terms.n_coordinates))
        g[:, : base.n_coordinates] = point.coordinates
        start = AdditivePoint(point.intercept, g, point.scores)
        smooth, point = evidence_fit(
            plan, terms, y, weight, smooth.extended(terms, plan.smoothness), start, n_iter
        )
    terms = smooth.terms
    squares = (point.coordinates**2).sum(axis=0)
    norms = np.sqrt(np.bincount(terms.owner, squares, minlength=len(terms.terms)))
    return Structure(terms, smooth, 1.0 / np.maximum(norms, _LEAST_NORM), point)


@dataclass(frozen=True)
class PairRule:
    """Which pairs become terms: ``most`` at most; all of them if ``forced``, else those whose
    evidence outweighs the number of pairs that were looked at."""

    most: int
    forced: bool = False

    def candidates(
        self,
        plan: AdditivePlan,
        singles: TermSet,
        base: TermSet,
        y: Ints,
        weight: Array,
        point: AdditivePoint,
    ) -> tuple[Term, ...]:
        if self.most == 0:
            return ()
        plain = replace(plan, loss=TruncatedLogistic(), C=1.0)
        problem = plain.problem(base, y, weight, np.zeros(base.n_coordinates))
        slopes, curves = loss_slopes(problem, point.scores)
        # one row that is badly wrong has a large slope and hardly any curvature: averaged with the
        # empirical information, the square of the slope, it cannot make a pair on its own
        curves = 0.5 * (curves + slopes**2 / np.where(weight > 0, weight, 1.0))
        norms = problem.penalty.norms(point.coordinates)
        free = [t for t in range(len(base.terms)) if plan.sign_of(base.terms[t].columns) == 0]
        best = sorted(free, key=lambda t: -norms[t])[:_PAIR_COLUMNS]
        columns = np.array(sorted(base.terms[t].columns[0] for t in best), dtype=np.int64)
        chosen = screen_pairs(singles, columns, slopes, curves, self.most)
        more = pair_terms(singles, chosen, weight)
        if self.forced:
            return more
        looked_at = max(1.0, 0.5 * len(columns) * (len(columns) - 1))
        gains = log_bayes_factors(singles.extended(more), len(singles.terms), slopes, curves)
        return tuple(t for t, gain in zip(more, gains, strict=True) if gain > np.log(looked_at))


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
    top = largest_group_penalty(problem, structure.group_weights)
    group = ratio * top * structure.group_weights
    ready = replace(problem, group=group)
    return solve_additive(ready, start, tol=tol, max_iter=200, polish=polish)


@dataclass(frozen=True)
class PathPoint:
    """One group penalty: losses of the held-out rows, their weights, the mean number of terms."""

    ratio: float
    losses: Array
    log_loss: float
    weight: Array
    n_terms: float

    @property
    def mean(self) -> float:
        return float(self.weight @ self.losses / self.weight.sum())

    def within_one_error(self, best: PathPoint) -> bool:
        """Paired by row: is the mean difference from ``best`` less than its standard error?"""
        apart = self.losses - best.losses
        total = float(self.weight.sum())
        mean = float(self.weight @ apart) / total
        variance = float(self.weight @ (apart - mean) ** 2) / total
        return bool(mean <= np.sqrt(variance / total))


@dataclass(frozen=True)
class FoldPath:
    """What one fold brings: held-out scores, numbers of terms and shapes along its path."""

    held_out: Ints
    scores: tuple[Array, ...]
    n_terms: tuple[int, ...]
    terms: TermSet
    coordinates: tuple[Array, ...]


def fold_path(
    plan: AdditivePlan,
    singles: TermSet,
    y: Ints,
    weight: Array,
    held_out: Ints,
    pairs: PairRule,
    ratios: Sequence[float],
    guess: Array | None,
) -> FoldPath:
    """Repeat everything without the held-out rows, then score them along the path."""
    inside = weight.copy()
    inside[held_out] = 0.0
    structure = build(plan, singles, y, inside, pairs, guess)
    point = structure.point
    scores, counts, shapes = [], [], []
    for ratio in ratios:
        point = solve_at(plan, structure, y, inside, ratio, point, 1e-3).point
        scores.append(point.scores[:, held_out])
        counts.append(n_active(structure.terms, point))
        shapes.append(point.coordinates)
    return FoldPath(held_out, tuple(scores), tuple(counts), structure.terms, tuple(shapes))


def n_active(terms: TermSet, point: AdditivePoint) -> int:
    squares = (point.coordinates**2).sum(axis=0)
    return int((np.bincount(terms.owner, squares, minlength=len(terms.terms)) > 0).sum())


def choose(points: Sequence[PathPoint], selection: str, max_terms: int | None) -> int:
    """Least mean loss, or the fewest terms within one standard error of it."""
    allowed = [i for i, p in enumerate(points) if max_terms is None or p.n_terms <= max_terms]
    if not allowed:
        return min(range(len(points)), key=lambda i: points[i].n_terms)
    best = min(allowed, key=lambda i: points[i].mean)
    if selection == "best":
        return best
    near = [i for i in allowed if points[i].within_one_error(points[best])]
    return min(near, key=lambda i: (points[i].n_terms, points[i].mean))
