"""Items: conditions on one column that a card may give points to.

A number offers "x > c" for cuts c (or the bins between them), a category offers its frequent values
and the groups that MODL makes of all of them, every column with gaps offers "x is missing".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Mask
from laconic.core.forms import SlotTerm
from laconic.data.tables.axes import Axis, CategoryAxis, IntervalAxis, encode_column
from laconic.data.tables.columns import Table
from laconic.modl.partition import Groups, Intervals, Partition, readable_between, show_number
from laconic.rules.conditions import quantile_cuts
from laconic.rules.estimator import merged_slots
from laconic.scorecard.tuning import LEAST_SHARE

Kind = Literal["above", "bin", "category", "missing"]
_MOST_TEXTS = 4


@dataclass(frozen=True)
class ColumnItems:
    """The items of one column: ``holds[i, slot]`` says whether item i holds in a slot of ``axis``.

    ``share`` is the training weight of each slot.
    """

    column: str
    axis: Axis
    holds: Mask
    texts: tuple[str, ...]
    kinds: tuple[Kind, ...]
    share: Floats

    def read(self, table: Table) -> NDArray[np.uint8]:
        """(items, rows) of 0 and 1."""
        slots, _ = encode_column(self.axis, table, table.place(self.column))
        return np.asarray(self.holds[:, slots], dtype=np.uint8)

    def kept(self, chosen: Sequence[int]) -> ColumnItems:
        pick = [int(c) for c in chosen]
        return ColumnItems(
            self.column,
            self.axis,
            self.holds[pick],
            tuple(self.texts[c] for c in pick),
            tuple(self.kinds[c] for c in pick),
            self.share,
        )

    def term(self, points: Floats) -> SlotTerm:
        """The points of a column by slot; slots with the same points are one."""
        values = (points @ self.holds).astype(np.float64)[:, None]
        if isinstance(self.axis, IntervalAxis):
            axis, values = merged_slots(self.axis, values, 0)
            return SlotTerm((self.column,), (axis,), values)
        assert isinstance(self.axis, CategoryAxis)
        other = self.axis.other
        levels = sorted({v for v in values[:other, 0].tolist() if v != values[other, 0]})
        groups = tuple(
            tuple(t for g in np.flatnonzero(values[:other, 0] == v) for t in self.axis.groups[g])
            for v in levels
        )
        own = np.array([*levels, values[other, 0], values[-1, 0]])[:, None]
        return SlotTerm((self.column,), (CategoryAxis(groups),), own)


def items_of(
    table: Table, weight: Floats, partition: Partition | None, j: int, most: int, bins: bool
) -> ColumnItems:
    """The items of column j; ``partition`` is that of MODL, None leaves its cuts out.

    >>> table = Table(("x",), ("numeric",), (None,), matrix=np.array([[1.0], [2.0], [4.0]]))
    >>> items_of(table, np.ones(3), None, 0, 5, False).texts
    ('x >= 2', 'x > 3')
    """
    if table.kinds[j] == "categorical":
        axis, made = _of_categories(table, weight, partition, j, most)
    else:
        axis, made = _of_numbers(table, weight, partition, j, most, bins)
    gone = np.arange(axis.size) == axis.missing
    made.append((gone, f"{table.names[j]} is missing", "missing"))
    slots, _ = encode_column(axis, table, j)
    share = np.bincount(slots, weight, minlength=axis.size) / weight.sum()
    kept: list[tuple[Mask, str, Kind]] = []
    seen: set[bytes] = set()
    inhabited = share > 0
    for own, text, kind in made:
        size, key = float(share[own].sum()), own[inhabited]
        if min(size, 1.0 - size) < LEAST_SHARE or key.tobytes() in seen:
            continue
        seen |= {key.tobytes(), (~key).tobytes()}
        kept.append((own, text, kind))
    holds = np.array([own for own, _, _ in kept], dtype=bool).reshape(len(kept), axis.size)
    texts, kinds = tuple(t for _, t, _ in kept), tuple(k for _, _, k in kept)
    return ColumnItems(table.names[j], axis, holds, texts, kinds, share)


Made = list[tuple[Any, str, Kind]]


def _of_numbers(
    table: Table, weight: Floats, partition: Partition | None, j: int, most: int, bins: bool
) -> tuple[Axis, Made]:
    name, x = table.names[j], np.asarray(table.column(j), dtype=np.float64)
    seen = ~np.isnan(x)
    cuts = _readable(quantile_cuts(x[seen], weight[seen], most), x[seen]) if most else np.empty(0)
    if partition is not None and isinstance(partition.cells, Intervals):
        cuts = np.union1d(cuts, np.asarray(partition.cells.bounds, dtype=np.float64))
    axis = IntervalAxis(cuts)
    place = np.arange(axis.size)
    said = [show_number(float(c)) for c in cuts]
    whole = whole_numbers(x)
    if table.kinds[j] == "boolean":
        return axis, [((place > 0) & (place < axis.missing), f"{name} is true", "above")]
    if bins and len(cuts) > 1:
        ends = [f"{name} <= {said[0]}"]
        ends += [f"{low} < {name} <= {high}" for low, high in pairwise(said)]
        ends.append(f"{name} > {said[-1]}")
        return axis, [(place == s, text, "bin") for s, text in enumerate(ends)]
    return axis, [
        ((place > c) & (place < axis.missing), _above(name, float(cuts[c]), whole), "above")
        for c in range(len(cuts))
    ]


def whole_numbers(x: Floats) -> bool:
    """Whether all values that are not missing are whole."""
    seen = x[~np.isnan(x)]
    return bool(len(seen) and (seen == np.floor(seen)).all())


def _above(name: str, cut: float, whole: bool) -> str:
    """A cut in words: half numbers between whole ones say the first number that is above."""
    if whole and cut != np.floor(cut):
        return f"{name} >= {show_number(float(np.ceil(cut)))}"
    return f"{name} > {show_number(cut)}"


def _readable(cuts: Floats, x: Floats) -> Floats:
    """The same cuts of these rows, with few digits."""
    values = np.unique(x)
    place = np.searchsorted(values, cuts, side="right")
    return np.unique([readable_between(float(values[i - 1]), float(values[i])) for i in place])


def _of_categories(
    table: Table, weight: Floats, partition: Partition | None, j: int, most: int
) -> tuple[Axis, Made]:
    name, texts = table.names[j], table.categories[j] or ()
    codes = np.asarray(table.column(j))
    size = np.bincount(codes[codes >= 0], weight[codes >= 0], minlength=len(texts))
    axis = CategoryAxis(tuple((text,) for text in texts))
    place, made = np.arange(axis.size), Made()
    frequent = sorted(np.lexsort((np.arange(len(texts)), -size))[:most].tolist()) if texts else []
    made += [(place == c, f"{name} = {texts[c]}", "category") for c in frequent]
    cells = None if partition is None else partition.cells
    if isinstance(cells, Groups) and cells.n_parts > 1:
        where = {text: c for c, text in enumerate(texts)}
        for part, members in enumerate(cells.members()):
            own = [where[text] for text in members if text is not None and text in where]
            holds = np.isin(place, own)
            holds[axis.missing] = None in members
            holds[axis.other] = part == cells.default
            shown = [texts[c] for c in sorted(own, key=lambda c: (-size[c], c))][:_MOST_TEXTS]
            more = len(own) - len(shown)
            said = ", ".join(shown) + (f" and {more} more" if more else "")
            said += " or missing" if None in members else ""
            made.append((holds, f"{name} in {said}", "category"))
    return axis, made
