"""CG-Boost (dense hinge vote) and CB-Boost (closed-form greedy on the C-bound)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from laconic.solvers.column_generation import Columns
from laconic.solvers.nnls import ActiveSet, moment_gap, sides_to_bounds
from laconic.solvers.solution import Solution, WhyStopped

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

EXACT_ROWS = 1500
"""Up to this many rows the dual of CG-Boost is solved by the active set on its kernel matrix."""


def cg_boost(
    columns: Columns,
    listed: Indices,
    C: float,
    weight: Floats,
    *,
    sides: str = "both",
    tol: float = 1e-8,
    max_epochs: int = 2000,
    seed: int = 0,
) -> Solution:
    """min ½|w|² + C Σ_i weight_i max(0, 1 - y_i w.h(x_i)) (Bi, Zhang, Bennett 2004).

    At the optimum w = Σ u_i y_i h(x_i) (its positive part without complements): every voter with
    an edge has a weight, which is why the vote is dense. With complements it is exactly a linear
    support vector machine without intercept on the votes.
    """
    if C <= 0.0:
        raise ValueError(f"C must be positive, got {C!r}.")
    H = np.ascontiguousarray(columns.votes(listed))
    y, cap = columns.y, C * weight
    if len(y) <= EXACT_ROWS and sides == "both":
        A = H * y[:, None]
        state = ActiveSet(A @ A.T, np.ones(len(y)), np.zeros(len(y)), cap)
        state.minimise(0.0, tol=tol)
        u, epochs = state.weights, state.sweeps
    else:
        u, epochs = _descend(H, y, cap, sides, tol, max_epochs, seed)
    edge = H.T @ (u * y)
    w = edge if sides == "both" else np.maximum(edge, 0.0)
    hinge = np.maximum(0.0, 1.0 - y * (H @ w))
    value = float(0.5 * w @ w + cap @ hinge)
    gap = max(0.0, value - float(u.sum() - 0.5 * w @ w))
    why: WhyStopped = "gap" if gap <= 1e-5 * max(1.0, value) else "max_iter"
    return Solution(w, value, gap, int(epochs), why, {"columns": listed})


def _descend(
    H: Floats, y: Floats, cap: Floats, sides: str, tol: float, max_epochs: int, seed: int
) -> tuple[Floats, int]:
    from laconic.solvers.hot_votes import hinge_dual_descent

    draw = np.random.default_rng(seed)
    u, edge = np.zeros(len(y)), np.zeros(H.shape[1])
    norm = np.einsum("ij,ij->i", H, H)
    epoch = 0
    for epoch in range(1, max_epochs + 1):  # noqa: B007
        order = draw.permutation(len(y))
        worst = hinge_dual_descent(H, y, cap, sides != "both", order, u, edge, norm)
        if worst <= max(tol, 1e-6):
            break
    return u, epoch


def cb_boost(
    columns: Columns, *, sides: str = "both", max_rounds: int = 200, tol: float = 1e-8
) -> Solution:
    """Add, each round, the voter whose best weight lowers the C-bound most (Bauvin et al. 2020).

    With m1, m2 the moments of the present vote F, and g, t, s the means of y h, F h and h²:
    C(F + αh) is smallest at α = (g m2 - m1 t)/(m1 s - g t). One published version takes s = 1,
    which only holds for voters that never abstain.
    """
    first = columns.first_moment()
    lower, upper = sides_to_bounds(first, sides)
    lower, upper = np.where(columns.offered, lower, 0.0), np.where(columns.offered, upper, 0.0)
    square = _squares(columns)
    weights = np.zeros(columns.n_columns)
    best = int(
        np.argmax(np.maximum(np.where(upper > 0, first, -1), np.where(lower < 0, -first, -1)))
    )
    weights[best] = 1.0 if upper[best] > 0 and first[best] >= 0 else -1.0
    bound, rounds = np.inf, 0
    why: WhyStopped = "max_iter"
    together = first
    for rounds in range(1, max_rounds + 1):
        used = np.flatnonzero(weights)
        score = columns.scores(used, weights[used])
        m1 = float(columns.weight @ (columns.y * score))
        m2 = float(columns.weight @ (score * score))
        together = columns.row_edges(score * columns.weight)
        now = 1.0 - m1 * m1 / m2
        if bound - now <= tol and rounds > 1:
            why = "gap"
            break
        bound = now
        step, after = _best_step(first, together, square, m1, m2)
        after = np.where((step > 0) & (upper > 0) | (step < 0) & (lower < 0), after, np.inf)
        best = int(np.argmin(after))
        if not after[best] < now - tol:
            why = "gap"
            break
        weights[best] += step[best]
    return _greedy_solution(columns, weights, first, (lower, upper), rounds, why)


def _best_step(g: Floats, t: Floats, s: Floats, m1: float, m2: float) -> tuple[Floats, Floats]:
    """Best weight of every voter and the C-bound after it (inf where there is none)."""
    below = m1 * s - g * t
    ok = below > 1e-12
    step = np.divide(g * m2 - m1 * t, below, out=np.zeros_like(g), where=ok)
    second = m2 + 2.0 * step * t + step * step * s
    after = np.where(ok, 1.0 - (m1 + step * g) ** 2 / np.maximum(second, 1e-300), np.inf)
    return step, after


def _squares(columns: Columns) -> Floats:
    """Mean of h² per voter: one for voters that never abstain."""
    if hasattr(columns, "H"):
        squares: Floats = columns.weight @ (columns.H * columns.H)
        return squares
    return np.ones(columns.n_columns)


def _greedy_solution(
    columns: Columns,
    weights: Floats,
    first: Floats,
    bounds: tuple[Floats, Floats],
    rounds: int,
    why: WhyStopped,
) -> Solution:
    used = np.flatnonzero(weights)
    score = columns.scores(used, weights[used])
    m1 = float(columns.weight @ (columns.y * score))
    m2 = float(columns.weight @ (score * score))
    scaled = weights * (m1 / m2)
    gap = moment_gap(columns.slopes(used, scaled[used]), scaled, *bounds)
    total = np.abs(weights).sum()
    details = {"columns": used, "mean_margin": m1 / total, "c_bound": 1.0 - m1 * m1 / m2}
    return Solution(weights[used], m2 / total**2, gap, rounds, why, details)
