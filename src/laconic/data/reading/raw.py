"""A column as it came, whatever library held it: numbers, truth values, texts, moments, spans.

The same content gives the same column here, whether it comes from pandas, polars, Arrow or a text
file: that is why everything that follows sees nothing else.
"""

from __future__ import annotations

import datetime
import numbers
from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from laconic.data.tables.cells import BLANKS, MISSING_TEXTS, polars_of
from laconic.data.tables.columns import MISSING, infinite_message, is_missing, shown

Form = Literal["numbers", "truth", "texts", "moments", "spans", "clock"]
NO_TIME = np.iinfo(np.int64).min
"""A missing moment or span: what numpy calls NaT."""


@dataclass(frozen=True)
class RawColumn:
    """The cells of a column.

    ``values`` holds floats for numbers and truth values (NaN is missing), codes into ``texts``
    (-1 is missing), or microseconds for moments, spans and times of day on a clock
    (:data:`NO_TIME` is missing).
    """

    form: Form
    values: NDArray[Any]
    texts: tuple[str, ...] = ()
    declared: bool = False
    """Whether the user declared a category: the texts are not looked into."""

    def __len__(self) -> int:
        return len(self.values)

    @property
    def missing(self) -> NDArray[np.bool_]:
        if self.form in ("numbers", "truth"):
            gone: NDArray[np.bool_] = np.isnan(self.values)
            return gone
        return np.asarray(self.values == (MISSING if self.form == "texts" else NO_TIME))

    def __getitem__(self, rows: Any) -> RawColumn:
        return RawColumn(self.form, self.values[rows], self.texts, self.declared)


def raw_column(raw: Any, name: str) -> RawColumn:
    """The column, from a series of any library, an array or a list.

    >>> raw_column([" a", "NA", "b", "a "], "x")
    RawColumn(form='texts', values=array([ 0, -1,  1,  0]), texts=('a', 'b'), declared=False)
    >>> raw_column(np.array([True, False]), "x").form
    'truth'
    """
    if isinstance(raw, nw.Series):
        return _of_series(raw, name)
    array = raw if isinstance(raw, np.ndarray) else None
    if array is not None and array.dtype.kind in "biuf":
        return _numbers(array, name, truth=array.dtype == bool)
    if array is not None and array.dtype.kind in "mM":
        return _moments(array)
    return _of_objects(list(raw if array is None else array.tolist()), name)


def _of_series(series: nw.Series[Any], name: str) -> RawColumn:
    dtype = series.dtype
    if dtype == nw.Boolean or dtype.is_numeric():
        values = series.cast(nw.Float64).to_numpy()
        return _numbers(values, name, truth=dtype == nw.Boolean)
    if dtype in (nw.Date, nw.Datetime, nw.Duration):
        return _moments(_in_utc(series).to_numpy())
    if dtype in (nw.Categorical, nw.Enum):
        return _of_categories(series)
    if dtype == nw.String:
        pl = polars_of(series.to_native())
        return _of_texts(series.to_list()) if pl is None else _of_polars(pl, series.to_native())
    return _of_objects(series.to_list(), name)


def _of_polars(pl: Any, texts: Any) -> RawColumn:
    """Texts that polars tells apart: the cells themselves never become Python objects."""
    levels = texts.drop_nulls().unique(maintain_order=True)
    if not len(levels):
        return _recoded([], np.full(len(texts), MISSING, dtype=np.int64))
    places = pl.Series(np.arange(len(levels)))
    codes = texts.replace_strict(levels, places, return_dtype=pl.Int64).fill_null(MISSING)
    return _recoded(levels.to_list(), np.asarray(codes.to_numpy(), dtype=np.int64))


def _in_utc(series: nw.Series[Any]) -> nw.Series[Any]:
    """Moments with a zone in UTC; those without one as they are."""
    if series.dtype == nw.Date:
        return series.cast(nw.Datetime("us"))
    if series.dtype == nw.Datetime and getattr(series.dtype, "time_zone", None) is not None:
        return series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return series


def _of_categories(series: nw.Series[Any]) -> RawColumn:
    accessor = getattr(series.to_native(), "cat", None)
    codes = getattr(accessor, "codes", None)
    if accessor is not None and codes is not None:  # pandas: texts of the categories themselves
        levels = [text_of(level) for level in accessor.categories]
        return _recoded(levels, np.asarray(codes, dtype=np.int64), declared=True)
    found = _of_texts(series.cast(nw.String).to_list())
    return RawColumn(found.form, found.values, found.texts, declared=True)


