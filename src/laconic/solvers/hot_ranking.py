"""Compiled sums over the ordered pairs of rows, O(n log L) for L distinct labels, O(n) memory.

Rows come sorted by increasing score within each group; group g is ``start[g]:start[g + 1]`` and
its labels are ranks 0..levels[g] - 1. A pair (i, j) counts when rank[i] > rank[j]. Sums over the
rows of lower (or higher) rank are kept in a Fenwick tree over ranks while scores are swept.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@njit(cache=True)
def losers_within(
    f: Floats, rank: Ints, start: Ints, levels: Ints, V: Floats, tau: float
) -> Floats:
    """Row i: sum of ``V[j]`` over the j of its group with rank[j] < rank[i], f[i] - f[j] < tau."""
    n, q = V.shape
    out = np.zeros((n, q))
    tree = np.zeros((levels.max() + 1, q))
    for g in range(levels.size):
        size = levels[g]
        tree[: size + 1] = 0.0
        first, last = start[g], start[g + 1]
        j = last - 1
        for i in range(last - 1, first - 1, -1):
            while j >= first and f[i] - f[j] < tau:
                node = rank[j] + 1
                while node <= size:
                    for c in range(q):
                        tree[node, c] += V[j, c]
                    node += node & -node
                j -= 1
            node = rank[i]
            while node > 0:
                for c in range(q):
                    out[i, c] += tree[node, c]
                node -= node & -node
    return out


@njit(cache=True)
def winners_within(
    f: Floats, rank: Ints, start: Ints, levels: Ints, V: Floats, tau: float
) -> Floats:
    """Row j: sum of ``V[i]`` over the i of its group with rank[i] > rank[j], f[i] - f[j] < tau."""
    n, q = V.shape
    out = np.zeros((n, q))
    tree = np.zeros((levels.max() + 1, q))
    for g in range(levels.size):
        size = levels[g]
        tree[: size + 1] = 0.0
        first, last = start[g], start[g + 1]
        i = first
        for j in range(first, last):
            while i < last and f[i] - f[j] < tau:
                node = size - rank[i]
                while node <= size:
                    for c in range(q):
                        tree[node, c] += V[i, c]
                    node += node & -node
                i += 1
            node = size - 1 - rank[j]
            while node > 0:
                for c in range(q):
                    out[j, c] += tree[node, c]
                node -= node & -node
    return out


@njit(cache=True)
def exponential_sweep(
    f: Floats,
    rank: Ints,
    start: Ints,
    levels: Ints,
    V: Floats,
    powers: Floats,
    higher: bool,
    line: bool,
) -> Floats:
    """Row e: sums over earlier rows j (f[j] <= f[e]) of lower rank, or of higher rank.

    Column c * m + l: sum of V[j, c] p_l(z), z = exp(f[j] - f[e]), for the m polynomials
    p_l(z) = sum_k powers[l, k] z^k. Last column, when ``line``: sum of V[j, 0] (f[e] - f[j]).

    Each tree node keeps its moments sum V[j] z^k relative to the last score it has seen, so that
    every factor met is at most one and nothing overflows.
    """
    n, q = V.shape
    m, degree = powers.shape
    wide = q * degree
    out = np.zeros((n, q * m + 1))
    most = levels.max() + 1
    tree = np.zeros((most, wide + 1))
    seen = np.zeros(most)
    for g in range(levels.size):
        size = levels[g]
        tree[: size + 1] = 0.0
        first, last = start[g], start[g + 1]
        seen[: size + 1] = f[first] if last > first else 0.0
        for e in range(first, last):
            node = size - 1 - rank[e] if higher else rank[e]
            while node > 0:
                far = f[e] - seen[node]
                z = np.exp(-far)
                for c in range(q):
                    for p in range(m):
                        total = 0.0
                        for k in range(degree - 1, -1, -1):
                            total = total * z + powers[p, k] * tree[node, c * degree + k]
                        out[e, c * m + p] += total
                if line:
                    out[e, q * m] += tree[node, wide] + far * tree[node, 0]
                node -= node & -node
            node = size - rank[e] if higher else rank[e] + 1
            while node <= size:
                far = f[e] - seen[node]
                if far > 0.0:
                    tree[node, wide] += far * tree[node, 0]
                    z = np.exp(-far)
                    for c in range(q):
                        decay = 1.0
                        for k in range(degree):
                            tree[node, c * degree + k] *= decay
                            decay *= z
                    seen[node] = f[e]
                for c in range(q):
                    for k in range(degree):
                        tree[node, c * degree + k] += V[e, c]
                node += node & -node
    return out
