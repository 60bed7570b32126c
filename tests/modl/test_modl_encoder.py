"""The encoder: partitions, levers, outputs, constructed variables, invariances, errors."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta
from sklearn.datasets import load_iris, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from laconic import ModlEncoder
from laconic.data.source import ArraySource
from laconic.data.tables.columns import Schema
from laconic.data.value_tables import category_table, numeric_table
from laconic.displays import LevelDisplay, PartitionDisplay
from laconic.modl.criterion import GranularPrior
from laconic.modl.intervals import best_intervals
from laconic.modl.partition import Groups, Intervals, readable_between


def credit(n=1500, seed=0):
    """Numbers with missing values and a code, categories, an interaction, noise."""
    rng = np.random.default_rng(seed)
    income = np.exp(rng.normal(7, 0.6, n))
    job = rng.choice(["cook", "smith", "clerk", "pilot", "guard"], n, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    rate = np.where(income < 1000, 0.5, 0.2) + np.where(np.isin(job, ["cook", "guard"]), 0.25, 0.0)
    y = np.where(rng.random(n) < rate, "bad", "good")
    frame = pd.DataFrame({"income": income.round(), "job": job, "noise": rng.random(n)})
    frame.loc[rng.random(n) < 0.15, "income"] = np.nan
    frame["job"] = frame["job"].where(rng.random(n) > 0.05, None)
    return frame, y


def xor(n=1200, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.random(n), "b": rng.random(n), "c": rng.random(n)})
    truth = (frame.a > 0.4) ^ (frame.b > 0.7)
    return frame, np.where(rng.random(n) < 0.1, ~truth, truth).astype(int)


# ---- tables --------------------------------------------------------------------------------


def test_tables_do_not_depend_on_blocks():
    frame, y = credit()
    table, codes = Schema.learn(frame).table, (y == "good").astype(np.int64)
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    whole = ArraySource(table, codes, weight)
    small = ArraySource(table, codes, weight, block_rows=37)
    a, b = numeric_table(whole, 0, 2), numeric_table(small, 0, 2)
    np.testing.assert_array_equal(a.values, b.values)
    np.testing.assert_array_equal(a.weights, b.weights)
    np.testing.assert_array_equal(a.missing, b.missing)
    seen = frame.income.notna().to_numpy()
    np.testing.assert_array_equal(a.values, np.unique(frame.income[seen]))
    value = a.values[10]
    rows = (frame.income == value).to_numpy()
    expected = [weight[rows & (codes == j)].sum() for j in (0, 1)]
    np.testing.assert_array_equal(a.weights[10], expected)
    np.testing.assert_array_equal(category_table(whole, 1, 5, 2), category_table(small, 1, 5, 2))
    missing_jobs = frame.job.isna().to_numpy()
    assert category_table(whole, 1, 5, 2)[-1].sum() == weight[missing_jobs].sum()


# ---- partitions ----------------------------------------------------------------------------


def test_class_weights_are_those_of_the_training_rows():
    frame, y = credit()
    weight = np.random.default_rng(2).integers(1, 4, len(y)).astype(float)
    encoder = ModlEncoder(pairs=2, trees=2, random_state=0).fit(frame, y, sample_weight=weight)
    codes = encoder.transform(frame)
    assert len(encoder.partitions_) > 4
    for k, partition in enumerate(encoder.partitions_.values()):
        expected = np.zeros_like(partition.class_weights)
        np.add.at(expected, (codes[:, k], (y == "good").astype(int)), weight)
        np.testing.assert_array_equal(partition.class_weights, expected)
        assert partition.n_parts == len(partition.labels) == len(partition.to_frame())
        assert partition.cost == pytest.approx(
            partition.construction_cost + partition.preparation_cost + partition.data_cost
        )
        assert partition.level == pytest.approx(max(0.0, 1 - partition.cost / partition.null_cost))
        log_p = partition.conditional_log_probabilities()
        np.testing.assert_allclose(np.exp(log_p).sum(axis=0), 1.0)
        e = 1 / (weight.sum() + 1)
        totals = expected.sum(axis=0)
        by_hand = np.log((expected + e) / (totals + partition.n_parts * e))
        np.testing.assert_allclose(log_p, by_hand)


def test_codes_of_one_partition_take_plain_values():
    frame, y = credit()
    encoder = ModlEncoder().fit(frame, y)
    codes = encoder.transform(frame)
    income, job = encoder.partitions_["income"], encoder.partitions_["job"]
    np.testing.assert_array_equal(income.codes(frame.income), codes[:, 0])
    np.testing.assert_array_equal(job.codes(frame.job.to_numpy(object)), codes[:, 1])
    cut = income.bounds[0]
    assert list(income.codes([cut, np.nextafter(cut, np.inf)])) == [
        income.cells.first,
        income.cells.first + 1,
    ]
    with pytest.raises(ValueError, match="needs the values of 1 columns"):
        income.codes(frame.income, frame.job)
    with pytest.raises(AttributeError, match="no groups"):
        income.groups
    with pytest.raises(AttributeError, match="no bounds"):
        job.bounds


def test_unseen_values_go_to_the_default_group():
    frame, y = credit()
    encoder = ModlEncoder().fit(frame, y)
    partition = encoder.partitions_["job"]
    new = frame.iloc[:2].assign(job=["astronaut", None])
    codes = encoder.transform(new)[:, 1]
    assert codes[0] == partition.cells.default
    missing = [k for k, group in enumerate(partition.groups) if None in group]
    assert [codes[1]] == missing


def test_missing_is_a_value_below_every_number():
    rng = np.random.default_rng(0)
    x = rng.random(2000)
    gone = rng.random(2000) < 0.3
    y = np.where(gone, rng.random(2000) < 0.9, rng.random(2000) < 0.1)
    x[gone] = np.nan
    encoder = ModlEncoder().fit(x[:, None], y)
    partition = encoder.partitions_["x0"]
    assert partition.labels == ["missing", "(-inf, inf)"]
    lowest = np.where(gone, -1.0, x)
    same = ModlEncoder().fit(lowest[:, None], y)
    np.testing.assert_array_equal(same.transform(lowest[:, None]), encoder.transform(x[:, None]))
    assert same.partitions_["x0"].cost == pytest.approx(partition.cost)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(21, 22, 21.5), (0.1, 1.5, 0.8), (-3, 4, 0.5), (-1, 1, 0), (1e300, 3e300, 2e300)],
)
def test_readable_cuts(low, high, expected):
    assert readable_between(low, high) == expected


@settings(max_examples=200, deadline=None)
@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_readable_cuts_separate(a, b):
    low, high = min(a, b), max(a, b)
    if low < high:
        cut = readable_between(low, high)
        assert low <= cut < high


# ---- levers --------------------------------------------------------------------------------


def test_monotone_min_weight_and_max_parts():
    rng = np.random.default_rng(0)
    x = rng.random(4000)
    y = rng.random(4000) < 0.5 + 0.4 * np.sin(9 * x)
    free = ModlEncoder().fit(x[:, None], y).partitions_["x0"]
    assert free.n_parts > 5
    assert (np.diff(free.class_rates()[:, 1]) < 0).any()
    for direction, sign in (("increasing", 1), ("decreasing", -1)):
        held = ModlEncoder(monotone={"x0": direction}).fit(x[:, None], y).partitions_["x0"]
        assert held.n_parts > 1
        assert (sign * np.diff(held.class_rates()[:, 1]) > 0).all()
        assert held.cost >= free.cost
    heavy = ModlEncoder(min_part_weight=700).fit(x[:, None], y).partitions_["x0"]
    assert heavy.class_weights.sum(axis=1).min() >= 700
    share = ModlEncoder(min_part_weight=0.175).fit(x[:, None], y).partitions_["x0"]
    np.testing.assert_array_equal(share.class_weights, heavy.class_weights)
    few = ModlEncoder(max_parts=3).fit(x[:, None], y).partitions_["x0"]
    assert 1 < few.n_parts <= 3
    assert few.cost >= free.cost


def test_levers_on_groups():
    frame, y = credit()
    for limit in ({"max_parts": 2}, {"min_part_weight": 300}):
        partition = ModlEncoder(**limit).fit(frame[["job"]], y).partitions_["job"]
        assert partition.n_parts == 2
        assert partition.class_weights.sum(axis=1).min() >= 300


def test_cuts_and_special_values():
    frame, y = credit()
    coded = frame.assign(income=frame.income.fillna(-9))
    encoder = ModlEncoder(special_values={"income": [-9, 77]}, cuts={"noise": [0.25, 0.5]})
    encoder.fit(coded, y)
    income = encoder.partitions_["income"]
    assert income.labels[-1] == "= -9"
    assert income.class_weights[-1].sum() == (coded.income == -9).sum()
    assert not any("77" in label for label in income.labels)
    noise = encoder.partitions_["noise"]
    np.testing.assert_array_equal(noise.bounds, [0.25, 0.5])
    assert noise.level == 0.0
    expected = np.searchsorted([0.25, 0.5], coded.noise, side="left")
    np.testing.assert_array_equal(encoder.transform(coded)[:, 2], expected)
    everywhere = ModlEncoder(special_values=[-9]).fit(coded, y)
    np.testing.assert_array_equal(
        everywhere.partitions_["income"].class_weights, income.class_weights
    )


def test_missing_stands_apart_from_given_cuts_and_monotone_rates():
    frame, y = credit()
    for lever in ({"cuts": {"income": [900.0]}}, {"monotone": {"income": "increasing"}}):
        partition = ModlEncoder(**lever).fit(frame, y).partitions_["income"]
        assert partition.labels[0] == "missing"
        assert partition.class_weights[0].sum() == frame.income.isna().sum()


# ---- invariances ---------------------------------------------------------------------------


tables = st.integers(0, 10_000)


def small(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(30, 200))
    x = np.round(rng.normal(size=n), int(rng.integers(0, 3)))
    x[rng.random(n) < 0.1] = np.nan
    k = rng.integers(0, 12, n)
    score = np.nan_to_num(x) + np.sin(k) + rng.normal(size=n)
    y = np.digitize(score, [0.0, 1.0][: int(rng.integers(1, 3))])
    y[:3] = [0, 1, y.max()]
    return pd.DataFrame({"x": x, "k": [f"v{code}" for code in k]}), y


def costs(encoder):
    return [p.cost for p in encoder.partitions_.values()]


@settings(max_examples=25, deadline=None)
@given(tables)
def test_rows_classes_names_and_monotone_transforms_do_not_matter(seed):
    frame, y = small(seed)
    rng = np.random.default_rng(seed + 1)
    encoder = ModlEncoder().fit(frame, y)
    codes = encoder.transform(frame)
    shuffle = rng.permutation(len(y))
    again = ModlEncoder().fit(frame.iloc[shuffle], y[shuffle])
    np.testing.assert_array_equal(again.transform(frame), codes)
    # a class order
    renamed = rng.permutation(y.max() + 1)[y]
    other = ModlEncoder().fit(frame, renamed)
    assert costs(other) == pytest.approx(costs(encoder), abs=1e-8)
    np.testing.assert_array_equal(other.transform(frame)[:, 0], codes[:, 0])
    # names of categories, in another alphabetical order
    names = {f"v{code}": f"w{place:02d}" for code, place in enumerate(rng.permutation(12))}
    moved = ModlEncoder().fit(frame.assign(k=frame.k.map(names)), y)
    assert costs(moved) == pytest.approx(costs(encoder), abs=1e-8)
    # an increasing transform
    bent = frame.assign(x=np.exp(frame.x / 3) * 1e-5)
    np.testing.assert_array_equal(ModlEncoder().fit(bent, y).transform(bent)[:, 0], codes[:, 0])


@settings(max_examples=15, deadline=None)
@given(tables)
def test_weights_are_repetitions(seed):
    frame, y = small(seed)
    weight = np.random.default_rng(seed).integers(0, 4, len(y))
    weight[:3] = 1
    rows = np.repeat(np.arange(len(y)), weight)
    weighted = ModlEncoder().fit(frame, y, sample_weight=weight.astype(float))
    repeated = ModlEncoder().fit(frame.iloc[rows], y[rows])
    assert costs(weighted) == pytest.approx(costs(repeated), abs=1e-8)
    np.testing.assert_array_equal(weighted.transform(frame), repeated.transform(frame))


@pytest.mark.parametrize("prior", ["granular", "2006"])
def test_independent_columns_get_one_part(prior):
    """At n = 1,000, one part for at least 99 columns of 100, in tables of ten columns."""
    rng = np.random.default_rng(0)
    alone = []
    for _ in range(40):
        y = rng.random(1000) < 0.3
        frame = pd.DataFrame(rng.random((1000, 5)))
        for k in range(5):
            frame[f"k{k}"] = [f"v{code}" for code in rng.integers(0, 3 + 9 * k, 1000)]
        frame.columns = frame.columns.astype(str)
        encoder = ModlEncoder(code=prior).fit(frame, y)
        alone += [p.n_parts == 1 for p in encoder.partitions_.values()]
    assert np.mean(alone) >= 0.99


def test_an_independent_column_alone_gets_one_part():
    """The hardest case: naming one column of one costs nothing. 99 of 100, up to sampling noise."""
    rng = np.random.default_rng(0)
    prior = GranularPrior(1000.0, 0.0)
    alone = 0
    for _ in range(1000):
        classes = np.eye(2, dtype=np.int64)[(rng.random(1000) < 0.3).astype(int)]
        alone += best_intervals(classes, 2, prior).point.n_parts == 1
    assert alone >= 990 - 2 * np.sqrt(1000 * 0.01 * 0.99)


def test_threads_change_nothing():
    X, y = make_classification(3000, 8, n_informative=5, random_state=0)
    one, two = (ModlEncoder(n_jobs=k).fit(X, y) for k in (1, 2))
    np.testing.assert_array_equal(one.transform(X), two.transform(X))
    assert costs(one) == costs(two)


# ---- outputs -------------------------------------------------------------------------------


def test_outputs_agree():
    frame, y = credit()
    encoder = ModlEncoder().fit(frame, y)
    codes = encoder.transform(frame)
    names = {}
    for output in ("labels", "onehot", "sparse", "logprob"):
        encoder.set_params(output=output)
        names[output] = list(encoder.get_feature_names_out())
        made = encoder.transform(frame)
        assert made.shape == (len(y), len(names[output]))
        assert len(set(names[output])) == len(names[output])
        if output == "labels":
            for k, partition in enumerate(encoder.partitions_.values()):
                assert made[5, k] == partition.labels[codes[5, k]]
        elif output == "logprob":
            expected = encoder.partitions_["income"].conditional_log_probabilities()[codes[:, 0]]
            np.testing.assert_array_equal(made[:, :2], expected)
            assert names[output][:2] == ["income|bad", "income|good"]
        else:
            dense = made.toarray() if output == "sparse" else made
            assert (dense.sum(axis=1) == 3).all()
            starts = np.cumsum([0] + [p.n_parts for p in encoder.partitions_.values()])
            np.testing.assert_array_equal(np.argmax(dense[:, : starts[1]], axis=1), codes[:, 0])


def test_frames_out_and_uninformative_columns():
    frame, y = credit()
    encoder = ModlEncoder(drop_uninformative=True).set_output(transform="pandas")
    made = encoder.fit_transform(frame, y)
    assert list(made.columns) == ["income", "job"]
    assert encoder.partitions_["noise"].n_parts == 1
    assert list(encoder.levels_)[-1] == "noise"
    clone = pickle.loads(pickle.dumps(encoder))
    pd.testing.assert_frame_equal(clone.transform(frame), made)


def test_in_a_pipeline_before_a_linear_model():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 2))
    y = (np.abs(x[:, 0]) > 1) ^ (rng.random(2000) < 0.05)
    plain = cross_val_score(LogisticRegression(), x, y, scoring="neg_log_loss", cv=3).mean()
    model = make_pipeline(ModlEncoder(output="onehot"), LogisticRegression())
    ours = cross_val_score(model, x, y, scoring="neg_log_loss", cv=3).mean()
    assert ours > plain + 0.3


# ---- constructed variables -----------------------------------------------------------------


def test_a_pair_finds_an_interaction_that_no_column_shows():
    frame, y = xor()
    encoder = ModlEncoder(pairs=2, random_state=0).fit(frame, y)
    pairs = [p for p in encoder.partitions_.values() if p.kind == "pair"]
    assert pairs[0].name == "a x b"
    first = pairs[0]
    singles = encoder.partitions_["a"].level + encoder.partitions_["b"].level
    assert first.level > singles + 0.2
    sides = first.cells.sides
    assert np.abs(sides[0].bounds - 0.4).min() < 0.03
    assert np.abs(sides[1].bounds - 0.7).min() < 0.03
    assert first.labels[0].startswith("a: (-inf, ")
    assert first.construction_cost > encoder.partitions_["a"].construction_cost


def test_no_pair_without_an_interaction():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((1000, 4)), columns=list("abcd"))
    y = rng.random(1000) < np.where(frame.a > 0.5, 0.8, 0.2)
    encoder = ModlEncoder(pairs=3, random_state=0).fit(frame, y)
    assert [p.kind for p in encoder.partitions_.values()] == ["numeric"] * 4


def test_a_grid_costs_what_the_criterion_says():
    """Both partitions at their granularity, then the cells; an exhaustive 2 x 2 search agrees."""
    frame, y = xor(n=600)
    encoder = ModlEncoder(pairs=1, random_state=0).fit(frame[["a", "b"]], y)
    grid = encoder.partitions_["a x b"]
    cells = grid.class_weights
    n = cells.sum(axis=1)
    lg = np.vectorize(math.lgamma)
    own = (lg(n + 2) - lg(cells + 1).sum(axis=1)).sum()
    assert grid.preparation_cost + grid.data_cost >= own
    assert grid.construction_cost == pytest.approx(math.log(2) + math.log(2 * 1))
    best = math.inf
    labels = np.asarray(y)
    for a in np.linspace(0.05, 0.95, 37):
        for b in np.linspace(0.05, 0.95, 37):
            cell = (frame.a > a).to_numpy() * 2 + (frame.b > b).to_numpy()
            table = np.bincount(cell * 2 + labels, minlength=8).reshape(4, 2)
            best = min(best, (lg(table.sum(axis=1) + 2) - lg(table + 1).sum(axis=1)).sum())
    # the grid may use more cuts, and pays for them: never worse than the best 2 x 2 by its prior
    assert grid.cost <= best + 2 * math.log(600) + 10


def test_trees_are_readable_and_pay_their_way():
    frame, y = xor()
    frame["k"] = np.random.default_rng(3).choice(["u", "v", "w"], len(y))
    encoder = ModlEncoder(trees=4, random_state=0).fit(frame, y)
    trees = [p for p in encoder.partitions_.values() if p.kind == "tree"]
    assert 1 <= len(trees) <= 4
    best = max(trees, key=lambda p: p.level)
    assert best.level > 0.25
    assert best.informative
    codes = best.codes(*(frame[name].to_numpy() for name in best.column_names))
    for part, label in enumerate(best.labels):
        rows = frame[codes == part]
        for rule in label.split(" & "):
            name, span = rule.split(": ")
            if name == "k":
                assert set(rows.k) <= set(span.split(", "))
                continue
            low, high = (float(end.strip("(])")) for end in span.split(", "))
            assert ((rows[name] > low) & (rows[name] <= high)).all()
    same = ModlEncoder(trees=4, random_state=0).fit(frame, y)
    np.testing.assert_array_equal(same.transform(frame), encoder.transform(frame))


# ---- displays ------------------------------------------------------------------------------


def test_partition_display_draws_rates_and_intervals():
    X, y = load_iris(return_X_y=True, as_frame=True)
    encoder = ModlEncoder().fit(X, y)
    display = PartitionDisplay.from_estimator(encoder, "petal width (cm)").plot()
    partition = encoder.partitions_["petal width (cm)"]
    drawn = np.array([[bar.get_width() for bar in bars] for bars in display.bars_]).T
    np.testing.assert_allclose(drawn, partition.class_rates())
    n, total = partition.class_weights[1, 0] + partition.class_weights[1, 1], 54.0
    interval = beta(n + 1, total - n + 1).ppf([0.025, 0.975])
    np.testing.assert_allclose([display.low[1, 1], display.high[1, 1]], interval)
    assert list(display.frame()["label"]) == partition.labels
    assert len(display.errors_) == 2
    with pytest.raises(ValueError, match="not a variable"):
        PartitionDisplay.from_estimator(encoder, "petal")
    assert partition.plot().name == partition.name


def test_level_display_ranks():
    frame, y = xor()
    encoder = ModlEncoder(pairs=1, random_state=0).fit(frame, y)
    display = LevelDisplay.from_estimator(encoder, max_variables=3).plot()
    assert display.names[0] == "a x b"
    assert len(display.names) == 3
    assert (np.diff(display.levels) <= 0).all()
    assert [bar.get_width() for bar in display.bars_["pair"]] == [display.levels[0]]
    assert list(display.frame().columns) == ["name", "kind", "parts", "level"]


# ---- bad input -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lever", "message"),
    [
        ({"monotone": {"job": "increasing"}}, "monotone: column 'job' is categorical"),
        ({"monotone": {"income": "up"}}, "must be 'increasing'"),
        ({"monotone": {"age": "increasing"}}, "X does not have"),
        ({"cuts": {"income": [1e9]}}, "outside the values of column 'income'"),
        ({"cuts": {"income": [5.0, 5000.0, 900.0]}}, "must be increasing"),
        ({"cuts": {"job": [1.0]}}, "cuts: column 'job' is categorical"),
        ({"cuts": {"income": [math.nan]}}, "finite"),
        ({"special_values": {"job": [1.0]}}, "special_values: column 'job'"),
    ],
)
def test_levers_that_make_no_sense(lever, message):
    frame, y = credit(200)
    with pytest.raises(ValueError, match=message):
        ModlEncoder(**lever).fit(frame, y)


def test_targets_that_make_no_sense():
    frame, y = credit(200)
    with pytest.raises(ValueError, match="continuous"):
        ModlEncoder().fit(frame, np.random.default_rng(0).random(200))
    with pytest.raises(ValueError, match="y"):
        ModlEncoder().fit(frame, None)
    with pytest.raises(ValueError, match="needs two classes"):
        ModlEncoder(monotone={"income": 1}).fit(frame, np.arange(200) % 3)
    with pytest.raises(TypeError, match="list of numbers"):
        ModlEncoder(cuts={"income": "900"}).fit(frame, y)


def test_too_many_categories(monkeypatch):
    from laconic.modl import fit as partition_fit

    monkeypatch.setattr(partition_fit, "MAX_CATEGORIES", 3)
    frame, y = credit(200)
    with pytest.raises(ValueError, match="Column 'job' has 5 distinct categories"):
        ModlEncoder().fit(frame, y)


def test_cells_are_plain():
    cells = Intervals(np.array([1.0, 2.5]), True, (9.0,), True)
    assert list(cells.codes([np.array([np.nan, 1.0, 1.1, 3.0, 9.0])])) == [0, 1, 2, 3, 4]
    groups = Groups(("a", "b"), np.array([0, 1, 1], dtype=np.int32), 2, 0, True)
    assert list(groups.codes([np.array([0, 1, -1, -2])])) == [0, 1, 1, 0]
    assert list(groups.codes([np.array(["a", "b", None, "z"], dtype=object)])) == [0, 1, 1, 0]
