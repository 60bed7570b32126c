"""What robustness to the class mix costs: three drawings of class risks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from laconic._typing import Floats
from laconic.core import drawing as theme
from laconic.minimax.criterion import PriorBox, checked_costs
from laconic.minimax.estimator import MinimaxClassifier
from laconic.minimax.solver import solve_minimax

__all__ = ["BayesRiskDisplay", "ClassRisksDisplay", "RobustnessPriceDisplay"]


def measured_risks(model: Any, X: Any, y: Any, costs: Any = None, positive: Any = None) -> Floats:
    """Class risks of a fitted classifier on labelled rows; NaN for a class without rows.

    A :class:`~laconic.MinimaxClassifier` is measured by its decision probabilities: the mean over
    draws.
    """
    classes = np.asarray(model.classes_)
    table = checked_costs(costs, classes, positive)
    codes = np.searchsorted(classes, np.asarray(y))
    if (codes >= len(classes)).any() or (classes[codes] != np.asarray(y)).any():
        raise ValueError("y has a class that the classifier does not know.")
    if isinstance(model, MinimaxClassifier):
        paid = (model.predict_proba(X) * table[codes]).sum(axis=1)
    else:
        paid = table[codes, np.searchsorted(classes, model.predict(X))]
    rows = np.bincount(codes, minlength=len(classes))
    total = np.bincount(codes, paid, minlength=len(classes))
    risks = np.full(len(classes), np.nan)
    return np.asarray(np.divide(total, rows, out=risks, where=rows > 0))


@dataclass
class BayesRiskDisplay(theme.Display):
    """Two classes: the least risk V(pi) at every class mix, and the risk of fixed rules.

    The risk of a rule is a straight line in the share of a class. A Bayes rule touches V at its
    own prior and climbs on one side; the minimax rule is the level line through the top of V.

    Attributes
    ----------
    shares : ndarray of shape (m,)
        Share of the first class.
    bayes_risk : ndarray of shape (m,)
        V at these shares.
    risks : dict of str to ndarray of shape (m,)
    top : (share, risk)
        The least favourable share of the first class and V there.
    moving : object
        The first class.

    Examples
    --------
    >>> X, y = [[0], [0], [0], [1], [0], [1], [1], [1]], [0, 0, 0, 0, 1, 1, 1, 1]
    >>> model = MinimaxClassifier(n_bins=2, cv=None).fit(X, y)
    >>> display = BayesRiskDisplay.from_estimator(model)
    >>> bool((display.bayes_risk <= display.risks["minimax"] + 1e-9).all())
    True
    """

    shares: Floats
    bayes_risk: Floats
    risks: dict[str, Floats]
    top: tuple[float, float]
    moving: Any = 0

    @classmethod
    def from_estimator(
        cls,
        estimator: MinimaxClassifier,
        others: Mapping[str, Any] | None = None,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        shares: ArrayLike | None = None,
    ) -> BayesRiskDisplay:
        """From a fitted minimax classifier; ``others`` are measured on the rows X, y."""
        check_is_fitted(estimator)
        if len(estimator.classes_) != 2:
            raise ValueError(
                f"BayesRiskDisplay draws two classes; there are {len(estimator.classes_)}: use "
                "ClassRisksDisplay."
            )
        if others and (X is None or y is None):
            raise ValueError("Give X and y: the other classifiers are measured on rows.")
        grid = np.linspace(0, 1, 201) if shares is None else np.asarray(shares, dtype=np.float64)
        risks = {
            "minimax": estimator.class_risks_,
            "Bayes": estimator.discrete_bayes().class_risks_,
        }
        for name, model in (others or {}).items():
            risks[name] = measured_risks(model, X, y, estimator.costs, estimator.positive)
        lines = {name: grid * r[0] + (1 - grid) * r[1] for name, r in risks.items()}
        curve = np.array([estimator.bayes_risk([share, 1 - share]) for share in grid])
        top = (float(estimator.least_favorable_prior_[0]), float(estimator.minimax_risk_))
        return cls(grid, curve, lines, top, estimator.classes_[0])

    def _columns(self) -> dict[str, Any]:
        return {"share": self.shares, "V": self.bayes_risk, **self.risks}

    def _draw(self, ax: Any) -> tuple[str, str]:
        """V, one line per rule, and the top of V as a dot."""
        look = {"color": theme.INK, "lw": 2.4, "label": "least risk V"}
        (self.curve_,) = ax.plot(self.shares, self.bayes_risk, **look)
        self.lines_ = {}
        for i, (name, risk) in enumerate(self.risks.items()):
            said = f"{name} (worst {risk.max():.3g})"
            (self.lines_[name],) = ax.plot(self.shares, risk, lw=1.6, label=said, **theme.look(i))
        (self.top_,) = ax.plot(*self.top, "o", color=theme.ALARM, ms=8, mec="white", zorder=5)
        ax.set_xlim(float(self.shares.min()), float(self.shares.max()))
        ax.set_ylim(bottom=0.0)
        return f"Share of class {self.moving!r} where the model is used", "Risk per row"


@dataclass
class ClassRisksDisplay(theme.Display):
    """Risk of every class under several classifiers, side by side.

    Attributes
    ----------
    classes : ndarray of shape (K,)
    risks : dict of str to ndarray of shape (K,)

    Examples
    --------
    >>> display = ClassRisksDisplay(np.array(["a", "b"]), {"rule": np.array([0.1, 0.4])})
    >>> display.worst
    {'rule': ('b', 0.4)}
    """

    classes: NDArray[Any]
    risks: dict[str, Floats]

    @property
    def worst(self) -> dict[str, tuple[Any, float]]:
        """The class of largest risk, and that risk, for each classifier."""
        places = {name: int(np.nanargmax(risk)) for name, risk in self.risks.items()}
        return {
            name: (self.classes[k].item(), float(self.risks[name][k])) for name, k in places.items()
        }

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, costs: Any = None, positive: Any = None
    ) -> ClassRisksDisplay:
        """From a fitted classifier, or a mapping from names to fitted classifiers, on rows."""
        models = theme.named_models(estimator)
        classes = np.asarray(next(iter(models.values())).classes_)
        risks = {
            name: measured_risks(model, X, y, costs, positive) for name, model in models.items()
        }
        return cls(classes, risks)

    def _columns(self) -> dict[str, Any]:
        return {"class": self.classes, **self.risks}

    def _draw(self, ax: Any) -> tuple[str, str]:
        """Grouped bars, and each classifier's worst risk as a thin line."""
        places = np.arange(len(self.classes))
        width = 0.8 / len(self.risks)
        self.bars_, self.worst_lines_ = {}, {}
        for i, (name, risk) in enumerate(self.risks.items()):
            colour, worst = theme.colour(i), float(np.nanmax(risk))
            at = places + (i - (len(self.risks) - 1) / 2) * width
            said = f"{name} (worst {worst:.3g})"
            self.bars_[name] = ax.bar(at, risk, width * 0.92, color=colour, label=said)
            self.worst_lines_[name] = ax.axhline(worst, color=colour, lw=0.9, ls=theme.DASHES[2])
        ax.set_xticks(places, [str(c) for c in self.classes])
        ax.grid(False, axis="x")
        return "Class", "Risk of the class"


