"""The main job beside published results, on the very rows they were measured on.

``python -m benchmarks.bench_arena [SET ...]`` wants a folder ``arena`` beside the data sets of
``LACONIC_DATA``: tables, folds and published figures of TabArena (lite: train on folds 1 and 2,
test on fold 0). It prints 1 - AUC of the kept page, of the committee and of the additive model
alone, the size of the page, CPU seconds, and the published columns as they were published.
"""

from __future__ import annotations

import csv
import gzip
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from laconic import LaconicClassifier, SparseAdditiveClassifier
from laconic.data.datasets import data_folder

PUBLISHED = ("EBM (default)", "GBM (default)", "CAT (default)")


def arena() -> Path:
    return Path(os.environ.get("LACONIC_ARENA", Path(data_folder() or ".") / "arena"))


def published() -> dict[str, dict[str, float]]:
    """1 - AUC by set and method, on fold 0."""
    found: dict[str, dict[str, float]] = {}
    with (arena() / "published.csv").open() as file:
        for line in csv.DictReader(file):
            if line["source"] == "tabarena-lite" and line["metric"] == "1-auc":
                found.setdefault(line["set"], {})[line["method"]] = float(line["value"])
    return found


def table(name: str) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Rows with their declared categories as texts, whether positive, whether tested."""
    with (arena() / "INDEX.csv").open() as file:
        about = next(line for line in csv.DictReader(file) if line["name"] == name)
    categories = about["categorical_columns"].split()
    frame = pd.read_csv(arena() / f"{name}.csv.gz", dtype=dict.fromkeys(categories, str))
    with gzip.open(arena() / "folds" / f"{name}.csv.gz", "rt") as file:
        fold = np.array([line["tabarena"] for line in csv.DictReader(file)])
    positive = (frame.pop("target").astype(str) == about["positive"]).to_numpy()
    return frame, positive.astype(int), fold == "0"


def measured(name: str) -> dict[str, float]:
    X, y, test = table(name)
    found = {}
    for label, model in (
        ("page", LaconicClassifier(random_state=0)),
        ("committee", LaconicClassifier(random_state=0, readable=False)),
        ("additive", SparseAdditiveClassifier(random_state=0)),
    ):
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X[~test], y[~test])
        found[f"{label} CPU"] = time.process_time() - start
        found[label] = 1.0 - roc_auc_score(y[test], model.predict_proba(X[test])[:, 1])
        if label == "page":
            found["size"] = float(model.size_)
    return found


def main() -> None:
    known = published()
    names = sys.argv[1:] or sorted(known)
    heads = ["page", "committee", "additive", *PUBLISHED, "size", "page CPU", "committee CPU"]
    print("| set | " + " | ".join(heads) + " |\n|" + "---|" * (len(heads) + 1))
    rows = []
    for name in names:
        row = measured(name) | {m: known[name].get(m, np.nan) for m in PUBLISHED}
        rows.append([row[head] for head in heads])
        print(f"| {name} | " + " | ".join(_shown(v) for v in rows[-1]) + " |", flush=True)
    print("| mean | " + " | ".join(_shown(v) for v in np.nanmean(rows, axis=0)) + " |")


def _shown(value: float) -> str:
    return f"{value:.4f}" if value < 1 else f"{value:.1f}"


if __name__ == "__main__":
    main()
