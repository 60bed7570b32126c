"""Scans of files: their rows in order, what is refused, what is kept in memory."""

from __future__ import annotations

import os

import numpy as np
import polars as pl
import pytest

from laconic import (
    GrayZoneLogisticRegression,
    MinimaxClassifier,
    ModlEncoder,
    WeightedNaiveBayes,
    scan,
)
from laconic.data.scan.block_cache import BlockCache, Packed, narrow
from laconic.data.scan.files import ChangedFileError
from laconic.data.source import ArraySource
from laconic.data.tables.text import UnreadableFileError
from laconic.data.value_tables import column_tables, numeric_table
from scan_rows import NUMBERS


def test_blocks_are_the_rows_in_order_whatever_the_files(frame, folder):
    rows = scan(folder, "label", features=["amount", "kind"], block_rows=500)
    assert rows.n_rows == rows.n_given == 6_000
    starts = list(rows.map(lambda block: (block.index, block.start, block.stop)))
    assert starts == [(k, 500 * k, 500 * (k + 1)) for k in range(12)]
    read = np.concatenate(list(rows.map(lambda block: block.X.column(0))))
    np.testing.assert_array_equal(read, frame["amount"].to_numpy())
    codes = np.concatenate(list(rows.map(lambda block: block.y)))
    np.testing.assert_array_equal(codes, (frame["label"] == "yes").to_numpy())
    assert rows.survey.schema().categories == (None, ("card", "cash", "wire"))


def test_rows_of_zero_weight_are_absent(frame, folder):
    kept = frame.filter(pl.col("w") > 0)
    rows = scan(folder, "label", weight="w", block_rows=500)
    assert rows.n_rows == kept.height
    total = rows.sum(lambda block: block.weight @ block.X.column(0), [0])
    np.testing.assert_allclose(total, (kept["w"] * kept["amount"]).sum())
    ends = list(rows.map(lambda block: (block.start, block.stop)))
    assert [b for _, b in ends[:-1]] == [a for a, _ in ends[1:]]


def test_many_distinct_values_are_pooled_and_the_cost_is_nearly_the_same():
    draw = np.random.default_rng(3)
    n = 300_000
    x = draw.normal(size=n)
    y = np.where(draw.random(n) < 1 / (1 + np.exp(-3 * np.sin(2 * x))), 1, 0)
    frame = pl.DataFrame({"x": x, "few": np.round(x, 3), "label": y})
    held = ModlEncoder().fit(frame.drop("label"), y).partitions_
    found = ModlEncoder().fit(scan(frame, "label")).partitions_
    assert found["few"].cost == held["few"].cost
    assert abs(found["x"].cost / held["x"].cost - 1.0) < 1e-3
    assert found["x"].cost != held["x"].cost
    codes = found["x"].codes(x)
    counted = np.stack([np.bincount(codes[y == k]) for k in (0, 1)], axis=1)
    np.testing.assert_array_equal(found["x"].class_weights, counted)


def test_tables_read_together_are_those_read_one_by_one(frame):
    from laconic.data.tables.columns import Schema

    table = Schema.learn(frame.select("amount", "gap")).table
    y = (frame["label"] == "yes").to_numpy().astype(np.int64)
    source = ArraySource(table, y, np.ones(len(y)), block_rows=333)
    together = column_tables(source, [None, None], 2, 1_000)
    for j in range(2):
        alone = numeric_table(source, j, 2)
        assert alone.weights.tobytes() == together[j].weights.tobytes()
        assert alone.missing.tobytes() == together[j].missing.tobytes()
    pooled = column_tables(source, [None, None], 2, 50)[0]
    assert pooled.pooled
    assert len(pooled.values) <= 100
    np.testing.assert_allclose(pooled.weights.sum(0), together[0].weights.sum(0))


def test_lazy_frames_of_other_libraries(frame):
    duckdb = pytest.importorskip("duckdb")
    import narwhals as nw

    rows = frame.drop("w")
    with duckdb.connect() as database:
        database.register("payments", rows.to_arrow())
        relation = database.sql("select * from payments")
        held = WeightedNaiveBayes().fit(scan(rows, "label"))
        lazy = rows.lazy()
        for way in (relation, nw.from_native(relation), lazy, nw.from_native(lazy)):
            found = WeightedNaiveBayes().fit(scan(way, "label"))
            assert found.weights_.tobytes() == held.weights_.tobytes()
        few = scan(database.sql("select amount, label from payments where amount > 0"), "label")
        assert few.n_rows == rows.filter(pl.col("amount") > 0).height
        assert few.columns == ("amount",)


def test_a_truncated_or_damaged_file_is_named(folder):
    path = folder / "part-1.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UnreadableFileError, match=r"part-1\.parquet"):
        scan(folder, "label")
    broken = bytearray(whole)
    broken[100:4_000] = bytes(3_900)
    path.write_bytes(bytes(broken))
    rows = scan(folder, "label")
    with pytest.raises(UnreadableFileError, match=r"part-1\.parquet"):
        WeightedNaiveBayes().fit(rows)


