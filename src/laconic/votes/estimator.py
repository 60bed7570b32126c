"""Majority votes of small size and certified C-bound: what all share, CqBoost and MinCq."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
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
    take_rows,
)
from laconic.core.folds import HashedFolds, folds_of, keys_of
from laconic.core.forms import AdditiveScore, probabilities, rounded_votes, vote_log_odds
from laconic.data.row_keys import seed_of
from laconic.data.source import one_blas_thread
from laconic.votes.criterion import PacBayesBound, pac_bayes_bounds
from laconic.votes.fit import (
    FittedVote,
    Fold,
    VoteDual,
    calibration_of,
    fit_best_option,
    fit_tandem,
    trust_of,
)
from laconic.votes.form import VoteForm, forest_form, vote_form
from laconic.votes.problem import Program
from laconic.votes.programs import BoxProgram, MomentProgram
from laconic.votes.voters.base import (
    OutOfBagVoters,
    PreparedVoters,
    column_order,
    in_order,
    row_order,
    take_training,
)
from laconic.votes.voters.families import SCORES, family_of, prepare_voters
from laconic.votes.voters.kernels import KernelVoters
from laconic.votes.voters.stumps import PickedStumps, StumpVoters


class VoteClassifier(TableClassifier):
    """What all majority votes share: classes one against the rest, margins, bounds, rules.

    A subclass says in ``_program`` what is solved for each class.
    """

    _fits_from_scan = False
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "voters": "no_validation",  # refused with a sentence of its own
        "proba": [StrOptions({"margin", "calibrated"})],
        "cv": ["cv_object"],
        "tol": [Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(self, voters: Any, *, proba: str, cv: Any, tol: float, random_state: Any) -> None:
        self.voters = voters
        self.proba = proba
        self.cv = cv
        self.tol = tol
        self.random_state = random_state

    @property
    def _accepts(self) -> Accepts:  # type: ignore[override]
        voters = self.voters
        numbers = isinstance(voters, KernelVoters) or (
            isinstance(voters, str) and voters in ("rbf", "linear", "poly", SCORES)
        )
        stumps = voters == "stumps" if isinstance(voters, str) else isinstance(voters, StumpVoters)
        return Accepts(
            categorical=not numbers, missing=not numbers, scan=stumps and self._fits_from_scan
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags

    def _program(self) -> Program:
        raise NotImplementedError

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the vote; several classes are voted on one against the rest.

        A scan is for votes of stumps by CqBoost and MinCq, with folds by a hash of the row's
        values.
        """
        program = self._program()
        rows = self._read_training(X, y, sample_weight)
        seed = seed_of(self.random_state)
        if not rows.in_memory:
            self.votes_ = self._fit_scanned(rows, program, seed)
        else:
            given = rows.n_rows if sample_weight is None else len(np.asarray(sample_weight))
            with one_blas_thread():  # the same bits whatever the number of threads
                self.votes_ = self._fit_rows(X, rows, given, program, seed)
        self._publish()
        return self

    def _fit_rows(
        self, X: Any, rows: Training, given: int, program: Program, seed: int
    ) -> list[FittedVote]:
        # ties between voters and draws follow what rows and columns hold, not where they stand
        # keys of rows do not know the order of the columns: the folds are those of ``rows`` too
        order = column_order(rows.column_keys, rows.table.names)
        turn = row_order(rows, keys_of(rows, 0))
        turned = take_training(replace(rows, table=in_order(rows.table, order)), turn)
        raw = take_rows(X, turned.kept) if isinstance(self.voters, list | tuple) else None
        prepared = prepare_voters(self.voters, turned, raw, self.classes_, seed)
        folds = []
        if self._holds_out(program, prepared):
            place = np.argsort(turn)
            pairs = folds_of(5 if self.cv is None else self.cv, rows, given, seed)
            folds = [(np.sort(place[train]), np.sort(place[test])) for train, test in pairs]
        return self._fit_in_memory(prepared, turned, program, folds)

    def _holds_out(self, program: Program, prepared: PreparedVoters) -> bool:
        """Whether a choice or the calibration needs folds; trees are judged out of bag."""
        wanted = program.compares or self.proba == "calibrated" or prepared.undecided
        return wanted and not isinstance(prepared, OutOfBagVoters)

    def _fit_in_memory(
        self, prepared: PreparedVoters, rows: Training, program: Program, folds: list[Fold]
    ) -> list[FittedVote]:
        return [
            fit_best_option(
                prepared,
                program,
                np.where(rows.y == k, 1.0, -1.0),
                rows.weight,
                k,
                folds,
                calibrate=self.proba == "calibrated",
                who=type(self).__name__,
            )
            for k in self._classes_that_vote()
        ]

    def _fit_scanned(self, rows: ScannedTraining, program: Program, seed: int) -> list[FittedVote]:
        from laconic.votes.scan import fit_scanned_votes

        calibrate = self.proba == "calibrated"
        wanted = program.compares or calibrate
        self._refuse_scan(
            not wanted or self.cv is None or isinstance(self.cv, Integral),
            " with a splitter or folds as cv",
        )
        return fit_scanned_votes(
            family_of(self.voters),
            rows,
            len(self.classes_),
            self._classes_that_vote(),
            program,
            HashedFolds(int(self.cv or 5) if wanted else 1, seed),
            calibrate=calibrate,
            who=type(self).__name__,
        )

    def _classes_that_vote(self) -> list[int]:
        return [1] if len(self.classes_) == 2 else list(range(len(self.classes_)))

    def _publish(self) -> None:
        """One entry for each vote, whatever their number."""
        votes = self.votes_
        self.weights_ = [vote.weights for vote in votes]
        self.voters_ = [vote.voters for vote in votes]
        self.n_voters_ = np.array([vote.n_columns for vote in votes])
        self.mu_ = np.array([vote.mu for vote in votes])
        self.mu_max_ = np.array([vote.mu_max for vote in votes])
        self.c_bound_ = np.array([vote.c_bound for vote in votes])
        self.gibbs_risk_ = np.array([vote.moments.gibbs_risk for vote in votes])
        self.disagreement_ = np.array([vote.moments.disagreement for vote in votes])
        self.duality_gap_ = np.array([vote.duality_gap for vote in votes])

    def vote(self, X: Any) -> Floats:
        """Σ q_j h_j(x) in [-1, 1]: the vote for ``classes_[1]``, or one column per class."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _scores(self, X: Any) -> Floats:
        check_is_fitted(self, "votes_")
        table = self._read_rows(X)
        if isinstance(self.votes_[0].voters, PickedStumps):
            return rounded_votes(self.form_.score(table))
        with one_blas_thread():
            found = np.column_stack([vote.scores(table, X) for vote in self.votes_])
        return np.asarray(found * trust_of(self.votes_))

    @property
    def forest_form_(self) -> AdditiveScore | None:
        """A vote of trees as a sum of trees, for the model file; None for other voters."""
        check_is_fitted(self, "votes_")
        return forest_form(self.votes_, self.schema_, self.classes_)

    @property
    def vote_form_(self) -> VoteForm | None:
        """A vote of kernels or scores, for the model file; None for other voters."""
        check_is_fitted(self, "votes_")
        return VoteForm.of(self.votes_, self.classes_)

    @property
    def form_(self) -> AdditiveScore:
        """The vote as one table by column, for export (stumps only)."""
        check_is_fitted(self, "votes_")
        return vote_form(self.votes_, self.schema_, self.classes_)

    def decision_function(self, X: Any) -> Floats:
        """The vote; with ``proba="calibrated"`` its log-odds."""
        scores, line = self._scores(X), calibration_of(self.votes_)
        if line is not None:
            slope, intercept = np.array(line).T
            scores = vote_log_odds(scores) * slope + intercept
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Class of the vote.

        Two classes: a tie (a vote of exactly 0) goes to ``classes_[0]``. More: between equal votes
        the class whose voters have the smaller Gibbs risk wins, then the first.
        """
        scores = self.decision_function(X)
        best = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best.astype(np.int64)])

    def predict_proba(self, X: Any) -> Floats:
        """(1 + vote)/2, or the calibrated sigmoid of it; several classes are normalised."""
        return probabilities(self._scores(X), "vote", calibration=calibration_of(self.votes_))

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


