"""Kernel models on a basis of few rows, certified on the exact kernel.

The basis is found by pivoted Cholesky, in blocks: rows B are picked greedily by what the earlier
ones leave of k(x, x). With K_BB = LL' the features of a row are L^-1 k(B, x);
K = features features' + R with R positive semi-definite, whose diagonal is known. A function w of
these features is sum_j c_j k(x_j, .) over the basis, with its exact norm, so that its objective is
exact. Only the dual point pays for the rest: with slopes u_i, beta_i = -s_i u_i and
w_u = features'beta,

    gap = sum_i s_i (phi(z_i) + phi*(u_i) - u_i z_i) + |w - w_u|^2 / 2 + beta'R beta / 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.sparse import issparse

from laconic._typing import Floats, Ints
from laconic.core.losses import Solution
from laconic.kernel.kernels import Kernel, KernelRows
from laconic.kernel.newton import FeatureSpace, Point, anneal, descend
from laconic.kernel.rounded import LossRows
from laconic.kernel.tuning import (
    COARSE_WIDTH,
    COARSEST_SPAN_ROWS,
    REMAINDER_CHUNK,
    SAMPLE,
    SPREAD,
    STRIPE,
)


@dataclass
class Span:
    """Basis rows, their Cholesky factor, features of every row and what they leave over.

    ``raw`` features are the values k(x, B), not yet whitened.
    """

    basis: Ints
    lower: Floats
    features: NDArray[Any]
    left: Floats
    raw: bool = False

    @property
    def rank(self) -> int:
        return len(self.basis)

    def coefficients(self, w: Floats) -> Floats:
        """c with sum_j c_j k(x_j, .) the function whose feature weights are ``w``."""
        found = solve_triangular(self.lower, w, lower=True, trans=1, check_finite=False)
        return np.asarray(found)


def whiten(lower: Floats, values: Floats) -> Floats:
    """Rows k(x, B) turned into features, C-ordered."""
    found = solve_triangular(lower, values.T, lower=True, check_finite=False)
    return np.ascontiguousarray(found.T)


def find_span(rows: KernelRows, most: int, least: float, *, patience: float = np.inf) -> Span:
    """Greedy basis until every row keeps at most ``least`` of itself, or ``most`` rows are in.

    A finite ``patience`` stops the search early: when a sample of the rows needs the whole basis
    (``left`` is infinite then), or after the first round, when what is left over on average exceeds
    it; the basis found so far is returned.
    """
    n = rows.n_rows
    diagonal = rows.diagonal
    candidates = np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.int64))
    chosen, lower = _pivots(rows.block(candidates, candidates), min(most, len(candidates)), least)
    basis = candidates[chosen]
    if len(basis) == most < n and np.isfinite(patience):
        # a sample alone takes up all rows allowed: hopeless, and known before any other row is read
        return Span(basis, lower, np.zeros((0, most)), np.full(n, np.inf))
    # K_BB = LL' was factored in pivoting: L^-1 k(B, x) are coordinates in an orthonormal basis
    features = whiten(lower, rows.block(slice(None), basis))
    left = _left_over(diagonal, features)
    while len(basis) < min(most, n) and float(left.max()) > least:
        if float(left.mean()) > patience:
            break
        span = Span(basis, lower, features, left)
        wider = _extended(rows, span, most, least)
        if wider.rank == span.rank:
            break
        basis, lower, features, left = wider.basis, wider.lower, wider.features, wider.left
    return Span(basis, lower, features, left)


def _extended(rows: KernelRows, span: Span, most: int, least: float) -> Span:
    """The basis with rows added among those that are approximated worst."""
    size = min(SAMPLE, rows.n_rows)
    # sorted, so that ties do not depend on how the selection partitions
    worst = np.sort(np.argpartition(-span.left, size - 1)[:size])
    F = span.features[worst]
    rest = rows.block(worst, worst) - F @ F.T
    chosen, corner = _pivots(rest, min(most - span.rank, size), least)
    if len(chosen) == 0:
        return span
    added = worst[chosen]
    side = span.features[added]
    fresh = whiten(corner, rows.block(slice(None), added) - span.features @ side.T)
    k, extra = span.rank, len(added)
    lower = np.zeros((k + extra, k + extra))
    lower[:k, :k], lower[k:, :k], lower[k:, k:] = span.lower, side, corner
    features = np.ascontiguousarray(np.hstack([span.features, fresh]))
    left = _left_over(rows.diagonal, features)
    return Span(np.concatenate([span.basis, added]), lower, features, left)


def _pivots(K: Floats, most: int, least: float) -> tuple[Ints, Floats]:
    from laconic.kernel._numba import greedy_pivots

    factor = np.zeros((most, len(K)))
    places = np.zeros(most, np.int64)
    # below this a pivot is rounding noise
    floor = max(least, 1e-12 * float(np.diagonal(K).max(initial=0.0)))
    rank = greedy_pivots(np.ascontiguousarray(K), most, floor, factor, places)
    places = places[:rank]
    return places, np.tril(factor[:rank, places].T)


def _left_over(diagonal: Floats, features: Floats) -> Floats:
    return np.asarray(np.maximum(diagonal - np.einsum("ij,ij->i", features, features), 0.0))


class _Values:
    """k(x, points) for one block of rows after the other, into memory that is there."""

    def __init__(self, kernel: Kernel, points: Any) -> None:
        self.kernel, self.points = kernel, points
        self.gaussian = kernel.name == "rbf" and kernel.function is None and not issparse(points)
        if self.gaussian:
            self._origin = points.mean(axis=0)
            centred = points - self._origin
            self._right = 2.0 * kernel.gamma * np.ascontiguousarray(centred.T)
            self._sizes = -kernel.gamma * np.einsum("ij,ij->i", centred, centred)
            self._products = np.empty((STRIPE, len(points)))

    def __call__(self, part: Any, out: NDArray[Any]) -> None:
        if not self.gaussian or issparse(part):
            out[:] = self.kernel.between(part, self.points, compiled=True)
            return
        from laconic.kernel._numba import add_borders, exponential, exponential_single

        centred = part - self._origin
        lengths = -self.kernel.gamma * np.einsum("ij,ij->i", centred, centred)
        products = np.dot(centred, self._right, out=self._products[: len(centred)])
        add_borders(products, lengths, self._sizes, out)
        # values are rounded to single precision anyway
        (exponential if out.dtype == np.float64 else exponential_single)(out.reshape(-1))


def landmark_span(
    kernel: Kernel, table: Any, landmarks: Any, cache_bytes: float, *, leave_over: bool = True
) -> tuple[Span, NDArray[np.int64]]:
    """Features of every row on given points, and which of the points they use.

    Points that the others already span are left out. The features are in single precision where
    double would not fit into ``cache_bytes``; they are filled block by block. Without
    ``leave_over`` (what is left of each row is then unknown) they stay kernel values where the
    points are far enough apart for that, which saves the whitening of every row.
    """
    K = kernel.between(landmarks, landmarks)
    used, lower = _pivots(0.5 * (K + K.T), len(K), 1e-10 * float(np.diagonal(K).max()))
    n, points = table.shape[0], landmarks[used]
    dtype = np.float64 if 8.0 * n * len(used) <= cache_bytes else np.float32
    inverse = solve_triangular(lower, np.eye(len(used)), lower=True, check_finite=False)
    raw = not leave_over and float(np.linalg.norm(inverse)) < SPREAD
    features = np.empty((n, len(used)), dtype)
    left = np.empty(n)
    fill = _Values(kernel, points)
    room = np.empty((STRIPE, len(used)))
    for start in range(0, n, STRIPE):
        here = slice(start, min(start + STRIPE, n))
        if raw:
            fill(table[here], features[here])
            continue
        values = room[: here.stop - start]
        fill(table[here], values)
        whitened = whiten(lower, values)
        left[here] = _left_over(kernel.diagonal(table[here]), whitened)
        features[here] = whitened
    return Span(np.arange(len(used)), lower, features, left, raw), used


def solve_span(
    kernel: KernelRows | None,
    rows: LossRows,
    span: Span,
    *,
    fit_intercept: bool,
    tol: float,
    max_iter: int,
) -> Solution:
    """Minimise over the functions of a span; ``kernel`` None leaves R out of the certificate.

    ``Solution.point`` is (w, b); ``details`` holds ``slopes`` (weighted, balanced), ``scores``,
    ``on_kink`` and ``remainder`` (the part beta'R beta / 2 of the gap).
    """
    space = FeatureSpace(span.features, fit_intercept, span.lower if span.raw else None)
    point, n_iter = _begin(space, rows, fit_intercept, max_iter)
    # without a kernel nothing is left out of the certificate
    part = 0.5 if kernel is not None else 0.9
    found = anneal(space, rows, point, tol=tol, max_iter=max_iter, done=n_iter, part=part)
    return _with_remainder(kernel, span, found, tol, rows)


def _begin(
    space: FeatureSpace, rows: LossRows, fit_intercept: bool, max_iter: int
) -> tuple[Point, int]:
    """A start from one row in 4, 16, ...: their fit costs little and is nearly right."""
    w = np.zeros(space.features.shape[1])
    b = rows.best_constant() if fit_intercept else 0.0
    fewest = max(COARSEST_SPAN_ROWS, 2 * space.features.shape[1])
    strides = [4**k for k in range(1, 8) if rows.n_rows // 4**k >= fewest]
    n_iter = 0
    for stride in reversed(strides):
        some = np.arange(0, rows.n_rows, stride)
        part = rows.subset(some, float(stride))
        coarse = space.thinned(stride)
        here = coarse.at(w, b)
        half = np.full(len(some), 0.5)
        value = 0.5 * here.norm + part.value(here.z)
        here, done = descend(
            coarse, part, here, width=COARSE_WIDTH, share=half, enough=4e-3 * value,
            max_iter=max_iter,
        )  # fmt: skip
        n_iter += done
        w, b = here.coef, here.b
    return space.at(w, b), n_iter


def _with_remainder(
    kernel: KernelRows | None, span: Span, found: Solution, tol: float, rows: LossRows
) -> Solution:
    slope = found.details["slopes"]
    remainder = 0.0
    if kernel is not None:
        room = tol * max(found.value, rows.least) - found.gap
        remainder = _remainder(kernel, span, slope, room)
    gap = found.gap + remainder
    why = found.why_stopped
    if why == "gap" and gap > tol * max(found.value, rows.least):
        why = "stalled"
    details = {
        "slopes": slope,
        "scores": found.details["scores"],
        "on_kink": rows.on_ramp(slope),
        "remainder": remainder,
    }
    point = np.append(found.point.coef, found.point.b)
    return Solution(point, found.value, gap, found.n_iter, why, MappingProxyType(details))


def _remainder(kernel: KernelRows, span: Span, slope: Floats, room: float) -> float:
    """beta'R beta / 2: a bound from the diagonal of R where that is enough, else exactly."""
    bound = 0.5 * float(np.abs(slope) @ np.sqrt(span.left)) ** 2
    if bound <= room:
        return bound
    used = np.flatnonzero(slope)
    beta = slope[used]
    total = 0.0
    for first in range(0, len(used), REMAINDER_CHUNK):
        left = slice(first, first + REMAINDER_CHUNK)
        here = beta[left]
        for second in range(0, first + 1, REMAINDER_CHUNK):
            right = slice(second, second + REMAINDER_CHUNK)
            K = kernel.block(used[left], used[right])
            K -= span.features[used[left]] @ span.features[used[right]].T
            total += (1.0 if second == first else 2.0) * float(here @ (K @ beta[right]))
    return 0.5 * max(total, 0.0)
