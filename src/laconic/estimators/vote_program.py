"""What is solved over the voters of one class against the rest, and what comes out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from laconic.solvers.solution import Solution

if TYPE_CHECKING:
    from laconic.estimators.vote_problem import Problem

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Fold = tuple[Indices, Indices]


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

    columns: Indices
    weights: Floats
    solution: Solution
    mu_max: float
    n_candidates: float
    parked: float = 0.0
    held_out: Floats | None = None
    stages: tuple[tuple[Indices, Floats], ...] = ()
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
    seen: Indices = np.zeros(0, dtype=np.int64)
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
