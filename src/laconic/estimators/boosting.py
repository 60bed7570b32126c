"""Rivals on the same voters: LPBoost, CG-Boost and CB-Boost. AdaBoost is scikit-learn's."""

from __future__ import annotations

import warnings
from typing import Any

from laconic.estimators.vote_classifier import VoteClassifier, check_choice
from laconic.estimators.vote_problem import Problem
from laconic.estimators.vote_program import Program
from laconic.solvers.solution import Solution

_NU = (0.1, 0.2, 0.3, 0.45, 0.6, 0.8)
_C = (0.001, 0.01, 0.1, 1.0, 10.0)


def _positive(name: str, value: Any) -> float:
    if isinstance(value, str) or not value > 0:
        raise ValueError(f"{name} must be a positive number or 'cv', got {value!r}.")
    return float(value)


class _RivalClassifier(VoteClassifier):
    """Fits the vote of a solver over listed or priced voters."""

    def _fit_with(self, X: Any, y: Any, sample_weight: Any, solvers: list[Any]) -> Any:
        check_choice("probability", self.probability, ("margin", "calibrated"))
        if isinstance(self.voters, str) and self.voters == "forest":
            raise ValueError(
                f"{type(self).__name__} weighs voters on the rows they are given, and trees must "
                "be weighed out of bag; use CqBoostClassifier(voters='forest')."
            )
        program = Program("rival", "both", "solver", tol=self.tol, solvers=tuple(solvers))
        return self._fit_votes(X, y, sample_weight, program)


class LPBoostClassifier(_RivalClassifier):
    """Soft-margin vote by linear programming and column generation (LPBoost).

    Parameters
    ----------
    voters : see :class:`CqBoostClassifier`
    nu : float in (0, 1] or "cv", default=0.3
        At most this share of the rows may fall short of the margin. With complements on offer and
        nu below about twice the error level the optimum is a vote of zero everywhere, which is
        reported by a warning and by ``zero_vote_``. "cv" takes the least held-out logistic loss.
    probability, cv, tol, random_state : see :class:`CqBoostClassifier`

    Attributes
    ----------
    zero_vote_ : bool
        Whether a vote is identically zero.
    duality_gap_ : float
        Of the soft margin.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from laconic import LPBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LPBoostClassifier(nu=0.2).fit(X, y)
    >>> model.score(X, y) > 0.95, model.zero_vote_
    (True, False)
    """

    def __init__(
        self,
        voters: Any = "stumps",
        *,
        nu: Any = 0.3,
        probability: str = "margin",
        cv: Any = 5,
        tol: float = 1e-8,
        random_state: Any = None,
    ) -> None:
        super().__init__(voters, probability=probability, cv=cv, tol=tol, random_state=random_state)
        self.nu = nu

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LPBoostClassifier:
        """Fit the vote; several classes are voted on one against the rest."""
        from laconic.solvers.lp_boost import lp_boost

        def solver(nu: float) -> Any:
            return lambda problem: lp_boost(
                problem.columns, nu, sides=problem.program.sides, tol=self.tol
            )

        tried = _NU if self.nu == "cv" else (_positive("nu", self.nu),)
        self._fit_with(X, y, sample_weight, [solver(nu) for nu in tried])
        self.zero_vote_ = any(len(vote.weights) == 0 for vote in self.votes_)
        if self.zero_vote_:
            warnings.warn(
                f"LPBoost with nu={self.nu} has a vote of zero everywhere as its optimum; raise nu "
                "above twice the error rate.",
                UserWarning,
                stacklevel=2,
            )
        return self


class CGBoostClassifier(_RivalClassifier):
    """Dense hinge vote with a squared penalty (CG-Boost).

    Parameters
    ----------
    voters : see :class:`CqBoostClassifier`
    C : float or "cv", default="cv"
        Weight of the hinge losses against ½|w|²; "cv" as for LPBoost.
    probability, cv, tol, random_state : see :class:`CqBoostClassifier`

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from laconic import CGBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> CGBoostClassifier(C=0.01).fit(X, y).score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        voters: Any = "stumps",
        *,
        C: Any = "cv",
        probability: str = "margin",
        cv: Any = 5,
        tol: float = 1e-8,
        random_state: Any = None,
    ) -> None:
        super().__init__(voters, probability=probability, cv=cv, tol=tol, random_state=random_state)
        self.C = C

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CGBoostClassifier:
        """Fit the vote; several classes are voted on one against the rest."""
        from laconic.solvers.greedy_votes import cg_boost

        def solver(C: float) -> Any:
            def solve(problem: Problem) -> Solution:
                if not problem.listed:
                    problem.list_all()
                return cg_boost(
                    problem.columns,
                    problem.ids,
                    C,
                    problem.weight,
                    sides=problem.program.sides,
                    tol=self.tol,
                )

            return solve

        tried = _C if self.C == "cv" else (_positive("C", self.C),)
        return self._fit_with(X, y, sample_weight, [solver(C) for C in tried])


class CBBoostClassifier(_RivalClassifier):
    """Greedy minimiser of the C-bound, one closed-form step a round (CB-Boost).

    Parameters
    ----------
    voters : see :class:`CqBoostClassifier`
    n_rounds : int, default=200
    probability, cv, tol, random_state : see :class:`CqBoostClassifier`

    Attributes
    ----------
    duality_gap_ : float
        Excess of the second moment over the best vote of the same mean margin. Greedy rounds are
        not meant to close it.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from laconic import CBBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> CBBoostClassifier(n_rounds=50).fit(X, y).score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        voters: Any = "stumps",
        *,
        n_rounds: int = 200,
        probability: str = "margin",
        cv: Any = 5,
        tol: float = 1e-8,
        random_state: Any = None,
    ) -> None:
        super().__init__(voters, probability=probability, cv=cv, tol=tol, random_state=random_state)
        self.n_rounds = n_rounds

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CBBoostClassifier:
        """Fit the vote; several classes are voted on one against the rest."""
        from dataclasses import replace

        from laconic.solvers.greedy_votes import cb_boost

        if self.n_rounds < 1:
            raise ValueError(f"n_rounds must be at least 1, got {self.n_rounds}.")

        def solve(problem: Problem) -> Solution:
            found = cb_boost(
                problem.columns,
                sides=problem.program.sides,
                max_rounds=self.n_rounds,
                tol=self.tol,
            )
            return replace(found, why_stopped="gap")  # rounds are the method, not a failure

        return self._fit_with(X, y, sample_weight, [solve])
