"""Displays in scikit-learn's convention: cost against threshold, risk against prior, reliability.

Each is built by ``from_estimator`` or ``from_predictions``, drawn by ``plot`` and read back as
numbers by ``frame``. matplotlib is imported when something is drawn, not before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d

from laconic.criteria.decisions import class_codes, cost_matrix, decision_threshold
from laconic.evaluation import theme
from laconic.evaluation.costs import baseline_costs, labels_of, row_weights
from laconic.evaluation.readings import checked_proba, name_of, positive_proba
from laconic.evaluation.reliability import ReliabilityDisplay
from laconic.evaluation.shift import class_risks, prior_grid

__all__ = ["CostCurveDisplay", "PriorRiskDisplay", "ReliabilityDisplay"]

Floats = NDArray[np.float64]


@dataclass
class CostCurveDisplay:
    """Mean cost per row of the rule "positive above the threshold", for every threshold.

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
    ax_, figure_, line_, point_, lowest_ : matplotlib objects, after :meth:`plot`

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
        labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        name: str = "model",
    ) -> CostCurveDisplay:
        """From true classes and probabilities of the positive (last) class.

        ``costs`` may be per-row costs; then ``threshold`` must be given.
        """
        truth = column_or_1d(y)
        p = checked_proba(proba, truth)
        classes = labels_of(truth, costs, labels)
        if len(classes) != 2:
            raise ValueError(f"A cost curve needs two classes, here are {len(classes)}.")
        matrix = cost_matrix(costs, classes, n_rows=len(truth))
        if threshold is None:
            threshold = decision_threshold(matrix)
        codes = class_codes(truth, classes, "y")
        paid = matrix[codes] if matrix.ndim == 2 else matrix[np.arange(len(codes)), codes]
        weight = row_weights(sample_weight, truth)
        cuts, mean_costs = _cost_steps(p, paid, weight / weight.sum())
        baselines = baseline_costs(truth, costs, labels=classes, sample_weight=sample_weight)
        return cls(cuts, mean_costs, float(threshold), baselines, classes.tolist()[-1], name)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, costs: Any = None, **options: Any
    ) -> CostCurveDisplay:
        """From a fitted model; the costs of a ``DecisionClassifier`` are its own by default."""
        proba, classes = positive_proba(estimator, X)
        if costs is None:
            costs = getattr(estimator, "cost_matrix_", None)
        options = {"labels": classes, "name": name_of(estimator), **options}
        return cls.from_predictions(y, proba, costs, **options)

    def cost_at(self, threshold: float) -> float:
        """Mean cost of the rule at a threshold."""
        step = np.searchsorted(self.thresholds, threshold, side="right") - 1
        return float(self.costs[max(int(step), 0)])

    def frame(self) -> Any:
        """The curve as columns ``threshold`` and ``cost``."""
        return theme.frame_of({"threshold": self.thresholds, "cost": self.costs})

    def plot(self, ax: Any = None, *, log_odds: bool = False) -> CostCurveDisplay:
        """Draw; ``log_odds`` stretches the ends of the threshold axis, for rare classes."""
        ax = theme.axes(ax)
        (self.line_,) = ax.step(
            self.thresholds, self.costs, where="post", color=theme.LINES[0], lw=1.8, label=self.name
        )
        for position, (decision, cost) in enumerate(self.baselines.items()):
            ax.axhline(
                cost,
                color=theme.QUIET,
                lw=1.2,
                ls=theme.DASHES[1 + position],
                label=f"always {decision!r}: {cost:.3g}",
            )
        shown = float(np.clip(self.threshold, 0.0, 1.0))
        cost = self.cost_at(self.threshold)
        self.threshold_line_ = ax.axvline(shown, color=theme.ALARM, lw=1.0, alpha=0.6)
        (self.point_,) = ax.plot(
            [shown],
            [cost],
            "o",
            color=theme.ALARM,
            ms=7,
            zorder=5,
            label=f"threshold {self.threshold:.3g}: {cost:.3g}",
        )
        lowest = int(self.costs.argmin())
        (self.lowest_,) = ax.plot(
            self.thresholds[[lowest]],
            self.costs[[lowest]],
            "o",
            mfc="white",
            mec=theme.LINES[0],
            ms=6,
            zorder=4,
            label=f"lowest on these rows: {self.costs[lowest]:.3g}",
        )
        if log_odds:
            theme.log_odds_axis(ax)
            inside = self.thresholds[(self.thresholds > 0) & (self.thresholds < 1)]
            ax.set_xlim(inside.min(initial=0.01), inside.max(initial=0.99))
        else:
            ax.set_xlim(0, 1)
        ax.set_ylim(bottom=min(0.0, float(self.costs.min())))
        theme.label(ax, f"Threshold on the probability of {self.positive!r}", "Mean cost per row")
        theme.legend(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


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
class PriorRiskDisplay:
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
    ax_, figure_, lines_, worst_points_ : matplotlib objects, after :meth:`plot`

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
        reject_label: Any = None,
        reject_cost: float | None = None,
        name: str = "rule",
    ) -> PriorRiskDisplay:
        """From true classes and the decisions of one rule, or of several by name."""
        truth = column_or_1d(y)
        rules = decisions if isinstance(decisions, Mapping) else {name: decisions}
        classes = labels_of(truth, costs, labels)
        codes = class_codes(truth, classes, "y")
        weight = row_weights(sample_weight, truth)
        mix = np.bincount(codes, weights=weight, minlength=len(classes)) / weight.sum()
        moving = classes.tolist()[-1] if moving is None else moving
        k = int(class_codes(np.array([moving]), classes, "moving")[0])
        grid = np.linspace(0.0, 1.0, 101) if shares is None else np.asarray(shares, np.float64)
        mixes = prior_grid(_moving_mixes(mix, k, grid), len(classes))
        risks: dict[str, Floats] = {}
        for rule, taken in rules.items():
            each = class_risks(
                truth,
                taken,
                costs,
                labels=classes,
                sample_weight=weight,
                reject_label=reject_label,
                reject_cost=reject_cost,
            )
            if np.isnan(each).any():
                gone = classes.tolist()[int(np.argmax(np.isnan(each)))]
                raise ValueError(f"y has no row of the class {gone!r}: its risk is unknown.")
            risks[str(rule)] = mixes @ each
        worst = {
            rule: (float(grid[risk.argmax()]), float(risk.max())) for rule, risk in risks.items()
        }
        return cls(grid, risks, worst, float(mix[k]), moving)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, costs: Any = None, **options: Any
    ) -> PriorRiskDisplay:
        """From a fitted model, or a mapping from names to fitted models.

        Costs and abstentions of a ``DecisionClassifier`` are its own by default.
        """
        models = estimator if isinstance(estimator, Mapping) else {name_of(estimator): estimator}
        for model in models.values():
            if costs is None:
                costs = getattr(model, "cost_matrix_", None)
            if getattr(model, "reject_cost", None) is not None:
                options.setdefault("reject_label", model.reject_label_)
                options.setdefault("reject_cost", model.reject_cost)
            options.setdefault("labels", model.classes_)
        decisions = {name: model.predict(X) for name, model in models.items()}
        return cls.from_predictions(y, decisions, costs, **options)

    def frame(self) -> Any:
        """The lines as columns: ``share`` and one column of risks per rule."""
        return theme.frame_of({"share": self.shares, **self.risks})

    def plot(self, ax: Any = None) -> PriorRiskDisplay:
        """Draw one line per rule, its worst case as a dot, and the observed share."""
        ax = theme.axes(ax)
        self.lines_, self.worst_points_ = {}, {}
        for position, (rule, risk) in enumerate(self.risks.items()):
            colour = theme.LINES[position % len(theme.LINES)]
            share, peak = self.worst[rule]
            (self.lines_[rule],) = ax.plot(
                self.shares,
                risk,
                color=colour,
                lw=1.8,
                ls=theme.DASHES[position % len(theme.DASHES)],
                label=f"{rule} (worst {peak:.3g})",
            )
            (self.worst_points_[rule],) = ax.plot(
                [share], [peak], "o", color=colour, ms=8, mec="white", zorder=5, clip_on=False
            )
        self.observed_line_ = ax.axvline(
            self.observed, color=theme.QUIET, lw=1.0, ls=":", label=f"observed {self.observed:.3g}"
        )
        ax.set_xlim(float(self.shares.min()), float(self.shares.max()))
        ax.set_ylim(bottom=min(0.0, *(float(risk.min()) for risk in self.risks.values())))
        theme.label(ax, f"Share of class {self.moving!r} where the model is used", "Risk per row")
        theme.legend(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _moving_mixes(mix: Floats, k: int, shares: Floats) -> Floats:
    """Mixes where class k has each share and the others keep their proportions."""
    others = np.delete(np.arange(len(mix)), k)
    rest = mix[others].sum()
    kept = mix[others] / rest if rest > 0 else np.full(len(others), 1.0 / len(others))
    mixes = np.empty((len(shares), len(mix)))
    mixes[:, k] = shares
    mixes[:, others] = (1.0 - shares)[:, None] * kept
    return mixes
