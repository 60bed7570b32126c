"""What errors cost on each row: the amount of a payment, the price of a bed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from laconic._typing import Floats
from laconic.core.decisions import cost_matrix
from laconic.data.reading.asked import Asked
from laconic.data.reading.column import ColumnReading
from laconic.data.reading.reading import Reading, read_column
from laconic.data.tables.kinds import shown


@dataclass(frozen=True)
class RowCosts:
    """Which column says what a false alarm ("fp") or a miss ("fn") costs, and how it is read.

    >>> costs = RowCosts.learn({"fn": "amount"}, {"amount": ["1.250,00 €", "80,50 €", "9,00 €"]})
    >>> costs.values({"amount": ["2.000,00 €"]})
    {'fn': array([2000.])}
    """

    columns: Mapping[str, ColumnReading]

    @staticmethod
    def learn(columns: Mapping[str, str], X: Any, reading: Reading | None = None) -> RowCosts:
        """From the rows of a fit; ``reading`` says how their columns are read, where it is known.

        A column that holds no numbers is refused.
        """
        known = {} if reading is None else {column.name: column for column in reading.columns}
        found = {}
        for error, name in columns.items():
            own = known.get(name)
            if own is None or own.kind != "number":
                own = Reading.learn({name: X[name]}, Asked(kinds={name: "number"})).columns[0]
            found[error] = own
        return RowCosts(found)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns.values())

    def values(self, X: Any) -> dict[str, Floats]:
        """The costs of some rows; each must be there and at least 0."""
        found = {}
        for error, column in self.columns.items():
            own = np.asarray(read_column(column, X[column.name])[0].values, dtype=np.float64)
            bad = ~(own >= 0)
            if bad.any():
                row = int(np.flatnonzero(bad)[0]) + 1
                what = "missing" if np.isnan(own[row - 1]) else f"{own[row - 1]:g}"
                raise ValueError(
                    f"Column {shown(column.name)} says what errors cost and is {what} in row {row}"
                    f" ({int(bad.sum())} such rows); give an amount of at least 0."
                )
            found[error] = own
        return found

    def matrix(self, X: Any, model: Any) -> Floats:
        """Costs of the rows, n x K x K; what has no column costs as in the model."""
        values = self.values(X)
        place = model.classes_.tolist().index(model.positive_)
        standing = {
            "fp": model.cost_matrix_[1 - place, place], "fn": model.cost_matrix_[place, 1 - place]
        }  # fmt: skip
        n_rows = len(next(iter(values.values())))
        each = {error: np.broadcast_to(cost, n_rows) for error, cost in (standing | values).items()}
        return cost_matrix(each, model.classes_, n_rows=n_rows, positive=model.positive_)

    def to_dict(self) -> dict[str, Any]:
        return {error: column.to_dict() for error, column in self.columns.items()}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> RowCosts:
        if not data or not set(data) <= {"fp", "fn"}:
            raise ValueError("costs of rows are those of fp and fn")
        columns = {error: ColumnReading.from_dict(column) for error, column in data.items()}
        if any(column.kind != "number" for column in columns.values()):
            raise ValueError("costs of rows must be numbers")
        return RowCosts(columns)
