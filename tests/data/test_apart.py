"""Groups and times of a scan: who is held out with whom, in any blocks."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from laconic import LaconicClassifier, SparseAdditiveClassifier, scan
from laconic.additive import tuning as additive_tuning
from laconic.data.scan.apart import TimeColumn, group_keys


def visits(n: int = 3_000, n_groups: int = 60, seed: int = 0) -> pl.DataFrame:
    """Patients whose own level a noisy column betrays: rows of one patient are alike."""
    draw = np.random.default_rng(seed)
    patient = draw.integers(0, n_groups, n)
    level = draw.normal(size=n_groups)[patient]
    day = np.sort(draw.integers(0, 400, n))[draw.permutation(n)]
    x = draw.normal(size=n)
    label = draw.random(n) < 1 / (1 + np.exp(-x - 2 * level))
    return pl.DataFrame(
        {
            "patient": [f"p{k}" for k in patient],
            "day": pl.Series(day).cast(pl.Int32).cast(pl.Date),
            "x": x,
            "hint": patient * 1.0,
            "label": label.astype(int),
        }
    )


def test_rows_of_a_group_are_held_out_together():
    rows = scan(visits(), "label", features=["x", "hint"], group="patient", block_rows=300)
    assert "patient" not in rows.columns
    rest, held = rows.hold_out(0.3, seed=1)
    gone = set(held["patient"])
    left = visits().filter(~pl.col("patient").is_in(list(gone)))
    assert rest.n_rows == len(left) == 3_000 - len(held)
    assert 0.3 <= len(held) / 3_000 < 0.34  # the last group held out may be too large
    again, more = rest.hold_out(0.3, seed=1)  # a guarantee's rows, of other groups
    assert not gone & set(more["patient"])
    assert again.n_rows == 3_000 - len(held) - len(more)
    assert len(np.unique(rows.groups_of(held))) == len(gone)


def test_the_last_rows_are_held_out():
    rows = scan(visits(), "label", features=["x", "hint"], time="day", block_rows=300)
    rest, held = rows.hold_out(0.25)
    cut = held["day"].min()
    frame = visits()
    assert rest.n_rows == (frame["day"] < cut).sum()
    assert len(held) == (frame["day"] >= cut).sum()
    assert 0.25 <= len(held) / 3_000 < 0.27  # all rows of the first day held out are
    _, more = rest.hold_out(0.25)
    assert more["day"].max() < cut
    assert 0.25 * 0.7 <= len(more) / 3_000 < 0.75 * 0.27


def test_folds_of_a_scan_keep_groups_apart(monkeypatch):
    """The column "hint" names the patient: folds that split one would think it useful."""
    frame = visits(n_groups=25)
    told = {}
    for group in (None, "patient"):
        columns = ["x", "hint"]
        rows = scan(frame, "label", features=columns, group=group, block_rows=500)
        model = LaconicClassifier(
            candidates=["additive"], reading=None, random_state=0, max_size=1000
        ).fit(rows)
        told[group] = model.reported_cost_.value
    X, y = frame.select("x", "hint"), frame["label"].to_numpy()
    held = LaconicClassifier(
        candidates=["additive"], reading=None, random_state=0, max_size=1000
    ).fit(X, y, groups=frame["patient"].to_numpy())
    assert told[None] < told["patient"] - 0.02
    assert told["patient"] == pytest.approx(held.reported_cost_.value, abs=0.03)


@pytest.mark.parametrize("most", [500, 50_000])
def test_the_additive_model_chooses_by_groups(most, monkeypatch):
    monkeypatch.setattr(additive_tuning, "SELECTION_ROWS", most)
    frame = visits(n_groups=25)
    seen = {}
    given = "laconic.additive.estimator.pairs_apart"
    from laconic.data.row_keys import pairs_apart

    def spy(keys, y, n_folds, seed, groups=None, time=None):
        pairs = pairs_apart(keys, y, n_folds, seed, groups, time)
        seen["groups"], seen["time"] = groups, time
        for train, test in pairs:
            assert groups is None or not set(groups[train]) & set(groups[test])
        return pairs

    monkeypatch.setattr(given, spy)
    model = SparseAdditiveClassifier(pairs=0, cv=3, random_state=0)
    rows = scan(frame, "label", features=["x", "hint"], group="patient", block_rows=700)
    model.fit(rows)
    assert len(np.unique(seen["groups"])) == 25
    model.fit(scan(frame, "label", features=["x"], time="day", block_rows=700))
    days = seen["time"]
    assert len(np.unique(days)) > 200
    order = np.random.default_rng(1).permutation(len(frame)).tolist()
    moved = scan(frame[order], "label", features=["x"], time="day", block_rows=700)
    first = model.predict_proba(frame.select("x"))
    np.testing.assert_allclose(model.fit(moved).predict_proba(frame.select("x")), first, atol=1e-9)


def test_groups_without_an_entry_and_times_without_one():
    import narwhals as nw

    column = nw.from_native(pl.Series("g", ["a", None, "a", None]), series_only=True)
    keys = group_keys(column, 10)
    assert keys[0] == keys[2]
    assert len(set(keys.tolist())) == 3
    frame = pl.DataFrame({"t": [1.0, None], "x": [1.0, 2.0], "label": [0, 1]})
    with pytest.raises(ValueError, match="'t' has rows without a time"):
        scan(frame, "label", time="t").hold_out(0.5)
    with pytest.raises(ValueError, match="not read as dates"):
        TimeColumn("t").values(["soon", "later"])
    with pytest.raises(ValueError, match="group='g' is not a column"):
        scan(frame, "label", group="g")
