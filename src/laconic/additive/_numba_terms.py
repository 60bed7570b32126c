"""Compiled algebra of the terms: block minima, descent on a quadratic model, evidence, gains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from laconic._jit import njit
from laconic._typing import Floats, Ints
from laconic.additive._numba_rows import (
    Rows,
    Terms,
    add_term,
    basis_of,
    cell_sums,
    coordinate_sums,
    curved,
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
def sum_of(x: Floats) -> float:
    """Sum from first to last; ``np.sum`` is the same one and longer to compile."""
    out = 0.0
    for i in range(x.shape[0]):
        out += x[i]
    return out


@njit(cache=True, nogil=True)
def factor(matrix: Floats, diagonal: Floats, shift: float, upper: Floats) -> None:
    """upper' upper = matrix + diag(diagonal + shift), by rows so that the inner loop is an axpy."""
    r = matrix.shape[0]
    for i in range(r):
        for j in range(i, r):
            upper[i, j] = matrix[i, j]
        upper[i, i] += diagonal[i] + shift
    for k in range(r):
        # rounding may leave the pivot of a singular block at or below zero
        pivot = np.sqrt(max(upper[k, k], 1e-300))
        upper[k, k] = pivot
        for j in range(k + 1, r):
            upper[k, j] /= pivot
        for i in range(k + 1, r):
            scale = upper[k, i]
            if scale != 0.0:
                for j in range(i, r):
                    upper[i, j] -= scale * upper[k, j]


@njit(cache=True, nogil=True)
def decouple(terms: Terms, blocks: CurvatureBlocks, D: Floats, much: float) -> None:
    """Coordinates penalised ``much`` more than they curve keep the diagonal of their block alone.

    What they share with another coordinate is at most 1 / ``much`` of the curvature of the two;
    the factors of what is left take a fraction of the time.
    """
    for w in range(blocks.work.shape[0]):
        r = terms.rank[blocks.work[w]]
        s = terms.start[blocks.work[w]]
        squares = blocks.H[blocks.start[w] : blocks.start[w + 1]].reshape(-1, r, r)
        for k in range(squares.shape[0]):
            for j in range(r):
                if D[s + j] > much * squares[k, j, j]:
                    own = squares[k, j, j]
                    squares[k, j, :] = 0.0
                    squares[k, :, j] = 0.0
                    squares[k, j, j] = own


@njit(cache=True, nogil=True)
def forward(upper: Floats, x: Floats) -> None:
    r = x.shape[0]
    for k in range(r):
        x[k] /= upper[k, k]
        for j in range(k + 1, r):
            x[j] -= upper[k, j] * x[k]


@njit(cache=True, nogil=True)
def backward(upper: Floats, x: Floats) -> None:
    for k in range(x.shape[0] - 1, -1, -1):
        total = x[k]
        for j in range(k + 1, x.shape[0]):
            total -= upper[k, j] * x[j]
        x[k] = total / upper[k, k]


@njit(cache=True, nogil=True)
def block_minimum(
    H: Floats, diagonal: Floats, q: Floats, group: float, shift: float, upper: Floats,
    point: Floats, accuracy: float,
) -> float:  # fmt: skip
    """Minimum of g'(H + D) g / 2 - q'g + group |g|, g = ``point`` (classes x rank).

    Returns mu = group / |g| (0 when the group is not penalised, inf when the minimum is zero), to
    better than the relative ``accuracy`` to which ``point`` has it: the next call starts there.
    Off zero, g = (H + D + mu)^-1 q with mu |g| = group: Newton on 1 / |g| - mu / group, which is
    concave in mu with one root.
    """
    K, r = q.shape
    size = 0.0
    for k in range(K):
        for j in range(r):
            size += q[k, j] * q[k, j]
    size = np.sqrt(size)
    # |q| <= group: zero is optimal (the condition of the group lasso, Yuan and Lin, 2006)
    if size <= group:
        point[:, :] = 0.0
        return np.inf
    mu = 0.0
    if group > 0.0:
        mu = shift
        if not (0.0 < mu < np.inf):
            trace = 0.0
            for j in range(r):
                trace += H[0, j, j] + diagonal[j]
            # exact where H + D is a multiple of the identity
            mu = group * trace / r / (size - group)
    z = np.empty(r)
    for _ in range(50):
        length = 0.0
        bend = 0.0
        for k in range(K):
            factor(H[k], diagonal, mu, upper)
            for j in range(r):
                point[k, j] = q[k, j]
            forward(upper, point[k])
            backward(upper, point[k])
            for j in range(r):
                length += point[k, j] * point[k, j]
                z[j] = point[k, j]
            if group > 0.0:
                forward(upper, z)
                for j in range(r):
                    bend += z[j] * z[j]
        if group == 0.0:
            return 0.0
        length = np.sqrt(length)
        off = 1.0 / length - mu / group
        slope = bend / (length * length * length) - 1.0 / group
        # where Newton's step would end at mu <= 0, or the slope is rounding: double or halve
        if slope < 0.0 and mu - off / slope > 0.0:
            mu -= off / slope
        else:
            mu = 2.0 * mu if off > 0.0 else 0.5 * mu
        if abs(off) * length <= accuracy:
            break
    return mu


