"""Votes on generated small tables: any scale, weights over decades, constants, many classes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity, polynomial_kernel

from laconic.votes import (
    CBBoostClassifier,
    CGBoostClassifier,
    CqBoostClassifier,
    ForestVoters,
    KernelVoters,
    LPBoostClassifier,
    MinCqClassifier,
    StumpVoters,
)
from laconic.votes.boosting import cg_boost
from laconic.votes.columns import DenseColumns
from laconic.votes.nnls import least_squares_vote, vote_at_mean_margin
from laconic.votes.voters.kernels import KernelMap

MODELS = {
    "CqBoost": CqBoostClassifier(),
    "calibrated": CqBoostClassifier(StumpVoters("midpoints"), mu="bound", proba="calibrated"),
    "slides": CqBoostClassifier(KernelVoters(standardise=False), constraint="slides"),
    "share": CqBoostClassifier("poly", mu=0.5, mu_unit="share"),
    "widths": CqBoostClassifier(KernelVoters(gamma="cv"), cv=2),
    "forest": CqBoostClassifier(ForestVoters(5), proba="calibrated"),
    "MinCq": MinCqClassifier("rbf", mu=1.0, mu_unit="share"),
    "MinCq stumps": MinCqClassifier(),
    "tandem": MinCqClassifier(ForestVoters(5), multi_class="tandem"),
    "LPBoost": LPBoostClassifier(nu=0.4, proba="calibrated"),
    "CG-Boost": CGBoostClassifier(KernelVoters(n_landmarks=4), C=10.0),
    "CB-Boost": CBBoostClassifier("linear", n_rounds=20),
}
REFUSALS = (
    "classes",
    "sample_weight adds up to",
    "Every column is constant",
    "too large for the trees",
)


def column(draw, n, others):
    scale = 10.0 ** draw.uniform(-300, 300) if draw.random() < 0.3 else 1.0
    made = [
        lambda: np.full(n, scale),
        lambda: draw.integers(0, 3, n) * scale,
        lambda: scale * draw.standard_cauchy(n),
        lambda: scale + draw.normal(size=n),
        lambda: scale * draw.normal(size=n),
        lambda: others[0] if others else np.zeros(n),
    ]
    return np.nan_to_num(made[draw.integers(6)](), posinf=1e300, neginf=-1e300)


def table(seed):
    """Rows, classes and weights; every fifth table has more rows."""
    draw = np.random.default_rng(seed)
    n = int(draw.choice([1, 2, 3, 5, 12, 40])) if seed % 5 else 90
    columns: list[np.ndarray] = []
    for _ in range(draw.integers(1, 6)):
        columns.append(column(draw, n, columns))
    n_classes = int(draw.choice([2, 2, 3, 12]))
    weight = [None, 10.0 ** draw.uniform(-12, 12, n), np.full(n, 10.0 ** draw.uniform(-300, 300))]
    return np.column_stack(columns), draw.integers(0, n_classes, n), weight[draw.integers(3)]


@pytest.mark.parametrize("name", MODELS)
def test_every_fit_is_refused_in_words_or_gives_probabilities_and_a_certificate(name):
    fitted = 0
    for seed in range(12):
        X, y, weight = table(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # hopeless voters, gaps that stay open
            try:
                model = MODELS[name].fit(X, y, sample_weight=weight)
            except ValueError as refusal:
                assert any(words in str(refusal) for words in REFUSALS), refusal
                continue
        fitted += 1
        proba = model.predict_proba(X)
        assert ((proba >= 0) & (proba <= 1)).all(), seed
        np.testing.assert_allclose(proba.sum(1), 1.0)
        assert np.isfinite(model.decision_function(X)).all()
        assert ((model.duality_gap_ >= 0) & (model.duality_gap_ < np.inf)).all(), seed
        assert ((model.c_bound_ >= 0) & (model.c_bound_ <= 1)).all()
        assert all(0 <= bound.value <= 1 for bound in model.pac_bayes_bounds())
    assert fitted > 5


@pytest.mark.parametrize("seed", [534, 1110, 2790, 2814])
def test_a_side_taken_without_a_penalty_is_forgotten_under_one(seed):
    """Weights that changed sign while there was no penalty were kept on their former side."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(4, 30))
    draw.integers(4, 40)
    x = np.c_[draw.normal(size=(n, 3)), np.ones(n)]
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    H, y = (x @ x.T) ** 3, np.where(draw.random(n) < 0.5, 1.0, -1.0)
    gram, first = H.T @ H / n, H.T @ y / n
    for part in (0.1, 0.3, 0.5, 0.8):
        found = vote_at_mean_margin(gram, first, part * np.abs(first).max(), sides="both")
        assert found.gap < 1e-9


