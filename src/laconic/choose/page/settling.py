r"""The last fit of a page: one convex problem, taught by the long sum, with its certificate.

With P the long sum's probabilities of the rows of a lesson, q those of a page whose entries have
the values :math:`\theta`, and c the values that shortening left them with,

.. math:: J(\theta) = \frac{1}{\sum_i w_i} \sum_i w_i \sum_k P_{ik} \log \frac{P_{ik}}
          {q_{ik}(\theta)} + \frac{1}{2} \sum_j r_j (\theta_j - c_j)^2

is what the page strays by in nats a row, with a little ridge for entries that no row tells apart.
It is the log loss on labels that are softened altogether. Shapes that never fall go on to do so
(nor do those that never rise), and lines keep their sign: the values stay in a cone C.
Since the first sum is convex, for any point with gradient g

.. math:: J(\theta) - \min_C J \le - \min_{\theta' \in C}
          \Big[ g \cdot (\theta' - \theta) + \frac{1}{2} \sum_j r_j (\theta'_j - \theta_j)^2 \Big],

whose right side is an isotonic regression for each shape: an exact certificate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.linalg import cholesky, solve, solve_triangular
from scipy.optimize import lsq_linear
from scipy.special import log_softmax
from sklearn.isotonic import isotonic_regression

from laconic._typing import Floats
from laconic.core.losses import Solution, WhyStopped

TOL, LEAST = 1e-6, 1e-12
"""Gap that is asked for: a millionth of the objective, or nats a row that are rounding."""
_FINE = 1e-6
"""Part of it that steps go on to while they gain, so that no order of rows moves the values."""

_MOST_STEPS = 30


def log_probabilities_of(scores: Floats) -> Floats:
    """(rows, classes) from scores that are log-odds, one column, or log-probabilities.

    >>> np.exp(log_probabilities_of(np.array([[0.0], [2.0]]))).round(3).tolist()
    [[0.5, 0.5], [0.119, 0.881]]
    """
    if scores.shape[1] == 1:
        scores = np.hstack([np.zeros_like(scores), scores])
    return np.asarray(log_softmax(scores, axis=1))


@dataclass(frozen=True)
class Cone:
    """Neighbouring entries whose values never fall (``sign`` 1) or never rise (-1).

    ``line``: one entry that keeps its sign.
    """

    start: int
    end: int
    sign: float
    line: bool = False

    def nearest(self, values: Floats, weight: Floats) -> Floats:
        """Its point of least weighted squares."""
        own = values[self.start : self.end]
        if self.line:
            return np.asarray(self.sign * np.maximum(self.sign * own, 0.0))
        up = self.sign > 0.0
        found = isotonic_regression(own, sample_weight=weight[self.start : self.end], increasing=up)
        return np.asarray(found, dtype=np.float64)


@dataclass(frozen=True)
class PageProblem:
    """What the entries of a page should say of some rows.

    ``designs`` holds, for each score, the rows by its entries; ``said`` the log-probabilities of
    the long sum, ``weight`` those of the rows, which sum to one.
    """

    designs: tuple[Floats, ...]
    said: Floats
    weight: Floats
    centre: Floats
    ridge: Floats
    cones: tuple[Cone, ...] = ()

    @property
    def _parts(self) -> list[slice]:
        ends = np.cumsum([0, *(X.shape[1] for X in self.designs)])
        return [slice(a, b) for a, b in pairwise(ends)]

    def _says(self, values: Floats) -> Floats:
        scores = [X @ values[own] for X, own in zip(self.designs, self._parts, strict=True)]
        return log_probabilities_of(np.stack(scores, axis=1))

    def value(self, values: Floats) -> float:
        """J of the values."""
        # a step may be so long that nothing of it is a number: a shorter one is
        with np.errstate(over="ignore", invalid="ignore"):
            strays = (np.exp(self.said) * (self.said - self._says(values))).sum(axis=1)
            return float(self.weight @ strays + 0.5 * self.ridge @ (values - self.centre) ** 2)

    def gradient(self, values: Floats) -> Floats:
        """Slope of J."""
        first = self.said.shape[1] - len(self.designs)
        more = (np.exp(self._says(values)) - np.exp(self.said))[:, first:]
        parts = [X.T @ (self.weight * more[:, k]) for k, X in enumerate(self.designs)]
        return np.concatenate(parts) + self.ridge * (values - self.centre)

    def hessian(self, values: Floats) -> Floats:
        """Curvature of J."""
        first = self.said.shape[1] - len(self.designs)
        q = np.exp(self._says(values))[:, first:]
        H = np.empty((len(values), len(values)))
        for k, own in enumerate(self._parts):
            for j, other in enumerate(self._parts[: k + 1]):
                curve = self.weight * q[:, k] * (float(j == k) - q[:, j])
                block = self.designs[k].T @ (curve[:, None] * self.designs[j])
                H[own, other], H[other, own] = block, block.T
        H[np.diag_indices_from(H)] += self.ridge
        return H

    def allowed(self, values: Floats) -> Floats:
        """The nearest values in the cone, by the ridge."""
        found = values.copy()
        for cone in self.cones:
            found[cone.start : cone.end] = cone.nearest(values, self.ridge)
        return found

    def gap(self, values: Floats) -> float:
        """J of the values less its minimum is no larger."""
        g = self.gradient(values)
        with np.errstate(over="ignore", invalid="ignore"):
            away = self.allowed(values - g / self.ridge) - values
            less = -float(g @ away + 0.5 * self.ridge @ away**2)
        return max(less, 0.0) if np.isfinite(less) else np.inf


def settle(problem: PageProblem, start: Floats) -> Solution:
    """Newton steps inside the cone, each along the least of the quadratic model there.

    >>> X = np.column_stack([np.ones(4), [0.0, 1.0, 2.0, 3.0]])
    >>> said = log_probabilities_of((X @ [0.5, -1.0])[:, None])
    >>> problem = PageProblem((X,), said, np.full(4, 0.25), np.zeros(2), np.full(2, 1e-9))
    >>> found = settle(problem, np.zeros(2))
    >>> found.point.round(4).tolist(), found.converged
    ([0.5, -1.0], True)
    """
    values = problem.allowed(start)
    now, gap, n_steps = problem.value(values), problem.gap(values), 0
    why: WhyStopped = "max_iter"
    while n_steps < _MOST_STEPS:
        asked = max(TOL * now, LEAST)
        if gap <= _FINE * asked:
            why = "gap"
            break
        towards = _step(problem, values)
        fall, length = float(problem.gradient(values) @ towards), 1.0
        after = problem.value(values + towards)
        # a certified page is not worth more than a few tries: what is left to gain is rounding
        least = 1e-2 if gap <= asked else 1e-10
        while not after <= now + 1e-4 * length * fall and length > least:
            length /= 2.0
            after = problem.value(values + length * towards)
        # rounding must not leave the cone
        there = problem.allowed(values + length * towards)
        if not after < now or not problem.value(there) < now:
            why = "gap" if gap <= asked else "stalled"
            break
        values, n_steps = there, n_steps + 1
        now, gap = problem.value(values), problem.gap(values)
    return Solution(values, now, gap, n_steps, why)


def _step(problem: PageProblem, values: Floats) -> Floats:
    """From the values to the least of the quadratic model in the cone."""
    H, g = problem.hessian(values), problem.gradient(values)
    unit = 1.0 / np.sqrt(H.diagonal())
    scaled = unit[:, None] * H * unit
    free = -unit * solve(scaled, unit * g, assume_a="pos")
    inside = problem.allowed(values + free)
    if np.array_equal(inside, values + free):
        return np.asarray(free)
    return _step_in_cone(H, g, values, problem.cones)


def _step_in_cone(H: Floats, g: Floats, values: Floats, cones: Sequence[Cone]) -> Floats:
    """The same where the free one leaves the cone: increments of a shape are bounded by zero."""
    n = len(values)
    T, least = np.eye(n), np.full(n, -np.inf)  # values are T times increments
    for cone in cones:
        own = slice(cone.start, cone.end)
        T[own, own] = cone.sign * np.tril(np.ones((cone.end - cone.start,) * 2))
        T[own, cone.start] = cone.sign if cone.line else 1.0
        least[cone.start + (0 if cone.line else 1) : cone.end] = 0.0
    G = T.T @ H @ T
    unit = 1.0 / np.sqrt(G.diagonal())
    factor = cholesky(unit[:, None] * G * unit)  # upper
    begin = np.linalg.solve(T, values) / unit
    target = factor @ begin - solve_triangular(factor, unit * (T.T @ g), trans=1)
    found = lsq_linear(factor, target, (least, np.full(n, np.inf)), method="bvls").x
    return np.asarray(T @ (unit * found) - values)
