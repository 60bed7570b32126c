"""Rows that do not fit in memory, or on one machine: the same verb, the same bytes.

Block k is rows 65,536 k to 65,536 (k + 1) of the rows that were given, whatever the files they
lie in and whoever reads them. Runs of eight blocks are read and summed together, here or on a
worker, and the runs are added in order: the result depends on the rows alone.
"""

from __future__ import annotations

import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from laconic.data.block_cache import CACHE_BYTES, cache_of, forget
from laconic.data.columns import Schema, Table, shown
from laconic.data.scan_files import file_rows, find_files, spooled_rows
from laconic.data.source import BLOCK_ROWS, RUN_BLOCKS, Block, LateBlock, ordered_sum
from laconic.data.survey import Survey, class_codes, read_weight, survey_rows
from laconic.data.threads import one_blas_thread


class Rows(Protocol):
    """Rows by number: what a worker needs to read its blocks."""

    @property
    def n_rows(self) -> int: ...

    @property
    def columns(self) -> tuple[str, ...]: ...

    def read(self, start: int, stop: int, columns: Sequence[str]) -> Any: ...


class Engine(Protocol):
    """Who does the runs: results come in the order of the runs."""

    def over(self, n_runs: int, task: Callable[[int], Any]) -> Iterator[Any]: ...


class Here:
    """This process, one run after the other."""

    def over(self, n_runs: int, task: Callable[[int], Any]) -> Iterator[Any]:
        return map(task, range(n_runs))


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
        names = [*self.features, *(n for n in (self.target, self.weight) if n is not None)]
        frame = nw.from_native(self.rows.read(start, stop, names), eager_only=True)
        return survey_rows(frame, self.features, self.target, self.weight, self.block_rows)

    def blocks(self, run: int, columns: Sequence[int] | None) -> Iterator[Block]:
        """The blocks of a run; their rows are read, together, when one of them is asked for."""
        assert self.starts is not None
        cache = cache_of(self.token, self.cache_bytes)
        table = _RunTable(self, run, None if columns is None else tuple(columns))
        first = run * RUN_BLOCKS
        for index in range(first, min(first + RUN_BLOCKS, self.n_blocks)):
            start, stop = self.starts[index], self.starts[index + 1]
            if stop > start:
                read = table.reader(start - self.starts[first], stop - self.starts[first])
                yield LateBlock(index, start, stop, read, cache.memo(index))

    def read_table(
        self, run: int, columns: tuple[int, ...] | None
    ) -> tuple[Table, NDArray[np.int64] | None, NDArray[np.float64]]:
        """The rows of a run that count, encoded by the schema."""
        assert self.schema is not None
        schema = self.schema if columns is None else _some(self.schema, columns)
        names = [*schema.names, *(n for n in (self.target, self.weight) if n is not None)]
        if not names:
            raise ValueError("Nothing to read: no column, no target and no weight.")
        frame = nw.from_native(self.rows.read(*self.span(run), names), eager_only=True)
        weight = read_weight(frame, self.weight)
        if not (weight > 0).all():
            kept = np.flatnonzero(weight)
            frame, weight = frame[kept.tolist()], weight[kept]
        y = None
        if self.target is not None and self.classes is not None:
            y = class_codes(frame[self.target], self.classes, self.target)
        if not schema.names:  # labels and weights alone
            return schema.empty_table(), y, weight
        return schema.apply(frame.select(*schema.names).to_native()), y, weight


class _RunTable:
    """The table of a run, read once, whichever of its blocks comes first."""

    def __init__(self, plan: Plan, run: int, columns: tuple[int, ...] | None) -> None:
        self._plan, self._run, self._columns = plan, run, columns

    @cached_property
    def _read(self) -> tuple[Table, NDArray[np.int64] | None, NDArray[np.float64]]:
        return self._plan.read_table(self._run, self._columns)

    def reader(self, start: int, stop: int) -> Callable[[], tuple[Any, Any, Any]]:
        def read() -> tuple[Any, Any, Any]:
            table, y, weight = self._read
            rows = slice(start, stop)
            return table[rows], None if y is None else y[rows], weight[rows]

        return read


