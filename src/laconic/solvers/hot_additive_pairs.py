"""Compiled second-order gains of pairs of columns over their margins, from 2-D tables."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from laconic.solvers.hot_additive_rows import cell_sums

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@njit(cache=True, nogil=True)
def _part(g: float, w: float, ridge: float) -> float:
    """g^2 / (w + ridge) less its expectation; zero where no row is."""
    return (g * g - w) / (w + ridge) if w > 0.0 else 0.0


@njit(cache=True, nogil=True)
def _gain(G: Array, H: Array, rows: int, width: int, ridge: float) -> float:
    """Sum of the parts of all cells minus those of both margins."""
    gain = 0.0
    for p in range(rows):
        g = 0.0
        w = 0.0
        for c in range(p * width, (p + 1) * width):
            gain += _part(G[c], H[c], ridge)
            g += G[c]
            w += H[c]
        gain -= _part(g, w, ridge)
    for q in range(width):
        g = 0.0
        w = 0.0
        for c in range(q, rows * width, width):
            g += G[c]
            w += H[c]
        gain -= _part(g, w, ridge)
    return gain


@njit(cache=True, nogil=True)
def pair_gains(
    cells: NDArray[np.uint8],
    sizes: Ints,
    slopes: Array,
    curves: Array,
    ridge: float,
    out: Array,
) -> None:
    """out[a, b] = gain of the pair, a < b; ``cells[j, i]`` is the coarse cell of row i, column j.

    When the pair carries nothing a gain is zero on average: from every cell and margin that rows
    occupy, its expectation is taken away.
    """
    d = cells.shape[0]
    for a in range(d):
        for b in range(a + 1, d):
            size = sizes[a] * sizes[b]
            gain = 0.0
            for k in range(slopes.shape[0]):
                G = np.zeros(size)
                H = np.zeros(size)
                cell_sums(cells[a], cells[b], sizes[b], slopes[k], G)
                cell_sums(cells[a], cells[b], sizes[b], curves[k], H)
                gain += _gain(G, H, sizes[a], sizes[b], ridge)
            out[a, b] = gain


@njit(cache=True, nogil=True)
def _completed(table: Array, start: Ints, sizes: Ints, a: int, b: int, out: Array) -> None:
    """The table of two columns; the cells of the first levels follow from the margins.

    ``table`` holds the sums of all pairs of levels but the first of each column; its last row and
    column are those of no level: sums of one level, and of all rows.
    """
    m, width = sizes[a], sizes[b]
    end = table.shape[0] - 1
    out[0] = table[end, end]
    for p in range(1, m):
        out[p * width] = table[start[a] + p - 1, end]
        out[0] -= out[p * width]
    for q in range(1, width):
        out[q] = table[end, start[b] + q - 1]
        out[0] -= out[q]
    for p in range(1, m):
        for q in range(1, width):
            v = table[start[a] + p - 1, start[b] + q - 1]
            out[p * width + q] = v
            out[p * width] -= v
            out[q] -= v
            out[0] += v


@njit(cache=True, nogil=True)
def add_gains_of_tables(
    G: Array, H: Array, start: Ints, sizes: Ints, least: float, ridge: float, out: Array
) -> None:
    """out[a, b] += gain of the pair by tables of all levels; cells under ``least`` are empty."""
    d = sizes.shape[0]
    most = sizes.max() ** 2
    g = np.empty(most)
    h = np.empty(most)
    for a in range(d):
        for b in range(a + 1, d):
            _completed(G, start, sizes, a, b, g)
            _completed(H, start, sizes, a, b, h)
            for c in range(sizes[a] * sizes[b]):
                if h[c] <= least:
                    h[c] = 0.0
            out[a, b] += _gain(g, h, sizes[a], sizes[b], ridge)
