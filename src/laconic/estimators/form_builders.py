"""Fitted forms of linear scores on mixed columns, naive Bayes on parts, and votes of stumps.

Each builder turns a model's own numbers into an :class:`~laconic.estimators.forms.AdditiveScore`;
its probabilities agree with the model's up to the order of a sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.data.axes import Axis, CategoryAxis, IntervalAxis
from laconic.data.columns import Schema
from laconic.estimators.bayes_score import BayesScore
from laconic.estimators.forms import AdditiveScore, LineTerm, SlotTerm, Term, plain_label
from laconic.estimators.links import Link
from laconic.estimators.partition_cells import Cells, Grid, Groups, Intervals, Rules, Side
from laconic.estimators.rule_terms import RulesTerm
from laconic.estimators.vote_fit import FittedVote
from laconic.estimators.voters import PickedStumps, Stump

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class NoFormError(ValueError):
    """The model cannot be written as a sum of terms; the sentence says why."""


def slots_of_side(side: Side) -> tuple[Axis, Ints]:
    """The axis of intervals or groups, and the part that each of its slots belongs to."""
    if isinstance(side, Intervals):
        # missing is its own part, the first, or below every number: part 0 either way
        parts = np.append(np.arange(side.first, side.n_parts), 0)
        return IntervalAxis(np.asarray(side.bounds, dtype=np.float64), side.special), parts
    members: list[list[str]] = [[] for _ in range(side.n_parts)]
    for text, part in zip(side.categories, side.part_of[:-1], strict=True):
        members[part].append(text)
    parts = np.append(np.arange(side.n_parts), [side.default, int(side.part_of[-1])])
    return CategoryAxis(tuple(tuple(texts) for texts in members)), parts


def cells_term(columns: Sequence[str], cells: Cells, values: Floats) -> Term:
    """The term that reads ``values[part]`` of a partition; ``values`` is (parts, scores)."""
    if isinstance(cells, Intervals | Groups):
        axis, parts = slots_of_side(cells)
        return SlotTerm((columns[0],), (axis,), values[parts])
    if isinstance(cells, Grid):
        (first, rows), (second, across) = (slots_of_side(side) for side in cells.sides)
        own = rows[:, None] * cells.shape[1] + across[None, :]
        return SlotTerm((columns[0], columns[1]), (first, second), values[own])
    return _rules_term(columns, cells, values)


def _rules_term(columns: Sequence[str], cells: Rules, values: Floats) -> RulesTerm:
    read = [slots_of_side(side) for side in cells.ladders]
    leaves = np.where((cells.column < 0)[:, None], values[np.maximum(cells.part, 0)], 0.0)
    return RulesTerm(
        tuple(columns),
        tuple(axis for axis, _ in read),
        tuple(parts for _, parts in read),
        cells.column,
        cells.threshold,
        cells.left,
        cells.right,
        leaves,
    )


def bayes_form(score: BayesScore, classes: NDArray[Any], total: float) -> AdditiveScore:
    """Weighted naive Bayes: one table by variable, centred on the training rows."""
    baseline = score.baseline()
    binary = len(classes) == 2
    terms = []
    for k, partition in enumerate(score.partitions):
        effect = score.effect(k)
        values = effect[:, 1:] - effect[:, :1] if binary else effect
        terms.append(cells_term(partition.column_names, partition.cells, values))
    return AdditiveScore(
        tuple(plain_label(c) for c in classes),
        baseline[1:] - baseline[:1] if binary else baseline,
        tuple(terms),
        "logit" if binary else "softmax",
        smoothing=0.5 / (total + 1.0),
    )


def design_form(
    columns: Sequence[Any],
    schema: Schema,
    coef: Floats,
    intercept: Floats,
    classes: NDArray[Any],
    link: Link,
) -> AdditiveScore:
    """A linear score on the design matrix of :func:`laconic.estimators.plain_logistic.design`."""
    terms: list[Term] = []
    start = 0
    for name, texts, column in zip(schema.names, schema.categories, columns, strict=True):
        own = coef[:, start : start + column.width].T
        start += column.width
        if not own.any():
            continue
        silent = np.zeros((1, own.shape[1]))
        missing = own[-1:] if column.has_missing else silent
        if column.kind == "categorical":
            axis = CategoryAxis(tuple((text,) for text in texts or ()))
            levels = own[: column.n_levels]
            terms.append(SlotTerm((name,), (axis,), np.concatenate([levels, silent, missing])))
        else:
            terms.append(LineTerm(name, own[0] / column.scale, column.centre, missing[0]))
    labels = tuple(plain_label(c) for c in classes)
    return AdditiveScore(labels, np.array(intercept), tuple(terms), link)


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
    by_column: dict[int, list[tuple[int, float, Stump]]] = {}
    for k, vote in enumerate(votes):
        for weight, stump in zip(vote.weights * trust[k], vote.voters.stumps, strict=True):
            if stump.column < 0:
                intercept[k] += weight if stump.holds else -weight
            else:
                by_column.setdefault(stump.column, []).append((k, float(weight), stump))
    terms = [
        _stump_term(schema.names[j], schema.categories[j], said, n_scores)
        for j, said in sorted(by_column.items())
    ]
    labels = tuple(plain_label(c) for c in classes)
    return AdditiveScore(labels, intercept, tuple(terms), "vote", calibration=calibration_of(votes))


def trust_of(votes: Sequence[FittedVote]) -> Floats:
    """Factors close to one: few voters tie often, and the class whose voters err less wins."""
    if len(votes) == 1:
        return np.ones(1)
    return np.array([1.0 - 1e-9 * vote.moments.gibbs_risk for vote in votes])


def calibration_of(votes: Sequence[FittedVote]) -> tuple[tuple[float, float], ...] | None:
    """Slope and intercept of each vote's log-odds, where they were fitted."""
    if votes[0].slope is None:
        return None
    return tuple((float(vote.slope or 0.0), float(vote.intercept)) for vote in votes)


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
