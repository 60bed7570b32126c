"""Terms of an additive model on encoded rows: which columns, which slots, which basis.

A shape is given by its values on the slots of one column or on the cells of a grid of two. Its
basis B_t is chosen (Demmler and Reinsch, *Numerische Mathematik* 24, 1975) so that |g_t| is the
standard deviation of B_t g_t on the training rows, every shape has mean zero, and the roughness is
diagonal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.additive import tuning
from laconic.data.tables.axes import Axis, CategoryAxis, CoarseAxis, EncodedRows, KnotAxis, coarsen

if TYPE_CHECKING:
    from laconic.additive._numba_rows import Rows, Terms


def bending(axis: Axis, mass: Floats) -> Floats:
    """Roughness matrix of the values on the slots of one axis.

    Knots: the integral of the squared second derivative on the scale of ranks, where knots are
    equally spaced (the difference penalty of Eilers and Marx, *Statistical Science* 11, 1996).
    Special values: their squared distance from the line; missing: from the mean of the rest.
    Categories and intervals: the sum of squares.
    """
    if not isinstance(axis, KnotAxis):
        return np.eye(axis.size)
    m = len(axis.knots)
    rows = []
    if m > 2:
        second = np.zeros((m - 2, axis.size))
        for k in range(m - 2):
            second[k, k : k + 3] = (1.0, -2.0, 1.0)
        rows.append(second * (m - 1.0) ** 1.5)
    where = axis.encode(axis.specials)[0]
    levels = np.zeros((len(axis.specials) + 1, axis.size))
    for k in range(len(axis.specials)):
        levels[k, where[k]] = 1.0
        place = KnotAxis(axis.knots, np.empty(0)).encode(axis.specials[k : k + 1])
        slot, part = int(place[0][0]), float(place[1][0])
        levels[k, slot] -= 1.0 - part
        if part > 0:
            levels[k, slot + 1] -= part
    # pulled to the mean of all other rows, so that a missing value never seen contributes zero
    others = mass[: axis.missing]
    share = others / others.sum() if others.sum() > 0 else np.full(len(others), 1.0 / len(others))
    levels[-1, axis.missing] = 1.0
    levels[-1, : axis.missing] -= share
    rows.append(levels * np.sqrt(tuning.LEVEL_RIDGE))
    stacked = np.concatenate(rows)
    return np.asarray(stacked.T @ stacked)


def grid_roughness(first: Floats, second: Floats, mass: Floats) -> Floats:
    """Roughness on the cells of a grid: along each axis, averaged over the other one."""
    share = mass / max(float(mass.sum()), 1e-300)
    row, column = share.sum(axis=1), share.sum(axis=0)
    a, b = mass.shape
    out = np.zeros((a, b, a, b))
    i, j = np.arange(a), np.arange(b)
    out[:, j, :, j] = column[:, None, None] * first
    out[i, :, i, :] += row[:, None, None] * second
    return out.reshape(a * b, a * b)


@lru_cache(maxsize=512)
def grid_margins(rows: int, columns: int) -> Floats:
    """Cells of a grid in each of its rows, then in each of its columns: 0 or 1."""
    row, column = np.divmod(np.arange(rows * columns), columns)
    in_row = row[:, None] == np.arange(rows)
    in_column = column[:, None] == np.arange(columns)
    return np.concatenate([in_row, in_column], axis=1).astype(np.float64)


@dataclass(frozen=True)
class Shape:
    """Basis of one term: slot values ``basis @ g``; ``rough`` is the diagonal of its roughness."""

    basis: Floats
    rough: Floats

    @property
    def rank(self) -> int:
        return len(self.rough)


def whiten(gram: Floats, roughness: Floats, removed: Floats) -> Shape:
    """Basis with unit Gram matrix and diagonal roughness, orthogonal to the columns ``removed``.

    ``gram`` is the weighted mean of products of slot shares. Directions that no row sees (empty
    knots, absent levels) are not free coordinates: they take the smoothest values given the rest.
    """
    return whiten_all(gram[None], roughness[None], removed)[0]


def whiten_all(grams: Floats, roughness: Floats, removed: Floats) -> list[Shape]:
    """The same for many terms of equal size: (terms, slots, slots) each.

    Every matrix is treated on its own: the result does not depend on which ones come together.
    """
    vectors, sizes, _ = np.linalg.svd(grams @ removed)
    columns = grams.shape[1], removed.shape[1]
    least = sizes.max(axis=1, initial=0.0) * max(columns) * np.finfo(np.float64).eps
    n_removed = (sizes > least[:, None]).sum(axis=1)
    shapes: list[Shape] = [Shape(np.zeros((grams.shape[1], 0)), np.zeros(0))] * len(grams)
    for n in np.unique(n_removed):
        some = np.flatnonzero(n_removed == n)
        keep = np.ascontiguousarray(vectors[some][:, :, n:])
        for k, shape in _whiten_inside(grams[some], roughness[some], keep):
            shapes[some[k]] = shape
    return shapes


def _whiten_inside(grams: Floats, roughness: Floats, keep: Floats) -> Iterator[tuple[int, Shape]]:
    """Place and shape of every term that a row sees, in the orthonormal bases ``keep``."""
    inner, rough = _turned(grams, keep), _turned(roughness, keep)
    values, vectors = np.linalg.eigh(0.5 * (inner + inner.mT))
    total = np.maximum(np.trace(grams, axis1=1, axis2=2), 1e-300)
    floor = 1e-10 * np.maximum(np.trace(roughness, axis1=1, axis2=2), 1e-300)
    n_seen = (values > 1e-9 * total[:, None]).sum(axis=1)
    for n in np.unique(n_seen[n_seen > 0]):
        some = np.flatnonzero(n_seen == n)
        # eigenvalues grow: those that rows see are the last ones
        scaled = vectors[some][:, :, -n:] / np.sqrt(values[some][:, None, -n:])
        scaled = _smoothest(scaled, vectors[some][:, :, :-n], rough[some])
        bend, turn = np.linalg.eigh(_turned(rough[some], scaled))
        bases = keep[some] @ (scaled @ turn)
        for k, basis, sizes in zip(some, bases, bend, strict=True):
            straight = sizes <= max(float(floor[k]), 1e-9 * float(sizes[-1]))
            yield int(k), Shape(np.ascontiguousarray(basis), np.where(straight, 0.0, sizes))


def _smoothest(scaled: Floats, unseen: Floats, rough: Floats) -> Floats:
    """``scaled`` plus the directions that no row sees which make it least rough."""
    if unseen.shape[2] == 0:
        return scaled
    sizes, turns = np.linalg.eigh(_turned(rough, unseen))
    some = sizes > 1e-13 * sizes.max(axis=1, keepdims=True, initial=0.0)
    inverse = np.where(some, 1.0 / np.where(some, sizes, 1.0), 0.0)
    toward = unseen @ turns
    return np.asarray(scaled - toward @ (inverse[:, :, None] * (toward.mT @ rough @ scaled)))


def _turned(matrices: Floats, bases: Floats) -> Floats:
    return np.asarray(bases.mT @ matrices @ bases)


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
    def rank(self) -> Ints:
        return np.array([t.shape.rank for t in self.terms], dtype=np.int64)

    @cached_property
    def start(self) -> Ints:
        return (np.cumsum(self.rank) - self.rank).astype(np.int64)

    @cached_property
    def owner(self) -> Ints:
        """Term of every coordinate."""
        return np.repeat(np.arange(len(self.terms)), self.rank)

    @cached_property
    def rough(self) -> Floats:
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

    def values(self, t: int, point: Floats) -> Floats:
        """Slot values of term t: (slots, scores)."""
        part = slice(self.start[t], self.start[t] + self.rank[t])
        return np.asarray(self.terms[t].shape.basis @ point[:, part].T)

    def scores(self, intercept: Floats, g: Floats) -> Floats:
        """(scores, rows) of given coordinates."""
        from laconic.additive._numba_rows import score_change

        out = np.empty((len(g), self.rows.n_rows))
        score_change(*self.packed, np.flatnonzero(self.rank > 0), g, intercept, out)
        return out

    @cached_property
    def packed(self) -> tuple[Rows, Terms]:
        """The same as flat arrays, for the compiled passes."""
        pairs = [t.columns for t in self.terms if t.width]
        return self.coarse_rows.packed(pairs), pack(self.terms)


class CoarseRows:
    """Rows on the coarse axes of pairs: the columns asked for so far, in one store."""

    def __init__(self, rows: EncodedRows, coarse: Sequence[CoarseAxis]) -> None:
        self._rows, self._coarse = rows, coarse
        nowhere = np.full(max(1, len(rows.axes)), -1, dtype=np.int64)
        slots = np.empty((0, rows.n_rows), dtype=np.uint8)
        # the first row of fractions is zero, for all columns that lie on coarse knots;
        # replaced as a whole, so that folds in threads never see half of it
        fractions = np.zeros((1, rows.n_rows), dtype=np.float32)
        self._store = nowhere, slots, nowhere, fractions, np.zeros(len(nowhere), dtype=bool)
        self._yes_no = (rows.fraction_row < 0) & (rows.index.max(axis=1, initial=0) <= 1)

    def packed(self, pairs: Sequence[tuple[int, ...]] = ()) -> Rows:
        """The rows as flat arrays, with the coarse places of at least the columns in ``pairs``."""
        from laconic.additive._numba_rows import Rows

        place, slots, fraction_place, fractions, yes_no = self._store
        new = [j for j in sorted({j for pair in pairs for j in pair}) if place[j] < 0]
        if new:
            place, fraction_place, yes_no = place.copy(), fraction_place.copy(), yes_no.copy()
            place[new] = len(slots) + np.arange(len(new))
            found = [self._column(j) for j in new]
            between = [part is not None for _, part in found]
            fraction_place[new] = np.where(between, len(fractions) - 1 + np.cumsum(between), 0)
            yes_no[new] = [part is None and slot.max(initial=0) <= 1 for slot, part in found]
            slots = np.concatenate([slots, *(slot[None, :] for slot, _ in found)])
            parts = [part[None, :] for _, part in found if part is not None]
            fractions = np.concatenate([fractions, *parts])
            self._store = place, slots, fraction_place, fractions, yes_no
        rows = self._rows
        coarse = place, slots, fraction_place, fractions
        return Rows(rows.index, rows.fraction, rows.fraction_row, *coarse, self._yes_no, yes_no)

    def _column(self, j: int) -> tuple[NDArray[np.uint8], NDArray[np.float32] | None]:
        """Coarse slot and interpolation fraction of every row; None when all are on knots."""
        from laconic.additive._numba_rows import on_coarse_axis

        axis, slot, row = self._coarse[j], self._rows.index[j], self._rows.fraction_row[j]
        if row < 0:
            part = axis.base[slot]
            return axis.index[slot], part if part.any() else None
        coarse, part = np.empty_like(slot), np.empty(len(slot), dtype=np.float32)
        read = axis.index, axis.base, axis.step
        between = on_coarse_axis(slot, self._rows.fraction[row], *read, coarse, part)
        return coarse, part if between else None


def pack(terms: Sequence[Term]) -> Terms:
    """The terms as flat arrays, for the compiled passes."""
    from laconic.additive._numba_rows import Terms

    def numbers(found: Sequence[int]) -> Ints:
        return np.array(found, dtype=np.int64)

    ranks = numbers([t.shape.rank for t in terms])
    sizes = numbers([t.shape.basis.size for t in terms])
    return Terms(
        numbers([t.columns[0] for t in terms]),
        numbers([t.columns[1] if t.width else -1 for t in terms]),
        numbers([t.size for t in terms]),
        numbers([t.width for t in terms]),
        ranks,
        np.cumsum(ranks) - ranks,
        np.cumsum(sizes) - sizes,
        np.concatenate([np.zeros(0), *(t.shape.basis.ravel() for t in terms)]),
        numbers([t.n_knots for t in terms]),
    )


def bare(columns: tuple[int, ...], axes: tuple[Axis, ...]) -> Term:
    """A term without a basis yet, enough for sums over slots."""
    size = int(np.prod([axis.size for axis in axes]))
    return Term(columns, axes, Shape(np.zeros((size, 0)), np.zeros(0)))


def _pair_slots(axis: Axis, total: float) -> int:
    """Slots of an axis in a grid: a grid has their square, and rows must fill it."""
    if isinstance(axis, CategoryAxis):
        return tuning.PAIR_CATEGORIES
    return int(np.clip(round((total / tuning.ROWS_A_CELL) ** 0.5), *tuning.PAIR_KNOTS))


def single_terms(
    rows: EncodedRows, weight: Floats, coarse: Sequence[CoarseAxis] | None = None
) -> TermSet:
    """One term for each column; columns that are constant on the rows give a term of rank 0.

    ``coarse`` are the axes of pairs, learned from the rows unless given.
    """
    return terms_of_grams(rows, slot_grams(rows, weight), float(weight.sum()), coarse)


def slot_grams(rows: EncodedRows, weight: Floats) -> list[Floats]:
    """Weighted sums of products of slot shares, column by column."""
    from laconic.additive._numba_rows import slot_products

    packed = pack([bare((j,), (axis,)) for j, axis in enumerate(rows.axes)])
    plain = CoarseRows(rows, ()).packed()
    found = []
    for j, axis in enumerate(rows.axes):
        table = np.empty((axis.size + 2, axis.size + 2))
        slot_products(plain, packed, j, weight, table)
        found.append(table[: axis.size, : axis.size])
    return found


def terms_of_grams(
    rows: EncodedRows,
    grams: Sequence[Floats],
    total: float,
    coarse: Sequence[CoarseAxis] | None = None,
) -> TermSet:
    """:func:`single_terms` on ``rows`` whose bases belong to all rows that made the grams."""
    terms, learned = [], []
    for j, (axis, products) in enumerate(zip(rows.axes, grams, strict=True)):
        gram = products / total
        mass = gram.sum(axis=1)
        shape = whiten(gram, bending(axis, mass), np.ones((axis.size, 1)))
        terms.append(Term((j,), (axis,), shape))
        if coarse is None:
            learned.append(coarsen(axis, mass, _pair_slots(axis, total)))
    return TermSet(rows, tuple(learned if coarse is None else coarse), tuple(terms))


def pair_terms(base: TermSet, pairs: Sequence[tuple[int, int]], weight: Floats) -> tuple[Term, ...]:
    """Grids of two columns, orthogonal on the rows to every function of one of the two."""
    axes = [(base.coarse[a].axis, base.coarse[b].axis) for a, b in pairs]
    by_size: dict[tuple[int, int], list[int]] = {}
    for t, (a, b) in enumerate(axes):
        by_size.setdefault((a.size, b.size), []).append(t)
    grams, terms = _GridGrams(base, pairs, axes, weight), {}
    for (rows, columns), places in by_size.items():
        few = max(1, tuning.WHITENED // (rows * columns) ** 2)
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
        weight: Floats,
    ) -> None:
        self._pairs, self._axes, self._weight = pairs, axes, weight
        self._packed = pack([bare(*both) for both in zip(pairs, axes, strict=True)])
        self._rows = base.coarse_rows.packed(pairs)
        self._bends: dict[int, Floats] = {}

    def of(self, t: int) -> tuple[Floats, Floats]:
        from laconic.additive._numba_rows import slot_products

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

    def __init__(self, singles: TermSet, weight: Floats) -> None:
        self._singles, self._weight = singles, weight
        self._made: dict[tuple[int, int], Term] = {}

    def __call__(self, pairs: Sequence[tuple[int, int]]) -> tuple[Term, ...]:
        new = [pair for pair in pairs if pair not in self._made]
        self._made.update(zip(new, pair_terms(self._singles, new, self._weight), strict=True))
        return tuple(self._made[pair] for pair in pairs)


def slot_masses(terms: TermSet, weight: Floats) -> list[Floats]:
    """Share of the weight in every slot of every term."""
    from laconic.additive._numba_rows import slot_sums

    rows, packed = terms.packed
    out = []
    for t, term in enumerate(terms.terms):
        buffer = np.empty(term.size + term.width + 2)
        slot_sums(rows, packed, t, weight, buffer)
        out.append(buffer[: term.size] / float(weight.sum()))
    return out
