"""The drawn data of each display, against numbers computed another way."""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from laconic import DecisionClassifier, expected_cost, gray_zone
from laconic.core import drawing as theme
from laconic.decide import risk_by_prior
from laconic.displays import CostCurveDisplay, PriorRiskDisplay, ReliabilityDisplay

COSTS = {"no": {"yes": 1}, "yes": {"no": 10}}


@pytest.fixture(scope="module")
def rows():
    X, y = make_classification(1500, 6, weights=[0.85], flip_y=0.1, random_state=0)
    return X, np.where(y == 1, "yes", "no")


@pytest.fixture(scope="module")
def model(rows):
    return DecisionClassifier(LogisticRegression(), COSTS).fit(*rows)


# --- cost against threshold ---------------------------------------------------------------------


def test_cost_curve_is_the_cost_at_each_threshold(rows, model):
    X, y = rows
    p = model.predict_proba(X)[:, 1].round(2)  # with ties
    weight = np.random.default_rng(0).uniform(0, 1, len(y))
    display = CostCurveDisplay.from_predictions(y, p, COSTS, sample_weight=weight).plot()
    for cut in [0.0, 0.01, 0.055, 1 / 11, 0.5, 0.999, 1.0]:
        taken = np.where(p > cut, "yes", "no")
        spent = expected_cost(y, taken, COSTS, labels=["no", "yes"], sample_weight=weight)
        assert display.cost_at(cut) == pytest.approx(spent)
    drawn_x, drawn_y = display.line_.get_data()
    np.testing.assert_array_equal(drawn_x, display.thresholds)
    np.testing.assert_array_equal(drawn_y, display.costs)
    assert (np.diff(drawn_x) > 0).all()
    assert drawn_x[0] == 0
    assert drawn_x[-1] == 1
    assert display.line_.get_drawstyle() == "steps-post"


def test_cost_curve_marks_the_threshold_and_the_baselines(rows, model):
    X, y = rows
    display = CostCurveDisplay.from_estimator(model, X, y).plot()
    assert display.threshold == model.threshold_ == 1 / 11
    (x,), (height,) = display.point_.get_data()
    assert x == 1 / 11
    assert height == pytest.approx(expected_cost(y, model.predict(X), COSTS))
    share = np.mean(y == "yes")
    assert display.baselines == pytest.approx({"no": 10 * share, "yes": 1 - share})
    heights = [line.get_ydata()[0] for line in display.ax_.lines]
    assert set(np.round(list(display.baselines.values()), 9)) <= set(np.round(heights, 9))
    assert display.costs[0] == pytest.approx(1 - share)
    assert display.costs[-1] == pytest.approx(10 * share)
    assert display.lowest_.get_ydata()[0] == display.costs.min()


def test_cost_curve_with_per_row_costs(rows, model):
    X, y = rows
    p = model.predict_proba(X)[:, 1]
    fn = np.random.default_rng(1).uniform(1, 20, len(y))
    display = CostCurveDisplay.from_predictions(
        y, p, {"fp": 1, "fn": fn}, threshold=0.2, positive="yes"
    )
    hit = y == "yes"
    spent = np.mean(fn * (hit & (p <= 0.2)) + (~hit & (p > 0.2)))
    assert display.cost_at(0.2) == pytest.approx(spent)
    with pytest.raises(ValueError, match="one cost matrix is needed"):
        CostCurveDisplay.from_predictions(y, p, {"fp": 1, "fn": fn}, positive="yes")


def test_cost_curve_on_log_odds_and_given_axes(rows, model):
    X, y = rows
    _, ax = plt.subplots()
    display = CostCurveDisplay.from_estimator(model, X, y, name="mine").plot(ax, log_odds=True)
    assert display.ax_ is ax
    assert ax.get_xscale() == "logit"
    assert "mine" in [text.get_text() for text in ax.get_legend().get_texts()]
    display.figure_.canvas.draw()


