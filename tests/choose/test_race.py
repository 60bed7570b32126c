"""Candidates on the folds: held-out loops by hand, races, threads, folds inside folds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import KFold

import laconic
from laconic import LaconicClassifier
from laconic.choose.budget import Budget
from laconic.choose.candidates import Candidate
from laconic.choose.race import behind, gap_with_a_share
from laconic.choose.stacking import StackProblem, log_probabilities, solve_stack
from laconic.core.decisions import cost_matrix
from laconic.data.demo import make_payments

COSTS = {"fraud": {"genuine": 25}, "genuine": {"fraud": 1}}


@pytest.fixture(scope="module")
def payments():
    return make_payments(900, random_state=1)


def race_of(X, y, cv=3, n_jobs=None, groups=None, time=None, costs=COSTS):
    made = LaconicClassifier(costs, cv=cv, n_jobs=n_jobs)
    training = made._read_training(X, y)
    rows = made._rows(X, training, None, {"groups": groups, "time": time})
    return made._race(rows, made._condition(training), Budget(None))


def test_held_out_costs_are_those_of_a_loop_by_hand(payments):
    X, y = payments
    halves = [(np.arange(0, 900, 2), np.arange(1, 900, 2))]
    halves.append(halves[0][::-1])
    race = race_of(X, y, cv=halves)
    out = race.run(Candidate("plain", laconic.PlainLogisticRegression()), None)
    matrix = cost_matrix(COSTS, np.array(["fraud", "genuine"]))
    paid = np.empty(900)
    for train, test in halves:
        inner = laconic.PlainLogisticRegression().fit(X[train], y[train])
        decided = (inner.predict_proba(X[test]) @ matrix).argmin(axis=1)
        paid[test] = matrix[(y[test] == "genuine").astype(int), decided]
    np.testing.assert_allclose(out.row_cost, paid)


def test_threads_change_nothing(payments):
    X, y = payments
    for model, own in ((laconic.ScorecardClassifier(), False),
                       (laconic.SparseAdditiveClassifier(pairs=0), True)):  # fmt: skip
        found = [
            race_of(X, y, n_jobs=n).run(Candidate("x", model, own_folds=own), None)
            for n in (None, 2)
        ]
        np.testing.assert_array_equal(found[0].proba, found[1].proba)
        assert found[0].sizes == found[1].sizes


def test_where_a_share_is_too_much_the_best_weight_is_smaller():
    """The race's test against the weights that the stack itself would give."""
    draw = np.random.default_rng(0)
    small = 0
    for _ in range(60):
        y = draw.integers(0, 2, 200)
        both = []
        for quality in (1.5, draw.uniform(0.0, 1.5)):
            score = quality * (2 * y - 1) * draw.uniform(0.5, 1) + draw.normal(size=200)
            p = 1 / (1 + np.exp(-score))
            both.append(np.stack([1 - p, p], axis=1))
        logs = np.stack([log_probabilities(p, 200) for p in both])
        problem = StackProblem(logs, y, np.ones(200), np.eye(len(logs))[0], 0.0)
        gap = gap_with_a_share(both[0], both[1], y, 200.0, 0.25).sum()
        expected = problem.value(np.array([0.75, 0.25])) - problem.value(np.array([1.0, 0.0]))
        assert gap == pytest.approx(expected)
        weight = solve_stack(problem).point[1]
        assert gap <= 0 or weight < 0.25
        small += gap > 0
    assert 5 < small < 55


def test_one_differing_row_ends_no_race():
    gap = np.zeros(200)
    gap[3] = 1.0
    assert not behind(gap, np.ones(200))
    assert not behind(10.0 * gap, np.ones(200))
    gap[:40] = 1.0
    assert behind(gap, np.ones(200))
    assert not behind(-gap, np.ones(200))
    assert not behind(np.zeros(200), np.ones(200))


def test_a_hopeless_candidate_stops_after_two_folds(payments):
    X, y = payments
    race = race_of(X, y)
    front = race.run(Candidate("plain", laconic.PlainLogisticRegression()), None)

    class Contrary(laconic.PlainLogisticRegression):
        def predict_proba(self, X):
            return super().predict_proba(X)[:, ::-1]

    out = race.run(Candidate("contrary", Contrary()), front)
    assert out.note == "2 folds"
    assert not out.complete
    assert np.isfinite(out.proba[:, 0]).mean() == pytest.approx(2 / 3, abs=0.05)


def test_folds_inside_a_fold_are_those_of_the_rows(payments):
    X, y = payments
    groups = np.arange(900) // 3
    race = race_of(X, y, groups=groups)
    train, _ = race.rows.folds[0]
    inner = race.rows.inner_folds(train)
    assert len(inner) == 2
    held = np.concatenate([train[test] for _, test in inner])
    np.testing.assert_array_equal(np.sort(held), np.sort(train))
    for part, test in inner:
        assert not np.intersect1d(groups[train[part]], groups[train[test]]).size


@pytest.mark.parametrize("given", [{"groups": True}, {"cv": KFold(3)}, {}])
def test_choices_inside_a_model_get_the_folds_that_keep_rows_apart(given, payments):
    X, y = payments
    seen = []

    class Chooses(laconic.PlainLogisticRegression):
        def __init__(self, cv=5):
            super().__init__()
            self.cv = cv

        def fit(self, X, y, sample_weight=None):
            seen.append(self.cv)
            return super().fit(X, y, sample_weight)

    groups = np.arange(900) // 2 if given.pop("groups", False) else None
    race = race_of(X, y, groups=groups, **given)
    race.run(Candidate("x", Chooses()), None)
    if not given and groups is None:
        assert seen == [5, 5, 5]
    else:
        assert all(len(pairs) == 2 for pairs in seen)
    fitted = race.rows.fit(Chooses())
    assert fitted.cv == 5  # as the user wrote it


def test_a_fold_in_time_is_judged_by_the_past_alone(payments):
    X, y = payments
    time = np.random.default_rng(0).permutation(900)
    race = race_of(X, y, time=time)
    assert not race.rows.exchangeable
    model = laconic.SparseAdditiveClassifier(pairs=0, cv=2)
    out = race.run(Candidate("additive", model, own_folds=True), None)
    unseen = np.isnan(out.proba[:, 0])
    assert time[unseen].max() < time[~unseen].min()
    train, test = race.rows.folds[1]
    assert time[train].max() < time[test].min()
