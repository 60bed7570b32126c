"""k-means with its number of groups chosen by a penalised distortion."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state

from laconic.estimators.contract import Accepts, Interval, StrOptions, TableReader, fit_context
from laconic.estimators.numeric_rows import numbers_of, read_numeric_training
from laconic.solvers.kmeans_path import bic_path, choose_k, kmeans_path, slope_path


class KMeansK(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, TableReader):
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
        Seed of the starts.

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
    >>> from laconic import KMeansK
    >>> draw = np.random.default_rng(0)
    >>> X = np.concatenate([draw.normal(c, 1.0, (50, 2)) for c in (0.0, 10.0, 20.0)])
    >>> KMeansK(k_max=6, random_state=0).fit(X).k_
    3
    """

    _accepts = Accepts(categorical=False, missing=False)

    _parameter_constraints = {
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
        # distinct sorted rows: a weight is then a repetition to the last start
        points, where = np.unique(rows.X, axis=0, return_inverse=True)
        weight = np.bincount(where.ravel(), rows.weight)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        path = kmeans_path(
            points,
            weight,
            self.k_max,
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=seed,
        )
        n = float(weight.sum())
        criterion = (
            slope_path(path) if self.criterion == "slope" else bic_path(path, n, points.shape[1])
        )
        self.k_ = choose_k(criterion, path, n)
        self.k_values_ = path.k_values
        self.distortion_path_ = path.distortion
        self.criterion_path_ = criterion
        self.centers_path_ = path.centers
        self.cluster_centers_: NDArray[np.float64] = path.centers[self.k_ - 1]
        self.inertia_ = float(path.distortion[self.k_ - 1])
        self.n_iter_ = path.n_iter[self.k_ - 1]
        self.labels_ = self.predict(X)
        self._n_features_out = self.k_
        return self

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Nearest centre of each row."""
        return np.asarray(self._distances(X).argmin(axis=1))

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Distance of each row to each centre."""
        return self._distances(X)

    def _distances(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(cdist(numbers_of(self._read_rows(X)), self.cluster_centers_))
