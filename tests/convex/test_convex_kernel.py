"""Convex risks on a kernel: the optima of SVC, of KernelRidge and of a conic solver."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

import conic
from laconic import ConvexRiskClassifier, load, save, scan
from laconic.convex import ConvexRiskRegressor
from laconic.core.losses import get_loss

SHAPES = ["plain", "weights", "duplicates", "wide"]
SMOOTH = ["logistic", "squared_hinge", "squared", "exponential"]
REGRESSION = ["squared", "absolute", "huber"]


def problem(shape: str, n: int = 130):
    """Rows, a real-valued target, labels and weights."""
    draw = np.random.default_rng(3)
    X = draw.normal(size=(n, 150)) / 8 if shape == "wide" else draw.normal(size=(n, 3))
    if shape == "duplicates":
        X = np.round(X[np.arange(n) % 35])
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.3 * draw.standard_t(2, n)
    weight = draw.integers(1, 6, n) / 2.0 if shape == "weights" else np.ones(n)
    return X, y, np.where(y > np.median(y), 1.0, -1.0), weight


def features(K: np.ndarray) -> np.ndarray:
    """Columns whose products are K: a kernel model is a linear model of them."""
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    keep = values > 1e-11 * values[-1]
    return vectors[:, keep] * np.sqrt(values[keep])


def exponential(X, y, weight, C) -> float:
    n, d = X.shape
    P = sp.diags_array(np.r_[np.ones(d), np.zeros(1 + n)]).tocsc()
    q = np.r_[np.zeros(d + 1), C * weight]
    A = sp.lil_array((3 * n, d + 1 + n))
    A[3 * np.arange(n), : d + 1] = y[:, None] * np.c_[X, np.ones(n)]
    A[3 * np.arange(n) + 2, d + 1 + np.arange(n)] = -1.0
    right = np.tile([0.0, 1.0, 0.0], n)
    return conic._solve(P, q, A.tocsc(), right, [clarabel.ExponentialConeT()] * n).obj_val


def quadratic(X, y, weight, C, loss, epsilon=None) -> float:
    """Squared hinge (e >= 1 - m, e >= 0) and Huber's loss (e^2 / 2 + epsilon |r - e|)."""
    n, d = X.shape
    table, eye = sp.csr_array(np.c_[X, np.ones(n)]), sp.eye_array(n)
    if loss == "squared_hinge":
        P = sp.diags_array(np.r_[np.ones(d), 0.0, 2 * C * weight]).tocsc()
        A = sp.block_array([[-sp.diags_array(y) @ table, -eye], [None, -eye]])
        right, q = np.r_[-np.ones(n), np.zeros(n)], np.zeros(d + 1 + n)
    else:
        P = sp.diags_array(np.r_[np.ones(d), 0.0, C * weight, np.zeros(n)]).tocsc()
        A = sp.block_array([[table, eye, -eye], [-table, -eye, -eye]])
        right, q = np.r_[y, -y], np.r_[np.zeros(d + 1 + n), C * weight * epsilon]
    return conic._solve(P, q, sp.csc_array(A), right, [clarabel.NonnegativeConeT(2 * n)]).obj_val


def least_squares(K, y, weight, C) -> float:
    """(K + 1 / (C s)) beta + b = y with beta of sum zero, solved as it stands."""
    n = len(y)
    system = np.block([[K + np.diag(1 / (C * weight)), np.ones((n, 1))], [np.ones((1, n)), 0.0]])
    found = np.linalg.solve(system, np.r_[y, 0.0])
    beta, b = found[:-1], found[-1]
    return float(beta @ K @ beta / 2 + C * weight @ (y - K @ beta - b) ** 2 / 2)


def best(loss: str, K, y, side, weight, C) -> float:
    """The least objective, by a method that shares nothing with ours."""
    F = features(K)
    if loss == "logistic":
        return conic.truncated_logistic(F, side, weight, C, 0.0, 1.0)[0]
    if loss == "exponential":
        return exponential(F, side, weight, C)
    if loss == "squared_hinge":
        return quadratic(F, side, weight, C, loss)
    if loss == "squared":
        return least_squares(K, side, weight, 2 * C)
    raise AssertionError(loss)


def recomputed(model, K, loss, y, weight) -> float:
    """The objective of what the attributes say, without the model's own predictions."""
    coef = np.zeros(len(y))
    coef[model.support_] = model.dual_coef_[0]
    z = K @ coef + np.ravel(model.intercept_)[0]
    return float(coef @ K @ coef / 2 + model.C * weight @ loss.value(z, y))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("C", [0.3, 20.0])
