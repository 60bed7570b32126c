"""The weighted mean of several models is one sum of terms."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import laconic
from laconic import BlendedClassifier
from laconic.choose.blends import mean_form
from laconic.choose.page.shortening import form_size
from laconic.core import AdditiveScore
from laconic.core.forms import LineTerm, SlotTerm
from laconic.data.demo import make_payments
from laconic.data.tables.axes import CategoryAxis, IntervalAxis, KnotAxis
from laconic.data.tables.columns import Table

BAYES = laconic.WeightedNaiveBayes(random_state=0)
COSTS = {"fraud": {"genuine": 25}, "genuine": {"fraud": 1}}
PLAIN = laconic.PlainLogisticRegression()


@pytest.fixture(scope="module")
def payments():
    return make_payments(3000, random_state=1)


def _numbers(draw, n=400):
    x = np.round(draw.normal(size=(n, 2)), 1)
    x[draw.random((n, 2)) < 0.1] = np.nan
    x[0] = [-50.0, 50.0]
    return Table(("u", "v"), ("numeric", "numeric"), (None, None), matrix=x)


def _axis(draw, kind):
    at = np.unique(np.round(draw.normal(size=draw.integers(1, 6)), 1))
    apart = np.unique(np.round(draw.normal(size=draw.integers(0, 3)), 1))
    if kind == "intervals":
        return IntervalAxis(at, tuple(apart))
    return KnotAxis(at, apart)


def _form(axes, names, draw):
    values = draw.normal(size=(*(axis.size for axis in axes), 1))
    return AdditiveScore((0, 1), draw.normal(size=1), (SlotTerm(names, axes, values),))


@pytest.mark.parametrize("kind", ["intervals", "knots"])
@pytest.mark.parametrize("width", [1, 2])
def test_the_mean_of_random_tables_and_shapes(kind, width):
    merged = 0
    for seed in range(60):
        draw = np.random.default_rng(seed)
        table, names = _numbers(draw), ("u", "v")[:width]
        forms = [_form(tuple(_axis(draw, kind) for _ in names), names, draw) for _ in range(2)]
        mean = mean_form(forms)
        expected = (forms[0].score(table) + forms[1].score(table)) / 2
        np.testing.assert_allclose(mean.score(table), expected, rtol=0, atol=1e-12)
        merged += len(mean.terms) == 1
    # cuts always merge; knots do unless one of them is a value apart on the other axis
    assert merged == 60 if kind == "intervals" else 10 <= merged < 60


def test_categories_keep_what_either_tells_apart():
    axes = [CategoryAxis((("a", "b"), ("c",))), CategoryAxis((("b", "c"), ("d",)))]
    draw = np.random.default_rng(0)
    forms = [_form((axis,), ("x",), draw) for axis in axes]
    texts = ("a", "b", "c", "d", "e")
    codes = np.array([0, 1, 2, 3, 4, -1, -2], dtype=np.int32)
    table = Table(("x",), ("categorical",), (texts,), columns=(codes,))
    mean = mean_form(forms)
    expected = (forms[0].score(table) + forms[1].score(table)) / 2
    np.testing.assert_allclose(mean.score(table), expected, rtol=0, atol=1e-15)
    groups = {frozenset(group) for group in mean.terms[0].axes[0].groups}
    assert groups == {frozenset("a"), frozenset("b"), frozenset("c"), frozenset("d")}


def test_lines_of_one_origin_are_one_line():
    lines = [LineTerm("u", np.array([s]), 1.5, np.array([m])) for s, m in ((2.0, 1.0), (4.0, 0.0))]
    other = LineTerm("u", np.array([1.0]), 0.0)
    forms = [AdditiveScore((0, 1), np.zeros(1), (line,)) for line in (*lines, other)]
    table = _numbers(np.random.default_rng(0))
    assert [len(mean_form(forms[:k]).terms) for k in (2, 3)] == [1, 2]
    expected = sum(form.score(table) for form in forms) / 3
    np.testing.assert_allclose(mean_form(forms).score(table), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "members",
    [
        [PLAIN, BAYES],
        [laconic.ScorecardClassifier(trees=3, random_state=0), BAYES],
        [laconic.SparseRulesClassifier(random_state=0), laconic.SparseAdditiveClassifier(cv=3)],
        [laconic.SparseAdditiveClassifier(cv=3), laconic.SparseAdditiveClassifier(pairs=0, cv=3)],
    ],
)
def test_scores_are_the_mean_of_the_members(members, payments):
    X, y = payments
    model = BlendedClassifier(members).fit(X[:2500], y[:2500])
    alone = [type(own)(**own.get_params()).fit(X[:2500], y[:2500]) for own in members]
    scores = [own.decision_function(X[2500:]) for own in alone]
    np.testing.assert_allclose(
        model.decision_function(X[2500:]), np.mean(scores, axis=0), rtol=0, atol=1e-11
    )
    form = AdditiveScore.from_dict(json.loads(json.dumps(model.form_.to_dict())))
    assert np.array_equal(form.proba(model._read_rows(X[2500:])), model.predict_proba(X[2500:]))
    again = BlendedClassifier.of(alone)
    assert np.array_equal(again.predict_proba(X[2500:]), model.predict_proba(X[2500:]))
    assert len(model.form_.terms) <= sum(len(own.form_.terms) for own in alone)
    assert model.feature_importances_.sum() == pytest.approx(1.0)


def test_probabilities_of_three_classes_are_the_geometric_mean():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(300, 3))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + draw.normal(size=300), [-0.5, 0.5])]
    members = [PLAIN, laconic.PlainLogisticRegression(C=0.01)]
    model = BlendedClassifier(members).fit(X, y)
    logs = sum(np.log(own.predict_proba(X)) for own in model.estimators_) / 2
    expected = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=0, atol=1e-12)


def test_a_sum_of_certificates_only_where_all_have_one(payments):
    both = BlendedClassifier([BAYES, laconic.SparseRulesClassifier(random_state=0)]).fit(*payments)
    gaps = [own.duality_gap_ for own in both.estimators_]
    assert both.duality_gap_ == pytest.approx(sum(gaps))
    searched = laconic.bayes.SelectiveNaiveBayes(n_starts=1, random_state=0)
    assert not hasattr(BlendedClassifier([PLAIN, searched]).fit(*payments), "duality_gap_")


@pytest.mark.parametrize(
    ("members", "error", "words"),
    [
        ([], ValueError, "estimators is empty"),
        ([LogisticRegression(), PLAIN], TypeError, "sum of terms, got LogisticRegression"),
        ([laconic.CqBoostClassifier(), PLAIN], ValueError, "CqBoostClassifier cannot be blended"),
        (
            [laconic.kernel.RankKernelClassifier()],
            ValueError,
            "RankKernelClassifier cannot be blended",
        ),
    ],
)
def test_members_that_have_no_mean(members, error, words, payments):
    with pytest.raises(error, match=words):
        BlendedClassifier(members).fit(*payments)


def test_weights_are_those_of_the_scores(payments):
    X, y = payments
    model = BlendedClassifier([PLAIN, BAYES], [3.0, 1.0]).fit(X, y)
    plain, bayes = (own.decision_function(X) for own in model.estimators_)
    np.testing.assert_allclose(model.decision_function(X), 0.75 * plain + 0.25 * bayes, atol=1e-10)
    smoothing = [own.form_.smoothing for own in model.estimators_]
    assert model.form_.smoothing == pytest.approx(0.75 * smoothing[0] + 0.25 * smoothing[1])
    alone = BlendedClassifier([PLAIN, BAYES], [1.0, 0.0]).fit(X, y)
    np.testing.assert_allclose(alone.decision_function(X), plain, atol=1e-10)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [0.0, 0.0], [1.0, np.inf]])
def test_weights_that_weigh_nothing(weights, payments):
    with pytest.raises(ValueError, match="weights must hold 2 numbers >= 0"):
        BlendedClassifier([PLAIN, PLAIN], weights).fit(*payments)


def test_a_most_size_makes_the_page_shorter_and_keeps_what_it_says(payments):
    X, y = payments
    member = laconic.SparseAdditiveClassifier(cv=3)
    whole = BlendedClassifier([member]).fit(X, y)
    most = form_size(whole.form_) // 2
    drawn = BlendedClassifier([member], max_size=most).fit(X, y)
    assert 0 < form_size(drawn.form_) <= most
    said, short = whole.decision_function(X), drawn.decision_function(X)
    assert 0.9 < np.corrcoef(said, short)[0, 1] < 1.0


def test_the_report_draws_a_variable_of_two_members_once(payments):
    X, y = payments
    model = laconic.DecisionClassifier(BlendedClassifier([PLAIN, BAYES]), costs=COSTS).fit(X, y)
    told = laconic.report(model, X, y).summary["model"]
    read = [tuple(term["columns"]) for term in told["form"]["terms"]]
    assert len(set(read)) < len(read) == sum(len(one["terms"]) for one in told["variables"])
    assert len(told["variables"]) == told["n_terms"] == len(set(read))
    name, size = told["importance"][0]
    table = model.estimator_._read_rows(X)
    form = model.estimator_.form_
    own = [term.contribution(table) for term in form.terms if " \u00d7 ".join(term.columns) == name]
    assert size == pytest.approx(float(sum(own).std()))
