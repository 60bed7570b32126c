"""Grids of two variables with the least description length.

With the parts of one side fixed, the cost of the grid is additive over the parts of the other, a
part costing the sum of its cells: the one-variable search applies, with one block of classes per
fixed part. Both sides are searched in turn from several coarse starts. Which pairs are searched is
said by a screening of coarse codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.core.losses import Solution
from laconic.data.row_keys import seed_of
from laconic.modl.atoms import Atoms, merge_side
from laconic.modl.criterion import PartitionPrior, part_cost, partition_costs
from laconic.modl.fit import Setting
from laconic.modl.groups import Grouping, best_groups
from laconic.modl.intervals import Cuts, best_intervals
from laconic.modl.partition import Grid, Intervals, Partition
from laconic.modl.tuning import GRID_ROUNDS, GRID_STARTS, SCREENED_ROWS, TRIED_PAIRS


@dataclass(frozen=True)
class GridParts:
    """Part of each atom on both sides, and what the two partitions cost without the cells."""

    owners: tuple[Ints, Ints]
    shape: tuple[int, int]
    partition_cost: float

    def cells(self, weights: Floats) -> Floats:
        """Class weights of the cells: shape (I1, I2, n_classes)."""
        rows = np.zeros((self.shape[0], *weights.shape[1:]))
        np.add.at(rows, self.owners[0], weights)
        cells = np.zeros((self.shape[1], self.shape[0], weights.shape[2]))
        np.add.at(cells, self.owners[1], rows.transpose(1, 0, 2))
        return cells.transpose(1, 0, 2)


def best_grid(weights: Floats, ordered: tuple[bool, bool], prior: PartitionPrior) -> Solution:
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
    first, second = (np.zeros(size, dtype=np.int64) for size in weights.shape[:2])
    best = GridParts((first, second), (1, 1), 0.0)
    null = part_cost(weights.sum(axis=(0, 1)))
    value = float(prior.construction(1)) + float(null)
    n_iter = 0
    for side in (0, 1):
        own = weights.sum(axis=2).sum(axis=side)
        for n_parts in GRID_STARTS:
            _, other = np.unique(_coarse(own, n_parts, ordered[1 - side]), return_inverse=True)
            found, steps = _alternate(weights, ordered, prior, side, other)
            n_iter += steps
            cells = found.cells(weights).reshape(-1, n_classes)
            cost = float(part_cost(cells).sum())
            cost += found.partition_cost + float(prior.construction(len(cells)))
            if cost < value - 1e-9 * abs(value):
                value, best = cost, found
    details = MappingProxyType({"exact": False})
    return Solution(best, value, value, n_iter, "stalled", details)


def _alternate(
    weights: Floats, ordered: tuple[bool, bool], prior: PartitionPrior, side: int, other: Ints
) -> tuple[GridParts, int]:
    """Search ``side`` given the parts of the other one, then swap, until the cost stands still."""
    owners, n_parts, costs = [other, other], [1, 1], [np.inf, np.inf]
    last = np.inf
    for step in range(GRID_ROUNDS):
        found = _search_side(weights, ordered[side], prior, side, owners[1 - side])
        owners[side], n_parts[side], costs[side] = found
        grid = GridParts((owners[0], owners[1]), (n_parts[0], n_parts[1]), float(sum(costs)))
        if step:
            total = grid.partition_cost + float(part_cost(grid.cells(weights)).sum())
            if total >= last - 1e-9 * abs(last):
                break
            last = total
        side = 1 - side
    return grid, step + 1


def _search_side(
    weights: Floats, ordered: bool, prior: PartitionPrior, side: int, fixed: Ints
) -> tuple[Ints, int, float]:
    """Part of each atom of ``side``, number of parts and cost, the other side's parts fixed."""
    table = weights if side == 0 else weights.transpose(1, 0, 2)
    n_fixed, n_classes = int(fixed.max()) + 1, table.shape[2]
    pooled = np.zeros((table.shape[0], n_fixed, n_classes))
    for part in range(n_fixed):
        pooled[:, part] = table[:, fixed == part].sum(axis=1)
    flat = pooled.reshape(len(pooled), -1)
    if ordered:
        cuts: Cuts = best_intervals(flat, n_classes, prior.unnamed()).point
        return cuts.parts_of_values(len(flat)), cuts.n_parts, cuts.prior_cost(prior)
    filled = flat.sum(axis=1) > 0
    found: Grouping = best_groups(flat[filled], n_classes, prior.unnamed()).point
    owner = np.zeros(len(flat), dtype=np.int64)
    owner[filled] = found.owner
    return owner, found.n_groups, found.prior_cost(prior)


def _coarse(own: Floats, n_parts: int, ordered: bool) -> Ints:
    """Equal-frequency runs of atoms, or the heaviest atoms alone and the others together."""
    if ordered:
        middle = np.cumsum(own) - 0.5 * own
        run: Ints = (middle * n_parts / own.sum()).astype(np.int64)
        return np.minimum(run, n_parts - 1)
    owner = np.full(len(own), n_parts - 1)
    heavy = np.argsort(-own, kind="stable")[: n_parts - 1]
    owner[heavy] = np.arange(len(heavy))
    return owner


