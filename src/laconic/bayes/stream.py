"""The state of a weighted naive Bayes between two chunks of a stream.

A frozen value: a chunk makes a new one, so that a chunk that fails leaves the model as it was.

The past is kept as value by class weights of every column, of bounded size, merged by +. A numeric
column keeps a few thousand values: neighbours of little weight are pooled at their largest, so that
the weight up to any kept value is exact when they are pooled. A fitted model, of which no rows are
left, gives a summary too, by :func:`summary_of_parts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import unique_labels

from laconic._typing import Floats, Ints
from laconic.bayes.coded import CodedBayes, Prepared, prepare
from laconic.bayes.tuning import RECENT_ROWS, STREAM_GROWTH, SUMMARY_VALUES
from laconic.core.contract import take_rows
from laconic.data.source import ArraySource, Block, Source
from laconic.data.tables.columns import MISSING, Kind, Schema, Table, shown
from laconic.data.value_tables import NumericTable, category_table, condensed, numeric_table
from laconic.modl.estimator import ModlEncoder, make_encoder
from laconic.modl.fit import Setting, fit_column
from laconic.modl.partition import Groups, Intervals, Partition, code_matrix


@dataclass(frozen=True)
class CategoryTable:
    """Class weights of sorted texts; the last row is missing."""

    categories: tuple[str, ...]
    weights: Floats

    def __add__(self, other: CategoryTable) -> CategoryTable:
        texts = tuple(sorted({*self.categories, *other.categories}))
        place = {text: k for k, text in enumerate(texts)}
        weights = np.zeros((len(texts) + 1, self.weights.shape[1]))
        for table in (self, other):
            weights[[place[text] for text in table.categories]] += table.weights[:-1]
            weights[-1] += table.weights[-1]
        return CategoryTable(texts, weights)


ColumnTable = NumericTable | CategoryTable


@dataclass(frozen=True)
class TableSummary:
    """Value by class weights of every column of the rows seen so far."""

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    columns: tuple[ColumnTable, ...]
    class_totals: Floats

    @staticmethod
    def of(table: Table, y: Ints, weight: Floats, n_classes: int) -> TableSummary:
        source = ArraySource(table, y, weight)
        columns: list[ColumnTable] = []
        for j, kind in enumerate(table.kinds):
            if kind == "categorical":
                texts = table.categories[j] or ()
                columns.append(
                    CategoryTable(texts, category_table(source, j, len(texts), n_classes))
                )
            else:
                columns.append(condensed(numeric_table(source, j, n_classes), SUMMARY_VALUES))
        totals: Floats = np.bincount(y, weights=weight, minlength=n_classes).astype(np.float64)
        return TableSummary(table.names, table.kinds, tuple(columns), totals)

    def __add__(self, other: TableSummary) -> TableSummary:
        kinds, columns = [], []
        for j, name in enumerate(self.names):
            kind, column = _joined(
                name, (self.kinds[j], self.columns[j]), (other.kinds[j], other.columns[j])
            )
            kinds.append(kind)
            columns.append(column)
        totals = self.class_totals + other.class_totals
        return TableSummary(self.names, tuple(kinds), tuple(columns), totals)

    @property
    def total(self) -> float:
        return float(self.class_totals.sum())

    def schema(self, *, named: bool) -> Schema:
        categories = tuple(
            column.categories if isinstance(column, CategoryTable) else None
            for column in self.columns
        )
        return Schema(self.names, self.kinds, categories, named)

    def source(self) -> SummarySource:
        return SummarySource(self)


def _joined(
    name: str, a: tuple[Kind, ColumnTable], b: tuple[Kind, ColumnTable]
) -> tuple[Kind, ColumnTable]:
    """Two tables of one column; one without any value takes the kind of the other."""
    (kind, first), (other_kind, second) = a, b
    if isinstance(first, NumericTable) and isinstance(second, NumericTable):
        return kind, condensed(first + second, SUMMARY_VALUES)
    texts, others = _as_texts(first), _as_texts(second)
    if texts is None or others is None:
        raise ValueError(
            f"Column {shown(name)} was {kind} so far and is {other_kind} now; convert it to the "
            "kind it had."
        )
    return other_kind if isinstance(first, NumericTable) else kind, texts + others


def _as_texts(table: ColumnTable) -> CategoryTable | None:
    """The table as one of texts, which that of a column without any value is too."""
    if isinstance(table, CategoryTable):
        return table
    return None if len(table.values) else CategoryTable((), table.missing[None])


@dataclass(frozen=True)
class SummarySource:
    """The summary as weighted rows, one column at a time: what a partition search reads."""

    summary: TableSummary

    @property
    def n_rows(self) -> int:
        return max(len(self._block(j)) for j in range(len(self.summary.names)))

    def _block(self, j: int) -> Block:
        column = self.summary.columns[j]
        cells: NDArray[Any]
        if isinstance(column, CategoryTable):
            weights = column.weights
            cells = np.append(np.arange(len(column.categories)), MISSING).astype(np.int32)
            categories: tuple[str, ...] | None = column.categories
        else:
            weights = np.concatenate([column.weights, column.missing[None]])
            cells, categories = np.append(column.values, np.nan), None
        value, y = np.nonzero(weights)
        rows = Table(
            (self.summary.names[j],), (self.summary.kinds[j],), (categories,), [cells[value]]
        )
        return Block(0, 0, len(value), rows, y, weights[value, y])

    def map(self, f: Callable[[Block], Any], columns: Sequence[int] | None = None) -> Iterator[Any]:
        if columns is None or len(columns) != 1:
            raise ValueError("A summary holds columns one by one: ask for one column.")
        yield f(self._block(int(columns[0])))

    def sum(self, f: Callable[[Block], Any], columns: Sequence[int] | None = None) -> Any:
        return next(self.map(f, columns))


def summary_of_parts(
    partitions: list[Partition], schema: Schema, totals: Floats, chunk: Table
) -> TableSummary:
    """What the parts of a fitted model say of its rows, as if the stream had begun with them.

    Each interval becomes one pool at its upper bound, and the weight of a group is shared out
    evenly among its texts: no boundary of the fitted model is lost, and finer ones can only come
    from the stream. ``chunk`` says where the pools of open intervals lie.
    """
    columns: list[ColumnTable] = []
    for j, partition in enumerate(partitions):
        cells = partition.cells
        if isinstance(cells, Groups):
            columns.append(_categories(cells, partition.class_weights))
        else:
            assert isinstance(cells, Intervals)
            columns.append(_numbers(cells, partition.class_weights, chunk.column(j)))
    return TableSummary(schema.names, schema.kinds, tuple(columns), totals)


def _numbers(cells: Intervals, weights: Floats, seen: Floats) -> NumericTable:
    missing = weights[0] if cells.missing_alone else np.zeros(weights.shape[1])
    places = [*cells.bounds, _above(cells.bounds, seen), *cells.special]
    values, back = np.unique(np.array(places, dtype=np.float64), return_inverse=True)
    pools = np.zeros((len(values), weights.shape[1]))
    np.add.at(pools, back, weights[cells.first :])
    return NumericTable(values, pools, missing)


def _above(bounds: Floats, seen: Floats) -> float:
    """A value of the last interval: the median of those that the chunk has there."""
    low = float(bounds[-1]) if len(bounds) else -np.inf
    there = seen[seen > low]
    if len(there):
        return float(np.median(there))
    return float(np.nextafter(low, np.inf)) if np.isfinite(low) else 0.0


def _categories(cells: Groups, weights: Floats) -> CategoryTable:
    counts = np.bincount(cells.part_of[:-1], minlength=cells.n_parts).astype(np.float64)
    if cells.missing_seen:
        counts[cells.part_of[-1]] += 1.0
    each = weights / np.maximum(counts, 1.0)[:, None]
    rows = each[cells.part_of]
    if not cells.missing_seen:
        rows[-1] = 0.0
    return CategoryTable(cells.categories, rows)


@dataclass(frozen=True)
class Chunk:
    """Rows of a stream, as read."""

    table: Table
    y: Ints
    weight: Floats

    def __len__(self) -> int:
        return len(self.y)

    def last(self, n_rows: int) -> Chunk:
        rows = slice(max(0, len(self) - n_rows), len(self))
        return Chunk(self.table[rows], self.y[rows], self.weight[rows])


@dataclass(frozen=True)
class Fresh:
    """Where the newest rows begin among the recent ones, and the names of the columns."""

    first: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class BayesStream:
    """Summaries of all rows, the recent rows themselves, partitions and weights."""

    encoder: ModlEncoder
    classes: NDArray[Any]
    schema: Schema
    summary: TableSummary
    recent: tuple[Chunk, ...]
    partitions: dict[str, Partition]
    refreshed_at: float
    weights: Floats | None = None

    @staticmethod
    def following(estimator: Any, X: Any, y: Any, classes: Any, sample_weight: Any) -> BayesStream:
        """The state after one more chunk; the estimator is read, not changed."""
        before: BayesStream | None = getattr(estimator, "_stream", None)
        encoder = make_encoder(estimator)
        if encoder.pairs or encoder.trees:
            raise ValueError(
                "partial_fit keeps one summary for each column and cannot build pairs or trees; "
                "set pairs=0 and trees=0, or use fit."
            )
        weight, kept, labels = estimator._read_labels(X, y, sample_weight)
        if kept is not None:
            X = take_rows(X, kept)
        who = type(estimator).__name__
        if before is None and hasattr(estimator, "score_"):
            before = BayesStream._after_fit(estimator, encoder, X)
        known = _read_classes(before, classes)
        codes = _class_codes(labels, known)
        if before is None:
            learned = Schema.learn(X, who=who)
            chunk = Chunk(learned.table, codes, weight)
            summary = TableSummary.of(chunk.table, codes, weight, len(known))
            empty = BayesStream(encoder, known, learned.schema, summary, (), {}, 0.0)
            return empty._joined(chunk, summary, learned.schema, _depth(estimator))
        table = _read_chunk(before.schema, X, who)
        chunk = Chunk(table, codes, weight)
        summary = before.summary + TableSummary.of(table, codes, weight, len(known))
        schema = summary.schema(named=before.schema.named)
        return replace(before, encoder=encoder)._joined(chunk, summary, schema, _depth(estimator))

    @staticmethod
    def _after_fit(estimator: Any, encoder: ModlEncoder, X: Any) -> BayesStream:
        """The stream that a fitted model begins, from the class weights of its parts."""
        schema, fitted = estimator.schema_, estimator.encoder_
        partitions = {name: p for name, p in fitted.partitions_.items() if name in schema.names}
        chunk = schema.apply(X, who=type(estimator).__name__)
        totals = fitted.class_weights_
        summary = summary_of_parts(list(partitions.values()), schema, totals, chunk)
        return BayesStream(
            encoder,
            estimator.classes_,
            schema,
            summary,
            (),
            partitions,
            summary.total,
            estimator.weights_[: len(partitions)],
        )

    def _joined(
        self, chunk: Chunk, summary: TableSummary, schema: Schema, depth: int
    ) -> BayesStream:
        recent = (*self.recent, chunk)
        if schema != self.schema or chunk.table.categories != schema.categories:
            recent = tuple(replace(old, table=schema.apply(old.table)) for old in recent)
        stream = replace(
            self, summary=summary, schema=schema, recent=_newest(recent, max(depth, len(chunk)))
        )
        if not self.partitions or summary.total >= STREAM_GROWTH * self.refreshed_at:
            return replace(stream, partitions=stream._find_partitions(), refreshed_at=summary.total)
        return replace(stream, partitions=stream._counted(stream.recent[-1]))

    def _find_partitions(self) -> dict[str, Partition]:
        """From the summaries, as from rows."""
        source, header = self.summary.source(), self.schema.empty_table()
        totals, encoder = self.summary.class_totals, self.encoder
        setting = Setting(source, header, self.classes, totals, encoder.code)  # type: ignore[arg-type]
        requests = encoder._requests(setting)
        found = [fit_column(setting, j, request) for j, request in enumerate(requests)]
        return {partition.name: partition for partition in found}

    def _counted(self, chunk: Chunk) -> dict[str, Partition]:
        """The same parts, with the chunk's rows counted in them."""
        codes = code_matrix(chunk.table, list(self.partitions.values()))
        out = {}
        for k, (name, partition) in enumerate(self.partitions.items()):
            weights = partition.class_weights.copy()
            np.add.at(weights, (codes[:, k], chunk.y), chunk.weight)
            cells = partition.cells
            if isinstance(cells, Groups):
                cells = _with_categories(cells, self.schema.categories[k] or ())
            out[name] = replace(partition, class_weights=weights, cells=cells)
        return out

    @property
    def total(self) -> float:
        return self.summary.total

    @property
    def fresh(self) -> Fresh:
        before = sum(len(chunk) for chunk in self.recent[:-1])
        return Fresh(before, self.schema.names)

    def prepared(self) -> Prepared:
        """The recent rows, weighted so that they stand for all rows."""
        y = np.concatenate([chunk.y for chunk in self.recent])
        weight = np.concatenate([chunk.weight for chunk in self.recent])
        weight = weight * (self.total / weight.sum())

        def coded(kept: list[Partition]) -> Source:
            codes = [code_matrix(chunk.table, kept) for chunk in self.recent]
            return ArraySource(np.concatenate(codes), y, weight)

        return prepare(self.partitions, self.encoder.code, self.summary.class_totals, coded)

    def start(self, ready: Prepared) -> Floats | None:
        """The weights so far, for the variables that are informative now."""
        return None if self.weights is None else self.weights[ready.places]

    def with_weights(self, ready: Prepared, weights: Floats) -> BayesStream:
        every = np.zeros(len(self.partitions))
        every[ready.places] = weights
        return replace(self, weights=every)

    def publish(self, estimator: CodedBayes) -> None:
        """Set what the estimator shows of the stream."""
        encoder = self.encoder
        for fitted in (estimator, encoder):
            fitted.schema_ = self.schema
            fitted.classes_ = self.classes
            fitted._publish_names()
        encoder.class_weights_ = self.summary.class_totals
        encoder.partitions_ = self.partitions
        encoder.exact_ = {name: p.exact for name, p in self.partitions.items()}
        estimator.encoder_ = encoder


