"""Groups of an unordered variable with the least description length.

Two classes: the part cost is concave in the class weights, so that the best groups are contiguous
once values are sorted by class rate, and the layered search of the intervals is exact. More
classes: all groupings are enumerated for few values; above, greedy merging and single-value moves.
A garbage group is not contiguous in general (its cost counts values): it is enumerated for few
values, searched by moves otherwise, and ruled out whenever the bound
``prior with the largest possible garbage + best layer`` is not better than what is known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.core.losses import Solution
from laconic.modl.criterion import GARBAGE_FROM, PartitionPrior
from laconic.modl.layers import Limits, Weights, WeightTable, solve_layers
from laconic.modl.tuning import (
    ENUMERATED,
    EXACT_WORK,
    FIRST_PARTS,
    FOLLOWED,
    MERGED,
    WITH_GARBAGE,
)


@dataclass(frozen=True)
class Grouping:
    """Group of each value (row of the table), the granularity paid and the special groups.

    ``n_values`` is the number of values that the prior counts at this granularity, ``catch_all``
    the group of the values too rare to count alone (-1: none), ``garbage`` the group that costs
    by its number of values (-1: none).
    """

    owner: Ints
    n_groups: int
    level: int
    n_values: int
    catch_all: int
    garbage: int
    garbage_size: int

    def prior_cost(self, prior: PartitionPrior) -> float:
        """What the prior charges for the grouping (without the parts)."""
        level, n_values = max(self.level, 1), max(self.n_values, 1)
        if self.garbage < 0:
            return float(prior.groups(self.n_groups, level, n_values))
        return float(prior.groups_with_garbage(self.n_groups, level, n_values, self.garbage_size))


def best_groups(
    weights: Weights,
    n_classes: int,
    prior: PartitionPrior,
    limits: Limits | None = None,
) -> Solution:
    """Group unordered values where the description length is least.

    Parameters
    ----------
    weights, n_classes, prior, limits
        As in :func:`~laconic.modl.intervals.best_intervals`; ``monotone`` has no meaning here.

    Returns
    -------
    Solution
        ``point`` is a :class:`Grouping` (groups by decreasing weight), ``value`` its whole cost;
        ``details["exact"]`` is True when it is proven optimal over all granularities.

    Examples
    --------
    Of three values, the two with the same class belong together:

    >>> from laconic.modl.criterion import Prior2006
    >>> rows = np.array([[20.0, 0.0], [0.0, 9.0], [0.0, 8.0]])
    >>> best_groups(rows, 2, Prior2006(37.0)).point.owner
    array([0, 1, 1])
    """
    rows = np.asarray(weights, dtype=np.float64)
    # an order that knows nothing of names: by weight, then by classes
    order = np.lexsort((*rows.T[::-1], -rows.sum(axis=1)))
    search = _Search(rows[order], n_classes, prior, limits or Limits())
    levels = _levels(rows[order], n_classes, prior)
    search.run(levels)
    gap = max(0.0, search.value - search.lower)
    exact = gap <= 1e-9 * abs(search.value)
    return Solution(
        point=_by_weight(search.best, order, rows),
        value=search.value,
        gap=0.0 if exact else gap,
        n_iter=len(levels),
        why_stopped="gap" if exact else "stalled",
        details=MappingProxyType({"exact": exact}),
    )


def _by_weight(found: Grouping, order: Ints, rows: Floats) -> Grouping:
    """Undo the sorting of the values, number the groups by decreasing weight."""
    owner = np.empty_like(found.owner)
    owner[order] = found.owner
    weight = np.bincount(owner, weights=rows.sum(axis=1), minlength=found.n_groups)
    rank = np.empty(found.n_groups + 1, dtype=np.int64)
    rank[np.argsort(-weight, kind="stable")] = np.arange(found.n_groups)
    rank[-1] = -1  # no such group stays so
    return replace(
        found,
        owner=rank[owner],
        catch_all=int(rank[found.catch_all]),
        garbage=int(rank[found.garbage]),
    )


@dataclass(frozen=True)
class _Level:
    """The table at one granularity: which row stands alone, the rest pooled in the last row."""

    level: int
    table: WeightTable
    row_of: Ints
    pooled: bool

    @property
    def n_values(self) -> int:
        return self.table.n_values


def _levels(weights: Floats, n_classes: int, prior: PartitionPrior) -> list[_Level]:
    found: list[_Level] = []
    own = weights.sum(axis=1)
    before = -1
    for level in prior.group_levels:
        kept = own >= prior.kept_weight(level)
        n_kept = int(kept.sum())
        n_values = n_kept + (n_kept < len(own))
        if n_kept == before or n_values < 2:
            continue
        before = n_kept
        row_of = np.full(len(own), n_kept)
        row_of[kept] = np.arange(n_kept)
        pooled = np.zeros((n_values, weights.shape[1]))
        pooled[:n_kept] = weights[kept]
        if n_kept < len(own):
            pooled[n_kept] = weights[~kept].sum(axis=0)
        table = WeightTable.of(pooled, n_classes)
        found.append(_Level(level, table, row_of, n_kept < len(own)))
        if n_kept + 1 >= len(own):
            break  # the catch-all holds one value at most: finer levels are the same, and dearer
    return found


class _Search:
    """Best grouping seen over the levels of one unordered table, and what none can be below."""

    def __init__(
        self, weights: Floats, n_classes: int, prior: PartitionPrior, limits: Limits
    ) -> None:
        from laconic.modl._numba_groups import group_cost

        self.prior = prior
        self.limits = limits
        self.n_classes = n_classes
        n_rows = len(weights)
        whole = WeightTable.of(weights.sum(axis=0, keepdims=True), n_classes)
        null = group_cost(whole.weights[0], n_classes, whole.table)
        start = prior.construction(1) + prior.groups(1, 1, max(n_rows, 1))
        self.value = null + float(start)
        self.best = Grouping(np.zeros(n_rows, dtype=np.int64), 1, 0, n_rows, -1, -1, 0)
        self.lower = self.value
        self.at: _Level

    def run(self, levels: list[_Level]) -> None:
        for at in levels:
            self.at = at
            if at.n_values <= ENUMERATED:
                self._enumerate()
            elif at.table.width == 2:
                self._sorted_layers()
            else:
                self._greedy()

    def _prior_costs(self, most: int) -> Floats:
        parts = np.arange(1, most + 1)
        return self.prior.construction(parts) + self.prior.groups(
            parts, self.at.level, self.at.n_values
        )

    def _garbage_prior(self, n_parts: int) -> Floats:
        """Cost by number of values in the garbage, 0 to V (inf where not allowed)."""
        q = np.arange(self.at.n_values + 2)
        cost = self.prior.groups_with_garbage(n_parts, self.at.level, self.at.n_values, q)
        return np.asarray(cost + float(self.prior.construction(n_parts)))

    @property
    def _may_have_garbage(self) -> bool:
        return self.prior.has_garbage and self.at.n_values > GARBAGE_FROM

    def _keep(self, owner: Ints, value: float, garbage: int = -1) -> None:
        if value >= self.value - 1e-9 * abs(self.value):
            return
        self.value = value
        n_values = self.at.n_values
        catch_all = int(owner[n_values - 1]) if self.at.pooled else -1
        size = int((owner == garbage).sum()) if garbage >= 0 else 0
        n_groups = int(owner.max()) + 1
        rows = owner[self.at.row_of]
        self.best = Grouping(rows, n_groups, self.at.level, n_values, catch_all, garbage, size)

    def _note_bound(self, bound: float) -> None:
        self.lower = min(self.lower, bound)

    # ---- few values: every grouping -------------------------------------------------------

    def _enumerate(self) -> None:
        from laconic.modl._numba_groups import subset_costs, subset_layers

        table, n_values = self.at.table, self.at.n_values
        costs = subset_costs(table.weights, self.n_classes, self.limits.min_weight, table.table)
        most = self.limits.most_parts(n_values)
        best, chosen = subset_layers(costs, n_values, most)
        everything = (1 << n_values) - 1
        plain = self._prior_costs(most) + best[1:, everything]
        n_parts = int(np.argmin(plain)) + 1
        self._note_bound(float(plain.min()))
        self._keep(_owners(chosen, everything, n_parts, n_values), float(plain[n_parts - 1]))
        if not self._may_have_garbage:
            return
        masks = np.arange(1 << n_values)
        q = np.array([int(mask).bit_count() for mask in masks])
        for n_parts in range(3, most + 1):
            by_size = self._garbage_prior(n_parts)
            # every subset as the garbage, the best grouping of its complement beside it
            value = by_size[q] + costs + best[n_parts - 1, everything ^ masks]
            low = int(np.argmin(value))
            self._note_bound(float(value[low]))
            owner = _owners(chosen, everything ^ low, n_parts - 1, n_values)
            self._keep(owner, float(value[low]), garbage=n_parts - 1)

    # ---- two classes: sorted by class rate ------------------------------------------------

    def _sorted_layers(self) -> None:
        table, limits = self.at.table, self.limits
        order = np.argsort(table.weights[:, 1] / table.weights.sum(axis=1), kind="stable")
        prefix = WeightTable(table.weights[order], self.n_classes, table.table).prefix()
        ends, exact = self._candidates(prefix)
        most = min(limits.most_parts(self.at.n_values), len(ends) - 1)
        upto = min(most, FIRST_PARTS)
        while True:
            prior = self._prior_costs(upto)
            layers = solve_layers(
                prefix[ends], self.n_classes, prior, self.value, limits.min_weight, table.table
            )
            costs = prior[: len(layers.best)] + layers.best
            # the prior increases with the number of parts and L(0) bounds every layer
            beyond = prior[-1] + layers.tail_bound[-1]
            if upto == most or beyond >= min(self.value, float(costs.min())):
                break
            upto = min(most, 4 * upto)
        layer_bound = layers.lower_bound(len(prior))
        # light parts and lost candidates leave nothing proven
        clean = exact and not limits.min_weight
        self._note_bound(float((prior + layer_bound).min()) if clean else -np.inf)
        owners = []
        for n_parts in range(1, len(layers.best) + 1):
            owner = np.empty(self.at.n_values, dtype=np.int64)
            cuts = ends[layers.cuts(n_parts)]
            owner[order] = np.searchsorted(cuts, np.arange(len(order)), side="right")
            owners.append(owner)
        n_parts = int(np.argmin(costs)) + 1
        self._keep(owners[n_parts - 1], float(costs[n_parts - 1]))
        if self._may_have_garbage:
            self._promising_garbage(owners, layer_bound)

    def _candidates(self, prefix: Weights) -> tuple[Ints, bool]:
        """Ends of the runs of values that the layers may use, and whether none is lost."""
        from laconic.modl._numba import merge_down, useful_cuts

        n_values = len(prefix) - 1
        cuts = np.arange(1, n_values)
        if not self.limits.min_weight:
            cuts = useful_cuts(prefix, cuts)
        exact = len(cuts) ** 2 * prefix.shape[1] <= EXACT_WORK
        if not exact:
            target = math.isqrt(EXACT_WORK // (4 * prefix.shape[1]))
            cuts = merge_down(prefix, cuts, target, self.n_classes, self.at.table.table)
        return np.concatenate([[0], cuts, [n_values]]), exact

    def _promising_garbage(self, owners: list[Ints], layer_bound: Floats) -> None:
        """Value moves from the groupings that could hide a cheaper one with a garbage group."""
        n_values = self.at.n_values
        promising = []
        for n_parts in range(3, min(len(layer_bound), FIRST_PARTS) + 1):
            largest = n_values - (n_parts - 1)
            least = self.prior.groups_with_garbage(n_parts, self.at.level, n_values, largest)
            bound = float(least + self.prior.construction(n_parts)) + layer_bound[n_parts - 1]
            self._note_bound(bound)
            if bound < self.value:
                promising.append((bound, n_parts))
        for bound, n_parts in sorted(promising)[:WITH_GARBAGE]:
            if bound < self.value and n_parts <= len(owners):
                self._try_garbage(owners[n_parts - 1])

    def _try_garbage(self, owner: Ints) -> None:
        """The largest group becomes the garbage, then values move."""
        n_parts = int(owner.max()) + 1
        if n_parts < 3:
            return
        owner = owner.copy()
        garbage = int(np.argmax(np.bincount(owner)))
        by_size = self._garbage_prior(n_parts)
        data = self._moved(owner, n_parts, garbage, by_size)
        size = int((owner == garbage).sum())
        self._keep(owner, data + float(by_size[size]), garbage=garbage)

    def _moved(self, owner: Ints, n_parts: int, garbage: int, by_size: Floats) -> float:
        """Move single values, in place; returns the summed cost of the parts."""
        from laconic.modl._numba_groups import move_values

        table, least = self.at.table, self.limits.min_weight
        return float(
            move_values(
                table.weights, owner, n_parts, garbage, by_size, self.n_classes, least, table.table
            )
        )

    # ---- more classes: merging, then moves ------------------------------------------------

    def _greedy(self) -> None:
        from laconic.modl._numba_groups import merge_path

        table = self.at.table
        self._note_bound(float(self.prior.construction(1)) + table.entropy_bound())
        start = _first_groups(table, MERGED)
        n_start = int(start.max()) + 1
        pooled = np.zeros((n_start, table.width), dtype=table.weights.dtype)
        np.add.at(pooled, start, table.weights)
        merges, totals = merge_path(pooled, self.n_classes, table.table)
        sizes = np.arange(n_start, 0, -1)
        most = min(self.limits.most_parts(self.at.n_values), n_start)
        usable = sizes[sizes <= most]
        prior = self._prior_costs(int(usable.max()))
        costs = prior[usable - 1] + totals[sizes <= most]
        for n_parts in usable[np.argsort(costs, kind="stable")[:FOLLOWED]]:
            owner = _follow(merges, n_start, int(n_parts))[start]
            if not self._heavy_enough(owner):
                continue
            data = self._moved(owner, int(n_parts), -1, np.zeros(1))
            self._keep(owner, data + float(prior[n_parts - 1]))
            if self._may_have_garbage:
                self._try_garbage(owner)

    def _heavy_enough(self, owner: Ints) -> bool:
        own = self.at.table.weights.sum(axis=1)
        return bool(np.bincount(owner, weights=own).min() >= self.limits.min_weight)


def _owners(chosen: NDArray[np.int32], mask: int, n_parts: int, n_values: int) -> Ints:
    """Groups of the values of ``mask``, numbered from 0; the other values get ``n_parts``."""
    owner = np.full(n_values, n_parts, dtype=np.int64)
    for part in range(n_parts, 0, -1):
        group = int(chosen[part, mask])
        for v in range(n_values):
            if group >> v & 1:
                owner[v] = part - 1
        mask ^= group
    return owner


def _first_groups(table: WeightTable, most: int) -> Ints:
    """Values of one and the same class together; if still too many, neighbours in profile."""
    weights = table.weights.astype(np.float64)
    pure = (weights > 0).sum(axis=1) == 1
    key = np.where(pure, -1 - np.argmax(weights, axis=1), np.arange(len(weights)))
    _, start = np.unique(key, return_inverse=True)
    n_start = int(start.max()) + 1
    if n_start <= most:
        return start.astype(np.int64)
    share = weights.sum(axis=0) / weights.sum()
    lift = (weights + share) / (weights.sum(axis=1, keepdims=True) + 1.0) / np.maximum(share, 1e-12)
    ordered = np.lexsort((lift.max(axis=1), np.argmax(lift, axis=1)))
    start = np.empty(len(weights), dtype=np.int64)
    start[ordered] = np.arange(len(weights)) * most // len(weights)
    return start


def _follow(merges: NDArray[np.int64], n_start: int, n_parts: int) -> Ints:
    """Groups of the starting groups once ``n_parts`` are left."""
    parent = np.arange(n_start)
    for kept, gone in merges[: n_start - n_parts]:
        parent[parent == gone] = kept
    _, owner = np.unique(parent, return_inverse=True)
    return owner.astype(np.int64)
