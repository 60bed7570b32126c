"""Kernel models of high rank: Newton on the rows that matter, found on fewer rows first.

The working set holds the rows whose slope is not zero, or nearly so; the kernel between them is
all that a step needs. One pass of the kernel between all rows and the supports then shows rows
that were forgotten and gives the certificate in double precision,

    gap = sum_i s_i (phi(z_i) + phi*(u_i) - u_i z_i),

plus half the squared distance between the function handed out and the one that the slopes u stand
for.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.criteria.kernels import KernelRows
from laconic.solvers.kernel_anneal import COARSE_WIDTH, FIRST_WIDTH, anneal
from laconic.solvers.kernel_gram import Gram, GramSpace
from laconic.solvers.kernel_newton import Point, best_constant, descend
from laconic.solvers.kernel_rows import LossRows
from laconic.solvers.solution import Solution, WhyStopped

Floats = NDArray[np.float64]
Index = NDArray[np.int64]

NARROW = 34
"""Up to this many factors kernel rows are computed by compiled loops, above by matrix products."""
_CHUNK = 512
_COARSEST = 300
_ROUNDS = 20
_LOOSE, _TIGHTEST = 100.0, 1e-4
_NARROWEST = 1e-3


def in_fours(left: NDArray[Any], right: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Factors of a gaussian kernel with zeros added, for compiled loops that take four at a time.

    >>> in_fours(np.ones((2, 5)), np.ones((2, 5)))[0].shape
    (2, 8)
    """
    more = -left.shape[1] % 4
    if more == 0:
        return left, right
    return np.pad(left, ((0, 0), (0, more))), np.pad(right, ((0, 0), (0, more)))


def scores_of(kernel: KernelRows, beta: Floats) -> Floats:
    """sum_j beta_j k(x_j, x_i) for every row i, in double precision and bounded memory."""
    used = np.flatnonzero(beta)
    out = np.zeros(kernel.n_rows)
    weights = beta[used]
    factors = kernel.factors()
    if factors is not None and factors[0].shape[1] <= NARROW and len(used):
        from laconic.solvers.hot_kernel import gaussian_scores

        left, right = in_fours(*factors)
        gaussian_scores(left, np.ascontiguousarray(right[used].T), used, weights, out)
        return out
    step = max(64, min(kernel.n_rows, 4 * _CHUNK * _CHUNK // max(len(used), 1)))
    for start in range(0, kernel.n_rows, step):
        here = slice(start, min(start + step, kernel.n_rows))
        for first in range(0, len(used), 4 * _CHUNK):
            some = slice(first, first + 4 * _CHUNK)
            out[here] += kernel.block(here, used[some]) @ weights[some]
    return out


def solve_block(
    kernel: KernelRows,
    rows: LossRows,
    *,
    fit_intercept: bool,
    tol: float,
    max_iter: int,
    cache_bytes: float,
) -> Solution:
    """Minimise over all functions of the kernel's space.

    ``Solution.point`` is (beta, b) of length n + 1; ``details`` as in
    :func:`~laconic.solvers.kernel_low_rank.solve_span`.
    """
    beta, b, n_iter = _begin(kernel, rows, fit_intercept, max_iter, cache_bytes)
    z = scores_of(kernel, beta) + b
    slope = -beta
    chosen = np.zeros(rows.n_rows, bool)
    half = np.full(rows.n_rows, 0.5)
    space: GramSpace | None = None
    best: Solution | None = None
    why: WhyStopped = "max_iter"
    width, loose = FIRST_WIDTH, _LOOSE
    for round_ in range(_ROUNDS):
        wanted = (rows.rounded(z, width, half).slope != 0) | (beta != 0)
        if space is None or (wanted & ~chosen).any():
            chosen |= wanted
            working = np.flatnonzero(chosen)
            space = GramSpace(Gram(kernel.subset(working), cache_bytes), fit_intercept)
            part = rows.subset(working)
        here = z[working]
        point = Point(beta[working], b, here, float(beta[working] @ (here - b)))
        share = part.shares_of(slope[working]) if round_ else None
        left = max(max_iter - n_iter, 1)
        found = anneal(space, part, point, tol=loose * tol, max_iter=left, width=width, share=share)
        n_iter += found.n_iter
        beta, slope = np.zeros(rows.n_rows), np.zeros(rows.n_rows)
        beta[working], slope[working] = found.point.coef, found.details["slopes"]
        f = scores_of(kernel, beta)
        b, width = found.point.b, max(found.details["width"], _NARROWEST)
        z = f + b
        forgotten = (rows.loss.slope(z, rows.y) != 0) & ~chosen
        value = 0.5 * max(float(beta @ f), 0.0) + rows.value(z)
        gap = rows.price(z, slope) + 0.5 * max(space.apart(found.point, slope[working]), 0.0)
        details = {"scores": z, "slopes": slope}
        if best is None or gap < best.gap:
            best = Solution(np.append(beta, b), value, gap, n_iter, "gap", details)
        if best.gap <= tol * max(best.value, rows.least):
            why = "gap"
            break
        if n_iter >= max_iter:
            break
        if loose < _TIGHTEST:
            why = "stalled"
            break
        loose = min(0.1 * loose, 1.0) if not forgotten.any() or loose > 1.0 else loose
    assert best is not None
    details = {**best.details, "on_kink": rows.on_ramp(best.details["slopes"]), "remainder": 0.0}
    return Solution(best.point, best.value, best.gap, n_iter, why, MappingProxyType(details))


def _begin(
    kernel: KernelRows, rows: LossRows, fit_intercept: bool, max_iter: int, cache_bytes: float
) -> tuple[Floats, float, int]:
    """A rough fit of one row in four, itself started on one in sixteen, and so on."""
    n = rows.n_rows
    beta = np.zeros(n)
    b = best_constant(rows) if fit_intercept else 0.0
    strides = [4**k for k in range(1, 8) if n // 4**k >= _COARSEST]
    n_iter = 0
    for stride in reversed(strides):
        some = np.arange(0, n, stride)
        part, part_kernel = rows.subset(some, float(stride)), kernel.subset(some)
        z = scores_of(part_kernel, beta[some]) + b
        half = np.full(len(some), 0.5)
        seen = (part.rounded(z, 4.0 * COARSE_WIDTH, half).slope != 0) | (beta[some] != 0)
        if stride == strides[-1]:
            seen[:] = True
        working = np.flatnonzero(seen)
        space = GramSpace(Gram(part_kernel.subset(working), cache_bytes), fit_intercept)
        small = part.subset(working)
        start = beta[some][working]
        point = Point(start, b, z[working], float(start @ (z[working] - b)))
        value = 0.5 * point.norm + part.value(z)
        point, done = descend(
            space, small, point, width=COARSE_WIDTH, share=half[working],
            enough=1e-3 * value, max_iter=max_iter,
        )  # fmt: skip
        n_iter += done
        beta[:] = 0.0
        beta[some[working]] = point.coef
        b = point.b
    return beta, b, n_iter