def _depth(estimator: Any) -> int:
    return RECENT_ROWS if estimator.history is None else int(estimator.history)


def _newest(chunks: tuple[Chunk, ...], depth: int) -> tuple[Chunk, ...]:
    """The last ``depth`` rows, chunk by chunk."""
    kept: list[Chunk] = []
    for chunk in reversed(chunks):
        if depth <= 0:
            break
        kept.insert(0, chunk.last(depth))
        depth -= len(chunk)
    return tuple(kept)


def _read_chunk(schema: Schema, X: Any, who: str) -> Table:
    """The chunk's columns in the stream's order, with the categories it brings."""
    known = schema.apply(X, who=who)
    own = Schema.learn(X, who=who).schema
    place = {name: j for j, name in enumerate(own.names)} if schema.named and own.named else {}
    categories: list[tuple[str, ...] | None] = []
    for j, name in enumerate(schema.names):
        if schema.kinds[j] != "categorical":
            categories.append(None)
            continue
        brought = own.categories[place.get(name, j)] or ()
        categories.append(tuple(sorted({*(schema.categories[j] or ()), *brought})))
    if tuple(categories) == schema.categories:
        return known
    wider = Schema(schema.names, schema.kinds, tuple(categories), schema.named)
    return wider.apply(X, who=who)


