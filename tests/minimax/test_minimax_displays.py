"""Displays of the minimax classifier: what is drawn is what the formulas say."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from laconic import MinimaxClassifier
from laconic.displays import BayesRiskDisplay, ClassRisksDisplay, RobustnessPriceDisplay


def rows(n_classes, n=1200, seed=0):
    draw = np.random.default_rng(seed)
    prior = np.array([0.7, 0.2, 0.1])[:n_classes] if n_classes == 3 else np.array([0.85, 0.15])
    y = draw.choice(n_classes, n, p=prior)
    return draw.normal(size=(n, 2)) + 1.3 * y[:, None], y


def test_bayes_risk_touches_its_rules():
    X, y = rows(2)
    model = MinimaxClassifier(n_bins=6, cv=None).fit(X, y)
    other = LogisticRegression().fit(X, y)
    display = BayesRiskDisplay.from_estimator(model, {"logistic": other}, X, y).plot()
    share, top = display.top
    assert top == pytest.approx(model.minimax_risk_)
    assert display.bayes_risk.max() <= top + 1e-12
    # a rule is never below V; the Bayes rule touches it at its prior, the minimax rule is level
    for name in ("minimax", "Bayes"):
        assert (display.risks[name] >= display.bayes_risk - 1e-9).all()
    assert np.ptp(display.risks["minimax"]) <= 1e-8
    at = np.interp(model.class_prior_[0], display.shares, display.risks["Bayes"])
    assert at == pytest.approx(model.bayes_risk_, abs=1e-9)
    wrong = [np.mean(other.predict(X[y == k]) != k) for k in range(2)]
    np.testing.assert_allclose(display.risks["logistic"][[0, -1]], wrong[::-1])
    np.testing.assert_array_equal(display.curve_.get_ydata(), display.bayes_risk)
    np.testing.assert_array_equal(display.lines_["Bayes"].get_ydata(), display.risks["Bayes"])
    assert display.top_.get_xdata()[0] == share
    assert list(display.frame().columns) == ["share", "V", "minimax", "Bayes", "logistic"]


def test_bayes_risk_is_for_two_classes_and_needs_rows():
    model = MinimaxClassifier(cv=None).fit(*rows(3))
    with pytest.raises(ValueError, match="two classes"):
        BayesRiskDisplay.from_estimator(model)
    X, y = rows(2)
    with pytest.raises(ValueError, match="Give X and y"):
        BayesRiskDisplay.from_estimator(MinimaxClassifier(cv=None).fit(X, y), {"a": model})


def test_class_risks_are_measured_and_drawn():
    X, y = rows(3)
    models = {
        "minimax": MinimaxClassifier(smoothing="error", cv=None).fit(X, y),
        "logistic": LogisticRegression().fit(X, y),
    }
    display = ClassRisksDisplay.from_estimator(models, X, y).plot()
    np.testing.assert_allclose(display.risks["minimax"], models["minimax"].class_risks_, atol=1e-12)
    wrong = [np.mean(models["logistic"].predict(X[y == k]) != k) for k in range(3)]
    heights = [bar.get_height() for bar in display.bars_["logistic"]]
    np.testing.assert_allclose(heights, wrong)
    assert display.worst["logistic"] == (int(np.argmax(wrong)), max(wrong))
    assert display.worst_lines_["logistic"].get_ydata()[0] == max(wrong)
    assert display.frame().shape == (3, 3)
    with pytest.raises(ValueError, match="does not know"):
        ClassRisksDisplay.from_estimator(models, X[:2], [0, 9])


def test_price_of_robustness_goes_from_bayes_to_minimax():
    X, y = rows(3)
    model = MinimaxClassifier(n_bins=4, cv=None).fit(X, y)
    display = RobustnessPriceDisplay.from_estimator(model, sizes=[0, 0.25, 0.5, 1]).plot()
    assert display.average[0] == pytest.approx(model.bayes_risk_, abs=1e-9)
    assert display.worst[-1] == pytest.approx(model.minimax_risk_, abs=1e-8)
    assert display.average[-1] >= display.average[0]
    assert display.worst[-1] <= display.worst[0]
    np.testing.assert_array_equal(display.path_.get_xdata(), display.average)
    np.testing.assert_array_equal(display.path_.get_ydata(), display.worst)
    assert list(display.frame()["size"]) == [0, 0.25, 0.5, 1]
    with pytest.raises(ValueError, match="between 0"):
        RobustnessPriceDisplay.from_estimator(model, sizes=[2.0])
