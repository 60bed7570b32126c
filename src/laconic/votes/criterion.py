"""Moments of the margin of a majority vote and the C-bound (Lacasse et al. 2006, slides p. 19).

The margin of a vote q on (x, y) is M = y Σ_j q_j h_j(x). Its first two moments bound the risk:
R <= 1 - mu1 (Markov, twice the Gibbs risk) and R <= 1 - mu1²/mu2 (Cantelli), for mu1 > 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import gammaln, rel_entr, xlogy

from laconic._typing import Floats


@dataclass(frozen=True)
class MarginMoments:
    """First and second moment of the margin of a vote.

    >>> moments = MarginMoments.of(np.array([0.5, 0.5, 0.5, -0.5]))
    >>> moments.gibbs_risk, moments.disagreement, moments.c_bound()
    (0.375, 0.375, 0.75)
    """

    first: float
    second: float

    @staticmethod
    def of(margins: Floats, weight: Floats | None = None) -> MarginMoments:
        """Moments of given margins, rows weighted when ``weight`` is given."""
        if weight is None:
            return MarginMoments(float(np.mean(margins)), float(np.mean(margins**2)))
        total = float(weight.sum())
        return MarginMoments(
            float(weight @ margins) / total, float(weight @ (margins * margins)) / total
        )

    @property
    def gibbs_risk(self) -> float:
        """Risk of a voter drawn from q: (1 - mu1)/2."""
        return 0.5 * (1.0 - self.first)

    @property
    def disagreement(self) -> float:
        """Probability that two voters drawn from q disagree: (1 - mu2)/2."""
        return 0.5 * (1.0 - self.second)

    @property
    def joint_error(self) -> float:
        """Probability that two voters drawn from q both err (tandem loss): mean ((1 - M)/2)²."""
        return 0.25 * (1.0 - 2.0 * self.first + self.second)

    def c_bound(self) -> float:
        """1 - mu1²/mu2, at most 1; 1 when the mean margin is not positive.

        Written as mu2's part that the best constant does not explain, (mu2 - mu1²)/mu2: the
        difference of two close numbers is taken once, before the division.
        """
        if self.first <= 0.0 or self.second <= 0.0:
            return 1.0
        return float(np.clip((self.second - self.first**2) / self.second, 0.0, 1.0))


def residual_c_bound(margins: Floats, weight: Floats | None = None) -> float:
    """C-bound as the residual of the least squares of 1 on the margins, min_s mean (1 - sM)².

    Equal to 1 - mu1²/mu2, without cancellation when the bound is tiny and without 0/0 when all
    margins are.

    >>> round(residual_c_bound(1e-9 * np.array([1.0, 1.0, 1.0, -1.0])), 12)
    0.75
    """
    moments = MarginMoments.of(margins, weight)
    if moments.first <= 0.0 or moments.second <= 0.0:
        return 1.0
    left = 1.0 - margins * (moments.first / moments.second)
    square = left * left
    total = np.mean(square) if weight is None else weight @ square / weight.sum()
    return float(min(total, 1.0))


# PAC-Bayes bounds on the risk of a majority vote (Germain et al. 2015; Masegosa et al. 2020).
#
# All hold with probability 1 - delta over the sample, for all votes at once, so a vote may be
# chosen by its bound. kl(q‖p) is the relative entropy of two coins; inverses are rounded outwards.


_OUTWARDS = 1e-9
"""Added to every bound: root finders stop near the supremum, and a bound must not stop below."""


def kl(q: float, p: float) -> float:
    """Relative entropy of a coin q to a coin p.

    >>> kl(0.5, 0.5)
    0.0
    """
    q = min(max(q, 0.0), 1.0)  # a mean of margins may lie outside by rounding
    return max(0.0, float(rel_entr(q, p) + rel_entr(1.0 - q, 1.0 - p)))


def kl_upper(q: float, budget: float) -> float:
    """Largest p >= q with kl(q‖p) <= budget, rounded up."""
    low, high = q, 1.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        if kl(q, middle) > budget:
            high = middle
        else:
            low = middle
    return high


def kl_lower(q: float, budget: float) -> float:
    """Smallest p <= q with kl(q‖p) <= budget, rounded down."""
    return 1.0 - kl_upper(1.0 - q, budget)


@lru_cache(maxsize=64)
def xi(m: int) -> float:
    """Σ_k C(m,k)(k/m)^k(1-k/m)^(m-k), between √m and 2√m, which is taken for many rows.

    >>> round(xi(1), 6)
    2.0
    """
    if m > 1_000_000:
        return float(2.0 * np.sqrt(m))
    k = np.arange(m + 1, dtype=np.float64)
    logs = gammaln(m + 1) - gammaln(k + 1) - gammaln(m - k + 1)
    logs = logs + xlogy(k, k / m) + xlogy(m - k, 1.0 - k / m)
    return float(np.exp(logs).sum())


def independent_rows(total: float, heaviest: float) -> int:
    """Σw / max w, rounded down: the rows that a bound on a weighted mean may count.

    A weight is no observation: a row of weight five is one draw. For weights that were fixed
    without a look at the votes and labels, E f(weighted mean) <= E f(plain mean of this many rows)
    for every convex f, because the shares of the rows are majorised by equal shares of so many
    (Marshall and Olkin); that is all that the bounds use of a sample. Kish's (Σw)² / Σw² is larger,
    and covers the square-root forms only.

    >>> independent_rows(35.0, 5.0), independent_rows(1.0 + 1.0 + 2.0, 2.0)
    (7, 2)
    """
    return max(1, int(total / heaviest * (1.0 + 1e-12)))


@dataclass(frozen=True)
class PacBayesBound:
    """One bound: its value, where it comes from, and what it takes for granted."""

    name: str
    value: float
    source: str
    assumption: str


@dataclass(frozen=True)
class PacBayes:
    """What the bounds need of a vote.

    Parameters
    ----------
    moments : MarginMoments
        On the sample.
    m : int
        Independent rows (:func:`independent_rows`; for out-of-bag moments those of the rarest
        pair).
    divergence : float
        KL(q‖prior).
    delta : float
        Probability with which the bound may fail.
    """

    moments: MarginMoments
    m: int
    divergence: float
    delta: float = 0.05

    def __post_init__(self) -> None:
        if not 0.0 < self.delta < 1.0:
            raise ValueError(f"delta must be strictly between 0 and 1, got {self.delta!r}.")
        if self.m < 1 or self.divergence < 0.0:
            raise ValueError(
                "A bound needs at least one row and a divergence that is not negative."
            )

    def _budget(self, times: float, log_of: float) -> float:
        return (times * self.divergence + float(np.log(log_of / self.delta))) / self.m

    def gibbs(self) -> float:
        """Bound 0: twice an upper bound of the Gibbs risk."""
        return _round_up(2.0 * kl_upper(self.moments.gibbs_risk, self._budget(1, xi(self.m))))

    def two_inverses(self) -> float:
        """Bound 1: Gibbs risk and disagreement bounded apart, delta/2 each."""
        double = 2.0 * xi(self.m)
        risk = kl_upper(self.moments.gibbs_risk, self._budget(1, double))
        apart = kl_lower(self.moments.disagreement, self._budget(2, double))
        return _round_up(_c_of(risk, apart))

    def joint(self) -> float:
        """Bound 2: joint error and disagreement bounded together by one trinomial kl.

        The supremum is scanned over the disagreement and refined; the published tool stops its
        inner search 3e-6 below it.
        """
        return _round_up(_joint_supremum(self.moments, self._budget(2, xi(self.m) + self.m)))

    def slides(self) -> float:
        """The slides' form: both moments moved by square roots, with √m inside the logarithm.

        √m is valid there from m = 5 on: the constant needed is sup_p E exp(2m(p̂ - p)²), which
        is smaller.
        """
        log = float(np.log(np.sqrt(max(self.m, 5)) / (self.delta / 2)))
        first = self.moments.first - np.sqrt(2.0 / self.m * (self.divergence + log))
        second = self.moments.second + np.sqrt(2.0 / self.m * (2.0 * self.divergence + log))
        if first <= 0.0:
            return 1.0
        return _round_up(1.0 - first**2 / min(second, 1.0))

    def tandem(self) -> float:
        """Four times an upper bound of the joint error (second-order Markov)."""
        budget = self._budget(2, 2.0 * np.sqrt(self.m))
        return _round_up(4.0 * kl_upper(self.moments.joint_error, budget))

    def quasi_uniform(self) -> float:
        """Bound 3: q quasi-uniform on a self-complemented class, where no divergence is paid."""
        free = PacBayes(self.moments, self.m, 0.0, self.delta)
        return free.two_inverses()


def _round_up(value: float) -> float:
    return float(min(1.0, value + _OUTWARDS))


def _c_of(risk: float, apart: float) -> float:
    """C-bound from the Gibbs risk and the disagreement."""
    if risk >= 0.5:
        return 1.0
    second = 1.0 - 2.0 * apart
    first = 1.0 - 2.0 * risk
    return 1.0 if second <= 0.0 else float(np.clip(1.0 - first**2 / second, 0.0, 1.0))


def _largest_joint_error(e_s: float, d_s: float, d: Floats, budget: float) -> Floats:
    """Largest e with kl3((e_s, d_s)‖(e, d)) <= budget for every d, or NaN where there is none.

    For fixed d the divergence is convex in e and smallest at e_s (1 - d)/(1 - d_s).
    """

    def apart(e: Floats) -> Floats:
        rest = max(0.0, 1.0 - e_s - d_s)
        return np.asarray(rel_entr(e_s, e) + rel_entr(d_s, d) + rel_entr(rest, 1.0 - e - d))

    low = e_s * (1.0 - d) / (1.0 - d_s) if d_s < 1.0 else np.zeros_like(d)
    none = apart(np.maximum(low, 1e-300)) > budget
    high = 1.0 - d
    for _ in range(80):
        middle = 0.5 * (low + high)
        beyond = apart(middle) > budget
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return np.where(none, np.nan, high)


def _joint_supremum(moments: MarginMoments, budget: float) -> float:
    """Supremum of the C-bound over (e, d) within the budget: four nested scans of 200 points."""
    e_s, d_s = max(moments.joint_error, 0.0), max(moments.disagreement, 0.0)
    low, high = kl_lower(d_s, budget), min(kl_upper(d_s, budget), 0.5)
    best = 0.0
    for _ in range(4):
        d = np.linspace(low, high, 200)
        e = _largest_joint_error(e_s, d_s, d, budget)
        # the pair must be that of some margin, d <= 2(√e - e): √e lies between two roots
        root = np.sqrt(np.maximum(0.0, 1.0 - 2.0 * d))
        e = np.clip(e, (0.5 * (1.0 - root)) ** 2, (0.5 * (1.0 + root)) ** 2)
        first, second = 1.0 - (2.0 * e + d), 1.0 - 2.0 * d
        valid = (first > 0.0) & (second > 0.0)
        ratio = np.divide(first**2, second, out=np.zeros_like(d), where=valid)
        value = np.where(np.isnan(e), -1.0, np.clip(1.0 - ratio, 0.0, 1.0))
        place = int(value.argmax())
        best = max(best, float(value[place]))
        low, high = d[max(place - 1, 0)], d[min(place + 1, len(d) - 1)]
    return best


_ROWS = (
    "rows are independent draws, and their weights, if any, were fixed without a look at votes and "
    "labels"
)


def pac_bayes_bounds(
    moments: MarginMoments,
    m: int,
    divergence: float,
    delta: float = 0.05,
    *,
    assumption: str = "the prior over voters does not depend on the rows",
    quasi_uniform: bool = False,
) -> list[PacBayesBound]:
    """Every bound at confidence 1 - delta, each with its assumption.

    To report the smallest of several, ask for them at delta divided by their number.

    >>> found = pac_bayes_bounds(MarginMoments(0.6, 0.4), 1000, 2.0)
    >>> [bound.name for bound in found]
    ['gibbs', 'two inverses', 'joint', 'slides', 'tandem']
    """
    form = PacBayes(moments, m, divergence, delta)
    found = [
        ("gibbs", form.gibbs(), "Germain et al. 2015, bound 0"),
        ("two inverses", form.two_inverses(), "bound 1"),
        ("joint", form.joint(), "bound 2"),
        ("slides", form.slides(), "Roy 2015"),
        ("tandem", form.tandem(), "Masegosa et al. 2020"),
    ]
    if quasi_uniform:
        assumption += "; weights are quasi-uniform on a self-complemented class"
        found.append(("quasi-uniform", form.quasi_uniform(), "Laviolette et al. 2011"))
    return [PacBayesBound(*bound, f"{assumption}; {_ROWS}") for bound in found]


def divergence_from_uniform(weights: Floats, n_voters: float) -> float:
    """KL(q‖uniform over n_voters) of weights normalised to sum one.

    >>> divergence_from_uniform(np.array([1.0]), 1)
    0.0
    """
    total = np.abs(weights).sum()
    if total == 0.0:  # nothing is preferred: the prior itself
        return 0.0
    q = np.abs(weights) / total
    return max(0.0, float(xlogy(q, q).sum() + np.log(n_voters)))