class TestSameOptimum:
    def test_hinge_is_svc(self, shape, C):
        X, _, side, weight = problem(shape)
        K = rbf_kernel(X, gamma=0.4)
        peer = SVC(C=C, gamma=0.4, tol=1e-9).fit(X, side, weight)
        ours = ConvexRiskClassifier("hinge", C=C, kernel="rbf", gamma=0.4).fit(X, side, weight)
        theirs = recomputed(peer, K, get_loss("hinge"), side, weight)
        assert ours.objective_[0] == pytest.approx(theirs, rel=1e-6)
        mine = recomputed(ours, K, get_loss("hinge"), side, weight)
        assert mine == pytest.approx(ours.objective_[0], rel=1e-9)
        fresh = np.random.default_rng(0).normal(size=(50, X.shape[1]))
        np.testing.assert_allclose(
            ours.decision_function(fresh), peer.decision_function(fresh), atol=2e-3
        )

    @pytest.mark.parametrize("loss", SMOOTH)
    def test_smooth_losses(self, shape, C, loss):
        X, y, side, weight = problem(shape)
        K = rbf_kernel(X, gamma=0.4)
        ours = ConvexRiskClassifier(loss, C=C, kernel="rbf", gamma=0.4).fit(X, side, weight)
        expected = best(loss, K, y, side, weight, C)
        assert ours.objective_[0] == pytest.approx(expected, rel=1e-6)
        assert 0.0 <= ours.duality_gap_[0] <= 1e-8 * ours.objective_[0]
        mine = recomputed(ours, K, get_loss(loss), side, weight)
        assert mine == pytest.approx(ours.objective_[0], rel=1e-8)

    @pytest.mark.parametrize("loss", REGRESSION)
    def test_regression(self, shape, C, loss):
        X, y, _, weight = problem(shape)
        y = y + 50.0
        K = rbf_kernel(X, gamma=0.4)
        ours = ConvexRiskRegressor(loss, C, epsilon=0.7, kernel="rbf", gamma=0.4)
        ours.fit(X, y, weight)
        expected = {
            "squared": lambda: least_squares(K, y, weight, C),
            "absolute": lambda: conic.least_absolute(features(K), y - 50.0, weight, C),
            "huber": lambda: quadratic(features(K), y - 50.0, weight, C, "huber", 0.7),
        }[loss]()
        assert ours.objective_ == pytest.approx(expected, rel=1e-6)
        more = {"epsilon": 0.7} if loss == "huber" else {}
        function = get_loss(loss, task="regression", **more)
        assert recomputed(ours, K, function, y, weight) == pytest.approx(expected, rel=1e-6)


def test_without_an_intercept_least_squares_is_kernel_ridge():
    X, y, side, weight = problem("weights")
    more = {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0}
    peer = KernelRidge(alpha=0.25, **more).fit(X, y, weight)
    ours = ConvexRiskRegressor("squared", C=4.0, fit_intercept=False, **more).fit(X, y, weight)
    np.testing.assert_allclose(ours.predict(X), peer.predict(X), rtol=1e-6, atol=1e-8)
    peer = KernelRidge(alpha=0.25, **more).fit(X, side, weight)
    ours = ConvexRiskClassifier("squared", C=2.0, fit_intercept=False, **more).fit(X, side, weight)
    np.testing.assert_allclose(ours.decision_function(X), peer.predict(X), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("kernel", "values"),
    [
        ("linear", lambda A, B: A @ B.T),
        ("poly", lambda A, B: polynomial_kernel(A, B, degree=3, gamma=0.3, coef0=1.0)),
        ("precomputed", lambda A, B: rbf_kernel(A, B, gamma=0.3)),
        (laplacian_kernel, laplacian_kernel),
    ],
    ids=["linear", "poly", "precomputed", "function"],
)
def test_every_kernel_is_svcs(kernel, values):
    X, _, side, weight = problem("weights")
    weight[:7] = 0.0
    fresh = np.random.default_rng(1).normal(size=(40, 3))
    K, across = values(X, X), values(fresh, X)
    counted = weight > 0  # libsvm numbers its supports without the rows of zero weight
    small = K[np.ix_(counted, counted)]
    peer = SVC(kernel="precomputed", tol=1e-9).fit(small, side[counted], weight[counted])
    given = (K, across) if kernel == "precomputed" else (X, fresh)
    ours = ConvexRiskClassifier("hinge", kernel=kernel, gamma=0.3, coef0=1.0)
    ours.fit(given[0], side, weight)
    theirs = recomputed(peer, small, get_loss("hinge"), side[counted], weight[counted])
    assert ours.objective_[0] == pytest.approx(theirs, rel=1e-6)
    np.testing.assert_allclose(
        ours.decision_function(given[1]), peer.decision_function(across[:, counted]), atol=5e-4
    )
    assert counted[ours.support_].all()
    assert ours.n_support_.sum() == len(ours.support_) == ours.dual_coef_.shape[1]
    np.testing.assert_array_equal(
        ours.n_support_, np.unique(side[ours.support_], return_counts=True)[1]
    )