@njit(cache=True, nogil=True)
def _dual_ascent(W: Floats, v: Floats, nu: Floats) -> None:
    """Minimum of nu'W nu / 2 + v'nu over nu >= 0, one entry at a time (Hildreth)."""
    c = v.shape[0]
    for _ in range(2000):
        moved = 0.0
        for i in range(c):
            if W[i, i] <= 0.0:
                continue
            slope = v[i]
            for j in range(c):
                slope += W[i, j] * nu[j]
            new = max(0.0, nu[i] - slope / W[i, i])
            # in the units of the primal point, whatever the scale of a constraint
            moved = max(moved, abs(new - nu[i]) * np.sqrt(W[i, i]))
            nu[i] = new
        if moved <= 1e-12:
            break


@njit(cache=True, nogil=True)
def monotone_minimum(
    H: Floats, diagonal: Floats, q: Floats, group: float, constraint: Floats, shift: float,
    upper: Floats, point: Floats,
) -> float:  # fmt: skip
    """Like :func:`block_minimum` for one score, under constraint @ g >= 0."""
    r = q.shape[0]
    c = constraint.shape[0]
    nu = np.zeros(c)
    # the shortest q + A'nu over nu >= 0: zero is optimal where the group penalty covers it
    _dual_ascent(constraint @ constraint.T, constraint @ q, nu)
    inside = q + constraint.T @ nu
    if np.sqrt(np.sum(inside * inside)) <= group:
        point[:] = 0.0
        return np.inf
    mu = shift if group > 0.0 and 0.0 < shift < np.inf else 0.0
    nu[:] = 0.0
    solved = np.empty((c, r))
    for _ in range(60):
        # a fixed point of mu = group / |g|; a quadratic program for each mu, solved in its dual
        factor(H, diagonal, mu, upper)
        for i in range(c):
            solved[i] = constraint[i]
            forward(upper, solved[i])
        point[:] = q
        forward(upper, point)
        _dual_ascent(solved @ solved.T, solved @ point, nu)
        point += solved.T @ nu
        backward(upper, point)
        length = np.sqrt(np.sum(point * point))
        if group == 0.0:
            return 0.0
        if length == 0.0:
            return np.inf
        if abs(mu * length / group - 1.0) <= 1e-9:
            break
        mu = group / length
    return mu


@njit(cache=True, inline="always")
def _add_variances(
    H: Floats, diagonal: Floats, much: float, upper: Floats, free: Ints, unit: Floats, out: Floats
) -> None:
    """out[j] += (H + D)^-1 [j, j], the posterior variance of coordinate j.

    Coordinates penalised ``much`` more than they curve are left on their own (see
    :func:`decouple`); ``upper``, ``free`` and ``unit`` are room for the work on the others.
    """
    n = 0
    for j in range(diagonal.shape[0]):
        if diagonal[j] > much * H[j, j]:
            out[j] += 1.0 / (H[j, j] + diagonal[j])
        else:
            free[n] = j
            n += 1
    factors = upper[: n * n].reshape(n, n)
    for a in range(n):
        for c in range(a, n):
            factors[a, c] = H[free[a], free[c]]
    factor(factors, diagonal[free[:n]], 0.0, factors)
    for a in range(n):
        unit[:n] = 0.0
        unit[a] = 1.0
        total = 0.0
        for k in range(a, n):
            unit[k] /= factors[k, k]
            total += unit[k] * unit[k]
            for i in range(k + 1, n):
                unit[i] -= factors[k, i] * unit[k]
        out[free[a]] += total


