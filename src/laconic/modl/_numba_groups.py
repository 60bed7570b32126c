"""Compiled kernels of the grouping search: all groupings of few values, merging, value moves.

At the end the grids that column pairs are screened by.
"""

from __future__ import annotations

import numpy as np

from laconic._jit import njit
from laconic._typing import AnyArray
from laconic.modl._numba import log_factorial


@njit(cache=True, nogil=True)
def group_cost(weights: AnyArray, n_classes: int, table: AnyArray) -> float:
    """Cost of one part from its class weights (one row), summed over blocks."""
    cost = 0.0
    for first in range(0, weights.shape[0], n_classes):
        total = weights[0] - weights[0]
        for j in range(first, first + n_classes):
            total += weights[j]
            cost -= log_factorial(weights[j], table)
        if total > 0:
            cost += log_factorial(total + (n_classes - 1), table) - table[n_classes - 1]
    return cost


@njit(cache=True, nogil=True)
def joint_cost(
    one: AnyArray, other: AnyArray, n_classes: int, table: AnyArray, joint: AnyArray
) -> float:
    """Cost of two groups as one; ``joint`` is room for their sum."""
    for j in range(one.shape[0]):
        joint[j] = one[j] + other[j]
    return group_cost(joint, n_classes, table)


@njit(cache=True, nogil=True)
def subset_costs(values: AnyArray, n_classes: int, min_weight: float, table: AnyArray) -> AnyArray:
    """Cost of the group made of each subset of the values (bit v of the index = value v)."""
    n_values, width = values.shape
    sums = np.zeros((1 << n_values, width), dtype=values.dtype)
    costs = np.zeros(1 << n_values)
    for mask in range(1, 1 << n_values):
        low = 0
        while not (mask >> low) & 1:
            low += 1
        weight = 0.0
        for j in range(width):
            sums[mask, j] = sums[mask & (mask - 1), j] + values[low, j]
            weight += sums[mask, j]
        costs[mask] = group_cost(sums[mask], n_classes, table)
        if weight < min_weight:
            costs[mask] = np.inf
    return costs


@njit(cache=True, nogil=True)
def subset_layers(costs: AnyArray, n_values: int, most: int) -> tuple[AnyArray, AnyArray]:
    """best[I, mask] = least cost of the values of mask in exactly I groups; and a first group."""
    size = 1 << n_values
    best = np.full((most + 1, size), np.inf)
    chosen = np.zeros((most + 1, size), dtype=np.int32)
    best[0, 0] = 0.0
    for mask in range(1, size):
        best[1, mask] = costs[mask]
        chosen[1, mask] = mask
        lowest = mask & -mask
        rest = mask ^ lowest
        sub = rest
        while True:
            group = sub | lowest
            other = mask ^ group
            if other:
                for parts in range(2, most + 1):
                    value = costs[group] + best[parts - 1, other]
                    if value < best[parts, mask]:
                        best[parts, mask] = value
                        chosen[parts, mask] = group
            if sub == 0:
                break
            sub = (sub - 1) & rest
    return best, chosen


