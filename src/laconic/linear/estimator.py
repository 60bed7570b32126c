"""Logistic regression whose likelihood counts only around the decision.

A zone means a loss, and decisions at its middle (:class:`ZoneDecisions`).
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from laconic._typing import Floats
from laconic.core.contract import (
    Accepts,
    Interval,
    ScannedTraining,
    StrOptions,
    TableClassifier,
    Training,
    fit_context,
)
from laconic.core.forms import AdditiveScore, Link, linear_score, plain_label
from laconic.core.losses import TruncatedLogistic, TruncatedMultinomial, log_odds
from laconic.data.source import Block, Source
from laconic.data.tables.columns import Table
from laconic.linear.fit import (
    Fit,
    ScanTask,
    Task,
    fit_binary,
    fit_multinomial,
    fit_one_vs_rest,
    fit_scanned,
    fit_scanned_multinomial,
    joint,
    stacked,
)
from laconic.linear.form import LinearScore, numbers


def binary_loss(zone: Any) -> TruncatedLogistic:
    """The loss of a zone (p_min, p_max), or of one cap for both classes."""
    if isinstance(zone, Real) and not isinstance(zone, bool):
        cap = float(zone)
        if not 0.5 < cap <= 1.0:
            raise ValueError(f"zone={zone}: one cap for two classes must lie in (0.5, 1].")
        return TruncatedLogistic(1.0 - cap, cap)
    return pair_loss(zone)


def pair_loss(zone: Any) -> TruncatedLogistic:
    """The loss of a zone (p_min, p_max)."""
    try:
        low, high = (float(end) for end in zone)
    except (TypeError, ValueError):
        raise ValueError(
            f"zone must be a pair (p_min, p_max) for two classes, got {zone!r}."
        ) from None
    return TruncatedLogistic(low, high)


def multinomial_loss(zone: Any, n_classes: int) -> TruncatedMultinomial:
    """One cap for all classes, or one per class in the order of ``classes_``."""
    if isinstance(zone, Real) and not isinstance(zone, bool):
        return TruncatedMultinomial((float(zone),) * n_classes)
    try:
        caps = tuple(float(cap) for cap in zone)
    except (TypeError, ValueError):
        raise ValueError(f"zone must be one cap or one per class, got {zone!r}.") from None
    if caps == (0.0, 1.0):
        return TruncatedMultinomial((1.0,) * n_classes)
    if len(caps) != n_classes:
        raise ValueError(
            f"zone holds {len(caps)} caps but y has {n_classes} classes; give one cap in (0, 1], "
            'one per class, or multi_class="ovr" to use (p_min, p_max) for each class.'
        )
    return TruncatedMultinomial(caps)


class ZoneDecisions(TableClassifier):
    """Decisions from log-odds, linear or of a kernel."""

    zone: Any
    threshold: float | None
    class_weight: Any
    proba: str

    @abstractmethod
    def log_odds(self, X: Any) -> Floats:
        """Log-odds of the second class, or one score per class."""

    def decision_function(self, X: Any) -> Floats:
        """Log-odds beyond those of ``threshold_`` (two classes): positive where it decides for.

        More classes: one score per class, the largest decides.
        """
        scores = self.log_odds(X)
        return scores - log_odds(self.threshold_) if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The second class above ``threshold_``; the best class when there are more than two."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])

    def in_zone(self, X: Any) -> NDArray[np.bool_]:
        """Rows that are gray: the probability (of some class against the rest) is in the zone."""
        loss = binary_loss(self._zone())
        p = expit(self.log_odds(X))
        inside = (p >= loss.p_min) & (p <= loss.p_max)
        return np.asarray(inside if inside.ndim == 1 else inside.any(axis=1))

    def _zone(self) -> Any:
        return self.zone

    def _zone_ends(self) -> tuple[float, float]:
        loss = binary_loss(self._zone())
        return loss.p_min, loss.p_max

    def _set_threshold(self, loss: TruncatedLogistic) -> TruncatedLogistic:
        threshold = loss.centre if self.threshold is None else float(self.threshold)
        if not loss.p_min <= threshold <= loss.p_max:
            raise ValueError(
                f"threshold={threshold} lies outside the zone ({loss.p_min}, {loss.p_max}), where "
                "the model knows nothing; move one of them."
            )
        self.threshold_ = threshold
        return loss

    def _refuse_threshold(self) -> None:
        """More than two classes have no threshold, and no zone to clip to."""
        n_classes = len(self.classes_)
        if self.threshold is not None:
            raise ValueError(f"threshold is for two classes, y has {n_classes}; leave it None.")
        if self.proba == "clip":
            raise ValueError(f"proba='clip' is for two classes, y has {n_classes}.")
        self.__dict__.pop("threshold_", None)

    def _class_weighted(self, rows: Training) -> Floats:
        """Weights of the rows times those of their classes."""
        if self.class_weight is None:
            return rows.weight
        by_class = compute_class_weight(
            self.class_weight, classes=self.classes_, y=self.classes_[rows.y],
            sample_weight=rows.weight,
        )  # fmt: skip
        return np.asarray(rows.weight * by_class[rows.y])


class GrayZoneScores(ZoneDecisions):
    """What a fitted linear gray-zone model does with new rows."""

    _accepts = Accepts(categorical=False, missing=False, sparse=True)

    multi_class: str
    solver: str

    def log_odds(self, X: Any) -> Floats:
        """``X @ coef_.T + intercept_``: log-odds of the second class, or one score per class."""
        scores = self.linear_form_.score(self._read_rows(X))
        return scores.ravel() if len(self.classes_) == 2 else scores

    @property
    def linear_form_(self) -> LinearScore:
        """The model as coefficients of the columns, for a model file."""
        check_is_fitted(self, "coef_")
        link: Link = "logit"
        if len(self.classes_) > 2:
            link = "softmax" if self._joint() else "ovr"
        clip = self._zone_ends() if self.proba == "clip" else None
        labels = tuple(plain_label(c) for c in self.classes_)
        return LinearScore(labels, self.coef_, self.intercept_, link, clip)

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class.

        One against rest: sigmoids divided by their sum, which is not calibrated.
        """
        return self.linear_form_.proba(self._read_rows(X))

    @property
    def form_(self) -> AdditiveScore:
        """The model as one line by column, for export."""
        check_is_fitted(self, "coef_")
        if self.proba == "clip":
            raise ValueError("proba='clip' has no form for export; use proba='sigmoid'.")
        names, link = self.schema_.names, self.linear_form_.link
        return linear_score(tuple(self.classes_), names, self.coef_, self.intercept_, link)

    def in_zone(self, X: Any) -> NDArray[np.bool_]:
        """Rows that are gray.

        Two classes: the probability lies in the zone. Joint multinomial: no class exceeds its
        cap. One against rest: some class's own probability lies in the zone.
        """
        if len(self.classes_) == 2 or not self._joint():
            return super().in_zone(X)
        caps = np.asarray(multinomial_loss(self._zone(), len(self.classes_)).caps)
        return np.asarray((softmax(self.log_odds(X), axis=1) <= caps).all(axis=1))

    def _joint(self) -> bool:
        return joint(self.multi_class, self._zone(), self.solver)


