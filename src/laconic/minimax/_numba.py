"""One pass over profiles: the Bayes decision of each and the risk of each class.

``start, klass, mass`` hold the class laws by profile: profile t has the probabilities
``mass[start[t]:start[t + 1]]`` of the classes ``klass[...]`` and zero of the others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from laconic._jit import njit
from laconic._typing import Floats, Ints, Keys, Mask

Labels = NDArray[np.int32]


@njit(cache=True)
def dense_labels(law: Floats, prior: Floats, labels: Labels) -> Floats:
    """0-1 loss: ``argmax_k prior_k p_kt`` of each row of ``law``; returns the mass well decided."""
    n_profiles, n_classes = law.shape
    hit = np.zeros(n_classes)
    for t in range(n_profiles):
        best = 0
        top = prior[0] * law[t, 0]
        for k in range(1, n_classes):
            score = prior[k] * law[t, k]
            if score > top:
                top = score
                best = k
        labels[t] = best
        hit[best] += law[t, best]
    return hit


@njit(cache=True)
def dense_loss_labels(law: Floats, prior: Floats, loss: Floats, labels: Labels) -> Floats:
    """Any loss: ``argmin_l sum_k L_kl prior_k p_kt``; returns the class risks."""
    n_profiles, n_classes = law.shape
    risk = np.zeros(n_classes)
    cost = np.empty(n_classes)
    for t in range(n_profiles):
        cost[:] = 0.0
        for k in range(n_classes):
            share = prior[k] * law[t, k]
            for decided in range(n_classes):
                cost[decided] += loss[k, decided] * share
        best = 0
        for decided in range(1, n_classes):
            if cost[decided] < cost[best]:
                best = decided
        labels[t] = best
        for k in range(n_classes):
            risk[k] += loss[k, best] * law[t, k]
    return risk


@njit(cache=True)
def sparse_labels(
    start: Ints, klass: Labels, mass: Floats, prior: Floats, labels: Labels
) -> Floats:
    """0-1 loss over the classes that a profile holds; returns the mass well decided."""
    hit = np.zeros(len(prior))
    for t in range(len(start) - 1):
        best = start[t]
        top = prior[klass[best]] * mass[best]
        for at in range(start[t] + 1, start[t + 1]):
            score = prior[klass[at]] * mass[at]
            if score > top:
                top = score
                best = at
        labels[t] = klass[best]
        hit[klass[best]] += mass[best]
    return hit


@njit(cache=True)
def sparse_loss_labels(
    start: Ints, klass: Labels, mass: Floats, prior: Floats, loss: Floats, labels: Labels
) -> Floats:
    """Any loss over the classes that a profile holds."""
    n_classes = len(prior)
    risk = np.zeros(n_classes)
    cost = np.empty(n_classes)
    for t in range(len(start) - 1):
        cost[:] = 0.0
        for at in range(start[t], start[t + 1]):
            share = prior[klass[at]] * mass[at]
            for decided in range(n_classes):
                cost[decided] += loss[klass[at], decided] * share
        best = 0
        for decided in range(1, n_classes):
            if cost[decided] < cost[best]:
                best = decided
        labels[t] = best
        for at in range(start[t], start[t + 1]):
            risk[klass[at]] += loss[klass[at], best] * mass[at]
    return risk


@njit(cache=True)
def proportion_keys(start: Ints, klass: Labels, mass: Floats) -> tuple[Floats, Keys]:
    """A 64-bit key of each profile's class mix, equal when the counts are proportional.

    The ratio to the first count is correctly rounded, so equal fractions give equal bits.
    """
    ratio = np.empty(len(mass))
    for t in range(len(start) - 1):
        for at in range(start[t], start[t + 1]):
            ratio[at] = mass[at] / mass[start[t]]
    bits = ratio.view(np.uint64)
    keys = np.empty(len(start) - 1, dtype=np.uint64)
    for t in range(len(start) - 1):
        key = np.uint64(0x9E3779B97F4A7C15)
        for at in range(start[t], start[t + 1]):
            # odd constants of xxHash and MurmurHash; groups are compared cell by cell afterwards
            key ^= bits[at] + np.uint64(klass[at]) * np.uint64(0xC2B2AE3D27D4EB4F)
            key *= np.uint64(0xFF51AFD7ED558CCD)
            key ^= key >> np.uint64(32)
        keys[t] = key
    return ratio, keys


@njit(cache=True)
def proportional_groups(
    order: Ints, keys: Keys, start: Ints, klass: Labels, ratio: Floats
) -> tuple[Ints, int]:
    """Group number of each profile; neighbours in ``order`` join when they are truly equal."""
    group = np.empty(len(keys), dtype=np.int64)
    now = -1
    for rank in range(len(order)):
        t = order[rank]
        same = rank > 0 and keys[t] == keys[order[rank - 1]]
        if same:
            other = order[rank - 1]
            same = start[t + 1] - start[t] == start[other + 1] - start[other]
            step = 0
            while same and step < start[t + 1] - start[t]:
                here = start[t] + step
                there = start[other] + step
                same = klass[here] == klass[there] and ratio[here] == ratio[there]
                step += 1
        if not same:
            now += 1
        group[t] = now
    return group, now + 1


# Projection onto the level set of a bundle: a dual active-set method for a small dense QP.
#
#     min |x - center|^2 / 2   s.t.  sum(x) = 1,  low <= x <= high,  cuts @ x >= level
#
# The method of Goldfarb and Idnani (1983) with an identity Hessian: it starts at the centre, which
# is optimal without inequalities, and adds violated constraints one at a time; multipliers stay
# feasible throughout. Constraints are numbered: 0 the sum, 1..K the lower bounds, K+1..2K the upper
# bounds, then the cuts.


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
    x: Floats, cuts: Floats, n_cuts: int, level: float, low: Floats, high: Floats, inside: Mask
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
                    # the part of the normal that active constraints leave free: the primal step
                    z[k] += basis[k, column] * d[column]
            for row in range(size - 1, -1, -1):
                total = d[row]
                for column in range(row + 1, size):
                    total -= upper[row, column] * r[column]
                r[row] = total / upper[row, row]
            dual_step, drop = np.inf, -1
            # the sum constraint (place 0) is an equality: its multiplier may have any sign
            for j in range(1, size):
                if r[j] > 0.0 and force[j] / r[j] < dual_step:
                    dual_step, drop = force[j] / r[j], j
            reach = 0.0
            length = 0.0
            for k in range(n):
                reach += z[k] * normal[k]
                length += normal[k] * normal[k]
            # a normal that depends on the active ones moves no point: only multipliers can give way
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
