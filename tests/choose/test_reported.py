"""Reported costs: unbiased after a choice, intervals that cover, groups drawn together."""

from __future__ import annotations

import numpy as np
import pytest

from laconic.choose.candidates import Candidate
from laconic.choose.comparison import Judge, OperatingCondition, Outcome
from laconic.choose.page.pages import PageChoice
from laconic.choose.reported import reported

EVEN = 1.0 - np.eye(2)


class BestOf(PageChoice):
    """The plain rule that a choice is made by: the least mean loss."""

    def pick(self, losses):
        return int(np.argmin(losses))


def _choice(judge, costs):
    pages = [Outcome(Candidate(str(j), None), np.full((len(judge.y), 2), 0.5), column)
             for j, column in enumerate(costs.T)]  # fmt: skip
    return BestOf(tuple(pages), judge, costs, costs)


def test_the_winner_of_equals_is_not_called_better_and_intervals_cover():
    """Ten pages of the same true cost 0.3: the least count is 5 % too good, the report is not."""
    counted, value, inside = [], [], 0
    for seed in range(80):
        draw = np.random.default_rng(seed)
        y = np.tile([0, 1], 150)
        judge = Judge(y, np.ones(300), OperatingCondition(EVEN, np.array([0.5, 0.5])))
        # half of the errors are shared: pages are alike
        common = draw.random(300)
        own = draw.random((300, 10))
        errors = np.where(draw.random((300, 10)) < 0.5, common[:, None], own) < 0.3
        choice = _choice(judge, errors.astype(float))
        found, _ = reported(choice, choice.costs[:, 0], None, seed, wider=1.0)  # nothing was fitted
        counted.append(errors.mean(axis=0).min())
        value.append(found.value)
        inside += found.low <= 0.3 <= found.high
    assert np.mean(counted) < 0.97 * 0.3
    assert np.mean(value) == pytest.approx(0.3, rel=0.02)
    assert 0.8 * 80 <= inside <= 0.98 * 80


def test_the_price_is_the_difference_on_the_same_rows():
    draw = np.random.default_rng(0)
    y = draw.integers(0, 2, 400)
    judge = Judge(y, np.ones(400), OperatingCondition(EVEN, np.array([0.5, 0.5])))
    page = (draw.random(400) < 0.3).astype(float)
    committee = page.copy()
    committee[:8] = 0.0
    choice = _choice(judge, page[:, None])
    cost, price = reported(choice, committee, None, 0)
    gap = judge.mean(page - committee)[0]
    assert price.value == pytest.approx(gap, abs=0.3 * gap)
    assert price.error < 0.5 * cost.error
    assert cost.value == pytest.approx(judge.mean(page)[0], rel=0.02)


def test_rows_of_a_group_are_drawn_together():
    """Twenty groups of twenty equal rows are twenty rows, and the interval must know."""
    draw = np.random.default_rng(0)
    groups = np.repeat(np.arange(20), 20)
    errors = np.repeat(draw.random(20) < 0.4, 20).astype(float)
    y = np.tile([0, 1], 200)
    judge = Judge(y, np.ones(400), OperatingCondition(EVEN, np.array([0.5, 0.5])))
    choice = _choice(judge, errors[:, None])
    alone, _ = reported(choice, errors, None, 0, wider=1.0)
    together, _ = reported(choice, errors, groups, 0, wider=1.0)
    expected = np.sqrt(errors.var() / 20)
    assert together.error == pytest.approx(expected, rel=0.2)
    assert together.error > 3 * alone.error


def test_a_rare_class_is_averaged_over_the_draws_that_have_it():
    y = np.zeros(200, dtype=int)
    y[:3] = 1
    costs = np.where(y == 1, 1.0, 0.0)
    judge = Judge(y, np.ones(200), OperatingCondition(EVEN, np.array([0.9, 0.1])))
    choice = _choice(judge, costs[:, None])
    found, _ = reported(choice, costs, None, 0)
    assert found.value == pytest.approx(0.1)


def test_intervals_hold_what_few_errors_cannot_show():
    """No error in 60 rows, and one difference: no cost below 0, no interval of no width."""
    y = np.tile([0, 1], 30)
    judge = Judge(y, np.ones(60), OperatingCondition(EVEN, np.array([0.5, 0.5])))
    nothing, once = np.zeros(60), np.eye(60)[0]
    cost, price = reported(_choice(judge, nothing[:, None]), once, None, 0)
    assert cost.value == cost.low == 0.0
    # a rate of 4 % shows no error in 60 rows once in twelve times
    assert 0.04 < cost.high < 0.15
    assert price.low < -1 / 60 < 0.0 < price.high
    assert price.low < price.value < price.high


@pytest.mark.parametrize("rate", [0.0, 0.01, 0.05])
def test_intervals_of_rare_errors_and_differences_cover(rate):
    """Known rates of two models that share most errors; 9 in 10 intervals must hold each truth."""
    y, n_draws = np.tile([0, 1], 60), 60
    judge = Judge(y, np.ones(120), OperatingCondition(EVEN, np.array([0.5, 0.5])))
    held = np.zeros(2)
    for seed in range(n_draws):
        draw = np.random.default_rng(seed)
        shared, own = draw.random(120) < rate, draw.random((120, 2)) < 0.01
        page, committee = (shared | own[:, 0]) * 1.0, (shared | own[:, 1]) * 1.0
        choice = _choice(judge, page[:, None])
        cost, price = reported(choice, committee, None, seed, wider=1.0)
        truth = 1.0 - (1.0 - rate) * 0.99
        held += [cost.low <= truth <= cost.high, price.low <= 0.0 <= price.high]
    assert (held >= (0.9 - 2 * np.sqrt(0.09 / n_draws)) * n_draws).all()
