"""Narrower and narrower kinks until the duality gap of the true losses is small."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from laconic.solvers.kernel_newton import Point, Space, descend
from laconic.solvers.kernel_rows import LossRows, Rounded, balanced
from laconic.solvers.solution import Solution, WhyStopped

Floats = NDArray[np.float64]

COARSE_WIDTH, FIRST_WIDTH = 0.3, 0.1
"""Width of the rounded kinks on part of the rows, and at the start on all of them."""

_STUCK = 6


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
    itself neglects. ``Solution.point`` is a :class:`~laconic.solvers.kernel_newton.Point`;
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
        if stuck >= _STUCK:
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
