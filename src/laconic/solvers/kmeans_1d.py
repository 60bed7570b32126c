"""Exact k-means of points on a line, by dynamic programming.

On a line every group of an optimal clustering is an interval of the sorted points, so the
best k groups of the first j points follow from the best k - 1 groups of a prefix. The start of
the last group never decreases with j, which gives O(k n log n) for all numbers of groups up to k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class KMeansLine:
    """Best groups of points on a line for every number of groups 1..K.

    Attributes
    ----------
    distortion : array of shape (K,)
        ``distortion[k - 1]``: weighted sum of squared distances to the nearest of k centres.
    centers : tuple of arrays
        ``centers[k - 1]``: the k centres, increasing.
    """

    distortion: Floats
    centers: tuple[Floats, ...]

    def cuts(self, k: int) -> Floats:
        """Midpoints of neighbouring centres: ``searchsorted(cuts, x)`` is the nearest centre."""
        centers = self.centers[k - 1]
        return centers[:-1] / 2 + centers[1:] / 2


def kmeans_1d(values: ArrayLike, weights: ArrayLike | None, k: int) -> tuple[Floats, Floats]:
    """Centres and cuts of the exact weighted k-means of points on a line.

    When the points hold fewer than ``k`` distinct values, each value is its own centre and fewer
    than ``k`` centres come back.

    >>> centers, cuts = kmeans_1d([0.0, 1.0, 10.0, 11.0], None, 2)
    >>> centers, cuts
    (array([ 0.5, 10.5]), array([5.5]))
    """
    path = kmeans_1d_path(values, weights, k)
    return path.centers[-1], path.cuts(len(path.centers))


def kmeans_1d_path(values: ArrayLike, weights: ArrayLike | None, k_max: int) -> KMeansLine:
    """Exact weighted k-means of points on a line for every number of groups 1..k_max.

    The distortion comes from running sums of the centred points: its rounding error is about
    1e-16 of the distortion of one group. The centres are averaged group by group.
    """
    points, mass, scale, middle = _sorted_distinct(values, weights)
    if k_max < 1:
        raise ValueError(f"k must be at least 1, got {k_max}.")
    k_max = min(int(k_max), points.size)
    from laconic.solvers.hot_kmeans_1d import fill_starts

    sums = [np.concatenate(([0.0], np.cumsum(mass * points**power))) for power in (0, 1, 2)]
    _, starts = fill_starts(sums[0], sums[1], sums[2], k_max)
    distortion = np.empty(k_max)
    centers = []
    for k in range(1, k_max + 1):
        edges = _edges(starts, k, points.size)
        group = np.repeat(np.arange(k), np.diff(edges))
        total = np.bincount(group, mass, minlength=k)
        center = np.bincount(group, mass * points, minlength=k) / total
        distortion[k - 1] = np.sum(mass * (points - center[group]) ** 2)
        centers.append(center * scale + middle)
    # overflow to infinity is the honest answer for points near the largest float
    with np.errstate(over="ignore"):
        return KMeansLine(distortion * scale * scale, tuple(centers))


def _edges(starts: NDArray[np.int64], k: int, n: int) -> NDArray[np.int64]:
    edges = np.empty(k + 1, dtype=np.int64)
    edges[k] = n
    for group in range(k - 1, -1, -1):
        edges[group] = starts[group, edges[group + 1]]
    return edges


def _sorted_distinct(
    values: ArrayLike, weights: ArrayLike | None
) -> tuple[Floats, Floats, float, float]:
    """Distinct points, sorted, centred and scaled to [-1, 1], with the weight of each."""
    points = np.asarray(values, dtype=np.float64).ravel()
    mass = np.ones(points.size) if weights is None else np.asarray(weights, dtype=np.float64)
    if mass.shape != points.shape:
        raise ValueError(f"weights has shape {mass.shape}, values has shape {points.shape}.")
    if not np.all(np.isfinite(points)):
        raise ValueError("values has infinite or missing entries; drop them first.")
    if np.any(mass < 0) or not np.all(np.isfinite(mass)):
        raise ValueError("weights must be finite and not negative.")
    kept = mass > 0
    if not kept.any():
        raise ValueError("values has no point with a positive weight.")
    points, where = np.unique(points[kept], return_inverse=True)
    mass = np.bincount(where, mass[kept]).astype(np.float64)
    half = points / 2  # halves first: the difference of two huge points may overflow
    middle = float(half[0] + half[-1])
    scale = float(half[-1] - half[0]) or 1.0
    return (points / scale - middle / scale), mass, scale, middle
