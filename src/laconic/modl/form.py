"""Partitions as terms of a fitted form: the values of their parts on the axes of their columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from laconic._typing import Floats, Ints
from laconic.core.forms import RulesTerm, SlotTerm, Term
from laconic.data.tables.axes import Axis, CategoryAxis, IntervalAxis
from laconic.modl.partition import Cells, Grid, Groups, Intervals, Rules, Side


def slots_of_side(side: Side) -> tuple[Axis, Ints]:
    """The axis of intervals or groups, and the part that each of its slots belongs to."""
    if isinstance(side, Intervals):
        # missing is its own part, the first, or below every number: part 0 either way
        parts = np.append(np.arange(side.first, side.n_parts), 0)
        return IntervalAxis(np.asarray(side.bounds, dtype=np.float64), side.special), parts
    members: list[list[str]] = [[] for _ in range(side.n_parts)]
    for text, part in zip(side.categories, side.part_of[:-1], strict=True):
        members[part].append(text)
    parts = np.append(np.arange(side.n_parts), [side.default, int(side.part_of[-1])])
    return CategoryAxis(tuple(tuple(texts) for texts in members)), parts


def cells_term(columns: Sequence[str], cells: Cells, values: Floats) -> Term:
    """The term that reads ``values[part]`` of a partition; ``values`` is (parts, scores)."""
    if isinstance(cells, Intervals | Groups):
        axis, parts = slots_of_side(cells)
        return SlotTerm((columns[0],), (axis,), values[parts])
    if isinstance(cells, Grid):
        (first, rows), (second, across) = (slots_of_side(side) for side in cells.sides)
        own = rows[:, None] * cells.shape[1] + across[None, :]
        return SlotTerm((columns[0], columns[1]), (first, second), values[own])
    return _rules_term(columns, cells, values)


def _rules_term(columns: Sequence[str], cells: Rules, values: Floats) -> RulesTerm:
    read = [slots_of_side(side) for side in cells.ladders]
    leaves = np.where((cells.column < 0)[:, None], values[np.maximum(cells.part, 0)], 0.0)
    return RulesTerm(
        tuple(columns),
        tuple(axis for axis, _ in read),
        tuple(parts for _, parts in read),
        cells.column,
        cells.threshold,
        cells.left,
        cells.right,
        leaves,
    )
