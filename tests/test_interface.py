"""One vocabulary: what may be given by place, and attributes that keep their type."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import get_tags

from estimator_cases import cases_of, public_classes, public_estimators

# a blend of its default members and the main job are fitted by their own tests, and take long
SEVERAL = [
    name
    for name in public_estimators()
    if is_classifier(case := cases_of(name)[0])
    and get_tags(case).classifier_tags.multi_class
    and name not in ("BlendedClassifier", "LaconicClassifier")
]


@pytest.mark.parametrize("name", public_estimators())
def test_at_most_two_parameters_go_by_place(name):
    given = inspect.signature(public_classes()[name]).parameters.values()
    by_place = [p.name for p in given if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert len(by_place) <= 2, f"{name}: {by_place}"


def kind(value: Any) -> Any:
    """Type of an attribute, and how many axes an array has."""
    if isinstance(value, np.ndarray):
        return "array", value.ndim
    if isinstance(value, float | int | np.number) and not isinstance(value, bool):
        return "number"
    return type(value).__name__


def attributes(case: BaseEstimator, n_classes: int) -> dict[str, Any]:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(60, 2)).round(2)
    y = np.digitize(X[:, 0] + 0.5 * draw.normal(size=60), [0.0] if n_classes == 2 else [-0.5, 0.5])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(case).fit(X, y)
    named = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    named = [name for name in named if name != "positive_"]  # a class, or None where there is none
    return {name: kind(getattr(model, name)) for name in named}


@pytest.mark.parametrize("name", SEVERAL)
def test_attributes_do_not_change_type_with_the_number_of_classes(name):
    case = cases_of(name)[0]
    two, three = attributes(case, 2), attributes(case, 3)
    changed = {a: (two[a], three[a]) for a in two.keys() & three.keys() if two[a] != three[a]}
    assert not changed
