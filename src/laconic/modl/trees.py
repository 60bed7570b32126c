"""Variables built from small trees: their leaves are the parts, read as rules.

A tree over K columns writes one bit per node (leaf or split, ln 2), then ln K and ln(cuts) per
split for the column and the place, then the class weights of its leaves as any partition does. A
split is kept where the two subtrees, so written, are shorter than the leaf in their place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints, Keys
from laconic.data.row_keys import code_keys, seed_of, uniforms
from laconic.data.value_tables import labels
from laconic.modl.atoms import Atoms, merge_side
from laconic.modl.criterion import LN2, Costs, part_cost, part_data_cost
from laconic.modl.fit import Setting, class_counts
from laconic.modl.partition import Partition, Rules, Side
from laconic.modl.tuning import LEAVES, TREE_ROWS

# P(count <= k) of a Poisson count of mean 1
_POISSON = np.cumsum(np.exp(-1.0) / np.array([math.factorial(k) for k in range(9)]))


def fit_trees(setting: Setting, atoms: Atoms, n_trees: int, random_state: Any) -> list[Partition]:
    """Trees grown on resampled rows and random columns, pruned by description length.

    A tree is grown until its leaves are pure or :data:`LEAVES` are reached, on rows that count
    0, 1, 2... times (Poisson of mean 1); all rows then weigh its nodes, and pruning decides what
    stays. Leaves picked and weighed on the same rows would look purer than they are: rows that the
    tree did not see keep it short. Equal trees are kept once.
    """
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.RandomState(seed_of(random_state))
    rows = atoms.drawn(TREE_ROWS, rng)
    codes, y, weight = atoms.codes[rows], atoms.y[rows], atoms.weight[rows]
    X, keys = codes.astype(np.float32), code_keys(codes)
    found: list[Partition] = []
    seen: set[bytes] = set()
    for _ in range(n_trees):
        bag = weight * _times(keys, y, rng)
        grows = bag > 0.0
        seed = int(rng.randint(2**31 - 1))
        if grows.sum() <= 2 * len(np.unique(y[grows])):
            continue  # too few rows to say anything, which scikit-learn would warn of
        grown = DecisionTreeClassifier(
            criterion="entropy", max_leaf_nodes=LEAVES, max_features="sqrt", random_state=seed
        ).fit(X[grows], y[grows], sample_weight=bag[grows])
        partition = _partition(setting, atoms, grown.tree_, f"tree {len(found) + 1}")
        if partition is None or partition.class_weights.tobytes() in seen:
            continue
        seen.add(partition.class_weights.tobytes())
        found.append(partition)
    return found


def _times(keys: Keys, y: Ints, rng: np.random.RandomState) -> Floats:
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
    places = [atoms.columns[c] for c in columns]
    return setting.partition(
        places,
        name,
        cells=cells,
        class_weights=parts,
        costs=costs,
        null_costs=null,
        gap=costs.total,
    )


def _leaf_weights(setting: Setting, atoms: Atoms, grown: Any) -> Floats:
    """Class weights of the leaves over all training rows, in one pass."""

    def of_block(block: Any) -> Floats:
        codes = np.column_stack([block.X.column(j) for j in range(len(atoms.ladders))])
        leaf = grown.apply(codes.astype(np.float32))
        return class_counts(leaf, *labels(block), grown.node_count, setting.n_classes)

    weights: Floats = atoms.source.sum(of_block)
    return weights


def _rules(atoms: Atoms, tree: Tree, pruned: Pruned, nodes: list[int], columns: Ints) -> Rules:
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
