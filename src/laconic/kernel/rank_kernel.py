"""RankKernelClassifier: a gray-zone kernel model on a mixed table, numbers by their ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from laconic._typing import Floats
from laconic.core.contract import Interval, StrOptions, TableClassifier, fit_context
from laconic.core.explanation import Explanation
from laconic.core.forms import SlotTerm, term_from_dict
from laconic.data.tables.axes import CategoryAxis, KnotAxis
from laconic.data.tables.columns import Table
from laconic.kernel.estimator import GrayZoneKernelClassifier
from laconic.kernel.form import KernelScore, explain_kernel
from laconic.kernel.tuning import CATEGORY_SPREAD, KNOTS


@dataclass(frozen=True)
class RankedKernel:
    """A kernel score of columns read through ``maps``: one or more features for each column.

    A map is a term whose "scores" are the features: a number goes piecewise linearly to its normal
    quantile, a category to an indicator; missing has features of its own.
    """

    maps: tuple[SlotTerm, ...]
    score: KernelScore

    @property
    def classes(self) -> tuple[Any, ...]:
        return self.score.classes

    def features(self, table: Table) -> Floats:
        """(rows, features)."""
        return np.ascontiguousarray(np.hstack([m.contribution(table) for m in self.maps]))

    def proba(self, table: Table) -> Floats:
        """(rows, classes)."""
        return self.score.proba(self.features(table))

    @property
    def explains(self) -> bool:
        return self.score.explains

    def explain(self, classes: NDArray[Any], table: Table) -> Explanation:
        """Shapley values of the columns against a row of medians without any known category.

        All features of such a row are 0, so that the form needs no row of its own.
        """
        ends = np.cumsum([0, *(term.n_scores for term in self.maps)])
        columns = [
            (slice(int(ends[j]), int(ends[j + 1])), term.columns[0])
            for j, term in enumerate(self.maps)
        ]
        features = (self.features(table), np.zeros(ends[-1]))
        return explain_kernel(self.score, classes, features, columns, table)

    def to_dict(self) -> dict[str, Any]:
        return {
            "form": "ranked-kernel",
            "classes": self.score.to_dict()["classes"],
            "maps": [term.to_dict() for term in self.maps],
            "score": self.score.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RankedKernel:
        maps = tuple(term_from_dict(term) for term in data["maps"])
        if not all(isinstance(term, SlotTerm) for term in maps):
            raise ValueError("the columns of a kernel model are read through tables and shapes")
        score = KernelScore.from_dict(data["score"])
        if sum(term.n_scores for term in maps) != score.vectors.shape[1]:
            raise ValueError("the features do not match the support examples")
        return cls(maps, score)  # type: ignore[arg-type]


def learn_maps(table: Table, weight: Floats) -> tuple[SlotTerm, ...]:
    """Ranks of the numbers (at most 64 knots), indicators of the categories."""
    found = []
    for j, name in enumerate(table.names):
        values = table.column(j)
        if table.kinds[j] == "categorical":
            texts = table.categories[j] or ()
            axis = CategoryAxis(tuple((text,) for text in texts))
            # unseen is no category, missing is one
            marks = np.delete(np.eye(len(texts) + 2), len(texts), axis=1) * CATEGORY_SPREAD
            marks[len(texts)] = 0.0
            found.append(SlotTerm((name,), (axis,), marks))
        else:
            found.append(_rank_map(name, values, weight))
    return tuple(found)


def _rank_map(name: str, values: Floats, weight: Floats) -> SlotTerm:
    known = ~np.isnan(values)
    distinct, place = np.unique(values[known], return_inverse=True)
    if not len(distinct):
        return SlotTerm((name,), (KnotAxis(np.zeros(1), np.empty(0)),), np.zeros((2, 1)))
    own = np.bincount(place, weight[known], minlength=len(distinct))
    middle = (np.cumsum(own) - 0.5 * own) / own.sum()
    keep = np.unique(np.searchsorted(middle, np.linspace(middle[0], middle[-1], KNOTS)))
    # next to a weight that is 1e16 times theirs, values are at an end: some 8 deviations do
    normal = ndtri(np.clip(middle[keep], 1e-15, 1.0 - 1e-15))
    axis = KnotAxis(distinct[keep], np.empty(0))
    if known.all():
        return SlotTerm((name,), (axis,), np.append(normal, 0.0)[:, None])
    features = np.zeros((len(keep) + 1, 2))
    features[:-1, 0] = normal
    features[-1, 1] = 1.0  # missing: the middle, and one step aside
    return SlotTerm((name,), (axis,), features)


class RankKernelClassifier(TableClassifier):
    """A gray-zone kernel model of a table as it comes.

    Numbers are replaced by the normal quantiles of their ranks, categories by indicators, missing
    by a feature of its own; then :class:`GrayZoneKernelClassifier` with the gaussian kernel.

    Parameters
    ----------
    zone : (p_min, p_max) or float, default=(0.0, 1.0)
        Gray zone of the loss; (0, 1) is kernel logistic regression.
    C : float, default=10.0
        Weight of the losses.
    gamma : {"scale", "auto"} or float, default="scale"
        Of the gaussian kernel, as in :class:`GrayZoneKernelClassifier`.
    landmarks : int, default=None
        Number of landmarks instead of all rows, for large tables; no more rows than that are all
        taken.
    tol : float, default=1e-5
        Relative duality gap at which the optimiser stops.
    random_state : int, RandomState or None, default=None
        Of the landmarks; None is a fixed number, so that the same table gives the same model.

    Attributes
    ----------
    ranked_form_ : RankedKernel
    support_vectors_ : ndarray
        Support examples, by their features.
    n_support_ : ndarray of shape (n_classes,)
    objective_, duality_gap_ : float
    classes_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> import numpy as np
    >>> from laconic.kernel import RankKernelClassifier
    >>> draw = np.random.default_rng(0)
    >>> X = draw.normal(size=(200, 2))
    >>> y = (X[:, 0] * X[:, 1] > 0).astype(int)
    >>> float(RankKernelClassifier().fit(X, y).score(X, y)) > 0.9
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "zone": ["array-like", Interval(Real, 0, 1, closed="both")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
        "landmarks": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        zone: Any = (0.0, 1.0),
        C: float = 10.0,
        *,
        gamma: Any = "scale",
        landmarks: int | None = None,
        tol: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        self.zone = zone
        self.C = C
        self.gamma = gamma
        self.landmarks = landmarks
        self.tol = tol
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RankKernelClassifier:
        """Learn the ranks, then the kernel model."""
        rows = self._read_training(X, y, sample_weight)
        maps = learn_maps(rows.table, rows.weight)
        features = np.ascontiguousarray(np.hstack([m.contribution(rows.table) for m in maps]))
        enough = self.landmarks is None or self.landmarks >= rows.table.n_rows
        inner = GrayZoneKernelClassifier(
            gamma=self.gamma,
            zone=self.zone,
            C=self.C,
            landmarks=None if enough else self.landmarks,
            tol=self.tol,
            random_state=self.random_state,
        ).fit(features, self.classes_[rows.y], rows.weight)
        self.ranked_form_ = RankedKernel(maps, inner.score_form_)
        self.support_vectors_, self.n_support_ = inner.support_vectors_, inner.n_support_
        self.objective_, self.duality_gap_ = inner.objective_, inner.duality_gap_
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class, in the order of ``classes_``."""
        check_is_fitted(self, "ranked_form_")
        return self.ranked_form_.proba(self._read_rows(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])
