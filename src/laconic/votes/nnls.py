"""Least squares under signs, bounds and a penalty: MinCq and every form of CqBoost.

With a = mean margin of each voter and G = their mean products, the vote of smallest C-bound is,
up to scale, the minimiser of ½ w'Gw - a'w over w >= 0 (non-negative least squares of the constant
one on the signed votes), and the minimum C-bound is its residual 1 - a'w. A penalty on Σ|w| gives
the version with Σq = 1 and mean margin mu, a box |w_i| <= b the quasi-uniform one. One active set
solves them all.

Certificate: a vote q = w/Σ|w| of mean margin mu is compared with every distribution of mean
margin at least mu over the same voters; the reported gap bounds the excess of its second moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from laconic._typing import Floats, Ints
from laconic.core.losses import Solution, WhyStopped
from laconic.votes.criterion import MarginMoments

OPTIMAL, OUT_OF_SWEEPS, FULL, STALLED, UNBOUNDED = range(5)
"""How the active set ended."""

TIE = 2.0**-34
"""Slopes that differ by less than this share are equal up to rounding: the first voter enters."""

ROUNDING = 1e-13
"""Second moments are means of numbers in [0, 1] and are not known better: a smaller gap is closed,
even when the voters are so alike that the whole second moment is of this size."""


def first_largest(values: Floats) -> int:
    """Place of the largest value, the first of those that rounding cannot tell from it.

    >>> first_largest(np.array([0.1, 0.3, 0.1 + 0.2]))
    1
    """
    largest = float(values.max())
    return int(np.argmax(values >= largest - TIE * abs(largest)))


class ActiveSet:
    """Warm state of the active set over columns that may grow.

    Parameters
    ----------
    gram, linear : arrays of shape (n, n) and (n,)
    lower, upper : arrays of shape (n,)
        Bounds of the weights: (0, inf) for plain voters, (-inf, inf) when the complement of a
        voter is a voter, one side only for oriented voters.
    """

    def __init__(self, gram: Floats, linear: Floats, lower: Floats, upper: Floats) -> None:
        self.n = len(linear)
        self.gram = np.ascontiguousarray(gram, dtype=np.float64)
        self.linear = np.asarray(linear, dtype=np.float64).copy()
        self.lower, self.upper = lower.astype(np.float64), upper.astype(np.float64)
        self.weights = np.zeros(self.n)
        self.side = np.zeros(self.n, dtype=np.int8)
        room = max(min(self.n, 64), 1)
        self.factor = np.zeros((room, room))
        self.order = np.zeros(max(self.n, 1) + 1, dtype=np.int64)
        self.k = 0
        self.sweeps = 0

    def minimise(
        self,
        penalty: float = 0.0,
        *,
        tol: float,
        max_sweeps: int = 100_000,
        max_free: int | None = None,
        one_at_a_time: bool = False,
    ) -> int:
        """Minimise from the present point; ``tol`` is absolute, on the slopes."""
        from laconic.votes._numba_nnls import active_set

        limit = self.n + 1 if max_free is None else max_free
        while True:
            room = min(limit, self.factor.shape[0])
            self.k, status, sweeps = active_set(
                self.gram,
                self.linear,
                float(penalty),
                self.lower,
                self.upper,
                self.weights,
                self.side,
                self.factor,
                self.order,
                self.k,
                self.n,
                float(tol),
                max_sweeps,
                room,
                one_at_a_time,
            )
            self.sweeps += sweeps
            if status != FULL or room >= min(limit, self.n):
                return int(status)
            self._widen()

    def _widen(self) -> None:
        room = min(max(self.n, 1), 2 * self.factor.shape[0])
        wider = np.zeros((room, room))
        wider[: self.k, : self.k] = self.factor[: self.k, : self.k]
        self.factor = wider

    def add(self, rows: Floats, diagonal: Floats, linear: Floats, lower: Any, upper: Any) -> None:
        """New columns: ``rows`` are their products with the present ones, then with themselves."""
        n, total = self.n, self.n + len(linear)
        if total > self.gram.shape[0]:
            wider = np.zeros((max(2 * self.gram.shape[0], total, 64),) * 2)
            wider[:n, :n] = self.gram[:n, :n]
            self.gram = wider
        self.gram[n:total, :n] = rows
        self.gram[:n, n:total] = rows.T
        self.gram[n:total, n:total] = diagonal
        self.linear = np.concatenate([self.linear, linear])
        self.lower = np.concatenate([self.lower, lower])
        self.upper = np.concatenate([self.upper, upper])
        self.weights = np.concatenate([self.weights, np.zeros(len(linear))])
        self.side = np.concatenate([self.side, np.zeros(len(linear), dtype=np.int8)])
        self.order = np.concatenate([self.order, np.zeros(len(linear), dtype=np.int64)])
        self.n = total

    def restart(self, weights: Floats, free: Ints) -> None:
        """Stand at ``weights`` with the given free variables (after the bounds have moved)."""
        from laconic.votes._numba_nnls import refactor

        self.weights[:] = weights
        while self.factor.shape[0] < len(free):
            self._widen()
        self.order[: len(free)] = free
        self.k = refactor(self.gram, self.factor, self.order, len(free))

    @property
    def free(self) -> Ints:
        return self.order[: self.k].copy()

    def slopes(self) -> Floats:
        """linear - Gw."""
        return np.asarray(self.linear - self.gram[: self.n, : self.n] @ self.weights)


def moment_gap(slopes: Floats, weights: Floats, lower: Floats, upper: Floats) -> float:
    """Excess of the second moment of q = w/Σ|w| over the best at its mean margin.

    Linearise the Lagrangian q'Gq - 2θ a'q, θ = 1/Σ|w|, at q and minimise over the simplex:
    gap = 2θ (max_j slope_j - slope'q). It does not depend on the penalty.
    """
    total = float(np.abs(weights).sum())
    if total == 0.0:
        return np.inf
    best = max(
        float(np.max(slopes, where=upper > 0, initial=-np.inf)),
        float(np.max(-slopes, where=lower < 0, initial=-np.inf)),
    )
    return max(0.0, 2.0 / total * (best - float(slopes @ weights) / total))


def why_stopped(status: int, gap: float, target: float) -> WhyStopped:
    if status == OPTIMAL or gap <= target:
        return "gap"
    if status == FULL:
        return "budget"
    return "max_iter" if status == OUT_OF_SWEEPS else "stalled"


def _solution(
    state: ActiveSet, status: int, tol: float, first: Floats, share: float = 1.0, **more: Any
) -> Solution:
    """The vote of a state whose linear term is ``share`` of ``first``, with its certificate.

    ``theta`` is half the multiplier of the mean margin in the scale of q = w/Σ|w|.
    """
    weights = state.weights.copy()
    total = np.abs(weights).sum()
    gap = moment_gap(state.slopes(), weights, state.lower, state.upper)
    q = weights / total if total > 0 else weights
    margin = float(first @ q)
    second = float(q @ state.gram[: state.n, : state.n] @ q)
    details = {
        "mean_margin": margin,
        "c_bound": MarginMoments(margin, second).c_bound(),
        "theta": share / total if total > 0 else np.nan,
        **more,
    }
    # the stop rule bounds every slope by tol, so the gap it stands for is 4 tol/Σ|w|
    goal = max(4.0 * tol / total, 1e-7 * second, ROUNDING) if total > 0 else 0.0
    why = why_stopped(status, gap, goal)
    return Solution(weights, second, gap, state.sweeps, why, details)


def sides_to_bounds(first: Floats, form: str) -> tuple[Floats, Floats]:
    """Sides on which a voter may be used: plain, self-complemented ("both") or oriented."""
    n = len(first)
    lower, upper = np.zeros(n), np.full(n, np.inf)
    if form == "both":
        lower[:] = -np.inf
    elif form == "oriented":
        lower[first < 0] = -np.inf
        upper[first <= 0] = 0.0
    elif form != "plain":
        raise ValueError(f"sides must be 'plain', 'both' or 'oriented', got {form!r}.")
    return lower, upper


def largest_mean_margin(first: Floats, sides: str) -> float:
    """Largest mean margin of a distribution over the voters: that of the best voter."""
    lower, upper = sides_to_bounds(first, sides)
    best = max(
        float(np.max(first, where=upper > 0, initial=-np.inf)),
        float(np.max(-first, where=lower < 0, initial=-np.inf)),
    )
    if best <= 0.0:
        raise ValueError(
            "No voter has a positive mean margin, so no vote can have one; offer other voters, or "
            "their complements."
        )
    return best


def refuse_margin(mu: float, largest: float, what: str) -> None:
    """A mean margin above the largest possible one has no vote."""
    if mu > largest * (1.0 + 1e-12):
        raise ValueError(
            f"mu={mu:.6g} is above its maximum {largest:.6g}, {what}; choose a smaller mu, or give "
            "it as a share of the maximum."
        )


def least_squares_vote(
    gram: Floats,
    first: Floats,
    *,
    sides: str = "plain",
    penalty: float = 0.0,
    tol: float = 1e-8,
    max_voters: int | None = None,
    max_sweeps: int = 100_000,
) -> Solution:
    """The vote w minimising ½ w'Gw - a'w + penalty·Σ|w|.

    ``penalty=0`` is MinCq of the slides (up to scale) and its C-bound 1 - a'w is the smallest
    possible. ``tol`` is relative to the largest mean margin: in the slides' scale the edges are
    proportional to mu, and a fixed threshold would silently stop early for small mu.

    ``max_voters`` adds the steepest voter and re-optimises all weights, one voter at a time,
    until that many are used.
    """
    scale = largest_mean_margin(first, sides)
    state = ActiveSet(gram, first, *sides_to_bounds(first, sides))
    status = state.minimise(
        penalty,
        tol=tol * scale,
        max_sweeps=max_sweeps,
        max_free=max_voters,
        one_at_a_time=max_voters is not None,
    )
    return _solution(state, status, tol * scale, first, penalty=penalty)


def penalty_path(
    gram: Floats,
    first: Floats,
    shares: Sequence[float],
    *,
    sides: str = "plain",
    tol: float = 1e-8,
) -> Iterator[Solution]:
    """Votes at decreasing penalties share·max(a), each started from the one before.

    A step takes far fewer sweeps than there are voters; one that does not end after ten times as
    many turns in circles between voters that rounding cannot tell apart, and is left there.
    """
    scale = largest_mean_margin(first, sides)
    state = ActiveSet(gram, first, *sides_to_bounds(first, sides))
    enough = max(1000, 10 * len(first))
    for share in shares:
        status = state.minimise(share * scale, tol=tol * scale, max_sweeps=enough)
        yield _solution(state, status, tol * scale, first, penalty=share * scale)


def vote_at_mean_margin(
    gram: Floats, first: Floats, mu: float, *, sides: str = "plain", tol: float = 1e-8
) -> Solution:
    """Least second moment among distributions (Σq = 1) of mean margin at least mu.

    Solved in the penalty: mu(penalty) = a'w/Σ|w| grows with it, and is a ratio of two lines as
    long as the support stays, which gives a Newton step that ends exactly. Below the margin of
    penalty 0 on a self-complemented class the surplus is parked on a pair (h, -h): the vote is
    that of penalty 0 and ``details["parked"]`` is the mass of the pair.
    """
    scale = largest_mean_margin(first, sides)
    refuse_margin(mu, scale, "the mean margin of the best single voter")
    state = ActiveSet(gram, first, *sides_to_bounds(first, sides))
    status = state.minimise(0.0, tol=tol * scale)
    margin = _mean_margin(first, state.weights)
    if mu <= margin:
        if sides == "both":
            return _solution(
                state, status, tol * scale, first, penalty=0.0, parked=1.0 - mu / margin
            )
        return _below_least_squares(state, first, mu, tol * scale)
    return _at_margin(state, first, mu, tol * scale, 0.0, scale, lambda t: (1.0, t))


def _below_least_squares(state: ActiveSet, first: Floats, mu: float, tol: float) -> Solution:
    """mu below the margin of penalty 0 without complements: the penalty becomes a reward.

    Stationarity reads Gw = (1-t)a + t1 with t in [0, 1]; t = 1 forgets the mean margin.
    """
    rest = ActiveSet(state.gram, np.zeros(state.n), state.lower, state.upper)
    status = rest.minimise(-1.0, tol=tol)
    margin = _mean_margin(first, rest.weights)
    if status == OPTIMAL and margin >= mu:
        return _solution(rest, status, tol, first, 0.0, penalty=-np.inf, parked=0.0)
    return _at_margin(state, first, mu, tol, -1.0, 0.0, lambda t: (1.0 + t, t))


def _at_margin(
    state: ActiveSet,
    first: Floats,
    mu: float,
    tol: float,
    low: float,
    high: float,
    program: Callable[[float], tuple[float, float]],
) -> Solution:
    """Search t in (low, high), along which the mean margin grows, for the margin mu.

    ``program(t)`` gives the share of ``first`` in the linear term and the penalty. Where the
    margin jumps, all mixtures of the two ends are optimal and one of them has margin mu.
    """
    width = high - low
    under: Floats | None = None
    over: Floats | None = state.weights.copy() if high == 0.0 else None
    if low == 0.0:
        under = state.weights.copy()
    t = 0.5 * (low + high)
    status = 0
    for turn in range(200):
        share, penalty = program(t)
        state.linear = share * first
        status = state.minimise(penalty, tol=tol)
        margin = _mean_margin(first, state.weights)
        if status != UNBOUNDED and abs(margin - mu) <= 1e-13 * np.abs(first).max():
            break
        if status == UNBOUNDED or margin < mu:
            low = t
            under = None if status == UNBOUNDED else state.weights.copy()
        else:
            high, over = t, state.weights.copy()
        if high - low <= 1e-14 * width:
            break
        guess = _support_penalty(state, first, mu) if share == 1.0 and turn % 2 == 0 else np.nan
        # Newton's guess on this support, or bisection where the support has changed too much
        t = guess if low < guess < high else 0.5 * (low + high)
    margin = _mean_margin(first, state.weights)
    if over is not None and abs(margin - mu) > 1e-12 * np.abs(first).max():
        # the margin jumps between under and over: their mixture of margin mu is optimal too
        mixed = over / np.abs(over).sum()
        if under is not None:
            rest = under / np.abs(under).sum()
            part = (mu - first @ rest) / (first @ mixed - first @ rest)
            scale = part / np.abs(over).sum() + (1.0 - part) / np.abs(under).sum()
            mixed = part * mixed + (1.0 - part) * rest
            state.weights[:] = mixed / scale
        else:
            state.weights[:] = over
        status = STALLED  # the gap decides
    # mixtures may hold a voter and its complement, whose votes cancel
    parked = 1.0 - mu / _mean_margin(first, state.weights)
    share, penalty = program(t)
    return _solution(
        state, status, tol, first, share, penalty=penalty, parked=0.0 if parked < 1e-9 else parked
    )


def _mean_margin(first: Floats, weights: Floats) -> float:
    total = float(np.abs(weights).sum())
    return float(first @ weights) / total if total > 0 else np.inf


def _support_penalty(state: ActiveSet, first: Floats, mu: float) -> float:
    """The penalty at which the present support has mean margin mu: w = p - penalty·r there."""
    from scipy.linalg import cho_solve

    if state.k == 0:
        return np.nan
    free = state.free
    side = state.side[free].astype(np.float64)
    rhs = np.column_stack([first[free], side])
    solved = cho_solve((state.factor[: state.k, : state.k], False), rhs)
    a_p, a_r = first[free] @ solved
    s_p, s_r = side @ solved
    # a'(p - penalty r) = mu s'(p - penalty r), solved for the penalty
    below = a_r - mu * s_r
    return float((a_p - mu * s_p) / below) if below != 0.0 else np.nan


def box_vote(
    gram: Floats, first: Floats, mu: float, size: Floats, *, tol: float = 1e-8
) -> Solution:
    """min w'Gw subject to a'w = mu and |w_i| <= size_i: the quasi-uniform MinCq.

    Laviolette, Marchand, Roy 2011, in net weights. ``size`` is 1/n for each of n voters (k/n for a
    voter that stands for k copies). Feasible only up to mu = Σ size_i |a_i|, which is the mean, not
    the maximum, of the |a_i|. For small mu no bound is active and this is ordinary least squares of
    the labels on the votes.
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
        refuse_margin(mu, largest, "the mean of the voters' absolute mean margins (quasi-uniform)")
    state = ActiveSet(gram, first, -size, size.copy())
    for mu in margins:
        yield _box_at(state, first, mu, size, tol * scale, largest)


def _box_at(
    state: ActiveSet, first: Floats, mu: float, size: Floats, tol: float, largest: float
) -> Solution:
    if mu >= largest * (1.0 - 1e-12):
        return _box_at_its_end(state.gram, first, size, tol)
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
    second = float(w @ state.gram @ w)
    why = why_stopped(status, gap, max(4.0 * theta * tol, 1e-7 * second))
    details = {"mean_margin": float(first @ w), "theta": theta}
    return Solution(w, second, gap, state.sweeps, why, details)


def _box_at_its_end(gram: Floats, first: Floats, size: Floats, tol: float) -> Solution:
    """The largest mean margin: voters that have one are at their bounds, the others choose."""
    idle = np.abs(first) <= ROUNDING * np.abs(first).max()
    w = np.where(idle, 0.0, size * np.sign(first))
    rest = ActiveSet(gram[np.ix_(idle, idle)], -gram[idle] @ w, -size[idle], size[idle])
    status = rest.minimise(0.0, tol=tol)
    w[idle] = rest.weights
    pull = gram @ w
    # the least multiplier under which no voter leaves its bound
    theta = float(np.max(pull[~idle] / first[~idle], initial=0.0))
    gap = max(0.0, 2.0 * float(size[idle] @ np.abs(pull[idle]) + pull[idle] @ w[idle]))
    second = float(w @ pull)
    why = why_stopped(status, gap, max(4.0 * tol, 1e-7 * second))
    return Solution(
        w, second, gap, rest.sweeps, why, {"mean_margin": float(first @ w), "theta": theta}
    )


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
