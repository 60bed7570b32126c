"""The main job beside logistic regression, boosted trees and explainable boosting.

    python -m benchmarks laconic
    python benchmarks/bench_laconic.py [--peers additive,ebm] [--seeds 2,3] [--stored FOLDER]
        [--rows FOLDER] [set ...]

Half of the rows train (two thirds of Adult), the others test; the rarer class is the positive one.
Three cost ratios: 1 to 1, 1 to 10, and inverse to the class shares. Costs of the test rows are
divided by those of the best constant decision. Beside the page stand its committee
(``readable=False``) and the additive model alone. Every peer gets the same decision layer. One
thread; CPU seconds. With ``--stored``, EBM's probabilities and CPU seconds are read from that
folder, or written there once fitted: it takes minutes where the others take seconds. With
``--rows``, so are the lines of the table, and it can be made in pieces.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse  # noqa: E402
import json  # noqa: E402
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


def halves(name: str, seed: int) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """Rows, labels, places that train and places that test."""
    X, y = read(name)
    size = 0.5 if len(y) < 40_000 else 1 / 3
    (train, test), *_ = StratifiedShuffleSplit(1, test_size=size, random_state=seed).split(X, y)
    return X, y, train, test


def run_page(name: str, seed: int, committee: bool) -> list[dict[str, Any]]:
    """One set, one draw of the halves: a line for each cost ratio."""
    X, y, train, test = halves(name, seed)
    truth, rows = y[test], []
    for ratio, costs in cost_ratios(y[train]).items():
        row: dict[str, Any] = {"set": name, "seed": seed, "ratio": ratio}
        constant = min(expected_cost(truth, np.full(len(truth), k), costs) for k in (0, 1))
        model, row["laconic cpu"] = _fitted(X.iloc[train], y[train], costs)
        paid = expected_cost(truth, model.predict(X.iloc[test]), costs)
        row["laconic"] = paid / constant
        row["said"] = model.reported_cost_.value / constant
        row["size"], row["chosen"] = model.size_, model.candidate_
        if committee:
            whole, _ = _fitted(X.iloc[train], y[train], costs, readable=False)
            row["committee"] = expected_cost(truth, whole.predict(X.iloc[test]), costs) / constant
        rows.append(row)
    return rows


def add_peer(rows: list[dict[str, Any]], other: str, store: Path | None) -> None:
    """What a peer costs on the same halves, in the lines of one set and one draw."""
    X, y, train, test = halves(rows[0]["set"], rows[0]["seed"])
    proba, seconds = _said(other, X, y, train, test, store)
    truth = y[test]
    for row, costs in zip(rows, cost_ratios(y[train]).values(), strict=True):
        constant = min(expected_cost(truth, np.full(len(truth), k), costs) for k in (0, 1))
        decided = proba[:, 1] > costs["fp"] / (costs["fp"] + costs["fn"])
        row[other] = expected_cost(truth, decided.astype(int), costs) / constant
        row[f"{other} cpu"] = seconds


def run(name: str, seed: int, given: argparse.Namespace) -> list[dict[str, Any]]:
    """The page and its peers; those of ``--rows`` are read there, or written once they are run."""
    kept = given.rows / f"{name}-{seed}.json" if given.rows else None
    if kept and kept.exists():
        rows: list[dict[str, Any]] = json.loads(kept.read_text())
    else:
        rows = run_page(name, seed, given.committee)
    for other in given.peers.split(","):
        store = given.stored / f"{name}-{seed}-{other}.npz" if given.stored else None
        store = store if other == "ebm" else None
        known = other in rows[0] or (store and given.only_stored and not store.exists())
        if not known:
            add_peer(rows, other, store)
    if kept:
        kept.write_text(json.dumps(rows))
    return rows


def show(rows: list[dict[str, Any]], names: tuple[str, ...]) -> None:
    """A line for each set and cost ratio, over the draws, then means over the sets."""
    print(f"| set | costs | {' | '.join(names)} | entries | CPU, EBM / page |")
    print("|---|---|" + "---|" * (len(names) + 2))
    ratios = dict.fromkeys(row["ratio"] for row in rows)
    for name in dict.fromkeys(row["set"] for row in rows):
        for ratio in ratios:
            own = [row for row in rows if (row["set"], row["ratio"]) == (name, ratio)]
            costs = " | ".join(_over_draws([row[n] for row in own if n in row]) for n in names)
            sizes = ", ".join(f"{row['size']:.0f}" for row in own)
            print(f"| {name} | {ratio} | {costs} | {sizes} | {_faster(own)} |")
    for ratio in [*ratios, "all"]:
        _means(ratio, [row for row in rows if ratio in (row["ratio"], "all")], names)
    said = np.mean([row["said"] for row in rows]) / np.mean([row["laconic"] for row in rows])
    print(f"reported cost over that of the test rows: {said:.4f}")


def _over_draws(costs: list[float]) -> str:
    if not costs:
        return "-"
    error = f" ± {np.std(costs, ddof=1) / np.sqrt(len(costs)):.3f}" if len(costs) > 1 else ""
    return f"{np.mean(costs):.3f}{error}"


def _faster(rows: list[dict[str, Any]]) -> str:
    beside = [row for row in rows if "ebm cpu" in row]
    if not beside:
        return "-"
    sums = [sum(row[f"{who} cpu"] for row in beside) for who in ("ebm", "laconic")]
    return f"{sums[0] / sums[1]:.1f}"


def _means(ratio: str, rows: list[dict[str, Any]], names: tuple[str, ...]) -> None:
    """Means over sets, each counted once, with the standard error over the draws of that mean.

    Beside a peer, in brackets, its difference from the page and the standard error of that.
    """
    cells = []
    seeds = sorted({row["seed"] for row in rows})
    for name in names:
        own = [row for row in rows if name in row]
        by_seed = [_mean_of([row for row in own if row["seed"] == seed], name) for seed in seeds]
        gaps = [_mean_of([row for row in own if row["seed"] == s], name, "laconic") for s in seeds]
        text = f"{_mean_of(own, name):.4f} ± {_error(by_seed):.4f}"
        if name != "laconic":
            text += f" ({_mean_of(own, name, 'laconic'):+.4f} ± {_error(gaps):.4f})"
        cells.append(text)
    sizes = [row["size"] for row in rows]
    entries = f"{np.median(sizes):.0f} (median), {np.max(sizes):.0f} (most)"
    print(f"| **mean** | {ratio} | {' | '.join(cells)} | {entries} | {_faster(rows)} |")


def _mean_of(rows: list[dict[str, Any]], name: str, less: str | None = None) -> float:
    sets: dict[str, list[float]] = {}
    for row in rows:
        sets.setdefault(row["set"], []).append(row[name] - (row[less] if less else 0.0))
    return float(np.mean([np.mean(own) for own in sets.values()])) if sets else float("nan")


def _error(values: list[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--seeds", default="2")
    parser.add_argument("--stored", type=Path, help="probabilities of EBM, by set and seed")
    parser.add_argument("--only-stored", action="store_true", help="no EBM fit, what is stored")
    parser.add_argument("--no-committee", dest="committee", action="store_false")
    parser.add_argument("--rows", type=Path, help="lines of the table, by set and seed")
    given = parser.parse_args(words if words is not None else [])
    rows = []
    for seed in map(int, given.seeds.split(",")):
        for name in given.sets or SETS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows += run(name, seed, given)
            print(f"{name} done", flush=True)
    committee = ("committee",) if "committee" in rows[0] else ()
    show(rows, ("laconic", *committee, *given.peers.split(",")))


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
