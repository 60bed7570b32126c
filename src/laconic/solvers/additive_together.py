"""Are the pairs of columns worth something all together? One number, from all of them at once.

Hundreds of pairs can each tell too little to be sure of and still matter as a whole. Choosing the
best looking ones first would make any evidence for them too good; taking all of them does not. The
prior of their sum is a product: with k_a the covariance of a smooth function of column a, unit
variance for its linear part and for its smoothest bend,

    K = sum_{a < b} k_a k_b = (1/2) [(sum_a k_a)^2 - sum_a k_a^2]        (entry by entry),

so that no pair has to be built. At the fit without pairs, with slopes s and curvatures h of the
rows and K_0 the prior covariance of the terms in it, which may move, the log of the ratio of
marginal likelihoods with and without pairs of covariance K / l is

    (1/2) s'(l K^-1 + (H^-1 + K_0)^-1)^-1 s - (1/2) log [det B_l / det B_0],
    B_l = I + H^(1/2) (K_0 + K / l) H^(1/2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, solve_triangular

from laconic.solvers.additive_evidence import roughness_units
from laconic.solvers.additive_terms import TermSet

Array = NDArray[np.float64]

AMOUNTS = (3200.0, 800.0, 200.0, 50.0)
"""Precisions l of the pairs that are compared."""

MOST_ROWS = 1_200
"""The matrices have a row and a column for each row: with more rows held-out losses tell better."""

_CLEARLY = 0.5
"""Nats by which pairs must win."""

_KEPT_SHARE = 0.25
"""Some pairs, on grids that ask for smoothness once more, stand in for all: they get this share."""

_FLAT = 1e3
"""Prior variance of the intercept."""

_ROUGHEST = 100.0
"""Coordinates so much rougher than the smoothest bend add nothing to a covariance."""


def amount_together(terms: TermSet, diagonal: Array, slopes: Array, curves: Array) -> float:
    """Common amount of smoothness of the pairs; infinite when they are not worth it.

    ``terms`` are those of single columns with precisions ``diagonal``; ``slopes`` and ``curves``,
    (scores, rows), belong to their fit. Only for one score and few rows, infinite elsewhere.
    """
    seen = np.flatnonzero(curves[0] > 0)
    if len(slopes) > 1 or len(seen) > MOST_ROWS or len(terms.terms) < 2:
        return np.inf
    gains = log_bayes_factors_together(terms, diagonal, slopes[0, seen], curves[0, seen], seen)
    best = int(np.argmax(gains))
    return _KEPT_SHARE * AMOUNTS[best] if gains[best] > _CLEARLY else np.inf


def log_bayes_factors_together(
    terms: TermSet, diagonal: Array, slope: Array, curve: Array, seen: NDArray[np.int64]
) -> Array:
    """log of (evidence with all pairs / evidence without), for every one of ``AMOUNTS``."""
    rows = dense_coordinates(terms)[:, seen]
    covariance = product_covariance(terms, rows)
    root = np.sqrt(curve)
    own = (rows.T / diagonal) @ rows + _FLAT
    without = np.eye(len(root)) + root[:, None] * own * root
    told, weighted = covariance @ slope, root[:, None] * covariance * root
    base = _log_determinant(cho_factor(without, lower=True)[0])
    out = np.empty(len(AMOUNTS))
    for i, amount in enumerate(AMOUNTS):
        factor = cho_factor(without + weighted / amount, lower=True, overwrite_a=True)[0]
        left = solve_triangular(factor, root * told / amount, lower=True)
        fit = slope @ told / amount - left @ left
        out[i] = 0.5 * (fit - _log_determinant(factor) + base)
    return out


def product_covariance(terms: TermSet, rows: Array) -> Array:
    """Sum over all pairs of columns of the products of their covariances."""
    relative = terms.rough / roughness_units(terms)[terms.owner]
    relative = np.where(relative > 0, relative, 1.0)
    total = np.zeros((rows.shape[1], rows.shape[1]))
    squares = np.zeros_like(total)
    for t in range(len(terms.terms)):
        own = (terms.owner == t) & (relative < _ROUGHEST)
        if own.any():
            part = (rows[own].T / relative[own]) @ rows[own]
            total += part
            squares += part * part
    return np.asarray(0.5 * (total * total - squares))


def dense_coordinates(terms: TermSet) -> Array:
    """(coordinates, rows): what every coordinate adds to the score of every row."""
    from laconic.solvers.hot_additive_rows import coordinate_rows

    out = np.zeros((terms.n_coordinates, terms.rows.n_rows))
    coordinate_rows(*terms.packed, terms.owner, np.arange(terms.n_coordinates), out)
    return out


def _log_determinant(factor: Array) -> float:
    return 2.0 * float(np.log(np.diag(factor)).sum())
