r"""Net benefit over thresholds, and cost over class mixes and cost ratios, with bands.

At a threshold t the net benefit of alarms (Vickers and Elkin 2006) is

.. math:: \mathrm{NB}(t) = \pi\,\mathrm{TPR}(t) - (1 - \pi)\,\mathrm{FPR}(t)\,\frac{t}{1 - t},

in true alarms per row: t says how many false alarms one true alarm is worth. "Nobody" has a net
benefit of 0, "everybody" that of both rates being 1. Bands join the intervals of the two rates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from laconic._typing import Floats, Mask
from laconic.core import drawing as theme
from laconic.core.decisions import cost_matrix, decision_threshold
from laconic.decide.displays import labelled_proba
from laconic.decide.intervals import CONFIDENCE, rate_interval
from laconic.decide.threshold import GuaranteedThreshold

__all__ = ["CostRegionDisplay", "DecisionCurveDisplay"]

POINTS = 81
MOST_RATIO = 32.0
"""Cost ratios are drawn from this much less to this much more than the given one."""


@dataclass(frozen=True)
class Rates:
    """Hits and false alarms above cuts, with the interval of each."""

    hit: Floats
    hit_low: Floats
    hit_high: Floats
    false: Floats
    false_low: Floats
    false_high: Floats

    @classmethod
    def above(cls, score: Floats, positive: Mask, cuts: Floats) -> Rates:
        """Of rows whose score is above each cut."""
        found = []
        for rows in (positive, ~positive):
            own = np.sort(score[rows])
            above = len(own) - np.searchsorted(own, cuts, "right")
            rate = above / max(len(own), 1)
            found += [rate, *rate_interval(rate, np.full(len(cuts), len(own)), CONFIDENCE)]
        return cls(*found)

    def sum(self, of_hit: Floats, of_false: Floats) -> tuple[Floats, Floats, Floats]:
        """A weighted sum of both rates, with its band."""
        value = of_hit * self.hit + of_false * self.false
        down, up = np.zeros_like(value), np.zeros_like(value)
        for weight, rate, low, high in (
            (of_hit, self.hit, self.hit_low, self.hit_high),
            (of_false, self.false, self.false_low, self.false_high),
        ):
            ends = weight * (rate - low), weight * (high - rate)
            below, over = np.where(weight >= 0, ends, np.negative(ends[::-1]))
            down, up = down + below**2, up + over**2
        return value, value - np.sqrt(down), value + np.sqrt(up)


def _checked(
    y: ArrayLike, proba: ArrayLike, positive: Any, labels: Any, costs: Any = None
) -> tuple[Mask, Floats, Any, Any]:
    truth, p, classes, k = labelled_proba(y, proba, positive, labels, costs, "A decision curve")
    own = np.asarray(truth == classes[k])
    if own.all() or not own.any():
        raise ValueError("A decision curve needs rows of both classes.")
    return own, p, classes, k


def _promised(estimator: Any) -> dict[str, Any]:
    """The region that a model's guarantee leaves, for its displays."""
    model = getattr(estimator, "decision_", estimator)
    held = getattr(model, "guaranteed_", None)
    return {"guaranteed": held} if isinstance(held, GuaranteedThreshold) else {}


