"""Random problems of cards against exhaustive search: the bound is never above the true optimum.

    python -m stress.cards [problems]

Prints the problems on which the search missed the optimum, or its bound exceeded it, and the worst
distances; see docs/scorecard.md.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import product

import numpy as np

from laconic.core.progress import Deadline
from laconic.scorecard.branching import Incumbent, Proof
from laconic.scorecard.costs import CardCosts
from laconic.scorecard.limits import Rule, limited
from laconic.scorecard.problem import CardProblem, patterns
from laconic.scorecard.solver import solve_card

GAPS = (0.0, 0.02, 0.3)


def random_problem(seed: int) -> tuple[CardProblem, np.ndarray]:
    """Two to five items, one to three with points within 3, weights, at times rules, a price."""
    draw = np.random.default_rng(seed)
    p, n = int(draw.integers(2, 6)), int(draw.integers(4, 80))
    items = (draw.random((p, n)) < draw.uniform(0.05, 0.95, (p, 1))).astype(np.uint8)
    if draw.random() < 0.4:
        items[-1] = items[0] ^ (draw.random(n) < draw.choice([0.0, 0.05, 0.3]))
    odds = items.T @ draw.normal(0, draw.choice([0.5, 2.0, 6.0]), p) - draw.normal()
    second = draw.random(n) < 1 / (1 + np.exp(-odds))
    second[:2] = [True, False]
    found = patterns(items, second, draw.integers(1, 5, n).astype(float))
    low, high = -int(draw.integers(0, 3)), int(draw.integers(1, 4))
    k, most = int(draw.integers(1, 4)), float(draw.choice([0.3, 2.0, 5.0]))
    column = draw.integers(0, 3, p)
    problem = CardProblem(*found, np.full(p, low), np.full(p, high), k, most, column)
    problem = replace(problem, price=float(draw.choice([0.0, 0.003, 0.03])))
    rules = []
    for _ in range(int(draw.integers(0, 3))):
        own = np.flatnonzero(draw.random(p) < 0.5)
        rules.append(
            [
                Rule("sign", own, (int(draw.choice([-1, 1])),)),
                Rule("most", own, at_most=1),
                Rule("need", own, needed=True),
            ][int(draw.integers(0, 3))]
        )
    try:
        return limited(problem, rules, 2 if draw.random() < 0.3 else None)
    except ValueError:
        return problem, np.zeros(p, dtype=np.int64)


def cards_of(problem: CardProblem) -> list[np.ndarray]:
    ranges = [range(int(a), int(b) + 1) for a, b in zip(problem.lo, problem.hi, strict=True)]
    found = (np.array(points, dtype=np.int64) for points in product(*ranges))
    return [card for card in found if problem.feasible(card)]


class Steps(Deadline):
    """A deadline after so many questions, so that a proof stops anywhere."""

    def __init__(self, steps: float) -> None:
        self.left = steps

    def passed(self) -> bool:
        self.left -= 1
        return self.left < 0


def cold(problem: CardProblem, start: np.ndarray, least: float, seed: int) -> list[str]:
    """The proof without its first card: it must find the best one, and may stop anywhere.

    A good first card would hide a bound that is too high, because no bound is above it.
    """
    wrong = []
    for steps in (3, 10, 30, np.inf):
        for gap in (0.0, 0.1):
            proof = Proof(problem, Incumbent(problem.fitted(start)[0], start), Steps(steps))
            proof.run(gap)
            if proof.bound > least + 1e-9:
                wrong.append(f"problem {seed}, {steps} steps: bound {proof.bound:.9f} {least:.9f}")
            if steps == np.inf and proof.best.loss * (1.0 - gap) > least + 1e-7:
                wrong.append(f"problem {seed}: found {proof.best.loss:.9f} and not {least:.9f}")
    return wrong


def check(seed: int) -> list[str]:
    problem, start = random_problem(seed)
    cards, wrong = cards_of(problem), []
    least = min(problem.fitted(card)[0] for card in cards)
    for gap in GAPS:
        found = solve_card(problem, start, time_limit=None, gap=gap)
        bound = found.value - found.gap
        if bound > least + 1e-9:
            wrong.append(f"problem {seed}, gap {gap}: bound {bound:.9f} above {least:.9f}")
        if found.gap > gap * found.value + 1e-6 or found.value < least - 1e-9:
            wrong.append(f"problem {seed}, gap {gap}: {found.value:.9f} and bound {bound:.9f}")
        if gap == 0.0 and found.value > least + 1e-7:
            wrong.append(f"problem {seed}: found {found.value:.9f}, best {least:.9f}")
    wrong += cold(problem, start, least, seed)
    if seed % 5 == 0:
        costs = CardCosts.of(problem.pos, problem.neg, np.array([[0.0, 1.0], [3.0, 0.0]]))
        cheapest = min(costs.of_card(problem, card)[0] for card in cards)
        found = solve_card(problem, start, time_limit=None, gap=0.0, costs=costs)
        if found.value - found.gap > cheapest + 1e-9 or found.value < cheapest - 1e-9:
            wrong.append(f"problem {seed}, cost: {found.value:.9f}, best {cheapest:.9f}")
    return wrong


def main(problems: int) -> int:
    wrong = [line for seed in range(problems) for line in check(seed)]
    print("\n".join(wrong))
    print(f"{problems} problems at gaps {GAPS}, {len(wrong)} wrong")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 500) > 0)
