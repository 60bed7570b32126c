"""MinimaxPriorClassifier: the least favourable prior over the posteriors of any classifier."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from laconic._typing import Floats
from laconic.core.contract import (
    Accepts,
    Interval,
    TableClassifier,
    Training,
    fit_context,
    take_rows,
)
from laconic.core.decisions import expected_costs
from laconic.core.folds import folds_of
from laconic.data.row_keys import seed_of
from laconic.data.tables.columns import Schema, Table, shown
from laconic.decide.metadata import passed_to_fit, rows_of_metadata
from laconic.minimax.criterion import PosteriorLaws, PriorBox, bayes_costs, checked_costs
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
    positive : class, default=None
        The class that "fp" and "fn" are about; needed for labels other than 0/1, -1/+1,
        False/True and no/yes.
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
        "positive": "no_validation",
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
        positive: Any = None,
        cv: Any = 5,
        tol: float = 1e-8,
        max_iter: int = 5000,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.costs = costs
        self.positive = positive
        self.prior_bounds = prior_bounds
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    _accepts = Accepts(categorical=True, missing=True, sparse=True)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        if inner.classifier_tags is not None:
            tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
        return tags

    def get_metadata_routing(self) -> MetadataRouter:
        """``fit`` passes metadata on to the model's ``fit`` and to a splitter's ``split``."""
        router = MetadataRouter(owner=self).add_self_request(self)
        fits = MethodMapping().add(caller="fit", callee="fit")
        router.add(estimator=self.estimator, method_mapping=fits)
        if hasattr(self.cv, "split"):
            splits = MethodMapping().add(caller="fit", callee="split")
            router.add(splitter=self.cv, method_mapping=splits)
        return router

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any
    ) -> MinimaxPriorClassifier:
        """Fit the model on folds and on all rows, and find the least favourable prior.

        Parameters
        ----------
        X : rows, as the model accepts them
            A table with missing cells, a sparse matrix, a list of texts, ...
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), default=None
            Weights the rows here, and is passed to the model.
        **fit_params : dict
            Passed to the model's ``fit``, and with metadata routing to the splitter too.
        """
        if not hasattr(self.estimator, "predict_proba"):
            raise TypeError(
                f"estimator must have predict_proba, {type(self.estimator).__name__} has not; wrap "
                "it in CalibratedClassifierCV, or choose a model that gives probabilities."
            )
        if sample_weight is not None:
            sample_weight = np.asarray(sample_weight)
        passed = passed_to_fit(self, sample_weight, fit_params)
        weight, counted, labels = self._read_labels(X, y, sample_weight)
        n_given = len(labels) if counted is None else len(sample_weight)
        kept = np.arange(n_given) if counted is None else counted
        rows = _Rows(
            X if counted is None else take_rows(X, kept),
            labels,
            rows_of_metadata(passed, kept, n_given),
        )
        training = Training(_hashed(rows.X), self._learn_classes(labels), weight, kept)
        costs = checked_costs(self.costs, self.classes_, self.positive)
        box = PriorBox.of(self.prior_bounds, len(self.classes_), self.classes_)
        folds = self._folds(training, n_given, sample_weight, fit_params)
        seen, posterior = self._held_out(rows, training, folds)
        self.estimator_ = rows.fitted(self.estimator)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        self._solve(posterior, training.y[seen], weight[seen], costs, box)
        return self

    def _folds(
        self, rows: Training, n_given: int, sample_weight: Any, fit_params: dict[str, Any]
    ) -> list[tuple[Any, Any]]:
        if hasattr(self.cv, "split") and get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=sample_weight, **fit_params)
            given = rows_of_metadata(dict(routed.splitter.split), rows.kept, n_given)
            return list(self.cv.split(np.zeros((rows.n_rows, 1)), rows.y, **given))
        return folds_of(self.cv, rows, n_given, seed_of(self.random_state))

    def _held_out(
        self, rows: _Rows, training: Training, folds: list[tuple[Any, Any]]
    ) -> tuple[Any, Floats]:
        """Rows that some fold holds out, and their posteriors."""
        total = np.zeros((training.n_rows, len(self.classes_)))
        times = np.zeros(training.n_rows)
        for train, test in folds:
            if len(np.unique(training.y[train])) < 2 or not len(test):
                continue
            model = rows.taken(train).fitted(self.estimator)
            total[test] += self._aligned(model, take_rows(rows.X, test))
            times[test] += 1
        seen = np.flatnonzero(times)
        if not len(np.unique(training.y[seen])) == len(self.classes_):
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
        posterior = self._posterior(X)
        likelihood = self.matched_.likelihood(posterior)
        joint = likelihood * self.least_favorable_prior_
        # a row whose only possible classes have a least favourable prior of zero
        silent = ~joint.any(axis=1)
        joint[silent] = likelihood[silent]
        return joint

    def _posterior(self, X: Any) -> Floats:
        """Of a frame, the columns of the fit in their order, where all are there by name.

        Some may be missing that a pipeline drops; the model says which it needs.
        """
        names = [str(name) for name in getattr(self, "feature_names_in_", ())]
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if not names or not isinstance(frame, nw.DataFrame):
            return self._aligned(self.estimator_, X)
        missing = [name for name in names if name not in frame.columns]
        if not missing:
            return self._aligned(self.estimator_, frame.select(names).to_native())
        try:
            return self._aligned(self.estimator_, X)
        except ValueError as error:
            raise ValueError(
                f"X has no column {shown(missing[0])}, which the model was fitted with; add it. "
                f"({error})"
            ) from error

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities under the least favourable prior."""
        joint = self._joint(X)
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of least expected cost under the least favourable prior."""
        costs = expected_costs(self.predict_proba(X), self.cost_matrix_)
        return np.asarray(self.classes_[costs.argmin(axis=1)])


@dataclass(frozen=True)
class _Rows:
    """Rows that count, as the model takes them, with what its ``fit`` gets beside."""

    X: Any
    labels: NDArray[Any]
    passed: dict[str, Any]

    def taken(self, places: Any) -> _Rows:
        passed = rows_of_metadata(self.passed, places, len(self.labels))
        return _Rows(take_rows(self.X, places), self.labels[places], passed)

    def fitted(self, estimator: Any) -> Any:
        return clone(estimator).fit(self.X, self.labels, **self.passed)


def _hashed(X: Any) -> Table:
    """The rows as a table whose hashes make the folds.

    What only the model can read is hashed as text: dates in a frame, texts in a list.
    """
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        odd = [name for name, kind in frame.schema.items() if kind.is_temporal()]
        X = frame.with_columns(nw.col(*odd).cast(nw.String)).to_native() if odd else X
    elif not hasattr(X, "tocsr") and not isinstance(X, dict):
        cells = np.asarray(X)
        if cells.ndim == 1:
            X = {"row": np.array([str(cell) for cell in cells], dtype=object)}
        elif cells.ndim > 2:
            X = cells.reshape(len(cells), -1)
    return Schema.learn(X, who="MinimaxPriorClassifier", allow_sparse=True).table
