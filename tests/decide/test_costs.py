"""Cost matrices, thresholds, gray zones, mean costs and the scorer."""

import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict

from laconic import baseline_costs, cost_scorer, decision_threshold, expected_cost, gray_zone
from laconic.core.decisions import class_codes, class_prior, cost_matrix, expected_costs
from laconic.decide import reject_zone

CLASSES = ["bus", "car", "van"]
MATRIX = np.array([[0.0, 2.0, 3.0], [4.0, -1.0, 6.0], [7.0, 8.0, 0.5]])


def named_dicts():
    shuffled = ["van", "bus", "car"]
    return {
        true: {d: MATRIX[CLASSES.index(true), CLASSES.index(d)] for d in reversed(shuffled)}
        for true in shuffled
    }


@pytest.mark.parametrize(
    "costs",
    [
        MATRIX,
        MATRIX.tolist(),
        named_dicts(),
        pd.DataFrame(named_dicts()).T,
        pd.DataFrame(MATRIX, index=CLASSES, columns=CLASSES).iloc[::-1, [2, 0, 1]],
    ],
    ids=["array", "lists", "dicts", "frame of dicts", "shuffled frame"],
)
def test_every_spelling_gives_the_same_matrix(costs):
    np.testing.assert_array_equal(cost_matrix(costs, CLASSES), MATRIX)


def test_names_read_from_a_file_match_integer_classes():
    costs = {"0": {"1": 1}, "1": {"0": 10}}
    np.testing.assert_array_equal(cost_matrix(costs, np.array([0, 1])), [[0, 1], [10, 0]])
    assert expected_cost(np.array([0, 1]), np.array([1, 0]), costs) == 5.5


def test_default_costs_count_errors():
    np.testing.assert_array_equal(cost_matrix(None, CLASSES), 1 - np.eye(3))


def test_shorthand_places_each_number():
    costs = {"tn": -1, "fp": 2, "fn": 3, "tp": -4}
    np.testing.assert_array_equal(cost_matrix(costs, [-1, 1]), [[-1, 2], [3, -4]])
    named = {"positive": "neg"}
    np.testing.assert_array_equal(cost_matrix(costs, ["neg", "pos"], **named), [[-4, 3], [2, -1]])


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        ({"fp": 1, "fn": -10}, "deciding 'ok' when the class is 'bad' costs -10,"),
        ({"bad": {"ok": 5}, "ok": {"bad": -1}}, "deciding 'bad' when the class is 'ok' costs -1,"),
        ([[0, -2], [1, 0]], "deciding 'ok' when the class is 'bad' costs -2,"),
        ({"fp": [1, 1], "fn": [3, -3]}, "when the class is 'bad' costs -3 in row 2,"),
    ],
    ids=["shorthand", "names", "matrix", "rows"],
)
def test_an_error_that_gains_is_refused_by_name(costs, said):
    with pytest.raises(ValueError, match=said):
        cost_matrix(costs, ["bad", "ok"], n_rows=2, positive="bad")


def test_gains_are_kept_where_the_right_decision_gains_as_much():
    gains = [[-5.0, -1.0], [0.0, -3.0]]
    np.testing.assert_array_equal(cost_matrix(gains, ["bad", "ok"]), gains)


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pl.DataFrame])
def test_per_row_shorthand(kind):
    costs = kind({"fp": [1.0, 2.0, 3.0], "fn": [10.0, 20.0, 30.0]})
    matrix = cost_matrix(costs, [0, 1], n_rows=3)
    assert matrix.shape == (3, 2, 2)
    np.testing.assert_array_equal(matrix[1], [[0, 2], [20, 0]])


@pytest.mark.parametrize(
    ("costs", "error", "words"),
    [
        ({"fp": 1}, ValueError, "lacks 'fn'"),
        ({"fp": 1, "fnn": 2}, ValueError, "'fnn' is none of fp, fn, tn and tp"),
        ({"fp": [1, 2], "fn": [1, 2, 3]}, ValueError, "different lengths"),
        (np.ones((3, 3)), ValueError, "there are 2 classes"),
        (np.ones((4, 2, 2)), ValueError, "4 rows, but there are 3"),
        ([[0, np.nan], [1, 0]], ValueError, "finite"),
        ({"a": {"b": 1}, "c": {"a": 1}}, ValueError, "'c' is not a class"),
        ({"a": {"b": 1}}, ValueError, "no row for the true class 'b'"),
        ({"a": {"a": 1}, "b": {"a": 1}}, ValueError, "deciding 'b' when the class is 'a'"),
        ({"a": 3, "b": 4}, TypeError, "must map decisions to costs"),
        ("cheap", TypeError, "costs must be"),
        (pl.DataFrame({"a": [0, 1], "b": [1, 0]}), TypeError, "without an index"),
    ],
)
def test_bad_costs_are_explained(costs, error, words):
    with pytest.raises(error, match=words):
        cost_matrix(costs, ["a", "b"], n_rows=3)


