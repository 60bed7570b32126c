"""Hérault and Grandvalet (2008): the experiments of sections 4.1 and 4.2, a draw at a time.

Section 4.1: two gaussians in the plane, kernel logistic regression, plain and truncated; width of
the kernel by Parzen's estimate, penalty by the criterion on 200 validation rows. Section 4.2,
Forest Covertype, Krummholz against Spruce/Fir: 10 subsets, each in turn the training set (23,235
rows) with the nine others as test set; columns standardised on the training rows; penalty and
threshold by 5-fold cross-validation. Costs are c- = pi for a false positive and c+ = 1 - pi for a
false negative, pi = 8.8 % the share of Krummholz.

What they print and claim, and how ours is compared with it, is in ``gray_zone_tables``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.model_selection import StratifiedKFold

from laconic._typing import Floats
from laconic.core.losses import TruncatedLogistic, log_odds
from laconic.data.datasets import load
from laconic.kernel.estimator import GrayZoneKernelClassifier
from laconic.kernel.kernels import parzen_bandwidth
from laconic.linear.cv import GrayZoneLogisticRegressionCV

Labels = NDArray[np.int64]

# ---- section 4.2, Covertype ------------------------------------------------------------------

ZONES = ((0.0, 1.0), (0.004, 0.72), (0.01, 0.475), (0.029, 0.241), (0.048, 0.158), (0.078, 0.1))
PENALTIES = (1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
THRESHOLDS = tuple(round(0.02 + 0.002 * k, 3) for k in range(81))
"""Thresholds of figure 6."""


@dataclass(frozen=True)
class Split:
    """One training subset and the rest, standardised on the training rows."""

    X: Floats
    y: Labels
    X_test: Floats
    y_test: Labels

    @property
    def costs(self) -> dict[str, float]:
        share = float(np.r_[self.y, self.y_test].mean())
        return {"fp": share, "fn": 1.0 - share}

    def test_cost(self, positive: NDArray[np.bool_]) -> float:
        costs = self.costs
        missed = (self.y_test == 1) & ~positive
        alarm = (self.y_test == 0) & positive
        return float(costs["fn"] * missed.mean() + costs["fp"] * alarm.mean())


@cache
def krummholz() -> tuple[Floats, Labels]:
    """232,350 rows of 54 columns; class 1 is Krummholz, class 0 Spruce/Fir."""
    data = load("covtype")
    cover = np.asarray(data.y).astype(int)
    rows = np.isin(cover, (1, 7))
    X = np.asarray(data.X, dtype=np.float64)[rows]
    return X, (cover[rows] == 7).astype(np.int64)


def split_of(X: Floats, y: Labels, split: int, seed: int = 0, thin: int = 1) -> Split:
    """The paper's protocol: train on one tenth, test on the other nine.

    ``thin=4`` keeps every fourth row of both.
    """
    folds = list(StratifiedKFold(10, shuffle=True, random_state=seed).split(X, y))
    rest, subset = (rows[::thin] for rows in folds[split])
    mean, deviation = X[subset].mean(axis=0), X[subset].std(axis=0)
    deviation[deviation == 0] = 1.0
    train, test = ((X[rows] - mean) / deviation for rows in (subset, rest))
    return Split(train, y[subset], test, y[rest])


def counts_draw() -> dict[str, float]:
    """Rows and columns of section 4.2."""
    X, y = krummholz()
    binary = [bool(np.isin(column, (0.0, 1.0)).all()) for column in X.T]
    return {
        "positives": int(y.sum()),
        "negatives": int((y == 0).sum()),
        "share": 100.0 * float(y.mean()),
        "columns": X.shape[1],
        "binary": sum(binary),
        "training": len(split_of(X, y, 0).y),
    }


def table_3_draw(seed: int, split: int, zone: int) -> dict[str, Any]:
    """One column of Table 3 on one split: costs in hundredths, the rest in percent."""
    own = split_of(*krummholz(), split, seed)
    model = GrayZoneLogisticRegressionCV(
        zones=[ZONES[zone]], Cs=1.0 / np.array(PENALTIES), costs=own.costs, cv=5
    ).fit(own.X, own.y)
    p = model.predict_proba(own.X_test)[:, 1]
    return {
        "cost": 100 * own.test_cost(model.decision_function(own.X_test) > 0),
        "threshold": 100 * float(model.threshold_),
        "support": 100 * len(model.support_) / len(own.y),
        "curve": [100 * own.test_cost(p > cut) for cut in THRESHOLDS],
    }


# ---- section 4.1, two gaussians --------------------------------------------------------------

TABLE_2_ZONES = ((0.0, 1.0), (0.2, 0.4), (0.4, 0.6))
LOG_PENALTIES = tuple(round(-2.0 + 0.1 * k, 1) for k in range(41))
"""log10 of lambda = 1 / C."""
TRUE_BINS = tuple(round(0.025 + 0.05 * k, 3) for k in range(20))
"""Centres of the bins of the true probability in figures 3 to 5."""


def two_gaussians(n: int, seed: int, *, exact: bool = True) -> tuple[Floats, Labels]:
    """Section 4.1: unit gaussians at (1, 1) and (-1, -1), 30 % of the first, exactly or each row
    by itself."""
    draw = np.random.default_rng(seed)
    y = (np.arange(n) < (round(0.3 * n) if exact else draw.binomial(n, 0.3))).astype(np.int64)
    X = draw.normal(size=(n, 2)) + np.where(y[:, None] == 1, 1.0, -1.0)
    order = draw.permutation(n)
    return X[order], y[order]


def true_probability(X: Floats) -> Floats:
    """P(Y = 1 | x) of section 4.1."""
    odds = 0.3 / 0.7 * np.exp(2.0 * X.sum(axis=1))
    return np.asarray(odds / (1.0 + odds))


def table_2_draw(seed: int, zone: int, n_test: int = 20_000) -> dict[str, Any]:
    """One column of Table 2 on one draw, and a figure of 3 to 5: quantiles of the estimates."""
    X, y = two_gaussians(200, seed)
    X_valid, y_valid = two_gaussians(200, 500_000 + seed)
    X_test, y_test = two_gaussians(n_test, 1_000_000 + seed, exact=False)
    width = parzen_bandwidth(X, 10.0 ** np.arange(-1.0, 1.01, 0.1))
    low, high = TABLE_2_ZONES[zone]
    loss = TruncatedLogistic(low, high)
    signs = np.where(y_valid == 1, 1.0, -1.0)

    def fitted(power: float) -> GrayZoneKernelClassifier:
        gamma = 0.5 / width**2
        return GrayZoneKernelClassifier(gamma=gamma, zone=(low, high), C=10.0**-power).fit(X, y)

    losses = [loss.value(fitted(k).log_odds(X_valid), signs).sum() for k in LOG_PENALTIES]
    power = LOG_PENALTIES[int(np.argmin(losses))]
    model = fitted(power)
    p = model.predict_proba(X_test)[:, 1]
    out: dict[str, Any] = {"support": len(model.support_), "log10 penalty": power}
    for cut in (0.3, 0.5):
        missed, alarm = (y_test == 1) & (p <= cut), (y_test == 0) & (p > cut)
        out[f"cost {cut}"] = 100.0 * float((1.0 - cut) * missed.mean() + cut * alarm.mean())
    truth = true_probability(X_test)
    bins = np.minimum((20 * truth).astype(int), 19)
    out["quantiles"] = [np.quantile(p[bins == k], (0.1, 0.5, 0.9)).tolist() for k in range(20)]
    return out | {"log10 width": float(np.log10(width))}


def asymptotic_support(low: float, high: float) -> float:
    """Percent of the rows that the truncated loss keeps when it knows P(Y = 1 | x).

    They are the positives below ``high`` and the negatives above ``low``; x enters by x1 + x2, of
    law N(2, 2) and N(-2, 2).
    """

    def share(mean: float, a: float, b: float) -> float:
        return float(quad(lambda s: norm.pdf(s, mean, np.sqrt(2.0)), a, b)[0])

    at = [(log_odds(p) - np.log(0.3 / 0.7)) / 2.0 for p in (low, high)]
    return 100.0 * (0.3 * share(2.0, -np.inf, at[1]) + 0.7 * share(-2.0, at[0], np.inf))


def table_1_draw(seed: int) -> float:
    """The largest distance of a fitted alpha from Table 1, on its three sets of rows."""
    X, y = two_gaussians(200, seed)
    worst = 0.0
    for low, high in TABLE_2_ZONES[1:]:
        model = GrayZoneKernelClassifier(gamma=2.0, zone=(low, high), C=1.0, tol=1e-10).fit(X, y)
        alpha = np.zeros(len(y))
        signs = np.where(y == 1, 1.0, -1.0)
        alpha[model.support_] = signs[model.support_] * model.dual_coef_[0]
        cap = np.where(y == 1, 1.0 - high, low)  # 1 / (1 + exp(-f_i))
        logistic = 1.0 / (1.0 + np.exp(signs * model.log_odds(X)))
        wanted = [np.zeros(len(y)), np.clip(alpha, 0.0, cap), logistic]
        table = np.choose(model.partition_[:, 0], wanted)
        worst = max(worst, float(np.abs(alpha - table).max()))
    return worst
