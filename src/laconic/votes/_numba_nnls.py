"""Compiled active set for bounded least squares given by its moments.

Minimises ½ w'Gw - c'w + penalty·Σ|w_j| over lower <= w <= upper. The free variables are kept in
``order[:k]`` with the upper triangular factor R'R = G[order, order], updated when a variable
enters (one triangular solve) or leaves (Givens rotations), never refactored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from laconic._jit import njit
from laconic._typing import Floats
from laconic.votes.nnls import FULL, OPTIMAL, OUT_OF_SWEEPS, STALLED, TIE, UNBOUNDED

PIVOT = 1e-12
"""A column whose squared distance to the span of the free ones is below PIVOT·G_jj is dependent.
Without a penalty its pull is zero up to rounding, so refusing it loses nothing; with one it takes
the place of a free variable (see ``_exchange``)."""

BLOCK = 0.2
"""Variables pulled this share as hard as the hardest enter together, at most one for four free
ones: it saves pricing passes (867 to 30 on 2,000 voters)."""

MOST_REPAIRS = 5
"""Times that a worn factor is made anew before the best point so far is returned."""

REFRESH = 32
"""Sweeps between two slopes that are computed anew; between them only what moved is subtracted."""


class Work(NamedTuple):
    """Weights, their sides, and the factor of those that are free; changed in place."""

    R: Floats
    u: Floats
    order: NDArray[np.int64]
    w: Floats
    side: NDArray[np.int8]
    free: NDArray[np.bool_]


class Box(NamedTuple):
    """What holds the weights back."""

    penalty: float
    lower: Floats
    upper: Floats


@njit(cache=True)
def _subtract(target: Floats, x: float, row: Floats) -> None:
    """target -= x·row; slices, here and below, let the compiler use vector instructions."""
    for j in range(target.shape[0]):
        target[j] -= x * row[j]


@njit(cache=True)
def _forward(R: Floats, k: int, b: Floats) -> None:
    """Solve R'x = b in place."""
    for i in range(k):
        if b[i] != 0.0:
            x = b[i] / R[i, i]
            b[i] = x
            _subtract(b[i + 1 : k], x, R[i, i + 1 : k])


@njit(cache=True)
def _backward(R: Floats, k: int, u: Floats, x: Floats) -> None:
    """Solve Rx = u."""
    for i in range(k - 1, -1, -1):
        x[i] = (u[i] - np.dot(R[i, i + 1 : k], x[i + 1 : k])) / R[i, i]


@njit(cache=True)
def _remove(R: Floats, u: Floats, order: NDArray[np.int64], k: int, p: int) -> None:
    """Drop the p-th free variable: shift columns, then rotate R (and u) back to a triangle."""
    for i in range(k):
        row = R[i, max(p, i - 1) : k]
        for j in range(row.shape[0] - 1):
            row[j] = row[j + 1]
    for i in range(p, k - 1):
        order[i] = order[i + 1]
        a, b = R[i, i], R[i + 1, i]
        # Givens rotation; hypot neither overflows nor underflows where a² + b² would
        h = np.hypot(a, b)
        c, s = a / h, b / h
        above, below = R[i, i : k - 1], R[i + 1, i : k - 1]
        for j in range(above.shape[0]):
            top, low = above[j], below[j]
            above[j] = c * top + s * low
            below[j] = c * low - s * top
        top, low = u[i], u[i + 1]
        u[i] = c * top + s * low
        u[i + 1] = c * low - s * top


@njit(cache=True)
def _append(
    G: Floats, R: Floats, u: Floats, order: NDArray[np.int64], k: int, j: int, e: float, force: bool
) -> int:
    """Try to free variable j of effective slope e: 1 entered, 0 no longer useful, -1 dependent."""
    r = np.empty(k)
    for i in range(k):
        r[i] = G[j, order[i]]
    _forward(R, k, r)
    # Schur complement: the squared distance of column j to the span of the free ones
    pivot = G[j, j] - np.dot(r, r)
    if pivot <= PIVOT * G[j, j]:
        return -1
    # slope of j once the variables freed before it have moved
    left = e - np.dot(r, u[:k])
    if not force and left * e <= 0.0:
        return 0
    root = np.sqrt(pivot)
    for i in range(k):
        R[i, k] = r[i]
    R[k, k] = root
    u[k] = left / root
    order[k] = j
    return 1


