"""MinimaxPriorClassifier: the least favourable prior over the posteriors of any classifier."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from laconic._typing import Floats
from laconic.core.contract import (
    Accepts,
    Interval,
    TableClassifier,
    Training,
    fit_context,
    take_rows,
)
from laconic.core.folds import folds_of, seed_of
from laconic.minimax.criterion import PosteriorLaws, bayes_costs, checked_costs
from laconic.minimax.prior_box import PriorBox
from laconic.minimax.solver import solve_minimax


class MinimaxPriorClassifier(MetaEstimatorMixin, TableClassifier):  # type: ignore[misc]
    r"""Decide with any probability model under the least favourable class prior.

    The posteriors of the model on rows held out of its fit stand for the laws of the classes,
    every row a profile; the prior :math:`\pi^*` in the box that maximises the Bayes risk is found
    exactly, and rows are decided by
    :math:`\arg\min_l \sum_k L_{kl} \pi^*_k \, g_k(x) / \hat\pi_k`, with :math:`g` the posterior of
    the model refitted on all rows. Scores that vary with the row leave no ties to randomise.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``
    costs : array-like of shape (K, K), frame or dict, default=None
        ``costs[k, l]``: cost of deciding class l for a row of class k; or ``{"fp": 1, "fn": 10}``,
        or ``{true: {decided: cost}}``. None counts errors.
    prior_bounds : array-like of shape (K, 2) or dict, default=None
        Least and largest proportion of each class. None: any class mix.
    cv : int, splitter or iterable of (train, test), default=5
        Folds that give each row a posterior from a model that has not seen it. A number makes
        folds by the rows' values: equal rows stay together.
    tol : float, default=1e-8
        Duality gap at which the optimiser stops.
    max_iter : int, default=5000
    random_state : int, RandomState or None, default=None
        Key of the folds, which are hashes of the rows' values and this key. None is a fixed key:
        the same table gives the same folds.

    Attributes
    ----------
    estimator_ : classifier
        The model fitted on all rows.
    classes_ : ndarray of shape (K,)
    cost_matrix_ : ndarray of shape (K, K)
    least_favorable_prior_ : ndarray of shape (K,)
    minimax_risk_ : float
        Bayes risk at the least favourable prior, if the posteriors are right.
    duality_gap_ : float
    class_risks_ : ndarray of shape (K,)
        Class risks of the rule, if the posteriors are right.
    class_risks_oof_ : ndarray of shape (K,)
        Class risks of the rule on the labels of the held-out rows: the numbers to believe.
    bayes_risk_ : float
        Bayes risk at the class proportions of the training rows, if the posteriors are right.
    class_prior_ : ndarray of shape (K,)
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    MinimaxClassifier : the exact minimax rule over discrete profiles.
    laconic.DecisionClassifier : the same correction for a class mix that is known.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from laconic.minimax import MinimaxPriorClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = (rng.random(2000) < 0.1).astype(int)
    >>> X = rng.normal(size=(2000, 2)) + y[:, None]
    >>> model = MinimaxPriorClassifier(LogisticRegression()).fit(X, y)
    >>> model.least_favorable_prior_.round(1)
    array([0.5, 0.5])
    """

    _parameter_constraints = {
        "estimator": "no_validation",
        "costs": ["array-like", dict, None],
        "prior_bounds": ["array-like", dict, None],
        "cv": ["cv_object"],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any,
        costs: Any = None,
        *,
        prior_bounds: Any = None,
        cv: Any = 5,
        tol: float = 1e-8,
        max_iter: int = 5000,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.costs = costs
        self.prior_bounds = prior_bounds
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @property
    def _accepts(self) -> Accepts:  # type: ignore[override]
        inner = get_tags(self.estimator).input_tags
        return Accepts(categorical=True, missing=inner.allow_nan, sparse=inner.sparse)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        if inner.classifier_tags is not None:
            tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
        return tags

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MinimaxPriorClassifier:
        """Fit the model on folds and on all rows, and find the least favourable prior."""
        if not hasattr(self.estimator, "predict_proba"):
            raise TypeError(
                f"estimator must have predict_proba, {type(self.estimator).__name__} has not; wrap "
                "it in CalibratedClassifierCV, or choose a model that gives probabilities."
            )
        rows = self._read_training(X, y, sample_weight)
        weighted = sample_weight is not None
        if weighted and not has_fit_parameter(self.estimator, "sample_weight"):
            raise ValueError(
                f"{type(self.estimator).__name__}.fit takes no sample_weight; leave the weights "
                "out, or choose a model that takes them."
            )
        kept = X if rows.n_rows == len(np.asarray(y)) else take_rows(X, rows.kept)
        costs = checked_costs(self.costs, self.classes_)
        box = PriorBox.of(self.prior_bounds, len(self.classes_), self.classes_)
        folds = folds_of(self.cv, rows, len(np.asarray(y)), seed_of(self.random_state))
        seen, posterior = self._held_out(kept, rows, folds, weighted)
        self.estimator_ = self._fitted(kept, rows, np.arange(rows.n_rows), weighted)
        self._solve(posterior, rows.y[seen], rows.weight[seen], costs, box)
        return self

    def _fitted(self, X: Any, rows: Training, places: Any, weighted: bool) -> Any:
        part = X if len(places) == rows.n_rows else take_rows(X, places)
        given = {"sample_weight": rows.weight[places]} if weighted else {}
        return clone(self.estimator).fit(part, self.classes_[rows.y[places]], **given)

    def _held_out(
        self, X: Any, rows: Training, folds: list[tuple[Any, Any]], weighted: bool
    ) -> tuple[Any, Floats]:
        """Rows that some fold holds out, and their posteriors."""
        total = np.zeros((rows.n_rows, len(self.classes_)))
        times = np.zeros(rows.n_rows)
        for train, test in folds:
            if len(np.unique(rows.y[train])) < 2 or not len(test):
                continue
            model = self._fitted(X, rows, train, weighted)
            total[test] += self._aligned(model, take_rows(X, test))
            times[test] += 1
        seen = np.flatnonzero(times)
        if not len(np.unique(rows.y[seen])) == len(self.classes_):
            raise ValueError(
                "cv leaves a class without held-out rows, or a fold with one class only: give "
                "each class at least two different rows, or other folds."
            )
        return seen, total[seen] / times[seen, None]

    def _aligned(self, model: Any, X: Any) -> Floats:
        posterior = np.asarray(model.predict_proba(X), dtype=np.float64)
        out = np.zeros((len(posterior), len(self.classes_)))
        out[:, np.searchsorted(self.classes_, model.classes_)] = posterior
        return out

    def _solve(
        self, posterior: Floats, y: Any, weight: Floats, costs: Floats, box: PriorBox
    ) -> None:
        n_classes = len(self.classes_)
        shares = np.bincount(y, weight, minlength=n_classes)
        self.class_prior_ = shares / shares.sum()
        self.matched_ = PosteriorLaws.match(posterior, weight, self.class_prior_)
        laws = self.matched_.laws(posterior, weight)
        found = solve_minimax(laws, costs, box, tol=self.tol, max_iter=self.max_iter)
        found.warn_if_short(type(self).__name__)
        self.cost_matrix_ = costs
        self.least_favorable_prior_: Floats = found.point
        self.minimax_risk_: float = found.details["lower_bound"]
        self.duality_gap_ = found.gap
        self.n_iter_ = found.n_iter
        self.bayes_risk_ = float(bayes_costs(laws.law, self.class_prior_, costs).min(axis=1).sum())
        decided = bayes_costs(self.matched_.likelihood(posterior), found.point, costs).argmin(
            axis=1
        )
        self.class_risks_ = (costs.T[decided] * laws.law).sum(axis=0)
        paid = np.bincount(y, weight * costs[y, decided], minlength=n_classes)
        self.class_risks_oof_ = paid / shares

    def _joint(self, X: Any) -> Floats:
        """pi*_k p_k(x), up to a factor of x."""
        check_is_fitted(self)
        self._read_rows(X)
        posterior = self._aligned(self.estimator_, self._columns_of_fit(X))
        likelihood = self.matched_.likelihood(posterior)
        joint = likelihood * self.least_favorable_prior_
        # a row whose only possible classes have a least favourable prior of zero
        silent = ~joint.any(axis=1)
        joint[silent] = likelihood[silent]
        return joint

    def _columns_of_fit(self, X: Any) -> Any:
        """The columns of the fit, in their order, when columns have names."""
        import narwhals as nw

        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if self.schema_.named and isinstance(frame, nw.DataFrame):
            return frame.select(list(self.schema_.names)).to_native()
        return X

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities under the least favourable prior."""
        joint = self._joint(X)
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of least expected cost under the least favourable prior."""
        costs = self.predict_proba(X) @ self.cost_matrix_
        return np.asarray(self.classes_[costs.argmin(axis=1)])
