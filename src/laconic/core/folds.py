"""Folds for held-out predictions: by the rows' values for a number, else as scikit-learn does."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from laconic._typing import Ints, Keys
from laconic.core.contract import Training
from laconic.data.row_keys import keyed_folds, row_keys, unnamed_keys


def folds_of(cv: Any, rows: Training, n_given: int, seed: int) -> list[tuple[Ints, Ints]]:
    """Pairs (train, test) of places in ``rows``.

    A number gives folds that keep equal rows together and spread each class evenly; a class with
    a single row is absent from the training rows of its fold. A splitter splits the rows that
    count; pairs of indices refer to the ``n_given`` rows passed to ``fit``.
    """
    if isinstance(cv, Integral):
        return pairs_of_keys(keys_of(rows, seed), rows.y, int(cv))
    if hasattr(cv, "split"):
        splitter = check_cv(cv, rows.y, classifier=True)
        return list(splitter.split(np.zeros((rows.n_rows, 1)), rows.y))
    return [_counted(pair, rows, n_given) for pair in cv]


def keys_of(rows: Training, seed: int) -> Keys:
    """Keys of the training rows that do not depend on the order of the columns."""
    if rows.named:
        return row_keys(rows.table, seed)
    return unnamed_keys(rows.table, rows.y, seed)


def pairs_of_keys(keys: Keys, y: Ints, n_folds: int) -> list[tuple[Ints, Ints]]:
    """Pairs (train, test) of the folds of :func:`~laconic.data.row_keys.keyed_folds`."""
    fold = keyed_folds(keys, y, n_folds)
    if fold.max() == 0:
        return []
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(fold.max() + 1)]


def _counted(pair: Iterable[Any], rows: Training, n_given: int) -> tuple[Ints, Ints]:
    place = np.full(n_given, -1, dtype=np.int64)
    place[rows.kept] = np.arange(rows.n_rows)
    train, test = (place[np.asarray(part)] for part in pair)
    return train[train >= 0], test[test >= 0]


def seed_of(random_state: Any) -> int:
    """A fixed number for None, so that a rule which draws is the same after every fit."""
    if random_state is None:
        return 0
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
