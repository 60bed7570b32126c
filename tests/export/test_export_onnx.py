"""ONNX: the same probabilities and decisions as Python, in onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import export_cases as cases
import laconic
from laconic import DecisionClassifier, SparseAdditiveClassifier
from laconic.export.onnx_graph import register_onnx_converters, to_onnx
from laconic.export.parts import NotExportableError

onnxruntime = pytest.importorskip("onnxruntime")
GONE = "<missing>"


def run(made: Any, feed: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(made.SerializeToString(), options).run(None, feed)


def feed_of(made: Any, frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """Columns as the inputs of the graph, missing texts marked."""
    found = {}
    for one in made.graph.input:
        values = frame[one.name]
        if one.type.tensor_type.elem_type == 8:
            cells = [GONE if pd.isna(cell) else cell for cell in values]
            found[one.name] = np.array(cells, dtype=object)[:, None]
        else:
            found[one.name] = values.astype("Float64").to_numpy(np.float64, na_value=np.nan)[
                :, None
            ]
    return found


def check(model: DecisionClassifier, frame: pd.DataFrame) -> None:
    made = to_onnx(model, missing_text=GONE)
    label, proba = run(made, feed_of(made, frame))
    assert proba.dtype == np.float64
    np.testing.assert_allclose(proba, model.predict_proba(frame), rtol=0, atol=1e-12)
    said = model.predict(frame).tolist()
    assert label.tolist() == said
    assert len(set(said)) >= 2


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("rule", ["plain", "prior and reject"])
def test_same_as_python(n_classes, rule):
    check(cases.ruled(n_classes, rule), cases.rows(10_000))


@pytest.mark.parametrize(("n_classes", "link", "more"), cases.LINKS)
def test_every_link(n_classes, link, more):
    frame = cases.rows(1000)
    frame.loc[frame[cases.AGE].abs() > 1e9, cases.AGE] = 4.0
    check(cases.decided(cases.form(n_classes, link, **more)), frame)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("family", sorted(cases.FAMILIES))
def test_every_family(family, n_classes):
    check(*cases.family_model(family, n_classes))


def test_a_card():
    check(*cases.card_model())


def test_probabilities_that_end_at_a_zone():
    check(*cases.clipped_model())


@pytest.mark.parametrize("n_classes", [2, 3])
def test_pipeline_of_skl2onnx(n_classes):
    skl2onnx = pytest.importorskip("skl2onnx")
    draw = np.random.default_rng(0)
    X = draw.normal(size=(600, 3))
    y = np.array(["low", "mid", "top"])[np.digitize(X[:, 0] + X[:, 1] ** 2, [0.2, 1.5])]
    y = np.where(y == "top", "mid", y) if n_classes == 2 else y
    model = make_pipeline(
        StandardScaler(), DecisionClassifier(SparseAdditiveClassifier(), reject_cost=0.2)
    ).fit(X, y)
    register_onnx_converters()
    made = skl2onnx.to_onnx(model, X, options={"zipmap": False}, target_opset=17)
    label, proba = run(made, {"X": X})
    np.testing.assert_allclose(proba, model.predict_proba(X), rtol=0, atol=1e-12)
    assert label.tolist() == model.predict(X).tolist()
    assert "reject" in label


def test_columns_of_a_pipeline_keep_their_categories():
    skl2onnx = pytest.importorskip("skl2onnx")
    from skl2onnx.common.data_types import DoubleTensorType, StringTensorType

    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"x": draw.normal(size=500), "job": draw.choice(["cook", "smith"], 500)})
    y = (frame["x"] + 2 * (frame["job"] == "cook") > 1).to_numpy().astype(int)
    model = DecisionClassifier(SparseAdditiveClassifier()).fit(frame, y)
    register_onnx_converters()
    types = [("x", DoubleTensorType([None, 1])), ("job", StringTensorType([None, 1]))]
    made = skl2onnx.convert_sklearn(
        model, initial_types=types, options={"zipmap": False}, target_opset=17
    )
    frame.loc[3, "job"] = "unseen"
    feed = {"x": frame[["x"]].to_numpy(), "job": frame[["job"]].to_numpy(dtype=object)}
    label, proba = run(made, feed)
    np.testing.assert_allclose(proba, model.predict_proba(frame), rtol=0, atol=1e-12)
    assert label.tolist() == model.predict(frame).tolist()


def test_a_missing_text_that_is_a_category_is_refused():
    with pytest.raises(NotExportableError, match="missing_text"):
        to_onnx(cases.decided(cases.form(2)), missing_text="cook")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["bare", "decision", "choice"])
def test_skl2onnx_writes_bare_models_and_the_choice(kind, dtype):
    """Also with cells of 32 bits, with ZipMap and without."""
    skl2onnx = pytest.importorskip("skl2onnx")
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    draw = np.random.default_rng(0)
    X = draw.normal(size=(200, 3)).astype(dtype)
    y = np.where(X[:, 0] + draw.normal(size=200) > 0.4, "late", "fine")
    costs = {"late": {"fine": 5}, "fine": {"late": 1}}
    inner = laconic.PlainLogisticRegression()
    model = {
        "bare": inner,
        "decision": laconic.DecisionClassifier(inner, costs=costs),
        "choice": laconic.LaconicClassifier(
            costs=costs, candidates=["logistic"], cv=2, random_state=0
        ),
    }[kind].fit(X, y)
    register_onnx_converters()
    tensor = FloatTensorType if dtype is np.float32 else DoubleTensorType
    made = skl2onnx.to_onnx(
        model, initial_types=[("X", tensor([None, 3]))], options={"zipmap": False}, target_opset=17
    )
    session = onnxruntime.InferenceSession(made.SerializeToString())
    label, proba = session.run(None, {"X": X})
    assert (label == model.predict(X)).all()
    assert np.abs(proba - model.predict_proba(X)).max() < 1e-12
    for zipped in (True, "columns"):
        made = skl2onnx.to_onnx(
            model,
            initial_types=[("X", tensor([None, 3]))],
            options={id(model): {"zipmap": zipped}},
            target_opset=17,
        )
        session = onnxruntime.InferenceSession(made.SerializeToString())
        label, *found = session.run(None, {"X": X})
        assert (label == model.predict(X)).all()
        if zipped is True:
            found = [np.array([row[name] for row in found[0]]) for name in model.classes_]
        np.testing.assert_allclose(np.column_stack(found), model.predict_proba(X), atol=1e-6)
