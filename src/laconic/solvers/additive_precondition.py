"""Preconditioner of the conjugate steps: exact where rows tell much, diagonal elsewhere.

Coordinates have unit variance, so the curvature of one is about the total h of the rows. Where its
penalty D_j is large beside h, h + D_j is nearly all there is. What makes conjugate gradients slow
are the few coordinates that the rows tell more about than the penalty, in columns that carry the
same information: those are solved together, with the intercept, by one dense factor. Some thousand
rows, drawn by their curvature, are enough for it: nothing but the number of steps depends on it.
Where few rows carry most of the curvature (a rounded kink), the first sentence fails: ``uneven``
solves as many coordinates together as it may.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky

from laconic.solvers.additive_model import QuadraticModel, compact
from laconic.solvers.additive_terms import TermSet

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

_TOLD = 3.0
"""Coordinates are solved together where the rows tell so many times more than the penalty."""

_MOST_JOINT, _SOME_JOINT, _JOINT_PER_TERM = 300, 40, 2
"""How many at most; with few terms, whose passes over the rows are cheap, a few for each."""

_ENOUGH_ROWS = 4_096
_RIDGE = 1e-8


@dataclass(frozen=True)
class Preconditioner:
    """``factors``, (scores, joint + 1, joint + 1) and upper, end with the intercept; ``scale`` is
    the diagonal of all coordinates, (scores, coordinates)."""

    joint: Ints
    factors: Array
    scale: Array

    @classmethod
    def at(
        cls,
        terms: TermSet,
        model: QuadraticModel,
        work: Ints,
        penalty: Array,
        uneven: bool = False,
    ) -> Preconditioner:
        """For the terms in ``work``, with the diagonal ``penalty`` of all coordinates."""
        total = np.maximum(model.curves.sum(axis=1), 1e-300)
        inside = np.zeros(len(terms.terms), dtype=bool)
        inside[work] = True
        most = np.inf if uneven else total.max() / _TOLD
        told = np.flatnonzero(inside[terms.owner] & (penalty < most))
        some = _MOST_JOINT if uneven else _SOME_JOINT + _JOINT_PER_TERM * len(work)
        freest = np.argsort(penalty[told], kind="stable")[: min(some, _MOST_JOINT)]
        told = np.sort(told[freest])
        gram = _joint_curvature(terms, model, work, told)
        steep = np.append(penalty[told], 0.0) + _RIDGE * total[:, None]
        places = np.arange(len(told) + 1)
        gram[:, places, places] += steep
        factors = np.stack([cholesky(one, check_finite=False) for one in gram])
        return cls(told, factors, total[:, None] + penalty)

    @property
    def arrays(self) -> tuple[Ints, Array, Array]:
        """In the order of the compiled descent."""
        return self.joint, self.factors, self.scale


def _joint_curvature(terms: TermSet, model: QuadraticModel, work: Ints, told: Ints) -> Array:
    """Z h Z' of the told coordinates and the intercept for every score, from some of the rows."""
    from laconic.solvers.hot_additive_rows import coordinate_rows

    rows, packed, curves = model.rows, model.terms, model.curves
    if curves.shape[1] > _ENOUGH_ROWS:
        up_to = np.cumsum(curves.sum(axis=0))
        steps = (np.arange(_ENOUGH_ROWS) + 0.5) * (up_to[-1] / _ENOUGH_ROWS)
        some = np.searchsorted(up_to, steps).astype(np.int64)
        rows, packed = compact(rows, packed, work, some)
        taken = curves[:, some]
        curves = taken / taken.sum(axis=0) * (up_to[-1] / _ENOUGH_ROWS)
    lines = np.ones((len(told) + 1, curves.shape[1]))
    lines[:-1] = 0.0
    coordinate_rows(rows, packed, terms.owner, told, lines)
    out = np.empty((len(curves), len(lines), len(lines)))
    for k, curve in enumerate(np.sqrt(np.maximum(curves, 0.0))):
        weighted = lines * curve
        np.matmul(weighted, weighted.T, out=out[k])
    return out
