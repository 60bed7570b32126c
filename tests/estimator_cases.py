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


CASES: dict[str, Callable[[], list[BaseEstimator]]] = {
    "PlainLogisticRegression": _plain,
    "DecisionClassifier": _decision,
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
