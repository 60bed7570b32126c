"""Tables from files, read into memory, and the column to predict taken out of them."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.data.tables.cells import cleaned, doubtful, looks, plain_numbers
from laconic.data.tables.chunks import is_text, polars_or_none, read_chunks
from laconic.data.tables.columns import Schema, Table
from laconic.data.tables.kinds import shown
from laconic.data.tables.text import TextFormat, UnreadableFileError, name_of

MOST_CLASSES = 100


def read_table(path: str | Path, text: TextFormat | None = None) -> Table:
    """Read a CSV (``.csv``, ``.tsv``, ``.txt``, also ``.gz`` and ``.zst``), Parquet or Arrow file.

    ``-`` is CSV on the standard input. A column of a CSV is numeric when every cell that is not
    missing is a plain number, and none has leading zeros.
    """
    return Schema.learn(read_frame(path, text)).table


def read_frame(path: str | Path, text: TextFormat | None = None, *, doubts: bool = False) -> Any:
    """The whole file: a polars frame, or a dict of columns where polars is not installed.

    With ``doubts``, numbers of a text file that could be thousands (1.234) stay texts, for a
    reading of the whole table to decide.
    """
    chunks = list(read_chunks(path, text))
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