@njit(cache=True)
def _room(lower: float, upper: float, penalty: float, side: int) -> tuple[float, float]:
    """Bounds of a variable that, under a penalty, must stay on its side of zero."""
    if penalty != 0.0 and side > 0:
        lower = max(lower, 0.0)
    if penalty != 0.0 and side < 0:
        upper = min(upper, 0.0)
    return lower, upper


@njit(cache=True)
def _release(
    j: int, bound: float, w: Floats, side: NDArray[np.int8], free: NDArray[np.bool_]
) -> None:
    """Leave variable j on a bound."""
    w[j] = bound
    free[j] = False
    if bound == 0.0:
        side[j] = 0


@njit(cache=True)
def _settle(work: Work, box: Box, k: int) -> tuple[int, int, float]:
    """Move to the best point of the free set, releasing what meets a bound on the way.

    Only variables that stand on a bound *and* would go on leaving are released: releasing every
    variable at zero would throw away those that have just been freed, for ever.
    """
    R, u, order, w, side, free = work
    penalty, lower, upper = box
    d = np.empty(max(k, 1))
    released, decrease = 0, 0.0
    while k > 0:
        _backward(R, k, u, d)
        step = 1.0
        for p in range(k):
            j = order[p]
            goal = w[j] + d[p]
            low, high = _room(lower[j], upper[j], penalty, side[j])
            # rounding may have put a weight past its bound that has no more way to go
            if goal < low and d[p] < 0.0:
                step = min(step, (low - w[j]) / d[p])
            elif goal > high and d[p] > 0.0:
                step = min(step, (high - w[j]) / d[p])
        # a weight that rounding has put past its bound would ask for a step back
        step = max(step, 0.0)
        # of the quadratic along a part of its Newton step, whose whole length gains |u|² / 2
        decrease += (step - 0.5 * step * step) * np.dot(u[:k], u[:k])
        if step >= 1.0:
            for p in range(k):
                w[order[p]] += d[p]
            break
        for p in range(k):
            u[p] *= 1.0 - step
        for p in range(k - 1, -1, -1):
            j = order[p]
            low, high = _room(lower[j], upper[j], penalty, side[j])
            goal = w[j] + d[p]
            bound = low if d[p] < 0.0 else high
            leaves = (goal < low and d[p] < 0.0) or (goal > high and d[p] > 0.0)
            if leaves and (bound - w[j]) / d[p] <= step * (1.0 + 1e-12):
                _release(j, bound, w, side, free)
                _remove(R, u, order, k, p)
                k -= 1
                released += 1
            else:
                w[j] += step * d[p]
    return k, released, decrease


@njit(cache=True)
def _exchange(G: Floats, work: Work, box: Box, k: int, j: int, sign: float) -> int:
    """Push a dependent column j in and what it depends on out, leaving every vote unchanged.

    Along that direction only the penalty changes, so it is followed until a free variable meets a
    bound; that one is released. Returns the new k, or -1 when no bound is met.
    """
    R, u, order, w, side, free = work
    penalty, lower, upper = box
    r = np.empty(k)
    for i in range(k):
        r[i] = G[j, order[i]]
    _forward(R, k, r)
    x = np.empty(k)
    _backward(R, k, r, x)
    step, place = np.inf, -1
    for p in range(k):
        i = order[p]
        d = -sign * x[p]
        if abs(d) <= 1e-9:
            continue
        low, high = _room(lower[i], upper[i], penalty, side[i])
        room = (low - w[i]) / d if d < 0.0 else (high - w[i]) / d
        if room < step:
            step, place = max(room, 0.0), p
    if place < 0 or not np.isfinite(step):
        return -1
    for p in range(k):
        w[order[p]] -= step * sign * x[p]
    w[j] += step * sign
    i = order[place]
    low, high = _room(lower[i], upper[i], penalty, side[i])
    _release(i, low if sign * x[place] > 0.0 else high, w, side, free)
    _remove(R, u, order, k, place)
    return k - 1


@njit(cache=True)
def _pulls(g: Floats, work: Work, box: Box, n: int, pull: Floats) -> None:
    """Signed effective slope of every bound variable that may move, 0 for the others."""
    w, free = work.w, work.free
    penalty, lower, upper = box
    for j in range(n):
        pull[j] = 0.0
        if free[j]:
            continue
        up = g[j] - penalty if w[j] >= 0.0 else g[j] + penalty
        down = g[j] + penalty if w[j] <= 0.0 else g[j] - penalty
        if up > 0.0 and w[j] < upper[j]:
            pull[j] = up
        elif down < 0.0 and w[j] > lower[j]:
            pull[j] = down


