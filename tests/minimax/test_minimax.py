"""MinimaxClassifier and MinimaxPriorClassifier: decisions, certificates, messages."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from laconic import GrayZoneLogisticRegression, MinimaxClassifier, WeightedNaiveBayes
from laconic.minimax import MinimaxPriorClassifier
from laconic.minimax.criterion import PosteriorLaws, zero_one


def rare_rows(n=3000, share=0.05, seed=0, n_classes=2):
    """Gaussian classes on a line of means, the last one rare."""
    draw = np.random.default_rng(seed)
    prior = np.append(np.full(n_classes - 1, (1 - share) / (n_classes - 1)), share)
    y = draw.choice(n_classes, n, p=prior)
    return draw.normal(size=(n, 2)) + 1.2 * y[:, None], y


def mixed_rows(n=1500, seed=0):
    draw = np.random.default_rng(seed)
    score = draw.normal(size=n)
    frame = pd.DataFrame(
        {
            "size": score + draw.normal(size=n),
            "colour": np.where(score > 0.3, "red", draw.choice(["blue", "green"], n)),
            "count": draw.integers(0, 5, n).astype(float),
        }
    )
    frame.loc[draw.random(n) < 0.1, "size"] = np.nan
    frame.loc[draw.random(n) < 0.1, "colour"] = None
    return frame, np.where(score + 0.5 * draw.normal(size=n) > 1.2, "rare", "usual")


SETTINGS = [
    {},
    {"profiles": "kmeans", "n_profiles": 20},
    {"profiles": "tree", "n_profiles": 20},
    {"binning": "width"},
    {"binning": "kmeans"},
    {"binning": "modl"},
    {"smoothing": "nearest"},
    {"tie": "deterministic"},
    {"costs": [[0, 1], [7, 0]]},
    {"prior_bounds": {"rare": (0.05, 0.3)}},
]


@pytest.mark.parametrize("changes", SETTINGS, ids=str)
def test_mixed_columns_missing_values_and_batches(changes):
    X, y = mixed_rows()
    model = MinimaxClassifier(cv=None, **changes).fit(X, y)
    proba, labels = model.predict_proba(X), model.predict(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-12)
    for rows in (slice(0, 1), slice(500, 507)):
        np.testing.assert_array_equal(model.predict(X.iloc[rows]), labels[rows])
        np.testing.assert_array_equal(model.predict_proba(X.iloc[rows]), proba[rows])
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_array_equal(model.predict(X.iloc[order]), labels[order])
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), labels)
    assert model.duality_gap_ >= 0
    new = X.iloc[:3].assign(colour=["violet", None, "red"], size=[np.nan, 1e9, -1e9])
    assert model.predict_proba(new).shape == (3, 2)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_risks_are_equal_and_certified(n_classes):
    X, y = rare_rows(n_classes=n_classes)
    model = MinimaxClassifier(n_bins=6).fit(X, y)
    assert model.duality_gap_ <= 1e-8
    held = model.class_risks_[model.least_favorable_prior_ > 1e-9]
    assert np.ptp(held) <= 1e-9
    assert held[0] == pytest.approx(model.minimax_risk_, abs=1e-8)
    assert model.minimax_risk_ >= model.bayes_risk_
    assert model.bayes_risk(model.least_favorable_prior_) == pytest.approx(model.minimax_risk_)
    for prior in np.random.default_rng(0).dirichlet(np.ones(n_classes), 50):
        assert model.bayes_risk(prior) <= model.minimax_risk_ + 1e-12


def test_plain_frequencies_are_the_risks_of_the_training_rows():
    """Without smoothing, class_risks_ is what predict_proba loses on the training rows."""
    X, y = rare_rows(n_classes=3)
    loss = np.array([[0, 1, 2], [1, 0.1, 1], [5, 3, 0]])
    model = MinimaxClassifier(costs=loss, smoothing="error", n_bins=5, cv=None).fit(X, y)
    decided = model.predict_proba(X)
    for k in range(3):
        measured = (decided[y == k] @ loss[k]).mean()
        assert model.class_risks_[k] == pytest.approx(measured, abs=1e-12)


def test_draws_follow_the_probabilities():
    X, y = rare_rows(40_000)
    model = MinimaxClassifier(n_bins=3, cv=None).fit(X, y)
    proba, labels = model.predict_proba(X), model.predict(X)
    unsure = (proba > 0).sum(axis=1) > 1
    assert unsure.mean() > 0.02
    for row in np.unique(proba[unsure], axis=0):
        same = (proba == row).all(axis=1)
        freedom = 4 * np.sqrt(0.25 / same.sum())
        assert abs((labels[same] == 1).mean() - row[1]) < freedom
    # the drawn decisions keep the promise that one decision per profile would break
    risks = [np.mean(labels[y == k] != k) for k in range(2)]
    np.testing.assert_allclose(risks, model.minimax_risk_, atol=0.03)
    other = clone(model).set_params(random_state=1).fit(X, y)
    assert (other.predict(X) != labels)[unsure].any()
    np.testing.assert_array_equal(other.predict(X)[~unsure], labels[~unsure])


def test_equal_rows_get_equal_decisions():
    X = [["u"]] * 50 + [["v"]] * 50
    y = [0] * 25 + [1] * 25 + [0] * 25 + [1] * 25
    model = MinimaxClassifier(cv=None).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), 0.5, atol=1e-9)
    assert len(set(model.predict(X)[:50])) == 1


def test_one_profile_and_k_classes():
    X, y = np.ones((60, 1)), np.arange(60) % 4
    model = MinimaxClassifier(cv=None, smoothing="error").fit(X, y)
    assert model.n_profiles_ == 1
    assert model.minimax_risk_ == pytest.approx(0.75, abs=1e-9)
    np.testing.assert_allclose(model.predict_proba([[1.0]]), 0.25, atol=1e-9)


def test_solvers_agree():
    X, y = rare_rows(800, n_classes=3)
    auto = MinimaxClassifier(cv=None).fit(X, y)
    lp = MinimaxClassifier(cv=None, solver="lp").fit(X, y)
    assert auto.minimax_risk_ == pytest.approx(lp.minimax_risk_, abs=1e-8)
    np.testing.assert_allclose(auto.class_risks_, lp.class_risks_, atol=1e-8)
    with pytest.warns(ConvergenceWarning, match="certified within"):
        steps = MinimaxClassifier(cv=None, solver="subgradient", max_iter=100).fit(X, y)
    assert 0 <= auto.minimax_risk_ - steps.minimax_risk_ <= steps.duality_gap_ < steps.bound_9_


def test_the_box_interpolates_between_bayes_and_minimax():
    X, y = rare_rows(n_classes=3)
    free = MinimaxClassifier(cv=None).fit(X, y)
    prior = free.class_prior_
    fixed = MinimaxClassifier(cv=None, prior_bounds=np.column_stack((prior, prior))).fit(X, y)
    assert fixed.minimax_risk_ == pytest.approx(free.bayes_risk_, abs=1e-9)
    worst = []
    for size in (0.0, 0.3, 0.6, 1.0):
        bounds = np.column_stack(((1 - size) * prior, prior + size * (1 - prior)))
        model = MinimaxClassifier(cv=None, prior_bounds=bounds).fit(X, y)
        worst.append(model.minimax_risk_)
        assert (model.least_favorable_prior_ >= bounds[:, 0] - 1e-12).all()
        assert (model.least_favorable_prior_ <= bounds[:, 1] + 1e-12).all()
    assert worst == sorted(worst)
    assert worst[-1] == pytest.approx(free.minimax_risk_, abs=1e-8)


def test_discrete_bayes_is_the_best_rule_at_its_prior():
    X, y = rare_rows(n_classes=3)
    model = MinimaxClassifier(smoothing="error", cv=None).fit(X, y)
    bayes = model.discrete_bayes()
    assert bayes.minimax_risk_ == pytest.approx(model.bayes_risk_)
    errors = np.mean(bayes.predict(X) != y)
    assert errors == pytest.approx(model.bayes_risk_)
    assert errors <= np.mean(model.predict(X) != y)
    there = model.discrete_bayes([0.2, 0.3, 0.5])
    assert there.minimax_risk_ == pytest.approx(model.bayes_risk([0.2, 0.3, 0.5]))
    with pytest.raises(ValueError, match="sum to one"):
        model.discrete_bayes([0.5, 0.5])


def test_a_weight_is_a_repetition():
    X, y = rare_rows(400, share=0.2, n_classes=3)
    weight = np.random.default_rng(0).integers(0, 4, 400)
    for changes in ({}, {"profiles": "kmeans"}, {"binning": "kmeans"}, {"smoothing": "nearest"}):
        once = MinimaxClassifier(n_bins=4, **changes).fit(X, y, sample_weight=weight)
        many = MinimaxClassifier(n_bins=4, **changes).fit(
            np.repeat(X, weight, axis=0), np.repeat(y, weight)
        )
        np.testing.assert_allclose(once.class_risks_, many.class_risks_, atol=1e-9)
        np.testing.assert_allclose(once.class_risks_oof_, many.class_risks_oof_, atol=1e-6)
        np.testing.assert_allclose(once.predict_proba(X), many.predict_proba(X), atol=1e-6)


def test_losses_may_be_named():
    X, y = rare_rows(500, share=0.2)
    named = MinimaxClassifier(costs={"fp": 1, "fn": 7}, cv=None).fit(X, y)
    plain = MinimaxClassifier(costs=[[0, 1], [7, 0]], cv=None).fit(X, y)
    assert named.minimax_risk_ == plain.minimax_risk_


def test_a_gray_zone_narrower_than_the_unit_interval_is_still_fairer():
    X, y = rare_rows(4000)
    fresh, truth = rare_rows(20_000, seed=9)
    inner = GrayZoneLogisticRegression(zone=(0.05, 0.2))
    worst = [
        max(np.mean(model.predict(fresh)[truth == k] != k) for k in range(2))
        for model in (clone(inner).fit(X, y), MinimaxPriorClassifier(inner).fit(X, y))
    ]
    assert worst[1] < worst[0]


def test_unseen_profiles():
    X, y = rare_rows(200)
    far = np.array([[X[:, 0].min(), X[:, 1].max()]])
    smooth = MinimaxClassifier(n_bins=12, cv=None).fit(X, y)
    assert (
        smooth.model_.form.index.find(smooth.model_.form.coder.codes(smooth._read_rows(far)))[0]
        == -1
    )
    assert smooth.predict_proba(far).sum() == pytest.approx(1)
    nearest = MinimaxClassifier(n_bins=12, smoothing="nearest", cv=None).fit(X, y)
    assert nearest.predict_proba(far).sum() == pytest.approx(1)
    strict = MinimaxClassifier(n_bins=12, smoothing="error").fit(X, y)
    with pytest.raises(ValueError, match="profile that no training row"):
        strict.predict(far)
    assert np.isfinite(strict.class_risks_oof_).all()


def test_held_out_risks_are_honest():
    """On fresh rows the rare class costs what the folds say, not what the training laws say."""
    fresh, truth = rare_rows(20_000, share=0.04, seed=99)
    found = []
    for seed in range(10):
        X, y = rare_rows(600, share=0.04, seed=seed)
        model = MinimaxClassifier(n_bins=8, smoothing="nearest").fit(X, y)
        real = np.mean(1 - model.predict_proba(fresh)[truth == 1, 1])
        found.append((real, model.class_risks_[1], model.class_risks_oof_[1]))
    real, trained, held_out = np.mean(found, axis=0)
    assert trained < 0.7 * real
    assert abs(held_out - real) < abs(trained - real) / 2


def test_folds_can_be_given():
    X, y = rare_rows(300, share=0.2)
    given = MinimaxClassifier(cv=StratifiedKFold(3)).fit(X, y).class_risks_oof_
    assert np.isfinite(given).all()
    pairs = list(StratifiedKFold(3).split(X, y))
    np.testing.assert_array_equal(MinimaxClassifier(cv=pairs).fit(X, y).class_risks_oof_, given)
    assert MinimaxClassifier(cv=None).fit(X, y).class_risks_oof_ is None
    alone = MinimaxClassifier().fit([[0.0], [1.0]], [0, 1])
    assert np.isnan(alone.class_risks_oof_).all()


def test_a_class_of_one_row_is_held_out_too():
    X, y = rare_rows(200, share=0.2)
    y = y.copy()
    y[0] = 7
    model = MinimaxClassifier().fit(X, y)
    assert model.class_risks_oof_[-1] >= 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"costs": [[0, -1], [1, 0]]}, "not negative"),
        ({"costs": [[0, 1]]}, "have shape"),
        ({"costs": np.ones((3, 3))}, "there are 2 classes"),
        ({"prior_bounds": [[0.6, 1], [0.6, 1]]}, "exclude every class mix"),
        ({"prior_bounds": {9: (0, 1)}}, "has no rows"),
        ({"smoothing": 0.0}, "smoothing"),
        ({"smoothing": "often"}, "smoothing"),
        ({"profiles": "cells"}, "profiles"),
        ({"n_bins": 0}, "n_bins"),
        ({"profiles": "tree", "n_profiles": 1}, "at least 2"),
        ({"cv": 1}, "'cv' parameter"),
    ],
)
def test_bad_parameters_are_refused_in_words(changes, words):
    X, y = rare_rows(100, share=0.3)
    with pytest.raises(ValueError, match=words):
        MinimaxClassifier(**changes).fit(X, y)


def test_too_many_profiles_are_counted_first(monkeypatch):
    monkeypatch.setattr("laconic.minimax.profiles.MAX_CELLS", 10)
    X, y = rare_rows(200)
    with pytest.raises(ValueError, match="profiles; a table of them"):
        MinimaxClassifier(n_bins=10).fit(X, y)


def test_numba_is_loaded_by_the_first_fit_only():
    code = "import sys, laconic; laconic.MinimaxClassifier(); assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def failed_checks(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(model, on_fail=None, on_skip=None)
    return {r["check_name"] for r in results if r["status"] == "failed"}


def test_scikit_learn_checks_of_clusters():
    model = MinimaxClassifier(profiles="kmeans", tie="deterministic", cv=None)
    assert failed_checks(model) == set()


@pytest.mark.parametrize(
    "inner",
    [
        LogisticRegression(),
        LogisticRegression(class_weight="balanced"),
        RandomForestClassifier(60, min_samples_leaf=5, random_state=0),
        WeightedNaiveBayes(random_state=0),
        GrayZoneLogisticRegression(),
    ],
    ids=str,
)
def test_any_model_under_the_least_favourable_prior(inner):
    X, y = rare_rows(4000)
    model = MinimaxPriorClassifier(inner).fit(X, y)
    fresh, truth = rare_rows(20_000, seed=9)
    risks = np.array([np.mean(model.predict(fresh)[truth == k] != k) for k in range(2)])
    plain = clone(inner).fit(X, y)
    before = np.array([np.mean(plain.predict(fresh)[truth == k] != k) for k in range(2)])
    # two gaussians 1.2 sqrt(2) apart: the minimax risk of the true laws is 0.198; a forest's
    # posteriors of a rare class are off, which its held-out risks tell
    assert risks.max() < 0.33
    assert risks.max() <= before.max() + 0.03
    np.testing.assert_allclose(model.class_risks_oof_, risks, atol=0.08)
    assert model.duality_gap_ <= 1e-8
    assert model.minimax_risk_ >= model.bayes_risk_ - 1e-12
    proba = model.predict_proba(fresh[:50])
    np.testing.assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(fresh[:50]))


def test_true_posteriors_give_the_true_minimax_prior():
    """With the right model, pi* is the prior of equal class risks: one half by symmetry."""
    X, y = rare_rows(20_000)
    model = MinimaxPriorClassifier(LogisticRegression(C=1e6)).fit(X, y)
    assert model.least_favorable_prior_[0] == pytest.approx(0.5, abs=0.04)
    assert model.minimax_risk_ == pytest.approx(0.198, abs=0.02)


def test_matching_undoes_balanced_weights():
    draw = np.random.default_rng(0)
    score = draw.normal(size=5000) - 2
    posterior = np.column_stack((1 / (1 + np.exp(score)), 1 / (1 + np.exp(-score))))
    share = posterior.mean(axis=0)
    tilted = posterior / share
    tilted /= tilted.sum(axis=1, keepdims=True)
    matched = PosteriorLaws.match(tilted, np.ones(5000), share)
    np.testing.assert_allclose(matched.posterior(tilted), posterior, atol=1e-8)
    law = matched.laws(tilted, np.ones(5000)).law
    np.testing.assert_allclose(law.sum(axis=0), 1.0, atol=1e-9)


def test_prior_classifier_with_frames_losses_and_bounds():
    X, y = mixed_rows()
    numbers = X[["size", "count"]].fillna(0.0)
    loss = [[0, 5], [1, 0]]
    model = MinimaxPriorClassifier(
        LogisticRegression(), costs=loss, prior_bounds={"rare": (0.1, 0.2)}, cv=3
    ).fit(numbers, y)
    assert 0.1 <= model.least_favorable_prior_[0] <= 0.2
    shuffled = numbers[["count", "size"]].assign(extra=0)
    np.testing.assert_array_equal(model.predict(shuffled), model.predict(numbers))
    heavier = MinimaxPriorClassifier(LogisticRegression(), prior_bounds={"rare": (0.1, 0.2)})
    assert (model.predict(numbers) == "rare").sum() > (
        heavier.fit(numbers, y).predict(numbers) == "rare"
    ).sum()


def test_prior_classifier_refuses_in_words():
    X, y = rare_rows(200, share=0.3)
    with pytest.raises(TypeError, match="must have predict_proba"):
        MinimaxPriorClassifier(LinearSVC()).fit(X, y)
    with pytest.raises(ValueError, match="exclude every class mix"):
        MinimaxPriorClassifier(LogisticRegression(), prior_bounds=[[0, 0.1]] * 2).fit(X, y)
    with pytest.raises(ValueError, match="held-out rows"):
        MinimaxPriorClassifier(LogisticRegression()).fit(X[:2], [0, 1])


def columns_for_a_pipeline(n=300):
    """Numbers with gaps, texts with gaps and dates, and a pipeline that reads the first two."""
    draw = np.random.default_rng(5)
    frame = pd.DataFrame({"a": draw.normal(size=n), "b": draw.normal(size=n)})
    y = np.where(frame["b"] + draw.normal(size=n) > 1.0, "rare", "usual")
    frame.loc[::7, "a"] = np.nan
    frame["c"] = draw.choice(np.array(["u", "v", None], dtype=object), n)
    frame["day"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(n) % 50, "D")
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["c"]), (SimpleImputer(), ["a", "b"])
    )
    return frame, y, make_pipeline(encode, LogisticRegression())


def test_prior_classifier_accepts_what_its_pipeline_accepts():
    frame, y, inner = columns_for_a_pipeline()
    model = MinimaxPriorClassifier(inner).fit(frame, y)
    # by hand: the same pipeline on rows that are already imputed and encoded
    ready = inner[:-1].fit(frame).transform(frame)
    plain = MinimaxPriorClassifier(LogisticRegression()).fit(ready, y)
    np.testing.assert_allclose(
        model.estimator_.predict_proba(frame), plain.estimator_.predict_proba(ready), rtol=1e-9
    )
    np.testing.assert_allclose(model.class_risks_oof_, plain.class_risks_oof_, atol=0.06)
    shuffled = frame[["day", "c", "b", "a"]].assign(more=1)
    np.testing.assert_array_equal(model.predict(shuffled), model.predict(frame))
    texts = [f"{kind} {k % 3}" for k, kind in enumerate(y)]
    read = MinimaxPriorClassifier(make_pipeline(CountVectorizer(), LogisticRegression()))
    assert (read.fit(texts, y).predict(texts) == y).all()
    assert not hasattr(read, "n_features_in_")


def test_prior_classifier_passes_metadata_on():
    X, y = rare_rows(300, share=0.3)
    draw = np.random.default_rng(1)
    weight, groups = draw.integers(0, 4, len(y)).astype(float), np.arange(len(y)) // 5
    kept = np.flatnonzero(weight)
    pairs = list(GroupKFold(4).split(X[kept], y[kept], groups[kept]))
    folds = [(kept[train], kept[test]) for train, test in pairs]
    expected = MinimaxPriorClassifier(LogisticRegression(), cv=folds)
    expected.fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        MinimaxPriorClassifier(make_pipeline("passthrough", LogisticRegression())).fit(
            X, y, sample_weight=weight
        )
    with config_context(enable_metadata_routing=True):
        inner = make_pipeline(
            "passthrough", LogisticRegression().set_fit_request(sample_weight=True)
        )
        routed = MinimaxPriorClassifier(inner, cv=GroupKFold(4))
        routed.fit(X, y, sample_weight=weight, groups=groups)
        with pytest.raises(TypeError, match="unexpected argument"):
            routed.fit(X, y, colour=weight)
    np.testing.assert_array_equal(routed.least_favorable_prior_, expected.least_favorable_prior_)
    np.testing.assert_array_equal(routed.class_risks_oof_, expected.class_risks_oof_)
    np.testing.assert_array_equal(routed.predict_proba(X), expected.predict_proba(X))
    inner = make_pipeline("passthrough", LogisticRegression())
    by_step = MinimaxPriorClassifier(inner).fit(X, y, logisticregression__sample_weight=1 + weight)
    plain = LogisticRegression().fit(X, y, 1 + weight)
    np.testing.assert_array_equal(by_step.estimator_.predict_proba(X), plain.predict_proba(X))


def test_an_error_counts_one():
    assert zero_one(3).tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
