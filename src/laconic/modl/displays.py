"""Displays of partitions: class rates per part with confidence bars, levels of all variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv
from sklearn.utils.validation import check_is_fitted

from laconic._typing import Floats
from laconic.core import drawing as theme
from laconic.modl.partition import Partition

__all__ = ["LevelDisplay", "PartitionDisplay"]


_SHOWN_TEXT = 38
_KINDS = ("numeric", "categorical", "pair", "tree")


def rate_interval(weight: Floats, total: Floats, coverage: float) -> tuple[Floats, Floats]:
    """Central credible interval of a rate under a uniform prior: Beta(n + 1, N - n + 1)."""
    tail = 0.5 * (1.0 - coverage)
    low = betaincinv(weight + 1.0, total - weight + 1.0, tail)
    high = betaincinv(weight + 1.0, total - weight + 1.0, 1.0 - tail)
    return np.asarray(low), np.asarray(high)


@dataclass
class PartitionDisplay:
    """Stacked class rates per part, first part on top, with the share of rows in each.

    The bars of confidence are drawn where the share of the first class ends (two classes), or at
    the end of every class but the last: the central credible interval of the cumulated rate.

    Attributes
    ----------
    name : str
    labels : list of str
        One per part.
    classes : ndarray
    rates : ndarray of shape (n_parts, n_classes)
    coverage : ndarray of shape (n_parts,)
        Share of the weight in each part.
    low, high : ndarray of shape (n_parts, n_classes - 1)
        Credible interval of the cumulated rates.
    confidence : float
    ax_, figure_, bars_, errors_ : matplotlib objects, after :meth:`plot`

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from laconic import ModlEncoder
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> encoder = ModlEncoder().fit(X, y)
    >>> display = PartitionDisplay.from_estimator(encoder, "petal width (cm)")
    >>> display.labels
    ['(-inf, 0.8]', '(0.8, 1.75]', '(1.75, inf)']
    """

    name: str
    labels: list[str]
    classes: NDArray[Any]
    rates: Floats
    coverage: Floats
    low: Floats
    high: Floats
    confidence: float

    @classmethod
    def from_partition(cls, partition: Partition, *, confidence: float = 0.95) -> PartitionDisplay:
        """From a fitted partition."""
        weights = partition.class_weights
        total = weights.sum(axis=1, keepdims=True)
        cumulated = np.cumsum(weights, axis=1)[:, :-1]
        low, high = rate_interval(cumulated, np.broadcast_to(total, cumulated.shape), confidence)
        return cls(
            partition.name,
            partition.labels,
            partition.classes,
            partition.class_rates(),
            total[:, 0] / total.sum(),
            low,
            high,
            confidence,
        )

    @classmethod
    def from_estimator(
        cls, encoder: Any, column: str, *, confidence: float = 0.95
    ) -> PartitionDisplay:
        """From a fitted encoder and the name of one of its variables."""
        check_is_fitted(encoder, "partitions_")
        if column not in encoder.partitions_:
            raise ValueError(
                f"{column!r} is not a variable of the encoder; choose one of "
                f"{', '.join(list(encoder.partitions_)[:8])}..."
            )
        return cls.from_partition(encoder.partitions_[column], confidence=confidence)

    def frame(self) -> Any:
        """The drawn numbers, one row per part."""
        columns: dict[str, Any] = {"label": self.labels, "coverage": self.coverage}
        for j, name in enumerate(self.classes):
            columns[f"rate {name}"] = self.rates[:, j]
        for j, name in enumerate(self.classes[:-1]):
            columns[f"low {name}"] = self.low[:, j]
            columns[f"high {name}"] = self.high[:, j]
        return theme.frame_of(columns)

    def plot(self, ax: Any = None) -> PartitionDisplay:
        """Draw on ``ax`` (new axes when None)."""
        self.ax_ = ax = theme.axes(ax)
        self.figure_ = ax.figure
        place = np.arange(len(self.labels))[::-1]
        before = np.zeros(len(place))
        self.bars_, self.errors_ = [], []
        for j, name in enumerate(self.classes):
            colour = theme.LINES[j % len(theme.LINES)]
            rate = self.rates[:, j]
            self.bars_.append(ax.barh(place, rate, 0.8, left=before, color=colour, label=str(name)))
            before = before + rate
            if j < len(self.classes) - 1:
                reach = np.abs(np.stack([before - self.low[:, j], self.high[:, j] - before]))
                bars = ax.errorbar(
                    before, place, xerr=reach, fmt="none", ecolor=theme.INK, capsize=2.5
                )
                self.errors_.append(bars)
        ticks = [
            f"{_short(text)}  {share:.1%}"
            for text, share in zip(self.labels, self.coverage, strict=True)
        ]
        ax.set_yticks(place, ticks)
        ax.set_xlim(0.0, 1.0)
        ax.grid(False, axis="y")
        theme.label(ax, f"share of each class by {self.name}", "part and its share of rows")
        theme.legend(ax)
        return self


@dataclass
class LevelDisplay:
    """Levels of the variables of an encoder, highest first.

    Attributes
    ----------
    names : list of str
    levels : ndarray
    kinds : list of str
        "numeric", "categorical", "pair" or "tree".
    n_parts : ndarray
    ax_, figure_, bars_ : matplotlib objects, after :meth:`plot` (``bars_`` by kind)
    """

    names: list[str]
    levels: Floats
    kinds: list[str]
    n_parts: NDArray[np.int64]

    @classmethod
    def from_estimator(cls, encoder: Any, *, max_variables: int = 30) -> LevelDisplay:
        """From a fitted encoder; the ``max_variables`` highest levels are kept."""
        check_is_fitted(encoder, "partitions_")
        ranked = sorted(encoder.partitions_.values(), key=lambda p: -p.level)[:max_variables]
        return cls(
            [p.name for p in ranked],
            np.array([p.level for p in ranked]),
            [p.kind for p in ranked],
            np.array([p.n_parts for p in ranked]),
        )

    def frame(self) -> Any:
        """Name, kind, number of parts and level of each variable."""
        return theme.frame_of(
            {"name": self.names, "kind": self.kinds, "parts": self.n_parts, "level": self.levels}
        )

    def plot(self, ax: Any = None) -> LevelDisplay:
        """Draw horizontal bars, the highest level on top."""
        self.ax_ = ax = theme.axes(ax)
        self.figure_ = ax.figure
        place = np.arange(len(self.names))[::-1]
        kinds = np.array(self.kinds)
        self.bars_ = {}
        for kind, colour in zip(_KINDS, theme.LINES, strict=False):
            own = kinds == kind
            if own.any():
                self.bars_[kind] = ax.barh(
                    place[own], self.levels[own], color=colour, height=0.72, label=kind
                )
        ax.set_yticks(place, [_short(name) for name in self.names])
        ax.grid(False, axis="y")
        theme.label(ax, "level (share of the description length saved)", "")
        theme.legend(ax)
        return self


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_TEXT else text[: _SHOWN_TEXT - 1] + "…"
