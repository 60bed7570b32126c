"""Minimax solvers: against the linear program, closed forms and the properties of the optimum."""

import numpy as np
import pytest

from laconic.minimax.criterion import (
    BayesRisk,
    DenseLaws,
    PriorBox,
    SparseLaws,
    bayes_costs,
    checked_costs,
    zero_one,
)
from laconic.minimax.solver import (
    BayesPass,
    level_bundle,
    merge_proportional,
    projected_subgradient,
    solve_minimax,
)


def random_laws(draw, n_profiles, n_classes, kind):
    if kind == "dense":
        table = draw.gamma(0.5, size=(n_profiles, n_classes))
    else:
        table = draw.poisson(0.6, size=(n_profiles, n_classes)).astype(float)
        table[0] += 1
        table = table[table.any(axis=1)]
    return table / table.sum(axis=0)


def random_loss(draw, n_classes, kind):
    if kind == "errors":
        return zero_one(n_classes)
    if kind == "squared":
        steps = np.arange(n_classes)
        return (steps[:, None] - steps) ** 2.0
    return draw.random((n_classes, n_classes)) * (1 - 0.9 * np.eye(n_classes))


def random_box(draw, n_classes, boxed):
    if not boxed:
        return PriorBox.of(None, n_classes)
    inside = draw.dirichlet(np.ones(n_classes))
    return PriorBox.of(
        np.column_stack(
            (
                np.maximum(inside - 0.2 * draw.random(n_classes), 0),
                np.minimum(inside + 0.2 * draw.random(n_classes), 1),
            )
        ),
        n_classes,
    )


CASES = [
    (n_classes, n_profiles, table, loss, boxed)
    for n_classes, n_profiles in [(2, 2000), (2, 7), (3, 2000), (4, 300), (5, 2000), (10, 500)]
    for table in ("dense", "counts")
    for loss in ("errors", "squared", "asymmetric")
    for boxed in (False, True)
] + [(10, 2000, "counts", "asymmetric", False), (10, 2000, "dense", "errors", True)]


@pytest.mark.parametrize(("n_classes", "n_profiles", "table", "loss", "boxed"), CASES)
def test_value_and_rule_agree_with_the_linear_program(n_classes, n_profiles, table, loss, boxed):
    draw = np.random.default_rng(n_classes * 1000 + n_profiles)
    law = random_laws(draw, n_profiles, n_classes, table)
    losses = random_loss(draw, n_classes, loss)
    box = random_box(draw, n_classes, boxed)
    laws = DenseLaws(law) if table == "dense" else SparseLaws.of(law)
    oracle = solve_minimax(laws, losses, box, solver="lp")
    found = solve_minimax(laws, losses, box)
    assert found.why_stopped == "gap"
    low, rule = found.details["lower_bound"], found.details["rule"]
    # no rule beats V at the point, and the oracle's V is the largest: all four meet
    assert abs(low - oracle.details["lower_bound"]) <= 1e-8
    assert abs(found.value - oracle.details["lower_bound"]) <= 1e-8
    risk = BayesRisk(laws, losses)
    assert risk.value(found.point) == pytest.approx(low, abs=1e-12)
    each = np.array([risk.class_risks(labels) for labels in rule.labels])
    mixed = rule.weights @ each
    assert box.worst(mixed)[0] <= oracle.details["lower_bound"] + 1e-8
    np.testing.assert_allclose(mixed, rule.class_risks, atol=1e-12)
    assert len(rule.weights) <= n_classes
    if not boxed:
        held = mixed[found.point > 1e-12]
        assert np.ptp(held) <= 1e-9


@pytest.mark.parametrize("n_classes", [2, 3, 7, 10])
@pytest.mark.parametrize("solver", ["auto", "bundle", "lp"])
def test_one_profile_gives_the_coin_of_k_sides(n_classes, solver):
    laws = DenseLaws(np.ones((1, n_classes)))
    found = solve_minimax(laws, zero_one(n_classes), PriorBox.of(None, n_classes), solver=solver)
    assert found.value == pytest.approx((n_classes - 1) / n_classes, abs=1e-9)
    np.testing.assert_allclose(found.point, 1 / n_classes, atol=1e-6)
    decided = found.details["rule"].decide(np.array([0]))
    np.testing.assert_allclose(decided, 1 / n_classes, atol=1e-9)


