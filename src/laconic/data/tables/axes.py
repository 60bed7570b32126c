"""How one column is read by a fitted model: a slot, and how far it lies towards the next slot.

Every axis turns a column into ``(index, fraction)``: a row reads the value
``(1 - fraction) v[index] + fraction v[index + 1]`` of a vector ``v`` with one entry for each slot.
Three axes are enough for every additive model of the library: knots (a piecewise-linear shape with
levels of its own for special values), categories and intervals. The last slot of every axis is the
missing value; a category axis has one more, before it, for texts that have no slot.

Axes are learned from the data, and rows encoded on them with one byte and a fraction for each cell.
Knots lie at quantiles, so that a shape is measured on the scale of ranks. The first and the last
quantile interval are halved again and again while rows remain: a tail over several decades then
gets knots of its own instead of one long segment. A column of few distinct values that come often
has a knot at each of them. A value that holds a point mass among otherwise continuous values, and
codes far away from all other values (96, 98, -999), get a level of their own beside the line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats
from laconic.data.source import BLOCK_ROWS
from laconic.data.tables.columns import MISSING, Table

Encoded = tuple[NDArray[np.int64], NDArray[np.float64]]


def _increasing(values: NDArray[np.float64], what: str) -> None:
    if values.ndim != 1 or not np.isfinite(values).all() or (values[1:] <= values[:-1]).any():
        raise ValueError(f"{what} must be finite numbers in increasing order.")


class _LastIsMissing:
    """What all axes share: the last slot is the missing value."""

    @property
    def size(self) -> int:
        raise NotImplementedError

    @property
    def missing(self) -> int:
        return self.size - 1

    @property
    def interpolates(self) -> bool:
        """Whether a row may lie between two slots."""
        return False


def distinct_texts(values: Iterable[float]) -> list[str]:
    """Different numbers in different texts, of six digits where these do; zero has no sign.

    >>> distinct_texts([-0.0, 0.5]), distinct_texts([1234567.0, 1234568.0])
    (['0', '0.5'], ['1234567', '1234568'])
    """
    known = [float(value) + 0.0 for value in values]
    texts = [f"{value:g}" for value in known]
    for digits in range(7, 18):
        if len(set(texts)) == len(texts):
            break
        texts = [f"{value:.{digits}g}" for value in known]
    return texts


@dataclass(frozen=True)
class KnotAxis(_LastIsMissing):
    """Slots: one for each knot, then one for each special value, then missing.

    Between two knots the fraction is linear in x; beyond the first and the last knot it is flat.
    A value listed in ``specials`` has a slot of its own, whatever its place among the knots.

    >>> axis = KnotAxis(np.array([0.0, 10.0, 20.0]), specials=np.array([99.0]))
    >>> index, fraction = axis.encode(np.array([-5.0, 2.5, 20.0, 99.0, np.nan]))
    >>> index.tolist(), fraction.tolist()
    ([0, 0, 1, 3, 4], [0.0, 0.25, 1.0, 0.0, 0.0])
    """

    knots: NDArray[np.float64]
    specials: NDArray[np.float64]

    def __post_init__(self) -> None:
        if len(self.knots) == 0:
            raise ValueError("A knot axis needs at least one knot.")
        _increasing(self.knots, "knots")
        _increasing(self.specials, "specials")

    @property
    def size(self) -> int:
        return len(self.knots) + len(self.specials) + 1

    @property
    def interpolates(self) -> bool:
        return len(self.knots) > 1

    def encode(self, values: NDArray[Any]) -> Encoded:
        x = np.asarray(values, dtype=np.float64)
        fraction = np.zeros(len(x))
        index = np.zeros(len(x), dtype=np.int64)
        if len(self.knots) > 1:
            inside = np.clip(x, self.knots[0], self.knots[-1])
            index = np.searchsorted(self.knots, inside, "right") - 1
            index = np.clip(index, 0, len(self.knots) - 2)
            low, high = self.knots[index], self.knots[index + 1]
            with np.errstate(over="ignore", invalid="ignore"):
                gap = high - low
                fraction = (inside - low) / gap
            wide = np.isinf(gap)
            if wide.any():  # two knots at the two ends of the float range
                half = 0.5 * low[wide]
                fraction[wide] = (0.5 * inside[wide] - half) / (0.5 * high[wide] - half)
        for k, special in enumerate(self.specials):
            at = x == special
            index[at] = len(self.knots) + k
            fraction[at] = 0.0
        gone = np.isnan(x)
        index[gone] = self.missing
        fraction[gone] = 0.0
        return index, fraction

    def labels(self) -> list[str]:
        specials = (f"= {text}" for text in distinct_texts(self.specials))
        return [*distinct_texts(self.knots), *specials, "missing"]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "knots", "knots": self.knots.tolist(), "specials": self.specials.tolist()}


@dataclass(frozen=True)
class CategoryAxis(_LastIsMissing):
    """Slots: one for each group of texts, then every other text, then missing.

    >>> axis = CategoryAxis((("cook",), ("smith", "joiner")))
    >>> axis.encode(np.array([0, 1, 2, -1, -2]), ("cook", "joiner", "smith"))[0].tolist()
    [0, 1, 1, 3, 2]
    """

    groups: tuple[tuple[str, ...], ...]

    @property
    def size(self) -> int:
        return len(self.groups) + 2

    @property
    def other(self) -> int:
        return len(self.groups)

    def slot_of(self) -> dict[str, int]:
        return {text: slot for slot, texts in enumerate(self.groups) for text in texts}

    def encode(self, codes: NDArray[Any], categories: tuple[str, ...]) -> Encoded:
        """``codes`` into ``categories``, as a table holds them."""
        slots = self.slot_of()
        # the two extra entries are what the codes -2 (unseen) and -1 (missing) read
        place = [slots.get(text, self.other) for text in categories]
        table = np.array([*place, self.other, self.missing], dtype=np.int64)
        codes = np.asarray(codes)
        return table[codes], np.zeros(len(codes))

    def labels(self) -> list[str]:
        return [*(", ".join(texts) for texts in self.groups), "any other", "missing"]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "categories", "groups": [list(texts) for texts in self.groups]}


@dataclass(frozen=True)
class IntervalAxis(_LastIsMissing):
    """Slots: the intervals between bounds, each closed on the right, special values, missing.

    >>> IntervalAxis(np.array([1.0, 2.0])).encode(np.array([1.0, 1.5, 9.0, np.nan]))[0].tolist()
    [0, 1, 2, 3]
    >>> IntervalAxis(np.array([1.0]), (7.0,)).encode(np.array([0.5, 7.0, 8.0]))[0].tolist()
    [0, 2, 1]
    """

    bounds: NDArray[np.float64]
    specials: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        _increasing(self.bounds, "bounds")

    @property
    def size(self) -> int:
        return len(self.bounds) + len(self.specials) + 2

    def encode(self, values: NDArray[Any]) -> Encoded:
        x = np.asarray(values, dtype=np.float64)
        index = np.searchsorted(self.bounds, x, "left").astype(np.int64)
        for k, special in enumerate(self.specials):
            index[x == special] = len(self.bounds) + 1 + k
        index[np.isnan(x)] = self.missing
        return index, np.zeros(len(x))

    def labels(self) -> list[str]:
        ends = ["-inf", *distinct_texts(self.bounds), "inf"]
        texts = [f"({a}, {b}]" for a, b in pairwise(ends)]
        return [*texts, *(f"= {text}" for text in distinct_texts(self.specials)), "missing"]

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "intervals",
            "bounds": self.bounds.tolist(),
            "specials": list(self.specials),
        }


Axis = KnotAxis | CategoryAxis | IntervalAxis


def axis_from_dict(data: Mapping[str, Any]) -> Axis:
    """The axis that ``to_dict`` described."""
    kind = data["kind"]
    if kind == "knots":
        return KnotAxis(
            np.array(data["knots"], dtype=np.float64), np.array(data["specials"], dtype=np.float64)
        )
    if kind == "categories":
        return CategoryAxis(tuple(tuple(texts) for texts in data["groups"]))
    if kind == "intervals":
        specials = tuple(float(value) for value in data.get("specials", ()))
        return IntervalAxis(np.array(data["bounds"], dtype=np.float64), specials)
    raise ValueError(f"Unknown axis kind {kind!r}; expected knots, categories or intervals.")


def encode_column(axis: Axis, table: Table, j: int) -> Encoded:
    """Column ``j`` of a table on ``axis``."""
    values = table.column(j)
    if isinstance(axis, CategoryAxis):
        categories = table.categories[j]
        if table.kinds[j] != "categorical" or categories is None:
            # a column without any value agrees with every kind (see Schema)
            return axis.encode(np.full(len(values), MISSING), ())
        return axis.encode(values, categories)
    if table.kinds[j] == "categorical":
        raise ValueError(f"Column {table.names[j]!r} is categorical; its axis expects numbers.")
    return axis.encode(values)


MOST_SLOTS = 250
"""Slots of an axis fit in one byte."""
POINT_MASS, _MASS_OVER_NEIGHBOURS, _MOST_SPECIALS = 0.01, 5.0, 6
"""A point mass has this share of the rows and weighs so many times its neighbours; a column has so
many at most. Convention, kept by the rows of ``bench_additive.py credit``."""
_SHARE_IN_PAIRS = 0.03
"""A special value of this share keeps a level of its own on a coarse axis (convention)."""
_FEWEST_KNOTS, _KNOTS_GROW = 8, 0.4
"""Knots of small samples, and the power of the rows by which they grow: the penalty does the rest
(convention)."""
_VALUES_A_KNOT, _ROWS_A_VALUE = 4, 10.0
"""A column of at most 4 values for each knot, with 10 rows a value, has a knot at each value
(``bench_additive.py quality``)."""


@dataclass(frozen=True)
class KnotRule:
    """How many slots a column may have.

    ``max_knots`` bounds the knots of a line (tail knots come on top, and a column of few distinct
    values, up to four times as many, has a knot at each); ``min_weight`` is the least
    weight (rows, without sample weights) that a tail knot or a category of its own must have. No
    value of the columns ``whole`` stands beside the line: an order must hold for all of them.
    """

    max_knots: int = 32
    min_weight: float = 5.0
    whole: frozenset[str] = frozenset()

    def budget(self, total: float) -> int:
        """Knots for ``total`` rows."""
        return int(min(self.max_knots, max(_FEWEST_KNOTS, round(total**_KNOTS_GROW))))


def learn_axes(table: Table, weight: Floats, rule: KnotRule) -> tuple[Axis, ...]:
    """One axis for each column."""
    axes: list[Axis] = []
    for j, kind in enumerate(table.kinds):
        if kind == "categorical":
            categories = table.categories[j] or ()
            axes.append(category_axis(table.column(j), categories, weight, rule))
        else:
            whole = table.names[j] in rule.whole
            axes.append(knot_axis(table.column(j), weight, rule, whole=whole))
    return tuple(axes)


def knot_axis(
    values: NDArray[np.float64], weight: Floats, rule: KnotRule, *, whole: bool = False
) -> KnotAxis:
    """Knots and special values of a numeric column (NaN = missing)."""
    there = ~np.isnan(values)
    if not there.all():
        values, weight = values[there], weight[there]
    if len(values) == 0:
        return KnotAxis(np.zeros(1), np.empty(0))
    distinct, mass = _distinct(values, weight)
    codes = np.zeros(len(distinct), dtype=bool) if whole else _far_codes(distinct, mass, rule)
    specials = distinct[codes]
    distinct, mass = distinct[~codes], mass[~codes]
    budget = rule.budget(float(mass.sum()))
    if len(distinct) > budget and not whole:
        heavy = _point_masses(mass)
        specials = np.sort(np.concatenate([specials, distinct[heavy]]))
        distinct, mass = distinct[~heavy], mass[~heavy]
    if len(distinct) > budget and not _told_apart(distinct, mass, budget, len(specials)):
        distinct = _quantile_knots(distinct, mass, budget, rule)
    return KnotAxis(distinct, specials)


def _told_apart(distinct: Floats, mass: Floats, budget: int, n_specials: int) -> bool:
    """Whether every value may have a knot: amounts that come again and again, ages, counts."""
    most = min(_VALUES_A_KNOT * budget, MOST_SLOTS - 1 - n_specials)
    return len(distinct) <= most and float(mass.sum()) >= _ROWS_A_VALUE * len(distinct)


def _distinct(values: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Sorted distinct values and the weight of each."""
    equal = bool((weight == weight[0]).all())
    # equal values by weight: their sum must not depend on the order of the rows
    order = slice(None) if equal else np.lexsort((weight, values))
    ordered = np.sort(values) if equal else values[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    if equal:  # counts are exact, and a sort without places is faster
        return ordered[starts], np.diff(np.append(starts, len(ordered))) * float(weight[0])
    return ordered[starts], np.add.reduceat(weight[order], starts)


def _far_codes(distinct: Floats, mass: Floats, rule: KnotRule) -> NDArray[np.bool_]:
    """Values beyond a gap more than twice as wide as everything else: 96, 98, -999."""
    codes = np.zeros(len(distinct), dtype=bool)
    least = max(rule.min_weight, 1e-3 * float(mass.sum()))
    for end in (1, -1):
        line, share = distinct[::end], mass[::end]
        for k in range(1, min(4, len(line) - 4) + 1):
            rest = line[: len(line) - k]
            with np.errstate(over="ignore"):
                span, gap = abs(rest[-1] - rest[0]), abs(line[len(line) - k] - rest[-1])
            if np.isfinite(span) and gap > 2.0 * span and (share[len(line) - k :] >= least).all():
                chosen = np.zeros(len(line), dtype=bool)
                chosen[len(line) - k :] = True
                codes |= chosen[::end]
    return codes if codes.sum() <= max(0, len(distinct) - 2) else np.zeros(len(distinct), bool)


def _point_masses(mass: Floats) -> NDArray[np.bool_]:
    """Values that weigh 1 % of the rows and several times what their neighbours weigh."""
    share = mass / mass.sum()
    heavy = np.flatnonzero(share >= POINT_MASS)
    chosen = np.zeros(len(mass), dtype=bool)
    for k in heavy[np.argsort(-share[heavy], kind="stable")]:
        if chosen.sum() == _MOST_SPECIALS:
            break
        near = np.concatenate([share[max(0, k - 4) : k], share[k + 1 : k + 5]])
        chosen[k] = share[k] >= _MASS_OVER_NEIGHBOURS * np.median(near)
    return chosen


def _quantile_knots(distinct: Floats, mass: Floats, budget: int, rule: KnotRule) -> Floats:
    """Distinct values nearest to evenly spaced ranks, with halved intervals in both tails."""
    total = float(mass.sum())
    step = 1.0 / (budget - 1)
    least = min(step / 2.0, rule.min_weight / total)
    tail = step * 0.5 ** np.arange(1, 1 + max(0, int(np.log2(step / least))))
    levels = np.concatenate([np.arange(1, budget - 1) * step, tail, 1.0 - tail, [least, 1 - least]])
    middle = np.cumsum(mass) - 0.5 * mass
    place = np.searchsorted(middle, np.unique(levels) * total)
    return distinct[np.unique(np.clip(place, 0, len(distinct) - 1))]


def category_axis(
    codes: NDArray[np.int32], categories: tuple[str, ...], weight: Floats, rule: KnotRule
) -> CategoryAxis:
    """A slot for each category that is not rare; the rest share the slot of unseen texts."""
    known = codes >= 0
    codes, weight = codes[known], weight[known]
    if len(weight) and (weight != weight[0]).any():
        by = np.argsort(weight, kind="stable")
        codes, weight = codes[by], weight[by]
    mass = np.bincount(codes, weight, minlength=len(categories))
    order = np.argsort(-mass, kind="stable")[: MOST_SLOTS - 2]
    kept = np.sort(order[mass[order] >= rule.min_weight])
    if len(kept) == 0:
        kept = np.sort(order[:1])
    return CategoryAxis(tuple((categories[c],) for c in kept))


@dataclass(frozen=True)
class EncodedRows:
    """Rows as bytes: ``index[j, i]`` is the slot of row i on axis j.

    ``fraction[fraction_row[j], i]`` is its interpolation fraction towards the next slot; axes
    that do not interpolate have ``fraction_row[j] = -1`` and store none.
    """

    axes: tuple[Axis, ...]
    index: NDArray[np.uint8]
    fraction: NDArray[np.float32]
    fraction_row: NDArray[np.int64]

    @property
    def n_rows(self) -> int:
        return int(self.index.shape[1])

    @property
    def nbytes(self) -> int:
        return self.index.nbytes + self.fraction.nbytes

    def take(self, rows: NDArray[np.int64]) -> EncodedRows:
        return EncodedRows(
            self.axes,
            np.ascontiguousarray(self.index[:, rows]),
            np.ascontiguousarray(self.fraction[:, rows]),
            self.fraction_row,
        )

    def column(self, j: int) -> tuple[NDArray[np.int64], Floats]:
        """Slots and fractions of axis j, as wide numbers."""
        index = self.index[j].astype(np.int64)
        row = self.fraction_row[j]
        return index, (self.fraction[row].astype(float) if row >= 0 else np.zeros(len(index)))


def encode(table: Table, axes: Sequence[Axis]) -> EncodedRows:
    """Rows of ``table`` on ``axes``, block by block so that temporaries stay small."""
    n = table.n_rows
    needs = []
    index = np.empty((len(axes), n), dtype=np.uint8)
    parts: list[NDArray[np.float32]] = []
    for j, axis in enumerate(axes):
        column = table[:, [j]]
        between = False
        fraction = np.zeros(n if axis.interpolates else 0, dtype=np.float32)
        for start in range(0, n, BLOCK_ROWS):
            rows = slice(start, min(start + BLOCK_ROWS, n))
            slots, part = encode_column(axis, column[rows], 0)
            if axis.interpolates:
                # a row on a knot points at that knot, so that columns whose values are all knots
                # need no fraction
                slots = slots + (part == 1.0)
                fraction[rows] = np.where(part == 1.0, 0.0, part)
                between = between or bool(fraction[rows].any())
            index[j, rows] = slots
        needs.append(between)
        if between:
            parts.append(fraction)
    row = np.where(needs, np.cumsum(needs) - 1, -1).astype(np.int64)
    stacked = np.stack(parts) if parts else np.zeros((0, n), dtype=np.float32)
    return EncodedRows(tuple(axes), index, stacked, row)


@dataclass(frozen=True)
class CoarseAxis:
    """A coarser axis, and how the slots of the fine one are read on it.

    A row at (k, f) of the fine axis lies at slot ``index[k]`` with fraction
    ``base[k] + step[k] f`` of the coarse one, so that pairs need no encoding of their own.
    """

    axis: Axis
    index: NDArray[np.uint8]
    base: NDArray[np.float32]
    step: NDArray[np.float32]


def coarsen(axis: Axis, mass: Floats, budget: int) -> CoarseAxis:
    """At most ``budget`` knots or categories, chosen by the weight ``mass`` of each slot."""
    if isinstance(axis, CategoryAxis):
        order = np.argsort(-mass[: len(axis.groups)], kind="stable")[:budget]
        kept = np.sort(order[mass[order] > 0])
        coarse: Axis = CategoryAxis(tuple(axis.groups[k] for k in kept))
        index = np.full(axis.size, len(kept), dtype=np.uint8)
        index[kept] = np.arange(len(kept))
        index[axis.missing] = coarse.missing
        return CoarseAxis(
            coarse, index, np.zeros(axis.size, np.float32), np.zeros(axis.size, np.float32)
        )
    assert isinstance(axis, KnotAxis)
    knots = axis.knots
    if len(knots) > budget:
        middle = np.cumsum(mass[: len(knots)])
        level = np.arange(1, budget - 1) / (budget - 1) * middle[-1]
        inner = np.clip(np.searchsorted(middle, level), 1, len(knots) - 2)
        knots = knots[np.unique(np.concatenate([[0], inner, [len(knots) - 1]]))]
    heavy = mass[len(axis.knots) : axis.missing] >= _SHARE_IN_PAIRS * mass.sum()
    coarse = KnotAxis(knots, axis.specials[heavy])
    points = np.concatenate([axis.knots, axis.specials, [np.nan]])
    slots, base = coarse.encode(points)
    step = np.zeros(axis.size)
    inside = np.arange(len(axis.knots) - 1)
    same = slots[inside] == slots[inside + 1]
    step[inside] = np.where(same, base[inside + 1], 1.0) - base[inside]
    # the last knot is that knot, not a fraction of one from the knot before: most rows of columns
    # with few values then need no fraction
    slots, base = slots + (base == 1.0), np.where(base == 1.0, 0.0, base)
    return CoarseAxis(
        coarse, slots.astype(np.uint8), base.astype(np.float32), step.astype(np.float32)
    )
