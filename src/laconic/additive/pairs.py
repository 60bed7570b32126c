"""Which pairs of columns deserve a grid: second-order gains from 2-D tables at the current fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, solve_triangular

from laconic._typing import Floats, Ints
from laconic.additive.criterion import (
    AdditivePoint,
    largest_group_penalty,
    loss_slopes,
    slopes_by_term,
)
from laconic.additive.evidence import WANDERING, Smoothness, roughness_units
from laconic.additive.solver import solve_additive
from laconic.additive.structure import (
    FEW_ROWS,
    GUESS_TOL,
    AdditivePlan,
    Stage,
    Structure,
    adaptive_weights,
    solve_at,
    term_norms,
    widened_to,
)
from laconic.additive.terms import PairGrids, Term, TermSet
from laconic.core.gray_zone import TruncatedLogistic

_RIDGE = 1.0

_FEW_LEVELS = 2.0
"""Levels of a column, but for the first, up to which one matrix product is faster than tables."""

_AMOUNTS = 10.0 ** np.arange(-2.0, 4.5, 0.5)
"""Amounts of smoothness, in units of the term, at which evidence is looked at."""

_EMPTY = 1e-12
"""Share of all curvature below which a difference of sums is zero."""


def coarse_cells(terms: TermSet, columns: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Nearest coarse slot of every row, for some columns."""
    out = np.empty((len(columns), terms.rows.n_rows), dtype=np.uint8)
    for k, j in enumerate(columns):
        slot, way = terms.rows.column(int(j))
        coarse = terms.coarse[j]
        place = coarse.base[slot] + coarse.step[slot] * way
        out[k] = coarse.index[slot] + (place > 0.5)
    return out


def screen_pairs(
    terms: TermSet, columns: NDArray[np.int64], slopes: Floats, curves: Floats
) -> tuple[list[tuple[int, int]], Floats]:
    """All pairs of ``columns`` by decreasing gain, and the gains."""
    if len(columns) < 2:
        return [], np.zeros(0)
    seen = np.flatnonzero(curves.any(axis=0))
    cells = coarse_cells(terms, columns)[:, seen]
    sizes = np.array([terms.coarse[j].axis.size for j in columns], dtype=np.int64)
    gains = all_gains(cells, sizes, slopes[:, seen], curves[:, seen])
    first, second = np.triu_indices(len(columns), 1)
    order = np.argsort(-gains[first, second], kind="stable")
    first, second = first[order], second[order]
    pairs = [(int(columns[a]), int(columns[b])) for a, b in zip(first, second, strict=True)]
    return pairs, gains[first, second]


def all_gains(
    cells: NDArray[np.uint8], sizes: NDArray[np.int64], slopes: Floats, curves: Floats
) -> Floats:
    """Gain of every pair a < b: table by table, or all tables in one product of few levels."""
    from laconic.additive._numba_blocks import add_gains_of_tables, pair_gains

    gains = np.zeros((len(sizes), len(sizes)))
    start = (np.cumsum(sizes - 1) - (sizes - 1)).astype(np.int64)
    if float((sizes - 1).sum()) > _FEW_LEVELS * len(sizes):
        pair_gains(cells, sizes, slopes, curves, _RIDGE, gains)
        return gains
    is_level = np.ones((int((sizes - 1).sum()) + 1, cells.shape[1]))
    for j, size in enumerate(sizes):
        levels = np.arange(1, size)[:, None]
        is_level[start[j] : start[j] + size - 1] = cells[j] == levels
    for slope, curve in zip(slopes, curves, strict=True):
        G, H = (is_level * slope) @ is_level.T, (is_level * curve) @ is_level.T
        add_gains_of_tables(G, H, start, sizes, _EMPTY * H[-1, -1], _RIDGE, gains)
    return gains


