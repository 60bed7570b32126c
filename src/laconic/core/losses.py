"""What a solver is given and what it returns.

Given: a :class:`ScoreLoss`, a convex function of one score per row with at most one kink; those of
the gray zone, of the margin and of the residual are here. A classification loss is phi(y z) with y
in {-1, +1}; with the default ``y=1`` its methods are those of phi itself, and ``psi`` is its
calibration function (Bartlett, Jordan and McAuliffe, 2006): psi(R(f) - R*) <= R_phi(f) - R_phi*, an
excess of the convex risk turned into a bound on the excess of the error rate. A regression loss is
an even function of y - z. Returned: a :class:`Solution`, a point, its value, and a bound on how far
it is from the best.

The gray zone is that of Hérault and Grandvalet, *Classifieurs probabilistes parcimonieux*,
Traitement du Signal 25(4), 2008: equation (3) for the likelihood, (6) for the loss. An example that
is surely on its side of the zone stops mattering; an example exactly at the bound sits on a kink.
Bach's lecture notes (2014) write Phi where Psi is meant in their last example on calibration.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logsumexp, softmax, xlog1py, xlogy
from sklearn.exceptions import ConvergenceWarning

from laconic._typing import Floats


class Kink(NamedTuple):
    """Where each row's loss breaks, and its slopes on either side.

    ``position[i]`` is infinite for a row without a kink; ``low[i] <= high[i]`` are the left and
    the right derivative there (equal, and of no consequence, where there is no kink).
    """

    position: Floats
    low: Floats
    high: Floats

    @property
    def jump(self) -> Floats:
        return self.high - self.low


@runtime_checkable
class ScoreLoss(Protocol):
    """A convex loss phi(z, y) of a real score ``z``, one per row, for a target ``y``.

    Everything is vectorised over rows and free of row weights. Targets are float64: -1 / +1 for
    classification, the response itself for regression. A solver asks for nothing else:

    value
        phi(z, y).
    slope
        d phi / dz. At a kink, the *left* derivative ``low``.
    curvature
        d2 phi / dz2 of the branch that ``slope`` belongs to: finite and >= 0, zero wherever the
        loss is affine. The jump of the slope at the kink is not part of it.
    conjugate
        phi*(u, y) = sup_z (u z - phi(z, y)), ``inf`` outside its domain. Zero must lie in the
        (closed) domain of every row, that is, the loss is bounded below: the certificate scales
        dual slopes towards zero to balance an intercept.
    kink
        Position and one-sided slopes per row. Between kinks the slope is continuous, so that
        phi = smooth + (high - low) max(0, z - position) with a C1 smooth part.

    Losses are small frozen dataclasses without row data, so that blocks of rows can be handed to
    them in any order.
    """

    def value(self, z: Floats, y: Floats) -> Floats: ...

    def slope(self, z: Floats, y: Floats) -> Floats: ...

    def curvature(self, z: Floats, y: Floats) -> Floats: ...

    def conjugate(self, u: Floats, y: Floats) -> Floats: ...

    def kink(self, y: Floats) -> Kink: ...


def fenchel_young(loss: ScoreLoss, z: Floats, u: Floats, y: Floats) -> Floats:
    """phi(z) + phi*(u) - u z, the price of using slope ``u`` at score ``z``; zero iff it fits.

    Rounding may leave a term a few ulp below zero: raising it to zero keeps the bound valid.
    """
    return np.maximum(loss.value(z, y) + loss.conjugate(u, y) - u * z, 0.0)


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


Scores = NDArray[np.float64] | float


def _within(a: Scores, low: float, high: float, inside: Any) -> Floats:
    """A conjugate: ``inside`` where low <= a <= high, infinite elsewhere."""
    a = np.asarray(a, dtype=np.float64)
    return np.where((a >= low) & (a <= high), inside, np.inf)


def invert_psi(psi: Callable[[Floats], Floats], excess: ArrayLike, most: float = 1.0) -> Floats:
    """The largest theta in [0, most] with psi(theta) <= excess, for psi convex and increasing."""
    excess = np.asarray(excess, dtype=np.float64)
    low, high = np.zeros_like(excess), np.full_like(excess, most)
    for _ in range(60):
        middle = (low + high) / 2.0
        below = psi(middle) <= excess
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    # the upper end, so that rounding can only loosen the bound
    return np.where(psi(np.full_like(excess, most)) <= excess, most, high)


class _Smooth:
    """A loss whose slope is continuous."""

    def kink(self, y: Scores) -> Kink:
        shape = np.shape(y)
        return Kink(np.full(shape, np.inf), np.zeros(shape), np.zeros(shape))


class _SquarePsi:
    """psi(theta) = theta^2, the calibration function of both squared losses of the margin."""

    def psi(self, theta: Scores) -> Floats:
        return np.asarray(np.square(theta))

    def psi_inverse(self, excess: Scores) -> Floats:
        return np.asarray(np.sqrt(np.clip(excess, 0.0, 1.0)))


@dataclass(frozen=True)
class SquaredLoss(_SquarePsi, _Smooth):
    """phi(m) = (1 - m)^2: least squares on labels -1 and +1."""

    name: ClassVar[str] = "squared"

    def value(self, z: Scores, y: Scores = 1.0) -> Floats:
        with np.errstate(over="ignore"):
            return np.asarray(np.square(z - np.asarray(y)))

    def slope(self, z: Scores, y: Scores = 1.0) -> Floats:
        return np.asarray(2.0 * (z - np.asarray(y)))

    def curvature(self, z: Scores, y: Scores = 1.0) -> Floats:
        return np.full(np.shape(z), 2.0)

    def conjugate(self, u: Scores, y: Scores = 1.0) -> Floats:
        return np.asarray(np.square(u) / 4.0 + np.asarray(y) * u)


@dataclass(frozen=True)
class LogisticLoss(_Smooth):
    """phi(m) = log(1 + exp(-m)); psi(theta) = log 2 minus the entropy of (1 + theta) / 2."""

    name: ClassVar[str] = "logistic"

    def value(self, z: Scores, y: Scores = 1.0) -> Floats:
        return np.asarray(np.logaddexp(0.0, -np.asarray(y) * z))

    def slope(self, z: Scores, y: Scores = 1.0) -> Floats:
        return np.asarray(-np.asarray(y) * expit(-np.asarray(y) * z))

    def curvature(self, z: Scores, y: Scores = 1.0) -> Floats:
        high = expit(np.asarray(z, dtype=np.float64))
        return np.asarray(high * expit(-np.asarray(z, dtype=np.float64)))

    def conjugate(self, u: Scores, y: Scores = 1.0) -> Floats:
        a = -np.asarray(y) * u
        inside = np.clip(a, 0.0, 1.0)
        return _within(a, 0.0, 1.0, xlogy(inside, inside) + xlog1py(1.0 - inside, -inside))

    def psi(self, theta: Scores) -> Floats:
        theta = np.abs(theta)
        return np.asarray(xlog1py(1.0 + theta, theta) + xlog1py(1.0 - theta, -theta)) / 2.0

    def psi_inverse(self, excess: Scores) -> Floats:
        return invert_psi(self.psi, excess)


@dataclass(frozen=True)
class HingeLoss:
    """phi(m) = max(0, 1 - m), the loss of support vector machines; psi(theta) = |theta|."""

    name: ClassVar[str] = "hinge"

    def value(self, z: Scores, y: Scores = 1.0) -> Floats:
        return np.asarray(np.maximum(0.0, 1.0 - np.asarray(y) * z))

    def slope(self, z: Scores, y: Scores = 1.0) -> Floats:
        y = np.asarray(y, dtype=np.float64)
        margin = y * z
        below = (margin < 1.0) | ((margin == 1.0) & (y > 0))
        return np.where(below, -y, 0.0)

    def curvature(self, z: Scores, y: Scores = 1.0) -> Floats:
        return np.zeros(np.shape(z))

    def conjugate(self, u: Scores, y: Scores = 1.0) -> Floats:
        a = -np.asarray(y) * u
        return _within(a, 0.0, 1.0, -a)

    def kink(self, y: Scores) -> Kink:
        y = np.asarray(y, dtype=np.float64)
        return Kink(y, np.where(y > 0, -1.0, 0.0), np.where(y > 0, 0.0, 1.0))

    def psi(self, theta: Scores) -> Floats:
        return np.asarray(np.abs(theta))

    def psi_inverse(self, excess: Scores) -> Floats:
        return np.asarray(np.clip(excess, 0.0, 1.0))


@dataclass(frozen=True)
class SquaredHingeLoss(_SquarePsi, _Smooth):
    """phi(m) = max(0, 1 - m)^2."""

    name: ClassVar[str] = "squared_hinge"

    def value(self, z: Scores, y: Scores = 1.0) -> Floats:
        with np.errstate(over="ignore"):
            return np.asarray(np.square(np.maximum(0.0, 1.0 - np.asarray(y) * z)))

    def slope(self, z: Scores, y: Scores = 1.0) -> Floats:
        y = np.asarray(y)
        return np.asarray(-2.0 * y * np.maximum(0.0, 1.0 - y * z))

    def curvature(self, z: Scores, y: Scores = 1.0) -> Floats:
        return np.where(np.asarray(y) * z < 1.0, 2.0, 0.0)

    def conjugate(self, u: Scores, y: Scores = 1.0) -> Floats:
        a = -np.asarray(y) * u
        return _within(a, 0.0, np.inf, np.square(a) / 4.0 - a)


@dataclass(frozen=True)
class ExponentialLoss(_Smooth):
    """phi(m) = exp(-m), the loss of AdaBoost; psi(theta) = 1 - sqrt(1 - theta^2)."""

    name: ClassVar[str] = "exponential"

    def value(self, z: Scores, y: Scores = 1.0) -> Floats:
        with np.errstate(over="ignore"):  # an infinite loss only tells a line search to turn back
            return np.asarray(np.exp(-np.asarray(y) * z))

    def slope(self, z: Scores, y: Scores = 1.0) -> Floats:
        return np.asarray(-np.asarray(y) * self.value(z, y))

    def curvature(self, z: Scores, y: Scores = 1.0) -> Floats:
        return self.value(z, y)

    def conjugate(self, u: Scores, y: Scores = 1.0) -> Floats:
        a = -np.asarray(y) * u
        inside = np.maximum(a, 0.0)
        return _within(a, 0.0, np.inf, xlogy(inside, inside) - inside)

    def psi(self, theta: Scores) -> Floats:
        square = np.square(theta)
        return np.asarray(square / (1.0 + np.sqrt(1.0 - square)))

    def psi_inverse(self, excess: Scores) -> Floats:
        excess = np.clip(excess, 0.0, 1.0)
        return np.asarray(np.sqrt(excess * (2.0 - excess)))


@dataclass(frozen=True)
class SquaredError(_Smooth):
    """phi = (y - z)^2 / 2: least squares, whose best constant is the mean."""

    name: ClassVar[str] = "squared"

    def value(self, z: Scores, y: Scores = 0.0) -> Floats:
        with np.errstate(over="ignore"):
            return np.asarray(np.square(z - np.asarray(y)) / 2.0)

    def slope(self, z: Scores, y: Scores = 0.0) -> Floats:
        return np.asarray(z - np.asarray(y), dtype=np.float64)

    def curvature(self, z: Scores, y: Scores = 0.0) -> Floats:
        return np.ones(np.shape(z))

    def conjugate(self, u: Scores, y: Scores = 0.0) -> Floats:
        return np.asarray(np.square(u) / 2.0 + np.asarray(y) * u)


@dataclass(frozen=True)
class AbsoluteError:
    """phi = |y - z|: its best constant is a median, which outliers do not move."""

    name: ClassVar[str] = "absolute"

    def value(self, z: Scores, y: Scores = 0.0) -> Floats:
        return np.asarray(np.abs(z - np.asarray(y)), dtype=np.float64)

    def slope(self, z: Scores, y: Scores = 0.0) -> Floats:
        return np.where(np.asarray(z) > y, 1.0, -1.0)

    def curvature(self, z: Scores, y: Scores = 0.0) -> Floats:
        return np.zeros(np.shape(z))

    def conjugate(self, u: Scores, y: Scores = 0.0) -> Floats:
        return _within(u, -1.0, 1.0, np.asarray(y) * u)

    def kink(self, y: Scores) -> Kink:
        y = np.asarray(y, dtype=np.float64)
        return Kink(y, np.full(y.shape, -1.0), np.ones(y.shape))


@dataclass(frozen=True)
class HuberError(_Smooth):
    """phi = r^2 / 2 when |r| <= epsilon, else epsilon |r| - epsilon^2 / 2, with r = y - z."""

    epsilon: float = 1.35
    name: ClassVar[str] = "huber"

    def __post_init__(self) -> None:
        if not self.epsilon > 0 or not np.isfinite(self.epsilon):
            raise ValueError(f"epsilon must be a positive number, got {self.epsilon!r}.")

    def value(self, z: Scores, y: Scores = 0.0) -> Floats:
        size = np.abs(z - np.asarray(y))
        inside = np.minimum(size, self.epsilon)
        return np.asarray(inside * (size - inside / 2.0), dtype=np.float64)

    def slope(self, z: Scores, y: Scores = 0.0) -> Floats:
        return np.asarray(np.clip(z - np.asarray(y), -self.epsilon, self.epsilon))

    def curvature(self, z: Scores, y: Scores = 0.0) -> Floats:
        return np.where(np.abs(z - np.asarray(y)) <= self.epsilon, 1.0, 0.0)

    def conjugate(self, u: Scores, y: Scores = 0.0) -> Floats:
        inside = np.square(u) / 2.0 + np.asarray(y) * u
        return _within(u, -self.epsilon, self.epsilon, inside)


CLASSIFICATION_LOSSES = {
    loss.name: loss
    for loss in (SquaredLoss, LogisticLoss, HingeLoss, SquaredHingeLoss, ExponentialLoss)
}
REGRESSION_LOSSES = {loss.name: loss for loss in (SquaredError, AbsoluteError, HuberError)}


def middle_intercept(loss: ScoreLoss, z: Floats, y: Floats, weight: Floats, b: float) -> float:
    """The middle of the best intercepts beside scores z, of a loss of straight pieces.

    ``b`` is one of them; where it is the only one, or none, it is returned as it is.

    >>> z, y = np.array([-0.1, 0.1]), np.array([-1.0, 1.0])  # all in [-0.9, 0.9] are best
    >>> round(middle_intercept(HingeLoss(), z, y, np.ones(2), 0.4), 12)
    0.0
    """
    kink = loss.kink(y)
    breaks, low, high = kink.position - z, weight * kink.low, weight * kink.high
    order = np.argsort(breaks)
    breaks, jump = breaks[order], (high - low)[order]
    slopes = low.sum() + np.concatenate([[0.0], np.cumsum(jump)])  # left of each break, then right
    flat = np.flatnonzero(np.abs(slopes) <= 1e-12 * np.abs(jump).sum())
    flat = flat[(flat > 0) & (flat < len(breaks))]
    if not len(flat):
        return b
    first, last = breaks[flat[0] - 1], breaks[flat[-1]]
    near = 1e-9 * (1.0 + abs(b))
    return float(first / 2 + last / 2) if first - near <= b <= last + near else b


def get_loss(name: str, *, task: str = "classification", **parameters: Any) -> Any:
    """A loss by its name; ``parameters`` go to the loss (``epsilon``, ``p_min``, ``p_max``).

    >>> get_loss("huber", task="regression", epsilon=2.0).value(np.array([1.0, 3.0]))
    array([0.5, 4. ])
    """
    known: dict[str, Any] = {**CLASSIFICATION_LOSSES, "gray_zone": TruncatedLogistic}
    if task == "regression":
        known = {**REGRESSION_LOSSES}
    if name not in known:
        raise ValueError(f"loss must be one of {sorted(known)} for {task}, got {name!r}.")
    return known[name](**parameters)


WhyStopped = Literal["gap", "max_iter", "budget", "stalled"]


@dataclass(frozen=True)
class Solution:
    """Result of an optimiser.

    ``gap >= value - minimum >= 0`` holds whatever ``why_stopped`` says; ``math.inf`` means that
    nothing is certified.

    >>> found = Solution(point=2.0, value=1.5, gap=1e-9, n_iter=4, why_stopped="gap")
    >>> found.converged
    True
    """

    point: Any
    value: float
    gap: float
    n_iter: int
    why_stopped: WhyStopped
    details: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def converged(self) -> bool:
        return self.why_stopped == "gap"

    def warn_if_short(self, who: str, remedy: str = "raise max_iter or tol") -> Solution:
        """Say aloud that the optimiser stopped before its target, with the gap it reached."""
        if not self.converged:
            warnings.warn(
                f"{who} stopped early ({self.why_stopped}) after {self.n_iter} iterations: the "
                f"objective {self.value:.6g} is certified within {self.gap:.3g} of the best; "
                f"{remedy}.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self
