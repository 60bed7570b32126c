"""The same problem without a d x d matrix: wide or sparse tables, d up to hundreds of thousands.

The hinges are smoothed by multipliers (method of multipliers: the smoothing does not have to
vanish for the limit to be exact) and each smooth problem is solved by Newton's method with
conjugate gradients. Sparse rows with kinks begin with :mod:`laconic.linear.solvers.dual_descent`,
which mostly ends there. The certificate is that of :mod:`laconic.linear.solvers.newton`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from scipy.sparse import issparse

from laconic._typing import Floats
from laconic.core.losses import ScoreLoss, Solution, TruncatedLogistic, WhyStopped
from laconic.data.source import ArraySource, Source
from laconic.linear.solvers.rows import LinearRows, balanced
from laconic.linear.tuning import CG_RESIDUAL, CG_STEPS, PROBLEMS, SHARPEN, SHARPEST


def conjugate_gradients(
    product: Callable[[Floats], Floats], right: Floats, diagonal: Floats, enough: float
) -> Floats:
    """About the x with ``product(x) = right``: until the residual has the norm ``enough``.

    ``product`` multiplies by a symmetric positive matrix, whose ``diagonal`` scales the steps.
    """
    x = np.zeros_like(right)
    r = right.copy()
    s = r / diagonal
    direction = s.copy()
    rs = float(r @ s)
    for _ in range(CG_STEPS):
        Ad = product(direction)
        bend = float(direction @ Ad)
        if bend <= 0 or rs <= 0:
            break
        x += (rs / bend) * direction
        r -= (rs / bend) * Ad
        if float(np.sqrt(r @ r)) <= enough:
            break
        s = r / diagonal
        rs, old = float(r @ s), rs
        direction = s + (rs / old) * direction
    return x


@dataclass
class _Smoothed:
    """The augmented problem at some scores: value, slopes, curvatures and updated multipliers."""

    z: Floats
    value: float
    slope: Floats
    curvature: Floats
    v: Floats


def solve_linear_cg(
    source: Source,
    loss: ScoreLoss,
    *,
    C: float,
    fit_intercept: bool = True,
    tol: float = 1e-6,
    max_iter: int = 100,
    start: Floats | None = None,
) -> Solution:
    """As :func:`~laconic.linear.solvers.newton.solve_linear`, by products with X and X' only.

    ``max_iter`` bounds the Newton steps of each smoothed problem.
    """
    rows = LinearRows(source, loss, C)
    kinked = isinstance(loss, TruncatedLogistic) and max(loss.heights) > 0.0
    if kinked and start is None and isinstance(source, ArraySource) and issparse(source.X):
        from laconic.linear.solvers.dual_descent import descend

        found = descend(rows, source.X, fit_intercept=fit_intercept, tol=tol)
        if found.converged:
            return found
        start = found.point
    return _Multipliers(rows, fit_intercept, tol, max_iter).run(start)


class _Multipliers:
    def __init__(self, rows: LinearRows, fit_intercept: bool, tol: float, max_iter: int) -> None:
        self.rows = rows
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        kink = rows.kink
        self.ceiling = np.where(np.isfinite(kink.position), rows.weight * kink.jump, 0.0)
        self.position = np.where(self.ceiling > 0, kink.position, 0.0)
        # multipliers of the kinks (augmented Lagrangian), started in the middle of their range
        self.v = 0.5 * self.ceiling
        self.sharpness = 4.0
        self.n_iter = 0
        self.trace: list[float] = []

    def run(self, start: Floats | None) -> Solution:
        point = np.zeros(self.rows.n_columns + 1)
        if start is not None:
            point[:] = start
        if not self.fit_intercept:
            point[-1] = 0.0
        here = self._smooth(self.rows.scores(point))
        why: WhyStopped = "max_iter"
        aim = 1e-2
        before = np.inf
        while True:
            point, here, reached = self._minimise(point, here, aim)
            gap, value, slope = self._certify(point, here)
            self.trace.append(gap)
            if gap <= self.tol * value:
                why = "gap"
                break
            if not reached and self.n_iter >= self.max_iter:
                break
            if len(self.trace) >= PROBLEMS:
                why = "stalled"
                break
            self.v = here.v
            if gap > 0.2 * before:
                # new multipliers alone did not do it: narrow the smoothing
                self.sharpness = min(SHARPEN * self.sharpness, SHARPEST)
            before = gap
            # inexact minimisation: each smoothed problem is solved more closely than the last
            aim = max(0.03 * aim, 1e-4 * self.tol)
            here = self._smooth(here.z)
        return self._solution(point, here, gap, value, slope, why)

    # -- the smoothed problem ------------------------------------------------------------------

    def _smooth(self, z: Floats) -> _Smoothed:
        state = self.rows.evaluate(z)
        ahead = np.where(self.ceiling > 0, z - self.position, 0.0)
        stiffness = self.sharpness * self.ceiling
        # the proximal point of the multiplier: the hinge is smoothed around where it stood
        v = np.clip(self.v + stiffness * ahead, 0.0, self.ceiling)
        natural = np.where(ahead > 0, self.ceiling, 0.0)
        inside = (v > 0) & (v < self.ceiling)
        with np.errstate(divide="ignore", invalid="ignore"):
            pull = np.where(stiffness > 0, (v - self.v) ** 2 / (2.0 * stiffness), 0.0)
        value = state.loss + float(((v - natural) * ahead - pull).sum())
        curvature = state.curvature + np.where(inside, stiffness, 0.0)
        return _Smoothed(z, value, state.slope + (v - natural), curvature, v)

    def _minimise(
        self, point: Floats, here: _Smoothed, aim: float
    ) -> tuple[Floats, _Smoothed, bool]:
        """Newton steps until |gradient|^2 / 2 <= aim * value."""
        for left in range(self.max_iter, -1, -1):
            gradient = self.rows.transposed(here.slope)
            gradient[:-1] += point[:-1]
            if not self.fit_intercept:
                gradient[-1] = 0.0
            value = 0.5 * float(point[:-1] @ point[:-1]) + here.value
            if 0.5 * float(gradient @ gradient) <= aim * abs(value):
                return point, here, True
            if left == 0:
                break
            self.n_iter += 1
            p = self._direction(gradient, here.curvature)
            dz = self.rows.scores(p)
            length, there = self._search(point, here, p, dz, float(gradient @ p), value)
            if length == 0.0:
                break
            point, here = point + length * p, there
        return point, here, False

    def _direction(self, gradient: Floats, curvature: Floats) -> Floats:
        """Conjugate gradients on (I + X'DX) p = -gradient, scaled by the diagonal."""
        rows = self.rows
        diagonal = rows.weighted_squares(curvature)
        diagonal[:-1] += 1.0
        # a loss without curvature leaves b free: as in the dense solver, a light proximal term
        light = 1e-9 * float(rows.weight.sum()) + 1e-12
        diagonal[-1] = max(diagonal[-1], light) if self.fit_intercept else 1.0

        def product(p: Floats) -> Floats:
            out = rows.transposed(curvature * rows.scores(p))
            out[:-1] += p[:-1]
            out[-1] = out[-1] + light * p[-1] if self.fit_intercept else p[-1]
            return out

        size = float(np.sqrt(gradient @ gradient))
        return conjugate_gradients(product, -gradient, diagonal, CG_RESIDUAL * size)

    def _search(
        self, point: Floats, here: _Smoothed, p: Floats, dz: Floats, tilt: float, value: float
    ) -> tuple[float, _Smoothed]:
        w, dw = point[:-1], p[:-1]
        length = 1.0
        for _ in range(30):
            there = self._smooth(here.z + length * dz)
            w_new = w + length * dw
            total = 0.5 * float(w_new @ w_new) + there.value
            # Armijo's rule; the last term is what rounding may lose at the end
            if total <= value + 1e-4 * length * tilt + 1e-15 * abs(value):
                return length, there
            length *= 0.5
        return 0.0, here

    # -- certificate ---------------------------------------------------------------------------

    def _certify(self, point: Floats, here: _Smoothed) -> tuple[float, float, Floats]:
        """Gap of the smoothed slopes, which lie in the true subdifferentials' hull."""
        rows = self.rows
        value = 0.5 * float(point[:-1] @ point[:-1]) + rows.evaluate(here.z).loss
        slope = balanced(here.slope) if self.fit_intercept else here.slope
        apart = (rows.transposed(slope)[:-1]) + point[:-1]
        return 0.5 * float(apart @ apart) + rows.price(here.z, slope), value, slope

    def _solution(
        self,
        point: Floats,
        here: _Smoothed,
        gap: float,
        value: float,
        slope: Floats,
        why: WhyStopped,
    ) -> Solution:
        on_kink = (here.v > 0) & (here.v < self.ceiling)
        details = {
            "dual": slope / self.rows.weight,
            "scores": here.z,
            "on_kink": on_kink,
            "trace": tuple(self.trace),
        }
        return Solution(point, value, gap, self.n_iter, why, MappingProxyType(details))
