"""Reading rows of numbers and a numeric target, for models that are not classifiers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from laconic.core.contract import TableReader
from laconic.data.tables.columns import Table
from laconic.data.tables.kinds import shown

LARGEST = 1e100
"""Cells above this overflow when they are squared and summed."""


@dataclass(frozen=True)
class NumericTraining:
    """Rows that count: numbers, target (zeros when there is none), weights, and their place."""

    X: Any
    y: NDArray[np.float64]
    weight: NDArray[np.float64]
    kept: NDArray[np.int64]


def read_numeric_training(
    model: TableReader, X: Any, y: Any, sample_weight: Any = None, *, needs_y: bool = True
) -> NumericTraining:
    """Check X, a numeric y and weights; learn the columns; drop rows of zero weight."""
    who = type(model).__name__
    if needs_y and y is None:
        raise ValueError(f"{who} requires y to be passed, but the target y is None.")
    table = model._learn_columns(X)
    matrix = numbers_of(table)
    target = numeric_target(y) if needs_y else np.zeros(table.n_rows)
    check_consistent_length(matrix, target)
    weight = model._read_weight(sample_weight, table.n_rows)
    if (weight > 0).all():
        return NumericTraining(matrix, target, weight, np.arange(len(weight)))
    kept = np.flatnonzero(weight)
    return NumericTraining(matrix[kept], target[kept], weight[kept], kept)


def numbers_of(table: Table) -> Any:
    """Rows as float64, C-ordered (or CSR): the bytes of a product depend on the memory order."""
    matrix = table.matrix()
    refuse_huge(matrix, table.names)
    return matrix if issparse(matrix) else np.ascontiguousarray(matrix)


def numeric_target(y: Any) -> NDArray[np.float64]:
    """A finite float64 vector."""
    if hasattr(y, "to_numpy") and not isinstance(y, np.ndarray):
        y = y.to_numpy()
    target = column_or_1d(y, warn=True)
    target = check_array(target, dtype=np.float64, ensure_2d=False, input_name="y")
    if np.abs(target).max(initial=0.0) > LARGEST:
        raise ValueError(f"y holds values larger than {LARGEST:g}; rescale it.")
    return np.asarray(target)


def refuse_huge(matrix: Any, names: tuple[str, ...]) -> None:
    """Refuse cells whose squares would overflow, naming the column."""
    if issparse(matrix):
        size = abs(matrix).max(axis=0).toarray().ravel() if matrix.nnz else np.zeros(0)
    else:
        # all squares at once: a maximum by column of row-ordered numbers takes ten times as long
        flat = matrix.ravel(order="K")
        with np.errstate(over="ignore"):
            if float(flat @ flat) <= LARGEST**2:
                return
        size = np.abs(matrix).max(axis=0)
    huge = np.flatnonzero(size > LARGEST)
    if len(huge):
        raise ValueError(
            f"Column {shown(names[huge[0]])} holds values larger than {LARGEST:g}; rescale it, "
            "for instance with StandardScaler."
        )
