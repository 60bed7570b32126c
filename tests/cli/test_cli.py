"""The command line, run as a user runs it."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
import zstandard
from rich.console import Console

from laconic.cli import main
from laconic.cli.screen import comparison_table, print_whole
from laconic.data.demo import make_payments
from laconic.data.reading.asked import Asked
from laconic.data.tables.text import TextFormat
from laconic.export.model_file import load
from laconic.job.rows import read_rows
from laconic.reporting.render import Paragraph

FRAUD = "--target label --positive fraud"


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "laconic", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def payments_csv(tmp_path_factory):
    table, label = make_payments(1500)
    path = tmp_path_factory.mktemp("data") / "payments.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*table.names, "label"])
        columns = [
            [table.categories[j][code] for code in table.column(j)]
            if table.kinds[j] == "categorical"
            else ["" if np.isnan(cell) else cell for cell in table.column(j)]
            for j in range(len(table.names))
        ]
        writer.writerows([*row, y] for *row, y in zip(*columns, label, strict=True))
    return path


def test_demo_writes_a_model_and_a_report(tmp_path):
    done = run("demo", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "positive class: fraud" in done.stdout
    names = {"model.json", "report.html", "payments.csv"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names
    rows = read_rows(tmp_path / "out" / "payments.csv", "label", TextFormat(), Asked())
    table, label = make_payments()
    assert rows.label.tolist() == label.tolist()
    for j in range(len(table.names)):
        np.testing.assert_array_equal(rows.table.column(j), table.column(j))


def test_fit_then_predict_agree_with_python(tmp_path, payments_csv, capsys):
    with pytest.raises(SystemExit) as stop:
        main(
            f"fit {payments_csv} {FRAUD} --cost fn=25 --out {tmp_path} --model logistic "
            "--model additive".split()
        )
    assert stop.value.code == 0
    with pytest.raises(SystemExit) as stop:
        main(f"predict {tmp_path / 'model.json'} {payments_csv} -o {tmp_path / 'out.csv'}".split())
    assert stop.value.code == 0
    found = pl.read_csv(tmp_path / "out.csv")
    assert found.columns == ["probability of fraud", "probability of genuine", "decision"]
    model = load(tmp_path / "model.json")
    rows = pl.read_csv(payments_csv).drop("label").with_columns(pl.col("card present") > 0)
    np.testing.assert_array_equal(found.to_numpy()[:, :2].astype(float), model.predict_proba(rows))
    cheapest = np.where(found["probability of fraud"] >= 1 / 26, "fraud", "genuine")
    np.testing.assert_array_equal(found["decision"].to_numpy(), cheapest)
    summary = json.loads((tmp_path / "model.json").read_text())["summary"]
    assert summary["threshold"] == pytest.approx(1 / 26)
    assert "25" in str(summary["costs"])
    capsys.readouterr()


@pytest.mark.parametrize("kind", ["csv.gz", "csv.zst", "parquet", "semicolon", "utf-16"])
def test_other_kinds_of_files_give_the_same_model(tmp_path, payments_csv, kind, capsys):
    frame = pl.read_csv(payments_csv)
    if kind == "csv.gz":
        path = tmp_path / "payments.csv.gz"
        path.write_bytes(gzip.compress(payments_csv.read_bytes()))
    elif kind == "csv.zst":
        path = tmp_path / "payments.csv.zst"
        path.write_bytes(zstandard.compress(payments_csv.read_bytes()))
    elif kind == "utf-16":
        path = tmp_path / "payments.csv"
        path.write_text(payments_csv.read_text(), encoding="utf-16")
    elif kind == "parquet":
        path = tmp_path / "payments.parquet"
        frame.write_parquet(path)
    else:
        path = tmp_path / "payments.txt"
        frame.write_csv(path, separator=";")
    for source, out in ((payments_csv, "a"), (path, "b")):
        with pytest.raises(SystemExit) as stop:
            main(
                f"fit {source} --target label --out {tmp_path / out} "
                "--model logistic --model scorecard".split()
            )
        assert stop.value.code == 0
    models = [json.loads((tmp_path / out / "model.json").read_text()) for out in "ab"]
    for content in models:  # all but the seconds that the fits took
        del content["digest"], content["summary"]["comparison"]
    assert models[0] == models[1]
    capsys.readouterr()


def bad_lines(tmp_path, payments_csv):
    def write(name: str, content: bytes):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    header = payments_csv.read_text().splitlines()[0].encode()
    fit = f"fit {payments_csv} --out o --target"
    yield "fit nowhere.csv --target y --out o", "does not exist"
    yield f"{fit} lable", "did you mean 'label'?"
    yield f"{fit} amount", "that is not a class"
    yield f"{fit} label --cost fx=1", "fp=NUMBER or fn=NUMBER"
    yield f"{fit} label --cost fn=nan", "fp=NUMBER or fn=NUMBER"
    yield f"{fit} label --positive fraude", "the classes are"
    yield f"{fit} label --cost fn=2", "say --positive fraud or --positive genuine"
    yield f"{fit} label --prior 0.1", "say --positive fraud or --positive genuine"
    yield f"{fit} label --prior 1.5", "between 0 and 1"
    yield f"{fit} label --prior nobody=0.5", "the classes are"
    yield f"{fit} label --budget soon", "60s, 5m or 1h"
    yield f"{fit} label --language de", "en or fr"
    yield f"{fit} label --model magic", "the models offered here are"
    yield f"{fit} label --encoding klingon", "no encoding"
    yield f"{fit} label --cost fn=2 --costs c.csv", "not both"
    wrong = write("costs.csv", b"truth,yes,no\nyes,0,1\nno,1,0\n")
    yield f"{fit} label --costs {wrong}", "other classes"
    yield f"fit {payments_csv} --out o", "--target"
    files = {
        "empty.csv": (b"", "is empty"),
        "rows.csv": (header.replace(b"label", b"y"), "no rows"),
        "ragged.csv": (b"a,y\n1,2,3", "line 2"),
        "dos.csv": (b"a,y\nr\x82clam\x82,1", "UTF-8"),
        "packed.csv.gz": (b"not gzip", "cannot be read"),
        "packed.csv.zst": (b"not zstd", "cannot be unpacked"),
        "many.csv": (b"a,y\n" + b"".join(b"1,c%d\n" % k for k in range(9999)), "not a class"),
        "one.csv": (b"a,y\n1,no\n2,no\n", "one class"),
        "only.csv": (b"y\nno\nyes\n", "no column beside"),
        "broken.parquet": (b"not parquet", "cannot be read"),
    }
    for name, (content, sentence) in files.items():
        yield f"fit {write(name, content)} --target y --out o", sentence
    yield f"predict {write('model.json', b'[1')} {payments_csv}", "not a complete model file"
    yield f"predict {write('other.json', b'{}')} {payments_csv}", "not a model written by laconic"


def test_errors_are_one_line_on_stderr_with_exit_code_2(
    tmp_path, payments_csv, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for line, sentence in bad_lines(tmp_path, payments_csv):
        with pytest.raises(SystemExit) as stop:
            main(line.split())
        shown = capsys.readouterr()
        assert stop.value.code == 2, line
        assert shown.err.count("\n") == 1, shown.err
        assert sentence in shown.err, line
        assert not (tmp_path / "o").exists()


def test_debug_shows_the_traceback():
    done = run("fit", "nowhere.csv", "--target", "y", "--out", "o", "--debug")
    assert "Traceback" in done.stderr
    assert "Traceback" not in run("fit", "nowhere.csv", "--target", "y", "--out", "o").stderr


def passes_alone(code):
    """Whether some code runs in a process of its own."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from laconic.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit as stop: assert stop.code == 0\n"
        "heavy = {'numpy', 'sklearn', 'scipy', 'numba', 'polars'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    passes_alone(code)


