"""The kink Newton against a general conic solver, scikit-learn and its own certificate."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import conic
from laconic.core.losses import AbsoluteError, HingeLoss, TruncatedLogistic, TruncatedMultinomial
from laconic.data.datasets import load
from laconic.data.source import ArraySource
from laconic.linear.solvers.kink_qp import kink_step
from laconic.linear.solvers.multinomial import solve_multinomial
from laconic.linear.solvers.newton import solve_linear, solve_paper
from laconic.linear.solvers.newton_cg import solve_linear_cg
from laconic.linear.solvers.scan import ScoredBlocks, Scorer, solve_scanned

ZONES = [(0, 1), (0.048, 0.158), (0.4, 0.6), (0.2, 0.4), (0, 0.3), (0.3, 1), (0.9, 0.95)]


def draw_rows(seed, kind, n=200, d=8):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n, d))
    if kind == "grid":
        X = draw.integers(-2, 3, size=(n, 3)).astype(float)
    if kind == "duplicates":
        X = X[draw.integers(0, n // 6, size=n)]
    if kind == "collinear":
        X = np.c_[X, 2 * X[:, :1], np.full(n, 3.0), np.zeros(n)]
    f = X @ draw.normal(size=X.shape[1]) / np.sqrt(X.shape[1]) - 1.0
    y = np.where(draw.random(n) < 1 / (1 + np.exp(-f)), 1.0, -1.0)
    if kind == "separable":
        y = np.where(f > np.median(f), 1.0, -1.0)
    weight = draw.choice([0.3, 1.0, 2.0, 5.0], size=n)
    return X, y, weight


KINDS = ["plain", "grid", "duplicates", "collinear", "separable"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("zone", "C", "intercept"),
    [
        ((0, 1), 1.0, True),
        ((0.048, 0.158), 0.1, True),
        ((0.4, 0.6), 1e3, True),
        ((0.2, 0.4), 1e-4, True),
        ((0, 0.3), 10.0, False),
        ((0.9, 0.95), 0.5, True),
    ],
)
def test_agrees_with_a_conic_solver(kind, zone, C, intercept):
    X, y, weight = draw_rows(hash_of(kind, zone), kind)
    value, _ = conic.truncated_logistic(X, y, weight, C, *zone, fit_intercept=intercept)
    found = solve_linear(
        ArraySource(X, y, weight), TruncatedLogistic(*zone), C=C, fit_intercept=intercept, tol=1e-8
    )
    assert found.why_stopped == "gap"
    # the conic solver is itself within about 1e-7 of the least value
    assert abs(found.value - value) <= 1e-6 * value
    assert found.value - value <= found.gap + 3e-7 * value


@pytest.mark.parametrize("kind", ["grid", "duplicates"])
@pytest.mark.parametrize("zone", ZONES[1:])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_scan_of_equal_rows_is_certified_as_in_memory(kind, zone, intercept):
    """Many rows stand on one kink; by which side rounding puts them on they once had no gap."""
    X, y, weight = draw_rows(hash_of(kind, zone), kind)
    loss = TruncatedLogistic(*zone)
    sides = np.array([-1.0, 1.0])
    blocks = ScoredBlocks(
        ArraySource(X, (y > 0).astype(int), weight, block_rows=64),
        Scorer(loss, sides, np.ones(2)),
        X.shape[1],
    )
    found = solve_scanned(blocks, fit_intercept=intercept, tol=1e-8)
    best = solve_linear(ArraySource(X, y, weight), loss, C=1.0, fit_intercept=intercept, tol=1e-10)
    assert found.converged
    assert found.n_iter <= 10
    assert found.value - best.value <= found.gap + 1e-12 * best.value


def hash_of(kind, zone):
    return KINDS.index(kind) * 100 + ZONES.index(tuple(zone))


@pytest.mark.parametrize(("n", "d"), [(50, 60), (2000, 60), (500, 1)])
def test_sizes_from_wide_to_long(n, d):
    X, y, weight = draw_rows(5, "plain", n, d)
    value, _ = conic.truncated_logistic(X, y, weight, 1.0, 0.1, 0.5)
    found = solve_linear(ArraySource(X, y, weight), TruncatedLogistic(0.1, 0.5), C=1.0)
    assert found.converged
    assert abs(found.value - value) <= 1e-6 * value


def objective(X, y, weight, C, zone, point):
    loss = np.logaddexp(0, -y * (X @ point[:-1] + point[-1]))
    floor = np.where(y > 0, -np.log(zone[1]), -np.log1p(-zone[0]))
    return 0.5 * point[:-1] @ point[:-1] + C * weight @ np.maximum(loss, floor)


@settings(max_examples=40, deadline=None)
@example(seed=190, kind="collinear", zone=(0.048, 0.158), log_C=0.0, intercept=False)
@given(
    seed=st.integers(0, 10_000),
    kind=st.sampled_from(KINDS),
    zone=st.sampled_from(ZONES),
    log_C=st.floats(-6, 6),
    intercept=st.booleans(),
)
def test_certificate_holds_by_itself(seed, kind, zone, log_C, intercept):
    """Value, dual feasibility and gap recomputed from the table alone, in their plain form."""
    X, y, weight = draw_rows(seed, kind, n=150)
    C = 10.0**log_C
    loss = TruncatedLogistic(*zone)
    found = solve_linear(ArraySource(X, y, weight), loss, C=C, fit_intercept=intercept)
    assert found.converged
    value = objective(X, y, weight, C, zone, found.point)
    np.testing.assert_allclose(found.value, value, rtol=1e-9)
    u = found.details["dual"]
    assert ((-y * u >= 0) & (-y * u <= 1)).all()
    if intercept:
        assert abs(weight @ u) <= 1e-9 * (weight @ np.abs(u)) + 1e-300
    w_dual = -C * (weight * u) @ X
    dual = -C * weight @ loss.conjugate(u, y) - 0.5 * w_dual @ w_dual
    np.testing.assert_allclose(value - dual, found.gap, rtol=1e-4, atol=1e-9 * value)


@pytest.mark.parametrize("zone", ZONES)
def test_first_order_conditions_and_partition(zone):
    X, y, weight = draw_rows(3, "plain", n=1500)
    loss = TruncatedLogistic(*zone)
    found = solve_linear(ArraySource(X, y, weight), loss, C=2.0, tol=1e-12)
    z = X @ found.point[:-1] + found.point[-1]
    parts = loss.partition(found.details["scores"], y, found.details["on_kink"])
    t = loss.kink(y).position
    on = parts == 1
    np.testing.assert_allclose(z[on], t[on], atol=1e-9)
    margin, reach = y * z, y * t
    assert (margin[parts == 0] > reach[parts == 0]).all()
    assert (margin[parts == 2] < reach[parts == 2]).all()
    a = -y * found.details["dual"]
    height = np.abs(loss.kink(y).jump)
    assert ((a[on] > 0) & (a[on] < height[on])).all()
    np.testing.assert_allclose(a[parts == 0], 0.0, atol=1e-12)
    np.testing.assert_allclose(a[parts == 2], 1 / (1 + np.exp(margin[parts == 2])), atol=1e-6)
    if zone != (0, 1):
        assert on.any()


def test_full_zone_is_logistic_regression():
    X, y, weight = draw_rows(8, "plain", n=2000, d=20)
    peer = LogisticRegression(C=0.7, solver="newton-cholesky", tol=1e-10).fit(X, y, weight)
    found = solve_linear(ArraySource(X, y, weight), TruncatedLogistic(), C=0.7, tol=1e-12)
    np.testing.assert_allclose(found.point[:-1], peer.coef_[0], atol=1e-6)
    np.testing.assert_allclose(found.point[-1], peer.intercept_[0], atol=1e-6)


def test_many_rows_start_on_fewer_and_end_the_same():
    X, y, weight = draw_rows(9, "plain", n=30_000, d=8)
    source = ArraySource(X, y, weight)
    loss = TruncatedLogistic(0.1, 0.3)
    warm = solve_linear(source, loss, C=1.0, tol=1e-10)
    cold = solve_linear(source, loss, C=1.0, tol=1e-10, start=np.zeros(9))
    assert warm.n_iter < cold.n_iter
    np.testing.assert_allclose(warm.point, cold.point, atol=1e-7)


def test_blocks_do_not_matter():
    X, y, weight = draw_rows(10, "plain", n=1000)
    loss = TruncatedLogistic(0.1, 0.3)
    one = solve_linear(ArraySource(X, y, weight), loss, C=1.0, tol=1e-10)
    many = solve_linear(ArraySource(X, y, weight, block_rows=97), loss, C=1.0, tol=1e-10)
    np.testing.assert_allclose(one.point, many.point, atol=1e-9)


def test_stopping_early_is_said_and_still_certified():
    X, y, weight = draw_rows(11, "plain", n=500)
    source, loss = ArraySource(X, y, weight), TruncatedLogistic(0.1, 0.3)
    short = solve_linear(source, loss, C=1.0, max_iter=1, tol=1e-12)
    best = solve_linear(source, loss, C=1.0, tol=1e-12)
    assert short.why_stopped == "max_iter"
    assert short.gap >= short.value - best.value > 0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["plain", "grid"])
def test_hinge_and_absolute_losses(seed, kind):
    X, y, weight = draw_rows(seed, kind, n=400)
    C = 10.0 ** (seed - 3)
    found = solve_linear(ArraySource(X, y, weight), HingeLoss(), C=C)
    value = conic.hinge(X, y, weight, C)
    assert found.converged
    assert abs(found.value - value) <= 1e-6 * value
    target = X @ np.arange(X.shape[1]) + np.round(y * X[:, 0] * 3)
    found = solve_linear(ArraySource(X, target, weight), AbsoluteError(), C=C)
    value = conic.least_absolute(X, target, weight, C)
    assert found.converged
    assert abs(found.value - value) <= 1e-6 * value


def test_absolute_loss_with_a_perfect_fit_stops():
    X = np.arange(20.0)[:, None] % 5
    found = solve_linear(ArraySource(X, np.full(20, 3.0)), AbsoluteError(), C=1.0)
    assert found.converged
    assert found.value < 1e-8


# -- the box QP ------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), m=st.integers(1, 60), d=st.integers(1, 8))
def test_kink_qp_meets_its_optimality_conditions(seed, m, d):
    draw = np.random.default_rng(seed)
    rows = draw.integers(-2, 3, size=(m, d)) * 1.0 if seed % 2 else draw.normal(size=(m, d))
    root = draw.normal(size=(d, d))
    H = root @ root.T + 0.1 * np.eye(d)
    G, offset = draw.normal(size=d) * 3, draw.normal(size=m)
    ceiling = draw.uniform(0.1, 2.0, m)
    step = kink_step(H, G, rows, offset, ceiling, np.zeros(m))
    reach = offset + rows @ step.p
    np.testing.assert_allclose(H @ step.p + G + rows.T @ step.v, 0, atol=1e-6)
    assert ((step.v >= 0) & (step.v <= ceiling)).all()
    assert (reach[step.v <= 1e-9] <= 1e-6).all()
    assert (reach[step.v >= ceiling - 1e-9] >= -1e-6).all()
    inside = (step.v > 1e-6) & (step.v < ceiling - 1e-6)
    np.testing.assert_allclose(reach[inside], 0, atol=1e-6)


# -- other solvers of the same problem -------------------------------------------------------------


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("intercept", [True, False])
def test_matrix_free_newton_agrees(zone, intercept):
    X, y, weight = draw_rows(4, "plain", n=600)
    loss, options = TruncatedLogistic(*zone), {"C": 3.0, "fit_intercept": intercept}
    exact = solve_linear(ArraySource(X, y, weight), loss, tol=1e-11, **options)
    found = solve_linear_cg(ArraySource(sp.csr_array(X), y, weight), loss, **options)
    assert found.converged
    assert -1e-12 * exact.value <= found.value - exact.value <= found.gap
    assert found.gap <= 1e-6 * found.value


def test_matrix_free_newton_on_a_hundred_thousand_columns():
    draw = np.random.default_rng(0)
    n, d, per_row = 2_000, 100_000, 20
    X = sp.csr_array(
        (np.ones(n * per_row), draw.integers(0, d, n * per_row), per_row * np.arange(n + 1)),
        shape=(n, d),
    )
    y = np.where(draw.random(n) < 0.3, 1.0, -1.0)
    found = solve_linear_cg(ArraySource(X, y), TruncatedLogistic(0.2, 0.4), C=0.1)
    assert found.converged


def test_csr_rows_give_the_dense_answer():
    X, y, weight = draw_rows(12, "grid", n=500)
    loss = TruncatedLogistic(0.2, 0.6)
    dense = solve_linear(ArraySource(X, y, weight), loss, C=1.0)
    sparse = solve_linear(ArraySource(sp.csr_array(X), y, weight), loss, C=1.0)
    np.testing.assert_allclose(dense.point, sparse.point, atol=1e-12)


def test_paper_newton_is_close_and_says_how_close():
    X, y, weight = draw_rows(13, "plain", n=2000)
    source, loss = ArraySource(X, y, weight), TruncatedLogistic(0.1, 0.4)
    best = solve_linear(source, loss, C=1.0, tol=1e-12)
    paper = solve_paper(source, loss, C=1.0, max_iter=60)
    assert 0 <= paper.value - best.value <= paper.gap
    assert paper.value <= best.value * 1.05
    plain = solve_paper(source, TruncatedLogistic(), C=1.0)
    assert plain.converged


# -- many classes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_multinomial_agrees_with_a_conic_solver(seed):
    draw = np.random.default_rng(seed)
    n, d, K = 120, 4, 2 + seed % 3
    X = draw.normal(size=(n, d)) if seed % 2 else draw.integers(-1, 2, size=(n, d)) * 1.0
    F = 2 * X @ draw.normal(size=(d, K)) + draw.gumbel(size=(n, K))
    y = F.argmax(axis=1)
    y[:K] = np.arange(K)
    weight = draw.choice([0.5, 1.0, 3.0], size=n)
    caps = [(1.0,) * K, (0.6,) * K, tuple(draw.uniform(0.3, 1.0, K))][seed % 3]
    C = 10.0 ** (seed % 4 - 2)
    intercept = seed % 5 > 0
    value = conic.truncated_multinomial(X, y, weight, C, caps, intercept)
    found = solve_multinomial(
        ArraySource(X, y, weight), TruncatedMultinomial(caps), C=C, fit_intercept=intercept
    )
    assert found.converged
    assert abs(found.value - value) <= 1e-6 * value
    assert found.value - value <= found.gap + 3e-7 * value


def test_multinomial_of_two_classes_is_the_binary_model():
    """Two classes: F_1 - F_0 is the log-odds and |W|^2 is half its squared norm."""
    X, y, weight = draw_rows(14, "plain", n=400)
    joint = solve_multinomial(
        ArraySource(X, (y > 0).astype(int), weight), TruncatedMultinomial((0.8, 0.6)), C=1.0
    )
    loss = TruncatedLogistic(1.0 - 0.8, 0.6)
    binary = solve_linear(ArraySource(X, y, weight), loss, C=2.0, tol=1e-10)
    np.testing.assert_allclose(joint.point[1] - joint.point[0], binary.point, atol=1e-5)
    np.testing.assert_allclose(2 * joint.value, binary.value, rtol=1e-7)


@pytest.mark.dataset("mushroom")
def test_rounding_at_the_ends_of_the_box_does_not_hide_the_optimum():
    """Hundreds of rows on kinks: slopes outside by 1e-15 once cost 80 steps at the optimum."""
    rows = load("mushroom")
    X, y = rows.X, np.asarray(rows.y)
    texts = [np.asarray(X[name].astype(object)).astype(str)[::2] for name in X.columns]
    table = np.column_stack([text == level for text in texts for level in np.unique(text)]) * 1.0
    weight = np.ones(len(table))
    source = ArraySource(table, np.where(y[::2] == y[0], 1.0, -1.0), weight)
    solved = solve_linear(source, TruncatedLogistic(0.25, 0.75), C=1.0)
    assert solved.why_stopped == "gap"
    assert solved.n_iter < 25
