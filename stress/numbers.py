"""Hard numbers: condition numbers up to 1e16, separable classes, rare classes, wide tables.

Each case ends in a certificate of the target or in a warning with the gap that was reached.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import laconic
from laconic.convex import ConvexRiskRegressor
from stress.run import FAILED, Part

Rows = tuple[np.ndarray, np.ndarray]


def conditioned(power: int) -> Rows:
    """200 x 10 of condition number 10^power."""
    draw = np.random.default_rng(power)
    left, _ = np.linalg.qr(draw.normal(size=(200, 10)))
    right, _ = np.linalg.qr(draw.normal(size=(10, 10)))
    X = 14.0 * left * np.logspace(0, -power, 10) @ right
    return X, (X @ right[0] + 0.3 * draw.normal(size=200) > 0).astype(int)


def separable(power: int) -> Rows:
    draw = np.random.default_rng(1)
    X = draw.normal(size=(100, 5))
    return X * 10.0**power, (X[:, 0] > 0).astype(int)


def rare(power: int) -> Rows:
    """One row in 10^power is of the other class; equal rows are summed by weight of repetition."""
    draw = np.random.default_rng(2)
    n = max(10**power, 10)
    X = draw.normal(size=(min(n, 10_000), 3))
    y = np.zeros(len(X), int)
    y[:1] = 1
    return X, y


def wide(ratio: int) -> Rows:
    draw = np.random.default_rng(3)
    X = draw.normal(size=(40, 40 * ratio))
    return X, (X[:, 0] > 0).astype(int)


TABLES: dict[str, Rows] = {
    **{f"condition 1e{power}": conditioned(power) for power in (0, 4, 8, 12, 16)},
    **{f"separable, scale 1e{power}": separable(power) for power in (0, 3)},
    **{f"one row in 1e{power}": rare(power) for power in (2, 4)},
    **{f"{40 * ratio} columns of 40 rows": wide(ratio) for ratio in (1, 10)},
}
MODELS: dict[str, Any] = {
    "plain": laconic.PlainLogisticRegression(C=100.0),
    "gray zone": laconic.GrayZoneLogisticRegression(zone=(0.2, 0.8), C=100.0),
    "logistic": laconic.ConvexRiskClassifier(C=1e4),
    "hinge": laconic.ConvexRiskClassifier("hinge", C=100.0),
    "exponential": laconic.ConvexRiskClassifier("exponential"),
    "linear kernel": laconic.ConvexRiskClassifier("hinge", kernel="linear"),
    "huber": ConvexRiskRegressor("huber", C=1e4),
    "absolute": ConvexRiskRegressor("absolute", C=100.0),
    "additive": laconic.SparseAdditiveClassifier(group_penalty=0.01),
    "CqBoost": laconic.CqBoostClassifier(),
}
CASES = [(table, model) for table in TABLES for model in MODELS]
TARGET = 1e-4


def outcome(number: int) -> str:
    """The relative gap that one model reached on one table."""
    table, name = CASES[number]
    X, y = TABLES[table]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = MODELS[name].fit(X, y)
    short = any(issubclass(w.category, ConvergenceWarning) for w in said)
    value = float(np.max(getattr(model, "objective_", 1.0)))
    gap = float(np.max(model.duality_gap_)) / max(abs(value), 1e-300)
    if short:
        return f"short of the target, and says so: {name}, {table}: {gap:.1e}"
    if not 0 <= gap <= TARGET:
        return f"{FAILED}: {name}, {table}: a gap of {gap:.1e} without a warning"
    return f"certified: {name}"


PART = Part(
    "numbers", "fits", "a gap below the target, or a warning", outcome, size=len(CASES), quick=10
)
