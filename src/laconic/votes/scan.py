"""Votes of decision stumps on rows that stay where they are.

Stumps see a row through the bin of each column, so that all their moments, in every fold and for
every class, come from one table: the weight of each pair of bins. One pass makes it. Held-out
scores of all the votes of a path come back from a second pass as histograms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.core.contract import ScannedTraining
from laconic.core.solution import Solution
from laconic.data.row_keys import row_keys
from laconic.data.source import Block, Source
from laconic.data.tables.columns import Table
from laconic.data.value_tables import NumericTable, column_tables
from laconic.votes.criterion import MarginMoments
from laconic.votes.fit import FittedVote, calibration, gathered
from laconic.votes.nnls import box_vote, least_squares_vote
from laconic.votes.problem import LISTED, Problem, Program, logistic_of_margins
from laconic.votes.voters import PreparedStumps, StumpLayout, StumpVoters, stump_codes

SCORE_BINS = 4096
"""Bins of held-out scores; each keeps the mean of the scores in it."""
MOST_VALUES = 2**15


@dataclass(frozen=True)
class ScanFolds:
    """Folds by a hash of the row's values; one fold holds out nothing."""

    count: int
    seed: int

    def of(self, X: Table) -> Ints:
        if self.count == 1:
            return np.zeros(len(X), dtype=np.int64)
        return np.asarray(row_keys(X, self.seed) % np.uint64(self.count)).astype(np.int64)


class ScannedStumps:
    """Stumps laid out on a scan: their moments by fold, and scores of votes on held-out rows."""

    out_of_bag = False
    sides: str | None = None
    spread = 0.0
    assumption = PreparedStumps.assumption

    def __init__(
        self, voters: StumpVoters, rows: ScannedTraining, n_classes: int, folds: ScanFolds
    ) -> None:
        cuts, absent = stump_cuts(voters, rows, n_classes)
        self.laid_out = voters.laid_out(rows.table, cuts, absent)
        self.layout: StumpLayout = self.laid_out.layout
        if self.layout.n_stumps > LISTED:
            raise ValueError(
                f"A scan weighs at most {LISTED} stumps and these columns make "
                f"{self.layout.n_stumps}; lower n_thresholds of StumpVoters, or leave columns of "
                "many categories out with scan(features=)."
            )
        self.folds = folds
        table_cuts = self.laid_out.cuts
        layout = self.layout

        def recode(X: Table) -> NDArray[Any]:
            codes = stump_codes(X, table_cuts, layout)
            return np.column_stack([codes, folds.of(X).astype(codes.dtype)])

        self.source: Source = rows.recoded("stumps", recode)
        self._count(n_classes)

    def _count(self, n_classes: int) -> None:
        start, n_folds = self.layout.start, self.folds.count
        width = int(start[-1])

        def of_block(block: Block) -> tuple[Floats, Floats]:
            from laconic.votes._numba import count_pairs

            pairs = np.zeros((n_folds, width, width))
            singles = np.zeros((n_folds, n_classes, width))
            codes, fold = _codes_and_fold(block)
            count_pairs(codes, start, fold, block.y, block.weight, pairs, singles)
            return pairs, singles

        self.pairs, self.singles = self.source.sum(of_block)

    def pick(self, columns: Ints, signs: Floats, y: Any, k: int) -> Any:
        return self.laid_out.pick(columns, signs, y, k)

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
        steps, width = min(map(len, paths)), int(self.layout.start[-1])
        tables = np.zeros((len(paths), width, steps))
        for f, path in enumerate(paths):
            for t, (columns, weights) in enumerate(path[:steps]):
                tables[f, :, t] = self.layout.table(columns, weights)[0]
        start = self.layout.start
        reach = np.full(steps, np.finfo(np.float64).tiny)
        for f in range(len(paths)):
            # the most that each feature can add, which for votes that cancel is far below Σ|w|
            most = np.maximum.reduceat(np.abs(tables[f]), start[:-1], axis=0).sum(axis=0)
            reach = np.maximum(reach, most)

        def of_block(block: Block) -> Floats:
            from laconic.votes._numba import count_scores

            out = np.zeros((steps, 2, 2, SCORE_BINS))
            codes, fold = _codes_and_fold(block)
            side = (block.y == k).astype(np.int64)
            count_scores(codes, start, fold, side, block.weight, tables, reach, out)
            return out

        return Scores(self.source.sum(of_block))