@dataclass
class DecisionCurveDisplay(theme.Display):
    """Net benefit of alarms over thresholds, beside "everybody" and "nobody".

    Attributes
    ----------
    thresholds, benefit, low, high, everybody : ndarray of shape (m,)
        The band holds the net benefit in the long run, pointwise.
    share : float
        Of the positive class.
    threshold : float or None
        The one that is used.
    region : (float, float) or None
        Thresholds that hold the guarantee.

    Examples
    --------
    >>> curve = DecisionCurveDisplay.from_predictions(
    ...     [0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], thresholds=[0.2, 0.5]
    ... )
    >>> curve.benefit.tolist(), curve.everybody.tolist()
    ([0.4375, 0.0], [0.375, 0.0])
    """

    thresholds: Floats
    benefit: Floats
    low: Floats
    high: Floats
    everybody: Floats
    share: float
    threshold: float | None = None
    region: tuple[float, float] | None = None
    positive: Any = 1

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        proba: ArrayLike,
        *,
        thresholds: ArrayLike | None = None,
        share: float | None = None,
        threshold: float | None = None,
        guaranteed: GuaranteedThreshold | None = None,
        positive: Any = None,
        labels: ArrayLike | None = None,
    ) -> DecisionCurveDisplay:
        """From classes and probabilities of ``positive``; ``share``: where the model is used."""
        own, p, classes, k = _checked(y, proba, positive, labels)
        pi = float(own.mean()) if share is None else float(share)
        if guaranteed is not None:
            threshold = guaranteed.threshold
        cuts = _grid(pi, threshold) if thresholds is None else np.asarray(thresholds, np.float64)
        odds = cuts / (1.0 - cuts)
        rates = Rates.above(p, own, cuts)
        benefit, low, high = rates.sum(np.full(len(cuts), pi), -(1.0 - pi) * odds)
        region = None if guaranteed is None else (guaranteed.lowest, guaranteed.highest)
        everybody = pi - (1.0 - pi) * odds
        name = classes.tolist()[k]
        return cls(cuts, benefit, low, high, everybody, pi, threshold, region, name)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, **options: Any
    ) -> DecisionCurveDisplay:
        """From a fitted model; the guarantee of a ``DecisionClassifier`` is marked."""
        proba, known = theme.positive_proba(estimator, X, options.get("positive"))
        known.pop("name", None)
        return cls.from_predictions(y, proba, **{**known, **_promised(estimator), **options})

    def _columns(self) -> dict[str, Any]:
        return {
            "threshold": self.thresholds,
            "net_benefit": self.benefit,
            "low": self.low,
            "high": self.high,
            "everybody": self.everybody,
        }

    def _draw(self, ax: Any) -> tuple[str, str]:
        if self.region is not None:
            self.region_ = theme.band(ax, self.region, label="thresholds that hold the guarantee")
        ax.fill_between(
            self.thresholds, self.low, self.high, color=theme.LINES[0], alpha=0.15, lw=0
        )
        (self.line_,) = ax.plot(
            self.thresholds, self.benefit, lw=1.8, label="model", **theme.look(0)
        )
        ax.plot(self.thresholds, self.everybody, lw=1.4, label="everybody", **theme.look(1))
        ax.axhline(0.0, color=theme.QUIET, lw=1.2, label="nobody")
        if self.threshold is not None:
            said = f"threshold {self.threshold:.3g}"
            ax.axvline(self.threshold, color=theme.ALARM, lw=1.0, label=said)
        theme.log_odds_axis(ax)
        ax.set_xlim(self.thresholds[0], self.thresholds[-1])
        top = max(float(self.high.max()), self.share)
        ax.set_ylim(-0.35 * top, 1.08 * top)
        return f"Threshold on the probability of {self.positive!r}", "Net benefit per row"


def _grid(share: float, threshold: float | None) -> Floats:
    """Thresholds around the class share and the one in use, even in log-odds."""
    middle = [share] if threshold is None else [share, threshold]
    ends = logit(np.clip([min(middle), max(middle)], 1e-4, 1.0 - 1e-4))
    return np.asarray(expit(np.linspace(ends[0] - 2.5, ends[1] + 2.5, POINTS)))


