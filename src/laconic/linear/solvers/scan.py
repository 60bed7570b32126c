"""The kink Newton of :mod:`laconic.linear.solvers.kink_newton` on rows that stay where they are.

Nothing of length n ever leaves a block: a pass sends a point and brings back a sum, together with
the few rows whose kink a step crosses. Scores are kept with the block under the point that they
belong to, and computed again by whoever does not have them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from laconic._typing import Floats, Ints
from laconic.core.losses import ScoreLoss, Solution, WhyStopped, fenchel_young
from laconic.data.source import ArraySource, Block, Source, one_blas_thread
from laconic.linear.solvers.kink_newton import Ahead, Hinges, KinkNewton, Model, Place
from laconic.linear.solvers.kink_qp import KinkStep
from laconic.linear.solvers.newton import approach_on_fewer_rows
from laconic.linear.solvers.rows import (
    FewRows,
    LinearRows,
    evaluate,
    excess,
    no_less_than_tiny,
    normal_sums,
)
from laconic.linear.tuning import (
    HINGES_A_COLUMN,
    LEAST_HINGES,
    MOST_HINGES,
    SAMPLE_ROWS,
)

LENGTHS = 0.5 ** np.arange(1, 21)
"""Shorter steps that one pass tries when a full step does not deliver."""


@dataclass(frozen=True)
class StepAhead(Ahead):
    """With the loss and its slope at the end of the step."""

    loss: float
    tilt: float


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
    sides: Floats
    scale: Floats

    def targets(self, block: Block) -> tuple[Floats, Floats]:
        assert block.y is not None
        assert block.weight is not None
        return self.sides[block.y], no_less_than_tiny(block.weight * self.scale[block.y])

    def at(self, point: Floats, held: Ints) -> Callable[[Block], tuple[Floats, Floats, Floats]]:
        """Targets, weights and scores; the rows ``held`` stand exactly on their kink."""
        version = (point.tobytes(), held.tobytes())

        def read(block: Block) -> tuple[Floats, Floats, Floats]:
            y, s = self.targets(block)

            def scores() -> Floats:
                z: Floats = block.X @ point[:-1] + point[-1]
                here = _inside(held, block)
                z[here] = self.loss.kink(y[here]).position
                return z

            return y, s, block.memo.recall("scores", version, scores)

        return read

    def crossed(
        self, block: Block, y: Floats, s: Floats, z: Floats, dz: Floats, known: Ints, room: int
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

    def model(self, point: Floats, held: Ints) -> tuple[float, Floats, Floats, float]:
        """One pass: loss, gradient by sign of the slope, Hessian and largest score at a point."""
        loss_of, read = self.loss, self.scorer.at(point, held)

        def one(block: Block) -> tuple[float, Floats, Floats, _Largest]:
            y, s, z = read(block)
            state = evaluate(loss_of, z, y, s)
            sums = normal_sums(block.X, state.slope, state.curvature)
            return state.loss, *sums, _Largest(float(np.abs(z).max()))

        loss, by_sign, H, reach = self.source.sum(one)
        return float(loss), by_sign, H, reach.value

    def ahead(self, point: Floats, held: Ints, p: Floats, known: Ints, room: int) -> StepAhead:
        """One pass along ``p``: the end of the full step and the kinks that it crosses."""
        scorer, read = self.scorer, self.scorer.at(point, held)

        def one(block: Block) -> tuple[float, float, FewRows]:
            y, s, z = read(block)
            dz = block.X @ p[:-1] + p[-1]
            end = evaluate(scorer.loss, z + dz, y, s)
            crossed = scorer.crossed(block, y, s, z, dz, known, room)
            return end.loss, float(end.slope @ dz), crossed

        loss, tilt, crossed = self.source.sum(one)
        return StepAhead(crossed, float(loss), float(tilt))

    def along(self, point: Floats, held: Ints, p: Floats) -> Floats:
        """Losses after the steps :data:`LENGTHS` along ``p``."""
        loss, read = self.loss, self.scorer.at(point, held)

        def one(block: Block) -> Floats:
            y, s, z = read(block)
            dz = block.X @ p[:-1] + p[-1]
            return np.array([evaluate(loss, z + part * dz, y, s).loss for part in LENGTHS])

        losses: Floats = self.source.sum(one)
        return losses

    def excess(self, point: Floats, held: Ints, shrink: tuple[float, float]) -> float:
        """Fenchel-Young sum of natural slopes times ``shrink``; held rows are left out."""
        loss, read = self.loss, self.scorer.at(point, held)

        def one(block: Block) -> float:
            y, s, z = read(block)
            s[_inside(held, block)] = 0.0
            return excess(loss, z, y, s, shrink)

        return 0.0 if shrink == (1.0, 1.0) else float(self.source.sum(one))

    def thinned(self, every: int) -> LinearRows:
        """One row in ``every``, held here, with ``every`` times its weight."""
        scorer = self.scorer

        def one(block: Block) -> tuple[Floats, Floats, Floats]:
            rows = slice(-block.start % every, None, every)
            y, s = scorer.targets(block)
            return np.ascontiguousarray(block.X[rows]), y[rows], s[rows]

        parts = zip(*self.source.map(one), strict=True)
        X, y, s = (np.concatenate(part) for part in parts)
        return LinearRows(ArraySource(X, y, s), self.loss, float(every))


def _inside(index: Ints, block: Block) -> Ints:
    """Places in the block of the rows ``index`` (any order)."""
    own = index[(index >= block.start) & (index < block.stop)]
    return own - block.start


# -- Newton's method on these passes -----------------------------------------------------------
#
# An iteration is a pass for the model, one for each round of kinks that the step crosses, and at
# the end one for the certificate; no vector of row scores leaves a block.


class ScanNewton(KinkNewton[Place, StepAhead]):
    """Rows that stay where they are."""

    def __init__(self, rows: ScoredBlocks, fit_intercept: bool, max_iter: int) -> None:
        super().__init__(fit_intercept, max_iter)
        self.rows, self.loss = rows, rows.loss
        self.width = rows.n_columns + 1
        self.total = rows.total_weight()
        self.least = 2e-12 * self.total
        kinks = self.loss.kink(np.unique(rows.scorer.sides)).position
        self.furthest = float(np.abs(kinks[np.isfinite(kinks)]).max(initial=0.0))
        self.cap = max(
            HINGES_A_COLUMN * self.width, LEAST_HINGES, min(rows.n_rows // 16, MOST_HINGES)
        )
        self.most = MOST_HINGES

    def _begin(self, start: Floats | None) -> Place:
        point = np.zeros(self.width) if start is None else np.array(start, dtype=np.float64)
        if not self.fit_intercept:
            point[-1] = 0.0
        return Place(point, Hinges.none(self.width))

    def _model(self, place: Place) -> Model:
        place.loss, by_sign, H, reach = self.rows.model(place.point, place.hinges.held)
        return self._quadratic(place, by_sign, H, reach)

    def _offset(self, place: Place, rows: FewRows) -> Floats:
        offset = rows.table @ place.point - self.loss.kink(rows.y).position
        offset[np.isin(rows.index, place.hinges.held)] = 0.0
        return np.asarray(offset)

    def _ahead(self, place: Place, p: Floats, hinges: Hinges) -> StepAhead:
        room = max(self.cap - len(hinges.rows), 0)
        return self.rows.ahead(place.point, place.hinges.held, p, hinges.rows.index, room)

    def _move(
        self, place: Place, model: Model, step: KinkStep, hinges: Hinges, ahead: StepAhead,
        promised: float,
    ) -> tuple[Place, float]:  # fmt: skip
        length = self._length(place, step.p, ahead, promised)
        moved = length * step.p
        point, table = place.point + moved, hinges.rows.table
        position = self.loss.kink(hinges.rows.y).position
        apart = np.abs(table @ point - position)
        near = apart <= np.abs(table @ moved)
        # at the end of its box a multiplier is not free, but its row may stand on the kink all the
        # same (duplicated rows do): by which side rounding puts it on, its slope would be wrong
        there = hinges.free | (apart <= 1e-13 * (1.0 + np.abs(position)))
        ended = replace(hinges, free=there & (length == 1.0))
        return Place(point, ended.keep(ended.free | near)), length

    def _length(self, place: Place, p: Floats, ahead: StepAhead, promised: float) -> float:
        """Step length in (0, 1]: full when it delivers, else the best of halves of halves."""

        def value_at(length: float, loss: float) -> float:
            return Place(place.point + length * p, place.hinges, loss).value

        slope = ahead.tilt + float(p[:-1] @ (place.point + p)[:-1])
        enough = value_at(1.0, ahead.loss) <= place.value - 1e-4 * promised
        if slope <= 0 or enough or promised <= 1e-13 * place.value:
            return 1.0
        losses = self.rows.along(place.point, place.hinges.held, p)
        values = [
            value_at(length, float(loss)) for length, loss in zip(LENGTHS, losses, strict=True)
        ]
        return float(LENGTHS[int(np.argmin(values))])

    def _excess(self, place: Place, shrink: tuple[float, float]) -> float:
        return self.rows.excess(place.point, place.hinges.held, shrink)

    def _solution(
        self, place: Place, n_iter: int, why: WhyStopped, trace: tuple[float, ...]
    ) -> Solution:
        details = {"trace": trace, "n_on_kink": len(place.hinges.held)}
        value, gap = self._of_the_point(place)
        return Solution(place.point, value, gap, n_iter, why, MappingProxyType(details))

    def _of_the_point(self, place: Place) -> tuple[float, float]:
        """Value and gap of the coefficients themselves, which meet the kinks up to rounding."""
        held = place.hinges.rows.take(place.hinges.free)
        if not len(held):
            return place.value, place.gap
        loss, kink, s = self.loss, self.loss.kink(held.y), held.weight
        z = held.table @ place.point
        moved = float(s @ (loss.value(z, held.y) - loss.value(kink.position, held.y)))
        u = np.clip(kink.low + place.hinges.v[place.hinges.free] / s, kink.low, kink.high)
        price = fenchel_young(loss, z, u, held.y)
        return place.value + moved, place.gap + float(s @ np.maximum(price, 0.0))


def solve_scanned(
    rows: ScoredBlocks,
    *,
    fit_intercept: bool = True,
    tol: float = 1e-6,
    max_iter: int = 100,
    start: Floats | None = None,
) -> Solution:
    """Minimise |w|^2 / 2 + sum of the losses; ``Solution.point`` is (w, b).

    Without a ``start``, about 2^18 rows at even places are solved first, in memory, to statistical
    accuracy. Stops when ``gap <= tol * value``; ``details`` holds ``trace`` and ``n_on_kink``.
    """
    with one_blas_thread():
        if start is None:
            thin = rows.thinned(-(-rows.n_rows // SAMPLE_ROWS))
            if thin.y.min() < thin.y.max():
                start = approach_on_fewer_rows(thin, fit_intercept, max_iter)
        return ScanNewton(rows, fit_intercept, max_iter).run(start, tol)
