"""Compiled kernels of the interval search: costs of runs of values, layered dynamic programming.

Tables come as cumulated weights ``prefix`` of shape (V + 1, B * J): B blocks of J classes. A plain
variable has B = 1; one side of a grid has one block per part of the other side.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from laconic._jit import njit
from laconic._typing import AnyArray


def log_factorial(x: Any, table: AnyArray) -> float:
    """ln x!: looked up when the weights are integers, Stirling's shifted series otherwise."""
    raise NotImplementedError("compiled code only")


@overload(log_factorial)
def _log_factorial_of_type(x: Any, table: Any) -> Any:
    def lookup(x: Any, table: Any) -> Any:
        return table[x]

    def series(x: Any, table: Any) -> Any:
        if x == 0.0:  # most cells of a fine grid are empty
            return 0.0
        shift = 1.0
        z = x + 1.0
        # Stirling's series is asymptotic: from 10 on its five terms leave less than 2e-14
        while z < 10.0:
            shift *= z
            z += 1.0
        inverse = 1.0 / z
        square = inverse * inverse
        tail = 1.0 / 1260.0 - square * (1.0 / 1680.0 - square * (1.0 / 1188.0))
        tail = inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * tail))
        return (z - 0.5) * math.log(z) - z + 0.9189385332046728 + tail - math.log(shift)

    return lookup if isinstance(x, types.Integer) else series


@njit(cache=True, nogil=True)
def run_cost(prefix: AnyArray, start: int, stop: int, n_classes: int, table: AnyArray) -> float:
    """Cost of the part made of values start..stop-1, summed over blocks."""
    width = prefix.shape[1]
    cost = 0.0
    for first in range(0, width, n_classes):
        # a zero of the type of the weights, whole or floating
        total = prefix[0, 0] - prefix[0, 0]
        for j in range(first, first + n_classes):
            n = prefix[stop, j] - prefix[start, j]
            total += n
            cost -= log_factorial(n, table)
        if total > 0:
            cost += log_factorial(total + (n_classes - 1), table) - table[n_classes - 1]
    return cost


@njit(cache=True, nogil=True)
def run_weight(prefix: AnyArray, start: int, stop: int) -> float:
    weight = 0.0
    for j in range(prefix.shape[1]):
        weight += prefix[stop, j] - prefix[start, j]
    return weight


@njit(cache=True, nogil=True)
def run_cost_two(a: float, b: float, table: AnyArray) -> float:
    return log_factorial(a + b + 1, table) - log_factorial(a, table) - log_factorial(b, table)


