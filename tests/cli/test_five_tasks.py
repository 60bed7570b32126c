"""Five tasks of real work, from the shell only: what a user types, and what must come of it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from laconic.cli.app import main


def write(path: Path, columns: dict, separator: str = ",") -> Path:
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, delimiter=separator)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def run(*words: object, fails: bool = False) -> None:
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    assert (stop.value.code not in (0, None)) is fails


def fit(capsys, *words: object) -> dict:
    run("fit", *words, "--only", "additive-single,logistic", "--json")
    return json.loads(capsys.readouterr().out)


def predicted(path: Path) -> dict[str, np.ndarray]:
    with path.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    return {name: np.array([row[j] for row in rows]) for j, name in enumerate(head)}


def chances(score: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    return draw.random(len(score)) < 1.0 / (1.0 + np.exp(-score))


@pytest.fixture
def draw() -> np.random.Generator:
    return np.random.default_rng(0)


def test_fraud_where_a_miss_costs_the_amount(tmp_path, capsys, draw):
    """Costs in money row by row, two scenarios, the model in use, and the dearest rows first."""
    n = 900
    amount = np.exp(draw.normal(4, 1, n))
    night, abroad = draw.random(n) < 0.3, draw.random(n) < 0.2
    score = -3.5 + 1.5 * night + 1.5 * abroad + 0.4 * (np.log(amount) - 4)
    fraud = chances(score, draw)
    table = {
        "payment id": [f"P{k:06d}" for k in draw.permutation(n)],
        "amount": [f"€{x:,.2f}" for x in amount],
        "night": np.where(night, "yes", "no"),
        "abroad": np.where(abroad, "yes", "no"),
        "old score": np.round(draw.random(n), 4),
        "fraud": np.where(fraud, "fraud", "genuine"),
    }
    data = write(tmp_path / "payments.csv", table)
    said = fit(
        capsys, data, "--target", "fraud", "--positive", "fraud", "--cost", "fp=5",
        "--cost-column", "fn=amount", "--scenario", "quiet:fp=1,fn=20",
        "--champion-column", "old score", "--out", tmp_path / "m",
    )  # fmt: skip
    assert said["champion"]["name"] == "old score"
    more, low, high = said["champion"]["more"]
    assert low < more < min(0.0, high)  # a random score is beaten
    assert [one["name"] for one in said["scenarios"]] == ["quiet"]
    assert said["scenarios"][0]["threshold"] == pytest.approx(1 / 21)
    page = (tmp_path / "m" / "report.html").read_text(encoding="utf-8")
    assert "The same model under other costs" in page
    assert "Your model old score costs" in page
    model = tmp_path / "m" / "model.json"
    assert said["threshold"] is None  # every payment has its own
    again = tmp_path / "again.json"
    run("report", model, data, "--target", "fraud", "-o", again)
    all_rows = json.loads(again.read_text(encoding="utf-8"))
    assert all_rows["costs_by_row"]
    run("predict", model, data, "--key", "amount", "--out", tmp_path / "p.csv")
    found = predicted(tmp_path / "p.csv")
    p = found["probability of fraud"].astype(float)
    money = np.array([float(cell[1:].replace(",", "")) for cell in found["amount"]])
    called = found["decision"] == "fraud"
    np.testing.assert_array_equal(called, p * money > (1 - p) * 5)
    paid = np.where(fraud, np.where(called, 0, money), np.where(called, 5, 0)).mean()
    assert all_rows["expected_cost"] == pytest.approx(paid)
    run("predict", model, data, "--scenario", "quiet", "--out", tmp_path / "q.csv")
    quiet = predicted(tmp_path / "q.csv")["decision"]
    np.testing.assert_array_equal(quiet == "fraud", p * 20 > 1 - p)
    capsys.readouterr()
    run("predict", model, data, "--scenario", "loud", "--out", tmp_path / "q.csv", fails=True)
    assert "no scenario 'loud'; it has quiet" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["watch", str(model), str(data)])
    assert "costs here are those of the mean amounts" in capsys.readouterr().out
    run("export", "sql", model, "--table", "payments", fails=True)
    assert "'amount', row by row" in capsys.readouterr().err


def test_fraud_with_so_many_calls_a_day(tmp_path, capsys, draw):
    """Sixty of a thousand payments can be looked at: the riskiest, and no more in the long run."""
    n = 3000
    hour, abroad = draw.integers(0, 24, n), draw.random(n) < 0.2
    fraud = chances(-4.0 + 0.08 * hour + 2.0 * abroad, draw)
    table = {"hour": hour, "abroad": np.where(abroad, "yes", "no"), "fraud": fraud.astype(int)}
    half = {name: cells[: n // 2] for name, cells in table.items()}
    rest = {name: cells[n // 2 :] for name, cells in table.items()}
    data = write(tmp_path / "p.csv", half)
    words = [data, "--target", "fraud", "--cost", "fn=30", "--out", tmp_path / "m"]
    fit(capsys, *words, "--capacity", "60/1000")
    new = write(tmp_path / "new.csv", rest)
    run("predict", tmp_path / "m" / "model.json", new, "--out", tmp_path / "q.csv")
    found = predicted(tmp_path / "q.csv")
    called, p = found["decision"] == "1", found["probability of 1"].astype(float)
    assert 0 < called.mean() <= 0.06 + 3 * np.sqrt(0.06 / len(called))
    assert p[called].min() >= p[~called].max()
    run("fit", *words, "--capacity", "60/1000", "--cost-column", "fn=hour", fails=True)
    assert "choose one" in capsys.readouterr().err


def test_a_hospital_whose_patients_come_again(tmp_path, capsys, draw):
    """Rows of a patient are held out together: noise is not called a model."""
    patients, visits = 90, 6
    person = np.repeat(np.arange(patients), visits)
    body = draw.normal(size=(patients, 3))[person] + 0.05 * draw.normal(size=(len(person), 3))
    table: dict = {f"lab {j}": [f"{x:.3f}" for x in body[:, j]] for j in range(3)}
    table["patient_id"] = [f"N{own:04d}" for own in person]
    table["ward"] = draw.choice(["A", "B"], len(person))
    table["readmitted"] = draw.integers(0, 2, patients)[person]  # says nothing of the body
    data = write(tmp_path / "visits.csv", table)
    words = [data, "--target", "readmitted", "--cost", "fn=3"]
    said = fit(capsys, *words, "--out", tmp_path / "m")
    assert any("same 'patient_id' (90 different) are held out together" in n for n in said["notes"])
    _, low, high = said["alternatives"]["always 1"]
    assert low <= 0 <= high  # fifteen patients and no signal: no claim
    told = fit(capsys, *words, "--group", "patient_id", "--out", tmp_path / "m")
    assert told["expected_cost"] == said["expected_cost"]
    loose = fit(capsys, *words, "--no-group", "--out", tmp_path / "m")
    assert any("should be held out together" in note for note in loose["notes"])
    # visits of one patient are not so many witnesses: the honest interval is wider
    width = [np.ptp(one["alternatives"]["always 1"][1:]) for one in (said, loose)]
    assert width[0] > 1.3 * width[1]


def test_credit_with_known_effects(tmp_path, capsys, draw):
    """Income may only lower the risk, age and children act apart, the postcode is not used."""
    n = 700
    income = np.exp(draw.normal(8, 0.5, n)).round()
    age, children = draw.integers(18, 75, n), draw.integers(0, 5, n)
    score = 8.0 - 1.2 * np.log(income) + 0.05 * (age - 40) * (children - 2)
    table = {
        "income": income, "age": age, "children": children,
        "postcode": draw.choice(["01000", "02000", "75011"], n),
        "default": np.where(chances(score, draw), "bad", "ok"),
    }  # fmt: skip
    data = write(tmp_path / "loans.csv", table)
    run(
        "fit", data, "--target", "default", "--positive", "bad", "--cost", "fn=5",
        "--monotone", "income=-", "--forbid", "age:children", "--drop", "postcode",
        "--only", "additive,logistic", "--out", tmp_path / "m", "--json",
    )  # fmt: skip
    said = json.loads(capsys.readouterr().out)
    notes = dict(zip(said["comparison"]["candidate"], said["comparison"]["note"], strict=True))
    assert notes["logistic"] == "left out: it cannot keep monotone"
    content = json.loads((tmp_path / "m" / "model.json").read_text())
    read = [set(term["columns"]) for term in content["form"]["terms"]]
    assert {"age", "children"} not in read
    assert not any("postcode" in columns for columns in read)
    grid = {name: [str(cells[0])] * 60 for name, cells in table.items() if name != "default"}
    grid["income"] = [str(x) for x in np.linspace(100, 20000, 60).round()]
    run("predict", tmp_path / "m" / "model.json", write(tmp_path / "g.csv", grid),
        "--out", tmp_path / "p.csv")  # fmt: skip
    risk = predicted(tmp_path / "p.csv")["probability of bad"].astype(float)
    assert np.ptp(risk) > 0.1
    assert (np.diff(risk) <= 0).all()
    champion = ["--champion", tmp_path / "m" / "model.json", "--only", "logistic", "--json"]
    run("fit", data, "--target", "default", "--positive", "bad", "--cost", "fn=5", "--drop",
        "postcode", *champion, "--out", tmp_path / "again")  # fmt: skip
    beside = json.loads(capsys.readouterr().out)["champion"]
    assert beside["name"] == "model.json"
    assert beside["more"][1] < beside["more"][0] < beside["more"][2]
    assert "Your model model.json costs" in (tmp_path / "again" / "report.html").read_text()
    for words, sentence in (
        (["--monotone", "postcode=-"], "'postcode' is left out"),
        (["--monotone", "income"], "write COLUMN=+ or COLUMN=-"),
        (["--forbid", "age"], "COLUMN:COLUMN"),
        (["--champion", "mine.joblib"], "a pickle runs its author's code"),
    ):
        run("fit", data, "--target", "default", "--positive", "bad", "--drop", "postcode",
            "--out", tmp_path / "n", *words, fails=True)  # fmt: skip
        assert sentence in capsys.readouterr().err
    assert not (tmp_path / "n").exists()


def test_churn_with_french_numbers(tmp_path, capsys, draw):
    """Decimal commas, amounts, shares, dates with the day first, oui and non; as parsed by hand."""
    n = 2000
    bill, share = np.exp(draw.normal(3.5, 0.4, n)), draw.random(n)
    days = np.datetime64("2021-01-01") + draw.integers(0, 1000, n)
    loyal = draw.random(n) < 0.5
    score = -3.0 + 0.05 * (bill - 33) - 1.5 * loyal + 4.0 * share
    label = np.where(chances(score, draw), "oui", "non")
    french = {
        "client": [f"C{k:05d}" for k in draw.permutation(n)],
        "facture": [f"{x:,.2f} €".replace(",", " ").replace(".", ",") for x in bill],
        "part données": [f"{100 * x:.1f} %".replace(".", ",") for x in share],
        "abonné le": [f"{d.astype(object):%d/%m/%Y}" for d in days],
        "fidèle": np.where(loyal, "oui", "non"),
        "résilie": label,
    }
    plain = {
        "facture": np.round(bill, 2), "part": np.round(100 * share, 1),
        "jours": (days - np.datetime64("2020-01-01")).astype(int),
        "fidèle": np.where(loyal, "oui", "non"), "résilie": label,
    }  # fmt: skip
    raw = write(tmp_path / "clients.csv", french, ";")
    words = ["--positive", "oui", "--cost", "fn=4", "--target", "résilie"]
    hand = write(tmp_path / "hand.csv", plain)
    costs = []
    for table, folder in ((raw, tmp_path / "m"), (hand, tmp_path / "h")):
        fit(capsys, table, *words, "--language", "fr", "--out", folder)
        run("predict", folder / "model.json", table, "--out", tmp_path / "p.csv")
        resigned = predicted(tmp_path / "p.csv")["decision"] == "oui"
        truth = 1.0 / (1.0 + np.exp(-score))  # what the decisions cost in the long run
        costs.append(np.where(resigned, 1.0 - truth, 4.0 * truth).mean())
    assert costs[0] <= 1.02 * costs[1]
    page = (tmp_path / "m" / "report.html").read_text(encoding="utf-8")
    assert "coûte" in page
    kinds = {c["name"]: c["kind"] for c in _reading(tmp_path / "m")}
    assert kinds["abonné le"] == "date"
    assert kinds["facture"] == kinds["part données"] == "number"
    assert kinds["client"] == "id"


def test_triage_of_three_classes_by_a_matrix(tmp_path, capsys, draw):
    """Sending a critical case home costs most; a matrix by names says what every error costs."""
    n = 600
    pain, pulse = draw.integers(0, 11, n), draw.normal(80, 15, n).round()
    level = 0.5 * pain + 0.06 * (pulse - 80) + draw.normal(size=n)
    urgency = np.array(["home", "ward", "critical"])[np.digitize(level, [2.5, 5.0])]
    data = write(tmp_path / "cases.csv", {"pain": pain, "pulse": pulse, "urgency": urgency})
    costs = tmp_path / "costs.csv"
    costs.write_text("truth,critical,home,ward\ncritical,0,100,20\nhome,5,0,1\nward,4,8,0\n")
    said = fit(capsys, data, "--target", "urgency", "--costs", costs, "--out", tmp_path / "m")
    assert said["costs"] == [[0, 100, 20], [5, 0, 1], [4, 8, 0]]
    best = min(cost for name, cost in said["baselines"].items() if name.startswith("always"))
    assert said["expected_cost"] < best
    run("predict", tmp_path / "m" / "model.json", data, "--out", tmp_path / "p.csv")
    found = predicted(tmp_path / "p.csv")
    p = np.column_stack([found[f"probability of {c}"] for c in said["classes"]]).astype(float)
    least = (p @ np.array(said["costs"])).argmin(axis=1)
    np.testing.assert_array_equal(found["decision"], np.array(said["classes"])[least])
    for words, sentence in (
        (["--cost", "fn=5"], "for two classes"),
        (["--monotone", "pain=+"], "monotone is for two classes"),
        (["--cost-column", "fn=pulse"], "for two classes"),
    ):
        run("fit", data, "--target", "urgency", "--out", tmp_path / "n", *words, fails=True)
        assert sentence in capsys.readouterr().err


def _reading(folder: Path) -> list[dict]:
    return json.loads((folder / "model.json").read_text(encoding="utf-8"))["reading"]["columns"]


def test_compare_asks_what_fit_asks(tmp_path, capsys, draw):
    """Weights, costs of rows, signs and pairs change what is compared as they change a fit."""
    n = 500
    amount, age, sex = np.exp(draw.normal(4, 1, n)), draw.uniform(20, 70, n), draw.random(n) < 0.5
    fraud = chances(age / 20 - 3.5 + 0.3 * np.log(amount) * sex, draw)
    data = write(
        tmp_path / "payments.csv",
        {
            "amount": np.round(amount, 2), "age": np.round(age, 1),
            "sex": np.where(sex, "f", "m"), "times": draw.integers(1, 4, n),
            "fraud": np.where(fraud, "yes", "no"),
        },
    )  # fmt: skip
    words = [data, "--target", "fraud", "--positive", "yes", "--cost", "fp=5"]
    words += ["--only", "additive,logistic,bayes"]

    def compared(*more: object) -> dict:
        run("compare", *words, "--json", *more)
        return json.loads(capsys.readouterr().out)

    plain = compared()
    assert compared("--weight", "times")["log_loss"] != plain["log_loss"]
    by_amount = compared("--cost-column", "fn=amount")["cost"]
    assert min(cost for cost in by_amount if cost is not None) > max(
        cost for cost in plain["cost"] if cost is not None
    )
    kept = compared("--monotone", "age=+")
    notes = dict(zip(kept["candidate"], kept["note"], strict=True))
    assert "monotone" in notes["bayes"]
    assert compared("--forbid", "age:sex")["candidate"]
    run("compare", *words, "--forbid", "age:sox", fails=True)
    assert "sox" in capsys.readouterr().err
    run("compare", *words, "--language", "fr", "--weight", "times")
    assert "candidat " in capsys.readouterr().out
    run("compare", *words, "--scan", "--cost-column", "fn=amount", fails=True)
    assert "--cost-column is for a table that is read into memory" in capsys.readouterr().err
