"""Where additive fits start, how their path is followed, what the evidence of a term is told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from laconic.additive.criterion import AdditivePoint
from laconic.additive.evidence import WANDERING, Smoothness, roughness_units
from laconic.additive.pairs import PairRule, best_amounts, build
from laconic.additive.selection import RATIOS, ratios_below
from laconic.additive.structure import (
    AdditivePlan,
    Stage,
    Structure,
    near_start,
    solve_at,
    stepped_to,
    support,
)
from laconic.additive.terms import (
    PairGrids,
    TermSet,
    grid_margins,
    pair_terms,
    single_terms,
    whiten,
    whiten_all,
)
from laconic.core.gray_zone import TruncatedLogistic
from laconic.data.tables.columns import Schema
from laconic.data.tables.knots import KnotRule, encode, learn_axes

PLAN = AdditivePlan(2, TruncatedLogistic())


def singles_of(X: np.ndarray) -> tuple[TermSet, np.ndarray]:
    table, weight = Schema.learn(X).table, np.ones(len(X))
    return single_terms(encode(table, learn_axes(table, weight, KnotRule(8))), weight), weight


def structure_of(n: int = 3_000) -> tuple[Structure, np.ndarray, np.ndarray]:
    """Ten columns that share a cause; four of them, and a product of two, matter."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10)) + 0.7 * rng.normal(size=(n, 1))
    f = X[:, 0] + np.sin(2 * X[:, 1]) - 0.6 * X[:, 2] + 0.15 * X[:, 3] + X[:, 4] * X[:, 5]
    y = (rng.random(n) < 1 / (1 + np.exp(-f))).astype(np.int64)
    singles, weight = singles_of(X)
    return build(PLAN, singles, y, weight, PairRule(PairGrids(singles, weight), 20)), y, weight


def test_one_newton_step_for_each_penalty_tells_which_terms_stay():
    """The path of single steps against the same path solved to the end."""
    structure, y, weight = structure_of()
    structure = structure.at_amount(60.0)
    start = solve_at(PLAN, structure, y, weight, 0.0, structure.point, 1e-3).point
    exact, numbers, missed = start, [], 0
    for ratio in RATIOS[1:]:
        exact = solve_at(PLAN, structure, y, weight, ratio, exact, 1e-6).point
        ratios = (*ratios_below(ratio), ratio)
        stepped = stepped_to(PLAN, structure, y, weight, ratios, start)
        wanted, found = (support(structure.terms, p) for p in (exact, stepped))
        missed += len(np.setxor1d(wanted, found))
        numbers.append(len(wanted))
    assert numbers[0] > numbers[-1] > 0
    assert missed <= 0.05 * sum(numbers)


def test_penalties_of_the_path_before_one():
    assert ratios_below(RATIOS[1]) == ()
    assert ratios_below(RATIOS[3]) == RATIOS[1:3]
    assert ratios_below(2 * RATIOS[-1]) == RATIOS[1:]


