"""The paper's dual algorithm over {I_0, I_h, I_l}, section 3.2.

Newton on the multipliers of the active rows, one exchange of the partition at a time. The Newton
equations are the bordered system [[H, 1], [1', 0]] in beta = y alpha; the paper's own formula for
the multiplier of the equality, -(y'G^-1 e) / (y'G^-1 y), needs an invertible G, is not the Newton
multiplier, and fails on duplicated rows. Its I_l should read -y (f + b) >= f_i.

The paper updates the Cholesky factor of H at each exchange. Here it is computed anew: the
curvatures on the diagonal change at every Newton step anyway, and a step takes less than a
millisecond on the few hundred rows this is meant for. The other solvers are faster.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from laconic._typing import Floats
from laconic.core.losses import CURVED, FLAT, ON_KINK, Solution, TruncatedLogistic, WhyStopped
from laconic.kernel.kernels import KernelRows
from laconic.kernel.rounded import LossRows
from laconic.kernel.tuning import LARGEST_ACTIVE_SET
from laconic.linear.solvers.rows import balanced


def solve_active_set(
    kernel: KernelRows, rows: LossRows, *, fit_intercept: bool, tol: float, max_iter: int
) -> Solution:
    """Minimise by exchanges; the kernel matrix is formed, for at most 2,000 rows."""
    loss = rows.loss
    if not isinstance(loss, TruncatedLogistic):
        raise ValueError("solver='active-set' is the paper's algorithm for the gray-zone loss.")
    if not fit_intercept:
        raise ValueError("solver='active-set' needs an intercept; use 'block'.")
    if rows.n_rows > LARGEST_ACTIVE_SET:
        raise ValueError(
            "solver='active-set' forms the kernel matrix and takes at most "
            f"{LARGEST_ACTIVE_SET} rows, got {rows.n_rows}; use solver='auto'."
        )
    K = kernel.block(slice(None), slice(None))
    # equal rows of one class are one row of their total weight: exchanges among them never end
    _, first, group = np.unique(
        np.column_stack([K, rows.y]), axis=0, return_index=True, return_inverse=True
    )
    group = group.ravel()
    if len(first) == rows.n_rows:
        return _Exchanges(K, rows, loss).run(tol, max_iter)
    total = np.asarray(np.bincount(group, weights=rows.weight), dtype=np.float64)
    merged = LossRows(loss, rows.y[first], total)
    found = _Exchanges(K[np.ix_(first, first)], merged, loss).run(tol, max_iter)
    part = rows.weight / total[group]
    details = {
        "slopes": found.details["slopes"][group] * part,
        "scores": found.details["scores"][group],
        "on_kink": found.details["on_kink"][group],
        "remainder": 0.0,
    }
    point = np.append(found.point[:-1][group] * part, found.point[-1])
    return replace(found, point=point, details=MappingProxyType(details))


class _Exchanges:
    def __init__(self, K: Floats, rows: LossRows, loss: TruncatedLogistic) -> None:
        self.K, self.rows = K, rows
        self.height = rows.weight * np.where(rows.y > 0, loss.heights[1], loss.heights[0])
        self.part = np.full(rows.n_rows, FLAT)
        self.alpha = np.zeros(rows.n_rows)
        self.b = 0.0
        if not rows.has_kink.all():
            # rows without a kink are always in I_l: start from the best constant's multipliers
            slope = rows.weight * loss.slope(np.full(rows.n_rows, rows.best_constant()), rows.y)
            if slope.min() * slope.max() == 0.0:
                # the constant stands at a bound of the zone: the other class waits on its kink
                full = np.where(slope == 0.0, self.height, 0.0)
                share = min(1.0, float(np.abs(slope).sum()) / float(full.sum()))
                slope = slope - np.sign(slope.sum()) * share * full
            self.alpha = np.abs(balanced(slope))
            below = np.where(self.alpha > 0, ON_KINK, FLAT)
            curved = (self.alpha >= self.height) | ~rows.has_kink
            self.part = np.where(curved & (self.alpha > 0), CURVED, below)

    def run(self, tol: float, max_iter: int) -> Solution:
        best: Solution | None = None
        why: WhyStopped = "max_iter"
        self._admit(self.rows.best_constant())
        for n_iter in range(1, max_iter + 1):
            moved = self._newton()
            if moved > 1e-10:
                continue
            now = self._certified(n_iter)
            best = now if best is None or now.gap < best.gap else best
            if best.gap <= tol * max(best.value, self.rows.least):
                why = "gap"
                break
            if not self._admit(self.b):
                why = "stalled"
                break
        if best is None:
            best = self._certified(max_iter)
        details = {**best.details, "remainder": 0.0}
        return Solution(best.point, best.value, best.gap, n_iter, why, MappingProxyType(details))

    def _margins(self, b: float) -> Floats:
        beta = self.rows.y * self.alpha
        return self.rows.y * (self.K @ beta + b)

    def _admit(self, b: float) -> bool:
        """The row of I_0 deepest inside the curved side of its kink joins I_h; one of each class
        when the active set is empty, for the multipliers must sum to zero."""
        reach = self.rows.y * self.rows.position
        lack = np.where(self.part == FLAT, reach - self._margins(b), -np.inf)
        if (self.part == FLAT).all():
            for side in (self.rows.y > 0, self.rows.y < 0):
                self.part[int(np.argmax(np.where(side, lack, -np.inf)))] = ON_KINK
            return True
        first = int(np.argmax(lack))
        if lack[first] <= 1e-12:
            return False
        self.part[first] = ON_KINK
        return True

    def _newton(self) -> float:
        """One Newton step, cut at the first bound of the partition (17), which then changes."""
        active = np.flatnonzero(self.part != FLAT)
        y, s, alpha = self.rows.y[active], self.rows.weight[active], self.alpha[active]
        curved = self.part[active] == CURVED
        share = np.clip(alpha / s, 1e-300, 1.0 - 1e-16)
        reach = y * self.rows.position[active]
        bend = np.where(curved, 1.0 / (s * share * (1.0 - share)), 0.0)
        target = np.where(curved, np.log1p(-share) - np.log(share), reach)
        G = (y[:, None] * y) * self.K[np.ix_(active, active)]
        # (G + bend) step + b y = target - G alpha, y.(alpha + step) = 0
        step, self.b = _bordered(G + np.diag(bend), y, target - G @ alpha, -float(y @ alpha))
        low = np.where(curved, self.height[active], 0.0)
        high = np.where(curved, s, self.height[active])
        length, hit, up = _first_bound(alpha, step, low, high, curved)
        self.alpha[active] = np.clip(alpha + length * step, low, high)
        if hit >= 0:
            self._exchange(int(active[hit]), up)
            return np.inf
        return float(np.abs(step).max(initial=0.0))

    def _exchange(self, row: int, up: bool) -> None:
        if self.part[row] == ON_KINK:
            self.part[row] = CURVED if up else FLAT
            self.alpha[row] = self.height[row] if up else 0.0
        else:
            self.part[row] = ON_KINK
            self.alpha[row] = self.height[row]

    def _certified(self, n_iter: int) -> Solution:
        rows = self.rows
        beta = -balanced(-rows.y * self.alpha)
        f = self.K @ beta
        z = f + self.b
        value = 0.5 * max(float(beta @ f), 0.0) + rows.value(z)
        details = {"slopes": -beta, "scores": z, "on_kink": self.part == ON_KINK}
        return Solution(
            np.append(beta, self.b), value, rows.price(z, -beta), n_iter, "gap", details
        )


def _bordered(H: Floats, y: Floats, right: Floats, rest: float) -> tuple[Floats, float]:
    """x, b with Hx + b y = right and y.x = rest.

    A light proximal term makes H regular (duplicated rows on a kink); it vanishes with the step,
    and along a direction that H does not see the step runs into a bound, as it should.
    """
    H = H + np.diag(np.full(len(y), 1e-9 * float(np.abs(np.diagonal(H)).max(initial=1.0))))
    factor = cho_factor(H, lower=True, check_finite=False)
    found = cho_solve(factor, np.column_stack([right, y]), check_finite=False)
    b = (float(y @ found[:, 0]) - rest) / float(y @ found[:, 1])
    return found[:, 0] - b * found[:, 1], b


def _first_bound(
    alpha: Floats, step: Floats, low: Floats, high: Floats, curved: NDArray[np.bool_]
) -> tuple[float, int, bool]:
    """Longest length in [0, 1] that keeps low <= alpha <= high, the row that stops it, and where.

    The upper end of I_l is a barrier that Newton may only approach.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        to_low = np.where(step < 0, (low - alpha) / step, np.inf)
        to_high = np.where(step > 0, (high - alpha) / step, np.inf)
    barrier = curved & (low == 0.0)
    to_low = np.where(barrier, 0.9 * to_low, to_low)
    to_high = np.where(curved, 0.9 * to_high, to_high)
    when = np.minimum(to_low, to_high)
    first = int(np.argmin(when))
    if when[first] >= 1.0:
        return 1.0, -1, False
    up = bool(to_high[first] < to_low[first])
    length = max(float(when[first]), 0.0)
    if (up and curved[first]) or (not up and barrier[first]):
        return length, -1, False
    return length, first, up
