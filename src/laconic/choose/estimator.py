"""LaconicClassifier: from a table and costs to one page that decides as well as all models can."""

from __future__ import annotations

import time as clocks
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, cast

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from laconic._typing import Floats
from laconic.choose.blends import MEAN_LINKS, BlendedClassifier
from laconic.choose.budget import Budget
from laconic.choose.candidates import Candidate, Known, auto_candidates, read_candidates
from laconic.choose.committee import Committee
from laconic.choose.comparison import Judge, OperatingCondition, Outcome, scenario_table
from laconic.choose.race import Race, Rows
from laconic.choose.reported import Estimate
from laconic.choose.rule import Decided, Rule, decide
from laconic.choose.tuning import CHOICE_ROWS, PAGE, TOLERANCE
from laconic.core.compact import additive_form, model_size, variables_of
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
from laconic.core.folds import folds_of, judges_of_groups, judging_rows, keys_of
from laconic.core.progress import report_step
from laconic.data.reading.reading import Reading
from laconic.data.row_keys import seed_of
from laconic.data.scan.scan import Scan
from laconic.data.scan.survey import read_labels
from laconic.data.source import one_blas_thread
from laconic.data.tables.columns import Table, has_names
from laconic.decide.estimator import DecisionClassifier, scenario_costs
from laconic.decide.promises import Judges, Wanted
from laconic.minimax.criterion import PriorBox