def test_importing_the_estimators_does_not_import_numba():
    code = (
        "import sys, laconic\n"
        "doors = [laconic, *(getattr(laconic, name) for name in laconic._PACKAGES)]\n"
        "for door in doors:\n"
        "    for name in door.__all__: getattr(door, name)\n"
        "assert 'numba' not in sys.modules"
    )
    passes_alone(code)


def test_doctor_names_what_is_missing():
    done = run("doctor")
    assert done.returncode == 0
    assert "scikit-learn" in done.stdout


@pytest.fixture(scope="module")
def fitted(tmp_path_factory, payments_csv):
    out = tmp_path_factory.mktemp("fitted")
    words = f"fit {payments_csv} {FRAUD} --cost fn=25 --out {out} --model additive"
    with pytest.raises(SystemExit) as stop:
        main([*words.split(), "--json"])
    assert stop.value.code == 0
    return out / "model.json"


@pytest.fixture(scope="module")
def payments_folder(payments_csv, tmp_path_factory):
    """The same rows in three Parquet files, the label as a number."""
    folder = tmp_path_factory.mktemp("parts")
    frame = pl.read_csv(payments_csv).with_columns(label=(pl.col("label") == "fraud").cast(int))
    for k in range(3):
        frame[k * 500 : (k + 1) * 500].write_parquet(folder / f"part-{k}.parquet")
    return folder


