"""Tables from files, read into memory, and the column to predict taken out of them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from laconic.data.tables.cells import cleaned, doubtful, looks, plain_numbers
from laconic.data.tables.chunks import is_text, memory_left, polars_or_none, read_chunks
from laconic.data.tables.columns import Schema, Table, shown
from laconic.data.tables.text import UNNAMED, TextFormat, UnreadableFileError, name_of

MOST_CLASSES, MOST_NUMBERS = 100, 30
"""Different texts, or numbers, of a column from which it holds no classes."""


def read_table(path: str | Path, text: TextFormat | None = None) -> Table:
    """Read a CSV (``.csv``, ``.tsv``, ``.txt``, also ``.gz`` and ``.zst``), Parquet or Arrow file.

    ``-`` is CSV on the standard input. A column of a CSV is numeric when every cell that is not
    missing is a plain number, and none has leading zeros.
    """
    return Schema.learn(read_frame(path, text)).table


def read_frame(
    path: str | Path,
    text: TextFormat | None = None,
    *,
    doubts: bool = False,
    needs: str | None = None,
) -> Any:
    """The whole file: a polars frame, or a dict of columns where polars is not installed.

    With ``doubts``, numbers of a text file that could be thousands (1.234) stay texts, for a
    reading of the whole table to decide. A column that it ``needs`` and has not is told before
    more than the first rows are read.
    """
    chunks: list[Any] = []
    held, texts = 0, is_text(path)
    for chunk in read_chunks(path, text):
        if needs is not None and not chunks:
            refuse_unknown(needs, list(chunk if isinstance(chunk, dict) else chunk.columns))
        chunks.append(chunk)
        # polars ends the process where memory ends; its estimate leaves out the 16 bytes that
        # stand for each text, which are most of a column of single digits
        if not isinstance(chunk, dict):
            held += chunk.estimated_size() + (16 * chunk.height * chunk.width if texts else 0)
        if 2 * held > memory_left():
            raise MemoryError
    if not chunks:
        header = "a header and no rows" if is_text(path) else "no rows"
        raise UnreadableFileError(f"{name_of(path)} has {header}.")
    if isinstance(chunks[0], dict):
        return {
            column: plain_column([cell for chunk in chunks for cell in chunk[column]], doubts)
            for column in chunks[0]
        }
    frame = polars_or_none().concat(chunks)
    if not frame.height:
        raise UnreadableFileError(f"{name_of(path)} has no rows.")
    if is_text(path):
        return frame.with_columns(plain_column(frame[column], doubts) for column in frame.columns)
    return frame


def plain_column(cells: Any, doubts: bool = False) -> Any:
    """Texts as they stand in a file, as numbers where all of them are, else cleaned.

    >>> plain_column(["1", " NA", "2.5"]), plain_column(["1", "two"]), plain_column(["01", "02"])
    (array([1. , nan, 2.5]), ['1', 'two'], ['01', '02'])
    """
    texts = cleaned(cells)
    if not looks(texts)[0] or (doubts and doubtful(texts)):
        return texts
    if isinstance(texts, list):
        return plain_numbers(texts)
    return texts.cast(polars_or_none().Float64)


@dataclass(frozen=True)
class Labelled:
    """Rows with their classes as texts and, where they are asked for, their weights."""

    X: Any
    label: NDArray[np.str_]
    weight: NDArray[np.float64] | None = None
    n_dropped: int = 0
    """Rows left out because their class is missing."""


def refuse_unknown(name: str, names: Sequence[str]) -> None:
    """An error that names the nearest column, where there is none of this name."""
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(names[:8])}."
        if not near and 2 * sum(own.startswith(UNNAMED) for own in names) > len(names):
            hint += " Most have no name: does a title stand above the line of names? Delete it."
        raise ValueError(f"There is no column {name!r} in the table; {hint}")


def split_target(
    frame: Any, target: str, *, weight: str | None = None, drop_missing: bool = False
) -> Labelled:
    """The other columns, and the classes as texts; what cannot be a class is refused.

    >>> rows = split_target({"x": np.array([1.0, 2.0, 3.0]), "late": np.array([0, 1, 0])}, "late")
    >>> list(rows.X), rows.label.tolist()
    (['x'], ['0', '1', '0'])
    """
    names = list(frame) if isinstance(frame, dict) else list(frame.columns)
    for name in (target, *([] if weight is None else [weight])):
        refuse_unknown(name, names)
    label, gone = _class_texts(frame[target], target)
    if gone.any() and not drop_missing:
        raise ValueError(_without_class(target, label[~gone], int(gone.sum())))
    others = [name for name in names if name not in (target, weight)]
    if not others:
        raise ValueError(f"The table has no column beside {shown(target)} to predict it from.")
    weights = None if weight is None else _weights(frame[weight], weight)
    X = {name: frame[name] for name in others} if isinstance(frame, dict) else frame.select(others)
    if not gone.any():
        return Labelled(X, label, weights)
    kept = np.flatnonzero(~gone)
    if not len(kept):
        raise ValueError(f"Column {shown(target)} has no value.")
    rows = {n: _taken(c, kept) for n, c in X.items()} if isinstance(X, dict) else X[kept.tolist()]
    return Labelled(rows, label[kept], None if weights is None else weights[kept], int(gone.sum()))


def _without_class(target: str, label: NDArray[np.str_], n_gone: int) -> str:
    classes = np.unique(label)
    if len(classes) == 1:  # a box that is ticked or not
        return (
            f"Column {shown(target)} is {shown(str(classes[0]))} or empty; write the other class "
            f"into its {n_gone:,} empty cells."
        )
    return (
        f"Column {shown(target)} is missing in {n_gone:,} rows; leave them out with "
        "--drop-missing-target, or fill them in."
    )


def _taken(column: Any, rows: NDArray[np.int64]) -> Any:
    return column[rows] if isinstance(column, np.ndarray) else [column[i] for i in rows]


def _class_texts(column: Any, name: str) -> tuple[NDArray[np.str_], NDArray[np.bool_]]:
    """The classes of a column, and where they are missing."""
    table = Schema.learn({name: as_native(column)}).table
    cells, texts = table.column(0), table.categories[0]
    if texts is not None:
        gone, label = cells < 0, np.array([*texts, ""])[cells]
    else:
        values, place = np.unique(cells, return_inverse=True)
        gone, label = np.isnan(cells), np.array([f"{value:.17g}" for value in values])[place]
    n_classes, most = len(np.unique(label[~gone])), MOST_CLASSES if texts else MOST_NUMBERS
    if n_classes > most:
        what, cut = ("values", "") if texts else ("numbers", ", or cut the amounts into a few")
        raise ValueError(
            f"Column {shown(name)} has {n_classes:,} different {what}: that is not a class; "
            f"choose a column with at most {most}{cut}."
        )
    return label, gone


def _weights(column: Any, name: str) -> NDArray[np.float64]:
    table = Schema.learn({name: as_native(column)}).table
    values = table.column(0)
    if table.categories[0] is not None or not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError(f"The weights {shown(name)} must be numbers >= 0, none missing.")
    if not values.any():
        raise ValueError(f"The weights {shown(name)} are all 0.")
    return np.asarray(values, dtype=np.float64)


def as_native(column: Any) -> Any:
    """A column that the tables read: series through narwhals, arrays and lists as they are."""
    if isinstance(column, list | np.ndarray):
        return column
    return nw.from_native(column, series_only=True)
