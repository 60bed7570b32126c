"""Estimators fitted on scans of files: the same models as from memory."""

from __future__ import annotations

import pickle

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from estimator_cases import public_classes
from laconic import (
    ConvexRiskClassifier,
    CqBoostClassifier,
    DecisionClassifier,
    GrayZoneLogisticRegression,
    LaconicClassifier,
    MinimaxClassifier,
    ModlEncoder,
    ScorecardClassifier,
    SparseAdditiveClassifier,
    WeightedNaiveBayes,
    scan,
)
from laconic.bayes import SelectiveNaiveBayes
from laconic.data.tables import chunks
from laconic.data.tables.text import UnreadableFileError
from laconic.minimax import MinimaxPriorClassifier
from laconic.votes import LPBoostClassifier, MinCqClassifier, StumpVoters
from scan_rows import COSTS, NUMBERS, payments


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


@pytest.mark.parametrize("classes", [2, 3])
def test_a_scorecard_from_files_has_the_points_of_the_one_from_memory(frame, tmp_path, classes):
    columns = ["amount", "kind", "gap"]
    grade = np.digitize(frame["noise"].to_numpy() + frame["amount"].to_numpy(), [0.0, 1.0])
    label = frame["label"].to_numpy() if classes == 2 else grade
    frame.with_columns(label=pl.Series(label)).write_parquet(tmp_path / "rows.parquet")
    held = ScorecardClassifier(tol=1e-10).fit(frame.select(columns), label)
    rows = scan(tmp_path / "rows.parquet", "label", features=columns, block_rows=512)
    found = ScorecardClassifier(tol=1e-10).fit(rows)
    assert len(found.classes_) == classes
    assert 0.0 <= found.duality_gap_ <= 1e-10 * found.objective_
    np.testing.assert_allclose(found.objective_, held.objective_, rtol=1e-9)
    np.testing.assert_allclose(
        found.predict_proba(frame.select(columns)),
        held.predict_proba(frame.select(columns)),
        atol=2e-5,
    )
    np.testing.assert_allclose(found.feature_importances_, held.feature_importances_, atol=1e-4)


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


@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced"}, {"fit_intercept": False}])
def test_five_classes_fitted_jointly_from_a_scan_are_those_in_memory(frame, options):
    five = np.array(list("abcde"))[np.digitize(frame["amount"], [-1.0, -0.3, 0.3, 1.0])]
    shown = frame.with_columns(five=five, amount=frame["amount"] + 3 * frame["noise"])
    X, y, w = shown.select(NUMBERS), shown["five"].to_numpy(), shown["w"].to_numpy()
    rows = scan(shown, "five", weight="w", features=NUMBERS, block_rows=500)
    model = GrayZoneLogisticRegression(tol=1e-9, **options).fit(rows)
    assert model.duality_gap_ <= 1e-9 * model.objective_
    held = GrayZoneLogisticRegression(tol=1e-9, **options).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(model.predict_proba(X), held.predict_proba(X), atol=1e-8)
    assert rows.n_passes <= 16  # survey, class weights, 8 steps or so, 2 last ones, 2 gaps
    if not options:
        joint = ConvexRiskClassifier("logistic", multi_class="joint", tol=1e-9).fit(rows)
        np.testing.assert_allclose(joint.coef_, model.coef_, atol=1e-6)
    with pytest.raises(TypeError, match="caps of joint classes"):
        GrayZoneLogisticRegression(zone=0.6).fit(rows)


def test_predictions_of_a_scan_come_block_by_block(frame, folder):
    X = frame.drop("label", "w")
    model = WeightedNaiveBayes().fit(X, frame["label"].to_numpy())
    parts = list(model.predict_proba(scan(folder, block_rows=2_500)))
    assert [len(part) for part in parts] == [2_500, 2_500, 1_000]
    np.testing.assert_array_equal(np.concatenate(parts), model.predict_proba(X))
    labels = np.concatenate(list(model.predict(scan(folder))))
    np.testing.assert_array_equal(labels, model.predict(X))


