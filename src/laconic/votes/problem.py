"""What is solved over the voters of one class against the rest, and what comes out of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import xlogy

from laconic._typing import Floats, Ints
from laconic.core.solution import Solution
from laconic.votes.column_generation import CqBoost
from laconic.votes.criterion import MarginMoments, PacBayes, divergence_from_uniform
from laconic.votes.nnls import (
    ActiveSet,
    box_path,
    box_vote,
    largest_mean_margin,
    least_squares_vote,
    penalty_path,
    sides_to_bounds,
    vote_at_mean_margin,
)

Fold = tuple[Ints, Ints]


@dataclass(frozen=True)
class Program:
    """What is solved: which sides of a voter may be used and what fixes the scale.

    ``mu`` is a mean margin, "cv", "bound" or "least-squares"; ``share`` says that a number is a
    share of the largest mean margin.
    """

    form: str
    sides: str
    mu: Any
    share: bool = False
    tol: float = 1e-8
    max_voters: int | None = None
    stop: float | None = None
    delta: float = 0.05
    staged: bool = False
    solvers: tuple[Callable[[Problem], Solution], ...] = ()

    @property
    def boxed(self) -> bool:
        return self.form == "quasi-uniform"


@dataclass(frozen=True)
class Chosen:
    """A vote over numbered columns, before it becomes voters."""

    columns: Ints
    weights: Floats
    solution: Solution
    mu_max: float
    n_candidates: float
    parked: float = 0.0
    held_out: Floats | None = None
    stages: tuple[tuple[Ints, Floats], ...] = ()
    curve: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Choice:
    """A place on the path (or among solvers) by held-out loss; -1, its end, without a choice."""

    place: int = -1
    loss: float = np.inf
    held_out: Floats | None = None
    curve: dict[str, list[float]] = field(default_factory=dict)


def logistic_of_margins(margins: Floats, weight: Floats) -> float:
    """Held-out logistic loss of margins after the best change of scale."""
    from scipy.optimize import minimize_scalar

    if not (margins > 0).any():
        return float(np.log(2.0))
    size = float(np.abs(margins).max())
    part, scaled = weight / weight.sum(), margins / size

    def loss(log_scale: float) -> float:
        return float(part @ np.logaddexp(0.0, -np.exp(log_scale) * scaled))

    best = minimize_scalar(loss, bounds=(-6.0, 8.0), method="bounded", options={"xatol": 1e-3})
    return min(float(best.fun), float(np.log(2.0)))


def rounds_of(folds: list[Fold]) -> list[list[Fold]]:
    """Folds in rounds that hold out no row twice: one, or as many as repeated folds have."""
    rounds: list[list[Fold]] = []
    seen: Ints = np.zeros(0, dtype=np.int64)
    for fold in folds:
        if not rounds or np.isin(fold[1], seen).any():
            rounds.append([])
            seen = np.zeros(0, dtype=np.int64)
        rounds[-1].append(fold)
        seen = np.concatenate([seen, fold[1]])
    return rounds


def held_by_round(margins: Floats, rounds: list[list[Fold]]) -> Iterator[tuple[Floats, Fold]]:
    """Every fold with the held-out margins of its round, to be filled."""
    for held, folds in zip(margins, rounds, strict=True):
        for fold in folds:
            yield held, fold


def mean_loss(margins: Floats, weight: Floats) -> Floats:
    """Held-out loss of every candidate, of margins (rounds, candidates, rows): mean over rounds.

    Losses and not margins are averaged: the mean of several votes is better than each of them,
    the more so the more they overfit.
    """
    losses = [[logistic_of_margins(row, weight) for row in held] for held in margins]
    mean: Floats = np.mean(losses, axis=0)
    return mean


# One class against the rest: the program over its voters, and how its free parameter is chosen.


LISTED = 1500
"""Classes up to this many voters are solved on their whole Gram matrix, larger ones are priced."""

PENALTIES = (*np.geomspace(0.9, 0.003, 25).tolist(), 0.0)
"""Shares of the largest penalty tried when mu is chosen, from one voter to least squares."""

FINE_PENALTIES = tuple(np.geomspace(1.5e-3, 1e-6, 11).tolist())
"""Tried before least squares when neighbouring voters are almost alike (kernels): most of their
path is there."""

MARGINS = (0.95, 0.8, 0.6, 0.45, 0.3, 0.2, 0.1, 0.03, 0.01, 0.003, 0.001)
"""Shares of the largest mean margin tried for quasi-uniform votes."""

ROUGH = 0.1
"""While mu is chosen over a priced class, slopes are solved to this share of the penalty."""

PRICED_TOL = 1e-4
"""Smallest relative tolerance on the slopes of a priced class: neighbouring thresholds are almost
the same voter, and exchanging them for ever smaller gains would take most of the time."""

PATIENCE = 2
"""Penalties without a better held-out loss after which a path over a priced class is left: twice
as many on fewer than ``ENOUGH`` held-out rows, which tell losses apart badly, three times as many
while the loss is above ``PLATEAU`` of the first one (one voter alone, at several penalties)."""

ENOUGH, PLATEAU = 2000, 0.95

WORTH = 2e-3
"""Relative gain of held-out loss that is worth going on for: the path doubles its voters a step."""


class Problem:
    """One class against the rest: moments or columns of all voters."""

    def __init__(self, prepared: Any, y: Floats, weight: Floats, k: int, program: Program) -> None:
        self.prepared, self.y, self.weight, self.k = prepared, y, weight, k
        sides = prepared.sides or program.sides
        self.program = replace(program, sides=sides)
        self.overlap: int | None = None
        self.columns: Any = None
        if prepared.out_of_bag:
            self.first, self.gram, self.overlap = prepared.moments(y, weight, k)
            if program.max_voters is None:
                self.program = replace(self.program, max_voters=prepared.most)
            self.ids = np.arange(len(self.first))
            self.copies = np.ones(len(self.first))
            self.listed = True
            return
        self.columns = prepared.columns(y, weight, k)
        self.listed = int(self.columns.offered.sum()) <= LISTED or program.boxed
        if self.listed:
            self.list_all()

    def list_all(self) -> None:
        n = int(self.columns.offered.sum())
        if n > 20_000:
            raise ValueError(
                f"This vote weighs every one of the {n} voters; offer at most 20000, for instance "
                "with fewer thresholds."
            )
        self.ids, copies = self.columns.distinct()
        self.copies = copies.astype(np.float64)
        self.first = self.columns.first_moment()[self.ids]
        self.gram = self.columns.full_gram(self.ids)

    @property
    def n_candidates(self) -> float:
        n = float(self.copies.sum()) if self.listed else float(self.columns.offered.sum())
        return 2.0 * n if self.program.sides in ("both", "oriented") or self.program.boxed else n

    @property
    def size(self) -> Floats:
        return self.copies / self.copies.sum()

    def mu_max(self) -> float:
        if self.program.boxed:
            return float(self.size @ np.abs(self.first))
        return largest_mean_margin(self._all_first(), self.program.sides)

    def _all_first(self) -> Floats:
        if self.listed:
            return self.first
        first: Floats = self.columns.first_moment()[self.columns.offered]
        return first

    @property
    def hopeless(self) -> bool:
        """No voter is better than chance, on any side that it may be used on."""
        first = self._all_first()
        if self.program.sides == "plain" and not self.program.boxed:
            return not bool((first > 0.0).any())
        return not bool(first.any())

    def _equal_vote(self) -> Chosen:
        warnings.warn(
            "No voter has a positive mean margin on the rows that judge it: there is nothing to "
            "weigh, and all voters vote alike; offer other voters or more rows.",
            UserWarning,
            stacklevel=8,
        )
        columns = self.ids if self.listed else np.flatnonzero(self.columns.offered)[:LISTED]
        weights = np.full(len(columns), 1.0 / len(columns))
        gram = self.gram if self.listed else self.columns.full_gram(columns)
        second = float(weights @ gram @ weights)  # the best second moment is not below zero
        return Chosen(
            columns, weights, Solution(weights, second, second, 0, "gap"), 0.0, self.n_candidates
        )

    def solve(self, folds: list[tuple[Ints, Ints]]) -> Chosen:
        """The vote of the program, with its free parameter chosen if it is to be."""
        return self.solve_at(self.choose(folds))

    def choose(self, folds: list[tuple[Ints, Ints]]) -> Choice:
        """The place of least held-out loss, where the program leaves a choice."""
        if self.hopeless or self.prepared.out_of_bag:  # such moments are held-out already
            return Choice()
        if self.program.solvers:
            return self._solver_by_folds(folds)
        if self.program.mu != "cv":
            return Choice()
        place, held_out, curve = self._by_folds(folds)
        return Choice(place, min(curve.get("held_out_loss", [np.inf])), held_out, curve)

    def solve_at(self, choice: Choice) -> Chosen:
        """The vote at a chosen place."""
        if self.hopeless:
            return self._equal_vote()
        mu, curve = self.program.mu, choice.curve
        if self.program.solvers:
            found = self.program.solvers[max(choice.place, 0)](self)
        elif mu == "bound":
            found, curve = self._by_bound()
        elif isinstance(mu, str):
            found = self._at(choice.place % len(self.path))
        else:
            found = self._at_margin(float(mu))
        columns, weights = self.used_columns(found)
        stages = self._stages(found) if self.program.staged else ()
        return Chosen(
            columns,
            weights,
            found,
            self.mu_max(),
            self.n_candidates,
            float(found.details.get("parked", 0.0)),
            choice.held_out,
            stages,
            curve,
        )

    def used_columns(self, found: Solution) -> tuple[Ints, Floats]:
        used = np.flatnonzero(found.point)
        where = found.details.get("columns", self.ids if self.listed else None)
        return where[used], found.point[used]

    def _path(self, problem: Problem) -> Iterator[Solution]:
        program = self.program
        if program.boxed:
            margins = [share * problem.mu_max() for share in MARGINS]
            yield from box_path(problem.gram, problem.first, margins, problem.size, tol=program.tol)
        elif problem.listed:
            yield from penalty_path(
                problem.gram, problem.first, self.path, sides=program.sides, tol=program.tol
            )
        else:
            run = CqBoost(problem.columns, program.sides)
            for share in self.path:
                yield run.solve(share * run.scale, tol=max(program.tol, ROUGH * share))

    @property
    def path(self) -> tuple[float, ...]:
        """What is tried when mu is chosen."""
        if self.program.boxed:
            return MARGINS
        shares = PENALTIES[:-1]
        if getattr(self.prepared, "smooth", False):
            shares += FINE_PENALTIES
        return (*shares[:: 1 if self.listed else 2], 0.0)  # larger steps where voters are priced

    def _by_folds(
        self, folds: list[tuple[Ints, Ints]]
    ) -> tuple[int, Floats | None, dict[str, list[float]]]:
        """Place on the path of least held-out loss, and the held-out margins there."""
        rounds = rounds_of(folds)
        margins = np.zeros((len(rounds), len(self.path), len(self.y)))
        reached = len(self.path)
        for held, (train, test) in held_by_round(margins, rounds):
            if len(np.unique(self.y[train])) < 2:
                continue
            inner, outer, _ = self.prepared.split(self.y, self.weight, self.k, train, test)
            reached = min(reached, self._follow(inner, outer, test, held[:reached]))
        if not folds or reached == 0:
            return -1, None, {}
        losses = mean_loss(margins[:, :reached], self.weight)
        place = int(np.argmin(losses))
        curve = {"share": list(self.path[:reached]), "held_out_loss": losses.tolist()}
        return place, margins[0, place], curve

    def _follow(self, inner: Any, outer: Any, test: Ints, margins: Floats) -> int:
        """Fill held-out margins along the path of one fold; returns how far it went."""
        problem = Problem(
            FixedColumns(inner, self.program.sides), inner.y, inner.weight, 0, self.program
        )
        if problem.hopeless:
            return len(margins)
        start, best, since, i = np.inf, np.inf, 0, -1
        few = float(self.weight[test].sum()) < ENOUGH
        for i, found in enumerate(self._path(problem)):
            if i >= len(margins):
                return i
            columns, weights = problem.used_columns(found)
            margins[i, test] = outer.scores(columns, weights) * outer.y
            if not problem.listed:
                loss = logistic_of_margins(margins[i, test], outer.weight)
                if i == 0:
                    start = loss
                since = 0 if loss < (1.0 - WORTH) * best else since + 1
                best = min(best, loss)
                times = 3 if best >= PLATEAU * start else 2 if few else 1
                if since >= times * PATIENCE:
                    break
        return i + 1

    def _solver_by_folds(self, folds: list[tuple[Ints, Ints]]) -> Choice:
        """Which of several solvers has the least held-out loss, and its held-out margins."""
        solvers = self.program.solvers
        if not folds:
            return Choice()
        rounds = rounds_of(folds)
        margins = np.zeros((len(rounds), len(solvers), len(self.y)))
        for held, (train, test) in held_by_round(margins, rounds):
            inner, outer, _ = self.prepared.split(self.y, self.weight, self.k, train, test)
            fixed = FixedColumns(inner, self.program.sides)
            part = Problem(fixed, inner.y, inner.weight * len(train), 0, self.program)
            if len(np.unique(inner.y)) < 2 or part.hopeless:
                continue
            for i, solver in enumerate(solvers):
                columns, weights = part.used_columns(solver(part))
                total = np.abs(weights).sum() or 1.0
                held[i, test] = outer.scores(columns, weights / total) * outer.y
        losses = mean_loss(margins, self.weight)
        place = int(np.argmin(losses))
        return Choice(place, float(losses[place]), margins[0, place])

    def _by_bound(self) -> tuple[Solution, dict[str, list[float]]]:
        """The vote of smallest tandem bound on the path: the bound holds for all votes at once."""
        best: Solution | None = None
        values: list[float] = []
        for found in self._path(self):
            used = self.used_columns(found)
            if len(used[1]) == 0:
                continue
            moments = MarginMoments(found.details["mean_margin"], found.value)
            form = PacBayes(moments, self.n_independent, self.divergence(*used), self.program.delta)
            values.append(form.tandem())
            if best is None or values[-1] < min(values[:-1]):
                best = found
            if not self.listed and len(values) - int(np.argmin(values)) > PATIENCE:
                break
        assert best is not None
        return best, {"bound": values}

    def divergence(self, columns: Ints, weights: Floats) -> float:
        """KL of the vote to the uniform distribution over the voters on offer."""
        if not self.program.boxed:
            return divergence_from_uniform(weights, self.n_candidates)
        net = np.zeros(len(self.ids))
        net[np.searchsorted(self.ids, columns)] = np.abs(weights)
        # a voter and its complement hold (1 ± net/size)/2 of their common 1/n; copies share alike
        ratio = np.clip(net / self.size, 0.0, 1.0)
        return float(self.size @ sum(xlogy((1 + s * ratio) / 2, 1 + s * ratio) for s in (1, -1)))

    @property
    def n_independent(self) -> int:
        """Rows, a weight counting as that many, or the smallest out-of-bag overlap."""
        if self.overlap is not None:
            return self.overlap
        return max(1, round(float(self.weight.sum())))

    def _at(self, place: int) -> Solution:
        program = self.program
        if program.boxed:
            mu = MARGINS[place] * self.mu_max()
            return box_vote(self.gram, self.first, mu, self.size, tol=program.tol)
        share = self.path[place]
        tol = program.tol if program.stop is None else program.stop
        if self.listed:
            scale = largest_mean_margin(self.first, program.sides)
            limit = program.max_voters
            if limit is None and program.stop is not None:
                limit = len(self.first)
            return least_squares_vote(
                self.gram,
                self.first,
                sides=program.sides,
                penalty=share * scale,
                tol=tol,
                max_voters=limit,
            )
        run = CqBoost(self.columns, program.sides)
        if program.max_voters is None:
            for step in self.path[:place]:
                run.solve(step * run.scale, tol=ROUGH * step)
        return run.solve(share * run.scale, tol=max(tol, PRICED_TOL), max_voters=program.max_voters)

    def _at_margin(self, mu: float) -> Solution:
        program = self.program
        largest = self.mu_max()
        if program.share:
            if not 0.0 < mu <= 1.0:
                raise ValueError(f"mu is a share of its maximum here: in (0, 1], got {mu}.")
            mu = mu * largest
        if mu <= 0.0:
            raise ValueError(f"mu must be positive, got {mu}.")
        if program.boxed:
            return box_vote(self.gram, self.first, mu, self.size, tol=program.tol)
        if program.form == "slides":  # mu only scales the weights
            return self._at(len(self.path) - 1)
        if not self.listed:
            return self._priced_at_margin(mu, largest)
        found = vote_at_mean_margin(self.gram, self.first, mu, sides=program.sides, tol=program.tol)
        if program.max_voters is None:
            return found
        return least_squares_vote(
            self.gram,
            self.first,
            sides=program.sides,
            penalty=max(0.0, float(found.details["penalty"])),
            tol=program.tol,
            max_voters=program.max_voters,
        )

    def _priced_at_margin(self, mu: float, largest: float) -> Solution:
        if mu > largest * (1 + 1e-12):
            raise ValueError(
                f"mu={mu:.6g} is above its maximum {largest:.6g}, the mean margin of the best "
                "single voter; choose a smaller mu, or give it as a share of the maximum."
            )
        run = CqBoost(self.columns, self.program.sides)
        low, high = 0.0, 1.0
        found = run.solve(0.5 * run.scale, tol=1e-6)
        for _ in range(40):
            share = 0.5 * (low + high)
            found = run.solve(share * run.scale, tol=1e-6, max_voters=self.program.max_voters)
            if found.details["mean_margin"] < mu:
                low = share
            else:
                high = share
            if abs(found.details["mean_margin"] - mu) <= 1e-4 * largest:
                break
        return found

    def _stages(self, found: Solution) -> tuple[tuple[Ints, Floats], ...]:
        """The vote after each voter that enters, all weights optimal, up to the final size."""
        if not self.listed or self.program.boxed:
            raise ValueError(
                "staged=True needs a listed class of voters (at most "
                f"{LISTED}) and a form other than 'quasi-uniform'."
            )
        bounds = sides_to_bounds(self.first, self.program.sides)
        state = ActiveSet(self.gram, self.first, *bounds)
        scale = largest_mean_margin(self.first, self.program.sides)
        stages = []
        for size in range(1, int(np.count_nonzero(found.point)) + 1):
            penalty = max(0.0, float(found.details["penalty"]))
            state.minimise(penalty, tol=self.program.tol * scale, max_free=size, one_at_a_time=True)
            used = np.flatnonzero(state.weights)
            stages.append((self.ids[used], state.weights[used].copy()))
            if len(used) < size:
                break
        return tuple(stages)


class FixedColumns:
    """Columns that are there already, seen as prepared voters (the training part of a fold)."""

    out_of_bag = False

    def __init__(self, columns: Any, sides: str) -> None:
        self.inner, self.sides = columns, sides

    def columns(self, y: Floats, weight: Floats, k: int) -> Any:
        return self.inner
