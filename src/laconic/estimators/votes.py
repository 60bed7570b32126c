"""Majority votes of small size and certified C-bound: MinCq and CqBoost."""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.estimators.vote_classifier import VoteClassifier, check_choice
from laconic.estimators.vote_program import Program


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
    >>> from laconic import MinCqClassifier
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
