r"""Rows on which a page learns what a long form says: those of the table, and mingled ones.

A long form has no noise, so that few rows teach it. Where a table has hardly more rows than a page
has entries, though, a page can say what the long form says on these rows and something else beside
them: what stays takes over from what leaves wherever two columns happened to move together. So few
rows get company: copies in which every cell is, one time in two, that of another row. Columns keep
their own laws, and half of what they do together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laconic._typing import Floats, Ints, Keys
from laconic.choose.budget import keyed_sample
from laconic.choose.tuning import LESSON_ROWS, MINGLED_CELLS, MINGLED_ROWS
from laconic.core.contract import Training
from laconic.core.folds import keys_of
from laconic.core.forms import AdditiveScore
from laconic.data.row_keys import content_keys, name_keys, row_keys, salted_draws
from laconic.data.tables.columns import Table


@dataclass(frozen=True)
class Lesson:
    """Rows, their weights and keys, and the keys of the columns."""

    table: Table
    weight: Floats
    keys: Keys
    columns: Keys

    @classmethod
    def of(cls, training: Training, places: Ints | None = None) -> Lesson:
        """Rows enough to learn from, of some places or of all."""
        few = keyed_sample(keys_of(training, 0), training.y, LESSON_ROWS)
        few = few if places is None else np.intersect1d(few, places)
        table = training.table[few]
        # keys of these rows alone: what the others are labelled must not decide what is drawn
        columns = content_keys(table, training.y[few])
        return cls(table, training.weight[few], row_keys(table, 0, columns), columns)

    @classmethod
    def of_sample(cls, table: Table, weight: Floats) -> Lesson:
        """Rows that were drawn already, from a table with names."""
        return cls(table, weight, row_keys(table), name_keys(table.names))

    def rows_for(self, form: AdditiveScore) -> tuple[Table, Floats]:
        """The rows with their company, in the columns that the form reads, and their weights.

        What is drawn depends on the values of a row, not on its place: a weight of two is two
        equal rows.

        >>> table = Table(("a",), ("numeric",), (None,), matrix=np.arange(4.0)[:, None])
        >>> from laconic.core.forms import LineTerm
        >>> line = LineTerm("a", np.ones(1), 0.0, np.zeros(1))
        >>> form = AdditiveScore((0, 1), np.zeros(1), (line,))
        >>> len(Lesson.of_sample(table, np.ones(4)).rows_for(form)[0])
        1200
        """
        keys, first, place = np.unique(self.keys, return_index=True, return_inverse=True)
        copies = -(-MINGLED_ROWS // max(len(keys), 1))
        if copies < 2 or not form.columns:
            return self.table, self.weight
        # equal rows would draw the same cells: one stands for all, with their weight
        own_rows, weight = self.table[first], np.bincount(place, self.weight)
        names = sorted(form.columns)
        at = [own_rows.place(name) for name in names]
        up_to = np.cumsum(weight)
        cells = [[np.asarray(own_rows.column(j))] for j in at]
        for copy in range(1, copies):
            for j, own in zip(at, cells, strict=True):
                drawn = salted_draws(keys, self.columns[j], copy) / MINGLED_CELLS
                other = np.searchsorted(up_to, drawn * up_to[-1], side="right")
                other = np.minimum(other, len(keys) - 1)
                own.append(np.where(drawn < 1.0, own[0][other], own[0]))
        kinds = tuple(self.table.kinds[j] for j in at)
        known = tuple(self.table.categories[j] for j in at)
        table = Table(tuple(names), kinds, known, [np.concatenate(own) for own in cells])
        return table, np.tile(weight, copies)
