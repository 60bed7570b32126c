"""Rows that hold a promise are independent evidence: few cells, copies, groups, weights."""

from __future__ import annotations

import numpy as np
import pytest

from laconic import DecisionClassifier, LaconicClassifier, PlainLogisticRegression
from laconic.core.folds import judging_rows, one_a_group
from laconic.data.row_keys import row_keys
from laconic.data.tables.columns import Schema
from laconic.decide.threshold import guaranteed_threshold
from laconic.decide.weights import _learning_half, guaranteed_weights

ALLOWED = 0.1 + 2 * np.sqrt(0.09 / 200)


def keys_of(cells):
    return row_keys(Schema.learn(np.asarray(cells, dtype=float)[:, None]).table)


def test_a_table_of_few_cells_does_not_agree_with_itself():
    """Thirty cells and labels of pure noise: what was learned in a cell is no evidence for it."""
    broken = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        cell, y = rng.integers(1, 31, 2000), (rng.random(2000) < 0.3).astype(int)
        train, judges = judging_rows(keys_of(cell), y, 0.25)
        seen = np.bincount(cell[train], minlength=31) + 1.0
        score = np.bincount(cell[train], y[train], minlength=31) / seen
        found = guaranteed_threshold(
            score[cell[judges]],
            y[judges] == 1,
            "recall>=0.81",
            costs={"fp": 3, "fn": 1},
            confidence=0.9,
        )
        broken += (score[1:] > found.threshold).mean() < 0.81
    assert broken / 100 <= 0.1 + 2 * 0.03


def test_rows_of_few_probabilities_judge_by_their_own_law():
    """Six kinds of rows, the commonest misjudged: it must be among what judges."""
    kinds = np.array(
        [
            [0.8, 0.1, 0.1], [0.7, 0.2, 0.1], [0.1, 0.8, 0.1],
            [0.2, 0.2, 0.6], [0.15, 0.1, 0.75], [0.1, 0.75, 0.15],
        ]
    )  # fmt: skip
    truth = kinds.copy()
    truth[:2] = [[0.9, 0.05, 0.05], [0.35, 0.6, 0.05]]
    mass = np.array([0.15, 0.35, 0.1, 0.2, 0.1, 0.1])
    broken = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        # what a model says differs from fit to fit
        said = kinds + rng.uniform(0.0, 0.01, kinds.shape)
        said /= said.sum(axis=1, keepdims=True)
        kind = rng.choice(6, 600, p=mass)
        y = (rng.random((600, 1)) > truth[kind].cumsum(axis=1)[:, :2]).sum(axis=1)
        found = guaranteed_weights(
            said[kind], y, "precision(0)>=0.6", classes=[0, 1, 2], confidence=0.9
        )
        own = (said @ found.rule_costs(1.0 - np.eye(3))).argmin(axis=1) == 0
        broken += (mass * truth[:, 0])[own].sum() < 0.6 * mass[own].sum()
    assert broken / 100 <= 0.1 + 2 * 0.03


def test_of_a_group_one_row_judges():
    """Rows of a group share their score: counted one by one, they would promise too much."""
    broken, levels = 0, np.linspace(0.01, 0.99, 200)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        size = rng.integers(1, 12, 200)
        group, score = np.repeat(np.arange(200), size), np.repeat(rng.permutation(levels), size)
        own = one_a_group(group, np.flatnonzero(rng.random(len(group)) < 0.5), rng)
        assert len(np.unique(group[own])) == len(own)
        found = guaranteed_threshold(
            score[own], np.ones(len(own)), "recall>=0.7", costs={"fp": 3, "fn": 1}, confidence=0.9
        )
        broken += (levels > found.threshold).mean() < 0.7
    assert broken / 200 <= ALLOWED


def test_large_groups_judge_as_often_as_their_rows():
    """A row of a large group is as likely to judge as one of a small group."""
    group = np.concatenate([np.repeat(np.arange(100), 6), np.arange(100, 700)])
    draw = np.random.default_rng(0)
    judges = [one_a_group(group, np.arange(1200), draw) for _ in range(100)]
    assert (group[np.concatenate(judges)] < 100).mean() == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("within", [True, False])