def test_shorthand_is_for_two_classes():
    with pytest.raises(ValueError, match="two classes, here are 3"):
        cost_matrix({"fp": 1, "fn": 2}, CLASSES)


def test_per_row_costs_where_one_matrix_is_needed():
    with pytest.raises(ValueError, match="one cost matrix is needed"):
        cost_matrix(np.ones((3, 2, 2)), [0, 1])


# --- thresholds --------------------------------------------------------------------------------

cost = st.floats(0, 1e6, allow_subnormal=False)


@given(cost, cost, cost, cost, st.floats(0, 1))
def test_threshold_is_where_the_cheaper_decision_changes(right_no, fp, fn, right_yes, p):
    matrix = np.array([[right_no, fp], [fn, right_yes]])
    gain = (fp - right_no, fn - right_yes)
    if max(gain) <= 0:
        return
    threshold = decision_threshold(matrix)
    no, yes = expected_costs(np.array([[1 - p, p]]), matrix)[0]
    if abs(no - yes) > 1e-9 * matrix.max():
        assert (p > threshold) == (yes < no)


def test_threshold_of_the_shorthand():
    assert decision_threshold({"fp": 1, "fn": 9}) == 0.1
    named = {"spam": {"ham": 9}, "ham": {"spam": 1}}
    assert decision_threshold(named, positive="spam") == 0.1
    assert decision_threshold(named, positive="ham") == 0.9
    with pytest.raises(ValueError, match="which of the classes 'ham' and 'spam' is positive"):
        decision_threshold(named)
    assert decision_threshold({"fp": 1e308, "fn": 1e308}) == 0.5
    assert decision_threshold({"fp": 5e-324, "fn": 5e-324}) == 0.5


def test_one_decision_always_cheaper():
    assert decision_threshold([[1, 0], [3, 0]]) == -math.inf
    assert decision_threshold([[0, 1], [0, 1]]) == math.inf


def test_gains_and_useless_costs_are_refused():
    with pytest.raises(ValueError, match="gains"):
        decision_threshold([[5, 0], [0, 5]])
    with pytest.raises(ValueError, match="cost the same"):
        decision_threshold({"fp": 0, "fn": 0})
    with pytest.raises(ValueError, match="there are 2 classes"):
        decision_threshold(MATRIX)
    with pytest.raises(ValueError, match="two classes; the costs are for 3"):
        decision_threshold(named_dicts())


@pytest.mark.parametrize(
    ("costs", "reject_cost"),
    [({"fp": 1, "fn": 4}, 0.4), ({"fp": 3, "fn": 1, "tp": 0.2, "tn": 0.1}, 0.5)],
)
def test_reject_zone_by_brute_force(costs, reject_cost):
    p = np.linspace(0, 1, 100_001)
    matrix = cost_matrix(costs, [0, 1])
    least = np.minimum(*(np.column_stack([1 - p, p]) @ matrix).T)
    abstained = p[least > reject_cost]
    assert reject_zone(costs, reject_cost) == pytest.approx(
        (abstained.min(), abstained.max()), abs=2e-5
    )


# --- gray zones ---------------------------------------------------------------------------------

# Hérault and Grandvalet (2008), Table 3: intervals in per cent, as printed; class + of the forest
# data is 20,510 rows of 232,350.
PUBLISHED = [(0.0, 100.0), (0.4, 72.0), (1.0, 47.5), (2.9, 24.1), (4.8, 15.8), (7.8, 10.0)]


@pytest.mark.parametrize(("low", "high"), PUBLISHED)
def test_the_six_published_intervals(low, high):
    p_min, p_max = gray_zone(20_510 / 232_350, (high - low) / 100)
    assert (round(100 * p_min, 1), round(100 * p_max, 1)) == (low, high)