@njit(cache=True, nogil=True)
def evidence_sums(
    terms: Terms, blocks: CurvatureBlocks, D: Floats, rough: Floats, point: Floats, much: float,
    out: Floats,
) -> None:  # fmt: skip
    """Per term of the blocks: rank, tr(V S), g'S g of the bend, then of the linear part."""
    K = point.shape[0]
    most = 1
    for w in range(blocks.work.shape[0]):
        most = max(most, terms.rank[blocks.work[w]])
    square = np.empty(most * most)
    unit = np.empty(most)
    free = np.empty(most, np.int64)
    variance = np.empty(most)
    for w in range(blocks.work.shape[0]):
        t = blocks.work[w]
        r = terms.rank[t]
        s = terms.start[t]
        variance[:r] = 0.0
        for k in range(K):
            at = blocks.start[w] + k * r * r
            block = blocks.H[at : at + r * r].reshape(r, r)
            _add_variances(block, D[s : s + r], much, square, free, unit, variance)
        out[w, :] = 0.0
        for j in range(r):
            energy = 0.0
            for k in range(K):
                energy += point[k, s + j] * point[k, s + j]
            d = rough[s + j]
            # coordinates without roughness are the linear part, which has a prior of its own
            if d > 0.0:
                out[w, 0] += K
                out[w, 1] += variance[j] * d
                out[w, 2] += energy * d
            else:
                out[w, 3] += K
                out[w, 4] += variance[j]
                out[w, 5] += energy


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
            inner = np.empty((m, m))
            for i in range(m):
                for j in range(m):
                    inner[i, j] = square[i, j]
            right = np.empty((m, r))
            np.dot(inner, B, right)
            start = blocks.start[w] + k * r * r
            np.dot(B.T, right, blocks.H[start : start + r * r].reshape(r, r))


@njit(cache=True, inline="always")
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


@njit(cache=True, inline="always")
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


@njit(cache=True, inline="always")
def _move_intercepts(model: QuadraticModel, total_h: Floats, b: Floats) -> float:
    h, residual, change = model.curves, model.residual, model.change
    moved = 0.0
    for k in range(h.shape[0]):
        d = -(model.slope[k] + sum_of(residual[k])) / total_h[k]
        b[k] += d
        moved += d * d * total_h[k]
        for i in range(h.shape[1]):
            change[k, i] += d
            residual[k, i] += h[k, i] * d
    return moved


@njit(cache=True, inline="always")
def _totals(h: Floats) -> Floats:
    out = np.empty(h.shape[0])
    for k in range(h.shape[0]):
        # a score that no row curves any more: its intercept must not move to infinity
        out[k] = max(sum_of(h[k]), 1e-12)
    return out


