"""Displays of decisions: reliability, cost against threshold, risk against prior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d

from laconic._typing import Floats
from laconic.core import drawing as theme
from laconic.core.decisions import class_codes, cost_matrix, decision_threshold, gray_zone
from laconic.decide.costs import baseline_costs, labels_of, row_weights
from laconic.decide.intervals import rate_interval
from laconic.decide.shift import class_risks, prior_grid

__all__ = ["CostCurveDisplay", "PriorRiskDisplay", "ReliabilityDisplay"]


def labelled_proba(
    y: ArrayLike, proba: ArrayLike, positive: Any, labels: Any, costs: Any, only_two: str = ""
) -> tuple[NDArray[Any], Floats, NDArray[Any], int]:
    """Checked classes of the rows, probabilities, all classes and the place of the positive one.

    ``only_two`` is what refuses more than two classes.
    """
    truth = column_or_1d(y)
    p = theme.checked_proba(proba, truth)
    classes = labels_of(truth, costs, labels)
    if only_two and len(classes) != 2:
        raise ValueError(f"{only_two} needs two classes, here are {len(classes)}.")
    return truth, p, classes, theme.place_of_positive(classes, positive)


@dataclass
class ReliabilityDisplay(theme.Display):
    """Observed against predicted frequency of a class, with confidence bars and decision zone.

    Do events predicted at 10 % happen one time in ten, where the decision is taken?
    ``plot(zoom=True)`` shows the decision zone and as much again on each side.

    Attributes
    ----------
    predicted, observed, lower, upper, rows : ndarray of shape (n_bins,)
        Per bin: mean prediction, observed frequency, its interval, and the (effective)
        number of rows.
    zone : (float, float) or None
        Where the probabilities must be right, for instance :func:`laconic.gray_zone`.
    threshold : float or None
    confidence : float
    positive : object
    name : str
    points_, bars_, zone_ : matplotlib objects, after ``plot``

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
        positive: Any = None,
        labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        name: str = "model",
    ) -> ReliabilityDisplay:
        """From true classes and probabilities of the positive class.

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
            Of each bin's :func:`~laconic.decide.intervals.rate_interval`; with weights, its size is
            the effective number of rows.
        positive : class, optional
            The class that ``proba`` is of; by default the last of two.
        labels, sample_weight, name : optional
        """
        truth, p, classes, k = labelled_proba(y, proba, positive, labels, costs)
        hit = class_codes(truth, classes, "y") == k
        threshold = None
        if costs is not None:
            threshold = _threshold(cost_matrix(costs, classes, positive=positive), k)
        if isinstance(zone, int | float):
            if threshold is None:
                raise ValueError("A zone given by its width needs costs for its centre.")
            zone = gray_zone(threshold, zone)
        weight = row_weights(sample_weight, truth)
        bins = _reliability_bins(hit, p, weight, _bin_edges(p, n_bins, strategy), confidence)
        return cls(*bins, zone, threshold, confidence, classes.tolist()[k], name)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, costs: Any = None, **options: Any
    ) -> ReliabilityDisplay:
        """From a fitted model; the costs of a ``DecisionClassifier`` are its own by default."""
        proba, known = theme.positive_proba(estimator, X, options.get("positive"))
        if costs is None and len(known["labels"]) == 2:
            costs = getattr(estimator, "cost_matrix_", None)
        return cls.from_predictions(y, proba, costs=costs, **{**known, **options})

    def _draw(self, ax: Any, *, zoom: bool = False) -> tuple[str, str]:
        if zoom and self.zone is None:
            raise ValueError("There is no zone to zoom on: give zone=... when building.")
        theme.diagonal(ax, label="perfect")
        self.zone_ = theme.band(ax, self.zone, label="decision zone")
        if self.threshold is not None and 0 <= self.threshold <= 1:
            said = f"threshold {self.threshold:.3g}"
            ax.axvline(self.threshold, color=theme.ALARM, lw=1.0, alpha=0.7, label=said)
        reach = np.abs(np.vstack([self.lower, self.upper]) - self.observed)
        look = {"fmt": "o-", "color": theme.LINES[0], "ms": 5, "lw": 1.2, "capsize": 3}
        said = f"{self.name} ({self.confidence:.0%} bars)"
        self.bars_ = ax.errorbar(
            self.predicted, self.observed, yerr=reach, elinewidth=1.4, label=said, **look
        )
        self.points_ = self.bars_.lines[0]
        self._set_limits(ax, self.zone if zoom else None)
        about = repr(self.positive)
        return f"Predicted probability of {about}", f"Observed share of {about}"

    def _set_limits(self, ax: Any, zone: tuple[float, float] | None) -> None:
        low, high = 0.0, 1.0
        if zone is not None:
            width = zone[1] - zone[0]
            low, high = max(0.0, zone[0] - width), min(1.0, zone[1] + width)
        margin = 0.02 * (high - low)
        ax.set_xlim(low - margin, high + margin)
        seen = (self.predicted >= low) & (self.predicted <= high)
        ax.set_ylim(low - margin, float(self.upper[seen].max(initial=high)) + margin)


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
    lower, upper = rate_interval(observed, rows, confidence)
    return predicted, observed, lower, upper, rows


