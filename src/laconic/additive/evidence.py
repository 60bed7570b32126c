"""Smoothness of every term by marginal likelihood, inside the Newton iterations.

The quadratic penalty of a term is a normal prior with two variances: one for its bend, one for its
linear part. Both follow the generalised Fellner-Schall step (Wood and Fasiolo, *Biometrics* 73,
2017),

    l <- (f + a) / (e + a / m),    f = rank - l tr(V S),  e = g'S g,  V = (H + D)^-1,

which raises the marginal likelihood of the quadratic model under a gamma prior of mean m for l,
worth a degrees of freedom. V is taken term by term: the posterior covariance between terms is left
out, which keeps a step at the price of a sweep.

The prior is weak where there are many rows: m = 1 for a line, and so large for a bend that it may
become as smooth as it likes. A few hundred rows cannot tell the amounts of many columns apart: each
then frees or removes its term by chance. There the amounts of single columns are *drawn* to a
common one. They come from one population, whose m and a all columns tell
together (as the moderated variances of Smyth, *Statistical Applications in Genetics and Molecular
Biology* 3, 2004): e l is chi-squared with f degrees of freedom, so that m e / f follows Fisher's F
with f and a.

How a shape may bend is chosen for each term as well. With r_j the roughness of coordinate j over
that of the smoothest curved one, the prior precision of coordinate j is l r_j^p: p = 1 is the
penalty on second differences (a shape that bends slowly), p = 1/2 one on first differences (a shape
that wanders, like a random walk), p = 1/4 hardly asks neighbours to agree. The power with the
largest marginal likelihood wins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from laconic._typing import Floats
from laconic.additive.terms import TermSet

LEAST, MOST = 1e-3, 1e7

_WEAKLY = 0.25
"""Degrees of freedom of a weak prior."""

_PULLS = 0.25 * 2.0 ** np.arange(6)
"""Degrees of freedom among which the columns choose that of their common prior."""

POWERS = (1.0, 0.5, 0.25)
"""Powers of the roughness among which marginal likelihood chooses for each term."""

BENDING, WANDERING = 1.0, 0.5
"""Power before the rows have told another, and the one between."""

_GRID = 10.0 ** np.arange(-2.0, 6.5, 0.5)
_CLEARLY = 2.0
"""Nats by which another power must win."""


@dataclass
class Smoothness:
    """Amounts of every term: ``bend`` on the rough coordinates, ``line`` on the others.

    ``power`` is the power of the roughness that ``bend`` multiplies; ``drawn`` says whether single
    columns are drawn to their common amount.
    """

    terms: TermSet
    bend: Floats
    line: Floats
    power: Floats
    drawn: bool = False

    @classmethod
    def start(cls, terms: TermSet, fixed: float | None = None, drawn: bool = False) -> Smoothness:
        """Equal amounts: ``fixed``, on second differences, or a first guess for the evidence."""
        return cls(terms, *_equal(terms, 0, 0.1, fixed), drawn)

    def copy(self) -> Smoothness:
        return replace(self, bend=self.bend.copy(), line=self.line.copy(), power=self.power.copy())

    def extended(
        self, terms: TermSet, fixed: float | None = None, guess: Floats | None = None
    ) -> Smoothness:
        """The same amounts for the first terms, a (larger) first guess for the added ones.

        ``guess``, if given, are their amounts in units of their terms, at the middle power.
        """
        known = len(self.terms.terms)
        bend, line, power = _equal(terms, known, 1.0, fixed)
        if guess is not None and fixed is None:
            bend, power = guess / roughness_units(terms)[known:], np.full(len(guess), WANDERING)
        return Smoothness(
            terms,
            np.append(self.bend, bend),
            np.append(self.line, line),
            np.append(self.power, power),
            self.drawn,
        )

    def part(self, terms: TermSet, kept: NDArray[np.int64]) -> Smoothness:
        """The amounts of the kept terms, which are ``terms``."""
        return Smoothness(terms, self.bend[kept], self.line[kept], self.power[kept], self.drawn)

    def guided(self, other: Smoothness) -> Smoothness:
        """The amounts of ``other`` where it has a term of the same columns."""
        known = other.terms.place_of
        out = self.copy()
        for t, term in enumerate(self.terms.terms):
            if term.columns in known:
                out.bend[t] = other.bend[known[term.columns]]
                out.line[t] = other.line[known[term.columns]]
                out.power[t] = other.power[known[term.columns]]
        return out

    @cached_property
    def units(self) -> Floats:
        return roughness_units(self.terms)

    @cached_property
    def _relative(self) -> Floats:
        """Roughness of every coordinate, with the smoothest curved one of its term as the unit."""
        return np.asarray(self.terms.rough / self.units[self.terms.owner])

    def roughness(self) -> Floats:
        """What ``bend`` multiplies: the unit of the term times the power of the relative one."""
        owner, ratio = self.terms.owner, self._relative
        return np.asarray(np.where(ratio > 0, self.units[owner] * ratio ** self.power[owner], 0.0))

    def diagonal(self) -> Floats:
        owner, rough = self.terms.owner, self.roughness()
        return np.where(rough > 0, self.bend[owner] * rough, self.line[owner])

    def update(
        self, point: Floats, H: Floats, H_start: NDArray[np.int64], work: NDArray[np.int64]
    ) -> None:
        """One Fellner-Schall step for the terms in ``work``."""
        from laconic.additive._numba_blocks import evidence_sums

        sums = np.empty((len(work), 6))
        packed = self.terms.packed[1]
        rough = self.roughness()
        evidence_sums(packed, work, H, H_start, self.diagonal(), rough, point, sums)
        alike = np.ones(len(work))
        parts = (self.bend, self.units[work], sums[:, :3]), (self.line, alike, sums[:, 3:])
        told = [_told_by(part, amounts[work], unit) for amounts, unit, part in parts]
        drawn = self.drawn & (packed.second[work] < 0)
        both = (np.concatenate([part[k][drawn] for part in told]) for k in (0, 1))
        common = population(*both) if drawn.any() else (_WEAKLY, 1.0)
        for (amounts, unit, part), (freedom, energy) in zip(parts, told, strict=True):
            pull = np.where(drawn, common[0], _WEAKLY)
            mean = np.where(drawn, common[1], unit**2)
            old = amounts[work]
            wanted = (freedom + pull) / (energy + pull / mean) / unit
            wanted = np.clip(np.clip(wanted, LEAST / unit, MOST / unit), old / 30.0, old * 30.0)
            amounts[work] = np.where(part[:, 0] > 0, wanted, old)

    def choose_powers(
        self, point: Floats, H: Floats, H_start: NDArray[np.int64], work: NDArray[np.int64]
    ) -> None:
        """The power of every term in ``work`` with the largest evidence, and its best amount.

        At the optimum of the quadratic model, b = (H + D) g is what the rows say; with the diagonal
        h of H, the log evidence of precisions d is (1/2) sum_j [b_j^2 / (h_j + d_j) - log(1 + h_j /
        d_j)].
        """
        told, h, place = self._told(point, H, H_start, work)
        ratio, curved = self._relative[place], self._relative[place] > 0
        starts = np.concatenate([[0], np.cumsum(self.terms.rank[work])[:-1]]).astype(np.int64)
        best = np.full((len(POWERS), len(work)), -np.inf)
        amount = np.ones_like(best)
        for p, power in enumerate(POWERS):
            rough = np.where(curved, ratio**power, 1.0)
            for grid in _GRID:
                d = grid * rough
                value = 0.5 * (told**2 / (h + d) - np.log1p(h / d)).sum(axis=0)
                found = np.add.reduceat(np.where(curved, value, 0.0), starts)
                better = found > best[p]
                best[p, better], amount[p, better] = found[better], grid
        own = np.argmin(np.abs(np.subtract.outer(POWERS, self.power[work])), axis=0)
        at = np.arange(len(work))
        other = best.argmax(axis=0)
        moved = best[other, at] > best[own, at] + _CLEARLY
        chosen, to = work[moved], other[moved]
        self.power[chosen] = np.array(POWERS)[to]
        self.bend[chosen] = amount[to, at[moved]] / self.units[chosen]

    def _told(
        self, point: Floats, H: Floats, H_start: NDArray[np.int64], work: NDArray[np.int64]
    ) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """(H + D) g and the diagonal of H, both (scores, coordinates), and the coordinates."""
        D, K = self.diagonal(), len(point)
        told, diagonals, places = [], [], []
        for w, t in enumerate(work):
            r, s = int(self.terms.rank[t]), int(self.terms.start[t])
            block = H[H_start[w] : H_start[w + 1]].reshape(K, r, r)
            g = point[:, s : s + r]
            told.append(np.einsum("kij,kj->ki", block, g) + D[s : s + r] * g)
            diagonals.append(np.diagonal(block, axis1=1, axis2=2))
            places.append(np.arange(s, s + r))
        return np.hstack(told), np.hstack(diagonals), np.concatenate(places)


def _told_by(sums: Floats, amounts: Floats, unit: Floats) -> tuple[Floats, Floats]:
    """Degrees of freedom that rows have determined, and the energy they found there."""
    rank, variance, energy = sums.T
    return np.maximum(rank - amounts * variance, 0.0), np.where(rank > 0, energy / unit, 0.0)


def population(freedom: Floats, energy: Floats) -> tuple[float, float]:
    """Degrees of freedom and mean of the gamma population that many amounts come from.

    Amounts of which ``freedom`` numbers with ``energy`` tell: the density of m e / f is Fisher's F
    with f and a, largest in m where

        m sum_t (f_t + a) e_t / (a + m e_t) = sum_t f_t,

    up to the weak prior of mean one.
    """
    some = freedom > 1e-3
    f, e, a = freedom[some], energy[some], _PULLS[:, None]
    mean = np.full((len(a), 1), (f.sum() + _WEAKLY) / (e.sum() + _WEAKLY))
    for _ in range(50):
        shared = ((f + a) * e / (a + mean * e)).sum(axis=1, keepdims=True)
        before, mean = mean, (f.sum() + _WEAKLY) / (shared + _WEAKLY)
        if (np.abs(mean - before) <= 1e-3 * mean).all():
            break
    densities = (
        gammaln(0.5 * (f + a))
        - gammaln(0.5 * a)
        + 0.5 * (f * np.log(mean) + a * np.log(a) - (f + a) * np.log(a + mean * e))
    )
    best = int(densities.sum(axis=1).argmax())
    return float(a[best, 0]), float(mean[best, 0])


def _equal(
    terms: TermSet, first: int, guess: float, fixed: float | None
) -> tuple[Floats, Floats, Floats]:
    units = roughness_units(terms)[first:]
    amount = guess if fixed is None else fixed
    return amount / units, np.full(len(units), min(amount, 1.0)), np.full(len(units), BENDING)


def roughness_units(terms: TermSet) -> Floats:
    """Roughness of the smoothest curved shape of unit variance: the unit of a term's amount."""
    out = np.full(len(terms.terms), np.inf)
    bent = terms.rough > 0
    np.minimum.at(out, terms.owner[bent], terms.rough[bent])
    return np.where(np.isfinite(out), out, 1.0)
