"""Displays of a path of k-means, of rows on principal components and of the correlation circle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length, column_or_1d

from laconic._typing import Floats
from laconic.core import drawing as theme

__all__ = ["CorrelationCircleDisplay", "KPathDisplay", "RowMapDisplay", "decision_zones"]


SURE, GRAY, ERROR = "sure", "gray zone", "error"
_ZONE_COLOURS = {SURE: theme.LINES[0], GRAY: theme.ZONE, ERROR: theme.ALARM}


@dataclass
class KPathDisplay(theme.Display):
    """Distortion and criterion of k-means against the number of groups.

    Attributes
    ----------
    k_values, distortion, criterion : ndarray of shape (K,)
    chosen : int
        The number of groups kept.
    name : str
        What the criterion is called.
    distortion_line_, criterion_line_, chosen_line_ : matplotlib objects, after ``plot``

    Examples
    --------
    >>> import numpy as np
    >>> from laconic.convex import KMeansK
    >>> from laconic.displays import KPathDisplay
    >>> X = np.repeat([[0.0], [5.0], [9.0]], 10, axis=0) + np.linspace(0, 1, 30)[:, None]
    >>> path = KPathDisplay.from_estimator(KMeansK(k_max=5).fit(X))
    >>> path.chosen
    3
    """

    k_values: NDArray[np.int64]
    distortion: Floats
    criterion: Floats
    chosen: int
    name: str = "criterion"

    @classmethod
    def from_estimator(cls, estimator: Any) -> KPathDisplay:
        """From a fitted :class:`~laconic.convex.KMeansK`."""
        return cls(
            estimator.k_values_,
            estimator.distortion_path_,
            estimator.criterion_path_,
            int(estimator.k_),
            estimator.criterion,
        )

    @classmethod
    def from_predictions(
        cls, distortion: ArrayLike, criterion: ArrayLike, name: str = "criterion"
    ) -> KPathDisplay:
        """From J(k) and a criterion for k = 1, 2, ...; the smallest criterion is the choice."""
        J, values = np.asarray(distortion, float), np.asarray(criterion, float)
        check_consistent_length(J, values)
        k = np.arange(1, len(J) + 1)
        return cls(k, J, values, int(k[np.argmin(values)]), name)

    def _columns(self) -> dict[str, Any]:
        path = {"k": self.k_values, "distortion": self.distortion, "criterion": self.criterion}
        return {**path, "chosen": self.k_values == self.chosen}

    def _draw(self, ax: Any) -> tuple[str, str]:
        """The distortion on the left axis and the criterion on the right one."""
        look = {"color": theme.LINES[0], "lw": 1.6, "label": "distortion J"}
        (self.distortion_line_,) = ax.plot(self.k_values, self.distortion, "o-", **look)
        right = ax.twinx()
        right.spines[["top", "left"]].set_visible(False)
        right.tick_params(colors=theme.INK, labelsize=9)
        values = np.where(np.isfinite(self.criterion), self.criterion, np.nan)
        look = theme.look(1, lw=1.6, label=self.name)
        (self.criterion_line_,) = right.plot(self.k_values, values, "s", **look)
        right.set_ylabel(self.name, color=theme.INK)
        said = f"k = {self.chosen}"
        self.chosen_line_ = ax.axvline(self.chosen, color=theme.ALARM, lw=1, alpha=0.6, label=said)
        handles = [self.distortion_line_, self.criterion_line_, self.chosen_line_]
        ax.legend(handles=handles, frameon=False, fontsize=9, labelcolor=theme.INK)
        return "number of groups k", "distortion J(k)"


def decision_zones(
    y: ArrayLike, proba: ArrayLike, zone: tuple[float, float], positive: Any = 1
) -> NDArray[Any]:
    """One of "sure", "gray zone", "error" for each row.

    A row whose probability of the positive class lies in ``zone`` is in the gray zone; outside it
    the decision is made, and it is sure or an error.

    >>> decision_zones([0, 1, 0, 1], [0.1, 0.2, 0.5, 0.9], (0.3, 0.6)).tolist()
    ['sure', 'error', 'gray zone', 'sure']
    """
    p_min, p_max = zone
    if not 0 <= p_min <= p_max <= 1:
        raise ValueError(f"zone must hold 0 <= p_min <= p_max <= 1, got {zone}.")
    p = column_or_1d(proba)
    truth = column_or_1d(y) == positive
    check_consistent_length(p, truth)
    wrong = (truth & (p < p_min)) | (~truth & (p > p_max))
    inside = (p >= p_min) & (p <= p_max)
    return np.where(inside, GRAY, np.where(wrong, ERROR, SURE)).astype(object)


@dataclass
class RowMapDisplay(theme.Display):
    """Rows on two principal components, coloured by class or by decision zone.

    Attributes
    ----------
    scores : ndarray of shape (n_rows, 2)
    labels : ndarray of shape (n_rows,) or None
    axes : tuple of two int
        Components drawn, counted from zero.
    shares : tuple of two float
        Share of the variance of each.
    points_ : dict of matplotlib objects by label, after ``plot``

    Examples
    --------
    >>> import numpy as np
    >>> from laconic.convex import PrincipalMap
    >>> from laconic.displays import RowMapDisplay
    >>> X = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [4.0, 2.0, 0.0], [3.0, 3.0, 3.0]])
    >>> RowMapDisplay.from_estimator(PrincipalMap().fit(X), X).scores.shape
    (4, 2)
    """

    scores: Floats
    labels: NDArray[Any] | None
    axes: tuple[int, int]
    shares: tuple[float, float]

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, labels: ArrayLike | None = None, axes: tuple[int, int] = (0, 1)
    ) -> RowMapDisplay:
        """From a fitted :class:`~laconic.convex.PrincipalMap`; ``labels`` colour the rows."""
        shares = _shares_of(estimator, axes)
        scores = estimator.row_scores(X, max(axes) + 1)[:, list(axes)]
        return cls.from_predictions(scores, labels, axes=axes, shares=shares)

    @classmethod
    def from_predictions(
        cls,
        scores: ArrayLike,
        labels: ArrayLike | None = None,
        *,
        axes: tuple[int, int] = (0, 1),
        shares: tuple[float, float] = (np.nan, np.nan),
    ) -> RowMapDisplay:
        """From two columns of scores."""
        points = _two_columns(scores, "scores")
        named = None if labels is None else column_or_1d(labels)
        if named is not None:
            check_consistent_length(points, named)
        return cls(points, named, axes, shares)

    def _columns(self) -> dict[str, Any]:
        """``first``, ``second`` and, when rows are coloured, ``label``."""
        columns: dict[str, Any] = {"first": self.scores[:, 0], "second": self.scores[:, 1]}
        return columns if self.labels is None else {**columns, "label": self.labels}

    def _draw(self, ax: Any) -> tuple[str, str]:
        """The rarest label is drawn last, on top."""
        groups: list[Any] = [("rows", np.ones(len(self.scores), bool), theme.LINES[0], None)]
        if self.labels is not None:
            found, counts = np.unique(self.labels, return_counts=True)
            groups = [
                (found[j], self.labels == found[j], _colour(found[j], j), str(found[j]))
                for j in np.argsort(-counts, kind="stable")
            ]
        look = {"s": 14, "alpha": 0.75, "linewidths": 0}
        self.points_ = {
            key: ax.scatter(*self.scores[rows].T, color=colour, label=name, **look)
            for key, rows, colour, name in groups
        }
        return _axis_names(self.axes, self.shares)


@dataclass
class CorrelationCircleDisplay(theme.Display):
    """Correlation of each column with two principal components, in the unit circle.

    Attributes
    ----------
    correlations : ndarray of shape (n_columns, 2)
    names : ndarray of shape (n_columns,)
    axes, shares : as in :class:`RowMapDisplay`
    arrows_, texts_ : matplotlib objects, after ``plot``

    Examples
    --------
    >>> import numpy as np
    >>> from laconic.convex import PrincipalMap
    >>> from laconic.displays import CorrelationCircleDisplay
    >>> x = np.arange(5.0)
    >>> found = PrincipalMap().fit(np.column_stack([x, -x, x % 2]))
    >>> circle = CorrelationCircleDisplay.from_estimator(found)
    >>> bool((np.hypot(*circle.correlations.T) <= 1 + 1e-12).all())
    True
    """

    correlations: Floats
    names: NDArray[Any]
    axes: tuple[int, int]
    shares: tuple[float, float]

    @classmethod
    def from_estimator(
        cls, estimator: Any, axes: tuple[int, int] = (0, 1)
    ) -> CorrelationCircleDisplay:
        """From a fitted :class:`~laconic.convex.PrincipalMap`."""
        shares = _shares_of(estimator, axes)
        values = estimator.correlations_[:, list(axes)]
        return cls.from_predictions(values, estimator.schema_.names, axes=axes, shares=shares)

    @classmethod
    def from_predictions(
        cls,
        correlations: ArrayLike,
        names: ArrayLike,
        *,
        axes: tuple[int, int] = (0, 1),
        shares: tuple[float, float] = (np.nan, np.nan),
    ) -> CorrelationCircleDisplay:
        """From two columns of correlations and the names of the columns of the table."""
        values = _two_columns(correlations, "correlations")
        named = np.asarray(names, dtype=object)
        check_consistent_length(values, named)
        return cls(values, named, axes, shares)

    def _columns(self) -> dict[str, Any]:
        """``column``, ``first``, ``second`` and ``quality`` (squared length)."""
        first, second = self.correlations.T
        named = {"column": self.names, "first": first, "second": second}
        return {**named, "quality": np.square(self.correlations).sum(axis=1)}

    def _draw(self, ax: Any) -> tuple[str, str]:
        """One arrow per column; a short arrow is a column these two components miss."""
        angle = np.linspace(0, 2 * np.pi, 361)
        ax.plot(np.cos(angle), np.sin(angle), color=theme.QUIET, lw=1.0)
        arrow = {"arrowstyle": "->", "color": theme.LINES[0], "lw": 1.4}
        self.arrows_, self.texts_ = [], []
        for (x, y), name in zip(self.correlations, self.names, strict=True):
            self.arrows_.append(ax.annotate("", xy=(x, y), xytext=(0.0, 0.0), arrowprops=arrow))
            beside = {"ha": "left" if x >= 0 else "right", "va": "bottom" if y >= 0 else "top"}
            look = {"fontsize": 9, "color": theme.INK, **beside}
            self.texts_.append(ax.text(1.06 * x, 1.06 * y, str(name), **look))
        ax.set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), aspect="equal")
        return _axis_names(self.axes, self.shares)


def _shares_of(estimator: Any, axes: tuple[int, int]) -> tuple[float, float]:
    """Share of the variance of two components, which must be there."""
    available = len(estimator.axes_)
    if len(axes) != 2 or not all(0 <= axis < available for axis in axes):
        raise ValueError(
            f"axes must be two components between 0 and {available - 1}, got {tuple(axes)}."
        )
    share = estimator.explained_variance_ratio_
    return float(share[axes[0]]), float(share[axes[1]])


def _two_columns(values: ArrayLike, what: str) -> Floats:
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 2 or found.shape[1] != 2:
        raise ValueError(f"{what} must have two columns, got shape {found.shape}.")
    return found


def _axis_names(axes: tuple[int, int], shares: tuple[float, float]) -> tuple[str, str]:
    names = [f"component {axis + 1}" for axis in axes]
    for k, share in enumerate(shares):
        names[k] += "" if np.isnan(share) else f" ({share:.0%} of the variance)"
    return names[0], names[1]


def _colour(label: Any, place: int) -> str:
    fixed = _ZONE_COLOURS.get(label) if isinstance(label, str) else None
    return fixed or theme.colour(place)
