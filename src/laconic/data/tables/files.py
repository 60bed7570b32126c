"""Text tables as they come: plain, packed or piped, in any encoding and with any separator."""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from laconic.data.tables.columns import Schema, Table
from laconic.data.tables.kinds import shown

MISSING_TEXTS = frozenset(
    {"", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "Null", "None", "#N/A"}
)
SEPARATORS = ",;\t|"
STDIN = "-"
_SNIFFED = 65_536


class UnreadableFileError(ValueError):
    """The file cannot be read as a table; the sentence says why."""


@dataclass(frozen=True)
class TextFormat:
    """How the text is written; None is found out from the file itself.

    The separator is the most frequent of comma, semicolon, tab and bar in the header; the encoding
    is UTF-8 unless the file starts with the mark of UTF-16.
    """

    separator: str | None = None
    encoding: str | None = None


def name_of(path: str | Path) -> str:
    return "the standard input" if str(path) == STDIN else Path(path).name


def first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


@contextmanager
def open_bytes(path: str | Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked; ``-`` is the standard input."""
    if str(path) == STDIN:
        yield sys.stdin.buffer
        return
    path = Path(path)
    if not path.exists():
        raise UnreadableFileError(f"{path} does not exist.")
    suffix = path.suffix.lower()
    if suffix == ".gz":
        with gzip.open(path, "rb") as packed:
            yield packed  # type: ignore[misc]
    elif suffix == ".zst":
        with path.open("rb") as raw, _zstandard(path).stream_reader(raw) as packed:
            yield packed
    else:
        with path.open("rb") as plain:
            yield plain


def _zstandard(path: Path) -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise UnreadableFileError(
            f"{path.name} needs zstandard to be unpacked; install laconic[stream] or unpack it."
        ) from error
    return zstandard.ZstdDecompressor()


def encoding_of(start: bytes) -> str:
    """From the mark at the start of the file."""
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    return "utf-8-sig"


def separator_of(header: str) -> str:
    return max(SEPARATORS, key=header.count)


@contextmanager
def csv_rows(path: str | Path, text: TextFormat) -> Iterator[Iterator[list[str]]]:
    """Rows of cells, the header first; problems become one sentence."""
    try:
        with open_bytes(path) as raw:
            stream = io.BufferedReader(raw, _SNIFFED) if not hasattr(raw, "peek") else raw  # type: ignore[type-var]
            encoding = text.encoding or encoding_of(stream.peek(4)[:4])
            lines = io.TextIOWrapper(stream, encoding=encoding, newline="")
            header = lines.readline()
            separator = text.separator or separator_of(header)
            first = csv.reader(io.StringIO(header, newline=""), delimiter=separator)
            yield _joined(first, csv.reader(lines, delimiter=separator))
            lines.detach()
    except LookupError as error:
        raise UnreadableFileError(f"{text.encoding!r} is no encoding that Python knows.") from error
    except UnicodeDecodeError as error:
        known = text.encoding or "UTF-8"
        raise UnreadableFileError(
            f"{name_of(path)} is not {known} text ({error.reason}); name its encoding with "
            "--encoding, for instance cp1252."
        ) from error
    except UnreadableFileError:
        raise
    except (OSError, EOFError, csv.Error) as error:
        raise UnreadableFileError(f"{name_of(path)} cannot be read: {first_line(error)}") from error
    except Exception as error:
        if type(error).__module__.split(".")[0] != "zstandard":
            raise
        raise UnreadableFileError(f"{name_of(path)} cannot be unpacked: {error}") from error


def _joined(first: Iterator[list[str]], rest: Iterator[list[str]]) -> Iterator[list[str]]:
    yield from first
    yield from rest


def header_of(rows: Iterator[list[str]], name: str) -> list[str]:
    """The names of the columns, which must be there and differ."""
    names = next(rows, [])
    if not names:
        raise UnreadableFileError(f"{name} is empty; the first line must name the columns.")
    repeated = {text for text in names if names.count(text) > 1}
    if repeated:
        raise UnreadableFileError(
            f"{name} names column {shown(sorted(repeated)[0])} more than once; rename one."
        )
    return names


def refuse_ragged(row: list[str], names: list[str], line: int, name: str) -> None:
    if len(row) != len(names):
        raise UnreadableFileError(
            f"{name}, line {line}: {len(row)} cells where the header names {len(names)} "
            "columns; quote cells that hold the separator."
        )


def number_of(text: str) -> float:
    if "_" in text:  # float() would read 1_000
        raise ValueError(text)
    return float(text)


# Tables from files: CSV with the standard library, Parquet and Arrow with polars.


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


# The column to predict, taken out of a table as class labels.


MOST_CLASSES = 100


def split_target(table: Table, target: str) -> tuple[Table, NDArray[np.str_]]:
    """The other columns, and the labels as texts; what cannot be a class is refused.

    >>> cells = [np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 0.0])]
    >>> table = Table(("x", "late"), ("numeric", "numeric"), (None, None), cells)
    >>> X, label = split_target(table, "late")
    >>> X.names, label.tolist()
    (('x',), ['0', '1', '0'])
    """
    if target not in table.names:
        near = difflib.get_close_matches(target, table.names, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(table.names[:8])}."
        raise ValueError(f"There is no column {target!r} in the table; {hint}")
    j = table.names.index(target)
    cells, texts = table.column(j), table.categories[j]
    if texts is not None:
        gone, label = cells < 0, np.array([*texts, ""])[cells]
    else:
        values, place = np.unique(cells, return_inverse=True)
        gone, label = np.isnan(cells), np.array([f"{value:.17g}" for value in values])[place]
    if gone.any():
        raise ValueError(
            f"Column {shown(target)} is missing in {int(gone.sum())} rows; drop them first."
        )
    n_classes = len(np.unique(label))
    if n_classes > MOST_CLASSES:
        raise ValueError(
            f"Column {shown(target)} has {n_classes:,} different values: that is not a class; "
            f"choose a column with at most {MOST_CLASSES}."
        )
    others = [k for k in range(len(table.names)) if k != j]
    if not others:
        raise ValueError(f"The table has no column beside {shown(target)} to predict it from.")
    return table[:, others], label
