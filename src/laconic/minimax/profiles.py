"""Profiles: rows that fall in the same cell of every column, counted by class.

A coder turns each row into a few small integers (one bin per column, or one cluster, or one
leaf); a profile is a combination of them. Only the profiles that rows fall into are stored, and
they are counted before any table of profiles by classes is built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.data.source import Block, Source
from laconic.data.tables.columns import MISSING, Table
from laconic.minimax.tuning import FEW_KEYS, MAX_CELLS

_KEY_LIMIT = 2**62


class Coder(Protocol):
    """Rows to small integers; column j of the codes is below ``radices[j]``."""

    kind: ClassVar[str]

    @property
    def radices(self) -> tuple[int, ...]: ...

    @property
    def ordered(self) -> tuple[bool, ...]: ...

    def codes(self, table: Table) -> Ints: ...

    def reads(self, n_categories: Sequence[int | None]) -> bool:
        """Whether these are its columns: the number of categories, None for a number."""

    def to_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class ColumnBins:
    """Bins of one column: intervals between cuts, or the categories seen at fit.

    Two more codes follow those of the bins: ``n_bins`` for missing, ``n_bins + 1`` for a category
    that was not there at fit.

    >>> ColumnBins(np.array([1.5, 2.5]), 3).codes(np.array([1.0, 2.0, 9.0, np.nan]))
    array([0, 1, 2, 3])
    """

    cuts: Floats | None
    n_bins: int

    def codes(self, values: NDArray[Any]) -> Ints:
        if self.cuts is None:
            bins = values.astype(np.int64)
            return np.where(bins >= 0, bins, self.n_bins + (bins != MISSING))
        bins = np.searchsorted(self.cuts, values, side="left")
        return np.where(np.isnan(values), self.n_bins, bins)


@dataclass(frozen=True)
class BinGrid:
    """One bin per column."""

    kind: ClassVar[str] = "bins"
    columns: tuple[ColumnBins, ...]

    @property
    def radices(self) -> tuple[int, ...]:
        return tuple(column.n_bins + 2 for column in self.columns)

    @property
    def ordered(self) -> tuple[bool, ...]:
        return tuple(column.cuts is not None for column in self.columns)

    def codes(self, table: Table) -> Ints:
        out = np.empty(table.shape, dtype=np.int64)
        for j, column in enumerate(self.columns):
            out[:, j] = column.codes(table.column(j))
        return out

    def reads(self, n_categories: Sequence[int | None]) -> bool:
        own = [column.n_bins if column.cuts is None else None for column in self.columns]
        return own == list(n_categories)

    def to_dict(self) -> dict[str, Any]:
        """For each column its cuts, or the number of its categories."""
        columns = [c.n_bins if c.cuts is None else c.cuts.tolist() for c in self.columns]
        return {"columns": columns}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BinGrid:
        columns = []
        for own in data["columns"]:
            if isinstance(own, int):
                columns.append(ColumnBins(None, own))
                continue
            cuts = np.array(own, dtype=np.float64)
            if cuts.ndim != 1 or not (np.diff(cuts) > 0).all():
                raise ValueError("the cuts of a column must increase")
            columns.append(ColumnBins(cuts, len(cuts) + 1))
        return cls(tuple(columns))


@dataclass(frozen=True)
class ProfileIndex:
    """Numbers of the profiles seen at fit: code rows to 0..T-1, exact for any number of columns.

    Columns are packed in 64-bit keys, as many as fit; when they do not all fit, the number of the
    packed part becomes the first digit of the next key.
    """

    radices: tuple[int, ...]
    groups: tuple[tuple[int, int], ...]
    keys: tuple[Ints, ...]

    @classmethod
    def of(cls, codes: Ints, radices: tuple[int, ...]) -> ProfileIndex:
        """The index whose stored profiles have these codes, in this order."""
        if len(codes) < 1 or (codes < 0).any() or (codes >= np.array(radices)).any():
            raise ValueError("a profile has a code that its column has not")
        groups: list[tuple[int, int]] = []
        keys: list[Ints] = []
        rank = np.zeros(len(codes), dtype=np.int64)
        while not groups or groups[-1][1] < len(radices):
            first = groups[-1][1] if groups else 0
            groups.append((first, _end_of_group(radices, first, len(keys[-1]) if keys else 1)))
            packed = _pack(rank, codes, radices, groups[-1])
            own, rank = np.unique(packed, return_inverse=True)
            keys.append(own)
        if len(keys[-1]) != len(codes) or (np.diff(rank) <= 0).any():
            raise ValueError("the profiles are not in their order, each once")
        return cls(radices, tuple(groups), tuple(keys))

    @property
    def n_profiles(self) -> int:
        return len(self.keys[-1])

    def find(self, codes: Ints) -> Ints:
        """Number of each row's profile, -1 when no training row had it."""
        rank = np.zeros(len(codes), dtype=np.int64)
        for group, keys in zip(self.groups, self.keys, strict=True):
            rank = _lookup(keys, _pack(rank, codes, self.radices, group))
        return rank

    def codes(self) -> Ints:
        """Codes (T, columns) of the stored profiles."""
        out = np.empty((self.n_profiles, len(self.radices)), dtype=np.int64)
        rank = np.arange(self.n_profiles)
        for (start, stop), keys in zip(self.groups[::-1], self.keys[::-1], strict=True):
            rest = keys[rank]
            for j in range(stop - 1, start - 1, -1):
                rest, out[:, j] = np.divmod(rest, self.radices[j])
            rank = rest
        return out


