"""Naive Bayes on generated small tables: finite answers or a sentence, and no order matters."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from laconic import ModlEncoder, WeightedNaiveBayes
from laconic.bayes import SelectiveNaiveBayes

MODELS = {
    "newton": WeightedNaiveBayes(power=2.0),
    "neighbourhoods": WeightedNaiveBayes(power=0.5, penalty=1.0, level=1),
    "unpenalised": WeightedNaiveBayes(power=0.5, penalty=0.0, min_gain=0.0),
    "paper": WeightedNaiveBayes(solver="dgml-vns", level=1, batch_size=20),
    "pairs": WeightedNaiveBayes(pairs=1, encoder=ModlEncoder("2006")),
    "trees": WeightedNaiveBayes(trees=2),
    "average": SelectiveNaiveBayes(),
    "map": SelectiveNaiveBayes("map"),
}
WEIGHTS = {
    "none": lambda draw, n: None,
    "counts": lambda draw, n: draw.integers(0, 4, n).astype(float),
    "wide": lambda draw, n: 10.0 ** draw.uniform(-12, 12, n),
    "some": lambda draw, n: np.where(draw.random(n) < 0.5, 0.0, 10.0 ** draw.uniform(0, 12, n)),
    "tiny": lambda draw, n: np.full(n, 1e-12),
    "huge": lambda draw, n: np.full(n, 1e12),
}
SENTENCES = "at least two classes|at least one non-zero|minimum of"


def column(draw, hidden, before):
    """One column: numbers of any scale, constants, copies, texts; some cells missing."""
    n = len(hidden)
    x = hidden * draw.choice([0, 1, -1]) + draw.normal(size=n)
    kind = draw.choice(["plain", "whole", "constant", "copy", "text", "large", "small", "mixed"])
    if kind == "whole":
        x = np.round(x)
    elif kind == "constant":
        x = np.full(n, x[0])
    elif kind == "copy" and before:
        x = before[draw.integers(len(before))].copy()
    elif kind == "text":
        x = np.array([f"c{int(v)}" for v in np.round(2 * x)], dtype=object)
    elif kind in ("large", "small"):
        x = x * 10.0 ** (draw.integers(100, 300) * (1.0 if kind == "large" else -1.0))
    elif kind == "mixed":
        x = x * 10.0 ** draw.integers(-300, 300, n).astype(float)
    if draw.random() < 0.3:
        x[draw.random(n) < draw.choice([0.1, 0.5, 1.0])] = None if x.dtype == object else np.nan
    return x


def table(seed):
    """Rows, classes and weights, from one row to 120."""
    draw = np.random.default_rng(seed)
    n, n_classes = draw.choice([1, 2, 5, 10, 50, 120]), draw.choice([2, 2, 3, 5, 12])
    y = draw.integers(0, n_classes, n)
    hidden = draw.normal(size=n) + y * draw.choice([0.0, 0.5, 2.0, 100.0])
    columns = []
    for _ in range(draw.integers(1, 7)):
        columns.append(column(draw, hidden, columns))
    X = pd.DataFrame({f"v{j}": values for j, values in enumerate(columns)})
    return X, y, WEIGHTS[draw.choice(list(WEIGHTS))](draw, n)


@pytest.mark.parametrize("name", MODELS)
def test_finite_answers_or_a_sentence(name):
    fitted = 0
    for seed in range(24):
        X, y, weight = table(seed)
        model = clone(MODELS[name])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                model.fit(X, y, sample_weight=weight)
            except ValueError as error:
                assert re.search(SENTENCES, str(error)), error
                continue
        fitted += 1
        proba = model.predict_proba(X)
        assert np.isfinite(proba).all(), seed
        np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-9)
        numbers = [model.criterion_, model.compression_, getattr(model, "duality_gap_", 0.0)]
        assert np.isfinite(numbers).all(), seed
        assert numbers[2] >= 0.0
        assert np.isfinite(model.feature_importances_).all()
        assert np.isfinite(model.explain(X).contributions).all()
    assert fitted > 12


@pytest.mark.parametrize("name", MODELS)
def test_neither_columns_nor_rows_have_an_order(name):
    """Without a seed: draws are made from the values of the rows."""
    draw = np.random.default_rng(5)
    y = draw.integers(0, 3, 300)
    X = pd.DataFrame(draw.normal(size=(300, 6)) + y[:, None] * draw.uniform(0.0, 1.2, 6)).round(1)
    X[6] = np.where(draw.random(300) < 0.7, y, 0).astype(str)
    X.columns = [f"v{j}" for j in range(7)]
    expected = clone(MODELS[name]).fit(X, y)
    columns, rows = draw.permutation(7), draw.permutation(300)
    for other, labels in ((X.iloc[:, columns], y), (X.iloc[rows], y[rows])):
        found = clone(MODELS[name]).fit(other, labels)
        assert set(found.selected_features_) == set(expected.selected_features_)
        np.testing.assert_allclose(
            found.predict_proba(X), expected.predict_proba(X), rtol=0, atol=1e-9
        )


def test_light_rows_beside_heavy_ones_are_counted():
    """A part holds the weight of its rows, however heavy those of the part before are."""
    x = np.repeat([0.0, 1.0, 2.0], 20)
    y = np.repeat([0, 1, 0], 20)
    weight = np.where(x == 1, 1e-3, 1e12)
    partition = ModlEncoder(cuts={"x0": [0.5, 1.5]}).fit(x[:, None], y, weight).partitions_["x0"]
    expected = [[2e13, 0], [0, 0.02], [2e13, 0]]
    np.testing.assert_allclose(partition.class_weights, expected, rtol=1e-12)
