"""Newton's method with kinks on rows that are read block by block, with a certified gap.

The steps, the kink QP and the certificate are those of :mod:`laconic.solvers.kink_newton`; what
differs is that no vector of row scores is held. An iteration is a pass for the model, one for
each round of kinks that the step crosses, and at the end one for the certificate.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from laconic.criteria.protocol import fenchel_young
from laconic.data.threads import one_blas_thread
from laconic.solvers.kink_newton import approach_on_fewer_rows, balance
from laconic.solvers.kink_qp import KinkStep, Whitened, kink_step
from laconic.solvers.scored_blocks import LENGTHS, FewRows, Model, ScoredBlocks
from laconic.solvers.solution import Solution, WhyStopped

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

SAMPLE_ROWS = 2**18
"""Rows held in memory to find the start."""
MOST_HINGES = 2**17
"""Rows whose kink may enter one step's model."""
_ROUNDS = 6


@dataclass
class _Hinges:
    """Rows whose kink is part of the model, with their multipliers."""

    rows: FewRows
    v: Array
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

    point: Array
    hinges: _Hinges
    gap: float = np.inf


def solve_scanned(
    rows: ScoredBlocks,
    *,
    fit_intercept: bool = True,
    tol: float = 1e-6,
    max_iter: int = 100,
    start: Array | None = None,
) -> Solution:
    """Minimise |w|^2 / 2 + sum of the losses; ``Solution.point`` is (w, b).

    Without a ``start``, about 2^18 rows at even places are solved first, in memory, to statistical
    accuracy. Stops when ``gap <= tol * value``; ``details`` holds ``trace`` and ``n_on_kink``.
    """
    with one_blas_thread():
        if start is None:
            start = _start(rows, fit_intercept, max_iter)
        return _Search(rows, fit_intercept, max_iter).run(start, tol)


def _start(rows: ScoredBlocks, fit_intercept: bool, max_iter: int) -> Array:
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

    def run(self, start: Array, tol: float) -> Solution:
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

    def _value(self, point: Array, loss: float) -> float:
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

    def _quadratic(self, point: Array, model: Model) -> tuple[Array, Array]:
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

    def _seen(self, table: Array) -> Array:
        if self.fit_intercept or not len(table):
            return table
        table = table.copy()
        table[:, -1] = 0.0
        return table

    def _hinge_terms(self, place: _Place, hinges: _Hinges) -> tuple[Array, Array, Array]:
        """Offset from the kink, ceiling of the multiplier, natural value; held rows are on it."""
        rows = hinges.rows
        kink = self.rows.loss.kink(rows.y)
        offset = rows.table @ place.point - kink.position
        offset[np.isin(rows.index, place.hinges.held)] = 0.0
        ceiling = rows.weight * (kink.high - kink.low)
        return offset, ceiling, np.where(offset > 0, ceiling, 0.0)

    def _solve(
        self, place: _Place, G: Array, H: Array, hinges: _Hinges, whitened: Whitened
    ) -> KinkStep:
        offset, ceiling, natural = self._hinge_terms(place, hinges)
        table = self._seen(hinges.rows.table)
        # natural slopes already count the hinge of rows above their kink: take it out
        step = kink_step(H, G - table.T @ natural, table, offset, ceiling, hinges.v, whitened)
        hinges.v = step.v
        return step

    def _join(self, hinges: _Hinges, new: FewRows, point: Array) -> _Hinges:
        kink = self.rows.loss.kink(new.y)
        above = new.table @ point > kink.position
        v = np.where(above, new.weight * (kink.high - kink.low), 0.0)
        rows = replace(hinges.rows, room=len(hinges.rows) + len(new)) + new
        return _Hinges(rows, np.concatenate([hinges.v, v]), np.zeros(len(rows), bool))

    def _predicted(
        self, place: _Place, G: Array, H: Array, step: KinkStep, hinges: _Hinges
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
        p: Array,
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

    def _near(self, point: Array, moved: Array, hinges: _Hinges) -> Mask:
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
