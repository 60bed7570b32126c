"""The main job's estimator from outside: choice, priors, groups, time, interruption, words."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_validate

import laconic
from laconic import LaconicClassifier, expected_cost
from laconic.core.progress import listening
from laconic.data.demo import make_payments
from laconic.scorecard import solver
from laconic.scorecard.branching import Proof

COSTS = {"fraud": {"genuine": 25}, "genuine": {"fraud": 1}}
FEW = ["logistic", "bayes", "scorecard"]


@pytest.fixture(scope="module")
def payments():
    return make_payments(1500, random_state=1)


@pytest.fixture(scope="module")
def fitted(payments):
    return LaconicClassifier(COSTS, candidates=FEW, random_state=0).fit(*payments)


def test_the_table_tells_the_choice(fitted, payments):
    frame = fitted.comparison_
    assert list(frame["candidate"])[:4] == [*FEW, "committee"]
    chosen = frame[frame["chosen"]]
    assert list(chosen["candidate"]) == [fitted.candidate_]
    assert frame["behind"].min() == 0.0
    assert (frame["certificate"].dropna() <= 1e-5).all()
    decided = fitted.predict(payments[0])
    proba = fitted.predict_proba(payments[0])
    np.testing.assert_array_equal(decided == "fraud", proba[:, 0] * 25 >= proba[:, 1])


def test_the_reported_cost_is_that_of_new_rows(fitted):
    X, y = make_payments(20_000, random_state=2)
    paid = expected_cost(y, fitted.predict(X), COSTS)
    # one draw, so three errors; `python -m benchmarks reported` counts how often intervals hold
    assert abs(fitted.reported_cost_.value - paid) <= 3 * fitted.reported_cost_.error
    assert fitted.price_of_readability_.error < fitted.reported_cost_.error
    assert fitted.size_ <= 300


def test_a_model_of_ones_own_and_raw_rows():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(200, 3))
    y = (X[:, 0] + draw.normal(size=200) > 0).astype(int)
    models = {"mine": LogisticRegression(), "ours": laconic.PlainLogisticRegression()}
    model = LaconicClassifier(candidates=models).fit(X, y)
    frame = model.comparison_
    assert frame["cost"][0] == pytest.approx(frame["cost"][1], abs=0.02)
    assert model.candidate_ == "ours"  # the other one has no form


def test_prior_bounds_decide_for_the_worst_mix(payments):
    X, y = payments
    box = [[0.02, 0.4], [0.6, 0.98]]
    model = LaconicClassifier(prior_bounds=box, candidates=FEW, random_state=0).fit(X, y)
    assert 0.02 <= model.decision_.prior_[0] <= 0.4
    plain = LaconicClassifier(candidates=FEW, random_state=0).fit(X, y)
    worst = model.comparison_["cost"].min()
    assert worst < plain.comparison_["worst_class_risk"].min()
    with pytest.raises(ValueError, match="not both"):
        LaconicClassifier(prior=0.5, prior_bounds=box).fit(X, y)


def test_a_rule_of_decisions_that_is_named_decides_itself(payments):
    model = LaconicClassifier(candidates=["minimax"], random_state=0).fit(*payments)
    assert isinstance(model.decision_, laconic.MinimaxClassifier)


def test_three_classes_with_a_matrix():
    draw = np.random.default_rng(3)
    X = draw.normal(size=(300, 3))
    y = np.array(["a", "b", "c"])[(X + draw.normal(size=(300, 3))).argmax(axis=1)]
    costs = [[0, 1, 5], [1, 0, 1], [9, 2, 0]]
    model = LaconicClassifier(costs, candidates=FEW, random_state=0).fit(X, y)
    expected = model.predict_proba(X) @ np.array(costs)
    np.testing.assert_array_equal(model.predict(X), model.classes_[expected.argmin(axis=1)])
    assert np.isfinite(model.reported_cost_.value)


def test_a_page_that_cannot_say_what_taught_it_gives_way_to_a_candidate_that_is_a_page():
    """Ten classes: their sum of 400 entries says on 60 much less than lines say on 40."""
    draw = np.random.default_rng(0)
    X, slopes = draw.normal(size=(600, 4)), 1.2 * draw.normal(size=(10, 4))
    y = (X @ slopes.T + draw.gumbel(size=(600, 10))).argmax(axis=1)
    offered = ["additive", "logistic"]
    model = LaconicClassifier(candidates=offered, max_size=60, random_state=0).fit(X, y)
    assert model.candidate_ == "logistic"
    assert model.size_ == 40
    assert model.comparison_.set_index("candidate")["chosen"]["logistic"]


def test_an_abstention_has_its_price(payments):
    model = LaconicClassifier(COSTS, reject_cost=0.4, candidates=FEW).fit(*payments)
    plain = LaconicClassifier(COSTS, candidates=FEW).fit(*payments)
    assert model.reported_cost_.value < plain.reported_cost_.value
    assert "reject" in set(model.predict(payments[0]))


@pytest.mark.parametrize("candidates", [["logistic", "bayes"], ["bayes", "logistic"]])
def test_an_interruption_ends_the_fit(payments, monkeypatch, candidates):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(laconic.WeightedNaiveBayes, "fit", interrupt)
    with pytest.raises(KeyboardInterrupt):
        LaconicClassifier(candidates=candidates, random_state=0).fit(*payments)


def test_an_interrupted_card_ends_the_comparison(payments, monkeypatch):
    """The search keeps its best card; the comparison took that for a fit and went on."""

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    solver._compiled()  # of its toy, before the proof is broken
    monkeypatch.setattr(Proof, "run", interrupt)
    alone = laconic.OptimalScorecardClassifier(2, pool=0.0)
    with pytest.warns(ConvergenceWarning, match="stalled"):
        assert alone.fit(*payments).interrupted_
    with pytest.raises(KeyboardInterrupt):
        LaconicClassifier(candidates=["logistic", "card"], random_state=0).fit(*payments)


def test_a_candidate_that_refuses_is_told_and_not_chosen():
    draw = np.random.default_rng(0)
    X = {"number": draw.normal(size=60), "text": draw.choice(["a", "b"], 60)}
    y = np.arange(60) % 2
    zone = laconic.GrayZoneLogisticRegression()
    models = {"zone": zone, "plain": laconic.PlainLogisticRegression()}
    model = LaconicClassifier(candidates=models).fit(X, y)
    assert model.candidate_ == "plain"
    assert model.comparison_["note"][0].startswith("refused: Column 'text' is categorical")
    with pytest.raises(ValueError, match="categorical"):
        LaconicClassifier(candidates={"zone": zone}).fit(X, y)


def test_a_table_too_small_for_folds_is_fitted_without_judging():
    X, y = np.arange(4.0)[:, None], np.array([0, 1, 0, 1])
    halves = [(np.array([0, 2]), np.array([1, 3]))]  # one class to learn from
    model = LaconicClassifier(candidates=["logistic"], cv=halves).fit(X, y)
    assert model.candidate_ == "logistic"
    assert np.isnan(model.reported_cost_.value)


def test_steps_are_reported(payments):
    steps = []
    with listening(steps.append):
        LaconicClassifier(candidates=FEW[:1]).fit(*payments)
    assert "logistic" in steps[0].text
    assert steps[0].done <= steps[-1].done <= 1.0


def test_notebooks_show_the_fitted_model_in_a_few_lines(fitted, payments):
    shown = fitted._repr_html_()
    assert "entries to look at" in shown
    assert fitted.candidate_ in shown
    assert "entries to look at" not in LaconicClassifier()._repr_html_()
    X = {"<b>": np.arange(40.0), "b": np.arange(40.0) % 3}
    model = laconic.DecisionClassifier(laconic.PlainLogisticRegression())
    model.fit(X, np.arange(40) % 2)
    shown = model._repr_html_()
    assert "threshold" in shown
    assert "&lt;b&gt;" in shown
    assert "<b>," not in shown


def _patients(n, draw, visits=5):
    """Rows that leak by group: every patient has a label and measurements nearly the same."""
    own = draw.normal(size=(n, 6))
    label = (own[:, 0] + 2.0 * draw.normal(size=n) > 0).astype(int)
    X = np.repeat(own, visits, axis=0) + 0.03 * draw.normal(size=(n * visits, 6))
    return X, np.repeat(label, visits), np.repeat(np.arange(n), visits)


def test_groups_are_judged_honestly_and_twenty_percent_too_good_without():
    X, y, patient = _patients(80, np.random.default_rng(0))
    new, truth, _ = _patients(2000, np.random.default_rng(1))
    told = {}
    for key, groups in (("without", None), ("with", patient)):
        model = LaconicClassifier(candidates=["additive-single"]).fit(X, y, groups=groups)
        told[key] = model.reported_cost_
        paid = float(np.mean(model.predict(new) != truth))
    assert told["with"].low <= paid <= told["with"].high
    assert told["without"].value < 0.8 * paid
    assert told["without"].high < paid


def test_a_model_whose_bags_would_mix_groups_is_refused():
    X, y, patient = _patients(40, np.random.default_rng(0))
    model = LaconicClassifier(candidates=["logistic", "boosted"], cv=3)
    told = model.fit(X, y).comparison_.set_index("candidate")["note"]
    assert told["boosted"] == ""
    told = model.fit(X, y, groups=patient).comparison_.set_index("candidate")["note"]
    assert told["boosted"].startswith("refused: its bags")
    with pytest.raises(ValueError, match="No candidate could be fitted: refused: its bags"):
        LaconicClassifier(candidates=["boosted"]).fit(X, y, groups=patient)


def test_a_splitter_that_would_leak_is_an_error():
    X, y, patient = _patients(40, np.random.default_rng(0))
    shuffled = KFold(4, shuffle=True, random_state=0)
    with pytest.raises(ValueError, match="trains on and judges rows of group '0'"):
        LaconicClassifier(candidates=FEW, cv=shuffled).fit(X, y, groups=patient)
    with pytest.raises(ValueError, match="trains on rows that are not earlier"):
        LaconicClassifier(candidates=FEW, cv=shuffled).fit(X, y, time=np.arange(200))
    with pytest.raises(ValueError, match="groups has 3 different values and cv=5"):
        LaconicClassifier(candidates=FEW).fit(X, y, groups=np.arange(200) % 3)
    with pytest.raises(ValueError, match="groups must hold one entry for each of the 200 rows"):
        LaconicClassifier(candidates=FEW).fit(X, y, groups=patient[:-1])


def test_time_trains_on_the_past():
    """The relation turns round half way: judged by the past the cost is that of a wrong rule."""
    draw = np.random.default_rng(0)
    X, time = draw.normal(size=(400, 1)), draw.permutation(400)
    sign = np.where(time < 200, 1.0, -1.0)
    y = (sign * X[:, 0] + 0.3 * draw.normal(size=400) > 0).astype(int)
    past = LaconicClassifier(candidates=["logistic"], cv=3).fit(X, y, time=time)
    mixed = LaconicClassifier(candidates=["logistic"], cv=3).fit(X, y)
    assert past.reported_cost_.value > mixed.reported_cost_.value + 0.05


def test_groups_arrive_by_metadata_routing():
    X, y, patient = _patients(40, np.random.default_rng(0))
    with config_context(enable_metadata_routing=True):
        model = LaconicClassifier(candidates=["logistic"], cv=3).set_fit_request(groups=True)
        found = cross_validate(model, X, y, cv=2, params={"groups": patient}, error_score="raise",
                               return_estimator=True)  # fmt: skip
    for own, train in zip(found["estimator"], ([100, 200], [0, 100]), strict=True):
        alone = LaconicClassifier(candidates=["logistic"], cv=3)
        part = slice(*train)
        alone.fit(X[part], y[part], groups=patient[part])
        assert own.reported_cost_.value == pytest.approx(alone.reported_cost_.value, abs=0.2)


def test_a_scan_chooses_on_a_sample_and_fits_on_all_rows(tmp_path):
    import polars as pl

    draw = np.random.default_rng(0)
    X = draw.normal(size=(800, 4))
    y = X[:, 0] + 2.0 * (np.abs(X[:, 1]) < 0.6) + draw.logistic(size=800) > 0.8
    frame = pl.DataFrame(X, schema=list("abcd")).with_columns(pl.Series("label", y.astype(int)))
    frame.write_parquet(tmp_path / "rows.parquet")
    rows = laconic.scan(tmp_path / "rows.parquet", target="label")
    model = LaconicClassifier(candidates=["bayes", "additive-single"], tolerance=0.0).fit(rows)
    assert model.size_ <= 300
    assert model.comparison_["chosen"].sum() == 1
    assert np.isfinite(model.reported_cost_.value)
    with pytest.raises(ValueError, match="costs by row are for rows in memory"):
        LaconicClassifier(candidates=["bayes"]).fit(rows, groups=np.arange(800))


def test_a_fitted_choice_is_made_of_plain_things(payments):
    """Tools that store models piece by piece (skops, MLflow) know no frames."""
    X, y = payments
    model = LaconicClassifier(candidates=["logistic", "bayes"], cv=3, random_state=0).fit(X, y)
    seen, stack = set(), [vars(model)]
    while stack:
        thing = stack.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        assert not type(thing).__module__.startswith(("pandas", "polars")), type(thing)
        if isinstance(thing, dict):
            stack += thing.values()
        elif isinstance(thing, list | tuple):
            stack += thing
        elif hasattr(thing, "__dict__"):
            stack.append(vars(thing))
    assert list(model.comparison_["candidate"])[:2] == ["logistic", "bayes"]
