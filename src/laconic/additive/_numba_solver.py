"""Compiled losses of additive scores, and the descent on their quadratic model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from laconic._jit import njit
from laconic._typing import Floats, Ints
from laconic.additive._numba_blocks import backward, block_minimum, forward, monotone_minimum
from laconic.additive._numba_rows import (
    Rows,
    Terms,
    add_term,
    basis_of,
    coordinate_sums,
    longest,
    padded,
    score_change,
    slot_products,
    slot_sums,
)

if TYPE_CHECKING:
    from laconic.additive.criterion import CurvatureBlocks
    from laconic.additive.solver import Penalties, Preconditioner, QuadraticModel, State


@njit(cache=True, nogil=True)
def binary_slopes(
    f: Floats, y: Ints, weight: Floats, zone: Floats, blur: float, residual: Floats, h: Floats
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
def multinomial_slopes(f: Floats, y: Ints, weight: Floats, residual: Floats, h: Floats) -> float:
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
def curved(h: Floats, change: Floats, out: Floats) -> None:
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


# Descent on the quadratic model of an additive criterion: term by term, then jointly.


@njit(cache=True, nogil=True)
def curvature_blocks(
    rows: Rows, terms: Terms, h: Floats, blocks: CurvatureBlocks, table: Floats
) -> None:
    """H (coordinates) of the terms of the blocks, one rank x rank block for each class."""
    for w in range(blocks.work.shape[0]):
        t = blocks.work[w]
        B = basis_of(terms, t)
        m, r = B.shape
        pad = padded(terms, t)
        for k in range(h.shape[0]):
            square = table[: pad * pad].reshape(pad, pad)
            slot_products(rows, terms, t, h[k], square)
            inner = np.ascontiguousarray(square[:m, :m])
            start = blocks.start[w] + k * r * r
            blocks.H[start : start + r * r] = np.dot(B.T, np.dot(inner, B)).ravel()


@njit(cache=True, nogil=True)
def _right_side(
    model: QuadraticModel, t: int, H: Floats, point: Floats, sums: Floats, q: Floats
) -> None:
    """q[k] = H_k g_k - theta_k - B' (slot sums of the residual): the linear part of the block."""
    B = basis_of(model.terms, t)
    s = model.terms.start[t]
    m, r = B.shape
    for k in range(q.shape[0]):
        slot_sums(model.rows, model.terms, t, model.residual[k], sums)
        for j in range(r):
            q[k, j] = -model.theta[k, s + j]
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
    model: QuadraticModel, t: int, H: Floats, D: Floats, step: Floats, point: Floats, sums: Floats,
    room: Floats,
) -> float:  # fmt: skip
    """Add ``step`` to the coordinates of term t, everywhere; returns step'(H + D) step."""
    B = basis_of(model.terms, t)
    s = model.terms.start[t]
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
        rows = model.curves[k], model.change[k], model.residual[k]
        add_term(model.rows, model.terms, t, sums, rows[0], rows[1], rows[2], room)
    return moved


@njit(cache=True, nogil=True)
def _move_intercepts(model: QuadraticModel, total_h: Floats, b: Floats) -> float:
    h, residual, change = model.curves, model.residual, model.change
    moved = 0.0
    for k in range(h.shape[0]):
        d = -(model.slope[k] + np.sum(residual[k])) / total_h[k]
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
        out[k] = max(np.sum(h[k]), 1e-12)
    return out


