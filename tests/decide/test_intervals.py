"""Intervals of rates and of mean costs: true as often as they say, by enumerating all samples."""

import itertools

import numpy as np
import pytest
from scipy.stats import binom, multinomial

from laconic.decide.intervals import (
    design_effect,
    difference_interval,
    mean_cost_interval,
    paid_difference_interval,
    paid_interval,
    rate_interval,
    sum_interval,
)


def coverage(n, p, w):
    """Probability that the interval of w1 p1 + w2 p2 holds, over every pair of counts."""
    total = 0.0
    truth = float(np.dot(w, p))
    for x in itertools.product(*(range(rows + 1) for rows in n)):
        low, high = sum_interval(w, np.divide(x, n), n)
        if low - 1e-12 <= truth <= high + 1e-12:
            total += float(np.prod(binom.pmf(x, n, p)))
    return total


@pytest.mark.parametrize(
    ("n", "p", "w"),
    [
        ((5, 40), (0.0, 0.0), (10.0, 1.0)),  # no errors at all
        ((5, 40), (0.05, 0.02), (10.0, 1.0)),
        ((5, 40), (0.3, 0.01), (1.0, 1.0)),
        ((5, 40), (0.5, 0.1), (0.1, 0.9)),
        ((7, 4), (0.064, 0.056), (1.1, 1.0)),  # the worst corner without the gamma law
        ((20, 5), (0.0076, 0.1), (5.0, 0.95)),  # likewise
        ((16, 30), (0.018, 0.007), (0.37, 1.0)),
        ((5, 30), (1.0, 0.5), (25.0, 1.0)),
    ],
)
def test_coverage_of_weighted_rates(n, p, w):
    assert coverage(n, p, w) >= 0.95


def test_coverage_in_random_settings():
    draw = np.random.default_rng(0)
    found = []
    for _ in range(12):
        n = (int(draw.integers(2, 12)), int(draw.integers(2, 40)))
        p = tuple(draw.random(2) ** 2 * np.minimum(1.0, 4.0 / np.array(n)))
        found.append(coverage(n, p, (float(np.exp(draw.normal(0, 1.5))), 1.0)))
    assert min(found) >= 0.94
    assert np.mean(found) <= 0.999  # and not by being endless


@pytest.mark.parametrize("cells", [(0.9, 0.08, 0.02), (0.97, 0.0, 0.03), (0.5, 0.3, 0.2)])
def test_coverage_when_the_class_mix_is_drawn_too(cells):
    """Rows fall into right, false alarm and miss together."""
    n, fp, fn = 40, 1.0, 10.0
    truth = fp * cells[1] + fn * cells[2]
    total = 0.0
    for a in range(n + 1):
        for b in range(n + 1 - a):
            low, high = mean_cost_interval([[n - a - b, a], [b, 0]], [[0, fp], [fn, 0]])
            if low - 1e-12 <= truth <= high + 1e-12:
                total += multinomial.pmf([n - a - b, a, b], n, cells)
    assert total >= 0.95


def test_simulated_decisions_of_a_rare_class():
    """Five positives among 200 rows, a miss costs 25: the interval of the long-run cost holds."""
    draw = np.random.default_rng(1)
    hold = fooled = 0
    share, miss, alarm = 0.025, 0.4, 0.05
    truth = share * miss * 25.0 + (1 - share) * alarm
    for _ in range(1000):
        positive = draw.random(200) < share
        wrong = draw.random(200) < np.where(positive, miss, alarm)
        counts = np.array([[np.sum(~positive & ~wrong), np.sum(~positive & wrong)],
                           [np.sum(positive & wrong), np.sum(positive & ~wrong)]])  # fmt: skip
        low, high = mean_cost_interval(counts, [[0.0, 1.0], [25.0, 0.0]])
        hold += low <= truth <= high
        cost = np.where(wrong, np.where(positive, 25.0, 1.0), 0.0)
        within = [cost[positive == k].var() * np.mean(positive == k) for k in (False, True)
                  if (positive == k).any()]  # fmt: skip
        reach = 1.96 * np.sqrt(sum(within) / 200)
        fooled += not cost.mean() - reach <= truth <= cost.mean() + reach
    assert hold / 1000 >= 0.94
    assert fooled / 1000 > 0.15  # what "plus or minus 1.96 standard errors" would have done


def test_zero_errors_are_not_between_zero_and_zero():
    low, high = mean_cost_interval([[195, 0], [0, 5]], [[0, 1], [10, 0]])
    assert low == 0.0
    assert high > 0.1
    known = mean_cost_interval([[195, 0], [0, 5]], [[0, 1], [10, 0]], shares=[0.975, 0.025])
    assert known[1] > 0.025 * 10 * 0.4  # five positives say little


def test_rates_are_wilsons_with_the_correction_of_the_textbook():
    # Newcombe (1998), table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29
    low, high = rate_interval(
        np.array([81 / 263, 15 / 148, 0.0, 1 / 29]), np.array([263, 148, 20, 29])
    )
    np.testing.assert_allclose(low, [0.2535, 0.0598, 0.0, 0.0018], atol=5e-5)
    np.testing.assert_allclose(high, [0.3682, 0.1644, 0.2005, 0.1963], atol=5e-5)
    assert [float(x) for x in rate_interval(0.0, 0)] == [0.0, 1.0]


