"""Roy, "Un algorithme d'apprentissage parcimonieux maximisant le désaccord" (13 February 2015).

The tables of the slides come from one half/half split per set: all risks are multiples of
1/floor(N/2). Categories are read as numbers, stumps have ten equally spaced thresholds in both
directions. How sets of more than two classes were made binary is not said; the choice here is in
:data:`POSITIVE`.

``python -m laconic.papers.votes [stumps|rbf|forest|mnist] [splits [first seed [set ...]]]`` prints
the tables again with our numbers, a line as soon as its set is done. The data sets are looked for
by :func:`laconic.data.datasets.load`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats
from laconic.data.datasets import load

PUBLISHED_STUMPS = {
    # set: (CqBoost risk, columns), (MinCq risk, columns), (CG-Boost), (LPBoost)
    "letterAB": ((0.0039, 160), (0.0051, 320), (0.0026, 160), (0.0129, 51)),
    "australian": ((0.1855, 70), (0.1855, 280), (0.2348, 147), (0.1449, 1)),
    "balance": ((0.0256, 17), (0.0256, 80), (0.0385, 40), (0.0288, 16)),
    "breast": ((0.0458, 83), (0.0458, 180), (0.0372, 90), (0.0430, 24)),
    "car": ((0.1516, 16), (0.1516, 120), (0.2569, 60), (0.1678, 14)),
    "cmc": ((0.2785, 36), (0.2785, 180), (0.3084, 113), (0.3084, 35)),
    "credit": ((0.1391, 84), (0.1391, 300), (0.1768, 161), (0.1333, 1)),
    "cylinder": ((0.3852, 224), (0.3741, 700), (0.3630, 330), (0.3630, 1)),
    "ecoli": ((0.0714, 54), (0.0714, 140), (0.0833, 70), (0.0893, 25)),
    "glass": ((0.2430, 80), (0.2617, 180), (0.2243, 98), (0.3645, 1)),
    "heart": ((0.2593, 65), (0.2593, 260), (0.2296, 130), (0.2741, 38)),
    "hepatitis": ((0.2468, 78), (0.2078, 380), (0.2078, 190), (0.1818, 1)),
    "horse": ((0.3696, 152), (0.3533, 520), (0.3696, 256), (0.2065, 1)),
    "ionosphere": ((0.1943, 179), (0.1029, 680), (0.1543, 330), (0.1086, 63)),
    "monks1": ((0.2361, 12), (0.2361, 120), (0.2315, 114), (0.2315, 21)),
    "pima": ((0.2578, 74), (0.2656, 160), (0.3594, 80), (0.2474, 40)),
    "tictactoe": ((0.3215, 20), (0.3215, 180), (0.3779, 90), (0.3549, 1)),
    "titanic": ((0.2282, 6), (0.2282, 60), (0.2309, 18), (0.2309, 1)),
    "wine": ((0.1685, 95), (0.0449, 260), (0.0562, 130), (0.0899, 1)),
    "yeast": ((0.3032, 67), (0.2965, 160), (0.2992, 81), (0.3747, 1)),
    "zoo": ((0.0200, 20), (0.0200, 320), (0.1000, 152), (0.0400, 10)),
}

PUBLISHED_RBF = {
    "letterAB": ((0.0103, 20), (0.0180, 778), (0.0116, 359), (0.0142, 26)),
    "australian": ((0.1449, 14), (0.1333, 345), (0.1333, 295), (0.1449, 33)),
    "balance": ((0.0737, 10), (0.0577, 313), (0.0288, 98), (0.4455, 1)),
    "breast": ((0.0458, 38), (0.0372, 350), (0.0430, 141), (0.0430, 9)),
    "car": ((0.0718, 34), (0.2836, 864), (0.0729, 567), (0.0243, 90)),
    "cmc": ((0.3043, 9), (0.2908, 737), (0.2948, 447), (0.3003, 98)),
    "credit": ((0.1275, 72), (0.1391, 345), (0.1333, 263), (0.1333, 62)),
    "cylinder": ((0.3037, 59), (0.3148, 270), (0.2741, 194), (0.2741, 116)),
    "ecoli": ((0.0714, 40), (0.0893, 168), (0.1012, 139), (0.5060, 1)),
    "glass": ((0.1963, 21), (0.2617, 107), (0.2804, 82), (0.2150, 44)),
    "heart": ((0.1630, 3), (0.1481, 135), (0.4815, 114), (0.4815, 1)),
    "hepatitis": ((0.2078, 39), (0.1948, 78), (0.2078, 66), (0.1948, 12)),
    "horse": ((0.1848, 15), (0.1793, 184), (0.2011, 151), (0.3641, 8)),
    "ionosphere": ((0.1486, 14), (0.1257, 176), (0.1200, 142), (0.1429, 41)),
    "monks1": ((0.2037, 43), (0.3426, 216), (0.2546, 163), (0.5093, 1)),
    "pima": ((0.2474, 5), (0.2630, 384), (0.2552, 202), (0.2578, 69)),
    "tictactoe": ((0.2129, 19), (0.3403, 479), (0.3883, 340), (0.0480, 170)),
    "titanic": ((0.2164, 15), (0.2309, 1101), (0.2309, 769), (0.3200, 1)),
    "wine": ((0.0337, 9), (0.0225, 89), (0.4157, 85), (0.0449, 20)),
    "yeast": ((0.2736, 23), (0.3369, 742), (0.2749, 422), (0.2709, 66)),
    "zoo": ((0.0400, 18), (0.0400, 51), (0.1000, 46), (0.1000, 12)),
}

POSITIVE: dict[str, tuple[Any, ...]] = {
    "letterAB": ("A",),
    "balance": ("L",),
    "car": ("unacc",),
    "cmc": (1,),
    "ecoli": ("cp",),
    "glass": (1, 3),
    "wine": (1,),
    "yeast": ("CYT",),
    "zoo": ("mammal",),
}
"""Classes taken as positive; the last class for the sets that are not listed."""


def read(name: str) -> tuple[Floats, NDArray[np.int64]]:
    """A set of the slides with categories as numbers and two classes."""
    data = load(name)
    columns = []
    for column in data.columns:
        cells = np.asarray(data.X[column])
        if column in data.categorical:
            texts = np.array(["" if c is None or c != c else str(c) for c in cells])
            values = np.unique(texts, return_inverse=True)[1].astype(np.float64)
            values[texts == ""] = np.nan
        else:
            values = cells.astype(np.float64)
        columns.append(values)
    positive = POSITIVE.get(name, tuple(np.unique(data.y)[-1:]))
    return np.column_stack(columns), np.isin(data.y, positive).astype(np.int64)


@dataclass(frozen=True)
class Line:
    """Mean test risk and mean number of voters of one method on one set."""

    name: str
    risk: float
    voters: float


def halves(y: NDArray[np.int64], splits: int, first: int = 0) -> Iterator[tuple[Any, Any]]:
    """Stratified half/half splits, of seeds ``first`` and up; an odd row is for training."""
    from sklearn.model_selection import train_test_split

    rows, half = np.arange(len(y)), len(y) // 2
    for seed in range(first, first + splits):
        yield train_test_split(rows, test_size=half, stratify=y, random_state=seed)


def filled(X: Floats, train: Any) -> Floats:
    """Missing numbers replaced by the training median, for methods that do not take them."""
    middle = np.nanmedian(X[train], axis=0)
    return np.where(np.isnan(X), np.nan_to_num(middle), X)


def run(
    name: str, methods: dict[str, Callable[[], Any]], splits: int, first: int, *, fill: bool
) -> dict[str, Line]:
    """Every method on the same random half/half splits of one set."""
    X, y = read(name)
    found: dict[str, list[tuple[float, float]]] = {method: [] for method in methods}
    for train, test in halves(y, splits, first):
        for method, make in methods.items():
            model = make()
            rows = filled(X, train) if fill or method.startswith("Ada") else X
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(rows[train], y[train])
            risk = float(np.mean(model.predict(rows[test]) != y[test]))
            found[method].append((risk, voters_of(model)))
    return {m: Line(name, *np.mean(cells, axis=0)) for m, cells in found.items()}


def voters_of(model: Any) -> float:
    if hasattr(model, "n_voters_"):
        return float(model.n_voters_.sum())
    if hasattr(model, "n_support_"):
        return float(model.n_support_.sum())
    stumps = {(t.tree_.feature[0], t.tree_.threshold[0]) for t in model.estimators_}
    return float(len(stumps))


def stump_methods() -> dict[str, Callable[[], Any]]:
    from sklearn.ensemble import AdaBoostClassifier

    from laconic import CqBoostClassifier
    from laconic.votes import (
        CBBoostClassifier,
        CGBoostClassifier,
        LPBoostClassifier,
        MinCqClassifier,
        StumpVoters,
    )

    return {
        "CqBoost": CqBoostClassifier,
        "CqBoost slides": lambda: CqBoostClassifier(
            StumpVoters(constant=False), constraint="slides"
        ),
        "MinCq": MinCqClassifier,
        "AdaBoost 500": lambda: AdaBoostClassifier(n_estimators=500, random_state=0),
        "CG-Boost": CGBoostClassifier,
        "LPBoost": lambda: LPBoostClassifier(nu="cv"),
        "CB-Boost": CBBoostClassifier,
    }


def rbf_methods() -> dict[str, Callable[[], Any]]:
    from sklearn.model_selection import StratifiedKFold

    from laconic import CqBoostClassifier
    from laconic.votes import KernelVoters, MinCqClassifier

    # rows at random: with few distinct rows (titanic has 14) folds by value would ask for
    # predictions where there is no data
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    voters = KernelVoters(gamma="cv")
    return {
        "CqBoost": lambda: CqBoostClassifier(voters, cv=folds),
        "MinCq": lambda: MinCqClassifier(voters, cv=folds),
    }


def print_table(
    methods: dict[str, Callable[[], Any]],
    published: dict[str, Any],
    splits: int,
    first: int,
    *,
    fill: bool,
) -> None:
    """Markdown: our risk/voters per method, then the slides' CqBoost and MinCq."""
    print("| set | " + " | ".join(methods) + " | slides: CqBoost | slides: MinCq |")
    print("|" + "---|" * (len(methods) + 3))
    totals: dict[str, list[tuple[float, float]]] = {method: [] for method in methods}
    for name, cells in published.items():
        lines = run(name, methods, splits, first, fill=fill)
        row = [f"{lines[m].risk:.4f} / {lines[m].voters:.1f}" for m in methods]
        row += [f"{risk:.4f} / {columns}" for risk, columns in cells[:2]]
        print(f"| {name} | " + " | ".join(row) + " |", flush=True)
        for method in methods:
            totals[method].append((lines[method].risk, lines[method].voters))
    means = {method: np.mean(cells, axis=0) for method, cells in totals.items()}
    ours = [f"{means[m][0]:.4f} / {means[m][1]:.1f}" for m in methods]
    theirs = [np.mean([cells[k] for cells in published.values()], axis=0) for k in (0, 1)]
    ours += [f"{mean[0]:.4f} / {mean[1]:.1f}" for mean in theirs]
    print("| mean | " + " | ".join(ours) + " |")


