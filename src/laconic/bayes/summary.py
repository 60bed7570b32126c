"""A stream's past as value by class weights of every column, of bounded size, merged by +.

A numeric column keeps a few thousand values: neighbours of little weight are pooled at their
largest, so that the weight up to any kept value is exact when they are pooled. A fitted model, of
which no rows are left, gives a summary too, by :func:`summary_of_parts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.bayes.tuning import SUMMARY_VALUES
from laconic.data.source import ArraySource, Block
from laconic.data.tables.columns import Schema, Table
from laconic.data.tables.kinds import MISSING, Kind, shown
from laconic.data.value_tables import NumericTable, category_table, condensed, numeric_table
from laconic.modl.partition import Groups, Intervals, Partition


@dataclass(frozen=True)
class CategoryTable:
    """Class weights of sorted texts; the last row is missing."""

    categories: tuple[str, ...]
    weights: Floats

    def __add__(self, other: CategoryTable) -> CategoryTable:
        texts = tuple(sorted({*self.categories, *other.categories}))
        place = {text: k for k, text in enumerate(texts)}
        weights = np.zeros((len(texts) + 1, self.weights.shape[1]))
        for table in (self, other):
            weights[[place[text] for text in table.categories]] += table.weights[:-1]
            weights[-1] += table.weights[-1]
        return CategoryTable(texts, weights)


ColumnTable = NumericTable | CategoryTable


@dataclass(frozen=True)
class TableSummary:
    """Value by class weights of every column of the rows seen so far."""

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    columns: tuple[ColumnTable, ...]
    class_totals: Floats

    @staticmethod
    def of(table: Table, y: Ints, weight: Floats, n_classes: int) -> TableSummary:
        source = ArraySource(table, y, weight)
        columns: list[ColumnTable] = []
        for j, kind in enumerate(table.kinds):
            if kind == "categorical":
                texts = table.categories[j] or ()
                columns.append(
                    CategoryTable(texts, category_table(source, j, len(texts), n_classes))
                )
            else:
                columns.append(condensed(numeric_table(source, j, n_classes), SUMMARY_VALUES))
        totals: Floats = np.bincount(y, weights=weight, minlength=n_classes).astype(np.float64)
        return TableSummary(table.names, table.kinds, tuple(columns), totals)

    def __add__(self, other: TableSummary) -> TableSummary:
        kinds, columns = [], []
        for j, name in enumerate(self.names):
            kind, column = _joined(
                name, (self.kinds[j], self.columns[j]), (other.kinds[j], other.columns[j])
            )
            kinds.append(kind)
            columns.append(column)
        totals = self.class_totals + other.class_totals
        return TableSummary(self.names, tuple(kinds), tuple(columns), totals)

    @property
    def total(self) -> float:
        return float(self.class_totals.sum())

    def schema(self, *, named: bool) -> Schema:
        categories = tuple(
            column.categories if isinstance(column, CategoryTable) else None
            for column in self.columns
        )
        return Schema(self.names, self.kinds, categories, named)

    def source(self) -> SummarySource:
        return SummarySource(self)


def _joined(
    name: str, a: tuple[Kind, ColumnTable], b: tuple[Kind, ColumnTable]
) -> tuple[Kind, ColumnTable]:
    """Two tables of one column; one without any value takes the kind of the other."""
    (kind, first), (other_kind, second) = a, b
    if isinstance(first, NumericTable) and isinstance(second, NumericTable):
        return kind, condensed(first + second, SUMMARY_VALUES)
    texts, others = _as_texts(first), _as_texts(second)
    if texts is None or others is None:
        raise ValueError(
            f"Column {shown(name)} was {kind} so far and is {other_kind} now; convert it to the "
            "kind it had."
        )
    return other_kind if isinstance(first, NumericTable) else kind, texts + others


def _as_texts(table: ColumnTable) -> CategoryTable | None:
    """The table as one of texts, which that of a column without any value is too."""
    if isinstance(table, CategoryTable):
        return table
    return None if len(table.values) else CategoryTable((), table.missing[None])


@dataclass(frozen=True)
class SummarySource:
    """The summary as weighted rows, one column at a time: what a partition search reads."""

    summary: TableSummary

    @property
    def n_rows(self) -> int:
        return max(len(self._block(j)) for j in range(len(self.summary.names)))

    def _block(self, j: int) -> Block:
        column = self.summary.columns[j]
        cells: NDArray[Any]
        if isinstance(column, CategoryTable):
            weights = column.weights
            cells = np.append(np.arange(len(column.categories)), MISSING).astype(np.int32)
            categories: tuple[str, ...] | None = column.categories
        else:
            weights = np.concatenate([column.weights, column.missing[None]])
            cells, categories = np.append(column.values, np.nan), None
        value, y = np.nonzero(weights)
        rows = Table(
            (self.summary.names[j],), (self.summary.kinds[j],), (categories,), [cells[value]]
        )
        return Block(0, 0, len(value), rows, y, weights[value, y])

    def map(self, f: Callable[[Block], Any], columns: Sequence[int] | None = None) -> Iterator[Any]:
        if columns is None or len(columns) != 1:
            raise ValueError("A summary holds columns one by one: ask for one column.")
        yield f(self._block(int(columns[0])))

    def sum(self, f: Callable[[Block], Any], columns: Sequence[int] | None = None) -> Any:
        return next(self.map(f, columns))


def summary_of_parts(
    partitions: list[Partition], schema: Schema, totals: Floats, chunk: Table
) -> TableSummary:
    """What the parts of a fitted model say of its rows, as if the stream had begun with them.

    Each interval becomes one pool at its upper bound, and the weight of a group is shared out
    evenly among its texts: no boundary of the fitted model is lost, and finer ones can only come
    from the stream. ``chunk`` says where the pools of open intervals lie.
    """
    columns: list[ColumnTable] = []
    for j, partition in enumerate(partitions):
        cells = partition.cells
        if isinstance(cells, Groups):
            columns.append(_categories(cells, partition.class_weights))
        else:
            assert isinstance(cells, Intervals)
            columns.append(_numbers(cells, partition.class_weights, chunk.column(j)))
    return TableSummary(schema.names, schema.kinds, tuple(columns), totals)


def _numbers(cells: Intervals, weights: Floats, seen: Floats) -> NumericTable:
    missing = weights[0] if cells.missing_alone else np.zeros(weights.shape[1])
    places = [*cells.bounds, _above(cells.bounds, seen), *cells.special]
    values, back = np.unique(np.array(places, dtype=np.float64), return_inverse=True)
    pools = np.zeros((len(values), weights.shape[1]))
    np.add.at(pools, back, weights[cells.first :])
    return NumericTable(values, pools, missing)


def _above(bounds: Floats, seen: Floats) -> float:
    """A value of the last interval: the median of those that the chunk has there."""
    low = float(bounds[-1]) if len(bounds) else -np.inf
    there = seen[seen > low]
    if len(there):
        return float(np.median(there))
    return float(np.nextafter(low, np.inf)) if np.isfinite(low) else 0.0


def _categories(cells: Groups, weights: Floats) -> CategoryTable:
    counts = np.bincount(cells.part_of[:-1], minlength=cells.n_parts).astype(np.float64)
    if cells.missing_seen:
        counts[cells.part_of[-1]] += 1.0
    each = weights / np.maximum(counts, 1.0)[:, None]
    rows = each[cells.part_of]
    if not cells.missing_seen:
        rows[-1] = 0.0
    return CategoryTable(cells.categories, rows)
