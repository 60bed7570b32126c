"""Tables as they come, from the shell: fit, scan and predict mean the same cells."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from laconic.cli import main


def laconic(*words: object) -> int:
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
    assert laconic("fit", odd_csv, *words, *how) == 0
    capsys.readouterr()
    out = tmp_path / "out.csv"
    words = ["--key", "code", "--key", "label", "-o", out]
    assert laconic("predict", tmp_path / "model.json", odd_csv, *words) == 0
    with out.open() as stream:
        rows = list(csv.DictReader(stream))
    given = [line.split(", ") for line in odd_csv.read_text().splitlines()[1:]]
    assert [row["code"] for row in rows] == [cells[2] for cells in given]
    right = np.mean([row["decision"] == row["label"] for row in rows])
    assert right > 0.9


@pytest.mark.parametrize("key", ["decision", "probability of yes"])
def test_no_column_stands_twice_in_the_output(odd_csv, tmp_path, capsys, key):
    table = tmp_path / "odd.csv"
    table.write_text(odd_csv.read_text().replace("code", key))
    words = ["--target", "label", "--out", tmp_path, "--model", "bayes", "--json"]
    assert laconic("fit", table, *words) == 0
    capsys.readouterr()
    assert laconic("predict", tmp_path / "model.json", table, "--key", key) == 2
    assert "two columns of this name" in capsys.readouterr().err