def _codes_and_fold(block: Block) -> tuple[NDArray[Any], Ints]:
    codes = np.ascontiguousarray(block.X)
    return codes[:, :-1].copy(), codes[:, -1].astype(np.int64)


@dataclass(frozen=True)
class Scores:
    """Held-out scores by step, side (0: the rest, 1: the class) and bin."""

    counts: Floats

    @property
    def n_steps(self) -> int:
        return len(self.counts)

    def of(self, step: int) -> tuple[Floats, Floats, Floats]:
        """Mean scores, sides (-1, 1) and weights of the bins that rows fall into."""
        weight, total = self.counts[step, :, 0], self.counts[step, :, 1]
        side, place = np.nonzero(weight)
        held = weight[side, place]
        return total[side, place] / held, np.where(side == 1, 1.0, -1.0), held

    def loss(self, step: int) -> float:
        scores, y, weight = self.of(step)
        return logistic_of_margins(scores * y, weight)


@dataclass(frozen=True)
class StumpMoments:
    """Mean margins and mean products of distinct stumps; ``copies`` says how many each is."""

    ids: Ints
    copies: Floats
    first: Floats
    gram: Floats
    total: float
    sides: int

    @staticmethod
    def of(layout: StumpLayout, pairs: Floats, singles: Floats, k: int) -> StumpMoments:
        from laconic.votes._numba import stump_edges

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
        edges = np.empty(layout.n_stumps)
        signed = 2.0 * singles[k] - singles.sum(axis=0)
        stump_edges(signed, layout.start, layout.first, layout.ordered, edges)
        own = float(singles[k, layout.start[0] : layout.start[1]].sum())
        return StumpMoments(
            ids,
            np.bincount(leader, minlength=len(leader))[ids].astype(np.float64),
            edges[ids] / total,
            1.0 - 2.0 * apart[np.ix_(ids, ids)] / total,
            total,
            int(own > 0.0) + int(own < total),
        )


def _own_bins(layout: StumpLayout) -> Floats:
    """(n_stumps, n_bins): 1 at the bins of the stump's own feature."""
    out = np.zeros((layout.n_stumps, int(layout.start[-1])))
    for s, j in enumerate(layout.feature(np.arange(layout.n_stumps))):
        out[s, layout.start[j] : layout.start[j + 1]] = 1.0
    return out


def _answers(layout: StumpLayout) -> Floats:
    """(n_stumps, n_bins): 1 at the bins where the stump says yes."""
    out = np.zeros((layout.n_stumps, int(layout.start[-1])))
    for s, j in enumerate(layout.feature(np.arange(layout.n_stumps))):
        low, high, b = layout.start[j], layout.start[j + 1], s - layout.first[j]
        if layout.ordered[j]:
            out[s, low + b + 1 : high] = 1.0
        else:
            out[s, low + b] = 1.0
    return out


class ScannedProblem(Problem):
    """One class against the rest, from the moments of a scan."""

    def __init__(self, prepared: ScannedStumps, k: int, program: Program, moments: StumpMoments):
        self.prepared, self.k, self.program = prepared, k, program
        self.y = self.weight = np.zeros(0)  # no vector of rows is held
        self.overlap: int | None = max(1, round(moments.total))
        self.columns = None
        self.listed = True
        self.ids, self.copies = moments.ids, moments.copies
        self.first, self.gram = moments.first, moments.gram
        self.scores: Scores | None = None
        self.place = 0

    def _parts(self) -> list[ScannedProblem | None]:
        """The problem without each fold, None where it has one side only or no hope."""
        parts: list[ScannedProblem | None] = []
        for f in range(self.prepared.folds.count):
            moments = self.prepared.moments(self.k, without=f)
            part = ScannedProblem(self.prepared, self.k, self.program, moments)
            parts.append(None if moments.sides < 2 or part.hopeless else part)
        return parts

    def _by_folds(self, folds: Any) -> tuple[int, None, dict[str, list[float]]]:
        steps = len(self.path)
        paths = []
        for part in self._parts():
            if part is None:
                paths.append([_NOTHING] * steps)
            else:
                paths.append([part.used_columns(found) for found in self._path(part)])
        self.scores = self.prepared.held_out(self.k, paths)
        reached = self.scores.n_steps
        losses = [self.scores.loss(t) for t in range(reached)]
        self.place = int(np.argmin(losses))
        return self.place, None, {"share": list(self.path[:reached]), "held_out_loss": losses}

    def like(self, found: Solution, mu_max: float) -> Solution:
        """The vote of these moments at the penalty, or the share of mu, of another one."""
        program = self.program
        if program.boxed:
            share = min(1.0, found.details.get("mean_margin", 0.5) / (mu_max or 1.0))
            return box_vote(self.gram, self.first, share * self.mu_max(), self.size)
        share = float(found.details.get("penalty", 0.0)) / (mu_max or 1.0)
        return least_squares_vote(
            self.gram,
            self.first,
            sides=program.sides,
            penalty=max(share, 0.0) * self.mu_max(),
            max_voters=program.max_voters,
        )

    def held_out_scores(self, found: Solution, mu_max: float) -> tuple[Floats, Floats, Floats]:
        """Scores, sides and weights of votes fitted without the row, as the final one is."""
        if self.scores is not None:
            return self.scores.of(self.place)
        paths = []
        for part in self._parts():
            vote = _NOTHING if part is None else part.used_columns(part.like(found, mu_max))
            paths.append([vote])
        return self.prepared.held_out(self.k, paths).of(0)


