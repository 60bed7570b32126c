"""Weights of the committee: general solver, true certificate, shrinkage, cross-fitting."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

from laconic.choose.stacking import (
    StackProblem,
    cross_fitted,
    fold_weights,
    log_probabilities,
    solve_stack,
    stacked,
)


def _problem(n_members, n_classes, seed, n_rows=200, penalty=2.0, beside=0.0):
    draw = np.random.default_rng(seed)
    y = draw.integers(0, n_classes, n_rows)
    truth = 1.5 * np.eye(n_classes)[y] + draw.normal(size=(n_rows, n_classes))
    noise = draw.normal(size=(n_members, n_rows, n_classes))
    scale = draw.uniform(0.2, 2.0, (n_members, 1, 1))
    logs = log_softmax(scale * truth + noise * scale[::-1], axis=2)
    if n_members > 3:
        logs[3] = logs[2]  # the same member twice: the Hessian is singular
    centre = (1.0 - beside) * np.eye(len(logs))[0] + beside * np.eye(len(logs))[1]
    return StackProblem(logs, y, draw.uniform(0.5, 2.0, n_rows), centre, penalty)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_members", [2, 5, 12])
@pytest.mark.parametrize(("penalty", "beside"), [(0.0, 0.0), (8.0, 0.0), (20.0, 0.4)])
def test_weights_against_a_general_solver(n_members, n_classes, penalty, beside):
    problem = _problem(n_members, n_classes, n_members, penalty=penalty, beside=beside)
    found = solve_stack(problem)
    general = minimize(
        problem.value,
        np.full(n_members, 1.0 / n_members),
        jac=lambda v: problem.derivatives(v)[0],
        method="SLSQP",
        bounds=[(0.0, 1.0)] * n_members,
        constraints={"type": "eq", "fun": lambda v: v.sum() - 1.0},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert found.converged
    assert found.point.min() >= 0.0
    assert found.point.sum() == pytest.approx(1.0)
    assert found.value <= general.fun + 1e-6
    assert found.value - found.gap <= general.fun + 1e-9


def test_a_heavy_penalty_leaves_the_weights_at_their_centre():
    problem = _problem(5, 2, 1, penalty=1e7, beside=0.4)
    np.testing.assert_allclose(solve_stack(problem).point, problem.centre, atol=1e-4)
    # written out: squares of what the members of the centre are away from it, none of the others
    v = np.array([0.5, 0.2, 0.3, 0.0, 0.0])
    free = _problem(5, 2, 1, penalty=0.0, beside=0.4)
    paid = 0.5e7 * ((0.6 - 0.5) ** 2 + (0.4 - 0.2) ** 2)
    assert problem.value(v) - free.value(v) == pytest.approx(paid)


@pytest.mark.parametrize("beside", [0.0, 0.3])
def test_derivatives_by_differences(beside):
    problem = _problem(4, 3, 7, beside=beside)
    v = np.array([0.1, 0.2, 0.3, 0.4])
    gradient, hessian = problem.derivatives(v)
    for m in range(4):
        step = 1e-5 * np.eye(4)[m]
        slope = (problem.value(v + step) - problem.value(v - step)) / 2e-5
        assert gradient[m] == pytest.approx(slope, rel=1e-6)
        bend = (problem.derivatives(v + step)[0] - problem.derivatives(v - step)[0]) / 2e-5
        np.testing.assert_allclose(hessian[m], bend, rtol=1e-5, atol=1e-6)


def test_the_gap_bounds_the_distance_wherever_the_weights_are():
    problem = _problem(5, 2, 3)
    best = solve_stack(problem).value
    draw = np.random.default_rng(0)
    for v in draw.dirichlet(np.ones(5), 50):
        gradient, _ = problem.derivatives(v)
        assert gradient @ v - gradient.min() >= problem.value(v) - best - 1e-9


def test_the_penalty_bounds_the_weight_of_the_others():
    draw = np.random.default_rng(0)
    y = draw.integers(0, 2, 60)
    members = [np.clip(0.5 + 0.3 * (2 * y - 1) + draw.normal(scale=0.2, size=60), 0.05, 0.95)
               for _ in range(4)]  # fmt: skip
    logs = np.log(np.stack([np.stack([1 - p, p], axis=1) for p in members]))
    gradient, _ = StackProblem(logs, y, np.ones(60), np.eye(len(logs))[1], 0.0).derivatives(
        np.eye(4)[1]
    )
    slope = float(gradient[1] - gradient.min())
    assert slope > 0.0
    free = solve_stack(StackProblem(logs, y, np.ones(60), np.eye(len(logs))[1], 0.0)).point[1]
    for share in (0.05, 0.2):
        # the loss is convex: its slope away from the centre only falls, and pays for the weight
        found = solve_stack(
            StackProblem(logs, y, np.ones(60), np.eye(len(logs))[1], slope / share)
        ).point[1]
        assert 0.0 < 1.0 - found <= share + 1e-9
        assert found > free
        # the same rows ten times: the same penalty is now little
        ten = StackProblem(
            np.tile(logs, (1, 10, 1)),
            np.tile(y, 10),
            np.ones(600),
            np.eye(len(logs))[1],
            slope / share,
        )
        assert solve_stack(ten).point[1] < found
    # nothing is gained by members that are worse in every mixture
    worse = np.stack([logs[1], 0.1 * logs[1]])
    worse[1] -= np.log(np.exp(worse[1]).sum(axis=1, keepdims=True))
    np.testing.assert_array_equal(
        solve_stack(StackProblem(worse, y, np.ones(60), np.eye(2)[0], 16.0)).point, [1.0, 0.0]
    )


def test_weights_of_rows_are_copies():
    problem = _problem(4, 3, 5)
    counts = np.random.default_rng(0).integers(1, 4, len(problem.y))
    many = problem.on(np.repeat(np.arange(len(counts)), counts))
    one = StackProblem(
        problem.logs, problem.y, problem.weight * counts, problem.centre, problem.penalty
    )
    assert solve_stack(one).value == pytest.approx(solve_stack(many).value, rel=1e-7)


def test_cross_fitted_rows_do_not_see_their_own_labels():
    problem = _problem(5, 2, 11, n_rows=100)
    folds = [np.arange(f, 100, 5) for f in range(5)]
    start = np.eye(5)[0]
    proba = cross_fitted(problem, folds, fold_weights(problem, folds, start))
    v = solve_stack(problem.on(np.setdiff1d(np.arange(100), folds[2]))).point
    np.testing.assert_allclose(proba[folds[2]], stacked(problem.logs[:, folds[2]], v), atol=1e-4)
    flipped = problem.y.copy()
    flipped[folds[2]] = 1 - flipped[folds[2]]
    other = StackProblem(problem.logs, flipped, problem.weight, problem.centre, problem.penalty)
    again = cross_fitted(other, folds, fold_weights(other, folds, start))
    np.testing.assert_array_equal(again[folds[2]], proba[folds[2]])
    assert not np.array_equal(again[folds[1]], proba[folds[1]])


def test_two_classes_are_the_weighted_mean_of_log_odds():
    p, q = np.array([0.2, 0.7]), np.array([0.6, 0.9])
    logs = np.log([np.stack([1 - p, p], axis=1), np.stack([1 - q, q], axis=1)])
    odds = 0.3 * np.log(p / (1 - p)) + 0.7 * np.log(q / (1 - q))
    found = stacked(logs, np.array([0.3, 0.7]))[:, 1]
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-odds)))
    assert log_probabilities(np.array([[0.0, 1.0]]), 9).tolist() == [[np.log(0.05), np.log(0.95)]]
