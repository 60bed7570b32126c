"""``laconic export``, from a model file to SQL, ONNX, a scorecard and a card."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from laconic import DecisionClassifier, ScorecardClassifier
from laconic.cli.export import export_app, table_path
from laconic.export.model_file import load, save


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> tuple[Path, dict[str, Any], np.ndarray]:
    draw = np.random.default_rng(0)
    X = {"age": draw.normal(45, 12, 600), "job": draw.choice(["cook", "smith"], 600)}
    late = X["age"] + 20 * (X["job"] == "cook") + draw.normal(0, 9, 600)
    y = np.where(late > 65, "yes", "no")
    costs = {"no": {"yes": 1}, "yes": {"no": 4}}
    model = DecisionClassifier(ScorecardClassifier(), costs=costs).fit(X, y)
    path = tmp_path_factory.mktemp("export") / "model.json"
    save(model, path, summary={"expected_cost": 0.25, "classes": ["no", "yes"]})
    return path, X, y


def run(*words: object) -> str:
    result = CliRunner().invoke(export_app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_sql(saved, tmp_path):
    path, X, _ = saved
    out = tmp_path / "score.sql"
    run("sql", path, "--table", "main.people", "--key", "id", "--dialect", "sqlite",
        "--reasons", 1, "-o", out)  # fmt: skip
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE people (id INTEGER, age REAL, job TEXT)")
    rows = zip(range(600), X["age"].tolist(), X["job"].tolist(), strict=True)
    base.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
    found = base.execute(out.read_text())
    names = [column[0] for column in found.description]
    assert names == ["id", "probability of no", "probability of yes", "decision", "reason 1"]
    result = sorted(found.fetchall())
    base.close()
    model = load(path)
    np.testing.assert_allclose(
        [row[1:3] for row in result], model.predict_proba(X), rtol=0, atol=1e-12
    )
    assert [row[3] for row in result] == model.predict(X).tolist()


def test_onnx(saved, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    path, X, _ = saved
    out = tmp_path / "model.onnx"
    run("onnx", path, "-o", out)
    session = onnxruntime.InferenceSession(out.read_bytes())
    feed = {"age": X["age"][:, None], "job": X["job"].astype(object)[:, None]}
    _, proba = session.run(None, feed)
    np.testing.assert_allclose(proba, load(path).predict_proba(X), rtol=0, atol=1e-12)


def test_scorecard(saved, tmp_path):
    path, X, y = saved
    rows = tmp_path / "rows.csv"
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["age", "job", "late"])
    writer.writerows(zip(X["age"].tolist(), X["job"].tolist(), y.tolist(), strict=True))
    rows.write_text(text.getvalue())
    shown = run("scorecard", path, "--rows", rows, "--target", "late")
    assert "What rounding costs" in shown
    assert "What rounding costs" not in run("scorecard", path)
    out = tmp_path / "card.json"
    run("scorecard", path, "--rows", rows, "--target", "late", "-o", out)
    assert json.loads(out.read_text())["loss"]["rows"] == 600
    out = tmp_path / "card.csv"
    run("scorecard", path, "-o", out)
    assert out.read_text().startswith("variable,part,points\n")


def test_card(saved):
    path, *_ = saved
    text = run("card", path, "--title", "Late payers")
    assert text.startswith("# Late payers\n")
    assert "ScorecardClassifier" in text
    assert "| age | numeric | |" in text


def test_errors_are_sentences(saved):
    path, *_ = saved
    with pytest.raises(ValueError, match="dialect"):
        run("sql", path, "--table", "t", "--dialect", "oracle")
    with pytest.raises(ValueError, match=r"TABLE or SCHEMA\.TABLE"):
        run("sql", path, "--table", "a..b")
    assert table_path('"a.""b".c') == ['a."b', 'c']  # fmt: skip
