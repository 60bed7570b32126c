from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from laconic.data.tables.columns import MISSING, UNSEEN, Schema

CELLS = {
    "age": [31.5, None, 18.0, 44.0],
    "job": ["smith", None, "cook", "smith"],
    "owns": [True, False, True, True],
}


def frames():
    yield "dict", CELLS
    yield "pandas", pd.DataFrame(CELLS)
    yield "nullable", pd.DataFrame(CELLS).convert_dtypes()
    yield "category", pd.DataFrame(CELLS).astype({"job": "category"})
    yield "polars", pl.DataFrame(CELLS)
    yield "polars categorical", pl.DataFrame(CELLS).with_columns(pl.col("job").cast(pl.Categorical))
    yield "pyarrow", pa.table(CELLS)


@pytest.mark.parametrize(("name", "frame"), list(frames()), ids=[name for name, _ in frames()])
def test_every_frame_reads_the_same(name, frame):
    schema, table = Schema.learn(frame).schema, Schema.learn(frame).table
    assert schema.names == ("age", "job", "owns")
    assert schema.kinds == ("numeric", "categorical", "boolean")
    np.testing.assert_array_equal(table.column(0), [31.5, np.nan, 18.0, 44.0])
    np.testing.assert_array_equal(table.column(1), [1, MISSING, 0, 1])
    assert table.categories[1] == ("cook", "smith")
    np.testing.assert_array_equal(table.column(2), [1.0, 0.0, 1.0, 1.0])


@pytest.mark.parametrize("missing", [False, True])
def test_one_row_reads_as_it_does_among_others(missing):
    frame = pd.DataFrame(
        {
            "age": [31.5, 18.0, 44.0],
            "kids": [2**40 + 1, 0, 3],
            "small": np.array([0.1, 0.2, 0.3], dtype=np.float32),
            "owns": [True, False, True],
            "job": pd.Categorical(["smith", "cook", "smith"]),
            "code": pd.Categorical([3, 7, 3]),
            "town": ["Rome", "Oslo", "Rome"],
            "rooms": pd.array([1, None, 2], dtype="Int64"),
        }
    )
    if missing:
        frame.loc[1, ["age", "job", "code", "town"]] = None
    schema, table = Schema.learn(frame).schema, Schema.learn(frame).table
    for row in range(3):
        alone = schema.apply(frame.iloc[[row]])
        for j in range(len(schema.names)):
            np.testing.assert_array_equal(alone.column(j), table.column(j)[[row]])
    swapped = schema.apply(frame.iloc[[0], ::-1])
    np.testing.assert_array_equal(swapped.column(4), table.column(4)[[0]])
    unseen = frame.iloc[[0]].assign(town="Bern")
    assert schema.apply(unseen).column(6)[0] == UNSEEN
    with pytest.raises(ValueError, match="no column 'town'"):
        schema.apply(frame.iloc[[0]].drop(columns="town"))
    with pytest.raises(ValueError, match="'age' was numeric"):
        schema.apply(frame.iloc[[0]].assign(age="old"))


def test_an_object_array_reads_like_a_frame():
    array = np.array(list(zip(*CELLS.values(), strict=True)), dtype=object)
    learned = Schema.learn(array)
    assert learned.schema.names == ("x0", "x1", "x2")
    assert learned.schema.kinds == ("numeric", "categorical", "boolean")
    np.testing.assert_array_equal(learned.table.column(1), [1, MISSING, 0, 1])
    as_lists = Schema.learn([list(row) for row in array])
    assert as_lists.schema.kinds == learned.schema.kinds


def test_an_array_of_numbers_is_not_copied():
    array = np.random.default_rng(0).normal(size=(5, 2))
    assert np.shares_memory(Schema.learn(array).table.matrix(), array)


def test_columns_are_found_by_name_and_extra_ones_ignored():
    schema = Schema.learn(pd.DataFrame(CELLS)).schema
    later = pl.DataFrame({"id": [7], "owns": [False], "job": ["baker"], "age": [20]})
    table = schema.apply(later)
    assert table.names == ("age", "job", "owns")
    assert [float(table.column(j)[0]) for j in range(3)] == [20.0, UNSEEN, 0.0]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_a_missing_column_and_a_changed_kind_are_named(library):
    schema = Schema.learn(pd.DataFrame(CELLS)).schema
    with pytest.raises(ValueError, match="no column 'job'"):
        schema.apply(library({"age": [1.0], "owns": [True]}))
    with pytest.raises(ValueError, match="'job' was categorical at fit and is numeric now"):
        schema.apply(library({"age": [1.0], "owns": [True], "job": [3]}))
    with pytest.raises(ValueError, match="'age' was numeric at fit and is categorical now"):
        schema.apply(library({"age": ["old"], "owns": [True], "job": ["cook"]}))


def test_a_boolean_column_may_come_back_as_numbers():
    schema = Schema.learn(pd.DataFrame(CELLS)).schema
    table = schema.apply(pd.DataFrame({"age": [1], "owns": [1.0], "job": ["cook"]}))
    assert table.column(2)[0] == 1.0


