"""Weighted naive Bayes against Khiops 11 (bench extra): quality on the paper's sets, and time.

    python -m benchmarks.bench_naive_bayes sets [NAME ...]   # 10-fold, Table 1, no trees;
                                                             # folds of seed 1, unseen before
    python -m benchmarks.bench_naive_bayes trees             # trees=10 against Khiops's default 10
    python -m benchmarks.bench_naive_bayes times [CELLS]     # CPU seconds, growth, one row;
                                                             # Khiops up to CELLS cells
    python -m benchmarks.bench_naive_bayes memory ROWS WIDTH
    python -m benchmarks.bench_naive_bayes searches [NAME ...]  # DGML, MS, VNS and the minimum

CPU seconds are those of Python plus, for Khiops, of the processes it starts, in the same run.
Khiops needs its virtual environment on the PATH.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification

from laconic import WeightedNaiveBayes
from laconic.data.datasets import load
from laconic.papers.naive_bayes import TABLE_1, FoldMeans, fold_means, log_losses, search_gaps

BY_SIZE = [
    "Iris", "Wine", "Sonar", "Flag", "Glass", "Heart", "Hepatitis", "Horsecolic", "Ionosphere",
    "Bupa", "Soybean", "Australian", "Breast", "Crx", "Pima", "Vehicle", "Tictactoe", "German",
    "LED", "Yeast", "Segmentation", "Hypothyroid", "SickEuthyroid", "Abalone", "Spam", "Waveform",
    "WaveformNoise", "Satimage", "Thyroid", "Mushroom", "LED17", "PenDigits", "Phoneme", "Letter",
    "Adult", "Shuttle",
]  # fmt: skip
SEED = 1
"""Settings were chosen on the folds of seed 0."""
WITH_TREES = ["Letter", "Adult", "Spam", "Satimage", "Segmentation", "Waveform"]


def cpu_seconds() -> float:
    """User and system seconds of this process and of its finished children."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


class Khiops:
    """KhiopsClassifier with names and labels as its files take them."""

    def __init__(self, trees: int = 0) -> None:
        from khiops.sklearn import KhiopsClassifier

        os.environ.setdefault("KHIOPS_PROC_NUMBER", "1")
        self.model = KhiopsClassifier(n_trees=trees, n_features=0)

    def _frame(self, X: Any) -> pd.DataFrame:
        frame = pd.DataFrame(X).reset_index(drop=True)
        frame.columns = [f"v{j}" for j in range(frame.shape[1])]
        for name in frame.select_dtypes("category"):
            frame[name] = frame[name].astype(object).where(frame[name].notna(), "")
        return frame

    def fit(self, X: Any, y: Any) -> Khiops:
        self.classes, codes = np.unique(y, return_inverse=True)
        self.model.fit(self._frame(X), np.array([f"c{k:04d}" for k in codes]))
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.asarray(self.model.predict_proba(self._frame(X)), dtype=float)

    @property
    def n_selected(self) -> int:
        predictor = self.model.model_report_.modeling_report.get_snb_predictor()
        return len(predictor.selected_variables or ())


def ours(**parameters: Any) -> Callable[[], WeightedNaiveBayes]:
    return lambda: WeightedNaiveBayes(random_state=0, **parameters)


def _row(name: str, a: FoldMeans, b: FoldMeans) -> str:
    return (
        f"| {name} | {a.auc:.4f} | {b.auc:.4f} | {a.compression:.4f} | {b.compression:.4f} | "
        f"{a.log_loss:.4f} | {b.log_loss:.4f} | {a.n_selected:.1f} | {b.n_selected:.1f} | "
        f"{b.cpu_seconds / a.cpu_seconds:.1f} |"
    )


def _means(parts: list[FoldMeans]) -> FoldMeans:
    return FoldMeans(
        *np.mean(
            [(p.auc, p.compression, p.log_loss, p.n_selected, p.cpu_seconds) for p in parts], axis=0
        )
    )


def sets(names: list[str], trees: int = 0, n_splits: int = 10) -> None:
    """Ten folds of every set: ours against Khiops, the same number of trees."""
    print(f"{n_splits} folds, trees={trees}: ours, Khiops")
    print(
        "| set | AUC | AUC K | compr. | compr. K | log loss | log loss K | vars | vars K | CPU x |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    mine, theirs = [], []
    _compile()
    for name in names:
        if name == "make_classification":
            X, y = _made(10_000, 20)
            X = pd.DataFrame(X)
        else:
            data = load(TABLE_1[name])
            X, y = data.X, data.y
        a = fold_means(
            X,
            y,
            ours(trees=trees),
            lambda m: len(m.selected_features_),
            n_splits=n_splits,
            cpu_clock=cpu_seconds,
            seed=SEED,
        )
        b = fold_means(
            X,
            y,
            lambda: Khiops(trees),
            lambda m: m.n_selected,
            n_splits=n_splits,
            cpu_clock=cpu_seconds,
            seed=SEED,
        )
        mine.append(a)
        theirs.append(b)
        print(_row(name, a, b), flush=True)
    print(_row("mean", _means(mine), _means(theirs)))


def memory(n: int, width: int) -> None:
    """Peak resident memory that a fit adds to the data and the imports (Linux)."""
    X, y = _made(n, width)
    _compile()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # forget the peak that making the data left behind
    before = _resident("VmRSS")
    ours()().fit(X, y)
    extra = _resident("VmHWM") - before
    print(f"{n} x {width}: peak beyond the data is {extra / X.nbytes:.2f} times the data")


def _resident(what: str) -> float:
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(what))
    return 1024.0 * float(line.split()[1])


