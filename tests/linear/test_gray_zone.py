"""Gray-zone logistic regression: the loss, the estimator, its choice by cost, its displays."""

import importlib.util
import pickle
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from laconic import GrayZoneLogisticRegression, GrayZoneLogisticRegressionCV
from laconic.core.losses import ScoreLoss, TruncatedLogistic, TruncatedMultinomial, fenchel_young
from laconic.displays import SupportShareDisplay, TrueProbabilityDisplay, ZoneCostDisplay

ZONES = [(0.0, 1.0), (0.05, 0.2), (0.0, 0.3), (0.6, 1.0), (0.4, 0.6)]


def draw(n=2000, d=5, seed=0, slope=2.0, base=-1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    p = expit(slope * X[:, 0] + base)
    return X, (rng.random(n) < p).astype(int), p


# -- the loss --------------------------------------------------------------------------------------


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_loss_slope_curvature_and_conjugate_by_brute_force(zone, sign):
    loss = TruncatedLogistic(*zone)
    assert isinstance(loss, ScoreLoss)
    z = np.linspace(-8, 8, 3203)
    y = np.full_like(z, sign)
    # the definition (3): minus the log of the truncated probability of the true class
    p = expit(z)
    told = np.minimum(p, zone[1]) if sign > 0 else np.minimum(1 - p, 1 - zone[0])
    np.testing.assert_allclose(loss.value(z, y), -np.log(told), rtol=1e-10)
    step = 1e-6
    away = np.abs(z - loss.kink(y).position) > 1e-3
    slope = (loss.value(z + step, y) - loss.value(z - step, y)) / (2 * step)
    np.testing.assert_allclose(loss.slope(z, y)[away], slope[away], atol=1e-8)
    bend = (loss.slope(z + step, y) - loss.slope(z - step, y)) / (2 * step)
    np.testing.assert_allclose(loss.curvature(z, y)[away], bend[away], atol=1e-7)
    u = -sign * np.linspace(0.001, 0.999, 41)
    kinks = np.array([t for t in loss.positions if np.isfinite(t)])
    wide = np.append(np.linspace(-30, 30, 60_001), kinks)
    sup = (u[:, None] * wide - loss.value(wide, np.full_like(wide, sign))).max(axis=1)
    np.testing.assert_allclose(loss.conjugate(u, np.full_like(u, sign)), sup, atol=1e-6)
    assert np.isinf(loss.conjugate(np.array([sign * 0.1, -sign * 1.1]), y[:2])).all()


@pytest.mark.parametrize("zone", ZONES)
def test_kink_is_the_jump_of_the_slope(zone):
    loss = TruncatedLogistic(*zone)
    y = np.array([-1.0, 1.0])
    kink = loss.kink(y)
    for i in range(2):
        if np.isinf(kink.position[i]):
            assert kink.jump[i] == 0
            continue
        t = kink.position[i : i + 1]
        np.testing.assert_allclose(loss.slope(t - 1e-9, y[i : i + 1]), kink.low[i], atol=1e-8)
        np.testing.assert_allclose(loss.slope(t + 1e-9, y[i : i + 1]), kink.high[i], atol=1e-8)
        assert loss.slope(t, y[i : i + 1])[0] == pytest.approx(kink.low[i])


@settings(max_examples=200, deadline=None)
@given(
    z=st.floats(-700, 700), a=st.floats(0, 1), sign=st.sampled_from([-1.0, 1.0]),
    zone=st.sampled_from(ZONES),
)  # fmt: skip
def test_compiled_kernels_agree_with_the_loss(z, a, sign, zone):
    from laconic.linear.solvers._numba import evaluate_truncated, excess_truncated, price_truncated

    loss = TruncatedLogistic(*zone)
    z, y, weight = np.array([z]), np.array([sign]), np.array([2.5])
    slope, bend = np.empty(1), np.empty(1)
    total = evaluate_truncated(z, y, weight, *loss.positions, *loss.floors, slope, bend)
    assert total == pytest.approx(2.5 * loss.value(z, y)[0], rel=1e-12)
    assert slope[0] == pytest.approx(2.5 * loss.slope(z, y)[0], rel=1e-12, abs=1e-300)
    assert bend[0] == pytest.approx(2.5 * loss.curvature(z, y)[0], rel=1e-9, abs=1e-300)
    u = np.array([-sign * a])
    ends = (*loss.positions, *loss.heights, *loss.floors)
    price = price_truncated(z, 2.5 * u, y, weight, *ends)
    true = 2.5 * fenchel_young(loss, z, u, y)[0]
    assert price == pytest.approx(true, rel=1e-9, abs=1e-11 * (1 + abs(z[0])))
    excess = excess_truncated(z, y, weight, *loss.positions, a, a)
    shrunk = 2.5 * fenchel_young(loss, z, a * loss.slope(z, y), y)[0]
    if abs(z[0]) < 30:
        assert excess == pytest.approx(shrunk, rel=1e-7, abs=1e-11 * (1 + abs(z[0])))


def test_centre_of_a_zone():
    assert TruncatedLogistic(0.048, 0.158).centre == pytest.approx(
        expit((logit(0.048) + logit(0.158)) / 2)
    )
    assert TruncatedLogistic().centre == 0.5
    assert TruncatedLogistic(0, 0.3).centre == pytest.approx(0.15)


def test_multinomial_loss_by_differences():
    rng = np.random.default_rng(0)
    loss = TruncatedMultinomial((0.5, 0.7, 1.0))
    F, y = rng.normal(size=(200, 3)) * 2, rng.integers(0, 3, 200)
    p = np.exp(F) / np.exp(F).sum(axis=1, keepdims=True)
    told = np.minimum(p[np.arange(200), y], np.array(loss.caps)[y])
    np.testing.assert_allclose(loss.value(F, y), -np.log(told), rtol=1e-10)
    away = np.abs(loss.kink_height(F, y)) > 1e-3
    for k in range(3):
        step = np.zeros(3)
        step[k] = 1e-6
        slope = (loss.value(F + step, y) - loss.value(F - step, y)) / 2e-6
        np.testing.assert_allclose(loss.slope(F, y)[away, k], slope[away], atol=1e-8)
        bend = (loss.slope(F + step, y) - loss.slope(F - step, y)) / 2e-6
        np.testing.assert_allclose(loss.curvature(F, y)[away, :, k], bend[away], atol=1e-7)
    # Fenchel's inequality, tight at the row's own slope
    u, share = loss.slope(F, y), loss.share(F, y)
    price = loss.value(F, y) + loss.conjugate(u, share, y) - (u * F).sum(axis=1)
    np.testing.assert_allclose(price[away], 0, atol=1e-12)
    other = rng.permutation(200)
    same = y[other] == y
    price = loss.value(F[other], y) + loss.conjugate(u, share, y) - (u * F[other]).sum(axis=1)
    assert (price[same] >= -1e-12).all()


# -- the estimator ---------------------------------------------------------------------------------


def test_full_zone_is_scikit_learns_model():
    X, y, _ = draw()
    weight = np.random.default_rng(1).uniform(0.2, 2.0, len(y))
    options = {"C": 0.3, "class_weight": "balanced"}
    peer = LogisticRegression(solver="newton-cholesky", tol=1e-10, **options).fit(X, y, weight)
    ours = GrayZoneLogisticRegression(tol=1e-10, **options).fit(X, y, weight)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-6)
    np.testing.assert_array_equal(ours.predict(X), peer.predict(X))


