"""Dates, times of day and durations as people write them.

All are whole microseconds, of a date those since 1970-01-01, so that a text and the same moment
in a typed column are the same number. A moment with an offset from UTC is told in UTC, as databases
and frames keep it; a time of day without a date stays the one on the wall.
"""

from __future__ import annotations

import calendar
import re
from datetime import date
from functools import lru_cache

from laconic.data.reading.words import MONTHS

SECOND = 1_000_000
HOUR, DAY = 3_600 * SECOND, 86_400 * SECOND
_EPOCH = date(1970, 1, 1).toordinal()
AT = ("at", "à", "um", "om", "alle")
"""Words between a date and a time."""
_TIME = (
    r"(?P<h>[0-9]{1,2})(?::|\s?[Hh]\s?)(?P<m>[0-9]{2})(?::(?P<s>[0-9]{2}(?:[.,][0-9]+)?))?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?(?:\s*(?:Z|UTC|GMT)|\s*(?P<off>[+-][0-9]{2}:?(?:[0-9]{2})?))?"
)
_THEN = rf"(?:(?:[T\s]|,\s)\s*(?:(?:{'|'.join(AT)})\s)?{_TIME})?"
_NAME = "|".join(sorted(MONTHS, key=len, reverse=True))
_DAY_NAME = r"(?:[^\W\d_]{2,10}\.?,?\s+)?"
_NUMERIC = re.compile(
    rf"(?P<a>[0-9]{{1,4}})(?P<sign>[-/.\s])(?P<b>[0-9]{{1,2}})(?P=sign)(?P<c>[0-9]{{1,4}}){_THEN}"
)
_DAY_FIRST = re.compile(
    rf"{_DAY_NAME}(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th|er|\.)?[\s\-/.]*(?P<name>{_NAME})\.?"
    rf"[\s,\-/.]*(?P<year>[0-9]{{4}}|[0-9]{{2}}){_THEN}",
    re.IGNORECASE,
)
_MONTH_FIRST = re.compile(
    rf"{_DAY_NAME}(?P<name>{_NAME})\.?[\s\-/]*(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)?"
    rf"(?:,\s*|\s+|-)(?P<year>[0-9]{{4}}){_THEN}",
    re.IGNORECASE,
)
_MONTH = re.compile(
    rf"(?P<name>{_NAME})\.?[\s\-/]*(?P<year>[0-9]{{4}}|[0-9]{{2}})"
    r"|(?P<y>(?:19|20)[0-9]{2})[-/](?P<mm>[0-9]{2})|(?P<mm2>[0-9]{1,2})/(?P<y2>(?:19|20)[0-9]{2})",
    re.IGNORECASE,
)
_AS_UNIX = re.compile(
    rf"{_DAY_NAME}(?P<name>{_NAME})\s+(?P<day>[0-9]{{1,2}})\s+{_TIME}\s+(?:[A-Z]{{3,4}}\s+)?"
    r"(?P<year>[0-9]{4})",
    re.IGNORECASE,
)
_NAMED = (_DAY_FIRST, _MONTH_FIRST, _AS_UNIX)
_POINTS = re.compile(r"\b([0-9]{1,2})\.([0-9]{2})\.([0-9]{2}(?:\.[0-9]+)?)(?=\s*[AaPp][Mm]$)")
_COMPACT = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})(?:[T ]?([0-9]{2})([0-9]{2})([0-9]{2})?)?")
_CLOCK = re.compile(rf"(?P<minus>-)?(?:(?P<days>[0-9]+)\s*(?:days?|d)?,?\s+)?{_TIME}")
_HALF_DAY = re.compile(r"(?P<h>[0-9]{1,2})(?P<m>)(?P<s>)\s*(?P<half>[AaPp]\.?[Mm]\.?)")
_MINUTES = re.compile(r"(?P<minus>-)?(?P<m>[0-9]{1,2}):(?P<s>[0-9]{2}[.,][0-9]+)")
_LONG_CLOCK = re.compile(r"(?P<minus>-)?(?P<h>[0-9]{2,4})[:Hh](?P<m>[0-9]{2})(?::(?P<s>[0-9]{2}))?")
HOUR_UNITS = {
    1.0: ("h", "hr", "hrs", "hour", "hours", "heure", "heures", "std", "stunden", "stunde"),
    24.0: ("d", "day", "days", "j", "jour", "jours", "tag", "tage"),
    168.0: ("w", "wk", "wks", "week", "weeks", "semaine", "semaines", "woche", "wochen"),
    1.0 / 60.0: ("m", "min", "mins", "mn", "minute", "minutes", "minuten"),
    1.0 / 3600.0: ("s", "sec", "secs", "second", "seconds", "seconde", "secondes", "sekunden"),
}
"""Hours of each unit, and how it is written; the first is one letter."""
_UNIT_HOURS = {unit: hours for hours, units in HOUR_UNITS.items() for unit in units}
_PART = re.compile(r"([0-9]+(?:[.,][0-9]+)?)\s*([^\W\d_]+)\.?,?\s*(?:and\s+|et\s+|und\s+)?")
_ISO = re.compile(r"P(?:([0-9]+)D)?(?:T(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9.]+)S)?)?")