def log_bayes_factors(terms: TermSet, first: int, slopes: Floats, curves: Floats) -> Floats:
    """log of (evidence with the term / evidence without it) at every one of ``_AMOUNTS``.

    One row for each term from ``first`` on; -inf for terms that no row sees.

    At the fit without them, with th the sums of slopes and H the curvatures of a term, a normal
    prior of precision l R gives (1/2) sum_j [th_j^2 / (h_j + l r_j) - log(1 + h_j / (l r_j))] with
    the diagonal of H, where the basis is nearly orthogonal. R is the roughness to the middle
    power: a pair may turn out to bend slowly or not.
    """
    from laconic.additive._numba_solver import curvature_blocks

    rows, packed = terms.packed
    work = np.arange(first, len(terms.terms))
    if len(work) == 0:
        return np.zeros((0, len(_AMOUNTS)))
    theta = slopes_by_term(terms, slopes, work)
    K, rank = len(slopes), packed.rank[work]
    H_start = np.concatenate([[0], np.cumsum(K * rank**2)]).astype(np.int64)
    H = np.empty(H_start[-1])
    pad = int((packed.size[work] + packed.width[work] + 2).max())
    curvature_blocks(rows, packed, work, curves, H, H_start, np.empty(pad * pad))
    units = roughness_units(terms)
    out = np.full((len(work), len(_AMOUNTS)), -np.inf)
    for w, t in enumerate(work):
        r, s = int(rank[w]), int(packed.start[t])
        if r == 0:
            continue
        blocks = H[H_start[w] : H_start[w + 1]].reshape(K, r, r)
        h = np.diagonal(blocks, axis1=1, axis2=2)
        rough = (np.maximum(terms.rough[s : s + r], units[t]) / units[t]) ** WANDERING
        prior = _AMOUNTS[:, None, None] * rough
        value = theta[:, s : s + r] ** 2 / (h + prior) - np.log1p(h / prior)
        out[w] = 0.5 * value.sum(axis=(1, 2))
    return out


def best_amounts(log_factors: Floats) -> Floats:
    """The amount with the largest Bayes factor of every term."""
    return np.asarray(_AMOUNTS[log_factors.argmax(axis=1)])


# Are the pairs of columns worth something all together? One number, from all of them at once.
#
# Hundreds of pairs can each tell too little to be sure of and still matter as a whole. Choosing the
# best looking ones first would make any evidence for them too good; taking all of them does not.
# The prior of their sum is a product: with k_a the covariance of a smooth function of column a,
# unit variance for its linear part and for its smoothest bend,
#
#     K = sum_{a < b} k_a k_b = (1/2) [(sum_a k_a)^2 - sum_a k_a^2]        (entry by entry),
#
# so that no pair has to be built. At the fit without pairs, with slopes s and curvatures h of the
# rows and K_0 the prior covariance of the terms in it, which may move, the log of the ratio of
# marginal likelihoods with and without pairs of covariance K / l is
#
#     (1/2) s'(l K^-1 + (H^-1 + K_0)^-1)^-1 s - (1/2) log [det B_l / det B_0],
#     B_l = I + H^(1/2) (K_0 + K / l) H^(1/2).


AMOUNTS = (3200.0, 800.0, 200.0, 50.0)
"""Precisions l of the pairs that are compared."""

MOST_ROWS = 1_200
"""The matrices have a row and a column for each row: with more rows held-out losses tell better."""

_CLEARLY = 0.5
"""Nats by which pairs must win."""

_KEPT_SHARE = 0.25
"""Some pairs, on grids that ask for smoothness once more, stand in for all: they get this share."""

_FLAT = 1e3
"""Prior variance of the intercept."""

_ROUGHEST = 100.0
"""Coordinates so much rougher than the smoothest bend add nothing to a covariance."""


def amount_together(terms: TermSet, diagonal: Floats, slopes: Floats, curves: Floats) -> float:
    """Common amount of smoothness of the pairs; infinite when they are not worth it.

    ``terms`` are those of single columns with precisions ``diagonal``; ``slopes`` and ``curves``,
    (scores, rows), belong to their fit. Only for one score and few rows, infinite elsewhere.
    """
    seen = np.flatnonzero(curves[0] > 0)
    if len(slopes) > 1 or len(seen) > MOST_ROWS or len(terms.terms) < 2:
        return np.inf
    gains = log_bayes_factors_together(terms, diagonal, slopes[0, seen], curves[0, seen], seen)
    best = int(np.argmax(gains))
    return _KEPT_SHARE * AMOUNTS[best] if gains[best] > _CLEARLY else np.inf


