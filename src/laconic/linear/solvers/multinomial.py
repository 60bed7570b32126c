"""Newton's method for the truncated multinomial likelihood, with a certified gap.

minimise over W (K x d), b (K)   |W|^2 / 2 + C sum_i s_i max(logsumexp(F_i) - F_iy, -log q_y)

The kink is the curved set where the true class has probability q_y. It is linearised at each step
and its multiplier theta in [0, 1] scales the row's Hessian, so that the kink QP of the two-class
problem serves again. With F the scores, P = softmax(F) and g = logsumexp(F) - F_y + log q_y,

    gap = C sum_i s_i (max(g, 0) - theta g + theta KL(P', P)) + |W - W_u|^2 / 2

where u = theta (P' - e_y) are dual slopes whose weighted sum is zero for every class.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.special import softmax, xlogy

from laconic._typing import Floats, Ints
from laconic.core.losses import Solution, TruncatedMultinomial, WhyStopped
from laconic.data.source import Block, Source
from laconic.linear.solvers.kink_newton import shortened
from laconic.linear.solvers.kink_qp import KinkStep, kink_step
from laconic.linear.solvers.newton_cg import conjugate_gradients
from laconic.linear.solvers.rows import dense, no_less_than_tiny, squares
from laconic.linear.tuning import LAST_STEPS, MOST_IN_ONE_MATRIX, MULTINOMIAL_CHUNK_ROWS, ROUNDS


@dataclass
class _Place:
    """A point, its scores, and the share theta of every row (1 counts, 0 truncated)."""

    W: Floats
    F: Floats
    height: Floats
    share: Floats
    held: Ints
    loss: float

    @property
    def value(self) -> float:
        return 0.5 * float((self.W[:, :-1] ** 2).sum()) + self.loss


def solve_multinomial(
    source: Source,
    loss: TruncatedMultinomial,
    *,
    C: float,
    fit_intercept: bool = True,
    tol: float = 1e-6,
    max_iter: int = 100,
    start: Floats | None = None,
) -> Solution:
    """Joint truncated multinomial; ``source.y`` holds class codes 0..K-1; X dense or CSR.

    ``Solution.point`` is K x (d + 1), intercepts last and summing to zero; ``details`` holds
    ``share`` (theta per row), ``scores``, ``on_kink`` and ``trace``.
    """
    newton = _Newton(source, loss, C, fit_intercept)
    if newton.n_classes * newton.width > MOST_IN_ONE_MATRIX and not newton.kinked.any():
        newton = _WideNewton(source, loss, C, fit_intercept)
    return newton.run(start, tol, max_iter)


class _Newton:
    def __init__(
        self, source: Source, loss: TruncatedMultinomial, C: float, fit_intercept: bool
    ) -> None:
        self.source = source
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.n_classes = len(loss.caps)
        self.n_rows = source.n_rows
        self.width = 1 + int(next(iter(source.map(lambda block: block.X.shape[1]))))
        self.y = np.concatenate(list(source.map(lambda b: np.asarray(b.y, np.int64))))
        weights: Any = source.map(lambda b: np.ones(len(b)) if b.weight is None else b.weight)
        self.weight = no_less_than_tiny(C * np.concatenate(list(weights)))
        self.cap = max(4 * self.n_classes * self.width, 2_000)
        self.kinked = self.loss.floors[self.y] > 0

    def run(self, start: Floats | None, tol: float, max_iter: int) -> Solution:
        W = np.zeros((self.n_classes, self.width)) if start is None else np.array(start)
        if not self.fit_intercept:
            W[:, -1] = 0.0
        place = self._at(W, self._scores(W))
        trace = []
        why: WhyStopped = "max_iter"
        n_iter = stuck = 0
        while True:
            gap = self._gap(place)
            trace.append(gap)
            if gap <= tol * place.value:
                why = "gap"
                place, gap = self._once_more(place, gap)
                break
            if n_iter == max_iter:
                break
            n_iter += 1
            place, length = self._advance(place)
            stuck = stuck + 1 if length < 1e-3 else 0
            if stuck:
                self.cap = min(4 * self.cap, self.n_rows)
            if stuck > 6:
                gap = self._gap(place)
                why = "stalled"
                break
        on_kink = np.zeros(self.n_rows, bool)
        on_kink[place.held] = True
        details = {
            "share": place.share,
            "scores": place.F,
            "on_kink": on_kink,
            "trace": tuple(trace),
        }
        return Solution(place.W, place.value, gap, n_iter, why, MappingProxyType(details))

    def _once_more(self, place: _Place, gap: float) -> tuple[_Place, float]:
        """Last steps, of quadratic gain: equal problems then end at equal coefficients.

        A gap of 1e-14 leaves coefficients 1e-7 apart, so a step past it is taken too. Copies of a
        row on its kink share their part in many ways, of which a step may lose the good one: the
        bound that was proved stands.
        """
        for _ in range(LAST_STEPS):
            new, _ = self._advance(place)
            if new.value > place.value * (1.0 + 1e-14):
                break
            after = self._gap(new)
            if after > gap:
                new.share, new.held = place.share, place.held
                after = max(gap - (place.value - new.value), 0.0)
            place, gap = new, after
        return place, gap

    # -- passes --------------------------------------------------------------------------------

    def _scores(self, W: Floats) -> Floats:
        parts: Any = self.source.map(lambda block: np.asarray(block.X @ W[:, :-1].T) + W[:, -1])
        F: Floats = np.concatenate(list(parts))
        return F

    def _transposed(self, U: Floats) -> Floats:
        """K x (d + 1): sum_i U_ik (x_i, 1)."""

        def part(block: Block) -> Floats:
            U_here = U[block.rows]
            out: Floats = np.c_[np.asarray(block.X.T @ U_here).T, U_here.sum(axis=0)]
            return out

        out: Floats = self.source.sum(part)
        return out

    def _hessian(self, place: _Place) -> Floats:
        """Sum of s theta (diag P - P P') x (x, 1)(x, 1)', rows that count only."""
        K, width = self.n_classes, self.width

        def part(block: Block) -> Floats:
            strength = self.weight[block.rows] * place.share[block.rows]
            counting = np.flatnonzero(strength > 0)
            P = softmax(place.F[block.rows], axis=1)
            H = np.zeros((K, width, K, width))
            for start in range(0, len(counting), MULTINOMIAL_CHUNK_ROWS):
                active = counting[start : start + MULTINOMIAL_CHUNK_ROWS]
                table = np.c_[dense(block.X[active]), np.ones(len(active))]
                for k in range(K):
                    for m in range(k + 1):
                        # of diag(P) - P P', block by block: only the lower triangle is computed
                        bend = P[active, k] * ((k == m) - P[active, m]) * strength[active]
                        H[k, :, m] += (table * bend[:, None]).T @ table
            for k in range(K):
                for m in range(k):
                    H[m, :, k] = H[k, :, m].T
            return H.reshape(K * width, K * width)

        out: Floats = self.source.sum(part)
        return out

    def _rows(self, index: Ints, F: Floats) -> Floats:
        """Normals of the linearised kinks: (P - e_y) x (x, 1), flattened."""
        table = np.ones((len(index), self.width))

        def take(block: Block) -> None:
            first, last = np.searchsorted(index, (block.start, block.stop))
            if last > first:
                table[first:last, :-1] = dense(block.X[index[first:last] - block.start])

        for _ in self.source.map(take):
            pass
        if not self.fit_intercept:
            table[:, -1] = 0.0
        slope = plain_slope(F[index], self.y[index])
        return (slope[:, :, None] * table[:, None, :]).reshape(
            len(index), self.n_classes * self.width
        )

    def _at(self, W: Floats, F: Floats) -> _Place:
        height = self.loss.kink_height(F, self.y)
        share = (height > 0).astype(np.float64)
        loss = float(self.weight @ (np.maximum(height, 0.0) + self.loss.floors[self.y]))
        return _Place(W, F, height, share, np.zeros(0, np.int64), loss)

    # -- one step ------------------------------------------------------------------------------

    def _advance(self, place: _Place) -> tuple[_Place, float]:
        G, H = self._model(place)
        natural = (place.height > 0).astype(np.float64)
        index = place.held
        theta = place.share[index]
        for round_ in range(ROUNDS):
            step = self._solve(place, G, H, index, natural, theta)
            p = step.p.reshape(self.n_classes, self.width)
            dF = self._scores(p)
            crossed = self._crossed(place, dF, index)
            if len(crossed) == 0 or round_ == ROUNDS - 1:
                break
            index = np.concatenate([index, crossed])
            theta = np.concatenate([step.v / self.weight[index[: len(step.v)]], natural[crossed]])
            order = np.argsort(index, kind="stable")
            index, theta = index[order], theta[order]
        length, new = self._search(place, p, dF)
        new.held = index[step.free]
        new.share[new.held] = step.v[step.free] / self.weight[new.held]
        return new, length

    def _model(self, place: _Place) -> tuple[Floats, Floats]:
        natural = self.weight * (place.height > 0)
        G = self._transposed(plain_slope(place.F, self.y) * natural[:, None])
        G[:, :-1] += place.W[:, :-1]
        H = self._hessian(place)
        K, width = self.n_classes, self.width
        block = H.reshape(K, width, K, width)
        inner = np.arange(width - 1)
        for k in range(K):
            block[k, inner, k, inner] += 1.0
        if self.fit_intercept:
            # the scores only know differences of intercepts: keep their sum where it is
            block[:, -1, :, -1] += float(np.abs(block[:, -1, :, -1]).max()) or 1.0
            scale = 1e-9 * float(self.weight.sum()) / K
            block[np.arange(K), -1, np.arange(K), -1] += scale
        else:
            G[:, -1] = 0.0
            block[:, -1] = 0.0
            block[:, :, :, -1] = 0.0
            block[np.arange(K), -1, np.arange(K), -1] = 1.0
        return G.ravel(), H

    def _solve(
        self, place: _Place, G: Floats, H: Floats, index: Ints, natural: Floats, theta: Floats
    ) -> KinkStep:
        rows = self._rows(index, place.F)
        ceiling = self.weight[index]
        linear = G - rows.T @ (ceiling * natural[index])
        return kink_step(H, linear, rows, place.height[index], ceiling, ceiling * theta)

    def _crossed(self, place: _Place, dF: Floats, known: Ints) -> Ints:
        change = (plain_slope(place.F, self.y) * dF).sum(axis=1)
        # the floor is met where the log-loss crosses it, here to first order in the step
        crosses = ((place.height > 0) != (place.height + change > 0)) & self.kinked
        crosses[known] = False
        found = np.flatnonzero(crosses)
        room = max(self.cap - len(known), 0)
        if len(found) > room:
            when = np.abs(place.height[found] / change[found])
            found = np.sort(found[np.argsort(when, kind="stable")[:room]])
        return found

    def _search(self, place: _Place, p: Floats, dF: Floats) -> tuple[float, _Place]:
        """Full step when it lowers the objective, else the best of a bisection."""

        def at(length: float) -> tuple[float, float, _Place]:
            there = self._at(place.W + length * p, place.F + length * dF)
            slopes = plain_slope(there.F, self.y) * (self.weight * there.share)[:, None]
            tilt = float((slopes * dF).sum() + (there.W[:, :-1] * p[:, :-1]).sum())
            return there.value, tilt, there

        full = self._at(place.W + p, place.F + dF)
        if full.value <= place.value * (1 + 1e-15):
            return 1.0, full
        length, new = shortened(at, place.value, place)
        return length, self._at(new.W, new.F)

    # -- certificate ---------------------------------------------------------------------------

    def _gap(self, place: _Place) -> float:
        P = softmax(place.F, axis=1)
        rows = np.arange(self.n_rows)
        share = place.share
        # what class k pulls from rows of class m; with intercepts in and out must be equal
        flow = P * (self.weight * share)[:, None]
        flow[rows, self.y] = 0.0
        total = np.zeros((self.n_classes, self.n_classes))
        np.add.at(total, self.y, flow)
        shrink = balanced_flow(total) if self.fit_intercept else np.ones_like(total)
        moved = P * shrink[self.y]
        moved[rows, self.y] = 0.0
        # shares of a row that is surely wrong may add up to more than one, by rounding
        moved[rows, self.y] = np.maximum(1.0 - moved.sum(axis=1), 0.0)
        # moved[i] is P' of the row: the own class takes what the others lose
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.where(P > 0, moved / P, 1.0)
        entropy = np.maximum(xlogy(moved, ratio).sum(axis=1), 0.0)
        price = np.maximum(place.height, 0.0) - share * place.height + share * entropy
        price = np.where(share > 0, price, np.maximum(place.height, 0.0))
        moved[rows, self.y] -= 1.0
        dual = self._transposed(moved * (self.weight * share)[:, None])
        apart = place.W[:, :-1] + dual[:, :-1]
        return float(self.weight @ np.maximum(price, 0.0)) + 0.5 * float((apart**2).sum())


class _WideNewton(_Newton):
    """Without kinks no Hessian is needed: conjugate gradients by products with X and X'."""

    def _advance(self, place: _Place) -> tuple[_Place, float]:
        P = softmax(place.F, axis=1)
        G = self._transposed(plain_slope(place.F, self.y) * self.weight[:, None])
        G[:, :-1] += place.W[:, :-1]
        bend = P * (1.0 - P) * self.weight[:, None]
        diagonal = self._squares(bend)
        diagonal[:, :-1] += 1.0
        # scores only know differences of intercepts, and a class may be all but certain
        light = 1e-9 * float(self.weight.sum())
        diagonal[:, -1] += light
        if not self.fit_intercept:
            G[:, -1] = 0.0

        def product(flat: Floats) -> Floats:
            p = flat.reshape(G.shape)
            dF = self._scores(p)
            dF -= (P * dF).sum(axis=1, keepdims=True)
            out = self._transposed(P * dF * self.weight[:, None])
            out[:, :-1] += p[:, :-1]
            out[:, -1] = out[:, -1] + light * p[:, -1] if self.fit_intercept else 0.0
            return out.ravel()

        size = float(np.sqrt((G**2).sum()))
        # a residual that falls faster than the gradient makes the last steps fast ones
        share = min(0.1, size / (1.0 + place.value))
        p = conjugate_gradients(product, -G.ravel(), diagonal.ravel(), share * size)
        length, new = self._search(place, p.reshape(G.shape), self._scores(p.reshape(G.shape)))
        return new, length

    def _squares(self, U: Floats) -> Floats:
        """K x (d + 1): sum_i U_ik (x_i^2, 1)."""

        def part(block: Block) -> Floats:
            U_here = U[block.rows]
            out: Floats = np.c_[np.asarray(squares(block.X).T @ U_here).T, U_here.sum(axis=0)]
            return out

        out: Floats = self.source.sum(part)
        return out


def plain_slope(F: Floats, y: Ints) -> Floats:
    slope: Floats = softmax(F, axis=1)
    slope[np.arange(len(y)), y] -= 1.0
    return slope


def balanced_flow(flow: Floats) -> Floats:
    """Factors in [0, 1] on flow[j, k] that make every row sum equal its column sum.

    Scaling flow[j, k] by d_j / d_k (Osborne's balancing) and then all by one number. Where a class
    only gives or only takes, no such scaling exists and the flow is cut altogether.
    """
    out, into = flow.sum(axis=1), flow.sum(axis=0)
    if ((out > 0) != (into > 0)).any():
        return np.zeros_like(flow)
    d = np.ones(len(flow))
    for _ in range(500):
        scaled = flow * (d[:, None] / d)
        out, into = scaled.sum(axis=1), scaled.sum(axis=0)
        if np.abs(out - into).max() <= 1e-15 * max(float(out.max()), 1e-300):
            break
        for k in np.flatnonzero(out > 0):
            column = (flow[:, k] * d).sum() / d[k]
            row = (flow[k] / d).sum() * d[k]
            if row > 0 and column > 0:
                d[k] *= np.sqrt(column / row)
    factor = d[:, None] / d
    return np.asarray(factor / factor.max())
