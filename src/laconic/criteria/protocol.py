"""What a solver may ask of a loss: a convex function of one score per row, at most one kink."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Kink(NamedTuple):
    """Where each row's loss breaks, and its slopes on either side.

    ``position[i]`` is infinite for a row without a kink; ``low[i] <= high[i]`` are the left and
    the right derivative there (equal, and of no consequence, where there is no kink).
    """

    position: Array
    low: Array
    high: Array

    @property
    def jump(self) -> Array:
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

    def value(self, z: Array, y: Array) -> Array: ...

    def slope(self, z: Array, y: Array) -> Array: ...

    def curvature(self, z: Array, y: Array) -> Array: ...

    def conjugate(self, u: Array, y: Array) -> Array: ...

    def kink(self, y: Array) -> Kink: ...


def fenchel_young(loss: ScoreLoss, z: Array, u: Array, y: Array) -> Array:
    """phi(z) + phi*(u) - u z, the price of using slope ``u`` at score ``z``; zero iff it fits.

    Rounding may leave a term a few ulp below zero: raising it to zero keeps the bound valid.
    """
    return np.maximum(loss.value(z, y) + loss.conjugate(u, y) - u * z, 0.0)
