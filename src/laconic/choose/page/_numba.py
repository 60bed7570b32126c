"""Entries leave a page one at a time, at what they cost once all others have taken over.

``value`` holds the entries, ``inverse`` the inverse of the curvature of their squares in units of
``unit``, for those that were left when it was last packed: ``row`` says where an entry is in it,
``name`` which entry a row is. A part is a row of ``parts``: its kind, where its entries begin in
``order`` and how many are left, what it counts for as a whole, the part that it must not leave
before (or -1), and the block of rows that share a score. ``joined`` says with which entry one
became equal, -1 for zero.
"""

from __future__ import annotations

import numpy as np

from laconic._jit import njit
from laconic._typing import Floats, Ints, Mask
from laconic.choose.page.elimination import (
    APART,
    BEGIN,
    BESIDE,
    COUNT,
    HIGH,
    KIND,
    LEVELS,
    LOW,
    PRICE,
    SHAPE,
    WHOLE,
)

_IMPLIED = 1e-12
"""A condition whose variance is below that share of what its entries have alone holds already."""


@njit(cache=True, nogil=True)
def _cost(
    value: Floats, inverse: Floats, unit: Floats, row: Ints, at: Ints, by: Floats
) -> float:  # fmt: skip
    """Squares that are added where the sum of ``by`` times the entries ``at`` becomes zero."""
    off, alone, free = 0.0, 0.0, 0.0
    for a in range(3):
        i = at[a]
        c = by[a] * unit[i]
        off += by[a] * value[i]
        own = c * c * inverse[row[i], row[i]]
        alone += own
        free += own
        for b in range(a):
            free += 2.0 * c * by[b] * unit[at[b]] * inverse[row[i], row[at[b]]]
    if not free > _IMPLIED * alone:
        return 0.0
    cost = off * off / free
    return cost if cost >= 0.0 else 0.0


@njit(cache=True, nogil=True)
def _cost_of_both(
    value: Floats, inverse: Floats, unit: Floats, row: Ints, i: int, j: int
) -> float:  # fmt: skip
    """The same where two entries become zero: they become equal, and then what they are is zero."""
    a = unit[i] * unit[i] * inverse[row[i], row[i]]
    b = unit[i] * unit[j] * inverse[row[i], row[j]]
    d = unit[j] * unit[j] * inverse[row[j], row[j]]
    off, free = value[i] - value[j], a + d - 2.0 * b
    if not free > _IMPLIED * (a + d):
        return value[i] * value[i] / a if a > 0.0 else 0.0
    left = value[i] - (a - b) / free * off
    alone = a - (a - b) / free * (a - b)
    cost = off * off / free
    if alone > _IMPLIED * a:
        cost += left * left / alone
    return cost if cost >= 0.0 else 0.0


@njit(cache=True, nogil=True)
def _condition(kind: int, i: int, n: int, own: Ints, knot: Floats, at: Ints, by: Floats) -> None:
    """The condition under which entry i of a part leaves."""
    at[0], at[1], at[2] = own[i], own[i], own[i]
    by[0], by[1], by[2] = 1.0, 0.0, 0.0
    if kind == SHAPE and n > 2:
        a, j, b = own[i - 1], own[i], own[i + 1]
        wide = knot[b] / 2.0 - knot[a] / 2.0
        share = (knot[j] / 2.0 - knot[a] / 2.0) / wide if wide > 0.0 else 0.5
        at[1], at[2] = a, b
        by[1], by[2] = share - 1.0, -share
    elif kind != WHOLE and i + 1 < n:
        at[1] = own[i + 1]
        by[1] = -1.0


@njit(cache=True, nogil=True)
def _sorted(own: Ints, value: Floats) -> None:
    """Levels in the order of their values: they hardly move from one step to the next."""
    for i in range(1, len(own)):
        e = own[i]
        j = i
        while j > 0 and value[own[j - 1]] > value[e]:
            own[j] = own[j - 1]
            j -= 1
        own[j] = e


@njit(cache=True, nogil=True)
def _cheapest(
    value: Floats, inverse: Floats, unit: Floats, row: Ints, knot: Floats, parts: Ints,
    order: Ints, at: Ints, by: Floats,
) -> tuple[int, int, int]:  # fmt: skip
    """The part and the place of the entry that leaves at the least cost, and how many it spares.

    The place after the last one of the levels beside a shape stands for the first that becomes
    zero.
    """
    best, part, place, spared = np.inf, -1, -1, 0
    for p in range(len(parts)):
        kind, n = parts[p, KIND], parts[p, COUNT]
        beside = parts[p, BESIDE]
        if n == 0 or (kind == SHAPE and n == 2 and beside >= 0 and parts[beside, COUNT] > 0):
            continue
        own = order[parts[p, BEGIN] : parts[p, BEGIN] + n]
        first, last, spares = 0, n - 1, 1
        if kind in (LEVELS, APART):
            _sorted(own, value)
        if kind == APART:
            last = 2 * n - 1  # pairs of neighbours, then each alone
        elif kind == WHOLE or n == 1:
            last, spares = 1, parts[p, PRICE]
        elif n == 2:
            spares = 2
        elif kind == SHAPE:
            first = 1
        for i in range(first, last):
            if spares == 2 and n == 2:
                cost = _cost_of_both(value, inverse, unit, row, own[0], own[1])
            else:
                zero = kind == APART and i >= n - 1
                _condition(WHOLE if zero else kind, i - n + 1 if zero else i, n, own, knot, at, by)
                cost = _cost(value, inverse, unit, row, at, by)
            if cost / spares < best:
                best, part, place, spared = cost / spares, p, i, spares
    return part, place, spared


