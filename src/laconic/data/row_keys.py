"""A 64-bit key of each row's values: reproducible draws and folds that do not depend on batches.

The key of a row is the sum over columns of a mixed hash of (place of the column, value), so it does
not depend on the other rows, nor on the library or the float type that held a value. Equal rows
have equal keys. Zeros count for nothing, which makes sparse and dense rows agree.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Keys
from laconic.data.tables.columns import Table


def row_keys(table: Table, seed: int = 0) -> Keys:
    """One key per row.

    >>> from laconic.data.tables.columns import Schema
    >>> table = Schema.learn(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]])).table
    >>> keys = row_keys(table)
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    if table.is_sparse:
        total = _sparse_total(table)
    else:
        total = np.zeros(table.n_rows, dtype=np.uint64)
        places = _place_keys(len(table.names))
        for j, place in enumerate(places):
            texts = table.categories[j] if table.kinds[j] == "categorical" else None
            total += _cell_keys(table.column(j), place, texts)
    return _mixed(total ^ _mixed(np.array([seed % 2**64], dtype=np.uint64)))


def code_keys(codes: NDArray[Any], y: NDArray[Any] | None = None) -> Keys:
    """One key per row of unsigned integers, such as part numbers, and of its class.

    >>> keys = code_keys(np.array([[1, 2], [2, 1], [1, 2]], dtype=np.uint8))
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    places = _place_keys(codes.shape[1] + 1)
    total = np.zeros(len(codes), dtype=np.uint64)
    if y is not None:
        total += _mixed(y.astype(np.uint64) ^ places[-1])
    for j, place in enumerate(places[:-1]):
        total += _mixed(codes[:, j] ^ place)
    return total


def shuffled(keys: Keys, weight: NDArray[np.float64], rng: Any) -> NDArray[np.int64]:
    """A random order of rows that depends on their keys and weights, not on their places.

    Rows of one key and weight must be equal; they are spread like any others.

    >>> keys = np.array([5, 9, 5], dtype=np.uint64)
    >>> order = shuffled(keys, np.ones(3), np.random.default_rng(0))
    >>> moved = shuffled(keys[::-1], np.ones(3), np.random.default_rng(0))
    >>> bool((keys[order] == keys[::-1][moved]).all())
    True
    """
    order: NDArray[np.int64] = np.lexsort((weight, keys))[rng.permutation(len(keys))]
    return order


def uniforms(keys: Keys) -> NDArray[np.float64]:
    """A number in [0, 1) from each key."""
    return np.asarray((keys >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def number_draws(start: int, stop: int, seed: int = 0) -> NDArray[np.float64]:
    """A number in [0, 1) for each row number from ``start`` to ``stop``.

    >>> bool((number_draws(2, 5) == number_draws(0, 5)[2:]).all())
    True
    """
    lead = _mixed(np.array([seed % 2**64], dtype=np.uint64))
    # twice: neighbouring numbers differ in few bits
    return uniforms(_mixed(_mixed(np.arange(start, stop, dtype=np.uint64)) ^ lead))


def keyed_folds(keys: Keys, y: NDArray[np.int64], n_folds: int) -> NDArray[np.int64]:
    """Fold of each row: classes are spread evenly, and equal rows of a class stay together.

    A row of weight two is then treated as two equal rows, and no fold predicts a copy of a row
    that it was trained on. A row that comes twice as often as there are folds, or more, is spread
    over them: a table of few different rows would otherwise be judged on rows whose other class
    alone was learned.

    >>> keyed_folds(np.array([7, 7, 9], dtype=np.uint64), np.zeros(3, dtype=np.int64), 2).tolist()
    [0, 0, 1]
    """
    fold = np.empty(len(y), dtype=np.int64)
    for k in np.unique(y):
        rows = np.flatnonzero(y == k)
        _, place, count = np.unique(keys[rows], return_inverse=True, return_counts=True)
        order = np.argsort(place, kind="stable")
        copy = np.empty(len(rows), dtype=np.int64)
        copy[order] = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
        many = count[place] >= 2 * n_folds
        fold[rows] = (place + np.where(many, copy, 0)) % n_folds
    return fold


def _place_keys(n_columns: int) -> Keys:
    return _mixed(np.arange(1, n_columns + 1, dtype=np.uint64))


def text_key(text: str) -> int:
    """A key of 64 bits that is the same in every process."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def _cell_keys(values: NDArray[Any], place: np.uint64, texts: tuple[str, ...] | None) -> Keys:
    if texts is None:
        return number_keys(np.asarray(values, dtype=np.float64), place)
    # the texts, not their codes: a code depends on the other categories of the training rows;
    # MISSING and UNSEEN, -1 and -2, find the two last entries
    known = np.array([*map(text_key, texts), 2, 1], dtype=np.uint64)
    return _mixed(known[values] ^ place)


def number_keys(values: NDArray[np.float64], places: Any) -> Keys:
    """Keys of numbers in columns of some places; zero has none."""
    bits = np.where(np.isnan(values), np.nan, values).view(np.uint64)
    return np.where(values == 0, np.uint64(0), _mixed(bits ^ places))


def _sparse_total(table: Table) -> Keys:
    matrix = table.matrix().tocsr()
    cells = number_keys(
        matrix.data.astype(np.float64), _place_keys(matrix.shape[1])[matrix.indices]
    )
    total = np.concatenate((np.zeros(1, dtype=np.uint64), np.cumsum(cells, dtype=np.uint64)))
    return np.asarray(total[matrix.indptr[1:]] - total[matrix.indptr[:-1]])


def _mixed(bits: Keys) -> Keys:
    """The finaliser of splitmix64 (Steele, Lea and Flood, 2014); overflow wraps."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(bits ^ (bits >> np.uint64(31)))
