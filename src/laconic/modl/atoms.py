"""Atoms: the fine parts of every column that grids and trees are built from.

At most 128 for each column: equal-frequency intervals (with missing apart), or the most frequent
categories alone and the others together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.data.row_keys import code_keys, shuffled
from laconic.data.source import ArraySource
from laconic.data.tables.columns import Kind, Table
from laconic.data.value_tables import category_table, cross_table, numeric_table
from laconic.modl.fit import Setting, class_counts
from laconic.modl.partition import Groups, Intervals, Side, readable_between
from laconic.modl.tuning import ATOMS


@dataclass(frozen=True)
class Ladder(Intervals):
    """Fine intervals that end at their largest value; ``above`` are the values that follow.

    A tree or a grid uses few of their cuts, and only those are made readable.
    """

    above: Floats = field(default_factory=lambda: np.empty(0))

    def readable(self, cuts: Ints) -> Floats:
        """Readable bounds in place of some of its own: the training rows fall as before."""
        ends = zip(self.bounds[cuts], self.above[cuts], strict=True)
        return np.array([readable_between(float(a), float(b)) for a, b in ends], dtype=np.float64)


@dataclass(frozen=True)
class Atoms:
    """Fine parts of every column, and the code of every training row.

    Columns stand in an order of what they say of the classes, so that no draw over columns knows
    the order of the table; ``columns[c]`` is the place of atom column c there.
    """

    columns: tuple[int, ...]
    ladders: tuple[Ladder | Groups, ...]
    codes: NDArray[np.uint8]
    y: Ints
    weight: Floats

    @property
    def source(self) -> ArraySource:
        """The rows as codes, in blocks."""
        width = len(self.columns)
        names = tuple(map(str, range(width)))
        coded = [self.codes[:, c] for c in range(width)]
        kinds: list[Kind] = ["categorical"] * width
        table = Table(names, tuple(kinds), ((),) * width, coded)
        return ArraySource(table, self.y, self.weight)

    def cross(self, a: int, b: int, n_classes: int) -> Floats:
        sizes = [self.ladders[a].n_parts, self.ladders[b].n_parts]
        flat = cross_table(self.source, [a, b], [size + 1 for size in sizes], n_classes)
        grid = flat.reshape(sizes[0] + 1, sizes[1] + 1, n_classes)
        return np.ascontiguousarray(grid[:-1, :-1])

    def drawn(self, most: int, rng: np.random.RandomState) -> Ints:
        """At most so many rows, in a random order that does not depend on where rows stand."""
        keys = code_keys(self.codes, self.y)
        if len(keys) <= most:
            # nothing is drawn: what follows must not depend on how many rows there are, since a
            # row of weight two is two equal rows
            return np.lexsort((self.weight, keys))
        return shuffled(keys, self.weight, rng)[:most]


def read_atoms(setting: Setting) -> Atoms:
    """One more pass over the columns: fine parts and codes."""
    table, source = setting.table, setting.source
    assert isinstance(source, ArraySource)
    assert source.y is not None
    assert source.weight is not None
    found: list[tuple[tuple[int, bytes, str], int, Ladder | Groups, NDArray[Any]]] = []
    for j, name in enumerate(table.names):
        categorical = table.kinds[j] == "categorical"
        ladder: Ladder | Groups = (
            _category_atoms(setting, j) if categorical else _numeric_atoms(setting, j)
        )
        codes = ladder.codes([table.column(j)]).astype(np.uint8)
        size = ladder.n_parts
        counts = class_counts(codes, source.y, source.weight, size, setting.n_classes)
        found.append(((size, counts.tobytes(), name), j, ladder, codes))
    found.sort(key=lambda item: item[0])
    _, columns, ladders, coded = zip(*found, strict=True)
    codes = np.asfortranarray(np.column_stack(coded))
    return Atoms(columns, ladders, codes, source.y, source.weight)


def _numeric_atoms(setting: Setting, column: int) -> Ladder:
    from laconic.modl._numba import level_cuts

    table = numeric_table(setting.source, column, setting.n_classes)
    own = table.weights.sum(axis=1)
    cumulated = np.concatenate([[0.0], np.cumsum(own)])
    if len(own) <= ATOMS:
        cuts = np.arange(1, len(own))
    else:
        cuts = level_cuts(cumulated, float(cumulated[-1]), float(ATOMS))
    values = table.values
    missing = table.has_missing
    return Ladder(values[cuts - 1], missing, (), missing, above=values[cuts])


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


def merge_side(side: Ladder | Groups, owner: NDArray[np.int64], n_parts: int) -> Side:
    """The atoms of a side merged into its parts."""
    if isinstance(side, Groups):
        part_of = owner[side.part_of].astype(np.int32)
        return Groups(
            side.categories, part_of, n_parts, int(owner[side.default]), side.missing_seen
        )
    cuts = np.flatnonzero(np.diff(owner))
    alone = side.missing_alone and len(cuts) > 0 and cuts[0] == 0
    bounds = side.readable(cuts[cuts >= side.first] - side.first)
    return Intervals(bounds, bool(alone), (), side.missing_seen)
