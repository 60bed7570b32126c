"""Passes over yes/no columns and grids, and the preconditioner of the conjugate steps."""

from __future__ import annotations

import numpy as np
import pytest

from laconic.additive import solver as additive_precondition
from laconic.additive.evidence import roughness_units
from laconic.additive.pairs import dense_coordinates
from laconic.additive.solver import Preconditioner, QuadraticModel, compact
from laconic.additive.terms import TermSet, pair_terms, single_terms
from laconic.data.tables.columns import Schema
from laconic.data.tables.knots import KnotRule, encode, learn_axes


def terms_of(n: int, seed: int = 0) -> TermSet:
    """Two yes/no columns, two numeric ones that nearly agree, a count; four pairs."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    X = np.column_stack(
        [
            rng.integers(0, 2, n),
            rng.random(n) < 0.2,
            x,
            x + 0.1 * rng.normal(size=n),
            rng.poisson(1.0, n).clip(0, 3),
        ]
    )
    table, weight = Schema.learn(X).table, np.ones(n)
    singles = single_terms(encode(table, learn_axes(table, weight, KnotRule(8))), weight)
    return singles.extended(pair_terms(singles, [(0, 1), (2, 3), (0, 2), (1, 4)], weight))


def model_of(terms: TermSet, curves: np.ndarray) -> QuadraticModel:
    rows, packed = terms.packed
    zeros = np.zeros_like(curves)
    theta = np.random.default_rng(5).normal(size=(len(curves), terms.n_coordinates))
    slope = np.full(len(curves), 2.0)
    return QuadraticModel(rows, packed, theta, slope, curves, zeros, zeros.copy())


def curvature(terms: TermSet, curve: np.ndarray) -> np.ndarray:
    """Z h Z' of all coordinates and the intercept, from the dense coordinates."""
    lines = np.vstack([dense_coordinates(terms), np.ones(terms.rows.n_rows)])
    return (lines * curve) @ lines.T


