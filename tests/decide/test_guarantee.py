"""Guarantees: order statistics against their definition, coverage by simulation, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom, norm

from laconic import DecisionClassifier, PlainLogisticRegression
from laconic.decide.guarantee import (
    Guarantee,
    NoThresholdError,
    mean_p_value,
    order_of_the_promise,
    rows_needed,
)
from laconic.decide.threshold import guaranteed_threshold

COSTS = {"fp": 1.0, "fn": 4.0}
MATRIX = np.array([[0.0, 1.0], [4.0, 0.0]])


def drawn(rng: np.random.Generator, n: int, share: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """Scores whose law by class is known: normal log-odds, two deviations apart."""
    positive = rng.random(n) < share
    return expit(rng.normal(np.where(positive, 0.6, -1.4), 1.0)), positive


def truth_at(threshold: float, share: float = 0.2) -> dict[str, float]:
    """What a threshold does in the long run."""
    cut = np.log(threshold / (1 - threshold))
    recall, false_alarms = norm.sf(cut - 0.6), norm.sf(cut + 1.4)
    alarms = share * recall + (1 - share) * false_alarms
    return {
        "recall": recall,
        "false_alarms": false_alarms,
        "alarms": alarms,
        "precision": share * recall / alarms,
        "cost": share * (1 - recall) * 4 + (1 - share) * false_alarms,
    }


def test_the_order_statistic_is_the_last_that_holds():
    for n, wrong in [(59, 0.05), (200, 0.1), (1000, 0.02), (30, 0.5)]:
        r = order_of_the_promise(n, wrong, 0.05)
        assert binom.cdf(r, n, wrong) <= 0.05 < binom.cdf(r + 1, n, wrong)
        # what it promises: with rows wrong at a rate above ``wrong``, r or fewer are seen rarely
        seen = np.random.default_rng(0).binomial(n, wrong + 0.001, 20_000)
        assert (seen <= r).mean() <= 0.05 + 0.006


@pytest.mark.parametrize(
    "asked",
    [
        ["recall>=0.9"],
        ["false_alarms<=0.1"],
        ["alarms<=0.25"],
        ["precision>=0.6"],
        ["cost<=0.45"],
        ["recall>=0.8", "false_alarms<=0.2"],
    ],
    ids="; ".join,
)
def test_promises_hold_as_often_as_they_say(asked):
    """A promise of 90 % fails in at most 10 % of 400 samples, two standard errors allowed."""
    rng = np.random.default_rng(1)
    failed = held = 0
    for _ in range(400):
        score, positive = drawn(rng, 800)
        try:
            found = guaranteed_threshold(score, positive, asked, costs=COSTS, confidence=0.9)
        except NoThresholdError:
            continue
        held += 1
        real = truth_at(found.threshold)
        for one in map(Guarantee.parse, asked):
            wrong = real[one.measure] < one.level
            if one.measure in ("false_alarms", "alarms", "cost"):
                wrong = real[one.measure] > one.level
            failed += wrong / len(asked) if len(asked) == 1 else 0
        if len(asked) > 1:
            failed += real["recall"] < 0.8 or real["false_alarms"] > 0.2
    assert held >= 200
    assert failed / 400 <= 0.1 + 2 * np.sqrt(0.1 * 0.9 / 400)


def test_class_conditional_promises_stay_when_the_mix_moves():
    rng = np.random.default_rng(2)
    failed = 0
    for _ in range(300):
        score, positive = drawn(rng, 600)
        found = guaranteed_threshold(score, positive, "recall>=0.85", confidence=0.9)
        assert found.promises[0].holds_under_shift
        failed += truth_at(found.threshold, share=0.02)["recall"] < 0.85
    assert failed / 300 <= 0.1 + 2 * np.sqrt(0.1 * 0.9 / 300)


def test_the_cheapest_of_those_that_hold_is_taken():
    score, positive = drawn(np.random.default_rng(3), 2000)
    found = guaranteed_threshold(score, positive, "recall>=0.7", costs=COSTS)
    cuts = np.unique(score)
    cuts = cuts[(cuts >= found.lowest) & (cuts <= found.highest)]
    missed, false = (score[positive][:, None] <= cuts), (score[~positive][:, None] > cuts)
    paid = (4 * missed.sum(axis=0) + false.sum(axis=0)) / len(score)
    assert found.cost <= paid.min() + 1e-12
    # a weak promise leaves the rule of least cost alone; a strong one moves it
    weak = guaranteed_threshold(score, positive, "recall>=0.2", costs=COSTS)
    strong = guaranteed_threshold(score, positive, "recall>=0.97", costs=COSTS)
    assert strong.threshold < weak.threshold
    assert strong.cost >= weak.cost


def test_the_p_value_of_a_mean_is_valid():
    rng = np.random.default_rng(4)
    for p in (0.05, 0.3, 0.8):
        means = rng.binomial(200, p, 20_000) / 200
        for level in (p, 0.98 * p):
            p_values = mean_p_value(means * 4.0, 4.0 * level, MATRIX, 200)
            for doubt in (0.01, 0.05, 0.2):
                assert (p_values <= doubt).mean() <= doubt + 3 * np.sqrt(doubt / 20_000)


def test_too_few_rows_say_how_many_are_needed():
    assert [rows_needed(level, 0.05) for level in (0.9, 0.95, 0.99)] == [29, 59, 299]
    score = np.linspace(0.01, 0.99, 100)
    positive = np.arange(100) >= 60
    with pytest.raises(NoThresholdError, match=r"at least 59 positive rows .* here are 40"):
        guaranteed_threshold(score, positive, "recall>=0.95")
    guaranteed_threshold(score, positive, "recall>=0.9")
    with pytest.raises(NoThresholdError, match="no row of the positive class"):
        guaranteed_threshold(score, np.zeros(100, bool), "recall>=0.5")


def test_promises_that_clash_are_said():
    score, positive = drawn(np.random.default_rng(5), 2000)
    with pytest.raises(NoThresholdError, match=r"together with recall>=0\.95"):
        guaranteed_threshold(score, positive, ["recall>=0.95", "false_alarms<=0.05"])
    with pytest.raises(NoThresholdError, match=r"contradict each other: 20.* at least\."):
        guaranteed_threshold(score, positive, ["recall>=0.9", "alarms<=0.1"])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("recall>0.9", "cannot be read"),
        ("recall<=0.9", "with >= only"),
        ("recall>=1", "strictly between 0 and 1"),
        ("recall>=95", "got 95; 95 % is 0.95"),
        ("luck>=0.5", "'luck' is not known"),
        ("alarms<=0/10", "capacity of zero"),
        ("alarms<=1/0", "cannot be read"),
        ("cost<=-1", "positive number"),
    ],
)
def test_bad_wishes_are_refused(text, sentence):
    with pytest.raises(ValueError, match=sentence):
        Guarantee.parse(text)


def rows_of(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    bad = rng.random(n) < 0.2
    X = rng.normal(size=(n, 3)) + 0.9 * bad[:, None]
    return X, np.where(bad, "bad", "ok")


def test_a_decision_maker_keeps_its_promise_on_new_rows():
    """Over 60 fits on 600 rows, the recall on new rows is below 80 % in at most 10 % + 2 s.e."""
    T, truth = rows_of(20_000, 999)
    failed = 0
    for seed in range(60):
        model = DecisionClassifier(
            PlainLogisticRegression(),
            COSTS,
            positive="bad",
            guarantee="recall>=0.8",
            confidence=0.9,
        ).fit(*rows_of(600, seed))
        failed += (model.predict(T)[truth == "bad"] == "bad").mean() < 0.8
    assert failed / 60 <= 0.1 + 2 * np.sqrt(0.09 / 60)


def test_the_rows_that_promise_are_not_fitted_on():
    X, y = rows_of(400, 0)
    seen = []

    class Spy(PlainLogisticRegression):
        def fit(self, X, y, sample_weight=None):
            seen.append(len(y))
            return super().fit(X, y, sample_weight)

    twice, labels = np.vstack([X, X]), np.concatenate([y, y])  # every row has a copy
    model = DecisionClassifier(Spy(), COSTS, positive="bad", guarantee="recall>=0.6")
    model.fit(twice, labels)
    assert 0.15 < 1 - seen[0] / 800 < 0.35
    assert seen[0] % 2 == 0  # copies stay on one side


def test_the_guaranteed_threshold_leaves_python(tmp_path):
    import sqlite3

    from laconic import load, save, to_sql

    X, y = rows_of(900, 1)
    model = DecisionClassifier(
        PlainLogisticRegression(), COSTS, positive="bad", guarantee=["recall>=0.7", "alarms<=0.6"]
    ).fit(X, y)
    plain = DecisionClassifier(PlainLogisticRegression(), COSTS, positive="bad").fit(X, y)
    assert (model.predict(X) != plain.predict(X)).any()
    save(model, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert (again.predict(X) == model.predict(X)).all()
    assert again.guaranteed_ == model.guaranteed_
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE t (id INTEGER, x0 REAL, x1 REAL, x2 REAL)")
    base.executemany("INSERT INTO t VALUES (?,?,?,?)", [(i, *row) for i, row in enumerate(X)])
    found = base.execute(to_sql(model, "t", key="id", dialect="sqlite")).fetchall()
    base.close()
    assert [row[-1] for row in sorted(found)] == model.predict(X).tolist()


def test_what_a_guarantee_cannot_go_with_is_said():
    X, y = rows_of(300, 2)
    cases = [
        ({}, "which class is meant"),
        ({"positive": "bad", "guarantee": "abstentions<=0.1"}, "price of abstaining"),
        ({"positive": "bad", "calibration": 1.5}, "calibration"),
        ({"positive": "bad", "guarantee": []}, "nothing is asked for"),
        ({"positive": "bad", "guarantee": "recall>=0.999"}, "at least"),
    ]
    for more, sentence in cases:
        model = DecisionClassifier(
            PlainLogisticRegression(), **{"guarantee": "recall>=0.5", **more}
        )
        with pytest.raises(ValueError, match=sentence):
            model.fit(X, y)


def test_the_guide_runs():
    import doctest
    from pathlib import Path

    path = Path(__file__).parents[2] / "docs" / "guarantees.md"
    done = doctest.testfile(str(path), module_relative=False)
    assert done.attempted > 5
    assert not done.failed


@pytest.mark.parametrize("tied", [0.5, 0.4999])
def test_a_score_on_the_grid_leaves_the_other_tests_as_they_are(tied):
    """A cut that equals a score is no candidate, but it is tested like the others: 18 cuts between
    .9 and .5 pass, and the next has 19 / 113 of the doubt .1, .0168, for its p-value of .0163."""
    score = np.repeat([0.9, tied, 0.01], [30, 55, 15])
    positive = np.repeat([True, False, True, False], [30, 24, 31, 15])
    assert 18 * 0.1 / 112 < binom.sf(60, 85, 0.6) < 19 * 0.1 / 113
    found = guaranteed_threshold(score, positive, "precision>=0.6", confidence=0.9)
    assert found.lowest < 0.02
    assert found.highest > 0.8