@dataclass
class RobustnessPriceDisplay(theme.Display):
    """Average risk at the training prior against worst class risk, as the box of priors grows.

    The box goes from the training prior (the Bayes rule) to the whole simplex (the minimax rule):
    at size s it allows ``(1 - s) pi_hat <= pi <= pi_hat + s (1 - pi_hat)``.

    Attributes
    ----------
    sizes, average, worst : ndarray of shape (m,)

    Examples
    --------
    >>> X, y = [[0], [0], [0], [1], [0], [1], [1], [1]], [0, 0, 0, 0, 0, 1, 1, 1]
    >>> model = MinimaxClassifier(n_bins=2, cv=None).fit(X, y)
    >>> display = RobustnessPriceDisplay.from_estimator(model, sizes=[0.0, 1.0])
    >>> bool(display.worst[1] <= display.worst[0])
    True
    """

    sizes: Floats
    average: Floats
    worst: Floats

    @classmethod
    def from_estimator(
        cls, estimator: MinimaxClassifier, sizes: ArrayLike | None = None
    ) -> RobustnessPriceDisplay:
        """From a fitted minimax classifier: its class laws, solved again for each box."""
        check_is_fitted(estimator)
        grid = np.linspace(0, 1, 11) if sizes is None else np.asarray(sizes, dtype=np.float64)
        if (grid < 0).any() or (grid > 1).any():
            raise ValueError("sizes must lie between 0 (training prior) and 1 (any prior).")
        model, prior = estimator.model_, estimator.class_prior_
        average, worst = [], []
        for size in grid:
            box = PriorBox((1 - size) * prior, prior + size * (1 - prior))
            found = solve_minimax(
                model.laws, model.form.costs, box, tol=estimator.tol, max_iter=estimator.max_iter
            ).warn_if_short("RobustnessPriceDisplay")
            risks = found.details["rule"].class_risks
            average.append(float(prior @ risks))
            worst.append(float(risks.max()))
        return cls(grid, np.array(average), np.array(worst))

    def _columns(self) -> dict[str, Any]:
        return {"size": self.sizes, "average": self.average, "worst": self.worst}

    def _draw(self, ax: Any) -> tuple[str, str]:
        """The path from the Bayes rule to the minimax rule."""
        look = {"color": theme.LINES[0], "ms": 5, "mec": "white"}
        (self.path_,) = ax.plot(self.average, self.worst, "-o", **look)
        for place, name in ((0, "training prior"), (-1, "any prior")):
            said = f"{name} (size {self.sizes[place]:.2g})"
            theme.note(ax, said, (self.average[place], self.worst[place]))
        return "Average risk at the training prior", "Worst class risk"
