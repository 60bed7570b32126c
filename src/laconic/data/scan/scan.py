"""Rows that do not fit in memory, or on one machine: the same verb, the same bytes.

Runs of eight blocks (:mod:`laconic.data.scan.plan`) are read and summed together, here or on a
worker, and the runs are added in order: the result depends on the rows alone.
"""

from __future__ import annotations

import uuid
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import narwhals as nw
import numpy as np
from joblib import effective_n_jobs  # type: ignore[import-untyped]
from numpy.typing import NDArray

from laconic._typing import Ints
from laconic.data.reading.asked import Asked
from laconic.data.reading.evidence import Evidence
from laconic.data.reading.raw import raw_column
from laconic.data.reading.reading import Reading
from laconic.data.scan.apart import (
    MOST_GROUPS,
    GroupDraw,
    NumberDraw,
    TimeColumn,
    TimeDraw,
    group_keys,
)
from laconic.data.scan.block_cache import CACHE_BYTES, forget
from laconic.data.scan.files import file_rows, find_files, spooled_rows
from laconic.data.scan.plan import (
    FrameRows,
    GatherRun,
    HeldRows,
    HeldRun,
    MapRun,
    Plan,
    RawRun,
    Rows,
    Sample,
    SumRun,
    draw_sample,
)
from laconic.data.scan.survey import Survey, read_labels, read_weight
from laconic.data.source import BLOCK_ROWS, RUN_BLOCKS, Block, ordered_sum
from laconic.data.tables.columns import TableReading, shown
from laconic.data.tables.text import TextFormat
from laconic.data.value_tables import value_pile

MOST_TIMES = 2**15
"""Different times that are kept apart when the last rows are held out."""


class Engine(Protocol):
    """Who does the runs: results come in the order of the runs."""

    def over(self, n_runs: int, task: Callable[[int], Any]) -> Iterator[Any]: ...

    def close(self, token: str) -> None:
        """Forget what is kept of the blocks of a scan, and what was opened for it."""
        ...


