"""Tables of 1 to 40 rows with everything that goes wrong in small tables.

Constant, copied, collinear, empty and subnormal columns, scales from 1e-300 to 1e300, missing
cells, rare classes, weights over many decades. A fit refuses such a table with a sentence that it
documents, or gives finite probabilities that add up to one, and a certificate or a warning.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

import laconic

DOCUMENTED = (
    "needs at least two classes in y",
    "must contain at least one non-zero number",
    "sample_weight adds up to",
)
TOL = 1e-5


@dataclass(frozen=True)
class SmallTable:
    """A table, its labels, its weights and the parameters to fit it with."""

    X: pd.DataFrame
    y: np.ndarray
    weight: np.ndarray | None
    options: dict[str, Any]


def column(draw: np.random.Generator, n: int, earlier: list[np.ndarray]) -> np.ndarray:
    """One column of a random kind."""
    numbers = draw.normal(size=n)
    kinds = {
        "plain": lambda: numbers * 10.0 ** draw.uniform(-5, 5),
        "count": lambda: draw.integers(0, draw.integers(2, 9), n).astype(float),
        "flag": lambda: (draw.random(n) < draw.uniform(0.05, 0.95)).astype(float),
        "constant": lambda: np.full(n, draw.choice([0.0, 1.0, 5e-324, 1e300, -1e-300])),
        "subnormal": lambda: draw.choice([0.0, 5e-324, 1e-320, 1e-310], n),
        "huge": lambda: numbers * 1e300,
        "tiny": lambda: numbers * 1e-300,
        "ends": lambda: draw.choice([-1e308, 0.0, 1e308], n),
        "heavy": lambda: np.exp(50 * numbers),
        "missing": lambda: np.full(n, np.nan),
        "text": lambda: draw.choice(list("abcdefgh")[: draw.integers(1, 9)], n).astype(object),
    }
    if earlier:
        chosen = earlier[draw.integers(len(earlier))]
        kinds["copy"] = chosen.copy
        if chosen.dtype != object:
            kinds["line"] = lambda: 0.5 * chosen + 1.0
    found = kinds[draw.choice(sorted(kinds))]()
    if draw.random() < 0.25:
        found = np.where(draw.random(n) < draw.uniform(0, 0.9), np.nan, found)
        found = np.where(pd.isna(found), None, found) if found.dtype == object else found
    return np.asarray(found)


def small_table(seed: int) -> SmallTable:
    """The table of one seed."""
    draw = np.random.default_rng(seed)
    n, n_classes = int(draw.integers(1, 41)), int(draw.integers(2, 5))
    columns: list[np.ndarray] = []
    for _ in range(draw.integers(1, 7)):
        columns.append(column(draw, n, columns))
    X = pd.DataFrame({f"c{j}": values for j, values in enumerate(columns)})
    y = draw.integers(0, n_classes, n)
    if draw.random() < 0.4:
        rank = pd.to_numeric(X["c0"], errors="coerce").rank(pct=True).fillna(0.0)
        y = np.minimum((rank * n_classes).astype(int), n_classes - 1).to_numpy()
    return SmallTable(X, y, _weight(draw, n), _options(draw, len(np.unique(y)) == 2))


def _weight(draw: np.random.Generator, n: int) -> np.ndarray | None:
    which = draw.random()
    if which < 0.15:
        return np.asarray(10.0 ** draw.uniform(-12, 3, n))
    if which < 0.25:
        return draw.integers(0, 3, n).astype(float)
    if which < 0.3:
        return np.full(n, 10.0 ** draw.uniform(-300, 300))
    return None


def _options(draw: np.random.Generator, two_classes: bool) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for share, name, values in (
        (0.1, "pairs", [0, 2]),
        (0.1, "cv", [2, 3]),
        (0.1, "group_penalty", [0.0, 0.01, 0.5, 1.0]),
        (0.1, "max_terms", [1]),
        (0.1, "C", [1e-6, 1e-3, 1e3, 1e6]),
    ):
        if draw.random() < share:
            options[name] = values[draw.integers(len(values))]
    if two_classes and draw.random() < 0.2:
        options["zone"] = (0.2, 0.8)
    if two_classes and draw.random() < 0.1:
        options["costs"] = [[0, 1], [10, 0]]
    return options


def outcome(table: SmallTable) -> str:
    """What the additive model makes of a table; an error that nobody documented is raised."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            model = laconic.SparseAdditiveClassifier(**table.options)
            model.fit(table.X, table.y, sample_weight=table.weight)
        except ValueError as error:
            if any(words in str(error) for words in DOCUMENTED):
                return "refused"
            raise
        proba = model.predict_proba(table.X)
    if not np.isfinite(proba).all() or np.abs(proba.sum(axis=1) - 1.0).max() > 1e-9:
        return "no probabilities"
    odd = [w for w in said if not issubclass(w.category, ConvergenceWarning)]
    if odd:
        return f"warned: {odd[0].message}"
    if len(said) > 0:
        return "short of the target, and says so"
    certified = model.duality_gap_ <= (1 + 1e-9) * TOL * abs(model.objective_)
    return "certified" if certified else "no certificate and no warning"


def search(count: int, seed: int = 0) -> Counter[str]:
    """Outcomes of ``count`` tables."""
    found: Counter[str] = Counter()
    for number in range(count):
        try:
            found[outcome(small_table(seed + number))] += 1
        except Exception as error:
            raise AssertionError(f"the table of seed {seed + number}") from error
    return found


if __name__ == "__main__":
    print(search(2_000))
