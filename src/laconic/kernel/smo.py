"""Sequential minimal optimisation of the dual, two multipliers at a time.

Second-order choice of the pair, shrinking, and a cache of kernel rows in single precision. The
losses it knows are those whose score as a function of the slope has a closed form; for any other
:class:`~laconic.core.losses.ScoreLoss` use the Newton solvers.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.core.losses import (
    AbsoluteError,
    ExponentialLoss,
    HingeLoss,
    HuberError,
    LogisticLoss,
    ScoreLoss,
    Solution,
    SquaredError,
    SquaredHingeLoss,
    SquaredLoss,
    TruncatedLogistic,
    WhyStopped,
)
from laconic.kernel import _numba_smo as hot
from laconic.kernel.kernels import KernelRows, in_fours, scores_of
from laconic.kernel.rounded import LossRows
from laconic.kernel.tuning import (
    BATCH,
    CHECK_EVERY,
    CLOSE,
    DOUBLE_UP_TO,
    FEW_HALVINGS,
    FINEST,
    HALVINGS,
    NARROW,
    ROUGH,
    ROUNDS_WITHOUT_GAIN,
    WHOLE_CACHE_UP_TO,
)
from laconic.linear.solvers.rows import balanced


def knows(loss: ScoreLoss) -> bool:
    """Whether the compiled loop has this loss."""
    known = (
        TruncatedLogistic, LogisticLoss, HingeLoss, SquaredHingeLoss, SquaredLoss,
        ExponentialLoss, SquaredError, AbsoluteError, HuberError,
    )  # fmt: skip
    return isinstance(loss, known)


def _described(rows: LossRows) -> hot.Rows:
    """The rows as the compiled loop takes them."""
    loss, y, s = rows.loss, rows.y, rows.weight
    zeros, infinite = np.zeros(len(y)), np.full(len(y), np.inf)
    one_sided = (np.where(y > 0, 0.0, -s), np.where(y > 0, s, 0.0))
    if isinstance(loss, LogisticLoss):
        loss = TruncatedLogistic()
    if isinstance(loss, TruncatedLogistic):
        height = np.where(y > 0, loss.heights[1], loss.heights[0])
        return hot.Rows(0, y, s, height, rows.position, zeros, *one_sided)
    half = (np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0))
    if isinstance(loss, ExponentialLoss):
        return hot.Rows(2, y, s, zeros, zeros, zeros, *half)
    if isinstance(loss, HingeLoss):
        fall, box = zeros, one_sided
    elif isinstance(loss, AbsoluteError):
        fall, box = zeros, (-s, s)
    elif isinstance(loss, HuberError):
        fall, box = 1.0 / s, (-s * loss.epsilon, s * loss.epsilon)
    elif isinstance(loss, SquaredError):
        fall, box = 1.0 / s, (-infinite, infinite)
    elif isinstance(loss, SquaredLoss):
        fall, box = 0.5 / s, (-infinite, infinite)
    elif isinstance(loss, SquaredHingeLoss):
        fall, box = 0.5 / s, half
    else:
        raise ValueError(f"solver='smo' does not know the loss {type(loss).__name__}.")
    return hot.Rows(1, y, s, zeros, y, fall, *box)


def _take(rows: hot.Rows, kept: Ints) -> hot.Rows:
    return hot.Rows(rows.family, *(np.ascontiguousarray(part[kept]) for part in rows[1:]))


def _workspace(n: int, single: bool) -> hot.Workspace:
    """Memory that the compiled loop works in, in single or double precision, and its bits."""
    table: NDArray[Any] = np.empty((5, max(n, 2)), np.float32 if single else np.float64)
    words: NDArray[Any] = table.view(np.int32 if single else np.int64)
    return hot.Workspace(table, words, words.dtype.type(np.iinfo(words.dtype).max))


def _finest(f: Floats, single: bool) -> float:
    """Violations below this are rounding."""
    return 1e-6 * max(1.0, float(np.abs(f).max())) if single else FINEST


class _Kept:
    """Kernel rows of some training rows in single precision, the least used replaced first."""

    def __init__(self, kernel: KernelRows, places: Ints, cache_bytes: float) -> None:
        self.kernel, self.places = kernel, places
        n = len(places)
        # single precision spoils the last digits: worth its half of the memory on many rows only
        kind: Any = np.float64 if n <= DOUBLE_UP_TO else np.float32
        slots = int(min(n, max(cache_bytes // (np.dtype(kind).itemsize * n), 2 * BATCH + 2)))
        factors = kernel.single_factors() if kind is np.float32 else None
        self.left, self.right = np.empty((n, 0), np.float32), np.empty((0, n), np.float32)
        # factors of every row and of those that are left, when kernel rows are matrix products
        self.wide: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None
        if factors is not None and factors[0].shape[1] <= NARROW:
            left, right = in_fours(*factors)
            self.left, self.right = left[places], np.ascontiguousarray(right[places].T)
        elif factors is not None:
            self.wide = factors if n == kernel.n_rows else (factors[0], factors[1][places])
        whole = slots == n <= WHOLE_CACHE_UP_TO and self.left.shape[1] == 0
        self.kind = kind
        self.table: NDArray[Any] = self._values(places) if whole else np.empty((slots, n), kind)
        self.slot = np.arange(n) if whole else np.full(n, -1, np.int64)
        self.owner = np.arange(n) if whole else np.full(slots, -1, np.int64)
        self.stamp = np.full(slots, -1, np.int64)
        self.clock = np.zeros(2, np.int64)

    @property
    def arrays(self) -> hot.Cache:
        return hot.Cache(
            self.table, self.slot, self.owner, self.stamp, self.clock, self.left, self.right
        )

    def fetch(self, wanted: Ints) -> None:
        """Bring rows in; those used last stay."""
        slots = np.argpartition(self.stamp, len(wanted) - 1)[: len(wanted)]
        old = self.owner[slots]
        self.slot[old[old >= 0]] = -1
        self.table[slots] = self._values(self.places[wanted])
        self.slot[wanted], self.owner[slots] = slots, wanted
        self.stamp[slots] = self.clock[0]
        self.clock[0] += 1

    def _values(self, rows: Ints) -> NDArray[Any]:
        if self.wide is not None:
            from laconic.kernel._numba import exponential_single

            values = self.wide[0][rows] @ self.wide[1].T
            exponential_single(values.reshape(-1))
            return values
        block = self.kernel.block if self.kind is np.float64 else self.kernel.single_block
        return block(rows, self.places)

    def shrinking_pays(self, kept: int, done: int) -> bool:
        """Whether a copy of what is kept costs less than as many steps again as were made save.

        It always does where new rows are dear, or have no room.
        """
        n, held = len(self.places), int(np.count_nonzero(self.owner >= 0))
        dear = self.left.shape[1] == 0 or held == len(self.table) < n
        return kept <= 0.8 * n and (dear or held * kept <= done * (n - kept))

    def shrunk(self, kept: Ints) -> _Kept:
        """The cache of fewer rows, in the same memory: what is here is cut down and gone."""
        small = _Kept.__new__(_Kept)
        small.kernel, small.places, small.kind = self.kernel, self.places[kept], self.kind
        inside = np.full(len(self.places), -1, np.int64)
        inside[kept] = np.arange(len(kept))
        useful = np.flatnonzero((self.owner >= 0) & (inside[self.owner] >= 0))
        # the room that shorter rows leave is used for more of them
        slots = min(len(kept), self.table.size // max(len(kept), 1))
        room = self.table.reshape(-1)[: slots * len(kept)]
        filled = np.arange(len(useful))
        small.table = room.reshape(slots, len(kept))
        # in rising order nothing is written where something is still to be read
        hot.cut(self.table, useful, kept, small.table)
        small.owner = np.full(len(small.table), -1, np.int64)
        small.stamp = np.full(len(small.table), -1, np.int64)
        small.slot = np.full(len(kept), -1, np.int64)
        small.owner[filled], small.stamp[filled] = inside[self.owner[useful]], self.stamp[useful]
        small.slot[small.owner[filled]] = filled
        small.clock = self.clock.copy()
        small.clock[1] = len(useful)
        small.wide = None if self.wide is None else (self.wide[0], self.wide[1][kept])
        small.left, small.right = self.left[kept], np.ascontiguousarray(self.right[:, kept])
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
    described = _described(rows)
    beta = _start(rows, described)
    f = scores_of(kernel, beta) if beta.any() else np.zeros(rows.n_rows)
    n, steps, stuck = rows.n_rows, 0, 0
    best: Solution | None = None
    why: WhyStopped = "max_iter"
    most = max_iter * max(n, 100)
    enough = 0.7
    while True:
        cache = _Kept(kernel, np.arange(n), cache_bytes)
        # differences in single precision are enough for a first round and a gap that is not small
        single = cache.kind is np.float32 and steps == 0 and tol >= ROUGH
        steps += _sweeps(cache, rows, described, beta, f, enough * tol, most - steps, single)
        del cache
        f = scores_of(kernel, beta)
        now, violation = _certified(rows, described, beta, f, steps)
        stuck = stuck + 1 if best is not None and now.gap > 0.9 * best.gap else 0
        best = now if best is None or now.gap < best.gap else best
        if best.gap <= tol * max(best.value, rows.least):
            why = "gap"
            break
        if steps >= most:
            break
        # of all rows: those that were shrunk away may have come to violate most
        if (violation < FINEST and not single) or stuck >= ROUNDS_WITHOUT_GAIN:
            why = "stalled"
            break
        # what was forgotten while rows were shrunk, and single precision, take their share
        enough = max(0.3 * enough, 1e-3)
    assert best is not None
    slope = -best.point[:-1]
    details = {
        "slopes": slope, "scores": best.details["scores"],
        "on_kink": rows.on_ramp(slope), "remainder": 0.0,
    }  # fmt: skip
    n_iter = max(1, -(-steps // max(n, 1)))
    return Solution(best.point, best.value, best.gap, n_iter, why, MappingProxyType(details))


def _start(rows: LossRows, described: hot.Rows) -> Floats:
    """Zero where a kink or a bound allows it; inside the box where the score there is infinite."""
    n = rows.n_rows
    if described.family == 1 or (described.family == 0 and (described.a > 0).all()):
        return np.zeros(n)
    slope = rows.weight * rows.loss.slope(np.full(n, rows.best_constant()), rows.y)
    return -balanced(slope)


def _sweeps(
    cache: _Kept, rows: LossRows, described: hot.Rows, beta: Floats, f: Floats, tol: float,
    most: int, single: bool,
) -> int:  # fmt: skip
    """Pair steps on all rows, then on fewer and fewer, until the gap of those seems below ``tol``.

    ``beta`` and ``f`` are changed in place. Returns the steps made.
    """
    here = np.arange(rows.n_rows)
    part, some = described, rows
    dual = hot.Dual(beta.copy(), f.copy(), np.empty(len(here)), np.empty(len(here)))
    hot.responses(part, dual.beta, dual.h, dual.fall)
    diagonal = cache.kernel.diagonal
    want = np.zeros(1, np.int64)
    workspace = _workspace(len(here), single)
    value = np.inf
    done, rest, best, worst = 0, CHECK_EVERY, -np.inf, np.inf
    while done < most:
        code, steps, best, worst = hot.smo(
            part, dual, diagonal, cache.arrays, workspace, _finest(dual.f, single),
            min(rest, most - done), want,
        )  # fmt: skip
        done, rest = done + steps, rest - steps
        if code == hot.NEEDS_ROW:
            cache.fetch(_wanted(cache, part, dual, int(want[0])))
            continue
        if code == hot.CONVERGED:
            break
        rest = CHECK_EVERY
        beta[here], f[here] = dual.beta, dual.f
        middle = 0.5 * (best + worst)
        if len(here) == rows.n_rows or not np.isfinite(value):
            value = 0.5 * float(beta @ f) + rows.value(f - middle)
        if worst - best <= CLOSE:
            b = _bracketed(some, dual.f, -worst, -best, FEW_HALVINGS)
            if some.price(dual.f + b, -dual.beta) <= tol * max(value, rows.least):
                break
        kept = _may_move(part, dual, best, worst)
        if not cache.shrinking_pays(len(kept), done):
            continue
        here, part, some = here[kept], _take(part, kept), some.subset(kept)
        diagonal, dual = diagonal[kept], hot.Dual(*(array[kept] for array in dual))
        cache, workspace = cache.shrunk(kept), _workspace(len(here), single)
    beta[here] = dual.beta
    return max(done, 1)


def _wanted(cache: _Kept, part: hot.Rows, dual: hot.Dual, first: int) -> Ints:
    """The missing row, and with it others that are likely to be asked for next."""
    e, absent = dual.f - dual.h, cache.slot < 0
    grows = np.where((dual.beta < part.high) & absent, e, np.inf)
    falls = np.where((dual.beta > part.low) & absent, -e, np.inf)
    size = min(BATCH // 2, len(e) - 1)
    found = [first, *np.argpartition(grows, size)[:size], *np.argpartition(falls, size)[:size]]
    unique = np.array(list(dict.fromkeys(int(i) for i in found)), np.int64)
    unique = unique[cache.slot[unique] < 0]
    return unique[: max(len(cache.table) // 2, 1)]


def _may_move(part: hot.Rows, dual: hot.Dual, best: float, worst: float) -> Ints:
    """Rows that may still move: not those that press against their bound."""
    e = dual.f - dual.h
    idle = ((dual.beta <= part.low) & (e > worst)) | ((dual.beta >= part.high) & (e < best))
    return np.flatnonzero(~idle)


def _certified(
    rows: LossRows, described: hot.Rows, beta: Floats, f: Floats, steps: int
) -> tuple[Solution, float]:
    """Value and gap at the best intercept for these scores, and the largest violation.

    The pair that violates most brackets the intercept: at -worst every slope is at most what beta
    says, at -best at least, and the slopes of beta sum to zero. It is the middle of many.
    """
    h, fall = np.empty(len(beta)), np.empty(len(beta))
    hot.responses(described, beta, h, fall)
    e = f - h
    best = float(e[beta < described.high].min(initial=np.inf))
    worst = float(e[beta > described.low].max(initial=-np.inf))
    if np.isfinite(best + worst):
        b = _bracketed(rows, f, -worst, -best, HALVINGS)
    else:
        b = rows.best_constant()
    value = 0.5 * max(float(beta @ f), 0.0) + rows.value(f + b)
    gap = rows.price(f + b, -beta)
    details: dict[str, Any] = {"scores": f + b}
    return Solution(np.append(beta, b), value, gap, steps, "gap", details), worst - best


def _bracketed(rows: LossRows, f: Floats, low: float, high: float, halvings: int) -> float:
    for _ in range(halvings if low < high else 0):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if rows.tilt(f, middle) < 0 else (low, middle)
    return 0.5 * (low + high)
