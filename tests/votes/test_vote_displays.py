"""What the drawings of votes show."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from laconic import CqBoostClassifier
from laconic.displays import VoteCurveDisplay, VoteRiskDisplay, VoteRulesDisplay


@pytest.fixture(scope="module")
def model():
    X, y = load_breast_cancer(return_X_y=True)
    fitted = CqBoostClassifier(mu="least-squares", max_voters=5, staged=True).fit(X[::2], y[::2])
    return fitted, X, y


def test_curves_are_the_risks_of_the_stages(model):
    vote, X, y = model
    curve = VoteCurveDisplay.from_estimator(vote, X[::2], y[::2], X[1::2], y[1::2]).plot()
    assert curve.n_voters.tolist() == [1, 2, 3, 4, 5]
    assert curve.test_risk[-1] == pytest.approx(1 - vote.score(X[1::2], y[1::2]))
    assert curve.train_c_bound[-1] == pytest.approx(vote.c_bound_, abs=1e-9)
    assert (np.diff(curve.train_c_bound) < 0).all()
    drawn = curve.ax_.lines
    np.testing.assert_array_equal(drawn[1].get_ydata(), curve.test_risk)
    np.testing.assert_array_equal(drawn[2].get_ydata(), curve.train_c_bound)
    assert list(curve.frame()["n_voters"]) == [1, 2, 3, 4, 5]


def test_the_c_bound_lies_above_the_risk(model):
    vote, X, y = model
    shown = VoteRiskDisplay.from_estimator(vote, X, y).plot()
    assert (shown.risk <= shown.c_bound).all()
    assert (shown.risk <= 2 * shown.gibbs_risk).all()
    points = shown.ax_.collections[1].get_offsets()
    np.testing.assert_allclose(points[:, 0], shown.c_bound)
    np.testing.assert_allclose(points[:, 1], shown.risk)
    assert len(shown.frame()["risk"]) == 5
    with pytest.raises(ValueError, match="-1 and"):
        VoteRiskDisplay.from_predictions([0, 1], [0.5, 0.5])


def test_rules_are_drawn_heaviest_first(model):
    vote, _, _ = model
    shown = VoteRulesDisplay.from_estimator(vote, max_rules=3).plot()
    assert shown.rules == [rule for _, rule in vote.rules()[:3]]
    assert [bar.get_width() for bar in shown.ax_.patches] == shown.weights.tolist()
    assert [tick.get_text() for tick in shown.ax_.get_yticklabels()] == shown.rules
    assert list(shown.frame()["rule"]) == shown.rules