class MomentVoteClassifier(VoteClassifier):
    """Votes of least second moment at a mean margin mu: what CqBoost and MinCq share."""

    _fits_from_scan = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **VoteClassifier._parameter_constraints,
        "mu": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({"cv", "bound", "least-squares"}),
        ],
        "mu_unit": [StrOptions({"margin", "share"})],
        "delta": [Interval(Real, 0, 1, closed="neither")],
    }

    def __init__(
        self,
        voters: Any,
        *,
        constraint: str,
        mu: float | str,
        mu_unit: str,
        delta: float,
        **shared: Any,
    ) -> None:
        super().__init__(voters, **shared)
        self.constraint = constraint
        self.mu = mu
        self.mu_unit = mu_unit
        self.delta = delta

    def _publish(self) -> None:
        super()._publish()
        self.beta_ = np.array([vote.beta for vote in self.votes_])

    def dual(self, X: Any, y: Any, sample_weight: Any = None) -> list[VoteDual]:
        """The dual of each vote at the rows that it was fitted on: α, β and the largest edge.

        Parameters
        ----------
        X, y, sample_weight : as given to ``fit``

        Returns
        -------
        list of VoteDual
            One for each vote, with one α for each row (zero for a row of weight zero).
        """
        check_is_fitted(self, "votes_")
        if np.isnan(self.beta_).any():
            raise ValueError(
                "This vote has no dual over its rows: trees are weighed on rows out of bag, other "
                "ones for each pair, and voters without a mean margin are not weighed at all."
            )
        weight = self._read_weight(sample_weight, len(y))
        scores, labels = self._scores(X), np.asarray(y)
        share = weight / weight.sum()
        return [
            vote.dual(np.where(labels == self.classes_[k], 1.0, -1.0) * scores[:, i], share)
            for i, (k, vote) in enumerate(zip(self._classes_that_vote(), self.votes_, strict=True))
        ]

    def _mean_margin(self) -> dict[str, Any]:
        """How the program fixes its mean margin; the slides' form has no mu to choose."""
        return {
            "constraint": self.constraint,
            "mu": "least-squares" if self.constraint == "slides" else self.mu,
            "share": self.mu_unit == "share",
            "tol": self.tol,
            "delta": self.delta,
        }


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
    constraint : {"sum-to-one", "oriented", "slides"}, default="sum-to-one"
        On the weights. "oriented" uses every voter only on the side of its positive mean margin.
        The two others also offer the complement of every stump. "slides" has no total weight to
        share, so mu only scales it and it is least squares.
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
    proba : {"margin", "calibrated"}, default="margin"
        ``predict_proba`` is (1 + vote)/2, or its log-odds corrected by a slope and an intercept
        fitted on held-out votes.
    staged : bool, default=False
        Remember the vote after each voter (for :class:`VoteCurveDisplay`).
    cv : int of at least 2, splitter, iterable or None, default=5
        None is 5. Repeated folds average the losses of their rounds.
    tol : float in (0, 1), default=1e-8
        On the slopes, relative to the largest mean margin. Classes of more than 1500 voters are
        solved to 1e-4 at best; ``duality_gap_`` says what that costs.
    delta : float in (0, 1), default=0.05
        Confidence of the bound for ``mu="bound"``.
    random_state : int, RandomState or None, default=None
        Of forests, landmarks and folds. None is a fixed seed: folds follow the rows' values, so
        that the same table gives the same model.

    Attributes
    ----------
    votes_ : list of FittedVote
        One vote for ``classes_[1]`` when there are two classes, one per class against the rest
        when there are more. What follows has one entry for each of these n_votes, also for one.
    weights_, voters_ : list
        The distribution of each vote and what it is over.
    n_voters_ : ndarray of shape (n_votes,)
    c_bound_, gibbs_risk_, disagreement_, mu_, mu_max_ : ndarray of shape (n_votes,)
        On the training rows (out of bag for forests).
    duality_gap_ : ndarray of shape (n_votes,)
        Excess of the second moment over the best vote of the same mean margin, at most.
    beta_ : ndarray of shape (n_votes,)
        Multiplier of the mean margin in the dual, whose α are given by :meth:`dual`.
    classes_, n_features_in_, feature_names_in_

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
    (array([5]), True)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MomentVoteClassifier._parameter_constraints,
        "constraint": [StrOptions({"sum-to-one", "oriented", "slides"})],
        "max_voters": [Interval(Integral, 1, None, closed="left"), None],
        "early_stopping": [Interval(Real, 0, 1, closed="neither"), None],
        "staged": ["boolean"],
    }

    def __init__(
        self,
        voters: Any = "stumps",
        *,
        constraint: str = "sum-to-one",
        mu: float | str = "cv",
        mu_unit: str = "margin",
        max_voters: int | None = None,
        early_stopping: float | None = None,
        proba: str = "margin",
        staged: bool = False,
        cv: Any = 5,
        tol: float = 1e-8,
        delta: float = 0.05,
        random_state: Any = None,
    ) -> None:
        shared = {"proba": proba, "cv": cv, "tol": tol, "random_state": random_state}
        super().__init__(
            voters, constraint=constraint, mu=mu, mu_unit=mu_unit, delta=delta, **shared
        )
        self.max_voters = max_voters
        self.early_stopping = early_stopping
        self.staged = staged

    def _program(self) -> MomentProgram:
        return MomentProgram(
            **self._mean_margin(),
            sides="oriented" if self.constraint == "oriented" else "both",
            max_voters=self.max_voters,
            stop=self.early_stopping,
            staged=self.staged,
        )


