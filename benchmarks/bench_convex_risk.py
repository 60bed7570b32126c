"""Convex risks and ranking against scikit-learn: CPU seconds at equal certified gap.

Run with one thread: ``OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m
benchmarks.bench_convex_risk``. Covertype (Krummholz against Spruce/Fir, 232,350 x 54) is used when
it is on this machine, gaussian rows of the same size otherwise. Both sides solve the same problem;
a peer's tolerance is the first of its list that reaches the target excess over the certified best.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    HuberRegressor,
    LogisticRegression,
    QuantileRegressor,
    Ridge,
    RidgeClassifier,
)
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC

from laconic import ConvexRiskClassifier
from laconic.convex import ConvexRiskRegressor, PairwiseRanker
from laconic.core.losses import get_loss

PATIENCE = 90.0
"""A peer that took this long and missed the target is not tried at a finer tolerance."""


@dataclass
class Line:
    what: str
    rows: str
    peer: str
    peer_seconds: float
    peer_excess: float
    ours_seconds: float
    ours_gap: float

    def show(self) -> str:
        ratio = self.peer_seconds / self.ours_seconds
        return (
            f"| {self.what} | {self.rows} | {self.ours_seconds:.3g} | {self.ours_gap:.1e} | "
            f"{self.peer} | {self.peer_seconds:.3g} | {self.peer_excess:.1e} | {ratio:.2g} |"
        )


HEAD = (
    "| problem | rows | ours, s | our relative gap | peer | peer, s | peer's relative excess | "
    "peer / ours |\n|---|---|---|---|---|---|---|---|"
)


def clocked(run: Callable[[], object]) -> tuple[float, object]:
    """CPU seconds of one run, and what it returned."""
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = run()
    return time.process_time() - begin, found


def covertype() -> tuple[np.ndarray, np.ndarray]:
    """Standardised rows and labels -1 (Spruce/Fir), +1 (Krummholz)."""
    from laconic.data.datasets import available, load

    if available("covtype"):
        data = load("covtype")
        kept = np.isin(data.y, [1, 7])
        X = np.asarray(data.X, dtype=np.float64)[kept]
        y = np.where(data.y[kept] == 7, 1.0, -1.0)
    else:
        draw = np.random.default_rng(0)
        X = draw.normal(size=(232_350, 54))
        y = np.where(X[:, :5].sum(axis=1) + 2 * draw.normal(size=len(X)) > 4, 1.0, -1.0)
    return StandardScaler().fit_transform(X), y


def excess(loss_name: str, X, y, C, coef, intercept, best: float) -> float:
    task = "classification" if set(np.unique(y)) == {-1.0, 1.0} else "regression"
    value = np.sum(np.square(coef)) / 2 + C * np.sum(
        get_loss(loss_name, task=task).value(X @ np.ravel(coef) + intercept, y)
    )
    return float(value / best - 1.0)


class ExponentialByHand:
    """scikit-learn has no linear model of the exponential loss: what one would write instead."""

    def __init__(self, C: float, method: str, tol: float) -> None:
        self.C, self.method, self.tol = C, method, tol

    def fit(self, X, y):
        def objective(point):
            losses = np.exp(-y * (X @ point[:-1] + point[-1]))
            pull = self.C * y * losses
            slope = np.append(point[:-1] - pull @ X, -pull.sum())
            return point[:-1] @ point[:-1] / 2 + self.C * losses.sum(), slope

        options = {"maxiter": 5000, "gtol": self.tol, "ftol": 0.0}
        start = np.zeros(X.shape[1] + 1)
        found = minimize(objective, start, jac=True, method=self.method, options=options)
        self.coef_, self.intercept_ = found.x[:-1], found.x[-1]
        return self


def compare(what, X, y, loss, C, ours, peers, target) -> Line:
    """``peers``: list of (name, model), loosest first; the first that meets the target counts."""
    ours_seconds, model = clocked(partial(ours.fit, X, y))
    best = float(np.ravel(model.objective_)[0] - np.ravel(model.duality_gap_)[0])
    gap = float(np.ravel(model.duality_gap_)[0]) / best
    for name, peer in peers:
        seconds, fitted = clocked(partial(peer.fit, X, y))
        reached = excess(loss, X, y, C, fitted.coef_, fitted.intercept_, best)
        tried = name, seconds, reached
        if reached <= target or seconds > PATIENCE:
            break
    name, seconds, reached = tried
    return Line(what, f"{len(X):,} x {X.shape[1]}", name, seconds, reached, ours_seconds, gap)


def classification(n_rows: int | None) -> list[Line]:
    X, y = covertype()
    if n_rows:
        pick = np.random.default_rng(0).choice(len(X), n_rows, replace=False)
        X, y = np.ascontiguousarray(X[pick]), y[pick]
    C = 1.0
    # LinearSVC penalises its intercept: a column of ones makes both problems the same
    ones = np.column_stack([X, np.ones(len(X))])
    svc = [
        (
            f"LinearSVC(dual, max_iter={m})",
            LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=1e-8, max_iter=m, random_state=0),
        )
        for m in (30, 300, 1000)
    ]
    smooth_svc = [
        (
            f"LinearSVC(primal, tol={t:g})",
            LinearSVC(
                loss="squared_hinge", dual=False, C=C, fit_intercept=False, tol=t, max_iter=1000
            ),
        )
        for t in (1e-3, 1e-5, 1e-7)
    ]
    newton = [
        (
            f"LogisticRegression({solver}, tol={t:g})",
            LogisticRegression(C=C, solver=solver, tol=t, max_iter=1000),
        )
        for t in (1e-4, 1e-6)
        for solver in ("newton-cholesky",)
    ]
    lbfgs = [
        (
            f"LogisticRegression(lbfgs, tol={t:g})",
            LogisticRegression(C=C, solver="lbfgs", tol=t, max_iter=5000),
        )
        for t in (1e-4, 1e-5, 1e-6, 1e-7)
    ]

    by_hand = [
        (f"scipy L-BFGS (gtol={t:g})", ExponentialByHand(C, "L-BFGS-B", t)) for t in (1.0, 1e-2)
    ]
    ridge = [("RidgeClassifier(cholesky)", RidgeClassifier(alpha=1 / (2 * C), solver="cholesky"))]

    def ours(loss, tol, **more):
        return ConvexRiskClassifier(loss=loss, C=C, tol=tol, **more)

    free = {"fit_intercept": False}
    return [
        compare("hinge, 1e-4", ones, y, "hinge", C, ours("hinge", 1e-4, **free), svc, 1e-4),
        compare(
            "squared hinge, 1e-6",
            ones,
            y,
            "squared_hinge",
            C,
            ours("squared_hinge", 1e-6, **free),
            smooth_svc,
            1e-6,
        ),
        compare("logistic, 1e-6", X, y, "logistic", C, ours("logistic", 1e-6), newton, 1e-6),
        compare("logistic, 1e-6", X, y, "logistic", C, ours("logistic", 1e-6), lbfgs, 1e-6),
        compare(
            "exponential, 1e-6", X, y, "exponential", C, ours("exponential", 1e-6), by_hand, 1e-6
        ),
        compare("squared, 1e-6", X, y, "squared", C, ours("squared", 1e-6), ridge, 1e-6),
    ]


def regression(n: int, d: int, with_highs: bool) -> list[Line]:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(n, d))
    y = X @ draw.normal(size=d) + draw.standard_t(2, n)
    C = 1e4 / n
    ridge = [(f"Ridge({s})", Ridge(alpha=1 / C, solver=s)) for s in ("cholesky",)]
    lines = [
        compare(
            "squared, 1e-6",
            X,
            y,
            "squared",
            C,
            ConvexRiskRegressor(loss="squared", C=C, tol=1e-6),
            ridge,
            1e-6,
        ),
        huber(X, y),
    ]
    if with_highs:
        # no penalty on either side: the excess is that of the losses
        model = ConvexRiskRegressor(loss="absolute", C=1e4, tol=1e-6)
        lines.append(
            compare(
                "absolute (median)",
                X,
                y,
                "absolute",
                1e4,
                model,
                [("QuantileRegressor(highs)", QuantileRegressor(alpha=0, solver="highs"))],
                1e-5,
            )
        )
    return lines


def huber(X, y) -> Line:
    """HuberRegressor also estimates a scale; ours is given that scale and the same penalty."""
    alpha = 1e-4 * len(X)
    for tol in (1e-5, 1e-7, 1e-9):
        peer = HuberRegressor(epsilon=1.35, alpha=alpha, tol=tol, max_iter=10_000)
        seconds, fitted = clocked(partial(peer.fit, X, y))
        epsilon, C = 1.35 * fitted.scale_, 1.0 / (fitted.scale_ * alpha)
        model = ConvexRiskRegressor(loss="huber", epsilon=epsilon, C=C, tol=1e-6)
        ours_seconds, model = clocked(partial(model.fit, X, y))
        best = model.objective_ - model.duality_gap_
        losses = get_loss("huber", task="regression", epsilon=epsilon).value(fitted.predict(X), y)
        reached = float((np.sum(fitted.coef_**2) / 2 + C * losses.sum()) / best - 1.0)
        if reached <= 1e-6:
            break
    rows = f"{len(X):,} x {X.shape[1]}"
    gap = model.duality_gap_ / best
    name = f"HuberRegressor(tol={tol:g})"
    return Line("Huber, 1e-6", rows, name, seconds, reached, ours_seconds, gap)


def kernels(n: int) -> list[Line]:
    """Gaussian kernel on six columns: SVC and SVR(epsilon=0) at their own tolerance."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(n, 6))
    f = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2])
    side, y = np.where(f + 0.5 * draw.normal(size=n) > 0, 1.0, -1.0), f + 0.3 * draw.normal(size=n)
    gamma, more = 1 / 6, {"kernel": "rbf", "gamma": 1 / 6}
    K = rbf_kernel(X, gamma=gamma)
    ridge = KernelRidge(alpha=1.0, kernel="rbf", gamma=gamma)
    free = {"fit_intercept": False}
    rounds = [
        ("kernel hinge, 1e-5", side, "hinge", ConvexRiskClassifier("hinge", tol=1e-5, **more),
         "SVC", SVC(gamma=gamma)),
        ("kernel absolute, 1e-5", y, "absolute", ConvexRiskRegressor("absolute", tol=1e-5, **more),
         "SVR(epsilon=0)", SVR(gamma=gamma, epsilon=0.0)),
        ("kernel squared, 1e-6", y, "squared",
         ConvexRiskRegressor("squared", tol=1e-6, **more, **free), "KernelRidge", ridge),
    ]  # fmt: skip
    lines = []
    for what, target, loss, ours, name, peer in rounds:
        ours_seconds, model = clocked(partial(ours.fit, X, target))
        seconds, fitted = clocked(partial(peer.fit, X, target))
        value = float(np.ravel(model.objective_)[0])
        best = value - float(np.ravel(model.duality_gap_)[0])
        coef = np.zeros(n)
        coef[getattr(fitted, "support_", slice(None))] = np.ravel(fitted.dual_coef_)
        z = K @ coef + getattr(fitted, "intercept_", 0.0)
        task = "classification" if loss == "hinge" else "regression"
        theirs = coef @ K @ coef / 2 + get_loss(loss, task=task).value(z, target).sum()
        gap, excess_ = (value - best) / best, float(theirs / best - 1.0)
        lines.append(Line(what, f"{n:,} x 6", name, seconds, excess_, ours_seconds, gap))
    return lines


