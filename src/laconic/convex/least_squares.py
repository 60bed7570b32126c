"""Penalised least squares in two passes over the rows: normal equations, then the certificate.

P(w, b) = |w|^2 / 2 + C sum_i s_i k (z_i - y_i)^2 / 2,    z = w.x + b
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from laconic._typing import Floats
from laconic.convex.tuning import CHUNK_ROWS, FIRST_ROWS, HIGH_LEVEL, REFINEMENTS
from laconic.core.losses import Solution
from laconic.data.source import Block, Source
from laconic.linear.solvers.rows import dense


@dataclass(frozen=True)
class _Moments:
    """Weighted sums of (x - shift, y - middle, 1) and of their products, in one matrix."""

    shift: Floats
    middle: float
    products: Floats

    @property
    def weight(self) -> float:
        return float(self.products[-1, -1])

    def centred(self) -> tuple[Floats, Floats, Floats, float]:
        """Products of centred columns, with the centred target, and the means."""
        G, d = self.products, len(self.shift)
        means = G[-1, :-1] / self.weight
        # safe from cancellation because the columns were shifted near their means before
        inner = G[:-1, :-1] - self.weight * np.outer(means, means)
        return inner[:d, :d], inner[:d, d], means[:d] + self.shift, float(means[d]) + self.middle


def solve_least_squares(
    source: Source, *, C: float, k: float, fit_intercept: bool, tol: float
) -> Solution | None:
    """Least squares phi = k (z - y)^2 / 2; None where rounding keeps the gap above ``tol``.

    Two passes, one for the normal equations and one for the certificate. The slopes
    u_i = k (z_i - y_i) lose their weighted mean m, which an intercept requires to be zero:
    gap = |w + C sum_i s_i (u_i - m) x_i|^2 / 2 + C sum_i s_i m^2 / (2 k).
    ``Solution.point`` is (w, b), b = 0 without an intercept.
    """
    moments = _moments(source, fit_intercept)
    d = len(moments.shift)
    if fit_intercept:
        H, right, mean, level = moments.centred()
    else:
        H, right = moments.products[:d, :d], moments.products[:d, d]
        mean, level = np.zeros(d), 0.0
    H = C * k * H
    # the penalty |w|^2 / 2; an intercept has dropped out with the centring
    H[np.diag_indices(d)] += 1.0
    try:
        factor = cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
    except (LinAlgError, ValueError):
        return None
    w = cho_solve(factor, C * k * right, check_finite=False)
    for n_iter in range(1, REFINEMENTS + 1):
        point = np.append(w, level - float(mean @ w) if fit_intercept else 0.0)
        value, gap, rest = _certified(source, point, C, k, mean, fit_intercept)
        if not np.isfinite(value):
            return None
        if gap <= tol * value:
            return Solution(point, value, gap, n_iter, "gap")
        # iterative refinement: the residual comes from the rows, not from the normal equations
        w = w - cho_solve(factor, rest, check_finite=False)
    return None


def _moments(source: Source, centre: bool) -> _Moments:
    """One pass; where levels are high, less the first rows' mean, lest they cancel."""
    shift, middle = next(iter(source.map(_first_mean)))
    if not centre:
        shift, middle = np.zeros_like(shift), 0.0
    d = len(shift)
    buffer = np.empty((CHUNK_ROWS, d + 2))

    def part(block: Block) -> Floats:
        total = np.zeros((d + 2, d + 2))
        y, s = np.asarray(block.y, dtype=np.float64), _uneven(block.weight)
        beside = np.ones((2, min(CHUNK_ROWS, len(block))))
        as_it_is = s is None and not shift.any() and isinstance(block.X, np.ndarray)
        for start in range(0, len(block), CHUNK_ROWS):
            here = slice(start, min(start + CHUNK_ROWS, len(block)))
            rows, sides = buffer[: here.stop - here.start], beside[:, : here.stop - here.start]
            np.subtract(y[here], middle, out=sides[0])
            if as_it_is:
                total[:d, :d] += block.X[here].T @ block.X[here]
                total[d, :d] += sides[0] @ block.X[here]
                total[d + 1, :d] += sides[1] @ block.X[here]
                total[d:, d:] += sides @ sides.T
                continue
            np.subtract(dense(block.X[here]), shift, out=rows[:, :d])
            rows[:, d:] = sides.T
            if s is not None:
                rows *= np.sqrt(s[here])[:, None]
            total += rows.T @ rows
        if as_it_is:
            total[:d, d:] = total[d:, :d].T
        return total

    return _Moments(shift, middle, np.asarray(source.sum(part)))


def _uneven(weight: Floats | None) -> Floats | None:
    return None if weight is None or (weight == 1.0).all() else weight


def _first_mean(block: Block) -> tuple[Floats, float]:
    y = np.asarray(block.y[:FIRST_ROWS], dtype=np.float64)  # type: ignore[index]
    X = dense(block.X[:FIRST_ROWS])
    mean = X.mean(axis=0)
    high = (np.abs(mean) > HIGH_LEVEL * X.std(axis=0)).any()
    return mean if high else np.zeros_like(mean), float(y.mean())


def _certified(
    source: Source, point: Floats, C: float, k: float, mean: Floats, fit_intercept: bool
) -> tuple[float, float, Floats]:
    """Value, gap and the gradient that is left, from the coefficients alone."""
    w, b = point[:-1], float(point[-1])

    def part(block: Block) -> tuple[Floats, Any]:
        sums, pull = np.zeros(3), np.zeros(len(w))
        y, s = np.asarray(block.y, dtype=np.float64), _uneven(block.weight)
        for start in range(0, len(block), CHUNK_ROWS):
            here = slice(start, min(start + CHUNK_ROWS, len(block)))
            X = block.X[here]
            miss = np.asarray(X @ w) + (b - y[here])
            tilt = miss if s is None else s[here] * miss
            total = float(len(miss)) if s is None else float(s[here].sum())
            sums += float(tilt @ miss), float(tilt.sum()), total
            pull += tilt @ X
        return sums, pull

    (squares, tilt, weight), pull = source.sum(part)
    m = tilt / weight if fit_intercept else 0.0
    rest = w + C * k * (pull - m * weight * mean)
    value = float(w @ w) / 2.0 + C * k * float(squares) / 2.0
    gap = float(rest @ rest) / 2.0 + C * k * float(weight) * m * m / 2.0
    return value, gap, rest
