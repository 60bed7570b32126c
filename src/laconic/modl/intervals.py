"""What the partition searches share: tables of ln x!, exact layers, bounds on the cost.

The minimum over partitions of ``prior(I) + sum of part costs`` is found by dynamic programming on
the number of parts I. Lagrangian minima L(x) = min over partitions of (part costs + x I) bound the
layers from below, best_I >= L(x) - x I, and say when no further layer can improve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from laconic._typing import Floats, Ints
from laconic.core.solution import Solution
from laconic.modl.criterion import PartitionPrior

Weights = NDArray[np.int64] | NDArray[np.float64]

EXACT_WORK = 1 << 21
"""Exact search when V^2 times the width of the table is at most this."""
_TABLE_LIMIT = 1 << 22


@lru_cache(maxsize=2)
def _log_factorials(size: int) -> Floats:
    return np.asarray(gammaln(np.arange(size, dtype=np.float64) + 1.0))


@dataclass(frozen=True)
class WeightTable:
    """Class weights of V ordered values (or of unordered ones), ready for compiled code.

    ``weights`` has shape (V, B * J), integers when all weights are; ``table`` holds ln x!.
    """

    weights: Weights
    n_classes: int
    table: Floats

    @staticmethod
    def of(weights: Weights, n_classes: int) -> WeightTable:
        total = float(weights.sum())
        if total + n_classes + 1 < _TABLE_LIMIT:
            whole = np.asarray(weights).astype(np.int64)
            if np.array_equal(whole, weights):
                size = 1 << int(total + n_classes + 1).bit_length()
                return WeightTable(whole, n_classes, _log_factorials(max(size, 1024)))
        small = _log_factorials(1024)
        if n_classes > len(small):
            small = _log_factorials(1 << n_classes.bit_length())
        return WeightTable(np.asarray(weights, dtype=np.float64), n_classes, small)

    @property
    def n_values(self) -> int:
        return len(self.weights)

    @property
    def width(self) -> int:
        return int(self.weights.shape[1])

    @property
    def total(self) -> float:
        return float(self.weights.sum())

    def prefix(self) -> Weights:
        """Cumulated weights, one row more than values."""
        first = np.zeros_like(self.weights, shape=(1, self.width))
        return np.concatenate([first, np.cumsum(self.weights, axis=0)])

    def entropy_bound(self) -> float:
        """Sum over values of N_v H_v: no partition has a lower sum of part costs."""
        mixed = self.weights[(self.weights > 0).sum(axis=1) > 1]
        cells = mixed.astype(np.float64).reshape(
            len(mixed), self.width // self.n_classes, self.n_classes
        )
        total = cells.sum(axis=2)
        own = np.where(cells > 0.0, cells * np.log(np.maximum(cells, 1e-300)), 0.0).sum()
        return max(0.0, float((total * np.log(np.maximum(total, 1e-300))).sum() - own))


@dataclass(frozen=True)
class Layers:
    """best[I - 1] = least sum of run costs in exactly I parts, and how to get it."""

    packed: Floats
    table: Floats
    best: Floats
    tail_bound: Floats

    def cuts(self, n_parts: int) -> Ints:
        from laconic.modl._numba import trace_back

        out: Ints = trace_back(self.packed, self.table, n_parts)
        return out

    def lower_bound(self, n_parts: int) -> Floats:
        """Lower bounds of best_1 ... best_n, exact where layers were computed."""
        bound = np.full(n_parts, self.tail_bound[-1] if len(self.tail_bound) else np.inf)
        known = min(n_parts, len(self.tail_bound))
        bound[:known] = self.tail_bound[:known]
        done = min(n_parts, len(self.best))
        bound[:done] = self.best[:done]
        return bound


def solve_layers(
    prefix: Weights,
    n_classes: int,
    prior: Floats,
    incumbent: float,
    min_weight: float,
    table: Floats,
) -> Layers:
    """Layers I = 1, 2, ... until prior[I - 1] + any further layer is above the incumbent."""
    from laconic.modl._numba import all_run_costs, first_layer, next_layer, penalised_minimum

    n_values = len(prefix) - 1
    most = min(len(prior), n_values)
    packed = all_run_costs(prefix, n_classes, min_weight, table)
    parts = np.arange(1, most + 1)
    steepest = max(1e-6, float(np.diff(prior[: min(most, 4)]).min())) if most > 1 else 1.0
    tail = np.zeros(most)
    for penalty in (steepest, 0.6 * steepest, 0.3 * steepest, 0.0):
        least = penalised_minimum(packed, n_values, penalty)
        if np.isfinite(least):
            tail = np.maximum(tail, least - penalty * parts)
    layers = [first_layer(packed, n_values)]
    low = min(incumbent, prior[0] + layers[0][n_values])
    possible = prior[:most] + tail
    for n_parts in range(2, most + 1):
        if possible[n_parts - 1 :].min() >= low:
            break
        layers.append(next_layer(packed, layers[-1], n_parts))
        low = min(low, prior[n_parts - 1] + layers[-1][n_values])
    stacked = np.array(layers)
    return Layers(packed, stacked, stacked[:, n_values].copy(), tail)


# Intervals of an ordered variable with the least description length.
#
# Every granularity of the prior is visited. Granularities whose table is small are solved exactly;
# above, bottom-up merging in rounds leaves a short list of cuts, the exact search chooses among
# them, and each cut then moves to its best place at full resolution.


_REACH = 16
"""How far a cut may move at once, in runs of the merged list."""


@dataclass(frozen=True)
class Limits:
    """What the user asks of a partition."""

    max_parts: int | None = None
    min_weight: float = 0.0
    monotone: int = 0
    """+1 or -1: the rate of class 1 goes up or down with the values."""


@dataclass(frozen=True)
class Cuts:
    """Value boundaries (a cut c separates values 0..c-1 from c..), and the granularity paid."""

    places: Ints
    level: int

    @property
    def n_parts(self) -> int:
        return len(self.places) + 1

    def parts_of_values(self, n_values: int) -> Ints:
        return np.searchsorted(self.places, np.arange(n_values), side="right")


class _Search:
    """One ordered table: its levels, and the best partition seen."""

    def __init__(self, table: WeightTable, prior: PartitionPrior, limits: Limits) -> None:
        self.table = table
        self.prior = prior
        self.limits = limits
        self.prefix = table.prefix()
        self.cumulated = self.prefix.sum(axis=1).astype(np.float64)
        self.total = float(self.cumulated[-1])
        self.best = Cuts(np.empty(0, dtype=np.int64), 0)
        self.value = self._null_value()
        self.proven = True
        self.n_levels = 0

    def _null_value(self) -> float:
        from laconic.modl._numba import run_cost

        n_values, n_classes = self.table.n_values, self.table.n_classes
        whole = run_cost(self.prefix, 0, n_values, n_classes, self.table.table)
        return float(whole) + float(self.prior.construction(1) + self.prior.intervals(1, 1))

    def levels(self) -> list[tuple[int, Ints]]:
        """Granularity and allowed cuts, coarse to fine; equal cut sets once, at the cheapest."""
        from laconic.modl._numba import level_cuts, monotone_cuts, useful_cuts

        found: list[tuple[int, Ints]] = []
        before = 0
        for level in self.prior.interval_levels:
            if self.prior.is_finest(level):
                cuts = np.arange(1, self.table.n_values)
            else:
                cuts = level_cuts(self.cumulated, self.total, float(2**level))
            if len(cuts) == before:
                continue  # levels are nested: as many cuts means the same cuts
            before = len(cuts)
            if self.limits.monotone:
                cuts = monotone_cuts(self.prefix, cuts, float(self.limits.monotone))
            elif not self.limits.min_weight:
                cuts = useful_cuts(self.prefix, cuts)
            if len(cuts):
                found.append((level, cuts))
        return found

    def prior_costs(self, level: int, n_cuts: int) -> Floats:
        most = n_cuts + 1
        if self.limits.max_parts is not None:
            most = min(most, self.limits.max_parts)
        parts = np.arange(1, most + 1)
        return self.prior.construction(parts) + self.prior.intervals(parts, level)

    def keep(self, places: Ints, level: int, value: float) -> None:
        if value < self.value - 1e-9 * abs(self.value):
            self.value = value
            self.best = Cuts(places, level)

    def run(self) -> None:
        levels = self.levels()
        self.n_levels = len(levels)
        small = [k for k, (_, cuts) in enumerate(levels) if self._affordable(len(cuts))]
        bound: Floats | None = None
        for k in reversed(small):
            level, cuts = levels[k]
            prior = self.prior_costs(level, len(cuts))
            if bound is not None:
                # cuts are nested, so a layer of a coarser level is never below that of a finer one
                known = np.append(bound, np.full(max(0, len(prior) - len(bound)), bound[-1]))
                if (prior + known[: len(prior)]).min() >= self.value:
                    continue
            bound = self._exact(level, cuts, prior)
        fine = levels[len(small) :]
        self.proven = not fine
        for level, cuts in fine:
            self._reduced(level, cuts, len(fine))

    def _affordable(self, n_cuts: int) -> bool:
        return (n_cuts + 1) ** 2 * self.table.width <= EXACT_WORK

    def _exact(self, level: int, cuts: Ints, prior: Floats) -> Floats:
        ends = np.concatenate([[0], cuts, [self.table.n_values]])
        limits, table = self.limits, self.table
        layers = solve_layers(
            self.prefix[ends], table.n_classes, prior, self.value, limits.min_weight, table.table
        )
        costs = prior[: len(layers.best)] + layers.best
        n_parts = int(np.argmin(costs)) + 1
        if costs[n_parts - 1] < self.value and n_parts > 1:
            places = ends[layers.cuts(n_parts)]
            self.keep(places, level, float(costs[n_parts - 1]))
        return layers.lower_bound(len(prior))

    def _reduced(self, level: int, cuts: Ints, n_fine: int) -> None:
        from laconic.modl._numba import merge_down, run_cost, settle_cuts

        table, n_classes = self.table, self.table.n_classes
        target = max(32, math.isqrt(EXACT_WORK // (n_fine * table.width)))
        merged = merge_down(self.prefix, cuts, target, n_classes, table.table)
        known = cuts[np.minimum(np.searchsorted(cuts, self.best.places), len(cuts) - 1)]
        some = np.union1d(merged, known)
        ends = np.concatenate([[0], some, [table.n_values]])
        prior = self.prior_costs(level, len(some))
        minimum = self.limits.min_weight
        layers = solve_layers(self.prefix[ends], n_classes, prior, np.inf, minimum, table.table)
        costs = prior[: len(layers.best)] + layers.best
        n_parts = int(np.argmin(costs)) + 1
        if n_parts == 1 or not np.isfinite(costs[n_parts - 1]):
            return
        chosen = np.searchsorted(cuts, ends[layers.cuts(n_parts)])
        if not self.limits.monotone:
            reach = max(_REACH, _REACH * len(cuts) // target)
            chosen = settle_cuts(self.prefix, cuts, chosen, reach, n_classes, minimum, table.table)
        places = cuts[chosen]
        runs = np.concatenate([[0], places, [table.n_values]])
        data = sum(run_cost(self.prefix, a, b, n_classes, table.table) for a, b in pairwise(runs))
        level = self.cheapest_level(places, level)
        self.keep(places, level, float(self.prior_costs(level, len(places))[-1] + data))

    def cheapest_level(self, places: Ints, at_most: int) -> int:
        """The coarsest granularity that has all these cuts."""
        return cheapest_level(self.cumulated, places, self.prior, at_most)


def cheapest_level(
    cumulated: Floats, places: Ints, prior: PartitionPrior, at_most: int | None = None
) -> int:
    """The coarsest granularity at which every cut lies between two partiles."""
    middle = 0.5 * (cumulated[1:] + cumulated[:-1])
    for level in prior.interval_levels:
        if level == at_most or prior.is_finest(level):
            return level
        rank = middle * (2.0**level / cumulated[-1])
        if bool(np.all(np.floor(rank[places]) > np.floor(rank[places - 1]))):
            return level
    return prior.interval_levels[-1]


def best_intervals(
    weights: Weights,
    n_classes: int,
    prior: PartitionPrior,
    limits: Limits | None = None,
) -> Solution:
    """Cut ordered values where the description length is least.

    Parameters
    ----------
    weights : array of shape (V, B * n_classes)
        Class weights of the V ordered distinct values; B > 1 for one side of a grid.
    n_classes : int
    prior : PartitionPrior
    limits : Limits, optional

    Returns
    -------
    Solution
        ``point`` is a :class:`Cuts`, ``value`` its whole cost (construction included);
        ``details["exact"]`` is True when it is proven optimal over all granularities.
    """
    table = WeightTable.of(weights, n_classes)
    search = _Search(table, prior, limits or Limits())
    search.run()
    gap = 0.0
    if not search.proven:
        gap = search.value - float(prior.construction(1)) - table.entropy_bound()
    return Solution(
        point=search.best,
        value=search.value,
        gap=gap,
        n_iter=search.n_levels,
        why_stopped="gap" if search.proven else "stalled",
        details=MappingProxyType({"exact": search.proven}),
    )
