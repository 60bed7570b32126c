"""LaconicClassifier keeps promises by rows that neither the fit nor the choice has seen."""

from __future__ import annotations

import numpy as np
import pytest

from laconic import LaconicClassifier, PlainLogisticRegression

COSTS = {"fp": 1.0, "fn": 4.0}


class Spy(PlainLogisticRegression):
    """Notes the first column of the rows that it is fitted on."""

    seen: list[np.ndarray] = []

    def fit(self, X, y, sample_weight=None):
        table = X if isinstance(X, np.ndarray) else X.column(0)
        Spy.seen.append(np.asarray(table if table.ndim == 1 else table[:, 0]))
        return super().fit(X, y, sample_weight)


def rows_of(n, seed, share=0.3):
    rng = np.random.default_rng(seed)
    bad = rng.random(n) < share
    return rng.normal(size=(n, 3)) + 1.0 * bad[:, None], np.where(bad, "bad", "ok")


def model_of(**more):
    given = {"candidates": {"plain": Spy()}, "positive": "bad", "guarantee": "recall>=0.8"}
    return LaconicClassifier(COSTS, cv=2, **given | more)


def fitted_on():
    found = np.unique(np.concatenate(Spy.seen))
    Spy.seen.clear()
    return found


def test_the_rows_that_promise_are_in_no_fit():
    X, y = rows_of(400, 0)
    Spy.seen.clear()
    model = model_of(calibration=0.3).fit(X, y)
    used = fitted_on()
    assert model.n_calibration_ == 400 - len(used)
    assert 80 < model.n_calibration_ < 170
    # the promise is that of the threshold on the rows left over
    left = ~np.isin(X[:, 0], used)
    p = model.predict_proba(X[left])[:, 0]
    recall = (p[y[left] == "bad"] > model.guaranteed_.threshold).mean()
    assert model.guaranteed_.promises[0].measured == pytest.approx(recall)
    assert model.threshold_ == model.decision_.threshold_


def test_groups_and_times_are_honoured():
    X, y = rows_of(600, 1)
    groups, time = np.arange(600) // 2, np.arange(600)
    Spy.seen.clear()
    model_of().fit(X, y, groups=groups)
    used = np.isin(X[:, 0], fitted_on())
    assert not set(groups[used]) & set(groups[~used])
    model_of().fit(X, y, time=time)
    used = np.isin(X[:, 0], fitted_on())
    assert time[used].max() < time[~used].min()


def test_too_few_rows_are_told_before_any_fit():
    X, y = rows_of(400, 2, share=0.1)
    Spy.seen.clear()
    with pytest.raises(ValueError, match=r"at least 299 positive rows .* held out are \d+"):
        model_of(guarantee="recall>=0.99").fit(X, y)
    assert not Spy.seen


def test_capacity_and_bounds_of_the_mix():
    X, y = rows_of(2000, 3)
    model = model_of(guarantee=None, capacity="100/500").fit(X, y)
    assert (model.predict(X) == "bad").mean() < 0.25
    assert [str(p.guarantee) for p in model.guaranteed_.promises] == ["alarms<=0.2"]
    boxed = model_of(guarantee="cost<=0.75", prior_bounds={"bad": (0.1, 0.5)}).fit(X, y)
    assert boxed.guaranteed_.shares == (0.1, 0.5)
    for share in (0.1, 0.5):
        T, truth = rows_of(4000, 4, share)
        said = boxed.predict(T)
        assert np.where(said == truth, 0, np.where(truth == "bad", 4, 1)).mean() <= 0.75
    with pytest.raises(ValueError, match="decides by itself"):
        model_of(candidates=["minimax"]).fit(X, y)
    with pytest.raises(ValueError, match="capacity"):
        model_of(capacity="0/500").fit(X, y)


def test_rows_that_stay_in_files_hold_promises_too(tmp_path):
    pl = pytest.importorskip("polars")
    from laconic.data.scan.scan import scan

    X, y = rows_of(3000, 5)
    pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "label": y}).write_parquet(tmp_path / "t.parquet")
    rows = scan(str(tmp_path / "t.parquet"), "label")
    model = model_of(candidates=["bayes"], calibration=0.4).fit(rows)
    assert 1000 < model.n_calibration_ < 1400
    assert model.guaranteed_.promises[0].measured >= 0.8
    again, frame = rows.hold_out(0.2)
    rest, more = again.hold_out(0.25)
    kept = {len(frame), len(more), int(rest.class_weights().sum())}
    assert len(set(frame["a"]) & set(more["a"])) == 0
    assert sum(kept) == 3000