@dataclass(frozen=True)
class Here:
    """This process, ``n_jobs`` runs side by side, one of which may be reading; results in order."""

    n_jobs: int = 1

    def over(self, n_runs: int, task: Callable[[int], Any]) -> Iterator[Any]:
        if self.n_jobs == 1 or n_runs == 1:
            return map(task, range(n_runs))
        return self._side_by_side(n_runs, task)

    def _side_by_side(self, n_runs: int, task: Callable[[int], Any]) -> Iterator[Any]:
        waiting: deque[Any] = deque()
        with ThreadPoolExecutor(self.n_jobs) as pool:
            try:
                for run in range(n_runs):
                    waiting.append(pool.submit(task, run))
                    if len(waiting) > self.n_jobs:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:  # an error, or a caller who stops half-way: nothing more is begun
                for future in waiting:
                    future.cancel()

    def close(self, token: str) -> None:
        forget(token)


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

    def close(self) -> None:
        """Forget the blocks kept in this process, and leave a cluster that an address opened."""
        self._engine.close(self._plan.token)

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
    def apart(self) -> tuple[str, ...]:
        """What blocks hold beside their rows: "groups", "time"."""
        known = (("groups", self._plan.group), ("time", self._plan.time))
        return tuple(name for name, own in known if own is not None)

    @property
    def reading(self) -> TableReading | None:
        """How the columns are read, after :meth:`read_by`."""
        return self._plan.reading

    def look(self, asked: Asked | None = None) -> Reading:
        """Find out in one pass what the columns mean, as :func:`laconic.look` does of a frame."""
        asked = asked or Asked()
        return Reading.decide(self.gather(asked), asked)

    def gather(self, asked: Asked) -> dict[str, Evidence]:
        """What the columns show of their kinds, in one pass."""
        total = {name: Evidence(0, 0) for name in self.columns}
        for part in self._over(GatherRun(self._plan, asked.missing)):
            for name, own in part.items():
                try:
                    total[name] = total[name] + own
                except ValueError as error:
                    raise ValueError(f"Column {shown(name)} {error}; convert it.") from error
        return total

    def read_by(self, reading: TableReading) -> Scan:
        """The same rows, their columns read by ``reading`` before every pass."""
        time = self._plan.time
        if time is not None and isinstance(reading, Reading):
            known = next((own for own in reading.columns if own.name == time.name), time.reading)
            time = replace(time, reading=known)
        plan = replace(
            self._plan,
            reading=reading,
            features=reading.inputs,
            time=time,
            token=uuid.uuid4().hex,
        )
        return self._again(plan)

    def grouped(self, name: str) -> Scan:
        """The same rows, those with the same entry of a column together; it is no feature."""
        features = tuple(column for column in self.columns if column != name)
        return self._again(
            replace(self._plan, group=name, features=features, token=uuid.uuid4().hex)
        )

    def _again(self, plan: Plan) -> Scan:
        """A scan by another plan, which goes on telling and counting the passes."""
        other = Scan(plan, self._engine)
        other.on_run, other.n_passes = self.on_run, self.n_passes
        return other

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
        parts = self._over(SumRun(self._encoded, f, columns))
        return ordered_sum(part for part in parts if part is not None)

    def map(self, f: Callable[[Block], Any], columns: Sequence[int] | None = None) -> Iterator[Any]:
        """One result per block, in block order."""
        for part in self._over(MapRun(self._encoded, f, columns)):
            yield from part

    def map_given(self, f: Callable[[Any], Any], columns: Sequence[str]) -> Iterator[Any]:
        """``f`` of frames of at most ``block_rows`` rows, as given: all rows, no target needed."""
        for part in self._over(RawRun(self._plan, f, tuple(columns))):
            yield from part

    def given_blocks(self) -> Iterator[tuple[Any, NDArray[Any], NDArray[np.float64] | None]]:
        """Frame, labels and weights of one block after the other, as given; empty ones left out."""
        assert self.target is not None
        weight = self._plan.weight
        names = [*self.columns, self.target, *([] if weight is None else [weight])]
        for part in self.map_given(_itself, names):
            frame = nw.from_native(part, eager_only=True)
            weights = None if weight is None else read_weight(frame, weight)
            if weights is not None and not weights.any():
                continue
            labels = read_labels(frame[self.target], self.target)
            yield frame.select(*self.columns).to_native(), labels, weights

    def sample(self, n_rows: int, seed: int = 0) -> Sample:
        """About ``n_rows`` rows in memory, the rare classes in larger shares: two passes."""
        known = self.survey
        if known.classes is None:
            raise ValueError("A sample by class needs labels: name their column in scan(target=).")
        empty = known.schema().empty_table()
        return draw_sample(self, empty, len(known.classes), n_rows, seed)

    def hold_out(self, share: float, seed: int = 0) -> tuple[Scan, Any]:
        """A scan of the other rows, and a frame of ``share`` of the rows: one pass.

        The rows are drawn by their number, so that any worker draws the same ones; with
        ``scan(group=)`` those of a group together, with ``scan(time=)`` the last ones, both after
        one more pass. Rows that were held out before stay out, and the share is one of the others.
        """
        before = self._plan.held
        if before is None:
            held = HeldRows(share, self._draw(seed))
        else:
            reach = before.share + share * (1.0 - before.share)
            held = HeldRows(reach, before.draw, before.share)
        beside = self._plan.group, None if self._plan.time is None else self._plan.time.name
        own = self.target, self._plan.weight, *beside
        names = dict.fromkeys([*self.columns, *(name for name in own if name is not None)])
        parts = list(self._over(HeldRun(self._plan, held, tuple(names))))
        out = replace(held, after=0.0)
        plan = replace(self._plan, held=out, token=uuid.uuid4().hex)
        return self._again(plan), nw.concat(
            [nw.from_native(part, eager_only=True) for part in parts]
        ).to_native()

    def _draw(self, seed: int) -> NumberDraw | GroupDraw | TimeDraw:
        """Who is held out with whom; with groups or times one pass counts their rows."""
        time, group = self._plan.time, self._plan.group
        if time is not None:
            pile = ordered_sum(self.map_given(_Times(time), [time.name]))
            table = pile.table()
            up_to = np.cumsum(table.weights.sum(axis=1))
            return TimeDraw(time, table.values, 1.0 - up_to / up_to[-1])
        if group is None:
            return NumberDraw(seed)
        counts: Counter[int] | None = Counter()
        for own in self.map_given(_GroupCounts(group), [group]):
            counts = None if counts is None or own is None else counts + own
            if counts is not None and len(counts) > MOST_GROUPS:
                counts = None
        if counts is None:
            return GroupDraw(group, seed)
        return GroupDraw.of_counts(group, seed, counts)

    def groups_of(self, held: Any) -> Ints | None:
        """A number for the group of each row of a frame that :meth:`hold_out` gave."""
        name = self._plan.group
        if name is None:
            return None
        keys = group_keys(nw.from_native(held, eager_only=True)[name], 0)
        return np.unique(keys, return_inverse=True)[1].astype(np.int64)

    def weights_of(self, held: Any) -> NDArray[np.float64]:
        """Weights of the rows of a frame that :meth:`hold_out` gave; ones where there are none."""
        name = self._plan.weight
        return np.ones(len(held)) if name is None else read_weight(held, name)

    def _over(self, task: Callable[[int], Any]) -> Iterator[Any]:
        self.n_passes += 1
        number, n_runs = self.n_passes, self._plan.n_runs
        for done, part in enumerate(self._engine.over(n_runs, task), start=1):
            if self.on_run is not None:
                self.on_run(number, done, n_runs)
            yield part


