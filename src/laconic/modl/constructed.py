"""Variables built from several columns: the atoms they start from, and grids of two.

Atoms are at most 128 fine parts per column: equal-frequency intervals (with missing apart), or the
most frequent categories.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state

from laconic._typing import Floats
from laconic.data.row_keys import row_keys, uniforms
from laconic.data.source import ArraySource, Source
from laconic.data.tables.columns import Table
from laconic.data.value_tables import category_table, cross_table, numeric_table
from laconic.modl.criterion import LN2, Costs, part_data_cost, part_prior_cost
from laconic.modl.fit import Setting
from laconic.modl.pairs import (
    GridParts,
    Pruned,
    Tree,
    best_grid,
    grid_cells,
    prune_tree,
    screen_pairs,
)
from laconic.modl.partition import Grid, Groups, Intervals, Partition, Rules, Side, readable_between

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
    from laconic.modl._numba import level_cuts

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


# Variables built from small trees: their leaves are the parts, read as rules.


TREE_ROWS = 100_000
"""Rows that a tree is grown on at most; its leaves are weighed on all."""
LEAVES = 1024
"""Leaves of a tree before it is pruned, at most."""
_POISSON = np.cumsum(np.exp(-1.0) / np.array([math.factorial(k) for k in range(9)]))


def fit_trees(setting: Setting, atoms: Atoms, n_trees: int, random_state: Any) -> list[Partition]:
    """Trees grown on resampled rows and random columns, pruned by description length.

    A tree is grown until its leaves are pure or :data:`LEAVES` are reached, on rows that count
    0, 1, 2... times (Poisson of mean 1); all rows then weigh its nodes, and pruning decides what
    stays. Leaves picked and weighed on the same rows would look purer than they are: rows that the
    tree did not see keep it short. Equal trees are kept once.
    """
    source = atoms.source
    assert isinstance(source, ArraySource)
    assert source.y is not None
    assert source.weight is not None
    rng = check_random_state(random_state)
    rows: Any = slice(None)
    if setting.table.n_rows > TREE_ROWS:
        rows = np.sort(rng.choice(setting.table.n_rows, TREE_ROWS, replace=False))
    codes, y, weight = atoms.codes[rows], source.y[rows], source.weight[rows]
    X, keys = codes.astype(np.float32), _keys(setting, codes)
    found: list[Partition] = []
    seen: set[bytes] = set()
    for _ in range(n_trees):
        bag = weight * _times(keys, y, rng)
        grows = bag > 0.0
        seed = int(rng.randint(2**31 - 1))
        if not grows.any():
            continue
        grown = DecisionTreeClassifier(
            criterion="entropy", max_leaf_nodes=LEAVES, max_features="sqrt", random_state=seed
        ).fit(X[grows], y[grows], sample_weight=bag[grows])
        partition = _partition(setting, atoms, grown.tree_, f"tree {len(found) + 1}")
        if partition is None or partition.class_weights.tobytes() in seen:
            continue
        seen.add(partition.class_weights.tobytes())
        found.append(partition)
    return found


def _keys(setting: Setting, codes: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """A key for each row of atoms: rows that no tree can tell apart are drawn together."""
    n_columns = codes.shape[1]
    names, kinds = setting.table.names, ("numeric",) * n_columns
    columns = [codes[:, j].astype(np.float64) for j in range(n_columns)]
    return row_keys(Table(names, kinds, (None,) * n_columns, columns))


def _times(
    keys: NDArray[np.uint64], y: NDArray[np.int64], rng: np.random.RandomState
) -> NDArray[np.float64]:
    """How often each row counts: Poisson of mean 1, the same for equal rows.

    Drawn from the row and its class, not from its place: a row of weight two is two equal rows.
    """
    n_classes = int(y.max()) + 1
    odd = rng.randint(0, 2**63 - 1, size=n_classes, dtype=np.int64).astype(np.uint64)
    draw = uniforms(keys * (np.uint64(2) * odd + np.uint64(1))[y])
    return np.searchsorted(_POISSON, draw, side="right").astype(np.float64)


def _partition(setting: Setting, atoms: Atoms, grown: Any, name: str) -> Partition | None:
    """The pruned tree, or None when a single part is shorter."""
    cut = np.floor(grown.threshold).astype(np.int64)
    tree = Tree(grown.children_left, grown.children_right, grown.feature, cut)
    weights = tree.weights_of_nodes(_leaf_weights(setting, atoms, grown))
    n_cuts = np.array([ladder.n_parts - 1 for ladder in atoms.ladders])
    pruned = prune_tree(tree, weights, n_cuts)
    prior = setting.prior_for(setting.total, setting.selection() + LN2)
    null = setting.null_costs(2, grouped=False)
    if not pruned.is_split[0] or float(prior.construction(2)) + pruned.cost >= null.total:
        return None
    nodes = pruned.nodes(tree)
    parts = weights[[t for t in nodes if not pruned.is_split[t]]]
    data = float(part_data_cost(parts).sum())
    costs = Costs(float(prior.construction(2)), pruned.cost - data, data)
    columns = np.unique(tree.column[pruned.is_split])
    cells = _rules(atoms, tree, pruned, nodes, columns)
    return setting.partition(
        columns.tolist(), cells, parts, costs, null, name=name, gap=costs.total
    )


def _leaf_weights(setting: Setting, atoms: Atoms, grown: Any) -> NDArray[np.float64]:
    """Class weights of the leaves over all training rows, in one pass."""
    n_nodes, n_classes = grown.node_count, setting.n_classes

    def of_block(block: Any) -> NDArray[np.float64]:
        codes = np.column_stack([block.X.column(j) for j in range(len(atoms.ladders))])
        leaf = grown.apply(codes.astype(np.float32))
        flat = np.zeros(n_nodes * n_classes)
        flat += np.bincount(leaf * n_classes + block.y, weights=block.weight, minlength=len(flat))
        return flat.reshape(n_nodes, n_classes)

    weights: NDArray[np.float64] = atoms.source.sum(of_block)
    return weights


def _rules(
    atoms: Atoms, tree: Tree, pruned: Pruned, nodes: list[int], columns: NDArray[np.int64]
) -> Rules:
    """The pruned tree over short ladders: only the cuts that it uses."""
    ladders: list[Side] = []
    step: dict[tuple[int, int], int] = {}
    for j in columns:
        ladder = atoms.ladders[j]
        used = np.unique(tree.cut[pruned.is_split & (tree.column == j)])
        owner = np.searchsorted(used, np.arange(ladder.n_parts), side="left")
        ladders.append(merge_side(ladder, owner, len(used) + 1))
        step.update({(int(j), int(cut)): k for k, cut in enumerate(used)})
    place = {t: k for k, t in enumerate(nodes)}
    column, left, right, part = (np.full(len(nodes), -1) for _ in range(4))
    threshold = np.zeros(len(nodes), dtype=np.int64)
    n_leaves = 0
    for k, t in enumerate(nodes):
        if pruned.is_split[t]:
            j = int(tree.column[t])
            column[k] = int(np.searchsorted(columns, j))
            threshold[k] = step[j, int(tree.cut[t])]
            left[k], right[k] = place[int(tree.left[t])], place[int(tree.right[t])]
        else:
            part[k] = n_leaves
            n_leaves += 1
    return Rules(tuple(ladders), column, threshold, left, right, part)
