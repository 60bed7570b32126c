"""Cross-validation of the sparse additive model: amount of weak pairs, path of group penalties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from laconic.solvers.additive import AdditivePoint
from laconic.solvers.additive_build import build
from laconic.solvers.additive_candidates import PairRule
from laconic.solvers.additive_structure import (
    FEW_ROWS,
    AdditivePlan,
    Stage,
    Structure,
    near_start,
    solve_at,
    stepped_to,
    support,
)
from laconic.solvers.additive_terms import TermSet

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

RATIOS = (0.0, 1e-4, 3e-4, 1e-3, 5e-3, 2.5e-2, 1e-1)
"""Group penalties of the path, as shares of the one that empties the model."""

AMOUNTS = (400.0, 60.0, 10.0, 1.5, 0.25, 0.05)
"""Common amounts of smoothness of the weak pairs, tried in turn while held-out rows gain."""

_TOL, _TOL_OF_FEW = 1e-2, 1e-3
"""Relative gaps of the fits that are compared; those of few rows cost little."""


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
    """What one fold brings: held-out scores, numbers of terms and shapes along its path.

    ``fold`` is at the last group penalty, ``shown`` the last point of its path.
    """

    fold: Fold
    kept: Ints
    shown: AdditivePoint
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


def fold_tol(y: Ints) -> float:
    """Relative gap to which a fold is fitted."""
    return _TOL_OF_FEW if len(y) < FEW_ROWS else _TOL


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

    ``guess``, from all rows, only saves time: the fit is certified to be within ``fold_tol`` of
    the optimum of its own rows.
    """
    inside = weight.copy()
    inside[held_out] = 0.0
    structure = build(plan, singles, y, inside, pairs, guess)
    strong = structure.at_amount(np.inf)
    point = solve_at(plan, strong, y, inside, 0.0, strong.point, fold_tol(y)).point
    return Fold(held_out, inside, structure, structure.widened(point))


def fold_scaled(plan: AdditivePlan, fold: Fold, y: Ints, factor: float) -> Fold:
    """The same fold, without weak pairs, with all amounts of smoothness times ``factor``."""
    structure = fold.structure.scaled(factor)
    strong = structure.at_amount(np.inf, fold.point)
    point = solve_at(plan, strong, y, fold.inside, 0.0, strong.point, fold_tol(y)).point
    return replace(fold, structure=structure, point=structure.widened(point))


def fold_at_amount(plan: AdditivePlan, fold: Fold, y: Ints, amount: float) -> Fold:
    """The same fold with its weak pairs at one common amount."""
    if not fold.structure.weak.any():
        return fold
    now = fold.structure.at_amount(amount, fold.point)
    point = solve_at(plan, now, y, fold.inside, 0.0, fold.point, fold_tol(y)).point
    return replace(fold, point=point)


def path_start(fold: Fold, amount: float) -> FoldPath:
    """The path of a fold that was fitted at ``amount``: its point without group penalty."""
    structure = fold.structure.at_amount(amount, fold.point)
    point = structure.point
    chosen = replace(fold, structure=structure, point=point)
    kept = support(structure.terms, point)
    return FoldPath(chosen, kept, point, (fold.scores,), (len(kept),), (point.coordinates,))


def path_step(
    plan: AdditivePlan, path: FoldPath, y: Ints, ratio: float, through: Sequence[float] = ()
) -> FoldPath:
    """One larger group penalty; its terms are refitted without it if the plan is relaxed.

    ``through`` are the group penalties between the last one and this one.
    """
    fold, structure = path.fold, path.fold.structure
    if plan.relaxed:
        ratios = (*through, ratio)
        point = stepped_to(plan, structure, y, fold.inside, ratios, fold.point)
    else:
        point = solve_at(plan, structure, y, fold.inside, ratio, fold.point, fold_tol(y)).point
    kept, shown = support(structure.terms, point), point
    if plan.relaxed:
        same = np.array_equal(kept, path.kept)
        shown = path.shown if same else refit(plan, structure, y, fold.inside, kept, path.shown)
    return FoldPath(
        replace(fold, point=point),
        kept,
        shown,
        (*path.scores, shown.scores[:, fold.held_out]),
        (*path.n_terms, len(kept)),
        (*path.coordinates, shown.coordinates),
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
    start = near_start(plan, now, y, fold.inside, guess)
    point = solve_at(plan, now, y, fold.inside, 0.0, start, fold_tol(y)).point
    point = point if weak else structure.widened(point)
    fold = replace(fold, structure=structure, point=point)
    path = path_start(fold, amount)
    if ratio == 0.0:
        return path
    return path_step(plan, path, y, ratio, ratios_below(ratio)).only(1)


def ratios_below(ratio: float) -> tuple[float, ...]:
    """Group penalties of the path before ``ratio``."""
    return tuple(before for before in RATIOS if 0.0 < before < ratio)


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
    point = solve_at(plan, part, y, weight, 0.0, part.point, fold_tol(y)).point
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
