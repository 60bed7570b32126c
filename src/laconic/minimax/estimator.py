"""MinimaxClassifier: the rule whose worst class risk is smallest, over discrete profiles."""

from __future__ import annotations

from copy import copy
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
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
from laconic.core.folds import folds_of
from laconic.core.forms import plain_label
from laconic.core.losses import Solution
from laconic.data.row_keys import seed_of
from laconic.minimax.binning import BINNINGS, PROFILES
from laconic.minimax.criterion import PriorBox, checked_costs
from laconic.minimax.form import ProfileForm
from laconic.minimax.model import MinimaxSettings, ProfileModel, fit_profiles, held_out_risks
from laconic.minimax.solver import SOLVERS


class MinimaxClassifier(TableClassifier):
    r"""Classifier for an unknown class mix: it minimises the worst class risk.

    Rows are put into profiles (one bin per column, a cluster, or a tree leaf). With
    :math:`p_{kt}` the share of profile t in class k and :math:`L_{kl}` the cost of deciding l for
    a row of class k, the Bayes risk of a class prior is

    .. math:: V(\pi) = \sum_t \min_l \sum_k L_{kl} \pi_k p_{kt},

    concave and piecewise affine. The classifier finds the prior that maximises it, the least
    favourable one within ``prior_bounds``, and the mixture of at most K Bayes rules whose worst
    risk equals that maximum. On the whole simplex all classes with a positive least favourable
    prior have the same risk.

    Parameters
    ----------
    costs : array-like of shape (K, K), frame or dict, default=None
        ``costs[k, l]``: cost of deciding class l for a row of class k, in the order of
        ``classes_``; or ``{"fp": 1, "fn": 10}``, or ``{true: {decided: cost}}``. None counts
        errors.
    positive : class, default=None
        The class that "fp" and "fn" are about; needed for labels other than 0/1, -1/+1,
        False/True and no/yes.
    prior_bounds : array-like of shape (K, 2) or dict, default=None
        Least and largest proportion of each class that is believed possible; a dict maps classes
        to pairs. None: any class mix.
    profiles : {"bins", "kmeans", "tree"}, default="bins"
        One bin per column; k-means clusters of standardised rows; leaves of a decision tree. A
        categorical column has one bin per category; missing values are a bin of their own.
    n_bins : int, default=3
        Bins per numeric column (``profiles="bins"``; not used by ``binning="modl"``).
    binning : {"quantile", "width", "kmeans", "modl"}, default="quantile"
        Bins of equal weight, of equal width (the paper's), of least within-bin variance (exact),
        or of least description length given the classes.
    n_profiles : int, default=None
        Clusters or leaves at most; None means 50.
    smoothing : float, "nearest" or "error", default=1.0
        A number alpha: :math:`p_{kt} = (n_{kt} + \alpha q_k(t)) / (n_k + \alpha)`, with
        :math:`q_k` the naive Bayes product of the columns, which also answers for profiles that
        no training row had. The words keep the plain frequencies and give such a row the nearest
        profile, or an error.
    solver : {"auto", "bundle", "subgradient", "lp"}, default="auto"
        "auto" is the closed form for two classes and the level bundle method otherwise;
        "subgradient" is the paper's algorithm, run for ``max_iter`` steps; "lp" is a linear
        program, for small tables.
    tie : {"randomized", "deterministic"}, default="randomized"
        Use the minimax mixture, or the paper's rule: the Bayes rule at the least favourable
        prior. The latter can have class risks far above the minimax risk, because profiles tie.
    tol : float, default=1e-8
        Duality gap at which the optimiser stops.
    max_iter : int, default=5000
    cv : int, splitter or None, default=5
        Folds of ``class_risks_oof_``; None skips it.
    random_state : int, RandomState or None, default=None
        Key of the draws of :meth:`predict`, of the folds and of the clusters. Draws and folds are
        hashes of the rows' values and this key; None is a fixed key, so that the same table gives
        the same model.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    cost_matrix_ : ndarray of shape (K, K)
    least_favorable_prior_ : ndarray of shape (K,)
    minimax_risk_ : float
        V at the least favourable prior. No rule has a smaller worst risk over the box.
    duality_gap_ : float
        Worst risk of the best mixture found, minus ``minimax_risk_``.
    class_risks_ : ndarray of shape (K,)
        Risks of the rule under the laws learned from the training rows. Optimistic for rare
        classes, whose laws are learned from few rows.
    class_risks_oof_ : ndarray of shape (K,)
        Risks on rows held out of the fit: the numbers to believe.
    bayes_risk_ : float
        V at the class proportions of the training rows.
    class_prior_ : ndarray of shape (K,)
    n_profiles_ : int
        Profiles that training rows fall into.
    n_iter_ : int
    profile_form_ : ProfileForm
        What decides, as the model file keeps it.
    bound_9_ : float
        With ``solver="subgradient"``, the corrected bound (9) of the paper.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Notes
    -----
    ``predict_proba`` gives the probabilities with which the rule *decides* each class, not those
    of the classes. ``predict`` draws the decision of each row from them, by a hash of the row's
    values and ``random_state``: the same row always gets the same decision, in any batch and
    after any reload. Equal rows therefore get the same decision; where many rows are equal (a
    single categorical column) and their decisions should be independent, draw from
    ``predict_proba``.

    References
    ----------
    L. Fillatre, C. Gilet, S. Barbosa, "Apprentissage d'un classifieur minimax pour données
    discrètes".

    Examples
    --------
    >>> import numpy as np
    >>> from laconic import MinimaxClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = (rng.random(2000) < 0.1).astype(int)
    >>> X = rng.normal(size=(2000, 2)) + y[:, None]
    >>> model = MinimaxClassifier(n_bins=5).fit(X, y)
    >>> model.n_profiles_
    25
    >>> bool(np.ptp(model.class_risks_) < 1e-9)
    True
    """

    _accepts = Accepts(categorical=True, missing=True, sparse=False, scan=True)
    decides = True  # its probabilities are those of decisions, not of classes

    _parameter_constraints: dict[str, list[Any]] = {
        "costs": ["array-like", dict, None],
        "positive": "no_validation",  # type: ignore[dict-item]
        "prior_bounds": ["array-like", dict, None],
        "profiles": [StrOptions(set(PROFILES))],
        "n_bins": [Interval(Integral, 1, None, closed="left")],
        "binning": [StrOptions(set(BINNINGS))],
        "n_profiles": [Interval(Integral, 1, None, closed="left"), None],
        "smoothing": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({"nearest", "error"}),
        ],
        "solver": [StrOptions(set(SOLVERS))],
        "tie": [StrOptions({"randomized", "deterministic"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "cv": ["cv_object", None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        costs: Any = None,
        prior_bounds: Any = None,
        *,
        positive: Any = None,
        profiles: str = "bins",
        n_bins: int = 3,
        binning: str = "quantile",
        n_profiles: int | None = None,
        smoothing: float | str = 1.0,
        solver: str = "auto",
        tie: str = "randomized",
        tol: float = 1e-8,
        max_iter: int = 5000,
        cv: Any = 5,
        random_state: Any = None,
    ) -> None:
        self.costs = costs
        self.positive = positive
        self.prior_bounds = prior_bounds
        self.profiles = profiles
        self.n_bins = n_bins
        self.binning = binning
        self.n_profiles = n_profiles
        self.smoothing = smoothing
        self.solver = solver
        self.tie = tie
        self.tol = tol
        self.max_iter = max_iter
        self.cv = cv
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # where profiles tie, the paper's rule may decide a whole class wrong
        tags.classifier_tags.poor_score = self.tie == "deterministic"
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MinimaxClassifier:
        """Learn profiles, the least favourable prior and the minimax rule.

        A scan takes ``profiles="bins"``, and its ``class_risks_oof_`` come from folds by a
        hash of the row's values.
        """
        rows = self._read_training(X, y, sample_weight)
        settings = self._settings()
        if rows.in_memory:
            model, found = fit_profiles(rows.table, rows.y, rows.weight, settings)
            risks = self._held_out(rows, settings, len(np.asarray(y)))
        else:
            model, found, risks = self._fit_scanned(rows, settings)
        found.warn_if_short(type(self).__name__)
        self.least_favorable_prior_: Floats = found.point
        self.minimax_risk_: float = found.details["lower_bound"]
        self.duality_gap_ = found.gap
        self.n_iter_ = found.n_iter
        self.model_ = model
        self.cost_matrix_ = settings.costs
        self.class_risks_ = model.class_risks
        self.class_prior_ = model.class_prior
        self.bayes_risk_ = model.bayes_risk(model.class_prior)
        self.n_profiles_ = model.form.index.n_profiles
        if "bound_9" in found.details:
            self.bound_9_: float = found.details["bound_9"]
        self.class_risks_oof_ = risks
        return self

    def _can_scan(self) -> bool:
        return self.profiles == "bins" and (self.cv is None or isinstance(self.cv, Integral))

    def _fit_scanned(
        self, rows: ScannedTraining, settings: MinimaxSettings
    ) -> tuple[ProfileModel, Solution, Floats | None]:
        from laconic.minimax.scan import fit_scanned_profiles

        self._refuse_scan(self.profiles == "bins", f"(profiles={self.profiles!r})")
        self._refuse_scan(self._can_scan(), " with a splitter as cv")
        n_folds = None if self.cv is None else int(self.cv)
        return fit_scanned_profiles(rows.source, rows.table, settings, n_folds)

    def _settings(self) -> MinimaxSettings:
        n_classes = len(self.classes_)
        self._seed = seed_of(self.random_state)
        return MinimaxSettings(
            costs=checked_costs(self.costs, self.classes_, self.positive),
            box=PriorBox.of(self.prior_bounds, n_classes, self.classes_),
            profiles=self.profiles,  # type: ignore[arg-type]
            binning=self.binning,  # type: ignore[arg-type]
            n_bins=self.n_bins,
            n_profiles=self.n_profiles,
            smoothing=self.smoothing,  # type: ignore[arg-type]
            solver=self.solver,  # type: ignore[arg-type]
            randomized=self.tie == "randomized",
            tol=self.tol,
            max_iter=self.max_iter,
            seed=self._seed,
        )

    def _held_out(self, rows: Training, settings: MinimaxSettings, n_given: int) -> Floats | None:
        if self.cv is None:
            return None
        folds = folds_of(self.cv, rows, n_given, settings.seed)
        return held_out_risks(rows.table, rows.y, rows.weight, settings, folds)

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities with which the rule decides each class, shape (n, K)."""
        check_is_fitted(self)
        return self.model_.form.decide(self._read_rows(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """One decision per row, drawn by a hash of the row's values."""
        decided = self.profile_form_.decisions(self._read_rows(X))
        return np.asarray(self.classes_[decided])

    @property
    def profile_form_(self) -> ProfileForm:
        """The rule as numbers and texts, for a model file."""
        check_is_fitted(self)
        labels = tuple(plain_label(c) for c in self.classes_)
        return ProfileForm(labels, self.model_.form, self._seed)

    def discrete_bayes(self, prior: ArrayLike | None = None) -> MinimaxClassifier:
        """The deterministic Bayes rule at a class prior (default: that of the training rows).

        Returns a fitted classifier with the same profiles; its ``minimax_risk_`` is the risk at
        that prior, and it has no held-out risks.
        """
        check_is_fitted(self)
        n_classes = len(self.classes_)
        at = self.class_prior_ if prior is None else np.asarray(prior, dtype=np.float64)
        if at.shape != (n_classes,) or (at < 0).any() or not np.isclose(at.sum(), 1.0):
            raise ValueError(
                f"prior must be {n_classes} proportions that sum to one, in the order of "
                f"classes_; got {prior!r}."
            )
        other = copy(self)
        other.model_ = self.model_.deterministic(at)
        other.least_favorable_prior_ = at
        other.class_risks_ = other.model_.class_risks
        other.minimax_risk_ = float(at @ other.class_risks_)
        other.duality_gap_ = 0.0
        other.class_risks_oof_ = None
        return other

    def bayes_risk(self, prior: ArrayLike) -> float:
        """V(prior): the least risk that any rule over these profiles has at that class mix."""
        check_is_fitted(self)
        return self.model_.bayes_risk(np.asarray(prior, dtype=np.float64))
