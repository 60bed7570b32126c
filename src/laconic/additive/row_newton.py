"""Newton's step in the space of the rows: for few rows whose weights span decades.

Coordinates mix rows of weight 1e12 and 1e-12: what the light ones say is lost in rounding there,
and conjugate steps take as many as there are decades. With Z the coordinates of the rows, D the
penalties, r the slopes of the criterion and W = L L' the curvature of the rows in their scores,
Newton's step moves the coordinates by

    D^-1 (r - Z'L v),    (I + L'K L) v = L'(Z D^-1 r + b),    K = Z D^-1 Z',

(Woodbury's identity), where 1'L v = r of the intercepts gives their moves b. Weights stand on both
sides of every entry of I + L'K L, and the error of its Cholesky factor is relative to its diagonal,
whatever the range of that (Demmel, *LAPACK Working Note* 14, 1989).

A row that is far on the wrong side hardly curves, and Newton's step would send it to infinity. Its
curvature is made that of a row between its class and where it is, as large as in the bound of
Jaakkola and Jordan (*Statistics and Computing* 10, 2000), tanh(m / 2) / 2m for a margin of m: the
model of such a row is least at most as far on the right side as it was on the wrong one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf

from laconic._typing import Floats, Ints
from laconic.additive import tuning
from laconic.additive.criterion import AdditiveProblem, LossState

if TYPE_CHECKING:
    from laconic.additive.solver import State


def few_carry_most(weight: Floats) -> bool:
    """Whether some rows weigh so much more than others that these hardly count.

    Judged by weights that no repetition of rows could stand for: a row of weight two and two equal
    rows take the same steps.
    """
    counted = weight[weight > 0.0]
    if not len(counted):
        return False
    light = np.quantile(counted, tuning.LIGHT_SHARE)
    return bool(counted.max() > tuning.HEAVY_ROW * light)


def few_directions(n_rows: int, n_classes: int) -> bool:
    """Whether a factor of all rows and classes is small enough."""
    return n_rows * (n_classes - 1) <= tuning.ROW_DIRECTIONS


class RowNewton:
    """Steps for one problem, whose penalties may move."""

    def __init__(self, problem: AdditiveProblem) -> None:
        from laconic.additive._numba_rows import coordinate_rows

        terms = problem.terms
        self.owner = terms.owner
        self.rows = np.zeros((terms.n_coordinates, len(problem.y)))
        every = np.arange(terms.n_coordinates)
        coordinate_rows(*terms.packed, terms.owner, every, self.rows)
        self.of: tuple[Floats, Ints] | None = None
        self.inverse = self.kernel = np.empty(0)

    @classmethod
    def serves(cls, problem: AdditiveProblem) -> bool:
        """Few rows, a smooth loss, a penalty on every coordinate, and weights over decades."""
        ready = not problem.kinked and bool((problem.diagonal > 0.0).all())
        few = few_directions(len(problem.y), problem.n_classes)
        return ready and few and few_carry_most(problem.weight)

    def _at(self, D: Floats, work: Ints) -> None:
        """D^-1 of the terms in ``work`` and the kernel K, made again where D has moved."""
        if self.of is not None and all(map(np.array_equal, self.of, (D, work))):
            return
        inside = np.isin(self.owner, work)
        self.of = D, work
        self.inverse = np.where(inside, 1.0 / D, 0.0)
        half = self.rows[inside] * np.sqrt(self.inverse[inside])[:, None]
        self.kernel = half.T @ half

    def step(
        self, problem: AdditiveProblem, state: LossState, scores: Floats, work: Ints, at: State
    ) -> None:
        """Move ``at`` to the minimum of the quadratic model, where rounding leaves a way there."""
        row, L = directions(problem, state, scores)
        D = problem.diagonal
        least = tuning.LEAST_PENALTY * float((L**2).sum(axis=1).max(initial=0.0))
        if least > tuning.FELT_PENALTY * D.min(initial=np.inf):
            D = D + least
        self._at(D, work)
        row, L = self._told(row, L)
        matrix = L @ L.T
        matrix *= self.kernel.take(row, axis=0).take(row, axis=1)
        factor = _factor(matrix)
        if factor is None:
            return
        left = -(state.slopes @ self.rows.T) - problem.diagonal * at.point
        alone = (L * ((left * self.inverse) @ self.rows)[:, row].T).sum(axis=1)
        sides = np.column_stack([alone, L])
        half = solve_triangular(factor, sides, trans="T", check_finite=False)
        b = _intercepts(half[:, 1:], half[:, 0], -state.slopes.sum(axis=1))
        v = solve_triangular(factor, half[:, 0] + half[:, 1:] @ b, check_finite=False)
        pull = np.zeros_like(state.slopes)
        np.add.at(pull.T, row, L * v[:, None])
        at.point[:] += (left - pull @ self.rows.T) * self.inverse
        at.intercept[:] += b

    def _told(self, row: Ints, L: Floats) -> tuple[Ints, Floats]:
        """Without directions that neither curve beside the penalties nor hold an intercept."""
        size = L**2
        holds = (size > tuning.HOLDING_DIRECTION * size.mean(axis=0)).any(axis=1)
        curves = size.sum(axis=1) * self.kernel[row, row] > tuning.CURVED_DIRECTION
        kept = holds | curves
        return row[kept], L[kept]


def _factor(matrix: Floats) -> Floats | None:
    """The Cholesky factor of I + matrix, which rounding may leave indefinite."""
    diagonal, places = matrix.diagonal().copy(), np.diag_indices(len(matrix))
    if not np.isfinite(diagonal).all():
        return None
    for ridge in tuning.ROW_RIDGES:
        matrix[places] = 1.0 + (1.0 + ridge) * diagonal
        # the transposed is the same matrix, in the order that LAPACK takes without a turn
        factor, failed = dpotrf(matrix.T, clean=False)
        if not failed:
            return np.asarray(factor)
    return None


def _intercepts(sides: Floats, given: Floats, wanted: Floats) -> Floats:
    """Moves of the intercepts; one number added to those of all classes changes nothing."""
    curvature = sides.T @ sides
    if len(curvature) > 1:
        curvature += curvature.trace() / len(curvature)
    # a class that is not there has no curvature: least squares leave its intercept where it is
    b = np.linalg.lstsq(curvature, wanted - sides.T @ given, rcond=1e-14)[0]
    return np.asarray(b - b.mean() if len(b) > 1 else b)


def directions(problem: AdditiveProblem, state: LossState, scores: Floats) -> tuple[Ints, Floats]:
    """Rows and columns of L, each in the scores of one row."""
    w, y, h = problem.weight, problem.y, state.curves
    if problem.n_scores == 1:
        margin = np.where(y > 0, -scores[0], scores[0])
        far = np.flatnonzero(margin > tuning.FAR_WRONG)
        h = h.copy()
        h[0, far] = w[far] * _secant(margin[far])
        row = np.flatnonzero(h[0] > 0.0)
        return row, np.sqrt(h[0, row])[:, None]
    every = np.arange(len(y))
    others = scores.copy()
    others[y, every] = -np.inf
    margin = others.max(axis=0) - scores[y, every]
    far = np.flatnonzero((margin > tuning.FAR_WRONG) & (w > 0.0))
    slope = state.slopes[:, far] * np.sqrt(_secant(margin[far]) / w[far])
    row, L = _multinomial(h)
    return np.concatenate([row, far]), np.concatenate([L, slope.T])


def _secant(margin: Floats) -> Floats:
    return np.asarray(np.tanh(0.5 * margin) / (2.0 * margin))


def _multinomial(h: Floats) -> tuple[Ints, Floats]:
    """The same of diag(h) - h h' / w, w = sum(h), with digits for rows that are nearly certain.

    With q the shares h / w of all classes but the likeliest, diag(q) - q q' = M M' for
    M = diag(s) - a q s', s = sqrt(q) and a = 1 / (1 + sqrt(1 - |s|^2)); the likeliest class moves
    against the sum of the others.
    """
    every, classes = np.arange(h.shape[1]), np.arange(len(h))
    w, top = h.sum(axis=0), h.argmax(axis=0)
    q = (h / np.where(w > 0.0, w, 1.0)).T
    a = 1.0 / (1.0 + np.sqrt(q[every, top]))
    q[every, top] = 0.0
    s = np.sqrt(q)
    L = -a[:, None, None] * s[:, :, None] * q[:, None, :]
    L[:, classes, classes] += s
    L[every, :, top] = -L.sum(axis=2)
    L *= np.sqrt(w)[:, None, None]
    row, other = np.nonzero(q)
    return row, L[row, other]
