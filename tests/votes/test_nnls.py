"""The active set against an interior-point solver, closed forms and the identities of MinCq."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import nnls

from laconic.votes.nnls import box_vote, least_squares_vote, penalty_path, vote_at_mean_margin


def interior_point(P, A_eq, b_eq, A_in, b_in):
    """min x'Px subject to A_eq x = b_eq, A_in x <= b_in."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(2 * P)),
        np.zeros(len(P)),
        sparse.csc_matrix(np.vstack([A_eq, A_in])),
        np.concatenate([b_eq, b_in]),
        [clarabel.ZeroConeT(len(b_eq)), clarabel.NonnegativeConeT(len(b_in))],
        settings,
    )
    return np.array(solver.solve().x)


def random_votes(trial: int) -> np.ndarray:
    """Signed votes y h(x), m x n: n > m, duplicates, complements and constants included."""
    draw = np.random.default_rng(trial)
    m, n = draw.integers(6, 50), draw.integers(2, 60)
    A = np.sign(draw.normal(size=(m, n)) + 0.3)
    if trial % 4 == 0:
        A = np.c_[A, A[:, :2], np.ones((m, 1))]
    elif trial % 4 == 1:
        A = draw.uniform(-1, 1, size=A.shape) + 0.1
        A /= np.abs(A).max()
    elif trial % 4 == 2:
        A = np.c_[A, -A[:, : n // 2 + 1]]
    if A.mean(0).max() <= 0:
        A[:, 0] *= -1
        A[0, 0] = 1.0
    return A


def moments(A):
    return A.T @ A / len(A), A.mean(0)


@pytest.mark.parametrize("trial", range(200))
def test_every_form_agrees_with_an_interior_point_solver(trial):
    A = random_votes(trial)
    draw = np.random.default_rng(1000 + trial)
    gram, first = moments(A)
    for sides in ("plain", "both", "oriented"):
        B = {"plain": A, "both": np.c_[A, -A], "oriented": (A * np.sign(first))[:, first != 0]}
        G, a = moments(B[sides])
        if a.max() <= 0:
            continue
        mu = a.max() * draw.choice([0.02, 0.3, 0.7, 0.95])
        found = vote_at_mean_margin(gram, first, mu, sides=sides)
        n = len(a)
        x = interior_point(
            G, np.ones((1, n)), [1.0], np.vstack([-a, -np.eye(n)]), np.append(-mu, np.zeros(n))
        )
        value = found.value * (1.0 - found.details["parked"]) ** 2
        assert value == pytest.approx(x @ G @ x, abs=1e-7)
        assert 0.0 <= found.gap < 1e-6
        # the certificate is true
        assert found.value - found.gap <= _value_at(G, a, found.details["mean_margin"]) + 1e-7
    n = len(first)
    size = np.full(n, 1.0 / n)
    mu = size @ np.abs(first) * draw.choice([0.001, 0.1, 0.5, 0.8, 0.97])
    found = box_vote(gram, first, mu, size)
    x = interior_point(
        gram, first[None], [mu], np.vstack([np.eye(n), -np.eye(n)]), np.full(2 * n, 1.0 / n)
    )
    assert found.value == pytest.approx(x @ gram @ x, abs=1e-7)
    assert first @ found.point == pytest.approx(mu, abs=1e-9)
    assert np.abs(found.point).max() <= (1.0 + 1e-12) / n


def _value_at(G, a, mu):
    n = len(a)
    x = interior_point(
        G, np.ones((1, n)), [1.0], np.vstack([-a, -np.eye(n)]), np.append(-mu, np.zeros(n))
    )
    return x @ G @ x


@pytest.mark.parametrize("trial", range(40))
def test_the_smallest_c_bound_is_the_least_squares_residual(trial):
    A = random_votes(trial)
    gram, first = moments(A)
    found = least_squares_vote(gram, first, tol=1e-12)
    _, norm = nnls(A, np.ones(len(A)))
    assert found.details["c_bound"] == pytest.approx(norm**2 / len(A), abs=1e-9)
    margins = A @ found.point
    assert found.details["c_bound"] == pytest.approx(
        1 - margins.mean() ** 2 / (margins**2).mean(), abs=1e-9
    )


def test_strong_duality_and_the_dual_vector_of_the_slides():
    A = random_votes(3)
    m = len(A)
    gram, first = moments(A)
    q = least_squares_vote(gram, first, tol=1e-14).point
    for mu in (1e-3, 0.1):
        w = q * mu / (first @ q)
        mu2 = w @ gram @ w
        gamma = A @ w
        alpha, beta = (2 / m) * (mu2 / mu - gamma), -2 * mu2 / mu
        dual = -(m / 4) * alpha @ alpha - beta / 2 * alpha.sum() - beta**2 / 4 - beta * mu
        assert dual == pytest.approx(mu2, rel=1e-9)
        assert (A.T @ alpha).max() <= 1e-9
        assert (alpha < 0).any()
        assert (alpha > 0).any()


def test_the_first_column_has_the_largest_mean_margin():
    for trial in range(20):
        gram, first = moments(random_votes(trial))
        found = least_squares_vote(gram, first, max_voters=1)
        assert first[np.flatnonzero(found.point)[0]] == pytest.approx(first.max())


def test_max_voters_reoptimises_all_weights():
    A = random_votes(7)
    gram, first = moments(A)
    for k in (2, 4, 6):
        found = least_squares_vote(gram, first, max_voters=k)
        used = np.flatnonzero(found.point)
        assert len(used) == k
        best, _ = nnls(A[:, used], np.ones(len(A)))
        np.testing.assert_allclose(found.point[used], best, atol=1e-9)


def test_the_path_is_monotone_and_ends_at_least_squares():
    gram, first = moments(random_votes(11))
    path = list(penalty_path(gram, first, [0.8, 0.4, 0.1, 0.0]))
    margins = [found.details["mean_margin"] for found in path]
    bounds = [found.details["c_bound"] for found in path]
    assert margins == sorted(margins, reverse=True)
    assert bounds == sorted(bounds, reverse=True)
    assert path[-1].details["c_bound"] == pytest.approx(
        least_squares_vote(gram, first).details["c_bound"], abs=1e-10
    )


def test_a_box_that_does_not_bind_is_least_squares():
    draw = np.random.default_rng(0)
    A = np.sign(draw.normal(size=(80, 12)) + 0.4)
    gram, first = moments(A)
    found = box_vote(gram, first, 1e-4, np.full(12, 1 / 12)).point
    free = np.linalg.solve(gram, first)
    np.testing.assert_allclose(found / np.abs(found).sum(), free / np.abs(free).sum(), atol=1e-9)


def test_mu_above_its_maximum_is_one_sentence():
    gram, first = moments(random_votes(5))
    with pytest.raises(ValueError, match="above its maximum"):
        vote_at_mean_margin(gram, first, 1.01 * first.max())
    n = len(first)
    with pytest.raises(ValueError, match="mean of the voters' absolute"):
        box_vote(gram, first, first.max() * 0.999 + 0.001, np.full(n, 1 / n))


def test_a_class_without_a_good_voter_is_refused():
    gram, first = moments(-np.ones((4, 2)))
    with pytest.raises(ValueError, match="positive mean margin"):
        least_squares_vote(gram, first)


def test_ill_conditioned_gram_still_certifies():
    x = np.linspace(-1, 1, 60)
    A = np.exp(-0.05 * (x[:, None] - x) ** 2) * np.sign(x + 0.01)[:, None] * np.sign(x + 0.01)
    found = least_squares_vote(*moments(A))
    _, norm = nnls(A, np.ones(60))
    assert found.details["c_bound"] == pytest.approx(norm**2 / 60, abs=2e-5)
    assert 0.0 < found.gap < 1e-7
