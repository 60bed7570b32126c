"""The l1-penalised logistic fit on signs, against scikit-learn, a conic solver and its dual."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from laconic.rules.solver import HeldOutPath, LassoLogistic, RulePoint, held_out_path, solve_down


def problem_of(seed: int, n: int = 60, p: int = 12, weighted: bool = True) -> LassoLogistic:
    draw = np.random.default_rng(seed)
    signs = np.where(draw.random((p, n)) < draw.uniform(0.2, 0.8, (p, 1)), 1, -1).astype(np.int8)
    score = 0.9 * signs[0] - 0.7 * signs[1] * signs[2]
    labels = np.where(draw.random(n) < expit(score), 1.0, -1.0)
    weight = draw.integers(0, 4, n).astype(float) if weighted else np.ones(n)
    signs[-1] = -signs[-2]  # opposite conditions: the optimum is not unique, its value is
    return LassoLogistic(signs, labels, weight)


def conic_minimum(problem: LassoLogistic, penalty: float) -> float:
    """min sum w t + penalty sum a; t >= log(1 + exp(-m)) by two exponential cones."""
    kept = problem.weight > 0
    Z = problem.signs[:, kept].T.astype(float) * problem.labels[kept, None]
    y, w = problem.labels[kept], problem.weight[kept]
    n, p = Z.shape
    # variables: b, beta (p), a (p), t (n), u (n), v (n)
    size = 1 + 2 * p + 3 * n
    b, beta, a = 0, slice(1, 1 + p), slice(1 + p, 1 + 2 * p)
    t0, u0, v0 = 1 + 2 * p, 1 + 2 * p + n, 1 + 2 * p + 2 * n
    q = np.zeros(size)
    q[a], q[t0 : t0 + n] = penalty, w
    rows, limits, cones = [], [], []

    def add(row: dict[int, float], limit: float) -> None:
        rows.append(row)
        limits.append(limit)

    for i in range(n):  # u + v <= 1
        add({u0 + i: 1.0, v0 + i: 1.0}, 1.0)
    for j in range(p):  # |beta| <= a
        for sign in (1.0, -1.0):
            add({beta.start + j: sign, a.start + j: -1.0}, 0.0)
    cones.append(clarabel.NonnegativeConeT(n + 2 * p))
    for i in range(n):
        for extra, out in (
            ({}, u0),
            ({b: y[i], **{beta.start + j: Z[i, j] for j in range(p)}}, v0),
        ):
            # (x, 1, z) with exp(x) <= z; x = -t or -t - margin
            add({t0 + i: 1.0, **extra}, 0.0)
            add({}, 1.0)
            add({out + i: -1.0}, 0.0)
            cones.append(clarabel.ExponentialConeT())
    A = sparse.lil_matrix((len(rows), size))
    for r, row in enumerate(rows):
        for c, value in row.items():
            A[r, c] = value
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-10
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix((size, size)), q, A.tocsc(), np.array(limits), cones, settings
    )
    return float(solver.solve().obj_val)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("share", [0.6, 0.1, 0.01])
def test_value_is_the_conic_minimum_and_the_gap_bounds_it(seed: int, share: float) -> None:
    problem = problem_of(seed)
    penalty = share * problem.largest_penalty()
    best = conic_minimum(problem, penalty)
    loose = problem.solve(penalty, tol=1e-2)
    assert loose.value - loose.gap <= best * (1 + 1e-7)
    tight = problem.solve(penalty, tol=1e-9)
    assert tight.why_stopped == "gap"
    assert tight.value == pytest.approx(best, rel=1e-6)
    assert tight.value - tight.gap <= best * (1 + 1e-7)


def test_same_weights_as_scikit_learn() -> None:
    problem = problem_of(3, n=300, p=8, weighted=False)
    problem = LassoLogistic(problem.signs[:-1], problem.labels, problem.weight)
    penalty = 0.2 * problem.largest_penalty()
    peer = LogisticRegression(
        l1_ratio=1.0, solver="saga", C=1 / penalty, tol=1e-10, max_iter=100_000
    ).fit(problem.signs.T.astype(float), problem.labels)
    found = problem.solve(penalty, tol=1e-12).point
    np.testing.assert_allclose(found.weights, peer.coef_[0], atol=1e-5)
    assert found.intercept == pytest.approx(peer.intercept_[0], abs=1e-5)
    assert (found.weights == 0).any()


@pytest.mark.parametrize("seed", range(4))
def test_largest_penalty_is_where_the_first_rule_enters(seed: int) -> None:
    problem = problem_of(seed)
    largest = problem.largest_penalty()
    assert not problem.solve(largest, tol=1e-10).point.weights.any()
    assert problem.solve(0.99 * largest, tol=1e-10).point.weights.any()


def test_scores_are_those_of_the_weights_held_out_rows_included() -> None:
    problem = problem_of(1)
    assert (problem.weight == 0).any()
    point: RulePoint = problem.solve(0.05 * problem.largest_penalty()).point
    np.testing.assert_allclose(
        point.scores, point.intercept + point.weights @ problem.signs, atol=1e-9
    )


def test_separable_rows_are_certified() -> None:
    draw = np.random.default_rng(0)
    signs = np.where(draw.random((6, 200)) < 0.5, 1, -1).astype(np.int8)
    a, b = np.triu_indices(6, 1)
    both = np.ascontiguousarray(np.concatenate([signs, signs[a] * signs[b]]))
    labels = np.where((signs > 0).sum(axis=0) == 2, 1.0, -1.0)
    found = solve_down(LassoLogistic(both, labels, np.ones(200)), 1e-3, 1e-6)
    assert found.why_stopped == "gap"
    assert (np.sign(found.point.scores) == labels).all()


def test_path_is_judged_on_rows_that_were_left_out() -> None:
    problem = problem_of(2, n=120, weighted=False)
    place = np.arange(120)
    folds = [(place[place % 3 != f], place[place % 3 == f]) for f in range(3)]
    path = held_out_path(problem, folds)
    assert path is not None
    at = len(path.shares) // 2
    train, test = folds[1]
    alone = LassoLogistic(
        np.ascontiguousarray(problem.signs[:, train]), problem.labels[train], np.ones(len(train))
    )
    penalty = path.shares[at] * problem.largest_penalty() * len(train) / 120
    own = alone.solve(penalty, tol=1e-8).point
    expected = own.intercept + own.weights @ problem.signs[:, test]
    # the path itself stops at a gap of 1e-3
    np.testing.assert_allclose(path.scores[at, test], expected, atol=0.15)
    loss = np.logaddexp(0, -problem.labels[test] * path.scores[at, test]).mean()
    assert path.loss[at, 1] == pytest.approx(loss)


def test_choice_takes_the_larger_penalty_within_the_error() -> None:
    path = HeldOutPath(
        np.array([1.0, 0.5, 0.25]),
        np.array([[0.9, 0.7], [0.6, 0.56], [0.6, 0.5]]),
        np.zeros((3, 4)),
    )
    assert path.choose(0.0) == 2
    assert path.choose(1.0) == 1


def test_no_fold_with_two_classes_gives_no_path() -> None:
    problem = problem_of(0)
    ups = np.flatnonzero(problem.labels > 0)
    assert held_out_path(problem, [(ups, np.flatnonzero(problem.labels < 0))]) is None


@pytest.mark.parametrize("intercept", [-1.0, 0.3, 2.0])
def test_gap_bounds_the_distance_from_any_point(intercept: float) -> None:
    problem = problem_of(5)
    penalty = 0.5 * problem.largest_penalty()
    best = problem.solve(penalty, tol=1e-10).value
    for weights in (np.zeros(12), 0.2 * np.random.default_rng(0).normal(size=12)):
        point = RulePoint(intercept, weights, intercept + weights @ problem.signs)
        told = problem.solve(penalty, point, max_iter=0)
        assert told.value - told.gap <= best * (1 + 1e-9)
        assert told.why_stopped == "max_iter"


def test_gap_knows_that_the_intercept_is_free() -> None:
    """A null score has entropy log 2 a row, more than the minimum: the dual must balance."""
    signs = np.where(np.random.default_rng(0).random((3, 50)) < 0.5, 1, -1).astype(np.int8)
    labels = np.where(np.arange(50) < 40, 1.0, -1.0)
    for flipped in (labels, -labels):
        problem = LassoLogistic(signs, flipped, np.ones(50))
        penalty = 100.0
        told = problem.solve(penalty, RulePoint(0.0, np.zeros(3), np.zeros(50)), max_iter=0)
        assert told.value - told.gap <= problem.value(problem.empty(), penalty) + 1e-9
