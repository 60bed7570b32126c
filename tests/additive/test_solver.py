"""The additive solver against a conic solver; its model, its preconditioner, its limits."""

from __future__ import annotations

from dataclasses import replace

import clarabel
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from additive_terms import dense_shares, setup, singles_of, terms_of, yes_no_terms
from laconic.additive import tuning
from laconic.additive.criterion import (
    AdditiveProblem,
    CurvatureBlocks,
    certified_gap,
    largest_group_penalty,
    loss_slopes,
    slopes_by_term,
)
from laconic.additive.pairs import dense_coordinates
from laconic.additive.row_newton import few_carry_most
from laconic.additive.solver import (
    Descent,
    Preconditioner,
    QuadraticModel,
    State,
    compact,
    solve_additive,
)
from laconic.additive.structure import AdditivePlan, Smoothness, Task, roughness_units
from laconic.additive.terms import TermSet, bending, single_terms
from laconic.core.losses import TruncatedLogistic


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


def test_compact_rows_give_the_sums_of_the_kept_rows():
    from laconic.additive._numba_rows import coordinate_sums

    terms, _, _ = terms_of()
    values = np.random.default_rng(1).normal(size=(1, terms.rows.n_rows))
    kept = np.flatnonzero(np.random.default_rng(2).random(terms.rows.n_rows) < 0.3)
    alone = np.where(np.isin(np.arange(terms.rows.n_rows), kept), values, 0.0)
    for work in (np.arange(7), np.array([0, 5]), np.array([3]), np.array([4, 6])):
        few = compact(*terms.packed, work, kept)
        out = np.zeros((1, terms.n_coordinates))
        coordinate_sums(*few, work, np.ascontiguousarray(values[:, kept]), out)
        np.testing.assert_allclose(out, slopes_by_term(terms, alone, work), atol=1e-9)
    assert few[0].slots.shape[0] == 0  # pairs alone need no fine slots


@pytest.mark.parametrize("group", [0.0, 1.0])
def test_rows_that_hardly_curve_change_the_steps_and_not_the_end(group, monkeypatch):
    terms, y, weight = terms_of()
    diagonal = 0.02 * np.maximum(terms.rough, 1.0) + 0.1
    problem = AdditiveProblem(terms, y, weight, np.full(7, group), diagonal)
    kept = []
    at = QuadraticModel.at.__func__

    def watched(cls, *rest):
        model = at(cls, *rest)
        kept.append(model.curves.shape[1])
        return model

    monkeypatch.setattr(QuadraticModel, "at", classmethod(watched))
    few = solve_additive(problem, tol=1e-8, max_iter=200)
    assert min(kept) < 0.66 * len(y)
    monkeypatch.setattr(tuning, "COMPACTED_ROWS", 10**9)
    every = solve_additive(problem, tol=1e-8, max_iter=200)
    assert few.why_stopped == every.why_stopped == "gap"
    assert few.value == pytest.approx(every.value, rel=2e-8)
    np.testing.assert_allclose(few.point.coordinates, every.point.coordinates, atol=2e-2)


def test_coordinates_penalised_far_more_than_they_curve_are_on_their_own():
    from laconic.additive._numba_terms import decouple

    terms, _, _ = terms_of(300)
    packed, work = terms.packed[1], np.array([0, 4], dtype=np.int64)
    rng = np.random.default_rng(0)
    D = np.resize([0.01, 1e4, 1.0], terms.n_coordinates)
    given = [np.atleast_2d(np.cov(rng.normal(size=(r, 50)))) for r in terms.rank[work]]
    H = np.concatenate([block.ravel() for block in given])
    blocks = CurvatureBlocks(work, H, np.cumsum([0, *(b.size for b in given)]))
    decouple(packed, blocks, D, 30.0)
    at = 0
    for t, block in zip(work, given, strict=True):
        found = H[at : at + block.size].reshape(block.shape)
        at += block.size
        alone = D[terms.owner == t] > 30.0 * np.diag(block)
        assert alone.any()
        assert not alone.all()
        together = ~(alone[:, None] | alone) | np.eye(len(block), dtype=bool)
        np.testing.assert_array_equal(found, np.where(together, block, 0.0))


def model_of(terms: TermSet, curves: np.ndarray) -> QuadraticModel:
    rows, packed = terms.packed
    zeros = np.zeros_like(curves)
    theta = np.random.default_rng(5).normal(size=(len(curves), terms.n_coordinates))
    slope = np.full(len(curves), 2.0)
    return QuadraticModel(rows, packed, theta, slope, curves, zeros, zeros.copy())


def curvature(terms: TermSet, curve: np.ndarray) -> np.ndarray:
    """Z h Z' of all coordinates and the intercept, from the dense coordinates."""
    lines = np.vstack([dense_coordinates(terms), np.ones(terms.rows.n_rows)])
    return (lines * curve) @ lines.T