@given(st.floats(1e-9, 0.9999), st.floats(1e-6, 0.999))
def test_zone_has_its_width_and_its_centre(threshold, width):
    p_min, p_max = gray_zone(threshold, width)
    assert 0 < p_min <= threshold <= p_max < 1
    assert p_max - p_min == pytest.approx(width, rel=1e-6)

    def logit(p):
        return math.log(p) - math.log1p(-p)

    if 1 - p_max > 1e-9:  # nearer to 1, float64 itself has no digits left
        assert (logit(p_min) + logit(p_max)) / 2 == pytest.approx(logit(threshold), abs=1e-6)


def test_zone_ends():
    assert gray_zone(0.3, 0) == (0.3, 0.3)
    assert gray_zone(0.3, 1) == (0.0, 1.0)
    for bad in ((0, 0.5), (1, 0.5), (0.5, -0.1), (0.5, 1.1), (math.nan, 0.5)):
        with pytest.raises(ValueError, match=r"threshold|width"):
            gray_zone(*bad)


# --- mean costs ---------------------------------------------------------------------------------


def test_expected_cost_is_the_confusion_matrix_times_the_costs():
    rng = np.random.default_rng(0)
    y, taken = rng.choice(CLASSES, 500), rng.choice(CLASSES, 500)
    weight = rng.uniform(0, 2, 500)
    confusion = confusion_matrix(y, taken, labels=CLASSES, sample_weight=weight)
    expected = (confusion * MATRIX).sum() / weight.sum()
    assert expected_cost(y, taken, MATRIX, sample_weight=weight) == pytest.approx(expected)


def test_per_row_costs_are_looked_up_by_row():
    costs = np.arange(12.0).reshape(3, 2, 2)
    assert expected_cost([0, 1, 1], [1, 0, 1], costs) == np.mean([1.0, 6.0, 11.0])


def test_abstentions_cost_what_they_cost():
    y, taken = ["a", "b", "a", "b"], ["a", "a", "?", "?"]
    options = {"reject_label": "?", "reject_cost": 0.5, "positive": "b"}
    cost = expected_cost(y, taken, {"fp": 1, "fn": 4}, **options)
    assert cost == (0 + 4 + 0.5 + 0.5) / 4
    with pytest.raises(ValueError, match="2 decisions are abstentions"):
        expected_cost(y, taken, None, reject_label="?")
    with pytest.raises(ValueError, match="there are 3 classes"):
        expected_cost(y, taken, np.ones((2, 2)))


def test_a_decision_that_is_no_class_is_named():
    with pytest.raises(ValueError, match="decisions holds 'tram'"):
        expected_cost(["bus", "car"], ["bus", "tram"], None, labels=["bus", "car"])


def test_baselines_are_constant_decisions():
    rng = np.random.default_rng(1)
    y, weight = rng.choice(CLASSES, 60), rng.uniform(0.1, 1, 60)
    found = baseline_costs(y, MATRIX, sample_weight=weight)
    for label in CLASSES:
        constant = expected_cost(y, [label] * 60, MATRIX, sample_weight=weight, labels=CLASSES)
        assert found[label] == pytest.approx(constant)


@pytest.mark.parametrize("weight", [[1, -1], [0, 0], [1, np.nan]])
def test_bad_weights(weight):
    with pytest.raises(ValueError, match="sample_weight"):
        expected_cost([0, 1], [1, 1], None, sample_weight=weight)


# --- the scorer ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows():
    X, y = make_classification(600, 6, weights=[0.85], flip_y=0.1, random_state=0)
    return X, np.where(y == 1, "yes", "no")


def test_scorer_in_a_grid_search_is_minus_the_fold_costs(rows):
    X, y = rows
    costs = {"no": {"yes": 1}, "yes": {"no": 10}}
    folds = StratifiedKFold(3)
    search = GridSearchCV(
        LogisticRegression(), {"C": [1e-3, 1.0]}, scoring=cost_scorer(costs), cv=folds
    ).fit(X, y)
    for position, C in enumerate([1e-3, 1.0]):
        taken = cross_val_predict(LogisticRegression(C=C), X, y, cv=folds)
        by_fold = [-expected_cost(y[test], taken[test], costs) for _, test in folds.split(X, y)]
        assert search.cv_results_["mean_test_score"][position] == pytest.approx(np.mean(by_fold))


