"""Rows of a scan for the additive model: read twice, kept as bytes.

The fit passes over its rows hundreds of times, so that they are held in this process, encoded: a
byte for each cell and four more where the cell lies between two knots. The axes come from the
value tables of one pass, and everything after the encoding is the fit in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats
from laconic.core.contract import ScannedTraining
from laconic.data.row_keys import row_keys
from laconic.data.source import Block
from laconic.data.tables.axes import Axis
from laconic.data.tables.columns import Table
from laconic.data.tables.knots import EncodedRows, KnotRule, category_axis, encode, knot_axis
from laconic.data.value_tables import NumericTable, column_tables

MOST_VALUES = 2**15


@dataclass(frozen=True)
class EncodedTraining:
    """What the additive fit needs of its rows; ``table`` has their columns and no rows."""

    table: Table
    y: NDArray[np.int64]
    weight: Floats
    keys: NDArray[np.uint64]
    encoded: EncodedRows

    @property
    def n_rows(self) -> int:
        return len(self.y)


def read_encoded(
    rows: ScannedTraining, n_classes: int, rule: KnotRule, seed: int
) -> EncodedTraining:
    """Two passes: the axes, then the rows on them."""
    axes = _axes(rows, n_classes, rule)
    n = rows.n_rows
    index = np.empty((len(axes), n), dtype=np.uint8)
    fractions: dict[int, NDArray[np.float32]] = {}
    y, weight = np.empty(n, dtype=np.int64), np.empty(n)
    keys = np.empty(n, dtype=np.uint64)

    def of_block(block: Block) -> tuple[Any, ...]:
        return encode(block.X, axes), row_keys(block.X, seed), block.y, block.weight

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
    encoded = EncodedRows(axes, index, stacked, place)
    return EncodedTraining(rows.table, y, weight, keys, encoded)


def _axes(rows: ScannedTraining, n_classes: int, rule: KnotRule) -> tuple[Axis, ...]:
    table = rows.table
    sizes = [
        len(texts or ()) if kind == "categorical" else None
        for kind, texts in zip(table.kinds, table.categories, strict=True)
    ]
    axes: list[Axis] = []
    found = column_tables(rows.source, sizes, n_classes, MOST_VALUES)
    for values, texts in zip(found, table.categories, strict=True):
        if isinstance(values, NumericTable):
            axes.append(knot_axis(values.values, values.weights.sum(axis=1), rule))
        else:
            codes = np.arange(len(values) - 1, dtype=np.int32)
            axes.append(category_axis(codes, texts or (), values[:-1].sum(axis=1), rule))
    return tuple(axes)
