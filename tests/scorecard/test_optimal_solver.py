"""The search for the best card against exhaustive search: loss, cost, rules, and the bound."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from laconic.core.progress import Deadline, Step, listening
from laconic.scorecard import branching, solver
from laconic.scorecard._numba import (
    cells_of,
    codes_of,
    fit_multiplier,
    loss_at,
    newton_step,
    relax_cells,
)
from laconic.scorecard._numba_nodes import groups_of, largest_worths, prices_of_items, project
from laconic.scorecard.costs import CardCosts
from laconic.scorecard.limits import Rule, limited
from laconic.scorecard.problem import CardProblem, patterns, with_prior
from laconic.scorecard.solver import near_cards, solve_card
from laconic.scorecard.warm_start import first_card


def random_problem(seed: int, most_items: int = 3, most_points: int = 2) -> CardProblem:
    """A few noisy items, some of them copies or nearly so, weights, and both classes."""
    draw = np.random.default_rng(seed)
    p, n = int(draw.integers(2, 5)), int(draw.integers(6, 40))
    items = (draw.random((p, n)) < draw.uniform(0.1, 0.9, (p, 1))).astype(np.uint8)
    if draw.random() < 0.3:
        items[-1] = items[0] ^ (draw.random(n) < 0.1)
    second = draw.random(n) < expit(items.T @ draw.normal(0, 2, p) - 0.5)
    second[:2] = [True, False]
    weight = draw.integers(1, 4, n).astype(float)
    found = patterns(items, second, weight)
    high = int(draw.integers(1, most_points + 1))
    k = int(draw.integers(1, most_items + 1))
    column, price = draw.integers(0, 2, p), float(draw.choice([0.0, 0.02]))
    return CardProblem(*found, np.full(p, -high), np.full(p, high), k, 2.0, column, price=price)


def every_card(problem: CardProblem):
    ranges = [range(int(a), int(b) + 1) for a, b in zip(problem.lo, problem.hi, strict=True)]
    for points in itertools.product(*ranges):
        card = np.array(points, dtype=np.int64)
        if problem.feasible(card):
            yield card


def empty(problem: CardProblem):
    return np.zeros(problem.n_items, dtype=np.int64)


def test_patterns_keep_the_loss():
    draw = np.random.default_rng(0)
    items = draw.integers(0, 2, (3, 50)).astype(np.uint8)
    second, weight = draw.random(50) < 0.4, draw.random(50)
    problem = CardProblem(
        *patterns(items, second, weight), np.full(3, -3), np.full(3, 3), 3, 2.0, np.arange(3)
    )
    assert problem.items.shape[1] <= 8
    points = np.array([2, -1, 3])
    loss, a, b = problem.fitted(points)
    score = a * (points @ items) + b
    by_row = np.logaddexp(0, np.where(second, -score, score))
    assert loss == pytest.approx(weight @ by_row / weight.sum(), rel=1e-12)


def test_prior_rows_are_rows_written_below_the_others():
    draw = np.random.default_rng(1)
    items = draw.integers(0, 2, (3, 50)).astype(np.uint8)
    second, weight = draw.random(50) < 0.4, draw.random(50)
    share, prior = weight @ second / weight.sum(), 6.0
    each = prior * weight / weight.sum()
    long = patterns(
        np.tile(items, 3),
        np.concatenate([second, np.ones(50, bool), np.zeros(50, bool)]),
        np.concatenate([weight, each * share, each * (1 - share)]),
    )
    short = patterns(items, second, weight)
    found = with_prior(short[1], short[2], prior / weight.sum())
    np.testing.assert_array_equal(long[0], short[0])
    np.testing.assert_allclose(found, long[1:], rtol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_multiplier_and_offset_are_the_best(seed):
    draw = np.random.default_rng(seed)
    s, c1, c0 = draw.integers(-4, 5, 20).astype(float), draw.random(20), draw.random(20)
    c1, c0 = c1 / (c1 + c0).sum(), c0 / (c1 + c0).sum()

    def loss(x):
        f = x[0] * s + x[1]
        return c1 @ np.logaddexp(0, -f) + c0 @ np.logaddexp(0, f)

    other = minimize(loss, [0.1, 0.0], bounds=[(0, 0.05 + seed), (None, None)], tol=1e-14)
    found = fit_multiplier(s, c1, c0, 0.05 + seed)
    assert found[0] == pytest.approx(other.fun, abs=1e-8)
    assert 0 <= found[1] <= 0.05 + seed


def test_newton_step_of_items_that_add_up_to_a_constant():
    draw = np.random.default_rng(0)
    root, g = draw.normal(size=(5, 5)), draw.normal(size=5)
    whole = root @ root.T
    np.testing.assert_allclose(newton_step(whole, g), -np.linalg.solve(whole, g))
    flat = np.ones((4, 4)) + np.diag([0.0, 1.0, 2.0, 0.0])  # the last is the first once more
    step = newton_step(flat, flat @ np.array([1.0, 2.0, 3.0, 0.0]))
    np.testing.assert_allclose(step, [-1.0, -2.0, -3.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_relaxation_is_below_every_card_and_tight_when_points_are_fixed(seed):
    problem = replace(random_problem(seed), price=0.0)
    support = np.arange(problem.n_items)
    code = codes_of(problem.items, support, problem.items.shape[1])
    cells = cells_of(code, problem.pos, problem.neg, len(support))
    lo, hi = problem.lo.astype(float), problem.hi.astype(float)
    bound = relax_cells(*cells, lo, hi, 2.0, np.inf, 1e-9)[0]
    fixed = np.array([1.0] + [-1.0] * (len(support) - 1))
    own = relax_cells(*cells, fixed, fixed, 2.0, np.inf, 1e-10)[0]
    assert own == pytest.approx(problem.fitted(fixed.astype(np.int64))[0], abs=1e-7)
    free = [problem.fitted(np.array(c))[0] for c in itertools.product((-1, 0, 1), repeat=len(lo))]
    assert bound <= min(free) + 1e-9


@pytest.mark.parametrize("seed", range(25))
def test_exhaustive_search_agrees(seed):
    problem = random_problem(seed)
    least = min(problem.fitted(card)[0] for card in every_card(problem))
    found = solve_card(problem, empty(problem), time_limit=None, gap=0.0)
    assert found.value == pytest.approx(least, abs=1e-8)
    assert found.value - found.gap <= least + 1e-9
    assert found.gap <= 1e-6
    assert problem.feasible(found.point.points)
    coarse = solve_card(problem, empty(problem), time_limit=None, gap=0.2)
    assert coarse.value - coarse.gap <= least + 1e-9


@pytest.mark.parametrize("seed", range(10))
def test_exhaustive_search_agrees_on_cost(seed):
    problem = random_problem(seed, 2, 2)
    costs = CardCosts.of(problem.pos, problem.neg, np.array([[0.0, 1.0], [float(1 + seed), 0.0]]))
    least = min(costs.of_card(problem, card)[0] for card in every_card(problem))
    found = solve_card(problem, empty(problem), time_limit=None, gap=0.0, costs=costs)
    assert found.value == pytest.approx(least, abs=1e-9)
    assert found.value - found.gap <= least + 1e-9
    cost, threshold = costs.of_card(problem, found.point.points)
    said = found.point.points @ problem.items.astype(int) >= threshold
    assert cost == pytest.approx(costs.yes[said].sum() + costs.no[~said].sum())


def random_rules(problem: CardProblem, seed: int) -> tuple[list[Rule], int | None]:
    draw = np.random.default_rng(seed + 1000)
    p, rules = problem.n_items, []
    for _ in range(int(draw.integers(1, 4))):
        items = np.flatnonzero(draw.random(p) < 0.5)
        kind = int(draw.integers(0, 4))
        if kind == 0:
            rules.append(Rule("sign", items, (int(draw.choice([-1, 1])),)))
        elif kind == 1:
            rules.append(Rule("most", items, at_most=int(draw.integers(0, 2))))
        elif kind == 2:
            rules.append(Rule("need", items, needed=True))
        else:
            rules.append(Rule("forbid", items[:1], ()))
    return rules, 1 if draw.random() < 0.3 else None


@pytest.mark.parametrize("seed", range(25))
def test_exhaustive_search_agrees_under_rules(seed):
    problem = random_problem(seed)
    rules, columns = random_rules(problem, seed)
    try:
        ruled, start = limited(problem, rules, columns)
    except ValueError:
        # refused: then there is indeed no card
        from dataclasses import replace

        from laconic.scorecard.limits import _point_limits
        from laconic.scorecard.problem import Limits

        lo, hi = _point_limits(problem, rules)
        limits = Limits(
            tuple((r.items, r.at_most) for r in rules if r.at_most is not None),
            tuple(r.items for r in rules if r.needed),
            columns,
        )
        assert not list(every_card(replace(problem, lo=lo, hi=hi, limits=limits)))
        return
    assert ruled.feasible(start)
    least = min(ruled.fitted(card)[0] for card in every_card(ruled))
    found = solve_card(ruled, start, time_limit=None, gap=0.0)
    assert ruled.feasible(found.point.points)
    assert found.value == pytest.approx(least, abs=1e-8)
    assert found.value - found.gap <= least + 1e-9
    costs = CardCosts.of(ruled.pos, ruled.neg, np.array([[0.0, 1.0], [2.0, 0.0]]))
    cheapest = min(costs.of_card(ruled, card)[0] for card in every_card(ruled))
    if columns is None:
        found = solve_card(ruled, start, time_limit=None, gap=0.0, costs=costs)
        assert found.value == pytest.approx(cheapest, abs=1e-9)
        assert found.value - found.gap <= cheapest + 1e-9


class Steps(Deadline):
    """A deadline after so many questions."""

    def __init__(self, steps: float) -> None:
        self.left = steps

    def passed(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("seed", range(40))
def test_a_proof_that_starts_from_nothing_is_right_wherever_it_stops(seed):
    # a good first card would hide a bound that is too high, because no bound is above it
    problem = random_problem(seed, 3, 3)
    least = min(problem.fitted(card)[0] for card in every_card(problem))
    for steps, gap in ((3, 0.0), (10, 0.1), (30, 0.0), (np.inf, 0.1), (np.inf, 0.0)):
        nothing = branching.Incumbent(problem.null_loss, empty(problem))
        proof = branching.Proof(problem, nothing, Steps(steps))
        proof.run(gap)
        assert proof.bound <= least + 1e-9
    assert proof.best.loss == pytest.approx(least, abs=1e-8)


def test_without_time_the_bound_still_holds():
    problem = random_problem(3)
    least = min(problem.fitted(card)[0] for card in every_card(problem))
    found = solve_card(problem, empty(problem), time_limit=0.0, gap=0.0)
    assert found.why_stopped == "budget"
    assert found.value - found.gap <= least <= found.value + 1e-12


def test_a_search_that_is_left_without_any_item_ends_with_the_card_without_any():
    problem = random_problem(5)
    found, bound = solver.search_support(problem, np.array([], dtype=np.int64), np.inf, 0.0)
    assert found is not None
    assert bound == found.loss == pytest.approx(problem.fitted(empty(problem))[0], rel=1e-12)


@pytest.mark.parametrize("compiled", [False, True])
def test_an_interrupt_keeps_the_best_card(monkeypatch, compiled):
    problem = random_problem(5)
    first = first_card(problem, empty(problem), Deadline(None))

    def interrupted(self, target):
        if compiled:  # what a kernel makes of Ctrl-C
            inner = SystemError("returned a result with an exception set")
            inner.__cause__ = KeyboardInterrupt()
            raise SystemError("returned a result with an exception set") from inner
        raise KeyboardInterrupt

    solver._compiled()  # before the proof of its toy is broken too
    monkeypatch.setattr(branching.Proof, "_reach", interrupted)
    found = solve_card(problem, empty(problem), time_limit=None, gap=0.0)
    assert found.value == first.loss
    assert found.why_stopped == "stalled"
    assert found.gap == found.value


def test_the_pool_holds_what_single_swaps_reach():
    problem = random_problem(11, 2, 2)
    best = solve_card(problem, empty(problem), time_limit=None, gap=0.0).point
    pool = near_cards(problem, best, 0.05, None)
    assert pool[0].loss == pytest.approx(best.loss)
    by_support: dict[tuple[int, ...], float] = {}
    for card in every_card(problem):
        key = tuple(np.flatnonzero(card).tolist())
        by_support[key] = min(by_support.get(key, np.inf), problem.fitted(card)[0])
    for near in pool:
        key = tuple(np.flatnonzero(near.points).tolist())
        assert near.loss <= 1.05 * best.loss + 1e-9
        assert near.loss == pytest.approx(by_support[key], abs=1e-8)
    own = set(np.flatnonzero(best.points).tolist())
    reached = {tuple(np.flatnonzero(near.points).tolist()) for near in pool}
    for key, loss in by_support.items():
        swapped = len(key) == len(own) and len(set(key) - own) == 1
        if swapped and loss < 1.05 * best.loss - 1e-9:
            assert key in reached


def test_another_error_is_not_taken_for_an_interrupt(monkeypatch):
    def broken(self, target):
        raise SystemError("something else")

    solver._compiled()
    monkeypatch.setattr(branching.Proof, "_reach", broken)
    problem = random_problem(5)
    with pytest.raises(SystemError, match="something else"):
        solve_card(problem, empty(problem), time_limit=None, gap=0.0)


def test_an_interrupt_keeps_the_pool_so_far(monkeypatch):
    problem = random_problem(17, 2, 2)
    best = solve_card(problem, empty(problem), time_limit=None, gap=0.0).point
    whole = [near.loss for near in near_cards(problem, best, 0.3, None)]
    assert len(whole) > 3
    searched, calls = solver.search_support, []

    def interrupted(*given):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return searched(*given)

    monkeypatch.setattr(solver, "search_support", interrupted)
    pool = [near.loss for near in near_cards(problem, best, 0.3, None)]
    assert len(pool) == 2
    assert set(pool) < set(whole)


def test_a_long_proof_tells_its_gap_all_along():
    problem = random_problem(6, 3, 3)
    told: list[Step] = []
    with listening(told.append):
        found = solve_card(problem, empty(problem), time_limit=None, gap=0.0)
    said = [float(step.text.rpartition(" ")[2].rstrip("%")) for step in told[1:]]
    assert len(said) > 2
    assert said == sorted(said, reverse=True)
    assert said[-1] == pytest.approx(100 * found.gap / found.value, abs=0.2)
    assert all(step.done is None for step in told)


def random_node(seed: int):
    """Worths, states, places left, columns with their caps and those that need an item."""
    draw = np.random.default_rng(seed)
    column = draw.integers(0, 3, 7)
    state = draw.choice([0, 0, 0, 1, -1], 7).astype(np.int8)
    worth = np.where(state == 0, np.round(draw.exponential(1.0, 7), 1), 0.0)
    caps = np.array([np.sum(column == c) for c in range(3)])
    if draw.random() < 0.5:
        caps[0] = max(1, np.sum((column == 0) & (state == 1)))
    open_columns = np.isin(np.arange(3), column[state == 0])
    held = np.isin(np.arange(3), column[state == 1])
    needed = (draw.random(3) < 0.4) & open_columns & ~held
    return worth, state, max(1, int(needed.sum() + draw.integers(0, 3))), column, caps, needed


def choices_of(state, room, column, caps, needed):
    """All ways to fill places of a node: sets of open items."""
    free = np.flatnonzero(state == 0)
    for size in range(min(room, len(free)) + 1):
        for own in itertools.combinations(free.tolist(), size):
            on = state == 1
            on[list(own)] = True
            counts = np.bincount(column[on], minlength=len(caps))
            if (counts <= caps).all() and (counts[needed] > 0).all():
                yield own


@pytest.mark.parametrize("seed", range(60))
def test_prices_of_items_and_columns_are_below_the_true_ones(seed):
    node = random_node(seed)
    worth, state, _, column, caps, _ = node
    sums = {own: worth[list(own)].sum() for own in choices_of(*node[1:])}
    total, _ = largest_worths(*node, np.zeros(len(caps)))
    assert total == pytest.approx(max(sums.values()))
    put_in, left_out = prices_of_items(*node)
    for j in np.flatnonzero(state == 0):
        with_it = [value for own, value in sums.items() if j in own]
        assert not with_it or put_in[j] <= total - max(with_it) + 1e-12
    for c in range(len(caps)):
        without = [v for own, v in sums.items() if c not in column[list(own)]]
        assert not without or left_out[c] <= total - max(without) + 1e-12


@pytest.mark.parametrize("seed", range(12))
def test_projection_on_the_relaxed_cards_of_a_node(seed):
    draw = np.random.default_rng(seed)
    _, state, room, column, _, needed = random_node(seed)
    low, high = -draw.uniform(0.5, 3, 7), draw.uniform(0.5, 3, 7)
    y, scale, out = draw.normal(0, 3, 7), draw.uniform(0.5, 2, 7), np.zeros(7)
    project(y, groups_of(state, column, needed), low, high, scale, room, out)
    place = np.where(out > 0, out / high, out / low) * (state == 0)
    sums = np.bincount(column, place, minlength=3)
    assert np.where(needed, np.maximum(sums, 1), sums).sum() <= room + 1e-6

    def size(v):
        return np.sum((v[:7] + v[7:] - y) ** 2 / scale)

    # the same by a general solver: positive and negative parts, one more variable a needed column
    share = np.concatenate([1 / high, 1 / low]) * np.tile(state == 0, 2)
    own = np.eye(3)[:, column]
    rules = [
        {"type": "ineq", "fun": lambda v, m=m: room - _places(v, share, own, needed, m)}
        for m in itertools.product((0, 1), repeat=int(needed.sum()))
    ]
    box = [(0, h) for h in high] + [(v, 0) for v in low]
    found = minimize(size, np.zeros(14), bounds=box, constraints=rules, method="SLSQP")
    least = np.sum((out - y) ** 2 / scale)
    assert least == pytest.approx(found.fun, rel=1e-4, abs=1e-6)


def _places(v, share, own, needed, full):
    """Places taken with every needed column counted as one place (0) or by its sum (1)."""
    sums = np.tile(own, 2) @ (share * v)
    sums[np.flatnonzero(needed)] = np.where(full, sums[needed], 1.0)
    return sums.sum()


def test_merged_patterns_have_the_loss_of_all():
    draw = np.random.default_rng(3)
    items = draw.integers(0, 2, (70, 200)).astype(np.uint8)
    found = patterns(items, draw.random(200) < 0.4, draw.random(200))
    problem = CardProblem(*found, np.full(70, -3), np.full(70, 3), 3, 2.0, np.arange(70))
    for kept in (3, 66):
        base = np.arange(70) < kept
        X, pos, neg = branching.merged(problem, base)
        assert len(np.unique(X, axis=1).T) == X.shape[1]
        w = np.zeros(70)
        w[:kept] = draw.normal(0, 1, kept)
        there = loss_at(w[:kept] @ X, pos, neg)
        assert there == pytest.approx(loss_at(w @ problem.dense, problem.pos, problem.neg))


@pytest.mark.parametrize("seed", range(40))
def test_a_proof_agrees_where_a_column_offers_few_places(seed):
    """Copies in one column that may have points once: what is fixed must know of the limit."""
    draw = np.random.default_rng(seed)
    items = (draw.random((5, 50)) < draw.uniform(0.2, 0.8, (5, 1))).astype(np.uint8)
    items[1:3] = items[0] ^ (draw.random((2, 50)) < 0.1)
    second = draw.random(50) < expit(items.T @ np.array([2.0, 1.0, 1.0, 0.6, 0.5]) - 1.5)
    second[:2] = [True, False]
    found, column = patterns(items, second, np.ones(50)), np.array([0, 0, 0, 1, 1])
    problem = CardProblem(*found, np.full(5, -1), np.full(5, 1), 3, 2.0, column)
    problem, start = limited(problem, [Rule("one", np.arange(3), at_most=1)], None)
    least = min(problem.fitted(card)[0] for card in every_card(problem))
    proof = branching.Proof(
        problem, branching.Incumbent(problem.fitted(start)[0], start), Deadline(None)
    )
    proof.run(0.05)
    assert proof.bound <= least + 1e-12
    assert proof.best.loss * 0.95 <= least + 1e-9
