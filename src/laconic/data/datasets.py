"""The named data sets of the papers: read from a folder, else downloaded and checked.

Two places are searched, in this order:

1. the folder named by the environment variable ``LACONIC_DATA``: one ``NAME.csv.gz`` for each set
   (features, then the class in a last column called ``target``; an empty cell is a missing value)
   and an ``INDEX.csv`` with the columns ``name``, ``file``, ``sha256``, ``categorical_columns``
   and ``notes``;
2. a cache (``LACONIC_CACHE``, by default the user's cache folder), filled by :func:`load` from the
   UCI repository for the sets that it holds as plain files (see :mod:`laconic.data.uci`).

No data set is part of the package.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.data.uci import (
    RECIPES,
    TARGET,
    Columns,
    DatasetChecksumError,
    DatasetNotFoundError,
    declared_columns,
    fetch,
    read_classes,
    read_column,
)

__all__ = [
    "DataSet",
    "DatasetChecksumError",
    "DatasetNotFoundError",
    "available",
    "cache_folder",
    "data_folder",
    "load",
    "names",
]


@dataclass(frozen=True)
class DataSet:
    """Rows of a named data set.

    Attributes
    ----------
    name : str
    X : pandas.DataFrame, polars.DataFrame or ndarray
        pandas when it is installed, else polars, else an array (of objects as soon as one column
        is categorical). Numeric columns are float64 with NaN for missing; categorical columns are
        texts (dtype ``category`` in pandas), also when the file codes them by integers.
    y : ndarray of shape (n_rows,)
        Integers when every class reads as one, else texts.
    columns : tuple of str
    categorical : tuple of str
        The categorical columns.
    indicators : tuple of str
        Columns declared 0/1. They stay numeric: the two readings of an indicator are the same.
    notes : str
    """

    name: str
    X: Any
    y: NDArray[Any]
    columns: tuple[str, ...]
    categorical: tuple[str, ...] = ()
    indicators: tuple[str, ...] = ()
    notes: str = ""


@dataclass(frozen=True)
class _Entry:
    """One line of an index: a file, its checksum, and what its columns are."""

    name: str
    file: Path
    sha256: str
    categorical: str
    notes: str


def data_folder() -> Path | None:
    """The folder named by ``LACONIC_DATA``, or None when the variable is not set."""
    named = os.environ.get("LACONIC_DATA", "").strip()
    return Path(named).expanduser() if named else None


def cache_folder() -> Path:
    """The folder named by ``LACONIC_CACHE``, else ``laconic`` in the user's cache folder."""
    named = os.environ.get("LACONIC_CACHE", "").strip()
    if named:
        return Path(named).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "~/AppData/Local")
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME", "") or "~/.cache"
    return Path(base).expanduser() / "laconic"


def names() -> list[str]:
    """Every name that :func:`load` knows: what the two folders hold and what can be downloaded."""
    known = set(RECIPES)
    for folder in (data_folder(), cache_folder()):
        known |= set(_index(folder))
    return sorted(known)


def available(name: str) -> bool:
    """Whether :func:`load` finds the set on this machine, without the network."""
    return _find(name) is not None


def load(name: str, *, download: bool = True) -> DataSet:
    """Read a data set by name.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    download : bool, default=True
        Fetch the set from the UCI repository, once, when it is not on this machine.

    Returns
    -------
    DataSet

    Raises
    ------
    DatasetNotFoundError
        The set is not on this machine and cannot be downloaded. The message says what to do.
    DatasetChecksumError
        The file is not the one that its checksum describes.
    """
    entry = _find(name)
    if entry is None:
        if name not in RECIPES or not download:
            raise DatasetNotFoundError(_how_to_get(name, downloadable=name in RECIPES))
        fetch(name, cache_folder())
        entry = _find(name)
        if entry is None:
            raise DatasetNotFoundError(_how_to_get(name, downloadable=True))
    return _read(entry)


def _how_to_get(name: str, *, downloadable: bool) -> str:
    folder = data_folder()
    where = f"the folder LACONIC_DATA={folder}" if folder else "LACONIC_DATA (not set)"
    message = f"Data set {name!r} is neither in {where} nor in the cache {cache_folder()}."
    if downloadable:
        return f"{message} Call load({name!r}) with download=True to fetch it."
    return (
        f"{message} It has no download: put {name}.csv.gz (last column {TARGET!r}) in a folder, "
        f"describe it in that folder's INDEX.csv, and set LACONIC_DATA to the folder."
    )


def _index(folder: Path | None) -> dict[str, _Entry]:
    """The entries of a folder's INDEX.csv whose file is really there."""
    if folder is None or not (folder / "INDEX.csv").is_file():
        return {}
    with (folder / "INDEX.csv").open(newline="", encoding="utf-8") as text:
        lines = list(csv.DictReader(text))
    entries = {}
    for line in lines:
        file = folder / (line.get("file") or f"{line['name']}.csv.gz")
        if file.is_file():
            entries[line["name"]] = _Entry(
                name=line["name"],
                file=file,
                sha256=line.get("sha256") or "",
                categorical=line.get("categorical_columns") or "",
                notes=line.get("notes") or "",
            )
    return entries


