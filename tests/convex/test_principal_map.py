"""Principal components: the identities, the rules, and what the displays draw."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from laconic.convex import PrincipalMap
from laconic.convex.displays import decision_zones
from laconic.convex.principal_map import kept_components
from laconic.displays import CorrelationCircleDisplay, RowMapDisplay


@pytest.fixture
def X() -> np.ndarray:
    draw = np.random.default_rng(0)
    hidden = draw.normal(size=(120, 3)) * [5.0, 2.0, 1.0]
    return hidden @ draw.normal(size=(3, 7)) + 0.3 * draw.normal(size=(120, 7)) + 10.0


def first_direction(A: np.ndarray) -> np.ndarray:
    """Leading eigenvector of A'A by repeated squaring: no singular value decomposition."""
    M = A.T @ A
    M = M / np.linalg.norm(M)
    for _ in range(60):
        M = M @ M
        M /= np.linalg.norm(M)
    column = M[:, np.argmax(np.diag(M))]
    return column / np.linalg.norm(column)


@pytest.mark.parametrize("standardize", [False, True])
def test_deflation_gives_the_same_components(X, standardize):
    found = PrincipalMap(n_components=None, standardize=standardize).fit(X)
    A = X - X.mean(axis=0)
    if standardize:
        A = A / A.std(axis=0)
    for j, axis in enumerate(found.axes_):
        v = first_direction(A)
        v *= np.sign(v @ axis)
        np.testing.assert_allclose(v, axis, atol=1e-8)
        assert np.linalg.norm(A @ v) == pytest.approx(found.singular_values_[j], rel=1e-9)
        A = A - np.outer(A @ v, v)


def test_is_scikit_learns_pca_on_standardised_columns(X):
    found = PrincipalMap(n_components=3).fit(X)
    peer = PCA(3).fit(StandardScaler().fit_transform(X))
    np.testing.assert_allclose(found.components_, peer.components_, atol=1e-10)
    np.testing.assert_allclose(
        found.transform(X), peer.transform(StandardScaler().fit_transform(X)), atol=1e-10
    )
    np.testing.assert_allclose(
        found.explained_variance_ratio_[:3], peer.explained_variance_ratio_, rtol=1e-10
    )


@pytest.mark.parametrize("standardize", [False, True])
def test_columns_on_the_circle_are_correlations(X, standardize):
    found = PrincipalMap(n_components=None, standardize=standardize).fit(X)
    scores = found.transform(X)
    expected = np.corrcoef(X.T, scores.T)[: X.shape[1], X.shape[1] :]
    np.testing.assert_allclose(found.correlations_, expected, atol=1e-9)
    # on the sphere with all components, in the ball with two
    np.testing.assert_allclose(np.square(found.correlations_).sum(axis=1), 1.0)
    assert np.all(np.square(found.correlations_[:, :2]).sum(axis=1) < 1.0)


def test_principal_variables_are_the_table_seen_from_the_rows(X):
    found = PrincipalMap(n_components=None).fit(X)
    U = found.transform(X) / found.singular_values_
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(found.principal_variables_, Z.T @ U, atol=1e-9)


@pytest.mark.parametrize("standardize", [False, True])
def test_reconstruction_error_is_what_is_announced(X, standardize):
    found = PrincipalMap(standardize=standardize).fit(X)
    unit = X.std(axis=0) if standardize else 1.0
    for k in range(8):
        rebuilt = found.reconstruct(X, k)
        error = np.sum(((X - rebuilt) / unit) ** 2)
        assert error == pytest.approx(found.rank_errors_[k], rel=1e-9, abs=1e-9)
    assert np.linalg.matrix_rank(found.reconstruct(X, 2) - X.mean(axis=0)) == 2
    np.testing.assert_allclose(found.inverse_transform(found.transform(X)), found.reconstruct(X))


def test_no_other_matrix_of_that_rank_is_closer(X):
    found = PrincipalMap(standardize=False).fit(X)
    A = X - X.mean(axis=0)
    draw = np.random.default_rng(1)
    for _ in range(50):
        Q, _ = np.linalg.qr(found.axes_[:2].T + 0.05 * draw.normal(size=(7, 2)))
        assert np.sum((A - A @ Q @ Q.T) ** 2) >= found.rank_errors_[2]


