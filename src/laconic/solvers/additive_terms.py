"""Terms of an additive model on encoded rows: which columns, which slots, which basis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from laconic.criteria.additive import (
    Shape,
    bending,
    grid_margins,
    grid_roughness,
    whiten,
    whiten_all,
)
from laconic.data.axes import Axis, CategoryAxis, KnotAxis
from laconic.data.knots import CoarseAxis, EncodedRows, coarsen

if TYPE_CHECKING:
    from laconic.solvers.hot_additive_rows import Rows, Terms

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Term:
    """One shape: ``columns`` (one or two), the axes it is drawn on, its basis."""

    columns: tuple[int, ...]
    axes: tuple[Axis, ...]
    shape: Shape

    @cached_property
    def size(self) -> int:
        return len(self.shape.basis)

    @cached_property
    def n_knots(self) -> int:
        """Knots of a line; 0 for categories and grids."""
        axis = self.axes[0]
        return len(axis.knots) if isinstance(axis, KnotAxis) and len(self.axes) == 1 else 0

    @cached_property
    def width(self) -> int:
        """Slots of the second axis; 0 for a term of one column."""
        return self.axes[1].size if len(self.axes) == 2 else 0


@dataclass(frozen=True)
class TermSet:
    """Encoded rows and a list of terms on them; immutable, shared by all folds and penalties."""

    rows: EncodedRows
    coarse: tuple[CoarseAxis, ...]
    terms: tuple[Term, ...]
    places: CoarseRows | None = None

    @cached_property
    def coarse_rows(self) -> CoarseRows:
        """Shared by all sets made from this one on the same rows."""
        return CoarseRows(self.rows, self.coarse) if self.places is None else self.places

    @cached_property
    def place_of(self) -> dict[tuple[int, ...], int]:
        """Place of the term of given columns."""
        return {term.columns: t for t, term in enumerate(self.terms)}

    @cached_property
    def rank(self) -> NDArray[np.int64]:
        return np.array([t.shape.rank for t in self.terms], dtype=np.int64)

    @cached_property
    def start(self) -> NDArray[np.int64]:
        return (np.cumsum(self.rank) - self.rank).astype(np.int64)

    @cached_property
    def owner(self) -> NDArray[np.int64]:
        """Term of every coordinate."""
        return np.repeat(np.arange(len(self.terms)), self.rank)

    @cached_property
    def rough(self) -> Array:
        """Roughness of every coordinate; zero for the linear part of a shape."""
        return np.concatenate([np.zeros(0), *(t.shape.rough for t in self.terms)])

    @property
    def n_coordinates(self) -> int:
        return int(self.rank.sum())

    def extended(self, more: Sequence[Term]) -> TermSet:
        return TermSet(self.rows, self.coarse, (*self.terms, *more), self.coarse_rows)

    def subset(self, kept: Sequence[int]) -> TermSet:
        kept_terms = tuple(self.terms[t] for t in kept)
        return TermSet(self.rows, self.coarse, kept_terms, self.coarse_rows)

    def on(self, rows: EncodedRows) -> TermSet:
        """The same terms on other rows."""
        return TermSet(rows, self.coarse, self.terms)

    def values(self, t: int, point: Array) -> Array:
        """Slot values of term t: (slots, scores)."""
        part = slice(self.start[t], self.start[t] + self.rank[t])
        return np.asarray(self.terms[t].shape.basis @ point[:, part].T)

    @cached_property
    def packed(self) -> tuple[Rows, Terms]:
        """The same as flat arrays, for the compiled passes."""
        from laconic.solvers.hot_additive_rows import Terms

        terms = self.terms
        ends = np.cumsum([0, *(t.shape.basis.size for t in terms)])
        flat = [t.shape.basis.ravel() for t in terms]
        pairs = [t.columns for t in terms if t.width]
        return self.coarse_rows.packed(pairs), Terms(
            np.array([t.columns[0] for t in terms], dtype=np.int64),
            np.array([t.columns[1] if t.width else -1 for t in terms], dtype=np.int64),
            np.array([t.size for t in terms], dtype=np.int64),
            np.array([t.width for t in terms], dtype=np.int64),
            self.rank,
            self.start,
            ends[:-1].astype(np.int64),
            np.concatenate([np.zeros(0), *flat]),
            np.array([t.n_knots for t in terms], dtype=np.int64),
        )


class CoarseRows:
    """Rows on the coarse axes of pairs: the columns asked for so far, in one store."""

    def __init__(self, rows: EncodedRows, coarse: Sequence[CoarseAxis]) -> None:
        self._rows, self._coarse = rows, coarse
        nowhere = np.full(max(1, len(rows.axes)), -1, dtype=np.int64)
        slots = np.empty((0, rows.n_rows), dtype=np.uint8)
        # the first row of fractions is zero, for all columns that lie on coarse knots;
        # replaced as a whole, so that folds in threads never see half of it
        ways = np.zeros((1, rows.n_rows), dtype=np.float32)
        self._store = nowhere, slots, nowhere, ways, np.zeros(len(nowhere), dtype=bool)
        self._yes_no = (rows.fraction_row < 0) & (rows.index.max(axis=1, initial=0) <= 1)

    def packed(self, pairs: Sequence[tuple[int, ...]] = ()) -> Rows:
        """The rows as flat arrays, with the coarse places of at least the columns in ``pairs``."""
        from laconic.solvers.hot_additive_rows import Rows

        place, slots, way_place, ways, yes_no = self._store
        new = [j for j in sorted({j for pair in pairs for j in pair}) if place[j] < 0]
        if new:
            place, way_place, yes_no = place.copy(), way_place.copy(), yes_no.copy()
            place[new] = len(slots) + np.arange(len(new))
            found = [self._column(j) for j in new]
            between = [way is not None for _, way in found]
            way_place[new] = np.where(between, len(ways) - 1 + np.cumsum(between), 0)
            yes_no[new] = [way is None and slot.max(initial=0) <= 1 for slot, way in found]
            slots = np.concatenate([slots, *(slot[None, :] for slot, _ in found)])
            ways = np.concatenate([ways, *(way[None, :] for _, way in found if way is not None)])
            self._store = place, slots, way_place, ways, yes_no
        rows = self._rows
        coarse = place, slots, way_place, ways
        return Rows(rows.index, rows.fraction, rows.fraction_row, *coarse, self._yes_no, yes_no)

    def _column(self, j: int) -> tuple[NDArray[np.uint8], NDArray[np.float32] | None]:
        """Coarse slot and the way to the next one, for every row; None when all are on knots."""
        axis, slot = self._coarse[j], self._rows.index[j]
        way, row = axis.base[slot], self._rows.fraction_row[j]
        if row >= 0:
            way += axis.step[slot] * self._rows.fraction[row]
        return axis.index[slot], way if way.any() else None


def bare(columns: Sequence[tuple[int, ...]], axes: Sequence[tuple[Axis, ...]]) -> Terms:
    """Terms without a basis yet, enough for sums over slots."""
    from laconic.solvers.hot_additive_rows import Terms

    sizes = [int(np.prod([a.size for a in pair])) for pair in axes]
    zeros = np.zeros(len(columns), dtype=np.int64)
    return Terms(
        np.array([c[0] for c in columns], dtype=np.int64),
        np.array([c[1] if len(c) == 2 else -1 for c in columns], dtype=np.int64),
        np.array(sizes, dtype=np.int64),
        np.array([pair[1].size if len(pair) == 2 else 0 for pair in axes], dtype=np.int64),
        zeros,
        zeros,
        zeros,
        np.zeros(0),
        zeros,
    )


_PAIR_CATEGORIES, _PAIR_KNOTS = 8, (5, 12)

_WHITENED = 1_000_000
"""Entries of the Gram matrices that are treated in one go."""


def _pair_slots(axis: Axis, total: float) -> int:
    """Slots of an axis in a grid: a grid has their square, and rows must fill it."""
    if isinstance(axis, CategoryAxis):
        return _PAIR_CATEGORIES
    return int(np.clip(round((total / 100.0) ** 0.5), *_PAIR_KNOTS))


def single_terms(
    rows: EncodedRows,
    weight: Array,
    coarse: Sequence[CoarseAxis] | None = None,
) -> TermSet:
    """One term for each column; columns that are constant on the rows give a term of rank 0.

    ``coarse`` are the axes of pairs, learned from the rows unless given: sqrt(rows / 100) knots,
    between 5 and 12, and 8 categories.
    """
    from laconic.solvers.hot_additive_rows import slot_products

    axes = [(axis,) for axis in rows.axes]
    packed = bare([(j,) for j in range(len(axes))], axes)
    plain = CoarseRows(rows, ()).packed()
    terms, learned = [], []
    total = float(weight.sum())
    for j, (axis,) in enumerate(axes):
        table = np.empty((axis.size + 2, axis.size + 2))
        slot_products(plain, packed, j, weight, table)
        gram = table[: axis.size, : axis.size] / total
        mass = gram.sum(axis=1)
        shape = whiten(gram, bending(axis, mass), np.ones((axis.size, 1)))
        terms.append(Term((j,), (axis,), shape))
        if coarse is None:
            learned.append(coarsen(axis, mass, _pair_slots(axis, total)))
    return TermSet(rows, tuple(learned if coarse is None else coarse), tuple(terms))


def pair_terms(base: TermSet, pairs: Sequence[tuple[int, int]], weight: Array) -> tuple[Term, ...]:
    """Grids of two columns, orthogonal on the rows to every function of one of the two."""
    axes = [(base.coarse[a].axis, base.coarse[b].axis) for a, b in pairs]
    by_size: dict[tuple[int, int], list[int]] = {}
    for t, (a, b) in enumerate(axes):
        by_size.setdefault((a.size, b.size), []).append(t)
    grams, terms = _GridGrams(base, pairs, axes, weight), {}
    for (rows, columns), places in by_size.items():
        few = max(1, _WHITENED // (rows * columns) ** 2)
        for at in range(0, len(places), few):
            found = [grams.of(t) for t in places[at : at + few]]
            gram, rough = (np.stack(part) for part in zip(*found, strict=True))
            shapes = whiten_all(gram, rough, grid_margins(rows, columns))
            for t, shape in zip(places[at : at + few], shapes, strict=True):
                terms[t] = Term(pairs[t], axes[t], shape)
    return tuple(terms[t] for t in range(len(pairs)))


class _GridGrams:
    """Gram and roughness matrices of grids of two columns."""

    def __init__(
        self,
        base: TermSet,
        pairs: Sequence[tuple[int, int]],
        axes: Sequence[tuple[Axis, Axis]],
        weight: Array,
    ) -> None:
        self._pairs, self._axes, self._weight = pairs, axes, weight
        self._packed = bare(pairs, axes)
        self._rows = base.coarse_rows.packed(pairs)
        self._bends: dict[int, Array] = {}

    def of(self, t: int) -> tuple[Array, Array]:
        from laconic.solvers.hot_additive_rows import slot_products

        a, b = self._axes[t]
        size, pad = a.size * b.size, a.size * b.size + b.size + 2
        table = np.empty((pad, pad))
        slot_products(self._rows, self._packed, t, self._weight, table)
        gram = table[:size, :size] / float(self._weight.sum())
        mass = gram.sum(axis=1).reshape(a.size, b.size)
        margins = mass.sum(axis=1), mass.sum(axis=0)
        for j, axis, margin in zip(self._pairs[t], (a, b), margins, strict=True):
            if j not in self._bends:
                self._bends[j] = bending(axis, margin)
        first, second = self._pairs[t]
        return gram, grid_roughness(self._bends[first], self._bends[second], mass)


class PairGrids:
    """Grids of two columns, each made once and shared by all folds: labels play no part in them."""

    def __init__(self, singles: TermSet, weight: Array) -> None:
        self._singles, self._weight = singles, weight
        self._made: dict[tuple[int, int], Term] = {}

    def __call__(self, pairs: Sequence[tuple[int, int]]) -> tuple[Term, ...]:
        new = [pair for pair in pairs if pair not in self._made]
        self._made.update(zip(new, pair_terms(self._singles, new, self._weight), strict=True))
        return tuple(self._made[pair] for pair in pairs)


def slot_masses(terms: TermSet, weight: Array) -> list[Array]:
    """Share of the weight in every slot of every term."""
    from laconic.solvers.hot_additive_rows import slot_sums

    rows, packed = terms.packed
    out = []
    for t, term in enumerate(terms.terms):
        buffer = np.empty(term.size + term.width + 2)
        slot_sums(rows, packed, t, weight, buffer)
        out.append(buffer[: term.size] / float(weight.sum()))
    return out
