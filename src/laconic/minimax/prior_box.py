"""Class priors that are believed possible: a box cut by the simplex."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from laconic._typing import Floats

_SLACK = 1e-9  # bounds typed with a few decimals may miss the simplex by their rounding


@dataclass(frozen=True)
class PriorBox:
    """``U = {pi : low <= pi <= high, sum(pi) = 1}``.

    The two ends of the family are one point (the Bayes rule for that prior) and the whole
    simplex (the minimax rule).

    >>> box = PriorBox.of([[0.0, 0.5], [0.2, 1.0]], n_classes=2)
    >>> box.project(np.array([0.9, 0.1]))
    array([0.5, 0.5])
    >>> box.worst(np.array([0.3, 0.1]))
    (0.2, array([0.5, 0.5]))
    """

    low: Floats
    high: Floats

    @staticmethod
    def of(
        bounds: ArrayLike | Mapping[Any, Any] | None,
        n_classes: int,
        classes: ArrayLike | None = None,
    ) -> PriorBox:
        """Read ``None`` (the simplex), a K x 2 array, or a mapping from class to (low, high).

        A class that a mapping does not name may have any proportion.
        """
        if bounds is None:
            return PriorBox(np.zeros(n_classes), np.ones(n_classes))
        if isinstance(bounds, Mapping):
            bounds = _from_mapping(bounds, np.arange(n_classes) if classes is None else classes)
        try:
            table = np.array(bounds, dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError(
                "prior_bounds must be None, a K x 2 array of (low, high) or a dict from class to "
                f"(low, high); got {bounds!r}."
            ) from None
        return _checked(table, n_classes)

    @property
    def n_classes(self) -> int:
        return len(self.low)

    def project(self, y: Floats) -> Floats:
        """Nearest point of the box to ``y``: ``clip(y - tau, low, high)`` with the sum one.

        The sum is piecewise affine and decreasing in tau, with its kinks at ``y - high`` and
        ``y - low``: sort them, find the piece, solve it. O(K log K).
        """
        kinks = np.concatenate((y - self.high, y - self.low))
        order = np.argsort(kinks, kind="stable")
        kinks = kinks[order]
        # a coordinate leaves its upper bound at y - high and reaches its lower one at y - low
        turn = np.where(order < self.n_classes, -1.0, 1.0)
        slope = np.cumsum(turn)
        sums = self.high.sum() + np.concatenate(([0.0], np.cumsum(slope[:-1] * np.diff(kinks))))
        piece = int(np.clip(np.searchsorted(-sums, -1.0), 1, len(kinks) - 1))
        middle = kinks[piece - 1] / 2 + kinks[piece] / 2
        free = (y - self.high < middle) & (middle < y - self.low)
        if not free.any():
            return np.asarray(np.clip(y - kinks[piece], self.low, self.high))
        at_high = y - self.high >= middle
        fixed = self.high[at_high].sum() + self.low[~free & ~at_high].sum()
        # y is shifted first: tau must not lose digits when y is far from the simplex
        shifted = y - middle
        tau = (shifted[free].sum() + fixed - 1.0) / free.sum()
        return np.asarray(np.clip(shifted - tau, self.low, self.high))

    def worst(self, risks: Floats) -> tuple[float, Floats]:
        """``max_{pi in U} pi.R`` and a prior that attains it: fill the riskiest classes first."""
        order = np.argsort(-risks, kind="stable")
        room = (self.high - self.low)[order]
        left = 1.0 - self.low.sum()
        before = np.concatenate(([0.0], np.cumsum(room)[:-1]))
        prior = self.low.copy()
        prior[order] += np.clip(left - before, 0.0, room)
        return float(prior @ risks), prior


def _from_mapping(bounds: Mapping[Any, Any], classes: ArrayLike) -> Floats:
    names = list(np.asarray(classes))
    table = np.tile([0.0, 1.0], (len(names), 1))
    for name, pair in bounds.items():
        if name not in names:
            raise ValueError(
                f"prior_bounds names the class {name!r}, which has no rows; the classes are "
                f"{', '.join(map(str, names))}."
            )
        table[names.index(name)] = pair
    return table


def _checked(table: Floats, n_classes: int) -> PriorBox:
    if table.shape != (n_classes, 2):
        raise ValueError(
            f"prior_bounds must have one (low, high) pair per class, shape ({n_classes}, 2); "
            f"got shape {table.shape}."
        )
    low, high = table[:, 0].copy(), table[:, 1].copy()
    if not np.isfinite(table).all() or (low < 0).any() or (high > 1).any() or (low > high).any():
        raise ValueError(
            "prior_bounds must satisfy 0 <= low <= high <= 1 for every class; got "
            f"{table.tolist()}."
        )
    if low.sum() > 1 + _SLACK or high.sum() < 1 - _SLACK:
        raise ValueError(
            "prior_bounds exclude every class mix: proportions sum to one, but the lower bounds "
            f"sum to {low.sum():.6g} and the upper bounds to {high.sum():.6g}; widen them."
        )
    # within the slack, the nearest bounds that the simplex does reach
    return PriorBox(low / max(low.sum(), 1.0), np.minimum(high / min(high.sum(), 1.0), 1.0))
