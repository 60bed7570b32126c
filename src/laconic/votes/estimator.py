"""What every majority vote is: voters by name, classes against the rest, margins, bounds, rules."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from laconic._typing import Floats
from laconic.core.contract import Accepts, ScannedTraining, TableClassifier, Training, take_rows
from laconic.core.folds import folds_of, seed_of
from laconic.core.forms import AdditiveScore
from laconic.core.links import probabilities, rounded_votes, vote_log_odds
from laconic.votes.criterion import PacBayesBound, pac_bayes_bounds
from laconic.votes.fit import FittedVote, calibration_of, fit_tandem, fit_vote, trust_of, vote_form
from laconic.votes.given_voters import ForestVoters, prepare_classifiers, prepare_scores
from laconic.votes.kernel_voters import KernelVoters
from laconic.votes.problem import Program
from laconic.votes.voters import PickedStumps, StumpVoters

_NAMED: dict[str, Any] = {
    "stumps": StumpVoters(),
    "rbf": KernelVoters("rbf"),
    "linear": KernelVoters("linear"),
    "poly": KernelVoters("poly"),
    "forest": ForestVoters(),
}


def prepare_voters(voters: Any, rows: Training, raw: Any, classes: Any, seed: int) -> Any:
    """Turn the ``voters`` parameter and the training rows into prepared voters."""
    if isinstance(voters, str):
        if voters == "scores":
            return prepare_scores(rows.table)
        if voters not in _NAMED:
            raise ValueError(
                f"voters={voters!r} is not known; give one of {[*_NAMED, 'scores']}, a family such "
                "as StumpVoters(...), or a list of fitted classifiers."
            )
        voters = _NAMED[voters]
    if isinstance(voters, StumpVoters):
        return voters.prepare(rows.table, rows.weight)
    if isinstance(voters, KernelVoters):
        return voters.prepare(rows.table, rows.weight, seed)
    if isinstance(voters, ForestVoters):
        return voters.prepare(rows, seed)
    if isinstance(voters, list | tuple) and len(voters):
        return prepare_classifiers(list(voters), raw, classes)
    raise TypeError(
        "voters must be a name, a family of voters or a non-empty list of fitted classifiers, got "
        f"{type(voters).__name__}."
    )


class VoteClassifier(TableClassifier):
    """What all majority votes share: classes one against the rest, margins, bounds, rules."""

    _fits_from_scan = False

    def __init__(
        self, voters: Any, *, probability: str, cv: Any, tol: float, random_state: Any
    ) -> None:
        self.voters = voters
        self.probability = probability
        self.cv = cv
        self.tol = tol
        self.random_state = random_state

    @property
    def _accepts(self) -> Accepts:  # type: ignore[override]
        voters = self.voters
        numbers = isinstance(voters, KernelVoters) or (
            isinstance(voters, str) and voters in ("rbf", "linear", "poly", "scores")
        )
        stumps = voters == "stumps" if isinstance(voters, str) else isinstance(voters, StumpVoters)
        return Accepts(
            categorical=not numbers, missing=not numbers, scan=stumps and self._fits_from_scan
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags

    def _fit_votes(self, X: Any, y: Any, sample_weight: Any, program: Program) -> Any:
        rows = self._read_training(X, y, sample_weight)
        seed = seed_of(self.random_state)
        if not rows.in_memory:
            self.votes_ = self._fit_scanned(rows, program, seed)
            self._publish()
            return self
        raw = take_rows(X, rows.kept) if isinstance(self.voters, list | tuple) else None
        prepared = prepare_voters(self.voters, rows, raw, self.classes_, seed)
        if getattr(self, "multi_class", "ovr") == "tandem" and len(self.classes_) > 2:
            self.votes_ = self._fit_tandem(prepared, rows)
            self._publish()
            return self
        wanted = program.mu == "cv" or len(program.solvers) > 1
        wanted = wanted or self.probability == "calibrated" or hasattr(prepared, "options")
        folds = []
        if wanted and not prepared.out_of_bag:
            given = len(rows.kept) if sample_weight is None else len(np.asarray(sample_weight))
            folds = folds_of(self.cv, rows, given, seed)
        self.votes_ = [
            fit_vote(
                prepared,
                np.where(rows.y == k, 1.0, -1.0),
                rows.weight,
                k,
                program,
                folds,
                calibrate=self.probability == "calibrated",
                who=type(self).__name__,
            )
            for k in self._classes_that_vote()
        ]
        self._publish()
        return self

    def _fit_scanned(self, rows: ScannedTraining, program: Program, seed: int) -> list[FittedVote]:
        from laconic.votes.scan import ScanFolds, fit_scanned_votes

        calibrate = self.probability == "calibrated"
        wanted = program.mu == "cv" or calibrate
        self._refuse_scan(
            not wanted or isinstance(self.cv, Integral), " with a splitter or folds as cv"
        )
        tandem = getattr(self, "multi_class", "ovr") == "tandem" and len(self.classes_) > 2
        self._refuse_scan(not tandem, "(multi_class='tandem')")
        voters = _NAMED[self.voters] if isinstance(self.voters, str) else self.voters
        return fit_scanned_votes(
            voters,
            rows,
            len(self.classes_),
            self._classes_that_vote(),
            program,
            ScanFolds(int(self.cv) if wanted else 1, seed),
            calibrate=calibrate,
            who=type(self).__name__,
        )

    def _fit_tandem(self, prepared: Any, rows: Training) -> list[FittedVote]:
        if not hasattr(prepared, "joint_errors") or getattr(prepared, "values", rows.y).ndim == 2:
            raise ValueError(
                "multi_class='tandem' weighs whole classifiers: use voters='forest' or a list of "
                "fitted classifiers."
            )
        if self.probability == "calibrated":
            raise ValueError("multi_class='tandem' has no calibrated probabilities.")
        who = type(self).__name__
        return fit_tandem(prepared, rows.y, rows.weight, len(self.classes_), self.tol, who)

    def _classes_that_vote(self) -> list[int]:
        return [1] if len(self.classes_) == 2 else list(range(len(self.classes_)))

    def _publish(self) -> None:
        """One vote: plain numbers. Several classes: one entry for each."""
        votes = self.votes_

        def shown(values: list[Any]) -> Any:
            return values[0] if len(votes) == 1 else values

        self.weights_ = shown([vote.weights for vote in votes])
        self.voters_ = shown([vote.voters for vote in votes])
        self.n_voters_ = shown([vote.n_columns for vote in votes])
        self.mu_ = shown([vote.mu for vote in votes])
        self.mu_max_ = shown([vote.mu_max for vote in votes])
        self.c_bound_ = shown([vote.c_bound for vote in votes])
        self.gibbs_risk_ = shown([vote.moments.gibbs_risk for vote in votes])
        self.disagreement_ = shown([vote.moments.disagreement for vote in votes])
        self.duality_gap_ = shown([vote.duality_gap for vote in votes])

    def vote(self, X: Any) -> Floats:
        """Σ q_j h_j(x) in [-1, 1]: the vote for ``classes_[1]``, or one column per class."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _scores(self, X: Any) -> Floats:
        check_is_fitted(self, "votes_")
        table = self._read_rows(X)
        if isinstance(self.votes_[0].voters, PickedStumps):
            return rounded_votes(self.form_.score(table))
        found = np.column_stack([vote.scores(table, X) for vote in self.votes_])
        return found * trust_of(self.votes_)

    @property
    def form_(self) -> AdditiveScore:
        """The vote as one table by column, for export (stumps only)."""
        check_is_fitted(self, "votes_")
        return vote_form(self.votes_, self.schema_, self.classes_)

    def decision_function(self, X: Any) -> Floats:
        """The vote; with ``probability="calibrated"`` its log-odds."""
        scores = self.vote(X)
        if self.votes_[0].slope is None:
            return scores
        slope = np.array([vote.slope for vote in self.votes_])
        intercept = np.array([vote.intercept for vote in self.votes_])
        if scores.ndim == 1:
            return vote_log_odds(scores) * slope[0] + intercept[0]
        return vote_log_odds(scores) * slope + intercept

    def predict(self, X: Any) -> NDArray[Any]:
        """Class of the vote.

        Two classes: a tie (a vote of exactly 0) goes to ``classes_[0]``. More: between equal votes
        the class whose voters have the smaller Gibbs risk wins, then the first.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return self.classes_[(scores > 0).astype(np.int64)]
        return self.classes_[scores.argmax(axis=1)]

    def predict_proba(self, X: Any) -> Floats:
        """(1 + vote)/2, or the calibrated sigmoid of it; several classes are normalised."""
        scores = self._scores(X)
        return probabilities(scores, "vote", calibration=calibration_of(self.votes_))

    def staged_vote(self, X: Any) -> Iterator[Floats]:
        """The vote after each voter that entered (binary problems fitted with ``staged=True``)."""
        check_is_fitted(self, "votes_")
        if len(self.votes_) != 1 or not self.votes_[0].stages:
            raise ValueError("staged_vote needs two classes and a model fitted with staged=True.")
        table = self._read_rows(X)
        for voters, weights in self.votes_[0].stages:
            yield np.clip(voters.votes(table, X) @ weights, -1.0, 1.0)

    def pac_bayes_bounds(self, delta: float = 0.05) -> list[PacBayesBound]:
        """Bounds on the risk of the vote that hold with probability 1 - delta.

        With more than two classes, bounds of each vote "class against the rest" in turn. Read the
        ``assumption`` of each: thresholds and kernel centres usually come from the same sample.
        """
        check_is_fitted(self, "votes_")
        if self.votes_[0].tandem:  # one vote for all classes, and the one bound that covers it
            return [b for b in _bounds_of(self.votes_[0], delta) if b.name == "tandem"]
        return [bound for vote in self.votes_ for bound in _bounds_of(vote, delta)]

    def rules(self) -> list[tuple[float, str]]:
        """The vote in words: (weight, voter), heaviest first; per class when there are several."""
        check_is_fitted(self, "votes_")
        found = []
        for k, vote in zip(self._classes_that_vote(), self.votes_, strict=True):
            lead = "" if len(self.votes_) == 1 else f"{self.classes_[k]}: "
            said = sorted(
                zip(vote.weights.tolist(), vote.voters.rules(), strict=True),
                key=lambda pair: (-pair[0], pair[1]),
            )
            found += [(weight, lead + rule) for weight, rule in said]
        return found


def _bounds_of(vote: FittedVote, delta: float) -> list[PacBayesBound]:
    return pac_bayes_bounds(
        vote.moments,
        vote.n_independent,
        vote.divergence,
        delta,
        assumption=vote.assumption,
        quasi_uniform=vote.quasi_uniform,
    )


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {list(choices)}, got {value!r}.")


# Majority votes of small size and certified C-bound: MinCq and CqBoost.


class MomentVoteClassifier(VoteClassifier):
    """Votes of least second moment at a mean margin mu: what CqBoost and MinCq share."""

    _fits_from_scan = True

    def __init__(
        self, voters: Any, *, form: str, mu: Any, mu_unit: str, delta: float, **shared: Any
    ) -> None:
        super().__init__(voters, **shared)
        self.form = form
        self.mu = mu
        self.mu_unit = mu_unit
        self.delta = delta

    def _program(self, forms: tuple[str, ...], **more: Any) -> Program:
        """The program of checked parameters; the slides' form has no mu to choose."""
        check_choice("form", self.form, forms)
        check_choice("mu_unit", self.mu_unit, ("margin", "share"))
        check_choice("probability", self.probability, ("margin", "calibrated"))
        if isinstance(self.mu, str):
            check_choice("mu", self.mu, ("cv", "bound", "least-squares"))
        elif not isinstance(self.mu, int | float | np.number) or not self.mu > 0:
            raise ValueError(
                "mu must be a positive number or one of 'cv', 'bound', 'least-squares', "
                f"got {self.mu!r}."
            )
        if not self.tol > 0:
            raise ValueError(f"tol must be positive, got {self.tol!r}.")
        return Program(
            self.form,
            "oriented" if self.form == "oriented" else "both",
            "least-squares" if self.form == "slides" else self.mu,
            self.mu_unit == "share",
            self.tol,
            delta=self.delta,
            **more,
        )


