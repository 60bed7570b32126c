"""Newton's method for linear models whose losses have kinks, with a certified gap.

minimise over (w, b)   |w|^2 / 2 + C sum_i s_i phi(z_i, y_i),   z_i = w.x_i + b.

Each step solves the quadratic model of the smooth parts together with the hinges of the rows
whose kink the step may cross (:mod:`laconic.linear.kink_qp`), so that the rows that end on a
kink are found and not merely approached. Dual slopes u_i certify the result:

    gap = C sum_i s_i (phi(z_i) + phi*(u_i) - u_i z_i) + |w - w_u|^2 / 2

with w_u = -C sum_i s_i u_i x_i, and sum_i s_i u_i = 0 when there is an intercept; no term is
negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from laconic._typing import Floats, Ints, Mask
from laconic.core.protocol import ScoreLoss, fenchel_young
from laconic.core.solution import Solution, WhyStopped
from laconic.data.source import Source
from laconic.linear.kink_qp import KinkStep, Whitened, kink_step
from laconic.linear.rows import LinearRows, RowState

_ROUNDS = 6
_THIN_EVERY = 4
_THIN_ABOVE = 4_096


@dataclass
class _Hinges:
    """Rows whose kink is part of the model: place, table rows, multipliers in [0, ceiling]."""

    index: Ints
    rows: Floats
    v: Floats
    free: Mask

    @classmethod
    def none(cls, width: int) -> _Hinges:
        return cls(np.zeros(0, np.int64), np.zeros((0, width)), np.zeros(0), np.zeros(0, bool))

    def keep(self, chosen: Mask) -> _Hinges:
        return _Hinges(self.index[chosen], self.rows[chosen], self.v[chosen], self.free[chosen])


@dataclass
class _Place:
    """A point, its rows, the kinks it stands on and, once known, its certificate."""

    point: Floats
    state: RowState
    hinges: _Hinges
    gap: float = np.inf
    dual: Floats | None = None

    @property
    def value(self) -> float:
        return 0.5 * float(self.point[:-1] @ self.point[:-1]) + self.state.loss


@dataclass
class _Model:
    """Quadratic model at a place: gradient and Hessian of penalty and natural slopes."""

    G: Floats
    H: Floats


def solve_linear(
    source: Source,
    loss: ScoreLoss,
    *,
    C: float,
    fit_intercept: bool = True,
    tol: float = 1e-6,
    max_iter: int = 100,
    start: Floats | None = None,
) -> Solution:
    """Minimise the penalised loss of a linear score over the rows of ``source``.

    ``start`` is a point (w, b) of length d + 1; without one, large sources are first solved on one
    row in four, to statistical accuracy. Stops when ``gap <= tol * value``. ``Solution.point`` is
    (w, b), b = 0 without an intercept; ``details`` holds ``dual`` (slope u_i per row),
    ``scores``, ``on_kink`` (rows held on their kink) and ``trace`` (gap per iteration).
    """
    rows = LinearRows(source, loss, C)
    if start is None:
        start = _start_on_fewer_rows(rows, fit_intercept, max_iter)
    return _Newton(rows, fit_intercept, max_iter).run(start, tol)


def _start_on_fewer_rows(rows: LinearRows, fit_intercept: bool, max_iter: int) -> Floats | None:
    if rows.n_rows < max(_THIN_ABOVE, 16 * rows.n_columns):
        return None
    thin = rows.thinned(_THIN_EVERY)
    if thin.y.min() == thin.y.max():
        return None
    return approach_on_fewer_rows(thin, fit_intercept, max_iter)


def approach_on_fewer_rows(thin: LinearRows, fit_intercept: bool, max_iter: int) -> Floats:
    """The point that a sample gives, to its own statistical accuracy."""
    start = _start_on_fewer_rows(thin, fit_intercept, max_iter)
    # a sample's own error is about half a unit of objective per parameter, in its own weights;
    # without kinks its steps are cheap and worth some more
    share = 1.0 if thin.kink.jump.any() else 0.2
    enough = share * thin.n_columns * float(thin.weight.mean())
    return _Newton(thin, fit_intercept, max_iter).approach(start, enough)


class _Newton:
    def __init__(self, rows: LinearRows, fit_intercept: bool, max_iter: int) -> None:
        self.rows = rows
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.width = rows.n_columns + 1
        # an objective can be zero (a perfect absolute fit): a gap is small next to this then
        self.least = 1e-12 * float(rows.weight.sum()) * (1.0 + float(np.abs(rows.y).max()))
        self.cap = max(16 * self.width, 4_000, rows.n_rows // 16)
        self.ever_held: Ints = np.zeros(0, dtype=np.int64)

    def run(self, start: Floats | None, tol: float) -> Solution:
        place = self._begin(start)
        trace = []
        why: WhyStopped = "max_iter"
        n_iter = stuck = 0
        while True:
            by_sign, model = self._model(place)
            trace.append(self._certify(place, by_sign, tol))
            if place.gap <= tol * max(place.value, self.least):
                why = "gap"
                break
            if n_iter == self.max_iter:
                break
            n_iter += 1
            place, length = self._advance(place, model, tol)
            if place.gap <= tol * max(place.value, self.least):
                trace.append(place.gap)
                why = "gap"
                break
            stuck = stuck + 1 if length < 0.01 else 0
            if stuck:
                self.cap = min(4 * self.cap, self.rows.n_rows)
            if stuck > 8:
                why = "stalled"
                break
        if place.dual is None:
            self._certify(place, self._model(place)[0], np.inf)
        return self._solution(place, n_iter, why, trace)

    def approach(self, start: Floats | None, enough: float) -> Floats:
        """Newton steps until one is predicted to gain less than ``enough``; no certificate."""
        place = self._begin(start)
        for _ in range(self.max_iter):
            _, model = self._model(place)
            before = place.value
            place, _ = self._advance(place, model, 0.0)
            if before - place.value <= enough:
                break
        return place.point

    def _begin(self, start: Floats | None) -> _Place:
        rows = self.rows
        point = np.zeros(self.width) if start is None else np.array(start, dtype=np.float64)
        if not self.fit_intercept:
            point[-1] = 0.0
        if start is None and self.fit_intercept:
            point[-1] = self._best_constant()
        z = rows.scores(point)
        return _Place(point, rows.evaluate(z), _Hinges.none(self.width))

    def _best_constant(self) -> float:
        """About the best score when it is the same for every row, by bisection of its slope."""

        def tilt(b: float) -> float:
            z = np.full(self.rows.n_rows, b)
            return float(self.rows.weight @ self.rows.loss.slope(z, self.rows.y))

        inner, reach = 0.0, 1.0
        sign = -1.0 if tilt(0.0) > 0 else 1.0
        while reach < 1e30 and sign * tilt(sign * reach) < 0:
            inner, reach = reach, 8.0 * reach
        for _ in range(20):
            middle = 0.5 * (inner + reach)
            inner, reach = (middle, reach) if sign * tilt(sign * middle) < 0 else (inner, middle)
        return sign * 0.5 * (inner + reach)

    # -- one step ------------------------------------------------------------------------------

    def _model(self, place: _Place) -> tuple[Floats, _Model]:
        by_sign, H = self.rows.model(place.state)
        G = by_sign.sum(axis=0)
        G[:-1] += place.point[:-1]
        H[np.diag_indices(self.width - 1)] += 1.0
        if not self.fit_intercept:
            G[-1] = 0.0
            H[-1, :] = H[:, -1] = 0.0
            H[-1, -1] = 1.0
        return by_sign, _Model(G, H)

    def _advance(self, place: _Place, model: _Model, tol: float) -> tuple[_Place, float]:
        H = self._steady_intercept(model, place.state)
        step, hinges, dz = self._expand(place.state, model.G, H, place.hinges)
        length, state = self._search(place, model, step, hinges, dz)
        held = hinges.index[hinges.free]
        if length == 1.0 and len(held):
            self.rows.hold(state, held)
            self.ever_held = np.union1d(self.ever_held, held)
        position = self.rows.kink.position[hinges.index]
        near = np.abs(state.z[hinges.index] - position) <= np.abs(length * dz[hinges.index])
        new = _Place(place.point + length * step.p, state, hinges.keep(hinges.free | near))
        if length == 1.0 and tol > 0:
            self._certify_ahead(place, model, step, hinges, dz, new, tol)
        return new, length

    def _steady_intercept(self, model: _Model, state: RowState) -> Floats:
        """A loss without curvature (hinge) leaves b free in the model: a light proximal term.

        It vanishes with the step, so the limit is unchanged.
        """
        if not self.fit_intercept:
            return model.H
        position = self.rows.kink.position
        finite = position[np.isfinite(position)]
        scale = 1.0 + float(np.abs(state.z).max()) + float(np.abs(finite).max(initial=0.0))
        least = 1e-6 * (abs(float(model.G[-1])) / scale + 1e-9 * float(self.rows.weight.sum()))
        if model.H[-1, -1] >= least:
            return model.H
        H = model.H.copy()
        H[-1, -1] += least
        return H

    def _expand(
        self, state: RowState, G: Floats, H: Floats, hinges: _Hinges
    ) -> tuple[KinkStep, _Hinges, Floats]:
        """Solve, see which kinks the step crosses, take them in, solve again."""
        whitened = Whitened.of(H, self._seen(hinges.rows))
        step = self._solve(state, G, H, hinges, whitened)
        for round_ in range(_ROUNDS):
            dz = self.rows.scores(step.p)
            crossed = self._crossed(state.z, dz, hinges.index)
            if len(crossed) == 0 or round_ == _ROUNDS - 1:
                break
            new = self.rows.gather(crossed)
            hinges = self._join(hinges, crossed, new, state.z)
            whitened = whitened.extended(self._seen(new))
            step = self._solve(state, G, H, hinges, whitened)
        return step, _Hinges(hinges.index, hinges.rows, step.v, step.free), dz

    def _hinge_terms(self, state: RowState, hinges: _Hinges) -> tuple[Floats, Floats, Floats]:
        """Offset from the kink, ceiling of the multiplier, and its natural value (0 or full)."""
        kink, index = self.rows.kink, hinges.index
        offset = state.z[index] - kink.position[index]
        ceiling = self.rows.weight[index] * (kink.high[index] - kink.low[index])
        return offset, ceiling, np.where(offset > 0, ceiling, 0.0)

    def _solve(
        self, state: RowState, G: Floats, H: Floats, hinges: _Hinges, whitened: Whitened
    ) -> KinkStep:
        offset, ceiling, natural = self._hinge_terms(state, hinges)
        table = self._seen(hinges.rows)
        # natural slopes already count the hinge of rows above their kink: take it out
        linear = G - table.T @ natural
        step = kink_step(H, linear, table, offset, ceiling, hinges.v, whitened)
        hinges.v = step.v
        return step

    def _seen(self, table: Floats) -> Floats:
        """Rows as the model sees them: without an intercept, their last entry is zero."""
        if self.fit_intercept:
            return table
        table = table.copy()
        table[:, -1] = 0.0
        return table

    def _crossed(self, z: Floats, dz: Floats, known: Ints) -> Ints:
        """Rows outside ``known`` whose kink lies between z and z + dz, first-crossed first."""
        kink = self.rows.kink
        crosses = (z > kink.position) != (z + dz > kink.position)
        crosses[known] = False
        found = np.flatnonzero(crosses)
        found = found[kink.high[found] > kink.low[found]]
        room = max(self.cap - len(known), 0)
        if len(found) > room:
            when = np.abs((kink.position[found] - z[found]) / dz[found])
            found = np.sort(found[np.argsort(when, kind="stable")[:room]])
        return found

    def _join(self, hinges: _Hinges, new: Ints, table: Floats, z: Floats) -> _Hinges:
        kink = self.rows.kink
        above = z[new] > kink.position[new]
        full = self.rows.weight[new] * (kink.high[new] - kink.low[new])
        v = np.where(above, full, 0.0)
        return _Hinges(
            np.concatenate([hinges.index, new]),
            np.concatenate([hinges.rows, table]),
            np.concatenate([hinges.v, v]),
            np.zeros(len(hinges.index) + len(new), bool),
        )

    def _search(
        self, place: _Place, model: _Model, step: KinkStep, hinges: _Hinges, dz: Floats
    ) -> tuple[float, RowState]:
        """Step length in (0, 1] along a convex line: full when it delivers what was predicted."""
        z, w, dw = place.state.z, place.point[:-1], step.p[:-1]
        ww, wd, dd = float(w @ w), float(w @ dw), float(dw @ dw)

        def at(length: float) -> tuple[float, float, RowState]:
            there = self.rows.evaluate(z + length * dz)
            total = 0.5 * (ww + 2 * length * wd + length * length * dd) + there.loss
            return total, float(there.slope @ dz) + wd + length * dd, there

        value = place.value
        total, tilt, there = at(1.0)
        predicted = self._predicted(place.state, model, step, hinges)
        if tilt <= 0 or total <= value - 1e-4 * predicted or predicted <= 1e-13 * value:
            return 1.0, there
        low, high, length = 0.0, 1.0, 0.5
        best = (value, 0.0, place.state)
        for _ in range(40):
            total, tilt, there = at(length)
            if total < best[0]:
                best = (total, length, there)
            low, high = (low, length) if tilt > 0 else (length, high)
            if best[1] > 0 and high - low <= 0.25 * high:
                break
            length = 0.5 * (low + high)
        return best[1], best[2]

    def _predicted(self, state: RowState, model: _Model, step: KinkStep, hinges: _Hinges) -> float:
        """Decrease of the piecewise quadratic model over the step."""
        offset, ceiling, natural = self._hinge_terms(state, hinges)
        p = step.p
        before = ceiling @ np.maximum(offset, 0.0)
        after = ceiling @ np.maximum(offset + hinges.rows @ p, 0.0)
        linear = (model.G - hinges.rows.T @ natural) @ p
        return float(before - after - linear - 0.5 * p @ model.H @ p)

    # -- certificate ---------------------------------------------------------------------------

    def _certify(self, place: _Place, by_sign: Floats, tol: float) -> float:
        """Gap of the natural slopes, with the multipliers on the kinks.

        Returns as soon as the cheap part alone misses ``tol``, leaving the place uncertified.
        Slopes of one sign are shrunk so that their sum is zero; zero lies in every domain, so
        that they stay feasible.
        """
        rows, state, hinges = self.rows, place.state, place.hinges
        held = hinges.index[hinges.free]
        slope = state.slope
        if len(held):
            table, natural = hinges.rows[hinges.free], state.slope[held]
            u = self._held_slopes(hinges)
            by_sign = by_sign.copy()
            for side, sign in ((0, -1), (1, 1)):
                by_sign[side] -= np.where(natural * sign > 0, natural, 0.0) @ table
                by_sign[side] += np.where(u * sign > 0, u, 0.0) @ table
            slope = slope.copy()
            slope[held] = u
        shrink = balance(by_sign[:, -1]) if self.fit_intercept else (1.0, 1.0)
        apart = place.point[:-1] + shrink[0] * by_sign[0, :-1] + shrink[1] * by_sign[1, :-1]
        gap = 0.5 * float(apart @ apart)
        if gap > tol * max(place.value, self.least):
            return gap
        gap += rows.excess(state, shrink, held)
        if len(held):
            s = rows.weight[held]
            u = np.where(u > 0, shrink[1], shrink[0]) * u / s
            gap += float(s @ fenchel_young(rows.loss, state.z[held], u, rows.y[held]))
        place.gap = gap
        place.dual = slope if shrink == (1.0, 1.0) else np.where(
            slope > 0, shrink[1], shrink[0]
        ) * slope  # fmt: skip
        return gap

    def _held_slopes(self, hinges: _Hinges) -> Floats:
        held = hinges.index[hinges.free]
        return self.rows.weight[held] * self.rows.kink.low[held] + hinges.v[hinges.free]

    def _certify_ahead(
        self, place: _Place, model: _Model, step: KinkStep, hinges: _Hinges, dz: Floats,
        new: _Place, tol: float,
    ) -> None:  # fmt: skip
        """Try the slopes of the linear model, slope + curvature dz, at the point just reached.

        By the Newton equations their w_u is w + p, so that no pass over the columns is needed and
        only the Fenchel-Young sum is left, of the fourth order in dz.
        """
        fourth = dz * dz
        fourth *= fourth
        if float(place.state.curvature @ fourth) > 64 * tol * new.value:
            return
        slope = place.state.slope + place.state.curvature * dz
        _, _, natural = self._hinge_terms(place.state, hinges)
        slope[hinges.index] += step.v - natural
        rest = model.H @ step.p + model.G + hinges.rows.T @ (step.v - natural)
        rest += self._into_domain(slope, hinges, new.state)
        if self.fit_intercept:
            carrier = int(np.argmax(place.state.curvature))
            slope[carrier] -= rest[-1]
            rest = rest - rest[-1] * self.rows.gather(np.array([carrier]))[0]
        gap = 0.5 * float(rest[:-1] @ rest[:-1])
        if gap <= tol * new.value:
            gap += self.rows.price(new.state.z, slope)
            if gap <= tol * new.value:
                new.gap, new.dual = gap, slope

    def _into_domain(self, slope: Floats, hinges: _Hinges, state: RowState) -> Floats:
        """Give rows whose slope left the domain their natural one; what that adds to X'u.

        A multiplier at the end of its box plus curvature dz is outside by rounding: one such row
        among thousands would make the gap infinite at the optimum.
        """
        at = hinges.index
        u, y = slope[at] / self.rows.weight[at], self.rows.y[at]
        outside = ~np.isfinite(fenchel_young(self.rows.loss, state.z[at], u, y))
        lost = at[outside]
        moved = state.slope[lost] - slope[lost]
        slope[lost] = state.slope[lost]
        return np.asarray(moved @ hinges.rows[outside])

    def _solution(self, best: _Place, n_iter: int, why: WhyStopped, trace: list[float]) -> Solution:
        assert best.dual is not None
        on_kink = np.zeros(self.rows.n_rows, bool)
        on_kink[best.hinges.index[best.hinges.free]] = True
        dual = best.dual / self.rows.weight
        details = {
            "dual": dual,
            "scores": best.state.z,
            "on_kink": on_kink,
            "trace": tuple(trace),
        }
        value, gap = self._of_the_point(best, dual)
        return Solution(best.point, value, gap, n_iter, why, MappingProxyType(details))

    def _of_the_point(self, best: _Place, dual: Floats) -> tuple[float, float]:
        """Value and gap of the coefficients themselves.

        The place puts held rows exactly on their kink, the coefficients only up to rounding or
        what a singular step leaves, and rows keep that difference once they are let go: it is
        priced at the scores that the coefficients really give.
        """
        held = self.ever_held
        if not len(held):
            return best.value, best.gap
        loss, y, s = self.rows.loss, self.rows.y[held], self.rows.weight[held]
        z = self.rows.gather(held) @ best.point
        moved = float(s @ (loss.value(z, y) - loss.value(best.state.z[held], y)))
        price = fenchel_young(loss, z, dual[held], y)
        kept = fenchel_young(loss, best.state.z[held], dual[held], y)
        return best.value + moved, best.gap + float(s @ np.maximum(price - kept, 0.0))


def certify_natural(
    rows: LinearRows, point: Floats, state: RowState, by_sign: Floats, fit_intercept: bool
) -> tuple[float, Floats]:
    """Gap and weighted dual slopes of a point whose rows all use their natural slope."""
    place = _Place(point, state, _Hinges.none(rows.n_columns + 1))
    gap = _Newton(rows, fit_intercept, 0)._certify(place, by_sign, np.inf)
    assert place.dual is not None
    return gap, place.dual


def balance(sums: Floats) -> tuple[float, float]:
    """Factors in [0, 1] on negative and positive slopes that make their sum zero."""
    negative, positive = -float(sums[0]), float(sums[1])
    if negative > positive:
        return positive / negative, 1.0
    if positive > negative:
        return 1.0, negative / positive
    return 1.0, 1.0
