"""The kernel gray-zone classifier: SVC's conventions, a certificate, clear refusals."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from laconic import GrayZoneKernelClassifier, GrayZoneLogisticRegression
from laconic.displays import TrueProbabilityDisplay
from laconic.kernel import KernelScore, parzen_bandwidth
from laconic.papers import gray_zone as paper


def gaussians(n: int = 200, seed: int = 0):
    return paper.two_gaussians(n, seed)


def test_a_linear_kernel_is_the_linear_model():
    X, y = gaussians(300)
    for zone in ((0.0, 1.0), (0.2, 0.4)):
        linear = GrayZoneLogisticRegression(zone=zone, tol=1e-10).fit(X, y)
        kernel = GrayZoneKernelClassifier("linear", zone=zone, solver="block", tol=1e-10).fit(X, y)
        np.testing.assert_allclose(kernel.log_odds(X), linear.log_odds(X), rtol=1e-4, atol=1e-4)
        assert kernel.objective_ == pytest.approx(linear.objective_, rel=1e-8)
        assert kernel.threshold_ == linear.threshold_
        np.testing.assert_array_equal(kernel.predict(X), linear.predict(X))


@pytest.mark.parametrize("solver", ["active-set", "smo", "low-rank", "block", "auto"])
def test_the_attributes_are_those_of_svc(solver):
    X, y = gaussians()
    model = GrayZoneKernelClassifier(zone=(0.2, 0.4), gamma=0.5, solver=solver).fit(X, y)
    assert model.duality_gap_ <= 1e-5 * model.objective_
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    np.testing.assert_array_equal(model.n_support_, np.bincount(y[model.support_]))
    np.testing.assert_array_equal(model.support_, np.flatnonzero(model.partition_))
    rebuilt = model.dual_coef_ @ rbf_kernel(model.support_vectors_, X, gamma=0.5)
    slack = 1e-9 if solver != "low-rank" else 0.02
    np.testing.assert_allclose(rebuilt[0] + model.intercept_, model.log_odds(X), atol=slack)
    assert abs(model.dual_coef_.sum()) < 1e-3
    assert len(model.support_) < 150
    assert model.solver_ == ("smo" if solver == "auto" else solver)


def test_the_partition_says_where_rows_stand():
    X, y = gaussians(300)
    model = GrayZoneKernelClassifier(zone=(0.2, 0.4), gamma=0.5, tol=1e-9).fit(X, y)
    p = expit(model.log_odds(X))
    side = np.where(y == 1, p - 0.4, 0.2 - p)  # positive: beyond the zone, on the right side
    part = model.partition_[:, 0]
    assert (side[part == 0] > -1e-6).all()
    assert (side[part == 2] < 1e-6).all()
    assert np.abs(side[part == 1]).max() < 1e-5
    assert (part == 1).any()


def test_precomputed_and_callable_kernels_are_the_named_ones():
    X, y = gaussians(150)
    X_new, _ = gaussians(40, 1)
    named = GrayZoneKernelClassifier("rbf", gamma=0.5, zone=(0.2, 0.4)).fit(X, y)

    def kernel(A, B):
        return rbf_kernel(A, B, gamma=0.5)

    given = GrayZoneKernelClassifier("precomputed", zone=(0.2, 0.4)).fit(kernel(X, X), y)
    called = GrayZoneKernelClassifier(kernel, zone=(0.2, 0.4)).fit(X, y)
    expected = named.decision_function(X_new)
    np.testing.assert_allclose(given.decision_function(kernel(X_new, X)), expected, atol=1e-4)
    np.testing.assert_allclose(called.decision_function(X_new), expected, atol=1e-4)
    weight = np.ones(150)
    weight[::3] = 0.0
    some = GrayZoneKernelClassifier("precomputed", zone=(0.2, 0.4))
    some.fit(kernel(X, X), y, sample_weight=weight)
    part = GrayZoneKernelClassifier(gamma=0.5, zone=(0.2, 0.4)).fit(X[weight > 0], y[weight > 0])
    np.testing.assert_allclose(
        some.decision_function(kernel(X_new, X)), part.decision_function(X_new), atol=1e-4
    )
    poly = GrayZoneKernelClassifier("poly", gamma=0.3, degree=2, coef0=1.0, zone=(0.2, 0.4))
    matrix = polynomial_kernel(X, X, degree=2, gamma=0.3, coef0=1.0)
    by_hand = clone(given).fit(matrix, y)
    assert poly.fit(X, y).objective_ == pytest.approx(by_hand.objective_, rel=1e-6)


def test_sparse_kernel_values_are_the_dense_ones():
    """A kernel function that returns a sparse matrix, and a given matrix in CSR form."""
    X, y = make_moons(90, noise=0.3, random_state=3)

    dense = GrayZoneKernelClassifier(rbf_kernel).fit(X, y)
    thin = GrayZoneKernelClassifier(lambda A, B: sparse.csr_matrix(rbf_kernel(A, B))).fit(X, y)
    np.testing.assert_array_equal(thin.predict_proba(X), dense.predict_proba(X))
    given = GrayZoneKernelClassifier("precomputed").fit(sparse.csr_matrix(rbf_kernel(X)), y)
    found = given.predict_proba(sparse.csr_matrix(rbf_kernel(X)))
    np.testing.assert_allclose(found, dense.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_linear_kernel_has_coefficients(n_classes):
    draw = np.random.default_rng(0)
    X = draw.normal(size=(150, 3))
    y = np.digitize(X[:, 0] + 0.5 * draw.normal(size=150), [0.0, 1.0][: n_classes - 1])
    for table in (X, sparse.csr_matrix(X)):
        model = GrayZoneKernelClassifier("linear", zone=(0.3, 0.7)).fit(table, y)
        assert model.coef_.shape == (1 if n_classes == 2 else 3, 3)
        scores = X @ model.coef_.T + model.intercept_
        np.testing.assert_allclose(scores.reshape(model.log_odds(X).shape), model.log_odds(X))
    with pytest.raises(AttributeError, match="kernel='linear'"):
        _ = GrayZoneKernelClassifier().fit(X, y).coef_


def test_sparse_rows_are_the_dense_ones():
    X, y = gaussians(120)
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    dense = GrayZoneKernelClassifier(zone=(0.2, 0.5)).fit(X, y)
    thin = GrayZoneKernelClassifier(zone=(0.2, 0.5)).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(
        thin.decision_function(sparse.csr_matrix(X)), dense.decision_function(X), atol=1e-4
    )


def test_more_classes_are_one_against_the_rest():
    draw = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 50)
    X = draw.normal(size=(150, 2)) + np.repeat([[0, 0], [3, 0], [0, 3]], 50, axis=0)
    model = GrayZoneKernelClassifier(zone=(0.3, 0.7), gamma=0.5).fit(X, y)
    alone = GrayZoneKernelClassifier(zone=(0.3, 0.7), gamma=0.5).fit(X, y == "b")
    np.testing.assert_allclose(model.log_odds(X)[:, 1], alone.log_odds(X), atol=1e-4)
    assert model.dual_coef_.shape == (3, len(model.support_))
    assert model.partition_.shape == (150, 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.score(X, y) > 0.85
    with pytest.raises(ValueError, match="two classes"):
        GrayZoneKernelClassifier(threshold=0.5).fit(X, y)


def test_landmarks_give_nearly_the_same_function_and_bound_their_excess():
    X, y = gaussians(600)
    full = GrayZoneKernelClassifier(zone=(0.2, 0.4), gamma=0.25, tol=1e-8).fit(X, y)
    few = GrayZoneKernelClassifier(
        zone=(0.2, 0.4), gamma=0.25, landmarks=25, exact_gap=True, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 25 points cannot reach the gap
        few.fit(X, y)
    excess = few.objective_ - full.objective_
    assert 0.0 <= excess + 1e-6 <= few.duality_gap_ + 1e-6
    assert few.duality_gap_ < 0.02 * few.objective_
    own = clone(few).set_params(exact_gap=False).fit(X, y)
    assert own.duality_gap_ <= 1e-5 * own.objective_ < few.duality_gap_
    assert own.score_form_.vectors.shape == (25, 2)
    assert np.mean(own.predict(X) == full.predict(X)) > 0.97


def test_the_form_survives_json_bit_by_bit():
    X, y = gaussians(150)
    for model in (
        GrayZoneKernelClassifier(zone=(0.2, 0.4)),
        GrayZoneKernelClassifier("poly", coef0=1.0, zone=(0.2, 0.4), solver="low-rank"),
    ):
        form = model.fit(X, y.astype(str)).score_form_
        again = KernelScore.from_dict(json.loads(json.dumps(form.to_dict())))
        assert again == form
        np.testing.assert_array_equal(again.score(X), form.score(X))
        np.testing.assert_allclose(again.proba(X), model.predict_proba(X))
    given = GrayZoneKernelClassifier("precomputed").fit(rbf_kernel(X), y)
    with pytest.raises(ValueError, match="precomputed"):
        given.score_form_.to_dict()
    with pytest.raises(ValueError, match="function"):
        GrayZoneKernelClassifier(rbf_kernel).fit(X, y).score_form_.to_dict()
    with pytest.raises(ValueError, match="Expected a kernel form"):
        KernelScore.from_dict({"form": "additive"})


class TestRefusals:
    X, y = gaussians(60)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda K: K[:, :50], "square"),
            (lambda K: K + np.triu(np.ones_like(K), 1), "symmetric"),
            (lambda K: np.where(np.eye(len(K)) > 0, np.inf, K), r"finite|infinity|inf"),
            (lambda K: np.where(np.eye(len(K)) > 0, np.nan, K), r"NaN|missing"),
        ],
    )
    def test_precomputed_matrices(self, change, message):
        with pytest.raises(ValueError, match=message):
            GrayZoneKernelClassifier("precomputed").fit(change(rbf_kernel(self.X)), self.y)

    def test_a_matrix_that_is_not_positive(self):
        K = -rbf_kernel(self.X)
        with pytest.raises(ValueError, match="positive semi-definite"):
            GrayZoneKernelClassifier("precomputed").fit(K, self.y)

    def test_callables(self):
        with pytest.raises(ValueError, match="one value per pair"):
            GrayZoneKernelClassifier(lambda A, B: np.ones(len(A))).fit(self.X, self.y)
        with pytest.raises(ValueError, match="not finite"):
            GrayZoneKernelClassifier(lambda A, B: np.full((len(A), len(B)), np.nan)).fit(
                self.X, self.y
            )

    def test_landmarks(self):
        with pytest.raises(ValueError, match=r"landmarks=61 exceeds the 60 training rows"):
            GrayZoneKernelClassifier(landmarks=61).fit(self.X, self.y)
        with pytest.raises(ValueError, match="precomputed"):
            GrayZoneKernelClassifier("precomputed", landmarks=5).fit(rbf_kernel(self.X), self.y)

    def test_zones_and_thresholds(self):
        with pytest.raises(ValueError, match="outside the zone"):
            GrayZoneKernelClassifier(zone=(0.2, 0.4), threshold=0.5).fit(self.X, self.y)
        with pytest.raises(ValueError, match="p_min < p_max"):
            GrayZoneKernelClassifier(zone=(0.4, 0.2)).fit(self.X, self.y)

    def test_too_many_rows_for_the_papers_algorithm(self):
        X, y = gaussians(2_100)
        with pytest.raises(ValueError, match="at most 2000 rows"):
            GrayZoneKernelClassifier(solver="active-set").fit(X, y)


def test_stopping_short_is_said_aloud():
    X, y = gaussians(400)
    with pytest.warns(ConvergenceWarning, match="certified within"):
        GrayZoneKernelClassifier(zone=(0.2, 0.4), solver="block", max_iter=1).fit(X, y)


def test_clipped_probabilities_and_the_zone():
    X, y = gaussians()
    model = GrayZoneKernelClassifier(zone=(0.2, 0.4), gamma=0.5, proba="clip").fit(X, y)
    p = model.predict_proba(X)[:, 1]
    assert p.min() == 0.2
    assert p.max() == 0.4
    plain = clone(model).set_params(proba="sigmoid").fit(X, y).predict_proba(X)[:, 1]
    np.testing.assert_array_equal(model.in_zone(X), (plain >= 0.2) & (plain <= 0.4))


def test_each_zone_is_best_at_its_own_threshold():
    """Table 2's pattern, by the paper's own choice of width and penalty."""
    found = [[paper.table_2_draw(seed, zone, 4_000) for zone in range(3)] for seed in range(4)]
    cost = {
        cut: np.mean([[own[f"cost {cut}"] for own in row] for row in found], axis=0)
        for cut in (0.3, 0.5)
    }
    assert cost[0.3][1] < cost[0.3][2] / 2
    assert cost[0.5][2] < cost[0.5][1] / 2
    # within noise of plain kernel logistic regression, or better
    assert cost[0.3][1] < cost[0.3][0] + 0.4
    assert cost[0.5][2] < cost[0.5][0] + 0.4
    support = np.array([[own["support"] for own in row] for row in found])
    assert (support[:, 0] == 200).all()
    assert (support[:, 1:] < 130).all()


def test_figure_4_from_the_kernel_model():
    X, y = gaussians(200)
    X_test, _ = gaussians(2_000, 99)
    model = GrayZoneKernelClassifier(zone=(0.2, 0.4), gamma=0.5, C=4.0).fit(X, y)
    display = TrueProbabilityDisplay.from_predictions(
        paper.true_probability(X_test), model.predict_proba(X_test)[:, 1]
    )
    assert len(display.frame()) > 0


def test_the_papers_bandwidth_is_near_ours():
    X, _ = gaussians(200)
    assert 0.25 < parzen_bandwidth(X) < 0.8  # the paper's draw gave 10^-0.3 = 0.50
