"""Kernel logistic regression whose likelihood counts only around the decision."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from laconic._typing import Floats
from laconic.core.contract import (
    Accepts,
    Interval,
    StrOptions,
    Training,
    fit_context,
)
from laconic.core.forms import Link, probabilities
from laconic.core.losses import CURVED, ON_KINK, TruncatedLogistic
from laconic.kernel.fit import KernelProblem, fit_landmarks, fit_rows
from laconic.kernel.form import KernelForm, KernelScore
from laconic.kernel.kernels import parzen_bandwidth
from laconic.linear.estimator import ZoneDecisions, binary_loss
from laconic.linear.form import numbers

__all__ = ["GrayZoneKernelClassifier", "parzen_bandwidth"]


class GrayZoneKernelClassifier(ZoneDecisions):
    r"""Kernel logistic regression with the likelihood truncated outside a gray zone.

    Minimises over the functions f of the kernel's space and an intercept b (Hérault and
    Grandvalet, 2008, equation 6, C-scaled)

    .. math:: \tfrac12 |f|^2 + C \sum_i s_i \max(\log(1 + e^{-y_i (f(x_i) + b)}),\, c_{y_i})

    Rows surely on their side of the zone have no part in the model, as with a support vector
    machine, and the score is a log-odds around the decision.

    Parameters
    ----------
    kernel : {"rbf", "poly", "linear", "precomputed"} or callable, default="rbf"
        "precomputed" takes the kernel matrix as X; a callable takes two tables and returns one
        value per pair of rows.
    gamma : {"scale", "auto"} or float, default="scale"
        Of "rbf", ``exp(-gamma |x - x'|^2)``, and "poly"; "scale" is 1 / (n_features * variance)
        and "auto" 1 / n_features. ``1 / (2 * parzen_bandwidth(X) ** 2)`` is the paper's choice.
    degree, coef0 : int and float, default=3 and 0.0
        Of "poly", (gamma x.x' + coef0)^degree.
    zone : (p_min, p_max) or float, default=(0.0, 1.0)
        Probabilities of the second class that matter; (0, 1) is kernel logistic regression. With
        more classes it is used for each class against the rest.
    C : float, default=1.0
        Weight of the losses.
    threshold : float or None, default=None
        Probability at which ``predict`` turns to the second class, inside the zone; by default its
        centre in log-odds. Two classes only.
    class_weight : dict, "balanced" or None, default=None
    landmarks : int or None, default=None
        Use functions of this many k-means points only, for rows in the hundreds of thousands.
    exact_gap : bool, default=False
        With landmarks: certify against all functions of the kernel and not only those of the
        landmarks. Takes the kernel between all supports.
    solver : {"auto", "active-set", "smo", "low-rank", "block"}, default="auto"
        The paper's exchanges; pairs of multipliers; Newton on a basis of few rows that spans the
        kernel to rounding; Newton on the rows that matter. "auto" takes "smo" up to 8,000 rows,
        above that "low-rank" where the kernel's rank allows it, else "smo"; where one end of the
        zone is 0 or 1 it takes "block" in place of "smo".
    tol : float, default=1e-5
        Stop when ``duality_gap_ <= tol * objective_``.
    max_iter : int, default=1000
        Newton steps, or sweeps of n pair steps.
    cache_size : float, default=500
        Megabytes of kernel values kept in memory.
    proba : {"sigmoid", "clip"}, default="sigmoid"
        ``predict_proba`` as it comes, or clipped to the zone (two classes).
    random_state : int, RandomState or None, default=None
        Of the k-means landmarks; None is a fixed number, so that the same table gives the same
        model.

    Attributes
    ----------
    support_ : ndarray
        Rows with a part in the model.
    support_vectors_ : ndarray of shape (n_support, n_features)
    n_support_ : ndarray of shape (n_classes,)
    dual_coef_ : ndarray of shape (1, n_support) or (n_classes, n_support)
        Multipliers. ``dual_coef_ @ k(support_vectors_, x) + intercept_`` is the score; with
        "low-rank" and landmarks up to the gap only.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        With ``kernel="linear"`` only, as in SVC.
    score_form_ : KernelScore
        What predicts. "low-rank" and landmarks expand the score on their few points.
    threshold_ : float
        Two classes only.
    objective_, duality_gap_ : float
        Value reached and the certified bound on its excess; summed over the classes.
    n_iter_ : ndarray
    partition_ : ndarray of shape (n_rows, 1), or (n_rows, n_classes) for several classes
        0: no part in the model (I_0), 1: on the kink (I_h), 2: plain likelihood (I_l).
    solver_ : str
        The solver that "auto" chose.
    gamma_ : float
    classes_, n_features_in_, feature_names_in_

    References
    ----------
    R. Hérault and Y. Grandvalet, "Classifieurs probabilistes parcimonieux", Traitement du Signal
    25(4), 2008, sections 3.2 and 4.1.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from laconic import GrayZoneKernelClassifier
    >>> X, y = make_moons(300, noise=0.25, random_state=0)
    >>> model = GrayZoneKernelClassifier(zone=(0.3, 0.7), gamma=2.0).fit(X, y)
    >>> model.score(X, y) > 0.9, len(model.support_) < 150
    (True, True)
    >>> bool(model.duality_gap_ <= 1e-5 * model.objective_)
    True
    """

    _accepts = Accepts(categorical=False, missing=False, sparse=True)

    _parameter_constraints: dict[str, list[Any]] = {
        "kernel": [StrOptions({"rbf", "poly", "linear", "precomputed"}), callable],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [Interval(Real, 0, None, closed="left")],
        "zone": ["array-like", Interval(Real, 0, 1, closed="both")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "threshold": [Interval(Real, 0, 1, closed="both"), None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "landmarks": [Interval(Integral, 1, None, closed="left"), None],
        "exact_gap": ["boolean"],
        "solver": [StrOptions({"auto", "active-set", "smo", "low-rank", "block"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "cache_size": [Interval(Real, 0, None, closed="neither")],
        "proba": [StrOptions({"sigmoid", "clip"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        *,
        degree: int = 3,
        coef0: float = 0.0,
        zone: Any = (0.0, 1.0),
        C: float = 1.0,
        threshold: float | None = None,
        class_weight: Any = None,
        landmarks: int | None = None,
        exact_gap: bool = False,
        solver: str = "auto",
        tol: float = 1e-5,
        max_iter: int = 1000,
        cache_size: float = 500.0,
        proba: str = "sigmoid",
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.zone = zone
        self.C = C
        self.threshold = threshold
        self.class_weight = class_weight
        self.landmarks = landmarks
        self.exact_gap = exact_gap
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.proba = proba
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GrayZoneKernelClassifier:
        """Fit the multipliers.

        For ``kernel="precomputed"`` X is the kernel matrix.
        """
        n_given = len(y) if hasattr(y, "__len__") else None
        rows = self._read_training(X, y, sample_weight)
        loss = self._read_zone()
        problem = KernelProblem.read(self, rows, n_given or rows.n_rows)
        self.gamma_ = problem.kernel.gamma
        weight = self._class_weighted(rows)
        sides = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        targets = [np.where(rows.y == k, 1.0, -1.0) for k in sides]
        fit = fit_rows if self.landmarks is None else fit_landmarks
        found = fit(self, problem, loss, targets, weight)
        for part in found.fits:
            part.solution.warn_if_short(type(self).__name__, "raise max_iter or tol, or scale X")
        self._store(found, rows, n_given or rows.n_rows)
        return self

    def _read_zone(self) -> TruncatedLogistic:
        if len(self.classes_) == 2:
            return self._set_threshold(binary_loss(self.zone))
        self._refuse_threshold()
        return binary_loss(self.zone)

    def _store(self, found: Any, rows: Training, n_given: int) -> None:
        fits = found.fits
        slopes = np.stack([part.slopes for part in fits])
        kinks = np.stack([part.on_kink for part in fits])
        parts = np.where(kinks, ON_KINK, np.where(slopes != 0, CURVED, 0)).astype(np.int8).T
        used = (parts > 0).any(axis=1) | found.expanded
        self.partition_ = np.zeros((n_given, len(fits)), np.int8)
        self.partition_[rows.kept] = parts
        self.support_ = rows.kept[used]
        self.support_vectors_ = found.vectors(used)
        self.n_support_ = np.bincount(rows.y[used], minlength=len(self.classes_))
        self.dual_coef_ = found.multipliers()[:, used]
        self.intercept_ = np.array([part.b for part in fits])
        link: Link = "logit" if len(self.classes_) == 2 else "ovr"
        kernel, vectors, coef = found.expansion()
        self.score_form_ = KernelScore(
            tuple(self.classes_), kernel, vectors, coef, self.intercept_, link
        )
        self._columns = rows.kept[found.basis()] if kernel.name == "precomputed" else None
        self.objective_ = float(sum(part.solution.value for part in fits))
        self.duality_gap_ = float(sum(part.solution.gap for part in fits))
        self.n_iter_ = np.array([max(part.solution.n_iter, 1) for part in fits])
        self.solver_ = fits[0].solver

    @property
    def coef_(self) -> Floats:
        """``X @ coef_.T + intercept_`` is the score, with ``kernel="linear"``."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is there with kernel='linear' only.")
        form = self.score_form_
        return np.asarray(form.coef @ form.vectors)

    def log_odds(self, X: Any) -> Floats:
        """f(x) + b: log-odds of the second class, or one score per class."""
        matrix = numbers(self._read_rows(X))
        if self._columns is not None:
            matrix = matrix[:, self._columns]
        scores = self.score_form_.score(matrix)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    @property
    def kernel_form_(self) -> KernelForm:
        """The model as its support examples, for a model file."""
        check_is_fitted(self, "score_form_")
        return KernelForm(self.score_form_, None if self.proba == "sigmoid" else self._zone_ends())

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class; with more than two, sigmoids divided by their sum."""
        scores = self.log_odds(X).reshape(-1, len(self.intercept_))
        found = probabilities(scores, self.score_form_.link)
        if self.proba == "sigmoid":
            return found
        p = np.clip(found[:, 1], *self._zone_ends())
        return np.column_stack([1.0 - p, p])
