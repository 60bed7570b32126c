"""The kink Newton of :mod:`laconic.linear.solvers.kink_newton` on rows in memory.

Beside it the paper's own optimiser, Newton on the active rows with a limited step (Hérault and
Grandvalet, 2008, section 3.1 and appendix A), kept for fidelity: rows whose loss is
saturated leave gradient and Hessian, and the step is cut so that none of them is carried beyond
p_t = (p_min + p_max) / 2. It reaches the neighbourhood of the optimum and then oscillates around
the kinks; the gap that is reported is the true one.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from laconic._typing import Floats, Ints
from laconic.core.losses import (
    ScoreLoss,
    Solution,
    TruncatedLogistic,
    WhyStopped,
    fenchel_young,
    log_odds,
)
from laconic.data.source import Source
from laconic.linear.solvers.kink_newton import Ahead, Hinges, KinkNewton, Model, Place, shortened
from laconic.linear.solvers.kink_qp import KinkStep
from laconic.linear.solvers.rows import FewRows, LinearRows, RowState, best_constant
from laconic.linear.tuning import HINGES_A_COLUMN, LEAST_HINGES, THIN_ABOVE, THIN_EVERY


@dataclass(kw_only=True)
class RowPlace(Place):
    """A place with the state of every row and, once certified, its dual slopes."""

    state: RowState
    dual: Floats | None = None


@dataclass(frozen=True)
class RowsAhead(Ahead):
    """With the change of every row's score."""

    dz: Floats


