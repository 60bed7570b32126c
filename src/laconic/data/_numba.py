"""Compiled kernels of the value by class tables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from laconic._jit import njit
from laconic._typing import AnyArray


@njit(cache=True, nogil=True)
def distinct_table(
    x: AnyArray, y: AnyArray, weight: AnyArray, n_classes: int
) -> tuple[AnyArray, AnyArray]:
    """Distinct values of sorted ``x`` and the weight of each class at each of them."""
    n_rows = x.shape[0]
    n_values = 0
    for i in range(n_rows):
        if i == 0 or x[i] != x[i - 1]:
            n_values += 1
    values = np.empty(n_values)
    weights = np.zeros((n_values, n_classes))
    v = -1
    for i in range(n_rows):
        if i == 0 or x[i] != x[i - 1]:
            v += 1
            values[v] = x[i]
        weights[v, y[i]] += weight[i]
    return values, weights


@njit(cache=True, nogil=True)
def merge_tables(
    left: AnyArray, left_weights: AnyArray, right: AnyArray, right_weights: AnyArray
) -> tuple[AnyArray, AnyArray]:
    """Union of two sorted lists of distinct values; the weights of common values add up."""
    n_left = left.shape[0]
    n_right = right.shape[0]
    width = left_weights.shape[1]
    n_values = 0
    i = 0
    k = 0
    while i < n_left or k < n_right:
        from_left = k == n_right or (i < n_left and left[i] <= right[k])
        both = from_left and k < n_right and left[i] == right[k]
        i += from_left
        k += both or not from_left
        n_values += 1
    values = np.empty(n_values)
    weights = np.empty((n_values, width))
    i = 0
    k = 0
    for v in range(n_values):
        from_left = k == n_right or (i < n_left and left[i] <= right[k])
        both = from_left and k < n_right and left[i] == right[k]
        values[v] = left[i] if from_left else right[k]
        for j in range(width):
            weight = 0.0
            if from_left:
                weight += left_weights[i, j]
            if both or not from_left:
                weight += right_weights[k, j]
            weights[v, j] = weight
        i += from_left
        k += both or not from_left
    return values, weights


# Compiled pooling of neighbouring values.


@njit(cache=True)
def pool_ends(weight: NDArray[np.float64], heavy: float, full: float) -> NDArray[np.bool_]:
    """Which values end a pool: heavy ones, the last, and light ones once ``full`` is gathered."""
    ends = np.zeros(weight.shape[0], dtype=np.bool_)
    gathered = 0.0
    for i in range(weight.shape[0]):
        gathered += weight[i]
        if weight[i] >= heavy or gathered >= full:
            ends[i] = True
            gathered = 0.0
    ends[-1] = True
    return ends


# Compiled keys of numbers, without the temporaries of a dozen passes.

_NAN_BITS = np.float64(np.nan).view(np.uint64)
_NOTHING = np.uint64(2**64 - 1)


@njit(cache=True, inline="always")
def mixed(bits: np.uint64) -> np.uint64:
    """The finaliser of splitmix64; overflow wraps."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@njit(cache=True, inline="always")
def number_key(value: float, bits: np.uint64, column: np.uint64) -> np.uint64:
    """Key of a number in a column; zero has none, nor has a column that says nothing."""
    if value == 0.0 or column == _NOTHING:
        return np.uint64(0)
    return mixed((_NAN_BITS if np.isnan(value) else bits) ^ column)


@njit(cache=True, nogil=True)
def row_sums_of_keys(values: AnyArray, bits: AnyArray, columns: AnyArray) -> AnyArray:
    """Sum over each row of the keys of its numbers."""
    n, d = values.shape
    total = np.zeros(n, dtype=np.uint64)
    for start in range(0, n, 256):  # a block of rows stays in the cache whatever the layout
        for j in range(d):
            for i in range(start, min(n, start + 256)):
                total[i] += number_key(values[i, j], bits[i, j], columns[j])
    return total


@njit(cache=True, nogil=True)
def column_sums_of_keys(values: AnyArray, bits: AnyArray, rows: AnyArray) -> AnyArray:
    """Sum over each column of the keys of its numbers, each mixed with the key of its row."""
    n, d = values.shape
    total = np.zeros(d, dtype=np.uint64)
    for start in range(0, n, 256):
        for j in range(d):
            for i in range(start, min(n, start + 256)):
                key = number_key(values[i, j], bits[i, j], np.uint64(0))
                if key != 0:
                    total[j] += mixed(key ^ rows[i])
    return total