@pytest.mark.parametrize("weight", [None, "w"])
def test_partial_fit_over_the_blocks_of_a_scan_is_that_over_arrays(frame, folder, weight):
    classes = public_classes().items()
    streaming = {name for name, known in classes if hasattr(known, "partial_fit")}
    assert streaming == {"WeightedNaiveBayes"}  # a new one needs a case here
    names = ["amount", "kind", "gap"]
    held, found, by_hand = WeightedNaiveBayes(), WeightedNaiveBayes(), WeightedNaiveBayes()
    for start in range(0, frame.height, 1_500):
        part = frame[start : start + 1_500]
        held.partial_fit(
            part.select(names),
            part["label"].to_numpy(),
            classes=["no", "yes"],
            sample_weight=None if weight is None else part[weight].to_numpy(),
        )
    rows = scan(folder, "label", features=names, weight=weight, block_rows=1_500)
    assert found.partial_fit(rows) is found
    for X, y, w in rows.given_blocks():
        by_hand.partial_fit(X, y, classes=["no", "yes"], sample_weight=w)
    for model in (found, by_hand):
        assert model.weights_.tobytes() == held.weights_.tobytes()
        assert model.criterion_ == held.criterion_
        for name, partition in held.encoder_.partitions_.items():
            other = model.encoder_.partitions_[name]
            assert other.class_weights.tobytes() == partition.class_weights.tobytes()
    assert found.score(frame.select(names), frame["label"].to_numpy()) > 0.75
    with pytest.raises(ValueError, match="leave y and sample_weight out"):
        found.partial_fit(rows, frame["label"].to_numpy())
    with pytest.raises(ValueError, match=r"scan\(target=\)"):
        WeightedNaiveBayes().partial_fit(scan(folder))


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


def test_what_cannot_be_scanned_says_so(frame, folder, tmp_path):
    with pytest.raises(UnreadableFileError, match="names no file"):
        scan(tmp_path / "no*.parquet", "label")
    with pytest.raises(TypeError, match="arrays in memory go to fit"):
        scan(np.zeros((3, 2)), "label")
    with pytest.raises(ValueError, match="A cluster reads files"):
        scan(frame, "label", cluster="tcp://nowhere:1")
    rows = scan(folder, "label", features=NUMBERS)
    others = LPBoostClassifier(), MinimaxPriorClassifier(GrayZoneLogisticRegression())
    for model in (*others, ScorecardClassifier(pairs=1), ScorecardClassifier("lines")):
        with pytest.raises(TypeError, match="needs its rows in memory"):
            model.fit(rows)
    for model, what in (
        (MinimaxClassifier(profiles="tree"), "profiles='tree'"),
        (MinimaxClassifier(cv=StratifiedKFold(3)), "splitter as cv"),
        (SparseAdditiveClassifier(cv=StratifiedKFold(3)), "splitter as cv"),
        (CqBoostClassifier(cv=StratifiedKFold(3)), "splitter or folds as cv"),
        (CqBoostClassifier("forest"), "CqBoostClassifier needs"),
        (LPBoostClassifier(), "LPBoostClassifier needs"),
    ):
        with pytest.raises(TypeError, match=what):
            model.fit(rows, None)
    with pytest.raises(ValueError, match="at most 1500 stumps"):
        CqBoostClassifier(StumpVoters(n_thresholds=800)).fit(rows)
    with pytest.raises(TypeError, match="solver='dgml'"):
        WeightedNaiveBayes(solver="dgml").fit(rows)
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
    model = DecisionClassifier(WeightedNaiveBayes(), costs=COSTS, prior={"no": 0.8, "yes": 0.2})
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


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"binning": "width"},
        {"binning": "modl"},
        {"binning": "kmeans", "tie": "deterministic"},
        {"smoothing": "error"},
        {"cv": None, "n_bins": 8},
    ],
)
def test_minimax_from_files_is_the_one_from_memory(frame, folder, options):
    X, y = frame.drop("label", "w"), frame["label"].to_numpy()
    held = MinimaxClassifier(**options).fit(X, y)
    rows = scan(folder, "label", features=list(X.columns), block_rows=500)
    found = MinimaxClassifier(**options).fit(rows)
    assert found.minimax_risk_ == held.minimax_risk_
    assert found.class_risks_.tobytes() == held.class_risks_.tobytes()
    assert found.n_profiles_ == held.n_profiles_
    parts = list(found.predict_proba(scan(folder)))
    np.testing.assert_array_equal(np.concatenate(parts), held.predict_proba(X))
    if found.class_risks_oof_ is not None:
        # other folds: risks of about 4,000 and 2,000 rows
        np.testing.assert_allclose(found.class_risks_oof_, held.class_risks_oof_, atol=0.02)
        assert rows.n_passes == 4


def test_held_out_risks_of_a_scan_are_those_of_its_folds(frame):
    """The folds of a scan, given to the fit in memory as pairs of places."""
    from laconic.core.folds import HashedFolds
    from laconic.data.tables.columns import Schema

    X, y = frame.drop("label", "w"), frame["label"].to_numpy()
    fold = HashedFolds(5, 0).of(Schema.learn(X).table)
    assert np.bincount(fold).min() > 0.9 * len(y) / 5
    pairs = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(5)]
    held = MinimaxClassifier(cv=pairs).fit(X, y)
    found = MinimaxClassifier().fit(scan(frame.drop("w"), "label", block_rows=700))
    np.testing.assert_allclose(found.class_risks_oof_, held.class_risks_oof_, rtol=1e-12)