@pytest.mark.parametrize("nothing", [None, np.nan])
def test_an_all_missing_column_agrees_with_every_kind(nothing):
    schema = Schema.learn(pd.DataFrame(CELLS)).schema
    table = schema.apply(pd.DataFrame({"age": [nothing], "owns": [nothing], "job": [nothing]}))
    assert np.isnan(table.column(0)[0])
    assert np.isnan(table.column(2)[0])
    assert table.column(1)[0] == MISSING
    learned = Schema.learn(pd.DataFrame({"a": pd.Series([nothing] * 3, dtype=object)}))
    assert learned.schema.kinds == ("numeric",)
    assert np.isnan(learned.table.column(0)).all()


def test_a_constant_column_is_an_ordinary_column():
    learned = Schema.learn(pd.DataFrame({"a": [1.0, 1.0], "b": ["x", "x"]}))
    assert learned.schema.kinds == ("numeric", "categorical")


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
@pytest.mark.parametrize("make", [np.array, pd.DataFrame, sparse.csr_matrix])
def test_infinities_name_their_column(make, bad):
    X = make(np.array([[1.0, 2.0], [3.0, bad]]))
    with pytest.raises(ValueError, match=r"Column 'x1' has infinite values"):
        Schema.learn(X, allow_sparse=True)


def test_large_finite_numbers_are_not_infinite():
    X = np.full((10, 2), 1.7e308)
    assert Schema.learn(X).table.n_rows == 10


def test_duplicated_names_are_refused():
    with pytest.raises(ValueError, match="'a' appears more than once"):
        Schema.learn(pd.DataFrame(np.zeros((2, 2)), columns=["a", "a"]))
    with pytest.raises(ValueError, match="'a' appears more than once"):
        Schema.learn(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))


def test_mixed_names_are_refused():
    with pytest.raises(TypeError, match="string names"):
        Schema.learn(pd.DataFrame(np.zeros((2, 2)), columns=["a", 1]))


def test_hostile_names_come_through_unchanged():
    names = ["two words", "quote \" and '", "🐟", "<script>alert(1)</script>", "", "x" * 10_000]
    frame = pd.DataFrame(np.arange(12.0).reshape(2, 6), columns=names)
    schema = Schema.learn(frame).schema
    assert schema.names == tuple(names)
    np.testing.assert_array_equal(schema.apply(frame[names[::-1]]).matrix(), frame.to_numpy())
    with pytest.raises(ValueError) as error:
        schema.apply(frame.drop(columns="x" * 10_000))
    assert len(str(error.value)) < 300


def test_dates_and_complex_numbers_are_refused_by_name():
    with pytest.raises(ValueError, match="Column 'when' holds"):
        Schema.learn(pd.DataFrame({"when": pd.to_datetime(["2020-01-01"])}))
    with pytest.raises(ValueError, match="Complex data not supported"):
        Schema.learn(np.array([[1 + 2j]]))
    with pytest.raises(ValueError, match="Complex data not supported"):
        Schema.learn({"z": [1 + 2j]})


def test_integer_categories_keep_their_text_with_and_without_missing():
    with_gap = pd.DataFrame({"code": pd.Categorical([1, None, 3])})
    whole = pd.DataFrame({"code": pd.Categorical([3, 1, 2])})
    schema = Schema.learn(with_gap).schema
    assert schema.categories[0] == ("1", "3")
    np.testing.assert_array_equal(schema.apply(whole).column(0), [1, 0, UNSEEN])


def test_unused_levels_of_a_categorical_are_not_learned():
    column = pd.Categorical(["a", "b"], categories=["c", "b", "a"])
    assert Schema.learn(pd.DataFrame({"k": column})).schema.categories[0] == ("a", "b")


def test_width_and_names_are_compared_as_scikit_learn_does():
    array = np.zeros((3, 2))
    schema = Schema.learn(array).schema
    with pytest.raises(ValueError, match="X has 3 features, but Model is expecting 2 features"):
        schema.apply(np.zeros((3, 3)), who="Model")
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        schema.apply(pd.DataFrame(array, columns=["a", "b"]))
    named = Schema.learn(pd.DataFrame(array, columns=["a", "b"])).schema
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        named.apply(array)


def test_sparse_is_refused_unless_declared():
    X = sparse.csc_matrix(np.eye(3))
    with pytest.raises(TypeError, match="Sparse data was passed"):
        Schema.learn(X)
    assert Schema.learn(X, allow_sparse=True).table.matrix().format == "csr"


def test_rows_and_columns_of_a_table():
    table = Schema.learn(pd.DataFrame(CELLS)).table
    assert table[1:3].shape == (2, 3)
    assert table[:, [2, 0]].names == ("owns", "age")
    np.testing.assert_array_equal(table[np.array([3, 0])].column(0), [44.0, 31.5])
    with pytest.raises(ValueError, match="categorical"):
        table.matrix()


def test_a_table_can_be_read_again():
    table = Schema.learn(pd.DataFrame(CELLS)).table
    again = Schema.learn(table[[3, 1]])
    assert again.schema.kinds == table.kinds
    assert again.schema.categories[1] == ("smith",)
    np.testing.assert_array_equal(again.table.column(1), [0, MISSING])
    np.testing.assert_array_equal(again.schema.apply(table).column(1), [0, MISSING, UNSEEN, 0])
    newer = again.schema.apply(again.schema.apply(table))
    np.testing.assert_array_equal(newer.column(1), [0, MISSING, UNSEEN, 0])
