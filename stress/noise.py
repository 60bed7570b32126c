"""Tables of pure noise through the main job: how often does the report claim what is not there?

    python -m stress.noise                               # 200 tables, a line for each kind
    python -m stress.noise 40                            # fewer
    python -m stress.noise --resume stress/results.json  # goes on where it was stopped

Columns know nothing of the target, so no model can cost less than the best rule without one. Five
kinds of table: as they come, every row three times, visits of patients with one outcome for each
patient, identifiers of every sort, and so few positives that the held-out rows show zero errors.
The verdict "better than the best rule" may come in at most 5 % of them. All families compete that
`laconic fit` compares.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from laconic.data.reading.asked import Asked
from laconic.data.tables.text import TextFormat
from laconic.job.rows import read_rows
from laconic.job.table import JobOptions, run_job
from laconic.reporting.sentences import claims_better
from stress.run import Part, Record, run

Columns = dict[str, Any]


def columns(draw: np.random.Generator, n: int) -> Columns:
    """What people keep: amounts with a comma, dates, shares, codes, categories, gaps."""
    days = np.datetime64("2023-01-01") + draw.integers(0, 700, n)
    found: Columns = {
        "amount": [f"{x:.2f} €".replace(".", ",") for x in np.exp(draw.normal(4, 1, n))],
        "age": draw.integers(18, 90, n).astype(str),
        "seen on": days.astype(str),
        "branch": draw.choice(["north", "south", "east"], n),
        "score": [f"{x:.3f}" for x in draw.normal(size=n)],
    }
    found["score"] = np.where(draw.random(n) < 0.05, "", found["score"])
    return found


def labels(draw: np.random.Generator, n: int, share: float) -> np.ndarray:
    return np.where(draw.random(n) < share, "1", "0")


def plain(draw: np.random.Generator, n: int) -> Columns:
    return columns(draw, n) | {"late": labels(draw, n, draw.uniform(0.05, 0.5))}


def copies(draw: np.random.Generator, n: int) -> Columns:
    few = plain(draw, n // 3)
    return {name: np.repeat(cells, 3) for name, cells in few.items()}


def patients(draw: np.random.Generator, n: int) -> Columns:
    """Five visits each, alike but not equal, with one outcome for the patient."""
    few = n // 5
    person = np.repeat(np.arange(few), 5)
    build = draw.normal(size=(few, 3))[person] + 0.1 * draw.normal(size=(few * 5, 3))
    found: Columns = {f"measure {j}": [f"{x:.3f}" for x in build[:, j]] for j in range(3)}
    found["patient id"] = [f"P{1000 + own}" for own in person]
    return found | {"late": labels(draw, few, draw.uniform(0.1, 0.5))[person]}


def identifiers(draw: np.random.Generator, n: int) -> Columns:
    ids: Columns = {
        "row": np.arange(1, n + 1).astype(str),
        "account": [f"AC-{x:06d}" for x in draw.choice(10**6, n, replace=False)],
        "postcode": draw.choice([f"{x:05d}" for x in draw.integers(0, 10**5, n // 4)], n),
        "shop id": draw.choice([f"S{x}" for x in range(60)], n),
    }
    return ids | plain(draw, n)


def few_positives(draw: np.random.Generator, n: int) -> Columns:
    label = np.full(n, "0")
    label[draw.choice(n, draw.integers(4, 13), replace=False)] = "1"
    return columns(draw, n) | {"late": label}


KINDS: tuple[Callable[[np.random.Generator, int], Columns], ...] = (
    plain, copies, patients, identifiers, few_positives,
)  # fmt: skip


def claims(
    number: int,
    folder: Path,
    n_rows: int = 450,
    make: Callable[[np.random.Generator, int], Columns] | None = None,
    families: tuple[str, ...] = ("auto",),
) -> bool:
    """Whether the report of table ``number`` says "better than the best rule"."""
    draw = np.random.default_rng(number)
    table = (make or KINDS[number % len(KINDS)])(draw, n_rows)
    path = folder / "noise.csv"
    lines = [
        ";".join(table),
        *(";".join(map(str, row)) for row in zip(*table.values(), strict=True)),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    options = JobOptions(
        costs={"fp": 1.0, "fn": float(draw.choice([1, 3, 10, 30]))},
        candidates=list(families),
        seed=number,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = read_rows(path, "late", TextFormat(), Asked())
        done = run_job(given, options, out=folder / "out", title="noise")
    return claims_better(done.summary)


CLAIMED = "called better than the best rule"
MOST_CLAIMS = 0.05


def outcome(number: int) -> str:
    """What the page of one table says, after the kind of the table."""
    with tempfile.TemporaryDirectory() as folder:
        said = CLAIMED if claims(number, Path(folder)) else "no claim"
    return f"{KINDS[number % len(KINDS)].__name__}: {said}"


PART = Part("noise", "tables of pure noise", "no claim that is not so", outcome, 200, 5)


def main() -> int:
    asked = argparse.ArgumentParser("python -m stress.noise", description=__doc__)
    asked.add_argument("tables", type=int, nargs="?", default=PART.size, help="so many in all")
    asked.add_argument("--resume", type=Path, help="file of the run to go on with")
    said = asked.parse_args()
    record = Record(said.resume)
    done = record.tallies[PART.name].tried if PART.name in record.tallies else 0
    tally = run(PART, record, count=max(0, said.tables - done), seconds=math.inf)
    for what, n in sorted(tally.outcomes.items()):
        print(f"{n:4} {what}")
    total = sum(n for what, n in tally.outcomes.items() if what.endswith(CLAIMED))
    print(f"{total} of {tally.tried} {CLAIMED} (at most {MOST_CLAIMS:.0%} allowed)")
    return 0 if total <= MOST_CLAIMS * tally.tried else 1


if __name__ == "__main__":
    sys.exit(main())
