"""The problem that is solved: the least logistic loss of a card of whole points.

With items x_j in {0, 1}, whole points l_j, a multiplier a and an offset b,

    min  mean of log(1 + exp(-y (a (l_1 x_1 + ... + l_p x_p) + b)))  +  price * (items with points)
    over l_j in {lo_j, ..., hi_j},  at most k of them not zero,  0 <= a <= A,  b real,

and the rules of :mod:`laconic.scorecard.limits`. Rows with the same items are one pattern: the loss
is counted once for each. Prior rows (:func:`with_prior`) change the shares of the classes in the
patterns and nothing else: every bound is a bound on the loss with them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints, Mask


@dataclass(frozen=True)
class Limits:
    """Rules on which items may have points together.

    ``at_most``: (items, number) pairs; ``cover``: sets of items of which one must have points;
    ``most_columns``: how many columns may be read.
    """

    at_most: tuple[tuple[Ints, int], ...] = ()
    cover: tuple[Ints, ...] = ()
    most_columns: int | None = None


@dataclass(frozen=True)
class CardProblem:
    """``items`` is (items, patterns) of 0 and 1; ``pos`` and ``neg`` are shares of all weight.

    ``price`` is what every item with points adds to the loss.
    """

    items: NDArray[np.uint8]
    pos: Floats
    neg: Floats
    lo: Ints
    hi: Ints
    most_items: int
    most_multiplier: float
    column: Ints
    limits: Limits = field(default_factory=Limits)
    price: float = 0.0

    @property
    def n_items(self) -> int:
        return len(self.items)

    @property
    def null_loss(self) -> float:
        share = float(self.pos.sum())
        return float(-share * np.log(share) - (1 - share) * np.log(1 - share))

    @cached_property
    def dense(self) -> Floats:
        return self.items.astype(np.float64)

    @cached_property
    def usable(self) -> Mask:
        return np.asarray((self.hi > 0) | (self.lo < 0))

    def cells(self, support: Ints) -> tuple[Floats, Floats, Floats]:
        """The patterns of a few items: (cells, items), and the share of each class."""
        from laconic.scorecard._numba import cells_of, codes_of

        code = codes_of(self.items, support, self.items.shape[1])
        found: tuple[Floats, Floats, Floats] = cells_of(code, self.pos, self.neg, len(support))
        return found

    def fitted(self, points: Ints) -> tuple[float, float, float]:
        """Loss with the price of its items, multiplier and offset of a card, (items,) points."""
        from laconic.scorecard._numba import fit_multiplier

        support = np.flatnonzero(points)
        Z, c1, c0 = self.cells(support)
        totals = Z @ points[support].astype(np.float64)
        loss, a, b = fit_multiplier(totals, c1, c0, self.most_multiplier)
        return float(loss) + self.price * len(support), float(a), float(b)

    def feasible(self, points: Ints) -> bool:
        """Whether the card keeps every rule."""
        on, rules = points != 0, self.limits
        return bool(
            on.sum() <= self.most_items
            and ((points >= self.lo) & (points <= self.hi)).all()
            and all(on[group].sum() <= most for group, most in rules.at_most)
            and all(on[group].any() for group in rules.cover)
            and (rules.most_columns is None or len(set(self.column[on])) <= rules.most_columns)
        )


def patterns(
    items: NDArray[np.uint8], second: Mask, weight: Floats
) -> tuple[NDArray[np.uint8], Floats, Floats]:
    """Distinct rows of (items, rows), in a fixed order, with the share of both classes in each."""
    packed = np.ascontiguousarray(np.packbits(items, axis=0).T)
    keys = packed.view(np.dtype((np.void, packed.shape[1] or 1))).ravel() if len(items) else None
    if keys is None:
        place, first = np.zeros(len(second), dtype=np.int64), np.zeros(1, dtype=np.int64)
    else:
        _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    total = weight.sum()
    pos = np.bincount(place.ravel(), weight * second, minlength=len(first)) / total
    neg = np.bincount(place.ravel(), weight * ~second, minlength=len(first)) / total
    return np.ascontiguousarray(items[:, first]), pos, neg


def with_prior(pos: Floats, neg: Floats, rows: float) -> tuple[Floats, Floats]:
    """Shares of both classes with prior rows, given as a part of all rows.

    A prior row has the items of a training row, each alike, and the classes of the whole:

        pos_i  ->  (pos_i + rows * (pos_i + neg_i) * share) / (1 + rows),   share = sum of pos.

    The sum of each class stays, and so does the empty card.

    >>> with_prior(np.array([0.4, 0.0]), np.array([0.0, 0.6]), 0.25)
    (array([0.352, 0.048]), array([0.048, 0.552]))
    """
    total = pos + neg
    share = pos.sum() / total.sum()
    return (
        (pos + rows * share * total) / (1.0 + rows),
        (neg + rows * (1.0 - share) * total) / (1.0 + rows),
    )
