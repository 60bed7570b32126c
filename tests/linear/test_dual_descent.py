"""Descent on the multipliers of sparse rows, against the Newton of dense rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from laconic.core.losses import TruncatedLogistic
from laconic.data.source import ArraySource
from laconic.linear.solvers import dual_descent
from laconic.linear.solvers.dual_descent import descend
from laconic.linear.solvers.newton import solve_linear
from laconic.linear.solvers.newton_cg import solve_linear_cg
from laconic.linear.solvers.rows import LinearRows


def sparse_rows(seed: int) -> tuple[sparse.csr_matrix, np.ndarray, np.ndarray]:
    """More columns than rows, one of which is empty, and weights over two decades."""
    draw = np.random.default_rng(seed)
    X = sparse.random(
        150, 300, 0.03, "csr", random_state=seed, data_rvs=lambda size: draw.normal(size=size)
    )
    X = X.multiply((np.arange(150) > 0)[:, None]).tocsr()
    y = np.where(X @ draw.normal(size=300) + draw.normal(size=150) > 0.5, 1.0, -1.0)
    return X, y, 10.0 ** draw.uniform(-1, 1, 150)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("zone", [(0.2, 0.5), (0.0, 0.6), (0.3, 1.0), (0.0, 1.0)])
def test_the_certified_minimum_is_that_of_newton(zone, fit_intercept):
    for seed in range(3):
        X, y, weight = sparse_rows(seed)
        loss, given = TruncatedLogistic(*zone), {"fit_intercept": fit_intercept, "tol": 1e-8}
        rows = LinearRows(ArraySource(X, y, weight), loss, 0.1)
        found = descend(rows, X, **given)
        exact = solve_linear(
            ArraySource(X.toarray(), y, weight), loss, C=0.1, fit_intercept=fit_intercept, tol=1e-12
        )
        assert found.converged
        # value - gap <= minimum <= value, to the rounding of the sums
        assert exact.value <= found.value * (1 + 1e-12)
        assert found.value - found.gap <= exact.value * (1 + 1e-12)
        on_kink = found.details["on_kink"]
        kink = loss.kink(y[on_kink]).position
        np.testing.assert_allclose(found.details["scores"][on_kink], kink, atol=1e-2)


def test_a_slow_descent_is_finished_by_conjugate_gradients(monkeypatch):
    X, y, weight = sparse_rows(5)
    source, loss = ArraySource(X, y, weight), TruncatedLogistic(0.2, 0.5)
    monkeypatch.setattr(dual_descent, "DESCENT_SWEEPS", 5)
    found = solve_linear_cg(source, loss, C=0.1, tol=1e-7, max_iter=1_000)
    exact = solve_linear(ArraySource(X.toarray(), y, weight), loss, C=0.1, tol=1e-12)
    assert found.converged
    assert found.value - found.gap <= exact.value * (1 + 1e-12) <= found.value * (1 + 2e-12)


def test_an_entry_that_is_given_twice_counts_as_its_sum():
    X, y, weight = sparse_rows(7)
    halves = sparse.csr_matrix(
        (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape
    )
    loss = TruncatedLogistic(0.2, 0.5)
    one, two = (
        solve_linear_cg(ArraySource(rows, y, weight), loss, C=0.1, tol=1e-9) for rows in (X, halves)
    )
    assert two.n_iter == one.n_iter
    np.testing.assert_allclose(two.point, one.point, atol=1e-6)
