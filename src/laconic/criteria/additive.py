"""Criterion of the sparse additive model, its dual, and a certified gap.

The score is f(x) = b + sum_t s_t(x), each shape s_t = B_t g_t given by its values on the slots of
one column or on the cells of a grid of two, and the criterion is

    P(b, g) = sum_i c_i phi(f(x_i), y_i) + sum_t [ l_t |g_t| + g_t' D_t g_t / 2 ],

c_i the row weights (C times the sample weight), phi the logistic, truncated logistic or
multinomial loss. The basis B_t is chosen (Demmler and Reinsch, *Numerische Mathematik* 24, 1975)
so that |g_t| is the standard deviation of the shape on the training rows, every shape has mean
zero, and D_t, the roughness, is diagonal. |g_t| is the group-lasso penalty of Yuan and Lin
(*JRSS B* 68, 2006): it removes whole terms.

With probabilities p_i as the dual point and th_t = sum_i c_i (y_i - p_i) z_it (z the coordinates of
the row), whenever sum_i c_i (y_i - p_i) = 0,

    P - min P <= sum_i c_i FY_i + sum_t [ pen_t(g_t) + pen_t*(th_t) - th_t'g_t ],

FY the Fenchel-Young loss; every summand is >= 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax, xlogy

from laconic.criteria.gray_zone import TruncatedLogistic
from laconic.criteria.protocol import fenchel_young
from laconic.data.axes import Axis, KnotAxis

Array = NDArray[np.float64]

_LEVEL_RIDGE = 50.0
"""Price of a level's squared distance from the line, in units of the integrated squared bend."""


def bending(axis: Axis, mass: Array) -> Array:
    """Roughness matrix of the values on the slots of one axis.

    Knots: the integral of the squared second derivative on the scale of ranks, where knots are
    equally spaced (the difference penalty of Eilers and Marx, *Statistical Science* 11, 1996).
    Special values: their squared distance from the line; missing: from the mean of the rest.
    Categories and intervals: the sum of squares.
    """
    if not isinstance(axis, KnotAxis):
        return np.eye(axis.size)
    m = len(axis.knots)
    rows = []
    if m > 2:
        second = np.zeros((m - 2, axis.size))
        for k in range(m - 2):
            second[k, k : k + 3] = (1.0, -2.0, 1.0)
        rows.append(second * (m - 1.0) ** 1.5)
    where = axis.encode(axis.specials)[0]
    levels = np.zeros((len(axis.specials) + 1, axis.size))
    for k in range(len(axis.specials)):
        levels[k, where[k]] = 1.0
        place = KnotAxis(axis.knots, np.empty(0)).encode(axis.specials[k : k + 1])
        slot, part = int(place[0][0]), float(place[1][0])
        levels[k, slot] -= 1.0 - part
        if part > 0:
            levels[k, slot + 1] -= part
    # pulled to the mean of all other rows, so that a missing value never seen contributes zero
    others = mass[: axis.missing]
    share = others / others.sum() if others.sum() > 0 else np.full(len(others), 1.0 / len(others))
    levels[-1, axis.missing] = 1.0
    levels[-1, : axis.missing] -= share
    rows.append(levels * np.sqrt(_LEVEL_RIDGE))
    stacked = np.concatenate(rows)
    return np.asarray(stacked.T @ stacked)


def grid_roughness(first: Array, second: Array, mass: Array) -> Array:
    """Roughness on the cells of a grid: along each axis, averaged over the other one."""
    share = mass / max(float(mass.sum()), 1e-300)
    row, column = share.sum(axis=1), share.sum(axis=0)
    a, b = mass.shape
    out = np.zeros((a, b, a, b))
    i, j = np.arange(a), np.arange(b)
    out[:, j, :, j] = column[:, None, None] * first
    out[i, :, i, :] += row[:, None, None] * second
    return out.reshape(a * b, a * b)