def test_full_zone_of_many_classes_is_scikit_learns_model():
    X, _, _ = draw(600)
    rng = np.random.default_rng(3)
    y = (X @ rng.normal(size=(5, 4)) + rng.gumbel(size=(600, 4))).argmax(axis=1)
    peer = LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(X, y)
    ours = GrayZoneLogisticRegression(tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-6)


def test_attributes_belong_together():
    X, y, _ = draw()
    weight = np.where(np.arange(len(y)) % 7 == 0, 0.0, 1.5)
    model = GrayZoneLogisticRegression(zone=(0.1, 0.4), C=2.0, tol=1e-10).fit(X, y, weight)
    assert model.duality_gap_ <= 1e-10 * model.objective_
    np.testing.assert_array_equal(model.support_, np.flatnonzero(model.partition_))
    assert (model.partition_[weight == 0] == 0).all()
    np.testing.assert_allclose(model.dual_coef_ @ X[model.support_], model.coef_, atol=1e-5)
    # without the rows of I_0, nothing changes
    few = model.support_
    again = GrayZoneLogisticRegression(zone=(0.1, 0.4), C=2.0, tol=1e-10)
    again.fit(X[few], y[few], weight[few])
    np.testing.assert_allclose(again.coef_, model.coef_, atol=1e-5)
    assert 0 < (model.partition_ == 1).sum() <= X.shape[1] + 1


