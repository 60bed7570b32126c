"""Compiled kernel of the exact k-means of a line."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@njit(cache=True)
def _spread(mass: Floats, first: Floats, second: Floats, i: int, j: int) -> float:
    """Squared deviations of the sorted points i..j-1 around their mean, from running sums."""
    weight = mass[j] - mass[i]
    shift = first[j] - first[i]
    inside = second[j] - second[i] - shift * shift / weight
    return inside if inside > 0.0 else 0.0


@njit(cache=True)
def fill_starts(mass: Floats, first: Floats, second: Floats, k_max: int) -> tuple[Floats, Ints]:
    """Best distortion of points 0..j-1 in k groups, and where the last group starts, for all k.

    ``starts[k - 1, j]`` never decreases with j, so each row is filled by halving: the middle j
    is searched between the answers of its neighbours, O(n log n) for a row.
    """
    n = mass.size - 1
    starts = np.zeros((k_max, n + 1), dtype=np.int64)
    distortion = np.empty(k_max)
    before = np.empty(n + 1)
    now = np.empty(n + 1)
    for j in range(1, n + 1):
        before[j] = _spread(mass, first, second, 0, j)
    before[0] = 0.0
    distortion[0] = before[n]
    stack = np.empty((64 + 2 * int(np.log2(n + 2.0)), 4), dtype=np.int64)
    for k in range(1, k_max):
        now[:] = np.inf
        stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = k + 1, n, k, n - 1
        depth = 1
        while depth > 0:
            depth -= 1
            low, high = stack[depth, 0], stack[depth, 1]
            from_, to = stack[depth, 2], stack[depth, 3]
            if low > high:
                continue
            middle = (low + high) // 2
            best, best_start = np.inf, from_
            for i in range(max(from_, k), min(to, middle - 1) + 1):
                total = before[i] + _spread(mass, first, second, i, middle)
                if total < best:
                    best, best_start = total, i
            now[middle] = best
            starts[k, middle] = best_start
            stack[depth, 0], stack[depth, 1] = low, middle - 1
            stack[depth, 2], stack[depth, 3] = from_, best_start
            depth += 1
            stack[depth, 0], stack[depth, 1] = middle + 1, high
            stack[depth, 2], stack[depth, 3] = best_start, to
            depth += 1
        distortion[k] = now[n]
        before, now = now, before
    return distortion, starts
