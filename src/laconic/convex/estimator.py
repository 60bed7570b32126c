"""Any convex loss of the margin or of the residual, linear or on a kernel, certified."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from laconic._typing import Floats, Ints
from laconic.convex.risk import (
    ConvexRisk,
    NumericTraining,
    read_numeric_training,
    shares_documentation,
)
from laconic.convex.solver import solve_joint_logistic
from laconic.convex.tuning import EQUAL_SCORES
from laconic.core.calibration import check_calibrated
from laconic.core.contract import (
    Accepts,
    Interval,
    ScannedTraining,
    StrOptions,
    TableClassifier,
    TableReader,
    Training,
    by_blocks,
    fit_context,
    numbers_of,
)
from laconic.core.forms import AdditiveScore, Link, linear_score, plain_label, probabilities
from laconic.core.losses import (
    CLASSIFICATION_LOSSES,
    REGRESSION_LOSSES,
    ScoreLoss,
    Solution,
    get_loss,
    log_odds,
)
from laconic.data.scan.scan import Scan
from laconic.data.source import ArraySource
from laconic.kernel.form import KernelForm, KernelScore
from laconic.linear.fit import ScanTask, fit_scanned, fit_scanned_multinomial
from laconic.linear.form import LinearScore

_LOG_ODDS_PER_SCORE = {"logistic": 1.0, "gray_zone": 1.0, "exponential": 2.0}
"""Losses whose best score is a multiple of the log-odds, hence gives probabilities."""
_NO_ZONE = (0.0, 1.0)


def _has_probabilities(model: ConvexRiskClassifier) -> bool:
    if model.loss not in _LOG_ODDS_PER_SCORE:
        raise AttributeError(f"The scores of loss={model.loss!r} are not probabilities.")
    return True


@shares_documentation
class ConvexRiskClassifier(ConvexRisk, TableClassifier):
    """Linear or kernel classifier for a convex loss of the margin, with a certificate.

    Minimises ``|w|^2 / 2 + C sum_i s_i phi(y_i (w.x_i + b))`` by Newton's method with exact
    treatment of kinks, until the duality gap is small (Bach's lecture notes, 2014, section 2).
    With a kernel, w.x becomes a function f of its space and ``|w|`` the norm of f; the hinge loss
    is then :class:`~sklearn.svm.SVC`.

    Parameters
    ----------
    loss : str or object, default="logistic"
        phi: "logistic", "hinge", "squared_hinge", "squared", "exponential" or "gray_zone". An
        object of your own must have the methods of
        :class:`~laconic.core.losses.ScoreLoss`, and is refused unless it is convex,
        differentiable at zero and decreasing there.
    (common parameters)
    multi_class : {"auto", "ovr", "joint"}, default="auto"
        With more than two classes: "ovr" fits each class against the rest and the largest score
        wins; "joint" minimises -log softmax (linear models of the logistic loss only); "auto" is
        "joint" where that is possible and "ovr" elsewhere.
    zone : tuple (p_min, p_max), default=(0.0, 1.0)
        The gray zone, for ``loss="gray_zone"`` only; (0, 1) is no zone. Decisions are cut at its
        centre.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Linear models only.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    (common attributes)
    n_support_ : ndarray of shape (n_classes,)
        With a kernel.
    threshold_ : float
        Probability at which ``predict`` turns to the second class; gray zones of two classes.
    linear_form_, form_ : LinearScore and AdditiveScore
        Linear models: what is saved and exported.
    duality_gap_ : ndarray of shape (1,) or (n_classes,)
        Each objective is at most this far above its minimum.
    objective_ : ndarray
    n_iter_ : ndarray of int
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Notes
    -----
    ``predict_proba`` exists for the logistic, exponential and gray-zone losses. With "ovr" the
    probabilities of the classes are only normalised to sum to one, which does not calibrate them.

    Examples
    --------
    >>> import numpy as np
    >>> from laconic import ConvexRiskClassifier
    >>> draw = np.random.default_rng(0)
    >>> X = draw.normal(size=(200, 3))
    >>> y = X @ [1.0, -1.0, 0.0] + draw.normal(size=200) > 0
    >>> model = ConvexRiskClassifier(loss="hinge").fit(X, y)
    >>> model.coef_.round(2)
    array([[ 1.43, -1.43, -0.07]])
    >>> bool(model.duality_gap_[0] <= 1e-8 * model.objective_[0])
    True
    """

    _accepts = Accepts(categorical=False, missing=False, sparse=True, scan=True)

    _parameter_constraints: dict[str, list[Any]] = {
        **ConvexRisk._parameter_constraints,
        "loss": [StrOptions({*CLASSIFICATION_LOSSES, "gray_zone"}), ScoreLoss],
        "multi_class": [StrOptions({"auto", "ovr", "joint"})],
        "zone": [tuple, list],
    }

    def __init__(
        self,
        loss: Any = "logistic",
        C: float = 1.0,
        *,
        multi_class: str = "auto",
        kernel: Any = None,
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        zone: tuple[float, float] = _NO_ZONE,
        fit_intercept: bool = True,
        tol: float = 1e-8,
        max_iter: int = 100,
        warm_start: bool = False,
        cache_size: float = 500.0,
    ) -> None:
        super().__init__(
            loss, C, kernel, gamma, degree, coef0, fit_intercept, tol, max_iter, warm_start,
            cache_size,
        )  # fmt: skip
        self.multi_class = multi_class
        self.zone = zone

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ConvexRiskClassifier:
        """Learn the coefficients from a table of numbers, dense or CSR, or a scan of one."""
        loss = self._read_loss()
        self._refuse_warm_start()
        self._refuse_scan(self.kernel is None or not isinstance(X, Scan), " with a kernel")
        training = self._read_training(X, y, sample_weight)
        if not training.in_memory:
            found = self._fit_scanned(training, loss)
        elif self.kernel is None:
            found = self._fit_linear(training, loss)
        else:
            self._is_joint(len(self.classes_))  # refuses what a kernel cannot do
            n_given = len(y) if hasattr(y, "__len__") else training.n_rows
            matrix, sides = numbers_of(training.table), self._sides(training.y)
            found = self._fit_kernel(loss, matrix, sides, training.weight, training.kept, n_given)
            self._store_kernel(found, loss, training)
        self.duality_gap_ = np.array([solution.gap for solution in found])
        self.objective_ = np.array([solution.value for solution in found])
        self.n_iter_ = np.array([solution.n_iter for solution in found])
        return self

    def _fit_linear(self, training: Training, loss: Any) -> list[Solution]:
        matrix, weight = numbers_of(training.table), training.weight
        sides = self._sides(training.y)
        if self._is_joint(len(self.classes_)):
            start = self._start(matrix.shape[1], len(self.classes_))
            found = [
                solve_joint_logistic(
                    matrix, training.y, weight, C=self.C, fit_intercept=self.fit_intercept,
                    tol=self.tol, max_iter=self.max_iter, start=start,
                ).warn_if_short(type(self).__name__)
            ]  # fmt: skip
        else:
            start = self._start(matrix.shape[1], len(sides))
            found = [
                self._solve(
                    ArraySource(matrix, side, weight), loss, None if start is None else start[k]
                )
                for k, side in enumerate(sides)
            ]
        self._store_linear(found, loss)
        return found

    def _fit_scanned(self, training: ScannedTraining, loss: Any) -> list[Solution]:
        n_classes, width = len(self.classes_), len(training.table.names)
        positives = [1] if n_classes == 2 else list(range(n_classes))
        task = ScanTask(
            training.recoded("numbers", numbers_of), width, np.ones(n_classes), float(self.C),
            bool(self.fit_intercept), float(self.tol), int(self.max_iter),
        )  # fmt: skip
        start = self._start(width, len(positives))
        if self._is_joint(n_classes):
            fit = fit_scanned_multinomial(task, start)
        else:
            fit = fit_scanned(task, loss, positives, start)
        found = [one.warn_if_short(type(self).__name__) for one in fit.solutions]
        self._store_linear(found, loss)
        return found

    def _read_loss(self) -> Any:
        if not isinstance(self.loss, str):
            check_calibrated(lambda margin: self.loss.value(margin, np.ones_like(margin)))
            return self.loss
        zone = tuple(self.zone)
        if self.loss == "gray_zone":
            if zone == _NO_ZONE:
                raise ValueError(
                    "loss='gray_zone' needs zone=(p_min, p_max) other than (0, 1), which is "
                    "loss='logistic'."
                )
            p_min, p_max = zone
            return get_loss("gray_zone", p_min=p_min, p_max=p_max)
        if zone != _NO_ZONE:
            raise ValueError(f"zone goes with loss='gray_zone', not with loss={self.loss!r}.")
        return get_loss(self.loss)

    def _is_joint(self, n_classes: int) -> bool:
        if self.multi_class == "joint" and self.loss != "logistic":
            raise ValueError("multi_class='joint' needs loss='logistic'; use 'ovr'.")
        if self.multi_class == "joint" and self.kernel is not None:
            raise ValueError("multi_class='joint' needs kernel=None; with a kernel use 'ovr'.")
        possible = self.loss == "logistic" and self.kernel is None
        return n_classes > 2 and possible and self.multi_class != "ovr"

    def _sides(self, codes: Ints) -> list[Floats]:
        """Labels -1 and +1 of each two-class problem."""
        positives = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        return [np.where(codes == k, 1.0, -1.0) for k in positives]

    def _start(self, n_columns: int, n_scores: int) -> Floats | None:
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        if self.coef_.shape != (n_scores, n_columns):
            return None
        return np.column_stack([self.coef_, self.intercept_ + self._cut])

    def _read_cut(self, loss: Any) -> float:
        """Log-odds of the decision: those of a zone's centre, 0 without one."""
        zoned = isinstance(self.loss, str) and self.loss == "gray_zone"
        self._cut = log_odds(loss.centre) if zoned else 0.0
        self.__dict__.pop("threshold_", None)
        if zoned and len(self.classes_) == 2:
            self.threshold_ = loss.centre
        return self._cut

    def _store_linear(self, found: list[Solution], loss: Any) -> None:
        self._forget_kernel()
        points = np.vstack([solution.point for solution in found])
        self.coef_ = np.ascontiguousarray(points[:, :-1])
        self.intercept_ = points[:, -1] - self._read_cut(loss)

    def _store_kernel(self, found: list[Solution], loss: Any, training: Training) -> None:
        constants = np.array([solution.point[-1] for solution in found])
        self.intercept_ = constants - self._read_cut(loss)
        codes = np.zeros(training.kept[-1] + 1, np.int64)
        codes[training.kept] = training.y
        self.n_support_ = np.bincount(codes[self.support_], minlength=len(self.classes_))
        # a gray zone's scores are cut at its centre: no longer log-odds
        plain = self.loss == "logistic"
        link = ("logit" if len(found) == 1 else "ovr") if plain else "identity"
        self._store_form(tuple(self.classes_), self.intercept_, link)

    def decision_function(self, X: Any) -> Floats:
        """Score of the second class (two classes) or of each class; zero is the cut."""
        check_is_fitted(self)
        matrix = numbers_of(self._read_rows(X))
        if hasattr(self, "score_form_"):
            scores = self._kernel_scores(matrix)
        else:
            scores = np.asarray(matrix @ self.coef_.T) + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest score; of equal ones the first."""
        scores = self.decision_function(X)
        # a hinge puts rows exactly between two classes, and says -1 of all that it cannot tell
        apart = 0.0 if hasattr(self, "predict_proba") else EQUAL_SCORES
        if scores.ndim == 1:
            return np.asarray(self.classes_[(scores > apart).astype(int)])
        if apart:
            scores = scores >= scores.max(axis=1, keepdims=True) - apart
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @by_blocks
    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class; see the notes for "ovr"."""
        check_is_fitted(self)
        table = self._read_rows(X)
        if not hasattr(self, "score_form_"):
            return self.linear_form_.proba(table)
        if self._columns is None:
            return self.kernel_form_.proba(table)
        odds = (self._kernel_scores(numbers_of(table)) + self._cut) * self._scale
        return probabilities(odds, self._link)

    @property
    def kernel_form_(self) -> KernelForm:
        """A kernel model of log-odds as its support examples, for a model file."""
        check_is_fitted(self, "score_form_")
        _has_probabilities(self)
        own, times = self.score_form_, self._scale
        intercept = (self.intercept_ + self._cut) * times
        labels = tuple(self.classes_)
        return KernelForm(
            KernelScore(labels, own.kernel, own.vectors, own.coef * times, intercept, self._link)
        )

    @property
    def _scale(self) -> float:
        """Log-odds per unit of score; 1 where scores have no probabilities."""
        return _LOG_ODDS_PER_SCORE.get(self.loss, 1.0) if isinstance(self.loss, str) else 1.0

    @property
    def _link(self) -> Link:
        if not isinstance(self.loss, str) or self.loss not in _LOG_ODDS_PER_SCORE:
            return "identity"
        if len(self.classes_) == 2:
            return "logit"
        return "softmax" if self._is_joint(len(self.classes_)) else "ovr"

    @property
    def linear_form_(self) -> LinearScore:
        """A linear model of log-odds as coefficients of the columns, for a model file."""
        check_is_fitted(self, "coef_")
        _has_probabilities(self)
        labels = tuple(plain_label(c) for c in self.classes_)
        return LinearScore(labels, *self._log_odds(), self._link)

    @property
    def form_(self) -> AdditiveScore:
        """A linear model as one line by column: log-odds, or scores where there are none."""
        check_is_fitted(self, "coef_")
        labels = [plain_label(c) for c in self.classes_]
        return linear_score(labels, self.schema_.names, *self._log_odds(), self._link)

    def _log_odds(self) -> tuple[Floats, Floats]:
        """Coefficients and intercepts in units of log-odds, not cut at the zone's centre."""
        return self.coef_ * self._scale, (self.intercept_ + self._cut) * self._scale


@shares_documentation
class ConvexRiskRegressor(ConvexRisk, RegressorMixin, TableReader):  # type: ignore[misc]
    """Linear or kernel regression for a convex loss of the residual, with a certificate.

    Minimises ``|w|^2 / 2 + C sum_i s_i phi(y_i - w.x_i - b)``. With a kernel, w.x becomes a
    function f of its space and ``|w|`` the norm of f.

    Parameters
    ----------
    loss : {"huber", "absolute", "squared"}, default="huber"
        "squared" is ridge regression, "absolute" the median, "huber" squared up to ``epsilon`` and
        absolute beyond (Bach's lecture notes, 2014, section 1).
    (common parameters)
    epsilon : float, default=1.35
        Residual beyond which Huber's loss is linear, in the units of y.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Linear models only.
    intercept_ : float
    (common attributes)
    duality_gap_ : float
        The objective is at most this far above its minimum.
    objective_ : float
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Examples
    --------
    >>> import numpy as np
    >>> from laconic.convex import ConvexRiskRegressor
    >>> draw = np.random.default_rng(0)
    >>> X = draw.normal(size=(200, 2))
    >>> y = X @ [1.0, -2.0] + 0.1 * draw.normal(size=200)
    >>> y[:2] = 1e6
    >>> ConvexRiskRegressor(loss="absolute", C=10.0).fit(X, y).coef_.round(2)
    array([ 0.99, -1.99])
    """

    _accepts = Accepts(categorical=False, missing=False, sparse=True)

    _parameter_constraints: dict[str, list[Any]] = {
        **ConvexRisk._parameter_constraints,
        "loss": [StrOptions(set(REGRESSION_LOSSES))],
        "epsilon": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        loss: str = "huber",
        C: float = 1.0,
        *,
        epsilon: float = 1.35,
        kernel: Any = None,
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        tol: float = 1e-8,
        max_iter: int = 100,
        warm_start: bool = False,
        cache_size: float = 500.0,
    ) -> None:
        super().__init__(
            loss, C, kernel, gamma, degree, coef0, fit_intercept, tol, max_iter, warm_start,
            cache_size,
        )  # fmt: skip
        self.epsilon = epsilon

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ConvexRiskRegressor:
        """Learn the coefficients from a table of numbers, dense or CSR."""
        self._refuse_warm_start()
        rows = read_numeric_training(self, X, y, sample_weight)
        parameters = {"epsilon": self.epsilon} if self.loss == "huber" else {}
        loss = get_loss(self.loss, task="regression", **parameters)
        # an intercept takes up any constant: a middling one keeps the scores small
        level = np.mean if self.loss == "squared" else np.median
        middle = float(level(rows.y)) if self.fit_intercept else 0.0
        if self.kernel is None:
            found = self._solve_linear(loss, rows, middle)
            self._forget_kernel()
            self.coef_: Floats = found.point[:-1]
        else:
            n_given = len(y) if hasattr(y, "__len__") else len(rows.y)
            targets = [rows.y - middle]
            found = self._fit_kernel(loss, rows.X, targets, rows.weight, rows.kept, n_given)[0]
            self._store_form((), np.array([found.point[-1] + middle]), "identity")
        self.intercept_ = float(found.point[-1]) + middle
        self.duality_gap_ = found.gap
        self.objective_ = found.value
        self.n_iter_ = found.n_iter
        return self

    def _solve_linear(self, loss: ScoreLoss, rows: NumericTraining, middle: float) -> Solution:
        if (rows.y == middle).all():  # the constant loses nothing, and no penalty is paid
            return Solution(np.zeros(rows.X.shape[1] + 1), 0.0, 0.0, 1, "gap")
        start = None
        if self.warm_start and hasattr(self, "coef_") and len(self.coef_) == rows.X.shape[1]:
            start = np.append(self.coef_, self.intercept_ - middle)
        return self._solve(ArraySource(rows.X, rows.y - middle, rows.weight), loss, start)

    def predict(self, X: Any) -> Floats:
        """The prediction for each row."""
        check_is_fitted(self)
        matrix = numbers_of(self._read_rows(X))
        if hasattr(self, "score_form_"):
            return self._kernel_scores(matrix)[:, 0]
        return np.asarray(matrix @ self.coef_) + self.intercept_
