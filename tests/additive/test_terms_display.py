"""Drawings of every model whose score is a sum of terms."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from laconic import (
    CqBoostClassifier,
    DecisionClassifier,
    GrayZoneKernelClassifier,
    PlainLogisticRegression,
    ScorecardClassifier,
)
from laconic.displays import TermsDisplay

X, y = load_iris(return_X_y=True, as_frame=True)
y = y == 2


@pytest.mark.parametrize("model", [ScorecardClassifier(), PlainLogisticRegression()])
def test_the_means_of_the_drawn_terms_add_up_to_the_mean_score(model):
    model = DecisionClassifier(model).fit(X, y)
    inner = model.estimator_
    drawn = TermsDisplay.from_estimator(model, X=X).frame()
    total = np.dot(drawn["value"], drawn["mass"]) + inner.form_.intercept[0]
    score = np.diff(np.log(inner.predict_proba(X)), axis=1)[:, 0]
    assert total == pytest.approx(score.mean(), abs=1e-9)


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(ValueError, match="pass some rows as X"):
        TermsDisplay.from_estimator(ScorecardClassifier().fit(X, y))
    with pytest.raises(ValueError, match="no form_ to draw"):
        TermsDisplay.from_estimator(GrayZoneKernelClassifier().fit(X, y), X=X)
    assert len(TermsDisplay.from_estimator(CqBoostClassifier(mu=0.3).fit(X, y), X=X).terms)


def test_the_positive_class_is_drawn():
    label = np.where(y, "bad", "ok")
    costs = {"fp": 1, "fn": 3}
    drawn = {}
    for name in ("bad", "ok"):
        model = DecisionClassifier(PlainLogisticRegression(), costs, positive=name).fit(X, label)
        display = TermsDisplay.from_estimator(model, X=X)
        assert display.unit == f"log-odds of {name}"
        drawn[name] = display.frame()
    np.testing.assert_allclose(drawn["bad"]["value"], -np.array(drawn["ok"]["value"]))
    own = np.array(drawn["bad"]["term"]) == "petal width (cm)"
    *values, _ = np.array(drawn["bad"]["value"])[own]  # the last one is that of missing cells
    assert (np.diff(values) > 0).all()  # wide petals are "bad"
