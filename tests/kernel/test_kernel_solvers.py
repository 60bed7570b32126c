"""Kernel solvers: one optimum for all of them, a gap that holds, memory that is bounded."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs
from sklearn.svm import SVC

import conic
from laconic import ConvexRiskClassifier
from laconic.core.losses import (
    AbsoluteError,
    ExponentialLoss,
    HingeLoss,
    HuberError,
    LogisticLoss,
    SquaredError,
    SquaredHingeLoss,
    SquaredLoss,
    TruncatedLogistic,
)
from laconic.data.source import ArraySource
from laconic.kernel.fit import solve_kernel
from laconic.kernel.kernels import Kernel, KernelRows, parzen_bandwidth, scores_of
from laconic.kernel.low_rank import find_span, landmark_span, solve_span
from laconic.kernel.rounded import LossRows
from laconic.linear.solvers.newton import solve_linear

ZONES = [(0.2, 0.4), (0.45, 0.55), (0.0, 0.3), (0.6, 1.0), (0.0, 1.0)]
SHAPES = ["plain", "duplicates", "constant column", "weights", "precomputed", "poly", "linear"]


def problem(shape: str, n: int = 120, seed: int = 0):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n, 3))
    y = np.where(X[:, 0] + X[:, 1] ** 2 + draw.normal(size=n) > 1.0, 1.0, -1.0)
    weight = np.ones(n)
    kernel = Kernel("rbf", gamma=0.7)
    if shape == "duplicates":
        X = np.round(X[np.arange(n) % 30])
    elif shape == "constant column":
        X[:, 2] = 3.0
    elif shape == "weights":
        weight = draw.integers(1, 6, n) / 2.0
    elif shape == "poly":
        kernel = Kernel("poly", gamma=0.5, degree=2, coef0=1.0)
    elif shape == "linear":
        kernel = Kernel("linear")
    rows = KernelRows(kernel, X)
    if shape == "precomputed":
        K = kernel.between(X, X)
        rows = KernelRows(Kernel("precomputed"), 0.5 * (K + K.T))
    return rows, y, weight


def matrix(rows: KernelRows) -> np.ndarray:
    return rows.block(slice(None), slice(None))


def features(K: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    keep = values > 1e-12 * values[-1]
    return vectors[:, keep] * np.sqrt(values[keep])


def objective(K, loss, y, weight, C, fit) -> float:
    """Recomputed from the expansion handed out."""
    coef = np.zeros(len(y))
    coef[fit.basis] = fit.coef
    z = K @ coef + fit.b
    return float(coef @ K @ coef / 2 + C * weight @ loss.value(z, y))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("zone", ZONES)
def test_every_solver_finds_the_conic_optimum(shape, zone):
    rows, y, weight = problem(shape)
    K, loss, C = matrix(rows), TruncatedLogistic(*zone), 1.5
    best, _ = conic.truncated_logistic(features(K), y, weight, C, *zone)
    for solver in ("active-set", "smo", "low-rank", "block", "auto"):
        fit = solve_kernel(rows, loss, y, weight, C=C, tol=1e-7, max_iter=300, solver=solver)
        found = fit.solution
        assert found.value == pytest.approx(best, rel=1e-6), solver
        assert objective(K, loss, y, weight, C, fit) == pytest.approx(best, rel=1e-6), solver
        assert 0.0 <= found.gap <= 1e-7 * found.value, solver
        assert found.converged, (solver, found.why_stopped, found.gap / found.value)


@pytest.mark.parametrize("solver", ["smo", "low-rank", "block", "active-set"])
@pytest.mark.parametrize("seed", range(6))
def test_the_gap_bounds_the_suboptimality_wherever_it_stops(solver, seed):
    draw = np.random.default_rng(seed)
    n = int(draw.integers(20, 200))
    rows, y, weight = problem(SHAPES[seed % 4], n, seed)
    zone = ZONES[seed % len(ZONES)]
    C = float(10 ** draw.uniform(-1, 1))
    K, loss = matrix(rows), TruncatedLogistic(*zone)
    best, _ = conic.truncated_logistic(features(K), y, weight, C, *zone)
    for tol, max_iter in ((1e-1, 1000), (1e-3, 1000), (1e-9, 2)):
        fit = solve_kernel(rows, loss, y, weight, C=C, tol=tol, max_iter=max_iter, solver=solver)
        reached = objective(K, loss, y, weight, C, fit)
        assert fit.solution.value == pytest.approx(reached, rel=1e-7)
        assert fit.solution.gap >= reached - best - 1e-7 * best
        assert fit.solution.gap < 10 * best
        # without it the bound holds for one intercept only
        assert abs(fit.slopes.sum()) <= 1e-9 * np.abs(fit.slopes).sum()


@pytest.mark.parametrize("shape", ["plain", "weights", "duplicates"])
def test_the_full_zone_is_kernel_logistic_regression(shape):
    """Against a direct minimisation of the primal by scipy."""
    rows, y, weight = problem(shape, 80)
    K = matrix(rows)
    F = features(K)

    def primal(point):
        z = F @ point[:-1] + point[-1]
        slope = -y * weight / (1.0 + np.exp(y * z))
        value = point[:-1] @ point[:-1] / 2 + weight @ np.logaddexp(0.0, -y * z)
        return value, np.append(point[:-1] + slope @ F, slope.sum())

    direct = minimize(primal, np.zeros(F.shape[1] + 1), jac=True, method="BFGS", tol=1e-9)
    for solver in ("smo", "block", "low-rank", "active-set"):
        fit = solve_kernel(rows, TruncatedLogistic(), y, weight, C=1.0, tol=1e-9, solver=solver)
        np.testing.assert_allclose(
            fit.scores, F @ direct.x[:-1] + direct.x[-1], atol=2e-4, err_msg=solver
        )
        assert not fit.on_kink.any()
        assert (fit.slopes != 0).all()


LOSSES = [
    LogisticLoss(), HingeLoss(), SquaredHingeLoss(), SquaredLoss(), ExponentialLoss(),
    SquaredError(), AbsoluteError(), HuberError(0.5),
]  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_pairs_and_newton_agree_on_every_loss(loss):
    rows, y, weight = problem("weights", 90)
    if isinstance(loss, SquaredError | AbsoluteError | HuberError):
        y = y + np.random.default_rng(1).normal(size=len(y))
    K = matrix(rows)
    values = {}
    for solver in ("smo", "block", "low-rank"):
        fit = solve_kernel(rows, loss, y, weight, C=0.8, tol=1e-8, solver=solver)
        assert fit.solution.converged, (solver, fit.solution.gap)
        values[solver] = objective(K, loss, y, weight, 0.8, fit)
    assert values["smo"] == pytest.approx(values["block"], rel=1e-6)
    assert values["smo"] == pytest.approx(values["low-rank"], rel=1e-6)


@pytest.mark.parametrize("loss", [HingeLoss(), TruncatedLogistic(0.3, 0.6), SquaredLoss()])
def test_without_an_intercept(loss):
    rows, y, weight = problem("plain", 70)
    K = matrix(rows)
    one = solve_kernel(rows, loss, y, weight, C=1.0, fit_intercept=False, tol=1e-8, solver="block")
    two = solve_kernel(
        rows, loss, y, weight, C=1.0, fit_intercept=False, tol=1e-8, solver="low-rank"
    )
    assert one.b == two.b == 0.0
    assert objective(K, loss, y, weight, 1.0, one) == pytest.approx(
        objective(K, loss, y, weight, 1.0, two), rel=1e-6
    )
    with pytest.raises(ValueError, match="intercept"):
        solve_kernel(rows, loss, y, weight, C=1.0, fit_intercept=False, solver="smo")


def test_larger_problems_agree_and_shrinking_loses_nothing():
    draw = np.random.default_rng(3)
    n = 3_200
    y = np.where(draw.random(n) < 0.3, 1.0, -1.0)
    X = draw.normal(size=(n, 2)) + y[:, None]
    rows, loss, ones = KernelRows(Kernel("rbf", 0.5), X), TruncatedLogistic(0.2, 0.4), np.ones(n)
    found = {
        solver: solve_kernel(
            rows, loss, y, ones, C=1.0, tol=1e-7, solver=solver, cache_mb=2.0 + 98.0 * (k > 0)
        )
        for k, solver in enumerate(("smo", "low-rank"))
    }
    values = [fit.solution.value for fit in found.values()]
    assert values[0] == pytest.approx(values[1], rel=1e-6)
    assert all(fit.solution.converged for fit in found.values())
    assert len(found["low-rank"].basis) < 400


def blobs():
    """Overlapping clouds on which pairs once stopped after shrinking to seven rows."""
    X, y = make_blobs(500, n_features=2, centers=2, cluster_std=4, random_state=20)
    return X, np.where(y > 0, 1.0, -1.0)


def svm_value(X, y) -> float:
    """The objective of scikit-learn's support vector machine, recomputed."""
    peer = SVC(kernel="linear", tol=1e-8).fit(X, y)
    w, z = peer.coef_[0], peer.decision_function(X)
    return float(w @ w / 2 + np.maximum(1.0 - y * z, 0.0).sum())