@dataclass(frozen=True)
class _GroupCounts:
    """Rows of a frame by group; None where they are many, or a row is a group of its own."""

    column: str

    def __call__(self, frame: Any) -> Counter[int] | None:
        cells = nw.from_native(frame, eager_only=True)[self.column]
        keys, counts = np.unique(group_keys(cells, 0), return_counts=True)
        if len(keys) > MOST_GROUPS or raw_column(cells, self.column).missing.any():
            return None
        return Counter(dict(zip(keys.tolist(), counts.tolist(), strict=True)))


@dataclass(frozen=True)
class _Times:
    """Rows of a frame by time, as tables that add up."""

    time: TimeColumn

    def __call__(self, frame: Any) -> Any:
        own = self.time.values(nw.from_native(frame, eager_only=True)[self.time.name])
        return value_pile(own, MOST_TIMES)


def _itself(frame: Any) -> Any:
    return frame


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
    group: str | None = None,
    time: str | None = None,
    cluster: Any = None,
    n_jobs: int | None = None,
    block_rows: int = BLOCK_ROWS,
    cache_bytes: int = CACHE_BYTES,
    separator: str | None = None,
    encoding: str | None = None,
    doubts: bool = False,
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
        The columns to use, all others by default; never the group.
    group : str, optional
        Rows with the same entry of this column (a patient, a customer) are held out together.
    time : str, optional
        A column of dates or numbers: the last rows are held out, and folds judge what comes later.
    cluster : dask.distributed.Client or str, optional
        Do the passes on the workers of this client, or of the scheduler at this address. The files
        must be readable by every worker under the same path.
    n_jobs : int, optional
        Without a cluster: runs of eight blocks that are read and summed side by side, -1 for all
        cores. Does not change the result; each holds its rows in memory.
    block_rows : int, default=65536
        Rows of a block. The blocks are part of the result, to rounding: change it for tests only.
    cache_bytes : int, default=2**29
        Memory that a process may use to keep encoded blocks between passes; the rest goes to a
        temporary folder.
    separator, encoding : str, optional
        Of CSV files; found out from the first lines by default.
    doubts : bool, default=False
        Keep numbers of CSV files that could be thousands (1.234) as texts, for
        :meth:`Scan.look` to decide from all columns together.

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
    text = TextFormat(separator, encoding)
    rows = _rows(source, RUN_BLOCKS * block_rows, text, shared=shared, doubts=doubts)
    known = rows.columns
    for role, name in (("target", target), ("weight", weight), ("group", group), ("time", time)):
        if name is not None and name not in known:
            raise ValueError(
                f"{role}={shown(name)} is not a column of the rows, which have "
                f"{', '.join(shown(c) for c in known[:8])}{', ...' if len(known) > 8 else ''}."
            )
    chosen = tuple(c for c in known if c not in (target, weight, group))
    if features is not None:
        absent = [c for c in features if c not in chosen]
        if absent:
            raise ValueError(
                f"features names {shown(absent[0])}, which is not a column of the rows or is the "
                "target, the weight or the group."
            )
        chosen = tuple(features)
    if not chosen:
        raise ValueError("No column is left to learn from besides the target and the weight.")
    if rows.n_rows == 0:
        raise ValueError(f"{source!r} has no rows.")
    plan = Plan(
        rows,
        chosen,
        target,
        weight,
        block_rows,
        cache_bytes,
        uuid.uuid4().hex,
        group=group,
        time=None if time is None else TimeColumn(time),
    )
    return Scan(plan, _engine(cluster, n_jobs))


def _engine(cluster: Any, n_jobs: int | None) -> Engine:
    if cluster is None:
        return Here(effective_n_jobs(n_jobs))
    from laconic.data.scan.cluster import Cluster

    return Cluster.of(cluster)


def _rows(source: Any, group_rows: int, text: TextFormat, *, shared: bool, doubts: bool) -> Rows:
    if isinstance(source, str | Path) or (
        isinstance(source, list | tuple)
        and source
        and all(isinstance(item, str | Path) for item in source)
    ):
        return file_rows(find_files(source), shared=shared, text=text, doubts=doubts)
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
    from laconic.data.scan.files import polars

    return polars().DataFrame(columns)
