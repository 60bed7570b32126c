"""What the user asks of single columns, checked and turned into requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from laconic.data.tables.columns import Table
from laconic.data.tables.kinds import shown
from laconic.modl.fit import Request
from laconic.modl.intervals import Limits

_SIGNS = {"increasing": 1, "decreasing": -1, 1: 1, -1: -1}


def read_requests(
    table: Table,
    n_classes: int,
    total: float,
    *,
    max_parts: int | None,
    min_part_weight: float | None,
    monotone: Any,
    cuts: Any,
    special_values: Any,
) -> list[Request]:
    """One request per column of the training table."""
    signs = _read_monotone(table, n_classes, monotone)
    given = _read_cuts(table, cuts)
    special = _read_special(table, special_values)
    weight = 0.0 if min_part_weight is None else float(min_part_weight)
    if 0.0 < weight < 1.0:
        weight *= total
    requests = []
    for j in range(len(table.names)):
        limits = Limits(max_parts, weight, signs.get(j, 0))
        requests.append(Request(limits, given.get(j), special.get(j, ())))
    return requests


def _place(table: Table, column: Any, parameter: str) -> int:
    if isinstance(column, str) and column in table.names:
        return table.names.index(column)
    if isinstance(column, int | np.integer) and 0 <= column < len(table.names):
        return int(column)
    raise ValueError(
        f"{parameter} names the column {shown(column)}, which X does not have; use a column name "
        "or a position."
    )


def _ordered(table: Table, j: int, parameter: str) -> None:
    if table.kinds[j] == "categorical":
        raise ValueError(
            f"{parameter}: column {shown(table.names[j])} is categorical and has no order; remove "
            "it from the parameter or turn its values into numbers."
        )


def _read_monotone(table: Table, n_classes: int, monotone: Any) -> dict[int, int]:
    if monotone is None:
        return {}
    if n_classes != 2:
        raise ValueError(
            f"monotone constrains the rate of the second class and needs two classes; y has "
            f"{n_classes}."
        )
    asked: Mapping[Any, Any] = (
        monotone if isinstance(monotone, Mapping) else dict.fromkeys(table.names, monotone)
    )
    signs = {}
    for column, sign in asked.items():
        j = _place(table, column, "monotone")
        _ordered(table, j, "monotone")
        if not isinstance(sign, str | int) or sign not in _SIGNS:
            raise ValueError(
                f"monotone of column {shown(column)} must be 'increasing' (1) or 'decreasing' "
                f"(-1), got {sign!r}."
            )
        signs[j] = _SIGNS[sign]
    return signs


def _read_cuts(table: Table, cuts: Any) -> dict[int, tuple[float, ...]]:
    if cuts is None:
        return {}
    if not isinstance(cuts, Mapping):
        raise TypeError("cuts must be a dict: column -> increasing cut points.")
    out = {}
    for column, points in cuts.items():
        j = _place(table, column, "cuts")
        _ordered(table, j, "cuts")
        values = _numbers(points, "cuts", column)
        if any(b <= a for a, b in pairwise(values)):
            raise ValueError(f"cuts of column {shown(column)} must be increasing: {values}.")
        out[j] = values
    return out


def _read_special(table: Table, special: Any) -> dict[int, tuple[float, ...]]:
    if special is None:
        return {}
    numeric = [j for j, kind in enumerate(table.kinds) if kind != "categorical"]
    if not isinstance(special, Mapping):
        values = _numbers(special, "special_values", "every column")
        return dict.fromkeys(numeric, values)
    out = {}
    for column, points in special.items():
        j = _place(table, column, "special_values")
        if table.kinds[j] == "categorical":
            raise ValueError(
                f"special_values: column {shown(table.names[j])} is categorical; its values are "
                "grouped by name, so leave it out."
            )
        out[j] = _numbers(points, "special_values", column)
    return out


def _numbers(points: Any, parameter: str, column: Any) -> tuple[float, ...]:
    if isinstance(points, str) or not isinstance(points, Iterable | Sequence):
        raise TypeError(
            f"{parameter} of {shown(column)} must be a list of numbers, got {points!r}."
        )
    values = tuple(float(point) for point in points)
    if not values or not np.isfinite(values).all():
        raise ValueError(f"{parameter} of {shown(column)} must be finite numbers, at least one.")
    return tuple(dict.fromkeys(values))
