"""Watching a model: class mix, cost, columns and labels, against simulations with a known truth."""

from __future__ import annotations

import numpy as np
import pytest

from laconic import DecisionClassifier, PlainLogisticRegression
from laconic.data.tables.text import TextFormat
from laconic.decide.reference import ColumnReference, Reference, reference_of
from laconic.watching.columns import column_test
from laconic.watching.labelled import Band
from laconic.watching.mix import estimate_mix, likeliest_mix
from laconic.watching.render import sentences
from laconic.watching.sequential import MeanWatch
from laconic.watching.watch import Counter, conclude, watch

COSTS = {"bad": {"ok": 5}, "ok": {"bad": 1}}


def drawn(rng, n, share, change=None):
    """Rows of two classes; ``change`` moves what is not the mix."""
    bad = rng.random(n) < share
    x = rng.normal(1.2 * bad, 1.0)
    z = rng.normal(0.8 * bad, 1.0) * (2.0 if change == "scale" else 1.0)
    word = np.where(rng.random(n) < np.where(bad, 0.7, 0.3), "a", "b")
    if change == "flip":
        word = np.where(word == "a", "b", "a")
    if change == "unit":
        x = 100 * x
    return {"x": x, "z": z, "word": word.astype(object)}, np.where(bad, "bad", "ok")


@pytest.fixture(scope="module")
def model():
    X, y = drawn(np.random.default_rng(0), 2000, 0.15)
    return DecisionClassifier(PlainLogisticRegression(), COSTS).fit(X, y)


def cost_of(model, share):
    X, y = drawn(np.random.default_rng(99), 100_000, share)
    said = model.predict(X)
    return np.where(y == said, 0, np.where(y == "bad", 5, 1)).mean()


@pytest.mark.parametrize(("n", "share"), [(200, 0.15), (2000, 0.05), (2000, 0.4)])
def test_intervals_cover_and_alarms_are_rare(model, n, share):
    rng = np.random.default_rng([n, int(100 * share)])
    true_cost, runs = cost_of(model, share), 60
    mix = cost = alarms = 0
    for r in range(runs):
        found = watch(model, drawn(rng, n, share)[0], reference=drawn(rng, 1500, 0.15), seed=r)
        mix += found.mix.low[0] <= share <= found.mix.high[0]
        cost += found.cost[1] <= true_cost <= found.cost[2]
        alarms += found.alarm
    assert mix / runs >= 0.86  # nominal 95 %; 60 runs have a standard error of 3 %
    assert cost / runs >= 0.82
    assert alarms / runs <= 0.12


@pytest.mark.parametrize("change", ["scale", "flip", "unit"])
def test_what_is_not_the_mix_is_noticed(model, change):
    rng = np.random.default_rng(1)
    reference = drawn(rng, 1500, 0.15)
    found = watch(model, drawn(rng, 500, 0.15, change)[0], reference=reference)
    assert found.alarm
    moved = {"scale": "z", "flip": "word", "unit": "x"}[change]
    assert found.moved[0].name == moved
    assert found.to_dict()["moved"][0]["column"] == moved


def test_adopting_the_new_mix_saves(model):
    rng = np.random.default_rng(2)
    found = watch(model, drawn(rng, 5000, 0.6)[0], reference=drawn(rng, 4000, 0.15))
    assert found.adopted_cost < found.cost[0]
    adapted = DecisionClassifier(
        PlainLogisticRegression(), COSTS, prior={"bad": 0.6, "ok": 0.4}
    ).fit(*drawn(np.random.default_rng(0), 2000, 0.15))
    X, y = drawn(np.random.default_rng(98), 50_000, 0.6)
    paid = np.where(y == adapted.predict(X), 0, np.where(y == "bad", 5, 1)).mean()
    assert found.adopted_cost == pytest.approx(paid, rel=0.1)
    low, high = found.mix.low[-1], found.mix.high[-1]
    assert low - 1e-9 <= found.cautious[-1] <= high + 1e-9


def test_the_mix_is_the_likeliest_one():
    """Two classes by halving, three by EM: both against a grid."""
    rng = np.random.default_rng(3)
    for k in (2, 3):
        shares = rng.dirichlet(np.ones(6), k)
        seen = rng.multinomial(500, rng.dirichlet(np.ones(k)) @ shares).astype(float)
        found = likeliest_mix(shares, seen)
        grid = rng.dirichlet(np.ones(k), 20_000)
        best = (np.log(grid @ shares) @ seen).max()
        assert np.log(found @ shares) @ seen >= best - 0.01  # far below what 500 rows can tell