@njit(cache=True)
def _steepest(pull: Floats, shut: NDArray[np.bool_], share: float) -> NDArray[np.int64]:
    """Variables that are pulled at least ``share``, the hardest first."""
    fit = np.flatnonzero(~shut & (np.abs(pull) >= share * (1.0 - TIE)))
    if fit.shape[0] == 0:
        return fit
    size = np.abs(pull[fit])
    # equal pulls differ by rounding, which knows the order of the rows: the first of them leads
    return fit[np.argsort(-np.floor(size / (TIE * np.max(size))), kind="mergesort")]


@njit(cache=True)
def refactor(G: Floats, R: Floats, order: NDArray[np.int64], k: int) -> int:
    """Factor G[order, order] again, dropping dependent variables; returns how many are kept."""
    picked = order[:k].copy()
    u = np.zeros(k + 1)
    kept = 0
    for j in picked:
        if _append(G, R, u, order, kept, j, 1.0, True) > 0:
            kept += 1
    return kept


class Slopes(NamedTuple):
    """g = linear - G at, kept up to date with the weights ``at`` that it belongs to."""

    linear: Floats
    g: Floats
    at: Floats


@njit(cache=True)
def _follow(G: Floats, slopes: Slopes, w: Floats, n: int, anew: bool) -> None:
    """Slopes at w: what has moved is subtracted, or everything anew."""
    linear, g, at = slopes
    if anew:
        g[:] = linear[:n]
        at[:] = 0.0
    for i in range(n):
        x = w[i] - at[i]
        if x != 0.0:
            at[i] = w[i]
            _subtract(g, x, G[i, :n])


@njit(cache=True)
def _cost(slopes: Slopes, w: Floats, penalty: float, n: int) -> tuple[float, float, float]:
    """w'(c + g), the objective, and the size of what is added up, for its rounding."""
    linear, g, _at = slopes
    value, cost, size = 0.0, 0.0, 0.0
    for i in range(n):
        value += w[i] * (linear[i] + g[i])
        cost += penalty * abs(w[i])
        size += abs(w[i]) * (abs(linear[i]) + abs(g[i]))
    return value, cost - 0.5 * value, size


@njit(cache=True)
def _mark_free(free: NDArray[np.bool_], order: NDArray[np.int64], k: int) -> None:
    free[:] = False
    for p in range(k):
        free[order[p]] = True


@njit(cache=True)
def _take_sides(work: Work, box: Box, k: int) -> None:
    """Sides of the free weights, which may have changed while there was no penalty."""
    w, side = work.w, work.side
    for p in range(k):
        j = work.order[p]
        if w[j] != 0.0:
            side[j] = 1 if w[j] > 0.0 else -1
        elif side[j] == 0:
            side[j] = 1 if box.upper[j] > 0.0 else -1


@njit(cache=True)
def _swap_in(G: Floats, work: Work, box: Box, k: int, j: int, pull: float) -> tuple[int, int]:
    """Exchange column j until it is independent: k, and 1, or -1 where nothing stops it."""
    sign = 1.0 if pull > 0.0 else -1.0
    work.side[j] = 1 if sign > 0.0 else -1
    while k > 0:
        left = _exchange(G, work, box, k, j, sign)
        if left < 0:
            break
        k = left
        if _append(G, work.R, work.u, work.order, k, j, pull, True) >= 0:
            return k, 1
    return k, -1


@njit(cache=True)
def _enter(
    G: Floats,
    work: Work,
    box: Box,
    k: int,
    most: int,
    wanted: NDArray[np.int64],
    pull: Floats,
    shut: NDArray[np.bool_],
    swaps: bool,
) -> tuple[int, int, int]:
    """Free the wanted variables in turn: k, the first that entered (or -1), and the exchanges.

    Exchanges of -1 mean that the objective has no least value along a dependent column.
    """
    first, swapped = -1, 0
    for j in wanted:
        if k >= most:
            break
        fate = _append(G, work.R, work.u, work.order, k, j, pull[j], first < 0)
        if fate < 0 and swaps and first < 0:
            before = k
            k, fate = _swap_in(G, work, box, k, j, pull[j])
            if fate < 0:
                return k, first, -1
            swapped += before - k
        if fate < 0:
            shut[j] = True
        elif fate > 0:
            if first < 0:
                first = j
            k += 1
            work.free[j] = True
            toward = work.w[j] if work.w[j] != 0.0 else pull[j]
            work.side[j] = 1 if toward > 0.0 else -1
    return k, first, swapped


