"""FormClassifier: a fitted form that predicts, as a model file gives it back."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from laconic.data.columns import Schema, Table
from laconic.estimators.contract import Accepts, TableClassifier
from laconic.estimators.forms import AdditiveScore

Floats = NDArray[np.float64]


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
    form_ : AdditiveScore, LinearScore or RankedKernel
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
        return model

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

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def explain(self, X: Any) -> Floats:
        """Exact contributions of the terms, shape (n_rows, n_terms) or (.., n_classes)."""
        check_is_fitted(self, "form_")
        if not isinstance(self.form_, AdditiveScore):
            raise ValueError("Only sums of terms have exact contributions.")
        found = self.form_.contributions(self._read_rows(X))
        return found[:, :, 0] if found.shape[2] == 1 else found