@njit(cache=True, nogil=True)
def all_run_costs(prefix: AnyArray, n_classes: int, min_weight: float, table: AnyArray) -> AnyArray:
    """Costs of all runs, packed by their end: run (s, t) at t (t - 1) / 2 + s, 0 <= s < t <= V."""
    n_values = prefix.shape[0] - 1
    packed = np.empty(n_values * (n_values + 1) // 2)
    two = prefix.shape[1] == 2 and n_classes == 2
    at = 0
    for t in range(1, n_values + 1):
        for s in range(t):
            if two:
                a = prefix[t, 0] - prefix[s, 0]
                b = prefix[t, 1] - prefix[s, 1]
                cost = run_cost_two(a, b, table)
            else:
                cost = run_cost(prefix, s, t, n_classes, table)
            if min_weight > 0.0 and run_weight(prefix, s, t) < min_weight:
                cost = np.inf
            packed[at] = cost
            at += 1
    return packed


@njit(cache=True, nogil=True)
def penalised_minimum(packed: AnyArray, n_values: int, penalty: float) -> float:
    """min over partitions of sum of run costs + penalty * number of parts."""
    best = np.empty(n_values + 1)
    best[0] = 0.0
    at = 0
    for t in range(1, n_values + 1):
        low = np.inf
        for s in range(t):
            value = best[s] + packed[at + s]
            # a select and not a branch: the compiler turns the loop into vector instructions
            low = value if value < low else low
        best[t] = low + penalty
        at += t
    return float(best[n_values])


@njit(cache=True, nogil=True)
def first_layer(packed: AnyArray, n_values: int) -> AnyArray:
    best = np.empty(n_values + 1)
    best[0] = np.inf
    for t in range(1, n_values + 1):
        best[t] = packed[t * (t - 1) // 2]
    return best


@njit(cache=True, nogil=True)
def next_layer(packed: AnyArray, previous: AnyArray, n_parts: int) -> AnyArray:
    """Best cost of values 0..t-1 in exactly ``n_parts`` parts, from ``n_parts - 1``."""
    n_values = previous.shape[0] - 1
    best = np.full(n_values + 1, np.inf)
    for t in range(n_parts, n_values + 1):
        at = t * (t - 1) // 2
        low = np.inf
        for s in range(n_parts - 1, t):
            value = previous[s] + packed[at + s]
            low = value if value < low else low
        best[t] = low
    return best


@njit(cache=True, nogil=True)
def trace_back(packed: AnyArray, layers: AnyArray, n_parts: int) -> AnyArray:
    """Cuts of the best partition in ``n_parts`` parts; the leftmost of equals."""
    cuts = np.empty(n_parts - 1, dtype=np.int64)
    t = layers.shape[1] - 1
    for part in range(n_parts - 1, 0, -1):
        at = t * (t - 1) // 2
        for s in range(part, t):
            # the same sum of the same two numbers as in the forward pass: equality is exact
            if layers[part - 1, s] + packed[at + s] == layers[part, t]:
                t = s
                break
        cuts[part - 1] = t
    return cuts


@njit(cache=True, nogil=True)
def level_cuts(cumulated: AnyArray, total: float, n_partiles: float) -> AnyArray:
    """Value boundaries nearest to the ideal ranks k * total / n_partiles (0 < boundary < V)."""
    n_values = cumulated.shape[0] - 1
    out = np.empty(max(n_values - 1, 0), dtype=np.int64)
    count = 0
    scale = n_partiles / total
    low = math.floor(0.5 * (cumulated[0] + cumulated[1]) * scale) if n_values > 0 else 0
    for v in range(1, n_values):
        high = math.floor(0.5 * (cumulated[v] + cumulated[v + 1]) * scale)
        if high > low:
            out[count] = v
            count += 1
        low = high
    return out[:count].copy()


@njit(cache=True, nogil=True)
def useful_cuts(prefix: AnyArray, cuts: AnyArray) -> AnyArray:
    """Drop the cuts between two runs of one and the same class: no optimum needs them."""
    kept = np.empty(cuts.shape[0], dtype=np.int64)
    count = 0
    width = prefix.shape[1]
    n_values = prefix.shape[0] - 1
    before = 0
    pure = -1
    for i in range(cuts.shape[0] + 1):
        here = cuts[i] if i < cuts.shape[0] else n_values
        label = -1
        for j in range(width):
            if prefix[here, j] - prefix[before, j] > 0.0:
                label = j if label == -1 else -2
        if i > 0 and not (label >= 0 and label == pure):
            kept[count] = cuts[i - 1]
            count += 1
        pure = label
        before = here
    return kept[:count].copy()


@njit(cache=True, nogil=True)
def merge_down(
    prefix: AnyArray, cuts: AnyArray, target: int, n_classes: int, table: AnyArray
) -> AnyArray:
    """Bottom-up merging of neighbours, in rounds, until at most ``target`` cuts are left.

    A round merges the neighbours whose cost difference is below the mean and lower than the one
    on either side, so a round shortens the list by a fixed share: linear time in all.
    """
    n_values = prefix.shape[0] - 1
    ends = np.empty(cuts.shape[0] + 2, dtype=np.int64)
    ends[0] = 0
    ends[1 : cuts.shape[0] + 1] = cuts
    ends[cuts.shape[0] + 1] = n_values
    n_runs = cuts.shape[0] + 1
    cost = np.empty(n_runs)
    for i in range(n_runs):
        cost[i] = run_cost(prefix, ends[i], ends[i + 1], n_classes, table)
    delta = np.empty(n_runs)
    for i in range(n_runs - 1):
        joint = run_cost(prefix, ends[i], ends[i + 2], n_classes, table)
        delta[i] = joint - cost[i] - cost[i + 1]
    stale = np.zeros(n_runs, dtype=np.bool_)
    while n_runs - 1 > target:
        mean = delta[: n_runs - 1].mean()
        write = 0
        i = 0
        last = np.inf
        while i < n_runs:
            lowest = i + 1 < n_runs and delta[i] <= mean and delta[i] < last
            if lowest and (i + 2 >= n_runs or delta[i] <= delta[i + 1]):
                cost[write] = cost[i] + cost[i + 1] + delta[i]
                last = -np.inf
                if i + 2 < n_runs:
                    last = delta[i + 1]
                ends[write + 1] = ends[i + 2]
                stale[write] = True
                if i + 2 < n_runs:
                    delta[write] = delta[i + 1]
                i += 2
            else:
                last = delta[i] if i + 1 < n_runs else 0.0
                cost[write] = cost[i]
                ends[write + 1] = ends[i + 1]
                stale[write] = False
                if i + 1 < n_runs:
                    delta[write] = delta[i]
                i += 1
            write += 1
        n_runs = write
        for k in range(n_runs - 1):
            if stale[k] or stale[k + 1]:
                joint = run_cost(prefix, ends[k], ends[k + 2], n_classes, table)
                delta[k] = joint - cost[k] - cost[k + 1]
    return ends[1:n_runs].copy()


@njit(cache=True, nogil=True)
def settle_cuts(
    prefix: AnyArray,
    allowed: AnyArray,
    chosen: AnyArray,
    reach: int,
    n_classes: int,
    min_weight: float,
    table: AnyArray,
) -> AnyArray:
    """Move each cut to its best allowed place between its neighbours until none moves.

    ``chosen`` holds positions in ``allowed`` (increasing value boundaries); a step goes at most
    ``reach`` positions away.
    """
    n_values = prefix.shape[0] - 1
    place = chosen.copy()
    n_cuts = place.shape[0]
    moved = np.ones(n_cuts, dtype=np.bool_)
    for _ in range(50):
        again = False
        for c in range(n_cuts):
            near = moved[c]
            if c > 0:
                near = near or moved[c - 1]
            if c + 1 < n_cuts:
                near = near or moved[c + 1]
            if not near:
                continue
            first = max(place[c - 1] + 1 if c > 0 else 0, place[c] - reach)
            stop = min(place[c + 1] if c + 1 < n_cuts else allowed.shape[0], place[c] + reach)
            start = allowed[place[c - 1]] if c > 0 else 0
            end = allowed[place[c + 1]] if c + 1 < n_cuts else n_values
            here = allowed[place[c]]
            best = place[c]
            low = run_cost(prefix, start, here, n_classes, table) + run_cost(
                prefix, here, end, n_classes, table
            )
            # a move must gain more than rounding, else two equal places could alternate
            low -= 1e-9 * (1.0 + abs(low))
            for p in range(first, stop):
                cut = allowed[p]
                if min_weight > 0.0 and (
                    run_weight(prefix, start, cut) < min_weight
                    or run_weight(prefix, cut, end) < min_weight
                ):
                    continue
                value = run_cost(prefix, start, cut, n_classes, table) + run_cost(
                    prefix, cut, end, n_classes, table
                )
                if value < low:
                    low = value
                    best = p
            moved[c] = best != place[c]
            if moved[c]:
                place[c] = best
                again = True
        if not again:
            break
    return place


@njit(cache=True, nogil=True)
def monotone_cuts(prefix: AnyArray, cuts: AnyArray, sign: float) -> AnyArray:
    """Pool adjacent violators: the cuts left when sign * (rate of class 1) must increase."""
    n_values = prefix.shape[0] - 1
    ends = np.empty(cuts.shape[0] + 2, dtype=np.int64)
    ends[0] = 0
    count = 0
    for i in range(cuts.shape[0] + 1):
        count += 1
        ends[count] = cuts[i] if i < cuts.shape[0] else n_values
        while count > 1:
            a1 = prefix[ends[count - 1], 1] - prefix[ends[count - 2], 1]
            a0 = prefix[ends[count - 1], 0] - prefix[ends[count - 2], 0]
            b1 = prefix[ends[count], 1] - prefix[ends[count - 1], 1]
            b0 = prefix[ends[count], 0] - prefix[ends[count - 1], 0]
            if sign * (float(a1) * b0 - float(b1) * a0) < 0.0:
                break
            ends[count - 1] = ends[count]
            count -= 1
    return ends[1:count].copy()
