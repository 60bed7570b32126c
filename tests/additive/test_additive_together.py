"""Evidence of all pairs together, and which pairs are screened, against dense algebra."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from laconic import SparseAdditiveClassifier
from laconic.additive import pairs as additive_pairs
from laconic.additive import pairs as additive_together
from laconic.additive.evidence import Smoothness
from laconic.additive.terms import single_terms
from laconic.data.tables.columns import Schema
from laconic.data.tables.knots import KnotRule, encode, learn_axes


def _fit(n, seed):
    """Terms of three columns, precisions, and slopes and curvatures of some fit."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    table, weight = Schema.learn(X).table, np.ones(n)
    terms = single_terms(encode(table, learn_axes(table, weight, KnotRule(8))), weight)
    smooth = Smoothness.start(terms, 5.0)
    p = rng.uniform(0.1, 0.9, n)
    slope = p - (rng.random(n) < 0.5 + 0.4 * np.tanh(2 * X[:, 0] * X[:, 1]))
    return terms, smooth.diagonal(), slope, p * (1 - p)


def test_dense_coordinates_are_the_scores_of_unit_vectors():
    from laconic.additive._numba_rows import score_change

    terms, *_ = _fit(40, 0)
    rows = additive_together.dense_coordinates(terms)
    g = np.random.default_rng(1).normal(size=(1, terms.n_coordinates))
    scores = np.empty((1, 40))
    score_change(*terms.packed, np.arange(len(terms.terms)), g, np.zeros(1), scores)
    np.testing.assert_allclose(g @ rows, scores, atol=1e-12)


def test_product_covariance_is_the_sum_over_pairs():
    terms, *_ = _fit(30, 0)
    rows = additive_together.dense_coordinates(terms)
    relative = terms.rough / additive_together.roughness_units(terms)[terms.owner]
    relative = np.where(relative > 0, relative, 1.0)
    parts = [
        (rows[terms.owner == t].T / relative[terms.owner == t]) @ rows[terms.owner == t]
        for t in range(3)
    ]
    wanted = parts[0] * parts[1] + parts[0] * parts[2] + parts[1] * parts[2]
    # coordinates a hundred times rougher than the smoothest bend are left out
    found = additive_together.product_covariance(terms, rows)
    assert np.abs(found - wanted).max() < 0.1 * np.abs(wanted).max()


def test_evidence_together_is_that_of_the_linear_model(monkeypatch):
    """With w = H z the working response, log N(z; 0, H^-1 + K_0 + K / l) minus that without K."""
    monkeypatch.setattr(additive_together, "AMOUNTS", (300.0, 30.0, 3.0))
    terms, diagonal, slope, curve = _fit(60, 2)
    rows = additive_together.dense_coordinates(terms)
    K = additive_together.product_covariance(terms, rows)
    own = (rows.T / diagonal) @ rows + additive_together._FLAT
    # scores of a stationary point: f = K_0 (-slope), so that the penalty balances the slopes
    score = -own @ slope
    response = score - slope / curve

    def log_normal(covariance):
        sign, size = np.linalg.slogdet(covariance)
        assert sign > 0
        return -0.5 * (size + response @ np.linalg.solve(covariance, response))

    without = np.diag(1 / curve) + own
    wanted = [log_normal(without + K / a) - log_normal(without) for a in (300.0, 30.0, 3.0)]
    found = additive_together.log_bayes_factors_together(
        terms, diagonal, slope, curve, np.arange(60)
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("strength", "seed"), [(0.2, 0), (0.0, 1)])
def test_many_small_products_are_found_together_and_noise_is_not(strength, seed):
    """No single pair is clear; all of them make predictions better than none."""
    rng = np.random.default_rng(seed)
    n, d = 1_000, 12
    X = rng.normal(size=(3 * n, d))
    signs = rng.choice([-1, 1], size=(d, d))
    weak = sum(signs[a, b] * X[:, a] * X[:, b] for a in range(d) for b in range(a))
    y = rng.random(3 * n) < 1 / (1 + np.exp(-X[:, 0] + X[:, 1] - strength * weak))
    model = SparseAdditiveClassifier(random_state=0).fit(X[:n], y[:n])
    n_pairs = sum(len(term.columns) == 2 for term in model.terms_)
    assert n_pairs > 12 if strength else n_pairs == 0
    if strength:
        plain = SparseAdditiveClassifier(pairs=0, random_state=0).fit(X[:n], y[:n])
        assert _log_loss(model, X[n:], y[n:]) < 0.97 * _log_loss(plain, X[n:], y[n:])


def _log_loss(model, X, y):
    p = np.clip(model.predict_proba(X)[:, 1], 1e-12, 1 - 1e-12)
    return float(-np.mean(np.where(y, np.log(p), np.log1p(-p))))


def test_signs_and_given_smoothness_leave_pairs_to_held_out_rows(monkeypatch):
    monkeypatch.setattr(
        "laconic.additive.pairs.amount_together",
        lambda *_: pytest.fail("evidence for free, smooth terms does not hold here"),
    )
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(150, 12)), columns=list("abcdefghijkl"))
    y = rng.random(150) < 1 / (1 + np.exp(-X["a"]))
    SparseAdditiveClassifier(monotone={"a": 1}).fit(X, y)
    SparseAdditiveClassifier(smoothness=10.0).fit(X, y)


@pytest.mark.parametrize("n_scores", [1, 3])
def test_gains_from_one_product_are_those_from_tables(n_scores, monkeypatch):
    """Binary columns, three levels, a constant one and a copy; rows without curvature too."""
    rng = np.random.default_rng(0)
    sizes = np.array([2, 2, 3, 2, 2, 4])
    cells = np.array([rng.integers(0, size, 500) for size in sizes], dtype=np.uint8)
    cells[3], cells[4] = 0, cells[0]
    slopes, curves = rng.normal(size=(n_scores, 500)), rng.uniform(0, 0.25, (n_scores, 500))
    by_product = additive_pairs.all_gains(cells, sizes, slopes, curves)
    monkeypatch.setattr(additive_pairs, "_FEW_LEVELS", 0.0)
    by_table = additive_pairs.all_gains(cells, sizes, slopes, curves)
    np.testing.assert_allclose(by_product, by_table, rtol=1e-9, atol=1e-9)
    assert by_table[0, 1] != 0.0
