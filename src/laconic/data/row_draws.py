"""A sample of rows that depends on what they hold and how often it comes, not on their order.

Equal rows share one key and with it one number v in [0, 1). Of c copies floor(rate c - v) + 1 are
drawn: rate c of them in the mean, no more than one away from it, and no copy is told from another.
Rows in memory are counted at once. Those of a scan may be more than one process can count, and
take two passes of :meth:`~laconic.data.source.Source.sum`: rows that come once are drawn if v is at
most the rate, and those with a larger v only if they come often, which few can. The first pass
counts rows by v, in powers of two, and by a bucket of their key; the second brings those whose
bucket is full enough, with their counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints, Keys
from laconic.data.row_keys import mixed, uniforms

_BUCKETS = 2**16
"""Buckets of one power of two: at a rate of 1 in 400 some 100,000 of 50,000 wanted rows come."""


def copy_keys(keys: Keys, y: Ints, weight: Floats) -> Keys:
    """One key for each row, class and weight; ``keys`` are those of the rows."""
    bits = np.ascontiguousarray(weight, dtype=np.float64).view(np.uint64)
    return mixed(keys ^ mixed(mixed(y.astype(np.uint64) + np.uint64(1)) ^ bits))


@dataclass(frozen=True)
class CopyDraw:
    """Which rows are drawn at a rate.

    >>> draw, rows = CopyDraw(0.5), np.array([1, 2, 1, 1, 3, 1, 4])
    >>> rows[draw.places(mixed(rows.astype(np.uint64)))].tolist()
    [1, 1, 3]
    """

    rate: float

    @property
    def powers(self) -> int:
        """Powers of two of v above which a row must come more than once to be drawn."""
        return max(0, int(np.ceil(-np.log2(self.rate))) - 1)

    def copies(self, keys: Keys, counts: Ints) -> Ints:
        """How many of ``counts`` copies of each key are drawn."""
        wanted = np.floor(self.rate * counts - uniforms(keys)).astype(np.int64) + 1
        return np.maximum(wanted, 0)

    def places(self, keys: Keys) -> Ints:
        """Places of the rows that are drawn, the first of their copies, where all are at hand."""
        order = np.argsort(keys, kind="stable")
        distinct, first, counts = np.unique(keys[order], return_index=True, return_counts=True)
        copy = np.arange(len(keys)) - np.repeat(first, counts)
        drawn = copy < np.repeat(self.copies(distinct, counts), counts)
        return np.asarray(np.sort(order[drawn]))

    def tally(self, keys: Keys) -> Ints:
        """Rows by power and bucket, those that may be drawn alone left out; tallies add up."""
        power, bucket = self._cells(keys)
        often = power < self.powers
        cell = power[often] * _BUCKETS + bucket[often]
        return np.bincount(cell, minlength=self.powers * _BUCKETS)

    def possible(self, keys: Keys, tally: Ints) -> NDArray[np.bool_]:
        """Rows that may be drawn, by the tally of all rows."""
        power, bucket = self._cells(keys)
        alone = power >= self.powers
        cell = np.where(alone, 0, power * _BUCKETS + bucket)
        most = tally[cell] if len(tally) else np.zeros(len(keys))
        return np.asarray(alone | (self.rate * most >= np.ldexp(0.999, -(power + 1))))

    def _cells(self, keys: Keys) -> tuple[Ints, Ints]:
        """v lies in [2^-(power + 1), 2^-power); the bucket is free of the leading bits."""
        power = np.minimum(-np.frexp(uniforms(keys))[1], 63)
        power[uniforms(keys) == 0.0] = 63
        return power.astype(np.int64), (keys & np.uint64(_BUCKETS - 1)).astype(np.int64)


@dataclass(frozen=True)
class PossibleRows:
    """Distinct rows of some blocks that may be drawn, how often each came, and what they hold."""

    keys: Keys
    counts: Ints
    held: tuple[NDArray[Any], ...]
    """Arrays whose last axis is the row."""

    @staticmethod
    def of(keys: Keys, held: tuple[NDArray[Any], ...]) -> PossibleRows:
        return PossibleRows(keys, np.ones(len(keys), dtype=np.int64), held)._distinct()

    @staticmethod
    def joined(parts: Sequence[PossibleRows]) -> PossibleRows:
        keys, counts = (np.concatenate([getattr(p, n) for p in parts]) for n in ("keys", "counts"))
        held = zip(*(part.held for part in parts), strict=True)
        return PossibleRows(
            keys, counts, tuple(np.concatenate(own, axis=-1) for own in held)
        )._distinct()

    def _distinct(self) -> PossibleRows:
        keys, first, where = np.unique(self.keys, return_index=True, return_inverse=True)
        counts = np.bincount(where, self.counts, len(keys)).astype(np.int64)
        return PossibleRows(keys, counts, tuple(own[..., first] for own in self.held))

    def drawn(self, draw: CopyDraw) -> tuple[NDArray[Any], ...]:
        """What the drawn rows hold, copies as often as they are drawn."""
        rows = np.repeat(np.arange(len(self.keys)), draw.copies(self.keys, self.counts))
        return tuple(part[..., rows] for part in self.held)
