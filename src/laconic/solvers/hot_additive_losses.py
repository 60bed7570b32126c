"""Compiled losses of additive scores: value, slopes, curvatures, Hessian products."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@njit(cache=True, nogil=True)
def binary_slopes(
    f: Array,
    y: Ints,
    weight: Array,
    zone: Array,
    blur: float,
    residual: Array,
    h: Array,
) -> float:
    """Weighted truncated logistic loss, its slope and curvature (y in {0, 1}); returns the sum.

    ``zone`` = (position, height, floor) of the kink of negatives, then of positives, on the scale
    of the margin; a height of zero means no kink. The kink's hinge is rounded over ``blur``.
    """
    total = 0.0
    for i in range(f.shape[0]):
        w = weight[i]
        if w == 0.0:
            residual[i] = 0.0
            h[i] = 0.0
            continue
        sign = 1.0 if y[i] > 0 else -1.0
        m = sign * f[i]
        at = 3 * y[i]
        e = np.exp(-abs(m))
        plain = np.log1p(e) + max(-m, 0.0)
        tail = e / (1.0 + e) if m > 0.0 else 1.0 / (1.0 + e)
        value = plain
        slope = -tail
        curve = e / ((1.0 + e) * (1.0 + e))
        height = zone[at + 1]
        if height > 0.0:
            gap = zone[at] - m
            if gap <= -0.5 * blur:
                value = zone[at + 2]
                slope = 0.0
                curve = 0.0
            elif gap < 0.5 * blur:
                # smooth part + height * (gap + blur / 2)^2 / (2 blur)
                reach = gap + 0.5 * blur
                if gap > 0.0:
                    value = plain - height * gap
                    slope = -tail + height
                else:
                    value = zone[at + 2]
                    slope = 0.0
                    curve = 0.0
                value += 0.5 * height * reach * reach / blur
                slope -= height * reach / blur
                curve += height / blur
        total += w * value
        residual[i] = w * sign * slope
        h[i] = w * curve
    return total


@njit(cache=True, nogil=True)
def multinomial_slopes(
    f: Array,
    y: Ints,
    weight: Array,
    residual: Array,
    h: Array,
) -> float:
    """Weighted cross-entropy; slope p - e_y; the curvature diag(p) bounds diag(p) - p p'."""
    K, n = f.shape
    total = 0.0
    for i in range(n):
        w = weight[i]
        if w == 0.0:
            for k in range(K):
                residual[k, i] = 0.0
                h[k, i] = 0.0
            continue
        top = f[0, i]
        for k in range(1, K):
            top = max(top, f[k, i])
        scale = 0.0
        for k in range(K):
            h[k, i] = np.exp(f[k, i] - top)
            scale += h[k, i]
        total += w * (np.log(scale) + top - f[y[i], i])
        for k in range(K):
            p = w * h[k, i] / scale
            residual[k, i] = p - (w if k == y[i] else 0.0)
            h[k, i] = p
    return total


@njit(cache=True, nogil=True)
def curved(
    h: Array,
    change: Array,
    out: Array,
) -> None:
    """out = Hessian of the loss times ``change``: h for one score, w (diag(p) - p p') for several.

    With several scores h = w p, so that w is the sum of h over the classes.
    """
    K, n = h.shape
    for i in range(n):
        mean = 0.0
        if K > 1:
            total = 0.0
            for k in range(K):
                total += h[k, i]
                mean += h[k, i] * change[k, i]
            mean = mean / total if total > 0.0 else 0.0
        for k in range(K):
            out[k, i] = h[k, i] * (change[k, i] - mean)
