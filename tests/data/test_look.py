"""What a look at a table says and suspects; how the reading is asked for and stored."""

from __future__ import annotations

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest

import laconic
from laconic.data.reading import evidence, raw
from laconic.data.reading.asked import Asked
from laconic.data.reading.evidence import DISTINCT, Evidence, evidence_of
from laconic.data.reading.raw import raw_column
from laconic.data.reading.reading import Reading, UnreadableCellError

N = 600


@pytest.fixture(scope="module")
def rows():
    draw = np.random.default_rng(3)
    y = draw.random(N) < 0.3
    days = np.sort(draw.integers(0, 900, N))
    table = {
        "amount": np.round(np.exp(draw.normal(4, 1, N)) + 3 * y, 2),
        "kind": draw.choice(["a", "b", "c"], N),
        "seen": [str(np.datetime64("2021-01-01") + int(day)) for day in days],
    }
    return table, y


def test_a_clean_table_raises_no_suspicion(rows):
    table, y = rows
    assert laconic.look(table, y).suspicions == ()


def test_a_column_that_holds_the_answer_is_told(rows):
    table, y = rows
    # not monotone: the middle of the range is one class, so that ranks alone would miss it
    hidden = np.where(y, 50.0, np.random.default_rng(0).choice([10.0, 90.0], N))
    for leak in (hidden, np.where(y, "left", "stays")):
        said = laconic.look({**table, "leak": leak}, y).suspicions
        assert len(said) == 1
        assert "'leak' alone tells the target" in said[0]


def test_a_column_of_many_levels_is_no_leak_by_chance(rows):
    table, y = rows
    many = [f"v{k}" for k in np.random.default_rng(1).integers(0, 250, N)]
    assert not [s for s in laconic.look({**table, "many": many}, y).suspicions if "alone" in s]


def test_repeated_ids_and_copied_rows_are_told(rows):
    table, y = rows
    patients = {**table, "patient_id": [f"P{k // 3}" for k in range(N)]}
    assert any("3.0 rows for each value" in s for s in laconic.look(patients, y).suspicions)
    twice = {name: np.concatenate([cells, cells]) for name, cells in table.items()}
    assert any("600 of 1,200 rows are copies" in s for s in laconic.look(twice).suspicions)


def test_a_target_that_moves_in_time_is_told(rows):
    table, _ = rows
    draw = np.random.default_rng(4)
    moving = draw.random(N) < np.linspace(0.1, 0.5, N)
    said = laconic.look(table, moving).suspicions
    assert any("'True' moves with 'seen'" in s for s in said)
    false_alarms = 0
    for seed in range(12):  # the test of drift is one at level 1e-4
        still = np.random.default_rng(seed).random(N) < 0.3
        false_alarms += any("moves with" in s for s in laconic.look(table, still).suspicions)
    assert false_alarms == 0


def test_numbers_of_distinct_values_are_right_within_their_error():
    draw = np.random.default_rng(0)
    for n in (DISTINCT - 1, 20_000, 60_000):
        values = draw.normal(size=n)
        parts = np.array_split(np.concatenate([values, values]), 7)
        total = Evidence(0, 0)
        for part in parts:
            total = total + evidence_of(raw_column(part, "x"))
        exact = n < DISTINCT
        assert total.n_distinct == n if exact else abs(total.n_distinct / n - 1) < 0.06


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"kinds": {"kind": "nummer"}}, "did you mean 'number'"),
        ({"kinds": {"kind": "purple"}}, "the kinds are number"),
        ({"kinds": {"kind": "number"}}, "'kind' cannot be read as number"),
        ({"kinds": {"amount": "yes/no"}}, "'amount' cannot be read as yes/no"),
        ({"drop": ["kinds"]}, "did you mean 'kind'"),
        ({"drop": ["kind"], "keep": ["kind"]}, "dropped and kept"),
    ],
)
def test_what_cannot_be_asked_for_is_said(rows, asked, sentence):
    with pytest.raises(ValueError, match=sentence):
        laconic.look(rows[0], **asked)


def test_a_cell_that_was_not_of_its_kind_at_fit_is_refused(rows):
    reading = Reading.learn(rows[0])
    good = {name: list(cells[:3]) for name, cells in rows[0].items()}
    for name, cell in (("amount", "twelve"), ("seen", "last week"), ("seen", "31/01/2024")):
        with pytest.raises(UnreadableCellError, match=f"Column '{name}' holds '{cell}'"):
            reading.apply({**good, name: [cell, *map(str, good[name][1:])]})
    # words that say "nothing known" are missing, whether or not the fit saw one
    assert np.isnan(reading.apply({**good, "amount": ["unknown", "1", "2"]}).column(0)[0])
    with pytest.raises(ValueError, match="no column 'kind'"):
        reading.apply({name: good[name] for name in ("amount", "seen")})