@dataclass(frozen=True)
class _SumRun:
    """Sum over the blocks of a run, None when no row of it counts."""

    plan: Plan
    f: Callable[[Block], Any]
    columns: Sequence[int] | None

    def __call__(self, run: int) -> Any:
        blocks = list(self.plan.blocks(run, self.columns))
        with one_blas_thread():
            return ordered_sum(map(self.f, blocks)) if blocks else None


@dataclass(frozen=True)
class _MapRun:
    """One result per block of a run."""

    plan: Plan
    f: Callable[[Block], Any]
    columns: Sequence[int] | None

    def __call__(self, run: int) -> list[Any]:
        with one_blas_thread():
            return [self.f(block) for block in self.plan.blocks(run, self.columns)]


@dataclass(frozen=True)
class _RawRun:
    """One result per block of the rows as they were given, before any schema."""

    plan: Plan
    f: Callable[[Any], Any]
    columns: tuple[str, ...]

    def __call__(self, run: int) -> list[Any]:
        start, stop = self.plan.span(run)
        frame = self.plan.rows.read(start, stop, self.columns)
        step = self.plan.block_rows
        return [self.f(frame[a : a + step]) for a in range(0, stop - start, step)]


class Scan:
    """Rows in files, in a lazy frame or in memory, read block by block. Made by :func:`scan`.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns used as features.
    target : str or None
    n_given : int
        Rows, those of zero weight included.
    on_run : callable or None
        Called with (pass, runs done, runs of a pass) as the work proceeds.
    n_passes : int
        Passes made so far.
    """

    def __init__(self, plan: Plan, engine: Engine) -> None:
        self._plan = plan
        self._engine = engine
        self.on_run: Callable[[int, int, int], None] | None = None
        self.n_passes = 0
        weakref.finalize(self, forget, plan.token)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} of {self.n_given:,} rows x {len(self.columns)} columns, "
            f"target {self.target!r}>"
        )

    @property
    def columns(self) -> tuple[str, ...]:
        return self._plan.features

    @property
    def target(self) -> str | None:
        return self._plan.target

    @property
    def n_given(self) -> int:
        return self._plan.rows.n_rows

    @cached_property
    def survey(self) -> Survey:
        """Kinds and texts of the columns, classes, and rows that count: one pass."""
        found: Survey = ordered_sum(self._over(self._plan.survey))
        if not found.n_rows:
            raise ValueError("Sample weights must contain at least one non-zero number.")
        return found

    @cached_property
    def _encoded(self) -> Plan:
        known = self.survey
        return replace(
            self._plan, schema=known.schema(), classes=known.classes, starts=known.starts()
        )

    @property
    def n_rows(self) -> int:
        """Rows that count: those with a positive weight."""
        return self.survey.n_rows

    def class_weights(self) -> NDArray[np.float64]:
        """Weight of each class."""
        n_classes = len(self.survey.labels)
        weights: NDArray[np.float64] = self.sum(lambda block: _class_weights(block, n_classes), [])
        return weights

    def sum(self, f: Callable[[Block], Any], columns: Sequence[int] | None = None) -> Any:
        """Sum of ``f(block)``, the same bytes whoever does the runs."""
        parts = self._over(_SumRun(self._encoded, f, columns))
        return ordered_sum(part for part in parts if part is not None)

    def map(self, f: Callable[[Block], Any], columns: Sequence[int] | None = None) -> Iterator[Any]:
        """One result per block, in block order."""
        for part in self._over(_MapRun(self._encoded, f, columns)):
            yield from part

    def map_given(self, f: Callable[[Any], Any], columns: Sequence[str]) -> Iterator[Any]:
        """``f`` of frames of at most ``block_rows`` rows, as given: all rows, no target needed."""
        for part in self._over(_RawRun(self._plan, f, tuple(columns))):
            yield from part

    def _over(self, task: Callable[[int], Any]) -> Iterator[Any]:
        self.n_passes += 1
        number, n_runs = self.n_passes, self._plan.n_runs
        for done, part in enumerate(self._engine.over(n_runs, task), start=1):
            if self.on_run is not None:
                self.on_run(number, done, n_runs)
            yield part


def _class_weights(block: Block, n_classes: int) -> NDArray[np.float64]:
    assert block.y is not None
    weights = np.bincount(block.y, weights=block.weight, minlength=n_classes)
    return np.asarray(weights, dtype=np.float64)


