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
class CandidatesDisplay:
    """Cost of the decisions against the size of the model, one point for each candidate.

    Attributes
    ----------
    names : list of str
    size, cost, cost_se : ndarray of shape (n,)
        ``cost_se`` is NaN where no standard error is known.
    chosen : ndarray of bool of shape (n,)
    ax_, figure_, points_, chosen_ : matplotlib objects, after :meth:`plot`

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

    def frame(self) -> Any:
        """One row for each candidate."""
        return theme.frame_of(
            {
                "candidate": self.names,
                "size": self.size,
                "cost": self.cost,
                "cost_se": self.cost_se,
                "chosen": self.chosen,
            }
        )

    def plot(self, ax: Any = None) -> CandidatesDisplay:
        """Draw, sizes on a log scale, bars of one standard error."""
        ax = theme.axes(ax)
        drawn = np.isfinite(self.size) & np.isfinite(self.cost)
        error = np.where(np.isfinite(self.cost_se), self.cost_se, 0.0)
        for picked, look in ((False, theme.QUIET), (True, theme.LINES[0])):
            at = drawn & (self.chosen == picked)
            line = ax.errorbar(
                np.maximum(self.size[at], 1.0),
                self.cost[at],
                yerr=error[at],
                fmt="D" if picked else "o",
                ms=8 if picked else 6,
                color=look,
                elinewidth=1.3,
                capsize=3,
                label="chosen" if picked else "candidates",
            )
            if picked:
                self.chosen_ = line.lines[0]
            else:
                self.points_ = line.lines[0]
        for place in np.flatnonzero(drawn):
            name = self.names[place]
            ax.annotate(
                name if len(name) <= 28 else name[:27] + "…",
                (max(self.size[place], 1.0), self.cost[place]),
                xytext=(7, 5),
                textcoords="offset points",
                fontsize=8,
                color=theme.INK,
            )
        ax.set_xscale("log")
        ax.margins(x=0.18)
        theme.label(ax, "size of the model", "expected cost per case")
        theme.legend(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
