"""Tables as they come, from the shell: fit, scan and predict mean the same cells."""

from __future__ import annotations

import csv
import datetime
import json
from contextlib import nullcontext

import numpy as np
import pandas as pd
import polars as pl
import pytest

import laconic
from laconic.cli import main


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    return int(stop.value.code or 0)


@pytest.fixture(scope="module")
def odd_csv(tmp_path_factory):
    """A blank after every comma, truth values, codes with leading zeros; the class follows both."""
    draw = np.random.default_rng(0)
    n = 400
    kind, flag = draw.choice(["red", "blue"], n), draw.random(n) < 0.5
    code = draw.choice(["01322", "75001", "00007"], n)
    label = np.where((kind == "red") == flag, "yes", "no")
    label[draw.random(n) < 0.05] = "no"
    path = tmp_path_factory.mktemp("odd") / "odd.csv"
    lines = [f"{k}, {f}, {c}, {y}" for k, f, c, y in zip(kind, flag, code, label, strict=True)]
    path.write_text("kind, flag, code, label\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("how", [[], ["--scan"]])
def test_a_fit_and_its_predictions_read_the_same_cells(odd_csv, tmp_path, capsys, how):
    words = ["--target", "label", "--out", tmp_path, "--model", "additive", "--json"]
    assert run("fit", odd_csv, *words, *how) == 0
    capsys.readouterr()
    out = tmp_path / "out.csv"
    words = ["--key", "code", "--key", "label", "-o", out]
    assert run("predict", tmp_path / "model.json", odd_csv, *words) == 0
    with out.open() as stream:
        rows = list(csv.DictReader(stream))
    given = [line.split(", ") for line in odd_csv.read_text().splitlines()[1:]]
    assert [row["code"] for row in rows] == [cells[2] for cells in given]
    right = np.mean([row["decision"] == row["label"] for row in rows])
    assert right > 0.9


@pytest.mark.parametrize("how", [[], ["--scan"]])
@pytest.mark.parametrize(
    ("beside", "n_test"), [(["--group", "shop"], None), (["--time", "paid on"], 150), ([], None)]
)
def test_groups_and_times_are_held_out_from_the_shell(tmp_path, capsys, how, beside, n_test):
    """A time that is written as text; groups of 60 rows; a column called an id that repeats."""
    draw = np.random.default_rng(1)
    n = 600
    day, shop = draw.permutation(n) // 2, draw.integers(0, 10, n)
    first = datetime.date(2024, 1, 1)
    frame = pl.DataFrame(
        {
            "paid on": [f"{first + datetime.timedelta(int(d)):%d/%m/%Y}" for d in day],
            "shop": [f"s{k}" for k in shop],
            "customer_id": [f"c{k:07d}" for k in draw.integers(0, 100, n) * 7919],
            "x": draw.normal(size=n),
        }
    )
    late = draw.random(n) < 1 / (1 + np.exp(-frame["x"].to_numpy()))
    frame = frame.with_columns(label=pl.Series(np.where(late, "yes", "no")))
    frame.write_csv(tmp_path / "rows.csv")
    words = ["--target", "label", "--model", "additive", "--json", "--out", tmp_path / "m"]
    assert run("fit", tmp_path / "rows.csv", *words, *beside, *how) == 0
    told = json.loads(capsys.readouterr().out)
    n_held = told["rows"]["test"]
    if n_test is not None:  # the last days, two rows each
        assert n_held == n_test
    elif beside:
        assert n_held in {sum(counts) for counts in _some_of(np.bincount(shop))}
    else:
        assert any("customer_id" in note and "together" in note for note in told["notes"])


def _some_of(counts):
    """Every choice among ten shops."""
    for mask in range(1, 1 << len(counts)):
        yield [c for k, c in enumerate(counts) if mask >> k & 1]


@pytest.mark.parametrize("key", ["decision", "probability of yes"])
def test_no_column_stands_twice_in_the_output(odd_csv, tmp_path, capsys, key):
    table = tmp_path / "odd.csv"
    table.write_text(odd_csv.read_text().replace("code", key))
    words = ["--target", "label", "--out", tmp_path, "--model", "bayes", "--json"]
    assert run("fit", table, *words) == 0
    capsys.readouterr()
    assert run("predict", tmp_path / "model.json", table, "--key", key) == 2
    assert "two columns of this name" in capsys.readouterr().err


def test_cells_come_back_as_they_are(odd_csv, tmp_path, capsys):
    """SECURITY.md: a key that a spreadsheet takes for a formula joins with its own rows."""
    table, formula = tmp_path / "odd.csv", '=HYPERLINK("http://x")'
    table.write_text(odd_csv.read_text().replace("01322", '"=HYPERLINK(""http://x"")"'))
    words = ["--target", "label", "--out", tmp_path, "--model", "bayes", "--json"]
    assert run("fit", table, *words) == 0
    out = tmp_path / "out.csv"
    assert run("predict", tmp_path / "model.json", table, "--key", "code", "-o", out) == 0
    with table.open(newline="") as given, out.open(newline="") as written:
        keys = [row["code"] for row in csv.DictReader(given, skipinitialspace=True)]
        assert [row["code"] for row in csv.DictReader(written)] == keys
    assert formula in keys


def customers(n: int, seed: int):
    """Customers as a shop exports them, the same parsed by hand, and the probability to be late."""
    draw = np.random.default_rng(seed)
    signed, bill = draw.integers(0, 1800, n), np.round(np.exp(draw.normal(4, 1, n)), 2)
    share, calls = np.round(100 * draw.beta(2, 5, n), 1), draw.poisson(2, n)
    paperless = draw.choice(["Yes", "No"], n)
    code = draw.choice(["01322", "75001", "13090"], n)
    score = 0.001 * signed - 0.8 * np.log(bill / 50) + 0.03 * share + (paperless == "Yes")
    proba = 1 / (1 + np.exp(4 - 2 * score))
    late = [str(int(x)) for x in draw.random(n) < proba]
    start, german = datetime.date(2019, 1, 1), str.maketrans(",.", ".,")
    raw = {
        "customer id": [f"C-{k:06d}" for k in draw.permutation(10**6)[:n]],
        "signed up": [f"{start + datetime.timedelta(int(k)):%d/%m/%Y}" for k in signed],
        "bill": [f"{x:,.2f} \u20ac".translate(german) for x in bill],
        "share": [f"{x} %".translate(german) for x in share],
        "calls": ["unknown" if k == 7 else str(c) for k, c in enumerate(calls)],
        "paperless": list(paperless),
        "postcode": list(code),
        "late": late,
    }
    hand = {
        "signed up": signed, "bill": bill, "share": share, "calls": calls, "paperless": paperless,
        "postcode": [f"z{own}" for own in code], "late": late,
    }  # fmt: skip
    return pd.DataFrame(raw), pd.DataFrame(hand), proba


@pytest.fixture(scope="module")
def churn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("churn")
    raw, hand, _ = customers(1200, seed=0)
    raw.to_csv(folder / "raw.csv", index=False, sep=";")
    hand.to_csv(folder / "hand.csv", index=False)
    return folder


def test_a_raw_table_costs_no_more_than_one_parsed_by_hand(churn, tmp_path, capsys):
    fresh = dict(zip(("raw", "hand"), customers(20_000, seed=1)[:2], strict=True))
    proba = customers(20_000, seed=1)[2]
    cost = {}
    for name in ("raw", "hand"):
        words = ["--target", "late", "--cost", "fn=3", "--model", "logistic", "--positive", "1"]
        words += ["--json", "--out", tmp_path / name]
        assert run("fit", churn / f"{name}.csv", *words) == 0
        said = json.loads(capsys.readouterr().out)
        decided = laconic.load(tmp_path / name / "model.json").predict(fresh[name]) == "1"
        cost[name] = np.mean(np.where(decided, 1 - proba, 3 * proba))
    assert cost["raw"] <= 1.02 * cost["hand"]
    assert said["notes"] == []  # of the table parsed by hand
    # the file of the shell predicts alike whoever reads the rows
    model = laconic.load(tmp_path / "raw" / "model.json")
    path = churn / "raw.csv"
    assert run("predict", tmp_path / "raw" / "model.json", path, "-o", tmp_path / "out.csv") == 0
    written = pl.read_csv(tmp_path / "out.csv").to_numpy()[:, :2].astype(float)
    frame = pd.read_csv(path, sep=";", dtype={"postcode": str})
    typed = frame.assign(**{"signed up": pd.to_datetime(frame["signed up"], format="%d/%m/%Y")})
    polars_frame = pl.read_csv(path, separator=";", schema_overrides={"postcode": pl.String})
    for rows in (frame, typed, pd.read_csv(path, sep=";"), polars_frame):
        np.testing.assert_array_equal(model.predict_proba(rows), written)


def test_look_says_what_every_column_is(churn, capsys):
    path = churn / "raw.csv"
    assert run("look", path, "--target", "late", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    kinds = {column["name"]: column["kind"] for column in said["columns"]}
    assert kinds == {
        "customer id": "id", "signed up": "date", "bill": "number", "share": "number",
        "calls": "number", "paperless": "yes/no", "postcode": "code",
    }  # fmt: skip
    assert run("look", path, "--scan", "--json") == 0
    scanned = json.loads(capsys.readouterr().out)
    assert [c for c in scanned["columns"] if c["name"] != "late"] == said["columns"]
    assert run("look", path, "--as", "bill=category", "--drop", "share", "--missing", "Yes") == 0
    shown = capsys.readouterr().out
    assert "dropped as asked" in shown
    assert "all 603 cells" not in shown
    assert run("look", path, "--as", "bill") == 2
    assert "write COLUMN=KIND" in capsys.readouterr().err


def test_fit_says_first_what_it_read(churn, tmp_path, capsys):
    words = ["--target", "late", "--model", "bayes", "--out", tmp_path]
    assert run("fit", churn / "raw.csv", *words, "--drop", "share", "--keep", "customer id") == 0
    shown = capsys.readouterr().out
    assert shown.index("'bill': number in \u20ac with a decimal comma") < shown.index(
        "Held-out cost"
    )
    assert "'share': dropped as asked" in shown
    assert "'customer id': category, kept as asked" in shown


def test_rows_without_a_class_and_weights(churn, tmp_path, capsys):
    frame = pd.read_csv(churn / "hand.csv", dtype={"late": str})
    frame["w"] = np.where(np.arange(len(frame)) % 3, 1.0, 2.0)
    frame.loc[[5, 9], "late"] = None
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    words = ["fit", path, "--target", "late", "--model", "bayes", "--out", tmp_path, "--json"]
    assert run(*words) == 2
    assert "missing in 2 rows; leave them out with --drop-missing-target" in capsys.readouterr().err
    assert run(*words, "--drop-missing-target", "--weight", "w") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["rows"]["train"] + said["rows"]["test"] == 1198
    assert "2 rows without a class are left out" in said["notes"]
    content = json.loads((tmp_path / "model.json").read_text())
    assert "w" not in [column["name"] for column in content["columns"]]
    frame["w"] = -1.0
    frame.to_csv(path, index=False)
    assert run(*words, "--drop-missing-target", "--weight", "w") == 2
    assert "weights 'w' must be numbers >= 0" in capsys.readouterr().err


def test_what_users_know_of_the_model(churn, tmp_path, capsys):
    words = ["fit", churn / "hand.csv", "--target", "late", "--out", tmp_path]
    assert run(*words, "--only", "bayes,logistic", "--max-size", "30", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert {"bayes", "logistic"} <= set(said["comparison"]["candidate"])
    assert "additive" not in said["comparison"]["candidate"]
    assert said["positive"] == "1"
    assert run(*words, "--only", "logistic") == 0
    shown = capsys.readouterr().out
    assert "positive class: late = 1" in shown
    assert "always \u201clate = 0\u201d" in " ".join(shown.split())
    assert "late = 1" in (tmp_path / "report.html").read_text()
    assert set(laconic.load(tmp_path / "model.json").classes_) == {"0", "1"}


@pytest.mark.parametrize("family", ["minimax", "forest-votes"])
def test_every_family_gets_a_model_file(family, churn, tmp_path, capsys):
    words = ["--target", "late", "--cost", "fn=3", "--only", family, "--max-size", "9000"]
    words += ["--out", tmp_path, "--json"]
    assert run("fit", churn / "raw.csv", *words) == 0
    capsys.readouterr()
    out = tmp_path / "p.csv"
    assert run("predict", tmp_path / "model.json", churn / "raw.csv", "--out", out) == 0
    assert set(pl.read_csv(out)["decision"].to_list()) == {0, 1}


def test_two_costs_are_for_two_classes(churn, tmp_path, capsys):
    frame = pd.read_csv(churn / "hand.csv")
    frame["late"] = np.where(frame["bill"] > 100, "c", np.where(frame["late"] == 1, "b", "a"))
    frame.to_csv(tmp_path / "three.csv", index=False)
    words = ["fit", tmp_path / "three.csv", "--target", "late", "--out", tmp_path / "out"]
    assert run(*words, "--cost", "fn=5", "--positive", "c") == 2
    said = capsys.readouterr().err
    assert "for two classes, and the target has 3 (a, b, c); give --costs" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("trouble", "code", "sentence"),
    [
        (MemoryError(), 2, "read it block by block with --scan"),
        (MemoryError("polars reserves more"), 2, "polars reserves more"),
        (KeyboardInterrupt(), 130, "interrupted; nothing was written"),
        (RuntimeError("odd"), 1, "internal error, RuntimeError: odd"),
    ],
)
def test_troubles_of_the_machine_are_one_line(monkeypatch, capsys, trouble, code, sentence):
    def fails(*rest, **more):
        raise trouble

    monkeypatch.setattr("laconic.job.rows.read_rows", fails)
    assert run("fit", "rows.csv", "--target", "y", "--out", "nowhere") == code
    shown = capsys.readouterr().err
    assert sentence in shown
    assert shown.count("\n") == 1


@pytest.mark.parametrize("many", [(), ("--scan",)])
def test_compare_holds_the_rows_of_a_repeated_id_out_together_as_it_says(tmp_path, capsys, many):
    """Visits of a patient are alike, and the label is the patient's: nothing tells of new ones."""
    draw = np.random.default_rng(0)
    patient = np.repeat(np.arange(150), 4)
    sick, height = draw.random(150) < 0.5, draw.normal(size=150)
    frame = {"patient_id": [f"p{k}" for k in patient], "height": height[patient].round(6)}
    path = tmp_path / "visits.csv"
    pl.DataFrame({**frame, "sick": np.where(sick[patient], "yes", "no")}).write_csv(path)
    words = ["compare", path, "--target", "sick", "--only", "bayes", *many]
    loss = {}
    for name, more in [("patients", ()), ("visits", ("--no-group",))]:
        assert run(*words, *more, "--json") == 0
        found = json.loads(capsys.readouterr().out)
        loss[name] = found["log_loss"][found["candidate"].index("bayes")]
    assert loss["patients"] > loss["visits"] + 0.02
    assert run(*words) == 0
    assert "'patient_id'" in capsys.readouterr().out


def test_an_interruption_after_a_file_was_written_names_it(tmp_path, monkeypatch, capsys):
    from laconic.export.atomic import write_atomically, write_together

    def interrupted(*rest, **more):
        write_together({tmp_path / "model.json": "{}", tmp_path / "report.html": ""})
        write_atomically(tmp_path / "payments.csv", "a,y\n")
        raise KeyboardInterrupt

    monkeypatch.setattr("laconic.cli.fit._fit_and_write", interrupted)
    monkeypatch.setattr("laconic.cli.first_use.compiled_meanwhile", nullcontext)
    assert run("demo", "--out", tmp_path) == 130
    files = ", ".join(str(tmp_path / name) for name in ("model.json", "report.html"))
    shown = capsys.readouterr().err
    assert shown == f"laconic: interrupted; {files}, {tmp_path / 'payments.csv'} were written\n"
    monkeypatch.setattr("laconic.cli.fit._fit_and_write", lambda *rest, **more: 1 / 0)
    assert run("demo", "--out", tmp_path) == 1  # what an earlier command wrote is not told again
    assert "written" not in capsys.readouterr().err


def test_a_target_that_is_not_there_is_told_before_the_table_is_read(tmp_path, monkeypatch, capsys):
    path = tmp_path / "rows.csv"
    path.write_text("a,y\n0.5,1\n")
    read = []

    def chunks(*rest):
        for k in range(3):
            read.append(k)
            yield {"a": ["0.5"], "y": ["1"]}

    monkeypatch.setattr("laconic.data.tables.files.read_chunks", chunks)
    assert run("fit", path, "--target", "z", "--out", tmp_path / "out") == 2
    assert "There is no column 'z' in the table" in capsys.readouterr().err
    assert read == [0]


TARGETS = {
    "a box that is ticked or not": (["X", ""], "'y' is 'X' or empty; write the other class into"),
    "two hands": (["Yes", "No", "yes"], "'Yes', 'yes' differ in capitals alone"),
    "an amount": ([str(k) for k in range(40)], "40 different numbers: that is not a class"),
    "one row of a class": (["a", *["b"] * 59], "Class 'a' has one row"),
}


@pytest.mark.parametrize("name", TARGETS)
def test_targets_that_are_none_are_refused(name, tmp_path, capsys):
    labels, sentence = TARGETS[name]
    lines = [f"{k % 7},{k % 5},{labels[k % len(labels)]}" for k in range(60)]
    (tmp_path / "t.csv").write_text("a,b,y\n" + "\n".join(lines) + "\n")
    assert run("fit", tmp_path / "t.csv", "--target", "y", "--out", tmp_path / "m") == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "m").exists()


def test_a_title_above_the_names_is_told(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("Report of May;;\n\nid;amount;late\n1;2,5;0\n2;3,5;1\n")
    assert run("look", tmp_path / "t.csv", "--target", "late") == 2
    assert "does a title stand above the line of names?" in capsys.readouterr().err


def test_the_look_tells_of_groups_merged_cells_and_rare_classes():
    n = 600
    table = {
        "patient_no": [f"MRN{k // 3:05d}" for k in range(n)],
        "region": ["north" if k % 10 == 0 else "" for k in range(n)],
        "size": [str(k % 97) for k in range(n)],
    }
    found = laconic.look(table, np.array(["1", *["0"] * (n - 1)]))
    assert found.title == "600 rows: '0' 99.83%, '1' 0.17%"
    said = " ".join(found.suspicions)
    assert "'patient_no' has 3.0 rows for each value: if each is a person or a thing" in said
    assert "'region' is empty in 90.0% of the rows: if its cells were merged" in said
