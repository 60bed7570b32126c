"""LaconicClassifier: from a table and costs to the smallest model that is good enough."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from laconic._typing import Floats
from laconic.choose.blends import blended_outcomes, fitted_blend
from laconic.choose.candidates import Candidate, auto_candidates, read_candidates, without_blends
from laconic.choose.comparison import (
    OperatingCondition,
    Outcome,
    Rows,
    cheapest,
    log_losses,
    paired,
    run_candidate,
    table_of,
)
from laconic.choose.tuning import (
    CHOICE_ROWS,
    FOR_A_PAGE,
    FOR_SIZE,
    PAGE,
    SHARE_FOR_COMPARISON,
)
from laconic.core.compact import model_size, variables_of
from laconic.core.contract import (
    Accepts,
    Interval,
    StrOptions,
    TableClassifier,
    TableReader,
    Training,
    fit_context,
    take_rows,
)
from laconic.core.decisions import class_prior, cost_matrix, positive_class
from laconic.core.drawing import frame_of
from laconic.core.explanation import Explanation
from laconic.core.folds import folds_of, seed_of
from laconic.core.progress import Deadline, report_step
from laconic.data.reading.reading import Reading
from laconic.data.scan.scan import Scan
from laconic.data.source import one_blas_thread
from laconic.data.tables.columns import Table, has_names
from laconic.decide.estimator import DecisionClassifier
from laconic.minimax.prior_box import PriorBox


class LaconicClassifier(TableClassifier):
    """A model on one page whose decisions cost no more than the best, within one standard error.

    Candidates of every family are fitted on folds; their held-out decisions are priced with
    ``costs``, at the class mix of deployment. Means of two candidates that together fit on a page
    (300 entries) are candidates too: the mean of two sums of terms is a sum of terms. Those that
    fit on a page and are not dearer than the cheapest one by more than one standard error *of the
    difference on the same rows* are preferred; of these, the best in log loss (the smallest, where
    they cannot be told apart) is kept, fitted on all rows and wrapped in the decision layer. Where
    no page is good enough, the smallest within one error in cost and in log loss is kept.
    :mod:`laconic.core.compact` says what size means, for all families alike. Mixed
    columns and missing values need no preparation.

    Parameters
    ----------
    costs : mapping, frame or array-like, default=None
        ``{"fp": 1, "fn": 10}``, a K x K matrix (rows: truth, columns: decision) or a frame with
        class names. None: every error costs 1.
    prior : float, array-like of shape (K,), mapping or "balanced", default=None
        Class shares where the model is used. None: as in training.
    prior_bounds : array-like of shape (K, 2) or mapping, default=None
        Least and largest share of each class: candidates are then judged at the worst class mix
        of this box, and decide with their least favourable one. Not together with ``prior``.
    positive : class, default=None
        The class that "fp", "fn" and a single prior are about, as in :class:`DecisionClassifier`:
        needed for labels other than 0/1, -1/+1 and False/True.
    reject_cost : float, default=None
        Cost of abstaining. None: never abstain.
    candidates : "auto", list of str or dict, default="auto"
        "auto" compares "logistic", "gray-zone" (two classes), "bayes", "scorecard", "votes",
        "additive", "additive-single", "rules" (up to 5,000 rows), "kernel", "scorecard-built",
        "bayes-built", "forest-votes" and "minimax", and means of two of them (see
        :class:`BlendedClassifier`). A list names some of them, with "blends" for the means; a dict
        from name to classifier brings others.
    selection : {"1se", "best"}, default="1se"
        A page, then the best informed on it, as said above; or the cheapest.
    time_budget : float, default=None
        Seconds. No fold is started after 70 % of them; the best model so far is then fitted.
    cv : int, splitter or iterable, default=5
        A number keeps equal rows in the same fold.
    n_jobs : int, default=None
        Passed to the candidates. Does not change the result.
    random_state : int, RandomState or None, default=None
        Seed of the folds and of the candidates that draw. None: folds follow from the rows' values
        and draws from a fixed seed, so that the same table gives the same model.
    reading : "auto", Reading or None, default="auto"
        How columns with names are read: dates, amounts, shares and durations written as texts
        become numbers, yes and no a category, identifiers and constants are left out.
        :func:`laconic.look` says how, and ``look(X, drop=...).reading`` may be given instead.
        None: numbers are numbers and texts categories, as they stand.

    Attributes
    ----------
    reading_ : Reading or None
        How the columns were read, and one sentence for each of them.
    comparison_ : frame
        One row for each candidate: "candidate", "cost" with its standard error, how far it is
        "behind" the cheapest, "worst_class_risk", "log_loss", "auc", "size", "variables",
        "fit_seconds", "certificate" (largest relative duality gap), "chosen" and a "note". A
        pandas frame when pandas is installed, else a dict of columns.
    candidate_ : str
        Name of the chosen one.
    decision_ : DecisionClassifier
        The chosen model inside the decision layer (a :class:`MinimaxClassifier` decides itself).
    estimator_ : classifier
        The chosen model, fitted on all rows.
    size_, n_variables_ : float
        Entries that a reader must look at, and columns that the model reads.
    threshold_ : float
        Two classes: probability of ``classes_[1]`` above which it is decided.
    positive_ : class or None
    classes_, n_features_in_, feature_names_in_

    Notes
    -----
    "minimax" is compared always and chosen only with ``prior_bounds`` or when it is named: its
    ``predict_proba`` holds probabilities of decisions. The penalty of the additive candidates is
    chosen on the same folds as their held-out costs. Ctrl-C ends the comparison and keeps the best
    model so far, with a warning.

    See Also
    --------
    DecisionClassifier : the decision layer, for any model.

    Examples
    --------
    >>> from laconic import LaconicClassifier
    >>> from laconic.data.demo import make_payments
    >>> payments, label = make_payments(3000)
    >>> model = LaconicClassifier(
    ...     {"fp": 1, "fn": 25}, positive="fraud", candidates=["logistic", "bayes"]
    ... ).fit(payments, label)
    >>> model.candidate_ in ("logistic", "bayes"), model.positive_
    (True, 'fraud')
    >>> model.predict(payments[:3]).shape
    (3,)
    """

    _accepts = Accepts(scan=True)

    _parameter_constraints: dict[str, list[Any]] = {
        "costs": "no_validation",  # type: ignore[dict-item]
        "prior": "no_validation",  # type: ignore[dict-item]
        "prior_bounds": ["array-like", dict, None],
        "positive": "no_validation",  # type: ignore[dict-item]
        "reject_cost": [Interval(Real, 0, None, closed="left"), None],
        "candidates": [str, list, tuple, dict],
        "selection": [StrOptions({"1se", "best"})],
        "time_budget": [Interval(Real, 0, None, closed="neither"), None],
        "cv": ["cv_object"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "reading": [StrOptions({"auto"}), Reading, None],
    }

    def __init__(
        self,
        costs: Any = None,
        prior: Any = None,
        *,
        prior_bounds: Any = None,
        positive: Any = None,
        reject_cost: float | None = None,
        candidates: Any = "auto",
        selection: str = "1se",
        time_budget: float | None = None,
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
        reading: Any = "auto",
    ) -> None:
        self.costs = costs
        self.prior = prior
        self.prior_bounds = prior_bounds
        self.positive = positive
        self.reject_cost = reject_cost
        self.candidates = candidates
        self.selection = selection
        self.time_budget = time_budget
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.reading = reading

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LaconicClassifier:
        """Compare the candidates, choose one and fit it on all rows.

        Parameters
        ----------
        X : array, frame or scan of shape (n_rows, n_features)
            Of a scan about 200,000 rows are drawn, rare classes in larger shares; the candidates
            that fit from a scan are compared on them, and the chosen one is fitted on all rows.
        y : array of shape (n_rows,)
            Class labels; those of a scan are one of its columns.
        sample_weight : array of shape (n_rows,), optional

        Returns
        -------
        self
        """
        if isinstance(X, Scan) and self.reading is not None and X.reading is None:
            X = X.read_by(X.look() if isinstance(self.reading, str) else self.reading)
        training = self._read_training(X, y, sample_weight)
        self.reading_ = self.schema_.reading
        with one_blas_thread():
            if training.in_memory:
                self._fit(X, training, sample_weight)
            else:
                self._fit_scan(X)
        return self

    def _learn_columns(self, X: Any) -> Table:
        """Read the table as it comes first: dates, amounts, yes and no, identifiers."""
        if self.reading is None or not has_names(X):
            return super()._learn_columns(X)
        reading = self.reading
        if isinstance(X, Table):  # read already, by the reading that is given
            given = not isinstance(reading, str) and X.names == reading.made
            table = super()._learn_columns(X)
            reading = reading if given else None
        else:
            if isinstance(reading, str):
                reading = Reading.learn(X)
                reading.warn(stacklevel=6)
            table = super()._learn_columns(reading.apply(X))
        self.schema_ = replace(self.schema_, reading=reading)
        self._publish_names()
        return table

    def _fit_scan(self, scanned: Any) -> None:
        """Choose on a sample, fit on all rows."""
        seed = seed_of(self.random_state)
        sample = scanned.sample(CHOICE_ROWS, seed)
        training = Training(sample.table, sample.y, sample.weight, np.arange(len(sample)))
        rows = Rows(training, sample.table, weighted=True)
        shares = scanned.class_weights()
        condition = replace(self._condition(training), train_prior=shares / shares.sum())
        auto = auto_candidates(condition.costs, self.prior_bounds, seed, self.n_jobs, len(sample))
        offered = candidates_for_scans(self.candidates, auto)
        folds = folds_of(self.cv, training, len(sample), seed)
        outcomes = self._compare(offered, rows, folds, condition)
        chosen = self._choose(
            outcomes + self._blends(outcomes, training, condition), training, condition
        )
        report_step(f"fitting {chosen.candidate.name} on all rows", 0.9)
        chosen.fitted = clone(chosen.candidate.model).fit(scanned)
        self._keep(chosen, outcomes, rows, condition)

    def _fit(self, X: Any, training: Training, sample_weight: Any) -> None:
        rows = Rows(training, self._raw(X, training), sample_weight is not None)
        condition = self._condition(training)
        seed = seed_of(self.random_state)
        offered = read_candidates(
            self.candidates,
            auto_candidates(condition.costs, self.prior_bounds, seed, self.n_jobs, training.n_rows),
        )
        n_given = training.n_rows if sample_weight is None else len(np.asarray(sample_weight))
        folds = folds_of(self.cv, training, n_given, seed)
        outcomes = self._compare(offered, rows, folds, condition)
        chosen = self._choose(
            outcomes + self._blends(outcomes, training, condition), training, condition
        )
        self._keep(chosen, outcomes, rows, condition)

    def _raw(self, X: Any, training: Training) -> Any:
        whole = len(training.kept) == 0 or training.kept[-1] + 1 == len(training.kept)
        return X if whole else take_rows(X, training.kept)

    def _condition(self, training: Training) -> OperatingCondition:
        if self.prior is not None and self.prior_bounds is not None:
            raise ValueError("Give prior or prior_bounds, not both.")
        self.positive_ = positive_class(self.classes_, self.positive)
        n_classes = len(self.classes_)
        shares = np.bincount(training.y, training.weight, minlength=n_classes)
        box = None
        if self.prior_bounds is not None:
            box = PriorBox.of(self.prior_bounds, n_classes, self.classes_)
        return OperatingCondition(
            cost_matrix(self.costs, self.classes_, positive=self.positive),
            shares / shares.sum(),
            None if self.prior is None else self._shares(self.prior),
            box,
            self.reject_cost,
        )

    def _shares(self, prior: Any) -> Floats:
        return class_prior(prior, self.classes_, positive=self.positive)

    def _compare(
        self, offered: list[Candidate], rows: Rows, folds: Any, condition: OperatingCondition
    ) -> list[Outcome]:
        y, weight = rows.training.y, rows.training.weight
        share = None if self.time_budget is None else SHARE_FOR_COMPARISON * self.time_budget
        deadline = Deadline(share)
        outcomes: list[Outcome] = []
        for number, candidate in enumerate(offered):
            report_step(f"comparing {candidate.name}", number / (len(offered) + 1))
            if deadline.passed() and outcomes:
                outcomes.append(_not_tried(candidate, y, condition, "time_budget ended before it"))
                continue
            if _same_as_another(candidate, outcomes):
                continue
            best = cheapest(outcomes, y, weight, condition) if outcomes else None
            try:
                outcome = run_candidate(
                    candidate, rows, folds, self.classes_, condition, best, deadline
                )
            except KeyboardInterrupt:
                if not any(out.complete for out in outcomes):
                    raise
                warnings.warn(
                    f"Interrupted while comparing {candidate.name}; the best model so far is kept.",
                    UserWarning,
                    stacklevel=3,
                )
                break
            except ValueError as error:
                if len(offered) == 1:
                    raise
                outcome = _not_tried(candidate, y, condition, f"refused: {error}")
            outcomes.append(outcome)
        report_step("fitting the chosen model", len(offered) / (len(offered) + 1))
        return outcomes

    def _blends(
        self, outcomes: list[Outcome], training: Training, condition: OperatingCondition
    ) -> list[Outcome]:
        if not without_blends(self.candidates)[1]:
            return []
        return blended_outcomes(outcomes, training.y, training.weight, condition, PAGE)

    def _choose(
        self, outcomes: list[Outcome], training: Training, condition: OperatingCondition
    ) -> Outcome:
        y, weight = training.y, training.weight
        named = self.candidates != "auto" or self.prior_bounds is not None
        able = [out for out in outcomes if named or not out.candidate.decides]
        able = [out for out in able if not out.note.startswith("refused")]
        if not able:
            raise ValueError(f"No candidate could be fitted: {outcomes[0].note}")
        complete = [out for out in able if out.complete]
        best = cheapest(able, y, weight, condition)
        if self.selection == "best" or not complete:
            return best
        pages = [out for out in complete if out.size <= PAGE]
        pages = [out for out in pages if _within(out, best, y, weight, condition, FOR_A_PAGE)]
        if pages:
            best = cheapest(pages, y, weight, condition)
        pool = pages or complete
        close = [
            out for out in pool if _within(out, best, y, weight, condition, FOR_A_PAGE)
        ] or pool
        # without a page, size is what is left to save: a clear lead in log loss is asked for it
        close = _well_informed(close, y, weight, FOR_SIZE if pages else FOR_A_PAGE)
        sizes = [np.inf if np.isnan(out.size) else out.size for out in close]
        return close[int(np.argmin(sizes))]

    def _keep(
        self, chosen: Outcome, outcomes: list[Outcome], rows: Rows, condition: OperatingCondition
    ) -> None:
        fitted = chosen.fitted
        if fitted is None and chosen.members:
            fitted = fitted_blend(chosen, lambda model: rows.fit(model, None, self.classes_))
        elif fitted is None:
            fitted = rows.fit(chosen.candidate.model, None, self.classes_)
        if hasattr(fitted, "schema_"):
            # the table always has names; the model must know whether the user's X had them
            fitted.schema_ = self.schema_
            fitted._publish_names()
        self.candidate_ = chosen.candidate.name
        self.estimator_ = fitted
        self.size_, self.n_variables_ = model_size(fitted), variables_of(fitted)
        self.decision_ = fitted
        self.__dict__.pop("threshold_", None)
        if not chosen.candidate.decides:
            prior = chosen.prior if self.prior_bounds is not None else condition.prior
            self.decision_ = DecisionClassifier(
                fitted,
                costs=condition.costs,
                prior=prior,
                reject_cost=self.reject_cost,
                positive=self.positive,
                train_prior=condition.train_prior,
                prefit=True,
            ).fit(None, None)
            if hasattr(self.decision_, "threshold_"):
                self.threshold_ = self.decision_.threshold_
        listed = [*outcomes, chosen] if chosen.members else outcomes
        columns = table_of(listed, rows.training.y, rows.training.weight, condition)
        columns["chosen"] = [out is chosen for out in listed]
        self._comparison = columns

    @property
    def comparison_(self) -> Any:
        """What was compared; kept as plain columns, so that any tool can store the model."""
        check_is_fitted(self, "decision_")
        return frame_of(self._comparison)

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities at the class mix of deployment, shape (n, K)."""
        check_is_fitted(self, "decision_")
        return np.asarray(self.decision_.predict_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The decision of least expected cost, or an abstention."""
        check_is_fitted(self, "decision_")
        return np.asarray(self.decision_.predict(X))

    def explain(self, X: Any) -> Explanation:
        """What each variable adds to the score of the chosen model, exactly."""
        check_is_fitted(self, "decision_")
        if not hasattr(self.estimator_, "explain"):
            raise ValueError(f"The chosen model ({self.candidate_}) has no exact contributions.")
        return cast("Explanation", self.estimator_.explain(X))


def candidates_for_scans(given: Any, auto: list[Candidate]) -> list[Candidate]:
    """The candidates that fit from a scan; one that was named and does not is an error."""
    named = read_candidates(given, auto)
    able = [own for own in named if _fits_from_scan(own.model)]
    odd = [own.name for own in named if not _fits_from_scan(own.model)]
    if odd and not (isinstance(given, str) and able):
        fit = ", ".join(own.name for own in auto if _fits_from_scan(own.model))
        raise ValueError(
            f"candidates: {', '.join(odd)} fits on rows in memory only; those that fit from a "
            f"scan are {fit}."
        )
    return able


def _fits_from_scan(model: Any) -> bool:
    return isinstance(model, TableReader) and model._can_scan()


def _same_as_another(candidate: Candidate, outcomes: list[Outcome]) -> bool:
    for out in outcomes:
        if out.candidate.name == candidate.unless_single and out.fitted is not None:
            return all(len(term.columns) == 1 for term in out.fitted.form_.terms)
    return False


def _within(
    out: Outcome,
    best: Outcome,
    y: Any,
    weight: Floats,
    condition: OperatingCondition,
    errors: float,
) -> bool:
    behind, error = paired(out, best, y, weight, condition)
    return behind <= errors * error


def _well_informed(close: list[Outcome], y: Any, weight: Floats, errors: float) -> list[Outcome]:
    """Those whose log loss is within ``errors`` standard errors of the best among them.

    The cost of decisions is a coarse measure: of models that cost the same on these rows, those
    with worse probabilities will decide worse on others.
    """
    losses = [log_losses(out, y) for out in close if not out.candidate.decides]
    if not losses:
        return close
    best = min(losses, key=lambda loss: float(np.average(loss, weights=weight)))
    kept = []
    for out in close:
        if out.candidate.decides:
            kept.append(out)
            continue
        gap = log_losses(out, y) - best
        mean = float(np.average(gap, weights=weight))
        error = float(np.sqrt(weight**2 @ (gap - mean) ** 2) / weight.sum())
        if mean <= errors * error:
            kept.append(out)
    return kept


def _not_tried(candidate: Candidate, y: Any, condition: OperatingCondition, note: str) -> Outcome:
    empty = np.full((len(y), len(condition.costs)), np.nan)
    return Outcome(candidate, empty, empty[:, 0].copy(), note=note)
