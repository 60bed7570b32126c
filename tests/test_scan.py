from __future__ import annotations

import os
import pickle

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

from laconic import (
    ConvexRiskClassifier,
    DecisionClassifier,
    GrayZoneLogisticRegression,
    MinimaxPriorClassifier,
    ModlEncoder,
    SelectiveNaiveBayes,
    SparseAdditiveClassifier,
    WeightedNaiveBayes,
    scan,
)
from laconic.data.block_cache import BlockCache, Packed, narrow
from laconic.data.files import UnreadableFileError
from laconic.data.scan_files import ChangedFileError
from laconic.data.source import ArraySource
from laconic.data.tables import column_tables, numeric_table
from scan_rows import NUMBERS, in_files, payments


@pytest.fixture
def frame():
    return payments()


@pytest.fixture
def folder(frame, tmp_path):
    return in_files(frame, tmp_path)


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


@pytest.mark.parametrize("weight", [None, "w"])
def test_naive_bayes_from_files_is_the_one_from_memory(frame, folder, weight):
    X = frame.drop("label", "w")
    held = WeightedNaiveBayes().fit(
        X, frame["label"].to_numpy(), None if weight is None else frame[weight].to_numpy()
    )
    given = folder if weight else frame.drop("w")
    found = WeightedNaiveBayes().fit(scan(given, "label", weight=weight, features=list(X.columns)))
    assert found.weights_.tobytes() == held.weights_.tobytes()
    assert found.criterion_ == held.criterion_
    assert list(found.classes_) == ["no", "yes"]
    for name, partition in held.encoder_.partitions_.items():
        other = found.encoder_.partitions_[name]
        assert other.class_weights.tobytes() == partition.class_weights.tobytes()
        assert other.labels == partition.labels


@pytest.mark.parametrize("zone", [(0.0, 1.0), (0.2, 0.6)])
def test_gray_zone_from_files_reaches_the_certified_minimum(frame, folder, zone):
    held = GrayZoneLogisticRegression(zone=zone, tol=1e-9).fit(
        frame.select(NUMBERS), frame["label"].to_numpy()
    )
    rows = scan(folder, "label", features=NUMBERS, block_rows=512)
    found = GrayZoneLogisticRegression(zone=zone, tol=1e-9).fit(rows)
    assert 0.0 <= found.duality_gap_ <= 1e-9 * found.objective_
    np.testing.assert_allclose(found.objective_, held.objective_, rtol=2e-9)
    np.testing.assert_allclose(found.coef_, held.coef_, atol=1e-4)
    assert not hasattr(found, "partition_")
    pickle.dumps(found)


def test_gray_zone_from_files_by_class_weights_and_one_against_rest(frame, folder):
    y = frame["label"].to_numpy()
    held = GrayZoneLogisticRegression(class_weight="balanced", tol=1e-9).fit(
        frame.select(NUMBERS), y
    )
    model = GrayZoneLogisticRegression(class_weight="balanced", tol=1e-9)
    found = model.fit(scan(folder, "label", features=NUMBERS))
    np.testing.assert_allclose(found.coef_, held.coef_, atol=1e-4)
    three = scan(frame, "kind", features=NUMBERS, weight="w")
    with pytest.raises(ValueError, match="labels of column 'kind' are missing"):
        GrayZoneLogisticRegression(multi_class="ovr").fit(three)
    known = frame.filter(pl.col("kind").is_not_null())
    one = GrayZoneLogisticRegression(multi_class="ovr", tol=1e-9)
    one.fit(scan(known, "kind", features=NUMBERS))
    other = GrayZoneLogisticRegression(multi_class="ovr", tol=1e-9)
    other.fit(known.select(NUMBERS), known["kind"].to_numpy())
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-4)


def test_predictions_of_a_scan_come_block_by_block(frame, folder):
    X = frame.drop("label", "w")
    model = WeightedNaiveBayes().fit(X, frame["label"].to_numpy())
    parts = list(model.predict_proba(scan(folder, block_rows=2_500)))
    assert [len(part) for part in parts] == [2_500, 2_500, 1_000]
    np.testing.assert_array_equal(np.concatenate(parts), model.predict_proba(X))
    labels = np.concatenate(list(model.predict(scan(folder))))
    np.testing.assert_array_equal(labels, model.predict(X))


