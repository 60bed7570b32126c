"""The cheapest threshold of two classes that holds what was promised.

Several promises share the doubt delta. Of the thresholds that hold all of them, the cheapest on the
same rows is taken: the promises hold for all of these at once, so choosing among them costs
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from scipy.stats import beta, binom

from laconic._typing import Floats, Mask
from laconic.core.decisions import cost_matrix, decision_threshold
from laconic.decide.guarantee import (
    CONDITIONAL,
    Guarantee,
    NoThresholdError,
    Promise,
    check_confidence,
    fallback,
    mean_p_value,
    order_of_the_promise,
    read_guarantees,
    refuse_too_few,
)

GRID = expit(np.linspace(-7.0, 7.0, 113))
"""Where precision and cost are tested: thresholds from .001 to .999, an eighth of log-odds apart.
The tests share the doubt in this order, so that a finer grid costs little."""


@dataclass(frozen=True)
class GuaranteedThreshold:
    """Decide positive where the probability is above ``threshold``."""

    threshold: float
    lowest: float
    highest: float
    """Every threshold from ``lowest`` to ``highest`` that was a candidate holds the promises."""
    cost: float | None
    promises: tuple[Promise, ...]
    shares: tuple[float, float] | None = None
    """Shares of the positive class between which all promises hold; None: that of the rows."""

    def to_dict(self) -> dict[str, Any]:
        """Numbers and texts, for a model file."""
        return {
            "threshold": self.threshold,
            "lowest": self.lowest,
            "highest": self.highest,
            "cost": self.cost,
            "shares": None if self.shares is None else list(self.shares),
            "promises": [one.to_dict() for one in self.promises],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> GuaranteedThreshold:
        promises = tuple(map(Promise.from_dict, data["promises"]))
        cuts = [float(data[name]) for name in ("lowest", "threshold", "highest")]
        if not 0.0 < cuts[0] <= cuts[1] <= cuts[2] < 1.0:
            raise ValueError(f"thresholds must rise between 0 and 1, got {cuts}")
        cost = None if data["cost"] is None else float(data["cost"])
        shares = None if data["shares"] is None else tuple(float(p) for p in data["shares"])
        if shares is not None and not (len(shares) == 2 and 0.0 <= shares[0] <= shares[1] <= 1.0):
            raise ValueError(f"shares must rise between 0 and 1, got {shares}")
        return cls(cuts[1], cuts[0], cuts[2], cost, promises, shares)

    def rule_costs(self, place: int) -> Floats:
        """Costs whose least expectation decides by the threshold; ``place`` is the positive one."""
        found = np.zeros((2, 2))
        found[place, 1 - place] = 1.0 - self.threshold
        found[1 - place, place] = self.threshold
        return found

    def for_mix(self, factor: float, cheapest: float) -> GuaranteedThreshold:
        """The same promises after the odds of the positive class were multiplied by ``factor``.

        The scores keep their order, so what holds within a class holds for the moved thresholds;
        of these, the one nearest to ``cheapest`` is taken. What depends on the mix is promised no
        longer.

        >>> recall = Promise(Guarantee("recall", 0.9), 0.95, 0.92, 400, True)
        >>> found = GuaranteedThreshold(0.2, 0.01, 0.5, 0.3, (recall,)).for_mix(0.25, 0.2)
        >>> round(found.highest, 3), round(found.threshold, 3)
        (0.2, 0.2)
        """
        if not any(one.holds_under_shift for one in self.promises):
            raise ValueError(
                f"{', '.join(str(one.guarantee) for one in self.promises)} was promised for the "
                "class mix of its rows and says nothing about another one; fit again with this "
                "prior."
            )

        def moved(cut: float) -> float:
            odds = factor * cut / (1.0 - cut)
            return odds / (1.0 + odds)

        low, high = moved(self.lowest), moved(self.highest)
        kept = tuple(replace(p, measured=None) for p in self.promises if p.holds_under_shift)
        return GuaranteedThreshold(float(np.clip(cheapest, low, high)), low, high, None, kept)


def guaranteed_threshold(
    score: ArrayLike,
    positive: ArrayLike,
    guarantees: str | Guarantee | Sequence[str | Guarantee],
    *,
    costs: Any = None,
    confidence: float = 0.95,
    shares: tuple[float, float] | None = None,
) -> GuaranteedThreshold:
    """The cheapest threshold that holds every guarantee with the stated confidence.

    Parameters
    ----------
    score : array-like of shape (n,)
        Probabilities of the positive class for rows that had no part in the fit nor in its choice.
    positive : array-like of shape (n,)
        True where the class is the positive one.
    guarantees : str, Guarantee or a sequence of them
        For instance ``"recall>=0.95"`` or ``["recall>=0.9", "alarms<=0.02"]``.
    costs : as in DecisionClassifier, default=None
        Of two classes, the positive one last; they choose among the thresholds that hold.
    confidence : float, default=0.95
        Probability, over the draw of these rows, that all promises hold for new rows.
    shares : (float, float), default=None
        Least and largest share of the positive class where the model is used: alarms, precision
        and cost are then promised for every mix between them. None: the mix of these rows.

    Returns
    -------
    GuaranteedThreshold

    Examples
    --------
    >>> draw = np.random.default_rng(0)
    >>> positive = draw.random(4000) < 0.1
    >>> score = expit(draw.normal(np.where(positive, 1.0, -2.5), 1.0))
    >>> found = guaranteed_threshold(score, positive, "recall>=0.9", costs={"fp": 1, "fn": 3})
    >>> found.promises[0].rows, found.promises[0].measured >= 0.9
    (415, True)
    """
    score, positive = _checked(score, positive)
    asked = read_guarantees(guarantees)
    if not asked:
        raise ValueError("guarantee: nothing is asked for.")
    check_confidence(confidence)
    matrix = cost_matrix(costs, [0, 1])
    n_rows = int(positive.sum()), int((~positive).sum())
    enough_for_threshold(asked, *n_rows, confidence, shares=shares)
    candidates = _candidates(score, decision_threshold(matrix))
    judged = _Judged(candidates, score, positive, matrix, shares)
    delta = (1.0 - confidence) / len(asked)
    holds = np.ones(len(candidates), dtype=bool)
    for one in asked:
        own = judged.held(one, delta)
        if not (holds & own).any():
            raise NoThresholdError(_why_none(one, asked, own, len(score), confidence))
        holds &= own
    paid = judged.costs()
    best = int(np.flatnonzero(holds)[np.argmin(paid[holds])])
    kept, cut = candidates[holds], float(candidates[best])
    promises = tuple(judged.promise(one, best, confidence) for one in asked)
    return GuaranteedThreshold(
        cut, float(kept.min()), float(kept.max()), float(paid[best]), promises, shares
    )


def enough_for_threshold(
    asked: Sequence[Guarantee],
    n_positive: int,
    n_negative: int,
    confidence: float,
    have: str = "here are",
    shares: tuple[float, float] | None = None,
) -> None:
    """An error where so many rows cannot hold a guarantee whatever their scores."""
    if not n_positive:
        raise NoThresholdError(
            "The rows that should hold the guarantee have no row of the positive class; hold more "
            "rows out."
        )
    total = n_positive + n_negative
    levels = {one.measure: one.level for one in asked}
    least = levels.get("recall", 0.0) * n_positive / total
    if shares is None and levels.get("alarms", 1.0) < least:
        raise NoThresholdError(
            f"recall>={levels['recall']:g} and alarms<={levels['alarms']:g} contradict each other: "
            f"{n_positive / total:.2%} of the rows are positive, and finding so many of them takes "
            f"alarms on {least:.2%} at least."
        )
    known = {"recall": n_positive, "false_alarms": n_negative}
    rows = [known.get(one.measure, total) for one in asked]
    refuse_too_few(asked, rows, confidence, (1.0 - confidence) / len(asked), have)


def _checked(score: ArrayLike, positive: ArrayLike) -> tuple[Floats, Mask]:
    values = np.asarray(score, dtype=np.float64)
    truth = np.asarray(positive, dtype=bool)
    if values.ndim != 1 or values.shape != truth.shape or not len(values):
        raise ValueError(
            "A guarantee needs one score and one class for each of at least one row, got shapes "
            f"{values.shape} and {truth.shape}."
        )
    if not ((values >= 0.0) & (values <= 1.0)).all():
        raise ValueError("A guarantee needs scores between 0 and 1.")
    return values, truth


def _candidates(score: Floats, cheapest: float) -> Floats:
    """Cuts in the middle between neighbouring scores, the grid, and the rule of least cost."""
    distinct = np.unique(score)
    middle = 0.5 * (distinct[1:] + distinct[:-1])
    # a middle that rounds to one of its scores would decide that score by luck
    middle = middle[(middle > distinct[:-1]) & (middle < distinct[1:])]
    ends = [0.5 * distinct[0], 0.5 * (1.0 + distinct[-1])]
    grid = GRID[~np.isin(GRID, distinct)]
    inside = [cheapest] if 0.0 < cheapest < 1.0 and cheapest not in distinct else []
    found = np.unique(np.concatenate([middle, ends, grid, inside]))
    return found[(found > 0.0) & (found < 1.0)]


@dataclass(frozen=True)
class _Judged:
    """What calibration rows say of every cut."""

    cuts: Floats
    score: Floats
    positive: Mask
    matrix: Floats
    shares: tuple[float, float] | None

    def above(self, rows: Mask | slice) -> Floats:
        """How many of some scores lie above each cut."""
        own = np.sort(self.score[rows])
        return len(own) - np.searchsorted(own, self.cuts, "right").astype(np.float64)

    def held(self, one: Guarantee, delta: float) -> Mask:
        """Which cuts hold a guarantee, all of them at once, with doubt ``delta``."""
        n_positive = int(self.positive.sum())
        if one.measure == "recall":
            missed = n_positive - self.above(self.positive)
            return np.asarray(missed <= order_of_the_promise(n_positive, 1 - one.level, delta))
        if one.measure == "false_alarms" or (one.measure == "alarms" and self.shares is None):
            rows = ~self.positive if one.measure == "false_alarms" else slice(None)
            n_rows = len(self.score[rows])
            return np.asarray(self.above(rows) <= order_of_the_promise(n_rows, one.level, delta))
        # the whole grid is tested, also cuts that are no candidates because they equal a score: the
        # order of the tests and the part of the doubt that each has may not depend on the rows
        grid = replace(self, cuts=GRID)
        if self.shares is not None:
            passed = grid._over_the_mixes(one, delta / len(GRID))
        else:
            # from the highest threshold down: where precision holds, it tends to hold above
            passed = fallback(grid._p_values(one)[::-1], delta)[::-1]
        return np.isin(self.cuts, GRID[passed])

    def _p_values(self, one: Guarantee) -> Floats:
        """Of "a cut breaks the promise", for precision or cost, cut by cut."""
        if one.measure == "precision":
            right, alarms = self.above(self.positive), self.above(slice(None))
            return np.where(alarms > 0, binom.sf(right - 1, alarms, one.level), 1.0)
        return mean_p_value(self.costs(), one.level, self.matrix, len(self.score))

    def _over_the_mixes(self, one: Guarantee, delta: float) -> Mask:
        """Cuts whose rates, known to within half the doubt each, keep a level at both ends.

        Alarms, cost, and precision (as a difference that must not be negative) are linear in the
        share of the positive class, so the worst mix is an end of the box.
        """
        hits = _limits(self.above(self.positive), int(self.positive.sum()), delta / 2.0)
        false = _limits(self.above(~self.positive), int((~self.positive).sum()), delta / 2.0)
        c, level = self.matrix, one.level
        worst = []
        for share in self.shares or ():
            rest = 1.0 - share
            if one.measure == "alarms":
                worst.append(share * hits[1] + rest * false[1] - level)
            elif one.measure == "precision":
                worst.append(rest * level * false[1] - share * (1.0 - level) * hits[0])
            else:
                paid = [
                    share * (c[1, 0] + h * (c[1, 1] - c[1, 0]))
                    + rest * (c[0, 0] + f * (c[0, 1] - c[0, 0]))
                    for h in hits
                    for f in false
                ]
                worst.append(np.max(paid, axis=0) - level)
        return np.asarray(np.max(worst, axis=0) <= 0.0)

    def costs(self) -> Floats:
        """Mean cost of deciding positive above each cut, at the dearest end of the mixes."""
        n_positive, n_negative = int(self.positive.sum()), int((~self.positive).sum())
        hit = self.above(self.positive) / max(n_positive, 1)
        false = self.above(~self.positive) / max(n_negative, 1)
        c = self.matrix
        risks = c[0, 0] + false * (c[0, 1] - c[0, 0]), c[1, 0] + hit * (c[1, 1] - c[1, 0])
        own = n_positive / len(self.score)
        ends = (own,) if self.shares is None else self.shares
        paid = [(1.0 - share) * risks[0] + share * risks[1] for share in ends]
        return np.asarray(np.max(paid, axis=0))

    def promise(self, one: Guarantee, best: int, confidence: float) -> Promise:
        alarm, negative = self.score > self.cuts[best], ~self.positive
        right = self.positive[alarm]
        measured, rows = {
            "recall": (alarm[self.positive].mean(), int(self.positive.sum())),
            "false_alarms": (
                alarm[negative].mean() if negative.any() else 0.0,
                int(negative.sum()),
            ),
            "alarms": (alarm.mean(), len(alarm)),
            "precision": (right.mean() if len(right) else None, len(right)),
            "cost": (self.costs()[best], len(alarm)),
        }[one.measure]
        known = None if measured is None else float(measured)
        return Promise(one, confidence, known, rows, one.measure in CONDITIONAL)


def _limits(count: Floats, total: int, delta: float) -> tuple[Floats, Floats]:
    """Clopper and Pearson: each end of the rate is wrong with probability ``delta`` at most."""
    low = np.where(count > 0, beta.ppf(delta, count, total - count + 1.0), 0.0)
    high = np.where(count < total, beta.ppf(1.0 - delta, count + 1.0, total - count), 1.0)
    return low, high


def _why_none(
    one: Guarantee, asked: Sequence[Guarantee], own: Mask, n_rows: int, confidence: float
) -> str:
    said = f"at {confidence:.0%} confidence"
    if own.any():
        others = ", ".join(str(other) for other in asked if other != one)
        return f"No threshold holds {one} together with {others} {said}; ask for less of one."
    return f"No threshold holds {one} {said} on these {n_rows} rows; ask for less."
