"""Promises of several classes, of abstaining rules, and what leaves Python with them."""

from __future__ import annotations

import numpy as np
import pytest

from laconic import DecisionClassifier, PlainLogisticRegression, load, save, to_sql
from laconic.decide.guarantee import NoThresholdError
from laconic.decide.threshold import guaranteed_threshold
from laconic.decide.weights import guaranteed_weights

NAMES = np.array(["a", "b", "c"])


def rows_of(n, seed):
    rng = np.random.default_rng(seed)
    codes = rng.choice(3, n, p=[0.2, 0.3, 0.5])
    X = rng.normal(size=(n, 3)) + 1.3 * np.eye(3)[codes]
    return X, NAMES[codes]


@pytest.fixture(scope="module")
def scored():
    """Probabilities of 60,000 rows that stand for the population."""
    model = PlainLogisticRegression().fit(*rows_of(600, 0))
    X, y = rows_of(60_000, 1)
    return model.predict_proba(X), np.searchsorted(NAMES, y)


def in_the_long_run(scored, found, reject=None):
    proba, codes = scored
    paid = proba @ found.rule_costs(1.0 - np.eye(3))
    decided = paid.argmin(axis=1)
    if found.reject is not None:
        decided = np.where(paid.min(axis=1) > found.reject, -1, decided)
    return codes, decided


@pytest.mark.parametrize(
    ("asked", "reject"),
    [
        (["recall(a)>=0.75", "recall(b)>=0.55"], None),
        (["error<=0.2", "abstentions<=0.7"], 0.3),
    ],
    ids=["recalls", "abstains"],
)
def test_promises_of_classes_hold_as_often_as_they_say(scored, asked, reject):
    """At 80 % confidence: broken in at most 20 % of 25 draws, two standard errors allowed."""
    proba, codes = scored
    broken = held = 0
    for r in range(25):
        at = np.random.default_rng(r).integers(0, len(codes), 500)
        try:
            found = guaranteed_weights(
                proba[at], NAMES[codes[at]], asked, classes=NAMES, reject_cost=reject,
                confidence=0.8,
            )  # fmt: skip
        except NoThresholdError:
            continue
        held += 1
        truth, said = in_the_long_run(scored, found)
        if reject is None:
            broken += (said[truth == 0] == 0).mean() < 0.75 or (said[truth == 1] == 1).mean() < 0.55
        else:
            kept = said >= 0
            broken += (said != truth)[kept].mean() > 0.2 or (~kept).mean() > 0.7
    assert held >= 12
    assert broken / 25 <= 0.2 + 2 * np.sqrt(0.16 / 25)


def test_the_order_of_the_rows_does_not_matter(scored):
    proba, codes = scored[0][:800], scored[1][:800]
    found = guaranteed_weights(proba, codes, "recall(0)>=0.8", classes=[0, 1, 2])
    turned = guaranteed_weights(proba[::-1], codes[::-1], "recall(0)>=0.8", classes=[0, 1, 2])
    assert found == turned


def test_rules_with_promises_leave_python(tmp_path):
    """Model file, SQL and ONNX decide as Python does: weights, abstentions, a threshold."""
    import sqlite3

    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    from laconic import to_onnx

    X, y = rows_of(1500, 2)
    two = np.where(y == "a", "a", "other")
    cases = [
        ({"guarantee": ["recall(a)>=0.6", "precision(c)>=0.5"]}, y),
        ({"guarantee": ["error<=0.3", "abstentions<=0.7"], "reject_cost": 0.3}, y),
        ({"guarantee": ["recall>=0.8"], "positive": "a", "prior": {"a": 0.1, "other": 0.9}}, two),
        ({"guarantee": ["recall(other)>=0.7"], "positive": "a", "reject_cost": 0.4}, two),
    ]
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE t (id INTEGER, x0 REAL, x1 REAL, x2 REAL)")
    base.executemany("INSERT INTO t VALUES (?,?,?,?)", [(i, *row) for i, row in enumerate(X)])
    for given, label in cases:
        model = DecisionClassifier(PlainLogisticRegression(), **given).fit(X, label)
        plain = {name: value for name, value in given.items() if name != "guarantee"}
        other = DecisionClassifier(PlainLogisticRegression(), **plain).fit(X, label)
        said = model.predict(X).tolist()
        assert said != other.predict(X).tolist()
        save(model, tmp_path / "model.json")
        again = load(tmp_path / "model.json")
        assert again.predict(X).tolist() == said
        assert again.guaranteed_ == model.guaranteed_
        found = base.execute(to_sql(again, "t", key="id", dialect="sqlite")).fetchall()
        assert [row[-1] for row in sorted(found)] == said
        session = runtime.InferenceSession(to_onnx(again).SerializeToString())
        assert session.run(["label"], {"X": X})[0].ravel().tolist() == said
    base.close()


