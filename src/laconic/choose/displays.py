"""Size against cost: every candidate that was compared, the chosen one marked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length

from laconic._typing import Floats
from laconic.core import drawing as theme

__all__ = ["CandidatesDisplay"]


@dataclass
class CandidatesDisplay(theme.Display):
    """Cost of the decisions against the size of the model, one point for each candidate.

    Attributes
    ----------
    names : list of str
    size, cost, cost_se : ndarray of shape (n,)
        ``cost_se`` is NaN where no standard error is known.
    chosen : ndarray of bool of shape (n,)
    points_, chosen_ : matplotlib objects, after ``plot``

    Examples
    --------
    >>> shown = CandidatesDisplay.from_predictions(
    ...     ["linear", "additive"], size=[4, 30], cost=[0.5, 0.48], chosen=[True, False]
    ... )
    >>> shown.names[int(shown.cost.argmin())]
    'additive'
    """

    names: list[str]
    size: Floats
    cost: Floats
    cost_se: Floats
    chosen: NDArray[np.bool_]

    @classmethod
    def from_predictions(
        cls,
        candidate: ArrayLike,
        *,
        size: ArrayLike,
        cost: ArrayLike,
        cost_se: ArrayLike | None = None,
        chosen: ArrayLike | None = None,
    ) -> CandidatesDisplay:
        """From columns; a candidate without a size or a cost keeps its row and is not drawn."""
        names = [str(name) for name in np.asarray(candidate, dtype=object)]
        sizes, costs = np.asarray(size, dtype=np.float64), np.asarray(cost, dtype=np.float64)
        error = np.full(len(names), np.nan) if cost_se is None else np.asarray(cost_se, np.float64)
        picked = np.zeros(len(names), bool) if chosen is None else np.asarray(chosen, dtype=bool)
        check_consistent_length(names, sizes, costs, error, picked)
        return cls(names, sizes, costs, error, picked)

    @classmethod
    def from_estimator(cls, estimator: Any) -> CandidatesDisplay:
        """From a fitted model that keeps what it compared in ``comparison_``."""
        table = getattr(estimator, "comparison_", None)
        if table is None:
            raise ValueError(
                f"{type(estimator).__name__} has no comparison_; build the display with "
                "from_predictions."
            )
        columns = {name: list(table[name]) for name in table}
        known = {name: columns.get(name) for name in ("cost_se", "chosen")}
        return cls.from_predictions(
            columns["candidate"], size=columns["size"], cost=columns["cost"], **known
        )

    def _columns(self) -> dict[str, Any]:
        columns = super()._columns()
        return {"candidate": columns.pop("names"), **columns}

    def _draw(self, ax: Any) -> tuple[str, str]:
        """Sizes on a log scale, bars of one standard error."""
        drawn = np.isfinite(self.size) & np.isfinite(self.cost)
        error = np.where(np.isfinite(self.cost_se), self.cost_se, 0.0)
        looks = (
            {"label": "candidates", "fmt": "o", "ms": 6, "color": theme.QUIET},
            {"label": "chosen", "fmt": "D", "ms": 8, "color": theme.LINES[0]},
        )
        points = []
        for picked, look in zip((False, True), looks, strict=True):
            at = drawn & (self.chosen == picked)
            size = np.maximum(self.size[at], 1.0)
            bars = ax.errorbar(
                size, self.cost[at], yerr=error[at], elinewidth=1.3, capsize=3, **look
            )
            points.append(bars.lines[0])
        self.points_, self.chosen_ = points
        for k in np.flatnonzero(drawn):
            at = (max(self.size[k], 1.0), self.cost[k])
            theme.note(ax, theme.short(self.names[k], 28), at, (7, 5))
        ax.set_xscale("log")
        ax.margins(x=0.18)
        return "size of the model", "expected cost per case"
