"""Tables from files: CSV with the standard library, Parquet and Arrow with polars."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from laconic.data.columns import Schema, Table
from laconic.data.text_files import (
    MISSING_TEXTS,
    TextFormat,
    UnreadableFileError,
    csv_rows,
    first_line,
    header_of,
    name_of,
    number_of,
    refuse_ragged,
)

__all__ = ["BINARY", "MISSING_TEXTS", "TextFormat", "UnreadableFileError", "read_table"]

BINARY = (".parquet", ".arrow", ".feather", ".ipc")


def read_table(path: str | Path, text: TextFormat | None = None) -> Table:
    """Read a CSV (``.csv``, ``.tsv``, ``.txt``, also ``.gz`` and ``.zst``), Parquet or Arrow file.

    ``-`` is CSV on the standard input. A column of a CSV is numeric when every cell that is not
    missing reads as a number.
    """
    if Path(path).suffix.lower() in BINARY:
        return _read_with_polars(Path(path))
    name = name_of(path)
    with csv_rows(path, text or TextFormat()) as rows:
        names = header_of(rows, name)
        columns = _columns_of(rows, names, name)
    return Schema.learn(
        {name: _typed(cells) for name, cells in zip(names, columns, strict=True)}
    ).table


def _read_with_polars(path: Path) -> Table:
    try:
        import polars as pl
    except ImportError as error:
        raise UnreadableFileError(
            f"{path.name} needs polars to be read; install laconic[stream] or give a CSV file."
        ) from error
    if not path.exists():
        raise UnreadableFileError(f"{path} does not exist.")
    read = pl.read_parquet if path.suffix.lower() == ".parquet" else pl.read_ipc
    try:
        frame: Any = read(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise UnreadableFileError(f"{path.name} cannot be read: {first_line(error)}") from error
    if not frame.height:
        raise UnreadableFileError(f"{path.name} has no rows.")
    return Schema.learn(frame).table


def _columns_of(rows: Iterator[list[str]], names: list[str], name: str) -> list[list[str]]:
    kept: list[list[str]] = []
    for line, row in enumerate(rows, start=2):
        if row:
            refuse_ragged(row, names, line, name)
            kept.append(row)
    if not kept:
        raise UnreadableFileError(f"{name} has a header and no rows.")
    return [list(cells) for cells in zip(*kept, strict=True)]


def _typed(cells: list[str]) -> list[Any]:
    stripped = [cell.strip() for cell in cells]
    values = [None if cell in MISSING_TEXTS else cell for cell in stripped]
    try:
        return [None if cell is None else number_of(cell) for cell in values]
    except ValueError:
        return values
