"""Decision and cost curves: the formulas by hand, bands that hold, what a guarantee leaves."""

from __future__ import annotations

import numpy as np
import pytest

from laconic import DecisionClassifier, PlainLogisticRegression
from laconic.displays import CostRegionDisplay, DecisionCurveDisplay

COSTS = {"fp": 1.0, "fn": 4.0}


def drawn(n, seed, share=0.3):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    return y, 1 / (1 + np.exp(-rng.normal(1.5 * y - 1.2, 1.0)))


def test_net_benefit_is_counted_row_by_row():
    y, p = drawn(500, 0)
    curve = DecisionCurveDisplay.from_predictions(y, p)
    for t, benefit, everybody in zip(curve.thresholds, curve.benefit, curve.everybody, strict=True):
        weight = t / (1 - t)
        assert benefit == pytest.approx(np.where(y == 1, p > t, -weight * (p > t)).mean())
        assert everybody == pytest.approx(np.where(y == 1, 1.0, -weight).mean())
    # at a share where the model is used, by weights of the rows
    moved = DecisionCurveDisplay.from_predictions(y, p, thresholds=[0.3], share=0.1)
    w = np.where(y == 1, 0.1 / (y == 1).sum(), 0.9 / (y == 0).sum())
    alarms = w * np.where(y == 1, p > 0.3, -3 / 7 * (p > 0.3))
    assert moved.benefit[0] == pytest.approx(alarms.sum())


def test_costs_over_mix_and_ratio_are_those_of_the_rule():
    y, p = drawn(500, 1)
    curve = CostRegionDisplay.from_predictions(y, p, COSTS)
    false, missed = (p[y == 0] > 0.2).mean(), 4 * (p[y == 1] <= 0.2).mean()
    assert curve.cost == pytest.approx((1 - curve.x) * false + curve.x * missed)
    assert curve.constant == pytest.approx(np.minimum(1 - curve.x, 4 * curve.x))
    ratio = CostRegionDisplay.from_predictions(y, p, COSTS, over="ratio")
    for x, cost in zip(ratio.x, ratio.cost, strict=True):
        assert cost == pytest.approx(
            np.where(y == 1, x * (p <= 1 / (1 + x)), p > 1 / (1 + x)).mean()
        )
    with pytest.raises(ValueError, match="over must be"):
        CostRegionDisplay.from_predictions(y, p, COSTS, over="time")


def test_bands_hold_the_long_run():
    """Pointwise 95 % bands: on 80 draws of 300 rows they hold the truth in 88 % or more."""
    big_y, big_p = drawn(200_000, 2)
    cuts = [0.1, 0.3, 0.5]
    truth = DecisionCurveDisplay.from_predictions(big_y, big_p, thresholds=cuts, share=0.3)
    real = CostRegionDisplay.from_predictions(big_y, big_p, COSTS)
    held, paid = np.zeros(3), np.zeros(len(real.x))
    for seed in range(80):
        y, p = drawn(300, 100 + seed)
        one = DecisionCurveDisplay.from_predictions(y, p, thresholds=cuts, share=0.3)
        held += (one.low <= truth.benefit) & (truth.benefit <= one.high)
        other = CostRegionDisplay.from_predictions(y, p, COSTS)
        paid += (other.low <= real.cost) & (real.cost <= other.high)
    assert held.min() / 80 >= 0.88
    assert paid.min() / 80 >= 0.88


def test_the_guaranteed_region_is_marked():
    rng = np.random.default_rng(3)
    y = np.where(rng.random(3000) < 0.3, "bad", "ok")
    X = rng.normal(size=(3000, 2)) + 1.2 * (y == "bad")[:, None]
    model = DecisionClassifier(
        PlainLogisticRegression(), COSTS, positive="bad",
        guarantee=["recall>=0.8", "false_alarms<=0.6"],
    ).fit(X, y)  # fmt: skip
    curve = DecisionCurveDisplay.from_estimator(model, X, y)
    assert curve.region == (model.guaranteed_.lowest, model.guaranteed_.highest)
    assert curve.threshold == model.guaranteed_.threshold
    cost = CostRegionDisplay.from_estimator(model, X, y)
    assert cost.ceiling == pytest.approx((1 - cost.x) * 0.6 + cost.x * 4 * 0.2)
    assert (cost.cost <= cost.ceiling).all()
    pytest.importorskip("matplotlib").use("agg")
    assert curve.plot().ax_.get_xlabel()
    for over in ("mix", "ratio"):
        shown = CostRegionDisplay.from_estimator(model, X, y, over=over).plot()
        assert "guaranteed region" in shown.ax_.get_legend_handles_labels()[1]
