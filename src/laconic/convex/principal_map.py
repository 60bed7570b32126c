"""Principal components to look at: rows on a map, columns on a circle."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from laconic._typing import Floats
from laconic.convex.risk import read_numeric_training
from laconic.core.contract import (
    Accepts,
    Interval,
    StrOptions,
    TableReader,
    fit_context,
    numbers_of,
)


class PrincipalMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, TableReader):  # type: ignore[misc]
    """Principal components with the number kept by a stated rule, and what the maps need.

    The centred (and, by default, standardised) table is X = U S V', by scikit-learn's PCA. Rows of
    the map are X V = U S; columns of the table are the principal variables X'U = V S, which for
    standardised columns are their correlations with the components, up to sqrt(n), and lie in the
    unit ball (Bach's lecture notes, 2014, section 5.1.3, put them on the sphere, where they are
    only when all components are kept). The best approximation of rank k is U_k S_k V_k', with
    squared error sum of s_j^2 over j > k.

    Parameters
    ----------
    n_components : int, float in (0, 1), {"broken_stick", "kaiser"} or None, default="broken_stick"
        Components kept by ``transform``. A float keeps the fewest whose share of the variance is
        at least that much. "broken_stick" keeps the leading components whose share is above that
        of a stick broken at random, sum_{i >= j} 1 / (i r) for the j-th of r; "kaiser" keeps those
        above the average share. Rules keep at least one. None keeps all.
    standardize : bool, default=True
        Divide the centred columns by their standard deviation.

    Attributes
    ----------
    n_components_ : int
    components_ : ndarray of shape (n_components, n_features)
    axes_ : ndarray of shape (r, n_features)
        All the components, of which ``components_`` are the first.
    singular_values_ : ndarray of shape (r,)
    explained_variance_ratio_ : ndarray of shape (r,)
    rank_errors_ : ndarray of shape (r + 1,)
        ``rank_errors_[k]``: squared error of the best approximation of rank k, in the units of the
        centred (and standardised) table.
    principal_variables_ : ndarray of shape (n_features, r)
        V S.
    correlations_ : ndarray of shape (n_features, r)
        Correlation of each column with each component; zero for a constant column.
    mean_, scale_ : ndarray of shape (n_features,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Examples
    --------
    >>> import numpy as np
    >>> from laconic.convex import PrincipalMap
    >>> draw = np.random.default_rng(0)
    >>> x = draw.normal(size=200)
    >>> X = np.column_stack([x, -x, draw.normal(size=200)]) + 0.1 * draw.normal(size=(200, 3))
    >>> found = PrincipalMap().fit(X)
    >>> found.n_components_
    2
    >>> found.correlations_[:, 0].round(2)
    array([ 1.  , -1.  , -0.11])
    """

    _accepts = Accepts(categorical=False, missing=False)

    _parameter_constraints: dict[str, list[Any]] = {
        "n_components": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
            StrOptions({"broken_stick", "kaiser"}),
            None,
        ],
        "standardize": ["boolean"],
    }

    def __init__(
        self, n_components: int | float | str | None = "broken_stick", standardize: bool = True
    ) -> None:
        self.n_components = n_components
        self.standardize = standardize

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> PrincipalMap:
        """Find the components of a table of numbers; ``y`` is ignored."""
        table = read_numeric_training(self, X, None, needs_y=False).X
        n = len(table)
        if n < 2:
            raise ValueError(f"PrincipalMap needs at least two rows, got n_samples = {n}.")
        self.mean_: Floats = table.mean(axis=0)
        # in units of the largest cell: the squares of 1e-215 are zero
        size = np.abs(table).max(axis=0)
        spread = (table / np.where(size > 0.0, size, 1.0)).std(axis=0) * size
        # a constant column may show a rounding-sized deviation
        constant = spread <= 1e-14 * size
        self.scale_: Floats = np.where(constant | (not self.standardize), 1.0, spread)
        centred = (table - self.mean_) / self.scale_
        centred[:, constant] = 0.0
        with np.errstate(invalid="ignore"):  # shares of a variance of zero, set right below
            engine = PCA(svd_solver="full").fit(centred)
        self.axes_: Floats = engine.components_ * self._signs(engine.components_)[:, None]
        self.singular_values_: Floats = engine.singular_values_
        squares = self.singular_values_**2
        total = squares.sum()
        self.explained_variance_ratio_ = squares / total if total > 0 else np.zeros_like(squares)
        self.rank_errors_ = np.append(np.cumsum(squares[::-1])[::-1], 0.0)
        self.principal_variables_ = self.axes_.T * self.singular_values_
        norms = np.where(constant, np.inf, np.linalg.norm(centred, axis=0))
        self.correlations_ = self.principal_variables_ / norms[:, None]
        self.n_components_ = kept_components(self.explained_variance_ratio_, self.n_components)
        self.components_ = self.axes_[: self.n_components_]
        self._n_features_out = self.n_components_
        return self

    def _signs(self, axes: Floats) -> Floats:
        """The largest entry of an axis is positive; of equal ones, as two columns always have,
        that of the column with the largest spread and mean, so that rounding decides nothing.
        Columns that hold the same numbers in other rows are told apart by their names."""
        size = np.abs(axes)
        tied = size >= (1.0 - 1e-9) * size.max(axis=1, keepdims=True)
        names = getattr(self, "feature_names_in_", np.arange(len(self.mean_)))
        by_content = np.lexsort((np.asarray(names, dtype=str), self.mean_, self.scale_))[::-1]
        first = by_content[tied[:, by_content].argmax(axis=1)]
        return np.where(axes[np.arange(len(axes)), first] < 0.0, -1.0, 1.0)

    def transform(self, X: Any) -> Floats:
        """Rows in the space of the components kept."""
        return self.row_scores(X, self.n_components_)

    def row_scores(self, X: Any, k: int) -> Floats:
        """Rows on the first k components, kept or not."""
        check_is_fitted(self)
        k = self._checked_rank(k)
        rows = (numbers_of(self._read_rows(X)) - self.mean_) / self.scale_
        # a row's sums must not depend on the other rows, as those of a matrix product may
        return np.asarray(np.einsum("ij,kj->ik", rows, self.axes_[:k]))

    def reconstruct(self, X: Any, k: int | None = None) -> Floats:
        """Rows rebuilt from their first k components (those kept by default), in X's units."""
        k = self.n_components_ if k is None else k
        if k == 0:
            return np.tile(self.mean_, (self._read_rows(X).n_rows, 1))
        return self.mean_ + self.scale_ * (self.row_scores(X, k) @ self.axes_[:k])

    def inverse_transform(self, scores: Any) -> Floats:
        """Rows rebuilt from the scores that ``transform`` gives."""
        check_is_fitted(self)
        return np.asarray(self.mean_ + self.scale_ * (np.asarray(scores) @ self.components_))

    def _checked_rank(self, k: int) -> int:
        if not 1 <= k <= len(self.axes_):
            raise ValueError(f"k must be between 1 and {len(self.axes_)}, got {k}.")
        return int(k)


def kept_components(share: Floats, rule: int | float | str | None) -> int:
    """Number of components to keep, given the share of the variance of each, decreasing."""
    r = len(share)
    if rule is None:
        return r
    if rule == "kaiser":
        return max(int(np.count_nonzero(share > share.mean())), 1)
    if rule == "broken_stick":
        pieces = np.cumsum((1.0 / np.arange(1, r + 1))[::-1])[::-1] / r
        return max(int(np.argmin(np.append(share > pieces, False))), 1)
    if isinstance(rule, Integral):
        if rule > r:
            raise ValueError(
                f"n_components={rule} is more than the {r} components of this table; ask for less."
            )
        return int(rule)
    # the last cumulated share may fall short of one by rounding
    return min(int(np.searchsorted(np.cumsum(share), float(rule) - 1e-12)) + 1, r)