def test_limits_stay_within_what_can_be_paid():
    costs = [[-1.0, 2.0], [5.0, 0.5]]
    low, high = mean_cost_interval([[0, 3], [2, 0]], costs)
    assert -1.0 <= low < high == 5.0
    low, high = mean_cost_interval([[0, 3], [2, 0]], costs, shares=[0.9, 0.1])
    assert 0.9 * -1.0 + 0.1 * 0.5 <= low < high == pytest.approx(0.9 * 2.0 + 0.1 * 5.0)


def test_more_decisions_and_classes():
    """Three classes and the right to abstain, the class mix drawn or given."""
    draw = np.random.default_rng(2)
    costs = np.array([[0.0, 1, 2, 0.3], [4, 0, 1, 0.3], [9, 3, 0, 0.3]])
    rates = np.array([[0.9, 0.05, 0.02, 0.03], [0.05, 0.8, 0.1, 0.05], [0.05, 0.15, 0.7, 0.1]])
    shares = np.array([0.7, 0.25, 0.05])
    truth = float((shares[:, None] * rates * costs).sum())
    hold = np.zeros(2)
    for _ in range(600):
        mix = draw.multinomial(120, shares)
        counts = np.array([draw.multinomial(n, rate) for n, rate in zip(mix, rates, strict=True)])
        for k, given in enumerate((None, shares)):
            low, high = mean_cost_interval(counts, costs, given)
            hold[k] += low <= truth <= high
    assert (hold / 600 >= 0.94).all()
    wide = mean_cost_interval(counts, costs, confidence=0.99)
    assert wide[0] < low < high < wide[1]


@pytest.mark.parametrize(
    ("rates", "n"), [((0.9, 0.08, 0.02), 80), ((0.98, 0.01, 0.01), 150), ((0.6, 0.3, 0.1), 40)]
)
def test_differences_are_covered(rates, n):
    """Paired differences of -1 and +3 (a miss more costs three false alarms)."""
    draw = np.random.default_rng(n)
    each = np.array([[0.0, -1.0, 3.0]])
    true = float(each[0] @ rates)
    hits = 0
    for _ in range(2000):
        low, high = difference_interval(draw.multinomial(n, rates)[None, :], each)
        hits += low <= true <= high
    assert hits / 2000 >= 0.935


@pytest.mark.parametrize("n_classes", [2, 3, 30])
def test_errors_of_one_price_are_one_kind(n_classes):
    """At 0-1 costs the mean cost is the share of errors, whatever the number of classes."""
    counts = np.diag(np.full(n_classes, 600.0 / n_classes))
    counts[0, 1] = 6.0
    costs = 1.0 - np.eye(n_classes)
    low, high = rate_interval(6.0 / 606.0, 606)
    found = mean_cost_interval(counts, costs)
    assert found[1] == pytest.approx(float(high))
    assert 0 < found[0] <= low
    pairs = np.zeros((n_classes, n_classes * n_classes))  # both decide all rows right
    pairs[np.arange(n_classes), np.arange(n_classes) * (n_classes + 1)] = 600.0 / n_classes
    more = (costs[:, :, None] - costs[:, None, :]).reshape(n_classes, -1)
    low, high = difference_interval(pairs, more)
    assert -0.01 < low < 0 < high < 0.01


@pytest.mark.parametrize("rate", [0.0, 0.01, 0.05, 0.2])
@pytest.mark.parametrize("spread", [0.0, 0.5, 1.0])
def test_means_of_money_are_held_also_where_nothing_was_paid(rate, spread):
    """Amounts of a lognormal law on rare rows; zero errors give no interval of width zero."""
    draw, n, held = np.random.default_rng([1, int(100 * rate)]), 200, []
    for _ in range(400):
        amount = np.exp(draw.normal(2, spread, n))
        paid = np.where(draw.random(n) < rate, amount, 0.0)
        low, high = paid_interval(paid, float(amount.max()))
        held.append(low <= rate * np.exp(2 + spread**2 / 2) <= high)
        assert high > 0
    assert np.mean(held) >= 0.93  # 95 % less two standard errors of 400 draws


def test_differences_of_money_are_held():
    draw, held = np.random.default_rng(2), []
    for _ in range(400):
        amount = np.exp(draw.normal(1, 0.7, 150))
        more = amount * draw.choice([-1.0, 0.0, 1.0], 150, p=[0.15, 0.8, 0.05])
        low, high = paid_difference_interval(more, float(amount.max()))
        held.append(low <= -0.1 * np.exp(1 + 0.7**2 / 2) <= high)
    assert np.mean(held) >= 0.93


@pytest.mark.parametrize("size", [1, 3, 6])
def test_copies_count_once(size):
    """Every row ``size`` times: with the design effect the interval holds, without it does not."""
    draw, n = np.random.default_rng(size), 60
    held = {"known": 0, "ignored": 0}
    each, clusters = np.array([0.0, -1.0, 1.0]), np.repeat(np.arange(n), size)
    for _ in range(300):
        kind = np.repeat(draw.choice(3, n, p=[0.4, 0.3, 0.3]), size)
        counts = np.bincount(kind, minlength=3)[None, :]
        repeats = design_effect(each[kind], clusters)
        assert repeats == pytest.approx(size)
        for name, fewer in (("known", counts / repeats), ("ignored", counts)):
            low, high = difference_interval(fewer, each[None, :])
            held[name] += low <= 0 <= high
    assert held["known"] >= 0.93 * 300
    assert (held["ignored"] >= 0.93 * 300) is (size == 1)
