"""The additive solver against a conic solver, its certificate, and its limits."""

from __future__ import annotations

from dataclasses import replace

import clarabel
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from laconic.additive.criterion import (
    AdditiveProblem,
    certified_gap,
    largest_group_penalty,
    loss_slopes,
    null_point,
    slopes_by_term,
)
from laconic.additive.solver import solve_additive
from laconic.additive.terms import AdditivePenalty, bending, pair_terms, single_terms, whiten
from laconic.core.gray_zone import TruncatedLogistic
from laconic.data.tables.axes import CategoryAxis, KnotAxis
from laconic.data.tables.columns import Table
from laconic.data.tables.knots import encode


def small_table(rng: np.random.Generator, n: int) -> tuple[Table, list]:
    """Numeric with missing and a special code, its copy, a category, a one-level category."""
    x = rng.choice(np.arange(8.0), n)
    z = np.where(rng.random(n) < 0.2, 96.0, rng.normal(size=n))
    x[::9] = np.nan
    color = rng.integers(0, 3, n).astype(np.int32)
    one = np.zeros(n, dtype=np.int32)
    table = Table(
        ("x", "twin", "z", "color", "one"),
        ("numeric", "numeric", "numeric", "categorical", "categorical"),
        (None, None, None, ("a", "b", "c"), ("only",)),
        columns=[x, x.copy(), z, color, one],
    )
    # knots at 3.3 and 3.6 have no row between or on them: empty knots
    knots = np.array([0.0, 2.0, 3.3, 3.6, 5.0, 7.0])
    axes = [
        KnotAxis(knots, np.empty(0)),
        KnotAxis(knots, np.empty(0)),
        KnotAxis(np.linspace(-2, 2, 5), np.array([96.0])),
        CategoryAxis((("a",), ("b",), ("c",))),
        CategoryAxis((("only",),)),
    ]
    return table, axes


def dense_shares(rows, j: int, size: int) -> np.ndarray:
    index, fraction = rows.column(j)
    out = np.zeros((rows.n_rows, size + 1))
    place = np.arange(rows.n_rows)
    out[place, index] += 1 - fraction
    out[place, index + 1] += fraction
    return out[:, :size]


def conic_minimum(designs, grams, roughs, y, weight, group, bend, ridge, zone=(0.0, 1.0)) -> float:
    """min sum w phi + sum_t [group |v|_M + bend v'R v/2 + ridge v'M v/2] over slot values v."""
    n, sizes = len(y), [d.shape[1] for d in designs]
    T = len(sizes)
    nv = sum(sizes)
    width = 1 + nv + T + 3 * n
    at_s, at_t, at_e = 1 + nv, 1 + nv + T, 1 + nv + T + n
    P = np.zeros((width, width))
    q = np.zeros(width)
    q[at_t : at_t + n] = weight
    q[at_s : at_s + T] = group
    A, b, cones = [], [], []
    starts = 1 + np.concatenate([[0], np.cumsum(sizes)])
    for t in range(T):
        s = slice(starts[t], starts[t + 1])
        mass = grams[t].sum(axis=1)
        M = grams[t] - np.outer(mass, mass)
        P[s, s] = bend * roughs[t] + ridge * M + 1e-11 * np.eye(sizes[t])
        row = np.zeros((1, width))
        row[0, s] = mass
        A.append(row)
        b.append(np.zeros(1))
        cones.append(clarabel.ZeroConeT(1))
        values, vectors = np.linalg.eigh(M)
        root = vectors * np.sqrt(np.maximum(values, 0))
        block = np.zeros((1 + sizes[t], width))
        block[0, at_s + t] = -1.0
        block[1:, s] = -root.T
        A.append(block)
        b.append(np.zeros(1 + sizes[t]))
        cones.append(clarabel.SecondOrderConeT(1 + sizes[t]))
    X = np.concatenate([np.ones((n, 1)), *designs], axis=1)
    floors = np.where(y > 0, -np.log(zone[1]), -np.log1p(-zone[0]))
    for i in range(n):
        sign = 1.0 if y[i] > 0 else -1.0
        for k, score in ((0, True), (1, False)):
            block = np.zeros((3, width))
            if score:
                block[0, : 1 + nv] = sign * X[i]
            block[0, at_t + i] = 1.0
            block[2, at_e + 2 * i + k] = -1.0
            A.append(block)
            b.append(np.array([0.0, 1.0, 0.0]))
            cones.append(clarabel.ExponentialConeT())
        block = np.zeros((2, width))
        block[0, at_e + 2 * i : at_e + 2 * i + 2] = 1.0
        block[1, at_t + i] = -1.0
        A.append(block)
        b.append(np.array([1.0, -floors[i]]))
        cones.append(clarabel.NonnegativeConeT(2))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(P)), q, sparse.csc_matrix(np.concatenate(A)),
        np.concatenate(b), cones, settings,
    )  # fmt: skip
    solution = solver.solve()
    assert "Solved" in str(solution.status)
    return solution.obj_val