@dataclass
class CostCurveDisplay(theme.Display):
    """Mean cost per row of the rule "positive above the threshold", for every threshold.

    ``plot(log_odds=True)`` stretches the ends of the threshold axis, for rare classes.

    Attributes
    ----------
    thresholds, costs : ndarray
        A step function: ``costs[j]`` holds from ``thresholds[j]`` up to the next one.
    threshold : float
        The chosen threshold, drawn as a vertical line.
    baselines : dict
        Mean cost of always deciding one class.
    positive : object
        The positive class.
    name : str
    line_, point_, lowest_ : matplotlib objects, after ``plot``

    Examples
    --------
    >>> curve = CostCurveDisplay.from_predictions(
    ...     [0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], {"fp": 1, "fn": 3}
    ... )
    >>> curve.threshold, float(curve.cost_at(curve.threshold))
    (0.25, 0.25)
    """

    thresholds: Floats
    costs: Floats
    threshold: float
    baselines: dict[Any, float]
    positive: Any = 1
    name: str = "model"

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        proba: ArrayLike,
        costs: Any = None,
        *,
        threshold: float | None = None,
        positive: Any = None,
        labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        name: str = "model",
    ) -> CostCurveDisplay:
        """From true classes and probabilities of the ``positive`` class (by default the last).

        ``costs`` may be per-row costs; then ``threshold`` must be given.
        """
        truth, p, classes, k = labelled_proba(y, proba, positive, labels, costs, "A cost curve")
        matrix = cost_matrix(costs, classes, n_rows=len(truth), positive=positive)
        if threshold is None:
            threshold = _threshold(matrix, k)
        codes = class_codes(truth, classes, "y")
        paid = matrix[codes] if matrix.ndim == 2 else matrix[np.arange(len(codes)), codes]
        weight = row_weights(sample_weight, truth)
        cuts, mean_costs = _cost_steps(p, paid[:, [1 - k, k]], weight / weight.sum())
        baselines = baseline_costs(truth, matrix, labels=classes, sample_weight=sample_weight)
        return cls(cuts, mean_costs, float(threshold), baselines, classes.tolist()[k], name)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, costs: Any = None, **options: Any
    ) -> CostCurveDisplay:
        """From a fitted model; the costs of a ``DecisionClassifier`` are its own by default."""
        proba, known = theme.positive_proba(estimator, X, options.get("positive"))
        if costs is None:
            costs = getattr(estimator, "cost_matrix_", None)
        return cls.from_predictions(y, proba, costs, **{**known, **options})

    def cost_at(self, threshold: float) -> float:
        """Mean cost of the rule at a threshold."""
        step = np.searchsorted(self.thresholds, threshold, side="right") - 1
        return float(self.costs[max(int(step), 0)])

    def _columns(self) -> dict[str, Any]:
        return {"threshold": self.thresholds, "cost": self.costs}

    def _draw(self, ax: Any, *, log_odds: bool = False) -> tuple[str, str]:
        look = {"color": theme.LINES[0], "lw": 1.8, "label": self.name}
        (self.line_,) = ax.step(self.thresholds, self.costs, where="post", **look)
        for position, (decision, cost) in enumerate(self.baselines.items()):
            look = {"color": theme.QUIET, "lw": 1.2, "ls": theme.DASHES[1 + position]}
            ax.axhline(cost, label=f"always {decision!r}: {cost:.3g}", **look)
        shown, cost = float(np.clip(self.threshold, 0.0, 1.0)), self.cost_at(self.threshold)
        self.threshold_line_ = ax.axvline(shown, color=theme.ALARM, lw=1.0, alpha=0.6)
        look = {"color": theme.ALARM, "ms": 7, "zorder": 5}
        said = f"threshold {self.threshold:.3g}: {cost:.3g}"
        (self.point_,) = ax.plot([shown], [cost], "o", label=said, **look)
        lowest = [int(self.costs.argmin())]
        look = {"mfc": "white", "mec": theme.LINES[0], "ms": 6, "zorder": 4}
        said = f"lowest on these rows: {self.costs.min():.3g}"
        (self.lowest_,) = ax.plot(
            self.thresholds[lowest], self.costs[lowest], "o", label=said, **look
        )
        ax.set_xlim(0, 1)
        if log_odds:
            theme.log_odds_axis(ax)
            inside = self.thresholds[(self.thresholds > 0) & (self.thresholds < 1)]
            ax.set_xlim(inside.min(initial=0.01), inside.max(initial=0.99))
        ax.set_ylim(bottom=min(0.0, float(self.costs.min())))
        return f"Threshold on the probability of {self.positive!r}", "Mean cost per row"


