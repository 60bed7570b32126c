"""Newton's method for the plain multinomial likelihood on rows that stay where they are.

minimise over W (K x d), b (K)   |W|^2 / 2 + sum_i s_i (logsumexp(F_i) - F_iy),   F_i = W x_i + b

A pass sends a point and brings back the loss, its gradient and its Hessian; nothing of length n
leaves a block. The certificate is that of :mod:`laconic.linear.solvers.multinomial` where every row
counts: with P = softmax(F) and P' the probabilities that balance the classes,

    gap = sum_i s_i KL(P'_i, P_i) + |W - W_u|^2 / 2,   u_i = P'_i - e_y.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import logsumexp, softmax, xlogy

from laconic._typing import Floats, Ints
from laconic.core.losses import Solution, WhyStopped
from laconic.data.source import Block, Source, one_blas_thread
from laconic.linear.solvers.multinomial import balanced_flow, plain_slope
from laconic.linear.solvers.rows import no_less_than_tiny
from laconic.linear.tuning import LAST_STEPS

LENGTHS = 0.5 ** np.arange(1, 21)
"""Shorter steps that one pass tries when a full step does not deliver."""


@dataclass(frozen=True)
class _Place:
    """A point with the value, gradient and Hessian of the criterion, and what flows to and fro.

    ``flow[j, k]`` is the probability of class k, by weight, among rows of class j; its diagonal is
    zero.
    """

    W: Floats
    value: float
    gradient: Floats
    hessian: Floats
    flow: Floats


@dataclass(frozen=True)
class ClassRows:
    """Rows of ``source`` (matrix, class codes, weights), class k times ``scale[k]``."""

    source: Source
    scale: Floats
    n_columns: int
    fit_intercept: bool

    @property
    def n_classes(self) -> int:
        return len(self.scale)

    def at(self, W: Floats) -> _Place:
        scale = self.scale  # what travels holds no source
        loss, gradient, hessian, flow = self.source.sum(lambda block: _sums(block, W, scale))
        value = float(loss) + 0.5 * float((W[:, :-1] ** 2).sum())
        K, width = W.shape
        gradient[:, :-1] += W[:, :-1]
        block = hessian.reshape(K, width, K, width)
        inner, classes = np.arange(width - 1), np.arange(K)
        for k in range(K):
            block[k, inner, k, inner] += 1.0
        if self.fit_intercept:
            # the scores only know differences of intercepts: keep their sum where it is
            most = float(np.abs(block[:, -1, :, -1]).max()) or 1.0
            block[:, -1, :, -1] += most
            block[classes, -1, classes, -1] += 1e-9 * most
        else:
            gradient[:, -1] = 0.0
            block[:, -1] = 0.0
            block[:, :, :, -1] = 0.0
            block[classes, -1, classes, -1] = 1.0
        return _Place(W, value, gradient, hessian, flow)

    def gap(self, place: _Place) -> float:
        shape, W, scale = place.flow.shape, place.W, self.scale
        shrink = balanced_flow(place.flow) if self.fit_intercept else np.ones(shape)
        entropy, dual = self.source.sum(lambda block: _gap_sums(block, W, scale, shrink))
        apart = W[:, :-1] + dual[:, :-1]
        return float(entropy) + 0.5 * float((apart**2).sum())

    def values_along(self, W: Floats, step: Floats) -> Floats:
        scale = self.scale
        losses = self.source.sum(lambda block: _losses(block, W, step, scale))
        points = [W + length * step for length in LENGTHS]
        return np.asarray(losses + [0.5 * float((at[:, :-1] ** 2).sum()) for at in points])


def _labels(block: Block, scale: Floats) -> tuple[Ints, Floats]:
    assert block.y is not None
    assert block.weight is not None
    return block.y, no_less_than_tiny(block.weight * scale[block.y])


def _scores(block: Block, W: Floats) -> Floats:
    return np.asarray(block.X @ W[:, :-1].T) + W[:, -1]


def _sums(block: Block, W: Floats, scale: Floats) -> tuple[np.float64, Floats, Floats, Floats]:
    (y, s), F, K = _labels(block, scale), _scores(block, W), len(W)
    P = softmax(F, axis=1)
    loss = np.float64(s @ (logsumexp(F, axis=1) - F[np.arange(len(y)), y]))
    table = np.c_[block.X, np.ones(len(y))]
    width = table.shape[1]
    gradient = (plain_slope(F, y) * s[:, None]).T @ table
    hessian = np.empty((K, width, K, width))
    for k in range(K):
        for m in range(k + 1):
            bend = P[:, k] * ((k == m) - P[:, m]) * s
            hessian[k, :, m] = (table * bend[:, None]).T @ table
            hessian[m, :, k] = hessian[k, :, m].T
    flow = np.stack([s * (y == k) for k in range(K)]) @ P
    np.fill_diagonal(flow, 0.0)
    return loss, gradient, hessian.reshape(K * width, K * width), flow


def _gap_sums(block: Block, W: Floats, scale: Floats, shrink: Floats) -> tuple[np.float64, Floats]:
    y, s = _labels(block, scale)
    P, rows = softmax(_scores(block, W), axis=1), np.arange(len(y))
    moved = P * shrink[y]
    moved[rows, y] = 0.0
    moved[rows, y] = 1.0 - moved.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(P > 0, moved / P, 1.0)
    entropy = np.maximum(xlogy(moved, ratio).sum(axis=1), 0.0)
    moved[rows, y] -= 1.0
    dual = (moved * s[:, None]).T @ np.c_[block.X, np.ones(len(y))]
    return np.float64(s @ entropy), dual


def _losses(block: Block, W: Floats, step: Floats, scale: Floats) -> Floats:
    (y, s), F, change = _labels(block, scale), _scores(block, W), _scores(block, step)
    rows = np.arange(len(y))

    def loss(length: float) -> float:
        there = F + length * change
        return float(s @ (logsumexp(there, axis=1) - there[rows, y]))

    return np.array([loss(length) for length in LENGTHS])


def solve_scanned_multinomial(
    rows: ClassRows, *, tol: float, max_iter: int, start: Floats | None = None
) -> Solution:
    """All classes jointly; ``point`` is K x (d + 1), intercepts last and summing to zero.

    A step is one pass, the certificate another, made once the step promises to be the last.
    """
    W = np.zeros((rows.n_classes, rows.n_columns + 1)) if start is None else np.array(start)
    if not rows.fit_intercept:
        W[:, -1] = 0.0
    place, gap, n_iter = rows.at(W), np.inf, 0
    why: WhyStopped = "max_iter"
    while n_iter < max_iter:
        step = _newton_step(place)
        if -0.5 * float((step * place.gradient).sum()) <= tol * place.value:
            gap = rows.gap(place)
            if gap <= tol * place.value:
                why = "gap"
                break
        new = _moved(rows, place, step)
        if new is None:
            why = "stalled"
            break
        n_iter, place = n_iter + 1, new
    reached = place
    for _ in range(LAST_STEPS if why == "gap" else 0):
        # of quadratic gain: equal problems then end at equal coefficients
        new = rows.at(place.W + _newton_step(place))
        if new.value > place.value * (1.0 + 1e-14):
            break
        place = new
    # what was proved of the value before the last steps stands
    proved = max(gap - (reached.value - place.value), 0.0)
    gap = min(proved, rows.gap(place))
    return Solution(place.W, place.value, gap, n_iter, why, MappingProxyType({}))


def _newton_step(place: _Place) -> Floats:
    with one_blas_thread():
        flat = cho_solve(cho_factor(place.hessian), place.gradient.ravel())
    return np.asarray(-flat.reshape(place.W.shape))


def _moved(rows: ClassRows, place: _Place, step: Floats) -> _Place | None:
    """The place after a full step, or after the best shorter one; None when none is better."""
    new = rows.at(place.W + step)
    if new.value <= place.value * (1.0 + 1e-15):
        return new
    values = rows.values_along(place.W, step)
    best = int(np.argmin(values))
    return rows.at(place.W + LENGTHS[best] * step) if values[best] < place.value else None
