"""Losses tailored to the threshold: quadrature, the limit of counting, propriety."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

from laconic.choose.tailored import decision_costs, tailored_losses

TWO = np.array([[0.0, 2.0], [6.0, 0.0]])
THREE = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 1.0], [9.0, 2.0, 0.0]])


@pytest.mark.parametrize("k", [1.0, 4.0, 30.0])
@pytest.mark.parametrize("p", [0.02, 0.2, 0.25, 0.7, 0.99])
def test_two_classes_against_quadrature(p, k):
    c = 0.25
    law = beta(c * k, (1 - c) * k)
    # a positive pays 1 - t at every threshold t above p, a negative t at every one below
    missed = quad(lambda t: (1 - t) * law.pdf(t), p, 1.0, limit=200)[0]
    alarm = quad(lambda t: t * law.pdf(t), 0.0, p, limit=200)[0]
    proba = np.array([[1 - p, p]] * 2)
    found = tailored_losses(proba, np.array([1, 0]), TWO, k)
    np.testing.assert_allclose(found, [8 * missed, 8 * alarm], rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("costs", [TWO, THREE, TWO + np.array([[0.5], [1.0]])])
@pytest.mark.parametrize("reject", [None, 0.4])
def test_the_limit_is_counting(costs, reject):
    draw = np.random.default_rng(0)
    proba = draw.dirichlet(np.ones(len(costs)), 500)
    y = draw.integers(0, len(costs), 500)
    counted = decision_costs(proba, y, costs, reject)
    np.testing.assert_array_equal(tailored_losses(proba, y, costs, np.inf, reject), counted)
    near = tailored_losses(proba, y, costs, 1e7, reject)
    assert np.mean(np.abs(near - counted) > 1e-2) < 0.01


@pytest.mark.parametrize(("costs", "reject"), [(TWO, None), (TWO, 1.0), (THREE, None), (THREE, 1)])
@pytest.mark.parametrize("k", [3.0, 8.0])
def test_no_probability_is_better_than_the_true_one(costs, reject, k):
    draw = np.random.default_rng(1)
    classes = np.arange(len(costs))
    for truth in draw.dirichlet(np.ones(len(costs)), 10):
        others = draw.dirichlet(np.ones(len(costs)), 50)
        said = np.vstack([truth, others, 0.8 * truth + 0.2 * others])
        rows, y = np.repeat(said, len(truth), axis=0), np.tile(classes, len(said))
        paid = tailored_losses(rows, y, costs, k, reject).reshape(len(said), -1) @ truth
        assert paid[0] <= paid.min() + 1e-12


def test_draws_of_two_classes_agree_with_the_closed_form():
    draw = np.random.default_rng(2)
    p, y = draw.random(400), draw.integers(0, 2, 400)
    proba = np.stack([1 - p, p], axis=1)
    exact = tailored_losses(proba, y, TWO, 6.0)
    # abstaining at a price that nobody pays: the same loss, by averaging
    drawn = tailored_losses(proba, y, TWO, 6.0, reject_cost=1e9)
    assert drawn.mean() == pytest.approx(exact.mean(), rel=0.01)
    assert np.abs(drawn - exact).max() < 0.05 * exact.max()


def test_three_classes_against_many_draws():
    draw = np.random.default_rng(3)
    proba, y = draw.dirichlet(np.ones(3), 300), draw.integers(0, 3, 300)
    scale = THREE.max(axis=1)
    many = draw.dirichlet(5.0 * scale / scale.sum(), 4096) / (scale / scale.sum())
    expected = np.mean([decision_costs(proba, y, w[:, None] * THREE, None) for w in many], axis=0)
    found = tailored_losses(proba, y, THREE, 5.0)
    assert found.mean() == pytest.approx(expected.mean(), rel=0.03)
    assert np.corrcoef(found, expected)[0, 1] > 0.98


def test_rows_near_the_threshold_speak():
    """Two models that decide alike: counting calls them equal, a tailored loss does not."""
    y = np.tile([0, 1], 100)
    good = np.where(y[:, None] == [0, 1], 0.9, 0.1)
    poor = np.where(y[:, None] == [0, 1], 0.55, 0.45)
    equal = 1.0 - np.eye(2)
    assert tailored_losses(good, y, equal, np.inf).sum() == 0.0
    assert tailored_losses(poor, y, equal, np.inf).sum() == 0.0
    assert tailored_losses(good, y, equal, 8.0).sum() < tailored_losses(poor, y, equal, 8.0).sum()
