"""Compiled losses of additive scores: value, slopes, curvatures, Hessian products."""

from __future__ import annotations

import numpy as np
from numba import njit

from laconic._typing import Floats, Ints
from laconic.additive._numba_blocks import backward, block_minimum, forward, monotone_minimum
from laconic.additive._numba_rows import (
    Rows,
    Terms,
    add_term,
    coordinate_sums,
    score_change,
    slot_products,
    slot_sums,
)


@njit(cache=True, nogil=True)
def binary_slopes(
    f: Floats,
    y: Ints,
    weight: Floats,
    zone: Floats,
    blur: float,
    residual: Floats,
    h: Floats,
) -> float:
    """Weighted truncated logistic loss, its slope and curvature (y in {0, 1}); returns the sum.

    ``zone`` = (position, height, floor) of the kink of negatives, then of positives, on the scale
    of the margin; a height of zero means no kink. The kink's hinge is rounded over ``blur``.
    """
    total = 0.0
    for i in range(f.shape[0]):
        w = weight[i]
        if w == 0.0:
            residual[i] = 0.0
            h[i] = 0.0
            continue
        sign = 1.0 if y[i] > 0 else -1.0
        m = sign * f[i]
        at = 3 * y[i]
        e = np.exp(-abs(m))
        plain = np.log1p(e) + max(-m, 0.0)
        tail = e / (1.0 + e) if m > 0.0 else 1.0 / (1.0 + e)
        value = plain
        slope = -tail
        curve = e / ((1.0 + e) * (1.0 + e))
        height = zone[at + 1]
        if height > 0.0:
            gap = zone[at] - m
            if gap <= -0.5 * blur:
                value = zone[at + 2]
                slope = 0.0
                curve = 0.0
            elif gap < 0.5 * blur:
                # smooth part + height * (gap + blur / 2)^2 / (2 blur)
                reach = gap + 0.5 * blur
                if gap > 0.0:
                    value = plain - height * gap
                    slope = -tail + height
                else:
                    value = zone[at + 2]
                    slope = 0.0
                    curve = 0.0
                value += 0.5 * height * reach * reach / blur
                slope -= height * reach / blur
                curve += height / blur
        total += w * value
        residual[i] = w * sign * slope
        h[i] = w * curve
    return total


@njit(cache=True, nogil=True)
def multinomial_slopes(
    f: Floats,
    y: Ints,
    weight: Floats,
    residual: Floats,
    h: Floats,
) -> float:
    """Weighted cross-entropy; slope p - e_y; the curvature diag(p) bounds diag(p) - p p'."""
    K, n = f.shape
    total = 0.0
    for i in range(n):
        w = weight[i]
        if w == 0.0:
            for k in range(K):
                residual[k, i] = 0.0
                h[k, i] = 0.0
            continue
        top = f[0, i]
        for k in range(1, K):
            top = max(top, f[k, i])
        scale = 0.0
        for k in range(K):
            h[k, i] = np.exp(f[k, i] - top)
            scale += h[k, i]
        total += w * (np.log(scale) + top - f[y[i], i])
        for k in range(K):
            p = w * h[k, i] / scale
            residual[k, i] = p - (w if k == y[i] else 0.0)
            h[k, i] = p
    return total


@njit(cache=True, nogil=True)
def curved(
    h: Floats,
    change: Floats,
    out: Floats,
) -> None:
    """out = Hessian of the loss times ``change``: h for one score, w (diag(p) - p p') for several.

    With several scores h = w p, so that w is the sum of h over the classes.
    """
    K, n = h.shape
    for i in range(n):
        mean = 0.0
        if K > 1:
            total = 0.0
            for k in range(K):
                total += h[k, i]
                mean += h[k, i] * change[k, i]
            mean = mean / total if total > 0.0 else 0.0
        for k in range(K):
            out[k, i] = h[k, i] * (change[k, i] - mean)


# Compiled descent on the quadratic model of an additive criterion: term by term, then jointly.


@njit(cache=True, nogil=True)
def curvature_blocks(
    rows: Rows,
    terms: Terms,
    work: Ints,
    h: Floats,
    H: Floats,
    H_start: Ints,
    table: Floats,
) -> None:
    """H (coordinates) of the terms in ``work``, one rank x rank block for each class."""
    for w in range(work.shape[0]):
        t = work[w]
        m = terms.size[t]
        r = terms.rank[t]
        at = terms.basis_start[t]
        B = terms.basis[at : at + m * r].reshape(m, r)
        pad = m + terms.width[t] + 2
        for k in range(h.shape[0]):
            square = table[: pad * pad].reshape(pad, pad)
            slot_products(rows, terms, t, h[k], square)
            inner = np.ascontiguousarray(square[:m, :m])
            start = H_start[w] + k * r * r
            H[start : start + r * r] = np.dot(B.T, np.dot(inner, B)).ravel()


