"""A time budget that holds: what a fit will take is learned on fewer rows before it is started."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from laconic._typing import Ints, Keys
from laconic.choose.tuning import (
    PROBE_ROWS,
    SAFETY,
    SHARE_FOR_COMPARISON,
    SHARE_FOR_GROWTH,
    SHARE_FOR_PROBES,
    UNKNOWN_POWER,
)

Clock = Callable[[], float]


class Budget:
    """Seconds for a whole fit, and what is left of them.

    >>> clock = iter([0.0, 1.0, 7.0])
    >>> budget = Budget(10.0, lambda: next(clock))
    >>> budget.left, round(budget.for_comparison, 3)
    (9.0, 0.5)
    """

    def __init__(self, seconds: float | None, clock: Clock = time.monotonic) -> None:
        self.now = clock
        self.seconds = math.inf if seconds is None else float(seconds)
        self._start = clock()

    @property
    def limited(self) -> bool:
        return math.isfinite(self.seconds)

    @property
    def left(self) -> float:
        return self._start + self.seconds - self.now()

    @property
    def for_comparison(self) -> float:
        """What is left before the chosen model must be fitted."""
        return self._start + SHARE_FOR_COMPARISON * self.seconds - self.now()

    def allows(self, seconds: float) -> bool:
        """Whether a fit that takes so long may still be started for comparison."""
        left = self.for_comparison
        return left > 0.0 and SAFETY * seconds <= left


@dataclass(frozen=True)
class Forecast:
    """Seconds that a fit took on so many rows, and how they grow with the rows."""

    rows: int
    seconds: float
    power: float = UNKNOWN_POWER

    def at(self, rows: int) -> float:
        """Seconds on more rows.

        >>> Forecast(100, 0.5, 2.0).at(300)
        4.5
        """
        return float(self.seconds * (rows / self.rows) ** self.power)


def forecast(fit: Callable[[int], object], n_rows: int, budget: Budget) -> Forecast:
    """Fit on growing numbers of rows until the time on all of them is clear.

    Each number is four times the last one. The growth is at least linear, so that what a small
    sample cannot show is not taken for free; a probe may take a small share of what is left.
    """
    rows = min(n_rows, PROBE_ROWS)
    first = _seconds(fit, rows, budget)
    if SHARE_FOR_GROWTH * budget.left < Forecast(rows, first).at(4 * rows) < 3.0 * budget.left:
        # no larger fit would follow, but the first one of a process also loads compiled code
        first = min(first, _seconds(fit, rows, budget))
    found = Forecast(rows, first)
    share = SHARE_FOR_GROWTH
    while 4 * rows < n_rows:
        if found.at(4 * rows) > share * budget.left:
            return found
        rows *= 4
        seconds = _seconds(fit, rows, budget)
        grown = math.log(max(seconds, 1e-9) / max(found.seconds, 1e-9)) / math.log(4.0)
        found = Forecast(rows, seconds, min(max(grown, 1.0), 3.0))
        share = SHARE_FOR_PROBES if grown > 1.0 else SHARE_FOR_GROWTH
    return found


def _seconds(fit: Callable[[int], object], rows: int, budget: Budget) -> float:
    start = budget.now()
    fit(rows)
    return budget.now() - start


def rows_in_time(found: Forecast, n_rows: int, fits: float, seconds: float) -> int:
    """The most rows, halving, on which so many fits take at most ``seconds``."""
    rows = n_rows
    while rows > found.rows and fits * SAFETY * found.at(rows) > seconds:
        rows //= 2
    return max(rows, found.rows)


def keyed_sample(keys: Keys, y: Ints, n_rows: int) -> Ints:
    """Places of about ``n_rows`` rows, the same share of each class, by their keys.

    A smaller sample is a part of a larger one. Every class keeps a row at least.
    """
    if n_rows >= len(y):
        return np.arange(len(y))
    kept = []
    for k in np.unique(y):
        own = np.flatnonzero(y == k)
        most = max(1, round(len(own) * n_rows / len(y)))
        kept.append(own[np.argsort(keys[own], kind="stable")[:most]])
    return np.sort(np.concatenate(kept))
