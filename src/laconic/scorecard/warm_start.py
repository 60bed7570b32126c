"""The card to start from: a beam search over supports, swaps of items, then exact points."""

from __future__ import annotations

import numpy as np

from laconic._typing import Floats, Ints
from laconic.core.progress import Deadline
from laconic.scorecard.branching import Incumbent, search_support
from laconic.scorecard.problem import CardProblem
from laconic.scorecard.tuning import BEAM, GROWN, POLISHED

Support = tuple[int, ...]


def first_card(problem: CardProblem, start: Ints, deadline: Deadline) -> Incumbent:
    """The best card of the beam, swapped until no single swap of items helps.

    ``start`` is a card that keeps the rules, perhaps the empty one.
    """
    loss, a, b = problem.fitted(start)
    best = Incumbent(loss, start, a, b)
    found = beam(problem, deadline)
    ranked = sorted(found, key=lambda s: (found[s] + problem.price * len(s), s))
    for place, support in enumerate(ranked[:POLISHED]):
        if place and deadline.passed():
            return best
        better, _ = search_support(problem, np.array(support, dtype=np.int64), best.loss, 0.0)
        best = better or best
    while not deadline.passed():
        better = best_swap(problem, best, deadline)
        if better is None:
            break
        best = better
    return best


def can_grow(problem: CardProblem, support: Support) -> Ints:
    """Items that may join a support."""
    allowed = problem.usable.copy()
    allowed[list(support)] = False
    own = np.zeros(problem.n_items, dtype=bool)
    own[list(support)] = True
    for group, most in problem.limits.at_most:
        if own[group].sum() >= most:
            allowed[group] = False
    columns = set(problem.column[own].tolist())
    most_columns = problem.limits.most_columns
    if most_columns is not None and len(columns) >= most_columns:
        allowed &= np.isin(problem.column, list(columns))
    return np.flatnonzero(allowed)


def grown_values(problem: CardProblem, support: Support, candidates: Ints) -> Floats:
    """The relaxed loss of the support with each candidate."""
    from laconic.scorecard._numba import bounds_of_one_more, codes_of

    own = np.array(support, dtype=np.int64)
    order = np.concatenate([own, candidates])
    code = codes_of(problem.items, own, problem.items.shape[1])
    lo, hi = problem.lo[order].astype(float), problem.hi[order].astype(float)
    bounds, _ = bounds_of_one_more(
        problem.items, problem.pos, problem.neg, code, len(own), candidates, lo, hi,
        problem.most_multiplier, np.inf, 1e-4 * problem.null_loss,
    )  # fmt: skip
    return np.asarray(bounds)


def grown(problem: CardProblem, support: Support, candidates: Ints) -> dict[Support, float]:
    """The support with each candidate, and its relaxed loss with the price of its items."""
    values = grown_values(problem, support, candidates) + problem.price * (len(support) + 1)
    pairs = zip(candidates.tolist(), values.tolist(), strict=True)
    return {tuple(sorted((*support, j))): value for j, value in pairs}


def beam(problem: CardProblem, deadline: Deadline) -> dict[Support, float]:
    """Supports of full size (or as large as the rules allow) with their relaxed losses.

    Smaller ones too where items have a price.
    """
    forced = tuple(sorted({int(g[0]) for g in problem.limits.cover if len(g) == 1}))
    level: dict[Support, float] = {forced: problem.null_loss}
    done: dict[Support, float] = {}
    for _ in range(len(forced), problem.most_items):
        following: dict[Support, float] = {}
        for support in sorted(level, key=lambda s: (level[s], s)):
            candidates = _steepest(problem, support, can_grow(problem, support))
            if not len(candidates):
                done[support] = level[support]
            elif not (following and deadline.passed()):  # one support a level: greedy at least
                values = grown_values(problem, support, candidates)
                for j, value in zip(candidates.tolist(), values.tolist(), strict=True):
                    following[tuple(sorted((*support, j)))] = value
        kept = sorted(following, key=lambda s: (following[s], s))[:BEAM]
        if not kept:
            break
        if problem.price:
            done |= {support: value for support, value in level.items() if support}
        level = {support: following[support] for support in kept}
    return {**done, **level}


def _steepest(problem: CardProblem, support: Support, candidates: Ints) -> Ints:
    """The candidates whose first step lowers the loss most, uncovered groups first."""
    from laconic.scorecard._numba import codes_of, relax_cells

    own = np.array(support, dtype=np.int64)
    code = codes_of(problem.items, own, problem.items.shape[1])
    Z, c1, c0 = problem.cells(own)
    lo, hi = problem.lo[own].astype(float), problem.hi[own].astype(float)
    _, _, _, b, w = relax_cells(
        Z, c1, c0, lo, hi, problem.most_multiplier, np.inf, 1e-4 * problem.null_loss
    )
    on = (code[:, None] >> np.arange(len(own))) & 1
    p = 1.0 / (1.0 + np.exp(-(on @ w + b)))
    weight = problem.pos + problem.neg
    rows = problem.dense[candidates]
    gradient, curve = rows @ (weight * p - problem.pos), rows @ (weight * p * (1.0 - p))
    room = np.where(gradient < 0, problem.hi[candidates] > 0, problem.lo[candidates] < 0)
    gain = room * gradient**2 / (curve + 1e-12)
    for group in problem.limits.cover:
        if not set(group.tolist()) & set(support):
            gain[np.isin(candidates, group)] += 1.0
    return candidates[np.argsort(-gain, kind="stable")[:GROWN]]


def best_swap(problem: CardProblem, best: Incumbent, deadline: Deadline) -> Incumbent | None:
    """One item less and any other one in its place: the best card of those, if it is better.

    Where items have a price, one item less and one item more as well.
    """
    support = tuple(np.flatnonzero(best.points).tolist())
    trials: dict[Support, float] = {}
    for j in support:
        rest = tuple(i for i in support if i != j)
        candidates = can_grow(problem, rest)
        if deadline.passed() or not len(candidates):
            continue
        trials |= grown(problem, rest, candidates)
    if problem.price and not deadline.passed():
        for j in support:
            fewer = np.array([i for i in support if i != j], dtype=np.int64)
            less, _ = search_support(problem, fewer, best.loss, 0.0)
            if less is not None:
                return less
        if len(support) < problem.most_items and len(more := can_grow(problem, support)):
            trials |= grown(problem, support, more)
    better: Incumbent | None = None
    least = best.loss
    for trial in sorted(trials, key=lambda s: (trials[s], s))[:POLISHED]:
        if trials[trial] >= least or deadline.passed():
            break
        found, _ = search_support(problem, np.array(trial, dtype=np.int64), least, 0.0)
        if found is not None:
            better, least = found, found.loss
    return better