def setup(seed: int, n: int = 90):
    rng = np.random.default_rng(seed)
    table, axes = small_table(rng, n)
    rows = encode(table, axes)
    x, z, color = table.column(0), table.column(2), table.column(3)
    f = np.sin(np.nan_to_num(x)) + 0.5 * (z == 96) + 0.7 * (color == 1) - 0.3
    y = (rng.random(n) < 1 / (1 + np.exp(-2 * f))).astype(np.int64)
    weight = rng.choice([0.5, 1.0, 2.0, 3.0], n)
    return rows, axes, y, weight


@pytest.mark.parametrize("zone", [(0.0, 1.0), (0.2, 0.7), (0.0, 0.6)])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.4])
def test_optimum_agrees_with_a_conic_solver(zone, share):
    rows, axes, y, weight = setup(3)
    terms = single_terms(rows, weight)
    bend, ridge = 0.02, 0.5
    diagonal = bend * terms.rough + ridge
    problem = AdditiveProblem(
        terms, y, weight, np.zeros(len(axes)), diagonal, TruncatedLogistic(*zone)
    )
    top = largest_group_penalty(problem, np.ones(len(axes)))
    group = np.full(len(axes), share * top)
    found = solve_additive(replace(problem, group=group), tol=1e-8, max_iter=300)
    designs = [dense_shares(rows, j, a.size) for j, a in enumerate(axes)]
    grams = [d.T @ (weight[:, None] * d) / weight.sum() for d in designs]
    roughs = [bending(a, g.sum(axis=1)) for a, g in zip(axes, grams, strict=True)]
    best = conic_minimum(designs, grams, roughs, y, weight, group, bend, ridge, zone)
    assert found.value == pytest.approx(best, rel=1e-6)
    assert found.gap >= found.value - best - 1e-7 * best


def test_gap_bounds_the_suboptimality_of_a_rough_solution():
    rows, axes, y, weight = setup(5)
    terms = single_terms(rows, weight)
    problem = AdditiveProblem(terms, y, weight, np.full(len(axes), 2.0), 0.02 * terms.rough + 0.5)
    best = solve_additive(problem, tol=1e-12, max_iter=300)
    assert best.gap <= 1e-12 * best.value
    for n_iter in (1, 2, 3):
        rough = solve_additive(problem, tol=1e-12, max_iter=n_iter)
        slopes, _ = loss_slopes(problem, rough.point.scores)
        gap = certified_gap(problem, rough.point, slopes)
        assert gap >= rough.value - best.value
    start = null_point(problem)
    slopes, _ = loss_slopes(problem, start.scores)
    value = float(weight @ np.logaddexp(0, np.where(y > 0, -1, 1) * start.scores[0]))
    assert certified_gap(problem, start, slopes) >= value - best.value > 0


