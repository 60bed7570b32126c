"""CPU seconds of the minimax solvers, as ratios to 100 steps of the paper's subgradient.

Both sides use the same compiled pass over profiles, in the same process; compilation is left out.
Run with OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from laconic import MinimaxClassifier
from laconic.core.losses import Solution
from laconic.minimax.criterion import DenseLaws, Laws, PriorBox, SparseLaws, zero_one
from laconic.minimax.prior_classifier import MinimaxPriorClassifier
from laconic.minimax.solver import solve_minimax
from laconic.papers.minimax import (
    GAUSSIAN_MEANS,
    GAUSSIAN_SPREADS,
    continuous_pi_star,
    gaussians,
)


def dense(n_profiles: int, n_classes: int, seed: int = 0) -> DenseLaws:
    table = np.random.default_rng(seed).gamma(0.7, size=(n_profiles, n_classes))
    return DenseLaws(table / table.sum(axis=0))


def counts(n_rows: int, n_cells: int, n_classes: int, seed: int = 0) -> SparseLaws:
    """Counts of rows that fall into many cells by class laws of their own: few rows per cell."""
    draw = np.random.default_rng(seed)
    popularity = draw.gamma(0.5, size=n_cells)
    codes = []
    for k in range(n_classes):
        law = popularity * draw.gamma(1.0, size=n_cells)
        cell = np.searchsorted(np.cumsum(law / law.sum()), draw.random(n_rows // n_classes))
        codes.append(np.minimum(cell, n_cells - 1) * n_classes + k)
    pair, count = np.unique(np.concatenate(codes), return_counts=True)
    cells, where = np.unique(pair // n_classes, return_inverse=True)
    start = np.searchsorted(where, np.arange(len(cells) + 1))
    klass = (pair % n_classes).astype(np.int32)
    return SparseLaws(start, klass, count.astype(float), n_classes)


def timed(laws: Laws, repeat: int, **options: Any) -> tuple[float, Solution]:
    weight = laws.totals if isinstance(laws, SparseLaws) else None
    box = PriorBox.of(None, laws.n_classes)
    best = np.inf
    for _ in range(repeat):
        start = process_time()
        found = solve_minimax(laws, zero_one(laws.n_classes), box, class_weight=weight, **options)
        best = min(best, process_time() - start)
    return best, found


def solvers() -> None:
    print(
        "| K | profiles | table | merged | exact s | gap | passes | 100 steps s | ratio | V* - V |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    tables: list[tuple[str, Laws]] = [
        ("dense", dense(10_000, 2)),
        ("dense", dense(10_000, 5)),
        ("dense", dense(10_000, 10)),
        ("dense", dense(10_000, 26)),
        ("dense", dense(600_000, 2)),
        ("dense", dense(600_000, 5)),
        ("counts", counts(2_400_000, 1_200_000, 2)),
        ("counts", counts(2_400_000, 1_200_000, 5)),
        ("counts", counts(2_400_000, 1_200_000, 10)),
        ("counts", counts(2_400_000, 1_200_000, 26)),
    ]
    for kind, laws in tables:
        repeat = 3 if laws.n_profiles > 50_000 else 5
        exact, found = timed(laws, repeat)
        steps, paper = timed(laws, repeat, solver="subgradient", max_iter=100)
        missed = found.details["lower_bound"] - paper.details["lower_bound"]
        print(
            f"| {laws.n_classes} | {laws.n_profiles:,} | {kind} | {found.details['n_merged']:,} | "
            f"{exact:.3f} | {found.gap:.0e} | {found.details['n_passes']} | {steps:.3f} | "
            f"{exact / steps:.2f} | {missed:.0e} |",
            flush=True,
        )


def fits() -> None:
    print("\n| rows | profiles | fit s | microseconds per row |\n|---|---|---|---|")
    draw = np.random.default_rng(0)
    for n in (50_000, 100_000, 200_000, 400_000, 800_000):
        y = draw.choice(4, n, p=[0.6, 0.25, 0.1, 0.05])
        X = draw.normal(size=(n, 8)) + 0.5 * y[:, None]
        start = process_time()
        model = MinimaxClassifier(n_bins=3, cv=None).fit(X, y)
        spent = process_time() - start
        print(
            f"| {n:,} | {model.n_profiles_:,} | {spent:.2f} | {1e6 * spent / n:.2f} |", flush=True
        )


def curved(n: int = 4_000, samples: int = 4) -> None:
    """Worst class risk on the paper's two gaussian classes, whose boundary is curved."""
    best = worst_risk(gaussian_rule(continuous_pi_star()), 0)
    models: dict[str, Callable[[], Any]] = {
        "MinimaxClassifier(n_bins=5)": lambda: MinimaxClassifier(n_bins=5, cv=None),
        "MinimaxPriorClassifier(forest)": lambda: MinimaxPriorClassifier(
            RandomForestClassifier(100, min_samples_leaf=3, random_state=0)
        ),
        "LogisticRegression(class_weight='balanced')": lambda: LogisticRegression(
            class_weight="balanced"
        ),
    }
    print(f"\n| two gaussian classes, {n:,} rows, mean of {samples} samples | worst class risk |")
    print("|---|---|")
    for name, make in models.items():
        risks = [
            worst_risk(make().fit(*gaussians(n, seed)).predict, 1000 + seed)
            for seed in range(samples)
        ]
        print(f"| {name} | {np.mean(risks):.3f} |", flush=True)
    print(f"| the best possible | {best:.3f} |")


def gaussian_rule(prior: float) -> Callable[[Any], Any]:
    """The Bayes rule of the two classes when the first has this share."""

    def decide(X: Any) -> Any:
        logs = [norm.logpdf(X, mean, spread).sum(axis=1) for mean, spread in
                zip(GAUSSIAN_MEANS, GAUSSIAN_SPREADS, strict=True)]  # fmt: skip
        return (logs[0] - logs[1] < np.log((1.0 - prior) / prior)).astype(int)

    return decide


def worst_risk(decide: Callable[[Any], Any], seed: int) -> float:
    X, y = gaussians(200_000, seed)
    wrong = decide(X) != y
    return max(float(wrong[y == k].mean()) for k in (0, 1))


def main() -> None:
    for laws in (dense(50, 2), dense(50, 3), counts(500, 300, 3), counts(500, 300, 2)):
        timed(laws, 1)
        timed(laws, 1, solver="subgradient", max_iter=5)
    MinimaxClassifier(cv=None).fit(np.random.default_rng(0).normal(size=(99, 2)), np.arange(99) % 3)
    solvers()
    fits()
    curved()


if __name__ == "__main__":
    main()