@njit(cache=True, nogil=True)
def sweeps(
    model: QuadraticModel, blocks: CurvatureBlocks, penalties: Penalties, state: State,
    n_sweeps: int, stop: float, accuracy: float,
) -> int:  # fmt: skip
    """Block coordinate descent on the quadratic model, over the terms of the blocks.

    ``theta`` and ``slope`` of the model are the gradient of the loss at the start, in the
    coordinates and the intercepts; its ``residual`` (zero at first) collects what the moves add to
    it, row by row, and ``change`` the change of the scores; the state is updated. The rows may be
    those alone that curve.
    Returns the number of sweeps, negative when they ran out before a sweep moved ``stop`` times
    less than the first one.
    """
    terms, work, D = model.terms, blocks.work, penalties.diagonal
    point, shift = state.point, state.shift
    K = model.curves.shape[0]
    widest = 1
    for w in range(work.shape[0]):
        widest = max(widest, terms.rank[work[w]])
    buffer = np.zeros(longest(terms, work))
    square = np.empty(widest * widest)
    flat = np.empty(2 * K * widest)
    room = np.empty(model.curves.shape[1])
    total_h = _totals(model.curves)
    first = 0.0
    for sweep in range(n_sweeps):
        moved = _move_intercepts(model, total_h, state.intercept)
        for w in range(work.shape[0]):
            t = work[w]
            r = terms.rank[t]
            s = terms.start[t]
            Hs = blocks.H[blocks.start[w] : blocks.start[w] + K * r * r].reshape(K, r, r)
            q = flat[: K * r].reshape(K, r)
            step = flat[K * r : 2 * K * r].reshape(K, r)
            upper = square[: r * r].reshape(r, r)
            sums = buffer[: padded(terms, t)]
            _right_side(model, t, Hs, point, sums, q)
            own, group, sign = D[s : s + r], penalties.group[t], penalties.signs[t]
            if sign == 0:
                shift[t] = block_minimum(Hs, own, q, group, shift[t], upper, step, accuracy)
            else:
                B = basis_of(terms, t)
                up = np.float64(sign) * (B[1 : terms.knots[t]] - B[: terms.knots[t] - 1])
                shift[t] = monotone_minimum(Hs[0], own, q[0], group, up, shift[t], upper, step[0])
            for k in range(K):
                for j in range(r):
                    step[k, j] -= point[k, s + j]
            moved += _move(model, t, Hs, D, step, point, sums, room)
        if sweep == 0:
            first = moved
        if moved <= stop * first:
            return sweep + 1
    return -n_sweeps


@njit(cache=True, nogil=True)
def precondition(
    preconditioner: Preconditioner, x: Floats, xb: Floats, out: Floats, outb: Floats
) -> None:
    """The joint coordinates and the intercept by their factor, the others by their scale.

    Adding one number to the intercepts of all classes changes nothing: no step goes there.
    """
    joint, factors, scale = preconditioner
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
def _add_penalty_product(
    terms: Terms, work: Ints, D: Floats, state: State, p: Floats, Ap: Floats
) -> float:
    """Ap += (D - mu g g' / |g|^2) p for the terms in ``work``; returns p'Ap."""
    point, shift = state.point, state.shift
    K = p.shape[0]
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
    return curve


@njit(cache=True, nogil=True)
def conjugate_steps(
    model: QuadraticModel, work: Ints, preconditioner: Preconditioner, D: Floats, state: State,
    n_steps: int, stop: float,
) -> None:  # fmt: skip
    """Conjugate gradients on the quadratic model over the non-zero terms, all at once.

    The group penalty enters by its Hessian mu (I - g g' / |g|^2), whose mu is in ``D``.
    """
    rows, terms, h, residual, change = (
        model.rows, model.terms, model.curves, model.residual, model.change
    )  # fmt: skip
    K, n = h.shape
    R = state.point.shape[1]
    left = np.zeros((K, R))
    leftb = np.empty(K)
    if np.any(residual):
        coordinate_sums(rows, terms, work, residual, left)
    for w in range(work.shape[0]):
        t = work[w]
        for j in range(terms.start[t], terms.start[t] + terms.rank[t]):
            for k in range(K):
                left[k, j] = -left[k, j] - model.theta[k, j] - D[j] * state.point[k, j]
    for k in range(K):
        leftb[k] = -model.slope[k] - np.sum(residual[k])
    z = np.zeros((K, R))
    zb = np.empty(K)
    precondition(preconditioner, left, leftb, z, zb)
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
        curve = _add_penalty_product(terms, work, D, state, p, Ap)
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
        precondition(preconditioner, left, leftb, z, zb)
        new = np.sum(left * z) + np.sum(leftb * zb)
        beta = new / rz
        rz = new
        p = z + beta * p
        pb = zb + beta * pb
    state.point[:, :] += x
    state.intercept[:] += xb
