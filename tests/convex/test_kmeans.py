"""k-means: exact on a line, and the number of groups."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from laconic.convex import KMeansK
from laconic.convex.kmeans import KMeansPath, bic_path, choose_k, kmeans_1d, kmeans_1d_path
from laconic.displays import KPathDisplay


def brute_force(x: np.ndarray, weight: np.ndarray, k: int) -> float:
    """Every way to cut the sorted points in k intervals."""
    order = np.argsort(x)
    x, weight = x[order], weight[order]
    best = np.inf
    for inner in itertools.combinations(range(1, len(x)), k - 1):
        cost = 0.0
        for a, b in itertools.pairwise([0, *inner, len(x)]):
            mean = np.average(x[a:b], weights=weight[a:b])
            cost += weight[a:b] @ (x[a:b] - mean) ** 2
        best = min(best, cost)
    return best


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(-20, 20), st.integers(1, 5)), min_size=1, max_size=9))
def test_line_is_exact_for_every_k(rows):
    x = np.array([a for a, _ in rows], dtype=float)
    weight = np.array([b for _, b in rows], dtype=float)
    path = kmeans_1d_path(x, weight, 5)
    assert len(path.centers) == min(5, len(np.unique(x)))
    for k in range(1, len(path.centers) + 1):
        assert path.distortion[k - 1] == pytest.approx(brute_force(x, weight, k), abs=1e-9)
        centers = path.centers[k - 1]
        assert len(centers) == k
        nearest = np.searchsorted(path.cuts(k), x)
        cost = weight @ (x - centers[nearest]) ** 2
        assert cost == pytest.approx(path.distortion[k - 1], abs=1e-9)


def test_line_is_never_worse_than_scikit_learn():
    draw = np.random.default_rng(0)
    for seed in range(5):
        x = draw.gamma(0.7, size=500)
        path = kmeans_1d_path(x, None, 8)
        for k in (3, 8):
            peer = KMeans(k, n_init=5, random_state=seed).fit(x[:, None]).inertia_
            assert path.distortion[k - 1] <= peer * (1 + 1e-12)


def test_line_weights_are_repetitions_and_order_is_free():
    draw = np.random.default_rng(1)
    x, weight = draw.normal(size=60), draw.integers(0, 4, 60)
    centers, cuts = kmeans_1d(x, weight, 4)
    again, cuts_again = kmeans_1d(draw.permutation(np.repeat(x, weight)), None, 4)
    np.testing.assert_allclose(centers, again, rtol=1e-12)
    np.testing.assert_allclose(cuts, cuts_again, rtol=1e-12)


def test_line_at_the_edges_of_floats():
    centers, cuts = kmeans_1d([1.7e308, -1.7e308], None, 2)
    np.testing.assert_array_equal(centers, [-1.7e308, 1.7e308])
    np.testing.assert_array_equal(cuts, [0.0])
    centers, _ = kmeans_1d([1e8, 1e8 + 1, 1e8 + 50], None, 2)
    np.testing.assert_allclose(centers, [1e8 + 0.5, 1e8 + 50])
    centers, cuts = kmeans_1d([3.0, 3.0], None, 2)
    assert centers.tolist() == [3.0]
    assert cuts.size == 0


@pytest.mark.parametrize(
    ("values", "weights", "k", "why"),
    [
        ([1.0, np.nan], None, 1, "missing"),
        ([1.0], [-1.0], 1, "not negative"),
        ([1.0], [0.0], 1, "positive weight"),
        ([1.0, 2.0], [1.0], 1, "shape"),
        ([1.0], None, 0, "at least 1"),
    ],
)
def test_line_refuses_in_words(values, weights, k, why):
    with pytest.raises(ValueError, match=why):
        kmeans_1d(values, weights, k)


def gaussians(K: int, seed: int, d: int = 2) -> np.ndarray:
    """K round gaussians of width 1 with centres at least 8 apart, of unequal sizes."""
    draw = np.random.default_rng([K, seed])
    centers: list[np.ndarray] = []
    while len(centers) < K:
        center = draw.uniform(-20, 20, d)
        if all(np.linalg.norm(center - other) >= 8 for other in centers):
            centers.append(center)
    sizes = draw.integers(40, 120, K)
    return np.concatenate(
        [draw.normal(c, 1.0, (n, d)) for c, n in zip(centers, sizes, strict=True)]
    )


@pytest.mark.parametrize("criterion", ["bic", "slope"])
def test_finds_the_number_of_separated_gaussians(criterion):
    found = [
        KMeansK(
            criterion=criterion,
            k_max=16 if criterion == "slope" else 10,
            n_init=1,
            random_state=seed,
        )
        .fit(gaussians(K, seed))
        .k_
        == K
        for K in range(2, 9)
        for seed in range(20)
    ]
    assert np.mean(found) >= 0.9


def test_without_the_cost_of_naming_groups_bic_never_stops():
    """The plain n d log J + K (d + 1) log n cuts every gaussian in two."""
    X = gaussians(3, 0)
    model = KMeansK(random_state=0).fit(X)
    n, d = X.shape
    k = model.k_values_
    plain = n * d * np.log(model.distortion_path_ / (n * d)) + k * (d + 1) * np.log(n)
    assert model.k_ == 3
    assert k[np.argmin(plain)] > 3


def test_path_is_no_worse_than_scikit_learn_and_decreases():
    X = gaussians(5, 3)
    model = KMeansK(k_max=8, n_init=10, random_state=0).fit(X)
    assert np.all(np.diff(model.distortion_path_) < 0)
    # above the true number starts differ by a few percent, on either side
    for k, slack in ((2, 1e-9), (5, 1e-9), (8, 0.05)):
        peer = KMeans(k, n_init=10, random_state=1).fit(X).inertia_
        assert model.distortion_path_[k - 1] <= (1 + slack) * peer
    labels = model.labels_
    means = np.array([X[labels == g].mean(axis=0) for g in range(model.k_)])
    np.testing.assert_allclose(means, model.cluster_centers_, atol=1e-6)
    np.testing.assert_allclose(
        model.transform(X).min(axis=1) ** 2 @ np.ones(len(X)), model.inertia_
    )


def test_one_column_is_solved_exactly():
    x = np.random.default_rng(0).gamma(0.5, size=200)
    model = KMeansK(k_max=6).fit(x[:, None])
    np.testing.assert_allclose(model.distortion_path_, kmeans_1d_path(x, None, 6).distortion)


def test_bic_is_the_likelihood_of_its_gaussians():
    """Against -2 log-likelihood with normal densities written out."""
    from scipy.stats import norm

    X = gaussians(2, 0)
    model = KMeansK(k_max=3, random_state=0).fit(X)
    n, d = X.shape
    for k in (1, 2, 3):
        centers = model.centers_path_[k - 1]
        group = ((X[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
        width = np.sqrt(model.distortion_path_[k - 1] / (n * d))
        share = np.bincount(group) / n
        likelihood = norm.logpdf(X, centers[group], width).sum() + np.log(share[group]).sum()
        constant = n * d * (1 + np.log(2 * np.pi))
        expected = -2 * likelihood - constant + k * (d + 1) * np.log(n)
        assert model.criterion_path_[k - 1] == pytest.approx(expected)


def test_a_perfect_fit_counts_only_with_repeated_rows():
    three = np.repeat([[0.0, 0.0], [1.0, 5.0], [9.0, 2.0]], 10, axis=0)
    assert KMeansK(random_state=0).fit(three).k_ == 3
    few = np.random.default_rng(0).normal(size=(6, 2))
    assert KMeansK(random_state=0).fit(few).k_ < 6
    path = KMeansPath(
        (np.zeros((1, 1)), np.zeros((2, 1))), np.array([1.0, 0.0]), (np.ones(1), np.ones(2)), (1, 1)
    )
    assert choose_k(bic_path(path, 2.0, 1), path, 2.0) == 1


def test_display_holds_the_path():
    model = KMeansK(k_max=6, random_state=0).fit(gaussians(3, 0))
    shown = KPathDisplay.from_estimator(model).plot()
    np.testing.assert_array_equal(shown.distortion_line_.get_xdata(), np.arange(1, 7))
    np.testing.assert_array_equal(shown.distortion_line_.get_ydata(), model.distortion_path_)
    np.testing.assert_array_equal(shown.criterion_line_.get_ydata(), model.criterion_path_)
    assert shown.chosen_line_.get_xdata()[0] == 3
    frame = shown.frame()
    assert frame["k"][frame["chosen"]].tolist() == [3]
    again = KPathDisplay.from_predictions(model.distortion_path_, model.criterion_path_)
    assert again.chosen == 3
