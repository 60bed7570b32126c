"""Compiled relaxation of a node: which items may still enter is open, the points are real numbers.

States of items: 1 in the card, 0 open, -1 out. At most ``room`` open items enter.
"""

from __future__ import annotations

import numpy as np

from laconic._jit import njit
from laconic._typing import Floats, Ints, Mask, Signs
from laconic.scorecard._numba import best_offset, loss_at

PRICE_TOL = 1e-7
"""Relative precision of the prices of a projection; the bound holds at any point."""


@njit(cache=True)
def worth_of(g: float, low: float, high: float) -> float:
    """What an item can take off the tangent: -min of g w over [low, high]."""
    return max(-g * high, -g * low, 0.0)


@njit(cache=True)
def largest_worths(
    worth: Floats, state: Signs, room: int, column: Ints, caps: Ints, needed: Mask, picks: Floats
) -> tuple[float, float]:
    """Most worth that a card of the node can have, and the least worth among its free picks.

    One open item of every needed column, then the largest ones that are left, in all ``room`` of
    them and at most ``caps`` of a column. ``picks`` gets the worth of each needed column's item.
    """
    used = np.zeros(len(caps), dtype=np.int64)
    for j in range(len(worth)):
        if state[j] == 1:
            used[column[j]] += 1
    first = np.full(len(caps), -1)
    picks[:] = 0.0
    left = room
    for j in range(len(worth)):
        c = column[j]
        if state[j] == 0 and needed[c] and (first[c] < 0 or worth[j] > worth[first[c]]):
            first[c] = j
    total, last = 0.0, 0.0
    for c in range(len(caps)):
        if first[c] >= 0:
            picks[c] = worth[first[c]]
            total += picks[c]
            used[c] += 1
            left -= 1
    order = np.argsort(-worth)
    for place in range(len(order)):
        j = order[place]
        if left <= 0 or worth[j] <= 0.0:
            break
        if state[j] == 0 and first[column[j]] != j and used[column[j]] < caps[column[j]]:
            used[column[j]] += 1
            left -= 1
            total += worth[j]
            last = worth[j]
    return total, last if left == 0 else 0.0


@njit(cache=True)
def prices_of_items(
    worth: Floats, state: Signs, room: int, column: Ints, caps: Ints, needed: Mask
) -> tuple[Floats, Floats]:
    """What the bound of a node gains, at least, with an open item in; with a column left out."""
    p, picks, other = len(worth), np.zeros(len(caps)), np.zeros(len(caps))
    total, last = largest_worths(worth, state, room, column, caps, needed, picks)
    pending = 0
    for c in range(len(caps)):
        held = False
        for j in range(p):
            held = held or (column[j] == c and state[j] == 0)
        pending += needed[c] and held
    put_in, left_out = np.zeros(p), np.zeros(len(caps))
    for j in range(p):
        if state[j] == 0:
            # its column's pick goes, and may come back in the place of the least free pick
            gone = last
            if needed[column[j]]:
                gone = min(picks[column[j]], last) if room > pending else picks[column[j]]
            put_in[j] = gone - worth[j]
    free = worth.copy()
    for c in range(len(caps)):
        if needed[c]:
            continue
        for j in range(p):
            free[j] = 0.0 if column[j] == c else worth[j]
        left_out[c] = total - largest_worths(free, state, room, column, caps, needed, other)[0]
    return put_in, left_out


@njit(cache=True)
def shrink(
    y: Floats, own: Ints, low: Floats, high: Floats, scale: Floats, price: float, out: Floats
) -> float:
    """The items ``own`` of ``y`` moved towards zero at a price of each |w| / limit; their sum."""
    total = 0.0
    for j in own:
        if y[j] > 0:
            rate = 1.0 / high[j] if high[j] > 0 else 0.0
            out[j] = min(max(y[j] - price * scale[j] * rate, max(low[j], 0.0)), high[j])
        else:
            rate = -1.0 / low[j] if low[j] < 0 else 0.0
            out[j] = max(min(y[j] + price * scale[j] * rate, min(high[j], 0.0)), low[j])
        total += abs(out[j]) * rate
    return total


