"""Cards of whole points beside FasterRisk: held-out loss, AUC, the certified gap and CPU time.

    python -m benchmarks.bench_scorecard                         # measures, then the tables
    python -m benchmarks.bench_scorecard OUT.jsonl [set or who ...]  # the same; what is there stays

Points within 5, at most 5 and 8 items. "same" is on the same 0/1 items (even cuts, frequent
categories, at most 60 of them, made from the training rows of the fold) for both; "own" reads the
table and makes its own cuts by MODL, "more" adds even ones. Folds are searched without the
proof, which rarely changes the card; the proof runs once on all rows. Time limits are CPU seconds
here: the machine may be shared.
"""

from __future__ import annotations

import inspect
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold

from laconic import OptimalScorecardClassifier
from laconic.core.progress import Deadline
from laconic.data.datasets import load

CHOSE = ("heart", "breast", "german", "pima", "hepatitis", "sonar")
"""Sets of which other folds chose the number of prior rows."""

SETS = (
    *CHOSE, "crx", "horsecolic", "ionosphere", "titanic", "tictactoe", "sickeuthyroid",
    "mushroom", "spam", "adult",
)  # fmt: skip
SIZES = (5, 8)
FOLD_SECONDS, FOLD_GAP = 6.0, 0.9
GAP_SECONDS, AIM = 60.0, 0.05
CUTS: dict[str, dict[str, Any]] = {
    "same": {"cutting": "quantile", "max_cuts": 1},
    "own": {"cutting": "modl"},
    "more": {"cutting": "both"},
}
WHO = ("fasterrisk", *CUTS)


def binary_items(X: Any, y: Any, most: int = 60) -> OptimalScorecardClassifier:
    """A fitted reader of 0/1 items: its card is not used."""
    reader = OptimalScorecardClassifier(
        1, (-5, 5), cutting="quantile", max_cuts=4, max_candidates=most, time_limit=0, pool=0
    )
    return reader.fit(X, y)


def read(reader: OptimalScorecardClassifier, X: Any) -> Any:
    return reader._read_items(reader._read_rows(X)).T.astype(float)


def ours(k: int, seconds: float, **more: Any) -> OptimalScorecardClassifier:
    more = {"gap": FOLD_GAP, **more}
    return OptimalScorecardClassifier(k, (-5, 5), time_limit=seconds, pool=0.0, **more)


def fasterrisk() -> tuple[Any, Any]:
    """FasterRisk's search and its model, with ``tobytes`` for what numpy no longer has."""
    import fasterrisk.rounding as rounding

    source = inspect.getsource(rounding).replace(".tostring()", ".tobytes()")
    exec(compile(source, rounding.__file__, "exec"), rounding.__dict__)
    from fasterrisk.fasterrisk import RiskScoreClassifier, RiskScoreOptimizer

    return RiskScoreOptimizer, RiskScoreClassifier


def of_fasterrisk(train: Any, y: Any, test: Any, k: int) -> tuple[Any, float]:
    RiskScoreOptimizer, RiskScoreClassifier = fasterrisk()
    start = time.process_time()
    with_one = np.column_stack([np.ones(len(train)), train])
    search = RiskScoreOptimizer(X=with_one, y=np.where(y, 1.0, -1.0), k=k, lb=-5, ub=5)
    search.optimize()
    multiplier, intercept, points = search.get_models(model_index=0)
    model = RiskScoreClassifier(multiplier, intercept, points)
    spent = time.process_time() - start
    return model.predict_prob(np.column_stack([np.ones(len(test)), test])), spent


def rows_of(name: str) -> tuple[Any, Any]:
    data = load(name)
    y = data.y
    return data.X, y == np.unique(y)[1]


def take(X: Any, rows: Any) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def measured(p: Any, y: Any) -> dict[str, float]:
    p = np.clip(p, 1e-15, 1 - 1e-15)
    return {"loss": float(log_loss(y, p)), "auc": float(roc_auc_score(y, p))}


def fold_of_set(name: str, k: int, fold: int, who: str) -> dict[str, Any]:
    """Held-out loss and AUC of one searcher on one of the five folds."""
    X, y = rows_of(name)
    splitter = StratifiedKFold(5, shuffle=True, random_state=0)
    train, test = list(splitter.split(np.zeros((len(y), 1)), y))[fold]
    X, X_test = take(X, train), take(X, test)
    if who in ("fasterrisk", "same"):
        reader = binary_items(X, y[train])
        X, X_test = read(reader, X), read(reader, X_test)
    if who == "fasterrisk":
        p, spent = of_fasterrisk(X, y[train], X_test, k)
        return {"cpu": spent, **measured(p, y[test])}
    start = time.process_time()
    model = ours(k, FOLD_SECONDS, **CUTS[who]).fit(X, y[train])
    spent = time.process_time() - start
    said = measured(model.predict_proba(X_test)[:, 1], y[test])
    return {"cpu": spent, "gap": model.optimality_gap_, **said}