@pytest.mark.parametrize("solver", ["auto", "smo"])
@pytest.mark.parametrize("given", [False, True])
def test_pairs_on_a_linear_kernel_reach_the_optimum_of_svc(solver, given):
    X, y = blobs()
    rows = KernelRows(Kernel("linear"), X)
    if given:
        rows = KernelRows(Kernel("precomputed"), X @ X.T)
    fit = solve_kernel(
        rows, HingeLoss(), y, np.ones(500), C=1.0, tol=1e-6, max_iter=1000, solver=solver
    )
    assert fit.solution.converged
    assert fit.solution.value == pytest.approx(svm_value(X, y), rel=1e-5)


@pytest.mark.parametrize("loss", [HingeLoss(), AbsoluteError()])
def test_low_rank_kernels_reach_the_optimum_of_the_linear_model(loss):
    """Random tables of few columns; the linear Newton is the independent answer."""
    for seed in range(12):
        draw = np.random.default_rng(seed)
        n, d = int(draw.integers(20, 300)), int(draw.integers(1, 6))
        X = draw.normal(size=(n, d)) * 10 ** draw.uniform(-1, 1)
        f = X @ draw.normal(size=d)
        y = f + draw.choice([0.1, 1.0, 2.0]) * f.std() * draw.normal(size=n)
        y = y if isinstance(loss, AbsoluteError) else np.where(y > 0, 1.0, -1.0)
        C = 10 ** draw.uniform(-2, 2)
        fit = solve_kernel(
            KernelRows(Kernel("linear"), X), loss, y, np.ones(n), C=C, tol=1e-8, max_iter=100
        )
        best = solve_linear(ArraySource(X, y, np.ones(n)), loss, C=C, tol=1e-9)
        assert fit.solution.converged, seed
        assert fit.solution.value == pytest.approx(best.value, rel=1e-6), seed


