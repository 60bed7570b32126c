"""Money, cases, capacity: compared with counting, and with the model run again."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from laconic import DecisionClassifier, PlainLogisticRegression, report
from laconic.reporting.business import hit_rates, read_volume
from laconic.reporting.curves import mix, play
from laconic.reporting.measured import measure
from laconic.reporting.sentences import Sentences

COSTS = {"bad": {"good": 8}, "good": {"bad": 1}}


def rows(n=400, seed=0):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n, 3)).round(1)
    y = np.where(X[:, 0] + draw.logistic(size=n) > 1.5, "bad", "good")
    return X, y


@pytest.fixture(scope="module")
def model():
    return DecisionClassifier(PlainLogisticRegression(), costs=COSTS, positive="bad").fit(*rows())


def test_money_and_cases_are_the_cost_and_the_rates_times_the_cases(model):
    X, y = rows(seed=1)
    found = report(model, X, y, cases="5000/month", currency="EUR").summary
    said = Sentences(found)
    cards = {card["key"]: card for card in said.cards()}
    decided = model.predict(X)
    cost = np.where(decided == y, 0, np.where(y == "bad", 8, 1)).mean()
    assert float(cards["money"]["value"]) == pytest.approx(5000 * cost)
    assert cards["money"]["text"] == f"{5000 * cost:,.0f}\u00a0EUR"
    called = math.floor(round(5000 * np.mean(decided == "bad"), 6) + 0.5)  # a half is rounded up
    assert cards["decided"]["text"] == f"{called:,}"
    assert "a month" in cards["decided"]["label"]
    assert f"{5000 * cost:,.0f}\u00a0EUR a month" in said.verdict()
    assert float(cards["caught"]["value"]) == np.mean(decided[y == "bad"] == "bad")
    assert float(cards["precision"]["value"]) == np.mean(y[decided == "bad"] == "bad")
    french = Sentences(found, "fr").verdict()
    assert f"{5000 * cost:,.0f}".replace(",", "\u202f") + "\u00a0EUR par mois" in french


@pytest.mark.parametrize("cases", ["5,000/fortnight", "many", "0/month", "-3/day", "nan/month"])
def test_odd_cases_are_refused_in_one_sentence(model, cases):
    with pytest.raises(ValueError, match=r"cases: write a number above 0 .* such as 5000/month"):
        report(model, *rows(), cases=cases)


def test_cases_are_read():
    assert read_volume("12 000 / year", None)["cases"] == 12000
    assert read_volume(250, "€") == {"cases": 250.0, "period": "month", "currency": "€"}
    assert read_volume(None, None) is None


def test_intervals_of_caught_and_precision_hold_the_truth():
    """At a class mix of deployment too; rates are known, rows are drawn again and again."""
    draw = np.random.default_rng(5)
    caught, alarms = 0.7, 0.1
    inside = {None: [0, 0], 0.03: [0, 0]}
    for _ in range(300):
        y = np.repeat([1, 0], [60, 240])
        said = np.concatenate([draw.random(60) < caught, draw.random(240) < alarms]).astype(int)
        for share, seen in inside.items():
            prior = None if share is None else [1 - share, share]
            wrapped = measure(_Fixed(said), np.arange(300)[:, None], y, np.eye(2)[::-1])
            object.__setattr__(wrapped, "prior", None if prior is None else np.array(prior))
            found = hit_rates(wrapped, 1)
            p = 0.2 if share is None else share
            truth = [caught, p * caught / (p * caught + (1 - p) * alarms)]
            for at, key in enumerate(("caught", "precision")):
                _, low, high = found[key]
                seen[at] += low <= truth[at] <= high
    least = binom.ppf(0.001, 300, 0.95)
    assert all(count >= least for seen in inside.values() for count in seen)


class _Fixed:
    """Decides what it was told; no probabilities."""

    classes_ = np.array([0, 1])
    costs = None

    def __init__(self, said):
        self.said = said

    def predict(self, X):
        return self.said


@pytest.mark.parametrize("prior", [None, {"bad": 0.02, "good": 0.98}])
def test_the_capacity_curve_is_the_mean_over_all_orders_of_ties(model, prior):
    X, y = rows(300, seed=2)
    X = X.round(0)  # many rows of equal probability
    judged = DecisionClassifier(model.estimator_, costs=COSTS, prior=prior, prefit=True)
    judged = judged.fit(None, None) if prior is None else judged.fit(*rows())
    table = report(judged, X, y, positive="bad").summary["capacity"]
    q = judged.estimator_.predict_proba(X)[:, 0]
    bad = y == "bad"
    share = {True: bad.mean(), False: 1 - bad.mean()}
    if prior is not None:
        share = {True: 0.02, False: 0.98}
    weight = np.where(bad, share[True] / bad.sum(), share[False] / (~bad).sum())
    draw = np.random.default_rng(0)
    curves = []
    for _ in range(400):
        order = np.lexsort([draw.random(len(q)), -q])
        looked = np.concatenate([[0], np.cumsum(weight[order])])
        got = np.concatenate([[0], np.cumsum((weight * bad)[order])]) / share[True]
        curves.append(np.interp(table["shares"], looked, got))
    mean, spread = np.mean(curves, axis=0), np.std(curves, axis=0) / 20
    # a row is looked at whole: between two rows of one tie the mean bends by at most a row
    slack = 4 * spread + 1.5 / bad.sum() * (0.2 if prior is None else 1.0)
    assert (np.abs(mean - table["caught"]) <= slack).all()
    assert table["base"] == pytest.approx(share[True])
    assert table["shares"][-1] == pytest.approx(1.0)
    assert table["caught"][-1] == pytest.approx(1.0)
    decided = float(weight[judged.predict(X) == "bad"].sum())
    assert table["shares"][table["start"]] == pytest.approx(decided)
    hits = float(weight[(judged.predict(X) == "bad") & bad].sum()) / share[True]
    assert table["caught"][table["start"]] == pytest.approx(hits)


def three_classes(n=400, seed=0):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n, 2))
    y = np.array(["home", "ward", "urgent"])[np.digitize(X[:, 0] + draw.normal(size=n), [0.4, 1.5])]
    return X, y


TRIAGE = {
    "home": {"ward": 1, "urgent": 2},
    "ward": {"home": 4, "urgent": 1},
    "urgent": {"home": 30, "ward": 8},
}


@pytest.mark.parametrize("reject_cost", [None, 0.9])
def test_cost_sliders_of_three_classes_are_the_rule_run_again(reject_cost):
    inner = PlainLogisticRegression()
    model = DecisionClassifier(inner, costs=TRIAGE, reject_cost=reject_cost)
    model.fit(*three_classes())
    X, y = three_classes(seed=1)
    summary = report(model, X, y).summary
    table = summary["cost_sliders"]
    classes = model.classes_.tolist()
    for k, step in ((0, 0), (1, 7), (1, -13), (2, 20)):
        factor = np.exp(table["step"] * step)
        costs = np.array(summary["costs"])
        costs[k] *= factor
        decided = model.predict(X, costs=costs)
        counts = np.array(table["counts"][k][table["steps"] + step])
        for r, truth in enumerate(classes):
            for d, name in enumerate(classes):
                assert counts[r, d] == np.sum((y == truth) & (decided == name))
        assert counts.sum() == len(y)
    still = np.array(table["counts"][0][table["steps"]])
    rates = still / still.sum(axis=1, keepdims=True)
    assert mix(summary["mix"], [0, 0, 0])["cost"] == pytest.approx(
        mix(summary["mix"] | {"rates": rates.tolist()}, [0, 0, 0])["cost"]
    )


def test_no_class_name_of_python_in_the_head(model):
    from sklearn.ensemble import RandomForestClassifier

    X, y = rows()
    forest = RandomForestClassifier(5, max_depth=2, random_state=0).fit(X, y)
    for language in ("en", "fr"):
        page = report(model, X, y, baseline=forest, language=language).to_html()
        head = page[page.index("<main>") : page.index('id="specialists"')]
        assert "Classifier" not in head
        assert "LogisticRegression" not in head
        assert "PlainLogisticRegression" in page[page.index('id="specialists"') :]
        assert "random forest" in head


def test_the_price_of_readability_is_told_with_its_doubt(model):
    X, y = rows()
    summary = report(model, X, y).summary
    assert summary["price"] is None
    assert Sentences(summary).price() is None
    dear = summary | {"price": {"value": 0.02, "low": 0.01, "high": 0.03, "cost": 0.4}}
    assert "about 0.02 less per case (0.01 to 0.03)" in Sentences(dear).price()
    unclear = summary | {"price": {"value": 0.01, "low": -0.02, "high": 0.03, "cost": 0.4}}
    assert "not clearly cheaper" in Sentences(unclear).price()
    assert "pas nettement moins chers" in Sentences(unclear, "fr").price()


def test_amounts_of_rows_play_with_their_means_and_have_no_threshold(model):
    """Sliders, the rules beside the model and the headline speak of the same money."""
    X, y = rows(n=2000, seed=2)
    amount = np.exp(np.random.default_rng(3).normal(3, 1, len(y)))
    found = report(model, X, y, costs={"fp": 5, "fn": amount}, currency="EUR").summary
    bad = y == "bad"
    decided = model.predict(X, costs={"fp": 5, "fn": amount}) == "bad"
    paid = np.where(bad, np.where(decided, 0, amount), np.where(decided, 5, 0))
    assert found["expected_cost"] == pytest.approx(paid.mean())
    assert found["threshold"] is None
    shown = play(found["sliders"])
    mean = amount[bad].mean()
    assert shown["ratio"] == pytest.approx(mean / 5)
    assert shown["always_negative"] == pytest.approx(found["baselines"]["always good"])
    assert shown["always_positive"] == pytest.approx(found["baselines"]["always bad"])
    called = model.predict(X, costs={"fp": 5, "fn": mean}) == "bad"
    own = np.where(bad, np.where(called, 0, mean), np.where(called, 5, 0)).mean()
    assert shown["cost"] == pytest.approx(own)
    page = report(model, X, y, costs={"fp": 5, "fn": amount}).to_html()
    assert "here they cost the mean of their class" in page
    assert "decide “bad” from probability" not in "".join(
        card["label"] for card in Sentences(found).cards()
    )
