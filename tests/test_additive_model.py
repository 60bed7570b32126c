"""What makes the additive fit fast and its shapes honest: rows that curve, powers of roughness."""

from __future__ import annotations

import numpy as np
import pytest

from laconic.data.columns import Schema, Table
from laconic.data.knots import KnotRule, encode, learn_axes
from laconic.solvers import additive_model
from laconic.solvers.additive import AdditiveProblem, loss_slopes, solve_additive
from laconic.solvers.additive_evidence import POWERS, Smoothness
from laconic.solvers.additive_model import QuadraticModel, compact
from laconic.solvers.additive_path import AdditivePlan, evidence_fit
from laconic.solvers.additive_problem import slopes_by_term
from laconic.solvers.additive_terms import TermSet, pair_terms, single_terms


def table_of(n: int, rng: np.random.Generator) -> Table:
    """A line, a yes/no, a yes/no with missing values, a count."""
    gone = np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 2, n))
    X = np.column_stack(
        [rng.normal(size=n), rng.integers(0, 2, n), gone, rng.poisson(1.0, n).clip(0, 3)]
    )
    return Schema.learn(X).table


def terms_of(n: int = 2_003, seed: int = 0) -> tuple[TermSet, np.ndarray, np.ndarray]:
    """Singles and three pairs, of which one has both columns on knots; labels; weights."""
    rng = np.random.default_rng(seed)
    table, weight = table_of(n, rng), np.ones(n)
    singles = single_terms(encode(table, learn_axes(table, weight, KnotRule(8))), weight)
    terms = singles.extended(pair_terms(singles, [(0, 1), (1, 2), (0, 3)], weight))
    x, flag = table.column(0), table.column(1)
    f = 12.0 * x + 3.0 * flag * np.sign(x) - 2.0
    y = (rng.random(n) < 1 / (1 + np.exp(-f))).astype(np.int64)
    return terms, y, weight


def dense(terms: TermSet, t: int) -> np.ndarray:
    """Share of every row in every slot, from the definition of the axes."""
    shares = []
    for j in terms.terms[t].columns:
        slot, way = terms.rows.column(j)
        if len(terms.terms[t].columns) == 2:
            coarse = terms.coarse[j]
            way = coarse.base[slot] + coarse.step[slot] * way
            slot = coarse.index[slot].astype(int)
        size = terms.terms[t].axes[len(shares)].size
        own = np.zeros((len(slot), size + 1))
        own[np.arange(len(slot)), slot] += 1 - way
        own[np.arange(len(slot)), slot + 1] += way
        shares.append(own[:, :size])
    if len(shares) == 1:
        return shares[0]
    return np.einsum("ia,ib->iab", *shares).reshape(len(shares[0]), -1)


@pytest.mark.parametrize("n", [5, 2_003])
def test_compiled_sums_are_those_of_the_dense_design(n):
    terms, _, _ = terms_of(2_003)
    terms = terms.on(terms.rows.take(np.arange(n)))
    values = np.random.default_rng(1).normal(size=(1, n))
    found = slopes_by_term(terms, values)
    ways = terms.packed[0].coarse_way
    assert ways[1] == ways[2] == 0 < ways[0]
    for t in range(len(terms.terms)):
        wanted = values @ dense(terms, t) @ terms.terms[t].shape.basis
        part = slice(terms.start[t], terms.start[t] + terms.rank[t])
        np.testing.assert_allclose(found[:, part], wanted, atol=1e-4)


def test_compact_rows_give_the_sums_of_the_kept_rows():
    from laconic.solvers.hot_additive_rows import coordinate_sums

    terms, _, _ = terms_of()
    values = np.random.default_rng(1).normal(size=(1, terms.rows.n_rows))
    kept = np.flatnonzero(np.random.default_rng(2).random(terms.rows.n_rows) < 0.3)
    alone = np.where(np.isin(np.arange(terms.rows.n_rows), kept), values, 0.0)
    for work in (np.arange(7), np.array([0, 5]), np.array([3]), np.array([4, 6])):
        few = compact(*terms.packed, work, kept)
        out = np.zeros((1, terms.n_coordinates))
        coordinate_sums(*few, work, np.ascontiguousarray(values[:, kept]), out)
        np.testing.assert_allclose(out, slopes_by_term(terms, alone, work), atol=1e-9)
    assert few[0].slots.shape[0] == 0  # pairs alone need no fine slots