class LaconicClassifier(TableClassifier):
    """One page whose decisions cost no more than those of the best committee, or nearly.

    Candidates of every family are fitted on folds. Those that are sums of terms are averaged with
    weights found by one convex problem on the held-out rows (log loss, shrunk to the additive
    model, certified): their mean is a sum of terms again. It is shortened to pages of several
    lengths (fewer bends, joined levels, fewer terms, what is left fitted to what the long sum
    says), and the shortest page that still says so is kept, fitted on all rows and wrapped in the
    decision layer. The same problem on all candidates is the *committee*:
    ``price_of_readability_`` is what the page costs more than it, and ``reported_cost_`` is
    corrected for the choice.
    :mod:`laconic.core.compact` says what size means, for all families alike. Mixed columns and
    missing values need no preparation.

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
        needed for labels other than 0/1, -1/+1, False/True and no/yes.
    reject_cost : float, default=None
        Cost of abstaining. None: never abstain.
    guarantee : str, Guarantee or a list of them, default=None
        What the decisions must keep, for instance ``"recall>=0.95"``, as in
        :class:`DecisionClassifier`; held by rows that neither the fit nor the choice has seen.
    capacity : str or float, default=None
        Share of cases that may be decided positive, for instance ``"100/5000"``: a guarantee too.
    confidence : float, default=0.95
        Of all guarantees together.
    calibration : float, default=0.25
        Share of the rows that hold the guarantee; groups stay together, and with times these rows
        are the last ones.
    monotone : mapping from column name to +1 or -1, default=None
        The probability of the positive class may only rise (+1) or fall (-1) with these numbers.
    forbid : list of pairs of column names, default=None
        Columns that may not enter a term together. Families that cannot keep what ``monotone`` and
        ``forbid`` demand are left out, and ``comparison_`` says so.
    scenarios : mapping from name to costs, default=None
        Other costs that the same model will decide under: ``scenarios_`` tells what its decisions
        cost under each, ``predict(X, scenario=...)`` takes them. The choice is made at ``costs``.
    candidates : "auto", list of str or dict, default="auto"
        "auto" compares "additive", "logistic", "levels" (two classes, where a column has 50 or
        more), "rules" (up to 5,000 rows), "kernel", "scorecard-built" and, with ``prior_bounds``,
        "minimax". A list names some of these and of "additive-single" (no pairs), "bayes",
        "scorecard", "gray-zone" (two classes), "votes", "bayes-built" and "forest-votes", tried in
        the order given, and may hold "auto" and your own models, ``["auto", ("mine", model)]``; a
        dict from name to classifier brings others only.
    readable : bool, default=True
        False keeps the committee itself: no form, no SQL, no model file.
    max_size : int, default=300
        Most entries of a readable model.
    tolerance : float, default=0.0008
        The shortest page is kept that strays from the long sum of terms, on rows that neither has
        seen, by at most this share of the entropy of the classes: what it adds to the log loss.
    teach : bool, default=False
        The additive model (without one: the card) is also fitted to labels softened by the
        committee's held-out probabilities, and kept so where rows that neither has seen say that it
        helped. Up to 2,500 rows, and three times the time; the weighted mean gained nothing more.
    time_budget : float, default=None
        Seconds. Candidates are tried in the order above, each only if fits on fewer rows say that
        it ends in time; a table too large for the first is sampled, as long as half of its rows
        or 10,000 are left, or no other candidate could have more.
    cv : int, splitter or iterable, default=5
        A number keeps equal rows in the same fold.
    n_jobs : int, default=None
        Folds that run at the same time. Does not change the result.
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
        One row for each candidate, the "committee" and the page: "candidate", "cost" with its
        standard error, how far it is "behind" the cheapest and "above_kept", what is kept, both
        paired, with standard errors, "worst_class_risk", "tailored_loss",
        "log_loss", "auc", "size", "variables", "fit_seconds", "certificate" (largest relative
        duality gap), "own" (your model), "chosen" and a "note". A pandas frame when pandas is
        installed, else a dict of columns.
    candidate_ : str
        Name of what was kept; members of a weighted mean by decreasing weight.
    reported_cost_ : Estimate
        Cost of a decision about a new row, corrected for the choice: ``value``, ``error``, and
        ``low`` and ``high``, which hold the true cost nine times in ten.
    price_of_readability_ : Estimate
        How much more that is than the cost of the committee.
    scenarios_ : frame
        For each of ``scenarios``: "threshold" on the probability of the positive one of two
        classes, held-out "cost" of the decisions taken
        under it with its standard error, and what those taken at ``costs`` would cost.
    decision_ : DecisionClassifier
        The kept model inside the decision layer (a :class:`MinimaxClassifier` decides itself).
    estimator_ : classifier
        The kept model, fitted on all rows.
    size_, n_variables_ : float
        Entries that a reader must look at, and columns that the model reads.
    threshold_ : float
        Two classes: probability of ``classes_[1]`` above which it is decided.
    positive_ : class or None
    guaranteed_ : GuaranteedThreshold, GuaranteedWeights or None
        What the guarantee rests on.
    n_calibration_ : int
        Rows held out for the guarantee.
    classes_, n_features_in_, feature_names_in_

    Notes
    -----
    The ``predict_proba`` of a kept "minimax" holds probabilities of decisions. The penalty of the
    additive candidates is chosen on the same folds as their held-out costs. Ctrl-C ends
    the fit and keeps nothing: ask for the best of a few minutes with ``time_budget``.

    See Also
    --------
    BlendedClassifier : the weighted mean of sums of terms.
    DecisionClassifier : the decision layer, for any model.

    Examples
    --------
    >>> from laconic import LaconicClassifier
    >>> from laconic.data.demo import make_payments
    >>> payments, label = make_payments(3000)
    >>> model = LaconicClassifier(
    ...     {"fp": 1, "fn": 25}, positive="fraud", candidates=["logistic", "bayes"]
    ... ).fit(payments, label)
    >>> model.size_ <= 300, model.positive_
    (True, 'fraud')
    >>> model.reported_cost_.low < model.reported_cost_.value < model.reported_cost_.high
    True
    >>> model.predict(payments[:3]).shape
    (3,)
    """

    _accepts = Accepts(scan=True)
    _clock = staticmethod(clocks.monotonic)

    _parameter_constraints: dict[str, list[Any]] = {
        "costs": "no_validation",  # type: ignore[dict-item]
        "prior": "no_validation",  # type: ignore[dict-item]
        "prior_bounds": ["array-like", dict, None],
        "positive": "no_validation",  # type: ignore[dict-item]
        "reject_cost": [Interval(Real, 0, None, closed="left"), None],
        "guarantee": "no_validation",  # type: ignore[dict-item]
        "capacity": [str, Real, None],
        "confidence": [Interval(Real, 0, 1, closed="neither")],
        "calibration": [Interval(Real, 0, 1, closed="neither")],
        "monotone": [dict, None],
        "forbid": [list, tuple, None],
        "scenarios": [dict, None],
        "candidates": [str, list, tuple, dict],
        "readable": ["boolean"],
        "max_size": [Interval(Real, 1, None, closed="left")],
        "tolerance": [Interval(Real, 0, None, closed="left")],
        "teach": ["boolean"],
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
        guarantee: Any = None,
        capacity: Any = None,
        confidence: float = 0.95,
        calibration: float = 0.25,
        monotone: Any = None,
        forbid: Any = None,
        scenarios: Any = None,
        candidates: Any = "auto",
        readable: bool = True,
        max_size: float = PAGE,
        tolerance: float = TOLERANCE,
        teach: bool = False,
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
        self.guarantee = guarantee
        self.capacity = capacity
        self.confidence = confidence
        self.calibration = calibration
        self.monotone = monotone
        self.forbid = forbid
        self.scenarios = scenarios
        self.candidates = candidates
        self.readable = readable
        self.max_size = max_size
        self.tolerance = tolerance
        self.teach = teach
        self.time_budget = time_budget
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.reading = reading

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        time: Any = None,
        costs: Any = None,
    ) -> LaconicClassifier:
        """Compare the candidates, choose a page and fit it on all rows.

        Parameters
        ----------
        X : array, frame or scan of shape (n_rows, n_features)
            Of a scan about 200,000 rows are drawn, rare classes in larger shares; the candidates
            that fit from a scan are compared on them, and what is kept is fitted on all rows.
        y : array of shape (n_rows,)
            Class labels; those of a scan are one of its columns.
        sample_weight : array of shape (n_rows,), optional
        groups : array of shape (n_rows,), optional
            Rows of one group (a patient, a customer) are never on both sides of a fold.
        time : array of shape (n_rows,), optional
            Folds train on what came before the rows that they judge.
        costs : per-row costs, optional
            What errors cost on each row, ``{"fp": 5, "fn": amounts}`` or n x K x K: candidates are
            judged by decisions at these costs. ``predict`` takes the costs of its rows; without
            them it decides at the mean of those given here.

        Returns
        -------
        self
        """
        budget = Budget(self.time_budget, self._clock)
        if isinstance(X, Scan) and self.reading is not None and X.reading is None:
            X = X.read_by(X.look() if isinstance(self.reading, str) else self.reading)
        training = self._read_training(X, y, sample_weight)
        self.reading_ = self.schema_.reading
        with one_blas_thread():
            if training.in_memory:
                given = {"groups": groups, "time": time}
                rows = self._rows(X, training, sample_weight, given, costs)
                judges, rows = self._hold_out(rows)
                self._fit(rows, budget)
            elif groups is not None or time is not None or costs is not None:
                raise ValueError(
                    "groups and times of a scan are named, scan(group=, time=), and costs by row "
                    "are for rows in memory."
                )
            else:
                judges, X = self._hold_out_of_scan(X)
                self._fit_scan(X, budget)
            self._promise(judges)
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

    def _fit_scan(self, scanned: Any, budget: Budget) -> None:
        """Choose on a sample, fit on all rows."""
        seed = seed_of(self.random_state)
        sample = scanned.sample(CHOICE_ROWS, seed)
        training = Training(sample.table, sample.y, sample.weight, np.arange(len(sample)))
        shares = scanned.class_weights()
        condition = replace(self._condition(training), train_prior=shares / shares.sum())
        offered = candidates_for_scans(self.candidates, self._auto(condition, seed, len(sample)))
        offered = self._known().imposed(offered)
        folds = folds_of(self.cv, training, len(sample), seed, **sample.beside)
        apart = bool(sample.beside) or not isinstance(self.cv, Integral)
        rows = Rows(training, sample.table, True, self.classes_, folds, apart, **sample.beside)
        race = self._race(rows, condition, budget)
        # the sample stands for all rows, and knows no more than its own
        known = sample.weight.sum() / (sample.weight**2).sum()
        race = replace(race, judge=replace(race.judge, weight=sample.weight * known))

        def fit_all(out: Outcome) -> Any:
            return clone(out.candidate.model).fit(scanned)

        decided = decide(offered, race, replace(self._rule(seed), teach=False))
        self._keep(decided, race, fit_all)

    def _wanted(self) -> Wanted:
        return Wanted.read(
            self.guarantee,
            self.capacity,
            self.classes_,
            positive_class(self.classes_, self.positive),
            reject_cost=self.reject_cost,
            confidence=self.confidence,
        )

    @property
    def _promises(self) -> bool:
        return self.guarantee is not None or self.capacity is not None

    @property
    def _moves(self) -> bool:
        return self.prior is not None or self.prior_bounds is not None

    def _hold_out(self, rows: Rows) -> tuple[Judges | None, Rows]:
        """Rows that hold the guarantee, and those of the comparison and the fit."""
        if not self._promises:
            return None, rows
        seed, y, wanted = seed_of(self.random_state), rows.training.y, self._wanted()
        mix = wanted.mix_of_weights(y, rows.training.weight)
        train, judges = judging_rows(
            keys_of(rows.training, seed),
            y,
            self.calibration,
            rows.groups,
            rows.time,
            within_classes=wanted.within_classes,
            seed=seed,
        )
        counts = np.bincount(y[judges], minlength=len(self.classes_))
        have = "held out are" if rows.groups is None else "held out, one of each group, are"
        wanted.refuse_too_few(counts, have, another_mix=self._moves or mix is not None)
        part = rows.part(train)
        if isinstance(self.cv, Integral):
            own = folds_of(self.cv, part.training, len(train), seed, part.groups, part.time)
            part = replace(part, folds=own)
        X, held = take_rows(rows.raw, judges), rows.n_rows - len(train)
        return Judges(X, self.classes_[y[judges]], mix, held), part

    def _hold_out_of_scan(self, scanned: Any) -> tuple[Judges | None, Any]:
        """The same for rows that stay where they are."""
        if not self._promises:
            return None, scanned
        share = min(self.calibration, CHOICE_ROWS / scanned.n_given)
        rest, frame = scanned.hold_out(share, seed_of(self.random_state))
        held = nw.from_native(frame, eager_only=True)
        y = read_labels(held[scanned.target], scanned.target)
        weight = scanned.weights_of(held)
        known = np.isin(y, self.classes_) & (weight > 0)
        wanted, groups = self._wanted(), scanned.groups_of(held)
        mix = wanted.mix_of_weights(np.searchsorted(self.classes_, y[known]), weight[known])
        places = np.flatnonzero(known)
        if groups is not None:  # one of each, as in memory: rows of a group are not independent
            draw = np.random.default_rng(seed_of(self.random_state))
            places = judges_of_groups(groups, places, y, wanted.within_classes, draw)
        codes = np.searchsorted(self.classes_, y[places])
        counts = np.bincount(codes, minlength=len(self.classes_))
        wanted.refuse_too_few(counts, "held out are", another_mix=self._moves or mix is not None)
        X = held.select(*scanned.columns).to_native()
        return Judges(take_rows(X, places), y[places], mix, int(known.sum())), rest

    def _that_can_promise(self, offered: list[Candidate]) -> list[Candidate]:
        """Rules that decide by themselves have no threshold to move."""
        able = [own for own in offered if not (self._promises and own.decides)]
        if not able:
            raise ValueError(
                f"candidates: {', '.join(own.name for own in offered)} decides by itself and can "
                "hold no guarantee; offer a model of probabilities."
            )
        return able

    def _promise(self, judges: Judges | None) -> None:
        """Hold the guarantee by rows that neither the fit nor the choice has seen."""
        self.n_calibration_ = 0 if judges is None else judges.held
        if judges is not None:
            k = 0 if self.positive_ is None else self.classes_.tolist().index(self.positive_)
            shares = None
            if self.prior_bounds is not None:
                box = PriorBox.of(self.prior_bounds, len(self.classes_), self.classes_)
                rest = np.arange(len(box.low)) != k
                shares = (
                    float(max(box.low[k], 1.0 - box.high[rest].sum())),
                    float(min(box.high[k], 1.0 - box.low[rest].sum())),
                )
            self.decision_.promise(self._wanted(), judges.X, judges.y, shares, judges.mix)
            if hasattr(self.decision_, "threshold_"):
                self.threshold_ = self.decision_.threshold_
        self.guaranteed_ = getattr(self.decision_, "guaranteed_", None)

    def _fit(self, rows: Rows, budget: Budget) -> None:
        seed = seed_of(self.random_state)
        condition = self._condition(rows.training, rows.costs)
        offered = read_candidates(self.candidates, self._auto(condition, seed, rows.n_rows))
        offered = self._known().imposed(self._that_can_promise(offered))
        race = self._race(rows, condition, budget).in_time(offered, seed)

        def fit_all(out: Outcome) -> Any:
            return race.fitted_on(out, rows)

        self._keep(decide(offered, race, self._rule(seed)), race, fit_all)

    def _rows(
        self,
        X: Any,
        training: Training,
        sample_weight: Any,
        given: dict[str, Any],
        costs: Any = None,
    ) -> Rows:
        """The rows with their folds; ``given`` are groups and times as the user gave them."""
        n_given = training.n_rows
        if sample_weight is not None:
            n_given = len(np.asarray(sample_weight))
        counted: dict[str, NDArray[Any] | None] = {"groups": None, "time": None}
        for name, values in given.items():
            if values is not None:
                counted[name] = _counted(values, training, n_given, name)
        seed = seed_of(self.random_state)
        folds = folds_of(self.cv, training, n_given, seed, counted["groups"], counted["time"])
        apart = not isinstance(self.cv, Integral) or any(v is not None for v in given.values())
        raw = X if n_given == training.n_rows else take_rows(X, training.kept)
        weighted = sample_weight is not None
        return Rows(
            training, raw, weighted, self.classes_, folds, apart, **counted,
            costs=self._costs_by_row(costs, training, n_given),
        )  # fmt: skip

    def _costs_by_row(self, costs: Any, training: Training, n_given: int) -> Floats | None:
        if costs is None:
            return None
        if self.prior_bounds is not None:
            raise ValueError("Costs of each row need a known class mix, no prior_bounds.")
        each = cost_matrix(costs, self.classes_, n_rows=n_given, positive=self.positive)
        return np.broadcast_to(each, (n_given, *each.shape[-2:]))[training.kept]

    def _race(self, rows: Rows, condition: OperatingCondition, budget: Budget) -> Race:
        judge = Judge(rows.training.y, rows.training.weight, condition)
        return Race(rows, judge, budget, float(self.max_size), self.n_jobs)

    def _rule(self, seed: int) -> Rule:
        named = not isinstance(self.candidates, str) or self.prior_bounds is not None
        return Rule(bool(self.readable), float(self.tolerance), named, bool(self.teach), seed)

    def _auto(self, condition: OperatingCondition, seed: int, n_rows: int) -> list[Candidate]:
        given = condition.costs, self.prior_bounds, seed, self.n_jobs, n_rows
        levels = [len(own) for own in self.schema_.categories if own]
        return auto_candidates(*given, self._known(), levels)

    def _known(self) -> Known:
        signs, turned = self.monotone or {}, self.positive_ == self.classes_[0]
        return Known.of(self.schema_, len(self.classes_), signs, self.forbid or (), turned)

    def _condition(self, training: Training, by_row: Floats | None = None) -> OperatingCondition:
        if self.prior is not None and self.prior_bounds is not None:
            raise ValueError("Give prior or prior_bounds, not both.")
        self.positive_ = positive_class(self.classes_, self.positive)
        n_classes = len(self.classes_)
        shares = np.bincount(training.y, training.weight, minlength=n_classes)
        box = None
        if self.prior_bounds is not None:
            box = PriorBox.of(self.prior_bounds, n_classes, self.classes_)
        costs = cost_matrix(self.costs, self.classes_, positive=self.positive)
        if by_row is not None:
            costs = np.average(by_row, axis=0, weights=training.weight)
        return OperatingCondition(
            costs,
            shares / shares.sum(),
            None if self.prior is None else self._shares(self.prior),
            box,
            self.reject_cost,
            by_row,
        )

    def _shares(self, prior: Any) -> Floats:
        return class_prior(prior, self.classes_, positive=self.positive)

    def _keep(self, decided: Decided, race: Race, fit_all: Any) -> None:
        """Fit what was decided on all rows, draw it, and publish."""
        kept = decided.kept
        report_step(f"fitting {kept.name}", 0.9)
        members, weights = race.affordable(kept)
        fitted = [fit_all(out) for out in members]
        if decided.is_committee:
            total = float(race.judge.weight.sum())
            model: Any = Committee.of(fitted, weights, self.schema_, self.classes_, total)
        else:
            model = self._page(fitted, weights, kept.limit, race)
        for own in [*fitted, model]:
            if hasattr(own, "schema_"):
                # the table always has names; the model must know whether the user's X had them
                own.schema_ = self.schema_
                own._publish_names()
        names = [out.name for out in members]
        self.candidate_ = kept.name if decided.is_committee else " + ".join(names)
        self.estimator_ = model
        self.size_, self.n_variables_ = model_size(model), variables_of(model)
        self._publish_decisions(kept, race.judge.condition)
        self.reported_cost_ = decided.cost
        self.price_of_readability_ = decided.price
        columns = race.judge.table(decided.listed, kept)
        columns["chosen"] = [out.name == kept.name for out in decided.listed]
        self._comparison = columns
        self._publish_scenarios(kept, race.judge)

    @property
    def comparison_(self) -> Any:
        """What was compared; kept as plain columns, so that any tool can store the model."""
        check_is_fitted(self, "decision_")
        return frame_of(self._comparison)

    def _page(self, fitted: list[Any], weights: Sequence[float], limit: float, race: Race) -> Any:
        """One model of at most ``limit`` entries."""
        form = additive_form(fitted[0])
        most = min(limit, float(self.max_size))
        alone = len(fitted) == 1 and model_size(fitted[0]) <= most
        if alone or form is None or form.link not in MEAN_LINKS:
            return fitted[0]
        return BlendedClassifier.of(fitted, weights, most, race.lesson())

    def _publish_decisions(self, kept: Outcome, condition: OperatingCondition) -> None:
        self.decision_ = self.estimator_
        self.__dict__.pop("threshold_", None)
        if kept.candidate.decides:
            return
        self.decision_ = DecisionClassifier(
            self.estimator_,
            costs=condition.costs,
            prior=kept.prior if self.prior_bounds is not None else condition.prior,
            reject_cost=self.reject_cost,
            positive=self.positive,
            train_prior=condition.train_prior,
            prefit=True,
        ).fit(None, None)
        if hasattr(self.decision_, "threshold_"):
            self.threshold_ = self.decision_.threshold_

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities at the class mix of deployment, shape (n, K)."""
        check_is_fitted(self, "decision_")
        return np.asarray(self.decision_.predict_proba(X))

    def _publish_scenarios(self, kept: Outcome, judge: Judge) -> None:
        """What the kept decisions cost under other costs, on the rows that were held out."""
        own = {
            str(name): cost_matrix(costs, self.classes_, positive=self.positive)
            for name, costs in (self.scenarios or {}).items()
        }
        if own and kept.candidate.decides:
            raise ValueError("scenarios are for models of probabilities, and a rule was kept.")
        place = 0 if self.positive_ == self.classes_[0] else 1
        self._scenarios = scenario_table(own, kept, judge, place)
        if isinstance(self.decision_, DecisionClassifier):
            self.decision_.scenarios_ = own

    @property
    def scenarios_(self) -> Any:
        check_is_fitted(self, "decision_")
        return frame_of(self._scenarios)

    def predict(self, X: Any, *, costs: Any = None, scenario: str | None = None) -> NDArray[Any]:
        """The decision of least expected cost, or an abstention.

        Parameters
        ----------
        X : rows
        costs : as in :meth:`DecisionClassifier.predict`, optional
            Costs for this call: one matrix, or what errors cost on each row.
        scenario : str, optional
            Decide under the costs of one of ``scenarios``.
        """
        check_is_fitted(self, "decision_")
        if costs is None and scenario is None:
            return np.asarray(self.decision_.predict(X))
        if scenario is not None:
            costs = scenario_costs(self.decision_, scenario)
        return np.asarray(self.decision_.predict(X, costs=costs))

    def explain(self, X: Any) -> Explanation:
        """Exact contributions of the kept model, as its own ``explain`` gives them."""
        check_is_fitted(self, "decision_")
        if not hasattr(self.estimator_, "explain"):
            raise ValueError(
                f"What was kept ({self.candidate_}) has no exact contributions; readable=True "
                "keeps a page, which has them."
            )
        return cast("Explanation", self.estimator_.explain(X))

    def __call__(self, X: Any) -> Floats:
        """The score that :meth:`explain` takes apart, for ``shap.Explainer(model, X)``."""
        return self.explain(X).score


def candidates_for_scans(given: Any, auto: list[Candidate]) -> list[Candidate]:
    """The candidates that fit from a scan; one that was named and does not is an error."""
    every = isinstance(given, str) and given == "auto"
    named = list(auto) if every else read_candidates(given, auto)
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


def _counted(values: Any, training: Training, n_given: int, name: str) -> NDArray[Any]:
    """One entry for each row that counts, of groups or times given for all rows."""
    array = np.asarray(values)
    if array.shape != (n_given,):
        raise ValueError(
            f"{name} must hold one entry for each of the {n_given} rows, got shape {array.shape}."
        )
    return array[training.kept]


__all__ = ["Estimate", "LaconicClassifier"]
