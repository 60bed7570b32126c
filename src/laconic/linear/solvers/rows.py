"""Passes over the rows of a linear model: scores, losses, gradient, Hessian, a few rows.

Every pass is a sum or a map over the source's blocks; what is kept per row is a handful of
vectors (score, slope, curvature, weight, target), never a copy of the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import vstack

from laconic._typing import Floats, Ints
from laconic.core.losses import Kink, ScoreLoss, TruncatedLogistic, fenchel_young
from laconic.data.source import ArraySource, Block, Source
from laconic.linear.tuning import CHUNK_ROWS


@dataclass
class RowState:
    """Scores of every row and the weighted loss there."""

    z: Floats
    slope: Floats
    curvature: Floats
    loss: float


@dataclass(frozen=True)
class FewRows:
    """Some rows by number: (x, 1), target, weight; those crossed first when there are too many."""

    index: Ints
    table: Floats
    y: Floats
    weight: Floats
    when: Floats
    room: int

    @staticmethod
    def none(width: int, room: int = 0) -> FewRows:
        index, nothing = np.zeros(0, np.int64), np.zeros(0)
        return FewRows(index, np.zeros((0, width)), nothing, nothing, nothing, room)

    def __len__(self) -> int:
        return len(self.index)

    def take(self, chosen: Any) -> FewRows:
        if not len(self):  # a loss without kinks asks for nothing, several times a step
            return self
        return FewRows(
            self.index[chosen],
            self.table[chosen],
            self.y[chosen],
            self.weight[chosen],
            self.when[chosen],
            self.room,
        )

    def __add__(self, other: FewRows) -> FewRows:
        return FewRows(
            np.concatenate([self.index, other.index]),
            np.concatenate([self.table, other.table]),
            np.concatenate([self.y, other.y]),
            np.concatenate([self.weight, other.weight]),
            np.concatenate([self.when, other.when]),
            self.room,
        ).first()

    def first(self) -> FewRows:
        if len(self) <= self.room:
            return self
        return self.take(np.sort(np.argsort(self.when, kind="stable")[: self.room]))


class LinearRows:
    """The rows of ``source`` seen by a linear model; ``weight`` already holds C.

    Points are vectors (w, b) of length d + 1; without an intercept the last entry stays zero.
    """

    def __init__(self, source: Source, loss: ScoreLoss, C: float) -> None:
        self.source = source
        self.loss = loss
        self.n_rows = source.n_rows
        first = next(iter(source.map(lambda block: block.X.shape[1])))
        self.n_columns = int(first)
        self.y = np.concatenate(list(source.map(_targets)))
        self.weight = no_less_than_tiny(C * np.concatenate(list(source.map(_weights))))
        self._kink: Kink | None = None

    @property
    def kink(self) -> Kink:
        if self._kink is None:
            self._kink = self.loss.kink(self.y)
        return self._kink

    def scores(self, point: Floats) -> Floats:
        """X w + b for every row."""
        z = np.empty(self.n_rows)

        def fill(block: Block) -> None:
            if isinstance(block.X, np.ndarray):
                np.matmul(block.X, point[:-1], out=z[block.rows])
            else:
                z[block.rows] = block.X @ point[:-1]

        for _ in self.source.map(fill):
            pass
        if point[-1] != 0.0:
            z += point[-1]
        return z

    def evaluate(self, z: Floats) -> RowState:
        """Loss, slopes and curvatures at the scores ``z`` (no pass over the columns)."""
        return evaluate(self.loss, z, self.y, self.weight)

    def model(self, state: RowState) -> tuple[Floats, Floats]:
        """(2, d+1) gradient by sign of the slope, and the (d+1, d+1) Hessian, of the losses."""
        gradient, H = self.source.sum(
            lambda block: normal_sums(block.X, state.slope[block.rows], state.curvature[block.rows])
        )
        return gradient, H

    def transposed(self, r: Floats) -> Floats:
        """sum_i r_i (x_i, 1), dense or sparse."""
        out: Floats = np.empty(self.n_columns + 1)
        out[:-1] = self.source.sum(lambda block: block.X.T @ r[block.rows])
        out[-1] = r.sum()
        return out

    def weighted_squares(self, r: Floats) -> Floats:
        """sum_i r_i (x_i^2, 1)."""
        out: Floats = np.empty(self.n_columns + 1)
        out[:-1] = self.source.sum(lambda block: squares(block.X).T @ r[block.rows])
        out[-1] = r.sum()
        return out

    def few(self, index: Ints) -> FewRows:
        """The rows ``index`` (sorted) to be held apart."""
        nothing = np.zeros(len(index))
        return FewRows(index, self.gather(index), self.y[index], self.weight[index], nothing, 0)

    def gather(self, index: NDArray[np.int64]) -> Floats:
        """The rows ``index`` (sorted) as (x, 1)."""
        out = np.empty((len(index), self.n_columns + 1))
        out[:, -1] = 1.0

        def take(block: Block) -> None:
            first, last = np.searchsorted(index, (block.start, block.stop))
            if last > first:
                out[first:last, :-1] = dense(block.X[index[first:last] - block.start])

        for _ in self.source.map(take):
            pass
        return out

    def excess(
        self, state: RowState, shrink: tuple[float, float], skip: NDArray[np.int64]
    ) -> float:
        """Fenchel-Young sum of the natural slopes times ``shrink`` (negative, positive slopes).

        Rows in ``skip`` carry another slope and are counted by the caller.
        """
        weight = self.weight
        if len(skip):
            weight = weight.copy()
            weight[skip] = 0.0
        return excess(self.loss, state.z, self.y, weight, shrink)

    def price(self, z: Floats, slope: Floats) -> float:
        """Fenchel-Young sum of the weighted slopes ``slope`` at scores ``z``."""
        loss, y, weight = self.loss, self.y, self.weight
        if isinstance(loss, TruncatedLogistic):
            from laconic.linear.solvers._numba import price_truncated

            ends = (*loss.positions, *loss.heights, *loss.floors)
            return float(price_truncated(z, slope, y, weight, *ends))
        return float(weight @ fenchel_young(loss, z, slope / weight, y))

    def hold(self, state: RowState, held: NDArray[np.int64]) -> None:
        """Put the rows ``held`` exactly on their kink; ``state`` is changed in place."""
        z, y, s = self.kink.position[held], self.y[held], self.weight[held]
        state.loss += float(s @ (self.loss.value(z, y) - self.loss.value(state.z[held], y)))
        state.z[held] = z
        state.slope[held] = s * self.loss.slope(z, y)
        state.curvature[held] = s * self.loss.curvature(z, y)

    def thinned(self, every: int) -> LinearRows:
        """One row in ``every``, at even places, held in memory, with ``every`` times its weight."""
        parts = list(self.source.map(lambda block: _every(block, every)))
        X = np.concatenate(parts) if isinstance(parts[0], np.ndarray) else vstack(parts, "csr")
        source = ArraySource(X, self.y[::every], self.weight[::every])
        return LinearRows(source, self.loss, float(every))


def no_less_than_tiny(weight: Floats) -> Floats:
    """Positive weights that have not vanished, so that what is divided by them is a number."""
    return np.maximum(weight, 1e-290)


def evaluate(loss: ScoreLoss, z: Floats, y: Floats, weight: Floats) -> RowState:
    """Weighted loss, slopes and curvatures at the scores ``z``."""
    if isinstance(loss, TruncatedLogistic):
        from laconic.linear.solvers._numba import evaluate_truncated

        slope, curvature = np.empty_like(z), np.empty_like(z)
        total = evaluate_truncated(z, y, weight, *loss.positions, *loss.floors, slope, curvature)
        return RowState(z, slope, curvature, float(total))
    slope, curvature = weight * loss.slope(z, y), weight * loss.curvature(z, y)
    return RowState(z, slope, curvature, float(weight @ loss.value(z, y)))


def excess(
    loss: ScoreLoss, z: Floats, y: Floats, weight: Floats, shrink: tuple[float, float]
) -> float:
    """Fenchel-Young sum of the natural slopes times ``shrink`` (negative, positive slopes)."""
    if shrink == (1.0, 1.0):
        return 0.0
    if isinstance(loss, TruncatedLogistic):
        from laconic.linear.solvers._numba import excess_truncated

        low, high = loss.positions
        # a negative slope belongs to a positive example
        return float(excess_truncated(z, y, weight, low, high, shrink[1], shrink[0]))
    slope = loss.slope(z, y)
    factor = np.where(slope > 0, shrink[1], shrink[0])
    return float(weight @ fenchel_young(loss, z, factor * slope, y))


def normal_sums(X: Any, slope: Floats, curvature: Floats) -> tuple[Floats, Floats]:
    """Gradient by sign of the slope and Hessian of the rows of one block."""
    from laconic.linear.solvers._numba import accumulate

    n, d = X.shape
    gradient, H = np.zeros((2, d + 1)), np.zeros((d + 1, d + 1))
    roots = np.empty((min(CHUNK_ROWS, n), d + 1))
    for start in range(0, n, CHUNK_ROWS):
        here = slice(start, min(start + CHUNK_ROWS, n))
        packed = accumulate(dense(X[here]), slope[here], curvature[here], gradient, roots)
        if packed:
            H += roots[:packed].T @ roots[:packed]
    return gradient, H


def best_constant(loss: ScoreLoss, y: Floats, weight: Floats) -> float:
    """About the best score when it is the same for every row, by bisection of its slope."""

    def tilt(b: float) -> float:
        return float(weight @ loss.slope(np.full(len(y), b), y))

    inner, reach = 0.0, 1.0
    sign = -1.0 if tilt(0.0) > 0 else 1.0
    while reach < 1e30 and sign * tilt(sign * reach) < 0:
        inner, reach = reach, 8.0 * reach
    for _ in range(20):
        middle = 0.5 * (inner + reach)
        inner, reach = (middle, reach) if sign * tilt(sign * middle) < 0 else (inner, middle)
    return sign * 0.5 * (inner + reach)


def balanced(slope: Floats) -> Floats:
    """Slopes of one sign shrunk until the sum is zero: zero lies in every conjugate's domain."""
    up, down = float(np.maximum(slope, 0.0).sum()), float(np.maximum(-slope, 0.0).sum())
    if up == down:
        return slope
    if up > down:
        return np.where(slope > 0, slope * (down / up), slope)
    return np.where(slope < 0, slope * (up / down), slope)


def _every(block: Block, every: int) -> Any:
    X = block.X[-block.start % every :: every]
    return np.ascontiguousarray(X) if isinstance(X, np.ndarray) else X


def dense(X: Any) -> Floats:
    """A few rows as a C-ordered array."""
    return np.ascontiguousarray(X if isinstance(X, np.ndarray) else X.toarray())


def squares(X: Any) -> Any:
    """x^2 of every cell, dense or sparse."""
    if isinstance(X, np.ndarray):
        return X * X
    if X.format != "csr" or not X.has_canonical_format:
        return X.multiply(X)
    # scipy's product merges the places of two matrices, which are the same here
    return type(X)((X.data * X.data, X.indices, X.indptr), shape=X.shape)


def _targets(block: Block) -> Floats:
    if block.y is None:
        raise ValueError("The source of a linear model needs targets y.")
    return np.asarray(block.y, dtype=np.float64)


def _weights(block: Block) -> Floats:
    if block.weight is None:
        return np.ones(len(block))
    return block.weight