def test_pairs_that_creep_are_handed_to_newton():
    """A weight of 1e4 on a kernel of middling rank: pairs drift for ever in its null space."""
    draw = np.random.default_rng(1)
    X = draw.normal(size=(130, 40))
    y = draw.choice([-1.0, 1.0], 130)
    fit = solve_kernel(KernelRows(Kernel("linear"), X), HingeLoss(), y, np.ones(130), C=1e4)
    assert fit.solution.converged
    assert fit.solver != "smo"
    best = solve_linear(ArraySource(X, y, np.ones(130)), HingeLoss(), C=1e4, tol=1e-8)
    assert fit.solution.value == pytest.approx(best.value, rel=1e-5)


def test_the_basis_reproduces_the_kernel():
    draw = np.random.default_rng(0)
    rows = KernelRows(Kernel("rbf", 0.5), draw.normal(size=(1_500, 2)))
    span = find_span(rows, 400, 1e-6)
    K = matrix(rows)
    rest = K - span.features @ span.features.T
    assert np.diag(rest).max() <= 2e-6
    assert np.linalg.eigvalsh(rest).min() > -1e-8
    np.testing.assert_allclose(np.diag(rest), span.left, atol=1e-8)
    w = draw.normal(size=span.rank)
    c = span.coefficients(w)
    np.testing.assert_allclose(K[:, span.basis] @ c, span.features @ w, atol=1e-6)