def _threshold(matrix: Floats, k: int) -> float:
    """On the probability of class k of two."""
    return decision_threshold(matrix if k else matrix[::-1, ::-1])


def _cost_steps(p: Floats, paid: Floats, share: Floats) -> tuple[Floats, Floats]:
    """Thresholds where the cost of "positive when p > t" changes, and the cost from there on.

    ``paid[i]`` holds what the negative and the positive decision cost on row i.
    """
    cuts, place = np.unique(p, return_inverse=True)
    change = np.bincount(place, weights=share * (paid[:, 0] - paid[:, 1]), minlength=len(cuts))
    all_positive = float(share @ paid[:, 1])
    costs: Floats = np.asarray(all_positive + np.cumsum(change), dtype=np.float64)
    if cuts[0] > 0:
        cuts, costs = np.append(0.0, cuts), np.append(all_positive, costs)
    if cuts[-1] < 1:
        cuts, costs = np.append(cuts, 1.0), np.append(costs, costs[-1])
    return cuts, costs


@dataclass
class PriorRiskDisplay(theme.Display):
    """Risk of several decision rules as the share of one class moves, the worst case marked.

    With more than two classes, the other classes keep their proportions.

    Attributes
    ----------
    shares : ndarray of shape (m,)
        Share of the moving class.
    risks : dict of str to ndarray of shape (m,)
    worst : dict of str to (share, risk)
        Where each rule costs most.
    observed : float
        Share of the moving class in the rows given.
    moving : object
        The class whose share moves.
    lines_, worst_points_ : matplotlib objects, after ``plot``

    Examples
    --------
    >>> display = PriorRiskDisplay.from_predictions(
    ...     [0, 0, 0, 1], {"rule": [0, 0, 1, 1], "never": [0, 0, 0, 0]}, {"fp": 3, "fn": 10}
    ... )
    >>> display.worst
    {'rule': (0.0, 1.0), 'never': (1.0, 10.0)}
    """

    shares: Floats
    risks: dict[str, Floats]
    worst: dict[str, tuple[float, float]]
    observed: float
    moving: Any = 1

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        decisions: ArrayLike | Mapping[str, ArrayLike],
        costs: Any = None,
        *,
        shares: ArrayLike | None = None,
        moving: Any = None,
        labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        name: str = "rule",
        **options: Any,
    ) -> PriorRiskDisplay:
        """From true classes and the decisions of one rule, or of several by name.

        ``moving`` is by default the positive class, else the last; the other options are those of
        :func:`~laconic.decide.costs.expected_cost`.
        """
        truth = column_or_1d(y)
        rules = decisions if isinstance(decisions, Mapping) else {name: decisions}
        classes = labels_of(truth, costs, labels)
        weight = row_weights(sample_weight, truth)
        codes = class_codes(truth, classes, "y")
        mix = np.bincount(codes, weights=weight, minlength=len(classes)) / weight.sum()
        moving = options.get("positive") if moving is None else moving
        k = theme.place_of_positive(classes, moving, default=len(classes) - 1)
        grid = np.linspace(0.0, 1.0, 101) if shares is None else np.asarray(shares, np.float64)
        mixes = prior_grid(_moving_mixes(mix, k, grid), len(classes))
        risks: dict[str, Floats] = {}
        for rule, taken in rules.items():
            each = class_risks(truth, taken, costs, labels=classes, sample_weight=weight, **options)
            if np.isnan(each).any():
                gone = classes.tolist()[int(np.argmax(np.isnan(each)))]
                raise ValueError(f"y has no row of the class {gone!r}: its risk is unknown.")
            risks[str(rule)] = mixes @ each
        worst = {
            rule: (float(grid[risk.argmax()]), float(risk.max())) for rule, risk in risks.items()
        }
        return cls(grid, risks, worst, float(mix[k]), classes.tolist()[k])

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, costs: Any = None, **options: Any
    ) -> PriorRiskDisplay:
        """From a fitted model, or a mapping from names to fitted models.

        Costs and abstentions of a ``DecisionClassifier`` are its own by default.
        """
        models = theme.named_models(estimator)
        for model in models.values():
            if costs is None:
                costs = getattr(model, "cost_matrix_", None)
            if getattr(model, "reject_cost", None) is not None:
                options.setdefault("reject_label", model.reject_label_)
                options.setdefault("reject_cost", model.reject_cost)
            options.setdefault("labels", model.classes_)
        decisions = {name: model.predict(X) for name, model in models.items()}
        return cls.from_predictions(y, decisions, costs, **options)

    def _columns(self) -> dict[str, Any]:
        return {"share": self.shares, **self.risks}

    def _draw(self, ax: Any) -> tuple[str, str]:
        """One line per rule, its worst case as a dot, and the observed share."""
        self.lines_, self.worst_points_ = {}, {}
        for place, (rule, risk) in enumerate(self.risks.items()):
            share, peak = self.worst[rule]
            said = f"{rule} (worst {peak:.3g})"
            (self.lines_[rule],) = ax.plot(
                self.shares, risk, lw=1.8, label=said, **theme.look(place)
            )
            look = {"color": theme.colour(place), "ms": 8, "mec": "white", "zorder": 5}
            (self.worst_points_[rule],) = ax.plot([share], [peak], "o", clip_on=False, **look)
        said = f"observed {self.observed:.3g}"
        self.observed_line_ = ax.axvline(
            self.observed, color=theme.QUIET, lw=1.0, ls=":", label=said
        )
        ax.set_xlim(float(self.shares.min()), float(self.shares.max()))
        ax.set_ylim(bottom=min(0.0, *(float(risk.min()) for risk in self.risks.values())))
        return f"Share of class {self.moving!r} where the model is used", "Risk per row"


def _moving_mixes(mix: Floats, k: int, shares: Floats) -> Floats:
    """Mixes where class k has each share and the others keep their proportions."""
    others = np.delete(np.arange(len(mix)), k)
    rest = mix[others].sum()
    kept = mix[others] / rest if rest > 0 else np.full(len(others), 1.0 / len(others))
    mixes = np.empty((len(shares), len(mix)))
    mixes[:, k] = shares
    mixes[:, others] = (1.0 - shares)[:, None] * kept
    return mixes
