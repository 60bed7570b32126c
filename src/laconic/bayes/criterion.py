"""Weighted naive Bayes: its log tables, its criterion and what follows from them in closed form.

Notation of Hue, Boulle and Lemaire (EGC 2014): K variables, J classes, a_kj = p(part of x_k | C_j),
weights w in [0, 1]^K. Equation (1)::

    P_w(C_j | x) = p_j prod_k a_kj^w_k / sum_l p_l prod_k a_kl^w_k

and equation (4), with B_k = ln K - 1 + C_k (C_k: what describing variable k costs, in nats)::

    CR(w) = - sum_n ln P_w(y_n | x_n) + penalty * sum_k B_k w_k^power

The paper calls CR non-convex. That is so for power < 1 only: scores are linear in w, the first sum
is a multinomial logistic loss, and w^power is convex for power >= 1. Hence the bounds below.

The log loss, its slope and its Hessian on rows of part codes are sums over blocks
(:class:`CodedRows`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from laconic._typing import Floats, Ints
from laconic.bayes.tuning import SCRATCH_CELLS
from laconic.data.row_keys import code_keys, shuffled
from laconic.data.source import ArraySource, Block, Source
from laconic.data.value_tables import labels


@dataclass(frozen=True)
class LogTables:
    """ln p_j and ln P(part | class) of K variables, stacked: one row ("cell") for each part.

    Attributes
    ----------
    log_prior : (J,) ln p_j.
    cells : (n_cells, J) ln P(part | class j).
    start : (K + 1,) variable k owns the cells ``start[k]:start[k + 1]``.
    class_weights : (n_cells, J) training weight of each class in each part.
    """

    log_prior: Floats
    cells: Floats
    start: Ints
    class_weights: Floats

    @staticmethod
    def of(class_weights: Sequence[Floats], class_totals: Floats) -> LogTables:
        """P(i | j) = (n_ij + e) / (N_j + I e), e = 1 / (N + 1): no part is impossible.

        >>> tables = LogTables.of([np.array([[3.0, 0.0], [1.0, 4.0]])], np.array([4.0, 4.0]))
        >>> np.exp(tables.cells).round(3)
        array([[0.737, 0.026],
               [0.263, 0.974]])
        """
        n_classes = len(class_totals)
        total = float(class_totals.sum())
        e = 1.0 / (total + 1.0)
        start = _starts([len(table) for table in class_weights])
        if not len(class_weights):
            stacked = np.zeros((0, n_classes))
        else:
            stacked = np.concatenate([np.asarray(t, dtype=np.float64) for t in class_weights])
        parts = np.repeat(np.diff(start), np.diff(start))
        cells = np.log((stacked + e) / (class_totals + parts[:, None] * e))
        # a class announced but not seen yet (streams) keeps a prior above zero
        log_prior = np.log(np.maximum(class_totals, e) / total)
        return LogTables(log_prior, cells, start, stacked)

    @property
    def n_variables(self) -> int:
        return len(self.start) - 1

    @property
    def n_classes(self) -> int:
        return len(self.log_prior)

    @property
    def owner(self) -> Ints:
        """The variable of each cell."""
        return np.repeat(np.arange(self.n_variables), np.diff(self.start))

    def table(self, k: int) -> Floats:
        """ln P(part | class) of variable k."""
        return self.cells[self.start[k] : self.start[k + 1]]

    def take(self, variables: Ints) -> LogTables:
        """The tables of some variables."""
        pieces = [np.arange(self.start[k], self.start[k + 1]) for k in variables]
        rows = np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int64)
        start = _starts([len(piece) for piece in pieces])
        return LogTables(self.log_prior, self.cells[rows], start, self.class_weights[rows])


def _starts(sizes: Sequence[int]) -> Ints:
    """Where stacked pieces begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


