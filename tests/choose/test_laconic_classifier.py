"""The main job's estimator: prices, choice, size, budget, interruption."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import laconic
from laconic import LaconicClassifier
from laconic.choose.candidates import Candidate, auto_candidates, read_candidates
from laconic.choose.comparison import OperatingCondition, Outcome, class_risks, paired
from laconic.choose.estimator import _well_informed
from laconic.core.compact import model_size, term_size
from laconic.core.contract import Training
from laconic.core.forms import LineTerm, SlotTerm
from laconic.core.progress import listening
from laconic.data.demo import make_payments
from laconic.data.tables.axes import CategoryAxis, IntervalAxis, KnotAxis
from laconic.minimax.prior_box import PriorBox

FAMILY = laconic.PlainLogisticRegression
FEW = ["logistic", "bayes", "scorecard"]


def _condition(costs, prior=None, box=None, reject=None):
    return OperatingCondition(np.array(costs, float), np.array([0.9, 0.1]), prior, box, reject)


def _outcome(row_cost, proba=None, size=1.0):
    n = len(row_cost)
    proba = np.full((n, 2), 0.5) if proba is None else proba
    out = Outcome(Candidate("x", None), proba, np.asarray(row_cost, float), complete=True)
    out.sizes.append(size)
    return out


def test_row_costs_by_hand():
    proba = np.array([[0.95, 0.05], [0.8, 0.2], [0.5, 0.5]])
    y = np.array([0, 1, 0])
    paid = _condition([[0, 1], [10, 0]]).row_costs(proba, y, None)
    np.testing.assert_array_equal(paid, [0.0, 0.0, 1.0])
    paid = _condition([[0, 1], [10, 0]], reject=0.3).row_costs(proba, y, None)
    np.testing.assert_array_equal(paid, [0.3, 0.3, 0.3])
    # at a deployed share of 1/1000, odds 0.5 : 0.5 become 0.5 * 0.999/0.9 : 0.5 * 0.001/0.1
    paid = _condition([[0, 1], [10, 0]]).row_costs(proba, y, np.array([0.999, 0.001]))
    np.testing.assert_array_equal(paid, [0.0, 10.0, 0.0])


def test_class_risks_and_paired_errors_against_plain_formulas():
    draw = np.random.default_rng(0)
    y = (draw.random(500) < 0.3).astype(int)
    a, b = draw.random(500), draw.random(500)
    weight = np.ones(500)
    risk, variance = class_risks(a, y, weight, 2)
    np.testing.assert_allclose(risk, [a[y == 0].mean(), a[y == 1].mean()])
    np.testing.assert_allclose(variance[1], a[y == 1].var() / (y == 1).sum())
    condition = _condition([[0, 1], [1, 0]])
    gap, error = paired(_outcome(a), _outcome(b), y, weight, condition)
    d = a - b
    assert gap == pytest.approx(0.9 * d[y == 0].mean() + 0.1 * d[y == 1].mean())
    expected = 0.81 * d[y == 0].var() / (y == 0).sum() + 0.01 * d[y == 1].var() / (y == 1).sum()
    assert error == pytest.approx(np.sqrt(expected))


def test_a_box_of_priors_prices_the_worst_mix():
    condition = _condition([[0, 1], [1, 0]], box=PriorBox.of([[0.5, 0.8], [0.2, 0.5]], 2))
    np.testing.assert_allclose(condition.mix(np.array([0.1, 0.4])), [0.5, 0.5])
    np.testing.assert_allclose(condition.mix(np.array([0.4, 0.1])), [0.8, 0.2])


def test_of_equal_costs_the_better_probabilities_stay():
    y = np.tile([0, 1], 200)
    good = np.where(y[:, None] == [0, 1], 0.8, 0.2)
    poor = np.where(y[:, None] == [0, 1], 0.55, 0.45)
    kept = _well_informed(
        [_outcome(np.zeros(400), poor), _outcome(np.zeros(400), good)], y, np.ones(400), 1.0
    )
    assert len(kept) == 1
    assert kept[0].proba is good


@pytest.mark.parametrize(("excess", "expected"), [(0.0, 1), (0.2, 0)])
def test_a_smaller_model_is_kept_only_if_it_costs_no_more(excess, expected):
    draw = np.random.default_rng(0)
    y = np.tile([0, 1], 200)
    noise = (draw.random(400) < 0.1).astype(float)
    training = Training(None, y, np.ones(400), np.arange(400))
    large = _outcome(noise, size=200.0)
    small = _outcome(np.roll(noise, 2) + excess, size=5.0)
    chosen = LaconicClassifier()._choose([large, small], training, _condition([[0, 1], [1, 0]]))
    assert chosen is [large, small][expected]


@pytest.mark.parametrize(
    ("long_size", "more", "expected"),
    [
        (50, 19, "short"),  # within one error on the page, equal log losses: the smaller one
        (50, 42, "long"),  # more than one error: the cheaper one
        (5000, 19, "short"),  # one error is what a page is worth
        (5000, 42, "long"),  # more than one error: no page
    ],
)
def test_a_page_and_a_smaller_size_are_worth_one_error(long_size, more, expected):
    # in both classes the short model errs alone on 2,500 + more rows of 10,000, the long one alone
    # on 2,500 - more: behind by 2 more / 10,000, with a standard error of 0.0064
    n = 20_000
    y = np.repeat([0, 1], n // 2)
    place = np.tile(np.arange(n // 2), 2)
    short_cost = (place < 2_500 + more).astype(float)
    long_cost = ((place >= 5_000) & (place < 7_500 - more)).astype(float)
    proba = np.full((n, 2), 0.5)
    longer = _outcome(long_cost, proba, long_size)
    short = _outcome(short_cost, proba, 5)
    weight = np.ones(n)
    condition = _condition([[0.0, 1.0], [1.0, 0.0]])
    behind, error = paired(short, longer, y, weight, condition)
    assert behind / error == pytest.approx(more / 32, rel=0.02)
    training = SimpleNamespace(y=y, weight=weight)
    chosen = LaconicClassifier()._choose([longer, short], training, condition)
    assert chosen is {"long": longer, "short": short}[expected]


@pytest.mark.parametrize(("sizes", "expected"), [((50, 5), 0), ((5000, 500), 1)])
def test_on_a_page_the_better_informed_is_kept_and_without_one_the_smaller(sizes, expected):
    """Equal costs; the first is ahead in log loss by half a standard error."""
    draw = np.random.default_rng(0)
    y = np.tile([0, 1], 1000)
    noise = 0.2 * draw.choice([-1.0, 1.0], size=2000)
    losses = [1.0 + noise - noise.mean() - 0.5 * 0.2 / np.sqrt(2000), np.ones(2000)]
    proba = [np.exp(-loss) for loss in losses]
    both = [np.where(y[:, None] == [0, 1], own[:, None], 1 - own[:, None]) for own in proba]
    outcomes = [_outcome(np.zeros(2000), q, size) for q, size in zip(both, sizes, strict=True)]
    training = Training(None, y, np.ones(2000), np.arange(2000))
    chosen = LaconicClassifier()._choose(outcomes, training, _condition([[0, 1], [1, 0]]))
    assert chosen is outcomes[expected]


def test_sizes_count_what_a_reader_looks_at():
    assert term_size(LineTerm("x", np.array([2.0]))) == 1
    assert term_size(LineTerm("x", np.array([2.0]), missing=np.array([0.3]))) == 2
    bins = IntervalAxis(np.array([1.0, 2.0]))
    assert term_size(SlotTerm(("x",), (bins,), [[1.0], [1.0], [2.0], [1.0]])) == 2
    texts = CategoryAxis((("a",), ("b",)))
    assert term_size(SlotTerm(("x",), (texts,), [[1.0], [2.0], [0.0], [0.0]])) == 3
    straight = KnotAxis(np.arange(10.0), np.empty(0))
    line = np.append(np.arange(10.0), 0.0)[:, None]
    assert term_size(SlotTerm(("x",), (straight,), line)) == 2
    bent = line.copy()
    bent[5:10] = 4.0
    assert term_size(SlotTerm(("x",), (straight,), bent)) == 3
    grid = SlotTerm(("x", "z"), (bins, texts), np.arange(16.0).reshape(4, 4, 1))
    assert term_size(grid) == 16
    numbers = np.random.default_rng(0).normal(size=(50, 3))
    fitted = laconic.MinimaxClassifier(n_bins=2).fit(numbers, numbers[:, 0] > 0)
    assert model_size(fitted) == fitted.n_profiles_
    assert np.isnan(model_size(GaussianNB().fit(numbers, numbers[:, 0] > 0)))


@pytest.fixture(scope="module")
def payments():
    return make_payments(1500, random_state=1)


@pytest.fixture(scope="module")
def fitted(payments):
    costs = {"fraud": {"genuine": 25}, "genuine": {"fraud": 1}}
    return LaconicClassifier(costs, candidates=FEW, random_state=0).fit(*payments)


def test_the_table_tells_the_choice(fitted, payments):
    frame = fitted.comparison_
    assert list(frame["candidate"]) == FEW
    chosen = frame[frame["chosen"]]
    assert list(chosen["candidate"]) == [fitted.candidate_]
    assert float(chosen["behind"].iloc[0]) <= float(chosen["behind_se"].iloc[0])
    assert frame["behind"].min() == 0.0
    assert (frame["certificate"].dropna() <= 1e-5).all()
    decided = fitted.predict(payments[0])
    proba = fitted.predict_proba(payments[0])
    np.testing.assert_array_equal(decided == "fraud", proba[:, 0] * 25 >= proba[:, 1])


def test_held_out_costs_are_those_of_a_loop_by_hand(payments):
    X, y = payments
    costs = np.array([[0.0, 25.0], [1.0, 0.0]])
    halves = [(np.arange(0, 1500, 2), np.arange(1, 1500, 2))]
    halves.append(halves[0][::-1])
    model = LaconicClassifier(costs, candidates=["logistic"], cv=halves).fit(X, y)
    paid = np.empty(1500)
    for train, test in halves:
        inner = laconic.PlainLogisticRegression().fit(X[train], y[train])
        decided = (inner.predict_proba(X[test]) @ costs).argmin(axis=1)
        paid[test] = costs[(y[test] == "genuine").astype(int), decided]
    assert model.comparison_["cost"][0] == pytest.approx(paid.mean())


def test_best_is_the_cheapest(payments):
    costs = {"fraud": {"genuine": 25}, "genuine": {"fraud": 1}}
    model = LaconicClassifier(costs, candidates=FEW, selection="best", random_state=0)
    frame = model.fit(*payments).comparison_
    assert frame["cost"].idxmin() == frame["chosen"].idxmax()


def test_a_model_of_ones_own_and_raw_rows():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(200, 3))
    y = (X[:, 0] + draw.normal(size=200) > 0).astype(int)
    models = {"mine": LogisticRegression(), "ours": laconic.PlainLogisticRegression()}
    model = LaconicClassifier(candidates=models).fit(X, y)
    frame = model.comparison_
    assert frame["cost"][0] == pytest.approx(frame["cost"][1], abs=0.02)
    assert model.candidate_ == "ours"  # the size of the other one is not known


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


def test_minimax_is_shown_but_not_chosen_unasked(payments):
    X, y = payments
    offered = auto_candidates(np.array([[0.0, 1.0], [1.0, 0.0]]), None, 0, None)
    assert [c.name for c in offered if c.decides] == ["minimax"]
    model = LaconicClassifier(candidates=["minimax"], random_state=0).fit(X, y)
    assert isinstance(model.decision_, laconic.MinimaxClassifier)


def test_three_classes_with_a_matrix():
    draw = np.random.default_rng(3)
    X = draw.normal(size=(300, 3))
    y = np.array(["a", "b", "c"])[(X + draw.normal(size=(300, 3))).argmax(axis=1)]
    costs = [[0, 1, 5], [1, 0, 1], [9, 2, 0]]
    model = LaconicClassifier(costs, candidates=FEW, random_state=0).fit(X, y)
    expected = model.predict_proba(X) @ np.array(costs)
    np.testing.assert_array_equal(model.predict(X), model.classes_[expected.argmin(axis=1)])


def test_a_budget_leaves_the_rest_untried(payments, monkeypatch):
    X, y = payments
    model = LaconicClassifier(candidates=FEW, time_budget=1e-6, random_state=0).fit(X, y)
    notes = list(model.comparison_["note"])
    assert all("time_budget" in note for note in notes)
    assert model.candidate_ == "logistic"


def test_an_interruption_keeps_the_best_so_far(payments, monkeypatch):
    X, y = payments

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(laconic.WeightedNaiveBayes, "fit", interrupt)
    with pytest.warns(UserWarning, match="best model so far"):
        model = LaconicClassifier(candidates=FEW, random_state=0).fit(X, y)
    assert model.candidate_ == "logistic"
    with pytest.raises(KeyboardInterrupt):
        LaconicClassifier(candidates=["bayes", "logistic"]).fit(X, y)


def test_a_candidate_that_refuses_is_told_and_not_chosen():
    draw = np.random.default_rng(0)
    X = {"number": draw.normal(size=60), "text": draw.choice(["a", "b"], 60)}
    y = np.arange(60) % 2
    models = {"zone": laconic.GrayZoneLogisticRegression(), "plain": FAMILY()}
    model = LaconicClassifier(candidates=models).fit(X, y)
    assert model.candidate_ == "plain"
    assert model.comparison_["note"][0].startswith("refused: Column 'text' is categorical")
    with pytest.raises(ValueError, match="categorical"):
        LaconicClassifier(candidates={"zone": laconic.GrayZoneLogisticRegression()}).fit(X, y)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [([], "auto"), (["magic"], "offered here"), ("additive", "auto"), ({}, "empty")],
)
def test_candidates_that_are_not_known(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_candidates(given, auto_candidates(np.eye(2)[::-1], None, 0, None))


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
    assert list(model.comparison_["candidate"]) == ["logistic", "bayes"]
