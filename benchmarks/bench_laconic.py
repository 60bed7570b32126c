"""The main job beside logistic regression, boosted trees and explainable boosting.

    python -m benchmarks laconic
    python benchmarks/bench_laconic.py [--no-ebm] [--seeds 2,3] [--stored FOLDER] [set ...]

Half of the rows train (two thirds of Adult), the others test; the rarer class is the positive one.
Three cost ratios: 1 to 1, 1 to 10, and inverse to the class shares. Costs of the test rows are
divided by those of the best constant decision. Beside the page stand its committee
(``readable=False``) and the additive model alone. Every peer gets the same decision layer. One
thread; CPU seconds. With ``--stored``, EBM's probabilities and CPU seconds are read from that
folder, or written there once fitted: it takes minutes where the others take seconds.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
from sklearn.compose import make_column_transformer  # noqa: E402
from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: E402
from sklearn.impute import SimpleImputer  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import StratifiedShuffleSplit  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import OneHotEncoder, StandardScaler  # noqa: E402

from laconic import LaconicClassifier, SparseAdditiveClassifier, expected_cost  # noqa: E402
from laconic.data.datasets import load  # noqa: E402

SETS = [
    "heart", "hepatitis", "sonar", "bupa", "ionosphere", "monks1", "monks2", "monks3",
    "horsecolic", "cylinder", "breast", "australian", "credit", "pima", "tictactoe", "german",
    "letterAB", "titanic", "hypothyroid", "sickeuthyroid", "spam", "mushroom", "covtype",
    "drebin215", "adult",
]  # fmt: skip
PEERS = ("additive", "logistic", "boosting", "ebm")
_MOST_LEVELS = 250


def read(name: str) -> tuple[Any, np.ndarray]:
    """Rows and 0/1 labels, 1 for the rarer class; covtype is 7 against 1, 20,000 rows."""
    data = load(name)
    X, y = data.X, np.asarray(data.y)
    if name == "covtype":
        kept = np.flatnonzero((y == 1) | (y == 7))
        kept = np.random.default_rng(0).choice(kept, 20_000, replace=False)
        X, y = X.iloc[kept].reset_index(drop=True), y[kept]
    classes, counts = np.unique(y, return_counts=True)
    return X, (y == classes[counts.argmin()]).astype(int)


def cost_ratios(y: np.ndarray) -> dict[str, dict[str, float]]:
    share = float(y.mean())
    return {
        "1:1": {"fp": 1.0, "fn": 1.0},
        "1:10": {"fp": 1.0, "fn": 10.0},
        "inverse": {"fp": share, "fn": 1.0 - share},
    }


def _texts(X: Any) -> list[str]:
    import pandas as pd

    return [c for c in X.columns if not pd.api.types.is_numeric_dtype(X[c])]


def peer(name: str, X: Any) -> tuple[Any, Any]:
    """The peer and the rows prepared as it wants them."""
    if name == "additive":
        return SparseAdditiveClassifier(random_state=0), X
    X, texts = X.copy(), _texts(X)
    if name == "boosting":
        for column in texts:
            cells = X[column].astype("category")
            top = cells.value_counts().index[:_MOST_LEVELS]
            X[column] = cells.where(cells.isin(top)).cat.remove_unused_categories()
        return HistGradientBoostingClassifier(random_state=0, categorical_features="from_dtype"), X
    for column in texts:
        X[column] = X[column].astype(object).where(X[column].notna(), "missing").astype(str)
    if name == "ebm":
        from interpret.glassbox import ExplainableBoostingClassifier

        return ExplainableBoostingClassifier(n_jobs=1, random_state=0), X
    numbers = make_pipeline(
        SimpleImputer(add_indicator=True, keep_empty_features=True), StandardScaler()
    )
    columns = make_column_transformer(
        (numbers, [c for c in X.columns if c not in texts]),
        (OneHotEncoder(handle_unknown="ignore"), texts),
    )
    return make_pipeline(columns, LogisticRegression(max_iter=2000)), X


def _said(
    other: str, X: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray, store: Path | None
) -> tuple[np.ndarray, float]:
    """Probabilities of the test rows and CPU seconds of the fit, from the store if it is there."""
    if store and store.exists():
        kept = np.load(store)
        return kept["proba"], float(kept["cpu"])
    model, prepared = peer(other, X)
    start = time.process_time()
    model.fit(prepared.iloc[train], y[train])
    seconds = time.process_time() - start
    proba = np.asarray(model.predict_proba(prepared.iloc[test]))
    if store:
        np.savez(store, proba=proba, cpu=seconds)
    return proba, seconds


def _fitted(X: Any, y: np.ndarray, costs: dict[str, float], **settings: Any) -> tuple[Any, float]:
    start = time.process_time()
    model = LaconicClassifier(costs, random_state=0, **settings).fit(X, y)
    return model, time.process_time() - start


def run(
    name: str,
    seed: int,
    peers: tuple[str, ...],
    stored: Path | None = None,
    only_stored: bool = False,
) -> list[dict[str, Any]]:
    """One set, one draw of the halves: a line for each cost ratio."""
    X, y = read(name)
    size = 0.5 if len(y) < 40_000 else 1 / 3
    (train, test), *_ = StratifiedShuffleSplit(1, test_size=size, random_state=seed).split(X, y)
    ratios = cost_ratios(y[train])
    rows = [{"set": name, "seed": seed, "ratio": ratio} for ratio in ratios]
    truth = y[test]
    for row, costs in zip(rows, ratios.values(), strict=True):
        constant = [expected_cost(truth, np.full(len(truth), k), costs) for k in (0, 1)]
        row["constant"] = min(constant)
        model, row["laconic cpu"] = _fitted(X.iloc[train], y[train], costs)
        paid = expected_cost(truth, model.predict(X.iloc[test]), costs)
        row["laconic"] = paid / row["constant"]
        row["said"] = model.reported_cost_.value / row["constant"]
        row["size"], row["chosen"] = model.size_, model.candidate_
        committee, _ = _fitted(X.iloc[train], y[train], costs, readable=False)
        paid = expected_cost(truth, committee.predict(X.iloc[test]), costs)
        row["committee"] = paid / row["constant"]
    for other in peers:
        store = stored / f"{name}-{seed}-{other}.npz" if stored and other == "ebm" else None
        if store and only_stored and not store.exists():
            continue
        proba, seconds = _said(other, X, y, train, test, store)
        for row, costs in zip(rows, ratios.values(), strict=True):
            decided = proba[:, 1] > costs["fp"] / (costs["fp"] + costs["fn"])
            row[other] = expected_cost(truth, decided.astype(int), costs) / row["constant"]
            row[f"{other} cpu"] = seconds
    return rows


def show(rows: list[dict[str, Any]], peers: tuple[str, ...]) -> None:
    """Every line, then means over sets and draws."""
    names = ("laconic", "committee", *peers)
    print(f"| set | costs | {' | '.join(names)} | chosen | size | cpu, ebm / laconic |")
    print("|---|---|" + "---|" * (len(names) + 3))
    for row in rows:
        costs = " | ".join(f"{row[name]:.3f}" if name in row else "-" for name in names)
        ratio = row["ebm cpu"] / row["laconic cpu"] if "ebm cpu" in row else float("nan")
        print(
            f"| {row['set']} | {row['ratio']} | {costs} | {row['chosen']} | {row['size']:.0f} "
            f"| {ratio:.1f} |"
        )
    _means(rows, names)
    beside = [row for row in rows if "ebm" in row]
    if len(beside) not in (0, len(rows)):
        print(f"the {len({row['set'] for row in beside})} sets with EBM")
        _means(beside, names)


def _means(rows: list[dict[str, Any]], names: tuple[str, ...]) -> None:
    """Means, with the standard error over lines of the difference from the page."""
    for ratio in [*dict.fromkeys(row["ratio"] for row in rows), "all"]:
        own = [row for row in rows if ratio in (row["ratio"], "all")]
        cells = []
        for name in names:
            gap = np.array([row.get(name, np.nan) - row["laconic"] for row in own])
            error = "" if name == "laconic" else f" ± {gap.std() / np.sqrt(len(gap)):.4f}"
            cells.append(f"{np.mean([row.get(name, np.nan) for row in own]):.4f}{error}")
        sizes = [row["size"] for row in own]
        entries = f"{np.median(sizes):.0f} (median), {np.max(sizes):.0f} (most)"
        cpu = sum(row["laconic cpu"] for row in own)
        faster = sum(row.get("ebm cpu", np.nan) for row in own) / cpu
        print(f"| **mean** | {ratio} | {' | '.join(cells)} | | {entries} | {faster:.1f} |")
    said = np.mean([row["said"] for row in rows]) / np.mean([row["laconic"] for row in rows])
    print(f"reported cost over that of the test rows: {said:.4f}; {cpu:.0f} CPU seconds")


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--no-ebm", action="store_true")
    parser.add_argument("--seeds", default="2")
    parser.add_argument("--stored", type=Path)
    parser.add_argument("--only-stored", action="store_true", help="no EBM fit, what is stored")
    given = parser.parse_args(words if words is not None else [])
    peers = PEERS[:-1] if given.no_ebm else PEERS
    rows = []
    for seed in map(int, given.seeds.split(",")):
        for name in given.sets or SETS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows += run(name, seed, peers, given.stored, given.only_stored)
            print(f"{name} done", flush=True)
    show(rows, peers)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
