"""Smoothness of every term by marginal likelihood, inside the Newton iterations.

The quadratic penalty of a term is a normal prior with two variances: one for its bend, one for its
linear part. Both follow the generalised Fellner-Schall step (Wood and Fasiolo, *Biometrics* 73,
2017),

    l <- (rank - l tr(V S) + a) / (g'S g + a),        V = (H + D)^-1,

which raises the marginal likelihood of the quadratic model, with a weak prior a. V is taken term by
term: the posterior covariance between terms is left out, which keeps a step at the price of a
sweep.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from laconic.solvers.additive_terms import TermSet

Array = NDArray[np.float64]

LEAST, MOST = 1e-3, 1e7

# A weak gamma prior on every amount, worth a quarter of an observation of unit variance: without
# it the marginal likelihood of a few hundred rows removes or frees terms too readily.
_PRIOR_FREEDOM, _PRIOR_ENERGY = 0.25, 0.25


@dataclass
class Smoothness:
    """Amounts of every term: ``bend`` on the rough coordinates, ``line`` on the others."""

    terms: TermSet
    bend: Array
    line: Array

    @classmethod
    def start(cls, terms: TermSet, fixed: float | None = None) -> Smoothness:
        """Equal amounts: ``fixed``, or a first guess for the marginal likelihood."""
        return cls(terms, *_equal(terms, 0, 0.1 if fixed is None else fixed))

    def copy(self) -> Smoothness:
        return Smoothness(self.terms, self.bend.copy(), self.line.copy())

    def extended(self, terms: TermSet, fixed: float | None = None) -> Smoothness:
        """The same amounts for the first terms, a (larger) first guess for the added ones."""
        bend, line = _equal(terms, len(self.terms.terms), 1.0 if fixed is None else fixed)
        return Smoothness(terms, np.append(self.bend, bend), np.append(self.line, line))

    def guided(self, other: Smoothness) -> Smoothness:
        """The amounts of ``other`` where it has a term of the same columns."""
        known = {term.columns: t for t, term in enumerate(other.terms.terms)}
        out = self.copy()
        for t, term in enumerate(self.terms.terms):
            if term.columns in known:
                out.bend[t] = other.bend[known[term.columns]]
                out.line[t] = other.line[known[term.columns]]
        return out

    @cached_property
    def units(self) -> Array:
        return roughness_units(self.terms)

    def diagonal(self) -> Array:
        owner, rough = self.terms.owner, self.terms.rough
        return np.where(rough > 0, self.bend[owner] * rough, self.line[owner])

    def update(
        self, point: Array, H: Array, H_start: NDArray[np.int64], work: NDArray[np.int64]
    ) -> None:
        """One Fellner-Schall step for the terms in ``work``."""
        from laconic.solvers.hot_additive_blocks import evidence_sums

        sums = np.empty((len(work), 6))
        packed = self.terms.packed[1]
        evidence_sums(packed, work, H, H_start, self.diagonal(), self.terms.rough, point, sums)
        for amounts, unit, part in (
            (self.bend, self.units[work], sums[:, :3]),
            (self.line, np.ones(len(work)), sums[:, 3:]),
        ):
            rank, variance, energy = part.T
            old = amounts[work]
            freedom = np.maximum(rank - old * variance, 0.0) + _PRIOR_FREEDOM
            wanted = freedom / (energy + _PRIOR_ENERGY / unit)
            wanted = np.clip(np.clip(wanted, LEAST / unit, MOST / unit), old / 30.0, old * 30.0)
            amounts[work] = np.where(rank > 0, wanted, old)


def _equal(terms: TermSet, first: int, amount: float) -> tuple[Array, Array]:
    units = roughness_units(terms)[first:]
    return amount / units, np.full(len(units), min(amount, 1.0))


def roughness_units(terms: TermSet) -> Array:
    """Roughness of the smoothest curved shape of unit variance: the unit of a term's amount."""
    out = np.ones(len(terms.terms))
    for t, term in enumerate(terms.terms):
        bent = term.shape.rough[term.shape.rough > 0]
        out[t] = bent.min() if len(bent) else 1.0
    return out
