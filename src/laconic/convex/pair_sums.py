"""Losses summed over the ordered pairs of rows without building the pairs.

R(f) = sum over pairs (i, j) of one group with y_i > y_j of s_i s_j phi(f_i - f_j).

Hinges need only the weights and the scores of the rows below a moving threshold. The logistic loss
is separable too: with z = exp(-|f_i - f_j|) it is a polynomial in z plus, for a pair in the wrong
order, |f_i - f_j|. The Chebyshev series of log(1 + z) on [0, 1] shrinks by 3 + sqrt(8) per degree,
so that degree 17 reaches 1e-13, and each power z^k = exp(-k f_i) exp(k f_j) splits in two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.convex.tuning import FIRST_BAND, LABELS_OF_NEWTON, SERIES_DEGREE


@dataclass(frozen=True)
class Pairs:
    """Which rows make ordered pairs: label ranks within groups, rows sorted by group."""

    rank: Ints
    group: Ints
    start: Ints
    levels: Ints
    weight: Floats

    @classmethod
    def of(cls, y: Floats, weight: Floats, groups: NDArray[np.generic] | None = None) -> Pairs:
        group = np.zeros(y.size, dtype=np.int64)
        if groups is not None:
            group = np.unique(groups, return_inverse=True)[1].astype(np.int64)
        order = np.lexsort((y, group))
        new_group = np.diff(group[order], prepend=-1) > 0
        new_label = (np.diff(y[order], prepend=y[order[:1]]) != 0) | new_group
        start = np.append(np.flatnonzero(new_group), y.size).astype(np.int64)
        counted = np.cumsum(new_label) - 1
        first_of_group = np.repeat(counted[start[:-1]], np.diff(start))
        rank = np.empty(y.size, dtype=np.int64)
        rank[order] = counted - first_of_group
        levels = counted[start[1:] - 1] - counted[start[:-1]] + 1
        return cls(rank, group, start, levels.astype(np.int64), weight)

    @property
    def total(self) -> float:
        """Weight of all pairs, sum of s_i s_j over y_i > y_j."""
        order = np.lexsort((self.rank, self.group))
        s = self.weight[order]
        key = self.group[order] * (int(self.levels.max()) + 1) + self.rank[order]
        same_label = np.bincount(np.unique(key, return_inverse=True)[1], s)
        same_group = np.bincount(self.group, self.weight)
        return float((np.sum(same_group**2) - np.sum(same_label**2)) / 2.0)

    def accuracy(self, scores: Floats) -> float:
        """Share of the pairs whose scores are in the right order; a tie counts half."""
        at = self.sort(scores)
        one = np.ones((scores.size, 1))
        wrong, _ = at.within(one, 0.0)
        not_right, _ = at.within(one, np.nextafter(0.0, 1.0))
        half_ties = float(at.s @ (wrong + not_right)[:, 0]) / 2.0
        return 1.0 - half_ties / self.total if self.total > 0 else float("nan")

    def coarse(self, most: int) -> Pairs:
        """The same pairs without those whose labels are neighbours, at most ``most`` labels."""
        if self.levels.max() <= most:
            return self
        step = -(-self.levels // most)
        return replace(self, rank=self.rank // step[self.group], levels=-(-self.levels // step))

    def sort(self, scores: Floats) -> SortedPairs:
        if self.levels.size == 1:
            order = np.argsort(scores, kind="stable")
        else:
            order = np.lexsort((scores, self.group))
        return SortedPairs(self, order, scores[order])


@dataclass(frozen=True)
class SortedPairs:
    """The pairs seen from given scores: rows by increasing score within each group."""

    pairs: Pairs
    order: NDArray[np.intp]
    f: Floats

    @property
    def s(self) -> Floats:
        return self.pairs.weight[self.order]

    @property
    def rank(self) -> Ints:
        return self.pairs.rank[self.order]

    def within(self, columns: Floats, tau: float) -> tuple[Floats, Floats]:
        """Sums of s * columns over the losers, and over the winners, of pairs closer than tau."""
        from laconic.convex._numba import sums_within

        V = np.ascontiguousarray(self.s[:, None] * columns)
        rows = (self.f, self.rank, self.pairs.start, self.pairs.levels, V, tau)
        return sums_within(*rows, False), sums_within(*rows, True)

    def sweep(self, columns: Floats, powers: Floats, *, upwards: bool, higher: bool) -> Floats:
        """Polynomial sums over the rows with smaller (``upwards``) or larger scores."""
        from laconic.convex._numba import exponential_sweep

        V = np.ascontiguousarray(self.s[:, None] * columns)
        f, rank, start, levels = self.f, self.rank, self.pairs.start, self.pairs.levels
        if upwards:
            return np.asarray(exponential_sweep(f, rank, start, levels, V, powers, higher, True))

        def mirrored(part: NDArray[Any]) -> NDArray[Any]:
            return np.ascontiguousarray(part[::-1])

        rows = mirrored(-f), mirrored(rank), mirrored(f.size - start), mirrored(levels), mirrored(V)
        return np.asarray(exponential_sweep(*rows, powers, higher, False)[::-1])

    def back(self, values: Floats) -> Floats:
        """From sorted rows to rows as they came."""
        out = np.empty_like(values)
        out[self.order] = values
        return out


class PairLoss(Protocol):
    """What the ranking solver asks of a loss summed over pairs, for rows sorted by score."""

    def value(self, at: SortedPairs) -> float: ...

    def slope(self, at: SortedPairs) -> Floats:
        """Derivative of the sum with respect to each row's score (rows as they came)."""

    def laplacian(self, at: SortedPairs, U: Floats) -> Floats:
        """Second derivative, a graph Laplacian on the rows, times the columns of U."""

    def misfit(self, at: SortedPairs, slope: Floats) -> float:
        """Sum over pairs of phi(t) + phi*(-a) + a t for the dual variables behind ``slope``."""


