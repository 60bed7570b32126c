"""Fitted forms: exact evaluation, exact dictionaries, the models that can be written in them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import RegularGridInterpolator
from sklearn.linear_model import LogisticRegression

from laconic.core.forms import AdditiveScore, LineTerm, SlotTerm, linear_score, probabilities
from laconic.data.tables.axes import CategoryAxis, IntervalAxis, KnotAxis
from laconic.data.tables.columns import Schema, Table


def numeric(X: np.ndarray, names: tuple[str, ...]) -> Table:
    return Table(names, ("numeric",) * len(names), (None,) * len(names), matrix=X)


def test_linear_model_in_the_form():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(200, 3))
    y = (X[:, 0] - X[:, 1] > 0).astype(int)
    model = LogisticRegression().fit(X, y)
    form = linear_score(model.classes_, ["a", "b", "c"], model.coef_, model.intercept_)
    table = numeric(X, ("a", "b", "c"))
    np.testing.assert_allclose(form.score(table)[:, 0], model.decision_function(X), atol=1e-12)
    np.testing.assert_allclose(form.proba(table), model.predict_proba(X), atol=1e-12)


def test_multinomial_linear_model_in_the_form():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(300, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = LogisticRegression().fit(X, y)
    form = linear_score(model.classes_, ["a", "b"], model.coef_, model.intercept_, "softmax")
    np.testing.assert_allclose(
        form.proba(numeric(X, ("a", "b"))), model.predict_proba(X), rtol=1e-10
    )


def test_stump_vote_in_the_form():
    """sum_t w_t sign(x_j > c) is a sum of interval tables."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(50, 2))
    stumps = [(0, 0.3, 1.0), (1, -0.2, 0.5)]
    terms = tuple(
        SlotTerm((f"x{j}",), (IntervalAxis(np.array([c])),), np.array([[-w], [w], [0.0]]))
        for j, c, w in stumps
    )
    form = AdditiveScore((-1, 1), np.zeros(1), terms, "identity")
    direct = sum(w * np.where(X[:, j] > c, 1.0, -1.0) for j, c, w in stumps)
    np.testing.assert_array_equal(form.score(numeric(X, ("x0", "x1")))[:, 0], direct)
    with pytest.raises(ValueError, match="no probabilities"):
        form.proba(numeric(X, ("x0", "x1")))


def test_naive_bayes_table_in_the_form():
    table = Schema.learn({"job": ["cook", "smith", None, "cook"]}).table
    axis = CategoryAxis((("cook",), ("smith",)))
    values = np.log([[0.5, 0.2], [0.4, 0.7], [0.05, 0.05], [0.05, 0.05]])
    form = AdditiveScore(
        ("a", "b"), np.log([0.3, 0.7]), (SlotTerm(("job",), (axis,), values),), "softmax"
    )
    joint = np.array([[0.3 * 0.5, 0.7 * 0.2], [0.3 * 0.4, 0.7 * 0.7], [0.3 * 0.05, 0.7 * 0.05]])
    wanted = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(form.proba(table), wanted[[0, 1, 2, 0]], rtol=1e-12)


def test_piecewise_term_against_numpy_interp():
    draw = np.random.default_rng(0)
    knots = np.sort(draw.normal(size=7))
    values = draw.normal(size=(8, 1))
    x = 3 * draw.normal(size=100)
    term = SlotTerm(("x",), (KnotAxis(knots, np.empty(0)),), values)
    got = term.contribution(numeric(x[:, None], ("x",)))[:, 0]
    np.testing.assert_allclose(got, np.interp(x, knots, values[:7, 0]), atol=1e-12)


