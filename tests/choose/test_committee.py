"""The committee and the page: members, weights, sizes, what is chosen."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import laconic
from laconic import BlendedClassifier, LaconicClassifier
from laconic.choose.blends import form_size
from laconic.choose.candidates import Candidate
from laconic.choose.committee import Committee, front_of, weighted_mean
from laconic.choose.comparison import Judge, OperatingCondition, Outcome
from laconic.choose.pages import PageChoice, composed_page, page_sized
from laconic.core.decisions import expected_costs

EVEN = OperatingCondition(1.0 - np.eye(2), np.array([0.5, 0.5]))
FOLDS = [(np.flatnonzero(np.arange(300) % 3 != f), np.arange(f, 300, 3)) for f in range(3)]


def judge_of(seed=0):
    y = np.random.default_rng(seed).integers(0, 2, 300)
    return Judge(y, np.ones(300), EVEN)


def outcome(judge, name, quality, page=10.0, seed=0, link="logit"):
    draw = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-quality * (2 * judge.y - 1) - draw.normal(size=len(judge.y))))
    proba = np.stack([1 - p, p], axis=1)
    out = Outcome(Candidate(name, None), proba, np.full(len(p), np.nan), raw=proba, link=link)
    out.sizes, out.pages, out.complete = [page], [page], True
    return judge.price(out)


def test_members_that_know_different_things_share_the_weight():
    judge = judge_of()
    pool = [outcome(judge, "additive", 1.0, seed=1), outcome(judge, "kernel", 1.0, seed=2),
            outcome(judge, "noise", 0.0, seed=3)]  # fmt: skip
    found = weighted_mean(pool, judge, FOLDS, forms=False)
    assert found.name == "committee"
    assert {out.name for out in found.members} >= {"additive", "kernel"}
    weights = dict(zip([out.name for out in found.members], found.weights, strict=True))
    assert weights.get("noise", 0.0) < 0.2
    assert judge.log_loss(found) < min(judge.log_loss(out) for out in pool)
    # its own probabilities are cross-fitted: not those of the weights of all rows
    logs = np.stack([np.log(out.proba) for out in found.members])
    with_all = np.exp(np.tensordot(found.weights, logs, axes=1))
    assert np.abs(found.proba - with_all / with_all.sum(axis=1, keepdims=True)).max() > 1e-6


def test_the_front_runner_is_the_centre_and_else_the_best():
    judge = judge_of()
    rest = [outcome(judge, "rules", 2.0, seed=4), outcome(judge, "logistic", 0.2, seed=5)]
    assert front_of([*rest, outcome(judge, "additive-single", 0.1, seed=6)], judge) == 2
    assert front_of(rest, judge) == 0


def test_members_leave_until_the_page_is_not_too_long():
    judge = judge_of()
    sizes = {"additive": 150.0, "a": 100.0, "b": 100.0, "c": 20.0}
    pool = [outcome(judge, *own, seed=k) for k, own in
            enumerate((name, 1.0, size) for name, size in sizes.items())]  # fmt: skip
    whole = composed_page(pool, judge, FOLDS, np.inf)
    assert len(whole.members) == 4
    page = composed_page(pool, judge, FOLDS, 300.0)
    assert page.page <= 300.0
    assert "additive" in {out.name for out in page.members}
    assert [out.name for out in composed_page(pool, judge, FOLDS, 1.0).members] == ["additive"]
    assert page.name == " + ".join(out.name for out in page.members)
    assert list(page.weights) == sorted(page.weights, reverse=True)


def test_what_is_no_page_is_not_in_its_pool():
    judge = judge_of()
    pool = [outcome(judge, "long", 1.0, 301.0), outcome(judge, "vote", 1.0, 5.0, link="vote"),
            outcome(judge, "fits", 1.0, 300.0), outcome(judge, "fold", 1.0, 9.0)]  # fmt: skip
    pool[3].complete = False
    assert [out.name for out in page_sized(pool, 300.0)] == ["fits"]


@pytest.mark.parametrize(
    ("losses", "pages", "kept"),
    [
        ([1.0, 1.02], (90.0, 50.0), 0),  # beyond the tolerance
        ([1.0, 1.009], (90.0, 50.0), 1),  # within it, and shorter
        ([1.0, 1.0], (50.0, 50.0), 0),  # no shorter
        ([1.0, 1.2, 0.95, 1.1], (90.0, 50.0, 90.0, 50.0), 2),  # teaching helped the front runner
        ([1.0, 1.005, 0.9, 1.006], (90.0, 50.0, 90.0, 50.0), 1),  # it did not
        ([1.0], (50.0,), 0),
    ],
)
def test_the_rule_of_choice(losses, pages, kept):
    judge = judge_of()
    outs = [outcome(judge, str(i), 1.0, page) for i, page in enumerate(pages)]
    assert PageChoice.of(outs, judge, 0.01).pick(losses) == kept


@pytest.fixture(scope="module")
def bumps():
    """Weak lines in five columns and a bump in the sixth: each member sees one of them well."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(600, 6))
    score = 0.5 * X[:, :5].sum(axis=1) + 2.0 * (np.abs(X[:, 5]) < 0.6)
    return X, (score + draw.logistic(size=600) > 1.0).astype(int)