def test_fit_from_a_glob_reads_the_files_block_by_block(payments_folder, tmp_path, capsys):
    words = f"--target label --cost fn=25 --out {tmp_path / 'out'}".split()
    with pytest.raises(SystemExit) as stop:
        main(["fit", f"{payments_folder}/*.parquet", *words, "--json"])
    assert stop.value.code == 0
    said = json.loads(capsys.readouterr().out)
    # only families that fit from a scan, or a mean of two of them
    from_a_scan = {"bayes", "votes", "additive", "additive-single"}
    assert set(said["candidate"].split(" + ")) <= from_a_scan
    assert said["positive"] == "1"
    assert said["rows"]["train"] + said["rows"]["test"] == 1500
    assert 300 < said["rows"]["test"] < 450
    assert said["threshold"] == pytest.approx(1 / 26)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"model.json", "report.html"}
    for data in (payments_folder, f"{payments_folder}/*.parquet"):
        with pytest.raises(SystemExit) as stop:
            main(f"predict {tmp_path}/out/model.json {data} -o {tmp_path}/out.csv".split())
        assert stop.value.code == 0
        found = pl.read_csv(tmp_path / "out.csv")
        assert found.columns == ["probability of 0", "probability of 1", "decision"]
        assert found.height == 1500
    model = load(tmp_path / "out" / "model.json")
    first = pl.read_parquet(payments_folder / "part-0.parquet").drop("label")
    np.testing.assert_array_equal(
        found.to_numpy()[:500, :2].astype(float), model.predict_proba(first)
    )


