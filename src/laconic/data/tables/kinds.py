"""One column of a table, whatever it came as: numbers, truth values or texts."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

Kind = Literal["numeric", "boolean", "categorical"]

MISSING = -1
UNSEEN = -2

_SHOWN = 60
_FEW_ROWS = 256
"""Below this a dict is faster than the frame library's own look-up."""


def shown(name: object) -> str:
    """A column name as error messages show it: quoted, one line, not endless."""
    text = str(name)
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")


def forbidden_pairs(
    forbid: Sequence[Sequence[str]] | None, names: Sequence[str]
) -> frozenset[tuple[int, int]]:
    """Places of the columns of each pair, the smaller one first.

    >>> forbidden_pairs([("sex", "age")], ["age", "income", "sex"])
    frozenset({(0, 2)})
    """
    found = set()
    for pair in forbid or ():
        if isinstance(pair, str) or len(pair) != 2 or pair[0] == pair[1]:
            raise ValueError(f"forbid must hold pairs of two columns, got {pair!r}.")
        odd = [name for name in pair if name not in names]
        if odd:
            raise ValueError(f"forbid names {shown(odd[0])}, which is not a column of X.")
        first, last = sorted(names.index(name) for name in pair)
        found.add((first, last))
    return frozenset(found)


@dataclass(frozen=True)
class Column:
    """One column as it came: floats, or texts with None for missing."""

    kind: Kind
    values: NDArray[Any]
    categories: tuple[str, ...] | None = None

    @property
    def empty(self) -> bool:
        """True when no cell has a value: such a column agrees with every kind."""
        if self.kind == "categorical":
            return not bool((self.values != MISSING).any())
        return bool(np.isnan(self.values).all())


def infinite_message(name: object) -> str:
    return (
        f"Column {shown(name)} has infinite values (inf); replace them by missing or by a finite "
        "bound."
    )


def as_column(raw: Any, name: str, categories: tuple[str, ...] | None = None) -> Column:
    """One raw column (narwhals series, array or list) with its kind; codes where categorical."""
    if isinstance(raw, Column):
        if raw.kind != "categorical":
            return raw
        return _recode(raw.values, list(raw.categories or ()), categories)
    if isinstance(raw, nw.Series):
        dtype = raw.dtype
        if dtype == nw.Object:
            return _from_objects(raw.to_list(), name, categories)
        return _from_series(raw, dtype, name, categories)
    array = np.asarray(raw)
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: column {shown(name)}.")
    if array.dtype.kind in "biuf":
        return _numeric(array, name, boolean=array.dtype == bool)
    return _from_objects(array.tolist() if array.dtype.kind in "US" else array, name, categories)


def _numeric(values: NDArray[Any], name: str, *, boolean: bool) -> Column:
    values = np.asarray(values, dtype=np.float64)
    if np.isinf(values).any():
        raise ValueError(infinite_message(name))
    return Column("boolean" if boolean else "numeric", values)


def _from_series(
    series: nw.Series[Any], dtype: Any, name: str, categories: tuple[str, ...] | None
) -> Column:
    if dtype == nw.Float64:
        return _numeric(series.to_numpy(), name, boolean=False)
    if dtype == nw.Boolean or dtype.is_numeric():
        values = series.cast(nw.Float64).to_numpy()
        return _numeric(values, name, boolean=dtype == nw.Boolean)
    if dtype in (nw.Categorical, nw.Enum):
        # pandas: texts of the categories, not of the cells, whose numbers change type with NaN
        accessor = getattr(series.to_native(), "cat", None)
        codes = getattr(accessor, "codes", None)
        if accessor is not None and codes is not None:
            texts = [str(text) for text in accessor.categories]
            return _recode(np.asarray(codes), texts, categories)
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        text = series if dtype == nw.String else series.cast(nw.String)
        if len(text) <= _FEW_ROWS:
            return _from_objects(text.to_list(), name, categories)
        return _from_texts(text, categories)
    if dtype == nw.Unknown or str(dtype).lower() == "null":
        return _from_objects(series.to_list(), name, categories)
    raise ValueError(
        f"Column {shown(name)} holds {dtype}, which is neither a number nor a category; turn it "
        "into numbers (for a date, days since a fixed day) or text."
    )


def _from_texts(text: nw.Series[Any], categories: tuple[str, ...] | None) -> Column:
    """Codes of a long text column, looked up by the frame library."""
    known = categories
    if known is None:
        known = tuple(sorted(text.drop_nulls().unique().to_list()))
    missing = text.is_null().to_numpy()
    if missing.all() and categories is None:
        return Column("numeric", np.full(len(missing), np.nan))
    codes = np.full(len(missing), UNSEEN, dtype=np.int32)
    if known:
        found = text.fill_null(known[0]).replace_strict(
            list(known), list(range(len(known))), default=UNSEEN, return_dtype=nw.Int32
        )
        codes = np.array(found.to_numpy(), dtype=np.int32)
    codes[missing] = MISSING
    return Column("categorical", codes, known)


def _recode(codes: NDArray[Any], texts: list[str], categories: tuple[str, ...] | None) -> Column:
    """Codes into ``texts`` become codes into ``categories`` (or into the texts present)."""
    if categories is None:
        present = np.unique(codes[codes >= 0])
        if not len(present):
            return Column("numeric", np.full(len(codes), np.nan))
        categories = tuple(sorted({texts[k] for k in present}))
    place = {text: k for k, text in enumerate(categories)}
    # the two negative codes index the end of the lookup
    lookup = np.array(
        [place.get(text, UNSEEN) for text in texts] + [UNSEEN, MISSING], dtype=np.int32
    )
    return Column("categorical", lookup[codes], categories)


def _from_objects(cells: Any, name: str, categories: tuple[str, ...] | None) -> Column:
    """Python objects: all numbers, all truth values, or texts compared by ``str``."""
    absent = [is_missing(cell) for cell in cells]
    filled = [cell for cell, gone in zip(cells, absent, strict=True) if not gone]
    if any(isinstance(cell, complex | np.complexfloating) for cell in filled):
        raise ValueError(f"Complex data not supported: column {shown(name)}.")
    if all(isinstance(cell, numbers.Number | np.bool_) for cell in filled):
        boolean = bool(filled) and all(isinstance(cell, bool | np.bool_) for cell in filled)
        values = np.full(len(absent), np.nan)
        values[~np.array(absent, dtype=bool)] = [float(cell) for cell in filled]
        return _numeric(values, name, boolean=boolean)
    texts = [str(cell) for cell in filled]
    if categories is None:
        categories = tuple(sorted(set(texts)))
    place = {text: k for k, text in enumerate(categories)}
    codes = np.full(len(absent), MISSING, dtype=np.int32)
    codes[~np.array(absent, dtype=bool)] = [place.get(text, UNSEEN) for text in texts]
    return Column("categorical", codes, categories)


def is_missing(cell: object) -> bool:
    """None, NaN, and pandas.NA and pandas.NaT, recognised without importing pandas."""
    if cell is None or (isinstance(cell, float) and cell != cell):
        return True
    return type(cell).__name__ in ("NAType", "NaTType")
