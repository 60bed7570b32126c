"""ModlEncoder against its peers: CPU seconds of the preparation, growth, memory, test log loss.

Run with ``python benchmarks/bench_modl.py [--full]``; needs the ``bench`` extra. Everything is
measured in one run on one machine; a peer's CPU time includes the processes it starts. The
compiled code is loaded before the first measure: ``cold`` rows show a fresh process.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from laconic import ModlEncoder


def cpu_seconds() -> float:
    """User and system seconds of this process and of the children it has waited for."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def measure(run) -> tuple[float, object]:
    start = cpu_seconds()
    result = run()
    return cpu_seconds() - start, result


def synthetic(n: int, k: int, n_classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    informative = min(10, k - 1)
    return make_classification(
        n,
        k,
        n_informative=informative,
        n_redundant=min(5, k - informative),
        n_classes=n_classes,
        flip_y=0.05,
        class_sep=0.8,
        random_state=0,
    )


def khiops_encoder(X: pd.DataFrame, y: np.ndarray) -> float:
    """CPU seconds of the peer's preparation (its encoder: no classifier, no trees, no pairs)."""
    os.environ["PATH"] = str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"]
    from khiops.sklearn import KhiopsEncoder

    encoder = KhiopsEncoder(n_trees=0, n_pairs=0, n_features=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, _ = measure(lambda: encoder.fit(X, y))
    return seconds


def against_khiops(full: bool) -> None:
    print("\n## Preparation, CPU seconds, Khiops = KhiopsEncoder(n_trees=0)\n")
    print("| data | rows | columns | ours | Khiops | ours / Khiops |")
    print("|---|---|---|---|---|---|")
    for name, X, y in cases(full):
        ours, _ = measure(lambda X=X, y=y: ModlEncoder().fit(X, y))
        theirs = khiops_encoder(X, y)
        row = f"| {name} | {len(X)} | {X.shape[1]} | {ours:.2f} | {theirs:.2f} "
        print(row + f"| 1/{theirs / ours:.1f} |", flush=True)


def cases(full: bool):
    adult = read_adult()
    if adult is not None:
        yield "Adult", *adult
    sizes = [(10_000, 100), (100_000, 20)]
    if full:
        sizes += [(100_000, 100), (1_000_000, 20)]
    for n, k in sizes:
        X, y = synthetic(n, k)
        yield f"mc_{n}_{k}", pd.DataFrame(X, columns=[f"x{j}" for j in range(k)]), y.astype(str)


def read_adult() -> tuple[pd.DataFrame, np.ndarray] | None:
    from laconic.data import datasets

    if not datasets.available("adult"):
        return None
    found = datasets.load("adult", download=False)
    return pd.DataFrame(found.X), np.where(np.asarray(found.y) == ">50K", "more", "less")


def growth(full: bool) -> None:
    print("\n## Growth, CPU seconds of ModlEncoder().fit\n")
    print("| rows | columns | classes | seconds | seconds / (rows x columns x log2 rows) x 1e9 |")
    print("|---|---|---|---|---|")
    sizes = [(n, 20, 2) for n in (1_000, 10_000, 100_000)]
    sizes += [(10_000, k, 2) for k in (100, 1_000)]
    sizes += [(10_000, 20, j) for j in (4, 8, 16, 32)]
    if full:
        sizes.insert(3, (1_000_000, 20, 2))
    for n, k, j in sizes:
        X, y = synthetic(n, k, j)
        seconds, _ = measure(lambda X=X, y=y: ModlEncoder().fit(X, y))
        unit = seconds / (n * k * np.log2(n)) * 1e9
        print(f"| {n} | {k} | {j} | {seconds:.2f} | {unit:.1f} |", flush=True)
    rng = np.random.default_rng(0)
    for j in (2, 5):
        codes = (200_000 * rng.random(1_000_000) ** 1.5).astype(np.int64)
        y = rng.random(len(codes)) < 0.2 + 0.5 * (codes % 7 == 0)
        labels = y.astype(int) if j == 2 else y.astype(int) + rng.integers(0, j - 1, len(y))
        column = pd.DataFrame({"k": pd.Series(codes.astype(str), dtype="category")})
        seconds, encoder = measure(lambda c=column, t=labels: ModlEncoder().fit(c, t))
        n_values, parts = column["k"].nunique(), encoder.partitions_["k"].n_parts
        print(
            f"| 1000000 rows, one column of {n_values} categories, {parts} groups | 1 | {j} "
            f"| {seconds:.2f} | |",
            flush=True,
        )


def against_optbinning() -> None:
    from optbinning import OptimalBinning

    print("\n## One-variable models against OptimalBinning: 20 columns, half the rows for test\n")
    print(
        "| data | columns | ours s | optbinning s | ours / theirs | ours log loss | theirs "
        "| columns where ours is not worse (1e-4) |"
    )
    print("|---|---|---|---|---|---|---|---|")
    sets = [("mc_20000_20", *synthetic(20_000, 20))]
    X, y = load_breast_cancer(return_X_y=True)
    sets.append(("breast_cancer", X[:, :20], y))
    for name, X, y in sets:
        X, Z, y, t = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
        ours_s, encoder = measure(lambda X=X, y=y: ModlEncoder().fit(X, y))
        ours = [
            rate_loss(p.codes(X[:, j]), y, p.codes(Z[:, j]), t)
            for j, p in enumerate(encoder.partitions_.values())
        ]
        theirs, seconds = [], 0.0
        for j in range(X.shape[1]):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                own, binning = measure(lambda j=j, X=X, y=y: OptimalBinning().fit(X[:, j], y))
                seconds += own
                codes = [binning.transform(v, metric="indices") for v in (X[:, j], Z[:, j])]
            theirs.append(rate_loss(codes[0], y, codes[1], t))
        fine = sum(a <= b + 1e-4 for a, b in zip(ours, theirs, strict=True))
        print(
            f"| {name} | {len(ours)} | {ours_s:.2f} | {seconds:.2f} | 1/{seconds / ours_s:.0f} "
            f"| {np.mean(ours):.5f} | {np.mean(theirs):.5f} | {fine} of {len(ours)} |",
            flush=True,
        )


def rate_loss(codes, y, test_codes, test_y) -> float:
    """Test log loss of the class rate of the part, one row added to each class."""
    size = int(max(codes.max(), test_codes.max())) + 1
    table = np.ones((size, 2))
    np.add.at(table, (codes.astype(int), y), 1)
    rates = table / table.sum(axis=1, keepdims=True)
    return float(log_loss(test_y, rates[test_codes.astype(int)], labels=[0, 1]))


MEMORY = """
import resource, sys, threading
import numpy as np
from sklearn.datasets import make_classification
from laconic import ModlEncoder
n, k = int(sys.argv[1]), int(sys.argv[2])
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
rng = np.random.default_rng(0)
ModlEncoder().fit(rng.random((2000, 2)), rng.random(2000) < 0.5)
X = rng.random((n, k))
y = (X[:, 0] + rng.random(n) > 1).astype(int)
before = peak()
encoder = ModlEncoder().fit(X, y)
after = peak()
Z = encoder.transform(X)
print(f"{X.nbytes / 2**20:.0f} {before:.0f} {after:.0f} {peak():.0f}")
"""


def memory(full: bool) -> None:
    print("\n## Peak memory, MB\n")
    print("| rows | columns | data | before fit | after fit | after transform | fit adds / data |")
    print("|---|---|---|---|---|---|---|")
    for n, k in [(100_000, 100), (1_000_000, 20)] if full else [(100_000, 100)]:
        with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
            script.write(MEMORY)
            script.flush()
            out = subprocess.run(
                [sys.executable, script.name, str(n), str(k)],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        data, before, fit, both = map(float, out.split())
        print(
            f"| {n} | {k} | {data:.0f} | {before:.0f} | {fit:.0f} | {both:.0f} "
            f"| {(fit - before) / data:.2f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="also 100,000 x 100 and 1,000,000 x 20")
    parser.add_argument("--only", choices=["khiops", "growth", "optbinning", "memory"])
    asked = parser.parse_args()
    cold, _ = measure(lambda: ModlEncoder().fit(*synthetic(3_000, 5)))
    rng = np.random.default_rng(0)
    texts = rng.choice([f"v{k}" for k in range(50)], (500, 2)).astype(object)
    for n_classes in (2, 3):
        ModlEncoder().fit(texts, rng.integers(0, n_classes, 500))
    start = time.strftime("%Y-%m-%d")
    print(f"{start}; first fit of the process (compiled code from the cache): {cold:.2f} s of CPU")
    parts = {
        "khiops": lambda: against_khiops(asked.full),
        "growth": lambda: growth(asked.full),
        "optbinning": against_optbinning,
        "memory": lambda: memory(asked.full),
    }
    for name, run in parts.items():
        if asked.only in (None, name):
            run()


if __name__ == "__main__":
    main()
