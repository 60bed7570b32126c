"""The column to predict, taken out of a table as class labels."""

from __future__ import annotations

import difflib

import numpy as np
from numpy.typing import NDArray

from laconic.data.column_kinds import shown
from laconic.data.columns import Table

MOST_CLASSES = 100


def split_target(table: Table, target: str) -> tuple[Table, NDArray[np.str_]]:
    """The other columns, and the labels as texts; what cannot be a class is refused.

    >>> cells = [np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 0.0])]
    >>> table = Table(("x", "late"), ("numeric", "numeric"), (None, None), cells)
    >>> X, label = split_target(table, "late")
    >>> X.names, label.tolist()
    (('x',), ['0', '1', '0'])
    """
    if target not in table.names:
        near = difflib.get_close_matches(target, table.names, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(table.names[:8])}."
        raise ValueError(f"There is no column {target!r} in the table; {hint}")
    j = table.names.index(target)
    cells, texts = table.column(j), table.categories[j]
    if texts is not None:
        gone, label = cells < 0, np.array([*texts, ""])[cells]
    else:
        values, place = np.unique(cells, return_inverse=True)
        gone, label = np.isnan(cells), np.array([f"{value:.17g}" for value in values])[place]
    if gone.any():
        raise ValueError(
            f"Column {shown(target)} is missing in {int(gone.sum())} rows; drop them first."
        )
    n_classes = len(np.unique(label))
    if n_classes > MOST_CLASSES:
        raise ValueError(
            f"Column {shown(target)} has {n_classes:,} different values: that is not a class; "
            f"choose a column with at most {MOST_CLASSES}."
        )
    others = [k for k in range(len(table.names)) if k != j]
    if not others:
        raise ValueError(f"The table has no column beside {shown(target)} to predict it from.")
    return table[:, others], label
