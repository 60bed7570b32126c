from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import laconic
from laconic import DecisionClassifier, PlainLogisticRegression
from laconic.core.forms import refuse_overflow
from laconic.data.demo import make_payments
from laconic.export.atomic import write_atomically
from laconic.export.model_file import ModelFileError, _digest, load, save

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture(scope="module")
def fitted():
    table, label = make_payments(1200)
    model = DecisionClassifier(
        PlainLogisticRegression(), costs=[[0, 25], [1, 0]], prior=[0.1, 0.9]
    ).fit(table, label)
    return model, table


def test_round_trip_is_bit_identical(fitted, tmp_path):
    model, table = fitted
    save(model, tmp_path / "m.json", summary={"a": 1})
    again = load(tmp_path / "m.json")
    assert again.predict_proba(table).tobytes() == model.predict_proba(table).tobytes()
    np.testing.assert_array_equal(again.predict(table), model.predict(table))
    assert again.threshold_ == model.threshold_
    assert (tmp_path / "m.json").stat().st_size < 100_000


def test_three_classes(tmp_path):
    draw = np.random.default_rng(0)
    X = draw.normal(size=(90, 3))
    y = np.array(["a", "b", "c"])[X.argmax(axis=1)]
    model = DecisionClassifier(PlainLogisticRegression()).fit(X, y)
    save(model, tmp_path / "m.json", summary={})
    assert load(tmp_path / "m.json").predict_proba(X).tobytes() == model.predict_proba(X).tobytes()


FAMILIES = {
    "additive": laconic.SparseAdditiveClassifier(cv=3, random_state=0),
    "bayes": laconic.WeightedNaiveBayes(random_state=0),
    "bayes-built": laconic.WeightedNaiveBayes(pairs=2, trees=3, random_state=0),
    "selective": laconic.bayes.SelectiveNaiveBayes(random_state=0),
    "scorecard": laconic.ScorecardClassifier(trees=3, random_state=0),
    "card": laconic.OptimalScorecardClassifier(4, (-5, 5), max_cuts=3, gap=0.05),
    "rules": laconic.SparseRulesClassifier(random_state=0),
    "lines": laconic.ScorecardClassifier("lines", zone=(0.1, 0.9)),
    "kernel": laconic.kernel.RankKernelClassifier(),
    "stumps": laconic.CqBoostClassifier(proba="calibrated"),
    "plain": PlainLogisticRegression(),
}


def _same(model, X, path):
    save(model, path)
    again = load(path)
    assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    assert again.classes_.dtype == np.asarray(model.classes_).dtype
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert path.stat().st_size < (300_000 if "Kernel" in type(model).__name__ else 100_000)


@pytest.mark.parametrize("name", FAMILIES)
def test_families_on_mixed_columns_keep_every_bit(name, tmp_path):
    table, label = make_payments(900)
    _same(FAMILIES[name].fit(table, label), table, tmp_path / "m.json")


@pytest.mark.parametrize("parameters", [{}, {"proba": "clip"}, {"zone": (0.2, 0.7)}])
def test_gray_zone_keeps_every_bit(parameters, tmp_path):
    draw = np.random.default_rng(1)
    X = draw.normal(size=(400, 7)) * draw.lognormal(0, 3, 7)
    y = (X[:, 0] / np.abs(X[:, 0]).max() + 0.3 * draw.normal(size=400) > 0).astype(int)
    _same(laconic.GrayZoneLogisticRegression(**parameters).fit(X, y), X, tmp_path / "m.json")


def test_abstention_and_numbers_as_classes(tmp_path):
    table, label = make_payments(900)
    y = np.where(label == "fraud", 7, 3)
    model = DecisionClassifier(PlainLogisticRegression(), reject_cost=0.05).fit(table, y)
    assert -1 in model.predict(table)
    _same(model, table, tmp_path / "m.json")


def test_golden_file_of_version_1_still_decides_the_same():
    model = load(GOLDEN / "model_v1.json")
    kept = json.loads((GOLDEN / "model_v1_predictions.json").read_text())
    rows = {name: np.array(cells, dtype=object) for name, cells in kept["rows"].items()}
    assert model.predict_proba(rows)[:, 1].tolist() == kept["proba"]
    assert model.predict(rows).tolist() == kept["decisions"]


def _table_term(content):
    return next(term for term in content["form"]["terms"] if "values" in term)


