"""The likelihood truncated outside a gray zone, for two classes and for many.

Hérault and Grandvalet, *Classifieurs probabilistes parcimonieux*, Traitement du Signal 25(4),
2008: equation (3) for the likelihood, (6) for the loss. An example that is surely on its side of
the zone stops mattering; an example exactly at the bound sits on a kink.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp, softmax, xlog1py, xlogy

from laconic._typing import Floats
from laconic.core.solution import Kink

FLAT, ON_KINK, CURVED = 0, 1, 2
"""Parts of the training set: I_0 (no weight), I_h (on the kink), I_l (ordinary likelihood)."""


def log_odds(p: float) -> float:
    """log(p / (1 - p)), infinite at 0 and 1."""
    if p <= 0.0:
        return -math.inf
    if p >= 1.0:
        return math.inf
    return math.log(p) - math.log1p(-p)


@dataclass(frozen=True)
class TruncatedLogistic:
    """phi(z, y) = max(log(1 + exp(-y z)), c_y), the loss of equation (6).

    The floor is c_+ = -log(p_max) and c_- = -log(1 - p_min): a positive is no longer rewarded
    above ``p_max``, a negative no longer below ``p_min``. With (0, 1) it is the logistic loss.

    The paper centres its zones so that sqrt(p_min p_max) = pi; the intervals it prints are
    centred in log-odds instead, which is what :attr:`centre` returns.

    >>> loss = TruncatedLogistic(0.2, 0.4)
    >>> z, y = np.array([-2.0, 0.0, 2.0]), np.array([1.0, 1.0, 1.0])
    >>> loss.value(z, y).round(3)
    array([2.127, 0.916, 0.916])
    >>> loss.slope(z, y).round(3)
    array([-0.881,  0.   ,  0.   ])
    """

    p_min: float = 0.0
    p_max: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.p_min < self.p_max <= 1.0:
            raise ValueError(
                f"zone must hold 0 <= p_min < p_max <= 1, got ({self.p_min}, {self.p_max})."
            )

    @property
    def positions(self) -> tuple[float, float]:
        """Scores at the kinks of a negative and of a positive example."""
        return log_odds(self.p_min), log_odds(self.p_max)

    @property
    def heights(self) -> tuple[float, float]:
        """Slope lost at the kink by a negative and by a positive example."""
        return self.p_min, 1.0 - self.p_max

    @property
    def floors(self) -> tuple[float, float]:
        """Least loss of a negative and of a positive example."""
        return -math.log1p(-self.p_min), -math.log(self.p_max)

    @property
    def centre(self) -> float:
        """Middle of the zone in log-odds; the plain middle when one end is 0 or 1."""
        low, high = self.positions
        if math.isinf(low) or math.isinf(high):
            return 0.5 * (self.p_min + self.p_max)
        return float(expit(0.5 * (low + high)))

    def _curved(self, z: Floats, y: Floats) -> NDArray[np.bool_]:
        low, high = self.positions
        return np.where(y > 0, z <= high, z > low)

    def value(self, z: Floats, y: Floats) -> Floats:
        negative, positive = self.floors
        plain: Floats = np.logaddexp(0.0, -y * z)
        return np.maximum(plain, np.where(y > 0, positive, negative))

    def slope(self, z: Floats, y: Floats) -> Floats:
        return np.where(self._curved(z, y), -y * expit(-y * z), 0.0)

    def curvature(self, z: Floats, y: Floats) -> Floats:
        return np.where(self._curved(z, y), expit(z) * expit(-z), 0.0)

    def conjugate(self, u: Floats, y: Floats) -> Floats:
        """Linear up to the kink's slope, then the entropy of a = -y u in [0, 1]."""
        a = -y * u
        height = np.where(y > 0, self.heights[1], self.heights[0])
        floor = np.where(y > 0, self.floors[1], self.floors[0])
        # with a zero height the kink is at infinity and the linear piece is the point a = 0
        reach = np.where(y > 0, self.positions[1], -self.positions[0])
        linear = np.where(height > 0, -a * np.where(height > 0, reach, 0.0), 0.0) - floor
        inside = np.clip(a, 0.0, 1.0)
        entropy = xlogy(inside, inside) + xlog1py(1.0 - inside, -inside)
        return np.where((a < 0) | (a > 1), np.inf, np.where(a <= height, linear, entropy))

    def kink(self, y: Floats) -> Kink:
        low, high = self.positions
        positive = y > 0
        return Kink(
            np.where(positive, high, low),
            np.where(positive, -self.heights[1], 0.0),
            np.where(positive, 0.0, self.heights[0]),
        )

    def partition(self, z: Floats, y: Floats, on_kink: NDArray[np.bool_]) -> NDArray[np.int8]:
        """0 = I_0, 1 = I_h, 2 = I_l.

        The paper's I_l reads -y (f + b) > f_i with the sign of the kink lost; here a row is in I_l
        when it lies on the curved side of its kink.
        """
        side = np.where(self._curved(z, y), CURVED, FLAT)
        return np.where(on_kink, ON_KINK, side).astype(np.int8)


