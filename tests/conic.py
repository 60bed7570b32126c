"""The same problems handed to a general conic solver, for comparison only."""

import clarabel
import numpy as np
import scipy.sparse as sp


def truncated_logistic(X, y, weight, C, p_min, p_max, fit_intercept=True):
    """Least |w|^2/2 + C sum s max(log(1+exp(-y f)), floor); returns (value, (w, b)).

    Variables: w, b, then per row t (loss), a, c with a + c <= 1,
    a >= exp(-m - t), c >= exp(-t).
    """
    n, d = X.shape
    floor = np.where(y > 0, -np.log(p_max), -np.log1p(-p_min))
    size = d + 1 + 3 * n
    P = sp.diags_array(np.r_[np.ones(d), np.zeros(1 + 3 * n)]).tocsc()
    q = np.zeros(size)
    q[d + 1 :: 3] = C * weight
    rows = y[:, None] * np.c_[X, np.full(n, float(fit_intercept))]
    at = d + 1 + 3 * np.arange(n)
    blocks, right = [], []
    simple = sp.lil_array((2 * n, size))
    simple[np.arange(n), at + 1] = 1.0
    simple[np.arange(n), at + 2] = 1.0
    simple[n + np.arange(n), at] = -1.0
    blocks.append(simple.tocsr())
    right.append(np.r_[np.ones(n), -floor])
    wide = sp.lil_array((6 * n, size))
    six = 6 * np.arange(n)
    wide[six[:, None] + np.zeros(d + 1, int), np.arange(d + 1)[None, :]] = rows
    wide[six, at] = 1.0
    wide[six + 2, at + 1] = -1.0
    wide[six + 3, at] = 1.0
    wide[six + 5, at + 2] = -1.0
    blocks.append(wide.tocsr())
    right.append(np.tile([0.0, 1.0, 0.0, 0.0, 1.0, 0.0], n))
    cones = [clarabel.NonnegativeConeT(2 * n)] + [clarabel.ExponentialConeT()] * (2 * n)
    found = _solve(P, q, sp.vstack(blocks).tocsc(), np.concatenate(right), cones)
    return found.obj_val, np.array(found.x[: d + 1])


def truncated_multinomial(X, y, weight, C, caps, fit_intercept=True):
    """Least |W|^2/2 + C sum s max(logsumexp(F) - F_y, -log q_y); returns the value."""
    n, d = X.shape
    K = len(caps)
    wide = K * (d + 1)
    size = wide + n * (1 + K)
    diagonal = np.zeros(size)
    diagonal[:wide] = np.tile(np.r_[np.ones(d), 1e-12], K)
    q = np.zeros(size)
    q[wide : wide + n] = C * weight
    row, column, value, right = [], [], [], []
    count = 0

    def add(entries, r):
        nonlocal count
        for j, v in entries:
            row.append(count)
            column.append(j)
            value.append(v)
        right.append(r)
        count += 1

    for i in range(n):
        add([(wide + n + i * K + k, 1.0) for k in range(K)], 1.0)
    for i in range(n):
        add([(wide + i, -1.0)], np.log(caps[y[i]]))
    extended = np.c_[X, np.full(n, float(fit_intercept))]
    for i in range(n):
        for k in range(K):
            # exp(F_k - F_y - t) <= a_k
            entries = [(wide + i, 1.0)]
            if k != y[i]:
                entries += [(k * (d + 1) + j, -extended[i, j]) for j in range(d + 1)]
                entries += [(y[i] * (d + 1) + j, extended[i, j]) for j in range(d + 1)]
            add(entries, 0.0)
            add([], 1.0)
            add([(wide + n + i * K + k, -1.0)], 0.0)
    A = sp.csc_array((value, (row, column)), shape=(count, size))
    cones = [clarabel.NonnegativeConeT(2 * n)] + [clarabel.ExponentialConeT()] * (n * K)
    return _solve(sp.diags_array(diagonal).tocsc(), q, A, np.array(right), cones).obj_val


