"""Folds by the rows' values: no order of columns, no copy of a row changes them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from laconic.core.contract import TableClassifier, Training
from laconic.core.folds import folds_of

X = np.random.default_rng(0).integers(0, 4, size=(80, 5)).astype(float)
Y = np.random.default_rng(1).integers(0, 3, 80)


def read(rows: object, y: np.ndarray = Y, weight: np.ndarray | None = None) -> Training:
    training: Training = TableClassifier()._read_training(rows, y, weight)
    return training


def fold_numbers(training: Training) -> np.ndarray:
    """The fold that holds out each row."""
    out = np.full(training.n_rows, -1)
    for number, (train, test) in enumerate(folds_of(5, training, training.n_rows, 0)):
        assert not set(train) & set(test)
        out[test] = number
    assert (out >= 0).all()
    return out


@pytest.mark.parametrize("named", [True, False])
def test_folds_do_not_depend_on_the_order_of_columns(named):
    order = [3, 0, 4, 1, 2]
    frames = [pd.DataFrame(X, columns=list("abcde")), X]
    one = frames[0] if named else frames[1]
    other = one.iloc[:, order] if named else one[:, order]
    np.testing.assert_array_equal(fold_numbers(read(one)), fold_numbers(read(other)))


@pytest.mark.parametrize("named", [True, False])
def test_a_weight_of_two_is_two_rows_of_one_fold(named):
    count = np.random.default_rng(2).integers(0, 3, 80)
    again = np.repeat(np.arange(80), count)
    rows = pd.DataFrame(X, columns=list("abcde")) if named else X
    taken = rows.iloc[again] if named else rows[again]
    weighted = fold_numbers(read(rows, Y, count.astype(float)))
    repeated = fold_numbers(read(taken, Y[again]))
    np.testing.assert_array_equal(np.repeat(weighted, count[count > 0]), repeated)