def _read_classes(before: BayesStream | None, classes: Any) -> NDArray[Any]:
    if before is None:
        if classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        known: NDArray[Any] = unique_labels(classes)
        if len(known) < 2:
            raise ValueError("classes must name at least two classes.")
        return known
    if classes is not None and not np.array_equal(unique_labels(classes), before.classes):
        raise ValueError(
            f"classes={list(classes)!r} is not the same as on the first call to partial_fit, "
            f"{list(before.classes)!r}; a new class needs a new model."
        )
    return before.classes


def _class_codes(labels: NDArray[Any], known: NDArray[Any]) -> Ints:
    place = np.searchsorted(known, labels)
    place = np.minimum(place, len(known) - 1)
    new = known[place] != labels
    if new.any():
        raise ValueError(
            f"y has the class {shown(labels[new][0])}, which the stream was not announced with "
            f"({', '.join(shown(c) for c in known)}); drop those rows or start a new model with it "
            "in classes."
        )
    return place.astype(np.int64)


def _with_categories(cells: Groups, categories: tuple[str, ...]) -> Groups:
    """Groups that know more texts: the new ones belong to the default group."""
    if categories == cells.categories:
        return cells
    part = dict(zip(cells.categories, cells.part_of[:-1], strict=True))
    part_of = [part.get(text, cells.default) for text in categories] + [cells.part_of[-1]]
    return replace(cells, categories=categories, part_of=np.array(part_of, dtype=np.int32))