def test_cost_curve_needs_two_classes():
    with pytest.raises(ValueError, match="two classes, here are 3"):
        CostCurveDisplay.from_predictions([0, 1, 2], [0.1, 0.2, 0.3], None)
    with pytest.raises(ValueError, match="between 0 and 1"):
        CostCurveDisplay.from_predictions([0, 1], [0.1, 1.2], None)


# --- risk against prior -------------------------------------------------------------------------


def test_prior_lines_are_the_risks_and_the_dots_the_worst(rows, model):
    X, y = rows
    plain = LogisticRegression().fit(X, y)
    models = {"costs": model, "plain": plain}
    display = PriorRiskDisplay.from_estimator(models, X, y, COSTS).plot()
    for name, each in models.items():
        share, drawn = display.lines_[name].get_data()
        np.testing.assert_allclose(drawn, risk_by_prior(y, each.predict(X), COSTS, share))
        (at,), (peak,) = display.worst_points_[name].get_data()
        assert peak == drawn.max()
        assert at == share[drawn.argmax()]
        assert display.worst[name] == (at, peak)
    assert display.observed == pytest.approx(np.mean(y == "yes"))
    assert display.observed_line_.get_xdata()[0] == display.observed
    observed = np.interp(display.observed, display.shares, display.risks["plain"])
    assert observed == pytest.approx(expected_cost(y, plain.predict(X), COSTS))


def test_prior_display_reads_the_rule_of_a_decision_classifier(rows):
    X, y = rows
    wary = DecisionClassifier(LogisticRegression(), COSTS, reject_cost=0.3).fit(X, y)
    display = PriorRiskDisplay.from_estimator(wary, X, y)
    taken = wary.predict(X)
    assert (taken == "reject").any()
    expected = risk_by_prior(
        y, taken, COSTS, display.shares, reject_label="reject", reject_cost=0.3
    )
    np.testing.assert_allclose(display.risks["DecisionClassifier(LogisticRegression)"], expected)


def test_prior_display_moves_one_of_three_classes():
    y, taken = [0, 0, 1, 2, 2, 2], [0, 1, 1, 0, 2, 2]
    display = PriorRiskDisplay.from_predictions(y, taken, moving=0, shares=[0.0, 0.5, 1.0])
    # class risks 1/2, 0, 1/3; classes 1 and 2 keep their shares of 1/4 and 3/4 of the rest
    np.testing.assert_allclose(display.risks["rule"], [0.25, 0.375, 0.5])
    assert display.observed == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="no row of the class 3"):
        PriorRiskDisplay.from_predictions(y, taken, labels=[0, 1, 2, 3])


# --- reliability --------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_reliability_points_are_those_of_scikit_learn(rows, model, strategy):
    X, y = rows
    p = model.predict_proba(X)[:, 1]
    display = ReliabilityDisplay.from_predictions(y, p, n_bins=8, strategy=strategy).plot()
    observed, predicted = calibration_curve(y == "yes", p, n_bins=8, strategy=strategy)
    x, height = display.points_.get_data()
    np.testing.assert_allclose(x, predicted)
    np.testing.assert_allclose(height, observed)
    assert display.rows.sum() == pytest.approx(len(y))


def test_reliability_bars_cover_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(2)
    inside, bars = 0, 0
    for _ in range(40):
        p = np.repeat([0.03, 0.2, 0.5, 0.9], 150)
        display = ReliabilityDisplay.from_predictions(
            (rng.uniform(size=600) < p).astype(int), p, strategy="uniform", confidence=0.9
        )
        np.testing.assert_allclose(display.predicted, [0.03, 0.2, 0.5, 0.9])
        inside += int(
            ((display.lower <= display.predicted) & (display.predicted <= display.upper)).sum()
        )
        bars += 4
    assert 0.84 < inside / bars < 0.96


