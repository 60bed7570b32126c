"""Small trees pruned by description length.

A tree over K columns writes one bit per node (leaf or split, ln 2), then ln K and ln(cuts) per
split for the column and the place, then the class weights of its leaves as any partition does. A
split is kept where the two subtrees, so written, are shorter than the leaf in their place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laconic.criteria.modl import LN2, part_cost
from laconic.solvers.partition import Floats, Ints


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