@njit(cache=True, nogil=True)
def _basis(terms: Terms, t: int) -> Floats:
    m = terms.size[t]
    r = terms.rank[t]
    at = terms.basis_start[t]
    return terms.basis[at : at + m * r].reshape(m, r)


@njit(cache=True, nogil=True)
def _right_side(
    rows: Rows, terms: Terms, t: int, H: Floats, point: Floats, theta: Floats, residual: Floats,
    sums: Floats, q: Floats,
) -> None:  # fmt: skip
    """q[k] = H_k g_k - theta_k - B' (slot sums of the residual): the linear part of the block."""
    B = _basis(terms, t)
    s = terms.start[t]
    m, r = B.shape
    for k in range(q.shape[0]):
        slot_sums(rows, terms, t, residual[k], sums)
        for j in range(r):
            q[k, j] = -theta[k, s + j]
        for c in range(m):
            v = sums[c]
            if v != 0.0:
                for j in range(r):
                    q[k, j] -= B[c, j] * v
        for i in range(r):
            total = 0.0
            for j in range(r):
                total += H[k, i, j] * point[k, s + j]
            q[k, i] += total


@njit(cache=True, nogil=True)
def _move(
    rows: Rows, terms: Terms, t: int, H: Floats, D: Floats, step: Floats, point: Floats, h: Floats,
    residual: Floats, change: Floats, sums: Floats, room: Floats,
) -> float:  # fmt: skip
    """Add ``step`` to the coordinates of term t, everywhere; returns step'(H + D) step."""
    B = _basis(terms, t)
    s = terms.start[t]
    m, r = B.shape
    moved = 0.0
    for k in range(step.shape[0]):
        size = 0.0
        for j in range(r):
            size += abs(step[k, j])
        if size == 0.0:
            continue
        for i in range(r):
            total = 0.0
            for j in range(r):
                total += H[k, i, j] * step[k, j]
            moved += step[k, i] * (total + D[s + i] * step[k, i])
            point[k, s + i] += step[k, i]
        sums[:] = 0.0
        for c in range(m):
            total = 0.0
            for j in range(r):
                total += B[c, j] * step[k, j]
            sums[c] = total
        add_term(rows, terms, t, sums, h[k], change[k], residual[k], room)
    return moved


@njit(cache=True, nogil=True)
def _move_intercepts(
    h: Floats, total_h: Floats, slope: Floats, residual: Floats, change: Floats, b: Floats
) -> float:
    moved = 0.0
    for k in range(h.shape[0]):
        d = -(slope[k] + np.sum(residual[k])) / total_h[k]
        b[k] += d
        moved += d * d * total_h[k]
        for i in range(h.shape[1]):
            change[k, i] += d
            residual[k, i] += h[k, i] * d
    return moved


@njit(cache=True, nogil=True)
def _totals(h: Floats) -> Floats:
    out = np.empty(h.shape[0])
    for k in range(h.shape[0]):
        out[k] = max(np.sum(h[k]), 1e-300)
    return out


@njit(cache=True, nogil=True)
def sweeps(
    rows: Rows, terms: Terms, work: Ints, H: Floats, H_start: Ints, D: Floats, group: Floats,
    signs: Ints, point: Floats, shift: Floats, theta: Floats, slope: Floats, h: Floats,
    residual: Floats, change: Floats, b: Floats, n_sweeps: int, stop: float, accuracy: float,
) -> int:  # fmt: skip
    """Block coordinate descent on the quadratic model, over the terms in ``work``.

    ``theta`` and ``slope`` are the gradient of the loss at the start, in the coordinates and the
    intercepts; ``residual`` (zero at first) collects what the moves add to it, row by row, and
    ``change`` the change of the scores; ``point``, ``shift`` and ``b`` are updated. The rows may be
    those alone that curve.
    Returns the number of sweeps, negative when they ran out before a sweep moved ``stop`` times
    less than the first one.
    """
    K = h.shape[0]
    most = 2
    widest = 1
    for w in range(work.shape[0]):
        most = max(most, terms.size[work[w]] + terms.width[work[w]] + 2)
        widest = max(widest, terms.rank[work[w]])
    buffer = np.zeros(most)
    square = np.empty(widest * widest)
    flat = np.empty(2 * K * widest)
    room = np.empty(h.shape[1])
    total_h = _totals(h)
    first = 0.0
    for sweep in range(n_sweeps):
        moved = _move_intercepts(h, total_h, slope, residual, change, b)
        for w in range(work.shape[0]):
            t = work[w]
            r = terms.rank[t]
            s = terms.start[t]
            Hs = H[H_start[w] : H_start[w] + K * r * r].reshape(K, r, r)
            q = flat[: K * r].reshape(K, r)
            step = flat[K * r : 2 * K * r].reshape(K, r)
            upper = square[: r * r].reshape(r, r)
            sums = buffer[: terms.size[t] + terms.width[t] + 2]
            _right_side(rows, terms, t, Hs, point, theta, residual, sums, q)
            own = D[s : s + r]
            if signs[t] == 0:
                shift[t] = block_minimum(Hs, own, q, group[t], shift[t], upper, step, accuracy)
            else:
                B = _basis(terms, t)
                up = np.float64(signs[t]) * (B[1 : terms.knots[t]] - B[: terms.knots[t] - 1])
                shift[t] = monotone_minimum(
                    Hs[0], own, q[0], group[t], up, shift[t], upper, step[0]
                )
            for k in range(K):
                for j in range(r):
                    step[k, j] -= point[k, s + j]
            moved += _move(rows, terms, t, Hs, D, step, point, h, residual, change, sums, room)
        if sweep == 0:
            first = moved
        if moved <= stop * first:
            return sweep + 1
    return -n_sweeps


