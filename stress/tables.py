"""Small tables with everything that goes wrong in tables, for every estimator.

A fit refuses such a table with a sentence that is written down here, or it gives finite
probabilities that sum to one on the rows it has seen, a certificate that is no less than zero, and
the same answers for the same rows in another order, the same columns in another order, and beside
a column that says nothing.
"""

from __future__ import annotations

import re
import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from laconic import (
    ConvexRiskClassifier,
    GrayZoneLogisticRegression,
    GrayZoneLogisticRegressionCV,
    ModlEncoder,
    WeightedNaiveBayes,
)
from laconic.convex import ConvexRiskRegressor, PairwiseRanker
from stress.models import N_LATER, models
from stress.run import FAILED, Part

DOCUMENTED = (
    r"needs at least two classes in y",
    r"must contain at least one non-zero number",
    r"sample_weight adds up to",
    r"is categorical and \w+ takes numbers only",
    r"holds values larger than",
    r"has missing values \(NaN\)",
    r"Every column is constant",
    r"too large for the trees",
    r"rescale it|scale X",
    r"has infinite values",
    r"cv leaves a class without held-out rows",
    r"while a minimum of 1 is required",
    # within the folds of a fit, of mixed cells
    r"was (numeric at fit and is categorical|categorical at fit and is numeric) now",
    r"there is no pair to learn from",
    r"No fold has both classes",
    r"No column is left to learn from",
    r"needs at least two rows",
    r"Only binary classification is supported",
    r"has no rows of|no rows of class|rows of each class|every class",
)
AS_THEY_ARE = (
    ConvexRiskClassifier, ConvexRiskRegressor, PairwiseRanker, GrayZoneLogisticRegression,
    GrayZoneLogisticRegressionCV,
)  # fmt: skip
"""Models that penalise the coefficients of columns in their own unit."""
FIRST_TABLES = 20_000
"""Tables of the first models; those of later ones have the numbers after them."""
SLOW = 10.0
"""Seconds of processor time after which a fit of at most 300 rows is too slow."""
SAME = 1e-5
"""Probabilities of the same model may differ by so much."""


@dataclass(frozen=True)
class SmallTable:
    """Rows, labels and weights."""

    X: pd.DataFrame
    y: np.ndarray
    weight: np.ndarray | None


def column(draw: np.random.Generator, n: int, earlier: list[np.ndarray]) -> np.ndarray:
    """One column of a random kind."""
    numbers = draw.normal(size=n)
    texts = ["a", "b", "c", "é", "日本", "1", " a", "", "nan", "None", "-inf", "e\u0301"]
    kinds = {
        "plain": lambda: numbers * 10.0 ** draw.uniform(-5, 5),
        "plain too": lambda: numbers,
        "far": lambda: numbers + 10.0 ** draw.uniform(3, 8),
        "count": lambda: draw.integers(0, draw.integers(2, 9), n).astype(float),
        "flag": lambda: (draw.random(n) < draw.uniform(0.05, 0.95)).astype(float),
        "constant": lambda: np.full(n, draw.choice([0.0, 1.0, 5e-324, 1e99, -1e-300])),
        "subnormal": lambda: draw.choice([0.0, 5e-324, 1e-320, 1e-310], n),
        "huge": lambda: numbers * 10.0 ** draw.uniform(10, 110),
        "tiny": lambda: numbers * 10.0 ** draw.uniform(-300, -10),
        "ends": lambda: draw.choice([-1e308, 0.0, 1e308], n),
        "heavy": lambda: np.exp(50 * numbers),
        "missing": lambda: np.full(n, np.nan),
        "infinite": lambda: np.where(draw.random(n) < 0.1, np.inf, numbers),
        "text": lambda: draw.choice(texts[: draw.integers(1, 13)], n).astype(object),
        "mixed": lambda: np.array(
            [draw.choice([1, 2.5]) if u else "x" for u in numbers > 0], object
        ),
        "bool": lambda: numbers > 0,
    }
    if earlier:
        chosen = earlier[draw.integers(len(earlier))]
        kinds["copy"] = chosen.copy
        if chosen.dtype != object:
            kinds["line"] = lambda: 0.5 * chosen + 1.0
    rare = "huge", "ends", "infinite", "missing"  # most of them are refused
    usual = [kind for kind in sorted(kinds) if kind not in rare]
    found = kinds[draw.choice(usual if draw.random() < 0.95 else rare)]()
    if draw.random() < 0.2:
        gone = draw.random(n) < draw.uniform(0, 0.9)
        empty = None if found.dtype == object else np.nan
        found = np.where(gone, empty, found)
    return np.asarray(found)