@lru_cache(maxsize=512)
def grid_margins(rows: int, columns: int) -> Array:
    """Cells of a grid in each of its rows, then in each of its columns: 0 or 1."""
    row, column = np.divmod(np.arange(rows * columns), columns)
    in_row = row[:, None] == np.arange(rows)
    in_column = column[:, None] == np.arange(columns)
    return np.concatenate([in_row, in_column], axis=1).astype(np.float64)


@dataclass(frozen=True)
class Shape:
    """Basis of one term: slot values ``basis @ g``; ``rough`` is the diagonal of its roughness."""

    basis: Array
    rough: Array

    @property
    def rank(self) -> int:
        return len(self.rough)


def whiten(gram: Array, roughness: Array, removed: Array) -> Shape:
    """Basis with unit Gram matrix and diagonal roughness, orthogonal to the columns ``removed``.

    ``gram`` is the weighted mean of products of slot shares. Directions that no row sees (empty
    knots, absent levels) are not free coordinates: they take the smoothest values given the rest.
    """
    return whiten_all(gram[None], roughness[None], removed)[0]


def whiten_all(grams: Array, roughness: Array, removed: Array) -> list[Shape]:
    """The same for many terms of equal size: (terms, slots, slots) each.

    Every matrix is treated on its own: the result does not depend on which ones come together.
    """
    vectors, sizes, _ = np.linalg.svd(grams @ removed)
    columns = grams.shape[1], removed.shape[1]
    least = sizes.max(axis=1, initial=0.0) * max(columns) * np.finfo(np.float64).eps
    n_removed = (sizes > least[:, None]).sum(axis=1)
    shapes: list[Shape] = [Shape(np.zeros((grams.shape[1], 0)), np.zeros(0))] * len(grams)
    for n in np.unique(n_removed):
        some = np.flatnonzero(n_removed == n)
        keep = np.ascontiguousarray(vectors[some][:, :, n:])
        for k, shape in _whiten_inside(grams[some], roughness[some], keep):
            shapes[some[k]] = shape
    return shapes


def _whiten_inside(grams: Array, roughness: Array, keep: Array) -> Iterator[tuple[int, Shape]]:
    """Place and shape of every term that a row sees, in the orthonormal bases ``keep``."""
    inner, rough = _turned(grams, keep), _turned(roughness, keep)
    values, vectors = np.linalg.eigh(0.5 * (inner + inner.mT))
    total = np.maximum(np.trace(grams, axis1=1, axis2=2), 1e-300)
    floor = 1e-10 * np.maximum(np.trace(roughness, axis1=1, axis2=2), 1e-300)
    n_seen = (values > 1e-9 * total[:, None]).sum(axis=1)
    for n in np.unique(n_seen[n_seen > 0]):
        some = np.flatnonzero(n_seen == n)
        # eigenvalues grow: those that rows see are the last ones
        scaled = vectors[some][:, :, -n:] / np.sqrt(values[some][:, None, -n:])
        scaled = _smoothest(scaled, vectors[some][:, :, :-n], rough[some])
        bend, turn = np.linalg.eigh(_turned(rough[some], scaled))
        bases = keep[some] @ (scaled @ turn)
        for k, basis, sizes in zip(some, bases, bend, strict=True):
            straight = sizes <= max(float(floor[k]), 1e-9 * float(sizes[-1]))
            yield int(k), Shape(np.ascontiguousarray(basis), np.where(straight, 0.0, sizes))


def _smoothest(scaled: Array, unseen: Array, rough: Array) -> Array:
    """``scaled`` plus the directions that no row sees which make it least rough."""
    if unseen.shape[2] == 0:
        return scaled
    sizes, ways = np.linalg.eigh(_turned(rough, unseen))
    some = sizes > 1e-13 * sizes.max(axis=1, keepdims=True, initial=0.0)
    inverse = np.where(some, 1.0 / np.where(some, sizes, 1.0), 0.0)
    toward = unseen @ ways
    return np.asarray(scaled - toward @ (inverse[:, :, None] * (toward.mT @ rough @ scaled)))


def _turned(matrices: Array, bases: Array) -> Array:
    return np.asarray(bases.mT @ matrices @ bases)


