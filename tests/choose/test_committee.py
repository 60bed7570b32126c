"""The committee and the page: members, weights, sizes, what is chosen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import laconic
from laconic import BlendedClassifier, LaconicClassifier
from laconic.choose.budget import Budget
from laconic.choose.candidates import Candidate
from laconic.choose.committee import Committee, centre_of, front_of, weighted_mean
from laconic.choose.comparison import Judge, OperatingCondition, Outcome
from laconic.choose.page.pages import PageChoice, formed, pages_of
from laconic.choose.page.shortening import form_size
from laconic.choose.tuning import PAIR_PENALTY, PARTNER_SHARE, STACK_PENALTY
from laconic.core.decisions import expected_costs

EVEN = OperatingCondition(1.0 - np.eye(2), np.array([0.5, 0.5]))
FOLDS = [(np.flatnonzero(np.arange(300) % 3 != f), np.arange(f, 300, 3)) for f in range(3)]


def judge_of(seed=0):
    y = np.random.default_rng(seed).integers(0, 2, 300)
    return Judge(y, np.ones(300), EVEN)


def outcome(judge, name, quality, limit=10.0, seed=0, link="logit"):
    draw = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-quality * (2 * judge.y - 1) - draw.normal(size=len(judge.y))))
    proba = np.stack([1 - p, p], axis=1)
    out = Outcome(Candidate(name, None), proba, np.full(len(p), np.nan), raw=proba, link=link)
    out.sizes, out.limit, out.complete = [limit], limit, True
    out.forms = {0: None}
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


def test_the_partner_has_its_share_of_the_centre_beside_a_front_runner_only():
    judge = judge_of()
    front, partner = outcome(judge, "additive", 1.0), outcome(judge, "boosted", 1.0, seed=2)
    rest = outcome(judge, "rules", 2.0, seed=4)
    weights, penalty = centre_of([rest, front, partner], judge)
    np.testing.assert_allclose(weights, [0.0, 1.0 - PARTNER_SHARE, PARTNER_SHARE])
    assert penalty == PAIR_PENALTY
    for pool in ([rest, partner], [rest, front]):
        weights, penalty = centre_of(pool, judge)
        assert sorted(weights) == [0.0, 1.0]
        assert penalty == STACK_PENALTY
    # two members that know nothing of one another share the weight as the centre says
    found = weighted_mean([front, partner], judge, FOLDS, forms=False)
    shares = dict(zip([out.name for out in found.members], found.weights, strict=True))
    assert abs(shares["boosted"] - PARTNER_SHARE) < 0.2


def test_a_mean_with_a_member_that_certifies_nothing_certifies_nothing():
    judge = judge_of()
    pool = [outcome(judge, "additive", 1.0), outcome(judge, "boosted", 1.0, seed=2)]
    for out in pool:
        out.gaps.append(1e-9)
    assert max(weighted_mean(pool, judge, FOLDS, forms=False).gaps) < 1e-6
    pool[1].gaps.clear()
    assert not weighted_mean(pool, judge, FOLDS, forms=False).gaps


def test_what_has_no_mean_with_others_is_not_in_the_pool():
    judge = judge_of()
    pool = [outcome(judge, "vote", 1.0, link="vote"), outcome(judge, "fits", 1.0),
            outcome(judge, "fold", 1.0), outcome(judge, "formless", 1.0)]  # fmt: skip
    pool[2].complete, pool[3].forms = False, {}
    assert [out.name for out in formed(pool)] == ["fits"]


@pytest.mark.parametrize(
    ("losses", "plain", "kept"),
    [
        ([1.0, 1.02, 1.3], 3, 2),  # all say what the long sum says: the shortest
        ([1.0, 1.2, 0.95, 1.1], 2, 3),  # teaching helped the longest
        ([1.0, 1.005, 1.001, 0.9], 2, 1),  # it did not
        ([1.0], 1, 0),
    ],
)
def test_the_rule_of_choice(losses, plain, kept):
    judge = judge_of()
    outs = [outcome(judge, str(i), 1.0) for i in range(len(losses))]
    assert PageChoice.of(outs, judge, plain).pick(losses) == kept


def test_the_shortest_page_is_the_last_that_says_what_the_long_sum_says():
    """How far pages stray, by the definition of the divergence, on each side of the tolerance."""
    draw = np.random.default_rng(3)
    X = draw.normal(size=(300, 3))
    y = (X.sum(axis=1) + np.abs(X[:, 0]) + draw.normal(size=300) > 0.5).astype(int)
    made = LaconicClassifier(cv=FOLDS, max_size=40)
    training = made._read_training(X, y)
    race = made._race(made._rows(X, training, None, {}), made._condition(training), Budget(None))
    out = race.run(Candidate("additive", laconic.SparseAdditiveClassifier(group_penalty=0.0)), None)
    long = replace(out, members=(out,), weights=(1.0,))
    every = pages_of(long, race, np.inf)
    assert len(every) > 3
    p = long.raw
    strayed = [float((p * np.log(p / page.raw)).sum(axis=1).mean()) for page in every]
    assert strayed == sorted(strayed)
    share = y.mean()
    entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
    n = len(every) - 1
    for nats in (1.02 * strayed[n - 1], 0.98 * strayed[n]):
        kept = [page.limit for page in pages_of(long, race, nats / entropy)]
        assert kept == [page.limit for page in every[:n]]
    assert len(pages_of(long, race, 0.0)) == 1


def test_pages_are_judged_on_rows_that_their_lesson_did_not_have():
    """Labels and features of one fold are changed: what the page of that fold says stays."""
    draw = np.random.default_rng(5)
    X = draw.normal(size=(300, 4))
    y = (X.sum(axis=1) + draw.normal(size=300) > 0).astype(int)
    said = []
    for flip in (False, True):
        labels = y.copy()
        labels[FOLDS[0][1]] = labels[FOLDS[0][1]] != flip
        made = LaconicClassifier(cv=FOLDS, max_size=4)
        training = made._read_training(X, labels)
        rows = made._rows(X, training, None, {})
        race = made._race(rows, made._condition(training), Budget(None))
        plain = laconic.SparseAdditiveClassifier(group_penalty=0.0, pairs=0)
        long = race.run(Candidate("additive", plain), None)
        pages = pages_of(replace(long, members=(long,), weights=(1.0,)), race, np.inf)
        assert pages[0].limit == 4
        assert max(pages[0].sizes) <= 4 < long.size
        said.append(pages[0].proba[FOLDS[0][1]])
    np.testing.assert_array_equal(*said)


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
    # shortened, so close and not the same
    assert np.corrcoef(mean, shares @ scores / shares.sum())[0, 1] > 0.99
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
