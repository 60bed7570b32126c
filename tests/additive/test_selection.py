"""Cross-validation of the additive model: folds that select, folds that follow, the rule."""

from __future__ import annotations

import numpy as np
import pytest

from additive_terms import singles_of
from laconic import SparseAdditiveClassifier
from laconic.additive import selection, tuning
from laconic.additive.pairs import PairRule
from laconic.additive.selection import PathPoint, Selection, choose, fold_steps, ratios_below
from laconic.additive.structure import AdditivePlan, Task, term_norms
from laconic.additive.terms import PairGrids
from laconic.additive.tuning import RATIOS
from laconic.core.losses import TruncatedLogistic

PLAN = AdditivePlan(2, TruncatedLogistic())


def test_penalties_of_the_path_before_one():
    assert ratios_below(RATIOS[1]) == ()
    assert ratios_below(RATIOS[3]) == RATIOS[1:3]
    assert ratios_below(2 * RATIOS[-1]) == RATIOS[1:]


def test_folds_that_do_not_select_follow(monkeypatch):
    """In one go they come to the fit that the selection folds reach step by step."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    y = rng.random(400) < 1 / (1 + np.exp(-X[:, 0] - np.sin(3 * X[:, 1]) - X[:, 2] * X[:, 3]))
    monkeypatch.setattr(tuning, "FEW_ROWS", 0)
    seen = []

    follow = selection.follow

    def watched(fold, *chosen):
        seen.append((fold, chosen))
        return follow(fold, *chosen)

    monkeypatch.setattr(selection, "follow", watched)
    model = SparseAdditiveClassifier(random_state=0).fit(X, y)
    assert len(seen) == 3
    assert len({chosen[:3] for _, chosen in seen}) == 1
    assert all(np.isfinite(term.errors).all() for term in model.terms_)
    fold, (_, smoothing, _, guess) = seen[0]
    assert np.isfinite(smoothing)
    for factor, ratio in ((1.0, 0.0), (2.0, 0.0), (2.0, 0.02)):
        at_once = follow(fold, factor, smoothing, ratio, guess)
        slow = fold.scaled(factor).with_weak(smoothing).path(smoothing)
        if ratio:
            slow = slow.step(ratio)
        np.testing.assert_allclose(
            at_once.fold.structure.diagonal, slow.fold.structure.diagonal, rtol=1e-12
        )
        # both are certified to a hundredth of the criterion, from different starts
        apart = np.abs(at_once.scores[0] - slow.scores[-1]).mean()
        assert apart < 0.1 * slow.scores[-1].std()
        assert len(at_once.scores) == len(at_once.coordinates) == 1


def test_a_term_must_spare_its_price():
    """Least loss without a price; with one, the point whose terms are worth it; then a share of
    the standard error on top."""

    def point(loss, n_terms):
        losses = loss + np.tile([0.1, -0.1], 50)
        return PathPoint(0.0, losses, loss, np.ones(100), n_terms)

    points = [point(0.50, 80.0), point(0.51, 30.0), point(0.60, 10.0)]
    assert choose(points, "best", None) == 0
    assert choose(points, "best", None, price=1e-4) == 0
    assert choose(points, "best", None, price=3e-4) == 1
    assert choose(points, "best", None, price=1e-2) == 2
    assert choose(points, "best", 40) == 1
    assert choose(points, "best", 5) == 2


@pytest.mark.parametrize("costs", [None, [[0.0, 1.0], [3.0, 0.0]]])
def test_price_of_a_term_has_the_unit_of_the_loss(costs):
    """A quarter of a row at chance level; nothing below 2,500 rows."""

    matrix = None if costs is None else np.array(costs)
    for n, wanted in ((2_499, 0.0), (2_500, 0.25 * (np.log(2) if costs is None else 0.5))):
        task = Task(PLAN, np.arange(n) % 2, np.ones(n))
        found = Selection(task, [], matrix).term_price
        assert found == pytest.approx(wanted / n)


@pytest.mark.parametrize(
    ("n_rows", "n_folds", "wanted"),
    [(2_499, 5, 5), (2_500, 5, 2), (5_003, 10, 4)],
)
def test_selection_folds_hold_out_enough_rows(n_rows, n_folds, wanted):
    task = Task(PLAN, np.arange(n_rows) % 2, np.ones(n_rows))
    parts = np.array_split(np.arange(n_rows), n_folds)
    assert Selection(task, parts).n_selecting(parts) == wanted


def test_a_fold_without_a_class_is_no_start_for_the_others():
    """Its fit has driven the class far away: the fit on all rows must not begin there."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 6))
    y = np.r_[np.zeros(4, dtype=int), rng.integers(1, 3, 36)]
    first = np.arange(12)
    folds = [(np.setdiff1d(np.arange(40), test), test) for test in (first, np.arange(12, 40))]
    model = SparseAdditiveClassifier(cv=folds, random_state=0).fit(X, y)
    assert model.duality_gap_ <= 1e-5 * model.objective_
    assert np.abs(model.intercept_).max() < 10.0