def test_a_weighted_mean_is_kept_and_survives_a_file(bumps, tmp_path):
    X, y = bumps
    model = LaconicClassifier(candidates=["logistic", "bayes"], tolerance=0.0).fit(X, y)
    assert set(model.candidate_.split(" + ")) == {"logistic", "bayes"}
    assert isinstance(model.estimator_, BlendedClassifier)
    frame = model.comparison_
    assert list(frame["candidate"]) == ["logistic", "bayes", "committee", model.candidate_]
    assert frame["chosen"].tolist() == [False, False, False, True]
    assert frame["log_loss"].idxmin() >= 2
    shares = np.asarray(model.estimator_.weights)
    scores = [own.decision_function(X) for own in model.estimator_.estimators_]
    mean = model.estimator_.decision_function(X)
    reach = model.estimator_.reach * len(model.estimator_.form_.terms)
    assert np.abs(mean - shares @ scores / shares.sum()).max() <= reach + 1e-9
    laconic.save(model, tmp_path / "model.json")
    again = laconic.load(tmp_path / "model.json")
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


def test_without_readability_the_committee_decides(bumps):
    X, y = bumps
    costs = np.array([[0.0, 1.0], [3.0, 0.0]])
    names = ["logistic", "bayes", "kernel"]
    model = LaconicClassifier(costs, candidates=names, readable=False).fit(X, y)
    assert model.candidate_ == "committee"
    assert isinstance(model.estimator_, Committee)
    members = [own.predict_proba(X) for own in model.estimator_.estimators_]
    assert len(members) > 1
    logs = np.tensordot(model.estimator_.weights_, np.log(np.clip(members, 1e-3, 1)), axes=1)
    proba = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), proba, atol=2e-3)
    expected = expected_costs(model.predict_proba(X), costs).argmin(axis=1)
    np.testing.assert_array_equal(model.predict(X), expected)
    assert np.isnan(model.size_)
    assert model.price_of_readability_.value == 0.0
    with pytest.raises(ValueError, match="readable=True keeps a page"):
        model.explain(X)
    with pytest.raises(ValueError, match="Committee cannot be written to a model file"):
        laconic.save(model, "committee.json")


def test_a_committee_takes_models_of_others(bumps):
    X, y = bumps
    models = {"theirs": LogisticRegression(), "bayes": laconic.WeightedNaiveBayes()}
    model = LaconicClassifier(candidates=models, readable=False).fit(X, y)
    assert model.predict_proba(X).shape == (600, 2)
    page = LaconicClassifier(candidates=models).fit(X, y)
    assert page.candidate_ == "bayes"  # the other has no form


def test_the_page_never_has_more_entries_than_allowed():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(400, 12))
    y = (np.sin(2 * X).sum(axis=1) + draw.normal(size=400) > 0).astype(int)
    names = ["additive-single", "logistic"]
    for most in (300, 60, 20):
        model = LaconicClassifier(candidates=names, max_size=most, cv=3).fit(X, y)
        assert model.size_ <= most
        assert form_size(model.estimator_.form_) == model.size_


def test_no_page_at_all_is_said(bumps):
    with pytest.warns(UserWarning, match="No candidate fits on max_size=300 entries: kernel"):
        model = LaconicClassifier(candidates=["kernel"], cv=3).fit(*bumps)
    assert model.candidate_ == "kernel"
