"""Rows of Parquet and Arrow files by number, without holding the files in memory (polars)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from glob import glob
from itertools import accumulate
from pathlib import Path
from typing import Any

from laconic.data.scan.block_cache import ScratchFolder
from laconic.data.tables.cells import cleaned, doubtful, looks
from laconic.data.tables.chunks import (
    ARROW,
    BINARY,
    CHUNK_ROWS,
    EXCEL,
    polars_or_none,
    read_chunks,
)
from laconic.data.tables.columns import shown
from laconic.data.tables.text import TextFormat, UnreadableFileError

_TAIL = 1 << 16
"""Bytes at the end of a file that are compared between passes: they hold the list of row groups."""


class ChangedFileError(UnreadableFileError):
    """A file is not what it was when the scan began."""


def polars() -> Any:
    """The polars module, or a sentence that says how to get it."""
    pl = polars_or_none()
    if pl is None:
        raise ImportError(
            "Scanning files needs polars; install laconic[stream], or read the rows into memory."
        )
    return pl


@dataclass(frozen=True)
class Fingerprint:
    """Size, time of the last change and a digest of the end of a file."""

    size: int
    changed: int
    tail: str

    @staticmethod
    def of(path: Path) -> Fingerprint:
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                file.seek(max(0, status.st_size - _TAIL))
                tail = hashlib.blake2b(file.read(_TAIL), digest_size=16).hexdigest()
        except OSError as error:
            raise UnreadableFileError(f"{path} cannot be read: {error.strerror}.") from error
        return Fingerprint(status.st_size, status.st_mtime_ns, tail)


@dataclass(frozen=True)
class DataFile:
    """One file, as it was when the scan began."""

    path: Path
    n_rows: int
    fingerprint: Fingerprint

    def check_unchanged(self) -> None:
        if Fingerprint.of(self.path) != self.fingerprint:
            raise ChangedFileError(
                f"{self.path} changed while it was being scanned; scan it again."
            )


@dataclass(frozen=True)
class FileRows:
    """The rows of some files, one after the other, read by number."""

    files: tuple[DataFile, ...]
    columns: tuple[str, ...]
    held: Any = field(default=None, repr=False, compare=False)
    """What must live as long as the rows: the folder of a temporary copy."""

    @staticmethod
    def of(paths: Sequence[Path], held: Any = None) -> FileRows:
        files = []
        names: tuple[str, ...] | None = None
        for path in paths:
            fingerprint = Fingerprint.of(path)
            pl = polars()
            frame = _lazy(path)
            try:
                own = tuple(frame.collect_schema().names())
                n_rows = int(frame.select(pl.len()).collect().item())
            except (pl.exceptions.PolarsError, OSError) as error:
                raise _unreadable(path, error) from error
            if names is not None and set(own) != set(names):
                odd = sorted(set(own) ^ set(names))[0]
                raise UnreadableFileError(
                    f"{path} and {paths[0]} do not have the same columns: {shown(odd)} is in one "
                    "of them only."
                )
            names = names or own
            files.append(DataFile(path, n_rows, fingerprint))
        return FileRows(tuple(files), names or (), held)

    @property
    def n_rows(self) -> int:
        return sum(file.n_rows for file in self.files)

    def read(self, start: int, stop: int, columns: Sequence[str]) -> Any:
        """Rows ``start`` to ``stop`` as a polars frame; every file touched is checked."""
        pl = polars()
        parts = []
        ends = accumulate(file.n_rows for file in self.files)
        for file, end in zip(self.files, ends, strict=True):
            first = end - file.n_rows
            low, high = max(start, first), min(stop, end)
            if low >= high:
                continue
            file.check_unchanged()
            rows = _lazy(file.path).slice(low - first, high - low).select(list(columns))
            try:
                part = rows.collect()
            except (pl.exceptions.PolarsError, OSError) as error:
                file.check_unchanged()
                raise _unreadable(file.path, error) from error
            if part.height != high - low:
                raise ChangedFileError(f"{file.path} lost rows while it was being scanned.")
            parts.append(part)
        if not parts:
            return _lazy(self.files[0].path).select(list(columns)).head(0).collect()
        return parts[0] if len(parts) == 1 else pl.concat(parts, how="vertical_relaxed")


def _lazy(path: Path) -> Any:
    pl = polars()
    if path.suffix.lower() in ARROW:
        return pl.scan_ipc(path, memory_map=False) if _maps(pl) else pl.scan_ipc(path)
    return pl.scan_parquet(path, glob=False)


def _maps(pl: Any) -> bool:
    return "memory_map" in pl.scan_ipc.__code__.co_varnames


def _unreadable(path: Path, error: Exception) -> UnreadableFileError:
    lines = (str(error) or type(error).__name__).splitlines()
    return UnreadableFileError(
        f"{path} cannot be read ({lines[0]}); it may be truncated or damaged: write it again."
    )


def names_many(source: str | Path) -> bool:
    """Whether the words name several files: a folder, or a glob that is not itself a file."""
    text = os.fspath(source)
    return Path(text).is_dir() or (any(c in text for c in "*?[") and not Path(text).exists())


def find_files(source: str | Path | Sequence[str | Path]) -> list[Path]:
    """Paths named by a path, a folder, a glob or a list of them, in order of name."""
    if isinstance(source, str | Path):
        text = os.fspath(source)
        if Path(text).is_dir():
            known = BINARY | {".csv", ".tsv"}
            found = sorted(p for p in Path(text).iterdir() if p.suffix.lower() in known)
            if not found:
                raise UnreadableFileError(
                    f"The folder {text} holds no CSV, Parquet or Arrow file; name a file."
                )
        elif Path(text).exists():
            found = [Path(text)]
        else:
            found = [Path(name) for name in sorted(glob(text, recursive=True))]
        if not found:
            raise UnreadableFileError(f"{text} names no file; give a path, a folder or a glob.")
        return found
    found = [path for item in source for path in find_files(item)]
    if not found:
        raise UnreadableFileError("The list of files is empty.")
    return found


def file_rows(
    paths: Sequence[Path],
    *,
    shared: bool,
    text: TextFormat | None = None,
    doubts: bool = False,
) -> FileRows:
    """Rows of Parquet or Arrow files; text files are first copied, once, to temporary Parquet."""
    texts = [path for path in paths if path.suffix.lower() not in BINARY]
    if any(path.suffix.lower() in EXCEL for path in texts):
        raise UnreadableFileError(
            f"{texts[0].name} is an Excel file, which is read into memory; leave --scan out, or "
            "save it as CSV or Parquet."
        )
    if not texts:
        return FileRows.of(paths)
    if shared:
        raise ValueError(
            f"A cluster reads Parquet or Arrow files, and {texts[0]} is neither; convert it to "
            "Parquet first, where every worker can read it."
        )
    folder = ScratchFolder("rows")
    copies = _spooled_texts(texts, text, folder.path, doubts)
    parts = [part for path in paths for part in copies.get(path, [path])]
    return FileRows.of(parts, held=folder)


def _spooled_texts(
    paths: Sequence[Path], text: TextFormat | None, folder: Path, doubts: bool
) -> dict[Path, list[Path]]:
    """Parquet copies of text files, in parts of a chunk each, read as ``read_frame`` reads them.

    Whether a column is one of numbers is known at the end: the texts are written first, then
    their numbers, part by part, so that memory is bounded and Ctrl-C is answered at once.
    """
    pl = polars()
    parts: dict[Path, list[Path]] = {path: [] for path in paths}
    plain: dict[str, bool] = {}
    whole: dict[str, bool] = {}
    clear: dict[str, bool] = {}
    number = 0
    for path in paths:
        for chunk in read_chunks(path, text, chunk_rows=CHUNK_ROWS):
            frame = chunk.with_columns(cleaned(chunk[column]) for column in chunk.columns)
            for column in frame.columns:
                numbers, integers = looks(frame[column])
                integers = integers and not frame[column].null_count()
                plain[column] = plain.get(column, True) and numbers
                whole[column] = whole.get(column, True) and integers
                sure = numbers and not integers and not doubtful(frame[column])
                clear[column] = clear.get(column, False) or sure
            part = folder / f"{number}.parquet"
            frame.write_parquet(part, compression="lz4")
            parts[path].append(part)
            number += 1
        if not parts[path]:
            raise UnreadableFileError(f"{path.name} has a header and no rows.")
    known = [c for c in plain if plain[c] and (whole[c] or clear[c] or not doubts)]
    kinds = {column: pl.Int64 if whole[column] else pl.Float64 for column in known}
    return {path: [_with_numbers(pl, part, kinds) for part in own] for path, own in parts.items()}


def _with_numbers(pl: Any, part: Path, kinds: dict[str, Any]) -> Path:
    frame = pl.read_parquet(part)
    casts = {column: kind for column, kind in kinds.items() if column in frame.columns}
    typed = part.with_name(f"typed-{part.name}")
    frame.cast(casts).write_parquet(typed, compression="lz4")
    part.unlink()
    return typed


def spooled_rows(frame: Any, group_rows: int) -> FileRows:
    """The rows of a lazy frame, run once into a temporary Parquet file."""
    folder = ScratchFolder("rows")
    path = folder.path / "rows.parquet"
    if type(frame).__module__.startswith("polars"):
        frame.sink_parquet(path, row_group_size=group_rows, compression="lz4", maintain_order=True)
    else:
        frame.sink_parquet(path)
    return FileRows.of([path], held=folder)
