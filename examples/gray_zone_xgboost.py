"""The truncated likelihood as the objective of boosted trees.

The principle is not tied to a linear score: any model that takes a gradient and a Hessian per row
can be aimed at the decision. Here XGBoost learns with the plain and with the truncated logistic
loss, and both are judged by their cost at the threshold that the costs imply.

Run: python examples/gray_zone_xgboost.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit

from laconic.core.losses import TruncatedLogistic, log_odds


def objective(loss: TruncatedLogistic) -> Callable[[Any, Any], tuple[Any, Any]]:
    """A custom objective for xgboost.train: slopes and curvatures of the loss at each row.

    Rows outside the zone have neither; a small curvature keeps the leaf values finite.
    """

    def evaluate(scores: Any, rows: Any) -> tuple[Any, Any]:
        y = np.where(rows.get_label() > 0.5, 1.0, -1.0)
        z = np.asarray(scores, dtype=np.float64)
        return loss.slope(z, y), np.maximum(loss.curvature(z, y), 1e-6)

    return evaluate


def draw(n: int, seed: int) -> tuple[Any, Any]:
    """A smooth signal on four of ten columns; about one row in ten is positive."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 10))
    f = 1.5 * np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] - 3.0
    return X, (rng.random(n) < expit(f)).astype(int)


def compare(
    n: int = 20_000, rounds: int = 60, seed: int = 0, zone: tuple[float, float] = (0.03, 0.25)
) -> dict[str, float]:
    """Mean test cost with the plain and the truncated objective; c- = 0.09, c+ = 0.91."""
    import xgboost

    X, y = draw(n, seed)
    X_test, y_test = draw(n, seed + 1_000)
    train, test = xgboost.DMatrix(X, label=y), xgboost.DMatrix(X_test)
    options = {
        "max_depth": 4, "eta": 0.15, "base_score": 0.0, "nthread": 1, "seed": 0,
        "disable_default_eval_metric": True,
    }  # fmt: skip
    costs, threshold = {"fp": 0.09, "fn": 0.91}, 0.09
    found = {}
    for name, loss in (("plain", TruncatedLogistic()), ("gray zone", TruncatedLogistic(*zone))):
        model = xgboost.train(options, train, rounds, obj=objective(loss))
        positive = model.predict(test, output_margin=True) > log_odds(threshold)
        missed, alarm = (y_test == 1) & ~positive, (y_test == 0) & positive
        found[name] = float(costs["fn"] * missed.mean() + costs["fp"] * alarm.mean())
    return found


if __name__ == "__main__":
    print("| seed | plain | gray zone |\n|---|---|---|")
    table = []
    for seed in range(5):
        found = compare(seed=seed)
        table.append(list(found.values()))
        print(f"| {seed} | {found['plain']:.5f} | {found['gray zone']:.5f} |")
    plain, gray = np.mean(table, axis=0)
    print(f"| mean | {plain:.5f} | {gray:.5f} |")
