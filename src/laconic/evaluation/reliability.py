"""Reliability: do events predicted at 10 % happen one time in ten, where the decision is taken?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm
from sklearn.utils import column_or_1d

from laconic.criteria.decisions import class_codes, cost_matrix, decision_threshold, gray_zone
from laconic.evaluation import theme
from laconic.evaluation.costs import labels_of, row_weights
from laconic.evaluation.readings import checked_proba, name_of, positive_proba

Floats = NDArray[np.float64]


@dataclass
class ReliabilityDisplay:
    """Observed against predicted frequency of a class, with confidence bars and decision zone.

    Attributes
    ----------
    predicted, observed, lower, upper, rows : ndarray of shape (n_bins,)
        Per bin: mean prediction, observed frequency, its Wilson interval, and the (effective)
        number of rows.
    zone : (float, float) or None
        Where the probabilities must be right, for instance :func:`laconic.gray_zone`.
    threshold : float or None
    confidence : float
    positive : object
    name : str
    ax_, figure_, points_, bars_, zone_ : matplotlib objects, after :meth:`plot`

    Examples
    --------
    >>> display = ReliabilityDisplay.from_predictions(
    ...     [0, 0, 1, 0, 1, 1], [0.1, 0.1, 0.1, 0.8, 0.8, 0.8], costs={"fp": 1, "fn": 1}
    ... )
    >>> display.observed.round(3), display.rows
    (array([0.333, 0.667]), array([3., 3.]))
    """

    predicted: Floats
    observed: Floats
    lower: Floats
    upper: Floats
    rows: Floats
    zone: tuple[float, float] | None = None
    threshold: float | None = None
    confidence: float = 0.95
    positive: Any = 1
    name: str = "model"

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        proba: ArrayLike,
        *,
        costs: Any = None,
        zone: tuple[float, float] | float | None = None,
        n_bins: int = 10,
        strategy: str = "quantile",
        confidence: float = 0.95,
        pos_label: Any = None,
        labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        name: str = "model",
    ) -> ReliabilityDisplay:
        """From true classes and probabilities of one class (the last by default).

        Parameters
        ----------
        y, proba : array-like of shape (n,)
        costs : two-class costs, optional
            Give the threshold that is drawn.
        zone : (p_min, p_max) or float, optional
            The zone to mark; one number is the width of the gray zone around the threshold.
        n_bins : int, default=10
        strategy : {"quantile", "uniform", "expected"}, default="quantile"
            Bins with equal numbers of rows, of equal width, or with equal sums of predictions: the
            last shows a rare class, of which most rows are near zero.
        confidence : float, default=0.95
            Of each bin's Wilson interval. With weights, its size is the effective number of rows.
        pos_label, labels, sample_weight, name : optional
        """
        truth = column_or_1d(y)
        p = checked_proba(proba, truth)
        classes = labels_of(truth, costs, labels)
        if pos_label is None and len(classes) != 2:
            raise ValueError(f"Choose pos_label: there are {len(classes)} classes.")
        positive = classes.tolist()[-1] if pos_label is None else pos_label
        hit = class_codes(truth, classes, "y") == class_codes(
            np.array([positive]), classes, "pos_label"
        )
        threshold = None if costs is None else decision_threshold(cost_matrix(costs, classes))
        if isinstance(zone, int | float):
            if threshold is None:
                raise ValueError("A zone given by its width needs costs for its centre.")
            zone = gray_zone(threshold, zone)
        weight = row_weights(sample_weight, truth)
        bins = _reliability_bins(hit, p, weight, _bin_edges(p, n_bins, strategy), confidence)
        return cls(*bins, zone, threshold, confidence, positive, name)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, costs: Any = None, **options: Any
    ) -> ReliabilityDisplay:
        """From a fitted model; the costs of a ``DecisionClassifier`` are its own by default."""
        proba, classes = positive_proba(estimator, X, options.get("pos_label"))
        if costs is None and len(classes) == 2:
            costs = getattr(estimator, "cost_matrix_", None)
        options = {"labels": classes, "name": name_of(estimator), **options}
        return cls.from_predictions(y, proba, costs=costs, **options)

    def frame(self) -> Any:
        """One row per bin."""
        return theme.frame_of(
            {
                "predicted": self.predicted,
                "observed": self.observed,
                "lower": self.lower,
                "upper": self.upper,
                "rows": self.rows,
            }
        )

    def plot(self, ax: Any = None, *, zoom: bool = False) -> ReliabilityDisplay:
        """Draw; ``zoom`` shows the decision zone and as much again on each side."""
        ax = theme.axes(ax)
        self.zone_ = None
        ax.plot([0, 1], [0, 1], color=theme.QUIET, lw=1.0, ls=theme.DASHES[1], label="perfect")
        if self.zone is not None:
            self.zone_ = ax.axvspan(
                *self.zone, color=theme.ZONE, alpha=0.28, lw=0, label="decision zone"
            )
        if self.threshold is not None and 0 <= self.threshold <= 1:
            ax.axvline(
                self.threshold,
                color=theme.ALARM,
                lw=1.0,
                alpha=0.7,
                label=f"threshold {self.threshold:.3g}",
            )
        reach = np.abs(np.vstack([self.lower, self.upper]) - self.observed)
        self.bars_ = ax.errorbar(
            self.predicted,
            self.observed,
            yerr=reach,
            fmt="o-",
            color=theme.LINES[0],
            ms=5,
            lw=1.2,
            elinewidth=1.4,
            capsize=3,
            label=f"{self.name} ({self.confidence:.0%} bars)",
        )
        self.points_ = self.bars_.lines[0]
        self._set_limits(ax, zoom)
        theme.label(
            ax,
            f"Predicted probability of {self.positive!r}",
            f"Observed share of {self.positive!r}",
        )
        theme.legend(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _set_limits(self, ax: Any, zoom: bool) -> None:
        if zoom and self.zone is None:
            raise ValueError("There is no zone to zoom on: give zone=... when building.")
        low, high = 0.0, 1.0
        if zoom and self.zone is not None:
            width = self.zone[1] - self.zone[0]
            low, high = max(0.0, self.zone[0] - width), min(1.0, self.zone[1] + width)
        margin = 0.02 * (high - low)
        ax.set_xlim(low - margin, high + margin)
        seen = (self.predicted >= low) & (self.predicted <= high)
        top = float(self.upper[seen].max(initial=high))
        ax.set_ylim(low - margin, top + margin)


def _bin_edges(p: Floats, n_bins: int, strategy: str) -> Floats:
    if strategy == "uniform":
        return np.linspace(0.0, 1.0, n_bins + 1)
    if strategy == "quantile":
        return np.unique(np.quantile(p, np.linspace(0.0, 1.0, n_bins + 1)))
    if strategy == "expected":
        ordered = np.sort(p)
        so_far = np.cumsum(ordered)
        levels = so_far[-1] * np.arange(1, n_bins) / n_bins
        inner = ordered[np.minimum(np.searchsorted(so_far, levels), len(p) - 1)]
        return np.unique(np.concatenate([ordered[:1], inner, ordered[-1:]]))
    raise ValueError(f"strategy must be 'quantile', 'uniform' or 'expected', got {strategy!r}.")


def _reliability_bins(
    hit: NDArray[np.bool_], p: Floats, weight: Floats, edges: Floats, confidence: float
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    place = np.searchsorted(edges[1:-1], p, side="right")
    n_bins = max(len(edges) - 1, 1)
    total = np.bincount(place, weights=weight, minlength=n_bins)
    squares = np.bincount(place, weights=weight**2, minlength=n_bins)
    filled = total > 0
    predicted = np.bincount(place, weights=weight * p, minlength=n_bins)[filled] / total[filled]
    observed = np.bincount(place, weights=weight * hit, minlength=n_bins)[filled] / total[filled]
    rows = total[filled] ** 2 / squares[filled]
    lower, upper = wilson_interval(observed, rows, confidence)
    return predicted, observed, lower, upper, rows


def wilson_interval(share: Floats, rows: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Wilson score interval of a binomial share: inside [0, 1], sensible at 0 and 1.

    >>> low, high = wilson_interval(np.array([0.0]), np.array([10.0]), 0.95)
    >>> low.round(3), high.round(3)
    (array([0.]), array([0.278]))
    """
    z = float(norm.ppf(0.5 + confidence / 2))
    scale = 1.0 + z**2 / rows
    centre = (share + z**2 / (2 * rows)) / scale
    reach = z / scale * np.sqrt(share * (1 - share) / rows + z**2 / (4 * rows**2))
    return np.clip(centre - reach, 0.0, share), np.clip(centre + reach, share, 1.0)
