r"""Levels of a column as random effects: how far they spread is asked of the rows.

With w_k the effect of level k of column j and :math:`w_k \sim N(0, \sigma_j^2)`, the marginal
likelihood of :math:`\sigma_j` (Laplace, with the curvature of each level on its own) is largest
where

.. math:: \sigma_j^2 = \sum_k w_k^2 \Big/ \sum_k \frac{h_k}{h_k + \sigma_j^{-2}}, \qquad
          h_k = \sum_{i \in k} s_i\, p_i (1 - p_i)

(MacKay, *Neural Computation* 4, 1992): a level of two rows is pulled to the mean of its column as
far as the many others say, and none must be pooled because it is rare.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit

from laconic._typing import Floats
from laconic.data.tables.columns import Table
from laconic.linear.design import LinearColumn, design
from laconic.linear.solvers.rows import squares
from laconic.linear.tuning import (
    EFFECT_STEPS,
    EFFECT_TOL,
    LEAST_SPREAD,
    MANY_LEVELS,
    MOST_SPREAD,
)

Solve = Callable[[Any, Floats | None], Floats]
"""From a design matrix and a start to coefficients, the intercept last."""


def spread_columns(
    columns: Sequence[LinearColumn], table: Table, weight: Floats, solve: Solve
) -> tuple[tuple[LinearColumn, ...], Floats | None]:
    """The columns with the spreads that their levels ask for, and where the last fit may start.

    Columns of few levels, and numbers, stay as they are.
    """
    found, start = tuple(columns), None
    moved = [c.kind == "categorical" and len(c.levels) >= MANY_LEVELS for c in columns]
    if not any(moved):
        return found, None
    for _ in range(EFFECT_STEPS):
        X = design(found, table)
        point = solve(X, start)
        p = expit(X @ point[:-1] + point[-1])
        curvature = np.asarray(weight * p * (1.0 - p))
        held = np.asarray(squares(X).T @ curvature)
        start, before = point.copy(), found
        found = _moved(before, moved, start, held)
        steps = [abs(np.log(a.spread / b.spread)) for a, b in zip(found, before, strict=True)]
        if max(steps) < EFFECT_TOL:
            break
    return found, start


def _moved(
    columns: Sequence[LinearColumn], moved: Sequence[bool], point: Floats, held: Floats
) -> tuple[LinearColumn, ...]:
    """One step of every spread; ``point`` then says the same effects in the new units."""
    found, at = [], 0
    for column, moves in zip(columns, moved, strict=True):
        own = slice(at, at + column.width)
        at += column.width
        if moves:
            free = float((held[own] / (held[own] + 1.0)).sum())
            factor = np.sqrt(float(point[own] @ point[own]) / max(free, 1e-300))
            spread = float(np.clip(factor * column.spread, LEAST_SPREAD, MOST_SPREAD))
            point[own] *= column.spread / spread
            column = replace(column, spread=spread)
        found.append(column)
    return tuple(found)
