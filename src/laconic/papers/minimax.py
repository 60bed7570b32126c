"""Fillatre, Gilet and Barbosa: the minimax classifier for discrete data, its two experiments.

``python -m laconic.papers.minimax`` prints the paper's Table 1 beside ours, and the comparison of
the user guide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from laconic._typing import Floats, Ints
from laconic.data.datasets import load
from laconic.minimax.estimator import MinimaxClassifier

AGE_LIMITS = (5, 11, 16, 21)
TRAIN_SHARE = 0.75
SHIFTED_PRIOR = np.array([0.18, 0.05, 0.57, 0.11, 0.09])

PUBLISHED: Mapping[str, Any] = MappingProxyType(
    {
        "pi_star": (0.02, 0.26, 0.27, 0.27, 0.18),
        "V(pi_star)": (48.43, 1.12),
        "r(pi_hat, minimax)": (48.59, 2.80),
        "r(pi_hat, Bayes)": (30.16, 0.31),
        "r(pi_hat, logistic)": (28.32, 0.44),
        "test minimax": (55.83, 4.08),
        "test Bayes": (71.64, 3.92),
        "test logistic": (57.12, 4.08),
        "gaussians pi_star": (0.42, 0.58),
    }
)

GAUSSIAN_MEANS = np.array([[37.5, 6.5, 19.0], [39.0, 7.0, 20.0]])
GAUSSIAN_SPREADS = np.array([[1.0, 1.5, 1.2], [2.0, 0.8, 2.0]])


def gaussians(n: int, seed: int = 0, prior: float = 0.2) -> tuple[Floats, Ints]:
    """The paper's two classes of three independent gaussians; class 0 has the given share."""
    draw = np.random.default_rng(seed)
    y = (draw.random(n) >= prior).astype(np.int64)
    return draw.normal(GAUSSIAN_MEANS[y], GAUSSIAN_SPREADS[y]), y


def abalone() -> tuple[Any, Ints]:
    """Abalone in five classes of age, counted in rings: 1-4, 5-10, 11-15, 16-20, 21 and more."""
    data = load("abalone")
    return data.X, np.searchsorted(AGE_LIMITS, data.y.astype(np.int64), side="right")


@dataclass(frozen=True)
class Split:
    """One trial: 75 % of each class to learn; the rest, and a part of it in the shifted mix."""

    train: Ints
    rest: Ints
    shifted: Ints


def abalone_splits(y: Ints, n_trials: int, seed: int = 0) -> Iterator[Split]:
    """Stratified splits; the shifted test holds as many rows as its rarest class allows."""
    draw = np.random.default_rng(seed)
    for _ in range(n_trials):
        train, rest = [], []
        for k in range(len(SHIFTED_PRIOR)):
            rows = draw.permutation(np.flatnonzero(y == k))
            cut = round(TRAIN_SHARE * len(rows))
            train.append(rows[:cut])
            rest.append(rows[cut:])
        size = min(len(r) / share for r, share in zip(rest, SHIFTED_PRIOR, strict=True))
        taken = [r[: round(size * s)] for r, s in zip(rest, SHIFTED_PRIOR, strict=True)]
        yield Split(*(np.concatenate(part) for part in (train, rest, taken)))


def paper_classifier(**changes: Any) -> MinimaxClassifier:
    """The paper's settings: three bins of equal width, 100 subgradient steps, one rule."""
    settings: dict[str, Any] = {
        "n_bins": 3,
        "binning": "width",
        "smoothing": "nearest",
        "solver": "subgradient",
        "max_iter": 100,
        "tie": "deterministic",
        "tol": 1.0,  # the paper runs its iterations and asks for no certificate
        "cv": None,
    }
    return MinimaxClassifier(**{**settings, **changes})


def table_1(n_trials: int = 80, seed: int = 0) -> dict[str, Floats]:
    """One value per trial of the rows of Table 1 that concern discrete rules, in percent."""
    X, y = abalone()
    found: dict[str, list[Any]] = {}

    def keep(name: str, value: Any) -> None:
        found.setdefault(name, []).append(value)

    for split in abalone_splits(y, n_trials, seed):
        model = paper_classifier().fit(X.iloc[split.train], y[split.train])
        bayes = model.discrete_bayes()
        exact = paper_classifier(solver="auto", tie="randomized", tol=1e-8)
        exact.fit(X.iloc[split.train], y[split.train])
        test, truth = X.iloc[split.shifted], y[split.shifted]
        keep("pi_star", model.least_favorable_prior_)
        keep("V(pi_star)", 100 * model.minimax_risk_)
        keep("V exact", 100 * exact.minimax_risk_)
        keep("r(pi_hat, minimax)", 100 * model.class_prior_ @ model.class_risks_)
        keep("r(pi_hat, randomized)", 100 * exact.class_prior_ @ exact.class_risks_)
        keep("r(pi_hat, Bayes)", 100 * bayes.class_prior_ @ bayes.class_risks_)
        keep("test minimax", 100 * np.mean(model.predict(test) != truth))
        # the risk of a randomised rule is its mean over draws
        decided = exact.predict_proba(test)
        keep("test randomized", 100 * (1 - decided[np.arange(len(truth)), truth].mean()))
        keep("test randomized, drawn", 100 * np.mean(exact.predict(test) != truth))
        keep("test Bayes", 100 * np.mean(bayes.predict(test) != truth))
        keep("worst class, minimax", 100 * model.class_risks_.max())
        keep("worst class, randomized", 100 * exact.class_risks_.max())
    return {name: np.array(values) for name, values in found.items()}


