"""Kernel models of high rank: Newton on the rows that matter, found on fewer rows first.

The working set holds the rows whose slope is not zero, or nearly so; the kernel between them is
all that a step needs, whole when small, in symmetric blocks when large. One pass of the kernel
between all rows and the supports then shows rows that were forgotten and gives the certificate in
double precision,

    gap = sum_i s_i (phi(z_i) + phi*(u_i) - u_i z_i),

plus half the squared distance between the function handed out and the one that the slopes u stand
for.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from laconic._typing import Floats, Ints
from laconic.core.losses import Solution, WhyStopped
from laconic.kernel.kernels import KernelRows, scores_of
from laconic.kernel.low_rank import find_span
from laconic.kernel.newton import Move, Point, anneal, descend, sturdy_factor
from laconic.kernel.rounded import LossRows, Rounded
from laconic.kernel.tuning import (
    BLOCK_ROUNDS,
    COARSE_WIDTH,
    COARSEST_ROWS,
    FACTOR_UP_TO,
    FIRST_WIDTH,
    LOOSE,
    MATRIX_BLOCK,
    NARROWEST,
    PRECONDITIONER_RANK,
    TIGHTEST,
    WHOLE_MATRIX_UP_TO,
)


class Gram:
    """Products with the kernel matrix of ``rows``; at most ``cache_bytes`` of it is kept.

    Blocks of the lower triangle are kept in single precision while there is room and computed
    anew when there is none. A step may be a little off: what is handed out is checked in double
    precision.
    """

    def __init__(self, rows: KernelRows, cache_bytes: float) -> None:
        self.rows = rows
        n = rows.n_rows
        self.whole: Floats | None = None
        if n <= WHOLE_MATRIX_UP_TO and 8 * n * n <= cache_bytes:
            self.whole = rows.block(slice(None), slice(None))
        self._kept: dict[tuple[int, int], NDArray[np.float32]] = {}
        self._room = cache_bytes

    def product(self, v: Floats) -> Floats:
        if self.whole is not None:
            return np.asarray(self.whole @ v)
        n = self.rows.n_rows
        out = np.zeros(n)
        single = v.astype(np.float32)
        for first in range(0, n, MATRIX_BLOCK):
            left = slice(first, min(first + MATRIX_BLOCK, n))
            for second in range(0, first + 1, MATRIX_BLOCK):
                right = slice(second, min(second + MATRIX_BLOCK, n))
                K = self._block(left, right)
                out[left] += K @ single[right]
                if second < first:
                    out[right] += K.T @ single[left]
        return out

    def _block(self, left: slice, right: slice) -> NDArray[np.float32]:
        key = (left.start, right.start)
        if key in self._kept:
            return self._kept[key]
        K = self.rows.single_block(left, right)
        if K.nbytes <= self._room:
            self._room -= K.nbytes
            self._kept[key] = K
        return K


class GramSpace:
    """f = sum_i beta_i k(x_i, .) over the rows of a :class:`Gram`."""

    def __init__(self, gram: Gram, fit_intercept: bool) -> None:
        self.gram = gram
        self.fit_intercept = fit_intercept
        self._features: Floats | None = None
        self._ones: Floats | None = None

    def at(self, beta: Floats, b: float) -> Point:
        f = self.gram.product(beta)
        return Point(beta, b, f + b, float(beta @ f))

    def refreshed(self, point: Point) -> Point:
        return point

    def apart(self, point: Point, slope: Floats) -> float:
        rest = point.coef + slope
        return float(rest @ self.gram.product(rest))

    def move(self, point: Point, rounded: Rounded, ease: float) -> Move:
        """New multipliers: -slope where the loss is straight, a bordered system elsewhere.

        With D = 1 / curvature and the straight rows' part q of the scores,
        (K + D) beta + b = z - D slope - q on the curved rows, and the sum of all beta is zero.
        """
        # less has no inverse that can be reckoned with: as good as straight
        curved = np.flatnonzero(rounded.curvature > 1e-150)
        beta = -rounded.slope
        beta[curved] = 0.0
        straight = float(beta.sum())
        b = point.b
        if len(curved):
            D = 1.0 / rounded.curvature[curved]
            right = point.z[curved] - D * rounded.slope[curved]
            if beta.any():
                right = right - self.gram.product(beta)[curved]
            x, ones = self._solve(curved, D, right, point)
            if self.fit_intercept:
                total = float(ones.sum())
                b = (float(x.sum()) + straight) / max(total, 1e-300)
                x = x - b * ones
            beta[curved] = x
        elif self.fit_intercept:
            b = point.b - np.sign(float(rounded.slope.sum()))
        dbeta, db = beta - point.coef, b - point.b
        df = self.gram.product(dbeta)
        f = point.z - point.b
        return Move(dbeta, db, df + db, float(dbeta @ f), float(dbeta @ df))

    def _solve(self, curved: Ints, D: Floats, right: Floats, point: Point) -> tuple[Floats, Floats]:
        """(K + D)^-1 applied to ``right`` and to ones."""
        whole = self.gram.whole
        ones = np.ones(len(curved))
        if whole is not None and len(curved) <= FACTOR_UP_TO:
            M = whole[np.ix_(curved, curved)]
            M[np.diag_indices_from(M)] += D
            factor = sturdy_factor(M)
            found = cho_solve(factor, np.column_stack([right, ones]), check_finite=False)
            return found[:, 0], found[:, 1]
        precondition = self._preconditioner(curved, D)

        def product(v: Floats) -> Floats:
            if whole is not None and len(curved) == len(point.coef):
                return np.asarray(whole @ v) + D * v
            padded = np.zeros(len(point.coef))
            padded[curved] = v
            return self.gram.product(padded)[curved] + D * v

        # the intercept's share of the right side is taken out: a smaller system to correct
        guess = point.coef[curved]
        if self._ones is None:
            self._ones = np.zeros(len(point.coef))
        beside = _conjugate_gradients(product, precondition, ones, self._ones[curved])
        self._ones[curved] = beside
        x = _conjugate_gradients(product, precondition, right, guess + point.b * beside)
        return x, beside

    def _preconditioner(self, curved: Ints, D: Floats) -> Any:
        """Inverse of a low-rank part of K plus a diagonal, by Woodbury's identity."""
        if self._features is None:
            most = min(PRECONDITIONER_RANK, max(self.gram.rows.n_rows // 8, 20))
            span = find_span(self.gram.rows, most, 1e-6 * float(self.gram.rows.diagonal.max()))
            self._features, self._left = span.features, span.left
        F = self._features[curved]
        inverse = 1.0 / (D + self._left[curved] + 1e-10)
        scaled = F * inverse[:, None]
        inner = F.T @ scaled
        inner[np.diag_indices_from(inner)] += 1.0
        factor = sturdy_factor(inner)

        def apply(v: Floats) -> Floats:
            inside = cho_solve(factor, scaled.T @ v, check_finite=False)
            return np.asarray(inverse * v - scaled @ inside)

        return apply


def _conjugate_gradients(
    product: Any, precondition: Any, right: Floats, start: Floats, accuracy: float = 3e-3
) -> Floats:
    """Preconditioned conjugate gradients, until the first residual is ``accuracy`` of itself."""
    x = start.copy()
    r = right - product(x) if x.any() else right.copy()
    p = precondition(r)
    size = float(r @ p)
    aim = accuracy**2 * max(size, 1e-300)
    direction = p
    for _ in range(200):
        if size <= aim:
            break
        image = product(direction)
        length = size / float(direction @ image)
        x += length * direction
        r -= length * image
        p = precondition(r)
        new = float(r @ p)
        direction = p + (new / size) * direction
        size = new
    return x


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
    :func:`~laconic.kernel.low_rank.solve_span`.
    """
    beta, b, n_iter = _begin(kernel, rows, fit_intercept, max_iter, cache_bytes)
    z = scores_of(kernel, beta) + b
    slope = -beta
    chosen = np.zeros(rows.n_rows, bool)
    half = np.full(rows.n_rows, 0.5)
    space: GramSpace | None = None
    best: Solution | None = None
    why: WhyStopped = "max_iter"
    width, loose = FIRST_WIDTH, LOOSE
    for round_ in range(BLOCK_ROUNDS):
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
        b, width = found.point.b, max(found.details["width"], NARROWEST)
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
        if loose < TIGHTEST:
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
    b = rows.best_constant() if fit_intercept else 0.0
    strides = [4**k for k in range(1, 8) if n // 4**k >= COARSEST_ROWS]
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
