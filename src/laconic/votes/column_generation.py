"""Votes over classes of voters too large to list: price, enter, re-optimise.

Every master starts from the row weights +1/n: the slides' Algorithm 1 prints -1/m, for which the
first column picked is the voter of most negative mean margin and the restricted problem has no
solution.
"""

from __future__ import annotations

import numpy as np

from laconic._typing import Floats, Ints
from laconic.core.solution import Solution, WhyStopped
from laconic.votes.columns import Columns
from laconic.votes.criterion import MarginMoments
from laconic.votes.nnls import TIE, ActiveSet, largest_mean_margin, moment_gap, sides_to_bounds
from laconic.votes.tuning import BLOCK_SHARE


class CqBoost:
    """Column generation for ½ w'Gw - a'w + penalty·Σ|w|, warm from one penalty to the next.

    The row weights of the pricing pass are y - vote, a positive multiple of the slides' dual
    vector α = (2/m)(mu2/mu1 - margin); the edge is the slope of the objective, and entering the
    column of largest edge is the entering rule of the active set, so both are one algorithm.
    """

    def __init__(self, columns: Columns, sides: str) -> None:
        self.columns = columns
        self.first = columns.first_moment()
        self.scale = largest_mean_margin(self.first, sides)
        self.lower, self.upper = sides_to_bounds(self.first, sides)
        # not yet entered, and on a side that may be used
        self.no_up, self.no_down = self.upper <= 0.0, self.lower >= 0.0
        self.groups = columns.groups()
        self.n_groups = int(self.groups.max()) + 1
        self.entered = np.zeros(0, dtype=np.int64)
        self.state = ActiveSet(np.zeros((0, 0)), np.zeros(0), np.zeros(0), np.zeros(0))
        self.passes = 0

    @property
    def weights(self) -> Floats:
        return self.state.weights

    def _candidates(self, slopes: Floats, penalty: float, tol: float, limit: int) -> Ints:
        """The steepest new voter of every feature, if nearly as steep as the best."""
        from laconic.votes._numba import steepest_by_group

        pull = np.zeros(self.n_groups)
        place = np.full(self.n_groups, -1, dtype=np.int64)
        steepest_by_group(slopes, penalty, self.no_up, self.no_down, self.groups, TIE, pull, place)
        best = pull.max()
        if best <= tol:
            return np.zeros(0, dtype=np.int64)
        steep = np.flatnonzero(pull >= max(BLOCK_SHARE * best, tol))
        ranked = np.lexsort((place[steep], -np.floor(pull[steep] / (TIE * best))))
        return np.asarray(place[steep][ranked][:limit])

    def _enter(self, new: Ints) -> None:
        every = np.concatenate([self.entered, new])
        rows = self.columns.gram(new, every)
        old = len(self.entered)
        self.state.add(
            rows[:, :old], rows[:, old:], self.first[new], self.lower[new], self.upper[new]
        )
        self.entered = every
        self.no_up[new] = self.no_down[new] = True  # the active set moves it from now on

    def solve(
        self,
        penalty: float = 0.0,
        *,
        tol: float = 1e-8,
        max_voters: int | None = None,
        max_passes: int = 10_000,
    ) -> Solution:
        """Optimise at one penalty from the present vote; ``tol`` is relative to max a."""
        goal = tol * self.scale
        why: WhyStopped = "max_iter"
        slopes = self.first
        if len(self.entered):  # the penalty may have moved since
            self.state.minimise(penalty, tol=0.1 * goal)
        for _ in range(max_passes):
            slopes = self.columns.slopes(self.entered, self.weights)
            self.passes += 1
            used = int(np.count_nonzero(self.weights))
            if max_voters is not None and used >= max_voters:
                why = "budget"
                break
            limit = 1 if max_voters is not None else 1 + used // 2
            new = self._candidates(slopes, penalty, goal, limit)
            # the outside is done; the inside is solved to rounding by the active set
            if len(new) == 0:
                why = "gap"
                break
            self._enter(new)
            self.state.minimise(penalty, tol=0.1 * goal)
        return self._solution(slopes, why, penalty)

    def _solution(self, slopes: Floats, why: WhyStopped, penalty: float) -> Solution:
        weights = self.weights.copy()
        total = float(np.abs(weights).sum())
        full = np.zeros(self.columns.n_columns)
        full[self.entered] = weights
        gap = moment_gap(slopes, full, self.lower, self.upper)
        gram = self.state.gram[: self.state.n, : self.state.n]
        mean, second = float(self.first @ full), float(weights @ gram @ weights)
        details = {
            "columns": self.entered.copy(),
            "mean_margin": mean / total if total else 0.0,
            "c_bound": MarginMoments(mean, second).c_bound(),
            "penalty": penalty,
            "theta": 1.0 / total if total else np.nan,
            "first_entered": int(self.entered[0]) if len(self.entered) else -1,
        }
        value = second / (total * total) if total else np.inf
        return Solution(weights, value, gap, self.passes, why, details)
