"""From the total of a card to a probability: a table, monotone, and what was seen at each total."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit
from scipy.stats import beta
from sklearn.isotonic import IsotonicRegression

from laconic._typing import Floats, Ints, Mask
from laconic.core.forms import AdditiveScore
from laconic.scorecard.problem import with_prior
from laconic.scorecard.tuning import INTERVAL


@dataclass(frozen=True)
class Seen:
    """Weight of both classes by total, from ``first`` on."""

    first: int
    pos: Floats
    neg: Floats

    @classmethod
    def of(cls, totals: Ints, second: Mask, weight: Floats, low: int, high: int) -> Seen:
        place = np.asarray(totals) - low
        size = high - low + 1
        return cls(
            low,
            np.asarray(np.bincount(place, weight * second, minlength=size), dtype=np.float64),
            np.asarray(np.bincount(place, weight * ~second, minlength=size), dtype=np.float64),
        )

    @property
    def totals(self) -> Ints:
        return self.first + np.arange(len(self.pos))


@dataclass(frozen=True)
class RiskRow:
    """One total: rows seen there, the share of the second class, its interval, the risk said."""

    total: int
    rows: float
    positives: float
    low: float
    high: float
    risk: float


def log_odds_table(seen: Seen, method: str, most: float, prior: float = 0.0) -> Floats:
    """Log-odds of every total by the rows seen: a logistic line, or isotonic steps.

    ``prior`` rows enter the line. Isotonic steps stay half a row away from 0 and 1.
    """
    from laconic.scorecard._numba import fit_multiplier

    here = seen.pos + seen.neg > 0
    totals, weight = seen.totals[here].astype(float), (seen.pos + seen.neg)[here]
    if method == "isotonic":
        steps = IsotonicRegression(out_of_bounds="clip")
        steps.fit(totals, seen.pos[here] / weight, sample_weight=weight)
        edge = 0.5 / weight.sum()
        return np.asarray(logit(np.clip(steps.predict(seen.totals), edge, 1.0 - edge)))
    all_rows = weight.sum()
    pos, neg = with_prior(seen.pos[here] / all_rows, seen.neg[here] / all_rows, prior / all_rows)
    _, a, b = fit_multiplier(totals, pos, neg, most)
    return np.asarray(a * seen.totals + b)


def held_to_threshold(log_odds: Floats, first: int, threshold: int, at: float) -> Floats:
    """The table with all totals from ``threshold`` on above the log-odds ``at``, others below."""
    margin = 1e-6 * max(1.0, abs(at))
    says = first + np.arange(len(log_odds)) >= threshold
    above, below = np.maximum(log_odds, at + margin), np.minimum(log_odds, at - margin)
    return np.where(says, above, below)


def doubling(form: AdditiveScore) -> float | None:
    """Points that double the odds, if the log-odds of a card's totals are a line."""
    steps = np.diff([odds for _, odds in form.calibration or ()])
    if not len(steps) or steps.min() <= 0.0 or np.ptp(steps) > 1e-6 * steps.max():
        return None
    return float(np.log(2.0) / steps.mean())


def risk_rows(seen: Seen, log_odds: Floats) -> list[RiskRow]:
    """What was seen at each total, with Clopper and Pearson's interval (Beta quantiles)."""
    tail, risk = 0.5 * (1.0 - INTERVAL), expit(log_odds)
    n = seen.pos + seen.neg
    low = np.where(seen.pos > 0, beta.ppf(tail, seen.pos, seen.neg + 1.0), 0.0)
    high = np.where(seen.neg > 0, beta.ppf(1.0 - tail, seen.pos + 1.0, seen.neg), 1.0)
    return [
        RiskRow(*row)
        for row in zip(
            seen.totals.tolist(), n.tolist(), seen.pos.tolist(), low.tolist(), high.tolist(),
            risk.tolist(), strict=True,
        )
    ]  # fmt: skip