def test_three_classes_are_watched():
    rng = np.random.default_rng(4)
    f = rng.dirichlet(np.ones(9), 3)
    reference = np.array([rng.multinomial(600, p) for p in f], dtype=float)
    mix = np.array([0.2, 0.5, 0.3])
    hits = 0
    for r in range(40):
        found = estimate_mix(reference, rng.multinomial(1000, mix @ f).astype(float), seed=r)
        hits += ((found.low <= mix) & (mix <= found.high)).all()
    assert hits >= 30


def test_a_wealthy_gambler_is_rare_when_nothing_moved():
    rng = np.random.default_rng(5)
    alarms = 0
    for _ in range(300):
        test = MeanWatch(bound=0.3, low=0.0, high=1.0, doubt=0.1)
        test.add(rng.random(400) < 0.3)
        alarms += test.alarm_at() is not None
    assert alarms / 300 <= 0.1
    late = MeanWatch(bound=0.3, low=0.0, high=1.0)
    late.add(rng.random(100) < 0.3)
    late.add(rng.random(500) < 0.6)
    assert 100 < late.alarm_at() < 400


def test_labels_show_that_costs_rose(model):
    rng = np.random.default_rng(6)
    reference = drawn(rng, 1500, 0.15)
    X, y = drawn(rng, 600, 0.15)
    assert watch(model, X, y, reference=reference).labelled["alarm_at"] is None
    wrong = np.where(rng.random(600) < 0.5, "bad", y)
    found = watch(model, X, wrong, reference=reference)
    assert found.alarm
    assert found.labelled["alarm_at"] < 600


def test_a_band_counts_the_rows_that_it_is_about():
    """The alarm names the row among all, whatever came at once."""
    rng = np.random.default_rng(8)
    wrong, counts = (rng.random(900) < 0.5).astype(float), rng.random(900) < 0.4
    alone = MeanWatch(0.2, 0.0, 1.0)
    alone.add(wrong[counts])
    row = int(np.flatnonzero(counts)[alone.alarm_at() - 1]) + 1
    for size in (7, 100, 900):
        band = Band(0.2, 0.0, 1.0, 0.05)
        for start in range(0, 900, size):
            band.add(wrong[start : start + size], counts[start : start + size])
        assert (band.alarm_at, band.rows, band.seen) == (row, counts.sum(), 900)
        assert band.mean == wrong[counts].mean()


@pytest.mark.parametrize("kind", [int, float, bool, str])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_labels_of_a_file_that_have_come(tmp_path, kind, ending):
    """Numbers and truth values are texts in a CSV; some labels have not come yet."""
    pl = pytest.importorskip("polars")
    from laconic.job.scoring import watch_file

    rng = np.random.default_rng(4)

    def rows(n):
        y = (rng.random(n) < 0.3).astype(int)
        return {"x": rng.normal(y, 1.0)}, y.astype(kind)

    fitted = DecisionClassifier(PlainLogisticRegression(), positive=kind(1)).fit(*rows(300))
    fitted.reference_ = reference_of(fitted, *rows(300))
    X, y = rows(200)
    late = [cell if k < 120 else None for k, cell in enumerate(y.tolist())]
    path = tmp_path / f"new.{ending}"
    frame = pl.DataFrame({**X, "y": late})
    (frame.write_csv if ending == "csv" else frame.write_parquet)(path)
    found = watch_file(fitted, path, TextFormat(None, None), "y").labelled
    assert found["rows"] == 120
    assert found["cost"] == pytest.approx(np.mean(fitted.predict(X)[:120] != y[:120]))


def test_chunks_count_as_the_whole(model):
    rng = np.random.default_rng(7)
    reference = reference_of(model, *drawn(rng, 800, 0.15))
    X, _ = drawn(rng, 900, 0.3)
    pieces = [{name: cells[i : i + 250] for name, cells in X.items()} for i in range(0, 900, 250)]
    whole = watch(model, X, reference=reference)
    parts = watch(model, None, reference=reference, chunks=pieces)
    assert whole.to_dict() == parts.to_dict()


def test_a_reference_is_plain_numbers_and_comes_back(model):
    import json

    rng = np.random.default_rng(8)
    reference = reference_of(model, *drawn(rng, 500, 0.15))
    again = Reference.from_dict(json.loads(json.dumps(reference.to_dict())))
    counter, other = Counter(model, reference), Counter(model, again)
    for one in (counter, other):
        one.add(drawn(np.random.default_rng(9), 300, 0.3)[0])
    assert conclude(counter).to_dict() == conclude(other).to_dict()
    broken = reference.to_dict() | {"bins": [10**6] * len(reference.bins)}
    with pytest.raises(ValueError, match="does not fit"):
        Reference.from_dict(broken)


