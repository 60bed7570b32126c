"""The dual of the slides: its point is feasible, and its value is that of the vote."""

from __future__ import annotations

import numpy as np
import pytest

from laconic.data.tables.columns import Schema
from laconic.votes import CqBoostClassifier, ForestVoters, MinCqClassifier, StumpVoters
from laconic.votes.nnls import box_vote


def rows(n=120, seed=0, n_classes=2):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n, 4)).round(1)
    score = X[:, 0] + 0.5 * X[:, 1] ** 2 + draw.normal(size=n)
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def signed_votes(X, signs, weight):
    """y h(x) of every stump on offer, copies included, and the shares of the rows."""
    prepared = StumpVoters().prepare(Schema.learn(X).table, weight)
    columns = prepared.columns(signs, weight, 0)
    return signs[:, None] * columns.votes(np.arange(columns.n_columns)), weight / weight.sum()


def dual_value(dual, p, mu):
    """The objective as the slides print it, with shares p in place of 1/m and Σq = 1."""
    a = dual.alpha
    quadratic = -0.25 * np.sum(a**2 / p) - 0.5 * dual.beta * a.sum() - 0.25 * dual.beta**2
    return quadratic - dual.beta * mu - dual.nu


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "params",
    [
        {"constraint": "slides"},
        {"mu": 0.3, "mu_unit": "share"},
        {"mu": 0.95, "mu_unit": "share"},
        {"mu": 1e-3},
        {"constraint": "oriented", "mu": 0.4, "mu_unit": "share"},
        {"constraint": "oriented", "mu": 1e-3},
        {"mu": 0.5, "mu_unit": "share", "max_voters": 3},
        {"mu": "cv"},
    ],
    ids=str,
)
def test_strong_duality(params, weighted):
    X, y = rows()
    weight = np.random.default_rng(1).integers(1, 4, len(y)) + 0.0 if weighted else np.ones(len(y))
    model = CqBoostClassifier(**params).fit(X, y, sample_weight=weight if weighted else None)
    (dual,) = model.dual(X, y, weight if weighted else None)
    signs = np.where(y == 1, 1.0, -1.0)
    A, p = signed_votes(X, signs, weight)
    margins = signs * model.vote(X)
    mu, second = p @ margins, p @ margins**2
    # stationarity: γ = -α/(2p) - β/2
    np.testing.assert_allclose(-0.5 * dual.alpha / p - 0.5 * dual.beta, margins, atol=1e-11)
    assert dual.beta == model.beta_[0] <= 0
    # feasibility: no voter, on a side that it may be used on, has a larger edge
    edges = A.T @ dual.alpha
    mean = A.T @ p
    if params.get("constraint") == "oriented":
        edges = np.where(np.abs(mean) < 1e-12, -np.inf, np.sign(mean) * edges)
    else:
        edges = np.abs(edges)
    assert edges.max() <= dual.nu + 1e-9
    # weak duality always, strong duality at an optimum
    value = dual_value(dual, p, mu)
    assert value == pytest.approx(dual.value, abs=1e-10)
    assert value <= second + 1e-12
    assert second - value == pytest.approx(model.duality_gap_[0], abs=1e-10)
    if "max_voters" in params:
        assert second - value > 1e-3
    else:
        assert second - value < 1e-7
        assert edges.max() == pytest.approx(dual.nu, abs=1e-6)
    if params.get("constraint") == "slides" or params == {"mu": 1e-3}:
        assert dual.nu == pytest.approx(0.0, abs=1e-7)
        assert dual.beta == pytest.approx(-2 * second / mu, rel=1e-6)


@pytest.mark.parametrize("share", [0.1, 0.7, 1.0])
def test_the_dual_of_quasi_uniform_votes(share):
    X, y = rows(60)
    model = MinCqClassifier(mu=share, mu_unit="share").fit(X, y)
    (dual,) = model.dual(X, y)
    signs = np.where(y == 1, 1.0, -1.0)
    A, p = signed_votes(X, signs, np.ones(len(y)))
    assert dual.nu == pytest.approx(np.abs(A.T @ dual.alpha).mean(), abs=1e-6)
    margins = signs * model.vote(X)
    value = dual_value(dual, p, p @ margins)
    assert value == pytest.approx(p @ margins**2, abs=1e-7)


def test_every_class_has_its_dual():
    X, y = rows(n_classes=3)
    model = CqBoostClassifier(mu="least-squares").fit(X, y)
    duals = model.dual(X, y)
    assert len(duals) == 3 == len(model.beta_)
    for k, dual in enumerate(duals):
        A, _ = signed_votes(X, np.where(y == k, 1.0, -1.0), np.ones(len(y)))
        assert np.abs(A.T @ dual.alpha).max() <= dual.nu + 1e-8


def test_rows_of_weight_zero_have_no_part():
    X, y = rows(80)
    weight = np.r_[np.zeros(5), np.ones(75)]
    model = CqBoostClassifier(mu="least-squares").fit(X, y, sample_weight=weight)
    assert not model.dual(X, y, weight)[0].alpha[:5].any()


def test_trees_have_no_dual_over_the_rows():
    X, y = rows(80)
    model = CqBoostClassifier(ForestVoters(8), random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="out of bag"):
        model.dual(X, y)


def test_voters_without_a_mean_margin_still_choose_at_the_largest_mean_margin():
    """A box at its end: the second moment once ignored voters that have no margin of their own."""
    A = np.array([[1.0, 1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, -1.0]])
    A[:, 1] = [1.0, -1.0, 0.2, -0.2]
    A[3, 0] = -1.0
    gram, first = A.T @ A / 4, A.mean(0)
    assert first[1] == 0.0
    assert gram[0, 1] != 0.0
    found = box_vote(gram, first, first[0] / 2, np.full(2, 0.5))
    grid = np.linspace(-0.5, 0.5, 100_001)
    best = np.min(gram[0, 0] / 4 + gram[0, 1] * grid + gram[1, 1] * grid**2)
    assert found.value == pytest.approx(best, abs=1e-9)
    assert found.value - found.gap <= best + 1e-12
