"""Newton's method on rounded kinks, on features or on a kernel matrix.

minimise over f, b   |f|^2 / 2 + sum_i s_i phi(f(x_i) + b, y_i)

with every kink rounded as in :mod:`laconic.kernel.rounded`, and then on narrower and narrower kinks
until the duality gap of the true losses is small. The two spaces differ only in the linear system
of a step: (m + 1) unknowns on m features, or one per row with curvature, bordered by the
intercept, on a kernel matrix. The bordered system needs no inverse of the kernel matrix; the
paper's formula for its multiplier (before equation 14) does, and fails on duplicated rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular

from laconic._typing import Floats, Ints
from laconic.core.losses import Solution, WhyStopped
from laconic.kernel.rounded import LossRows, Rounded
from laconic.kernel.tuning import FEATURE_CHUNK, FIRST_WIDTH, PACKED, STALE, STUCK
from laconic.linear.solvers.rows import balanced


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
        room = np.empty((FEATURE_CHUNK, len(coef)))
        for start in range(0, len(out), FEATURE_CHUNK):
            part = self.features[start : start + FEATURE_CHUNK]
            room[: len(part)] = part
            np.dot(room[: len(part)], coef, out=out[start : start + FEATURE_CHUNK])
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
        from laconic.kernel._numba import sum_of_rows

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
        moved = np.flatnonzero(np.abs(curvature - used) > STALE * np.maximum(curvature, used))
        # taking old rows out costs as much as putting new ones in, and leaves rounding behind
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

    def _add_products(self, sign: float, rows: Ints, root: Floats) -> None:
        from laconic.kernel._numba import scaled_rows

        # whitening enlarges the rounding of products
        kind = self.features.dtype if self.lower is None else np.float64
        room = np.empty((min(PACKED, len(rows)), self.features.shape[1]), kind)
        for start in range(0, len(rows), PACKED):
            here = slice(start, start + PACKED)
            packed = room[: len(rows[here])]
            scaled_rows(self.features, rows[here], root[here], packed)
            self._products += sign * (packed.T @ packed)
            self._border += sign * (packed.T @ root[here].astype(kind))

    def move(self, point: Point, rounded: Rounded, ease: float) -> Move:
        H, border, total = self._hessian(rounded.curvature)
        gradient = point.coef + self.pull(rounded.slope)
        try:
            factor = sturdy_factor(H)
        except LinAlgError:
            # what was taken away again has left rounding behind: from the beginning
            self._curvature = np.zeros(0)
            H, border, total = self._hessian(rounded.curvature)
            factor = sturdy_factor(H)
        dw = -cho_solve(factor, gradient, check_finite=False)
        db = 0.0
        if self.fit_intercept:
            # the intercept by its Schur complement, so that the factor stays that of the features
            beside = cho_solve(factor, border, check_finite=False)
            bend = max(total - float(border @ beside), ease)
            db = -(float(rounded.slope.sum()) + float(border @ dw)) / bend
            dw -= db * beside
        coef = self._turned(dw).astype(self.features.dtype)
        dz = np.asarray(self.features @ coef, dtype=np.float64) + db
        return Move(dw, db, dz, float(point.coef @ dw), float(dw @ dw))


def sturdy_factor(M: Floats) -> Any:
    """Cholesky's factor; a matrix that only rounding makes indefinite is lifted by as much.

    What is lifted more than 1e-10 of its diagonal is indefinite, and said to be so.
    """
    lift = 1e-14 * np.diag(M)
    for _ in range(4):
        try:
            return cho_factor(M, lower=True, check_finite=False)
        except LinAlgError:
            M = M + np.diag(lift)
            lift = 30.0 * lift
    return cho_factor(M, lower=True, check_finite=False)


def line_search(
    at: Callable[[float], tuple[float, float, Rounded]], value: float, tilt: float
) -> tuple[float, Rounded] | None:
    """Length in (0, 1] along a convex line of slope ``tilt`` < 0; ``at`` gives value and slope."""
    total, end, there = at(1.0)
    if end <= 0.0 or total <= value + 1e-4 * tilt:
        return 1.0, there
    # the secant of the two slopes, kept away from the ends of the bracket below
    low, high, length = 0.0, 1.0, tilt / (tilt - end)
    best: tuple[float, float, Rounded] | None = None
    for _ in range(40):
        length = min(max(length, low + 0.05 * (high - low)), high - 0.05 * (high - low))
        total, end, there = at(length)
        if total < value and (best is None or total < best[0]):
            best = (total, length, there)
        low, high = (low, length) if end > 0 else (length, high)
        if best is not None and high - low <= 0.3 * high:
            break
        length = 0.5 * (low + high)
    return None if best is None else (best[1], best[2])


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


def anneal(
    space: Space,
    rows: LossRows,
    point: Point,
    *,
    tol: float,
    max_iter: int,
    done: int = 0,
    width: float = FIRST_WIDTH,
    share: Floats | None = None,
    part: float = 0.5,
) -> Solution:
    """Newton on rounded kinks, then on narrower ones with better multipliers.

    Stops at a gap of ``part * tol`` times the value; less than one leaves room for what the space
    itself neglects. ``Solution.point`` is a :class:`~laconic.kernel.newton.Point`;
    ``details`` holds ``slopes``, ``scores`` and the last ``width``.
    """
    if share is None:
        share = np.full(rows.n_rows, 0.5)
    best: Solution | None = None
    price, sharp, stuck, n_iter = np.inf, np.inf, 0, done
    why: WhyStopped = "max_iter"
    while best is None or n_iter < max_iter:
        value = 0.5 * point.norm + rows.value(point.z)
        aim = tol * max(value, rows.least)
        # far from the end it is the width that limits: steps need not be exact
        enough = min(sharp, max(0.1 * aim, 0.02 * min(price, 1e-2 * value)))
        # once the width is narrow enough, a look at the gap costs less than a step too many
        look = partial(_holds, space, rows, 0.95 * part * tol) if np.isfinite(sharp) else None
        left = max(max_iter - n_iter, 1)
        point, steps = descend(
            space, rows, point, width=width, share=share, enough=enough, max_iter=left, done_at=look
        )
        n_iter += max(steps, 1)
        now, price = _certified(space, rows, point, width, share, n_iter)
        if now.gap <= part * tol * max(now.value, rows.least) or n_iter >= max_iter:
            point = space.refreshed(point)
            now, price = _certified(space, rows, point, width, share, n_iter)
        stuck = stuck + 1 if best is not None and now.gap > 0.7 * best.gap else 0
        best = now if best is None or now.gap < best.gap else best
        if best.gap <= part * tol * max(best.value, rows.least):
            why = "gap"
            break
        if stuck >= STUCK:
            why = "stalled"
            break
        if price <= 0.6 * part * aim and enough > 1e-9 * aim:
            sharp = 1e-2 * enough
            continue
        share = rows.shares(point.z, width, share)
        width *= min(max((0.2 * aim / max(price, 1e-300)) ** 0.6, 0.1), 0.3)
        sharp = np.inf
    if why != "gap":
        # nothing is claimed from scores that have drifted
        slope, width = best.details["slopes"], best.details["width"]
        best, _ = _priced(space, rows, space.refreshed(best.point), slope, width, n_iter)
    return Solution(best.point, best.value, best.gap, n_iter, why, best.details)


def _holds(space: Space, rows: LossRows, tol: float, point: Point, rounded: Rounded) -> bool:
    slope = balanced(rounded.slope) if space.fit_intercept else rounded.slope
    found, _ = _priced(space, rows, point, slope, 0.0, 0)
    return found.gap <= tol * max(found.value, rows.least)


def _certified(
    space: Space, rows: LossRows, point: Point, width: float, share: Floats, n_iter: int
) -> tuple[Solution, float]:
    slope = rows.rounded(point.z, width, share).slope
    if space.fit_intercept:
        slope = balanced(slope)
    return _priced(space, rows, point, slope, width, n_iter)


def _priced(
    space: Space, rows: LossRows, point: Point, slope: Floats, width: float, n_iter: int
) -> tuple[Solution, float]:
    price = rows.price(point.z, slope)
    gap = price + 0.5 * max(space.apart(point, slope), 0.0)
    value = 0.5 * point.norm + rows.value(point.z)
    details = {"slopes": slope, "scores": point.z, "width": width}
    return Solution(point, value, gap, n_iter, "gap", details), price
