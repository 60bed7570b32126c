"""Every family's form gives the family's own probabilities, on rows with holes and new texts."""

import json

import numpy as np
import pytest

import laconic
from bayes_formulas import posterior, smoothed
from bayes_formulas import scores as scores_of
from laconic.core import AdditiveScore
from laconic.data.tables.columns import Table
from laconic.linear.design import design
from laconic.modl.form import slots_of_side
from laconic.modl.partition import Groups, Intervals
from laconic.votes.fit import trust_of
from laconic.votes.form import NoFormError


def _mixed(n_rows: int, n_classes: int, seed: int = 0) -> tuple[dict, np.ndarray]:
    draw = np.random.default_rng(seed)
    number, wide = draw.normal(size=n_rows), draw.lognormal(0, 3, size=n_rows)
    text = draw.choice(["a", "b", "c", "<d>"], size=n_rows)
    score = number + 0.4 * np.log(wide) + (text == "a") - (text == "<d>") * number
    score = score + draw.logistic(size=n_rows)
    y = np.searchsorted(np.quantile(score, np.arange(1, n_classes) / n_classes), score)
    number[draw.random(n_rows) < 0.1] = np.nan
    text = text.astype(object)
    text[draw.random(n_rows) < 0.1] = None
    return {"number": number, "wide": wide, "text": text}, np.array(["no", "yes", "more"])[y]


def _fresh(columns: dict) -> dict:
    """The same rows with texts that no fit has seen."""
    text = np.array(columns["text"], dtype=object)
    text[::7] = "new"
    return {**columns, "text": text}


MIXED = {
    "plain": laconic.PlainLogisticRegression(),
    "additive": laconic.SparseAdditiveClassifier(cv=3, random_state=0),
    "bayes": laconic.WeightedNaiveBayes(random_state=0),
    "bayes-pairs": laconic.WeightedNaiveBayes(pairs=2, random_state=0),
    "selective": laconic.bayes.SelectiveNaiveBayes(random_state=0),
    "bayes-trees": laconic.WeightedNaiveBayes(trees=4, random_state=0),
    "special": laconic.WeightedNaiveBayes(
        encoder=laconic.ModlEncoder(special_values={"wide": [1.0]}), random_state=0
    ),
    "stumps": laconic.CqBoostClassifier(),
    "calibrated": laconic.CqBoostClassifier(proba="calibrated"),
    "mincq": laconic.votes.MinCqClassifier(laconic.votes.StumpVoters("quantile", 5)),
}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", MIXED)
def test_form_of_mixed_columns_has_the_models_probabilities(name: str, n_classes: int) -> None:
    X, y = _mixed(600, n_classes)
    model = MIXED[name].fit(X, y)
    rows = _fresh(_mixed(300, n_classes, seed=1)[0])
    rows["wide"][::11] = 1.0
    form = AdditiveScore.from_dict(json.loads(json.dumps(model.form_.to_dict())))
    assert form == model.form_
    assert len(form.terms) >= 1
    table = model._read_rows(rows)
    assert np.array_equal(form.proba(table), model.predict_proba(rows))
    np.testing.assert_allclose(form.proba(table), _own(model, table), rtol=0, atol=2e-12)


def _own(model, table) -> np.ndarray:
    """Probabilities by the family's own arithmetic, not through its form."""
    if isinstance(model, laconic.PlainLogisticRegression):
        raw = design(model.columns_, table, standard=False)
        scores = raw @ model.coef_.T + model.intercept_
        scores = np.hstack([0 * scores, scores]) if scores.shape[1] == 1 else scores
        return posterior(scores)
    if hasattr(model, "score_"):
        score = model.score_
        scores = scores_of(score.tables, score.codes(table), score.weights)
        return smoothed(posterior(scores), model.n_training_)
    if hasattr(model, "votes_"):
        votes = np.column_stack([vote.scores(table, None) for vote in model.votes_])
        votes = votes * trust_of(model.votes_)
        slopes = [(vote.slope, vote.intercept) for vote in model.votes_]
        if slopes[0][0] is None:
            share = (1 + votes) / 2
        else:
            slope, intercept = np.array(slopes).T
            odds = 2 * np.arctanh(np.clip(votes, -0.9995, 0.9995))
            share = 1 / (1 + np.exp(-slope * odds - intercept))
        share = np.hstack([1 - share, share]) if share.shape[1] == 1 else share
        return share / share.sum(axis=1, keepdims=True)
    return model.predict_proba(table)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("multi_class", ["multinomial", "ovr"])
def test_form_of_a_gray_zone_model(multi_class: str, n_classes: int) -> None:
    draw = np.random.default_rng(2)
    X = draw.normal(size=(300, 4))
    y = np.digitize(X[:, 0] + draw.normal(size=300), [0.0, 1.0][: n_classes - 1])
    model = laconic.GrayZoneLogisticRegression(multi_class=multi_class).fit(X, y)
    table = Table(("x0", "x1", "x2", "x3"), ("numeric",) * 4, (None,) * 4, matrix=X)
    np.testing.assert_allclose(model.form_.proba(table), model.predict_proba(X), atol=1e-13)


def test_models_that_are_no_sum_say_so() -> None:
    numbers = np.random.default_rng(0).normal(size=(60, 2))
    vote = laconic.CqBoostClassifier("rbf", mu=0.1).fit(numbers, numbers[:, 0] > 0)
    with pytest.raises(NoFormError, match="stumps"):
        _ = vote.form_
    clipped = laconic.GrayZoneLogisticRegression(proba="clip").fit(numbers, numbers[:, 0] > 0)
    with pytest.raises(ValueError, match="clip"):
        _ = clipped.form_


def test_slots_know_unseen_texts_from_missing_cells() -> None:
    side = Groups(("a", "b"), np.array([0, 1, 2], np.int32), 3, default=1, missing_seen=True)
    axis, parts = slots_of_side(side)
    codes = np.array([0, 1, -1, -2])
    np.testing.assert_array_equal(parts[axis.encode(codes, ("a", "b"))[0]], side.codes([codes]))
    np.testing.assert_array_equal(side.codes([codes]), [0, 1, 2, 1])
    numbers = Intervals(np.array([1.0, 2.0]), missing_alone=True, special=(9.0,))
    axis, parts = slots_of_side(numbers)
    x = np.array([0.0, 1.0, 1.5, 9.0, 20.0, np.nan])
    np.testing.assert_array_equal(parts[axis.encode(x)[0]], numbers.codes([x]))
