"""Gray-zone logistic regression against scikit-learn's newton-cholesky.

CPU seconds of one thread, warm, both in this process, best of several. The peer fits plain
logistic regression at tol 1e-6; ours reaches a certified relative gap of 1e-6. Only the zone (0, 1)
is the same problem; the others are different objectives. Covtype (Krummholz against Spruce/Fir)
when it is at hand, else rows drawn to look like it.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from laconic import GrayZoneLogisticRegression
from laconic.data.datasets import available

ZONES = ((0.0, 1.0), (0.004, 0.72), (0.01, 0.475), (0.029, 0.241), (0.048, 0.158), (0.078, 0.1))


def rows() -> tuple[Any, Any, str]:
    if available("covtype"):
        from laconic.papers.gray_zone import krummholz

        X, y = krummholz()
        deviation = X.std(axis=0)
        deviation[deviation == 0] = 1.0
        return np.ascontiguousarray((X - X.mean(axis=0)) / deviation), y, "covtype"
    rng = np.random.default_rng(0)
    X = rng.normal(size=(232_350, 54))
    X[:, 10:] = (X[:, 10:] > 1.5) * 4.0
    score = X @ (rng.normal(size=54) * 0.4)
    return X, (rng.random(len(X)) < expit(score - 4.0)).astype(int), "drawn"


def cpu(action: Callable[[], Any], repeats: int) -> float:
    action()
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        taken.append(time.process_time() - start)
    return min(taken)


def peak_over(X: Any, action: Callable[[], Any]) -> float:
    tracemalloc.start()
    action()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return float(peak / X.nbytes)


def dense() -> None:
    X, y, name = rows()
    order = np.random.default_rng(0).permutation(len(y))
    print(f"Data: {name}, {X.shape[1]} columns, C = 1.\n")
    print("| rows | zone | peer s | ours s | peer / ours | iterations | relative gap | support % |")
    print("|---|---|---|---|---|---|---|---|")
    for n in (5_000, 23_235, 75_000, 232_350):
        A, b = np.ascontiguousarray(X[order[:n]]), y[order[:n]]
        peer = LogisticRegression(solver="newton-cholesky", tol=1e-6)
        repeats = 5 if n < 100_000 else 3
        for zone in ZONES:
            model = GrayZoneLogisticRegression(zone=zone)
            # interleaved, so that both meet the same machine
            theirs = cpu(lambda A=A, b=b, peer=peer: peer.fit(A, b), repeats)
            ours = cpu(lambda A=A, b=b, model=model: model.fit(A, b), repeats)
            gap = model.duality_gap_ / model.objective_
            share = 100 * len(model.support_) / n
            print(
                f"| {n:,} | {zone[0]:g}-{zone[1]:g} | {theirs:.3f} | {ours:.3f} "
                f"| {theirs / ours:.1f} | {model.n_iter_[0]} | {gap:.0e} | {share:.1f} |",
                flush=True,
            )
    for zone in (ZONES[0], ZONES[4]):
        model = GrayZoneLogisticRegression(zone=zone)
        over = peak_over(X, lambda model=model: model.fit(X, y))
        print(f"\nMemory, 232,350 rows, zone {zone}: the fit adds {over:.2f} times the table.")


def wide() -> None:
    """CSR rows of 30 ones among 100,000 columns; the peers' stopping rules are gradient norms."""
    rng = np.random.default_rng(0)
    n, d, per_row = 20_000, 100_000, 30
    X = sparse.csr_matrix(
        (np.ones(n * per_row), rng.integers(0, d, n * per_row), per_row * np.arange(n + 1)),
        shape=(n, d),
    )
    w = rng.normal(size=d) * (rng.random(d) < 0.1) * 2
    y = (rng.random(n) < expit(X @ w - 1)).astype(int)
    print("\n| 20,000 x 100,000 CSR | s | relative gap | support % |\n|---|---|---|---|")
    for solver in ("lbfgs", "newton-cg"):
        peer = LogisticRegression(solver=solver, tol=1e-6, max_iter=1000)
        print(f"| LogisticRegression {solver} | {cpu(lambda p=peer: p.fit(X, y), 1):.2f} | | |")
    for zone in ((0.0, 1.0), (0.2, 0.4), (0.048, 0.158)):
        model = GrayZoneLogisticRegression(zone=zone)
        taken = cpu(lambda model=model: model.fit(X, y), 1)
        gap, share = model.duality_gap_ / model.objective_, 100 * len(model.support_) / n
        print(f"| ours {zone[0]:g}-{zone[1]:g} | {taken:.2f} | {gap:.0e} | {share:.1f} |")


def calibration(n: int = 200_000) -> None:
    """A true logistic model of slope 2: slopes fitted on zones, and what is observed inside one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 1))
    y = (rng.random(n) < expit(2.0 * X[:, 0] - 1.0)).astype(int)
    fits = {
        zone: GrayZoneLogisticRegression(zone=zone).fit(X, y)
        for zone in ((0.0, 1.0), (0.05, 0.7), (0.2, 0.4), (0.29, 0.31))
    }
    print("\n| zone | fitted slope | rows in the model |\n|---|---|---|")
    for zone, model in fits.items():
        share = 100 * len(model.support_) / n
        print(f"| ({zone[0]:g}, {zone[1]:g}) | {model.coef_[0, 0]:.2f} | {share:.0f} % |")
    edges = np.array([0.2, 0.24, 0.28, 0.32, 0.36, 0.4])
    named = {"zone (0.2, 0.4)": fits[0.2, 0.4], "plain logistic regression": fits[0.0, 1.0]}
    print("\n| predicted | " + " | ".join(f"{middle:.2f}" for middle in edges[:-1] + 0.02) + " |")
    print("|" + "---|" * len(edges))
    for name, model in named.items():
        p = model.predict_proba(X)[:, 1]
        seen = [y[(low <= p) & (p < high)].mean() for low, high in pairwise(edges)]
        print(f"| observed, {name} | " + " | ".join(f"{share:.2f}" for share in seen) + " |")


def main(parts: Sequence[str] = ()) -> None:
    known = {"dense": dense, "wide": wide, "calibration": calibration}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in parts or known:
            known[part]()


if __name__ == "__main__":
    main(sys.argv[1:])
