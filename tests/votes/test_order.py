"""Votes know neither the order of the columns nor that of the rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from laconic.data.source import ArraySource
from laconic.data.tables.columns import Schema
from laconic.votes import (
    CBBoostClassifier,
    CGBoostClassifier,
    CqBoostClassifier,
    ForestVoters,
    KernelVoters,
    LPBoostClassifier,
    MinCqClassifier,
    StumpVoters,
)
from laconic.votes.voters.order import column_order

MODELS = {
    "CqBoost": CqBoostClassifier(),
    "slides": CqBoostClassifier(StumpVoters(constant=False), constraint="slides"),
    "midpoints": CqBoostClassifier(StumpVoters("midpoints"), mu="least-squares"),
    "three voters": CqBoostClassifier(mu="least-squares", max_voters=3),
    "MinCq": MinCqClassifier(),
    "LPBoost": LPBoostClassifier(nu=0.6),
    "CG-Boost": CGBoostClassifier(C=0.1),
    "CB-Boost": CBBoostClassifier(n_rounds=15),
    "kernels": CqBoostClassifier("rbf"),
    "landmarks": CqBoostClassifier(KernelVoters(n_landmarks=8)),
    "forest": CqBoostClassifier(ForestVoters(15), proba="calibrated"),
    "scores": CqBoostClassifier("scores", mu="least-squares"),
}


def binary(n=60, d=6, seed=0):
    """Yes/no columns with many equal edges, and fresh rows on which tied voters disagree."""
    draw = np.random.default_rng(seed)
    X = np.where(draw.random((n + 200, d)) < 0.5, 1.0, -1.0)
    y = (X[:, :3].sum(1) + draw.normal(size=len(X)) > 0).astype(int)
    return X[:n], y[:n], X[n:]


@pytest.mark.parametrize("name", MODELS)
def test_columns_and_rows_in_another_order_give_the_same_vote(name):
    for seed in range(2):
        X, y, fresh = binary(seed=seed)
        if name == "midpoints":  # more voters than rows: the optimum is not unique
            X = X + np.random.default_rng(seed).normal(size=X.shape).round(1)
        model = MODELS[name]
        found = model.fit(X, y).decision_function(fresh)
        columns = np.random.default_rng(seed).permutation(X.shape[1])
        again = model.fit(X[:, columns], y).decision_function(fresh[:, columns])
        np.testing.assert_allclose(again, found, rtol=0, atol=1e-9)
        rows = np.random.default_rng(seed).permutation(len(y))
        again = model.fit(X[rows], y[rows]).decision_function(fresh)
        np.testing.assert_allclose(again, found, rtol=0, atol=1e-9)


def test_named_mixed_columns():
    draw = np.random.default_rng(0)
    n = 150
    frame = pd.DataFrame(
        {
            "size": draw.integers(0, 3, n) + 0.0,
            "age": draw.integers(0, 3, n) + 0.0,
            "job": draw.choice(["a", "b", "c"], n),
            "town": draw.choice(["a", "b", "c"], n),
        }
    )
    frame.loc[::7, "size"] = np.nan
    y = (frame["size"].fillna(0) + (frame["job"] == "b") + draw.normal(size=n) > 1).to_numpy()
    for model in (CqBoostClassifier(), CqBoostClassifier(ForestVoters(15))):
        found = model.fit(frame, y).predict_proba(frame)
        again = model.fit(frame[["town", "size", "job", "age"]], y).predict_proba(frame)
        np.testing.assert_allclose(again, found, rtol=0, atol=1e-12)


def order_of(X, weight):
    table = Schema.learn(X).table
    return column_order(ArraySource(table, weight=weight), table.names)


def test_the_order_of_columns_is_one_of_their_content():
    X, _, _ = binary()
    order = order_of(X, np.ones(len(X)))
    assert sorted(order) == list(range(6))
    turned = np.random.default_rng(3).permutation(6)
    rows = np.random.default_rng(4).permutation(len(X))
    weight = np.random.default_rng(5).integers(1, 4, len(X))
    np.testing.assert_array_equal(
        X[:, turned][:, order_of(X[rows][:, turned], np.full(len(X), 7.0))], X[:, order]
    )
    copies = np.repeat(np.arange(len(X)), weight)
    np.testing.assert_array_equal(
        order_of(X, weight + 0.0), order_of(X[copies], np.ones(len(copies)))
    )
    # columns that only another round tells apart: rows hold the same cells in other places
    Z = np.array([[1.0, 0, 0, 5], [0, 1, 0, 6], [0, 0, 1, 7], [1, 1, 0, 5], [0, 1, 1, 5]])
    found = [Z[:, p][:, order_of(Z[:, p], np.ones(5))] for p in ([0, 1, 2, 3], [3, 1, 0, 2])]
    np.testing.assert_array_equal(*found)


def test_equal_columns_are_ordered_by_name():
    frame = pd.DataFrame({"b": [0.0, 1, 1, 0], "a": [0.0, 1, 1, 0], "c": [0.0, 0, 1, 1]})
    for columns in (["b", "a", "c"], ["c", "a", "b"]):
        table = Schema.learn(frame[columns]).table
        order = column_order(ArraySource(table, weight=np.ones(4)), table.names)
        names = [columns[j] for j in order]
        assert names.index("a") < names.index("b")
