"""Moments of the margin of a majority vote and the C-bound (Lacasse et al. 2006, slides p. 19).

The margin of a vote q on (x, y) is M = y Σ_j q_j h_j(x). Its first two moments bound the risk:
R <= 1 - mu1 (Markov, twice the Gibbs risk) and R <= 1 - mu1²/mu2 (Cantelli), for mu1 > 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MarginMoments:
    """First and second moment of the margin of a vote.

    >>> moments = MarginMoments.of(np.array([0.5, 0.5, 0.5, -0.5]))
    >>> moments.gibbs_risk, moments.disagreement, moments.c_bound()
    (0.375, 0.375, 0.75)
    """

    first: float
    second: float

    @staticmethod
    def of(margins: Floats, weight: Floats | None = None) -> MarginMoments:
        """Moments of given margins, rows weighted when ``weight`` is given."""
        if weight is None:
            return MarginMoments(float(np.mean(margins)), float(np.mean(margins**2)))
        total = float(weight.sum())
        return MarginMoments(
            float(weight @ margins) / total, float(weight @ (margins * margins)) / total
        )

    @property
    def gibbs_risk(self) -> float:
        """Risk of a voter drawn from q: (1 - mu1)/2."""
        return 0.5 * (1.0 - self.first)

    @property
    def disagreement(self) -> float:
        """Probability that two voters drawn from q disagree: (1 - mu2)/2."""
        return 0.5 * (1.0 - self.second)

    @property
    def joint_error(self) -> float:
        """Probability that two voters drawn from q both err (tandem loss): mean ((1 - M)/2)²."""
        return 0.25 * (1.0 - 2.0 * self.first + self.second)

    def c_bound(self) -> float:
        """1 - mu1²/mu2, at most 1; 1 when the mean margin is not positive.

        Written as mu2's part that the best constant does not explain, (mu2 - mu1²)/mu2: the
        difference of two close numbers is taken once, before the division.
        """
        if self.first <= 0.0 or self.second <= 0.0:
            return 1.0
        return float(np.clip((self.second - self.first**2) / self.second, 0.0, 1.0))


def residual_c_bound(margins: Floats, weight: Floats | None = None) -> float:
    """C-bound as the residual of the least squares of 1 on the margins, min_s mean (1 - sM)².

    Equal to 1 - mu1²/mu2, without cancellation when the bound is tiny and without 0/0 when all
    margins are.

    >>> round(residual_c_bound(1e-9 * np.array([1.0, 1.0, 1.0, -1.0])), 12)
    0.75
    """
    moments = MarginMoments.of(margins, weight)
    if moments.first <= 0.0 or moments.second <= 0.0:
        return 1.0
    left = 1.0 - margins * (moments.first / moments.second)
    square = left * left
    total = np.mean(square) if weight is None else weight @ square / weight.sum()
    return float(min(total, 1.0))
