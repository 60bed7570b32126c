"""The fitted form of a weighted naive Bayes: partitions, log tables, weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.criteria.weighted_bayes import LogTables
from laconic.data.columns import Table
from laconic.estimators.partition import Partition

Floats = NDArray[np.float64]
Codes = NDArray[np.uint8] | NDArray[np.uint16]


def code_matrix(table: Table, partitions: Sequence[Partition]) -> Codes:
    """Part of every row in every partition, in the smallest integers that hold them."""
    most = max((partition.n_parts for partition in partitions), default=1)
    dtype: type[np.uint8] | type[np.uint16] = np.uint8 if most <= 256 else np.uint16
    out = np.empty((table.n_rows, len(partitions)), dtype=dtype)
    for k, partition in enumerate(partitions):
        out[:, k] = partition.codes(*(table.column(j) for j in partition.columns))
    return out


@dataclass(frozen=True)
class BayesScore:
    """ln p_j + sum_k w_k ln P(part of variable k | class j), for the variables with a weight.

    ``places[k]`` is the place of variable k among all variables of the encoder.
    """

    partitions: tuple[Partition, ...]
    places: NDArray[np.int64]
    tables: LogTables
    weights: Floats

    @staticmethod
    def of(
        partitions: Sequence[Partition],
        places: NDArray[np.int64],
        tables: LogTables,
        weights: Floats,
    ) -> BayesScore:
        """Only the variables whose weight is not zero."""
        used = np.flatnonzero(weights)
        return BayesScore(
            tuple(partitions[k] for k in used), places[used], tables.take(used), weights[used]
        )

    def codes(self, table: Table) -> Codes:
        return code_matrix(table, self.partitions)

    def scores(self, table: Table) -> Floats:
        """Unnormalised log posterior, shape (n_rows, n_classes)."""
        return self.tables.scores(self.codes(table), self.weights)

    @cached_property
    def _shares(self) -> tuple[Floats, ...]:
        """N_i / N of the parts of each variable."""
        start = self.tables.start
        own = [self.tables.class_weights[a:b].sum(axis=1) for a, b in pairwise(start)]
        return tuple(weight / weight.sum() for weight in own)

    def effect(self, k: int) -> Floats:
        """w_k (l_ij - mean over rows of l_ij), shape (n_parts, n_classes).

        l_ij = ln P(i | j) minus its mean over classes: only differences between classes count.
        """
        table = self.tables.table(k)
        centred = table - table.mean(axis=1, keepdims=True)
        return np.asarray(self.weights[k] * (centred - self._shares[k] @ centred))

    def baseline(self) -> Floats:
        """Score of a mean row, shape (n_classes,): effects add to it."""
        total = self.tables.log_prior - self.tables.log_prior.mean()
        for k in range(len(self.partitions)):
            table = self.tables.table(k)
            centred = table - table.mean(axis=1, keepdims=True)
            total = total + self.weights[k] * (self._shares[k] @ centred)
        return np.asarray(total)


@dataclass(frozen=True)
class Explanation:
    """Contributions of variables to the scores of some rows.

    ``baseline + contributions.sum(axis=1)`` is ``decision_function`` of the same rows.

    Attributes
    ----------
    names : tuple of str
        Variables that the model uses.
    classes : ndarray
    baseline : ndarray of shape (n_outputs,)
        Log-odds of the second class, or one centred score for each class when there are more.
    contributions : ndarray of shape (n_rows, n_variables, n_outputs)
        Shapley values: what knowing the variable's part adds to the mean row.
    parts : ndarray of shape (n_rows, n_variables)
        The part of each row, as text.
    """

    names: tuple[str, ...]
    classes: NDArray[Any]
    baseline: Floats
    contributions: Floats
    parts: NDArray[np.object_]

    @property
    def n_rows(self) -> int:
        return len(self.contributions)

    def scores(self) -> Floats:
        """What ``decision_function`` returns for these rows."""
        total = self.baseline + self.contributions.sum(axis=1)
        return total[:, 0] if total.shape[1] == 1 else total

    def frame(self, row: int = 0) -> Any:
        """The contributions of one row, largest first; pandas frame or dict of columns."""
        if not -self.n_rows <= row < self.n_rows:
            raise ValueError(f"row must be below {self.n_rows}, the number of rows; got {row}.")
        values = self.contributions[row]
        order = np.argsort(-np.abs(values).max(axis=1), kind="stable")
        columns: dict[str, Any] = {
            "variable": [self.names[k] for k in order],
            "part": list(self.parts[row, order]),
        }
        outputs = [str(self.classes[1])] if values.shape[1] == 1 else map(str, self.classes)
        for output, own in zip(outputs, values.T, strict=True):
            columns[output] = own[order]
        try:
            import pandas as pd
        except ImportError:
            return columns
        return pd.DataFrame(columns)


def explain_rows(score: BayesScore, classes: NDArray[Any], table: Table) -> Explanation:
    """Exact contributions: scores add over variables, so Shapley values are closed form."""
    codes = score.codes(table)
    n_classes = len(classes)
    names = tuple(partition.name for partition in score.partitions)
    values = np.zeros((table.n_rows, len(names), n_classes))
    parts = np.empty((table.n_rows, len(names)), dtype=object)
    for k, partition in enumerate(score.partitions):
        values[:, k] = score.effect(k)[codes[:, k]]
        parts[:, k] = np.array(partition.labels, dtype=object)[codes[:, k]]
    baseline = score.baseline()
    if n_classes == 2:
        values, baseline = values[:, :, 1:] - values[:, :, :1], baseline[1:] - baseline[:1]
    return Explanation(names, classes, baseline, values, parts)
