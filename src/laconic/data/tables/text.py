"""Text tables as they come: plain, packed or piped, in any encoding and with any separator."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from laconic.data.tables.cells import BLANKS, is_plain_number
from laconic.data.tables.columns import shown
from laconic.data.tables.western import Utf8OrWestern

SEPARATORS = "\t;|,"
"""Of two that do as well, the first: a comma may be a decimal comma."""
STDIN = "-"
UTF8 = "utf-8-sig"
"""With or without its mark at the start."""
UNNAMED = "Unnamed: "
"""Before the place of a column without a name: as pandas calls it."""
LONGEST_LINE = 2**24
"""Bytes: 50,000 columns of 300 characters have room."""
_SNIFFED = 65_536
_SNIFFED_LINES = 50
_ANNOUNCED = re.compile(r"sep=(.)\r?\n?", re.IGNORECASE)
"""The first line that Excel writes, and reads, to name the separator."""


_MARKS = (
    (b"PK\x03\x04", "an Excel or zip file", ".xlsx"),
    (b"\xd0\xcf\x11\xe0", "an old Excel file", ".xls"),
    (b"\x1f\x8b", "a gzip file", ".csv.gz"),
    (b"\x28\xb5\x2f\xfd", "a zstd file", ".csv.zst"),
    (b"PAR1", "a Parquet file", ".parquet"),
    (b"ARROW1", "an Arrow file", ".arrow"),
)


class UnreadableFileError(ValueError):
    """The file cannot be read as a table; the sentence says why."""


@dataclass(frozen=True)
class TextFormat:
    """How the text is written; None is found out from the file itself.

    The separator is the one of comma, semicolon, tab and bar that cuts the first lines into
    equally many cells, the most frequent one of the header where several do; the encoding is
    UTF-8 unless the file starts with the mark of UTF-16, or its first letter beyond ASCII is none
    of UTF-8: then it is cp1252, which is said.
    """

    separator: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.separator is not None and len(self.separator) != 1:
            raise ValueError(f"--separator {self.separator!r}: write one character.")


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
    return UTF8


def separator_of(lines: list[str]) -> str:
    """The separator that cuts the lines into equally many cells, two at least.

    >>> separator_of(["size (m, cm);weight", "1,5;2"]), separator_of(["a,b,c", "1,2,3"])
    (';', ',')
    """
    header = re.sub(r'"[^"]*"', "", lines[0]) if lines else ""
    best, most = ",", (False, 0)
    for separator in SEPARATORS:
        rows = [row for row in csv.reader(lines, delimiter=separator) if row]
        widths = {len(row) for row in rows}
        regular = len(widths) == 1 and len(rows[0]) > 1 and len(rows) > 1
        if (regular, header.count(separator)) > most:
            best, most = separator, (regular, header.count(separator))
    return best


class _Replayed(io.RawIOBase):
    """A stream whose first bytes were read already, and whose lines end somewhere.

    A packed file of a megabyte may hold a line of gigabytes, which would be read as a whole.
    """

    def __init__(self, head: bytes, rest: Any) -> None:
        self._head, self._rest = memoryview(head), rest
        self._since = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = bytes(self._head[: len(buffer)]) or self._rest.read(len(buffer))
        self._head = self._head[len(piece) :]
        end = max(piece.rfind(b"\n"), piece.rfind(b"\r"))
        self._since = len(piece) + (self._since if end < 0 else -end - 1)
        if self._since > LONGEST_LINE:
            raise UnreadableFileError(
                f"A line of the file is longer than {LONGEST_LINE:,} bytes: it is no table of rows "
                "and columns, or one without line ends; write each row as a line."
            )
        buffer[: len(piece)] = piece
        return len(piece)


@dataclass(frozen=True)
class Dialect:
    """What the first bytes of a text say of the rest."""

    encoding: str
    separator: str
    announced: bool
    """Whether the first line names the separator, before the header."""

    @staticmethod
    def of(head: bytes, text: TextFormat) -> Dialect:
        for mark, what, suffix in _MARKS:
            if head.startswith(mark):
                raise UnreadableFileError(
                    f"The file is no text: it begins like {what}; call it {suffix}, or save it as "
                    "CSV."
                )
        encoding = text.encoding or encoding_of(head[:4])
        # errors are for the reader proper: the head may end inside a character
        sample = codecs.decode(head, encoding, "replace")
        found = _ANNOUNCED.match(sample)
        if found:
            return Dialect(encoding, text.separator or found[1], True)
        lines = sample.splitlines(keepends=True)
        if len(head) == _SNIFFED:
            lines = lines[:-1] or lines
        separator = text.separator or separator_of(lines[:_SNIFFED_LINES])
        return Dialect(encoding, separator, False)


def dialect_of(path: Path, text: TextFormat) -> Dialect:
    with path.open("rb") as stream:
        return Dialect.of(stream.read(_SNIFFED), text)


@contextmanager
def csv_rows(path: str | Path, text: TextFormat) -> Iterator[Iterator[list[str]]]:
    """Rows of cells, the header first; problems become one sentence."""
    try:
        with open_bytes(path) as raw:
            head = raw.read(_SNIFFED)
            dialect = Dialect.of(head, text)
            replayed: io.RawIOBase = _Replayed(head, raw)
            if text.encoding is None and dialect.encoding == UTF8:
                replayed = Utf8OrWestern(replayed, name_of(path))
            stream = io.BufferedReader(replayed)
            lines = io.TextIOWrapper(stream, encoding=dialect.encoding, newline="")
            if dialect.announced:
                lines.readline()
            # a blank after the separator belongs to no cell, and may stand before a quote
            yield csv.reader(lines, delimiter=dialect.separator, skipinitialspace=True)
            lines.detach()
    except LookupError as error:
        raise UnreadableFileError(f"{text.encoding!r} is no encoding that Python knows.") from error
    except UnicodeError as error:
        known, reason = text.encoding or "UTF-8", getattr(error, "reason", str(error))
        raise UnreadableFileError(
            f"{name_of(path)} is not {known} text ({reason}); name its encoding with "
            "--encoding, for instance cp1252, cp1250 or mac_roman."
        ) from error
    except UnreadableFileError:
        raise
    except (OSError, EOFError, csv.Error) as error:
        hint = "; is a quote never closed?" if "field limit" in str(error) else ""
        raise UnreadableFileError(
            f"{name_of(path)} cannot be read: {first_line(error)}{hint}"
        ) from error
    except Exception as error:
        if type(error).__module__.split(".")[0] != "zstandard":
            raise
        raise UnreadableFileError(f"{name_of(path)} cannot be unpacked: {error}") from error


def header_of(rows: Iterator[list[str]], name: str) -> list[str]:
    """The names of the columns, which must be there and differ.

    A column without a name gets the one that pandas gives it.

    >>> header_of(iter([["", " a", "b "]]), "x.csv")
    ['Unnamed: 0', 'a', 'b']
    """
    cells = next((row for row in rows if row), [])
    names = [cell.strip(BLANKS) or f"{UNNAMED}{j}" for j, cell in enumerate(cells)]
    if not names:
        raise UnreadableFileError(f"{name} is empty; the first line must name the columns.")
    if all(map(is_plain_number, names)) and not all(own.isdigit() for own in names):
        raise UnreadableFileError(
            f"{name} begins with numbers; the first line must name the columns."
        )
    repeated = {own for own, times in Counter(names).items() if times > 1}
    if repeated:
        raise UnreadableFileError(
            f"{name} names column {shown(min(repeated))} more than once; rename one."
        )
    return names


def fitting_row(row: list[str], width: int, line: int, name: str) -> list[str]:
    """The row, without empty cells beyond the header; any other width is refused."""
    if len(row) == width:
        return row
    if len(row) > width and not any(cell.strip(BLANKS) for cell in row[width:]):
        return row[:width]
    hint = "quote cells that hold the separator"
    if len(row) > width and line <= 20:
        hint += f", or remove the lines above the header if it stands in line {line}"
    raise UnreadableFileError(
        f"{name}, line {line}: {len(row)} cells where the header names {width} columns; {hint}."
    )
