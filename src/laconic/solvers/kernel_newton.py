"""Newton's method on rounded kinks, on features or on a kernel matrix.

minimise over f, b   |f|^2 / 2 + sum_i s_i phi(f(x_i) + b, y_i)

with every kink rounded as in :mod:`laconic.solvers.kernel_rows`. The two spaces differ only in the
linear system of a step: (m + 1) unknowns on m features, or one per row with curvature, bordered by
the intercept, on a kernel matrix. The bordered system needs no inverse of the kernel matrix; the
paper's formula for its multiplier (before equation 14) does, and fails on duplicated rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from laconic.solvers.kernel_rows import LossRows, Rounded, line_search

Floats = NDArray[np.float64]
Index = NDArray[np.int64]

_CHUNK, _PACKED = 256, 4_096
_STALE = 0.1
"""Share by which a row's curvature may be off before the Hessian is corrected."""


@dataclass
class Point:
    """Coefficients of f, intercept, scores z = f(x) + b of every row, and |f|^2."""

    coef: Floats
    b: float
    z: Floats
    norm: float


@dataclass
class Move:
    """A direction: change of coefficients, intercept and scores; <f, df> and |df|^2."""

    coef: Floats
    b: float
    z: Floats
    along: float
    norm: float


class Space(Protocol):
    """Where f lives."""

    fit_intercept: bool

    def move(self, point: Point, rounded: Rounded, ease: float) -> Move:
        """The Newton direction of the rounded objective."""
        ...

    def refreshed(self, point: Point) -> Point:
        """The point with scores free of what steps have gathered."""
        ...

    def apart(self, point: Point, slope: Floats) -> float:
        """|f - f_u|^2, with f_u the function that weighted slopes of the rows stand for."""
        ...


class FeatureSpace:
    """f(x) = w.x on rows of features, kept in single or double precision.

    With ``lower``, the features are values k of a kernel on some points and the w above belong to
    lower^-1 k: the products of all rows are then taken before they are whitened, and not after.
    """

    def __init__(
        self, features: NDArray[Any], fit_intercept: bool, lower: Floats | None = None
    ) -> None:
        self.features = features
        self.fit_intercept = fit_intercept
        self.lower = lower
        width = features.shape[1]
        self._curvature = np.zeros(0)
        self._products, self._border = np.zeros((width, width)), np.zeros(width)

    def thinned(self, stride: int) -> FeatureSpace:
        """One row in ``stride``, not copied."""
        return FeatureSpace(self.features[::stride], self.fit_intercept, self.lower)

    def _turned(self, w: Floats) -> Floats:
        """Coefficients of the stored features."""
        if self.lower is None:
            return w
        found = solve_triangular(self.lower, w, lower=True, trans=1, check_finite=False)
        return np.asarray(found)

    def _whitened(self, sums: Floats) -> Floats:
        if self.lower is None:
            return sums
        return np.asarray(solve_triangular(self.lower, sums, lower=True, check_finite=False))

    def scores(self, w: Floats) -> Floats:
        coef = self._turned(w)
        if self.features.dtype == np.float64:
            return np.asarray(self.features @ coef)
        out = np.empty(len(self.features))
        room = np.empty((_CHUNK, len(coef)))
        for start in range(0, len(out), _CHUNK):
            part = self.features[start : start + _CHUNK]
            room[: len(part)] = part
            np.dot(room[: len(part)], coef, out=out[start : start + _CHUNK])
        return out

    def at(self, w: Floats, b: float) -> Point:
        return Point(w, b, self.scores(w) + b, float(w @ w))

    def refreshed(self, point: Point) -> Point:
        """Scores of steps in single precision have drifted: those of the coefficients instead."""
        if self.features.dtype == np.float64:
            return point
        return self.at(point.coef, point.b)

    def pull(self, slope: Floats) -> Floats:
        """sum_i slope_i x_i, over the rows that have a slope."""
        from laconic.solvers.hot_kernel import sum_of_rows

        total = np.zeros(self.features.shape[1])
        sum_of_rows(self.features, slope, total)
        return self._whitened(total)

    def apart(self, point: Point, slope: Floats) -> float:
        rest = point.coef + self.pull(slope)
        return float(rest @ rest)

    def _hessian(self, curvature: Floats) -> tuple[Floats, Floats, float]:
        """I + sum_i c_i x_i x_i', sum_i c_i x_i and sum_i c_i.

        Rows whose curvature hardly changed keep that of an earlier step: near the end few rows
        change, and a step that is a little off is made up for by the next.
        """
        used = self._curvature
        if len(used) != len(curvature):
            used = np.zeros(len(curvature))
        moved = np.flatnonzero(np.abs(curvature - used) > _STALE * np.maximum(curvature, used))
        if len(moved) > 0.6 * np.count_nonzero(curvature):
            used = np.zeros(len(curvature))
            moved = np.flatnonzero(curvature)
            self._products[:], self._border[:] = 0.0, 0.0
        change = curvature[moved] - used[moved]
        for sign in (1.0, -1.0):
            rows = moved[sign * change > 0]
            self._add_products(sign, rows, np.sqrt(np.abs(change[sign * change > 0])))
        self._curvature = used.copy()
        self._curvature[moved] = curvature[moved]
        H = self._whitened(np.ascontiguousarray(self._whitened(self._products).T))
        H[np.diag_indices_from(H)] += 1.0
        return H, self._whitened(self._border), float(self._curvature.sum())

    def _add_products(self, sign: float, rows: Index, root: Floats) -> None:
        from laconic.solvers.hot_kernel import scaled_rows

        # whitening enlarges the rounding of products
        kind = self.features.dtype if self.lower is None else np.float64
        room = np.empty((min(_PACKED, len(rows)), self.features.shape[1]), kind)
        for start in range(0, len(rows), _PACKED):
            here = slice(start, start + _PACKED)
            packed = room[: len(rows[here])]
            scaled_rows(self.features, rows[here], root[here], packed)
            self._products += sign * (packed.T @ packed)
            self._border += sign * (packed.T @ root[here].astype(kind))

    def move(self, point: Point, rounded: Rounded, ease: float) -> Move:
        H, border, total = self._hessian(rounded.curvature)
        gradient = point.coef + self.pull(rounded.slope)
        factor = cho_factor(H, lower=True, check_finite=False)
        dw = -cho_solve(factor, gradient, check_finite=False)
        db = 0.0
        if self.fit_intercept:
            beside = cho_solve(factor, border, check_finite=False)
            bend = max(total - float(border @ beside), ease)
            db = -(float(rounded.slope.sum()) + float(border @ dw)) / bend
            dw -= db * beside
        coef = self._turned(dw).astype(self.features.dtype)
        dz = np.asarray(self.features @ coef, dtype=np.float64) + db
        return Move(dw, db, dz, float(point.coef @ dw), float(dw @ dw))


