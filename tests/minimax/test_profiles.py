"""Profiles of rows: bins, keys, counts, clusters, leaves, and the naive Bayes back-off."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laconic.data.row_keys import keyed_folds, row_keys, uniforms
from laconic.data.source import ArraySource
from laconic.data.tables.columns import Schema
from laconic.minimax import profiles
from laconic.minimax.binning import (
    BINNINGS,
    PROFILES,
    learn_bins,
    learn_coder,
    quantile_cuts,
    width_cuts,
)
from laconic.minimax.criterion import NaiveBackoff
from laconic.minimax.profiles import BinGrid, ColumnBins, count_profiles, nearest_profiles


def mixed_rows(n=1500, seed=0):
    draw = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": draw.normal(size=n),
            "b": draw.normal(size=n) * 1e300,
            "c": draw.choice(["u", "v", "w"], n),
            "d": draw.integers(0, 4, n).astype(float),
        }
    )
    frame.loc[::7, "a"] = np.nan
    frame.loc[::11, "c"] = None
    return frame, draw.integers(0, 3, n), draw.random(n) + 0.1


def coder_of(table, y, weight, kind, binning="quantile", **changes):
    options = {"profiles": kind, "binning": binning, "n_bins": 3, "n_profiles": 20, "seed": 0}
    return learn_coder(table, y, weight, **{**options, **changes})


@pytest.mark.parametrize(
    ("kind", "binning"),
    [("bins", name) for name in BINNINGS] + [(kind, "width") for kind in PROFILES[1:]],
)
def test_counts_are_those_of_a_dictionary(kind, binning):
    frame, y, weight = mixed_rows()
    table = Schema.learn(frame).table
    coder = coder_of(table, y, weight, kind, binning)
    index, counts = count_profiles(ArraySource(table, y, weight, block_rows=400), coder, 3)
    codes = coder.codes(table)
    assert (codes >= 0).all()
    assert (codes < np.array(coder.radices)).all()
    expected = {}
    for code, k, w in zip(map(tuple, codes), y, weight, strict=True):
        expected.setdefault(code, np.zeros(3))[k] += w
    assert index.n_profiles == len(expected)
    dense = counts.dense()
    for t, code in enumerate(map(tuple, index.codes())):
        np.testing.assert_allclose(dense[t], expected[code], rtol=1e-12)
    np.testing.assert_array_equal(index.codes()[index.find(codes)], codes)
    np.testing.assert_allclose(counts.class_weight, np.bincount(y, weight))


def test_blocks_do_not_change_the_index():
    frame, y, weight = mixed_rows()
    table = Schema.learn(frame).table
    coder = coder_of(table, y, weight, "bins")
    one, first = count_profiles(ArraySource(table, y, weight), coder, 3)
    many, second = count_profiles(ArraySource(table, y, weight, block_rows=97), coder, 3)
    np.testing.assert_array_equal(one.keys[0], many.keys[0])
    np.testing.assert_allclose(first.weight, second.weight, rtol=1e-13)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 90), st.integers(1, 6), st.integers(0, 10**6))
def test_keys_are_exact_for_any_number_of_columns(n_columns, n_bins, seed):
    draw = np.random.default_rng(seed)
    table = Schema.learn(draw.integers(0, n_bins, size=(60, n_columns)).astype(float)).table
    grid = BinGrid(tuple(ColumnBins(np.arange(n_bins) + 0.5, n_bins + 1) for _ in range(n_columns)))
    y = draw.integers(0, 2, 60)
    index, _ = count_profiles(ArraySource(table, y, np.ones(60), block_rows=13), grid, 2)
    codes = grid.codes(table)
    assert index.n_profiles == len(np.unique(codes, axis=0))
    np.testing.assert_array_equal(index.codes()[index.find(codes)], codes)
    other = codes.copy()
    other[:, -1] = n_bins + 1
    assert (index.find(other) == -1).all()


def test_unseen_categories_and_missing_values_have_their_own_codes():
    learned = Schema.learn({"c": ["u", "v", None], "x": [1.0, 2.0, 3.0]})
    grid = learn_bins(learned.table, np.zeros(3, int), np.ones(3), "quantile", 3)
    rows = learned.schema.apply({"c": ["v", "zz", None], "x": [None, 2.0, 9.0]})
    assert grid.codes(rows).tolist() == [[1, 3], [3, 1], [2, 2]]


def test_one_categorical_column_has_one_profile_per_value():
    learned = Schema.learn({"c": ["u", "v", "w", "u"]})
    grid = learn_bins(learned.table, np.zeros(4, int), np.ones(4), "quantile", 2)
    index, _ = count_profiles(ArraySource(learned.table, np.zeros(4, int), np.ones(4)), grid, 1)
    assert index.n_profiles == 3


def test_width_and_quantile_cuts():
    assert width_cuts(np.array([0.0, 3.0]), 3).tolist() == [1.0, 2.0]
    assert width_cuts(np.array([5.0, 5.0]), 3).tolist() == []
    assert np.isfinite(width_cuts(np.array([-1.7e308, 1.7e308]), 4)).all()
    values = np.random.default_rng(0).normal(size=3000)
    shares = np.bincount(np.searchsorted(quantile_cuts(values, np.ones(3000), 5), values))
    assert shares.tolist() == [600] * 5
    # a weight is a repetition
    weight = np.random.default_rng(1).integers(1, 4, 200)
    few = values[:200]
    np.testing.assert_array_equal(
        quantile_cuts(few, weight.astype(float), 4),
        quantile_cuts(np.repeat(few, weight), np.ones(weight.sum()), 4),
    )
    assert quantile_cuts(np.array([1.0, 1.0, 1.0, 2.0]), np.ones(4), 3).tolist() == [1.5]


def test_kmeans_bins_are_the_best_of_all_partitions():
    draw = np.random.default_rng(2)
    values = np.sort(draw.normal(size=25))
    table = Schema.learn(values[:, None]).table
    grid = learn_bins(table, np.zeros(25, int), np.ones(25), "kmeans", 3)

    def spread(labels):
        groups = [values[labels == g] for g in set(labels)]
        return sum(((group - group.mean()) ** 2).sum() for group in groups)

    best = min(
        spread(np.searchsorted([a, b], np.arange(25), side="right"))
        for a, b in itertools.combinations(range(1, 25), 2)
    )
    assert spread(grid.codes(table)[:, 0]) == pytest.approx(best, rel=1e-12)


def test_modl_bins_find_the_step():
    draw = np.random.default_rng(3)
    values = draw.random(2000)
    y = (values > 0.37).astype(int)
    grid = learn_bins(Schema.learn(values[:, None]).table, y, np.ones(2000), "modl", 3)
    (cut,) = grid.columns[0].cuts
    assert values[values <= 0.37].max() <= cut <= values[values > 0.37].min()


@pytest.mark.parametrize("kind", PROFILES)
def test_codes_do_not_depend_on_the_batch(kind):
    frame, y, weight = mixed_rows(400)
    table = Schema.learn(frame).table
    coder = coder_of(table, y, weight, kind)
    whole = coder.codes(table)
    for row in range(0, 400, 37):
        np.testing.assert_array_equal(coder.codes(table[row : row + 1])[0], whole[row])


@pytest.mark.parametrize("kind", ["kmeans", "tree"])
def test_cells_are_not_more_than_asked(kind):
    frame, y, weight = mixed_rows(400)
    table = Schema.learn(frame).table
    coder = coder_of(table, y, weight, kind, n_profiles=7)
    assert len(np.unique(coder.codes(table))) <= 7


def test_profiles_are_counted_before_tables_are_built(monkeypatch):
    frame, y, weight = mixed_rows()
    table = Schema.learn(frame).table
    coder = coder_of(table, y, weight, "bins")
    monkeypatch.setattr(profiles, "MAX_CELLS", 50)
    monkeypatch.setattr(profiles, "_counts", lambda *a: pytest.fail("a table was built"))
    with pytest.raises(ValueError, match=r"The rows fall into \d+ profiles.*Lower n_bins"):
        count_profiles(ArraySource(table, y, weight), coder, 3)


def test_nearest_profile_by_brute_force():
    frame, y, weight = mixed_rows(60)
    table = Schema.learn(frame).table
    coder = coder_of(table, y, weight, "bins", n_bins=5)
    index, _ = count_profiles(ArraySource(table, y, weight), coder, 3)
    stored = index.codes()
    draw = np.random.default_rng(0)
    asked = np.column_stack([draw.integers(0, radix - 2, 40) for radix in coder.radices])
    found = nearest_profiles(asked, index, coder.ordered)

    def distance(a, b):
        total = 0
        for j, ordered in enumerate(coder.ordered):
            if ordered and b[j] < coder.radices[j] - 2:
                total += abs(a[j] - b[j])
            else:
                total += int(a[j] != b[j]) if not ordered else 1
        return total

    for row, t in zip(asked, found, strict=True):
        assert distance(row, stored[t]) == min(distance(row, other) for other in stored)


def test_back_off_is_a_law_and_matches_its_formula():
    frame, y, _ = mixed_rows(300)
    table = Schema.learn(frame).table
    weight = np.ones(300)
    coder = coder_of(table, y, weight, "bins")
    index, counts = count_profiles(ArraySource(table, y, weight), coder, 3)
    alpha = 2.5
    smooth = NaiveBackoff.learn(index, counts, alpha)
    law = smooth.laws(index, counts)
    np.testing.assert_allclose(law.sum(axis=0), 1.0, atol=1e-12)
    assert (law[:-1] > 0).all()
    codes, k = coder.codes(table), 1
    t = int(index.find(codes[:1])[0])
    n_k = (y == k).sum()
    product = 1.0
    for j in range(codes.shape[1]):
        held = (codes[:, j] == codes[0, j]) & (y == k)
        product *= (held.sum() + 1) / (n_k + len(np.unique(codes[:, j])))
    n_kt = ((codes == codes[0]).all(axis=1) & (y == k)).sum()
    assert law[t, k] == pytest.approx((n_kt + alpha * product) / (n_k + alpha), rel=1e-12)


def test_row_keys_know_equal_rows_and_nothing_else():
    frame, _, _ = mixed_rows(500)
    table = Schema.learn(frame).table
    keys = row_keys(table, 3)
    assert len(np.unique(keys)) == 500
    np.testing.assert_array_equal(row_keys(table[100:110], 3), keys[100:110])
    assert (row_keys(table, 4) != keys).all()
    array = np.array([[0.0, 1.0], [-0.0, 1.0], [np.nan, 1.0], [1.0, 0.0]])
    few = row_keys(Schema.learn(array).table)
    assert few[0] == few[1]
    assert len(set(few.tolist())) == 3


def test_sparse_and_dense_rows_have_the_same_keys():
    from scipy import sparse

    dense = np.random.default_rng(0).integers(0, 3, size=(50, 8)).astype(float)
    learned = Schema.learn(sparse.csr_matrix(dense), allow_sparse=True)
    np.testing.assert_array_equal(row_keys(learned.table), row_keys(Schema.learn(dense).table))


def test_draws_are_uniform():
    table = Schema.learn(np.arange(20_000.0).reshape(-1, 2)).table
    draws = uniforms(row_keys(table))
    assert draws.min() >= 0
    assert draws.max() < 1
    shares = np.histogram(draws, 10, (0, 1))[0] / len(draws)
    # four standard deviations of a share of 0.1 in 10,000 draws
    assert np.abs(shares - 0.1).max() < 4 * np.sqrt(0.1 * 0.9 / len(draws))


def test_folds_keep_equal_rows_together_and_spread_classes():
    draw = np.random.default_rng(0)
    rows = draw.integers(0, 100, size=(200, 1)).astype(float)
    y = (rows[:, 0] > 70).astype(np.int64)
    assert np.unique(rows, return_counts=True)[1].max() < 8
    fold = keyed_folds(row_keys(Schema.learn(rows).table), y, 4)
    for value in np.unique(rows):
        assert len(np.unique(fold[rows[:, 0] == value])) == 1
    distinct = [len(np.unique(rows[(fold == f) & (y == 0)])) for f in range(4)]
    assert max(distinct) - min(distinct) <= 1


def test_folds_spread_a_row_that_comes_often():
    rows = np.repeat([[1.0], [2.0], [3.0]], [40, 8, 7], axis=0)
    y = np.zeros(len(rows), dtype=np.int64)
    fold = keyed_folds(row_keys(Schema.learn(rows).table), y, 4)
    for value, each in ((1.0, 10), (2.0, 2)):
        assert np.bincount(fold[rows[:, 0] == value], minlength=4).tolist() == [each] * 4
    assert len(np.unique(fold[rows[:, 0] == 3.0])) == 1
