"""What the draws of document 004 give: halves of the tables, figures, identities of the programs.

Each function is one draw of :meth:`laconic.papers.registry.Draws.each`: arguments and value are
plain numbers, texts, lists and dicts.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np

from laconic._typing import Floats
from laconic.data.datasets import DataSet, load
from laconic.papers.votes import filled, read, slides_half
from laconic.papers.votes.form import (
    MU,
    RBF,
    WIDTHS,
    by_value,
    fitted,
    half_results,
    kernel_votes,
    min_cq_vote,
    stump_votes,
)
from laconic.votes.criterion import MarginMoments, PacBayes, divergence_from_uniform

ROUNDS = (1, 2, 3, 5, 8, 12, 20, 35, 60, 100)
"""Rounds of AdaBoost after which a vote is kept."""
FEWEST = 6
"""Training rows of a class below which three folds say nothing of it."""


def half(kind: str, name: str, seed: int) -> dict[str, list[float]]:
    """Test risk and columns of the four methods on one random half of a set."""
    X, y = read(name)
    train, test = slides_half(y, seed)
    found = half_results(filled(X, train), y, train, test, kind)
    return {method: [float(risk), float(columns)] for method, (risk, columns) in found.items()}


def other_values(kind: str, name: str, seed: int, method: str) -> dict[str, list[float]]:
    """The same of one method with every value of what the slides leave open, by its name."""
    X, y = read(name)
    train, test = slides_half(y, seed)
    every = by_value(filled(X, train), y, train, test, kind, method)
    return {label: [float(risk), float(columns)] for label, (risk, columns) in every.items()}


def other_classes(kind: str, name: str, seed: int, method: str) -> dict[str, list[float]]:
    """The same of one method with every class of a set against the rest."""
    out = {}
    for own in np.unique(load(name).y):
        X, y = read(name, (own,))
        train, test = slides_half(y, seed)
        if min(np.bincount(y[train], minlength=2)) >= FEWEST:
            found = half_results(filled(X, train), y, train, test, kind, (method,))
            out[f"class {own} against the rest"] = [float(value) for value in found[method]]
    return out


def ada_votes(name: str, seed: int) -> list[list[float]]:
    """Gibbs risk, C-bound and risk on the test half of votes during a run of AdaBoost."""
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.tree import DecisionTreeClassifier

    X, y = read(name)
    train, test = slides_half(y, seed)
    X, signs = filled(X, train), np.where(y == 1, 1.0, -1.0)
    stump = DecisionTreeClassifier(max_depth=1, random_state=0)
    model = AdaBoostClassifier(stump, n_estimators=ROUNDS[-1], random_state=0)
    model.fit(X[train], signs[train])
    votes = np.column_stack([own.predict(X[test]) for own in model.estimators_])
    out = []
    for rounds in ROUNDS:
        weights = model.estimator_weights_[: min(rounds, votes.shape[1])]
        if weights.sum() <= 0.0:
            continue
        margins = signs[test] * (votes[:, : len(weights)] @ (weights / weights.sum()))
        own = MarginMoments.of(margins)
        out.append([own.gibbs_risk, own.c_bound(), float(np.mean(margins <= 1e-12))])
    return out


@cache
def _mnist() -> tuple[Floats, Any]:
    data: DataSet = load("mnist")
    return np.asarray(data.X, dtype=np.float64), np.asarray(data.y)


def digits(a: int, b: int, rows: int) -> dict[str, float]:
    """Test risks on a pair of digits from ``rows`` training rows, kernels then stumps.

    Pixels that vary in training are divided by their common spread. Two thresholds a pixel keep
    the program of MinCq small; AdaBoost has the same stumps as its columns.
    """
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import SVC

    X, y = _mnist()
    pick = np.flatnonzero(np.isin(y[:60_000], (a, b)))
    kept = np.random.default_rng(10 * a + b).permutation(pick)[:rows]
    test = 60_000 + np.flatnonzero(np.isin(y[60_000:], (a, b)))
    every = np.concatenate([kept, test])
    seen = X[kept].std(axis=0) > 0.0
    Z = X[every][:, seen] / X[kept][:, seen].std()
    signs = np.where(y[every] == b, 1.0, -1.0)
    train, held = np.arange(len(kept)), np.arange(len(kept), len(every))
    vote, H = fitted([kernel_votes(Z, train, w) for w in WIDTHS], signs, train, "MinCq", RBF)
    out = {"MinCq, kernels": vote.risk(H[held], signs[held])}
    grid = {"C": [1.0, 10.0, 100.0], "gamma": [width / Z.shape[1] for width in WIDTHS]}
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    machine = GridSearchCV(SVC(), grid, cv=folds).fit(Z[train], signs[train])
    out["SVM"] = float(np.mean(machine.predict(Z[held]) != signs[held]))
    H = stump_votes(Z, train, n_thresholds=2)
    out["MinCq, stumps"] = min_cq_vote(H[train], signs[train]).risk(H[held], signs[held])
    boosted = AdaBoostClassifier(n_estimators=100, random_state=0).fit(H[train], signs[train])
    out["AdaBoost"] = float(np.mean(boosted.predict(H[held]) != signs[held]))
    return out


def android(seed: int, rows: int, most: int) -> dict[str, list[float]]:
    """Risks of CqBoost on half of the Android sample, against the number of voters."""
    from laconic.votes import CqBoostClassifier, StumpVoters
    from laconic.votes.displays import VoteCurveDisplay

    data = load("drebin215")
    y = (data.y == np.unique(data.y)[-1]).astype(np.int64)
    kept = np.random.default_rng(seed).permutation(len(y))[:rows]
    X, y = data.X.iloc[kept], y[kept]
    train, test = slides_half(y, seed)
    model = CqBoostClassifier(
        StumpVoters(n_thresholds=1, constant=False),
        mu="least-squares",
        max_voters=most,
        staged=True,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X.iloc[train], y[train])
    curve = VoteCurveDisplay.from_estimator(model, X.iloc[train], y[train], X.iloc[test], y[test])
    return {
        "voters": curve.n_voters.tolist(),
        "train": curve.train_risk.tolist(),
        "test": curve.test_risk.tolist(),
    }


def identities(name: str, seed: int) -> dict[str, float]:
    """Numbers that the slides' derivations say are zero or have a sign, on one half of a set."""
    from laconic.votes import CqBoostClassifier, StumpVoters

    X, y = read(name)
    train, _ = slides_half(y, seed)
    X, signs = filled(X, train)[train], np.where(y[train] == 1, 1.0, -1.0)
    H = stump_votes(X, np.arange(len(signs)))
    A, m = signs[:, None] * H, len(signs)
    family = StumpVoters(constant=False)
    model = CqBoostClassifier(family, constraint="slides").fit(X, y[train])
    dual = model.dual(X, y[train])[0]
    margins = signs * model.vote(X)
    mu, second = float(margins.mean()), float((margins**2).mean())
    value = (
        -m / 4.0 * dual.alpha @ dual.alpha - dual.beta / 2.0 * dual.alpha.sum()
        - dual.beta**2 / 4.0 - dual.beta * mu
    )  # fmt: skip
    least = np.linalg.lstsq(A, np.ones(m), rcond=None)[0]
    votes = [CqBoostClassifier(family, constraint="slides", mu=v).fit(X, y[train]) for v in (MU, 1)]
    edges = np.abs(A.T @ dual.alpha).max()
    margin = np.concatenate([A.mean(axis=0), -A.mean(axis=0)])  # both sides of every stump
    return {
        "relative duality gap": float((second - value) / second),
        # alpha is rounding where the votes interpolate; beta has the scale of what it is made of
        "largest edge": float(edges / abs(dual.beta)),
        "stationarity": float(np.abs(margins + m / 2 * dual.alpha + dual.beta / 2).max()),
        "C-bound above the least squares residual": float(
            model.c_bound_[0] - np.mean((1.0 - A @ least) ** 2)
        ),
        "votes that differ": float(np.mean(votes[0].predict(X) != votes[1].predict(X))),
        # the column of largest edge when alpha is -1/m or +1/m everywhere
        "first margin, -1/m": float(margin[np.argmax(-margin)]),
        "first margin, +1/m": float(margin[np.argmax(margin)]),
    }


