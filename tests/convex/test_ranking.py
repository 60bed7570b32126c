"""Ranking without pairs against ranking with pairs."""

from __future__ import annotations

import warnings

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import kendalltau
from sklearn import config_context
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.utils import get_tags

import conic
from laconic.convex import PairwiseRanker
from laconic.convex.pair_sums import HingePairs, LogisticPairs, Pairs, SquaredHingePairs
from laconic.convex.ranking import rank_pairs

BAND = 0.3

# value, slope and curvature of each loss of t = f_i - f_j
EXPLICIT = {
    SquaredHingePairs(): (
        lambda t: np.maximum(0, 1 - t) ** 2,
        lambda t: -2 * np.maximum(0, 1 - t),
        lambda t: 2.0 * (t < 1),
    ),
    HingePairs(BAND): (
        lambda t: np.maximum(0, 1 - t),
        lambda t: -np.clip((1 + BAND / 2 - t) / BAND, 0, 1),
        lambda t: ((t < 1 + BAND / 2) & (t >= 1 - BAND / 2)) / BAND,
    ),
    LogisticPairs(): (
        lambda t: np.logaddexp(0, -t),
        lambda t: -expit(-t),
        lambda t: expit(t) * expit(-t),
    ),
}


def random_rows(seed: int):
    draw = np.random.default_rng(seed)
    n = int(draw.integers(2, 40))
    y = np.round(draw.normal(size=n), int(draw.integers(0, 3)))
    weight = draw.integers(1, 4, n).astype(float)
    groups = draw.integers(0, 3, n) if seed % 2 else None
    f = draw.normal(size=n) * 10 ** draw.uniform(-1, 2)
    return draw, y, weight, groups, np.round(f) if seed % 3 == 0 else f


def pair_weights(y, weight, groups) -> np.ndarray:
    together = np.ones((len(y), len(y)), bool)
    if groups is not None:
        together = groups[:, None] == groups[None]
    return together * (y[:, None] > y[None]) * weight[:, None] * weight[None]


@pytest.mark.parametrize("loss", EXPLICIT, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("seed", range(30))
def test_sums_equal_those_over_explicit_pairs(loss, seed):
    draw, y, weight, groups, f = random_rows(seed)
    W = pair_weights(y, weight, groups)
    value, slope, bend = EXPLICIT[loss]
    T = f[:, None] - f[None]
    at = Pairs.of(y, weight, groups).sort(f)
    size = 1e-12 * (1 + np.sum(W * value(T)))
    assert loss.value(at) == pytest.approx(np.sum(W * value(T)), abs=size)
    G = W * slope(T)
    np.testing.assert_allclose(loss.slope(at), G.sum(1) - G.sum(0), atol=size)
    H = W * bend(T)
    H = H + H.T
    U = draw.normal(size=(len(y), 2))
    # the logistic Laplacian is allowed to be a little off: it only steers Newton's method
    slack = 1e-2 * np.abs(H).sum() if isinstance(loss, LogisticPairs) else 10 * size
    np.testing.assert_allclose(
        loss.laplacian(at, U), H.sum(1)[:, None] * U - H @ U, atol=slack + 1e-12
    )
    misfit = np.sum(W * (value(T) + slope(T) - slope(T) * T))
    if isinstance(loss, HingePairs):
        assert loss.misfit(at, loss.slope(at)) == pytest.approx(misfit, abs=10 * size)


@pytest.mark.parametrize("seed", range(6))
def test_total_and_accuracy_count_pairs(seed):
    _, y, weight, groups, f = random_rows(seed)
    W = pair_weights(y, weight, groups)
    pairs = Pairs.of(y, weight, groups)
    assert pairs.total == pytest.approx(W.sum())
    T = f[:, None] - f[None]
    right = np.sum(W * ((T > 0) + 0.5 * (T == 0))) / W.sum()
    assert pairs.accuracy(f) == pytest.approx(right)


def small_problem(seed: int, n: int = 30, d: int = 4):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n, d))
    y = np.round(X @ draw.normal(size=d) + draw.normal(size=n), 1)
    return X, y, draw.integers(1, 4, n).astype(float), draw.integers(0, 3, n)


def explicit_pairs(X, y, weight, groups):
    W = pair_weights(y, weight, groups)
    i, j = np.nonzero(W)
    return X[i] - X[j], W[i, j]


def explicit_optimum(loss: str, D: np.ndarray, s: np.ndarray, C: float) -> float:
    if loss == "hinge":
        n, d = D.shape
        P = sp.diags_array(np.r_[np.ones(d), np.zeros(n)]).tocsc()
        A = sp.block_array([[-sp.csr_array(D), -sp.eye_array(n)], [None, -sp.eye_array(n)]])
        b = np.r_[-np.ones(n), np.zeros(n)]
        cones = [clarabel.NonnegativeConeT(2 * n)]
        return conic._solve(P, np.r_[np.zeros(d), C * s], sp.csc_array(A), b, cones).obj_val
    key = SquaredHingePairs() if loss == "squared_hinge" else LogisticPairs()
    value, slope, _ = EXPLICIT[key]

    def objective(w):
        t = D @ w
        return w @ w / 2 + C * s @ value(t), w + C * D.T @ (s * slope(t))

    options = {"maxiter": 10_000, "ftol": 1e-15, "gtol": 1e-10}
    return minimize(
        objective, np.zeros(D.shape[1]), jac=True, method="L-BFGS-B", options=options
    ).fun


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "logistic"])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("grouped", [False, True])
def test_optimum_is_that_of_the_explicit_pairs(loss, seed, grouped):
    X, y, weight, groups = small_problem(seed)
    groups = groups if grouped else None
    C = [0.01, 0.1, 1.0][seed % 3]
    best = explicit_optimum(loss, *explicit_pairs(X, y, weight, groups), C)
    ours = PairwiseRanker(loss=loss, C=C, tol=1e-7).fit(X, y, weight, groups)
    assert ours.objective_ == pytest.approx(best, rel=1e-6)
    assert ours.objective_ - ours.duality_gap_ <= best * (1 + 1e-8)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "logistic"])
