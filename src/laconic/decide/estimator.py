"""DecisionClassifier: any probability model, plus costs, a deployed class mix and abstention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags, assert_all_finite, column_or_1d, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from laconic._typing import Floats, Ints
from laconic.core.contract import available_if, by_blocks, log_of, take_rows
from laconic.core.decisions import (
    class_codes,
    class_prior,
    correct_prior,
    cost_matrix,
    decision_threshold,
    expected_costs,
    positive_class,
)
from laconic.core.explanation import Explanation
from laconic.core.folds import judging_rows
from laconic.data.row_keys import content_keys, row_keys
from laconic.data.scan.scan import Scan
from laconic.data.tables.columns import Schema
from laconic.decide.costs import RowCosts
from laconic.decide.metadata import passed_to_fit, rows_of_metadata
from laconic.decide.promises import Guaranteed, Wanted
from laconic.decide.threshold import GuaranteedThreshold


def _has(method: str) -> Callable[[DecisionClassifier], bool]:
    """Whether the wrapped model has a method, asked of the fitted one when there is one."""
    return lambda self: hasattr(getattr(self, "estimator_", self.estimator), method)


class DecisionClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    r"""Decide by least expected cost, under the class mix of deployment, or abstain.

    With the probabilities :math:`p_k` of the wrapped model, corrected to

    .. math:: p'_k \propto p_k \, \frac{\pi_k}{\pi^{train}_k}

    when a ``prior`` is given, the decision is the class d of least
    :math:`\sum_k p'_k\,\mathrm{costs}[k, d]`, or ``reject_label`` when that least cost exceeds
    ``reject_cost``. Of two decisions that cost the same, the first class wins.

    Parameters
    ----------
    estimator : classifier
        Any classifier with ``predict_proba``. It is cloned and fitted, unless it is a
        ``FrozenEstimator`` or ``prefit`` is true.
    costs : mapping, frame or array-like, default=None
        ``{"fp": 1, "fn": 10}``, a K x K matrix, or a frame or dict of dicts with class names; rows
        are the true class, columns the decision. None: every error costs 1.
    prior : float, array-like of shape (K,), mapping or "balanced", default=None
        Class shares where the model is used; one number is the share of the positive one of two
        classes, "balanced" means equal shares. None: as in training.
    reject_cost : float, default=None
        Cost of abstaining. None: never abstain.
    positive : class, default=None
        The class that "fp", "fn" and a single prior are about. Of 0/1, -1/+1, False/True and
        no/yes it is the second; other labels do not say, and then it must be named here.
    reject_label : object, default="auto"
        What ``predict`` returns for an abstention. "auto" is ``-1`` for numeric classes and
        ``"reject"`` for texts.
    train_prior : float, array-like of shape (K,), mapping or "balanced", default=None
        Class shares under which the wrapped model's probabilities are right. None: the weighted
        shares in ``y`` at fit. Say "balanced" for a model trained with
        ``class_weight="balanced"`` or on rows resampled to equal shares.
    guarantee : str, Guarantee or a list of them, default=None
        What the decisions must keep, for instance ``"recall>=0.95"`` or ``["recall(a)>=0.9",
        "error<=0.05"]``; see :class:`laconic.decide.Guarantee`. Of the rules that keep it, the
        cheapest is taken. Rows that the wrapped model is not fitted on hold the promise.
    confidence : float, default=0.95
        Of the guarantee, over the draw of those rows.
    calibration : float, default=0.25
        Share of the rows that hold the guarantee; equal rows stay together. With ``prefit`` all
        rows given to ``fit`` do: they must be rows that the fit has not seen.
    prefit : bool, default=False
        Use ``estimator`` as it is, already fitted. ``fit`` then only reads the class shares of
        ``y``, and ``y`` may be None.

    Attributes
    ----------
    estimator_ : classifier
        The fitted model.
    classes_ : ndarray of shape (K,)
    train_prior_ : ndarray of shape (K,) or None
        None when a prefitted model came without ``y`` and without ``train_prior``.
    prior_ : ndarray of shape (K,) or None
    cost_matrix_ : ndarray of shape (K, K)
    threshold_ : float
        Two classes only: the probability of ``classes_[1]``, as ``predict_proba`` returns it,
        above which ``classes_[1]`` is decided.
    positive_ : class or None
        None when there are more than two classes, or when neither the labels nor ``positive`` say.
    reject_label_ : object
    guaranteed_ : GuaranteedThreshold, GuaranteedWeights or None
        The threshold on the probability of ``positive_``, or the class weights, that hold the
        guarantee, and what each promise rests on.
    rule_costs_ : ndarray of shape (K, K)
        Costs under which the least expected cost gives the decisions: ``cost_matrix_``, or those
        of the guaranteed rule.
    rule_reject_ : float or None
        Least expected cost above which the rule abstains: ``reject_cost``, or the guaranteed one.
    scenarios_ : dict
        Other costs by name, of a :class:`LaconicClassifier` or a model file.
    row_costs_ : RowCosts or None
        Columns that say what errors cost on each row, of a model file: ``row_costs_.matrix(X,
        model)`` are the ``costs`` of ``predict`` for the rows of a table.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    laconic.expected_cost : what decisions cost on labelled rows.
    laconic.estimate_prior : the class mix of unlabelled rows.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DecisionClassifier(GaussianNB(), costs={"fp": 4, "fn": 1}).fit(X, y)
    >>> model.threshold_
    0.8
    >>> model.expected_costs(X[:1]).shape
    (1, 2)

    A deployed class mix and an abstention that costs 0.1:

    >>> wary = DecisionClassifier(GaussianNB(), prior=0.9, reject_cost=0.1).fit(X, y)
    >>> sorted(set(wary.predict(X).tolist()))
    [-1, 0, 1]
    """

    guaranteed_: Guaranteed | None
    scenarios_: dict[str, Floats]
    row_costs_: RowCosts | None

    def __init__(
        self,
        estimator: Any,
        costs: Any = None,
        *,
        prior: Any = None,
        reject_cost: float | None = None,
        positive: Any = None,
        reject_label: Any = "auto",
        train_prior: Any = None,
        guarantee: Any = None,
        confidence: float = 0.95,
        calibration: float = 0.25,
        prefit: bool = False,
    ) -> None:
        self.estimator = estimator
        self.costs = costs
        self.prior = prior
        self.reject_cost = reject_cost
        self.positive = positive
        self.reject_label = reject_label
        self.train_prior = train_prior
        self.guarantee = guarantee
        self.confidence = confidence
        self.calibration = calibration
        self.prefit = prefit

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            inner = get_tags(self.estimator)
            tags.input_tags = inner.input_tags
            tags.non_deterministic = inner.non_deterministic
            if inner.classifier_tags is not None:
                tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
                tags.classifier_tags.poor_score = inner.classifier_tags.poor_score
        if self.reject_cost is not None:
            tags.classifier_tags.poor_score = True  # accuracy counts abstentions as errors
        return tags

    def _html_repr(self) -> str:
        """The fitted model in a few lines, then scikit-learn's diagram."""
        from laconic.core.compact import compact_html

        return compact_html(self) + str(super()._html_repr())

    def get_metadata_routing(self) -> MetadataRouter:
        """``fit`` passes metadata on to the wrapped model's ``fit``."""
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                estimator=self.estimator,
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
        )

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, **fit_params: Any
    ) -> DecisionClassifier:
        """Fit the wrapped model and learn the class shares.

        Parameters
        ----------
        X : array-like, frame, sparse matrix or scan, as the wrapped model accepts it
        y : array-like of shape (n,)
            Class labels; those of a scan are one of its columns.
        sample_weight : array-like of shape (n,), default=None
            Passed to the wrapped model; also weights the class shares.
        **fit_params : dict
            Passed to the wrapped model's ``fit``.

        Returns
        -------
        self
        """
        if not hasattr(self.estimator, "predict_proba"):
            raise TypeError(
                f"estimator must have predict_proba, {type(self.estimator).__name__} has not; wrap "
                "it in CalibratedClassifierCV, or choose a model that gives probabilities."
            )
        scanned = isinstance(X, Scan) and not self.prefit
        labels = None if scanned else self._read_labels(y)
        weight = _read_weight(sample_weight, labels)
        if scanned:
            self.estimator_ = clone(self.estimator).fit(X, y, **fit_params)
            labels, weight = self.estimator_.classes_, X.class_weights()
        elif labels is not None and not self.prefit:
            passed = passed_to_fit(self, sample_weight, fit_params)
            judges, own = None, weight
            if self.guarantee is not None:
                kept, judges = self._split(X, labels, weight)
                own = np.zeros(len(labels))
                own[kept] = 1.0 if weight is None else weight[kept]
            self.estimator_ = _fit_rows_that_count(self.estimator, X, labels, own, passed)
        elif hasattr(self.estimator, "classes_"):
            self.estimator_ = self.estimator
        else:
            raise NotFittedError("prefit=True, but estimator is not fitted; fit it first.")
        self.classes_ = np.asarray(self.estimator_.classes_)
        if len(self.classes_) < 2:
            raise ValueError(
                "DecisionClassifier needs at least two classes in y, but y has one class: "
                f"{self.classes_.tolist()[0]!r}; give rows of another class."
            )
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        self.train_prior_ = self._class_shares(labels, weight)
        self._read_decision_rule()
        if self.guarantee is not None:
            if scanned or labels is None:
                raise ValueError(
                    "guarantee needs labelled rows in memory: give y, or fit from a scan first and "
                    "then use prefit=True with rows that the fit has not seen."
                )
            every = np.arange(len(labels)) if weight is None else np.flatnonzero(weight)
            self._promise(X, labels, weight, every if self.prefit else judges)
        return self

    def _split(self, X: Any, labels: NDArray[Any], weight: Floats | None) -> tuple[Ints, Ints]:
        """Rows to fit on, and rows that hold the guarantee and have no part in the fit."""
        if not 0.0 < self.calibration < 1.0:
            raise ValueError(
                f"calibration must lie strictly between 0 and 1, got {self.calibration!r}."
            )
        counted = np.arange(len(labels)) if weight is None else np.flatnonzero(weight)
        classes, codes = np.unique(labels[counted], return_inverse=True)
        wanted = self._wanted(classes)
        table = Schema.learn(take_rows(X, counted), allow_sparse=True).table
        keys = row_keys(table, columns=content_keys(table, codes))
        kept, judges = judging_rows(
            keys, codes, self.calibration, within_classes=wanted.within_classes
        )
        wanted.mix_of_weights(codes, None if weight is None else weight[counted])
        counts = np.bincount(codes[judges], minlength=len(classes))
        wanted.refuse_too_few(counts, another_mix=self.prior is not None)
        return counted[kept], counted[judges]

    def _promise(
        self, X: Any, labels: NDArray[Any], weight: Floats | None, judges: Ints | None
    ) -> None:
        """Find the rule that holds the guarantee, on rows that the fit has not seen."""
        wanted = self._wanted(self.classes_)
        counted = np.arange(len(labels)) if judges is None else judges
        mix = None
        if weight is not None:
            counts = weight > 0
            codes = class_codes(labels[counts], self.classes_, "y")
            mix = wanted.mix_of_weights(codes, weight[counts])
        self.promise(wanted, take_rows(X, counted), labels[counted], mix=mix)

    def _wanted(self, classes: NDArray[Any]) -> Wanted:
        return Wanted.read(
            self.guarantee,
            None,
            classes,
            positive_class(classes, self.positive),
            reject_cost=self.reject_cost,
            confidence=self.confidence,
        )

    def promise(
        self,
        wanted: Wanted,
        X: Any,
        y: Any,
        shares: tuple[float, float] | None = None,
        mix: Floats | None = None,
    ) -> None:
        """Hold promises from now on, by rows that neither the fit nor its choice has seen.

        ``shares``: of the positive class where the model is used; None: those of ``prior``, else
        of the class ``mix`` that weights say, else of the rows.
        """
        used = mix if self.prior_ is None else self.prior_
        if shares is None and used is not None:
            k = 0 if self.positive_ is None else self.classes_.tolist().index(self.positive_)
            shares = (float(used[k]),) * 2
        self.hold(wanted.found(self.predict_proba(X), np.asarray(y), self.cost_matrix_, shares))

    def hold(self, found: Guaranteed) -> None:
        """Decide by a rule that holds promises from now on."""
        self._refuse_to_weigh(found)
        self.guaranteed_ = found
        if isinstance(found, GuaranteedThreshold):
            place = self.classes_.tolist().index(self.positive_)
            self.rule_costs_ = found.rule_costs(place)
        else:
            self.rule_costs_, self.rule_reject_ = found.rule_costs(self.cost_matrix_), found.reject
        if len(self.classes_) == 2:
            self.threshold_ = decision_threshold(self.rule_costs_)

    @by_blocks
    def predict_proba(self, X: Any, *, prior: Any = None) -> Floats:
        """Class probabilities, corrected for the prior.

        Parameters
        ----------
        X : rows, as the wrapped model accepts them
        prior : float, array-like of shape (K,), mapping or "balanced", default=None
            Class shares for this call, instead of the parameter ``prior``.

        Returns
        -------
        ndarray of shape (n, K)
        """
        check_is_fitted(self, "estimator_")
        proba = np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)
        deployed = self.prior_ if prior is None else self._shares(prior, "prior")
        if deployed is None:
            return proba
        return correct_prior(proba, self._known_train_prior(), deployed)

    @by_blocks
    def expected_costs(self, X: Any, *, costs: Any = None, prior: Any = None) -> Floats:
        """Expected cost of every decision on every row.

        Parameters
        ----------
        X : rows, as the wrapped model accepts them
        costs : mapping, frame or array-like, default=None
            Costs for this call, instead of the parameter ``costs``; also per-row costs: an array
            n x K x K, or ``{"fp": (n,), "fn": (n,)}`` or a frame with these columns.
        prior : float, array-like of shape (K,), mapping or "balanced", default=None

        Returns
        -------
        ndarray of shape (n, K)
        """
        proba = self.predict_proba(X, prior=prior)
        if costs is None:
            return expected_costs(proba, self.cost_matrix_)
        matrix = cost_matrix(costs, self.classes_, n_rows=len(proba), positive=self.positive)
        return expected_costs(proba, matrix)

    @by_blocks
    def predict(self, X: Any, *, costs: Any = None, prior: Any = None) -> NDArray[Any]:
        """The decision of least expected cost, or an abstention.

        The parameters are those of :meth:`expected_costs`. In a pipeline, per-row costs arrive by
        metadata routing once ``set_predict_request(costs=True)`` was called.

        Returns
        -------
        ndarray of shape (n,)
        """
        check_is_fitted(self, "estimator_")
        if getattr(self.estimator_, "decides", False):
            self._refuse_to_weigh(costs, prior)
            return np.asarray(self.estimator_.predict(X))
        if self.guaranteed_ is not None and (costs is not None or prior is not None):
            raise ValueError(
                "costs and prior of one call would break the guarantee of this model; fit it for "
                "them, or adopt the prior (`laconic adopt`)."
            )
        reject = self.rule_reject_
        if self.guaranteed_ is not None:
            per_decision = expected_costs(self.predict_proba(X), self.rule_costs_)
        else:
            per_decision = self.expected_costs(X, costs=costs, prior=prior)
        decisions: NDArray[Any] = self.classes_[per_decision.argmin(axis=1)]
        if reject is None:
            return decisions
        abstain = per_decision.min(axis=1) > reject
        return _mark(decisions, abstain, self.reject_label_)

    @by_blocks
    def predict_log_proba(self, X: Any, *, prior: Any = None) -> Floats:
        """Natural logarithm of :meth:`predict_proba`; -inf where a probability is 0."""
        return log_of(self.predict_proba(X, prior=prior))

    @available_if(_has("decision_function"))
    @by_blocks
    def decision_function(self, X: Any) -> Floats:
        """What the decisions are taken by, for wrapped models that have scores themselves.

        Two classes: what deciding ``classes_[1]`` is expected to save against ``classes_[0]``,
        shape (n,); it is positive where ``predict`` says ``classes_[1]``. More classes: minus the
        expected cost of each decision, shape (n, K).
        """
        per_decision = self.expected_costs(X)
        if len(self.classes_) == 2:
            return np.asarray(per_decision[:, 0] - per_decision[:, 1])
        return np.negative(per_decision)

    @available_if(_has("explain"))
    def explain(self, X: Any) -> Explanation:
        """What each variable adds to the score of the wrapped model, before costs and prior."""
        check_is_fitted(self, "estimator_")
        why = cast("Explanation", self.estimator_.explain(X))
        average = getattr(getattr(self, "reference_", None), "average", None)
        if average is None or set(average) != set(why.names):
            return why
        mean = np.array([average[name] for name in why.names], dtype=np.float64)
        if mean.shape != why.contributions.shape[1:]:
            raise ValueError("The average row of the model file has other scores than the model.")
        return replace(why, average=mean)

    def __call__(self, X: Any) -> Floats:
        """The score that :meth:`explain` takes apart, for ``shap.Explainer(model, X)``."""
        return self.explain(X).score

    def _refuse_to_weigh(self, *given: Any) -> None:
        """A rule that decides itself, such as a minimax rule, leaves nothing to weigh."""
        decides = getattr(self.estimator_, "decides", False)
        if decides and any(value is not None for value in given):
            raise ValueError(
                f"{type(self.estimator_).__name__} decides itself, and its probabilities are those "
                "of its decisions: costs, prior, reject_cost and guarantees of the decision layer"
                " do not apply."
            )

    def _read_labels(self, y: Any) -> NDArray[Any] | None:
        if y is None:
            if self.prefit:
                return None
            raise ValueError(
                "DecisionClassifier requires y to be passed, but the target y is None."
            )
        labels: NDArray[Any] = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        return labels

    def _class_shares(self, labels: NDArray[Any] | None, weight: Floats | None) -> Floats | None:
        if self.train_prior is not None:
            return self._shares(self.train_prior, "train_prior")
        if labels is None:
            return None
        if weight is not None:
            labels, weight = labels[weight > 0], weight[weight > 0]
        codes = class_codes(labels, self.classes_, "y")
        totals = np.bincount(codes, weights=weight, minlength=len(self.classes_))
        return np.asarray(totals / totals.sum())

    def _read_decision_rule(self) -> None:
        self.positive_ = positive_class(self.classes_, self.positive)
        self.cost_matrix_ = cost_matrix(self.costs, self.classes_, positive=self.positive)
        self.guaranteed_ = self.row_costs_ = None
        self.scenarios_ = {}
        self.rule_costs_, self.rule_reject_ = self.cost_matrix_, self.reject_cost
        self.prior_ = None if self.prior is None else self._shares(self.prior, "prior")
        if self.prior_ is not None:
            correct_prior(np.ones((1, len(self.classes_))), self._known_train_prior(), self.prior_)
        if len(self.classes_) == 2:
            self.threshold_ = decision_threshold(self.cost_matrix_)
        if self.reject_cost is not None and not (
            isinstance(self.reject_cost, Real) and np.isfinite(float(self.reject_cost))
        ):
            raise ValueError(f"reject_cost must be a finite number, got {self.reject_cost!r}.")
        self.reject_label_ = self._chosen_reject_label()
        self._refuse_to_weigh(self.prior, self.reject_cost)

    def _chosen_reject_label(self) -> Any:
        label = self.reject_label
        if isinstance(label, str) and label == "auto":
            label = "reject" if self.classes_.dtype.kind in "OUST" else -1
        if self.reject_cost is not None and label in self.classes_.tolist():
            raise ValueError(
                f"reject_label: {label!r} is one of the classes {self.classes_.tolist()}; choose "
                "another label for abstentions."
            )
        return label

    def _shares(self, prior: Any, name: str) -> Floats:
        return class_prior(prior, self.classes_, name, self.positive)

    def _known_train_prior(self) -> Floats:
        if self.train_prior_ is None:
            raise ValueError(
                "A prior needs the class shares of training: give train_prior=..., or y to fit."
            )
        return self.train_prior_