@dataclass(frozen=True)
class ProfileCounts:
    """Weight of each (profile, class) that rows fall into, sorted by profile, then class."""

    start: Ints
    klass: NDArray[np.int32]
    weight: Floats
    n_classes: int

    @property
    def class_weight(self) -> Floats:
        return _summed(self.klass, self.weight, self.n_classes)

    def dense(self) -> Floats:
        out = np.zeros((len(self.start) - 1, self.n_classes))
        profile = np.repeat(np.arange(len(out)), np.diff(self.start))
        out[profile, self.klass] = self.weight
        return out


def count_profiles(
    source: Source, coder: Coder, n_classes: int
) -> tuple[ProfileIndex, ProfileCounts]:
    """Find the profiles of the rows of a source, then weigh them by class.

    One pass per group of columns that fits a 64-bit key (one group for 20 columns of 8 bins).
    """
    return count_each(source, [coder], n_classes)[0]


def count_each(
    source: Source,
    coders: Sequence[Coder],
    n_classes: int,
    seen: Callable[[Block, int], Block] = lambda block, place: block,
) -> list[tuple[ProfileIndex, ProfileCounts]]:
    """:func:`count_profiles` for several coders in the same passes.

    ``seen(block, k)`` are the rows of a block that the coder in place k counts.
    """
    counts = [_Counting(coder, n_classes) for coder in coders]
    while any(count.result is None for count in counts):
        open_ones = [k for k, count in enumerate(counts) if count.result is None]
        weighers = [(k, counts[k].weigher()) for k in open_ones]

        def weigh(block: Block, weighers: Any = tuple(weighers)) -> list[tuple[Any, ...]]:
            return [weigher(seen(block, k)) for k, weigher in weighers]

        for parts in source.map(weigh):
            for k, part in zip(open_ones, parts, strict=True):
                counts[k].add(part)
        for k in open_ones:
            counts[k].close_group()
    return [count.result for count in counts if count.result is not None]


