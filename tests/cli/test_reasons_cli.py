"""Reasons in words and money from the shell, on a model file written in Python."""

import csv
import io
import re

import numpy as np
import pandas as pd
import pytest

import laconic
from laconic.cli import main
from laconic.decide.reference import reference_of


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    draw = np.random.default_rng(0)
    X = pd.DataFrame({"amount": draw.gamma(2.0, 500.0, 300), "night": draw.integers(0, 2, 300)})
    score = 0.002 * X["amount"] + X["night"] - 3.5 + draw.logistic(size=300)
    y = np.where(score > 0, "1", "0")
    costs = {"0": {"1": 1}, "1": {"0": 8}}
    model = laconic.DecisionClassifier(laconic.PlainLogisticRegression(), costs=costs, positive="1")
    model.fit(X, y)
    laconic.save(
        model, folder / "model.json", reference=reference_of(model, X, y),
        summary={"positive": "1", "target": "fraud"},
    )  # fmt: skip
    laconic.save(model, folder / "bare.json")
    X.assign(key=range(300)).to_csv(folder / "rows.csv", index=False)
    X.assign(fraud=y).to_csv(folder / "test.csv", index=False)
    X[:1].to_csv(folder / "one.csv", index=False)
    return folder, model, X


def run(capsys, *arguments, code=0):
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    said = capsys.readouterr()
    assert stop.value.code == code, said.err
    return said.out if code == 0 else said.err


def test_predict_writes_columns_of_reasons(saved, capsys):
    folder, model, X = saved
    out = run(capsys, "predict", folder / "model.json", folder / "rows.csv", "--reasons", 2,
              "--key", "key")  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(out)))
    assert list(rows[0]) == ["key", "probability of 0", "probability of 1", "decision", "reason 1",
                             "reason 2"]  # fmt: skip
    factors = np.exp(np.asarray(model.explain(X).against(model.explain(X))))
    names = model.explain(X).names
    for i, row in enumerate(rows[:40]):
        assert row["decision"] == model.predict(X[i : i + 1])[0]
        strongest = names[np.abs(np.log(factors[i])).argmax()]
        assert row["reason 1"].startswith(f"{strongest} ")
        assert " the odds of fraud = 1 " in row["reason 1"]
        times = float(re.search(r"(\d[\d,.]*)(?: times)?$", row["reason 1"])[1].replace(",", ""))
        size = np.exp(np.abs(np.log(factors[i])).max())
        assert times == pytest.approx(size, rel=0.06)


def test_explain_in_french_against_a_named_row_and_only_what_speaks_for(saved, capsys):
    folder, *_ = saved
    out = run(capsys, "explain", folder / "model.json", folder / "rows.csv", "--words",
              "--language", "fr", "--against", folder / "one.csv", "--adverse")  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(out)))
    said = [row[f"reason {k}"] for row in rows for k in (1, 2, 3) if row[f"reason {k}"]]
    assert said
    assert all("multiplie la cote de fraud = 1 par " in text for text in said)
    assert rows[0]["reason 1"] == ""  # the row it is told against


def test_a_file_without_an_average_row_asks_for_rows(saved, capsys):
    folder, *_ = saved
    said = run(capsys, "predict", folder / "bare.json", folder / "rows.csv", "--reasons", 1, code=2)
    assert said.count("\n") == 1
    assert "--against FILE" in said


def test_the_report_of_a_file_in_money(saved, capsys, tmp_path):
    folder, *_ = saved
    page = tmp_path / "page.md"
    run(capsys, "report", folder / "model.json", folder / "test.csv", "--target", "fraud",
        "--cases", "200/day", "--currency", "CHF", "--language", "fr", "-o", page)  # fmt: skip
    text = page.read_text()
    assert re.search(r"À raison de 200 cas par jour, cela fait [\d,]+ CHF par jour", text)
    assert "fraud = 1" in text
    said = run(capsys, "report", folder / "model.json", folder / "test.csv", "--target", "fraud",
               "--cases", "lots", "-o", tmp_path / "no.md", code=2)  # fmt: skip
    assert "such as 5000/month" in said
    assert not (tmp_path / "no.md").exists()


def test_the_scorecard_of_a_lender(saved, capsys):
    folder, *_ = saved
    out = run(capsys, "export", "scorecard", folder / "model.json", "--rows", folder / "test.csv",
              "--target", "fraud", "--base-score", 600, "--base-odds", 50)  # fmt: skip
    assert "A total of 600 is odds of 50 to 1 for 0." in out
    assert "rate of 1" in out


@pytest.mark.parametrize("candidate", ["logistic", "bayes", "additive-single"])
def test_a_word_of_a_text_is_there_or_not_as_on_the_page(tmp_path, capsys, candidate):
    """Visits with remarks: whether "worse" stands in them is yes or no, not 1 or 0."""
    draw = np.random.default_rng(0)
    worse = draw.random(500) < 0.4
    remarks = [
        f"{'worse ' if own else ''}at home with the nurse on round {i}"
        for i, own in enumerate(worse)
    ]
    ill = draw.logistic(size=500) + 3.0 * worse - 1.5 > 0
    frame = pd.DataFrame({"remarks": remarks, "visits": draw.integers(0, 2, 500)})
    frame.loc[0, "remarks"] = None
    frame.assign(ill=np.where(ill, "ill", "well")).to_csv(tmp_path / "rows.csv", index=False)
    frame.to_csv(tmp_path / "new.csv", index=False)
    run(capsys, "fit", tmp_path / "rows.csv", "--target", "ill", "--positive", "ill",
        "--only", candidate, "--out", tmp_path / "m")  # fmt: skip
    model = tmp_path / "m" / "model.json"
    for language, yes, no, gone in (
        ("en", "yes", "no", "missing"),
        ("fr", "oui", "non", "manquant"),
    ):
        said = run(capsys, "explain", model, tmp_path / "new.csv", "--words", "--reasons", 3,
                   "--language", language)  # fmt: skip
        told = re.findall(r"remarks: worse (\S+) ", said)
        assert {yes, no} <= set(told) <= {yes, no, gone}
        first = 1 + worse[1:].argmax()
        assert f"remarks: worse {yes} " in str(list(csv.DictReader(io.StringIO(said)))[first])
    said = run(capsys, "predict", model, tmp_path / "new.csv", "--reasons", 3)
    assert re.search("remarks: worse no ", said)
    assert not re.search("remarks: [a-z]+ [01] ", said)
