"""Losses of rows, and the same with their kinks rounded off.

A kink of height J at t becomes a ramp of the slope over ``width``:
J clip(share + (z - t) / width, 0, 1), where ``share`` in [0, 1] is the current guess of the row's
multiplier. With the right share the ramp is right at z = t whatever its width (the method of
multipliers), so that the width need not go to zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laconic._typing import Floats, Ints, Mask
from laconic.core.losses import ScoreLoss, TruncatedLogistic, fenchel_young
from laconic.linear.solvers.rows import best_constant, no_less_than_tiny


@dataclass
class Rounded:
    """Weighted value, slopes and curvatures of the rounded losses at some scores."""

    value: float
    slope: Floats
    curvature: Floats


class LossRows:
    """Targets and weights (times C) of rows, with the loss and its kinks."""

    def __init__(self, loss: ScoreLoss, y: Floats, weight: Floats) -> None:
        self.loss = loss
        self.y = np.ascontiguousarray(y, dtype=np.float64)
        self.weight = np.ascontiguousarray(no_less_than_tiny(weight), dtype=np.float64)
        self._positions = loss.positions if isinstance(loss, TruncatedLogistic) else (0.0, 0.0)
        kink = loss.kink(self.y)
        self.has_kink: Mask = np.isfinite(kink.position) & (kink.high > kink.low)
        self.position = np.where(self.has_kink, kink.position, 0.0)
        self.jump = np.where(self.has_kink, self.weight * kink.jump, 0.0)
        self.low = np.where(self.has_kink, self.weight * kink.low, 0.0)
        # an objective can be zero (a perfect absolute fit): a gap is small next to this then
        self.least = 1e-12 * float(self.weight.sum()) * (1.0 + float(np.abs(self.y).max()))

    @property
    def n_rows(self) -> int:
        return len(self.y)

    def subset(self, rows: Ints, factor: float = 1.0) -> LossRows:
        return LossRows(self.loss, self.y[rows], factor * self.weight[rows])

    def value(self, z: Floats) -> float:
        """The true weighted loss."""
        if isinstance(self.loss, TruncatedLogistic):
            from laconic.kernel._numba import truncated_value

            ends = (*self._positions, *self.loss.floors)
            return float(truncated_value(z, self.y, self.weight, *ends))
        return float(self.weight @ self.loss.value(z, self.y))

    def tilt(self, z: Floats, b: float) -> float:
        """The slope of :meth:`value` at z + b with respect to b."""
        if isinstance(self.loss, TruncatedLogistic):
            from laconic.kernel._numba import truncated_tilt

            return float(truncated_tilt(z, b, self.y, self.weight, *self._positions))
        return float(self.weight @ self.loss.slope(z + b, self.y))

    def rounded(self, z: Floats, width: float, share: Floats) -> Rounded:
        if isinstance(self.loss, TruncatedLogistic):
            from laconic.kernel._numba import rounded_truncated

            slope, curvature = np.empty_like(z), np.empty_like(z)
            ends = (*self._positions, *self.loss.heights)
            total = rounded_truncated(z, self.y, self.weight, share, width, *ends, slope, curvature)
            return Rounded(total, slope, curvature)
        s, y, t, J = self.weight, self.y, self.position, self.jump
        above = self.has_kink & (z > t)
        passed = share + (z - t) / width
        held = np.clip(passed, 0.0, 1.0)
        inside = (passed > 0.0) & (passed < 1.0) & self.has_kink
        smooth = s * self.loss.value(z, y) - J * np.maximum(z - t, 0.0)
        ramp = J * width * np.where(passed > 1.0, passed - 0.5, 0.5 * held * held)
        slope = s * self.loss.slope(z, y) - np.where(above, J, 0.0) + J * held
        # exactly on its kink a row already has its left slope
        curvature = s * self.loss.curvature(z, y) + np.where(inside, J / width, 0.0)
        return Rounded(float((smooth + ramp).sum()), slope, curvature)

    def shares(self, z: Floats, width: float, share: Floats) -> Floats:
        """Multipliers that the ramp gives at the scores ``z``, as shares of the jump."""
        return np.where(self.has_kink, np.clip(share + (z - self.position) / width, 0.0, 1.0), 0.0)

    def shares_of(self, slope: Floats) -> Floats:
        """Shares of the jump that given weighted slopes stand for."""
        jump = np.where(self.has_kink, self.jump, 1.0)
        return np.where(self.has_kink, np.clip((slope - self.low) / jump, 0.0, 1.0), 0.0)

    def price(self, z: Floats, slope: Floats) -> float:
        """Fenchel-Young sum of weighted slopes at scores."""
        # towards zero, where every conjugate is finite: rounding may have left the domain by an ulp
        u = slope * (1.0 - 1e-15)
        loss = self.loss
        if isinstance(loss, TruncatedLogistic):
            from laconic.linear.solvers._numba import price_truncated

            ends = (*self._positions, *loss.heights, *loss.floors)
            return float(price_truncated(z, u, self.y, self.weight, *ends))
        u /= self.weight
        return float(self.weight @ fenchel_young(self.loss, z, u, self.y))

    def on_ramp(self, slope: Floats) -> Mask:
        """Rows whose slope lies strictly between the two slopes at their kink."""
        reach = slope - self.low
        slack = 1e-9 * self.jump
        return self.has_kink & (reach > slack) & (reach < self.jump - slack)

    def best_constant(self) -> float:
        """About the best score when it is the same for every row."""
        return best_constant(self.loss, self.y, self.weight)
