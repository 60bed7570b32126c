"""Compiled passes over coded rows for decision stumps.

A feature is coded by small integers; its stumps are "code > b" (ordered features) or "code == b"
(categories), so one weighted histogram prices all of them and no matrix of votes is ever built.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._jit import njit
from laconic._typing import Floats, Ints


@njit(cache=True)
def histogram(codes: NDArray[Any], start: NDArray[np.int64], value: Floats, out: Floats) -> None:
    """Add ``value`` of every row to the bin of each of its codes."""
    n, d = codes.shape
    for j in range(d):
        shift = start[j]
        for i in range(n):
            out[shift + codes[i, j]] += value[i]


@njit(cache=True)
def stump_table(
    bins: NDArray[np.int64],
    weights: Floats,
    rising: NDArray[np.bool_],
    feature: NDArray[np.int64],
    used: NDArray[np.int64],
    start: NDArray[np.int64],
    table: Floats,
) -> None:
    """Fill ``table``, zero so far, over the bins of the features ``used`` with their stumps' vote.

    An ordered stump steps up by 2w after its bin, one of a category is 2w higher in its bin; what
    is left of both is -w.
    """
    base = np.zeros(len(start))
    for k in range(len(bins)):
        base[feature[k]] += weights[k]
        if rising[k] and bins[k] + 1 < start[feature[k] + 1]:
            table[bins[k] + 1] += 2.0 * weights[k]
    for j in used:
        total = 0.0
        for b in range(start[j], start[j + 1]):
            total += table[b]
            table[b] = total - base[j]
    for k in range(len(bins)):
        if not rising[k]:
            table[bins[k]] += 2.0 * weights[k]


@njit(cache=True)
def steepest_by_group(
    slopes: Floats,
    penalty: float,
    no_up: NDArray[np.bool_],
    no_down: NDArray[np.bool_],
    groups: NDArray[np.int64],
    tie: float,
    best: Floats,
    place: NDArray[np.int64],
) -> None:
    """Largest |slope| - penalty of every group, if positive, and the first column that has it.

    Equal up to a share ``tie`` counts as equal.
    """
    for s in range(len(slopes)):
        shut = no_up[s] if slopes[s] > 0.0 else no_down[s]
        pull = abs(slopes[s]) - penalty
        if not shut and pull > best[groups[s]] * (1.0 + tie):
            best[groups[s]] = pull
            place[groups[s]] = s


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
        mine, held = out[first[j] : first[j + 1]], bins[start[j] : start[j + 1]]
        total = 0.0
        if ordered[j]:
            for s in range(mine.shape[0]):
                total += held[s]
                mine[s] = total
            for b in range(mine.shape[0], held.shape[0]):
                total += held[b]
            for s in range(mine.shape[0]):
                mine[s] = total - 2.0 * mine[s]
        else:
            for b in range(held.shape[0]):
                total += held[b]
            for s in range(mine.shape[0]):
                mine[s] = 2.0 * held[s] - total


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


# Compiled passes for votes of stumps on rows that are read block by block.


@njit(cache=True)
def count_pairs(
    codes: NDArray[Any],
    start: Ints,
    fold: Ints,
    y: Ints,
    weight: Floats,
    pairs: Floats,
    singles: Floats,
) -> None:
    """Weight of every pair of bins (row >= column) by fold, and of every bin by fold and class."""
    n, d = codes.shape
    bins = np.empty(d, dtype=np.int64)
    for i in range(n):
        w, f, k = weight[i], fold[i], y[i]
        for j in range(d):
            b = start[j] + np.int64(codes[i, j])
            bins[j] = b
            singles[f, k, b] += w
            for other in range(j + 1):
                pairs[f, b, bins[other]] += w


@njit(cache=True)
def count_scores(
    codes: NDArray[Any],
    start: Ints,
    fold: Ints,
    side: Ints,
    weight: Floats,
    tables: Floats,
    reach: Floats,
    out: Floats,
) -> None:
    """Weight, and weight times score, by step of a path, side and bin of the score.

    ``tables[f, b, t]`` is what bin b adds to the score of step t for a row of fold f; scores of
    step t lie in [-reach[t], reach[t]]. Bins widen with the score, as its logarithm beyond a
    hundred-thousandth of the reach: votes that nearly cancel have few large scores.
    """
    n, d = codes.shape
    steps, half = tables.shape[2], out.shape[3] // 2
    fine = 1e-5
    unit = half / math.log1p(1.0 / fine)
    score = np.empty(steps)
    for i in range(n):
        f, w = fold[i], weight[i]
        score[:] = 0.0
        for j in range(d):
            row = tables[f, start[j] + np.int64(codes[i, j])]
            for t in range(steps):
                score[t] += row[t]
        for t in range(steps):
            step = int(unit * math.log1p(abs(score[t]) / (fine * reach[t])))
            step = min(step, half - 1)
            place = half + step if score[t] > 0.0 else half - 1 - step
            out[t, side[i], 0, place] += w
            out[t, side[i], 1, place] += w * score[t]