@pytest.mark.parametrize("n_scores", [1, 2])
def test_preconditioner_is_the_inverse_where_all_coordinates_are_joint(n_scores):
    from laconic.additive._numba_terms import precondition

    terms = yes_no_terms(800)
    curves = np.random.default_rng(3).random((n_scores, 800))
    penalty = np.random.default_rng(4).random(terms.n_coordinates)
    found = Preconditioner.at(terms, model_of(terms, curves), np.arange(9), penalty)
    assert len(found.joint) == min(terms.n_coordinates, 40 + 2 * 9)
    found = Preconditioner.at(terms, model_of(terms, curves), np.arange(9), penalty, True)
    assert len(found.joint) == terms.n_coordinates
    x, xb = np.random.default_rng(6).normal(size=(n_scores, terms.n_coordinates)), np.ones(n_scores)
    out, outb = np.empty_like(x), np.empty(n_scores)
    precondition(found, x, xb, out, outb)
    shifts = np.empty(n_scores)
    # several scores have curves w p: the block of a class is that of w p (1 - p)
    own = curves if n_scores == 1 else curves * (1.0 - curves / curves.sum(axis=0))
    for k in range(n_scores):
        A = curvature(terms, own[k]) + np.diag(np.append(penalty, 0.0))
        wanted = np.linalg.solve(A, np.append(x[k], xb[k]))
        np.testing.assert_allclose(out[k], wanted[:-1], rtol=1e-4, atol=1e-7)
        shifts[k] = wanted[-1]
    # a common shift of the intercepts of several classes changes nothing and is left out
    shifts -= shifts.mean() if n_scores > 1 else 0.0
    np.testing.assert_allclose(outb, shifts, rtol=1e-4, atol=1e-7)


def test_strong_penalties_need_no_factor():
    terms = yes_no_terms(800)
    curves = np.full((1, 800), 0.2)
    penalty = np.full(terms.n_coordinates, 1e4)
    penalty[3] = 1.0
    found = Preconditioner.at(terms, model_of(terms, curves), np.arange(9), penalty)
    assert found.joint.tolist() == [3]
    np.testing.assert_allclose(found.scale[0], 160.0 + penalty)
    outside = Preconditioner.at(terms, model_of(terms, curves), np.arange(5, 9), penalty)
    assert len(outside.joint) == 0


def test_some_rows_give_nearly_the_same_factor(monkeypatch):
    """Rows drawn by curvature: the eigenvalues of one factor seen by the other are near one."""
    terms = yes_no_terms(6_000)
    curves = np.random.default_rng(3).random((1, 6_000))
    smooth = terms.rough < 30 * roughness_units(terms)[terms.owner]
    penalty = np.where((terms.owner < 5) & smooth, 20.0, 1e6)
    model = model_of(terms, curves)
    some = Preconditioner.at(terms, model, np.arange(9), penalty).factors[0]
    monkeypatch.setattr(tuning, "JOINT_ROWS", 10_000)
    every = Preconditioner.at(terms, model, np.arange(9), penalty).factors[0]
    assert len(some) > 9
    assert not np.allclose(some, every)
    turned = np.linalg.solve(every.T, some.T)
    seen = np.linalg.eigvalsh(turned @ turned.T)
    assert 0.5 < seen[0] < seen[-1] < 2.0


def test_few_conjugate_steps_end_where_columns_agree():
    """Two columns that carry the same information: four steps come within a percent."""
    from laconic.additive._numba_terms import conjugate_steps

    terms = yes_no_terms(2_000)
    curves = np.random.default_rng(3).random((1, 2_000))
    penalty = np.where(terms.owner < 5, 0.1, 500.0)
    model = model_of(terms, curves)
    A = curvature(terms, curves[0]) + np.diag(np.append(penalty, 0.0))
    right = -np.append(model.theta[0], model.slope[0])
    best = np.linalg.solve(A, right)
    lowest = 0.5 * best @ A @ best - right @ best
    found = Preconditioner.at(terms, model, np.arange(9), penalty)
    g, b = np.zeros((1, terms.n_coordinates)), np.zeros(1)
    state = State(g, np.zeros(9), b)
    conjugate_steps(model, np.arange(9), found, penalty, state, 4, 1e-12)
    x = np.append(g[0], b[0])
    assert 0.5 * x @ A @ x - right @ x < 0.99 * lowest


def test_a_factor_made_where_all_rows_are_flat_serves_a_later_model():
    """Beyond the ends of a zone nothing curves: the intercept must not go to infinity."""
    terms = yes_no_terms(800)
    flat = model_of(terms, np.zeros((1, 800)))
    penalty = np.full(terms.n_coordinates, 0.5)
    found = Preconditioner.at(terms, flat, np.arange(9), penalty, True)
    assert np.isfinite(found.factors).all()
    from laconic.additive._numba_terms import conjugate_steps

    curved = model_of(terms, np.random.default_rng(0).random((1, 800)))
    state = State(np.zeros((1, terms.n_coordinates)), np.zeros(9), np.zeros(1))
    conjugate_steps(curved, np.arange(9), found, penalty, state, 12, 1e-12)
    assert np.isfinite(state.point).all()
    assert np.isfinite(state.intercept).all()


