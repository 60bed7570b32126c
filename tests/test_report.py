from __future__ import annotations

import re

import numpy as np
import pytest

from laconic import DecisionClassifier, PlainLogisticRegression, expected_cost
from laconic.data.demo import make_payments
from laconic.report.render import to_html
from laconic.report.summary import summarise

COSTS = np.array([[0.0, 25.0], [1.0, 0.0]])


@pytest.fixture(scope="module")
def summary():
    table, label = make_payments(3000)
    model = DecisionClassifier(PlainLogisticRegression(), costs=COSTS)
    model.fit(table[:2000], label[:2000])
    found = summarise(model, table[2000:], label[2000:], COSTS, positive="fraud", n_train=2000)
    return model, table[2000:], label[2000:], found


def test_numbers_agree_with_a_count_by_hand(summary):
    model, X, y, found = summary
    says = model.predict_proba(X)[:, 0] >= 1 / 26
    by_hand = 25 * np.sum(~says & (y == "fraud")) + np.sum(says & (y == "genuine"))
    assert found["expected_cost"] == pytest.approx(by_hand / len(y))
    assert found["confusion"][0][1] == np.sum(~says & (y == "fraud"))
    assert found["baselines"]["always genuine"] == pytest.approx(25 * np.mean(y == "fraud"))
    assert sum(found["decisions_per_1000"]) == pytest.approx(1000)


def test_the_curve_passes_through_the_decision(summary):
    model, X, y, found = summary
    at = np.searchsorted(found["curve"]["threshold"], 0.5)
    taken = np.where(model.predict_proba(X)[:, 0] >= 0.5, "fraud", "genuine")
    by_hand = expected_cost(y, taken, COSTS, labels=model.classes_)
    assert found["curve"]["threshold"][at] == 0.5
    assert found["curve"]["cost"][at] == pytest.approx(by_hand)
    assert found["curve"]["cost"][0] == pytest.approx(found["baselines"]["always fraud"])


def test_the_page_stands_alone_and_names_are_inert(summary):
    found = dict(summary[3])
    evil = "<script>alert(1)</script>\"'"
    found["classes"] = [evil, "genuine"]
    found["positive"] = evil
    page = to_html(found, title=evil)
    assert "<script" not in page
    assert not re.search(r"(src|href)\s*=", page)
    assert "http" not in page.replace("http-equiv", "")
    assert len(page) < 100_000
    assert f"{found['expected_cost']:.4f}" in page


def test_three_classes_have_no_threshold():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(90, 3))
    y = np.array(["a", "b", "c"])[X.argmax(axis=1)]
    model = DecisionClassifier(PlainLogisticRegression()).fit(X, y)
    found = summarise(model, X, y, 1.0 - np.eye(3), positive="a", n_train=90)
    assert found["threshold"] is None
    assert "threshold" not in to_html(found, title="three")
