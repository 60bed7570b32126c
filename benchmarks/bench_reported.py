"""Whether the reported cost is true: generated problems whose cost on new rows is known.

    python -m benchmarks reported
    python benchmarks/bench_reported.py [--problems 200] [--first 0]

Every problem draws its own rows, costs and shape (lines, bumps, steps, products, noise columns and
a category). The model is fitted as users fit it; its true cost is measured on 20,000 new rows.
Printed: mean of reported minus true as a share of the true cost, with its standard error; how often
the 90 % interval holds the true cost; the same for the plain held-out cost of what was kept.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse  # noqa: E402
import warnings  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

from laconic import LaconicClassifier, expected_cost  # noqa: E402

N_NEW = 20_000


def problem(number: int) -> tuple[Any, dict[str, float], int]:
    """A law of rows, costs and a number of rows, all drawn from the number of the problem."""
    draw = np.random.default_rng([7, number])
    n_columns = int(draw.integers(4, 11))
    line = draw.normal(size=n_columns) * (draw.random(n_columns) < 0.5)
    bump = draw.normal(size=n_columns) * (draw.random(n_columns) < 0.3)
    step = draw.normal(size=n_columns) * (draw.random(n_columns) < 0.3)
    pair = draw.normal() * (draw.random() < 0.5)
    scale, shift = draw.uniform(0.7, 2.0), draw.uniform(-1.5, 0.5)
    levels = draw.normal(size=4)

    def rows(n: int, seed: int) -> tuple[Any, np.ndarray]:
        own = np.random.default_rng([11, number, seed])
        X = own.normal(size=(n, n_columns))
        kind = own.integers(0, 4, n)
        score = X @ line + np.exp(-(X**2)) @ bump + (X > 0.5) @ step
        score = shift + scale * (score + pair * X[:, 0] * X[:, 1] + levels[kind])
        y = (score + own.logistic(size=n) > 0).astype(int)
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(n_columns)])
        frame["kind"] = np.array(list("abcd"))[kind]
        return frame, y

    costs = {"fp": 1.0, "fn": float(draw.choice([1.0, 3.0, 10.0]))}
    return rows, costs, int(draw.integers(250, 1000))


def run(number: int) -> dict[str, float]:
    """One problem: what is reported, what is true."""
    rows, costs, n_rows = problem(number)
    X, y = rows(n_rows, 0)
    model = LaconicClassifier(costs, random_state=0).fit(X, y)
    new, truth = rows(N_NEW, 1)
    frame = model.comparison_
    told = model.reported_cost_
    return {
        "true": expected_cost(truth, model.predict(new), costs),
        "reported": told.value,
        "low": told.low,
        "high": told.high,
        "plain": float(frame.loc[frame["chosen"], "cost"].iloc[0]),
        "rows": float(n_rows),
    }


def show(found: list[dict[str, float]]) -> None:
    table = pd.DataFrame(found)
    for name in ("reported", "plain"):
        gap = table[name] - table["true"]
        share, error = gap.mean() / table["true"].mean(), gap.sem() / table["true"].mean()
        print(f"{name}: mean of (said - true) is {100 * share:+.2f} % of the true cost "
              f"(standard error {100 * error:.2f} %)")  # fmt: skip
    inside = (table["low"] <= table["true"]) & (table["true"] <= table["high"])
    print(f"the 90 % interval holds the true cost in {100 * inside.mean():.1f} % of {len(table)}")


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args(words if words is not None else [])
    found = []
    for number in range(given.first, given.first + given.problems):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(run(number))
        if (number + 1) % 20 == 0:
            print(f"{number + 1} problems", flush=True)
            show(found)
    show(found)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