class MemoryNewton(KinkNewton[RowPlace, RowsAhead]):
    """Rows in memory: their scores, slopes and curvatures are kept between steps."""

    def __init__(self, rows: LinearRows, fit_intercept: bool, max_iter: int) -> None:
        super().__init__(fit_intercept, max_iter)
        self.rows, self.loss = rows, rows.loss
        self.width = rows.n_columns + 1
        self.total = float(rows.weight.sum())
        # an objective can be zero (a perfect absolute fit): a gap is small next to this then
        self.least = 1e-12 * self.total * (1.0 + float(np.abs(rows.y).max()))
        position = rows.kink.position
        self.furthest = float(np.abs(position[np.isfinite(position)]).max(initial=0.0))
        self.cap = max(HINGES_A_COLUMN * self.width, LEAST_HINGES, rows.n_rows // 16)
        self.most = rows.n_rows
        self.ever_held: Ints = np.zeros(0, dtype=np.int64)

    def approach(self, start: Floats | None, enough: float) -> Floats:
        """Newton steps until one is predicted to gain less than ``enough``; no certificate."""
        place = self._begin(start)
        for _ in range(self.max_iter):
            before = place.value
            place, _ = self._advance(place, self._model(place), 0.0)
            if before - place.value <= enough:
                break
        return place.point

    def _begin(self, start: Floats | None) -> RowPlace:
        point = np.zeros(self.width) if start is None else np.array(start, dtype=np.float64)
        if not self.fit_intercept:
            point[-1] = 0.0
        if start is None and self.fit_intercept:
            point[-1] = best_constant(self.loss, self.rows.y, self.rows.weight)
        state = self.rows.evaluate(self.rows.scores(point))
        return RowPlace(point, Hinges.none(self.width), state.loss, state=state)

    def _model(self, place: RowPlace) -> Model:
        by_sign, H = self.rows.model(place.state)
        return self._quadratic(place, by_sign, H, float(np.abs(place.state.z).max()))

    def _offset(self, place: RowPlace, rows: FewRows) -> Floats:
        return place.state.z[rows.index] - self.rows.kink.position[rows.index]

    def _ahead(self, place: RowPlace, p: Floats, hinges: Hinges) -> RowsAhead:
        """Rows outside the model whose kink lies between z and z + dz, first-crossed first."""
        kink, z, dz = self.rows.kink, place.state.z, self.rows.scores(p)
        crosses = (z > kink.position) != (z + dz > kink.position)
        crosses[hinges.rows.index] = False
        found = np.flatnonzero(crosses)
        found = found[kink.high[found] > kink.low[found]]
        room = max(self.cap - len(hinges.rows), 0)
        if len(found) > room:
            when = np.abs((kink.position[found] - z[found]) / dz[found])
            found = np.sort(found[np.argsort(when, kind="stable")[:room]])
        return RowsAhead(self.rows.few(found), dz)

    def _move(
        self, place: RowPlace, model: Model, step: KinkStep, hinges: Hinges, ahead: RowsAhead,
        promised: float,
    ) -> tuple[RowPlace, float]:  # fmt: skip
        length, state = self._search(place, step.p, ahead.dz, promised)
        if length == 1.0 and len(hinges.held):
            self.rows.hold(state, hinges.held)
            self.ever_held = np.union1d(self.ever_held, hinges.held)
        index = hinges.rows.index
        position = self.rows.kink.position[index]
        near = np.abs(state.z[index] - position) <= np.abs(length * ahead.dz[index])
        point, kept = place.point + length * step.p, hinges.keep(hinges.free | near)
        return RowPlace(point, kept, state.loss, state=state), length

    def _search(
        self, place: RowPlace, p: Floats, dz: Floats, promised: float
    ) -> tuple[float, RowState]:
        """Step length in (0, 1] along a convex line: full when it delivers what was promised."""
        z, w, dw = place.state.z, place.point[:-1], p[:-1]
        ww, wd, dd = float(w @ w), float(w @ dw), float(dw @ dw)

        def at(length: float) -> tuple[float, float, RowState]:
            there = self.rows.evaluate(z + length * dz)
            total = 0.5 * (ww + 2 * length * wd + length * length * dd) + there.loss
            return total, float(there.slope @ dz) + wd + length * dd, there

        value = place.value
        total, tilt, there = at(1.0)
        # full steps keep Newton's quadratic rate; near the end the promise is below rounding
        if tilt <= 0 or total <= value - 1e-4 * promised or promised <= 1e-13 * value:
            return 1.0, there
        return shortened(at, value, place.state)

    # -- certificate ---------------------------------------------------------------------------

    def _excess(self, place: RowPlace, shrink: tuple[float, float]) -> float:
        return self.rows.excess(place.state, shrink, place.hinges.held)

    def _keep_dual(self, place: RowPlace, u: Floats, shrink: tuple[float, float]) -> None:
        slope = place.state.slope
        if len(u):
            slope = slope.copy()
            slope[place.hinges.held] = u
        if shrink != (1.0, 1.0):
            slope = np.where(slope > 0, shrink[1], shrink[0]) * slope
        place.dual = slope

    def _certify_ahead(
        self, place: RowPlace, model: Model, step: KinkStep, hinges: Hinges, ahead: RowsAhead,
        new: RowPlace, tol: float,
    ) -> None:  # fmt: skip
        """Try the slopes of the linear model, slope + curvature dz, at the point just reached.

        By the Newton equations their w_u is w + p, so that no pass over the columns is needed and
        only the Fenchel-Young sum is left, of the fourth order in dz.
        """
        dz, index = ahead.dz, hinges.rows.index
        with np.errstate(over="ignore", invalid="ignore"):  # cells of 1e75
            fourth = dz * dz
            fourth *= fourth
            order = float(place.state.curvature @ fourth)
        # the sum to be computed is of this order: not worth a try where it cannot pass
        if not order <= 64 * tol * new.value:
            return
        slope = place.state.slope + place.state.curvature * dz
        _, _, natural = self._hinge_terms(place, hinges)
        slope[index] += step.v - natural
        rest = model.H @ step.p + model.G + hinges.rows.table.T @ (step.v - natural)
        rest += self._into_domain(slope, hinges, new.state)
        if self.fit_intercept:
            # sum u = 0 for the intercept: the row that curves most takes the rest, at least price
            carrier = int(np.argmax(place.state.curvature))
            slope[carrier] -= rest[-1]
            rest = rest - rest[-1] * self.rows.gather(np.array([carrier]))[0]
        gap = 0.5 * float(rest[:-1] @ rest[:-1])
        if gap <= tol * new.value:
            gap += self.rows.price(new.state.z, slope)
            if gap <= tol * new.value:
                new.gap, new.dual = gap, slope

    def _into_domain(self, slope: Floats, hinges: Hinges, state: RowState) -> Floats:
        """Give rows whose slope left the domain their natural one; what that adds to X'u.

        A multiplier at the end of its box plus curvature dz is outside by rounding: one such row
        among thousands would make the gap infinite at the optimum.
        """
        at = hinges.rows.index
        u = slope[at] / hinges.rows.weight
        outside = ~np.isfinite(fenchel_young(self.loss, state.z[at], u, hinges.rows.y))
        lost = at[outside]
        moved = state.slope[lost] - slope[lost]
        slope[lost] = state.slope[lost]
        return np.asarray(moved @ hinges.rows.table[outside])

    def _solution(
        self, place: RowPlace, n_iter: int, why: WhyStopped, trace: tuple[float, ...]
    ) -> Solution:
        assert place.dual is not None
        on_kink = np.zeros(self.rows.n_rows, bool)
        on_kink[place.hinges.held] = True
        dual = place.dual / self.rows.weight
        details = {"dual": dual, "scores": place.state.z, "on_kink": on_kink, "trace": trace}
        value, gap = self._of_the_point(place, dual)
        return Solution(place.point, value, gap, n_iter, why, MappingProxyType(details))

    def _of_the_point(self, place: RowPlace, dual: Floats) -> tuple[float, float]:
        """Value and gap of the coefficients themselves.

        The place puts held rows exactly on their kink, the coefficients only up to rounding or
        what a singular step leaves, and rows keep that difference once they are let go: it is
        priced at the scores that the coefficients really give.
        """
        held = self.ever_held
        if not len(held):
            return place.value, place.gap
        loss, y, s = self.loss, self.rows.y[held], self.rows.weight[held]
        z, u = self.rows.gather(held) @ place.point, dual[held]
        moved = float(s @ (loss.value(z, y) - loss.value(place.state.z[held], y)))
        price = fenchel_young(loss, z, u, y)
        kept = fenchel_young(loss, place.state.z[held], u, y)
        return place.value + moved, place.gap + float(s @ np.maximum(price - kept, 0.0))


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
    return MemoryNewton(rows, fit_intercept, max_iter).run(start, tol)


def _start_on_fewer_rows(rows: LinearRows, fit_intercept: bool, max_iter: int) -> Floats | None:
    if rows.n_rows < max(THIN_ABOVE, 16 * rows.n_columns):
        return None
    thin = rows.thinned(THIN_EVERY)
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
    return MemoryNewton(thin, fit_intercept, max_iter).approach(start, enough)


def certify_natural(
    rows: LinearRows, point: Floats, state: RowState, by_sign: Floats, fit_intercept: bool
) -> tuple[float, Floats]:
    """Gap and weighted dual slopes of a point whose rows all use their natural slope."""
    place = RowPlace(point, Hinges.none(rows.n_columns + 1), state.loss, state=state)
    gap = MemoryNewton(rows, fit_intercept, 0)._certify(place, by_sign, np.inf)
    assert place.dual is not None
    return gap, place.dual


def solve_paper(
    source: Source,
    loss: TruncatedLogistic,
    *,
    C: float,
    fit_intercept: bool = True,
    tol: float = 1e-6,
    max_iter: int = 100,
    start: Floats | None = None,
) -> Solution:
    """Step-limited Newton; returns the iterate of least value. Details as in ``solve_linear``.

    The paper treats an unpenalised model; the penalty of its equation (6) is added here.
    """
    rows = LinearRows(source, loss, C)
    width = rows.n_columns + 1
    point = np.zeros(width) if start is None else np.array(start, dtype=np.float64)
    barrier = log_odds(0.5 * (loss.p_min + loss.p_max))
    best: tuple[float, float, Floats, Floats, Floats] | None = None
    why: WhyStopped = "max_iter"
    trace = []
    for n_iter in range(max_iter + 1):
        state = rows.evaluate(rows.scores(point))
        by_sign, H = rows.model(state)
        value = 0.5 * float(point[:-1] @ point[:-1]) + state.loss
        gap, dual = certify_natural(rows, point, state, by_sign, fit_intercept)
        trace.append(gap)
        if best is None or value < best[1]:
            best = (gap, value, point, dual, state.z)
        if gap <= tol * value:
            best = (gap, value, point, dual, state.z)
            why = "gap"
            break
        if n_iter == max_iter:
            break
        p = _newton_step(point, by_sign.sum(axis=0), H, fit_intercept)
        point = point + _limit(rows, loss, state, rows.scores(p), barrier) * p
    assert best is not None
    gap, value, point, dual, scores = best
    details = {
        "dual": dual / rows.weight,
        "scores": scores,
        "on_kink": np.zeros(rows.n_rows, bool),
        "trace": tuple(trace),
    }
    return Solution(point, value, gap, n_iter, why, MappingProxyType(details))


def _newton_step(point: Floats, gradient: Floats, H: Floats, fit_intercept: bool) -> Floats:
    G = gradient.copy()
    G[:-1] += point[:-1]
    width = len(G)
    H[np.diag_indices(width - 1)] += 1.0
    if fit_intercept:
        H[-1, -1] += 1e-10 * (1.0 + H[-1, -1])
    else:
        G[-1] = 0.0
        H[-1, :] = H[:, -1] = 0.0
        H[-1, -1] = 1.0
    p: Floats = -cho_solve(cho_factor(H), G)
    return p


def _limit(
    rows: LinearRows, loss: TruncatedLogistic, state: RowState, dz: Floats, barrier: float
) -> float:
    """Largest step, at most 1, at which no saturated row passes the barrier.

    Appendix A calls these rows active; they are the inactive ones, about to enter.
    """
    low, high = loss.positions
    saturated = np.where(rows.y > 0, state.z > high, state.z <= low)
    approaching = saturated & (rows.y * dz < 0)
    if not approaching.any():
        return 1.0
    reach = (barrier - state.z[approaching]) / dz[approaching]
    return min(1.0, float(reach.min()))
