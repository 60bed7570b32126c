"""What the cells of a column show, in a summary that adds up over blocks of rows.

Which kind a column has is decided from this summary alone, so that the decision depends neither
on the order of the rows nor on how they were cut into blocks. Distinct values are counted by the
k smallest of their hashes: exactly up to k of them, within a percent or two beyond.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Keys
from laconic.data.reading.dates import (
    DAY,
    HOUR,
    clock_text,
    date_texts,
    may_be_clock,
    may_be_date,
)
from laconic.data.reading.numbers import may_be_number, number_text
from laconic.data.reading.raw import RawColumn
from laconic.data.row_keys import number_keys, text_key
from laconic.data.tables.cells import is_plain_number

DISTINCT = 4_096
"""Hashes kept to count distinct values: an error of 1.6 % beyond."""
KEPT_TEXTS = 64
"""Texts kept of each sort: odd ones are shown and listed, and more than a few are not odd."""
KEPT_SORTS = 256
"""Sorts of texts kept: a column of so many sorts is one of categories or of text."""
LONGEST = 64
"""Characters of the longest text that may be a number or a date."""
TYPED = "typed"
"""The order of dates that came as dates."""


@dataclass(frozen=True, order=True)
class Sort:
    """What a text could be: the decimal sign it says, its unit, orders as a date, a clock time."""

    says: str = ""
    unit: str = ""
    bound: bool = False
    padded: bool = False
    digits: int = 0
    """How many, where there is nothing else."""
    plain: bool = False
    """Whether it is a number as programs write it."""
    orders: tuple[str, ...] = ()
    clock: str = ""


@dataclass(frozen=True)
class Texts:
    """Cells of one sort: their number, and the texts with the smallest hashes, each counted."""

    cells: int
    kept: Mapping[str, int]
    full: bool = False
    """Whether there are more texts than those kept."""

    @staticmethod
    def of(counts: dict[str, int], cells: int, *, full: bool = False) -> Texts:
        if len(counts) <= KEPT_TEXTS:
            return Texts(cells, counts, full)
        kept = heapq.nsmallest(KEPT_TEXTS, counts, key=text_key)
        return Texts(cells, {text: counts[text] for text in kept}, full=True)

    def __add__(self, other: Texts) -> Texts:
        counts = dict(self.kept)
        for text, count in other.kept.items():
            counts[text] = counts.get(text, 0) + count
        return Texts.of(counts, self.cells + other.cells, full=self.full or other.full)


@dataclass(frozen=True)
class Calendar:
    """Moments of a column: first and last, and which weekdays, months, days and hours occur."""

    first: int
    last: int
    weekdays: int
    months: int
    days: int
    hours: int
    timed: bool

    @staticmethod
    def of(moments: NDArray[np.int64]) -> Calendar:
        stamps = moments.astype("datetime64[us]")
        days = stamps.astype("datetime64[D]")
        months = days.astype("datetime64[M]")
        hours = (moments % DAY) // HOUR
        return Calendar(
            int(moments.min()),
            int(moments.max()),
            _mask((days.astype(np.int64) + 3) % 7),
            _mask(months.astype(np.int64) % 12),
            _mask((days - months.astype("datetime64[D]")).astype(np.int64)),
            _mask(hours),
            bool((moments % DAY).any()),
        )

    def __add__(self, other: Calendar) -> Calendar:
        return Calendar(
            min(self.first, other.first),
            max(self.last, other.last),
            self.weekdays | other.weekdays,
            self.months | other.months,
            self.days | other.days,
            self.hours | other.hours,
            self.timed or other.timed,
        )


def _mask(places: NDArray[np.int64]) -> int:
    return sum(1 << int(place) for place in np.unique(places))


@dataclass(frozen=True)
class Span:
    """Least and largest number, and whether all are whole."""

    low: float
    high: float
    whole: bool

    @staticmethod
    def of(values: NDArray[np.float64]) -> Span:
        return Span(float(values.min()), float(values.max()), bool((values % 1 == 0).all()))

    def __add__(self, other: Span) -> Span:
        whole = self.whole and other.whole
        return Span(min(self.low, other.low), max(self.high, other.high), whole)


@dataclass(frozen=True)
class Evidence:
    """The summary of a column; ``form`` is "" while no cell has a value."""

    n_rows: int
    n_missing: int
    form: str = ""
    declared: bool = False
    hashes: Keys = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    sorts: Mapping[Sort, Texts] = field(default_factory=dict)
    n_words: int = 0
    span: Span | None = None
    calendars: Mapping[str, Calendar] = field(default_factory=dict)
    n_compact: int = 0
    """Numbers that would be dates of eight digits, or of twelve or fourteen with the time."""

    @property
    def n_filled(self) -> int:
        return self.n_rows - self.n_missing

    @property
    def n_distinct(self) -> int:
        """Distinct values, about, beyond :data:`DISTINCT`."""
        if len(self.hashes) < DISTINCT:
            return len(self.hashes)
        about = round((DISTINCT - 1) / (float(self.hashes[-1]) / 2.0**64))
        return min(about, self.n_filled)

    def __add__(self, other: Evidence) -> Evidence:
        if self.form and other.form and self.form != other.form:
            raise ValueError(f"holds {self.form} in some rows and {other.form} in others")
        hashes = np.union1d(self.hashes, other.hashes)[:DISTINCT]
        return Evidence(
            self.n_rows + other.n_rows,
            self.n_missing + other.n_missing,
            self.form or other.form,
            self.declared or other.declared,
            hashes,
            _few_sorts(_summed(self.sorts, other.sorts)),
            self.n_words + other.n_words,
            _both(self.span, other.span),
            _summed(self.calendars, other.calendars),
            self.n_compact + other.n_compact,
        )


def _summed(a: Mapping[Any, Any], b: Mapping[Any, Any]) -> dict[Any, Any]:
    return {key: _both(a.get(key), b.get(key)) for key in [*a, *(key for key in b if key not in a)]}


def _both(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b


def _few_sorts(sorts: Mapping[Sort, Texts]) -> Mapping[Sort, Texts]:
    """Those with the smallest hashes, where there are too many: the same in every order of rows."""
    if len(sorts) <= KEPT_SORTS:
        return sorts
    kept = sorted(sorts, key=lambda sort: text_key(repr(sort)))[:KEPT_SORTS]
    return {sort: sorts[sort] for sort in kept}


def evidence_of(column: RawColumn) -> Evidence:
    """The summary of some rows.

    >>> from laconic.data.reading.raw import raw_column
    >>> found = evidence_of(raw_column(["1,5", "2,25", "unknown", None], "x"))
    >>> found.n_filled, found.n_distinct, sorted(sort.says for sort in found.sorts)
    (3, 3, ['', ','])
    """
    gone = column.missing
    base = Evidence(len(column), int(gone.sum()), declared=column.declared)
    if gone.all():
        return base
    values = column.values[~gone]
    if column.form == "texts":
        return _of_texts(column, values, base)
    hashes = _least(number_keys(values.astype(np.float64), np.uint64(1)))
    shared: dict[str, Any] = {"form": column.form, "hashes": hashes}
    if column.form == "moments":
        shared["calendars"] = {TYPED: Calendar.of(values)}
    if column.form == "numbers":
        compact = _compact_dates(values)
        shared |= {"span": Span.of(values), "n_compact": len(compact)}
        if len(compact) == len(values):
            shared["calendars"] = {"compact": Calendar.of(compact)}
    return Evidence(base.n_rows, base.n_missing, **shared)


def _least(keys: Keys) -> Keys:
    """The least :data:`DISTINCT` different keys, in order.

    Keys are spread evenly: of many rows those below a bound hold them, and few are sorted.
    """
    if len(keys) > 8 * DISTINCT:
        low = np.unique(keys[keys < np.uint64(2**64 // len(keys) * 2 * DISTINCT)])
        if len(low) >= DISTINCT:
            return low[:DISTINCT]
    return np.unique(keys)[:DISTINCT]


def _of_texts(column: RawColumn, codes: NDArray[np.int64], base: Evidence) -> Evidence:
    counts = np.bincount(codes, minlength=len(column.texts))
    found: dict[Sort, dict[str, int]] = {}
    moments: dict[str, list[int]] = {}
    numbers: list[float] = []
    n_words = 0
    for text, count in zip(column.texts, counts.tolist(), strict=True):
        n_words += count * (1 + text.count(" "))
        sort = Sort()
        if not column.declared and len(text) <= LONGEST and any(map(str.isdigit, text)):
            sort = sort_of(text, moments, numbers)
        found.setdefault(sort, {})[text] = count
    sorts = {sort: Texts.of(own, sum(own.values())) for sort, own in found.items()}
    hashes = np.array(sorted(text_key(text) for text in column.texts), dtype=np.uint64)[:DISTINCT]
    calendars = {order: Calendar.of(np.array(own)) for order, own in moments.items()}
    span = Span.of(np.array(numbers)) if numbers else None
    return Evidence(
        base.n_rows, base.n_missing, "texts", base.declared, hashes, _few_sorts(sorts), n_words,
        span, calendars,
    )  # fmt: skip


@lru_cache(maxsize=4_096)
def _possible(shape: str) -> tuple[bool, bool, bool]:
    """What texts of a shape could be: a column has few shapes, and many texts of each."""
    return may_be_number(shape), may_be_date(shape), may_be_clock(shape)


_ALIKE = str.maketrans("0123456789", "1111111111")


def sort_of(text: str, moments: dict[str, list[int]], numbers: list[float]) -> Sort:
    """What the text could be; moments and plain numbers are noted where they are found."""
    may = _possible(text.translate(_ALIKE))
    number = number_text(text) if may[0] else None
    dates = date_texts(text) if may[1] else ()
    clock = clock_text(text) if may[2] else None
    for order, moment in dates:
        moments.setdefault(order, []).append(moment)
    if number is not None and not number.unit and number.point is not None:
        numbers.append(number.point)
    return Sort(
        says="" if number is None else number.says,
        unit="" if number is None else number.unit,
        bound=number is not None and number.bound,
        padded=number is not None and number.padded,
        digits=len(text) if text.isdecimal() else 0,
        plain=is_plain_number(text),
        orders=tuple(order for order, _ in dates),
        clock="" if clock is None else "day" if clock[1] else "long",
    )


def _compact_dates(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Moments of whole numbers that are dates, 20240131, or dates with a time, 20240131063000."""
    if values.max(initial=0.0) < 19_000_101:
        return np.empty(0, dtype=np.int64)
    long = np.select([values >= 1e13, values >= 1e11], [1e6, 1e4], 1.0)
    days = values // long
    inside = values[(days >= 19_000_101) & (days <= 21_001_231) & (values % 1 == 0)]
    found = (dict(date_texts(str(int(value)))).get("compact") for value in inside.tolist())
    return np.array([moment for moment in found if moment is not None], dtype=np.int64)
