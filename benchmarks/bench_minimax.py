"""CPU seconds of the minimax solvers, as ratios to 100 steps of the paper's subgradient.

Both sides use the same compiled pass over profiles, in the same process; compilation is left out.
Run with OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

from time import process_time
from typing import Any

import numpy as np

from laconic import MinimaxClassifier
from laconic.core.losses import Solution
from laconic.minimax.criterion import DenseLaws, Laws, PriorBox, SparseLaws, zero_one
from laconic.minimax.solver import solve_minimax


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


def main() -> None:
    for laws in (dense(50, 2), dense(50, 3), counts(500, 300, 3), counts(500, 300, 2)):
        timed(laws, 1)
        timed(laws, 1, solver="subgradient", max_iter=5)
    MinimaxClassifier(cv=None).fit(np.random.default_rng(0).normal(size=(99, 2)), np.arange(99) % 3)
    solvers()
    fits()


if __name__ == "__main__":
    main()
