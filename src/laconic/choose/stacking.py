r"""One convex problem weighs the members of a committee on rows that none of them was fitted on.

With :math:`L_{mik}` the log-probability that member m gives class k of row i, the committee says

.. math:: p_{ik} \propto \exp \sum_m v_m L_{mik}, \qquad v \ge 0, \; \sum_m v_m = 1

(for two classes: the weighted mean of the log-odds). Its log loss is convex in v. The weights are
shrunk towards a centre c, weights of few members that were best over many tables:

.. math:: \min_v \; \sum_i w_i \Big[\log \sum_k e^{\sum_m v_m L_{mik}} - \sum_m v_m L_{m i y_i}\Big]
          + \tfrac{\lambda}{2} \sum_{m: c_m > 0} (c_m - v_m)^2

so that others enter where held-out rows gain by them, and take much of the weight only where they
gain much: a member as good as the centre is worth a small weight at no price, and a centre of one
member leaves altogether for :math:`\lambda / 2` nats. The certificate is that of Frank and Wolfe:
with g the gradient at v, no v is better by more than :math:`g \cdot v - \min_m g_m`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls
from scipy.special import logsumexp, softmax

from laconic._typing import Floats, Ints
from laconic.choose.tuning import STACK_PENALTY
from laconic.core.losses import Solution, WhyStopped

_TOL, _FINE = 1e-7, 1e-13
"""Relative gaps: the one that is asked for, far below what held-out rows can tell, and the one that
steps go on to while they gain, so that weights do not depend on how rows are written down."""

_MOST_STEPS = 100


@dataclass(frozen=True)
class StackProblem:
    """Log-probabilities (members, rows, classes), truth and weights of the rows, the centre."""

    logs: Floats
    y: Ints
    weight: Floats
    centre: Floats
    penalty: float = STACK_PENALTY

    def _away(self, v: Floats) -> Floats:
        """How far the members of the centre are from it."""
        return np.where(self.centre > 0.0, v - self.centre, 0.0)

    def value(self, v: Floats) -> float:
        """The penalised log loss."""
        scores = np.tensordot(v, self.logs, axes=1)
        own = scores[np.arange(len(self.y)), self.y]
        loss = float(self.weight @ (logsumexp(scores, axis=1) - own))
        return loss + 0.5 * self.penalty * float((self._away(v) ** 2).sum())

    def derivatives(self, v: Floats) -> tuple[Floats, Floats]:
        """Gradient and Hessian."""
        proba = softmax(np.tensordot(v, self.logs, axes=1), axis=1)
        mean = np.einsum("ik,mik->mi", proba, self.logs)
        own = self.logs[:, np.arange(len(self.y)), self.y]
        gradient = (mean - own) @ self.weight + self.penalty * self._away(v)
        spread = (self.logs - mean[:, :, None]) * np.sqrt(self.weight[:, None] * proba)
        flat = spread.reshape(len(self.logs), -1)
        hessian = flat @ flat.T
        hessian[np.diag_indices_from(hessian)] += self.penalty * (self.centre > 0.0)
        return gradient, hessian

    def on(self, rows: Ints) -> StackProblem:
        """The same problem on some of the rows."""
        return StackProblem(
            self.logs[:, rows], self.y[rows], self.weight[rows], self.centre, self.penalty
        )


def solve_stack(problem: StackProblem, start: Floats | None = None) -> Solution:
    """Weights of the members by Newton steps on the simplex, with their certificate.

    >>> y = np.array([0, 1, 1, 0, 1])
    >>> sure = np.where(y[:, None] == [0, 1], 0.9, 0.1)
    >>> blind = np.full((5, 2), 0.5)
    >>> problem = StackProblem(np.log([blind, sure]), y, np.ones(5), np.array([1.0, 0.0]), 0.1)
    >>> found = solve_stack(problem)
    >>> found.point.round(6).tolist()
    [0.0, 1.0]
    """
    v = problem.centre if start is None else start
    value, gap, n_steps = problem.value(v), np.inf, 0
    why: WhyStopped = "max_iter"
    while n_steps < _MOST_STEPS:
        gradient, hessian = problem.derivatives(v)
        gap = float(gradient @ v - gradient.min())
        if gap <= _FINE * max(value, 1.0):
            why = "gap"
            break
        towards = _quadratic_on_simplex(hessian, gradient, v) - v
        fall, length = float(gradient @ towards), 1.0
        now = problem.value(v + towards)
        while now > value + 1e-4 * length * fall and length > 1e-10:
            length /= 2.0
            now = problem.value(v + length * towards)
        if now >= value:
            why = "gap" if gap <= _TOL * max(value, 1.0) else "stalled"
            break
        v, value = v + length * towards, now
        n_steps += 1
    return Solution(v, value, gap, n_steps, why)


def _quadratic_on_simplex(hessian: Floats, gradient: Floats, v: Floats) -> Floats:
    """The least of the quadratic model at v over the simplex, by non-negative least squares.

    On the simplex |Ru - b|^2 = |Au|^2 with A = R - b 1', and the least of |Au|^2 + (1'u - 1)^2 over
    u >= 0 is a multiple of the least of |Au|^2 over the simplex (Lawson and Hanson, 1974).
    """
    ridge = 1e-9 * max(float(np.trace(hessian)) / len(v), 1e-300)
    factor = np.linalg.cholesky(hessian + ridge * np.eye(len(v))).T
    target = factor @ v - np.linalg.solve(factor.T, gradient)
    rows = factor - target[:, None]
    rows /= max(float(np.abs(rows).max()), 1e-300)
    found = nnls(np.vstack([rows, np.ones(len(v))]), np.append(np.zeros(len(v)), 1.0))[0]
    return np.asarray(found / found.sum())


def log_probabilities(proba: Floats, total: float) -> Floats:
    """Logarithms of probabilities that rows of so much weight can tell from zero."""
    least = 0.5 / (total + 1.0)
    return np.asarray(np.log(np.clip(proba, least, 1.0 - least)))


def stacked(logs: Floats, v: Floats) -> Floats:
    """Probabilities of the committee, from log-probabilities (members, rows, classes)."""
    return np.asarray(softmax(np.tensordot(v, logs, axes=1), axis=1))


def cross_fitted(
    problem: StackProblem, folds: Sequence[Ints], weights: Sequence[Floats | None]
) -> Floats:
    """Probabilities of the committee for each row, with weights from the rows of other folds."""
    proba = np.full(problem.logs.shape[1:], np.nan)
    for held_out, v in zip(folds, weights, strict=True):
        if v is not None:
            proba[held_out] = stacked(problem.logs[:, held_out], v)
    return proba


def fold_weights(
    problem: StackProblem, folds: Sequence[Ints], start: Floats
) -> list[Floats | None]:
    """For each fold, the weights that the rows of the others give; None where there are none.

    ``folds`` are the places of the rows of each fold; ``start`` are weights that only save time.
    """
    found: list[Floats | None] = []
    for held_out in folds:
        others = np.setdiff1d(np.arange(len(problem.y)), held_out)
        able = len(others) and len(held_out)
        found.append(solve_stack(problem.on(others), start).point if able else None)
    return found