def forest_sets() -> Iterator[tuple[str, Any, NDArray[np.int64]]]:
    """The sets on which trees are voters, made binary, at most 20,000 rows."""
    chosen = {
        "adult": None,
        "spam": None,
        "satimage": "red soil",
        "waveform": 0,
        "covtype": (7, 1),
        "drebin215": None,
    }
    for name, rule in chosen.items():
        data = load(name)
        y, X = data.y, data.X
        if isinstance(rule, tuple):
            kept = np.flatnonzero(np.isin(y, rule))
            y, X, rule = y[kept], X.iloc[kept], rule[0]
        if rule is None:
            rule = np.unique(y)[-1]
        target = (y == rule).astype(np.int64)
        if len(y) > 20_000:
            kept = np.random.default_rng(0).permutation(len(y))[:20_000]
            X, target = X.iloc[kept], target[kept]
        yield name, X, target


def print_forests(splits: int = 2, n_trees: int = 200) -> None:
    """Log loss of a pruned forest, the whole forest and boosted trees."""
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.metrics import log_loss

    from laconic import CqBoostClassifier
    from laconic.data.tables.columns import Schema
    from laconic.votes import ForestVoters
    from laconic.votes.voters.forest import ordinal_matrix

    print(
        "| set | CqBoost on trees | trees | whole forest | whole forest, calibrated alike | "
        "boosted trees | ratio to calibrated |"
    )
    print("|---|---|---|---|---|---|---|")
    means = []
    for name, X, y in forest_sets():
        cells = []
        for train, test in halves(y, splits):
            table = Schema.learn(X).table
            Z = ordinal_matrix(table)
            losses: list[float] = []
            # an endless spread weighs every tree: the whole forest with the same calibration
            for voters in (ForestVoters(n_trees), ForestVoters(n_trees, keep=1.0, spread=1e3)):
                vote = CqBoostClassifier(voters, proba="calibrated", random_state=0)
                vote.fit(X.iloc[train], y[train])
                losses += [log_loss(y[test], vote.predict_proba(X.iloc[test])), vote.n_voters_[0]]
            forest = RandomForestClassifier(n_trees, min_samples_leaf=5, random_state=0)
            boosted = HistGradientBoostingClassifier(random_state=0)
            for model in (forest, boosted):
                model.fit(Z[train], y[train])
                losses.append(log_loss(y[test], model.predict_proba(Z[test])))
            cells.append(losses)
        means.append(np.mean(cells, axis=0))
        print(_forest_row(name, means[-1], n_trees), flush=True)
    print(_forest_row("mean", np.mean(means, axis=0), n_trees))


