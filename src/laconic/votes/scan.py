"""Votes of decision stumps on rows that stay where they are.

Stumps see a row through the bin of each column, so that all their moments, in every fold and for
every class, come from one table: the weight of each pair of bins. One pass makes it. Held-out
scores of all the votes of a path come back from a second pass as histograms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.core.contract import ScannedTraining
from laconic.core.folds import HashedFolds
from laconic.data.row_keys import least_of, scanned_content_keys
from laconic.data.source import Block, Source
from laconic.data.tables.columns import Table
from laconic.data.value_tables import NumericTable, column_tables
from laconic.votes.columns import StumpLayout, mean_margins
from laconic.votes.criterion import MarginMoments
from laconic.votes.fit import FittedVote, HeldOut, fit_vote, logistic_of_margins
from laconic.votes.problem import Choice, Chosen, Counted, Listed, Problem, Program
from laconic.votes.tuning import LISTED, MOST_VALUES, SCORE_BINS
from laconic.votes.voters.base import Voters, column_order, in_order
from laconic.votes.voters.stumps import PreparedStumps, StumpVoters, stump_codes


@dataclass(frozen=True)
class Heaviest:
    """The largest weight of some rows; the sum of two is the larger one."""

    value: float

    def __add__(self, other: Heaviest) -> Heaviest:
        return max(self, other, key=lambda rows: rows.value)


class ScannedStumps:
    """Stumps laid out on a scan: their moments by fold, and scores of votes on held-out rows."""

    def __init__(
        self, voters: StumpVoters, rows: ScannedTraining, n_classes: int, folds: HashedFolds
    ) -> None:
        cuts, absent, order = stump_cuts(voters, rows, n_classes)
        self.laid_out = voters.laid_out(
            in_order(rows.table, order), [cuts[j] for j in order], [absent[j] for j in order]
        )
        self.layout: StumpLayout = self.laid_out.layout
        if self.layout.n_stumps > LISTED:
            raise ValueError(
                f"A scan weighs at most {LISTED} stumps and these columns make "
                f"{self.layout.n_stumps}; lower n_thresholds of StumpVoters, or leave columns of "
                "many categories out with scan(features=)."
            )
        self.folds = folds
        cuts, layout = self.laid_out.cuts, self.layout

        def recode(X: Table) -> NDArray[Any]:
            X = in_order(X, order)
            codes = stump_codes(X, cuts, layout)
            return np.column_stack([codes, folds.of(X).astype(codes.dtype)])

        self.source: Source = rows.recoded("stumps", recode)
        self._count(n_classes)

    def _count(self, n_classes: int) -> None:
        start, n_folds, width = self.layout.start, self.folds.count, self.layout.n_bins

        def of_block(block: Block) -> tuple[Floats, Floats, Heaviest]:
            from laconic.votes._numba import count_pairs

            pairs = np.zeros((n_folds, width, width))
            singles = np.zeros((n_folds, n_classes, width))
            y, weight = _labels(block)
            count_pairs(*_codes_and_fold(block, start), y, weight, pairs, singles)
            return pairs, singles, Heaviest(float(weight.max(initial=0.0)))

        self.pairs, self.singles, heaviest = self.source.sum(of_block)
        self.heaviest = heaviest.value

    def moments(self, k: int, without: int | None = None) -> StumpMoments:
        """Moments of all stumps for class k against the rest, of the rows outside a fold."""
        used = [f for f in range(self.folds.count) if f != without]
        pairs, singles = self.pairs[used[0]].copy(), self.singles[used[0]].copy()
        for f in used[1:]:
            pairs += self.pairs[f]
            singles += self.singles[f]
        return StumpMoments.of(self.layout, pairs, singles, k)

    def held_out(self, k: int, paths: Sequence[Sequence[tuple[Ints, Floats]]]) -> Scores:
        """Histograms of the scores of votes, ``paths[f]`` on the rows of fold f."""
        steps, start = min(map(len, paths)), self.layout.start
        tables = np.zeros((len(paths), self.layout.n_bins, steps))
        for f, path in enumerate(paths):
            for t, (columns, weights) in enumerate(path[:steps]):
                tables[f, :, t] = self.layout.table(columns, weights)[0]
        reach = np.full(steps, np.finfo(np.float64).tiny)
        for f in range(len(paths)):
            # the most that each feature can add, which for votes that cancel is far below Σ|w|
            most = np.maximum.reduceat(np.abs(tables[f]), start[:-1], axis=0).sum(axis=0)
            reach = np.maximum(reach, most)

        def of_block(block: Block) -> Floats:
            from laconic.votes._numba import count_scores

            out = np.zeros((steps, 2, 2, SCORE_BINS))
            y, weight = _labels(block)
            side = (y == k).astype(np.int64)
            count_scores(*_codes_and_fold(block, start), side, weight, tables, reach, out)
            return out

        return Scores(self.source.sum(of_block))


def _codes_and_fold(block: Block, start: Ints) -> tuple[NDArray[Any], Ints, Ints]:
    codes = np.ascontiguousarray(block.X)
    return codes[:, :-1].copy(), start, codes[:, -1].astype(np.int64)


def _labels(block: Block) -> tuple[Ints, Floats]:
    assert block.y is not None
    assert block.weight is not None
    return block.y, block.weight


@dataclass(frozen=True)
class Scores:
    """Held-out scores by step, side (0: the rest, 1: the class) and bin."""

    counts: Floats

    @property
    def n_steps(self) -> int:
        return len(self.counts)

    def of(self, step: int) -> HeldOut:
        """Mean scores, sides and weights of the bins that rows fall into."""
        weight, total = self.counts[step, :, 0], self.counts[step, :, 1]
        side, place = np.nonzero(weight)
        held = weight[side, place]
        return HeldOut(total[side, place] / held, np.where(side == 1, 1.0, -1.0), held)

    def loss(self, step: int) -> float:
        held = self.of(step)
        return logistic_of_margins(held.votes * held.sides, held.weight)


@dataclass(frozen=True)
class StumpMoments:
    """Distinct stumps, the weight of the rows behind them, and how many sides these have."""

    voters: Listed
    total: float
    n_sides: int

    @staticmethod
    def of(layout: StumpLayout, pairs: Floats, singles: Floats, k: int) -> StumpMoments:
        total = float(singles[:, layout.start[0] : layout.start[1]].sum())
        whole = pairs + np.tril(pairs, -1).T
        yes = _answers(layout)
        no = _own_bins(layout) - yes
        both = yes @ whole @ yes.T + no @ whole @ no.T
        apart = yes @ whole @ no.T + no @ whole @ yes.T
        # sums of weights that are positive: zero only where no row is, so that copies are exact
        same = (apart == 0.0) | (both == 0.0)
        leader = same.argmax(axis=1)
        ids = np.flatnonzero(leader == np.arange(len(leader)))
        edges = layout.edges(2.0 * singles[k] - singles.sum(axis=0))
        own = float(singles[k, layout.start[0] : layout.start[1]].sum())
        voters = Listed(
            ids,
            np.bincount(leader, minlength=len(leader))[ids].astype(np.float64),
            mean_margins(edges[ids], total),
            1.0 - 2.0 * apart[np.ix_(ids, ids)] / total,
        )
        return StumpMoments(voters, total, int(own > 0.0) + int(own < total))

    def problem(self, sides: str, heaviest: float) -> Problem:
        return Problem(sides, None, self.voters, np.zeros(0), Counted.of(self.total, heaviest))


def _own_bins(layout: StumpLayout) -> Floats:
    """(n_stumps, n_bins): 1 at the bins of the stump's own feature."""
    out = np.zeros((layout.n_stumps, layout.n_bins))
    for s, j in enumerate(layout.feature(np.arange(layout.n_stumps))):
        out[s, layout.start[j] : layout.start[j + 1]] = 1.0
    return out


