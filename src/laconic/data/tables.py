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

from laconic.data.columns import MISSING
from laconic.data.source import Block, Source

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class NumericTable:
    """Distinct numbers in increasing order, with the weight of each class; missing apart."""

    values: Floats
    weights: Floats
    missing: Floats

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
        from laconic.data.hot_tables import merge_tables

        values, weights = merge_tables(self.values, self.weights, other.values, other.weights)
        return NumericTable(values, weights, self.missing + other.missing)

    def with_missing_first(self) -> Floats:
        """Class weights of the ordered values, missing as a value below every number."""
        if not self.has_missing:
            return self.weights
        return np.concatenate([self.missing[None], self.weights])

    def take(self, keep: NDArray[np.bool_]) -> NumericTable:
        return NumericTable(self.values[keep], self.weights[keep], self.missing)


class _Pile:
    """Sums tables of similar sizes first, so that adding n blocks costs log n merges per value."""

    def __init__(self, tables: list[NumericTable]) -> None:
        self._tables = tables

    def __add__(self, other: _Pile) -> _Pile:
        tables = [*self._tables, *other._tables]
        while len(tables) > 1 and len(tables[-2].values) <= 2 * len(tables[-1].values):
            last = tables.pop()
            tables[-1] = tables[-1] + last
        return _Pile(tables)

    def table(self) -> NumericTable:
        total = self._tables[-1]
        for table in reversed(self._tables[:-1]):
            total = table + total
        return total


def numeric_table(source: Source, column: int, n_classes: int) -> NumericTable:
    """One pass over a numeric column (NaN = missing)."""

    def of_block(block: Block) -> _Pile:
        from laconic.data.hot_tables import distinct_table

        x = _only_column(block)
        y, weight = _labels(block)
        gone = np.isnan(x)
        missing: Floats = np.zeros(n_classes)
        if gone.any():
            missing += np.bincount(y[gone], weights=weight[gone], minlength=n_classes)
            x, y, weight = x[~gone], y[~gone], weight[~gone]
        order = np.argsort(x)
        values, weights = distinct_table(x[order], y[order], weight[order], n_classes)
        return _Pile([NumericTable(values, weights, missing)])

    pile: _Pile = source.sum(of_block, [column])
    return pile.table()


def category_table(source: Source, column: int, n_categories: int, n_classes: int) -> Floats:
    """One pass over a categorical column: row k is category k, the last row is missing."""
    return cross_table(source, [column], [n_categories + 1], n_classes)


def cross_table(
    source: Source, columns: Sequence[int], sizes: Sequence[int], n_classes: int
) -> Floats:
    """Weights by code of each column (MISSING counts as the last code) and class."""
    n_cells = int(np.prod(sizes))

    def of_block(block: Block) -> Floats:
        y, weight = _labels(block)
        cell = np.zeros(len(block), dtype=np.int64)
        for j, size in enumerate(sizes):
            codes = block.X.column(j)
            cell = cell * size + np.where(codes == MISSING, size - 1, codes)
        flat = np.zeros(n_cells * n_classes)
        flat += np.bincount(cell * n_classes + y, weights=weight, minlength=len(flat))
        return flat.reshape(n_cells, n_classes)

    table: Floats = source.sum(of_block, list(columns))
    return table


def _only_column(block: Block) -> Floats:
    values = block.X.column(0) if hasattr(block.X, "column") else block.X[:, 0]
    return np.ascontiguousarray(values, dtype=np.float64)


def _labels(block: Block) -> tuple[NDArray[Any], Floats]:
    if block.y is None:
        raise ValueError("A value by class table needs class codes: the source has no y.")
    weight = np.ones(len(block)) if block.weight is None else block.weight
    return block.y, weight
