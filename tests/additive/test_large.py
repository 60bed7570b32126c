"""Fits whose rows are summed block by block: the minimum, the certificate, the passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from laconic import SparseAdditiveClassifier, scan
from laconic.additive import tuning
from laconic.additive.criterion import AdditivePoint, best_constant
from laconic.additive.large.newton import LargeTask, shifted
from laconic.additive.large.passes import bands, unbanded
from laconic.additive.structure import AdditivePlan, Smoothness, Structure, Task
from laconic.additive.terms import pair_terms, single_terms
from laconic.core.losses import TruncatedLogistic
from laconic.data.source import ArraySource, Recoded, Recoding
from laconic.data.tables.axes import KnotRule, encode, learn_axes
from laconic.data.tables.columns import Schema

PLANS = {
    "two classes": AdditivePlan(2, TruncatedLogistic()),
    "three classes": AdditivePlan(3, TruncatedLogistic()),
    "zone": AdditivePlan(2, TruncatedLogistic(0.2, 0.7)),
    "monotone": AdditivePlan(2, TruncatedLogistic(), C=0.7, signs=(1, 0, 0)),
}


def both(plan: AdditivePlan, n: int = 3_000, n_sample: int = 500, seed: int = 0):
    """The same problem for all rows in this process, and by blocks beside a sample."""
    draw = np.random.default_rng(seed)
    x, z = draw.normal(size=n), draw.gamma(1.0, size=n)
    # the last ten rows alone have the last level: no row of the sample sees it
    level = np.where(np.arange(n) < n - 10, draw.integers(0, 3, n), 3)
    table = Schema.learn(pd.DataFrame({"x": x, "z": z, "level": level.astype(str)})).table
    f = np.sin(2 * x) + x * (z > 1) + (level == 3) + draw.logistic(size=n)
    y = np.digitize(f, [-0.5] if plan.n_classes == 2 else [-0.5, 1.0]).astype(np.int64)
    weight = draw.choice([0.5, 1.0, 2.0], n)
    axes = learn_axes(table, weight, KnotRule(8))
    rows = encode(table, axes)
    singles = single_terms(rows, weight)
    terms = singles.extended(pair_terms(singles, [(0, 1)], weight))
    structure = structure_of(terms, plan)
    some = np.arange(n_sample)
    task = Task(plan, y, weight)
    sample = replace(task, y=y[some], weight=weight[some])
    on_some = structure_of(terms.on(rows.take(some)), plan)

    def recode(block):
        own = encode(block.X, axes)
        return own.index, own.fraction.ravel(), own.fraction_row

    blocks = ArraySource(table, y, weight, block_rows=700)
    source = Recoded(blocks, Recoding("rows", recode))
    large = LargeTask(sample, source, n, float(weight.sum()))
    return task, structure, large, on_some


def structure_of(terms, plan: AdditivePlan) -> Structure:
    K = 1 if plan.n_classes == 2 else plan.n_classes
    g = np.zeros((K, terms.n_coordinates))
    point = AdditivePoint(np.zeros(K), g, np.zeros((K, terms.rows.n_rows)))
    n_terms = len(terms.terms)
    smooth = Smoothness.start(terms, 0.3)
    return Structure(terms, smooth, np.ones(n_terms), point, np.zeros(n_terms, dtype=bool))


@pytest.mark.parametrize("ratio", [0.0, 0.05])
@pytest.mark.parametrize("kind", PLANS)
def test_blocks_and_a_sample_reach_the_minimum_of_all_rows(kind, ratio):
    # few rows of a sample lie near the kink of a zone
    n_sample, tol = (1_500, 1e-3) if kind == "zone" else (500, 1e-6)
    task, structure, large, on_some = both(PLANS[kind], n_sample=n_sample)
    wanted = task.solve(structure, ratio, None, 1e-9)
    found = large.solve(on_some, ratio, on_some.point, tol)
    assert found.why_stopped == "gap"
    assert 0 <= found.gap <= tol * found.value
    # each is above the minimum by at most its gap
    assert found.value - found.gap <= wanted.value + 1e-9 * wanted.value
    assert wanted.value - wanted.gap <= found.value + 1e-9 * found.value
    close = 3e-2 if kind == "zone" else 5e-3
    np.testing.assert_allclose(found.point.coordinates, wanted.point.coordinates, atol=close)


def test_what_all_rows_show_is_counted_once():
    """Shares by slot come from all rows, the level that the sample lacks included."""
    task, _, large, on_some = both(PLANS["two classes"])
    large.solve(on_some, 0.0, on_some.point, 1e-3)
    share = large.masses[2,]
    weight = task.weight
    assert share[3] == pytest.approx(weight[-10:].sum() / weight.sum())
    assert sum(share) == pytest.approx(1.0)


def test_caution_saves_steps_that_a_poor_sample_makes_too_long():
    """Nine rows stand for three thousand: steps overshoot, and the fit still ends certified."""
    _, _, large, on_some = both(PLANS["two classes"], n_sample=9)
    found = large.solve(on_some, 0.0, on_some.point, 1e-3, max_iter=400)
    assert found.why_stopped == "gap"
    short = large.solve(on_some, 0.0, on_some.point, 1e-3, max_iter=1)
    assert short.why_stopped == "max_iter"
    assert short.gap > 1e-3 * short.value


@pytest.mark.parametrize(("size", "width"), [(1, 0), (5, 0), (6, 1), (6, 2), (12, 4), (4, 2)])
def test_bands_hold_a_table_of_slot_products(size, width):
    draw = np.random.default_rng(size)
    reach = {0, 1} if width == 0 else {0, 1, width - 1, width, width + 1}
    table = np.zeros((size, size))
    for offset in reach:
        for a in range(size - offset):
            table[a, a + offset] = table[a + offset, a] = draw.normal()
    np.testing.assert_array_equal(unbanded(bands(table, width), width), table)


def rows_of(n: int = 3_000, n_classes: int = 2, seed: int = 3) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    a, b = draw.normal(size=n), np.round(draw.gamma(2.0, size=n), 1)
    kind = draw.choice(["x", "y", "z"], n)
    f = 2 * np.sin(2 * a) + a * (b > 2) + (kind == "z") + draw.logistic(size=n)
    label = np.digitize(f, [0.0] if n_classes == 2 else [-1.5, -0.5, 0.5, 1.5])
    return pl.DataFrame({"a": a, "b": b, "kind": kind, "label": label})


@pytest.mark.parametrize("n_classes", [2, 5])
def test_memory_and_files_of_many_rows_give_the_same_bytes(n_classes, tmp_path, monkeypatch):
    monkeypatch.setattr(tuning, "SELECTION_ROWS", 700)
    frame = rows_of(n_classes=n_classes)
    frame.write_parquet(tmp_path / "rows.parquet")
    X, y = frame.drop("label"), frame["label"].to_numpy()
    model = SparseAdditiveClassifier(pairs=1, cv=2, random_state=0)
    held = model.fit(X, y)
    bytes_held = held.predict_proba(X).tobytes(), held.objective_, held.duality_gap_
    assert held.held_out_proba_ is not None
    rows = scan(tmp_path / "rows.parquet", "label")
    found = model.fit(rows)
    assert (found.predict_proba(X).tobytes(), found.objective_, found.duality_gap_) == bytes_held
    assert found.held_out_proba_ is None  # nothing as long as the rows is kept here
    # survey, axes, encoding; two fits, each with a first pass, few steps and a gap
    assert rows.n_passes <= 19


@pytest.mark.parametrize("weighted", [False, True])
def test_no_order_of_many_rows_or_columns_changes_the_model(weighted, tmp_path, monkeypatch):
    monkeypatch.setattr(tuning, "SELECTION_ROWS", 300)
    monkeypatch.setattr("laconic.data.row_draws._BUCKETS", 64)
    frame = rows_of().with_columns(a=pl.col("a").round(1), w=pl.lit(1.0))
    # one row comes 600 times: a sample of all or none of them would choose otherwise
    frame = pl.concat([frame, *[frame[:1]] * 600])
    if weighted:
        frame = frame.with_columns(w=1.0 + ((pl.col("b") > 2) & (pl.col("kind") == "y")))
    order = np.random.default_rng(0).permutation(len(frame))
    moved = frame[order.tolist()].select("w", "kind", "label", "b", "a")
    model = SparseAdditiveClassifier(pairs=1, cv=2, random_state=0)
    X = frame.drop("label", "w")
    wanted = model.fit(X, frame["label"].to_numpy(), frame["w"].to_numpy())
    wanted = (
        wanted.predict_proba(X),
        [sorted(t.columns) for t in wanted.terms_],
        wanted.group_penalty_,
    )
    for name, rows in (("given", frame), ("moved", moved)):
        rows.write_parquet(tmp_path / f"{name}.parquet")
        rows = scan(tmp_path / f"{name}.parquet", "label", weight="w", block_rows=500)
        found = model.fit(rows)
        np.testing.assert_allclose(found.predict_proba(X), wanted[0], atol=1e-9)
        assert [sorted(t.columns) for t in found.terms_] == wanted[1]
        assert found.group_penalty_ == pytest.approx(wanted[2], rel=1e-9)


def test_all_rows_correct_what_the_sample_says(monkeypatch):
    """The mean probability is the share of all rows: the intercept is free."""
    monkeypatch.setattr(tuning, "SELECTION_ROWS", 400)
    frame = rows_of()
    X, y = frame.drop("label"), frame["label"].to_numpy()
    model = SparseAdditiveClassifier(pairs=0, cv=2, tol=1e-8, random_state=0).fit(X, y)
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=1e-5)
    assert model.duality_gap_ <= 1e-8 * model.objective_


@pytest.mark.parametrize("n_rare", [1, 12])
def test_a_class_that_the_sample_may_lack_is_fitted(n_rare, monkeypatch):
    monkeypatch.setattr(tuning, "SELECTION_ROWS", 300)
    frame = rows_of(2_500)
    y = frame["label"].to_numpy().copy()
    y[np.flatnonzero(frame["a"] > 1.5)[:n_rare]] = 2
    model = SparseAdditiveClassifier(pairs=0, cv=2, random_state=0).fit(frame.drop("label"), y)
    assert model.duality_gap_ <= 1e-5 * model.objective_
    proba = model.predict_proba(frame.drop("label"))
    np.testing.assert_allclose(proba.mean(axis=0), np.bincount(y) / len(y), atol=2e-3)


@pytest.mark.parametrize("kind", ["two classes", "three classes"])
def test_the_start_has_the_classes_of_all_rows(kind):
    task, _, large, on_some = both(PLANS[kind])
    n_classes = task.plan.n_classes
    weights = np.bincount(task.y, task.weight)
    uneven = replace(large.sample, weight=large.sample.weight * (1.0 + large.sample.y))
    own = np.bincount(uneven.y, uneven.weight)
    fitted = best_constant(own, task.plan.loss)
    at = replace(on_some, point=replace(on_some.point, intercept=fitted))
    found = shifted(at, uneven, weights)
    np.testing.assert_allclose(found.intercept, best_constant(weights, task.plan.loss))
    np.testing.assert_allclose(found.scores[:, 0], found.intercept)
    without = replace(uneven, y=np.zeros_like(uneven.y))
    far = replace(on_some.point, coordinates=on_some.point.coordinates + 1.0)
    found = shifted(replace(on_some, point=far), without, weights)
    assert not found.coordinates.any()
    np.testing.assert_allclose(found.intercept, best_constant(weights, task.plan.loss))
    assert len(found.intercept) == (1 if n_classes == 2 else n_classes)