def _numbers(values: NDArray[Any], name: str, *, truth: bool) -> RawColumn:
    values = np.asarray(values, dtype=np.float64)
    if np.isinf(values).any():
        raise ValueError(infinite_message(name))
    return RawColumn("truth" if truth else "numbers", values)


def _moments(values: NDArray[Any]) -> RawColumn:
    span = values.dtype.kind == "m"
    whole = values.astype("timedelta64[us]" if span else "datetime64[us]").astype(np.int64)
    return RawColumn("spans" if span else "moments", whole)


def _of_texts(cells: list[Any]) -> RawColumn:
    places: dict[str | None, int] = {None: MISSING}
    known = (cell if isinstance(cell, str) else None for cell in cells)  # pandas: NaN, NA
    codes = np.array([places.setdefault(cell, len(places) - 1) for cell in known], dtype=np.int64)
    return _recoded([text for text in places if text is not None], codes)


def _recoded(levels: list[str], codes: NDArray[np.int64], *, declared: bool = False) -> RawColumn:
    """Texts cleaned, sorted and each once; -1 where a level says that the cell is missing."""
    clean = [level.strip(BLANKS) for level in levels]
    used = np.zeros(len(levels), dtype=bool)
    used[codes[codes >= 0]] = True
    known = sorted({t for t, there in zip(clean, used, strict=True) if there} - MISSING_TEXTS)
    place = {text: k for k, text in enumerate(known)}
    lookup = np.array([*(place.get(text, MISSING) for text in clean), MISSING], dtype=np.int64)
    return RawColumn("texts", lookup[codes], tuple(known), declared)


def _of_objects(cells: list[Any], name: str) -> RawColumn:
    """Python objects: all of one kind, or texts."""
    gone = [is_missing(cell) for cell in cells]
    there = [cell for cell, away in zip(cells, gone, strict=True) if not away]
    if all(isinstance(cell, str) for cell in there):
        return _of_texts([None if away else c for c, away in zip(cells, gone, strict=True)])
    if any(isinstance(cell, complex | np.complexfloating) for cell in there):
        raise ValueError(f"Complex data not supported: column {shown(name)}.")
    filled = ~np.array(gone, dtype=bool)
    if all(isinstance(cell, numbers.Number | np.bool_) for cell in there):
        values = np.full(len(cells), np.nan)
        values[filled] = [float(cell) for cell in there]
        truth = bool(there) and all(isinstance(cell, bool | np.bool_) for cell in there)
        return _numbers(values, name, truth=truth)
    for kinds, unit in _TIMES:
        if all(isinstance(cell, kinds) for cell in there):
            spans = np.full(len(cells), NO_TIME, dtype=np.int64)
            spans[filled] = [_microseconds(cell) for cell in there]
            return RawColumn(unit, spans)
    texts = [None if away else text_of(cell) for cell, away in zip(cells, gone, strict=True)]
    return _of_texts(texts)


_TIMES: tuple[tuple[tuple[type, ...], Form], ...] = (
    ((datetime.date, np.datetime64), "moments"),
    ((datetime.timedelta, np.timedelta64), "spans"),
    ((datetime.time,), "clock"),
)


def _microseconds(cell: Any) -> int:
    if isinstance(cell, datetime.time):
        cell = datetime.datetime.combine(datetime.date(1970, 1, 1), cell.replace(tzinfo=None))
    elif isinstance(cell, datetime.datetime):
        cell = cell if cell.tzinfo is None else cell.astimezone(datetime.UTC).replace(tzinfo=None)
    span = isinstance(cell, datetime.timedelta | np.timedelta64)
    unit = "timedelta64[us]" if span else "datetime64[us]"
    return int(np.array(cell).astype(unit).astype(np.int64))


def text_of(cell: Any) -> str:
    """A cell as a text file would hold it: the whole number 3.0 is 3, bytes are letters.

    >>> text_of(3.0), text_of(b"ab"), text_of(np.array([1, 2]))
    ('3', 'ab', '[1, 2]')
    """
    if isinstance(cell, bytes):
        try:
            return cell.decode()
        except UnicodeDecodeError:
            return str(cell)
    if isinstance(cell, np.ndarray):  # lists, as pandas reads them from Parquet
        return str(cell.tolist())
    if isinstance(cell, numbers.Real) and not isinstance(cell, bool | np.bool_):
        value = float(cell)
        return str(int(value)) if value.is_integer() else repr(value)
    return str(cell)
