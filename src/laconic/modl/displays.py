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
class PartitionDisplay(theme.Display):
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
    bars_, errors_ : matplotlib objects, after ``plot``

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

    def _columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = {"label": self.labels, "coverage": self.coverage}
        for j, name in enumerate(self.classes):
            columns[f"rate {name}"] = self.rates[:, j]
        for j, name in enumerate(self.classes[:-1]):
            columns |= {f"low {name}": self.low[:, j], f"high {name}": self.high[:, j]}
        return columns

    def _draw(self, ax: Any) -> tuple[str, str]:
        place = np.arange(len(self.labels))[::-1]
        before = np.zeros(len(place))
        self.bars_, self.errors_ = [], []
        for j, (name, rate) in enumerate(zip(self.classes, self.rates.T, strict=True)):
            own = ax.barh(place, rate, 0.8, left=before, color=theme.colour(j), label=str(name))
            self.bars_.append(own)
            before = before + rate
            if j < len(self.classes) - 1:
                reach = np.abs(np.stack([before - self.low[:, j], self.high[:, j] - before]))
                look = {"fmt": "none", "ecolor": theme.INK, "capsize": 2.5}
                self.errors_.append(ax.errorbar(before, place, xerr=reach, **look))
        shares = [f"{share:.1%}" for share in self.coverage]
        texts = [theme.short(text, _SHOWN_TEXT) for text in self.labels]
        ax.set_yticks(place, [f"{a}  {b}" for a, b in zip(texts, shares, strict=True)])
        ax.set_xlim(0.0, 1.0)
        ax.grid(False, axis="y")
        return f"share of each class by {self.name}", "part and its share of rows"


@dataclass
class LevelDisplay(theme.Display):
    """Levels of the variables of an encoder, highest first.

    Attributes
    ----------
    names : list of str
    levels : ndarray
    kinds : list of str
        "numeric", "categorical", "pair" or "tree".
    n_parts : ndarray
    bars_ : dict of matplotlib objects by kind, after ``plot``
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

    def _columns(self) -> dict[str, Any]:
        return {"name": self.names, "kind": self.kinds, "parts": self.n_parts, "level": self.levels}

    def _draw(self, ax: Any) -> tuple[str, str]:
        """Horizontal bars, the highest level on top."""
        place = np.arange(len(self.names))[::-1]
        self.bars_ = {}
        for kind, colour in zip(_KINDS, theme.LINES, strict=False):
            own = np.array(self.kinds) == kind
            if own.any():
                bars = ax.barh(place[own], self.levels[own], color=colour, height=0.72, label=kind)
                self.bars_[kind] = bars
        ax.set_yticks(place, [theme.short(name, _SHOWN_TEXT) for name in self.names])
        ax.grid(False, axis="y")
        return "level (share of the description length saved)", ""
