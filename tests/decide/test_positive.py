"""Which class is positive: one rule, said aloud, never the order of the alphabet."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from laconic import (
    DecisionClassifier,
    GrayZoneLogisticRegressionCV,
    LaconicClassifier,
    MinimaxClassifier,
    PlainLogisticRegression,
    SparseAdditiveClassifier,
    baseline_costs,
    expected_cost,
    load,
    save,
)
from laconic.core.compact import facts
from laconic.core.decisions import class_prior, cost_matrix, positive_class
from laconic.displays import CostCurveDisplay, ReliabilityDisplay
from laconic.minimax import MinimaxPriorClassifier

SHORT = {"fp": 1, "fn": 10}


@pytest.fixture(scope="module")
def credit():
    """Bad payers are rare, and "bad" comes before "ok"."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(3000, 3))
    return X, np.where(X[:, 0] + draw.normal(size=3000) > 2.0, "bad", "ok")


@pytest.mark.parametrize(
    ("labels", "positive"),
    [
        ([0, 1], 1),
        ([-1, 1], 1),
        ([0.0, 1.0], 1.0),
        ([False, True], True),
        (["0", "1"], "1"),
        (["-1", "1"], "1"),
        (["False", "True"], "True"),
        (["true", "false"], "true"),
        ([1, 2], None),
        (["bad", "ok"], None),
        (["no", "yes"], "yes"),
        (["Non", "Oui"], "Oui"),
        (["maybe", "yes"], None),
        ([0, 1, 2], None),
    ],
)
def test_the_labels_that_say_it_themselves(labels, positive):
    assert positive_class(labels) == positive


def test_a_name_wins_and_an_unknown_one_is_refused():
    assert positive_class([0, 1], 0) == 0
    assert positive_class([0, 1, 2], 2) == 2
    assert positive_class([1, 2], "1") == 1  # as a file or a command line writes it
    with pytest.raises(ValueError, match=r"'spam' is not a class; the classes are \['bad', 'ok'\]"):
        positive_class(["bad", "ok"], "spam")


def test_texts_without_a_name_are_refused_with_both_remedies(credit):
    X, y = credit
    for model in (
        DecisionClassifier(LogisticRegression(), SHORT),
        DecisionClassifier(LogisticRegression(), prior=0.1),
        LaconicClassifier(SHORT, candidates=["logistic"], cv=3),
    ):
        with pytest.raises(ValueError, match="positive='bad' or positive='ok', or name the cl"):
            model.fit(X, y)
    with pytest.raises(ValueError, match="positive='bad'"):
        expected_cost(y, y, SHORT)


@pytest.mark.parametrize("make", [
    lambda costs, **more: DecisionClassifier(LogisticRegression(), costs, **more),
    lambda costs, **more: LaconicClassifier(costs, candidates=["logistic"], cv=3, **more),
])  # fmt: skip
def test_a_miss_of_the_positive_class_is_what_fn_prices(credit, make):
    X, y = credit
    named = make({"bad": {"ok": 10}, "ok": {"bad": 1}}).fit(X, y)
    short = make(SHORT, positive="bad").fit(X, y)
    np.testing.assert_array_equal(short.predict(X), named.predict(X))
    assert short.positive_ == "bad"
    assert short.threshold_ == pytest.approx(10 / 11)  # "ok" needs that much
    flagged = np.mean(short.predict(X) == "bad")
    assert flagged > 1.5 * np.mean(y == "bad")
    turned = make(SHORT, positive="ok").fit(X, y)
    assert np.mean(turned.predict(X) == "bad") < 0.5 * flagged


def test_numbers_and_texts_decide_alike(credit):
    X, y = credit
    text = DecisionClassifier(LogisticRegression(), SHORT, prior=0.02, positive="bad").fit(X, y)
    number = DecisionClassifier(LogisticRegression(), SHORT, prior=0.02).fit(X, y == "bad")
    np.testing.assert_array_equal(text.predict(X) == "bad", number.predict(X))
    np.testing.assert_allclose(text.prior_, [0.02, 0.98])
    amounts = np.linspace(1, 100, len(y))
    each = {"fp": 1, "fn": amounts}
    np.testing.assert_array_equal(
        text.predict(X, costs=each) == "bad", number.predict(X, costs=each)
    )
    spent = expected_cost(y, text.predict(X), SHORT, positive="bad")
    assert spent == pytest.approx(expected_cost(y == "bad", number.predict(X), SHORT))
    alone = baseline_costs(y, SHORT, positive="bad")
    assert alone == pytest.approx({"bad": np.mean(y == "ok"), "ok": 10 * np.mean(y == "bad")})


