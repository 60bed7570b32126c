"""What each variable adds to a score: exact, named, the same object in every family."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import laconic
from laconic.core.explanation import Explanation

FAMILIES = {
    "logistic": lambda: laconic.PlainLogisticRegression(),
    "gray zone": lambda: laconic.GrayZoneLogisticRegression(),
    "bayes": lambda: laconic.WeightedNaiveBayes(random_state=0),
    "additive": lambda: laconic.SparseAdditiveClassifier(),
    "rules": lambda: laconic.SparseRulesClassifier(random_state=0),
    "scorecard": lambda: laconic.ScorecardClassifier(random_state=0),
    "blend": lambda: laconic.BlendedClassifier(
        [laconic.PlainLogisticRegression(), laconic.WeightedNaiveBayes(random_state=0)]
    ),
    "decision": lambda: laconic.DecisionClassifier(laconic.PlainLogisticRegression()),
    "choice": lambda: laconic.LaconicClassifier(candidates=["logistic"], cv=3, random_state=0),
}


def rows(n_classes=2, n=300):
    draw = np.random.default_rng(0)
    X = pd.DataFrame({"age": draw.normal(size=n), "score": draw.normal(size=n)})
    y = np.digitize(X["age"] + 0.3 * draw.normal(size=n), [0.0] if n_classes == 2 else [-0.6, 0.6])
    return X, np.array(["low", "mid", "top"])[y]


def scores_of(model, X):
    inner = model
    while not hasattr(inner, "form_"):
        inner = inner.estimator_
    return inner.form_.score(inner._read_rows(X))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("family", FAMILIES)
def test_contributions_add_up_to_the_score(family, n_classes):
    X, y = rows(n_classes)
    model = FAMILIES[family]()
    if family != "decision":
        with pytest.raises(NotFittedError):
            model.explain(X)
    why = model.fit(X, y).explain(X)
    assert isinstance(why, Explanation)
    values = np.asarray(why)
    assert values.shape == (len(X), len(why.names)) + ((n_classes,) if n_classes > 2 else ())
    np.testing.assert_allclose(why.score.reshape(len(X), -1), scores_of(model, X), atol=1e-10)
    np.testing.assert_allclose(why.baseline + values.sum(axis=1).reshape(len(X), -1),
                               scores_of(model, X), atol=1e-10)  # fmt: skip
    assert len(set(why.names)) == len(why.names)
    assert len(pickle.loads(pickle.dumps(why))) == len(X)
    if n_classes == 2:
        # the score is that of the second class, whose rows have the larger ones
        assert why.score[y == "mid"].mean() > why.score[y == "low"].mean()


@pytest.mark.parametrize(
    "inner",
    [
        laconic.WeightedNaiveBayes(random_state=0),
        laconic.GrayZoneLogisticRegression(zone=(0.2, 0.7), proba="clip"),
    ],
)
def test_a_loaded_model_explains_as_the_fitted_one(inner, tmp_path):
    X, y = rows()
    model = laconic.DecisionClassifier(inner).fit(X, y)
    laconic.save(model, tmp_path / "model.json")
    again = laconic.load(tmp_path / "model.json").explain(X)
    np.testing.assert_array_equal(np.asarray(again), np.asarray(model.explain(X)))
    assert again.names == model.explain(X).names


def test_models_without_terms_have_no_explanation():
    X, y = rows()
    model = laconic.GrayZoneKernelClassifier(kernel="poly").fit(X, y)
    assert not hasattr(model, "explain")
    assert not hasattr(laconic.DecisionClassifier(model, prefit=True).fit(X, y), "explain")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_frame_names_the_variables_even_when_they_are_called_score(n_classes):
    X, y = rows(n_classes)
    model = laconic.PlainLogisticRegression().fit(X, y)
    why = model.explain(X[:4])
    frame = why.frame()
    assert list(frame.columns) == ["row", "class", "baseline", "age", "score", "score_"]
    assert len(frame) == 4 * len(why.outputs)
    np.testing.assert_allclose(
        frame["baseline"] + frame["age"] + frame["score"], frame["score_"], atol=1e-12
    )
    np.testing.assert_array_equal(frame["score_"], model.decision_function(X[:4]).ravel())
    assert list(frame["class"][: len(why.outputs)]) == list(why.outputs)


def test_top_gives_reasons_in_words():
    X, y = rows()
    why = laconic.PlainLogisticRegression().fit(X, y).explain(pd.DataFrame(
        {"age": [2.0, np.nan], "score": [0.1, 0.25]}))  # fmt: skip
    top = why.top(1)
    assert list(top["variable"]) == ["age", "score"] or list(top["variable"]) == ["age", "age"]
    assert top["part"][0] == "2"
    assert (top["class"] == "mid").all()
    turned = why.top(1, output="low")
    np.testing.assert_array_equal(turned["contribution"], -top["contribution"])
    with pytest.raises(ValueError, match="one of the classes"):
        why.top(1, output="never")
    with pytest.raises(ValueError, match="at least 1"):
        why.top(0)


def test_top_of_three_classes_speaks_of_the_class_with_the_highest_score():
    X, y = rows(3)
    model = laconic.PlainLogisticRegression().fit(X, y)
    top = model.explain(X).top(1)
    np.testing.assert_array_equal(top["class"], model.predict(X))


def test_a_blend_tells_a_column_once():
    X, y = rows()
    members = [laconic.PlainLogisticRegression(), laconic.WeightedNaiveBayes(random_state=0)]
    model = laconic.BlendedClassifier(members).fit(X, y)
    assert len(model.form_.terms) > len(model.form_.columns)
    assert sorted(model.explain(X).names) == sorted(model.form_.columns)


def test_log_probabilities_and_scores_of_the_decision_layer():
    X, y = rows(3)
    model = laconic.DecisionClassifier(laconic.PlainLogisticRegression(), prior="balanced")
    model.fit(X, y)
    np.testing.assert_array_equal(model.predict_log_proba(X), np.log(model.predict_proba(X)))
    np.testing.assert_array_equal(
        model.classes_[model.decision_function(X).argmax(axis=1)], model.predict(X)
    )
    X, y = rows(2)
    dear = laconic.DecisionClassifier(
        laconic.PlainLogisticRegression(), costs=[[0, 1], [5, 0]], prior=[0.8, 0.2]
    ).fit(X, y)
    said = dear.decision_function(X)
    np.testing.assert_array_equal(said > 0, dear.predict(X) == "mid")
    np.testing.assert_allclose(said, 6 * dear.predict_proba(X)[:, 1] - 1, atol=1e-12)


def test_an_explanation_says_what_it_is_in_one_line():
    """Its numbers filled a page of a notebook."""
    X = {"age": np.arange(60.0), "job": ["cook", "smith", "baker"] * 20}
    late = np.where(np.arange(60) % 7 > 3, "late", "fine")
    model = laconic.PlainLogisticRegression().fit(X, late)
    said = repr(model.explain(X))
    assert said.startswith("<Explanation of 60 rows: score of late from 2 variables;")
    assert all(hasattr(model.explain(X), name) for name in ("sentences", "top", "frame", "to_shap"))
