"""Choices of the sparse additive model on held-out rows: weak pairs, group penalty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import expit, softmax

from laconic.criteria.decisions import expected_costs
from laconic.solvers.additive_candidates import PairRule
from laconic.solvers.additive_folds import (
    AMOUNTS,
    RATIOS,
    Fold,
    FoldPath,
    PathPoint,
    choose,
    fold_at_amount,
    fold_scaled,
    follow,
    open_fold,
    path_start,
    path_step,
    standard_errors,
)
from laconic.solvers.additive_structure import FEW_ROWS, AdditivePlan, Stage, Structure
from laconic.solvers.additive_terms import TermSet

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
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
    weight: Array
    costs: Array | None = None

    def judged(
        self, ratio: float, held_out: Sequence[Ints], parts: Sequence[Array], n_terms: float
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


def probabilities(scores: Array) -> Array:
    """(rows, classes) from scores (scores, rows)."""
    if len(scores) == 1:
        return np.stack([expit(-scores[0]), expit(scores[0])], axis=1)
    return np.asarray(softmax(scores, axis=0).T)


def log_losses(scores: Array, y: Ints) -> Array:
    if len(scores) == 1:
        return np.logaddexp(0.0, np.where(y > 0, -scores[0], scores[0]))
    top = scores.max(axis=0)
    own = scores[y, np.arange(len(y))]
    return np.asarray(np.log(np.exp(scores - top).sum(axis=0)) + top - own)