def test_the_gap_holds_wherever_the_optimiser_stops(loss):
    for seed in range(10):
        X, y, weight, groups = small_problem(seed)
        best = explicit_optimum(loss, *explicit_pairs(X, y, weight, groups), 0.3)
        pairs = Pairs.of(y, weight, groups)
        for max_iter in (1, 2, 4):
            found = rank_pairs(X, pairs, loss, 0.3, tol=1e-12, max_iter=max_iter)
            assert best * (1 - 1e-8) <= found.value <= best * (1 + 1e-8) + found.gap


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "logistic"])
def test_csr_rows_rank_alike(loss):
    X, y, weight, _ = small_problem(0, n=200, d=6)
    X = np.where(np.abs(X) < 0.7, 0.0, X)
    dense = PairwiseRanker(loss=loss, C=0.01, tol=1e-8).fit(X, y, weight)
    thin = PairwiseRanker(loss=loss, C=0.01, tol=1e-8).fit(sp.csr_array(X), y, weight)
    assert thin.objective_ == pytest.approx(dense.objective_, rel=1e-7)


def test_auc_is_that_of_the_best_of_logistic_regression_and_explicit_pairs():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(3000, 8))
    y = (X[:, 0] - X[:, 1] + draw.normal(size=3000) > 2.2).astype(float)
    train, test = slice(0, 600), slice(600, None)
    D, s = explicit_pairs(X[train], y[train], np.ones(600), None)
    w = minimize(
        lambda w: (w @ w / 2 + s @ np.logaddexp(0, -D @ w), w - D.T @ (s * expit(-D @ w))),
        np.zeros(8),
        jac=True,
        method="L-BFGS-B",
    ).x
    best = max(
        roc_auc_score(
            y[test], LogisticRegression().fit(X[train], y[train]).decision_function(X[test])
        ),
        roc_auc_score(y[test], X[test] @ w),
    )
    for loss in ("squared_hinge", "hinge", "logistic"):
        ranker = PairwiseRanker(loss=loss).fit(X[train], y[train])
        auc = roc_auc_score(y[test], ranker.predict(X[test]))
        assert auc > best - 0.002, loss
        assert ranker.score(X[test], y[test]) == pytest.approx(auc)


def test_real_valued_targets_are_ranked():
    draw = np.random.default_rng(1)
    X = draw.normal(size=(2000, 3))
    y = np.exp(X @ [1.0, 2.0, 0.0] + 0.5 * draw.normal(size=2000))
    ranker = PairwiseRanker().fit(X, y)
    tau = kendalltau(ranker.predict(X), y).statistic
    assert 2 * ranker.score(X, y) - 1 == pytest.approx(tau, abs=1e-9)
    assert tau > 0.8


def test_groups_are_not_compared_with_each_other():
    draw = np.random.default_rng(2)
    X = draw.normal(size=(300, 2))
    groups = np.repeat(np.arange(30), 10)
    # the level of a group misleads whoever compares groups
    X[:, 1] += groups
    y = X[:, 0] + 0.1 * draw.normal(size=300) - groups
    ranker = PairwiseRanker().fit(X, y, groups=groups)
    assert ranker.score(X, y, groups=groups) > 0.9
    assert ranker.coef_[0] > 10 * abs(ranker.coef_[1])
    assert PairwiseRanker().fit(X, y).score(X, y, groups=groups) < 0.8


def test_nothing_to_rank_is_said():
    with pytest.raises(ValueError, match="no pair to learn from"):
        PairwiseRanker().fit(np.eye(3), [1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="no pair to learn from"):
        PairwiseRanker().fit(np.eye(3), [1.0, 2.0, 3.0], groups=[0, 1, 2])


def test_it_says_what_it_is_and_takes_its_groups_by_routing():
    ranker = PairwiseRanker()
    assert get_tags(ranker).estimator_type == "ranker"
    assert get_tags(ranker).target_tags.required
    assert not is_classifier(ranker)
    assert not is_regressor(ranker)
    draw = np.random.default_rng(0)
    X, groups = draw.normal(size=(60, 2)), np.repeat(np.arange(12), 5)
    y = X[:, 0] + 10 * groups
    with config_context(enable_metadata_routing=True):
        ranker = PairwiseRanker().set_fit_request(groups=True).set_score_request(groups=True)
        found = cross_validate(
            ranker, X, y, cv=GroupKFold(3), params={"groups": groups}, return_estimator=True
        )
    assert found["test_score"].min() > 0.95  # without groups, X says nothing of most pairs
    for fold, (train, _) in enumerate(GroupKFold(3).split(X, y, groups)):
        alone = PairwiseRanker().fit(X[train], y[train], groups=groups[train])
        np.testing.assert_array_equal(found["estimator"][fold].coef_, alone.coef_)


def test_columns_of_very_different_size_are_ranked():
    """Rounding made the diagonal of the Hessian negative: eigenvalues did not converge."""
    draw = np.random.default_rng(19)
    flag = draw.integers(0, 2, 40).astype(float)
    X = np.column_stack([flag, np.exp(50 * draw.normal(size=40)), flag])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = PairwiseRanker().fit(X, draw.integers(0, 3, 40).astype(float))
    assert np.isfinite(model.coef_).all()
    assert model.duality_gap_ >= 0