class CqBoostClassifier(MomentVoteClassifier):
    """Sparse majority vote of small C-bound, by column generation (CqBoost).

    Minimises the second moment of the margin at a fixed mean margin mu. Up to scale this is
    non-negative least squares of 1 on the signed votes plus a penalty on their total weight, and
    the column generation of the slides is its active-set method; it is solved as such.

    Parameters
    ----------
    voters : str, family of voters or list of fitted classifiers, default="stumps"
        "stumps", "rbf", "linear", "poly", "forest", "scores" (the columns of X are the votes), a
        :class:`StumpVoters`, :class:`KernelVoters` or :class:`ForestVoters`, or a list.
    form : {"sum-to-one", "oriented", "slides"}, default="sum-to-one"
        "oriented" uses every voter only on the side of its positive mean margin. The two others
        also offer the complement of every stump. "slides" has no total weight to share, so mu
        only scales it and it is least squares.
    mu : float, "cv", "bound" or "least-squares", default="cv"
        Mean margin of the vote. "cv" takes the least held-out logistic loss of the margins along
        the path from one voter to least squares, "bound" the smallest tandem PAC-Bayes bound on
        it, "least-squares" its end, the smallest C-bound.
    mu_unit : {"margin", "share"}, default="margin"
        Whether a number for mu is a mean margin or a share of the largest possible one.
    max_voters : int or None, default=None
        Stop after this many voters; all weights are optimal for the voters kept.
    early_stopping : float or None, default=None
        Stop when no voter's slope exceeds this share of the largest mean margin.
    probability : {"margin", "calibrated"}, default="margin"
        ``predict_proba`` is (1 + vote)/2, or its log-odds corrected by a slope and an intercept
        fitted on held-out votes.
    staged : bool, default=False
        Remember the vote after each voter (for :class:`VoteCurveDisplay`).
    cv : int, splitter or iterable, default=5
        Repeated folds average the losses of their rounds.
    tol : float, default=1e-8
        On the slopes, relative to the largest mean margin. Classes of more than 1500 voters are
        solved to 1e-4 at best; ``duality_gap_`` says what that costs.
    delta : float, default=0.05
        Confidence of the bound for ``mu="bound"``.
    random_state : int, RandomState or None

    Attributes
    ----------
    weights_, voters_, n_voters_ : the distribution and what it is over
    c_bound_, gibbs_risk_, disagreement_, mu_, mu_max_ : float
        On the training rows (out of bag for forests). Lists when there are several classes.
    duality_gap_ : float
        Excess of the second moment over the best vote of the same mean margin, at most.
    votes_ : list of FittedVote

    References
    ----------
    J.-F. Roy, slides of 13 February 2015, Algorithm 1; its initial α = -1/m should be +1/m.
    Roy, Marchand, Laviolette, AISTATS 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from laconic import CqBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CqBoostClassifier(max_voters=5).fit(X, y)
    >>> model.n_voters_, model.score(X, y) > 0.93
    (5, True)
    """

    def __init__(
        self,
        voters: Any = "stumps",
        *,
        form: str = "sum-to-one",
        mu: Any = "cv",
        mu_unit: str = "margin",
        max_voters: int | None = None,
        early_stopping: float | None = None,
        probability: str = "margin",
        staged: bool = False,
        cv: Any = 5,
        tol: float = 1e-8,
        delta: float = 0.05,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            voters,
            form=form,
            mu=mu,
            mu_unit=mu_unit,
            probability=probability,
            cv=cv,
            tol=tol,
            delta=delta,
            random_state=random_state,
        )
        self.max_voters = max_voters
        self.early_stopping = early_stopping
        self.staged = staged

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> CqBoostClassifier:
        """Fit the vote; several classes are voted on one against the rest.

        Votes of stumps fit from a scan too, with folds by a hash of the row's values.
        """
        if self.max_voters is not None and self.max_voters < 1:
            raise ValueError(f"max_voters must be at least 1, got {self.max_voters}.")
        if self.early_stopping is not None and not 0 < self.early_stopping < 1:
            raise ValueError(
                f"early_stopping must be in (0, 1) or None, got {self.early_stopping!r}."
            )
        program = self._program(
            ("oriented", "sum-to-one", "slides"),
            max_voters=self.max_voters,
            stop=self.early_stopping,
            staged=self.staged,
        )
        return self._fit_votes(X, y, sample_weight, program)


