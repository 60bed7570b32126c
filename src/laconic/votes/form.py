"""The fitted form of a vote of stumps: one table for each column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.core.forms import AdditiveScore, SlotTerm, plain_label
from laconic.data.tables.axes import Axis, CategoryAxis, IntervalAxis
from laconic.data.tables.columns import Schema
from laconic.votes.fit import FittedVote, calibration_of, trust_of
from laconic.votes.voters.stumps import PickedStumps, Stump


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
