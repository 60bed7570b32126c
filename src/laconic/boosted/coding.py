"""Columns as ranked bytes: a cut of the ranks is a cut of a number, or parts its categories in two.

Numbers keep their order. Categories are ranked by the share of positives among their rows, drawn
towards that of all rows where they have few: the best of all partitions into two is then a cut
(Fisher, 1958). Missing numbers stand at the end whose half of the rows they are more like.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.boosted.tuning import LEAST_ROWS, PRIOR_ROWS
from laconic.data.tables.axes import (
    Axis,
    CategoryAxis,
    IntervalAxis,
    KnotRule,
    category_axis,
    encode_column,
)
from laconic.data.tables.columns import Table
from laconic.rules.conditions import quantile_cuts


@dataclass(frozen=True)
class RankedColumns:
    """Some columns of a table: ``rank[c][slot]`` is the byte of a slot of ``axes[c]``."""

    places: Ints
    axes: tuple[Axis, ...]
    ranks: tuple[Ints, ...]

    @classmethod
    def learn(
        cls, table: Table, y: Floats, weight: Floats, places: Ints, most_cuts: int
    ) -> RankedColumns:
        """At most so many cuts of a number."""
        axes, ranks = [], []
        for j in places:
            axis = _axis(table, int(j), weight, most_cuts)
            slots, _ = encode_column(axis, table, int(j))
            axes.append(axis)
            ranks.append(_ranks(axis, slots, y, weight))
        return cls(places, tuple(axes), tuple(ranks))

    @property
    def sizes(self) -> Ints:
        return np.array([axis.size for axis in self.axes], dtype=np.int64)

    def read(self, table: Table) -> NDArray[np.uint8]:
        """(columns, rows)."""
        codes = np.empty((len(self.axes), table.n_rows), dtype=np.uint8)
        for c, (j, axis, rank) in enumerate(zip(self.places, self.axes, self.ranks, strict=True)):
            codes[c] = rank[encode_column(axis, table, int(j))[0]]
        return codes


def _axis(table: Table, j: int, weight: Floats, most_cuts: int) -> Axis:
    if table.kinds[j] == "categorical":
        rule = KnotRule(min_weight=LEAST_ROWS)
        return category_axis(table.column(j), table.categories[j] or (), weight, rule)
    x = np.asarray(table.column(j), dtype=np.float64)
    seen = ~np.isnan(x)
    return IntervalAxis(quantile_cuts(x[seen], weight[seen], most_cuts))


def _ranks(axis: Axis, slots: Ints, y: Floats, weight: Floats) -> Ints:
    """The byte of each slot."""
    mass, positive = (
        np.asarray(np.bincount(slots, own, axis.size), dtype=np.float64)
        for own in (weight, weight * y)
    )
    mean = positive.sum() / mass.sum()
    rank = np.arange(axis.size)
    if isinstance(axis, CategoryAxis):
        rank[np.argsort(_share(positive, mass, mean), kind="stable")] = np.arange(axis.size)
        return rank
    lower = np.cumsum(mass[:-1]) <= mass[:-1].sum() / 2.0
    ends = [
        _share(positive[:-1][half].sum(), mass[:-1][half].sum(), mean) for half in (lower, ~lower)
    ]
    gone = _share(positive[-1], mass[-1], mean)
    return np.roll(rank, -1) if abs(gone - ends[0]) < abs(gone - ends[1]) else rank


def _share(positive: Floats, mass: Floats, mean: float) -> Floats:
    """Positives among so many rows and some more that are like all rows."""
    return np.asarray((positive + PRIOR_ROWS * mean) / (mass + PRIOR_ROWS))
