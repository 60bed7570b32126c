"""k-means for every number of groups, and the choice among them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from laconic.solvers.kmeans_1d import kmeans_1d_path

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class KMeansPath:
    """Best centres found for k = 1..K, with J(k), the sum of squared distances to them."""

    centers: tuple[Floats, ...]
    distortion: Floats
    sizes: tuple[Floats, ...]
    n_iter: tuple[int, ...]

    @property
    def k_values(self) -> NDArray[np.int64]:
        return np.arange(1, len(self.centers) + 1)


def kmeans_path(
    points: Floats,
    weight: Floats,
    k_max: int,
    *,
    n_init: int = 10,
    max_iter: int = 300,
    tol: float = 1e-4,
    random_state: int | None = None,
) -> KMeansPath:
    """scikit-learn's k-means along k on distinct points; exact when the points lie on a line.

    Each k starts ``n_init`` times from k-means++ and once from the centres of k - 1 with the point
    that costs most as a new centre; the smallest distortion is kept, so J never increases.
    """
    k_max = min(k_max, len(points))
    if points.shape[1] == 1:
        line = kmeans_1d_path(points[:, 0], weight, k_max)
        centers = tuple(center[:, None] for center in line.centers)
        sizes = tuple(_sizes(points, weight, center) for center in centers)
        return KMeansPath(centers, line.distortion, sizes, (1,) * k_max)
    options = {"max_iter": max_iter, "tol": tol, "random_state": random_state}
    found: list[Floats] = [np.average(points, axis=0, weights=weight)[None]]
    n_iter = [1]
    distortion = [float(weight @ np.square(points - found[0]).sum(axis=1))]
    # one thread: the order of scikit-learn's parallel sums would change the last digits
    with threadpool_limits(limits=1, user_api="openmp"):
        for k in range(2, k_max + 1):
            costs = weight * cdist(points, found[-1], "sqeuclidean").min(axis=1)
            warm = np.vstack([found[-1], points[np.argmax(costs)]])
            runs = [
                KMeans(k, init=warm, n_init=1, **options).fit(points, sample_weight=weight),
                KMeans(k, n_init=n_init, **options).fit(points, sample_weight=weight),
            ]
            best = min(runs, key=lambda run: float(run.inertia_))
            found.append(np.asarray(best.cluster_centers_))
            distortion.append(float(best.inertia_))
            n_iter.append(int(best.n_iter_))
    sizes = tuple(_sizes(points, weight, center) for center in found)
    return KMeansPath(tuple(found), np.array(distortion), sizes, tuple(n_iter))


def _sizes(points: Floats, weight: Floats, centers: Floats) -> Floats:
    nearest = cdist(points, centers, "sqeuclidean").argmin(axis=1)
    return np.bincount(nearest, weight, minlength=len(centers)).astype(np.float64)


def bic_path(path: KMeansPath, n: float, d: int) -> Floats:
    """n d log(J / (n d)) + 2 sum_k n_k log(n / n_k) + K (d + 1) log n, for each k.

    Twice the negative log-likelihood of spherical gaussians of one width, each row in its group,
    plus the price of the parameters. The middle term, the cost of saying which group, is often left
    out; without it cutting one gaussian in two lowers the criterion by about 0.64 n however large
    n is, and no number of groups is ever enough.
    """
    k = path.k_values
    with np.errstate(divide="ignore"):
        fit = n * d * np.log(path.distortion / (n * d))
    naming = np.array(
        [2.0 * np.sum(size * np.log(n / np.maximum(size, 1e-300))) for size in path.sizes]
    )
    return np.asarray(fit + naming + k * (d + 1) * np.log(n))


def slope_path(path: KMeansPath) -> Floats:
    """log J(k) + 2 slope log k, the slope read at the end of the path (Birgé and Massart's way).

    Within one group k centres leave a distortion that falls like k^(-2/d), so the end of the path
    is straight in logarithms; on J(k) itself it is not, and its slope there, the usual reading of
    the heuristic, is so small that it rarely stops before the end. The end is the upper half of the
    path and must lie above the number of groups sought.
    """
    k, J = path.k_values, path.distortion
    with np.errstate(divide="ignore"):
        log_k, log_J = np.log(k), np.log(J)
    end = (k > len(k) // 2) & (J > 0)
    if np.count_nonzero(end) < 2:
        return log_J
    slope = -float(np.polyfit(log_k[end], log_J[end], 1)[0])
    return np.asarray(log_J + 2.0 * max(slope, 0.0) * log_k)


def choose_k(criterion: Floats, path: KMeansPath, n: float) -> int:
    """The smallest criterion; a perfect fit counts only when groups hold two rows on average."""
    usable = (path.distortion > 0) | (path.k_values * 2 <= n) | (path.k_values == 1)
    return int(path.k_values[usable][np.argmin(criterion[usable])])
