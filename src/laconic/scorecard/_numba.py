"""Compiled kernels of the optimal card: cells of a support, relaxations, the search of points.

The loss of scores f over cells of weight ``c1`` (second class) and ``c0`` (first), which add up to
one, is ``sum c1 log(1 + exp(-f)) + c0 log(1 + exp(f))``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from laconic._jit import njit
from laconic._typing import Floats, Ints, Mask


@njit(cache=True)
def loss_at(f: Floats, c1: Floats, c0: Floats) -> float:
    total = 0.0
    for i in range(len(f)):
        soft = np.log1p(np.exp(-abs(f[i])))
        total += c1[i] * (max(-f[i], 0.0) + soft) + c0[i] * (max(f[i], 0.0) + soft)
    return total


@njit(cache=True)
def slopes_at(f: Floats, c1: Floats, c0: Floats, slope: Floats, bend: Floats) -> None:
    """First and second derivatives of the loss by score."""
    for i in range(len(f)):
        e = np.exp(-abs(f[i]))
        p = 1.0 / (1.0 + e) if f[i] >= 0 else e / (1.0 + e)
        weight = c1[i] + c0[i]
        slope[i] = weight * p - c1[i]
        bend[i] = weight * e / (1.0 + e) ** 2


@njit(cache=True)
def best_offset(f: Floats, c1: Floats, c0: Floats, b: float, slope: Floats, bend: Floats) -> float:
    """The offset that minimises the loss of ``f + b``, by Newton kept in a bracket."""
    low, high = -np.inf, np.inf
    for _ in range(200):
        slopes_at(f + b, c1, c0, slope, bend)
        g, h = slope.sum(), bend.sum()
        if abs(g) < 1e-15:
            break
        if g > 0:
            high = min(high, b)
        else:
            low = max(low, b)
        step = g / h if h > 1e-300 else np.sign(g) * 5.0
        new = b - min(max(step, -5.0), 5.0)
        if new <= low or new >= high:
            new = 0.5 * (low + high)
        if new == b:
            break
        b = new
    return b


@njit(cache=True)
def fit_multiplier(s: Floats, c1: Floats, c0: Floats, most: float) -> tuple[float, float, float]:
    """Least loss of a s + b over 0 <= a <= most and b: (loss, a, b), by a bracket on the slope."""
    n = len(s)
    slope, bend = np.empty(n), np.empty(n)
    low, high = 0.0, most
    b = best_offset(most * s, c1, c0, 0.0, slope, bend)
    if (slope * s).sum() <= 0.0:
        return loss_at(most * s + b, c1, c0), most, b
    b0 = best_offset(0.0 * s, c1, c0, 0.0, slope, bend)
    if (slope * s).sum() >= 0.0:
        return loss_at(0.0 * s + b0, c1, c0), 0.0, b0
    a, b = 0.0, b0
    for _ in range(100):
        g = (slope * s).sum()
        if abs(g) < 1e-13:
            break
        if g > 0:
            high = min(high, a)
        else:
            low = max(low, a)
        weight = bend.sum()
        mean = (bend * s).sum() / weight if weight > 1e-300 else 0.0
        curve = (bend * (s - mean) ** 2).sum()
        new = a - g / curve if curve > 1e-300 else 0.5 * (low + high)
        if new <= low or new >= high:
            new = 0.5 * (low + high)
        if new == a:
            break
        b = best_offset(new * s, c1, c0, b - (new - a) * mean, slope, bend)
        a = new
    return loss_at(a * s + b, c1, c0), a, b


@njit(cache=True)
def codes_of(X: Any, support: Ints, n: int) -> Ints:
    code = np.zeros(n, dtype=np.int64)
    for m in range(len(support)):
        x = X[support[m]]
        bit = 1 << m
        for i in range(n):
            code[i] += bit * x[i]
    return code


@njit(cache=True)
def cells_of(code: Ints, pos: Floats, neg: Floats, k: int) -> tuple[Floats, Floats, Floats]:
    """Cells that hold rows: their items (cells, k), and the weight of each class."""
    c1, c0 = np.zeros(1 << k), np.zeros(1 << k)
    for i in range(len(code)):
        c1[code[i]] += pos[i]
        c0[code[i]] += neg[i]
    seen = np.flatnonzero(c1 + c0 > 0.0)
    Z = np.empty((len(seen), k))
    for r in range(len(seen)):
        for m in range(k):
            Z[r, m] = (seen[r] >> m) & 1
    return Z, c1[seen], c0[seen]


@njit(cache=True)
def newton_step(H: Floats, g: Floats) -> Floats:
    """-H^-1 g by Cholesky; a direction without curvature of its own is left as it is.

    Items may add up to a constant (all categories of a column): then H is singular but for the
    walls, and these vanish on the way.
    """
    d = len(g)
    L, x = np.zeros((d, d)), np.empty(d)
    for j in range(d):
        for i in range(j, d):
            left = H[i, j]
            for m in range(j):
                left -= L[i, m] * L[j, m]
            if i == j:
                L[j, j] = np.sqrt(left) if left > 1e-13 * H[j, j] else np.inf
            else:
                L[i, j] = left / L[j, j]
        x[j] = -g[j]
        for m in range(j):
            x[j] -= L[j, m] * x[m]
        x[j] /= L[j, j]
    for j in range(d - 1, -1, -1):
        for m in range(j + 1, d):
            x[j] -= L[m, j] * x[m]
        x[j] /= L[j, j]
    return x


class Cone(NamedTuple):
    """Weights of the free items within ``a`` times their limits, and 0 <= a <= most.

    The variables of a relaxation are ``theta`` = (offset, a, weights of the free items).
    """

    free: Ints
    lower: Floats
    upper: Floats
    most: float


@njit(cache=True)
def cone_bound(
    value: float, theta: Floats, grad: Floats, cone: Cone, largest_offset: float
) -> float:
    """Tangent at ``theta`` minimised over the cone."""
    h, at = grad[1], grad[0] * theta[0] + grad[1] * theta[1]
    for m in range(len(cone.free)):
        j, g = cone.free[m], grad[m + 2]
        at += g * theta[m + 2]
        h += min(g * cone.lower[j], g * cone.upper[j])
    return float(value - at + min(0.0, cone.most * h) - abs(grad[0]) * largest_offset)


@njit(cache=True)
def cone_design(Z: Floats, cone: Cone) -> Floats:
    """The lines whose sum with weights ``theta`` are the scores; items that are fixed go with a."""
    n, k = Z.shape
    D = np.empty((len(cone.free) + 2, n))
    D[0] = 1.0
    D[1] = 0.0
    for j in range(k):
        if cone.upper[j] == cone.lower[j]:
            D[1] += cone.lower[j] * Z[:, j]
    for m in range(len(cone.free)):
        D[m + 2] = Z[:, cone.free[m]]
    return D


@njit(cache=True)
def wall_height(theta: Floats, cone: Cone) -> float:
    """Minus the logarithms of the distances to the walls of the cone."""
    a = theta[1]
    total = -np.log(a) - np.log(cone.most - a)
    for m in range(len(cone.free)):
        j = cone.free[m]
        total -= np.log(theta[m + 2] - a * cone.lower[j])
        total -= np.log(a * cone.upper[j] - theta[m + 2])
    return float(total)


@njit(cache=True)
def wall_slopes(theta: Floats, cone: Cone, g: Floats, H: Floats) -> None:
    """First and second derivatives of :func:`wall_height`."""
    g[:] = 0.0
    H[:] = 0.0
    a = theta[1]
    g[1] = -1.0 / a + 1.0 / (cone.most - a)
    H[1, 1] = 1.0 / a**2 + 1.0 / (cone.most - a) ** 2
    for m in range(len(cone.free)):
        low, high = cone.lower[cone.free[m]], cone.upper[cone.free[m]]
        under = 1.0 / (theta[m + 2] - a * low)
        over = 1.0 / (a * high - theta[m + 2])
        g[m + 2] += -under + over
        g[1] += under * low - over * high
        H[m + 2, m + 2] += under**2 + over**2
        H[1, 1] += (under * low) ** 2 + (over * high) ** 2
        cross = -(under**2) * low - over**2 * high
        H[1, m + 2] += cross
        H[m + 2, 1] += cross


@njit(cache=True)
def longest_step(theta: Floats, step: Floats, cone: Cone) -> float:
    """At most one, and 95 % of the way to the nearest wall."""
    a, t = theta[1], 1.0
    t = min(t, -0.95 * a / step[1] if step[1] < 0 else t)
    t = min(t, 0.95 * (cone.most - a) / step[1] if step[1] > 0 else t)
    for m in range(len(cone.free)):
        low, high = cone.lower[cone.free[m]], cone.upper[cone.free[m]]
        room, pace = theta[m + 2] - a * low, step[m + 2] - step[1] * low
        if pace < 0:
            t = min(t, -0.95 * room / pace)
        room, pace = a * high - theta[m + 2], step[1] * high - step[m + 2]
        if pace < 0:
            t = min(t, -0.95 * room / pace)
    return t


@njit(cache=True)
def step_down(
    value: float,
    theta: Floats,
    step: Floats,
    slope: float,
    D: Floats,
    c1: Floats,
    c0: Floats,
    mu: float,
    cone: Cone,
) -> float:
    """The share of a step that lowers the loss (now ``value``) and walls enough, or 0 (Armijo)."""
    t = longest_step(theta, step, cone)
    base = value + mu * wall_height(theta, cone)
    for _ in range(30):
        trial = theta + t * step
        there = loss_at(trial @ D, c1, c0) + mu * wall_height(trial, cone)
        if there <= base + 1e-4 * t * slope + 1e-15:
            return t
        t *= 0.5
    return 0.0


@njit(cache=True)
def inner_start(D: Floats, c1: Floats, c0: Floats, cone: Cone) -> Floats:
    """The middle of the cone at a quarter of its height, with its best offset."""
    theta = np.zeros(len(D))
    theta[1] = 0.25 * cone.most
    for m in range(len(cone.free)):
        theta[m + 2] = theta[1] * 0.5 * (cone.lower[cone.free[m]] + cone.upper[cone.free[m]])
    slope, bend = np.empty(len(c1)), np.empty(len(c1))
    theta[0] = best_offset(D.T @ theta, c1, c0, 0.0, slope, bend)
    return theta


@njit(cache=True)
def relax_cells(
    Z: Floats,
    c1: Floats,
    c0: Floats,
    lower: Floats,
    upper: Floats,
    most: float,
    cutoff: float,
    tol: float,
) -> tuple[float, float, float, float, Floats]:
    """A lower bound on every card with points in [lower, upper], and the relaxed minimiser.

    min over w, a, b of the loss of ``Z w + b`` with ``a lower <= w <= a upper``, ``0 <= a <=
    most``: convex, and exact where lower = upper. An interior-point method; the bound is the
    tangent at an iterate minimised over the cone, so it holds however early the method stops.
    """
    cone = Cone(np.flatnonzero(upper > lower), lower, upper, most)
    D = cone_design(Z, cone)
    d, n = D.shape
    reach = 0.0
    for j in range(len(lower)):
        reach += max(abs(lower[j]), abs(upper[j]))
    # some score of the best offset lies on each side of the log-odds of the classes
    largest_offset = 2.0 * (abs(np.log(c1.sum() / c0.sum())) + most * reach)
    n_walls = 2 * len(cone.free) + 2
    theta = inner_start(D, c1, c0, cone)
    mu, bound, value = 0.02 / n_walls, -np.inf, np.inf
    slope, bend, wall_g, wall_H = np.empty(n), np.empty(n), np.empty(d), np.empty((d, d))
    for _ in range(80):
        f = theta @ D
        value = loss_at(f, c1, c0)
        slopes_at(f, c1, c0, slope, bend)
        grad, H = D @ slope, (D * bend) @ D.T
        wall_slopes(theta, cone, wall_g, wall_H)
        step = newton_step(H + mu * wall_H, grad + mu * wall_g)
        decrement = -(step @ (grad + mu * wall_g))
        if decrement < 0.5 * mu * n_walls:
            # near enough to the central path for a bound, then a lower wall
            exact = theta.copy()
            exact[0] = best_offset(f - theta[0], c1, c0, theta[0], slope, bend)
            here = loss_at(f - theta[0] + exact[0], c1, c0)
            bound = max(bound, cone_bound(here, exact, D @ slope, cone, largest_offset))
            if bound >= cutoff or here - bound < tol:
                break
            mu *= 0.2 if decrement < 0.1 * mu * n_walls else 0.5
            if mu * n_walls < 1e-14:
                break
            step = newton_step(H + mu * wall_H, grad + mu * wall_g)
        slant = float(step @ (grad + mu * wall_g))
        t = step_down(value, theta, step, slant, D, c1, c0, mu, cone)
        if t == 0.0:
            break
        theta = theta + t * step
    w = theta[1] * lower
    for m in range(len(cone.free)):
        w[cone.free[m]] = theta[m + 2]
    return bound, value, theta[1], theta[0], w


@njit(cache=True)
def covered(points: Floats, cover: Mask) -> bool:
    """Whether every group of ``cover`` has an item with points."""
    for g in range(len(cover)):
        found = False
        for j in range(len(points)):
            if cover[g, j] and points[j] != 0:
                found = True
        if not found:
            return False
    return True


@njit(cache=True)
def search_points(
    Z: Floats,
    c1: Floats,
    c0: Floats,
    lo: Floats,
    hi: Floats,
    cover: Mask,
    most: float,
    best: float,
    gap: float,
    n_nodes: int,
    tol: float,
) -> tuple[float, float, float, Floats, float, int]:
    """The best points of one support by branch and bound on the lattice.

    Only cards with a loss below ``best`` are kept; what is left out has a loss of at least
    ``(1 - gap)`` times the best one known then. Returns (loss, a, b, points, bound, nodes):
    ``bound`` is below the loss of every feasible card of the support.
    """
    k = Z.shape[1]
    size = 64 + 8 * k * (2 + int(np.log2((hi - lo).max() + 2.0)))
    low, high = np.zeros((size, k)), np.zeros((size, k))
    parent = np.full(size, -np.inf)
    low[0], high[0] = lo, hi
    depth, bound, nodes = 1, np.inf, 0
    points, best_a, best_b = np.zeros(k), 0.0, 0.0
    while depth > 0:
        depth -= 1
        lower, upper, above = low[depth].copy(), high[depth].copy(), parent[depth]
        if nodes >= n_nodes or depth + 2 >= size:
            bound = min(bound, above)
            continue
        nodes += 1
        hopeless = False
        for g in range(len(cover)):
            left = False
            for j in range(k):
                left = left or (cover[g, j] and (lower[j] != 0 or upper[j] != 0))
            hopeless = hopeless or not left
        if hopeless:
            continue
        if (lower == upper).all():
            if covered(lower, cover):
                value, a, b = fit_multiplier(Z @ lower, c1, c0, most)
                bound = min(bound, value)
                if value < best:
                    best, best_a, best_b, points = value, a, b, lower.copy()
            continue
        cutoff = best * (1.0 - gap) - tol
        lb, _value, a, _b, w = relax_cells(Z, c1, c0, lower, upper, most, cutoff, 0.1 * tol)
        lb = max(lb, above)
        if lb >= cutoff:
            bound = min(bound, lb)
            continue
        ratio = np.minimum(np.maximum(w / max(a, 1e-12), lower), upper)
        near = np.minimum(np.maximum(np.rint(ratio), lower), upper)
        if covered(near, cover):
            value, own_a, own_b = fit_multiplier(Z @ near, c1, c0, most)
            if value < best:
                best, best_a, best_b, points = value, own_a, own_b, near.copy()
        # the item whose rounding moves the scores most
        pick, worst = -1, -1.0
        for j in range(k):
            if upper[j] > lower[j]:
                off = abs(ratio[j] - near[j]) + 1e-3 * (upper[j] - lower[j])
                if off > worst:
                    pick, worst = j, off
        cut = min(max(np.floor(ratio[pick]), lower[pick]), upper[pick] - 1.0)
        nearer = 1 if ratio[pick] - cut > 0.5 else 0
        for side in (1 - nearer, nearer):  # the last one put on the stack is taken first
            low[depth], high[depth], parent[depth] = lower, upper, lb
            if side == 0:
                high[depth, pick] = cut
            else:
                low[depth, pick] = cut + 1.0
            depth += 1
    return best, best_a, best_b, points, bound, nodes


@njit(cache=True)
def bounds_of_one_more(
    X: Any,
    pos: Floats,
    neg: Floats,
    code: Ints,
    k: int,
    candidates: Ints,
    lo: Floats,
    hi: Floats,
    most: float,
    cutoff: float,
    tol: float,
) -> tuple[Floats, Floats]:
    """For every candidate j: the bound of the support with j as its last item."""
    out = np.empty(len(candidates))
    value = np.empty(len(candidates))
    grown = np.empty_like(code)
    lower, upper = np.empty(k + 1), np.empty(k + 1)
    for c in range(len(candidates)):
        x = X[candidates[c]]
        for i in range(len(code)):
            grown[i] = code[i] + (x[i] << k)
        Z, c1, c0 = cells_of(grown, pos, neg, k + 1)
        lower[:k], upper[:k] = lo[:k], hi[:k]
        lower[k], upper[k] = lo[k + c], hi[k + c]
        out[c], value[c], _a, _b, _w = relax_cells(Z, c1, c0, lower, upper, most, cutoff, tol)
    return out, value


@njit(cache=True)
def least_cost(totals: Ints, yes: Floats, no: Floats) -> tuple[float, int]:
    """Least cost of saying yes from some total on, and that total."""
    low, high = totals.min(), totals.max()
    gain = np.zeros(high - low + 2)
    cost = 0.0
    for i in range(len(totals)):
        gain[totals[i] - low] += no[i] - yes[i]
        cost += yes[i]
    best, threshold = cost, low
    for t in range(high - low + 1):  # from the total after this one on
        cost += gain[t]
        if cost < best - 1e-15:
            best, threshold = cost, low + t + 1
    return best, threshold
