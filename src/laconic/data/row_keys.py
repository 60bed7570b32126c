"""A 64-bit key of each row's values: reproducible draws and folds that do not depend on batches.

The key of a row is the sum over columns of a mixed hash of (name of the column, value), so it
depends neither on the other rows, nor on the order of the columns, nor on the library or the float
type that held a value. Equal rows have equal keys. Zeros count for nothing, which makes sparse and
dense rows agree, and so do columns that say nothing. Columns of an array have no names:
:func:`content_keys` tells them apart by what they hold. Folds are made of keys too, unless groups
or times of the rows say what must be kept apart (:func:`pairs_apart`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import reduce
from hashlib import blake2b
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from laconic._typing import Floats, Ints, Keys
from laconic.data.tables.columns import Table

Pairs = list[tuple[Ints, Ints]]
"""Rows to learn from and rows held out, one pair a fold."""

_MOST_ROWS = 4_096
"""Distinct rows that tell the columns of an array apart; more would only take longer."""
_MOST_HELD = 8 * _MOST_ROWS
"""Rows of a scan that are held before those that cannot be among them are dropped."""
_ALIKE, _NOTHING = np.uint64(0), np.uint64(2**64 - 1)
"""Keys of columns that are not yet told apart, and of one that says nothing."""


def row_keys(table: Table, seed: int = 0, columns: Keys | None = None) -> Keys:
    """One key per row; ``columns`` are the keys of the columns, by default those of their names.

    >>> from laconic.data.tables.columns import Schema
    >>> table = Schema.learn(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]])).table
    >>> keys = row_keys(table)
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    total = _totals(table, name_keys(table.names) if columns is None else columns)
    return mixed(total ^ mixed(np.array([seed % 2**64], dtype=np.uint64)))


def name_keys(names: Sequence[str]) -> Keys:
    """A key of each column name."""
    return np.array([text_key(name) for name in names], dtype=np.uint64)


def place_keys(n_columns: int) -> Keys:
    """A key of each place, for tables whose columns stand where a fit found them."""
    return mixed(np.arange(1, n_columns + 1, dtype=np.uint64))


def content_keys(table: Table, y: Ints) -> Keys:
    """A key of each column from its cells and the classes, whatever the order of columns and rows.

    Rows get a key that no column order changes, columns the sum of the keys of (row, class, cell),
    and again with rows keyed by those columns: columns that are alike after two rounds (colour
    refinement) may be swapped without changing what there is to learn. Rows with the least keys
    stand for all of many rows; a row that comes twice counts once, as a weight of two does. Columns
    whose cells are all equal say nothing: with them or without them rows have the same keys. (Not
    beyond ``_MOST_ROWS`` different rows, where a scan could not tell.)

    >>> from laconic.data.tables.columns import Schema
    >>> rows, y = np.array([[1.0, 2.0], [3.0, 1.0], [2.0, 5.0]]), np.array([0, 1, 1])
    >>> one, other = (content_keys(Schema.learn(X).table, y) for X in (rows, rows[:, ::-1]))
    >>> bool((one == other[::-1]).all())
    True
    """
    alike = _alike_totals(table)
    some = _least(alike)
    table, alike = table[some], alike[some]
    classes = mixed(y[some].astype(np.uint64) + np.uint64(1))
    _, first = np.unique(_totals(table, name_keys(table.names)) ^ classes, return_index=True)
    if len(first) < table.n_rows:
        table, alike, classes = table[first], alike[first], classes[first]
    constant = _constant(table)
    if constant.any():  # what they add to every row
        alike = alike - _totals(table[:1], np.where(constant, _ALIKE, _NOTHING))
    columns = np.where(constant, _NOTHING, _sums_by_column(table, alike + classes))
    again = _sums_by_column(table, _totals(table, columns) + classes)
    return np.where(constant, _NOTHING, again)


def _constant(table: Table) -> NDArray[np.bool_]:
    """Columns whose cells are all equal, where the rows are few enough to know."""
    if table.n_rows >= _MOST_ROWS or not table.n_rows:
        return np.zeros(len(table.names), dtype=bool)
    if table.is_sparse:
        matrix = table.matrix().tocsc()
        low, high = (np.asarray(end(axis=0).todense()).ravel() for end in (matrix.min, matrix.max))
        return np.asarray(low == high)
    columns = (table.column(j) for j in range(len(table.names)))
    return np.array(
        [len(np.unique(cells[:2])) < 2 and len(np.unique(cells)) < 2 for cells in columns]
    )