def _answers(layout: StumpLayout) -> Floats:
    """(n_stumps, n_bins): 1 at the bins where the stump says yes."""
    out = np.zeros((layout.n_stumps, layout.n_bins))
    for s, j in enumerate(layout.feature(np.arange(layout.n_stumps))):
        low, high, b = layout.start[j], layout.start[j + 1], s - layout.first[j]
        if layout.ordered[j]:
            out[s, low + b + 1 : high] = 1.0
        else:
            out[s, low + b] = 1.0
    return out


class ScannedRows:
    """The rows of a scan as judges of votes of one class against the rest."""

    assumption = PreparedStumps.assumption

    def __init__(self, stumps: ScannedStumps, program: Program, k: int) -> None:
        self.stumps, self.k = stumps, k
        self.problem = stumps.moments(k).problem(program.sides, stumps.heaviest)
        self.scores: Scores | None = None

    def pick(self, columns: Ints, signs: Floats) -> Voters:
        return self.stumps.laid_out.pick(columns, signs, self.k)

    def moments(self, chosen: Chosen, q: Floats) -> tuple[MarginMoments, float]:
        voters = self.problem.listed
        assert voters is not None
        place = np.searchsorted(voters.ids, chosen.columns)
        second = float(q @ voters.gram[np.ix_(place, place)] @ q)
        moments = MarginMoments(float(voters.first[place] @ q), second)
        return moments, moments.c_bound()

    def _held_out(self, votes_of: Callable[[Problem], list[Vote]], steps: int) -> Scores:
        """Scores of votes fitted without each fold; none where it leaves one side or no hope."""
        paths = []
        for f in range(self.stumps.folds.count):
            moments = self.stumps.moments(self.k, without=f)
            part = moments.problem(self.problem.sides, self.stumps.heaviest)
            hope = moments.n_sides == 2 and not part.hopeless
            paths.append(votes_of(part) if hope else [_NOTHING] * steps)
        return self.stumps.held_out(self.k, paths)

    def choose(self, program: Program) -> Choice:
        places = program.places(self.problem)
        self.scores = self._held_out(
            lambda part: [part.used(found) for found in program.follow(part, places)], len(places)
        )
        reached = self.scores.n_steps
        losses = [self.scores.loss(t) for t in range(reached)]
        place = int(np.argmin(losses))
        curve = {"share": list(places[:reached]), "held_out_loss": losses}
        return Choice(place, losses[place], None, curve)

    def held_out(self, program: Program, chosen: Chosen) -> HeldOut:
        if self.scores is not None:
            held = self.scores.of(chosen.choice.place)
        else:
            scores = self._held_out(lambda part: [part.used(program.like(part, chosen))], 1)
            held = scores.of(0)
        scale = 1.0 if program.scaled else chosen.scale
        return HeldOut(held.votes / scale, held.sides, held.weight)


