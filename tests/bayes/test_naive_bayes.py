"""WeightedNaiveBayes and SelectiveNaiveBayes: fitted models, streams, explanations, displays."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectFromModel
from sklearn.metrics import log_loss

from bayes_formulas import scores as scores_of
from laconic import ModlEncoder, WeightedNaiveBayes
from laconic.bayes import SelectiveNaiveBayes
from laconic.bayes.stream import TableSummary
from laconic.data.demo import make_payments
from laconic.data.value_tables import NumericTable, condensed
from laconic.displays import ContributionDisplay, SearchDisplay, WeightPathDisplay


@pytest.fixture(scope="module")
def payments():
    table, label = make_payments(3000)
    frame = pd.DataFrame(
        {
            name: (
                table.column(j)
                if table.categories[j] is None
                else np.array([*table.categories[j], None], dtype=object)[table.column(j)]
            )
            for j, name in enumerate(table.names)
        }
    )
    return frame, label


@pytest.fixture(scope="module")
def model(payments):
    return WeightedNaiveBayes().fit(*payments)


def test_probabilities_are_equation_1_on_the_partitions(payments, model):
    X, y = payments
    log_odds = np.full(
        len(y), np.log((y == model.classes_[1]).mean() / (y == model.classes_[0]).mean())
    )
    for name, weight in zip(model.variable_names_, model.weights_, strict=True):
        partition = model.encoder_.partitions_[name]
        if weight:
            table = partition.conditional_log_probabilities()
            codes = partition.codes(X[name].to_numpy())
            log_odds += weight * (table[:, 1] - table[:, 0])[codes]
    np.testing.assert_allclose(model.decision_function(X), log_odds, atol=1e-10)
    p = 1 / (1 + np.exp(-log_odds))
    h = 0.5 / (len(y) + 1)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], (p + h / 2) / (1 + h), atol=1e-12)
    own = np.where(y == model.classes_[1], p, 1 - p)
    prior = (y == model.classes_[1]).mean()
    null = -(prior * np.log(prior) + (1 - prior) * np.log(1 - prior))
    assert model.compression_ == pytest.approx(1 + np.log(own).mean() / null)


def test_criterion_and_selection(payments, model):
    X, y = payments
    assert 0 < len(model.selected_features_) < X.shape[1]
    assert "postcode" not in " ".join(model.selected_features_)
    assert model.duality_gap_ <= 1e-5 * model.criterion_
    dearer = WeightedNaiveBayes(penalty=2.0).fit(X, y)
    assert dearer.weights_.sum() < model.weights_.sum()
    none = WeightedNaiveBayes(penalty=1e6).fit(X, y)
    assert len(none.selected_features_) == 0
    np.testing.assert_allclose(
        none.predict_proba(X[:1])[0, 0], (y == none.classes_[0]).mean(), atol=1e-3
    )


def test_a_least_gain_leaves_variables_out(payments, model):
    X, y = payments
    short = WeightedNaiveBayes(min_gain=20.0).fit(X, y)
    dropped = len(model.selected_features_) - len(short.selected_features_)
    assert dropped > 0
    assert set(short.selected_features_) < set(model.selected_features_)
    excess = short.criterion_ - model.criterion_
    assert 0 < excess <= 20.0 * dropped
    assert excess <= short.duality_gap_ <= excess + 1e-4


def test_feature_costs_drive_a_column_out(payments, model):
    X, y = payments
    first = model.selected_features_[np.argmax(model.weights_[model.weights_ > 0])]
    without = WeightedNaiveBayes(feature_costs={first: 1e5}).fit(X, y)
    assert first not in without.selected_features_
    as_array = np.where(X.columns == first, 1e5, 0.0)
    same = WeightedNaiveBayes(feature_costs=as_array).fit(X, y)
    np.testing.assert_array_equal(same.weights_, without.weights_)


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ({"nothing": 1.0}, "'nothing'"),
        ([1.0, 2.0], "one number for each"),
        ({"amount": -1.0}, "'amount' must be a number >= 0"),
    ],
)
def test_bad_feature_costs_are_named(payments, costs, message):
    with pytest.raises(ValueError, match=message):
        WeightedNaiveBayes(feature_costs=costs).fit(*payments)


def test_a_wrong_encoder_is_a_type_error(payments):
    with pytest.raises(TypeError, match="ModlEncoder"):
        WeightedNaiveBayes(encoder="modl").fit(*payments)


def test_an_encoder_of_the_user_is_used_and_left_alone(payments):
    X, y = payments
    encoder = ModlEncoder(max_parts=2)
    fitted = WeightedNaiveBayes(encoder=encoder).fit(X, y)
    assert max(p.n_parts for p in fitted.encoder_.partitions_.values()) == 2
    assert not hasattr(encoder, "partitions_")
    codes = fitted.encoder_.transform(X[:3])
    assert codes.shape == (3, X.shape[1])


def test_the_first_prior_also_works(payments):
    X, y = payments
    fitted = WeightedNaiveBayes(encoder=ModlEncoder(code="2006")).fit(X, y)
    assert 0 < len(fitted.selected_features_) < X.shape[1]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_contributions_add_up_and_are_shapley_values(n_classes):
    X, y = load_iris(return_X_y=True, as_frame=True)
    keep = y < n_classes if n_classes == 3 else y > 0
    X, y = X[keep], y[keep]
    fitted = WeightedNaiveBayes(penalty=0.01).fit(X, y)
    why = fitted.explain(X)
    np.testing.assert_allclose(why.score, fitted.decision_function(X), atol=1e-10)
    np.testing.assert_allclose(why.contributions.mean(axis=0), 0.0, atol=1e-10)
    top = why.top(len(why.names))
    shown = top[top["row"] == 3]
    place = 0 if n_classes == 2 else list(why.classes).index(shown["class"].iloc[0])
    own = why.contributions[3, :, place]
    assert list(shown["variable"]) == [why.names[v] for v in np.argsort(-np.abs(own))]
    with pytest.raises(ValueError, match="below"):
        why.parts(len(X))
    share = np.bincount(y - y.min()) / len(y) if n_classes == 3 else np.ones(1)
    means = np.abs(why.contributions).mean(axis=0) @ share
    np.testing.assert_allclose(
        fitted.variable_importances_[fitted.score_.places], means / means.sum(), rtol=1e-9
    )


def shapley_by_coalitions(scores, codes, background):
    """Shapley values of one row from all coalitions: (n_variables, n_classes).

    The value of a coalition is the mean score over the background rows with the coalition's codes
    replaced by those of the row.
    """
    n_variables = background.shape[1]
    value = {}
    for mask in range(1 << n_variables):
        rows = background.copy()
        for k in range(n_variables):
            if mask >> k & 1:
                rows[:, k] = codes[k]
        value[mask] = scores(rows).mean(axis=0)
    out = np.zeros((n_variables, len(value[0])))
    for k in range(n_variables):
        for mask in range(1 << n_variables):
            if not mask >> k & 1:
                size = mask.bit_count()
                weight = 1 / (n_variables * math.comb(n_variables - 1, size))
                out[k] += weight * (value[mask | 1 << k] - value[mask])
    return out


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_importances_are_those_of_all_coalitions(n_classes):
    draw = np.random.default_rng(n_classes)
    y = draw.choice(n_classes, 300, p=np.arange(1, n_classes + 1) / sum(range(1, n_classes + 1)))
    X = draw.normal(size=(300, 6)) + y[:, None] * draw.uniform(0.3, 1.0, 6) * [1, -1, 1, 1, -1, 0]
    fitted = WeightedNaiveBayes(penalty=0.0, min_gain=0.0).fit(X, y)
    score = fitted.score_
    assert len(score.partitions) >= 4
    codes = score.codes(fitted._read_rows(X)).astype(int)

    def centred(rows):
        found = scores_of(score.tables, rows, score.weights)
        return found - found.mean(axis=1, keepdims=True)

    distinct, times = np.unique(codes, axis=0, return_counts=True)
    picked = distinct[:: max(1, len(distinct) // 40)]
    expected = np.array([shapley_by_coalitions(centred, row, codes) for row in picked])
    own = np.array([[score.effect(k)[row[k]] for k in range(len(row))] for row in picked])
    np.testing.assert_allclose(own, expected, atol=1e-12)
    contributions = fitted.explain(X).contributions
    if n_classes == 2:  # log-odds: what the second class gains over the first
        expected = expected[:, :, 1:] - expected[:, :, :1]
    shown = [contributions[np.flatnonzero((codes == row).all(axis=1))[0]] for row in picked]
    np.testing.assert_allclose(shown, expected, atol=1e-12)
    every = np.array([[score.effect(k)[row[k]] for k in range(len(row))] for row in distinct])
    sizes = np.tensordot(times / 300, np.abs(every), axes=1) @ (np.bincount(y) / 300)
    found = fitted.variable_importances_[score.places]
    np.testing.assert_allclose(found, sizes / sizes.sum(), atol=1e-12)


def test_importances_select_features(payments, model):
    X, y = payments
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    chosen = SelectFromModel(WeightedNaiveBayes(), threshold=1e-9).fit(X, y)
    assert set(X.columns[chosen.get_support()]) == set(model.selected_features_)


@pytest.mark.parametrize("kind", ["pairs", "trees"])
def test_constructed_variables_pay_and_help(kind):
    draw = np.random.default_rng(0)
    X = draw.normal(size=(3000, 4))
    y = ((X[:, 0] > 0) & (X[:, 1] > 0) | (X[:, 0] < -1) & (X[:, 1] < 0)).astype(int)
    y ^= draw.random(3000) < 0.05
    alone = WeightedNaiveBayes().fit(X, y)
    built = WeightedNaiveBayes(**{kind: 3}, random_state=0).fit(X, y)
    assert log_loss(y, built.predict_proba(X)) < log_loss(y, alone.predict_proba(X)) - 0.05
    made = [p for p in built.score_.partitions if len(p.columns) > 1]
    assert made
    assert built.feature_importances_.sum() == pytest.approx(1.0)
    if kind == "pairs":
        assert built.feature_importances_[[0, 1]].sum() > 0.9
    else:
        # random columns let a tree cut noise on the way, and its columns share alike: the two
        # that matter have .74 on average over draws, .5 would be nothing
        draws = [WeightedNaiveBayes(trees=3, random_state=seed).fit(X, y) for seed in range(6)]
        assert np.mean([one.feature_importances_[[0, 1]].sum() for one in draws]) > 0.6
    why = built.explain(X[:5])
    np.testing.assert_allclose(why.score, built.decision_function(X[:5]), atol=1e-10)
    assert "x0" in str(why.parts(0))
    if kind == "pairs":  # trees may repeat one grid in their own words
        plain = [p for p in built.encoder_.partitions_.values() if len(p.columns) == 1]
        assert min(p.construction_cost for p in made) > max(p.construction_cost for p in plain)


def test_trees_grow_as_deep_as_the_data_say():
    draw = np.random.default_rng(2)
    X = draw.random((6000, 3))
    board = (np.floor(4 * X[:, 0]) + np.floor(4 * X[:, 1])) % 2
    y = np.where(draw.random(6000) < 0.9, board, 1 - board).astype(int)
    fitted = WeightedNaiveBayes(trees=10, random_state=0).fit(X[:4000], y[:4000])
    # ten per cent of noise: nothing can do better than 0.325, and guessing has 0.693
    assert log_loss(y[4000:], fitted.predict_proba(X[4000:])) < 0.45
    assert max(p.n_parts for p in fitted.score_.partitions) >= 16


def test_trees_are_resampled_by_the_rows_and_not_by_their_places():
    draw = np.random.default_rng(3)
    x = draw.random((3000, 1)).round(3)
    y = (draw.random(3000) < 0.2 + 0.6 * (np.sin(12 * x[:, 0]) > 0)).astype(int)
    fitted = WeightedNaiveBayes(trees=5, random_state=0).fit(x, y)
    trees = [p for p in fitted.encoder_.partitions_.values() if p.kind == "tree"]
    assert len(trees) >= 2  # one column: without resampling all trees are one
    mixed = draw.permutation(3000)
    same = WeightedNaiveBayes(trees=5, random_state=0).fit(x[mixed], y[mixed])
    np.testing.assert_allclose(same.predict_proba(x), fitted.predict_proba(x), atol=1e-6)
    from laconic.modl.trees import _times

    keys = draw.integers(0, 2**63, 20_000).astype(np.uint64)
    times = _times(keys, np.zeros(20_000, dtype=np.int64), np.random.RandomState(0))
    shares = np.bincount(times.astype(int), minlength=4)[:4] / 20_000
    np.testing.assert_allclose(shares, np.exp(-1) / np.array([1, 1, 2, 6]), atol=0.015)


def test_the_simple_variable_does_the_work():
    draw = np.random.default_rng(1)
    x = draw.integers(0, 2, 2000).astype(float)
    y = np.where(draw.random(2000) < 0.85, x, 1 - x).astype(int)
    X = np.column_stack([x, draw.normal(size=2000)])
    fitted = WeightedNaiveBayes(pairs=2, trees=2, random_state=0).fit(X, y)
    importance = dict(zip(fitted.variable_names_, fitted.variable_importances_, strict=True))
    assert importance["x0"] > 0.7
    alone = WeightedNaiveBayes(pairs=2, trees=2, penalty=1.0, random_state=0).fit(X, y)
    assert list(alone.selected_features_) == ["x0"]


@pytest.mark.parametrize("solver", ["dgml", "dgml-ms", "dgml-vns"])
def test_the_papers_searches_come_near_the_certified_minimum(payments, model, solver):
    X, y = payments
    searched = WeightedNaiveBayes(solver=solver, batch_size=3000, random_state=0).fit(X, y)
    assert model.criterion_ - model.duality_gap_ <= searched.criterion_
    assert searched.criterion_ <= 1.001 * model.criterion_
    assert searched.duality_gap_ >= searched.criterion_ - model.criterion_
    assert len(searched.path_["values"]) == searched.n_iter_


def test_a_short_history_is_scaled_to_all_rows(payments, model):
    X, y = payments
    searched = WeightedNaiveBayes(
        solver="dgml-vns", batch_size=500, history=1500, level=3, random_state=0
    ).fit(X, y)
    assert model.criterion_ * (1 - 1e-9) <= searched.criterion_ <= 1.1 * model.criterion_


def test_a_time_budget_says_so_and_more_time_is_no_worse(payments):
    X, y = payments
    values = []
    for seconds in (1e-9, 0.02, 30.0):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = WeightedNaiveBayes(
                solver="dgml-vns", level=3, time_budget=seconds, random_state=0
            ).fit(X, y)
        values.append(fitted.criterion_)
        if seconds == 1e-9:
            assert any("budget" in str(w.message) for w in caught)
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize(
    "estimator",
    [
        WeightedNaiveBayes(),
        WeightedNaiveBayes(power=0.5),
        WeightedNaiveBayes(min_gain=20.0),
        WeightedNaiveBayes(solver="dgml-vns"),
        SelectiveNaiveBayes(),
    ],
    ids=["newton", "neighbourhoods", "thinning", "paper", "selection"],
)
def test_ctrl_c_goes_through(payments, estimator, monkeypatch):
    """At whatever pass over the rows it comes, and however many passes there were before."""
    from laconic.data.source import ArraySource

    real = ArraySource.sum
    passes, most = [0], [10**9]

    def impatient(self, f, columns=None):
        passes[0] += 1
        if passes[0] > most[0]:
            raise KeyboardInterrupt
        return real(self, f, columns)

    monkeypatch.setattr(ArraySource, "sum", impatient)
    X, y = payments[0][:1000], payments[1][:1000]
    clone(estimator).fit(X, y)
    every = passes[0]
    for share in (0.5, 0.75, 0.99):
        passes[0], most[0] = 0, int(share * every)
        with pytest.raises(KeyboardInterrupt):
            clone(estimator).fit(X, y)


def test_selective_naive_bayes_keeps_more_and_is_no_better(payments, model):
    X, y = payments
    averaged = SelectiveNaiveBayes(random_state=0).fit(X, y)
    chosen = SelectiveNaiveBayes("map", random_state=0).fit(X, y)
    assert set(np.unique(chosen.weights_)) <= {0.0, 1.0}
    assert len(chosen.selected_features_) <= len(averaged.selected_features_)
    assert len(model.selected_features_) <= len(averaged.selected_features_)
    assert model.compression_ >= max(averaged.compression_, chosen.compression_)
    with pytest.warns(ConvergenceWarning, match="budget"):
        SelectiveNaiveBayes(time_budget=1e-9, random_state=0).fit(X, y)


def chunks(X, y, size):
    for begin in range(0, len(y), size):
        yield X[begin : begin + size], y[begin : begin + size]


def test_one_pass_over_a_stream_is_near_the_batch_fit():
    X, y = make_classification(
        40_000, 8, n_informative=5, n_redundant=0, class_sep=0.8, flip_y=0.05, random_state=0
    )
    X_test, y_test, X, y = X[30_000:], y[30_000:], X[:30_000], y[:30_000]
    batch = WeightedNaiveBayes().fit(X, y)
    stream = WeightedNaiveBayes()
    for part in chunks(X, y, 2000):
        stream.partial_fit(*part, classes=[0, 1])
    null = log_loss(y_test, np.full((len(y_test), 2), 0.5))
    compression = [1 - log_loss(y_test, m.predict_proba(X_test)) / null for m in (batch, stream)]
    assert compression[1] > 0.99 * compression[0]
    assert stream.n_training_ == 30_000


def test_a_weight_at_zero_comes_back():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(12_000, 2))
    label = np.where(np.arange(12_000) < 4000, X[:, 0], X[:, 1]) + 0.5 * draw.normal(size=12_000)
    y = (label > 0).astype(int)
    stream = WeightedNaiveBayes(history=3000)
    seen = []
    for part in chunks(X, y, 1000):
        stream.partial_fit(*part, classes=[0, 1])
        seen.append(stream.weights_.copy())
    assert seen[3][1] == 0.0
    assert seen[-1][1] > 0.3
    assert seen[-1][0] < seen[3][0]


def state(model):
    return model._stream, model.score_, model.schema_, model.weights_.copy()


def test_a_refused_chunk_changes_nothing(payments):
    X, y = payments
    stream = WeightedNaiveBayes().partial_fit(X[:1000], y[:1000], classes=np.unique(y))
    before = state(stream)
    probabilities = stream.predict_proba(X[:50])
    with pytest.raises(ValueError, match="'unheard of'"):
        stream.partial_fit(X[1000:1010], np.full(10, "unheard of"))
    with pytest.raises(ValueError, match="no column 'amount'"):
        stream.partial_fit(X[1000:1010].drop(columns="amount"), y[1000:1010])
    with pytest.raises(ValueError, match="not the same"):
        stream.partial_fit(X[1000:1010], y[1000:1010], classes=["a", "b"])
    with pytest.raises(ValueError, match="was categorical"):
        stream.partial_fit(X[1000:1010].assign(merchant=1.0), y[1000:1010])
    with pytest.raises(ValueError, match="infinite"):
        stream.partial_fit(X[1000:1010].assign(amount=np.inf), y[1000:1010])
    after = state(stream)
    assert all(a is b for a, b in zip(before[:3], after[:3], strict=True))
    np.testing.assert_array_equal(before[3], after[3])
    np.testing.assert_array_equal(stream.predict_proba(X[:50]), probabilities)


def test_a_new_category_is_learned(payments):
    X, y = payments
    stream = WeightedNaiveBayes()
    stream.partial_fit(X[:1000], y[:1000], classes=np.unique(y))
    new = X[1000:1300].assign(merchant="submarines")
    stream.partial_fit(new, np.full(300, "fraud"))
    assert "submarines" in stream.schema_.categories[list(X.columns).index("merchant")]
    groups = stream.encoder_.partitions_["merchant"].groups
    where = next(i for i, group in enumerate(groups) if "submarines" in group)
    before = stream.predict_proba(new[:1])
    stream.partial_fit(X[1300:], y[1300:])  # the stream has grown: partitions are refreshed
    groups = stream.encoder_.partitions_["merchant"].groups
    where = next(i for i, group in enumerate(groups) if "submarines" in group)
    assert groups[where] == ("submarines",)
    fraud = list(stream.classes_).index("fraud")
    assert stream.predict_proba(new[:1])[0, fraud] >= before[0, fraud] - 0.05


def test_streams_need_classes_and_no_constructed_variables(payments):
    X, y = payments
    with pytest.raises(ValueError, match="classes must be passed"):
        WeightedNaiveBayes().partial_fit(X, y)
    with pytest.raises(ValueError, match="pairs=0"):
        WeightedNaiveBayes(pairs=2).partial_fit(X, y, classes=np.unique(y))


def test_a_stream_can_continue_a_fitted_model(payments):
    X, y = payments
    fitted = WeightedNaiveBayes().fit(X[:2000], y[:2000])
    fitted.partial_fit(X[2000:], y[2000:])
    assert fitted.n_training_ == 3000
    whole = WeightedNaiveBayes().fit(X, y)
    losses = [log_loss(y, m.predict_proba(X)) for m in (whole, fitted)]
    assert losses[1] < 1.1 * losses[0]


def test_streams_with_the_papers_search(payments):
    X, y = payments
    stream = WeightedNaiveBayes(solver="dgml-vns", level=4, batch_size=500, random_state=0)
    for part in chunks(X, y, 1000):
        stream.partial_fit(*part, classes=np.unique(y))
    exact = WeightedNaiveBayes()
    for part in chunks(X, y, 1000):
        exact.partial_fit(*part, classes=np.unique(y))
    assert exact.criterion_ <= stream.criterion_ <= 1.05 * exact.criterion_


def test_summaries_merge_as_rows_do(payments):
    X, y = payments
    from laconic.data.tables.columns import Schema

    table = Schema.learn(X).table
    codes = np.unique(y, return_inverse=True)[1]
    weight = np.ones(len(y))
    whole = TableSummary.of(table, codes, weight, 2)
    parts = [
        TableSummary.of(Schema.learn(X[a:b]).table, codes[a:b], weight[a:b], 2)
        for a, b in ((0, 700), (700, 2000), (2000, 3000))
    ]
    merged = parts[0] + parts[1] + parts[2]
    for a, b in zip(whole.columns, merged.columns, strict=True):
        np.testing.assert_array_equal(a.weights, b.weights)


def test_pooled_values_keep_their_ranks():
    draw = np.random.default_rng(0)
    total, seen = None, []
    for _ in range(30):
        x = np.unique(draw.normal(size=3000))
        seen.append(x)
        table = condensed(NumericTable(x, np.ones((len(x), 1)), np.zeros(1)), 500)
        total = table if total is None else condensed(total + table, 500)
    every = np.sort(np.concatenate(seen))
    exact = np.searchsorted(every, total.values, side="right")
    assert len(total.values) <= 1000
    assert np.abs(np.cumsum(total.weights) - exact).max() < 0.004 * len(every)
    assert total.weights.sum() == len(every)


def test_progress_is_logged(payments, caplog):
    with caplog.at_level("INFO", logger="laconic"):
        WeightedNaiveBayes().fit(*payments)
    values = [float(r.message.split("criterion ")[1]) for r in caplog.records]
    assert len(values) > 2
    assert values == sorted(values, reverse=True)


@pytest.mark.dataset("adult")
def test_adult_official_split():
    from laconic.data.datasets import load

    data = load("adult")
    train, test = slice(0, 32_561), slice(32_561, None)
    fitted = WeightedNaiveBayes(penalty=0.1, power=1.0).fit(data.X[train], data.y[train])
    assert log_loss(data.y[test], fitted.predict_proba(data.X[test])) <= 0.2830
    assert len(fitted.selected_features_) <= 13


def test_weight_path_display(payments):
    X, y = payments
    display = WeightPathDisplay.from_estimator(
        WeightedNaiveBayes(), X, y, penalties=[0.1, 1.0, 100.0]
    ).plot()
    np.testing.assert_allclose(
        display.weights[0], WeightedNaiveBayes(penalty=0.1).fit(X, y).weights_, atol=1e-6
    )
    assert not display.weights[-1].any()
    drawn = sorted(tuple(line.get_ydata()) for line in display.lines_)
    assert drawn == sorted(tuple(column) for column in display.weights.T)
    assert list(display.frame().columns) == ["penalty", *X.columns]
    with pytest.raises(ValueError, match="penalties"):
        WeightedNaiveBayes().weights_by_penalty(X, y, [-1.0])


def test_search_display(payments):
    X, y = payments
    base = WeightedNaiveBayes(level=1, random_state=0)
    display = SearchDisplay.from_estimator(base, X, y).plot()
    assert list(display.values) == ["dgml", "dgml-ms", "dgml-vns"]
    for line, values in zip(display.lines_, display.values.values(), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), np.minimum.accumulate(values))
        assert values.min() >= display.minimum * (1 - 1e-9)
    assert len(display.frame()) == sum(map(len, display.values.values()))
    assert SearchDisplay.from_estimator(clone(base).set_params(power=0.5), X, y).minimum is None


def test_contribution_display(payments, model):
    X, _ = payments
    display = ContributionDisplay.from_estimator(model, X, row=7).plot()
    assert display.score == pytest.approx(model.decision_function(X[7:8])[0])
    np.testing.assert_allclose([bar.get_width() for bar in display.bars_], display.contributions)
    other = ContributionDisplay.from_estimator(model, X, row=7, output=model.classes_[0])
    np.testing.assert_allclose(other.contributions, -display.contributions)
    with pytest.raises(ValueError, match="output"):
        ContributionDisplay.from_estimator(model, X, output="none")
