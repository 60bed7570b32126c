"""Pricing by histograms, popcount Gram rows, column generation and the rivals' programs."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog
from sklearn.svm import LinearSVC

from laconic.data.tables.columns import Schema
from laconic.votes.boosting import cb_boost, cg_boost, lp_boost
from laconic.votes.columns import DenseColumns, StumpColumns
from laconic.votes.nnls import least_squares_vote
from laconic.votes.programs import CqBoost
from laconic.votes.voters.stumps import StumpVoters


def stumps(n=150, seed=0, weighted=False, thresholds="midpoints", constant=True):
    draw = np.random.default_rng(seed)
    colour = draw.choice(["red", "green", "blue"], n).astype(object)
    colour[::17] = None
    size = np.round(draw.normal(size=n), 1)
    size[::11] = np.nan
    table = Schema.learn(
        {"size": size, "age": draw.integers(0, 5, n) + 0.0, "colour": colour}
    ).table
    score = np.nan_to_num(size) + (colour == "red") + 0.3 * draw.normal(size=n)
    y = np.where(score > 0.3, 1.0, -1.0)
    weight = draw.integers(1, 4, n) + 0.0 if weighted else np.ones(n)
    prepared = StumpVoters(thresholds, constant=constant).prepare(table, weight)
    return prepared, prepared.columns(y, weight, 0), y, weight


@pytest.mark.parametrize("weighted", [False, True])
def test_pricing_and_gram_agree_with_the_matrix_of_votes(weighted):
    _, columns, y, weight = stumps(weighted=weighted)
    every = np.arange(columns.n_columns)
    H, part = columns.votes(every), weight / weight.sum()
    np.testing.assert_allclose(columns.first_moment(), H.T @ (y * part), atol=1e-13)
    used, w = np.array([0, 5, 9]), np.array([0.2, -0.7, 0.4])
    np.testing.assert_allclose(columns.scores(used, w), H[:, used] @ w, atol=1e-13)
    slopes = H.T @ ((y - H[:, used] @ w) * part)
    np.testing.assert_allclose(columns.slopes(used, w), slopes, atol=1e-13)
    gram = (H * part[:, None]).T @ H
    np.testing.assert_allclose(columns.full_gram(every), gram, atol=1e-13)
    np.testing.assert_allclose(columns.gram(used, every), gram[used], atol=1e-13)


def test_passes_are_sums_over_blocks():
    _, columns, _, _ = stumps()
    whole = columns.first_moment()
    columns.source.block_rows = 32
    np.testing.assert_allclose(columns.first_moment(), whole, atol=1e-14)


@pytest.mark.parametrize("constant", [True, False])
def test_distinct_keeps_one_of_each_up_to_sign(constant):
    _, columns, _, _ = stumps(thresholds="equal", constant=constant)
    kept, copies = columns.distinct()
    H = columns.votes(np.arange(columns.n_columns))
    assert copies.sum() == columns.n_columns
    signed = {tuple(h * h[0]) for h in H.T}
    assert len(kept) == len(signed)
    assert np.linalg.matrix_rank(H[:, kept]) == np.linalg.matrix_rank(H)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sides", ["both", "oriented"])
def test_priced_and_listed_classes_have_the_same_optimum(sides, weighted):
    _, columns, _, _ = stumps(weighted=weighted)
    first = columns.first_moment()
    gram = columns.full_gram(np.arange(columns.n_columns))
    for share in (0.5, 0.1, 0.02):
        run = CqBoost(columns, sides)
        found = run.solve(share * run.scale, tol=1e-10)
        listed = least_squares_vote(gram, first, sides=sides, penalty=share * run.scale, tol=1e-12)
        assert found.converged
        assert found.value == pytest.approx(listed.value, rel=1e-7)
        assert found.details["mean_margin"] == pytest.approx(
            listed.details["mean_margin"], rel=1e-6
        )
        assert 0 <= found.gap < 1e-6


def test_the_first_column_priced_has_the_largest_edge_at_plus_one_over_m():
    _, columns, _, _ = stumps()
    run = CqBoost(columns, "both")
    found = run.solve(0.0, max_voters=1)
    first = columns.first_moment()
    assert abs(first[found.details["first_entered"]]) == pytest.approx(np.abs(first).max())


def test_max_voters_stops_and_reoptimises():
    _, columns, y, _ = stumps()
    found = CqBoost(columns, "both").solve(0.0, max_voters=4)
    used = np.flatnonzero(found.point)
    assert len(used) == 4
    assert found.why_stopped == "budget"
    H = columns.votes(found.details["columns"][used])
    best = np.linalg.lstsq(H, y, rcond=None)[0]
    np.testing.assert_allclose(found.point[used], best, atol=1e-8)


def dense(n=70, voters=15, seed=3):
    draw = np.random.default_rng(seed)
    y = np.where(draw.random(n) < 0.5, 1.0, -1.0)
    H = np.clip(draw.normal(size=(n, voters)) * 0.5 + 0.25 * y[:, None], -1, 1)
    return DenseColumns(H, y, np.ones(n))


@pytest.mark.parametrize("nu", [0.4, 0.7])
def test_lp_boost_has_the_optimum_of_the_full_program(nu):
    pytest.importorskip("highspy")
    columns = dense()
    A = columns.H * columns.y[:, None]
    A = np.c_[A, -A]
    m, n = A.shape
    # variables q, xi, rho
    full = linprog(
        np.concatenate([np.zeros(n), np.full(m, 1 / (nu * m)), [-1.0]]),
        A_ub=np.c_[-A, -np.eye(m), np.ones(m)],
        b_ub=np.zeros(m),
        A_eq=np.concatenate([np.ones(n), np.zeros(m), [0.0]])[None],
        b_eq=[1.0],
        bounds=[*[(0, None)] * (n + m), (None, None)],
    )
    found = lp_boost(columns, nu)
    assert found.details["objective"] == pytest.approx(-full.fun, abs=1e-8)
    assert np.abs(found.point).sum() == pytest.approx(1.0, abs=1e-8)
    assert found.gap < 1e-7


def test_lp_boost_reports_the_zero_vote():
    pytest.importorskip("highspy")
    draw = np.random.default_rng(0)
    H = np.sign(draw.normal(size=(80, 6)))
    y = np.where(draw.random(80) < 0.5, 1.0, -1.0)
    found = lp_boost(DenseColumns(H, y, np.ones(80)), 0.05)
    assert found.details["zero_vote"]
    assert not found.point.any()


def test_cg_boost_is_a_support_vector_machine_without_intercept():
    columns = dense(n=90)
    found = cg_boost(columns, np.arange(15), 0.5, np.ones(90))
    peer = LinearSVC(C=0.5, loss="hinge", fit_intercept=False, tol=1e-10, max_iter=1_000_000)
    peer.fit(columns.H, columns.y)
    np.testing.assert_allclose(found.point, peer.coef_[0], atol=2e-4)
    assert found.gap < 1e-6


@pytest.mark.parametrize("sides", ["both", "plain"])
def test_cg_boost_by_descent_agrees_with_a_conic_solver(sides, monkeypatch):
    monkeypatch.setattr("laconic.votes.tuning.EXACT_ROWS", 0)
    columns = dense(n=60, voters=8)
    found = cg_boost(columns, np.arange(8), 0.3, np.ones(60), sides=sides)
    A = columns.H * columns.y[:, None]
    m, n = A.shape
    low = np.zeros(n) if sides == "plain" else np.full(n, 1e3)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    P = sparse.csc_matrix(np.diag(np.r_[np.ones(n), np.zeros(m)]))
    rows = np.vstack(
        [
            np.c_[-A, -np.eye(m)],
            np.c_[np.zeros((m, n)), -np.eye(m)],
            np.c_[-np.eye(n), np.zeros((n, m))],
        ]
    )
    solver = clarabel.DefaultSolver(
        P,
        np.r_[np.zeros(n), np.full(m, 0.3)],
        sparse.csc_matrix(rows),
        np.r_[-np.ones(m), np.zeros(m), low],
        [clarabel.NonnegativeConeT(2 * m + n)],
        settings,
    )
    np.testing.assert_allclose(found.point, np.array(solver.solve().x)[:n], atol=1e-4)


def test_cb_boost_steps_are_the_best_steps():
    columns = dense()
    one = cb_boost(columns, max_rounds=1)
    two = cb_boost(columns, max_rounds=2)
    start = columns.scores(one.details["columns"], one.point)
    y = columns.y

    def bound(score):
        return 1 - np.mean(y * score) ** 2 / np.mean(score**2)

    grid = np.linspace(-3, 3, 2001)
    brute = min(
        bound(start + s * h) for h in columns.H.T for s in grid if np.mean(y * (start + s * h)) > 0
    )
    assert one.n_iter <= 2
    assert two.details["c_bound"] <= brute + 1e-6


def test_cb_boost_creeps_towards_the_least_squares_vote():
    columns = dense()
    gram = columns.full_gram(np.arange(15))
    best = least_squares_vote(gram, columns.first_moment(), sides="both")
    far = cb_boost(columns, max_rounds=3)
    near = cb_boost(columns, max_rounds=2000, tol=1e-12)
    assert far.details["c_bound"] > near.details["c_bound"] >= best.details["c_bound"] - 1e-9
    assert near.details["c_bound"] == pytest.approx(best.details["c_bound"], abs=1e-5)


def test_types_of_codes_follow_the_number_of_cuts():
    draw = np.random.default_rng(0)
    table = Schema.learn(draw.normal(size=(400, 1))).table
    prepared = StumpVoters("midpoints").prepare(table, np.ones(400))
    columns = prepared.columns(np.where(draw.random(400) < 0.5, 1.0, -1.0), np.ones(400), 0)
    assert isinstance(columns, StumpColumns)
    assert columns.codes.dtype == np.uint16
