"""Tables as they come against the same tables parsed by hand: seconds, memory, cost of decisions.

    python -m benchmarks tables
    python -m benchmarks.bench_tables [--draws 3] [--only weather] [--resume FILE]

Two generated tables with known probabilities: 4,000 customers (id, dates, amounts in euros, shares
in percent, one "unknown", yes/no, postcodes) and 1,461 days of weather with the date as a text and
five classes. Six real ones (``arena`` beside the data sets of ``LACONIC_DATA``) are disguised as
people write tables: decimal commas, currencies, percent signs, units, thousands, dates, yes and no,
codes with zeros, one odd cell, an identifier. `laconic fit` runs on the file as it comes and on the
file parsed by hand, with all families that the main job compares, each in a process of its own.
Printed: CPU seconds, the largest memory, the cost of the decisions about new rows (expected where
the probabilities are known), and what the raw table costs more, with its standard error over draws.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

Columns = dict[str, Any]
Drawn = tuple[Columns, Columns, np.ndarray]
GERMAN = str.maketrans(",.", ".,")
TRAINED, TESTED = 2_000, 8_000
"""Rows of a real table."""
REAL = ("adult", "bank_churn", "card_default", "churn", "credit_g", "online_shoppers")


def customers(n: int, seed: int) -> Drawn:
    """As a shop exports them, as parsed by hand, and the probability of each class."""
    draw = np.random.default_rng([1, seed])
    start = np.datetime64("2019-01-01")
    signed, seen = draw.integers(0, 1800, n), draw.integers(1800, 2200, n)
    bill, share = np.round(np.exp(draw.normal(4, 1, n)), 2), np.round(100 * draw.beta(2, 5, n), 1)
    calls, paperless = draw.poisson(2, n), draw.choice(["Yes", "No"], n)
    code = draw.choice([f"{k:05d}" for k in range(1000, 99000, 2450)], n)
    score = 0.001 * signed - 0.8 * np.log(bill / 50) + 0.03 * share + (paperless == "Yes")
    late = 1 / (1 + np.exp(4 - 2 * score))
    raw = {
        "customer id": [f"C-{k:06d}" for k in draw.permutation(10**6)[:n]],
        "signed up": [f"{d.astype(object):%d/%m/%Y}" for d in start + signed],
        "last seen": (start + seen).astype(str),
        "bill": [f"{x:,.2f} \u20ac".translate(GERMAN) for x in bill],
        "share": [f"{x} %".translate(GERMAN) for x in share],
        "calls": ["unknown" if k == 7 else str(c) for k, c in enumerate(calls)],
        "paperless": paperless,
        "postcode": code,
    }
    hand = {
        "signed up": signed, "last seen": seen, "bill": bill, "share": share, "calls": calls,
        "paperless": paperless, "postcode": [f"z{own}" for own in code],
    }  # fmt: skip
    return raw, hand, np.column_stack([1 - late, late])


def weather(n: int, seed: int) -> Drawn:
    """Days of one place: a date, three measures, and five kinds of weather that follow them."""
    draw = np.random.default_rng([2, seed])
    day = draw.permutation(np.arange(2 * n))[:n] if n < 2000 else draw.integers(0, 3000, n)
    season = np.cos(2 * np.pi * day / 365.25)
    rain = np.where(draw.random(n) < 0.45 + 0.2 * season, draw.exponential(6, n), 0.0).round(1)
    high = (17 - 8 * season + draw.normal(0, 4, n)).round(1)
    wind = draw.gamma(6, 0.5, n).round(1)
    score = np.column_stack(
        [
            0.5 + 0.2 * (high - 15) - 0.8 * rain, 0.3 * rain + 0.2 * wind,
            1.0 - 0.3 * high + 0.1 * rain, -0.5 - 0.5 * wind + season, -1.0 - 0.1 * rain,
        ]
    )  # fmt: skip
    proba = np.exp(score - score.max(axis=1, keepdims=True))
    proba /= proba.sum(axis=1, keepdims=True)
    dates = np.datetime64("2012-01-01") + day
    comma = str.maketrans(".", ",")
    raw = {
        "date": [f"{d.astype(object):%d.%m.%Y}" for d in dates],
        "rain": [f"{x} mm".translate(comma) for x in rain],
        "high": [f"{x}".translate(comma) for x in high],
        "wind": [f"{x}".translate(comma) for x in wind],
    }
    month = (dates.astype("datetime64[M]").astype(int) % 12) + 1
    hand = {"day": day, "month": month, "rain": rain, "high": high, "wind": wind}
    return raw, hand, proba


def disguised(frame: pd.DataFrame, categories: list[str], seed: int) -> tuple[Columns, Columns]:
    """A clean table as a spreadsheet would hold it, and as parsed by hand: the same cells."""
    draw = np.random.default_rng([4, seed])
    raw: Columns = {"record no": [f"R-{k:07d}" for k in draw.permutation(10**7)[: len(frame)]]}
    hand: Columns = {}
    for j, name in enumerate(frame.columns):
        cells = frame[name]
        if name in categories:
            texts = cells.fillna("").astype(str)
            raw[name] = _disguised_category(texts)
            hand[name] = texts.where(texts == "", "z" + texts)  # no number, whatever the codes are
            continue
        odd = draw.integers(len(frame))
        whole = bool((cells % 1 == 0).all())
        wide = whole and cells.min() >= 0 and 60 < cells.max() < 20_000
        raw[name] = [("" if x != x else text) for x, text in zip(cells, _disguised_number(
            cells.to_numpy(dtype=float), j, wide), strict=True)]  # fmt: skip
        raw[name][odd] = "unknown"
        hand[name] = cells.astype(float).where(np.arange(len(frame)) != odd)
    return raw, hand


def _disguised_category(texts: pd.Series) -> Any:
    levels = sorted(set(texts) - {""})
    if len(levels) == 2:
        return texts.map({"": "", levels[0]: "nein", levels[1]: "ja"})
    return texts.map({"": "", **{level: f"{7 * k:04d}" for k, level in enumerate(levels)}})


def _disguised_number(values: np.ndarray, place: int, wide: bool) -> list[str]:
    """One of six ways to write numbers, by the place of the column; dates for wide whole ones."""
    if wide and place % 3 == 0:
        start = np.datetime64("1999-03-01")
        days = [start + int(x) if x == x else start for x in values]
        return [f"{day.astype(object):%d.%m.%Y}" for day in days]
    signs = ("{} \u20ac", "{} %", "{}", "{} kg", "EUR {}", "{}")
    texts = (f"{x:,.10f}".rstrip("0") for x in values)
    written = (text + "0" * text.endswith(".") for text in texts)
    return [signs[place % 6].format(text.translate(GERMAN)) for text in written]


def write(path: Path, columns: Columns) -> None:
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, delimiter=";")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


_RUN = """
import resource, sys
from laconic.cli.app import main
try:
    main(sys.argv[1:])