def test_new_texts_are_counted_and_refusals_are_sentences(model):
    rng = np.random.default_rng(10)
    reference = drawn(rng, 800, 0.15)
    X, _ = drawn(rng, 300, 0.15)
    X["word"][:40] = "zebra"
    found = watch(model, X, reference=reference)
    assert found.unseen == {"word": 40}
    assert found.alarm
    with pytest.raises(ValueError, match="no reference"):
        watch(model, X)
    with pytest.raises(ValueError, match="no rows"):
        watch(model, {name: cells[:0] for name, cells in X.items()}, reference=reference)


def test_the_shell_watches_adopts_and_alarms(tmp_path, capsys):
    """A file in; sentences, JSON and a page out; exit code 3 on an alarm."""
    import csv
    import json

    from laconic import load, save
    from laconic.cli import main

    def written(name, rows):
        X, y = rows
        with (tmp_path / name).open("w", newline="") as out:
            writer = csv.writer(out)
            writer.writerow([*X, "label"])
            writer.writerows(zip(*X.values(), y, strict=True))
        return str(tmp_path / name)

    rng = np.random.default_rng(11)
    fitted = DecisionClassifier(PlainLogisticRegression(), COSTS).fit(*drawn(rng, 1500, 0.15))
    path, again = tmp_path / "model.json", tmp_path / "again.json"
    save(fitted, path, reference=reference_of(fitted, *drawn(rng, 1500, 0.15)))
    more = written("more.csv", drawn(rng, 1500, 0.5))
    with pytest.raises(SystemExit) as done:
        main(["watch", str(path), more, "--labels", "label"])
    assert done.value.code == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "No alarm" in said
    assert "laconic adopt" in said
    with pytest.raises(SystemExit) as done:
        main(["watch", str(path), more, "--language", "fr", "-o", str(tmp_path / "page.html")])
    assert done.value.code == 0
    assert capsys.readouterr().out.startswith("Pas d'alerte : sur ces 1\u202f500 lignes, ")
    assert '<html lang="fr">' in (tmp_path / "page.html").read_text(encoding="utf-8")
    with pytest.raises(SystemExit) as done:
        main(["adopt", str(path), "--prior", "bad=0.5", "-o", str(again)])
    assert done.value.code == 0
    assert load(again).prior_.tolist() == [0.5, 0.5]
    assert json.loads(again.read_text())["history"][0]["digest"].startswith("sha256:")
    with pytest.raises(SystemExit) as done:
        main(["watch", str(again), more, "--json"])
    assert done.value.code == 0
    capsys.readouterr()
    broken = written("broken.csv", drawn(rng, 800, 0.15, "unit"))
    with pytest.raises(SystemExit) as done:
        main(["watch", str(path), broken, "-o", str(tmp_path / "page.html")])
    assert done.value.code == 3
    assert "has moved" in (tmp_path / "page.html").read_text()


def test_a_column_with_a_rare_bin_is_compared_with_itself():
    """Forty rows of a class leave the bin of missing cells rare; no alarm when nothing moved."""
    shares = np.array([*[0.095] * 10, 0.0, 0.05])
    few = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        counts = np.array([rng.multinomial(n, shares) for n in (40, 1900)], dtype=float)
        column = ColumnReference("days", np.arange(9.0), None, counts)
        seen = rng.multinomial(4000, shares).astype(float)
        few += column_test(column, seen, np.array([[0.08, 0.92]]))[0] < 0.01
    assert few <= 6


def test_a_moved_column_shows_though_a_class_has_few_rows():
    """Fifty rows of a class in ten bins: no class mix makes all rows move upwards."""
    often = np.full(10, 0.1)
    rising = np.array([0.02, 0.04, 0.04, 0.08, 0.04, 0.04, 0.15, 0.14, 0.18, 0.27])
    doubled = np.array([0.034, 0.052, 0.06, 0.064, 0.076, 0.106, 0.109, 0.12, 0.15, 0.229])
    region = np.column_stack([np.linspace(0.05, 0.25, 41), np.linspace(0.95, 0.75, 41)])
    few = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        counts = np.array([rng.multinomial(n, f) for n, f in ((50, rising), (1950, often))])
        known = np.hstack([counts, np.zeros((2, 2))])
        column = ColumnReference("amount", np.arange(9.0), None, known)

        def p_of(shares, column=column, rng=rng):
            seen = np.append(rng.multinomial(2000, shares), [0.0, 0.0])
            return column_test(column, seen, region)[0]

        assert p_of(doubled) < 1e-3
        few += p_of(0.15 * rising + 0.85 * often) < 0.01
    assert few <= 6


