"""Passes over rows of part codes: log loss, its slope and its Hessian, as sums over blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from laconic._typing import Floats, Ints
from laconic.bayes.criterion import LogTables
from laconic.data.source import ArraySource, Block, Source

_SCRATCH_CELLS = 1 << 18


@dataclass(frozen=True)
class CodedRows:
    """Rows of part codes (a source whose X is the code matrix) read through log tables."""

    source: Source
    tables: LogTables

    @property
    def n_variables(self) -> int:
        return self.tables.n_variables

    def take(self, picked: Ints) -> CodedRows:
        """Some rows, in the given order (rows held in memory only)."""
        held = self.source
        assert isinstance(held, ArraySource)
        assert held.y is not None
        assert held.weight is not None
        source = ArraySource(held.X[picked], held.y[picked], held.weight[picked])
        return CodedRows(source, self.tables)

    def loss(self, w: Floats) -> float:
        """- sum_n s_n ln P_w(y_n | x_n)."""
        return float(self._pass(w, wants_slope=False)[0])

    def loss_and_slope(self, w: Floats) -> tuple[float, Floats]:
        loss, sums = self._pass(w, wants_slope=True)
        if self.tables.n_classes == 2:
            products = self._contrast * sums
        else:
            products = (self.tables.cells * sums).sum(axis=1)
        slope: Floats = np.zeros(self.n_variables)
        np.add.at(slope, self.tables.owner, products)
        return float(loss), slope

    @property
    def _contrast(self) -> Floats:
        return self.tables.cells[:, 1] - self.tables.cells[:, 0]

    @property
    def _offset(self) -> float:
        return float(self.tables.log_prior[1] - self.tables.log_prior[0])

    def _pass(self, w: Floats, *, wants_slope: bool) -> Any:
        from laconic.bayes import _numba as hot

        tables = self.tables
        if tables.n_classes == 2:
            contrast, offset = self._contrast, self._offset

            def two(block: Block) -> Any:
                return hot.binary_pass(
                    block.X, *labels(block), tables.start, contrast, offset, w, wants_slope
                )

            return self.source.sum(two)

        def many(block: Block) -> Any:
            return hot.class_pass(
                block.X,
                *labels(block),
                tables.start,
                tables.cells,
                tables.log_prior,
                w,
                wants_slope,
            )

        return self.source.sum(many)

    def curvature(self, w: Floats, free: Ints) -> Floats:
        """Hessian of the loss over the variables ``free``."""
        return np.asarray(self.source.sum(self._curvature_of(w, free)))

    def _curvature_of(self, w: Floats, free: Ints) -> Callable[[Block], Floats]:
        from laconic.bayes import _numba as hot

        tables = self.tables
        n_classes = tables.n_classes
        contrast = self._contrast if n_classes == 2 else np.zeros(0)
        offset = self._offset if n_classes == 2 else 0.0
        width = 1 if n_classes == 2 else n_classes
        step = max(1, _SCRATCH_CELLS // max(1, width * len(free)))

        def one(block: Block) -> Floats:
            total = np.zeros((len(free), len(free)))
            assert block.weight is not None
            for begin in range(0, len(block), step):
                rows = slice(begin, min(begin + step, len(block)))
                codes, weight = block.X[rows], block.weight[rows]
                if n_classes == 2:
                    out = np.empty((len(codes), len(free)))
                    hot.binary_curvature_rows(
                        codes, weight, tables.start, contrast, offset, w, free, out
                    )
                else:
                    wide = np.empty((len(codes), n_classes, len(free)))
                    hot.class_curvature_rows(
                        codes, weight, tables.start, tables.cells, tables.log_prior, w, free, wide
                    )
                    out = wide.reshape(-1, len(free))
                total += out.T @ out
            return total

        return one

    def total_weight(self) -> float:
        return float(self.source.sum(lambda block: labels(block)[1].sum()))


def labels(block: Block) -> tuple[Ints, Floats]:
    if block.y is None or block.weight is None:
        raise ValueError("Coded rows need class codes and weights: the source has none.")
    return block.y, block.weight
