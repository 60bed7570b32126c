"""From value by class tables to fitted partitions: one column at a time, as the user asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.data.source import Block, Source
from laconic.data.tables.columns import Table, shown
from laconic.data.value_tables import (
    NumericTable,
    category_table,
    column_tables,
    labels,
    numeric_table,
)
from laconic.modl.criterion import (
    CodeName,
    Costs,
    PartitionPrior,
    make_prior,
    part_prior_cost,
    partition_costs,
)
from laconic.modl.groups import Grouping, best_groups
from laconic.modl.intervals import Cuts, best_intervals, cheapest_level
from laconic.modl.layers import Limits
from laconic.modl.partition import Groups, Intervals, Partition, readable_between
from laconic.modl.tuning import MAX_CATEGORIES, POOLED_VALUES


@dataclass(frozen=True)
class Request:
    """What is asked of one column."""

    limits: Limits
    cuts: tuple[float, ...] | None = None
    special: tuple[float, ...] = ()


@dataclass(frozen=True)
class Setting:
    """What all columns share: the rows, the prior and the classes."""

    source: Source
    table: Table
    classes: NDArray[Any]
    class_totals: Floats
    code: CodeName
    tables: Sequence[Any] | None = None
    """Tables of all columns when they were read in one pass; None to read them one by one."""

    def read_together(self) -> Setting:
        """The tables of all columns, of bounded size, in one pass over the rows."""
        sizes = [
            len(categories or ()) if kind == "categorical" else None
            for kind, categories in zip(self.table.kinds, self.table.categories, strict=True)
        ]
        tables = column_tables(self.source, sizes, self.n_classes, POOLED_VALUES)
        return replace(self, tables=tables)

    def numeric(self, column: int) -> NumericTable:
        if self.tables is None:
            return numeric_table(self.source, column, self.n_classes)
        return self.tables[column]  # type: ignore[no-any-return]

    def category(self, column: int, n_categories: int) -> Floats:
        if self.tables is None:
            return category_table(self.source, column, n_categories, self.n_classes)
        return self.tables[column]  # type: ignore[no-any-return]

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def total(self) -> float:
        return float(self.class_totals.sum())

    def selection(self) -> float:
        """ln K for a column under the granular prior; nothing under the first one."""
        return float(np.log(len(self.table.names))) if self.code == "granular" else 0.0

    def prior_for(self, total: float, selection: float | None = None) -> PartitionPrior:
        return make_prior(self.code, total, self.selection() if selection is None else selection)

    def null_costs(self, n_values: int, *, grouped: bool) -> Costs:
        prior = self.prior_for(self.total)
        cost = prior.groups(1, 1, max(n_values, 1)) if grouped else prior.intervals(1, 1)
        return partition_costs(self.class_totals[None], prior, float(cost))

    def partition(self, columns: Sequence[int], name: str | None = None, **parts: Any) -> Partition:
        """A partition of some columns; ``parts`` are the other fields of :class:`Partition`."""
        names = tuple(self.table.names[j] for j in columns)
        places = tuple(int(j) for j in columns)
        return Partition(name or names[0], names, places, classes=self.classes, **parts)


def fit_column(setting: Setting, column: int, request: Request) -> Partition:
    """The partition of one column of the training table."""
    if setting.table.kinds[column] == "categorical":
        return _fit_categorical(setting, column, request)
    return _fit_numeric(setting, column, request)


def _fit_numeric(setting: Setting, column: int, request: Request) -> Partition:
    table = setting.numeric(column)
    if table.pooled and request.special:
        raise ValueError(
            f"special_values: column {shown(setting.table.names[column])} has too many distinct "
            "values to keep them all; make its codes missing or a column of their own."
        )
    special = tuple(v for v in request.special if v in table.values)
    regular = table.take(~np.isin(table.values, special)) if special else table
    apart = [table.weights[np.searchsorted(table.values, v)] for v in special]
    ordered_only = request.cuts is not None or request.limits.monotone != 0
    alone = table.has_missing and ordered_only
    if alone:
        apart.insert(0, table.missing)
    rows = regular.weights if alone else regular.with_missing_first()
    total = float(rows.sum())
    # parts kept apart make the variable worth naming whatever the search finds
    prior = setting.prior_for(total, 0.0 if apart else None)
    if len(rows) == 0:
        rows = np.zeros((1, setting.n_classes))
    if request.cuts is not None:
        found = _given_cuts(setting.table.names[column], regular, request.cuts, prior)
        exact, gap = True, 0.0
    else:
        solution = best_intervals(rows, setting.n_classes, prior, request.limits)
        found, gap = solution.point, solution.gap
        exact = bool(solution.details["exact"]) and not table.pooled
    offset = int(regular.has_missing and not alone)
    cells = _intervals(found, regular, offset, alone, special, request.cuts)
    # each part is summed by itself: differences of cumulated sums lose small weights
    parts = np.add.reduceat(rows, np.append(0, found.places), axis=0)
    first = int(alone)
    weights = np.vstack([*apart[:first], parts, *apart[first:]])
    paid = setting.prior_for(setting.total)
    return setting.partition(
        [column],
        cells=cells,
        class_weights=weights,
        costs=partition_costs(weights, paid, found.prior_cost(prior)),
        null_costs=setting.null_costs(len(rows), grouped=False),
        granularity=found.level,
        exact=exact,
        gap=gap,
    )


def _intervals(
    found: Cuts,
    regular: NumericTable,
    offset: int,
    alone: bool,
    special: tuple[float, ...],
    given: tuple[float, ...] | None,
) -> Intervals:
    if given is not None:
        return Intervals(np.array(given), alone, special, regular.has_missing)
    values = regular.values
    between = found.places[found.places > offset] - offset
    # the neighbours above a pool are not known, so that its own value must be the cut
    bounds = [
        float(values[c - 1])
        if regular.pooled
        else readable_between(float(values[c - 1]), float(values[c]))
        for c in between
    ]
    missing_first = alone or len(between) < len(found.places)
    return Intervals(
        np.array(bounds, dtype=np.float64), missing_first, special, regular.has_missing
    )


def _given_cuts(
    name: str, regular: NumericTable, cuts: tuple[float, ...], prior: PartitionPrior
) -> Cuts:
    values = regular.values
    for cut in cuts:
        if not len(values) or not values[0] <= cut < values[-1]:
            known = f"{values[0]:.6g} to {values[-1]:.6g}" if len(values) else "all missing"
            raise ValueError(
                f"cuts: {cut:g} is outside the values of column {shown(name)} ({known}); give cut "
                "points that leave rows on both sides."
            )
    places = np.searchsorted(values, np.array(cuts), side="right")
    cumulated = np.concatenate([[0.0], np.cumsum(regular.weights.sum(axis=1))])
    return Cuts(places, cheapest_level(cumulated, places, prior))


def _fit_categorical(setting: Setting, column: int, request: Request) -> Partition:
    name = setting.table.names[column]
    categories = setting.table.categories[column] or ()
    if len(categories) > MAX_CATEGORIES:
        raise ValueError(
            f"Column {shown(name)} has {len(categories):,} distinct categories, more than "
            f"{MAX_CATEGORIES:,}; it looks like an identifier: drop it or shorten its texts."
        )
    rows = setting.category(column, len(categories))
    seen = rows.sum(axis=1) > 0
    prior = setting.prior_for(setting.total)
    solution = best_groups(rows[seen], setting.n_classes, prior, request.limits)
    grouping: Grouping = solution.point
    part_of = np.zeros(len(rows), dtype=np.int32)
    part_of[seen] = grouping.owner
    default = _default_group(grouping, rows[seen])
    part_of[~seen] = default
    weights = np.zeros((grouping.n_groups, setting.n_classes))
    np.add.at(weights, grouping.owner, rows[seen])
    cells = Groups(categories, part_of, grouping.n_groups, default, bool(seen[-1]))
    return setting.partition(
        [column],
        cells=cells,
        class_weights=weights,
        costs=partition_costs(weights, prior, grouping.prior_cost(prior)),
        null_costs=setting.null_costs(int(seen.sum()), grouped=True),
        granularity=grouping.level,
        exact=bool(solution.details["exact"]),
        gap=solution.gap,
    )


def recounted(setting: Setting, found: list[Partition]) -> list[Partition]:
    """Partitions of pooled columns with the weights that the rows really have in their parts."""
    tables = setting.tables or ()
    pooled = [j for j, t in enumerate(tables) if isinstance(t, NumericTable) and t.pooled]
    if not pooled:
        return found
    parts = [found[j] for j in pooled]
    n_classes = setting.n_classes

    def of_block(block: Block) -> tuple[Floats, ...]:
        return tuple(
            class_counts(part.codes(block.X.column(k)), *labels(block), part.n_parts, n_classes)
            for k, part in enumerate(parts)
        )

    counted = setting.source.sum(of_block, pooled)
    out = list(found)
    for j, weights in zip(pooled, counted, strict=True):
        old = found[j]
        paid = old.costs.preparation - float(part_prior_cost(old.class_weights).sum())
        costs = partition_costs(weights, setting.prior_for(setting.total), paid)
        out[j] = replace(old, class_weights=weights, costs=costs)
    return out


def class_counts(
    codes: NDArray[Any], y: Ints, weight: Floats, n_parts: int, n_classes: int
) -> Floats:
    """Weight of each class in each part, from the part of every row."""
    flat = codes.astype(np.int64) * n_classes + y
    weights = np.bincount(flat, weights=weight, minlength=n_parts * n_classes)
    return np.asarray(weights, dtype=np.float64).reshape(n_parts, n_classes)


def _default_group(grouping: Grouping, rows: Floats) -> int:
    """Where unseen values go: garbage, else catch-all, else the group of the rarest value."""
    if grouping.garbage >= 0:
        return grouping.garbage
    if grouping.catch_all >= 0:
        return grouping.catch_all
    return int(grouping.owner[int(np.argmin(rows.sum(axis=1)))]) if len(rows) else 0


# ---- what the user asks of single columns, checked ------------------------------------------

_SIGNS = {"increasing": 1, "decreasing": -1, 1: 1, -1: -1}


def read_requests(
    setting: Setting,
    *,
    max_parts: int | None,
    min_part_weight: float | None,
    monotone: Any,
    cuts: Any,
    special_values: Any,
) -> list[Request]:
    """One request per column of the training table."""
    table = setting.table
    signs = _read_monotone(table, setting.n_classes, monotone)
    given = _read_cuts(table, cuts)
    special = _read_special(table, special_values)
    weight = 0.0 if min_part_weight is None else float(min_part_weight)
    if 0.0 < weight < 1.0:
        weight *= setting.total
    return [
        Request(Limits(max_parts, weight, signs.get(j, 0)), given.get(j), special.get(j, ()))
        for j in range(len(table.names))
    ]


def _asked(
    table: Table, given: Mapping[Any, Any], parameter: str
) -> Iterator[tuple[int, Any, Any]]:
    """Place, name and value of each column that a parameter names; only numeric ones may be."""
    for column, value in given.items():
        if isinstance(column, str) and column in table.names:
            j = table.names.index(column)
        elif isinstance(column, int | np.integer) and 0 <= column < len(table.names):
            j = int(column)
        else:
            raise ValueError(
                f"{parameter} names the column {shown(column)}, which X does not have; use a "
                "column name or a position."
            )
        if table.kinds[j] == "categorical":
            raise ValueError(
                f"{parameter}: column {shown(table.names[j])} is categorical and has no order; "
                "remove it from the parameter or turn its values into numbers."
            )
        yield j, column, value


def _read_monotone(table: Table, n_classes: int, monotone: Any) -> dict[int, int]:
    if monotone is None:
        return {}
    if n_classes != 2:
        raise ValueError(
            f"monotone constrains the rate of the second class and needs two classes; y has "
            f"{n_classes}."
        )
    given = monotone if isinstance(monotone, Mapping) else dict.fromkeys(table.names, monotone)
    signs = {}
    for j, column, sign in _asked(table, given, "monotone"):
        if not isinstance(sign, str | int) or sign not in _SIGNS:
            raise ValueError(
                f"monotone of column {shown(column)} must be 'increasing' (1) or 'decreasing' "
                f"(-1), got {sign!r}."
            )
        signs[j] = _SIGNS[sign]
    return signs


def _read_cuts(table: Table, cuts: Any) -> dict[int, tuple[float, ...]]:
    if not isinstance(cuts, Mapping | None):
        raise TypeError("cuts must be a dict: column -> increasing cut points.")
    out = {}
    for j, column, points in _asked(table, cuts or {}, "cuts"):
        out[j] = _numbers(points, "cuts", column)
        if any(b <= a for a, b in pairwise(out[j])):
            raise ValueError(f"cuts of column {shown(column)} must be increasing: {out[j]}.")
    return out


def _read_special(table: Table, special: Any) -> dict[int, tuple[float, ...]]:
    if special is not None and not isinstance(special, Mapping):
        numeric = [j for j, kind in enumerate(table.kinds) if kind != "categorical"]
        return dict.fromkeys(numeric, _numbers(special, "special_values", "every column"))
    named = _asked(table, special or {}, "special_values")
    return {j: _numbers(points, "special_values", column) for j, column, points in named}


def _numbers(points: Any, parameter: str, column: Any) -> tuple[float, ...]:
    if isinstance(points, str) or not isinstance(points, Iterable | Sequence):
        raise TypeError(
            f"{parameter} of {shown(column)} must be a list of numbers, got {points!r}."
        )
    values = tuple(float(point) for point in points)
    if not values or not np.isfinite(values).all():
        raise ValueError(f"{parameter} of {shown(column)} must be finite numbers, at least one.")
    return tuple(dict.fromkeys(values))
