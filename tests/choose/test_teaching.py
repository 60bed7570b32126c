"""Students of the committee: softened labels, copies together, judges that nobody has seen."""

from __future__ import annotations

import numpy as np
import pytest

import laconic
from laconic import LaconicClassifier
from laconic.choose.budget import Budget
from laconic.choose.candidates import Candidate
from laconic.choose.committee import weighted_mean
from laconic.choose.page.teaching import fit_softened, taught
from laconic.choose.tuning import OWN_LABEL


def race_of(X, y, cv=3):
    made = LaconicClassifier(cv=cv)
    training = made._read_training(X, y)
    rows = made._rows(X, training, None, {})
    return made._race(rows, made._condition(training), Budget(None))


class Recorder(laconic.PlainLogisticRegression):
    """Remembers what it was fitted on."""

    seen: list = []

    def __init__(self, C=1.0, cv=5):
        super().__init__(C)
        self.cv = cv

    def fit(self, X, y=None, sample_weight=None):
        Recorder.seen.append((X, np.asarray(y), sample_weight, self.cv))
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_softened_labels_by_hand(n_classes):
    draw = np.random.default_rng(0)
    X, y = draw.normal(size=(60, 2)), np.arange(60) % n_classes
    race = race_of(X, y)
    proba = draw.dirichlet(np.ones(n_classes), 60)
    proba[7] = np.nan  # no teacher's word: the row's own label
    Recorder.seen = []
    fit_softened(race.rows, Recorder(), proba)
    table, labels, weight, folds = Recorder.seen[0]
    assert len(labels) == 60 * n_classes
    for i in (0, 7, 31):
        own = np.eye(n_classes)[y[i]]
        word = own if i == 7 else proba[i]
        for k in range(n_classes):
            at = i + 60 * k
            assert labels[at] == k
            assert weight[at] == pytest.approx(OWN_LABEL * own[k] + (1 - OWN_LABEL) * word[k])
            np.testing.assert_array_equal(table.column(0)[at], X[i, 0])
    assert weight.sum() == pytest.approx(60.0)
    for train, test in folds:
        assert set(test % 60) == set(test[: len(test) // n_classes])
        assert not set(train % 60) & set(test % 60)


def test_the_judges_of_a_student_were_not_seen_by_its_teacher():
    """Labels of a fold are changed: what the student says of that fold must stay the same."""
    draw = np.random.default_rng(1)
    X = draw.normal(size=(150, 2))
    y = (X[:, 0] + draw.normal(size=150) > 0).astype(int)
    held = np.arange(0, 150, 3)
    halves = [(np.setdiff1d(np.arange(150), np.arange(f, 150, 3)), np.arange(f, 150, 3))
              for f in range(3)]  # fmt: skip
    said = []
    for flip in (False, True):
        labels = y.copy()
        if flip:
            labels[held] = 1 - labels[held]
        race = race_of(X, labels, cv=halves)
        plain = Candidate("plain", laconic.PlainLogisticRegression())
        rules = Candidate("card", laconic.ScorecardClassifier())
        members = [race.run(own, None) for own in (plain, rules)]
        committee = weighted_mean(members, race.judge, race.rows.folds, forms=False)
        student = race.run(Candidate("s", Recorder()), None)
        committee.members = tuple(members)
        said.append(taught(student, committee, race).proba[held])
    np.testing.assert_array_equal(said[0], said[1])


def test_a_taught_page_is_kept_only_where_it_helped():
    draw = np.random.default_rng(5)
    X = draw.normal(size=(240, 6))
    y = (X[:, 0] + X[:, 1] * X[:, 2] + draw.logistic(size=240) > 0).astype(int)
    names = ["additive-single", "kernel", "logistic"]
    model = LaconicClassifier(candidates=names, cv=3, tolerance=0.0, teach=True).fit(X, y)
    frame = model.comparison_.set_index("candidate")
    taught_rows = [name for name in frame.index if name.startswith("taught")]
    assert taught_rows, "the committee was expected to teach here"
    alone = "taught additive-single"
    helped = frame.loc[alone, "tailored_loss"] < frame.loc["additive-single", "tailored_loss"]
    assert model.candidate_.startswith("taught") == helped
    assert model.size_ <= 300


def test_a_card_learns_from_the_committee_too():
    draw = np.random.default_rng(5)
    X = draw.normal(size=(240, 3))
    y = (X[:, 0] + X[:, 1] + draw.logistic(size=240) > 0).astype(int)
    names = ["card", "kernel"]
    model = LaconicClassifier(candidates=names, cv=3, tolerance=0.0, teach=True).fit(X, y)
    frame = model.comparison_.set_index("candidate")
    helped = frame.loc["taught card", "tailored_loss"] < frame.loc["card", "tailored_loss"]
    assert model.candidate_ == ("taught card" if helped else "card")
    terms = model.estimator_.form_.terms
    assert all(set(term.values.ravel() % 1) == {0.0} for term in terms)