def test_scorer_of_probabilities_decides_by_cost(rows):
    X, y = rows
    model = LogisticRegression().fit(X, y)
    costs = {"fp": 1, "fn": 10}
    taken = np.where(model.predict_proba(X)[:, 1] > 1 / 11, "yes", "no")
    scorer = cost_scorer(costs, response_method="predict_proba", positive="yes")
    spent = expected_cost(y, taken, costs, positive="yes")
    assert scorer(model, X, y) == pytest.approx(-spent)
    assert scorer(model, X, y) > cost_scorer(costs, positive="yes")(model, X, y)
    with pytest.raises(ValueError, match="response_method"):
        cost_scorer(costs, response_method="decision_function")


def test_scorer_takes_three_classes():
    X, y = make_classification(300, 6, n_informative=4, n_classes=3, random_state=0)
    model = LogisticRegression().fit(X, y)
    best = (model.predict_proba(X) @ MATRIX).argmin(axis=1)
    found = cost_scorer(MATRIX, response_method="predict_proba")(model, X, y)
    assert found == pytest.approx(-MATRIX[y, best].mean())
    with pytest.raises(ValueError, match="labels="):
        cost_scorer(None, response_method="predict_proba")(model, X[y < 2], y[y < 2])


@pytest.mark.parametrize("response_method", ["predict", "predict_proba"])
def test_per_row_costs_arrive_by_metadata_routing(rows, response_method):
    X, y = rows
    rng = np.random.default_rng(2)
    costs = pd.DataFrame({"fp": rng.uniform(1, 2, len(y)), "fn": rng.uniform(5, 20, len(y))})
    folds = StratifiedKFold(3)
    with config_context(enable_metadata_routing=True):
        scorer = cost_scorer(response_method=response_method, positive="yes")
        scorer = scorer.set_score_request(costs=True)
        search = GridSearchCV(LogisticRegression(), {"C": [1.0]}, scoring=scorer, cv=folds)
        search.fit(X, y, costs=costs)
    by_fold = []
    for train, test in folds.split(X, y):
        model = LogisticRegression().fit(X[train], y[train])
        p = model.predict_proba(X[test])[:, 1]
        fp, fn = costs["fp"].to_numpy()[test], costs["fn"].to_numpy()[test]
        cut = 0.5 if response_method == "predict" else fp / (fp + fn)
        hit, taken = y[test] == "yes", p > cut
        by_fold.append(-np.mean(fp * (~hit & taken) + fn * (hit & ~taken)))
    assert search.cv_results_["mean_test_score"][0] == pytest.approx(np.mean(by_fold))


def test_scorer_pickles(rows):
    X, y = rows
    model = LogisticRegression().fit(X, y)
    scorer = cost_scorer({"fp": 1, "fn": 3}, positive="yes")
    assert pickle.loads(pickle.dumps(scorer))(model, X, y) == scorer(model, X, y)


# --- priors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ([0.5, 0.6], "sum to 1"),
        ([-0.1, 1.1], ">= 0"),
        ([0.2, 0.3, 0.5], "2 class shares"),
        ({"a": 1.0}, "name every class"),
        ([math.nan, 1.0], "sum to 1"),
        ("even", "'balanced'"),
    ],
)
def test_bad_priors(prior, words):
    with pytest.raises(ValueError, match=words):
        class_prior(prior, ["a", "b"])


# --- class codes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        (np.array([2, 0, 2]), [0, 1, 2]),
        (np.array([2, 0, 2]), [2, 1, 0]),
        (np.array(["b", "a", "b"]), ["b", "c", "a"]),
        (np.array([1.0, 0.0]), [0, 1]),
        (np.array(["x", 3], dtype=object), np.array([3, "x"], dtype=object)),
        (np.array([True, False]), [False, True]),
    ],
)
def test_class_codes_point_back_at_the_values(values, classes):
    codes = class_codes(values, classes, "y")
    assert [classes[code] for code in codes] == values.tolist()


def test_class_codes_name_what_is_not_a_class():
    with pytest.raises(ValueError, match=r"y holds 7, which is not among the classes \[0, 1\]"):
        class_codes(np.array([0, 7]), [0, 1], "y")
    with pytest.raises(ValueError, match="y holds 'longer'"):
        class_codes(np.array(["a", "longer"]), ["a", "b"], "y")