@pytest.mark.parametrize("n_profiles", [100, 50_000])
@pytest.mark.parametrize("kind", ["errors", "asymmetric"])
def test_two_classes_in_closed_form_and_by_bundle(n_profiles, kind):
    draw = np.random.default_rng(n_profiles)
    law = DenseLaws(random_laws(draw, n_profiles, 2, "dense"))
    loss = random_loss(draw, 2, kind)
    for boxed in (False, True):
        box = random_box(draw, 2, boxed)
        closed = solve_minimax(law, loss, box)
        bundle = solve_minimax(law, loss, box, solver="bundle")
        assert closed.n_iter == 1
        assert closed.gap <= 1e-12
        assert closed.value == pytest.approx(bundle.value, abs=1e-8)


@pytest.mark.parametrize(
    "loss", [[[0, 1], [0, 1]], [[1, 0], [0, 0]], [[3, 1], [2, 5]], [[2, 2], [1, 1]]]
)
def test_two_classes_with_odd_losses(loss):
    draw = np.random.default_rng(7)
    law = DenseLaws(random_laws(draw, 60, 2, "counts"))
    losses = checked_costs(loss, [0, 1])
    for box in (PriorBox.of(None, 2), PriorBox.of([[0.2, 0.4], [0, 1]], 2)):
        oracle = solve_minimax(law, losses, box, solver="lp")
        assert solve_minimax(law, losses, box).value == pytest.approx(oracle.value, abs=1e-9)


def test_asymmetric_loss_uses_the_transpose_where_it_is_meant():
    """Mixing L and its transpose reports a value that no prior has; V at the point is exact."""
    for seed in range(20):
        draw = np.random.default_rng(seed)
        law = random_laws(draw, 40, 3, "dense")
        loss = draw.random((3, 3)) * np.array([[0, 10, 1], [1, 0, 1], [1, 1, 0]])
        found = solve_minimax(DenseLaws(law), loss, PriorBox.of(None, 3))
        by_hand = sum(
            min(sum(loss[k, d] * found.point[k] * row[k] for k in range(3)) for d in range(3))
            for row in law
        )
        assert found.details["lower_bound"] == pytest.approx(by_hand, abs=1e-12)
        oracle = solve_minimax(DenseLaws(law), loss, PriorBox.of(None, 3), solver="lp")
        assert found.value == pytest.approx(oracle.value, abs=1e-8)


def test_scale_of_the_loss_scales_the_risk_only():
    draw = np.random.default_rng(0)
    law = DenseLaws(random_laws(draw, 200, 4, "dense"))
    loss = random_loss(draw, 4, "asymmetric")
    box = PriorBox.of(None, 4)
    one = solve_minimax(law, loss, box, tol=1e-10)
    many = solve_minimax(law, 1e6 * loss, box, tol=1e-4)
    assert many.value == pytest.approx(1e6 * one.value, rel=1e-9)
    assert solve_minimax(law, 0 * loss, box).value == 0.0


def test_the_box_of_one_prior_is_the_bayes_rule():
    draw = np.random.default_rng(1)
    laws = DenseLaws(random_laws(draw, 300, 4, "dense"))
    prior = draw.dirichlet(np.ones(4))
    found = solve_minimax(laws, zero_one(4), PriorBox(prior, prior))
    np.testing.assert_allclose(found.point, prior, atol=1e-12)
    assert found.value == pytest.approx(BayesRisk(laws, zero_one(4)).value(prior), abs=1e-12)


@pytest.mark.parametrize("loss", ["errors", "asymmetric"])
def test_compiled_passes_agree_with_the_formulas(loss):
    draw = np.random.default_rng(2)
    law = random_laws(draw, 500, 6, "counts")
    losses = random_loss(draw, 6, loss)
    prior = draw.dirichlet(np.ones(6))
    reference = BayesRisk(DenseLaws(law), losses)
    for laws in (DenseLaws(law), SparseLaws.of(law)):
        labels, risks = BayesPass(laws, losses)(prior)
        np.testing.assert_allclose(risks, reference.class_risks(labels), atol=1e-13)
        assert prior @ risks == pytest.approx(reference.value(prior), abs=1e-13)
        costs = bayes_costs(law, prior, losses)
        chosen = costs[np.arange(len(law)), labels]
        np.testing.assert_allclose(chosen, costs.min(axis=1), atol=1e-15)


def test_merging_proportional_profiles_changes_nothing():
    draw = np.random.default_rng(3)
    counts = draw.poisson(0.5, size=(4000, 4)).astype(float)
    counts = counts[counts.any(axis=1)] * draw.integers(1, 9, size=(1, 1))
    laws = SparseLaws.of(counts)
    merged, group = merge_proportional(laws)
    ratios = counts / counts.sum(axis=1, keepdims=True)
    distinct = len(np.unique(ratios.round(12), axis=0))
    assert merged.n_profiles == distinct
    sums = np.zeros((merged.n_profiles, 4))
    np.add.at(sums, group, counts)
    np.testing.assert_array_equal(sums, merged.rows(0, merged.n_profiles))
    for prior in draw.dirichlet(np.ones(4), size=5):
        loss = draw.random((4, 4))
        whole = BayesRisk(laws, loss).value(prior)
        assert BayesRisk(merged, loss).value(prior) == pytest.approx(whole, rel=1e-12)


