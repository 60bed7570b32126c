"""The contract: what every public estimator does, with default and other parameters."""

from __future__ import annotations

import pickle
import re
import warnings
from collections import Counter
from collections.abc import Callable
from inspect import signature
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import has_fit_parameter

from estimator_cases import (
    all_cases,
    cases_of,
    expected_failures,
    public_classes,
    public_estimators,
)
from laconic.core.contract import TableReader

PICKLE_BYTES = 200_000
OUTPUTS = ("predict_proba", "decision_function", "predict", "transform")


@parametrize_with_checks(
    [case for _, case in all_cases()], expected_failed_checks=expected_failures
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the checks feed is often degenerate on purpose
        check(estimator)


def test_the_guide_explains_every_parameter_that_families_share():
    page = (Path(__file__).parent.parent / "docs" / "parameters.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    told = {name for first in rows for name in re.findall(r"`(\w+)`", first)}
    every = [name for known in public_classes().values() for name in signature(known).parameters]
    assert {name for name, times in Counter(every).items() if times > 1} <= told
    assert told <= {*every, "decision_function", "predict", "predict_proba"}


def test_every_public_estimator_has_a_default_and_another_case():
    for name in public_estimators():
        cases = cases_of(name)
        assert len(cases) >= 2, name
        assert len({str(case.get_params()) for case in cases}) == len(cases), name


def cases_where(wanted: Callable[[BaseEstimator], bool] = lambda case: True):
    """Parametrise a test by the cases it concerns."""
    seen: Counter[str] = Counter()
    chosen = []
    for name, case in all_cases():
        if wanted(case):
            chosen.append(pytest.param(case, id=f"{name}-{seen[name]}"))
        seen[name] += 1
    return pytest.mark.parametrize("case", chosen)


def is_weighted(case: BaseEstimator) -> bool:
    return has_fit_parameter(case, "sample_weight")


def rows_for(case: BaseEstimator, n: int = 120, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """A table the estimator declares it accepts, with a class that depends on it."""
    draw = np.random.default_rng(seed)
    tags = get_tags(case).input_tags
    score = draw.normal(size=n)
    table = {
        "signal": np.round(score + draw.normal(size=n), 3),
        "count of things": draw.integers(0, 6, n).astype(float),
        "noise": np.round(draw.normal(size=n), 3),
    }
    if tags.categorical:
        cells = np.where(score > 0.5, "high", np.where(draw.random(n) < 0.5, "low", "<script>"))
        table["level"] = cells.astype(object)
    y = np.where(score + 0.7 * draw.normal(size=n) > 0.4, "yes", "no")
    frame = pd.DataFrame(table)
    if tags.allow_nan:
        frame.loc[draw.random(n) < 0.1, "noise"] = np.nan
        if tags.categorical:
            frame.loc[draw.random(n) < 0.1, "level"] = None
    return frame, y


def target_for(case: BaseEstimator, y: np.ndarray) -> np.ndarray:
    return y if is_classifier(case) or get_tags(case).transformer_tags else (y == "yes") + 0.0


def fitted(case: BaseEstimator, X, y, **fit_params) -> BaseEstimator:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(case).fit(X, target_for(case, y), **fit_params)


def outputs(model: BaseEstimator, X) -> dict[str, np.ndarray]:
    found = {}
    for name in OUTPUTS:
        if hasattr(model, name):
            found[name] = np.asarray(getattr(model, name)(X))
    assert found
    return found


def assert_same(a: dict[str, np.ndarray], b: dict[str, np.ndarray], **tolerance: float) -> None:
    assert a.keys() == b.keys()
    for name in a:
        if a[name].dtype.kind == "f" and tolerance:
            np.testing.assert_allclose(a[name], b[name], err_msg=name, **tolerance)
        else:
            np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def scores_only(found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Without hard labels, which may flip on a tie when weights are summed in another order."""
    kept = {name: found[name] for name in found if name != "predict"}
    return kept or found


@cases_where(is_weighted)
def test_weight_is_repetition_and_zero_weight_is_absence(case):
    X, y = rows_for(case)
    weight = np.random.default_rng(1).integers(0, 4, len(y)).astype(float)
    again = np.repeat(np.arange(len(y)), weight.astype(int))
    weighted = outputs(fitted(case, X, y, sample_weight=weight), X)
    repeated = outputs(fitted(case, X.iloc[again], y[again]), X)
    assert_same(scores_only(weighted), scores_only(repeated), rtol=2e-4, atol=2e-5)
    kept = weight > 0
    absent = outputs(fitted(case, X[kept], y[kept], sample_weight=weight[kept]), X)
    assert_same(scores_only(weighted), scores_only(absent), rtol=1e-9, atol=1e-12)


@cases_where(lambda case: is_classifier(case) and hasattr(case, "predict_proba"))
def test_log_probabilities_are_logarithms(case):
    X, y = rows_for(case)
    model = fitted(case, X, y)
    with np.errstate(divide="ignore"):
        expected = np.log(model.predict_proba(X))
    np.testing.assert_array_equal(model.predict_log_proba(X), expected)


@cases_where(lambda case: is_weighted(case) and is_classifier(case))
def test_a_class_of_zero_weight_is_unknown(case):
    X, y = rows_for(case)
    y = np.append(y, "never")
    X = pd.concat([X, X.iloc[:1]])
    weight = np.append(np.ones(len(y) - 1), 0.0)
    model = fitted(case, X, y, sample_weight=weight)
    assert list(model.classes_) == ["no", "yes"]


@cases_where()
def test_pickle_clone_and_size(case):
    X, y = rows_for(case)
    model = fitted(case, X, y)
    stored = pickle.dumps(model)
    assert len(stored) < PICKLE_BYTES
    assert_same(outputs(pickle.loads(stored), X), outputs(model, X))
    assert_same(outputs(fitted(clone(model), X, y), X), outputs(model, X))


@cases_where()
def test_frames_and_arrays_agree(case):
    X, y = rows_for(case)
    from_pandas = outputs(fitted(case, X, y), X)
    frame = pl.from_pandas(X)
    assert_same(from_pandas, outputs(fitted(case, frame, y), frame))
    array = X.to_numpy(dtype=object if X["signal"].dtype == object or "level" in X else float)
    assert_same(from_pandas, outputs(fitted(case, array, y), array))


@cases_where(lambda case: isinstance(case, TableReader))
def test_columns_are_found_by_name(case):
    X, y = rows_for(case)
    model = fitted(case, X, y)
    shuffled = X[X.columns[::-1]].assign(extra=1.0)
    assert_same(outputs(model, shuffled), outputs(model, X))
    with pytest.raises(ValueError, match="no column 'signal'"):
        model.predict(X.drop(columns="signal")) if hasattr(model, "predict") else model.transform(
            X.drop(columns="signal")
        )


@cases_where()
def test_a_row_does_not_depend_on_its_batch(case):
    X, y = rows_for(case)
    model = fitted(case, X, y)
    whole = outputs(model, X)
    for rows in (slice(0, 1), slice(3, 50), slice(119, 120)):
        alone = outputs(model, X.iloc[rows])
        assert_same(alone, {name: whole[name][rows] for name in whole}, rtol=1e-12, atol=1e-12)


@cases_where(lambda case: "n_jobs" in case.get_params())
def test_n_jobs_changes_nothing(case):
    X, y = rows_for(case)
    one = fitted(clone(case).set_params(n_jobs=1), X, y)
    two = fitted(clone(case).set_params(n_jobs=2), X, y)
    assert_same(outputs(one, X), outputs(two, X))


@cases_where(lambda case: hasattr(case, "transform"))
def test_transformers_name_their_columns(case):
    X, y = rows_for(case)
    model = clone(case).set_output(transform="pandas")
    frame = model.fit(X, y).transform(X)
    assert list(frame.columns) == list(model.get_feature_names_out())


@cases_where(is_classifier)
def test_degenerate_input_is_refused_in_words(case):
    X, y = rows_for(case)
    with pytest.raises(ValueError, match="class"):
        clone(case).fit(X, np.full(len(y), "no"))
    with pytest.raises(ValueError):
        clone(case).fit(X.iloc[:1], y[:1])
    with pytest.raises(ValueError):
        clone(case).fit(X.iloc[:0], y[:0])
    with pytest.raises(ValueError, match=r"NaN|missing"):
        clone(case).fit(X, np.append(np.nan, (y[1:] == "yes").astype(float)))


@cases_where()
def test_huge_scales_give_a_finite_result_or_a_sentence(case):
    X, y = rows_for(case)
    X["signal"] *= 1e300
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = outputs(fitted(case, X, y), X)
    except ValueError as error:
        assert "signal" in str(error) or "large" in str(error) or "scale" in str(error)
        return
    for name, values in found.items():
        if values.dtype.kind == "f":
            assert np.isfinite(values).all(), name
