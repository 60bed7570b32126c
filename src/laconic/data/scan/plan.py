"""What it takes to read a run of blocks anywhere, and rows drawn by their number.

Block k is rows 65,536 k to 65,536 (k + 1) of the rows that were given, whatever the files they
lie in and whoever reads them: a plan travels to the workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.data.reading.evidence import Evidence
from laconic.data.reading.reading import gather
from laconic.data.row_keys import number_draws
from laconic.data.scan.apart import GroupDraw, NumberDraw, TimeColumn, TimeDraw, group_keys
from laconic.data.scan.block_cache import cache_of
from laconic.data.scan.survey import Survey, class_codes, read_weight, survey_rows
from laconic.data.source import RUN_BLOCKS, Block, LateBlock, Source, one_blas_thread, ordered_sum
from laconic.data.tables.columns import Schema, Table, TableReading


@dataclass(frozen=True)
class HeldRows:
    """A share of the rows that were given, drawn by their number, group or time."""

    share: float
    draw: NumberDraw | GroupDraw | TimeDraw
    after: float = 0.0
    """Rows drawn below are held out already, for something else."""

    def among(self, frame: nw.DataFrame[Any], start: int) -> NDArray[np.bool_]:
        drawn = self.draw.of(frame, start)
        return np.asarray((drawn >= self.after) & (drawn < self.share))


@dataclass(frozen=True)
class Sample:
    """Rows in memory: their table, class codes, and weights that stand for the whole.

    ``beside`` holds a key of the group and the time of each row, where the scan names their column.
    """

    table: Table
    y: Ints
    weight: Floats
    beside: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.y)


def draw_sample(source: Source, empty: Table, n_classes: int, n_rows: int, seed: int) -> Sample:
    """About ``n_rows`` rows of a source of tables, the rare classes in larger shares.

    Each of the K classes is drawn at a rate that leaves it about ``n_rows / 2K`` rows when it has
    them, or at the common rate when that gives more; the weights undo it, and add up to what as
    many rows drawn alike would weigh.
    """

    def count(block: Block) -> tuple[Ints, float]:
        assert block.y is not None
        assert block.weight is not None
        return np.bincount(block.y, minlength=n_classes), float(block.weight.sum())

    counts, total = source.sum(count, [])
    floor = n_rows / (2.0 * n_classes)
    with np.errstate(divide="ignore"):
        rates = np.minimum(1.0, np.maximum(n_rows / counts.sum(), floor / counts))

    def one(block: Block) -> tuple[list[NDArray[Any]], Ints, Floats, dict[str, NDArray[Any]]]:
        assert block.y is not None
        assert block.weight is not None
        drawn = number_draws(block.start, block.stop, seed) < rates[block.y]
        rows = np.flatnonzero(drawn)
        table, y = block.X[rows], block.y[rows]
        cells = [table.column(j) for j in range(len(table.names))]
        beside = {name: own[rows] for name, own in block.beside.items()}
        return cells, y, block.weight[rows] / rates[y], beside

    parts = list(source.map(one))
    y = np.concatenate([part[1] for part in parts])
    weight = np.concatenate([part[2] for part in parts])
    weight *= total * len(y) / (counts.sum() * weight.sum())
    columns = [np.concatenate([part[0][j] for part in parts]) for j in range(len(empty.names))]
    beside = {name: np.concatenate([part[3][name] for part in parts]) for name in parts[0][3]}
    return Sample(Table(empty.names, empty.kinds, empty.categories, columns), y, weight, beside)


class Rows(Protocol):
    """Rows by number: what a worker needs to read its blocks."""

    @property
    def n_rows(self) -> int: ...

    @property
    def columns(self) -> tuple[str, ...]: ...

    def read(self, start: int, stop: int, columns: Sequence[str]) -> Any: ...


@dataclass(frozen=True)
class FrameRows:
    """Rows of a frame in memory."""

    frame: nw.DataFrame[Any]

    @property
    def n_rows(self) -> int:
        return len(self.frame)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.frame.columns)

    def read(self, start: int, stop: int, columns: Sequence[str]) -> Any:
        return self.frame.select(*columns)[start:stop].to_native()


@dataclass(frozen=True)
class Plan:
    """Everything needed to read a run of blocks anywhere; it travels to the workers."""

    rows: Rows
    features: tuple[str, ...]
    target: str | None
    weight: str | None
    block_rows: int
    cache_bytes: int
    token: str
    schema: Schema | None = None
    classes: NDArray[Any] | None = None
    starts: tuple[int, ...] | None = None
    """Where each block begins among the rows that count (those with a positive weight)."""
    held: HeldRows | None = None
    """Rows that are kept out of every pass, as if their weight were zero."""
    reading: TableReading | None = None
    """How the columns are read before any pass; ``schema`` is then that of what comes out."""
    group: str | None = None
    """Rows with the same entry of this column belong together."""
    time: TimeColumn | None = None

    @property
    def roles(self) -> tuple[str, ...]:
        """Columns that every reading of rows takes beside the features."""
        held = () if self.held is None else self.held.draw.columns
        named = (self.target, self.weight, *held)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    def with_roles(self, columns: Sequence[str]) -> list[str]:
        return list(dict.fromkeys([*columns, *self.roles]))

    @property
    def n_blocks(self) -> int:
        return -(-self.rows.n_rows // self.block_rows)

    @property
    def n_runs(self) -> int:
        return -(-self.n_blocks // RUN_BLOCKS)

    def span(self, run: int) -> tuple[int, int]:
        """First and last row of a run."""
        step = RUN_BLOCKS * self.block_rows
        return run * step, min((run + 1) * step, self.rows.n_rows)

    def survey(self, run: int) -> Survey:
        start, stop = self.span(run)
        read = self.rows.read(start, stop, self.with_roles(self.features))
        frame = nw.from_native(read, eager_only=True)
        weights = self._weights(frame, start)
        return survey_rows(
            frame, weights, self.features, self.target, self.block_rows, self.reading
        )

    def _weights(self, frame: nw.DataFrame[Any], start: int) -> NDArray[np.float64]:
        weights = read_weight(frame, self.weight)
        if self.held is not None:
            weights[self.held.among(frame, start)] = 0.0
        return weights

    def read_beside(self, run: int) -> dict[str, NDArray[Any]]:
        """Keys of groups and times of the rows of a run that count."""
        own = {} if self.group is None else {"groups": self.group}
        if self.time is not None:
            own["time"] = self.time.name
        if not own:
            return {}
        start, stop = self.span(run)
        read = self.rows.read(start, stop, self.with_roles(tuple(own.values())))
        frame = nw.from_native(read, eager_only=True)
        kept = self._weights(frame, start) > 0
        found: dict[str, NDArray[Any]] = {}
        if self.group is not None:
            found["groups"] = group_keys(frame[self.group], start)[kept]
        if self.time is not None:
            found["time"] = self.time.values(frame[self.time.name])[kept]
        return found

    def blocks(self, run: int, columns: Sequence[int] | None) -> Iterator[Block]:
        """The blocks of a run; their rows are read, together, when one of them is asked for."""
        assert self.starts is not None
        cache = cache_of(self.token, self.cache_bytes)
        table = _RunTable(self, run, None if columns is None else tuple(columns))
        first = run * RUN_BLOCKS
        for index in range(first, min(first + RUN_BLOCKS, self.n_blocks)):
            start, stop = self.starts[index], self.starts[index + 1]
            if stop > start:
                here = slice(start - self.starts[first], stop - self.starts[first])
                reads = table.reader(here), table.reader_beside(here)
                yield LateBlock(index, start, stop, *reads, cache.memo(index))

    def read_table(
        self, run: int, columns: tuple[int, ...] | None
    ) -> tuple[Table, NDArray[np.int64] | None, NDArray[np.float64]]:
        """The rows of a run that count, encoded by the schema."""
        assert self.schema is not None
        schema = self.schema if columns is None else _some(self.schema, columns)
        reading = None if self.reading is None else self.reading.only(schema.names)
        columns_read = schema.names if reading is None else reading.inputs
        names = self.with_roles(columns_read)
        if not names:
            raise ValueError("Nothing to read: no column, no target and no weight.")
        span = self.span(run)
        frame = nw.from_native(self.rows.read(*span, names), eager_only=True)
        weight = self._weights(frame, span[0])
        if not (weight > 0).all():
            kept = np.flatnonzero(weight)
            frame, weight = frame[kept.tolist()], weight[kept]
        y = None
        if self.target is not None and self.classes is not None:
            y = class_codes(frame[self.target], self.classes, self.target)
        if not schema.names:  # labels and weights alone
            return schema.empty_table(), y, weight
        rows = frame.select(*columns_read).to_native()
        return schema.apply(rows if reading is None else reading.apply(rows)), y, weight


class _RunTable:
    """The table of a run, read once, whichever of its blocks comes first."""

    def __init__(self, plan: Plan, run: int, columns: tuple[int, ...] | None) -> None:
        self._plan, self._run, self._columns = plan, run, columns

    @cached_property
    def _read(self) -> tuple[Table, NDArray[np.int64] | None, NDArray[np.float64]]:
        return self._plan.read_table(self._run, self._columns)

    @cached_property
    def _beside(self) -> dict[str, NDArray[Any]]:
        return self._plan.read_beside(self._run)

    def reader(self, rows: slice) -> Callable[[], tuple[Any, Any, Any]]:
        def read() -> tuple[Any, Any, Any]:
            table, y, weight = self._read
            return table[rows], None if y is None else y[rows], weight[rows]

        return read

    def reader_beside(self, rows: slice) -> Callable[[], dict[str, NDArray[Any]]]:
        return lambda: {name: own[rows] for name, own in self._beside.items()}


@dataclass(frozen=True)
class SumRun:
    """Sum over the blocks of a run, None when no row of it counts."""

    plan: Plan
    f: Callable[[Block], Any]
    columns: Sequence[int] | None

    def __call__(self, run: int) -> Any:
        blocks = list(self.plan.blocks(run, self.columns))
        with one_blas_thread():
            return ordered_sum(map(self.f, blocks)) if blocks else None


@dataclass(frozen=True)
class MapRun:
    """One result per block of a run."""

    plan: Plan
    f: Callable[[Block], Any]
    columns: Sequence[int] | None

    def __call__(self, run: int) -> list[Any]:
        with one_blas_thread():
            return [self.f(block) for block in self.plan.blocks(run, self.columns)]


@dataclass(frozen=True)
class GatherRun:
    """What the columns of a run show of their kinds, before any reading."""

    plan: Plan
    missing: tuple[str, ...]

    def __call__(self, run: int) -> dict[str, Evidence]:
        frame = self.plan.rows.read(*self.plan.span(run), self.plan.features)
        return gather(frame, self.missing)


@dataclass(frozen=True)
class RawRun:
    """One result per block of the rows as they were given, before any schema."""

    plan: Plan
    f: Callable[[Any], Any]
    columns: tuple[str, ...]

    def __call__(self, run: int) -> list[Any]:
        start, stop = self.plan.span(run)
        frame = self.plan.rows.read(start, stop, self.columns)
        step = self.plan.block_rows
        return [self.f(frame[a : a + step]) for a in range(0, stop - start, step)]


@dataclass(frozen=True)
class HeldRun:
    """The rows of a run that are held out, as they were given."""

    plan: Plan
    held: HeldRows
    columns: tuple[str, ...]

    def __call__(self, run: int) -> Any:
        span = self.plan.span(run)
        names = list(dict.fromkeys([*self.columns, *self.held.draw.columns]))
        frame = nw.from_native(self.plan.rows.read(*span, names), eager_only=True)
        rows = np.flatnonzero(self.held.among(frame, span[0]))
        return frame.select(*self.columns)[rows.tolist()].to_native()


def _some(schema: Schema, columns: Sequence[int]) -> Schema:
    return Schema(
        tuple(schema.names[j] for j in columns),
        tuple(schema.kinds[j] for j in columns),
        tuple(schema.categories[j] for j in columns),
        schema.named,
    )
