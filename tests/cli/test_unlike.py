"""Rows unlike those of the fit are told in one line; rows that are alike are not."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from laconic import DecisionClassifier, PlainLogisticRegression
from laconic.cli import main
from laconic.data.tables.columns import Schema
from laconic.decide.reference import reference_of
from laconic.job.unlike import Likeness, sentence


def rows(n: int, seed: int) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    amount = np.round(np.exp(draw.normal(4, 1, n)), 2)
    kind = draw.choice(["card", "wire", "cash"], n)
    y = draw.random(n) < 1 / (1 + np.exp(2 - 0.01 * amount - (kind == "wire")))
    return pd.DataFrame({"amount": amount, "kind": kind, "late": np.where(y, "yes", "no")})


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unlike")
    rows(1200, 0).to_csv(folder / "rows.csv", index=False)
    words = f"fit {folder}/rows.csv --target late --model logistic --out {folder} --json"
    with pytest.raises(SystemExit) as stop:
        main(words.split())
    assert stop.value.code == 0
    return folder


def predicted(folder, frame, capsys, *words) -> tuple[str, str]:
    frame.to_csv(folder / "new.csv", index=False)
    capsys.readouterr()
    line = f"predict {folder}/model.json {folder}/new.csv -o {folder}/out.csv".split()
    with pytest.raises(SystemExit) as stop:
        main([*line, *words])
    assert stop.value.code == 0
    shown = capsys.readouterr()
    return shown.out, shown.err


def test_rows_like_those_of_the_fit_are_silent(fitted, capsys):
    assert predicted(fitted, rows(1000, 1), capsys) == ("", "")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f.assign(amount=100 * f["amount"]), "'amount' is > "),
        (
            lambda f: f.assign(amount=f["amount"].where(f.index % 2 == 0)),
            "'amount' is missing in 5",
        ),
        (lambda f: f.assign(kind="cheque"), "'kind' is any other in 100%"),
    ],
)
def test_rows_unlike_those_of_the_fit_are_told(fitted, capsys, change, said):
    out, err = predicted(fitted, change(rows(1000, 1)), capsys)
    assert out == ""
    assert err.count("\n") == 1
    assert said in err
    out, err = predicted(fitted, change(rows(1000, 1)), capsys, "--json")
    assert err == ""
    told = json.loads(out)
    assert told["rows"] == 1000
    assert len(told["unlike"]) == 1


def test_chance_alone_is_seldom_told():
    frame = rows(400, 5)
    X = frame[["amount", "kind"]]
    model = DecisionClassifier(PlainLogisticRegression(), positive="yes").fit(X, frame["late"])
    reference = reference_of(model, X, frame["late"])
    alarms = 0
    for seed in range(300):
        seen = Likeness(reference)
        new = rows(60, 100 + seed)[["amount", "kind"]]
        for start in (0, 20, 40):
            seen.add(Schema.learn(new[start : start + 20]).table)
        alarms += bool(seen.unlike())
    assert alarms <= 6
    assert Likeness(None).unlike() == []


def test_the_line_names_three_columns_at_most():
    frame = rows(400, 5)
    X = pd.DataFrame({f"x{k}": frame["amount"] for k in range(5)})
    model = DecisionClassifier(PlainLogisticRegression(), positive="yes").fit(X, frame["late"])
    seen = Likeness(reference_of(model, X, frame["late"]))
    seen.add(Schema.learn(100 * X).table)
    assert sentence(seen.unlike()).endswith("; and 2 more columns")
