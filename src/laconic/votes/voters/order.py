"""Columns and rows in an order of their content, so that no tie knows how they were given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from laconic._typing import Ints, Keys
from laconic.core.contract import Training
from laconic.data.tables.columns import Table
from laconic.votes.tuning import SORTED_ROWS


def column_order(keys: Keys, names: Sequence[str]) -> Ints:
    """Places of the columns, sorted by a key of their content, then by name."""
    ranked = sorted(range(len(names)), key=lambda j: (int(keys[j]), names[j]))
    return np.array(ranked, dtype=np.int64)


def row_order(rows: Training, keys: Keys) -> Ints:
    """Rows by keys of their values, class and weight: no rounding knows how they were given.

    It is a copy of the rows; beyond :data:`SORTED_ROWS` they stay where they are, and only votes
    whose optimum is not unique can tell.
    """
    if rows.n_rows > SORTED_ROWS:
        return np.arange(rows.n_rows)
    return np.asarray(np.lexsort((rows.weight, rows.y, keys)))


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
