from __future__ import annotations

import json
import os
import stat

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from laconic import DecisionClassifier, PlainLogisticRegression
from laconic.data.demo import make_payments
from laconic.export.model_file import ModelFileError, load, save, write_atomically


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


def damages():
    yield "form", lambda c: c["form"].__setitem__("kind", "other")
    yield "coef", lambda c: c["form"]["coef"][0].pop()
    yield "nan", lambda c: c["form"]["intercept"].__setitem__(0, float("nan"))
    yield "classes", lambda c: c["classes"].__setitem__(1, c["classes"][0])
    yield "kind", lambda c: c["columns"][0].__setitem__("kind", "date")
    yield "term", lambda c: c["form"]["terms"][0].__setitem__("scale", 0.0)
    yield "extra", lambda c: c["form"]["terms"][0].__setitem__("__class__", "os.system")
    yield "costs", lambda c: c["decision"].__setitem__("costs", [[0, 1]])
    yield "missing", lambda c: c.pop("columns")
    yield "version", lambda c: c.__setitem__("schema_version", 99)


@pytest.mark.parametrize(("what", "damage"), list(damages()), ids=[name for name, _ in damages()])
def test_a_damaged_file_is_refused_in_words(fitted, tmp_path, what, damage):
    save(fitted[0], tmp_path / "m.json", summary={})
    content = json.loads((tmp_path / "m.json").read_text())
    damage(content)
    (tmp_path / "m.json").write_text(json.dumps(content))
    with pytest.raises(ModelFileError, match=r"m\.json"):
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
    numbers = DecisionClassifier(PlainLogisticRegression()).fit(X, (X[:, 0] > 0) + 0)
    with pytest.raises(ValueError, match="classes that are texts"):
        save(numbers, tmp_path / "m.json", summary={})
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