def test_evidence_may_switch_every_term_off(monkeypatch):
    """No term is left to work on: the search goes on with the intercept alone."""
    monkeypatch.setattr(tuning, "NEGLIGIBLE_SPREAD", 1e9)
    rng = np.random.default_rng(0)
    singles, weight = singles_of(rng.normal(size=(60, 2)))
    y = (rng.random(60) < 0.3).astype(np.int64)
    stage = Task(AdditivePlan(2, TruncatedLogistic()), y, weight).evidence_fit(
        Smoothness.start(singles)
    )
    assert np.isfinite(stage.point.scores).all()


def test_polishing_never_loses_the_certificate(monkeypatch):
    rows, axes, y, weight = setup(3)
    terms = single_terms(rows, weight)
    problem = AdditiveProblem(terms, y, weight, np.zeros(len(axes)), 0.02 * terms.rough + 0.5)

    def spoiled(self, *_):
        self.g = self.g + 1.0
        self.scores = terms.scores(self.b, self.g)
        self.value = self.state.loss(self.scores) + self.problem.penalty.value(self.g)
        return 0.0

    step = Descent._step
    calls = []

    def watched(self, work, evidence, n_conjugate, least):
        calls.append(n_conjugate)
        if n_conjugate == tuning.CONJUGATE_POLISHED:
            return spoiled(self)
        return step(self, work, evidence, n_conjugate, least)

    monkeypatch.setattr(Descent, "_step", watched)
    found = solve_additive(problem, tol=1e-6, polish=True)
    assert tuning.CONJUGATE_POLISHED in calls
    assert found.gap <= 1e-6 * found.value
    slopes, _ = loss_slopes(problem, found.point.scores)
    assert certified_gap(problem, found.point, slopes) == pytest.approx(found.gap, rel=1e-6)


def test_rows_that_are_nearly_certain_keep_their_slopes_and_curvatures():
    """A weight of 1e12 on a probability of 1 - 1e-12: what is left of one was rounding."""
    from laconic.additive._numba_rows import curved, multinomial_slopes, own_curvatures

    draw = np.random.default_rng(0)
    scores = draw.normal(size=(3, 20)) + 28.0 * (np.arange(3)[:, None] == np.arange(20) % 3)
    y, weight = np.arange(20) % 3, 10.0 ** draw.uniform(0, 12, 20)
    exact = np.exp((scores - scores.max(axis=0)).astype(np.longdouble))
    p = exact / exact.sum(axis=0)
    slopes, curves = np.empty((3, 20)), np.empty((3, 20))
    value = multinomial_slopes(scores, y, weight, slopes, curves)
    others = np.array([[p[np.arange(3) != k, i].sum() for i in range(20)] for k in range(3)])
    lost = np.log1p((others / p)[y, np.arange(20)].astype(float))
    assert value == pytest.approx(weight @ lost, rel=1e-12)
    wanted = np.where(np.arange(3)[:, None] == y, -others, p) * weight
    np.testing.assert_allclose(slopes, wanted.astype(float), rtol=1e-12)
    change, out = 1e3 + draw.normal(size=(3, 20)), np.empty((3, 20))
    moved = change[:, None] - change[None]
    wanted = weight * p * np.einsum("li,kli->ki", p, moved.astype(np.longdouble))
    curved(curves, change, out)
    np.testing.assert_allclose(out, wanted.astype(float), rtol=1e-9)
    own_curvatures(curves, out)
    np.testing.assert_allclose(out, (weight * p * others).astype(float), rtol=1e-12)


@pytest.mark.parametrize("half", [False, True])
def test_weights_over_many_decades_end_in_a_certificate(half, monkeypatch):
    """The factor was made as if every row weighed the same, and classes as if none were certain:
    200 steps with a gap of 1e9 on table 11081 of the generated ones; on 8281, where half of the
    rows weigh 1e12, because the median is heavy too. Here by conjugate steps, as where rows and
    classes are too many for steps in their own space."""
    monkeypatch.setattr(tuning, "ROW_DIRECTIONS", 0)
    terms = yes_no_terms(60)
    draw = np.random.default_rng(0)
    y, weight = draw.integers(0, 3, 60), 10.0 ** draw.uniform(-12, 12, 60)
    if half:
        weight = np.where(draw.random(60) < 0.6, 1e12, 1.0)
    assert few_carry_most(weight)
    nothing = np.zeros(len(terms.terms))
    problem = AdditiveProblem(
        terms, y, weight, nothing, np.full(terms.n_coordinates, 1e-2), n_classes=3
    )
    found = solve_additive(problem, tol=1e-3, max_iter=200)
    assert found.why_stopped == "gap"
