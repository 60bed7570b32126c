"""Terms of a fitted form rounded to whole points, as tables a person can add up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from laconic._typing import Floats, Ints
from laconic.core.forms import LineTerm, RulesTerm, SlotTerm, Term
from laconic.data.tables.axes import Axis, CategoryAxis, IntervalAxis, KnotAxis, encode_column
from laconic.data.tables.columns import Table, shown
from laconic.export.parts import NotExportableError, Parts

_MOST_PARTS = 2_000
"""Parts of one variable, above which nobody reads them."""


@dataclass(frozen=True)
class Points:
    """One variable of a scorecard: a term whose values are whole points >= 0.

    ``term.values`` are the points as floats; ``lowest`` was taken off them, by score.
    """

    term: SlotTerm | RulesTerm
    lowest: Ints

    @property
    def columns(self) -> tuple[str, ...]:
        return self.term.columns

    def parts(self) -> list[tuple[str, list[int]]]:
        """Text of each part and its points by score."""
        values = self.term.values.astype(np.int64)
        if isinstance(self.term, RulesTerm):
            return [
                (" and ".join(path) or "always", values[leaf].tolist())
                for leaf, path in _paths(self.term, 0, ())
            ]
        labels = [axis.labels() for axis in self.term.axes]
        if len(labels) == 1:
            return [(text, own.tolist()) for text, own in zip(labels[0], values, strict=True)]
        return [
            (f"{first} and {second}", values[i, j].tolist())
            for i, first in enumerate(labels[0])
            for j, second in enumerate(labels[1])
        ]

    def places(self, rows: Table) -> Ints:
        """The part that each row falls in, as :meth:`parts` lists them."""
        term = self.term
        if isinstance(term, RulesTerm):
            # a tree whose leaves hold their own place says which leaf a row reaches
            order = [leaf for leaf, _ in _paths(term, 0, ())]
            own = np.zeros((len(term.column), 1))
            own[order, 0] = np.arange(len(order))
            return np.rint(replace(term, values=own).contribution(rows)[:, 0]).astype(np.int64)
        slots = [
            encode_column(axis, rows, rows.place(name))[0]
            for axis, name in zip(term.axes, term.columns, strict=True)
        ]
        return slots[0] if len(slots) == 1 else slots[0] * term.axes[1].size + slots[1]

    def scaled(self, factor: float) -> SlotTerm | RulesTerm:
        """The term in units of the score, ``factor`` points to the unit."""
        return replace(self.term, values=self.term.values / factor)


def _paths(term: RulesTerm, t: int, path: tuple[str, ...]) -> list[tuple[int, tuple[str, ...]]]:
    c = int(term.column[t])
    if c < 0:
        return [(t, path)]
    labels, ranks, limit = term.axes[c].labels(), term.ranks[c], int(term.threshold[t])
    sides = []
    for child, goes in ((term.left[t], ranks <= limit), (term.right[t], ranks > limit)):
        texts = [text for text, here in zip(labels, goes, strict=True) if here]
        said = f"{term.columns[c]} in {', '.join(texts)}"
        sides += _paths(term, int(child), (*path, said))
    return sides


def in_points(
    term: Term, factor: float, parts: Parts, rows: Table | None, most_parts: int | None
) -> Points:
    """``term`` times ``factor``, rounded; lines and shapes are cut where the rounding steps."""
    if isinstance(term, RulesTerm):
        rounded = np.rint(factor * term.values)
        # inner nodes have values too, which nothing reads
        lowest = rounded[term.column < 0].min(axis=0)
        values = np.where((term.column < 0)[:, None], rounded - lowest, 0.0)
        return Points(replace(term, values=values), lowest.astype(np.int64))
    if isinstance(term, LineTerm):
        term = _as_shape(term, parts, rows)
    if len(term.axes) == 2:
        term = _cut_grid(term)
    elif isinstance(term.axes[0], KnotAxis):
        term = _cut_shape(term, factor, most_parts)
    rounded = np.rint(factor * term.values)
    lowest = rounded.min(axis=tuple(range(len(term.axes))))
    return Points(replace(term, values=rounded - lowest), lowest.astype(np.int64))


def joined(variables: Sequence[Points]) -> tuple[Points, ...]:
    """One table for each column, where several read it; their points are added up exactly."""
    found: list[Points] = []
    place: dict[tuple[str, type], int] = {}
    for one in variables:
        key = (one.columns[0], type(one.term.axes[0]))
        alone = isinstance(one.term, RulesTerm) or len(one.columns) > 1
        if not alone and key in place:
            found[place[key]] = _sum(found[place[key]], one)
            continue
        if not alone:
            place[key] = len(found)
        found.append(one)
    return tuple(found)


def _sum(one: Points, other: Points) -> Points:
    a, b = one.term, other.term
    assert isinstance(a, SlotTerm)
    assert isinstance(b, SlotTerm)
    axis, slots = _common_axis(a.axes[0], b.axes[0])
    values = a.values[slots[:, 0]] + b.values[slots[:, 1]]
    if isinstance(axis, IntervalAxis):
        n = len(axis.bounds)
        steps = (values[1 : n + 1] != values[:n]).any(axis=1)
        axis = replace(axis, bounds=axis.bounds[steps])
        values = np.concatenate([values[:1], values[1 : n + 1][steps], values[n + 1 :]])
    return Points(SlotTerm(a.columns, (axis,), values), one.lowest + other.lowest)


def _common_axis(a: Axis, b: Axis) -> tuple[Axis, Ints]:
    """An axis that tells apart what either does, and the slots that its slots are on both."""
    ends = (a.size - 1, b.size - 1)
    if isinstance(a, CategoryAxis) and isinstance(b, CategoryAxis):
        own, its = a.slot_of(), b.slot_of()
        groups: dict[tuple[int, int], list[str]] = {}
        for text in (*own, *(text for text in its if text not in own)):
            groups.setdefault((own.get(text, a.other), its.get(text, b.other)), []).append(text)
        slots = [*groups, (a.other, b.other), ends]
        return CategoryAxis(tuple(map(tuple, groups.values()))), np.array(slots)
    assert isinstance(a, IntervalAxis)
    assert isinstance(b, IntervalAxis)
    bounds = np.union1d(a.bounds, b.bounds)
    specials = np.union1d(a.specials, b.specials)
    columns = [
        # an interval is closed on the right: its upper bound says where it lies
        [*np.searchsorted(axis.bounds, [*bounds, np.inf]), *axis.encode(specials)[0], end]
        for axis, end in zip((a, b), ends, strict=True)
    ]
    return IntervalAxis(bounds, tuple(specials.tolist())), np.array(columns, dtype=np.int64).T


def _as_shape(term: LineTerm, parts: Parts, rows: Table | None) -> SlotTerm:
    """A line between the least and the largest value of its column; flat beyond them."""
    if parts.kind(term.column) == "boolean":
        ends = np.array([0.0, 1.0])
    elif rows is None:
        raise NotExportableError(
            f"Column {shown(term.column)} has a slope, and a scorecard needs its range: "
            "give rows (--rows FILE --target COLUMN)."
        )
    else:
        values = rows.column(rows.place(term.column))
        if np.isnan(values).all():
            raise NotExportableError(f"Column {shown(term.column)} has no value in the rows.")
        ends = np.unique([np.nanmin(values), np.nanmax(values)])
    assert term.missing is not None
    at_ends = (ends - term.origin)[:, None] * term.slope
    axis = KnotAxis(ends, np.empty(0))
    return SlotTerm((term.column,), (axis,), np.concatenate([at_ends, term.missing[None, :]]))


def _cut_shape(term: SlotTerm, factor: float, most_parts: int | None) -> SlotTerm:
    """Intervals on which the shape, rounded to a step of whole points, is constant."""
    axis = term.axes[0]
    assert isinstance(axis, KnotAxis)
    n = len(axis.knots)
    points = factor * term.values[:n]
    climbed = float(np.abs(np.diff(points, axis=0)).sum())
    if most_parts is None and climbed > _MOST_PARTS:
        raise NotExportableError(
            f"Column {shown(term.columns[0])} would have about {climbed:,.0f} parts; ask for "
            "fewer (most_parts), or for fewer points (points_to_double)."
        )
    step = 1.0 if most_parts is None else max(1.0, np.ceil(climbed / most_parts))
    bounds = np.unique(
        np.concatenate(
            [np.empty(0)]
            + [
                _crossings(axis.knots[i : i + 2], points[i : i + 2, k] / step)
                for i in range(n - 1)
                for k in range(points.shape[1])
            ]
        )
    )
    inner = 0.5 * bounds[:-1] + 0.5 * bounds[1:]
    ends = [axis.knots[:1], inner, axis.knots[-1:]] if len(bounds) else [axis.knots[:1]]
    index, fraction = KnotAxis(axis.knots, np.empty(0)).encode(np.concatenate(ends))
    after = np.minimum(index + 1, n - 1)
    inside = (1.0 - fraction)[:, None] * points[index] + fraction[:, None] * points[after]
    whole = step * np.rint(inside / step)
    if most_parts is not None and len(bounds):
        whole = _without_flicker(whole, _reach(axis.knots, points, bounds), step)
    # parts with the same points are one part
    steps = (whole[1:] != whole[:-1]).any(axis=1)
    kept = np.concatenate([[True], steps])
    values = np.concatenate([whole[kept] / factor, term.values[n:]])
    cuts = bounds[steps]
    if most_parts is not None:
        cuts = short_cuts(cuts, axis.knots[0], axis.knots[-1])
    cut = IntervalAxis(cuts, tuple(axis.specials.tolist()))
    return SlotTerm(term.columns, (cut,), values)


_FLICKER = 0.75
"""Steps that a curve may be away from the points of both neighbours of a part, for the part to get
them too: it is half a step away where it leaves them, and may come back at once."""


def _reach(knots: Floats, points: Floats, bounds: Floats) -> tuple[Floats, Floats]:
    """Least and largest points of a curve in each part between bounds, (parts, scores)."""
    at = np.unique(np.concatenate([knots, bounds]))
    value = np.column_stack([np.interp(at, knots, own) for own in points.T])
    first = np.searchsorted(at, np.concatenate([at[:1], bounds]))
    last = np.searchsorted(at, np.concatenate([bounds, at[-1:]]))
    parts = [value[a : b + 1] for a, b in zip(first, last, strict=True)]
    return np.array([own.min(axis=0) for own in parts]), np.array(
        [own.max(axis=0) for own in parts]
    )


def _without_flicker(whole: Floats, reach: tuple[Floats, Floats], step: float) -> Floats:
    """The points of parts, those between two equal neighbours taken from them where they are near.

    >>> flat = np.array([[0.0], [1.0], [0.0], [1.0], [2.0]])
    >>> low = np.array([[0.2], [0.5], [0.3], [0.5], [1.5]])
    >>> _without_flicker(flat, (low, low + 0.2), 1.0).ravel()
    array([0., 0., 0., 1., 2.])
    """
    found = whole.copy()
    for j in range(1, len(found) - 1):
        same = (found[j - 1] == found[j + 1]).all()
        far = np.maximum(found[j - 1] - reach[0][j], reach[1][j] - found[j - 1])
        if same and (far <= _FLICKER * step).all():
            found[j] = found[j - 1]
    return found


_CUT_MOVES = 0.1
"""A cut may move by this share of the way to its neighbour, for fewer digits (by
convention: at most a tenth of the rows between two cuts change by a step, and ``loss`` says so)."""


def short_cuts(cuts: Floats, low: float, high: float) -> Floats:
    """Cuts with the fewest digits that stay near: people read 0.24, not 0.235677.

    >>> short_cuts(np.array([0.235677, 0.5912]), 0.0, 1.0).tolist()
    [0.25, 0.6]
    """
    ends = np.concatenate([[low], cuts, [high]])
    # the ends of the range are no cuts, and may be one
    gaps = np.diff(ends)
    gaps[[0, -1]] = np.where(gaps[[0, -1]] > 0, gaps[[0, -1]], np.inf)
    room = _CUT_MOVES * np.minimum(gaps[:-1], gaps[1:])
    return np.array([_short(cut, most) for cut, most in zip(cuts, room, strict=True)])


def _short(value: float, room: float) -> float:
    for digits in range(1, 17):
        size = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1) if value else 1.0
        for unit in (5.0 * size, size):  # halves of the digit before are as short to read
            found = round(value / unit) * unit
            if abs(found - value) <= room:
                return float(f"{found:.15g}")
    return value


def _crossings(x: Floats, points: Floats) -> Floats:
    """Where a line between two knots passes from one whole number to the next."""
    low, high = np.sort(points)
    halves = np.arange(np.floor(low - 0.5) + 1.5, high, 1.0)
    halves = halves[(halves > low) & (halves < high)]
    fraction = (halves - points[0]) / (points[1] - points[0]) if len(halves) else halves
    return np.asarray((1.0 - fraction) * x[0] + fraction * x[1])


def _cut_grid(term: SlotTerm) -> SlotTerm:
    """Cells between knots, each with the value in its middle."""
    values = term.values
    axes: list[Axis] = []
    for place, axis in enumerate(term.axes):
        if not isinstance(axis, KnotAxis):
            axes.append(axis)
            continue
        n = len(axis.knots)
        flat = np.moveaxis(values, place, 0)
        middle = 0.5 * flat[: n - 1] + 0.5 * flat[1:n]
        cut = np.concatenate([flat[:1], middle, flat[n - 1 :]])
        values = np.moveaxis(cut, 0, place)
        axes.append(IntervalAxis(axis.knots, tuple(axis.specials.tolist())))
    return SlotTerm(term.columns, tuple(axes), values)
