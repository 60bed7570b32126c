"""What the kept page costs, corrected for having been chosen, and what readability costs.

The held-out rows are drawn again and again with replacement; the page is chosen by the rows drawn,
and priced by those that were not (bias-corrected cross-validation, Tsamardinos et al., 2018). No
model is fitted again. Rows of one group are drawn together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.choose.comparison import Judge
from laconic.choose.page.pages import NO_FOLD, PageChoice
from laconic.choose.tuning import DRAWS, WIDER
from laconic.decide.intervals import design_effect, paid_difference_interval, paid_interval

Interval = Callable[[Floats, float, float, float], tuple[float, float]]


@dataclass(frozen=True)
class Estimate:
    """A number with its standard error and an interval that holds the truth nine times in ten.

    >>> print(Estimate(0.25, 0.01, 0.234, 0.267))
    0.25 (0.234 to 0.267)
    """

    value: float
    error: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


@dataclass(frozen=True)
class _Draws:
    """Rows by class, so that class means under many weights are a few products."""

    judge: Judge
    rows: Floats
    places: Ints
    unit: Ints

    def counts(self, seed: int) -> Iterator[Floats]:
        """How often each row was drawn; rows of one unit come together."""
        rng = np.random.default_rng(seed)
        n_units = int(self.unit.max()) + 1
        for _ in range(DRAWS):
            drawn = np.bincount(rng.integers(0, n_units, n_units), minlength=n_units)
            yield drawn[self.unit].astype(np.float64)

    def class_means(self, counts: Floats) -> tuple[Floats, Floats]:
        """(classes, columns) means of the rows by weight, and the weight of each class."""
        weight = self.judge.weight[self.places] * counts
        y, n_classes = self.judge.y[self.places], len(self.judge.condition.costs)
        means = np.zeros((n_classes, self.rows.shape[1]))
        totals = np.zeros(n_classes)
        for k in range(n_classes):
            own = np.where(y == k, weight, 0.0)
            totals[k] = own.sum()
            if totals[k] > 0:
                means[k] = own @ self.rows / totals[k]
        return means, totals

    def mixed(self, means: Floats) -> Floats:
        """Means over the class mix, for each column."""
        mix = self.judge.condition.mix
        return np.array([mix(column) @ column for column in means.T])


def reported(
    choice: PageChoice,
    committee: Floats,
    groups: NDArray[np.generic] | None,
    seed: int,
    wider: float = WIDER,
) -> tuple[Estimate, Estimate]:
    """Cost of the page that the choice keeps, and how much more it is than the committee's.

    ``committee`` holds the committee's cost of each row. ``wider`` makes up for what draws of rows
    do not see: fits of other folds share most of their rows (Nadeau and Bengio, 2003, would take
    1.5 for five folds).
    """
    n_pages = len(choice.pages)
    columns = np.column_stack([choice.losses, choice.costs, committee])
    places = np.flatnonzero(np.isfinite(columns).all(axis=1))
    if not len(places):
        raise ValueError(NO_FOLD)
    labels = np.arange(len(columns)) if groups is None else groups
    unit = np.unique(labels[places], return_inverse=True)[1]
    draws = _Draws(choice.judge, columns[places], places, unit)
    inside, outside = [], _Running(len(choice.judge.condition.costs))
    for counts in draws.counts(seed):
        means, _ = draws.class_means(counts)
        mixed = draws.mixed(means)
        kept = n_pages + choice.pick(mixed[:n_pages].tolist())
        inside.append((mixed[kept], mixed[kept] - mixed[-1]))
        left, totals = draws.class_means((counts == 0).astype(np.float64))
        outside.add(left[:, [kept, -1]], totals)
    risks = outside.mean()
    page, whole = draws.mixed(risks)
    spread = np.array(inside)
    everything, _ = draws.class_means(np.ones(len(places)))
    kept = n_pages + choice.pick(draws.mixed(everything)[:n_pages].tolist())
    paid = _Amounts.of(choice.judge, places, draws.rows[:, [kept, -1]], unit)
    cost = _estimate(page, spread[:, 0], wider, paid.reach)
    price = _estimate(page - whole, spread[:, 1], wider, paid.reach_of_difference)
    return replace(cost, low=max(cost.low, paid.least)), price


class _Running:
    """Mean of class risks over the draws in which the class was seen."""

    def __init__(self, n_classes: int) -> None:
        self.total = np.zeros((n_classes, 2))
        self.times = np.zeros(n_classes)

    def add(self, risks: Floats, weight: Floats) -> None:
        seen = weight > 0
        self.total[seen] += risks[seen]
        self.times += seen

    def mean(self) -> Floats:
        return self.total / np.maximum(self.times, 1.0)[:, None]


@dataclass(frozen=True)
class _Amounts:
    """What each row adds to the mean cost above the least possible: of the page, of the committee.

    Draws of rows never show an error that was not seen, so that few errors, or few differences,
    would make an interval of no width; the laws of rare events do not.
    """

    rows: Floats
    most: float
    least: float
    unit: Ints

    @classmethod
    def of(cls, judge: Judge, places: Ints, costs: Floats, unit: Ints) -> _Amounts:
        condition, y, weight = judge.condition, judge.y[places], judge.weight[places]
        n_classes = len(condition.costs)
        by_row = condition.by_row
        possible = condition.costs[y] if by_row is None else by_row[places, y]
        totals = np.bincount(y, weight, minlength=n_classes)
        risks = np.bincount(y, weight * costs[:, 0], minlength=n_classes)
        mix = condition.mix(risks / np.maximum(totals, 1e-300))
        share = len(places) * mix[y] * weight / totals[y]
        least, most = possible.min(axis=1), possible.max(axis=1)
        above = share[:, None] * (costs - least[:, None])
        return cls(
            above, float((share * (most - least)).max()), float(share @ least) / len(places), unit
        )

    @property
    def reach(self) -> tuple[float, float]:
        return self._reach(self.rows[:, 0], paid_interval)

    @property
    def reach_of_difference(self) -> tuple[float, float]:
        return self._reach(self.rows[:, 0] - self.rows[:, 1], paid_difference_interval)

    def _reach(self, amounts: Floats, interval: Interval) -> tuple[float, float]:
        repeats = design_effect(amounts, self.unit)
        low, high = interval(amounts, self.most, repeats, 0.9)
        # rare events have the variance of Poisson's law; where they are not rare it is smaller
        mean, square = float(amounts.mean()), float((amounts**2).mean())
        narrower = np.sqrt(1.0 - mean**2 / square) if square > 0 else 1.0
        return narrower * (low - mean), narrower * (high - mean)


def _estimate(value: float, drawn: Floats, wider: float, reach: tuple[float, float]) -> Estimate:
    """The interval of the draws, and at least that of rare events."""
    low, high = wider * (np.quantile(drawn, [0.05, 0.95]) - drawn.mean())
    error = wider * float(drawn.std(ddof=1))
    low, high = min(low, reach[0]), max(high, reach[1])
    return Estimate(float(value), error, float(value + low), float(value + high))
