"""The minimax rule over profiles of rows that stay where they are.

One pass learns the bins, one counts the profiles (more when a profile needs several 64-bit keys)
and one weighs the held-out risks: all folds share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.core.solution import Solution
from laconic.data.row_keys import row_keys
from laconic.data.source import Block, Source, ordered_sum
from laconic.data.tables.columns import Table
from laconic.data.value_tables import block_tables, finished
from laconic.minimax.binning import bins_of_tables, width_cuts
from laconic.minimax.model import (
    MinimaxSettings,
    ProfileModel,
    class_means,
    deterministic,
    paid_and_mass,
    solve_profiles,
)
from laconic.minimax.profiles import BinGrid, ColumnBins, count_each

MOST_VALUES = 2**15
"""Values of a numeric column beyond which neighbours are pooled before bins are cut."""


@dataclass(frozen=True)
class HashedFolds:
    """Folds by a hash of the row's values: equal rows together, each row on its own."""

    count: int
    seed: int

    def of(self, X: Table) -> Ints:
        if self.count == 1:
            return np.zeros(len(X), dtype=np.int64)
        return np.asarray(row_keys(X, self.seed) % np.uint64(self.count)).astype(np.int64)

    def outside(self, block: Block, fold: int) -> Block:
        """The rows that a fold is fitted on; all of them for fold -1."""
        return block if fold < 0 else _taken(block, self.of(block.X) != fold)

    def inside(self, block: Block, fold: int) -> Block:
        return _taken(block, self.of(block.X) == fold)


def _taken(block: Block, chosen: NDArray[np.bool_]) -> Block:
    assert block.y is not None
    assert block.weight is not None
    rows = np.flatnonzero(chosen)
    return Block(
        block.index, block.start, block.stop, block.X[rows], block.y[rows], block.weight[rows]
    )


class _Ends:
    """Least and largest value of each column; the sum of two spans both."""

    def __init__(self, low: Floats, high: Floats) -> None:
        self.low, self.high = low, high

    def __add__(self, other: _Ends) -> _Ends:
        return _Ends(np.fmin(self.low, other.low), np.fmax(self.high, other.high))

    @staticmethod
    def of(X: Table) -> _Ends:
        columns = [X.column(j).astype(np.float64, copy=False) for j in range(len(X.names))]
        return _Ends(
            np.array([np.fmin.reduce(x, initial=np.inf) for x in columns]),
            np.array([np.fmax.reduce(x, initial=-np.inf) for x in columns]),
        )


def fit_scanned_profiles(
    source: Source, table: Table, settings: MinimaxSettings, n_folds: int | None
) -> tuple[ProfileModel, Solution, Floats | None]:
    """Model, its solution, and the class risks on rows held out (None without folds).

    ``table`` has the columns of the source and no rows.
    """
    folds = HashedFolds(n_folds or 1, settings.seed)
    fitted = [-1, *range(folds.count)] if folds.count > 1 else [-1]
    coders = _bins(source, table, settings, folds)
    counted = count_each(
        source, coders, len(settings.loss), lambda block, k: folds.outside(block, fitted[k])
    )
    solved = [
        solve_profiles(coder, *counts, _for_fold(settings, fold))
        for coder, counts, fold in zip(coders, counted, fitted, strict=True)
    ]
    model, found = solved[0]
    if folds.count == 1:
        return model, found, None
    judged = [
        own if settings.randomized else deterministic(own, solution.point)
        for own, solution in solved[1:]
    ]
    return model, found, _held_out(source, judged, folds)


def _for_fold(settings: MinimaxSettings, fold: int) -> MinimaxSettings:
    # a held-out row may well have a new profile: its nearest one says what it would cost
    wary = fold >= 0 and settings.smoothing == "error"
    return replace(settings, smoothing="nearest") if wary else settings


def _bins(
    source: Source, table: Table, settings: MinimaxSettings, folds: HashedFolds
) -> list[BinGrid]:
    """Bins of all rows, then of the rows outside each fold."""
    if settings.binning == "width":
        return _bins_of_equal_width(source, table, settings.n_bins, folds)
    n_classes = len(settings.loss)
    sizes = [
        len(texts or ()) if kind == "categorical" else None
        for kind, texts in zip(table.kinds, table.categories, strict=True)
    ]

    def of_block(block: Block) -> tuple[Any, ...]:
        parts: list[Any] = []
        for fold in range(folds.count):
            own = folds.inside(block, fold)
            assert own.y is not None
            assert own.weight is not None
            parts.extend(block_tables(own.X, own.y, own.weight, sizes, n_classes, MOST_VALUES))
        return tuple(parts)

    tables = _by_fold(finished(source.sum(of_block)), folds.count)
    return [bins_of_tables(own, settings.binning, settings.n_bins) for own in tables]


def _bins_of_equal_width(
    source: Source, table: Table, n_bins: int, folds: HashedFolds
) -> list[BinGrid]:
    ends = source.sum(
        lambda block: tuple(_Ends.of(folds.inside(block, f).X) for f in range(folds.count))
    )
    grids = []
    for (seen,) in _by_fold(list(ends), folds.count):
        columns = []
        for j, texts in enumerate(table.categories):
            if table.kinds[j] == "categorical":
                columns.append(ColumnBins(None, len(texts or ())))
                continue
            span = np.array([seen.low[j], seen.high[j]])
            cuts = width_cuts(span, n_bins) if span[0] < span[1] else np.empty(0)
            columns.append(ColumnBins(cuts, len(cuts) + 1))
        grids.append(BinGrid(tuple(columns)))
    return grids


def _by_fold(parts: Sequence[Any], n_folds: int) -> list[list[Any]]:
    """Sums over all folds, then over all but one, from what each fold adds."""
    width = len(parts) // n_folds
    own = [tuple(parts[f * width : (f + 1) * width]) for f in range(n_folds)]
    sums = [list(ordered_sum(own))]
    if n_folds > 1:
        sums += [
            list(ordered_sum(part for g, part in enumerate(own) if g != f)) for f in range(n_folds)
        ]
    return sums


def _held_out(source: Source, models: Sequence[ProfileModel], folds: HashedFolds) -> Floats:
    def of_block(block: Block) -> Floats:
        total = np.zeros((2, len(models[0].loss)))
        for fold, model in enumerate(models):
            own = folds.inside(block, fold)
            assert own.y is not None
            assert own.weight is not None
            total += paid_and_mass(model, own.X, own.y, own.weight)
        return total

    cost, mass = source.sum(of_block)
    return class_means(cost, mass)