def small_table(seed: int, *, numbers: bool, complete: bool) -> SmallTable:
    """The table of one seed; only numbers, and no missing ones, where a model wants that."""
    draw = np.random.default_rng(seed)
    n = int(draw.choice([1, 2, 3, 5, 8, 12, 25, 40, 40, 90])) if seed % 20 else 300
    n_classes = int(draw.choice([2, 2, 3, 5, 12]))
    columns: list[np.ndarray] = []
    for _ in range(draw.integers(1, 7)):
        found = column(draw, n, columns)
        if numbers and found.dtype == object:
            found = draw.normal(size=n)
        if complete:
            found = np.where(pd.isna(found), 0.5, found)
        columns.append(found)
    X = pd.DataFrame({f"c{j}": values for j, values in enumerate(columns)})
    y = draw.integers(0, n_classes, n)
    if draw.random() < 0.4:
        rank = pd.to_numeric(X["c0"], errors="coerce").rank(pct=True).fillna(0.0)
        y = np.minimum((rank * n_classes).astype(int), n_classes - 1).to_numpy()
    weight = _weight(draw, n)
    if weight is not None and not weight.all():  # a row of weight zero is absent, kinds included
        X, y, weight = X[weight > 0].reset_index(drop=True), y[weight > 0], weight[weight > 0]
    return SmallTable(X, y, weight)


def _weight(draw: np.random.Generator, n: int) -> np.ndarray | None:
    made = [
        lambda: np.asarray(10.0 ** draw.uniform(-12, 12, n)),
        lambda: draw.integers(0, 3, n).astype(float),
        lambda: np.full(n, 10.0 ** draw.uniform(-300, 100)),
        lambda: np.where(draw.random(n) < 0.5, 1e12, 1.0),
    ]
    return made[draw.integers(4)]() if draw.random() < 0.4 else None


def answers(model: Any, X: pd.DataFrame) -> np.ndarray:
    """What a fitted model says of rows, as numbers."""
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X), dtype=float)
    if hasattr(model, "predict"):
        return np.asarray(model.predict(X), dtype=float)
    by_name = np.argsort(model.get_feature_names_out(), kind="stable")
    return np.asarray(model.transform(X), dtype=float)[:, by_name]


def of_width(model: Any) -> bool:
    """Whether the number of columns has a part in the model, so that a useless one may change it.

    scikit-learn's gamma="scale" divides by it, its forests draw among that many columns, and BIC
    counts the coordinates of centres.
    """
    asked = model.get_params(deep=False)
    voters = asked.get("voters")
    drawn = voters == "rbf" or type(voters).__name__ in ("KernelVoters", "ForestVoters")
    return bool(drawn or asked.get("criterion") == "bic" or asked.get("gamma") == "scale")


def names_columns(model: Any) -> bool:
    """Whether naming one of K columns costs ln K, as MODL's prior has it.

    A weighted naive Bayes, alone or inside, and what is cut by an encoder.
    """
    asked = model.get_params(deep=False)
    parts = [model, *asked.values(), *(asked.get("estimators") or [])]
    own = WeightedNaiveBayes, ModlEncoder
    inside = any(isinstance(part, own) for part in parts) or "modl" in (asked.get("cutting") or "")
    return inside or "bayes" in (asked.get("candidates") or ())


class Broken(AssertionError):
    """A promise that was not kept."""


