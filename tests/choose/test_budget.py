"""The time budget, by a clock that toy models move: no real second is measured."""

from __future__ import annotations

import numpy as np
import pytest

import laconic
from laconic import LaconicClassifier
from laconic.choose.budget import Budget, Forecast, forecast, keyed_sample, rows_in_time


class Clock:
    """Seconds that pass only when a model is fitted."""

    now = 0.0


class Slow(laconic.PlainLogisticRegression):
    """Takes ``seconds`` for 1,000 rows, and ``power`` says how that grows."""

    def __init__(self, seconds=1.0, power=1.0, C=1.0):
        super().__init__(C)
        self.seconds = seconds
        self.power = power

    def fit(self, X, y=None, sample_weight=None):
        Clock.now += self.seconds * (len(y) / 1000.0) ** self.power
        return super().fit(X, y, sample_weight)


class Timed(LaconicClassifier):
    _clock = staticmethod(lambda: Clock.now)


@pytest.fixture
def rows():
    Clock.now = 0.0
    draw = np.random.default_rng(0)
    X = draw.normal(size=(8000, 3))
    return X, (X[:, 0] + draw.normal(size=8000) > 1).astype(int)


@pytest.mark.filterwarnings("ignore:time_budget")
@pytest.mark.parametrize("budget", [5.0, 20.0, 60.0, 500.0])
@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_the_budget_holds_whatever_the_models_take(budget, power, rows):
    models = {name: Slow(seconds, power) for name, seconds in
              (("first", 0.2), ("second", 1.0), ("third", 0.05), ("fourth", 10.0))}  # fmt: skip
    model = Timed(candidates=models, time_budget=budget).fit(*rows)
    assert Clock.now <= 1.2 * budget + 2.0
    notes = dict(zip(model.comparison_["candidate"], model.comparison_["note"], strict=True))
    if budget == 500.0 and power == 1.0:
        assert not any(notes[name] for name in ("first", "second", "third"))
    assert model.predict(rows[0]).shape == (8000,)


def test_the_first_candidate_is_reached_and_a_slow_one_is_told(rows):
    models = {"first": Slow(0.1), "slow": Slow(50.0)}
    model = Timed(candidates=models, time_budget=20.0).fit(*rows)
    frame = model.comparison_.set_index("candidate")
    assert model.candidate_ == "first"
    assert frame.loc["slow", "note"].startswith("time_budget: it would take about")
    assert np.isfinite(frame.loc["first", "cost"])


def test_a_table_too_large_for_the_first_is_sampled_and_said(rows):
    with pytest.warns(UserWarning, match="of 8000 rows are used; first on all of them"):
        Timed(candidates={"first": Slow(2.0)}, time_budget=20.0).fit(*rows)
    assert Clock.now <= 26.0


def test_few_rows_of_a_slow_model_are_no_better_than_all_rows_of_a_quick_one(rows, recwarn):
    models = {"slow": Slow(20.0), "quick": Slow(0.1)}
    model = Timed(candidates=models, time_budget=20.0).fit(*rows)
    frame = model.comparison_.set_index("candidate")
    assert not [w for w in recwarn if "rows are used" in str(w.message)]
    assert model.candidate_ == "quick"
    assert frame.loc["slow", "note"].startswith("time_budget: it would take about")
    assert Clock.now <= 26.0


def test_if_nothing_ends_a_plain_model_is_kept_with_a_sentence(rows):
    with pytest.warns(UserWarning, match="plain logistic regression on 125 rows is kept"):
        model = Timed(candidates={"first": Slow(1e6)}, time_budget=1e-9).fit(*rows)
    assert model.candidate_ == "logistic"
    assert isinstance(model.estimator_, laconic.PlainLogisticRegression)
    assert np.isnan(model.reported_cost_.value)
    assert set(model.predict(rows[0])) <= {0, 1}


def test_without_a_budget_no_probe_is_fitted(rows):
    Timed(candidates={"first": Slow(1.0)}, cv=2).fit(rows[0][:1000], rows[1][:1000])
    assert Clock.now == pytest.approx(2.0, rel=0.01)  # two halves, then all rows


@pytest.mark.parametrize("power", [1.0, 1.7, 2.5])
def test_forecasts_of_known_growth(power):
    clock = [0.0]
    budget = Budget(1e9, lambda: clock[0])

    def fit(n):
        clock[0] += 1e-3 * n**power

    found = forecast(fit, 100_000, budget)
    assert found.at(100_000) == pytest.approx(1e-3 * 100_000**power, rel=1e-6)


def test_probes_are_few_where_time_is_short():
    asked = []
    clock = [0.0]

    def fit(n):
        asked.append(n)
        clock[0] += n

    forecast(fit, 10**6, Budget(1000.0, lambda: clock[0]))
    assert asked == [125, 125]  # once more, since the first fit of a process loads compiled code


def test_what_the_first_fit_loads_is_not_taken_for_its_time():
    clock = [0.0]

    def fit(n):
        clock[0] += 1e-4 * n + (3.0 if clock[0] == 0.0 else 0.0)

    found = forecast(fit, 100_000, Budget(20.0, lambda: clock[0]))
    assert found.at(100_000) == pytest.approx(10.0, rel=0.01)


def test_a_start_that_takes_long_is_not_multiplied_by_the_rows():
    """The additive model on 100,000 rows, as measured: 7 s, and 20 s are given."""
    clock = [0.0]

    def fit(n):
        clock[0] += 0.2 + 4e-5 * n + (0.6 if clock[0] == 0.0 else 0.0)

    found = forecast(fit, 100_000, Budget(20.0, lambda: clock[0]))
    assert 4.2 <= found.at(100_000) <= 8.0
    assert clock[0] < 0.15 * 20.0


def test_samples_are_nested_and_keep_every_class():
    draw = np.random.default_rng(0)
    keys = draw.integers(0, 2**63, 1000).astype(np.uint64)
    y = (np.arange(1000) % 100 == 0).astype(int)
    small, large = (keyed_sample(keys, y, n) for n in (50, 400))
    assert np.isin(small, large).all()
    assert set(y[small]) == {0, 1}
    assert len(large) == 400
    assert rows_in_time(Forecast(250, 1.0, 1.0), 8000, 1.0, 1e9) == 8000
    assert rows_in_time(Forecast(250, 1.0, 1.0), 8000, 1.0, 0.0) == 250
