"""The first pass over a scan: kinds and texts of the columns, classes, rows that count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from laconic.data.tables.columns import Kind, Schema, TableReading, shown

MOST_CLASSES = 10_000


@dataclass(frozen=True)
class SeenColumn:
    """What some rows show of a column; ``missing`` and ``filled`` say which cells there are."""

    kind: Kind
    texts: frozenset[str]
    missing: bool
    filled: bool

    def joined(self, other: SeenColumn, name: str) -> SeenColumn:
        if self.filled and other.filled and self._family != other._family:
            raise ValueError(
                f"Column {shown(name)} is {self.kind} in some rows and {other.kind} in others; "
                "convert it to one kind."
            )
        kind = _joined_kind(self, other)
        missing, filled = self.missing or other.missing, self.filled or other.filled
        return SeenColumn(kind, self.texts | other.texts, missing, filled)

    @property
    def _family(self) -> bool:
        return self.kind == "categorical"


def _joined_kind(a: SeenColumn, b: SeenColumn) -> Kind:
    if not a.filled or not b.filled:
        return a.kind if a.filled else b.kind
    if a.kind == b.kind:
        return a.kind
    return "numeric"


@dataclass(frozen=True)
class Survey:
    """What a pass learns; surveys of consecutive rows add up."""

    names: tuple[str, ...]
    columns: tuple[SeenColumn, ...]
    labels: frozenset[Any]
    kept: tuple[int, ...]
    """Rows that count, block by block."""
    reading: TableReading | None = None
    """How the columns were read before they were surveyed."""

    def __add__(self, other: Survey) -> Survey:
        columns = tuple(
            a.joined(b, name)
            for name, a, b in zip(self.names, self.columns, other.columns, strict=True)
        )
        labels = self.labels | other.labels
        if len(labels) > MOST_CLASSES:
            raise ValueError(
                f"The target has more than {MOST_CLASSES:,} distinct values; it looks like a "
                "number or an identifier: give a column of class labels."
            )
        return Survey(self.names, columns, labels, self.kept + other.kept, self.reading)

    @property
    def n_rows(self) -> int:
        return sum(self.kept)

    @property
    def classes(self) -> NDArray[Any] | None:
        """The labels, sorted; None without a target."""
        if not self.labels:
            return None
        texts = all(isinstance(label, str) for label in self.labels)
        return np.array(sorted(self.labels), dtype=object if texts else None)

    def starts(self) -> tuple[int, ...]:
        """Where each block begins among the rows that count, and the end of the last one."""
        return tuple(int(start) for start in np.cumsum([0, *self.kept]))

    def schema(self) -> Schema:
        kinds: tuple[Kind, ...] = tuple(c.kind if c.filled else "numeric" for c in self.columns)
        categories = tuple(
            tuple(sorted(column.texts)) if kind == "categorical" else None
            for kind, column in zip(kinds, self.columns, strict=True)
        )
        return Schema(self.names, kinds, categories, named=True, reading=self.reading)

    def missing_columns(self) -> list[int]:
        return [j for j, column in enumerate(self.columns) if column.missing]


def survey_rows(
    frame: nw.DataFrame[Any],
    weights: NDArray[np.float64],
    features: Sequence[str],
    target: str | None,
    block_rows: int,
    reading: TableReading | None = None,
) -> Survey:
    """Survey of consecutive rows that begin a block; those without weight do not count."""
    counts = weights > 0
    kept = tuple(
        int(counts[start : start + block_rows].sum()) for start in range(0, len(frame), block_rows)
    )
    if not counts.all():
        frame = frame[np.flatnonzero(counts).tolist()]
    labels: frozenset[Any] = frozenset()
    if target is not None:
        labels = frozenset(np.unique(read_labels(frame[target], target)).tolist())
    rows = frame.select(*features).to_native()
    names = tuple(features) if reading is None else reading.made
    if not len(frame):
        empty = SeenColumn("numeric", frozenset(), missing=False, filled=False)
        return Survey(names, (empty,) * len(names), labels, kept, reading)
    table = Schema.learn(rows if reading is None else reading.apply(rows)).table
    columns = []
    for j, kind in enumerate(table.kinds):
        values = table.column(j)
        gone = values < 0 if kind == "categorical" else np.isnan(values)
        texts = frozenset(table.categories[j] or ())
        columns.append(SeenColumn(kind, texts, bool(gone.any()), not bool(gone.all())))
    return Survey(names, tuple(columns), labels, kept, reading)


def read_weight(frame: nw.DataFrame[Any], name: str | None) -> NDArray[np.float64]:
    if name is None:
        return np.ones(len(frame))
    weight = frame[name].cast(nw.Float64).to_numpy()
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError(
            f"The weight column {shown(name)} must hold numbers >= 0, none missing or infinite."
        )
    return np.array(weight, dtype=np.float64)


def read_labels(column: nw.Series[Any], name: str) -> NDArray[Any]:
    n_missing = int(column.is_null().sum())
    if column.dtype in (nw.Categorical, nw.Enum):
        column = column.cast(nw.String)
    labels = column.to_numpy()
    if labels.dtype.kind == "f":
        n_missing = int(np.isnan(labels).sum())
    if n_missing:
        raise ValueError(
            f"Input y contains NaN: {n_missing} labels of column {shown(name)} are missing; drop "
            "those rows, or give them the weight 0."
        )
    if labels.dtype.kind not in "biufOUST":
        raise ValueError(
            f"The target {shown(name)} holds {column.dtype}; class labels are numbers, truth "
            "values or text."
        )
    return labels.astype(object) if labels.dtype.kind in "UST" else labels


def class_codes(column: nw.Series[Any], classes: NDArray[Any], name: str) -> NDArray[np.int64]:
    labels = read_labels(column, name)
    if labels.dtype.kind == "O":
        known, where = np.unique(labels.astype(str), return_inverse=True)
        place = {label: k for k, label in enumerate(classes)}
        return np.array([place[label] for label in known.tolist()], dtype=np.int64)[where]
    return np.searchsorted(classes, labels).astype(np.int64)
