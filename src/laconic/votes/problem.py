"""One class against the rest: its voters by their moments, and what is solved over them."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from laconic._typing import Floats, Ints
from laconic.core.losses import Solution
from laconic.votes import tuning
from laconic.votes.columns import Columns
from laconic.votes.criterion import divergence_from_uniform, independent_rows
from laconic.votes.nnls import largest_mean_margin


@dataclass(frozen=True)
class Counted:
    """How many rows judge a vote.

    ``independent`` ones are what a bound may claim. To compare votes of one sample by their bounds
    a row of weight two counts as its two copies would: any choice is allowed, the bounds hold for
    all votes at once.
    """

    independent: int
    copies: int

    @staticmethod
    def of(total: float, heaviest: float) -> Counted:
        rows = independent_rows(total, heaviest)
        return Counted(rows, max(rows, round(min(total, 1e15))))


@dataclass(frozen=True)
class Listed:
    """Distinct voters by number, how many each stands for, mean margins and mean products."""

    ids: Ints
    copies: Floats
    first: Floats
    gram: Floats

    @staticmethod
    def of(columns: Columns) -> Listed:
        n = columns.n_columns
        if n > tuning.MOST_LISTED:
            raise ValueError(
                f"This vote weighs every one of the {n} voters; offer at most "
                f"{tuning.MOST_LISTED}, for instance with fewer thresholds."
            )
        ids, copies = columns.distinct()
        return Listed(ids, copies, columns.first_moment()[ids], columns.full_gram(ids))

    @property
    def size(self) -> Floats:
        """The share of the voters that each stands for."""
        return np.asarray(self.copies / self.copies.sum())


@dataclass(frozen=True)
class Problem:
    """Voters of one class against the rest, listed or priced as columns.

    Parameters
    ----------
    sides : {"plain", "both", "oriented"}
        On which sides a voter may be used.
    columns : Columns or None
        Votes on the rows; None when only moments are known (a scan, out-of-bag rows).
    listed : Listed or None
        None for a class of voters that is priced.
    weight : array
        Of the rows of ``columns``.
    n_rows : Counted
        What a PAC-Bayes bound may count.
    smooth : bool
        Whether neighbouring voters are almost alike.
    most : int or None
        Most voters of a vote, where the family of voters bounds them.
    """

    sides: str
    columns: Columns | None
    listed: Listed | None
    weight: Floats
    n_rows: Counted
    smooth: bool = False
    most: int | None = None

    @staticmethod
    def of_columns(
        columns: Columns, sides: str, weight: Floats, *, boxed: bool, smooth: bool = False
    ) -> Problem:
        """Listed when the voters are few, or a ``boxed`` program weighs every one of them."""
        listed = Listed.of(columns) if boxed or columns.n_columns <= tuning.LISTED else None
        rows = Counted.of(float(weight.sum()), float(weight.max()))
        return Problem(sides, columns, listed, weight, rows, smooth)

    @property
    def priced(self) -> Columns:
        if self.columns is None:
            raise ValueError("This vote weighs voters on the rows they are given.")
        return self.columns

    @property
    def first(self) -> Floats:
        """Mean margin of every voter."""
        return self.listed.first if self.listed else self.priced.first_moment()

    @property
    def n_voters(self) -> float:
        """Voters on offer, each side counted where both exist."""
        n = float(self.listed.copies.sum()) if self.listed else float(self.priced.n_columns)
        return n if self.sides == "plain" else 2.0 * n

    @property
    def largest_margin(self) -> float:
        """Mean margin of the best voter."""
        return largest_mean_margin(self.first, self.sides)

    @property
    def hopeless(self) -> bool:
        """No voter is better than chance, on any side that it may be used on."""
        return not bool((self.first > 0.0).any() if self.sides == "plain" else self.first.any())

    def numbers(self) -> Ints:
        """The distinct voters, by number."""
        return self.listed.ids if self.listed else self.priced.distinct()[0]

    def used(self, found: Solution) -> tuple[Ints, Floats]:
        """Numbers and weights of the voters that a solution uses."""
        used = np.flatnonzero(found.point)
        where = found.details.get("columns")
        return (self.numbers() if where is None else where)[used], found.point[used]


Stages = tuple[tuple[Ints, Floats], ...]
Curve = dict[str, list[float]]


@dataclass(frozen=True)
class Choice:
    """A place by held-out loss, with the held-out margins there; -1, the last, without a choice."""

    place: int = -1
    loss: float = np.inf
    held_out: Floats | None = None
    curve: Curve = field(default_factory=dict)


@dataclass(frozen=True)
class Chosen:
    """A vote over numbered voters, before it becomes voters."""

    columns: Ints
    weights: Floats
    solution: Solution
    mu_max: float
    choice: Choice
    stages: Stages = ()
    curve: Curve = field(default_factory=dict)

    @property
    def scale(self) -> float:
        return float(np.abs(self.weights).sum()) or 1.0

    def share_of(self, what: str, default: float) -> float:
        """A number of the solution in units of the largest mean margin."""
        return float(self.solution.details.get(what, default)) / (self.mu_max or 1.0)


class Program(ABC):
    """What is solved over the voters of a problem.

    The votes that a program has to choose from are numbered by ``places``; held-out rows choose
    one when ``chooses`` holds, and must when ``compares`` does. A ``boxed`` program weighs every
    voter on both sides. Weights that are not ``scaled`` become a distribution when they are
    divided by their sum; quasi-uniform net weights keep their scale, because the rest of the mass
    is on pairs (h, -h).
    """

    boxed = False
    scaled = False
    sides = "both"

    @property
    def chooses(self) -> bool:
        return True

    @property
    def compares(self) -> bool:
        return self.chooses

    @property
    def warns(self) -> bool:
        """Whether to stop before the optimum is a failure."""
        return True

    @abstractmethod
    def places(self, problem: Problem) -> tuple[float, ...]:
        """What tells apart the votes to choose from, in the order in which they are tried."""

    @abstractmethod
    def follow(self, problem: Problem, places: Sequence[float]) -> Iterator[Solution]:
        """Votes at these places, good enough to choose one."""

    @abstractmethod
    def solve(self, problem: Problem, choice: Choice) -> tuple[Solution, Curve]:
        """The vote at the chosen place, and what was measured to choose it."""

    @abstractmethod
    def like(self, problem: Problem, chosen: Chosen) -> Solution:
        """The vote of this problem that corresponds to one chosen for another."""

    def may_stop(self, losses: Sequence[float], n_held_out: float) -> bool:
        """Whether the places after these held-out losses of priced voters need not be tried."""
        return False

    def stages(self, problem: Problem, found: Solution) -> Stages:
        """The vote after each voter that enters, where it is remembered."""
        return ()

    def largest_margin(self, problem: Problem) -> float:
        """The largest mean margin that a vote of the program can have."""
        return problem.largest_margin

    def divergence(self, problem: Problem, columns: Ints, q: Floats) -> float:
        """KL of the vote to the uniform distribution over the voters on offer."""
        return divergence_from_uniform(q, problem.n_voters)


def solved(problem: Problem, program: Program, choice: Choice) -> Chosen:
    """The vote of the program at a chosen place."""
    if problem.hopeless:
        return equal_vote(problem)
    found, curve = program.solve(problem, choice)
    columns, weights = problem.used(found)
    stages = program.stages(problem, found)
    mu_max = program.largest_margin(problem)
    return Chosen(columns, weights, found, mu_max, choice, stages, curve)


def equal_vote(problem: Problem) -> Chosen:
    """All voters alike, with a warning: there is nothing to weigh."""
    warnings.warn(
        "No voter has a positive mean margin on the rows that judge it: there is nothing to "
        "weigh, and all voters vote alike; offer other voters or more rows.",
        UserWarning,
        stacklevel=8,
    )
    if problem.listed:
        columns, gram = problem.listed.ids, problem.listed.gram
    else:
        columns = np.arange(problem.priced.n_columns)[: tuning.LISTED]
        gram = problem.priced.full_gram(columns)
    weights = np.full(len(columns), 1.0 / len(columns))
    second = float(weights @ gram @ weights)  # the best second moment is not below zero
    return Chosen(columns, weights, Solution(weights, second, second, 0, "gap"), 0.0, Choice())
