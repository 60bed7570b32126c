"""Keys of rows: the same for any order of columns, named or not, and for any container."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from laconic.data import row_keys as row_keys_module
from laconic.data.row_keys import (
    content_keys,
    keyed_folds,
    least_of,
    row_keys,
    scanned_content_keys,
)
from laconic.data.source import ArraySource
from laconic.data.tables.columns import Schema, Table


def table(X: object) -> Table:
    return Schema.learn(X, allow_sparse=True).table


def keys_of(X: object, y: np.ndarray, seed: int = 0) -> np.ndarray:
    """Keys of the rows of an array."""
    rows = table(X)
    return row_keys(rows, seed, content_keys(rows, y))


def mixed(n: int = 200) -> pd.DataFrame:
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(draw.integers(0, 3, size=(n, 4)).astype(float), columns=list("abcd"))
    frame["e"] = draw.choice(["u", "v"], n)
    frame.loc[::7, "b"] = np.nan
    return frame


def test_keys_follow_names_and_not_places():
    frame = mixed()
    keys = row_keys(table(frame))
    np.testing.assert_array_equal(row_keys(table(frame[list("ecadb")])), keys)
    # the same cells under other names are another row
    other = row_keys(table(frame.rename(columns={"a": "c", "c": "a"})))
    differ = (frame["a"] != frame["c"]).to_numpy()
    assert (other[differ] != keys[differ]).all()


def binary(n: int = 300, d: int = 30) -> np.ndarray:
    return (np.random.default_rng(1).random((n, d)) < 0.3).astype(float)


@pytest.mark.parametrize("make", [binary, lambda: np.random.default_rng(2).normal(size=(90, 7))])
def test_keys_of_an_array_do_not_depend_on_its_column_order(make):
    X, draw = make(), np.random.default_rng(3)
    y = draw.integers(0, 3, len(X))
    keys = keys_of(X, y, 5)
    columns, rows = draw.permutation(X.shape[1]), draw.permutation(len(X))
    np.testing.assert_array_equal(keys_of(X[:, columns], y, 5), keys)
    np.testing.assert_array_equal(keys_of(X[rows], y[rows], 5), keys[rows])
    np.testing.assert_array_equal(keys_of(sparse.csr_matrix(X), y, 5), keys)
    # rows with as many ones in other columns are other rows
    assert len(np.unique(keys)) == len(np.unique(X, axis=0))
    assert (keys_of(X, y, 6) != keys).all()


def test_keys_of_an_array_do_not_count_copies():
    X, y = binary(), np.arange(300) % 2
    again = np.repeat(np.arange(len(X)), np.random.default_rng(0).integers(1, 4, len(X)))
    found, wanted = keys_of(X[again], y[again]), keys_of(X, y)[again]
    np.testing.assert_array_equal(found, wanted)


def test_texts_without_names():
    """Nearly all combinations of the levels: only the classes tell the columns apart."""
    cells = mixed().drop(columns="b").astype(object).to_numpy()
    y = np.random.default_rng(0).integers(0, 2, len(cells))
    one, other = (keys_of(X.tolist(), y) for X in (cells, cells[:, ::-1]))
    np.testing.assert_array_equal(one, other)
    assert len(np.unique(one)) == len({tuple(row) for row in cells.tolist()})


def test_columns_that_differ_have_different_keys_and_copies_have_not():
    X, y = binary(), np.arange(300) % 2
    keys = content_keys(table(np.column_stack([X, X[:, 3]])), y)
    assert keys[3] == keys[-1]
    assert len(np.unique(keys)) == X.shape[1]
    # many rows: those with the least keys stand for all
    tall = np.random.default_rng(4).normal(size=(10_000, 3))
    y = (tall[:, 0] > 0).astype(np.int64)
    found = content_keys(table(tall[:, [2, 0, 1]]), y)
    np.testing.assert_array_equal(found, content_keys(table(tall), y)[[2, 0, 1]])


def test_keys_of_columns_from_many_blocks_are_those_from_memory(monkeypatch):
    """What is held on the way does not grow with the blocks."""
    monkeypatch.setattr(row_keys_module, "_MOST_ROWS", 50)
    monkeypatch.setattr(row_keys_module, "_MOST_HELD", 120)
    X = np.random.default_rng(4).normal(size=(2_000, 3)).round(1)
    y = (X[:, 0] > 0).astype(np.int64)
    source = ArraySource(table(X), y, block_rows=90)
    most = []
    kept = row_keys_module.least_rows

    def watched(rows):
        most.append(rows.n_rows)
        return kept(rows)

    parts = list(source.map(least_of))
    monkeypatch.setattr(row_keys_module, "least_rows", watched)
    found = scanned_content_keys(parts, table(X)[:0])
    np.testing.assert_array_equal(found, content_keys(table(X), y))
    assert max(most[:-1]) < 300


@pytest.mark.parametrize("useless", [1.0, 0.0, np.nan, "a", None])
def test_a_column_that_says_nothing_changes_no_key(useless):
    """Folds once moved, and with them every choice made on held-out rows."""
    draw = np.random.default_rng(0)
    X = pd.DataFrame(draw.normal(size=(60, 3)).round(1), columns=list("abc"))
    y = draw.integers(0, 2, 60)

    def keys(frame):
        table = Schema.learn(frame).table
        return row_keys(table, 3, content_keys(table, y))

    np.testing.assert_array_equal(keys(X.assign(useless=useless)), keys(X))
    assert (keys(X.assign(useless=y.astype(float))) != keys(X)).any()


def test_copies_of_a_row_share_a_fold_unless_there_are_too_many():
    """Five copies for three folds stay together, six are spread evenly."""
    keys = np.repeat(np.array([5, 9], dtype=np.uint64), [5, 6])
    fold = keyed_folds(keys, np.zeros(11, dtype=np.int64), 3)
    assert len(set(fold[:5])) == 1
    assert np.bincount(fold[5:], minlength=3).tolist() == [2, 2, 2]


def test_copies_of_other_weights_are_spread_in_no_order_of_rows():
    draw = np.random.default_rng(0)
    keys, y = np.full(40, 7, dtype=np.uint64), draw.integers(0, 2, 40)
    weight = draw.integers(1, 4, 40).astype(float)

    def held(turn):
        fold = keyed_folds(keys[turn], y[turn], 4, weight[turn])
        return [
            sorted(zip(y[turn][fold == f], weight[turn][fold == f], strict=True)) for f in range(4)
        ]

    assert held(np.arange(40)) == held(draw.permutation(40))


def test_compiled_keys_are_those_of_arrays(monkeypatch):
    draw = np.random.default_rng(4)
    frame = mixed(60)
    frame["f"], frame["g"], frame["constant"] = draw.normal(size=60), np.float32(0.1), 3.0
    frame.loc[::5, "f"] = 0.0
    frame.loc[1::5, "f"] = -0.0
    y = draw.integers(0, 2, 60)
    rows, found = table(frame), []
    for compiled in (False, True):
        monkeypatch.setattr(row_keys_module, "_compiled", lambda compiled=compiled: compiled)
        columns = content_keys(rows, y)
        found.append(np.concatenate([columns, row_keys(rows, 1), row_keys(rows, 1, columns)]))
    np.testing.assert_array_equal(*found)