def ranking(sizes: list[int]) -> None:
    print("\n| ranking loss | rows | CPU s | relative gap | iterations |\n|---|---|---|---|---|")
    for n in sizes:
        draw = np.random.default_rng(0)
        X = draw.normal(size=(n, 20))
        y = X @ draw.normal(size=20) + 2 * draw.normal(size=n)
        for loss in ("squared_hinge", "hinge", "logistic"):
            seconds, model = clocked(partial(PairwiseRanker(loss, C=1 / n).fit, X, y))
            gap = model.duality_gap_ / model.objective_
            print(
                f"| {loss} | {n:,} x 20 | {seconds:.2f} | {gap:.1e} | {model.n_iter_} |", flush=True
            )


def warm_up() -> None:
    """Compiled code is compiled or loaded before the clock runs."""
    draw = np.random.default_rng(0)
    X, t = draw.normal(size=(300, 3)), draw.normal(size=300)
    for loss in ("hinge", "logistic", "squared_hinge"):
        ConvexRiskClassifier(loss=loss).fit(X, t > 0)
        PairwiseRanker(loss).fit(X, t)
    ConvexRiskClassifier(loss="exponential").fit(X, t > 0)
    wide = draw.normal(size=(1_500, 3))
    ConvexRiskClassifier(loss="hinge", kernel="rbf").fit(wide, wide[:, 0] > 0)
    for loss in ("squared", "absolute", "huber"):
        ConvexRiskRegressor(loss=loss).fit(X, t)
        ConvexRiskRegressor(loss=loss, kernel="rbf").fit(X, t)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    quick = parser.parse_args().quick
    warm_up()
    print(HEAD)
    for n_rows in (23_235,) if quick else (23_235, None):
        for line in classification(n_rows):
            print(line.show(), flush=True)
    for n, d in ((5_000, 20),) if quick else ((5_000, 20), (20_000, 20), (200_000, 20)):
        for line in regression(n, d, with_highs=n <= 20_000):
            print(line.show(), flush=True)
    for n in (2_000,) if quick else (2_000, 5_000):
        for line in kernels(n):
            print(line.show(), flush=True)
    ranking([2_000, 20_000] if quick else [2_000, 20_000, 200_000])


if __name__ == "__main__":
    main()
