"""The penalty of the additive criterion, its largest value, and the gap of a point."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from additive_terms import setup
from laconic.additive.criterion import (
    AdditivePenalty,
    AdditiveProblem,
    certified_gap,
    largest_group_penalty,
    loss_slopes,
    null_point,
)
from laconic.additive.solver import solve_additive
from laconic.additive.terms import single_terms
from laconic.core.losses import TruncatedLogistic


def test_gap_bounds_the_suboptimality_of_a_rough_solution():
    rows, axes, y, weight = setup(5)
    terms = single_terms(rows, weight)
    problem = AdditiveProblem(terms, y, weight, np.full(len(axes), 2.0), 0.02 * terms.rough + 0.5)
    best = solve_additive(problem, tol=1e-12, max_iter=300)
    assert best.gap <= 1e-12 * best.value
    for n_iter in (1, 2, 3):
        rough = solve_additive(problem, tol=1e-12, max_iter=n_iter)
        slopes, _ = loss_slopes(problem, rough.point.scores)
        gap = certified_gap(problem, rough.point, slopes)
        assert gap >= rough.value - best.value
    start = null_point(problem)
    slopes, _ = loss_slopes(problem, start.scores)
    value = float(weight @ np.logaddexp(0, np.where(y > 0, -1, 1) * start.scores[0]))
    assert certified_gap(problem, start, slopes) >= value - best.value > 0


@pytest.mark.parametrize("zone", [(0.0, 1.0), (0.1, 0.6)])
def test_everything_is_zero_from_the_largest_penalty_on(zone):
    rows, axes, y, weight = setup(7)
    terms = single_terms(rows, weight)
    problem = AdditiveProblem(
        terms, y, weight, np.zeros(len(axes)), 0.1 * terms.rough + 0.1, TruncatedLogistic(*zone)
    )
    weights = np.array([1.0, 2.0, 1.0, 0.5, 1.0])
    top = largest_group_penalty(problem, weights)
    empty = solve_additive(replace(problem, group=1.0001 * top * weights), tol=1e-6)
    assert not empty.point.coordinates.any()
    assert empty.gap <= 1e-6 * empty.value
    some = solve_additive(replace(problem, group=0.97 * top * weights), tol=1e-9, max_iter=200)
    assert some.point.coordinates.any()


def test_penalty_conjugate_against_numeric_maximum():
    rng = np.random.default_rng(2)
    owner = np.array([0, 0, 0, 1, 1])
    d = np.array([0.5, 2.0, 0.1, 1.0, 3.0])
    penalty = AdditivePenalty(owner, np.array([1.0, 5.0]), d)
    theta = 3 * rng.normal(size=(1, 5))

    def minus(g, part, lam):
        return lam * np.sqrt(g @ g + 1e-18) + 0.5 * g @ (d[part] * g) - theta[0, part] @ g

    for t, lam in enumerate(penalty.group):
        part = owner == t
        best = minimize(minus, theta[0, part], args=(part, lam), tol=1e-14)
        assert penalty.conjugate(theta)[t] == pytest.approx(-best.fun, abs=1e-6)