_NOTHING = (np.zeros(0, dtype=np.int64), np.zeros(0))


def fit_scanned_votes(
    voters: StumpVoters,
    rows: ScannedTraining,
    n_classes: int,
    classes: Sequence[int],
    program: Program,
    folds: ScanFolds,
    *,
    calibrate: bool,
    who: str,
) -> list[FittedVote]:
    """One vote for each of ``classes``, against the rest."""
    prepared = ScannedStumps(voters, rows, n_classes, folds)
    votes = []
    for k in classes:
        problem = ScannedProblem(prepared, k, program, prepared.moments(k))
        chosen = problem.solve([])
        if program.max_voters is None and program.stop is None:
            chosen.solution.warn_if_short(who, "raise tol")
        total = 1.0 if program.boxed else float(np.abs(chosen.weights).sum()) or 1.0
        q = chosen.weights / total
        place = np.searchsorted(problem.ids, chosen.columns)
        second = float(q @ problem.gram[np.ix_(place, place)] @ q)
        moments = MarginMoments(float(problem.first[place] @ q), second)
        line: tuple[float | None, float] = (None, 0.0)
        if calibrate:
            scores, y, weight = problem.held_out_scores(chosen.solution, chosen.mu_max)
            line = calibration(y * scores, y, weight, total)
        votes.append(gathered(problem, chosen, q, moments, moments.c_bound(), line))
    return votes


def stump_cuts(
    voters: StumpVoters, rows: ScannedTraining, n_classes: int
) -> tuple[list[Floats], list[bool]]:
    """Thresholds of every column, and whether it has missing values: one pass."""
    voters.check()
    missing = set(rows.missing)
    absent = [j in missing for j in range(len(rows.table.names))]
    sizes = [
        len(texts or ()) if kind == "categorical" else None
        for kind, texts in zip(rows.table.kinds, rows.table.categories, strict=True)
    ]
    if voters.thresholds == "equal":
        seen = rows.source.sum(_ends)
    else:
        seen = column_tables(rows.source, sizes, n_classes, MOST_VALUES)
    cuts = []
    for size, gone, found in zip(sizes, absent, seen, strict=True):
        if size is not None:
            cuts.append(np.zeros(0))
            continue
        if isinstance(found, NumericTable):
            values, weight = found.values, found.weights.sum(axis=1)
        else:
            values, weight = found.values, np.ones(len(found.values))
        lead = [np.nan] if gone else []
        cuts.append(voters.cuts(np.append(values, lead), np.append(weight, np.ones(len(lead)))))
    return cuts, absent


class _Ends:
    """Least and largest value of a column; the sum of two spans both."""

    def __init__(self, values: Floats) -> None:
        self.values = values

    def __add__(self, other: _Ends) -> _Ends:
        return _Ends(_span(np.concatenate([self.values, other.values])))


def _span(values: NDArray[Any]) -> Floats:
    held = values[~np.isnan(values)]
    return np.array([held.min(), held.max()]) if len(held) else np.zeros(0)


def _ends(block: Block) -> tuple[_Ends, ...]:
    columns = (block.X.column(j) for j in range(len(block.X.names)))
    return tuple(_Ends(_span(values.astype(np.float64, copy=False))) for values in columns)
