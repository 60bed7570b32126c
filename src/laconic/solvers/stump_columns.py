"""Decision stumps as columns that are priced but never built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.data.source import ArraySource, Block

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class StumpLayout:
    """Where the bins and the stumps of every feature are.

    Feature j owns the bins ``start[j]:start[j+1]`` and the stumps ``first[j]:first[j+1]``. Stump s
    of an ordered feature answers yes when code > s - first[j], of a category feature when
    code == s - first[j]. ``offered`` keeps the stumps that may enter a vote.
    """

    start: Indices
    first: Indices
    ordered: NDArray[np.bool_]
    offered: NDArray[np.bool_]

    @property
    def n_stumps(self) -> int:
        return int(self.first[-1])

    def feature(self, stumps: Any) -> Indices:
        found: Indices = np.searchsorted(self.first, stumps, side="right") - 1
        return found

    def table(self, stumps: Indices, weights: Floats) -> tuple[Floats, Indices]:
        """The vote as one number per bin, and the features it uses."""
        from laconic.solvers.hot_votes import stump_table

        feature = self.feature(stumps)
        bins = self.start[feature] + stumps - self.first[feature]
        table = np.zeros(int(self.start[-1]))
        used = np.unique(feature)
        stump_table(bins, weights, self.ordered[feature], feature, used, self.start, table)
        return table, used


class StumpColumns:
    """Votes of all stumps on coded rows: mean margins, slopes, Gram rows, scores.

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
        self.layout = layout
        self.y = y
        self.weight = weight / weight.sum()
        self.even = bool((weight == weight[0]).all())
        self.source = ArraySource(codes, y, self.weight)
        self.codes = codes
        self._packed: dict[int, NDArray[np.uint64]] = {}

    @property
    def n_columns(self) -> int:
        return self.layout.n_stumps

    @property
    def n_rows(self) -> int:
        return self.source.n_rows

    @property
    def offered(self) -> NDArray[np.bool_]:
        return self.layout.offered

    def groups(self) -> Indices:
        return self.layout.feature(np.arange(self.n_columns))

    def take(self, rows: Any) -> StumpColumns:
        codes = np.asfortranarray(self.codes[rows])
        return StumpColumns(codes, self.layout, self.y[rows], self.weight[rows])

    def scores(self, stumps: Indices, weights: Floats) -> Floats:
        """Σ_j w_j h_j(x) on every row."""
        from laconic.solvers.hot_votes import additive_score

        table, used = self.layout.table(stumps, weights)

        def add_up(block: Block) -> Floats:
            out = np.zeros(len(block))
            additive_score(block.X, self.layout.start, table, used, out)
            return out

        return np.concatenate(list(self.source.map(add_up)))

    def slopes(self, stumps: Indices, weights: Floats) -> Floats:
        """Mean of (y - vote)·h over the rows, for every stump h: one pass, no matrix."""
        from laconic.solvers.hot_votes import additive_score

        table, used = self.layout.table(stumps, weights)

        def residual(block: Block) -> Floats:
            assert block.y is not None
            assert block.weight is not None
            score = np.zeros(len(block))
            additive_score(block.X, self.layout.start, table, used, score)
            return (block.y - score) * block.weight

        return self._edges(residual)

    def row_edges(self, value: Floats) -> Floats:
        """Σ_i value_i h(x_i) for every stump h."""
        return self._edges(lambda block: value[block.rows])

    def _edges(self, value_of: Any) -> Floats:
        from laconic.solvers.hot_votes import histogram, stump_edges

        layout = self.layout

        def count(block: Block) -> Floats:
            bins = np.zeros(int(layout.start[-1]))
            histogram(block.X, layout.start, value_of(block), bins)
            return bins

        edges = np.empty(self.n_columns)
        stump_edges(self.source.sum(count), layout.start, layout.first, layout.ordered, edges)
        return edges

    def first_moment(self) -> Floats:
        return self.row_edges(self.y * self.weight)

    def votes(self, stumps: Indices) -> Floats:
        """The ±1 votes themselves, one column per stump (for voters that entered only)."""
        out = np.empty((self.n_rows, len(stumps)), order="F")
        for k, (s, j) in enumerate(zip(stumps, self.layout.feature(stumps), strict=True)):
            b = s - self.layout.first[j]
            column = self.codes[:, j]
            out[:, k] = np.where(column > b if self.layout.ordered[j] else column == b, 1.0, -1.0)
        return out

    def packed(self, stumps: Indices, *, keep: bool = False) -> NDArray[np.uint64]:
        """Answers of some stumps, one bit per row; ``keep`` remembers them."""
        from laconic.solvers.hot_votes import pack_stump

        layout = self.layout
        words = (self.n_rows + 63) // 64
        out = np.empty((len(stumps), words), dtype=np.uint64)
        for k, (s, j) in enumerate(zip(stumps, layout.feature(stumps), strict=True)):
            known = self._packed.get(int(s))
            if known is None:
                known = np.empty(words, dtype=np.uint64) if keep else out[k]
                pack_stump(
                    self.codes[:, j], int(s - layout.first[j]), bool(layout.ordered[j]), known
                )
                if keep:
                    self._packed[int(s)] = known
            out[k] = known
        return out

    def gram(self, new: Indices, old: Indices) -> Floats:
        """Mean products of votes, new × old: popcounts when rows weigh the same."""
        if self.even:
            from laconic.solvers.hot_votes import disagreements

            count = np.empty((len(new), len(old)), dtype=np.int64)
            disagreements(self.packed(new, keep=True), self.packed(old, keep=True), count)
            return 1.0 - 2.0 * count / self.n_rows
        rows = np.empty((len(new), len(old)))
        for k, s in enumerate(new):
            votes = self.votes(np.array([s]))[:, 0]
            rows[k] = self.row_edges(votes * self.weight)[old]
        return rows

    def full_gram(self, stumps: Indices) -> Floats:
        """Gram matrix of a whole list of stumps."""
        if self.even:
            from laconic.solvers.hot_votes import self_disagreements

            count = np.zeros((len(stumps), len(stumps)), dtype=np.int64)
            self_disagreements(self.packed(stumps), count)
            return 1.0 - 2.0 * count / self.n_rows
        gram: Floats = self.source.sum(lambda block: self._weighted_gram(block, stumps))
        return gram

    def _weighted_gram(self, block: Block, stumps: Indices) -> Floats:
        part = StumpColumns(block.X, self.layout, self.y[block.rows], self.weight[block.rows])
        votes = part.votes(stumps)
        gram: Floats = (votes * self.weight[block.rows, None]).T @ votes
        return gram

    def distinct(self) -> tuple[Indices, Indices]:
        """Offered stumps without repetitions up to sign, and how many each stands for."""
        stumps = np.flatnonzero(self.offered)
        packed = self.packed(stumps)
        flip = (packed[:, 0] & np.uint64(1)) == 1
        packed[flip] = ~packed[flip]
        tail = self.n_rows % 64
        if tail:
            packed[:, -1] &= np.uint64((1 << tail) - 1)
        _, place, multiple = np.unique(packed, axis=0, return_index=True, return_counts=True)
        keep = np.argsort(place, kind="stable")
        return stumps[place[keep]], multiple[keep]
