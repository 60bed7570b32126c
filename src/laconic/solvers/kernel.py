"""One door to the kernel solvers: any convex loss of a score, any kernel, a certified gap.

minimise over f, b   |f|^2 / 2 + C sum_i s_i phi(f(x_i) + b, y_i)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from laconic.criteria.kernels import KernelRows
from laconic.criteria.protocol import ScoreLoss
from laconic.solvers.kernel_rows import LossRows
from laconic.solvers.solution import Solution

Floats = NDArray[np.float64]
Index = NDArray[np.int64]

SOLVERS = ("active-set", "block", "low-rank", "smo")

_SMO_UP_TO = 8_000
_NEWTON_UP_TO = 2_600
_WIDEST, _WIDER = 700, 7.0
"""A basis of m rows costs n m^2, pairs n^2: it is worth its while up to m^2 = 7 n."""
_FEW, _CLOSE = 500, 1e-11
_LEFT_OVER = 1e-5
"""What the basis may leave of k(x, x), as a share of the largest."""


@dataclass(frozen=True)
class KernelFit:
    """f = sum_j coef_j k(x_j, .) + b over the rows ``basis``, and each row's dual slope.

    ``slopes`` are weighted (C s_i u_i) and sum to zero with an intercept; minus them are the
    multipliers whose function is f itself, up to the gap.
    """

    solution: Solution
    basis: Index
    coef: Floats
    b: float
    slopes: Floats
    scores: Floats
    on_kink: NDArray[np.bool_]
    solver: str


def solve_kernel(
    kernel: KernelRows,
    loss: ScoreLoss,
    y: Floats,
    weight: Floats,
    *,
    C: float,
    fit_intercept: bool = True,
    tol: float = 1e-5,
    max_iter: int = 1_000,
    solver: str = "auto",
    cache_mb: float = 500.0,
) -> KernelFit:
    """Fit by the named solver; "auto" picks one by the number of rows and the kernel's rank."""
    rows = LossRows(loss, y, C * weight)
    if solver != "auto":
        return _fit(kernel, rows, fit_intercept, tol, max_iter, solver, 1e6 * cache_mb)
    solver = _choose(rows, fit_intercept)
    # on few rows the last digits cost next to nothing
    aim = min(tol, _CLOSE) if rows.n_rows <= _FEW else tol
    fit = _fit(kernel, rows, fit_intercept, aim, max_iter, solver, 1e6 * cache_mb)
    found = fit.solution
    if not found.converged and found.gap <= tol * max(found.value, rows.least):
        return replace(fit, solution=replace(found, why_stopped="gap"))
    return fit


def _fit(
    kernel: KernelRows, rows: LossRows, fit_intercept: bool, tol: float, max_iter: int,
    solver: str, cache: float,
) -> KernelFit:  # fmt: skip
    if solver in ("low-rank", "rank?"):
        found = _low_rank(kernel, rows, fit_intercept, tol, max_iter, solver == "rank?")
        if found is not None:
            return found
        solver = "smo" if _pairs(rows, fit_intercept) else "block"
    if solver == "smo":
        from laconic.solvers.kernel_smo import solve_smo

        if not fit_intercept:
            raise ValueError("solver='smo' moves pairs and needs an intercept; use 'block'.")
        solution = solve_smo(kernel, rows, tol=tol, max_iter=max_iter, cache_bytes=cache)
    elif solver == "active-set":
        from laconic.solvers.kernel_active_set import solve_active_set

        solution = solve_active_set(
            kernel, rows, fit_intercept=fit_intercept, tol=tol, max_iter=20 * max_iter
        )
    else:
        from laconic.solvers.kernel_block import solve_block

        solution = solve_block(
            kernel, rows, fit_intercept=fit_intercept, tol=tol, max_iter=max_iter, cache_bytes=cache
        )
    return _expanded(solution, solver)


def _choose(rows: LossRows, fit_intercept: bool) -> str:
    if rows.n_rows <= _SMO_UP_TO and _pairs(rows, fit_intercept):
        return "smo"
    return "block" if rows.n_rows <= _NEWTON_UP_TO else "rank?"


def _pairs(rows: LossRows, fit_intercept: bool) -> bool:
    """Whether pairs of multipliers are a good road: a kink on every row keeps most still."""
    from laconic.solvers.kernel_smo import knows

    return bool(rows.has_kink.all()) and fit_intercept and knows(rows.loss)


def _low_rank(
    kernel: KernelRows, rows: LossRows, fit_intercept: bool, tol: float, max_iter: int, ask: bool
) -> KernelFit | None:
    """On a basis; when only asked for a try, None where the rank is too high or the gap misses."""
    from laconic.solvers.kernel_low_rank import solve_span
    from laconic.solvers.kernel_span import find_span

    size = float(kernel.diagonal.max(initial=0.0)) or 1.0
    most = kernel.n_rows
    if ask:
        worth = np.sqrt(_WIDER * most) if _pairs(rows, fit_intercept) else most / 6
        most = min(_WIDEST, int(worth))
    least = _LEFT_OVER * size * min(1.0, tol / 1e-5)
    while True:
        patience = 1e3 * least if ask else np.inf
        span = find_span(kernel, most, least, patience=patience)
        if ask and float(span.left.max()) > least:
            return None
        found = solve_span(
            kernel, rows, span, fit_intercept=fit_intercept, tol=tol, max_iter=max_iter
        )
        missed = found.gap > tol * max(found.value, rows.least)
        finer = least > 1e-13 * size and span.rank < most
        if not missed or not finer or found.details["remainder"] < 0.1 * found.gap:
            break
        least *= 1e-2
    if ask and missed:
        return None
    return KernelFit(
        found, span.basis, span.coefficients(found.point[:-1]), float(found.point[-1]),
        found.details["slopes"], found.details["scores"], found.details["on_kink"], "low-rank",
    )  # fmt: skip


def _expanded(found: Solution, solver: str) -> KernelFit:
    beta = found.point[:-1]
    basis = np.flatnonzero(beta)
    return KernelFit(
        found, basis, beta[basis], float(found.point[-1]), found.details["slopes"],
        found.details["scores"], found.details["on_kink"], solver,
    )  # fmt: skip
