"""A file in chunks of rows: constant memory, and the one way in which text files are read.

A chunk holds the cells as they stand in the file: texts of a CSV, values of Parquet and Arrow. It
is a polars frame, or a dict of lists where polars is not installed. Regular CSV goes through
polars; packed, piped, quoted or oddly encoded CSV through the standard library. The cells are the
same either way.
"""

from __future__ import annotations

import codecs
import contextlib
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from laconic.data.tables.cells import BLANKS, cleaned, first_odd, plain_numbers
from laconic.data.tables.columns import shown
from laconic.data.tables.text import (
    STDIN,
    UTF8,
    TextFormat,
    UnreadableFileError,
    csv_rows,
    dialect_of,
    first_line,
    fitting_row,
    header_of,
    name_of,
)

CHUNK_ROWS = 131_072
PARQUET = frozenset({".parquet", ".pq"})
ARROW = frozenset({".arrow", ".feather", ".ipc"})
BINARY = PARQUET | ARROW
EXCEL = frozenset({".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"})

_PIECE = 1 << 24
_AT_ONCE, _CELLS = 4, 1 << 24
"""Chunks that are read in one slice of a binary file, and the cells that these may have."""
_LONG_GROUP = 1 << 21
"""Rows of a Parquet row group beyond which it is read page by page."""
POLARS_ADDRESSES = 1_200_000_000
"""Address space that polars reserves until it has read its first lines, on two processors; of it
some 120 MB are used. Short of it, it ends the process, or its import leaves half a module."""


def polars_or_none() -> Any:
    """The module; None where it is not installed."""
    if "polars" not in sys.modules and addresses_left() < POLARS_ADDRESSES:
        raise MemoryError(
            "the memory is not enough to read a table: polars reserves "
            f"{POLARS_ADDRESSES / 1e9:g} GB and the limit of this process (ulimit -v) leaves less"
        )
    try:
        import polars
    except ImportError:
        return None
    return polars


def memory_left() -> float:
    """Bytes that this process may still take: of its limit, its container's, the machine's.

    Infinity where nothing is told of one of them.
    """
    left = addresses_left()
    with contextlib.suppress(OSError, ValueError):  # ValueError: "max", no limit
        own = Path("/sys/fs/cgroup")
        used = int((own / "memory.current").read_text()) - _of(own / "memory.stat", "file")
        left = min(left, int((own / "memory.max").read_text()) - used)
    with contextlib.suppress(OSError):
        left = min(left, 1024 * _of(Path("/proc/meminfo"), "MemAvailable:"))
    return left


def addresses_left() -> float:
    """Bytes of address space up to the limit of this process; infinity without one."""
    try:
        import resource

        most, _ = resource.getrlimit(resource.RLIMIT_AS)
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        return math.inf
    return math.inf if most == resource.RLIM_INFINITY else most - taken


def _of(path: Path, name: str) -> int:
    """The number beside a name in a list of them; 0 where it is not there."""
    lines = (line.split() for line in path.read_text().splitlines())
    return next((int(words[1]) for words in lines if words[0] == name), 0)


def is_text(path: str | Path) -> bool:
    return Path(path).suffix.lower() not in BINARY | EXCEL


def read_chunks(
    path: str | Path,
    text: TextFormat | None = None,
    *,
    columns: Sequence[str] | None = None,
    chunk_rows: int = CHUNK_ROWS,
) -> Iterator[Any]:
    """Frames (or dicts of lists) of at most ``chunk_rows`` rows, as they stand in the file.

    Parameters
    ----------
    path : str or Path
        ``-`` is the standard input.
    text : TextFormat, optional
    columns : list of str, optional
        The columns to read (default: all).
    chunk_rows : int
    """
    text = text or TextFormat()
    pl = polars_or_none()
    suffix = Path(path).suffix.lower()
    if suffix in EXCEL:
        return iter([_sheet(_needed_polars(pl, path), Path(path), columns)])
    if not is_text(path):
        return _binary_chunks(_needed_polars(pl, path), Path(path), columns, chunk_rows)
    plain = str(path) != STDIN and suffix not in (".gz", ".zst") and text.encoding is None
    if pl is not None and plain and Path(path).is_file() and _is_regular(Path(path), text):
        return _regular_chunks(pl, Path(path), text, columns, chunk_rows)
    return _any_chunks(pl, path, text, columns, chunk_rows)


