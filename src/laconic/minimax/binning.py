"""Where the cells of a table end: bins by column, clusters of rows, leaves of a tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.data.row_keys import content_keys
from laconic.data.tables.columns import Table, shown
from laconic.data.value_tables import NumericTable
from laconic.minimax.profiles import BinGrid, Coder, ColumnBins
from laconic.minimax.tuning import DEFAULT_CELLS, QUANTILE_SLACK

ProfilesName = Literal["bins", "kmeans", "tree"]
BinningName = Literal["width", "quantile", "kmeans", "modl"]
PROFILES: tuple[ProfilesName, ...] = ("bins", "kmeans", "tree")
BINNINGS: tuple[BinningName, ...] = ("width", "quantile", "kmeans", "modl")


def learn_coder(
    table: Table,
    y: Ints,
    weight: Floats,
    *,
    profiles: ProfilesName,
    binning: BinningName,
    n_bins: int,
    n_profiles: int | None,
    seed: int,
) -> Coder:
    """The coder of :mod:`laconic.minimax.profiles` that the training rows suggest."""
    if profiles == "bins":
        return learn_bins(table, y, weight, binning, n_bins)
    learn = learn_clusters if profiles == "kmeans" else learn_leaves
    return learn(table, y, weight, n_profiles or DEFAULT_CELLS, seed)


def grid(table: Table, cuts_of: Callable[[int], Floats]) -> BinGrid:
    """Bins of numeric columns between ``cuts_of(j)``; each category of another column is a bin."""
    columns = []
    for j, kind in enumerate(table.kinds):
        if kind == "categorical":
            columns.append(ColumnBins(None, len(table.categories[j] or ())))
        else:
            cuts = cuts_of(j)
            columns.append(ColumnBins(cuts, len(cuts) + 1))
    return BinGrid(tuple(columns))


def learn_bins(table: Table, y: Ints, weight: Floats, binning: BinningName, n_bins: int) -> BinGrid:
    """Bins of numeric columns by ``binning``."""

    def cuts_of(j: int) -> Floats:
        values = table.column(j)
        held = ~np.isnan(values)
        return _cuts(values[held], y[held], weight[held], binning, n_bins)

    return grid(table, cuts_of)


def bins_of_tables(
    table: Table, counted: Sequence[NumericTable | Floats], binning: BinningName, n_bins: int
) -> BinGrid:
    """:func:`learn_bins` from value by class tables; ``table`` has the columns and no rows.

    A cut above a pool of values is the largest of them, whose neighbour is not known. Bins of
    equal width need the least value, which a pool hides: see :func:`width_cuts`.
    """

    def cuts_of(j: int) -> Floats:
        own = counted[j]
        assert isinstance(own, NumericTable)
        value, y = np.nonzero(own.weights)
        cuts = _cuts(own.values[value], y, own.weights[value, y], binning, n_bins)
        if own.pooled and len(cuts):
            cuts = np.unique(own.values[np.searchsorted(own.values, cuts, "right") - 1])
        return cuts

    return grid(table, cuts_of)


def _cuts(values: Floats, y: Ints, weight: Floats, binning: BinningName, n_bins: int) -> Floats:
    if not len(values):
        return np.empty(0)
    if binning == "width":
        return width_cuts(values, n_bins)
    if binning == "quantile":
        return quantile_cuts(values, weight, n_bins)
    if binning == "kmeans":
        from laconic.convex.kmeans import kmeans_1d  # loads the convex risks, which few fits need

        return kmeans_1d(values, weight, n_bins)[1]
    return modl_cuts(values, y, weight)


def width_cuts(values: Floats, n_bins: int) -> Floats:
    """Bins of equal width.

    >>> width_cuts(np.array([0.0, 9.0]), 3)
    array([3., 6.])
    """
    low, high = float(values.min()), float(values.max())
    share = np.arange(1, n_bins) / n_bins
    return np.unique(low * (1 - share) + high * share) if low < high else np.empty(0)


def quantile_cuts(values: Floats, weight: Floats, n_bins: int) -> Floats:
    """Bins of about equal weight, cut half-way between neighbouring values.

    >>> quantile_cuts(np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4), 2)
    array([2.5])
    """
    order = np.argsort(values)
    distinct = values[order]
    first = np.append(True, distinct[1:] != distinct[:-1])
    filled = weight[order]
    if not first.all():  # ties are summed in the order of the rows, as everywhere
        where = np.empty(len(order), dtype=np.int64)
        where[order] = np.cumsum(first) - 1
        distinct, filled = distinct[first], np.asarray(np.bincount(where, weight), np.float64)
    filled = np.cumsum(filled)
    wanted = np.arange(1, n_bins) / n_bins * filled[-1]
    last = np.unique(np.searchsorted(filled, wanted * (1 - QUANTILE_SLACK)))
    return _between(distinct, last[last < len(distinct) - 1] + 1)


def modl_cuts(values: Floats, y: Ints, weight: Floats) -> Floats:
    """The intervals of least description length (MODL), as many as the classes justify."""
    from laconic.modl.criterion import make_prior
    from laconic.modl.intervals import best_intervals

    distinct, where = np.unique(values, return_inverse=True)
    n_classes = int(y.max()) + 1
    cells = np.bincount(where * n_classes + y, weight, minlength=len(distinct) * n_classes)
    prior = make_prior("granular", float(weight.sum()), 0.0)
    found = best_intervals(cells.reshape(-1, n_classes), n_classes, prior)
    return _between(distinct, found.point.places)


def _between(distinct: Floats, places: Ints) -> Floats:
    """Cuts just below the values at some places: midpoints that stay below the upper value."""
    low, high = distinct[places - 1], distinct[places]
    middle = low / 2 + high / 2
    return np.where((low <= middle) & (middle < high), middle, low)


@dataclass(frozen=True)
class _Embedding:
    """Rows as bounded numbers: standard units, missing flags, one column per category."""

    centre: Floats
    scale: Floats
    flagged: tuple[bool, ...]
    widths: tuple[int, ...]

    @staticmethod
    def learn(table: Table, weight: Floats) -> _Embedding:
        centre, scale = np.zeros(table.shape[1]), np.ones(table.shape[1])
        flagged, widths = [], []
        for j, kind in enumerate(table.kinds):
            values = table.column(j)
            texts = table.categories[j] if kind == "categorical" else None
            widths.append(0 if texts is None else len(texts))
            gone = values < 0 if texts is not None else np.isnan(values)
            flagged.append(bool(gone.any()) and texts is None)
            if texts is None and not gone.all():
                centre[j], scale[j] = _location_and_scale(values[~gone], weight[~gone])
        return _Embedding(centre, scale, tuple(flagged), tuple(widths))

    def __call__(self, table: Table) -> Floats:
        parts: list[Floats] = []
        for j, width in enumerate(self.widths):
            values = table.column(j)
            if width:
                parts.extend((values == code).astype(np.float64) for code in range(width))
                continue
            gone = np.isnan(values)
            # halves: the difference of two values near the largest float must not overflow; in
            # units of a tiny scale it may, and is then far away
            with np.errstate(over="ignore"):
                units = (values / 2 - self.centre[j] / 2) / self.scale[j] * 2
            parts.append(np.where(gone, 0.0, np.clip(units, -1e6, 1e6)))
            if self.flagged[j]:
                parts.append(gone.astype(np.float64))
        return np.column_stack(parts)


def _location_and_scale(values: Floats, weight: Floats) -> tuple[float, float]:
    top = float(np.abs(values).max()) or 1.0
    small = values / top
    centre = float(np.average(small, weights=weight))
    spread = float(np.sqrt(np.average((small - centre) ** 2, weights=weight)))
    return centre * top, (spread * top) or 1.0


@dataclass(frozen=True)
class Clusters:
    """Joint k-means: the profile of a row is its nearest centre."""

    kind: ClassVar[str] = "clusters"
    embed: _Embedding
    centers: Floats

    @property
    def radices(self) -> tuple[int, ...]:
        return (len(self.centers) + 2,)

    @property
    def ordered(self) -> tuple[bool, ...]:
        return (False,)

    def codes(self, table: Table) -> Ints:
        rows = self.embed(table)
        best = np.zeros(len(rows), dtype=np.int64)
        least = np.full(len(rows), np.inf)
        for i, center in enumerate(self.centers):
            # row by row arithmetic: a matrix product may round differently in another batch
            distance = np.einsum("ij,ij->i", rows - center, rows - center)
            closer = distance < least
            best[closer], least[closer] = i, distance[closer]
        return best[:, None]

    def reads(self, n_categories: Sequence[int | None]) -> bool:
        return list(self.embed.widths) == [width or 0 for width in n_categories]

    def to_dict(self) -> dict[str, Any]:
        embed = self.embed
        return {
            "centre": embed.centre.tolist(),
            "scale": embed.scale.tolist(),
            "flagged": list(embed.flagged),
            "widths": list(embed.widths),
            "centers": self.centers.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Clusters:
        centre, scale, centers = (
            np.array(data[name], dtype=np.float64) for name in ("centre", "scale", "centers")
        )
        embed = _Embedding(centre, scale, tuple(data["flagged"]), tuple(data["widths"]))
        n_columns = len(embed.widths)
        if centre.shape != (n_columns,) or scale.shape != (n_columns,) or not (scale > 0).all():
            raise ValueError("the columns of the clusters have no unit")
        if [type(flag) for flag in embed.flagged] != [bool] * n_columns:
            raise ValueError("the columns of the clusters have no flags")
        columns = zip(embed.widths, embed.flagged, strict=True)
        wide = sum(width or 1 + flagged for width, flagged in columns)
        if centers.ndim != 2 or centers.shape[1] != wide:
            raise ValueError("the centres of the clusters do not match their columns")
        return cls(embed, centers)


def learn_clusters(table: Table, y: Ints, weight: Floats, n_profiles: int, seed: int) -> Clusters:
    """k-means on standardised columns; equal rows are one point with their summed weight.

    Columns stand in an order of their content, so that no start depends on how they came.
    """
    from sklearn.cluster import KMeans

    embed = _Embedding.learn(table, weight)
    columns = zip(embed.widths, embed.flagged, strict=True)
    owner = np.repeat(np.arange(len(table.names)), [width or 1 + flag for width, flag in columns])
    order = np.argsort(content_keys(table, y)[owner], kind="stable")
    points, where = np.unique(embed(table)[:, order], axis=0, return_inverse=True)
    mass = np.bincount(where.ravel(), weight)
    count = min(n_profiles, len(points))
    found = KMeans(count, n_init=1, random_state=seed).fit(points, sample_weight=mass)
    return Clusters(embed, found.cluster_centers_[:, np.argsort(order)])


@dataclass(frozen=True)
class Leaves:
    """Leaves of a decision tree; numbered at fit, never from a batch.

    Node t goes left where column ``column[t]`` is at most ``bound[t]``, or, when ``code[t]`` is not
    negative, where it is not that category; a missing number goes left where ``missing_left[t]``.
    A leaf has no children (-1) and a number.
    """

    kind: ClassVar[str] = "leaves"
    widths: tuple[int, ...]
    column: Ints
    code: Ints
    bound: Floats
    missing_left: NDArray[np.bool_]
    left: Ints
    right: Ints

    @property
    def number(self) -> Ints:
        leaf = self.left < 0
        return np.where(leaf, np.cumsum(leaf) - 1, -1)

    @property
    def radices(self) -> tuple[int, ...]:
        return (int((self.left < 0).sum()) + 2,)

    @property
    def ordered(self) -> tuple[bool, ...]:
        return (False,)

    def codes(self, table: Table) -> Ints:
        node = np.zeros(table.n_rows, dtype=np.int64)
        for t in np.flatnonzero(self.left >= 0):
            # children stand after their parent, so that one pass over the nodes is enough
            here = np.flatnonzero(node == t)
            values = table.column(int(self.column[t]))[here]
            if self.code[t] >= 0:
                to_left = values != self.code[t]
            else:
                to_left = np.where(np.isnan(values), self.missing_left[t], values <= self.bound[t])
            node[here] = np.where(to_left, self.left[t], self.right[t])
        return self.number[node][:, None]

    def reads(self, n_categories: Sequence[int | None]) -> bool:
        return list(self.widths) == [-1 if width is None else width for width in n_categories]

    def to_dict(self) -> dict[str, Any]:
        arrays = ("column", "code", "bound", "missing_left", "left", "right")
        return {
            "widths": list(self.widths),
            **{name: getattr(self, name).tolist() for name in arrays},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Leaves:
        widths = tuple(data["widths"])
        column, code, left, right = (
            np.array(data[name], dtype=np.int64) for name in ("column", "code", "left", "right")
        )
        found = cls(
            widths, column, code, np.array(data["bound"], dtype=np.float64),
            np.array(data["missing_left"], dtype=bool), left, right,
        )  # fmt: skip
        inner, place = left >= 0, np.arange(len(left))
        sizes = {len(part) for part in (column, code, found.bound, found.missing_left, right)}
        if sizes != {len(left)} or not len(left):
            raise ValueError("the nodes of the tree are not complete")
        children = np.concatenate([left[inner], right[inner]])
        after = (left[inner] > place[inner]).all() and (right[inner] > place[inner]).all()
        if not after or sorted(children) != list(range(1, len(left))):
            raise ValueError("the nodes of the tree are not in their order")
        if (column[inner] < 0).any() or (column[inner] >= len(widths)).any():
            raise ValueError("a node of the tree reads no column")
        if (code[inner] >= np.maximum(np.array(widths)[column[inner]], 0)).any():
            raise ValueError("a node of the tree reads no category")
        if ((code[inner] < 0) != (np.array(widths)[column[inner]] < 0)).any():
            raise ValueError("a node of the tree reads a column of another kind")
        return found


def _merged(ranks: NDArray[Any], y: Ints, weight: Floats) -> tuple[Floats, Ints, Floats]:
    """Equal rows as one, their classes, and weights by which all classes weigh the same.

    Where splits tie, a row of weight two then grows the tree that two rows grow.
    """
    rows, where = np.unique(np.column_stack([ranks, y]), axis=0, return_inverse=True)
    mass, classes = np.bincount(where, weight), rows[:, -1].astype(np.int64)
    return rows[:, :-1], classes, mass * (mass.sum() / np.bincount(classes, mass)[classes])


def _tree_features(
    table: Table, y: Ints, widths: tuple[int, ...], ranks: NDArray[Any]
) -> tuple[list[tuple[int, int]], Ints]:
    """(column, category code or -1) of each feature of the tree, and their places in ``ranks``.

    Of two equal splits the tree takes one by its seed, so they stand in an order of their content
    and without those that hold one value, which would move what the seed draws.
    """
    all_ = [(j, code) for j, n in enumerate(widths) for code in (range(n) if n >= 0 else (-1,))]
    order = np.argsort(content_keys(table, y)[[j for j, _ in all_]], kind="stable")
    same = (ranks == ranks[0]) | (np.isnan(ranks) & np.isnan(ranks[0]))
    varies = ~same.all(axis=0)
    order = order[varies[order]] if varies.any() else order
    return [all_[place] for place in order], order


def learn_leaves(table: Table, y: Ints, weight: Floats, n_profiles: int, seed: int) -> Leaves:
    """A tree grown best split first, its classes weighted alike so that rare ones get leaves.

    It is grown on ranks, which are free of scale and exact in single precision; its splits are
    then written in the columns' own values.
    """
    from sklearn.tree import DecisionTreeClassifier

    if n_profiles < 2:
        raise ValueError(f'n_profiles must be at least 2 with profiles="tree"; got {n_profiles}.')
    steps = tuple(
        None if kind == "categorical" else _distinct(table.column(j))
        for j, kind in enumerate(table.kinds)
    )
    widths = tuple(-1 if texts is None else len(texts) for texts in table.categories)
    ranks = _ranks(table, steps, widths)
    features, order = _tree_features(table, y, widths, ranks)
    grown = DecisionTreeClassifier(max_leaf_nodes=n_profiles, random_state=seed)
    rows, classes, balanced = _merged(ranks[:, order], y, weight)
    grown.fit(rows, classes, sample_weight=balanced)
    tree = grown.tree_
    inner = tree.children_left >= 0
    column, code = np.full(len(inner), -1), np.full(len(inner), -1)
    bound = np.zeros(len(inner))
    for t in np.flatnonzero(inner):
        column[t], code[t] = features[tree.feature[t]]
        if code[t] < 0:
            bound[t] = _largest_below(steps[column[t]], float(tree.threshold[t]))
    missing_left = tree.missing_go_to_left.astype(bool) & inner & (code < 0)
    return Leaves(
        widths, column, code, bound, missing_left, tree.children_left, tree.children_right
    )


def _largest_below(known: Floats | None, rank: float) -> float:
    """The largest number whose rank among known values, as in :func:`_ranks`, is at most this.

    The rank of the i-th value is i + 1/2, and that of a number just below it is i. A split of the
    missing cells from all others has an infinite rank.
    """
    assert known is not None
    if rank >= len(known):
        return float(np.finfo(np.float64).max)
    twice = int(np.floor(2.0 * rank))
    value = known[twice // 2]
    return float(value if twice % 2 else np.nextafter(value, -np.inf))


def _distinct(values: Floats) -> Floats:
    found = np.unique(values[~np.isnan(values)])
    if len(found) >= 2**23:
        raise ValueError(
            f'A column has {len(found)} distinct values, more than the ranks of profiles="tree" '
            'can hold; round it, or use profiles="bins".'
        )
    return found


def _ranks(
    table: Table, steps: tuple[Floats | None, ...], widths: tuple[int, ...]
) -> NDArray[np.float32]:
    """Ranks in the training values (scale-free, exact in float32) and category indicators."""
    parts: list[NDArray[Any]] = []
    for j, known in enumerate(steps):
        values = table.column(j)
        if known is None:
            parts.extend(values == code for code in range(max(widths[j], 0)))
            continue
        rank = np.searchsorted(known, values, "left") + np.searchsorted(known, values, "right")
        parts.append(np.where(np.isnan(values), np.nan, rank / 2))
    if not parts:
        raise ValueError(f"Column {shown(table.names[0])} has no values to split on.")
    return np.column_stack(parts).astype(np.float32)
