"""Compiled screening of column pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from laconic.solvers.hot_groups import group_cost

Array = NDArray[Any]

_SIDE = 8


@njit(cache=True, nogil=True)
def _marginal_cost(cells: Array, size: int, axis: int, n_classes: int, empty: Array) -> float:
    """Summed cost of the rows (axis 0) or columns (axis 1) of a size x size grid."""
    cost = 0.0
    own = np.empty(n_classes)
    for a in range(size):
        own[:] = 0.0
        for b in range(size):
            for j in range(n_classes):
                own[j] += cells[a, b, j] if axis == 0 else cells[b, a, j]
        cost += group_cost(own, n_classes, empty)
    return cost


@njit(cache=True, nogil=True)
def _gain(cells: Array, size: int, n_classes: int, empty: Array) -> float:
    whole = np.zeros(n_classes)
    joint = 0.0
    for a in range(size):
        for b in range(size):
            filled = False
            for j in range(n_classes):
                whole[j] += cells[a, b, j]
                filled = filled or cells[a, b, j] > 0.0
            if filled:
                joint += group_cost(cells[a, b], n_classes, empty)
    gain = _marginal_cost(cells, size, 0, n_classes, empty)
    gain += _marginal_cost(cells, size, 1, n_classes, empty)
    return gain - group_cost(whole, n_classes, empty) - joint


@njit(cache=True, nogil=True)
def _halve(cells: Array, size: int, n_classes: int) -> Array:
    half = size // 2
    out = np.zeros((half, half, n_classes))
    for a in range(size):
        for b in range(size):
            for j in range(n_classes):
                out[a // 2, b // 2, j] += cells[a, b, j]
    return out


@njit(cache=True, nogil=True)
def _all_gains(codes: Array, y: Array, weight: Array, n_classes: int, table: Array) -> Array:
    n_rows, n_columns = codes.shape
    gains = np.full((n_columns, n_columns), -np.inf)
    cells = np.empty((_SIDE, _SIDE, n_classes))
    for a in range(n_columns):
        for b in range(a + 1, n_columns):
            cells[:] = 0.0
            for i in range(n_rows):
                cells[codes[i, a], codes[i, b], y[i]] += weight[i]
            fine = cells
            size = _SIDE
            best = -np.inf
            while size >= 2:
                gain = _gain(fine, size, n_classes, table)
                best = gain if gain > best else best
                fine = _halve(fine, size, n_classes)
                size //= 2
            gains[a, b] = best
    return gains


def pair_gains(codes: Array, y: Array, weight: Array, n_classes: int) -> Array:
    """Gains of all pairs; codes are in 0..7."""
    from scipy.special import gammaln

    table = gammaln(np.arange(n_classes + 1, dtype=np.float64) + 1.0)
    order = np.asfortranarray(codes)
    return _all_gains(order, y, weight, n_classes, table)
