"""Bases of shapes and grids, and the compiled passes over rows, against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest

from additive_terms import dense, dense_shares, setup, singles_of, terms_of, yes_no_terms
from laconic.additive import tuning
from laconic.additive.criterion import slopes_by_term
from laconic.additive.solver import compact
from laconic.additive.terms import (
    bending,
    grid_margins,
    pair_terms,
    single_terms,
    whiten,
    whiten_all,
)
from laconic.data.tables.axes import KnotAxis, encode
from laconic.data.tables.columns import Table


def test_whitened_basis_has_unit_gram_and_diagonal_roughness():
    rows, axes, _, weight = setup(1)
    shares = dense_shares(rows, 0, axes[0].size)
    gram = shares.T @ (weight[:, None] * shares) / weight.sum()
    rough = bending(axes[0], gram.sum(axis=1))
    shape = whiten(gram, rough, np.ones((axes[0].size, 1)))
    scores = shares @ shape.basis
    np.testing.assert_allclose(weight @ scores, 0.0, atol=1e-9)
    np.testing.assert_allclose(
        scores.T @ (weight[:, None] * scores) / weight.sum(), np.eye(shape.rank), atol=1e-8
    )
    np.testing.assert_allclose(
        shape.basis.T @ rough @ shape.basis, np.diag(shape.rough), atol=1e-6 * rough.max()
    )
    # a straight line in the knots has no roughness (missing at the mean of the rest)
    line = np.append(np.arange(6.0), 0.0)
    line[6] = gram.sum(axis=1)[:6] @ line[:6] / gram.sum(axis=1)[:6].sum()
    assert line @ rough @ line == pytest.approx(0.0, abs=1e-8)


def test_pairs_are_orthogonal_to_functions_of_one_column():
    rng = np.random.default_rng(0)
    n = 400
    X = rng.normal(size=(n, 2))
    X[:, 1] += 0.5 * X[:, 0]
    table = Table(("a", "b"), ("numeric", "numeric"), (None, None), matrix=X)
    axes = [KnotAxis(np.linspace(-2, 2, 5), np.empty(0)) for _ in range(2)]
    rows = encode(table, axes)
    weight = rng.random(n) + 0.5
    base = single_terms(rows, weight)
    terms = base.extended(pair_terms(base, [(0, 1)], weight))
    rng_point = rng.normal(size=terms.rank[2])
    values = (terms.terms[2].shape.basis @ rng_point).reshape(axes[0].size, axes[1].size)
    a, b = (dense_shares(rows, j, axes[j].size) for j in range(2))
    pair = np.einsum("ia,ib,ab->i", a, b, values)
    for margin in (a, b):
        np.testing.assert_allclose((weight * pair) @ margin / weight.sum(), 0.0, atol=1e-7)
    # the compiled passes read the grid as the dense product does
    out = slopes_by_term(terms, (weight * pair)[None, :])[0, terms.start[2] :]
    np.testing.assert_allclose(out / weight.sum(), rng_point, atol=1e-5)


@pytest.mark.parametrize("n", [5, 2_003])
def test_compiled_sums_are_those_of_the_dense_design(n):
    terms, _, _ = terms_of(2_003)
    terms = terms.on(terms.rows.take(np.arange(n)))
    values = np.random.default_rng(1).normal(size=(1, n))
    found = slopes_by_term(terms, values)
    off_knots = terms.packed[0].coarse_fraction_row
    assert off_knots[1] == off_knots[2] == 0 < off_knots[0]
    for t in range(len(terms.terms)):
        wanted = values @ dense(terms, t) @ terms.terms[t].shape.basis
        part = slice(terms.start[t], terms.start[t] + terms.rank[t])
        np.testing.assert_allclose(found[:, part], wanted, atol=1e-4)


@pytest.mark.parametrize("n", [7, 1_001])
@pytest.mark.parametrize("some", [False, True])
def test_yes_no_columns_and_grids_against_cell_by_cell(n, some):
    from laconic.additive._numba_rows import coordinate_sums, score_change

    terms = yes_no_terms(1_001)
    kept = np.arange(n)
    rows, packed = terms.packed
    if some or n < 1_001:
        rows, packed = compact(rows, packed, np.arange(9), kept)
    for marked in (rows.yes_no, rows.coarse_yes_no):
        assert marked.tolist() == [True, True, False, False, False]
    fine, parts = terms.rows, np.zeros((9, n))
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
            slot, fraction = fine.column(j)
            if term.width:
                coarse = terms.coarse[j]
                fraction = coarse.base[slot] + coarse.step[slot] * fraction
                slot = coarse.index[slot].astype(int)
            own = np.zeros((n, axis.size + 1))
            own[kept, slot[kept]] = 1 - fraction[kept]
            own[kept, slot[kept] + 1] += fraction[kept]
            shares = (shares[:, :, None] * own[:, None, : axis.size]).reshape(n, -1)
        np.testing.assert_allclose(
            found[:, part], values @ shares @ term.shape.basis, rtol=1e-5, atol=1e-4
        )
        parts[t] = shares @ term.shape.basis @ g[0, part]
    np.testing.assert_allclose(total[0], 0.5 + parts.sum(axis=0), rtol=1e-5, atol=1e-4)


def test_shapes_do_not_depend_on_which_are_made_together():
    """Grids with and without empty cells and rows, alone and together, against the conditions."""
    rng = np.random.default_rng(0)
    grams, roughnesses = [], []
    for seen in (12, 12, 7, 4, 1):
        share = np.bincount(rng.integers(0, seen, 60), minlength=12) / 60
        grams.append(np.diag(share))
        Q = rng.normal(size=(12, 12))
        roughnesses.append(Q @ Q.T)
    removed = grid_margins(3, 4)
    together = whiten_all(np.stack(grams), np.stack(roughnesses), removed)
    for gram, roughness, shape in zip(grams, roughnesses, together, strict=True):
        alone = whiten(gram, roughness, removed)
        np.testing.assert_array_equal(shape.basis, alone.basis)
        np.testing.assert_array_equal(shape.rough, alone.rough)
        inner = shape.basis.T @ gram @ shape.basis
        np.testing.assert_allclose(inner, np.eye(shape.rank), atol=1e-9)
        np.testing.assert_allclose(shape.basis.T @ gram @ removed, 0.0, atol=1e-9)
        rough = shape.basis.T @ roughness @ shape.basis
        slack = 1e-7 * (1.0 + np.abs(rough).max(initial=0.0))
        # nothing that no row sees would make it smoother
        empty = np.diag(gram) == 0.0
        np.testing.assert_allclose(roughness[empty] @ shape.basis, 0.0, atol=slack)
        np.testing.assert_allclose(rough, np.diag(shape.rough), atol=slack)
    assert [shape.rank for shape in together] == [6, 6, 2, 0, 0]


def test_grids_do_not_depend_on_how_many_are_made_in_one_go(monkeypatch):
    X = np.random.default_rng(0).normal(size=(300, 4))
    X[:, 3] = X[:, 3] > 0
    singles, weight = singles_of(X)
    pairs = [(0, 1), (0, 3), (1, 2), (2, 3), (0, 2)]
    many = pair_terms(singles, pairs, weight)
    monkeypatch.setattr(tuning, "WHITENED", 1)
    for one, other in zip(many, pair_terms(singles, pairs, weight), strict=True):
        assert one.columns == other.columns
        np.testing.assert_array_equal(one.shape.basis, other.shape.basis)
        np.testing.assert_array_equal(one.shape.rough, other.shape.rough)
