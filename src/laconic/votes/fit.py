"""From the rows of one class against the rest to a fitted vote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from laconic._typing import Floats, Ints
from laconic.core.forms import rounded_votes, vote_log_odds
from laconic.votes.columns import Columns
from laconic.votes.criterion import (
    MarginMoments,
    divergence_from_uniform,
    independent_rows,
    residual_c_bound,
)
from laconic.votes.nnls import least_squares_vote
from laconic.votes.problem import Choice, Chosen, Counted, Curve, Listed, Problem, Program, solved
from laconic.votes.tuning import STEEPEST_SLOPE
from laconic.votes.voters.base import (
    Classifiers,
    HardVoters,
    OutOfBagVoters,
    PreparedVoters,
    Voters,
)

Fold = tuple[Ints, Ints]


@dataclass(frozen=True)
class VoteDual:
    """A point of the dual of least second moment at a mean margin mu.

    With shares p_i of the rows (1/m without weights) and A_ij = y_i h_j(x_i) the program is
    min Σ p_i γ_i² over γ = Aq, p'γ >= mu, q >= 0, Σq = 1, and its dual

        max -¼ Σ α_i²/p_i - ½ β Σ α_i - ¼ β² - β mu - ν  subject to  A'α <= ν, β <= 0,

    that of the slides (where Σq is free, and ν = 0) with weights and the multiplier of Σq = 1. At
    the optimum α_i = 2 p_i (θ - γ_i) and β = -2θ: rows of small margin have a positive weight, the
    others a negative one. ``nu`` is the largest edge A_j'α of a voter; quasi-uniform votes have
    Σ_j |A_j'α| / n there. ``value`` is the dual's, the second moment less the duality gap.
    """

    alpha: Floats
    beta: float
    nu: float
    value: float


@dataclass(frozen=True)
class FittedVote:
    """A majority vote: voters, their weights (a distribution) and what is known about it.

    ``mu`` is the mean margin and ``n_columns`` counts the voters of the program, with the
    complement that a small mu parks surplus weight on. ``slope`` and ``intercept`` calibrate the
    log-odds of the vote.
    """

    voters: Any
    weights: Floats
    moments: MarginMoments
    c_bound: float
    duality_gap: float
    mu: float
    mu_max: float
    divergence: float
    n_independent: int
    assumption: str
    quasi_uniform: bool
    n_columns: int
    slope: float | None = None
    intercept: float = 0.0
    stages: tuple[tuple[Any, Floats], ...] = ()
    curve: Curve = field(default_factory=dict)
    tandem: bool = False
    theta: float = np.nan

    @property
    def beta(self) -> float:
        """Multiplier of the mean margin in the dual of the slides; NaN where there is none."""
        return -2.0 * self.theta

    def dual(self, margins: Floats, share: Floats) -> VoteDual:
        """The dual point at the margins of the training rows, whose shares sum to one."""
        alpha = 2.0 * share * (self.theta - margins)
        first, second = self.moments.first, self.moments.second
        nu = self.duality_gap - 2.0 * second + 2.0 * self.theta * first
        return VoteDual(alpha, self.beta, nu, second - self.duality_gap)

    def scores(self, table: Any, raw: Any) -> Floats:
        """The vote Σ q_j h_j(x), in [-1, 1]."""
        # summed voter by voter, so that a row's score does not depend on its batch
        votes = self.voters.votes(table, raw)
        total = np.zeros(len(votes))
        for k, weight in enumerate(self.weights):
            total += weight * votes[:, k]
        return rounded_votes(total)


@dataclass(frozen=True)
class HeldOut:
    """Votes on rows that had no part in them, their sides (-1, 1) and weights."""

    votes: Floats
    sides: Floats
    weight: Floats


class VoteRows(Protocol):
    """The rows that judge votes of one class against the rest, in memory or in a scan."""

    problem: Problem
    assumption: str

    def choose(self, program: Program) -> Choice:
        """The place of least held-out loss."""

    def moments(self, chosen: Chosen, q: Floats) -> tuple[MarginMoments, float]:
        """Moments of the margin and C-bound of a vote."""

    def held_out(self, program: Program, chosen: Chosen) -> HeldOut:
        """Votes fitted without the row, normalised as the final one."""

    def pick(self, columns: Ints, signs: Floats) -> Voters:
        """Numbered voters, each on its side."""


def fit_vote(rows: VoteRows, program: Program, *, calibrate: bool, who: str) -> FittedVote:
    """Solve one class against the rest and gather what the estimator shows."""
    choice = Choice()
    if program.chooses and not rows.problem.hopeless:
        choice = rows.choose(program)
    return fit_vote_at(rows, program, choice, calibrate=calibrate, who=who)


def fit_vote_at(
    rows: VoteRows, program: Program, choice: Choice, *, calibrate: bool, who: str
) -> FittedVote:
    """The vote at a chosen place."""
    problem = rows.problem
    chosen = solved(problem, program, choice)
    if program.warns and problem.most is None:
        chosen.solution.warn_if_short(who, "raise tol")
    q = chosen.weights / (1.0 if program.scaled else chosen.scale)
    moments, c_bound = rows.moments(chosen, q)
    slope, intercept = None, 0.0
    if calibrate:
        slope, intercept = calibration(rows.held_out(program, chosen))
    details = chosen.solution.details
    parked = float(details.get("parked", 0.0)) > 0.0
    # out-of-bag moments are means over other rows for every pair: no dual vector of the rows
    theta = float(details.get("theta", np.nan)) if problem.most is None else np.nan
    return FittedVote(
        rows.pick(chosen.columns, np.sign(q)),
        np.abs(q),
        moments,
        c_bound,
        float(chosen.solution.gap),
        moments.first,
        chosen.mu_max,
        program.divergence(problem, chosen.columns, q),
        problem.n_rows.independent,
        rows.assumption,
        program.boxed,
        len(q) + parked,
        slope,
        intercept,
        tuple(
            (rows.pick(columns, np.sign(w)), np.abs(w) / np.abs(w).sum())
            for columns, w in chosen.stages
        ),
        chosen.curve,
        theta=theta,
    )


def fit_best_option(
    prepared: PreparedVoters,
    program: Program,
    y: Floats,
    weight: Floats,
    k: int,
    folds: list[Fold],
    **how: Any,
) -> FittedVote:
    """The vote of the one family, or of the width of least held-out loss among several."""
    if not prepared.undecided:
        return fit_vote(RowsInMemory(prepared, program, y, weight, k, folds), program, **how)
    if not program.chooses:
        raise ValueError(
            "KernelVoters(gamma='cv') chooses the width by the loss on held-out rows, together "
            "with mu: give mu='cv', or a number for gamma."
        )
    best: tuple[Choice, RowsInMemory] | None = None
    for option in prepared.options():
        rows = RowsInMemory(option, program, y, weight, k, folds)
        choice = Choice() if rows.problem.hopeless else rows.choose(program)
        if best is None or choice.loss < best[0].loss:
            best = choice, rows
    assert best is not None
    return fit_vote_at(best[1], program, best[0], **how)


class RowsInMemory:
    """Rows in memory, held out in folds; voters of a forest are judged out of bag."""

    def __init__(
        self,
        prepared: PreparedVoters,
        program: Program,
        y: Floats,
        weight: Floats,
        k: int,
        folds: list[Fold],
    ) -> None:
        self.prepared, self.y, self.weight, self.k, self.folds = prepared, y, weight, k, folds
        self.assumption = prepared.assumption
        sides = program.sides if program.boxed else prepared.sides or program.sides
        if isinstance(prepared, OutOfBagVoters):
            first, gram, overlap = prepared.moments(y, weight, k)
            listed = Listed(np.arange(len(first)), np.ones(len(first)), first, gram)
            rows = Counted.of(overlap, float(weight.max()))
            self.problem = Problem(sides, None, listed, weight, rows, most=prepared.most)
        else:
            self.problem = Problem.of_columns(
                prepared.columns(y, weight, k),
                sides,
                weight,
                boxed=program.boxed,
                smooth=prepared.smooth,
            )

    def pick(self, columns: Ints, signs: Floats) -> Voters:
        return self.prepared.pick(columns, signs, self.k)

    def moments(self, chosen: Chosen, q: Floats) -> tuple[MarginMoments, float]:
        if self.problem.columns is not None:
            margins = self.y * self.problem.columns.scores(chosen.columns, q)
            moments = MarginMoments.of(margins, self.weight)
            return moments, residual_c_bound(margins, self.weight)
        voters, prepared = self.problem.listed, self.prepared
        assert voters is not None
        assert isinstance(prepared, OutOfBagVoters)
        # without what the forest added to the diagonal of its mean products
        spread = prepared.spread / (1.0 + prepared.spread) * float(np.trace(voters.gram))
        plain = voters.gram - spread / len(voters.gram) * np.eye(len(voters.gram))
        gram = plain[np.ix_(chosen.columns, chosen.columns)]
        moments = MarginMoments(float(voters.first[chosen.columns] @ q), float(q @ gram @ q))
        return moments, moments.c_bound()

    def _parts(self, program: Program) -> Iterator[tuple[Problem, Columns, Fold, int]]:
        """The problem without each fold, the voters on its rows, the fold and its round."""
        for fold, r in zip(self.folds, _rounds(self.folds), strict=True):
            train, test = fold
            if len(np.unique(self.y[train])) < 2:
                continue
            inner, outer = self.prepared.split(self.y, self.weight, self.k, train, test)
            part = Problem.of_columns(
                inner, self.problem.sides, self.weight[train], boxed=program.boxed
            )
            if not part.hopeless:
                yield part, outer, fold, r

    def choose(self, program: Program) -> Choice:
        places = program.places(self.problem)
        if isinstance(self.prepared, OutOfBagVoters) or not self.folds:
            return Choice()  # out-of-bag moments are held-out already
        margins = np.zeros((max(_rounds(self.folds)) + 1, len(places), len(self.y)))
        reached = len(places)
        for part, outer, (_, test), r in self._parts(program):
            tried, seen = 0, []
            for found in program.follow(part, places[:reached]):
                margins[r, tried, test] = outer.scores(*part.used(found)) * outer.y
                tried += 1
                if part.listed is None:
                    seen.append(logistic_of_margins(margins[r, tried - 1, test], outer.weight))
                    if program.may_stop(seen, float(self.weight[test].sum())):
                        break
            reached = tried
        losses = _mean_loss(margins[:, :reached], self.weight)
        place = int(np.argmin(losses))
        curve = {"share": list(places[:reached]), "held_out_loss": losses}
        return Choice(place, losses[place], margins[0, place], curve)

    def held_out(self, program: Program, chosen: Chosen) -> HeldOut:
        if isinstance(self.prepared, OutOfBagVoters):
            q = chosen.weights / (1.0 if program.scaled else chosen.scale)
            honest = self.prepared.honest_margins(self.y, self.k, chosen.columns, q)
            return HeldOut(self.y * honest, self.y, self.weight)
        margins = chosen.choice.held_out
        if margins is None:
            margins = np.zeros(len(self.y))
            for part, outer, (_, test), _ in self._parts(program):
                columns, weights = part.used(program.like(part, chosen))
                margins[test] = outer.scores(columns, weights) * outer.y
        scale = 1.0 if program.scaled else chosen.scale
        return HeldOut(self.y * margins / scale, self.y, self.weight)


def _rounds(folds: list[Fold]) -> list[int]:
    """The round of each fold; a round holds out no row twice. Repeated folds have several."""
    rounds: list[int] = []
    seen: Ints = np.zeros(0, dtype=np.int64)
    for _, test in folds:
        again = bool(np.isin(test, seen).any())
        rounds.append(rounds[-1] + again if rounds else 0)
        seen = test if again else np.concatenate([seen, test])
    return rounds


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


def _mean_loss(margins: Floats, weight: Floats) -> list[float]:
    """Held-out loss of every candidate, of margins (rounds, candidates, rows): mean over rounds.

    Losses and not margins are averaged: the mean of several votes is better than each of them,
    the more so the more they overfit.
    """
    losses = [[logistic_of_margins(row, weight) for row in held] for held in margins]
    return [float(mean) for mean in np.mean(losses, axis=0)]


def calibration(held: HeldOut) -> tuple[float, float]:
    """Slope and intercept on the log-odds of (1 + vote)/2; (1, 0) leaves that rule as it is."""
    from sklearn.linear_model import LogisticRegression

    scores, weight = vote_log_odds(held.votes)[:, None], held.weight
    spread = float(np.sqrt(weight @ scores[:, 0] ** 2 / weight.sum())) or 1.0
    fitted = LogisticRegression(C=STEEPEST_SLOPE)
    fitted.fit(scores / spread, held.sides, sample_weight=weight)
    return max(float(fitted.coef_[0, 0]) / spread, 1e-6), float(fitted.intercept_[0])


def calibration_of(votes: Sequence[FittedVote]) -> tuple[tuple[float, float], ...] | None:
    """Slope and intercept of each vote's log-odds, where they were fitted."""
    if votes[0].slope is None:
        return None
    return tuple((float(vote.slope or 0.0), float(vote.intercept)) for vote in votes)


