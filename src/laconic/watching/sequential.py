r"""Has the cost left its band? A test that may be looked at after every labelled row.

Under "the mean is at most m", the wealth of a gambler who bets the share :math:`\lambda_t` on the
next cost x (scaled to [0, 1]) being larger,

.. math:: K_t = \prod_{s \le t} \bigl(1 + \lambda_s (x_s - m)\bigr),

is on average never more than 1, whatever the law of the costs and however often it is looked at;
that it ever reaches :math:`1/\alpha` has probability :math:`\alpha` at most (Ville's inequality;
Waudby-Smith and Ramdas 2024). The bets follow the mean and variance seen so far.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from laconic._typing import Floats


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
    wealth: list[float] = field(default_factory=list)
    """Logarithm of the wealth after every value."""
    _sum: float = 0.5
    _squares: float = 0.25
    _n: int = 1

    def __post_init__(self) -> None:
        if not self.low <= self.bound < self.high:
            between = f"[{self.low:g}, {self.high:g})"
            raise ValueError(f"bound must lie in {between}, got {self.bound:g}.")

    def add(self, values: ArrayLike) -> None:
        """Take values in the order in which they came."""
        m = (self.bound - self.low) / (self.high - self.low)
        scaled: Floats = (np.asarray(values, dtype=np.float64) - self.low) / (self.high - self.low)
        if scaled.size and not (scaled.min() >= 0.0 and scaled.max() <= 1.0):
            raise ValueError(f"values must lie between {self.low:g} and {self.high:g}.")
        last = self.wealth[-1] if self.wealth else 0.0
        for x in scaled.tolist():
            mean = self._sum / self._n
            spread = max(self._squares / self._n, 1e-4)
            ahead = mean - m
            # at most half of what could be lost at once
            bet = min(max(ahead / (spread + ahead * ahead), 0.0), 0.5 / max(m, 1e-3))
            last += float(np.log1p(bet * (x - m)))
            self.wealth.append(last)
            self._n += 1
            self._sum += x
            self._squares += (x - self._sum / self._n) ** 2

    def alarm_at(self) -> int | None:
        """The first value after which the doubt is used up, counted from 1; None for never."""
        above = np.flatnonzero(np.array(self.wealth) >= np.log(1.0 / self.doubt))
        return int(above[0]) + 1 if len(above) else None
