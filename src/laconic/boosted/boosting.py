"""Bags of boosted terms, and which pairs of columns become terms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from scipy.stats import entropy

from laconic._typing import Floats, Ints
from laconic.boosted.coding import RankedColumns
from laconic.boosted.rows import Bag, DistinctRows
from laconic.boosted.tuning import (
    DRAWN,
    ENOUGH,
    GREEDY,
    IN_BAG,
    LEAST_ROWS,
    MOST_STEPS,
    PASSES,
    PATIENCE,
    RATE,
    RIDGE,
    SCREENED,
)


@dataclass(frozen=True)
class Terms:
    """Terms of one column (``second`` is -1) or of two, places among ranked columns."""

    first: Ints
    second: Ints

    @classmethod
    def of_columns(cls, n_columns: int) -> Terms:
        return cls(np.arange(n_columns), np.full(n_columns, -1))


class Bags:
    """Bags of the same rows; their odds are those after all that was boosted so far."""

    def __init__(self, rows: DistinctRows, n_bags: int, seed: int) -> None:
        self.rows, self.seed = rows, seed
        self.bags = [rows.bag(number, IN_BAG) for number in range(n_bags)]
        # a class that has no weight is told from nothing
        share = np.clip(np.average(rows.y, weights=rows.weight), 1e-12, 1.0 - 1e-12)
        self.start = float(logit(share))
        self.enough = ENOUGH * float(entropy([share, 1.0 - share]))
        self.odds = [np.full(len(bag.places), np.exp(self.start)) for bag in self.bags]

    def boost(self, columns: RankedColumns, codes: NDArray[np.uint8], terms: Terms) -> Floats:
        """(terms, slots, slots): the mean over the bags of the sum of the steps."""
        from laconic.boosted._numba import boost, summed

        ends = columns.sizes, terms.first, terms.second
        passes = int(np.clip(MOST_STEPS // len(terms.first), GREEDY + 1, PASSES))
        total: Floats = np.zeros(1)
        for number, (bag, odds) in enumerate(zip(self.bags, self.odds, strict=True)):
            steps, values = boost(
                np.ascontiguousarray(codes[:, bag.places]), *ends, *self._judged(bag), odds,
                RATE, RIDGE, LEAST_ROWS, GREEDY, passes, PATIENCE, self.enough,
                DRAWN, self.seed + number,
            )  # fmt: skip
            total = total + summed(steps, values, *ends)
        return np.asarray(total / len(self.bags))

    def gains(self, columns: RankedColumns, codes: NDArray[np.uint8], terms: Terms) -> Floats:
        """What the best cross of each pair would gain, over all bags."""
        from laconic.boosted._numba import pair_gains

        total = np.zeros(len(terms.first))
        for bag, odds in zip(self.bags, self.odds, strict=True):
            total += pair_gains(
                np.ascontiguousarray(codes[:, bag.places]), columns.sizes, *self._judged(bag), odds,
                terms.first, terms.second, RIDGE, LEAST_ROWS,
            )  # fmt: skip
        return total

    def _judged(self, bag: Bag) -> tuple[Floats, Floats, int]:
        return self.rows.y[bag.places], bag.weight, bag.n_in


def screened_pairs(
    bags: Bags,
    columns: RankedColumns,
    codes: NDArray[np.uint8],
    spread: Floats,
    allowed: NDArray[np.bool_],
    most: int,
) -> Terms:
    """The pairs whose best cross gains most beside the single columns.

    ``spread`` is how much each column says alone: of many columns only those that say most are
    looked at. ``allowed[a, b]`` with a < b says which pairs there may be.
    """
    loudest = np.sort(np.argsort(-spread, kind="stable")[:SCREENED])
    a, b = (loudest[end] for end in np.triu_indices(len(loudest), 1))
    own = allowed[a, b]
    pairs = Terms(a[own], b[own])
    most = min(most, int(own.sum()))
    if not most:
        return Terms(a[:0], b[:0])
    gains = bags.gains(columns, codes, pairs)
    best = np.argsort(-gains, kind="stable")[:most]
    return Terms(pairs.first[best], pairs.second[best])
