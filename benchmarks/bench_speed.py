"""Speed goals in one run: CPU seconds beside those of a peer, one thread, interleaved, medians.

    python -m benchmarks.bench_speed                 all parts that the environment can run
    python -m benchmarks.bench_speed dense wide      some of them

Parts: dense (newton-cholesky), wide (liblinear at an equal gap), separable, kernel (SVC), joint
(classes fitted together), khiops (needs the ``bench`` extra), predict (memory by size of a row
group), jobs (wall seconds of two jobs beside one; needs two idle cores).
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import laconic
from laconic.bayes import SelectiveNaiveBayes

HEAD = "| task | ours s | peer s | peer / ours | goal | peer |\n|---|---|---|---|---|---|"


def cpu(action: Callable[[], Any]) -> float:
    """CPU seconds of this process and of the children it waits for."""

    def now() -> float:
        used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(own.ru_utime + own.ru_stime for own in used)

    start = now()
    action()
    return now() - start


_CHILD = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""


def child(words: list[str]) -> tuple[float, float]:
    """CPU seconds and the largest memory, in MB, of a command.

    It is started by a small process: what a process holds when it starts another counts as memory
    of the other, and here that may be a table.
    """
    start = [sys.executable, "-c", _CHILD, *words]
    said = subprocess.run(start, capture_output=True, text=True, check=True).stdout
    seconds, memory = map(float, said.split())
    return seconds, memory


def race(
    task: str, ours: Callable[[], Any], peer: Callable[[], Any], name: str, goal: str, times: int
) -> None:
    """One line of the table; the first turn of ours, which may compile, is not counted."""
    ours()
    taken = [(cpu(ours), cpu(peer)) for _ in range(times)]
    mine, theirs = (median(own) for own in zip(*taken, strict=True))
    print(
        f"| {task} | {mine:.3f} | {theirs:.3f} | {theirs / mine:.2f} | {goal} | {name} |",
        flush=True,
    )


def race_fits(task: str, model: Any, peer: Any, X: Any, y: Any, name: str, goal: str) -> None:
    """One line for two estimators on the same rows."""
    race(task, lambda: model.fit(X, y), lambda: peer.fit(X, y), name, goal, 3)


def dense() -> None:
    from benchmarks.bench_gray_zone import rows

    X, y, _ = rows()
    peer = LogisticRegression(solver="newton-cholesky", tol=1e-6)
    for zone in ((0.0, 1.0), (0.029, 0.241), (0.048, 0.158), (0.078, 0.1)):
        model = laconic.GrayZoneLogisticRegression(zone)
        task = f"gray zone {zone}, {len(X):,} x {X.shape[1]}"
        race_fits(task, model, peer, X, y, "newton-cholesky", "6")


def wide_rows(n: int = 20_000, d: int = 100_000, filled: int = 30) -> tuple[Any, Any]:
    """A sparse table of ones, and labels by a tenth of its columns."""
    draw = np.random.default_rng(0)
    places = draw.integers(0, d, n * filled)
    X = sparse.csr_matrix((np.ones(n * filled), places, filled * np.arange(n + 1)), shape=(n, d))
    slopes = draw.normal(size=d) * (draw.random(d) < 0.1) * 2
    return X, (draw.random(n) < expit(X @ slopes - 1)).astype(int)


def liblinear_at(X: Any, y: Any, gap: float) -> tuple[LogisticRegression, float]:
    """liblinear with the loosest tolerance whose objective is within ``gap`` of its least."""

    def fitted(tol: float) -> tuple[LogisticRegression, float]:
        model = LogisticRegression(solver="liblinear", tol=tol, max_iter=10_000).fit(X, y)
        score = (2 * y - 1) * model.decision_function(X)
        size = (model.coef_**2).sum() + (model.intercept_**2).sum()
        return model, float(np.logaddexp(0, -score).sum() + 0.5 * size)

    best = fitted(1e-9)[1]
    for tol in 10.0 ** -np.arange(1, 9):
        model, value = fitted(float(tol))
        if value <= best * (1 + gap):
            break
    return model, value / best - 1


def wide() -> None:
    X, y = wide_rows()
    for gap in (1e-4, 1e-6):
        peer, reached = liblinear_at(X, y, gap)
        for zone in ((0.0, 1.0), (0.2, 0.5), (0.25, 0.4)):
            model = laconic.GrayZoneLogisticRegression(zone, tol=gap)
            task = f"CSR 20,000 x 100,000, zone {zone}, gap {gap:.0e}"
            race_fits(task, model, peer, X, y, f"liblinear, {reached:.0e} above its least", "1")


def separable() -> None:
    draw = np.random.default_rng(1)
    codes = draw.integers(0, 50, (4_000, 8))
    X = np.concatenate([np.eye(50)[codes[:, j]] for j in range(8)], axis=1)
    score = X @ draw.normal(size=400)
    y = (score > np.quantile(score, 0.9)).astype(int)
    for C in (1.0, 1e3):
        peer = LogisticRegression(solver="newton-cholesky", C=C, tol=1e-6)
        model = laconic.GrayZoneLogisticRegression((0.05, 0.2), C=C)
        task = f"4,000 separable one-hot rows, 400 columns, zone (0.05, 0.2), C = {C:g}"
        race_fits(task, model, peer, X, y, "newton-cholesky", "1")


def kernel() -> None:
    from sklearn.svm import SVC

    from laconic.papers.gray_zone import two_gaussians

    X, y = two_gaussians(2_000, 0)
    for zone in ((0.2, 0.4), (0.05, 0.7)):
        cut = float(np.mean(zone))
        peer = SVC(gamma=2.0, class_weight={0: 2 * cut, 1: 2 * (1 - cut)}, cache_size=500)
        model = laconic.GrayZoneKernelClassifier(gamma=2.0, zone=zone)
        task = f"kernel on the plane, 2,000 rows, zone {zone}"
        race_fits(task, model, peer, X, y, "SVC, tol 1e-3", "1")


def joint() -> None:
    """Classes together beside one against the rest, as many fits of two classes."""
    draw = np.random.default_rng(2)
    X = draw.normal(size=(10_000, 12))
    F = X @ draw.normal(size=(12, 5)) + 2 * np.sin(2 * X[:, :1]) * draw.normal(size=5)
    y = (F + draw.gumbel(size=F.shape)).argmax(axis=1)

    def model() -> Any:
        return laconic.SparseAdditiveClassifier(pairs=0, group_penalty=0.0, random_state=0)

    race(
        "additive, 5 classes together, 10,000 x 12",
        lambda: model().fit(X, y),
        lambda: [model().fit(X, y == k) for k in range(5)],
        "five fits of two classes",
        "1",
        3,
    )


def khiops() -> None:
    from benchmarks.bench_modl import cases, khiops_encoder

    for name, X, y in cases(full=False):
        race(
            f"MODL, {name}, {len(X):,} x {X.shape[1]}",
            lambda X=X, y=y: laconic.ModlEncoder().fit(X, y),
            lambda X=X, y=y: khiops_encoder(X, y),
            "KhiopsEncoder(n_trees=0)",
            "20",
            3,
        )


def predict() -> None:
    """Peak memory of ``laconic predict`` on files of one row group."""
    import polars as pl

    def table(n: int) -> Any:
        draw = np.random.default_rng(3)
        columns: dict[str, Any] = {f"x{j}": draw.normal(size=n) for j in range(20)}
        return pl.DataFrame(columns | {"label": (columns["x0"] + draw.normal(size=n) > 1.5)})

    print("\n| rows in one row group | MB of the file | peak MB | CPU s |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as made:
        train, model = Path(made) / "train.parquet", Path(made) / "model"
        table(2_000).write_parquet(train)
        run = [sys.executable, "-m", "laconic"]
        fit = [*run, "fit", str(train), "--target", "label", "--model", "bayes"]
        subprocess.run([*fit, "--out", str(model)], check=True, capture_output=True)
        for n in (1_000_000, 4_000_000, 10_000_000):
            path = Path(made) / "rows.parquet"
            table(n).drop("label").write_parquet(path, row_group_size=n)
            words = [*run, "predict", str(model / "model.json"), str(path)]
            words += ["--out", str(Path(made) / "decisions.csv")]
            seconds, memory = child(words)
            size = path.stat().st_size / 2**20
            print(f"| {n:,} | {size:.0f} | {memory:.0f} | {seconds:.1f} |", flush=True)


def jobs() -> None:
    """Wall and CPU seconds of two jobs beside one; searches until a time is up are left out."""
    from sklearn.datasets import make_classification

    X, y = make_classification(40_000, 30, n_informative=12, random_state=0)
    few, label = X[:6_000], y[:6_000]
    fits: dict[str, Callable[[int], Any]] = {
        "ModlEncoder": lambda k: laconic.ModlEncoder(n_jobs=k).fit(X, y),
        "WeightedNaiveBayes": lambda k: laconic.WeightedNaiveBayes(n_jobs=k).fit(X, y),
        "SelectiveNaiveBayes": lambda k: SelectiveNaiveBayes(n_jobs=k).fit(few, label),
        "SparseAdditiveClassifier": lambda k: laconic.SparseAdditiveClassifier(
            n_jobs=k, random_state=0
        ).fit(X, y),
        "GrayZoneLogisticRegressionCV": lambda k: laconic.GrayZoneLogisticRegressionCV(
            n_jobs=k
        ).fit(X, y),
        "ScorecardClassifier": lambda k: laconic.ScorecardClassifier(n_jobs=k).fit(few, label),
        "LaconicClassifier": lambda k: laconic.LaconicClassifier(n_jobs=k, random_state=0).fit(
            few, label
        ),
    }
    print("\n| estimator | one job, wall s | two jobs, wall s | ratio | CPU of two / one |")
    print("|---|---|---|---|---|")
    for name, fit in fits.items():
        fit(1)
        fit(2)
        walls: dict[int, list[float]] = {1: [], 2: []}
        spent: dict[int, list[float]] = {1: [], 2: []}
        for k in (1, 2) * 3:
            start = time.perf_counter()
            spent[k].append(cpu(lambda fit=fit, k=k: fit(k)))
            walls[k].append(time.perf_counter() - start)
        one, two = median(walls[1]), median(walls[2])
        share = median(spent[2]) / max(median(spent[1]), 1e-9)
        print(f"| {name} | {one:.2f} | {two:.2f} | {one / two:.2f} | {share:.2f} |", flush=True)


PARTS = (dense, wide, separable, kernel, joint, khiops, predict, jobs)


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    print(HEAD)
    for part in PARTS:
        if not names or part.__name__ in names:
            try:
                part()
            except ModuleNotFoundError as error:
                print(f"| {part.__name__}: {error} | | | | | |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