def test_rounded_losses_are_those_of_the_generic_formula():
    """The compiled truncated loss against the formula for any kink, up to a constant."""

    draw = np.random.default_rng(0)
    y = np.where(draw.random(200) < 0.5, 1.0, -1.0)
    s, share = draw.uniform(0.5, 2.0, 200), draw.random(200)
    fast = LossRows(TruncatedLogistic(0.3, 0.6), y, s)
    slow = LossRows(_Hidden(TruncatedLogistic(0.3, 0.6)), y, s)
    offset = None
    for _ in range(4):
        z = 2.0 * draw.normal(size=200)
        a, b = fast.rounded(z, 0.4, share), slow.rounded(z, 0.4, share)
        np.testing.assert_allclose(a.slope, b.slope, atol=1e-13)
        np.testing.assert_allclose(a.curvature, b.curvature, atol=1e-13)
        offset = a.value - b.value if offset is None else offset
        assert a.value - b.value == pytest.approx(offset, abs=1e-10)


@pytest.mark.parametrize("zone", [(0.3, 0.6), (0.0, 0.6), (0.3, 1.0), (0.0, 1.0)])
def test_compiled_losses_prices_and_tilts_are_those_of_the_generic_formula(zone):
    draw = np.random.default_rng(1)
    y = np.where(draw.random(300) < 0.5, 1.0, -1.0)
    s, z = draw.uniform(0.5, 2.0, 300), 3.0 * draw.normal(size=300)
    z[:2] = -800.0, 800.0
    fast = LossRows(TruncatedLogistic(*zone), y, s)
    slow = LossRows(_Hidden(TruncatedLogistic(*zone)), y, s)
    assert fast.value(z) == pytest.approx(slow.value(z), rel=1e-14)
    for b in (-0.7, 0.0, 1.3):
        assert fast.tilt(z, b) == pytest.approx(slow.tilt(z, b), abs=1e-11)
    share = draw.random(300)
    share[:30], share[30:60] = 0.0, 1.0
    for slope in (-y * s * share, s * fast.loss.slope(z, y)):
        assert fast.price(z, slope) == pytest.approx(slow.price(z, slope), rel=1e-12, abs=1e-11)
    assert fast.price(z, s * fast.loss.slope(z, y)) <= 1e-11
    assert fast.price(z, y * s * 0.5) == np.inf


@pytest.mark.parametrize("n", [1, 2, 511, 512, 1_300])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_pair_of_a_step_is_the_one_that_the_definition_names(n, kind):
    from laconic.kernel._numba_smo import DOWN, ENDS, GAIN, STIFF, UP, advance, partner

    draw = np.random.default_rng(n)
    table = np.zeros((5, max(n, 2)), kind)
    words = table.view(np.int32 if kind is np.float32 else np.int64)
    mask = words.dtype.type(np.iinfo(words.dtype).max)
    e = draw.normal(size=n).round(2)  # ties
    up, down = e.astype(kind), e.astype(kind)
    up[draw.random(n) < 0.3], down[draw.random(n) < 0.3] = np.inf, -np.inf
    stiff = draw.uniform(0.5, 2.0, n).astype(kind)
    row, other = draw.random((2, n)).astype(np.float32)
    table[UP, :n], table[DOWN, :n], table[STIFF, :n] = up, down, stiff
    for d in (0.0, 0.25, 3.0):
        change = kind(d) * (row - other)
        up, down = up + change, down + change
        i = advance(table, words, mask, d, row, other)
        np.testing.assert_array_equal(table[UP, :n], up)
        assert i == np.argmin(up)
        np.testing.assert_array_equal(table[ENDS, :2], [up.min(), down.max()])
        base = float(np.min(up, where=np.isfinite(up), initial=0.0))
        j = partner(table, words, base, 1.5, row)
        expected = np.maximum(down - base, 0.0) ** 2 / (1.5 + stiff - 2.0 * row)
        assert expected[j] == pytest.approx(expected.max(), rel=1e-5)
        assert table[GAIN, j] == table[GAIN, :n].max()