def test_groups_are_on_one_side(within):
    rng = np.random.default_rng(1)
    group, y = np.repeat(np.arange(120), 3), rng.integers(0, 2, 360)
    train, judges = judging_rows(keys_of(rng.random(360)), y, 0.5, group, within_classes=within)
    assert not np.intersect1d(group[train], group[judges]).size
    kinds = [judges[y[judges] == k] for k in (0, 1)] if within else [judges]
    assert all(len(np.unique(group[own])) == len(own) > 10 for own in kinds)


def test_copies_stay_together_and_count_once():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=400), rng.integers(0, 2, 400)
    keys, codes = keys_of(np.tile(X, 3)), np.tile(y, 3)
    train, judges = judging_rows(keys, codes, 0.25)
    assert not np.intersect1d(keys[train], keys[judges]).size
    assert len(np.unique(keys[judges])) == len(judges) == pytest.approx(100, abs=1)
    assert len(train) == 900


def test_the_order_of_rows_does_not_matter():
    rng = np.random.default_rng(3)
    cell, y = rng.integers(1, 40, 300), rng.integers(0, 2, 300)
    keys, turn = keys_of(cell), rng.permutation(300)
    one = judging_rows(keys, y, 0.3)[1]
    other = turn[judging_rows(keys[turn], y[turn], 0.3)[1]]
    assert sorted(zip(keys[one], y[one], strict=True)) == sorted(
        zip(keys[other], y[other], strict=True)
    )


def thinned(rng, n):
    """Of the common class every fifth row is there, with a weight of five."""
    bad = rng.random(n) < 0.3
    X = rng.normal(size=(n, 2)) + 1.8 * bad[:, None]
    kept = bad | (rng.random(n) < 0.2)
    return X[kept], np.where(bad, "bad", "ok")[kept], np.where(bad, 1.0, 5.0)[kept]


@pytest.mark.parametrize("main", [False, True], ids=["decision", "main job"])
def test_weights_of_classes_say_the_mix(main):
    """Precision among rows of which four in five of a class were left out is another one."""
    rng = np.random.default_rng(4)
    X, y, weight = thinned(rng, 6000)
    asked = {"positive": "bad", "guarantee": "precision>=0.7"}
    model = (
        LaconicClassifier(candidates=["logistic"], cv=2, **asked)
        if main
        else DecisionClassifier(PlainLogisticRegression(), **asked)
    )
    model.fit(X, y, sample_weight=weight)
    share = weight[y == "bad"].sum() / weight.sum()
    assert model.guaranteed_.shares == pytest.approx((share, share))
    bad = rng.random(40_000) < 0.3
    said = model.predict(rng.normal(size=(40_000, 2)) + 1.8 * bad[:, None]) == "bad"
    assert bad[said].mean() >= 0.7
    with pytest.raises(ValueError, match="sample_weight differs among the rows of class 'bad'"):
        model.fit(X, y, sample_weight=rng.uniform(1, 2, len(y)))


def test_judges_do_not_tell_the_fit_their_mix():
    """Promises about all rows: how many of the judges are positive differs from draw to draw."""
    y = (np.arange(400) < 80).astype(int)
    keys = keys_of(np.random.default_rng(0).random(400))
    positives = {
        within: [
            int(y[judging_rows(keys, y, 0.25, within_classes=within, seed=seed)[1]].sum())
            for seed in range(200)
        ]
        for within in (True, False)
    }
    assert set(positives[True]) == {20}
    # hypergeometric: 100 of 400 rows, 80 of them positive
    assert abs(np.var(positives[False]) - 100 * 0.2 * 0.8 * 300 / 399) < 4.0
    proba = np.random.default_rng(1).dirichlet([1, 1], 400)
    own = {within: _learning_half(proba, y, within_classes=within) for within in (True, False)}
    assert y[own[True]].sum() == 40
    assert own[False].sum() == 200


def test_a_class_is_never_held_out_whole():
    y = np.array([0] * 30 + [1, 1])
    for seed in range(100):
        train, judges = judging_rows(keys_of(np.arange(32)), y, 0.5, seed=seed)
        assert set(y[train]) == {0, 1}
        assert len(train) + len(judges) == 32