@dataclass(frozen=True)
class WeightedBayes:
    """Criterion (4), apart from the sum over rows: that sum and its slope are handed in.

    ``cost`` holds B_k >= 0. For power >= 1 :meth:`gap` bounds CR(w) - min CR, because a convex
    loss lies above its tangent and the penalty is a sum over variables, minimised exactly.

    >>> criterion = WeightedBayes(cost=np.array([4.0]), penalty=0.5)
    >>> criterion.value(np.array([0.5]), loss=10.0)
    11.0
    >>> criterion.gap(np.array([0.5]), np.array([-3.0]))
    0.5
    """

    cost: Floats
    penalty: float = 0.1
    power: float = 1.0

    @property
    def is_convex(self) -> bool:
        return self.power >= 1.0 or self.penalty == 0.0

    @property
    def price(self) -> Floats:
        """penalty * B_k: what a weight of one pays."""
        return self.penalty * self.cost

    def regulariser(self, w: Floats) -> float:
        return float(self.price @ w**self.power)

    def value(self, w: Floats, loss: float) -> float:
        """CR(w), given its sum over rows."""
        return loss + self.regulariser(w)

    def slope(self, w: Floats, loss_slope: Floats) -> Floats:
        """Gradient (5); at w_k = 0 and power < 1, where it is infinite, the loss's part only.

        A gradient method could otherwise never bring back a variable that reached zero.
        """
        if self.power == 1.0:
            return loss_slope + self.price
        inside = np.where(w > 0.0, w, 1.0) ** (self.power - 1.0)
        return loss_slope + np.where(w > 0.0, self.price * self.power * inside, 0.0)

    def relaxed(self) -> WeightedBayes:
        """The convex criterion below this one: w <= w^power on [0, 1] for power < 1."""
        return self if self.is_convex else WeightedBayes(self.cost, self.penalty, 1.0)

    def gap(self, w: Floats, loss_slope: Floats) -> float:
        """Bound on CR(w) - min CR, from the slope of the loss at w; convex criteria only."""
        return float(self.gaps(w, loss_slope).sum())

    def gaps(self, w: Floats, loss_slope: Floats) -> Floats:
        """max over v in [0, 1] of slope_k (w_k - v) + price_k (w_k^p - v^p), each variable."""
        if not self.is_convex:
            raise ValueError("A tangent bounds a convex criterion only: power must be >= 1.")
        best = self._tangent_minimum(loss_slope)
        here = loss_slope * w + self.price * w**self.power
        return np.maximum(here - best, 0.0)

    def _tangent_minimum(self, slope: Floats) -> Floats:
        """min over v in [0, 1] of slope v + price v^power, for each variable."""
        at_one = np.minimum(slope + self.price, 0.0)
        if self.power == 1.0 or self.penalty == 0.0:
            return at_one
        price = np.maximum(self.price, 1e-300)
        with np.errstate(over="ignore"):  # a slope far above the price takes all: v = 1
            v = np.clip(-slope / (self.power * price), 0.0, 1.0) ** (1.0 / (self.power - 1.0))
        return np.minimum(at_one, slope * v + self.price * v**self.power)


def variable_costs(preparation: Floats, selection: Floats, extra: Floats | None = None) -> Floats:
    """B_k = selection_k - 1 + C_k, at least zero.

    ``selection`` is ln K for a column of the data and more for a constructed variable, so that a
    simple variable wins at equal likelihood; ``extra`` holds the user's preferences, in nats.
    """
    extra = np.zeros_like(preparation) if extra is None else extra
    return np.maximum(selection - 1.0 + preparation + extra, 0.0)


def selection_prior(n_variables: int, n_selected: int) -> float:
    """ln (K + 1) + ln C(K + s - 1, s): which variables are in (Boulle 2007, JMLR 8)."""
    if n_variables == 0:
        return 0.0
    ways = math.lgamma(n_variables + n_selected) - math.lgamma(n_selected + 1.0)
    return math.log(n_variables + 1.0) + ways - math.lgamma(n_variables)


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
