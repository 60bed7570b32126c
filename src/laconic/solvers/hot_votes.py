"""Compiled passes over coded rows for decision stumps.

A feature is coded by small integers; its stumps are "code > b" (ordered features) or "code == b"
(categories), so one weighted histogram prices all of them and no matrix of votes is ever built.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@njit(cache=True)
def histogram(codes: NDArray[Any], start: NDArray[np.int64], value: Floats, out: Floats) -> None:
    """Add ``value`` of every row to the bin of each of its codes."""
    n, d = codes.shape
    for j in range(d):
        shift = start[j]
        for i in range(n):
            out[shift + codes[i, j]] += value[i]


@njit(cache=True)
def additive_score(
    codes: NDArray[Any],
    start: NDArray[np.int64],
    table: Floats,
    used: NDArray[np.int64],
    out: Floats,
) -> None:
    """Add to ``out`` the table entries of every row, over the features ``used``."""
    for j in used:
        shift = start[j]
        for i in range(codes.shape[0]):
            out[i] += table[shift + codes[i, j]]


@njit(cache=True)
def stump_edges(
    bins: Floats,
    start: NDArray[np.int64],
    first: NDArray[np.int64],
    ordered: NDArray[np.bool_],
    out: Floats,
) -> None:
    """Edges of all stumps from the histogram: Σ value·(+1 where the stump says yes, else -1)."""
    for j in range(len(first) - 1):
        total = 0.0
        for b in range(start[j], start[j + 1]):
            total += bins[b]
        below = 0.0
        for s in range(first[j], first[j + 1]):
            here = bins[start[j] + s - first[j]]
            if ordered[j]:
                below += here
                out[s] = total - 2.0 * below
            else:
                out[s] = 2.0 * here - total


@njit(cache=True)
def pack_stump(codes: NDArray[Any], bin_: int, ordered: bool, out: NDArray[np.uint64]) -> None:
    """Bits of one stump's answers on a block of rows, 64 rows a word."""
    n = codes.shape[0]
    for word in range((n + 63) // 64):
        bits = np.uint64(0)
        for i in range(64 * word, min(n, 64 * word + 64)):
            yes = codes[i] > bin_ if ordered else codes[i] == bin_
            if yes:
                bits |= np.uint64(1) << np.uint64(i - 64 * word)
        out[word] = bits


@njit(cache=True)
def _ones(x: np.uint64) -> np.uint64:
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)


@njit(cache=True)
def disagreements(
    left: NDArray[np.uint64], right: NDArray[np.uint64], out: NDArray[np.int64]
) -> None:
    """Number of rows on which packed columns differ, for every pair."""
    for i in range(left.shape[0]):
        for j in range(right.shape[0]):
            count = np.uint64(0)
            for k in range(left.shape[1]):
                count += _ones(left[i, k] ^ right[j, k])
            out[i, j] = np.int64(count)


@njit(cache=True)
def self_disagreements(packed: NDArray[np.uint64], out: NDArray[np.int64]) -> None:
    """The symmetric case of :func:`disagreements`, tiled so that columns stay in cache."""
    n, words = packed.shape
    tile = 512
    for low in range(0, words, tile):
        high = min(words, low + tile)
        for i in range(n):
            for j in range(i):
                count = np.uint64(0)
                for k in range(low, high):
                    count += _ones(packed[i, k] ^ packed[j, k])
                out[i, j] += np.int64(count)
    for i in range(n):
        for j in range(i):
            out[j, i] = out[i, j]


@njit(cache=True)
def hinge_dual_descent(
    H: Floats,
    y: Floats,
    cap: Floats,
    nonnegative: bool,
    order: NDArray[np.int64],
    u: Floats,
    edge: Floats,
    norm: Floats,
) -> float:
    """One pass of dual coordinate ascent for the hinge vote; returns the largest violation.

    ``edge`` is kept equal to Σ_i u_i y_i h(x_i); the weights are its positive part when
    ``nonnegative`` (no complements), itself otherwise.
    """
    worst = 0.0
    for i in order:
        margin = 0.0
        for j in range(H.shape[1]):
            if not nonnegative or edge[j] > 0.0:
                margin += edge[j] * H[i, j]
        slope = 1.0 - y[i] * margin
        if (u[i] <= 0.0 and slope < 0.0) or (u[i] >= cap[i] and slope > 0.0) or norm[i] == 0.0:
            continue
        worst = max(worst, abs(slope))
        new = min(max(u[i] + slope / norm[i], 0.0), cap[i])
        move = (new - u[i]) * y[i]
        u[i] = new
        for j in range(H.shape[1]):
            edge[j] += move * H[i, j]
    return worst
