"""Votes of many voters on the training rows, as columns: dense, or stumps that are never built."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.data.source import ArraySource, Block

NO_MARGIN = 1e-14
"""A smaller mean margin is the rounding error of none: the weights of the rows sum to one."""


def mean_margins(edges: Floats, total: float) -> Floats:
    """Edges over the total weight; what rounding left of a zero is zero.

    >>> mean_margins(np.array([3.0, 1e-16]), 4.0).tolist()
    [0.75, 0.0]
    """
    first = edges / total
    return np.where(np.abs(first) < NO_MARGIN, 0.0, first)


class Columns:
    """Votes h_j(x_i) of ``n_columns`` voters on labelled, weighted rows (weights sum to one).

    ``rows`` is what the votes are read from, block after block.
    """

    n_columns: int

    def __init__(self, rows: NDArray[Any], y: Floats, weight: Floats) -> None:
        self.y = y
        self.given = weight
        self.weight = weight / weight.sum()
        self.source = ArraySource(rows, y, self.weight)

    @property
    def n_rows(self) -> int:
        return self.source.n_rows

    def equal_rows(self) -> tuple[Ints, Ints]:
        """First place of each distinct (row, side), in order, and the number of each row's."""
        rows = np.ascontiguousarray(np.column_stack([self.source.X, self.y]))
        whole = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))[:, 0]
        _, first, group = np.unique(whole, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))
        return np.sort(first), rank[group]

    def first_moment(self) -> Floats:
        """Mean margin a_j = mean of y h_j of every voter.

        Sums of given weights are exact where these are counts, so that equal margins are equal.
        """
        return mean_margins(self.row_edges(self.y * self.given), float(self.given.sum()))

    def slopes(self, columns: Ints, weights: Floats) -> Floats:
        """Mean of (y - vote)·h_j for every voter: one pass."""
        return self.row_edges((self.y - self.scores(columns, weights)) * self.weight)

    def full_gram(self, columns: Ints) -> Floats:
        """Mean products of the listed voters."""
        return self.gram(columns, columns)

    def squares(self) -> Floats:
        """Mean of h_j² of every voter: one for those that never abstain."""
        return np.ones(self.n_columns)

    def groups(self) -> Ints:
        """Voters of one group are alternatives of which one is priced at a time."""
        return np.arange(self.n_columns)

    def row_edges(self, value: Floats) -> Floats:
        """Σ_i value_i h_j(x_i) for every voter."""
        raise NotImplementedError

    def gram(self, new: Ints, old: Ints) -> Floats:
        """Mean products of votes, new × old."""
        raise NotImplementedError

    def votes(self, columns: Ints) -> Floats:
        """The votes themselves, (rows, listed voters)."""
        raise NotImplementedError

    def scores(self, columns: Ints, weights: Floats) -> Floats:
        """Σ_j w_j h_j(x) on every row."""
        raise NotImplementedError

    def distinct(self) -> tuple[Ints, Floats]:
        """Voters without repetitions up to sign, and how many each stands for."""
        raise NotImplementedError


class DenseColumns(Columns):
    """A matrix of votes in [-1, 1], held in memory (kernel voters, given scores).

    ``copies`` says how many voters each column stands for.
    """

    def __init__(self, H: Floats, y: Floats, weight: Floats, copies: Floats | None = None) -> None:
        super().__init__(H, y, weight)
        self.H = H
        self.n_columns = int(H.shape[1])
        self.copies = np.ones(H.shape[1]) if copies is None else copies

    def scores(self, columns: Ints, weights: Floats) -> Floats:
        return np.asarray(self.H[:, columns] @ weights)

    def votes(self, columns: Ints) -> Floats:
        return self.H[:, columns]

    def row_edges(self, value: Floats) -> Floats:
        return np.asarray(self.source.sum(lambda block: block.X.T @ value[block.rows]))

    def gram(self, new: Ints, old: Ints) -> Floats:
        def part(block: Block) -> Any:
            assert block.weight is not None
            return (block.X[:, new] * block.weight[:, None]).T @ block.X[:, old]

        return np.asarray(self.source.sum(part))

    def squares(self) -> Floats:
        return np.asarray(self.weight @ (self.H * self.H))

    def distinct(self) -> tuple[Ints, Floats]:
        lead = np.argmax(self.H != 0, axis=0)
        sign = np.where(self.H[lead, np.arange(self.n_columns)] < 0, -1.0, 1.0)
        rows = np.ascontiguousarray((self.H * sign).T) + 0.0
        _, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        copies = np.bincount(place.ravel(), self.copies).astype(np.float64)
        keep = np.argsort(first, kind="stable")
        return first[keep].astype(np.int64), copies[keep]


@dataclass(frozen=True)
class StumpLayout:
    """Where the bins and the stumps of every feature are.

    Feature j owns the bins ``start[j]:start[j+1]`` and the stumps ``first[j]:first[j+1]``. Stump s
    of an ordered feature answers yes when code > s - first[j], of a category feature when
    code == s - first[j].
    """

    start: Ints
    first: Ints
    ordered: NDArray[np.bool_]

    @property
    def n_stumps(self) -> int:
        return int(self.first[-1])

    @property
    def n_bins(self) -> int:
        return int(self.start[-1])

    def feature(self, stumps: Any) -> Ints:
        return np.asarray(np.searchsorted(self.first, stumps, side="right") - 1)

    def table(self, stumps: Ints, weights: Floats) -> tuple[Floats, Ints]:
        """The vote as one number per bin, and the features it uses."""
        from laconic.votes._numba import stump_table

        feature = self.feature(stumps)
        bins = self.start[feature] + stumps - self.first[feature]
        table = np.zeros(self.n_bins)
        used = np.unique(feature)
        stump_table(bins, weights, self.ordered[feature], feature, used, self.start, table)
        return table, used

    def edges(self, bins: Floats) -> Floats:
        """Σ value·(+1 where a stump says yes, else -1) for every stump, from sums by bin."""
        from laconic.votes._numba import stump_edges

        edges = np.empty(self.n_stumps)
        stump_edges(bins, self.start, self.first, self.ordered, edges)
        return edges


