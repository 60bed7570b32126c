"""Rows of the additive model from a scan, or too many to hold: encoded as those in memory are.

The choices of a fit pass over their rows hundreds of times, so that those are held in this process,
encoded: a byte for each cell and four more where the cell lies between two knots. A scan is read
twice: its axes come from the value tables of one pass, and everything after the encoding is the
same. Of more than ``tuning.SELECTION_ROWS`` rows a sample is held; all of them stay, encoded, with
whoever owns their block, in memory as in a scan.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from laconic.data.row_draws import CopyDraw, PossibleRows, copy_keys
from laconic.data.row_keys import LeastRows, mixed, row_keys
from laconic.data.source import Block, Recoded, Recoding, Source
from laconic.data.tables.axes import (
    Axis,
    EncodedRows,
    KnotRule,
    category_axis,
    encode,
    knot_axis,
)
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
        own = row_keys(block.X, seed, column_keys), block.y, block.weight
        return part, *own, dict(block.beside)

    start, beside = 0, []
    for part, own_keys, own_y, own_weight, own_beside in rows.source.map(of_block):
        beside.append(own_beside)
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
    found = in_order(names, columns, keys, y, weight, encoded)
    joined = {name: np.concatenate([own[name] for own in beside]) for name in beside[0]}
    return replace(found, beside={name: own[found.rows] for name, own in joined.items()})


def read_sample(
    rows: Training | ScannedTraining, n_classes: int, rule: KnotRule, seed: int
) -> EncodedTraining:
    """A sample of many rows, drawn by what they hold; all stay in their blocks, encoded.

    Keys of the columns and axes, then the encoding: two passes over a scan, and one more, over
    encoded rows, for the sample. No order of rows or columns changes it.
    """
    source, table = rows.source, rows.table
    keys, given = _columns(rows, n_classes, rule, source)
    columns = np.argsort(keys, kind="stable")
    axes = tuple(given[j] for j in columns)
    draw = CopyDraw(tuning.SELECTION_ROWS / rows.n_rows)
    recoding = Recoding("additive", _Encoding(columns, axes))
    row_key = Recoding("keys", _RowKeys(keys, seed))
    counted = None if isinstance(rows, Training) else row_key
    classes, tally, *products = source.sum(_FirstPass(recoding, n_classes, counted, draw))
    names = tuple(table.names[j] for j in columns)
    beside: dict[str, NDArray[Any]] = {}
    if isinstance(rows, Training):
        own = row_keys(table, seed, keys)
        places = draw.places(copy_keys(own, rows.y, rows.weight))
        encoded = encode(table[places][:, columns], axes)
        found = own[places], rows.y[places], rows.weight[places], encoded
    else:
        parts = source.sum(_PossibleOfBlock(recoding, row_key, draw, tally))
        own, y, own_weight, index, fraction, *more = PossibleRows.joined(parts).drawn(draw)
        found = own, y, own_weight, _with_fractions(axes, index, fraction)
        beside = dict(zip(getattr(source, "apart", ()), more, strict=True))
        places = np.arange(len(own))
    sample = in_order(names, columns, *found)
    grams = tuple(unbanded(lines, 0) for lines in products)
    whole = AllRows(Recoded(source, recoding), grams, classes)
    return replace(
        sample,
        rows=places[sample.rows],
        n_given=rows.n_rows,
        all_rows=whole,
        keeps_rows=rows.in_memory,
        beside={name: own[sample.rows] for name, own in beside.items()},
    )


def _with_fractions(
    axes: tuple[Axis, ...], index: NDArray[np.uint8], fraction: NDArray[np.float32]
) -> EncodedRows:
    """Rows whose fractions are given for every axis: those that are not zero are stored."""
    needs = fraction.any(axis=1)
    place = np.where(needs, np.cumsum(needs) - 1, -1).astype(np.int64)
    return EncodedRows(axes, np.ascontiguousarray(index), fraction[needs], place)


@dataclass(frozen=True)
class _Encoding:
    """Rows of a block on the axes, as arrays that a block can keep; fractions in one line."""

    columns: Ints
    axes: tuple[Axis, ...]

    def __call__(self, block: Block) -> tuple[NDArray[Any], ...]:
        found = encode(block.X[:, self.columns], self.axes)
        return found.index, found.fraction.ravel(), found.fraction_row


@dataclass(frozen=True)
class _RowKeys:
    """Keys of the rows of a block, and groups and times; ``columns`` are keys too."""

    columns: Keys
    seed: int

    def __call__(self, block: Block) -> tuple[NDArray[Any], ...]:
        return row_keys(block.X, self.seed, self.columns), *block.beside.values()


def _copy_keys(own: Block, keys: Keys, beside: Sequence[NDArray[Any]]) -> Keys:
    """Rows of another group or time are no copies."""
    assert own.y is not None
    assert own.weight is not None
    for more in beside:
        keys = mixed(keys ^ mixed(more.view(np.uint64)))
    return copy_keys(keys, own.y, own.weight)


@dataclass(frozen=True)
class _FirstPass:
    """Class weights of a block, its tally for the draw, bands of the slot products of columns."""

    recoding: Recoding
    n_classes: int
    row_key: Recoding | None
    draw: CopyDraw

    def __call__(self, block: Block) -> tuple[Any, ...]:
        encoding = self.recoding.recode
        assert isinstance(encoding, _Encoding)
        own = self.recoding.block(block)
        assert own.y is not None
        assert own.weight is not None
        tally: Ints = np.zeros(0, dtype=np.int64)
        if self.row_key is not None:
            keys, *beside = self.row_key.block(block).X
            tally = self.draw.tally(_copy_keys(own, keys, beside))
        grams = slot_grams(encoded_block(own, encoding.axes), own.weight)
        classes = np.bincount(own.y, own.weight, self.n_classes)
        return classes, tally, *(bands(gram, 0) for gram in grams)


@dataclass(frozen=True)
class _PossibleOfBlock:
    """Encoded rows of a block that may be drawn: key, class, weight, slots and fractions."""

    recoding: Recoding
    row_key: Recoding
    draw: CopyDraw
    tally: Ints

    def __call__(self, block: Block) -> list[PossibleRows]:
        own = self.recoding.block(block)
        keys, *beside = self.row_key.block(block).X
        # the keys have served: what a block keeps of them is replaced by nothing
        block.memo.recall(self.row_key.name, "served", tuple)
        assert own.y is not None
        assert own.weight is not None
        copies = _copy_keys(own, keys, beside)
        rows = np.flatnonzero(self.draw.possible(copies, self.tally))
        index, line, place = own.X
        fraction = np.zeros((len(index), len(rows)), dtype=np.float32)
        there = place >= 0
        fraction[there] = line.reshape(-1, index.shape[1])[place[there]][:, rows]
        more = (part[rows] for part in beside)
        held = keys[rows], own.y[rows], own.weight[rows], index[:, rows], fraction, *more
        return [PossibleRows.of(copies[rows], held)]


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