def test_partial_fit_over_blocks(frame, folder):
    rows = scan(folder, "label", features=["amount", "kind"], block_rows=2_000)
    streamed, whole = WeightedNaiveBayes(), WeightedNaiveBayes()
    for part in rows.map_given(lambda frame: frame, ["amount", "kind", "label"]):
        labels = part["label"].to_numpy()
        streamed.partial_fit(part.select("amount", "kind"), labels, classes=["no", "yes"])
    whole.fit(rows)
    assert list(streamed.selected_features_) == list(whole.selected_features_)


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
    from laconic.data.columns import Schema

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


def test_csv_arrow_and_lazy_frames_give_the_same_model(frame, folder, tmp_path):
    rows = frame.drop("w").with_columns(pl.col("gap").fill_nan(None))
    rows.write_csv(tmp_path / "rows.csv")
    rows.write_ipc(tmp_path / "rows.arrow")
    lazy = rows.lazy().filter(pl.col("amount") > -100)
    ways = [rows, tmp_path / "rows.csv", str(tmp_path / "rows.arrow"), lazy, rows.to_pandas()]
    models = [ModlEncoder().fit(scan(way, "label")) for way in ways]
    for model in models[1:]:
        assert model.partitions_.keys() == models[0].partitions_.keys()
        for name, partition in models[0].partitions_.items():
            assert partition.class_weights.tolist() == (
                model.partitions_[name].class_weights.tolist()
            )


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


def test_what_cannot_be_scanned_says_so(frame, folder, tmp_path):
    with pytest.raises(UnreadableFileError, match="names no file"):
        scan(tmp_path / "no*.parquet", "label")
    with pytest.raises(TypeError, match="arrays in memory go to fit"):
        scan(np.zeros((3, 2)), "label")
    with pytest.raises(ValueError, match="A cluster reads files"):
        scan(frame, "label", cluster="tcp://nowhere:1")
    rows = scan(folder, "label", features=NUMBERS)
    for model in (SparseAdditiveClassifier(), MinimaxPriorClassifier(GrayZoneLogisticRegression())):
        with pytest.raises(TypeError, match="needs its rows in memory"):
            model.fit(rows)
    with pytest.raises(TypeError, match="optimizer='dgml'"):
        WeightedNaiveBayes(optimizer="dgml").fit(rows)
    with pytest.raises(TypeError, match="solver='paper'"):
        GrayZoneLogisticRegression(solver="paper").fit(rows)
    with pytest.raises(ValueError, match="name them in scan"):
        WeightedNaiveBayes().fit(rows, frame["label"].to_numpy())
    with pytest.raises(ValueError, match="scan\\(target=\\)"):
        WeightedNaiveBayes().fit(scan(folder))
    with pytest.raises(ValueError, match="'kind' is categorical"):
        GrayZoneLogisticRegression().fit(scan(folder, "label"))
    with pytest.raises(ValueError, match="'gap' has missing values"):
        GrayZoneLogisticRegression().fit(scan(folder, "label", features=["amount", "gap"]))


def test_decisions_over_a_scan(frame, folder):
    X, y = frame.select(NUMBERS), frame["label"].to_numpy()
    model = DecisionClassifier(WeightedNaiveBayes(), costs={"fp": 1.0, "fn": 5.0}, prior=0.2)
    held = clone(model).fit(X, y)
    found = model.fit(scan(folder, "label", features=NUMBERS))
    np.testing.assert_array_equal(found.train_prior_, held.train_prior_)
    parts = list(found.predict(scan(folder, block_rows=4_000)))
    assert [len(part) for part in parts] == [4_000, 2_000]
    np.testing.assert_array_equal(np.concatenate(parts), held.predict(X))


def test_selections_and_convex_risks_from_files(frame, folder):
    X, y = frame.drop("label", "w"), frame["label"].to_numpy()
    rows = scan(folder, "label", features=list(X.columns))
    held = SelectiveNaiveBayes(random_state=0, n_starts=3).fit(X, y)
    found = SelectiveNaiveBayes(random_state=0, n_starts=3).fit(rows)
    assert found.weights_.tobytes() == held.weights_.tobytes()
    for loss in ("hinge", "squared_hinge", "logistic"):
        numbers = scan(folder, "label", features=NUMBERS, block_rows=700)
        one = ConvexRiskClassifier(loss=loss, tol=1e-8).fit(numbers)
        other = ConvexRiskClassifier(loss=loss, tol=1e-8).fit(frame.select(NUMBERS), y)
        assert one.duality_gap_[0] <= 1e-8 * one.objective_[0]
        np.testing.assert_allclose(one.objective_, other.objective_, rtol=2e-8)


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
