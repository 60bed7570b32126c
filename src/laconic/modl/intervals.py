"""Intervals of an ordered variable with the least description length.

Every granularity of the prior is visited. Granularities whose table is small are solved exactly;
above, bottom-up merging in rounds leaves a short list of cuts, the exact search chooses among
them, and each cut then moves to its best place at full resolution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType

import numpy as np

from laconic._typing import Floats, Ints
from laconic.core.losses import Solution
from laconic.modl.criterion import PartitionPrior
from laconic.modl.layers import Limits, Weights, WeightTable, solve_layers
from laconic.modl.tuning import EXACT_WORK, LEAST_CANDIDATES, REACH


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

    def prior_cost(self, prior: PartitionPrior) -> float:
        """What the prior charges for the cuts (without the parts)."""
        return float(prior.intervals(self.n_parts, max(self.level, 1)))


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

    Examples
    --------
    Ten rows of class 0 below ten rows of class 1 are worth one cut:

    >>> from laconic.modl.criterion import Prior2006
    >>> rows = np.repeat([[1.0, 0.0], [0.0, 1.0]], 10, axis=0)
    >>> best_intervals(rows, 2, Prior2006(20.0)).point.places
    array([10])
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


@lru_cache(maxsize=64)
def _costs_by_parts(prior: PartitionPrior, level: int, most: int) -> Floats:
    """What the prior charges for 1 ... most intervals: many columns of a table ask for the same."""
    parts = np.arange(1, most + 1)
    costs = np.asarray(prior.construction(parts) + prior.intervals(parts, level))
    costs.flags.writeable = False
    return costs


class _Search:
    """One ordered table: its levels, and the best partition seen."""

    def __init__(self, table: WeightTable, prior: PartitionPrior, limits: Limits) -> None:
        from laconic.modl._numba import run_cost

        self.table = table
        self.prior = prior
        self.limits = limits
        self.prefix = table.prefix()
        self.cumulated = self.prefix.sum(axis=1).astype(np.float64)
        self.best = Cuts(np.empty(0, dtype=np.int64), 0)
        whole = run_cost(self.prefix, 0, table.n_values, table.n_classes, table.table)
        self.value = float(whole) + float(prior.construction(1) + prior.intervals(1, 1))
        self.proven = True
        self.n_levels = 0

    def run(self) -> None:
        levels = self._levels()
        self.n_levels = len(levels)
        small = [k for k, (_, cuts) in enumerate(levels) if self._affordable(len(cuts))]
        bound: Floats | None = None
        # fine levels first: their layers bound those of every coarser level from below
        for k in reversed(small):
            level, cuts = levels[k]
            prior = self._prior_costs(level, len(cuts))
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

    def _levels(self) -> list[tuple[int, Ints]]:
        """Granularity and allowed cuts, coarse to fine; equal cut sets once, at the cheapest."""
        from laconic.modl._numba import level_cuts, monotone_cuts, useful_cuts

        found: list[tuple[int, Ints]] = []
        before = 0
        for level in self.prior.interval_levels:
            if self.prior.is_finest(level):
                cuts = np.arange(1, self.table.n_values)
            else:
                cuts = level_cuts(self.cumulated, float(self.cumulated[-1]), float(2**level))
            if len(cuts) == before:
                continue  # levels are nested: as many cuts means the same cuts
            before = len(cuts)
            if self.limits.monotone:
                cuts = monotone_cuts(self.prefix, cuts, float(self.limits.monotone))
            elif not self.limits.min_weight:
                # a part that is too light may need a cut inside a run of one class
                cuts = useful_cuts(self.prefix, cuts)
            if len(cuts):
                found.append((level, cuts))
        return found

    def _affordable(self, n_cuts: int) -> bool:
        return (n_cuts + 1) ** 2 * self.table.width <= EXACT_WORK

    def _prior_costs(self, level: int, n_cuts: int) -> Floats:
        n_parts = self.limits.most_parts(n_cuts + 1)
        return _costs_by_parts(self.prior, level, 1 << (n_parts - 1).bit_length())[:n_parts]

    def _keep(self, places: Ints, level: int, value: float) -> None:
        # equal descriptions differ by rounding: the one found first stays
        if value < self.value - 1e-9 * abs(self.value):
            self.value = value
            self.best = Cuts(places, level)

    def _exact(self, level: int, cuts: Ints, prior: Floats) -> Floats:
        """Try the best partition by these cuts; returns lower bounds of the layers."""
        ends = np.concatenate([[0], cuts, [self.table.n_values]])
        limits, table = self.limits, self.table
        # Fisher's dynamic program over the number of parts: exact for these cuts
        layers = solve_layers(
            self.prefix[ends], table.n_classes, prior, self.value, limits.min_weight, table.table
        )
        costs = prior[: len(layers.best)] + layers.best
        n_parts = int(np.argmin(costs)) + 1
        if costs[n_parts - 1] < self.value and n_parts > 1:
            self._keep(ends[layers.cuts(n_parts)], level, float(costs[n_parts - 1]))
        return layers.lower_bound(len(prior))

    def _reduced(self, level: int, cuts: Ints, n_fine: int) -> None:
        """Merge to a short list, choose exactly among it, then move each cut."""
        from laconic.modl._numba import merge_down, run_cost, settle_cuts

        table, n_classes = self.table, self.table.n_classes
        target = max(LEAST_CANDIDATES, math.isqrt(EXACT_WORK // (n_fine * table.width)))
        merged = merge_down(self.prefix, cuts, target, n_classes, table.table)
        # the cuts of the best partition so far compete again, each at its nearest place
        known = cuts[np.minimum(np.searchsorted(cuts, self.best.places), len(cuts) - 1)]
        some = np.union1d(merged, known)
        ends = np.concatenate([[0], some, [table.n_values]])
        prior = self._prior_costs(level, len(some))
        minimum = self.limits.min_weight
        layers = solve_layers(self.prefix[ends], n_classes, prior, np.inf, minimum, table.table)
        costs = prior[: len(layers.best)] + layers.best
        n_parts = int(np.argmin(costs)) + 1
        if n_parts == 1 or not np.isfinite(costs[n_parts - 1]):
            return
        chosen = np.searchsorted(cuts, ends[layers.cuts(n_parts)])
        if not self.limits.monotone:
            # merging may have dropped the best place of a cut: it is sought among its neighbours
            reach = max(REACH, REACH * len(cuts) // target)
            chosen = settle_cuts(self.prefix, cuts, chosen, reach, n_classes, minimum, table.table)
        places = cuts[chosen]
        runs = np.concatenate([[0], places, [table.n_values]])
        data = sum(run_cost(self.prefix, a, b, n_classes, table.table) for a, b in pairwise(runs))
        level = cheapest_level(self.cumulated, places, self.prior, level)
        self._keep(places, level, float(self._prior_costs(level, len(places))[-1] + data))


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