def test_the_scale_of_gamma_is_svcs_and_sparse_rows_are_dense_rows():
    X, y, side, _ = problem("plain")
    peer = SVC(tol=1e-9).fit(X, side)
    ours = ConvexRiskClassifier("hinge", kernel="rbf").fit(X, side)
    assert ours.gamma_ == pytest.approx(peer._gamma)
    np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X), atol=1e-3)
    table = sp.csr_array(np.where(np.abs(X) < 0.5, 0.0, X))
    for model in (
        ConvexRiskRegressor(kernel="poly"),
        ConvexRiskRegressor("absolute", kernel="rbf"),
    ):
        dense = clone(model).fit(table.toarray(), y).predict(table.toarray())
        np.testing.assert_allclose(model.fit(table, y).predict(table), dense, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("loss", [*SMOOTH, "hinge", "gray_zone"])
def test_the_gap_bounds_the_suboptimality_when_stopped_early(loss):
    X, _, side, weight = problem("weights")
    more = {"zone": (0.3, 0.8)} if loss == "gray_zone" else {}
    model = ConvexRiskClassifier(loss, C=5.0, kernel="rbf", **more).fit(X, side, weight)
    least = model.objective_[0] - model.duality_gap_[0]
    rough = []
    for tol in (1e-1, 1e-2, 1e-3):
        # more than 500 rows: a rough aim is taken at its word
        many, sides = np.tile(X, (5, 1)), np.tile(side, 5)
        early = clone(model).set_params(tol=tol).fit(many, sides, np.tile(weight / 5, 5))
        assert early.objective_[0] <= least + early.duality_gap_[0] + 1e-7 * least
        assert early.objective_[0] >= least * (1 - 1e-9)
        rough.append(early.duality_gap_[0])
    assert rough[0] >= rough[-1] * (1 - 1e-9)


def test_classes_against_the_rest():
    X, y, _, weight = problem("weights")
    kinds = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    for loss in ("logistic", "hinge"):
        model = ConvexRiskClassifier(loss, kernel="rbf", gamma=0.5).fit(X, kinds, weight)
        for k in range(3):
            one = clone(model).fit(X, kinds == k, weight)
            np.testing.assert_allclose(
                model.decision_function(X)[:, k], one.decision_function(X), atol=1e-5
            )
        assert model.dual_coef_.shape == (3, len(model.support_))
        assert model.duality_gap_.shape == (3,)
        np.testing.assert_array_equal(
            model.predict(X), model.classes_[model.decision_function(X).argmax(axis=1)]
        )
    proba = ConvexRiskClassifier(kernel="rbf").fit(X, kinds).predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)


def test_a_kernel_bends_where_a_line_cannot_and_a_refit_forgets_it():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(300, 2))
    y = X[:, 0] * X[:, 1] > 0
    model = ConvexRiskClassifier(kernel="rbf", C=10.0)
    assert model.fit(X, y).score(X, y) > 0.95
    assert not hasattr(model, "coef_")
    straight = model.predict_proba(X)
    model.set_params(kernel=None).fit(X, y)
    assert model.score(X, y) < 0.7
    assert not hasattr(model, "support_")
    assert not np.allclose(model.predict_proba(X), straight)
    # a kernel of products is the linear model written twice
    twice = clone(model).set_params(kernel="linear").fit(X, y)
    np.testing.assert_allclose(twice.predict_proba(X), model.predict_proba(X), atol=1e-6)


def test_a_gray_zone_is_cut_at_its_centre():
    X, _, side, _ = problem("plain")
    model = ConvexRiskClassifier("gray_zone", kernel="rbf", zone=(0.1, 0.4)).fit(X, side)
    centre = get_loss("gray_zone", p_min=0.1, p_max=0.4).centre
    np.testing.assert_array_equal(model.predict(X) > 0, model.predict_proba(X)[:, 1] > centre)


def test_cross_validation_cuts_a_precomputed_matrix_both_ways():
    X, y, _, _ = problem("plain")
    K = rbf_kernel(X, gamma=0.4)
    given = cross_val_score(ConvexRiskRegressor(kernel="precomputed"), K, y, cv=3)
    made = cross_val_score(ConvexRiskRegressor(kernel="rbf", gamma=0.4), X, y, cv=3)
    np.testing.assert_allclose(given, made, rtol=1e-6)


