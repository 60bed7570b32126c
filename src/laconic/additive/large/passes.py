"""What the blocks of many rows add to a fit of the additive model: arrays of fixed size.

Rows stay encoded with whoever owns their block. A pass sends the values of the shapes on their
slots and brings back sums by slot, so that no basis travels: with B the basis of a term, values are
B g and sums of coordinates are B' (sums of slots), both computed by the process that fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from laconic._typing import Floats, Ints
from laconic.additive.criterion import LossState, row_gap
from laconic.additive.terms import CoarseRows, TermSet, bare, pack
from laconic.core.losses import TruncatedLogistic
from laconic.data.source import Block
from laconic.data.tables.axes import Axis, CoarseAxis, EncodedRows

if TYPE_CHECKING:
    from laconic.additive._numba_rows import Rows, Terms


def bands(table: Floats, width: int) -> Floats:
    """The diagonals of a table of slot products that can differ from zero, one a line.

    A row lies between two neighbouring knots, or in the four corners of a cell of a grid with
    ``width`` columns.
    """
    size = len(table)
    out = np.zeros((len(_offsets(width)), size))
    for line, offset in zip(out, _offsets(width), strict=True):
        if offset < size:
            line[: size - offset] = np.diagonal(table, offset)
    return out


def unbanded(lines: Floats, width: int) -> Floats:
    """The table of given :func:`bands`."""
    size = lines.shape[1]
    out = np.zeros((size, size))
    for line, offset in zip(lines, _offsets(width), strict=True):
        places = np.arange(max(0, size - offset))
        out[places, places + offset] = out[places + offset, places] = line[: len(places)]
    return out


def _offsets(width: int) -> list[int]:
    return sorted({0, 1} if width == 0 else {0, 1, width - 1, width, width + 1})


def encoded_block(block: Block, axes: tuple[Axis, ...]) -> EncodedRows:
    """The rows of a block that keeps slots, fractions (in one line) and their places."""
    index, line, place = block.X
    return EncodedRows(axes, index, line.reshape(-1, index.shape[1]), place)


@dataclass(frozen=True)
class Layout:
    """Columns and slots of some terms, without their bases; it travels to the workers.

    Term t has its slots from ``place[t]`` to ``place[t + 1]``.
    """

    axes: tuple[Axis, ...]
    coarse: tuple[CoarseAxis, ...]
    pairs: tuple[tuple[int, ...], ...]
    terms: Terms
    place: Ints

    @classmethod
    def of(cls, terms: TermSet) -> Layout:
        packed = pack([bare(term.columns, term.axes) for term in terms.terms])
        pairs = tuple(term.columns for term in terms.terms if term.width)
        place = np.concatenate([[0], np.cumsum(packed.size)]).astype(np.int64)
        return cls(terms.rows.axes, terms.coarse, pairs, packed, place)

    def rows(self, block: Block) -> Rows:
        """The rows of an encoded block for the compiled passes."""
        return CoarseRows(encoded_block(block, self.axes), self.coarse).packed(self.pairs)

    def scores(self, rows: Rows, values: Floats, intercept: Floats) -> Floats:
        from laconic.additive.large._numba import scores_of_slots

        out = np.empty((len(values), rows.slots.shape[1]))
        scores_of_slots(rows, self.terms, self.place, values, intercept, out)
        return out

    def sums(self, rows: Rows, values: Floats) -> Floats:
        """(lines, slots): sums of every line of ``values`` (lines, rows) by slot."""
        from laconic.additive.large._numba import sums_of_slots

        out = np.empty((len(values), int(self.place[-1])))
        sums_of_slots(rows, self.terms, self.place, values, out)
        return out

    def products(self, rows: Rows, values: Floats) -> Sequence[Floats]:
        """Bands of the slot products of every term, (lines, bands, slots) each."""
        from laconic.additive._numba_rows import slot_products

        found = []
        for t, (size, width) in enumerate(zip(self.terms.size, self.terms.width, strict=True)):
            pad = int(size + width + 2)
            table, own = np.empty((pad, pad)), []
            for line in values:
                slot_products(rows, self.terms, t, line, table)
                own.append(bands(table[:size, :size], int(width)))
            found.append(np.stack(own))
        return found


@dataclass(frozen=True)
class BlockLabels:
    """Class codes and weights of the rows of a block, and their loss."""

    y: Ints
    weight: Floats
    loss: TruncatedLogistic
    n_classes: int

    @property
    def n_scores(self) -> int:
        return 1 if self.n_classes == 2 else self.n_classes

    def one_hot(self) -> Floats:
        return np.asarray(self.y == np.arange(self.n_classes)[:, None], dtype=np.float64)


@dataclass(frozen=True)
class PassPoint:
    """A point by its values on slots (scores, slots), and the loss that is summed there."""

    layout: Layout
    values: Floats
    intercept: Floats
    loss: TruncatedLogistic
    n_classes: int
    C: float
    blur: float

    def at(self, block: Block) -> tuple[Rows, BlockLabels, LossState, Floats]:
        """Rows and labels of a block, an empty loss and the scores."""
        assert block.y is not None
        assert block.weight is not None
        rows = self.layout.rows(block)
        labels = BlockLabels(block.y, self.C * block.weight, self.loss, self.n_classes)
        scores = self.layout.scores(rows, self.values, self.intercept)
        return rows, labels, LossState(labels, self.blur), scores


@dataclass(frozen=True)
class SlopeSums:
    """Loss, sum of slopes of every score, and their sums by slot.

    ``whole`` adds what is needed once: class weights, their sums by slot and the curvatures of
    every term.
    """

    point: PassPoint
    whole: bool = False

    def __call__(self, block: Block) -> tuple[Any, ...]:
        rows, labels, state, scores = self.point.at(block)
        layout = self.point.layout
        value = np.float64(state.loss(scores))
        found = value, state.slopes.sum(axis=1), layout.sums(rows, state.slopes)
        if not self.whole:
            return found
        by_class = labels.one_hot() * labels.weight
        own = by_class.sum(axis=1), layout.sums(rows, by_class)
        return *found, *own, *layout.products(rows, state.curves)


@dataclass(frozen=True)
class LossesAlong:
    """Losses at several shares of the way from one point to another."""

    start: PassPoint
    end: PassPoint
    shares: tuple[float, ...]

    def __call__(self, block: Block) -> Floats:
        _, _, state, scores = self.end.at(block)
        before = self.start.at(block)[3]
        step = scores - before
        return np.array([state.loss(before + share * step) for share in self.shares])


@dataclass(frozen=True)
class RowGap:
    """sum_i c_i FY_i for dual probabilities (1 - eps) p + eps q, and the loss without rounding."""

    point: PassPoint
    eps: float
    q: Floats

    def __call__(self, block: Block) -> Floats:
        _, labels, state, scores = self.point.at(block)
        state.loss(scores)
        hot, safe = labels.one_hot(), np.where(labels.weight > 0, labels.weight, 1.0)
        if labels.n_scores == 1:
            p1 = np.clip(hot[1] + state.slopes[0] / safe, 0.0, 1.0)
            p = np.stack([1.0 - p1, p1])
        else:
            p = np.clip(hot + state.slopes / safe, 0.0, 1.0)
        if self.eps > 0.0:
            p = (1.0 - self.eps) * p + self.eps * self.q[:, None]
        gap = row_gap(scores, p, labels.y, labels.weight, labels.loss)
        return np.array([gap, LossState(labels, 0.0).loss(scores)])
