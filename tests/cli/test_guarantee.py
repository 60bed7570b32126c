"""``laconic fit --guarantee``: from the shell to the model file, the report and the watch."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from laconic import DecisionClassifier, PlainLogisticRegression, load, save
from laconic.cli import main


def written(path, n, seed, share=0.3, wrong=0.0):
    rng = np.random.default_rng(seed)
    bad = rng.random(n) < share
    x = rng.normal(size=(n, 2)) + 1.5 * bad[:, None]
    label = np.where(bad ^ (rng.random(n) < wrong), "bad", "ok")
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["a", "b", "label"])
        writer.writerows([*row, name] for row, name in zip(x.round(4), label, strict=True))
    return str(path)


def run(*words):
    with pytest.raises(SystemExit) as done:
        main([str(word) for word in words])
    return done.value.code


FIT = ("--target", "label", "--positive", "bad", "--cost", "fn=4", "--only", "logistic")


def test_a_guarantee_from_the_shell_to_the_watch(tmp_path, capsys):
    rows = written(tmp_path / "rows.csv", 1500, 0)
    out = tmp_path / "result"
    wishes = ["--guarantee", "recall>=0.8", "--capacity", "300/500", "--confidence", "0.9"]
    assert run("fit", rows, *FIT, "--out", out, *wishes) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "With 90 % confidence, the share of “bad” that is found is at least 80 %." in said
    assert "is at most 60 %" in said
    assert "Guaranteed" in (out / "report.html").read_text()
    kept = json.loads((out / "model.json").read_text())["guarantee"]
    assert [one["measure"] for one in kept["promises"]] == ["recall", "alarms"]
    model = load(out / "model.json")
    assert model.guaranteed_.threshold == kept["threshold"]
    more = written(tmp_path / "more.csv", 800, 1)
    assert run("watch", out / "model.json", more, "--labels", "label") == 0
    assert "Promised recall>=0.8" in capsys.readouterr().out
    # a third of the labels is another: the promise breaks, and a scheduler hears it
    broken = written(tmp_path / "broken.csv", 800, 2, wrong=0.35)
    assert run("watch", out / "model.json", broken, "--labels", "label", "--json") == 3
    told = json.loads(capsys.readouterr().out)["labelled"]
    assert any(one["alarm_at"] is not None for one in told["promises"])


@pytest.mark.parametrize(
    ("wish", "sentence"),
    [
        (["--guarantee", "recall>=0.999"], "needs at least 2995 positive rows"),
        (["--capacity", "0/100"], "capacity: '0/100'"),
        (["--guarantee", "recall>=0.9", "--capacity", "1/100"], "contradict each other"),
        (["--guarantee", "luck>=0.9"], "'luck' is not known"),
        (["--guarantee", "abstentions<=0.1"], "price of abstaining"),
    ],
)
def test_wishes_that_cannot_be_granted_write_nothing(tmp_path, capsys, wish, sentence):
    rows = written(tmp_path / "rows.csv", 400, 3)
    assert run("fit", rows, *FIT, "--out", tmp_path / "result", *wish) == 2
    told = capsys.readouterr().err.strip()
    assert sentence in told
    assert "\n" not in told
    assert not (tmp_path / "result").exists()


def test_a_model_file_without_reference_cannot_watch(tmp_path, capsys):
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    model = DecisionClassifier(PlainLogisticRegression()).fit({"a": X[:, 0], "b": X[:, 1]}, y)
    save(model, tmp_path / "model.json")
    rows = written(tmp_path / "rows.csv", 30, 5)
    assert run("watch", tmp_path / "model.json", rows) == 2
    assert "has no reference to compare with" in capsys.readouterr().err
