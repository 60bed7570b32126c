"""What a solver is given and what it returns.

Given: a loss, a convex function of one score per row with at most one kink. Returned: a point, its
value, and a bound on how far it is from the best.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
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