def test_compare_and_report_read_a_glob_block_by_block(
    payments_folder, tmp_path, capsys, monkeypatch
):
    rows = f"{payments_folder}/*.parquet --target label"
    fit = f"fit {rows} --cost fn=25 --model bayes --out {tmp_path}/out --json"
    report = f"report {tmp_path}/out/model.json {rows} --out"
    compare = f"compare {rows} --cost fn=25 --model bayes --model votes --json"
    monkeypatch.setattr("laconic.job.scan.MOST_TEST_ROWS", 900)
    said = []
    for words in (fit, compare, f"{report} {tmp_path}/drawn.json"):
        with pytest.raises(SystemExit) as stop:
            main(words.split())
        assert stop.value.code == 0
        said.append(capsys.readouterr().out)
    assert set(json.loads(said[1])["candidate"]) >= {"bayes", "votes"}
    drawn = json.loads((tmp_path / "drawn.json").read_text())
    n_drawn = int(re.search(r"reporting on ([0-9,]+) of 1,500 rows", said[2])[1].replace(",", ""))
    assert 820 < n_drawn < 980  # 900 in the mean, drawn by their number
    # all of them, as read into memory: the same report
    monkeypatch.setattr("laconic.job.scan.MOST_TEST_ROWS", 5_000)
    whole = tmp_path / "whole.parquet"
    pl.concat([pl.read_parquet(p) for p in sorted(payments_folder.iterdir())]).write_parquet(whole)
    for name, data in (("scanned", rows), ("held", f"{whole} --target label")):
        words = f"report {tmp_path}/out/model.json {data} --title t --out {tmp_path}/{name}.json"
        with pytest.raises(SystemExit) as stop:
            main(words.split())
        assert stop.value.code == 0
    scanned, held = ((tmp_path / f"{n}.json").read_text() for n in ("scanned", "held"))
    assert json.loads(scanned) == json.loads(held)
    assert json.loads(scanned) != drawn


def test_one_file_may_be_scanned_too_and_models_that_cannot_say_so(
    payments_folder, tmp_path, capsys
):
    path = payments_folder / "part-0.parquet"
    with pytest.raises(SystemExit) as stop:
        main(
            f"fit {path} --scan --target label --model bayes --out {tmp_path / 'a'} --json".split()
        )
    assert stop.value.code == 0
    assert json.loads(capsys.readouterr().out)["candidate"] == "bayes"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["{}/no*.parquet", "--target", "label"], "names no file; give a path, a folder or a glob"),
        (["{}", "--target", "lable"], "target='lable' is not a column of the rows"),
        (["{}", "--target", "label", "--model", "rules"], "those that fit from a scan are"),
        (["{}", "--target", "label", "--cost", "fn=2", "--positive", "7"], "the classes are 0, 1"),
        (
            ["{}", "--target", "label", "--cluster", "tcp://127.0.0.1:9"],
            "No scheduler answers at tcp://127.0.0.1:9",
        ),
    ],
)
def test_errors_of_a_scanned_fit_are_one_line(payments_folder, tmp_path, capsys, words, sentence):
    if "--cluster" in words:
        pytest.importorskip("distributed")
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as stop:
        main(["fit", *(word.format(payments_folder) for word in words), "--out", str(out)])
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("laconic: ")
    assert sentence in said
    assert said.count("\n") == 1
    assert not out.exists()


def test_json_is_for_machines(payments_csv, tmp_path, capsys):
    capsys.readouterr()
    words = f"fit {payments_csv} --target label --out {tmp_path} --model logistic --json"
    with pytest.raises(SystemExit):
        main(words.split())
    said = json.loads(capsys.readouterr().out)
    assert said["candidate"] == "logistic"
    assert said["positive"] == "fraud"
    assert "logistic" in str(said["comparison"])