class MinCqClassifier(MomentVoteClassifier):
    """Majority vote of smallest second moment at a fixed mean margin (MinCq).

    Parameters
    ----------
    voters, mu, mu_unit, proba, cv, tol, delta, random_state : see :class:`CqBoostClassifier`
        The largest mu is the mean (not the maximum) of the voters' absolute mean margins when
        quasi-uniform.
    constraint : {"quasi-uniform", "sum-to-one", "slides"}, default="quasi-uniform"
        "quasi-uniform" is the published learner (Laviolette et al. 2011): weights q of a voter and
        its complement sum to 1/n, so the net weights lie in [-1/n, 1/n], every voter counts and no
        divergence is paid in the bound. The others are those of :class:`CqBoostClassifier`.
    multi_class : {"ovr", "tandem"}, default="ovr"
        With more than two classes: one vote per class against the rest, or one plurality vote of
        whole classifiers (a forest, or a list) of least tandem loss, whose bound covers all classes
        at once; ``c_bound_`` is then four times that loss.

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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MomentVoteClassifier._parameter_constraints,
        "constraint": [StrOptions({"quasi-uniform", "sum-to-one", "slides"})],
        "multi_class": [StrOptions({"ovr", "tandem"})],
    }

    def __init__(
        self,
        voters: Any = "stumps",
        *,
        constraint: str = "quasi-uniform",
        mu: float | str = "cv",
        mu_unit: str = "margin",
        multi_class: str = "ovr",
        proba: str = "margin",
        cv: Any = 5,
        tol: float = 1e-8,
        delta: float = 0.05,
        random_state: Any = None,
    ) -> None:
        shared = {"proba": proba, "cv": cv, "tol": tol, "random_state": random_state}
        super().__init__(
            voters, constraint=constraint, mu=mu, mu_unit=mu_unit, delta=delta, **shared
        )
        self.multi_class = multi_class

    def _program(self) -> BoxProgram | MomentProgram:
        boxed = self.constraint == "quasi-uniform"
        return (BoxProgram if boxed else MomentProgram)(**self._mean_margin())

    def _fit_in_memory(
        self, prepared: PreparedVoters, rows: Training, program: Program, folds: list[Fold]
    ) -> list[FittedVote]:
        if not self._tandem():
            return super()._fit_in_memory(prepared, rows, program, folds)
        if self.proba == "calibrated":
            raise ValueError("multi_class='tandem' has no calibrated probabilities.")
        n_classes, who = len(self.classes_), type(self).__name__
        return fit_tandem(prepared, rows.y, rows.weight, n_classes, self.tol, who)

    def _fit_scanned(self, rows: ScannedTraining, program: Program, seed: int) -> list[FittedVote]:
        self._refuse_scan(not self._tandem(), "(multi_class='tandem')")
        return super()._fit_scanned(rows, program, seed)

    def _tandem(self) -> bool:
        return self.multi_class == "tandem" and len(self.classes_) > 2
