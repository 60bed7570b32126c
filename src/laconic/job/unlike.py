"""Whether rows to predict look like the rows that the model was measured on, column by column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from laconic._typing import Floats
from laconic.data.tables.columns import Table, shown
from laconic.data.tables.spoken import short_name
from laconic.decide.reference import ColumnReference, Reference

MOVED = 0.25
"""Stability index from which credit departments call a population another one. By convention."""
FEWEST_ROWS = 20
_NAMED = 3


@dataclass(frozen=True)
class UnlikeColumn:
    """A column whose cells fall otherwise than at the fit, and the bin that moved most."""

    name: str
    index: float
    bin: str
    before: float
    now: float

    def to_dict(self) -> dict[str, Any]:
        return {
            "column": self.name,
            "index": self.index,
            "bin": self.bin,
            "before": self.before,
            "now": self.now,
        }


class Likeness:
    """Counts of the rows that are predicted, chunk after chunk, beside those of the reference.

    The index of a column is sum over bins of (q - p) ln(q / p), p and q the shares then and now:
    the symmetric divergence that is called population stability index.
    """

    def __init__(self, reference: Reference | None) -> None:
        self.columns = () if reference is None else reference.columns
        self.counts = [np.zeros(one.n_bins) for one in self.columns]
        self.n_rows = 0

    def add(self, table: Table) -> None:
        """Count some rows."""
        self.n_rows += table.n_rows
        for one, counts in zip(self.columns, self.counts, strict=True):
            counts += np.bincount(one.bins(table), minlength=one.n_bins)

    def unlike(self) -> list[UnlikeColumn]:
        """The columns that moved, the most moved first."""
        if self.n_rows < FEWEST_ROWS:
            return []
        found = [
            self._compared(one, new) for one, new in zip(self.columns, self.counts, strict=True)
        ]
        return sorted((one for one in found if one is not None), key=lambda one: -one.index)

    def _compared(self, column: ColumnReference, new: Floats) -> UnlikeColumn | None:
        old = column.counts.sum(axis=0)
        if not old.any():
            return None
        # half a row in every bin: an empty bin is no proof
        p, q = ((n + 0.5) / (n.sum() + 0.5 * len(n)) for n in (old, new))
        parts = (q - p) * np.log(q / p)
        # what chance alone gives, about: one degree of freedom a bin, from both samples
        chance = (len(old) - 1) * (1.0 / old.sum() + 1.0 / new.sum())
        if parts.sum() <= MOVED + 3.0 * chance:
            return None
        b = int(np.argmax(np.abs(q - p)))
        before, now = float(old[b] / old.sum()), float(new[b] / new.sum())
        return UnlikeColumn(column.name, float(parts.sum()), column.label(b), before, now)


def sentence(unlike: list[UnlikeColumn]) -> str:
    """One line on what moved.

    >>> sentence([UnlikeColumn("amount", 3.1, "> 812.5", 0.1, 0.98)])
    "rows unlike those of the fit: 'amount' is > 812.5 in 98% of the rows, in 10% at the fit"
    """
    said = []
    for one in unlike[:_NAMED]:
        share = f"in {one.now:.0%} of the rows, in {one.before:.0%} at the fit"
        said.append(f"{shown(short_name(one.name))} is {one.bin} {share}")
    more = len(unlike) - _NAMED
    if more > 0:
        said.append(f"and {more} more column{'s' if more > 1 else ''}")
    return "rows unlike those of the fit: " + "; ".join(said)
