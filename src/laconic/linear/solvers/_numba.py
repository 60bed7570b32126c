"""Compiled loops of the kink Newton: one row at a time, arrays in, arrays out."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from laconic._jit import njit
from laconic._typing import Floats, Ints


@njit(cache=True, inline="always")
def logistic(m: float) -> float:
    """log(1 + exp(-m)) without overflow."""
    return math.log1p(math.exp(-abs(m))) - min(m, 0.0)


@njit(cache=True, inline="always")
def logistic_parts(m: float) -> tuple[float, float, float]:
    """log(1 + exp(-m)), minus its slope and its curvature, from one exponential."""
    e = math.exp(-abs(m))
    inverse = 1.0 / (1.0 + e)
    fall = e * inverse if m > 0 else inverse
    return math.log1p(e) - min(m, 0.0), fall, e * inverse * inverse


@njit(cache=True)
def evaluate_truncated(
    z: Floats,
    y: Floats,
    weight: Floats,
    low: float,
    high: float,
    floor_negative: float,
    floor_positive: float,
    slope: Floats,
    curvature: Floats,
) -> float:
    """Weighted truncated logistic loss; fills the weighted slopes and curvatures."""
    total = 0.0
    for i in range(z.shape[0]):
        s = weight[i]
        v = z[i]
        positive = y[i] > 0
        if positive and v > high:
            total += s * floor_positive
            slope[i] = 0.0
            curvature[i] = 0.0
        elif not positive and v <= low:
            total += s * floor_negative
            slope[i] = 0.0
            curvature[i] = 0.0
        else:
            loss, fall, bend = logistic_parts(v if positive else -v)
            total += s * loss
            slope[i] = -s * fall if positive else s * fall
            curvature[i] = s * bend
    return total


@njit(cache=True)
def price_truncated(
    z: Floats, slope: Floats, y: Floats, weight: Floats, low: float, high: float,
    height_negative: float, height_positive: float, floor_negative: float, floor_positive: float,
) -> float:  # fmt: skip
    """Fenchel-Young sum of weighted slopes at scores; infinite where no conjugate is finite."""
    total = 0.0
    for i in range(z.shape[0]):
        positive = y[i] > 0
        m = z[i] if positive else -z[i]
        reach = high if positive else -low
        height = height_positive if positive else height_negative
        floor = floor_positive if positive else floor_negative
        a = (-slope[i] if positive else slope[i]) / weight[i]
        if a < 0.0 or a > 1.0:
            return np.inf
        loss = max(logistic(m), floor) if m < reach else floor
        if a > height:
            loss += a * (math.log(a) + m)
            if a < 1.0:
                loss += (1.0 - a) * math.log1p(-a)
        else:
            loss -= floor
            # with a zero height the kink is at infinity and a is zero
            if height > 0.0:
                loss += a * (m - reach)
        total += weight[i] * max(loss, 0.0)
    return total


@njit(cache=True)
def excess_truncated(
    z: Floats,
    y: Floats,
    weight: Floats,
    low: float,
    high: float,
    shrink_negative: float,
    shrink_positive: float,
) -> float:
    """Fenchel-Young sum when slopes are shrunk by one factor per class (kink rows: weight 0).

    On the curved side the loss at m and the entropy at a' = k sigma(-m) combine into a relative
    entropy, computed here from the ratio so that k near 1 loses no digits.
    """
    height_negative = 0.0 if low == -math.inf else 1.0 / (1.0 + math.exp(-low))
    height_positive = 0.0 if high == math.inf else 1.0 / (1.0 + math.exp(high))
    total = 0.0
    for i in range(z.shape[0]):
        positive = y[i] > 0
        k = shrink_positive if positive else shrink_negative
        if k == 1.0 or weight[i] == 0.0:
            continue
        v = z[i]
        if (positive and v > high) or (not positive and v <= low):
            continue
        m = v if positive else -v
        e = math.exp(-abs(m))
        a = e / (1.0 + e) if m > 0 else 1.0 / (1.0 + e)
        rest = 1.0 / (1.0 + e) if m > 0 else e / (1.0 + e)
        b = k * a
        height = height_positive if positive else height_negative
        if b >= height:
            # b log(b / a) + (1 - b) log((1 - b) / (1 - a))
            left = b * math.log(k) if b > 0 else 0.0
            right = (1.0 - b) * math.log1p((1.0 - k) * a / rest) if rest > 0 else 0.0
            if rest == 0.0 and b < 1.0:
                right = (1.0 - b) * (math.log1p(-b) - m)
            total += weight[i] * max(0.0, left + right)
        else:
            reach = high if positive else -low
            total += weight[i] * max(0.0, logistic(m) - logistic(reach) + b * (m - reach))
    return total


@njit(cache=True)
def accumulate(X: Floats, slope: Floats, curvature: Floats, gradient: Floats, roots: Floats) -> int:
    """Add active rows to the gradient (row 0: negative slopes, row 1: positive) and pack roots.

    ``roots`` receives sqrt(curvature) (x, 1) for every row with curvature; returns their number,
    so that the Hessian is one symmetric product of the packed rows.
    """
    d = X.shape[1]
    packed = 0
    for i in range(X.shape[0]):
        u = slope[i]
        if u != 0.0:
            side = 1 if u > 0 else 0
            for j in range(d):
                gradient[side, j] += u * X[i, j]
            gradient[side, d] += u
        h = curvature[i]
        if h > 0.0:
            root = math.sqrt(h)
            for j in range(d):
                roots[packed, j] = root * X[i, j]
            roots[packed, d] = root
            packed += 1
    return packed


@njit(cache=True)
def _sweep(
    B: Floats,
    q: Floats,
    offset: Floats,
    ceiling: Floats,
    v: Floats,
    norms: Floats,
    rows: NDArray[np.int64],
) -> float:
    moved = 0.0
    for i in rows:
        if norms[i] == 0.0:
            continue
        slope = -offset[i]
        for j in range(B.shape[1]):
            slope += B[i, j] * q[j]
        new = min(max(v[i] - slope / norms[i], 0.0), ceiling[i])
        change = new - v[i]
        if change != 0.0:
            v[i] = new
            for j in range(B.shape[1]):
                q[j] += change * B[i, j]
            moved = max(moved, change * change * norms[i])
    return moved


@njit(cache=True)
def box_descent(
    B: Floats, q: Floats, offset: Floats, ceiling: Floats, v: Floats, sweeps: int, tol: float
) -> int:
    """Coordinate descent on 1/2 |q|^2 - offset'v, q = q_0 + B'v, 0 <= v <= ceiling; in place.

    Between sweeps over all rows, many cheap ones over the rows strictly inside their box. Returns
    the number of full sweeps; ``tol`` bounds the squared movement of q in the last one.
    """
    n = B.shape[0]
    norms = np.empty(n)
    for i in range(n):
        norms[i] = np.dot(B[i], B[i])
    everything = np.arange(n)
    for sweep in range(sweeps):
        if _sweep(B, q, offset, ceiling, v, norms, everything) <= tol:
            return sweep + 1
        inside = np.flatnonzero((v > 0.0) & (v < ceiling))
        for _ in range(100):
            if _sweep(B, q, offset, ceiling, v, norms, inside) <= tol:
                break
    return sweeps


@njit(cache=True)
def _multiplier(base: float, q: float, s: float, reach: float, height: float, now: float) -> float:
    """The alpha at which the margin base + q alpha is where a slope of alpha / s belongs."""
    if base >= reach:
        return 0.0
    alpha = (reach - base) / q
    if alpha <= height:
        return alpha
    # alpha = s expit(t) with base + q s expit(t) + t = 0: increasing in t, Newton in a bracket
    low, high = -base - q * s, -base
    share = now / s
    t = math.log(share / (1.0 - share)) if 0.0 < share < 1.0 else 0.5 * (low + high)
    if t < low or t > high:
        t = 0.5 * (low + high)
    for _ in range(100):
        e = math.exp(-abs(t))
        p = 1.0 / (1.0 + e) if t >= 0.0 else e / (1.0 + e)
        off = base + q * s * p + t
        if off > 0.0:
            high = t
        else:
            low = t
        new = t - off / (1.0 + q * s * p * (1.0 - p))
        if new <= low or new >= high:
            new = 0.5 * (low + high)
        if abs(new - t) <= 1e-10 * (1.0 + abs(t)):
            break
        t = new
    return max(height, s / (1.0 + math.exp(-t)))


@njit(cache=True)
def sweep_multipliers(
    indptr: Ints,
    indices: Ints,
    data: Floats,
    squares: Floats,
    y: Floats,
    s: Floats,
    reach: Floats,
    height: Floats,
    order: Ints,
    b: float,
    price: float,
    missing: float,
    alpha: Floats,
    w: Floats,
) -> float:
    """One alpha after the other at its minimum; alpha and w change, sum y alpha is returned."""
    for i in order:
        z = b + price * missing
        for k in range(indptr[i], indptr[i + 1]):
            z += data[k] * w[indices[k]]
        q = max(squares[i] + price, 1e-300)
        new = _multiplier(y[i] * z - q * alpha[i], q, s[i], reach[i], height[i], alpha[i])
        change = y[i] * (new - alpha[i])
        if change != 0.0:
            alpha[i] = new
            missing += change
            for k in range(indptr[i], indptr[i + 1]):
                w[indices[k]] += change * data[k]
    return missing