def _forest_row(name: str, cells: Floats, n_trees: int) -> str:
    ours, trees, calibrated, _, whole, boosted = cells
    return (
        f"| {name} | {ours:.4f} | {trees:.1f} of {n_trees} | {whole:.4f} | {calibrated:.4f} | "
        f"{boosted:.4f} | {ours / calibrated:.3f} |"
    )


DUELS = (
    ("MinCq, kernels", "SVC"),
    ("CqBoost, kernels", "SVC"),
    ("MinCq, stumps", "AdaBoost"),
    ("CqBoost, stumps", "AdaBoost"),
)


def mnist_methods() -> dict[str, Callable[[], Any]]:
    """Votes of kernels, a support vector machine of the same widths, votes of stumps, AdaBoost."""
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import SVC

    from laconic.votes import CqBoostClassifier, KernelVoters, MinCqClassifier, StumpVoters
    from laconic.votes.tuning import WIDTHS

    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    kernels = KernelVoters(gamma="cv", standardise=False)

    def machine() -> Any:
        return _PerColumn(
            lambda d: GridSearchCV(
                SVC(), {"C": [1.0, 10.0, 100.0], "gamma": [w / d for w in WIDTHS]}, cv=folds
            )
        )

    return {
        "MinCq, kernels": lambda: MinCqClassifier(kernels, cv=folds),
        "CqBoost, kernels": lambda: CqBoostClassifier(kernels, cv=folds),
        "SVC": machine,
        # MinCq weighs every stump: two thresholds a pixel keep its program small
        "MinCq, stumps": lambda: MinCqClassifier(StumpVoters(n_thresholds=2), cv=folds),
        "CqBoost, stumps": lambda: CqBoostClassifier(cv=folds),
        "AdaBoost": lambda: AdaBoostClassifier(n_estimators=200, random_state=0),
    }


