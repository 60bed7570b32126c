"""Labelled rows for the main job: a file read as its columns mean, its classes taken out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats
from laconic.core.decisions import positive_class
from laconic.data.reading.asked import Asked
from laconic.data.reading.look import Look, class_counts, suspicions
from laconic.data.reading.names import DISTINCT_SHARE
from laconic.data.reading.raw import raw_column
from laconic.data.reading.reading import Reading, gather, read_column
from laconic.data.reading.words import PERCENT
from laconic.data.scan.apart import TimeColumn
from laconic.data.tables.columns import Table, shown
from laconic.data.tables.files import Labelled, as_native, read_frame, refuse_unknown, split_target
from laconic.data.tables.text import TextFormat
from laconic.decide.costs import RowCosts
from laconic.decide.estimator import DecisionClassifier
from laconic.export.model_file import load


@dataclass(frozen=True)
class JobRows:
    """A table of numbers and categories, its classes, and how it was read."""

    table: Table
    label: NDArray[np.str_]
    weight: Floats | None = None
    reading: Reading | None = None
    look: Look | None = None
    n_dropped: int = 0
    groups: NDArray[Any] | None = None
    time: Floats | None = None
    grouped_by: str = ""
    row_costs: RowCosts | None = None
    row_costs_values: Mapping[str, Floats] = field(default_factory=dict)
    champion: tuple[str, Floats] | None = None
    """The model in use, and its probabilities of the classes of ``label``, sorted."""

    def notes(self) -> list[str]:
        """What a reader should know before the fit."""
        lines = [] if self.reading is None else self.reading.notes()
        if self.n_dropped:
            one = self.n_dropped == 1
            rows, are = ("1 row", "is") if one else (f"{self.n_dropped:,} rows", "are")
            lines.append(f"{rows} without a class {are} left out")
        suspected = [] if self.look is None else list(self.look.suspicions)
        if self.groups is not None:
            n_groups, name = len(np.unique(self.groups)), shown(self.grouped_by)
            lines.append(
                f"rows with the same {name} ({n_groups:,} different) are held out together; "
                "--group or --no-group changes it"
            )
            suspected = [line for line in suspected if not line.startswith(f"Column {name} has ")]
        return lines + suspected


@dataclass(frozen=True)
class Beside:
    """Columns and models with another use than to learn from.

    ``group``: rows with the same entry are held out together; None lets a column called an id that
    repeats decide, "" groups nothing. ``time``: the last rows are held out, and folds judge what
    comes later. ``costs``: columns by "fp" and "fn". The champion is a model
    file, or a column of probabilities of the positive class.
    """

    weight: str | None = None
    group: str | None = None
    time: str | None = None
    costs: Mapping[str, str] = field(default_factory=dict)
    champion: Path | None = None
    champion_column: str | None = None

    @property
    def not_learned(self) -> tuple[str, ...]:
        return tuple(name for name in (self.group, self.champion_column) if name)


def read_rows(
    data: str | Path,
    target: str,
    text: TextFormat,
    asked: Asked,
    *,
    beside: Beside | None = None,
    positive: str | None = None,
    drop_missing: bool = False,
) -> JobRows:
    """A file with a column of classes, every other column read as it is written."""
    beside = beside or Beside()
    frame = read_frame(data, text, doubts=True, needs=target)
    rows = split_target(frame, target, weight=beside.weight, drop_missing=drop_missing)
    names = list(rows.X) if isinstance(rows.X, dict) else list(rows.X.columns)
    named = () if beside.time is None else (beside.time,)
    for name in (*beside.not_learned, *beside.costs.values(), *named):
        refuse_unknown(name, names)
    more = tuple(name for name in beside.not_learned if name not in asked.drop)
    found = look_at(rows, replace(asked, drop=(*asked.drop, *more)))
    table = found.reading.apply(rows.X)
    own = JobRows(table, rows.label, rows.weight, found.reading, found, rows.n_dropped)
    if beside.costs:
        cells = {name: as_native(rows.X[name]) for name in beside.costs.values()}
        costs = RowCosts.learn(beside.costs, cells, found.reading)
        own = replace(own, row_costs=costs, row_costs_values=costs.values(cells))
    if beside.time is not None:
        column = next(c for c in found.reading.columns if c.name == beside.time)
        times = TimeColumn(beside.time, column).values(as_native(rows.X[beside.time]))
        own = replace(own, time=times)
    group = beside.group
    if group is None and beside.time is None:  # rows in time are not kept in groups beside
        group = repeated_id(found.reading, found.evidence)
    if group:
        own = replace(own, groups=_group_codes(rows.X[group], group), grouped_by=group)
    return replace(own, champion=_champion(beside, rows, positive))


def repeated_id(reading: Reading, evidence: Mapping[str, Any]) -> str | None:
    """The first column called an id whose values come again and again."""
    for column in reading.columns:
        own = evidence[column.name]
        if column.kind == "id" and own.n_distinct < DISTINCT_SHARE * own.n_filled:
            return column.name
    return None


def _group_codes(cells: Any, name: str) -> NDArray[np.int64]:
    """One number for each value; a row without a value is a group of its own."""
    raw = raw_column(as_native(cells), name)
    gone = np.asarray(raw.missing)
    codes = np.unique(np.asarray(raw.values), return_inverse=True)[1].astype(np.int64)
    codes[gone] = codes.max(initial=0) + 1 + np.arange(int(gone.sum()))
    return codes


def _champion(beside: Beside, rows: Labelled, positive: str | None) -> tuple[str, Floats] | None:
    """Probabilities of the model in use, for every row and the sorted classes."""
    if beside.champion is None and beside.champion_column is None:
        return None
    classes = np.unique(rows.label)
    if beside.champion is not None:
        if beside.champion.suffix in (".joblib", ".pkl", ".pickle", ".skops"):
            raise ValueError(
                f"--champion {beside.champion}: a pickle runs its author's code when it is loaded, "
                "and is never opened here; write its probabilities into a column and name that "
                "with --champion-column, or give a model.json."
            )
        model = load(beside.champion)
        if [str(own) for own in model.classes_] != classes.tolist():
            raise ValueError(
                f"--champion {beside.champion}: it decides between "
                f"{', '.join(map(str, model.classes_))}, the target has {', '.join(classes)}."
            )
        own = model.estimator_.schema_.apply(rows.X)
        return Path(beside.champion).name, model.predict_proba(own)
    name = beside.champion_column or ""
    known = positive_class(classes, positive)
    if len(classes) != 2 or known is None:
        raise ValueError(
            "--champion-column holds probabilities of the positive one of two classes; say "
            "--positive, or give --champion FILE."
        )
    column = Reading.learn({name: rows.X[name]}, Asked(kinds={name: "number"})).columns[0]
    p = np.asarray(read_column(column, as_native(rows.X[name]))[0].values, dtype=np.float64)
    if column.unit == PERCENT:
        p = p / 100.0
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError(
            f"--champion-column {name}: every cell must be a probability between 0 and 1."
        )
    last = classes[1] == str(known)
    return name, np.column_stack([1.0 - p, p] if last else [p, 1.0 - p])


def rows_for(
    model: DecisionClassifier, data: str | Path, target: str | None, text: TextFormat
) -> tuple[Table, NDArray[Any] | None, Floats | None]:
    """The rows of a file as a model reads them; with a target their classes; what errors cost on
    each of them, where the model says by which column."""
    schema, by_row = model.estimator_.schema_, getattr(model, "row_costs_", None)
    frame = read_frame(data, text, doubts=schema.reading is not None, needs=target)
    if target is None:
        return schema.apply(frame), None, None
    rows, costs = split_target(frame, target), None
    if by_row is not None:
        names = list(rows.X) if isinstance(rows.X, dict) else list(rows.X.columns)
        for name in by_row.names:
            refuse_unknown(name, names)
        costs = by_row.matrix({name: as_native(rows.X[name]) for name in by_row.names}, model)
    return schema.apply(rows.X), rows.label.astype(model.classes_.dtype), costs


def look_at_file(data: str | Path, target: str | None, text: TextFormat, asked: Asked) -> Look:
    """What ``laconic look`` says of a file; with a target, suspicions about it too."""
    frame = read_frame(data, text, doubts=True, needs=target)
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
    found = tuple(suspicions(reading, evidence, table, labels))
    return Look(reading, evidence, len(rows.label), found, class_counts(labels), rows.n_dropped)
