"""Criterion (4) of the weighted naive Bayes and its exact solver."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from bayes_formulas import posterior, smoothed
from bayes_formulas import scores as scores_of
from laconic.bayes.coded import BayesScore
from laconic.bayes.criterion import (
    CodedRows,
    LogTables,
    WeightedBayes,
    selection_prior,
    variable_costs,
)
from laconic.bayes.selective import select_variables
from laconic.bayes.solver import best_weights, certified, newton_weights, thinned
from laconic.core.losses import Solution
from laconic.core.progress import Deadline
from laconic.data.source import ArraySource


def coded_rows(n=400, n_variables=3, n_classes=2, parts=4, seed=0, block_rows=65_536):
    """Random codes whose law depends on the class, with their own tables."""
    draw = np.random.default_rng(seed)
    y = draw.integers(0, n_classes, n)
    hidden = draw.normal(size=n)
    codes = np.empty((n, n_variables), dtype=np.uint8)
    weight = draw.integers(1, 4, n).astype(float)
    tables = []
    for k in range(n_variables):
        strength = draw.uniform(0.0, 1.2)
        x = strength * y + 0.6 * hidden + draw.normal(size=n)
        codes[:, k] = np.searchsorted(np.quantile(x, np.linspace(0, 1, parts + 1)[1:-1]), x)
        table = np.zeros((parts, n_classes))
        np.add.at(table, (codes[:, k], y), weight)
        tables.append(table)
    totals = np.bincount(y, weights=weight, minlength=n_classes)
    logs = LogTables.of(tables, totals)
    return CodedRows(ArraySource(codes, y, weight, block_rows=block_rows), logs)


def plain_loss(rows: CodedRows, w) -> float:
    """Equation (2), written out."""
    source, tables = rows.source, rows.tables
    total = 0.0
    for x, label, weight in zip(source.X, source.y, source.weight, strict=True):
        likelihood = [
            np.exp(tables.log_prior[j])
            * np.prod([np.exp(tables.table(k)[x[k], j]) ** w[k] for k in range(len(w))])
            for j in range(tables.n_classes)
        ]
        total -= weight * np.log(likelihood[label] / np.sum(likelihood))
    return total


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_compiled_pass_is_equation_2(n_classes):
    rows = coded_rows(n=150, n_classes=n_classes, seed=n_classes)
    for w in (np.zeros(3), np.array([0.3, 0.0, 1.0]), np.full(3, 0.7)):
        assert rows.loss(w) == pytest.approx(plain_loss(rows, w), rel=1e-12)
        scores = scores_of(rows.tables, rows.source.X, w)
        own = posterior(scores)[np.arange(150), rows.source.y]
        assert rows.loss(w) == pytest.approx(-rows.source.weight @ np.log(own), rel=1e-12)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_slope_and_curvature_by_finite_differences(n_classes):
    rows = coded_rows(n_classes=n_classes, seed=7)
    w, h = np.array([0.2, 0.6, 0.9]), 1e-5
    slope = rows.loss_and_slope(w)[1]
    curvature = rows.curvature(w, np.arange(3))
    for k in range(3):
        step = h * np.eye(3)[k]
        up, down = rows.loss_and_slope(w + step), rows.loss_and_slope(w - step)
        assert slope[k] == pytest.approx((up[0] - down[0]) / (2 * h), rel=1e-6)
        np.testing.assert_allclose(curvature[k], (up[1] - down[1]) / (2 * h), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("power", [0.5, 1.0, 1.7, 2.0])
def test_gradient_5_by_finite_differences(power):
    rows = coded_rows(seed=3)
    criterion = WeightedBayes(np.array([12.0, 30.0, 7.0]), 0.4, power)
    w, h = np.array([0.25, 0.5, 0.8]), 1e-6
    slope = criterion.slope(w, rows.loss_and_slope(w)[1])
    for k in range(3):
        step = h * np.eye(3)[k]
        up = criterion.value(w + step, rows.loss(w + step))
        down = criterion.value(w - step, rows.loss(w - step))
        assert slope[k] == pytest.approx((up - down) / (2 * h), rel=1e-5)


def test_blocks_do_not_change_a_pass():
    whole, cut = coded_rows(seed=1), coded_rows(seed=1, block_rows=37)
    w = np.array([0.4, 0.1, 0.9])
    np.testing.assert_allclose(whole.loss_and_slope(w)[1], cut.loss_and_slope(w)[1], rtol=1e-12)
    np.testing.assert_allclose(
        whole.curvature(w, np.arange(3)), cut.curvature(w, np.arange(3)), rtol=1e-12
    )


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1.0, 1.3, 2.0]), st.integers(2, 4))
def test_the_criterion_is_convex_for_power_at_least_one(seed, power, n_classes):
    rows = coded_rows(n=60, n_classes=n_classes, seed=seed)
    criterion = WeightedBayes(np.array([5.0, 9.0, 2.0]), 0.3, power)
    draw = np.random.default_rng(seed)
    a, b, t = draw.random(3), draw.random(3), draw.random()
    values = [criterion.value(w, rows.loss(w)) for w in (a, b, t * a + (1 - t) * b)]
    assert values[2] <= t * values[0] + (1 - t) * values[1] + 1e-9


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1.0, 1.3, 2.0]))
def test_the_tangent_bound_holds_everywhere(seed, power):
    rows = coded_rows(n=80, seed=seed)
    criterion = WeightedBayes(np.array([5.0, 9.0, 2.0]), 0.3, power)
    best = newton_weights(rows, criterion, tol=1e-10).value
    w = np.round(np.random.default_rng(seed).random(3), 1)
    value = criterion.value(w, rows.loss(w))
    gap = criterion.gap(w, rows.loss_and_slope(w)[1])
    assert gap >= value - best - 1e-9


@pytest.mark.parametrize(
    ("power", "n_variables"), [(1.0, 2), (1.0, 3), (2.0, 2), (0.5, 2), (0.5, 3)]
)
def test_brute_force_over_a_grid(power, n_variables):
    rows = coded_rows(n=200, n_variables=n_variables, seed=5)
    criterion = WeightedBayes(np.linspace(10.0, 40.0, n_variables), 0.5, power)
    found = best_weights(rows, criterion, total=400.0, level=5, rng=np.random.default_rng(0))
    grid = np.linspace(0.0, 1.0, 41 if n_variables == 2 else 17)
    points = np.array(list(itertools.product(grid, repeat=n_variables)))
    values = np.array([criterion.value(w, rows.loss(w)) for w in points])
    assert found.value <= values.min() + 1e-9
    nearest = np.abs(points - found.point).max(axis=1).argmin()
    assert values[nearest] >= found.value
    assert found.value - found.gap <= values.min()


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("n_classes", [2, 6])
def test_newton_reaches_the_optimum_of_a_general_solver(power, n_classes):
    rows = coded_rows(n=1500, n_variables=12, n_classes=n_classes, parts=6, seed=2)
    criterion = WeightedBayes(np.linspace(5.0, 60.0, 12), 0.3, power)
    found = newton_weights(rows, criterion)

    def both(w):
        loss, slope = rows.loss_and_slope(w)
        return criterion.value(w, loss), criterion.slope(w, slope)

    peer = minimize(
        both,
        np.full(12, 0.5),
        jac=True,
        bounds=[(0, 1)] * 12,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 2000},
    )
    assert found.converged
    assert found.value == pytest.approx(peer.fun, rel=1e-8)
    assert found.value - peer.fun + 1e-9 * peer.fun >= 0.0
    assert found.value - peer.fun <= found.gap + 1e-9 * peer.fun
    assert ((found.point >= 0) & (found.point <= 1)).all()
    if power == 1.0:
        assert (found.point == 0.0).any(), "the penalty should exclude some variable exactly"


def test_many_variables_are_solved_through_a_working_set(monkeypatch):
    import laconic.bayes.solver as solver

    rows = coded_rows(n=600, n_variables=30, seed=9)
    criterion = WeightedBayes(np.full(30, 15.0), 0.2, 1.0)
    whole = newton_weights(rows, criterion)
    monkeypatch.setattr(solver, "WORKING_SET", 12)
    by_parts = newton_weights(rows, criterion)
    assert by_parts.converged
    assert by_parts.value == pytest.approx(whole.value, rel=1e-7)


def test_power_below_one_is_bounded_by_its_convex_envelope():
    rows = coded_rows(n=500, n_variables=6, seed=4)
    criterion = WeightedBayes(np.full(6, 25.0), 0.5, 0.5)
    found = best_weights(rows, criterion, total=1000.0, level=4, rng=np.random.default_rng(0))
    relaxed = newton_weights(rows, criterion.relaxed())
    start = criterion.value(relaxed.point, rows.loss(relaxed.point))
    assert relaxed.value <= found.value <= start
    assert found.gap >= found.value - start
    after = certified(rows, criterion, Solution(relaxed.point, 0.0, np.inf, 0, "max_iter"))
    assert after.value == pytest.approx(start)
    assert after.gap >= after.value - found.value
    with pytest.raises(ValueError, match="convex"):
        criterion.gap(relaxed.point, relaxed.point)


def restricted_minimum(rows, criterion, kept):
    """Criterion (4) over some variables only, by a general solver."""

    def both(w):
        loss, slope = rows.loss_and_slope(w)
        return criterion.value(w, loss), criterion.slope(w, slope)

    bounds = [(0, 1) if k in kept else (0, 0) for k in range(rows.n_variables)]
    start = np.array([0.5 if k in kept else 0.0 for k in range(rows.n_variables)])
    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 2000}
    return minimize(both, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options).fun


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("penalty", [0.0, 0.1])
def test_thinning_leaves_out_what_saves_little_and_nothing_else(n_classes, penalty):
    rows = coded_rows(n=600, n_variables=7, n_classes=n_classes, seed=11)
    criterion = WeightedBayes(np.linspace(5.0, 20.0, 7), penalty, 1.0)
    best = newton_weights(rows, criterion)
    min_gain = 4.0
    thin = thinned(rows, criterion, best, min_gain=min_gain)
    kept = set(np.flatnonzero(thin.point).tolist())
    full = set(np.flatnonzero(best.point).tolist())
    assert 0 < len(kept) < len(full)
    assert thin.value == pytest.approx(restricted_minimum(rows, criterion, kept), rel=1e-5)
    excess = thin.value - best.value
    assert 0 < excess <= min_gain * len(full - kept)
    assert excess <= thin.gap <= excess + best.gap + 1e-9
    # by brute force, every variable that is left saves more
    for k in kept:
        assert restricted_minimum(rows, criterion, kept - {k}) > thin.value + min_gain


def test_thinning_follows_backward_elimination_by_brute_force():
    rows = coded_rows(n=600, n_variables=7, seed=11)
    criterion = WeightedBayes(np.linspace(5.0, 20.0, 7), 0.1, 1.0)
    best = newton_weights(rows, criterion)
    kept, value = set(np.flatnonzero(best.point).tolist()), best.value
    while len(kept) > 2:
        after = {k: restricted_minimum(rows, criterion, kept - {k}) for k in kept}
        cheapest = min(after, key=after.get)
        rise = after[cheapest] - value
        if rise > 1.0:
            # just dearer than allowed: it stays, and all before it went
            thin = thinned(rows, criterion, best, min_gain=0.8 * rise)
            assert set(np.flatnonzero(thin.point).tolist()) == kept
            thin = thinned(rows, criterion, best, min_gain=1.01 * rise)
            assert set(np.flatnonzero(thin.point).tolist()) <= kept - {cheapest}
            break
        kept, value = kept - {cheapest}, after[cheapest]
    else:
        pytest.fail("no removal is dear enough")


def test_a_passed_deadline_still_gives_a_certified_point():
    rows = coded_rows(seed=6)
    criterion = WeightedBayes(np.full(3, 5.0), 0.1, 1.0)
    stopped = newton_weights(rows, criterion, deadline=Deadline(-1.0))
    best = newton_weights(rows, criterion)
    assert stopped.why_stopped == "budget"
    assert stopped.gap >= stopped.value - best.value > 0


def test_costs_prefer_simple_variables_and_never_reward():
    cost = variable_costs(np.array([0.1, 40.0]), np.array([0.0, np.log(9)]), np.array([0.0, 3.0]))
    np.testing.assert_allclose(cost, [0.0, np.log(9) - 1 + 43.0])


def test_of_two_equal_variables_the_cheaper_takes_all():
    one = coded_rows(n=500, n_variables=1, seed=8)
    codes = np.repeat(one.source.X, 2, axis=1)
    tables = LogTables.of([one.tables.class_weights] * 2, one.tables.class_weights.sum(axis=0))
    rows = CodedRows(ArraySource(codes, one.source.y, one.source.weight), tables)
    found = newton_weights(rows, WeightedBayes(np.array([20.0, 10.0]), 0.1, 1.0), tol=1e-9)
    assert found.point[0] == 0.0
    assert found.point[1] > 0.1


def test_selection_prior_counts_selections():
    from math import comb, log

    for n_variables, chosen in ((5, 0), (5, 2), (9, 9)):
        expected = log(n_variables + 1) + log(comb(n_variables + chosen - 1, chosen))
        assert selection_prior(n_variables, chosen) == pytest.approx(expected)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_map_selection_is_the_best_of_all_subsets(n_classes):
    rows = coded_rows(n=300, n_variables=6, n_classes=n_classes, seed=11)
    preparation = np.linspace(3.0, 20.0, 6)
    found = select_variables(rows, preparation, total=600.0, rng=np.random.default_rng(0))
    every = [
        rows.loss(np.array(s, float)) + selection_prior(6, sum(s)) + preparation @ np.array(s)
        for s in itertools.product((0, 1), repeat=6)
    ]
    assert found.value == pytest.approx(min(every), rel=1e-12)
    assert 0 < found.point.sum() < 6
    average = found.details["average"]
    assert ((average >= 0) & (average <= 1)).all()
    assert average[found.point == 1].min() > average[found.point == 0].max()


def _reference(name: str) -> dict:
    folder = os.environ.get("LACONIC_DATA")
    path = Path(folder).parent / "reference" / "khiops_modl.json" if folder else None
    if path is None or not path.exists():
        pytest.skip("reference values not on this machine: khiops_modl.json")
    return json.loads(path.read_text())["datasets"][name]


def _reference_tables(reference: dict) -> tuple[list[dict], LogTables, np.ndarray]:
    by_name = {v["name"]: v for v in reference["variables"]}
    chosen = [by_name[v["name"]] for v in reference["snb"]]
    counts = [np.array(v["part_class_counts"], dtype=float) for v in chosen]
    weights = np.array([v["weight"] for v in reference["snb"]])
    return chosen, LogTables.of(counts, np.array(reference["class_counts"], float)), weights


@pytest.mark.parametrize("name", ["Adult", "Mushroom"])
def test_importances_of_two_classes_are_those_of_the_reference(name):
    """With more classes the reference takes one class against the rest: another score."""
    reference = _reference(name)
    _, tables, weights = _reference_tables(reference)
    expected = [v["importance"] for v in reference["snb"]]
    score = BayesScore((None,) * len(weights), np.arange(len(weights)), tables, weights)
    np.testing.assert_allclose(score.importances(), expected, atol=2e-6)


@pytest.mark.dataset("adult")
def test_probabilities_are_those_of_the_reference():
    from laconic.data.datasets import load

    reference = _reference("Adult")
    variables, tables, weights = _reference_tables(reference)
    X = load("adult").X.iloc[:10]
    codes = np.empty((10, len(variables)), dtype=np.uint8)
    for k, variable in enumerate(variables):
        values = X[variable["name"]]
        if variable["type"] == "Numerical":
            uppers = [upper for _, upper in variable["partition"][:-1]]
            codes[:, k] = np.searchsorted(uppers, values.to_numpy(), side="left")
            continue
        group = {v: i for i, part in enumerate(variable["partition"]) for v in part}
        texts = values.astype(object).where(values.notna(), "?")
        codes[:, k] = [group.get(t, variable["default_group"]) for t in texts]
    found = smoothed(posterior(scores_of(tables, codes, weights)), reference["n"])
    expected = np.array([row[1:] for row in reference["deployed_first_10_rows"]])
    np.testing.assert_allclose(found, expected, atol=1e-6)
