"""From a table as it comes to numbers and categories, in the same way at fit and at prediction."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from laconic.data.reading.asked import Asked
from laconic.data.reading.column import REFERENCE, ColumnReading
from laconic.data.reading.dates import DAY, HOUR, clock_text, date_texts, reading_orders
from laconic.data.reading.evidence import TYPED, Evidence, evidence_of
from laconic.data.reading.kinds import Habits
from laconic.data.reading.numbers import number_text
from laconic.data.reading.raw import NO_TIME, RawColumn, raw_column, text_of
from laconic.data.reading.words import NOTHING_KNOWN, WEEKDAYS, YES_NO, words_of
from laconic.data.tables.cells import cleaned, plain_numbers, polars_of
from laconic.data.tables.columns import MISSING, Column, Table, all_columns, shown, wanted_columns

_SINCE = int(np.datetime64(REFERENCE, "us").astype(np.int64))
_YES_WORDS = frozenset(pair[0] for pair in YES_NO) | {"1"}
_NO_WORDS = frozenset(pair[1] for pair in YES_NO) | {"0"}


class UnreadableCellError(ValueError):
    """A cell is not of the kind that its column had at fit; the sentence names both."""


@dataclass(frozen=True)
class Reading:
    """How the columns of a table are read: learned from the rows of a fit, stored with the model.

    Numbers stay numbers; amounts, shares, durations and times become numbers; dates become days
    since 2020-01-01 and, where it says more, weekday, month and hour; yes and no become a category
    of these two; of free text some frequent words are read; identifiers, constants and empty
    columns are left out.

    Attributes
    ----------
    columns : tuple of ColumnReading
        One for each column of the table, also for those left out.
    missing : tuple of str
        Texts that the user called missing.

    Examples
    --------
    >>> table = {"paid": ["1,50 €", "2,25 €", "12,00 €"], "ok": ["Yes", "No", "Yes"]}
    >>> reading = Reading.learn(table)
    >>> [(column.name, column.kind) for column in reading.columns]
    [('paid', 'number'), ('ok', 'yes/no')]
    >>> reading.apply({"ok": [True], "paid": ["1.234,00 €"]}).column(0)
    array([1234.])
    """

    columns: tuple[ColumnReading, ...]
    missing: tuple[str, ...] = ()

    @staticmethod
    def learn(X: Any, asked: Asked | None = None) -> Reading:
        """Find out how the columns of a frame, a dict of columns or a raw table are read."""
        asked = asked or Asked()
        return Reading.decide(gather(X, asked.missing), asked)

    @staticmethod
    def decide(found: Mapping[str, Evidence], asked: Asked) -> Reading:
        """From the summaries of all columns."""
        asked.check(found)
        habits = Habits.of(list(found.values()))
        columns = tuple(asked.reading(name, own, habits) for name, own in found.items())
        return Reading(columns, asked.missing)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that are read."""
        return tuple(column.name for column in self.columns if column.used)

    @property
    def made(self) -> tuple[str, ...]:
        """The columns that come out."""
        return tuple(name for column in self.columns for name in column.made)

    @property
    def switches(self) -> frozenset[str]:
        """Columns that say with 1 or 0 whether a text has a word."""
        return frozenset(name for column in self.columns if column.words for name in column.made)

    def only(self, made: Sequence[str]) -> Reading:
        """What is needed for some of the columns that come out."""
        wanted = set(made)
        columns = tuple(column for column in self.columns if wanted & set(column.made))
        return Reading(columns, self.missing)

    def warn(self, stacklevel: int = 2) -> None:
        """One warning for the columns whose cells are in part or all not used."""
        lost = [c for c in self.columns if c.kind in ("id", "text") or c.missing]
        if lost:
            said = "; ".join(f"{shown(c.name)}: {c.said}" for c in lost)
            warnings.warn(
                f"Columns were not read as they stand: {said}. laconic.look says how all are read "
                "and takes drop=, keep=, kinds= and missing=.",
                UserWarning,
                stacklevel=stacklevel,
            )

    def notes(self) -> list[str]:
        """One line for each column that a reader should know of."""
        return [f"{shown(c.name)}: {c.said}" for c in self.columns if c.notable]

    def apply(self, X: Any) -> Table:
        """The numbers and categories of a table with these columns, found by name."""
        if not self.inputs:
            raise ValueError(
                "No column is left to learn from: "
                + "; ".join(f"{shown(c.name)}, {c.said}" for c in self.columns[:5])
                + ". Keep one with --keep or Asked(keep=...)."
            )
        given = wanted_columns(X, self.inputs)
        names: list[str] = []
        made: list[Column] = []
        for column, raw in zip((c for c in self.columns if c.used), given, strict=True):
            names += column.made
            made += read_column(column, raw, self.missing)
        return Table(
            tuple(names),
            tuple(column.kind for column in made),
            tuple(column.categories for column in made),
            [column.values for column in made],
        )

    def frame(self, X: Any) -> Any:
        """What :meth:`apply` makes, in a frame of the library that X comes from, or a dict.

        For models of other libraries: numbers are floats with NaN, categories texts with None.

        >>> Reading.learn({"ok": ["TRUE", "FALSE", ""]}).frame({"ok": ["false", None, "TRUE"]})
        {'ok': array(['no', None, 'yes'], dtype=object)}
        """
        table = self.apply(X)
        columns = {name: _cells(table, j) for j, name in enumerate(table.names)}
        given = nw.from_native(X, eager_only=True, pass_through=True)
        if not isinstance(given, nw.DataFrame):
            return columns
        # lists: a library gives texts its own type
        lists = {name: cells.tolist() for name, cells in columns.items()}
        return nw.from_dict(lists, backend=given.implementation).to_native()

    def to_dict(self) -> dict[str, Any]:
        return {
            "columns": [column.to_dict() for column in self.columns],
            "missing": list(self.missing),
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Reading:
        missing = data["missing"]
        if not all(isinstance(text, str) for text in missing):
            raise ValueError("missing must be a list of texts")
        return Reading(tuple(map(ColumnReading.from_dict, data["columns"])), tuple(missing))


def _cells(table: Table, j: int) -> NDArray[Any]:
    texts = table.categories[j]
    if texts is None:
        return table.column(j)
    # the last entry is read by the code of a missing cell
    found: NDArray[Any] = np.array([*texts, None], dtype=object)[table.column(j)]
    return found


def gather(X: Any, missing: Sequence[str] = ()) -> dict[str, Evidence]:
    """The summaries of the columns of some rows; those of other rows may be added to them."""
    names, columns = all_columns(X)
    found = {}
    for name, raw in zip(names, columns, strict=True):
        found[name] = evidence_of(without(raw_column(raw, name), missing))
    return found


def without(column: RawColumn, missing: Sequence[str]) -> RawColumn:
    """The column, cells that are called missing taken out."""
    if not missing:
        return column
    if column.form == "texts":
        lookup = [MISSING if text in missing else k for k, text in enumerate(column.texts)]
        codes = np.array([*lookup, MISSING], dtype=np.int64)[column.values]
        used = np.unique(codes[codes >= 0])
        place = np.full(len(column.texts) + 1, MISSING, dtype=np.int64)
        place[used] = np.arange(len(used))
        texts = tuple(column.texts[k] for k in used)
        return RawColumn("texts", place[codes], texts, column.declared)
    if column.form == "numbers":
        values = [found.point for text in missing if (found := number_text(text)) is not None]
        known = np.isin(column.values, [value for value in values if value is not None])
        return RawColumn("numbers", np.where(known, np.nan, column.values))
    if column.form == "moments":
        dates = [moment for text in missing for _, moment in date_texts(text)]
        return RawColumn("moments", np.where(np.isin(column.values, dates), NO_TIME, column.values))
    return column


def read_column(column: ColumnReading, raw: Any, missing: Sequence[str] = ()) -> list[Column]:
    """The columns that one column becomes."""
    if column.kind == "number":
        return [Column("numeric", _number_values(column, raw, missing))]
    cells = without(raw_column(raw, column.name), missing)
    if column.kind in ("date", "date-time"):
        return _date_columns(column, _moments(column, cells))
    if column.kind in ("time", "duration"):
        spans = _spans(column, cells)
        hours = np.where(spans == NO_TIME, np.nan, spans / HOUR)
        return [Column("numeric", hours)]
    if column.kind == "yes/no":
        return [_yes_no_column(column, cells)]
    if column.kind == "text":
        return _word_columns(column, cells)
    return [_category_column(column, cells)]


def _number_values(column: ColumnReading, raw: Any, missing: Sequence[str]) -> NDArray[np.float64]:
    texts = raw.to_native() if isinstance(raw, nw.Series) else raw
    plain = column.decimal == "." and not column.unit and not missing
    pl = polars_of(texts) if plain else None
    if pl is None or texts.dtype != pl.String:
        return _numbers(column, without(raw_column(raw, column.name), missing))
    # a column of plain numbers in a text file: read by polars, and cell by cell where it cannot
    texts = cleaned(texts)
    values = plain_numbers(texts)
    rest = np.flatnonzero(np.isnan(values) & ~texts.is_null().to_numpy())
    if len(rest):
        values = values.copy()
        values[rest] = _numbers(column, raw_column(texts[rest].to_list(), column.name))
    if np.isinf(values).any():
        raw_column(values, column.name)  # says which column it is
    return values


def _numbers(column: ColumnReading, cells: RawColumn) -> NDArray[np.float64]:
    if cells.form in ("numbers", "truth"):
        return np.asarray(cells.values, dtype=np.float64)

    def value(text: str) -> float | None:
        found = number_text(text)
        return None if found is None else found.in_unit(column.unit, column.decimal)

    return _looked_up(column, cells, value, np.nan, "a number")


def _moments(column: ColumnReading, cells: RawColumn) -> NDArray[np.int64]:
    if cells.form == "moments":
        return cells.values
    if cells.form == "numbers":  # only digits, in a column that has no other form
        known = [text_of(value) if value == value else None for value in cells.values.tolist()]
        cells = raw_column(known, column.name)

    def value(text: str) -> int | None:
        found = dict(date_texts(text))
        if column.order != TYPED:
            return next((found[own] for own in reading_orders(column.order) if own in found), None)
        return next(iter(found.values())) if len(found) == 1 else found.get("dmy")

    return _looked_up(column, cells, value, NO_TIME, "a date")


def _spans(column: ColumnReading, cells: RawColumn) -> NDArray[np.int64]:
    if cells.form in ("spans", "clock"):
        return cells.values

    def value(text: str) -> int | None:
        found = clock_text(text)
        return None if found is None else found[0]

    return _looked_up(column, cells, value, NO_TIME, "a time")


def _looked_up(
    column: ColumnReading,
    cells: RawColumn,
    value: Callable[[str], Any],
    nothing: Any,
    what: str,
) -> NDArray[Any]:
    """The value of every text; texts that are none are missing where that was agreed at fit."""
    found = [nothing] * (len(cells.texts) + 1)
    if cells.form != "texts":
        if cells.missing.all():
            return np.full(len(cells), nothing)
        raise UnreadableCellError(
            f"Column {shown(column.name)} holds {cells.form}; the model was fitted on "
            f"{what[2:]}s there."
        )
    for k, text in enumerate(cells.texts):
        read = value(text)
        if read is not None:
            found[k] = read
        elif not (column.lenient or text in column.missing or text.lower() in NOTHING_KNOWN):
            raise UnreadableCellError(
                f"Column {shown(column.name)} holds {shown(text)}, which is not {what} as the "
                "model was fitted on; correct it, or call it missing at the fit (--missing)."
            )
    values: NDArray[Any] = np.array(found)[cells.values]
    return values


def _date_columns(column: ColumnReading, moments: NDArray[np.int64]) -> list[Column]:
    gone = moments == NO_TIME
    whole = np.where(gone, 0, moments)
    days = whole.astype("datetime64[us]").astype("datetime64[D]")
    parts: dict[str, Callable[[], Column]] = {
        "days": lambda: _number_column((whole - _SINCE) / DAY, gone),
        "weekday": lambda: _weekday_column((days.astype(np.int64) + 3) % 7, gone),
        "month": lambda: _number_column(_months(days) % 12 + 1, gone),
        "hour": lambda: _number_column((whole % DAY) // HOUR, gone),
    }
    return [parts[part]() for part in column.parts]


def _months(days: NDArray[Any]) -> NDArray[np.int64]:
    months: NDArray[np.int64] = days.astype("datetime64[M]").astype(np.int64)
    return months


def _number_column(values: NDArray[Any], gone: NDArray[np.bool_]) -> Column:
    return Column("numeric", np.where(gone, np.nan, values.astype(np.float64)))


def _weekday_column(places: NDArray[np.int64], gone: NDArray[np.bool_]) -> Column:
    return _coded([*WEEKDAYS], np.where(gone, MISSING, places))


def _word_columns(column: ColumnReading, cells: RawColumn) -> list[Column]:
    """1 where a text has a word, 0 where it has not, missing where there is no text."""
    if cells.form != "texts":
        if not cells.missing.all():
            raise UnreadableCellError(
                f"Column {shown(column.name)} holds {cells.form}; the model was fitted on texts."
            )
        return [Column("numeric", np.full(len(cells), np.nan)) for _ in column.words]
    said = [words_of(text) for text in cells.texts]
    # the last entry is read by the code of a missing cell
    has = np.array([[*(word in own for own in said), np.nan] for word in column.words])
    return [Column("numeric", own[cells.values]) for own in has.astype(np.float64)]


def _yes_no_column(column: ColumnReading, cells: RawColumn) -> Column:
    if cells.form in ("truth", "numbers"):
        odd = ~np.isin(cells.values, (0.0, 1.0)) & ~cells.missing
        if odd.any():
            raise UnreadableCellError(
                f"Column {shown(column.name)} holds {cells.values[odd][0]:g}; the model was fitted "
                "on yes and no there."
            )
        codes = np.where(cells.missing, MISSING, cells.values == 1.0).astype(np.int64)
        return _coded([column.no, column.yes], codes)
    return _coded([_yes_or_no(column, text) for text in cells.texts], cells.values)


def _yes_or_no(column: ColumnReading, text: str) -> str:
    """Every word for yes and no is read; any other text is a level that the fit has not seen."""
    said = text.lower()
    return column.yes if said in _YES_WORDS else column.no if said in _NO_WORDS else text


def _category_column(column: ColumnReading, cells: RawColumn) -> Column:
    if cells.form == "texts":
        return _coded(list(cells.texts), cells.values)
    if cells.form == "truth":
        return _coded(["False", "True"], np.where(cells.missing, MISSING, cells.values).astype(int))
    if cells.form == "numbers":
        known, places = np.unique(cells.values, return_inverse=True)
        texts = [text_of(value).zfill(column.width) for value in known[~np.isnan(known)].tolist()]
        return _coded(texts, np.where(cells.missing, MISSING, places))
    raise UnreadableCellError(
        f"Column {shown(column.name)} holds {cells.form}; the model was fitted on categories there."
    )


def _coded(texts: Sequence[str], codes: NDArray[np.int64]) -> Column:
    """A categorical column of the texts that are there, in order."""
    present = np.unique(codes[codes >= 0])
    if not len(present):
        return Column("numeric", np.full(len(codes), np.nan))
    known = tuple(sorted({texts[k] for k in present}))
    place = {text: k for k, text in enumerate(known)}
    lookup = np.array([*(place.get(text, MISSING) for text in texts), MISSING], dtype=np.int32)
    return Column("categorical", lookup[codes], known)
