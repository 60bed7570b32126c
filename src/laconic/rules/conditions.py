"""Yes/no conditions on single columns: a cut of a number, one category, a missing value.

The conditions of a column are read from the slot of its axis: ``sides[c, slot]`` is +1 where
condition c holds and -1 where it does not. They know nothing of the target.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from laconic._typing import Floats, Ints, Keys, Signs
from laconic.data.tables.axes import Axis, CategoryAxis, IntervalAxis, encode_column
from laconic.data.tables.columns import MISSING, Table
from laconic.rules.tuning import LEAST_ROWS_SHARE


@dataclass(frozen=True)
class ColumnConditions:
    """``names[c]`` in words, and the side of every slot of ``axis``."""

    column: str
    axis: Axis
    sides: Signs
    names: tuple[str, ...]

    def read(self, table: Table) -> Signs:
        """(conditions, rows)."""
        slots, _ = encode_column(self.axis, table, table.place(self.column))
        return np.asarray(self.sides[:, slots])


def conditions_of(table: Table, j: int, weight: Floats, most: int) -> ColumnConditions:
    """At most ``most`` cuts or categories of column j, and "is missing" where some rows are.

    >>> table = Table(("x",), ("numeric",), (None,), matrix=np.array([[1.0], [2.0], [4.0]]))
    >>> found = conditions_of(table, 0, np.ones(3), 5)
    >>> found.names, found.read(table).tolist()
    (('x <= 1.5', 'x <= 3'), [[1, -1, -1], [1, 1, -1]])
    """
    name = table.names[j]
    if table.kinds[j] == "categorical":
        axis, sides, names = _category_sides(table, j, weight, most)
    else:
        axis, sides, names = _number_sides(table, j, weight, most)
    signs = np.array(sides, dtype=np.int8).reshape(len(sides), axis.size)
    slots, _ = encode_column(axis, table, j)
    share = np.bincount(slots, weight, minlength=axis.size) / weight.sum()
    kept = _useful(signs, share)
    return ColumnConditions(name, axis, signs[kept], tuple(names[c] for c in kept))


def _number_sides(
    table: Table, j: int, weight: Floats, most: int
) -> tuple[Axis, list[Ints], list[str]]:
    x = np.asarray(table.column(j), dtype=np.float64)
    seen = ~np.isnan(x)
    cuts = quantile_cuts(x[seen], weight[seen], most)
    axis = IntervalAxis(cuts)
    place = np.arange(axis.size)
    sides = [np.where(place <= c, 1, -1) for c in range(len(cuts))]
    names = [f"{table.names[j]} <= {cut:.6g}" for cut in cuts]
    sides.append(np.where(place == axis.missing, 1, -1))
    return axis, sides, [*names, f"{table.names[j]} is missing"]


def _category_sides(
    table: Table, j: int, weight: Floats, most: int
) -> tuple[Axis, list[Ints], list[str]]:
    texts, codes = table.categories[j] or (), np.asarray(table.column(j))
    known = codes != MISSING
    size = np.bincount(codes[known], weight[known], minlength=len(texts))
    frequent = np.sort(np.argsort(-size, kind="stable")[:most])
    frequent = frequent[size[frequent] >= LEAST_ROWS_SHARE * weight.sum()]
    axis = CategoryAxis(tuple((texts[c],) for c in frequent))
    place = np.arange(axis.size)
    sides = [np.where(place == c, 1, -1) for c in range(len(frequent))]
    names = [f"{table.names[j]} = {texts[c]}" for c in frequent]
    sides.append(np.where(place == axis.missing, 1, -1))
    return axis, sides, [*names, f"{table.names[j]} is missing"]


def quantile_cuts(x: Floats, weight: Floats, most: int) -> Floats:
    """At most ``most`` midpoints between neighbouring values, spread evenly over the weight.

    >>> quantile_cuts(np.array([1.0, 2.0, 3.0, 9.0]), np.ones(4), 1)
    array([2.5])
    """
    values, place = np.unique(x, return_inverse=True)
    if len(values) < 2:
        return np.empty(0)
    below = np.asarray(np.cumsum(np.bincount(place, weight))[:-1], dtype=np.float64)
    middle = values[:-1] * 0.5 + values[1:] * 0.5
    if len(middle) > most:
        aims = np.arange(1, most + 1) / (most + 1) * weight.sum()
        middle = middle[np.unique(_nearest(below, aims))]
    return np.unique(middle)


def _nearest(values: Floats, aims: Floats) -> Ints:
    """For each aim the first place of the value nearest to it; values do not decrease.

    >>> _nearest(np.array([1.0, 2.0, 2.0, 4.0]), np.array([0.0, 1.5, 2.5, 3.0, 9.0])).tolist()
    [0, 0, 1, 1, 3]
    """
    right = np.minimum(np.searchsorted(values, aims), len(values) - 1)
    left = np.maximum(right - 1, 0)
    found = np.where(np.abs(values[left] - aims) <= np.abs(values[right] - aims), left, right)
    while True:  # several may be equally near
        before = np.maximum(found - 1, 0)
        near = np.abs(values[before] - aims) <= np.abs(values[found] - aims)
        moved = np.where(near, before, found)
        if (moved == found).all():
            return found
        found = moved


def _useful(signs: Signs, share: Floats) -> list[int]:
    """Conditions that divide the rows, none the same as another or its opposite."""
    kept: list[int] = []
    seen: set[bytes] = set()
    inhabited = share > 0
    for c, side in enumerate(signs):
        yes = float(share[side > 0].sum())
        own = side[inhabited]
        if min(yes, 1.0 - yes) < LEAST_ROWS_SHARE or own.tobytes() in seen:
            continue
        seen |= {own.tobytes(), (-own).tobytes()}
        kept.append(c)
    return kept


@dataclass(frozen=True)
class RuleSet:
    """Conditions of every column, and the products of two of them of different columns.

    Rule r reads ``first[r]`` and, unless it is -1, ``second[r]``: places in the list of all
    conditions. ``owner[c]`` is the column of condition c.
    """

    columns: tuple[ColumnConditions, ...]
    first: Ints
    second: Ints

    @property
    def owner(self) -> Ints:
        return np.repeat(np.arange(len(self.columns)), [len(c.names) for c in self.columns])

    def ordered(self, keys: Keys) -> RuleSet:
        """The rules by keys of their columns' content: no tie knows how the columns were given."""
        sizes = [len(c.names) for c in self.columns]
        owner, place = self.owner, np.concatenate([np.arange(0), *map(np.arange, sizes)])
        ends = np.stack([self.first, np.where(self.second < 0, self.first, self.second)])
        column, cut = keys[owner[ends]], place[ends]
        turned = column[0] > column[1]
        column[:, turned], cut[:, turned] = column[::-1, turned], cut[::-1, turned]
        order = np.lexsort((cut[1], cut[0], column[1], column[0], self.second >= 0))
        return replace(self, first=self.first[order], second=self.second[order])

    def read(self, table: Table) -> Signs:
        """(rules, rows)."""
        if not len(self.first):
            return np.empty((0, table.n_rows), dtype=np.int8)
        single = np.concatenate([column.read(table) for column in self.columns])
        out = single[self.first]
        pairs = self.second >= 0
        out[pairs] *= single[self.second[pairs]]
        return np.ascontiguousarray(out)

    def names(self) -> list[str]:
        words = [name for column in self.columns for name in column.names]
        return [
            words[a] if b < 0 else f"({words[a]}) agrees with ({words[b]})"
            for a, b in zip(self.first, self.second, strict=True)
        ]


