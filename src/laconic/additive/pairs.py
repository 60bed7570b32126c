"""From rows to the structure of a sparse additive model: smooth single terms, then their pairs.

Cross-validation repeats all of :func:`build` in every fold: columns and pairs are screened again,
weights learned again, so that held-out rows know nothing of the choice they are used for.

Pairs are screened by second-order gains from two-way tables at the fit of the single terms. Those
with enough evidence of their own are *strong*. Hundreds of pairs can each show too little to be
sure of and still matter as a whole: the next best are *weak* and share one smoothing parameter.
Choosing the best looking ones first would make any evidence for them too good; the evidence of all
of them at once (:func:`together_smoothing`) does not have that fault.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, solve_triangular

from laconic._typing import Floats, Ints
from laconic.additive import tuning
from laconic.additive.criterion import (
    curvature_blocks,
    largest_group_penalty,
    loss_slopes,
    slopes_by_term,
)
from laconic.additive.solver import solve_additive
from laconic.additive.structure import (
    Smoothness,
    Stage,
    Structure,
    Task,
    adaptive_weights,
    extended_to,
    roughness_units,
    term_norms,
)
from laconic.additive.terms import PairGrids, Term, TermSet


def build(task: Task, singles: TermSet, pairs: PairRule, guess: Sequence[Stage] = ()) -> Structure:
    """Terms, smoothness and group weights from the rows of ``singles``.

    ``guess`` are the stages of a structure on (nearly) the same rows: where the search starts.
    """
    fixed = task.plan.smoothness
    guess = guess if fixed is None else ()
    first = Smoothness.start(singles.subset(wide_screen(task, singles)), fixed, task.few_rows)
    stage = task.guided_fit(first, guess[0]) if guess else task.evidence_fit(first)
    stages = [stage]
    found = pairs.candidates(task, singles, stage)
    if found.strong:
        terms = stage.smoothness.terms.extended(found.strong)
        first = stage.smoothness.extended(terms, fixed, found.smoothing)
        if len(guess) > 1:
            stage = task.guided_fit(first, guess[1])
        else:
            start = extended_to(stage.point, terms)
            stage = task.evidence_fit(first, start, tuning.PAIR_STEPS)
        stages.append(stage)
    terms = stage.smoothness.terms.extended(found.weak)
    smooth, point = stage.smoothness.extended(terms, fixed), extended_to(stage.point, terms)
    weak = np.arange(len(terms.terms)) >= len(terms.terms) - len(found.weak)
    weights = adaptive_weights(terms, point)
    return Structure(terms, smooth, weights, point, weak, tuple(stages), found.together)


def wide_screen(task: Task, singles: TermSet) -> list[int]:
    """Terms to keep: all of them, or those that enter first on a path with equal weights."""
    seen = np.flatnonzero(singles.rank > 0)
    if len(seen) <= tuning.WIDE:
        return [int(t) for t in seen]
    smooth = Smoothness.start(singles, tuning.WIDE_SMOOTHING)
    problem = task.plain.problem(singles, smooth.diagonal())
    ones = np.ones(len(singles.terms))
    top = largest_group_penalty(problem, ones)
    point, kept = None, seen[:0]
    for share in tuning.WIDE_SHARES:
        at = replace(problem, group=share * top * ones)
        steps = tuning.WIDE_STEPS
        point = solve_additive(at, point, tol=tuning.WIDE_TOL, max_iter=steps).point
        norms = problem.penalty.norms(point.coordinates)
        kept = np.flatnonzero(norms > 0)
        if len(kept) > tuning.WIDE_KEPT:
            # one step may let hundreds enter: how many it was must not depend on the fold
            kept = np.sort(np.argsort(-norms, kind="stable")[: tuning.WIDE_KEPT])
            break
    return [int(t) for t in kept]


@dataclass(frozen=True)
class Candidates:
    """Strong pairs with first guesses of their smoothing parameters, weak pairs, and the parameter
    that all pairs ``together`` ask for."""

    strong: tuple[Term, ...] = ()
    smoothing: Floats | None = None
    weak: tuple[Term, ...] = ()
    together: float = np.inf


@dataclass(frozen=True)
class PairRule:
    """Which pairs become terms: the ``most`` with the largest gain at most.

    All of them are strong if ``forced``, else those whose Bayes factor exceeds the number of pairs
    that were looked at, to the power ``PAIR_EVIDENCE``. Strong pairs have their own smoothness. The
    others, unless ``forced`` or ``alone``, are weak. ``together`` is their parameter where it is
    known; None lets few rows choose it by evidence.
    """

    grids: PairGrids
    most: int
    forced: bool = False
    alone: bool = False
    together: float | None = None

    def candidates(self, task: Task, singles: TermSet, stage: Stage) -> Candidates:
        """From a fit of the single terms."""
        if self.most == 0:
            return Candidates()
        slopes, curves = _informed_slopes(task, stage)
        columns = self._columns(task, stage)
        pairs, gains = screen_pairs(singles, columns, slopes, curves)
        allowed = [k for k, pair in enumerate(pairs) if pair not in task.plan.forbidden]
        pairs, gains = [pairs[k] for k in allowed], gains[allowed]

        def factors(of: tuple[Term, ...]) -> Floats:
            return log_bayes_factors(singles.extended(of), len(singles.terms), slopes, curves)

        if self.forced:
            more = self.grids(pairs[: int((gains[: self.most] > 0).sum())])
            return Candidates(more, best_smoothing(factors(more)))
        every = self._every(singles, columns, len(pairs), float(task.weight.sum()))
        together = self.together
        if together is None:
            plan = task.plan
            asked = plan.smoothness is None and not (every or self.alone or any(plan.signs))
            given = stage.smoothness, slopes, curves, plan.forbidden
            together = together_smoothing(*given) if asked else np.inf
        most = self.most if together == np.inf else tuning.MOST_CANDIDATES
        more = self.grids(pairs if every else pairs[: int((gains[:most] > 0).sum())])
        if together < np.inf:
            most = tuning.TOGETHER_PAIRS * len(stage.smoothness.terms.terms)
            more = largest_beside_all(task, stage, more, together, most)
        table = factors(more)
        needed = tuning.PAIR_EVIDENCE * np.log(max(1, len(pairs)))
        strong = table.max(axis=1, initial=-np.inf) > needed
        weak = ~strong & np.isfinite(table).all(axis=1) & (not self.alone)
        parts = tuple(compress(more, strong)), tuple(compress(more, weak))
        return Candidates(parts[0], best_smoothing(table[strong]), parts[1], together)

    @staticmethod
    def _columns(task: Task, stage: Stage) -> Ints:
        """Columns without a sign, those with the largest spread if they are very many."""
        base = stage.smoothness.terms
        norms = term_norms(base, stage.point)
        free = [t for t, term in enumerate(base.terms) if task.plan.sign_of(term.columns) == 0]
        best = sorted(free, key=lambda t: -norms[t])[: tuning.PAIR_COLUMNS]
        return np.array(sorted(base.terms[t].columns[0] for t in best), dtype=np.int64)

    def _every(self, singles: TermSet, columns: Ints, n_pairs: int, total_weight: float) -> bool:
        """So few pairs of so few cells that the rows can tell all of them at once."""
        if self.alone or n_pairs > tuning.FEW_PAIRS:
            return False
        most = [min(singles.coarse[j].axis.size - 1, singles.rank[j]) for j in columns]
        cells = np.array(most, dtype=float)
        freedom = cells.sum() + 0.5 * (cells.sum() ** 2 - (cells**2).sum())
        return bool(tuning.ROWS_A_NUMBER * freedom <= total_weight)


def _informed_slopes(task: Task, stage: Stage) -> tuple[Floats, Floats]:
    """Slopes and curvatures of the plain likelihood at the point, for evidence from one step.

    One row that is badly wrong has a large slope and hardly any curvature: averaged with the
    empirical information, the square of the slope, it cannot make a pair on its own.
    """
    terms, weight = stage.smoothness.terms, task.weight
    problem = task.plain.problem(terms, np.zeros(terms.n_coordinates))
    slopes, curves = loss_slopes(problem, stage.point.scores)
    return slopes, 0.5 * (curves + slopes**2 / np.where(weight > 0, weight, 1.0))


def coarse_cells(terms: TermSet, columns: Ints) -> NDArray[np.uint8]:
    """Nearest coarse slot of every row, for some columns."""
    out = np.empty((len(columns), terms.rows.n_rows), dtype=np.uint8)
    for k, j in enumerate(columns):
        slot, fraction = terms.rows.column(int(j))
        coarse = terms.coarse[j]
        place = coarse.base[slot] + coarse.step[slot] * fraction
        out[k] = coarse.index[slot] + (place > 0.5)
    return out


def screen_pairs(
    terms: TermSet, columns: Ints, slopes: Floats, curves: Floats
) -> tuple[list[tuple[int, int]], Floats]:
    """All pairs of ``columns`` by decreasing gain, and the gains."""
    if len(columns) < 2:
        return [], np.zeros(0)
    seen = np.flatnonzero(curves.any(axis=0))
    # row after row in memory, which ``[:, seen]`` is not
    cells = coarse_cells(terms, columns).take(seen, axis=1)
    sizes = np.array([terms.coarse[j].axis.size for j in columns], dtype=np.int64)
    gains = all_gains(cells, sizes, slopes.take(seen, axis=1), curves.take(seen, axis=1))
    first, second = np.triu_indices(len(columns), 1)
    order = np.argsort(-gains[first, second], kind="stable")
    first, second = first[order], second[order]
    pairs = [(int(columns[a]), int(columns[b])) for a, b in zip(first, second, strict=True)]
    return pairs, gains[first, second]


def all_gains(cells: NDArray[np.uint8], sizes: Ints, slopes: Floats, curves: Floats) -> Floats:
    """Gain of every pair a < b: table by table, or all tables in one product of few levels."""
    from laconic.additive._numba_terms import add_gains_of_tables, pair_gains

    ridge = tuning.GAIN_RIDGE
    gains = np.zeros((len(sizes), len(sizes)))
    start = (np.cumsum(sizes - 1) - (sizes - 1)).astype(np.int64)
    if float((sizes - 1).sum()) > tuning.FEW_LEVELS * len(sizes):
        pair_gains(cells, sizes, slopes, curves, ridge, gains)
        return gains
    is_level = np.ones((int((sizes - 1).sum()) + 1, cells.shape[1]))
    for j, size in enumerate(sizes):
        levels = np.arange(1, size)[:, None]
        is_level[start[j] : start[j] + size - 1] = cells[j] == levels
    for slope, curve in zip(slopes, curves, strict=True):
        G, H = (is_level * slope) @ is_level.T, (is_level * curve) @ is_level.T
        add_gains_of_tables(G, H, start, sizes, tuning.EMPTY_CELL * H[-1, -1], ridge, gains)
    return gains


def log_bayes_factors(terms: TermSet, first: int, slopes: Floats, curves: Floats) -> Floats:
    """log of (evidence with the term / evidence without it) at every one of ``PAIR_GRID``.

    One row for each term from ``first`` on; -inf for terms that no row sees.

    At the fit without them, with th the sums of slopes and H the curvatures of a term, a normal
    prior of precision l R gives (1/2) sum_j [th_j^2 / (h_j + l r_j) - log(1 + h_j / (l r_j))] with
    the diagonal of H, where the basis is nearly orthogonal. R is the roughness to the middle
    power: a pair may turn out to bend slowly or not.
    """
    grid = tuning.PAIR_GRID
    work = np.arange(first, len(terms.terms))
    out = np.full((len(work), len(grid)), -np.inf)
    if len(work) == 0:
        return out
    theta = slopes_by_term(terms, slopes, work)
    blocks = curvature_blocks(*terms.packed, work, curves)
    units = roughness_units(terms)
    for w, t in enumerate(work):
        r, s = int(terms.rank[t]), int(terms.start[t])
        if r == 0:
            continue
        h = np.diagonal(blocks.of(w, len(slopes), r), axis1=1, axis2=2)
        rough = (np.maximum(terms.rough[s : s + r], units[t]) / units[t]) ** tuning.WANDERING
        prior = grid[:, None, None] * rough
        value = theta[:, s : s + r] ** 2 / (h + prior) - np.log1p(h / prior)
        out[w] = 0.5 * value.sum(axis=(1, 2))
    return out


def best_smoothing(log_factors: Floats) -> Floats:
    """The smoothing parameter with the largest Bayes factor of every term."""
    return np.asarray(tuning.PAIR_GRID[log_factors.argmax(axis=1)])


def largest_beside_all(
    task: Task, stage: Stage, pairs: tuple[Term, ...], smoothing: float, most: int
) -> tuple[Term, ...]:
    """The ``most`` pairs with the largest spread in a fit of all of them at one common parameter.

    Beside all others a pair shows what only it tells; alone also what others tell better.
    """
    smooth = stage.smoothness
    n, d = len(pairs), len(smooth.terms.terms)
    if n <= most:
        return pairs
    terms = smooth.terms.extended(pairs)
    wider, weak = smooth.extended(terms, task.plan.smoothness), np.arange(d + n) >= d
    start = extended_to(stage.point, terms)
    now = Structure(terms, wider, np.ones(d + n), start, weak).with_weak(smoothing)
    found = task.solve(now, 0.0, now.point, tuning.GUESS_TOL).point
    largest = np.argsort(-term_norms(terms, found)[d:], kind="stable")[:most]
    return tuple(pairs[k] for k in np.sort(largest))


def together_smoothing(
    smooth: Smoothness, slopes: Floats, curves: Floats, forbidden: Collection[tuple[int, int]] = ()
) -> float:
    """Common smoothing parameter of the pairs; infinite when they are not worth it.

    ``slopes`` and ``curves``, (scores, rows), belong to the fit of single columns with ``smooth``.
    Only for one score and few rows, infinite elsewhere.
    """
    seen = np.flatnonzero(curves[0] > 0)
    if len(slopes) > 1 or len(seen) > tuning.TOGETHER_ROWS or len(smooth.terms.terms) < 2:
        return np.inf
    diagonal = smooth.diagonal()
    gains = log_bayes_factors_together(
        smooth.terms, diagonal, slopes[0, seen], curves[0, seen], seen, forbidden
    )
    best = int(np.argmax(gains))
    if gains[best] <= tuning.TOGETHER_MARGIN:
        return np.inf
    return tuning.TOGETHER_SHARE * tuning.TOGETHER_GRID[best]


def log_bayes_factors_together(
    terms: TermSet,
    diagonal: Floats,
    slope: Floats,
    curve: Floats,
    seen: Ints,
    forbidden: Collection[tuple[int, int]] = (),
) -> Floats:
    """log of (evidence with all pairs / evidence without), for every one of ``TOGETHER_GRID``.

    The prior of their sum is a product: with k_a the covariance of a smooth function of column a,
    unit variance for its linear part and for its smoothest bend,

        K = sum_{a < b} k_a k_b = (1/2) [(sum_a k_a)^2 - sum_a k_a^2]        (entry by entry),

    so that no pair has to be built. At the fit without pairs, with slopes s and curvatures h of
    the rows and K_0 the prior covariance of the terms in it, which may move, the log of the ratio
    of marginal likelihoods with and without pairs of covariance K / l is

        (1/2) s'(l K^-1 + (H^-1 + K_0)^-1)^-1 s - (1/2) log [det B_l / det B_0],
        B_l = I + H^(1/2) (K_0 + K / l) H^(1/2).
    """
    rows = dense_coordinates(terms)[:, seen]
    covariance = product_covariance(terms, rows, forbidden)
    root = np.sqrt(curve)
    own = (rows.T / diagonal) @ rows + tuning.FLAT
    without = np.eye(len(root)) + root[:, None] * own * root
    response, weighted = covariance @ slope, root[:, None] * covariance * root
    base = _log_determinant(cho_factor(without, lower=True)[0])
    out = np.empty(len(tuning.TOGETHER_GRID))
    for i, precision in enumerate(tuning.TOGETHER_GRID):
        factor = cho_factor(without + weighted / precision, lower=True, overwrite_a=True)[0]
        left = solve_triangular(factor, root * response / precision, lower=True)
        fit = slope @ response / precision - left @ left
        out[i] = 0.5 * (fit - _log_determinant(factor) + base)
    return out


def product_covariance(
    terms: TermSet, rows: Floats, forbidden: Collection[tuple[int, int]] = ()
) -> Floats:
    """Products of the covariances of two columns, summed over all pairs but the forbidden ones."""
    relative = terms.rough / roughness_units(terms)[terms.owner]
    relative = np.where(relative > 0, relative, 1.0)
    total = np.zeros((rows.shape[1], rows.shape[1]))
    squares = np.zeros_like(total)

    def part(t: int) -> Floats:
        own = (terms.owner == t) & (relative < tuning.ROUGHEST)
        return np.asarray((rows[own].T / relative[own]) @ rows[own])

    for t in range(len(terms.terms)):
        own = part(t)
        total += own
        squares += own * own
    for a, b in forbidden:
        ends = terms.place_of.get((a,)), terms.place_of.get((b,))
        if ends[0] is not None and ends[1] is not None:
            squares += 2.0 * part(ends[0]) * part(ends[1])
    return np.asarray(0.5 * (total * total - squares))


def dense_coordinates(terms: TermSet) -> Floats:
    """(coordinates, rows): what every coordinate adds to the score of every row."""
    from laconic.additive._numba_rows import coordinate_rows

    out = np.zeros((terms.n_coordinates, terms.rows.n_rows))
    coordinate_rows(*terms.packed, terms.owner, np.arange(terms.n_coordinates), out)
    return out


def _log_determinant(factor: Floats) -> float:
    return 2.0 * float(np.log(np.diag(factor)).sum())
