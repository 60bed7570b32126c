"""Cross-validation of the sparse additive model: smoothness, weak pairs, group penalty.

In this order, each by the losses of held-out rows: a common factor of all smoothing parameters,
the common parameter of the weak pairs, the group penalty. Every fold repeats the building of terms
on its own rows. From 2,500 rows on only the *selection folds* (two of five) take part in the
choices; the others follow what those chose, for standard errors and held-out probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from joblib import Parallel, delayed  # type: ignore[import-untyped]

from laconic._typing import Floats, Ints
from laconic.additive import tuning
from laconic.additive.criterion import AdditivePoint
from laconic.additive.pairs import PairRule, build
from laconic.additive.row_newton import few_carry_most
from laconic.additive.structure import Stage, Structure, Task, adaptive_weights, support
from laconic.additive.terms import TermSet
from laconic.core.decisions import expected_costs
from laconic.core.forms import probabilities

T = TypeVar("T")


@dataclass(frozen=True)
class Choice:
    """Factor of smoothness, parameter of the weak pairs, path, selected point, what the folds saw.

    ``others`` are folds that have not selected and may follow; ``guess`` is one fold's fit at the
    chosen factor and parameter, where a fit on all rows can start.
    """

    factor: float = 1.0
    pair_smoothing: float = np.inf
    points: tuple[PathPoint, ...] = ()
    at: int = 0
    paths: tuple[FoldPath, ...] = ()
    others: tuple[Fold, ...] = ()
    guess: Stage | None = None

    @property
    def ratio(self) -> float:
        return self.points[self.at].ratio


@dataclass(frozen=True)
class Selection:
    """What the choice is made for: task, costs, held-out rows of the folds, and rule.

    ``rule`` is "best", "half-se" or "1se".
    """

    task: Task
    folds: Sequence[Ints]
    costs: Floats | None = None
    rule: str = "best"
    max_terms: int | None = None
    n_jobs: int | None = None

    def choice(self, singles: TermSet, pairs: PairRule, structure: Structure) -> Choice:
        """Every fold repeats the building.

        ``structure``, of all rows, only gives first guesses, and the smoothing parameter of all
        pairs together.
        """
        given = [test for test in self.folds if 0 < len(test) < len(self.task.y)]
        if not given:
            return Choice()
        pairs = replace(pairs, together=structure.together)
        folds = self._each(open_fold, given, self.task, singles, pairs, structure.stages)
        n = self.n_selecting([fold.held_out for fold in folds])
        factor, selecting = self._factor(folds[:n])
        smoothing, selecting = self._pair_smoothing(selecting, structure.together)
        starts = [fold.path(smoothing) for fold in selecting]
        guess = Stage(starts[0].fold.structure.smoothness, starts[0].fold.point)
        points, paths = self._path(starts)
        at = choose(points, self.rule, self.max_terms, self.term_price)
        chosen = tuple(path.only(at) for path in paths)
        return Choice(factor, smoothing, tuple(points), at, chosen, tuple(folds[n:]), guess)

    def followed(self, choice: Choice, structure: Structure) -> Choice:
        """The folds that did not select at what was chosen, starting from the fit on all rows."""
        if not choice.others:
            return choice
        guess = Stage(structure.smoothness, structure.point)
        chosen = choice.factor, choice.pair_smoothing, choice.ratio, guess
        paths = self._each(follow, choice.others, *chosen)
        return replace(choice, paths=choice.paths + tuple(paths), others=())

    def _each(self, work: Callable[..., T], items: Sequence[object], *rest: object) -> list[T]:
        """``work(item, *rest)`` for every item."""
        jobs = (delayed(work)(item, *rest) for item in items)
        return list(Parallel(n_jobs=self.n_jobs, prefer="threads")(jobs))

    def n_selecting(self, held_out: Sequence[Ints]) -> int:
        """How many folds select: all, or the first that hold out enough of many rows.

        Where weights span decades, held-out losses are those of the few rows that carry most, and
        more folds that select say no more.
        """
        if self.task.few_rows and not few_carry_most(self.task.weight):
            return len(held_out)
        up_to = np.cumsum([len(rows) for rows in held_out])
        return int((up_to < tuning.SELECTION_SHARE * len(self.task.y)).sum()) + 1

    def _factor(self, folds: list[Fold]) -> tuple[float, list[Fold]]:
        """Factor of all smoothing parameters and the folds at it: up, or else down, while better.

        Evidence fits the rows it has; new rows often want a little more of it where classes
        overlap, and less, which must be clear, where they hardly do.
        """
        if self.task.plan.smoothness is not None:
            return 1.0, folds
        factor, best = 1.0, self._point(1.0, folds)
        for step, margin in ((2.0, 0.0), (0.5, tuning.MARGIN)):
            for _ in range(tuning.MOST_DOUBLINGS):
                now = self._each(Fold.scaled, folds, step)
                point = self._point(step * factor, now)
                if best.within(point, margin):
                    break
                best, folds, factor = point, now, step * factor
            if factor != 1.0:
                break
        return factor, folds

    def _pair_smoothing(self, folds: list[Fold], together: float) -> tuple[float, list[Fold]]:
        """Common parameter of the weak pairs and the folds at it; infinite unless clearly worth it.

        Pairs that many rows want at all they want at the second parameter too.
        Where evidence asks for a parameter of all pairs ``together``, that is it.
        """
        if not any(fold.structure.weak.any() for fold in folds):
            return np.inf, folds
        if together < np.inf:
            return together, self._each(Fold.with_weak, folds, together)
        without = best = self._point(np.inf, folds)
        chosen = now = folds
        # a function of all pairs together shows only once all of them are nearly free
        every = all(fold.structure.every_pair for fold in folds)
        for smoothing in tuning.WEAK_GRID if self.task.few_rows else tuning.WEAK_GRID[1:]:
            now = self._each(Fold.with_weak, now, smoothing)
            point = self._point(smoothing, now)
            better = not best.within(point, tuning.GOES_ON)
            if point.mean < best.mean:
                best, chosen = point, now
            if not (better or every):
                break
        return (np.inf, folds) if without.within(best, tuning.MARGIN) else (best.ratio, chosen)

    def _path(self, paths: list[FoldPath]) -> tuple[list[PathPoint], list[FoldPath]]:
        """Points of growing group penalty, until they are hopeless."""
        points = [self._point(0.0, paths)]
        for ratio in tuning.RATIOS[1:]:
            if self._ended(points):
                break
            paths = self._each(FoldPath.step, paths, ratio)
            points.append(self._point(ratio, paths))
        return points, paths

    def _ended(self, points: Sequence[PathPoint]) -> bool:
        """The last point has few enough terms and is too much worse than the best to matter."""
        last, best = points[-1], min(points, key=lambda point: point.mean)
        few = self.max_terms is None or last.n_terms <= self.max_terms
        far = last.mean > (1.0 + tuning.FAR) * best.mean
        return few and far and not last.within(best, _STANDARD_ERRORS[self.rule] + tuning.HOPELESS)

    @property
    def term_price(self) -> float:
        """What a term costs beside the mean loss of a row.

        The unit is a row at chance level: all classes equally likely, one decision for all rows.
        """
        if self.task.few_rows:
            return 0.0
        chance = np.log(self.task.y.max() + 1)
        if self.costs is not None:
            chance = self.costs.mean(axis=0).min()
        return float(tuning.TERM_PRICE * chance / len(self.task.y))

    def _point(self, ratio: float, folds: Sequence[Fold] | Sequence[FoldPath]) -> PathPoint:
        """Losses of the held-out rows of all folds as they are now."""
        held_out, last = [fold.held_out for fold in folds], [fold.last_scores for fold in folds]
        n_terms = float(np.mean([fold.last_terms for fold in folds]))
        return self.scored(ratio, np.concatenate(held_out), np.concatenate(last, axis=1), n_terms)

    def scored(self, ratio: float, order: Ints, scores: Floats, n_terms: float) -> PathPoint:
        """Losses of the rows ``order`` with given scores."""
        labels, w = self.task.y[order], self.task.weight[order]
        logs = log_losses(scores, labels)
        # so many rows say nothing about smaller probabilities: one odd row must not decide
        losses = np.minimum(logs, np.log(len(labels) + 1.0))
        if self.costs is not None:
            decided = expected_costs(held_out_proba(scores), self.costs).argmin(axis=1)
            losses = self.costs[labels, decided]
        return PathPoint(ratio, losses, float(w @ logs / w.sum()), w, n_terms)


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


_STANDARD_ERRORS = {"best": 0.0, "half-se": 0.5, "1se": 1.0}
"""Standard errors of the held-out loss that a rule gives away for fewer terms."""


def choose(
    points: Sequence[PathPoint], rule: str, max_terms: int | None, price: float = 0.0
) -> int:
    """Least mean loss plus ``price`` for each term, or fewer terms within a standard error."""
    allowed = [i for i, p in enumerate(points) if max_terms is None or p.n_terms <= max_terms]
    if not allowed:
        return min(range(len(points)), key=lambda i: points[i].n_terms)
    best = min(allowed, key=lambda i: points[i].mean + price * points[i].n_terms)
    share = _STANDARD_ERRORS[rule]
    near = [i for i in allowed if i == best or points[i].within(points[best], share)]
    return min(near, key=lambda i: (points[i].n_terms, points[i].mean))


# One fold.


@dataclass(frozen=True)
class Fold:
    """Its task (zero weight for the held-out rows), structure, and fit at the last parameters."""

    held_out: Ints
    task: Task
    structure: Structure
    point: AdditivePoint
    last_terms = 0

    @property
    def last_scores(self) -> Floats:
        """Scores of the held-out rows."""
        return self.point.scores[:, self.held_out]

    def fitted(self, structure: Structure, ratio: float, start: AdditivePoint) -> AdditivePoint:
        tol, steps = self.task.fold_tol, fold_steps(self.task)
        point: AdditivePoint = self.task.solve(structure, ratio, start, tol, max_iter=steps).point
        return point

    def scaled(self, factor: float) -> Fold:
        """The same fold, without weak pairs, with all smoothing parameters times ``factor``."""
        structure = self.structure.scaled(factor)
        strong = structure.with_weak(np.inf, self.point)
        point = self.fitted(strong, 0.0, strong.point)
        return replace(self, structure=structure, point=structure.widened(point))

    def with_weak(self, smoothing: float) -> Fold:
        """The same fold with its weak pairs at one common parameter."""
        if not self.structure.weak.any():
            return self
        now = self.structure.with_weak(smoothing, self.point)
        return replace(self, point=self.fitted(now, 0.0, self.point))

    def path(self, smoothing: float) -> FoldPath:
        """The path of a fold that was fitted at ``smoothing``: its point without group penalty."""
        structure = self.structure.with_weak(smoothing, self.point)
        point = structure.point
        weights = adaptive_weights(structure.terms, point)
        structure = replace(structure, group_weights=weights)
        chosen = replace(self, structure=structure, point=point)
        kept = support(structure.terms, point)
        shapes = (point.coordinates,), (point.intercept,)
        return FoldPath(chosen, kept, point, (self.last_scores,), (len(kept),), *shapes)


def fold_steps(task: Task) -> int:
    """Most Newton steps of a fit on a fold."""
    return task.most_steps(tuning.FOLD_STEPS, fold=True)


def open_fold(
    held_out: Ints, task: Task, singles: TermSet, pairs: PairRule, guess: Sequence[Stage]
) -> Fold:
    """Repeat everything without the held-out rows; fit without weak pairs.

    ``guess``, from all rows, only saves time: the fit is certified to be within ``fold_tol`` of
    the optimum of its own rows.
    """
    inside = task.weight.copy()
    inside[held_out] = 0.0
    task = Task(task.plan, task.y, inside)
    structure = build(task, singles, pairs, guess)
    strong = structure.with_weak(np.inf)
    steps = fold_steps(task)
    point = task.solve(strong, 0.0, strong.point, task.fold_tol, max_iter=steps).point
    return Fold(held_out, task, structure, structure.widened(point))


def follow(fold: Fold, factor: float, smoothing: float, ratio: float, guess: Stage) -> FoldPath:
    """A fold at a factor of smoothness, a parameter of weak pairs and a group penalty, all given.

    ``guess``, a fit on all rows at the same factor and parameter, only saves time.
    """
    structure = fold.structure.scaled(factor)
    weak = np.isfinite(smoothing) and structure.weak.any()
    now = structure.with_weak(smoothing if weak else np.inf, fold.point)
    point = fold.fitted(now, 0.0, fold.task.near_start(now, guess))
    point = point if weak else structure.widened(point)
    path = replace(fold, structure=structure, point=point).path(smoothing)
    return path if ratio == 0.0 else path.step(ratio, ratios_below(ratio)).only(1)


def ratios_below(ratio: float) -> tuple[float, ...]:
    """Group penalties of the path before ``ratio``."""
    return tuple(before for before in tuning.RATIOS if 0.0 < before < ratio)


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
    intercepts: tuple[Floats, ...]

    @property
    def held_out(self) -> Ints:
        return self.fold.held_out

    @property
    def last_scores(self) -> Floats:
        return self.scores[-1]

    @property
    def last_terms(self) -> int:
        return self.n_terms[-1]

    @property
    def terms(self) -> TermSet:
        return self.fold.structure.terms

    def only(self, at: int) -> FoldPath:
        """One point of the path."""
        shapes = (self.coordinates[at],), (self.intercepts[at],)
        parts = (self.scores[at],), (self.n_terms[at],), *shapes
        return FoldPath(self.fold, self.kept, self.shown, *parts)

    def step(self, ratio: float, through: Sequence[float] = ()) -> FoldPath:
        """One larger group penalty; its terms are refitted without it if the plan is relaxed.

        ``through`` are the group penalties between the last one and this one.
        """
        fold, structure = self.fold, self.fold.structure
        if fold.task.plan.relaxed:
            point = fold.task.stepped(structure, (*through, ratio), fold.point)
            kept = support(structure.terms, point)
            shown = self.shown if np.array_equal(kept, self.kept) else self._refit(kept)
        else:
            point = shown = fold.fitted(structure, ratio, fold.point)
            kept = support(structure.terms, point)
        return FoldPath(
            replace(fold, point=point),
            kept,
            shown,
            (*self.scores, shown.scores[:, fold.held_out]),
            (*self.n_terms, len(kept)),
            (*self.coordinates, shown.coordinates),
            (*self.intercepts, shown.intercept),
        )

    def _refit(self, kept: Ints) -> AdditivePoint:
        """The kept terms without group penalty, the others at zero."""
        structure = self.fold.structure
        part = structure.part(kept, self.shown)
        point = self.fold.fitted(part, 0.0, part.point)
        g = np.zeros_like(self.shown.coordinates)
        g[:, np.isin(structure.terms.owner, kept)] = point.coordinates
        return AdditivePoint(point.intercept, g, point.scores)


def held_out_proba(scores: Floats) -> Floats:
    """(rows, classes) from scores (scores, rows)."""
    return probabilities(scores.T, "logit" if len(scores) == 1 else "softmax")


def log_losses(scores: Floats, y: Ints) -> Floats:
    if len(scores) == 1:
        return np.asarray(np.logaddexp(0.0, np.where(y > 0, -scores[0], scores[0])))
    top = scores.max(axis=0)
    own = scores[y, np.arange(len(y))]
    return np.asarray(np.log(np.exp(scores - top).sum(axis=0)) + top - own)
