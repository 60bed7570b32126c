r"""Has the cost left its band? A test that may be looked at after every labelled row.

Under "the mean is at most m", the wealth of a gambler who bets the share :math:`\lambda_t` on the
next cost x (scaled to [0, 1]) being larger,

.. math:: K_t = \prod_{s \le t} \bigl(1 + \lambda_s (x_s - m)\bigr),

is on average never more than 1, whatever the law of the costs and however often it is looked at;
that it ever reaches :math:`1/\alpha` has probability :math:`\alpha` at most (Ville's inequality;
Waudby-Smith and Ramdas 2024). The bets follow the mean and variance seen so far.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from laconic._typing import Floats

_BLOCK = 65_536


@dataclass
class MeanWatch:
    """Wealth against "the mean is at most ``bound``", for values between ``low`` and ``high``.

    >>> watch = MeanWatch(bound=0.2, low=0.0, high=1.0)
    >>> watch.add(np.random.default_rng(0).random(300) < 0.5)
    >>> watch.alarm_at() is not None
    True
    """

    bound: float
    low: float
    high: float
    doubt: float = 0.05
    _log_wealth: float = 0.0
    _sum: float = 0.5
    _squares: float = 0.25
    _n: int = 1
    _alarm: int | None = None

    def __post_init__(self) -> None:
        if not self.low <= self.bound < self.high:
            between = f"[{self.low:g}, {self.high:g})"
            raise ValueError(f"bound must lie in {between}, got {self.bound:g}.")

    def add(self, values: ArrayLike) -> None:
        """Take values in the order in which they came."""
        scaled: Floats = (np.asarray(values, dtype=np.float64) - self.low) / (self.high - self.low)
        if scaled.size and not (scaled.min() >= 0.0 and scaled.max() <= 1.0):
            raise ValueError(f"values must lie between {self.low:g} and {self.high:g}.")
        for start in range(0, len(scaled), _BLOCK):
            self._add_block(scaled[start : start + _BLOCK])

    def _add_block(self, x: Floats) -> None:
        m = (self.bound - self.low) / (self.high - self.low)
        n = self._n + np.arange(len(x) + 1)
        sums = self._sum + np.concatenate([[0.0], np.cumsum(x)])
        away = (x - sums[1:] / n[1:]) ** 2
        squares = self._squares + np.concatenate([[0.0], np.cumsum(away)])
        # a bet knows the values before it only
        ahead = sums[:-1] / n[:-1] - m
        spread = np.maximum(squares[:-1] / n[:-1], 1e-4)
        # at most half of what could be lost at once
        bet = np.clip(ahead / (spread + ahead**2), 0.0, 0.5 / max(m, 1e-3))
        wealth = self._log_wealth + np.cumsum(np.log1p(bet * (x - m)))
        above = np.flatnonzero(wealth >= np.log(1.0 / self.doubt))
        if self._alarm is None and len(above):
            self._alarm = self._n + int(above[0])
        self._log_wealth, self._n = float(wealth[-1]), int(n[-1])
        self._sum, self._squares = float(sums[-1]), float(squares[-1])

    def alarm_at(self) -> int | None:
        """The first value after which the doubt is used up, counted from 1; None for never."""
        return self._alarm
