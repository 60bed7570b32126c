"""Compiled loops of the kernel solvers: one row at a time, arrays in, arrays out."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]


@njit(cache=True)
def rounded_truncated(
    z: Array,
    y: Array,
    weight: Array,
    share: Array,
    width: float,
    low: float,
    high: float,
    height_negative: float,
    height_positive: float,
    slope: Array,
    curvature: Array,
) -> float:
    """Truncated logistic loss with its kink rounded over ``width``, up to a constant.

    In terms of the margin m and the reach r of the row, the loss is the logistic one made linear
    beyond r (its slope there is minus the height) plus height max(0, m - r), which is rounded.
    """
    total = 0.0
    for i in range(z.shape[0]):
        s = weight[i]
        positive = y[i] > 0
        m = z[i] if positive else -z[i]
        reach = high if positive else -low
        height = height_positive if positive else height_negative
        if height == 0.0 or m < reach:
            e = math.exp(-abs(m))
            inverse = 1.0 / (1.0 + e)
            value = math.log1p(e)
            a = inverse
            if m > 0:
                a = e * inverse
            else:
                value -= m
            bend = e * inverse * inverse
        else:
            value = math.log1p(math.exp(-abs(reach))) - min(reach, 0.0) - height * (m - reach)
            a = height
            bend = 0.0
        if height > 0.0:
            # the share of a positive row counts its jump from below in z, as of a negative one
            start = share[i] if positive else 1.0 - share[i]
            way = start + (m - reach) / width
            if way >= 1.0:
                value += height * width * (way - 0.5)
                a -= height
            elif way > 0.0:
                value += height * width * 0.5 * way * way
                a -= height * way
                bend += height / width
        total += s * value
        slope[i] = -s * a if positive else s * a
        curvature[i] = s * bend
    return total


@njit(cache=True)
def greedy_pivots(
    K: Array, most: int, least: float, factor: Array, pivots: NDArray[np.int64]
) -> int:
    """Pivoted Cholesky of a small matrix; returns the rank at which no pivot exceeds ``least``.

    ``factor`` (most x n) receives the rows of the factor, ``pivots`` the places.
    """
    n = K.shape[0]
    left = np.empty(n)
    for i in range(n):
        left[i] = K[i, i]
    for k in range(most):
        j = int(np.argmax(left))
        if left[j] <= least:
            return k
        row = K[j].copy()
        if k > 0:
            row -= np.dot(factor[:k, j].copy(), factor[:k])
        row /= math.sqrt(left[j])
        left -= row * row
        left[j] = 0.0
        factor[k] = row
        pivots[k] = j
    return most
