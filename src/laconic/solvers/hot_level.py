"""Projection onto the level set of a bundle: a dual active-set method for a small dense QP.

    min |x - center|^2 / 2   s.t.  sum(x) = 1,  low <= x <= high,  cuts @ x >= level

The method of Goldfarb and Idnani (1983) with an identity Hessian: it starts at the centre, which
is optimal without inequalities, and adds violated constraints one at a time; multipliers stay
feasible throughout. Constraints are numbered: 0 the sum, 1..K the lower bounds, K+1..2K the upper
bounds, then the cuts.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_TINY = 1e-13


@njit(cache=True)
def _normal(index: int, cuts: Floats, out: Floats) -> None:
    n_classes = cuts.shape[1]
    out[:] = 0.0
    if index == 0:
        out[:] = 1.0
    elif index <= n_classes:
        out[index - 1] = 1.0
    elif index <= 2 * n_classes:
        out[index - 1 - n_classes] = -1.0
    else:
        out[:] = cuts[index - 1 - 2 * n_classes]


@njit(cache=True)
def _most_violated(
    x: Floats, cuts: Floats, n_cuts: int, level: float, low: Floats, high: Floats, inside: Flags
) -> tuple[int, float]:
    """The constraint missed by most (its slack, negative), or -1."""
    worst = -_TINY
    found = -1
    for k in range(len(x)):
        slack = x[k] - low[k]
        if slack < worst and not inside[1 + k]:
            worst, found = slack, 1 + k
        slack = high[k] - x[k]
        if slack < worst and not inside[1 + len(x) + k]:
            worst, found = slack, 1 + len(x) + k
    for i in range(n_cuts):
        slack = -level
        for k in range(len(x)):
            slack += cuts[i, k] * x[k]
        if slack < worst and not inside[1 + 2 * len(x) + i]:
            worst, found = slack, 1 + 2 * len(x) + i
    return found, worst


@njit(cache=True)
def _rotate(basis: Floats, at: int, c: float, s: float) -> None:
    """Givens rotation of the columns ``at`` and ``at + 1``."""
    for k in range(basis.shape[0]):
        left, right = basis[k, at], basis[k, at + 1]
        basis[k, at] = c * left + s * right
        basis[k, at + 1] = -s * left + c * right


@njit(cache=True)
def _insert(basis: Floats, upper: Floats, size: int, d: Floats) -> None:
    """Add a constraint with coordinates ``d`` in the basis: R gets a column."""
    for at in range(len(d) - 2, size - 1, -1):
        h = np.hypot(d[at], d[at + 1])
        if h > 0.0:
            _rotate(basis, at, d[at] / h, d[at + 1] / h)
            d[at], d[at + 1] = h, 0.0
    for row in range(size + 1):
        upper[row, size] = d[row]


@njit(cache=True)
def _remove(basis: Floats, upper: Floats, size: int, at: int) -> None:
    """Drop the constraint in place ``at`` and restore the triangle."""
    for column in range(at, size - 1):
        for row in range(size):
            upper[row, column] = upper[row, column + 1]
    for row in range(at, size - 1):
        h = np.hypot(upper[row, row], upper[row + 1, row])
        if h == 0.0:
            continue
        c, s = upper[row, row] / h, upper[row + 1, row] / h
        for column in range(row, size - 1):
            a, b = upper[row, column], upper[row + 1, column]
            upper[row, column] = c * a + s * b
            upper[row + 1, column] = -s * a + c * b
        _rotate(basis, row, c, s)


@njit(cache=True)
def project_on_level(
    center: Floats, cuts: Floats, n_cuts: int, level: float, low: Floats, high: Floats
) -> tuple[Floats, Floats, int]:
    """Nearest point of the level set to ``center`` (whose sum is one).

    Returns the point, one multiplier per cut, and a status: 0 found, 1 the level set is empty
    (the multipliers then prove it: the cuts so mixed stay below the level), 2 out of steps.
    """
    n = len(center)
    x = center.copy()
    basis = np.eye(n)
    upper = np.zeros((n, n))
    active = np.empty(n, dtype=np.int64)
    force = np.zeros(n)
    inside = np.zeros(1 + 2 * n + n_cuts, dtype=np.bool_)
    weight = np.zeros(n_cuts)
    normal, d, r, z = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    _normal(0, cuts, normal)
    _insert(basis, upper, 0, basis.T @ normal)
    active[0], size = 0, 1
    inside[0] = True
    for _ in range(50 * (n + 10)):
        new, slack = _most_violated(x, cuts, n_cuts, level, low, high, inside)
        if new < 0:
            for j in range(size):
                if active[j] > 2 * n:
                    weight[active[j] - 1 - 2 * n] = force[j]
            return x, weight, 0
        _normal(new, cuts, normal)
        push = 0.0
        while True:
            d[:] = basis.T @ normal
            z[:] = 0.0
            for column in range(size, n):
                for k in range(n):
                    z[k] += basis[k, column] * d[column]
            for row in range(size - 1, -1, -1):
                total = d[row]
                for column in range(row + 1, size):
                    total -= upper[row, column] * r[column]
                r[row] = total / upper[row, row]
            dual_step, drop = np.inf, -1
            for j in range(1, size):
                if r[j] > 0.0 and force[j] / r[j] < dual_step:
                    dual_step, drop = force[j] / r[j], j
            reach = 0.0
            length = 0.0
            for k in range(n):
                reach += z[k] * normal[k]
                length += normal[k] * normal[k]
            full_step = -slack / reach if reach > 1e-14 * length else np.inf
            step = min(dual_step, full_step)
            if step == np.inf:
                for j in range(size):
                    if active[j] > 2 * n:
                        weight[active[j] - 1 - 2 * n] = max(-r[j], 0.0)
                if new > 2 * n:
                    weight[new - 1 - 2 * n] = 1.0
                return x, weight, 1
            for j in range(size):
                force[j] -= step * r[j]
            push += step
            if full_step < np.inf:
                for k in range(n):
                    x[k] += step * z[k]
                slack += step * reach
            if step == full_step:
                _insert(basis, upper, size, d)
                active[size], force[size] = new, push
                inside[new] = True
                size += 1
                break
            inside[active[drop]] = False
            _remove(basis, upper, size, drop)
            for j in range(drop, size - 1):
                active[j], force[j] = active[j + 1], force[j + 1]
            size -= 1
    return x, weight, 2
