"""Class laws of profiles, smoothed towards independent columns.

    p_kt = (n_kt + alpha q_k(t)) / (n_k + alpha),   q_k(t) = prod_j (n_kjb + 1) / (n_k + B_j)

with n_kt the weight of class k in profile t, n_kjb that of its rows in bin b of column j, and B_j
the number of bins seen in column j. It answers two weaknesses of the plain table at once: a
profile that no training row had, and the overfit of rare classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laconic.data.profiles import ProfileCounts, ProfileIndex

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class NaiveBackoff:
    """The product q_k(t), by columns.

    Attributes
    ----------
    alpha : float
    log_share : tuple of arrays (radix_j, K)
        Logarithms of the smoothed share of each code of column j in each class.
    class_weight : array (K,)
    """

    alpha: float
    log_share: tuple[Floats, ...]
    class_weight: Floats

    @staticmethod
    def learn(index: ProfileIndex, counts: ProfileCounts, alpha: float) -> NaiveBackoff:
        codes = index.codes()
        profile = np.repeat(np.arange(len(codes)), np.diff(counts.start))
        n_classes, weight = counts.n_classes, counts.class_weight
        shares = []
        for j, radix in enumerate(index.radices):
            cell = codes[profile, j] * n_classes + counts.klass
            table = np.bincount(cell, counts.weight, minlength=radix * n_classes)
            table = table.reshape(radix, n_classes)
            n_seen = np.count_nonzero(table.any(axis=1))
            shares.append(np.log(table + 1.0) - np.log(weight + n_seen))
        return NaiveBackoff(alpha, tuple(shares), weight)

    def log_product(self, codes: Ints) -> Floats:
        """log q_k(t) of rows of codes, shape (n, K)."""
        total = np.zeros((len(codes), len(self.class_weight)))
        for j, share in enumerate(self.log_share):
            total += share[codes[:, j]]
        return total

    def laws(self, index: ProfileIndex, counts: ProfileCounts) -> Floats:
        """p_kt of the stored profiles and, last, the mass of all others as one profile."""
        product = np.exp(self.log_product(index.codes()))
        law = np.empty((len(product) + 1, counts.n_classes))
        law[:-1] = (counts.dense() + self.alpha * product) / (self.class_weight + self.alpha)
        others = np.maximum(1.0 - product.sum(axis=0), 0.0)
        law[-1] = self.alpha * others / (self.class_weight + self.alpha)
        return law

    def unseen(self, codes: Ints) -> Floats:
        """Class likelihoods of rows whose profile no training row had, up to a factor per row."""
        log = self.log_product(codes) - np.log(self.class_weight + self.alpha)
        return np.asarray(np.exp(log - log.max(axis=1, keepdims=True)))