def _needed_polars(pl: Any, path: str | Path) -> Any:
    if pl is None:
        raise UnreadableFileError(
            f"{name_of(path)} needs polars to be read; install laconic[stream] or give a CSV file."
        )
    return pl


def _is_regular(path: Path, text: TextFormat) -> bool:
    """UTF-8 without quotes, empty lines or line ends but LF, equally many separators in a line.

    polars fills short lines with empty cells and refuses long ones, so that equal totals mean
    equal lines; anything else is read, and told line by line, by the standard library.
    """
    dialect = dialect_of(path, text)
    if dialect.encoding != UTF8 or dialect.announced or not dialect.separator.isascii():
        return False
    separator, decode = dialect.separator.encode(), codecs.getincrementaldecoder("utf-8")().decode
    lines = found = 0
    last = b"\n"  # an empty first line is irregular too
    with path.open("rb") as stream:
        per_line = stream.readline().count(separator)
        stream.seek(0)
        while piece := stream.read(_PIECE):
            joined = last + piece
            if b'"' in piece or b"\r" in piece or b"\0" in piece or b"\n\n" in joined:
                return False
            try:
                decode(piece)
            except UnicodeDecodeError:
                return False
            lines, found = lines + piece.count(b"\n"), found + piece.count(separator)
            last = piece[-1:]
    lines += last != b"\n"
    return per_line > 0 and lines > 1 and found == lines * per_line


def _wanted(columns: Sequence[str] | None, known: list[str], name: str) -> list[str]:
    absent = [column for column in columns or () if column not in known]
    if absent:
        raise UnreadableFileError(
            f"{name} has no column {shown(absent[0])}, which is to be read; it has "
            f"{', '.join(shown(column) for column in known[:8])}."
        )
    return known if columns is None else list(dict.fromkeys(columns))


