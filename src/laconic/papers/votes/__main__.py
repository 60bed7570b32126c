"""The sets of the slides with this library's defaults, and rivals on the same rows.

``python -m laconic.papers.votes [stumps|rbf|forest|mnist] [splits [first seed [set ...]]]`` prints
a line as soon as its set is done. The data sets are looked for by
:func:`laconic.data.datasets.load`. The slides' own learners are those of ``laconic reproduce 004``.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats
from laconic.data.datasets import load
from laconic.papers.votes import PUBLISHED_STUMPS, filled, halves, read


@dataclass(frozen=True)
class Line:
    """Mean test risk and mean number of voters of one method on one set."""

    name: str
    risk: float
    voters: float


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
    )

    return {
        "CqBoost": CqBoostClassifier,
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
    sets: Sequence[str],
    splits: int,
    first: int,
    *,
    fill: bool,
) -> None:
    """Markdown: our risk/voters per method."""
    print("| set | " + " | ".join(methods) + " |")
    print("|" + "---|" * (len(methods) + 1))
    totals: dict[str, list[tuple[float, float]]] = {method: [] for method in methods}
    for name in sets:
        lines = run(name, methods, splits, first, fill=fill)
        row = [f"{lines[m].risk:.4f} / {lines[m].voters:.1f}" for m in methods]
        print(f"| {name} | " + " | ".join(row) + " |", flush=True)
        for method in methods:
            totals[method].append((lines[method].risk, lines[method].voters))
    means = {method: np.mean(cells, axis=0) for method, cells in totals.items()}
    print(
        "| mean | " + " | ".join(f"{means[m][0]:.4f} / {means[m][1]:.1f}" for m in methods) + " |"
    )
    risks = {method: [risk for risk, _ in cells] for method, cells in totals.items()}
    ours, *others = methods
    print_duels(risks, [(ours, other) for other in others])


def print_duels(risks: dict[str, list[float]], pairs: Sequence[tuple[str, str]]) -> None:
    """On how many sets the first of a pair has the smaller risk, the same, a larger one."""
    for ours, theirs in pairs:
        side = np.sign(np.round(np.subtract(risks[ours], risks[theirs]), 12))
        won, tied, lost = (int((side == s).sum()) for s in (-1, 0, 1))
        print(f"{ours} against {theirs}: {won} wins, {tied} ties, {lost} losses")


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
    print_duels(found, [pair for pair in DUELS if set(pair) <= set(found)])


def main(what: str = "stumps", count: str = "0", first: str = "0", *sets: str) -> None:
    """``count`` splits from seed ``first`` on, or ``count`` training rows for mnist."""
    splits = int(count)
    tables = {"stumps": stump_methods, "rbf": rbf_methods}
    if what in tables:
        asked = sets or tuple(PUBLISHED_STUMPS)
        print_table(tables[what](), asked, splits or 5, int(first), fill=what == "rbf")
    elif what == "forest":
        print_forests(splits or 2)
    elif what == "mnist":
        print_mnist(splits or 500)
    else:
        raise SystemExit(f"unknown table {what!r}: stumps, rbf, forest or mnist")


if __name__ == "__main__":
    main(*sys.argv[1:])
