"""Logistic regression on signs with an l1 penalty: certified, and its penalty by held-out rows.

.. math:: \\min_{b, \beta} \\sum_i w_i \\log(1 + e^{-t_i (b + z_i'\beta)}) + \\lambda \\|\beta\\|_1,
          \\quad z_{ij} \\in \\{-1, 1\\},\\ t_i \\in \\{-1, 1\\}

Newton steps whose quadratic model is minimised by coordinate descent over a working set (Friedman,
Hastie, Tibshirani, *J. Stat. Software* 33, 2010), with a line search on the true objective. The
certificate is a point of the dual, sum_i w_i H(u_i) with H the entropy: the residuals of the
current probabilities, scaled so that those of both classes balance and that no condition exceeds
the penalty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import entr, expit

from laconic._typing import Floats, Ints, Signs
from laconic.core.losses import Solution, WhyStopped
from laconic.rules.tuning import (
    HALVINGS,
    LEAST_CURVATURE,
    LEAST_PENALTY,
    LOST,
    N_PENALTIES,
    PATH_TOL,
    RIDGE,
    ROUNDING,
    SWEEPS,
)

Fold = tuple[Ints, Ints]


@dataclass(frozen=True)
class RulePoint:
    """Intercept, weights of the conditions, and the scores of all rows."""

    intercept: float
    weights: Floats
    scores: Floats


@dataclass(frozen=True)
class LassoLogistic:
    """Signs (conditions, rows), labels +1 / -1, weights; rows of weight zero are only scored.

    >>> signs = np.array([[1, 1, -1, -1]], dtype=np.int8)
    >>> problem = LassoLogistic(signs, np.array([1.0, 1.0, -1.0, 1.0]), np.ones(4))
    >>> round(problem.largest_penalty(), 6)
    1.0
    >>> found = problem.solve(0.5)
    >>> found.why_stopped
    'gap'
    """

    signs: Signs
    labels: Floats
    weight: Floats

    def empty(self) -> RulePoint:
        """The best intercept without any condition."""
        above = float(self.weight[self.labels > 0].sum())
        below = float(self.weight[self.labels < 0].sum())
        b = float(np.log(above) - np.log(below))
        return RulePoint(b, np.zeros(len(self.signs)), np.full(len(self.labels), b))

    def largest_penalty(self) -> float:
        """The least penalty that leaves every condition out."""
        slopes = self._slopes(self._residuals(self.empty().scores))
        return float(np.abs(slopes).max(initial=0.0))

    def value(self, point: RulePoint, penalty: float) -> float:
        loss = self.weight @ np.logaddexp(0.0, -self.labels * point.scores)
        return float(loss + penalty * np.abs(point.weights).sum())

    def solve(
        self,
        penalty: float,
        start: RulePoint | None = None,
        *,
        tol: float = 1e-6,
        max_iter: int = 200,
    ) -> Solution:
        """The optimum at one penalty, to a duality gap of tol times the loss of the empty model."""
        empty = self.empty()
        point = empty if start is None else start
        target = tol * self.value(empty, 0.0)
        why: WhyStopped = "max_iter"
        n_iter = 0
        while True:
            residuals = self._residuals(point.scores)
            slopes = self._slopes(residuals)
            value = self.value(point, penalty)
            gap = value - self._dual(residuals, slopes, penalty)
            if gap <= target:
                why = "gap"
                break
            if n_iter == max_iter:
                break
            n_iter += 1
            better = self._step(point, residuals, slopes, value, penalty, 1e-5 * gap)
            if better is None:
                why = "stalled"
                break
            point = better
        return Solution(point, value, max(gap, 0.0), n_iter, why)

    def _residuals(self, scores: Floats) -> Floats:
        """w_i (y_i - p_i), minus the slope of the loss in the score."""
        return np.asarray(self.weight * self.labels * expit(-self.labels * scores))

    def _slopes(self, residuals: Floats) -> Floats:
        from laconic.rules._numba import sign_sums

        out = np.empty(len(self.signs))
        sign_sums(self.signs, residuals, out)
        return out

    def _dual(self, residuals: Floats, slopes: Floats, penalty: float) -> float:
        above, below = self.labels > 0, self.labels < 0
        plus, minus = float(residuals[above].sum()), -float(residuals[below].sum())
        least = min(plus, minus)
        alpha = residuals.copy()
        if plus != minus:
            alpha[above] *= least / plus
            alpha[below] *= least / minus
            slopes = self._slopes(alpha)
        steepest = float(np.abs(slopes).max(initial=0.0))
        if steepest > penalty:
            alpha *= penalty / steepest
        counted = self.weight > 0
        share = np.abs(alpha[counted]) / self.weight[counted]
        return float(self.weight[counted] @ (entr(share) + entr(1.0 - share)))

    def _step(
        self,
        point: RulePoint,
        residuals: Floats,
        slopes: Floats,
        value: float,
        penalty: float,
        tol: float,
    ) -> RulePoint | None:
        from laconic.rules._numba import descend

        share = expit(point.scores)
        # a row that is certain keeps a little curvature, or the quadratic model has no minimum
        curvature = self.weight * np.maximum(share * (1.0 - share), LEAST_CURVATURE)
        working = np.flatnonzero((point.weights != 0) | (np.abs(slopes) > penalty))
        sides = np.concatenate([np.ones((1, len(share))), self.signs[working]])
        gram = (sides * curvature) @ sides.T
        slope = -np.concatenate([[residuals.sum()], slopes[working]])
        around = np.concatenate([[0.0], point.weights[working]])
        step = descend(gram, slope, around, penalty, SWEEPS, tol)
        step = _polished(gram, slope, around, penalty, step)
        moved = step @ sides
        length = 1.0
        for _ in range(HALVINGS):
            weights = point.weights.copy()
            weights[working] += length * step[1:]
            tried = RulePoint(
                point.intercept + length * step[0], weights, point.scores + length * moved
            )
            if self.value(tried, penalty) <= value + ROUNDING * value:
                return tried
            length *= 0.5
        return None


def _polished(gram: Floats, slope: Floats, around: Floats, penalty: float, step: Floats) -> Floats:
    """From what coordinate descent found to the exact minimum for its signs.

    Descent is slow along collinear conditions. On the way to the minimum a weight that would
    change its sign stops at zero and stays there, and the way goes on without it.
    """
    now = around + step
    for _ in range(len(step)):
        side = np.sign(now)
        side[0] = 0.0
        inside = np.flatnonzero(side)
        inside = np.concatenate([[0], inside[inside > 0]])
        system = gram[np.ix_(inside, inside)]
        system[np.diag_indices_from(system)] *= 1.0 + RIDGE
        pull = slope + penalty * side + gram @ (now - around)
        move = np.zeros(len(now))
        move[inside] = -np.linalg.solve(system, pull[inside])
        crossing = np.flatnonzero(side * (now + move) < 0)
        if not len(crossing):
            return np.asarray(now + move - around)
        reach = now[crossing] / -move[crossing]
        now = now + reach.min() * move
        now[crossing[reach.argmin()]] = 0.0
    return np.asarray(now - around)


@dataclass(frozen=True)
class HeldOutPath:
    """By share of the largest penalty: mean loss of every fold, and scores of held-out rows.

    ``tests`` are the rows that the folds held out, ``points`` their fits at each share.
    """

    shares: Floats
    loss: Floats
    scores: Floats
    tests: tuple[Ints, ...] = ()
    points: tuple[tuple[RulePoint, ...], ...] = ()

    def choose(self, errors: float) -> int:
        """The first point within so many standard errors of the least mean loss."""
        mean = self.loss.mean(axis=1)
        best = int(mean.argmin())
        n_folds = self.loss.shape[1]
        spread = float(self.loss[best].std(ddof=1)) / np.sqrt(n_folds) if n_folds > 1 else 0.0
        return int(np.flatnonzero(mean <= mean[best] + errors * spread)[0])


def penalty_shares() -> Floats:
    """From the largest penalty down, evenly in logarithms."""
    return np.geomspace(1.0, LEAST_PENALTY, N_PENALTIES)


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
    scores: list[Floats] = []
    fits: list[tuple[RulePoint, ...]] = []
    shares = penalty_shares()
    for share in shares:
        line, out = [], np.full(len(problem.labels), np.nan)
        for f, (part, test) in enumerate(running):
            penalty = share * largest * float(part.weight.sum()) / whole
            points[f] = part.solve(penalty, points[f], tol=PATH_TOL).point
            out[test] = points[f].scores[test]
            own = np.logaddexp(0.0, -problem.labels[test] * out[test])
            line.append(float(np.average(own, weights=problem.weight[test])))
        losses.append(line)
        scores.append(out)
        fits.append(tuple(points))
        means = np.mean(losses, axis=1)
        if means[-1] > LOST * means.min():
            break
    tests = tuple(test for _, test in running)
    return HeldOutPath(
        shares[: len(losses)], np.array(losses), np.array(scores), tests, tuple(fits)
    )


def solve_down(problem: LassoLogistic, share: float, tol: float, max_iter: int = 200) -> Solution:
    """The certified optimum at a share of the largest penalty, warm-started from above."""
    largest = problem.largest_penalty()
    point: RulePoint | None = None
    for above in penalty_shares():
        if above <= share:
            break
        point = problem.solve(above * largest, point, tol=PATH_TOL).point
    return problem.solve(share * largest, point, tol=tol, max_iter=max_iter)


def _part(problem: LassoLogistic, fold: Fold) -> LassoLogistic | None:
    weight = np.zeros(len(problem.weight))
    weight[fold[0]] = problem.weight[fold[0]]
    above = problem.labels > 0
    if not len(fold[1]) or not weight[above].any() or not weight[~above].any():
        return None
    return LassoLogistic(problem.signs, problem.labels, weight)
