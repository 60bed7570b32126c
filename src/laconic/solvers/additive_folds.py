"""Cross-validation of the sparse additive model: amount of weak pairs, path of group penalties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from laconic.solvers.additive import AdditivePoint
from laconic.solvers.additive_path import (
    AdditivePlan,
    PairRule,
    Stage,
    Structure,
    build,
    cheapest_start,
    solve_at,
    support,
)
from laconic.solvers.additive_terms import TermSet

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

RATIOS = (0.0, 1e-4, 3e-4, 1e-3, 5e-3, 2.5e-2, 1e-1)
"""Group penalties of the path, as shares of the one that empties the model."""

AMOUNTS = (400.0, 60.0, 10.0, 1.5, 0.25, 0.05)
"""Common amounts of smoothness of the weak pairs, tried in turn while held-out rows gain."""

_PATH_TOL, _FOLD_TOL = 1e-2, 1e-2


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

    def within(self, best: PathPoint, share: float) -> bool:
        """Paired by row: is the mean difference from ``best`` a small share of its error?"""
        apart = self.losses - best.losses
        total = float(self.weight.sum())
        mean = float(self.weight @ apart) / total
        variance = float(self.weight @ (apart - mean) ** 2) / total
        return bool(mean <= share * np.sqrt(variance / total))


@dataclass(frozen=True)
class Fold:
    """One fold: weights without its rows, structure, and its fit at the last amount looked at."""

    held_out: Ints
    inside: Array
    structure: Structure
    point: AdditivePoint

    @property
    def scores(self) -> Array:
        return self.point.scores[:, self.held_out]


@dataclass(frozen=True)
class FoldPath:
    """What one fold brings: held-out scores, numbers of terms and shapes along its path."""

    fold: Fold
    kept: Ints
    scores: tuple[Array, ...]
    n_terms: tuple[int, ...]
    coordinates: tuple[Array, ...]

    @property
    def held_out(self) -> Ints:
        return self.fold.held_out

    @property
    def terms(self) -> TermSet:
        return self.fold.structure.terms

    def only(self, at: int) -> FoldPath:
        """One point of the path."""
        return replace(
            self,
            scores=(self.scores[at],),
            n_terms=(self.n_terms[at],),
            coordinates=(self.coordinates[at],),
        )


def open_fold(
    plan: AdditivePlan,
    held_out: Ints,
    y: Ints,
    weight: Array,
    singles: TermSet,
    pairs: PairRule,
    guess: Sequence[Stage],
) -> Fold:
    """Repeat everything without the held-out rows; fit without weak pairs.

    ``guess``, from all rows, only saves time: the fit is certified to be within ``_FOLD_TOL`` of
    the optimum of its own rows.
    """
    inside = weight.copy()
    inside[held_out] = 0.0
    structure = build(plan, singles, y, inside, pairs, guess)
    strong = structure.at_amount(np.inf)
    point = solve_at(plan, strong, y, inside, 0.0, strong.point, _FOLD_TOL).point
    return Fold(held_out, inside, structure, structure.widened(point))


def fold_scaled(plan: AdditivePlan, fold: Fold, y: Ints, factor: float) -> Fold:
    """The same fold, without weak pairs, with all amounts of smoothness times ``factor``."""
    structure = fold.structure.scaled(factor)
    strong = structure.at_amount(np.inf, fold.point)
    point = solve_at(plan, strong, y, fold.inside, 0.0, strong.point, _FOLD_TOL).point
    return replace(fold, structure=structure, point=structure.widened(point))


def fold_at_amount(plan: AdditivePlan, fold: Fold, y: Ints, amount: float) -> Fold:
    """The same fold with its weak pairs at one common amount."""
    if not fold.structure.weak.any():
        return fold
    now = fold.structure.at_amount(amount, fold.point)
    point = solve_at(plan, now, y, fold.inside, 0.0, fold.point, _FOLD_TOL).point
    return replace(fold, point=point)


def path_start(fold: Fold, amount: float) -> FoldPath:
    """The path of a fold that was fitted at ``amount``: its point without group penalty."""
    structure = fold.structure.at_amount(amount, fold.point)
    point = structure.point
    chosen = replace(fold, structure=structure, point=point)
    kept = support(structure.terms, point)
    return FoldPath(chosen, kept, (fold.scores,), (len(kept),), (point.coordinates,))


def path_step(plan: AdditivePlan, path: FoldPath, y: Ints, ratio: float) -> FoldPath:
    """One larger group penalty; its terms are refitted without it if the plan is relaxed."""
    fold = path.fold
    tol = _PATH_TOL if plan.relaxed else _FOLD_TOL
    point = solve_at(plan, fold.structure, y, fold.inside, ratio, fold.point, tol).point
    kept = support(fold.structure.terms, point)
    scores, shapes = point.scores[:, fold.held_out], point.coordinates
    if plan.relaxed and np.array_equal(kept, path.kept):
        scores, shapes = path.scores[-1], path.coordinates[-1]
    elif plan.relaxed:
        shown = refit(plan, fold.structure, y, fold.inside, kept, point)
        scores, shapes = shown.scores[:, fold.held_out], shown.coordinates
    return FoldPath(
        replace(fold, point=point),
        kept,
        (*path.scores, scores),
        (*path.n_terms, len(kept)),
        (*path.coordinates, shapes),
    )


def follow(
    plan: AdditivePlan,
    fold: Fold,
    y: Ints,
    factor: float,
    amount: float,
    ratio: float,
    guess: Stage,
) -> FoldPath:
    """A fold at a factor of smoothness, an amount of weak pairs and a group penalty, all given.

    ``guess``, a fit on all rows at the same factor and amount, only saves time.
    """
    structure = fold.structure.scaled(factor)
    weak = np.isfinite(amount) and structure.weak.any()
    now = structure.at_amount(amount if weak else np.inf, fold.point)
    start = cheapest_start(plan, now, y, fold.inside, (now.point, guess.carried(now.terms)))
    point = solve_at(plan, now, y, fold.inside, 0.0, start, _FOLD_TOL).point
    point = point if weak else structure.widened(point)
    fold = replace(fold, structure=structure, point=point)
    path = path_start(fold, amount)
    return path if ratio == 0.0 else path_step(plan, path, y, ratio).only(1)


def refit(
    plan: AdditivePlan,
    structure: Structure,
    y: Ints,
    weight: Array,
    kept: Ints,
    start: AdditivePoint,
) -> AdditivePoint:
    """The kept terms without group penalty, the others at zero."""
    part = structure.part(kept, start)
    point = solve_at(plan, part, y, weight, 0.0, part.point, _FOLD_TOL).point
    g = np.zeros_like(start.coordinates)
    g[:, np.isin(structure.terms.owner, kept)] = point.coordinates
    return AdditivePoint(point.intercept, g, point.scores)


def standard_errors(selection: str) -> float:
    """Standard errors of the held-out loss that are given away for fewer terms."""
    return {"best": 0.0, "half-se": 0.5, "1se": 1.0}[selection]


def choose(
    points: Sequence[PathPoint], selection: str, max_terms: int | None, price: float = 0.0
) -> int:
    """Least mean loss plus ``price`` for each term, or fewer terms within a standard error."""
    allowed = [i for i, p in enumerate(points) if max_terms is None or p.n_terms <= max_terms]
    if not allowed:
        return min(range(len(points)), key=lambda i: points[i].n_terms)
    best = min(allowed, key=lambda i: points[i].mean + price * points[i].n_terms)
    share = standard_errors(selection)
    near = [i for i in allowed if points[i].within(points[best], share)]
    return min(near, key=lambda i: (points[i].n_terms, points[i].mean))
