"""From a solved problem to a fitted vote: voters, moments, certificate, calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.core.forms import AdditiveScore, SlotTerm, plain_label
from laconic.core.links import rounded_votes, vote_log_odds
from laconic.data.tables.axes import Axis, CategoryAxis, IntervalAxis
from laconic.data.tables.columns import Schema
from laconic.votes.column_generation import CqBoost
from laconic.votes.criterion import MarginMoments, divergence_from_uniform, residual_c_bound
from laconic.votes.given_voters import HardVoters
from laconic.votes.nnls import box_vote, least_squares_vote
from laconic.votes.problem import Choice, Chosen, FixedColumns, Problem, Program
from laconic.votes.voters import PickedStumps, Stump


@dataclass(frozen=True)
class FittedVote:
    """A majority vote: voters, their weights (a distribution) and what is known about it."""

    voters: Any
    weights: Floats
    moments: MarginMoments
    c_bound: float
    duality_gap: float
    mu: float
    mu_max: float
    penalty: float
    divergence: float
    n_independent: int
    assumption: str
    quasi_uniform: bool
    n_columns: int
    slope: float | None = None
    intercept: float = 0.0
    stages: tuple[tuple[Any, Floats], ...] = ()
    curve: dict[str, list[float]] = field(default_factory=dict)
    tandem: bool = False

    def scores(self, table: Any, raw: Any) -> Floats:
        """The vote Σ q_j h_j(x), in [-1, 1]."""
        # summed voter by voter, so that a row's score does not depend on its batch
        votes = self.voters.votes(table, raw)
        total = np.zeros(len(votes))
        for k, weight in enumerate(self.weights):
            total += weight * votes[:, k]
        return rounded_votes(total)


def fit_vote(
    prepared: Any,
    y: Floats,
    weight: Floats,
    k: int,
    program: Program,
    folds: list[tuple[Ints, Ints]],
    *,
    calibrate: bool,
    who: str,
) -> FittedVote:
    """Solve one class against the rest and gather what the estimator shows."""
    problem, chosen = _solved(prepared, y, weight, k, program, folds)
    if program.max_voters is None and program.stop is None and not prepared.out_of_bag:
        chosen.solution.warn_if_short(who, "raise tol")
    # quasi-uniform net weights keep their scale: the rest of the mass is on pairs (h, -h)
    total = 1.0 if program.boxed else float(np.abs(chosen.weights).sum()) or 1.0
    q = chosen.weights / total
    moments, c_bound, honest = _train_moments(problem, chosen, q)
    line: tuple[float | None, float] = (None, 0.0)
    if calibrate:
        margins = honest if honest is not None else chosen.held_out
        if margins is None:
            margins = _held_out_margins(problem, chosen, folds)
        normalised = honest is not None or bool(program.solvers)
        line = calibration(margins, y, weight, 1.0 if normalised else total)
    return gathered(problem, chosen, q, moments, c_bound, line)


def _solved(
    prepared: Any,
    y: Floats,
    weight: Floats,
    k: int,
    program: Program,
    folds: list[tuple[Ints, Ints]],
) -> tuple[Problem, Chosen]:
    """The problem and its vote; of several widths of a kernel the one of least held-out loss."""
    if not hasattr(prepared, "options"):
        problem = Problem(prepared, y, weight, k, program)
        return problem, problem.solve(folds)
    if not program.solvers and program.mu != "cv":
        raise ValueError(
            "KernelVoters(gamma='cv') chooses the width by the loss on held-out rows, together "
            f"with mu: give mu='cv' instead of {program.mu!r}, or a number for gamma."
        )
    best: tuple[Choice, Problem] | None = None
    for option in prepared.options():
        problem = Problem(option, y, weight, k, program)
        choice = problem.choose(folds)
        if best is None or choice.loss < best[0].loss:
            best = choice, problem
    assert best is not None
    return best[1], best[1].solve_at(best[0])


def gathered(
    problem: Problem,
    chosen: Chosen,
    q: Floats,
    moments: MarginMoments,
    c_bound: float,
    line: tuple[float | None, float],
) -> FittedVote:
    """What is known of a solved vote; ``line`` holds slope and intercept of its calibration."""
    prepared, program, y, k = problem.prepared, problem.program, problem.y, problem.k
    voters = prepared.pick(chosen.columns, np.sign(q), y, k)
    slope, intercept = line
    stages = tuple(
        (prepared.pick(c, np.sign(w), y, k), np.abs(w) / np.abs(w).sum()) for c, w in chosen.stages
    )
    return FittedVote(
        voters,
        np.abs(q),
        moments,
        c_bound,
        float(chosen.solution.gap),
        moments.first,
        chosen.mu_max,
        float(chosen.solution.details.get("penalty", 0.0)),
        problem.divergence(chosen.columns, q),
        problem.n_independent,
        prepared.assumption,
        program.boxed,
        len(q) + (chosen.parked > 0.0),
        slope,
        intercept,
        stages,
        chosen.curve,
    )


def fit_tandem(
    prepared: Any, codes: Ints, weight: Floats, n_classes: int, tol: float, who: str
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
    n = len(errors.single)
    rows = errors.overlap if prepared.out_of_bag else max(1, round(float(weight.sum())))
    chosen = prepared.pick(used, np.ones(len(used)), np.ones(len(codes)), 0)
    common = {
        "weights": q,
        "moments": moments,
        "c_bound": min(1.0, 4.0 * joint),
        "duality_gap": float(found.gap),
        "mu": moments.first,
        "mu_max": 1.0 - 2.0 * float(errors.single.min()),
        "penalty": 0.0,
        "divergence": divergence_from_uniform(q, n),
        "n_independent": rows,
        "assumption": prepared.assumption,
        "quasi_uniform": False,
        "n_columns": len(q),
        "tandem": True,
    }
    return [FittedVote(voters=HardVoters(chosen, k), **common) for k in range(n_classes)]


def _train_moments(
    problem: Problem, chosen: Chosen, q: Floats
) -> tuple[MarginMoments, float, Floats | None]:
    if problem.columns is not None:
        margins = problem.y * problem.columns.scores(chosen.columns, q)
        moments = MarginMoments.of(margins, problem.weight)
        return moments, residual_c_bound(margins, problem.weight), None
    first = problem.first[chosen.columns]
    plain = problem.gram - _spread(problem) * np.eye(len(problem.gram))
    gram = plain[np.ix_(chosen.columns, chosen.columns)]
    moments = MarginMoments(float(first @ q), float(q @ gram @ q))
    honest = problem.prepared.honest_margins(problem.y, problem.k, chosen.columns, q)
    return moments, moments.c_bound(), honest


def _held_out_margins(problem: Problem, chosen: Chosen, folds: list[tuple[Ints, Ints]]) -> Floats:
    """Margins of votes fitted without the row, at the penalty of the final vote."""
    margins = np.zeros(len(problem.y))
    share = float(chosen.solution.details.get("penalty", 0.0)) / (chosen.mu_max or 1.0)
    for train, test in folds:
        if len(np.unique(problem.y[train])) < 2:
            continue
        inner, outer, _ = problem.prepared.split(problem.y, problem.weight, problem.k, train, test)
        fixed = FixedColumns(inner, problem.program.sides)
        part = Problem(fixed, inner.y, inner.weight, 0, problem.program)
        if part.hopeless:
            continue
        if problem.program.boxed:
            margin = chosen.solution.details.get("mean_margin", 0.5)
            mu = min(1.0, margin / (chosen.mu_max or 1.0))
            found = box_vote(part.gram, part.first, mu * part.mu_max(), part.size)
        elif part.listed:
            found = least_squares_vote(
                part.gram,
                part.first,
                sides=problem.program.sides,
                penalty=max(share, 0.0) * part.mu_max(),
                max_voters=problem.program.max_voters,
            )
        else:
            run = CqBoost(part.columns, problem.program.sides)
            found = run.solve(max(share, 0.0) * run.scale, tol=1e-4)
        columns, weights = part.used_columns(found)
        margins[test] = outer.scores(columns, weights) * outer.y
    return margins


def _spread(problem: Problem) -> float:
    """What the forest added to the diagonal of its mean products."""
    spread: float = problem.prepared.spread
    return spread / (1.0 + spread) * float(np.trace(problem.gram)) / len(problem.gram)


def calibration(margins: Floats, y: Floats, weight: Floats, scale: float) -> tuple[float, float]:
    """Slope and intercept on the log-odds of (1 + vote)/2; (1, 0) leaves that rule as it is.

    ``scale`` undoes the scale of held-out votes that do not sum to one.
    """
    from sklearn.linear_model import LogisticRegression

    scores = vote_log_odds(y * margins / scale)[:, None]
    spread = float(np.sqrt(weight @ scores[:, 0] ** 2 / weight.sum())) or 1.0
    fitted = LogisticRegression(C=1e4).fit(scores / spread, y, sample_weight=weight)
    return max(float(fitted.coef_[0, 0]) / spread, 1e-6), float(fitted.intercept_[0])


# The fitted form of a vote of stumps; its probabilities agree up to the order of a sum.


class NoFormError(ValueError):
    """The model cannot be written as a sum of terms; the sentence says why."""


def vote_form(votes: Sequence[FittedVote], schema: Schema, classes: NDArray[Any]) -> AdditiveScore:
    """A vote of stumps: one table by column, the sum of the stumps that read it."""
    for vote in votes:
        if not isinstance(vote.voters, PickedStumps) or vote.tandem:
            raise NoFormError(
                "Only votes of decision stumps are sums of terms of one column; kernel voters, "
                "trees and given classifiers are not."
            )
    n_scores = len(votes)
    trust = trust_of(votes)
    intercept = np.zeros(n_scores)
    by_column: dict[int, list[tuple[int, float, Stump]]] = {}
    for k, vote in enumerate(votes):
        for weight, stump in zip(vote.weights * trust[k], vote.voters.stumps, strict=True):
            if stump.column < 0:
                intercept[k] += weight if stump.holds else -weight
            else:
                by_column.setdefault(stump.column, []).append((k, float(weight), stump))
    terms = [
        _stump_term(schema.names[j], schema.categories[j], said, n_scores)
        for j, said in sorted(by_column.items())
    ]
    labels = tuple(plain_label(c) for c in classes)
    return AdditiveScore(labels, intercept, tuple(terms), "vote", calibration=calibration_of(votes))


def trust_of(votes: Sequence[FittedVote]) -> Floats:
    """Factors close to one: few voters tie often, and the class whose voters err less wins."""
    if len(votes) == 1:
        return np.ones(1)
    return np.array([1.0 - 1e-9 * vote.moments.gibbs_risk for vote in votes])


def calibration_of(votes: Sequence[FittedVote]) -> tuple[tuple[float, float], ...] | None:
    """Slope and intercept of each vote's log-odds, where they were fitted."""
    if votes[0].slope is None:
        return None
    return tuple((float(vote.slope or 0.0), float(vote.intercept)) for vote in votes)


