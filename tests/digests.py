"""Proof that a change of the code changes no byte of what the library computes.

Every public estimator (the cases of ``estimator_cases``) is fitted on generated tables, in memory
and from a scan of files; the command line runs on a generated CSV. Written down are the SHA-256 of
what each model says of its rows and of its saved file, and the words of every refusal. Written
before a change and checked after it, on one machine with the same installed packages, equal
digests mean that the change moved code and no number.

    python tests/digests.py write FILE.json [--jobs 2] [--only NAME]
    python tests/digests.py check FILE.json [--jobs 2] [--only NAME]

Only public names of ``laconic`` are used, so that inner modules may move. The work is done in
fresh processes that see one thread for linear algebra before numpy is loaded.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

import laconic
from estimator_cases import cases_of, public_estimators

OUTPUTS = ("predict_proba", "decision_function", "predict", "transform")
TABLES = ("two", "two weighted", "three", "three weighted", "scan", "scan weighted", "scan three")
N_ROWS, BLOCK_ROWS = 300, 32  # ten blocks, two runs of them
VOLATILE = ["fit_seconds"]
"""Columns of ``LaconicClassifier.comparison_`` that tell the time."""
CLI = "cli"
COSTS = {"fp": 1.0, "fn": 5.0}
EXTRA: dict[tuple[str, str], Callable[[], BaseEstimator]] = {
    ("LaconicClassifier", "auto"): lambda: laconic.LaconicClassifier(
        COSTS, positive="yes", random_state=0
    ),
    ("DecisionClassifier", "bayes"): lambda: laconic.DecisionClassifier(
        laconic.WeightedNaiveBayes(random_state=0),
        costs=COSTS,
        prior=0.2,
        reject_cost=0.3,
        positive="yes",
    ),
}
"""Cases beside those of ``estimator_cases``, on the table of two classes and its scan."""


@dataclass(frozen=True)
class Task:
    """What one process does at a time: one fit, or the whole command line."""

    name: str
    case: str
    table: str

    def key(self, what: str) -> str:
        return f"{self.name} / {self.case} / {self.table} / {what}"


@dataclass(frozen=True)
class Rows:
    """A table, its target and its weights, of which some are zero."""

    X: pd.DataFrame
    y: np.ndarray
    weight: np.ndarray


def rows_for(case: BaseEstimator, n_classes: int, seed: int = 0) -> Rows:
    """A table of what the estimator declares it accepts, with a target that depends on it."""
    draw = np.random.default_rng(seed)
    score = draw.normal(size=N_ROWS)
    frame = pd.DataFrame(
        {
            "signal": np.round(score + draw.normal(size=N_ROWS), 3),
            "count of things": draw.integers(0, 6, N_ROWS).astype(float),
            "noise": np.round(draw.normal(size=N_ROWS), 3),
            "amount": np.round(np.exp(0.5 * score + draw.normal(size=N_ROWS)), 1),
        }
    )
    level = np.where(score > 0.5, "high", np.where(draw.random(N_ROWS) < 0.5, "low", "<script>"))
    town = draw.choice(["Arras", "Brest", "Caen", "Dijon", "Évry", "Foix", "Gap"], N_ROWS)
    moved = score + 0.7 * draw.normal(size=N_ROWS) + 0.5 * (town == "Caen")
    gone = draw.random((3, N_ROWS)) < 0.1
    tags = get_tags(case).input_tags
    if tags.categorical:
        frame["level"], frame["town"] = level.astype(object), town.astype(object)
        frame["flag"] = score + draw.normal(size=N_ROWS) > 0
    if tags.allow_nan:
        frame.loc[gone[0], "noise"] = np.nan
        frame.loc[gone[1], "amount"] = np.nan
        if tags.categorical:
            frame.loc[gone[2], "level"] = None
    weight = draw.integers(0, 4, N_ROWS).astype(float)
    return Rows(frame, target_for(case, moved, n_classes), weight)


def target_for(case: BaseEstimator, moved: np.ndarray, n_classes: int) -> np.ndarray:
    """Class names; what regression and ranking learn are numbers."""
    if is_regressor(case):
        return np.round(moved, 3)
    codes = np.digitize(moved, [0.4] if n_classes == 2 else [-0.3, 0.6])
    if is_classifier(case) or get_tags(case).transformer_tags:
        return np.array(["no", "yes", "perhaps"])[codes]
    return codes.astype(float)


def model_of(name: str, case: str) -> BaseEstimator:
    """The case, with a seed wherever it has none."""
    made = EXTRA[name, case]() if (name, case) in EXTRA else cases_of(name)[int(case)]
    for parameter, value in made.get_params().items():
        if value is None and parameter.split("__")[-1] == "random_state":
            made.set_params(**{parameter: 0})
    return made


def tasks_of(only: str | None) -> list[Task]:
    """All tasks in a fixed order, the long ones first."""
    found = [Task(CLI, "-", "memory"), Task(CLI, "-", "scan")]
    found += [Task(*extra, table) for extra in EXTRA for table in ("two", "scan")]
    for name in sorted(public_estimators(), key=lambda name: name != "LaconicClassifier"):
        for number, case in enumerate(cases_of(name)):
            weighted = has_fit_parameter(case, "sample_weight")
            tables = [table for table in TABLES if weighted or "weighted" not in table]
            found += [Task(name, str(number), table) for table in tables]
    chosen = [task for task in found if only in (None, task.name)]
    if not chosen:
        raise SystemExit(f"--only {only}: the names are {CLI}, {', '.join(public_estimators())}")
    return chosen


def run(task: Task) -> dict[str, str]:
    """The digests of one task by their keys."""
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        if task.name == CLI:
            found = dict(cli_digests(folder, task.table))
        else:
            found = dict(model_digests(folder, task))
        return {task.key(what): text.replace(name, "FOLDER") for what, text in found.items()}


def model_digests(folder: Path, task: Task) -> Iterator[tuple[str, str]]:
    """Fit, and take down what the model says and what it is saved as."""
    model = clone(model_of(task.name, task.case))
    rows = rows_for(model, 3 if "three" in task.table else 2)
    weighted, scanned = "weighted" in task.table, "scan" in task.table
    source = scan_of(rows, folder, weighted) if scanned else None
    try:
        if source is not None:
            model.fit(source)
        else:
            model.fit(rows.X, rows.y, **({"sample_weight": rows.weight} if weighted else {}))
    except Exception as error:
        refused = source is not None and isinstance(error, ValueError | TypeError)
        yield "fit", ("refused: " if refused else "") + words_of(error)
        return
    for name in OUTPUTS:
        if hasattr(model, name):
            yield name, attempt(lambda name=name: getattr(model, name)(rows.X))
            if source is not None:
                yield f"{name} by blocks", attempt(lambda name=name: blocks(model, name, source))
    if hasattr(model, "comparison_"):
        told = model.comparison_.drop(columns=VOLATILE).to_csv(index=False)
        yield "comparison", digest(told.encode())
    yield "saved", saved(model, folder / "model.json")


def scan_of(rows: Rows, folder: Path, weighted: bool) -> Any:
    """The rows in three Parquet files, with row groups that fit no block."""
    frame = pl.from_pandas(rows.X).with_columns(label=pl.Series(rows.y), w=pl.Series(rows.weight))
    for k, (start, stop) in enumerate(pairwise([0, 85, 205, N_ROWS])):
        frame[start:stop].write_parquet(folder / f"part-{k}.parquet", row_group_size=35 + 6 * k)
    return laconic.scan(
        folder,
        "label",
        weight="w" if weighted else None,
        features=list(rows.X.columns),
        block_rows=BLOCK_ROWS,
    )


def blocks(model: BaseEstimator, name: str, source: Any) -> Any:
    """What the model says of a scan, block after block."""
    return np.concatenate([np.asarray(part) for part in getattr(model, name)(source)])


def attempt(said: Callable[[], Any]) -> str:
    try:
        return array_digest(said())
    except Exception as error:
        return words_of(error)


def saved(model: BaseEstimator, path: Path) -> str:
    try:
        laconic.save(model, path)
    except Exception as error:
        return f"unsaveable: {words_of(error)}"
    return digest(path.read_bytes())


def words_of(error: Exception) -> str:
    """Type and message of an error, without addresses in memory."""
    return re.sub(r"0x[0-9a-f]{6,}", "0x", f"{type(error).__name__}: {error}")


def array_digest(values: Any) -> str:
    """Of the kind, the shape and the raw bytes; objects by what they print."""
    array = np.asarray(values.toarray() if hasattr(values, "toarray") else values)
    head = f"{array.dtype.str} {array.shape} "
    if array.dtype.kind == "O":
        return digest((head + repr(array.tolist())).encode())
    return digest(head.encode() + array.tobytes())


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def cli_digests(folder: Path, way: str) -> Iterator[tuple[str, str]]:
    """Each command as a user types it; a failure is taken down in its own words."""
    rows = rows_for(laconic.WeightedNaiveBayes(), 2)
    data, model = folder / "rows.csv", folder / "out" / "model.json"
    X = rows.X.drop(columns="flag") if way == "scan" else rows.X  # read back as text
    X.assign(label=rows.y).to_csv(data, index=False)
    families = ["--model", "votes", "--scan"] if way == "scan" else ["--model", "logistic"]
    families += ["--model", "bayes", "--model", "additive"]
    asked = ["--target=label", "--positive=yes", "--cost=fn=5", *families]
    told = typed("fit", data, *asked, "--out", folder / "out")
    yield "model.json", digest(model.read_bytes()) if model.exists() else told
    if not model.exists():
        return
    key = "--key=count of things"
    yield "predict", typed("predict", model, data, key, made=folder / "scored.csv")
    yield "explain", typed("explain", model)
    yield "explain rows", typed("explain", model, data, key, made=folder / "why.csv")
    sql = ["export", "sql", model, "--table=shop.rows", "--reasons=2"]
    yield "export sql", typed(*sql, made=folder / "ansi.sql")
    if way == "scan":
        return
    yield "export sql tsql", typed(*sql, "--dialect=tsql", made=folder / "tsql.sql")
    card = ["export", "scorecard", model, "--rows", data, "--target=label"]
    yield "export scorecard", typed(*card, made=folder / "scorecard.json")
    yield "export card", typed("export", "card", model, made=folder / "card.md")
    for kind in ("html", "md", "json"):
        report = ["report", model, data, "--target=label"]
        yield f"report {kind}", typed(*report, made=folder / f"report.{kind}")


def typed(*words: object, made: Path | None = None) -> str:
    """Digest of the file that a command makes, or else of what it prints; or its complaint."""
    command = [Path(sys.executable).parent / "laconic", *words, *(["-o", made] if made else [])]
    done = subprocess.run([str(word) for word in command], capture_output=True, check=False)
    if done.returncode:
        return f"exit {done.returncode}: {done.stderr.decode().strip()}"
    return digest(made.read_bytes() if made else done.stdout)


def compute(only: str | None, jobs: int) -> dict[str, str]:
    """All digests, the same whoever does which task."""
    tasks = tasks_of(only)
    found: dict[str, str] = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        for done in pool.map(run, tasks):
            found.update(done)
    return found


def differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """One line for each key whose text is not the same."""
    lines = []
    for key in sorted(before.keys() | after.keys()):
        one, other = before.get(key, "absent"), after.get(key, "absent")
        if one != other:
            lines.append(f"{key}: {_short(one)} -> {_short(other)}")
    return lines


def _short(text: str) -> str:
    return text[:12] if re.fullmatch("[0-9a-f]{64}", text) else text


def read(path: Path, only: str | None) -> dict[str, str]:
    """Digests that were written, or those of one name among them."""
    kept = json.loads(path.read_text(encoding="utf-8"))
    return {key: text for key, text in kept.items() if only is None or key.startswith(f"{only} / ")}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("command", choices=["write", "check"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", metavar="NAME", help=f"one estimator, or {CLI}")
    given = parser.parse_args()
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ[f"{library}_NUM_THREADS"] = "1"  # before the processes start that load numpy
    before = read(given.file, given.only) if given.command == "check" else None
    start = time.perf_counter()
    after = compute(given.only, given.jobs)
    print(f"{len(after)} digests in {time.perf_counter() - start:.0f} s")
    if before is None:
        text = json.dumps(after, indent=1, sort_keys=True, ensure_ascii=False)
        given.file.write_text(text + "\n", encoding="utf-8")
        return 0
    lines = differences(before, after)
    print(*lines, f"{len(lines)} differences", sep="\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
