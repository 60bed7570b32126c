"""Passes over the rows of a linear model when the rows stay where they are.

Nothing of length n ever leaves a block: a pass sends a point and brings back a sum, together with
the few rows whose kink a step crosses. Scores are kept with the block under the point that they
belong to, and computed again by whoever does not have them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints, Mask
from laconic.core.gray_zone import TruncatedLogistic
from laconic.core.protocol import ScoreLoss, fenchel_young
from laconic.core.solution import Solution, WhyStopped
from laconic.data.source import ArraySource, Block, Source, one_blas_thread
from laconic.linear.kink_qp import KinkStep, Whitened, kink_step
from laconic.linear.newton import approach_on_fewer_rows, balance
from laconic.linear.rows import CHUNK_ROWS, LinearRows

LENGTHS = 0.5 ** np.arange(1, 21)
"""Shorter steps that one pass tries when a full step does not deliver."""


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
    by_sign: Floats
    H: Floats
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
    sides: Floats
    scale: Floats

    def targets(self, block: Block) -> tuple[Floats, Floats]:
        assert block.y is not None
        assert block.weight is not None
        return self.sides[block.y], block.weight * self.scale[block.y]

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

    def evaluate(self, z: Floats, y: Floats, s: Floats) -> tuple[float, Floats, Floats]:
        """Weighted loss, slopes and curvatures."""
        loss = self.loss
        if isinstance(loss, TruncatedLogistic):
            from laconic.linear._numba import evaluate_truncated

            slope, curvature = np.empty_like(z), np.empty_like(z)
            total = evaluate_truncated(z, y, s, *loss.positions, *loss.floors, slope, curvature)
            return float(total), slope, curvature
        return float(s @ loss.value(z, y)), s * loss.slope(z, y), s * loss.curvature(z, y)

    def excess(self, z: Floats, y: Floats, s: Floats, shrink: tuple[float, float]) -> float:
        """Fenchel-Young sum of the natural slopes times ``shrink``."""
        if isinstance(self.loss, TruncatedLogistic):
            from laconic.linear._numba import excess_truncated

            low, high = self.loss.positions
            return float(excess_truncated(z, y, s, low, high, shrink[1], shrink[0]))
        slope = self.loss.slope(z, y)
        factor = np.where(slope > 0, shrink[1], shrink[0])
        return float(s @ fenchel_young(self.loss, z, factor * slope, y))

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

    def model(self, point: Floats, held: Ints) -> Model:
        """One pass: everything that the quadratic model at a point needs."""
        scorer, read, d = self.scorer, self.scorer.at(point, held), self.n_columns

        def one(block: Block) -> tuple[float, Floats, Floats, _Largest]:
            from laconic.linear._numba import accumulate

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

    def ahead(self, point: Floats, held: Ints, p: Floats, known: Ints, room: int) -> Ahead:
        """One pass along ``p``: the end of the full step and the kinks that it crosses."""
        scorer, read = self.scorer, self.scorer.at(point, held)

        def one(block: Block) -> tuple[float, float, FewRows]:
            y, s, z = read(block)
            dz = block.X @ p[:-1] + p[-1]
            loss, slope, _ = scorer.evaluate(z + dz, y, s)
            return loss, float(slope @ dz), scorer.crossed(block, y, s, z, dz, known, room)

        loss, tilt, crossed = self.source.sum(one)
        return Ahead(float(loss), float(tilt), crossed)

    def along(self, point: Floats, held: Ints, p: Floats) -> Floats:
        """Losses after the steps :data:`LENGTHS` along ``p``."""
        scorer, read = self.scorer, self.scorer.at(point, held)

        def one(block: Block) -> Floats:
            y, s, z = read(block)
            dz = block.X @ p[:-1] + p[-1]
            return np.array([scorer.evaluate(z + length * dz, y, s)[0] for length in LENGTHS])

        losses: Floats = self.source.sum(one)
        return losses

    def excess(self, point: Floats, held: Ints, shrink: tuple[float, float]) -> float:
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


# Newton's method with kinks on rows that are read block by block, with a certified gap.
#
# The steps, the kink QP and the certificate are those of :mod:`laconic.linear.newton`; what
# differs is that no vector of row scores is held. An iteration is a pass for the model, one for
# each round of kinks that the step crosses, and at the end one for the certificate.


SAMPLE_ROWS = 2**18
"""Rows held in memory to find the start."""
MOST_HINGES = 2**17
"""Rows whose kink may enter one step's model."""
_ROUNDS = 6


@dataclass
class _Hinges:
    """Rows whose kink is part of the model, with their multipliers."""

    rows: FewRows
    v: Floats
    free: Mask

    @staticmethod
    def none(width: int) -> _Hinges:
        return _Hinges(FewRows.none(width), np.zeros(0), np.zeros(0, bool))

    def keep(self, chosen: Mask) -> _Hinges:
        return _Hinges(self.rows.take(chosen), self.v[chosen], self.free[chosen])

    @property
    def held(self) -> NDArray[np.int64]:
        return self.rows.index[self.free]