@pytest.mark.parametrize(("n", "gamma", "seed"), [(200, 0.3, 0), (300, 0.3, 2), (300, 1.0, 2)])
def test_nearly_dependent_voters_do_not_wear_the_factor_out(n, gamma, seed):
    """The steps that settle the weights once grew without end, to 1e184 and to NaN."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(n, 2))
    H = np.exp(-gamma * ((x[:, None] - x[None]) ** 2).sum(-1))
    y = np.where(draw.random(n) < 0.5, 1.0, -1.0)
    found = least_squares_vote(H.T @ H / n, H.T @ y / n, sides="both")
    assert np.abs(found.point).max() < 1e10
    assert 0 <= found.gap < 1e-6


def test_kernels_at_any_scale():
    draw = np.random.default_rng(0)
    Z, centres = draw.normal(size=(6, 3)), draw.normal(size=(4, 3))
    names = tuple("abc")
    for scale in (1e-200, 1e-30, 1e-3, 1e40, 1e200):
        for kernel in ("rbf", "linear", "poly"):
            map_ = KernelMap(names, kernel, 0.5, 3, 1.0, np.zeros(3), np.ones(3))
            values = map_.between(scale * Z, scale * centres)
            assert (np.abs(values) <= 1.0).all()
            same = np.diag(map_.between(scale * Z, scale * Z))
            np.testing.assert_allclose(same, 1.0)
        linear = KernelMap(names, "linear", 0.5, 3, 1.0, np.zeros(3), np.ones(3))
        np.testing.assert_allclose(
            linear.between(scale * Z, scale * centres), cosine_similarity(Z, centres)
        )
    plain = polynomial_kernel(Z, centres, degree=3, gamma=0.5, coef0=1.0)
    norm = [np.diag(polynomial_kernel(A, A, degree=3, gamma=0.5, coef0=1.0)) for A in (Z, centres)]
    poly = KernelMap(names, "poly", 0.5, 3, 1.0, np.zeros(3), np.ones(3))
    np.testing.assert_allclose(poly.between(Z, centres), plain / np.sqrt(np.outer(*norm)))


def test_polynomial_kernels_that_are_none_are_refused():
    for params in ({"coef0": -1.0}, {"degree": 0}, {"degree": 1.5}):
        with pytest.raises(ValueError, match="degree must be"):
            CqBoostClassifier(KernelVoters("poly", **params)).fit([[0.0], [1.0]], [0, 1])


def test_cg_boost_of_rows_whose_weights_span_decades():
    """Objectives once ended at 1e21 where 1e10 can be reached."""
    for trial in range(6):
        draw = np.random.default_rng(trial)
        H = np.sign(draw.normal(size=(100, 4)))
        y = np.where(draw.random(100) < 0.5, 1.0, -1.0)
        weight = 10.0 ** draw.uniform(-12, 12, 100)
        found = cg_boost(DenseColumns(H, y, weight), np.arange(4), 1.0, weight)
        assert found.gap <= 0.1 * max(1.0, found.value), trial
    # a hinge that must be kept is kept
    x = np.linspace(-1, 1, 20)[:, None]
    rows = DenseColumns(x, np.sign(x[:, 0]), np.ones(20))
    found = cg_boost(rows, np.arange(1), 1e200, np.ones(20))
    assert found.gap <= 1e-5 * found.value
    assert found.point[0] == pytest.approx(1 / np.abs(x).min())


def test_a_margin_that_is_only_rounding_is_none():
    """A balanced table: the mean margin of "always" was 1e-17, and its certificate infinite."""
    n = 500
    x = np.repeat([0.0, 1.0], n // 2)[:, None]
    y = np.tile([0, 1], n // 2)
    for model in (CBBoostClassifier(), CqBoostClassifier(mu="least-squares")):
        for weight in (None, np.full(n, 0.1)):
            with pytest.warns(UserWarning, match="No voter has a positive mean margin"):
                model.fit(x, y, sample_weight=weight)
            assert np.isfinite(model.duality_gap_).all()
