"""Held-out rows: prices of decisions, class risks, paired errors, sizes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import laconic
from laconic.choose.candidates import Candidate, auto_candidates, read_candidates
from laconic.choose.comparison import Judge, OperatingCondition, Outcome
from laconic.choose.tailored import tailored_losses
from laconic.choose.tuning import CONCENTRATION
from laconic.core.compact import model_size, term_size
from laconic.core.forms import LineTerm, SlotTerm
from laconic.data.tables.axes import CategoryAxis, IntervalAxis, KnotAxis
from laconic.minimax.criterion import PriorBox

UNEVEN = [[0.0, 1.0], [10.0, 0.0]]
EVEN = [[0.0, 1.0], [1.0, 0.0]]


def condition(costs, prior=None, box=None, reject=None):
    return OperatingCondition(np.array(costs), np.array([0.9, 0.1]), prior, box, reject)


def outcome(proba, name="x"):
    return Outcome(Candidate(name, None), proba, np.full(len(proba), np.nan), complete=True)


def test_row_costs_by_hand():
    proba = np.array([[0.95, 0.05], [0.8, 0.2], [0.5, 0.5]])
    y = np.array([0, 1, 0])
    paid = condition(UNEVEN).row_costs(proba, y, None)
    np.testing.assert_array_equal(paid, [0.0, 0.0, 1.0])
    paid = condition(UNEVEN, reject=0.3).row_costs(proba, y, None)
    np.testing.assert_array_equal(paid, [0.3, 0.3, 0.3])
    # at a deployed share of 1/1000, odds 0.5 : 0.5 become 0.5 * 0.999/0.9 : 0.5 * 0.001/0.1
    paid = condition(UNEVEN).row_costs(proba, y, np.array([0.999, 0.001]))
    np.testing.assert_array_equal(paid, [0.0, 10.0, 0.0])


def test_class_risks_and_paired_errors_against_plain_formulas():
    draw = np.random.default_rng(0)
    y = (draw.random(500) < 0.3).astype(int)
    a, b = draw.random(500), draw.random(500)
    judge = Judge(y, np.ones(500), condition(EVEN))
    risk, variance = judge.class_risks(a)
    np.testing.assert_allclose(risk, [a[y == 0].mean(), a[y == 1].mean()])
    np.testing.assert_allclose(variance[1], a[y == 1].var() / (y == 1).sum())
    assert judge.mean(a)[0] == pytest.approx(0.9 * risk[0] + 0.1 * risk[1])
    d = a - b
    gap, error = judge.paired(a, b)
    assert gap == pytest.approx(0.9 * d[y == 0].mean() + 0.1 * d[y == 1].mean())
    expected = 0.81 * d[y == 0].var() / (y == 0).sum() + 0.01 * d[y == 1].var() / (y == 1).sum()
    assert error == pytest.approx(np.sqrt(expected))


def test_weights_are_copies_of_rows():
    draw = np.random.default_rng(1)
    y, a = draw.integers(0, 2, 60), draw.random(60)
    times = draw.integers(1, 4, 60)
    one = Judge(y, times.astype(float), condition(EVEN)).mean(a)[0]
    many = Judge(np.repeat(y, times), np.ones(times.sum()), condition(EVEN))
    assert one == pytest.approx(many.mean(np.repeat(a, times))[0])


def test_a_box_of_priors_prices_the_worst_mix():
    box = condition(EVEN, box=PriorBox.of([[0.5, 0.8], [0.2, 0.5]], 2))
    np.testing.assert_allclose(box.mix(np.array([0.1, 0.4])), [0.5, 0.5])
    np.testing.assert_allclose(box.mix(np.array([0.4, 0.1])), [0.8, 0.2])


@pytest.mark.parametrize("prior", [None, np.array([0.4, 0.6])])
def test_tailored_losses_are_at_the_class_mix_of_deployment(prior):
    draw = np.random.default_rng(2)
    y, p = draw.integers(0, 2, 50), draw.random(50)
    proba = np.stack([1 - p, p], axis=1)
    proba[:5] = np.nan  # rows that no fold held out
    judge = Judge(y, np.ones(50), condition(UNEVEN, prior))
    found = judge.tailored(judge.price(outcome(proba)))
    odds = p / (1 - p) * (1.0 if prior is None else (0.6 / 0.4) / (0.1 / 0.9))
    there = np.stack([1 / (1 + odds), odds / (1 + odds)], axis=1)
    expected = tailored_losses(there[5:], y[5:], np.array(UNEVEN), CONCENTRATION)
    np.testing.assert_allclose(found[5:], expected)
    assert np.isnan(found[:5]).all()


def test_the_table_marks_what_is_behind():
    y = np.tile([0, 1], 50)
    good = np.where(y[:, None] == [0, 1], 0.8, 0.2)
    judge = Judge(y, np.ones(100), condition(EVEN))
    outcomes = [judge.price(outcome(p, n)) for p, n in ((1 - good, "bad"), (good, "good"))]
    table = judge.table(outcomes, outcomes[1])
    assert table["candidate"] == ["bad", "good"]
    np.testing.assert_allclose(table["cost"], [1.0, 0.0])
    np.testing.assert_allclose(table["behind"], [1.0, 0.0])
    np.testing.assert_allclose(table["auc"], [0.0, 1.0])
    np.testing.assert_allclose(table["log_loss"], [-np.log(0.2), -np.log(0.8)])
    assert judge.cheapest(outcomes) is outcomes[1]


def test_sizes_count_what_a_reader_looks_at():
    assert term_size(LineTerm("x", np.array([2.0]))) == 1
    assert term_size(LineTerm("x", np.array([2.0]), missing=np.array([0.3]))) == 2
    bins = IntervalAxis(np.array([1.0, 2.0]))
    assert term_size(SlotTerm(("x",), (bins,), [[1.0], [1.0], [2.0], [1.0]])) == 2
    texts = CategoryAxis((("a",), ("b",)))
    assert term_size(SlotTerm(("x",), (texts,), [[1.0], [2.0], [0.0], [0.0]])) == 3
    straight = KnotAxis(np.arange(10.0), np.empty(0))
    line = np.append(np.arange(10.0), 0.0)[:, None]
    assert term_size(SlotTerm(("x",), (straight,), line)) == 2
    bent = line.copy()
    bent[5:10] = 4.0
    assert term_size(SlotTerm(("x",), (straight,), bent)) == 3
    grid = SlotTerm(("x", "z"), (bins, texts), np.arange(16.0).reshape(4, 4, 1))
    assert term_size(grid) == 16
    numbers = np.random.default_rng(0).normal(size=(50, 3))
    fitted = laconic.MinimaxClassifier(n_bins=2).fit(numbers, numbers[:, 0] > 0)
    assert model_size(fitted) == fitted.n_profiles_
    assert np.isnan(model_size(GaussianNB().fit(numbers, numbers[:, 0] > 0)))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [([], "auto"), (["magic"], "offered here"), ("additive", "auto"), ({}, "empty")],
)
def test_candidates_that_are_not_known(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_candidates(given, auto_candidates(np.eye(2)[::-1], None, 0, None))


def test_the_front_runner_is_first_and_rules_of_decisions_come_with_a_box():
    costs = np.array(EVEN)
    names = [own.name for own in read_candidates("auto", auto_candidates(costs, None, 0, None))]
    assert names[0] == "additive"
    assert "minimax" not in names
    boxed = auto_candidates(costs, [[0.1, 0.9], [0.1, 0.9]], 0, None)
    assert [own.name for own in read_candidates("auto", boxed) if own.decides] == ["minimax"]


@pytest.mark.parametrize(
    ("columns", "levels", "kernel"),
    [
        ((49, 2), False, True),
        ((50,), True, True),
        ((1001,), True, False),
        ((600, 600), True, False),
    ],
)
def test_columns_of_many_levels_are_weighed_level_by_level(columns, levels, kernel):
    costs = np.array([[0.0, 1.0], [1.0, 0.0]])
    offered = auto_candidates(costs, None, 0, None, 500, None, columns)
    names = {own.name for own in read_candidates("auto", offered)}
    assert ("levels" in names, "kernel" in names) == (levels, kernel)


def test_levels_are_for_two_classes():
    offered = auto_candidates(np.ones((3, 3)) - np.eye(3), None, 0, None, 500, None, (5000,))
    assert "levels" not in {own.name for own in read_candidates("auto", offered)}
