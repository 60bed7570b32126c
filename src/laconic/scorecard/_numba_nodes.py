"""Compiled relaxation of a node: which items may still enter is open, the points are real numbers.

States of items: 1 in the card, 0 open, -1 out. At most ``room`` open items enter.
"""

from __future__ import annotations

import numpy as np

from laconic._jit import njit
from laconic._typing import Floats, Ints, Signs
from laconic.scorecard._numba import best_offset, loss_at


@njit(cache=True)
def worth_of(g: float, low: float, high: float) -> float:
    """What an item can take off the tangent: -min of g w over [low, high]."""
    return max(-g * high, -g * low, 0.0)


@njit(cache=True)
def largest_worths(
    worth: Floats, state: Signs, room: int, column: Ints, caps: Ints, taken: Ints
) -> float:
    """Sum of the ``room`` largest worths of open items, at most ``caps`` for each column."""
    order = np.argsort(-worth)
    used = taken.copy()
    total, left = 0.0, room
    for place in range(len(order)):
        j = order[place]
        if left == 0 or worth[j] <= 0.0:
            break
        if state[j] == 0 and used[column[j]] < caps[column[j]]:
            used[column[j]] += 1
            left -= 1
            total += worth[j]
    return total


@njit(cache=True)
def project(
    y: Floats, state: Signs, low: Floats, high: Floats, scale: Floats, room: int, out: Floats
) -> None:
    """The nearest point of the box with sum over open items of |w| / its limit <= room."""
    p = len(y)
    rate_up, rate_down = np.zeros(p), np.zeros(p)
    total = 0.0
    for j in range(p):
        out[j] = min(max(y[j], low[j]), high[j])
        if state[j] == 0:
            rate_up[j] = 1.0 / high[j] if high[j] > 0 else 0.0
            rate_down[j] = -1.0 / low[j] if low[j] < 0 else 0.0
            total += out[j] * rate_up[j] if out[j] > 0 else -out[j] * rate_down[j]
    if total <= room:
        return
    below, above, known = 0.0, 1.0, False  # the price of one unit, bracketed
    for _ in range(200):
        price = 0.5 * (below + above) if known else above
        total = 0.0
        for j in range(p):
            if state[j] != 0:
                continue
            v = y[j]
            if v > 0:
                v = max(v - price * scale[j] * rate_up[j], 0.0)
            else:
                v = min(v + price * scale[j] * rate_down[j], 0.0)
            out[j] = min(max(v, low[j]), high[j])
            total += out[j] * rate_up[j] if out[j] > 0 else -out[j] * rate_down[j]
        if total > room:
            below = price
            above = above if known else 4.0 * above
        else:
            above, known = price, True
            if room - total < 1e-9 * room or above - below < 1e-12 * above:
                return


@njit(cache=True)
def relax_node(
    X: Floats,
    pos: Floats,
    neg: Floats,
    state: Signs,
    low: Floats,
    high: Floats,
    scale: Floats,
    room: int,
    column: Ints,
    caps: Ints,
    w: Floats,
    b: float,
    cutoff: float,
    tol: float,
    n_iter: int,
    offset: float,
) -> tuple[float, float, Floats, float, Floats]:
    """A lower bound on every card of a node, its relaxed minimiser, and the worths at the end.

    min of the loss of ``w X + b`` over low <= w <= high with the open items' |w| / limit adding up
    to at most ``room``: spectral projected gradient in the metric ``scale``. The bound is the
    tangent at an iterate minimised over the cards of the node, the best one of all iterates.
    """
    p, n = X.shape
    slope, bend = np.empty(n), np.empty(n)
    taken = np.zeros(len(caps), dtype=np.int64)
    for j in range(p):
        if state[j] == 1:
            taken[column[j]] += 1
    trial = np.empty(p)
    project(w.copy(), state, low, high, scale, room, trial)
    w = trial.copy()
    f = w @ X
    b = best_offset(f, pos, neg, b, slope, bend)
    value = loss_at(f + b, pos, neg)
    grad = X @ slope
    bound, worth = -np.inf, np.zeros(p)
    recent = np.full(6, value)
    pace = 1.0
    best_worth = np.zeros(p)
    for it in range(n_iter):
        # the bound of the tangent here
        at, ins = 0.0, 0.0
        for j in range(p):
            at += grad[j] * w[j]
            worth[j] = 0.0
            if state[j] == 1:
                ins += min(grad[j] * low[j], grad[j] * high[j])
            elif state[j] == 0:
                worth[j] = worth_of(grad[j], low[j], high[j])
        total = largest_worths(worth, state, room, column, caps, taken)
        found = value - at + ins - total - abs(slope.sum()) * offset
        if found > bound:
            bound = found
            best_worth[:] = worth
        if bound >= cutoff or value - bound < tol:
            break
        project(w - pace * scale * grad, state, low, high, scale, room, trial)
        step = trial - w
        along = grad @ step
        if along > -1e-16:
            break
        t, top = 1.0, recent.max()
        moved = step @ X
        new_b, new_value = b, value
        for _ in range(20):
            new_b = best_offset(f + t * moved, pos, neg, b, slope, bend)
            new_value = loss_at(f + t * moved + new_b, pos, neg)
            if new_value <= top + 1e-4 * t * along:
                break
            t *= 0.5
        w = w + t * step
        f = f + t * moved
        b = new_b
        new_grad = X @ slope
        difference = new_grad - grad
        size, turn = 0.0, 0.0
        for j in range(p):
            if scale[j] > 0.0:
                size += (t * step[j]) ** 2 / scale[j]
                turn += t * step[j] * difference[j]
        pace = min(max(size / turn, 1e-6), 1e6) if turn > 0 else 10.0
        grad = new_grad
        value = new_value
        recent[it % 6] = value
    return bound, value, w, b, best_worth
