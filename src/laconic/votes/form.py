"""Fitted forms of votes: one table a column of stumps, one term a tree, the voters of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats
from laconic.core.forms import (
    AdditiveScore,
    RulesTerm,
    SlotTerm,
    Term,
    plain_label,
    probabilities,
    rounded_votes,
)
from laconic.data.tables.axes import Axis, CategoryAxis, IntervalAxis
from laconic.data.tables.columns import Schema, Table
from laconic.votes.fit import FittedVote, calibration_of, trust_of
from laconic.votes.voters.families import PickedScores
from laconic.votes.voters.forest import PickedTrees
from laconic.votes.voters.kernels import PickedKernels
from laconic.votes.voters.stumps import PickedStumps, Stump

_KINDS: dict[str, Any] = {"kernels": PickedKernels, "scores": PickedScores}


@dataclass(frozen=True)
class WeightedVoters:
    """One vote: voters and their weights; ``trust`` is a factor close to one that breaks ties."""

    voters: Any
    weights: Floats
    trust: float

    def scores(self, table: Table) -> Floats:
        """Σ q_j h_j(x), in [-1, 1], times the trust."""
        # summed voter by voter, so that a row's score does not depend on its batch
        votes = self.voters.votes(table, None)
        total = np.zeros(len(votes))
        for k, weight in enumerate(self.weights):
            total += weight * votes[:, k]
        return np.asarray(rounded_votes(total) * self.trust)

    def to_dict(self) -> dict[str, Any]:
        return {
            "weights": self.weights.tolist(),
            "trust": float(self.trust),
            "voters": self.voters.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> WeightedVoters:
        kind = data["voters"]["kind"]
        if kind not in _KINDS:
            raise ValueError(f"unknown voters {kind!r}")
        voters = _KINDS[kind].from_dict(data["voters"])
        weights = np.array(data["weights"], dtype=np.float64)
        if weights.shape != (len(voters),) or not (weights >= 0.0).all():
            raise ValueError("A vote has a weight that is not negative for each voter.")
        # the weights of a vote sum to one, those of a quasi-uniform one to less
        if not weights.sum() <= 1.0 + 1e-9 or not 0.0 < float(data["trust"]) <= 1.0:
            raise ValueError(
                "The weights of a vote must sum to one at most, its trust be in (0, 1]."
            )
        return cls(voters, weights, float(data["trust"]))


@dataclass(frozen=True)
class VoteForm:
    """Votes of kernels or scores: one for two classes, one a class for more.

    ``to_dict`` holds numbers and texts only, and ``from_dict`` gives the same bits back, through
    JSON too; every field is checked there.

    >>> voters = PickedScores(("expert",), (1.0,))
    >>> form = VoteForm(("no", "yes"), (WeightedVoters(voters, np.array([1.0]), 1.0),))
    >>> table = Table(("expert",), ("numeric",), (None,), matrix=np.array([[0.5], [-1.0]]))
    >>> form.proba(table).tolist()
    [[0.25, 0.75], [1.0, 0.0]]
    >>> VoteForm.from_dict(form.to_dict()).to_dict() == form.to_dict()
    True
    """

    classes: tuple[Any, ...]
    votes: tuple[WeightedVoters, ...]
    calibration: tuple[tuple[float, float], ...] | None = None

    def __post_init__(self) -> None:
        expected = 1 if len(self.classes) == 2 else len(self.classes)
        if len(self.classes) < 2 or len(self.votes) != expected:
            raise ValueError(f"{len(self.classes)} classes need {expected} votes.")
        lines = self.calibration
        if lines is not None and (
            np.shape(lines) != (expected, 2) or not np.isfinite(np.array(lines)).all()
        ):
            raise ValueError("calibration needs a finite slope and intercept for each vote.")

    @staticmethod
    def of(votes: Sequence[FittedVote], classes: NDArray[Any]) -> VoteForm | None:
        """The form of fitted votes; None where their voters have another, or none."""
        if not isinstance(votes[0].voters, PickedKernels | PickedScores):
            return None
        parts = zip(votes, trust_of(votes).tolist(), strict=True)
        return VoteForm(
            tuple(plain_label(c) for c in classes),
            tuple(WeightedVoters(vote.voters, vote.weights, trust) for vote, trust in parts),
            calibration_of(votes),
        )

    def score(self, table: Table) -> Floats:
        """(rows, votes)."""
        return np.column_stack([vote.scores(table) for vote in self.votes])

    def proba(self, table: Table) -> Floats:
        """(rows, classes)."""
        return probabilities(self.score(table), "vote", calibration=self.calibration)

    def check_columns(self, schema: Schema) -> None:
        """Refuse votes that do not read these columns."""
        if not all(vote.voters.reads(schema) for vote in self.votes):
            raise ValueError("the voters do not match the columns")

    def to_dict(self) -> dict[str, Any]:
        """Numbers, texts, lists: ``json.dumps`` keeps every bit."""
        return {
            "form": "vote",
            "classes": list(self.classes),
            "votes": [vote.to_dict() for vote in self.votes],
            "calibration": self.calibration and [list(line) for line in self.calibration],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> VoteForm:
        if data.get("form") != "vote":
            raise ValueError(f"Expected a vote, got {data.get('form')!r}.")
        lines = data["calibration"]
        return cls(
            tuple(data["classes"]),
            tuple(WeightedVoters.from_dict(vote) for vote in data["votes"]),
            None if lines is None else tuple((float(a), float(b)) for a, b in lines),
        )


class NoFormError(ValueError):
    """The model cannot be written as a sum of terms; the sentence says why."""


def vote_form(votes: Sequence[FittedVote], schema: Schema, classes: NDArray[Any]) -> AdditiveScore:
    """A vote of stumps: one table by column, the sum of the stumps that read it."""
    for vote in votes:
        if not isinstance(vote.voters, PickedStumps) or vote.tandem:
            raise NoFormError(
                "Only votes of decision stumps are sums of terms of one column; kernel voters, "
                "trees and given classifiers are not."
            )
    n_scores = len(votes)
    trust = trust_of(votes)
    intercept = np.zeros(n_scores)
    by_column: dict[int, list[tuple[int, float, Stump]]] = {}  # terms in the order of the columns
    for k, vote in enumerate(votes):
        for weight, stump in zip(vote.weights * trust[k], vote.voters.stumps, strict=True):
            if stump.name is None:
                intercept[k] += weight if stump.holds else -weight
            else:
                place = schema.names.index(stump.name)
                by_column.setdefault(place, []).append((k, float(weight), stump))
    terms = [
        _stump_term(schema.names[j], schema.categories[j], said, n_scores)
        for j, said in sorted(by_column.items())
    ]
    labels = tuple(plain_label(c) for c in classes)
    return AdditiveScore(labels, intercept, tuple(terms), "vote", calibration=calibration_of(votes))


def forest_form(
    votes: Sequence[FittedVote], schema: Schema, classes: NDArray[Any]
) -> AdditiveScore | None:
    """A vote of trees: one term for each tree; None where a voter is no tree."""
    if any(not isinstance(vote.voters, PickedTrees) or vote.tandem for vote in votes):
        return None
    trust, terms = trust_of(votes), []
    for k, vote in enumerate(votes):
        for weight, tree in zip(vote.weights * trust[k], vote.voters.trees, strict=True):
            shares = tree.tree_.value[:, 0, :]
            shares = shares / shares.sum(axis=1, keepdims=True)
            values = np.zeros((len(shares), len(votes)))
            values[:, k] = weight * (2.0 * shares[:, vote.voters.k] - 1.0)
            terms.append(_tree_term(tree.tree_, vote.voters.names, schema, values))
    labels = tuple(plain_label(c) for c in classes)
    nothing = np.zeros(len(votes))
    return AdditiveScore(labels, nothing, tuple(terms), "vote", calibration=calibration_of(votes))


def _tree_term(tree: Any, names: Sequence[str], schema: Schema, values: Floats) -> Term:
    """A tree of scikit-learn: a column stands twice where missing cells go either way."""
    inner = np.flatnonzero(tree.children_left >= 0)
    if not len(inner):
        raise NoFormError("A tree of the vote has one leaf only.")
    goes_left = np.asarray(tree.missing_go_to_left, dtype=bool)
    read = sorted({(names[tree.feature[t]], bool(goes_left[t])) for t in inner})
    axes, ranks, column, threshold = [], [], np.full(len(values), -1), np.zeros(len(values), int)
    for c, (name, left) in enumerate(read):
        own = [t for t in inner if (names[tree.feature[t]], bool(goes_left[t])) == (name, left)]
        texts = schema.categories[schema.names.index(name)]
        column[own] = c
        if texts is None:
            # an infinite threshold parts the missing cells from all others
            cuts = np.array([_as_double(tree.threshold[t]) for t in own])
            bounds = np.unique(cuts[np.isfinite(cuts)])
            axis: Axis = IntervalAxis(bounds)
            rank = np.arange(axis.size)
            rank[axis.missing] = -1 if left else len(bounds) + 1
            threshold[own] = np.searchsorted(bounds, cuts)
        else:
            axis = CategoryAxis(tuple((text,) for text in texts))
            # a text that was never seen has a code below all others
            rank = np.append(np.arange(len(texts)), [-1, -1 if left else len(texts)])
            threshold[own] = np.floor(np.minimum(tree.threshold[own], len(texts) - 1))
        axes.append(axis)
        ranks.append(rank)
    left_of, right_of = (np.maximum(side, 0) for side in (tree.children_left, tree.children_right))
    return RulesTerm(
        tuple(name for name, _ in read), tuple(axes), tuple(ranks), column, threshold,
        left_of, right_of, values,
    )  # fmt: skip


def _as_double(threshold: float) -> float:
    """The largest float64 that scikit-learn, which rounds to float32 first, sends to the left."""
    if not np.isfinite(threshold):
        return float(threshold)
    low = np.float32(threshold)
    if float(low) > threshold:
        low = np.nextafter(low, np.float32(-np.inf))
    middle = (float(low) + float(np.nextafter(low, np.float32(np.inf)))) / 2.0
    return middle if np.float32(middle) == low else float(np.nextafter(middle, -np.inf))


def _stump_term(
    name: str,
    texts: tuple[str, ...] | None,
    said: Sequence[tuple[int, float, Stump]],
    n_scores: int,
) -> SlotTerm:
    if texts is None:
        cuts = {stump.threshold for _, _, stump in said if stump.threshold != -np.inf}
        axis: Axis = IntervalAxis(np.array(sorted(cut for cut in cuts if cut is not None)))
    else:
        named = {stump.category for _, _, stump in said if stump.category is not None}
        axis = CategoryAxis(tuple((text,) for text in texts if text in named))
    values = np.zeros((axis.size, n_scores))
    for k, weight, stump in said:
        holds = _slots_where(axis, stump)
        values[:, k] += np.where(holds == stump.holds, weight, -weight)
    return SlotTerm((name,), (axis,), values)


def _slots_where(axis: Axis, stump: Stump) -> NDArray[np.bool_]:
    """Slots whose values satisfy the stump's condition, before its side is taken."""
    yes = np.zeros(axis.size, dtype=bool)
    if isinstance(axis, IntervalAxis):
        assert stump.threshold is not None
        first = int(np.searchsorted(axis.bounds, stump.threshold, "right"))
        yes[0 if stump.threshold == -np.inf else first : axis.missing] = True
    elif isinstance(axis, CategoryAxis):
        slot = axis.missing if stump.category is None else axis.slot_of()[stump.category]
        yes[slot] = True
    return yes
