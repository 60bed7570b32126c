"""Quadratic model of an additive loss at the current scores, on the rows that curve.

Newton's direction needs the slopes of all rows, once, and products with the curvatures again and
again. Rows decided with near certainty (and rows held out) hardly curve: without those that
together carry at most a small share of the curvature the products cost a fraction, and the
direction stays one of descent, since the gradient is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from laconic.solvers.additive_terms import TermSet

if TYPE_CHECKING:
    from laconic.solvers.hot_additive_rows import Rows, Terms

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
T = TypeVar("T", bound=np.generic)

_FEW_ROWS = 1_000
_MOST_KEPT = 0.65
"""Copying the rows that curve pays, in time and memory, when they are at most this share."""


@dataclass(frozen=True)
class QuadraticModel:
    """Gradient at the start, curvatures of ``rows``, and what the moves have changed so far.

    ``theta`` and ``slope`` are exact sums of the slopes of all rows. ``residual``, the change of
    the gradient of the rows, and ``change``, that of their scores, start at zero.
    """

    rows: Rows
    terms: Terms
    theta: Array
    slope: Array
    curves: Array
    residual: Array
    change: Array

    @classmethod
    def at(
        cls,
        terms: TermSet,
        work: Ints,
        theta: Array,
        slopes: Array,
        curves: Array,
        negligible: float,
    ) -> QuadraticModel:
        """The model of the terms in ``work``, without rows below ``negligible`` times the mean."""
        rows, packed = terms.packed
        size = curves.sum(axis=0) if len(curves) > 1 else curves[0]
        kept = np.flatnonzero(size > negligible * float(size.mean()))
        if len(size) >= _FEW_ROWS and len(kept) <= _MOST_KEPT * len(size):
            rows, packed = compact(rows, packed, work, kept)
            curves = np.ascontiguousarray(curves[:, kept])
        nothing = np.zeros_like(curves)
        return cls(rows, packed, theta, slopes.sum(axis=1), curves, nothing, nothing.copy())

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array, Array]:
        """In the order of the compiled descent."""
        return self.theta, self.slope, self.curves, self.residual, self.change


def compact(rows: Rows, terms: Terms, work: Ints, kept: Ints) -> tuple[Rows, Terms]:
    """The kept rows, of the columns that the terms in ``work`` read, and the terms on them."""
    from laconic.solvers.hot_additive_rows import Rows

    first, second = terms.first[work], terms.second[work]
    pairs = second >= 0
    alone = np.unique(first[~pairs])
    coarse = np.unique(np.concatenate([first[pairs], second[pairs]]))
    place = np.full(len(rows.coarse_row), -1, dtype=np.int64)
    place[alone] = np.arange(len(alone))
    also = np.setdiff1d(coarse, alone)
    place[also] = len(alone) + np.arange(len(also))
    n_used = len(alone) + len(also)
    between = alone[rows.fraction_row[alone] >= 0]
    ways = coarse[rows.coarse_way[coarse] > 0]
    few = Rows(
        _taken(rows.slots, alone, kept),
        _taken(rows.fraction, rows.fraction_row[between], kept),
        _numbered(n_used, place[between], -1),
        _numbered(n_used, place[coarse], -1),
        _taken(rows.coarse_slots, rows.coarse_row[coarse], kept),
        _numbered(n_used, place[ways], 0),
        _taken(rows.coarse_fraction, np.append(0, rows.coarse_way[ways]), kept),
        _marked(n_used, place[alone[rows.yes_no[alone]]]),
        _marked(n_used, place[coarse[rows.coarse_yes_no[coarse]]]),
    )
    # terms outside ``work`` may point nowhere: they are not read
    return few, terms._replace(
        first=place[terms.first], second=np.where(terms.second >= 0, place[terms.second], -1)
    )


def _numbered(size: int, places: Ints, none: int) -> Ints:
    """``none`` everywhere, and the numbers after it at the places."""
    out = np.full(size, none, dtype=np.int64)
    out[places] = none + 1 + np.arange(len(places))
    return out


def _marked(size: int, places: Ints) -> NDArray[np.bool_]:
    out = np.zeros(size, dtype=bool)
    out[places] = True
    return out


def _taken(store: NDArray[T], which: Ints, kept: Ints) -> NDArray[T]:
    from laconic.solvers.hot_additive_rows import take_rows

    out = np.empty((len(which), len(kept)), dtype=store.dtype)
    take_rows(store, which, kept, out)
    return out