class MinCqClassifier(MomentVoteClassifier):
    """Majority vote of smallest second moment at a fixed mean margin (MinCq).

    Parameters
    ----------
    voters : see :class:`CqBoostClassifier`
    form : {"quasi-uniform", "sum-to-one", "slides"}, default="quasi-uniform"
        "quasi-uniform" is the published learner (Laviolette et al. 2011): weights q of a voter and
        its complement sum to 1/n, so the net weights lie in [-1/n, 1/n], every voter counts and no
        divergence is paid in the bound. The others are those of :class:`CqBoostClassifier`.
    multi_class : {"ovr", "tandem"}, default="ovr"
        With more than two classes: one vote per class against the rest, or one plurality vote of
        whole classifiers (a forest, or a list) of least tandem loss, whose bound covers all classes
        at once; ``c_bound_`` is then four times that loss.
    mu, mu_unit, probability, cv, tol, delta, random_state : see :class:`CqBoostClassifier`
        The largest mu is the mean (not the maximum) of the voters' absolute mean margins when
        quasi-uniform.

    Attributes
    ----------
    As :class:`CqBoostClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from laconic.votes import MinCqClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> MinCqClassifier(mu=0.1, mu_unit="share").fit(X, y).score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        voters: Any = "stumps",
        *,
        form: str = "quasi-uniform",
        mu: Any = "cv",
        mu_unit: str = "margin",
        multi_class: str = "ovr",
        probability: str = "margin",
        cv: Any = 5,
        tol: float = 1e-8,
        delta: float = 0.05,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            voters,
            form=form,
            mu=mu,
            mu_unit=mu_unit,
            probability=probability,
            cv=cv,
            tol=tol,
            delta=delta,
            random_state=random_state,
        )
        self.multi_class = multi_class

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MinCqClassifier:
        """Fit the vote; several classes are voted on one against the rest.

        Votes of stumps fit from a scan too, with folds by a hash of the row's values.
        """
        check_choice("multi_class", self.multi_class, ("ovr", "tandem"))
        program = self._program(("sum-to-one", "quasi-uniform", "slides"))
        return self._fit_votes(X, y, sample_weight, program)
