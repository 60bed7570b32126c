"""Displays of the gray zone: cost by threshold, estimated against true probability, support.

The pictures of Hérault and Grandvalet (2008): figure 6, figures 3 to 5, and the last line of
Table 3 drawn against the width of the zone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from laconic._typing import Floats
from laconic.core import drawing as theme
from laconic.core.losses import log_odds
from laconic.decide.displays import CostCurveDisplay

__all__ = ["SupportShareDisplay", "TrueProbabilityDisplay", "ZoneCostDisplay"]


@dataclass
class ZoneCostDisplay(theme.Display):
    """Mean cost against the threshold for several models, such as a plain and a gray-zone fit.

    ``plot(log_odds=False)`` spaces the thresholds evenly.

    Attributes
    ----------
    curves : dict of str to CostCurveDisplay
    zone : (p_min, p_max) or None
        Drawn as a band.
    lines_ : matplotlib objects, after ``plot``

    Examples
    --------
    >>> display = ZoneCostDisplay.from_predictions(
    ...     [0, 0, 1, 1], {"a": [0.1, 0.6, 0.4, 0.9]}, {"fp": 1, "fn": 3}
    ... )
    >>> display.curves["a"].cost_at(0.25)
    0.25
    """

    curves: dict[str, CostCurveDisplay]
    zone: tuple[float, float] | None = None

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        probas: Mapping[str, ArrayLike],
        costs: Any = None,
        *,
        zone: tuple[float, float] | None = None,
        **options: Any,
    ) -> ZoneCostDisplay:
        """From true classes and, per model, probabilities of the second class."""
        curves = {
            name: CostCurveDisplay.from_predictions(y, p, costs, name=name, **options)
            for name, p in probas.items()
        }
        return cls(curves, zone)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, costs: Any = None, **options: Any
    ) -> ZoneCostDisplay:
        """From a fitted model or a mapping of names to fitted models.

        The narrowest zone found among them is the band.
        """
        models = theme.named_models(estimator)
        probas = {name: model.predict_proba(X)[:, 1] for name, model in models.items()}
        zones = [_zone_of(model) for model in models.values()]
        known = sorted((z for z in zones if z is not None), key=lambda z: z[1] - z[0])
        options = {"zone": known[0] if known else None, **options}
        return cls.from_predictions(y, probas, costs, **options)

    def _columns(self) -> dict[str, Any]:
        curves = list(self.curves.values())
        return {
            "model": np.repeat(list(self.curves), [len(c.thresholds) for c in curves]),
            "threshold": np.concatenate([c.thresholds for c in curves]),
            "cost": np.concatenate([c.costs for c in curves]),
        }

    def _draw(self, ax: Any, *, log_odds: bool = True) -> tuple[str, str]:
        self.lines_ = []
        for place, (name, curve) in enumerate(self.curves.items()):
            said = f"{name}: {curve.cost_at(curve.threshold):.3g} (lowest {curve.costs.min():.3g})"
            look = {"color": theme.colour(place), "lw": 1.8, "label": said}
            self.lines_ += ax.step(curve.thresholds, curve.costs, where="post", **look)
        threshold = next(iter(self.curves.values())).threshold
        ax.axvline(threshold, color=theme.ALARM, lw=1.0, alpha=0.6)
        if self.zone is not None:
            low, high = np.clip(self.zone, 1e-6, 1 - 1e-6)  # log-odds of the ends are finite
            theme.band(ax, (low, high))
        if log_odds:
            theme.log_odds_axis(ax)
            ax.set_xlim(threshold / 20, 1 - (1 - threshold) / 20)
        return "Threshold", "Mean cost per row"


@dataclass
class TrueProbabilityDisplay(theme.Display):
    """Estimated against true probability where the truth is known: median and 80 % interval.

    Attributes
    ----------
    truth : ndarray of shape (n_bins,)
        Mean true probability of each bin.
    low, median, high : ndarray of shape (n_bins,)
        Quantiles 0.1, 0.5 and 0.9 of the estimates in the bin.
    zone : (p_min, p_max) or None
    name : str
    line_, band_ : matplotlib objects, after ``plot``

    Examples
    --------
    >>> p = np.linspace(0.01, 0.99, 500)
    >>> display = TrueProbabilityDisplay.from_predictions(p, p, n_bins=5)
    >>> bool(np.abs(display.median - display.truth).max() < 0.01)
    True
    """

    truth: Floats
    low: Floats
    median: Floats
    high: Floats
    zone: tuple[float, float] | None = None
    name: str = "model"

    @classmethod
    def from_predictions(
        cls,
        true_proba: ArrayLike,
        proba: ArrayLike,
        *,
        n_bins: int = 25,
        zone: tuple[float, float] | None = None,
        name: str = "model",
    ) -> TrueProbabilityDisplay:
        """Bins are of equal width in the true probability; empty ones are left out."""
        truth = np.asarray(true_proba, dtype=np.float64)
        p = theme.checked_proba(proba, truth)
        place = np.minimum((truth * n_bins).astype(int), n_bins - 1)
        filled = np.unique(place)
        quantiles = np.array([np.quantile(p[place == k], (0.1, 0.5, 0.9)) for k in filled])
        means = np.array([truth[place == k].mean() for k in filled])
        low, median, high = quantiles.T
        return cls(means, low, median, high, zone, name)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, true_proba: ArrayLike, **options: Any
    ) -> TrueProbabilityDisplay:
        options = {"zone": _zone_of(estimator), "name": type(estimator).__name__, **options}
        return cls.from_predictions(true_proba, estimator.predict_proba(X)[:, 1], **options)

    def _draw(self, ax: Any) -> tuple[str, str]:
        color = theme.LINES[0]
        self.band_ = ax.fill_between(self.truth, self.low, self.high, color=color, alpha=0.2, lw=0)
        (self.line_,) = ax.plot(self.truth, self.median, color=color, lw=1.8, label=self.name)
        theme.diagonal(ax)
        theme.band(ax, self.zone)
        return "True probability", "Estimated probability"


@dataclass
class SupportShareDisplay(theme.Display):
    """Share of training rows with a part in the model, against the width of the zone.

    Attributes
    ----------
    zones : list of (p_min, p_max)
    widths : ndarray
        log-odds(p_max) - log-odds(p_min); infinite for a zone that ends at 0 or 1.
    shares : ndarray
    line_ : matplotlib object, after ``plot``

    Examples
    --------
    >>> display = SupportShareDisplay.from_predictions([(0.1, 0.9), (0.4, 0.6)], [0.8, 0.3])
    >>> display.widths.round(2)
    array([4.39, 0.81])
    """

    zones: list[tuple[float, float]]
    widths: Floats
    shares: Floats

    @classmethod
    def from_predictions(
        cls, zones: Sequence[tuple[float, float]], shares: ArrayLike
    ) -> SupportShareDisplay:
        """From zones and the support shares measured for them."""
        ends = [(float(low), float(high)) for low, high in zones]
        widths = np.array([log_odds(high) - log_odds(low) for low, high in ends])
        return cls(ends, widths, np.asarray(shares, dtype=np.float64))

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, zones: Sequence[tuple[float, float]]
    ) -> SupportShareDisplay:
        """Fit a copy of ``estimator`` for each zone, its threshold left to the zone."""
        shares = []
        for zone in zones:
            model = clone(estimator).set_params(zone=zone, threshold=None).fit(X, y)
            shares.append(len(model.support_) / len(model.partition_))
        return cls.from_predictions(zones, shares)

    def _columns(self) -> dict[str, Any]:
        low, high = np.array(self.zones).T
        return {"p_min": low, "p_max": high, "width": self.widths, "support_share": self.shares}

    def _draw(self, ax: Any) -> tuple[str, str]:
        finite = np.isfinite(self.widths)
        order = np.flatnonzero(finite)[np.argsort(self.widths[finite])]
        look = {"color": theme.LINES[0], "lw": 1.8}
        (self.line_,) = ax.plot(self.widths[order], 100 * self.shares[order], "o-", **look)
        for share in self.shares[~finite]:
            ax.axhline(100 * share, color=theme.QUIET, lw=1.2, ls=theme.DASHES[1])
        ax.set_ylim(0, 105)
        return "Width of the zone (log-odds)", "Rows with a part in the model (%)"


def _zone_of(model: Any) -> tuple[float, float] | None:
    zone = getattr(model, "zone_", getattr(model, "zone", None))
    if isinstance(zone, tuple | list) and len(zone) == 2 and tuple(zone) != (0.0, 1.0):
        return float(zone[0]), float(zone[1])
    return None
