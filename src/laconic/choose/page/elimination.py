r"""Entries of a page leave one at a time; what stays takes over before the next one is chosen.

The scores of the long sum are fitted by entries :math:`\theta` in weighted squares with curvature
H. An entry leaves by one linear condition :math:`a \cdot \theta = 0`: a knot comes to lie on the
chord of its neighbours, two levels become equal, a shape, a table, a line or a tree is zero. At the
least of the squares under it they are larger by

.. math:: \frac{(a \cdot \theta)^2}{a \cdot H^{-1} a},

in which all others have taken over already, and then

.. math:: \theta \leftarrow \theta - \frac{a \cdot \theta}{a \cdot H^{-1} a} H^{-1} a, \qquad
          H^{-1} \leftarrow H^{-1} - \frac{H^{-1} a a^\top H^{-1}}{a \cdot H^{-1} a}.

Columns that move together are told apart that way, and so are terms that say the same: of a line, a
shape and a table of one column two may leave for nothing. (Optimal brain surgery of Hassibi and
Stork, 1993, with joins in place of deletions.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_solve, cholesky

from laconic._typing import Floats, Ints
from laconic.choose.page.parts import Part

SHAPE, LEVELS, APART, WHOLE = 0, 1, 2, 3
KIND, BEGIN, COUNT, PRICE, BESIDE, LOW, HIGH = range(7)
_PACKED = 0.9
"""Share of the rows of the inverse that must be in use [time]."""
KINDS = {"shape": SHAPE, "levels": LEVELS, "apart": APART, "line": WHOLE, "tree": WHOLE}


@dataclass(frozen=True)
class Squares:
    """Weighted squares of one score: its parts, their entries after the intercept, curvature."""

    parts: Sequence[Part]
    values: Floats
    curvature: Floats


class Elimination:
    """Parts of all scores on their way to fewer entries.

    >>> knots = np.array([0.0, 1.0, 2.0])
    >>> shape = Part(0, 0, "shape", np.arange(3), np.arange(3), np.array([0.0, 1.1, 2.0]), knots)
    >>> squares = Squares([shape], np.array([0.5, 0.0, 1.1, 2.0]), np.eye(4))
    >>> [part] = Elimination([squares]).to(2)[1]
    >>> part.places.tolist(), part.values.round(3).tolist()
    ([0, 2], [0.033, 2.033])
    """

    def __init__(self, scores: Sequence[Squares]) -> None:
        self.parts = [part for own in scores for part in own.parts]
        ends = np.cumsum([0, *(len(own.values) for own in scores)])
        n = int(ends[-1])
        self.intercepts = ends[:-1]
        self.value = np.concatenate([own.values for own in scores])
        self.unit, self.inverse = np.ones(n), np.zeros((n, n))
        for own, a, b in zip(scores, ends[:-1], ends[1:], strict=True):
            unit = 1.0 / np.sqrt(own.curvature.diagonal())
            upper = cholesky(unit[:, None] * own.curvature * unit)
            self.unit[a:b] = unit
            self.inverse[a:b, a:b] = cho_solve((upper, False), np.eye(b - a))
        counts = [len(part.values) for part in self.parts]
        scored = np.array([part.score for part in self.parts], dtype=np.int64)
        # entries of a score come after its intercept
        self.first = np.cumsum([0, *counts[:-1]])[: len(counts)] + scored + 1
        self.order = np.delete(np.arange(n), self.intercepts)
        self.joined, self.stays = np.arange(n), np.ones(n, dtype=np.bool_)
        self.knot = np.zeros(n)
        for part, a in zip(self.parts, self.first, strict=True):
            if part.kind == "shape":
                self.knot[a : a + len(part.places)] = part.knots[part.places]
        self.table = np.zeros((len(counts), 7), dtype=np.int64)
        self.table[:, KIND] = [KINDS[part.kind] for part in self.parts]
        self.table[:, BEGIN] = self.first - scored - 1
        self.table[:, COUNT] = counts
        self.table[:, PRICE] = [part.price for part in self.parts]
        # a shape that leaves before the values apart from it would still be drawn
        apart = {part.owner: p for p, part in enumerate(self.parts) if part.kind == "apart"}
        self.table[:, BESIDE] = [
            apart.get(part.owner, -1) if part.kind == "shape" else -1 for part in self.parts
        ]
        self.row = self.name = np.arange(n)
        self.low, self.high = ends[scored], ends[scored + 1]
        self.table[:, LOW], self.table[:, HIGH] = self.low, self.high
        self.size = sum(part.price * len(part.values) for part in self.parts)

    def to(self, most: float) -> tuple[Floats, list[Part]]:
        """The intercepts, and the parts with at most so many entries."""
        # numba is loaded here, at the first fit
        from laconic.choose.page._numba import leave_one_by_one

        self._pack()
        self.size = leave_one_by_one(
            self.value,
            self.inverse,
            self.unit,
            self.row,
            self.name,
            self.knot,
            self.table,
            self.order,
            self.joined,
            self.stays,
            self.size,
            float(most),
        )
        entry = self._entries()
        left = [self._left(p, entry) for p in range(len(self.parts)) if self.table[p, COUNT]]
        return self.value[self.intercepts], left

    def _pack(self) -> None:
        """The inverse of those that are left alone."""
        if self.stays[self.name].mean() > _PACKED:
            return
        self.name = np.flatnonzero(self.stays)
        rows = self.row[self.name]
        self.inverse = self.inverse[np.ix_(rows, rows)]
        self.row = np.full(len(self.value), -1)
        self.row[self.name] = np.arange(len(self.name))
        self.table[:, LOW] = np.searchsorted(self.name, self.low)
        self.table[:, HIGH] = np.searchsorted(self.name, self.high)

    def _entries(self) -> Ints:
        """For every level, the one that is left and that it has become; -1 for zero."""
        now, joined = np.arange(len(self.value)), np.append(self.joined, -1)
        after = joined[now]
        while not np.array_equal(now, after):
            now, after = after, joined[after]
        return now

    def _left(self, p: int, entry: Ints) -> Part:
        """What is left of a part."""
        part, first = self.parts[p], int(self.first[p])
        begin, count = self.table[p, BEGIN], self.table[p, COUNT]
        stays = self.order[begin : begin + count]
        values = self.value[stays]
        if part.kind in ("line", "tree"):
            return replace(part, values=values)
        if part.kind == "shape":
            return replace(part, places=part.places[stays - first], values=values)
        place = np.full(len(part.values) + 1, -1)  # the last one is zero's
        place[stays - first] = np.arange(count)
        own = entry[first : first + len(part.values)]
        own = place[np.where(own < 0, len(part.values), own - first)]
        places = np.where(part.places < 0, -1, own[part.places])
        return replace(part, places=places, values=values)