def test_threshold_is_the_centre_or_given_and_decides():
    X, y, _ = draw()
    model = GrayZoneLogisticRegression(zone=(0.05, 0.2)).fit(X, y)
    p = model.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(model.predict(X), (p > model.threshold_).astype(int))
    assert model.threshold_ == pytest.approx(expit((logit(0.05) + logit(0.2)) / 2))
    np.testing.assert_array_equal(model.decision_function(X) > 0, model.predict(X) == 1)
    np.testing.assert_array_equal(model.in_zone(X), (p >= 0.05) & (p <= 0.2))
    other = GrayZoneLogisticRegression(zone=(0.05, 0.2), threshold=0.06).fit(X, y)
    assert other.predict(X).sum() > model.predict(X).sum()
    clipped = other.set_params(proba="clip").predict_proba(X)
    assert clipped[:, 1].min() == 0.05
    np.testing.assert_allclose(clipped.sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"zone": (0.3, 0.2)}, "0 <= p_min < p_max <= 1"),
        ({"zone": (-0.1, 0.2)}, "0 <= p_min < p_max <= 1"),
        ({"zone": (0.1, 1.2)}, "0 <= p_min < p_max <= 1"),
        ({"zone": (0.1, 0.2, 0.3)}, "zone must be a pair"),
        ({"zone": 0.3}, "one cap for two classes"),
        ({"C": 0.0}, "'C' parameter"),
        ({"C": -1.0}, "'C' parameter"),
        ({"zone": (0.1, 0.2), "threshold": 0.5}, r"threshold=0.5 lies outside the zone"),
    ],
)
def test_bad_parameters_of_two_classes(options, message):
    X, y, _ = draw(100)
    with pytest.raises(ValueError, match=message):
        GrayZoneLogisticRegression(**options).fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"zone": (0.5, 0.5, 0.5, 0.5)}, "zone holds 4 caps but y has 3 classes"),
        ({"zone": (0.5, 0.0, 0.5)}, r"every cap must lie in \(0, 1\]"),
        ({"zone": (0.1, 0.4), "multi_class": "multinomial"}, "zone holds 2 caps"),
        ({"zone": 0.8, "threshold": 0.5}, "threshold is for two classes"),
        ({"proba": "clip"}, "proba='clip' is for two classes"),
        ({"multi_class": "multinomial", "solver": "paper"}, "use multi_class='ovr'"),
    ],
)
def test_bad_parameters_of_many_classes(options, message):
    X, _, _ = draw(90)
    with pytest.raises(ValueError, match=message):
        GrayZoneLogisticRegression(**options).fit(X, np.arange(90) % 3)


def test_columns_that_are_not_numbers_are_named():
    X, y, _ = draw(60, d=2)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(colour="red")
    with pytest.raises(ValueError, match="'colour' is categorical"):
        GrayZoneLogisticRegression().fit(frame, y)
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame.loc[3, "b"] = np.nan
    with pytest.raises(ValueError, match="'b' has missing values"):
        GrayZoneLogisticRegression().fit(frame, y)


