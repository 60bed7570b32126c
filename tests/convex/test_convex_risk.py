"""Convex risks: the same optima as scikit-learn and a conic solver, and gaps that hold."""

from __future__ import annotations

import clarabel
import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, QuantileRegressor, Ridge, RidgeClassifier

import conic
from laconic import ConvexRiskClassifier, load, save, scan
from laconic.convex import ConvexRiskRegressor
from laconic.convex.least_squares import _certified, solve_least_squares
from laconic.convex.solver import linear_gap, solve_joint_logistic
from laconic.core.losses import LogisticLoss, TruncatedLogistic, get_loss, log_odds
from laconic.data.source import ArraySource

SHAPES = ["plain", "weights", "collinear", "wide", "duplicates"]


def problem(shape: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, a real-valued target and weights."""
    draw = np.random.default_rng(seed)
    n, d = (25, 60) if shape == "wide" else (150, 5)
    X = draw.normal(size=(n, d))
    if shape == "collinear":
        X = np.column_stack([X, X[:, 0] + X[:, 1], np.full(n, 2.0)])
    if shape == "duplicates":
        X = np.round(X[np.arange(n) % 40])
    y = X @ draw.normal(size=X.shape[1]) + draw.standard_t(3, size=n) + 3.0
    weight = draw.integers(1, 5, n) / 2.0 if shape == "weights" else np.ones(n)
    return X, y, weight


def labels(y: np.ndarray) -> np.ndarray:
    return np.where(y > np.median(y), 1.0, -1.0)


def objective(loss, X, y, weight, C, coef, intercept) -> float:
    score = X @ np.ravel(coef) + intercept
    return float(np.sum(np.square(coef)) / 2 + C * weight @ loss.value(score, y))


def huber(X, y, weight, C, epsilon) -> float:
    """Huber's loss is the least of e^2 / 2 + epsilon |r - e| over e."""
    n, d = X.shape
    P = sp.diags_array(np.r_[np.ones(d), 0.0, C * weight, np.zeros(n)]).tocsc()
    q = np.r_[np.zeros(d + 1 + n), C * weight * epsilon]
    table, eye = sp.csr_array(np.c_[X, np.ones(n)]), sp.eye_array(n)
    A = sp.block_array([[table, eye, -eye], [-table, -eye, -eye]])
    cones = [clarabel.NonnegativeConeT(2 * n)]
    return conic._solve(P, q, sp.csc_array(A), np.r_[y, -y], cones).obj_val


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("C", [0.1, 10.0])
class TestSameOptimum:
    def test_logistic(self, shape, C):
        X, y, weight = problem(shape)
        side = labels(y)
        ours = ConvexRiskClassifier(C=C, tol=1e-12).fit(X, side, weight)
        peer = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10).fit(X, side, weight)
        np.testing.assert_allclose(
            ours.decision_function(X), peer.decision_function(X), rtol=1e-4, atol=1e-4
        )
        best = objective(LogisticLoss(), X, side, weight, C, peer.coef_, peer.intercept_)
        assert ours.objective_[0] == pytest.approx(best, rel=1e-6)

    def test_squared(self, shape, C):
        X, y, weight = problem(shape)
        ridge = Ridge(alpha=1 / C).fit(X, y, weight)
        ours = ConvexRiskRegressor(loss="squared", C=C).fit(X, y, weight)
        best = objective(
            get_loss("squared", task="regression"), X, y, weight, C, ridge.coef_, ridge.intercept_
        )
        assert ours.objective_ == pytest.approx(best, rel=1e-6)
        # (1 - m)^2 is twice r^2 / 2
        side = labels(y)
        classifier = RidgeClassifier(alpha=1 / (2 * C)).fit(X, side, weight)
        ours = ConvexRiskClassifier(loss="squared", C=C).fit(X, side, weight)
        np.testing.assert_allclose(
            ours.decision_function(X), classifier.decision_function(X), rtol=1e-4, atol=1e-4
        )

    def test_hinge(self, shape, C):
        X, y, weight = problem(shape)
        side = labels(y)
        ours = ConvexRiskClassifier(loss="hinge", C=C).fit(X, side, weight)
        assert ours.objective_[0] == pytest.approx(conic.hinge(X, side, weight, C), rel=1e-6)

    def test_absolute(self, shape, C):
        X, y, weight = problem(shape)
        ours = ConvexRiskRegressor(loss="absolute", C=C).fit(X, y, weight)
        assert ours.objective_ == pytest.approx(conic.least_absolute(X, y, weight, C), rel=1e-6)

    def test_huber(self, shape, C):
        X, y, weight = problem(shape)
        ours = ConvexRiskRegressor(epsilon=0.7, C=C).fit(X, y, weight)
        assert ours.objective_ == pytest.approx(huber(X, y, weight, C, 0.7), rel=1e-6)


