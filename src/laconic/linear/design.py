"""The design matrix of a linear score on mixed columns, and the fitted form that goes with it.

A number is one column, a category one indicator for each level. Levels that are too rare to be
weighed on their own share one indicator: a column of identifiers, or of dates kept as text, has
few design columns or none, whatever the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from laconic._typing import Floats, Ints
from laconic.core.forms import AdditiveScore, LineTerm, Link, SlotTerm, Term, plain_label
from laconic.data.tables.axes import CategoryAxis, encode_column
from laconic.data.tables.columns import Table, shown
from laconic.linear.tuning import LEAST_LEVEL_WEIGHT

LEAST_SCALE = 1e-290
"""Least deviation that a number is divided by: a slope in the column's own units is finite."""

Entries = tuple[Ints, Ints, Floats]


@dataclass(frozen=True)
class LinearColumn:
    """How one column enters a linear score.

    A number: itself, or ``(x - centre) / scale`` when standardised; a missing cell counts as
    ``centre``, plus an indicator where the training column had missing cells. A category: one
    indicator for each of ``levels``, one for all rarer texts where the training column had some
    (texts never seen are read as such), one for missing cells where it had some. An indicator is
    ``spread`` and not one when standardised: the effects that a penalty expects are as large.
    """

    name: str
    kind: str
    centre: float = 0.0
    scale: float = 1.0
    levels: tuple[str, ...] = ()
    has_rare: bool = False
    has_missing: bool = False
    spread: float = 1.0

    @property
    def width(self) -> int:
        own = len(self.levels) + self.has_rare if self.kind == "categorical" else 1
        return own + self.has_missing

    @property
    def names(self) -> list[str]:
        """Names of the design columns.

        >>> LinearColumn("job", "categorical", levels=("cook",), has_rare=True).names
        ['job=cook', 'job=(rare)']
        """
        if self.kind == "categorical":
            own = [f"{self.name}={level}" for level in self.levels]
            own += [f"{self.name}=(rare)"] * self.has_rare
        else:
            own = [self.name]
        return own + [f"{self.name}=(missing)"] * self.has_missing

    @property
    def axis(self) -> CategoryAxis:
        return CategoryAxis(tuple((text,) for text in self.levels))

    def entries(self, table: Table, j: int, standard: bool) -> list[Entries]:
        """Rows, own design columns and values of the cells of column ``j`` that may be non-zero.

        In each part a row comes once; its design columns grow from part to part.
        """
        if self.kind == "categorical":
            slot, _ = encode_column(self.axis, table, j)
            place = np.full(self.axis.size, -1)
            place[: len(self.levels)] = np.arange(len(self.levels))
            if self.has_rare:
                place[self.axis.other] = len(self.levels)
            if self.has_missing:
                place[self.axis.missing] = self.width - 1
            own = place[slot]
            rows = np.flatnonzero(own >= 0)
            return [(rows, own[rows], np.full(len(rows), self.spread if standard else 1.0))]
        values = table.column(j)
        gone = np.isnan(values)
        out = np.where(gone, self.centre, values)
        if standard:
            # the difference of halves does not overflow where that of the numbers would; divided
            # first, cells of 1 that are 1e-12 apart would lose most of their digits
            out = 2.0 * ((out / 2.0 - self.centre / 2.0) / self.scale)
        every = np.arange(len(out))
        numbers = every, np.zeros(len(out), dtype=np.int64), out
        if not self.has_missing:
            return [numbers]
        lost = np.flatnonzero(gone)
        return [numbers, (lost, np.ones(len(lost), dtype=np.int64), np.ones(len(lost)))]


def linear_columns(
    table: Table, weight: Floats, least: float = LEAST_LEVEL_WEIGHT
) -> tuple[LinearColumn, ...]:
    """Centres (weighted means), scales (weighted deviations) and levels of every column.

    Levels that weigh less than ``least`` share one indicator.
    """
    found = []
    for j, (name, kind) in enumerate(zip(table.names, table.kinds, strict=True)):
        values = table.column(j)
        if kind == "categorical":
            found.append(_categorical(name, values, table.categories[j] or (), weight, least))
            continue
        seen = ~np.isnan(values)
        centre, scale = _centre_and_scale(values[seen], weight[seen])
        gone = not bool(seen.all())
        found.append(LinearColumn(name, kind, centre, scale, has_missing=gone))
    return tuple(found)