def test_a_file_that_changes_between_passes_is_detected(frame, folder):
    path = folder / "part-2.parquet"
    rows = scan(folder, "label", features=["amount", "kind"])
    rows.n_rows  # the first pass
    status = path.stat()
    frame[4_100:].with_columns(amount=pl.col("amount") + 1).write_parquet(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(ChangedFileError, match=r"part-2\.parquet changed"):
        WeightedNaiveBayes().fit(rows)


def test_a_file_that_loses_its_time_stamp_alone_is_detected(folder):
    rows = scan(folder, "label", features=["amount"])
    rows.n_rows
    os.utime(folder / "part-0.parquet", ns=(1, 1))
    with pytest.raises(ChangedFileError, match=r"part-0\.parquet"):
        WeightedNaiveBayes().fit(rows)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"target": "lable"}, "target='lable' is not a column"),
        ({"target": "label", "weight": "x"}, "weight='x' is not a column"),
        ({"target": "label", "features": ["label"]}, "features names 'label'"),
    ],
)
def test_columns_that_are_not_there(folder, arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        scan(folder, **arguments)


def test_bins_of_many_values_are_cut_where_the_rows_are():
    draw = np.random.default_rng(4)
    x = draw.normal(size=150_000)
    frame = pl.DataFrame({"x": x, "label": (x + draw.normal(size=len(x)) > 1).astype(int)})
    found = MinimaxClassifier(n_bins=4, cv=None).fit(scan(frame, "label"))
    cuts = found.model_.form.coder.columns[0].cuts
    np.testing.assert_allclose(cuts, np.quantile(x, [0.25, 0.5, 0.75]), atol=2e-3)
    label = frame["label"].to_numpy()
    counted = np.stack([np.bincount(np.searchsorted(cuts, x[label == k])) for k in (0, 1)])
    shares = counted / counted.sum(axis=1, keepdims=True)
    # the rule decides 1 in the upper bins: its risks are those of the rows themselves
    decided = found.predict_proba(pl.DataFrame({"x": np.quantile(x, [0.1, 0.4, 0.6, 0.9])}))
    risks = [shares[0] @ decided[:, 1], shares[1] @ decided[:, 0]]
    np.testing.assert_allclose(found.class_risks_, risks, atol=1e-4)


def test_a_sample_keeps_rare_classes_and_stands_for_the_whole():
    draw = np.random.default_rng(5)
    x = draw.normal(size=50_000)
    frame = pl.DataFrame({"x": x, "y": (draw.random(len(x)) < 0.004).astype(int)})
    rows = scan(frame, "y", block_rows=3_000)
    sample = rows.sample(2_000, seed=1)
    rare = int(frame["y"].sum())
    assert np.bincount(sample.y)[1] == rare  # fewer than a quarter of the sample: all of them
    assert abs(len(sample) - 2_000 - rare) < 200
    assert sample.weight.sum() == pytest.approx(len(sample))
    share = sample.weight[sample.y == 1].sum() / sample.weight.sum()
    assert share == pytest.approx(rare / len(x), rel=0.06)
    again = scan(frame, "y", block_rows=700).sample(2_000, seed=1)
    assert again.table.column(0).tobytes() == sample.table.column(0).tobytes()
    assert rows.sample(2_000, seed=2).table.column(0).tobytes() != sample.table.column(0).tobytes()


def test_rows_held_out_are_in_no_pass(frame, folder):
    rows = scan(folder, "label", weight="w", block_rows=700)
    rest, held = rows.hold_out(0.3, seed=3)
    assert abs(held.height / frame.height - 0.3) < 0.02
    total = rest.sum(lambda block: block.weight @ block.X.column(0), [0])
    whole = float((frame["w"] * frame["amount"]).sum())
    assert total + float((held["w"] * held["amount"]).sum()) == pytest.approx(whole)
    assert rest.n_rows + int((held["w"] > 0).sum()) == rows.n_rows
    assert rest.n_given == rows.n_given


def test_narrow_numbers_come_back_to_the_bit():
    draw = np.random.default_rng(0)
    for array, dtype in (
        (np.arange(100.0), np.int8),
        (np.arange(100) * 300, np.int16),
        (np.array([0.5, -0.0, 2.0]), np.float32),
        (np.array([0.5, np.nan]), np.float32),
        (draw.normal(size=50), np.float64),
    ):
        assert narrow(array).dtype == dtype
        back = Packed.of(array).unpacked()
        assert back.dtype == array.dtype
        assert back.tobytes() == array.tobytes()
    mixed = np.c_[draw.normal(size=30), np.arange(30.0)]
    assert Packed.of(mixed).nbytes == 30 * 9
    assert Packed.of(mixed).unpacked().tobytes() == mixed.tobytes()


@pytest.mark.parametrize("allowed", [0, 10**6])
def test_a_cache_remembers_forgets_and_counts(allowed):
    cache, made = BlockCache(allowed), []

    def make():
        made.append(1)
        return np.linspace(0, 1, 100), None

    for version in ("a", "a", "b", "b"):
        values, nothing = cache.memo(7).recall("z", version, make)
        assert nothing is None
        np.testing.assert_array_equal(values, np.linspace(0, 1, 100))
    assert len(made) == 2
    assert cache.held_bytes == (800 if allowed else 0)
    cache.clear()
    cache.memo(7).recall("z", "b", make)
    assert len(made) == 3


def test_a_small_cache_changes_no_bytes(folder):
    models = [
        GrayZoneLogisticRegression(zone=(0.2, 0.6)).fit(
            scan(folder, "label", features=NUMBERS, block_rows=500, cache_bytes=size)
        )
        for size in (0, 20_000, 2**29)
    ]
    assert len({model.coef_.tobytes() for model in models}) == 1
