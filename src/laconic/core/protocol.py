"""What a solver may ask of a loss: a convex function of one score per row, at most one kink."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

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
