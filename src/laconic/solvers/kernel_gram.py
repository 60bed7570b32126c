"""The kernel matrix of the rows that matter: whole when small, in symmetric blocks when large."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from laconic.criteria.kernels import KernelRows
from laconic.solvers.kernel_newton import Move, Point
from laconic.solvers.kernel_rows import Rounded
from laconic.solvers.kernel_span import find_span

Floats = NDArray[np.float64]
Index = NDArray[np.int64]

_WHOLE = 2_600
"""Up to this many rows the matrix is kept whole, in double precision."""
_FACTOR = 1_500
"""Up to this many curved rows a step is solved by a factor, above by conjugate gradients."""
_BLOCK = 1_024
_BASIS = 300


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
        if n <= _WHOLE and 8 * n * n <= cache_bytes:
            self.whole = rows.block(slice(None), slice(None))
        self._kept: dict[tuple[int, int], NDArray[np.float32]] = {}
        self._room = cache_bytes

    def product(self, v: Floats) -> Floats:
        if self.whole is not None:
            return np.asarray(self.whole @ v)
        n = self.rows.n_rows
        out = np.zeros(n)
        single = v.astype(np.float32)
        for first in range(0, n, _BLOCK):
            left = slice(first, min(first + _BLOCK, n))
            for second in range(0, first + 1, _BLOCK):
                right = slice(second, min(second + _BLOCK, n))
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
        curved = np.flatnonzero(rounded.curvature)
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

    def _solve(
        self, curved: Index, D: Floats, right: Floats, point: Point
    ) -> tuple[Floats, Floats]:
        """(K + D)^-1 applied to ``right`` and to ones."""
        whole = self.gram.whole
        ones = np.ones(len(curved))
        if whole is not None and len(curved) <= _FACTOR:
            M = whole[np.ix_(curved, curved)]
            M[np.diag_indices_from(M)] += D
            factor = cho_factor(M, lower=True, overwrite_a=True, check_finite=False)
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

    def _preconditioner(self, curved: Index, D: Floats) -> Any:
        """Inverse of a low-rank part of K plus a diagonal, by Woodbury's identity."""
        if self._features is None:
            most = min(_BASIS, max(self.gram.rows.n_rows // 8, 20))
            span = find_span(self.gram.rows, most, 1e-6 * float(self.gram.rows.diagonal.max()))
            self._features, self._left = span.features, span.left
        F = self._features[curved]
        inverse = 1.0 / (D + self._left[curved] + 1e-10)
        scaled = F * inverse[:, None]
        inner = F.T @ scaled
        inner[np.diag_indices_from(inner)] += 1.0
        factor = cho_factor(inner, lower=True, overwrite_a=True, check_finite=False)

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
