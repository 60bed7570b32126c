"""DecisionClassifier: least expected cost, deployed prior, abstention, prefitted models."""

import doctest
import pickle
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import norm
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from laconic import DecisionClassifier, cost_scorer, expected_cost
from laconic.decide import reject_zone


@parametrize_with_checks(
    [
        DecisionClassifier(LogisticRegression()),
        DecisionClassifier(
            DecisionTreeClassifier(random_state=0), reject_cost=0.9, reject_label=-7
        ),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


class Told(ClassifierMixin, BaseEstimator):
    """Returns its rows as probabilities: puts the decision layer under a microscope."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.asarray(X, dtype=float)


def told(n_classes, **parameters):
    names = np.array([f"class {k}" for k in range(n_classes)])
    return DecisionClassifier(Told(), **parameters).fit(np.eye(n_classes), names), names


@pytest.mark.parametrize("n_classes", [2, 3, 4, 5, 6])
def test_decision_is_the_argmin_over_random_cost_matrices(n_classes):
    rng = np.random.default_rng(n_classes)
    for _ in range(30):
        costs = rng.uniform(0, 10, (n_classes, n_classes))
        np.fill_diagonal(costs, rng.uniform(-1, 1, n_classes))
        model, names = told(n_classes, costs=costs)
        proba = rng.dirichlet(np.ones(n_classes), 200)
        brute = [
            min(
                range(n_classes),
                key=lambda d: sum(p[k] * costs[k, d] for k in range(n_classes)),
            )
            for p in proba
        ]
        np.testing.assert_array_equal(model.predict(proba), names[brute])
        np.testing.assert_allclose(model.expected_costs(proba), proba @ costs, atol=1e-12)


def test_threshold_is_where_the_brute_force_decision_changes():
    rng = np.random.default_rng(0)
    grid = np.linspace(0, 1, 20_001)
    proba = np.column_stack([1 - grid, grid])
    for _ in range(50):
        costs = rng.uniform(0, 10, (2, 2))
        costs[0, 0], costs[1, 1] = costs[0, 1] * rng.uniform(), costs[1, 0] * rng.uniform()
        model, names = told(2, costs=costs)
        positive = model.predict(proba) == names[1]
        assert (np.diff(positive.astype(int)) >= 0).all()
        assert model.threshold_ == pytest.approx(grid[positive].min(), abs=1e-4)
        # and no other threshold costs less on average over the rows themselves
        paid = [
            np.mean(
                np.where(grid > cut, (1 - grid) * costs[0, 1] + grid * costs[1, 1], 0)
                + np.where(grid > cut, 0, (1 - grid) * costs[0, 0] + grid * costs[1, 0])
            )
            for cut in np.linspace(0, 1, 101)
        ]
        at_threshold = model.expected_costs(proba).min(axis=1).mean()
        assert at_threshold <= min(paid) + 1e-12


def test_without_costs_it_is_the_wrapped_model():
    X, y = make_classification(300, 6, n_informative=4, n_classes=3, random_state=0)
    plain = LogisticRegression().fit(X, y)
    model = DecisionClassifier(LogisticRegression()).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    np.testing.assert_allclose(model.train_prior_, np.bincount(y) / len(y))
    assert not hasattr(model, "threshold_")


def test_costs_lower_the_cost():
    X, y = make_classification(4000, 8, weights=[0.9], flip_y=0.05, random_state=1)
    train, test = slice(0, 2000), slice(2000, None)
    costs = {"fp": 1, "fn": 20}
    plain = LogisticRegression().fit(X[train], y[train])
    model = DecisionClassifier(LogisticRegression(), costs).fit(X[train], y[train])
    spent = expected_cost(y[test], model.predict(X[test]), costs)
    assert spent < 0.85 * expected_cost(y[test], plain.predict(X[test]), costs)
    assert model.threshold_ == 1 / 21


def test_decision_of_a_row_does_not_depend_on_its_batch():
    rng = np.random.default_rng(2)
    proba = rng.dirichlet(np.ones(6), 300)
    model, _ = told(6, costs=rng.uniform(0, 1, (6, 6)), prior=rng.dirichlet(np.ones(6)))
    whole = model.expected_costs(proba)
    alone = np.vstack([model.expected_costs(proba[[i]]) for i in range(300)])
    np.testing.assert_array_equal(whole, alone)


# --- deployed prior -----------------------------------------------------------------------------


class Gaussians(ClassifierMixin, BaseEstimator):
    """The exact posterior of two unit gaussians at 0 and 2 with the class shares of y."""

    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.share_ = counts / counts.sum()
        return self

    def predict_proba(self, X):
        density = norm.pdf(np.asarray(X)[:, :1] - [0.0, 2.0]) * self.share_
        return density / density.sum(axis=1, keepdims=True)


def test_prior_correction_is_exact_on_a_simulated_label_shift():
    rng = np.random.default_rng(3)

    def draw(share, n):
        y = (np.arange(n) < share * n).astype(int)
        return (2.0 * y + rng.standard_normal(n))[:, None], y

    X, y = draw(0.5, 1000)
    moved_X, moved_y = draw(0.02, 200_000)
    costs = {"fp": 1, "fn": 5}
    model = DecisionClassifier(Gaussians(), costs, prior=0.02).fit(X, y)
    truth = Gaussians().fit(moved_X, moved_y).predict_proba(moved_X)
    np.testing.assert_allclose(model.predict_proba(moved_X), truth, rtol=1e-9, atol=1e-15)
    corrected = expected_cost(moved_y, model.predict(moved_X), costs)
    ignored = expected_cost(
        moved_y, DecisionClassifier(Gaussians(), costs).fit(X, y).predict(moved_X), costs
    )
    # the cheapest cut on x, found on the deployed rows themselves
    cuts = np.linspace(0, 5, 51)
    best = min(expected_cost(moved_y, (moved_X[:, 0] > c).astype(int), costs) for c in cuts)
    assert corrected <= best * 1.02
    assert corrected < 0.5 * ignored


def test_prior_of_one_call_equals_prior_of_the_model():
    X, y = make_classification(300, weights=[0.7], random_state=4)
    fixed = DecisionClassifier(GaussianNB(), prior=0.05).fit(X, y)
    free = DecisionClassifier(GaussianNB()).fit(X, y)
    np.testing.assert_array_equal(free.predict_proba(X, prior=0.05), fixed.predict_proba(X))
    np.testing.assert_array_equal(free.predict(X, prior={0: 0.95, 1: 0.05}), fixed.predict(X))


def test_balanced_training_is_undone_by_train_prior():
    rng = np.random.default_rng(5)
    y = (rng.uniform(size=100_000) < 0.05).astype(int)
    X = (1.5 * y + rng.standard_normal(len(y)))[:, None]
    model = DecisionClassifier(
        LogisticRegression(class_weight="balanced"), prior=y.mean(), train_prior="balanced"
    ).fit(X, y)
    plain = LogisticRegression().fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=0.01)


def test_weights_move_the_training_prior():
    X, y = np.arange(8.0)[:, None], np.array([0, 0, 0, 1, 1, 1, 1, 1])
    model = DecisionClassifier(GaussianNB()).fit(X, y, sample_weight=[1, 1, 2, 4, 0, 0, 0, 0])
    np.testing.assert_allclose(model.train_prior_, [0.5, 0.5])


def test_rows_of_zero_weight_count_nowhere():
    X, y = make_classification(100, random_state=20)
    X = np.vstack([X, X[:5] + 100.0])
    y = np.append(y, [2] * 5)
    weight = np.append(np.ones(100), np.zeros(5))
    model = DecisionClassifier(GaussianNB()).fit(X, y, sample_weight=weight)
    absent = DecisionClassifier(GaussianNB()).fit(X[:100], y[:100])
    assert model.classes_.tolist() == [0, 1]
    np.testing.assert_array_equal(model.predict_proba(X), absent.predict_proba(X))
    np.testing.assert_array_equal(model.train_prior_, absent.train_prior_)
    with pytest.raises(ValueError, match=r"one number per row, 105 in all, got shape \(100,\)"):
        DecisionClassifier(GaussianNB()).fit(X, y, sample_weight=weight[:100])
    with pytest.raises(ValueError, match="numbers >= 0"):
        DecisionClassifier(GaussianNB()).fit(X, y, sample_weight=-weight)


# --- abstention ---------------------------------------------------------------------------------


def test_abstains_exactly_when_every_decision_costs_more():
    rng = np.random.default_rng(6)
    proba = rng.dirichlet(np.ones(3), 500)
    costs = rng.uniform(0, 3, (3, 3)) * (1 - np.eye(3))
    model, names = told(3, costs=costs, reject_cost=0.6)
    taken = model.predict(proba)
    least = (proba @ costs).min(axis=1)
    np.testing.assert_array_equal(taken == "reject", least > 0.6)
    kept = least <= 0.6
    np.testing.assert_array_equal(taken[kept], names[(proba @ costs).argmin(axis=1)][kept])
    assert 0 < kept.sum() < 500


def test_abstention_matches_the_reject_zone():
    p = np.linspace(0, 1, 1001)
    costs = {"fp": 1, "fn": 4}
    model, _ = told(2, costs=costs, reject_cost=0.4, positive="class 1")
    low, high = reject_zone(costs, 0.4)
    out = model.predict(np.column_stack([1 - p, p])) == "reject"
    np.testing.assert_array_equal(out, (p > low + 1e-9) & (p < high - 1e-9))


@pytest.mark.parametrize(
    ("y", "label", "kind"),
    [
        (np.array([0, 1]), -1, "i"),
        (np.array([0.5, 1.5]) * 2, -1.0, "f"),
        (np.array(["a", "b"]), "reject", "U"),
        (np.array(["a", "b"], dtype=object), "reject", "O"),
        (np.array([False, True]), -1, "O"),
    ],
)
def test_automatic_reject_label(y, label, kind):
    model = DecisionClassifier(Told(), reject_cost=0.1).fit(np.eye(2), y)
    taken = model.predict([[0.5, 0.5], [1.0, 0.0]])
    assert taken.dtype.kind == kind
    assert taken.tolist() == [label, y[0]]


def test_long_reject_label_is_not_cut():
    model = DecisionClassifier(Told(), reject_cost=0.1, reject_label="ask a person")
    assert model.fit(np.eye(2), ["a", "b"]).predict([[0.5, 0.5]]).tolist() == ["ask a person"]


def test_a_reject_label_that_is_a_class_is_refused():
    with pytest.raises(ValueError, match=r"reject_label: -1 is one of the classes \[-1, 1\]"):
        DecisionClassifier(Told(), reject_cost=0.1).fit(np.eye(2), [-1, 1])
    DecisionClassifier(Told()).fit(np.eye(2), [-1, 1])


# --- per-row costs ------------------------------------------------------------------------------


def test_per_row_costs_decide_each_row_by_its_own_matrix():
    rng = np.random.default_rng(7)
    proba, costs = rng.dirichlet(np.ones(3), 100), rng.uniform(0, 1, (100, 3, 3))
    model, names = told(3)
    brute = [names[(p @ c).argmin()] for p, c in zip(proba, costs, strict=True)]
    np.testing.assert_array_equal(model.predict(proba, costs=costs), brute)
    with pytest.raises(ValueError, match="99 rows, but there are 100"):
        model.predict(proba, costs=costs[:99])


def test_per_row_costs_through_a_pipeline():
    X, y = make_classification(200, random_state=8)
    fp, fn = np.random.default_rng(8).uniform(1, 9, (2, 200))
    with config_context(enable_metadata_routing=True):
        last = DecisionClassifier(LogisticRegression()).set_predict_request(costs=True)
        pipeline = make_pipeline(StandardScaler(), last).fit(X, y)
        taken = pipeline.predict(X, costs={"fp": fp, "fn": fn})
    p = pipeline.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(taken, (p > fp / (fp + fn)).astype(int))


def test_per_row_costs_do_not_belong_in_the_constructor():
    with pytest.raises(ValueError, match="one cost matrix is needed"):
        DecisionClassifier(Told(), np.ones((2, 2, 2))).fit(np.eye(2), [0, 1])


def test_sample_weight_is_routed_to_the_wrapped_model():
    X, y = make_classification(200, random_state=9)
    weight = np.random.default_rng(9).uniform(0, 3, 200)
    direct = DecisionClassifier(LogisticRegression()).fit(X, y, sample_weight=weight)
    with config_context(enable_metadata_routing=True):
        inner = make_pipeline(LogisticRegression().set_fit_request(sample_weight=True))
        routed = DecisionClassifier(inner).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(routed.predict_proba(X), direct.predict_proba(X))
    np.testing.assert_allclose(routed.train_prior_, direct.train_prior_)
    with pytest.raises(ValueError, match="takes no sample_weight"):
        DecisionClassifier(KNeighborsClassifier()).fit(X, y, sample_weight=weight)


# --- prefitted models ---------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["frozen", "prefit"])
def test_a_prefitted_model_is_not_touched(way):
    X, y = make_classification(300, random_state=10)
    fitted = GaussianNB().fit(X[:200], y[:200])
    before = fitted.theta_.copy()
    if way == "frozen":
        model = DecisionClassifier(FrozenEstimator(fitted), prior=0.1)
    else:
        model = DecisionClassifier(fitted, prior=0.1, prefit=True)
    model.fit(X[200:], y[200:], sample_weight=np.ones(100))
    np.testing.assert_array_equal(fitted.theta_, before)
    np.testing.assert_allclose(model.train_prior_, np.bincount(y[200:]) / 100)
    assert model.n_features_in_ == 20


def test_a_prefitted_model_without_rows():
    X, y = make_classification(300, random_state=11)
    fitted = GaussianNB().fit(X, y)
    model = DecisionClassifier(fitted, {"fp": 1, "fn": 3}, prefit=True).fit(None, None)
    np.testing.assert_array_equal(model.predict(X), (fitted.predict_proba(X)[:, 1] > 0.25) * 1)
    assert model.train_prior_ is None
    with pytest.raises(ValueError, match="train_prior"):
        model.predict(X, prior=0.1)
    with pytest.raises(ValueError, match="train_prior"):
        DecisionClassifier(fitted, prior=0.1, prefit=True).fit(None, None)
    told_shares = DecisionClassifier(fitted, prior=0.1, train_prior=0.5, prefit=True)
    assert told_shares.fit(None, None).predict_proba(X).shape == (300, 2)
    with pytest.raises(NotFittedError, match="prefit"):
        DecisionClassifier(GaussianNB(), prefit=True).fit(X, y)


# --- frames, errors, habits ---------------------------------------------------------------------


def test_frames_pass_through_to_the_wrapped_model():
    columns = {"age": [20.0, 30, 40, 50, 60, 70], "job": ["a", "b", "a", "b", "a", "b"]}
    y = [0, 0, 0, 1, 1, 1]
    inner = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough"),
        LogisticRegression(),
    )
    results = []
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns)):
        model = DecisionClassifier(inner, {"fp": 1, "fn": 2}).fit(frame, y)
        assert model.feature_names_in_.tolist() == ["age", "job"]
        assert model.n_features_in_ == 2
        results.append(model.predict_proba(frame))
    np.testing.assert_allclose(results[0], results[1])


def test_named_costs_do_not_depend_on_order():
    X, y = make_classification(200, random_state=12)
    words = np.where(y == 1, "bad", "good")  # "bad" sorts first
    costs = {"bad": {"good": 10}, "good": {"bad": 1}}
    model = DecisionClassifier(GaussianNB(), costs).fit(X, words)
    bad = model.predict_proba(X)[:, 0]
    np.testing.assert_array_equal(model.predict(X) == "bad", bad >= 1 / 11)


def test_grid_search_over_the_wrapped_model():
    X, y = make_classification(400, weights=[0.8], random_state=13)
    costs = {"fp": 1, "fn": 5}
    search = GridSearchCV(
        DecisionClassifier(LogisticRegression(), costs),
        {"estimator__C": [1e-4, 1.0], "prior": [None, 0.2]},
        scoring=cost_scorer(costs),
        cv=3,
    ).fit(X, y)
    assert search.best_estimator_.threshold_ == 1 / 6


def test_clone_and_pickle():
    X, y = make_classification(200, random_state=14)
    model = DecisionClassifier(GaussianNB(), {"fp": 1, "fn": 2}, prior=0.3, reject_cost=0.2)
    twin = pickle.loads(pickle.dumps(clone(model).fit(X, y)))
    np.testing.assert_array_equal(twin.predict(X), model.fit(X, y).predict(X))


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"estimator": LinearSVC()}, TypeError, "CalibratedClassifierCV"),
        ({"reject_cost": np.nan}, ValueError, "reject_cost"),
        ({"reject_cost": "dear"}, ValueError, "reject_cost"),
        ({"prior": [0.2, 0.2]}, ValueError, "prior must hold shares"),
        ({"train_prior": [1.0, 0.0], "prior": 0.5}, ValueError, "train_prior gives it none"),
        ({"costs": np.ones((3, 3))}, ValueError, "2 classes"),
        ({"costs": [[1, 0], [0, 1]]}, ValueError, "gains"),
    ],
)
def test_bad_parameters_are_explained(parameters, error, words):
    X, y = make_classification(60, random_state=15)
    with pytest.raises(error, match=words):
        DecisionClassifier(**{"estimator": GaussianNB(), **parameters}).fit(X, y)


def test_bad_rows_are_explained():
    X, y = make_classification(60, random_state=16)
    model = DecisionClassifier(DecisionTreeClassifier())
    with pytest.raises(ValueError, match="one class: 0"):
        model.fit(X, np.zeros(60, dtype=int))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, np.where(y == 1, np.nan, 0.0))
    with pytest.raises(NotFittedError):
        DecisionClassifier(GaussianNB()).predict(X)
    prefit = DecisionClassifier(GaussianNB().fit(X, y), prefit=True)
    with pytest.raises(ValueError, match="y holds 2, which is not among the classes"):
        prefit.fit(X, y + 1)


def test_huge_costs_and_rows():
    X, y = make_classification(60, random_state=17)
    model = DecisionClassifier(DecisionTreeClassifier(random_state=0), {"fp": 1e300, "fn": 1e300})
    model.fit(X * 1e30, y)
    assert np.isfinite(model.expected_costs(X * 1e30)).all()
    assert model.threshold_ == 0.5


# --- the guide and the example ------------------------------------------------------------------

PROJECT = Path(__file__).parents[2]


def test_the_guide_runs():
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    text = (PROJECT / "docs" / "decisions.md").read_text(encoding="utf-8").replace("```", "")
    guide = doctest.DocTestParser().get_doctest(text, {}, "decisions.md", "decisions.md", 0)
    assert len(guide.examples) > 30
    assert doctest.DocTestRunner(optionflags=flags).run(guide).failed == 0


def test_the_example_shows_what_it_says(tmp_path, capsys):
    example = runpy.run_path(str(PROJECT / "examples" / "decide_with_costs.py"))
    example["main"](tmp_path)
    lines = capsys.readouterr().out.splitlines()
    cost = {line[:28].strip(): float(line[28:]) for line in lines if line[28:].strip()[:2] == "0."}
    assert cost["costs + estimated mix"] < 0.8 * cost["costs"]
    assert cost["the same, with review"] < cost["costs + estimated mix"] < cost["always 0"]
    drawn = sorted(path.name for path in tmp_path.iterdir())
    assert drawn == ["cost_curve.png", "prior_risk.png", "reliability.png"]