finally:
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20, file=sys.stderr)
"""


def fitted(path: Path, out: Path, costs: list[str]) -> tuple[float, float]:
    """CPU seconds of `laconic fit` in a process of its own, and its memory in GB."""
    words = ["fit", path, "--target", "class", "--out", out, "--json", *costs]
    done = subprocess.run(
        [sys.executable, "-c", _RUN, *map(str, words)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr)
    cpu, memory = done.stderr.split()[-2:]
    return float(cpu), float(memory)


@dataclass(frozen=True)
class Case:
    """Rows to fit and rows to decide about, each raw and by hand, and what decisions cost."""

    trained: tuple[Columns, Columns]
    tested: tuple[Columns, Columns]
    label: np.ndarray
    paid: np.ndarray
    """(rows, classes): what each decision costs on each row to decide about."""
    costs: list[str]


def generated(
    make: Callable[[int, int], Drawn], n_rows: int, matrix: np.ndarray, seed: int
) -> Case:
    raw, hand, proba = make(n_rows, seed)
    *fresh, known = make(20_000, 1000 + seed)
    draw = np.random.default_rng([3, seed])
    label = (proba.cumsum(axis=1) < draw.random((n_rows, 1))).sum(axis=1)
    costs = ["--cost", f"fn={matrix[1, 0]:g}"] if len(matrix) == 2 else []
    return Case((raw, hand), (fresh[0], fresh[1]), label, known @ matrix, costs)


def real(name: str, seed: int) -> Case:
    from benchmarks.bench_arena import arena

    with (arena() / "INDEX.csv").open() as file:
        about = next(line for line in csv.DictReader(file) if line["name"] == name)
    categories = about["categorical_columns"].split()
    frame = pd.read_csv(arena() / f"{name}.csv.gz", dtype=dict.fromkeys(categories, str))
    y = (frame.pop("target").astype(str) == about["positive"]).to_numpy().astype(int)
    order = np.random.default_rng([5, seed]).permutation(len(frame))
    n_trained = min(TRAINED, len(frame) // 2)
    raw, hand = disguised(frame, categories, seed)
    parts = []
    for rows in (order[:n_trained], order[n_trained : n_trained + TESTED]):
        parts.append([{n: np.asarray(c)[rows] for n, c in own.items()} for own in (raw, hand)])
        last = rows
    matrix = np.array([[0.0, 1.0], [5.0, 0.0]])
    trained, tested = (tuple(own) for own in parts)
    return Case(trained, tested, y[order[:n_trained]], matrix[y[last]], ["--cost", "fn=5"])


CASES: dict[str, Callable[[int], Case]] = {
    "customers": lambda seed: generated(customers, 4000, np.array([[0.0, 1.0], [3.0, 0.0]]), seed),
    "weather": lambda seed: generated(weather, 1461, 1.0 - np.eye(5), seed),
    **{name: partial(real, name) for name in REAL},
}


def measured(name: str, seed: int) -> dict[str, Any]:
    """CPU seconds, memory and cost of both readings of one draw."""
    case = CASES[name](seed)
    found: dict[str, Any] = {"table": name, "seed": seed, "rows": len(case.label)}
    with tempfile.TemporaryDirectory() as folder:
        for kind, table, new in zip(("raw", "hand"), case.trained, case.tested, strict=True):
            path, out = Path(folder) / f"{kind}.csv", Path(folder) / kind
            write(path, table | {"class": case.label})
            cpu, memory = fitted(path, out, case.costs)
            cost = cost_of(out / "model.json", new, case.paid)
            found[kind] = {"cpu": cpu, "memory": memory, "cost": cost}
    return found


def cost_of(model: Path, rows: Columns, paid: np.ndarray) -> float:
    """Mean cost of the decisions about new rows, written to a file and read as they come."""
    from laconic import load

    loaded = load(model)
    texts = {name: np.asarray(cells) for name, cells in rows.items()}
    place = np.searchsorted(loaded.classes_, loaded.predict(texts).astype(str))
    return float(np.mean(paid[np.arange(len(place)), place]))


def dearer(draws: list[dict[str, Any]]) -> np.ndarray:
    """What the raw table costs more, as a share, draw by draw."""
    return np.array([own["raw"]["cost"] / own["hand"]["cost"] - 1.0 for own in draws])


def line_of(name: str, draws: list[dict[str, Any]]) -> str:
    """A row of the table that is printed."""
    raw, hand = ({key: np.array([own[kind][key] for own in draws]) for key in draws[0][kind]}
                 for kind in ("raw", "hand"))  # fmt: skip
    more = dearer(draws)
    error = more.std(ddof=1) / np.sqrt(len(more)) if len(more) > 1 else np.nan
    cells = [
        name, f"{draws[0]['rows']:,}", str(len(draws)), f"{raw['cpu'].mean():.1f}",
        f"{hand['cpu'].mean():.1f}", f"{raw['memory'].max():.2f}", f"{raw['cost'].mean():.4f}",
        f"{hand['cost'].mean():.4f}", f"{more.mean():+.2%}", f"{error:.2%}",
        ", ".join(f"{own:+.1%}" for own in more),
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def main(draws: int = 3, only: str = "", resume: Path | None = None) -> None:
    done: list[dict[str, Any]] = []
    if resume is not None and resume.exists():
        done = [json.loads(line) for line in resume.read_text().splitlines()]
    known = {(own["table"], own["seed"]) for own in done}
    names = [name for name in CASES if only in ("", name)]
    for seed in range(draws):
        for name in names:
            if (name, seed) not in known:
                done.append(measured(name, seed))
                if resume is not None:
                    with resume.open("a") as out:
                        out.write(json.dumps(done[-1]) + "\n")
    heads = ("table", "rows", "draws", "CPU s", "by hand", "GB", "cost", "by hand", "more", "s.e.",
             "of each draw")  # fmt: skip
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    found = {name: own for name in names if (own := [d for d in done if d["table"] == name])}
    for name, own in found.items():
        print(line_of(name, own), flush=True)
    every = [dearer(own) for own in found.values()]
    means, single = np.array([own.mean() for own in every]), np.concatenate(every)
    error = means.std(ddof=1) / np.sqrt(len(means)) if len(means) > 1 else np.nan
    print(
        f"\nMean of {len(means)} tables: the raw one costs {means.mean():+.2%} (standard error "
        f"{error:.2%} over tables); single draws {single.min():+.1%} to {single.max():+.1%}."
    )


if __name__ == "__main__":
    asked = argparse.ArgumentParser()
    asked.add_argument("--draws", type=int, default=3)
    asked.add_argument("--only", default="", help="one table")
    asked.add_argument("--resume", type=Path, help="file of the run to go on with")
    main(**vars(asked.parse_args()))
