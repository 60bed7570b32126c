"""The model file of a vote: the same bytes again, and no altered file that still predicts."""

from __future__ import annotations

import copy
import json
import sqlite3
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from laconic import DecisionClassifier, load, save
from laconic.data.tables.columns import Schema
from laconic.export.parts import NotExportableError
from laconic.export.sql import to_sql
from laconic.votes import (
    CqBoostClassifier,
    ForestVoters,
    KernelVoters,
    LPBoostClassifier,
    MinCqClassifier,
)
from laconic.votes.form import VoteForm

MODELS = {
    "rbf": CqBoostClassifier("rbf"),
    "poly": MinCqClassifier("poly", proba="calibrated"),
    "linear": LPBoostClassifier("linear", nu=0.8),
    "landmarks": CqBoostClassifier(KernelVoters(n_landmarks=6), random_state=0),
    "scores": CqBoostClassifier("scores", mu="least-squares"),
}


def rows(n_classes, mixed, n=150):
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(np.tanh(draw.normal(size=(n, 3))), columns=["c", "a", "b"])
    score = frame["a"] + frame["b"] ** 2 + 0.4 * draw.normal(size=n)
    cuts = np.quantile(score, np.arange(1, n_classes) / n_classes)
    if mixed:
        frame["town"] = draw.choice(["Arras", "Brest", "Caen"], n)
        frame.loc[::9, "town"] = None
        frame.loc[::7, "a"] = np.nan
    return frame, np.array(["x", "y", "z"])[np.digitize(score, cuts)]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_a_saved_vote_predicts_the_same_bytes(name, n_classes, tmp_path):
    X, y = rows(n_classes, mixed=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = MODELS[name].fit(X, y)
    save(model, tmp_path / "vote.json")
    loaded = load(tmp_path / "vote.json")
    fresh = pd.concat([X, X.iloc[::-1].assign(c=0.25)], ignore_index=True)
    assert loaded.predict_proba(fresh).tobytes() == model.predict_proba(fresh).tobytes()
    certificates = json.loads((tmp_path / "vote.json").read_text())["certificates"]
    assert certificates["c_bound"] == model.c_bound_.max()


def test_a_list_of_classifiers_is_refused_in_words(tmp_path):
    X, y = rows(2, mixed=False)
    given = [RandomForestClassifier(3, random_state=s).fit(X[:70], y[:70]) for s in range(3)]
    model = CqBoostClassifier(given, mu="least-squares").fit(X[70:], y[70:])
    with pytest.raises(ValueError, match="given classifiers"):
        save(model, tmp_path / "vote.json")
    assert not (tmp_path / "vote.json").exists()


def altered(data):
    """Every field of a form, one after the other, replaced by what it must not be."""
    wrong = {
        "weights": [[-0.5], ["a"], [2.0], [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5], [float("nan")]],
        "trust": [0.0, 2.0, "a"],
        "calibration": [[[1.0]], [["a", 1.0]], [[float("inf"), 0.0]]],
        "kind": ["forest", 3],
        "columns": [["a"], []],
        "places": [[]],
        "column": [[-2], [99], []],
        "left": [[-1], [10**6]],
        "right": [[0.5, 1]],
        "threshold": [[float("nan")], ["a"]],
        "vote": [[1.5], [float("nan")]],
        "missing_left": [[True]],
        "kernel": ["sigmoid"],
        "gamma": [-1.0, 0.0, float("inf"), "a"],
        "degree": [0],
        "coef0": [-1.0],
        "centre": [[]],
        "spread": [[0.0, 1.0, 1.0], [-1.0]],
        "centres": [[[1.0]], [["a", "b", "c"]]],
        "signs": [[0.5], []],
        "classes": [["x"]],
        "votes": [[]],
    }

    def places(part):
        items = part.items() if isinstance(part, dict) else enumerate(part)
        for key, value in items:
            if key in wrong:
                yield part, key
            if isinstance(value, dict | list):
                yield from places(value)

    seen = set()
    for place, (_, key) in enumerate(places(data)):
        if key in seen:
            continue
        seen.add(key)
        for value in wrong[key]:
            changed = copy.deepcopy(data)
            part, _ = list(places(changed))[place]
            part[key] = value
            yield key, value, changed


@pytest.mark.parametrize("name", ["poly", "scores"])
def test_altered_votes_are_refused(name):
    X, y = rows(2, mixed=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = MODELS[name].fit(X, y)
    schema = Schema.learn(X).schema
    data = json.loads(json.dumps(model.vote_form_.to_dict()))
    assert VoteForm.from_dict(data).to_dict() == data
    tried = set()
    for key, value, changed in altered(data):
        tried.add(key)
        try:
            form = VoteForm.from_dict(changed)
            form.check_columns(schema)
        except (ValueError, TypeError, KeyError, IndexError, OverflowError):
            continue
        assert form.to_dict() != changed, (key, value)  # the model file refuses it for this
    assert {"weights", "trust", "votes", "columns"} <= tried
    with pytest.raises(ValueError, match="columns"):
        VoteForm.from_dict(data).check_columns(Schema.learn(X[["c"]]).schema)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_trees_are_the_same_in_sql(n_classes, tmp_path):
    """Missing cells and an unseen text, from the fitted model and from its file."""
    X, y = rows(n_classes, mixed=True)
    model = DecisionClassifier(CqBoostClassifier(ForestVoters(12), proba="calibrated")).fit(X, y)
    fresh = X.copy()
    fresh.loc[3, "town"] = "Dijon"
    save(model, tmp_path / "vote.json")
    for own in (model, load(tmp_path / "vote.json")):
        base = sqlite3.connect(":memory:")
        fresh.to_sql("t", base, index=False)
        found = pd.read_sql(to_sql(own, "t", dialect="sqlite"), base)
        expected = model.predict_proba(fresh)
        np.testing.assert_allclose(found.iloc[:, :n_classes], expected, atol=1e-12)
        assert (found["decision"] == model.predict(fresh)).all()


def test_kernels_are_refused_in_sql_by_name():
    X, y = rows(2, mixed=False)
    model = DecisionClassifier(CqBoostClassifier("rbf", mu="least-squares", max_voters=5)).fit(X, y)
    with pytest.raises(NotExportableError, match=r"CqBoostClassifier.*kernel voters"):
        to_sql(model, "t")
