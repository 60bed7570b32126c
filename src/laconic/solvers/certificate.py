"""The duality gap of a linear model, recomputed from its coefficients alone.

An optimiser carries scores along and puts rows exactly on their kink; the coefficients only do so
up to rounding. Here scores are recomputed, so that the gap is that of the point handed out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from laconic.criteria.losses import SquaredError, SquaredLoss
from laconic.criteria.protocol import ScoreLoss, fenchel_young
from laconic.data.source import Block, Source
from laconic.solvers.kink_newton import solve_linear
from laconic.solvers.least_squares import solve_least_squares
from laconic.solvers.solution import Solution

Floats = NDArray[np.float64]

_RESTARTS = 2
_SMALL = 10_000
_POLISH = 3
_MOST_HELD = 4_000


def solve_certified(
    source: Source,
    loss: ScoreLoss,
    *,
    C: float,
    fit_intercept: bool = True,
    tol: float = 1e-6,
    max_iter: int = 100,
    start: Floats | None = None,
) -> Solution:
    """:func:`~laconic.solvers.kink_newton.solve_linear` until the recomputed gap is small.

    A restart from the coefficients removes the rounding that one run has gathered. A small table
    gets a few more iterations, towards rounding: they cost next to nothing there.
    """

    def run(begin: Floats | None, aim: float, most: int, done: int) -> Solution:
        found = solve_linear(
            source, loss, C=C, fit_intercept=fit_intercept, tol=aim, max_iter=most, start=begin
        )
        point = _settled(source, loss, found, fit_intercept)
        dual = found.details["dual"]
        value, gap = linear_gap(source, loss, C, point, dual, fit_intercept=fit_intercept)
        return replace(found, point=point, value=value, gap=gap, n_iter=found.n_iter + done)

    if start is None and isinstance(loss, SquaredLoss | SquaredError):
        k = 2.0 if isinstance(loss, SquaredLoss) else 1.0
        direct = solve_least_squares(source, C=C, k=k, fit_intercept=fit_intercept, tol=tol)
        if direct is not None:
            return direct
        # one Newton step is exact from anywhere: no rehearsal on fewer rows
        start = np.zeros(next(iter(source.map(lambda block: block.X.shape[1]))) + 1)
    best = run(start, tol, max_iter, 0)
    for _ in range(_RESTARTS):
        if best.gap <= tol * best.value or not best.converged or best.n_iter >= max_iter:
            break
        again = run(best.point, tol, max_iter - best.n_iter, best.n_iter)
        best = again if again.gap < best.gap else replace(best, n_iter=again.n_iter)
    if best.converged and best.n_iter > 0 and source.n_rows <= _SMALL:
        closer = run(best.point, 1e-15, _POLISH, best.n_iter)
        if closer.gap < best.gap:
            best = replace(closer, why_stopped="gap")
    return best


def _settled(source: Source, loss: ScoreLoss, found: Solution, fit_intercept: bool) -> Floats:
    """The coefficients, moved the least so that rows held on their kink really stand on it."""
    held = np.flatnonzero(found.details["on_kink"])
    if not 0 < len(held) <= _MOST_HELD:
        return np.asarray(found.point)

    def part(block: Block) -> tuple[Floats, Floats]:
        first, last = np.searchsorted(held, (block.start, block.stop))
        X = block.X[held[first:last] - block.start]
        X = X.toarray() if issparse(X) else X
        y = np.asarray(block.y, dtype=np.float64)[held[first:last] - block.start]
        return X, loss.kink(y).position

    parts = list(source.map(part))
    X = np.concatenate([rows for rows, _ in parts])
    miss = np.concatenate([place for _, place in parts])
    miss -= X @ found.point[:-1] + found.point[-1]
    table = np.column_stack([X, np.full(len(X), float(fit_intercept))])
    return np.asarray(found.point + np.linalg.lstsq(table, miss, rcond=1e-10)[0])


def linear_gap(
    source: Source,
    loss: ScoreLoss,
    C: float,
    point: Floats,
    dual: Floats,
    *,
    fit_intercept: bool = True,
) -> tuple[float, float]:
    """Objective at (w, b) and a bound on its excess, from any dual slopes u_i.

    With an intercept the positive or the negative slopes are shrunk until sum_i s_i u_i = 0; then
    gap = C sum_i s_i (phi(z_i) + phi*(u_i) - u_i z_i) + |w + C sum_i s_i u_i x_i|^2 / 2.
    """
    w, b = point[:-1], float(point[-1])
    # towards zero, where every conjugate is finite: rounding may have left the domain by an ulp
    dual = dual * (1.0 - 1e-15)
    if fit_intercept:
        dual = _balanced(source, dual)

    def part(block: Block) -> tuple[Floats, Floats]:
        s = np.ones(len(block)) if block.weight is None else block.weight
        y = np.asarray(block.y, dtype=np.float64)
        z = np.asarray(block.X @ w) + b
        u = dual[block.rows]
        sums = [s @ loss.value(z, y), s @ fenchel_young(loss, z, u, y)]
        return np.array(sums), np.asarray(block.X.T @ (s * u))

    (losses, misfit), pull = source.sum(part)
    apart = w + C * pull
    value = float(w @ w) / 2.0 + C * float(losses)
    return value, C * float(misfit) + float(apart @ apart) / 2.0


def _balanced(source: Source, dual: Floats) -> Floats:
    def part(block: Block) -> Floats:
        u = dual[block.rows] if block.weight is None else block.weight * dual[block.rows]
        return np.array([np.maximum(u, 0.0).sum(), np.maximum(-u, 0.0).sum()])

    up, down = source.sum(part)
    if up == down:
        return dual
    if up > down:
        return np.where(dual > 0, dual * (down / up), dual)
    return np.where(dual < 0, dual * (up / down), dual)
