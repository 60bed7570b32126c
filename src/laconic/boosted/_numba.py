"""Boosting on bytes: cuts of one column, crosses of two, each step a small part of Newton's.

Rows in the bag come first. ``odds`` are exp(score): a step multiplies them by one of two or four
numbers, and no logarithm is taken until rows outside the bag are judged.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from laconic._jit import njit
from laconic._typing import Floats, Ints

Bytes = NDArray[np.uint8]


@njit(cache=True, nogil=True)
def _slopes(y: Floats, weight: Floats, odds: Floats, n_in: int, g: Floats, h: Floats) -> None:
    """First and second derivatives of the loss of the rows in the bag."""
    for i in range(n_in):
        p = odds[i] / (1.0 + odds[i])
        g[i] = weight[i] * (p - y[i])
        h[i] = weight[i] * p * (1.0 - p)


@njit(cache=True, nogil=True)
def _cut(
    codes: Bytes, mass: Floats, g: Floats, h: Floats, n_in: int, ridge: float, least: float,
    hist: Floats, value: Floats, only: int,
) -> tuple[float, int]:  # fmt: skip
    """The best cut of a column: its gain and the first slot above it, 0 where there is none.

    Where ``only`` is not 0, that slot is the one to look at.
    """
    S = len(mass)
    for s in range(S):
        hist[s, 0] = 0.0
        hist[s, 1] = 0.0
    for i in range(n_in):
        s = codes[i]
        hist[s, 0] += g[i]
        hist[s, 1] += h[i]
    G, H, W = 0.0, 0.0, 0.0
    for s in range(S):
        G += hist[s, 0]
        H += hist[s, 1]
        W += mass[s]
    base = G * G / (H + ridge)
    best, at, a, b, n = 0.0, 0, 0.0, 0.0, 0.0
    for s in range(S - 1):
        a += hist[s, 0]
        b += hist[s, 1]
        n += mass[s]
        if mass[s] == 0.0 or n < least or W - n < least or (only > 0 and s + 1 != only):
            continue
        low, high = a * a / (b + ridge), (G - a) * (G - a) / (H - b + ridge)
        if low + high - base > best:
            best, at = low + high - base, s + 1
            value[0] = value[1] = -a / (b + ridge)
            value[2] = value[3] = -(G - a) / (H - b + ridge)
    return best, at


@njit(cache=True, nogil=True)
def _sums_below(first: Bytes, second: Bytes, x: Floats, n_in: int, total: Floats) -> None:
    """total[a, b]: sum of x over the rows with slots below a and b."""
    total[:] = 0.0
    for i in range(n_in):
        total[first[i] + 1, second[i] + 1] += x[i]
    for a in range(1, total.shape[0]):
        row = 0.0
        for b in range(1, total.shape[1]):
            row += total[a, b]
            total[a, b] = row + total[a - 1, b]


@njit(cache=True, nogil=True)
def _cross(
    mass: Floats, G: Floats, H: Floats, ridge: float, least: float, value: Floats,
    only: tuple[int, int],
) -> tuple[float, int, int]:  # fmt: skip
    """The best cross of two columns: its gain, and the first slots above the two cuts.

    Where ``only`` is not (0, 0), these two slots are the ones to look at.
    """
    A, B = mass.shape[0] - 1, mass.shape[1] - 1
    base = G[A, B] * G[A, B] / (H[A, B] + ridge)
    best, at, beside = 0.0, 0, 0
    for a in range(only[0] if only[0] else 1, only[0] + 1 if only[0] else A):
        for b in range(only[1] if only[1] else 1, only[1] + 1 if only[1] else B):
            w = mass[a, b]
            if w < least or mass[a, B] - w < least or mass[A, b] - w < least:
                continue
            if mass[A, B] - mass[a, B] - mass[A, b] + w < least:
                continue
            x, y = G[a, b], H[a, b] + ridge
            x1, y1 = G[a, B] - x, H[a, B] - H[a, b] + ridge
            x2, y2 = G[A, b] - x, H[A, b] - H[a, b] + ridge
            x3 = G[A, B] - G[a, B] - x2
            y3 = H[A, B] - H[a, B] - H[A, b] + H[a, b] + ridge
            gain = x * x / y + x1 * x1 / y1 + x2 * x2 / y2 + x3 * x3 / y3 - base
            if gain > best:
                best, at, beside = gain, a, b
                value[0], value[1], value[2], value[3] = -x / y, -x1 / y1, -x2 / y2, -x3 / y3
    return best, at, beside


@njit(cache=True, nogil=True)
def pair_gains(
    codes: Bytes, sizes: Ints, y: Floats, weight: Floats, n_in: int, odds: Floats, first: Ints,
    second: Ints, ridge: float, least: float,
) -> Floats:  # fmt: skip
    """What the best cross of each pair gains at these odds."""
    g, h, value = np.empty(n_in), np.empty(n_in), np.empty(4)
    _slopes(y, weight, odds, n_in, g, h)
    gains = np.zeros(len(first))
    for t in range(len(first)):
        a, b = first[t], second[t]
        sums = np.empty((3, sizes[a] + 1, sizes[b] + 1))
        _sums_below(codes[a], codes[b], weight, n_in, sums[0])
        _sums_below(codes[a], codes[b], g, n_in, sums[1])
        _sums_below(codes[a], codes[b], h, n_in, sums[2])
        gains[t], _, _ = _cross(sums[0], sums[1], sums[2], ridge, least, value, (0, 0))
    return gains


@njit(cache=True, nogil=True)
def _judged(y: Floats, weight: Floats, odds: Floats, n_in: int) -> float:
    """Mean log loss of the rows outside the bag."""
    loss, total = 0.0, 0.0
    for i in range(n_in, len(y)):
        loss += weight[i] * np.log1p(odds[i] if y[i] == 0.0 else 1.0 / max(odds[i], 1e-300))
        total += weight[i]
    return loss / max(total, 1e-300)


@njit(cache=True, nogil=True)
def _moved(
    codes: Bytes, second: Bytes, pair: bool, at: int, beside: int, factor: Floats, odds: Floats
) -> None:
    """Multiply the odds of every row by the factor of its part."""
    if not pair:
        low, high = factor[0], factor[2]
        for i in range(len(odds)):
            odds[i] *= low if codes[i] < at else high
        return
    for i in range(len(odds)):
        upper = (0 if codes[i] < at else 2) + (0 if second[i] < beside else 1)
        odds[i] *= factor[upper]


@njit(cache=True, nogil=True)
def _slot_mass(codes: Bytes, weight: Floats, n_in: int, size: int) -> Floats:
    mass = np.zeros(size)
    for i in range(n_in):
        mass[codes[i]] += weight[i]
    return mass


@njit(cache=True, nogil=True)
def _drawn_slot(state: np.uint64, size: int) -> tuple[np.uint64, int]:
    """The next state of a congruential generator (Knuth's MMIX), and a slot above the first."""
    state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
    if size < 2:
        return state, 1
    return state, 1 + int((state >> np.uint64(33)) % np.uint64(size - 1))


@njit(cache=True, nogil=True)
def boost(
    codes: Bytes, sizes: Ints, first: Ints, second: Ints, y: Floats, weight: Floats, n_in: int,
    odds: Floats, rate: float, ridge: float, least: float, greedy: int, most: int, patience: int,
    enough: float, drawn: int, seed: int,
) -> tuple[Ints, Floats]:  # fmt: skip
    """Steps of the terms up to the pass that rows outside the bag like best; odds are changed.

    A term is a column, or two (``second`` is not -1). The first ``drawn`` passes step through the
    terms in turn, each at a slot that is drawn. Of the others one in ``greedy + 1`` steps through
    them in turn at the best slots, the rest take as many steps, each of the term that gained most
    when it was last looked at. It ends early where their loss is below ``enough``. Returns
    (steps, 3): term and slots of the cut or cross, and (steps, 4) values.
    """
    T, widest = len(first), int(sizes.max())
    g, h, value, factor = np.empty(n_in), np.empty(n_in), np.empty(4), np.empty(4)
    hist, sums = np.empty((widest, 2)), np.empty((2, widest + 1, widest + 1))
    paired = second[0] >= 0
    mass = np.empty((T, widest + 1, widest + 1 if paired else 1))
    for t in range(T):
        a, b = first[t], second[t]
        if paired:
            _sums_below(codes[a], codes[b], weight, n_in, mass[t, : sizes[a] + 1, : sizes[b] + 1])
        else:
            mass[t, : sizes[a], 0] = _slot_mass(codes[a], weight, n_in, sizes[a])
    steps, values = np.empty((most * T, 3), np.int64), np.empty((most * T, 4))
    gains, count, kept, since = np.full(T, np.inf), 0, 0, 0
    best, best_odds = _judged(y, weight, odds, n_in), odds.copy()
    _slopes(y, weight, odds, n_in, g, h)
    state = np.uint64(seed)
    for r in range(most):
        in_turn = r < drawn or (r - drawn) % (greedy + 1) == 0
        for k in range(T):
            t = k if in_turn else int(np.argmax(gains))
            a, b = first[t], second[t]
            A, B = sizes[a] + 1, (sizes[b] + 1 if paired else 1)
            beside, only, also = 0, 0, 0
            if r < drawn:
                state, only = _drawn_slot(state, sizes[a])
                if paired:
                    state, also = _drawn_slot(state, sizes[b])
            if paired:
                _sums_below(codes[a], codes[b], g, n_in, sums[0, :A, :B])
                _sums_below(codes[a], codes[b], h, n_in, sums[1, :A, :B])
                gain, at, beside = _cross(
                    mass[t, :A, :B], sums[0, :A, :B], sums[1, :A, :B], ridge, least, value,
                    (only, also),
                )  # fmt: skip
            else:
                gain, at = _cut(
                    codes[a], mass[t, : A - 1, 0], g, h, n_in, ridge, least, hist, value, only
                )
            if r >= drawn:
                gains[t] = gain if at else -1.0
            if at == 0:
                continue
            steps[count, 0], steps[count, 1], steps[count, 2] = t, at, beside
            for q in range(4):
                values[count, q] = rate * value[q]
                factor[q] = np.exp(values[count, q])
            count += 1
            _moved(codes[a], codes[b], paired, at, beside, factor, odds)
            _slopes(y, weight, odds, n_in, g, h)
        loss = _judged(y, weight, odds, n_in)
        since = since + 1 if r >= drawn else 0
        if loss < best:
            best, since, kept = loss, 0, count
            best_odds[:] = odds
        if since >= patience or loss < enough:
            break
    odds[:] = best_odds
    return steps[:kept], values[:kept]


@njit(cache=True, nogil=True)
def summed(steps: Ints, values: Floats, sizes: Ints, first: Ints, second: Ints) -> Floats:
    """(terms, slots, slots): the sum of the steps of each term; one column of it for cuts."""
    widest = int(sizes.max())
    total = np.zeros((len(first), widest, widest if second[0] >= 0 else 1))
    for q in range(len(steps)):
        t = steps[q, 0]
        for a in range(sizes[first[t]]):
            for b in range(sizes[second[t]] if second[t] >= 0 else 1):
                upper = (0 if a < steps[q, 1] else 2) + (0 if b < steps[q, 2] else 1)
                total[t, a, b] += values[q, upper]
    return total