def outcome(number: int) -> str:
    """What came of one table with one model."""
    choice = models()[:-N_LATER]
    if number >= FIRST_TABLES:
        choice, number = models()[-N_LATER:], number - FIRST_TABLES
    name, model = choice[number % len(choice)]
    tags = get_tags(model).input_tags
    table = small_table(
        number // len(choice) * 977 + number % len(choice),
        numbers=not tags.categorical,
        complete=not tags.allow_nan,
    )
    for _ in range(2):  # the first fit of a process compiles
        begun = time.process_time()
        try:
            what = _tried(model, table, number // len(choice) % 4)
        except Broken as error:
            what = f"{FAILED}: {name}: {error}"
        except Exception as error:
            what = f"{FAILED}: {name}: {type(error).__name__}: {error}"[:160]
        if time.process_time() - begun < SLOW or what.startswith(FAILED):
            return what
    return f"{FAILED}: {name}: slow"


def _fitted(model: Any, table: SmallTable) -> tuple[Any, bool]:
    """The model on a table and whether it warned that it stopped short."""
    weighted = table.weight is not None and has_fit_parameter(model, "sample_weight")
    given = {"sample_weight": table.weight} if weighted else {}
    y: Any = table.y.astype(float) if is_regressor(model) else table.y
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = clone(model).fit(table.X, y, **given)
    for warning in said:
        if not issubclass(warning.category, UserWarning):
            raise Broken(f"{warning.category.__name__}: {warning.message}"[:120])
    return found, any(issubclass(w.category, ConvergenceWarning) for w in said)


def _tried(model: Any, table: SmallTable, relation: int) -> str:
    try:
        fitted, short = _fitted(model, table)
    except ValueError as error:
        if any(re.search(words, str(error)) for words in DOCUMENTED):
            return "refused in words"
        raise
    said = answers(fitted, table.X)
    _check_answers(fitted, said)
    _check_certificate(fitted)
    if short:
        return "short of the target, and says so"
    return _related(model, table, fitted, said, relation)


def _check_bounds(one: Any, other: Any) -> None:
    """Two fits of one problem: neither value is below what the other proves to be the least."""
    for a, b in ((one, other), (other, one)):
        if not (hasattr(a, "objective_") and hasattr(a, "duality_gap_")):
            return
        value, gap = np.asarray(a.objective_, float), np.asarray(a.duality_gap_, float)
        again = np.asarray(b.objective_, float)
        if value.shape == again.shape and (again < value - gap - 1e-9 * np.abs(value)).any():
            raise Broken(f"a certificate: {again.min()} is below {value.min()} less {gap.max()}")


def _check_answers(fitted: Any, said: np.ndarray) -> None:
    if not np.isfinite(said).all():
        raise Broken("answers that are not finite")
    if not (is_classifier(fitted) and hasattr(fitted, "predict_proba")):
        return
    if said.min() < 0 or said.max() > 1 or np.abs(said.sum(axis=1) - 1).max() > 1e-9:
        raise Broken("no probabilities")


def _check_certificate(fitted: Any) -> None:
    gap = np.asarray(getattr(fitted, "duality_gap_", 0.0), dtype=float)
    value = np.abs(np.asarray(getattr(fitted, "objective_", 0.0), dtype=float)).max(initial=0.0)
    if np.isnan(gap).any() or gap.min(initial=0.0) < -1e-12 * max(value, 1.0):
        raise Broken(f"a gap of {gap.min()}")


def _loose(model: Any, table: SmallTable) -> bool:
    """Weights, or cells, so large that the penalty is lost in the rounding of the objective.

    What is certified is the objective: coefficients are then free within its gap. Convex risks and
    gray zones penalise the coefficients of columns as they are: in a column of size s an answer
    moves by 1e-5 where |w|^2 moves by 1e-5 / s^2, which beyond s = 3e5 no double can tell.
    """
    as_they_are = isinstance(model, AS_THEY_ARE)
    if as_they_are and np.abs(table.X.to_numpy(dtype=float)).max(initial=0.0) > 3e5:
        return True
    return table.weight is not None and float(table.weight.max()) > 1e8


def _related(model: Any, table: SmallTable, said_by: Any, said: np.ndarray, relation: int) -> str:
    """Rows in another order, columns in another order, a constant column more."""
    draw = np.random.default_rng(relation + len(table.y))
    rows = np.arange(len(table.y))
    X = table.X
    if relation == 0:
        rows = draw.permutation(len(rows))
    elif relation == 1:
        X = X[draw.permutation(X.columns)]
    elif relation == 2 and names_columns(model):  # another column costs ln K, whatever it holds
        wider = replace(table, X=X.assign(useless=7.0))
        said = answers(_fitted(model, wider)[0], wider.X)
        X = X.assign(useless=1.0)
    elif relation == 2 and not of_width(model):
        X = X.assign(useless=1.0)
    else:
        return "holds"
    X = X.iloc[rows].reset_index(drop=True)
    weight = None if table.weight is None else table.weight[rows]
    fitted, short = _fitted(model, SmallTable(X, table.y[rows], weight))
    again = answers(fitted, X)
    what = ("rows in another order", "columns in another order", "a constant column")[relation]
    if again.shape != said.shape and relation == 2 and hasattr(fitted, "transform"):
        return "holds"
    if again.shape != said.shape:
        raise Broken(f"{what}: another shape")
    largest = np.abs(said).max(initial=0.0)
    if is_regressor(fitted):
        largest = max(largest, float(table.y.max()))
    scale = 1.0 if is_classifier(fitted) else max(largest, 1e-300)
    apart = np.abs(again - said[rows]).max(initial=0.0) / scale
    if apart <= SAME or short:
        if relation < 2 and not short and not _loose(model, table):
            _check_bounds(said_by, fitted)
        return "holds"
    if _loose(model, table):
        return "moves where the penalty is below rounding"
    size = "1e-3" if apart > 1e-3 else "1e-5"
    raise Broken(f"{what}: answers move by more than {size}")


PART = Part(
    "tables",
    "tables",
    "refused in words, or finite answers, a certificate, and no dependence on order",
    outcome,
    size=FIRST_TABLES + 400 * N_LATER,
    quick=60,
)
