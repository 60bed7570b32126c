"""SparseAdditiveClassifier: few readable shapes, pairs where the data ask for them, certified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from laconic._typing import Floats, Ints
from laconic.additive import tuning
from laconic.additive.fit import (
    AdditiveFit,
    FitSettings,
    FittedTerm,
    edited_term,
    encode_training,
    fit_additive,
    fold_forms,
    refit_rest,
)
from laconic.additive.scan import read_encoded, read_sample
from laconic.core.contract import Accepts, Interval, StrOptions, fit_context
from laconic.core.decisions import class_codes, cost_matrix, decision_threshold, expected_costs
from laconic.core.folds import folds_of
from laconic.core.form_prediction import FormPrediction
from laconic.core.losses import TruncatedLogistic
from laconic.data.row_keys import pairs_apart, seed_of
from laconic.data.source import one_blas_thread
from laconic.data.tables.axes import KnotRule
from laconic.data.tables.columns import Table, forbidden_pairs, shown

LEAST_TOTAL, MOST_TOTAL = 1e-9, 1e15
"""Sums of sample weights that are numbers of rows: more cannot be counted in floats."""


class SparseAdditiveClassifier(FormPrediction):
    r"""A sum of shapes of one column and grids of two, as few as the data justify.

    .. math:: f(x) = b + \sum_j s_j(x_j) + \sum_{(j,k)} s_{jk}(x_j, x_k)

    minimises

    .. math:: C \sum_i w_i\,\varphi(f(x_i), y_i)
              + \sum_t \Big[\lambda_t\,\mathrm{sd}(s_t) + \tfrac12 \mathrm{roughness}(s_t)\Big]

    Shapes of numeric columns are piecewise linear, with levels of their own for missing values,
    point masses and special codes; those of categories are tables; pairs are bilinear grids. The
    roughness of every term is weighed by marginal likelihood; the group penalty
    :math:`\lambda_t`, which removes whole terms, is chosen by cross-validation, and is zero in the
    last fit of the terms it leaves when ``relaxed``. For the chosen terms and smoothing parameters
    the problem is convex, and ``duality_gap_`` bounds the distance from its optimum.

    Parameters
    ----------
    zone : (float, float), default=(0.0, 1.0)
        Gray zone of the loss, two classes only: positives above the upper end and negatives below
        the lower one stop counting. (0, 1) is the logistic loss.
    C : float, default=1.0
        Weight of the losses against the penalties.
    group_penalty : "cv" or float in [0, 1], default="cv"
        Share of the least penalty that leaves no term at all.
    smoothness : "auto" or float, default="auto"
        "auto": for every term, how its neighbouring values agree (second differences, first
        differences, or less) and how strongly, by marginal likelihood; all smoothing parameters
        doubled or halved if held-out rows ask for it. A number is one parameter for all, on second
        differences, 1 being a moderate one.
    max_knots : int, default=32
        Most knots of a shape; fewer for small samples, a few more in long tails. A column of at
        most four times as many distinct values, each with ten rows on average, has one at each.
    pairs : "auto" or int, default="auto"
        "auto": pairs whose evidence outweighs the number of pairs looked at, each with its own
        smoothness; and, if held-out rows confirm it or the evidence of all pairs together asks for
        it, up to two weak pairs for each column (all pairs where they have few cells) under one
        common smoothing parameter (cross-validation only). A number gives that many candidates to
        the group penalty; 0: shapes of one column only.
    max_terms : int, default=None
        Most terms of the fitted model.
    monotone : mapping or sequence, default=None
        +1 (increasing) or -1 (decreasing) by column name, or one entry (with 0 = free) for each
        column. Numeric columns and two classes only; such a column enters no pair, and none of its
        values has a level beside the line.
    forbid : sequence of pairs of column names, default=None
        Columns that may not enter a term together.
    costs : mapping, frame or array-like, default=None
        Costs of decisions; see :func:`laconic.decision_threshold`. Given, points of the path are
        compared by expected cost and ``predict`` takes the cheapest decision.
    positive : class, default=None
        The class that "fp" and "fn" are about; needed for labels other than 0/1, -1/+1,
        False/True and no/yes.
    selection : {"best", "half-se", "1se"}, default="best"
        Point of the path: the least held-out loss (of equal ones the fewest terms; from 2,500 rows
        on a term must spare as much as a quarter of a row at chance level), or the fewest terms
        within half a standard error or one of it.
    relaxed : bool, default=True
        The group penalty chooses the terms and then leaves: the chosen ones are fitted without it
        (relaxed lasso, Meinshausen 2007), in every fold as in the end. False: it also shrinks them.
    cv : int, splitter or iterable, default=5
        Selection folds; from 2,500 rows on the first two of five (those that hold out a third of
        the rows), which the others follow.
    tol : float, default=1e-5
        The optimiser stops when the duality gap is below ``tol`` times the objective.
    n_jobs : int, default=None
        Folds that run at the same time. Does not change the result.
    random_state : int, RandomState or None, default=None
        Seed of the folds, and of the rows that choices are made on when there are more than
        50,000. None: drawn from the rows' values, so the same table gives the same model.

    Attributes
    ----------
    terms_ : list of FittedTerm
        By decreasing importance: columns, axes, values, standard errors, importance.
    intercept_ : ndarray of shape (n_scores,)
    n_terms_ : int
    form_ : AdditiveScore
        The model as numbers and texts, for export.
    duality_gap_, objective_ : float
        The minimum of the convex problem lies in ``[objective_ - duality_gap_, objective_]``.
    n_iter_ : int
    path_ : dict of ndarray
        "group_penalty", "loss" (held-out, what was selected by), "log_loss", "n_terms".
    group_penalty_ : float
    held_out_proba_ : ndarray of shape (n, K) or None
        With ``group_penalty="cv"``: probabilities of every training row by the fold that did not
        see it, at the chosen penalty; NaN for rows that no fold held out.
    smoothness_factor_ : float
        What held-out rows multiplied all smoothing parameters by (a power of two).
    pair_smoothing_ : float
        Common smoothing parameter of the weak pairs; infinite when there are none.
    feature_importances_ : ndarray of shape (n_features,)
        Sum of the importances of the terms that read the column (half each for a pair).
    threshold_ : float
        Two classes: probability of the last class above which it is predicted.
    classes_, n_features_in_, feature_names_in_

    See Also
    --------
    laconic.displays.TermsDisplay : draws the terms.
    laconic.displays.AdditivePathDisplay : held-out loss against the number of terms.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = SparseAdditiveClassifier(max_terms=5).fit(X, y)
    >>> model.n_terms_ <= 5 and model.duality_gap_ <= 1e-5 * model.objective_
    True
    >>> model.explain(X[:2]).contributions.shape == (2, model.n_terms_, 1)
    True
    """

    _accepts = Accepts(scan=True)
    _keeps_forms = False  # whoever compares models asks for the forms of the folds

    _parameter_constraints = {
        "zone": [tuple, list],
        "C": [Interval(Real, 0, None, closed="neither")],
        "group_penalty": [StrOptions({"cv"}), Interval(Real, 0, 1, closed="both")],
        "smoothness": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "max_knots": [Interval(Integral, 2, 200, closed="both")],
        "pairs": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
        "max_terms": [None, Interval(Integral, 1, None, closed="left")],
        "monotone": [None, Mapping, "array-like"],
        "forbid": [None, list, tuple],
        "costs": "no_validation",
        "positive": "no_validation",
        "selection": [StrOptions({"best", "half-se", "1se"})],
        "relaxed": ["boolean"],
        "cv": "no_validation",
        "tol": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [None, Integral],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        zone: tuple[float, float] = (0.0, 1.0),
        C: float = 1.0,
        *,
        group_penalty: float | str = "cv",
        smoothness: float | str = "auto",
        max_knots: int = 32,
        pairs: int | str = "auto",
        max_terms: int | None = None,
        monotone: Mapping[str, int] | Sequence[int] | None = None,
        forbid: Sequence[tuple[str, str]] | None = None,
        costs: Any = None,
        positive: Any = None,
        selection: str = "best",
        relaxed: bool = True,
        cv: Any = 5,
        tol: float = 1e-5,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.zone = zone
        self.C = C
        self.group_penalty = group_penalty
        self.smoothness = smoothness
        self.max_knots = max_knots
        self.pairs = pairs
        self.max_terms = max_terms
        self.monotone = monotone
        self.forbid = forbid
        self.costs = costs
        self.positive = positive
        self.selection = selection
        self.relaxed = relaxed
        self.cv = cv
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _can_scan(self) -> bool:
        return self.group_penalty != "cv" or isinstance(self.cv, Integral)

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> SparseAdditiveClassifier:
        """Learn axes, terms, penalties, then the certified fit.

        Of more than 50,000 rows a sample is held and all are summed block by block, from a scan by
        whoever owns the block; ``held_out_proba_`` is then None for a scan.
        """
        training = self._read_training(X, y, sample_weight)
        if training.in_memory:
            _refuse_weights(training.weight)
        settings = self._settings()
        seed = seed_of(self.random_state)
        signed = zip(self.schema_.names, settings.signs, strict=False)
        rule = KnotRule(settings.max_knots, whole=frozenset(name for name, sign in signed if sign))
        self._refuse_scan(training.in_memory or self._can_scan(), " with a splitter as cv")
        if training.n_rows > tuning.SELECTION_ROWS:
            rows = read_sample(training, len(self.classes_), rule, seed)
        elif training.in_memory:
            rows = encode_training(training, rule, seed)
        else:
            rows = read_encoded(training, len(self.classes_), rule, seed)
        folds: list[Ints] = []
        if self.group_penalty == "cv" and isinstance(self.cv, Integral):
            pairs = pairs_apart(rows.keys, rows.y, int(self.cv), seed, **rows.beside)
            folds = [test for _, test in pairs]
        elif self.group_penalty == "cv":
            given = folds_of(self.cv, training, len(np.asarray(y)), seed)
            places = [np.sort(rows.place[test]) for _, test in given]
            folds = [place[place >= 0] for place in places]
        # the products of a step are small: two threads take five times as long
        with one_blas_thread():
            fitted = fit_additive(settings, rows, folds)
        fitted.solution.warn_if_short(type(self).__name__, "raise tol")
        self._publish(fitted)
        if self._keeps_forms:
            self._held_out_forms = fold_forms(settings, rows, fitted.choice)
        return self

    def _settings(self) -> FitSettings:
        K = len(self.classes_)
        if len(self.zone) != 2:
            raise ValueError(f"zone must be two probabilities (p_min, p_max), got {self.zone!r}.")
        loss = TruncatedLogistic(*(float(p) for p in self.zone))
        if max(loss.heights) > 0 and K > 2:
            raise ValueError(f"zone is for two classes and y has {K}; leave it at (0, 1).")
        return FitSettings(
            classes=tuple(self.classes_.tolist()),
            loss=loss,
            C=float(self.C),
            group_penalty=None if self.group_penalty == "cv" else float(self.group_penalty),
            smoothness=None if self.smoothness == "auto" else float(self.smoothness),
            max_knots=int(self.max_knots),
            pairs=None if self.pairs == "auto" else int(self.pairs),
            max_terms=self.max_terms,
            signs=self._signs(K),
            forbidden=forbidden_pairs(self.forbid, self.schema_.names),
            costs=None if self.costs is None else self._cost_matrix(),
            selection=self.selection,
            relaxed=bool(self.relaxed),
            tol=float(self.tol),
            n_jobs=self.n_jobs,
        )

    def _signs(self, K: int) -> tuple[int, ...]:
        """One sign for each column; () when no shape is constrained."""
        if self.monotone is None:
            return ()
        names = self.schema_.names
        if isinstance(self.monotone, Mapping):
            unknown = [name for name in self.monotone if name not in names]
            if unknown:
                raise ValueError(f"monotone names {shown(unknown[0])}, which is not a column of X.")
            given = [self.monotone.get(name, 0) for name in names]
        else:
            given = list(self.monotone)
        if len(given) != len(names):
            raise ValueError(f"monotone has {len(given)} entries for {len(names)} columns.")
        for name, kind, sign in zip(names, self.schema_.kinds, given, strict=True):
            if sign not in (-1, 0, 1):
                raise ValueError(
                    f"monotone of column {shown(name)} must be -1, 0 or 1, got {sign!r}."
                )
            if sign and kind == "categorical":
                raise ValueError(
                    f"monotone: column {shown(name)} is categorical and has no order; make it "
                    "numeric or leave it free."
                )
        if any(given) and K > 2:
            raise ValueError(f"monotone is for two classes and y has {K}; leave it at None.")
        return tuple(int(sign) for sign in given) if any(given) else ()

    def _publish(self, fitted: AdditiveFit) -> None:
        self.form_ = fitted.form
        self.terms_ = list(fitted.terms)
        self.path_ = fitted.path
        self.group_penalty_ = fitted.group_penalty
        self.smoothness_factor_ = fitted.choice.factor
        self.pair_smoothing_ = fitted.choice.pair_smoothing
        self.held_out_proba_ = fitted.held_out
        self.objective_ = fitted.solution.value
        self.duality_gap_ = fitted.solution.gap
        self.n_iter_ = max(1, fitted.solution.n_iter)
        self._record = fitted.record
        self._refresh()

    def _refresh(self) -> None:
        """Attributes that follow from the form and the terms."""
        self.intercept_ = self.form_.intercept.copy()
        self.n_terms_ = len(self.terms_)
        names = list(self.schema_.names)
        importance = np.zeros(len(names))
        for term in self.terms_:
            for name in term.columns:
                importance[names.index(name)] += term.importance / len(term.columns)
        self.feature_importances_ = importance
        if len(self.classes_) == 2:
            self.threshold_ = self._threshold()
        elif hasattr(self, "threshold_"):
            del self.threshold_

    def _cost_matrix(self) -> Floats:
        return cost_matrix(self.costs, self.classes_, positive=self.positive)

    def _threshold(self) -> float:
        if self.costs is not None:
            return float(decision_threshold(self._cost_matrix()))
        loss = TruncatedLogistic(*self.zone)
        return loss.centre if max(loss.heights) > 0 else 0.5

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of least expected cost; without costs, by ``threshold_`` or the likeliest."""
        proba = self.predict_proba(X)
        if len(self.classes_) == 2:
            decided = (proba[:, 1] > self.threshold_).astype(int)
        elif self.costs is not None:
            decided = expected_costs(proba, self._cost_matrix()).argmin(axis=1)
        else:
            decided = proba.argmax(axis=1)
        return np.asarray(self.classes_[decided])

    def drop(
        self, term: int | str, X: Any = None, y: Any = None, sample_weight: Any = None
    ) -> SparseAdditiveClassifier:
        """Remove a term (place in ``terms_`` or name); refit the rest if X and y are given."""
        t = self._term(term)
        self.form_ = self.form_.without(t)
        del self.terms_[t]
        penalties = self._record.terms
        self._record = replace(self._record, terms=penalties[:t] + penalties[t + 1 :])
        return self._after_edit(None, X, y, sample_weight)

    def edit(
        self,
        term: int | str,
        values: ArrayLike,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
    ) -> SparseAdditiveClassifier:
        """Give a term new slot values; refit the others around it if X and y are given.

        ``values`` has the shape of ``terms_[term].values``. After an edit the model is no longer
        the optimum of its criterion and ``duality_gap_`` becomes infinite; if the rest is
        refitted, it certifies the rest given the edited term.
        """
        t = self._term(term)
        self.terms_[t] = edited_term(self.terms_[t], values)
        self.form_ = self.form_.with_term(t, self.terms_[t].form)
        return self._after_edit(t, X, y, sample_weight)

    def plot_terms(self, terms: Any = None, *, score: int = 0, **options: Any) -> Any:
        """Draw the terms; the options are those of ``TermsDisplay.plot``."""
        from laconic.additive.displays import TermsDisplay  # loaded only when something is drawn

        return TermsDisplay.from_estimator(self, terms, score=score).plot(**options)

    def _term(self, term: int | str) -> int:
        check_is_fitted(self, "form_")
        names = [t.name for t in self.terms_]
        if isinstance(term, str):
            if term not in names:
                raise ValueError(f"No term is called {shown(term)}; the terms are {names}.")
            return names.index(term)
        if not -len(names) <= term < len(names):
            raise ValueError(f"term {term} is out of range: the model has {len(names)} terms.")
        return int(term) % len(names)

    def _after_edit(
        self, fixed: int | None, X: Any, y: Any, sample_weight: Any
    ) -> SparseAdditiveClassifier:
        self.duality_gap_ = np.inf
        if X is not None:
            rows = self._read_again(X, y, sample_weight)
            refitted = refit_rest(self._settings(), self._record, self.terms_, fixed, *rows)
            self.form_, self.terms_ = refitted.form, list(refitted.terms)
            self._record = refitted.record
            self.objective_, self.duality_gap_ = refitted.solution.value, refitted.solution.gap
        self._refresh()
        return self

    def _read_again(self, X: Any, y: Any, sample_weight: Any) -> tuple[Table, Any, Floats]:
        """Rows of a refit: read with the columns and classes that are already known."""
        if y is None:
            raise ValueError("A refit of the rest needs y beside X.")
        table = self._read_rows(X)
        codes = class_codes(np.asarray(y), self.classes_, "y")
        check_consistent_length(X, codes)
        return table, codes, self._read_weight(sample_weight, len(codes))


def _refuse_weights(weight: Floats) -> None:
    """Weights are numbers of rows: a sum that no table has makes every penalty vanish or rule."""
    with np.errstate(over="ignore"):
        total = float(weight.sum())
    if not LEAST_TOTAL <= total <= MOST_TOTAL:
        raise ValueError(
            f"sample_weight adds up to {total:.3g}; a weight of 2 means two rows, so divide "
            f"sample_weight until its sum lies between {LEAST_TOTAL:g} and {MOST_TOTAL:g}, for "
            "instance by its mean."
        )


__all__ = ["FittedTerm", "SparseAdditiveClassifier"]