def damages():
    yield "form", lambda c: c["form"].__setitem__("form", "other")
    yield "link", lambda c: c["form"].__setitem__("link", "other")
    yield "values", lambda c: _table_term(c)["values"].pop()
    yield "scores", lambda c: c["form"]["intercept"].append(0.0)
    yield "unknown column", lambda c: c["form"]["terms"][0].__setitem__("columns", ["nobody"])
    yield "other classes", lambda c: c["form"].__setitem__("classes", ["x", "y"])
    yield "classes", lambda c: c["classes"].__setitem__(1, c["classes"][0])
    yield "kind", lambda c: c["columns"][0].__setitem__("kind", "date")
    yield "texts", lambda c: c["columns"][-1].__setitem__("categories", [1, 2])
    yield "costs", lambda c: c["decision"].__setitem__("costs", [[0, 1]])
    yield "prior", lambda c: c["decision"].__setitem__("prior", [2.0, -1.0])
    yield "missing", lambda c: c.pop("columns")
    yield "version", lambda c: c.__setitem__("schema_version", 99)
    yield "smoothing", lambda c: c["form"].__setitem__("smoothing", -0.5)
    yield "text for a number", lambda c: c["form"].__setitem__("intercept", ["0.5"])
    yield "unknown entry", lambda c: c.__setitem__("more", 1)
    yield "unread entry", lambda c: c["form"].__setitem__("more", 1)
    yield "whole number", lambda c: c["decision"]["costs"][0].__setitem__(1, 10**400)
    yield "two columns", lambda c: c["columns"][1].__setitem__("name", c["columns"][0]["name"])
    yield "a list", lambda c: c.__setitem__("decision", [])
    yield "huge values", lambda c: _table_term(c)["values"].__setitem__(0, [1e305])
    yield "foreign", lambda c: c.__setitem__("format", "other")


@pytest.mark.parametrize("signed", [False, True], ids=["altered", "signed again"])
@pytest.mark.parametrize(("what", "damage"), list(damages()), ids=[name for name, _ in damages()])
def test_a_damaged_file_is_refused_in_words(fitted, tmp_path, what, damage, signed):
    save(fitted[0], tmp_path / "m.json")
    content = json.loads((tmp_path / "m.json").read_text())
    damage(content)
    if signed:
        content["digest"] = _digest(content)
    (tmp_path / "m.json").write_text(json.dumps(content))
    with pytest.raises(ModelFileError, match=r"m\.json"):
        load(tmp_path / "m.json")


def test_one_changed_digit_is_noticed(fitted, tmp_path):
    save(fitted[0], tmp_path / "m.json")
    text = (tmp_path / "m.json").read_text()
    place = re.search(r'"intercept": \[-?\d\.(\d)', text).start(1)
    altered = text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1 :]
    (tmp_path / "m.json").write_text(altered)
    with pytest.raises(ModelFileError, match="digest"):
        load(tmp_path / "m.json")


def test_every_truncation_is_refused(fitted, tmp_path):
    save(fitted[0], tmp_path / "m.json", summary={})
    whole = (tmp_path / "m.json").read_bytes()
    for size in range(0, len(whole) - 2, 97):
        (tmp_path / "m.json").write_bytes(whole[:size])
        with pytest.raises(ModelFileError):
            load(tmp_path / "m.json")


def test_what_cannot_be_written_is_said(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.where(X[:, 0] > 0, "a", "b")
    with pytest.raises(ValueError, match="LogisticRegression cannot be written"):
        save(DecisionClassifier(LogisticRegression()).fit(X, y), tmp_path / "m.json", summary={})
    assert not (tmp_path / "m.json").exists()


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "m.json"
    write_atomically(path, "old")

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.json"]


def test_the_file_is_as_readable_as_others(tmp_path):
    write_atomically(tmp_path / "a", "x")
    (tmp_path / "b").write_text("x")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "ab"]
    assert modes[0] == modes[1]


NOT_PLAIN = {
    '{"a": 1, "a": 2}': "a key stands twice",
    '{"a": NaN}': "NaN is no finite number",
    '{"a": 1e999}': "1e999 is no finite number",
    '{"a": 12345678901234567890}': "too many digits",
    "[" * 100_000: "is not a complete model file",
}


@pytest.mark.parametrize("text", NOT_PLAIN)
def test_json_that_is_not_plain_is_refused(text, tmp_path):
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(ModelFileError, match=NOT_PLAIN[text]):
        load(tmp_path / "m.json")


def test_a_folder_is_no_model_file(tmp_path):
    with pytest.raises(ModelFileError, match="cannot be read"):
        load(tmp_path)


def test_changed_files_are_refused_or_give_probabilities():
    from stress.model_files import outcome

    assert {outcome(number) for number in range(400)} == {"refused", "works"}


def test_scores_that_overflow_are_an_error_in_words():
    with pytest.raises(ValueError, match="row 1 are too large"):
        refuse_overflow(np.array([[0.0], [np.inf]]))


