"""Families of voters: thresholds, missing cells, categories, rules in words, out-of-bag moments."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from laconic import CqBoostClassifier
from laconic.core.contract import Training
from laconic.data.tables.columns import Schema
from laconic.votes import (
    ForestVoters,
    KernelVoters,
    LPBoostClassifier,
    MinCqClassifier,
    StumpVoters,
)
from laconic.votes.tuning import WIDTHS
from laconic.votes.voters.base import distinct_rows
from laconic.votes.voters.kernels import KernelMap
from laconic.votes.voters.stumps import Stump


def cuts(thresholds, values, weight=None, n=10):
    values = np.asarray(values, dtype=float)
    weight = np.ones(len(values)) if weight is None else weight
    return StumpVoters(thresholds, n).cuts(values, weight)


def test_equal_thresholds_are_strictly_inside():
    found = cuts("equal", [0.0, 11.0, 3.0])
    np.testing.assert_allclose(found, np.arange(1, 11))


def test_midpoints_separate_every_pair_of_neighbours():
    np.testing.assert_allclose(cuts("midpoints", [3, 1, 1, 2.0]), [1.5, 2.5])
    close = np.array([1.0, np.nextafter(1.0, 2.0)])
    found = cuts("midpoints", close)
    assert (close > found[0]).sum() == 1


def test_quantile_thresholds_follow_the_weights():
    values = np.arange(10.0)
    light = cuts("quantile", values, n=1)
    heavy = cuts("quantile", values, weight=np.r_[np.ones(9), 100.0], n=1)
    assert light[0] < 5.5
    assert heavy[0] == 8.5
    again = cuts("quantile", np.repeat(values, 3), n=4)
    np.testing.assert_array_equal(again, cuts("quantile", values, weight=np.full(10, 3.0), n=4))


def test_missing_numbers_have_their_own_stump():
    found = cuts("midpoints", [np.nan, 1.0, 2.0])
    np.testing.assert_array_equal(found, [-np.inf, 1.5])
    assert len(cuts("equal", [4.0, 4.0])) == 0


def test_huge_ranges_do_not_overflow():
    assert np.isfinite(cuts("equal", [-1.7e308, 1.7e308])).all()
    assert np.isfinite(cuts("midpoints", [-1.7e308, 1.7e308])).all()


def test_rules_read_as_sentences():
    assert str(Stump("age", threshold=30.5)) == "age > 30.5"
    assert str(Stump("age", threshold=30.5, holds=False)) == "age <= 30.5"
    assert str(Stump("age", threshold=-np.inf, holds=False)) == "age is missing"
    assert str(Stump("job", category="cook", holds=False)) == "job is not 'cook'"
    assert str(Stump("job")) == "job is missing"
    assert str(Stump(None, holds=False)) == "never"


def test_picked_stumps_vote_as_the_columns_do():
    draw = np.random.default_rng(0)
    n = 90
    colour = draw.choice(["a", "b", "c"], n).astype(object)
    colour[::9] = None
    size = draw.normal(size=n).round(1)
    size[::7] = np.nan
    learned = Schema.learn({"size": size, "colour": colour})
    prepared = StumpVoters("midpoints").prepare(learned.table, np.ones(n))
    columns = prepared.columns(np.ones(n), np.ones(n), 0)
    every = np.arange(columns.n_columns)
    picked = prepared.pick(every, np.ones(len(every)), 0)
    np.testing.assert_array_equal(picked.votes(learned.table, None), columns.votes(every))
    flipped = prepared.pick(every, -np.ones(len(every)), 0)
    np.testing.assert_array_equal(flipped.votes(learned.table, None), -columns.votes(every))
    # a category that was not there is no category; a missing number is below every threshold
    fresh = learned.schema.apply({"size": [np.nan], "colour": ["never seen"]})
    said = dict(zip(picked.rules(), picked.votes(fresh, None)[0], strict=True))
    assert all(v == -1 for rule, v in said.items() if rule.startswith(("colour is", "size")))
    assert said["always"] == 1


def test_a_vote_uses_missingness_and_categories():
    draw = np.random.default_rng(1)
    n = 300
    size = draw.normal(size=n)
    job = draw.choice(["cook", "smith", "clerk"], n).astype(object)
    y = np.isin(job, ["cook"]) | (draw.random(n) < 0.3)
    size[y & (draw.random(n) < 0.8)] = np.nan
    X = pd.DataFrame({"size": size, "job": job})
    model = CqBoostClassifier(mu="least-squares", max_voters=2).fit(X, y)
    said = {rule for _, rule in model.rules()}
    assert said >= {"size is missing"}
    assert any(rule.startswith("job is") for rule in said)


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_normalised_kernels_stay_in_the_unit_interval(kernel):
    draw = np.random.default_rng(0)
    map_ = KernelMap(tuple("abcd"), kernel, 0.5, 3, 1.0, np.zeros(4), np.ones(4))
    far = 1e4 * draw.normal(size=(50, 4))
    values = map_.between(far, draw.normal(size=(20, 4)))
    assert np.abs(values).max() <= 1.0
    np.testing.assert_allclose(np.diag(map_.between(far, far)), 1.0)


def test_rbf_is_the_gaussian_kernel():
    from sklearn.metrics.pairwise import rbf_kernel

    draw = np.random.default_rng(0)
    A, B = draw.normal(size=(30, 3)), draw.normal(size=(10, 3))
    map_ = KernelMap(tuple("abc"), "rbf", 0.7, 3, 1.0, np.zeros(3), np.ones(3))
    np.testing.assert_allclose(map_.between(A, B), rbf_kernel(A, B, gamma=0.7), atol=1e-12)


def test_kernel_voters_need_numbers():
    with pytest.raises(ValueError, match="numbers"):
        CqBoostClassifier(KernelVoters()).fit(pd.DataFrame({"a": list("xyxy")}), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="missing"):
        CqBoostClassifier(KernelVoters()).fit([[np.nan], [1.0], [2.0]], [0, 1, 1])


def test_out_of_bag_moments_by_hand():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(60, 3))
    y = (X[:, 0] + 0.5 * draw.normal(size=60) > 0).astype(int)
    rows = Training(Schema.learn(X).table, y, np.ones(60), np.arange(60))
    prepared = ForestVoters(7, min_samples_leaf=2, spread=0.0).prepare_rows(rows, 0)
    sign = np.where(y == 1, 1.0, -1.0)
    first, gram, overlap = prepared.moments(sign, np.ones(60), 1)
    votes = 2 * prepared.share[:, :, 1] - 1
    for t in range(7):
        out = prepared.outside[:, t]
        assert 10 < out.sum() < 40
        assert first[t] == pytest.approx(np.mean((sign * votes[:, t])[out]))
    both = prepared.outside[:, 0] & prepared.outside[:, 1]
    assert overlap <= both.sum()
    raw = np.empty((7, 7))
    for t in range(7):
        for u in range(7):
            rows_of_both = prepared.outside[:, t] & prepared.outside[:, u]
            raw[t, u] = np.mean((votes[:, t] * votes[:, u])[rows_of_both])
    # the nearest positive definite matrix: eigenvalues of at least 1e-4 of the largest
    value, vector = np.linalg.eigh(raw)
    nearest = vector @ np.diag(np.maximum(value, 1e-4 * value.max())) @ vector.T
    np.testing.assert_allclose(gram, nearest, atol=1e-12)
    assert np.linalg.eigvalsh(gram).min() > 0


def rings(n=90, seed=0):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n, 3))
    return X, (X[:, 0] + X[:, 1] ** 2 + 0.5 * draw.normal(size=n) > 0.7).astype(int)


def test_distinct_rows_do_not_depend_on_order_or_copies():
    X, y = rings()
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    again = np.random.default_rng(2).permutation(np.repeat(np.arange(len(y)), weight.astype(int)))
    one = distinct_rows(Schema.learn(X).table, weight, y)
    two = distinct_rows(Schema.learn(X[again]).table, np.ones(len(again)), y[again])
    np.testing.assert_array_equal(X[one.first], X[again][two.first])
    np.testing.assert_array_equal(one.weight, two.weight)
    np.testing.assert_array_equal(X[again], X[again][two.first][two.place])
    # equal values of two classes are two kinds
    both = distinct_rows(Schema.learn(X[[0, 0]]).table, np.ones(2), np.array([0, 1]))
    assert len(both.first) == 2
    assert len(distinct_rows(Schema.learn(X[[0, 0]]).table, np.ones(2)).first) == 1


@pytest.mark.parametrize(
    "model",
    [
        CqBoostClassifier(ForestVoters(30), random_state=0),
        CqBoostClassifier(ForestVoters(30), proba="calibrated", random_state=3),
        CqBoostClassifier(KernelVoters(n_landmarks=12), random_state=0),
        CqBoostClassifier(KernelVoters(gamma="cv")),
        MinCqClassifier("rbf"),
        LPBoostClassifier("rbf"),
    ],
    ids=["forest", "calibrated forest", "landmarks", "widths", "MinCq of kernels", "LPBoost"],
)
def test_a_weight_is_that_many_copies_of_the_row(model):
    X, y = rings()
    draw = np.random.default_rng(1)
    weight = draw.integers(0, 4, len(y)).astype(float)
    again = draw.permutation(np.repeat(np.arange(len(y)), weight.astype(int)))
    weighted = model.fit(X, y, sample_weight=weight)
    found, counted = weighted.predict_proba(X), weighted.votes_[0].n_independent
    repeated = model.fit(X[again], y[again])
    np.testing.assert_allclose(found, repeated.predict_proba(X), rtol=0, atol=1e-6)
    # ... but not that many observations
    assert counted <= repeated.votes_[0].n_independent / 2
    plain = model.fit(X, y).predict_proba(X)
    assert np.abs(plain - found).max() > 0.01


def test_a_tree_is_judged_on_rows_equal_to_none_that_grew_it():
    X, y = rings(60)
    twice = np.r_[np.arange(60), np.arange(60)]
    rows = Training(Schema.learn(X[twice]).table, y[twice], np.ones(120), np.arange(120))
    prepared = ForestVoters(9).prepare_rows(rows, 0)
    np.testing.assert_array_equal(prepared.outside[:60], prepared.outside[60:])
    assert 0.25 < prepared.outside.mean() < 0.5  # about 1/e, as without copies


def test_the_width_of_least_held_out_loss_is_kept():
    draw = np.random.default_rng(0)
    X = draw.uniform(-3, 3, size=(120, 2))
    y = (np.sin(2 * X[:, 0]) * np.sin(2 * X[:, 1]) > 0).astype(int)  # needs a narrow kernel
    found = CqBoostClassifier(KernelVoters(gamma="cv")).fit(X, y)
    assert found.voters_[0].map.gamma == max(WIDTHS) / 2
    losses = {
        width / 2: min(
            CqBoostClassifier(KernelVoters(gamma=width / 2))
            .fit(X, y)
            .votes_[0]
            .curve["held_out_loss"]
        )
        for width in WIDTHS
    }
    assert found.voters_[0].map.gamma == min(losses, key=losses.get)


def test_widths_are_chosen_only_where_rows_are_held_out():
    X, y = rings()
    with pytest.raises(ValueError, match="give mu='cv'"):
        CqBoostClassifier(KernelVoters(gamma="cv"), mu="least-squares").fit(X, y)
    with pytest.raises(ValueError, match="gamma must be"):
        CqBoostClassifier(KernelVoters("linear", gamma="cv")).fit(X, y)
    with pytest.raises(ValueError, match="gamma must be"):
        CqBoostClassifier(KernelVoters(gamma=-1.0)).fit(X, y)
    tiny = CqBoostClassifier(KernelVoters(gamma="cv")).fit(X[:2], [0, 1])
    assert tiny.voters_[0].map.gamma == WIDTHS[0] / 3
