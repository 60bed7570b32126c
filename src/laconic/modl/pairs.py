"""Grids of two variables with the least description length.

With the parts of one side fixed, the cost of the grid is additive over the parts of the other, a
part costing the sum of its cells: the one-variable search applies, with one block of classes per
fixed part. Both sides are searched in turn from several coarse starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.core.solution import Solution
from laconic.modl.criterion import LN2, PartitionPrior, part_cost
from laconic.modl.groups import Grouping, best_groups
from laconic.modl.intervals import Cuts, best_intervals

_ROUNDS = 8
_STARTS = (2, 4, 8)


@dataclass(frozen=True)
class GridParts:
    """Part of each atom on both sides, and what the two partitions cost without the cells."""

    owners: tuple[Ints, Ints]
    shape: tuple[int, int]
    partition_cost: float


@dataclass(frozen=True)
class _SideParts:
    owner: Ints
    n_parts: int
    cost: float


def screen_pairs(
    codes: NDArray[np.uint8],
    y: NDArray[np.int64],
    weight: Floats,
    n_classes: int,
) -> Floats:
    """What each pair of coarse columns (codes 0..7) says beyond the two columns alone, in nats.

    Entry (a, b), a < b: cost of a + cost of b - cost of one part - cost of the cells, the best of
    the 8 x 8, 4 x 4 and 2 x 2 grids. It is proportional to joint level - sum of the two levels.
    """
    from laconic.modl._numba_groups import pair_gains

    gains: Floats = pair_gains(codes, y, weight, n_classes)
    return gains


def best_grid(
    weights: Floats,
    ordered: tuple[bool, bool],
    prior: PartitionPrior,
) -> Solution:
    """Search the grid of one pair.

    Parameters
    ----------
    weights : array of shape (V1, V2, n_classes)
        Class weights of the pairs of atoms (fine parts of the two variables).
    ordered : pair of bool
        Whether each side is cut in intervals (else grouped).
    prior : PartitionPrior
        With the cost of naming the pair as its selection cost.

    Returns
    -------
    Solution
        ``point`` is a :class:`GridParts`. Nothing is proven: ``gap`` is the value itself.
    """
    n_classes = weights.shape[2]
    best = GridParts((_zeros(weights, 0), _zeros(weights, 1)), (1, 1), 0.0)
    null = part_cost(weights.sum(axis=(0, 1)))
    value = float(prior.construction(1)) + float(null)
    n_iter = 0
    for side in (0, 1):
        for n_parts in _STARTS:
            other = _coarse(weights.sum(axis=2).sum(axis=side), n_parts, ordered[1 - side])
            found, steps = _alternate(weights, ordered, prior, side, other)
            n_iter += steps
            cells = _cells(weights, found.owners, found.shape)
            n_cells = found.shape[0] * found.shape[1]
            cost = float(part_cost(cells.reshape(-1, n_classes)).sum())
            cost += found.partition_cost + float(prior.construction(n_cells))
            if cost < value - 1e-9 * abs(value):
                value, best = cost, found
    details = MappingProxyType({"exact": False})
    return Solution(best, value, value, n_iter, "stalled", details)


def _alternate(
    weights: Floats,
    ordered: tuple[bool, bool],
    prior: PartitionPrior,
    side: int,
    other: Ints,
) -> tuple[GridParts, int]:
    """Search ``side`` given the parts of the other one, then swap, until the cost stands still."""
    costs = [np.inf, np.inf]
    owners = [other, other]
    n_parts = [1, 1]
    last = np.inf
    steps = 0
    for step in range(_ROUNDS):
        fixed = owners[1 - side] if step else other
        found = _search_side(weights, ordered[side], prior, side, fixed)
        owners[side], n_parts[side], costs[side] = found.owner, found.n_parts, found.cost
        steps = step + 1
        if step:
            total = sum(costs) + float(
                part_cost(_cells(weights, (owners[0], owners[1]), (n_parts[0], n_parts[1]))).sum()
            )
            if total >= last - 1e-9 * abs(last):
                break
            last = total
        side = 1 - side
    shape = (n_parts[0], n_parts[1])
    return GridParts((owners[0], owners[1]), shape, float(sum(costs))), steps


def _search_side(
    weights: Floats, ordered: bool, prior: PartitionPrior, side: int, fixed: Ints
) -> _SideParts:
    table = weights if side == 0 else weights.transpose(1, 0, 2)
    n_fixed = int(fixed.max()) + 1
    pooled = np.zeros((table.shape[0], n_fixed, table.shape[2]))
    for part in range(n_fixed):
        pooled[:, part] = table[:, fixed == part].sum(axis=1)
    flat = pooled.reshape(len(pooled), -1)
    filled = flat.sum(axis=1) > 0
    n_classes = table.shape[2]
    if ordered:
        cuts: Cuts = best_intervals(flat, n_classes, prior.unnamed()).point
        cost = float(prior.intervals(cuts.n_parts, max(cuts.level, 1)))
        return _SideParts(cuts.parts_of_values(len(flat)), cuts.n_parts, cost)
    found: Grouping = best_groups(flat[filled], n_classes, prior.unnamed()).point
    owner = np.zeros(len(flat), dtype=np.int64)
    owner[filled] = found.owner
    level, n_values = max(found.level, 1), max(found.n_values, 1)
    if found.garbage >= 0:
        cost = float(prior.groups_with_garbage(found.n_groups, level, n_values, found.garbage_size))
    else:
        cost = float(prior.groups(found.n_groups, level, n_values))
    return _SideParts(owner, found.n_groups, cost)


def _coarse(own: Floats, n_parts: int, ordered: bool) -> Ints:
    """Equal-frequency runs of atoms, or the heaviest atoms alone and the others together."""
    if ordered:
        middle = np.cumsum(own) - 0.5 * own
        owner = np.minimum((middle * n_parts / own.sum()).astype(np.int64), n_parts - 1)
    else:
        owner = np.full(len(own), n_parts - 1)
        heavy = np.argsort(-own, kind="stable")[: n_parts - 1]
        owner[heavy] = np.arange(len(heavy))
    _, dense = np.unique(owner, return_inverse=True)
    return dense.astype(np.int64)


def _cells(weights: Floats, owners: tuple[Ints, Ints], shape: tuple[int, int]) -> Floats:
    rows = np.zeros((shape[0], *weights.shape[1:]))
    np.add.at(rows, owners[0], weights)
    cells = np.zeros((shape[1], shape[0], weights.shape[2]))
    np.add.at(cells, owners[1], rows.transpose(1, 0, 2))
    return cells.transpose(1, 0, 2)


def _zeros(weights: Floats, side: int) -> Ints:
    return np.zeros(weights.shape[side], dtype=np.int64)


def grid_cells(weights: Floats, parts: GridParts) -> Floats:
    """Class weights of the cells, row by row: shape (I1 * I2, n_classes)."""
    return np.ascontiguousarray(_cells(weights, parts.owners, parts.shape)).reshape(
        -1, weights.shape[2]
    )


# Small trees pruned by description length.
#
# A tree over K columns writes one bit per node (leaf or split, ln 2), then ln K and ln(cuts) per
# split for the column and the place, then the class weights of its leaves as any partition does. A
# split is kept where the two subtrees, so written, are shorter than the leaf in their place.


@dataclass(frozen=True)
class Tree:
    """Arrays of a binary tree; children come after their parent, -1 marks a leaf.

    A row goes left at node t when its code in column ``column[t]`` is at most ``cut[t]``.
    """

    left: Ints
    right: Ints
    column: Ints
    cut: Ints

    @property
    def n_nodes(self) -> int:
        return len(self.left)

    def weights_of_nodes(self, leaf_weights: Floats) -> Floats:
        """Class weights of every node, from those of the leaves."""
        weights = leaf_weights.copy()
        for t in range(self.n_nodes - 1, -1, -1):
            if self.left[t] >= 0:
                weights[t] = weights[self.left[t]] + weights[self.right[t]]
        return weights


@dataclass(frozen=True)
class Pruned:
    """Which nodes stay splits, and the length of what is left (without naming the variable)."""

    is_split: NDArray[np.bool_]
    cost: float

    def nodes(self, tree: Tree) -> list[int]:
        """Nodes that are left, parents first, left before right."""
        order: list[int] = []
        stack = [0]
        while stack:
            t = stack.pop()
            order.append(t)
            if self.is_split[t]:
                stack += [int(tree.right[t]), int(tree.left[t])]
        return order


def prune_tree(tree: Tree, weights: Floats, n_cuts: Ints) -> Pruned:
    """Bottom-up, exact for the splits that the tree offers.

    Parameters
    ----------
    tree : Tree
    weights : array of shape (n_nodes, n_classes)
        Class weights of every node.
    n_cuts : array of shape (n_columns,)
        How many cuts each column offers.
    """
    cost = LN2 + part_cost(weights)
    is_split = np.zeros(tree.n_nodes, dtype=bool)
    name_column = np.log(len(n_cuts))
    for t in range(tree.n_nodes - 1, -1, -1):
        if tree.left[t] < 0:
            continue
        place = np.log(max(1, int(n_cuts[tree.column[t]])))
        split = LN2 + name_column + place + cost[tree.left[t]] + cost[tree.right[t]]
        if split < cost[t]:
            cost[t] = split
            is_split[t] = True
    return Pruned(is_split, float(cost[0]))