def log_bayes_factors_together(
    terms: TermSet, diagonal: Floats, slope: Floats, curve: Floats, seen: NDArray[np.int64]
) -> Floats:
    """log of (evidence with all pairs / evidence without), for every one of ``AMOUNTS``."""
    rows = dense_coordinates(terms)[:, seen]
    covariance = product_covariance(terms, rows)
    root = np.sqrt(curve)
    own = (rows.T / diagonal) @ rows + _FLAT
    without = np.eye(len(root)) + root[:, None] * own * root
    told, weighted = covariance @ slope, root[:, None] * covariance * root
    base = _log_determinant(cho_factor(without, lower=True)[0])
    out = np.empty(len(AMOUNTS))
    for i, amount in enumerate(AMOUNTS):
        factor = cho_factor(without + weighted / amount, lower=True, overwrite_a=True)[0]
        left = solve_triangular(factor, root * told / amount, lower=True)
        fit = slope @ told / amount - left @ left
        out[i] = 0.5 * (fit - _log_determinant(factor) + base)
    return out


def product_covariance(terms: TermSet, rows: Floats) -> Floats:
    """Sum over all pairs of columns of the products of their covariances."""
    relative = terms.rough / roughness_units(terms)[terms.owner]
    relative = np.where(relative > 0, relative, 1.0)
    total = np.zeros((rows.shape[1], rows.shape[1]))
    squares = np.zeros_like(total)
    for t in range(len(terms.terms)):
        own = (terms.owner == t) & (relative < _ROUGHEST)
        if own.any():
            part = (rows[own].T / relative[own]) @ rows[own]
            total += part
            squares += part * part
    return np.asarray(0.5 * (total * total - squares))


def dense_coordinates(terms: TermSet) -> Floats:
    """(coordinates, rows): what every coordinate adds to the score of every row."""
    from laconic.additive._numba_rows import coordinate_rows

    out = np.zeros((terms.n_coordinates, terms.rows.n_rows))
    coordinate_rows(*terms.packed, terms.owner, np.arange(terms.n_coordinates), out)
    return out


def _log_determinant(factor: Floats) -> float:
    return 2.0 * float(np.log(np.diag(factor)).sum())


# Which pairs of columns become terms of a sparse additive model.


MANY_PAIRS, TOGETHER_PAIRS = 2, 3
"""Candidate pairs for each column where the rows can tell so many; and where all of them together
are known to be worth something."""

_TOGETHER_MOST = 600
_PAIR_COLUMNS = 120
_PAIR_EVIDENCE = 1.5
_FEW_PAIRS = 45


@dataclass(frozen=True)
class Candidates:
    """Strong pairs with first guesses of their amounts, weak pairs, and the amount that all pairs
    ``together`` ask for."""

    strong: tuple[Term, ...] = ()
    amounts: Floats | None = None
    weak: tuple[Term, ...] = ()
    together: float = np.inf


@dataclass(frozen=True)
class PairRule:
    """Which pairs become terms: the ``most`` with the largest gain at most.

    All of them are strong if ``forced``, else those whose evidence outweighs the number of pairs
    that were looked at (to the power 1.5, since the amount of smoothness in that evidence was
    itself the best of a grid). Strong pairs have their own smoothness. The others, unless
    ``forced`` or ``alone``, are weak: each too little to be sure of, together often worth it under
    one strong amount. ``together`` is that amount where it is known; None lets few rows tell it.
    """

    grids: PairGrids
    most: int
    forced: bool = False
    alone: bool = False
    together: float | None = None

    def candidates(
        self,
        plan: AdditivePlan,
        singles: TermSet,
        smooth: Smoothness,
        y: Ints,
        weight: Floats,
        point: AdditivePoint,
    ) -> Candidates:
        """From a fit of the single terms ``smooth.terms`` at ``point``."""
        if self.most == 0:
            return Candidates()
        base = smooth.terms
        slopes, curves = _informed_slopes(plan, base, y, weight, point)
        norms = term_norms(base, point)
        free = [t for t in range(len(base.terms)) if plan.sign_of(base.terms[t].columns) == 0]
        best = sorted(free, key=lambda t: -norms[t])[:_PAIR_COLUMNS]
        columns = np.array(sorted(base.terms[t].columns[0] for t in best), dtype=np.int64)
        pairs, gains = screen_pairs(singles, columns, slopes, curves)
        if self.forced:
            more = self.grids(pairs[: int((gains[: self.most] > 0).sum())])
            table = log_bayes_factors(singles.extended(more), len(singles.terms), slopes, curves)
            return Candidates(more, best_amounts(table))
        every = self._every(singles, columns, len(pairs), float(weight.sum()))
        together = self.together
        if together is None:
            told = plan.smoothness is None and not (every or self.alone or any(plan.signs))
            diagonal = smooth.diagonal()
            together = amount_together(base, diagonal, slopes, curves) if told else np.inf
        most = self.most if together == np.inf else _TOGETHER_MOST
        more = self.grids(pairs if every else pairs[: int((gains[:most] > 0).sum())])
        if together < np.inf:
            most = TOGETHER_PAIRS * len(base.terms)
            more = _largest(plan, smooth, point, y, weight, more, together, most)
        table = log_bayes_factors(singles.extended(more), len(singles.terms), slopes, curves)
        strong = table.max(axis=1, initial=-np.inf) > _PAIR_EVIDENCE * np.log(max(1, len(pairs)))
        weak = ~strong & np.isfinite(table).all(axis=1) & (not self.alone)
        amounts = best_amounts(table[strong])
        return Candidates(
            tuple(compress(more, strong)), amounts, tuple(compress(more, weak)), together
        )

    def _every(self, singles: TermSet, columns: Ints, n_pairs: int, total_weight: float) -> bool:
        """So few pairs of so few cells that the rows can tell all of them at once."""
        if self.alone or n_pairs > _FEW_PAIRS:
            return False
        most = [min(singles.coarse[j].axis.size - 1, singles.rank[j]) for j in columns]
        cells = np.array(most, dtype=float)
        freedom = cells.sum() + 0.5 * (cells.sum() ** 2 - (cells**2).sum())
        return bool(2.0 * freedom <= total_weight)