def test_reliability_bars_are_drawn_where_they_are(rows, model):
    X, y = rows
    display = ReliabilityDisplay.from_estimator(model, X, y).plot()
    _, _, (segments,) = display.bars_.lines
    ends = np.array([segment[:, 1] for segment in segments.get_segments()])
    np.testing.assert_allclose(ends, np.column_stack([display.lower, display.upper]))
    assert (display.lower <= display.observed).all()
    assert (display.observed <= display.upper).all()


def test_reliability_marks_the_zone(rows, model):
    X, y = rows
    display = ReliabilityDisplay.from_estimator(model, X, y, zone=0.1).plot(zoom=True)
    assert display.threshold == 1 / 11
    assert display.zone == gray_zone(1 / 11, 0.1)
    box = display.zone_.get_extents().transformed(display.ax_.transData.inverted())
    assert (box.x0, box.x1) == pytest.approx(display.zone)
    low, high = display.ax_.get_xlim()
    assert low < display.zone[0] < display.zone[1] < high < 0.4
    with pytest.raises(ValueError, match="no zone"):
        ReliabilityDisplay.from_estimator(model, X, y).plot(zoom=True)
    with pytest.raises(ValueError, match="needs costs"):
        ReliabilityDisplay.from_predictions(y, model.predict_proba(X)[:, 1], zone=0.1)


def test_weights_are_effective_rows():
    y, p = [0, 1, 1, 0, 1], [0.2, 0.2, 0.2, 0.8, 0.8]
    display = ReliabilityDisplay.from_predictions(
        y, p, sample_weight=[1, 1, 2, 0, 5], strategy="uniform"
    )
    np.testing.assert_allclose(display.observed, [3 / 4, 1.0])
    np.testing.assert_allclose(display.rows, [16 / 6, 1.0])


def test_reliability_of_one_class_among_three():
    X, y = make_classification(400, 6, n_informative=4, n_classes=3, random_state=1)
    three = LogisticRegression().fit(X, y)
    display = ReliabilityDisplay.from_estimator(three, X, y, positive=1, n_bins=5)
    observed, predicted = calibration_curve(
        y == 1, three.predict_proba(X)[:, 1], n_bins=5, strategy="quantile"
    )
    np.testing.assert_allclose(display.observed, observed)
    np.testing.assert_allclose(display.predicted, predicted)
    with pytest.raises(ValueError, match="Choose positive"):
        ReliabilityDisplay.from_estimator(three, X, y)


def test_constant_predictions_are_one_bin():
    display = ReliabilityDisplay.from_predictions([0, 1, 0, 0], [0.3] * 4)
    assert display.observed.tolist() == [0.25]
    assert display.rows.tolist() == [4.0]


# --- frames and axes ----------------------------------------------------------------------------


@pytest.mark.parametrize("with_pandas", [True, False])
def test_frames_hold_the_drawn_numbers(rows, model, with_pandas, monkeypatch):
    if not with_pandas:
        monkeypatch.setattr(theme, "find_spec", lambda name: None)
    X, y = rows
    curve = CostCurveDisplay.from_estimator(model, X, y)
    lines = PriorRiskDisplay.from_estimator({"m": model}, X, y)
    bins = ReliabilityDisplay.from_estimator(model, X, y)
    assert isinstance(curve.frame(), dict) != with_pandas
    np.testing.assert_array_equal(curve.frame()["cost"], curve.costs)
    np.testing.assert_array_equal(lines.frame()["m"], lines.risks["m"])
    assert list(bins.frame()) == ["predicted", "observed", "lower", "upper", "rows"]


def test_nothing_is_imported_from_matplotlib_before_drawing():
    code = (
        "import sys; from laconic.displays import ReliabilityDisplay as R; "
        "R.from_predictions([0, 1], [0.2, 0.9]).frame(); "
        "print('matplotlib' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


def test_models_without_probabilities_are_refused(rows):
    with pytest.raises(TypeError, match="no predict_proba"):
        CostCurveDisplay.from_estimator(object(), *rows)