@pytest.mark.parametrize("size", [(50, 20), (30, 60), (200, 20)], ids=str)
@pytest.mark.parametrize(("C", "epsilon"), [(1e3, 0.1), (1e6, 0.1), (1e6, 1e-3)])
def test_huber_ends_at_the_optimum_however_weak_the_penalty(size, C, epsilon):
    """Few rows lie where the loss curves: Newton's steps alone stall far away."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=size)
    y = 3 * X @ draw.normal(size=size[1]) + 5 * draw.standard_t(2, size=size[0])
    ours = ConvexRiskRegressor(C=C, epsilon=epsilon, max_iter=200).fit(X, y)
    # the coefficients in units of 1 / sqrt(C), lest the conic solver meets numbers of all sizes
    best = C * huber(np.sqrt(C) * X, y, np.ones(len(y)), 1.0, epsilon)
    assert ours.objective_ == pytest.approx(best, rel=1e-5)
    assert ours.duality_gap_ <= 1e-8 * ours.objective_
    assert objective(
        get_loss("huber", task="regression", epsilon=epsilon), X, y, np.ones(len(y)), C,
        ours.coef_, ours.intercept_,
    ) == pytest.approx(ours.objective_, rel=1e-9)  # fmt: skip


@pytest.mark.parametrize("C", [1e10, 1e13, 1e16, 1e18])
@pytest.mark.parametrize("size", [(20, 50), (30, 30), (25, 24)], ids=str)
def test_squared_loss_interpolates_under_any_penalty(C, size):
    """The least value is t'(K + 1 / (C k))^-1 t / 2, with t and K centred."""
    draw = np.random.default_rng(1)
    X, y = draw.normal(size=size), draw.normal(size=size[0])
    X[:, 3] = X[:, 2]
    weight = draw.integers(1, 4, size[0]).astype(float)
    root = np.sqrt(weight)
    K = root[:, None] * (X - np.average(X, axis=0, weights=weight))
    for model, target, k in (
        (ConvexRiskRegressor("squared", C), y, 1.0),
        (ConvexRiskClassifier("squared", C), labels(y), 2.0),
    ):
        model.fit(X, target, weight)
        t = root * (target - np.average(target, weights=weight))
        U, S, _ = np.linalg.svd(K, full_matrices=False)
        U, S = U[:, S > 1e-12], S[S > 1e-12]
        inside = U.T @ t
        left = t - U @ inside
        best = inside @ (inside / (S**2 + 1 / (C * k))) / 2
        if size[0] > len(S) + 1:  # else what is left is rounding
            best += C * k * left @ left / 2
        # the scores of any coefficients are off by rounding, and C multiplies their squares
        off = np.ravel(model.objective_)[0] - best
        gap = np.ravel(model.duality_gap_)[0]
        assert -1e-9 * best <= off <= gap + 1e-9 * best
        assert gap <= 1e-7 * best


