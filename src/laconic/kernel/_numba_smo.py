"""Compiled loop of sequential minimal optimisation: two multipliers at a time.

``response`` is the score at which a row's slope is -beta, and how fast it falls with beta.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from laconic._jit import njit
from laconic._typing import Floats, Ints
from laconic.kernel._numba import add_products, exponential_single

Single = NDArray[np.float32]

CONVERGED, NEEDS_ROW, EXHAUSTED = 0, 1, 2
BARRIER = 1e3
_CHUNK = 512
UP, DOWN, STIFF, GAIN, ENDS = 0, 1, 2, 3, 4
"""Rows of the loop's table: what may grow, what may fall, own curvatures, gains, two scalars."""


class Rows(NamedTuple):
    """Rows by arrays, and the box low <= beta <= high of their multipliers.

    ``family`` 0 is the truncated logistic loss (target y, weight s, height a of the kink, its
    position t), 1 a loss whose score is t - k beta, 2 the exponential loss.
    """

    family: int
    y: Floats
    s: Floats
    a: Floats
    t: Floats
    k: Floats
    low: Floats
    high: Floats


class Dual(NamedTuple):
    """Multipliers, their scores f, and the response h to each multiplier with its fall."""

    beta: Floats
    f: Floats
    h: Floats
    fall: Floats


class Cache(NamedTuple):
    """Kernel rows by slot: whose row a slot holds, which slot holds a row, when it was used last.

    ``clock`` counts steps and slots filled; row i is exp(left_i right) where there are factors.
    """

    table: NDArray[Any]
    slot: Ints
    owner: Ints
    stamp: Ints
    clock: Ints
    left: Single
    right: Single


class Workspace(NamedTuple):
    """Five rows to work in, in single or double precision, and the same memory as whole numbers.

    ``mask`` is the largest of these whole numbers.
    """

    table: NDArray[Any]
    words: NDArray[Any]
    mask: Any


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
    # the entropy's slope is infinite at both ends: stay a hair inside
    al = min(max(al, 1e-300), 1.0 - 1e-16)
    return y * (math.log1p(-al) - math.log(al)), 1.0 / (s * al * (1.0 - al))


@njit(cache=True, inline="always")
def response_of(rows: Rows, i: int, beta: float) -> tuple[float, float]:
    return response(rows.family, rows.y[i], rows.s[i], rows.a[i], rows.t[i], rows.k[i], beta)


@njit(cache=True)
def responses(rows: Rows, beta: Floats, h: Floats, fall: Floats) -> None:
    """Fill scores and their falls for every row."""
    for i in range(beta.shape[0]):
        h[i], fall[i] = response_of(rows, i, beta[i])


@njit(cache=True)
def pair_step(
    rows: Rows, dual: Dual, i: int, j: int, eta: float, start: float, most: float
) -> float:
    """The d > 0 that minimises the dual along beta_i + d, beta_j - d: a root of its slope."""
    beta_i, beta_j = dual.beta[i], dual.beta[j]
    low, high = 0.0, most
    d = min(start, most)
    base = dual.f[i] - dual.f[j]
    small = 0.0
    for turn in range(80):
        hi, ri = response_of(rows, i, beta_i + d)
        hj, rj = response_of(rows, j, beta_j - d)
        slope = base + eta * d - hi + hj
        if turn == 0:
            small = 1e-6 * abs(slope) + 1e-14
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
def partner(table: Any, words: Any, best: float, own: float, row: Single) -> int:
    """The row that gains most together with one whose f - h is ``best``.

    The largest of floating numbers is found one by one, of whole numbers several at a time; the
    bits of numbers that are not negative compare as the numbers do.
    """
    kind = table.dtype.type
    n = row.shape[0]
    base, stiff, zero, tiny = kind(best), kind(own), kind(0.0), kind(1e-12)
    top, where = words.dtype.type(-1), 0
    for start in range(0, n, _CHUNK):
        end = min(start + _CHUNK, n)
        down, others, k = table[DOWN, start:end], table[STIFF, start:end], row[start:end]
        gains, bits = table[GAIN, start:end], words[GAIN, start:end]
        for p in range(end - start):
            ahead = max(down[p] - base, zero)
            gains[p] = ahead * ahead / max(stiff + others[p] - (k[p] + k[p]), tiny)
        peak = bits[0]
        for p in range(end - start):
            peak = max(peak, bits[p])
        if peak > top:
            top, where = peak, start
    bits = words[GAIN]
    while where < n - 1 and bits[where] != top:
        where += 1
    return where


@njit(cache=True)
def advance(table: Any, words: Any, mask: Any, d: float, row: Single, other: Single) -> int:
    """f - h after a step; returns the least of those that may grow, or -1.

    It and the largest of those that may fall are left in ``table[ENDS, :2]``. Bits of negative
    numbers fall as the numbers rise: all but the sign is turned round, by ``mask``.
    """
    turned = words.dtype.type
    n = row.shape[0]
    length = table.dtype.type(d)
    least, where = turned(mask), -1
    largest = turned(-mask)
    for start in range(0, n, _CHUNK):
        end = min(start + _CHUNK, n)
        up, down = table[UP, start:end], table[DOWN, start:end]
        left, right = row[start:end], other[start:end]
        # no step, no look at rows that need not be there yet
        for p in range(end - start if d > 0.0 else 0):
            change = length * (left[p] - right[p])
            up[p] += change
            down[p] += change
        bits = words[UP, start:end]
        peak = least
        for p in range(end - start):
            word = bits[p]
            peak = min(peak, turned(word ^ mask) if word < 0 else word)
        if peak < least:
            least, where = peak, start
        bits = words[DOWN, start:end]
        for p in range(end - start):
            word = bits[p]
            largest = max(largest, turned(word ^ mask) if word < 0 else word)
    words[ENDS, 0] = least ^ mask if least < 0 else least
    words[ENDS, 1] = largest ^ mask if largest < 0 else largest
    if where >= 0:
        bits, least = words[UP], words[ENDS, 0]
        while where < n - 1 and bits[where] != least:
            where += 1
    return where


