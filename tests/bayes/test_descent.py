"""The paper's searches: constants, budgets, interruption."""

from __future__ import annotations

import math

import numpy as np
import pytest

from laconic.bayes.criterion import CodedRows, LogTables, WeightedBayes
from laconic.bayes.descent import (
    DescentRules,
    MiniBatches,
    SearchPath,
    dgml,
    search,
    search_weights,
    total_iterations,
)
from laconic.bayes.solver import newton_weights
from laconic.core.progress import Deadline
from laconic.data.source import ArraySource


class Bowl:
    """Sum of squares around ``centre``, the same on every batch."""

    def __init__(self, centre, scale=10.0):
        self.centre, self.scale = np.asarray(centre, float), scale
        self.evaluations = 0

    @property
    def n_variables(self):
        return len(self.centre)

    def value(self, w, batch):
        self.evaluations += 1
        return float(self.scale * ((w - self.centre) ** 2).sum())

    def slope(self, w, batch):
        return 2.0 * self.scale * (w - self.centre)


class Wells(Bowl):
    """Two wells in every coordinate: a shallow one near 0.2, the deep one near 0.9."""

    def value(self, w, batch):
        self.evaluations += 1
        return float((-np.exp(-40 * (w - 0.2) ** 2) - 2 * np.exp(-40 * (w - 0.9) ** 2)).sum() + 9)

    def slope(self, w, batch):
        shallow, deep = np.exp(-40 * (w - 0.2) ** 2), np.exp(-40 * (w - 0.9) ** 2)
        return 80 * (w - 0.2) * shallow + 160 * (w - 0.9) * deep


def run(problem, kind, budget, start=None, seed=0, deadline=None):
    first = np.full(problem.n_variables, 0.5) if start is None else start

    def descend(point, path, until, allowed):
        return dgml(problem, point, path, until, allowed)

    rng = np.random.default_rng(seed)
    return search(descend, first, kind, rng=rng, budget=budget, deadline=deadline)


def test_the_constants_are_those_of_the_paper():
    rules = DescentRules()
    assert (rules.first_step, rules.shrink, rules.grow) == (1e-2, 0.5, 1.2)
    assert (rules.max_iter, rules.tolerance) == (100, 5)
    assert (rules.improvement, rules.relative, rules.zero_below) == (1e-4, True, 1e-3)
    assert total_iterations(10, 1000.0, 5) == math.ceil(math.log(10_000) * 32)


def test_the_first_steps_are_those_of_algorithm_1():
    bowl = Bowl([0.3, 1.4], scale=0.5)
    path = SearchPath(np.full(2, 0.5))
    dgml(bowl, np.full(2, 0.5), path, Deadline(None), allowed=3)
    w, step = np.full(2, 0.5), np.full(2, 1e-2)
    for t, point in enumerate(path.points):
        np.testing.assert_allclose(point, w)
        slope = bowl.slope(w, t)
        if t:
            step = step * 1.2  # neither slope changes its sign here
        w = np.clip(w - step * slope, 0, 1)
    assert len(path.points) == 4


def test_a_step_shrinks_when_the_slope_turns():
    class Turning(Bowl):
        def slope(self, w, batch):
            return np.array([1.0 if batch % 2 else -1.0])

        def value(self, w, batch):
            return -float(batch)  # always an improvement: the descent goes on

    path = SearchPath(np.array([0.5]))
    dgml(Turning([0.0]), np.array([0.5]), path, Deadline(None), allowed=4)
    moves = np.abs(np.diff(np.concatenate(path.points)))
    np.testing.assert_allclose(moves, 1e-2 * 0.5 ** np.arange(4))


def test_small_weights_are_set_to_zero_and_may_come_back():
    path = SearchPath(np.array([0.5, 0.0]))
    bowl = Bowl([-0.2, 0.6])
    dgml(bowl, np.array([0.5, 0.0]), path, Deadline(None), allowed=100)
    assert path.point[0] == 0.0
    assert path.point[1] == pytest.approx(0.6, abs=0.02)
    every = np.concatenate(path.points)
    assert not ((every > 0) & (every < 1e-3)).any()


def test_five_failures_end_a_descent():
    bowl = Bowl([0.5, 0.5])
    path = SearchPath(np.full(2, 0.5))
    assert dgml(bowl, np.full(2, 0.5), path, Deadline(None), allowed=100) == 5


@pytest.mark.parametrize("kind", ["dgml-ms", "dgml-vns"])
def test_a_longer_search_is_never_worse(kind):
    values = [run(Wells([0.0] * 4), kind, budget).value for budget in (5, 20, 80, 320, 1280)]
    assert values == sorted(values, reverse=True)
    assert values[-1] < values[0]


def test_restarts_find_the_deep_well():
    start = np.full(3, 0.15)
    alone = run(Wells([0.0] * 3), "dgml", 2000, start)
    searched = run(Wells([0.0] * 3), "dgml-vns", 2000, start)
    np.testing.assert_allclose(alone.point, 0.2, atol=0.05)
    np.testing.assert_allclose(searched.point, 0.9, atol=0.05)
    assert searched.details["values"].min() == searched.value
    assert len(searched.details["starts"]) > 3
    assert searched.n_iter == len(searched.details["values"])


def test_the_same_seed_gives_the_same_path():
    a, b = (run(Wells([0.0] * 3), "dgml-vns", 200, seed=5) for _ in range(2))
    np.testing.assert_array_equal(a.details["points"], b.details["points"])
    other = run(Wells([0.0] * 3), "dgml-vns", 200, seed=6)
    assert not np.array_equal(a.details["points"][-1], other.details["points"][-1])