def trust_of(votes: Sequence[FittedVote]) -> Floats:
    """Factors close to one: few voters tie often, and the class whose voters err less wins."""
    if len(votes) == 1:
        return np.ones(1)
    return np.array([1.0 - 1e-9 * vote.moments.gibbs_risk for vote in votes])


def fit_tandem(
    prepared: PreparedVoters, codes: Ints, weight: Floats, n_classes: int, tol: float, who: str
) -> list[FittedVote]:
    """Plurality vote of whole classifiers with the least tandem loss q'Eq, Σq = 1.

    The risk of the vote is at most 4 q'Eq for any number of classes (Masegosa et al. 2020), and
    minimising it is again non-negative least squares, now with linear term 1. One entry per class,
    all with the same weights.
    """
    errors = prepared.joint_errors(codes, weight)
    found = least_squares_vote(errors.both, np.ones(len(errors.single)), tol=tol)
    found.warn_if_short(who, "raise tol")
    used = np.flatnonzero(found.point)
    q = found.point[used] / found.point[used].sum()
    risk = float(errors.single[used] @ q)
    joint = float(q @ errors.both[np.ix_(used, used)] @ q)
    # moments with this Gibbs risk and this joint error
    moments = MarginMoments(1.0 - 2.0 * risk, 4.0 * joint + 1.0 - 4.0 * risk)
    chosen: Classifiers = prepared.pick(used, np.ones(len(used)), 0)  # type: ignore[assignment]
    return [
        FittedVote(
            HardVoters(chosen, k),
            q,
            moments,
            min(1.0, 4.0 * joint),
            float(found.gap),
            moments.first,
            1.0 - 2.0 * float(errors.single.min()),
            divergence_from_uniform(q, len(errors.single)),
            independent_rows(errors.overlap, float(weight.max())),
            prepared.assumption,
            quasi_uniform=False,
            n_columns=len(q),
            tandem=True,
        )
        for k in range(n_classes)
    ]