@dataclass
class CostRegionDisplay(theme.Display):
    """Cost of the decisions over the class mix, or over the ratio of costs, with its band.

    Over the mix the decisions stay as they are; over the ratio the threshold follows it, as far as
    the guarantee allows. Beside it the cheaper of "everybody" and "nobody", and what the guarantee
    says at most.

    Attributes
    ----------
    x : ndarray of shape (m,)
        Shares of the positive class, or cost of a miss over that of a false alarm.
    cost, low, high, constant : ndarray of shape (m,)
    ceiling : ndarray of shape (m,) or None
        What promises on recall and false alarms leave as the largest cost.
    at : float
        Share, or ratio, as it is.
    over : {"mix", "ratio"}

    Examples
    --------
    >>> curve = CostRegionDisplay.from_predictions(
    ...     [0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], {"fp": 1, "fn": 3}
    ... )
    >>> curve.over, round(float(curve.cost[0]), 2), round(float(curve.cost[-1]), 2)
    ('mix', 0.5, 0.0)
    """

    x: Floats
    cost: Floats
    low: Floats
    high: Floats
    constant: Floats
    at: float
    over: str = "mix"
    ceiling: Floats | None = None
    region: tuple[float, float] | None = None
    """Shares between which every promise holds, where it was made for a box of mixes."""
    positive: Any = 1

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        proba: ArrayLike,
        costs: Any = None,
        *,
        over: str = "mix",
        most: float = 1.0,
        share: float | None = None,
        threshold: float | None = None,
        guaranteed: GuaranteedThreshold | None = None,
        positive: Any = None,
        labels: ArrayLike | None = None,
    ) -> CostRegionDisplay:
        """From classes and probabilities of ``positive``; ``most``: the largest share drawn."""
        if over not in ("mix", "ratio"):
            raise ValueError(f"over must be 'mix' or 'ratio', got {over!r}.")
        own, p, classes, k = _checked(y, proba, positive, labels, costs)
        order = [1 - k, k]
        matrix = cost_matrix(costs, classes, positive=positive)[np.ix_(order, order)]
        alarm, miss = matrix[0, 1] - matrix[0, 0], matrix[1, 0] - matrix[1, 1]
        if not (alarm > 0 and miss > 0):
            raise ValueError("A cost curve needs a cost for false alarms and one for misses.")
        if threshold is None:
            threshold = decision_threshold(matrix)
        threshold = threshold if guaranteed is None else guaranteed.threshold
        pi = float(own.mean()) if share is None else float(share)
        if over == "mix":
            x = np.linspace(0.0, most, POINTS)
            shares, alarms, misses = x, np.full(POINTS, alarm), np.full(POINTS, miss)
            cuts, at = np.full(POINTS, threshold), pi
        else:
            x = miss / alarm * np.geomspace(1.0 / MOST_RATIO, MOST_RATIO, POINTS)
            shares, alarms, misses = np.full(POINTS, pi), np.full(POINTS, alarm), x * alarm
            cuts, at = 1.0 / (1.0 + x), float(miss / alarm)
            if guaranteed is not None:
                cuts = np.clip(cuts, guaranteed.lowest, guaranteed.highest)
        rates = Rates.above(p, own, cuts)
        paid, low, high = rates.sum(-shares * misses, (1.0 - shares) * alarms)
        right = (1.0 - shares) * matrix[0, 0] + shares * matrix[1, 1]
        fixed = right + shares * misses
        constant = np.minimum(fixed, right + (1.0 - shares) * alarms)
        ceiling = _ceiling(guaranteed, shares, alarms, misses)
        return cls(
            x, fixed + paid, fixed + low, fixed + high, constant, at, over,
            None if ceiling is None else right + ceiling,
            None if guaranteed is None else guaranteed.shares, classes.tolist()[k],
        )  # fmt: skip

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, costs: Any = None, **options: Any
    ) -> CostRegionDisplay:
        """From a fitted model; costs and guarantee of a ``DecisionClassifier`` are its own."""
        proba, known = theme.positive_proba(estimator, X, options.get("positive"))
        known.pop("name", None)
        if costs is None:
            model = getattr(estimator, "decision_", estimator)
            costs = getattr(model, "cost_matrix_", None)
        return cls.from_predictions(y, proba, costs, **{**known, **_promised(estimator), **options})

    def _columns(self) -> dict[str, Any]:
        found = {"share" if self.over == "mix" else "ratio": self.x}
        found |= {name: getattr(self, name) for name in ("cost", "low", "high", "constant")}
        return found if self.ceiling is None else {**found, "ceiling": self.ceiling}

    def _draw(self, ax: Any) -> tuple[str, str]:
        if self.over == "mix" and self.region is not None and self.region[0] < self.region[1]:
            self.region_ = theme.band(ax, self.region, label="mixes of the guarantee")
        ax.fill_between(self.x, self.low, self.high, color=theme.LINES[0], alpha=0.15, lw=0)
        (self.line_,) = ax.plot(self.x, self.cost, lw=1.8, label="model", **theme.look(0))
        ax.plot(self.x, self.constant, lw=1.4, label="cheaper of all and none", **theme.look(1))
        if self.ceiling is not None:
            ax.fill_between(
                self.x, self.ceiling, color=theme.ZONE, alpha=0.2, lw=0, label="guaranteed region"
            )
        ax.axvline(self.at, color=theme.QUIET, lw=1.0, ls=":", label=f"as it is: {self.at:.3g}")
        if self.over == "ratio":
            ax.set_xscale("log")
        ax.set_xlim(self.x[0], self.x[-1])
        ax.set_ylim(0.0, 1.1 * float(max(self.high.max(), self.constant.max())))
        if self.over == "mix":
            return f"Share of {self.positive!r} where the model is used", "Cost per row"
        return "Cost of a miss over that of a false alarm", "Cost per row"


def _ceiling(
    held: GuaranteedThreshold | None, shares: Floats, alarms: Floats, misses: Floats
) -> Floats | None:
    """The largest cost that promises within a class leave, whatever the mix and the ratio."""
    levels = {} if held is None else {p.guarantee.measure: p.guarantee.level for p in held.promises}
    if not {"recall", "false_alarms"} & set(levels):
        return None
    missed, false = 1.0 - levels.get("recall", 0.0), levels.get("false_alarms", 1.0)
    return np.asarray(shares * misses * missed + (1.0 - shares) * alarms * false)
