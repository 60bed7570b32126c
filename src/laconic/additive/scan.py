"""Rows of the additive model, in memory or from a scan: encoded, in an order of their own.

The fit passes over its rows hundreds of times, so that they are held in this process, encoded: a
byte for each cell and four more where the cell lies between two knots. A scan is read twice: its
axes come from the value tables of one pass, and everything after the encoding is the same.

Columns are ordered by their keys and rows by theirs. Sums of floating numbers depend on their
order; sorted, the same table gives the same model whatever order its rows and columns came in.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints, Keys
from laconic.core.contract import ScannedTraining, Training
from laconic.data.row_keys import least_of, row_keys, scanned_content_keys
from laconic.data.source import Block
from laconic.data.tables.axes import (
    Axis,
    EncodedRows,
    KnotRule,
    category_axis,
    encode,
    knot_axis,
    learn_axes,
)
from laconic.data.value_tables import NumericTable, column_tables

MOST_VALUES = 2**15
"""Distinct numbers of a column of a scan that are kept apart before knots are chosen."""


@dataclass(frozen=True)
class EncodedTraining:
    """What the additive fit needs of its rows.

    ``columns`` and ``rows`` are the places that the columns and rows had when they came; ``names``
    and everything else is in the order of the fit.
    """

    names: tuple[str, ...]
    columns: Ints
    rows: Ints
    keys: Keys
    y: Ints
    weight: Floats
    encoded: EncodedRows

    @cached_property
    def place(self) -> Ints:
        """Where each row that came is now."""
        out = np.empty_like(self.rows)
        out[self.rows] = np.arange(len(out))
        return out


def encode_training(rows: Training, rule: KnotRule, seed: int) -> EncodedTraining:
    """Rows in memory."""
    columns = np.argsort(rows.column_keys, kind="stable")
    table = rows.table[:, columns]
    encoded = encode(table, learn_axes(table, rows.weight, rule))
    keys = row_keys(rows.table, seed, rows.column_keys)
    return _in_order(table.names, columns, keys, rows.y, rows.weight, encoded)


def _in_order(
    names: tuple[str, ...], columns: Ints, keys: Keys, y: Ints, weight: Floats, encoded: EncodedRows
) -> EncodedTraining:
    order = np.lexsort((weight, y, keys))
    for store in (encoded.index, encoded.fraction):
        for line in store:  # one column at a time: a second copy of all would not fit
            line[:] = line[order]
    return EncodedTraining(names, columns, order, keys[order], y[order], weight[order], encoded)


def read_encoded(
    rows: ScannedTraining, n_classes: int, rule: KnotRule, seed: int
) -> EncodedTraining:
    """Three passes over a scan: keys of the columns, the axes, then the rows on them."""
    column_keys = scanned_content_keys(rows.source.map(least_of), rows.table)
    columns = np.argsort(column_keys, kind="stable")
    given = _axes(rows, n_classes, rule)
    axes = tuple(given[j] for j in columns)
    n = rows.n_rows
    index = np.empty((len(axes), n), dtype=np.uint8)
    fractions: dict[int, NDArray[np.float32]] = {}
    y, weight = np.empty(n, dtype=np.int64), np.empty(n)
    keys = np.empty(n, dtype=np.uint64)

    def of_block(block: Block) -> tuple[Any, ...]:
        part = encode(block.X[:, columns], axes)
        return part, row_keys(block.X, seed, column_keys), block.y, block.weight

    start = 0
    for part, own_keys, own_y, own_weight in rows.source.map(of_block):
        here = slice(start, start + part.n_rows)
        index[:, here] = part.index
        keys[here], y[here], weight[here] = own_keys, own_y, own_weight
        for j in np.flatnonzero(part.fraction_row >= 0).tolist():
            if j not in fractions:
                fractions[j] = np.zeros(n, dtype=np.float32)
            fractions[j][here] = part.fraction[part.fraction_row[j]]
        start = here.stop
    needs = np.array([j in fractions for j in range(len(axes))])
    place = np.where(needs, np.cumsum(needs) - 1, -1).astype(np.int64)
    stacked = np.zeros((int(needs.sum()), n), dtype=np.float32)
    for k, j in enumerate(np.flatnonzero(needs).tolist()):
        stacked[k] = fractions.pop(j)
    names = tuple(rows.table.names[j] for j in columns)
    encoded = EncodedRows(axes, index, stacked, place)
    return _in_order(names, columns, keys, y, weight, encoded)


def _axes(rows: ScannedTraining, n_classes: int, rule: KnotRule) -> tuple[Axis, ...]:
    table = rows.table
    sizes = [
        len(texts or ()) if kind == "categorical" else None
        for kind, texts in zip(table.kinds, table.categories, strict=True)
    ]
    axes: list[Axis] = []
    found = column_tables(rows.source, sizes, n_classes, MOST_VALUES)
    for name, values, texts in zip(table.names, found, table.categories, strict=True):
        if isinstance(values, NumericTable):
            weight, whole = values.weights.sum(axis=1), name in rule.whole
            axes.append(knot_axis(values.values, weight, rule, whole=whole))
        else:
            codes = np.arange(len(values) - 1, dtype=np.int32)
            axes.append(category_axis(codes, texts or (), values[:-1].sum(axis=1), rule))
    return tuple(axes)
