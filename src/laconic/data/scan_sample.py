"""Some rows of a scan in memory: drawn by their number, whoever reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.data.columns import Table
from laconic.data.row_keys import number_draws
from laconic.data.source import Block, Source

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class HeldRows:
    """A share of the rows that were given, drawn by their number."""

    share: float
    seed: int

    def among(self, start: int, stop: int) -> NDArray[np.bool_]:
        return np.asarray(number_draws(start, stop, self.seed) < self.share)


@dataclass(frozen=True)
class Sample:
    """Rows in memory: their table, class codes, and weights that stand for the whole."""

    table: Table
    y: Ints
    weight: Floats

    def __len__(self) -> int:
        return len(self.y)


def draw_sample(source: Source, empty: Table, n_classes: int, n_rows: int, seed: int) -> Sample:
    """About ``n_rows`` rows of a source of tables, the rare classes in larger shares.

    Each of the K classes is drawn at a rate that leaves it about ``n_rows / 2K`` rows when it has
    them, or at the common rate when that gives more; the weights undo it, and add up to what as
    many rows drawn alike would weigh.
    """

    def count(block: Block) -> tuple[Ints, float]:
        assert block.y is not None
        assert block.weight is not None
        return np.bincount(block.y, minlength=n_classes), float(block.weight.sum())

    counts, total = source.sum(count, [])
    floor = n_rows / (2.0 * n_classes)
    with np.errstate(divide="ignore"):
        rates = np.minimum(1.0, np.maximum(n_rows / counts.sum(), floor / counts))

    def one(block: Block) -> tuple[list[NDArray[Any]], Ints, Floats]:
        assert block.y is not None
        assert block.weight is not None
        drawn = number_draws(block.start, block.stop, seed) < rates[block.y]
        rows = np.flatnonzero(drawn)
        table, y = block.X[rows], block.y[rows]
        cells = [table.column(j) for j in range(len(table.names))]
        return cells, y, block.weight[rows] / rates[y]

    parts = list(source.map(one))
    y = np.concatenate([part[1] for part in parts])
    weight = np.concatenate([part[2] for part in parts])
    weight *= total * len(y) / (counts.sum() * weight.sum())
    columns = [np.concatenate([part[0][j] for part in parts]) for j in range(len(empty.names))]
    return Sample(Table(empty.names, empty.kinds, empty.categories, columns), y, weight)