def scenario_costs(model: DecisionClassifier, name: str) -> Floats:
    """The costs of a scenario that the model was fitted with."""
    known = model.scenarios_
    if name not in known:
        has = f"it has {', '.join(known)}" if known else "it has none"
        raise ValueError(f"The model has no scenario {name!r}; {has}.")
    return known[name]


def _read_weight(sample_weight: Any, labels: NDArray[Any] | None) -> Floats | None:
    if sample_weight is None or labels is None:
        return None
    weight: Floats = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != labels.shape:
        raise ValueError(
            f"sample_weight must hold one number per row, {len(labels)} in all, got shape "
            f"{weight.shape}."
        )
    if not (weight >= 0).all():
        raise ValueError("sample_weight must hold numbers >= 0.")
    if not weight.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weight


def _fit_rows_that_count(
    estimator: Any,
    X: Any,
    labels: NDArray[Any],
    weight: Floats | None,
    passed: dict[str, Any],
) -> Any:
    """A fitted clone. A row of zero weight counts nowhere, not even as a row of its class."""
    if weight is None or weight.all():
        return clone(estimator).fit(X, labels, **passed)
    kept = np.flatnonzero(weight)
    passed = rows_of_metadata(passed, kept, len(weight))
    return clone(estimator).fit(take_rows(X, kept), labels[kept], **passed)


def _mark(decisions: NDArray[Any], abstain: NDArray[np.bool_], label: Any) -> NDArray[Any]:
    """Decisions with the abstentions marked, whether or not there is one: one dtype per model."""
    own, marked = decisions.dtype, np.asarray(label).dtype
    numeric = own.kind in "iuf" and marked.kind in "iuf"
    texts = own.kind == "U" and marked.kind == "U"
    kind = np.result_type(own, marked) if numeric or texts else np.dtype(object)
    result = decisions.astype(kind)
    result[abstain] = label
    return result
