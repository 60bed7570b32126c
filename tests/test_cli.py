"""The command line, run as a user runs it."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from laconic.cli import main
from laconic.data.demo import make_payments
from laconic.export.model_file import load


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "laconic.cli", *map(str, words)],
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
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"model.json", "report.html"}


def test_fit_then_predict_agree_with_python(tmp_path, payments_csv, capsys):
    with pytest.raises(SystemExit) as stop:
        main(f"fit {payments_csv} --target label --cost fn=25 --out {tmp_path}".split())
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


@pytest.mark.parametrize("kind", ["csv.gz", "parquet", "semicolon"])
def test_other_kinds_of_files_give_the_same_model(tmp_path, payments_csv, kind, capsys):
    frame = pl.read_csv(payments_csv)
    if kind == "csv.gz":
        path = tmp_path / "payments.csv.gz"
        path.write_bytes(gzip.compress(payments_csv.read_bytes()))
    elif kind == "parquet":
        path = tmp_path / "payments.parquet"
        frame.write_parquet(path)
    else:
        path = tmp_path / "payments.txt"
        frame.write_csv(path, separator=";")
    for source, out in ((payments_csv, "a"), (path, "b")):
        with pytest.raises(SystemExit) as stop:
            main(f"fit {source} --target label --out {tmp_path / out}".split())
        assert stop.value.code == 0
    models = [json.loads((tmp_path / out / "model.json").read_text()) for out in "ab"]
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
    yield f"fit {payments_csv} --out o", "--target"
    files = {
        "empty.csv": (b"", "is empty"),
        "rows.csv": (header.replace(b"label", b"y"), "no rows"),
        "ragged.csv": (b"a,y\n1,2,3", "line 2"),
        "latin.csv": (b"a,y\n\xe9,1", "UTF-8"),
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


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from laconic.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit as stop: assert stop.code == 0\n"
        "heavy = {'numpy', 'sklearn', 'scipy', 'numba', 'polars'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_importing_the_estimators_does_not_import_numba():
    code = (
        "import sys, laconic\n"
        "for name in laconic.__all__: getattr(laconic, name)\n"
        "assert 'numba' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_doctor_names_what_is_missing():
    done = run("doctor")
    assert done.returncode == 0
    assert "scikit-learn" in done.stdout
