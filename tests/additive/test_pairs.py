"""Evidence of pairs, each and all together, and which are screened, against dense algebra."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from additive_terms import singles_of
from laconic import SparseAdditiveClassifier
from laconic.additive import pairs, tuning
from laconic.additive.criterion import loss_slopes
from laconic.additive.structure import AdditivePlan, Smoothness, Task, roughness_units
from laconic.additive.terms import PairGrids, pair_terms
from laconic.core.losses import TruncatedLogistic

PLAN = AdditivePlan(2, TruncatedLogistic())


def _fit(n, seed):
    """Terms of three columns, precisions, and slopes and curvatures of some fit."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    terms, _ = singles_of(X)
    smooth = Smoothness.start(terms, 5.0)
    p = rng.uniform(0.1, 0.9, n)
    slope = p - (rng.random(n) < 0.5 + 0.4 * np.tanh(2 * X[:, 0] * X[:, 1]))
    return terms, smooth.diagonal(), slope, p * (1 - p)


def test_dense_coordinates_are_the_scores_of_unit_vectors():
    from laconic.additive._numba_rows import score_change

    terms, *_ = _fit(40, 0)
    rows = pairs.dense_coordinates(terms)
    g = np.random.default_rng(1).normal(size=(1, terms.n_coordinates))
    scores = np.empty((1, 40))
    score_change(*terms.packed, np.arange(len(terms.terms)), g, np.zeros(1), scores)
    np.testing.assert_allclose(g @ rows, scores, atol=1e-12)


def test_product_covariance_is_the_sum_over_pairs():
    terms, *_ = _fit(30, 0)
    rows = pairs.dense_coordinates(terms)
    relative = terms.rough / roughness_units(terms)[terms.owner]
    relative = np.where(relative > 0, relative, 1.0)
    parts = [
        (rows[terms.owner == t].T / relative[terms.owner == t]) @ rows[terms.owner == t]
        for t in range(3)
    ]
    wanted = parts[0] * parts[1] + parts[0] * parts[2] + parts[1] * parts[2]
    # coordinates a hundred times rougher than the smoothest bend are left out
    found = pairs.product_covariance(terms, rows)
    assert np.abs(found - wanted).max() < 0.1 * np.abs(wanted).max()


def test_evidence_together_is_that_of_the_linear_model(monkeypatch):
    """With w = H z the working response, log N(z; 0, H^-1 + K_0 + K / l) minus that without K."""
    monkeypatch.setattr(tuning, "TOGETHER_GRID", (300.0, 30.0, 3.0))
    terms, diagonal, slope, curve = _fit(60, 2)
    rows = pairs.dense_coordinates(terms)
    K = pairs.product_covariance(terms, rows)
    own = (rows.T / diagonal) @ rows + tuning.FLAT
    # scores of a stationary point: f = K_0 (-slope), so that the penalty balances the slopes
    score = -own @ slope
    response = score - slope / curve

    def log_normal(covariance):
        sign, size = np.linalg.slogdet(covariance)
        assert sign > 0
        return -0.5 * (size + response @ np.linalg.solve(covariance, response))

    without = np.diag(1 / curve) + own
    wanted = [log_normal(without + K / a) - log_normal(without) for a in (300.0, 30.0, 3.0)]
    found = pairs.log_bayes_factors_together(terms, diagonal, slope, curve, np.arange(60))
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("strength", "seed"), [(0.2, 0), (0.0, 1)])
def test_many_small_products_are_found_together_and_noise_is_not(strength, seed):
    """No single pair is clear; all of them make predictions better than none."""
    rng = np.random.default_rng(seed)
    n, d = 1_000, 12
    X = rng.normal(size=(3 * n, d))
    signs = rng.choice([-1, 1], size=(d, d))
    weak = sum(signs[a, b] * X[:, a] * X[:, b] for a in range(d) for b in range(a))
    y = rng.random(3 * n) < 1 / (1 + np.exp(-X[:, 0] + X[:, 1] - strength * weak))
    model = SparseAdditiveClassifier(random_state=0).fit(X[:n], y[:n])
    n_pairs = sum(len(term.columns) == 2 for term in model.terms_)
    assert n_pairs > 12 if strength else n_pairs == 0
    if strength:
        plain = SparseAdditiveClassifier(pairs=0, random_state=0).fit(X[:n], y[:n])
        assert _log_loss(model, X[n:], y[n:]) < 0.97 * _log_loss(plain, X[n:], y[n:])


def _log_loss(model, X, y):
    p = np.clip(model.predict_proba(X)[:, 1], 1e-12, 1 - 1e-12)
    return float(-np.mean(np.where(y, np.log(p), np.log1p(-p))))


def test_signs_and_given_smoothness_leave_pairs_to_held_out_rows(monkeypatch):
    monkeypatch.setattr(
        "laconic.additive.pairs.together_smoothing",
        lambda *_: pytest.fail("evidence for free, smooth terms does not hold here"),
    )
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(150, 12)), columns=list("abcdefghijkl"))
    y = rng.random(150) < 1 / (1 + np.exp(-X["a"]))
    SparseAdditiveClassifier(monotone={"a": 1}).fit(X, y)
    SparseAdditiveClassifier(smoothness=10.0).fit(X, y)