def test_a_mix_is_adopted_and_the_promise_stays(tmp_path):
    """The cut on the scores does not pass the promised one, whatever the mix; what depends on the
    mix is promised no longer."""
    from laconic.export.model_file import adopt

    X, y = rows_of(3000, 3)
    two = np.where(y == "a", "a", "other")
    T, truth = rows_of(40_000, 4)
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    for prior in (0.02, 0.6):
        model = DecisionClassifier(
            PlainLogisticRegression(), {"fp": 1, "fn": 2}, positive="a",
            guarantee=["recall>=0.9", "alarms<=0.8"],
        ).fit(X, two)  # fmt: skip
        save(model, old)
        adopt(old, new, prior={"a": prior, "other": 1 - prior})
        found = load(new)
        assert [str(p.guarantee) for p in found.guaranteed_.promises] == ["recall>=0.9"]
        assert (found.predict(T)[truth == "a"] == "a").mean() >= 0.9
    # where the cheapest threshold is within the promise, it is taken
    assert found.guaranteed_.threshold == pytest.approx(min(1 / 3, found.guaranteed_.highest))
    many = DecisionClassifier(PlainLogisticRegression(), guarantee="recall(a)>=0.8").fit(X, y)
    save(many, old)
    adopt(old, new, prior=[0.6, 0.2, 0.2])
    assert load(new).predict(T).tolist() == many.predict(T).tolist()
    only = DecisionClassifier(
        PlainLogisticRegression(), positive="a", guarantee="alarms<=0.4"
    ).fit(X, two)  # fmt: skip
    save(only, old)
    with pytest.raises(ValueError, match="says nothing about another one"):
        adopt(old, new, prior={"a": 0.5, "other": 0.5})
    with pytest.raises(ValueError, match="would break the guarantee"):
        only.predict(X, prior=0.5)


def test_what_cannot_be_promised_is_one_sentence(scored):
    proba, codes = scored[0][:600], NAMES[scored[1][:600]]
    cases = [
        ("recall>=0.9", {}, "which class is meant"),
        ("recall(z)>=0.9", {}, "'z' is no class"),
        ("recall(a)>=0.999", {}, r"at least 2995 'a' rows"),
        ("abstentions<=0.1", {}, "price of abstaining"),
        ("error(a)<=0.1", {}, "not about one class"),
        (["recall(a)>=0.9", "recall(b)>=0.9", "recall(c)>=0.9"], {}, "No rule was found"),
    ]
    for asked, more, sentence in cases:
        with pytest.raises(ValueError, match=sentence) as told:
            guaranteed_weights(proba, codes, asked, classes=NAMES, **more)
        assert "\n" not in str(told.value)
    with pytest.raises(NoThresholdError, match="no row of the positive class"):
        guaranteed_threshold(proba[:, 0], codes == "none", "recall>=0.9")
    with pytest.raises(ValueError, match="capacity of zero"):
        guaranteed_threshold(proba[:, 0], codes == "a", "alarms<=0")
    with pytest.raises(NoThresholdError, match=r"No threshold holds precision>=0.95"):
        guaranteed_threshold(proba[:, 0], codes == "a", "precision>=0.95")


def test_a_cost_is_promised_over_a_box_of_mixes():
    """Broken at either end of the box in at most 20 % of 150 draws."""
    rng = np.random.default_rng(5)
    matrix = np.array([[0.0, 1.0], [4.0, 0.0]])
    big = rng.random(100_000) < 0.5
    p = 1 / (1 + np.exp(-rng.normal(np.where(big, 0.8, -1.2), 1.0)))
    broken = held = 0
    for r in range(150):
        at = np.random.default_rng(r).integers(0, len(p), 500)
        try:
            found = guaranteed_threshold(
                p[at], big[at], "cost<=0.62", costs=matrix, confidence=0.8, shares=(0.1, 0.4)
            )
        except NoThresholdError:
            continue
        held += 1
        false, missed = (p[~big] > found.threshold).mean(), (p[big] <= found.threshold).mean()
        broken += max((1 - s) * false + 4 * s * missed for s in (0.1, 0.4)) > 0.62
    assert held >= 30
    assert broken / 150 <= 0.2 + 2 * np.sqrt(0.16 / 150)
