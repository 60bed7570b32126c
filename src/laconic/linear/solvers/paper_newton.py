"""The paper's own optimiser: Newton on the active rows with a limited step.

Hérault and Grandvalet (2008), section 3.1 and appendix A, kept for fidelity: rows whose loss is
saturated leave gradient and Hessian, and the step is cut so that none of them is carried beyond
p_t = (p_min + p_max) / 2. It reaches the neighbourhood of the optimum and then oscillates around
the kinks; the gap that is reported is the true one.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from laconic._typing import Floats
from laconic.core.gray_zone import TruncatedLogistic, log_odds
from laconic.core.solution import Solution, WhyStopped
from laconic.data.source import Source
from laconic.linear.solvers.newton import certify_natural
from laconic.linear.solvers.rows import LinearRows, RowState


def solve_paper(
    source: Source,
    loss: TruncatedLogistic,
    *,
    C: float,
    fit_intercept: bool = True,
    tol: float = 1e-6,
    max_iter: int = 100,
    start: Floats | None = None,
) -> Solution:
    """Step-limited Newton; returns the iterate of least value. Details as in ``solve_linear``.

    The paper treats an unpenalised model; the penalty of its equation (6) is added here.
    """
    rows = LinearRows(source, loss, C)
    width = rows.n_columns + 1
    point = np.zeros(width) if start is None else np.array(start, dtype=np.float64)
    barrier = log_odds(0.5 * (loss.p_min + loss.p_max))
    best: tuple[float, float, Floats, Floats, Floats] | None = None
    why: WhyStopped = "max_iter"
    trace = []
    for n_iter in range(max_iter + 1):
        state = rows.evaluate(rows.scores(point))
        by_sign, H = rows.model(state)
        value = 0.5 * float(point[:-1] @ point[:-1]) + state.loss
        gap, dual = certify_natural(rows, point, state, by_sign, fit_intercept)
        trace.append(gap)
        if best is None or value < best[1]:
            best = (gap, value, point, dual, state.z)
        if gap <= tol * value:
            best = (gap, value, point, dual, state.z)
            why = "gap"
            break
        if n_iter == max_iter:
            break
        p = _newton_step(point, by_sign.sum(axis=0), H, fit_intercept)
        point = point + _limit(rows, loss, state, rows.scores(p), barrier) * p
    assert best is not None
    gap, value, point, dual, scores = best
    details = {
        "dual": dual / rows.weight,
        "scores": scores,
        "on_kink": np.zeros(rows.n_rows, bool),
        "trace": tuple(trace),
    }
    return Solution(point, value, gap, n_iter, why, MappingProxyType(details))


def _newton_step(point: Floats, gradient: Floats, H: Floats, fit_intercept: bool) -> Floats:
    G = gradient.copy()
    G[:-1] += point[:-1]
    width = len(G)
    H[np.diag_indices(width - 1)] += 1.0
    if fit_intercept:
        H[-1, -1] += 1e-10 * (1.0 + H[-1, -1])
    else:
        G[-1] = 0.0
        H[-1, :] = H[:, -1] = 0.0
        H[-1, -1] = 1.0
    p: Floats = -cho_solve(cho_factor(H), G)
    return p


def _limit(
    rows: LinearRows, loss: TruncatedLogistic, state: RowState, dz: Floats, barrier: float
) -> float:
    """Largest step, at most 1, at which no saturated row passes the barrier.

    Appendix A calls these rows active; they are the inactive ones, about to enter.
    """
    low, high = loss.positions
    saturated = np.where(rows.y > 0, state.z > high, state.z <= low)
    approaching = saturated & (rows.y * dz < 0)
    if not approaching.any():
        return 1.0
    reach = (barrier - state.z[approaching]) / dz[approaching]
    return min(1.0, float(reach.min()))
