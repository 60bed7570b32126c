"""Compiled sums over the ordered pairs of rows, and the table of the exact k-means of a line.

Pairs take O(n log L) for L distinct labels, and O(n) memory. Rows come sorted by increasing score
within each group; group g is ``start[g]:start[g + 1]`` and its labels are ranks 0..levels[g] - 1. A
pair (i, j) counts when rank[i] > rank[j]. Sums over the rows of lower (or higher) rank are kept in
a Fenwick tree over ranks while scores are swept.
"""

from __future__ import annotations

import numpy as np

from laconic._jit import njit
from laconic._typing import Floats, Ints


@njit(cache=True)
def sums_within(
    f: Floats, rank: Ints, start: Ints, levels: Ints, V: Floats, tau: float, winners: bool
) -> Floats:
    """Row e: sum of ``V[j]`` over the rows j that lose to e and whose score comes within tau.

    j loses when rank[j] < rank[e], and comes within tau when f[e] - f[j] < tau. With ``winners``
    the sums are over the rows that win against e: rank[j] > rank[e] and f[j] - f[e] < tau.
    """
    n, q = V.shape
    out = np.zeros((n, q))
    tree = np.zeros((levels.max() + 1, q))
    direction = 1 if winners else -1
    for g in range(levels.size):
        size = levels[g]
        tree[: size + 1] = 0.0
        first, last = start[g], start[g + 1]
        # losers enter from the largest score down, winners from the smallest up
        e = j = first if winners else last - 1
        for _ in range(last - first):
            while first <= j < last and direction * (f[j] - f[e]) < tau:
                node = size - rank[j] if winners else rank[j] + 1
                while node <= size:
                    for c in range(q):
                        tree[node, c] += V[j, c]
                    node += node & -node
                j += direction
            node = size - 1 - rank[e] if winners else rank[e]
            while node > 0:
                for c in range(q):
                    out[e, c] += tree[node, c]
                node -= node & -node
            e += direction
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


@njit(cache=True)
def _spread(mass: Floats, first: Floats, second: Floats, i: int, j: int) -> float:
    """Squared deviations of the sorted points i..j-1 around their mean, from running sums."""
    weight = mass[j] - mass[i]
    if weight <= 0.0:  # points too light for the running sum to tell them
        return 0.0
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