@pytest.mark.parametrize(
    "model",
    [
        laconic.GrayZoneKernelClassifier("rbf"),
        laconic.GrayZoneLogisticRegression(),
        laconic.ConvexRiskClassifier("exponential"),
    ],
)
def test_a_model_from_a_file_refuses_the_gaps_that_the_model_refuses(model, tmp_path):
    """A kernel gave NaN for probabilities, a line called the empty cell too large."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    save(model.fit(X, (X[:, 0] > 0).astype(int)), tmp_path / "m.json")
    again = load(tmp_path / "m.json")
    assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    with pytest.raises(
        ValueError, match=rf"missing values \(NaN\), which a {type(model).__name__}"
    ):
        again.predict_proba([[np.nan, 0.0]])


def test_a_kernel_score_that_overflows_is_an_error_in_words():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    model = laconic.GrayZoneKernelClassifier("poly", degree=4, coef0=1.0).fit(X, [0, 0, 1, 1])
    with pytest.raises(ValueError, match="row 0 are too large"):
        model.predict_proba([[1e90]])


@pytest.mark.parametrize("value", [[[]], True, "0.5"])
def test_certificates_are_numbers(fitted, tmp_path, value):
    save(fitted[0], tmp_path / "m.json")
    content = json.loads((tmp_path / "m.json").read_text())
    content["certificates"]["duality_gap"] = value
    content["digest"] = _digest(content)
    (tmp_path / "m.json").write_text(json.dumps(content))
    with pytest.raises(ModelFileError, match=r"m\.json .* certificates .*duality_gap"):
        load(tmp_path / "m.json")


def test_smoothing_and_classes_are_refused_by_name(fitted, tmp_path):
    """A smoothing of -0.5 gave probabilities beyond 1; two classes of one name one column."""
    save(fitted[0], tmp_path / "m.json")
    whole = json.loads((tmp_path / "m.json").read_text())
    twice = [whole["classes"][0]] * len(whole["classes"])
    for change, words in (
        ({"form": {**whole["form"], "smoothing": -0.5}}, "smoothing must be a number >= 0"),
        ({"classes": twice}, "classes must be different labels"),
    ):
        content = whole | change
        content["digest"] = _digest(content)
        (tmp_path / "m.json").write_text(json.dumps(content))
        with pytest.raises(ModelFileError, match=rf"m\.json .* {words}"):
            load(tmp_path / "m.json")


@pytest.mark.parametrize("clip", [[2, 3], [0.9, 0.1], [-0.5, 0.5]])
def test_bounds_of_probabilities_are_probabilities(clip, tmp_path):
    """They loaded, and every probability was 2."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    save(laconic.GrayZoneLogisticRegression().fit(X, X[:, 0] > 0), tmp_path / "m.json")
    content = json.loads((tmp_path / "m.json").read_text())
    content["form"]["clip"] = clip
    content["digest"] = _digest(content)
    (tmp_path / "m.json").write_text(json.dumps(content))
    with pytest.raises(ModelFileError, match=r"m\.json .* two probabilities in order"):
        load(tmp_path / "m.json")


@pytest.mark.parametrize("label", [-1, 2])
def test_decisions_of_a_rule_are_classes(label, tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = laconic.MinimaxClassifier(tie="deterministic").fit(X, X[:, 0] > 0)
    save(model, tmp_path / "m.json")
    content = json.loads((tmp_path / "m.json").read_text())
    content["form"]["rule"]["labels"][0][0] = label
    content["digest"] = _digest(content)
    (tmp_path / "m.json").write_text(json.dumps(content))
    with pytest.raises(ModelFileError, match=r"m\.json .* a decision is no class"):
        load(tmp_path / "m.json")


@pytest.mark.parametrize("field", ["intercept", "coef"])
def test_numbers_of_a_kernel_score_stand_in_no_deeper_list(field, tmp_path):
    X = np.random.default_rng(0).normal(size=(12, 2))
    save(laconic.GrayZoneKernelClassifier("rbf").fit(X, X[:, 0] > 0), tmp_path / "m.json")
    content = json.loads((tmp_path / "m.json").read_text())
    content["form"]["score"][field] = [[[]]]
    content["digest"] = _digest(content)
    (tmp_path / "m.json").write_text(json.dumps(content))
    with pytest.raises(ModelFileError, match=r"m\.json"):
        load(tmp_path / "m.json")


def test_a_model_without_probabilities_is_refused_by_name(tmp_path):
    model = laconic.ConvexRiskClassifier("hinge").fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    with pytest.raises(ValueError, match="ConvexRiskClassifier gives no probabilities"):
        save(model, tmp_path / "m.json")
