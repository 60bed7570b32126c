"""What a classifier says once its form is fitted: scores, probabilities, classes, contributions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from laconic.data.columns import Table
from laconic.estimators.contract import TableClassifier
from laconic.estimators.forms import AdditiveScore

Floats = NDArray[np.float64]


class FormPrediction(TableClassifier):
    """Predictions of a classifier that keeps an :class:`AdditiveScore` in ``form_``."""

    form_: AdditiveScore

    def decision_function(self, X: Any) -> Floats:
        """Log-odds of the second class, or one score for each class when there are more."""
        check_is_fitted(self, "form_")
        scores = self.form_.score(self._read_rows(X))
        return scores.ravel() if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class, in the order of ``classes_``."""
        check_is_fitted(self, "form_")
        return self.form_.proba(self._read_rows(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])

    def explain(self, X: Any) -> Floats:
        """Exact contributions, shape (n_rows, n_terms) or (n_rows, n_terms, n_classes)."""
        check_is_fitted(self, "form_")
        found = self.form_.contributions(self._read_rows(X))
        return found[:, :, 0] if len(self.classes_) == 2 else found

    def _importances(self, table: Table, weight: Floats) -> Floats:
        """Mean absolute contribution of each column on these rows, as shares."""
        share = np.zeros(self.n_features_in_)
        spread = weight / weight.sum()
        for term in self.form_.terms:
            size = float(spread @ np.abs(term.contribution(table)).max(axis=1))
            places = [self.schema_.names.index(name) for name in term.columns]
            share[places] += size / len(places)
        return share / share.sum() if share.any() else share