class StumpColumns(Columns):
    """Votes of all stumps on coded rows; one weighted histogram prices them all.

    Parameters
    ----------
    codes : array of shape (n_rows, n_features), columns contiguous
        Small non-negative integers.
    layout : StumpLayout
    y : array of -1 and +1
    weight : array
        Row weights; their scale does not matter.
    """

    def __init__(self, codes: NDArray[Any], layout: StumpLayout, y: Floats, weight: Floats) -> None:
        super().__init__(codes, y, weight)
        self.layout = layout
        self.n_columns = layout.n_stumps
        self.even = bool((weight == weight[0]).all())
        self.codes = codes
        self._packed: dict[int, NDArray[np.uint64]] = {}

    def groups(self) -> Ints:
        return self.layout.feature(np.arange(self.n_columns))

    def take(self, rows: Any) -> StumpColumns:
        codes = np.asfortranarray(self.codes[rows])
        return StumpColumns(codes, self.layout, self.y[rows], self.weight[rows])

    def scores(self, columns: Ints, weights: Floats) -> Floats:
        from laconic.votes._numba import additive_score

        table, used = self.layout.table(columns, weights)

        def add_up(block: Block) -> Floats:
            out = np.zeros(len(block))
            additive_score(block.X, self.layout.start, table, used, out)
            return out

        return np.concatenate(list(self.source.map(add_up)))

    def row_edges(self, value: Floats) -> Floats:
        from laconic.votes._numba import histogram

        layout = self.layout

        def count(block: Block) -> Floats:
            bins = np.zeros(layout.n_bins)
            histogram(block.X, layout.start, value[block.rows], bins)
            return bins

        return layout.edges(self.source.sum(count))

    def votes(self, columns: Ints) -> Floats:
        out = np.empty((self.n_rows, len(columns)), order="F")
        for k, (j, b, ordered) in enumerate(self._questions(columns)):
            column = self.codes[:, j]
            out[:, k] = np.where(column > b if ordered else column == b, 1.0, -1.0)
        return out

    def _questions(self, stumps: Ints) -> Iterator[tuple[int, int, bool]]:
        """Feature, bin and order of each stump."""
        first, ordered = self.layout.first, self.layout.ordered
        for s, j in zip(stumps, self.layout.feature(stumps), strict=True):
            yield int(j), int(s - first[j]), bool(ordered[j])

    def packed(self, stumps: Ints, *, keep: bool = False) -> NDArray[np.uint64]:
        """Answers of some stumps, one bit per row; ``keep`` remembers them."""
        from laconic.votes._numba import pack_stump

        out = np.empty((len(stumps), (self.n_rows + 63) // 64), dtype=np.uint64)
        for k, (s, (j, b, ordered)) in enumerate(
            zip(stumps.tolist(), self._questions(stumps), strict=True)
        ):
            if s in self._packed:
                out[k] = self._packed[s]
                continue
            pack_stump(self.codes[:, j], b, ordered, out[k])
            if keep:
                self._packed[s] = out[k].copy()
        return out

    def gram(self, new: Ints, old: Ints) -> Floats:
        """Popcounts when rows weigh the same."""
        if self.even:
            from laconic.votes._numba import disagreements

            count = np.empty((len(new), len(old)), dtype=np.int64)
            disagreements(self.packed(new, keep=True), self.packed(old, keep=True), count)
            return 1.0 - 2.0 * count / self.n_rows
        rows = np.empty((len(new), len(old)))
        for k, s in enumerate(new):
            votes = self.votes(np.array([s]))[:, 0]
            rows[k] = self.row_edges(votes * self.weight)[old]
        return rows

    def full_gram(self, columns: Ints) -> Floats:
        if self.even:
            from laconic.votes._numba import self_disagreements

            count = np.zeros((len(columns), len(columns)), dtype=np.int64)
            self_disagreements(self.packed(columns), count)
            return 1.0 - 2.0 * count / self.n_rows
        return np.asarray(self.source.sum(lambda block: self._weighted_gram(block, columns)))

    def _weighted_gram(self, block: Block, columns: Ints) -> Floats:
        rows = self.weight[block.rows]
        votes = StumpColumns(block.X, self.layout, self.y[block.rows], rows).votes(columns)
        return np.asarray((votes * rows[:, None]).T @ votes)

    def distinct(self) -> tuple[Ints, Floats]:
        packed = self.packed(np.arange(self.n_columns))
        flip = (packed[:, 0] & np.uint64(1)) == 1
        packed[flip] = ~packed[flip]
        tail = self.n_rows % 64
        if tail:
            packed[:, -1] &= np.uint64((1 << tail) - 1)
        _, place, multiple = np.unique(packed, axis=0, return_index=True, return_counts=True)
        keep = np.argsort(place, kind="stable")
        return place[keep].astype(np.int64), multiple[keep].astype(np.float64)
