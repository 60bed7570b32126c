"""Votes know neither the order of the columns nor that of the rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from laconic import scan
from laconic.data.row_keys import content_keys
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
from laconic.votes.voters.base import column_order

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


def test_equal_columns_are_ordered_by_name():
    frame = pd.DataFrame({"b": [0.0, 1, 1, 0], "a": [0.0, 1, 1, 0], "c": [0.0, 0, 1, 1]})
    for columns in (["b", "a", "c"], ["c", "a", "b"]):
        table = Schema.learn(frame[columns]).table
        order = column_order(content_keys(table, np.array([0, 1, 0, 1])), table.names)
        names = [columns[j] for j in order]
        assert names.index("a") < names.index("b")


def test_a_scan_has_the_order_of_its_rows_in_memory():
    """Also when some of its rows count for nothing."""
    X, y, _ = binary(n=200)
    frame = pd.DataFrame(X, columns=list("fedcba"))
    weight = np.r_[np.zeros(20), np.ones(180)]
    held = CqBoostClassifier(mu="least-squares", max_voters=3).fit(frame, y, sample_weight=weight)
    rows = scan(frame.assign(label=y, w=weight), "label", weight="w", block_rows=30)
    found = CqBoostClassifier(mu="least-squares", max_voters=3).fit(rows)
    assert found.voters_[0].rules() == held.voters_[0].rules()
    np.testing.assert_allclose(found.weights_[0], held.weights_[0], atol=1e-9)