def _categorical(
    name: str, codes: NDArray[Any], categories: Sequence[str], weight: Floats, least: float
) -> LinearColumn:
    seen = codes >= 0
    total = np.bincount(codes[seen], weight[seen], len(categories))
    # the sum of a level's weights depends on the order of the rows, up to rounding
    often = (total >= least * (1.0 - 1e-9)) & (total > 0.0)
    levels = tuple(text for text, kept in zip(categories, often, strict=True) if kept)
    # without any level of its own the column would be one indicator of rows that are not missing
    rare = bool(levels) and bool((~often[np.unique(codes[seen])]).any())
    return LinearColumn(
        name, "categorical", levels=levels, has_rare=rare, has_missing=not bool(seen.all())
    )


def _centre_and_scale(values: Floats, weight: Floats) -> tuple[float, float]:
    """Weighted mean and deviation; a column without spread is scaled by its size."""
    if not len(values):
        return 0.0, 1.0
    unit = float(np.abs(values).max()) or 1.0
    share = weight / weight.max()
    share = share / share.sum()
    centre = float(share @ (values / unit))
    spread = float(np.sqrt(share @ (values / unit - centre) ** 2))
    scale = spread * unit if spread > 1e-12 else unit
    return centre * unit, max(scale, LEAST_SCALE)


def design(columns: Sequence[LinearColumn], table: Table, *, standard: bool = True) -> Any:
    """The design matrix without the intercept: CSR, or an array where that is no larger.

    ``standard`` divides numbers by their deviation about their mean; else they stand as they are.
    """
    n_rows, width = table.n_rows, sum(column.width for column in columns)
    parts, start = [], 0
    for j, column in enumerate(columns):
        parts += [(r, own + start, x) for r, own, x in column.entries(table, j, standard)]
        start += column.width
    # a cell of an array takes 8 bytes, an entry of a CSR matrix 12
    if 8 * n_rows * width <= 12 * sum(len(rows) for rows, _, _ in parts):
        dense = np.zeros((n_rows, width))
        for rows, places, values in parts:
            dense[rows, places] = values
        return dense
    return _row_by_row(parts, (n_rows, width))


def _row_by_row(parts: Sequence[Entries], shape: tuple[int, int]) -> csr_matrix:
    """A CSR matrix of parts whose columns grow: no entry has to be sorted or merged."""
    ends = np.zeros(shape[0] + 1, dtype=np.int64)
    for rows, _, _ in parts:
        ends[1:] += np.bincount(rows, minlength=shape[0])
    np.cumsum(ends, out=ends)
    free, size = ends[:-1].copy(), int(ends[-1])
    small = np.int32 if max(size, *shape) < 2**31 else np.int64
    indices, data = np.empty(size, dtype=small), np.empty(size)
    for rows, places, values in parts:
        at = free[rows]
        indices[at], data[at] = places, values
        free[rows] += 1
    return csr_matrix((data, indices, ends.astype(small)), shape=shape)


def in_own_units(
    columns: Sequence[LinearColumn], coef: Floats, intercept: Floats
) -> tuple[Floats, Floats]:
    """Coefficients of the standardised design as those of the design as it stands.

    ``w (x - centre) / scale = (w / scale) x - w centre / scale``.
    """
    coef, intercept = coef.copy(), intercept.copy()
    start = 0
    for column in columns:
        if column.kind == "categorical":
            coef[:, start : start + column.width] *= column.spread
        else:
            coef[:, start] /= column.scale
            intercept -= coef[:, start] * column.centre
        start += column.width
    return coef, intercept


def design_form(
    columns: Sequence[LinearColumn],
    coef: Floats,
    intercept: Floats,
    classes: NDArray[Any],
    link: Link,
) -> AdditiveScore:
    """A linear score on the standardised :func:`design`; a column of zeros has no term."""
    terms: list[Term] = []
    start = 0
    for column in columns:
        own = coef[:, start : start + column.width].T
        start += column.width
        if not own.any():
            continue
        silent = np.zeros((1, own.shape[1]))
        missing = own[-1:] if column.has_missing else silent
        if column.kind == "categorical":
            n_levels = len(column.levels)
            rare = own[n_levels : n_levels + 1] if column.has_rare else silent
            values = np.concatenate([own[:n_levels], rare, missing]) * column.spread
            terms.append(SlotTerm((column.name,), (column.axis,), values))
        else:
            with np.errstate(over="ignore"):
                slope = own[0] / column.scale
            if not np.isfinite(slope).all():
                raise ValueError(
                    f"Column {shown(column.name)} holds values so small that its coefficient "
                    "overflows; rescale it, for instance with StandardScaler."
                )
            terms.append(LineTerm(column.name, slope, column.centre, missing[0]))
    labels = tuple(plain_label(c) for c in classes)
    return AdditiveScore(labels, np.array(intercept), tuple(terms), link)