def _made(n: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    return make_classification(
        n,
        width,
        n_informative=10,
        n_redundant=5,
        flip_y=0.05,
        class_sep=0.8,
        random_state=0,
    )


def _compile() -> None:
    draw = np.random.default_rng(0)
    X, y = draw.normal(size=(3000, 3)), np.arange(3000)
    for n_classes in (2, 3):
        signal = X + (y % n_classes)[:, None]
        ours()().fit(signal, y % n_classes)


def times(khiops_cells: float = 2.1e6) -> None:
    """Fit on Adult and on growing tables; Khiops up to a number of cells; one-row predictions."""
    _compile()
    print("| data | ours s | Khiops s | ratio | log loss | log loss K | vars | vars K |")
    print("|---|---|---|---|---|---|---|---|")
    adult = load("adult")
    cut = 32_561
    _time_row("adult", adult.X[:cut], adult.y[:cut], adult.X[cut:], adult.y[cut:], khiops_cells)
    for n, width in ((10_000, 20), (100_000, 20), (100_000, 100), (1_000_000, 20)):
        X, y = _made(n + 10_000, width)
        _time_row(f"{n} x {width}", X[:n], y[:n], X[n:], y[n:], khiops_cells)
    one_row(adult)


def _time_row(name: str, X: Any, y: Any, X_test: Any, y_test: Any, khiops_cells: float) -> None:
    begin = cpu_seconds()
    model = ours()().fit(X, y)
    own = cpu_seconds() - begin
    classes, counts = np.unique(y, return_counts=True)
    prior = counts / counts.sum()
    loss = log_losses(y_test, model.predict_proba(X_test), classes, prior)[0]
    theirs = [""] * 4  # not run
    if X.shape[0] * X.shape[1] <= khiops_cells:
        begin = cpu_seconds()
        khiops = Khiops().fit(X, y)
        other = cpu_seconds() - begin
        their_loss = log_losses(y_test, khiops.predict_proba(X_test), classes, prior)[0]
        numbers = (f"{other:.2f}", f"{other / own:.1f}", f"{their_loss:.4f}")
        theirs = [*numbers, str(khiops.n_selected)]
    cells = [name, f"{own:.2f}", *theirs[:2], f"{loss:.4f}", theirs[2]]
    cells += [str(len(model.selected_features_)), theirs[3]]
    print("| " + " | ".join(cells) + " |", flush=True)


def one_row(adult: Any, repeats: int = 200) -> None:
    model = ours()().fit(adult.X[:32_561], adult.y[:32_561])
    row = adult.X[:1]
    numbers = adult.X.select_dtypes("number").to_numpy()
    numeric = ours()().fit(numbers, adult.y)
    cells = {name: [row[name].iloc[0]] for name in row}
    import polars as pl

    for label, fitted, one in (
        ("pandas row", model, row),
        ("polars row", model, pl.DataFrame(cells)),
        ("dict row", model, cells),
        ("array row", numeric, numbers[:1]),
    ):
        begin = time.process_time()
        for _ in range(repeats):
            fitted.predict_proba(one)
        print(f"{label}: {(time.process_time() - begin) / repeats * 1e3:.2f} ms")


def searches(names: list[str], batch_size: int = 1000) -> None:
    """Excess over the certified minimum of criterion (4) in per cent, power 1, penalty 0.1."""
    print(f"batch_size={batch_size}, level 5; batches of one size, then growing tenfold\n")
    heads = ("DGML", "DGML-MS", "DGML-VNS", "DGML-MS, growing", "DGML-VNS, growing")
    print("| set | minimum | " + " | ".join(heads) + " |\n" + "|---" * 7 + "|")
    found = []
    for name in names:
        one, growing = (
            search_gaps(name, batch_size=batch_size, batch_growth=own) for own in (1.0, 10.0)
        )
        gaps = [one.dgml, one.multi_start, one.neighbourhoods]
        found.append([100 * own for own in (*gaps, growing.multi_start, growing.neighbourhoods)])
        cells = " | ".join(f"{own:.4f}" for own in found[-1])
        print(f"| {name} | {one.minimum:.2f} | {cells} |", flush=True)
    within = (np.array(found) <= 0.1).sum(axis=0)
    counts = "; ".join(f"{head} on {k}" for head, k in zip(heads, within, strict=True))
    print(f"\nWithin 0.1 %, of {len(names)} sets: {counts}.")


def main() -> None:
    what = sys.argv[1] if len(sys.argv) > 1 else "times"
    if what == "sets":
        sets(sys.argv[2:] or BY_SIZE)
    elif what == "trees":
        sets(sys.argv[2:] or [*WITH_TREES, "make_classification"], trees=10, n_splits=3)
    elif what == "searches":
        searches(sys.argv[2:] or BY_SIZE)
    elif what == "memory":
        memory(int(sys.argv[2]), int(sys.argv[3]))
    else:
        times(float(sys.argv[2]) if len(sys.argv) > 2 else 2.1e6)


if __name__ == "__main__":
    main()