@pytest.mark.parametrize("zone", [(0.0, 1.0), (0.2, 0.6)])
@pytest.mark.parametrize("solver", ["auto", "newton-cg"])
def test_csr_agrees_with_dense(zone, solver):
    X, y, _ = draw(800)
    X[np.abs(X) < 0.8] = 0.0
    dense = GrayZoneLogisticRegression(zone=zone, tol=1e-9).fit(X, y)
    sparse = GrayZoneLogisticRegression(zone=zone, tol=1e-9, solver=solver)
    sparse.fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-3)
    np.testing.assert_allclose(sparse.objective_, dense.objective_, rtol=1e-8)
    np.testing.assert_array_equal(sparse.predict(sp.csr_matrix(X)), sparse.predict(X))
    wide = GrayZoneLogisticRegression(zone=(0.2, 0.8), C=0.1)
    wide.fit(sp.random(300, 3000, 0.01, format="csr", random_state=0), y[:300])
    assert wide.duality_gap_ <= 1e-6 * wide.objective_


def test_wide_dense_tables_use_no_square_matrix():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 2500)), np.arange(120) % 2
    tracemalloc.start()
    model = GrayZoneLogisticRegression(zone=(0.2, 0.8), C=0.01).fit(X, y)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert model.duality_gap_ <= 1e-6 * model.objective_
    assert most < 8.0 * 2500**2


def test_one_against_rest_is_one_fit_per_class():
    X, _, _ = draw(500)
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.3 * X[:, 1], (-0.5, 0.7))]
    zone = (0.2, 0.7)
    model = GrayZoneLogisticRegression(zone=zone).fit(X, y)
    assert model.partition_.shape == (500, 3)
    total = 0.0
    for k, label in enumerate("abc"):
        one = GrayZoneLogisticRegression(zone=zone).fit(X, y == label)
        np.testing.assert_allclose(model.coef_[k], one.coef_[0], atol=1e-9)
        total += one.objective_
    assert model.objective_ == pytest.approx(total)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    best = model.classes_[model.decision_function(X).argmax(axis=1)]
    np.testing.assert_array_equal(model.predict(X), best)


def test_caps_per_class():
    X, _, _ = draw(500)
    y = np.digitize(X[:, 0] + 0.3 * X[:, 1], (-0.5, 0.7))
    model = GrayZoneLogisticRegression(zone=(0.6, 0.8, 1.0), tol=1e-9).fit(X, y)
    assert model.partition_.shape == (500, 1)
    assert (model.partition_[y == 2] == 2).all()
    assert (model.partition_[y == 0] == 0).any()
    np.testing.assert_allclose(model.dual_coef_ @ X[model.support_], model.coef_, atol=1e-4)
    p = model.predict_proba(X)
    np.testing.assert_array_equal(model.in_zone(X), (p <= (0.6, 0.8, 1.0)).all(axis=1))


def test_warm_start_saves_iterations():
    X, y, _ = draw(3000)
    model = GrayZoneLogisticRegression(zone=(0.1, 0.4), warm_start=True).fit(X, y)
    first = model.n_iter_[0]
    again = model.set_params(C=1.1).fit(X, y)
    assert again.n_iter_[0] < first


def test_the_paper_solver_reports_its_true_gap():
    X, y, _ = draw()
    exact = GrayZoneLogisticRegression(zone=(0.1, 0.4), tol=1e-10).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="certified within"):
        paper = GrayZoneLogisticRegression(zone=(0.1, 0.4), solver="paper", max_iter=20).fit(X, y)
    assert 0 <= paper.objective_ - exact.objective_ <= paper.duality_gap_
    plain = GrayZoneLogisticRegression(solver="paper").fit(X, y)
    assert plain.duality_gap_ <= 1e-6 * plain.objective_


def test_memory_stays_below_half_again_the_table():
    X, y, _ = draw(40_000, d=30)
    GrayZoneLogisticRegression(zone=(0.05, 0.2)).fit(X[:5000], y[:5000])  # compile
    tracemalloc.start()
    GrayZoneLogisticRegression(zone=(0.05, 0.2)).fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.5 * X.nbytes


