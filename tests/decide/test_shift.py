"""Risk under another class mix, prior correction, and the prior of unlabelled rows."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

from laconic import estimate_prior, expected_cost
from laconic.decide import class_risks, correct_prior, risk_by_prior
from laconic.decide.shift import prior_grid, worst_prior

COSTS = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 1.0], [9.0, 4.0, 0.0]])


def posterior(x, prior, centres, scale=1.0):
    """Exact class probabilities of a gaussian mixture."""
    density = norm.pdf(np.asarray(x)[:, None], centres, scale) * prior
    return density / density.sum(axis=1, keepdims=True)


def sample(rng, n, prior, centres, scale=1.0):
    y = rng.choice(len(prior), size=n, p=prior)
    return np.asarray(centres)[y] + scale * rng.standard_normal(n), y


# --- risk as a function of the prior ------------------------------------------------------------


def test_risk_at_the_observed_prior_is_the_mean_cost():
    rng = np.random.default_rng(0)
    y, taken, weight = rng.integers(0, 3, 300), rng.integers(0, 3, 300), rng.uniform(0, 1, 300)
    observed = np.bincount(y, weights=weight) / weight.sum()
    risk = risk_by_prior(y, taken, COSTS, [observed], sample_weight=weight)
    assert risk == pytest.approx([expected_cost(y, taken, COSTS, sample_weight=weight)])


def test_class_risks_by_hand():
    y, taken = [0, 0, 1, 1, 2, 2], [0, 2, 0, 1, 0, 1]
    np.testing.assert_allclose(class_risks(y, taken, COSTS), [1.0, 1.5, 6.5])


def test_risk_is_a_straight_line_for_two_classes():
    rng = np.random.default_rng(1)
    y, taken = rng.integers(0, 2, 80), rng.integers(0, 2, 80)
    risk = risk_by_prior(y, taken, {"fp": 1, "fn": 7})
    assert risk.shape == (101,)
    np.testing.assert_allclose(np.diff(risk, 2), 0, atol=1e-12)
    r0, r1 = class_risks(y, taken, {"fp": 1, "fn": 7})
    assert (risk[0], risk[-1]) == pytest.approx((r0, r1))


def test_risk_by_prior_is_the_risk_of_the_moved_population():
    rng = np.random.default_rng(2)
    x, y = sample(rng, 400_000, [0.5, 0.5], (0.0, 1.5))
    found = risk_by_prior(y, (x > 1).astype(int), {"fp": 1, "fn": 10}, [0.05])[0]
    exact = 0.95 * norm.sf(1.0) + 0.05 * 10 * norm.cdf(1.0, loc=1.5)
    assert found == pytest.approx(exact, rel=0.01)


def test_a_class_without_rows_has_no_risk():
    risks = class_risks([0, 0], [0, 1], None, labels=[0, 1])
    assert risks[0] == 0.5
    assert np.isnan(risks[1])
    with pytest.raises(ValueError, match="position 1, of which y has no row"):
        risk_by_prior([0, 0], [0, 1], None, [0.3], labels=[0, 1])
    assert risk_by_prior([0, 0], [0, 1], None, [0.0], labels=[0, 1]) == [0.5]


def test_abstentions_enter_the_class_risks():
    risks = class_risks(["a", "a", "b"], ["a", "?", "?"], reject_label="?", reject_cost=0.2)
    np.testing.assert_allclose(risks, [0.1, 0.2])


def test_bad_priors_are_explained():
    with pytest.raises(ValueError, match="sum to 1"):
        risk_by_prior([0, 1, 2], [0, 1, 2], COSTS, [[0.5, 0.2, 0.2]])
    with pytest.raises(ValueError, match="3 shares"):
        risk_by_prior([0, 1, 2], [0, 1, 2], COSTS, [0.5])
    with pytest.raises(ValueError, match="no default grid"):
        risk_by_prior([0, 1, 2], [0, 1, 2], COSTS)


def test_worst_prior_is_the_maximum_over_random_mixes():
    rng = np.random.default_rng(3)
    risks = rng.uniform(0, 1, 4)
    position, worst = worst_prior(risks)
    mixes = rng.dirichlet(np.ones(4), 1000)
    assert (mixes @ risks).max() <= worst == risks[position]


# --- prior correction ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_correction_is_exact_under_label_shift(n_classes):
    rng = np.random.default_rng(n_classes)
    old, new = rng.dirichlet(np.ones(n_classes), 2)
    centres = np.arange(n_classes) * 0.8
    x = rng.standard_normal(500) * 3
    corrected = correct_prior(posterior(x, old, centres), old, new)
    np.testing.assert_allclose(corrected, posterior(x, new, centres), rtol=1e-10, atol=1e-14)


def test_correction_back_and_forth():
    rng = np.random.default_rng(4)
    proba = rng.dirichlet(np.ones(3), 50)
    there = correct_prior(proba, [0.2, 0.3, 0.5], [0.6, 0.3, 0.1])
    np.testing.assert_allclose(correct_prior(there, [0.6, 0.3, 0.1], [0.2, 0.3, 0.5]), proba)
    np.testing.assert_allclose(there.sum(axis=1), 1)


def test_correction_of_a_row_does_not_depend_on_its_batch():
    rng = np.random.default_rng(5)
    proba = rng.dirichlet(np.ones(7), 100)
    old, new = rng.dirichlet(np.ones(7), 2)
    whole = correct_prior(proba, old, new)
    alone = np.vstack([correct_prior(proba[[i]], old, new) for i in range(100)])
    np.testing.assert_array_equal(whole, alone)


def test_correction_at_the_edges():
    np.testing.assert_array_equal(correct_prior([[1.0, 0.0]], 0.5, 1.0), [[0.0, 1.0]])
    np.testing.assert_array_equal(
        correct_prior([[0.2, 0.8, 0.0]], [0.5, 0.5, 0], [1, 0, 0]), [[1.0, 0.0, 0.0]]
    )
    np.testing.assert_allclose(correct_prior([[0.5, 0.5]], 1e-300, 0.5)[0], [0.0, 1.0], atol=1e-290)
    with pytest.raises(ValueError, match="position 1"):
        correct_prior([[0.5, 0.5]], [1.0, 0.0], [0.5, 0.5])
    with pytest.raises(ValueError, match="n x K"):
        correct_prior([0.5, 0.5], 0.5, 0.1)


# --- the prior of unlabelled rows ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "centres"),
    [
        ([0.5, 0.5], [0.97, 0.03], (0.0, 2.0)),
        ([0.9, 0.1], [0.4, 0.6], (0.0, 1.0)),
        ([0.3, 0.3, 0.4], [0.7, 0.25, 0.05], (0.0, 1.5, 4.0)),
    ],
)
def test_estimated_prior_finds_the_moved_mix(old, new, centres):
    rng = np.random.default_rng(6)
    x, _ = sample(rng, 100_000, new, centres)
    found = estimate_prior(posterior(x, old, centres), old)
    assert found.converged
    np.testing.assert_allclose(found.point, new, atol=0.015)
    assert found.point.sum() == pytest.approx(1)


def test_estimate_is_the_maximum_that_a_general_optimiser_finds():
    rng = np.random.default_rng(7)
    x, _ = sample(rng, 400, [0.2, 0.5, 0.3], (0.0, 1.0, 2.0))
    old = np.array([0.4, 0.4, 0.2])
    proba = posterior(x, old, (0.0, 1.0, 2.0))
    weight = rng.uniform(0, 2, 400)

    def cost(prior):
        return -np.average(np.log((proba / old) @ prior), weights=weight)

    best = minimize(
        cost,
        old,
        bounds=[(1e-9, 1)] * 3,
        constraints={"type": "eq", "fun": lambda prior: prior.sum() - 1},
        tol=1e-12,
        options={"maxiter": 500},
    )
    found = estimate_prior(proba, old, sample_weight=weight, tol=1e-10)
    assert found.value <= best.fun + 1e-9
    assert found.value == pytest.approx(cost(found.point))
    np.testing.assert_allclose(found.point, best.x, atol=2e-3)


@pytest.mark.parametrize("max_iter", [0, 2, 4, 50])
def test_gap_bounds_the_distance_to_the_best(max_iter):
    rng = np.random.default_rng(8)
    x, _ = sample(rng, 2000, [0.9, 0.1], (0.0, 0.7))
    proba = posterior(x, [0.5, 0.5], (0.0, 0.7))
    best = estimate_prior(proba, 0.5, tol=1e-12, max_iter=100_000)
    if max_iter < 50:
        with pytest.warns(ConvergenceWarning, match="estimate_prior stopped early"):
            short = estimate_prior(proba, 0.5, tol=1e-12, max_iter=max_iter)
    else:
        short = estimate_prior(proba, 0.5, tol=1e-4, max_iter=max_iter)
    assert short.value - best.value + 1e-12 >= 0
    assert short.value - best.value <= short.gap + 1e-12


def test_weights_are_repetitions():
    rng = np.random.default_rng(9)
    x, _ = sample(rng, 300, [0.8, 0.2], (0.0, 1.5))
    proba = posterior(x, [0.5, 0.5], (0.0, 1.5))
    count = rng.integers(0, 4, 300)
    weighted = estimate_prior(proba, 0.5, sample_weight=count, tol=1e-11)
    repeated = estimate_prior(np.repeat(proba, count, axis=0), 0.5, tol=1e-11)
    np.testing.assert_allclose(weighted.point, repeated.point, atol=1e-6)


def test_a_class_that_vanished():
    proba = np.tile([0.99, 0.01], (50, 1))
    found = estimate_prior(proba, 0.5)
    assert found.converged
    assert found.point[0] > 0.999


@pytest.mark.parametrize(
    ("proba", "prior", "words"),
    [
        ([[0.5, np.nan]], 0.5, "finite"),
        ([[0.5, -0.5]], 0.5, ">= 0"),
        ([[0.0, 0.0]], 0.5, "each row"),
        ([[0.5, 0.5]], [1.0, 0.0], "positive share"),
        ([0.5, 0.5], 0.5, "n x K"),
    ],
)
def test_bad_input_of_the_estimate(proba, prior, words):
    with pytest.raises(ValueError, match=words):
        estimate_prior(proba, prior)


@pytest.mark.parametrize("mixes", [[[0.2, 0.3, 0.5]], [[[0.5, 0.5]]]])
def test_mixes_of_other_classes_are_refused(mixes):
    with pytest.raises(ValueError, match="one row per mix and 2 shares, got shape"):
        prior_grid(mixes, 2)
