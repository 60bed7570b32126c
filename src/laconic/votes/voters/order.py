"""An order of the columns that their content decides, so that no tie knows how they were given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints, Keys
from laconic.core.contract import Training
from laconic.data.row_keys import place_keys, row_keys
from laconic.data.source import Block, Source
from laconic.data.tables.columns import Table
from laconic.votes.tuning import SORTED_ROWS

_ROUNDS = 3
"""More than enough: columns that three rounds cannot tell apart differ by a symmetry of the table,
or not at all."""


class Ends:
    """Least and largest of some values; the sum of two spans both.

    >>> (Ends.of(np.array([2.0, np.nan, 1.0])) + Ends.of(np.array([5.0]))).values.tolist()
    [1.0, 5.0]
    """

    def __init__(self, values: Floats) -> None:
        self.values = values

    @staticmethod
    def of(values: NDArray[Any]) -> Ends:
        held = values[~np.isnan(values)]
        return Ends(np.array([held.min(), held.max()]) if len(held) else np.zeros(0))

    def __add__(self, other: Ends) -> Ends:
        return Ends.of(np.concatenate([self.values, other.values]))


def content_sums(block: Block, known: Keys | None = None) -> tuple[Any, ...]:
    """Sums over rows of hash(cell)·hash(row) for each column, as :func:`column_order` adds them up.

    The hash of a row is a sum over its cells, so that it does not know their order either;
    ``known`` keys of the columns tell apart rows that hold the same cells elsewhere.
    """
    table, weight = block.X, block.weight
    assert weight is not None
    cells = np.stack(
        [row_keys(table[:, [j]], columns=place_keys(1)) for j in range(len(table.names))]
    )
    lead = cells if known is None else cells * (known | np.uint64(1))[:, None]
    mixed = cells * (lead.sum(axis=0, dtype=np.uint64) | np.uint64(1))
    counts = weight > 0.0
    whole = (weight == np.rint(weight)) & (weight < 2.0**53)
    copies = np.where(whole, weight, 0.0).astype(np.uint64)
    return (
        (mixed * counts.astype(np.uint64)).sum(axis=1, dtype=np.uint64),
        (mixed * copies).sum(axis=1, dtype=np.uint64),
        np.array([int((~whole).sum())]),
        Ends.of(weight[counts]),
    )


def column_order(source: Source, names: Sequence[str], sums: tuple[Any, ...] | None = None) -> Ints:
    """Places of the columns, sorted by a key of their content, then by name.

    The key depends neither on the order of columns or rows, nor on whether a row comes twice or
    weighs two, nor on a common factor of the weights. ``sums`` are those of a pass that was made
    already.

    >>> from laconic.data.source import ArraySource
    >>> from laconic.data.tables.columns import Schema
    >>> X = np.array([[1.0, 7.0, 2.0], [3.0, 7.0, 4.0]])
    >>> def order(columns):
    ...     table = Schema.learn(X[:, columns]).table
    ...     return column_order(ArraySource(table, weight=np.ones(2)), table.names)
    >>> bool((X[:, order([0, 1, 2])] == X[:, [2, 0, 1]][:, order([2, 0, 1])]).all())
    True
    """
    keys: Keys | None = None
    for _ in range(_ROUNDS):
        if sums is None:
            sums = source.sum(lambda block, known=keys: content_sums(block, known))  # type: ignore[misc]
        plain, copies, n_broken, ends = sums
        even = len(ends.values) == 0 or ends.values[0] == ends.values[-1]
        found: Keys = plain if even or n_broken[0] else copies
        if keys is not None and len(np.unique(found)) <= len(np.unique(keys)):
            break
        keys, sums = found, None
        if len(np.unique(keys)) == len(names):
            break
    assert keys is not None
    ranked = sorted(range(len(names)), key=lambda j: (int(keys[j]), names[j]))
    return np.array(ranked, dtype=np.int64)


def row_order(rows: Training) -> Ints:
    """Rows by their values, class and weight, so that no rounding knows how they were given.

    It is a copy of the rows; beyond :data:`SORTED_ROWS` they stay where they are, and only votes
    whose optimum is not unique can tell.
    """
    if rows.n_rows > SORTED_ROWS:
        return np.arange(rows.n_rows)
    return np.asarray(
        np.lexsort((rows.weight, rows.y, row_keys(rows.table, columns=rows.column_keys)))
    )


def take_training(rows: Training, turn: Ints) -> Training:
    """The rows in another order."""
    return Training(rows.table[turn], rows.y[turn], rows.weight[turn], rows.kept[turn])


def in_order(table: Table, places: Iterable[int]) -> Table:
    """The columns of a table in another order, as views."""
    places = list(places)
    return Table(
        tuple(table.names[j] for j in places),
        tuple(table.kinds[j] for j in places),
        tuple(table.categories[j] for j in places),
        [table.column(j) for j in places],
    )
