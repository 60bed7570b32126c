"""Where additive fits start, how their path is followed, what weak pairs share."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from additive_terms import singles_of
from laconic.additive.criterion import AdditivePoint
from laconic.additive.pairs import PairRule, build
from laconic.additive.selection import ratios_below
from laconic.additive.structure import (
    AdditivePlan,
    Smoothness,
    Stage,
    Structure,
    Task,
    roughness_units,
    support,
)
from laconic.additive.terms import PairGrids, pair_terms
from laconic.additive.tuning import RATIOS
from laconic.core.losses import TruncatedLogistic

PLAN = AdditivePlan(2, TruncatedLogistic())


def structure_of(n: int = 3_000) -> tuple[Structure, Task]:
    """Ten columns that share a cause; four of them, and a product of two, matter."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10)) + 0.7 * rng.normal(size=(n, 1))
    f = X[:, 0] + np.sin(2 * X[:, 1]) - 0.6 * X[:, 2] + 0.15 * X[:, 3] + X[:, 4] * X[:, 5]
    y = (rng.random(n) < 1 / (1 + np.exp(-f))).astype(np.int64)
    singles, weight = singles_of(X)
    task = Task(PLAN, y, weight)
    return build(task, singles, PairRule(PairGrids(singles, weight), 20)), task


def test_one_newton_step_for_each_penalty_tells_which_terms_stay():
    """The path of single steps against the same path solved to the end."""
    structure, task = structure_of()
    structure = structure.with_weak(60.0)
    start = task.solve(structure, 0.0, structure.point, 1e-3).point
    exact, numbers, missed = start, [], 0
    for ratio in RATIOS[1:]:
        exact = task.solve(structure, ratio, exact, 1e-6).point
        ratios = (*ratios_below(ratio), ratio)
        stepped = task.stepped(structure, ratios, start)
        wanted, found = (support(structure.terms, p) for p in (exact, stepped))
        missed += len(np.setxor1d(wanted, found))
        numbers.append(len(wanted))
    assert numbers[0] > numbers[-1] > 0
    assert missed <= 0.05 * sum(numbers)


def orthogonal(smoothing: float) -> tuple[Structure, Task]:
    """One column at one smoothing parameter, fitted."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(5_000, 1))
    y = (rng.random(5_000) < 1 / (1 + np.exp(-np.sin(3 * X[:, 0])))).astype(np.int64)
    singles, weight = singles_of(X)
    smooth = Smoothness.start(singles, smoothing)
    nothing = np.zeros((1, singles.n_coordinates))
    point = AdditivePoint(np.zeros(1), nothing, np.zeros((1, len(y))))
    weak = np.zeros(1, dtype=bool)
    structure = Structure(singles, smooth, np.ones(1), point, weak)
    task = Task(PLAN, y, weight)
    found = task.solve(structure, 0.0, None, 1e-8).point
    return replace(structure, point=found), task


def test_a_guess_under_another_penalty_is_shrunk_as_it_would_be_alone():
    """Coordinates of one column hardly share anything: their fit is nearly where they start."""
    free, task = orthogonal(1.0)
    held, _ = orthogonal(100.0)
    null = replace(
        held, point=AdditivePoint(np.zeros(1), 0 * held.point.coordinates, 0.0 * task.y[None])
    )
    start = task.near_start(null, Stage(free.smoothness, free.point))
    far = np.abs(free.point.coordinates - held.point.coordinates).max()
    near = np.abs(start.coordinates - held.point.coordinates).max()
    assert near < 0.15 * far
    rows = np.zeros_like(start.scores)
    slot, part = held.terms.rows.column(0)
    values = held.terms.values(0, start.coordinates)[:, 0]
    rows[0] = start.intercept[0] + (1 - part) * values[slot] + part * np.append(values, 0)[slot + 1]
    np.testing.assert_allclose(start.scores, rows, atol=1e-6)


def test_the_cheaper_start_is_taken():
    held, task = orthogonal(100.0)
    wrong = AdditivePoint(np.zeros(1), -5 * held.point.coordinates, np.zeros((1, len(task.y))))
    assert task.near_start(held, Stage(held.smoothness, wrong)) is held.point
    assert task.near_start(held, None) is held.point


def test_a_guess_is_carried_by_columns():
    draw = np.random.default_rng(0)
    singles, weight = singles_of(draw.normal(size=(60, 3)), 6)
    pairs = pair_terms(singles, [(0, 2), (1, 2)], weight)
    known = singles.subset([2, 1]).extended(pairs[:1])
    g = draw.normal(size=(1, known.n_coordinates))
    point = AdditivePoint(np.array([0.5]), g, np.zeros((1, 60)))
    parameters = (np.array([3.0, 4.0, 5.0]), np.array([6.0, 7.0, 8.0]), np.array([1.0, 0.5, 0.25]))
    smooth = Smoothness(known, *parameters)
    terms = singles.extended(pairs)
    carried = Stage(smooth, point).carried(terms)
    for t, source in {1: 1, 2: 0, 3: 2}.items():
        np.testing.assert_array_equal(terms.values(t, carried.coordinates), known.values(source, g))
    assert not terms.values(0, carried.coordinates).any()
    assert not terms.values(4, carried.coordinates).any()
    assert carried.scores.std() > 0
    new = Smoothness.start(terms, 1.0).guided(smooth)
    np.testing.assert_array_equal(new.bend[1:4], [4.0, 3.0, 5.0])
    np.testing.assert_array_equal(new.line[1:4], [7.0, 6.0, 8.0])
    np.testing.assert_array_equal(new.power[1:4], [0.5, 1.0, 0.25])


def test_weak_pairs_share_one_smoothing_parameter():
    singles, weight = singles_of(np.random.default_rng(0).normal(size=(80, 2)))
    terms = singles.extended(pair_terms(singles, [(0, 1)], weight))
    point = AdditivePoint(np.zeros(1), np.zeros((1, terms.n_coordinates)), np.zeros((1, 80)))
    smooth = Smoothness.start(terms, 2.0)
    weak = np.array([False, False, True])
    structure = Structure(terms, smooth, np.ones(3), point, weak)
    np.testing.assert_allclose(structure.scaled(4.0).diagonal, 4.0 * structure.diagonal)
    new, pair = structure.with_weak(50.0).diagonal, terms.owner == 2
    rough, unit = terms.rough[pair], roughness_units(terms)[2]
    assert (rough > 0).any()
    np.testing.assert_allclose(new[pair], np.where(rough > 0, 50.0 * rough / unit, 50.0))
    np.testing.assert_array_equal(new[~pair], smooth.diagonal()[~pair])
    assert [t.columns for t in structure.with_weak(np.inf).terms.terms] == [(0,), (1,)]


def test_negligible_terms_are_dropped():
    terms = SimpleNamespace(owner=np.array([0, 1, 1, 2, 3]), terms=(None,) * 4)
    point = SimpleNamespace(coordinates=np.array([[2.0, 0.003, 0.004, 1e-6, 0.0]]))
    assert support(terms, point).tolist() == [0, 1]
    nothing = SimpleNamespace(coordinates=np.zeros((1, 5)))
    assert support(terms, nothing).tolist() == []