def grouped_logistic(X, y, weight, diagonal, owner, group):
    """Least sum s log(1+exp(-y(b + Xv))) + v'Dv/2 + sum_g group_g |v_g|; returns the value.

    ``owner`` is the group of each coefficient; groups of one coefficient make the lasso.
    """
    n, d = X.shape
    G = len(group)
    at_s, at_t, size = 1 + d, 1 + d + G, 1 + d + G + 3 * n
    P = sp.diags_array(np.r_[0.0, diagonal, np.zeros(G + 3 * n)]).tocsc()
    q = np.r_[np.zeros(1 + d), group, weight, np.zeros(2 * n)]
    blocks, right, cones = [], [], []
    for g in range(G):
        own = np.flatnonzero(owner == g)
        block = sp.lil_array((1 + len(own), size))
        block[0, at_s + g] = -1.0
        block[1 + np.arange(len(own)), 1 + own] = -1.0
        blocks.append(block.tocsr())
        right.append(np.zeros(1 + len(own)))
        cones.append(clarabel.SecondOrderConeT(1 + len(own)))
    at, a = at_t + np.arange(n), at_t + n + 2 * np.arange(n)
    simple = sp.lil_array((n, size))
    simple[np.arange(n), a] = simple[np.arange(n), a + 1] = 1.0
    blocks.append(simple.tocsr())
    right.append(np.ones(n))
    cones.append(clarabel.NonnegativeConeT(n))
    wide = sp.lil_array((6 * n, size))
    six = 6 * np.arange(n)
    wide[six[:, None] + np.zeros(d + 1, int), np.arange(d + 1)[None, :]] = (
        y[:, None] * np.c_[np.ones(n), X]
    )
    wide[six, at] = wide[six + 3, at] = 1.0
    wide[six + 2, a] = wide[six + 5, a + 1] = -1.0
    blocks.append(wide.tocsr())
    right.append(np.tile([0.0, 1.0, 0.0, 0.0, 1.0, 0.0], n))
    cones += [clarabel.ExponentialConeT()] * (2 * n)
    return _solve(P, q, sp.vstack(blocks).tocsc(), np.concatenate(right), cones).obj_val


def second_moment(G, a, mu, *, box=None):
    """Least q'Gq with a'q >= mu over the simplex, or a'q = mu over |q_j| <= box; the value."""
    n = len(a)
    P = sp.csc_array(np.triu(2.0 * G))
    if box is None:
        A = np.vstack([np.ones((1, n)), -a[None, :], -np.eye(n)])
        b, cones = np.r_[1.0, -mu, np.zeros(n)], [clarabel.ZeroConeT(1)]
        cones.append(clarabel.NonnegativeConeT(n + 1))
    else:
        A = np.vstack([a[None, :], np.eye(n), -np.eye(n)])
        b, cones = np.r_[mu, np.full(2 * n, box)], [clarabel.ZeroConeT(1)]
        cones.append(clarabel.NonnegativeConeT(2 * n))
    return _solve(P, np.zeros(n), sp.csc_array(A), b, cones).obj_val


def hinge(X, y, weight, C):
    """Least |w|^2/2 + C sum s max(0, 1 - y f) with a free intercept; returns the value."""
    n, d = X.shape
    P = sp.diags_array(np.r_[np.ones(d), np.zeros(1 + n)]).tocsc()
    q = np.r_[np.zeros(d + 1), C * weight]
    margins = sp.csr_array(-(y[:, None] * np.c_[X, np.ones(n)]))
    A = sp.block_array([[margins, -sp.eye_array(n)], [None, -sp.eye_array(n)]])
    A = sp.csc_array(A)
    cones = [clarabel.NonnegativeConeT(2 * n)]
    return _solve(P, q, A, np.r_[-np.ones(n), np.zeros(n)], cones).obj_val


def least_absolute(X, y, weight, C):
    """Least |w|^2/2 + C sum s |y - f| with a free intercept; returns the value."""
    n, d = X.shape
    P = sp.diags_array(np.r_[np.ones(d), np.zeros(1 + n)]).tocsc()
    q = np.r_[np.zeros(d + 1), C * weight]
    table = sp.csr_array(np.c_[X, np.ones(n)])
    A = sp.csc_array(sp.block_array([[table, -sp.eye_array(n)], [-table, -sp.eye_array(n)]]))
    return _solve(P, q, A, np.r_[y, -y], [clarabel.NonnegativeConeT(2 * n)]).obj_val


def _solve(P, q, A, b, cones):
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-10
    found = clarabel.DefaultSolver(P, q, A, b, cones, settings).solve()
    assert "Solved" in str(found.status), str(found.status)
    return found