@pytest.mark.parametrize(
    "model",
    [
        CqBoostClassifier(mu="least-squares"),
        CqBoostClassifier(StumpVoters("quantile", 6), mu="bound"),
        CqBoostClassifier(mu=0.3, constraint="oriented"),
        CqBoostClassifier(StumpVoters("midpoints"), mu=0.3, max_voters=3),
        MinCqClassifier(mu=0.2, mu_unit="share"),
    ],
)
def test_votes_from_files_are_those_from_memory(frame, folder, model):
    names = ["amount", "count", "kind", "gap"]
    X, y = frame.select(names), frame["label"].to_numpy()
    for weight in (None, "w"):
        w = None if weight is None else frame[weight].to_numpy()
        held = clone(model).fit(X, y, sample_weight=w)
        rows = scan(folder, "label", weight=weight, features=names, block_rows=500)
        found = clone(model).fit(rows)
        assert found.n_voters_ == held.n_voters_
        for name in ("c_bound_", "mu_", "mu_max_", "gibbs_risk_", "disagreement_"):
            np.testing.assert_allclose(getattr(found, name), getattr(held, name), rtol=1e-9)
        np.testing.assert_allclose(found.vote(X), held.vote(X), atol=1e-9)
        bounds = zip(found.pac_bayes_bounds(), held.pac_bayes_bounds(), strict=True)
        for one, other in bounds:
            np.testing.assert_allclose(one.value, other.value, rtol=1e-9)


def test_voters_that_are_copies_or_complements_count_as_in_memory(frame):
    X = frame.select("amount", "count").with_columns(
        minus=-pl.col("amount"), again=pl.col("amount") * 2.0
    )
    y = frame["label"].to_numpy()
    for model in (MinCqClassifier(mu=0.3, mu_unit="share"), CqBoostClassifier(mu="bound")):
        held = clone(model).fit(X, y)
        found = clone(model).fit(scan(X.with_columns(label=pl.Series(y)), "label"))
        assert found.n_voters_ == held.n_voters_
        np.testing.assert_allclose(found.vote(X), held.vote(X), atol=1e-9)
        assert found.votes_[0].divergence == pytest.approx(held.votes_[0].divergence)


def test_mu_and_calibration_of_a_scan_come_from_its_folds(frame):
    """The same folds in memory: the same place on the path, the same line of calibration."""
    from laconic.core.folds import HashedFolds
    from laconic.data.tables.columns import Schema

    names = ["amount", "count", "kind", "gap"]
    X, y = frame.select(names), frame["label"].to_numpy()
    fold = HashedFolds(4, 0).of(Schema.learn(X).table)
    pairs = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(4)]
    for model in (CqBoostClassifier, MinCqClassifier):
        held = model(cv=pairs, proba="calibrated").fit(X, y)
        rows = scan(frame, "label", features=names, block_rows=700)
        found = model(cv=4, proba="calibrated").fit(rows)
        one, other = found.votes_[0], held.votes_[0]
        np.testing.assert_allclose(
            one.curve["held_out_loss"], other.curve["held_out_loss"], rtol=1e-5
        )
        assert found.n_voters_ == held.n_voters_
        np.testing.assert_allclose(found.vote(X), held.vote(X), atol=1e-9)
        np.testing.assert_allclose(
            [one.slope, one.intercept], [other.slope, other.intercept], atol=1e-4
        )
        given = model(cv=4, mu=0.2, mu_unit="share", proba="calibrated")
        alone = model(cv=pairs, mu=0.2, mu_unit="share", proba="calibrated").fit(X, y)
        np.testing.assert_allclose(
            given.fit(rows).predict_proba(X), alone.predict_proba(X), atol=1e-3
        )


@pytest.mark.parametrize("weight", [None, "w"])
def test_an_additive_model_from_files_is_the_one_from_memory(frame, folder, weight):
    X, y = frame.drop("label", "w"), frame["label"].to_numpy()
    w = None if weight is None else frame[weight].to_numpy()
    held = SparseAdditiveClassifier(random_state=0).fit(X, y, sample_weight=w)
    rows = scan(folder, "label", weight=weight, features=list(X.columns), block_rows=500)
    found = SparseAdditiveClassifier(random_state=0).fit(rows)
    assert rows.n_passes == 3  # the survey, keys of the columns and axes, the rows
    assert found.objective_ == held.objective_
    assert found.duality_gap_ == held.duality_gap_
    np.testing.assert_array_equal(
        np.concatenate(list(found.predict_proba(scan(folder)))), held.predict_proba(X)
    )


