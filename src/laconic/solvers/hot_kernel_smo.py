"""Compiled loop of sequential minimal optimisation: two multipliers at a time.

Rows are described by arrays: ``family`` 0 is the truncated logistic loss (target y, weight s,
height a of the kink, its position t), 1 a loss whose score is t - k beta, 2 the exponential loss.
``response`` is the score at which a row's slope is -beta, and how fast it falls with beta.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Single = NDArray[np.float32]

CONVERGED, NEEDS_ROW, SHRINK, EXHAUSTED = 0, 1, 2, 3


@njit(cache=True, inline="always")
def response(
    family: int, y: float, s: float, a: float, t: float, k: float, beta: float
) -> tuple[float, float]:
    if family == 1:
        return t - k * beta, k
    al = y * beta / s
    if family == 2:
        al = max(al, 1e-300)
        return -y * math.log(al), 1.0 / (s * al)
    if al <= a and a > 0.0:
        return t, 0.0
    al = min(max(al, 1e-300), 1.0 - 1e-16)
    return y * (math.log1p(-al) - math.log(al)), 1.0 / (s * al * (1.0 - al))


@njit(cache=True)
def responses(
    family: int, y: Array, s: Array, a: Array, t: Array, k: Array, beta: Array,
    h: Array, fall: Array,
) -> None:  # fmt: skip
    """Fill scores and their falls for every row."""
    for i in range(beta.shape[0]):
        h[i], fall[i] = response(family, y[i], s[i], a[i], t[i], k[i], beta[i])


@njit(cache=True)
def pair_step(
    family: int, y: Array, s: Array, a: Array, t: Array, k: Array, beta: Array, f: Array,
    i: int, j: int, eta: float, start: float, most: float,
) -> float:  # fmt: skip
    """The d > 0 that minimises the dual along beta_i + d, beta_j - d: a root of its slope."""
    low, high = 0.0, most
    d = min(start, most)
    base = f[i] - f[j]
    small = 0.0
    for turn in range(80):
        hi, ri = response(family, y[i], s[i], a[i], t[i], k[i], beta[i] + d)
        hj, rj = response(family, y[j], s[j], a[j], t[j], k[j], beta[j] - d)
        slope = base + eta * d - hi + hj
        if turn == 0:
            small = 1e-9 * abs(slope) + 1e-14
        if abs(slope) <= small or (slope < 0.0 and d == most):
            return d
        if slope > 0.0:
            high = d
        else:
            low = d
        bend = eta + ri + rj
        new = d - slope / bend if bend > 0.0 else high
        if slope < 0.0 and new >= high:
            # beyond what is known: to the end, or further out
            new = 2.0 * d if math.isinf(high) else (high if high == most else 0.5 * (low + high))
        elif new <= low or new >= high or (slope > 0.0 and d - new < 1e-3 * (high - low)):
            new = 0.5 * (low + high)
        if high - low <= 1e-15 * high:
            return low
        d = new
    return low


@njit(cache=True)
def smo(
    family: int, y: Array, s: Array, a: Array, t: Array, k: Array, low: Array, high: Array,
    beta: Array, f: Array, h: Array, fall: Array, diagonal: Array,
    cache: Single, slot: Index, owner: Index, stamp: Index, clock: Index,
    tol: float, most: int, every: int, want: Index,
) -> tuple[int, int, float]:  # fmt: skip
    """Steps until the largest violation is below ``tol``.

    Returns why it stopped (a row must be fetched, it is time to shrink, ...), the number of steps
    and the violation. ``want`` receives rows that are wanted in the cache.
    """
    n = beta.shape[0]
    steps = 0
    gap = np.inf
    while steps < most:
        # the row that gains most by growing, and the one that gains most by shrinking
        best, worst = np.inf, -np.inf
        i = j = -1
        for p in range(n):
            e = f[p] - h[p]
            if beta[p] < high[p] and e < best:
                best = e
                i = p
            if beta[p] > low[p] and e > worst:
                worst = e
        gap = worst - best
        if i < 0 or gap <= tol:
            return CONVERGED, steps, max(gap, 0.0)
        if steps > 0 and steps % every == 0:
            return SHRINK, steps, gap
        if slot[i] < 0:
            want[0] = i
            return NEEDS_ROW, steps, gap
        row = cache[slot[i]]
        stamp[slot[i]] = clock[0]
        gain = -1.0
        for p in range(n):
            e = f[p] - h[p] - best
            if e > 0.0 and beta[p] > low[p]:
                bend = diagonal[i] + diagonal[p] - 2.0 * row[p] + fall[i] + fall[p]
                value = e * e / max(bend, 1e-12)
                if value > gain:
                    gain = value
                    j = p
        if slot[j] < 0:
            want[0] = j
            return NEEDS_ROW, steps, gap
        other = cache[slot[j]]
        stamp[slot[j]] = clock[0]
        clock[0] += 1
        eta = max(diagonal[i] + diagonal[j] - 2.0 * row[j], 0.0)
        ahead = f[j] - h[j] - best
        bend = max(eta + fall[i] + fall[j], 1e-12)
        room = min(high[i] - beta[i], beta[j] - low[j])
        d = pair_step(family, y, s, a, t, k, beta, f, i, j, eta, ahead / bend, room)
        beta[i] += d
        beta[j] -= d
        if d >= room:
            # exactly at the bound, whichever it is
            if high[i] - beta[i] <= 1e-15 * abs(high[i]):
                beta[i] = high[i]
            if abs(beta[j] - low[j]) <= 1e-15 * max(abs(low[j]), s[j]):
                beta[j] = low[j]
        for p in range(n):
            f[p] += d * (row[p] - other[p])
        h[i], fall[i] = response(family, y[i], s[i], a[i], t[i], k[i], beta[i])
        h[j], fall[j] = response(family, y[j], s[j], a[j], t[j], k[j], beta[j])
        steps += 1
    return EXHAUSTED, steps, gap
