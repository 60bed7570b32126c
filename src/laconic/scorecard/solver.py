"""From a problem to a card, its certificate and the cards that are nearly as good."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from laconic._typing import Ints
from laconic.core.losses import Solution, WhyStopped
from laconic.core.progress import Deadline, is_interrupt, listening, report_step
from laconic.scorecard.branching import Incumbent, Proof, search_support
from laconic.scorecard.costs import CardCosts, cheapest_card
from laconic.scorecard.problem import CardProblem
from laconic.scorecard.tuning import MOST_POOL, POOL_SHARE, WARM_SHARE
from laconic.scorecard.warm_start import Support, can_grow, first_card, grown


def solve_card(
    problem: CardProblem,
    start: Ints,
    *,
    time_limit: float | None,
    gap: float,
    costs: CardCosts | None = None,
) -> Solution:
    """The best card found (an :class:`Incumbent`) and a gap that holds, anytime.

    ``start`` is a card that keeps the rules. Ctrl-C ends the search and keeps the best card.
    """
    _compiled()
    warm = Deadline(None if time_limit is None else WARM_SHARE * time_limit)
    deadline = Deadline(time_limit)
    loss, a, b = problem.fitted(start)
    best, bound, nodes = Incumbent(loss, start, a, b), 0.0, 0
    if not problem.usable.any():
        best.loss = loss if costs is None else costs.of_card(problem, start)[0]
        return Solution(best, best.loss, 0.0, 0, "gap")
    why: WhyStopped = "gap"
    proof: Proof | None = None
    try:
        best = first_card(problem, start, warm)
        report_step(f"first card, log loss {best.loss:.4f}")
        if costs is None:
            proof = Proof(problem, best, deadline)
            proof.run(gap)
        else:
            best, bound = cheapest_card(problem, best, costs, time_limit, gap)
    except (KeyboardInterrupt, SystemError) as stopped:
        if not is_interrupt(stopped):
            raise
        why = "stalled"
    if proof is not None:
        best, bound, nodes = proof.best, proof.bound, proof.n_nodes
    bound = min(bound, best.loss)
    if why == "gap" and best.loss - bound > gap * best.loss + 1e-9 * problem.null_loss:
        why = "budget"
    return Solution(best, best.loss, best.loss - bound, nodes, why)


@cache
def _compiled() -> None:
    """Compile the kernels on a toy before the clock of the first search starts."""
    items = np.array([[0, 1, 0, 1, 1], [0, 0, 1, 1, 0], [1, 0, 1, 0, 0]], dtype=np.uint8)
    pos, neg = np.array([0.0, 0.1, 0.1, 0.2, 0.1]), np.array([0.2, 0.1, 0.1, 0.0, 0.1])
    least, most = np.full(3, -1), np.full(3, 1)
    toy = CardProblem(items, pos, neg, least, most, 2, 1.0, np.arange(3))
    with listening(lambda step: None):  # nobody asked about the toy
        first = first_card(toy, np.zeros(3, dtype=np.int64), Deadline(None))
        Proof(toy, first, Deadline(None)).run(0)


@dataclass(frozen=True)
class Near:
    """A card that is nearly as good as the best, and what it has in place of what."""

    points: Ints
    loss: float
    out: int = -1
    into: int = -1


def near_cards(
    problem: CardProblem, best: Incumbent, within: float, time_limit: float | None
) -> list[Near]:
    """Cards whose loss is at most ``1 + within`` times the best, by swaps of one item.

    Swaps of the best card come first, then swaps of those, until the pool or the time is full.
    Ctrl-C keeps the pool as it is.
    """
    deadline = Deadline(None if time_limit is None else POOL_SHARE * time_limit)
    first = tuple(np.flatnonzero(best.points).tolist())
    found: dict[Support, Near] = {first: Near(best.points, best.loss)}
    report_step("cards that are nearly as good")
    try:
        _fill(problem, found, best.loss * (1.0 + within) + 1e-12, deadline)
    except (KeyboardInterrupt, SystemError) as stopped:
        if not is_interrupt(stopped):
            raise
    return sorted(found.values(), key=lambda near: (near.loss, near.points.tolist()))


def _fill(
    problem: CardProblem, found: dict[Support, Near], limit: float, deadline: Deadline
) -> None:
    first = next(iter(found))
    tried, queue = {first}, [first]
    while queue and len(found) < MOST_POOL and not deadline.passed():
        support = queue.pop(0)
        for out, trial, value in _swaps(problem, support):
            if trial in tried or value >= limit or deadline.passed() or len(found) >= MOST_POOL:
                continue
            tried.add(trial)
            own, _ = search_support(problem, np.array(trial, dtype=np.int64), limit, 0.0)
            kept = None if own is None else tuple(np.flatnonzero(own.points).tolist())
            if own is None or kept is None or kept in found:
                continue
            into = next(iter(set(kept) - set(support)), -1)
            single = support == first
            found[kept] = Near(own.points, own.loss, *((out, into) if single else (-1, -1)))
            queue.append(kept)


def _swaps(problem: CardProblem, support: Support) -> list[tuple[int, Support, float]]:
    trials = []
    for j in support:
        rest = tuple(i for i in support if i != j)
        candidates = can_grow(problem, rest)
        candidates = candidates[candidates != j]
        if len(candidates):
            found = grown(problem, rest, candidates)
            trials += [(j, support, value) for support, value in found.items()]
    return sorted(trials, key=lambda t: (t[2], t[1]))
