"""Majority votes: CPU seconds of the dedicated solvers against general ones, in one process.

Run with one thread: OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_votes.py
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_classification

from laconic import CqBoostClassifier
from laconic.data.tables.columns import Schema
from laconic.votes.boosting import lp_boost
from laconic.votes.nnls import ActiveSet, least_squares_vote, sides_to_bounds
from laconic.votes.programs import CqBoost
from laconic.votes.voters.stumps import StumpVoters


def cpu(f: Callable[[], Any], repeat: int = 3) -> tuple[float, Any]:
    """Median CPU seconds and the last result."""
    times, result = [], None
    for _ in range(repeat):
        start = time.process_time()
        result = f()
        times.append(time.process_time() - start)
    return float(np.median(times)), result


def stump_columns(X: Any, y: Any, thresholds: str = "equal", n: int = 10) -> Any:
    table = Schema.learn(np.asarray(X, dtype=float)).table
    weight = np.ones(len(y))
    prepared = StumpVoters(thresholds, n, constant=False).prepare(table, weight)
    return prepared.columns(np.where(np.asarray(y) > 0, 1.0, -1.0), weight, 0)


def piqp(gram: Any, linear: Any) -> Any:
    """min ½ w'Gw - a'w, w >= 0 by an interior-point method."""
    import piqp as package

    n = len(linear)
    solver = package.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-10
    solver.setup(gram, -linear, None, None, None, None, None, np.zeros(n), np.full(n, np.inf))
    solver.solve()
    return np.maximum(solver.result.x, 0.0)


def value(gram: Any, first: Any, w: Any) -> float:
    return float(0.5 * w @ gram @ w - first @ w)


def one_solve() -> None:
    print("\n### One MinCq solve on a given Gram matrix (oriented stumps)\n")
    print("| rows, voters (used) | active set | PIQP / ours | difference of optimum |")
    print("|---|---|---|---|")
    for m, n in ((10_000, 100), (10_000, 500), (10_000, 2000), (1000, 2000)):
        X, y = make_classification(m, 20, n_informative=10, random_state=0)
        columns = stump_columns(X, y, "quantile", n // 20)
        ids = np.arange(columns.n_columns)
        first, gram = columns.first_moment()[ids], columns.full_gram(ids)
        turn = np.where(first < 0, -1.0, 1.0)
        first, gram = first * turn, gram * np.outer(turn, turn)
        ours, found = cpu(lambda g=gram, a=first: least_squares_vote(g, a, tol=1e-12))
        theirs, w = cpu(lambda g=gram, a=first: piqp(g, a), 1)
        apart = value(gram, first, w) - value(gram, first, found.point)
        used = np.count_nonzero(found.point)
        print(f"| {m}, {len(ids)} ({used}) | {ours:.4f} s | x{theirs / ours:.0f} | {apart:.1e} |")


def whole_run() -> None:
    print("\n### A whole CqBoost run against re-solving the restricted program at every column\n")
    print("| set, voters | columns | ours | PIQP re-solve / ours | difference of optimum |")
    print("|---|---|---|---|---|")
    cancer = load_breast_cancer(return_X_y=True)
    digits = load_digits(return_X_y=True)
    pair = np.isin(digits[1], (3, 8))
    sets = {
        "breast cancer": (cancer[0], cancer[1]),
        "digits 3-8": (digits[0][pair], digits[1][pair] == 8),
    }
    for name, (X, y), both in [(k, v, b) for k, v in sets.items() for b in (False, True)]:
        columns = stump_columns(X, y)
        ids, _ = columns.distinct()
        first, gram = columns.first_moment()[ids], columns.full_gram(ids)
        turn = np.where(first < 0, -1.0, 1.0)
        first, gram = first * turn, gram * np.outer(turn, turn)
        if both:
            first = np.concatenate([first, -first])
            gram = np.block([[gram, -gram], [-gram, gram]])
            name += ", with complements"

        def ours(g: Any = gram, a: Any = first) -> Any:
            state = ActiveSet(g, a, *sides_to_bounds(a, "plain"))
            state.minimise(0.0, tol=1e-10 * a.max())
            return state.weights

        def theirs(g: Any = gram, a: Any = first) -> Any:
            chosen: list[int] = []
            w = np.zeros(len(a))
            while True:
                slopes = a - g @ w
                slopes[chosen] = -np.inf
                best = int(slopes.argmax())
                if slopes[best] <= 1e-8 * a.max():
                    return w, len(chosen)
                chosen.append(best)
                w = np.zeros(len(a))
                w[chosen] = piqp(g[np.ix_(chosen, chosen)], a[chosen])

        mine, w = cpu(ours, 15)
        slow, (v, count) = cpu(theirs, 1)
        apart = abs(value(gram, first, w) - value(gram, first, v))
        used = np.count_nonzero(w)
        print(
            f"| {name}, {len(ids)} | {used} (PIQP: {count}) | {1e3 * mine:.2f} ms | "
            f"x{slow / mine:.0f} | {apart:.1e} |",
            flush=True,
        )


def every_midpoint(m: int = 100_000, d: int = 50) -> None:
    from sklearn.ensemble import AdaBoostClassifier

    print("\n### Fit with every midpoint as a threshold against AdaBoost of 200 stumps\n")
    print("| rows x columns | CqBoost | voters | AdaBoost 200 | ratio | risk | AdaBoost's risk |")
    print("|---|---|---|---|---|---|---|")
    for rows in (m // 10, m):
        X, y = make_classification(2 * rows, d, n_informative=15, random_state=0)
        model = CqBoostClassifier(StumpVoters("midpoints"))
        peer = AdaBoostClassifier(n_estimators=200, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours, _ = cpu(lambda a=X[:rows], b=y[:rows], e=model: e.fit(a, b), 1)
        theirs, _ = cpu(lambda a=X[:rows], b=y[:rows], e=peer: e.fit(a, b), 1)
        risks = [1 - e.score(X[rows:], y[rows:]) for e in (model, peer)]
        print(
            f"| {rows} x {d} | {ours:.1f} s | {model.n_voters_[0]} | {theirs:.1f} s | "
            f"x{theirs / ours:.1f} | {risks[0]:.4f} | {risks[1]:.4f} |",
            flush=True,
        )


class ColdMaster:
    """The dual of LPBoost solved from scratch by scipy at every column."""

    def __init__(self, cap: Any) -> None:
        self.cap = cap
        self.rows: list[Any] = []

    def add(self, column: Any) -> None:
        self.rows.append(np.append(column, -1.0))

    def solve(self) -> tuple[Any, float, Any]:
        from scipy.optimize import linprog

        n = len(self.cap)
        found = linprog(
            np.append(np.zeros(n), 1.0),
            A_ub=np.array(self.rows),
            b_ub=np.zeros(len(self.rows)),
            A_eq=np.append(np.ones(n), 0.0)[None],
            b_eq=[1.0],
            bounds=[*((0.0, c) for c in self.cap), (None, None)],
            method="highs-ds",
        )
        if found.x is None:
            raise RuntimeError(f"The linear program of LPBoost failed: {found.message}")
        return found.x[:n], float(found.x[n]), -np.asarray(found.ineqlin.marginals)


def linear_programs() -> None:
    print("\n### LPBoost: warm dual master against re-solving with linprog\n")
    print("| set, voters, nu | columns | warm | re-solve / warm | difference of optimum |")
    print("|---|---|---|---|---|")
    cancer = load_breast_cancer(return_X_y=True)
    digits = load_digits(return_X_y=True)
    pair = np.isin(digits[1], (3, 8))
    made = make_classification(2000, 20, n_informative=8, flip_y=0.1, random_state=0)
    for name, (X, y), nu in (
        ("breast cancer", cancer, 0.1),
        ("digits 3-8", (digits[0][pair], digits[1][pair] == 8), 0.1),
        ("make_classification 2000", made, 0.5),
    ):
        columns = stump_columns(X, y)
        warm, found = cpu(lambda c=columns, v=nu: lp_boost(c, v), 1)
        cold, again = cpu(lambda c=columns, v=nu: lp_boost(c, v, make_master=ColdMaster), 1)
        print(
            f"| {name}, {columns.n_columns}, {nu} | {np.count_nonzero(found.point)} | {warm:.3f} s "
            f"| x{cold / warm:.1f} | {abs(found.value - again.value):.1e} |",
            flush=True,
        )


def memory() -> None:
    """In a process of its own: the peak of other parts would hide this one's."""
    print("\n### Memory above the data, a million rows of float64, 500 stumps entered\n")
    print("| rows x columns | data | voters | peak above the data | CPU seconds |")
    print("|---|---|---|---|---|", flush=True)
    subprocess.run([sys.executable, __file__, "memory-here"], check=True)


