"""Which kind a column has, from the summary of its cells and the habits of the whole table."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from laconic.data.reading.column import ColumnReading, Kind
from laconic.data.reading.dates import DAY, reading_orders
from laconic.data.reading.evidence import TYPED, Calendar, Evidence, Sort, Texts
from laconic.data.reading.names import (
    DISTINCT_SHARE,
    ID_WORDS,
    LEAST_ROWS,
    called_id,
    left_out_id,
    names,
    repeated_id,
)
from laconic.data.reading.numbers import CREDIT_OR_DEBIT, common_unit, fits_unit, number_text
from laconic.data.reading.words import NO, NOTHING_KNOWN, PERCENT, YES, YES_NO
from laconic.data.tables.columns import shown

ODD_SHARE = 0.02
"""Share of cells that may be unlike all others and be taken for missing. By convention."""
ODD_TEXTS = 10
"""Different texts among them; words that say "nothing known" are not counted. By convention."""
FEW_WORDS, MANY_VALUES = 3, 20
"""So few texts, again and again among more different numbers than that, are missing in any share up
to half of the cells: "undetermined" in a third of the cells makes no categories of the others."""
RUNNING = 2.0
"""Whole numbers, all different, in a range of at most so many times the rows: row numbers.

As many numbers drawn at random from such a range would repeat one cell in five.
"""
MANY_ROWS = 200
"""Rows below which whole numbers must all be different to be row numbers: ages of few persons
hardly repeat."""
FEWEST_DATES = 5
"""Different numbers of eight digits from which a column of them is one of dates."""
_NUMBER_WORDS = ID_WORDS | {
    "key", "nr", "no", "num", "number", "nummer", "numero", "num\u00e9ro", "account", "acct",
    "konto", "compte", "phone", "tel", "telephone", "mobile", "fax", "mrn", "ssn", "siren", "siret",
}  # fmt: skip
"""Last words of the name of whole numbers, all different, that tell rows apart."""
_FIRST = {
    "dmy": "the day first", "mdy": "the month first", "short-ymd": "the year first, of two digits",
    "name-dmy": "the day first, in part months by name",
    "name-mdy": "the month first, in part months by name",
}  # fmt: skip
_OFFSET = re.compile(r":[0-9]{2}(?:[.,][0-9]+)?\s*[+-](?!00:?(?:00)?$)[0-9]{2}:?(?:[0-9]{2})?$")
_USUAL = (np.datetime64("1900-01-02"), np.datetime64("2100-01-01"))
"""Dates beyond stand for something else, "never" or "not known": they are told."""


@dataclass(frozen=True)
class Habits:
    """How the table writes numbers and dates where a column alone does not say."""

    decimal: str = "."
    order: str = "dmy"

    @staticmethod
    def of(columns: Sequence[Evidence]) -> Habits:
        """From the columns that leave no doubt; a point and the day first where none does."""
        signs = {sign for sign in map(_clear_sign, columns) if sign}
        orders = {order for order in map(_clear_order, columns) if order}
        return Habits("," if signs == {","} else ".", "mdy" if orders == {"mdy"} else "dmy")


def _clear_sign(evidence: Evidence) -> str:
    return _clear(_sign_counts(evidence.sorts), evidence.n_filled)


def _clear_order(evidence: Evidence) -> str:
    return _clear({o: _n_order(evidence, o) for o in ("dmy", "mdy")}, evidence.n_filled)


def _clear(counts: Mapping[str, int], n_filled: int) -> str:
    """The one of two ways that reads nearly all cells, and more of them than the other."""
    best = max(counts, key=lambda one: counts[one])
    tie = len(set(counts.values())) == 1
    return "" if tie or counts[best] < (1 - ODD_SHARE) * n_filled else best


def _sign_counts(sorts: Mapping[Sort, Texts]) -> dict[str, int]:
    """Cells that are numbers with either decimal sign."""
    both = sum(texts.cells for sort, texts in sorts.items() if sort.says in ("=", "?"))
    return {
        sign: both + sum(texts.cells for sort, texts in sorts.items() if sort.says == sign)
        for sign in ".,"
    }


def _n_order(evidence: Evidence, order: str) -> int:
    own = reading_orders(order)
    return sum(texts.cells for sort, texts in evidence.sorts.items() if own & {*sort.orders})


@dataclass(frozen=True)
class Odd:
    """Cells that a reading cannot read: how many, and which texts."""

    cells: int = 0
    texts: Mapping[str, int] = field(default_factory=dict)
    full: bool = False
    """Whether there are more texts than those kept."""

    @staticmethod
    def of(evidence: Evidence, kept: Callable[[Sort], bool]) -> Odd:
        """Those of the sorts that ``kept`` refuses, and of sorts that the summary dropped."""
        texts: dict[str, int] = {}
        full, fine = False, 0
        for sort, own in evidence.sorts.items():
            if kept(sort):
                fine += own.cells
            else:
                texts |= own.kept
                full = full or own.full
        cells = evidence.n_filled - fine
        return Odd(cells, texts, full or cells > sum(texts.values()))

    def few(self, n_filled: int, n_distinct: int = 0) -> bool:
        """Whether the odd cells are few, or say clearly that nothing is known: they are missing."""
        known = {text: n for text, n in self.texts.items() if text.lower() in NOTHING_KNOWN}
        rest, fine = self.cells - sum(known.values()), n_filled - self.cells
        if self.full or not fine or len(self.texts) - len(known) > ODD_TEXTS:
            return False
        if rest == 0:
            return fine >= min(LEAST_ROWS, self.cells)
        if len(self.texts) <= FEW_WORDS and n_distinct - len(self.texts) > MANY_VALUES:
            return fine >= self.cells
        allowed = max(1 if n_filled >= LEAST_ROWS else 0, int(ODD_SHARE * n_filled))
        return rest <= allowed and fine >= self.cells

    def sentence(self, n_filled: int, what: str) -> str:
        if not self.cells:
            return ""
        some = ", ".join(shown(text) for text in sorted(self.texts)[:4])
        many = len(self.texts) > 1 or self.full
        more = ", ..." if len(self.texts) > 4 or self.full else ""
        return (
            f"; {n_filled - self.cells:,} of {n_filled:,} cells are {what}, {some}{more} "
            f"{'are' if many else 'is'} taken for missing"
        )


Found = tuple[Odd, ColumnReading | None]
_NOTHING: Found = (Odd(), None)


def decide(name: str, evidence: Evidence, habits: Habits) -> ColumnReading:
    """The kind of a column.

    >>> from laconic.data.reading.evidence import evidence_of
    >>> from laconic.data.reading.raw import raw_column
    >>> cells = ["1,5", "2,25", "3,0"] * 10 + ["unknown"]
    >>> found = decide("size", evidence_of(raw_column(cells, "size")), Habits())
    >>> found.kind, found.decimal, found.missing
    ('number', ',', ('unknown',))
    """
    filled = evidence.n_filled
    if not filled:
        return ColumnReading(name, "empty", "no cell has a value; left out", True)
    if evidence.n_distinct == 1 and not evidence.n_missing:
        return ColumnReading(name, "constant", f"all {filled:,} cells are equal; left out", True)
    if evidence.form == "truth":
        return ColumnReading(name, "yes/no", "yes or no", yes=YES, no=NO)
    if evidence.form == "spans":
        return ColumnReading(name, "duration", "duration, in hours", True)
    if evidence.form == "clock":
        return ColumnReading(name, "time", "time of day, in hours", True)
    if evidence.form == "moments":
        return dates(name, evidence, TYPED, Odd())
    if evidence.form == "numbers":
        if evidence.n_compact == filled and evidence.n_distinct >= FEWEST_DATES:
            return dates(name, evidence, "compact", Odd())
        return _identifier(name, evidence) or ColumnReading(name, "number", "number")
    if evidence.declared:
        return names(name, evidence)
    return (
        yes_no(name, evidence)
        or code(name, evidence)
        or _least_odd(name, evidence, habits)
        or names(name, evidence)
    )


def _least_odd(name: str, evidence: Evidence, habits: Habits) -> ColumnReading | None:
    """Dates, numbers or clock times, whichever leaves the fewest cells unread."""
    found = [
        (odd.cells, reading)
        for odd, reading in (
            dates_of_texts(name, evidence, habits),
            number(name, evidence, habits),
            clock(name, evidence),
        )
        if reading is not None and odd.few(evidence.n_filled, evidence.n_distinct)
    ]
    return min(found, key=lambda pair: pair[0])[1] if found else None


def yes_no(name: str, evidence: Evidence) -> ColumnReading | None:
    texts = [text for own in evidence.sorts.values() for text in own.kept]
    if any(own.full for own in evidence.sorts.values()) or len(texts) > 8:
        return None
    said = {text.lower() for text in texts}
    words = [pair for pair in YES_NO if min(map(len, pair)) > 1 or set(pair) < said]
    yes, no = ({pair[k] for pair in words} for k in (0, 1))
    if said & (yes | no):  # beside words, 1 and 0 say the same
        yes, no = yes | {"1"}, no | {"0"}
    mixed = said <= yes | no and bool(said & yes) and bool(said & no)
    pair = next((pair for pair in YES_NO if said == set(pair)), None)
    if not mixed and pair is None:
        return None
    sentence = f"yes or no ({', '.join(sorted(texts))})"
    if pair is None or len(texts) > 2 or said == {"true", "false"}:
        return ColumnReading(name, "yes/no", sentence, yes=YES, no=NO)
    own = {text.lower(): text for text in texts}
    return ColumnReading(name, "yes/no", sentence, yes=own[pair[0]], no=own[pair[1]])


def code(name: str, evidence: Evidence) -> ColumnReading | None:
    """Whole numbers, some with leading zeros: 01322 is no number."""
    widths = {sort.digits for sort in evidence.sorts if sort.digits}
    odd = Odd.of(evidence, lambda sort: sort.digits > 0)
    if not any(sort.padded for sort in evidence.sorts) or not odd.few(evidence.n_filled):
        return None
    if evidence.n_distinct >= DISTINCT_SHARE * evidence.n_filled >= DISTINCT_SHARE * LEAST_ROWS:
        return left_out_id(name, evidence, "codes")
    said = f"code with leading zeros ({evidence.n_distinct:,} different)"
    width = widths.pop() if len(widths) == 1 else 0
    return ColumnReading(name, "code", said, True, width=width)


def number(name: str, evidence: Evidence, habits: Habits, decimal: str = "") -> Found:
    """Numbers as people write them; ``decimal`` is the sign, where it is known."""
    counts = _sign_counts(evidence.sorts)
    unclear = [own for sort, own in evidence.sorts.items() if sort.says == "?"]
    doubt = ""
    if not decimal:
        decimal = max(counts, key=lambda sign: (counts[sign], sign == "."))
        if counts["."] == counts[","] and unclear:
            decimal = _settled(evidence, habits)
            example = min(min(own.kept) for own in unclear)
            meant = number_text(example)
            value = None if meant is None else meant.value(decimal)
            doubt = "" if value is None else f"; {example} is read as {value:.15g}"
    unit = _common_unit(evidence)
    if unit is None or _MASK.fullmatch(unit):
        return _NOTHING

    def kept(sort: Sort) -> bool:
        return sort.says in ("=", "?", decimal) and fits_unit(sort.unit, unit)

    odd = Odd.of(evidence, kept)
    marks = [sort for sort in evidence.sorts if kept(sort)]
    plain = decimal == "." and all(sort.plain for sort in marks)
    if plain and not odd.cells and _identifier(name, evidence):
        return odd, _identifier(name, evidence)
    written = _written(decimal, unit, marks)
    if not plain and not written:
        written = " as people write it"
    said = "number" + written + doubt + _bounds(evidence, marks)
    return odd, ColumnReading(
        name,
        "number",
        said + odd.sentence(evidence.n_filled, "numbers"),
        not plain or bool(odd.cells),
        decimal=decimal,
        unit=unit,
        plain=plain,
        missing=tuple(sorted(odd.texts)),
    )


_MASK = re.compile("x{2,}")
"""No unit, but the digits of a postcode or an account that were hidden: 123xx."""


def _settled(evidence: Evidence, habits: Habits) -> str:
    """The decimal sign of texts such as 1,234, none of which says it."""
    texts = [t for sort, own in evidence.sorts.items() if sort.says == "?" for t in own.kept]
    signs = {sign for text in texts for sign in ".," if sign in text}
    large = any(sort.digits > 3 for sort in evidence.sorts)
    if large and len(signs) == 1:  # 1234 beside 1,234: thousands are not marked here
        return signs.pop()
    return habits.decimal


def _common_unit(evidence: Evidence) -> str | None:
    """The unit of nearly all cells that have one; None where several are mixed."""
    units: dict[str, int] = {}
    for sort, own in evidence.sorts.items():
        if sort.says:
            units[sort.unit] = units.get(sort.unit, 0) + own.cells
    return common_unit(units, evidence.n_filled, ODD_SHARE * evidence.n_filled)


def _written(decimal: str, unit: str, sorts: list[Sort]) -> str:
    said = ""
    if unit == CREDIT_OR_DEBIT:
        said += ", CR positive and DR negative"
    elif unit:
        said += " in percent" if unit == PERCENT else f" in {unit}"
    if decimal == "," and any(sort.says in (",", "?") for sort in sorts):
        said += " with a decimal comma"
    return said


def _bounds(evidence: Evidence, sorts: list[Sort]) -> str:
    bounds = [evidence.sorts[sort] for sort in sorts if sort.bound]
    if not bounds:
        return ""
    example = min(min(own.kept) for own in bounds)
    n_bounds = sum(own.cells for own in bounds)
    if n_bounds == 1:
        return f"; the bound {example} is read as the number"
    return f"; {n_bounds:,} bounds such as {example} are read as the number"


def dates_of_texts(name: str, evidence: Evidence, habits: Habits, order: str = "") -> Found:
    """Dates in the order that reads most cells, or in the one that is known."""
    both = [f"name-{own}" for own in ("dmy", "mdy") if {own, "name"} <= {*evidence.calendars}]
    counts = {own: _n_order(evidence, own) for own in [*evidence.calendars, *both]}
    if (
        not counts
        or evidence.n_distinct < 2
        or (order and not {order, f"short-{order}"} & {*counts})
    ):
        return _NOTHING
    if order == "ymd" and order not in counts:
        order = "short-ymd"
    order = f"name-{order}" if f"name-{order}" in both else order
    best = order or _best_order(evidence, counts, habits)
    if best == "compact" and not order and evidence.n_distinct < FEWEST_DATES:
        return _NOTHING
    own = reading_orders(best)
    odd = Odd.of(evidence, lambda sort: bool(own & {*sort.orders}))
    return odd, dates(name, evidence, best, odd)


def _best_order(evidence: Evidence, counts: Mapping[str, int], habits: Habits) -> str:
    """The order that reads most cells; of several, the one that the table has.

    21-03-05 is the fifth of March where such cells show more days of a month that way: their years
    are few.
    """
    most = max(counts.values())
    best = sorted(order for order in counts if counts[order] == most)
    short = evidence.calendars["short-ymd"].days.bit_count() if "short-ymd" in best else 0
    others = [order for order in best if order != "short-ymd"]
    shown_days = [evidence.calendars[order.removeprefix("name-")].days for order in others]
    if short > max((days.bit_count() for days in shown_days), default=0):
        return "short-ymd"
    usual = [order for order in others if order.endswith(habits.order)]
    return min(usual or others, key=len)


def dates(name: str, evidence: Evidence, order: str, odd: Odd) -> ColumnReading:
    """A column of moments, and the parts that say something."""
    own = [evidence.calendars[o] for o in reading_orders(order) if o in evidence.calendars]
    calendar = reduce(operator.add, own)
    kind: Kind = "date-time" if calendar.timed else "date"
    both = ", in part the year first" if len(own) > 1 and "ymd" in evidence.calendars else ""
    said = kind + (f", {_FIRST[order]}" if order in _FIRST else "") + both
    said += ", in UTC" if _has_offsets(evidence) else ""
    said += _far_dates(calendar)
    other = {"dmy": "mdy", "mdy": "dmy", "short-ymd": "dmy"}.get(order.removeprefix("name-"))
    if other and _n_order(evidence, order.removeprefix("name-")) == _n_order(evidence, other):
        said += f" (no cell tells; --as '{name}=date-{other}' changes it)"
    return ColumnReading(
        name,
        kind,
        said + odd.sentence(evidence.n_filled, "dates"),
        True,
        order=order,
        parts=date_parts(calendar, order),
        missing=tuple(sorted(odd.texts)),
    )


def _has_offsets(evidence: Evidence) -> bool:
    """Whether some of the moments have an offset from UTC that is not zero."""
    own = (texts.kept for sort, texts in evidence.sorts.items() if sort.orders)
    return any(_OFFSET.search(text) for kept in own for text in kept)


def _far_dates(calendar: Calendar) -> str:
    first, last = (
        np.datetime64(moment, "us").astype("datetime64[D]")
        for moment in (calendar.first, calendar.last)
    )
    usual = _USUAL[0] <= first and last < _USUAL[1]
    return "" if usual else f", from {first} to {last} (--missing, if that stands for none)"


def date_parts(calendar: Calendar, order: str) -> tuple[str, ...]:
    """Days, and what days do not say: weekday, month of several years, hour."""
    parts = ["days"]
    # dates that all are the first of a month stand for the month
    if order != "month" and calendar.weekdays.bit_count() > 1 and calendar.days.bit_count() > 1:
        parts.append("weekday")
    if calendar.last - calendar.first > 366 * DAY and calendar.months.bit_count() > 1:
        parts.append("month")
    if calendar.timed and calendar.hours.bit_count() > 1:
        parts.append("hour")
    return tuple(parts)


def clock(name: str, evidence: Evidence) -> Found:
    odd = Odd.of(evidence, lambda sort: bool(sort.clock))
    day = all(sort.clock == "day" for sort in evidence.sorts if sort.clock)
    kind: Kind = "time" if day else "duration"
    said = ("time of day" if day else "duration") + ", in hours"
    said += odd.sentence(evidence.n_filled, "times" if day else "durations")
    return odd, ColumnReading(name, kind, said, True, missing=tuple(sorted(odd.texts)))


def _identifier(name: str, evidence: Evidence) -> ColumnReading | None:
    """Whole numbers that tell rows apart: row numbers, or numbers that are called so."""
    span, filled = evidence.span, evidence.n_filled
    if span is None or not span.whole or filled < LEAST_ROWS:
        return None
    share = DISTINCT_SHARE if filled >= MANY_ROWS else 1.0
    different = evidence.n_distinct >= share * filled
    if different and span.high - span.low <= RUNNING * filled:
        return left_out_id(name, evidence, "whole numbers that run like row numbers")
    if different and called_id(name, _NUMBER_WORDS):
        return left_out_id(name, evidence, "whole numbers")
    return repeated_id(name, evidence)