def reading_orders(order: str) -> frozenset[str]:
    """The orders that a column of one order may have too: 2024-01-31 leaves no doubt.

    A column of "name-dmy" has months by name beside 31/01/2024.

    >>> sorted(reading_orders("dmy")), sorted(reading_orders("month"))
    (['dmy', 'ymd'], ['month'])
    >>> sorted(reading_orders("name-dmy"))
    ['dmy', 'name', 'ymd']
    """
    parts = order.split("-") if order.startswith("name-") else [order]
    return frozenset([*parts, "ymd"] if parts[0] in ("dmy", "mdy", "name") else parts)


def may_be_date(shape: str) -> bool:
    """Whether a text of this shape, its digits all alike, could be a date."""
    forms = (_NUMERIC, *_NAMED, _COMPACT)
    if any(form.fullmatch(_with_colons(shape)) for form in forms):
        return True
    return any(_MONTH.fullmatch(shape.replace("1111", year)) for year in ("1111", "1911"))


def may_be_clock(shape: str) -> bool:
    """Whether a text of this shape could be a clock time or a duration."""
    return _CLOCK.fullmatch(shape) is not None or clock_text(shape) is not None


def _with_colons(text: str) -> str:
    """Databases write 08.42.00 PM after a month by name."""
    return _POINTS.sub(r"\1:\2:\3", text)


@lru_cache(maxsize=65_536)
def date_texts(text: str) -> tuple[tuple[str, int], ...]:
    """The orders in which a text is a date, and the moment in each.

    >>> [(order, moment / DAY) for order, moment in date_texts("01/02/2024")]
    [('dmy', 19754.0), ('mdy', 19724.0)]
    >>> [(order, moment / DAY) for order, moment in date_texts("31.01.24 6:00 PM")]
    [('dmy', 19753.75)]
    >>> date_texts("2024-01-31T23:30:00-05:00") == date_texts("2024-02-01 04:30Z")
    True
    >>> date_texts("5 apples")
    ()
    """
    found: list[tuple[str, int | None]] = []
    numeric = _NUMERIC.fullmatch(text)
    if numeric:
        a, b, c = numeric["a"], numeric["b"], numeric["c"]
        time = _time_in_utc(numeric)
        if len(a) == 4 and len(c) <= 2:
            found = [("ymd", _days(a, b, c, time))]
        elif len(a) <= 2 and len(c) in (2, 4):
            found = [("dmy", _days(c, b, a, time))]
            if numeric["sign"] != ".":  # nobody writes the month first before a point
                found.append(("mdy", _days(c, a, b, time)))
                if len(a) == len(c) == 2:
                    found.append(("short-ymd", _days(a, b, c, time)))
    forms = () if numeric else _NAMED
    named = next(filter(None, (form.fullmatch(_with_colons(text)) for form in forms)), None)
    if named:
        month = str(MONTHS[named["name"].lower()])
        found = [("name", _days(named["year"], month, named["day"], _time_in_utc(named)))]
    if not found:
        found = [("month", _month(text)), ("compact", _compact(text))]
    return tuple((order, value) for order, value in found if value is not None)


def _days(year: str, month: str, day: str, time: int | None) -> int | None:
    y = int(year)
    if len(year) == 2:
        y += 2000 if y < 69 else 1900  # as POSIX reads two digits
    m, d = int(month), int(day)
    if time is None or not (1 <= y <= 9999 and 1 <= m <= 12):
        return None
    if not 1 <= d <= calendar.monthrange(y, m)[1]:
        return None
    return (date(y, m, d).toordinal() - _EPOCH) * DAY + time


