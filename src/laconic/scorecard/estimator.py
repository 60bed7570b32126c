"""ScorecardClassifier: points for the parts of each column, weighed together."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats
from laconic.core.contract import (
    Accepts,
    Interval,
    ScannedTraining,
    StrOptions,
    Training,
    fit_context,
)
from laconic.core.form_prediction import FormPrediction
from laconic.core.forms import AdditiveScore, Link, plain_label
from laconic.data.source import Unfolded
from laconic.linear.design import design, design_form, linear_columns
from laconic.linear.estimator import GrayZoneLogisticRegression
from laconic.modl.estimator import indicators, make_encoder
from laconic.modl.form import cells_term
from laconic.modl.partition import Partition, code_matrix

_CONSTRUCTED = ("pairs", "trees")
_MOST_DENSE = 2**25
_WIDEST_DENSE = 256
"""Cells and columns of a dense design matrix, 256 MiB at most; above, the indicators are kept
sparse. By convention."""


class ScorecardClassifier(FormPrediction):
    r"""Points for the parts of each column, weighed together by a (gray-zone) logistic fit.

    Numbers are cut and categories grouped by MODL partitions, missing values included; every part
    gets one weight, fitted jointly by :class:`GrayZoneLogisticRegression`. This is the
    discriminative twin of the naive Bayes classifier: the same parts, with points that know of
    each other. ``columns="lines"`` keeps numbers as they are (standardised, one slope each) and
    gives one weight to each category: the gray-zone logistic regression on a mixed table.

    Parameters
    ----------
    columns : {"parts", "lines"}, default="parts"
    zone : (p_min, p_max), default=(0.0, 1.0)
        Gray zone of the loss, as in :class:`GrayZoneLogisticRegression`; (0, 1) is the logistic
        loss. More than two classes take (0, 1) or one cap per class.
    C : float, default=1.0
        Weight of the losses against the squared size of the points.
    pairs : int, default=0
        Most pairs of columns whose joint parts are added.
    trees : int, default=0
        Small trees whose leaves are added.
    encoder : ModlEncoder, default=None
        Its parameters are used for the parts.
    tol : float, default=1e-6
        Relative duality gap at which the optimiser stops.
    max_iter : int, default=100
    n_jobs : int, default=None
        Threads over columns while parts are found; does not change the result.
    random_state : int, RandomState or None, default=None
        Used by ``pairs`` (screening) and ``trees``.

    Attributes
    ----------
    form_ : AdditiveScore
        The model: intercept (score of a mean row) and one term for each variable.
    objective_, duality_gap_ : float
        The least possible objective lies within ``duality_gap_`` below ``objective_``.
    n_iter_ : ndarray
    encoder_ : ModlEncoder
        With ``columns="parts"``.
    selected_features_ : ndarray of str
        Variables that have points.
    feature_importances_ : ndarray of shape (n_features,)
        Mean absolute contribution of each column on the training rows, as shares.
    classes_, n_features_in_, feature_names_in_

    See Also
    --------
    WeightedNaiveBayes : the generative twin.
    SparseAdditiveClassifier : smooth shapes, fewer terms.

    Examples
    --------
    >>> from laconic import ScorecardClassifier
    >>> from laconic.data.demo import make_payments
    >>> payments, label = make_payments(4000)
    >>> model = ScorecardClassifier().fit(payments, label)
    >>> bool(model.duality_gap_ <= 1e-6 * model.objective_)
    True
    >>> model.explain(payments[:2]).contributions.shape == (2, len(model.form_.terms), 1)
    True
    """

    _accepts = Accepts(scan=True)
    _parameter_constraints: dict[str, list[Any]] = {
        "columns": [StrOptions({"parts", "lines"})],
        "zone": ["array-like", Interval(Real, 0, 1, closed="both")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "pairs": [Interval(Integral, 0, None, closed="left")],
        "trees": [Interval(Integral, 0, None, closed="left")],
        "encoder": "no_validation",  # type: ignore[dict-item]
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        columns: str = "parts",
        *,
        zone: Any = (0.0, 1.0),
        C: float = 1.0,
        pairs: int = 0,
        trees: int = 0,
        encoder: Any = None,
        tol: float = 1e-6,
        max_iter: int = 100,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.columns = columns
        self.zone = zone
        self.C = C
        self.pairs = pairs
        self.trees = trees
        self.encoder = encoder
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ScorecardClassifier:
        """Find the parts, then the points, of an array or frame and its classes, or of a scan."""
        rows = self._read_training(X, y, sample_weight)
        self._refuse_scan(rows.in_memory or self._can_scan(), '(columns="lines", pairs or trees)')
        if not rows.in_memory:
            self._fit_scanned(rows)
        elif self.columns == "lines":
            self._fit_lines(rows)
        else:
            self._fit_parts(rows)
        self.selected_features_ = np.array(
            [" x ".join(term.columns) for term in self.form_.terms], dtype=object
        )
        if rows.in_memory:
            self.feature_importances_ = self._importances(rows.table, rows.weight)
        return self

    def _can_scan(self) -> bool:
        built = (getattr(made, name, 0) for made in (self, self.encoder) for name in _CONSTRUCTED)
        return self.columns == "parts" and not any(built)

    def _fit_lines(self, rows: Training) -> None:
        if self.pairs or self.trees:
            raise ValueError("pairs and trees are made of parts; use columns='parts'.")
        self.__dict__.pop("encoder_", None)
        columns = linear_columns(rows.table, rows.weight)
        fitted = self._weigh(design(columns, rows.table), rows)
        link = _link(len(self.classes_))
        self.form_ = design_form(columns, fitted.coef_, fitted.intercept_, self.classes_, link)

    def _fit_parts(self, rows: Training) -> None:
        encoder = make_encoder(self)
        encoder.fit(rows.table, self.classes_[rows.y], rows.weight)
        encoder.schema_ = self.schema_
        encoder._publish_names()
        self.encoder_ = encoder
        kept = [p for p in encoder.partitions_.values() if p.informative]
        width = sum(p.n_parts for p in kept)
        dense = width <= _WIDEST_DENSE and rows.n_rows * width <= _MOST_DENSE
        parts = indicators(code_matrix(rows.table, kept), kept, dense=dense)
        fitted = self._weigh(parts, rows)
        self.form_ = points_form(kept, fitted.coef_, fitted.intercept_, self.classes_)

    def _fit_scanned(self, rows: ScannedTraining) -> None:
        """The parts of all rows, then the points; what is kept of a block are its parts."""
        self.encoder_ = make_encoder(self).fit_rows(rows, self.schema_, self.classes_)
        kept = [p for p in self.encoder_.partitions_.values() if p.informative]
        width = sum(p.n_parts for p in kept)

        def unfold(codes: NDArray[Any]) -> Any:
            # no informative column: the intercept alone
            return indicators(codes, kept, dense=True) if width else np.zeros((len(codes), 1))

        codes = rows.recoded("codes", lambda table: code_matrix(table, kept))
        inner = self._inner()
        inner.classes_ = self.classes_
        found = inner.fit_source(Unfolded(codes, unfold), max(width, 1))
        for solution in found.solutions:
            solution.warn_if_short(type(self).__name__, "raise max_iter or tol")
        self.objective_, self.duality_gap_ = float(found.objective), float(found.gap)
        self.n_iter_ = found.n_iter
        self.form_ = points_form(kept, found.coef, found.intercept, self.classes_)
        self.feature_importances_ = self._shares_of(kept, found.coef)

    def _shares_of(self, partitions: Sequence[Partition], coef: Floats) -> Floats:
        """Mean absolute contribution of each column, from the weight of each part."""
        share, start = np.zeros(self.n_features_in_), 0
        for partition in partitions:
            points = coef[:, start : start + partition.n_parts].T
            start += partition.n_parts
            weight = partition.class_weights.sum(axis=1) / partition.class_weights.sum()
            columns = list(partition.columns)
            share[columns] += weight @ np.abs(points - weight @ points).max(axis=1) / len(columns)
        return share / share.sum() if share.any() else share

    def _inner(self) -> GrayZoneLogisticRegression:
        return GrayZoneLogisticRegression(
            zone=self.zone, C=self.C, tol=self.tol, max_iter=self.max_iter
        )

    def _weigh(self, matrix: Any, rows: Training) -> GrayZoneLogisticRegression:
        """The joint fit; a table without any informative column leaves the intercept."""
        if not matrix.shape[1]:
            matrix = np.zeros((rows.n_rows, 1))
        inner = self._inner()
        inner.fit(matrix, rows.y, rows.weight)
        self.objective_, self.duality_gap_ = inner.objective_, inner.duality_gap_
        self.n_iter_ = inner.n_iter_
        return inner


def _link(n_classes: int) -> Link:
    return "logit" if n_classes == 2 else "softmax"


def points_form(
    partitions: Sequence[Partition], coef: Floats, intercept: Floats, classes: NDArray[Any]
) -> AdditiveScore:
    """Tables of points, centred on the training rows: the intercept is a mean row's score."""
    start, terms, bias = 0, [], np.array(intercept, dtype=np.float64)
    for partition in partitions:
        points = coef[:, start : start + partition.n_parts].T
        start += partition.n_parts
        weight = partition.class_weights.sum(axis=1)
        mean = weight @ points / weight.sum()
        bias = bias + mean
        if (points != points[:1]).any():
            terms.append(cells_term(partition.column_names, partition.cells, points - mean))
    labels = tuple(plain_label(c) for c in classes)
    return AdditiveScore(labels, bias, tuple(terms), _link(len(classes)))
