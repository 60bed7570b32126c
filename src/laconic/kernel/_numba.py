"""Compiled exponential of numbers that are not positive, in place: a gaussian kernel's last step.

x = k log 2 + r with |r| <= log(2) / 2, a polynomial in r and the bits of 2^k. Adding 1.5 * 2^52 (or
2^23) leaves k in the lowest bits. Twice as fast as the library's, whose last bit it shares or
misses by one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._jit import njit
from laconic._typing import Floats
from laconic.linear.solvers._numba import logistic, logistic_parts

_LOG2E = 1.4426950408889634
_HIGH, _LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_MAGIC = 6755399441055744.0

_LOG2E_SINGLE = np.float32(_LOG2E)
_HIGH_SINGLE, _LOW_SINGLE = np.float32(0.693359375), np.float32(-2.12194440e-4)
_MAGIC_SINGLE = np.float32(12582912.0)
_ONE, _ZERO, _LEAST = np.float32(1.0), np.float32(0.0), np.float32(-87.0)
_C2, _C3, _C4 = np.float32(1 / 2), np.float32(1 / 6), np.float32(1 / 24)
_C5, _C6, _C7 = np.float32(1 / 120), np.float32(1 / 720), np.float32(1 / 5040)


@njit(cache=True)
def exponential(x: NDArray[np.float64]) -> None:
    """exp(min(x, 0)) of a flat array, in place; below -700 that of -700."""
    shifted, power = np.empty(512), np.empty(512)
    bits, scale = shifted.view(np.int64), power.view(np.int64)
    for start in range(0, x.shape[0], 512):
        m = min(512, x.shape[0] - start)
        part = x[start : start + m]
        for i in range(m):
            v = max(min(part[i], 0.0), -700.0)
            part[i] = v
            shifted[i] = v * _LOG2E + _MAGIC
        for i in range(m):
            scale[i] = (bits[i] + 1023) << 52
        for i in range(m):
            k = shifted[i] - _MAGIC
            r = (part[i] - k * _HIGH) - k * _LOW
            # by Estrin's scheme: a shorter chain of operations than Horner's, as many of them
            r2 = r * r
            r4 = r2 * r2
            p = (1 / 3628800 + r * (1 / 39916800)) + r2 * (1 / 479001600 + r * (1 / 6227020800))
            q = (1 / 720 + r * (1 / 5040)) + r2 * (1 / 40320 + r * (1 / 362880))
            p = (0.5 + r * (1 / 6)) + r2 * (1 / 24 + r * (1 / 120)) + r4 * (q + r4 * p)
            part[i] = power[i] * (1.0 + (r + r2 * p))


@njit(cache=True)
def exponential_single(x: NDArray[Any]) -> None:
    """The same in single precision; below -87 that of -87."""
    shifted, power = np.empty(1024, np.float32), np.empty(1024, np.float32)
    bits, scale = shifted.view(np.int32), power.view(np.int32)
    for start in range(0, x.shape[0], 1024):
        m = min(1024, x.shape[0] - start)
        part = x[start : start + m]
        for i in range(m):
            v = max(min(part[i], _ZERO), _LEAST)
            part[i] = v
            shifted[i] = v * _LOG2E_SINGLE + _MAGIC_SINGLE
        for i in range(m):
            scale[i] = (bits[i] + np.int32(127)) << np.int32(23)
        for i in range(m):
            k = shifted[i] - _MAGIC_SINGLE
            r = (part[i] - k * _HIGH_SINGLE) - k * _LOW_SINGLE
            p = _C6 + r * _C7
            p = _C5 + r * p
            p = _C4 + r * p
            p = _C3 + r * p
            p = _C2 + r * p
            p = _ONE + r * p
            part[i] = power[i] * (_ONE + r * p)


# Compiled loops of the kernel solvers: one row at a time, arrays in, arrays out.


_CHUNK = 1_024


@njit(cache=True)
def rounded_truncated(
    z: Floats,
    y: Floats,
    weight: Floats,
    share: Floats,
    width: float,
    low: float,
    high: float,
    height_negative: float,
    height_positive: float,
    slope: Floats,
    curvature: Floats,
) -> float:
    """Truncated logistic loss with its kink rounded over ``width``, up to a constant.

    In terms of the margin m and the reach r of the row, the loss is the logistic one made linear
    beyond r (its slope there is minus the height) plus height max(0, m - r), which is rounded.
    """
    total = 0.0
    at_low = logistic(-low) if height_negative > 0.0 else 0.0
    at_high = logistic(high) if height_positive > 0.0 else 0.0
    for i in range(z.shape[0]):
        s = weight[i]
        positive = y[i] > 0
        m = z[i] if positive else -z[i]
        reach = high if positive else -low
        height = height_positive if positive else height_negative
        if height == 0.0 or m < reach:
            value, a, bend = logistic_parts(m)
        else:
            value = (at_high if positive else at_low) - height * (m - reach)
            a = height
            bend = 0.0
        if height > 0.0:
            # the share of a positive row counts its jump from below in z, as of a negative one
            start = share[i] if positive else 1.0 - share[i]
            passed = start + (m - reach) / width
            if passed >= 1.0:
                value += height * width * (passed - 0.5)
                a -= height
            elif passed > 0.0:
                value += height * width * 0.5 * passed * passed
                a -= height * passed
                bend += height / width
        total += s * value
        slope[i] = -s * a if positive else s * a
        curvature[i] = s * bend
    return total


@njit(cache=True)
def truncated_tilt(
    z: Floats, b: float, y: Floats, weight: Floats, low: float, high: float
) -> float:
    """Sum of the weighted slopes of the truncated logistic loss at the scores z + b."""
    total = 0.0
    for i in range(z.shape[0]):
        score = z[i] + b
        if y[i] > 0:
            if score <= high:
                total -= weight[i] / (1.0 + math.exp(score))
        elif score > low:
            total += weight[i] / (1.0 + math.exp(-score))
    return total


@njit(cache=True)
def truncated_value(
    z: Floats, y: Floats, weight: Floats, low: float, high: float,
    floor_negative: float, floor_positive: float,
) -> float:  # fmt: skip
    """Weighted truncated logistic loss."""
    total = 0.0
    for i in range(z.shape[0]):
        positive = y[i] > 0
        m = z[i] if positive else -z[i]
        loss = floor_positive if positive else floor_negative
        if m < (high if positive else -low):
            loss = max(logistic(m), loss)
        total += weight[i] * loss
    return total


@njit(cache=True)
def greedy_pivots(
    K: Floats, most: int, least: float, factor: Floats, pivots: NDArray[np.int64]
) -> int:
    """Pivoted Cholesky of a small matrix; returns the rank at which no pivot exceeds ``least``.

    ``factor`` (most x n) receives the rows of the factor, ``pivots`` the places.
    """
    n = K.shape[0]
    left, known, column = np.empty(n), np.zeros(n), np.empty(most)
    for i in range(n):
        left[i] = K[i, i]
    for k in range(most):
        j = 0
        for i in range(1, n):
            if left[i] > left[j]:
                j = i
        if left[j] <= least:
            return k
        for i in range(k):
            column[i] = factor[i, j]
        if k > 0:
            np.dot(column[:k], factor[:k], known)
        scale = math.sqrt(left[j])
        for i in range(n):
            factor[k, i] = (K[j, i] - known[i]) / scale
            left[i] -= factor[k, i] * factor[k, i]
        left[j] = 0.0
        pivots[k] = j
    return most


@njit(cache=True, inline="always")
def add_products(left: Any, right: Any, start: int, end: int, out: Any) -> None:
    """out = left . right[:, start:end]; the number of factors is a multiple of four."""
    for k in range(0, left.shape[0], 4):
        a, b, c, d = left[k], left[k + 1], left[k + 2], left[k + 3]
        first, second = right[k, start:end], right[k + 1, start:end]
        third, fourth = right[k + 2, start:end], right[k + 3, start:end]
        if k == 0:
            for p in range(end - start):
                out[p] = (a * first[p] + b * second[p]) + (c * third[p] + d * fourth[p])
        else:
            for p in range(end - start):
                out[p] += (a * first[p] + b * second[p]) + (c * third[p] + d * fourth[p])


@njit(cache=True)
def gaussian_scores(
    left: Floats, right: Floats, used: NDArray[np.int64], weights: Floats, out: Floats
) -> None:
    """out_i = sum_j weights_j exp(left_i . right_j) over the rows ``used``, rising.

    The columns of ``right`` belong to these, its rows are a multiple of four. What is equal on both
    sides of the diagonal is computed once.
    """
    room = np.empty(_CHUNK)
    mirrored = np.zeros(len(used))
    place = np.full(len(out), -1)
    for q in range(len(used)):
        place[used[q]] = q
    for i in range(out.shape[0]):
        q = place[i]
        out[i] = weights[q] if q >= 0 else 0.0
        most = q if q >= 0 else len(used)
        for start in range(0, most, _CHUNK):
            end = min(start + _CHUNK, most)
            values = room[: end - start]
            add_products(left[i], right, start, end, values)
            exponential(values)
            out[i] += np.dot(values, weights[start:end])
            if q >= 0:
                size, part = weights[q], mirrored[start:end]
                for p in range(end - start):
                    part[p] += size * values[p]
    for q in range(len(used)):
        out[used[q]] += mirrored[q]


@njit(cache=True)
def add_borders(products: Floats, lengths: Floats, sizes: Floats, out: Any) -> None:
    """out_ij = products_ij + lengths_i + sizes_j."""
    for i in range(products.shape[0]):
        given, row, length = products[i], out[i], lengths[i]
        for p in range(sizes.shape[0]):
            row[p] = given[p] + (length + sizes[p])


@njit(cache=True)
def scaled_rows(table: Any, rows: NDArray[np.int64], sizes: Floats, out: Any) -> None:
    """Some rows, each times its size, in the precision of ``out``."""
    for i in range(rows.shape[0]):
        given, row, size = table[rows[i]], out[i], sizes[i]
        for p in range(given.shape[0]):
            row[p] = size * given[p]


@njit(cache=True)
def sum_of_rows(table: Any, sizes: Floats, out: Floats) -> None:
    """out += sum_i sizes_i table_i; rows of size zero are not read."""
    for i in range(table.shape[0]):
        size = sizes[i]
        if size != 0.0:
            given = table[i]
            for p in range(given.shape[0]):
                out[p] += size * given[p]