@dataclass(frozen=True)
class TruncatedMultinomial:
    """phi(F, y) = max(logsumexp(F) - F_y, -log q_y): one cap q per class, convex in F.

    ``F`` is n x K and ``y`` holds class codes. The dual point of a row is a share theta in [0, 1]
    and probabilities P: its slope is theta (P - e_y), the conjugate is the least over theta of
    theta sum_k P_k log P_k - (1 - theta) c_y, so any theta certifies.

    >>> loss = TruncatedMultinomial((0.5, 0.5, 1.0))
    >>> loss.value(np.array([[3.0, 0.0, 0.0]]), np.array([0])).round(4)
    array([0.6931])
    """

    caps: tuple[float, ...]

    def __post_init__(self) -> None:
        if not all(0.0 < q <= 1.0 for q in self.caps):
            raise ValueError(f"every cap must lie in (0, 1], got {self.caps}.")

    @property
    def floors(self) -> Floats:
        return -np.log(np.asarray(self.caps, dtype=np.float64))

    def plain(self, F: Floats, y: NDArray[np.int64]) -> Floats:
        """logsumexp(F) - F_y, without the floor."""
        total: Floats = logsumexp(F, axis=1)
        return total - F[np.arange(len(y)), y]

    def value(self, F: Floats, y: NDArray[np.int64]) -> Floats:
        return np.maximum(self.plain(F, y), self.floors[y])

    def share(self, F: Floats, y: NDArray[np.int64]) -> Floats:
        """theta off the kink: 1 where the likelihood counts, 0 where it is truncated."""
        return (self.plain(F, y) > self.floors[y]).astype(np.float64)

    def slope(self, F: Floats, y: NDArray[np.int64]) -> Floats:
        gradient: Floats = softmax(F, axis=1)
        gradient[np.arange(len(y)), y] -= 1.0
        return gradient * self.share(F, y)[:, None]

    def curvature(self, F: Floats, y: NDArray[np.int64]) -> Floats:
        """n x K x K: theta (diag(P) - P P')."""
        P: Floats = softmax(F, axis=1)
        matrix = -P[:, :, None] * P[:, None, :]
        diagonal = np.arange(F.shape[1])
        matrix[:, diagonal, diagonal] += P
        return matrix * self.share(F, y)[:, None, None]

    def kink_height(self, F: Floats, y: NDArray[np.int64]) -> Floats:
        """logsumexp(F) - F_y + log q_y: positive where the likelihood counts, zero on the kink."""
        return self.plain(F, y) - self.floors[y]

    def conjugate(self, u: Floats, share: Floats, y: NDArray[np.int64]) -> Floats:
        """Bound on phi*(u) that the split u = theta (P - e_y) gives; ``inf`` outside the domain."""
        rows = np.arange(len(y))
        positive = np.where(share > 0, share, 1.0)
        P = u / positive[:, None]
        P[rows, y] += np.where(share > 0, 1.0, 0.0)
        bad = (P.min(axis=1) < -1e-12) | (np.abs(u.sum(axis=1)) > 1e-9) | (share > 1 + 1e-12)
        P = np.clip(P, 0.0, 1.0)
        entropy: Floats = xlogy(P, P).sum(axis=1)
        return np.where(bad, np.inf, share * entropy - (1.0 - share) * self.floors[y])
