"""Newton's method for linear models whose losses have kinks: the steps and the certificate.

minimise over (w, b)   |w|^2 / 2 + C sum_i s_i phi(z_i, y_i),   z_i = w.x_i + b.

Each step solves the quadratic model of the smooth parts together with the hinges of the rows
whose kink the step may cross (:mod:`~laconic.linear.solvers.kink_qp`), so that the rows that end on
a kink are found and not merely approached. Dual slopes u_i certify the result:

    gap = C sum_i s_i (phi(z_i) + phi*(u_i) - u_i z_i) + |w - w_u|^2 / 2

with w_u = -C sum_i s_i u_i x_i, and sum_i s_i u_i = 0 when there is an intercept; no term is
negative.

The passes over rows in memory (:mod:`~laconic.linear.solvers.newton`) and over rows that stay where
they are (:mod:`~laconic.linear.solvers.scan`) differ, because in memory the scores, slopes and
curvatures of all rows are kept from one step to the next: passes that send a point and bring back a
sum take 20 to 40 % longer on 232,350 rows of 54 columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from laconic._typing import Floats, Ints, Mask
from laconic.core.losses import ScoreLoss, Solution, WhyStopped, fenchel_young
from laconic.linear.solvers.kink_qp import KinkStep, Whitened, kink_step
from laconic.linear.solvers.rows import FewRows
from laconic.linear.tuning import ROUNDS


@dataclass
class Hinges:
    """Rows whose kink is part of the model, with their multipliers in [0, ceiling]."""

    rows: FewRows
    v: Floats
    free: Mask

    @staticmethod
    def none(width: int) -> Hinges:
        return Hinges(FewRows.none(width), np.zeros(0), np.zeros(0, bool))

    def keep(self, chosen: Mask) -> Hinges:
        return Hinges(self.rows.take(chosen), self.v[chosen], self.free[chosen])

    @property
    def held(self) -> Ints:
        """Rows that stand exactly on their kink."""
        return self.rows.index[self.free]


@dataclass
class Place:
    """A point, the kinks it stands on and, once known, its loss and its gap."""

    point: Floats
    hinges: Hinges
    loss: float = np.nan
    gap: float = np.inf

    @property
    def value(self) -> float:
        return 0.5 * float(self.point[:-1] @ self.point[:-1]) + self.loss


@dataclass(frozen=True)
class Model:
    """Quadratic model at a place: gradient and Hessian of penalty and natural slopes.

    ``by_sign`` is the gradient of the losses by sign of the slope, ``reach`` the largest score.
    """

    by_sign: Floats
    G: Floats
    H: Floats
    reach: float


@dataclass(frozen=True)
class Ahead:
    """What a full step meets: the rows whose kink it crosses."""

    crossed: FewRows


P = TypeVar("P", bound=Place)
A = TypeVar("A", bound=Ahead)
T = TypeVar("T")


class KinkNewton(ABC, Generic[P, A]):
    """Steps, kink QP and certificate; a subclass says how the rows are passed over.

    ``least`` is what a gap is compared with where the objective is zero, ``total`` the weight of
    all rows, ``furthest`` the largest finite position of a kink. A step's model takes ``cap``
    hinges, more after steps that fail, at most ``most``.
    """

    loss: ScoreLoss
    width: int
    least: float
    total: float
    furthest: float
    cap: int
    most: int

    def __init__(self, fit_intercept: bool, max_iter: int) -> None:
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter

    def run(self, start: Floats | None, tol: float) -> Solution:
        place = self._begin(start)
        trace: list[float] = []
        why: WhyStopped = "max_iter"
        n_iter = stuck = idle = 0
        before = np.nan
        while True:
            model = self._model(place)
            trace.append(self._certify(place, model.by_sign, tol))
            if self._proved(place, tol):
                why = "gap"
                break
            # no progress beyond rounding: certificates may still close the gap for a while
            idle = idle + 1 if before - place.value <= 1e-14 * abs(before) else 0
            if n_iter == self.max_iter or stuck > 8 or idle > 40:
                why = "max_iter" if n_iter == self.max_iter else "stalled"
                break
            n_iter += 1
            before = place.value
            place, length = self._advance(place, model, tol)
            if self._proved(place, tol):
                trace.append(place.gap)
                why = "gap"
                break
            stuck = stuck + 1 if length < 0.01 else 0
            if stuck:
                # short steps mean that kinks were met which the model did not hold
                self.cap = min(4 * self.cap, self.most)
        if not np.isfinite(place.gap):
            self._certify(place, model.by_sign, np.inf)
        return self._solution(place, n_iter, why, tuple(trace))

    def _proved(self, place: P, tol: float) -> bool:
        return place.gap <= tol * max(place.value, self.least)

    # -- passes over the rows ------------------------------------------------------------------

    @abstractmethod
    def _begin(self, start: Floats | None) -> P: ...

    @abstractmethod
    def _model(self, place: P) -> Model: ...

    @abstractmethod
    def _offset(self, place: P, rows: FewRows) -> Floats:
        """How far above their kink the rows are."""

    @abstractmethod
    def _ahead(self, place: P, p: Floats, hinges: Hinges) -> A: ...

    @abstractmethod
    def _move(
        self, place: P, model: Model, step: KinkStep, hinges: Hinges, ahead: A, promised: float
    ) -> tuple[P, float]:
        """The place after the step or a part of it, and that part."""

    @abstractmethod
    def _excess(self, place: P, shrink: tuple[float, float]) -> float:
        """Fenchel-Young sum of natural slopes times ``shrink``; held rows are left out."""

    @abstractmethod
    def _solution(
        self, place: P, n_iter: int, why: WhyStopped, trace: tuple[float, ...]
    ) -> Solution: ...

    # -- one step ------------------------------------------------------------------------------

    def _quadratic(self, place: P, by_sign: Floats, H: Floats, reach: float) -> Model:
        G = by_sign.sum(axis=0)
        G[:-1] += place.point[:-1]
        H[np.diag_indices(self.width - 1)] += 1.0
        if not self.fit_intercept:
            G[-1] = 0.0
            H[-1, :] = H[:, -1] = 0.0
            # the intercept stays where it is: an identity line keeps H positive definite
            H[-1, -1] = 1.0
        return Model(by_sign, G, H, reach)

    def _advance(self, place: P, model: Model, tol: float) -> tuple[P, float]:
        """Solve, see which kinks the step crosses, take them in, solve again; then move."""
        H = self._steady_intercept(model)
        hinges = place.hinges
        whitened = Whitened.of(H, self._seen(hinges.rows.table))
        step = self._solve(place, model.G, H, hinges, whitened)
        for round_ in range(ROUNDS):
            ahead = self._ahead(place, step.p, hinges)
            if len(ahead.crossed) == 0 or round_ == ROUNDS - 1:
                break
            hinges = self._join(place, hinges, ahead.crossed)
            whitened = whitened.extended(self._seen(ahead.crossed.table))
            step = self._solve(place, model.G, H, hinges, whitened)
        hinges = Hinges(hinges.rows, step.v, step.free)
        promised = self._predicted(place, model, step, hinges)
        new, length = self._move(place, model, step, hinges, ahead, promised)
        if length < 1.0:
            new.hinges.free[:] = False  # a part of the step ends on no kink
        elif tol > 0:
            self._certify_ahead(place, model, step, hinges, ahead, new, tol)
        return new, length

    def _certify_ahead(
        self, place: P, model: Model, step: KinkStep, hinges: Hinges, ahead: A, new: P, tol: float
    ) -> None:
        """A certificate of the new place that needs no pass over the columns, where there is."""

    def _steady_intercept(self, model: Model) -> Floats:
        """A loss without curvature (hinge) leaves b free in the model: a light proximal term.

        It vanishes with the step, so the limit is unchanged.
        """
        if not self.fit_intercept:
            return model.H
        scale = 1.0 + model.reach + self.furthest
        least = 1e-6 * (abs(float(model.G[-1])) / scale + 1e-9 * self.total)
        if model.H[-1, -1] >= least:
            return model.H
        H = model.H.copy()
        H[-1, -1] += least
        return H

    def _hinge_terms(self, place: P, hinges: Hinges) -> tuple[Floats, Floats, Floats]:
        """Offset from the kink, ceiling of the multiplier, and its natural value (0 or full)."""
        if not len(hinges.rows):
            nothing = np.zeros(0)
            return nothing, nothing, nothing
        offset = self._offset(place, hinges.rows)
        kink = self.loss.kink(hinges.rows.y)
        ceiling = hinges.rows.weight * (kink.high - kink.low)
        return offset, ceiling, np.where(offset > 0, ceiling, 0.0)

    def _solve(
        self, place: P, G: Floats, H: Floats, hinges: Hinges, whitened: Whitened
    ) -> KinkStep:
        offset, ceiling, natural = self._hinge_terms(place, hinges)
        table = self._seen(hinges.rows.table)
        # natural slopes already count the hinge of rows above their kink: take it out
        linear = G - table.T @ natural
        step = kink_step(H, linear, table, offset, ceiling, hinges.v, whitened)
        hinges.v = step.v
        return step

    def _seen(self, table: Floats) -> Floats:
        """Rows as the model sees them: without an intercept, their last entry is zero."""
        if self.fit_intercept or not len(table):
            return table
        table = table.copy()
        table[:, -1] = 0.0
        return table

    def _join(self, place: P, hinges: Hinges, new: FewRows) -> Hinges:
        kink = self.loss.kink(new.y)
        full = new.weight * (kink.high - kink.low)
        v = np.where(self._offset(place, new) > 0, full, 0.0)
        rows = replace(hinges.rows, room=len(hinges.rows) + len(new)) + new
        return Hinges(rows, np.concatenate([hinges.v, v]), np.zeros(len(rows), bool))

    def _predicted(self, place: P, model: Model, step: KinkStep, hinges: Hinges) -> float:
        """Decrease of the piecewise quadratic model over the step."""
        offset, ceiling, natural = self._hinge_terms(place, hinges)
        table, p = self._seen(hinges.rows.table), step.p
        before = ceiling @ np.maximum(offset, 0.0)
        after = ceiling @ np.maximum(offset + table @ p, 0.0)
        linear = (model.G - table.T @ natural) @ p
        return float(before - after - linear - 0.5 * p @ model.H @ p)

    # -- certificate ---------------------------------------------------------------------------

    def _certify(self, place: P, by_sign: Floats, tol: float) -> float:
        """Gap of the natural slopes, with the multipliers on the kinks.

        Returns as soon as the cheap part alone misses ``tol``, leaving the place uncertified.
        Slopes of one sign are shrunk so that their sum is zero; zero lies in every domain, so
        that they stay feasible.
        """
        hinges = place.hinges
        held = hinges.rows.take(hinges.free)
        u = np.zeros(0)
        if len(held):
            kink = self.loss.kink(held.y)
            natural = held.weight * self.loss.slope(kink.position, held.y)
            u = held.weight * kink.low + hinges.v[hinges.free]
            by_sign = by_sign.copy()
            for side, sign in ((0, -1), (1, 1)):
                by_sign[side] -= np.where(natural * sign > 0, natural, 0.0) @ held.table
                by_sign[side] += np.where(u * sign > 0, u, 0.0) @ held.table
        shrink = balance(by_sign[:, -1]) if self.fit_intercept else (1.0, 1.0)
        apart = place.point[:-1] + shrink[0] * by_sign[0, :-1] + shrink[1] * by_sign[1, :-1]
        gap = 0.5 * float(apart @ apart)
        if gap > tol * max(place.value, self.least):
            return gap
        gap += self._excess(place, shrink)
        if len(held):
            s = held.weight
            shrunk = np.where(u > 0, shrink[1], shrink[0]) * u / s
            gap += float(s @ fenchel_young(self.loss, kink.position, shrunk, held.y))
        place.gap = gap
        self._keep_dual(place, u, shrink)
        return gap

    def _keep_dual(self, place: P, u: Floats, shrink: tuple[float, float]) -> None:
        """Where dual slopes are wanted: natural ones, ``u`` on held rows, times ``shrink``."""


def shortened(
    at: Callable[[float], tuple[float, float, T]], value: float, start: T
) -> tuple[float, T]:
    """A length below 1 along a convex line on which a full step is too long, by bisection.

    ``at`` gives value, slope and what is there; (0, ``start``) where nothing is below ``value``.
    """
    low, high, length = 0.0, 1.0, 0.5
    # the line is convex, so that the sign of its slope says on which side the minimum is
    best = (value, 0.0, start)
    for _ in range(40):
        total, tilt, there = at(length)
        if total < best[0]:
            best = (total, length, there)
        low, high = (low, length) if tilt > 0 else (length, high)
        if best[1] > 0 and high - low <= 0.25 * high:
            break
        length = 0.5 * (low + high)
    return best[1], best[2]


def balance(sums: Floats) -> tuple[float, float]:
    """Factors in [0, 1] on negative and positive slopes that make their sum zero."""
    negative, positive = -float(sums[0]), float(sums[1])
    if negative > positive:
        return positive / negative, 1.0
    if positive > negative:
        return 1.0, negative / positive
    return 1.0, 1.0