def _time_of(found: re.Match[str]) -> int | None:
    """Since midnight; None for a time that does not exist."""
    if found["h"] is None:
        return 0
    hour, minute = int(found["h"]), int(found["m"] or 0)
    second = float((found["s"] or "0").replace(",", "."))
    half = (found["half"] or "").lower()[:1]
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "p" else 0)
    if hour > 23 or minute > 59 or second >= 61:
        return None
    return (3_600 * hour + 60 * minute) * SECOND + round(second * SECOND)


def _time_in_utc(found: re.Match[str]) -> int | None:
    """Since midnight of the date that is written; before it or after its end where UTC is."""
    time, offset = _time_of(found), (found["off"] or "").replace(":", "")
    if time is None or not offset:
        return time
    ahead = (3_600 * int(offset[1:3]) + 60 * int(offset[3:] or 0)) * SECOND
    return time + ahead if offset[0] == "-" else time - ahead


def _month(text: str) -> int | None:
    found = _MONTH.fullmatch(text)
    if not found:
        return None
    year = found["year"] or found["y"] or found["y2"]
    month = found["mm"] or found["mm2"] or str(MONTHS[found["name"].lower()])
    return _days(year, month, "1", 0)


def _compact(text: str) -> int | None:
    found = _COMPACT.fullmatch(text)
    if not found or not 1900 <= int(found[1]) <= 2100:
        return None
    hour, minute, second = (int(part or 0) for part in found.groups()[3:])
    if hour > 23 or minute > 59 or second > 59:
        return None
    time = (3_600 * hour + 60 * minute + second) * SECOND
    return _days(found[1], found[2], found[3], time)


def clock_text(text: str) -> tuple[int, bool] | None:
    """A clock time or a duration, and whether it may be a time of day.

    >>> clock_text("12:30") == (12.5 * HOUR, True), clock_text("1:7")
    (True, None)
    >>> [clock_text(text)[0] / HOUR for text in ("1 day, 02:00", "1h 15min", "PT90M", "30:00:00")]
    [26.0, 1.25, 1.5, 30.0]
    >>> [clock_text(text)[0] / HOUR for text in ("14h30", "30h15", "5 pm", "36:00.0")]
    [14.5, 30.25, 17.0, 0.6]
    """
    found = _CLOCK.fullmatch(text)
    if found:
        time = _time_of(found)
        if time is None:
            return _long_clock(text)
        time += DAY * int(found["days"] or 0)
        plain = found["days"] is None and found["minus"] is None
        return (-time if found["minus"] else time), plain
    half = _HALF_DAY.fullmatch(text)
    if half:
        time = _time_of(half)
        return None if time is None else (time, True)
    return _long_clock(text) or _minutes(text) or _in_units(text)


def _long_clock(text: str) -> tuple[int, bool] | None:
    found = _LONG_CLOCK.fullmatch(text)
    if not found or int(found["m"]) > 59 or int(found["s"] or 0) > 59:
        return None
    time = (3_600 * int(found["h"]) + 60 * int(found["m"]) + int(found["s"] or 0)) * SECOND
    return (-time if found["minus"] else time), False


def _minutes(text: str) -> tuple[int, bool] | None:
    """Minutes and seconds, where a fraction of a second leaves no doubt: 42:20.5."""
    found = _MINUTES.fullmatch(text)
    if not found or float(found["s"].replace(",", ".")) >= 60:
        return None
    time = round((60 * int(found["m"]) + float(found["s"].replace(",", "."))) * SECOND)
    return (-time if found["minus"] else time), False


def _in_units(text: str) -> tuple[int, bool] | None:
    iso = _ISO.fullmatch(text)
    if iso and any(iso.groups()):
        parts = [float(part or 0) for part in iso.groups()]
        hours = parts[0] * 24 + parts[1] + parts[2] / 60 + parts[3] / 3600
        return round(hours * HOUR), False
    hours, at = 0.0, 0
    while at < len(text):
        part = _PART.match(text, at)
        if not part or part[2].lower() not in _UNIT_HOURS:
            return None
        hours += float(part[1].replace(",", ".")) * _UNIT_HOURS[part[2].lower()]
        at = part.end()
    return (round(hours * HOUR), False) if at else None
