"""Cells of a text table: numbers, categories, missing; and a digest of what they mean."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Columns = dict[str, NDArray[Any]]
"""Column name -> float64 values (NaN is missing) or objects (texts, None is missing)."""

TARGET = "target"
_INTEGRAL = re.compile(r"(-?\d+)\.0+")
_NUMBERED = re.compile(r"(\D+)(\d+)(?:-|\.\.\1)(\d+)")


class DatasetNotFoundError(LookupError):
    """A named data set is neither in the folder, nor in the cache, nor downloadable."""


class DatasetDownloadError(DatasetNotFoundError):
    """A data set could not be fetched: no network, no such address, or a truncated answer."""


class DatasetChecksumError(ValueError):
    """A data set was found, but its bytes or its values are not the expected ones."""


def canonical_text(cell: str) -> str:
    """A category as text: a code written ``"3.0"`` is the code ``"3"``.

    >>> canonical_text(" 3.00 "), canonical_text("3.5")
    ('3', '3.5')
    """
    cell = cell.strip()
    found = _INTEGRAL.fullmatch(cell)
    return found[1] if found else cell


def read_column(cells: Sequence[str] | NDArray[Any], *, as_text: bool) -> NDArray[Any]:
    """Numbers when every cell is empty or a number, else texts; an empty cell is missing.

    >>> read_column(["1", "", "2.5"], as_text=False)
    array([1. , nan, 2.5])
    >>> read_column(["1.0", "", "2"], as_text=True)
    array(['1', None, '2'], dtype=object)
    """
    if isinstance(cells, np.ndarray) and cells.dtype != object:
        return cells
    if not as_text:
        try:
            return np.array([float(cell) if cell else np.nan for cell in cells], dtype=np.float64)
        except ValueError:  # a column of texts, though no list of categories names it
            pass
    return np.array([canonical_text(cell) or None for cell in cells], dtype=object)


def read_classes(labels: Iterable[Any]) -> NDArray[Any]:
    """Class labels: integers when every one reads as an integer, else texts."""
    texts = [canonical_text(str(label)) for label in labels]
    try:
        return np.array([int(text) for text in texts], dtype=np.int64)
    except ValueError:
        return np.array(texts, dtype=str)


def expand_ranges(words: Iterable[str]) -> list[str]:
    """Names, with ``a2..a4`` or ``Soil_Type1-3`` written out.

    >>> expand_ranges(["x", "a2..a4", "Soil_Type1-2"])
    ['x', 'a2', 'a3', 'a4', 'Soil_Type1', 'Soil_Type2']
    """
    names: list[str] = []
    for word in words:
        found = _NUMBERED.fullmatch(word)
        if found:
            stem, first, last = found[1], int(found[2]), int(found[3])
            names += [f"{stem}{number}" for number in range(first, last + 1)]
        else:
            names.append(word)
    return names


def declared_columns(text: str, features: Sequence[str]) -> tuple[list[str], list[str]]:
    """Columns that an index declares categorical, and those that it declares 0/1.

    The text lists names separated by spaces, ranges (``a2..a16``, ``Soil_Type1-40``), ``all``, or
    ``all but NAME ...``; with ``0/1`` in the text, ranges and ``all`` are indicators.

    >>> declared_columns("all but c", ["a", "b", "c"])
    (['a', 'b'], [])
    >>> declared_columns("colour", ["colour", "size"])
    (['colour'], [])
    >>> declared_columns("a1..a2 are 0/1", ["a1", "a2", "a3"])
    ([], ['a1', 'a2'])
    """
    words = text.split()
    if words[:1] == ["all"]:
        spared = set(words[2:]) if words[1:2] == ["but"] else set()
        chosen = [name for name in features if name not in spared]
        return ([], chosen) if "0/1" in words else (chosen, [])
    plain = set(words)
    ranged = set(expand_ranges(words)) - plain
    if "0/1" in text:
        return [n for n in features if n in plain], [n for n in features if n in ranged]
    return [n for n in features if n in plain | ranged], []


def content_digest(columns: Columns, labels: NDArray[Any]) -> str:
    """sha256 of the values of a table, whatever the spelling of its file.

    Column by column, row order kept: float64 in little-endian bytes (one NaN, one zero), texts in
    UTF-8 between unit separators, then the class texts. Column names do not enter: they are ours.

    >>> one = content_digest({"a": np.array([1.0, np.nan])}, np.array(["x", "y"]))
    >>> one == content_digest({"b": np.array([1.0, -np.nan])}, np.array(["x", "y"]))
    True
    >>> one == content_digest({"a": np.array([1.0, 2.0])}, np.array(["x", "y"]))
    False
    """
    digest = hashlib.sha256()
    for column in columns.values():
        if column.dtype == object:
            digest.update(b"text\x1e")
            digest.update("\x1f".join("" if cell is None else cell for cell in column).encode())
        else:
            values = np.where(np.isnan(column), np.nan, column + 0.0)
            digest.update(b"number\x1e")
            digest.update(values.astype("<f8").tobytes())
        digest.update(b"\x1d")
    digest.update("\x1f".join(str(label) for label in labels).encode())
    return digest.hexdigest()
