"""Prediction sets and accepted errors: coverage by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from laconic.decide.guarantee import NoThresholdError
from laconic.decide.sets import accepted_error, prediction_sets


def drawn(
    rng: np.random.Generator, n: int, shares=(0.6, 0.3, 0.1)
) -> tuple[np.ndarray, np.ndarray]:
    codes = rng.choice(3, n, p=shares)
    score = rng.normal(size=(n, 3)) + 1.5 * np.eye(3)[codes]
    proba = np.exp(score)
    return proba / proba.sum(axis=1, keepdims=True), codes


def test_every_class_is_covered_under_any_mix():
    rng = np.random.default_rng(0)
    caught, seen = np.zeros(3), np.zeros(3)
    for _ in range(150):
        sets = prediction_sets(*drawn(rng, 250), level=0.8)
        proba, codes = drawn(rng, 400, shares=(0.1, 0.1, 0.8))
        inside = sets.contains(proba)[np.arange(400), codes]
        caught += np.bincount(codes, inside, minlength=3)
        seen += np.bincount(codes, minlength=3)
    share = caught / seen
    assert (share > 0.79).all()
    assert (share < 0.84).all()  # no larger than they must be


def test_the_place_is_that_of_the_definition():
    proba = np.column_stack([np.arange(1, 10) / 10, 1 - np.arange(1, 10) / 10])
    sets = prediction_sets(proba, np.zeros(9, int), level=0.8)
    assert sets.least.tolist() == [0.2, 0.0]  # second of nine; no row of the other class
    assert sets.rows.tolist() == [9, 0]


def test_errors_of_accepted_rows_stay_below_the_level():
    rng = np.random.default_rng(1)
    failed = 0
    for _ in range(300):
        sure = rng.uniform(0.4, 1.0, 500)
        right = rng.random(500) < sure
        try:
            found = accepted_error(sure, right, error=0.15, confidence=0.9)
        except NoThresholdError:
            continue
        # certainties above c err at 1 - (c + 1) / 2 on average
        cut = max(found.certainty, 0.4)
        failed += 1 - (cut + 1) / 2 > 0.15
    assert failed / 300 <= 0.1 + 2 * np.sqrt(0.09 / 300)


def test_refusals():
    with pytest.raises(NoThresholdError, match="errs on at most"):
        accepted_error(np.full(50, 0.9), np.arange(50) % 2 == 0, error=0.01)
    with pytest.raises(ValueError, match="level"):
        prediction_sets(np.ones((3, 2)) / 2, [0, 1, 0], level=1.0)
    with pytest.raises(ValueError, match="n x K"):
        prediction_sets(np.ones(3), [0, 1, 0])


def test_errors_are_counted_to_the_last_row():
    """Of 100 equal rows one cut of 41 keeps any: P(1) = .0003 is below .05 / 41, P(2) is not."""
    sure = np.full(100, 0.9)
    assert accepted_error(sure, np.arange(100) >= 1, error=0.1).measured == 0.01
    with pytest.raises(NoThresholdError):
        accepted_error(sure, np.arange(100) >= 2, error=0.1)
