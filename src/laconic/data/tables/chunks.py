"""A file in chunks of rows, with the columns that a model reads: constant memory.

Parquet, Arrow and plain CSV go through polars when it is installed; packed, piped or oddly encoded
CSV through the standard library. The cells are the same either way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from laconic.data.tables.files import (
    BINARY,
    MISSING_TEXTS,
    STDIN,
    TextFormat,
    UnreadableFileError,
    csv_rows,
    encoding_of,
    first_line,
    header_of,
    name_of,
    number_of,
    refuse_ragged,
    separator_of,
)
from laconic.data.tables.kinds import shown

CHUNK_ROWS = 131_072


def read_chunks(
    path: str | Path,
    kinds: Mapping[str, str],
    text: TextFormat | None = None,
    *,
    keep: tuple[str, ...] = (),
    chunk_rows: int = CHUNK_ROWS,
) -> Iterator[Any]:
    """Frames (or dicts of columns) of at most ``chunk_rows`` rows.

    Parameters
    ----------
    path : str or Path
        ``-`` is the standard input.
    kinds : mapping from column name to "numeric", "boolean" or "categorical"
        The columns to read, and what they must hold.
    text : TextFormat, optional
    keep : tuple of str
        More columns to read, as texts (keys).
    chunk_rows : int
    """
    text = text or TextFormat()
    pl = _polars()
    suffix = Path(path).suffix.lower()
    if suffix in BINARY:
        if pl is None:
            raise UnreadableFileError(
                f"{name_of(path)} needs polars; install laconic[stream] or give a CSV file."
            )
        return _binary_chunks(pl, Path(path), [*kinds, *keep], chunk_rows)
    plain = str(path) != STDIN and suffix not in (".gz", ".zst") and text.encoding is None
    if pl is not None and plain and Path(path).exists() and _is_regular(Path(path), text):
        return _text_chunks(pl, Path(path), kinds, text, keep, chunk_rows)
    return _python_chunks(path, kinds, text, keep, chunk_rows)


def _polars() -> Any:
    try:
        import polars
    except ImportError:
        return None
    return polars


def _is_regular(path: Path, text: TextFormat) -> bool:
    """UTF-8 without quotes, every line with as many separators as the header, on the whole.

    polars fills short lines with empty cells and refuses long ones, so that equal totals mean
    equal lines; anything else is read, and told line by line, by the standard library.
    """
    with path.open("rb") as stream:
        if encoding_of(stream.read(4)) != "utf-8-sig":
            return False
        stream.seek(0)
        header = stream.readline()
        separator = (text.separator or separator_of(header.decode("utf-8", "replace"))).encode()
        per_line, lines, found, last = header.count(separator), 0, 0, b"\n"
        while piece := stream.read(1 << 24):
            if b'"' in piece or b"\r" in piece or b"\n\n" in piece:
                return False
            lines, found, last = lines + piece.count(b"\n"), found + piece.count(separator), piece
    lines += not last.endswith(b"\n")
    return b'"' not in header and b"\r" not in header and found == lines * per_line


def _refuse_absent(wanted: list[str], known: list[str], name: str) -> None:
    absent = [column for column in wanted if column not in known]
    if absent:
        raise UnreadableFileError(
            f"{name} has no column {shown(absent[0])}, which the model reads; it has "
            f"{', '.join(shown(column) for column in known[:8])}."
        )


def _binary_chunks(pl: Any, path: Path, wanted: list[str], chunk_rows: int) -> Iterator[Any]:
    if not path.exists():
        raise UnreadableFileError(f"{path} does not exist.")
    lazy = pl.scan_parquet(path, glob=False) if path.suffix == ".parquet" else pl.scan_ipc(path)
    try:
        _refuse_absent(wanted, lazy.collect_schema().names(), path.name)
        yield from lazy.select(wanted).collect_batches(chunk_size=chunk_rows, maintain_order=True)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise UnreadableFileError(f"{path.name} cannot be read: {first_line(error)}") from error


def _text_chunks(
    pl: Any,
    path: Path,
    kinds: Mapping[str, str],
    text: TextFormat,
    keep: tuple[str, ...],
    chunk_rows: int,
) -> Iterator[Any]:
    with csv_rows(path, text) as rows:
        names = header_of(rows, path.name)
    _refuse_absent([*kinds, *keep], names, path.name)
    with path.open(encoding="utf-8-sig") as stream:
        separator = text.separator or separator_of(stream.readline())
    lazy = pl.scan_csv(
        path, separator=separator, infer_schema=False, empty_string_is_null=False, glob=False
    )
    try:
        for batch in lazy.collect_batches(chunk_size=chunk_rows, maintain_order=True):
            yield _typed_frame(pl, batch, kinds, keep, path.name)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise UnreadableFileError(f"{path.name} cannot be read: {first_line(error)}") from error


def _typed_frame(
    pl: Any, batch: Any, kinds: Mapping[str, str], keep: tuple[str, ...], name: str
) -> Any:
    missing = sorted(MISSING_TEXTS)
    columns = []
    for column, kind in kinds.items():
        cell = pl.col(column).str.strip_chars()
        known = pl.when(cell.is_in(missing)).then(None).otherwise(cell)
        if kind != "categorical":
            known = known.cast(pl.Float64, strict=False)
        columns.append(known.alias(column))
    typed = batch.select(*columns, *(pl.col(c) for c in keep if c not in kinds))
    for column, kind in kinds.items():
        if kind != "categorical" and typed[column].null_count():
            gone = typed[column].is_null()
            cells = batch[column].str.strip_chars()
            bad = cells.filter(gone & ~cells.is_in(missing))
            if len(bad):
                raise _not_a_number(column, bad[0], name)
    return typed


def _not_a_number(column: str, cell: str, name: str) -> UnreadableFileError:
    return UnreadableFileError(
        f"{name}: column {shown(column)} holds {shown(cell)}, which is not a number; the model "
        "was fitted on numbers there."
    )


def _python_chunks(
    path: str | Path,
    kinds: Mapping[str, str],
    text: TextFormat,
    keep: tuple[str, ...],
    chunk_rows: int,
) -> Iterator[Any]:
    name = name_of(path)
    with csv_rows(path, text) as rows:
        names = header_of(rows, name)
        _refuse_absent([*kinds, *keep], names, name)
        line = 2
        while chunk := list(islice(rows, chunk_rows)):
            for number, row in enumerate(chunk, start=line):
                if row:
                    refuse_ragged(row, names, number, name)
            line += len(chunk)
            cells = list(zip(*(row for row in chunk if row), strict=True))
            if cells:
                yield _typed_columns(dict(zip(names, cells, strict=True)), kinds, keep, name)


def _typed_columns(
    cells: Mapping[str, tuple[str, ...]], kinds: Mapping[str, str], keep: tuple[str, ...], name: str
) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for column, kind in kinds.items():
        stripped = [cell.strip() for cell in cells[column]]
        known = [None if cell in MISSING_TEXTS else cell for cell in stripped]
        if kind == "categorical":
            out[column] = np.array(known, dtype=object)
            continue
        values = np.full(len(known), np.nan)
        for i, cell in enumerate(known):
            if cell is not None:
                try:
                    values[i] = number_of(cell)
                except ValueError:
                    raise _not_a_number(column, cell, name) from None
        out[column] = values
    return out | {
        column: np.array(cells[column], dtype=object) for column in keep if column not in kinds
    }
