"""Variables built from several columns: the atoms they start from, and grids of two.

Atoms are at most 128 fine parts per column: equal-frequency intervals (with missing apart), or the
most frequent categories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from laconic.criteria.modl import Costs, part_data_cost, part_prior_cost
from laconic.data.columns import Table
from laconic.data.source import ArraySource, Source
from laconic.data.tables import category_table, cross_table, numeric_table
from laconic.estimators.partition import Partition
from laconic.estimators.partition_cells import (
    Grid,
    Groups,
    Intervals,
    Side,
    readable_between,
)
from laconic.estimators.partition_fit import Setting
from laconic.solvers.partition_pairs import GridParts, best_grid, grid_cells, screen_pairs

Floats = NDArray[np.float64]

ATOMS = 128
SCREENED_ROWS = 20_000
_TRIED = 4


@dataclass(frozen=True)
class Atoms:
    """Fine parts of every column, and the code of every training row."""

    ladders: tuple[Side, ...]
    codes: NDArray[np.uint8]
    source: Source

    def cross(self, a: int, b: int, n_classes: int) -> Floats:
        sizes = [self.ladders[a].n_parts, self.ladders[b].n_parts]
        flat = cross_table(self.source, [a, b], [size + 1 for size in sizes], n_classes)
        grid = flat.reshape(sizes[0] + 1, sizes[1] + 1, n_classes)
        return np.ascontiguousarray(grid[:-1, :-1])


def read_atoms(setting: Setting) -> Atoms:
    """One more pass over the columns: fine parts and codes."""
    table = setting.table
    n_columns = len(table.names)
    ladders: list[Side] = []
    codes = np.empty((table.n_rows, n_columns), dtype=np.uint8, order="F")
    for j in range(n_columns):
        categorical = table.kinds[j] == "categorical"
        ladder = _category_atoms(setting, j) if categorical else _numeric_atoms(setting, j)
        codes[:, j] = ladder.codes([table.column(j)])
        ladders.append(ladder)
    coded = Table(
        table.names,
        tuple("categorical" for _ in range(n_columns)),
        tuple(() for _ in range(n_columns)),
        [codes[:, j] for j in range(n_columns)],
    )
    original = setting.source
    assert isinstance(original, ArraySource)
    return Atoms(tuple(ladders), codes, ArraySource(coded, original.y, original.weight))


def _numeric_atoms(setting: Setting, column: int) -> Intervals:
    from laconic.solvers.hot_partition import level_cuts

    table = numeric_table(setting.source, column, setting.n_classes)
    own = table.weights.sum(axis=1)
    cumulated = np.concatenate([[0.0], np.cumsum(own)])
    if len(own) <= ATOMS:
        cuts = np.arange(1, len(own))
    else:
        cuts = level_cuts(cumulated, float(cumulated[-1]), float(ATOMS))
    values = table.values
    bounds = [readable_between(float(values[c - 1]), float(values[c])) for c in cuts]
    return Intervals(np.array(bounds, dtype=np.float64), table.has_missing, (), table.has_missing)


def _category_atoms(setting: Setting, column: int) -> Groups:
    """The most frequent categories alone, the others together; by rate of the rarest class."""
    categories = setting.table.categories[column] or ()
    rows = category_table(setting.source, column, len(categories), setting.n_classes)
    own = rows.sum(axis=1)
    seen = np.flatnonzero(own > 0)
    kept = seen[np.lexsort((*rows[seen].T[::-1], -own[seen]))][: ATOMS - 1]
    owner = np.full(len(rows), len(kept), dtype=np.int64)
    owner[kept] = np.arange(len(kept))
    pooled = len(kept) < len(seen)
    n_atoms = len(kept) + int(pooled)
    weights = np.zeros((n_atoms + 1, setting.n_classes))
    np.add.at(weights, owner, rows)
    rarest = int(np.argmin(setting.class_totals))
    rate = weights[:n_atoms, rarest] / np.maximum(weights[:n_atoms].sum(axis=1), 1e-300)
    rank = np.empty(n_atoms + 1, dtype=np.int64)
    rank[np.argsort(rate, kind="stable")] = np.arange(n_atoms)
    default = int(rank[n_atoms - 1])
    rank[n_atoms] = default
    part_of = rank[owner].astype(np.int32)
    return Groups(categories, part_of, n_atoms, default, bool(own[-1] > 0))


def fit_pairs(
    setting: Setting,
    atoms: Atoms,
    singles: Sequence[Partition],
    n_pairs: int,
    random_state: Any,
) -> list[Partition]:
    """The grids that say most beyond their two columns, best first."""
    n_columns = len(atoms.ladders)
    if n_columns < 2:
        return []
    found = []
    for a, b in _promising(setting, atoms, _TRIED * n_pairs, random_state):
        partition = _fit_pair(setting, atoms, a, b)
        extra = partition.level - singles[a].level - singles[b].level
        if extra > 0.0 and min(_shape(partition)) > 1:
            found.append((extra, partition))
    found.sort(key=lambda item: -item[0])
    return [partition for _, partition in found[:n_pairs]]


def _shape(partition: Partition) -> tuple[int, int]:
    assert isinstance(partition.cells, Grid)
    return partition.cells.shape


def _promising(
    setting: Setting, atoms: Atoms, most: int, random_state: Any
) -> list[tuple[int, int]]:
    source = atoms.source
    assert isinstance(source, ArraySource)
    assert source.y is not None
    assert source.weight is not None
    rows: Any = slice(None)
    if setting.table.n_rows > SCREENED_ROWS:
        rng = check_random_state(random_state)
        rows = np.sort(rng.choice(setting.table.n_rows, SCREENED_ROWS, replace=False))
    y, weight = source.y[rows], source.weight[rows]
    coarse = np.empty((len(y), len(atoms.ladders)), dtype=np.uint8)
    for j, ladder in enumerate(atoms.ladders):
        codes = atoms.codes[rows, j]
        own = np.zeros(ladder.n_parts)
        own += np.bincount(codes, weights=weight, minlength=ladder.n_parts)
        coarse[:, j] = _eight(own, isinstance(ladder, Intervals))[codes]
    gains = screen_pairs(coarse, y, weight, setting.n_classes)
    order = np.argsort(-gains, axis=None, kind="stable")[:most]
    pairs = [divmod(int(k), gains.shape[1]) for k in order]
    return [(a, b) for a, b in pairs if np.isfinite(gains[a, b])]


def _eight(own: Floats, ordered: bool) -> NDArray[np.uint8]:
    if ordered:
        middle = np.cumsum(own) - 0.5 * own
        return np.asarray(np.minimum(middle * 8 / max(own.sum(), 1e-300), 7).astype(np.uint8))
    out = np.full(len(own), 7, dtype=np.uint8)
    heavy = np.argsort(-own, kind="stable")[:7]
    out[heavy] = np.arange(len(heavy))
    return out


def _fit_pair(setting: Setting, atoms: Atoms, a: int, b: int) -> Partition:
    weights = atoms.cross(a, b, setting.n_classes)
    sides = (atoms.ladders[a], atoms.ladders[b])
    prior = setting.prior_for(setting.total, _pair_selection(setting))
    ordered = (isinstance(sides[0], Intervals), isinstance(sides[1], Intervals))
    solution = best_grid(weights, ordered, prior)
    parts: GridParts = solution.point
    cells = grid_cells(weights, parts)
    first = merge_side(sides[0], parts.owners[0], parts.shape[0])
    second = merge_side(sides[1], parts.owners[1], parts.shape[1])
    costs = Costs(
        float(prior.construction(parts.shape[0] * parts.shape[1])),
        parts.partition_cost + float(part_prior_cost(cells).sum()),
        float(part_data_cost(cells).sum()),
    )
    names = setting.table.names
    return setting.partition(
        [a, b],
        Grid((first, second)),
        cells,
        costs,
        setting.null_costs(2, grouped=False),
        name=f"{names[a]} x {names[b]}",
        gap=solution.gap,
    )


def _pair_selection(setting: Setting) -> float:
    """ln K(K - 1): build instead of take (ln 2), then which two; beyond ln K under "2006"."""
    n_columns = len(setting.table.names)
    chosen = float(np.log(n_columns) + np.log(n_columns - 1))
    return chosen if setting.prior == "granular" else chosen - float(np.log(n_columns))


def merge_side(side: Side, owner: NDArray[np.int64], n_parts: int) -> Side:
    """The atoms of a side merged into its parts."""
    if isinstance(side, Groups):
        part_of = owner[side.part_of].astype(np.int32)
        return Groups(
            side.categories, part_of, n_parts, int(owner[side.default]), side.missing_seen
        )
    cuts = np.flatnonzero(np.diff(owner))
    alone = side.missing_alone and len(cuts) > 0 and cuts[0] == 0
    bounds = side.bounds[cuts[cuts >= side.first] - side.first]
    return Intervals(bounds, bool(alone), (), side.missing_seen)