def class_risks_of(decided: Floats, y: Ints, n_classes: int) -> Floats:
    """Share of wrong decisions in each class, from decision probabilities (n, K)."""
    wrong = 1.0 - decided[np.arange(len(y)), y]
    return np.bincount(y, wrong, minlength=n_classes) / np.bincount(y, minlength=n_classes)


def compare(
    models: Mapping[str, Callable[[], Any]], n_splits: int = 10, seed: int = 0
) -> dict[str, Floats]:
    """Held-out Abalone: mean over splits of worst, natural and balanced risk, then each class."""
    X, y = abalone()
    rows: dict[str, list[Floats]] = {name: [] for name in models}
    shares = np.bincount(y) / len(y)
    for split in abalone_splits(y, n_splits, seed):
        for name, make in models.items():
            model = make().fit(X.iloc[split.train], y[split.train])
            if isinstance(model, MinimaxClassifier):
                decided = model.predict_proba(X.iloc[split.rest])
            else:
                decided = np.eye(len(shares))[model.predict(X.iloc[split.rest])]
            risks = class_risks_of(decided, y[split.rest], len(shares))
            summary = [risks.max(), shares @ risks, risks.mean()]
            rows[name].append(np.concatenate((summary, risks)))
    return {name: np.mean(values, axis=0) for name, values in rows.items()}


def competitors() -> dict[str, Callable[[], Any]]:
    """The models of the user guide's table; balanced logistic regression is the one to beat."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    from laconic.bayes.estimator import WeightedNaiveBayes
    from laconic.linear.estimator import GrayZoneLogisticRegression
    from laconic.minimax.prior_classifier import MinimaxPriorClassifier

    def on_numbers(model: Any) -> Any:
        encode = make_column_transformer((OneHotEncoder(), ["Sex"]), remainder=StandardScaler())
        return make_pipeline(encode, model)

    def logistic(**changes: Any) -> Any:
        return on_numbers(LogisticRegression(max_iter=2000, **changes))

    def forest() -> Any:
        return on_numbers(RandomForestClassifier(100, min_samples_leaf=3, random_state=0))

    return {
        "MinimaxClassifier()": lambda: MinimaxClassifier(cv=None),
        "the same, 3 bins of equal width": lambda: MinimaxClassifier(binning="width", cv=None),
        "the same, 5 bins": lambda: MinimaxClassifier(n_bins=5, cv=None),
        "the same, MODL bins": lambda: MinimaxClassifier(binning="modl", cv=None),
        "the same, k-means": lambda: MinimaxClassifier(profiles="kmeans", cv=None),
        "the same, tree leaves": lambda: MinimaxClassifier(profiles="tree", cv=None),
        "the paper's rule": paper_classifier,
        "discrete Bayes rule": lambda: _Bayes(),
        "logistic regression": logistic,
        "logistic regression, balanced": lambda: logistic(class_weight="balanced"),
        "MinimaxPrior(logistic)": lambda: MinimaxPriorClassifier(logistic()),
        "MinimaxPrior(balanced logistic)": lambda: MinimaxPriorClassifier(
            logistic(class_weight="balanced")
        ),
        "MinimaxPrior(gray-zone logistic)": lambda: MinimaxPriorClassifier(
            on_numbers(GrayZoneLogisticRegression())
        ),
        "weighted naive Bayes": lambda: WeightedNaiveBayes(random_state=0),
        "MinimaxPrior(weighted naive Bayes)": lambda: MinimaxPriorClassifier(
            WeightedNaiveBayes(random_state=0)
        ),
        "random forest": forest,
        "MinimaxPrior(forest)": lambda: MinimaxPriorClassifier(forest()),
    }


class _Bayes:
    """The paper's delta^B: the discrete Bayes rule at the training prior."""

    def fit(self, X: Any, y: Ints) -> MinimaxClassifier:
        return MinimaxClassifier(cv=None).fit(X, y).discrete_bayes()


def main() -> None:
    print("| Abalone, 80 trials | paper | ours |\n|---|---|---|")
    for name, values in table_1().items():
        printed = PUBLISHED.get(name, "")
        if values.ndim == 2:
            print(f"| {name} | {printed} | {values.mean(axis=0).round(3).tolist()} |")
        else:
            shown = f"{printed[0]} ± {printed[1]}" if printed else ""
            print(f"| {name} | {shown} | {values.mean():.2f} ± {values.std():.2f} |")
    for n_bins in (2, 3, 10):
        model = MinimaxClassifier(n_bins=n_bins, smoothing="nearest", cv=None)
        prior = model.fit(*gaussians(10_000)).least_favorable_prior_
        print(f"gaussians, {n_bins} quantile bins: pi* = {prior.round(3)} (paper 0.42, 0.58)")
    print("\n| Abalone held out | worst class | natural | balanced | by class |")
    print("|---|---|---|---|---|")
    for name, values in compare(competitors()).items():
        by_class = " ".join(f"{v:.2f}" for v in values[3:])
        print(f"| {name} | {values[0]:.3f} | {values[1]:.3f} | {values[2]:.3f} | {by_class} |")


if __name__ == "__main__":
    main()
