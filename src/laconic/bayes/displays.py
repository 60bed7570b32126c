"""Displays of the weighted naive Bayes: weights by penalty, searches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from laconic._typing import Floats
from laconic.core import drawing as theme

__all__ = ["SearchDisplay", "WeightPathDisplay"]


_NAMED = 8
_SHOWN_TEXT = 46


@dataclass
class WeightPathDisplay(theme.Display):
    """The weight of every variable as the penalty grows.

    Attributes
    ----------
    penalties : ndarray of shape (n_penalties,)
    names : ndarray of shape (n_variables,)
    weights : ndarray of shape (n_penalties, n_variables)
    lines_ : matplotlib objects, after ``plot``

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from laconic import WeightedNaiveBayes
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> display = WeightPathDisplay.from_estimator(WeightedNaiveBayes(), X, y, penalties=[0.01, 1])
    >>> display.weights.shape
    (2, 4)
    """

    penalties: Floats
    names: NDArray[Any]
    weights: Floats

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, penalties: Any = None
    ) -> WeightPathDisplay:
        """Optimise the weights at every penalty, on the same partitions."""
        values = np.geomspace(0.001, 10.0, 25) if penalties is None else np.asarray(penalties)
        names, weights = estimator.weights_by_penalty(X, y, values)
        return cls(np.asarray(values, dtype=np.float64), names, weights)

    def _columns(self) -> dict[str, Any]:
        named = {str(name): self.weights[:, k] for k, name in enumerate(self.names)}
        return {"penalty": self.penalties, **named}

    def _draw(self, ax: Any) -> tuple[str, str]:
        """The heaviest variables are named."""
        order = np.argsort(-self.weights.sum(axis=0), kind="stable")
        self.lines_ = []
        for rank, k in enumerate(order):
            look: dict[str, Any] = {"color": theme.QUIET, "lw": 0.8}
            if rank < _NAMED and self.weights[:, k].any():
                look = {"color": theme.colour(rank), "ls": theme.DASHES[rank // len(theme.LINES)]}
                look |= {"lw": 1.6, "label": theme.short(self.names[k], _SHOWN_TEXT)}
            self.lines_ += ax.plot(self.penalties, self.weights[:, k], **look)
        ax.set_xscale("log")
        ax.set_ylim(-0.02, 1.02)
        return "penalty", "weight"


@dataclass
class SearchDisplay(theme.Display):
    """The criterion against the iteration, for one or several searches.

    Attributes
    ----------
    values : dict of str to ndarray
        Criterion of every evaluation, by label.
    starts : dict of str to ndarray
        Evaluations at which a new descent begins.
    minimum : float or None
        The certified minimum, when it is known.
    lines_ : matplotlib objects, after ``plot``

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from laconic import WeightedNaiveBayes
    >>> X, y = load_iris(return_X_y=True)
    >>> model = WeightedNaiveBayes(solver="dgml-vns", level=2, random_state=0)
    >>> display = SearchDisplay.from_estimator(model, X, y, optimizers=["dgml", "dgml-vns"])
    >>> list(display.values)
    ['dgml', 'dgml-vns']
    """

    values: dict[str, Floats]
    starts: dict[str, NDArray[np.int64]]
    minimum: float | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        optimizers: Any = ("dgml", "dgml-ms", "dgml-vns"),
    ) -> SearchDisplay:
        """Run the named searches with the estimator's other parameters, and the exact solver."""
        paths = {}
        for name in optimizers:
            paths[str(name)] = clone(estimator).set_params(solver=name).fit(X, y).path_
        minimum = None
        if estimator.power >= 1:
            minimum = clone(estimator).set_params(solver="auto").fit(X, y).criterion_
        return cls.from_paths(paths, minimum=minimum)

    @classmethod
    def from_paths(
        cls, paths: Mapping[str, Mapping[str, Any]], *, minimum: float | None = None
    ) -> SearchDisplay:
        """From the ``path_`` of fitted models, by label."""
        return cls(
            {label: np.asarray(path["values"]) for label, path in paths.items()},
            {label: np.asarray(path["starts"]) for label, path in paths.items()},
            minimum,
        )

    def _columns(self) -> dict[str, Any]:
        """One row for each evaluation of each search."""
        columns: dict[str, Any] = {"search": [], "iteration": [], "value": [], "best": []}
        for label, values in self.values.items():
            columns["search"] += [label] * len(values)
            columns["iteration"] += list(range(len(values)))
            columns["value"] += values.tolist()
            columns["best"] += np.minimum.accumulate(values).tolist()
        return columns

    def _draw(self, ax: Any) -> tuple[str, str]:
        """Faint the value, strong the best so far."""
        self.lines_ = []
        for k, (label, values) in enumerate(self.values.items()):
            rounds, begun = np.arange(len(values)), self.starts[label]
            ax.plot(rounds, values, color=theme.colour(k), lw=0.8, alpha=0.4)
            best = np.minimum.accumulate(values)
            self.lines_ += ax.plot(rounds, best, label=label, lw=1.8, **theme.look(k))
            ax.plot(begun, values[begun], ".", color=theme.colour(k), ms=4)
        if self.minimum is not None:
            ax.axhline(self.minimum, color=theme.INK, lw=0.8, label="certified minimum")
        return "iteration", "criterion (nats)"