@pytest.mark.parametrize("group", [0.0, 1.0])
def test_rows_that_hardly_curve_change_the_way_and_not_the_end(group, monkeypatch):
    terms, y, weight = terms_of()
    diagonal = 0.02 * np.maximum(terms.rough, 1.0) + 0.1
    problem = AdditiveProblem(terms, y, weight, np.full(7, group), diagonal)
    kept = []
    at = QuadraticModel.at.__func__

    def watched(cls, *rest):
        model = at(cls, *rest)
        kept.append(model.curves.shape[1])
        return model

    monkeypatch.setattr(QuadraticModel, "at", classmethod(watched))
    few = solve_additive(problem, tol=1e-8, max_iter=200)
    assert min(kept) < 0.66 * len(y)
    monkeypatch.setattr(additive_model, "_FEW_ROWS", 10**9)
    every = solve_additive(problem, tol=1e-8, max_iter=200)
    assert few.why_stopped == every.why_stopped == "gap"
    assert few.value == pytest.approx(every.value, rel=2e-8)
    np.testing.assert_allclose(few.point.coordinates, every.point.coordinates, atol=2e-2)


def fitted_powers(shape, n: int = 20_000) -> float:
    """Power that the evidence finds for one column with log-odds ``shape``."""
    rng = np.random.default_rng(3)
    x = rng.random((n, 1))
    table, weight = Schema.learn(x).table, np.ones(n)
    terms = single_terms(encode(table, learn_axes(table, weight, KnotRule(32))), weight)
    y = (rng.random(n) < 1 / (1 + np.exp(-shape(x[:, 0])))).astype(np.int64)
    from laconic.criteria.gray_zone import TruncatedLogistic

    plan = AdditivePlan(2, TruncatedLogistic())
    smooth, _ = evidence_fit(plan, terms, y, weight, Smoothness.start(terms))
    return float(smooth.power[0])


def test_evidence_tells_slow_bends_from_steps():
    assert fitted_powers(lambda x: 4 * np.sin(2 * np.pi * x)) == 1.0
    noise = np.random.default_rng(0).normal(size=16)
    assert fitted_powers(lambda x: 3 * noise[(16 * x).astype(int).clip(0, 15)]) < 1.0


def test_power_is_that_of_the_largest_evidence():
    """Against determinants and solves of the same normal model."""
    terms, y, weight = terms_of(400)
    plan_problem = AdditiveProblem(terms, y, weight, np.zeros(7), np.ones(terms.n_coordinates))
    point = solve_additive(plan_problem, tol=1e-9).point
    _, curves = loss_slopes(plan_problem, point.scores)
    smooth, work = Smoothness.start(terms), np.array([0])
    r = int(terms.rank[0])
    Z = dense(terms, 0) @ terms.terms[0].shape.basis
    H = Z.T @ (curves[0][:, None] * Z)
    H = np.diag(np.diag(H))  # the evidence of the library takes the diagonal
    b = (H + np.diag(smooth.diagonal()[:r])) @ point.coordinates[0, :r]
    best = {}
    for power in POWERS:
        ratio = terms.rough[:r] / smooth.units[0]
        for amount in 10.0 ** np.arange(-2.0, 6.5, 0.5):
            d = np.where(ratio > 0, amount * np.where(ratio > 0, ratio, 1.0) ** power, 0.0)
            bent = ratio > 0
            A, D = H[np.ix_(bent, bent)], np.diag(d[bent])
            told = b[bent] @ np.linalg.solve(A + D, b[bent])
            value = 0.5 * (told - np.linalg.slogdet(np.eye(len(A)) + np.linalg.inv(D) @ A)[1])
            best[power] = max(best.get(power, -np.inf), value)
    for start in POWERS:
        own = Smoothness(terms, smooth.bend.copy(), smooth.line.copy(), smooth.power.copy())
        own.power[0] = start
        # the same b whatever the power it starts from
        D = own.diagonal()[:r]
        g = np.zeros_like(point.coordinates)
        g[0, :r] = np.linalg.solve(H + np.diag(D), b)
        own.choose_powers(g, H.ravel(), np.array([0, r * r]), work)
        top = max(best, key=lambda power: best[power])
        wanted = top if best[top] > best[start] + 2.0 else start
        assert own.power[0] == wanted


def test_few_folds_judge_the_factor_for_all(monkeypatch):
    """The folds that did not judge are fitted at the factor of those that did."""
    from laconic import SparseAdditiveClassifier
    from laconic.estimators import additive_choice

    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    y = rng.random(400) < 1 / (1 + np.exp(-X[:, 0] - np.sin(3 * X[:, 1])))
    monkeypatch.setattr(additive_choice, "_MANY_ROWS", 0)
    choose, seen = additive_choice.Choosing._factor, []

    def watched(self, folds):
        factor, chosen = choose(self, folds)
        seen.append((factor, folds, chosen))
        return factor, chosen

    monkeypatch.setattr(additive_choice.Choosing, "_factor", watched)
    SparseAdditiveClassifier(pairs=0, random_state=0).fit(X, y)
    ((factor, before, after),) = seen
    assert factor != 1.0
    assert len(after) == len(before) == 5
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(new.held_out, old.held_out)
        np.testing.assert_allclose(new.structure.diagonal, factor * old.structure.diagonal)
        assert not np.array_equal(new.scores, old.scores)
