"""The Bayes risk as a function of the class prior, over discrete profiles.

    lambda_l(t; pi) = sum_k L_kl pi_k p_kt        cost of deciding l in profile t
    V(pi)           = sum_t min_l lambda_l(t; pi)  concave, piecewise affine
    R_k(delta)      = sum_t L_{k, delta(t)} p_kt   risk of class k, a supergradient of V

Fillatre, Gilet and Barbosa, "Apprentissage d'un classifieur minimax pour données discrètes",
equations (1) to (7). The 1/n of their equation (1) must read 1/n_k. Their equations (2) and (5)
equate the minimax over deterministic rules with the maximum of V; with ties that is false (one
profile and K classes: max V = (K - 1) / K, every deterministic rule has a class of risk one), and
the equality holds over randomised rules, see :class:`MixtureRule`.

The class priors that are believed possible are a box cut by the simplex, :class:`PriorBox`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laconic._typing import Floats, Ints
from laconic.core.decisions import cost_matrix, expected_costs
from laconic.minimax.profiles import ProfileCounts, ProfileIndex
from laconic.minimax.tuning import MATCHED, MATCHING_ROUNDS, PROFILES_AT_ONCE

_SLACK = 1e-9  # bounds typed with a few decimals may miss the simplex by their rounding


@dataclass(frozen=True)
class PriorBox:
    """``U = {pi : low <= pi <= high, sum(pi) = 1}``.

    The two ends of the family are one point (the Bayes rule for that prior) and the whole
    simplex (the minimax rule).

    >>> box = PriorBox.of([[0.0, 0.5], [0.2, 1.0]], n_classes=2)
    >>> box.project(np.array([0.9, 0.1]))
    array([0.5, 0.5])
    >>> box.worst(np.array([0.3, 0.1]))
    (0.2, array([0.5, 0.5]))
    """

    low: Floats
    high: Floats

    @staticmethod
    def of(
        bounds: ArrayLike | Mapping[Any, Any] | None,
        n_classes: int,
        classes: ArrayLike | None = None,
    ) -> PriorBox:
        """Read ``None`` (the simplex), a K x 2 array, or a mapping from class to (low, high).

        A class that a mapping does not name may have any proportion.
        """
        if bounds is None:
            return PriorBox(np.zeros(n_classes), np.ones(n_classes))
        if isinstance(bounds, Mapping):
            bounds = _from_mapping(bounds, np.arange(n_classes) if classes is None else classes)
        try:
            table = np.array(bounds, dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError(
                "prior_bounds must be None, a K x 2 array of (low, high) or a dict from class to "
                f"(low, high); got {bounds!r}."
            ) from None
        return _checked(table, n_classes)

    @property
    def n_classes(self) -> int:
        return len(self.low)

    def project(self, y: Floats) -> Floats:
        """Nearest point of the box to ``y``: ``clip(y - tau, low, high)`` with the sum one.

        The sum is piecewise affine and decreasing in tau, with its kinks at ``y - high`` and
        ``y - low``: sort them, find the piece, solve it. O(K log K).
        """
        kinks = np.concatenate((y - self.high, y - self.low))
        order = np.argsort(kinks, kind="stable")
        kinks = kinks[order]
        # a coordinate leaves its upper bound at y - high and reaches its lower one at y - low
        turn = np.where(order < self.n_classes, -1.0, 1.0)
        slope = np.cumsum(turn)
        sums = self.high.sum() + np.concatenate(([0.0], np.cumsum(slope[:-1] * np.diff(kinks))))
        piece = int(np.clip(np.searchsorted(-sums, -1.0), 1, len(kinks) - 1))
        middle = kinks[piece - 1] / 2 + kinks[piece] / 2
        free = (y - self.high < middle) & (middle < y - self.low)
        if not free.any():
            return np.asarray(np.clip(y - kinks[piece], self.low, self.high))
        at_high = y - self.high >= middle
        fixed = self.high[at_high].sum() + self.low[~free & ~at_high].sum()
        # y is shifted first: tau must not lose digits when y is far from the simplex
        shifted = y - middle
        tau = (shifted[free].sum() + fixed - 1.0) / free.sum()
        return np.asarray(np.clip(shifted - tau, self.low, self.high))

    def worst(self, risks: Floats) -> tuple[float, Floats]:
        """``max_{pi in U} pi.R`` and a prior that attains it: fill the riskiest classes first."""
        order = np.argsort(-risks, kind="stable")
        room = (self.high - self.low)[order]
        left = 1.0 - self.low.sum()
        before = np.concatenate(([0.0], np.cumsum(room)[:-1]))
        prior = self.low.copy()
        prior[order] += np.clip(left - before, 0.0, room)
        return float(prior @ risks), prior


def _from_mapping(bounds: Mapping[Any, Any], classes: ArrayLike) -> Floats:
    names = list(np.asarray(classes))
    table = np.tile([0.0, 1.0], (len(names), 1))
    for name, pair in bounds.items():
        if name not in names:
            raise ValueError(
                f"prior_bounds names the class {name!r}, which has no rows; the classes are "
                f"{', '.join(map(str, names))}."
            )
        table[names.index(name)] = pair
    return table


def _checked(table: Floats, n_classes: int) -> PriorBox:
    if table.shape != (n_classes, 2):
        raise ValueError(
            f"prior_bounds must have one (low, high) pair per class, shape ({n_classes}, 2); "
            f"got shape {table.shape}."
        )
    low, high = table[:, 0].copy(), table[:, 1].copy()
    if not np.isfinite(table).all() or (low < 0).any() or (high > 1).any() or (low > high).any():
        raise ValueError(
            "prior_bounds must satisfy 0 <= low <= high <= 1 for every class; got "
            f"{table.tolist()}."
        )
    if low.sum() > 1 + _SLACK or high.sum() < 1 - _SLACK:
        raise ValueError(
            "prior_bounds exclude every class mix: proportions sum to one, but the lower bounds "
            f"sum to {low.sum():.6g} and the upper bounds to {high.sum():.6g}; widen them."
        )
    # within the slack, the nearest bounds that the simplex does reach
    return PriorBox(low / max(low.sum(), 1.0), np.minimum(high / min(high.sum(), 1.0), 1.0))


def zero_one(n_classes: int) -> Floats:
    """The loss that counts errors."""
    return 1.0 - np.eye(n_classes)


def checked_costs(costs: Any, classes: ArrayLike, positive: Any = None) -> Floats:
    """The matrix of :func:`laconic.core.decisions.cost_matrix`, refused where it is negative."""
    table = cost_matrix(costs, classes, positive=positive)
    if (table < 0).any():
        raise ValueError("costs must be finite and not negative; add a constant to each row if so.")
    return table


@dataclass(frozen=True)
class DenseLaws:
    """Class laws as a table: ``law[t, k] = p_kt``."""

    law: Floats

    @property
    def n_profiles(self) -> int:
        return int(self.law.shape[0])

    @property
    def n_classes(self) -> int:
        return int(self.law.shape[1])

    @property
    def totals(self) -> Floats:
        """Mass of each class, one up to rounding (zero for a class without rows)."""
        return np.asarray(self.law.sum(axis=0))

    def rows(self, start: int, stop: int) -> Floats:
        return self.law[start:stop]


@dataclass(frozen=True)
class SparseLaws:
    """Class laws by profile, zeros left out.

    Profile t holds ``mass[start[t]:start[t + 1]]`` of the classes ``klass[...]``, increasing.
    """

    start: Ints
    klass: NDArray[np.int32]
    mass: Floats
    n_classes: int

    @staticmethod
    def of(law: Floats) -> SparseLaws:
        t, k = np.nonzero(law)
        start = np.searchsorted(t, np.arange(len(law) + 1))
        return SparseLaws(start, k.astype(np.int32), law[t, k], law.shape[1])

    @property
    def n_profiles(self) -> int:
        return len(self.start) - 1

    @property
    def totals(self) -> Floats:
        summed = np.bincount(self.klass, self.mass, minlength=self.n_classes)
        return summed.astype(np.float64)

    def rows(self, start: int, stop: int) -> Floats:
        cells = slice(self.start[start], self.start[stop])
        out = np.zeros((stop - start, self.n_classes))
        profile = np.repeat(np.arange(stop - start), np.diff(self.start[start : stop + 1]))
        out[profile, self.klass[cells]] = self.mass[cells]
        return out


Laws = DenseLaws | SparseLaws


@dataclass(frozen=True)
class BayesRisk:
    """V(pi) and its supergradients, straight from the formulas.

    Solvers use the compiled pass of :mod:`laconic.minimax.solver`, which gives the same.

    >>> one_profile = BayesRisk(DenseLaws(np.ones((1, 4))), zero_one(4))
    >>> one_profile.value(np.full(4, 0.25))
    0.75
    """

    laws: Laws
    loss: Floats

    def _costs(self, prior: Floats) -> Iterator[tuple[slice, Floats, Floats]]:
        for start in range(0, self.laws.n_profiles, PROFILES_AT_ONCE):
            stop = min(start + PROFILES_AT_ONCE, self.laws.n_profiles)
            law = self.laws.rows(start, stop)
            yield slice(start, stop), law, bayes_costs(law, prior, self.loss)

    def value(self, prior: Floats) -> float:
        """V(pi)."""
        return float(sum(costs.min(axis=1).sum() for _, _, costs in self._costs(prior)))

    def labels(self, prior: Floats) -> NDArray[np.int32]:
        """Bayes decision of every profile, the smallest class code among equals."""
        found = [costs.argmin(axis=1) for _, _, costs in self._costs(prior)]
        return np.concatenate(found).astype(np.int32)

    def class_risks(self, labels: NDArray[Any]) -> Floats:
        """R_k of a deterministic rule, equation (7) for any loss."""
        total = np.zeros(self.laws.n_classes)
        for start in range(0, self.laws.n_profiles, PROFILES_AT_ONCE):
            stop = min(start + PROFILES_AT_ONCE, self.laws.n_profiles)
            decided = self.loss.T[labels[start:stop]]
            total += (decided * self.laws.rows(start, stop)).sum(axis=0)
        return total


def bayes_costs(law: Floats, prior: Floats, loss: Floats) -> Floats:
    """lambda_l(t; pi) for rows of class laws (or of any positive multiple of them)."""
    return expected_costs(law * prior, loss)


@dataclass(frozen=True)
class MixtureRule:
    """A randomised rule: Bayes rule i (at ``priors[i]``) is used with probability ``weights[i]``.

    The duals of a master program over Bayes rules give at most K of them, and the mixture
    attains max V: it is the minimax rule. One component makes the paper's deterministic rule.

    Attributes
    ----------
    priors : array (m, K)
    weights : array (m,)
    labels : array (m, T)
        Decision of each component in each profile; where profiles tie, components at the same
        prior differ here.
    risks : array (m, K)
        Class risks of each component.
    """

    priors: Floats
    weights: Floats
    labels: NDArray[np.int32]
    risks: Floats

    @property
    def class_risks(self) -> Floats:
        return np.asarray(self.weights @ self.risks)

    def to_dict(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name).tolist() for field in fields(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MixtureRule:
        floats = [np.array(data[name], np.float64) for name in ("priors", "weights", "risks")]
        labels = np.array(data["labels"], dtype=np.int32)
        return cls(floats[0], floats[1], labels, floats[2])

    def decide(self, profiles: Ints) -> Floats:
        """Decision probabilities (n, K) of known profiles."""
        return self._mix(self.labels[:, profiles])

    def decide_law(self, law: Floats, loss: Floats) -> Floats:
        """Decision probabilities (n, K) from class likelihoods, for what is not in the table."""
        labels = [bayes_costs(law, prior, loss).argmin(axis=1) for prior in self.priors]
        return self._mix(np.array(labels))

    def _mix(self, labels: NDArray[Any]) -> Floats:
        out = np.zeros((labels.shape[1], self.priors.shape[1]))
        rows = np.arange(labels.shape[1])
        for weight, decided in zip(self.weights, labels, strict=True):
            out[rows, decided] += weight
        return np.minimum(out, 1.0)  # weights add up to one up to rounding


@dataclass(frozen=True)
class PosteriorLaws:
    """Class laws from the posteriors of any model: every row is a profile.

    A posterior g_k(x) learned under the class shares c_k is c_k p_k(x) up to a factor of x, so that
    ``p_k(x_i) = s_i g_k(x_i) / sum_j s_j g_k(x_j)`` is the law of class k on the rows. Posteriors
    whose mean is not the class share (a model fitted with balanced class weights, a forest) are
    first multiplied by one number per class, and normalised, until it is.

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
        for _ in range(MATCHING_ROUNDS):
            mean = mass @ _normalised(posterior * factor)
            held = (mean > 0) & (share > 0)
            if np.abs(mean - share)[held].max() <= MATCHED:
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


@dataclass(frozen=True)
class NaiveBackoff:
    """Class laws of profiles, smoothed towards independent columns.

    p_kt = (n_kt + alpha q_k(t)) / (n_k + alpha) with q_k(t) = prod_j (n_kjb + 1) / (n_k + B_j),
    where n_kt is the weight of class k in profile t, n_kjb that of its rows in bin b of column j,
    and B_j the number of bins seen in column j. It answers two weaknesses of the plain table at
    once: a profile that no training row had, and the overfit of rare classes.

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
        return NaiveBackoff(float(alpha), tuple(shares), weight)

    def to_dict(self) -> dict[str, Any]:
        shares = [share.tolist() for share in self.log_share]
        weights = self.class_weight.tolist()
        return {"alpha": self.alpha, "log_share": shares, "class_weight": weights}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> NaiveBackoff:
        shares = tuple(np.array(share, dtype=np.float64) for share in data["log_share"])
        weights = np.array(data["class_weight"], dtype=np.float64)
        return cls(float(data["alpha"]), shares, weights)

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
