"""Fillatre, Gilet and Barbosa: the minimax classifier for discrete data, its two experiments.

What they print and claim, and how ours is compared with it, is in ``minimax_tables``;
``python -m laconic.papers.minimax`` prints the comparison of the user guide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from scipy.optimize import brentq, linprog
from scipy.stats import norm

from laconic._typing import Floats, Ints
from laconic.data.datasets import load
from laconic.minimax.estimator import MinimaxClassifier

AGE_LIMITS = (5, 11, 16, 21)
TRAIN_SHARE = 0.75
SHIFTED_PRIOR = np.array([0.18, 0.05, 0.57, 0.11, 0.09])

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


def table_1_draw(seed: int, trial: int) -> dict[str, Any]:
    """One trial of Table 1: risks in percent, priors as shares."""
    X, y = abalone()
    split = next(islice(abalone_splits(y, trial + 1, seed), trial, None))
    model = paper_classifier().fit(X.iloc[split.train], y[split.train])
    bayes = model.discrete_bayes()
    exact = paper_classifier(solver="auto", tie="randomized", tol=1e-8)
    exact.fit(X.iloc[split.train], y[split.train])
    test, truth = X.iloc[split.shifted], y[split.shifted]
    # the risk of a randomised rule is its mean over draws
    decided = exact.predict_proba(test)
    return {
        "prior": np.asarray(model.class_prior_).tolist(),
        "pi_star": np.asarray(model.least_favorable_prior_).tolist(),
        "V(pi_star)": 100 * float(model.minimax_risk_),
        "V exact": 100 * float(exact.minimax_risk_),
        "train minimax": 100 * float(model.class_prior_ @ model.class_risks_),
        "train randomized": 100 * float(exact.class_prior_ @ exact.class_risks_),
        "train Bayes": 100 * float(bayes.class_prior_ @ bayes.class_risks_),
        "test minimax": 100 * float(np.mean(model.predict(test) != truth)),
        "test randomized": 100 * float(1 - decided[np.arange(len(truth)), truth].mean()),
        "test Bayes": 100 * float(np.mean(bayes.predict(test) != truth)),
        "worst class, minimax": 100 * float(model.class_risks_.max()),
        "worst class, randomized": 100 * float(exact.class_risks_.max()),
        "test always class 2": 100 * float(np.mean(truth != 1)),
        "train always class 2": 100 * float(np.mean(y[split.train] != 1)),
    }


def peers_draw(seed: int, trial: int, n_trees: int) -> dict[str, float]:
    """The logistic and forest rows of one trial of Table 1, in percent.

    The forest learns the seven numbers in three bins of equal width and the sex as a number, as
    the discrete rules do; it is tested on bins, and on the raw columns.
    """
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = abalone()
    split = next(islice(abalone_splits(y, trial + 1, seed), trial, None))
    raw = np.column_stack([_numbers(X[name]) for name in X.columns])
    binned = _equal_widths(raw, split.train, keep=[list(X.columns).index("Sex")])
    logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    logistic.fit(raw[split.train], y[split.train])
    forest = RandomForestClassifier(n_trees, random_state=trial)
    forest.fit(binned[split.train], y[split.train])

    def risk(model: Any, rows: Floats, which: Ints) -> float:
        return 100 * float(np.mean(model.predict(rows[which]) != y[which]))

    return {
        "train logistic": risk(logistic, raw, split.train),
        "test logistic": risk(logistic, raw, split.shifted),
        "train forest": risk(forest, binned, split.train),
        "test forest": risk(forest, binned, split.shifted),
        "test forest, raw columns": risk(forest, raw, split.shifted),
    }


def _numbers(column: Any) -> Floats:
    """A category as its rank."""
    cells = np.asarray(column)
    if cells.dtype.kind in "fiu":
        return cells.astype(np.float64)
    return np.unique(cells.astype(str), return_inverse=True)[1].astype(np.float64)


def _equal_widths(table: Floats, rows: Ints, keep: Sequence[int], n_bins: int = 3) -> Floats:
    """Bins of equal width between the extremes of ``rows``, counted from 1; ``keep`` as it is."""
    low, high = table[rows].min(axis=0), table[rows].max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    binned = 1 + np.clip(np.floor(n_bins * (table - low) / width), 0, n_bins - 1)
    binned[:, list(keep)] = table[:, list(keep)]
    return np.asarray(binned)


SHARES = tuple(round(0.1 * k, 1) for k in range(11))
"""pi'_1 of the test segments of figure 1."""
FIVE = ("Bayes", "logistic", "forest", "SVM", "minimax")


