"""Tables as they come against the same tables parsed by hand: seconds, memory, cost of decisions.

    python -m benchmarks tables
    python benchmarks/bench_tables.py [--draws 3] [--only weather]

Two generated tables with known probabilities: 4,000 customers (id, dates, amounts in euros, shares
in percent, one "unknown", yes/no, postcodes) and 1,461 days of weather with the date as a text and
five classes. `laconic fit` runs on the file as it comes and on the file parsed by hand, with all
families that the main job compares, each in a process of its own. Printed: wall and CPU seconds,
the largest memory, and the expected cost of the decisions about 20,000 new rows; then the ratio.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Columns = dict[str, Any]
Drawn = tuple[Columns, Columns, np.ndarray]


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
    german = str.maketrans(",.", ".,")
    raw = {
        "customer id": [f"C-{k:06d}" for k in draw.permutation(10**6)[:n]],
        "signed up": [f"{d.astype(object):%d/%m/%Y}" for d in start + signed],
        "last seen": (start + seen).astype(str),
        "bill": [f"{x:,.2f} \u20ac".translate(german) for x in bill],
        "share": [f"{x} %".translate(german) for x in share],
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


def fitted(path: Path, out: Path, costs: list[str]) -> tuple[float, float, float]:
    """Wall and CPU seconds of `laconic fit` in a process of its own, and its memory in GB."""
    words = ["fit", path, "--target", "class", "--out", out, "--json", *costs]
    start = time.monotonic()
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
    return time.monotonic() - start, float(cpu), float(memory)


def cost_of(model: Path, rows: Columns, proba: np.ndarray, costs: np.ndarray) -> float:
    """Expected cost of the decisions about new rows, their probabilities being known."""
    from laconic import load

    loaded = load(model)
    place = np.searchsorted(
        loaded.classes_, loaded.predict({k: np.asarray(v) for k, v in rows.items()})
    )
    return float(np.mean((proba @ costs)[np.arange(len(place)), place]))


def main(draws: int = 3, only: str = "") -> None:
    tables: dict[str, tuple[int, Callable[[int, int], Drawn], list[str], np.ndarray]] = {
        "customers": (4000, customers, ["--cost", "fn=3"], np.array([[0.0, 1.0], [3.0, 0.0]])),
        "weather": (1461, weather, [], 1.0 - np.eye(5)),
    }
    print(f"{'table':10} {'as':5} {'wall s':>7} {'CPU s':>6} {'GB':>5} {'cost':>8}")
    for name, (n_rows, make, costs, matrix) in tables.items():
        if only not in ("", name):
            continue
        ratios = []
        for seed in range(draws):
            raw, hand, proba = make(n_rows, seed)
            *fresh, known = make(20_000, 1000 + seed)
            draw = np.random.default_rng([3, seed])
            label = (proba.cumsum(axis=1) < draw.random((n_rows, 1))).sum(axis=1)
            paid = []
            with tempfile.TemporaryDirectory() as folder:
                for kind, table, new in (("raw", raw, fresh[0]), ("hand", hand, fresh[1])):
                    path, out = Path(folder) / f"{kind}.csv", Path(folder) / kind
                    write(path, table | {"class": label})
                    used = fitted(path, out, costs)
                    paid.append(cost_of(out / "model.json", new, known, matrix))
                    print(f"{name:10} {kind:5} {used[0]:7.1f} {used[1]:6.1f} {used[2]:5.2f} "
                          f"{paid[-1]:8.4f}", flush=True)  # fmt: skip
            ratios.append(paid[0] / paid[1] - 1.0)
        print(f"{name}: raw costs {np.mean(ratios):+.2%} more than parsed by hand "
              f"({', '.join(f'{ratio:+.2%}' for ratio in ratios)})", flush=True)  # fmt: skip


if __name__ == "__main__":
    asked = argparse.ArgumentParser()
    asked.add_argument("--draws", type=int, default=3)
    asked.add_argument("--only", default="", help="customers or weather")
    main(asked.parse_args().draws, asked.parse_args().only)