def test_equal_costs_and_an_even_prior_need_no_positive_class():
    np.testing.assert_array_equal(cost_matrix({"fp": 2, "fn": 2}, ["a", "b"]), [[0, 2], [2, 0]])
    np.testing.assert_array_equal(class_prior(0.5, ["a", "b"]), [0.5, 0.5])


def test_displays_draw_the_positive_class(credit):
    X, y = credit
    model = DecisionClassifier(LogisticRegression(), SHORT, positive="bad").fit(X, y)
    curve = CostCurveDisplay.from_estimator(model, X, y)
    assert (curve.positive, curve.threshold) == ("bad", pytest.approx(1 / 11))
    spent = expected_cost(y, model.predict(X), SHORT, positive="bad")
    assert curve.cost_at(curve.threshold) == pytest.approx(spent)
    assert curve.baselines == pytest.approx(baseline_costs(y, SHORT, positive="bad"))
    trust = ReliabilityDisplay.from_estimator(model, X, y)
    assert (trust.positive, trust.threshold) == ("bad", pytest.approx(1 / 11))
    assert np.average(trust.observed, weights=trust.rows) == pytest.approx(np.mean(y == "bad"))


def test_the_model_says_what_it_takes_for_positive(credit):
    X, y = credit
    named = DecisionClassifier(LogisticRegression(), SHORT, positive="bad").fit(X, y)
    assert "'bad' (positive) from a probability of 0.09091" in dict(facts(named))["decides"]
    plain = DecisionClassifier(LogisticRegression(), SHORT).fit(X, y == "bad")
    assert "True (positive) above a probability of 0.09091" in dict(facts(plain))["decides"]


def test_classes_that_scikit_learn_numbers_are_explained(credit):
    X, y = credit
    model = DecisionClassifier(LogisticRegression(), {"bad": {"ok": 10}, "ok": {"bad": 1}})
    decided = cross_val_predict(model, X, y, cv=3)
    with pytest.raises(ValueError, match=r"numbers the classes .* as a matrix, in the sorted"):
        cross_val_predict(model, X, y, cv=3, method="predict_proba")
    matrix = DecisionClassifier(LogisticRegression(), [[0, 10], [1, 0]])
    proba = cross_val_predict(matrix, X, y, cv=3, method="predict_proba")
    np.testing.assert_array_equal(np.where(proba[:, 0] < 1 / 11, "ok", "bad"), decided)


@pytest.mark.parametrize(
    "make",
    [
        lambda **more: SparseAdditiveClassifier(pairs=0, group_penalty=0.01, **more),
        lambda **more: GrayZoneLogisticRegressionCV(zones=[(0.02, 0.98)], Cs=[0.1], cv=3, **more),
        lambda **more: MinimaxClassifier(cv=None, tie="deterministic", **more),
        lambda **more: MinimaxPriorClassifier(LogisticRegression(), cv=3, **more),
    ],
)
def test_every_estimator_with_costs_knows_the_rule(credit, make):
    X, y = credit[0][:400], credit[1][:400]
    named = make(costs={"bad": {"ok": 10}, "ok": {"bad": 1}}).fit(X, y)
    short = make(costs=SHORT, positive="bad").fit(X, y)
    np.testing.assert_array_equal(short.predict(X), named.predict(X))
    with pytest.raises(ValueError, match="positive='bad'"):
        make(costs=SHORT).fit(X, y)


def test_a_model_file_remembers_it(credit, tmp_path):
    X, y = credit
    model = DecisionClassifier(PlainLogisticRegression(), SHORT, positive="bad").fit(X, y)
    save(model, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert again.positive_ == "bad"
    dear = {"fp": 1, "fn": 100}
    np.testing.assert_array_equal(again.predict(X, costs=dear), model.predict(X, costs=dear))
