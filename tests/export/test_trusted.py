"""The types that a skops file of a fitted model may hold: they exist, and they are enough."""

from importlib import import_module

import numpy as np
import pandas as pd
import pytest

import laconic
from laconic.export import trusted_types

MODELS = {
    "choice": lambda: laconic.LaconicClassifier(candidates=["logistic"], cv=2, random_state=0),
    "additive": lambda: laconic.SparseAdditiveClassifier(group_penalty=0.01),
    "bayes": lambda: laconic.WeightedNaiveBayes(random_state=0, pairs=1, trees=1),
    "scorecard": lambda: laconic.ScorecardClassifier(random_state=0),
    "rules": lambda: laconic.SparseRulesClassifier(random_state=0),
    "blend": lambda: laconic.BlendedClassifier(
        [laconic.PlainLogisticRegression(), laconic.WeightedNaiveBayes(random_state=0)]
    ),
    "gray zone": lambda: laconic.GrayZoneLogisticRegression(),
    "minimax": lambda: laconic.MinimaxClassifier(tie="deterministic"),
}


def test_every_name_is_a_class_of_ours():
    for name in trusted_types():
        module, _, kind = name.rpartition(".")
        assert module.startswith("laconic.")
        assert isinstance(getattr(import_module(module), kind), type), name


@pytest.mark.filterwarnings("ignore")  # few rows
@pytest.mark.parametrize("name", MODELS)
def test_a_skops_file_holds_no_other_types(name):
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    draw = np.random.default_rng(0)
    X = pd.DataFrame({"age": draw.normal(50, 10, 150), "job": draw.choice(["cook", "smith"], 150)})
    X.loc[::17, "age"] = np.nan
    y = np.where(X["age"].fillna(50) / 10 + draw.normal(size=150) > 5.2, "late", "fine")
    if name == "gray zone":
        X = X[["age"]].fillna(50.0)
    model = MODELS[name]().fit(X, y)
    data = io.dumps(model)
    assert set(io.get_untrusted_types(data=data)) <= set(trusted_types())
    again = io.loads(data, trusted=trusted_types())
    assert (again.predict(X) == model.predict(X)).all()