def bound_draw(seed: int, m: int) -> dict[str, float]:
    """The slides' PAC-Bayes bound of a vote chosen on m rows, beside its risk on 20,000 others.

    Voters are 40 fixed stumps and their complements, the prior is uniform, the vote is that of
    least second moment at 0.9 of the largest mean margin: few, strong voters, for which the bound
    says something.
    """
    from laconic.votes.nnls import vote_at_mean_margin

    draw = np.random.default_rng(seed)
    X = draw.normal(size=(m + 20_000, 10))
    chance = 1.0 / (1.0 + np.exp(-4.0 * X[:, :3].sum(axis=1)))
    y = np.where(draw.random(len(X)) < chance, 1.0, -1.0)
    H = np.hstack([np.where(cut < X, 1.0, -1.0) for cut in (-0.9, -0.3, 0.3, 0.9)])
    A = y[:m, None] * H[:m]
    gram, first = A.T @ A / m, A.mean(axis=0)
    found = vote_at_mean_margin(gram, first, 0.9 * float(np.abs(first).max()), sides="both")
    q = found.point / np.abs(found.point).sum()
    divergence = divergence_from_uniform(np.abs(q[q != 0.0]), 2.0 * H.shape[1])
    bound = PacBayes(MarginMoments.of(A @ q), m, divergence, 0.05).slides()
    risk = float(np.mean(y[m:] * (H[m:] @ q) <= 1e-12))
    return {"bound": bound, "risk": risk, "violated": float(risk > bound)}
