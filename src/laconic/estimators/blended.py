"""BlendedClassifier: the mean of small models, still one sum of terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from laconic.data.threads import one_blas_thread
from laconic.estimators.additive import SparseAdditiveClassifier
from laconic.estimators.contract import Accepts, TableReader, fit_context
from laconic.estimators.form_prediction import FormPrediction
from laconic.estimators.forms import AdditiveScore
from laconic.estimators.mean_form import MEAN_LINKS, mean_form
from laconic.estimators.plain_logistic import PlainLogisticRegression

Floats = NDArray[np.float64]


class BlendedClassifier(FormPrediction):
    r"""The mean of the scores of several models, which is one readable score again.

    Every member is a sum of terms, score :math:`s_m(x) = b_m + \sum_t f_{mt}(x)` with log-odds (or
    log-probabilities up to a constant) as its scale. Their mean is a sum of terms too; terms that
    read the same columns in the same way are added up, so the blend is often shorter than its
    members together. Its probabilities are the geometric mean of theirs, normalised. Two models
    that err in different places decide better together than the better of the two: a choice
    between models that are equally good on the rows at hand is a matter of luck, their mean is not.

    Parameters
    ----------
    estimators : list of classifiers, default=None
        Classifiers of this library whose score is a sum of terms: PlainLogisticRegression,
        WeightedNaiveBayes, ScorecardClassifier, SparseRulesClassifier (two classes) and
        SparseAdditiveClassifier. None: PlainLogisticRegression and SparseAdditiveClassifier.

    Attributes
    ----------
    estimators_ : list of classifiers
        The members, fitted.
    form_ : AdditiveScore
        The mean.
    objective_, duality_gap_ : float
        Sums over the members, where all of them report one: no other set of members has a sum
        of training criteria that is lower by more than the gap.
    feature_importances_ : ndarray of shape (n_features,)
        Mean absolute contribution of each column on the training rows, as shares; not after a
        fit from a scan.
    classes_, n_features_in_, feature_names_in_

    See Also
    --------
    LaconicClassifier : looks for the best pair by itself.

    Examples
    --------
    >>> from laconic import BlendedClassifier, PlainLogisticRegression, WeightedNaiveBayes
    >>> from laconic.data.demo import make_payments
    >>> payments, label = make_payments(2000)
    >>> members = [PlainLogisticRegression(), WeightedNaiveBayes(random_state=0)]
    >>> model = BlendedClassifier(members).fit(payments, label)
    >>> scores = [own.decision_function(payments) for own in model.estimators_]
    >>> bool(abs(model.decision_function(payments) - sum(scores) / 2).max() < 1e-9)
    True
    """

    _accepts = Accepts(scan=True)

    _parameter_constraints: dict[str, list[Any]] = {"estimators": [list, tuple, None]}

    def __init__(self, estimators: Any = None) -> None:
        self.estimators = estimators

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BlendedClassifier:
        """Fit every member and take the mean of their scores.

        Parameters
        ----------
        X : array, frame or scan of shape (n_rows, n_features)
        y : array of shape (n_rows,)
            Class labels; those of a scan are one of its columns.
        sample_weight : array of shape (n_rows,), optional

        Returns
        -------
        self
        """
        members = self._members()
        rows = self._read_training(X, y, sample_weight)
        with one_blas_thread():
            if not rows.in_memory:
                self._refuse_scan(self._can_scan(), " with these members")
                self._publish([clone(member).fit(X) for member in members])
                return self
            weighted = {} if sample_weight is None else {"sample_weight": rows.weight}
            labels = self.classes_[rows.y]
            self._publish([clone(own).fit(rows.table, labels, **weighted) for own in members])
            self.feature_importances_ = self._importances(rows.table, rows.weight)
        return self

    def _members(self) -> Sequence[Any]:
        if self.estimators is None:
            return [PlainLogisticRegression(), SparseAdditiveClassifier()]
        if not len(self.estimators):
            raise ValueError("estimators is empty; name at least one model.")
        for member in self.estimators:
            if not isinstance(member, TableReader):
                raise TypeError(
                    "estimators must be classifiers of this library whose score is a sum of terms, "
                    f"got {type(member).__name__}."
                )
        return list(self.estimators)

    def _can_scan(self) -> bool:
        return all(member._can_scan() for member in self._members())

    @classmethod
    def of(cls, fitted: Sequence[Any]) -> BlendedClassifier:
        """The mean of models that are fitted already, on the same columns and classes."""
        model = cls([clone(member) for member in fitted])
        model.schema_ = fitted[0].schema_
        model._publish_names()
        model.classes_ = fitted[0].classes_
        model._publish(fitted)
        return model

    def _publish(self, fitted: Sequence[Any]) -> None:
        self.__dict__.pop("feature_importances_", None)
        self.estimators_ = list(fitted)
        for member in fitted:
            # a member is fitted on a table, which has names even where the user's X has none
            member.schema_ = self.schema_
            member._publish_names()
        self.form_ = mean_form([summed_form(member) for member in fitted])
        for name in ("objective_", "duality_gap_"):
            own = [getattr(member, name, None) for member in fitted]
            told = [float(value) for value in own if value is not None and np.ndim(value) == 0]
            self.__dict__.pop(name, None)
            if len(told) == len(fitted):
                setattr(self, name, sum(told))


def summed_form(model: Any) -> AdditiveScore:
    """The fitted sum of terms of a model that can be a member; else one sentence why not."""
    form = getattr(model, "form_", None)
    if not isinstance(form, AdditiveScore) or form.link not in MEAN_LINKS:
        kind = f"its link is {form.link!r}" if isinstance(form, AdditiveScore) else "it has none"
        raise ValueError(
            f"A {type(model).__name__} cannot be blended: its score must be a sum of terms that "
            f"are log-odds or log-probabilities, and {kind}."
        )
    return form


__all__ = ["BlendedClassifier", "summed_form"]