def scan(
    source: Any,
    target: str | None = None,
    *,
    weight: str | None = None,
    features: Sequence[str] | None = None,
    cluster: Any = None,
    block_rows: int = BLOCK_ROWS,
    cache_bytes: int = CACHE_BYTES,
) -> Scan:
    """Rows to fit on or to predict, without reading them into memory.

    Parameters
    ----------
    source : path, glob, folder, list of them, lazy frame or frame
        Parquet and Arrow files are read where they lie. CSV files and lazy frames (polars, or any
        that narwhals knows, as a DuckDB relation) are run once into temporary Parquet.
    target : str, optional
        The column of class labels; needed to fit.
    weight : str, optional
        The column of sample weights; rows of zero weight do not count.
    features : list of str, optional
        The columns to use, all others by default.
    cluster : dask.distributed.Client or str, optional
        Do the passes on the workers of this client, or of the scheduler at this address. The files
        must be readable by every worker under the same path.
    block_rows : int, default=65536
        Rows of a block. The blocks are part of the result, to rounding: change it for tests only.
    cache_bytes : int, default=2**29
        Memory that a process may use to keep encoded blocks between passes; the rest goes to a
        temporary folder.

    Returns
    -------
    Scan
        What ``fit``, ``predict`` and ``predict_proba`` take in place of X.

    Examples
    --------
    >>> import numpy as np
    >>> from laconic import WeightedNaiveBayes, scan
    >>> amount = np.arange(2000.0) % 97
    >>> rows = scan({"amount": amount, "large": amount > 60}, target="large")
    >>> rows
    <Scan of 2,000 rows x 1 columns, target 'large'>
    >>> model = WeightedNaiveBayes().fit(rows)
    >>> [len(labels) for labels in model.predict(rows)]
    [2000]
    """
    shared = cluster is not None
    rows = _rows(source, RUN_BLOCKS * block_rows, shared=shared)
    known = rows.columns
    for role, name in (("target", target), ("weight", weight)):
        if name is not None and name not in known:
            raise ValueError(
                f"{role}={shown(name)} is not a column of the rows, which have "
                f"{', '.join(shown(c) for c in known[:8])}{', ...' if len(known) > 8 else ''}."
            )
    chosen = tuple(c for c in known if c not in (target, weight))
    if features is not None:
        absent = [c for c in features if c not in chosen]
        if absent:
            raise ValueError(
                f"features names {shown(absent[0])}, which is not a column of the rows or is the "
                "target or the weight."
            )
        chosen = tuple(features)
    if not chosen:
        raise ValueError("No column is left to learn from besides the target and the weight.")
    if rows.n_rows == 0:
        raise ValueError(f"{source!r} has no rows.")
    plan = Plan(rows, chosen, target, weight, block_rows, cache_bytes, uuid.uuid4().hex)
    return Scan(plan, _engine(cluster))


def _engine(cluster: Any) -> Engine:
    if cluster is None:
        return Here()
    from laconic.data.cluster import Cluster

    return Cluster.of(cluster)


def _rows(source: Any, group_rows: int, *, shared: bool) -> Rows:
    if isinstance(source, str | Path) or (
        isinstance(source, list | tuple)
        and source
        and all(isinstance(item, str | Path) for item in source)
    ):
        return file_rows(find_files(source), group_rows, shared=shared)
    if shared:
        raise ValueError(
            f"A cluster reads files, and {type(source).__name__} lies in this process; write it "
            "to Parquet where every worker can read it, and scan that."
        )
    if isinstance(source, dict):
        return FrameRows(nw.from_native(_frame_of(source), eager_only=True))
    frame = nw.from_native(source, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return FrameRows(frame)
    if isinstance(frame, nw.LazyFrame):
        native = frame.to_native()
        polars_frame = type(native).__module__.startswith("polars")
        return spooled_rows(native if polars_frame else frame, group_rows)
    raise TypeError(
        f"scan reads files, lazy frames and frames, not {type(source).__name__}; arrays in memory "
        "go to fit directly."
    )


def _frame_of(columns: dict[str, Any]) -> Any:
    from laconic.data.scan_files import polars

    return polars().DataFrame(columns)


def _some(schema: Schema, columns: Sequence[int]) -> Schema:
    return Schema(
        tuple(schema.names[j] for j in columns),
        tuple(schema.kinds[j] for j in columns),
        tuple(schema.categories[j] for j in columns),
        schema.named,
    )