def figure_1_draw(seed: int, n_train: int, n_bins: int, segments: int) -> dict[str, Any]:
    """pi*_1, and the mean risk of five classifiers on test segments of 1,000 rows by pi'_1."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import KBinsDiscretizer, StandardScaler
    from sklearn.svm import SVC

    X, y = gaussians(n_train, seed)
    rule = paper_classifier(n_bins=n_bins, binning="quantile").fit(X, y)
    bins = KBinsDiscretizer(n_bins, encode="ordinal", quantile_method="averaged_inverted_cdf")
    models = {
        "Bayes": rule.discrete_bayes(),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y),
        "forest": make_pipeline(bins, RandomForestClassifier(100, random_state=seed)).fit(X, y),
        "SVM": make_pipeline(StandardScaler(), SVC()).fit(X, y),
        "minimax": rule,
    }
    draw = np.random.default_rng([seed, 1])
    risks: dict[str, list[float]] = {name: [] for name in models}
    for share in SHARES:
        truth = np.repeat((np.arange(1000) >= round(1000 * share)).astype(int)[None], segments, 0)
        truth = truth.ravel()
        rows = draw.normal(GAUSSIAN_MEANS[truth], GAUSSIAN_SPREADS[truth])
        for name, model in models.items():
            risks[name].append(float(np.mean(model.predict(rows) != truth)))
    return {"pi_star": float(rule.least_favorable_prior_[0]), "risks": risks}


def continuous_pi_star(n: int = 400_000, seed: int = 0) -> float:
    """pi*_1 for the gaussian laws themselves, by Monte Carlo: where both class risks are equal."""
    draw = np.random.default_rng(seed)
    ratios = []
    for k in range(2):
        x = draw.normal(GAUSSIAN_MEANS[k], GAUSSIAN_SPREADS[k], (n, 3))
        logs = [norm.logpdf(x, m, s).sum(axis=1)
                for m, s in zip(GAUSSIAN_MEANS, GAUSSIAN_SPREADS, strict=True)]  # fmt: skip
        ratios.append(logs[0] - logs[1])

    def unequal(prior: float) -> float:
        cut = float(np.log((1.0 - prior) / prior))
        return float(np.mean(ratios[0] < cut) - np.mean(ratios[1] >= cut))

    return float(brentq(unequal, 0.01, 0.99, xtol=1e-4))


def bound_draw(seed: int) -> dict[str, float]:
    """Steps (6) with gamma_n = 1 / n on a random table against the linear program.

    ``error`` is that of 200 steps; ``room`` the least distance over N between the bound (9) and the
    error, positive where (9) holds; ``concave`` the least V((a + b) / 2) - (V(a) + V(b)) / 2.
    """
    draw = np.random.default_rng(seed)
    n_classes, n_profiles = int(draw.integers(2, 11)), int(draw.integers(5, 40))
    p = draw.dirichlet(np.full(n_profiles, 0.3), n_classes)
    best, best_prior = _least_favourable(p)

    def V(prior: Floats) -> float:
        return 1.0 - float((prior[:, None] * p).max(axis=0).sum())

    prior = np.full(n_classes, 1.0 / n_classes)
    squared = float(((prior - best_prior) ** 2).sum())
    reached, room, sums = -np.inf, np.inf, np.zeros(2)
    for n in range(1, 201):
        reached = max(reached, V(prior))
        sums += (1.0 / n**2, 1.0 / n)
        room = min(room, (squared + sums[0]) / (2.0 * sums[1]) - (best - reached))
        chosen = (prior[:, None] * p).argmax(axis=0)
        risks = np.array([1.0 - p[k, chosen == k].sum() for k in range(n_classes)])
        prior = project_simplex(prior + risks / (n * max(1.0, float(np.linalg.norm(risks)))))
    a, b = draw.dirichlet(np.ones(n_classes), (2, 50))
    bend = min(V((u + v) / 2) - (V(u) + V(v)) / 2 for u, v in zip(a, b, strict=True))
    return {"error": best - reached, "room": room, "concave": bend}


def _least_favourable(p: Floats) -> tuple[float, Floats]:
    """max V as a linear program: least sum of z with z_t >= pi_k p_kt."""
    n_classes, n_profiles = p.shape
    rows = np.zeros((n_classes * n_profiles, n_classes + n_profiles))
    for k in range(n_classes):
        own = slice(k * n_profiles, (k + 1) * n_profiles)
        rows[own, k], rows[own, n_classes:] = p[k], -np.eye(n_profiles)
    found = linprog(
        np.r_[np.zeros(n_classes), np.ones(n_profiles)], rows, np.zeros(len(rows)),
        np.r_[np.ones(n_classes), np.zeros(n_profiles)][None], [1.0],
    )  # fmt: skip
    return 1.0 - float(found.fun), np.asarray(found.x[:n_classes])


def project_simplex(point: Floats) -> Floats:
    """The nearest point with entries >= 0 of sum 1.

    >>> project_simplex(np.array([0.5, 1.5])).tolist()
    [0.0, 1.0]
    """
    ordered = np.sort(point)[::-1]
    shifts = (np.cumsum(ordered) - 1.0) / np.arange(1, len(point) + 1)
    return np.asarray(np.maximum(point - shifts[np.flatnonzero(ordered > shifts)[-1]], 0.0))


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
    print("| Abalone held out | worst class | natural | balanced | by class |")
    print("|---|---|---|---|---|")
    for name, values in compare(competitors()).items():
        by_class = " ".join(f"{v:.2f}" for v in values[3:])
        print(f"| {name} | {values[0]:.3f} | {values[1]:.3f} | {values[2]:.3f} | {by_class} |")


if __name__ == "__main__":
    main()
