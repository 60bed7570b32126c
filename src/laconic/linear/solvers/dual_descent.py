"""Wide sparse rows in memory: coordinate descent on the multipliers of the rows.

With s_i the weight of row i and alpha_i = -y_i times its slope, between 0 and s_i, the dual of the
(truncated) logistic fit is

    min over alpha of ½ |sum_i y_i alpha_i x_i|² + sum_i s_i phi*(-y_i alpha_i / s_i)

with sum_i y_i alpha_i = 0 where there is an intercept. One alpha is minimised exactly at a time, in
an order drawn anew for each sweep, while w = sum_i y_i alpha_i x_i is kept up to date (Yu, Huang,
Lin, Machine Learning 85, 2011, for the logistic loss); up to its kink a row's conjugate is linear,
which costs one division. The equality is kept by its multiplier, the intercept, and a quadratic
price on what is missing.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from scipy.sparse import csr_matrix

from laconic._typing import Floats
from laconic.core.losses import Solution, TruncatedLogistic, WhyStopped
from laconic.linear.solvers.rows import LinearRows, balanced
from laconic.linear.tuning import (
    DESCENT_PRICE,
    DESCENT_SWEEPS,
    SWEEPS_A_CHECK,
    SWEEPS_A_DECADE,
)


def descend(rows: LinearRows, X: csr_matrix, *, fit_intercept: bool, tol: float) -> Solution:
    """Where the descent ends, at a gap of ``tol`` times the objective or where it becomes slow."""
    from laconic.linear.solvers._numba import sweep_multipliers

    loss, y, s = rows.loss, rows.y, rows.weight
    assert isinstance(loss, TruncatedLogistic)
    low, high = loss.positions
    reach, height = np.where(y > 0, high, -low), s * np.where(y > 0, *loss.heights[::-1])
    # a product of matrices adds up entries that are given twice before it multiplies
    squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    price = DESCENT_PRICE * float(squares.mean()) if fit_intercept else 0.0
    alpha, w, b, missing = np.zeros(len(y)), np.zeros(X.shape[1]), 0.0, 0.0
    draw = np.random.default_rng(0)
    trace: list[float] = []
    best: tuple[float, float, Floats, Floats, Floats, Floats] | None = None
    for sweep in range(1, DESCENT_SWEEPS + 1):
        order = draw.permutation(len(y))
        missing = sweep_multipliers(
            X.indptr, X.indices, X.data, squares, y, s, reach, height, order, b, price, missing,
            alpha, w,
        )  # fmt: skip
        if sweep % 2 == 0:
            b += price * missing
        if sweep % SWEEPS_A_CHECK == 0:
            found = _certified(rows, np.append(w, b), -y * alpha, fit_intercept)
            trace.append(found[0])
            if best is None or found[0] < best[0]:
                best = *found, alpha.copy()
            # the point moves by the root of the gap: a tenth of it keeps the order of rows out
            if found[0] <= 0.1 * tol * found[1] or _too_slow(trace):
                break
    assert best is not None
    gap, value, point, z, slope, alpha = best
    details = {
        "dual": slope / s,
        "scores": z,
        "on_kink": (alpha > 0.0) & (alpha < height),
        "trace": tuple(trace),
    }
    why: WhyStopped = "gap" if gap <= tol * value else "max_iter"
    return Solution(point, value, gap, sweep, why, MappingProxyType(details))


def _too_slow(trace: list[float]) -> bool:
    """Whether the gap has not fallen to a tenth in the last :data:`SWEEPS_A_DECADE` sweeps."""
    back = SWEEPS_A_DECADE // SWEEPS_A_CHECK
    return len(trace) > back and trace[-1] > 0.1 * trace[-1 - back]


def _certified(
    rows: LinearRows, point: Floats, slope: Floats, fit_intercept: bool
) -> tuple[float, float, Floats, Floats, Floats]:
    """Gap, objective, point, scores, and the slopes that prove the gap."""
    z = rows.scores(point)
    value = 0.5 * float(point[:-1] @ point[:-1]) + rows.evaluate(z).loss
    slope = balanced(slope) if fit_intercept else slope
    apart = rows.transposed(slope)[:-1] + point[:-1]
    return 0.5 * float(apart @ apart) + rows.price(z, slope), value, point, z, slope