@pytest.mark.parametrize("zone", [(0.0, 1.0), (0.1, 0.6)])
def test_everything_is_zero_from_the_largest_penalty_on(zone):
    rows, axes, y, weight = setup(7)
    terms = single_terms(rows, weight)
    problem = AdditiveProblem(
        terms, y, weight, np.zeros(len(axes)), 0.1 * terms.rough + 0.1, TruncatedLogistic(*zone)
    )
    weights = np.array([1.0, 2.0, 1.0, 0.5, 1.0])
    top = largest_group_penalty(problem, weights)
    empty = solve_additive(replace(problem, group=1.0001 * top * weights), tol=1e-6)
    assert not empty.point.coordinates.any()
    assert empty.gap <= 1e-6 * empty.value
    some = solve_additive(replace(problem, group=0.97 * top * weights), tol=1e-9, max_iter=200)
    assert some.point.coordinates.any()


def test_weight_is_repetition():
    rows, axes, y, _ = setup(9)
    count = np.random.default_rng(0).integers(0, 4, len(y))
    again = np.repeat(np.arange(len(y)), count)
    results = []
    for r, labels, w in (
        (rows, y, count.astype(float)),
        (rows.take(again), y[again], np.ones(len(again))),
    ):
        terms = single_terms(r, w)
        problem = AdditiveProblem(
            terms, labels, w, np.full(len(axes), 1.0), 0.05 * terms.rough + 0.1
        )
        found = solve_additive(problem, tol=1e-11, max_iter=200)
        results.append([terms.values(t, found.point.coordinates) for t in range(len(axes))])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)


def test_whitened_basis_has_unit_gram_and_diagonal_roughness():
    rows, axes, _, weight = setup(1)
    shares = dense_shares(rows, 0, axes[0].size)
    gram = shares.T @ (weight[:, None] * shares) / weight.sum()
    rough = bending(axes[0], gram.sum(axis=1))
    shape = whiten(gram, rough, np.ones((axes[0].size, 1)))
    scores = shares @ shape.basis
    np.testing.assert_allclose(weight @ scores, 0.0, atol=1e-9)
    np.testing.assert_allclose(
        scores.T @ (weight[:, None] * scores) / weight.sum(), np.eye(shape.rank), atol=1e-8
    )
    np.testing.assert_allclose(
        shape.basis.T @ rough @ shape.basis, np.diag(shape.rough), atol=1e-6 * rough.max()
    )
    # a straight line in the knots has no roughness (missing at the mean of the rest)
    line = np.append(np.arange(6.0), 0.0)
    line[6] = gram.sum(axis=1)[:6] @ line[:6] / gram.sum(axis=1)[:6].sum()
    assert line @ rough @ line == pytest.approx(0.0, abs=1e-8)


def test_pairs_are_orthogonal_to_functions_of_one_column():
    rng = np.random.default_rng(0)
    n = 400
    X = rng.normal(size=(n, 2))
    X[:, 1] += 0.5 * X[:, 0]
    table = Table(("a", "b"), ("numeric", "numeric"), (None, None), matrix=X)
    axes = [KnotAxis(np.linspace(-2, 2, 5), np.empty(0)) for _ in range(2)]
    rows = encode(table, axes)
    weight = rng.random(n) + 0.5
    base = single_terms(rows, weight)
    terms = base.extended(pair_terms(base, [(0, 1)], weight))
    rng_point = rng.normal(size=terms.rank[2])
    values = (terms.terms[2].shape.basis @ rng_point).reshape(axes[0].size, axes[1].size)
    a, b = (dense_shares(rows, j, axes[j].size) for j in range(2))
    pair = np.einsum("ia,ib,ab->i", a, b, values)
    for margin in (a, b):
        np.testing.assert_allclose((weight * pair) @ margin / weight.sum(), 0.0, atol=1e-7)
    # the compiled passes read the grid as the dense product does
    out = slopes_by_term(terms, (weight * pair)[None, :])[0, terms.start[2] :]
    np.testing.assert_allclose(out / weight.sum(), rng_point, atol=1e-5)


