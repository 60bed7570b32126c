"""Which pairs of columns deserve a grid: second-order gains from 2-D tables at the current fit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from laconic.solvers.additive_evidence import WANDERING, roughness_units
from laconic.solvers.additive_problem import slopes_by_term
from laconic.solvers.additive_terms import TermSet

Array = NDArray[np.float64]

_RIDGE = 1.0

_FEW_LEVELS = 2.0
"""Levels of a column, but for the first, up to which one matrix product is faster than tables."""

_AMOUNTS = 10.0 ** np.arange(-2.0, 4.5, 0.5)
"""Amounts of smoothness, in units of the term, at which evidence is looked at."""

_EMPTY = 1e-12
"""Share of all curvature below which a difference of sums is zero."""


def coarse_cells(terms: TermSet, columns: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Nearest coarse slot of every row, for some columns."""
    out = np.empty((len(columns), terms.rows.n_rows), dtype=np.uint8)
    for k, j in enumerate(columns):
        slot, way = terms.rows.column(int(j))
        coarse = terms.coarse[j]
        place = coarse.base[slot] + coarse.step[slot] * way
        out[k] = coarse.index[slot] + (place > 0.5)
    return out


def screen_pairs(
    terms: TermSet, columns: NDArray[np.int64], slopes: Array, curves: Array
) -> tuple[list[tuple[int, int]], Array]:
    """All pairs of ``columns`` by decreasing gain, and the gains."""
    if len(columns) < 2:
        return [], np.zeros(0)
    seen = np.flatnonzero(curves.any(axis=0))
    cells = coarse_cells(terms, columns)[:, seen]
    sizes = np.array([terms.coarse[j].axis.size for j in columns], dtype=np.int64)
    gains = all_gains(cells, sizes, slopes[:, seen], curves[:, seen])
    first, second = np.triu_indices(len(columns), 1)
    order = np.argsort(-gains[first, second], kind="stable")
    first, second = first[order], second[order]
    pairs = [(int(columns[a]), int(columns[b])) for a, b in zip(first, second, strict=True)]
    return pairs, gains[first, second]


def all_gains(
    cells: NDArray[np.uint8], sizes: NDArray[np.int64], slopes: Array, curves: Array
) -> Array:
    """Gain of every pair a < b: table by table, or all tables in one product of few levels."""
    from laconic.solvers.hot_additive_pairs import add_gains_of_tables, pair_gains

    gains = np.zeros((len(sizes), len(sizes)))
    start = (np.cumsum(sizes - 1) - (sizes - 1)).astype(np.int64)
    if float((sizes - 1).sum()) > _FEW_LEVELS * len(sizes):
        pair_gains(cells, sizes, slopes, curves, _RIDGE, gains)
        return gains
    is_level = np.ones((int((sizes - 1).sum()) + 1, cells.shape[1]))
    for j, size in enumerate(sizes):
        levels = np.arange(1, size)[:, None]
        is_level[start[j] : start[j] + size - 1] = cells[j] == levels
    for slope, curve in zip(slopes, curves, strict=True):
        G, H = (is_level * slope) @ is_level.T, (is_level * curve) @ is_level.T
        add_gains_of_tables(G, H, start, sizes, _EMPTY * H[-1, -1], _RIDGE, gains)
    return gains


def log_bayes_factors(terms: TermSet, first: int, slopes: Array, curves: Array) -> Array:
    """log of (evidence with the term / evidence without it) at every one of ``_AMOUNTS``.

    One row for each term from ``first`` on; -inf for terms that no row sees.

    At the fit without them, with th the sums of slopes and H the curvatures of a term, a normal
    prior of precision l R gives (1/2) sum_j [th_j^2 / (h_j + l r_j) - log(1 + h_j / (l r_j))] with
    the diagonal of H, where the basis is nearly orthogonal. R is the roughness to the middle
    power: a pair may turn out to bend slowly or not.
    """
    from laconic.solvers.hot_additive import curvature_blocks

    rows, packed = terms.packed
    work = np.arange(first, len(terms.terms))
    if len(work) == 0:
        return np.zeros((0, len(_AMOUNTS)))
    theta = slopes_by_term(terms, slopes, work)
    K, rank = len(slopes), packed.rank[work]
    H_start = np.concatenate([[0], np.cumsum(K * rank**2)]).astype(np.int64)
    H = np.empty(H_start[-1])
    pad = int((packed.size[work] + packed.width[work] + 2).max())
    curvature_blocks(rows, packed, work, curves, H, H_start, np.empty(pad * pad))
    units = roughness_units(terms)
    out = np.full((len(work), len(_AMOUNTS)), -np.inf)
    for w, t in enumerate(work):
        r, s = int(rank[w]), int(packed.start[t])
        if r == 0:
            continue
        blocks = H[H_start[w] : H_start[w + 1]].reshape(K, r, r)
        h = np.diagonal(blocks, axis1=1, axis2=2)
        rough = (np.maximum(terms.rough[s : s + r], units[t]) / units[t]) ** WANDERING
        prior = _AMOUNTS[:, None, None] * rough
        value = theta[:, s : s + r] ** 2 / (h + prior) - np.log1p(h / prior)
        out[w] = 0.5 * value.sum(axis=(1, 2))
    return out


def best_amounts(log_factors: Array) -> Array:
    """The amount with the largest Bayes factor of every term."""
    return np.asarray(_AMOUNTS[log_factors.argmax(axis=1)])
