"""Exports of models with a reading: what stands in the table is repeated, the rest is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import laconic
from databases import in_duckdb, in_sqlite
from laconic.data.tables.files import read_frame
from laconic.export.parts import NotExportableError


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    draw, n = np.random.default_rng(0), 400
    signal = draw.normal(size=n)
    columns = {
        "amount": [f"{x:.3f}" for x in signal + draw.normal(size=n)],
        "smoker": np.where(signal + draw.normal(size=n) > 0, "TRUE", "FALSE"),
        "member": np.where(draw.random(n) < 0.5, "Yes", "No"),
        "postcode": draw.choice(["01322", "00017", "98004"], n),
        "kind": draw.choice(["a", "b c", "d"], n),
    }
    columns["amount"][7] = "unknown"
    columns["smoker"] = np.where(draw.random(n) < 0.05, "", columns["smoker"])
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    y = np.where(signal + 0.5 * draw.normal(size=n) > 0.3, "bad", "ok")
    frame = read_frame(path)
    reading = laconic.look(frame).reading
    model = laconic.LaconicClassifier(
        {"bad": {"ok": 5}, "ok": {"bad": 1}}, candidates=["logistic"], random_state=0,
        reading=reading,
    )  # fmt: skip
    return path, frame, model.fit(frame, y)


def test_sql_reads_the_raw_table_as_the_model_does(fitted):
    path, frame, model = fitted
    expected = model.predict_proba(frame)
    pytest.importorskip("duckdb")
    for dialect, answer in (("duckdb", in_duckdb), ("sqlite", in_sqlite)):
        found = answer(path, laconic.to_sql(model, "rows", dialect=dialect))
        scores = np.array([row[:2] for row in found], dtype=float)
        np.testing.assert_allclose(scores, expected, atol=1e-12)


def test_onnx_knows_every_word_for_yes_and_no(fitted):
    onnxruntime = pytest.importorskip("onnxruntime")
    _, frame, model = fitted
    made = laconic.to_onnx(model)
    session = onnxruntime.InferenceSession(made.SerializeToString())
    amount = pd.to_numeric(frame["amount"].to_pandas(), errors="coerce").to_numpy()
    given = {"amount": amount.reshape(-1, 1)}
    for name in ("smoker", "member", "postcode", "kind"):
        cells = ["" if cell is None else cell for cell in frame[name].to_list()]
        given[name] = np.array(cells, dtype=object).reshape(-1, 1)
    wanted = {one.name for one in session.get_inputs()}
    given = {name: cells for name, cells in given.items() if name in wanted}
    found = session.run(None, given)[1]
    np.testing.assert_allclose(found, model.predict_proba(frame), atol=1e-12)


@pytest.mark.parametrize(
    ("cells", "sentence"),
    [
        (lambda x: f"{x:.2f}".replace(".", ","), "'odd' was read as number with a decimal comma"),
        (lambda x: f"{x:.2f} kg", "'odd' was read as number in kg"),
        (lambda x: f"({x:.2f})", "'odd' was read as number"),
        (lambda x: str(np.datetime64("2024-01-01") + int(20 * x)), "'odd' was read as date"),
        (lambda x: f"{int(x)}:30", "'odd' was read as time of day"),
    ],
)
def test_what_an_export_cannot_repeat_is_refused_by_name(cells, sentence):
    draw = np.random.default_rng(1)
    x = draw.uniform(1, 20, 200)
    frame = pd.DataFrame({"odd": [cells(v) for v in x], "fine": draw.normal(size=200)})
    y = x + draw.normal(size=200) > 10
    model = laconic.LaconicClassifier(candidates=["logistic"], random_state=0).fit(frame, y)
    for export in (lambda: laconic.to_sql(model, "rows"), lambda: laconic.to_onnx(model)):
        with pytest.raises(NotExportableError, match=sentence):
            export()
    assert laconic.to_scorecard(model, frame, y).to_markdown()