def test_penalty_conjugate_against_numeric_maximum():
    rng = np.random.default_rng(2)
    owner = np.array([0, 0, 0, 1, 1])
    d = np.array([0.5, 2.0, 0.1, 1.0, 3.0])
    penalty = AdditivePenalty(owner, np.array([1.0, 5.0]), d)
    theta = 3 * rng.normal(size=(1, 5))

    def minus(g, part, lam):
        return lam * np.sqrt(g @ g + 1e-18) + 0.5 * g @ (d[part] * g) - theta[0, part] @ g

    for t, lam in enumerate(penalty.group):
        part = owner == t
        best = minimize(minus, theta[0, part], args=(part, lam), tol=1e-14)
        assert penalty.conjugate(theta)[t] == pytest.approx(-best.fun, abs=1e-6)


def test_multinomial_optimum_against_lbfgs():
    rng = np.random.default_rng(4)
    rows, axes, _, weight = setup(4, 150)
    x = np.nan_to_num(rows.column(0)[0].astype(float))
    scores = np.stack([np.sin(x), np.cos(x), 0 * x]) * 2
    p = np.exp(scores) / np.exp(scores).sum(axis=0)
    y = np.array([rng.choice(3, p=p[:, i]) for i in range(len(x))])
    terms = single_terms(rows, weight)
    diagonal = 0.02 * terms.rough + 0.5
    problem = AdditiveProblem(terms, y, weight, np.full(len(axes), 3.0), diagonal, n_classes=3)
    found = solve_additive(problem, tol=1e-9, max_iter=500)
    assert found.why_stopped == "gap"
    Z = np.concatenate(
        [dense_shares(rows, j, a.size) @ terms.terms[j].shape.basis for j, a in enumerate(axes)],
        axis=1,
    )
    hot = np.eye(3)[y]

    def objective(v):
        F = v[:3] + Z @ v[3:].reshape(3, -1).T
        top = F.max(axis=1, keepdims=True)
        e = np.exp(F - top)
        total = weight @ (np.log(e.sum(axis=1)) + top[:, 0] - (F * hot).sum(axis=1))
        slope = weight[:, None] * (e / e.sum(axis=1, keepdims=True) - hot)
        g = v[3:].reshape(3, -1)
        grad = slope.T @ Z + diagonal * g
        total += 0.5 * (g**2 @ diagonal).sum()
        for t in range(len(axes)):
            part = terms.owner == t
            size = np.sqrt((g[:, part] ** 2).sum() + 1e-16)
            total += 3.0 * size
            grad[:, part] += 3.0 * g[:, part] / size
        return total, np.concatenate([slope.sum(axis=0), grad.ravel()])

    best = minimize(
        objective, np.zeros(3 + 3 * terms.n_coordinates), jac=True, method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 50},
    )  # fmt: skip
    assert found.value == pytest.approx(best.fun, rel=1e-6)
    assert found.value - found.gap <= best.fun * (1 + 1e-9)


def test_monotone_shape_agrees_with_a_conic_free_bound():
    """The constrained optimum: feasible, certified, and the free one when it is monotone."""
    rows, axes, y, weight = setup(11, 200)
    terms = single_terms(rows, weight)
    diagonal = 0.01 * terms.rough + 0.2
    signs = np.array([1, 0, -1, 0, 0])
    group = np.full(len(axes), 0.5)
    problem = AdditiveProblem(terms, y, weight, group, diagonal, signs=signs)
    found = solve_additive(problem, tol=1e-8, max_iter=300)
    assert found.why_stopped == "gap"
    free = solve_additive(replace(problem, signs=None), tol=1e-10, max_iter=300)
    assert found.value >= free.value - 1e-7
    for t, sign in ((0, 1), (2, -1)):
        knots = terms.values(t, found.point.coordinates)[: len(axes[t].knots), 0]
        assert (sign * np.diff(knots) >= -1e-7).all()
    # projected-gradient check from outside: no feasible step lowers the value
    assert found.gap <= 1e-8 * found.value