def _find(name: str) -> _Entry | None:
    for folder in (data_folder(), cache_folder()):
        entry = _index(folder).get(name)
        if entry is not None:
            return entry
    return None


def _read(entry: _Entry) -> DataSet:
    content = entry.file.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if entry.sha256 and found != entry.sha256:
        raise DatasetChecksumError(
            f"Data set {entry.name!r}: {entry.file.name} has sha256 {found}, its index says "
            f"{entry.sha256}. Replace the file, or delete it so that it is fetched again."
        )
    if entry.file.suffix == ".npz":
        return _read_npz(entry, content)
    plain = gzip.decompress(content) if entry.file.suffix == ".gz" else content
    header = next(csv.reader(io.StringIO(plain.split(b"\n", 1)[0].decode("utf-8"))))
    features = header[:-1]
    listed, indicators = declared_columns(entry.categorical, features)
    columns, labels = _parse(plain, header, listed)
    indicators = [*indicators, *_zero_one(columns, entry.categorical, listed)]
    categorical = [name for name in features if columns[name].dtype == object]
    return DataSet(
        name=entry.name,
        X=_frame(columns, categorical),
        y=read_classes(labels),
        columns=tuple(features),
        categorical=tuple(categorical),
        indicators=tuple(dict.fromkeys(indicators)),
        notes=entry.notes,
    )


def _read_npz(entry: _Entry, content: bytes) -> DataSet:
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        pixels, y = arrays["X"], arrays["y"]
    columns = tuple(f"x{j}" for j in range(pixels.shape[1]))
    X: Any = pixels
    if find_spec("pandas"):
        import pandas as pd

        X = pd.DataFrame(pixels, columns=list(columns), copy=False)
    elif find_spec("polars"):
        import polars as pl

        X = pl.DataFrame(pixels, schema=list(columns), orient="row")
    return DataSet(entry.name, X, y.astype(np.int64), columns, notes=entry.notes)


def _zero_one(columns: Columns, text: str, listed: Sequence[str]) -> list[str]:
    """The columns meant by "and the 0/1 columns"."""
    if "the 0/1 columns" not in text:
        return []
    return [
        name
        for name, column in columns.items()
        if name not in listed and column.dtype != object and set(np.unique(column)) <= {0.0, 1.0}
    ]


def _parse(
    plain: bytes, header: Sequence[str], listed: Sequence[str]
) -> tuple[Columns, NDArray[Any]]:
    """Feature columns (float64, or objects: text and None) and the class texts."""
    if find_spec("pandas"):
        texts = _parse_with_pandas(plain, {*listed, header[-1]})
    else:
        rows = list(csv.reader(io.StringIO(plain.decode("utf-8"))))[1:]
        texts = {
            name: np.array(cells, dtype=object)
            for name, cells in zip(header, zip(*rows, strict=True), strict=True)
        }
    columns = {name: read_column(texts[name], as_text=name in listed) for name in header[:-1]}
    return columns, texts[header[-1]]


def _parse_with_pandas(plain: bytes, as_text: set[str]) -> Columns:
    """The same cells as the csv module gives, ten times faster on large files."""
    import pandas as pd

    # from 3.1 on pandas always reads the nearest float64, and warns when asked to
    major, minor = (int(part) for part in pd.__version__.split(".")[:2])
    exact = {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}
    frame = pd.read_csv(
        io.BytesIO(plain),
        dtype=dict.fromkeys(as_text, object),
        keep_default_na=False,
        na_values=[""],
        low_memory=False,
        **exact,
    )
    columns: Columns = {}
    for name in frame.columns:
        column = frame[name]
        if column.dtype.kind in "biuf":
            columns[name] = column.to_numpy(np.float64)
        else:
            columns[name] = column.astype(object).where(column.notna(), "").to_numpy(object)
    return columns


def _frame(columns: Columns, categorical: Sequence[str]) -> Any:
    if find_spec("pandas"):
        import pandas as pd

        return pd.DataFrame(
            {
                name: pd.Categorical(column) if name in categorical else column
                for name, column in columns.items()
            }
        )
    if find_spec("polars"):
        import polars as pl

        return pl.DataFrame(
            {
                name: pl.Series(column.tolist(), dtype=pl.String) if name in categorical else column
                for name, column in columns.items()
            }
        )
    if not categorical:
        return np.column_stack(list(columns.values()))
    table = np.empty((len(next(iter(columns.values()))), len(columns)), dtype=object)
    for j, column in enumerate(columns.values()):
        table[:, j] = column
    return table
