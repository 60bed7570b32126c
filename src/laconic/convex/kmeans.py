"""KMeansK: k-means for every number of groups, and the choice among them.

scikit-learn's k-means does the work, except on a line, where every group of an optimal clustering
is an interval of the sorted points: the best k groups of the first j points follow from the best
k - 1 groups of a prefix, and the start of the last group never decreases with j. That dynamic
program is exact, in O(k n log n) for all numbers of groups up to k.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from laconic._typing import Floats, Ints
from laconic.convex.risk import read_numeric_training
from laconic.core.contract import (
    Accepts,
    Interval,
    StrOptions,
    TableReader,
    fit_context,
    numbers_of,
)
from laconic.data.row_keys import content_keys
from laconic.data.tables.columns import Table


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
    from laconic.convex._numba import fill_starts

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


def _edges(starts: Ints, k: int, n: int) -> Ints:
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


@dataclass(frozen=True)
class KMeansPath:
    """Best centres found for k = 1..K, with J(k), the sum of squared distances to them."""

    centers: tuple[Floats, ...]
    distortion: Floats
    sizes: tuple[Floats, ...]
    n_iter: tuple[int, ...]

    @property
    def k_values(self) -> Ints:
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
    from sklearn.cluster import KMeans  # loads much of scikit-learn

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
    held = [size[size > 0] for size in path.sizes]
    naming = np.array([2.0 * np.sum(size * np.log(n / size)) for size in held])
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


class KMeansK(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, TableReader):  # type: ignore[misc]
    """k-means that chooses its number of groups.

    scikit-learn's KMeans is run for every k up to ``k_max``, with restarts and from the centres of
    k - 1; a column alone is solved exactly by dynamic programming. The k kept minimises a penalised
    distortion, where J(k) is the weighted sum of squared distances to the nearest of k centres
    (Bach's lecture notes, 2014, section 4.1, sum over k up to n where K is meant).

    Parameters
    ----------
    k_max : int, default=10
        Largest number of groups tried (at most the number of distinct rows).
    criterion : {"bic", "slope"}, default="bic"
        "bic": n d log(J / (n d)) + 2 sum_k n_k log(n / n_k) + k (d + 1) log n, the likelihood of
        round gaussians of one width, each row in its group. "slope": log J + 2 slope log k, with
        the slope of log J over the upper half of the path, which must lie above the number of
        groups.
    n_init : int, default=5
        Random starts for each k.
    max_iter : int, default=300
        Iterations of one start.
    tol : float, default=1e-4
        Relative move of the centres at which a start ends.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts. None is a fixed seed: the same table gives the same groups.

    Attributes
    ----------
    k_ : int
        Number of groups kept.
    cluster_centers_ : ndarray of shape (k, n_features)
    labels_ : ndarray of shape (n_rows,)
    inertia_ : float
        J at ``k_``.
    k_values_, distortion_path_, criterion_path_ : ndarray of shape (K,)
        k, J(k) and the criterion along the path.
    centers_path_ : tuple of ndarray
        Centres for each k.
    n_iter_ : int
        Iterations of the start that gave the centres kept.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Examples
    --------
    >>> import numpy as np
    >>> from laconic.convex import KMeansK
    >>> draw = np.random.default_rng(0)
    >>> X = np.concatenate([draw.normal(c, 1.0, (50, 2)) for c in (0.0, 10.0, 20.0)])
    >>> KMeansK(k_max=6, random_state=0).fit(X).k_
    3
    """

    _accepts = Accepts(categorical=False, missing=False)

    _parameter_constraints: dict[str, list[Any]] = {
        "k_max": [Interval(Integral, 1, None, closed="left")],
        "criterion": [StrOptions({"bic", "slope"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        k_max: int = 10,
        criterion: str = "bic",
        *,
        n_init: int = 5,
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: Any = None,
    ) -> None:
        self.k_max = k_max
        self.criterion = criterion
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KMeansK:
        """Group the rows; ``y`` is ignored and a weight is a repetition."""
        rows = read_numeric_training(self, X, None, sample_weight, needs_y=False)
        # distinct rows, sorted by columns in an order of their content: a weight is then a
        # repetition, and neither the order of rows nor that of columns changes a start
        order = self._content_order(rows.X)
        points, where = np.unique(rows.X[:, order], axis=0, return_inverse=True)
        weight = np.bincount(where.ravel(), rows.weight).astype(np.float64)
        given = 0 if self.random_state is None else self.random_state
        seed = int(check_random_state(given).randint(np.iinfo(np.int32).max))
        path = kmeans_path(
            points, weight, self.k_max, n_init=self.n_init, max_iter=self.max_iter, tol=self.tol,
            random_state=seed,
        )  # fmt: skip
        n = float(weight.sum())
        criterion = (
            slope_path(path) if self.criterion == "slope" else bic_path(path, n, points.shape[1])
        )
        self.k_ = choose_k(criterion, path, n)
        self.k_values_ = path.k_values
        self.distortion_path_ = path.distortion
        self.criterion_path_ = criterion
        self.centers_path_ = tuple(centers[:, np.argsort(order)] for centers in path.centers)
        self.cluster_centers_ = self.centers_path_[self.k_ - 1]
        self.inertia_ = float(path.distortion[self.k_ - 1])
        self.n_iter_ = path.n_iter[self.k_ - 1]
        self.labels_ = self.predict(X)
        self._n_features_out = self.k_
        return self

    def _content_order(self, X: Floats) -> Ints:
        schema = self.schema_
        table = Table(schema.names, schema.kinds, schema.categories, matrix=X)
        return np.argsort(content_keys(table, np.zeros(len(X), dtype=np.int64)), kind="stable")

    def predict(self, X: Any) -> Ints:
        """Nearest centre of each row."""
        return np.asarray(self._distances(X).argmin(axis=1))

    def transform(self, X: Any) -> Floats:
        """Distance of each row to each centre."""
        return self._distances(X)

    def _distances(self, X: Any) -> Floats:
        return np.asarray(cdist(numbers_of(self._read_rows(X)), self.cluster_centers_))
