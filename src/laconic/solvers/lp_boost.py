"""LPBoost: the soft-margin vote by linear programming, one column at a time.

max rho - Σ_i D_i xi_i subject to y_i Σ_j q_j h_j(x_i) + xi_i >= rho, Σ q = 1, q, xi >= 0, with
D_i = weight_i/nu (Demiriz, Bennett, Shawe-Taylor 2002). The dual, min beta subject to
A_j'u <= beta, Σ u = 1, 0 <= u <= D, gains one row per voter and is re-solved warm.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.solvers.column_generation import Columns
from laconic.solvers.solution import Solution, WhyStopped

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class _WarmMaster:
    """The dual program in HiGHS: adding a row keeps the basis."""

    def __init__(self, cap: Floats) -> None:
        import highspy

        self.h: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self.h.setOptionValue("output_flag", False)
        self.h.setOptionValue("presolve", "off")
        self.h.setOptionValue("threads", 1)
        n = len(cap)
        inf = highspy.kHighsInf
        self.h.addVars(n + 1, np.append(np.zeros(n), -inf), np.append(cap, inf))
        self.h.changeColsCost(1, np.array([n], dtype=np.int32), np.array([1.0]))
        self.h.addRow(1.0, 1.0, n, np.arange(n, dtype=np.int32), np.ones(n))
        self.n, self.inf = n, inf

    def add(self, column: Floats) -> None:
        places = np.arange(self.n + 1, dtype=np.int32)
        self.h.addRow(-self.inf, 0.0, self.n + 1, places, np.append(column, -1.0))

    def solve(self) -> tuple[Floats, float, Floats]:
        """(u, beta, q)."""
        self.h.run()
        found = self.h.getSolution()
        value = np.array(found.col_value)
        return value[: self.n], float(value[self.n]), -np.array(found.row_dual)[1:]


class _ColdMaster:
    """The same program solved from scratch by scipy, for comparison."""

    def __init__(self, cap: Floats) -> None:
        self.cap = cap
        self.rows: list[Floats] = []

    def add(self, column: Floats) -> None:
        self.rows.append(np.append(column, -1.0))

    def solve(self) -> tuple[Floats, float, Floats]:
        from scipy.optimize import linprog

        n = len(self.cap)
        found = linprog(
            np.append(np.zeros(n), 1.0),
            A_ub=np.array(self.rows),
            b_ub=np.zeros(len(self.rows)),
            A_eq=np.append(np.ones(n), 0.0)[None],
            b_eq=[1.0],
            bounds=[*((0.0, c) for c in self.cap), (None, None)],
            method="highs-ds",
        )
        if found.x is None:
            raise RuntimeError(f"The linear program of LPBoost failed: {found.message}")
        return found.x[:n], float(found.x[n]), -np.asarray(found.ineqlin.marginals)


def lp_boost(
    columns: Columns,
    nu: float,
    *,
    sides: str = "both",
    tol: float = 1e-8,
    max_voters: int = 10_000,
    warm: bool = True,
) -> Solution:
    """Column generation for the soft-margin vote.

    ``warm`` keeps the basis of HiGHS from column to column; without it the program is solved from
    scratch each time (the same optimum, several times slower). When the optimum is not positive,
    the pair (h, -h) is optimal and the vote is zero everywhere: ``details["zero_vote"]``.
    """
    if not 0.0 < nu <= 1.0:
        raise ValueError(f"nu must be in (0, 1], got {nu!r}.")
    offered = columns.offered
    u = columns.weight.copy()
    master = (_WarmMaster if warm else _ColdMaster)(columns.weight / nu)
    entered: list[tuple[int, float]] = []
    beta, q = -np.inf, np.zeros(0)
    why: WhyStopped = "max_iter"
    lowest = np.inf
    while True:
        edges = np.where(offered, columns.row_edges(u * columns.y), -np.inf)
        both = np.where(offered, np.abs(edges), -np.inf) if sides == "both" else edges
        best = int(np.argmax(both))
        sign = 1.0 if sides != "both" or edges[best] >= 0 else -1.0
        lowest = min(lowest, float(both[best]))
        if both[best] <= beta + tol or (best, sign) in entered:
            why = "gap" if both[best] <= beta + 1e3 * tol else "stalled"
            break
        if len(entered) >= max_voters:
            break
        entered.append((best, sign))
        votes = columns.votes(np.array([best]))[:, 0]
        master.add(sign * columns.y * votes)
        u, beta, q = master.solve()
    order = np.array([j for j, _ in entered], dtype=np.int64)
    weights = np.array([s for _, s in entered]) * np.maximum(q, 0.0)
    where, place = np.unique(order, return_inverse=True)
    net = np.bincount(place, weights, minlength=len(where)).astype(np.float64)
    net[np.abs(net) <= 1e-10] = 0.0
    gap = max(0.0, lowest - beta)
    zero = bool(beta <= 10.0 * tol or not net.any())
    if zero:
        net[:] = 0.0
    details = {"columns": where, "zero_vote": zero, "objective": beta, "entered": len(entered)}
    return Solution(net, -beta, gap, len(entered), why, details)
