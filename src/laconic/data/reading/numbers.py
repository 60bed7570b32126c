"""Numbers as people write them: decimal comma, thousands, currency, percent, unit, bound.

What a text means depends on the decimal sign, which the text alone does not always say: "1,234" is
1234 with a decimal point and 1.234 with a decimal comma. Both readings are kept, and the whole
column decides.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from laconic.data.reading.words import CURRENCIES, PERCENT, SAME_CURRENCY, TIMES
from laconic.data.tables.cells import is_padded, is_plain_number

_BLANK = "[ \u00a0\u2007\u2009\u202f]"
_GROUP = "[ \u00a0\u2007\u2009\u202f'\u2019]"
_MONEY = "|".join(re.escape(text) for text in sorted(CURRENCIES, key=len, reverse=True))
_UNIT = rf"%|\u2030|\u00b0[CFK]?|{_MONEY}|[^\W\d_](?:[^\W\d_]|[/.\u00b2\u00b3]){{0,11}}"
_NUMBER = re.compile(
    rf"(?P<open>\()?(?P<bound>[<>\u2264\u2265~\u2248]=?)?{_BLANK}*(?P<sign>[-+\u2212])?{_BLANK}*"
    rf"(?P<before>{_MONEY})?{_BLANK}*(?P<inner>[-+\u2212])?{_BLANK}*"
    rf"(?P<body>[0-9](?:{_GROUP}?[0-9.,])*|[.,][0-9]+)(?P<power>[eE][+-]?[0-9]+)?"
    rf"{_BLANK}*(?P<after>{_UNIT})?(?P<last>[-+])?(?P<close>\))?"
)
_GROUPED = re.compile(rf"[0-9]{{1,3}}(?:{_GROUP}[0-9]{{3}})+(?P<rest>[.,][0-9]*)?")
_THOUSANDS = {sign: re.compile(rf"[0-9]{{1,3}}(?:{re.escape(sign)}[0-9]{{3}})+") for sign in ".,"}
_INDIAN = re.compile(r"[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}")
_SIGN = {".": ",", ",": "."}
CREDIT_OR_DEBIT = "CR/DR"
"""The unit of a column of amounts marked CR, to be added, or DR, to be subtracted."""
_CREDIT = {"cr": 1.0, "dr": -1.0}
_NO_CENTS = re.compile(r"(?<=[0-9])(?P<sign>[.,])(?:--?|[\u2013\u2014])(?![0-9])")
"""A price without cents, 12,- or 12.--: the dash is no minus."""


@dataclass(frozen=True)
class NumberText:
    """What a text says as a number, for either decimal sign; None where it says nothing."""

    point: float | None
    comma: float | None
    unit: str = ""
    bound: bool = False
    """A bound such as <5 or 10+, read as the number it names."""
    padded: bool = False
    """Leading zeros, which a number would lose."""

    def value(self, decimal: str) -> float | None:
        return self.point if decimal == "." else self.comma

    def in_unit(self, unit: str, decimal: str) -> float | None:
        """The value in a column of this unit; None for a number of another unit.

        >>> [number_text(text).in_unit("CR/DR", ".") for text in ("5 CR", "5 Dr.", "5")]
        [5.0, -5.0, None]
        """
        value = self.value(decimal)
        if not fits_unit(self.unit, unit) or value is None:
            return None
        if unit != CREDIT_OR_DEBIT:
            return value
        return None if value < 0 else _CREDIT[self.unit] * value

    @property
    def says(self) -> str:
        """Which decimal sign it allows: "." or "," alone, both alike "=", both differently "?"."""
        if self.point is None or self.comma is None:
            return "," if self.point is None else "."
        return "=" if self.point == self.comma else "?"


def fits_unit(own: str, unit: str) -> bool:
    """Whether a number with its own unit, or without one, belongs to a column of ``unit``.

    A share without its sign would be a hundred times another number, an amount that is neither CR
    nor DR of no known sign.
    """
    if unit == CREDIT_OR_DEBIT:
        return own in _CREDIT
    return own == unit or (not own and unit != PERCENT)


def common_unit(units: Mapping[str, int], n_cells: int, most_odd: float) -> str | None:
    """The unit of nearly all of the cells that have one; None where several are mixed.

    >>> common_unit({"kg": 90, "": 10}, 100, 2), common_unit({"kg": 50, "g": 50}, 100, 2)
    ('kg', None)
    >>> common_unit({"cr": 60, "dr": 40}, 100, 2), common_unit({"cr": 60, "": 40}, 100, 2)
    ('CR/DR', None)
    """
    marked = {unit: n for unit, n in units.items() if unit}
    if not marked:
        return ""
    if set(marked) == set(_CREDIT):
        return CREDIT_OR_DEBIT
    unit = max(sorted(marked), key=lambda own: marked[own])
    if unit in _CREDIT and marked[unit] < n_cells - most_odd:
        return None  # which sign has an amount without the mark?
    return unit if sum(marked.values()) - marked[unit] <= most_odd else None


def may_be_number(shape: str) -> bool:
    """Whether a text of this shape, its digits all alike, could be a number."""
    bare = _NO_CENTS.sub(r"\g<sign>00", shape)
    return _NUMBER.fullmatch(bare) is not None or is_plain_number(shape)


def number_text(text: str) -> NumberText | None:
    """The number that a text names, or None.

    >>> number_text("1.234,50 \u20ac")
    NumberText(point=None, comma=1234.5, unit='\u20ac', bound=False, padded=False)
    >>> number_text("1,234").says, number_text("($1.2M)").point, number_text("12 apples, 3 pears")
    ('?', -1200000.0, None)
    >>> [number_text(text).comma for text in ("12,--", "1.250,- \u20ac", "12-")]
    [12.0, 1250.0, -12.0]
    """
    if is_plain_number(text) and text[-1] not in "yYfF":  # infinities are no numbers of a table
        value = float(text)
        if math.isinf(value):  # 1e999 is a code
            return None
        return NumberText(value, _other_sign(text, value), padded=is_padded(text))
    found = _NUMBER.fullmatch(_NO_CENTS.sub(r"\g<sign>00", text))
    if found is None or (found["open"] is None) != (found["close"] is None):
        return None
    unit, factor = _unit(found["before"] or "", found["after"] or "")
    point, comma = _values(found["body"], found["power"] or "")
    if factor == 0.0 or (point is None and comma is None):
        return None
    signs = [found[name] for name in ("sign", "inner") if found[name]]
    signs += ["-"] if found["last"] == "-" else []
    if len(signs) + (found["open"] is not None) > 1 or (found["last"] == "+" and found["bound"]):
        return None
    if found["open"] is not None or (bool(signs) and signs[0] != "+"):
        factor = -factor
    return NumberText(
        None if point is None else factor * point,
        None if comma is None else factor * comma,
        unit,
        found["bound"] is not None or found["last"] == "+",
        is_padded(found["body"]),
    )


def _unit(before: str, after: str) -> tuple[str, float]:
    """The unit by one name, and what the number is multiplied by: 0 where two units stand."""
    if after in TIMES:
        return SAME_CURRENCY.get(before, before), TIMES[after]
    if before and after:
        return "", 0.0
    unit = SAME_CURRENCY.get(before or after, before or after)
    known = unit in CURRENCIES or unit.startswith("\u00b0")
    return (unit if known else unit.lower().rstrip(".")), 1.0


def _other_sign(text: str, value: float) -> float | None:
    """A plain number, were the decimal sign a comma: 1.234 would be a thousand and more."""
    if "." not in text:
        return value
    body = text.lstrip("+-")
    if not _THOUSANDS["."].fullmatch(body) or body.startswith("0"):
        return None
    return math.copysign(float(body.replace(".", "")), value)


def _values(body: str, power: str) -> tuple[float | None, float | None]:
    """Values of the digits with a decimal point, and with a decimal comma."""
    if _GROUPED.fullmatch(body):
        rest = _GROUPED.fullmatch(body)["rest"] or ""  # type: ignore[index]
        body = re.sub(_GROUP, "", body)
        if not rest:
            return float(body), float(body)
        value = float(body.replace(",", ".") + power)
        return (value, None) if rest[0] == "." else (None, value)
    if re.search(_GROUP, body):
        return None, None
    return _with_sign(body, ".", power), _with_sign(body, ",", power)


def _with_sign(body: str, sign: str, power: str) -> float | None:
    """The value of digits, ``sign`` being the decimal sign and the other one for thousands."""
    other = _SIGN[sign]
    whole, _, rest = body.partition(sign)
    if sign in rest or other in rest:
        return None
    if other in whole:
        grouped = _THOUSANDS[other].fullmatch(whole) or (other == "," and _INDIAN.fullmatch(whole))
        if not grouped or whole.startswith("0") or power:
            return None
        whole = whole.replace(other, "")
    if not whole and not rest:
        return None
    return float(f"{whole or 0}.{rest or 0}{power}")
