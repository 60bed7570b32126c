"""Axes learned from data, encoded rows, coarse axes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from laconic.data.tables.axes import (
    MOST_SLOTS,
    CategoryAxis,
    IntervalAxis,
    KnotAxis,
    KnotRule,
    axis_from_dict,
    category_axis,
    coarsen,
    encode,
    knot_axis,
    learn_axes,
)
from laconic.data.tables.columns import Schema, Table

floats = st.floats(-1e300, 1e300)


def one_column(values: np.ndarray) -> Table:
    return Table(("x",), ("numeric",), (None,), matrix=np.asarray(values, float)[:, None])


@given(hnp.arrays(float, st.integers(1, 60), elements=st.one_of(floats, st.just(np.nan))))
@settings(max_examples=200, deadline=None)
def test_encoding_reads_a_piecewise_linear_function(values):
    weight = np.ones(len(values))
    axis = knot_axis(values, weight, KnotRule(max_knots=6))
    index, way = axis.encode(values)
    assert ((way >= 0) & (way <= 1)).all()
    assert ((index >= 0) & (index < axis.size)).all()
    assert (way[index >= len(axis.knots) - 1] == 0).all()
    # slot values equal to the knots give x back, clipped to the range of the knots
    with np.errstate(over="ignore"):
        slots = np.concatenate([axis.knots, axis.specials, [np.nan]])
        after = np.minimum(index + 1, axis.size - 1)
        read = np.where(way > 0, (1 - way) * slots[index] + way * slots[after], slots[index])
    wanted = np.clip(values, axis.knots[0], axis.knots[-1])
    wanted = np.where(np.isin(values, axis.specials), values, wanted)
    read, wanted = (np.where(np.isin(values, axis.specials), 0.0, v) for v in (read, wanted))
    scale = np.abs(axis.knots).max() + 1e-300
    np.testing.assert_allclose(read / scale, wanted / scale, atol=1e-6)


@given(st.lists(floats | st.sampled_from([-0.0, 1e6, 1e6 + 1, 0.1, 0.1 + 1e-9]), min_size=1))
@settings(max_examples=200, deadline=None)
def test_labels_are_different_numbers_near_the_knots_and_zero_has_no_sign(values):
    knots = np.unique(values)
    for labels in (KnotAxis(knots, np.array([])).labels(), IntervalAxis(knots).labels()[1:]):
        texts = [label.strip("(").split(",")[0] for label in labels][: len(knots)]
        assert "-0" not in texts
        assert len(set(texts)) == len(knots)
        np.testing.assert_allclose([float(text) for text in texts], knots, rtol=1e-5)


def test_encoded_rows_agree_with_the_axis():
    draw = np.random.default_rng(0)
    X = {
        "a": draw.normal(size=500),
        "b": draw.integers(0, 5, 500).astype(float),
        "c": draw.choice(["u", "v", "w"], 500),
    }
    table = Schema.learn(X).table
    axes = learn_axes(table, np.ones(500), KnotRule())
    rows = encode(table, axes)
    assert rows.index.dtype == np.uint8
    assert rows.fraction.dtype == np.float32
    # few distinct values and categories need no fraction: one byte a cell
    assert rows.fraction_row.tolist() == [0, -1, -1]
    for j, axis in enumerate(axes):
        index, way = rows.column(j)
        values = np.random.default_rng(j).normal(size=axis.size + 1)
        raw = table.column(j)
        if isinstance(axis, CategoryAxis):
            slot, part = axis.encode(raw, table.categories[j])
        else:
            slot, part = axis.encode(raw)
        one = (1 - way) * values[index] + way * values[index + 1]
        other = (1 - part) * values[slot] + part * values[slot + 1]
        np.testing.assert_allclose(one, other, atol=1e-5)
    part = rows.take(np.arange(10, 20))
    np.testing.assert_array_equal(part.index, rows.index[:, 10:20])


def test_few_values_are_all_knots_and_constant_columns_have_one():
    draw = np.random.default_rng(0)
    axis = knot_axis(draw.integers(0, 7, 300).astype(float), np.ones(300), KnotRule())
    assert axis.knots.tolist() == list(range(7))
    assert len(axis.specials) == 0
    assert knot_axis(np.full(9, 3.0), np.ones(9), KnotRule()).knots.tolist() == [3.0]
    assert knot_axis(np.full(9, np.nan), np.ones(9), KnotRule()).size == 2


def test_point_masses_and_far_codes_are_levels():
    draw = np.random.default_rng(0)
    amount = np.exp(draw.normal(5, 3, 5000))
    amount[:800] = 0.0
    assert knot_axis(amount, np.ones(5000), KnotRule()).specials.tolist() == [0.0]
    count = draw.integers(0, 15, 5000).astype(float)
    count[:60], count[60:120] = 96.0, 98.0
    assert knot_axis(count, np.ones(5000), KnotRule()).specials.tolist() == [96.0, 98.0]
    # ages: many values, each above 1 %, none a point mass
    age = np.round(draw.normal(40, 12, 5000))
    assert len(knot_axis(age, np.ones(5000), KnotRule()).specials) == 0


def test_long_tails_get_knots():
    draw = np.random.default_rng(0)
    amount = np.exp(draw.normal(0, 4, 20000))
    knots = knot_axis(amount, np.ones(20000), KnotRule()).knots
    above = (amount > knots[-2]).mean()
    assert above < 0.002
    assert (np.diff(knots) > 0).all()
    assert len(knots) < 60


def test_weight_is_repetition():
    draw = np.random.default_rng(0)
    values = np.round(draw.normal(size=400), 2)
    count = draw.integers(0, 4, 400)
    one = knot_axis(values[count > 0], count[count > 0].astype(float), KnotRule())
    other = knot_axis(np.repeat(values, count), np.ones(count.sum()), KnotRule())
    np.testing.assert_array_equal(one.knots, other.knots)
    np.testing.assert_array_equal(one.specials, other.specials)


def test_rare_categories_share_the_slot_of_unseen_ones():
    codes = np.array([0] * 50 + [1] * 2 + [2] * 30, dtype=np.int32)
    axis = category_axis(codes, ("a", "b", "c"), np.ones(82), KnotRule())
    assert axis.groups == (("a",), ("c",))
    slots, _ = axis.encode(np.array([0, 1, 2, -1, -2]), ("a", "b", "c"))
    assert slots.tolist() == [0, axis.other, 1, axis.missing, axis.other]
    many = np.arange(3000, dtype=np.int32) % 1000
    names = tuple(f"{k:04d}" for k in range(1000))
    assert category_axis(many, names, np.full(3000, 9.0), KnotRule()).size <= MOST_SLOTS


def test_coarse_axis_reads_the_same_place():
    draw = np.random.default_rng(0)
    values = np.exp(draw.normal(size=3000))
    values[:300] = 0.0
    values[300:400] = np.nan
    axis = knot_axis(values, np.ones(3000), KnotRule())
    rows = encode(one_column(values), [axis])
    mass = np.bincount(rows.index[0], minlength=axis.size).astype(float)
    coarse = coarsen(axis, mass, 6)
    assert len(coarse.axis.knots) <= 6
    index, way = rows.column(0)
    place = coarse.base[index] + coarse.step[index] * way
    slots, part = coarse.axis.encode(values)
    v = draw.normal(size=coarse.axis.size + 1)
    got = (1 - place) * v[coarse.index[index]] + place * v[coarse.index[index] + 1]
    wanted = (1 - part) * v[slots] + part * v[slots + 1]
    np.testing.assert_allclose(got, wanted, atol=1e-5)


@pytest.mark.parametrize(
    "axis",
    [
        KnotAxis(np.array([0.1, 1 / 3]), np.array([-999.0])),
        CategoryAxis((("a", "b"), ("c",))),
        IntervalAxis(np.array([0.5, 2.0])),
    ],
)
def test_axes_survive_a_dictionary(axis):
    assert axis_from_dict(axis.to_dict()).to_dict() == axis.to_dict()
    assert len(axis.labels()) == axis.size


def test_bad_axes_are_refused():
    with pytest.raises(ValueError, match="increasing"):
        KnotAxis(np.array([1.0, 1.0]), np.empty(0))
    with pytest.raises(ValueError, match="at least one knot"):
        KnotAxis(np.empty(0), np.empty(0))
    with pytest.raises(ValueError, match="Unknown axis kind"):
        axis_from_dict({"kind": "spline"})


def test_values_that_come_often_have_a_knot_each():
    draw = np.random.default_rng(0)
    ages = draw.integers(20, 80, size=2000).astype(float)  # 60 values, 33 rows each, budget 21
    axis = knot_axis(ages, np.ones(2000), KnotRule())
    assert axis.knots.tolist() == np.arange(20.0, 80.0).tolist()
    few = knot_axis(ages[:500], np.ones(500), KnotRule())  # 8 rows each: quantiles
    assert len(few.knots) < 30
    many = knot_axis(draw.integers(0, 120, 2000) * 1.0, np.ones(2000), KnotRule())  # over 4 x 21
    assert len(many.knots) < 50
    # a weight of two is two rows: ten rows a value are reached
    weighted = knot_axis(ages[:500], np.full(500, 2.0), KnotRule())
    assert len(weighted.knots) == len(np.unique(ages[:500]))