def test_counts_with_class_weights_are_probabilities():
    draw = np.random.default_rng(4)
    counts = draw.poisson(0.8, size=(900, 3)).astype(float)
    counts = counts[counts.any(axis=1)]
    weight = counts.sum(axis=0)
    box = PriorBox.of(None, 3)
    direct = solve_minimax(SparseLaws.of(counts / weight), zero_one(3), box)
    merged = solve_minimax(SparseLaws.of(counts), zero_one(3), box, class_weight=weight)
    assert merged.details["n_merged"] < len(counts) / 2
    assert merged.value == pytest.approx(direct.value, abs=1e-8)
    assert merged.details["rule"].labels.shape[1] == len(counts)


def test_stopping_short_says_so():
    draw = np.random.default_rng(5)
    evaluate = BayesPass(DenseLaws(random_laws(draw, 500, 6, "dense")), zero_one(6))
    short = level_bundle(evaluate, PriorBox.of(None, 6), max_iter=8)
    assert short.why_stopped == "max_iter"
    full = level_bundle(evaluate, PriorBox.of(None, 6))
    # the certificate of the short run holds: the optimum is within its gap
    assert short.value - short.gap <= full.value <= short.value + 1e-12
    with pytest.warns(UserWarning, match="certified within"):
        short.warn_if_short("level_bundle")


def test_subgradient_and_its_corrected_bound():
    for seed in range(8):
        draw = np.random.default_rng(seed)
        n_classes = int(draw.integers(2, 8))
        law = random_laws(draw, 300, n_classes, "dense")
        evaluate = BayesPass(DenseLaws(law), zero_one(n_classes))
        box = PriorBox.of(None, n_classes)
        best = level_bundle(evaluate, box, tol=1e-10).details["lower_bound"]
        found = projected_subgradient(evaluate, box, max_iter=100)
        error = best - found.details["lower_bound"]
        assert -1e-10 <= error <= found.details["bound_9"]
        assert found.gap >= error - 1e-10
        assert found.gap < found.details["bound_9"]
        assert error < 1e-3


def test_bound_9_is_its_formula():
    draw = np.random.default_rng(0)
    risk = BayesRisk(DenseLaws(random_laws(draw, 50, 6, "dense")), zero_one(6))
    prior, box = np.full(6, 1 / 6), PriorBox.of(None, 6)
    steps = 0.0
    for n in range(1, 31):
        slope = risk.class_risks(risk.labels(prior))
        eta = max(1.0, np.linalg.norm(slope))
        steps += 1 / (n * eta)
        prior = box.project(prior + slope / (n * eta))
    # from the uniform prior, no prior is further than a corner
    rho_squared = 2.0
    bound = (rho_squared + sum(1 / n**2 for n in range(1, 31))) / (2 * steps)
    evaluate = BayesPass(risk.laws, risk.loss)
    found = projected_subgradient(evaluate, box, max_iter=30)
    assert found.details["bound_9"] == pytest.approx(bound, rel=1e-9)


def test_a_deterministic_rule_can_be_far_from_minimax():
    """Why the rule is randomised: at the very same prior, ties decide a class wrong."""
    law = np.array([[0.5, 0.5], [0.5, 0.5]])
    found = solve_minimax(DenseLaws(law), zero_one(2), PriorBox.of(None, 2))
    assert found.value == pytest.approx(0.5)
    one = BayesPass(DenseLaws(law), zero_one(2)).rule(found.point[None], np.ones(1))
    assert one.class_risks.max() == 1.0


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        ([[0, 1, 2], [1, 0, 2]], "have shape"),
        ([[0, -1], [1, 0]], "not negative"),
        ([[0, np.inf], [1, 0]], "finite"),
        (np.zeros((3, 3)), "there are 2 classes"),
        ([0, 1], "have shape"),
    ],
)
def test_bad_losses_are_refused_in_words(loss, words):
    with pytest.raises(ValueError, match=words):
        checked_costs(loss, [0, 1])


def test_the_linear_program_is_for_small_tables():
    with pytest.raises(ValueError, match="too many for it"):
        solve_minimax(
            DenseLaws(np.full((300_000, 3), 1 / 300_000)),
            zero_one(3),
            PriorBox.of(None, 3),
            solver="lp",
        )