def least_rows(table: Table) -> Ints:
    """Places of the rows that stand for all in :func:`content_keys`.

    Those of a table are among those of its parts: a scan finds them block by block.
    """
    return _least(_alike_totals(table))


def _alike_totals(table: Table) -> Keys:
    """A key of each row that the order of its columns does not change."""
    return _totals(table, np.full(len(table.names), _ALIKE))


def _least(totals: Keys) -> Ints:
    if not len(totals):
        return np.empty(0, dtype=np.int64)
    ordered = np.sort(totals)
    distinct = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    return np.flatnonzero(totals <= distinct[min(_MOST_ROWS, len(distinct)) - 1])


def least_of(block: Any) -> tuple[list[NDArray[Any]], Ints]:
    """The columns and classes of those rows of a block of a scan that may stand for all."""
    table, y = block.X, block.y
    if block.weight is not None and not (block.weight > 0).all():
        table, y = table[block.weight > 0], y[block.weight > 0]
    some = least_rows(table)
    return [table[some].column(j) for j in range(len(table.names))], y[some]


class LeastRows:
    """Rows of some blocks that may stand for all: what is held does not grow with the blocks."""

    def __init__(self, table: Table, y: Ints) -> None:
        self.table, self.y = table, y

    @staticmethod
    def of(block: Any) -> LeastRows:
        cells, y = least_of(block)
        table = block.X
        return LeastRows(Table(table.names, table.kinds, table.categories, cells), y)

    def __add__(self, other: LeastRows) -> LeastRows:
        names, kinds, texts = self.table.names, self.table.kinds, self.table.categories
        both = self.table, other.table
        cells = [np.concatenate([own.column(j) for own in both]) for j in range(len(names))]
        table, y = Table(names, kinds, texts, cells), np.concatenate([self.y, other.y])
        if len(y) > _MOST_HELD:
            some = least_rows(table)
            table, y = table[some], y[some]
        return LeastRows(table, y)

    def keys(self) -> Keys:
        """:func:`content_keys` of all rows."""
        return content_keys(self.table, self.y)


def scanned_content_keys(parts: Iterable[tuple[list[NDArray[Any]], Ints]], table: Table) -> Keys:
    """:func:`content_keys` of a scan with the columns of ``table``, from its :func:`least_of`."""
    columns = table.names, table.kinds, table.categories
    held = [LeastRows(Table(*columns, cells), y) for cells, y in parts]
    return reduce(LeastRows.__add__, held).keys()


def _totals(table: Table, columns: Keys) -> Keys:
    """Sum over each row of the keys of its cells, each mixed with the key of its column."""
    if table.is_sparse:
        matrix = table.matrix().tocsr()
        cells = number_keys(matrix.data.astype(np.float64), columns[matrix.indices])
        return _segment_sums(cells, matrix.indptr)
    if table.all_numeric and table.in_one_matrix:
        from laconic.data._numba import row_sums_of_keys

        return np.asarray(row_sums_of_keys(*_bits(table), columns))
    total = np.zeros(table.n_rows, dtype=np.uint64)
    for j, column in enumerate(columns):
        total += _cell_keys(table, j, column)
    return total


def _sums_by_column(table: Table, rows: Keys) -> Keys:
    """Sum over each column of the keys of its cells, each mixed with the key of its row."""
    alike = np.full(len(table.names), _ALIKE)
    if table.is_sparse:
        matrix = table.matrix().tocsc()
        cells = number_keys(matrix.data.astype(np.float64), _ALIKE)
        found = np.where(cells == 0, cells, mixed(cells ^ rows[matrix.indices]))
        return _segment_sums(found, matrix.indptr)
    if table.all_numeric and table.in_one_matrix:
        from laconic.data._numba import column_sums_of_keys

        return np.asarray(column_sums_of_keys(*_bits(table), rows))
    total = np.zeros_like(alike)
    for j, column in enumerate(alike):
        if table.kinds[j] != "categorical" and _compiled():
            from laconic.data._numba import column_sums_of_keys

            total[j] = column_sums_of_keys(*_bits_of(table.column(j)), rows)[0]
        else:
            cells = _cell_keys(table, j, column)
            total[j] = np.where(cells == 0, cells, mixed(cells ^ rows)).sum(dtype=np.uint64)
    return total