@dataclass(frozen=True)
class AdditivePenalty:
    """sum_t [ group_t |g_t| + sum_j diagonal_j g_tj^2 / 2 ]; points are (scores, coordinates).

    ``owner[j]`` is the term of coordinate j.
    """

    owner: NDArray[np.int64]
    group: Array
    diagonal: Array

    def norms(self, point: Array) -> Array:
        """|g_t| of every term."""
        squares = (point**2).sum(axis=0)
        return np.sqrt(np.bincount(self.owner, squares, minlength=len(self.group)))

    def value(self, point: Array) -> float:
        quadratic = 0.5 * float((point**2 @ self.diagonal).sum())
        return float(self.group @ self.norms(point)) + quadratic

    def conjugate(self, slope: Array) -> Array:
        """pen_t*(th_t) of every term, never too small.

        pen_t* is the least of (th - u)'D^-1 (th - u) / 2 over |u| <= group. The best u is
        th group / (d rho + group) for the rho that gives it length ``group``, the root of a scalar
        equation; u is shortened to the ball if the root is not exact, so the number is an upper
        bound. ``inf`` where a direction without ridge leaves the ball.
        """
        owner, n_terms = self.owner, len(self.group)
        squares = (slope**2).sum(axis=0)
        group, d = self.group[owner], self.diagonal
        over = np.bincount(owner, squares, minlength=n_terms) > self.group**2
        rho = np.zeros(n_terms)
        for _ in range(60):
            shrunk = d * rho[owner] + group
            with np.errstate(divide="ignore", invalid="ignore"):
                length = np.bincount(owner, squares / shrunk**2, minlength=n_terms)
                slide = np.bincount(owner, squares * d / shrunk**3, minlength=n_terms)
                # Newton on length^(-1/2) = 1, concave and increasing in rho: from the left it
                # never passes the root
                move = np.where(
                    over & (self.group > 0), (length - np.sqrt(length)) * np.sqrt(length), 0.0
                )
                move = np.where(slide > 0, move / np.sqrt(length) / slide, 0.0)
            rho = rho + np.maximum(move, 0.0)
            if (move <= 1e-12 * rho).all():
                break
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(group > 0, group / (d * rho[owner] + group), 0.0)
            size = np.sqrt(np.bincount(owner, squares * share**2, minlength=n_terms))
            share = share * np.minimum(1.0, np.where(size > 0, self.group / size, 1.0))[owner]
            rest = squares * (1.0 - share) ** 2
            price = np.where(rest > 0, 0.5 * rest / d, 0.0)
        return np.where(over, np.bincount(owner, price, minlength=n_terms), 0.0)


def balance(p: Array, y: Array, weight: Array) -> tuple[float, Array]:
    """(eps, q): (1 - eps) p + eps q satisfies sum_i c_i (y_i - p_i) = 0 for every class.

    ``p`` and ``y`` (one-hot) are classes x rows; the correction of class rescaling, for any
    number of classes, and small when the intercept is nearly optimal.
    """
    wanted, got = y @ weight, p @ weight
    total = float(weight.sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        over = np.where(got > wanted, 1.0 - wanted / got, 0.0)
    eps = float(over.max())
    if eps <= 0.0:
        return 0.0, wanted / total
    return eps, np.maximum(wanted - (1.0 - eps) * got, 0.0) / (eps * total)


def row_gap(
    scores: Array, p: Array, y: NDArray[np.int64], weight: Array, loss: TruncatedLogistic
) -> float:
    """sum_i c_i FY_i: the price of the dual probabilities ``p`` (classes x rows) at the scores."""
    if len(scores) == 1:
        sign = np.where(y > 0, 1.0, -1.0)
        u = np.clip(p[1], 0.0, 1.0) - (y > 0)
        price = fenchel_young(loss, scores[0], u, sign)
        return float(weight @ np.where(weight > 0, price, 0.0))
    q = softmax(scores, axis=0)
    terms = xlogy(p, p) - xlogy(p, np.maximum(q, 1e-300))
    return float(weight @ np.maximum(terms.sum(axis=0), 0.0))
