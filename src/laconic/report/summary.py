"""One plain dict that says what a decision model does on rows it has not seen."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss, roc_auc_score

from laconic.evaluation.costs import expected_cost

_CURVE_POINTS = 101


def summarise(
    model: Any,
    X: Any,
    y: NDArray[Any],
    costs: NDArray[np.float64],
    *,
    positive: Any,
    n_train: int,
) -> dict[str, Any]:
    """Measure ``model`` (a fitted DecisionClassifier) on test rows.

    ``costs[i, j]`` is what deciding class j costs when the truth is class i. With two classes, the
    threshold and the curve are those of the probability of ``positive``. Everything in the result
    is a number, a string, a list or a dict, so that it can be saved as JSON.
    """
    classes = list(model.classes_)
    codes = np.searchsorted(model.classes_, y)
    probabilities = model.predict_proba(X)
    decisions = model.predict(X)
    confusion = np.array(
        [[int(np.sum((y == truth) & (decisions == said))) for said in classes] for truth in classes]
    )
    found: dict[str, Any] = {
        "classes": [str(name) for name in classes],
        "shares": [float(np.mean(codes == k)) for k in range(len(classes))],
        "positive": str(positive),
        "rows": {"train": int(n_train), "test": len(y)},
        "costs": costs.tolist(),
        "confusion": confusion.tolist(),
        "decisions_per_1000": [1000.0 * float(np.mean(decisions == name)) for name in classes],
        "expected_cost": expected_cost(y, decisions, costs, labels=model.classes_),
        "baselines": _baselines(model, y, probabilities, costs),
        "log_loss": float(log_loss(codes, probabilities, labels=range(len(classes)))),
        "threshold": None,
        "curve": None,
        "auc": None,
    }
    if len(classes) == 2:
        k = classes.index(positive)
        found["threshold"] = float(model.threshold_ if k == 1 else 1.0 - model.threshold_)
        found["auc"] = float(roc_auc_score(codes == k, probabilities[:, k]))
        found["curve"] = _cost_curve(codes, probabilities[:, k], costs, k)
    return found


def _baselines(
    model: Any, y: NDArray[Any], probabilities: NDArray[np.float64], costs: NDArray[np.float64]
) -> dict[str, float]:
    likeliest = model.classes_[probabilities.argmax(axis=1)]
    found = {
        f"always {name}": expected_cost(y, np.full(len(y), name), costs, labels=model.classes_)
        for name in model.classes_
    }
    found["the likeliest class"] = expected_cost(y, likeliest, costs, labels=model.classes_)
    return found


def _cost_curve(
    codes: NDArray[np.int64],
    probability: NDArray[np.float64],
    costs: NDArray[np.float64],
    k: int,
) -> dict[str, list[float]]:
    """Mean cost on the test rows when every probability from a threshold on decides class k."""
    scale = np.linspace(0.0, 1.0, _CURVE_POINTS)
    # half of the points below 0.1: with rare classes that is where the decision is
    thresholds = np.unique(np.concatenate([scale, scale**3]))
    said = probability[None, :] >= thresholds[:, None]
    cost = np.where(said, costs[codes, k], costs[codes, 1 - k]).mean(axis=1)
    return {"threshold": thresholds.tolist(), "cost": cost.tolist()}