def gap_of_set(name: str, k: int) -> dict[str, Any]:
    """The proof on all rows of a set."""
    X, y = rows_of(name)
    start, clock = time.process_time(), time.monotonic()
    model = ours(k, GAP_SECONDS, gap=AIM).fit(X, y)
    return {
        "gap": model.optimality_gap_, "objective": model.objective_,
        "bound": model.lower_bound_, "items": model.n_offered_, "patterns": model.n_patterns_,
        "rows": len(y), "cpu": time.process_time() - start, "seconds": time.monotonic() - clock,
    }  # fmt: skip


def run(out: Path, sets: list[str], whos: Sequence[str] = (*WHO, "gap")) -> None:
    """Measures what ``out`` does not hold yet, a line for each searcher and fold."""
    warnings.simplefilter("ignore")
    Deadline.__init__.__defaults__ = (time.process_time,)  # type: ignore[misc]
    from laconic.scorecard.solver import _compiled

    _compiled()
    done = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    known = {(d["set"], d["k"], d["who"], d["fold"]) for d in done}
    for name, k, who in product(sets, SIZES, whos):
        for fold in range(1 if who == "gap" else 5):
            if (name, k, who, fold) in known:
                continue
            found = gap_of_set(name, k) if who == "gap" else fold_of_set(name, k, fold, who)
            line = {"set": name, "k": k, "who": who, "fold": fold, **found}
            with out.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(name, k, who, fold, file=sys.stderr, flush=True)


def table(path: Path) -> None:
    """Means over folds, set by set and over all, as Markdown; then the gaps."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    heads = [f"{x} {w}" for x in ("loss", "AUC", "CPU s") for w in WHO]
    print("| set | k | " + " | ".join(heads) + " |")
    print("|---|---|" + "---|" * 12)
    found: dict[Any, dict[str, list[float]]] = {}
    for d in lines:
        if d["who"] != "gap":
            for x in ("loss", "auc", "cpu"):
                found.setdefault((d["set"], d["k"]), {}).setdefault(x + d["who"], []).append(d[x])
    means = {key: {x: float(np.mean(v)) for x, v in own.items()} for key, own in found.items()}
    everything = dict(means)
    for k, (said, left) in product(
        SIZES, (("mean", ()), ("mean of sets that chose nothing", CHOSE))
    ):
        own = [m for (name, size), m in everything.items() if size == k and name not in left]
        if own:
            means[said, k] = {x: float(np.mean([m[x] for m in own])) for x in own[0]}
    for k in SIZES:
        for (name, size), m in means.items():
            if size == k:
                cells = [f"{m[x + w]:.4f}" for x in ("loss", "auc") for w in WHO]
                cells += [f"{m['cpu' + w]:.1f}" for w in WHO]
                print(f"| {name} | {k} | " + " | ".join(cells) + " |")
    for k, x, own in product(SIZES, ("loss", "auc"), ("same", "own")):
        sign = 1 if x == "loss" else -1
        won = [name for (name, size), m in everything.items()
               if size == k and sign * m[x + "fasterrisk"] < sign * m[x + own]]  # fmt: skip
        print(
            f"\nFasterRisk has the better {x} than {own}, k = {k}: {', '.join(won) or 'nowhere'}."
        )
    gaps = {(d["set"], d["k"]): d for d in lines if d["who"] == "gap"}
    for k in SIZES:
        proved = [d["gap"] <= AIM + 1e-9 for (_, size), d in gaps.items() if size == k]
        print(f"\nA gap of {AIM:.0%} with k = {k}: {sum(proved)} of {len(proved)} sets.")
    print("\n| set | rows | items | patterns | k | objective | gap | CPU s |")
    print("|---|---|---|---|---|---|---|---|")
    for (name, k), d in gaps.items():
        print(
            f"| {name} | {d['rows']:,} | {d['items']} | {d['patterns']:,} | {k} | "
            f"{d['objective']:.4f} | {d['gap']:.1%} | {d['cpu']:.0f} |"
        )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder) / "cards.jsonl", list(SETS))
        table(Path(folder) / "cards.jsonl")


if __name__ == "__main__":
    if not sys.argv[1:]:
        main()
    else:
        whos = [a for a in sys.argv[2:] if a in (*WHO, "gap")]
        sets = [a for a in sys.argv[2:] if a not in whos]
        run(Path(sys.argv[1]), sets or list(SETS), whos or (*WHO, "gap"))
        table(Path(sys.argv[1]))
