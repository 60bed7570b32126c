"""Folds and held-out rows: groups, times and copies stay where they belong."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold

from laconic.core.contract import Training
from laconic.core.folds import folds_of, held_out_rows, refuse_leaks
from laconic.data.row_keys import pairs_in_time, pairs_of_groups, row_keys
from laconic.data.tables.columns import Schema


def rows(n=200, seed=0):
    draw = np.random.default_rng(seed)
    table = Schema.learn(draw.normal(size=(n, 2))).table
    return Training(table, (draw.random(n) < 0.3).astype(np.int64), np.ones(n), np.arange(n))


def test_groups_stay_together_and_every_row_is_held_out_once():
    training = rows()
    groups = np.random.default_rng(1).integers(0, 30, 200)
    pairs = folds_of(5, training, 200, 0, groups=groups)
    held = np.concatenate([test for _, test in pairs])
    np.testing.assert_array_equal(np.sort(held), np.arange(200))
    for train, test in pairs:
        assert not np.intersect1d(groups[train], groups[test]).size
        assert abs(training.y[test].mean() - training.y.mean()) < 0.15


def test_folds_of_groups_do_not_know_the_order_of_the_rows():
    groups, y = np.repeat(np.arange(25), 4), np.tile([0, 1, 0, 0], 25)
    shuffled = np.random.default_rng(0).permutation(100)
    one = {frozenset(groups[test]) for _, test in pairs_of_groups(groups, y, 5, 3)}
    other = {
        frozenset(groups[shuffled][test])
        for _, test in pairs_of_groups(groups[shuffled], y[shuffled], 5, 3)
    }
    assert one == other


@pytest.mark.parametrize("n_times", [10, 40, 200])
def test_every_fold_in_time_follows_its_training_rows(n_times):
    time = np.random.default_rng(0).integers(0, n_times, 300)
    pairs = pairs_in_time(time, 4)
    assert len(pairs) == 4
    for train, test in pairs:
        assert time[train].max() < time[test].min()
    refuse_leaks(pairs, None, time)
    sizes = [len(test) for _, test in pairs]
    assert max(sizes) < 2 * min(sizes)
    with pytest.raises(ValueError, match="time has 3 different values and cv=4"):
        pairs_in_time(np.arange(300) % 3, 4)


def test_a_time_with_most_rows_leaves_fewer_folds():
    time = np.concatenate([np.full(300, 5), np.arange(10, 60)])
    pairs = pairs_in_time(time, 4)
    assert 1 <= len(pairs) <= 4
    assert all(len(train) and len(test) for train, test in pairs)


def test_a_splitter_of_groups_is_taken_and_one_that_leaks_is_not():
    training, groups = rows(), np.repeat(np.arange(50), 4)
    assert len(folds_of(GroupKFold(4), training, 200, 0, groups=groups)) == 4
    halves = [(np.arange(0, 101), np.arange(101, 200))]
    with pytest.raises(ValueError, match="trains on and judges rows of group '25'"):
        folds_of(halves, training, 200, 0, groups=groups)


def test_held_out_rows_keep_copies_groups_and_the_future_on_one_side():
    training = rows(400)
    keys = row_keys(training.table)
    three = np.tile(np.arange(400), 3)
    train, test = held_out_rows(keys[three], training.y[three], 0.25)
    assert not np.intersect1d(keys[three[train]], keys[three[test]]).size
    assert len(test) == pytest.approx(300, abs=6)
    assert training.y[three[test]].mean() == pytest.approx(training.y.mean(), abs=0.02)
    groups = np.arange(400) // 4
    train, test = held_out_rows(keys, training.y, 0.25, groups=groups)
    assert not np.intersect1d(groups[train], groups[test]).size
    time = np.random.default_rng(0).permutation(400)
    train, test = held_out_rows(keys, training.y, 0.25, time=time)
    assert time[train].max() < time[test].min()
    assert len(test) == 100


def test_a_class_of_equal_rows_is_learned_from():
    keys = np.array([1, 2, 3, 4, 9, 9], dtype=np.uint64)
    train, test = held_out_rows(keys, np.array([0, 0, 0, 0, 1, 1]), 0.25)
    assert {4, 5} <= set(train.tolist())
    assert len(test) == 1


def test_fewer_groups_than_folds_are_refused_by_number():
    with pytest.raises(ValueError, match="groups has 2 different values and cv=3 folds need"):
        pairs_of_groups(np.array(["a", "b", "a", "b"]), np.array([0, 1, 1, 0]), 3, 0)


def test_folds_by_place_leave_out_rows_that_do_not_count():
    """Rows 0 and 5 of six have no weight: the pairs speak of the four that are left."""
    training = rows(4)
    training = Training(training.table, training.y, training.weight, np.arange(1, 5))
    ((train, test),) = folds_of([([0, 1, 2], [3, 4, 5])], training, 6, 0)
    assert (train.tolist(), test.tolist()) == ([0, 1], [2, 3])
