"""Candidates on the folds: fitted without the rows they are asked about, given up when hopeless."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from joblib import Parallel, delayed  # type: ignore[import-untyped]
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from laconic._typing import Floats, Ints, Keys
from laconic.choose.budget import Budget, Forecast, forecast, keyed_sample, rows_in_time
from laconic.choose.candidates import Candidate
from laconic.choose.comparison import Judge, Outcome
from laconic.choose.page.lessons import Lesson
from laconic.choose.stacking import log_probabilities, stacked
from laconic.choose.tuning import (
    BEHIND,
    ENOUGH_ROWS,
    PROBE_ROWS,
    RACE_FOLDS,
    RACE_SHARE,
    SAFETY,
    SHARE_FOR_FIRST,
)
from laconic.core.contract import TableReader, Training, take_rows
from laconic.core.folds import keys_of
from laconic.core.forms import probabilities
from laconic.linear.plain import PlainLogisticRegression

Folds = Sequence[tuple[Ints, Ints]]


@dataclass(frozen=True)
class Rows:
    """Training rows as the library reads them, and as they were given, with their folds.

    ``apart``: the folds keep rows apart that equal values do not tell (groups, times, a splitter
    of the user's), so that models which choose by folds of their own must be given these.
    """

    training: Training
    raw: Any
    weighted: bool
    classes: NDArray[Any]
    folds: Folds
    apart: bool = False
    groups: NDArray[Any] | None = None
    time: NDArray[Any] | None = None
    costs: Floats | None = None
    """What errors cost on each row."""

    @property
    def n_rows(self) -> int:
        return self.training.n_rows

    @cached_property
    def exchangeable(self) -> bool:
        """Whether each fold trains on all the rows that it does not hold out."""
        return all(len(train) + len(test) == self.n_rows for train, test in self.folds)

    def fit(
        self, model: Any, places: Ints | None = None, keep: bool = False, **settings: Any
    ) -> Any:
        """A copy of the model fitted on some rows, or on all of them.

        ``keep``: it keeps the forms of its own folds.
        """
        whole = places is None or len(places) == self.n_rows
        at = slice(None) if whole else places
        given = {"sample_weight": self.training.weight[at]} if self.weighted else {}
        if self.apart and "cv" in model.get_params() and model.cv is not None:
            settings = {"cv": self.inner_folds(places), **settings}
        copy = clone(model).set_params(**settings)
        if keep:
            copy._keeps_forms = True
        labels = self.classes[self.training.y[at]]
        copy.fit(self.take(model, None if whole else places), labels, **given)
        if getattr(copy, "interrupted_", False):  # a search that keeps its best card
            raise KeyboardInterrupt
        # what was given for this fit is no part of the model that the user gets
        return copy.set_params(**{name: getattr(model, name) for name in settings})

    def take(self, model: Any, places: Ints | None) -> Any:
        """The rows as the model reads them."""
        if isinstance(model, TableReader):
            return self.training.table if places is None else self.training.table[places]
        return self.raw if places is None else take_rows(self.raw, places)

    def inner_folds(self, places: Ints | None) -> Folds:
        """The folds as they cut a part of the rows, in places of that part."""
        if places is None:
            return self.folds
        at = np.full(self.n_rows, -1, dtype=np.int64)
        at[places] = np.arange(len(places))
        inner = []
        for train, test in self.folds:
            parts = at[train], at[test]
            inner.append((parts[0][parts[0] >= 0], parts[1][parts[1] >= 0]))
        return [pair for pair in inner if len(pair[0]) and len(pair[1])]

    def part(self, places: Ints) -> Rows:
        """Some of the rows."""
        own = self.training
        training = replace(
            own,
            table=own.table[places],
            y=own.y[places],
            weight=own.weight[places],
            kept=np.arange(len(places)),
        )
        groups = None if self.groups is None else self.groups[places]
        time = None if self.time is None else self.time[places]
        raw = take_rows(self.raw, places) if self.raw is not None else None
        costs = None if self.costs is None else self.costs[places]
        folds = self.inner_folds(places)
        return replace(
            self, training=training, raw=raw, folds=folds, groups=groups, time=time, costs=costs
        )


@dataclass(frozen=True)
class Race:
    """What all candidates are run with."""

    rows: Rows
    judge: Judge
    budget: Budget
    max_size: float
    n_jobs: int | None = None
    keys: Keys | None = None
    known: dict[str, Forecast] = field(default_factory=dict)

    def run(self, candidate: Candidate, front: Outcome | None) -> Outcome:
        """Decide the rows of every fold without having seen them, and price the decisions.

        ``front`` is the candidate that the others are added to; those that cannot improve it give
        up after two folds.
        """
        out = Outcome.empty(candidate, self.rows.n_rows, len(self.rows.classes))
        start = self.budget.now()
        with warnings.catch_warnings():
            # a fold that stops short is told in the table; the refit of the chosen model warns
            warnings.simplefilter("ignore", ConvergenceWarning)
            if candidate.own_folds and self.rows.folds and self.rows.exchangeable:
                self._run_whole(out)
            else:
                self._run_folds(out, front)
        out.fit_seconds = self.budget.now() - start
        return self.judge.price(out)

    def in_time(self, offered: Sequence[Candidate], seed: int) -> Race:
        """The same on fewer rows, where no candidate can be compared on all or enough of them.

        The first candidate that can is the one that rows are counted for: those before it would
        see so few rows that a plainer model of all rows knows more, and are refused later.
        """
        if not self.budget.limited or self.budget.for_comparison <= 0.0:
            return self
        keys, n_rows = keys_of(self.rows.training, seed), self.rows.n_rows
        timed = replace(self, keys=keys)
        first: tuple[Candidate, float, int] | None = None
        # where the front runner takes too long, the plainest model is asked next: it is quick
        quick = [own for own in offered[1:] if isinstance(own.model, PlainLogisticRegression)]
        for candidate in [*offered[:1], *quick, *(own for own in offered[1:] if own not in quick)]:
            try:
                fits = self._fits(candidate)
                expected = fits * timed._forecast(candidate).at(n_rows)
            except ValueError:
                continue  # it will refuse the rows again when it is compared, and be told
            left = SHARE_FOR_FIRST * self.budget.for_comparison
            if left <= 0.0:
                break
            most = rows_in_time(timed.known[candidate.name], n_rows, fits, left)
            if most >= n_rows:
                return timed
            first = first or (candidate, expected, most)
            if most >= min(n_rows / 2, ENOUGH_ROWS):
                return timed._sampled(candidate, expected, most)
        if first is None or first[2] < 2 * PROBE_ROWS:
            return timed
        return timed._sampled(*first)

    def _sampled(self, candidate: Candidate, expected: float, most: int) -> Race:
        """The race on so many rows, with a warning that says why."""
        keys, n_rows = self.keys, self.rows.n_rows
        assert keys is not None
        places = keyed_sample(keys, self.rows.training.y, most)
        part = self.rows.part(places)
        condition = self.judge.condition.part(places)
        judge = Judge(part.training.y, part.training.weight, condition)
        warnings.warn(
            f"time_budget={self.budget.seconds:g}: {len(places)} of {n_rows} rows are used; "
            f"{candidate.name} on all of them would take about {expected:.0f} s.",
            UserWarning,
            stacklevel=6,
        )
        return replace(self, rows=part, judge=judge, keys=keys[places])

    def _fits(self, candidate: Candidate) -> float:
        """Fits that a comparison takes."""
        return 1.0 if candidate.own_folds else float(len(self.rows.folds))

    def refused(self, candidate: Candidate) -> str:
        """Why a candidate is not tried; nothing when it is."""
        if candidate.mixes and self.rows.apart:
            return "refused: its bags do not keep apart the rows that the folds do"
        if not self.budget.limited:
            return ""
        if self.budget.for_comparison <= 0.0:
            return "time_budget ended before it"
        expected = self._fits(candidate) * self._forecast(candidate).at(self.rows.n_rows)
        if self.budget.allows(expected):
            return ""
        return f"time_budget: it would take about {expected:.2g} s"

    def _forecast(self, candidate: Candidate) -> Forecast:
        def fit(n_rows: int) -> object:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                return self.rows.fit(candidate.model, self.few_rows(n_rows))

        if candidate.name not in self.known:
            self.known[candidate.name] = forecast(fit, self.rows.n_rows, self.budget)
        return self.known[candidate.name]

    def few_rows(self, n_rows: int) -> Ints:
        """Some rows, the same share of each class."""
        y = self.rows.training.y
        keys = keys_of(self.rows.training, 0) if self.keys is None else self.keys
        return keyed_sample(keys, y, n_rows)

    def lesson(self, places: Ints | None = None) -> Lesson:
        """Rows enough for a page to learn from, of some places or of all."""
        return Lesson.of(self.rows.training, places)

    def affordable(self, kept: Outcome) -> tuple[list[Outcome], list[float]]:
        """Members of what is kept, and their weights: the heaviest whose fits end in time."""
        members, weights = list(kept.members or (kept,)), list(kept.weights or (1.0,))
        left, most = self.budget.left, 1
        for out in members:
            left -= SAFETY * out.one_fit_seconds if out.fitted is None else 0.0
            most += left > 0.0 and out is not members[0]
        return members[:most], weights[:most]

    def fitted_on(self, out: Outcome, rows: Rows) -> Any:
        """A candidate fitted on all rows, or on those of the comparison where time is short."""
        known = self.known.get(out.name)
        if known is not None and rows.n_rows > self.rows.n_rows:
            expected = SAFETY * known.at(rows.n_rows)
            if expected < self.budget.left:
                return rows.fit(out.candidate.model)
        return self.rows.fit(out.candidate.model) if out.fitted is None else out.fitted

    def _run_whole(self, out: Outcome) -> None:
        """One fit that keeps the probabilities of the rows its own folds held out."""
        start = self.budget.now()
        out.fitted = self.rows.fit(out.candidate.model, keep=True, cv=self.rows.folds)
        out.one_fit_seconds = self.budget.now() - start
        if out.fitted.held_out_proba_ is not None:
            out.proba = out.fitted.held_out_proba_
        out.note_model(out.fitted)
        fold_of = {int(row): f for f, (_, test) in enumerate(self.rows.folds) for row in test}
        for places, form in out.fitted.__dict__.pop("_held_out_forms", []):
            out.forms[fold_of[int(places[0])]] = form
        del out.fitted._keeps_forms
        out.raw = out.proba
        out.complete = True

    def _run_folds(self, out: Outcome, front: Outcome | None) -> None:
        folds = [(f, *own) for f, own in enumerate(self.rows.folds) if self._learnable(own[0])]
        for part, goes_on in (
            (folds[:RACE_FOLDS], len(folds) > RACE_FOLDS),
            (folds[RACE_FOLDS:], False),
        ):
            for fold in self._in_time(out, part):
                self._note_fold(out, *fold)
            if not out.note and goes_on and self._hopeless(out, front):
                out.note = f"{RACE_FOLDS} folds"
            if out.note:
                return
        out.complete = True

    def _learnable(self, train: Ints) -> bool:
        return len(np.unique(self.rows.training.y[train])) > 1

    def _in_time(self, out: Outcome, folds: Sequence[tuple[int, Ints, Ints]]) -> Any:
        """The fits of some folds: side by side, or one by one while the time lasts."""
        if not self.budget.limited:
            jobs = (delayed(self._fit_fold)(out.candidate.model, *pair) for pair in folds)
            yield from Parallel(n_jobs=self.n_jobs, prefer="threads")(jobs)
            return
        for pair in folds:
            if not self.budget.allows(out.one_fit_seconds):
                out.note = "time_budget ended before the last fold"
                return
            yield self._fit_fold(out.candidate.model, *pair)

    def _fit_fold(
        self, model: Any, fold: int, train: Ints, test: Ints
    ) -> tuple[int, Ints, Any, float]:
        start = self.budget.now()
        timed = self.budget.limited and "time_budget" in model.get_params()
        settings: dict[str, Any] = {}
        if timed:
            settings = {"time_budget": max(self.budget.for_comparison, 1e-3)}
        fitted = self.rows.fit(model, train, **settings)
        return fold, test, fitted, self.budget.now() - start

    def _note_fold(self, out: Outcome, fold: int, test: Ints, fitted: Any, seconds: float) -> None:
        given = self.rows.take(out.candidate.model, test)
        said = np.asarray(fitted.predict_proba(given), dtype=np.float64)
        out.note_model(fitted, fold)
        out.one_fit_seconds = max(out.one_fit_seconds, seconds)
        own = np.ix_(test, np.searchsorted(self.rows.classes, fitted.classes_))
        out.proba[test] = 0.0
        out.proba[own] = said
        if out.link is not None:
            out.raw = np.full_like(out.proba, np.nan) if out.raw is None else out.raw
            out.raw[test] = 0.0
            form = fitted.form_
            out.raw[own] = probabilities(form.score(given), form.link) if out.smoothing else said

    def _hopeless(self, out: Outcome, front: Outcome | None) -> bool:
        """Whether the rows of the first folds say that the candidate cannot matter."""
        if front is None or not front.complete:
            return False
        if out.candidate.decides:
            self.judge.price(out)
            gap = out.row_cost - front.row_cost
        else:
            gap = gap_with_a_share(front.proba, out.proba, self.judge.y, self.judge.weight.sum())
        seen = np.isfinite(gap)
        return behind(gap[seen], self.judge.weight[seen])


def gap_with_a_share(
    front: Floats, other: Floats, y: Ints, total: float, share: float = RACE_SHARE
) -> Floats:
    """For each row, how its log loss changes when the other gets this share of the weight.

    Log loss is convex in the weights of a committee: where the sum of these is positive, the best
    weight of the other is smaller still, and the other alone is no better than the front.
    """
    logs = np.stack([log_probabilities(own, total) for own in (front, other)])
    rows = np.arange(len(y))
    both = stacked(logs, np.array([1.0 - share, share]))[rows, y]
    return np.asarray(logs[0][rows, y] - np.log(both))


def behind(gap: Floats, weight: Floats) -> bool:
    """Whether the mean is above zero by more than its standard error.

    The variance has a floor, as if two more rows differed as much as the most different one: where
    only one row differs, its own spread would call that a proof.
    """
    if not len(gap):
        return False
    mean = float(np.average(gap, weights=weight))
    square = float(weight @ (gap - mean) ** 2)
    square += 2.0 * float(np.max(gap**2, initial=0.0))
    # the same model twice differs by rounding alone
    return mean > max(BEHIND * float(np.sqrt(square)) / float(weight.sum()), 1e-9)
