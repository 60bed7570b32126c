"""Which pairs of columns become terms of a sparse additive model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from laconic.criteria.gray_zone import TruncatedLogistic
from laconic.solvers.additive import AdditivePoint, loss_slopes
from laconic.solvers.additive_evidence import Smoothness
from laconic.solvers.additive_pairs import best_amounts, log_bayes_factors, screen_pairs
from laconic.solvers.additive_structure import (
    GUESS_TOL,
    AdditivePlan,
    Structure,
    solve_at,
    term_norms,
    widened_to,
)
from laconic.solvers.additive_terms import PairGrids, Term, TermSet
from laconic.solvers.additive_together import amount_together

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

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
    amounts: Array | None = None
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
        weight: Array,
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
    plan: AdditivePlan, terms: TermSet, y: Ints, weight: Array, point: AdditivePoint
) -> tuple[Array, Array]:
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
    weight: Array,
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
