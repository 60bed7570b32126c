"""Cells of a text file: which are missing, which are plain numbers. One rule for every reader.

A column of texts is a polars series, or a list where polars is not installed: both branches of a
function say the same, and a test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MISSING_TEXTS = frozenset(
    [
        "", "?", "NA", "N/A", "n/a", "<NA>", "NaN", "nan", "-NaN", "-nan", "null", "NULL", "Null",
        "None", "#N/A", "#N/A N/A", "#NA", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN",
        "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!",
    ]
)  # fmt: skip
"""Missing in every kind of column: what pandas takes for missing, and the errors of Excel."""

BLANKS = " \t\r\n\x0b\x0c\xa0\u2007\u2009\u202f\ufeff"
"""Taken off both ends of a cell. Listed, because Python and polars do not agree on blanks."""

_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_INFINITE = r"[+-]?(?i:inf(?:inity)?)"
_LEADING_ZERO = r"0[0-9]+"
_PLAIN = rf"^(?:{_NUMBER}|{_INFINITE})$"
_INTEGER = r"^[+-]?[0-9]{1,15}$"
_CODE = rf"^{_LEADING_ZERO}$"

_THOUSAND = r"^[+-]?[1-9][0-9]{0,2}\.[0-9]{3}$"

_plain = re.compile(_PLAIN)
_integer = re.compile(_INTEGER)
_code = re.compile(_CODE)
_thousand = re.compile(_THOUSAND)

Texts = Any
"""A polars series of texts, or a sequence of texts."""


def is_plain_number(text: str) -> bool:
    """Whether the text is a number as programs write it: no blanks, commas, units.

    >>> is_plain_number("-1.5e3"), is_plain_number("1,5"), is_plain_number("1_000")
    (True, False, False)
    """
    return _plain.match(text) is not None


def is_padded(text: str) -> bool:
    """Whether leading zeros would be lost in a number, as those of a postcode: 01322.

    >>> is_padded("01322"), is_padded("0"), is_padded("0.5")
    (True, False, False)
    """
    return _code.match(text) is not None


def cleaned(texts: Texts) -> Texts:
    """The cells without blanks around them, None where they are missing.

    >>> cleaned([" a ", "NA", "1"])
    ['a', None, '1']
    """
    pl = polars_of(texts)
    if pl is None:
        stripped = [None if cell is None else cell.strip(BLANKS) for cell in texts]
        return [None if cell in MISSING_TEXTS else cell for cell in stripped]
    own = texts.str.strip_chars(BLANKS)
    return own.set(own.is_in(sorted(MISSING_TEXTS)), None)


def looks(texts: Texts) -> tuple[bool, bool]:
    """Whether cleaned cells are all plain numbers (none with leading zeros), and all whole ones.

    >>> looks(["1", None, "2.5"]), looks(["1", "2"]), looks(["01322", "75001"])
    ((True, False), (True, True), (False, False))
    """
    pl = polars_of(texts)
    if pl is None:
        there = [cell for cell in texts if cell is not None]
        plain = all(_plain.match(cell) and not _code.match(cell) for cell in there)
        return plain, plain and all(_integer.match(cell) for cell in there)
    there = texts.drop_nulls()
    plain = bool(there.str.contains(_PLAIN).all() and not there.str.contains(_CODE).any())
    return plain, plain and bool(there.str.contains(_INTEGER).all())


def doubtful(texts: Texts) -> bool:
    """Whether plain numbers could be thousands marked by points, as 1.234 is in half of Europe.

    >>> doubtful(["1.234", "12.500", "7"]), doubtful(["1.234", "1.5"]), doubtful(["7"])
    (True, False, False)
    """
    if polars_of(texts) is None:
        marked = [cell for cell in texts if cell is not None and "." in cell]
        return bool(marked) and all(map(_thousand.match, marked))
    marked = texts.drop_nulls().filter(texts.drop_nulls().str.contains(".", literal=True))
    return len(marked) > 0 and bool(marked.str.contains(_THOUSAND).all())


def plain_numbers(texts: Texts) -> NDArray[np.float64]:
    """Cleaned cells as numbers; NaN where they are missing or no plain numbers.

    >>> plain_numbers(["1.5", None, "two"])
    array([1.5, nan, nan])
    """
    pl = polars_of(texts)
    if pl is None:
        return np.array(
            [float(cell) if cell is not None and _plain.match(cell) else np.nan for cell in texts]
        )
    # a NaN from the cast itself cannot come: "nan" is missing in every column
    values = texts.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    return np.asarray(values, dtype=np.float64)


def first_odd(texts: Texts, values: NDArray[np.float64]) -> str | None:
    """The first cleaned cell that is there and is no number in ``values``."""
    for i in np.flatnonzero(np.isnan(values)):
        if texts[int(i)] is not None:
            return str(texts[int(i)])
    return None


def polars_of(column: Any) -> Any:
    """The polars module when the column is a polars series, else None."""
    if isinstance(column, Sequence) or type(column).__module__.split(".")[0] != "polars":
        return None
    import polars

    return polars
