"""The cells of document 004: what they hold, the forms of the tables, what a half gives."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer
from sklearn.svm import LinearSVC

from laconic import CqBoostClassifier
from laconic.papers import votes_tables as paper
from laconic.papers.registry import Draws, judge
from laconic.papers.votes import PUBLISHED_RBF, PUBLISHED_STUMPS, slides_half
from laconic.papers.votes.draws import bound_draw, identities
from laconic.papers.votes.form import (
    cg_boost_vote,
    cq_boost_vote,
    half_results,
    kernel_votes,
    lp_boost_vote,
    min_cq_vote,
    standardised,
    stump_votes,
)
from laconic.votes import StumpVoters


@pytest.fixture(scope="module")
def rows():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:120, :5], np.where(y[:120] == 1, 1.0, -1.0)


def test_every_printed_number_has_a_cell():
    cells = paper.cells()
    assert len({(cell.place, cell.what) for cell in cells}) == len(cells)
    numbers = [
        c.published
        for c in cells
        if isinstance(c.published, float) and not c.place.endswith("mean of the sets")
    ]
    every = [n for table in (PUBLISHED_STUMPS, PUBLISHED_RBF) for row in table.values()
             for pair in row for n in pair]  # fmt: skip
    assert Counter(numbers) == Counter(map(float, every))
    assert len(every) == 336
    assert [figure.number for figure in paper.figures()] == ["1", "2", "5"]


def test_the_sizes_of_the_halves_are_those_of_the_slides():
    for name, row in PUBLISHED_RBF.items():
        assert paper.TRAINING_ROWS[name] == row[1][1]
    # all risks are multiples of 1/floor(N/2), to the four printed digits
    for table in (PUBLISHED_STUMPS, PUBLISHED_RBF):
        for name, row in table.items():
            train = paper.TRAINING_ROWS[name]
            for risk, _ in row:
                assert any(
                    abs(round(risk * test) / test - risk) < 5.1e-5 for test in (train, train - 1)
                )
    train, test = slides_half(np.array([0, 1, 0, 1, 1]), 0)
    assert (len(train), len(test)) == (3, 2)


def test_percentiles_count_ties_by_half():
    ours = np.array([0.1, 0.2, 0.3, 0.4])
    assert paper.rank_in(0.05, ours) == 10.0
    assert paper.rank_in(0.2, ours) == 40.0
    assert paper.rank_in(0.9, ours) == 90.0
    assert judge("50 within 45", paper.Measured.exact(2.4)).word == "refuted"


def test_cq_boost_is_that_of_the_library(rows):
    X, y = rows
    H = stump_votes(X, np.arange(len(y)))
    vote = cq_boost_vote(H, y)
    model = CqBoostClassifier(StumpVoters(constant=False), mu=1e-3).fit(X, y)
    # the columns of Algorithm 1 are those generated; the active set may drop some of them again
    assert model.n_voters_[0] <= vote.columns <= model.n_voters_[0] + 3
    ours = H @ vote.weights / (np.abs(vote.weights).sum())
    np.testing.assert_allclose(
        ours / np.abs(ours).max(), model.vote(X) / np.abs(model.vote(X)).max(), atol=1e-4
    )


def test_min_cq_is_a_box_program(rows):
    """Against a general solver, with a voter that stands twice in the matrix."""
    X, y = rows
    H = stump_votes(X[:, :1], np.arange(len(y)), 3)
    H = np.hstack([H, H[:, :1]])
    n, A = H.shape[1], y[:, None] * H
    mu = 1e-3
    vote = min_cq_vote(H, y, mu)
    found = minimize(
        lambda w: 1e4 * np.mean((A @ w) ** 2), np.zeros(n), bounds=[(-1 / n, 1 / n)] * n,
        constraints={"type": "eq", "fun": lambda w: 1e3 * (A.mean(axis=0) @ w - mu)},
        method="SLSQP", options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    np.testing.assert_allclose(H @ vote.weights, H @ found.x, atol=1e-6)
    assert vote.columns == 2 * n  # nothing is at its bound: every voter and complement has mass


def test_cg_boost_is_a_support_vector_machine_without_intercept(rows):
    X, y = rows
    H = stump_votes(X, np.arange(len(y)))
    vote = cg_boost_vote(H, y, 0.1)
    peer = LinearSVC(C=0.1, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=100_000)
    peer.fit(H, y)
    np.testing.assert_allclose(vote.weights, peer.coef_[0], atol=1e-3)


def test_a_zero_vote_has_one_column_and_says_no(rows):
    _, y = rows
    H = np.random.default_rng(0).choice([-1.0, 1.0], (len(y), 2))
    vote = lp_boost_vote(H, y, 0.05)
    assert vote.columns == 1.0
    assert vote.risk(H, y) == np.mean(y > 0)


def test_kernels_of_held_out_rows_are_not_offered(rows):
    """A copy of every row would be found by its own kernel, were it on offer."""
    X, y = rows
    train = np.arange(0, 100)
    Z = standardised(X, train)
    H = kernel_votes(Z, train, 0.5)
    assert H.shape == (120, 100)
    np.testing.assert_allclose(np.diag(H[:100]), 1.0)
    found = half_results(X, y, train, np.arange(100, 120), "RBF", ["MinCq"])
    assert found["MinCq"][1] == 100.0


@pytest.mark.dataset("titanic", "balance")
def test_columns_of_the_slides_on_discrete_sets():
    draws = Draws(quick=True)
    for cell in paper.cells():
        if cell.place in ("Table 1, titanic", "Table 1, balance") and "columns" in cell.what:
            assert judge(cell.published, cell.compute(draws)).word == "reproduced"


@pytest.mark.dataset("heart")
def test_the_sign_of_algorithm_1_is_refuted_and_its_dual_is_not():
    found = identities("heart", 0)
    assert found["first margin, -1/m"] < 0.0 < found["first margin, +1/m"]
    assert abs(found["relative duality gap"]) < 1e-9
    assert found["largest edge"] < 1e-9


def test_a_bound_is_above_its_risk_and_says_something():
    found = bound_draw(0, 5000)
    assert found["risk"] < found["bound"] < 0.9


def test_sets_left_out_of_a_quick_run_have_no_number():
    assert math.isnan(
        paper.printed(Draws(quick=True), kind="RBF", name="yeast", method="MinCq", place=0).mean
    )
