"""Scorecards: whole points, decisions by total, a rounding loss that is measured; model cards."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics import log_loss

import export_cases as cases
from laconic import (
    DecisionClassifier,
    SparseAdditiveClassifier,
    WeightedNaiveBayes,
    expected_cost,
)
from laconic.core.forms import AdditiveScore, LineTerm, RulesTerm, SlotTerm
from laconic.data.tables.axes import CategoryAxis, IntervalAxis, KnotAxis
from laconic.data.tables.columns import Schema
from laconic.export.card import model_card
from laconic.export.parts import NotExportableError
from laconic.export.scorecard import to_scorecard


def shape_model(**rule) -> DecisionClassifier:
    axis = KnotAxis(np.array([0.0, 1.0, 4.0]), np.array([9.0]))
    shape = SlotTerm(("x",), (axis,), np.array([[-1.0], [2.0], [0.5], [0.7], [0.1]]))
    own = AdditiveScore(("no", "yes"), np.array([-0.4]), (shape,))
    model = cases.FormModel(Schema(("x",), ("numeric",), (None,), True), own)
    return DecisionClassifier(model, train_prior=0.2, prefit=True, positive="yes", **rule).fit(
        None, None
    )


@pytest.mark.parametrize("double", [1.0, 20.0, 300.0])
def test_points_are_the_rounded_shape(double):
    model = shape_model()
    card = to_scorecard(model, points_to_double=double, most_parts=None)
    x = np.concatenate([np.linspace(-1, 6, 4001), [9.0, np.nan]])
    factor = double / math.log(2.0)
    inside = np.interp(np.clip(x, 0, 4), [0, 1, 4], [-1.0, 2.0, 0.5])
    shape = np.where(x == 9.0, 0.7, np.where(np.isnan(x), 0.1, inside))
    wanted = np.rint(factor * shape) + np.rint(factor * -0.4)
    off = np.abs(card.points({"x": x}) - wanted)
    # a point that lies on a step within rounding may take either side of it
    near = np.abs(factor * shape - np.floor(factor * shape) - 0.5) < 1e-9
    assert (off[~near] == 0).all()
    assert all(min(own) >= 0 for one in card.variables for _, own in one.parts())


def test_few_parts_by_larger_steps():
    card = to_scorecard(shape_model(), most_parts=5)
    (one,) = card.variables
    assert 4 <= len(one.parts()) <= 5 + 3  # and a special value, missing, the first part
    points = [own[0] for text, own in one.parts()[:-2]]
    step = min(np.abs(np.diff(points)))
    assert step > 1
    assert np.allclose(np.diff(points) % step, 0)
    fine = to_scorecard(shape_model(), most_parts=None)
    x = {"x": np.linspace(-1, 6, 500)}
    assert np.abs(card.points(x) - fine.points(x)).max() <= step / 2 + 1


def test_totals_decide_as_the_rule_does():
    model = shape_model(costs={"fp": 1, "fn": 3}, prior=0.21, reject_cost=0.7)
    card = to_scorecard(model)
    ranges = card.decisions()
    assert {label for *_, label in ranges} == {"no", "reject", "yes"}
    x = {"x": np.linspace(-1, 6, 500)}
    points, said = card.points(x), card.predict(x)
    for total, decision in zip(points, said, strict=True):
        ((*_, label),) = [one for one in ranges if one[0] <= total <= one[1]]
        assert label == decision
    direct = 1 / (1 + np.exp(-points / card.factor)) * (0.21 / 0.2)
    other = 1 / (1 + np.exp(points / card.factor)) * (0.79 / 0.8)
    np.testing.assert_allclose(card.predict_proba(x)[:, 1], direct / (direct + other), atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_every_kind_of_term(n_classes):
    model = cases.decided(cases.form(n_classes))
    frame = cases.rows(2000)
    frame.loc[frame[cases.AGE].abs() > 1e9, cases.AGE] = 4.0
    X = frame.drop(columns="row id")
    with np.errstate(over="ignore"):  # one shape has knots at both ends of the float range
        card = to_scorecard(model, X, points_to_double=50.0, most_parts=None)
    np.testing.assert_allclose(
        card.predict_proba(X), card.parts.proba(card.parts.schema.apply(X)), atol=1e-12
    )
    # everything but the grid with knots is off by half a point for each term at most
    form = card.parts.form
    exact = [t for t in range(len(form.terms)) if t != 4]
    table = card.parts.schema.apply(X)
    before = model.estimator_.form_.contributions(table)[:, exact]
    after = card.parts.form.contributions(table)[:, exact]
    lowest = np.array([card.variables[t].lowest for t in exact]) / card.factor
    assert (np.abs(after + lowest - before).max(axis=(0, 2)) < 0.5000001 / card.factor).all()


def test_loss_is_what_other_code_measures():
    draw = np.random.default_rng(0)
    X = {"x": draw.normal(size=800), "job": draw.choice(["cook", "smith"], 800)}
    y = np.where(X["x"] + (X["job"] == "cook") + draw.normal(size=800) > 1, "yes", "no")
    costs = {"no": {"yes": 1}, "yes": {"no": 4}}
    model = DecisionClassifier(SparseAdditiveClassifier(), costs=costs).fit(X, y)
    card = to_scorecard(model, X, y, points_to_double=2.0)
    loss = card.loss
    assert loss is not None
    said, now = model.predict(X), card.predict(X)
    assert loss["expected_cost"] == pytest.approx(expected_cost(y, said, costs))
    assert loss["expected_cost_rounded"] == pytest.approx(expected_cost(y, now.astype(str), costs))
    assert loss["log_loss_rounded"] == pytest.approx(log_loss(y, card.predict_proba(X)))
    assert loss["log_loss"] == pytest.approx(log_loss(y, model.predict_proba(X)))
    assert loss["decisions_changed"] == np.mean(said != now) > 0
    finer = to_scorecard(model, X, y, points_to_double=100.0, most_parts=None).loss
    assert finer is not None
    assert finer["largest_change"] < loss["largest_change"] / 5
    json.dumps(card.to_dict())
    heads = "variable,part,points,rows,share of rows,rate of yes,WoE"
    assert card.to_csv().splitlines()[0] == heads
    assert "What rounding costs" in card.to_markdown()
    assert len(card.frame()) == len(card.to_csv().splitlines()) - 1


def test_a_column_stands_in_one_table_and_only_with_points():
    """A line and a curve of one column, groups of texts of two models, a column of 0 points."""
    knots = KnotAxis(np.array([-1.0, 0.0, 2.0]), np.array([0.5]))
    cooks, smiths = CategoryAxis((("cook",), ("smith", "joiner"))), CategoryAxis((("joiner",),))
    terms = (
        LineTerm("x", np.array([0.7]), 0.0, np.array([0.2])),
        SlotTerm(("x",), (knots,), np.array([[0.0], [1.1], [-0.6], [2.0], [-0.4]])),
        SlotTerm(("job",), (cooks,), np.array([[0.3], [-0.5], [0.1], [0.9]])),
        SlotTerm(("job",), (smiths,), np.array([[1.3], [0.0], [-0.7]])),
        LineTerm("z", np.array([0.001]), 0.0, np.array([0.0])),
    )
    jobs = ("baker", "cook", "joiner", "smith")
    schema = Schema(("x", "job", "z"), ("numeric", "categorical", "numeric"), (None, jobs, None),
                    named=True)  # fmt: skip
    draw = np.random.default_rng(0)
    special = np.array([0.5, np.nan, -1.0, 2.0])
    X = {
        "x": np.where(draw.random(900) < 0.2, draw.choice(special, 900), draw.normal(size=900)),
        "job": draw.choice(np.array([*jobs, "unseen", None], dtype=object), 900),
        "z": draw.random(900),
    }
    own = AdditiveScore(("a", "b"), np.zeros(1), terms)
    model = DecisionClassifier(
        cases.FormModel(schema, own), {"fp": 1, "fn": 2}, positive="b", prefit=True
    ).fit(None, None)
    card = to_scorecard(model, X, np.where(X["x"] > 0, "b", "a"))
    assert [one.columns for one in card.tables] == [("x",), ("job",), ("z",)]
    rows = card.to_dict()["parts"]
    names = [row["variable"] for row in rows]
    assert list(dict.fromkeys(names)) == ["(every row)", "x", "job"]
    assert len({(row["variable"], row["part"]) for row in rows}) == len(rows)
    assert card.without_points == ("z",)
    assert "One more column is read; all its parts round to 0 points." in card.to_markdown()
    table = card.parts.schema.apply(X)
    total = np.full(900, card.base[0])
    for one in card.tables:
        values = np.array([points for _, (points,) in one.parts()])
        total += values[one.places(table)]
    np.testing.assert_array_equal(total, card.points(X))
    assert sum(row["rows"] for row in rows if row["variable"] == "x") == 900
    bounds = card.tables[0].term.axes[0].bounds
    points = card.tables[0].term.values[: len(bounds) + 1, 0]
    assert (np.diff(points) != 0).all()


def test_a_tree_beside_a_table_says_that_both_add_up():
    cuts = IntervalAxis(np.array([0.0]))
    tree = RulesTerm(
        ("x",), (cuts,), (np.array([1, 2, 0]),), np.array([0, -1, -1]), np.array([1, 0, 0]),
        np.array([1, 0, 0]), np.array([2, 0, 0]), np.array([[0.0], [1.0], [2.0]]),
    )  # fmt: skip
    table = SlotTerm(("x",), (cuts,), np.array([[0.0], [1.0], [2.0]]))
    own = AdditiveScore(("a", "b"), np.zeros(1), (table, tree))
    model = DecisionClassifier(
        cases.FormModel(Schema(("x",), ("numeric",), (None,), True), own),
        {"fp": 1, "fn": 2},
        positive="b",
        prefit=True,
    ).fit(None, None)
    names = [row["variable"] for row in to_scorecard(model).to_dict()["parts"]]
    assert list(dict.fromkeys(names)) == ["(every row)", "x", "x, again: add both"]


def test_a_line_needs_rows_and_votes_have_their_own_scale():
    own = AdditiveScore(("a", "b"), np.zeros(1), (LineTerm("x", np.array([0.3])),))
    model = cases.FormModel(Schema(("x",), ("numeric",), (None,), True), own)
    decision = DecisionClassifier(model, train_prior="balanced", prefit=True).fit(None, None)
    with pytest.raises(NotExportableError, match="give rows"):
        to_scorecard(decision)
    x = {"x": np.array([-10.0, 0.0, 5.0])}
    card = to_scorecard(decision, x, most_parts=None)
    factor = 20.0 / math.log(2.0)
    assert card.points(x).tolist() == np.rint(factor * np.array([-3.0, 0.0, 1.5])).tolist()
    with pytest.raises(ValueError, match="points_to_double"):
        to_scorecard(decision, x, points_to_double=0)
    frame = cases.rows(100).drop(columns="row id")
    with np.errstate(over="ignore"):
        voted = to_scorecard(cases.decided(cases.form(2, "vote")), frame)
    assert voted.factor == 1000.0


def test_markdown_is_inert():
    hostile = "<script>alert(1)</script> | [x](http://y) `c`\n# head"
    text = model_card(
        {
            "classes": [hostile, "b"],
            "shares": [0.5, 0.5],
            "costs": [[0, 1], [2, 0]],
            "confusion": [[5, 1], [2, 3]],
            "expected_cost": 0.125,
            "baselines": {hostile: 0.5},
            "certificates": [{"title": hostile, "says": "gap 0.", "assumes": "nothing."}],
            "comparison": {"candidate": ["a", hostile], "cost": [0.1, None]},
        },
        content={"family": "X", "columns": [{"name": hostile, "kind": "numeric"}]},
        title=hostile,
    )
    assert "<script" not in text
    assert "\n# head" not in text
    assert "[x](" not in text
    for heading in ("Model", "Decisions", "What it does", "What it reads", "Certificates"):
        assert f"## {heading}" in text
    bare = [line.replace("\\|", "").count("|") for line in text.splitlines()]
    for one, after in pairwise(bare):
        assert one == after or 0 in (one, after)
    assert "0.125" in text
    assert model_card(None) == "# Model card\n"
    assert model_card({"rows": {"train": None, "test": 7}}).count("7") == 1


def test_a_card_is_written_for_readers():
    """Sentences are whole, columns have names, and a gap of 1e-22 is below 1e-9."""
    said = "A longer sum of terms taught this page. " * 8
    comparison = {
        "candidate": ["additive", "logistic"], "cost": [0.5, 0.6], "cost_se": [0.01, 0.02],
        "behind": [0.0, 0.1], "tailored_loss": [0.2, 0.3], "size": [29, 41],
        "certificate": [2.5e-7, 4.8e-24], "own": [False, False], "chosen": [True, False],
    }  # fmt: skip
    text = model_card(
        {"certificates": [{"title": "t", "says": said, "assumes": "x."}], "comparison": comparison}
    )
    assert said.strip() in text
    assert "| Candidate | Cost | Standard error | Entries | Gap |" in text
    assert "| additive (kept) | 0.5 | 0.01 | 29 | 2.5e-07 |" in text
    assert "| logistic | 0.6 | 0.02 | 41 | below 1e-9 |" in text
    assert "tailored" not in text


def lending(n=600, seed=0):
    draw = np.random.default_rng(seed)
    X = {"income": draw.gamma(4.0, 600.0, n), "job": draw.choice(["none", "part", "full"], n)}
    X["income"][::23] = np.nan
    score = 1.0 - np.nan_to_num(X["income"], nan=1500.0) / 900 + 0.8 * (X["job"] == "none")
    return X, np.where(score + draw.logistic(size=n) > 0, "bad", "good")


@pytest.fixture(scope="module")
def lender():
    inner = SparseAdditiveClassifier(group_penalty=0.002, pairs=0)
    costs = {"bad": {"good": 5}, "good": {"bad": 1}}
    return DecisionClassifier(inner, costs=costs, positive="bad").fit(*lending())


def test_base_score_odds_and_points_to_double(lender):
    """600 points are odds of 50 good to 1 bad, and 20 points more double them."""
    X, y = lending(seed=1)
    card = to_scorecard(lender, X, y, base_score=600, base_odds=50, points_to_double=20)
    assert card.scored == "good"
    good, bad = card.parts.rule.labels.index("good"), card.parts.rule.labels.index("bad")
    proba = card.of_totals(np.array([[600], [620], [580]]))
    odds = proba[:, good] / proba[:, bad]
    np.testing.assert_allclose(odds, [50.0, 100.0, 25.0], rtol=1e-9)
    # more points are safer, and the card is the rounded model
    points, exact = card.points(X), lender.predict_proba(X)[:, good]
    order = np.argsort(points, kind="stable")
    assert (np.diff(card.predict_proba(X)[order, good]) >= 0).all()
    assert np.corrcoef(points, np.log(exact / (1 - exact)))[0, 1] > 0.99
    assert card.loss["largest_change"] < 0.1
    text = card.to_markdown()
    assert "20 points more double the odds of good" in text
    assert "A total of 600 is odds of 50 to 1 for good." in text
    said = card.to_dict()
    assert (said["base_score"], said["base_odds"], said["points_to_double"]) == (600, 50, 20)
    # the other way round the same model: probabilities differ by the rounding of points only
    risk = to_scorecard(lender, X, y, base_score=600, base_odds=50, scored="bad", most_parts=None)
    safe = to_scorecard(lender, X, y, base_score=600, base_odds=50, most_parts=None)
    assert np.abs(risk.predict_proba(X) - safe.predict_proba(X)).max() < 0.03
    odds = risk.of_totals(np.array([[600]]))[0]
    assert odds[bad] / odds[good] == pytest.approx(50.0)


def test_counts_and_event_rates_are_those_of_the_rows(lender):
    X, y = lending(seed=2)
    card = to_scorecard(lender, X, y, base_score=600, base_odds=50)
    frame = card.frame()
    rate = "rate of bad"
    heads = ["variable", "part", "points", "rows", "share of rows", rate, "WoE"]
    assert list(frame.columns) == heads
    assert frame["rows"][0] == len(y)
    jobs = frame[frame["variable"] == "job"]
    for _, row in jobs.iterrows():
        inside = np.isin(X["job"], row["part"].split(", "))
        assert row["rows"] == inside.sum()
        if inside.any():
            assert row[rate] == pytest.approx((y[inside] == "bad").mean(), abs=5e-5)
            good, bad = (y[inside] == "good").sum(), (y[inside] == "bad").sum()
            woe = math.log(good / (y == "good").sum()) - math.log(bad / (y == "bad").sum())
            assert row["WoE"] == pytest.approx(woe, abs=5e-5)
    income = frame[frame["variable"] == "income"]
    assert income["rows"].sum() == len(y)
    missing = income[income["part"] == "missing"]
    assert missing["rows"].iloc[0] == np.isnan(X["income"]).sum()
    for _, row in income.iterrows():
        if row["part"].startswith("("):
            low, high = map(float, row["part"][1:-1].split(", "))
            assert row["rows"] == ((X["income"] > low) & (X["income"] <= high)).sum()
    # by total: every row once
    decided = [line for line in card.to_markdown().splitlines() if line.startswith("| ")]
    assert sum(card.bins.between(a, b)[0] for a, b, _ in card.decisions()) == len(y)
    assert any(rate in line for line in decided)


def test_cuts_have_few_digits(lender):
    card = to_scorecard(lender, *lending())
    bounds = next(v for v in card.variables if v.columns == ("income",)).term.axes[0].bounds
    assert len(bounds) > 3
    assert all(len(f"{b:.12g}".replace(".", "").strip("0")) <= 3 for b in bounds)
    exact = to_scorecard(lender, *lending(), most_parts=None)
    assert abs(card.loss["log_loss_rounded"] - exact.loss["log_loss"]) < 0.01


def test_a_base_score_is_for_log_odds_of_two_classes(lender):
    with pytest.raises(ValueError, match="base_odds must be above 0"):
        to_scorecard(lender, *lending(), base_score=600, base_odds=0)
    with pytest.raises(ValueError, match="scored must be one of bad, good"):
        to_scorecard(lender, *lending(), scored="ugly")
    frame = cases.rows(100).drop(columns="row id")
    with pytest.raises(ValueError, match="log-odds of two classes"):
        to_scorecard(cases.decided(cases.form(4, "softmax")), frame, base_score=600)


def test_counts_of_pairs_and_trees():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(500, 2))
    y = (X[:, 0] * X[:, 1] + 0.4 * draw.normal(size=500) > 0).astype(int)
    inner = WeightedNaiveBayes(random_state=0, pairs=1, trees=1)
    card = to_scorecard(DecisionClassifier(inner).fit(X, y), X, y)
    assert {len(variable.columns) for variable in card.variables} >= {2}
    for v, variable in enumerate(card.variables):
        values = [own[0] for _, own in variable.parts()]
        own = variable.term.contribution(card.parts.schema.apply(X))[:, 0]
        assert (np.array(values)[variable.places(card.parts.schema.apply(X))] == own).all()
        assert card.bins.rows[v].sum() == 500
        assert card.bins.events[v].sum() == y.sum()
