"""Weights of a naive Bayes: proximal Newton on the box, to a certified gap."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from laconic._typing import Floats, Ints
from laconic.bayes.criterion import CodedRows, WeightedBayes
from laconic.bayes.descent import SearchPath, search, total_iterations
from laconic.bayes.tuning import NEWTON_PRICE, NEWTON_STEPS, RELATIVE_GAP, WORKING_SET
from laconic.core.losses import Solution, WhyStopped
from laconic.core.progress import Deadline

_OUT = 1e300  # price of a variable that may not come back


def newton_weights(
    rows: CodedRows,
    criterion: WeightedBayes,
    *,
    start: Floats | None = None,
    tol: float | None = None,
    max_iter: int = 100,
    deadline: Deadline | None = None,
    path: SearchPath | None = None,
) -> Solution:
    """Minimise criterion (4) on [0, 1]^K by proximal Newton steps.

    Each step minimises the quadratic model of the loss plus the exact penalty over the box, then
    searches the segment. For power >= 1 it stops when the tangent bound certifies ``tol`` (nats);
    for power < 1 it is a local descent, ``gap`` is infinite, and it stops when the model promises
    less than ``tol``.
    """
    w = np.zeros(rows.n_variables) if start is None else np.array(start, dtype=np.float64)
    path = SearchPath(w) if path is None else path
    deadline = deadline or Deadline(None)
    path.start()
    state = _State.at(rows, criterion, w)
    path.add(w, state.value)
    tol = _default_tol(rows, state) if tol is None else tol
    why: WhyStopped = "max_iter"
    n_iter = 0
    for n_iter in range(max_iter + 1):
        if state.gap <= tol:
            why = "gap"
            break
        if n_iter == max_iter:
            break
        if deadline.passed():
            why = "budget"
            break
        following = _newton_step(rows, criterion, state, tol)
        if following is None:
            why = "stalled"
            break
        state = following
        path.add(state.w, state.value)
    return Solution(state.w, state.value, state.gap, n_iter, why, path.as_details())


@dataclass(frozen=True)
class _State:
    w: Floats
    loss: float
    value: float
    slope: Floats  # of the loss
    gap: float

    @staticmethod
    def at(rows: CodedRows, criterion: WeightedBayes, w: Floats) -> _State:
        loss, slope = rows.loss_and_slope(w)
        gap = criterion.gap(w, slope) if criterion.is_convex else math.inf
        return _State(w, loss, criterion.value(w, loss), slope, gap)


def _default_tol(rows: CodedRows, state: _State) -> float:
    if not state.w.any():
        return RELATIVE_GAP * state.loss
    return RELATIVE_GAP * rows.loss(np.zeros_like(state.w))


def _newton_step(
    rows: CodedRows, criterion: WeightedBayes, state: _State, tol: float
) -> _State | None:
    """The next point, or None when no step lowers the criterion beyond rounding."""
    from laconic.bayes import _numba as hot

    free = _working_set(criterion, state)
    if not len(free):
        return None
    hessian = rows.curvature(state.w, free)
    diagonal = hessian.diagonal()
    # variables that say the same have equal lines in the Hessian
    ridge = 1e-12 * float(diagonal.max()) + 1e-300
    hessian[np.diag_indices_from(hessian)] += ridge
    root = math.sqrt(float(diagonal.max()) + ridge)
    goal = hot.box_model_minimum(
        hessian,
        state.slope[free],
        state.w[free],
        criterion.price[free],
        criterion.power,
        3000,
        1e-2 * tol / (root * len(free)),
    )
    target = state.w.copy()
    target[free] = goal
    # the decrease of the linear part and of the penalty, which Armijo's rule asks a share of
    promise = float(state.slope @ (target - state.w)) + (
        criterion.regulariser(target) - criterion.regulariser(state.w)
    )
    rounding = 1e-14 * abs(state.value)
    if not criterion.is_convex and promise > -tol:
        return None
    share = 1.0
    while share > 1e-8:
        at = target if share == 1.0 else state.w + share * (target - state.w)
        found = _State.at(rows, criterion, at)
        if found.value <= state.value + 1e-4 * share * promise + rounding:
            progress = found.value < state.value - rounding or found.gap < state.gap
            return found if progress else None
        share *= 0.5
    return None


def _working_set(criterion: WeightedBayes, state: _State) -> Ints:
    """Variables that are in, or that the tangent wants in; those with the widest gaps if many."""
    gaps = criterion.relaxed().gaps(state.w, state.slope)
    free = np.flatnonzero((state.w > 0.0) | (gaps > 0.0))
    if len(free) <= WORKING_SET:
        return free
    return np.sort(free[np.argsort(-gaps[free], kind="stable")[:WORKING_SET]])


def certified(rows: CodedRows, criterion: WeightedBayes, found: Solution) -> Solution:
    """The same point, valued on all rows and bounded by convexity.

    For power < 1 the tangent of the relaxed criterion bounds both from below.
    """
    loss, slope = rows.loss_and_slope(found.point)
    value = criterion.value(found.point, loss)
    relaxed = criterion.relaxed()
    gap = relaxed.gap(found.point, slope) + value - relaxed.value(found.point, loss)
    return replace(found, value=value, gap=gap)


def thinned(
    rows: CodedRows,
    criterion: WeightedBayes,
    found: Solution,
    *,
    min_gain: float,
    deadline: Deadline | None = None,
) -> Solution:
    """Leave out variables one by one while each raises the criterion by less than ``min_gain``.

    They are tried in the order of what their removal costs to second order, the others moving
    along: g_k w_k + w_k^2 / (2 [H^-1]_kk), g_k the descent that the bound w_k <= 1 holds back.
    Without the tried one the others are optimised again, and the true rise decides. The round ends
    where the estimate says twice ``min_gain``.
    """
    deadline = deadline or Deadline(None)
    price = criterion.price.copy()
    point, value, n_iter = found.point, found.value, found.n_iter
    tol = max(1e-3 * min_gain, _default_tol(rows, _State.at(rows, criterion, np.zeros_like(point))))
    going = bool(point.any())
    while going:
        going = False
        for out in _cheapest_first(rows, criterion, point, 2.0 * min_gain):
            if deadline.passed():
                break
            trial = price.copy()
            trial[out] = _OUT
            without = WeightedBayes(trial, 1.0, criterion.power)
            start = np.where(np.arange(len(point)) == out, 0.0, point)
            tried = newton_weights(rows, without, start=start, tol=tol, deadline=deadline)
            n_iter += tried.n_iter
            if tried.value <= value + min_gain:
                point, value, price = tried.point, tried.value, trial
                going = bool(point.any())
                break
    gap = max(0.0, value - (found.value - found.gap))
    return replace(found, point=point, value=value, gap=gap, n_iter=n_iter)


def _cheapest_first(rows: CodedRows, criterion: WeightedBayes, w: Floats, most: float) -> list[int]:
    """Variables in use whose removal is estimated below ``most``, cheapest first."""
    used = np.flatnonzero(w)
    hessian = rows.curvature(w, used)
    hessian[np.diag_indices_from(hessian)] += 1e-9 * float(hessian.diagonal().max()) + 1e-12
    slope = criterion.slope(w, rows.loss_and_slope(w)[1])[used]
    # at the bound w = 1 the gradient is not zero: leaving costs its first order too
    held_back = np.where(w[used] == 1.0, np.maximum(-slope, 0.0), 0.0)
    rise = held_back * w[used] + 0.5 * w[used] ** 2 / np.linalg.inv(hessian).diagonal()
    order = np.argsort(rise, kind="stable")
    return [int(used[k]) for k in order if rise[k] <= most]


def best_weights(
    rows: CodedRows,
    criterion: WeightedBayes,
    *,
    total: float,
    level: int,
    rng: np.random.Generator,
    start: Floats | None = None,
    max_iter: int | None = None,
    deadline: Deadline | None = None,
) -> Solution:
    """Convex: Newton to a certified gap. Otherwise: from the convex start, neighbourhoods.

    For power < 1 the minimum of the relaxed (power = 1) criterion is a lower bound, because
    w <= w^power on [0, 1]; the gap is measured against it.
    """
    deadline = deadline or Deadline(None)
    newton_iter = 100 if max_iter is None else max_iter
    relaxed = newton_weights(
        rows, criterion.relaxed(), start=start, max_iter=newton_iter, deadline=deadline
    )
    if criterion.is_convex or not rows.n_variables:
        value = relaxed.value + criterion.regulariser(relaxed.point)
        value -= criterion.relaxed().regulariser(relaxed.point)
        gap = relaxed.gap + value - relaxed.value
        return replace(relaxed, value=value, gap=gap)
    tol = 10.0 * _default_tol(rows, _State.at(rows, criterion, np.zeros(rows.n_variables)))

    def descend(point: Floats, path: SearchPath, until: Deadline, allowed: int) -> int:
        done = newton_weights(
            rows,
            criterion,
            start=point,
            tol=tol,
            max_iter=min(NEWTON_STEPS, max(1, allowed)),
            deadline=until,
            path=path,
        )
        return done.n_iter

    budget = max(1, total_iterations(rows.n_variables, total, level) // NEWTON_PRICE)
    found = search(descend, relaxed.point, "dgml-vns", rng=rng, budget=budget, deadline=deadline)
    gap = max(0.0, found.value - (relaxed.value - relaxed.gap))
    return replace(found, gap=gap, n_iter=relaxed.n_iter + found.n_iter)
