"""Least second moment at a mean margin: the programs of CqBoost and MinCq.

The mean margin mu of the vote is chosen by held-out loss or by a PAC-Bayes bound along a path from
one voter to least squares, or given. Weights that sum to one walk along a penalty
(:class:`MomentProgram`), quasi-uniform ones in a box (:class:`BoxProgram`).

Classes of voters too large to list take part by column generation: price, enter, re-optimise. Every
master starts from the row weights +1/n: the slides' Algorithm 1 prints -1/m, for which the
first column picked is the voter of most negative mean margin and the restricted problem has no
solution.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from laconic._typing import Floats, Ints
from laconic.core.losses import Solution, WhyStopped
from laconic.votes import tuning
from laconic.votes.columns import Columns
from laconic.votes.criterion import MarginMoments, PacBayes
from laconic.votes.nnls import (
    TIE,
    ActiveSet,
    box_path,
    box_vote,
    largest_mean_margin,
    least_squares_vote,
    moment_gap,
    penalty_path,
    refuse_margin,
    sides_to_bounds,
    vote_at_mean_margin,
)
from laconic.votes.problem import Choice, Chosen, Curve, Listed, Problem, Program, Stages
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


@dataclass(frozen=True)
class MeanMarginProgram(Program):
    """What both programs share: how the mean margin is fixed.

    ``mu`` is a mean margin, "cv", "bound" or "least-squares"; ``share`` says that a number is a
    share of the largest mean margin.
    """

    constraint: str
    mu: float | str
    share: bool = False
    tol: float = 1e-8
    delta: float = 0.05

    @property
    def chooses(self) -> bool:
        return self.mu == "cv"

    def solve(self, problem: Problem, choice: Choice) -> tuple[Solution, Curve]:
        if self.mu == "bound":
            return self._by_bound(problem)
        if isinstance(self.mu, str):
            places = self.places(problem)
            return self._at(problem, choice.place % len(places)), choice.curve
        return self._at_margin(problem, self._margin(problem)), choice.curve

    def _margin(self, problem: Problem) -> float:
        mu = float(self.mu)
        if not self.share:
            return mu
        if mu > 1.0:
            raise ValueError(f"mu is a share of its maximum here: in (0, 1], got {mu}.")
        return mu * self.largest_margin(problem)

    def _by_bound(self, problem: Problem) -> tuple[Solution, Curve]:
        """The vote of smallest tandem bound on the path: the bound holds for all votes at once."""
        best: Solution | None = None
        values: list[float] = []
        for found in self.follow(problem, self.places(problem)):
            columns, weights = problem.used(found)
            if len(weights) == 0:
                continue
            moments = MarginMoments(found.details["mean_margin"], found.value)
            divergence = self.divergence(problem, columns, weights)
            form = PacBayes(moments, problem.n_rows.copies, divergence, self.delta)
            values.append(form.tandem())
            if best is None or values[-1] < min(values[:-1]):
                best = found
            if not problem.listed and len(values) - int(np.argmin(values)) > tuning.PATIENCE:
                break
        assert best is not None
        return best, {"bound": values}

    def may_stop(self, losses: Sequence[float], n_held_out: float) -> bool:
        best, since = np.inf, 0
        for loss in losses:
            since = 0 if loss < (1.0 - tuning.WORTH) * best else since + 1
            best = min(best, loss)
        few = n_held_out < tuning.ENOUGH
        times = 3 if best >= tuning.PLATEAU * losses[0] else 2 if few else 1
        return since >= times * tuning.PATIENCE

    @abstractmethod
    def _at(self, problem: Problem, place: int) -> Solution:
        """The vote at a place of the path."""

    @abstractmethod
    def _at_margin(self, problem: Problem, mu: float) -> Solution:
        """The vote of a mean margin."""


@dataclass(frozen=True)
class MomentProgram(MeanMarginProgram):
    """Weights that sum to one ("sum-to-one", "oriented"), or without a sum ("slides")."""

    sides: str = "both"
    max_voters: int | None = None
    stop: float | None = None
    staged: bool = False

    @property
    def warns(self) -> bool:
        return self.max_voters is None and self.stop is None

    def places(self, problem: Problem) -> tuple[float, ...]:
        """Shares of the largest penalty, in larger steps where voters are priced."""
        shares = tuning.PENALTIES[:-1]
        if problem.smooth:
            shares += tuning.FINE_PENALTIES
        return (*shares[:: 1 if problem.listed else 2], 0.0)

    def follow(self, problem: Problem, places: Sequence[float]) -> Iterator[Solution]:
        if problem.listed:
            voters = problem.listed
            yield from penalty_path(
                voters.gram, voters.first, places, sides=problem.sides, tol=self.tol
            )
            return
        run = CqBoost(problem.priced, problem.sides)
        for share in places:
            yield run.solve(share * run.scale, tol=max(self.tol, tuning.ROUGH * share))

    def _at(self, problem: Problem, place: int) -> Solution:
        path = self.places(problem)
        tol = self.tol if self.stop is None else self.stop
        limit = self._limit(problem)
        if problem.listed:
            if limit is None and self.stop is not None:  # one voter at a time up to the stop
                limit = len(problem.listed.first)
            penalty = path[place] * problem.largest_margin
            return _least_squares(problem.listed, problem.sides, penalty, tol, limit)
        run = CqBoost(problem.priced, problem.sides)
        if limit is None:
            for share in path[:place]:
                run.solve(share * run.scale, tol=tuning.ROUGH * share)
        tol = max(tol, tuning.PRICED_TOL)
        return run.solve(path[place] * run.scale, tol=tol, max_voters=limit)

    def _limit(self, problem: Problem) -> int | None:
        return problem.most if self.max_voters is None else self.max_voters

    def _at_margin(self, problem: Problem, mu: float) -> Solution:
        if self.constraint == "slides":  # mu only scales the weights
            return self._at(problem, len(self.places(problem)) - 1)
        if not problem.listed:
            return self._priced_at_margin(problem, mu)
        voters, sides = problem.listed, problem.sides
        found = vote_at_mean_margin(voters.gram, voters.first, mu, sides=sides, tol=self.tol)
        limit = self._limit(problem)
        if limit is None:
            return found
        penalty = max(0.0, float(found.details["penalty"]))
        return _least_squares(voters, sides, penalty, self.tol, limit)

    def _priced_at_margin(self, problem: Problem, mu: float) -> Solution:
        """By bisection on the penalty, along which the mean margin grows."""
        largest = problem.largest_margin
        refuse_margin(mu, largest, "the mean margin of the best single voter")
        run = CqBoost(problem.priced, problem.sides)
        low, high = 0.0, 1.0
        found = run.solve(0.5 * run.scale, tol=1e-6)
        for _ in range(40):
            share = 0.5 * (low + high)
            found = run.solve(share * run.scale, tol=1e-6, max_voters=self.max_voters)
            apart = found.details["mean_margin"] - mu
            low, high = (share, high) if apart < 0.0 else (low, share)
            if abs(apart) <= tuning.PRICED_MARGIN * largest:
                break
        return found

    def like(self, problem: Problem, chosen: Chosen) -> Solution:
        """At the same share of the largest penalty."""
        share = max(chosen.share_of("penalty", 0.0), 0.0)
        if problem.listed:
            penalty = share * problem.largest_margin
            return _least_squares(problem.listed, problem.sides, penalty, 1e-8, self.max_voters)
        run = CqBoost(problem.priced, problem.sides)
        return run.solve(share * run.scale, tol=tuning.PRICED_TOL)

    def stages(self, problem: Problem, found: Solution) -> Stages:
        """The vote after each voter that enters, all weights optimal, up to the final size."""
        if not self.staged:
            return ()
        voters = problem.listed
        if voters is None:
            raise ValueError(
                f"staged=True needs a listed class of voters (at most {tuning.LISTED})."
            )
        bounds = sides_to_bounds(voters.first, problem.sides)
        state = ActiveSet(voters.gram, voters.first, *bounds)
        tol = self.tol * problem.largest_margin
        penalty = max(0.0, float(found.details["penalty"]))
        stages = []
        for size in range(1, int(np.count_nonzero(found.point)) + 1):
            state.minimise(penalty, tol=tol, max_free=size, one_at_a_time=True)
            used = np.flatnonzero(state.weights)
            stages.append((voters.ids[used], state.weights[used].copy()))
            if len(used) < size:
                break
        return tuple(stages)


def _least_squares(
    voters: Listed, sides: str, penalty: float, tol: float, limit: int | None
) -> Solution:
    return least_squares_vote(
        voters.gram, voters.first, sides=sides, penalty=penalty, tol=tol, max_voters=limit
    )


@dataclass(frozen=True)
class BoxProgram(MeanMarginProgram):
    """Quasi-uniform weights: a voter and its complement share 1/n, so that |w_i| <= 1/n."""

    boxed = True
    scaled = True

    def largest_margin(self, problem: Problem) -> float:
        """The mean, not the maximum, of the absolute mean margins."""
        voters = _all_of(problem)
        return float(voters.size @ np.abs(voters.first))

    def divergence(self, problem: Problem, columns: Ints, q: Floats) -> float:
        voters = _all_of(problem)
        net = np.zeros(len(voters.ids))
        net[np.searchsorted(voters.ids, columns)] = np.abs(q)
        # a voter and its complement hold (1 ± net/size)/2 of their common 1/n; copies share alike
        size = voters.size
        ratio = np.clip(net / size, 0.0, 1.0)
        return float(size @ sum(xlogy((1 + s * ratio) / 2, 1 + s * ratio) for s in (1, -1)))

    def places(self, problem: Problem) -> tuple[float, ...]:
        """Shares of the largest mean margin."""
        return tuning.MARGINS

    def follow(self, problem: Problem, places: Sequence[float]) -> Iterator[Solution]:
        voters = _all_of(problem)
        margins = [share * self.largest_margin(problem) for share in places]
        yield from box_path(voters.gram, voters.first, margins, voters.size, tol=self.tol)

    def _at(self, problem: Problem, place: int) -> Solution:
        share = self.places(problem)[place]
        return self._at_margin(problem, share * self.largest_margin(problem))

    def _at_margin(self, problem: Problem, mu: float) -> Solution:
        voters = _all_of(problem)
        return box_vote(voters.gram, voters.first, mu, voters.size, tol=self.tol)

    def like(self, problem: Problem, chosen: Chosen) -> Solution:
        """At the same share of the largest mean margin."""
        voters = _all_of(problem)
        mu = min(1.0, chosen.share_of("mean_margin", 0.5)) * self.largest_margin(problem)
        return box_vote(voters.gram, voters.first, mu, voters.size)


def _all_of(problem: Problem) -> Listed:
    assert problem.listed is not None  # a boxed program lists its voters
    return problem.listed