class TestClearErrors:
    def test_joint(self):
        X, y, _, _ = problem("plain")
        kinds = np.digitize(y, np.quantile(y, [0.3, 0.6]))
        with pytest.raises(ValueError, match="'joint' needs kernel=None; with a kernel use 'ovr'"):
            ConvexRiskClassifier(multi_class="joint", kernel="rbf").fit(X, kinds)

    def test_warm_start(self):
        X, y, side, _ = problem("plain")
        for model, target in ((ConvexRiskClassifier, side), (ConvexRiskRegressor, y)):
            with pytest.raises(ValueError, match="warm_start=True is for linear models"):
                model(kernel="rbf", warm_start=True).fit(X, target)

    def test_scan(self, tmp_path):
        pl = pytest.importorskip("polars")
        X, _, side, _ = problem("plain")
        pl.DataFrame({"a": X[:, 0], "y": side}).write_parquet(tmp_path / "rows.parquet")
        rows = scan(tmp_path / "rows.parquet", target="y")
        with pytest.raises(TypeError, match="ConvexRiskClassifier with a kernel needs its rows in"):
            ConvexRiskClassifier(kernel="rbf").fit(rows)

    @pytest.mark.parametrize(
        ("spoil", "says"),
        [
            (lambda K: K[:, :-1], "needs a square matrix"),
            (lambda K: K + np.arange(len(K)), "not symmetric"),
            (lambda K: K - 2.0 * np.eye(len(K)), "not positive semi-definite"),
            (lambda K: 2.0 * K - np.eye(len(K)), "not positive semi-definite"),
        ],
        ids=["shape", "symmetry", "sign", "cosines"],
    )
    def test_matrix(self, spoil, says):
        X, y, side, _ = problem("plain")
        K = spoil(rbf_kernel(X, gamma=0.4))
        with pytest.raises(ValueError, match=says):
            ConvexRiskClassifier(kernel="precomputed").fit(K, side)
        with pytest.raises(ValueError, match=says):
            ConvexRiskRegressor(kernel="precomputed").fit(K, y)

    def test_a_short_run_says_so(self):
        X, y, _, _ = problem("plain", n=900)
        with pytest.warns(ConvergenceWarning, match="raise max_iter or tol, or scale X"):
            ConvexRiskRegressor("absolute", C=1e6, kernel="rbf", max_iter=1, tol=1e-14).fit(X, y)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_a_linear_kernel_has_the_coefficients_of_the_linear_model(loss):
    X, y = make_blobs(200, n_features=3, centers=3, cluster_std=4.0, random_state=20)
    kernel = ConvexRiskClassifier(loss, kernel="linear", multi_class="ovr", tol=1e-10).fit(X, y)
    linear = ConvexRiskClassifier(loss, multi_class="ovr", tol=1e-10).fit(X, y)
    np.testing.assert_allclose(kernel.coef_, linear.coef_, rtol=1e-3, atol=1e-3)
    scores = X @ kernel.coef_.T + kernel.intercept_
    np.testing.assert_allclose(scores, kernel.decision_function(X), atol=1e-9)
    assert not hasattr(kernel.set_params(kernel="rbf").fit(X, y), "coef_")


def test_a_linear_kernel_with_probabilities_is_saved_as_the_linear_model_that_it_is(tmp_path):
    X, y = make_blobs(80, n_features=2, centers=2, cluster_std=4.0, random_state=0)
    model = ConvexRiskClassifier(kernel="linear").fit(X, y)
    save(model, tmp_path / "m.json")
    again = load(tmp_path / "m.json").predict_proba(X)
    np.testing.assert_allclose(again, model.predict_proba(X), atol=1e-9)


def test_columns_of_very_different_size_are_fitted_jointly():
    """scikit-learn's Newton steps end in NaN here, and the model once had no coefficients."""
    draw = np.random.default_rng(0)
    X = np.column_stack(
        [2e3 * draw.integers(0, 2, 8), draw.normal(size=8), draw.choice([0.0, 5e-324, 1e-310], 8)]
    )
    model = ConvexRiskClassifier().fit(X, [0, 1, 2, 3, 4, 5, 0, 1])
    assert np.isfinite(model.coef_).all()
    assert model.duality_gap_ <= 1e-7 * model.objective_


def test_a_linear_kernel_far_from_zero_is_certified_for_the_columns_as_they_are():
    """Inner products of 72,388 plus noise of one kept nine digits: the value of one order of
    columns was below what the gap of another proved to be the least."""
    draw = np.random.default_rng(0)
    X, y = draw.normal(size=(12, 3)), np.arange(12) % 2
    moved = X + np.array([0.0, 2.0**20, -(2.0**24)])
    near = ConvexRiskClassifier("hinge", kernel="linear").fit(X, y)
    far = ConvexRiskClassifier("hinge", kernel="linear").fit(moved, y)
    assert far.objective_ == pytest.approx(near.objective_, rel=1e-9)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-6)
    scores = far.decision_function(moved)
    np.testing.assert_allclose(scores, near.decision_function(X), atol=1e-5)
    np.testing.assert_array_equal(far.support_vectors_, moved[far.support_])
