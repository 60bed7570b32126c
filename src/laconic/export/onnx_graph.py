"""A fitted decision model as an ONNX graph in 64-bit floats, alone or in a skl2onnx pipeline."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import laconic
from laconic import __version__
from laconic.decide.estimator import DecisionClassifier
from laconic.export.onnx_terms import Graph, write_model
from laconic.export.parts import (
    NotExportableError,
    Parts,
    decision_layer,
    raw_parts,
    uniform_labels,
)

OPSET = 17
ML_OPSET = 3
IR_VERSION = 8


class _Tensor(Protocol):
    """What a skl2onnx variable has."""

    onnx_name: str
    type: Any


def to_onnx(model: Any, *, missing_text: str = "") -> Any:
    """An ONNX model with the outputs ``label`` and ``probabilities``.

    Columns with names are inputs of their own, of shape (rows, 1): doubles for numbers and truth
    values (NaN where missing), strings for categories. A model fitted on an array has one input
    ``X`` of shape (rows, columns).

    Parameters
    ----------
    model : DecisionClassifier, or a model whose ``decision_`` is one
        Fitted, with an additive form (see :func:`laconic.export.parts.parts_of`).
    missing_text : str, default=""
        The text that stands for a missing category, since an ONNX string cannot be missing.

    Returns
    -------
    onnx.ModelProto
        Needs the extra ``laconic[onnx]``. ``SerializeToString()`` gives the bytes of a file.

    Examples
    --------
    >>> import numpy as np
    >>> import onnxruntime
    >>> from laconic import DecisionClassifier, SparseAdditiveClassifier
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = X[:, 0] + X[:, 1] ** 2 > 1
    >>> model = DecisionClassifier(SparseAdditiveClassifier()).fit(X, y.astype(int))
    >>> session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    >>> label, probabilities = session.run(None, {"X": X})
    >>> bool((label == model.predict(X)).all())
    True
    """
    onnx = _onnx()
    parts = raw_parts(model, "ONNX")
    graph = _Standalone(onnx, parts)
    types = onnx.TensorProto
    inputs, cells = [], {}
    if parts.schema.named:
        for name in parts.columns:
            kind = types.STRING if parts.kind(name) == "categorical" else types.DOUBLE
            inputs.append(onnx.helper.make_tensor_value_info(name, kind, ["rows", 1]))
            cells[name] = name
    else:
        width = len(parts.schema.names)
        inputs.append(onnx.helper.make_tensor_value_info("X", types.DOUBLE, ["rows", width]))
        cells = columns_of_matrix(graph, "X", parts)
    label, proba = write_model(graph, parts, cells, missing_text)
    graph.node("Identity", label, output="label")
    graph.node("Identity", proba, output="probabilities")
    outputs = [
        onnx.helper.make_tensor_value_info("label", label_type(parts, types), ["rows"]),
        onnx.helper.make_tensor_value_info(
            "probabilities", types.DOUBLE, ["rows", parts.rule.n_classes]
        ),
    ]
    made = onnx.helper.make_graph(graph.nodes, "laconic", inputs, outputs, graph.constants)
    opsets = [
        onnx.helper.make_opsetid("", OPSET),
        onnx.helper.make_opsetid("ai.onnx.ml", ML_OPSET),
    ]
    found = onnx.helper.make_model(
        made, opset_imports=opsets, producer_name="laconic", producer_version=__version__
    )
    found.ir_version = IR_VERSION
    onnx.checker.check_model(found)
    return found


def _onnx() -> Any:
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise NotExportableError("ONNX needs the package onnx: install laconic[onnx].") from error
    return onnx


def label_type(parts: Parts, types: Any) -> int:
    kind = np.asarray(uniform_labels(parts.rule)).dtype.kind
    found = {"U": types.STRING, "b": types.BOOL, "i": types.INT64, "f": types.DOUBLE}
    return int(found[kind])


def columns_of_matrix(graph: Graph, matrix: str, parts: Parts) -> dict[str, str]:
    """The columns that the model reads, cut out of one matrix."""
    return {
        name: graph.node(
            "Gather", matrix, graph.constant(np.array(parts.schema.names.index(name))), axis=1
        )
        for name in parts.columns
    }


class _Standalone:
    """Collects the nodes and constants of a graph of its own."""

    def __init__(self, onnx: Any, parts: Parts) -> None:
        self._onnx = onnx
        self._prefix = "laconic"
        while any(name.startswith(self._prefix) for name in parts.schema.names):
            self._prefix += "_"
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def node(self, op: str, *inputs: str, output: str = "", domain: str = "", **more: Any) -> str:
        output = output or f"{self._prefix}_{len(self.nodes)}_{op.lower()}"
        made = self._onnx.helper.make_node(op, list(inputs), [output], domain=domain, **more)
        self.nodes.append(made)
        return output

    def constant(self, values: NDArray[Any]) -> str:
        name = f"{self._prefix}_constant_{len(self.constants)}"
        if values.dtype.kind == "U":
            values = values.astype(object)
        self.constants.append(self._onnx.numpy_helper.from_array(values, name))
        return name


class _InPipeline:
    """Adds nodes to the container of a skl2onnx conversion."""

    def __init__(self, scope: Any, container: Any) -> None:
        self._scope, self._container = scope, container
        self._types = _onnx().TensorProto

    def node(self, op: str, *inputs: str, output: str = "", domain: str = "", **more: Any) -> str:
        output = output or self._scope.get_unique_variable_name("laconic")
        version = ML_OPSET - 1 if domain else _SINCE.get(op, 13)
        self._container.add_node(
            op,
            list(inputs),
            [output],
            op_domain=domain,
            op_version=version,
            name=self._scope.get_unique_operator_name(f"laconic_{op}"),
            **more,
        )
        return output

    def constant(self, values: NDArray[Any]) -> str:
        name = str(self._scope.get_unique_variable_name("laconic_constant"))
        kinds = {
            "f": self._types.DOUBLE,
            "i": self._types.INT64,
            "b": self._types.BOOL,
            "U": self._types.STRING,
        }
        content = values.ravel().tolist()
        if values.dtype.kind == "U":
            content = [text.encode() for text in content]
        self._container.add_initializer(name, kinds[values.dtype.kind], list(values.shape), content)
        return name


_SINCE = {"Where": 16, "LessOrEqual": 16, "Identity": 16, "Reshape": 14, "Add": 14, "Sub": 14,
          "Mul": 14, "Div": 14, "Round": 11}  # fmt: skip
"""The version in which an operator last changed, up to the version used here."""


def register_onnx_converters() -> None:
    """Let skl2onnx convert a model of this library, alone or at the end of a pipeline.

    A LaconicClassifier or DecisionClassifier decides at least expected cost; a bare family, such as
    a SparseAdditiveClassifier, for the likeliest class, as its ``predict`` does.

    Call it once before ``skl2onnx.to_onnx(pipeline, ...)``. Give inputs of 64-bit floats and
    ``target_opset`` 17 or later; the probabilities are 64-bit whatever the inputs are, but 32-bit
    in the dictionaries of ZipMap, which skl2onnx adds unless ``options={"zipmap": False}``.

    Examples
    --------
    >>> import numpy as np
    >>> import onnxruntime
    >>> import skl2onnx
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from laconic import DecisionClassifier, SparseAdditiveClassifier
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = (X[:, 0] + X[:, 1] ** 2 > 1).astype(int)
    >>> model = make_pipeline(StandardScaler(), DecisionClassifier(SparseAdditiveClassifier()))
    >>> register_onnx_converters()
    >>> made = skl2onnx.to_onnx(model.fit(X, y), X, options={"zipmap": False}, target_opset=17)
    >>> session = onnxruntime.InferenceSession(made.SerializeToString())
    >>> label, probabilities = session.run(None, {"X": X})
    >>> bool(np.abs(probabilities - model.predict_proba(X)).max() < 1e-12)
    True
    """
    try:
        from skl2onnx import update_registered_converter
    except ImportError as error:
        raise NotExportableError(
            "Pipelines need the package skl2onnx: install laconic[onnx]."
        ) from error
    for name in _CONVERTED:
        update_registered_converter(
            getattr(laconic, name),
            f"Laconic{name}",
            _output_types,
            _convert,
            options={"zipmap": [True, False, "columns"], "nocl": [True, False]},
            overwrite=True,
        )


_CONVERTED = (
    "DecisionClassifier", "LaconicClassifier", "BlendedClassifier", "PlainLogisticRegression",
    "GrayZoneLogisticRegression", "GrayZoneLogisticRegressionCV", "SparseAdditiveClassifier",
    "WeightedNaiveBayes", "ScorecardClassifier", "SparseRulesClassifier", "CqBoostClassifier",
    "ConvexRiskClassifier", "OptimalScorecardClassifier",
)  # fmt: skip


def _parts(model: Any) -> Parts:
    """What is written: with its decision layer, or of a bare model for the likeliest class."""
    if isinstance(model, DecisionClassifier) or hasattr(model, "decision_"):
        return raw_parts(decision_layer(model), "ONNX")
    return raw_parts(DecisionClassifier(model, prefit=True).fit(None, None), "ONNX")


def _output_types(operator: Any) -> None:
    from skl2onnx.common.data_types import (
        BooleanTensorType,
        DoubleTensorType,
        FloatTensorType,
        Int64TensorType,
        StringTensorType,
    )

    parts = _parts(operator.raw_operator)
    rows = operator.inputs[0].type.shape[0]
    kind = np.asarray(uniform_labels(parts.rule)).dtype.kind
    kinds = {
        "U": StringTensorType,
        "b": BooleanTensorType,
        "i": Int64TensorType,
        "f": DoubleTensorType,
    }
    operator.outputs[0].type = kinds[kind]([rows])
    tensor = FloatTensorType if _zips(operator, operator.scope_inst) else DoubleTensorType
    operator.outputs[1].type = tensor([rows, parts.rule.n_classes])


def _zips(operator: Any, options: Any) -> bool:
    """Whether 32-bit floats are asked for: ZipMap, which follows unless told otherwise, reads no
    others, and columns have the type of the inputs."""
    from skl2onnx.common.data_types import FloatTensorType

    asked = options.get_options(operator.raw_operator, {"zipmap": True})["zipmap"]
    return asked is True or (
        asked == "columns" and isinstance(operator.inputs[0].type, FloatTensorType)
    )


def _convert(scope: Any, operator: Any, container: Any) -> None:
    parts = _parts(operator.raw_operator)
    graph = _InPipeline(scope, container)
    inputs: list[_Tensor] = operator.inputs
    if len(inputs) == 1 and len(parts.schema.names) > 1:
        if not parts.schema.all_numeric:
            raise NotExportableError(
                "The pipeline hands one matrix to a model with categories; use "
                "laconic.to_onnx on the decision layer alone."
            )
        cells = columns_of_matrix(graph, inputs[0].onnx_name, parts)
    elif len(inputs) == len(parts.schema.names):
        given = dict(zip(parts.schema.names, (one.onnx_name for one in inputs), strict=True))
        cells = {name: given[name] for name in parts.columns}
    else:
        raise NotExportableError(
            f"The model reads {len(parts.schema.names)} columns, the pipeline hands it "
            f"{len(inputs)} inputs; give one matrix, or one input for each column."
        )
    double = _onnx().TensorProto.DOUBLE
    for name, cell in cells.items():
        if parts.kind(name) != "categorical":
            cells[name] = graph.node("Cast", cell, to=double)
    label, proba = write_model(graph, parts, cells, "")
    graph.node("Identity", label, output=operator.outputs[0].full_name)
    if _zips(operator, container):
        proba = graph.node("Cast", proba, to=_onnx().TensorProto.FLOAT)
    graph.node("Identity", proba, output=operator.outputs[1].full_name)