def test_recalibration_works_on_top():
    """The zone flattens the slope: probabilities are off inside it, and can be put right."""
    X, y, _ = draw(20_000, slope=2.0, base=-1.0)
    X_test, _, p_test = draw(20_000, seed=1)
    raw = GrayZoneLogisticRegression(zone=(0.2, 0.4)).fit(X, y)
    fixed = CalibratedClassifierCV(
        GrayZoneLogisticRegression(zone=(0.2, 0.4)), method="sigmoid", cv=3
    ).fit(X, y)
    inside = (p_test > 0.1) & (p_test < 0.6)
    error = np.abs(raw.predict_proba(X_test)[:, 1] - p_test)[inside].mean()
    after = np.abs(fixed.predict_proba(X_test)[:, 1] - p_test)[inside].mean()
    assert error > 0.05
    assert after < 0.02
    # the decision at the threshold is right all the same
    wrong = (raw.predict_proba(X_test)[:, 1] > raw.threshold_) != (p_test > raw.threshold_)
    assert wrong.mean() < 0.03


# -- choice by cost --------------------------------------------------------------------------------


def test_cross_validated_choice_is_the_least_cost_of_its_table():
    X, y, _ = draw(1500)
    model = GrayZoneLogisticRegressionCV(costs={"fp": 1, "fn": 6}, Cs=[0.01, 1.0]).fit(X, y)
    table = model.cv_results_
    assert len(table["C"]) == 10
    assert table["mean_cost"][model.best_index_] == table["mean_cost"].min()
    assert (model.zone_[0], model.zone_[1]) == (
        table["p_min"][model.best_index_],
        table["p_max"][model.best_index_],
    )
    assert model.zone_[0] <= model.threshold_ <= model.zone_[1]
    np.testing.assert_array_equal(model.predict(X), model.best_estimator_.predict(X))
    p = model.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(model.predict(X), (p > model.threshold_).astype(int))


def test_cross_validated_cost_is_what_the_folds_cost():
    """One setting, fixed threshold: the mean cost recomputed fold by fold."""
    X, y, _ = draw(900)
    folds = [(np.flatnonzero(np.arange(900) % 3 != k), np.arange(k, 900, 3)) for k in range(3)]
    model = GrayZoneLogisticRegressionCV(
        zones=[(0.1, 0.5)], Cs=[0.5], costs={"fp": 1, "fn": 4}, cv=folds, choose_threshold=False
    ).fit(X, y)
    paid = []
    for train, test in folds:
        one = GrayZoneLogisticRegression(zone=(0.1, 0.5), C=0.5 * 1.5, threshold=0.2)
        decided = one.fit(X[train], y[train]).predict(X[test])
        paid.append(np.where(y[test] == 1, 4 * (decided == 0), 1 * (decided == 1)).mean())
    assert model.cv_results_["mean_cost"][0] == pytest.approx(np.mean(paid))
    error = np.std(paid, ddof=1) / np.sqrt(3)
    assert model.cv_results_["standard_error"][0] == pytest.approx(error)


def test_one_standard_error_prefers_fewer_rows():
    X, y, _ = draw(1500)
    options = {"costs": {"fp": 1, "fn": 6}, "Cs": [0.01, 1.0]}
    best = GrayZoneLogisticRegressionCV(**options).fit(X, y)
    small = GrayZoneLogisticRegressionCV(selection="1se", **options).fit(X, y)
    table = small.cv_results_
    bound = table["mean_cost"].min() + table["standard_error"][table["mean_cost"].argmin()]
    near = table["mean_cost"] <= bound
    chosen = table["support_share"][small.best_index_]
    assert chosen == table["support_share"][near].min()
    assert chosen <= best.cv_results_["support_share"][best.best_index_]


def test_choice_refuses_what_it_cannot_do():
    X, y, _ = draw(90)
    with pytest.raises(ValueError, match="Only binary classification"):
        GrayZoneLogisticRegressionCV().fit(X, np.arange(90) % 3)
    with pytest.raises(ValueError, match="Cs must hold positive"):
        GrayZoneLogisticRegressionCV(Cs=[0.0]).fit(X, y)
    with pytest.raises(ValueError, match="outside the zone"):
        GrayZoneLogisticRegressionCV(zones=[(0.1, 0.2)], choose_threshold=False).fit(X, y)
    with pytest.raises(ValueError, match="zones is empty"):
        GrayZoneLogisticRegressionCV(zones=[]).fit(X, y)


