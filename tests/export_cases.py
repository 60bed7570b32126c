"""Models and rows on which the exports are compared with Python: every kind of term and link,
missing and unseen values, names and texts that want to break out of their quotes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from laconic import (
    BlendedClassifier,
    ConvexRiskClassifier,
    CqBoostClassifier,
    DecisionClassifier,
    GrayZoneLogisticRegression,
    OptimalScorecardClassifier,
    PlainLogisticRegression,
    ScorecardClassifier,
    SparseAdditiveClassifier,
    SparseRulesClassifier,
    WeightedNaiveBayes,
)
from laconic.bayes import SelectiveNaiveBayes
from laconic.core.forms import AdditiveScore, LineTerm, RulesTerm, SlotTerm
from laconic.data.tables.axes import CategoryAxis, IntervalAxis, KnotAxis
from laconic.data.tables.columns import Schema

AGE = 'a"ge; DROP TABLE "x"; --'
JOB = "j`o]b [x] 'q' \\"
CITY = "città {0} %s $1\n\tnext --"
RISK = "select"
PAIR = "pay */ /* amount"
FLAG = "flag?"
EMPTY = "never filled"
TEXTS = ("cook", "O'Brien", 'say "hi"', "back\\slash", "tab\there", "two\nlines", " cook", "cook ")
CITIES = ("Zürich", "東京", "COOK", "%s", "{x}", "a\\\nb", "")
CLASSES = {
    2: ("no'; --", 'yes "sure"'),
    4: ("a\\", "b'b", "c\nc", "d`]"),
}

LINKS: list[tuple[int, str, dict[str, Any]]] = [
    (4, "ovr", {"smoothing": 0.01}),
    (2, "vote", {}),
    (2, "vote", {"calibration": ((1.7, -0.2),)}),
    (4, "vote", {}),
    (4, "vote", {"calibration": ((1.7, -0.2), (0.9, 0.1), (2.0, 0.0), (1.1, 0.3))}),
    (2, "softmax", {"smoothing": 0.3}),
]
"""Classes, link and what else the form has."""

FAMILIES = {
    # family: how to make it, and whether it reads categories and missing values
    "additive with pairs": (lambda: SparseAdditiveClassifier(pairs=1), True),
    "blend": (
        lambda: BlendedClassifier([PlainLogisticRegression(), WeightedNaiveBayes(random_state=0)]),
        True,
    ),
    "convex risk": (lambda: ConvexRiskClassifier("exponential"), False),
    "gray zone": (lambda: GrayZoneLogisticRegression(), False),
    "logistic": (lambda: PlainLogisticRegression(), True),
    "naive Bayes": (lambda: WeightedNaiveBayes(random_state=0), True),
    "naive Bayes with pairs and trees": (
        lambda: WeightedNaiveBayes(pairs=3, trees=3, random_state=0),
        True,
    ),
    "scorecard": (lambda: ScorecardClassifier(random_state=0), True),
    "rules": (lambda: SparseRulesClassifier(random_state=0), True),
    "selective naive Bayes": (lambda: SelectiveNaiveBayes(random_state=0), True),
    "stumps": (lambda: CqBoostClassifier(), True),
}


def schema() -> Schema:
    names = (AGE, JOB, CITY, RISK, PAIR, FLAG, EMPTY)
    kinds = ("numeric", "categorical", "categorical", "numeric", "numeric", "boolean", "numeric")
    texts = (None, tuple(sorted(TEXTS)), tuple(sorted(CITIES)), None, None, None, None)
    return Schema(names, kinds, texts, named=True)  # type: ignore[arg-type]


def form(n_classes: int, link: str = "", **more: Any) -> AdditiveScore:
    """One term of each kind and more than one on some columns."""
    link = link or ("logit" if n_classes == 2 else "softmax")
    draw = np.random.default_rng(n_classes)
    n_scores = 1 if link == "logit" or (link == "vote" and n_classes == 2) else n_classes
    scale = 0.04 if link == "vote" else 1.0

    def values(*shape: int) -> np.ndarray:
        return scale * draw.normal(size=(*shape, n_scores))

    knots = KnotAxis(np.array([-1.5, -0.3, 0.1, 0.30000000000000004, 2.0]), np.array([-9.0, 0.2]))
    with np.errstate(over="ignore"):
        wide = KnotAxis(np.array([-1.7e308, 1.7e308]), np.empty(0))
    cuts = IntervalAxis(np.array([0.1, 0.25, 1 / 3]), (0.5,))
    jobs = CategoryAxis((("cook", "O'Brien"), ('say "hi"', "back\\slash"), ("two\nlines", "cook ")))
    # a text that is in no training row reads as any other
    cities = CategoryAxis((("Zürich",), ("東京", "COOK", "%s"), ("a\\\nb", ""), ("Atlantis",)))
    one = KnotAxis(np.array([0.5]), np.empty(0))
    tree = RulesTerm(
        (RISK, JOB),
        (cuts, jobs),
        (np.array([1, 2, 3, 4, 5, 0]), np.array([1, 2, 3, 0, 4])),
        np.array([0, 1, -1, -1, -1]),
        np.array([2, 2, 0, 0, 0]),
        np.array([1, 2, 0, 0, 0]),
        np.array([4, 3, 0, 0, 0]),
        values(5),
    )
    terms = (
        LineTerm(AGE, values()[...], 0.3, values()[...]),
        SlotTerm((AGE,), (knots,), values(knots.size)),
        SlotTerm((JOB,), (jobs,), values(jobs.size)),
        SlotTerm((RISK,), (cuts,), values(cuts.size)),
        SlotTerm((AGE, PAIR), (knots, KnotAxis(np.array([0.0, 1.0, 3.0]), np.array([7.0]))),
                 values(knots.size, 5)),
        SlotTerm((JOB, CITY), (jobs, cities), values(jobs.size, cities.size)),
        SlotTerm((CITY, RISK), (cities, cuts), values(cities.size, cuts.size)),
        LineTerm(FLAG, values()[...]),
        SlotTerm((FLAG,), (one,), values(one.size)),
        SlotTerm((EMPTY,), (CategoryAxis(()),), values(2)),
        SlotTerm((PAIR,), (wide,), values(wide.size)),
        tree,
    )  # fmt: skip
    return AdditiveScore(CLASSES[n_classes], values(), terms, link, **more)  # type: ignore[arg-type]


class FormModel:
    """The least that a decision layer needs of a model: a schema and a form."""

    def __init__(self, schema: Schema, form: AdditiveScore) -> None:
        self.schema_, self.form_ = schema, form
        self.classes_ = np.array(form.classes)

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.form_.proba(self.schema_.apply(X))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags("classifier", TargetTags(required=True), None, ClassifierTags(), None,
                    InputTags())  # fmt: skip


def decided(own: AdditiveScore, **rule: Any) -> DecisionClassifier:
    """``own`` in a decision layer, with costs that tell every pair of classes apart."""
    K = len(own.classes)
    costs = 1.0 + 0.1 * np.abs(np.arange(K)[:, None] - 1.5 * np.arange(K)[None, :])
    np.fill_diagonal(costs, 0.0)
    share = np.arange(1.0, K + 1.0)
    model = DecisionClassifier(
        FormModel(schema(), own),
        **{"costs": costs, "train_prior": share / share.sum(), "prefit": True, **rule},
    )
    return model.fit(None, None)


def ruled(n_classes: int, rule: str) -> DecisionClassifier:
    """The form of every kind of term, decided plainly or with a new prior and abstention."""
    if rule == "plain":
        return decided(form(n_classes))
    share = np.arange(n_classes, 0.0, -1.0)
    return decided(form(n_classes), prior=share / share.sum(), reject_cost=0.25)


def people(n: int = 1000) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows to fit a model to, and three classes."""
    draw = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "row id": np.arange(n),
            "age": np.where(draw.random(n) < 0.1, np.nan, draw.normal(45, 12, n)),
            "x": draw.normal(size=n),
            "job": draw.choice(np.array(["cook", "smith", "O'Brien", None], dtype=object), n),
        }
    )
    score = frame["age"].fillna(50) / 10 + 2 * frame["x"] + (frame["job"] == "cook")
    return frame, np.digitize(score + draw.normal(size=n), [4.5, 6.5])


