"""Value by class weights of one column: the only thing a partition needs to know of the rows.

Tables of blocks add up: sorted distinct numbers are merged, categories are summed code by code,
so that a table comes from one pass of ``Source.sum`` and is the same whatever made the blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats
from laconic.data.source import Block, Source
from laconic.data.tables.columns import MISSING

_HEAVY = 0.25


@dataclass(frozen=True)
class NumericTable:
    """Distinct numbers in increasing order, with the weight of each class; missing apart."""

    values: Floats
    weights: Floats
    missing: Floats
    pooled: bool = False
    """Whether some values stand for a few neighbours below them."""

    @property
    def n_classes(self) -> int:
        return int(self.weights.shape[1])

    @property
    def total(self) -> float:
        return float(self.weights.sum() + self.missing.sum())

    @property
    def has_missing(self) -> bool:
        return bool(self.missing.any())

    def __add__(self, other: NumericTable) -> NumericTable:
        from laconic.data._numba import merge_tables

        values, weights = merge_tables(self.values, self.weights, other.values, other.weights)
        pooled = self.pooled or other.pooled
        return NumericTable(values, weights, self.missing + other.missing, pooled)

    def with_missing_first(self) -> Floats:
        """Class weights of the ordered values, missing as a value below every number."""
        if not self.has_missing:
            return self.weights
        return np.concatenate([self.missing[None], self.weights])

    def take(self, keep: NDArray[np.bool_]) -> NumericTable:
        return NumericTable(self.values[keep], self.weights[keep], self.missing, self.pooled)


class _Pile:
    """Sums tables of similar sizes first, so that adding n blocks costs log n merges per value.

    With ``most``, a sum of more than twice as many values is pooled to about ``most``. What is
    added later may fall inside a pool, so that a weight up to a pooled value is off by the pools
    of the tables it was summed from: one part in ``most`` for each of the log n merges.
    """

    def __init__(self, tables: list[tuple[int, NumericTable]], most: int | None) -> None:
        self._tables = tables
        self._most = most

    def __add__(self, other: _Pile) -> _Pile:
        tables = [*self._tables, *other._tables]
        while len(tables) > 1 and tables[-2][0] <= 2 * tables[-1][0]:
            size, last = tables.pop()
            tables[-1] = (tables[-1][0] + size, self._bounded(tables[-1][1] + last))
        return _Pile(tables, self._most)

    def table(self) -> NumericTable:
        total = self._tables[-1][1]
        for _, table in reversed(self._tables[:-1]):
            total = self._bounded(table + total)
        return total

    def _bounded(self, table: NumericTable) -> NumericTable:
        if self._most is None or len(table.values) <= 2 * self._most:
            return table
        return condensed(table, self._most)


def condensed(table: NumericTable, most: int) -> NumericTable:
    """About ``most`` values: light neighbours are pooled at the largest of them.

    A value that is heavy, as an old pool is, ends its pool: light values that come later fall in
    the pool that they belong to, and pools do not wander as chunks are added.

    >>> table = NumericTable(np.arange(6.0), np.ones((6, 1)), np.zeros(1))
    >>> condensed(table, 3).values
    array([1., 3., 5.])
    """
    from laconic.data._numba import pool_ends

    if len(table.values) <= most:
        return table
    weight = table.weights.sum(axis=1)
    full = float(weight.sum()) / most
    heavy = full * _HEAVY
    last = pool_ends(weight, heavy if (weight >= heavy).mean() < 0.5 else np.inf, full)
    sums = np.cumsum(table.weights, axis=0)[last]
    weights = np.diff(sums, axis=0, prepend=np.zeros((1, sums.shape[1])))
    return NumericTable(table.values[last], weights, table.missing, pooled=True)


def value_pile(x: Floats, most: int) -> _Pile:
    """Rows by value; piles add up, and ``table()`` of a sum is the table of all."""
    y = np.zeros(len(x), dtype=np.int64)
    return _Pile([_block_table(x, y, np.ones(len(x)), 1)], most)


def numeric_table(source: Source, column: int, n_classes: int) -> NumericTable:
    """One pass over a numeric column (NaN = missing): every distinct value."""

    def of_block(block: Block) -> _Pile:
        return _Pile([_block_table(_only_column(block), *labels(block), n_classes)], None)

    pile: _Pile = source.sum(of_block, [column])
    return pile.table()


def column_tables(
    source: Source, sizes: Sequence[int | None], n_classes: int, most: int
) -> list[NumericTable | Floats]:
    """The tables of all columns in one pass; ``sizes`` has None for a numeric column.

    Categorical columns are as in :func:`category_table`. Numeric ones keep every distinct value
    while there are at most ``2 * most``, and about ``most`` pools of them beyond.
    """

    def of_block(block: Block) -> tuple[Any, ...]:
        return block_tables(block.X, *labels(block), sizes, n_classes, most)

    return finished(source.sum(of_block))


def block_tables(
    X: Any,
    y: NDArray[Any],
    weight: Floats,
    sizes: Sequence[int | None],
    n_classes: int,
    most: int,
) -> tuple[Any, ...]:
    """What some rows add to the tables of :func:`column_tables`; sums of it are ``finished``."""
    parts: list[Any] = []
    for j, size in enumerate(sizes):
        x = X.column(j)
        if size is None:
            parts.append(_Pile([_block_table(x, y, weight, n_classes)], most))
        else:
            parts.append(_code_table([x], [size + 1], y, weight, n_classes))
    return tuple(parts)


def finished(sums: Sequence[Any]) -> list[NumericTable | Floats]:
    """The tables of summed :func:`block_tables`."""
    return [part.table() if isinstance(part, _Pile) else part for part in sums]


def _block_table(
    x: Floats, y: NDArray[Any], weight: Floats, n_classes: int
) -> tuple[int, NumericTable]:
    """Number of rows and table of one block."""
    from laconic.data._numba import distinct_table

    n_rows = len(x)
    gone = np.isnan(x)
    missing: Floats = np.zeros(n_classes)
    if gone.any():
        missing += np.bincount(y[gone], weights=weight[gone], minlength=n_classes)
        x, y, weight = x[~gone], y[~gone], weight[~gone]
    order = np.argsort(x)
    values, weights = distinct_table(x[order], y[order], weight[order], n_classes)
    return n_rows, NumericTable(values, weights, missing)


def category_table(source: Source, column: int, n_categories: int, n_classes: int) -> Floats:
    """One pass over a categorical column: row k is category k, the last row is missing."""
    return cross_table(source, [column], [n_categories + 1], n_classes)


def cross_table(
    source: Source, columns: Sequence[int], sizes: Sequence[int], n_classes: int
) -> Floats:
    """Weights by code of each column (MISSING counts as the last code) and class."""

    def of_block(block: Block) -> Floats:
        codes = [block.X.column(j) for j in range(len(sizes))]
        return _code_table(codes, sizes, *labels(block), n_classes)

    table: Floats = source.sum(of_block, list(columns))
    return table


def _code_table(
    columns: Sequence[NDArray[Any]],
    sizes: Sequence[int],
    y: NDArray[Any],
    weight: Floats,
    n_classes: int,
) -> Floats:
    n_cells = int(np.prod(sizes))
    cell = np.zeros(len(y), dtype=np.int64)
    for codes, size in zip(columns, sizes, strict=True):
        cell = cell * size + np.where(codes == MISSING, size - 1, codes)
    flat = np.zeros(n_cells * n_classes)
    flat += np.bincount(cell * n_classes + y, weights=weight, minlength=len(flat))
    return flat.reshape(n_cells, n_classes)


def _only_column(block: Block) -> Floats:
    values = block.X.column(0) if hasattr(block.X, "column") else block.X[:, 0]
    return np.ascontiguousarray(values, dtype=np.float64)


def labels(block: Block) -> tuple[NDArray[Any], Floats]:
    """Class codes and weights of a block."""
    if block.y is None:
        raise ValueError("A value by class table needs class codes: the source has no y.")
    weight = np.ones(len(block)) if block.weight is None else block.weight
    return block.y, weight