@dataclass(frozen=True)
class SquaredHingePairs:
    """phi(t) = max(0, tau - t)^2."""

    tau: float = 1.0

    def value(self, at: SortedPairs) -> float:
        f = at.f
        lost, _ = at.within(np.stack([np.ones_like(f), f, f * f], axis=1), self.tau)
        rest = self.tau - f
        per_row = rest * rest * lost[:, 0] + 2.0 * rest * lost[:, 1] + lost[:, 2]
        return float(at.s @ per_row)

    def slope(self, at: SortedPairs) -> Floats:
        f = at.f
        lost, won = at.within(np.stack([np.ones_like(f), f], axis=1), self.tau)
        as_winner = (self.tau - f) * lost[:, 0] + lost[:, 1]
        as_loser = (self.tau + f) * won[:, 0] - won[:, 1]
        return at.back(2.0 * at.s * (as_loser - as_winner))

    def laplacian(self, at: SortedPairs, U: Floats) -> Floats:
        u = U[at.order]
        lost, won = at.within(np.column_stack([np.ones(len(u)), u]), self.tau)
        both = lost + won
        return at.back(2.0 * at.s[:, None] * (both[:, :1] * u - both[:, 1:]))

    def misfit(self, at: SortedPairs, slope: Floats) -> float:
        return 0.0