def rules_of(
    table: Table,
    weight: Floats,
    most_rules: int,
    most_cuts: int,
    forbidden: Collection[tuple[int, int]] = (),
) -> RuleSet:
    """As many cuts by column as keep the rules, products included, within ``most_rules``.

    Where one cut by column is too many, products are left out; those of two columns that are
    ``forbidden`` together are never made.
    """
    known: dict[int, tuple[ColumnConditions, ...]] = {}

    def columns_of(cuts: int) -> tuple[ColumnConditions, ...]:
        if cuts not in known:
            every = range(len(table.names))
            known[cuts] = tuple(conditions_of(table, j, weight, cuts) for j in every)
        return known[cuts]

    # a column that one cut divides has a condition however many cuts it may have
    live = sum(len(c.names) > 0 for c in columns_of(1))
    for products in (True, False):
        least = live + products * (live * (live - 1) // 2 - len(forbidden))
        for cuts in range(most_cuts, 0, -1) if least <= most_rules else ():
            columns = columns_of(cuts)
            sizes = _sizes(columns)
            single = int(sizes.sum())
            crossed = (single**2 - int((sizes**2).sum())) // 2
            crossed -= sum(int(sizes[a] * sizes[b]) for a, b in forbidden)
            if single + products * crossed <= most_rules:
                return RuleSet(columns, *_places(sizes, products, forbidden))
    return RuleSet(columns_of(1), *_places(_sizes(columns_of(1)), False))


def _sizes(columns: Sequence[ColumnConditions]) -> Ints:
    return np.array([len(c.names) for c in columns], dtype=np.int64)


def _places(
    sizes: Ints, products: bool, forbidden: Collection[tuple[int, int]] = ()
) -> tuple[Ints, Ints]:
    owner = np.repeat(np.arange(len(sizes)), sizes)
    single = np.arange(len(owner))
    if not products:
        return single, np.full(len(owner), -1)
    a, b = np.triu_indices(len(owner), 1)
    apart = owner[a] != owner[b]
    for first, last in forbidden:  # owners grow with the places, so the smaller one is first
        apart &= (owner[a] != first) | (owner[b] != last)
    none = np.full(len(owner), -1)
    return np.concatenate([single, a[apart]]), np.concatenate([none, b[apart]])