@pytest.mark.parametrize(("n", "share"), [(40, 0.15), (200, 0.05), (200, 0.5), (5000, 0.3)])
def test_the_mix_is_in_its_interval_as_often_as_it_says(n, share):
    """Nominal 95 %, 250 draws: a standard error of 1.4 %."""
    shares = np.array([[0.5, 0.25, 0.13, 0.08, 0.04], [0.04, 0.1, 0.16, 0.3, 0.4]])
    held = 0
    for seed in range(250):
        rng = np.random.default_rng([seed, n])
        known = np.array([rng.multinomial(m, f) for m, f in zip((1200, 200), shares, strict=True)])
        seen = rng.multinomial(n, np.array([1 - share, share]) @ shares)
        found = estimate_mix(known.astype(float), seen.astype(float), seed=seed)
        held += found.low[1] <= share <= found.high[1]
    assert 0.9 <= held / 250 <= 0.985


def test_one_row_says_next_to_nothing():
    known = np.array([[700.0, 200.0, 100.0], [20.0, 40.0, 140.0]])
    for place in range(3):
        found = estimate_mix(known, np.eye(3)[place])
        assert found.low[1] < 0.05
        assert found.high[1] > 0.95


@pytest.mark.parametrize("name", ["theft=0.2", "bad=0.7"])
def test_a_mix_of_other_classes_is_refused(tmp_path, capsys, name):
    from laconic import save
    from laconic.cli import main

    fitted = DecisionClassifier(PlainLogisticRegression(), COSTS)
    save(fitted.fit(*drawn(np.random.default_rng(0), 300, 0.3)), tmp_path / "model.json")
    given = [name, "ok=0.7"] if name == "bad=0.7" else [name]
    priors = [word for one in given for word in ("--prior", one)]
    with pytest.raises(SystemExit) as done:
        main(["adopt", str(tmp_path / "model.json"), *priors, "-o", str(tmp_path / "new.json")])
    assert done.value.code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert {
        "theft=0.2": "'theft' is no class of the model",
        "bad=0.7": "sum to 1",
    }[name] in said
    assert not (tmp_path / "new.json").exists()


@pytest.mark.parametrize("asked", ["alarms<=0.4", "cost<=1.5", "error<=0.4"])
def test_promises_that_end_with_the_mix_do_not_stop_the_watch(asked):
    rng = np.random.default_rng(0)
    reject = 0.5 if asked.startswith("error") else None
    fitted = DecisionClassifier(
        PlainLogisticRegression(), COSTS, positive="bad", guarantee=asked, reject_cost=reject
    ).fit(*drawn(rng, 3000, 0.15))
    found = watch(fitted, drawn(rng, 400, 0.4)[0], reference=drawn(rng, 1500, 0.15))
    assert found.mix.low[0] < 0.4 < found.mix.high[0]
    assert found.adopted_cost == found.cost[0]  # no rule for another mix keeps a promise
    assert found.thresholds["adopted"] is None


def test_the_threshold_for_the_new_mix_decides_as_the_model_that_adopts_it(model, tmp_path):
    from laconic import load, save
    from laconic.export.model_file import adopt

    rng = np.random.default_rng(1)
    X, _ = drawn(rng, 1500, 0.5)
    found = watch(model, X, reference=drawn(rng, 1500, 0.15))
    save(model, tmp_path / "old.json")
    for name, prior in (("adopted", found.mix.prior), ("cautious", found.cautious)):
        adopt(tmp_path / "old.json", tmp_path / "new.json", prior=prior)
        said = load(tmp_path / "new.json").predict(X)
        cut = found.thresholds[name]
        assert (said == np.where(model.predict_proba(X)[:, 1] > cut, "ok", "bad")).all()
    assert (model.predict(X) == "ok").sum() > (said == "ok").sum()
    assert found.to_dict()["thresholds"]["now"] == pytest.approx(5 / 6)


