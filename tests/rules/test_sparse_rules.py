"""SparseRulesClassifier: what its conditions say, what it finds, and that its form is the model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.metrics import log_loss

from laconic import LaconicClassifier, PlainLogisticRegression, SparseRulesClassifier
from laconic.data.datasets import load
from laconic.data.tables.columns import Schema, Table
from laconic.rules.conditions import (
    ColumnConditions,
    conditions_of,
    quantile_cuts,
    rules_of,
)


def mixed(n: int = 400, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    draw = np.random.default_rng(seed)
    x = draw.normal(size=n)
    kind = draw.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2]).astype(object)
    y = np.where((x > 0) ^ (kind == "a"), "yes", "no")
    x[draw.random(n) < 0.1] = np.nan
    kind[draw.random(n) < 0.1] = None
    return pd.DataFrame({"x": x, "kind": kind, "noise": draw.normal(size=n)}), y


def test_conditions_read_as_their_names_say() -> None:
    X, _ = mixed()
    table = Schema.learn(X).table
    weight = np.ones(len(X))
    for j, name in enumerate(("x", "kind")):
        found = conditions_of(table, j, weight, 4)
        sides = found.read(table)
        for text, side in zip(found.names, sides, strict=True):
            column = X[name]
            if text.endswith("is missing"):
                expected = column.isna()
            elif "<=" in text:
                expected = column <= float(text.split("<= ")[1])
                # the name is rounded to six digits
                assert (expected == (side > 0)).mean() > 0.99
                continue
            else:
                expected = column == text.split("= ")[1]
            np.testing.assert_array_equal(side > 0, expected)
    assert "x is missing" in conditions_of(table, 0, weight, 4).names


def test_complements_and_rare_conditions_are_not_offered() -> None:
    X = pd.DataFrame({"two": ["u", "v"] * 100, "rare": ["w"] * 199 + ["z"], "same": [1.0] * 200})
    table = Schema.learn(X).table
    assert conditions_of(table, 0, np.ones(200), 8).names == ("two = u",)
    assert conditions_of(table, 1, np.ones(200), 8).names == ()
    assert conditions_of(table, 2, np.ones(200), 8).names == ()


def test_cuts_halve_the_weight_and_survive_huge_numbers() -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0])
    assert quantile_cuts(x, np.array([1.0, 1.0, 1.0, 9.0]), 1) == [3.5]
    assert np.isfinite(quantile_cuts(np.array([-1.7e308, 1.7e308]), np.ones(2), 3)).all()


def test_rules_on_offer_fit_the_limit() -> None:
    draw = np.random.default_rng(0)
    table = Schema.learn(draw.normal(size=(200, 6))).table
    for most in (300, 100, 21, 12, 6):
        rules = rules_of(table, np.ones(200), most, 8)
        assert 0 < len(rules.first) <= most
        assert (rules.second >= 0).any() == (most >= 21)
        owner = rules.owner
        pairs = rules.second >= 0
        assert (owner[rules.first[pairs]] != owner[rules.second[pairs]]).all()


def test_wide_tables_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from laconic.rules import conditions

    asked = []

    def counted(table: Table, j: int, weight: np.ndarray, most: int) -> ColumnConditions:
        asked.append((j, most))
        return conditions_of(table, j, weight, most)

    monkeypatch.setattr(conditions, "conditions_of", counted)
    draw = np.random.default_rng(0)
    for n_columns, passes in ((40, 3), (120, 8), (310, 1)):
        table = Schema.learn(draw.normal(size=(60, n_columns))).table
        asked.clear()
        rules = rules_of(table, np.ones(60), 300, 8)
        assert len(asked) == len(set(asked)) <= passes * n_columns
        assert (rules.second < 0).all()
        assert len(rules.first) == max(1, 300 // n_columns) * n_columns


def test_products_are_agreements() -> None:
    X, _ = mixed()
    table = Schema.learn(X).table
    rules = rules_of(table, np.ones(len(X)), 300, 2)
    signs = rules.read(table)
    single = signs[rules.second < 0]
    for r in np.flatnonzero(rules.second >= 0):
        agree = single[rules.first[r]] == single[rules.second[r]]
        np.testing.assert_array_equal(signs[r] > 0, agree)


def test_score_is_the_sum_of_the_rules() -> None:
    X, y = mixed()
    model = SparseRulesClassifier(random_state=0).fit(X, y)
    table = model._read_rows(X)
    rules = rules_of(table, np.ones(len(X)), 300, 8)
    sides = dict(zip(rules.names(), rules.read(table), strict=True))
    total = sum(rule.weight * sides[rule.text] for rule in model.rules_[0])
    score = model.decision_function(X)
    np.testing.assert_allclose(score - score.mean(), total - np.mean(total), atol=1e-9)
    np.testing.assert_allclose(
        np.asarray(model.explain(X)).sum(axis=1) + model.intercept_[0], score, atol=1e-12
    )
    # centred terms: the intercept is the score of a mean row
    assert model.intercept_[0] == pytest.approx(score.mean())


def test_steps_keep_only_the_cuts_and_categories_that_matter() -> None:
    draw = np.random.default_rng(3)
    x = draw.uniform(size=600)
    text = draw.choice(list("abcd"), 600)
    y = draw.random(600) < 0.1 + 0.6 * (x > 0.5) + 0.2 * (text == "c")
    frame = pd.DataFrame({"x": x, "text": text})
    model = SparseRulesClassifier(penalty=0.3).fit(frame, y)
    for term in model.form_.terms:
        for side, axis in enumerate(term.axes):
            lines = np.moveaxis(term.values, side, 0)
            others = tuple(range(1, lines.ndim))
            if hasattr(axis, "bounds"):
                n = len(axis.bounds)
                assert (lines[:n] != lines[1 : n + 1]).any(axis=others).all()
            else:
                assert (lines[: axis.other] != lines[axis.other]).any(axis=others).all()
    first = next(term for term in model.form_.terms if term.columns == ("x",))
    assert 0 < len(first.axes[0].bounds) < 8


def test_an_interaction_of_a_number_and_a_category_is_found() -> None:
    X, y = mixed(800)
    model = SparseRulesClassifier(random_state=0).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.85
    strongest = model.rules_[0][0]
    assert set(strongest.columns) == {"x", "kind"}
    assert model.n_rules_ < model.n_offered_ / 2


def test_held_out_probabilities_do_not_flatter_noise() -> None:
    draw = np.random.default_rng(0)
    X, y = draw.normal(size=(150, 8)), draw.random(150) < 0.4
    model = SparseRulesClassifier(random_state=0).fit(X, y)
    share = y.mean()
    constant = -share * np.log(share) - (1 - share) * np.log(1 - share)
    assert log_loss(y, model.held_out_proba_) > 0.97 * constant
    path = model.path_[0]
    chosen = int(np.flatnonzero(path.shares == model.penalty_[0])[0])
    np.testing.assert_allclose(model.held_out_proba_[:, 1], expit(path.scores[chosen]))


def test_three_classes_one_against_the_others() -> None:
    draw = np.random.default_rng(1)
    X = draw.normal(size=(300, 4))
    y = np.array(["low", "mid", "top"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    model = SparseRulesClassifier(random_state=0).fit(X, y)
    assert len(model.rules_) == 3
    assert model.score(X, y) > 0.85
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ({"max_rules": 0}, "max_rules"),
        ({"penalty": 0.0}, "penalty"),
        ({"selection": "x"}, "selection"),
    ],
)
def test_bad_parameters_are_named(parameters: dict[str, object], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        SparseRulesClassifier(**parameters).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.dataset("monks2")
@pytest.mark.parametrize("seed", [0, 1, 4])
def test_monks2_exactly_two_of_six(seed: int) -> None:
    """A row is positive when exactly two of its columns have their first value."""
    data = load("monks2")
    draw = np.random.default_rng(seed).permutation(len(data.y))
    train, test = draw[:216], draw[216:]
    model = SparseRulesClassifier(random_state=0).fit(data.X.iloc[train], data.y[train])
    ours = model.score(data.X.iloc[test], data.y[test])
    peer = PlainLogisticRegression().fit(data.X.iloc[train], data.y[train])
    assert ours > 0.95 > 0.75 > peer.score(data.X.iloc[test], data.y[test])


def test_the_main_job_offers_rules_to_small_tables_and_by_name() -> None:
    X, y = mixed(300)
    small = LaconicClassifier(candidates=["rules", "logistic"], random_state=0).fit(X, y)
    assert small.candidate_ == "rules"


def test_no_order_of_columns_changes_the_rules() -> None:
    # eight rows and many rules that say the same of them: which of them enters is a tie
    draw = np.random.default_rng(3)
    X = pd.DataFrame(draw.integers(0, 3, (8, 5)).astype(float), columns=list("abcde"))
    y = np.arange(8) % 3
    model = SparseRulesClassifier(20, cv=2, random_state=0)
    said = model.fit(X, y).predict_proba(X)
    for turn in ("edcba", "bdace", "caebd"):
        again = model.fit(X[list(turn)], y).predict_proba(X)
        np.testing.assert_allclose(again, said, atol=1e-9)


def test_the_unit_of_the_weights_changes_nothing() -> None:
    draw = np.random.default_rng(5)
    X, y = draw.normal(size=(25, 2)), np.arange(25) % 5
    model = SparseRulesClassifier(20, cv=2, random_state=0)
    said, value = model.fit(X, y).predict_proba(X), model.objective_
    for unit in (2.0**-733, 2.0**300):
        again = model.fit(X, y, sample_weight=np.full(25, unit)).predict_proba(X)
        np.testing.assert_allclose(again, said, atol=1e-12)
        assert model.objective_ == pytest.approx(value * unit, rel=1e-9)