def _informed_slopes(
    plan: AdditivePlan, terms: TermSet, y: Ints, weight: Floats, point: AdditivePoint
) -> tuple[Floats, Floats]:
    """Slopes and curvatures of the plain likelihood at the point, for evidence from one step.

    One row that is badly wrong has a large slope and hardly any curvature: averaged with the
    empirical information, the square of the slope, it cannot make a pair on its own.
    """
    plain = replace(plan, loss=TruncatedLogistic(), C=1.0)
    problem = plain.problem(terms, y, weight, np.zeros(terms.n_coordinates))
    slopes, curves = loss_slopes(problem, point.scores)
    return slopes, 0.5 * (curves + slopes**2 / np.where(weight > 0, weight, 1.0))


def _largest(
    plan: AdditivePlan,
    smooth: Smoothness,
    point: AdditivePoint,
    y: Ints,
    weight: Floats,
    pairs: tuple[Term, ...],
    amount: float,
    most: int,
) -> tuple[Term, ...]:
    """The ``most`` pairs with the largest spread in a fit of all of them at one common amount.

    Beside all others a pair shows what only it tells; alone also what others tell better.
    """
    n, d = len(pairs), len(smooth.terms.terms)
    if n <= most:
        return pairs
    terms = smooth.terms.extended(pairs)
    amounts, weak = smooth.extended(terms, plan.smoothness), np.arange(d + n) >= d
    every = Structure(terms, amounts, np.ones(d + n), widened_to(point, terms), weak)
    now = every.at_amount(amount)
    found = solve_at(plan, now, y, weight, 0.0, now.point, GUESS_TOL).point
    largest = np.argsort(-term_norms(terms, found)[d:], kind="stable")[:most]
    return tuple(pairs[k] for k in np.sort(largest))


# From rows to the structure of a sparse additive model: smoothness, pairs, group weights.
#
# Cross-validation repeats all of it in every fold: pairs are screened again, weights learned again,
# so that held-out rows know nothing of the choice they judge.


WIDE = 400
"""Above this number of columns, a first path with equal weights keeps at most ``_KEPT`` of them."""

_KEPT = 120

_SINGLE_STEPS, _PAIR_STEPS, _GUIDED_STEPS = 24, 8, 3
"""Steps of the evidence at most: for single terms, which settle slowly from equal amounts; for
pairs, which start where their own evidence is largest; and from a guess."""

_POWER_STEPS = 3
"""Steps of the evidence after which the powers of the roughness are chosen again."""


