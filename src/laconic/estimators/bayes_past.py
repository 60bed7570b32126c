"""What a fitted model still knows of its rows: the class weights of its parts, as a summary.

``fit`` keeps no rows. When a stream continues a fitted model, each interval becomes one pool at
its upper bound, and the weight of a group is shared out evenly among its texts: no boundary of the
fitted model is lost, and finer ones can only come from the stream.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from laconic.data.columns import Schema, Table
from laconic.data.summaries import CategoryTable, ColumnTable, TableSummary
from laconic.data.tables import NumericTable
from laconic.estimators.partition import Partition
from laconic.estimators.partition_cells import Groups, Intervals

Floats = NDArray[np.float64]


def summary_of_parts(
    partitions: list[Partition], schema: Schema, totals: Floats, chunk: Table
) -> TableSummary:
    """One table for each column; ``chunk`` says where open-ended pools lie."""
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
