"""Ranking as classification of pairs."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import Tags, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from laconic.estimators.contract import Accepts, Interval, StrOptions, TableReader, fit_context
from laconic.estimators.numeric_rows import numbers_of, numeric_target, read_numeric_training
from laconic.solvers.pair_sums import Pairs
from laconic.solvers.ranking import rank_pairs


class PairwiseRanker(TableReader):
    """Linear scores that put rows in the order of y, learned from all pairs of rows.

    Minimises, over coefficients w and without intercept::

        |w|^2 / 2 + C * sum over pairs with y_i > y_j of s_i s_j phi(w.x_i - w.x_j)

    over the pairs of one group. The pairs are never built: one evaluation takes O(n log n) time and
    O(n) memory, also for a real-valued y and also for the logistic loss.

    Parameters
    ----------
    loss : {"squared_hinge", "hinge", "logistic"}, default="squared_hinge"
        phi. All three bound the number of pairs in the wrong order.
    C : float, default=1.0
        Weight of the sum over pairs. There are up to n (n - 1) / 2 of them: scale C down with n if
        the penalty is to keep its strength.
    tol : float, default=1e-6
        The optimiser stops when the duality gap is at most ``tol`` times the objective.
    max_iter : int, default=100
        Newton iterations allowed.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    duality_gap_ : float
        The objective is at most this far above its minimum.
    objective_ : float
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Examples
    --------
    >>> import numpy as np
    >>> from laconic import PairwiseRanker
    >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [4.0, 0.0], [7.0, 1.0]])
    >>> ranker = PairwiseRanker().fit(X, [1, 2, 3, 4])
    >>> ranker.predict(X).argsort()
    array([0, 1, 2, 3])
    >>> ranker.score(X, [1, 2, 3, 4])
    1.0
    """

    _accepts = Accepts(categorical=False, missing=False, sparse=True)

    _parameter_constraints = {
        "loss": [StrOptions({"squared_hinge", "hinge", "logistic"})],
        "C": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        loss: str = "squared_hinge",
        C: float = 1.0,
        tol: float = 1e-6,
        max_iter: int = 100,
    ) -> None:
        self.loss = loss
        self.C = C
        self.tol = tol
        self.max_iter = max_iter

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> PairwiseRanker:
        """Learn the scores.

        Parameters
        ----------
        X : table of numbers, dense or CSR
        y : array-like of shape (n_rows,)
            A larger value is to get a larger score.
        sample_weight : array-like of shape (n_rows,), default=None
            A pair counts with the product of its rows' weights; a weight is a repetition.
        groups : array-like of shape (n_rows,), default=None
            Only rows of one group (one query) are compared with each other.
        """
        rows = read_numeric_training(self, X, y, sample_weight)
        if groups is not None:
            check_consistent_length(y, groups)
            groups = column_or_1d(groups)[rows.kept]
        pairs = Pairs.of(rows.y, rows.weight, groups)
        if pairs.levels.max() < 2:
            raise ValueError(
                "y holds one class of values only within each group, so there is no pair to learn "
                "from; give rows with different values of y."
            )
        matrix = rows.X
        if not issparse(matrix):
            # only differences of rows count, and they are more exact between centred rows
            matrix = matrix - np.average(matrix, axis=0, weights=rows.weight)
        found = rank_pairs(
            matrix, pairs, self.loss, self.C, tol=self.tol, max_iter=self.max_iter
        ).warn_if_short(type(self).__name__)
        self.coef_: NDArray[np.float64] = found.point
        self.duality_gap_ = found.gap
        self.objective_ = found.value
        self.n_iter_ = found.n_iter
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Scores: only their order, and within one group, means something."""
        check_is_fitted(self)
        return np.asarray(numbers_of(self._read_rows(X)) @ self.coef_)

    def score(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> float:
        """Share of the pairs in the right order (ties count half): the AUC when y is binary."""
        scores = self.predict(X)
        target = numeric_target(y)
        weight = self._read_weight(sample_weight, len(target))
        return Pairs.of(target, weight, groups).accuracy(scores)
