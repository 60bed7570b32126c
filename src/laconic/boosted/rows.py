"""Rows to boost on: copies as one, in an order of their own, and bags of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laconic._typing import Floats, Ints, Keys
from laconic.core.contract import Training
from laconic.core.folds import keys_of
from laconic.data.row_keys import salted_draws
from laconic.data.tables.columns import Table


@dataclass(frozen=True)
class Bag:
    """Rows that are boosted on come first, ``n_in`` of them; the others judge."""

    places: Ints
    n_in: int
    weight: Floats


@dataclass(frozen=True)
class DistinctRows:
    """Different rows by their keys; ``y`` is 0 or 1, ``weight`` that of all copies."""

    table: Table
    y: Floats
    weight: Floats
    keys: Keys

    @classmethod
    def of(cls, rows: Training, seed: int) -> DistinctRows:
        """Neither the order of the rows nor that of the columns changes them."""
        keys = keys_of(rows, seed)
        order = np.lexsort((rows.weight, rows.y, keys))
        same = (np.diff(keys[order]) == 0) & (np.diff(rows.y[order]) == 0)
        starts = np.flatnonzero(np.append(True, ~same))
        some = order[starts]
        weight = np.add.reduceat(rows.weight[order], starts)
        return cls(rows.table[some], rows.y[some].astype(np.float64), weight, keys[some])

    def bag(self, number: int, share: float) -> Bag:
        """Of c copies ``share`` c, within one, are in the bag; other numbers draw others.

        A weight of two is two copies; one below 1 is in the bag, or outside, as a whole.
        """
        drawn = salted_draws(self.keys, number)
        copies = np.clip(np.floor(share * self.weight - drawn) + 1.0, 0.0, self.weight)
        inside = np.where(self.weight > 1.0, copies, np.where(drawn < share, self.weight, 0.0))
        outside = self.weight - inside
        ins, outs = np.flatnonzero(inside > 0.0), np.flatnonzero(outside > 0.0)
        weight = np.concatenate([inside[ins], outside[outs]])
        return Bag(np.concatenate([ins, outs]), len(ins), weight)