def test_one_absurd_row_does_not_decide_the_path():
    """A held-out loss counts at most log(rows + 1)."""
    scores = np.zeros((1, 10))
    scores[0, 0] = 1e4
    y = np.zeros(10, dtype=np.int64)
    point = Selection(Task(PLAN, y, np.ones(10)), []).scored(0.0, np.arange(10), scores, 1.0)
    assert point.losses[0] == pytest.approx(np.log(11.0))
    assert point.log_loss == pytest.approx((1e4 + 9 * np.log(2.0)) / 10)


def test_without_weak_pairs_a_path_starts_at_the_fit_of_its_fold():
    """At the chosen factor of smoothness, not at the fit before it was chosen."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = (rng.random(300) < 1 / (1 + np.exp(-X[:, 0]))).astype(np.int64)
    singles, weight = singles_of(X)
    task, rule = Task(PLAN, y, weight), PairRule(PairGrids(singles, weight), 0)
    fold = selection.open_fold(np.arange(60), task, singles, rule, ()).scaled(4.0)
    path = fold.path(np.inf)
    assert path.shown is fold.point
    np.testing.assert_array_equal(path.shown.scores[:, fold.held_out], path.scores[0])
    norms = np.maximum(term_norms(singles, fold.point), tuning.LEAST_NORM)
    np.testing.assert_allclose(path.fold.structure.group_weights, 1 / norms)


def test_losses_that_are_no_numbers_leave_the_best_penalty_the_best():
    """ "min() arg is an empty sequence" was all that a small table was told."""
    weight = np.ones(2)
    points = [PathPoint(r, np.full(2, np.inf), np.inf, weight, 2.0) for r in (0.0, 0.1)]
    with np.errstate(invalid="ignore"):
        assert choose(points, "best", None) == 0


def test_folds_of_weights_over_decades_take_few_steps():
    """One fold of 300 rows in twelve classes took 86 seconds, and ended short all the same."""
    even, decades = np.linspace(1.0, 100.0, 300), 10.0 ** np.linspace(-12.0, 12.0, 300)
    y = np.arange(300) % 2
    zone = AdditivePlan(2, TruncatedLogistic(0.2, 0.8))
    assert fold_steps(Task(PLAN, y, even)) == tuning.FOLD_STEPS
    assert fold_steps(Task(PLAN, y, decades)) == tuning.ROW_FOLD_STEPS
    assert fold_steps(Task(zone, y, decades)) == tuning.UNEVEN_FOLD_STEPS
    assert max(tuning.ROW_FOLD_STEPS, tuning.UNEVEN_FOLD_STEPS) < tuning.FOLD_STEPS
    parts = np.array_split(np.arange(300), 5)
    assert Selection(Task(PLAN, y, even), parts).n_selecting(parts) == 5
    assert Selection(Task(PLAN, y, decades), parts).n_selecting(parts) == 2
