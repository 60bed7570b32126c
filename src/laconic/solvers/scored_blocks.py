"""Passes over the rows of a linear model when the rows stay where they are.

Nothing of length n ever leaves a block: a pass sends a point and brings back a sum, together with
the few rows whose kink a step crosses. Scores are kept with the block under the point that they
belong to, and computed again by whoever does not have them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.criteria.gray_zone import TruncatedLogistic
from laconic.criteria.protocol import ScoreLoss, fenchel_young
from laconic.data.source import ArraySource, Block, Source
from laconic.solvers.linear_rows import CHUNK_ROWS, LinearRows

Array = NDArray[np.float64]
Index = NDArray[np.int64]

LENGTHS = 0.5 ** np.arange(1, 21)
"""Shorter steps that one pass tries when a full step does not deliver."""


@dataclass(frozen=True)
class FewRows:
    """Some rows by number: (x, 1), target, weight; those crossed first when there are too many."""

    index: Index
    table: Array
    y: Array
    weight: Array
    when: Array
    room: int

    @staticmethod
    def none(width: int, room: int = 0) -> FewRows:
        index, nothing = np.zeros(0, np.int64), np.zeros(0)
        return FewRows(index, np.zeros((0, width)), nothing, nothing, nothing, room)

    def __len__(self) -> int:
        return len(self.index)

    def take(self, chosen: Any) -> FewRows:
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


@dataclass(frozen=True)
class Model:
    """Loss, gradient by sign of the slope, Hessian and largest score at a point."""

    loss: float
    by_sign: Array
    H: Array
    reach: float


@dataclass(frozen=True)
class Ahead:
    """What a full step along a direction meets: loss and slope at its end, rows crossed."""

    loss: float
    tilt: float
    crossed: FewRows


class _Largest:
    """A number whose sum with another is the larger of the two."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __add__(self, other: _Largest) -> _Largest:
        return _Largest(max(self.value, other.value))


@dataclass(frozen=True)
class Scorer:
    """Targets, weights and scores of a block; it travels with every pass.

    A row of class k has the target ``sides[k]`` and its weight times ``scale[k]``.
    """

    loss: ScoreLoss
    sides: Array
    scale: Array

    def targets(self, block: Block) -> tuple[Array, Array]:
        assert block.y is not None
        assert block.weight is not None
        return self.sides[block.y], block.weight * self.scale[block.y]

    def at(self, point: Array, held: Index) -> Callable[[Block], tuple[Array, Array, Array]]:
        """Targets, weights and scores; the rows ``held`` stand exactly on their kink."""
        version = (point.tobytes(), held.tobytes())

        def read(block: Block) -> tuple[Array, Array, Array]:
            y, s = self.targets(block)

            def scores() -> Array:
                z: Array = block.X @ point[:-1] + point[-1]
                here = _inside(held, block)
                z[here] = self.loss.kink(y[here]).position
                return z

            return y, s, block.memo.recall("scores", version, scores)

        return read

    def evaluate(self, z: Array, y: Array, s: Array) -> tuple[float, Array, Array]:
        """Weighted loss, slopes and curvatures."""
        loss = self.loss
        if isinstance(loss, TruncatedLogistic):
            from laconic.solvers.hot_kink import evaluate_truncated

            slope, curvature = np.empty_like(z), np.empty_like(z)
            total = evaluate_truncated(z, y, s, *loss.positions, *loss.floors, slope, curvature)
            return float(total), slope, curvature
        return float(s @ loss.value(z, y)), s * loss.slope(z, y), s * loss.curvature(z, y)

    def excess(self, z: Array, y: Array, s: Array, shrink: tuple[float, float]) -> float:
        """Fenchel-Young sum of the natural slopes times ``shrink``."""
        if isinstance(self.loss, TruncatedLogistic):
            from laconic.solvers.hot_kink import excess_truncated

            low, high = self.loss.positions
            return float(excess_truncated(z, y, s, low, high, shrink[1], shrink[0]))
        slope = self.loss.slope(z, y)
        factor = np.where(slope > 0, shrink[1], shrink[0])
        return float(s @ fenchel_young(self.loss, z, factor * slope, y))

    def crossed(
        self, block: Block, y: Array, s: Array, z: Array, dz: Array, known: Index, room: int
    ) -> FewRows:
        """Rows outside ``known`` whose kink lies between z and z + dz."""
        kink = self.loss.kink(y)
        crosses = (z > kink.position) != (z + dz > kink.position)
        crosses &= kink.high > kink.low
        crosses[_inside(known, block)] = False
        found = np.flatnonzero(crosses)
        when = np.abs((kink.position[found] - z[found]) / dz[found])
        table = np.c_[block.X[found], np.ones(len(found))]
        return FewRows(found + block.start, table, y[found], s[found], when, room).first()


