"""Displays of the weighted naive Bayes: weights by penalty, searches, one row's contributions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from laconic._typing import Floats
from laconic.core import drawing as theme
from laconic.core.explanation import Explanation

__all__ = ["ContributionDisplay", "SearchDisplay", "WeightPathDisplay"]


_NAMED = 8
_SHOWN_TEXT = 46


@dataclass
class WeightPathDisplay:
    """The weight of every variable as the penalty grows.

    Attributes
    ----------
    penalties : ndarray of shape (n_penalties,)
    names : ndarray of shape (n_variables,)
    weights : ndarray of shape (n_penalties, n_variables)
    ax_, figure_, lines_ : matplotlib objects, after :meth:`plot`

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

    def frame(self) -> Any:
        """One row for each penalty, one column for each variable."""
        columns: dict[str, Any] = {"penalty": self.penalties}
        columns |= {str(name): self.weights[:, k] for k, name in enumerate(self.names)}
        return theme.frame_of(columns)

    def plot(self, ax: Any = None) -> WeightPathDisplay:
        """Draw on ``ax`` (new axes when None); the heaviest variables are named."""
        self.ax_ = ax = theme.axes(ax)
        self.figure_ = ax.figure
        order = np.argsort(-self.weights.sum(axis=0), kind="stable")
        self.lines_ = []
        for rank, k in enumerate(order):
            named = rank < _NAMED and self.weights[:, k].any()
            (line,) = ax.plot(
                self.penalties,
                self.weights[:, k],
                color=theme.LINES[rank % len(theme.LINES)] if named else theme.QUIET,
                linestyle=theme.DASHES[(rank // len(theme.LINES)) % len(theme.DASHES)],
                linewidth=1.6 if named else 0.8,
                label=_short(self.names[k]) if named else None,
            )
            self.lines_.append(line)
        ax.set_xscale("log")
        ax.set_ylim(-0.02, 1.02)
        theme.label(ax, "penalty", "weight")
        theme.legend(ax)
        return self


@dataclass
class SearchDisplay:
    """The criterion against the iteration, for one or several searches.

    Attributes
    ----------
    values : dict of str to ndarray
        Criterion of every evaluation, by label.
    starts : dict of str to ndarray
        Evaluations at which a new descent begins.
    minimum : float or None
        The certified minimum, when it is known.
    ax_, figure_, lines_ : matplotlib objects, after :meth:`plot`

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

    def frame(self) -> Any:
        """One row for each evaluation of each search."""
        columns: dict[str, Any] = {"search": [], "iteration": [], "value": [], "best": []}
        for label, values in self.values.items():
            columns["search"] += [label] * len(values)
            columns["iteration"] += list(range(len(values)))
            columns["value"] += values.tolist()
            columns["best"] += np.minimum.accumulate(values).tolist()
        return theme.frame_of(columns)

    def plot(self, ax: Any = None) -> SearchDisplay:
        """Draw on ``ax`` (new axes when None): faint the value, strong the best so far."""
        self.ax_ = ax = theme.axes(ax)
        self.figure_ = ax.figure
        self.lines_ = []
        for k, (label, values) in enumerate(self.values.items()):
            colour = theme.LINES[k % len(theme.LINES)]
            rounds = np.arange(len(values))
            ax.plot(rounds, values, color=colour, linewidth=0.8, alpha=0.4)
            (line,) = ax.plot(
                rounds,
                np.minimum.accumulate(values),
                color=colour,
                linewidth=1.8,
                label=label,
                linestyle=theme.DASHES[k % len(theme.DASHES)],
            )
            begun = self.starts[label]
            ax.plot(begun, values[begun], ".", color=colour, markersize=4)
            self.lines_.append(line)
        if self.minimum is not None:
            ax.axhline(self.minimum, color=theme.INK, linewidth=0.8, label="certified minimum")
        theme.label(ax, "iteration", "criterion (nats)")
        theme.legend(ax)
        return self


@dataclass
class ContributionDisplay:
    """What each variable adds to the score of one row, largest first.

    Attributes
    ----------
    labels : list of str
        Variable and the part that the row falls in.
    contributions : ndarray of shape (n_variables,)
    baseline, score : float
        Of a mean row, and of this row: baseline + sum of contributions.
    output : str
        The class whose log-odds (two classes) or centred score is shown.
    ax_, figure_, bars_ : matplotlib objects, after :meth:`plot`

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from laconic import WeightedNaiveBayes
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = WeightedNaiveBayes().fit(X, y)
    >>> display = ContributionDisplay.from_estimator(model, X, row=0, output=0)
    >>> bool(abs(display.baseline + display.contributions.sum() - display.score) < 1e-9)
    True
    """

    labels: list[str]
    contributions: Floats
    baseline: float
    score: float
    output: str

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, row: int = 0, output: Any = None
    ) -> ContributionDisplay:
        """One row of X; ``output`` is a class, by default the one predicted (the second of two)."""
        return cls.from_explanation(estimator.explain(X), row=row, output=output)

    @classmethod
    def from_explanation(
        cls, explanation: Explanation, *, row: int = 0, output: Any = None
    ) -> ContributionDisplay:
        """One row of an :class:`~laconic.core.explanation.Explanation`."""
        values = explanation.contributions[row]
        scores = explanation.baseline + values.sum(axis=0)
        if len(explanation.classes) == 2:
            place, first = 0, output is not None and explanation.place_of(output) == 0
            sign, shown = (-1.0, explanation.classes[0]) if first else (1.0, explanation.classes[1])
        else:
            place = int(np.argmax(scores)) if output is None else explanation.place_of(output)
            sign, shown = 1.0, explanation.classes[place]
        own = sign * values[:, place]
        order = np.argsort(-np.abs(own), kind="stable")
        parts = explanation.parts(row)
        labels = [f"{explanation.names[k]}: {parts[k]}" for k in order]
        baseline = sign * float(explanation.baseline[place])
        return cls(labels, own[order], baseline, baseline + float(own.sum()), str(shown))

    def frame(self) -> Any:
        """One row for each variable."""
        return theme.frame_of({"label": self.labels, "contribution": self.contributions})

    def plot(self, ax: Any = None) -> ContributionDisplay:
        """Draw on ``ax`` (new axes when None)."""
        self.ax_ = ax = theme.axes(ax)
        self.figure_ = ax.figure
        place = np.arange(len(self.labels))[::-1]
        colours = [theme.LINES[1] if c < 0 else theme.LINES[0] for c in self.contributions]
        self.bars_ = ax.barh(place, self.contributions, color=colours, height=0.7)
        ax.set_yticks(place, [_short(text) for text in self.labels])
        ax.axvline(0.0, color=theme.INK, linewidth=0.8)
        ax.grid(False, axis="y")
        theme.label(ax, f"contribution to the score of {_short(self.output)} (nats)", "")
        ax.set_title(
            f"mean row {self.baseline:+.2f}, this row {self.score:+.2f}",
            loc="left",
            fontsize=9,
            color=theme.INK,
        )
        return self


def _short(text: Any) -> str:
    shown = str(text).replace("$", r"\$")
    return shown if len(shown) <= _SHOWN_TEXT else shown[: _SHOWN_TEXT - 1] + "…"
