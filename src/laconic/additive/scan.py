"""Rows of the additive model from a scan, or too many to hold: encoded as those in memory are.

The choices of a fit pass over their rows hundreds of times, so that those are held in this process,
encoded: a byte for each cell and four more where the cell lies between two knots. A scan is read
twice: its axes come from the value tables of one pass, and everything after the encoding is the
same. Of more than ``tuning.SELECTION_ROWS`` rows a sample is held; all of them stay, encoded, with
whoever owns their block, in memory as in a scan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Ints, Keys
from laconic.additive import tuning
from laconic.additive.fit import AllRows, EncodedTraining, in_order
from laconic.additive.large.passes import bands, encoded_block, unbanded
from laconic.additive.terms import slot_grams
from laconic.core.contract import ScannedTraining, Training
from laconic.data.row_keys import LeastRows, number_draws, row_keys
from laconic.data.source import Block, Recoded, Recoding, Source
from laconic.data.tables.axes import (
    Axis,
    EncodedRows,
    KnotRule,
    category_axis,
    encode,
    knot_axis,
)
from laconic.data.tables.columns import Table
from laconic.data.value_tables import NumericTable, block_tables, column_tables, finished, labels

MOST_VALUES = 2**15
"""Distinct numbers of a column of a scan that are kept apart before knots are chosen."""


def read_encoded(
    rows: ScannedTraining, n_classes: int, rule: KnotRule, seed: int
) -> EncodedTraining:
    """Two passes over a scan: keys of the columns and axes, then the rows on them."""
    column_keys, given = _columns(rows, n_classes, rule, rows.source)
    columns = np.argsort(column_keys, kind="stable")
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
    return in_order(names, columns, keys, y, weight, encoded)


def read_sample(
    rows: Training | ScannedTraining, n_classes: int, rule: KnotRule, seed: int
) -> EncodedTraining:
    """A sample of many rows, drawn by their number; the others stay in their blocks, encoded.

    Keys of the columns and axes, then the encoding: two passes over a scan.
    """
    source, table = rows.source, rows.table
    keys, given = _columns(rows, n_classes, rule, source)
    columns = np.argsort(keys, kind="stable")
    axes = tuple(given[j] for j in columns)
    recoding = Recoding("additive", _Encoding(columns, axes))
    first = _FirstPass(recoding, n_classes, seed, _draw_rate(rows.n_rows))
    classes, drawn, *products = source.sum(first)
    numbers, draws, y, own_weight = (np.concatenate([d[k] for d in drawn]) for k in range(4))
    cells = [np.concatenate([d[4][j] for d in drawn]) for j in range(len(table.names))]
    # exactly as many as are wanted, those with the least draws
    least = np.sort(np.argsort(draws, kind="stable")[: tuning.SELECTION_ROWS])
    some = Table(table.names, table.kinds, table.categories, cells)[least]
    encoded = encode(some[:, columns], axes)
    names = tuple(table.names[j] for j in columns)
    own = row_keys(some, seed, keys), y[least], own_weight[least]
    sample = in_order(names, columns, *own, encoded)
    grams = tuple(unbanded(lines, 0) for lines in products)
    whole = AllRows(Recoded(source, recoding), grams, classes)
    places = numbers[least][sample.rows]
    return replace(
        sample, rows=places, n_given=rows.n_rows, all_rows=whole, keeps_rows=rows.in_memory
    )


def _draw_rate(n_rows: int) -> float:
    """Share of the rows that almost surely holds as many as are wanted."""
    wanted = tuning.SELECTION_ROWS
    return float(wanted + 6.0 * np.sqrt(wanted)) / n_rows


@dataclass(frozen=True)
class _Encoding:
    """Rows of a block on the axes, as arrays that a block can keep; fractions in one line."""

    columns: Ints
    axes: tuple[Axis, ...]

    def __call__(self, block: Block) -> tuple[NDArray[Any], ...]:
        found = encode(block.X[:, self.columns], self.axes)
        return found.index, found.fraction.ravel(), found.fraction_row


@dataclass(frozen=True)
class _FirstPass:
    """Class weights of a block, its drawn rows, the bands of the slot products of every column."""

    recoding: Recoding
    n_classes: int
    seed: int
    rate: float

    def __call__(self, block: Block) -> tuple[Any, ...]:
        encoding = self.recoding.recode
        assert isinstance(encoding, _Encoding)
        own = self.recoding.block(block)
        assert own.y is not None
        assert own.weight is not None
        draws = number_draws(block.start, block.stop, self.seed)
        rows = np.flatnonzero(draws < self.rate)
        table = block.X[rows]
        cells = [table.column(j) for j in range(len(table.names))]
        part = block.start + rows, draws[rows], own.y[rows], own.weight[rows], cells
        grams = slot_grams(encoded_block(own, encoding.axes), own.weight)
        classes = np.bincount(own.y, own.weight, self.n_classes)
        return classes, [part], *(bands(gram, 0) for gram in grams)


def _columns(
    rows: Training | ScannedTraining, n_classes: int, rule: KnotRule, source: Source
) -> tuple[Keys, tuple[Axis, ...]]:
    """A key of every column and its axis, in one pass."""
    table = rows.table
    sizes = [
        len(texts or ()) if kind == "categorical" else None
        for kind, texts in zip(table.kinds, table.categories, strict=True)
    ]

    def of_block(block: Block) -> tuple[Any, ...]:
        tables = block_tables(block.X, *labels(block), sizes, n_classes, MOST_VALUES)
        return LeastRows.of(block), *tables

    if isinstance(rows, Training):
        keys, found = rows.column_keys, column_tables(source, sizes, n_classes, MOST_VALUES)
    else:
        least, *parts = source.sum(of_block)
        keys, found = least.keys(), finished(parts)
    axes: list[Axis] = []
    for name, values, texts in zip(table.names, found, table.categories, strict=True):
        if isinstance(values, NumericTable):
            weight, whole = values.weights.sum(axis=1), name in rule.whole
            axes.append(knot_axis(values.values, weight, rule, whole=whole))
        else:
            codes = np.arange(len(values) - 1, dtype=np.int32)
            axes.append(category_axis(codes, texts or (), values[:-1].sum(axis=1), rule))
    return keys, tuple(axes)