def family_model(family: str, n_classes: int) -> tuple[DecisionClassifier, pd.DataFrame]:
    """A fitted model and rows with the columns that its family reads."""
    frame, y = people(400)
    y = np.minimum(y, n_classes - 1)
    make, mixed = FAMILIES[family]
    if not mixed:
        frame = frame.drop(columns="job").fillna({"age": 50.0})
    model = DecisionClassifier(make(), costs=1.0 - np.eye(n_classes))
    return model.fit(frame.drop(columns="row id"), y), frame


def card_model() -> tuple[DecisionClassifier, pd.DataFrame]:
    """A card of whole points, for two classes: missing numbers, categories and cuts on it."""
    frame, y = people(400)
    card = OptimalScorecardClassifier(
        5, (-5, 5), cutting="both", max_cuts=3, forced=["age is missing", "job"]
    )
    model = DecisionClassifier(card, costs={"fp": 1, "fn": 3}, prior=0.3)
    return model.fit(frame.drop(columns="row id"), y > 0), frame


def clipped_model() -> tuple[DecisionClassifier, pd.DataFrame]:
    """A model whose probabilities end at the two ends of its zone."""
    frame, y = people(400)
    frame = frame.drop(columns="job").fillna({"age": 50.0})
    inner = GrayZoneLogisticRegression(zone=(0.2, 0.6), proba="clip")
    model = DecisionClassifier(inner, costs={"fp": 1, "fn": 3}, prior=0.3).fit(
        frame.drop(columns="row id"), y > 0
    )
    assert model.estimator_.linear_form_.clip is not None
    return model, frame


def rows(n: int, seed: int = 0) -> pd.DataFrame:
    """Rows on and beside every knot and bound, with missing, special and unseen values."""
    draw = np.random.default_rng(seed)

    def numbers(edges: list[float]) -> np.ndarray:
        beside = [np.nextafter(e, side) for e in edges for side in (-np.inf, np.inf)]
        # the floats next to 0 are so small that PostgreSQL reports an underflow of their products
        beside = [x if abs(x) > 1e-300 else float(np.copysign(1e-300, x)) for x in beside]
        special = np.array([*edges, *beside, np.nan, np.nan])
        found = draw.normal(size=n)
        at = draw.random(n) < 0.3
        found[at] = draw.choice(special, at.sum())
        return found

    def texts(known: tuple[str, ...]) -> np.ndarray:
        other = ["Cook", "cook\t", "unseen' OR 1=1", "cooK", None, None]
        return draw.choice(np.array([*known, *other], dtype=object), n)

    flag = draw.choice(np.array([True, False, None], dtype=object), n)
    return pd.DataFrame(
        {
            "row id": np.arange(n),
            AGE: numbers([-1.5, -0.3, 0.1, 0.30000000000000004, 2.0, -9.0, 0.2, 1e300]),
            JOB: texts(TEXTS),
            CITY: texts((*CITIES, "Atlantis")),
            RISK: numbers([0.1, 0.25, 1 / 3, 0.5]),
            PAIR: numbers([0.0, 1.0, 3.0, 7.0]),
            FLAG: pd.array(flag, dtype="boolean"),
            EMPTY: np.full(n, np.nan),
        }
    )