def test_more_time_is_never_worse():
    values = []
    for ticks in (1, 10, 50, 200, 1000):
        count = iter(range(10**9))
        clock = Deadline(ticks, clock=lambda count=count: float(next(count)))
        found = run(Wells([0.0] * 4), "dgml-vns", 10**6, deadline=clock)
        assert found.why_stopped == "budget"
        values.append(found.value)
    assert values == sorted(values, reverse=True)
    assert values[-1] < values[0]


def test_ctrl_c_is_not_swallowed():
    class Impatient(Wells):
        def value(self, w, batch):
            if self.evaluations == 60:
                raise KeyboardInterrupt
            return super().value(w, batch)

    with pytest.raises(KeyboardInterrupt):
        run(Impatient([0.0] * 3), "dgml-vns", 10**6)


@pytest.mark.parametrize(
    ("relative", "fall", "n_iter"), [(True, 0.01, 5), (False, 0.01, 25), (True, 0.4, 25)]
)
def test_an_improvement_is_a_share_of_the_memorised_value_or_nats(relative, fall, n_iter):
    """Small steps add up: the value that a step is compared with is the last one that improved."""

    class Slow(Bowl):
        def value(self, w, batch):
            return 1000.0 - fall * batch

    rules = DescentRules(improvement=1e-3, relative=relative, max_iter=25)
    path = SearchPath(np.full(2, 0.5))
    done = dgml(Slow([0.0, 0.0]), np.full(2, 0.5), path, Deadline(None), 1000, rules)
    assert done == n_iter


def _mini_batches(n=500, batch_size=100, depth=None, seed=0):
    draw = np.random.default_rng(seed)
    y = draw.integers(0, 2, n)
    codes = (draw.random((n, 4)) < 0.35 + 0.3 * y[:, None]).astype(np.uint8)
    tables = []
    for k in range(4):
        table = np.zeros((2, 2))
        np.add.at(table, (codes[:, k], y), 1.0)
        tables.append(table)
    logs = LogTables.of(tables, np.bincount(y).astype(float))
    rows = CodedRows(ArraySource(codes, y, np.ones(n)), logs)
    criterion = WeightedBayes(np.full(4, 10.0), 0.1, 1.0)
    past = rows if depth is None else None
    return MiniBatches(
        rows, np.arange(n), batch_size, criterion, float(n), past=past, depth=depth or n
    )


def test_batches_share_out_the_criterion():
    """The slopes of the batches of one round average to the slope of the whole criterion."""
    problem = _mini_batches()
    w = np.array([0.1, 0.4, 0.6, 0.9])
    slopes = [problem.slope(w, t) for t in range(5)]
    whole = problem.criterion.slope(w, problem.batches.loss_and_slope(w)[1]) / 500
    np.testing.assert_allclose(np.mean(slopes, axis=0), whole, rtol=1e-10)
    np.testing.assert_allclose(problem.slope(w, 5), slopes[0])


def test_history_is_the_last_rows():
    problem = _mini_batches(depth=200)
    w = np.full(4, 0.5)
    rows = problem.batches.take(np.arange(100, 300))  # the end of batch 2 is row 300
    expected = problem.criterion.value(w, rows.loss(w) * 500 / 200)
    assert problem.value(w, 2) == pytest.approx(expected)


def test_searches_reach_the_certified_minimum_when_batches_are_whole():
    problem = _mini_batches(batch_size=500)
    best = newton_weights(problem.batches, problem.criterion)
    for kind in ("dgml", "dgml-ms", "dgml-vns"):
        found = search_weights(problem, kind, level=5, rng=np.random.default_rng(0))
        assert best.value - best.gap <= found.value <= best.value * 1.001


def test_restarts_reach_the_minimum_from_small_batches():
    """One descent by small batches stays above it: the noise of the slopes shrinks its steps."""
    problem = _mini_batches(n=4000, batch_size=40)
    best = newton_weights(problem.batches, problem.criterion)
    excess = {}
    for kind, growth in (("dgml", 1.0), ("dgml-vns", 1.0), ("dgml-vns", 10.0)):
        rng = np.random.default_rng(0)
        found = search_weights(problem, kind, level=5, rng=rng, batch_growth=growth)
        excess[kind, growth] = found.value / best.value - 1.0
    assert excess["dgml", 1.0] > 1e-3
    assert excess["dgml-vns", 10.0] < 1e-4 < excess["dgml-vns", 1.0]


def test_the_budget_begins_descents_and_a_limit_cuts_them():
    """Algorithm 2 adds up whole descents until T is passed; ``max_iter`` is a limit of ours."""
    problem = _mini_batches(batch_size=500)

    def lengths(**limits):
        found = search_weights(problem, "dgml-ms", rng=np.random.default_rng(0), **limits)
        starts = found.details["starts"]
        return np.diff([*starts, found.n_iter]) - 1

    budget = total_iterations(4, 500.0, 0)
    whole = lengths(level=0)
    assert whole[:-1].sum() < budget <= whole.sum()
    assert lengths(level=0, max_iter=3).sum() == 3
    alone = search_weights(problem, "dgml", level=0, rng=np.random.default_rng(0))
    assert alone.n_iter - 1 == whole[0]


def test_batches_grow_to_the_history_and_no_further():
    whole, recent = _mini_batches(batch_size=20), _mini_batches(batch_size=100, depth=200)
    sizes = [[], []]
    for seen, problem in zip(sizes, (whole, recent), strict=True):
        for _ in range(3):
            seen.append(problem.batch_size)
            problem = problem.grown(10)
    assert sizes == [[20, 200, 500], [100, 200, 200]]
    assert _mini_batches(batch_size=300, depth=200).grown(10).batch_size == 300
