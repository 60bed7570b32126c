"""One convex problem of an additive model: its data, its slopes, the certificate of a point."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from laconic._typing import Floats
from laconic.additive.terms import AdditivePenalty, TermSet, balance, row_gap
from laconic.core.gray_zone import TruncatedLogistic


@dataclass(frozen=True)
class AdditiveProblem:
    """Terms, labels (class codes), row weights and penalties of one convex problem."""

    terms: TermSet
    y: NDArray[np.int64]
    weight: Floats
    group: Floats
    diagonal: Floats
    loss: TruncatedLogistic = field(default_factory=TruncatedLogistic)
    n_classes: int = 2
    signs: NDArray[np.int64] | None = None

    @property
    def monotone(self) -> NDArray[np.int64]:
        """+1 (increasing), -1 (decreasing) or 0 for every term."""
        if self.signs is None:
            return np.zeros(len(self.group), dtype=np.int64)
        return self.signs

    def rises(self, t: int) -> Floats:
        """Rows whose product with the coordinates of a monotone term must be >= 0."""
        knots = self.terms.terms[t].shape.basis[: self.terms.terms[t].n_knots]
        return np.asarray(self.monotone[t] * np.diff(knots, axis=0))

    @property
    def n_scores(self) -> int:
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def penalty(self) -> AdditivePenalty:
        return AdditivePenalty(self.terms.owner, self.group, self.diagonal)

    @property
    def kinked(self) -> bool:
        return max(self.loss.heights) > 0.0

    def one_hot(self) -> Floats:
        hot = np.zeros((self.n_classes, len(self.y)))
        hot[self.y, np.arange(len(self.y))] = 1.0
        return hot


@dataclass(frozen=True)
class AdditivePoint:
    """Intercepts (scores,), coordinates (scores, coordinates) and the scores of the rows."""

    intercept: Floats
    coordinates: Floats
    scores: Floats


def null_point(problem: AdditiveProblem) -> AdditivePoint:
    """All terms zero, intercept at the (clipped) log-odds of the class weights."""
    K = problem.n_scores
    share = np.bincount(problem.y, problem.weight, minlength=problem.n_classes)
    share = np.maximum(share / share.sum(), 1e-12)
    if K == 1:
        low, high = max(problem.loss.p_min, 1e-12), min(problem.loss.p_max, 1 - 1e-12)
        p = min(max(float(share[1]), low), high)
        b = np.array([np.log(p) - np.log1p(-p)])
    else:
        b = np.log(share) - np.log(share).mean()
    scores = np.repeat(b[:, None], len(problem.y), axis=1)
    return AdditivePoint(b, np.zeros((K, problem.terms.n_coordinates)), scores)


class LossState:
    """Slopes and curvatures of the rows at the current scores."""

    def __init__(self, problem: AdditiveProblem, blur: float) -> None:
        self.problem = problem
        self.blur = blur
        shape = (problem.n_scores, len(problem.y))
        self.slopes, self.curves = np.empty(shape), np.empty(shape)
        low, high = problem.loss.positions
        heights, floors = problem.loss.heights, problem.loss.floors
        finite = [-low if heights[0] > 0 else 0.0, high if heights[1] > 0 else 0.0]
        self.zone = np.array([finite[0], heights[0], floors[0], finite[1], heights[1], floors[1]])

    def loss(self, scores: Floats) -> float:
        from laconic.additive._numba_solver import binary_slopes, multinomial_slopes

        p = self.problem
        if p.n_scores == 1:
            return float(
                binary_slopes(
                    scores[0], p.y, p.weight, self.zone, self.blur, self.slopes[0], self.curves[0]
                )
            )
        return float(multinomial_slopes(scores, p.y, p.weight, self.slopes, self.curves))


def loss_slopes(problem: AdditiveProblem, scores: Floats) -> tuple[Floats, Floats]:
    """Slopes and curvatures of the weighted loss at the scores."""
    state = LossState(problem, 1e-9)
    state.loss(scores)
    return state.slopes, state.curves


def slopes_by_term(
    terms: TermSet, values: Floats, wanted: NDArray[np.int64] | None = None
) -> Floats:
    """sum_i values[k, i] z_i for every coordinate (of the wanted terms)."""
    from laconic.additive._numba_rows import coordinate_sums

    rows, packed = terms.packed
    out = np.zeros((len(values), terms.n_coordinates))
    coordinate_sums(
        rows, packed, np.arange(len(terms.terms)) if wanted is None else wanted, values, out
    )
    return out


def largest_group_penalty(problem: AdditiveProblem, weights: Floats) -> float:
    """Least lambda for which every term is zero when group = lambda * weights."""
    slopes = slopes_by_term(problem.terms, loss_slopes(problem, null_point(problem).scores)[0])
    norms = problem.penalty.norms(slopes)
    some = problem.terms.rank > 0
    return float((norms[some] / weights[some]).max(initial=0.0))


def certified_gap(
    problem: AdditiveProblem, point: AdditivePoint, slopes: Floats, theta: Floats | None = None
) -> float:
    """Upper bound on the distance of the criterion from its minimum (see criteria.additive).

    ``slopes`` are c_i (p_i - y_i) for the dual probabilities p; ``theta`` their sums by term.
    """
    weight, hot = problem.weight, problem.one_hot()
    safe = np.where(weight > 0, weight, 1.0)
    if problem.n_scores == 1:
        p1 = np.clip(hot[1] + slopes[0] / safe, 0.0, 1.0)
        p = np.stack([1.0 - p1, p1])
        hot_scores = hot[1:]
    else:
        p = np.clip(hot + slopes / safe, 0.0, 1.0)
        hot_scores = hot
    if theta is None:
        theta = slopes_by_term(problem.terms, slopes)
    theta = -theta
    eps, q = balance(p, hot, weight)
    if eps > 0.0:
        p = (1.0 - eps) * p + eps * q[:, None]
        share = q[1:] if problem.n_scores == 1 else q
        drift = slopes_by_term(problem.terms, weight * (hot_scores - share[:, None]))
        theta = (1.0 - eps) * theta + eps * drift
    penalty = problem.penalty
    rows = row_gap(point.scores, p, problem.y, weight, problem.loss)
    g = point.coordinates
    owner = problem.terms.owner
    T = len(problem.group)
    inner = np.bincount(owner, (theta * g).sum(axis=0), minlength=T)
    bends = np.bincount(owner, 0.5 * (g**2).sum(axis=0) * problem.diagonal, minlength=T)
    lifted = _lifted(problem, g, theta)
    parts = problem.group * penalty.norms(g) + bends + penalty.conjugate(lifted) - inner
    return rows + float(np.maximum(parts, 0.0).sum())


def _lifted(problem: AdditiveProblem, g: Floats, theta: Floats) -> Floats:
    """th + R'nu with nu >= 0 for the monotone terms R g >= 0.

    On the cone th'g <= (th + R'nu)'g, so the conjugate without constraint at any such point
    bounds the one with it; nu is the multiplier that optimality asks for.
    """
    if not problem.monotone.any():
        return theta
    out = theta.copy()
    for t in np.flatnonzero(problem.monotone):
        part = problem.terms.owner == t
        rises, own = problem.rises(int(t)), g[0, part]
        if not len(rises) or not part.any():
            continue
        size = float(np.sqrt(own @ own))
        wanted = problem.diagonal[part] * own
        if size > 0:
            wanted = wanted + problem.group[t] * own / size
        out[0, part] += rises.T @ nnls(rises.T, wanted - theta[0, part])[0]
    return out
