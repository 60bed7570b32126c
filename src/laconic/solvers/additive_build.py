"""From rows to the structure of a sparse additive model: smoothness, pairs, group weights.

Cross-validation repeats all of it in every fold: pairs are screened again, weights learned again,
so that held-out rows know nothing of the choice they judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from laconic.criteria.gray_zone import TruncatedLogistic
from laconic.solvers.additive import AdditivePoint, largest_group_penalty, solve_additive
from laconic.solvers.additive_candidates import PairRule
from laconic.solvers.additive_evidence import Smoothness
from laconic.solvers.additive_structure import (
    FEW_ROWS,
    GUESS_TOL,
    AdditivePlan,
    Stage,
    Structure,
    adaptive_weights,
    widened_to,
)
from laconic.solvers.additive_terms import TermSet

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

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
    weight: Array,
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
    weight: Array,
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
    weight: Array,
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

    def update(g: Array, H: Array, H_start: Ints, work: Ints) -> Array:
        nonlocal step
        if g.any():
            if step % _POWER_STEPS == _POWER_STEPS - 1:
                amounts.choose_powers(g, H, H_start, work)
            amounts.update(g, H, H_start, work)
        step += 1
        return amounts.diagonal()

    found = solve_additive(problem, start, tol=1e-4, max_iter=max_iter, on_curvature=update)
    return amounts, found.point


def wide_screen(plan: AdditivePlan, singles: TermSet, y: Ints, weight: Array) -> list[int]:
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