@pytest.mark.parametrize("n", [7, 1_001])
@pytest.mark.parametrize("some", [False, True])
def test_yes_no_columns_and_grids_against_cell_by_cell(n, some):
    from laconic.additive._numba_rows import coordinate_sums, score_change

    terms = terms_of(1_001)
    kept = np.arange(n)
    rows, packed = terms.packed
    if some or n < 1_001:
        rows, packed = compact(rows, packed, np.arange(9), kept)
    for marked in (rows.yes_no, rows.coarse_yes_no):
        assert marked.tolist() == [True, True, False, False, False]
    fine, ways = terms.rows, np.zeros((9, n))
    values = np.random.default_rng(1).normal(size=(1, n))
    g = np.random.default_rng(2).normal(size=(1, terms.n_coordinates))
    found = np.zeros((1, terms.n_coordinates))
    coordinate_sums(rows, packed, np.arange(9), values, found)
    total = np.zeros((1, n))
    score_change(rows, packed, np.arange(9), g, np.array([0.5]), total)
    for t, term in enumerate(terms.terms):
        part = slice(terms.start[t], terms.start[t] + terms.rank[t])
        shares = np.ones((n, 1))
        for j, axis in zip(term.columns, term.axes, strict=True):
            slot, way = fine.column(j)
            if term.width:
                coarse = terms.coarse[j]
                way = coarse.base[slot] + coarse.step[slot] * way
                slot = coarse.index[slot].astype(int)
            own = np.zeros((n, axis.size + 1))
            own[kept, slot[kept]] = 1 - way[kept]
            own[kept, slot[kept] + 1] += way[kept]
            shares = (shares[:, :, None] * own[:, None, : axis.size]).reshape(n, -1)
        np.testing.assert_allclose(
            found[:, part], values @ shares @ term.shape.basis, rtol=1e-5, atol=1e-4
        )
        ways[t] = shares @ term.shape.basis @ g[0, part]
    np.testing.assert_allclose(total[0], 0.5 + ways.sum(axis=0), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("n_scores", [1, 2])
def test_preconditioner_is_the_inverse_where_all_coordinates_are_told(n_scores):
    from laconic.additive._numba_solver import _precondition

    terms = terms_of(800)
    curves = np.random.default_rng(3).random((n_scores, 800))
    penalty = np.random.default_rng(4).random(terms.n_coordinates)
    found = Preconditioner.at(terms, model_of(terms, curves), np.arange(9), penalty)
    assert len(found.joint) == min(terms.n_coordinates, 40 + 2 * 9)
    found = Preconditioner.at(terms, model_of(terms, curves), np.arange(9), penalty, True)
    assert len(found.joint) == terms.n_coordinates
    x, xb = np.random.default_rng(6).normal(size=(n_scores, terms.n_coordinates)), np.ones(n_scores)
    out, outb = np.empty_like(x), np.empty(n_scores)
    _precondition(*found.arrays, x, xb, out, outb)
    shifts = np.empty(n_scores)
    for k in range(n_scores):
        A = curvature(terms, curves[k]) + np.diag(np.append(penalty, 0.0))
        wanted = np.linalg.solve(A, np.append(x[k], xb[k]))
        np.testing.assert_allclose(out[k], wanted[:-1], rtol=1e-4, atol=1e-7)
        shifts[k] = wanted[-1]
    # a common shift of the intercepts of several classes changes nothing and is left out
    shifts -= shifts.mean() if n_scores > 1 else 0.0
    np.testing.assert_allclose(outb, shifts, rtol=1e-4, atol=1e-7)


def test_strong_penalties_need_no_factor():
    terms = terms_of(800)
    curves = np.full((1, 800), 0.2)
    penalty = np.full(terms.n_coordinates, 1e4)
    penalty[3] = 1.0
    found = Preconditioner.at(terms, model_of(terms, curves), np.arange(9), penalty)
    assert found.joint.tolist() == [3]
    np.testing.assert_allclose(found.scale[0], 160.0 + penalty)
    outside = Preconditioner.at(terms, model_of(terms, curves), np.arange(5, 9), penalty)
    assert len(outside.joint) == 0


def test_some_rows_tell_nearly_the_same_factor(monkeypatch):
    """Rows drawn by curvature: the eigenvalues of one factor seen by the other are near one."""
    terms = terms_of(6_000)
    curves = np.random.default_rng(3).random((1, 6_000))
    smooth = terms.rough < 30 * roughness_units(terms)[terms.owner]
    penalty = np.where((terms.owner < 5) & smooth, 20.0, 1e6)
    model = model_of(terms, curves)
    some = Preconditioner.at(terms, model, np.arange(9), penalty).factors[0]
    monkeypatch.setattr(additive_precondition, "_ENOUGH_ROWS", 10_000)
    every = Preconditioner.at(terms, model, np.arange(9), penalty).factors[0]
    assert len(some) > 9
    assert not np.allclose(some, every)
    turned = np.linalg.solve(every.T, some.T)
    seen = np.linalg.eigvalsh(turned @ turned.T)
    assert 0.5 < seen[0] < seen[-1] < 2.0


def test_few_conjugate_steps_end_where_columns_agree():
    """Two columns that carry the same information: four steps come within a percent."""
    from laconic.additive._numba_solver import conjugate_steps

    terms = terms_of(2_000)
    curves = np.random.default_rng(3).random((1, 2_000))
    penalty = np.where(terms.owner < 5, 0.1, 500.0)
    model = model_of(terms, curves)
    A = curvature(terms, curves[0]) + np.diag(np.append(penalty, 0.0))
    told = -np.append(model.theta[0], model.slope[0])
    best = np.linalg.solve(A, told)
    lowest = 0.5 * best @ A @ best - told @ best
    found = Preconditioner.at(terms, model, np.arange(9), penalty)
    g, b = np.zeros((1, terms.n_coordinates)), np.zeros(1)
    inner = (model.rows, model.terms, np.arange(9), *found.arrays, penalty, g, np.zeros(9))
    conjugate_steps(*inner, *model.arrays, b, 4, 1e-12)
    x = np.append(g[0], b[0])
    assert 0.5 * x @ A @ x - told @ x < 0.99 * lowest