@dataclass(frozen=True)
class HingePairs:
    """phi(t) = max(0, 1 - t), its corner rounded over a band of width ``band`` for the slopes.

    The rounded loss is a difference of two squared hinges, at 1 + band / 2 and 1 - band / 2; its
    slopes are dual feasible for the hinge itself, and ``misfit`` is what the rounding costs.
    """

    band: float = FIRST_BAND

    @property
    def _ends(self) -> tuple[SquaredHingePairs, SquaredHingePairs]:
        return SquaredHingePairs(1.0 + self.band / 2.0), SquaredHingePairs(1.0 - self.band / 2.0)

    def value(self, at: SortedPairs) -> float:
        f = at.f
        lost, _ = at.within(np.stack([np.ones_like(f), f], axis=1), 1.0)
        return float(at.s @ ((1.0 - f) * lost[:, 0] + lost[:, 1]))

    def slope(self, at: SortedPairs) -> Floats:
        wide, narrow = self._ends
        return (wide.slope(at) - narrow.slope(at)) / (2.0 * self.band)

    def laplacian(self, at: SortedPairs, U: Floats) -> Floats:
        wide, narrow = self._ends
        return (wide.laplacian(at, U) - narrow.laplacian(at, U)) / (2.0 * self.band)

    def misfit(self, at: SortedPairs, slope: Floats) -> float:
        """sum phi(t) - a + a t; the sum of a comes from the same sums as the slopes."""
        f = at.f
        duals = np.zeros_like(f)
        for end, sign in zip(self._ends, (1.0, -1.0), strict=True):
            lost, _ = at.within(np.stack([np.ones_like(f), f], axis=1), end.tau)
            duals += sign * ((end.tau - f) * lost[:, 0] + lost[:, 1])
        total_dual = float(at.s @ duals) / self.band
        return max(self.value(at) - total_dual - float(slope[at.order] @ f), 0.0)


def _series(function: Callable[[Any], Any], degree: int) -> Floats:
    fitted = Chebyshev.interpolate(function, degree, domain=[0.0, 1.0])
    return np.asarray(fitted.convert(kind=Polynomial).coef)


@cache
def _logistic_series() -> tuple[Floats, Floats]:
    """Polynomials in z of log(1 + z), z / (1 + z) and 1; and, coarser, of z / (1 + z)^2."""
    degree = SERIES_DEGREE
    sums = np.zeros((3, degree + 1))
    sums[0] = _series(np.log1p, degree)
    sums[0, 0] = 0.0
    sums[1, 1:] = _series(lambda z: 1.0 / (1.0 + z), degree - 1)
    sums[2, 0] = 1.0
    # Newton's matrix may be a little off: 1 / (1 + z)^2 to 0.5 %, still positive on [0, 1]
    bend = np.zeros((1, 6))
    bend[0, 1:] = _series(lambda z: 1.0 / np.square(1.0 + z), 4)
    return sums, bend


@dataclass(frozen=True)
class LogisticPairs:
    """phi(t) = log(1 + exp(-t)); values and slopes to 1e-13, the Laplacian to about 1 %."""

    def value(self, at: SortedPairs) -> float:
        sums, _ = _logistic_series()
        one = np.ones((at.f.size, 1))
        ordered = at.sweep(one, sums[:1], upwards=True, higher=False)
        swapped = at.sweep(one, sums[:1], upwards=True, higher=True)
        return float(at.s @ (ordered[:, 0] + swapped[:, 0] + swapped[:, -1]))

    def slope(self, at: SortedPairs) -> Floats:
        sums, _ = _logistic_series()
        one = np.ones((at.f.size, 1))
        total = np.zeros(at.f.size)
        for upwards, sign in ((True, -1.0), (False, 1.0)):
            # a pair in the right order pulls by z / (1 + z), in the wrong order by 1 / (1 + z)
            ordered = at.sweep(one, sums[1:], upwards=upwards, higher=not upwards)
            swapped = at.sweep(one, sums[1:], upwards=upwards, higher=upwards)
            total += sign * (ordered[:, 0] - (swapped[:, 1] - swapped[:, 0]))
        return at.back(at.s * total)

    def laplacian(self, at: SortedPairs, U: Floats) -> Floats:
        _, bend = _logistic_series()
        at = replace(at, pairs=at.pairs.coarse(LABELS_OF_NEWTON))
        u = U[at.order]
        columns = np.column_stack([np.ones(len(u)), u])
        both = np.zeros_like(columns)
        for upwards in (True, False):
            for higher in (True, False):
                both += at.sweep(columns, bend, upwards=upwards, higher=higher)[:, :-1]
        return at.back(at.s[:, None] * (both[:, :1] * u - both[:, 1:]))

    def misfit(self, at: SortedPairs, slope: Floats) -> float:
        return 0.0