@njit(cache=True, nogil=True)
def _impose(
    value: Floats, inverse: Floats, unit: Floats, row: Ints, name: Ints, low: int, high: int,
    at: Ints, by: Floats, stays: Mask, column: Floats,
) -> None:  # fmt: skip
    """The condition holds from now on: all entries take over, and the inverse loses a rank."""
    off, alone, free = 0.0, 0.0, 0.0
    column[low:high] = 0.0
    for a in range(3):
        c, i = by[a] * unit[at[a]], row[at[a]]
        off += by[a] * value[at[a]]
        alone += c * c * inverse[i, i]
        if c != 0.0:
            for j in range(low, high):
                column[j] += c * inverse[i, j]
    for a in range(3):
        free += by[a] * unit[at[a]] * column[row[at[a]]]
    if not free > _IMPLIED * alone:
        return
    for i in range(low, high):
        e = name[i]
        value[e] -= unit[e] * column[i] * (off / free)
        share = column[i] / free
        if stays[e]:
            for j in range(low, high):
                inverse[i, j] -= share * column[j]


@njit(cache=True, nogil=True)
def leave_one_by_one(
    value: Floats, inverse: Floats, unit: Floats, row: Ints, name: Ints, knot: Floats,
    parts: Ints, order: Ints, joined: Ints, stays: Mask, size: int, most: float,
) -> int:  # fmt: skip
    """Entries leave until at most so many are left; all but the numbers given last are changed."""
    at, by = np.empty(3, dtype=np.int64), np.empty(3)
    column = np.empty(len(value))
    while size > most:
        p, i, spared = _cheapest(value, inverse, unit, row, knot, parts, order, at, by)
        if p < 0:
            break
        kind, begin, n = parts[p, KIND], parts[p, BEGIN], parts[p, COUNT]
        own = order[begin : begin + n]
        zero = kind == APART and i >= n - 1
        gone = i - n + 1 if zero else i
        _condition(WHOLE if zero else kind, gone, n, own, knot, at, by)
        if zero:
            joined[own[gone]] = -1
        elif kind in (LEVELS, APART):
            gone = min(gone + 1, n - 1)
            joined[own[gone]] = own[gone - 1]
        stays[own[gone]] = False
        low, high = parts[p, LOW], parts[p, HIGH]
        _impose(value, inverse, unit, row, name, low, high, at, by, stays, column)
        if spared == 2 and n == 2:  # two equal entries, which are zero: the intercept takes over
            gone = 1 if gone == 0 else 0
            stays[own[gone]] = False
            _condition(WHOLE, gone, n, own, knot, at, by)
            _impose(value, inverse, unit, row, name, low, high, at, by, stays, column)
            parts[p, COUNT] = 0
        else:
            for j in range(gone, n - 1):
                own[j] = own[j + 1]
            parts[p, COUNT] = n - 1
        size -= spared
    return size


@njit(cache=True, nogil=True)
def leave_in_turn(chords: bool, at: Floats, height: Floats, sums: Floats) -> tuple[Ints, Floats]:
    """Inner places in the order in which they leave, and the squares that each adds then.

    ``chords``: knots at places ``at`` with these heights; ``sums`` are those of m, m t, m h, m t^2,
    m t h and m h^2 up to each, of mass m, place t and height h. Else borders between neighbouring
    levels; ``at`` and ``height`` are the mass and the mass times value up to each.
    """
    n = len(at)
    left, right = np.arange(-1, n - 1), np.arange(1, n + 1)
    now = np.full(n, np.inf)
    for j in range(1, n - 1):
        now[j] = _added(chords, at, height, sums, j - 1, j, j + 1)
    order, paid = np.empty(max(n - 2, 0), dtype=np.int64), np.empty(max(n - 2, 0))
    for k in range(n - 2):
        j = int(now.argmin())
        order[k], paid[k] = j, max(now[j], 0.0)
        now[j] = np.inf
        a, b = left[j], right[j]
        right[a], left[b] = b, a
        for i in (a, b):
            if 0 < i < n - 1:
                now[i] = _added(chords, at, height, sums, left[i], i, right[i])
    return order, paid


@njit(cache=True, nogil=True)
def _added(
    chords: bool, at: Floats, height: Floats, sums: Floats, a: int, j: int, b: int
) -> float:  # fmt: skip
    """Squares that are added where place j leaves between a and b; for levels that is Ward's."""
    if chords:
        whole = squares_off_chord(at, height, sums, a, b)
        first = squares_off_chord(at, height, sums, a, j)
        return float(whole - first - squares_off_chord(at, height, sums, j, b))
    one, two = at[j] - at[a], at[b] - at[j]
    apart = (height[j] - height[a]) / one - (height[b] - height[j]) / two
    return float(one * two / (one + two) * apart * apart)


@njit(cache=True, nogil=True)
def squares_off_chord(at: Floats, height: Floats, sums: Floats, a: int, b: int) -> float:
    """Weighted squares between the points from a to b and the chord from a to b."""
    if b - a < 2 or at[b] <= at[a]:
        return 0.0
    part = sums[b] - sums[a + 1]
    m, mt, mh, mtt, mth, mhh = part[0], part[1], part[2], part[3], part[4], part[5]
    t0, h0 = at[a], height[a]
    slope = (height[b] - h0) / (at[b] - t0)
    hh = mhh - 2.0 * h0 * mh + h0 * h0 * m
    th = mth - t0 * mh - h0 * mt + t0 * h0 * m
    tt = mtt - 2.0 * t0 * mt + t0 * t0 * m
    return float(max(hh - 2.0 * slope * th + slope * slope * tt, 0.0))
