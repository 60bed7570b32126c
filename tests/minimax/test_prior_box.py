"""The box of priors: projection against a conic solver, worst mixture against a linear program."""

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from laconic.minimax.criterion import PriorBox


def random_box(draw, n_classes):
    inside = draw.dirichlet(np.ones(n_classes))
    low = np.maximum(inside - draw.random(n_classes) * 0.3, 0)
    high = np.minimum(inside + draw.random(n_classes) * 0.3, 1)
    return PriorBox.of(np.column_stack((low, high)), n_classes)


def conic_projection(y, box):
    n = len(y)
    problem = clarabel.DefaultSettings()
    problem.verbose = False
    problem.tol_gap_abs = problem.tol_gap_rel = problem.tol_feas = 1e-14
    A = sparse.csc_matrix(np.vstack((np.ones(n), -np.eye(n), np.eye(n))))
    b = np.concatenate(([1.0], -box.low, box.high))
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * n)]
    solver = clarabel.DefaultSolver(sparse.eye(n, format="csc"), -y, A, b, cones, problem)
    return np.array(solver.solve().x)


@pytest.mark.parametrize("n_classes", [2, 3, 5, 26])
def test_projection_agrees_with_a_conic_solver(n_classes):
    draw = np.random.default_rng(n_classes)
    for trial in range(20):
        box = random_box(draw, n_classes) if trial % 3 else PriorBox.of(None, n_classes)
        y = draw.normal(size=n_classes) * draw.choice([0.1, 1.0, 10.0])
        np.testing.assert_allclose(box.project(y), conic_projection(y, box), atol=1e-10)


@settings(max_examples=150, deadline=None)
@given(st.integers(2, 12), st.integers(0, 10**6), st.floats(-6, 6))
def test_projection_satisfies_its_optimality_conditions(n_classes, seed, scale):
    draw = np.random.default_rng(seed)
    box = random_box(draw, n_classes)
    y = draw.normal(size=n_classes) * 10.0**scale
    x = box.project(y)
    slack = 1e-12 * max(1.0, np.abs(y).max())
    assert abs(x.sum() - 1) <= 1e-12 * max(1.0, np.abs(y).max())
    assert (x >= box.low).all()
    assert (x <= box.high).all()
    # y - x is one number on free coordinates, at most it below, at least it above
    force = y - x
    free = (x > box.low) & (x < box.high)
    if free.any():
        tau = force[free].mean()
        np.testing.assert_allclose(force[free], tau, atol=slack)
        assert (force[(x == box.low) & ~free] <= tau + slack).all() or (box.low == box.high).any()
    np.testing.assert_allclose(box.project(x), x, atol=1e-12)


def test_a_point_is_its_own_projection():
    prior = np.array([0.1, 0.2, 0.7])
    np.testing.assert_allclose(PriorBox(prior, prior).project(np.array([5.0, -3.0, 0.0])), prior)


@pytest.mark.parametrize("n_classes", [2, 4, 9])
def test_worst_mixture_agrees_with_a_linear_program(n_classes):
    draw = np.random.default_rng(n_classes)
    for _ in range(20):
        box, risks = random_box(draw, n_classes), draw.random(n_classes)
        found, prior = box.worst(risks)
        oracle = linprog(
            -risks,
            A_eq=np.ones((1, n_classes)),
            b_eq=[1.0],
            bounds=list(zip(box.low, box.high, strict=True)),
        )
        assert found == pytest.approx(-oracle.fun, abs=1e-10)
        assert prior.sum() == pytest.approx(1)
        assert (prior >= box.low - 1e-15).all()
        assert (prior <= box.high + 1e-15).all()


def test_bounds_may_name_classes():
    box = PriorBox.of({"b": (0.1, 0.4)}, 3, ["a", "b", "c"])
    assert box.low.tolist() == [0.0, 0.1, 0.0]
    assert box.high.tolist() == [1.0, 0.4, 1.0]


def test_bounds_that_miss_the_simplex_by_rounding_are_kept():
    third = [[1 / 3, 1 / 3]] * 3
    box = PriorBox.of(third, 3)
    np.testing.assert_allclose(box.project(np.array([1.0, 0.0, 0.0])), 1 / 3, atol=1e-12)


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ([[0.5, 1], [0.6, 1]], "exclude every class mix"),
        ([[0, 0.3], [0, 0.5]], "exclude every class mix"),
        ([[0.5, 0.2], [0, 1]], "0 <= low <= high <= 1"),
        ([[-0.1, 1], [0, 1]], "0 <= low <= high <= 1"),
        ([[0, np.nan], [0, 1]], "0 <= low <= high <= 1"),
        ([[0, 1]], r"shape \(2, 2\)"),
        ({"z": (0, 1)}, "has no rows"),
    ],
)
def test_bad_bounds_are_refused_in_words(bounds, words):
    with pytest.raises(ValueError, match=words):
        PriorBox.of(bounds, 2, ["a", "b"])


def test_bounds_of_a_wrong_type():
    with pytest.raises(TypeError, match="prior_bounds"):
        PriorBox.of("half", 2)
