"""Convex losses of a score, for classification (of the margin) and regression (of the residual).

Every loss here is a :class:`~laconic.core.solution.ScoreLoss`: ``value``, ``slope``,
``curvature``, ``conjugate`` and ``kink`` of a score z for a target y. A classification loss is
phi(y z) with y in {-1, +1}; with the default ``y=1`` its methods are those of phi itself, and
``psi`` is its calibration function (Bartlett, Jordan and McAuliffe, 2006):
psi(R(f) - R*) <= R_phi(f) - R_phi*, an excess of the convex risk turned into a bound on the excess
of the error rate. A regression loss is an even function of y - z. The gray-zone loss belongs to the
same family and is reached by ``get_loss("gray_zone", ...)``.

Bach's lecture notes (2014) write Phi where Psi is meant in their last example on calibration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlog1py, xlogy

from laconic._typing import Floats
from laconic.core.calibration import invert_psi
from laconic.core.gray_zone import TruncatedLogistic
from laconic.core.solution import Kink

Scores = NDArray[np.float64] | float


def _within(a: Scores, low: float, high: float, inside: Any) -> Floats:
    """A conjugate: ``inside`` where low <= a <= high, infinite elsewhere."""
    a = np.asarray(a, dtype=np.float64)
    return np.where((a >= low) & (a <= high), inside, np.inf)


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
