"""Compiled passes over grids of two columns, bilinear inside each cell.

A row lies in the cell of the slots ``first`` and ``second``, at the shares ``way`` and ``across``
of the way to the next ones. Cells are unsigned numbers: those need no check for places that count
from the end.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
Slots = NDArray[np.uint8]
Ways = NDArray[np.float32]


@njit(cache=True, nogil=True)
def grid_sums(
    first: Slots,
    second: Slots,
    way: Ways,
    across: Ways,
    width: np.uint64,
    values: Array,
    out: Array,
) -> None:
    """Sums by corner: every row has a share in the four corners of its cell."""
    one = np.uint64(1)
    for i in range(values.shape[0]):
        cell = np.uint64(first[i]) * width + np.uint64(second[i])
        high = values[i] * way[i]
        low = values[i] - high
        low_next = low * across[i]
        high_next = high * across[i]
        out[cell] += low - low_next
        out[cell + one] += low_next
        out[cell + width] += high - high_next
        out[cell + width + one] += high_next


@njit(cache=True, nogil=True)
def add_grid(
    first: Slots,
    second: Slots,
    way: Ways,
    across: Ways,
    width: np.uint64,
    corners: Array,
    change: Array,
) -> None:
    """change += the value of the grid at every row."""
    inside = _polynomials(corners, np.int64(width))
    for i in range(change.shape[0]):
        c = np.uint64(4) * (np.uint64(first[i]) * width + np.uint64(second[i]))
        low = inside[c] + way[i] * inside[c + np.uint64(1)]
        step = inside[c + np.uint64(2)] + way[i] * inside[c + np.uint64(3)]
        change[i] += low + across[i] * step


@njit(cache=True, nogil=True)
def _polynomials(corners: Array, width: np.int64) -> Array:
    """c0 + c1 way + across (c2 + c3 way) in every cell: four numbers side by side."""
    n_cells = corners.shape[0] - width - 1
    out = np.empty(4 * n_cells)
    for cell in range(n_cells):
        low, high = corners[cell], corners[cell + width]
        step = corners[cell + 1] - low
        out[4 * cell] = low
        out[4 * cell + 1] = high - low
        out[4 * cell + 2] = step
        out[4 * cell + 3] = corners[cell + width + 1] - high - step
    return out
