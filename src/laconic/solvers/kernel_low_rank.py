"""Kernel models on a basis of few rows, certified on the exact kernel.

With K = FF' + R (:mod:`laconic.solvers.kernel_span`) a function w of the features F is a function
of the exact kernel's space with the same norm, so that its objective is exact. Only the dual point
pays for the rest: with slopes u_i, beta_i = -s_i u_i and w_u = F'beta,

    gap = sum_i s_i (phi(z_i) + phi*(u_i) - u_i z_i) + |w - w_u|^2 / 2 + beta'R beta / 2.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from laconic.criteria.kernels import KernelRows
from laconic.solvers.kernel_anneal import COARSE_WIDTH, anneal
from laconic.solvers.kernel_newton import FeatureSpace, Point, best_constant, descend
from laconic.solvers.kernel_rows import LossRows
from laconic.solvers.kernel_span import Span
from laconic.solvers.solution import Solution

Floats = NDArray[np.float64]

_CHUNK = 1_024
_COARSEST = 400


def solve_span(
    kernel: KernelRows | None,
    rows: LossRows,
    span: Span,
    *,
    fit_intercept: bool,
    tol: float,
    max_iter: int,
    start: Floats | None = None,
) -> Solution:
    """Minimise over the functions of a span; ``kernel`` None leaves R out of the certificate.

    ``Solution.point`` is (w, b); ``details`` holds ``slopes`` (weighted, balanced), ``scores``,
    ``on_kink`` and ``remainder`` (the part beta'R beta / 2 of the gap).
    """
    space = FeatureSpace(span.features, fit_intercept, span.lower if span.raw else None)
    point, n_iter = _begin(space, rows, fit_intercept, start, max_iter)
    # without a kernel nothing is left out of the certificate
    part = 0.5 if kernel is not None else 0.9
    found = anneal(space, rows, point, tol=tol, max_iter=max_iter, done=n_iter, part=part)
    return _with_remainder(kernel, span, found, tol, rows)


def _begin(
    space: FeatureSpace, rows: LossRows, fit_intercept: bool, start: Floats | None, max_iter: int
) -> tuple[Point, int]:
    """A start from one row in 4, 16, ...: their fit costs little and is nearly right."""
    if start is not None:
        return space.at(start[:-1], float(start[-1])), 0
    w = np.zeros(space.features.shape[1])
    b = best_constant(rows) if fit_intercept else 0.0
    fewest = max(_COARSEST, 2 * space.features.shape[1])
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
            coarse,
            part,
            here,
            width=COARSE_WIDTH,
            share=half,
            enough=4e-3 * value,
            max_iter=max_iter,
        )
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
    for first in range(0, len(used), _CHUNK):
        left = slice(first, first + _CHUNK)
        here = beta[left]
        for second in range(0, first + 1, _CHUNK):
            right = slice(second, second + _CHUNK)
            K = kernel.block(used[left], used[right])
            K -= span.features[used[left]] @ span.features[used[right]].T
            total += (1.0 if second == first else 2.0) * float(here @ (K @ beta[right]))
    return 0.5 * max(total, 0.0)