def test_grid_term_against_scipy_interpolation():
    draw = np.random.default_rng(0)
    a, b = np.sort(draw.normal(size=4)), np.sort(draw.normal(size=5))
    values = draw.normal(size=(5, 6, 1))
    X = np.clip(draw.normal(size=(200, 2)), [a[0], b[0]], [a[-1], b[-1]])
    axes = (KnotAxis(a, np.empty(0)), KnotAxis(b, np.empty(0)))
    term = SlotTerm(("u", "v"), axes, values)
    peer = RegularGridInterpolator((a, b), values[:4, :5, 0])
    np.testing.assert_allclose(term.contribution(numeric(X, ("u", "v")))[:, 0], peer(X), atol=1e-12)
    missing = numeric(np.array([[np.nan, b[2]], [a[1], np.nan]]), ("u", "v"))
    np.testing.assert_allclose(
        term.contribution(missing)[:, 0], [values[4, 2, 0], values[1, 5, 0]], atol=1e-12
    )


@given(
    st.lists(st.floats(-1e299, 1e299), min_size=4, max_size=4),
    st.floats(-1e6, 1e6),
)
@settings(max_examples=100, deadline=None)
def test_json_keeps_every_bit(values, bias):
    axis = KnotAxis(np.array([0.1, 0.2, 0.30000000000000004]), np.empty(0))
    term = SlotTerm(("x",), (axis,), np.array(values)[:, None])
    form = AdditiveScore(("no", "yes"), np.array([bias]), (term, LineTerm("x", np.array([1 / 3]))))
    again = AdditiveScore.from_dict(json.loads(json.dumps(form.to_dict())))
    assert again == form
    np.testing.assert_array_equal(again.terms[0].values, form.terms[0].values)


def test_rows_do_not_depend_on_their_batch():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(100, 2))
    axes = (
        KnotAxis(np.linspace(-1, 1, 4), np.empty(0)),
        KnotAxis(np.linspace(-1, 1, 3), np.empty(0)),
    )
    terms = (
        SlotTerm(("u", "v"), axes, draw.normal(size=(5, 4, 1))),
        LineTerm("v", np.array([0.7]), 0.2),
    )
    form = AdditiveScore((0, 1), np.array([0.1]), terms)
    whole = form.score(numeric(X, ("u", "v")))
    for i in (0, 17, 99):
        np.testing.assert_array_equal(form.score(numeric(X[i : i + 1], ("u", "v")))[0], whole[i])
    parts = form.contributions(numeric(X, ("u", "v")))
    total = form.intercept + parts[:, 0]
    np.testing.assert_array_equal(total + parts[:, 1], whole)


def test_columns_are_found_by_name():
    X = np.array([[1.0, 5.0]])
    form = linear_score([0, 1], ["b"], [[2.0]], [0.0])
    assert form.score(numeric(X, ("a", "b")))[0, 0] == 10.0
    with pytest.raises(ValueError, match="no column 'b'"):
        form.score(numeric(X, ("a", "c")))


def test_bad_forms_are_refused():
    axis = KnotAxis(np.array([0.0, 1.0]), np.empty(0))
    with pytest.raises(ValueError, match="shape"):
        SlotTerm(("x",), (axis,), np.zeros((2, 1)))
    with pytest.raises(ValueError, match="finite"):
        SlotTerm(("x",), (axis,), np.full((3, 1), np.nan))
    with pytest.raises(ValueError, match="needs 3 scores"):
        AdditiveScore((0, 1, 2), np.zeros(2), (), "softmax")
    with pytest.raises(ValueError, match="as many scores"):
        AdditiveScore((0, 1), np.zeros(1), (LineTerm("x", np.zeros(2)),))
    with pytest.raises(ValueError, match="additive"):
        AdditiveScore.from_dict({"form": "cells"})


def test_one_against_the_rest_divides_sigmoids_by_their_sum():
    scores = np.array([[0.5, -1.0, 2.0], [-3.0, 0.0, 0.1]])
    sigmoids = 1.0 / (1.0 + np.exp(-scores))
    expected = sigmoids / sigmoids.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(probabilities(scores, "ovr"), expected, rtol=1e-12)