@dataclass
class _Place:
    """A point and the kinks it stands on."""

    point: Floats
    hinges: _Hinges
    gap: float = np.inf


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
            start = _start(rows, fit_intercept, max_iter)
        return _Search(rows, fit_intercept, max_iter).run(start, tol)


def _start(rows: ScoredBlocks, fit_intercept: bool, max_iter: int) -> Floats:
    thin = rows.thinned(-(-rows.n_rows // SAMPLE_ROWS))
    if thin.y.min() < thin.y.max():
        return approach_on_fewer_rows(thin, fit_intercept, max_iter)
    return np.zeros(rows.n_columns + 1)


@dataclass
class _Search:
    rows: ScoredBlocks
    fit_intercept: bool
    max_iter: int
    cap: int = field(init=False)
    total: float = field(init=False)
    least: float = field(init=False)

    def __post_init__(self) -> None:
        self.total = self.rows.total_weight()
        self.least = 2e-12 * self.total
        width = self.rows.n_columns + 1
        self.cap = max(16 * width, 4_000, min(self.rows.n_rows // 16, MOST_HINGES))

    def run(self, start: Floats, tol: float) -> Solution:
        point = np.array(start, dtype=np.float64)
        if not self.fit_intercept:
            point[-1] = 0.0
        place = _Place(point, _Hinges.none(len(point)))
        trace: list[float] = []
        why: WhyStopped = "max_iter"
        n_iter = stuck = 0
        while True:
            model = self.rows.model(place.point, place.hinges.held)
            value = self._value(place.point, model.loss)
            trace.append(self._certify(place, model, tol * max(value, self.least)))
            if place.gap <= tol * max(value, self.least):
                why = "gap"
                break
            if n_iter == self.max_iter or stuck > 8:
                why = "stalled" if stuck > 8 else "max_iter"
                break
            n_iter += 1
            place, length = self._advance(place, model, value)
            stuck = stuck + 1 if length < 0.01 else 0
            if stuck:
                self.cap = min(4 * self.cap, MOST_HINGES)
        if not np.isfinite(place.gap):
            self._certify(place, model, np.inf)
        details = {"trace": tuple(trace), "n_on_kink": len(place.hinges.held)}
        value, gap = self._of_the_point(place, model, value)
        return Solution(place.point, value, gap, n_iter, why, MappingProxyType(details))

    def _value(self, point: Floats, loss: float) -> float:
        return 0.5 * float(point[:-1] @ point[:-1]) + loss

    # -- one step ------------------------------------------------------------------------------

    def _advance(self, place: _Place, model: Model, value: float) -> tuple[_Place, float]:
        G, H = self._quadratic(place.point, model)
        whitened = Whitened.of(H, self._seen(place.hinges.rows.table))
        hinges = place.hinges
        held = hinges.held
        step = self._solve(place, G, H, hinges, whitened)
        for round_ in range(_ROUNDS):
            room = max(self.cap - len(hinges.rows), 0)
            ahead = self.rows.ahead(place.point, held, step.p, hinges.rows.index, room)
            if len(ahead.crossed) == 0 or round_ == _ROUNDS - 1:
                break
            hinges = self._join(hinges, ahead.crossed, place.point)
            whitened = whitened.extended(self._seen(ahead.crossed.table))
            step = self._solve(place, G, H, hinges, whitened)
        hinges = _Hinges(hinges.rows, step.v, step.free)
        promised = self._predicted(place, G, H, step, hinges)
        length = self._length(place, held, step.p, value, promised, ahead.loss, ahead.tilt)
        point = place.point + length * step.p
        near = self._near(point, length * step.p, hinges)
        if length < 1.0:
            hinges = _Hinges(hinges.rows, hinges.v, np.zeros(len(hinges.rows), bool))
        return _Place(point, hinges.keep(hinges.free | near)), length

    def _quadratic(self, point: Floats, model: Model) -> tuple[Floats, Floats]:
        """Gradient and Hessian of penalty and natural slopes; b steadied where it is free."""
        G, H = model.by_sign.sum(axis=0), model.H.copy()
        G[:-1] += point[:-1]
        H[np.diag_indices(len(point) - 1)] += 1.0
        if not self.fit_intercept:
            G[-1] = 0.0
            H[-1, :] = H[:, -1] = 0.0
            H[-1, -1] = 1.0
            return G, H
        kinks = self.rows.loss.kink(np.unique(self.rows.scorer.sides)).position
        furthest = float(np.abs(kinks[np.isfinite(kinks)]).max(initial=0.0))
        scale = 1.0 + model.reach + furthest
        least = 1e-6 * (abs(float(G[-1])) / scale + 1e-9 * self.total)
        if H[-1, -1] < least:
            H[-1, -1] += least
        return G, H

    def _seen(self, table: Floats) -> Floats:
        if self.fit_intercept or not len(table):
            return table
        table = table.copy()
        table[:, -1] = 0.0
        return table

    def _hinge_terms(self, place: _Place, hinges: _Hinges) -> tuple[Floats, Floats, Floats]:
        """Offset from the kink, ceiling of the multiplier, natural value; held rows are on it."""
        rows = hinges.rows
        kink = self.rows.loss.kink(rows.y)
        offset = rows.table @ place.point - kink.position
        offset[np.isin(rows.index, place.hinges.held)] = 0.0
        ceiling = rows.weight * (kink.high - kink.low)
        return offset, ceiling, np.where(offset > 0, ceiling, 0.0)

    def _solve(
        self, place: _Place, G: Floats, H: Floats, hinges: _Hinges, whitened: Whitened
    ) -> KinkStep:
        offset, ceiling, natural = self._hinge_terms(place, hinges)
        table = self._seen(hinges.rows.table)
        # natural slopes already count the hinge of rows above their kink: take it out
        step = kink_step(H, G - table.T @ natural, table, offset, ceiling, hinges.v, whitened)
        hinges.v = step.v
        return step

    def _join(self, hinges: _Hinges, new: FewRows, point: Floats) -> _Hinges:
        kink = self.rows.loss.kink(new.y)
        above = new.table @ point > kink.position
        v = np.where(above, new.weight * (kink.high - kink.low), 0.0)
        rows = replace(hinges.rows, room=len(hinges.rows) + len(new)) + new
        return _Hinges(rows, np.concatenate([hinges.v, v]), np.zeros(len(rows), bool))

    def _predicted(
        self, place: _Place, G: Floats, H: Floats, step: KinkStep, hinges: _Hinges
    ) -> float:
        """Decrease of the piecewise quadratic model over the step."""
        offset, ceiling, natural = self._hinge_terms(place, hinges)
        table, p = self._seen(hinges.rows.table), step.p
        before = ceiling @ np.maximum(offset, 0.0)
        after = ceiling @ np.maximum(offset + table @ p, 0.0)
        return float(before - after - (G - table.T @ natural) @ p - 0.5 * p @ H @ p)

    def _length(
        self,
        place: _Place,
        held: NDArray[np.int64],
        p: Floats,
        value: float,
        promised: float,
        loss: float,
        tilt: float,
    ) -> float:
        """Step length in (0, 1]: full when it delivers, else the best of halves of halves."""
        full = self._value(place.point + p, loss)
        slope = tilt + float(p[:-1] @ (place.point + p)[:-1])
        if slope <= 0 or full <= value - 1e-4 * promised or promised <= 1e-13 * value:
            return 1.0
        losses = self.rows.along(place.point, held, p)
        values = [
            self._value(place.point + length * p, float(part))
            for length, part in zip(LENGTHS, losses, strict=True)
        ]
        return float(LENGTHS[int(np.argmin(values))])

    def _near(self, point: Floats, moved: Floats, hinges: _Hinges) -> Mask:
        table = hinges.rows.table
        position = self.rows.loss.kink(hinges.rows.y).position
        return np.asarray(np.abs(table @ point - position) <= np.abs(table @ moved))

    # -- certificate ---------------------------------------------------------------------------

    def _certify(self, place: _Place, model: Model, enough: float) -> float:
        """Gap of the natural slopes, with the multipliers on the kinks; shrunk to balance b.

        Returns as soon as the part that needs no pass misses ``enough``.
        """
        hinges, by_sign = place.hinges, model.by_sign
        held = hinges.rows.take(hinges.free)
        u = np.zeros(0)
        if len(held):
            kink = self.rows.loss.kink(held.y)
            natural = held.weight * self.rows.loss.slope(kink.position, held.y)
            u = held.weight * kink.low + hinges.v[hinges.free]
            by_sign = by_sign.copy()
            for side, sign in ((0, -1), (1, 1)):
                by_sign[side] -= np.where(natural * sign > 0, natural, 0.0) @ held.table
                by_sign[side] += np.where(u * sign > 0, u, 0.0) @ held.table
        shrink = balance(by_sign[:, -1]) if self.fit_intercept else (1.0, 1.0)
        apart = place.point[:-1] + shrink[0] * by_sign[0, :-1] + shrink[1] * by_sign[1, :-1]
        gap = 0.5 * float(apart @ apart)
        if gap > enough:
            return gap
        gap += self.rows.excess(place.point, hinges.held, shrink)
        if len(held):
            s = held.weight
            u = np.where(u > 0, shrink[1], shrink[0]) * u / s
            gap += float(s @ fenchel_young(self.rows.loss, kink.position, u, held.y))
        place.gap = gap
        return gap

    def _of_the_point(self, place: _Place, model: Model, value: float) -> tuple[float, float]:
        """Value and gap of the coefficients themselves, which meet the kinks up to rounding."""
        held = place.hinges.rows.take(place.hinges.free)
        if not len(held):
            return value, place.gap
        loss, position = self.rows.loss, self.rows.loss.kink(held.y).position
        z = held.table @ place.point
        moved = float(held.weight @ (loss.value(z, held.y) - loss.value(position, held.y)))
        kink = loss.kink(held.y)
        u = kink.low + place.hinges.v[place.hinges.free] / held.weight
        u = np.clip(u, kink.low, kink.high)
        price = fenchel_young(loss, z, u, held.y)
        return value + moved, place.gap + float(held.weight @ np.maximum(price, 0.0))