def _stump_term(
    name: str,
    texts: tuple[str, ...] | None,
    said: Sequence[tuple[int, float, Stump]],
    n_scores: int,
) -> SlotTerm:
    if texts is None:
        cuts = {stump.threshold for _, _, stump in said if stump.threshold != -np.inf}
        axis: Axis = IntervalAxis(np.array(sorted(cut for cut in cuts if cut is not None)))
    else:
        named = {stump.category for _, _, stump in said if stump.category is not None}
        axis = CategoryAxis(tuple((text,) for text in texts if text in named))
    values = np.zeros((axis.size, n_scores))
    for k, weight, stump in said:
        holds = _slots_where(axis, stump)
        values[:, k] += np.where(holds == stump.holds, weight, -weight)
    return SlotTerm((name,), (axis,), values)


def _slots_where(axis: Axis, stump: Stump) -> NDArray[np.bool_]:
    """Slots whose values satisfy the stump's condition, before its side is taken."""
    yes = np.zeros(axis.size, dtype=bool)
    if isinstance(axis, IntervalAxis):
        assert stump.threshold is not None
        first = int(np.searchsorted(axis.bounds, stump.threshold, "right"))
        yes[0 if stump.threshold == -np.inf else first : axis.missing] = True
    elif isinstance(axis, CategoryAxis):
        slot = axis.missing if stump.category is None else axis.slot_of()[stump.category]
        yes[slot] = True
    return yes
