"""Equal rows merged in an order of their values, so that a weight is that many copies of a row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laconic.data.columns import Table
from laconic.data.row_keys import row_keys

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class DistinctRows:
    """``first`` holds one row of each kind, ``place`` the kind of every row.

    What is drawn or placed with these and their total ``weight`` depends neither on the order of
    the rows nor on whether a row comes twice or weighs two.
    """

    first: Indices
    place: Indices
    weight: Floats


def distinct_rows(table: Table, weight: Floats, y: Indices | None = None) -> DistinctRows:
    """Kinds of rows: equal values, and equal classes when ``y`` is given.

    >>> from laconic.data.columns import Schema
    >>> table = Schema.learn(np.array([[1.0], [2.0], [1.0]])).table
    >>> kinds = distinct_rows(table, np.array([1.0, 1.0, 0.5]))
    >>> sorted(kinds.weight.tolist()), bool(kinds.place[0] == kinds.place[2])
    ([1.0, 1.5], True)
    """
    _, first, place = np.unique(row_keys(table), return_index=True, return_inverse=True)
    if y is not None:
        pair = place * (int(y.max()) + 1) + y
        _, first, place = np.unique(pair, return_index=True, return_inverse=True)
    return DistinctRows(first, place, np.bincount(place, weight))