def descend(
    space: Space,
    rows: LossRows,
    point: Point,
    *,
    width: float,
    share: Floats,
    enough: float,
    max_iter: int,
    done_at: Callable[[Point, Rounded], bool] | None = None,
) -> tuple[Point, int]:
    """Newton steps on the rounded objective until a full one gains less than ``enough``.

    Or until ``done_at`` says so of a point.
    """
    now = rows.rounded(point.z, width, share)
    weight = float(rows.weight.sum())
    for done in range(max_iter):
        value = 0.5 * point.norm + now.value
        # a loss without curvature leaves b free: a light proximal term, which vanishes with b's own
        move = space.move(point, now, 1e-9 * weight)
        tilt = move.along + float(now.slope @ move.z)
        if -tilt <= 1e-15 * abs(value):
            return point, done

        def at(
            length: float, point: Point = point, move: Move = move
        ) -> tuple[float, float, Rounded]:
            there = rows.rounded(point.z + length * move.z, width, share)
            norm = point.norm + length * (2.0 * move.along + length * move.norm)
            slope = move.along + length * move.norm + float(there.slope @ move.z)
            return 0.5 * norm + there.value, slope, there

        found = line_search(at, value, tilt)
        if found is None:
            return point, done
        length, now = found
        point = Point(
            point.coef + length * move.coef,
            point.b + length * move.b,
            point.z + length * move.z,
            max(point.norm + length * (2.0 * move.along + length * move.norm), 0.0),
        )
        if length == 1.0 and -tilt <= 2.0 * enough:
            return point, done + 1
        if done_at is not None and done_at(point, now):
            return point, done + 1
    return point, max_iter


def best_constant(rows: LossRows) -> float:
    """About the best score when it is the same for every row, by bisection of its slope."""

    def tilt(b: float) -> float:
        return float(rows.weight @ rows.loss.slope(np.full(rows.n_rows, b), rows.y))

    inner, reach = 0.0, 1.0
    sign = -1.0 if tilt(0.0) > 0 else 1.0
    while reach < 1e30 and sign * tilt(sign * reach) < 0:
        inner, reach = reach, 8.0 * reach
    for _ in range(20):
        middle = 0.5 * (inner + reach)
        inner, reach = (middle, reach) if sign * tilt(sign * middle) < 0 else (inner, middle)
    return sign * 0.5 * (inner + reach)
