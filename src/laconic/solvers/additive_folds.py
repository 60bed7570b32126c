"""Cross-validation of the sparse additive model: amount of weak pairs, path of group penalties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laconic.solvers.additive import AdditivePoint
from laconic.solvers.additive_path import (
    AdditivePlan,
    PairRule,
    Structure,
    build,
    solve_at,
    support,
)
from laconic.solvers.additive_terms import TermSet

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

RATIOS = (0.0, 1e-3, 5e-3, 2.5e-2, 1e-1)
"""Group penalties of the path, as shares of the one that empties the model."""

SELECTIONS = {"best": 0.0, "half-se": 0.5, "1se": 1.0}
"""Standard errors of the held-out loss that are given away for fewer terms."""

AMOUNTS = (np.inf, 1000.0, 250.0, 60.0)
"""Common amounts of smoothness of the weak pairs; infinite: without them."""

_PATH_TOL = 1e-2


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
class FoldPath:
    """What one fold brings: held-out scores, numbers of terms and shapes along its path."""

    held_out: Ints
    scores: tuple[Array, ...]
    n_terms: tuple[int, ...]
    terms: TermSet
    coordinates: tuple[Array, ...]


@dataclass(frozen=True)
class OpenFold:
    """One fold: weights without its rows, structure, and its fit at each amount of weak pairs."""

    held_out: Ints
    inside: Array
    structure: Structure
    points: tuple[AdditivePoint, ...]


def open_fold(
    plan: AdditivePlan,
    singles: TermSet,
    y: Ints,
    weight: Array,
    held_out: Ints,
    pairs: PairRule,
    guess: Array | None,
) -> OpenFold:
    """Repeat everything without the held-out rows; fit at every amount of weak pairs."""
    inside = weight.copy()
    inside[held_out] = 0.0
    structure = build(plan, singles, y, inside, pairs, guess)
    points: list[AdditivePoint] = []
    start = structure.point
    for amount in AMOUNTS if structure.weak.any() else AMOUNTS[:1]:
        now = structure.at_amount(amount, start)
        point = solve_at(plan, now, y, inside, 0.0, now.point, 1e-3).point
        points.append(point)
        start = point if np.isfinite(amount) else start
    return OpenFold(held_out, inside, structure, tuple(points))


def fold_path(
    plan: AdditivePlan, fold: OpenFold, y: Ints, ratios: Sequence[float], amount: float
) -> FoldPath:
    """Scores of the held-out rows along the path of group penalties."""
    inside, held_out = fold.inside, fold.held_out
    if np.isfinite(amount) and fold.structure.weak.any():
        point = fold.points[AMOUNTS.index(amount)]
        structure = fold.structure.at_amount(amount, point)
    else:
        point, structure = fold.points[0], fold.structure.at_amount(np.inf)
    shown, before = point, np.full(1, -1)
    scores, counts, shapes = [], [], []
    for ratio in ratios:
        if ratio > 0.0:
            tol = _PATH_TOL if plan.relaxed else 1e-3
            point = solve_at(plan, structure, y, inside, ratio, point, tol).point
        kept = support(structure.terms, point)
        if ratio == 0.0 or not plan.relaxed:
            shown = point
        elif not np.array_equal(kept, before):
            shown = refit(plan, structure, y, inside, kept, point)
        before = kept
        scores.append(shown.scores[:, held_out])
        counts.append(len(kept))
        shapes.append(shown.coordinates)
    return FoldPath(held_out, tuple(scores), tuple(counts), structure.terms, tuple(shapes))


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
    point = solve_at(plan, part, y, weight, 0.0, part.point, 1e-3).point
    g = np.zeros_like(start.coordinates)
    g[:, np.isin(structure.terms.owner, kept)] = point.coordinates
    return AdditivePoint(point.intercept, g, point.scores)


def choose(points: Sequence[PathPoint], selection: str, max_terms: int | None) -> int:
    """Least mean loss, or the fewest terms within a share of a standard error of it."""
    allowed = [i for i, p in enumerate(points) if max_terms is None or p.n_terms <= max_terms]
    if not allowed:
        return min(range(len(points)), key=lambda i: points[i].n_terms)
    best = min(allowed, key=lambda i: points[i].mean)
    share = SELECTIONS[selection]
    near = [i for i in allowed if points[i].within(points[best], share)]
    return min(near, key=lambda i: (points[i].n_terms, points[i].mean))
