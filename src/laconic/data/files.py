"""Tables from files: CSV with the standard library, Parquet and Arrow with polars."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from laconic.data.columns import Schema, Table, shown

MISSING_TEXTS = frozenset(
    {"", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "Null", "None", "#N/A"}
)
_SEPARATORS = ",;\t|"


class UnreadableFileError(ValueError):
    """The file cannot be read as a table; the sentence says why."""


def read_table(path: str | Path) -> Table:
    """Read a CSV (``.csv``, ``.tsv``, ``.txt``, also ``.gz``), Parquet or Arrow file.

    The separator of a CSV is the most frequent of comma, semicolon, tab and bar in its header. A
    column is numeric when every cell that is not missing reads as a number.
    """
    path = Path(path)
    if not path.exists():
        raise UnreadableFileError(f"{path} does not exist.")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in (".parquet", ".arrow", ".feather", ".ipc"):
        return _read_with_polars(path)
    return _read_csv(path, packed=bool(suffixes) and suffixes[-1] == ".gz")


def _read_with_polars(path: Path) -> Table:
    try:
        import polars as pl
    except ImportError as error:
        raise UnreadableFileError(
            f"{path.name} needs polars to be read; install laconic[stream] or give a CSV file."
        ) from error
    read = pl.read_parquet if path.suffix.lower() == ".parquet" else pl.read_ipc
    try:
        frame: Any = read(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise UnreadableFileError(f"{path.name} cannot be read: {_first_line(error)}") from error
    return Schema.learn(frame).table


def _read_csv(path: Path, *, packed: bool) -> Table:
    try:
        raw = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableFileError(
            f"{path.name} is not UTF-8 text (byte {error.start}); save it as UTF-8."
        ) from error
    except (OSError, EOFError) as error:
        raise UnreadableFileError(f"{path.name} cannot be read: {_first_line(error)}") from error
    header = text.split("\n", 1)[0]
    separator = max(_SEPARATORS, key=header.count)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    names, columns = _columns_of(rows, path.name)
    return Schema.learn(
        {name: _typed(cells) for name, cells in zip(names, columns, strict=True)}
    ).table


def _columns_of(rows: Iterable[list[str]], name: str) -> tuple[list[str], list[list[str]]]:
    iterator = iter(rows)
    names = next(iterator, [])
    if not names:
        raise UnreadableFileError(f"{name} is empty; the first line must name the columns.")
    repeated = {text for text in names if names.count(text) > 1}
    if repeated:
        raise UnreadableFileError(
            f"{name} names column {shown(sorted(repeated)[0])} more than once; rename one."
        )
    kept: list[list[str]] = []
    for number, row in enumerate(iterator, start=2):
        if not row:
            continue
        if len(row) != len(names):
            raise UnreadableFileError(
                f"{name}, line {number}: {len(row)} cells where the header names {len(names)} "
                "columns; quote cells that hold the separator."
            )
        kept.append(row)
    if not kept:
        raise UnreadableFileError(f"{name} has a header and no rows.")
    return names, [list(cells) for cells in zip(*kept, strict=True)]


def _typed(cells: list[str]) -> list[Any]:
    stripped = [cell.strip() for cell in cells]
    values = [None if cell in MISSING_TEXTS else cell for cell in stripped]
    try:
        return [None if cell is None else _number(cell) for cell in values]
    except ValueError:
        return values


def _number(text: str) -> float:
    if "_" in text:  # float() would read 1_000
        raise ValueError
    return float(text)


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
