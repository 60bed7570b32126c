"""Least expected cost at a threshold: points l and a whole t, "yes" where the total is at least t.

    min  sum over patterns of  d_i yes_i + (1 - d_i) no_i,   d_i = 1 exactly where l x_i >= t

with ``yes_i`` and ``no_i`` the cost of both decisions for the rows of a pattern. Local search gives
the card, a mixed-integer program (HiGHS) the bound and often a better card.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_matrix, csr_matrix, hstack, vstack

from laconic._typing import Floats, Ints
from laconic.core.progress import Deadline
from laconic.scorecard.branching import Incumbent
from laconic.scorecard.problem import CardProblem
from laconic.scorecard.tuning import MOST_PATTERNS
from laconic.scorecard.warm_start import can_grow


@dataclass(frozen=True)
class CardCosts:
    """Cost of both decisions, by pattern."""

    yes: Floats
    no: Floats

    @classmethod
    def of(cls, pos: Floats, neg: Floats, matrix: Floats) -> CardCosts:
        """From shares by pattern and a 2 x 2 matrix, rows = true class, columns = decision."""
        return cls(neg * matrix[0, 1] + pos * matrix[1, 1], neg * matrix[0, 0] + pos * matrix[1, 0])

    def of_card(self, problem: CardProblem, points: Ints) -> tuple[float, int]:
        """Least cost of a card and the total from which on it says yes."""
        from laconic.scorecard._numba import least_cost

        cost, threshold = least_cost(totals_of(problem, points), self.yes, self.no)
        return float(cost), int(threshold)

    @property
    def bound(self) -> float:
        """Cost of the best decision in every pattern: no card does better."""
        return float(np.minimum(self.yes, self.no).sum())


def totals_of(problem: CardProblem, points: Ints) -> Ints:
    """Total of every pattern."""
    on = np.flatnonzero(points)
    return np.asarray(points[on] @ problem.items[on].astype(np.int64))


def cheapest_card(
    problem: CardProblem, start: Incumbent, costs: CardCosts, time_limit: float | None, gap: float
) -> tuple[Incumbent, float]:
    """The card of least cost found, and a bound on the cost of all cards."""
    deadline = Deadline(None if time_limit is None else 0.4 * time_limit)
    points, cost = _descend(problem, start.points, costs, deadline)
    bound = costs.bound
    if cost - bound > gap * cost and len(costs.yes) <= MOST_PATTERNS:
        proven, found = _program(problem, costs, time_limit, gap)
        bound = max(bound, proven)
        if found is not None and problem.feasible(found):
            better = costs.of_card(problem, found)[0]
            if better < cost:
                points, cost = _descend(problem, found, costs, deadline)
    _, a, b = problem.fitted(points)
    return Incumbent(cost, points, a, b), min(bound, cost)


def _descend(
    problem: CardProblem, points: Ints, costs: CardCosts, deadline: Deadline
) -> tuple[Ints, float]:
    """Changes of one item's points, and swaps of two items, while the cost falls."""
    cost = costs.of_card(problem, points)[0]
    improved = True
    while improved and not deadline.passed():
        improved = False
        support = np.flatnonzero(points)
        for out in [-1, *support.tolist()]:
            base = points.copy()
            if out >= 0:
                base[out] = 0
            own = tuple(np.flatnonzero(base).tolist())
            into = can_grow(problem, own) if len(own) < problem.most_items else np.empty(0, int)
            for j in np.union1d(into, support).tolist():
                for value in range(int(problem.lo[j]), int(problem.hi[j]) + 1):
                    trial = base.copy()
                    trial[j] = value
                    if deadline.passed() or (trial == points).all():
                        break
                    if not problem.feasible(trial):
                        continue
                    new = costs.of_card(problem, trial)[0]
                    if new < cost - 1e-12:
                        points, cost, improved = trial, new, True
    return points, cost


def _program(
    problem: CardProblem, costs: CardCosts, time_limit: float | None, gap: float
) -> tuple[float, Ints | None]:
    """Bound and card of the mixed-integer program over (points, in use, threshold, decisions)."""
    p, n = problem.items.shape
    lo, hi = problem.lo.astype(float), problem.hi.astype(float)
    reach = np.sort(np.maximum(-lo, hi))[-problem.most_items :].sum()
    big = 2.0 * reach + 2.0
    X = csr_matrix(problem.dense.T)
    wants = costs.yes < costs.no  # only the tempting side of each decision needs a constraint
    minus_t = csr_matrix(-np.ones((n, 1)))
    decided = coo_matrix((np.full(n, -big), (np.arange(n), np.arange(n))), shape=(n, n)).tocsr()
    rows = hstack([X, csr_matrix((n, p)), minus_t, decided]).tocsr()
    low = np.where(wants, -big, -np.inf)
    high = np.where(wants, np.inf, -1.0)
    eye = csr_matrix(np.eye(p))
    pad = csr_matrix((p, 1 + n))
    under = hstack([eye, csr_matrix(-np.diag(hi)), pad])
    over = hstack([eye, csr_matrix(-np.diag(lo)), pad])
    blocks = [rows, under, over]
    lows = [low, np.full(p, -np.inf), np.zeros(p)]
    highs = [high, np.zeros(p), np.full(p, np.inf)]
    groups = [(np.arange(p), -np.inf, float(problem.most_items))]
    groups += [(g, -np.inf, float(most)) for g, most in problem.limits.at_most]
    groups += [(g, 1.0, np.inf) for g in problem.limits.cover]
    for members, least, most in groups:
        line = np.zeros((1, 2 * p + 1 + n))
        line[0, p + members] = 1.0
        blocks.append(csr_matrix(line))
        lows.append(np.array([least]))
        highs.append(np.array([most]))
    cost = np.concatenate([np.zeros(2 * p + 1), costs.yes - costs.no])
    found = milp(
        cost,
        constraints=LinearConstraint(
            vstack(blocks).tocsr(), np.concatenate(lows), np.concatenate(highs)
        ),
        integrality=np.ones(len(cost)),
        bounds=Bounds(
            np.concatenate([lo, np.zeros(p), [-reach], np.zeros(n)]),
            np.concatenate([hi, np.ones(p), [reach + 1.0], np.ones(n)]),
        ),
        options={"mip_rel_gap": 0.0, **({} if time_limit is None else {"time_limit": time_limit})},
    )
    constant = float(costs.no.sum())
    proven = -np.inf if found.mip_dual_bound is None else float(found.mip_dual_bound) + constant
    points = None if found.x is None else np.rint(found.x[:p]).astype(np.int64)
    # HiGHS solves its linear programs to a tolerance: what it proves is taken with a margin
    return proven - 1e-6 * max(constant, 1e-12), points