def test_a_reading_is_given_to_the_classifier_and_kept(rows, tmp_path):
    table, y = rows
    table = {**table, "id": [f"C{k:05d}" for k in range(N)], "ok": np.where(y, "TRUE", "FALSE")}
    frame = pd.DataFrame(table)
    model = laconic.LaconicClassifier(candidates=["logistic"], random_state=0)
    with pytest.warns(UserWarning, match="'id': 600 different texts"):
        model.fit(frame, y)
    assert "id" not in model.feature_names_in_
    assert model.reading_ == Reading.learn(frame)
    asked = laconic.look(frame, drop=["ok"], keep=["id"]).reading
    other = laconic.LaconicClassifier(candidates=["logistic"], random_state=0, reading=asked)
    other.fit(frame, y)
    assert list(other.feature_names_in_) == ["amount", "kind", "seen", "id"]
    laconic.save(model, tmp_path / "model.json")
    loaded = laconic.load(tmp_path / "model.json")
    expected = model.predict_proba(frame)
    typed = pl.DataFrame(frame).with_columns(
        pl.col("ok") == "TRUE", pl.col("seen").str.to_date(), pl.col("kind").cast(pl.Categorical)
    )
    for same in (frame, pl.DataFrame(frame), typed, typed.to_pandas(), typed.drop("id")):
        np.testing.assert_array_equal(loaded.predict_proba(same), expected)
    as_stands = laconic.LaconicClassifier(candidates=["bayes"], random_state=0, reading=None)
    assert as_stands.fit(frame, y).reading_ is None
    assert as_stands.n_features_in_ == 5


def test_other_models_get_a_frame_of_their_library(rows):
    table, _ = rows
    reading = Reading.learn(table)
    expected = reading.apply(table)
    for frame in (pd.DataFrame(table), pl.DataFrame(table)):
        made = reading.frame(frame)
        assert type(made) is type(frame)
        assert list(made.columns) == list(expected.names)
        np.testing.assert_array_equal(made["amount"].to_numpy(), expected.column(0))
        texts = expected.categories[1]
        assert made["kind"].to_list() == [texts[code] for code in expected.column(1)]


def test_asked_options_are_checked_before_the_table_is_read():
    with pytest.raises(ValueError, match="cannot be read as"):
        Asked(kinds={"x": "nothing"})


def test_classes_are_counted_and_looked_at(rows):
    table, y = rows
    label = np.where(y, "bad", "ok")
    found = laconic.look(table, label)
    assert found.classes == {"bad": y.sum(), "ok": (~y).sum()}
    assert str(found).startswith(f"600 rows: 'ok' {1 - y.mean():.1%}, 'bad' {y.mean():.1%}\n")
    label[:9] = np.char.upper(label[:9])
    assert any(
        "Classes 'BAD', 'bad' differ in capitals alone" in said
        for said in laconic.look(table, label).suspicions
    )
    paid = np.arange(N) % 40 / 10
    assert any("40 different numbers" in said for said in laconic.look(table, paid).suspicions)
    assert laconic.look(table, np.arange(N) % 10).suspicions == ()


@pytest.mark.parametrize("kind", ["bytes", "lists"])
def test_cells_of_parquet_mean_the_same_in_every_library(kind, tmp_path):
    cells = [b"ab", b"cd", None] * 20 if kind == "bytes" else [[1, 2], [3], None] * 20
    path = tmp_path / "x.parquet"
    pl.DataFrame({"x": cells}).write_parquet(path)
    texts = ["ab", "cd"] if kind == "bytes" else ["[1, 2]", "[3]"]
    for frame in (pl.read_parquet(path), pd.read_parquet(path), {"x": [*texts, None] * 20}):
        reading = Reading.learn(frame)
        assert reading.columns[0].kind == "category"
        assert list(reading.apply(frame).categories[0]) == texts


def test_dates_that_stand_for_none_are_called_missing():
    days = np.array(["2024-01-03", "9999-12-31", "2024-02-11"] * 10, dtype="datetime64[us]")
    for cells in (days, days.astype("datetime64[D]").astype(str)):
        found = laconic.look({"until": cells})
        assert "from 2024-01-03 to 9999-12-31 (--missing" in found.reading.columns[0].said
        read = laconic.look({"until": cells}, missing=["9999-12-31"]).reading
        made = read.apply({"until": cells}).column(0)
        np.testing.assert_array_equal(np.isnan(made), [False, True, False] * 10)


def test_polars_tells_texts_apart_as_python_does():
    draw = np.random.default_rng(0)
    few = draw.choice(["x", "yy", " NA", "", "é", None], 5_000).tolist()
    many = [str(k) for k in draw.integers(0, 10**6, 3_000)]
    for cells in ([], [None, None], ["a", " a ", "NA", None, "b"], few, many):
        found = raw.raw_column(
            nw.from_native(pl.Series("c", cells, pl.String), series_only=True), "c"
        )
        wanted = raw._of_texts(cells)
        assert found.texts == wanted.texts
        np.testing.assert_array_equal(found.values, wanted.values)


@pytest.mark.parametrize("most", [10**9, 5_000, 50, 1])
def test_the_least_keys_of_many_rows_are_those_of_all(most):
    values = np.floor(np.random.default_rng(0).random(100_000) * most)
    keys = evidence.number_keys(values, np.uint64(1))
    np.testing.assert_array_equal(evidence._least(keys), np.unique(keys)[: evidence.DISTINCT])