@njit(cache=True, nogil=True)
def merge_path(values: AnyArray, n_classes: int, table: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Greedy merging of the closest pair down to one group.

    Returns the merges (kept, absorbed) in order and the summed cost before each, and at the end.
    """
    n_values, width = values.shape
    group = values.copy()
    cost = np.empty(n_values)
    total = 0.0
    for v in range(n_values):
        cost[v] = group_cost(group[v], n_classes, table)
        total += cost[v]
    alive = np.ones(n_values, dtype=np.bool_)
    partner = np.full(n_values, -1)
    delta = np.full(n_values, np.inf)
    joint = np.empty(width, dtype=values.dtype)
    for v in range(n_values):
        for u in range(v + 1, n_values):
            change = joint_cost(group[v], group[u], n_classes, table, joint) - cost[v] - cost[u]
            if change < delta[v]:
                delta[v] = change
                partner[v] = u
    merges = np.empty((n_values - 1, 2), dtype=np.int64)
    totals = np.empty(n_values)
    totals[0] = total
    for step in range(n_values - 1):
        kept = -1
        for v in range(n_values):
            if alive[v] and partner[v] >= 0 and (kept < 0 or delta[v] < delta[kept]):
                kept = v
        gone = partner[kept]
        total += delta[kept]
        merges[step, 0] = kept
        merges[step, 1] = gone
        totals[step + 1] = total
        for j in range(width):
            group[kept, j] += group[gone, j]
        cost[kept] = group_cost(group[kept], n_classes, table)
        alive[gone] = False
        for v in range(n_values):
            if not alive[v]:
                continue
            stale = v == kept or partner[v] == kept or partner[v] == gone
            if stale:
                delta[v] = np.inf
                partner[v] = -1
            for u in range(v + 1, n_values):
                if alive[u] and (stale or u == kept):
                    entered = joint_cost(group[v], group[u], n_classes, table, joint)
                    change = entered - cost[v] - cost[u]
                    if change < delta[v]:
                        delta[v] = change
                        partner[v] = u
    return merges, totals


@njit(cache=True, nogil=True)
def move_values(
    values: AnyArray,
    owner: AnyArray,
    n_groups: int,
    garbage: int,
    garbage_prior: AnyArray,
    n_classes: int,
    min_weight: float,
    table: AnyArray,
) -> float:
    """Move single values between groups while the cost goes down; returns the summed cost.

    ``garbage`` is the group whose number of values q costs ``garbage_prior[q]`` (-1: none).
    ``owner`` is changed in place; no group becomes empty or lighter than ``min_weight``.
    """
    n_values, width = values.shape
    group = np.zeros((n_groups, width), dtype=values.dtype)
    size = np.zeros(n_groups, dtype=np.int64)
    weight = np.zeros(n_groups)
    own = np.zeros(n_values)
    for v in range(n_values):
        size[owner[v]] += 1
        for j in range(width):
            group[owner[v], j] += values[v, j]
            own[v] += values[v, j]
        weight[owner[v]] += own[v]
    cost = np.empty(n_groups)
    for g in range(n_groups):
        cost[g] = group_cost(group[g], n_classes, table)
    without = np.empty(width, dtype=values.dtype)
    joint = np.empty(width, dtype=values.dtype)
    for _ in range(100):
        moved = False
        for v in range(n_values):
            a = owner[v]
            if size[a] == 1 or weight[a] - own[v] < min_weight:
                continue
            for j in range(width):
                without[j] = group[a, j] - values[v, j]
            left = group_cost(without, n_classes, table)
            gain = left - cost[a]
            if a == garbage:
                gain += garbage_prior[size[a] - 1] - garbage_prior[size[a]]
            best = -1
            low = -1e-9
            joined = 0.0
            for b in range(n_groups):
                if b == a:
                    continue
                entered = joint_cost(group[b], values[v], n_classes, table, joint)
                change = gain + entered - cost[b]
                if b == garbage:
                    change += garbage_prior[size[b] + 1] - garbage_prior[size[b]]
                if change < low:
                    low = change
                    best = b
                    joined = entered
            if best < 0:
                continue
            moved = True
            owner[v] = best
            size[a] -= 1
            size[best] += 1
            weight[a] -= own[v]
            weight[best] += own[v]
            cost[a] = left
            cost[best] = joined
            for j in range(width):
                group[a, j] -= values[v, j]
                group[best, j] += values[v, j]
        if not moved:
            break
    return float(cost.sum())


COARSE = 8
"""Parts of a column in the screening of pairs."""


@njit(cache=True, nogil=True)
def coarse_cells(
    codes: AnyArray, y: AnyArray, weight: AnyArray, first: int, n_classes: int
) -> AnyArray:
    """Class weights of the grids of column ``first`` with each later one; codes below COARSE."""
    n_later = codes.shape[1] - first - 1
    cells = np.zeros((n_later, COARSE, COARSE, n_classes))
    for b in range(n_later):
        for i in range(codes.shape[0]):
            cells[b, codes[i, first], codes[i, first + 1 + b], y[i]] += weight[i]
    return cells