@njit(cache=True, nogil=True)
def sweeps(
    model: QuadraticModel, blocks: CurvatureBlocks, penalties: Penalties, signs: Ints | None,
    state: State, n_sweeps: int, stop: float, accuracy: float,
) -> int:  # fmt: skip
    """Block coordinate descent on the quadratic model, over the terms of the blocks.

    ``theta`` and ``slope`` of the model are the gradient of the loss at the start, in the
    coordinates and the intercepts; its ``residual`` (zero at first) collects what the moves add to
    it, row by row, and ``change`` the change of the scores; the state is updated. The rows may be
    those alone that curve. Where no term has a sign, ``signs`` is None: monotone minima, as long to
    compile as the rest, are then left out.
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
            own, group = D[s : s + r], penalties.group[t]
            if signs is None or signs[t] == 0:
                shift[t] = block_minimum(Hs, own, q, group, shift[t], upper, step, accuracy)
            else:
                B = basis_of(terms, t)
                up = np.float64(signs[t]) * (B[1 : terms.knots[t]] - B[: terms.knots[t] - 1])
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
        mean = sum_of(outb) / x.shape[0]
        for k in range(x.shape[0]):
            outb[k] -= mean


@njit(cache=True, inline="always")
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
        # an infinite shift marks a term that the group penalty holds at zero
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


@njit(cache=True, inline="always")
def _moved(residual: Floats) -> bool:
    moved = False
    for k in range(residual.shape[0]):
        for i in range(residual.shape[1]):
            moved = moved or residual[k, i] != 0.0
    return moved


@njit(cache=True, nogil=True)
def _product(a: Floats, b: Floats, ab: Floats, bb: Floats) -> float:
    """Sum of the products of two points, and of their intercepts."""
    total = 0.0
    for k in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += a[k, j] * b[k, j]
    last = 0.0
    for k in range(ab.shape[0]):
        last += ab[k] * bb[k]
    return total + last


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
    if _moved(residual):
        coordinate_sums(rows, terms, work, residual, left)
    for w in range(work.shape[0]):
        t = work[w]
        for j in range(terms.start[t], terms.start[t] + terms.rank[t]):
            for k in range(K):
                left[k, j] = -left[k, j] - model.theta[k, j] - D[j] * state.point[k, j]
    for k in range(K):
        leftb[k] = -model.slope[k] - sum_of(residual[k])
    z = np.zeros((K, R))
    zb = np.empty(K)
    precondition(preconditioner, left, leftb, z, zb)
    p = z.copy()
    pb = zb.copy()
    Ap = np.zeros((K, R))
    Apb = np.empty(K)
    x = np.zeros((K, R))
    xb = np.zeros(K)
    dp = np.empty((K, n))
    hp = np.empty((K, n))
    rz = _product(left, z, leftb, zb)
    start = rz
    for _ in range(n_steps):
        if rz <= stop * start or rz <= 0.0:
            break
        score_change(rows, terms, work, p, pb, dp)
        curved(h, dp, hp)
        coordinate_sums(rows, terms, work, hp, Ap)
        curve = _add_penalty_product(terms, work, D, state, p, Ap)
        for k in range(K):
            Apb[k] = sum_of(hp[k])
            curve += pb[k] * Apb[k]
        # the model is convex: a direction that does not curve is rounding
        if curve <= 0.0:
            break
        alpha = rz / curve
        for k in range(K):
            xb[k] += alpha * pb[k]
            leftb[k] -= alpha * Apb[k]
            for j in range(R):
                x[k, j] += alpha * p[k, j]
                left[k, j] -= alpha * Ap[k, j]
            for i in range(n):
                change[k, i] += alpha * dp[k, i]
                residual[k, i] += alpha * hp[k, i]
        precondition(preconditioner, left, leftb, z, zb)
        new = _product(left, z, leftb, zb)
        beta = new / rz
        rz = new
        # Fletcher and Reeves' beta; the model is quadratic, so that all formulas agree
        for k in range(K):
            pb[k] = zb[k] + beta * pb[k]
            for j in range(R):
                p[k, j] = z[k, j] + beta * p[k, j]
    for k in range(K):
        state.intercept[k] += xb[k]
        for j in range(R):
            state.point[k, j] += x[k, j]


# Second-order gains of pairs of columns over their margins, from two-way tables.


@njit(cache=True, inline="always")
def _part(g: float, w: float, ridge: float) -> float:
    """g^2 / (w + ridge) less its expectation; zero where no row is."""
    return (g * g - w) / (w + ridge) if w > 0.0 else 0.0


@njit(cache=True, nogil=True)
def _gain(G: Floats, H: Floats, rows: int, width: int, ridge: float) -> float:
    """Sum of the parts of all cells minus those of both margins."""
    gain = 0.0
    for p in range(rows):
        g = 0.0
        w = 0.0
        for c in range(p * width, (p + 1) * width):
            gain += _part(G[c], H[c], ridge)
            g += G[c]
            w += H[c]
        gain -= _part(g, w, ridge)
    for q in range(width):
        g = 0.0
        w = 0.0
        for c in range(q, rows * width, width):
            g += G[c]
            w += H[c]
        gain -= _part(g, w, ridge)
    return gain


@njit(cache=True, nogil=True)
def pair_gains(
    cells: NDArray[np.uint8], sizes: Ints, slopes: Floats, curves: Floats, ridge: float, out: Floats
) -> None:
    """out[a, b] = gain of the pair, a < b; ``cells[j, i]`` is the coarse cell of row i, column j.

    When the pair carries nothing a gain is zero on average: from every cell and margin that rows
    occupy, its expectation is taken away.
    """
    d = cells.shape[0]
    for a in range(d):
        for b in range(a + 1, d):
            size = sizes[a] * sizes[b]
            gain = 0.0
            for k in range(slopes.shape[0]):
                G = np.zeros(size)
                H = np.zeros(size)
                cell_sums(cells[a], cells[b], sizes[b], slopes[k], G)
                cell_sums(cells[a], cells[b], sizes[b], curves[k], H)
                gain += _gain(G, H, sizes[a], sizes[b], ridge)
            out[a, b] = gain


@njit(cache=True, nogil=True)
def _completed(table: Floats, start: Ints, sizes: Ints, a: int, b: int, out: Floats) -> None:
    """The table of two columns; the cells of the first levels follow from the margins.

    ``table`` holds the sums of all pairs of levels but the first of each column; its last row and
    column are those of no level: sums of one level, and of all rows.
    """
    m, width = sizes[a], sizes[b]
    end = table.shape[0] - 1
    out[0] = table[end, end]
    for p in range(1, m):
        out[p * width] = table[start[a] + p - 1, end]
        out[0] -= out[p * width]
    for q in range(1, width):
        out[q] = table[end, start[b] + q - 1]
        out[0] -= out[q]
    for p in range(1, m):
        for q in range(1, width):
            v = table[start[a] + p - 1, start[b] + q - 1]
            out[p * width + q] = v
            out[p * width] -= v
            out[q] -= v
            out[0] += v


@njit(cache=True, nogil=True)
def add_gains_of_tables(
    G: Floats, H: Floats, start: Ints, sizes: Ints, least: float, ridge: float, out: Floats
) -> None:
    """out[a, b] += gain of the pair by tables of all levels; cells under ``least`` are empty."""
    d = sizes.shape[0]
    most = sizes.max() ** 2
    g = np.empty(most)
    h = np.empty(most)
    for a in range(d):
        for b in range(a + 1, d):
            _completed(G, start, sizes, a, b, g)
            _completed(H, start, sizes, a, b, h)
            for c in range(sizes[a] * sizes[b]):
                if h[c] <= least:
                    h[c] = 0.0
            out[a, b] += _gain(g, h, sizes[a], sizes[b], ridge)