@dataclass(frozen=True)
class ScoredBlocks:
    """The rows of ``source`` (matrix, class codes, weights) seen by a linear model."""

    source: Source
    scorer: Scorer
    n_columns: int

    @property
    def n_rows(self) -> int:
        return self.source.n_rows

    @property
    def loss(self) -> ScoreLoss:
        return self.scorer.loss

    def total_weight(self) -> float:
        scorer = self.scorer
        return float(self.source.sum(lambda block: float(scorer.targets(block)[1].sum())))

    def model(self, point: Array, held: Index) -> Model:
        """One pass: everything that the quadratic model at a point needs."""
        scorer, read, d = self.scorer, self.scorer.at(point, held), self.n_columns

        def one(block: Block) -> tuple[float, Array, Array, _Largest]:
            from laconic.solvers.hot_kink import accumulate

            y, s, z = read(block)
            loss, slope, curvature = scorer.evaluate(z, y, s)
            gradient, H = np.zeros((2, d + 1)), np.zeros((d + 1, d + 1))
            roots = np.empty((CHUNK_ROWS, d + 1))
            for start in range(0, len(block), CHUNK_ROWS):
                here = slice(start, start + CHUNK_ROWS)
                packed = accumulate(block.X[here], slope[here], curvature[here], gradient, roots)
                if packed:
                    H += roots[:packed].T @ roots[:packed]
            return loss, gradient, H, _Largest(float(np.abs(z).max()))

        loss, by_sign, H, reach = self.source.sum(one)
        return Model(float(loss), by_sign, H, reach.value)

    def ahead(self, point: Array, held: Index, p: Array, known: Index, room: int) -> Ahead:
        """One pass along ``p``: the end of the full step and the kinks that it crosses."""
        scorer, read = self.scorer, self.scorer.at(point, held)

        def one(block: Block) -> tuple[float, float, FewRows]:
            y, s, z = read(block)
            dz = block.X @ p[:-1] + p[-1]
            loss, slope, _ = scorer.evaluate(z + dz, y, s)
            return loss, float(slope @ dz), scorer.crossed(block, y, s, z, dz, known, room)

        loss, tilt, crossed = self.source.sum(one)
        return Ahead(float(loss), float(tilt), crossed)

    def along(self, point: Array, held: Index, p: Array) -> Array:
        """Losses after the steps :data:`LENGTHS` along ``p``."""
        scorer, read = self.scorer, self.scorer.at(point, held)

        def one(block: Block) -> Array:
            y, s, z = read(block)
            dz = block.X @ p[:-1] + p[-1]
            return np.array([scorer.evaluate(z + length * dz, y, s)[0] for length in LENGTHS])

        losses: Array = self.source.sum(one)
        return losses

    def excess(self, point: Array, held: Index, shrink: tuple[float, float]) -> float:
        """Fenchel-Young sum of natural slopes times ``shrink``; held rows are left out."""
        scorer, read = self.scorer, self.scorer.at(point, held)

        def one(block: Block) -> float:
            y, s, z = read(block)
            s[_inside(held, block)] = 0.0
            return scorer.excess(z, y, s, shrink)

        return 0.0 if shrink == (1.0, 1.0) else float(self.source.sum(one))

    def thinned(self, every: int) -> LinearRows:
        """One row in ``every``, held here, with ``every`` times its weight."""
        scorer = self.scorer

        def one(block: Block) -> tuple[Array, Array, Array]:
            rows = slice(-block.start % every, None, every)
            y, s = scorer.targets(block)
            return np.ascontiguousarray(block.X[rows]), y[rows], s[rows]

        parts = zip(*self.source.map(one), strict=True)
        X, y, s = (np.concatenate(part) for part in parts)
        return LinearRows(ArraySource(X, y, s), self.loss, float(every))


def _inside(index: Index, block: Block) -> Index:
    """Places in the block of the rows ``index`` (any order)."""
    own = index[(index >= block.start) & (index < block.stop)]
    return own - block.start
