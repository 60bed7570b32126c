"""One convex problem of an additive model: its penalty, its losses, the certificate of a point.

The score is f(x) = b + sum_t s_t(x), each shape s_t = B_t g_t given by its values on the slots of
one column or on the cells of a grid of two, and the criterion is

    P(b, g) = sum_i c_i phi(f(x_i), y_i) + sum_t [ l_t |g_t| + g_t' D_t g_t / 2 ],

c_i the row weights (C times the sample weight), phi the logistic, truncated logistic or
multinomial loss. The basis B_t (see :mod:`laconic.additive.terms`) makes |g_t| the standard
deviation of the shape on the training rows and D_t, the roughness, diagonal. |g_t| is the
group-lasso penalty of Yuan and Lin (*JRSS B* 68, 2006): it removes whole terms.

With probabilities p_i as the dual point and th_t = sum_i c_i (y_i - p_i) z_it (z the coordinates of
the row), whenever sum_i c_i (y_i - p_i) = 0,

    P - min P <= sum_i c_i FY_i + sum_t [ pen_t(g_t) + pen_t*(th_t) - th_t'g_t ],

FY the Fenchel-Young loss; every summand is >= 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from scipy.optimize import nnls
from scipy.special import softmax, xlogy

from laconic._typing import Floats, Ints
from laconic.additive.terms import TermSet
from laconic.core.losses import TruncatedLogistic, fenchel_young

if TYPE_CHECKING:
    from laconic.additive._numba_rows import Rows, Terms


@dataclass(frozen=True)
class AdditivePenalty:
    """sum_t [ group_t |g_t| + sum_j diagonal_j g_tj^2 / 2 ]; points are (scores, coordinates).

    ``owner[j]`` is the term of coordinate j.
    """

    owner: Ints
    group: Floats
    diagonal: Floats

    def norms(self, point: Floats) -> Floats:
        """|g_t| of every term."""
        squares = (point**2).sum(axis=0)
        return np.sqrt(np.bincount(self.owner, squares, minlength=len(self.group)))

    def value(self, point: Floats) -> float:
        quadratic = 0.5 * float((point**2 @ self.diagonal).sum())
        return float(self.group @ self.norms(point)) + quadratic

    def conjugate(self, slope: Floats) -> Floats:
        """pen_t*(th_t) of every term, never too small.

        pen_t* is the least of (th - u)'D^-1 (th - u) / 2 over |u| <= group. The best u is
        th group / (d rho + group) for the rho that gives it length ``group``, the root of a scalar
        equation; u is shortened to the ball if the root is not exact, so the number is an upper
        bound. ``inf`` where a direction without ridge leaves the ball.
        """
        owner, n_terms = self.owner, len(self.group)
        squares = (slope**2).sum(axis=0)
        group, d = self.group[owner], self.diagonal
        over = np.bincount(owner, squares, minlength=n_terms) > self.group**2
        rho = np.zeros(n_terms)
        for _ in range(60):
            shrunk = d * rho[owner] + group
            with np.errstate(divide="ignore", invalid="ignore"):
                length = np.bincount(owner, squares / shrunk**2, minlength=n_terms)
                slide = np.bincount(owner, squares * d / shrunk**3, minlength=n_terms)
                # Newton on length^(-1/2) = 1, concave and increasing in rho: from the left it
                # never passes the root
                move = np.where(
                    over & (self.group > 0), (length - np.sqrt(length)) * np.sqrt(length), 0.0
                )
                move = np.where(slide > 0, move / np.sqrt(length) / slide, 0.0)
            rho = rho + np.maximum(move, 0.0)
            if (move <= 1e-12 * rho).all():
                break
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(group > 0, group / (d * rho[owner] + group), 0.0)
            size = np.sqrt(np.bincount(owner, squares * share**2, minlength=n_terms))
            share = share * np.minimum(1.0, np.where(size > 0, self.group / size, 1.0))[owner]
            rest = squares * (1.0 - share) ** 2
            price = np.where(rest > 0, 0.5 * rest / d, 0.0)
        return np.where(over, np.bincount(owner, price, minlength=n_terms), 0.0)


@dataclass(frozen=True)
class AdditiveProblem:
    """Terms, labels (class codes), row weights and penalties of one convex problem."""

    terms: TermSet
    y: Ints
    weight: Floats
    group: Floats
    diagonal: Floats
    loss: TruncatedLogistic = field(default_factory=TruncatedLogistic)
    n_classes: int = 2
    signs: Ints | None = None

    @property
    def monotone(self) -> Ints:
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
    weights = np.bincount(problem.y, problem.weight, minlength=problem.n_classes)
    b = best_constant(weights.astype(np.float64), problem.loss)
    scores = np.repeat(b[:, None], len(problem.y), axis=1)
    return AdditivePoint(b, np.zeros((len(b), problem.terms.n_coordinates)), scores)


def best_constant(class_weights: Floats, loss: TruncatedLogistic) -> Floats:
    """Scores without terms: the (clipped) log-odds of the weights of the classes."""
    share = np.maximum(class_weights / class_weights.sum(), 1e-12)
    if len(share) > 2:
        return np.asarray(np.log(share) - np.log(share).mean())
    low, high = max(loss.p_min, 1e-12), min(loss.p_max, 1 - 1e-12)
    p = min(max(float(share[1]), low), high)
    return np.array([np.log(p) - np.log1p(-p)])


class Labelled(Protocol):
    """Class codes and weights of rows, and their loss."""

    @property
    def y(self) -> Ints: ...

    @property
    def weight(self) -> Floats: ...

    @property
    def loss(self) -> TruncatedLogistic: ...

    @property
    def n_scores(self) -> int: ...


class LossState:
    """Slopes and curvatures of the rows at the current scores."""

    def __init__(self, problem: Labelled, blur: float) -> None:
        self.problem = problem
        self.blur = blur
        shape = (problem.n_scores, len(problem.y))
        self.slopes, self.curves = np.empty(shape), np.empty(shape)
        low, high = problem.loss.positions
        heights, floors = problem.loss.heights, problem.loss.floors
        finite = [-low if heights[0] > 0 else 0.0, high if heights[1] > 0 else 0.0]
        self.zone = np.array([finite[0], heights[0], floors[0], finite[1], heights[1], floors[1]])

    def loss(self, scores: Floats) -> float:
        from laconic.additive._numba_rows import binary_slopes, multinomial_slopes

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


def slopes_by_term(terms: TermSet, values: Floats, wanted: Ints | None = None) -> Floats:
    """sum_i values[k, i] z_i for every coordinate (of the wanted terms)."""
    from laconic.additive._numba_rows import coordinate_sums

    out = np.zeros((len(values), terms.n_coordinates))
    every = np.arange(len(terms.terms)) if wanted is None else wanted
    coordinate_sums(*terms.packed, every, values, out)
    return out


def largest_group_penalty(problem: AdditiveProblem, weights: Floats) -> float:
    """Least lambda for which every term is zero when group = lambda * weights."""
    slopes = slopes_by_term(problem.terms, loss_slopes(problem, null_point(problem).scores)[0])
    norms = problem.penalty.norms(slopes)
    some = problem.terms.rank > 0
    return float((norms[some] / weights[some]).max(initial=0.0))


class CurvatureBlocks(NamedTuple):
    """Second derivatives of the loss inside each term of ``work``: Z_t' h Z_t, class after class.

    Term w has its (classes, rank, rank) numbers from ``start[w]`` to ``start[w + 1]`` of ``H``.
    """

    work: Ints
    H: Floats
    start: Ints

    def of(self, w: int, n_scores: int, rank: int) -> Floats:
        """The blocks of the term at place w: (classes, rank, rank)."""
        return self.H[self.start[w] : self.start[w + 1]].reshape(n_scores, rank, rank)


def curvature_blocks(rows: Rows, terms: Terms, work: Ints, curves: Floats) -> CurvatureBlocks:
    """The blocks of the terms in ``work`` for curvatures (scores, rows)."""
    from laconic.additive._numba_terms import curvature_blocks as fill

    start = np.concatenate([[0], np.cumsum(len(curves) * terms.rank[work] ** 2)]).astype(np.int64)
    blocks = CurvatureBlocks(work, np.empty(start[-1]), start)
    pad = int((terms.size[work] + terms.width[work] + 2).max(initial=2))
    fill(rows, terms, curves, blocks, np.empty(pad * pad))
    return blocks


def balance(p: Floats, y: Floats, weight: Floats) -> tuple[float, Floats]:
    """(eps, q): (1 - eps) p + eps q satisfies sum_i c_i (y_i - p_i) = 0 for every class.

    ``p`` and ``y`` (one-hot) are classes x rows; the correction of class rescaling, for any
    number of classes, and small when the intercept is nearly optimal.
    """
    return balanced_shares(y @ weight, p @ weight, float(weight.sum()))


def balanced_shares(wanted: Floats, got: Floats, total: float) -> tuple[float, Floats]:
    """The same from the weights of the classes: those of the labels and those of the p."""
    with np.errstate(divide="ignore", invalid="ignore"):
        over = np.where(got > wanted, 1.0 - wanted / got, 0.0)
    # the least mixing that leaves no class with more than it has: q then fills up the rest
    eps = float(over.max())
    if eps <= 0.0:
        return 0.0, wanted / total
    return eps, np.maximum(wanted - (1.0 - eps) * got, 0.0) / (eps * total)


def row_gap(scores: Floats, p: Floats, y: Ints, weight: Floats, loss: TruncatedLogistic) -> float:
    """sum_i c_i FY_i: the price of the dual probabilities ``p`` (classes x rows) at the scores."""
    if len(scores) == 1:
        sign = np.where(y > 0, 1.0, -1.0)
        u = np.clip(p[1], 0.0, 1.0) - (y > 0)
        price = fenchel_young(loss, scores[0], u, sign)
        return float(weight @ np.where(weight > 0, price, 0.0))
    q = softmax(scores, axis=0)
    # for the multinomial loss the Fenchel-Young sum is the divergence KL(p || softmax)
    terms = xlogy(p, p) - xlogy(p, np.maximum(q, 1e-300))
    return float(weight @ np.maximum(terms.sum(axis=0), 0.0))


def certified_gap(
    problem: AdditiveProblem, point: AdditivePoint, slopes: Floats, theta: Floats | None = None
) -> float:
    """Upper bound on the distance of the criterion from its minimum (see the head of the file).

    ``slopes`` are c_i (p_i - y_i) for the dual probabilities p; ``theta`` their sums by term.
    """
    weight, hot = problem.weight, problem.one_hot()
    safe = np.where(weight > 0, weight, 1.0)
    if problem.n_scores == 1:
        # any p in the simplex certifies: the slopes give the one that is exact at the optimum
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
    rows = row_gap(point.scores, p, problem.y, weight, problem.loss)
    return rows + penalty_gap(problem, point.coordinates, theta)


def penalty_gap(problem: AdditiveProblem, g: Floats, theta: Floats) -> float:
    """sum_t [ pen_t(g_t) + pen_t*(th_t) - th_t'g_t ] for a balanced dual point."""
    penalty, owner = problem.penalty, problem.terms.owner
    T = len(problem.group)
    inner = np.bincount(owner, (theta * g).sum(axis=0), minlength=T)
    bends = np.bincount(owner, 0.5 * (g**2).sum(axis=0) * problem.diagonal, minlength=T)
    lifted = _lifted(problem, g, theta)
    parts = problem.group * penalty.norms(g) + bends + penalty.conjugate(lifted) - inner
    # each part is a Fenchel-Young sum, below zero by rounding alone
    return float(np.maximum(parts, 0.0).sum())


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
