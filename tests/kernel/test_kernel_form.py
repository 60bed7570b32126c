"""The model file of a kernel classifier: the same bytes again."""

from __future__ import annotations

import json
import math
from itertools import pairwise, permutations

import numpy as np
import pandas as pd
import pytest

from laconic import ConvexRiskClassifier, load, save
from laconic.data.tables.columns import Schema
from laconic.kernel import GrayZoneKernelClassifier, RankKernelClassifier
from laconic.kernel.form import KernelForm, KernelScore
from laconic.kernel.kernels import Kernel

MODELS = {
    "zone": GrayZoneKernelClassifier(zone=(0.3, 0.7)),
    "clipped": GrayZoneKernelClassifier(zone=(0.3, 0.7), proba="clip"),
    "landmarks": GrayZoneKernelClassifier(landmarks=5, random_state=0),
    "logistic": ConvexRiskClassifier(kernel="rbf"),
    "gray zone": ConvexRiskClassifier(loss="gray_zone", zone=(0.2, 0.6), kernel="poly"),
    "exponential": ConvexRiskClassifier(loss="exponential", kernel="linear", C=0.1),
}


def rows(n_classes):
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(draw.normal(size=(90, 3)), columns=["c", "a", "b"])
    score = frame["a"] + frame["b"] ** 2 + 0.5 * draw.normal(size=90)
    cuts = np.quantile(score, np.arange(1, n_classes) / n_classes)
    return frame, np.array(["x", "y", "z"])[np.digitize(score, cuts)]


@pytest.mark.parametrize(
    ("name", "n_classes"),
    [(name, n) for name in MODELS for n in (2, 3) if (name, n) != ("clipped", 3)],
)
def test_a_saved_kernel_model_predicts_the_same_bytes(name, n_classes, tmp_path):
    X, y = rows(n_classes)
    model = MODELS[name].fit(X, y)
    save(model, tmp_path / "kernel.json")
    loaded = load(tmp_path / "kernel.json")
    fresh = pd.concat([X.iloc[::-1], 2.0 * X], ignore_index=True)[["b", "c", "a"]]
    assert loaded.predict_proba(fresh).tobytes() == model.predict_proba(fresh).tobytes()
    if n_classes == 2:
        assert (loaded.predict(fresh) == model.predict(fresh)).all()


def brute_shapley(score, row, reference, parts):
    """By the definition: every order of the groups, each taking its features from the row."""
    found = np.zeros((len(parts), len(score.intercept)))
    for order in permutations(range(len(parts))):
        mixed = reference.copy()
        before = score.score(mixed[None, :])[0]
        for g in order:
            mixed[parts[g]] = row[parts[g]]
            after = score.score(mixed[None, :])[0]
            found[g] += (after - before) / math.factorial(len(parts))
            before = after
    return found


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("n_groups", [1, 2, 5])
def test_contributions_are_shapley_values(kernel, n_groups):
    draw = np.random.default_rng(n_groups)
    sizes = draw.integers(1, 3, n_groups)
    ends = np.cumsum([0, *sizes])
    parts = [slice(a, b) for a, b in pairwise(ends.tolist())]
    vectors, coef = draw.normal(size=(12, ends[-1])), draw.normal(size=(3, 12))
    score = KernelScore(
        (0, 1, 2), Kernel(kernel, gamma=0.3), vectors, coef, draw.normal(size=3), "ovr"
    )
    rows, reference = draw.normal(size=(4, ends[-1])), draw.normal(size=ends[-1])
    rows[0] = reference
    found = score.shapley(rows, reference, parts)
    for i, row in enumerate(rows):
        np.testing.assert_allclose(
            found[i], brute_shapley(score, row, reference, parts), atol=1e-12
        )
    assert not found[0].any()


def test_kernel_models_explain_their_columns_also_from_a_file(tmp_path):
    X, y = rows(2)
    X["group"] = np.where(X["a"] > 0, "p", "q")
    X.loc[::9, "b"] = np.nan
    model = RankKernelClassifier().fit(X, y)
    why = model.explain(X)
    assert why.names == tuple(X.columns)
    odds = np.log(model.predict_proba(X)[:, 1]) - np.log(model.predict_proba(X)[:, 0])
    np.testing.assert_allclose(why.score, odds, atol=1e-9)
    # a row of medians and an unseen category is the reference: nothing is added
    middle = X.drop(columns="group").median().to_frame().T.assign(group="never seen")
    assert np.abs(model.explain(middle).contributions).max() < 0.05
    save(model, tmp_path / "kernel.json")
    again = load(tmp_path / "kernel.json").explain(X)
    assert np.asarray(again).tobytes() == np.asarray(why).tobytes()


def test_few_rows_need_no_landmarks():
    """A budget tries every candidate on 125 rows first: fewer than its landmarks."""
    X, y = rows(2)
    few = RankKernelClassifier(landmarks=500).fit(X, y)
    np.testing.assert_array_equal(
        few.predict_proba(X), RankKernelClassifier().fit(X, y).predict_proba(X)
    )


def test_files_that_do_not_fit_their_columns_are_refused():
    X, y = rows(2)
    form = MODELS["clipped"].fit(X, y).kernel_form_
    data = json.loads(json.dumps(form.to_dict()))
    assert KernelForm.from_dict(data).to_dict() == data
    with pytest.raises(ValueError, match="columns"):
        form.check_columns(Schema.learn(X[["a"]]).schema)
    for clip in ([0.7, 0.3], [0.3, 1.7]):
        with pytest.raises(ValueError, match="clip"):
            KernelForm.from_dict({**data, "clip": clip})


def test_a_precomputed_kernel_is_refused_in_words(tmp_path):
    X, y = rows(2)
    K = X.to_numpy() @ X.to_numpy().T
    model = ConvexRiskClassifier(kernel="precomputed").fit(K, y)
    with pytest.raises(ValueError, match="precomputed kernel has no vectors"):
        save(model, tmp_path / "kernel.json")
    assert not (tmp_path / "kernel.json").exists()
