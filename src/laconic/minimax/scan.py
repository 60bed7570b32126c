"""The minimax rule over profiles of rows that stay where they are.

One pass learns the bins, one counts the profiles (more when a profile needs several 64-bit keys)
and one weighs the held-out risks: all folds share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from laconic._typing import Floats
from laconic.core.folds import HashedFolds
from laconic.core.losses import Solution
from laconic.data.source import Block, Source, ordered_sum
from laconic.data.tables.columns import Table
from laconic.data.value_tables import block_tables, finished
from laconic.minimax.binning import bins_of_tables, grid, width_cuts
from laconic.minimax.form import ProfileRule
from laconic.minimax.model import (
    MinimaxSettings,
    ProfileModel,
    class_means,
    paid_and_mass,
    solve_profiles,
)
from laconic.minimax.profiles import BinGrid, count_each
from laconic.minimax.tuning import MOST_VALUES


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
        source, coders, len(settings.costs), lambda block, k: folds.outside(block, fitted[k])
    )
    solved = [
        solve_profiles(coder, *counts, settings if fold < 0 else settings.for_folds)
        for coder, counts, fold in zip(coders, counted, fitted, strict=True)
    ]
    risks = None
    if folds.count > 1:
        risks = _held_out(source, [model.form for model, _ in solved[1:]], folds)
    return *solved[0], risks


def _bins(
    source: Source, table: Table, settings: MinimaxSettings, folds: HashedFolds
) -> list[BinGrid]:
    """Bins of all rows, then of the rows outside each fold."""
    if settings.binning == "width":
        return _bins_of_equal_width(source, table, settings.n_bins, folds)
    n_classes = len(settings.costs)
    sizes = [
        len(texts or ()) if kind == "categorical" else None
        for kind, texts in zip(table.kinds, table.categories, strict=True)
    ]

    def of_block(block: Block) -> tuple[Any, ...]:
        parts: list[Any] = []
        for fold in range(folds.count):
            own = folds.inside(block, fold)
            parts.extend(block_tables(*own, sizes, n_classes, MOST_VALUES))
        return tuple(parts)

    tables = _by_fold(finished(source.sum(of_block)), folds.count)
    return [bins_of_tables(table, own, settings.binning, settings.n_bins) for own in tables]


def _bins_of_equal_width(
    source: Source, table: Table, n_bins: int, folds: HashedFolds
) -> list[BinGrid]:
    ends = source.sum(
        lambda block: tuple(_Ends.of(folds.inside(block, f)[0]) for f in range(folds.count))
    )

    def between(seen: _Ends) -> BinGrid:
        def cuts_of(j: int) -> Floats:
            ends = np.array([seen.low[j], seen.high[j]])
            return width_cuts(ends, n_bins) if ends[0] < ends[1] else np.empty(0)

        return grid(table, cuts_of)

    return [between(seen) for (seen,) in _by_fold(list(ends), folds.count)]


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


def _held_out(source: Source, forms: Sequence[ProfileRule], folds: HashedFolds) -> Floats:
    def of_block(block: Block) -> Floats:
        total = np.zeros((2, len(forms[0].costs)))
        for fold, form in enumerate(forms):
            total += paid_and_mass(form, *folds.inside(block, fold))
        return total

    return class_means(*source.sum(of_block))