Vote = tuple[Ints, Floats]
_NOTHING: Vote = (np.zeros(0, dtype=np.int64), np.zeros(0))


def fit_scanned_votes(
    voters: StumpVoters,
    rows: ScannedTraining,
    n_classes: int,
    classes: Sequence[int],
    program: Program,
    folds: HashedFolds,
    **how: Any,
) -> list[FittedVote]:
    """One vote for each of ``classes``, against the rest."""
    stumps = ScannedStumps(voters, rows, n_classes, folds)
    return [fit_vote(ScannedRows(stumps, program, k), program, **how) for k in classes]


def stump_cuts(
    voters: StumpVoters, rows: ScannedTraining, n_classes: int
) -> tuple[list[Floats], list[bool], Ints]:
    """Thresholds of every column, whether it has missing values, and the order of the columns."""
    voters.check()
    missing, names = set(rows.missing), rows.table.names
    absent = [j in missing for j in range(len(names))]
    sizes = [
        len(texts or ()) if kind == "categorical" else None
        for kind, texts in zip(rows.table.kinds, rows.table.categories, strict=True)
    ]
    if voters.thresholds == "equal":  # one pass for both
        ends, least = zip(*rows.source.map(lambda b: (_ends(b), least_of(b))), strict=True)
        seen: Any = [_ends_of(np.concatenate(column)) for column in zip(*ends, strict=True)]
    else:
        least = tuple(rows.source.map(least_of))
        seen = column_tables(rows.source, sizes, n_classes, MOST_VALUES)
    order = column_order(scanned_content_keys(least, rows.table), names)
    cuts = []
    for size, gone, found in zip(sizes, absent, seen, strict=True):
        if size is not None:
            cuts.append(np.zeros(0))
            continue
        if isinstance(found, NumericTable):
            values, weight = found.values, found.weights.sum(axis=1)
        else:
            values, weight = found, np.ones(len(found))
        lead = [np.nan] if gone else []
        cuts.append(voters.cuts(np.append(values, lead), np.append(weight, np.ones(len(lead)))))
    return cuts, absent, order


def _ends(block: Block) -> list[Floats]:
    columns = (block.X.column(j) for j in range(len(block.X.names)))
    return [_ends_of(values.astype(np.float64, copy=False)) for values in columns]


def _ends_of(values: Floats) -> Floats:
    """Least and largest of some values, if there are any."""
    held = values[~np.isnan(values)]
    return np.array([held.min(), held.max()]) if len(held) else np.zeros(0)