@pytest.mark.parametrize("n_scores", [1, 3])
def test_gains_from_one_product_are_those_from_tables(n_scores, monkeypatch):
    """Binary columns, three levels, a constant one and a copy; rows without curvature too."""
    rng = np.random.default_rng(0)
    sizes = np.array([2, 2, 3, 2, 2, 4])
    cells = np.array([rng.integers(0, size, 500) for size in sizes], dtype=np.uint8)
    cells[3], cells[4] = 0, cells[0]
    slopes, curves = rng.normal(size=(n_scores, 500)), rng.uniform(0, 0.25, (n_scores, 500))
    by_product = pairs.all_gains(cells, sizes, slopes, curves)
    monkeypatch.setattr(tuning, "FEW_LEVELS", 0.0)
    by_table = pairs.all_gains(cells, sizes, slopes, curves)
    np.testing.assert_allclose(by_product, by_table, rtol=1e-9, atol=1e-9)
    assert by_table[0, 1] != 0.0


def test_pairs_are_picked_beside_all_others():
    """Two columns that nearly agree share what they tell with a third: another pair tells more."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1_000, 6))
    X[:, 1] = X[:, 0] + 0.1 * rng.normal(size=1_000)
    f = 1.2 * X[:, 0] * X[:, 2] + 0.9 * X[:, 3] * X[:, 4]
    y = (rng.random(1_000) < 1 / (1 + np.exp(-f))).astype(np.int64)
    singles, weight = singles_of(X)
    task = Task(PLAN, y, weight)
    stage = task.evidence_fit(Smoothness.start(singles))
    problem = task.problem(singles, stage.smoothness.diagonal())
    slopes = loss_slopes(problem, stage.point.scores)
    alone, _ = pairs.screen_pairs(singles, np.arange(6), *slopes)
    assert set(alone[:2]) == {(0, 2), (1, 2)}
    grids = pair_terms(singles, alone, weight)
    (beside,) = pairs.largest_beside_all(task, stage, grids, 10.0, 1)
    assert beside.columns == (3, 4)


def test_pairs_start_where_their_evidence_is_largest():
    found = pairs.best_smoothing(np.array([[0.0, 3.0, *[1.0] * 11], [*[0.0] * 12, 0.5]]))
    np.testing.assert_allclose(found, [10**-1.5, 1e4])
    X = np.random.default_rng(0).normal(size=(200, 3))
    singles, weight = singles_of(X)
    terms = singles.extended(pair_terms(singles, [(0, 1), (1, 2)], weight))
    units = roughness_units(terms)[3:]
    smooth = Smoothness.start(singles).extended(terms, None, found)
    np.testing.assert_allclose(smooth.bend[3:] * units, found)
    np.testing.assert_array_equal(smooth.power[3:], tuning.WANDERING)
    # a parameter that the user asks for stays
    fixed = Smoothness.start(singles, 5.0).extended(terms, 5.0, found)
    np.testing.assert_allclose(fixed.bend[3:] * units, 5.0)


def test_building_starts_strong_pairs_at_their_own_parameters(monkeypatch):
    """Without a step of the evidence they stay there."""
    monkeypatch.setattr(tuning, "PAIR_STEPS", 0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_000, 10)) + 0.7 * rng.normal(size=(1_000, 1))
    f = X[:, 0] + np.sin(2 * X[:, 1]) + X[:, 4] * X[:, 5]
    y = (rng.random(1_000) < 1 / (1 + np.exp(-f))).astype(np.int64)
    singles, weight = singles_of(X)
    rule = pairs.PairRule(PairGrids(singles, weight), 20)
    structure = pairs.build(Task(PLAN, y, weight), singles, rule)
    strong = np.array([len(term.columns) == 2 for term in structure.terms.terms]) & ~structure.weak
    assert strong.any()
    tried = np.log10((structure.smoothness.bend * roughness_units(structure.terms))[strong])
    np.testing.assert_allclose(2 * tried, np.round(2 * tried), atol=1e-9)
    np.testing.assert_array_equal(structure.smoothness.power[strong], tuning.WANDERING)


def test_the_screen_of_a_wide_table_ends_where_many_columns_enter_at_once(monkeypatch):
    draw = np.random.default_rng(0)
    y = draw.integers(0, 6, 300)
    centres = draw.normal(size=(6, 5))
    # every column says a little of the classes, and the first five most
    X = (centres[y] + draw.normal(size=(300, 5))) @ draw.normal(size=(5, tuning.WIDE + 20))
    X += draw.normal(size=X.shape)
    X[:, :5] = centres[y] + 0.3 * draw.normal(size=(300, 5))
    terms, _ = singles_of(X)
    task, taken = Task(AdditivePlan(6, TruncatedLogistic()), y, np.ones(300)), []

    def counted(*given, **more):
        found = solve(*given, **more)
        taken.append(found.n_iter)
        return found

    solve = pairs.solve_additive
    monkeypatch.setattr(pairs, "solve_additive", counted)
    kept = pairs.wide_screen(task, terms)
    assert max(taken) == tuning.WIDE_STEPS
    assert set(range(5)) <= set(kept)
    assert len(kept) == tuning.WIDE_KEPT
