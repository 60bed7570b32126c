"""Paths of parts from all their entries to none, and the cheapest steps over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from laconic._typing import Floats, Ints
from laconic.choose.page.parts import Part


@dataclass(frozen=True)
class Path:
    """States of a part, from all entries to none: sizes, errors, the order in which they leave."""

    part: Part
    sizes: Ints
    errors: Floats
    order: Ints
    mass: Floats

    def at(self, state: int) -> Part | None:
        """The part at a state; nothing at the last one."""
        part = self.part
        if state == len(self.sizes) - 1:
            return None
        if state == 0:
            return part
        if part.kind == "shape":
            stays = np.setdiff1d(np.arange(len(part.values)), self.order[:state])
            return replace(part, places=part.places[stays], values=part.values[stays])
        up = np.argsort(part.values, kind="stable")
        starts = np.setdiff1d(np.arange(len(up)), self.order[:state])
        group = np.empty(len(up), dtype=np.int64)
        group[up] = np.searchsorted(starts, np.arange(len(up)), side="right") - 1
        total = np.bincount(group, self.mass)
        means = np.bincount(group, self.mass * part.values) / total
        places = np.where(part.places < 0, -1, group[part.places])
        return replace(part, places=places, values=means)


def shape_path(part: Part, mass: Floats) -> Path:
    """Knots leave one by one; the polygon through those that stay is the shape."""
    from laconic.choose.page._numba import leave_in_turn

    x, v = part.knots[part.places], part.values
    order, paid = leave_in_turn(True, *chord_sums(x, v, mass))
    return _path_of(part, order, paid, mass, float(mass @ (v - mass @ v / mass.sum()) ** 2))


def chord_sums(x: Floats, v: Floats, mass: Floats) -> tuple[Floats, Floats, Floats]:
    """Places along the axis, heights, and sums of moments up to each of them.

    With u the place and d the height, both from point a, and s the slope of a chord from there,
    sum m (d - s u)^2 = sum m d^2 - 2 s sum m u d + s^2 sum m u^2: in constant time from these.
    """
    wide = x[-1] / 2.0 - x[0] / 2.0
    t = (x / 2.0 - x[0] / 2.0) / wide if wide > 0.0 else np.zeros(len(x))
    h = v - v.mean()
    moments = np.stack([np.ones(len(t)), t, h, t * t, t * h, h * h]) * mass
    return t, h, np.vstack([np.zeros(6), np.cumsum(moments, axis=1).T])


def level_path(part: Part, mass: Floats) -> Path:
    """Neighbours in the order of their values join; beside a shape, what is left becomes zero."""
    from laconic.choose.page._numba import leave_in_turn

    up = np.argsort(part.values, kind="stable")
    m, v = mass[up], part.values[up]
    weight, first = (np.append(0.0, np.cumsum(own)) for own in (m, m * v))
    order, paid = leave_in_turn(False, weight, first, np.empty((0, 6)))
    centre = 0.0 if part.kind == "apart" else first[-1] / weight[-1]
    return _path_of(part, order, paid, mass, float(m @ (v - centre) ** 2))


def whole_path(part: Part, error: float) -> Path:
    """All or nothing."""
    sizes, errors = np.array([part.price, 0]), np.array([0.0, error])
    return Path(part, sizes, errors, np.empty(0, dtype=np.int64), np.ones(1))


def _path_of(part: Part, order: Ints, paid: Floats, mass: Floats, nothing: float) -> Path:
    errors = np.append(0.0, np.cumsum(paid))
    if part.kind == "levels":
        order, errors = order[:-1], errors[:-1]  # one level for all is no term
    sizes = np.append(len(part.values) - np.arange(len(errors)), 0)
    return Path(part, sizes, np.append(errors, max(nothing, errors[-1])), order, mass)


def allocated(paths: Sequence[Path], most: float) -> list[int]:
    """The state of each path: the cheapest steps over all of them, for at most ``most`` entries."""
    steps = []
    for i, path in enumerate(paths):
        for a, b in pairwise(lower_hull(path.sizes.tolist(), path.errors.tolist())):
            spared = int(path.sizes[a] - path.sizes[b])
            steps.append((float(path.errors[b] - path.errors[a]) / spared, i, spared, b))
    steps.sort()
    states, size = [0] * len(paths), sum(int(path.sizes[0]) for path in paths)
    # a shape that leaves before the values apart from it would still be drawn: it waits for them
    apart = {path.part.owner: i for i, path in enumerate(paths) if path.part.kind == "apart"}
    waiting: dict[int, tuple[int, int, int]] = {}
    for _, i, spared, state in steps:
        if size <= most:
            break
        last = state == len(paths[i].sizes) - 1
        beside = apart.get(paths[i].part.owner, i) if last else i
        if beside != i and states[beside] < len(paths[beside].sizes) - 1:
            waiting[beside] = i, spared, state
            continue
        size -= spared
        states[i] = state
        if last and i in waiting:
            j, also, end = waiting.pop(i)
            size -= also
            states[j] = end
    return states


def lower_hull(sizes: Sequence[int], errors: Sequence[float]) -> list[int]:
    """Points on the lower convex hull, from the largest size to none.

    >>> lower_hull([4, 3, 2, 0], [0.0, 3.0, 3.5, 8.0])
    [0, 2, 3]
    """
    hull = [0]
    for i in range(1, len(sizes)):
        while len(hull) > 1:
            a, b = hull[-2:]
            before = (errors[b] - errors[a]) * (sizes[b] - sizes[i])
            if before < (errors[i] - errors[b]) * (sizes[a] - sizes[b]):
                break
            hull.pop()
        hull.append(i)
    return hull