class GrayZoneLogisticRegression(GrayZoneScores):
    r"""Logistic regression with the likelihood truncated outside a gray zone.

    Minimises (Hérault and Grandvalet, 2008, equations 3 and 6, C-scaled)

    .. math:: \tfrac12 |w|^2 + C \sum_i s_i \max(\log(1 + e^{-y_i f(x_i)}),\, c_{y_i})

    with floors :math:`c_+ = -\log p_{max}`, :math:`c_- = -\log(1 - p_{min})`. Examples surely on
    their side of the zone stop mattering: few rows carry the model, and it is aimed at the
    decision. The decision at ``threshold_`` is what is calibrated; probabilities are right near
    it and flattened elsewhere in the zone, because a linear score cannot saturate at the bounds.
    Recalibrate with :class:`~sklearn.calibration.CalibratedClassifierCV` where they matter.

    Parameters
    ----------
    zone : (p_min, p_max), float or array-like, default=(0.0, 1.0)
        Two classes: probabilities of the second class that matter; (0, 1) is plain logistic
        regression, and one end may be 0 or 1. More classes: one cap in (0, 1] per class (or one
        for all) above which a class is no longer rewarded, or a pair for one against rest.
    C : float, default=1.0
        Weight of the losses, as in scikit-learn.
    fit_intercept : bool, default=True
    class_weight : dict, "balanced" or None, default=None
    threshold : float or None, default=None
        Probability at which ``predict`` turns to the second class; inside the zone. By default
        the zone's centre in log-odds (its plain middle when one end is 0 or 1). Two classes only.
    multi_class : {"auto", "multinomial", "ovr"}, default="auto"
        More than two classes: the joint multinomial likelihood, or one against rest. "auto" is
        joint for caps and for the full zone, one against rest for a pair (p_min, p_max) and for
        the solvers "newton-cg" and "paper".
    solver : {"auto", "newton", "newton-cg", "paper"}, default="auto"
        Newton with a kink QP; its matrix-free form for wide or CSR tables; the paper's
        step-limited Newton, which reports its true gap.
    tol : float, default=1e-6
        Stop when ``duality_gap_ <= tol * objective_``.
    max_iter : int, default=100
        Newton iterations; for "newton-cg", of each smoothed problem.
    warm_start : bool, default=False
        Start from the coefficients of the previous fit.
    proba : {"sigmoid", "clip"}, default="sigmoid"
        ``predict_proba`` as it comes, or clipped to the zone (two classes).

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    threshold_ : float
        Two classes only.
    objective_ : float
        Value reached; summed over the problems for "ovr".
    duality_gap_ : float
        Certified bound on ``objective_`` minus the least possible.
    n_iter_ : ndarray
    partition_ : ndarray of shape (n_rows, 1), or (n_rows, n_classes) for "ovr"
        0: the row has no part in the model (I_0), 1: it stands on the kink (I_h), 2: it counts as
        in plain likelihood (I_l). Rows of zero weight are 0.
    support_ : ndarray
        Rows with a part in the model.
    dual_coef_ : ndarray of shape (1, n_support) or (n_classes, n_support)
        ``coef_`` is ``dual_coef_ @ X[support_]``, up to the gap.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    References
    ----------
    R. Hérault and Y. Grandvalet, "Classifieurs probabilistes parcimonieux", Traitement du Signal
    25(4), 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from laconic import GrayZoneLogisticRegression
    >>> draw = np.random.default_rng(0)
    >>> X = draw.normal(size=(2000, 3))
    >>> y = draw.random(2000) < 1 / (1 + np.exp(3 - 3 * X[:, 0]))
    >>> model = GrayZoneLogisticRegression(zone=(0.05, 0.2)).fit(X, y)
    >>> round(model.threshold_, 3), bool(model.duality_gap_ <= 1e-6 * model.objective_)
    (0.103, True)
    >>> len(model.support_) < 1200
    True
    """

    _accepts = Accepts(categorical=False, missing=False, sparse=True, scan=True)

    _parameter_constraints: dict[str, list[Any]] = {
        "zone": ["array-like", Interval(Real, 0, 1, closed="both")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "threshold": [Interval(Real, 0, 1, closed="both"), None],
        "multi_class": [StrOptions({"auto", "multinomial", "ovr"})],
        "solver": [StrOptions({"auto", "newton", "newton-cg", "paper"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "proba": [StrOptions({"sigmoid", "clip"})],
    }

    def __init__(
        self,
        zone: Any = (0.0, 1.0),
        C: float = 1.0,
        *,
        fit_intercept: bool = True,
        class_weight: Any = None,
        threshold: float | None = None,
        multi_class: str = "auto",
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 100,
        warm_start: bool = False,
        proba: str = "sigmoid",
    ) -> None:
        self.zone = zone
        self.C = C
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.threshold = threshold
        self.multi_class = multi_class
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.proba = proba

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> GrayZoneLogisticRegression:
        """Fit the coefficients.

        Rows of a scan are not held: ``partition_``, ``support_`` and ``dual_coef_`` are not set.
        """
        previous = self._previous()
        n_given = len(y) if hasattr(y, "__len__") else None
        rows = self._read_training(X, y, sample_weight)
        if not rows.in_memory:
            fit = self._fit_scanned(rows, previous)
        elif len(self.classes_) == 2:
            loss = self._set_threshold(binary_loss(self.zone))
            fit = fit_binary(self.task(rows), loss, _usable(previous, 1, rows.table))
        else:
            fit = self._fit_many(rows, previous)
        for solution in fit.solutions:
            solution.warn_if_short(type(self).__name__, "raise max_iter or tol, or scale X")
        self._store(fit, rows, n_given or rows.n_rows)
        return self

    def _fit_many(self, rows: Training, previous: Floats | None) -> Fit:
        self._refuse_threshold()
        n_classes = len(self.classes_)
        start, task = _usable(previous, n_classes, rows.table), self.task(rows)
        if self._joint():
            return fit_multinomial(task, multinomial_loss(self.zone, n_classes), start)
        return fit_one_vs_rest(task, pair_loss(self.zone), n_classes, start)

    def _fit_scanned(self, rows: ScannedTraining, previous: Floats | None) -> Fit:
        width = len(rows.table.names)
        n_problems = 1 if len(self.classes_) == 2 else len(self.classes_)
        start = _usable(previous, n_problems, rows.table)
        return self.fit_source(rows.recoded("numbers", numbers), width, start)

    def fit_source(self, source: Source, width: int, start: Floats | None = None) -> Fit:
        """Fit ``classes_`` on blocks of ``width`` numbers a row, which are not held."""
        n_classes = len(self.classes_)
        self._refuse_scan(self.solver in ("auto", "newton"), f"(solver={self.solver!r})")
        joint = n_classes > 2 and self._joint()
        caps = multinomial_loss(self.zone, n_classes).caps if joint else ()
        self._refuse_scan(
            all(cap >= 1.0 for cap in caps), ' with caps of joint classes (not "ovr")'
        )
        totals = source.sum(partial(_class_totals, n_classes=n_classes))
        factors = compute_class_weight(
            self.class_weight, classes=self.classes_, y=self.classes_, sample_weight=totals
        )
        task = ScanTask(
            source, width, factors, float(self.C), bool(self.fit_intercept),
            float(self.tol), int(self.max_iter),
        )  # fmt: skip
        if n_classes == 2:
            return fit_scanned(task, self._set_threshold(binary_loss(self.zone)), [1], start)
        self._refuse_threshold()
        if joint:
            return fit_scanned_multinomial(task, start)
        return fit_scanned(task, pair_loss(self.zone), range(n_classes), start)

    def task(self, rows: Training) -> Task:
        """The optimisation problem of these parameters on these rows."""
        return Task(
            numbers(rows.table), rows.y, self._class_weighted(rows), float(self.C),
            bool(self.fit_intercept), self.solver, float(self.tol), int(self.max_iter),
        )  # fmt: skip

    def _previous(self) -> Floats | None:
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        return stacked(self.coef_, self.intercept_)

    def _store(self, fit: Fit, rows: Training, n_given: int) -> None:
        self.coef_, self.intercept_ = fit.coef, fit.intercept
        self.objective_, self.duality_gap_ = float(fit.objective), float(fit.gap)
        self.n_iter_ = fit.n_iter
        if fit.partition is None or fit.dual is None:
            for name in ("partition_", "support_", "dual_coef_"):
                self.__dict__.pop(name, None)
            return
        parts = fit.partition.reshape(rows.n_rows, -1)  # a column for each problem solved
        self.partition_ = np.zeros((n_given, parts.shape[1]), np.int8)
        self.partition_[rows.kept] = parts
        counts = (parts > 0).any(axis=1)
        self.support_ = rows.kept[counts]
        self.dual_coef_ = fit.dual[:, counts]


def _class_totals(block: Block, n_classes: int) -> Floats:
    assert block.y is not None
    return np.bincount(block.y, block.weight, n_classes).astype(np.float64)


def _usable(previous: Floats | None, n_problems: int, table: Table) -> Floats | None:
    """The previous coefficients when they fit the new rows; one row for two classes."""
    if previous is None or previous.shape != (n_problems, len(table.names) + 1):
        return None
    return previous[0] if n_problems == 1 else previous
