"""Compiled passes for votes of stumps on rows that are read block by block."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@njit(cache=True)
def count_pairs(
    codes: NDArray[Any],
    start: Indices,
    fold: Indices,
    y: Indices,
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
    start: Indices,
    fold: Indices,
    side: Indices,
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