def test_compare_writes_nothing_and_ranks_by_cost(payments_csv, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = f"compare {payments_csv} {FRAUD} --cost fn=25 --model logistic --model bayes"
    with pytest.raises(SystemExit):
        main(words.split())
    shown = capsys.readouterr().out
    assert "logistic" in shown
    assert "bayes" in shown
    with pytest.raises(SystemExit):
        main([*words.split(), "--json"])
    columns = json.loads(capsys.readouterr().out)
    assert {"logistic", "bayes"} <= set(columns["candidate"])
    assert sum(columns["chosen"]) == 1
    assert not list(tmp_path.iterdir())


def test_a_prior_moves_the_decisions(payments_csv, tmp_path, capsys):
    decided = []
    for prior in ("0.03", "0.5"):
        words = f"fit {payments_csv} {FRAUD} --out {tmp_path} --model logistic"
        with pytest.raises(SystemExit):
            main([*words.split(), "--prior", prior, "--json"])
        model = load(tmp_path / "model.json")
        np.testing.assert_allclose(model.prior_[0], float(prior))
        decided.append((model.predict(pl.read_csv(payments_csv)) == "fraud").sum())
    assert decided[0] < decided[1]
    capsys.readouterr()


@pytest.mark.parametrize("kind", ["csv", "gz", "parquet", "stdin", "latin"])
def test_predict_streams_every_kind_of_file_alike(fitted, payments_csv, tmp_path, kind):
    expected = run("predict", fitted, payments_csv).stdout
    assert expected.count("\n") == 1501
    words = ["predict", fitted, payments_csv]
    content = None
    if kind == "gz":
        words[2] = tmp_path / "a.csv.gz"
        words[2].write_bytes(gzip.compress(payments_csv.read_bytes()))
    elif kind == "parquet":
        words[2] = tmp_path / "a.parquet"
        pl.read_csv(payments_csv).write_parquet(words[2])
    elif kind == "latin":
        words += ["--encoding", "latin-1"]
    elif kind == "stdin":
        words[2], content = "-", payments_csv.read_text()
    done = subprocess.run(
        [sys.executable, "-m", "laconic", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        input=content,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == expected


def test_keys_are_handed_through(fitted, payments_csv, tmp_path):
    done = run("predict", fitted, payments_csv, "--key", "label", "--key", "amount")
    assert done.returncode == 0, done.stderr
    lines = list(csv.reader(done.stdout.splitlines()))
    given = list(csv.reader(payments_csv.read_text().splitlines()))
    assert lines[0][:2] == ["label", "amount"]
    place = given[0].index("amount")
    assert [row[:2] for row in lines[1:]] == [[row[-1], row[place]] for row in given[1:]]


def test_predict_refuses_what_the_model_cannot_read(fitted, payments_csv, tmp_path):
    rows = payments_csv.read_text().splitlines()
    cases = {
        "column": ("\n".join([rows[0].replace("amount", "sum"), *rows[1:]]), "'amount'"),
        "number": ("\n".join([rows[0], "x" + rows[1][1:]]), "not a number"),
        "short": ("\n".join([*rows, "1,2"]), "cells"),
        "long": ("\n".join([*rows, rows[1] + ",9"]), "line"),
    }
    for name, (text, sentence) in cases.items():
        path = tmp_path / f"{name}.csv"
        path.write_text(text)
        done = run("predict", fitted, path, "-o", tmp_path / "out.csv")
        assert done.returncode == 2, name
        assert sentence in done.stderr, done.stderr
        assert done.stderr.count("\n") == 1
        assert not (tmp_path / "out.csv").exists()


def test_explain_adds_up_and_tells_the_model(fitted, payments_csv, tmp_path):
    model = load(fitted)
    form = model.estimator_.form_
    done = run("explain", fitted, payments_csv, "--reasons", max(1, len(form.terms)))
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert len(rows) == 1500
    for row in rows[:50]:
        adds = sum(float(row[f"adds {k}"]) for k in range(1, len(form.terms) + 1))
        np.testing.assert_allclose(adds - form.intercept[0], float(row["score"]), atol=1e-9)
    # the score is that of the positive class, "fraud", the first of the two
    score = model.estimator_.form_.score(model.estimator_._read_rows(pl.read_csv(payments_csv)))
    np.testing.assert_allclose([float(row["score"]) for row in rows], -score[:, 0], atol=1e-12)
    words = run("explain", fitted).stdout
    assert "score of fraud" in words
    assert all(name in words for name in form.columns)


def test_a_killed_fit_leaves_the_old_model(payments_csv, tmp_path):
    words = f"fit {payments_csv} {FRAUD} --out {tmp_path} --model logistic".split()
    assert run(*words).returncode == 0
    for wait in (0.5, 1.5, 2.5, 3.5):
        process = subprocess.Popen([sys.executable, "-m", "laconic", *words, "--seed", "1"])
        try:
            process.wait(wait)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        load(tmp_path / "model.json")  # old or new, and whole: a torn file is refused


def test_a_folder_that_cannot_be_written_is_told_before_the_fit(payments_csv, tmp_path):
    (tmp_path / "file").write_text("x")
    done = run("fit", payments_csv, "--target", "label", "--out", tmp_path / "file" / "o")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_a_folder_is_tried_without_touching_a_file_in_it(tmp_path):
    from laconic.job.table import writable

    (tmp_path / ".laconic").write_text("the user's")
    with writable(tmp_path):
        assert (tmp_path / ".laconic").read_text() == "the user's"
    assert [path.name for path in tmp_path.iterdir()] == [".laconic"]


def test_a_job_beside_this_one_that_fails_may_remove_the_folder(
    payments_csv, tmp_path, monkeypatch, capsys
):
    """Whichever made the folder removes it when it fails: the other still says or does its own."""
    from laconic.cli import main
    from laconic.job import table

    out = tmp_path / "out"

    def fails():
        with table.writable(out):
            out.rmdir()
            raise RuntimeError("its own failure")

    with pytest.raises(RuntimeError, match="its own"):
        fails()
    told = table.to_html

    def removed_while_it_is_told(*given, **named):
        out.rmdir()
        return told(*given, **named)

    monkeypatch.setattr(table, "to_html", removed_while_it_is_told)
    words = ["fit", payments_csv, "--target", "label", "--out", out, "--model", "logistic"]
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    assert not stop.value.code, capsys.readouterr().err
    assert {path.name for path in out.iterdir()} == {"model.json", "report.html"}


def test_the_line_on_the_encoding_is_french_where_french_is_asked_for(tmp_path):
    path = tmp_path / "rows.csv"
    lines = [f"caf\u00e9 {k % 3};{k % 7};{'ja' if k % 4 else 'nein'}" for k in range(60)]
    path.write_bytes("\n".join(["nom;v;y", *lines]).encode("cp1252"))
    for language, said in (("fr", "il est lu en cp1252"), ("en", "it is read as cp1252")):
        assert said in run("look", path, "--language", language).stderr


def test_no_letter_of_the_comparison_is_lost_on_a_narrow_screen():
    """Remarks stood in a column that was cut: "pas" came out as "pa"."""
    names = ["additive-single + logistic", "kernel"]
    columns = {
        "candidate": names, "cost": [0.48, 0.5], "cost_se": [0.01] * 2, "log_loss": [0.4] * 2,
        "auc": [0.8] * 2, "size": [38.0, 173_184.0], "fit_seconds": [0.9, 0.1],
        "note": ["weighted mean", "2 folds"], "chosen": [True, False],
    }  # fmt: skip
    for width in (80, 76, 60):
        for language, words in (
            ("en", "weighted mean 2 folds"),
            ("fr", "moyenne pond\u00e9r\u00e9e 2 plis"),
        ):
            stream = io.StringIO()
            shown = comparison_table(columns, language)
            print_whole(Console(file=stream, width=width), shown)
            assert set(words.split()) <= set(stream.getvalue().split()), (width, language)


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_line_of_the_terminal_ends_inside_a_number(width):
    stream = io.StringIO()
    text = (
        "Mesur\u00e9 sur 1\u202f762 lignes (5\u202f281 lignes), entre 37 % et 44\u202f% "
        "\u00ab\u00a0oui\u00a0\u00bb " * 9
    )
    Console(file=stream, width=width).print(Paragraph(text))
    ends = [line.rstrip()[-1] for line in stream.getvalue().splitlines()[:-1]]
    starts = [line[0] for line in stream.getvalue().splitlines()[1:]]
    assert not set(starts) & set("%\u00bb")
    assert not any(a.isdigit() and b.isdigit() for a, b in zip(ends, starts, strict=True))
    assert max(map(len, stream.getvalue().splitlines())) <= width
