"""Decision stumps as columns that are priced but never built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.data.source import ArraySource, Block
from laconic.data.tables.columns import Table
from laconic.data.tables.kinds import MISSING, shown


@dataclass(frozen=True)
class StumpLayout:
    """Where the bins and the stumps of every feature are.

    Feature j owns the bins ``start[j]:start[j+1]`` and the stumps ``first[j]:first[j+1]``. Stump s
    of an ordered feature answers yes when code > s - first[j], of a category feature when
    code == s - first[j]. ``offered`` keeps the stumps that may enter a vote.
    """

    start: Ints
    first: Ints
    ordered: NDArray[np.bool_]
    offered: NDArray[np.bool_]

    @property
    def n_stumps(self) -> int:
        return int(self.first[-1])

    def feature(self, stumps: Any) -> Ints:
        found: Ints = np.searchsorted(self.first, stumps, side="right") - 1
        return found

    def table(self, stumps: Ints, weights: Floats) -> tuple[Floats, Ints]:
        """The vote as one number per bin, and the features it uses."""
        from laconic.votes._numba import stump_table

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

    def groups(self) -> Ints:
        return self.layout.feature(np.arange(self.n_columns))

    def take(self, rows: Any) -> StumpColumns:
        codes = np.asfortranarray(self.codes[rows])
        return StumpColumns(codes, self.layout, self.y[rows], self.weight[rows])

    def scores(self, stumps: Ints, weights: Floats) -> Floats:
        """Σ_j w_j h_j(x) on every row."""
        from laconic.votes._numba import additive_score

        table, used = self.layout.table(stumps, weights)

        def add_up(block: Block) -> Floats:
            out = np.zeros(len(block))
            additive_score(block.X, self.layout.start, table, used, out)
            return out

        return np.concatenate(list(self.source.map(add_up)))

    def slopes(self, stumps: Ints, weights: Floats) -> Floats:
        """Mean of (y - vote)·h over the rows, for every stump h: one pass, no matrix."""
        from laconic.votes._numba import additive_score

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
        from laconic.votes._numba import histogram, stump_edges

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

    def votes(self, stumps: Ints) -> Floats:
        """The ±1 votes themselves, one column per stump (for voters that entered only)."""
        out = np.empty((self.n_rows, len(stumps)), order="F")
        for k, (s, j) in enumerate(zip(stumps, self.layout.feature(stumps), strict=True)):
            b = s - self.layout.first[j]
            column = self.codes[:, j]
            out[:, k] = np.where(column > b if self.layout.ordered[j] else column == b, 1.0, -1.0)
        return out

    def packed(self, stumps: Ints, *, keep: bool = False) -> NDArray[np.uint64]:
        """Answers of some stumps, one bit per row; ``keep`` remembers them."""
        from laconic.votes._numba import pack_stump

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

    def gram(self, new: Ints, old: Ints) -> Floats:
        """Mean products of votes, new × old: popcounts when rows weigh the same."""
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

    def full_gram(self, stumps: Ints) -> Floats:
        """Gram matrix of a whole list of stumps."""
        if self.even:
            from laconic.votes._numba import self_disagreements

            count = np.zeros((len(stumps), len(stumps)), dtype=np.int64)
            self_disagreements(self.packed(stumps), count)
            return 1.0 - 2.0 * count / self.n_rows
        gram: Floats = self.source.sum(lambda block: self._weighted_gram(block, stumps))
        return gram

    def _weighted_gram(self, block: Block, stumps: Ints) -> Floats:
        part = StumpColumns(block.X, self.layout, self.y[block.rows], self.weight[block.rows])
        votes = part.votes(stumps)
        gram: Floats = (votes * self.weight[block.rows, None]).T @ votes
        return gram

    def distinct(self) -> tuple[Ints, Ints]:
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


# Families of voters: what a majority vote can be made of.
#
# A family is a small object with parameters (:class:`StumpVoters`, :class:`KernelVoters`,
# :class:`ForestVoters`), fitted inputs (``"scores"``) or a list of fitted classifiers. ``prepare``
# turns it and the training rows into a :class:`PreparedVoters`, which gives one problem per class.


class Voters(Protocol):
    """Voters that were picked into a vote: their votes on new rows, and what they say."""

    def votes(self, table: Table, raw: Any) -> Floats: ...

    def rules(self) -> list[str]: ...


@dataclass(frozen=True)
class StumpVoters:
    """Decision stumps: "column > threshold", "column is category", "column is present".

    Parameters
    ----------
    thresholds : {"equal", "quantile", "midpoints"}, default="equal"
        Equally spaced strictly inside the range of each column, at its (weighted) quantiles, or
        at every midpoint between consecutive values.
    n_thresholds : int, default=10
        Thresholds per numeric column; "midpoints" ignores it.
    constant : bool, default=True
        Offer the voter that always says yes. The slides have none, and without it no vote of
        stumps can lean to the larger class.

    Notes
    -----
    A missing number is below every threshold, and a column with missing values has one more stump
    "column is present". A category that was not there at fit is no category.

    Examples
    --------
    >>> from laconic import CqBoostClassifier
    >>> from laconic.votes import StumpVoters
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> model = CqBoostClassifier(StumpVoters("midpoints"), mu="least-squares").fit(X, y)
    >>> print(model.voters_[0])
    x0 > 1.5
    """

    thresholds: str = "equal"
    n_thresholds: int = 10
    constant: bool = True

    def cuts(self, values: Floats, weight: Floats) -> Floats:
        """Sorted thresholds of one numeric column; -inf stands for "is present"."""
        present = ~np.isnan(values)
        lead = [-np.inf] if not present.all() and present.any() else []
        distinct, place = np.unique(values[present], return_inverse=True)
        if len(distinct) < 2:
            return np.array(lead)
        middle = distinct[:-1] + (distinct[1:] / 2 - distinct[:-1] / 2)
        # midpoints of neighbouring floats may round onto the upper one
        middle = np.where(middle >= distinct[1:], distinct[:-1], middle)
        if self.thresholds == "midpoints":
            return np.concatenate([lead, middle])
        part = np.arange(1, self.n_thresholds + 1) / (self.n_thresholds + 1)
        if self.thresholds == "quantile":
            share = np.cumsum(np.bincount(place, weight[present]))
            share /= share[-1]
            at = np.unique(np.minimum(np.searchsorted(share, part - 1e-12), len(middle) - 1))
            return np.concatenate([lead, middle[at]])
        if self.thresholds != "equal":
            raise ValueError(
                f"thresholds must be 'equal', 'quantile' or 'midpoints', got {self.thresholds!r}."
            )
        spaced = distinct[0] * (1.0 - part) + distinct[-1] * part
        spaced = spaced[(spaced >= distinct[0]) & (spaced < distinct[-1])]
        return np.concatenate([lead, spaced])

    def prepare(self, table: Table, weight: Floats) -> PreparedStumps:
        self.check()
        cuts, absent = [], []
        for j, kind in enumerate(table.kinds):
            categorical = kind == "categorical"
            absent.append(categorical and bool((table.column(j) == MISSING).any()))
            cuts.append(np.zeros(0) if categorical else self.cuts(table.column(j), weight))
        return self.laid_out(table, cuts, absent)

    def check(self) -> None:
        if self.n_thresholds < 1:
            raise ValueError(f"n_thresholds must be at least 1, got {self.n_thresholds}.")

    def laid_out(self, table: Table, cuts: list[Floats], absent: list[bool]) -> PreparedStumps:
        """The stumps of given thresholds; ``absent`` says which columns have missing values."""
        starts, firsts = [0], [0]
        for j, kind in enumerate(table.kinds):
            if kind == "categorical":
                categories = len(table.categories[j] or ())
                # bins: categories, missing, anything else
                starts.append(starts[-1] + categories + 2)
                firsts.append(firsts[-1] + _category_stumps(categories, absent[j]))
            else:
                starts.append(starts[-1] + len(cuts[j]) + 1)
                firsts.append(firsts[-1] + len(cuts[j]))
        ordered = [kind != "categorical" for kind in table.kinds]
        if self.constant:  # one more feature whose code is always above its only cut
            starts.append(starts[-1] + 2)
            firsts.append(firsts[-1] + 1)
            ordered.append(True)
        if firsts[-1] == 0:
            raise ValueError("Every column is constant: no decision stump can be made of them.")
        layout = StumpLayout(
            np.array(starts),
            np.array(firsts),
            np.array(ordered),
            np.ones(firsts[-1], dtype=bool),
        )
        return PreparedStumps(table, cuts, layout)


def _category_stumps(categories: int, absent: bool) -> int:
    kinds = categories + absent
    return 0 if kinds < 2 else (1 if kinds == 2 else kinds)


def stump_codes(table: Table, cuts: list[Floats], layout: StumpLayout) -> NDArray[Any]:
    """The bin of every row in every feature of the layout."""
    width = int(np.diff(layout.start).max())
    kind = np.uint8 if width <= 256 else np.uint16 if width <= 65_536 else np.uint32
    codes = np.ones((table.n_rows, len(layout.ordered)), dtype=kind, order="F")
    for j in range(table.shape[1]):
        values = table.column(j)
        if table.kinds[j] == "categorical":
            categories = len(table.categories[j] or ())
            code = np.where(values == MISSING, categories, values)
            codes[:, j] = np.where(code < 0, categories + 1, code)
        else:
            code = np.searchsorted(cuts[j], values, side="left")
            codes[:, j] = np.where(np.isnan(values), 0, code)
    return codes


@dataclass(frozen=True)
class Stump:
    """One rule: +1 where it holds, -1 elsewhere."""

    column: int
    name: str
    threshold: float | None = None
    category: str | None = None
    holds: bool = True

    def __str__(self) -> str:
        if self.column < 0:
            return "always" if self.holds else "never"
        if self.threshold is not None and self.threshold == -np.inf:
            return f"{self.name} is present" if self.holds else f"{self.name} is missing"
        if self.threshold is not None:
            # a missing number counts as below: the complement of ">" is "not above"
            return f"{self.name} {'>' if self.holds else '<='} {self.threshold:.6g}"
        said = "missing" if self.category is None else repr(self.category)
        return f"{self.name} is {'' if self.holds else 'not '}{said}"


@dataclass(frozen=True)
class PickedStumps:
    """The stumps of a vote, on their own."""

    stumps: tuple[Stump, ...]
    categories: tuple[tuple[str, ...] | None, ...]

    def votes(self, table: Table, raw: Any) -> Floats:
        rows = table
        out = np.empty((rows.n_rows, len(self.stumps)))
        for k, stump in enumerate(self.stumps):
            out[:, k] = np.where(self._holds(stump, rows), 1.0, -1.0)
        return out

    def _holds(self, stump: Stump, rows: Table) -> NDArray[np.bool_]:
        if stump.column < 0:
            return np.full(rows.n_rows, stump.holds)
        values = rows.column(stump.column)
        known = self.categories[stump.column]
        if known is None:
            yes = values > stump.threshold  # False for NaN
        elif stump.category is None:
            yes = values == MISSING
        else:
            yes = values == known.index(stump.category)
        return yes if stump.holds else ~yes

    def rules(self) -> list[str]:
        return [str(stump) for stump in self.stumps]

    def __getitem__(self, k: int) -> Stump:
        return self.stumps[k]

    def __len__(self) -> int:
        return len(self.stumps)


class PreparedStumps:
    """Stumps laid out on the training rows."""

    out_of_bag = False
    sides: str | None = None
    assumption = (
        "the thresholds were placed with the training inputs; the uniform prior over stumps is "
        "independent of the sample only if they come from unlabelled or held-out rows"
    )

    def __init__(self, table: Table, cuts: list[Floats], layout: StumpLayout) -> None:
        self.table, self.cuts, self.layout = table, cuts, layout
        self.codes = stump_codes(table, cuts, layout)

    def columns(self, y: Floats, weight: Floats, k: int) -> StumpColumns:
        return StumpColumns(self.codes, self.layout, y, weight)

    def split(
        self, y: Floats, weight: Floats, k: int, train: Ints, test: Ints
    ) -> tuple[StumpColumns, StumpColumns, Ints]:
        whole = self.columns(y, weight, k)
        return whole.take(train), whole.take(test), np.arange(self.layout.n_stumps)

    def pick(self, columns: Ints, signs: Floats, y: Floats, k: int) -> PickedStumps:
        layout, found = self.layout, []
        for s, j, sign in zip(columns, layout.feature(columns), signs, strict=True):
            b = int(s - layout.first[j])
            holds = bool(sign > 0)
            if j == len(self.cuts):
                found.append(Stump(-1, "always", holds=holds))
                continue
            name = self.table.names[j]
            if layout.ordered[j]:
                found.append(Stump(int(j), name, threshold=float(self.cuts[j][b]), holds=holds))
            else:
                known = self.table.categories[j] or ()
                category = known[b] if b < len(known) else None
                found.append(Stump(int(j), name, category=category, holds=holds))
        return PickedStumps(tuple(found), self.table.categories)


def needs_numbers(table: Table, who: str) -> Floats:
    """The matrix of a purely numeric table without missing values, or one clear error."""
    if not table.all_numeric:
        j = table.kinds.index("categorical")
        raise ValueError(
            f"Column {shown(table.names[j])} is categorical and {who} need numbers; use "
            "voters='stumps' or encode it first."
        )
    matrix = np.asarray(table.matrix(), dtype=np.float64)
    gone = np.isnan(matrix).any(axis=0)
    if gone.any():
        raise ValueError(
            f"Column {shown(table.names[int(gone.argmax())])} has missing values (NaN), which "
            f"{who} do not accept; impute them first, or use voters='stumps'."
        )
    return matrix