@pytest.mark.parametrize("columns", [2, 3, 9, 40])
def test_scores_of_the_compiled_loop_are_those_of_the_matrix(columns):
    draw = np.random.default_rng(columns)
    X = 0.5 * draw.normal(size=(1_300, columns)) + 5.0
    rows = KernelRows(Kernel("rbf", gamma=0.4), X)
    beta = draw.normal(size=1_300) * (draw.random(1_300) < 0.9)  # more supports than one chunk
    expected = np.exp(-0.4 * cdist(X, X, "sqeuclidean")) @ beta
    np.testing.assert_allclose(scores_of(rows, beta), expected, atol=1e-11)
    assert not scores_of(rows, np.zeros(1_300)).any()


@pytest.mark.parametrize(("C", "tol"), [(1.0, 1e-5), (1.0, 1e-8), (1e4, 1e-5)])
def test_pairs_that_begin_in_single_precision_reach_the_gap_that_is_asked(C, tol):
    draw = np.random.default_rng(4)
    X = draw.normal(size=(1_200, 2))
    y = np.where(X[:, 0] + X[:, 1] ** 2 + draw.normal(size=1_200) > 1.0, 1.0, -1.0)
    rows, loss = KernelRows(Kernel("rbf", gamma=0.3), X), TruncatedLogistic(0.2, 0.6)
    weight = np.ones(1_200)
    pairs = solve_kernel(rows, loss, y, weight, C=C, tol=tol, solver="smo", max_iter=3_000)
    newton = solve_kernel(rows, loss, y, weight, C=C, tol=1e-8, solver="block")
    assert pairs.solution.converged
    assert newton.solution.converged
    excess = pairs.solution.value - newton.solution.value
    assert excess <= pairs.solution.gap <= tol * pairs.solution.value
    assert excess >= -newton.solution.gap


@pytest.mark.parametrize(("room", "close"), [(1e9, 1e-14), (1e3, 2e-7)])
def test_landmark_features_are_kernel_values(room, close):
    draw = np.random.default_rng(3)
    X, kernel = draw.normal(size=(700, 4)) + 20.0, Kernel("rbf", gamma=0.3)
    span, used = landmark_span(kernel, X, X[:60], room, leave_over=False)
    assert span.raw
    assert span.features.dtype == (np.float64 if room > 1e6 else np.float32)
    expected = np.exp(-0.3 * cdist(X, X[:60][used], "sqeuclidean"))
    np.testing.assert_allclose(span.features, expected, atol=close)


class _Hidden:
    """A loss of one's own: only the methods of the protocol."""

    def __init__(self, loss):
        for name in ("value", "slope", "curvature", "conjugate", "kink"):
            setattr(self, name, getattr(loss, name))


def test_a_loss_of_ones_own_is_fitted_by_newton():
    rows, y, weight = problem("plain", 80)
    known = solve_kernel(rows, HingeLoss(), y, weight, C=1.0, tol=1e-9)
    own = solve_kernel(rows, _Hidden(HingeLoss()), y, weight, C=1.0, tol=1e-9)
    assert own.solver == "block"
    assert own.solution.value == pytest.approx(known.solution.value, rel=1e-8)
    with pytest.raises(ValueError, match="does not know"):
        solve_kernel(rows, _Hidden(HingeLoss()), y, weight, C=1.0, solver="smo")


@pytest.mark.parametrize("solver", ["smo", "block"])
def test_memory_stays_near_the_cache(solver):
    draw = np.random.default_rng(0)
    n = 8_000
    X = draw.normal(size=(n, 5))
    y = np.where(X[:, 0] > 1.2, 1.0, -1.0)
    rows = KernelRows(Kernel("rbf", 0.05), X)
    tracemalloc.start()
    solve_kernel(
        rows, TruncatedLogistic(0.2, 0.8), y, np.ones(n), C=0.05, tol=1e-3, solver=solver,
        cache_mb=20.0,
    )  # fmt: skip
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6  # the matrix alone would take 512 MB


def test_blocks_in_single_precision_are_close():
    rows, _, _ = problem("plain")
    np.testing.assert_allclose(rows.single_block(slice(None), slice(None)), matrix(rows), atol=5e-6)
    part = rows.subset(np.array([3, 5, 8]))
    np.testing.assert_allclose(matrix(part), matrix(rows)[np.ix_([3, 5, 8], [3, 5, 8])], atol=1e-14)


