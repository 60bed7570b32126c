"""Reasons in words: one for a variable, and their factors multiply to the odds of the model."""

import re

import numpy as np
import pytest

import laconic
from laconic.decide.reference import reference_of

DRAW = np.random.default_rng(0)
N = 240
ROWS = {
    "amount": DRAW.gamma(2.0, 600.0, N),
    "hour": DRAW.integers(0, 24, N).astype(float),
    "shop": DRAW.choice(["food", "travel"], N),
}
SCORE = 0.002 * ROWS["amount"] - 0.1 * ROWS["hour"] + 1.5 * (ROWS["shop"] == "travel")
FAMILIES = {
    "logistic": lambda: laconic.PlainLogisticRegression(),
    "additive": lambda: laconic.SparseAdditiveClassifier(group_penalty=0.003),
    "blend": lambda: laconic.BlendedClassifier(
        [laconic.PlainLogisticRegression(), laconic.SparseAdditiveClassifier(group_penalty=0.003)]
    ),
}


def labels(n_classes=2):
    noisy = SCORE + np.random.default_rng(1).logistic(size=N)
    cuts = np.quantile(noisy, [0.6] if n_classes == 2 else [0.4, 0.75])
    return np.array(["fine", "fraud", "odd"])[np.digitize(noisy, cuts)]


def some(rows, places):
    return {name: values[places] for name, values in rows.items()}


@pytest.fixture(scope="module")
def fitted():
    return {name: make().fit(ROWS, labels()) for name, make in FAMILIES.items()}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_factors_multiply_to_the_odds_of_the_model(fitted, family):
    model = fitted[family]
    proba = model.predict_proba(ROWS)
    odds = proba[:, 1] / proba[:, 0]
    one = model.explain(some(ROWS, [7]))
    told = model.explain(ROWS).against(one)
    np.testing.assert_allclose(np.exp(np.asarray(told).sum(axis=1)), odds / odds[7], rtol=1e-9)
    np.testing.assert_allclose(told.score, model.explain(ROWS).score, atol=1e-12)
    # against the mean row: its log-odds are the mean of theirs
    told = model.explain(ROWS).against()
    mean = np.exp(np.log(odds).mean())
    np.testing.assert_allclose(np.exp(np.asarray(told).sum(axis=1)), odds / mean, rtol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_sentence_says_the_variable_its_value_and_the_factor(fitted, family):
    why = fitted[family].explain(ROWS)
    factors = np.exp(np.asarray(why.against()))
    for i, said in enumerate(why.sentences(k=9)):
        assert len({re.split(r" (?:[\d,.]+|food|travel) ", text)[0] for text in said}) == len(said)
        for text in said:
            found = re.fullmatch(
                r"(amount|hour|shop) (\S+) (?:raises the odds of fraud (\S+) times|"
                r"divides the odds of fraud by (\S+))", text,
            )  # fmt: skip
            assert found, text
            times = float((found[3] or found[4]).replace(",", ""))
            factor = factors[i, why.names.index(found[1])]
            assert times == pytest.approx(factor if found[3] else 1 / factor, rel=0.06)
            if found[1] == "shop":
                assert found[2] == ROWS["shop"][i]
    for said in why.sentences(k=3, which="for", output="fine"):
        assert all("raises the odds of fine" in text for text in said)


def test_french_numbers_and_the_first_class(fitted):
    model = fitted["logistic"]
    rows = {"amount": [1250.0], "hour": [np.nan], "shop": ["airline"]}
    start = model.explain({"amount": [100.0], "hour": [3.0], "shop": ["food"]})
    english = model.explain(rows).sentences(k=3, against=start, name="fraud = 1")[0]
    assert any(text.startswith("amount 1,250 raises the odds of fraud = 1 ") for text in english)
    assert any(text.startswith("hour missing ") for text in english)
    french = model.explain(rows).sentences(k=3, against=start, language="fr", output="fine")[0]
    assert any(re.match("amount 1\u202f250 divise la cote de fine par [\\d,]+$", t) for t in french)
    with pytest.raises(ValueError, match="language must be"):
        model.explain(rows).sentences(against=start, language="de")
    with pytest.raises(ValueError, match="no average"):
        model.explain(rows).sentences()


def test_several_classes_are_told_over_the_closest_rival():
    model = laconic.PlainLogisticRegression().fit(ROWS, labels(3))
    proba = model.predict_proba(ROWS)
    why = model.explain(ROWS)
    told = why.against(model.explain(some(ROWS, [3])))
    moved, shown, rivals = told._over_rivals("odd")
    rival = np.array([why.place_of(label) for label in rivals])
    rows = np.arange(N)
    odds = proba[rows, 2] / proba[rows, rival]
    assert (np.sort(proba[:, :2], axis=1)[:, 1] == proba[rows, rival]).all()
    np.testing.assert_allclose(np.exp(moved.sum(axis=1)), odds / (proba[3, 2] / proba[3, rival]))
    assert set(shown) == {"odd"}
    said = told.sentences(output="odd")[0][0]
    assert f"the odds of odd over {rivals[0]}" in said


def test_a_model_file_holds_the_average_row(fitted, tmp_path):
    model = laconic.DecisionClassifier(fitted["blend"], prefit=True).fit(None, None)
    laconic.save(model, tmp_path / "m.json", reference=reference_of(model, ROWS, labels()))
    again = laconic.load(tmp_path / "m.json")
    mean = model.explain(ROWS).contributions.mean(axis=0)
    one = again.explain(some(ROWS, [5]))
    np.testing.assert_allclose(one.average, mean, atol=1e-12)
    # so the reasons of a row do not depend on the rows beside it
    assert one.sentences() == [again.explain(ROWS).sentences()[5]]
    own, all_of = np.asarray(one.against())[0], np.asarray(model.explain(ROWS).against())[5]
    np.testing.assert_allclose(own, all_of, atol=1e-12)


def test_a_vote_is_told_as_a_score():
    model = laconic.CqBoostClassifier(max_voters=3, mu="least-squares")
    X = np.column_stack([ROWS["amount"], ROWS["hour"]])
    why = model.fit(X, labels()).explain(X)
    assert not why.odds
    said = [text for row in why.sentences() for text in row]
    assert said
    assert all(re.search(r" (adds|takes) \S+ (to|off) the score of fraud$", t) for t in said)


def test_some_rows_are_told_as_among_all(fitted):
    why = fitted["additive"].explain(ROWS)
    few = why[[4, 9]]
    np.testing.assert_array_equal(np.asarray(few), np.asarray(why)[[4, 9]])
    assert few.parts(1) == why.parts(9)
    assert len(why[3]) == 1