@njit(cache=True)
def priced(
    y: Floats,
    own: Ints,
    low: Floats,
    high: Floats,
    scale: Floats,
    room: float,
    most: float,
    out: Floats,
) -> float:
    """The least price, at most ``most``, at which the sum of :func:`shrink` is within ``room``."""
    if shrink(y, own, low, high, scale, 0.0, out) <= room:
        return 0.0
    if most < np.inf and shrink(y, own, low, high, scale, most, out) > room:
        return most
    below, above = 0.0, min(1.0, most)
    while shrink(y, own, low, high, scale, above, out) > room:
        below, above = above, min(4.0 * above, most)
    while above - below > PRICE_TOL * above:
        price = 0.5 * (below + above)
        total = shrink(y, own, low, high, scale, price, out)
        if total > room:
            below = price
        else:
            above = price
            if total > room * (1.0 - PRICE_TOL):
                break
    shrink(y, own, low, high, scale, above, out)
    return above


@njit(cache=True)
def shrink_all(
    y: Floats,
    groups: Ints,
    low: Floats,
    high: Floats,
    scale: Floats,
    price: float,
    out: Floats,
) -> float:
    """:func:`shrink` of all open items; a needed column pays only for what is beyond one place.

    ``groups`` has a number from 0 on for items of needed columns, -1 for other open items, and -2.
    """
    total = shrink(y, np.flatnonzero(groups == -1), low, high, scale, price, out)
    for g in range(groups.max() + 1):
        own = np.flatnonzero(groups == g)
        if priced(y, own, low, high, scale, 1.0, price, out) == price:
            total += max(shrink(y, own, low, high, scale, price, out) - 1.0, 0.0)
    return total


@njit(cache=True)
def project(
    y: Floats, groups: Ints, low: Floats, high: Floats, scale: Floats, room: int, out: Floats
) -> None:
    """The nearest point of the relaxed cards of a node.

    In the box, sums s of |w| / limit over open items: those of a needed column take one place at
    least, so max(1, s) added over these columns and s of all others is at most ``room``.
    """
    for j in range(len(y)):
        out[j] = min(max(y[j], low[j]), high[j])
    n_needed = groups.max() + 1
    left = float(max(room - n_needed, 0))
    if not n_needed:
        priced(y, np.flatnonzero(groups == -1), low, high, scale, left, np.inf, out)
        return
    if shrink_all(y, groups, low, high, scale, 0.0, out) <= left:
        return
    below, above = 0.0, 1.0
    while shrink_all(y, groups, low, high, scale, above, out) > left:
        below, above = above, 4.0 * above
    while above - below > PRICE_TOL * above:
        price = 0.5 * (below + above)
        if shrink_all(y, groups, low, high, scale, price, out) > left:
            below = price
        else:
            above = price
    shrink_all(y, groups, low, high, scale, above, out)


@njit(cache=True)
def groups_of(state: Signs, column: Ints, needed: Mask) -> Ints:
    """Open items as :func:`project` wants them."""
    number, found = np.full(len(needed), -1), 0
    groups = np.full(len(state), -2)
    for j in range(len(state)):
        if state[j] == 0:
            c = column[j]
            if needed[c] and number[c] < 0:
                number[c] = found
                found += 1
            groups[j] = number[c]
    return groups


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
    needed: Mask,
    w: Floats,
    b: float,
    cutoff: float,
    tol: float,
    n_iter: int,
    offset: float,
    price: float,
) -> tuple[float, float, Floats, float, Floats]:
    """A lower bound on every card of a node, its relaxed minimiser, and the worths at the end.

    min of the loss of ``w X + b`` over low <= w <= high with the open items' |w| / limit adding up
    to at most ``room``, an item or more of it in every column of ``needed``: spectral projected
    gradient in the metric ``scale``. The bound is the tangent at an iterate minimised over the
    cards of the node, the best one of all iterates; every item adds ``price`` to it.
    """
    p, n = X.shape
    slope, bend = np.empty(n), np.empty(n)
    picks, groups = np.zeros(len(caps)), groups_of(state, column, needed)
    trial = np.empty(p)
    project(w.copy(), groups, low, high, scale, room, trial)
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
        at, ins = 0.0, price * (state == 1).sum()
        for j in range(p):
            at += grad[j] * w[j]
            worth[j] = 0.0
            if state[j] == 1:
                ins += min(grad[j] * low[j], grad[j] * high[j])
            elif state[j] == 0:
                worth[j] = max(worth_of(grad[j], low[j], high[j]) - price, 0.0)
        total = largest_worths(worth, state, room, column, caps, needed, picks)[0]
        found = value - at + ins - total - abs(slope.sum()) * offset
        if found > bound:
            bound = found
            best_worth[:] = worth
        if bound >= cutoff or value + price * (state == 1).sum() - bound < tol:
            break
        project(w - pace * scale * grad, groups, low, high, scale, room, trial)
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
