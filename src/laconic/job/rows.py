"""Labelled rows for the main job: a file read as its columns mean, its classes taken out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats
from laconic.data.reading.asked import Asked
from laconic.data.reading.look import Look, suspicions
from laconic.data.reading.reading import Reading, gather
from laconic.data.tables.columns import Table
from laconic.data.tables.files import Labelled, read_frame, split_target
from laconic.data.tables.text import TextFormat
from laconic.decide.estimator import DecisionClassifier


@dataclass(frozen=True)
class JobRows:
    """A table of numbers and categories, its classes, and how it was read."""

    table: Table
    label: NDArray[np.str_]
    weight: Floats | None = None
    reading: Reading | None = None
    look: Look | None = None
    n_dropped: int = 0

    def notes(self) -> list[str]:
        """What a reader should know before the fit."""
        lines = [] if self.reading is None else self.reading.notes()
        if self.n_dropped:
            lines.append(f"{self.n_dropped:,} rows without a class are left out")
        return lines + ([] if self.look is None else list(self.look.suspicions))


def read_rows(
    data: str | Path,
    target: str,
    text: TextFormat,
    asked: Asked,
    *,
    weight: str | None = None,
    drop_missing: bool = False,
) -> JobRows:
    """A file with a column of classes, every other column read as it is written."""
    frame = read_frame(data, text, doubts=True)
    rows = split_target(frame, target, weight=weight, drop_missing=drop_missing)
    found = look_at(rows, asked)
    return JobRows(
        found.reading.apply(rows.X), rows.label, rows.weight, found.reading, found, rows.n_dropped
    )


def rows_for(
    model: DecisionClassifier, data: str | Path, target: str | None, text: TextFormat
) -> tuple[Table, NDArray[Any] | None]:
    """The rows of a file as a model reads them and, with a target, their classes."""
    schema = model.estimator_.schema_
    frame = read_frame(data, text, doubts=schema.reading is not None)
    if target is None:
        return schema.apply(frame), None
    rows = split_target(frame, target)
    return schema.apply(rows.X), rows.label.astype(model.classes_.dtype)


def look_at_file(data: str | Path, target: str | None, text: TextFormat, asked: Asked) -> Look:
    """What ``laconic look`` says of a file; with a target, suspicions about it too."""
    frame = read_frame(data, text, doubts=True)
    if target is not None:
        return look_at(split_target(frame, target, drop_missing=True), asked)
    evidence = gather(frame, asked.missing)
    reading = Reading.decide(evidence, asked)
    table = reading.apply(frame) if reading.inputs else None
    found = suspicions(reading, evidence, table, None)
    return Look(reading, evidence, next(iter(evidence.values())).n_rows, tuple(found))


def look_at(rows: Labelled, asked: Asked) -> Look:
    evidence = gather(rows.X, asked.missing)
    reading = Reading.decide(evidence, asked)
    labels = np.unique(rows.label, return_inverse=True)
    table = reading.apply(rows.X) if reading.inputs else None
    found = suspicions(reading, evidence, table, labels)
    return Look(reading, evidence, len(rows.label), tuple(found))
