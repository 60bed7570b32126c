"""Drawings of majority votes: growth of the vote, what predicts its risk, its rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats
from laconic.core import drawing as theme
from laconic.votes.criterion import MarginMoments

__all__ = ["VoteCurveDisplay", "VoteRiskDisplay", "VoteRulesDisplay"]


def _signs(estimator: Any, y: Any) -> Floats:
    if len(estimator.classes_) != 2:
        raise ValueError("This drawing shows the vote of two classes.")
    return np.where(np.asarray(y) == estimator.classes_[1], 1.0, -1.0)


def _risk(margins: Floats, signs: Floats) -> float:
    """A margin of zero goes to the first class, as in ``predict``."""
    return float(np.mean((margins < 0) | ((margins == 0) & (signs > 0))))


@dataclass
class VoteCurveDisplay(theme.Display):
    """Risk and C-bound against the number of voters, on training and test rows.

    Attributes
    ----------
    n_voters : array
    train_risk, test_risk, train_c_bound, test_c_bound : arrays of the same length

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from laconic import CqBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CqBoostClassifier(mu="least-squares", max_voters=4, staged=True)
    >>> model = model.fit(X[::2], y[::2])
    >>> curve = VoteCurveDisplay.from_estimator(model, X[::2], y[::2], X[1::2], y[1::2])
    >>> curve.n_voters
    array([1, 2, 3, 4])
    """

    n_voters: NDArray[np.int64]
    train_risk: Floats
    test_risk: Floats
    train_c_bound: Floats
    test_c_bound: Floats

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, X_test: Any, y_test: Any
    ) -> VoteCurveDisplay:
        """From a model fitted with ``staged=True``, its training rows and test rows."""
        columns: list[list[float]] = [[], [], [], []]
        for k, (rows, labels) in enumerate(((X, y), (X_test, y_test))):
            signs = _signs(estimator, labels)
            for vote in estimator.staged_vote(rows):
                columns[k].append(_risk(signs * vote, signs))
                columns[2 + k].append(MarginMoments.of(signs * vote).c_bound())
        counts = np.array([len(weights) for _, weights in estimator.votes_[0].stages])
        return cls(counts, *(np.array(column) for column in columns))

    def _draw(self, ax: Any) -> tuple[str, str]:
        """Lines for the risks, dashes for the C-bounds."""
        for what, dashes in (("risk", "-"), ("c_bound", "--")):
            for k, rows in enumerate(("train", "test")):
                values = getattr(self, f"{rows}_{what}")
                name = f"{what.replace('c_bound', 'C-bound')}, {rows} rows"
                ax.plot(self.n_voters, values, dashes, color=theme.LINES[k], label=name)
        ax.set_ylim(bottom=0)
        return "voters in the vote", "risk"


@dataclass
class VoteRiskDisplay(theme.Display):
    """Risk of votes against half of 1 - mean margin (Gibbs risk) and against their C-bound.

    Figure 1 of the slides: the second predicts the risk far better than the first. Below the
    diagonal a bound holds.

    Attributes
    ----------
    risk, gibbs_risk, c_bound : arrays, one entry per vote
    """

    risk: Floats
    gibbs_risk: Floats
    c_bound: Floats

    @classmethod
    def from_predictions(cls, y: Any, votes: Any) -> VoteRiskDisplay:
        """From labels in {-1, +1} and the scores in [-1, 1] of several votes (one per column)."""
        signs = np.asarray(y, dtype=np.float64)
        if not np.isin(signs, (-1.0, 1.0)).all():
            raise ValueError("y must hold -1 and +1.")
        scores = np.asarray(votes, dtype=np.float64)
        scores = scores[:, None] if scores.ndim == 1 else scores
        moments = [MarginMoments.of(signs * column) for column in scores.T]
        return cls(
            np.array([_risk(signs * column, signs) for column in scores.T]),
            np.array([m.gibbs_risk for m in moments]),
            np.array([m.c_bound() for m in moments]),
        )

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any) -> VoteRiskDisplay:
        """All stages of a fitted vote (``staged=True``, or any model with ``staged_vote``)."""
        votes = np.column_stack(list(estimator.staged_vote(X)))
        return cls.from_predictions(_signs(estimator, y), votes)

    def _draw(self, ax: Any) -> tuple[str, str]:
        theme.diagonal(ax)
        ax.scatter(self.gibbs_risk, self.risk, s=14, color=theme.LINES[1], label="Gibbs risk")
        ax.scatter(self.c_bound, self.risk, s=14, color=theme.LINES[0], label="C-bound")
        ax.set_xlim(0, 1)
        ax.set_ylim(0, max(0.05, 1.1 * float(self.risk.max())))
        return "Gibbs risk or C-bound", "risk of the vote"


@dataclass
class VoteRulesDisplay(theme.Display):
    """The vote as a list of rules, heaviest first.

    Attributes
    ----------
    weights : array
    rules : list of str
    """

    weights: Floats
    rules: list[str]

    @classmethod
    def from_estimator(cls, estimator: Any, max_rules: int = 20) -> VoteRulesDisplay:
        """The heaviest rules of a fitted vote."""
        found = estimator.rules()[:max_rules]
        return cls(np.array([w for w, _ in found]), [rule for _, rule in found])

    def _columns(self) -> dict[str, Any]:
        return {"weight": self.weights, "rule": self.rules}

    def _draw(self, ax: Any) -> tuple[str, str]:
        """One bar per rule; those against the class are in the colour of alarm."""
        place = np.arange(len(self.rules))[::-1]
        against = [": never" in r or r == "never" for r in self.rules]
        colours = [theme.ALARM if no else theme.LINES[0] for no in against]
        ax.barh(place, self.weights, color=colours, height=0.7)
        ax.set_yticks(place, self.rules, color=theme.INK)
        return "weight", ""