def test_what_was_watched_is_told_as_a_reader_reads_it(model):
    """Chances of 1e-25, shares of 0.0 % of one cell, and days since 2020 are for nobody."""
    rng = np.random.default_rng(5)
    X, _ = drawn(rng, 3000, 0.15, "unit")
    X["word"][0] = "never"
    found = watch(model, X, reference=drawn(rng, 1500, 0.15))
    said = " ".join(sentences(found))
    assert "p below 1e-9" in said
    assert "e-" not in said.replace("1e-9", "")
    assert "'word' has 1 cell (0.033%) with a text never seen before." in said
    name, edges = "seen: days since 2020-01-01", np.array([31.0, 60.0])
    days = ColumnReference(name, edges, None, np.zeros((2, 5)))
    assert [days.label(b) for b in range(3)] == [
        "\u2264 2020-02-01",
        "> 2020-02-01",
        "> 2020-03-01",
    ]


SEEN, MONTH = "seen: days since 2020-01-01", "seen: month"


@pytest.fixture(scope="module")
def dated():
    """Rows of four years and a model that reads the day of each."""
    rng = np.random.default_rng(0)
    X, y = drawn(rng, 4000, 0.15)
    X |= {SEEN: rng.uniform(0, 1460, 4000), MONTH: rng.integers(1, 13, 4000).astype(float)}
    train, rest = np.arange(2000), np.arange(2000, 4000)
    fitted = DecisionClassifier(PlainLogisticRegression(), COSTS).fit(at(X, train), y[train])
    return fitted, reference_of(fitted, at(X, rest), y[rest])


def at(X, rows):
    return {name: cells[rows] for name, cells in X.items()}


def test_days_that_pass_are_told_and_are_no_alarm(dated):
    """The rows of the month after, of the same world otherwise: false alarms stay rare."""
    fitted, reference = dated
    alarms = 0
    for r in range(40):
        rng = np.random.default_rng(r)
        X, _ = drawn(rng, 500, 0.15)
        X |= {SEEN: rng.uniform(1461, 1491, 500), MONTH: np.full(500, 1.0)}
        found = watch(fitted, X, reference=reference, seed=r)
        assert {one.name for one in found.days} == {SEEN, MONTH}
        assert {one["column"] for one in found.to_dict()["days"]} == {SEEN, MONTH}
        alarms += found.alarm
        said = {language: " ".join(sentences(found, language)) for language in ("en", "fr")}
        assert "'seen' holds other days than at the fit" in said["en"]
        assert "« seen : mois » contient d'autres mois" in said["fr"].replace("\u00a0:", " :")
        assert ("By itself this is no alarm" in said["en"]) is not found.alarm
        assert ("ce n'est pas une alerte" in said["fr"]) is not found.alarm
    assert alarms <= 5


def test_days_that_go_missing_and_other_columns_still_alarm(dated):
    fitted, reference = dated
    rng = np.random.default_rng(1)
    X, _ = drawn(rng, 500, 0.15)
    X[SEEN] = np.where(rng.random(500) < 0.5, np.nan, rng.uniform(1461, 1491, 500))
    X[MONTH] = np.ones(500)
    found = watch(fitted, X, reference=reference)
    assert [(one.name, one.largest) for one in found.moved] == [(SEEN, "missing")]
    assert "la part de cellules vides était de 0,0\u202f%" in " ".join(sentences(found, "fr"))
    X, _ = drawn(rng, 500, 0.15, "unit")
    X |= {SEEN: rng.uniform(1461, 1491, 500), MONTH: np.ones(500)}
    found = watch(fitted, X, reference=reference)
    assert found.alarm
    assert "x" in [one.name for one in found.moved]


def test_every_sentence_of_watching_is_french_too(model):
    """The same numbers in the same places, with commas for points."""
    import re

    rng = np.random.default_rng(5)
    rows = {
        "calm": drawn(rng, 1500, 0.15), "mix": drawn(rng, 1500, 0.5),
        "moved": drawn(rng, 1500, 0.15, "unit"),
    }  # fmt: skip
    rows["moved"][0]["word"][:2] = "never"
    reference = drawn(rng, 1500, 0.15)
    for X, y in rows.values():
        y = y.astype(object)
        y[:100] = None
        found = watch(model, X, y, reference=reference)
        both = list(zip(sentences(found), sentences(found, "fr"), strict=True))
        for english, french in both:
            assert english != french
            numbers = re.findall(r"\d[\d.,]*\d|\d", english)
            assert sorted(re.findall(r"\d(?:[\d,\u202f]*\d)?", french)) == sorted(
                one.replace(",", "\u202f").replace(".", ",") for one in numbers
            )
            for word in (" the ", " of ", " is ", " was ", "%,", "Alarm", "Share"):
                assert word not in french.replace("\u202f%,", "")