def _binary_chunks(
    pl: Any, path: Path, columns: Sequence[str] | None, chunk_rows: int
) -> Iterator[Any]:
    if not path.exists():
        raise UnreadableFileError(f"{path} does not exist.")
    parquet = path.suffix.lower() in PARQUET
    try:
        lazy = pl.scan_parquet(path, glob=False) if parquet else pl.scan_ipc(path)
        wanted = _wanted(columns, lazy.collect_schema().names(), path.name)
        pages = _pages(path, wanted, chunk_rows) if parquet else None
        if pages is not None:
            yield from map(pl.from_arrow, pages)
            return
        # slices, not batches of one reading: those are read ahead, more of them in longer files
        at_once = chunk_rows * max(1, min(_AT_ONCE, _CELLS // (chunk_rows * max(1, len(wanted)))))
        rows = lazy.select(wanted)
        for start in range(0, int(lazy.select(pl.len()).collect().item()), at_once):
            part = rows.slice(start, at_once).collect()
            yield from part.iter_slices(chunk_rows)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise UnreadableFileError(f"{path.name} cannot be read: {first_line(error)}") from error


def _pages(path: Path, columns: list[str], chunk_rows: int) -> Any:
    """Chunks of a Parquet file of long row groups, page by page; None where slices do as well.

    polars walks over the pages before a slice: of a row group of 20 million rows that takes longer
    than to read it. pyarrow, where it is there, goes on where it stopped.
    """
    try:
        import pyarrow.parquet as pq
    except ImportError:
        return None
    with pq.ParquetFile(path) as file:
        groups = range(file.metadata.num_row_groups)
        if max((file.metadata.row_group(g).num_rows for g in groups), default=0) <= _LONG_GROUP:
            return None
    return _in_order_of_pages(pq, path, columns, chunk_rows)


def _in_order_of_pages(pq: Any, path: Path, columns: list[str], chunk_rows: int) -> Iterator[Any]:
    from pyarrow import ArrowException

    try:
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=_PIECE >> 4) as file:
            yield from file.iter_batches(chunk_rows, columns=columns, use_threads=False)
    except ArrowException as error:
        raise OSError(first_line(error)) from error


def _sheet(pl: Any, path: Path, columns: Sequence[str] | None) -> Any:
    """The one sheet of an Excel file that holds cells, in the types that Excel gave them."""
    if not path.exists():
        raise UnreadableFileError(f"{path} does not exist.")
    try:
        import fastexcel

        book = fastexcel.read_excel(path)
        filled = [
            name
            for name in book.sheet_names
            if book.load_sheet(name, header_row=None).total_height > 0
        ]
    except ImportError as error:
        raise UnreadableFileError(
            f"{path.name} is an Excel file, which needs fastexcel to be read; install "
            "laconic[excel], or save it as CSV."
        ) from error
    except Exception as error:  # fastexcel has errors of its own, without a common public class
        raise UnreadableFileError(f"{path.name} cannot be read: {first_line(error)}") from error
    if len(filled) != 1:
        which = f"{len(filled)} sheets ({', '.join(filled)})" if filled else "no sheet"
        raise UnreadableFileError(
            f"{path.name} has {which} with cells; save the one to read as a file of its own."
        )
    # all rows are looked at for the types: by default a thousand of them
    frame = book.load_sheet(filled[0], header_row=0, schema_sample_rows=None).to_polars()
    cells = ["" if name.startswith("__UNNAMED__") else name for name in frame.columns]
    frame.columns = header_of(iter([cells]), path.name)
    return frame.select(_wanted(columns, list(frame.columns), path.name))


def _regular_chunks(
    pl: Any, path: Path, text: TextFormat, columns: Sequence[str] | None, chunk_rows: int
) -> Iterator[Any]:
    with csv_rows(path, text) as rows:
        names = header_of(rows, path.name)
    wanted = _wanted(columns, names, path.name)
    separator = dialect_of(path, text).separator
    try:
        for lines in _pieces(path):
            # piece by piece: a lazy scan reads ahead of whoever takes its batches, without bound
            frame = pl.read_csv(
                lines,
                has_header=False,
                schema=dict.fromkeys(names, pl.String),
                separator=separator,
                empty_string_is_null=False,
            )
            for batch in frame.iter_slices(chunk_rows):
                yield batch.select(pl.col(wanted).str.strip_chars_start(" "))
    except (pl.exceptions.PolarsError, OSError) as error:
        for _ in _any_chunks(pl, path, text, columns, chunk_rows):
            pass  # the standard library says in which line the trouble is
        raise UnreadableFileError(f"{path.name} cannot be read: {first_line(error)}") from error


def _pieces(path: Path) -> Iterator[bytes]:
    """Whole lines below the head, some megabytes at a time."""
    with path.open("rb") as stream:
        stream.readline()
        left = b""
        while piece := stream.read(_PIECE):
            whole, end, rest = (left + piece).rpartition(b"\n")
            if whole:
                yield whole + end
            left = rest
        if left:
            yield left


def _any_chunks(
    pl: Any,
    path: str | Path,
    text: TextFormat,
    columns: Sequence[str] | None,
    chunk_rows: int,
) -> Iterator[Any]:
    name = name_of(path)
    with csv_rows(path, text) as rows:
        names = header_of(rows, name)
        wanted = _wanted(columns, names, name)
        line = rows.line_num + 1  # type: ignore[attr-defined]
        while chunk := list(islice(rows, chunk_rows)):
            numbered = enumerate(chunk, start=line)
            width = len(names)
            kept = [fitting_row(row, width, i, name) for i, row in numbered if _filled(row, width)]
            line += len(chunk)
            if kept:
                cells = dict(zip(names, map(list, zip(*kept, strict=True)), strict=True))
                found = {column: cells[column] for column in wanted}
                texts = None if pl is None else dict.fromkeys(found, pl.String)
                yield found if pl is None else pl.DataFrame(found, schema=texts)


def _filled(row: list[str], width: int) -> bool:
    """Whether the line holds more than blanks; a blank line of a single column is a cell."""
    return bool(row) and (len(row) > 1 or width == 1 or bool(row[0].strip(BLANKS)))


def typed(chunk: Any, kinds: Mapping[str, str], name: str) -> dict[str, Any]:
    """The columns of a chunk in the kinds that a model was fitted on, read as plain cells."""
    return {column: _typed_column(chunk[column], column, kinds[column], name) for column in kinds}


def _typed_column(cells: Any, column: str, kind: str, name: str) -> Any:
    if not isinstance(cells, list) and str(cells.dtype) != "String":
        return cells
    texts = cleaned(cells)
    if kind == "categorical":
        return texts
    values = plain_numbers(texts)
    odd = first_odd(texts, values)
    if odd is not None:
        raise UnreadableFileError(
            f"{name}: column {shown(column)} holds {shown(odd)}, which is not a number; the model "
            "was fitted on numbers there."
        )
    return values