def fit_pairs(
    setting: Setting,
    atoms: Atoms,
    singles: Sequence[Partition],
    n_pairs: int,
    random_state: Any,
) -> list[Partition]:
    """The grids that say most beyond their two columns, best first."""
    if len(atoms.ladders) < 2:
        return []
    found = []
    for a, b in _promising(setting, atoms, TRIED_PAIRS * n_pairs, random_state):
        partition, shape = _fit_pair(setting, atoms, a, b)
        extra = partition.level - sum(singles[j].level for j in partition.columns)
        if extra > 0.0 and min(shape) > 1:
            found.append((extra, partition))
    found.sort(key=lambda item: -item[0])
    return [partition for _, partition in found[:n_pairs]]


def _promising(
    setting: Setting, atoms: Atoms, most: int, random_state: Any
) -> list[tuple[int, int]]:
    """The pairs that say most beyond the two columns alone, by codes of eight coarse parts."""
    from laconic.modl._numba_groups import COARSE

    rows = atoms.drawn(SCREENED_ROWS, np.random.RandomState(seed_of(random_state)))
    codes, y, weight = atoms.codes[rows], atoms.y[rows], atoms.weight[rows]
    coarse = np.empty(codes.shape, dtype=np.uint8)
    for j, ladder in enumerate(atoms.ladders):
        own = np.zeros(ladder.n_parts)
        own += np.bincount(codes[:, j], weights=weight, minlength=len(own))
        coarse[:, j] = _coarse(own, COARSE, isinstance(ladder, Intervals))[codes[:, j]]
    gains = _pair_gains(coarse, y, weight, setting.n_classes)
    order = np.argsort(-gains, axis=None, kind="stable")[:most]
    pairs = [divmod(int(k), gains.shape[1]) for k in order]
    return [(a, b) for a, b in pairs if np.isfinite(gains[a, b])]


def _pair_gains(codes: NDArray[np.uint8], y: Ints, weight: Floats, n_classes: int) -> Floats:
    """What each pair of coarse columns says beyond the two columns alone, in nats.

    Entry (a, b), a < b: cost of a + cost of b - cost of one part - cost of the cells, the best of
    the 8 x 8, 4 x 4 and 2 x 2 grids. It is proportional to joint level - sum of the two levels.
    """
    from laconic.modl._numba_groups import coarse_cells

    n_columns = codes.shape[1]
    gains = np.full((n_columns, n_columns), -np.inf)
    for a in range(n_columns - 1):
        cells = coarse_cells(np.asfortranarray(codes), y, weight, a, n_classes)
        while (size := cells.shape[1]) >= 2:
            sides = sum(part_cost(cells.sum(axis=axis)).sum(axis=1) for axis in (1, 2))
            gain = sides - part_cost(cells.sum(axis=(1, 2))) - part_cost(cells).sum(axis=(1, 2))
            gains[a, a + 1 :] = np.maximum(gains[a, a + 1 :], gain)
            halves = (len(cells), size // 2, 2, size // 2, 2, n_classes)
            cells = cells.reshape(halves).sum(axis=(2, 4))
    return gains


def _fit_pair(setting: Setting, atoms: Atoms, a: int, b: int) -> tuple[Partition, tuple[int, int]]:
    weights = atoms.cross(a, b, setting.n_classes)
    sides = (atoms.ladders[a], atoms.ladders[b])
    prior = setting.prior_for(setting.total, _pair_selection(setting))
    ordered = (isinstance(sides[0], Intervals), isinstance(sides[1], Intervals))
    solution = best_grid(weights, ordered, prior)
    parts: GridParts = solution.point
    first, second = (
        merge_side(side, owner, size)
        for side, owner, size in zip(sides, parts.owners, parts.shape, strict=True)
    )
    columns, grid, cells = (
        [atoms.columns[a], atoms.columns[b]],
        Grid((first, second)),
        parts.cells(weights),
    )
    if columns[0] > columns[1]:  # named and shown in the order of the table
        columns, grid, cells = columns[::-1], Grid((second, first)), cells.transpose(1, 0, 2)
    cells = np.ascontiguousarray(cells).reshape(-1, setting.n_classes)
    found = setting.partition(
        columns,
        " x ".join(setting.table.names[j] for j in columns),
        cells=grid,
        class_weights=cells,
        costs=partition_costs(cells, prior, parts.partition_cost),
        null_costs=setting.null_costs(2, grouped=False),
        gap=solution.gap,
    )
    return found, parts.shape


def _pair_selection(setting: Setting) -> float:
    """ln K(K - 1): build instead of take (ln 2), then which two; beyond ln K under "2006"."""
    n_columns = len(setting.table.names)
    chosen = float(np.log(n_columns) + np.log(n_columns - 1))
    return chosen if setting.code == "granular" else chosen - float(np.log(n_columns))