def test_a_gap_that_rounding_leaves_is_said_aloud():
    draw = np.random.default_rng(0)
    X, y = draw.normal(size=(20, 50)), draw.normal(size=20)
    with pytest.warns(ConvergenceWarning, match="certified within"):
        model = ConvexRiskRegressor("squared", 1e30).fit(X, y)
    assert model.duality_gap_ > 1e-3 * model.objective_


def test_probabilities_of_a_scan_come_block_by_block():
    X, y, _ = problem("plain")
    frame = pl.DataFrame(X, schema=list("abcde")).with_columns(label=pl.Series(labels(y)))
    rows = scan(frame, "label", block_rows=40)
    model = ConvexRiskClassifier().fit(rows)
    found = np.concatenate(list(model.predict_proba(rows)))
    np.testing.assert_array_equal(found, model.predict_proba(frame.drop("label")))
    assert len(list(model.predict_proba(rows))) == 4


def test_a_weak_penalty_gives_scikit_learns_median_regression():
    X, y, weight = problem("weights")
    peer = QuantileRegressor(quantile=0.5, alpha=0.0, solver="highs").fit(X, y, weight)
    ours = ConvexRiskRegressor(loss="absolute", C=1e5).fit(X, y, weight)
    loss = weight @ np.abs(y - ours.predict(X))
    assert loss == pytest.approx(weight @ np.abs(y - peer.predict(X)), rel=1e-6)


def test_hinge_is_linear_svc_with_its_penalised_intercept():
    from sklearn.svm import LinearSVC

    X, y, _ = problem("plain")
    side = labels(y)
    peer = LinearSVC(loss="hinge", C=0.5, tol=1e-9, max_iter=1_000_000, random_state=0)
    peer.fit(X, side)
    widened = np.column_stack([X, np.ones(len(X))])
    ours = ConvexRiskClassifier(loss="hinge", C=0.5, fit_intercept=False).fit(widened, side)
    theirs = np.r_[peer.coef_[0], peer.intercept_]
    best = objective(get_loss("hinge"), widened, side, np.ones(len(X)), 0.5, theirs, 0.0)
    assert ours.objective_[0] == pytest.approx(best, rel=1e-6)


LOSSES = ["logistic", "hinge", "squared_hinge", "squared", "exponential"]


