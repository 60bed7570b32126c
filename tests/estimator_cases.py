"""Instances of every public estimator: the default and at least one that is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

import laconic


def _decision() -> list[BaseEstimator]:
    make = laconic.DecisionClassifier
    return [
        make(LogisticRegression()),
        make(LogisticRegression(C=0.1), prior="balanced"),
    ]


def _plain() -> list[BaseEstimator]:
    return [laconic.PlainLogisticRegression(), laconic.PlainLogisticRegression(C=0.05)]


def _weighted_bayes() -> list[BaseEstimator]:
    make = laconic.WeightedNaiveBayes
    return [
        make(random_state=0),
        make(power=0.5, penalty=0.3, level=3, random_state=0),
        make(optimizer="dgml-vns", level=2, random_state=0),
    ]


def _selective_bayes() -> list[BaseEstimator]:
    make = laconic.SelectiveNaiveBayes
    return [make(n_starts=3, random_state=0), make("map", n_starts=3, random_state=0)]


def _minimax() -> list[BaseEstimator]:
    make = laconic.MinimaxClassifier
    return [
        make(),
        make(tie="deterministic"),
        make(profiles="tree", n_profiles=20, tie="deterministic"),
        make(binning="modl", smoothing="nearest", tie="deterministic", cv=None),
    ]


def _minimax_prior() -> list[BaseEstimator]:
    make = laconic.MinimaxPriorClassifier
    return [make(LogisticRegression()), make(LogisticRegression(C=0.1), cv=3)]


def _modl() -> list[BaseEstimator]:
    make = laconic.ModlEncoder
    return [
        make(),
        make(prior="2006", output="logprob"),
        make(output="onehot", max_parts=4, min_part_weight=5, drop_uninformative=True),
        make(pairs=1, trees=2, random_state=0),
    ]


def _additive() -> list[BaseEstimator]:
    make = laconic.SparseAdditiveClassifier
    return [make(), make(group_penalty=0.02, smoothness=1.0, pairs=2, max_knots=6)]


CASES: dict[str, Callable[[], list[BaseEstimator]]] = {
    "PlainLogisticRegression": _plain,
    "DecisionClassifier": _decision,
    "ModlEncoder": _modl,
    "SparseAdditiveClassifier": _additive,
    "MinimaxClassifier": _minimax,
    "MinimaxPriorClassifier": _minimax_prior,
    "SelectiveNaiveBayes": _selective_bayes,
    "WeightedNaiveBayes": _weighted_bayes,
}


def public_estimators() -> list[str]:
    """Names in ``laconic.__all__`` that are estimator classes."""
    found = []
    for name in laconic.__all__:
        thing: Any = getattr(laconic, name)
        if isinstance(thing, type) and issubclass(thing, BaseEstimator):
            found.append(name)
    return found


def cases_of(name: str) -> list[BaseEstimator]:
    return CASES[name]() if name in CASES else [getattr(laconic, name)()]


def all_cases() -> list[tuple[str, BaseEstimator]]:
    return [(name, case) for name in public_estimators() for case in cases_of(name)]


def expected_failures(case: BaseEstimator) -> dict[str, str]:
    """The one check of scikit-learn that contradicts what a model is for, and why."""
    if isinstance(case, laconic.MinimaxClassifier) and case.tie == "randomized":
        return {"check_classifiers_train": "predict draws, the check wants the likeliest"}
    return {}