def memory_here(m: int = 1_000_000, d: int = 50, voters: int = 500) -> None:
    draw = np.random.default_rng(0)
    X = np.empty((m, d), order="F")
    score = draw.normal(size=m)
    for j in range(d):  # column by column: no temporary as large as the data
        X[:, j] = draw.normal(size=m)
        score += np.sin(3 * X[:, j])
    y = (score > 0).astype(np.int64)
    CqBoostClassifier(mu="least-squares", max_voters=2).fit(X[:500], y[:500])  # compiled
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    rows = CqBoostClassifier()._read_training(X, y, None)
    prepared = StumpVoters("quantile", 100).prepare(rows.table, rows.weight)
    run = CqBoost(prepared.columns(np.where(rows.y == 1, 1.0, -1.0), rows.weight, 0), "both")
    share = 0.3
    while len(run.entered) < voters and share > 1e-5:
        run.solve(share * run.scale, tol=0.1 * share)
        share *= 0.7
    spent = time.process_time() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"| {m} x {d} | {X.nbytes / 2**20:.0f} MiB | {len(run.entered)} entered | "
        f"{(after - before) / 1024:.0f} MiB | {spent:.0f} |",
        flush=True,
    )


def main(parts: Sequence[str] = ()) -> None:
    known = {
        "solve": one_solve,
        "run": whole_run,
        "lp": linear_programs,
        "memory": memory,
        "midpoints": every_midpoint,
    }
    if list(parts) == ["memory-here"]:
        memory_here()
        return
    least_squares_vote(np.eye(2), np.ones(2))  # compile before the first timing
    for part in parts or list(known):
        known[part]()


if __name__ == "__main__":
    main(sys.argv[1:])