def random_problem(seed: int):
    draw = np.random.default_rng(seed)
    n, d = int(draw.integers(8, 80)), int(draw.integers(1, 12))
    X = draw.normal(size=(n, d)) * 10 ** draw.uniform(-1, 1, d)
    if draw.random() < 0.3:
        X = np.round(X)
    y = X @ draw.normal(size=d) + draw.standard_t(2, n)
    if y.min() == y.max():
        y[0] += 1.0
    weight = draw.uniform(0.2, 3.0, n)
    return X, y, weight, float(10 ** draw.uniform(-2, 2)), draw


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("batch", range(10))
def test_the_gap_bounds_the_suboptimality_wherever_the_optimiser_stops(batch):
    """Two hundred problems: few iterations and a loose tolerance, against a tight solution."""
    for seed in range(batch * 20, batch * 20 + 20):
        X, y, weight, C, draw = random_problem(seed)
        short = {"C": C, "max_iter": int(draw.integers(1, 5)), "tol": 1e-3}
        if seed % 2:
            loss = LOSSES[seed // 2 % len(LOSSES)]
            rough = ConvexRiskClassifier(loss=loss, **short).fit(X, labels(y), weight)
            tight = ConvexRiskClassifier(loss=loss, C=C, tol=1e-11).fit(X, labels(y), weight)
        else:
            loss = ["huber", "absolute", "squared"][seed // 2 % 3]
            rough = ConvexRiskRegressor(loss=loss, **short).fit(X, y, weight)
            tight = ConvexRiskRegressor(loss=loss, C=C, tol=1e-11).fit(X, y, weight)
        target = labels(y) if seed % 2 else y
        named = get_loss(loss, task="classification" if seed % 2 else "regression")
        found = objective(named, X, target, weight, C, rough.coef_, rough.intercept_)
        best = float(np.ravel(tight.objective_)[0])
        gap, tight_gap = np.ravel(rough.duality_gap_)[0], np.ravel(tight.duality_gap_)[0]
        rounding = 1e-9 * best
        assert gap >= 0
        assert tight_gap <= 1e-6 * best, (seed, loss)
        assert found - best <= gap + rounding, (seed, loss)
        # and the tight solution is not above the rough one by more than its own gap
        assert best - found <= tight_gap + rounding, (seed, loss)


@pytest.mark.parametrize("loss", ["absolute", "huber"])
def test_outliers_do_not_move_robust_coefficients(loss):
    draw = np.random.default_rng(0)
    n = 20_000
    X = draw.normal(size=(n, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.3 * draw.normal(size=n)
    spoiled = y.copy()
    hit = draw.choice(n, n // 100, replace=False)
    # outliers on the side that pulls the slopes most
    spoiled[hit] = 1e6 * np.sign(X[hit, 0])
    clean = ConvexRiskRegressor(loss=loss).fit(X, y)
    moved = ConvexRiskRegressor(loss=loss).fit(X, spoiled)
    squares = ConvexRiskRegressor(loss="squared").fit(X, spoiled)
    assert np.abs(moved.coef_ - clean.coef_).max() < 4e-2
    assert np.abs(squares.coef_ - clean.coef_).max() > 10
    # where the outliers do not conspire with a column
    spoiled[hit] = 1e6
    moved = ConvexRiskRegressor(loss=loss).fit(X, spoiled)
    squares = ConvexRiskRegressor(loss="squared").fit(X, spoiled)
    assert np.abs(moved.coef_ - clean.coef_).max() < 1e-2
    assert np.abs(squares.coef_ - clean.coef_).max() > 10


@pytest.mark.parametrize("n", [7, 8])
def test_without_columns_that_matter_the_intercept_is_a_median(n):
    draw = np.random.default_rng(n)
    y = draw.normal(size=n) * 100
    weight = draw.integers(1, 4, n).astype(float)
    model = ConvexRiskRegressor(loss="absolute").fit(np.zeros((n, 1)), y, weight)
    repeated = np.sort(np.repeat(y, weight.astype(int)))
    low, high = repeated[(len(repeated) - 1) // 2], repeated[len(repeated) // 2]
    # leaving the median by delta costs at least the least weight times delta
    slack = model.duality_gap_ / weight.min()
    assert slack < 1e-5
    assert low - slack <= model.intercept_ <= high + slack


class TestManyClasses:
    def rows(self, K=4, n=300):
        draw = np.random.default_rng(1)
        X = draw.normal(size=(n, 5))
        y = np.argmax(X @ draw.normal(size=(5, K)) + draw.gumbel(size=(n, K)), axis=1)
        return X, y, draw.uniform(0.5, 2.0, n)

    @pytest.mark.parametrize("C", [0.1, 10.0])
    def test_joint_is_scikit_learns_multinomial(self, C):
        X, y, weight = self.rows()
        peer = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10).fit(X, y, weight)
        ours = ConvexRiskClassifier(C=C).fit(X, y, weight)
        np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-4)
        best = conic.truncated_multinomial(X, y, weight, C, np.ones(4))
        assert ours.objective_[0] == pytest.approx(best, rel=1e-6)

    def test_the_joint_gap_holds_when_stopped_early(self):
        X, y, weight = self.rows()
        best = conic.truncated_multinomial(X, y, weight, 5.0, np.ones(4))
        seen = []
        for max_iter in (1, 2, 3, 5):
            found = solve_joint_logistic(X, y, weight, C=5.0, tol=1e-14, max_iter=max_iter)
            assert best - 1e-6 <= found.value <= best + found.gap + 1e-6
            seen.append(found.gap)
        assert seen[0] > 100 * seen[-1]

    def test_one_against_the_rest_is_as_many_binary_fits(self):
        X, y, weight = self.rows()
        ours = ConvexRiskClassifier(loss="hinge", multi_class="ovr").fit(X, y, weight)
        alone = ConvexRiskClassifier(loss="hinge").fit(X, y == 2, weight)
        np.testing.assert_allclose(ours.decision_function(X)[:, 2], alone.decision_function(X))
        np.testing.assert_array_equal(ours.predict(X), ours.decision_function(X).argmax(axis=1))

    def test_joint_needs_the_logistic_loss(self):
        X, y, _ = self.rows()
        with pytest.raises(ValueError, match="multi_class='joint' needs loss='logistic'"):
            ConvexRiskClassifier(loss="hinge", multi_class="joint").fit(X, y)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "hinge"])
def test_csr_rows_give_the_dense_model(loss):
    X, y, weight = problem("plain")
    X = np.where(np.abs(X) < 0.8, 0.0, X)
    dense = ConvexRiskClassifier(loss=loss).fit(X, labels(y), weight)
    thin = ConvexRiskClassifier(loss=loss).fit(sp.csr_array(X), labels(y), weight)
    assert thin.objective_[0] == pytest.approx(dense.objective_[0], rel=1e-6)
    np.testing.assert_allclose(thin.coef_, dense.coef_, atol=1e-3)


def test_a_warm_start_from_the_solution_needs_no_iteration():
    X, y, weight = problem("weights")
    for model in (
        ConvexRiskClassifier(warm_start=True, tol=1e-7),
        ConvexRiskClassifier(loss="squared_hinge", warm_start=True, tol=1e-7),
    ):
        cold = model.fit(X, labels(y), weight).n_iter_[0]
        assert model.fit(X, labels(y), weight).n_iter_[0] == 0 < cold
    regressor = ConvexRiskRegressor(warm_start=True, tol=1e-7)
    cold = regressor.fit(X, y, weight).n_iter_
    assert regressor.fit(X, y, weight).n_iter_ == 0 < cold


def test_gray_zone_is_cut_at_its_centre():
    draw = np.random.default_rng(3)
    X = draw.normal(size=(400, 2))
    y = draw.random(400) < 1 / (1 + np.exp(2.0 - 2 * X[:, 0]))
    model = ConvexRiskClassifier(loss="gray_zone", zone=(0.1, 0.4)).fit(X, y)
    score = model.predict_proba(X)[:, 1]
    low, high = np.log(0.1 / 0.9), np.log(0.4 / 0.6)
    cut = 1 / (1 + np.exp(-(low + high) / 2))
    np.testing.assert_array_equal(model.predict(X), score > cut)
    with pytest.raises(ValueError, match="needs zone"):
        ConvexRiskClassifier(loss="gray_zone").fit(X, y)


def test_no_bound_on_the_error_rate_is_read_off_the_gap():
    """Two kinds of row, hinge: the certified optimum errs more often than the best function."""
    X = np.repeat([[0.0], [1.0], [2.0]], [30, 10, 30], axis=0)
    y = np.repeat([1, 0, 1], [30, 10, 30])
    model = ConvexRiskClassifier(loss="hinge").fit(X, y)
    assert model.duality_gap_[0] <= 1e-8 * model.objective_[0]
    assert np.mean(model.predict(X) != y) > 0.1  # the best function of the row never errs
    assert not [name for name in vars(model) if "bound" in name or "excess" in name]


class _Steep:
    """A user's loss: softplus of twice the margin."""

    def value(self, z, y):
        return np.logaddexp(0.0, -2.0 * y * z)

    def slope(self, z, y):
        return -2.0 * y / (1.0 + np.exp(2.0 * y * z))

    def curvature(self, z, y):
        p = 1.0 / (1.0 + np.exp(2.0 * y * z))
        return 4.0 * p * (1.0 - p)

    def conjugate(self, u, y):
        return LogisticLoss().conjugate(u / 2.0, y)

    def kink(self, y):
        return LogisticLoss().kink(y)


class _WrongWay(_Steep):
    def value(self, z, y):
        return super().value(-z, y)


def test_a_loss_of_ones_own_is_used_or_refused():
    X, y, _ = problem("plain")
    model = ConvexRiskClassifier(loss=_Steep()).fit(X, labels(y))
    # scores halve and the penalty counts four times less
    peer = ConvexRiskClassifier(C=4.0).fit(X, labels(y))
    np.testing.assert_allclose(2 * model.coef_, peer.coef_, rtol=1e-3)
    assert 0 <= model.duality_gap_[0] <= 1e-8 * model.objective_[0]
    with pytest.raises(ValueError, match="slope 1 at 0"):
        ConvexRiskClassifier(loss=_WrongWay()).fit(X, labels(y))


def test_hinge_has_no_probabilities():
    assert not hasattr(ConvexRiskClassifier(loss="hinge"), "predict_proba")
    assert hasattr(ConvexRiskClassifier(), "predict_proba")


class TestLeastSquares:
    """The direct road, and where it gives way to Newton's."""

    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("weighted", [True, False])
    @pytest.mark.parametrize("level", [0.0, 1e5])
    def test_is_a_longhand_solution_over_several_blocks(self, fit_intercept, weighted, level):
        draw = np.random.default_rng(5)
        n = 70_000
        X = draw.normal(size=(n, 3)) + level
        y = X @ [1.0, -2.0, 0.5] + draw.normal(size=n) + 7.0
        weight = draw.integers(1, 4, n) / 2.0 if weighted else np.ones(n)
        C = 0.02
        root = np.sqrt(C * weight)
        mean = weight @ X / weight.sum() if fit_intercept else np.zeros(3)
        middle = weight @ y / weight.sum() if fit_intercept else 0.0
        table = np.vstack([root[:, None] * (X - mean), np.eye(3)])
        w = np.linalg.lstsq(table, np.r_[root * (y - middle), np.zeros(3)], rcond=None)[0]
        ours = ConvexRiskRegressor("squared", C=C, fit_intercept=fit_intercept).fit(X, y, weight)
        np.testing.assert_allclose(ours.coef_, w, rtol=1e-6, atol=1e-9)
        assert ours.intercept_ == pytest.approx(middle - mean @ w, rel=1e-6, abs=1e-6)
        miss = y - X @ ours.coef_ - ours.intercept_
        value = ours.coef_ @ ours.coef_ / 2 + C * weight @ miss**2 / 2
        assert ours.objective_ == pytest.approx(value, rel=1e-10)
        assert ours.duality_gap_ <= 1e-8 * ours.objective_

    def test_the_gap_is_that_of_the_point(self):
        """At any point the gap bounds the excess, by the identity of quadratic functions."""
        X, y, weight = problem("weights")
        source, C, k = ArraySource(X, y, weight), 0.7, 2.0
        best = solve_least_squares(source, C=C, k=k, fit_intercept=True, tol=1e-10)
        mean = weight @ X / weight.sum()
        draw = np.random.default_rng(0)
        for size in (1e-6, 1e-2, 10.0):
            point = best.point + size * draw.normal(size=len(best.point))
            value, gap, _ = _certified(source, point, C, k, mean, True)
            assert gap >= value - best.value >= 0.0
            slope = k * (X @ point[:-1] + point[-1] - y)
            slope -= weight @ slope / weight.sum()
            other = linear_gap(source, get_loss("squared"), C, point, slope)
            np.testing.assert_allclose((value, gap), other, rtol=1e-8, atol=1e-12)

    def test_rounding_too_coarse_for_it_is_said(self):
        """Columns of very different sizes, nearly collinear: no direct solution is claimed."""
        draw = np.random.default_rng(0)
        X = draw.normal(size=(300, 2))
        X = np.column_stack([1e12 * X, 1e12 * X.sum(axis=1) + 1e-3 * draw.normal(size=300)])
        y = X[:, 0] / 1e12 + draw.normal(size=300)
        found = solve_least_squares(
            ArraySource(X, y, None), C=1.0, k=1.0, fit_intercept=True, tol=1e-12
        )
        assert found is None
        with pytest.warns(ConvergenceWarning, match="stopped early"):
            ours = ConvexRiskRegressor("squared", tol=1e-12).fit(X, y)
        assert np.isfinite(ours.coef_).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"multi_class": "ovr"},
        {"loss": "exponential", "multi_class": "ovr"},
        {"loss": "gray_zone", "zone": (0.1, 0.4), "multi_class": "ovr"},
    ],
    ids=str,
)
def test_a_linear_model_is_saved_with_every_bit(parameters, n_classes, tmp_path):
    X, y, _ = problem("plain")
    kind = np.array(["low", "high", "middle"])[np.digitize(y, np.quantile(y, [0.4, 0.7]))]
    kind = kind if n_classes == 3 else np.where(kind == "low", "low", "high")
    model = ConvexRiskClassifier(**parameters).fit(X, kind)
    save(model, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    # the probabilities are those of the scores
    odds = model.decision_function(X) * (2.0 if model.loss == "exponential" else 1.0)
    odds = odds + (log_odds(TruncatedLogistic(0.1, 0.4).centre) if model.loss == "gray_zone" else 0)
    if n_classes == 2:
        np.testing.assert_allclose(model.predict_proba(X)[:, 1], expit(odds), rtol=1e-12)
    elif parameters:
        share = expit(odds)
        share /= share.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(model.predict_proba(X), share, rtol=1e-12)
    added = model.explain(X).contributions.sum(axis=1) + model.form_.intercept
    np.testing.assert_allclose(added.reshape(odds.shape), odds, rtol=1e-9, atol=1e-12)


def test_what_has_no_probabilities_or_no_coefficients_says_so(tmp_path):
    X, y, _ = problem("plain")
    side = labels(y).astype(int)
    hinge = ConvexRiskClassifier("hinge").fit(X, side)
    assert hinge.form_.link == "identity"
    np.testing.assert_allclose(
        hinge.form_.score(hinge._read_rows(X)).ravel(), hinge.decision_function(X), rtol=1e-9
    )
    with pytest.raises(ValueError, match="gives no probabilities"):
        save(hinge, tmp_path / "model.json")
    bent = ConvexRiskClassifier(kernel="rbf").fit(X, side)
    save(bent, tmp_path / "model.json")
    np.testing.assert_allclose(
        load(tmp_path / "model.json").predict_proba(X), bent.predict_proba(X), atol=1e-12
    )


def test_of_many_best_intercepts_the_middle_is_taken():
    """Columns that say nothing of two equal classes: any intercept from -1 to 1 costs the same."""
    model = ConvexRiskClassifier("hinge").fit([[1.0], [-1.0], [1.0], [-1.0]], [0, 0, 1, 1])
    assert model.intercept_ == pytest.approx(0.0, abs=1e-9)


def test_where_the_engine_leaves_all_numbers_our_own_solver_goes_on_at_once(monkeypatch):
    runs = []

    def beyond(engine, *rest):
        engine.n_iter_ = 1
        runs.append(engine)
        return np.full((3, 3), np.nan)

    monkeypatch.setattr("laconic.convex.solver._run", beyond)
    X, y = np.eye(3)[:, :2], np.arange(3)
    found = solve_joint_logistic(X, y, np.ones(3), C=1.0)
    assert len(runs) == 1
    assert found.gap <= 1e-6 * found.value
