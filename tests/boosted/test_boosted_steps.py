"""Boosted steps: cuts and crosses by brute force, bags, the sum of the steps, orders, copies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from laconic.boosted import BoostedStepsClassifier
from laconic.boosted._numba import boost, pair_gains, summed
from laconic.boosted.estimator import as_shape
from laconic.boosted.rows import DistinctRows
from laconic.core.forms import SlotTerm
from laconic.data.tables.axes import IntervalAxis
from laconic.data.tables.columns import Table

RIDGE, LEAST = 0.5, 3.0


def coded(seed, n_rows=60, n_columns=3, n_slots=6):
    draw = np.random.default_rng(seed)
    codes = draw.integers(0, n_slots, (n_columns, n_rows)).astype(np.uint8)
    y = (draw.uniform(size=n_rows) < 0.2 + 0.1 * codes[0]).astype(float)
    weight = draw.integers(1, 4, n_rows).astype(float)
    return codes, np.full(n_columns, n_slots), y, weight


def newton(y, weight, odds, parts):
    """Gain and values of steps on some parts of the rows, None where a part is too light."""
    p = odds / (1 + odds)
    g, h = weight * (p - y), weight * p * (1 - p)
    if any(weight[part].sum() < LEAST for part in parts):
        return None
    gain = sum(g[part].sum() ** 2 / (h[part].sum() + RIDGE) for part in parts)
    gain -= g.sum() ** 2 / (h.sum() + RIDGE)
    return gain, [-g[part].sum() / (h[part].sum() + RIDGE) for part in parts]


@pytest.mark.parametrize("seed", range(4))
def test_the_first_step_is_the_best_cut(seed):
    codes, sizes, y, weight = coded(seed)
    odds = np.full(60, 0.7)
    steps, values = boost(
        codes[:1], sizes[:1], np.zeros(1, int), np.full(1, -1), y, weight, 50, odds.copy(),
        1.0, RIDGE, LEAST, 10, 1, 9, 0.0, 0, 0,
    )  # fmt: skip
    inside = slice(0, 50)
    tried = {
        at: newton(y[inside], weight[inside], odds[inside], [low, ~low])
        for at in range(1, 6)
        for low in [codes[0, inside] < at]
    }
    best = max((own[0], at) for at, own in tried.items() if own)[1]
    # the only pass is kept only if the rows outside liked it
    if len(steps):
        assert steps[0, 1] == best
        np.testing.assert_allclose(values[0, [0, 2]], tried[best][1])


def test_cuts_that_are_drawn_are_spread_over_all_slots():
    codes, sizes, y, weight = coded(1, n_rows=400)
    y[300:] = y[:100]  # the rows outside like what the rows inside say
    codes[:, 300:], weight[300:] = codes[:, :100], weight[:100]
    ends = np.array([0, 1]), np.full(2, -1)
    steps, _ = boost(
        codes, sizes, *ends, y, weight, 300, np.ones(400), 0.1, RIDGE, LEAST, 10, 30, 9, 0.0, 30, 5,
    )  # fmt: skip
    assert len(steps) > 30
    np.testing.assert_array_equal(steps[:, 0], np.arange(len(steps)) % 2)
    assert set(steps[:, 1]) == {1, 2, 3, 4, 5}


@pytest.mark.parametrize("seed", range(4))
def test_the_gain_of_a_pair_is_that_of_its_best_cross(seed):
    codes, sizes, y, weight = coded(seed)
    odds = np.full(60, 0.7)
    ends = np.array([0, 1]), np.array([1, 2])
    found = pair_gains(codes, sizes, y, weight, 60, odds, *ends, RIDGE, LEAST)
    for gain, a, b in zip(found, *ends, strict=True):
        tried = []
        for at in range(1, 6):
            for beside in range(1, 6):
                low, left = codes[a] < at, codes[b] < beside
                parts = [low & left, low & ~left, ~low & left, ~low & ~left]
                tried.append(newton(y, weight, odds, parts))
        assert gain == pytest.approx(max(own[0] for own in tried if own))


@pytest.mark.parametrize("drawn", [0, 8])
@pytest.mark.parametrize("second", [-1, 1])
def test_the_sum_of_the_steps_is_what_the_odds_say(second, drawn):
    codes, sizes, y, weight = coded(7, n_rows=400)
    odds, start = np.full(400, 0.7), np.log(0.7)
    ends = np.array([0]), np.array([second])
    steps, values = boost(
        codes, sizes, *ends, y, weight, 300, odds, 0.1, RIDGE, LEAST, 10, 200, 9, 0.0,
        drawn, 5,
    )  # fmt: skip
    assert 0 < len(steps) < 200
    total = summed(steps, values, sizes, *ends)[0]
    said = total[codes[0], codes[1] if second > 0 else 0]
    np.testing.assert_allclose(np.log(odds), start + said)
    # the pass that was kept has the least loss of the rows outside, of those that were tried
    outside = slice(300, 400)

    def loss(score):
        return np.average(
            np.logaddexp(0, np.where(y[outside] > 0, -score, score)), weights=weight[outside]
        )

    assert loss(np.log(odds[outside])) < loss(np.full(100, start))


def messy(seed, n_rows=400):
    draw = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "number": draw.normal(size=n_rows),
            "gap": np.where(draw.uniform(size=n_rows) < 0.3, np.nan, draw.uniform(size=n_rows)),
            "text": draw.choice(["a", "b", "c", "rare"], n_rows, p=[0.4, 0.3, 0.29, 0.01]),
            "noise": draw.integers(0, 9, n_rows),
        }
    )
    score = 2.0 * (frame["number"] > 0.3) + 1.5 * (frame["text"] == "b") - 1.5
    score += 1.5 * frame["gap"].isna()
    return frame, (draw.uniform(size=n_rows) < 1 / (1 + np.exp(-score))).astype(int)


def test_orders_of_rows_and_columns_and_copies_change_nothing():
    X, y = messy(0)
    model = BoostedStepsClassifier(random_state=0).fit(X, y)
    said = model.predict_proba(X)
    rows = np.random.default_rng(1).permutation(len(X))
    turned = X.iloc[rows, ::-1]
    again = BoostedStepsClassifier(random_state=0).fit(turned, y[rows]).predict_proba(turned)
    np.testing.assert_allclose(again, said[rows], atol=1e-12)
    times = np.random.default_rng(2).integers(1, 4, len(X))
    weighed = BoostedStepsClassifier(random_state=0).fit(X, y, sample_weight=times)
    copied = BoostedStepsClassifier(random_state=0).fit(
        X.loc[np.repeat(X.index, times)], np.repeat(y, times)
    )
    np.testing.assert_array_equal(copied.predict_proba(X), weighed.predict_proba(X))


def test_a_jump_a_category_and_missing_values_are_told():
    X, y = messy(3, 4000)
    model = BoostedStepsClassifier().fit(X, y)
    means = {
        term.columns: float(np.std(term.contribution(model._read_rows(X))))
        for term in model.form_.terms
        if len(term.columns) == 1
    }
    assert means[("noise",)] < 0.5 * min(means[("number",)], means[("text",)], means[("gap",)])
    shape = next(term for term in model.form_.terms if term.columns == ("number",))
    steps = np.abs(np.diff(shape.values[:-1, 0]))
    assert abs(shape.axes[0].knots[steps.argmax()] - 0.3) < 0.05


def test_a_cross_is_found_and_a_forbidden_one_is_not():
    draw = np.random.default_rng(0)
    X = pd.DataFrame(draw.uniform(size=(800, 4)), columns=list("abcd"))
    y = ((X["a"] > 0.5) != (X["c"] > 0.4)).to_numpy()
    model = BoostedStepsClassifier(pairs=0.5).fit(X[:400], y[:400])
    assert (model.predict(X[400:]) == y[400:]).mean() > 0.9
    forbidden = BoostedStepsClassifier(forbid=[("c", "a")]).fit(X[:400], y[:400])
    assert all(set(term.columns) != {"a", "c"} for term in forbidden.form_.terms)
    assert (forbidden.predict(X[400:]) == y[400:]).mean() < 0.7


def test_labels_that_depend_on_nothing_teach_next_to_nothing():
    draw = np.random.default_rng(5)
    X, y = draw.normal(size=(600, 5)), draw.integers(0, 2, 600)
    proba = BoostedStepsClassifier().fit(X, y).predict_proba(draw.normal(size=(600, 5)))
    assert np.std(proba[:, 1]) < 0.06


def test_bags_hold_their_share_of_rows_and_of_copies():
    X, y = messy(4, 2000)
    few = X[["text"]]
    for table, close in ((X, 0.03), (few, 0.03)):
        rows = BoostedStepsClassifier()._read_training(table, y, None)
        distinct = DistinctRows.of(rows, 0)
        assert distinct.weight.sum() == 2000
        for number in range(3):
            bag = distinct.bag(number, 0.6)
            assert bag.weight.sum() == 2000
            assert abs(bag.weight[: bag.n_in].sum() / 2000 - 0.6) < close


def test_three_classes_are_refused():
    X, y = messy(0)
    y[:9] = 2
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        BoostedStepsClassifier().fit(X, y)


def test_the_polygon_of_few_values_says_what_their_steps_say():
    axis = IntervalAxis(np.array([1.5, 2.5]))
    steps = SlotTerm(("x",), (axis,), np.array([[-1.0], [3.0], [0.5], [9.0]]))
    cells = np.array([1.0, 2.0, 4.0, 4.0, np.nan, 2.0])
    table = Table(("x",), ("numeric",), (None,), matrix=cells[:, None])
    rows = DistinctRows(table, np.zeros(6), np.array([0.1, 0.3, 1e12, 0.7, 1.0, 0.7]), None)
    shape = as_shape(steps, rows)
    assert shape.axes[0].knots.tolist() == [1.0, 2.0, 4.0]  # of copies no rounded mean
    np.testing.assert_array_equal(shape.contribution(table), steps.contribution(table))
    fine = replace(rows, table=Table(("x",), ("numeric",), (None,), matrix=cells[:, None] ** 2))
    wide = SlotTerm(("x",), (IntervalAxis(np.array([9.0])),), np.array([[-1.0], [3.0], [9.0]]))
    knots = as_shape(wide, fine).axes[0].knots
    np.testing.assert_allclose(knots, [(0.1 * 1 + 0.3 * 4 + 0.7 * 4) / 1.1, 16.0])
