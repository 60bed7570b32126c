"""Roy, "Un algorithme d'apprentissage parcimonieux maximisant le désaccord" (13 February 2015).

The tables of the slides come from one half/half split per set: all risks are multiples of
1/floor(N/2). Categories are read as numbers, stumps have ten equally spaced thresholds in both
directions. How sets of more than two classes were made binary is not said; the choice here is in
:data:`POSITIVE`.

``python -m laconic.papers.votes [stumps|rbf|forest|mnist]`` prints the tables again with our
numbers. The data sets are looked for by :func:`laconic.data.datasets.load`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.data.datasets import load

Floats = NDArray[np.float64]

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


def halves(y: NDArray[np.int64], splits: int) -> Iterator[tuple[Any, Any]]:
    from sklearn.model_selection import train_test_split

    for seed in range(splits):
        yield train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=seed)


def filled(X: Floats, train: Any) -> Floats:
    """Missing numbers replaced by the training median, for methods that do not take them."""
    middle = np.nanmedian(X[train], axis=0)
    return np.where(np.isnan(X), np.nan_to_num(middle), X)


def run(
    name: str, methods: dict[str, Callable[[], Any]], splits: int, *, fill: bool
) -> dict[str, Line]:
    """Every method on the same random half/half splits of one set."""
    X, y = read(name)
    found: dict[str, list[tuple[float, float]]] = {method: [] for method in methods}
    for train, test in halves(y, splits):
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
        return float(model.n_voters_)
    if hasattr(model, "best_estimator_"):
        return voters_of(model.best_estimator_)
    if hasattr(model, "n_support_"):
        return float(model.n_support_.sum())
    stumps = {(t.tree_.feature[0], t.tree_.threshold[0]) for t in model.estimators_}
    return float(len(stumps))


def stump_methods() -> dict[str, Callable[[], Any]]:
    from sklearn.ensemble import AdaBoostClassifier

    from laconic import (
        CBBoostClassifier,
        CGBoostClassifier,
        CqBoostClassifier,
        LPBoostClassifier,
        MinCqClassifier,
        StumpVoters,
    )

    return {
        "CqBoost": CqBoostClassifier,
        "CqBoost slides": lambda: CqBoostClassifier(StumpVoters(constant=False), form="slides"),
        "MinCq": MinCqClassifier,
        "AdaBoost 500": lambda: AdaBoostClassifier(n_estimators=500, random_state=0),
        "CG-Boost": CGBoostClassifier,
        "LPBoost": lambda: LPBoostClassifier(nu="cv"),
        "CB-Boost": CBBoostClassifier,
    }


class _BestGamma:
    """Width of the kernel by cross-validated risk, for any vote."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self.make = make

    def fit(self, X: Floats, y: Any) -> _BestGamma:
        from sklearn.model_selection import cross_val_score

        from laconic import KernelVoters

        d = X.shape[1]
        tried = [KernelVoters(gamma=g / d) for g in (0.02, 0.1, 0.5, 2.0)]
        scores = [cross_val_score(self.make(voters), X, y, cv=3).mean() for voters in tried]
        self.best_estimator_ = self.make(tried[int(np.argmax(scores))]).fit(X, y)
        return self

    def predict(self, X: Floats) -> Any:
        return self.best_estimator_.predict(X)


def rbf_methods() -> dict[str, Callable[[], Any]]:
    from sklearn.model_selection import StratifiedKFold

    from laconic import CqBoostClassifier, MinCqClassifier

    # rows at random: with few distinct rows (titanic has 14) folds by value would ask for
    # predictions where there is no data
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    return {
        "CqBoost": lambda: _BestGamma(lambda voters: CqBoostClassifier(voters, cv=folds)),
        "MinCq": lambda: _BestGamma(lambda voters: MinCqClassifier(voters, cv=folds)),
    }


def print_table(
    methods: dict[str, Callable[[], Any]],
    published: dict[str, Any],
    splits: int,
    *,
    fill: bool,
) -> None:
    """Markdown: our risk/voters per method, then the slides' CqBoost and MinCq."""
    print("| set | " + " | ".join(methods) + " | slides: CqBoost | slides: MinCq |")
    print("|" + "---|" * (len(methods) + 3))
    totals: dict[str, list[tuple[float, float]]] = {method: [] for method in methods}
    for name, cells in published.items():
        lines = run(name, methods, splits, fill=fill)
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

    from laconic import CqBoostClassifier, ForestVoters
    from laconic.data.columns import Schema
    from laconic.estimators.given_voters import ordinal_matrix

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
                vote = CqBoostClassifier(voters, probability="calibrated", random_state=0)
                vote.fit(X.iloc[train], y[train])
                losses += [log_loss(y[test], vote.predict_proba(X.iloc[test])), vote.n_voters_]
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


def print_mnist(rows: int = 1000) -> None:
    """The 45 pairs of digits: votes of kernels against a support vector machine, stumps against
    AdaBoost; ``rows`` training rows and as many test rows per pair."""
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.svm import SVC

    from laconic import CqBoostClassifier, KernelVoters, MinCqClassifier

    data = load("mnist")
    X, y = np.asarray(data.X, dtype=np.float64) / 255.0, data.y
    wins = {"MinCq/SVC": [0, 0, 0], "CqBoost/SVC": [0, 0, 0], "CqBoost/AdaBoost": [0, 0, 0]}
    for a in range(10):
        for b in range(a + 1, 10):
            pick = np.random.default_rng(0).permutation(np.flatnonzero(np.isin(y, (a, b))))
            train, test = pick[:rows], pick[rows : 2 * rows]
            seen = X[train].std(axis=0) > 0
            A, B = X[train][:, seen], X[test][:, seen]
            kernel = KernelVoters(gamma=0.02, standardise=False)
            risks = {}
            models = {
                "SVC": SVC(C=10.0, gamma=0.02),
                "MinCq": MinCqClassifier(kernel, cv=3),
                "CqBoost": CqBoostClassifier(kernel, cv=3),
                "stumps": CqBoostClassifier(cv=3),
                "AdaBoost": AdaBoostClassifier(n_estimators=200, random_state=0),
            }
            for name, model in models.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    risks[name] = np.mean(model.fit(A, y[train]).predict(B) != y[test])
            for pair, ours, theirs in (
                ("MinCq/SVC", "MinCq", "SVC"),
                ("CqBoost/SVC", "CqBoost", "SVC"),
                ("CqBoost/AdaBoost", "stumps", "AdaBoost"),
            ):
                wins[pair][int(np.sign(risks[ours] - risks[theirs])) + 1] += 1
            print(a, b, {k: round(float(v), 4) for k, v in risks.items()}, flush=True)
    for pair, (won, tied, lost) in wins.items():
        print(f"{pair}: {won} wins, {tied} ties, {lost} losses")


def main(what: str = "stumps", splits: int = 5) -> None:
    if what == "stumps":
        print_table(stump_methods(), PUBLISHED_STUMPS, splits, fill=False)
    elif what == "rbf":
        print_table(rbf_methods(), PUBLISHED_RBF, splits, fill=True)
    elif what == "forest":
        print_forests()
    elif what == "mnist":
        print_mnist()
    else:
        raise SystemExit(f"unknown table {what!r}: stumps, rbf, forest or mnist")


if __name__ == "__main__":
    main(*sys.argv[1:2], *(int(n) for n in sys.argv[2:3]))
