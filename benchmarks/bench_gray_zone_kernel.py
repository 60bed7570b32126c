"""The kernel gray-zone model against scikit-learn's SVC.

CPU seconds of one thread, warm, both in this process. SVC stops at its default tol 1e-3 with class
weights that put its decision at the same threshold; ours at a certified relative gap of 1e-5. They
are different objectives of the same size. MNIST and covtype only when they are at hand. In pieces:
``python -m benchmarks.bench_gray_zone_kernel 2000 5000 mnist covtype``.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.svm import SVC

from laconic import GrayZoneKernelClassifier, GrayZoneLogisticRegression
from laconic.data.datasets import available, load
from laconic.papers import gray_zone as paper


def cpu(action: Callable[[], Any], repeats: int) -> float:
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        taken.append(time.process_time() - start)
    return min(taken)


def six_columns(n: int, seed: int = 0) -> tuple[Any, Any]:
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n, 6))
    score = 1.5 * np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] ** 2 - 1.5
    return X, (draw.random(n) < expit(2 * score)).astype(int)


def row(name: str, X: Any, y: Any, gamma: float, zone: tuple[float, float], repeats: int) -> None:
    model = GrayZoneKernelClassifier(gamma=gamma, zone=zone)
    cut = float(np.mean(zone))
    peer = SVC(gamma=gamma, class_weight={0: 2 * cut, 1: 2 * (1 - cut)}, cache_size=500)
    theirs = cpu(lambda: peer.fit(X, y), repeats)
    ours = cpu(lambda: model.fit(X, y), repeats)
    gap = model.duality_gap_ / model.objective_
    print(
        f"| {name} | {len(y):,} | {zone[0]:g}-{zone[1]:g} | {theirs:.3f} | {ours:.3f} "
        f"| {theirs / ours:.2f} | {model.solver_} | {gap:.0e} | {len(model.support_):,} "
        f"| {len(model.score_form_.vectors):,} | {len(peer.support_):,} |",
        flush=True,
    )


def against_svc(sizes: tuple[int, ...]) -> None:
    X, y = paper.two_gaussians(300, 0)
    for solver in ("smo", "block", "low-rank"):  # compiled once, outside the clock
        GrayZoneKernelClassifier(zone=(0.2, 0.4), solver=solver).fit(X, y)
    X, y = paper.two_gaussians(1_500, 0)
    for tol in (1e-5, 1e-7):
        GrayZoneKernelClassifier(zone=(0.2, 0.4), solver="smo", tol=tol).fit(X, y)
    names = ("rows of", "n", "zone", "SVC s", "ours s", "SVC / ours", "solver", "relative gap")
    names += ("support", "in the score", "SVC support")
    print("| " + " | ".join(names) + " |\n" + "|---" * len(names) + "|")
    row("section 4.1, gamma 2", *paper.two_gaussians(200, 0), 2.0, (0.2, 0.4), 5)
    for n in sizes:
        repeats = 5 if n <= 5_000 else 1
        for zone in ((0.2, 0.4), (0.05, 0.7)):
            row("two gaussians, gamma 1", *paper.two_gaussians(n, 0), 1.0, zone, repeats)
            row("two gaussians, gamma 1/4", *paper.two_gaussians(n, 0), 0.25, zone, repeats)
            row("six columns, gamma 1/6", *six_columns(n), 1.0 / 6.0, zone, repeats)


def digits() -> None:
    if not available("mnist"):
        print("\nMNIST is not at hand.")
        return
    data = load("mnist")
    y = np.asarray(data.y).astype(int)[:60_000]
    rows = np.isin(y, (3, 8))
    X = np.asarray(data.X, dtype=np.float64)[:60_000][rows] / 255.0
    gamma = 1.0 / (X.shape[1] * float(X.var()))
    row("MNIST 3 against 8, 784 columns", X, (y[rows] == 8).astype(int), gamma, (0.3, 0.7), 1)


def landmarks() -> None:
    if not available("covtype"):
        print("\ncovtype is not at hand.")
        return
    X, y = paper.krummholz()
    deviation = X.std(axis=0)
    deviation[deviation == 0] = 1.0
    X = np.ascontiguousarray((X - X.mean(axis=0)) / deviation)
    zone, share = (0.048, 0.158), float(y.mean())
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[: len(y) // 2], order[len(y) // 2 :]
    linear = GrayZoneLogisticRegression(zone=zone)
    kernel = GrayZoneKernelClassifier(zone=zone, landmarks=500)
    for model in (linear, GrayZoneKernelClassifier(zone=zone, landmarks=50, cache_size=0.5)):
        model.fit(X[train[:5_000]], y[train[:5_000]])  # compiled once, outside the clock
    base = cpu(lambda: linear.fit(X, y), 2)
    ours = cpu(lambda: kernel.fit(X, y), 2)
    gap = kernel.duality_gap_ / kernel.objective_
    print(
        f"\ncovtype, {len(y):,} rows: linear {base:.2f} s, 500 landmarks {ours:.2f} s, "
        f"ratio {ours / base:.1f}, relative gap {gap:.0e}"
    )
    for name, model in (("linear", linear), ("500 landmarks", kernel)):
        positive = model.fit(X[train], y[train]).decision_function(X[test]) > 0
        missed, alarm = (y[test] == 1) & ~positive, (y[test] == 0) & positive
        cost = (1 - share) * missed.mean() + share * alarm.mean()
        print(f"test cost x 100, fitted on one half: {name} {100 * cost:.3f}", flush=True)


def main(words: tuple[str, ...] = ("2000", "5000", "20000", "mnist", "covtype")) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sizes = tuple(int(word) for word in words if word.isdigit())
        if sizes:
            against_svc(sizes)
        if "mnist" in words:
            digits()
        if "covtype" in words:
            landmarks()


if __name__ == "__main__":
    main(*([tuple(sys.argv[1:])] if sys.argv[1:] else []))