def _segment_sums(cells: Keys, ends: NDArray[np.integer]) -> Keys:
    up_to = np.concatenate((np.zeros(1, np.uint64), np.cumsum(cells, dtype=np.uint64)))
    return np.asarray(up_to[ends[1:]] - up_to[ends[:-1]])


def _bits(table: Table) -> tuple[Floats, Keys]:
    """The numbers of a table and the same bytes as integers."""
    matrix = np.asarray(table.matrix(), dtype=np.float64)
    return matrix, matrix.view(np.uint64)


def _compiled() -> bool:
    """Loading numba takes longer than the keys of one table; a fit has loaded it for others."""
    return "numba" in sys.modules


def _bits_of(values: NDArray[Any]) -> tuple[Floats, Keys]:
    """The same of one column, as a matrix of one."""
    cells = np.ascontiguousarray(values, dtype=np.float64)[:, None]
    return cells, cells.view(np.uint64)


def code_keys(codes: NDArray[Any], y: NDArray[Any] | None = None) -> Keys:
    """One key per row of unsigned integers, such as part numbers, and of its class.

    >>> keys = code_keys(np.array([[1, 2], [2, 1], [1, 2]], dtype=np.uint8))
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    places = place_keys(codes.shape[1] + 1)
    total = np.zeros(len(codes), dtype=np.uint64)
    if y is not None:
        total += mixed(y.astype(np.uint64) ^ places[-1])
    for j, place in enumerate(places[:-1]):
        total += mixed(codes[:, j] ^ place)
    return total


def seed_of(random_state: Any) -> int:
    """A fixed number for None, so that a rule which draws is the same after every fit."""
    if random_state is None:
        return 0
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def shuffled(keys: Keys, weight: NDArray[np.float64], rng: Any) -> NDArray[np.int64]:
    """A random order of rows that depends on their keys and weights, not on their places.

    Rows of one key and weight must be equal; they are spread like any others.

    >>> keys = np.array([5, 9, 5], dtype=np.uint64)
    >>> order = shuffled(keys, np.ones(3), np.random.default_rng(0))
    >>> moved = shuffled(keys[::-1], np.ones(3), np.random.default_rng(0))
    >>> bool((keys[order] == keys[::-1][moved]).all())
    True
    """
    order: NDArray[np.int64] = np.lexsort((weight, keys))[rng.permutation(len(keys))]
    return order


def uniforms(keys: Keys) -> NDArray[np.float64]:
    """A number in [0, 1) from each key."""
    return np.asarray((keys >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def salted_draws(keys: Keys, *salts: Any) -> NDArray[np.float64]:
    """A number in [0, 1) for each key; other salts give other numbers.

    >>> keys = np.array([5, 9, 5], dtype=np.uint64)
    >>> one, other = salted_draws(keys, 1), salted_draws(keys, 2)
    >>> bool(one[0] == one[2]), bool(one[0] == other[0])
    (True, False)
    """
    for salt in salts:
        keys = mixed(keys ^ mixed(np.array([salt], dtype=np.uint64) + np.uint64(1)))
    return uniforms(mixed(keys))


def number_draws(start: int, stop: int, seed: int = 0) -> NDArray[np.float64]:
    """A number in [0, 1) for each row number from ``start`` to ``stop``.

    >>> bool((number_draws(2, 5) == number_draws(0, 5)[2:]).all())
    True
    """
    lead = mixed(np.array([seed % 2**64], dtype=np.uint64))
    # twice: neighbouring numbers differ in few bits
    return uniforms(mixed(mixed(np.arange(start, stop, dtype=np.uint64)) ^ lead))


def keyed_folds(
    keys: Keys, y: NDArray[np.int64], n_folds: int, weight: Floats | None = None
) -> NDArray[np.int64]:
    """Fold of each row: classes are spread evenly, and equal rows of a class stay together.

    A row of weight two is then treated as two equal rows, and no fold predicts a copy of a row
    that it was trained on. A row that comes twice as often as there are folds, or more, is spread
    over them, by weight: a table of few different rows would otherwise be judged on rows whose
    other class alone was learned.

    >>> keyed_folds(np.array([7, 7, 9], dtype=np.uint64), np.zeros(3, dtype=np.int64), 2).tolist()
    [0, 0, 1]
    """
    fold = np.empty(len(y), dtype=np.int64)
    for k in np.unique(y):
        rows = np.flatnonzero(y == k)
        _, place, count = np.unique(keys[rows], return_inverse=True, return_counts=True)
        order = np.lexsort((place,) if weight is None else (weight[rows], place))
        copy = np.empty(len(rows), dtype=np.int64)
        copy[order] = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
        many = count[place] >= 2 * n_folds
        fold[rows] = (place + np.where(many, copy, 0)) % n_folds
    return fold


def pairs_of_keys(keys: Keys, y: Ints, n_folds: int, weight: Floats | None = None) -> Pairs:
    """Pairs (train, test) of the folds of :func:`keyed_folds`."""
    fold = keyed_folds(keys, y, n_folds, weight)
    if fold.max() == 0:
        return []
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(fold.max() + 1)]


def pairs_of_groups(groups: NDArray[Any], y: Ints, n_folds: int, seed: int) -> Pairs:
    """Folds that keep the rows of a group together and spread the classes as evenly as they can.

    >>> groups, y = np.array(["a", "b", "a", "b"]), np.array([0, 1, 1, 0])
    >>> [test.tolist() for _, test in pairs_of_groups(groups, y, 2, 0)]
    [[1, 3], [0, 2]]
    """
    from sklearn.model_selection import StratifiedGroupKFold

    n_groups = len(np.unique(groups))
    if n_groups < n_folds:
        raise ValueError(
            f"groups has {n_groups} different values and cv={n_folds} folds need at least "
            f"{n_folds}; give fewer folds or rows of more groups."
        )
    splitter = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)
    return list(splitter.split(np.zeros((len(y), 1)), y, groups))


def pairs_in_time(time: NDArray[Any], n_folds: int) -> Pairs:
    """Folds that train on the past: blocks of about equal size, each judged by all before it.

    Rows of one time stay together. The first block is never held out.

    >>> [(train.tolist(), test.tolist()) for train, test in pairs_in_time(np.array([3, 1, 2]), 2)]
    [([1], [2]), ([1, 2], [0])]
    """
    times, place, count = np.unique(time, return_inverse=True, return_counts=True)
    if len(times) < n_folds + 1:
        raise ValueError(
            f"time has {len(times)} different values and cv={n_folds} folds need at least "
            f"{n_folds + 1}; give fewer folds or finer times."
        )
    middle = np.cumsum(count) - count / 2.0
    wanted = np.minimum((middle * (n_folds + 1) / count.sum()).astype(np.int64), n_folds)
    # a time with very many rows may leave a block empty: the ones that are there count
    block = np.unique(wanted, return_inverse=True)[1][place]
    last = int(block.max())
    return [(np.flatnonzero(block < b), np.flatnonzero(block == b)) for b in range(1, last + 1)]


def pairs_apart(
    keys: Keys,
    y: Ints,
    n_folds: int,
    seed: int,
    groups: NDArray[Any] | None = None,
    time: NDArray[Any] | None = None,
    weight: Floats | None = None,
) -> Pairs:
    """Folds in time where times are given, else by group, else by the keys of the rows."""
    if time is not None:
        return pairs_in_time(time, n_folds)
    if groups is not None:
        return pairs_of_groups(groups, y, n_folds, seed)
    return pairs_of_keys(keys, y, n_folds, weight)


def text_key(text: str) -> int:
    """A key of 64 bits that is the same in every process."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def _cell_keys(table: Table, j: int, column: np.uint64) -> Keys:
    """The keys of the cells of a column; zero for the number zero."""
    values = table.column(j)
    if table.kinds[j] != "categorical":
        if not _compiled():
            return number_keys(np.asarray(values, dtype=np.float64), column)
        from laconic.data._numba import row_sums_of_keys

        return np.asarray(row_sums_of_keys(*_bits_of(values), np.array([column])))
    # the texts, not their codes: a code depends on the other categories of the training rows;
    # MISSING and UNSEEN, -1 and -2, find the two last entries
    texts = table.categories[j] or ()
    known = np.array([*map(text_key, texts), 2, 1], dtype=np.uint64)
    return mixed(known[values] ^ column) * np.uint64(column != _NOTHING)


def number_keys(values: NDArray[np.float64], columns: Any) -> Keys:
    """Keys of numbers in some columns; zero has none, nor has a column that says nothing."""
    bits = np.where(np.isnan(values), np.nan, values).view(np.uint64)
    nothing = (values == 0) | (columns == _NOTHING)
    return np.where(nothing, np.uint64(0), mixed(bits ^ columns))


def mixed(bits: Keys) -> Keys:
    """The finaliser of splitmix64 (Steele, Lea and Flood, 2014); overflow wraps."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(bits ^ (bits >> np.uint64(31)))
