"""What a classifier says once its form is fitted, and a fitted form that came from a file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from laconic._typing import Floats
from laconic.core.contract import Accepts, TableClassifier
from laconic.core.forms import AdditiveScore
from laconic.data.tables.columns import Schema, Table, shown


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

    def _importances(self, table: Table, weight: Floats) -> Floats:
        """Mean absolute contribution of each column on these rows, as shares."""
        share = np.zeros(self.n_features_in_)
        spread = weight / weight.sum()
        for term in self.form_.terms:
            size = float(spread @ np.abs(term.contribution(table)).max(axis=1))
            places = [self.schema_.names.index(name) for name in term.columns]
            share[places] += size / len(places)
        return share / share.sum() if share.any() else share


class Form(Protocol):
    """What every fitted form can do."""

    @property
    def classes(self) -> tuple[Any, ...]: ...

    def proba(self, table: Table) -> Floats: ...

    def to_dict(self) -> dict[str, Any]: ...


class FormClassifier(TableClassifier):
    """A model that came from a file: it predicts and explains, and is not fitted again.

    Attributes
    ----------
    form_ : AdditiveScore, LinearScore, RankedKernel or ProfileForm
    family_ : str
        The class that was fitted.
    classes_, n_features_in_, feature_names_in_
    """

    _accepts = Accepts(categorical=True, missing=True, sparse=True)

    @classmethod
    def of(cls, form: Form, schema: Schema, classes: NDArray[Any], family: str) -> FormClassifier:
        model = cls()
        model.schema_ = schema
        model._publish_names()
        model.form_ = form
        model.classes_ = classes
        model.family_ = family
        model._accepts = replace(cls._accepts, missing=getattr(form, "takes_missing", True))
        return model

    def _refuse_missing(self, name: str) -> None:
        raise ValueError(
            f"Column {shown(name)} has missing values (NaN), which a {self.family_} does not "
            "accept; impute them as for its fit."
        )

    def fit(self, X: Any, y: Any = None) -> FormClassifier:
        """Refused: fit the family it came from."""
        raise TypeError(
            "A model read from a file is not fitted again; fit a new "
            f"{getattr(self, 'family_', 'model')} instead."
        )

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class, in the order of ``classes_``."""
        check_is_fitted(self, "form_")
        return np.asarray(self.form_.proba(self._read_rows(X)))

    @property
    def decides(self) -> bool:
        """Whether the form draws decisions: its probabilities are then those of decisions."""
        return bool(getattr(self.form_, "decides", False))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class, or what a form that draws its decisions decides."""
        if self.decides:
            return np.asarray(self.classes_[self.form_.decisions(self._read_rows(X))])
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])