class _Counting:
    """The profiles of one coder, group of columns after group."""

    def __init__(self, coder: Coder, n_classes: int) -> None:
        self._coder, self._n_classes = coder, n_classes
        self._known = ProfileIndex(coder.radices, (), ())
        self._parts: list[tuple[Any, ...]] = []
        self._n_waiting = self._n_merged = 0
        self.result: tuple[ProfileIndex, ProfileCounts] | None = None

    @property
    def _group(self) -> tuple[int, int]:
        known = self._known
        first = known.groups[-1][1] if known.groups else 0
        n_ranks = known.n_profiles if known.groups else 1
        return first, _end_of_group(known.radices, first, n_ranks)

    @property
    def _last(self) -> bool:
        return self._group[1] == len(self._known.radices)

    def weigher(self) -> Callable[[Block], tuple[Any, ...]]:
        """Distinct keys of a block, with classes and weights when they are whole profiles."""
        coder, known, group = self._coder, self._known, self._group
        last, n_classes = self._last, self._n_classes

        def weigh(block: Block) -> tuple[Any, ...]:
            codes = coder.codes(block.X)
            packed = _pack(known.find(codes), codes, known.radices, group)
            return _weigh(packed, block, n_classes) if last else (np.unique(packed),)

        return weigh

    def add(self, part: tuple[Any, ...]) -> None:
        self._parts.append(part)
        self._n_waiting += len(part[0])
        # what waits stays below twice what is known, and every weight is summed in block order
        if self._n_waiting > max(2 * self._n_merged, FEW_KEYS):
            self._merge()

    def _merge(self) -> None:
        joined = [np.concatenate(part) for part in zip(*self._parts, strict=True)]
        keys, where = np.unique(joined[0], return_inverse=True)
        if self._last:
            _refuse_too_many(len(keys), self._n_classes)
            pairs, where = np.unique(where * self._n_classes + joined[1], return_inverse=True)
            weight = _summed(where, joined[2], len(pairs))
            self._parts = [(keys[pairs // self._n_classes], pairs % self._n_classes, weight)]
        else:
            self._parts = [(keys,)]
        self._n_waiting, self._n_merged = 0, len(self._parts[0][0])

    def close_group(self) -> None:
        self._merge()
        merged, last, known = self._parts[0], self._last, self._known
        keys, where = np.unique(merged[0], return_inverse=True)
        self._known = ProfileIndex(known.radices, (*known.groups, self._group), (*known.keys, keys))
        self._parts, self._n_merged = [], 0
        if last:
            counts = _counts(where, merged[1], merged[2], len(keys), self._n_classes)
            self.result = (self._known, counts)


def nearest_profiles(codes: Ints, index: ProfileIndex, ordered: tuple[bool, ...]) -> Ints:
    """Stored profile at the least distance: bins apart in ordered columns, 0 or 1 in others."""
    stored = index.codes()
    distinct, where = np.unique(codes, axis=0, return_inverse=True)
    found = np.empty(len(distinct), dtype=np.int64)
    for i, row in enumerate(distinct):
        distance = np.zeros(len(stored), dtype=np.int64)
        for j, cell in enumerate(row):
            n_bins = index.radices[j] - 2
            if ordered[j] and cell < n_bins:
                # a missing cell is one bin away from all
                gap = np.where(stored[:, j] < n_bins, np.abs(stored[:, j] - cell), 1)
                distance += gap
            else:
                distance += stored[:, j] != cell
        found[i] = np.argmin(distance)
    return found[where.ravel()]


def _end_of_group(radices: tuple[int, ...], first: int, n_ranks: int) -> int:
    size = n_ranks
    for j in range(first, len(radices)):
        size *= radices[j]
        if size > _KEY_LIMIT:
            if j == first:
                raise ValueError(
                    f"Column {j} has {radices[j]} bins, too many to combine with {n_ranks} "
                    "profiles; use fewer bins."
                )
            return j
    return len(radices)


def _pack(rank: Ints, codes: Ints, radices: tuple[int, ...], group: tuple[int, int]) -> Ints:
    packed = np.maximum(rank, 0)
    for j in range(*group):
        packed = packed * radices[j] + codes[:, j]
    return np.where(rank < 0, -1, packed)


def _lookup(keys: Ints, wanted: Ints) -> Ints:
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, place, -1)


def _weigh(packed: Ints, block: Block, n_classes: int) -> tuple[Any, ...]:
    """Distinct (key, class) pairs of a block and their weights."""
    assert block.y is not None
    keys, where = np.unique(packed, return_inverse=True)
    pair = where * n_classes + block.y
    weight = np.bincount(pair, block.weight, minlength=len(keys) * n_classes)
    held = np.flatnonzero(np.bincount(pair, minlength=len(keys) * n_classes))
    return keys[held // n_classes], held % n_classes, weight[held]


def _counts(
    profile: Ints, klass: Ints, weight: Floats, n_profiles: int, n_classes: int
) -> ProfileCounts:
    pairs, where = np.unique(profile * n_classes + klass, return_inverse=True)
    start = np.searchsorted(pairs, np.arange(n_profiles + 1) * n_classes)
    summed = _summed(where, weight, len(pairs))
    return ProfileCounts(start, (pairs % n_classes).astype(np.int32), summed, n_classes)


def _summed(where: NDArray[Any], weight: Floats, size: int) -> Floats:
    return np.asarray(np.bincount(where, weight, minlength=size), dtype=np.float64)


def _refuse_too_many(n_profiles: int, n_classes: int) -> None:
    if n_profiles * n_classes > MAX_CELLS:
        raise ValueError(
            f"The rows fall into {n_profiles:,} profiles; a table of them by {n_classes} classes "
            f"needs {n_profiles * n_classes * 8 / 2**30:.1f} GiB. Lower n_bins, drop columns, or "
            'use profiles="tree" or profiles="kmeans" with n_profiles.'
        )
