"""OptimalScorecardClassifier: items, rules, the pool, risks of totals, bad input."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.exceptions import ConvergenceWarning

from laconic import DecisionClassifier, OptimalScorecardClassifier, to_scorecard
from laconic.scorecard.risk import Seen, log_odds_table, risk_rows


def people(n: int = 400, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    draw = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": np.where(draw.random(n) < 0.15, np.nan, draw.normal(50, 12, n)),
            "dose": draw.integers(0, 4, n).astype(float),
            "ward": draw.choice(["north", "south", "east"], n),
        }
    )
    score = 0.08 * (frame["age"].fillna(62) - 50) + 0.8 * frame["dose"] - 1.5
    score += np.where(frame["ward"] == "east", 1.2, 0.0)
    return frame, np.where(draw.random(n) < 1 / (1 + np.exp(-score)), "sick", "fine")


def fitted(X=None, y=None, **parameters):
    if X is None:
        X, y = people()
    more = {"cutting": "both", "max_cuts": 3, "gap": 0.05, "pool": 0.0, **parameters}
    return OptimalScorecardClassifier(more.pop("max_items", 3), (-3, 3), **more).fit(X, y)


def loss_with_prior(p, second, rows):
    """Mean log loss of the rows and of prior rows of the classes of the whole."""
    yes, no, share = -np.log(p), -np.log(1 - p), second.mean()
    prior = share * yes + (1 - share) * no
    return (np.where(second, yes, no).sum() + rows * prior.mean()) / (len(p) + rows)


def test_the_form_says_what_the_card_says():
    X, y = people()
    model = fitted(X, y, max_items=4)
    total = np.zeros(len(X))
    for item in model.card_.items:
        column, _, rest = item.text.partition(" ")
        if rest.startswith(">="):
            total += item.points * (X[column] >= float(rest[2:]))
        elif rest.startswith(">"):
            total += item.points * (X[column] > float(rest[1:]))
        elif rest == "is missing":
            total += item.points * X[column].isna()
        else:
            texts = rest.removeprefix("= ").removeprefix("in ").split(", ")
            total += item.points * X[column].isin(texts)
    risk = {row.total: row.risk for row in model.risk_}
    said = np.array([risk[t] for t in total])
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], said, atol=1e-12)
    second = y == "sick"
    loss = loss_with_prior(said, second, model.prior_rows)
    loss += model.item_price * len(model.card_.items) / (len(X) + model.prior_rows)
    assert loss == pytest.approx(model.objective_, abs=1e-9)
    assert model.lower_bound_ <= model.objective_
    assert model.optimality_gap_ == pytest.approx(1 - model.lower_bound_ / model.objective_)


def test_prior_rows_keep_a_perfect_card_from_being_too_sure():
    X = np.repeat([[0.0], [1.0]], 20, axis=0)
    y = np.repeat([0, 1], 20)
    said = [fitted(X, y, prior_rows=rows).predict_proba(X)[-1, 1] for rows in (0, 8, 40)]
    # rows of one class among n + t: n and half of the t, so the rate is known
    np.testing.assert_allclose(said[1:], [(40 + 4) / 48, (40 + 20) / 80], atol=1e-9)
    assert said[0] > 0.95  # three points of the largest multiplier


def test_missing_values_and_categories_are_items():
    model = fitted(forced=["age is missing", "ward"], max_items=3)
    texts = [item.text for item in model.card_.items]
    assert "age is missing" in texts
    assert any(item.column == "ward" for item in model.card_.items)


def test_a_thousand_categories_do_not_blow_up():
    draw = np.random.default_rng(0)
    texts = np.array([f"c{i}" for i in range(1000)])[draw.integers(0, 1000, 4000)]
    bad = np.isin(texts, [f"c{i}" for i in range(300)])
    y = draw.random(4000) < np.where(bad, 0.8, 0.2)
    model = fitted(pd.DataFrame({"code": texts, "x": draw.random(4000)}), y, max_items=2)
    assert model.n_offered_ <= 40
    assert len(str(model.card_)) < 400
    assert model.predict_proba(pd.DataFrame({"code": ["new"], "x": [0.5]})).shape == (1, 2)


@pytest.mark.parametrize("parts", ["cuts", "bins"])
@pytest.mark.parametrize("way", [1, "decreasing"])
def test_monotone_points_follow_the_column(parts, way):
    X, y = people()
    y = np.where(X["age"].between(45, 60), "sick", y)  # not monotone by itself
    model = fitted(X, y, monotone={"age": way}, parts=parts, max_items=4)
    grid = pd.DataFrame({"age": np.linspace(0, 100, 60), "dose": 1.0, "ward": "east"})
    steps = np.diff(model.predict_proba(grid)[:, 1])
    assert ((steps if way == 1 else -steps) >= 0).all()


def test_rules_are_kept():
    plain = fitted(max_items=4)
    first = plain.card_.items[0]
    without = fitted(max_items=4, forbidden=[first.text])
    assert first.text not in [item.text for item in without.card_.items]
    negative = fitted(max_items=4, signs={"dose": -1})
    assert all(i.points < 0 for i in negative.card_.items if i.column == "dose")
    narrow = fitted(max_items=4, max_columns=1)
    assert len({item.column for item in narrow.card_.items}) == 1
    single = fitted(max_items=4, max_per_column=1)
    columns = [item.column for item in single.card_.items]
    assert len(set(columns)) == len(columns)
    apart = fitted(max_items=4, exclusive=[["dose", "ward"]])
    assert sum(item.column in ("dose", "ward") for item in apart.card_.items) <= 1
    grouped = fitted(max_items=4, group_limits={("age", "dose"): 2})
    assert sum(item.column in ("age", "dose") for item in grouped.card_.items) <= 2
    assert plain.lower_bound_ <= min(m.objective_ for m in (without, negative, narrow, apart))


def test_rules_that_clash_are_named():
    with pytest.raises(ValueError, match="forced dose; forbidden dose") as found:
        fitted(forced=["dose"], forbidden=["dose"], signs={"age": 1})
    assert "age" not in str(found.value)
    with pytest.raises(ValueError, match="forced age; forced dose; forced ward; max_items=2"):
        fitted(max_items=2, forced=["age", "dose", "ward"])
    with pytest.raises(ValueError, match="forced age; forced dose; max_columns=1"):
        fitted(forced=["age", "dose"], max_columns=1)
    with pytest.raises(ValueError, match="forced age; forced dose; at most 1 of age, dose"):
        fitted(forced=["age", "dose"], exclusive=[["age", "dose"]], monotone={"age": 1})
    X, y = people()
    with pytest.raises(ValueError, match="forced constant, but the column offers no item"):
        fitted(X.assign(constant=1.0), y, forced=["constant"])


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"forced": ["weight"]}, "forced names 'weight', which is neither a column nor an item"),
        ({"monotone": {"ward": 1}}, "categorical and has no order"),
        ({"monotone": {"age": 2}}, "must be 1, -1, 'increasing' or 'decreasing'"),
        ({"signs": {"age": 0}}, "must be 1, -1"),
        ({"group_limits": {("age",): -1}}, "whole number >= 0"),
        ({"max_items": 13}, "max_items"),
        ({"costs": [[0, 1], [0, 0]]}, "both errors"),
    ],
)
def test_bad_parameters_are_refused(parameters, said):
    with pytest.raises(ValueError, match=said):
        fitted(**parameters)


def test_bad_points_and_classes_are_refused():
    X, y = people()
    for points in [(1, 5), (0, 0), (-1.5, 2), (-5000, 5)]:
        with pytest.raises(ValueError, match="points must"):
            OptimalScorecardClassifier(2, points).fit(X, y)
    with pytest.raises(ValueError, match="y has 3 classes; group them"):
        fitted(X, np.where(X["ward"] == "east", "other", y))


def test_the_pool_and_the_substitutes():
    X, y = people()
    model = fitted(X, y, pool=0.03)
    assert len(model.pool_) > 1
    best = model.objective_
    for card in model.pool_:
        assert best <= card.objective <= 1.03 * best + 1e-9
        assert card.gap == pytest.approx(1 - model.lower_bound_ / card.objective)
    assert set(model.substitutes_) == {item.text for item in model.pool_[0].items}
    for item, others in model.substitutes_.items():
        assert all(text != item and loss <= 1.03 * best + 1e-9 for text, loss in others)
    before = model.predict_proba(X)
    other = model.pool_[1]
    assert model.choose(other) is model
    assert model.card_ is other
    second = y == "sick"
    p = model.predict_proba(X)[:, 1]
    loss = loss_with_prior(p, second, model.prior_rows)
    loss += model.item_price * len(other.items) / (len(X) + model.prior_rows)
    assert loss == pytest.approx(other.objective, abs=1e-9)
    np.testing.assert_array_equal(model.choose(0).predict_proba(X), before)
    with pytest.raises(ValueError, match="one of the"):
        model.choose(len(model.pool_))
    with pytest.raises(ValueError, match="one of the"):
        model.choose(replace(other, objective=0.0))


@pytest.mark.parametrize("risk", ["logistic", "isotonic"])
def test_held_out_totals_give_monotone_risks(risk):
    X, y = people(1000)
    model = fitted(X, y, risk=risk)
    assert "rows that the search did not see" in model.calibration_
    risks = [row.risk for row in model.risk_]
    assert (np.diff(risks) >= 0).all()
    assert min(risks) > 0
    assert max(risks) < 1
    seen = sum(row.rows for row in model.risk_)
    assert 200 < seen < 300
    shuffled = np.random.default_rng(3).permutation(len(X))
    again = fitted(X.iloc[shuffled], y[shuffled], risk=risk)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_isotonic_steps_are_the_least_squares_ones():
    seen = Seen(0, np.array([1.0, 5.0, 2.0, 9.0]), np.array([9.0, 5.0, 8.0, 1.0]))
    p = 1 / (1 + np.exp(-log_odds_table(seen, "isotonic", 2.0)))
    np.testing.assert_allclose(p, [0.1, 0.35, 0.35, 0.9])


def test_intervals_of_risk_cover():
    n, level = 40, 0.95
    for p in (0.03, 0.2, 0.5):
        covered = 0.0
        for k in range(n + 1):
            row = risk_rows(Seen(0, np.array([float(k)]), np.array([float(n - k)])), np.zeros(1))[0]
            covered += binom.pmf(k, n, p) * (row.low <= p <= row.high)
        assert covered >= level


def test_costs_decide_as_the_card_does():
    X, y = people()
    costs = {"sick": {"fine": 4}, "fine": {"sick": 1}}
    model = DecisionClassifier(
        OptimalScorecardClassifier(
            2, (-2, 2), cutting="both", max_cuts=2, costs=costs, time_limit=20
        ),
        costs,
    ).fit(X, y)
    card = model.estimator_
    said, sick = model.predict(X) == "sick", y == "sick"
    cost = (4 * (sick & ~said) + (~sick & said)).mean()
    assert cost == pytest.approx(card.objective_, abs=1e-9)
    total = card.form_.score(card._read_rows(X))[:, 0] - card.form_.intercept[0]
    np.testing.assert_array_equal(said, total >= card.cost_threshold_)
    assert (np.diff([row.risk for row in card.risk_]) >= 0).all()


def test_no_time_warns_and_leaves_a_card_with_its_bound():
    X, y = people()
    with pytest.warns(ConvergenceWarning, match="raise time_limit or gap"):
        model = fitted(X, y, time_limit=0.0)
    assert model.lower_bound_ <= fitted(X, y).objective_


def test_columns_without_news_leave_the_empty_card():
    y = np.array([0, 1] * 20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fitted(np.ones((40, 2)), y)
    assert model.card_.items == ()
    np.testing.assert_allclose(model.predict_proba(np.ones((1, 2))), [[0.5, 0.5]])


def test_a_card_is_exported_as_it_is_and_searched_for_other_models():
    from laconic import PlainLogisticRegression

    X, y = people()
    card = DecisionClassifier(OptimalScorecardClassifier(3, (-3, 3), max_cuts=3)).fit(X, y)
    written = to_scorecard(card, X, y)
    np.testing.assert_array_equal(written.predict_proba(X), card.predict_proba(X))
    assert written.loss["largest_change"] == 0.0
    plain = DecisionClassifier(PlainLogisticRegression()).fit(X, y)
    found = to_scorecard(plain, X, y, exact=3)
    assert len(found.variables) <= 3
    assert "no card of its conditions" in found.to_markdown()
    assert found.loss["rows"] < len(X)
    assert found.points(X).dtype.kind == "i"
    with pytest.raises(ValueError, match="exact searches a card"):
        to_scorecard(plain, exact=3)


@pytest.mark.parametrize("scored", ["fine", "sick"])
def test_a_card_keeps_its_probabilities_on_the_scale_of_credit_scores(scored):
    X, y = people()
    model = DecisionClassifier(OptimalScorecardClassifier(4, (-4, 4))).fit(X, y)
    plain = to_scorecard(model, X, y)
    card = to_scorecard(
        model, X, y, points_to_double=20, base_score=600, base_odds=9, scored=scored
    )
    np.testing.assert_allclose(card.predict_proba(X), model.predict_proba(X), rtol=1e-12)
    np.testing.assert_array_equal(card.predict(X), plain.predict(X))
    # as near as whole numbers come: a point of the card is card.factor points here
    step = np.log(2) / card.to_dict()["points_to_double"]
    place = list(model.classes_).index(scored)
    odds = np.log(card.predict_proba(X)[:, place] / card.predict_proba(X)[:, 1 - place])
    np.testing.assert_allclose(odds, np.log(9) + step * (card.points(X) - 600), atol=0.51 * step)
    assert card.to_dict()["points_to_double"] == pytest.approx(20, rel=0.5 / card.factor)
    stepped = DecisionClassifier(OptimalScorecardClassifier(3, risk="isotonic")).fit(X, y)
    with pytest.raises(ValueError, match="base_score needs log-odds that are a line"):
        to_scorecard(stepped, X, y, base_score=600)


def test_an_item_has_a_line_only_if_it_brings_its_price():
    X, y = people()
    losses, sizes = [], []
    for price in (0.0, 20.0, 1000.0):
        model = OptimalScorecardClassifier(3, (-2, 2), item_price=price, gap=0.0, pool=0.0)
        model.fit(X, y)
        sizes.append(len(model.card_.items))
        losses.append(model.objective_ * (len(X) + model.prior_rows) - price * sizes[-1])
    assert sizes[0] >= sizes[1] >= sizes[2] == 0 < sizes[0]
    # what is left out brings less than its price, what stays brings more
    assert losses[1] - losses[0] <= 20.0 * (sizes[0] - sizes[1]) + 1e-6
    assert losses[2] - losses[1] >= 20.0 * (sizes[1] - sizes[2]) - 1e-6


def test_cuts_between_whole_numbers_say_whole_numbers():
    X, y = people()
    X = X.assign(age=X["age"].round(), half=X["age"].round() + 0.5)
    model = OptimalScorecardClassifier(3).fit(X, y)
    texts = {text for column in model._offered for text in column.texts}
    whole = [text for text in texts if text.startswith("age ")]
    assert whole
    assert all("." not in text for text in whole)
    for item in model.card_.items:
        if item.column == "age" and ">=" in item.text:
            bound = float(item.text.split(">=")[1])
            one = X.iloc[:1].assign(age=bound)
            less = X.iloc[:1].assign(age=bound - 1)
            assert model.explain(one).contributions[0].sum() != pytest.approx(
                model.explain(less).contributions[0].sum()
            )


def test_a_card_is_a_candidate_of_the_main_job():
    from laconic import LaconicClassifier
    from laconic.choose.candidates import auto_candidates

    X, y = people(150)
    model = LaconicClassifier(candidates=["card"], cv=2, monotone={"age": 1}, random_state=0)
    model.fit(X, y)
    assert model.candidate_ == "card"
    grid = pd.DataFrame({"age": np.linspace(0, 100, 40), "dose": 1.0, "ward": "east"})
    sick = list(model.classes_).index("sick")
    assert (np.diff(model.predict_proba(grid)[:, sick]) >= 0).all()
    three = [own.name for own in auto_candidates(np.ones((3, 3)) - np.eye(3), None, 0, None)]
    assert "card" not in three
