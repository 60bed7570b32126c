"""Rows of a scan that belong together, or come one after the other: who is held out with whom.

A draw gives every row a number in [0, 1); rows below a share are held out. By default the number
follows from the place of the row. Rows of one group share theirs, and with times it is the share of
rows that come later: the last ones are held out first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from laconic._typing import Floats, Keys
from laconic.data.reading.column import ColumnReading
from laconic.data.reading.raw import NO_TIME, raw_column
from laconic.data.reading.reading import read_column
from laconic.data.row_keys import mixed, number_draws, number_keys, salted_draws, text_key
from laconic.data.tables.columns import shown

MOST_GROUPS = 2**14
"""Groups up to which their rows are counted before some are held out; more even out."""


@dataclass(frozen=True)
class NumberDraw:
    """By the place of a row among those given."""

    seed: int
    columns: tuple[str, ...] = ()

    def of(self, frame: nw.DataFrame[Any], start: int) -> Floats:
        return number_draws(start, start + len(frame), self.seed)


@dataclass(frozen=True)
class GroupDraw:
    """By the entry of a column: rows of one group are drawn together.

    Of few groups, ``known`` in the order of their draws, the share of rows in those before counts:
    a quarter of ten groups is not left to chance.
    """

    column: str
    seed: int
    known: Keys | None = None
    before: Floats | None = None

    @staticmethod
    def of_counts(column: str, seed: int, counts: Mapping[int, int]) -> GroupDraw:
        """For groups with so many rows each, by key."""
        keys = np.array(list(counts), dtype=np.uint64)
        order = np.argsort(salted_draws(keys, seed))
        rows = np.array(list(counts.values()), dtype=np.float64)[order]
        before = (np.cumsum(rows) - rows) / rows.sum()
        places = np.argsort(keys[order])
        return GroupDraw(column, seed, keys[order][places], before[places])

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def of(self, frame: nw.DataFrame[Any], start: int) -> Floats:
        keys = group_keys(frame[self.column], start)
        if self.known is None or self.before is None:
            return salted_draws(keys, self.seed)
        place = np.searchsorted(self.known, keys)
        return np.asarray(self.before[np.minimum(place, len(self.known) - 1)])


@dataclass(frozen=True)
class TimeDraw:
    """By time: ``later[k]`` is the share of rows that come after ``times[k]``."""

    time: TimeColumn
    times: Floats
    later: Floats

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.time.name,)

    def of(self, frame: nw.DataFrame[Any], start: int) -> Floats:
        own = self.time.values(frame[self.time.name])
        # a time between two that stand for others is drawn like the later one
        place = np.minimum(np.searchsorted(self.times, own), len(self.times) - 1)
        return np.asarray(self.later[place])


@dataclass(frozen=True)
class TimeColumn:
    """A column of times: numbers, dates, or texts that ``reading`` says how to read as dates."""

    name: str
    reading: ColumnReading | None = None

    def values(self, cells: Any) -> Floats:
        """Times of the cells of the column."""
        raw = raw_column(cells, self.name)
        if raw.form == "texts":
            if self.reading is None or self.reading.kind not in ("date", "date-time", "number"):
                raise ValueError(
                    f"The time column {shown(self.name)} holds texts that are not read as dates; "
                    "give a column of dates or numbers."
                )
            found = np.asarray(read_column(self.reading, cells)[0].values)
        else:
            found = np.where(raw.values == NO_TIME, np.nan, raw.values.astype(np.float64))
        if np.isnan(found).any():
            raise ValueError(
                f"The time column {shown(self.name)} has rows without a time; give them one, or "
                "leave them out."
            )
        return np.asarray(found, dtype=np.float64)


def group_keys(column: nw.Series[Any], start: int) -> Keys:
    """A key of each entry; a row without one is a group of its own, by its place."""
    raw = raw_column(column, str(column.name))
    gone, values = np.asarray(raw.missing), np.asarray(raw.values)
    if raw.form == "texts":
        known = np.array([text_key(text) for text in raw.texts] or [0], dtype=np.uint64)
        keys = known[values]
    else:
        keys = mixed(number_keys(values.astype(np.float64), np.uint64(1)) + np.uint64(1))
    places = np.arange(start, start + len(keys), dtype=np.uint64)
    return np.where(gone, mixed(mixed(places) + np.uint64(7)), keys)