def build(
    plan: AdditivePlan,
    singles: TermSet,
    y: Ints,
    weight: Floats,
    pairs: PairRule,
    guess: Sequence[Stage] = (),
) -> Structure:
    """Terms, smoothness and group weights from the rows of ``singles``.

    ``guess`` are the stages of a structure on (nearly) the same rows: where the search starts.
    """
    base = singles.subset(wide_screen(plan, singles, y, weight))
    drawn = singles.rows.n_rows < FEW_ROWS
    first = Smoothness.start(base, plan.smoothness, drawn)
    smooth, point = _guessed_fit(plan, base, y, weight, first, None, guess[:1])
    stages = [Stage(smooth, point)]
    found = pairs.candidates(plan, singles, smooth, y, weight, point)
    weak = found.weak
    if found.strong:
        terms = base.extended(found.strong)
        first = smooth.extended(terms, plan.smoothness, found.amounts)
        start = widened_to(point, terms)
        smooth, point = _guessed_fit(plan, terms, y, weight, first, start, guess[1:])
        stages.append(Stage(smooth, point))
    terms = smooth.terms.extended(weak)
    smooth = smooth.extended(terms, plan.smoothness)
    point = widened_to(point, terms)
    shared = np.arange(len(terms.terms)) >= len(terms.terms) - len(weak)
    weights = adaptive_weights(terms, point)
    return Structure(terms, smooth, weights, point, shared, tuple(stages), found.together)


def _guessed_fit(
    plan: AdditivePlan,
    terms: TermSet,
    y: Ints,
    weight: Floats,
    first: Smoothness,
    start: AdditivePoint | None,
    guess: Sequence[Stage],
) -> tuple[Smoothness, AdditivePoint]:
    """Evidence from ``first``; or from a guess, after a fit at its amounts, in few steps."""
    if not guess or plan.smoothness is not None:
        steps = _SINGLE_STEPS if start is None else _PAIR_STEPS
        return evidence_fit(plan, terms, y, weight, first, start, steps)
    first = first.guided(guess[0].smoothness)
    plain = replace(plan, loss=TruncatedLogistic(), C=1.0)
    problem = plain.problem(terms, y, weight, first.diagonal())
    point = solve_additive(problem, guess[0].carried(terms), tol=GUESS_TOL, max_iter=12).point
    return evidence_fit(plan, terms, y, weight, first, point, _GUIDED_STEPS)


def evidence_fit(
    plan: AdditivePlan,
    terms: TermSet,
    y: Ints,
    weight: Floats,
    smoothness: Smoothness,
    start: AdditivePoint | None = None,
    max_iter: int = _SINGLE_STEPS,
) -> tuple[Smoothness, AdditivePoint]:
    """Fit without group penalty; amounts of smoothness by marginal likelihood unless fixed.

    The likelihood is the plain one, whatever the zone: a truncated likelihood has no evidence.
    """
    plain = replace(plan, loss=TruncatedLogistic(), C=1.0)
    problem = plain.problem(terms, y, weight, smoothness.diagonal())
    if plan.smoothness is not None:
        return smoothness, solve_additive(problem, start, tol=1e-4).point
    amounts = smoothness.copy()
    step = 0

    def update(g: Floats, H: Floats, H_start: Ints, work: Ints) -> Floats:
        nonlocal step
        if g.any():
            if step % _POWER_STEPS == _POWER_STEPS - 1:
                amounts.choose_powers(g, H, H_start, work)
            amounts.update(g, H, H_start, work)
        step += 1
        return amounts.diagonal()

    found = solve_additive(problem, start, tol=1e-4, max_iter=max_iter, on_curvature=update)
    return amounts, found.point


def wide_screen(plan: AdditivePlan, singles: TermSet, y: Ints, weight: Floats) -> list[int]:
    """Terms to keep: all of them, or those that enter first on a path with equal weights."""
    seen = np.flatnonzero(singles.rank > 0)
    if len(seen) <= WIDE:
        return [int(t) for t in seen]
    smooth = Smoothness.start(singles, 10.0)
    problem = replace(plan, loss=TruncatedLogistic(), C=1.0).problem(
        singles, y, weight, smooth.diagonal()
    )
    ones = np.ones(len(singles.terms))
    top = largest_group_penalty(problem, ones)
    point, kept = None, seen[:0]
    for share in 0.75 ** np.arange(1, 16):
        found = solve_additive(replace(problem, group=share * top * ones), point, tol=1e-3)
        point = found.point
        on = np.flatnonzero(problem.penalty.norms(point.coordinates) > 0)
        if len(on) > _KEPT and len(kept):
            break
        kept = on
    return [int(t) for t in kept]