@njit(cache=True)
def _largest(pull: Floats, shut: NDArray[np.bool_]) -> tuple[float, float]:
    """The hardest pull, and the hardest of variables that are not shut."""
    best, open_best = 0.0, 0.0
    for j in range(len(pull)):
        size = abs(pull[j])
        best = max(best, size)
        if not shut[j]:
            open_best = max(open_best, size)
    return best, open_best


@njit(cache=True)
def active_set(
    G: Floats,
    linear: Floats,
    penalty: float,
    lower: Floats,
    upper: Floats,
    w: Floats,
    side: NDArray[np.int8],
    R: Floats,
    order: NDArray[np.int64],
    k: int,
    n: int,
    tol: float,
    max_sweeps: int,
    max_free: int,
    one_at_a_time: bool,
) -> tuple[int, int, int]:
    """Solve from the state (w, side, R, order, k), in place; returns (k, status, sweeps)."""
    free, shut = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
    _mark_free(free, order, k)
    pull, u = np.empty(n), np.zeros(min(n, R.shape[0]) + 1)
    slopes = Slopes(linear, np.empty(n), np.zeros(n))
    g = slopes.g
    work, box = Work(R, u, order, w, side, free), Box(penalty, lower, upper)
    _take_sides(work, box, k)
    sweep, tries, repairs, stale = 0, 0, 0, REFRESH
    least, kept = np.inf, w[:n].copy()
    single, moved, status = one_at_a_time, False, OUT_OF_SWEEPS
    # without a penalty or a box nothing can be gained, or stopped, along a dependent column
    boxed = np.isfinite(upper[:n]).all() and np.isfinite(lower[:n]).all()
    swaps = bool(penalty != 0.0 or boxed)
    while sweep < max_sweeps:
        _follow(G, slopes, w, n, stale >= REFRESH)
        stale = 0 if stale >= REFRESH else stale + 1
        value, cost, size = _cost(slopes, w, penalty, n)
        if cost > least + 1e-12 * (abs(least) + size):
            # every step lowers the cost, unless the factor of nearly dependent columns is worn out
            w[:n] = kept[:n]
            repairs += 1
            if repairs > MOST_REPAIRS:
                status = STALLED
                break
            k = refactor(G, R, order, k)
            _mark_free(free, order, k)
            stale = REFRESH
            continue
        if cost < least:
            least = cost
            kept[:n] = w[:n]
        for p in range(k):
            u[p] = g[order[p]] - penalty * side[order[p]]
        slope = np.max(np.abs(u[:k])) if k > 0 else 0.0
        _forward(R, k, u)
        sweep += 1
        # a warm start, or rounding in a long chain of rotations: first settle what is free
        if slope > tol and tries < 5:
            k, released, _ = _settle(work, box, k)
            tries += 1
            stale = REFRESH
            continue
        tries = 0
        _pulls(g, work, box, n, pull)
        best, open_best = _largest(pull, shut)
        if stale > 0 and min(best, open_best) <= tol:
            stale = REFRESH  # decide on slopes without accumulated rounding
            continue
        if best <= tol or k >= max_free:
            status = OPTIMAL if best <= tol else FULL
            break
        if open_best <= tol:
            if not moved:
                status = STALLED
                break
            shut[:] = False  # a variable refused earlier gets a second chance
            moved = False
            continue
        # several at once until a block gains nothing; then one by one, which cannot cycle
        share = open_best if single else BLOCK * open_best
        wanted = _steepest(pull, shut, share)[: 1 if single else 1 + k // 4]
        most = min(max_free, R.shape[0])
        k, first, swapped = _enter(G, work, box, k, most, wanted, pull, shut, swaps)
        if swapped < 0:
            status = UNBOUNDED
            break
        if first < 0:
            continue
        k, released, decrease = _settle(work, box, k)
        single = one_at_a_time
        if decrease > 1e-15 * abs(value) or swapped > 0:
            moved = True
            if released > 0 or swapped > 0:
                shut[:] = False
        else:
            shut[first] = True
            single = True
    return k, status, sweep