class _PerColumn:
    """A model whose parameters depend on the number of columns."""

    def __init__(self, make: Callable[[int], Any]) -> None:
        self.make = make

    def fit(self, X: Floats, y: Any) -> Any:
        return self.make(X.shape[1]).fit(X, y)


def print_mnist(rows: int = 500, methods: tuple[str, ...] = ()) -> None:
    """The 45 pairs of digits: test risks on the pair's rows of the test file, then win counts.

    ``rows`` training rows are drawn from the training file. Pixels that vary there are divided by
    their common spread, so that the widths tried fit them.
    """
    data = load("mnist")
    X, y = np.asarray(data.X, dtype=np.float64), data.y
    made = {name: make for name, make in mnist_methods().items() if not methods or name in methods}
    print("| pair | " + " | ".join(made) + " |")
    print("|" + "---|" * (len(made) + 1))
    found: dict[str, list[float]] = {name: [] for name in made}
    for a in range(10):
        for b in range(a + 1, 10):
            pick = np.flatnonzero(np.isin(y[:60_000], (a, b)))
            train = np.random.default_rng(10 * a + b).permutation(pick)[:rows]
            test = 60_000 + np.flatnonzero(np.isin(y[60_000:], (a, b)))
            seen = X[train].std(axis=0) > 0
            spread = X[train][:, seen].std()
            A, B = X[train][:, seen] / spread, X[test][:, seen] / spread
            for name, make in made.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    said = make().fit(A, y[train]).predict(B)
                found[name].append(float(np.mean(said != y[test])))
            cells = [f"{found[name][-1]:.4f}" for name in made]
            print(f"| {a} {b} | " + " | ".join(cells) + " |", flush=True)
    print("| mean | " + " | ".join(f"{np.mean(r):.4f}" for r in found.values()) + " |")
    for ours, theirs in DUELS:
        if ours in found and theirs in found:
            side = np.sign(np.subtract(found[ours], found[theirs]))
            won, tied, lost = (int((side == s).sum()) for s in (-1, 0, 1))
            print(f"{ours} against {theirs}: {won} wins, {tied} ties, {lost} losses")


def main(what: str = "stumps", count: str = "0", first: str = "0", *sets: str) -> None:
    """``count`` splits from seed ``first`` on, or ``count`` training rows for mnist."""
    splits = int(count)
    tables = {
        "stumps": (stump_methods, PUBLISHED_STUMPS),
        "rbf": (rbf_methods, PUBLISHED_RBF),
    }
    if what in tables:
        methods, published = tables[what]
        chosen = {name: published[name] for name in sets or published}
        print_table(methods(), chosen, splits or 5, int(first), fill=what == "rbf")
    elif what == "forest":
        print_forests(splits or 2)
    elif what == "mnist":
        print_mnist(splits or 500)
    else:
        raise SystemExit(f"unknown table {what!r}: stumps, rbf, forest or mnist")


if __name__ == "__main__":
    main(*sys.argv[1:])