@njit(cache=True, nogil=True)
def _precondition(
    joint: Ints, factors: Floats, scale: Floats, x: Floats, xb: Floats, out: Floats, outb: Floats
) -> None:
    """The joint coordinates and the intercept by their factor, the others by their scale.

    Adding one number to the intercepts of all classes changes nothing: no step goes there.
    """
    m = joint.shape[0]
    both = np.empty(m + 1)
    for k in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[k, j] = x[k, j] / scale[k, j]
        for i in range(m):
            both[i] = x[k, joint[i]]
        both[m] = xb[k]
        forward(factors[k], both)
        backward(factors[k], both)
        for i in range(m):
            out[k, joint[i]] = both[i]
        outb[k] = both[m]
    if x.shape[0] > 1:
        outb -= np.mean(outb)


@njit(cache=True, nogil=True)
def conjugate_steps(
    rows: Rows,
    terms: Terms,
    work: Ints,
    joint: Ints,
    factors: Floats,
    scale: Floats,
    D: Floats,
    point: Floats,
    shift: Floats,
    theta: Floats,
    slope: Floats,
    h: Floats,
    residual: Floats,
    change: Floats,
    b: Floats,
    n_steps: int,
    stop: float,
) -> None:
    """Conjugate gradients on the quadratic model over the non-zero terms, all at once.

    The group penalty enters by its Hessian mu (I - g g' / |g|^2), whose mu is in ``D``. ``joint``,
    ``factors`` and ``scale`` precondition.
    """
    K, n = h.shape
    R = point.shape[1]
    left = np.zeros((K, R))
    leftb = np.empty(K)
    if np.any(residual):
        coordinate_sums(rows, terms, work, residual, left)
    for w in range(work.shape[0]):
        t = work[w]
        for j in range(terms.start[t], terms.start[t] + terms.rank[t]):
            for k in range(K):
                left[k, j] = -left[k, j] - theta[k, j] - D[j] * point[k, j]
    for k in range(K):
        leftb[k] = -slope[k] - np.sum(residual[k])
    z = np.zeros((K, R))
    zb = np.empty(K)
    _precondition(joint, factors, scale, left, leftb, z, zb)
    p = z.copy()
    pb = zb.copy()
    Ap = np.zeros((K, R))
    x = np.zeros((K, R))
    xb = np.zeros(K)
    dp = np.empty((K, n))
    hp = np.empty((K, n))
    rz = np.sum(left * z) + np.sum(leftb * zb)
    start = rz
    for _ in range(n_steps):
        if rz <= stop * start or rz <= 0.0:
            break
        score_change(rows, terms, work, p, pb, dp)
        curved(h, dp, hp)
        coordinate_sums(rows, terms, work, hp, Ap)
        curve = 0.0
        for w in range(work.shape[0]):
            t = work[w]
            s = terms.start[t]
            e = s + terms.rank[t]
            mu = shift[t] if shift[t] < np.inf else 0.0
            inner = 0.0
            size = 0.0
            for k in range(K):
                for j in range(s, e):
                    inner += point[k, j] * p[k, j]
                    size += point[k, j] * point[k, j]
            pull = mu * inner / size if size > 0.0 else 0.0
            for k in range(K):
                for j in range(s, e):
                    Ap[k, j] += D[j] * p[k, j] - pull * point[k, j]
                    curve += p[k, j] * Ap[k, j]
        Apb = np.empty(K)
        for k in range(K):
            Apb[k] = np.sum(hp[k])
            curve += pb[k] * Apb[k]
        if curve <= 0.0:
            break
        alpha = rz / curve
        x += alpha * p
        xb += alpha * pb
        left -= alpha * Ap
        leftb -= alpha * Apb
        for k in range(K):
            for i in range(n):
                change[k, i] += alpha * dp[k, i]
                residual[k, i] += alpha * hp[k, i]
        _precondition(joint, factors, scale, left, leftb, z, zb)
        new = np.sum(left * z) + np.sum(leftb * zb)
        beta = new / rz
        rz = new
        p = z + beta * p
        pb = zb + beta * pb
    point += x
    b += xb