def test_votes_of_three_classes_from_a_scan(frame):
    y = np.where(frame["amount"] > 1, "high", frame["label"])
    # numbers only: with the constant voter, all the categories of a text make many votes one
    rows = frame.select(NUMBERS).with_columns(label=pl.Series(y))
    held = CqBoostClassifier(mu="least-squares").fit(rows.drop("label"), y)
    found = CqBoostClassifier(mu="least-squares").fit(scan(rows, "label", block_rows=900))
    assert list(found.classes_) == ["high", "no", "yes"]
    np.testing.assert_allclose(
        found.predict_proba(rows.drop("label")), held.predict_proba(rows.drop("label")), atol=1e-9
    )


def test_choosing_on_a_sample_and_fitting_on_all(frame, folder, monkeypatch):
    from laconic.choose import estimator as laconic_classifier

    monkeypatch.setattr(laconic_classifier, "CHOICE_ROWS", 2_000)
    rows = scan(folder, "label", features=["amount", "kind", "gap"], block_rows=700)
    model = LaconicClassifier(costs=COSTS, random_state=0).fit(rows)
    assert set(model.comparison_["candidate"]) >= {"bayes", "votes", "additive", "minimax"}
    alone = clone(model.estimator_).fit(rows)
    X = frame.select("amount", "kind", "gap")
    np.testing.assert_array_equal(alone.predict_proba(X), model.estimator_.predict_proba(X))
    shares = frame["label"].value_counts(sort=True)["count"].to_numpy() / frame.height
    np.testing.assert_allclose(sorted(model.decision_.train_prior_), sorted(shares))
    assert model.threshold_ == pytest.approx(1 / 6)
    decided = np.concatenate(list(model.predict(scan(folder))))
    np.testing.assert_array_equal(decided, model.predict(X))
    with pytest.raises(ValueError, match="rules fits on rows in memory only"):
        LaconicClassifier(candidates=["bayes", "rules"]).fit(rows)


@pytest.mark.parametrize("long_group", [100, 10_000])
def test_chunks_of_parquet_hold_every_row_in_order(long_group, tmp_path, monkeypatch):
    """Slices of polars and, for long row groups, pages of pyarrow give the same cells."""
    monkeypatch.setattr(chunks, "_LONG_GROUP", long_group)
    draw = np.random.default_rng(0)
    n = 5_000
    frame = pl.DataFrame(
        {
            "number": draw.normal(size=n),
            "whole": pl.Series(draw.integers(0, 9, n)).cast(pl.Int16),
            "text": draw.choice(["a", "b", None], n),
            "kind": pl.Series(draw.choice(["x", "y"], n)).cast(pl.Categorical),
            "day": pl.Series(draw.integers(0, 9_000, n)).cast(pl.Int32).cast(pl.Date),
            "moment": pl.Series(draw.integers(0, 2**50, n)).cast(pl.Datetime("us", "UTC")),
            "yes": draw.random(n) < 0.5,
        }
    )
    frame.write_parquet(tmp_path / "rows.parquet", row_group_size=4_000)
    wanted = ["moment", "number", "text", "kind", "yes", "day", "whole"]
    found = list(chunks.read_chunks(tmp_path / "rows.parquet", columns=wanted, chunk_rows=300))
    assert max(len(part) for part in found) <= 300
    whole = pl.concat(found)
    assert whole.schema == frame.select(wanted).schema
    assert whole.equals(frame.select(wanted))


def test_a_long_row_group_that_is_damaged_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "_LONG_GROUP", 100)
    place = tmp_path / "rows.parquet"
    pl.DataFrame({"x": np.random.default_rng(0).normal(size=50_000)}).write_parquet(place)
    held = bytearray(place.read_bytes())
    held[100:200_000] = bytes(199_900)
    place.write_bytes(held)
    with pytest.raises(UnreadableFileError, match="cannot be read"):
        list(chunks.read_chunks(place, chunk_rows=300))


def test_passes_are_counted_on_through_scans_of_the_same_rows():
    rows = scan(payments(2_000), "label", block_rows=100)
    told = []
    rows.on_run = lambda number, done, runs: told.append(number)
    read = rows.read_by(rows.look())
    rest, _ = read.hold_out(0.25)
    assert rest.n_rows < 2_000  # the survey
    assert sorted(set(told)) == [1, 2, 3]
    assert rest.n_passes == 3
