"""What users know: signs of effects, forbidden pairs, their own model, costs of rows, scenarios."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from laconic import LaconicClassifier, cost_scorer
from laconic.choose.tailored import tailored_losses


@pytest.fixture(scope="module")
def credit():
    """Bad loans fall with income but for those who give none; age and debt act together."""
    draw, n = np.random.default_rng(0), 700
    X = pd.DataFrame(
        {
            "income": np.exp(draw.normal(10, 0.6, n)).round(),
            "age": draw.integers(18, 80, n),
            "debt": draw.normal(size=n),
        }
    )
    X.loc[draw.random(n) < 0.15, "income"] = 0.0
    score = 5.0 - 0.6 * np.log(X.income.where(X.income > 0, 3e5)) + X.debt
    score += 0.08 * (X.age - 50) * np.sign(X.debt)
    y = np.where(draw.random(n) < 1 / (1 + np.exp(-score)), "bad", "ok")
    return X, y


def test_probabilities_follow_the_sign_on_every_number_and_forbidden_columns_stay_apart(credit):
    X, y = credit
    demands = {"monotone": {"income": -1}, "forbid": [("debt", "age")]}
    model = LaconicClassifier(
        {"fp": 1, "fn": 5}, positive="bad", candidates=["additive", "kernel"], **demands
    ).fit(X, y)
    one = pd.concat([X.iloc[[0]]] * 300, ignore_index=True)
    one["income"] = np.linspace(0.0, 9e4, 300)  # 0 is a point mass at which the truth turns
    bad = model.predict_proba(one)[:, 0]
    assert np.ptp(bad) > 0.05
    assert (np.diff(bad) <= 0).all()
    pairs = [set(term.columns) for term in model.estimator_.form_.terms]
    assert {"age", "debt"} not in pairs
    notes = dict(zip(model.comparison_["candidate"], model.comparison_["note"], strict=True))
    assert notes["kernel"] == "left out: it cannot keep monotone and forbid"
    free = LaconicClassifier(positive="bad", candidates=["additive"]).fit(X, y)
    assert {"age", "debt"} in [set(term.columns) for term in free.estimator_.form_.terms]


def test_rules_keep_forbidden_columns_apart(credit):
    X, y = credit
    given = {"positive": "bad", "candidates": ["rules"]}
    for forbid, found in ((None, True), ([("age", "debt")], False)):
        form = LaconicClassifier(forbid=forbid, **given).fit(X, y).estimator_.form_
        assert ({"age", "debt"} in [set(term.columns) for term in form.terms]) is found


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"monotone": {"kind": 1}}, "'kind' is no number"),
        ({"monotone": {"income": 2}}, "must be -1 or 1"),
        ({"monotone": {"nothing": 1}}, "no column 'nothing'"),
        ({"forbid": [("age", "nothing")]}, "no column 'nothing'"),
        ({"forbid": ["age"]}, "pairs of two columns"),
        ({"monotone": {"age": 1}, "candidates": ["logistic"]}, "name additive among them"),
        ({"candidates": ["auto", ("rules", LogisticRegression())]}, "'rules' stands twice"),
    ],
)
def test_what_cannot_be_kept_is_refused_in_one_sentence(credit, given, sentence):
    X, y = credit
    X = X.assign(kind=np.where(X.age > 40, "a", "b"))
    with pytest.raises(ValueError, match=sentence):
        LaconicClassifier(positive="bad", **given).fit(X[:60], y[:60])


def test_the_users_own_model_stands_beside_with_a_paired_difference(credit):
    X, y = credit
    own = make_pipeline(StandardScaler(), LogisticRegression())
    model = LaconicClassifier(
        {"fp": 1, "fn": 5}, positive="bad", candidates=["logistic", ("mine", own)], reading=None
    ).fit(X, y)
    table = model.comparison_.set_index("candidate")
    assert table["own"].to_dict() == {"logistic": False, "mine": True, "committee": False}
    gap = table.loc["mine", "cost"] - table.loc[model.candidate_, "cost"]
    assert table.loc["mine", "above_kept"] == pytest.approx(gap)
    # paired: the two models mostly decide alike
    assert table.loc["mine", "above_kept_se"] < table.loc["mine", "cost_se"]
    held = LaconicClassifier(
        positive="bad", candidates=["additive-single", ("mine", own)], monotone={"income": -1}
    ).fit(X, y)
    assert "mine" not in held.candidate_  # it promises nothing, so it is only compared
    assert "mine" in list(held.comparison_["candidate"])


def test_costs_of_each_row_choose_and_decide(credit):
    X, y = credit
    amount = np.exp(np.random.default_rng(1).normal(1, 1, len(y)))
    model = LaconicClassifier(positive="bad", candidates=["logistic"]).fit(
        X, y, costs={"fp": 2.0, "fn": amount}
    )
    p = model.predict_proba(X)[:, 0]
    decided = model.predict(X, costs={"fp": 2.0, "fn": amount})
    np.testing.assert_array_equal(decided == "bad", p * amount > (1 - p) * 2.0)
    np.testing.assert_allclose(model.decision_.cost_matrix_, [[0, amount.mean()], [2, 0]])
    even = LaconicClassifier({"fp": 2, "fn": 9}, positive="bad", candidates=["logistic"])
    by_row = LaconicClassifier(positive="bad", candidates=["logistic"]).fit(
        X, y, costs={"fp": np.full(len(y), 2.0), "fn": np.full(len(y), 9.0)}
    )
    for name in ("cost", "tailored_loss"):
        ours, theirs = by_row.comparison_[name], even.fit(X, y).comparison_[name]
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    with pytest.raises(ValueError, match="costs are given for 3 rows"):
        model.fit(X, y, costs={"fp": 1.0, "fn": amount[:3]})


def test_tailored_losses_at_costs_of_each_row():
    draw = np.random.default_rng(0)
    p, y = draw.random(40), draw.integers(0, 2, 40)
    proba = np.column_stack([1 - p, p])
    each = np.zeros((40, 2, 2))
    each[:, 0, 1], each[:, 1, 0] = draw.choice([0.0, 1.0, 4.0], 40), draw.choice([2.0, 7.0], 40)
    found = tailored_losses(proba, y, each, 8.0)
    for i in range(40):
        one = tailored_losses(proba[i : i + 1], y[i : i + 1], each[i], 8.0)
        assert found[i] == pytest.approx(one[0], rel=1e-12)


def test_scenarios_decide_at_their_own_costs(credit):
    X, y = credit
    peak = {"fp": 1, "fn": 20}
    model = LaconicClassifier(
        {"fp": 1, "fn": 5}, positive="bad", candidates=["logistic"], scenarios={"peak": peak}
    ).fit(X, y)
    same = LaconicClassifier(peak, positive="bad", candidates=["logistic"]).fit(X, y)
    assert model.scenarios_["threshold"][0] == pytest.approx(1 / 21)
    assert model.scenarios_["cost"][0] == pytest.approx(same.comparison_["cost"][0])
    assert model.scenarios_["cost_of_usual"][0] >= model.scenarios_["cost"][0]
    np.testing.assert_array_equal(model.predict(X, scenario="peak"), same.predict(X))
    with pytest.raises(ValueError, match="no scenario 'off'; it has peak"):
        model.predict(X, scenario="off")


def test_costs_of_rows_arrive_by_metadata_routing(credit):
    import sklearn
    from sklearn.model_selection import cross_val_score

    X, y = credit
    amount = np.exp(np.random.default_rng(1).normal(1, 1, len(y)))
    each = np.zeros((len(y), 2, 2))
    each[:, 0, 1], each[:, 1, 0] = amount, 2.0
    with sklearn.config_context(enable_metadata_routing=True):
        model = LaconicClassifier(positive="bad", candidates=["logistic"])
        model.set_fit_request(costs=True).set_predict_request(costs=True)
        scorer = cost_scorer(response_method="predict_proba").set_score_request(costs=True)
        scores = cross_val_score(model, X, y, scoring=scorer, cv=2, params={"costs": each})
    assert (scores < 0).all()
    assert -scores.mean() < min(amount[y == "bad"].sum(), 2.0 * (y == "ok").sum()) / len(y)
