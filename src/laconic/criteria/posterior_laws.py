"""Class laws from the posteriors of any model: every row is a profile.

A posterior g_k(x) learned under the class shares c_k is c_k p_k(x) up to a factor of x, so that
``p_k(x_i) = s_i g_k(x_i) / sum_j s_j g_k(x_j)`` is the law of class k on the rows. Posteriors whose
mean is not the class share (a model fitted with balanced class weights, a forest) are first
multiplied by one number per class, and normalised, until it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laconic.criteria.minimax import DenseLaws

Floats = NDArray[np.float64]

_ROUNDS = 500
_CLOSE = 1e-10


@dataclass(frozen=True)
class PosteriorLaws:
    """One factor per class that makes mean posteriors equal to class shares.

    >>> half = np.array([[0.8, 0.2], [0.4, 0.6]])
    >>> fitted = PosteriorLaws.match(half, np.ones(2), np.array([0.5, 0.5]))
    >>> fitted.posterior(half).mean(axis=0).round(9)
    array([0.5, 0.5])
    """

    factor: Floats
    share: Floats

    @staticmethod
    def match(posterior: Floats, weight: Floats, share: Floats) -> PosteriorLaws:
        """Find the factors by proportional fitting; classes without any posterior keep theirs."""
        mass = weight / weight.sum()
        factor = np.ones(len(share))
        for _ in range(_ROUNDS):
            mean = mass @ _normalised(posterior * factor)
            held = (mean > 0) & (share > 0)
            if np.abs(mean - share)[held].max() <= _CLOSE:
                break
            factor[held] *= share[held] / mean[held]
            factor /= factor.max()
        mean = mass @ _normalised(posterior * factor)
        return PosteriorLaws(factor, np.where(mean > 0, mean, share))

    def posterior(self, posterior: Floats) -> Floats:
        return _normalised(posterior * self.factor)

    def likelihood(self, posterior: Floats) -> Floats:
        """p_k(x) up to a factor of x."""
        return np.asarray(self.posterior(posterior) / self.share)

    def laws(self, posterior: Floats, weight: Floats) -> DenseLaws:
        """Laws of the classes on the rows themselves."""
        return DenseLaws((weight / weight.sum())[:, None] * self.likelihood(posterior))


def _normalised(rows: Floats) -> Floats:
    total = rows.sum(axis=1, keepdims=True)
    even = np.full_like(rows, 1.0 / rows.shape[1])
    return np.asarray(np.divide(rows, total, out=even, where=total > 0))
