"""What a report says of guarantees, and its decision curves."""

from __future__ import annotations

import numpy as np
import pytest

from laconic import DecisionClassifier, PlainLogisticRegression, report
from laconic.reporting.decision_curves import section
from laconic.reporting.sentences import Sentences

COSTS = {"fp": 1.0, "fn": 4.0}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(2500) < 0.3, "bad", "ok")
    return rng.normal(size=(2500, 2)) + 1.2 * (y == "bad")[:, None], y


def fitted(rows, **more):
    X, y = rows
    return DecisionClassifier(PlainLogisticRegression(), COSTS, positive="bad", **more).fit(X, y)


@pytest.mark.parametrize("language", ["en", "fr"])
def test_promises_are_said_with_what_they_assume(rows, language):
    model = fitted(rows, guarantee=["recall>=0.7", "alarms<=0.7"])
    found = report(model, *rows, language=language)
    page = found.to_html()
    told = {
        "en": ["found is at least 70", "may differ", "with the same shares"],
        "fr": ["retrouvée est d'au moins 70", "peut différer", "avec la même répartition"],
    }[language]
    text = page.replace("&#39;", "'").replace("\u202f", " ")
    assert all(sentence in text for sentence in told)
    assert found.summary["threshold"] == pytest.approx(1 - model.threshold_)
    shown = found.to_markdown()
    assert "70" in shown


def test_who_keeps_a_promise_is_not_told_to_choose_one_that_keeps_none(rows):
    X, y = rows
    costs = {"fp": 1.0, "fn": 0.2}
    plain = PlainLogisticRegression().fit(X, y)
    for promise, said in [
        ("recall>=0.9", "which promises nothing"),
        (None, "choose the other one"),
    ]:
        model = DecisionClassifier(plain, costs, positive="bad", guarantee=promise)
        if promise is None:
            noise = np.random.default_rng(1).normal(size=X.shape)
            model.fit(noise, y)
        else:
            model.fit(X, y)
        text = report(model, X, y, baseline=plain).to_markdown()
        assert said in text
        assert ("choose the other one" in text) == (promise is None)


def test_the_drawings_hold_the_numbers(rows):
    model = fitted(rows, guarantee="recall>=0.7")
    found = report(model, *rows).summary
    curves = found["decision_curves"]
    assert curves["benefit"]["region"] == (model.guaranteed_.lowest, model.guaranteed_.highest)
    assert curves["mix"]["cost"][0] < curves["mix"]["constant"][20]
    # the cost at the share of the rows is the one in the headline
    cost = np.interp(curves["mix"]["at"], curves["mix"]["x"], curves["mix"]["cost"])
    assert cost == pytest.approx(found["expected_cost"], rel=1e-9)
    html = str(section(found, "en"))
    assert html.count("<svg") == 3
    assert "var(--zone)" in html
    assert "nan" not in html.lower()
    free = report(fitted(rows), *rows).summary
    assert "var(--zone)" not in str(section(free, "en"))
    assert free["decision_curves"]["benefit"]["threshold"] == pytest.approx(0.2)


def test_a_report_of_abstentions_has_promises_and_no_curves(rows):
    model = fitted(rows, guarantee=["error<=0.3", "abstentions<=0.8"], reject_cost=0.6)
    found = report(model, *rows)
    assert found.summary["decision_curves"] is None
    assert "errors among the decisions taken is at most" in found.to_html()


def test_a_rule_that_breaks_the_promise_is_not_the_one_to_beat(rows):
    """Deciding everybody "bad" is cheapest here, and no way to look at one case in ten."""
    X, y = rows
    given = {"costs": {"fp": 1.0, "fn": 8.0}, "positive": "bad", "guarantee": "alarms<=0.1"}
    model = DecisionClassifier(PlainLogisticRegression(), **given).fit(X, y)
    found = report(model, X, y).summary
    assert found["baselines"]["always bad"] < found["expected_cost"]
    said = Sentences(found).verdict()
    assert "less than the best rule without a model that keeps the promises (always “ok”" in said
    assert "does not pay" not in said
    both = {**given, "guarantee": ["alarms<=0.5", "recall>=0.5"]}
    model = DecisionClassifier(PlainLogisticRegression(), **both).fit(X, y)
    assert "that breaks the promises" in Sentences(report(model, X, y).summary).verdict()
