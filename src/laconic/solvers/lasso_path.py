"""The penalty of an l1-penalised logistic fit, chosen on rows that were held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laconic.solvers.lasso_logistic import LassoLogistic, RulePoint
from laconic.solvers.solution import Solution

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Fold = tuple[Ints, Ints]

N_POINTS = 14
LEAST_SHARE = 2e-4
_PATH_TOL = 1e-3
_LOST = 1.5
"""The path ends where the held-out loss is this many times the least one."""


@dataclass(frozen=True)
class HeldOutPath:
    """By share of the largest penalty: mean loss of every fold, and scores of held-out rows."""

    shares: Array
    loss: Array
    scores: Array

    def choose(self, errors: float) -> int:
        """The first point within so many standard errors of the least mean loss."""
        mean = self.loss.mean(axis=1)
        best = int(mean.argmin())
        n_folds = self.loss.shape[1]
        spread = float(self.loss[best].std(ddof=1)) / np.sqrt(n_folds) if n_folds > 1 else 0.0
        return int(np.flatnonzero(mean <= mean[best] + errors * spread)[0])


def penalty_shares() -> Array:
    """From the largest penalty down, evenly in logarithms."""
    return np.geomspace(1.0, LEAST_SHARE, N_POINTS)


def held_out_path(problem: LassoLogistic, folds: Sequence[Fold]) -> HeldOutPath | None:
    """Folds lower the penalty side by side, long past a minimum: what many rules share shows late.

    None when no fold has two classes to learn from.
    """
    largest, whole = problem.largest_penalty(), float(problem.weight.sum())
    parts = [_part(problem, fold) for fold in folds]
    running = [(part, test) for part, (_, test) in zip(parts, folds, strict=True) if part]
    if not running:
        return None
    points = [part.empty() for part, _ in running]
    losses: list[list[float]] = []
    scores: list[Array] = []
    shares = penalty_shares()
    for share in shares:
        line, out = [], np.full(len(problem.labels), np.nan)
        for f, (part, test) in enumerate(running):
            penalty = share * largest * float(part.weight.sum()) / whole
            points[f] = part.solve(penalty, points[f], tol=_PATH_TOL).point
            out[test] = points[f].scores[test]
            own = np.logaddexp(0.0, -problem.labels[test] * out[test])
            line.append(float(np.average(own, weights=problem.weight[test])))
        losses.append(line)
        scores.append(out)
        means = np.mean(losses, axis=1)
        if means[-1] > _LOST * means.min():
            break
    return HeldOutPath(shares[: len(losses)], np.array(losses), np.array(scores))


def solve_down(problem: LassoLogistic, share: float, tol: float, max_iter: int = 200) -> Solution:
    """The certified optimum at a share of the largest penalty, warm-started from above."""
    largest = problem.largest_penalty()
    point: RulePoint | None = None
    for above in penalty_shares():
        if above <= share:
            break
        point = problem.solve(above * largest, point, tol=_PATH_TOL).point
    return problem.solve(share * largest, point, tol=tol, max_iter=max_iter)


def _part(problem: LassoLogistic, fold: Fold) -> LassoLogistic | None:
    weight = np.zeros(len(problem.weight))
    weight[fold[0]] = problem.weight[fold[0]]
    above = problem.labels > 0
    if not len(fold[1]) or not weight[above].any() or not weight[~above].any():
        return None
    return LassoLogistic(problem.signs, problem.labels, weight)