def test_parzen_bandwidth_maximises_the_leave_one_out_likelihood():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(60, 2))
    widths = np.array([0.2, 0.4, 0.8])

    def likelihood(h):
        total = 0.0
        for i in range(len(X)):
            square = ((np.delete(X, i, 0) - X[i]) ** 2).sum(axis=1)
            total += np.log(np.mean(np.exp(-square / (2 * h * h)) / (2 * np.pi * h * h)))
        return total

    assert parzen_bandwidth(X, widths) == widths[np.argmax([likelihood(h) for h in widths])]
    # the rule scales with the rows
    assert parzen_bandwidth(10 * X) == pytest.approx(10 * parzen_bandwidth(X))
    with pytest.raises(ValueError, match="positive"):
        parzen_bandwidth(X, [0.0])
    with pytest.raises(ValueError, match="two rows"):
        parzen_bandwidth(X[:1])


def test_the_compiled_exponential_is_the_librarys():
    from laconic.kernel._numba import exponential, exponential_single

    x = -np.random.default_rng(0).exponential(20.0, 5_000)
    x[:5] = 0.0, -1e-17, -690.0, -2_000.0, 1e-9
    ours = x.copy()
    exponential(ours)
    np.testing.assert_allclose(ours, np.exp(np.clip(x, -700.0, 0.0)), rtol=4e-16)
    short = x[x > -80.0].astype(np.float32)
    expected = np.exp(np.minimum(short.astype(np.float64), 0.0))
    exponential_single(short)
    np.testing.assert_allclose(short, expected, rtol=3e-7)


def test_kernel_values_that_are_whitened_late_give_the_same_fit():
    draw = np.random.default_rng(2)
    X = draw.normal(size=(2_500, 3))
    y = np.where(X[:, 0] + X[:, 1] ** 2 + draw.normal(size=2_500) > 1.0, 1.0, -1.0)
    centres, kernel = X[:40], Kernel("rbf", gamma=0.7)
    rows = LossRows(TruncatedLogistic(0.2, 0.6), y, np.ones(2_500))
    found = {}
    for room in (1e9, 1e3):  # double precision, then single
        for leave_over in (True, False):
            span, used = landmark_span(kernel, X, centres, room, leave_over=leave_over)
            assert span.raw is not leave_over
            fit = solve_span(None, rows, span, fit_intercept=True, tol=1e-6, max_iter=200)
            assert fit.converged
            coef, points = span.coefficients(fit.point[:-1]), centres[used]
            z = kernel.between(X, points) @ coef + fit.point[-1]
            exact = coef @ kernel.between(points, points) @ coef / 2 + rows.value(z)
            assert fit.value == pytest.approx(exact, rel=1e-5 if room < 1e6 else 1e-9)
            found[room, leave_over] = exact
    least = min(found.values())
    assert max(found.values()) <= least * (1 + 2e-6)


def test_a_row_that_came_too_near_the_end_of_its_range_comes_back():
    """Kernel logistic regression on three columns: pairs used to leave such rows behind."""
    rows, y, weight = problem("linear")
    fit = solve_kernel(
        rows, TruncatedLogistic(0.0, 1.0), y, weight, C=1.5, tol=1e-8, max_iter=50, solver="smo"
    )
    assert fit.solution.converged


def test_one_far_cell_costs_no_other_row_its_digits():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(30, 3))
    X[:3, 0] = 1e38, 1e38, -3e20
    kernel = Kernel("rbf", gamma=0.7)
    right = np.exp(-0.7 * cdist(X, X, "sqeuclidean"))
    rows = KernelRows(kernel, X)
    np.testing.assert_allclose(kernel.between(X[:20], X), right[:20], atol=1e-12)
    np.testing.assert_allclose(rows.block(slice(None), slice(None)), right, atol=1e-12)
    np.testing.assert_allclose(scores_of(rows, np.ones(30)), right.sum(axis=0), atol=1e-10)
    y, weight = np.where(X[:, 1] > 0, 1, 0), np.where(draw.random(30) < 0.5, 1e12, 1.0)
    weight[:3] = 1e-3
    model = ConvexRiskClassifier("hinge", kernel="rbf").fit(X, y, sample_weight=weight)
    assert np.isfinite(model.decision_function(X)).all()
