"""The last fit of a page: its optimum by a general solver, its certificate at any point."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from laconic import BlendedClassifier, PlainLogisticRegression, SparseAdditiveClassifier, load, save
from laconic.choose.page.settling import Cone, PageProblem, log_probabilities_of, settle
from laconic.data.demo import make_payments


def _problem(seed, n_scores=1):
    """Entries whose free optimum leaves the cones: a shape that falls, one that rises, a line."""
    draw = np.random.default_rng(seed)
    X = np.hstack([np.ones((300, 1)), draw.dirichlet(np.ones(8), 300), draw.normal(size=(300, 1))])
    scores = X @ draw.normal(size=(X.shape[1], n_scores)) + draw.normal(size=(300, n_scores))
    weight = draw.uniform(size=300)
    size = n_scores * X.shape[1]
    return PageProblem(
        (X,) * n_scores, log_probabilities_of(scores), weight / weight.sum(),
        draw.normal(size=size), draw.uniform(0.001, 0.01, size),
        (Cone(1, 5, 1.0), Cone(5, 9, -1.0), Cone(9, 10, -1.0, line=True)),
    )  # fmt: skip


def _by_a_general_solver(problem):
    n = len(problem.centre)
    rows = []
    for cone in problem.cones:
        if cone.line:
            rows.append(cone.sign * np.eye(n)[cone.start])
        else:
            rows += list(cone.sign * np.diff(np.eye(n)[cone.start : cone.end], axis=0))
    found = minimize(
        problem.value, np.zeros(n), jac=problem.gradient, hess=problem.hessian,
        method="trust-constr", constraints=LinearConstraint(np.array(rows), 0.0, np.inf),
        options={"gtol": 1e-12, "xtol": 1e-14, "barrier_tol": 1e-12, "maxiter": 3000},
    )  # fmt: skip
    return float(found.fun)


@pytest.mark.parametrize("n_scores", [1, 3])
def test_no_other_values_in_the_cone_are_better(n_scores):
    for seed in range(3):
        problem = _problem(seed, n_scores)
        found = settle(problem, np.zeros(len(problem.centre)))
        best = _by_a_general_solver(problem)
        assert found.converged
        assert abs(found.value - best) <= 1e-7  # the general solver's own digits
        for cone in problem.cones:
            own = found.point[cone.start : cone.end]
            steps = cone.sign * (own if cone.line else np.diff(own))
            assert (steps >= 0.0).all()


def test_a_cone_binds_where_the_free_optimum_leaves_it():
    problem = _problem(0)
    free = PageProblem(*(getattr(problem, f) for f in
                         ("designs", "said", "weight", "centre", "ridge")))  # fmt: skip
    start = np.zeros(len(problem.centre))
    assert settle(problem, start).value > settle(free, start).value + 1e-4


@pytest.mark.parametrize("n_scores", [1, 3])
def test_the_gap_covers_every_point_of_the_cone(n_scores):
    problem = _problem(5, n_scores)
    best = settle(problem, np.zeros(len(problem.centre))).value
    draw = np.random.default_rng(1)
    for scale in (3.0, 0.1, 1e-3):
        values = problem.allowed(scale * draw.normal(size=len(problem.centre)))
        assert problem.gap(values) >= problem.value(values) - best - 1e-12


def test_a_step_beyond_all_squares_is_shortened():
    """The square of the first step is beyond every double; the pages of table 3899 had one."""
    X = np.array([[1e-155], [1e-155]])
    said = log_probabilities_of(np.array([[0.5], [1.5]]))
    flat = PageProblem((X,), said, np.full(2, 0.5), np.zeros(1), np.full(1, 1e-320))
    found = settle(flat, np.zeros(1))
    assert np.isfinite(found.point).all()
    assert found.value <= flat.value(np.zeros(1))


def test_derivatives_are_those_of_the_value():
    problem = _problem(2, 3)
    at = np.random.default_rng(0).normal(size=len(problem.centre))
    steps = 1e-6 * np.eye(len(at))
    slopes = [(problem.value(at + s) - problem.value(at - s)) / 2e-6 for s in steps]
    np.testing.assert_allclose(problem.gradient(at), slopes, atol=1e-8)
    curves = [(problem.gradient(at + s) - problem.gradient(at - s)) / 2e-6 for s in steps]
    np.testing.assert_allclose(problem.hessian(at), curves, atol=1e-7)


def test_a_page_reports_how_far_it_strays_and_keeps_it_in_its_file(tmp_path):
    payments, label = make_payments(1500)
    members = [PlainLogisticRegression(), SparseAdditiveClassifier(random_state=0)]
    whole = BlendedClassifier(members).fit(payments, label)
    assert not hasattr(whole, "page_gap_")
    page = BlendedClassifier(members, max_size=20).fit(payments, label)
    said = [log_probabilities_of(m.decision_function(payments)[:, None]) for m in (whole, page)]
    strays = (np.exp(said[0]) * (said[0] - said[1])).sum(axis=1).mean()
    # the rows that taught it are these; the ridge adds a little
    assert strays <= page.page_objective_ <= 1.5 * strays
    assert 0.0 <= page.page_gap_ <= 1e-6 * page.page_objective_
    long = BlendedClassifier(members, max_size=10_000).fit(payments, label)
    assert (long.page_objective_, long.page_gap_) == (0.0, 0.0)
    save(page, tmp_path / "model.json")
    stored = json.loads((tmp_path / "model.json").read_text())["certificates"]
    assert stored["page_gap"] == page.page_gap_
    assert (load(tmp_path / "model.json").predict(payments) == page.predict(payments)).all()
