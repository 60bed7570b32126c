"""Variables built from small trees: their leaves are the parts, read as rules."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state

from laconic.criteria.modl import LN2, Costs, part_data_cost
from laconic.data.columns import Table
from laconic.data.row_keys import row_keys, uniforms
from laconic.data.source import ArraySource
from laconic.estimators.constructed import Atoms, merge_side
from laconic.estimators.partition import Partition
from laconic.estimators.partition_cells import Rules, Side
from laconic.estimators.partition_fit import Setting
from laconic.solvers.partition_trees import Pruned, Tree, prune_tree

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