@njit(cache=True)
def cut(table: Single, rows: Ints, columns: Ints, out: Single) -> None:
    """Copy some rows, and of these some columns, to the top of ``out``."""
    for p in range(rows.shape[0]):
        given, taken = table[rows[p]], out[p]
        for q in range(columns.shape[0]):
            taken[q] = given[columns[q]]


@njit(cache=True)
def bring(i: int, cache: Cache) -> None:
    """Put the gaussian kernel's row i in the cache, in the place of the one used longest ago."""
    place = cache.clock[1]
    if place < cache.table.shape[0]:
        cache.clock[1] += 1
    else:
        place = int(np.argmin(cache.stamp))
    if cache.owner[place] >= 0:
        cache.slot[cache.owner[place]] = -1
    out = cache.table[place]
    add_products(cache.left[i], cache.right, 0, out.shape[0], out)
    exponential_single(out)
    cache.slot[i] = place
    cache.owner[place] = i
    cache.stamp[place] = cache.clock[0]


@njit(cache=True, inline="always")
def lacks(i: int, cache: Cache, want: Ints) -> bool:
    """Whether row i is not in the cache and cannot be computed here; then it is wanted."""
    if cache.slot[i] < 0:
        if cache.left.shape[1] == 0:
            want[0] = i
            return True
        bring(i, cache)
    cache.stamp[cache.slot[i]] = cache.clock[0]
    return False


@njit(cache=True, inline="always")
def spread(rows: Rows, dual: Dual, diagonal: Floats, p: int, table: NDArray[Any]) -> None:
    """f - h of a row, infinite where its multiplier cannot move, and its curvature: workspace.

    Conditions would break the stride of the loops over the workspace.
    """
    e = dual.f[p] - dual.h[p]
    table[UP, p] = e if dual.beta[p] < rows.high[p] else np.inf
    table[DOWN, p] = e if dual.beta[p] > rows.low[p] else -np.inf
    # the barrier at the end of a multiplier's range is left at the first step: without a cap
    # a row that came too near it would never be chosen again
    table[STIFF, p] = diagonal[p] + min(dual.fall[p], BARRIER / rows.s[p])


@njit(cache=True)
def smo(
    rows: Rows, dual: Dual, diagonal: Floats, cache: Cache, workspace: Workspace, tol: float,
    most: int, want: Ints,
) -> tuple[int, int, float, float]:  # fmt: skip
    """Pair steps until the largest violation is below ``tol`` or ``most`` steps are made.

    Returns why it stopped (converged, a row must be fetched, steps exhausted), the number of
    steps, and the least and the largest of f - h among rows that can grow and that can fall.
    ``want`` receives the row that is wanted in the cache, where there are no factors. ``dual`` is
    brought up to date on return.
    """
    beta, f, h, fall = dual.beta, dual.f, dual.h, dual.fall
    low, high, slot = rows.low, rows.high, cache.slot
    table, words, mask = workspace.table, workspace.words, workspace.mask
    up, down, stiff = table[UP], table[DOWN], table[STIFF]
    for p in range(beta.shape[0]):
        spread(rows, dual, diagonal, p, table)
    i = advance(table, words, mask, 0.0, cache.table[0], cache.table[0])
    best, worst = float(table[ENDS, 0]), float(table[ENDS, 1])
    steps = 0
    why = EXHAUSTED
    while steps < most:
        if i < 0 or worst - best <= tol:
            why = CONVERGED
            break
        if lacks(i, cache, want):
            why = NEEDS_ROW
            break
        row = cache.table[slot[i]]
        j = partner(table, words, best, stiff[i], row)
        if lacks(j, cache, want):
            why = NEEDS_ROW
            break
        other = cache.table[slot[j]]
        cache.clock[0] += 1
        # |phi_i - phi_j|², zero for equal rows; single precision may say a little less
        eta = max(diagonal[i] + diagonal[j] - 2.0 * row[j], 0.0)
        bend = max(eta + fall[i] + fall[j], 1e-12)
        room = min(high[i] - beta[i], beta[j] - low[j])
        f[i], f[j] = up[i] + h[i], down[j] + h[j]
        d = pair_step(rows, dual, i, j, eta, (down[j] - best) / bend, room)
        beta[i] += d
        beta[j] -= d
        if d >= room:
            # exactly at the bound, whichever it is
            if high[i] - beta[i] <= 1e-15 * abs(high[i]):
                beta[i] = high[i]
            if abs(beta[j] - low[j]) <= 1e-15 * max(abs(low[j]), rows.s[j]):
                beta[j] = low[j]
        h[i], fall[i] = response_of(rows, i, beta[i])
        h[j], fall[j] = response_of(rows, j, beta[j])
        spread(rows, dual, diagonal, i, table)
        spread(rows, dual, diagonal, j, table)
        i = advance(table, words, mask, d, row, other)
        best, worst = float(table[ENDS, 0]), float(table[ENDS, 1])
        steps += 1
    for p in range(beta.shape[0]):
        f[p] = (up[p] if beta[p] < high[p] else down[p]) + h[p]
    return why, steps, best, worst
