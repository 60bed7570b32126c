"""A term that reads several columns by the rules of a small tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.data.axes import Axis, axis_from_dict, encode_column
from laconic.data.columns import Table

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class RulesTerm:
    """Values on the leaves of a tree.

    Node t sends a row left when ``ranks[c][slot] <= threshold[t]``, with c = ``column[t]`` and the
    slot of the row on ``axes[c]``; ``column[t] = -1`` marks a leaf, which gives ``values[t]``.
    Children come after their parent.

    >>> from laconic.data.axes import IntervalAxis
    >>> term = RulesTerm(
    ...     ("age",), (IntervalAxis(np.array([30.0])),), (np.array([1, 2, 0]),),
    ...     np.array([0, -1, -1]), np.array([1, 0, 0]), np.array([1, 0, 0]), np.array([2, 0, 0]),
    ...     np.array([[0.0], [-1.0], [1.0]]),
    ... )
    >>> table = Table(("age",), ("numeric",), (None,), matrix=np.array([[20.0], [40.0], [np.nan]]))
    >>> term.contribution(table).ravel().tolist()
    [-1.0, 1.0, -1.0]
    """

    columns: tuple[str, ...]
    axes: tuple[Axis, ...]
    ranks: tuple[Ints, ...]
    column: Ints
    threshold: Ints
    left: Ints
    right: Ints
    values: Array

    def __post_init__(self) -> None:
        for name in ("column", "threshold", "left", "right"):
            object.__setattr__(self, name, np.array(getattr(self, name), dtype=np.int64))
        object.__setattr__(self, "ranks", tuple(np.array(r, dtype=np.int64) for r in self.ranks))
        object.__setattr__(self, "values", np.array(self.values, dtype=np.float64))
        self._check()

    def _check(self) -> None:
        n_nodes = len(self.column)
        if self.values.ndim != 2 or not np.isfinite(self.values).all():
            raise ValueError("values of a tree must be finite numbers, (nodes, scores).")
        if not n_nodes == len(self.threshold) == len(self.left) == len(self.right):
            raise ValueError("A tree has one threshold, left and right for each node.")
        if not n_nodes == len(self.values) or not n_nodes:
            raise ValueError("A tree has values for each node.")
        if not len(self.columns) == len(self.axes) == len(self.ranks):
            raise ValueError("A tree has one axis and one list of ranks for each column.")
        if any(rank.shape != (a.size,) for rank, a in zip(self.ranks, self.axes, strict=True)):
            raise ValueError("A tree's ranks must match the slots of its axes.")
        inner = np.flatnonzero(self.column >= 0)
        children = np.concatenate([self.left[inner], self.right[inner]])
        later = (self.left[inner] > inner).all() and (self.right[inner] > inner).all()
        if self.column.max() >= len(self.columns) or not later or (children >= n_nodes).any():
            raise ValueError("The nodes of a tree must lead to later nodes and known columns.")

    @property
    def kind(self) -> str:
        return "rules"

    @property
    def n_scores(self) -> int:
        return int(self.values.shape[-1])

    @property
    def n_leaves(self) -> int:
        return int((self.column < 0).sum())

    def contribution(self, table: Table) -> Array:
        """(rows, scores)."""
        codes = [
            rank[encode_column(axis, table, table.place(name))[0]]
            for name, axis, rank in zip(self.columns, self.axes, self.ranks, strict=True)
        ]
        node = np.zeros(table.n_rows, dtype=np.int64)
        while True:
            column = self.column[node]
            if not (column >= 0).any():
                return np.asarray(self.values[node])
            for c, code in enumerate(codes):
                here = np.flatnonzero(column == c)
                t = node[here]
                goes_left = code[here] <= self.threshold[t]
                node[here] = np.where(goes_left, self.left[t], self.right[t])

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "rules",
            "columns": list(self.columns),
            "axes": [axis.to_dict() for axis in self.axes],
            "ranks": [rank.tolist() for rank in self.ranks],
            "column": self.column.tolist(),
            "threshold": self.threshold.tolist(),
            "left": self.left.tolist(),
            "right": self.right.tolist(),
            "values": self.values.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RulesTerm:
        return cls(
            tuple(data["columns"]),
            tuple(axis_from_dict(axis) for axis in data["axes"]),
            tuple(np.array(rank, dtype=np.int64) for rank in data["ranks"]),
            *(np.array(data[name]) for name in ("column", "threshold", "left", "right")),
            np.array(data["values"], dtype=np.float64),
        )
