"""Sequential minimal optimisation of the dual, two multipliers at a time.

Second-order choice of the pair, shrinking, and a cache of kernel rows in single precision. The
losses it knows are those whose score as a function of the slope has a closed form; for any other
:class:`~laconic.criteria.protocol.ScoreLoss` use the Newton solvers.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.criteria.gray_zone import TruncatedLogistic
from laconic.criteria.kernels import KernelRows
from laconic.criteria.losses import (
    AbsoluteError,
    ExponentialLoss,
    HingeLoss,
    HuberError,
    LogisticLoss,
    SquaredError,
    SquaredHingeLoss,
    SquaredLoss,
)
from laconic.criteria.protocol import ScoreLoss
from laconic.solvers.kernel_block import scores_of
from laconic.solvers.kernel_newton import best_constant
from laconic.solvers.kernel_rows import LossRows, balanced
from laconic.solvers.solution import Solution, WhyStopped

Floats = NDArray[np.float64]
Index = NDArray[np.int64]

_WHOLE = 3_000
_DOUBLE = 1_000
_SHRINK_EVERY = 1_000
_BATCH = 16
_VIOLATION = 3e-3


@dataclass
class _Family:
    """Row descriptions for the compiled loop, with the box of each multiplier."""

    code: int
    height: Floats
    position: Floats
    fall: Floats
    low: Floats
    high: Floats

    def take(self, rows: Index) -> _Family:
        parts = (self.height, self.position, self.fall, self.low, self.high)
        return _Family(self.code, *(np.ascontiguousarray(part[rows]) for part in parts))


def knows(loss: ScoreLoss) -> bool:
    """Whether the compiled loop has this loss."""
    known = (
        TruncatedLogistic, LogisticLoss, HingeLoss, SquaredHingeLoss, SquaredLoss,
        ExponentialLoss, SquaredError, AbsoluteError, HuberError,
    )  # fmt: skip
    return isinstance(loss, known)


def _family(rows: LossRows) -> _Family:
    loss, y, s = rows.loss, rows.y, rows.weight
    zeros, infinite = np.zeros(len(y)), np.full(len(y), np.inf)
    one_sided = (np.where(y > 0, 0.0, -s), np.where(y > 0, s, 0.0))
    if isinstance(loss, LogisticLoss):
        loss = TruncatedLogistic()
    if isinstance(loss, TruncatedLogistic):
        height = np.where(y > 0, loss.heights[1], loss.heights[0])
        return _Family(0, height, rows.position, zeros, *one_sided)
    if isinstance(loss, HingeLoss):
        return _Family(1, zeros, y, zeros, *one_sided)
    if isinstance(loss, AbsoluteError):
        return _Family(1, zeros, y, zeros, -s, s)
    if isinstance(loss, HuberError):
        return _Family(1, zeros, y, 1.0 / s, -s * loss.epsilon, s * loss.epsilon)
    if isinstance(loss, SquaredError):
        return _Family(1, zeros, y, 1.0 / s, -infinite, infinite)
    if isinstance(loss, SquaredLoss):
        return _Family(1, zeros, y, 0.5 / s, -infinite, infinite)
    half = (np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0))
    if isinstance(loss, SquaredHingeLoss):
        return _Family(1, zeros, y, 0.5 / s, *half)
    if isinstance(loss, ExponentialLoss):
        return _Family(2, zeros, zeros, zeros, *half)
    raise ValueError(f"solver='smo' does not know the loss {type(loss).__name__}.")


class _Rows:
    """Kernel rows of some training rows in single precision, the least used replaced first."""

    def __init__(self, kernel: KernelRows, places: Index, cache_bytes: float) -> None:
        self.kernel, self.places = kernel, places
        n = len(places)
        # single precision spoils the last digits: worth its half of the memory on many rows only
        kind: Any = np.float64 if n <= _DOUBLE else np.float32
        slots = int(min(n, max(cache_bytes // (np.dtype(kind).itemsize * n), 2 * _BATCH + 2)))
        self.table: NDArray[Any] = np.zeros((slots, n), kind)
        self.slot = np.full(n, -1, np.int64)
        self.owner = np.full(slots, -1, np.int64)
        self.stamp = np.full(slots, -1, np.int64)
        self.clock = np.zeros(1, np.int64)
        if n <= _WHOLE and slots == n:
            self.table[:] = self._block(places)
            self.slot[:] = self.owner[:] = np.arange(n)

    def fetch(self, wanted: Index) -> None:
        """Bring rows in; those used last stay."""
        slots = np.argsort(self.stamp, kind="stable")[: len(wanted)]
        old = self.owner[slots]
        self.slot[old[old >= 0]] = -1
        self.table[slots] = self._block(self.places[wanted])
        self.slot[wanted], self.owner[slots] = slots, wanted
        self.stamp[slots] = self.clock[0]
        self.clock[0] += 1

    def _block(self, wanted: Index) -> NDArray[Any]:
        if self.table.dtype == np.float64:
            return self.kernel.block(wanted, self.places)
        return self.kernel.single_block(wanted, self.places)

    def shrunk(self, kept: Index) -> _Rows:
        """The cache of fewer rows: their columns are cut out of what is here."""
        small = _Rows.__new__(_Rows)
        small.kernel, small.places = self.kernel, self.places[kept]
        inside = np.full(len(self.places), -1, np.int64)
        inside[kept] = np.arange(len(kept))
        useful = np.flatnonzero((self.owner >= 0) & (inside[self.owner] >= 0))
        # the room that shorter rows leave is used for more of them
        slots = min(len(kept), max(self.table.size // max(len(kept), 1), 2 * _BATCH + 2))
        useful = useful[np.argsort(-self.stamp[useful], kind="stable")[:slots]]
        filled = np.arange(len(useful))
        small.table = np.zeros((max(slots, len(useful)), len(kept)), self.table.dtype)
        small.table[filled] = self.table[np.ix_(useful, kept)]
        small.owner = np.full(len(small.table), -1, np.int64)
        small.stamp = np.full(len(small.table), -1, np.int64)
        small.slot = np.full(len(kept), -1, np.int64)
        small.owner[filled], small.stamp[filled] = inside[self.owner[useful]], self.stamp[useful]
        small.slot[small.owner[filled]] = filled
        small.clock = self.clock.copy()
        return small


def solve_smo(
    kernel: KernelRows,
    rows: LossRows,
    *,
    tol: float,
    max_iter: int,
    cache_bytes: float,
) -> Solution:
    """Minimise with an intercept; ``max_iter`` counts sweeps of n pair steps.

    ``Solution.point`` is (beta, b) and ``details`` as in the other kernel solvers.
    """
    family = _family(rows)
    beta = _start(rows, family)
    f = scores_of(kernel, beta) if beta.any() else np.zeros(rows.n_rows)
    n, steps = rows.n_rows, 0
    violation = _VIOLATION
    # a cut-down copy lives beside the whole while rows are shrunk
    cache = _Rows(kernel, np.arange(n), 0.5 * cache_bytes)
    best: Solution | None = None
    why: WhyStopped = "max_iter"
    most = max_iter * max(n, 100)
    while True:
        steps += _sweeps(cache, rows, family, beta, f, violation, most - steps)
        f = scores_of(kernel, beta)
        now = _certified(rows, beta, f, steps)
        best = now if best is None or now.gap < best.gap else best
        if best.gap <= tol * max(best.value, rows.least):
            why = "gap"
            break
        if steps >= most:
            break
        if violation < 1e-9:
            why = "stalled"
            break
        # the gap falls about as fast as the violation
        ratio = tol * max(now.value, rows.least) / max(now.gap, 1e-300)
        violation *= min(max(0.5 * ratio, 0.02), 0.5)
    slope = -best.point[:-1]
    details = {
        "slopes": slope, "scores": best.details["scores"],
        "on_kink": rows.on_ramp(slope), "remainder": 0.0,
    }  # fmt: skip
    n_iter = max(1, -(-steps // max(n, 1)))
    return Solution(best.point, best.value, best.gap, n_iter, why, MappingProxyType(details))


def _start(rows: LossRows, family: _Family) -> Floats:
    """Zero where a kink or a bound allows it; inside the box where the score there is infinite."""
    n = rows.n_rows
    if family.code == 1 or (family.code == 0 and (family.height > 0).all()):
        return np.zeros(n)
    slope = rows.weight * rows.loss.slope(np.full(n, best_constant(rows)), rows.y)
    return -balanced(slope)


def _sweeps(
    cache: _Rows, rows: LossRows, family: _Family, beta: Floats, f: Floats,
    violation: float, most: int,
) -> int:  # fmt: skip
    """Pair steps on all rows, then on fewer and fewer; beta and f are changed in place."""
    from laconic.solvers import hot_kernel_smo as hot

    here = np.arange(rows.n_rows)
    part, y, s = family, rows.y, rows.weight
    part_beta, part_f = beta.copy(), f.copy()
    h, fall = np.empty(len(y)), np.empty(len(y))
    hot.responses(part.code, y, s, part.height, part.position, part.fall, part_beta, h, fall)
    diagonal = cache.kernel.diagonal
    want = np.zeros(1, np.int64)
    done = 0
    while done < most:
        code, steps, _ = hot.smo(
            part.code, y, s, part.height, part.position, part.fall, part.low, part.high,
            part_beta, part_f, h, fall, diagonal,
            cache.table, cache.slot, cache.owner, cache.stamp, cache.clock,
            violation, most - done, _SHRINK_EVERY, want,
        )  # fmt: skip
        done += steps
        if code == hot.NEEDS_ROW:
            cache.fetch(_wanted(cache, part, part_beta, part_f - h, int(want[0])))
        elif code == hot.SHRINK:
            kept = _kept(part, part_beta, part_f - h, violation)
            done += 1
            if len(kept) > 0.8 * len(here):
                continue
            beta[here] = part_beta
            here, part = here[kept], part.take(kept)
            y, s, diagonal = y[kept], s[kept], diagonal[kept]
            part_beta, part_f, h, fall = part_beta[kept], part_f[kept], h[kept], fall[kept]
            cache = cache.shrunk(kept)
        else:
            break
    beta[here] = part_beta
    return max(done, 1)


def _wanted(cache: _Rows, part: _Family, beta: Floats, e: Floats, first: int) -> Index:
    """The missing row, and with it others that are likely to be asked for next."""
    grows = np.where((beta < part.high) & (cache.slot < 0), e, np.inf)
    falls = np.where((beta > part.low) & (cache.slot < 0), -e, np.inf)
    size = min(_BATCH // 2, len(e) - 1)
    found = [first, *np.argpartition(grows, size)[:size], *np.argpartition(falls, size)[:size]]
    unique = np.array(list(dict.fromkeys(int(i) for i in found)), np.int64)
    unique = unique[cache.slot[unique] < 0]
    return unique[: max(len(cache.table) // 2, 1)]


def _kept(part: _Family, beta: Floats, e: Floats, violation: float) -> Index:
    """Rows that may still move: not those that press against their bound."""
    can_grow, can_fall = beta < part.high, beta > part.low
    best = float(e[can_grow].min(initial=np.inf))
    worst = float(e[can_fall].max(initial=-np.inf))
    idle = (~can_fall & (e > worst + violation)) | (~can_grow & (e < best - violation))
    return np.flatnonzero(~idle)


def _certified(rows: LossRows, beta: Floats, f: Floats, steps: int) -> Solution:
    b = _intercept(rows, f)
    value = 0.5 * max(float(beta @ f), 0.0) + rows.value(f + b)
    gap = rows.price(f + b, -beta)
    details: dict[str, Any] = {"scores": f + b}
    return Solution(np.append(beta, b), value, gap, steps, "gap", details)


def _intercept(rows: LossRows, f: Floats) -> float:
    """The best intercept for these scores: a bisection of the monotone slope in b."""

    def tilt(b: float) -> float:
        return float(rows.weight @ rows.loss.slope(f + b, rows.y))

    inner, reach = 0.0, 1.0
    sign = -1.0 if tilt(0.0) > 0 else 1.0
    while reach < 1e12 and sign * tilt(sign * reach) < 0:
        inner, reach = reach, 4.0 * reach
    for _ in range(60):
        middle = 0.5 * (inner + reach)
        inner, reach = (middle, reach) if sign * tilt(sign * middle) < 0 else (inner, middle)
    return sign * 0.5 * (inner + reach)
