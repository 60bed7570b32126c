"""Cross-validation of the sparse additive model: amount of weak pairs, path of group penalties."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from joblib import Parallel, delayed
from scipy.special import expit, softmax

from laconic._typing import Floats, Ints
from laconic.additive.criterion import AdditivePoint
from laconic.additive.pairs import PairRule, build
from laconic.additive.structure import (
    FEW_ROWS,
    AdditivePlan,
    Stage,
    Structure,
    near_start,
    solve_at,
    stepped_to,
    support,
)
from laconic.additive.terms import TermSet
from laconic.core.decisions import expected_costs

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
    losses: Floats
    log_loss: float
    weight: Floats
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
    inside: Floats
    structure: Structure
    point: AdditivePoint

    @property
    def scores(self) -> Floats:
        return self.point.scores[:, self.held_out]


@dataclass(frozen=True)
class FoldPath:
    """What one fold brings: held-out scores, numbers of terms and shapes along its path.

    ``fold`` is at the last group penalty, ``shown`` the last point of its path.
    """

    fold: Fold
    kept: Ints
    shown: AdditivePoint
    scores: tuple[Floats, ...]
    n_terms: tuple[int, ...]
    coordinates: tuple[Floats, ...]

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
    weight: Floats,
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
    weight: Floats,
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


# Choices of the sparse additive model on held-out rows: weak pairs, group penalty.


T = TypeVar("T")

_CLEARLY = 0.5
"""Standard errors of the paired held-out difference by which weak pairs, and less smoothness than
evidence asks for, must win."""

_GOES_ON = 0.25
"""The next smaller amount is tried while the last one won by so many standard errors."""

_JUDGED = 0.35
"""Unless there are few rows, as few folds judge as hold out this share of them (two of five); the
others follow what those chose."""

_TERM_PRICE = 0.25
"""Unless there are few rows, a term must spare as much loss as so many rows that nothing is known
of."""

_MOST_STEPS = 2
"""Doublings or halvings of all amounts of smoothness that are tried."""

_HOPELESS, _FAR = 1.0, 0.005
"""A path ends where it is this many standard errors, and this share of the loss, worse than what
may still be selected."""


@dataclass(frozen=True)
class HeldOutRows:
    """Labels and weights of the rows, and how a decision about them is judged."""

    y: Ints
    weight: Floats
    costs: Floats | None = None

    def judged(
        self, ratio: float, held_out: Sequence[Ints], parts: Sequence[Floats], n_terms: float
    ) -> PathPoint:
        """Losses of the held-out rows of all folds, ``parts`` their scores."""
        order = np.concatenate(held_out)
        labels, w = self.y[order], self.weight[order]
        scores = np.concatenate(parts, axis=1)
        logs = log_losses(scores, labels)
        # so many rows say nothing about smaller probabilities: one odd row must not decide
        losses = np.minimum(logs, np.log(len(labels) + 1.0))
        if self.costs is not None:
            decided = expected_costs(probabilities(scores), self.costs).argmin(axis=1)
            losses = self.costs[labels, decided]
        return PathPoint(ratio, losses, float(w @ logs / w.sum()), w, n_terms)

    @property
    def knowing_nothing(self) -> float:
        """Mean loss of one decision for all rows when all classes are equally likely."""
        if self.costs is not None:
            return float(self.costs.mean(axis=0).min())
        return float(np.log(self.y.max() + 1))


@dataclass(frozen=True)
class Choice:
    """Factor of smoothness, amount of the weak pairs, path, selected point, what the folds saw.

    ``others`` are folds that have not judged and may follow; ``guess`` is one fold's fit at the
    chosen factor and amount, where a fit on all rows can start.
    """

    factor: float = 1.0
    amount: float = np.inf
    points: tuple[PathPoint, ...] = ()
    at: int = 0
    paths: tuple[FoldPath, ...] = ()
    others: tuple[Fold, ...] = ()
    guess: Stage | None = None

    @property
    def ratio(self) -> float:
        return self.points[self.at].ratio


@dataclass(frozen=True)
class Choosing:
    """What the choice is made for: plan, rows, folds (places of their held-out rows) and rule."""

    plan: AdditivePlan
    rows: HeldOutRows
    folds: Sequence[Ints]
    selection: str
    max_terms: int | None
    n_jobs: int | None

    def choice(self, singles: TermSet, rule: PairRule, structure: Structure) -> Choice:
        """Every fold repeats the building.

        ``structure``, of all rows, only gives first guesses, and the amount of all pairs together.
        """
        y, weight = self.rows.y, self.rows.weight
        given = [test for test in self.folds if 0 < len(test) < len(y)]
        if not given:
            return Choice()
        rule = replace(rule, together=structure.together)
        folds = self._each(open_fold, given, weight, singles, rule, structure.stages)
        n_judges = self._n_judges(folds)
        judges, others = folds[:n_judges], folds[n_judges:]
        factor, judges = self._factor(judges)
        amount, judges = self._weak_amount(judges, structure.together)
        starts = [path_start(fold, amount) for fold in judges]
        guess = Stage(starts[0].fold.structure.smoothness, starts[0].fold.point)
        points, paths = self._path(starts)
        at = choose(points, self.selection, self.max_terms, self._price)
        chosen = tuple(path.only(at) for path in paths)
        return Choice(factor, amount, tuple(points), at, chosen, tuple(others), guess)

    def followed(self, choice: Choice, structure: Structure) -> Choice:
        """The folds that did not judge at what was chosen, starting from the fit on all rows."""
        if not choice.others:
            return choice
        guess = Stage(structure.smoothness, structure.point)
        chosen = choice.factor, choice.amount, choice.ratio, guess
        paths = self._each(follow, choice.others, *chosen)
        return replace(choice, paths=choice.paths + tuple(paths), others=())

    def _n_judges(self, folds: Sequence[Fold]) -> int:
        n = len(self.rows.y)
        held_out = np.cumsum([len(fold.held_out) for fold in folds])
        return len(folds) if n < FEW_ROWS else int((held_out < _JUDGED * n).sum()) + 1

    def _path(self, paths: list[FoldPath]) -> tuple[list[PathPoint], list[FoldPath]]:
        """Points of growing group penalty, until they are hopeless."""
        points = [self._point(paths, 0.0)]
        for ratio in RATIOS[1:]:
            if self._ended(points):
                break
            paths = self._each(path_step, paths, ratio)
            points.append(self._point(paths, ratio))
        return points, paths

    @property
    def _price(self) -> float:
        """What a term costs beside the mean loss of a row."""
        n = len(self.rows.y)
        return _TERM_PRICE * self.rows.knowing_nothing / n if n >= FEW_ROWS else 0.0

    def _each(self, work: Callable[..., T], items: Sequence[object], *rest: object) -> list[T]:
        """``work(plan, item, y, *rest)`` for every item."""
        jobs = (delayed(work)(self.plan, item, self.rows.y, *rest) for item in items)
        return list(Parallel(n_jobs=self.n_jobs, prefer="threads")(jobs))

    def _factor(self, folds: list[Fold]) -> tuple[float, list[Fold]]:
        """Factor of all amounts of smoothness and the folds at it: up, or else down, while better.

        Evidence fits the rows it has; new rows often want a little more of it where classes
        overlap, and less, which must be clear, where they hardly do.
        """
        if self.plan.smoothness is not None:
            return 1.0, folds
        factor, best = 1.0, self._judged(1.0, folds)
        for step, margin in ((2.0, 0.0), (0.5, _CLEARLY)):
            for _ in range(_MOST_STEPS):
                now = self._each(fold_scaled, folds, step)
                point = self._judged(step * factor, now)
                if best.within(point, margin):
                    break
                best, folds, factor = point, now, step * factor
            if factor != 1.0:
                break
        return factor, folds

    def _judged(self, ratio: float, folds: Sequence[Fold]) -> PathPoint:
        held_out = [fold.held_out for fold in folds]
        return self.rows.judged(ratio, held_out, [fold.scores for fold in folds], 0.0)

    def _weak_amount(self, folds: list[Fold], together: float) -> tuple[float, list[Fold]]:
        """Common amount of the weak pairs and the folds at it; infinite unless clearly worth it.

        Pairs that many rows want at all they want at the second amount too.
        Where evidence asks for an amount of all pairs ``together``, that is it.
        """
        if not any(fold.structure.weak.any() for fold in folds):
            return np.inf, folds
        if together < np.inf:
            return together, self._each(fold_at_amount, folds, together)
        without = best = self._judged(np.inf, folds)
        chosen = now = folds
        # a function of all pairs together shows only once all of them are nearly free
        every = all(fold.structure.every_pair for fold in folds)
        for amount in AMOUNTS if len(self.rows.y) < FEW_ROWS else AMOUNTS[1:]:
            now = self._each(fold_at_amount, now, amount)
            point = self._judged(amount, now)
            better = not best.within(point, _GOES_ON)
            if point.mean < best.mean:
                best, chosen = point, now
            if not (better or every):
                break
        return (np.inf, folds) if without.within(best, _CLEARLY) else (best.ratio, chosen)

    def _point(self, paths: Sequence[FoldPath], ratio: float) -> PathPoint:
        return self.rows.judged(
            ratio,
            [path.held_out for path in paths],
            [path.scores[-1] for path in paths],
            float(np.mean([path.n_terms[-1] for path in paths])),
        )

    def _ended(self, points: Sequence[PathPoint]) -> bool:
        """The last point has few enough terms and is too much worse than the best to matter."""
        last, best = points[-1], min(points, key=lambda point: point.mean)
        few = self.max_terms is None or last.n_terms <= self.max_terms
        far = last.mean > (1.0 + _FAR) * best.mean
        return few and far and not last.within(best, standard_errors(self.selection) + _HOPELESS)


def probabilities(scores: Floats) -> Floats:
    """(rows, classes) from scores (scores, rows)."""
    if len(scores) == 1:
        return np.stack([expit(-scores[0]), expit(scores[0])], axis=1)
    return np.asarray(softmax(scores, axis=0).T)


def log_losses(scores: Floats, y: Ints) -> Floats:
    if len(scores) == 1:
        return np.logaddexp(0.0, np.where(y > 0, -scores[0], scores[0]))
    top = scores.max(axis=0)
    own = scores[y, np.arange(len(y))]
    return np.asarray(np.log(np.exp(scores - top).sum(axis=0)) + top - own)