def orthogonal(amount: float) -> tuple[Structure, np.ndarray, np.ndarray]:
    """One column at one amount of smoothness, fitted."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(5_000, 1))
    y = (rng.random(5_000) < 1 / (1 + np.exp(-np.sin(3 * X[:, 0])))).astype(np.int64)
    singles, weight = singles_of(X)
    smooth = Smoothness.start(singles, amount)
    nothing = np.zeros((1, singles.n_coordinates))
    point = AdditivePoint(np.zeros(1), nothing, np.zeros((1, len(y))))
    weak = np.zeros(1, dtype=bool)
    structure = Structure(singles, smooth, np.ones(1), point, weak)
    found = solve_at(PLAN, structure, y, weight, 0.0, None, 1e-8).point
    return replace(structure, point=found), y, weight


def test_a_guess_under_another_penalty_is_shrunk_as_it_would_be_alone():
    """Coordinates of one column hardly share anything: their fit is nearly where they start."""
    free, y, weight = orthogonal(1.0)
    held, _, _ = orthogonal(100.0)
    null = replace(
        held, point=AdditivePoint(np.zeros(1), 0 * held.point.coordinates, 0.0 * y[None])
    )
    start = near_start(PLAN, null, y, weight, Stage(free.smoothness, free.point))
    far = np.abs(free.point.coordinates - held.point.coordinates).max()
    near = np.abs(start.coordinates - held.point.coordinates).max()
    assert near < 0.15 * far
    rows = np.zeros_like(start.scores)
    slot, way = held.terms.rows.column(0)
    values = held.terms.values(0, start.coordinates)[:, 0]
    rows[0] = start.intercept[0] + (1 - way) * values[slot] + way * np.append(values, 0)[slot + 1]
    np.testing.assert_allclose(start.scores, rows, atol=1e-6)


def test_the_cheaper_start_is_taken():
    held, y, weight = orthogonal(100.0)
    wrong = AdditivePoint(np.zeros(1), -5 * held.point.coordinates, np.zeros((1, len(y))))
    assert near_start(PLAN, held, y, weight, Stage(held.smoothness, wrong)) is held.point
    assert near_start(PLAN, held, y, weight, None) is held.point


def test_pairs_start_where_their_evidence_is_largest():
    found = best_amounts(np.array([[0.0, 3.0, *[1.0] * 11], [*[0.0] * 12, 0.5]]))
    np.testing.assert_allclose(found, [10**-1.5, 1e4])
    X = np.random.default_rng(0).normal(size=(200, 3))
    singles, weight = singles_of(X)
    terms = singles.extended(pair_terms(singles, [(0, 1), (1, 2)], weight))
    units = roughness_units(terms)[3:]
    smooth = Smoothness.start(singles).extended(terms, None, found)
    np.testing.assert_allclose(smooth.bend[3:] * units, found)
    np.testing.assert_array_equal(smooth.power[3:], WANDERING)
    # an amount that the user asks for stays
    fixed = Smoothness.start(singles, 5.0).extended(terms, 5.0, found)
    np.testing.assert_allclose(fixed.bend[3:] * units, 5.0)


@pytest.mark.parametrize("penalty", [1e-3, 1.0, 1e3])
def test_degrees_of_freedom_are_those_of_the_whole_block_but_for_a_bound(penalty):
    """A coordinate left on its own may count by h / (h + D) <= 1/31 too much, others hardly."""
    from laconic.additive._numba_blocks import evidence_sums

    singles, _ = singles_of(np.random.default_rng(0).normal(size=(300, 1)))
    r = int(singles.rank[0])
    H = np.cov(np.random.default_rng(1).normal(size=(r, 40)))
    D = penalty * 10.0 ** np.linspace(0.0, 3.0, r)
    sums = np.empty((1, 6))
    work, place, g = np.array([0]), np.array([0, r * r]), np.zeros((1, r))
    evidence_sums(singles.packed[1], work, H.ravel(), place, D, D, g, sums)
    exact = r - D @ np.diag(np.linalg.inv(H + np.diag(D)))
    n_alone = int((30.0 * np.diag(H) < D).sum())
    assert (n_alone > 0) == (penalty > 1e-3)
    assert exact - 1e-9 <= r - sums[0, 1] <= exact + 1e-9 + n_alone / 31


def test_building_starts_strong_pairs_at_their_own_amounts(monkeypatch):
    """Without a step of the evidence they stay there."""
    monkeypatch.setattr("laconic.additive.pairs._PAIR_STEPS", 0)
    structure, _, _ = structure_of(1_000)
    strong = np.array([len(term.columns) == 2 for term in structure.terms.terms]) & ~structure.weak
    assert strong.any()
    tried = np.log10((structure.smoothness.bend * roughness_units(structure.terms))[strong])
    np.testing.assert_allclose(2 * tried, np.round(2 * tried), atol=1e-9)
    np.testing.assert_array_equal(structure.smoothness.power[strong], WANDERING)


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
    monkeypatch.setattr("laconic.additive.terms._WHITENED", 1)
    for one, other in zip(many, pair_terms(singles, pairs, weight), strict=True):
        assert one.columns == other.columns
        np.testing.assert_array_equal(one.shape.basis, other.shape.basis)
        np.testing.assert_array_equal(one.shape.rough, other.shape.rough)


def test_more_rows_than_the_choice_are_all_fitted_and_certified(monkeypatch):
    """Terms, amounts and penalty from some of the rows; the model and its gap from all of them."""
    from laconic import SparseAdditiveClassifier

    monkeypatch.setattr("laconic.additive.fit.CHOICE_ROWS", 1_000)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 5))
    y = rng.random(4_000) < 1 / (1 + np.exp(-2 * X[:, 0] - np.sin(3 * X[:, 1])))
    model = SparseAdditiveClassifier(random_state=0).fit(X, y)
    assert {"x0", "x1"} <= {term.columns[0] for term in model.terms_}
    assert model.duality_gap_ <= 1e-5 * model.objective_
    assert np.isfinite(model.held_out_proba_).all(axis=1).sum() == 1_000
    # without penalty on the intercept, the mean probability is the share of all rows
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=1e-3)