def test_pickles_are_small_and_equal():
    X, y, _ = draw(500)
    model = GrayZoneLogisticRegression(zone=(0.1, 0.4)).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))


# -- displays and example --------------------------------------------------------------------------


def test_cost_display_draws_both_models():
    X, y, _ = draw(800)
    models = {
        "plain": GrayZoneLogisticRegression().fit(X, y),
        "gray zone": GrayZoneLogisticRegression(zone=(0.1, 0.3)).fit(X, y),
    }
    display = ZoneCostDisplay.from_estimator(models, X, y, {"fp": 1, "fn": 5}).plot()
    assert display.zone == (0.1, 0.3)
    for name, line in zip(models, display.lines_, strict=True):
        p = models[name].predict_proba(X)[:, 1]
        at = 0.17
        cost = np.where(y == 1, 5 * (p <= at), 1 * (p > at)).mean()
        assert display.curves[name].cost_at(at) == pytest.approx(cost)
        np.testing.assert_array_equal(line.get_ydata(), display.curves[name].costs)
    assert set(display.frame()["model"]) == set(models)


def test_true_probability_display_shows_the_flattening():
    X, y, _ = draw(5000)
    X_test, _, p_test = draw(5000, seed=1)
    plain = GrayZoneLogisticRegression().fit(X, y)
    gray = GrayZoneLogisticRegression(zone=(0.2, 0.4)).fit(X, y)
    straight = TrueProbabilityDisplay.from_estimator(plain, X_test, p_test).plot()
    flat = TrueProbabilityDisplay.from_estimator(gray, X_test, p_test).plot()
    assert np.abs(straight.median - straight.truth).max() < 0.08
    np.testing.assert_array_equal(flat.line_.get_ydata(), flat.median)
    assert (flat.high >= flat.low).all()
    assert np.ptp(flat.median) < 0.6 * np.ptp(straight.median)
    assert flat.zone == (0.2, 0.4)
    assert list(flat.frame().columns) == ["truth", "low", "median", "high"]


def test_support_display_falls_with_the_zone():
    X, y, _ = draw(1500)
    zones = [(0.0, 1.0), (0.02, 0.9), (0.1, 0.6), (0.2, 0.4)]
    display = SupportShareDisplay.from_estimator(GrayZoneLogisticRegression(), X, y, zones).plot()
    assert display.shares[0] == 1.0
    assert (np.diff(display.shares) < 0).all()
    np.testing.assert_allclose(display.line_.get_ydata(), 100 * display.shares[:0:-1])
    assert list(display.frame()["p_min"]) == [0.0, 0.02, 0.1, 0.2]


def boosted_trees_example():
    pytest.importorskip("xgboost")
    path = Path(__file__).parents[2] / "examples" / "gray_zone_xgboost.py"
    spec = importlib.util.spec_from_file_location("gray_zone_xgboost", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return example


def test_boosted_trees_example_runs_and_is_no_worse_than_chance():
    example = boosted_trees_example()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = example.compare(n=4000, rounds=20)
    share = example.draw(4000, 1_000)[1].mean()
    always = min(0.91 * share, 0.09 * (1 - share))
    assert found["plain"] < 0.9 * always
    assert found["gray zone"] < 0.9 * always
    assert found["gray zone"] < 1.1 * found["plain"]


def test_gradient_of_the_example_is_the_loss():
    example = boosted_trees_example()
    import xgboost

    loss = TruncatedLogistic(0.1, 0.4)
    label = np.array([0, 1, 0, 1])
    rows = xgboost.DMatrix(np.zeros((4, 1)), label=label)
    z = np.array([-4.0, 4.0, 1.0, -1.0])
    slope, bend = example.objective(loss)(z, rows)
    np.testing.assert_allclose(slope, loss.slope(z, 2.0 * label - 1))
    assert (slope[:2] == 0).all()
    assert (bend > 0).all()
