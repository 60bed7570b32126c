"""Passes over rows of part codes: log loss, its slope and its Hessian, as sums over blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from laconic._typing import Floats, Ints
from laconic.bayes.criterion import LogTables
from laconic.bayes.tuning import SCRATCH_CELLS
from laconic.data.row_keys import code_keys, shuffled
from laconic.data.source import ArraySource, Block, Source
from laconic.data.value_tables import labels


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

    def shuffled(self, seed: int) -> Ints:
        """A random order of the rows that depends on what they hold, not on where they stand."""
        held, rng = self.source, np.random.default_rng(seed)
        assert isinstance(held, ArraySource)
        assert held.y is not None
        assert held.weight is not None
        return shuffled(code_keys(held.X, held.y), held.weight, rng)

    def loss(self, w: Floats) -> float:
        """- sum_n s_n ln P_w(y_n | x_n)."""
        return float(self._pass(w, wants_slope=False)[0])

    def loss_and_slope(self, w: Floats) -> tuple[float, Floats]:
        loss, sums = self._pass(w, wants_slope=True)
        products = self.cells * sums
        slope: Floats = np.zeros(self.n_variables)
        np.add.at(
            slope, self.tables.owner, products if products.ndim == 1 else products.sum(axis=1)
        )
        return float(loss), slope

    @cached_property
    def cells(self) -> Floats:
        """What a part adds to the scores: to the log-odds of two classes, else to each class."""
        cells = self.tables.cells
        return cells[:, 1] - cells[:, 0] if self.tables.n_classes == 2 else cells

    @cached_property
    def first_score(self) -> Any:
        """The score before any variable."""
        prior = self.tables.log_prior
        return float(prior[1] - prior[0]) if self.tables.n_classes == 2 else prior

    def _scaled(self, w: Floats) -> Floats:
        own = w[self.tables.owner]
        return self.cells * (own if self.cells.ndim == 1 else own[:, None])

    def _pass(self, w: Floats, *, wants_slope: bool) -> Any:
        from laconic.bayes import _numba as hot

        two, start, first = self.tables.n_classes == 2, self.tables.start, self.first_score
        scaled, used = self._scaled(w), np.flatnonzero(w)

        def one(block: Block) -> Any:
            run = hot.binary_pass if two else hot.class_pass
            return run(block.X, *labels(block), start, scaled, first, used, wants_slope)

        return self.source.sum(one)

    def curvature(self, w: Floats, free: Ints) -> Floats:
        """Hessian of the loss over the variables ``free``."""
        from laconic.bayes import _numba as hot

        two = self.tables.n_classes == 2
        shape = (len(free),) if two else (self.tables.n_classes, len(free))
        step = max(1, SCRATCH_CELLS // max(1, math.prod(shape)))
        start, scaled, used = self.tables.start, self._scaled(w), np.flatnonzero(w)
        cells, first = self.cells, self.first_score

        def one(block: Block) -> Floats:
            run = hot.binary_curvature_rows if two else hot.class_curvature_rows
            total = np.zeros((len(free), len(free)))
            weight = labels(block)[1]
            for begin in range(0, len(block), step):
                rows = slice(begin, min(begin + step, len(block)))
                codes = block.X[rows]
                out = np.empty((len(codes), *shape))
                run(codes, weight[rows], start, scaled, cells, first, used, free, out)
                flat = out.reshape(-1, len(free))
                total += flat.T @ flat
            return total

        return np.asarray(self.source.sum(one))

    @cached_property
    def total_weight(self) -> float:
        return float(self.source.sum(lambda block: labels(block)[1].sum()))