class TestRules:
    def test_broken_stick_pieces_are_the_expected_ones(self):
        """Against sticks broken at random."""
        draw = np.random.default_rng(0)
        cuts = np.sort(draw.random((200_000, 3)), axis=1)
        edges = np.concatenate([np.zeros((len(cuts), 1)), cuts, np.ones((len(cuts), 1))], axis=1)
        pieces = np.sort(np.diff(edges, axis=1), axis=1)[:, ::-1].mean(axis=0)
        for j in range(1, 4):
            share = pieces.copy()
            share[:j] += 0.01
            share[j:] -= 0.01
            assert kept_components(share, "broken_stick") == j

    def test_a_gap_in_the_shares_ends_the_run(self):
        # the third share is above its piece, the second is not
        assert kept_components(np.array([0.60, 0.19, 0.18, 0.03]), "broken_stick") == 1

    def test_others(self):
        share = np.array([0.5, 0.3, 0.15, 0.05])
        assert kept_components(share, 0.8) == 2
        assert kept_components(share, 0.81) == 3
        assert kept_components(share, "kaiser") == 2
        assert kept_components(share, None) == 4
        assert kept_components(share, 3) == 3
        with pytest.raises(ValueError, match="more than the 4 components"):
            kept_components(share, 5)

    def test_three_hidden_directions_are_seen(self, X):
        assert (
            PrincipalMap(n_components="broken_stick", standardize=False).fit(X).n_components_ >= 1
        )
        assert PrincipalMap(n_components=0.99, standardize=False).fit(X).n_components_ == 3


def test_constant_columns_are_nowhere():
    draw = np.random.default_rng(0)
    X = np.column_stack([draw.normal(size=30), np.full(30, 0.1), draw.normal(size=30)])
    found = PrincipalMap().fit(X)
    np.testing.assert_array_equal(found.correlations_[1], 0.0)
    np.testing.assert_allclose(found.reconstruct(X, 2), X)
    flat = PrincipalMap().fit(np.ones((5, 2)))
    assert flat.n_components_ == 1
    np.testing.assert_array_equal(flat.transform(np.ones((5, 2))), 0.0)


def test_map_of_rows_draws_scores_by_label(X):
    found = PrincipalMap().fit(X)
    y = np.where(X[:, 0] > 10, "high", "low")
    y[:3] = "odd"
    shown = RowMapDisplay.from_estimator(found, X, y, axes=(0, 2)).plot()
    scores = found.row_scores(X, 3)[:, [0, 2]]
    for label, points in shown.points_.items():
        np.testing.assert_allclose(points.get_offsets(), scores[y == label])
    assert list(shown.points_)[-1] == "odd"
    assert "component 3" in shown.ax_.get_ylabel()
    assert list(shown.frame()["label"]) == list(y)
    with pytest.raises(ValueError, match="axes must be two components between 0 and 6"):
        RowMapDisplay.from_estimator(found, X, axes=(0, 7))
    assert len(RowMapDisplay.from_estimator(found, X).plot().points_) == 1


def test_zones_by_hand():
    zones = decision_zones(
        ["no", "yes", "yes", "no", "yes"], [0.7, 0.1, 0.3, 0.2, 0.61], (0.2, 0.6), positive="yes"
    )
    assert zones.tolist() == ["error", "error", "gray zone", "gray zone", "sure"]
    with pytest.raises(ValueError, match="p_min <= p_max"):
        decision_zones([0], [0.5], (0.6, 0.2))


def test_circle_draws_an_arrow_per_column(X):
    import pandas as pd

    names = [f"column {j}" for j in range(7)]
    found = PrincipalMap().fit(pd.DataFrame(X, columns=names))
    shown = CorrelationCircleDisplay.from_estimator(found).plot()
    for j in range(7):
        np.testing.assert_allclose(shown.arrows_[j].xy, found.correlations_[j, :2])
        assert shown.texts_[j].get_text() == names[j]
    np.testing.assert_allclose(
        shown.frame()["quality"], np.square(found.correlations_[:, :2]).sum(axis=1)
    )
