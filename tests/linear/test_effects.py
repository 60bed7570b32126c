"""Levels as random effects: their spread is where the marginal likelihood says it is."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from laconic import LaconicClassifier, PlainLogisticRegression, load, save
from laconic.linear.design import design


def drawn(n_rows, spread, seed=0, n_levels=400):
    effect = np.random.default_rng(7).normal(scale=spread, size=n_levels)
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_levels, n_rows)
    y = (effect[codes] + rng.logistic(size=n_rows) > 0.5).astype(int)
    shop = np.char.add("s", codes.astype(str))
    return pd.DataFrame({"shop": shop, "x": rng.normal(size=n_rows)}), y


def fitted(X, y, **settings):
    return PlainLogisticRegression(levels="all", **settings).fit(X, y)


def test_spread_stands_where_evidence_says():
    X, y = drawn(3000, 1.0)
    model = fitted(X, y)
    shop = model.columns_[0]
    matrix = design(model.columns_, model._read_rows(X), standard=False)
    p = expit(model.decision_function(X))
    held = np.asarray(matrix.T @ (p * (1 - p))).ravel()[: len(shop.levels)]
    effects = model.coef_[0, : len(shop.levels)]
    best = np.sqrt((effects**2).sum() / (held / (held + shop.spread**-2)).sum())
    assert shop.spread == pytest.approx(best, rel=0.08)
    # shrunk as a normal law with this spread says: the mode of each level, the others given
    slope = np.asarray(matrix.T @ (y - p)).ravel()[: len(shop.levels)]
    np.testing.assert_allclose(slope, effects / shop.spread**2, atol=1e-3)


@pytest.mark.parametrize("spread", [0.0, 0.6, 1.2])
def test_spread_follows_that_of_the_effects(spread):
    X, y = drawn(6000, spread)
    found = fitted(X, y).columns_[0].spread
    assert 0.6 * spread <= found <= max(1.15 * spread, 0.25)


def test_rare_levels_tell_more_than_pooled_ones():
    X, y = drawn(2400, 1.2, n_levels=800)
    new, label = drawn(20_000, 1.2, seed=1, n_levels=800)
    losses = []
    for model in (fitted(X, y), PlainLogisticRegression().fit(X, y)):
        p = model.predict_proba(new)[:, 1]
        losses.append(-np.log(np.where(label == 1, p, 1 - p)).mean())
    assert losses[0] < losses[1] - 0.02


def test_a_text_never_seen_has_no_effect():
    X, y = drawn(600, 1.0)
    model = fitted(X, y)
    row = pd.DataFrame({"shop": ["nowhere"], "x": [0.0]})
    assert model.decision_function(row)[0] == pytest.approx(model.intercept_[0])


def test_few_levels_are_weighed_as_before():
    X, y = drawn(500, 1.0, n_levels=6)
    one, other = fitted(X, y), PlainLogisticRegression().fit(X, y)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-6)


def test_several_classes_are_refused():
    X = drawn(90, 1.0)[0]
    with pytest.raises(ValueError, match="two classes and y has 3"):
        fitted(X, np.arange(90) % 3)


def test_a_page_shows_groups_of_levels_and_survives_a_file(tmp_path):
    X, y = drawn(900, 1.2, n_levels=120)
    model = LaconicClassifier(candidates=["levels", "logistic"], max_size=40).fit(X, y)
    assert "levels" in model.candidate_
    assert model.size_ <= 40
    save(model, tmp_path / "model.json")
    new = pd.concat([X, pd.DataFrame({"shop": ["nowhere", None], "x": [0.0, 1.0]})])
    again = load(tmp_path / "model.json").predict_proba(new)
    np.testing.assert_array_equal(again, model.predict_proba(new))
