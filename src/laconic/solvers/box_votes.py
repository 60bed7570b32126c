"""Quasi-uniform MinCq: least squares in a box, found by the same active set.

min w'Gw subject to a'w = mu and |w_i| <= size_i (Laviolette, Marchand, Roy 2011, in net weights).
For small mu no bound is active and this is ordinary least squares of the labels on the votes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from laconic.solvers.nnls import ActiveSet, why_stopped
from laconic.solvers.solution import Solution

Floats = NDArray[np.float64]


def box_vote(
    gram: Floats, first: Floats, mu: float, size: Floats, *, tol: float = 1e-8
) -> Solution:
    """min w'Gw subject to a'w = mu and |w_i| <= size_i: the quasi-uniform MinCq.

    ``size`` is 1/n for each of n voters (k/n for a voter that stands for k copies). Feasible only
    up to mu = Σ size_i |a_i|, which is the mean, not the maximum, of the |a_i|.
    """
    return next(box_path(gram, first, [mu], size, tol=tol))


def box_path(
    gram: Floats, first: Floats, margins: Sequence[float], size: Floats, *, tol: float = 1e-8
) -> Iterator[Solution]:
    """Quasi-uniform votes at several mean margins, each started from the one before.

    In the scale v = w/θ the problem is ½ v'Gv - a'v on the box |v_i| <= size_i/θ, and the mean
    margin θ a'v falls as the box grows: θ is found by bisection on that.
    """
    largest = float(size @ np.abs(first))
    scale = float(np.abs(first).max(initial=0.0))
    if largest <= 0.0:
        raise ValueError("No voter has a non-zero mean margin; offer other voters.")
    for mu in margins:
        if mu > largest * (1.0 + 1e-12):
            raise ValueError(
                f"mu={mu:.6g} is above its maximum {largest:.6g}, the mean of the voters' absolute "
                "mean margins (quasi-uniform votes); choose a smaller mu, or give it as a share "
                "of the maximum."
            )
    state = ActiveSet(gram, first, -size, size.copy())
    for mu in margins:
        yield _box_at(state, first, mu, size, tol * scale, largest)


def _box_at(
    state: ActiveSet, first: Floats, mu: float, size: Floats, tol: float, largest: float
) -> Solution:
    if mu >= largest * (1.0 - 1e-12):
        w = size * np.sign(first)
        second = float(w @ state.gram @ w)
        details = {"mean_margin": largest, "slopes": first - state.gram @ w, "multiplier": np.inf}
        return Solution(w, second, 0.0, 0, "gap", details)
    # the unbounded solution is inside the box when θ is small enough: then any θ gives mu
    low, high, theta = 0.0, np.inf, 1.0
    status = 0
    for _ in range(300):
        _rescale_box(state, size / theta)
        # ten times the voters: beyond that it turns in circles within rounding, and the gap decides
        status = state.minimise(0.0, tol=tol, max_sweeps=max(1000, 10 * state.n))
        margin = theta * float(first @ state.weights)
        if abs(margin - mu) <= 1e-13 * largest or high - low <= 1e-14 * theta:
            break
        if margin < mu:
            low = theta
        else:
            high = theta
        guess = _box_support_theta(state, size, first, mu)
        if not low < guess < high:
            guess = 0.5 * (low + high) if np.isfinite(high) else 2.0 * theta
        theta = guess
    slopes = state.slopes()
    w = theta * state.weights
    gap = 2.0 * theta * (float(size @ np.abs(slopes)) - float(slopes @ w))
    gap = max(0.0, gap)
    details = {"mean_margin": float(first @ w), "slopes": slopes, "multiplier": theta}
    second = float(w @ state.gram @ w)
    why = why_stopped(status, gap, max(4.0 * theta * tol, 1e-7 * second))
    return Solution(w, second, gap, state.sweeps, why, details)


def _rescale_box(state: ActiveSet, bound: Floats) -> None:
    at_bound = np.abs(state.weights) >= state.upper * (1.0 - 1e-12)
    free_now = np.zeros(state.n, dtype=bool)
    free_now[state.free] = True
    weights = np.where(at_bound & ~free_now, np.sign(state.weights) * bound, state.weights)
    weights = np.clip(weights, -bound, bound)
    free = state.free
    free = free[np.abs(weights[free]) < bound[free]]
    state.lower, state.upper = -bound, bound.copy()
    if len(free) == state.k:  # the same free variables: their factor still holds
        state.weights[:] = weights
    else:
        state.restart(weights, free)


def _box_support_theta(state: ActiveSet, size: Floats, first: Floats, mu: float) -> float:
    """θ at which the present partition (free, at +size, at -size) has mean margin mu.

    With the bound part w_N = ±size fixed, w_F = θ p - r where G_FF p = a_F, G_FF r = G_FN w_N.
    """
    from scipy.linalg import cho_solve

    free = state.free
    fixed = np.sign(state.weights) * size * (np.abs(state.weights) >= state.upper * (1 - 1e-12))
    fixed[free] = 0.0
    inner = mu - float(first @ fixed)
    if len(free) == 0:
        return np.nan
    rhs = np.column_stack([first[free], state.gram[free] @ fixed])
    solved = cho_solve((state.factor[: state.k, : state.k], False), rhs)
    a_p, a_r = first[free] @ solved
    return float((inner + a_r) / a_p) if a_p != 0.0 else np.nan
