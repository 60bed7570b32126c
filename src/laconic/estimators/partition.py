"""A fitted partition: readable parts, the class weights in them, what they cost and are worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.criteria.modl import Costs, level_of
from laconic.estimators.partition_cells import Cells, Codes, Grid, Groups, Intervals, Rules


@dataclass(frozen=True)
class Partition:
    """Parts of one variable (a column, or one built from several).

    Attributes
    ----------
    name : str
    column_names : tuple of str
        Columns that the codes are computed from: one, two for a pair, several for a tree.
    columns : tuple of int
        Their places in the training table.
    cells : Intervals, Groups, Grid or Rules
    classes : ndarray of shape (n_classes,)
    class_weights : ndarray of shape (n_parts, n_classes)
        Weight of each class in each part.
    costs, null_costs : Costs
        Description length of the partition and of the single part, in nats.
    granularity : int
        The granularity that the prior was paid for (0 for one part).
    exact : bool
        Whether the partition is proven optimal.
    gap : float
        Bound on how far the cost is above the least one.
    """

    name: str
    column_names: tuple[str, ...]
    columns: tuple[int, ...]
    cells: Cells
    classes: NDArray[Any]
    class_weights: NDArray[np.float64]
    costs: Costs
    null_costs: Costs
    granularity: int
    exact: bool
    gap: float

    @property
    def kind(self) -> str:
        """ "numeric", "categorical", "pair" or "tree"."""
        return _KINDS[type(self.cells)]

    @property
    def n_parts(self) -> int:
        return len(self.class_weights)

    @property
    def construction_cost(self) -> float:
        return self.costs.construction

    @property
    def preparation_cost(self) -> float:
        return self.costs.preparation

    @property
    def data_cost(self) -> float:
        return self.costs.data

    @property
    def cost(self) -> float:
        """construction + preparation + data."""
        return self.costs.total

    @property
    def null_cost(self) -> float:
        return self.null_costs.total

    @property
    def level(self) -> float:
        """1 - cost / null cost, at least 0."""
        return level_of(self.cost, self.null_cost)

    @property
    def informative(self) -> bool:
        return self.n_parts > 1 and self.cost < self.null_cost

    @property
    def bounds(self) -> NDArray[np.float64]:
        """Cut points of a numeric column; a value equal to a cut belongs below it."""
        if not isinstance(self.cells, Intervals):
            raise AttributeError(f"{self.name!r} has no bounds: it is a {self.kind} partition.")
        return self.cells.bounds

    @property
    def groups(self) -> list[tuple[str | None, ...]]:
        """Texts of each group of a categorical column; None stands for missing."""
        if not isinstance(self.cells, Groups):
            raise AttributeError(f"{self.name!r} has no groups: it is a {self.kind} partition.")
        return self.cells.members()

    @property
    def labels(self) -> list[str]:
        """One readable text per part."""
        return self.cells.labels(self.column_names)

    def codes(self, *column_values: Any) -> Codes:
        """Part of each row, from the values of the partition's column (or columns, in order).

        Numeric values are floats with NaN for missing; categorical ones are texts, or the integer
        codes of a :class:`~laconic.data.columns.Table`.
        """
        if len(column_values) != len(self.columns):
            names = ", ".join(self.column_names)
            raise ValueError(
                f"{self.name!r} needs the values of {len(self.columns)} columns ({names}), got "
                f"{len(column_values)}."
            )
        return self.cells.codes([np.asarray(values) for values in column_values])

    def conditional_log_probabilities(self) -> NDArray[np.float64]:
        """ln P(part | class), shape (n_parts, n_classes).

        P(i | j) = (n_ij + e) / (N_j + I e), with e = 1 / (N + 1).
        """
        e = 1.0 / (self.class_weights.sum() + 1.0)
        per_class = self.class_weights.sum(axis=0)
        return np.asarray(np.log((self.class_weights + e) / (per_class + self.n_parts * e)))

    def class_rates(self) -> NDArray[np.float64]:
        """Share of each class in each part (the overall share where a part is empty)."""
        overall = self.class_weights.sum(axis=0) / self.class_weights.sum()
        weight = self.class_weights.sum(axis=1, keepdims=True)
        return np.asarray(
            np.where(weight > 0, self.class_weights / np.maximum(weight, 1e-300), overall)
        )

    def interest(self) -> NDArray[np.float64]:
        """Share of each part in the mutual information of part and class (0 for one part)."""
        joint = self.class_weights / self.class_weights.sum()
        expected = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
        ratio = np.divide(joint, expected, out=np.ones_like(joint), where=joint > 0)
        own = (joint * np.log(ratio)).sum(axis=1)
        total = own.sum()
        return np.asarray(own / total) if total > 0 else np.zeros(self.n_parts)

    def columns_of_frame(self) -> dict[str, Any]:
        """The partition as a dict of columns, one row per part."""
        weight = self.class_weights.sum(axis=1)
        frame: dict[str, Any] = {"part": np.arange(self.n_parts), "label": self.labels}
        frame["weight"] = weight
        frame["coverage"] = weight / weight.sum()
        for name, own, rate in zip(
            self.classes, self.class_weights.T, self.class_rates().T, strict=True
        ):
            frame[f"weight {name}"] = own
            frame[f"rate {name}"] = rate
        frame["interest"] = self.interest()
        return frame

    def to_frame(self) -> Any:
        """One row per part: label, weights, class rates, share of the information.

        A pandas frame when pandas is installed, a dict of columns otherwise.
        """
        columns = self.columns_of_frame()
        try:
            import pandas as pd
        except ImportError:
            return columns
        return pd.DataFrame(columns)

    def plot(self, ax: Any = None) -> Any:
        """Class rates per part with confidence bars; returns the display."""
        import laconic  # displays come after estimators: reached by their public name

        return laconic.PartitionDisplay.from_partition(self).plot(ax=ax)

    def __str__(self) -> str:
        proof = "proven optimal" if self.exact else "not proven optimal"
        head = (
            f"{self.name}: {self.n_parts} parts, level {self.level:.6g}, cost {self.cost:.2f} "
            f"against {self.null_cost:.2f} for one part ({proof})"
        )
        rates = self.class_rates()
        lines = [
            f"  {label}: "
            + ", ".join(f"{name} {rate:.3g}" for name, rate in zip(self.classes, row, strict=True))
            for label, row in zip(self.labels, rates, strict=True)
        ]
        return "\n".join([head, *lines])


_KINDS: dict[type, str] = {
    Intervals: "numeric",
    Groups: "categorical",
    Grid: "pair",
    Rules: "tree",
}
