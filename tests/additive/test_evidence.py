"""Smoothing parameters, powers of roughness and their population, against their formulas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import f as fisher

from additive_terms import dense, singles_of, terms_of
from laconic.additive.criterion import AdditiveProblem, CurvatureBlocks, loss_slopes
from laconic.additive.solver import solve_additive
from laconic.additive.structure import AdditivePlan, Smoothness, Task, population
from laconic.additive.tuning import POWERS
from laconic.core.losses import TruncatedLogistic

PLAN = AdditivePlan(2, TruncatedLogistic())


def fitted_powers(shape, n: int = 20_000) -> float:
    """Power that the evidence finds for one column with log-odds ``shape``."""
    rng = np.random.default_rng(3)
    x = rng.random((n, 1))
    terms, weight = singles_of(x, 32)
    y = (rng.random(n) < 1 / (1 + np.exp(-shape(x[:, 0])))).astype(np.int64)
    stage = Task(PLAN, y, weight).evidence_fit(Smoothness.start(terms))
    return float(stage.smoothness.power[0])


def test_evidence_tells_slow_bends_from_steps():
    assert fitted_powers(lambda x: 4 * np.sin(2 * np.pi * x)) == 1.0
    noise = np.random.default_rng(0).normal(size=16)
    assert fitted_powers(lambda x: 3 * noise[(16 * x).astype(int).clip(0, 15)]) < 1.0


def test_power_is_that_of_the_largest_evidence():
    """Against determinants and solves of the same normal model."""
    terms, y, weight = terms_of(400)
    plan_problem = AdditiveProblem(terms, y, weight, np.zeros(7), np.ones(terms.n_coordinates))
    point = solve_additive(plan_problem, tol=1e-9).point
    _, curves = loss_slopes(plan_problem, point.scores)
    smooth, work = Smoothness.start(terms), np.array([0])
    r = int(terms.rank[0])
    Z = dense(terms, 0) @ terms.terms[0].shape.basis
    H = Z.T @ (curves[0][:, None] * Z)
    H = np.diag(np.diag(H))  # the evidence of the library takes the diagonal
    b = (H + np.diag(smooth.diagonal()[:r])) @ point.coordinates[0, :r]
    best = {}
    for power in POWERS:
        ratio = terms.rough[:r] / smooth.units[0]
        for bend in 10.0 ** np.arange(-2.0, 6.5, 0.5):
            d = np.where(ratio > 0, bend * np.where(ratio > 0, ratio, 1.0) ** power, 0.0)
            bent = ratio > 0
            A, D = H[np.ix_(bent, bent)], np.diag(d[bent])
            fit = b[bent] @ np.linalg.solve(A + D, b[bent])
            value = 0.5 * (fit - np.linalg.slogdet(np.eye(len(A)) + np.linalg.inv(D) @ A)[1])
            best[power] = max(best.get(power, -np.inf), value)
    for start in POWERS:
        own = Smoothness(terms, smooth.bend.copy(), smooth.line.copy(), smooth.power.copy())
        own.power[0] = start
        # the same b whatever the power it starts from
        D = own.diagonal()[:r]
        g = np.zeros_like(point.coordinates)
        g[0, :r] = np.linalg.solve(H + np.diag(D), b)
        own.choose_powers(g, CurvatureBlocks(work, H.ravel(), np.array([0, r * r])))
        top = max(best, key=lambda power: best[power])
        wanted = top if best[top] > best[start] + 2.0 else start
        assert own.power[0] == wanted


@pytest.mark.parametrize(("pull", "mean"), [(1.0, 40.0), (8.0, 3.0)])
def test_parameters_of_many_columns_show_their_population(pull, mean):
    """m e / f follows Fisher's F: against scipy's density, and against the draws' own numbers."""
    rng = np.random.default_rng(0)
    freedom = rng.uniform(0.5, 6.0, 4_000)
    smoothing = rng.gamma(pull / 2, 2 * mean / pull, len(freedom))
    energy = rng.chisquare(freedom) / smoothing
    found_pull, found_mean = population(freedom, energy)
    assert found_pull == pull
    assert found_mean == pytest.approx(mean, rel=0.1)

    def density(a, m):
        return fisher.logpdf(m * energy / freedom, freedom, a).sum() + len(freedom) * np.log(m)

    best = density(found_pull, found_mean)
    for a, m in [(2 * pull, mean), (pull / 2, mean), (pull, 0.9 * mean), (pull, 1.1 * mean)]:
        assert density(a, m) < best
    assert population(np.zeros(3), np.zeros(3))[1] == pytest.approx(1.0)


def decoupled(H: np.ndarray, D: np.ndarray) -> np.ndarray:
    """H with coordinates penalised 30 times more than they curve on their own."""
    alone = 30.0 * np.diag(H) < D
    return np.where(alone[:, None] | alone, np.diag(np.diag(H)), H)


def test_parameters_of_single_columns_are_pooled_and_those_of_pairs_are_not():
    """One Fellner-Schall step with the prior of the population, against its formula."""
    terms, y, weight = terms_of(400)
    task = Task(PLAN, y, weight)
    stage = task.evidence_fit(Smoothness.start(terms))
    smooth, point = stage.smoothness, stage.point
    problem = task.problem(terms, smooth.diagonal())
    curves = loss_slopes(problem, point.scores)[1]
    blocks, places = [], [0]
    for t in range(len(terms.terms)):
        Z = dense(terms, t) @ terms.terms[t].shape.basis
        blocks.append((Z.T * curves[0]) @ Z)
        places.append(places[-1] + blocks[-1].size)
    sums, units, D = [], smooth.units, smooth.diagonal()
    for part, smoothing, unit in ((True, smooth.bend, units), (False, smooth.line, np.ones(7))):
        for t, H in enumerate(blocks):
            own = np.flatnonzero(terms.owner == t)
            rough = smooth.roughness()[own]
            S = np.where(rough > 0, rough, 0.0) if part else (rough == 0).astype(float)
            V = np.linalg.inv(decoupled(H, D[own]) + np.diag(D[own]))
            g = point.coordinates[0, own]
            freedom = (S > 0).sum() - smoothing[t] * (np.diag(V) * S).sum()
            sums.append((t, max(freedom, 0.0), g**2 @ S / unit[t], unit[t], (S > 0).any()))
    single = [row for row in sums if row[0] < 4 and row[4]]
    pull, mean = population(*(np.array([row[k] for row in single]) for k in (1, 2)))
    pooled = replace(smooth.copy(), pooled=True)
    H = np.concatenate([block.ravel() for block in blocks])
    work = np.arange(len(terms.terms))
    pooled.update(point.coordinates, CurvatureBlocks(work, H, np.array(places)))
    found = np.concatenate([pooled.bend, pooled.line])
    before = np.concatenate([smooth.bend, smooth.line])
    for (t, f, e, unit, there), old, new in zip(sums, before, found, strict=True):
        a, m = (pull, mean) if t < 4 else (0.25, unit**2)
        wanted = np.clip((f + a) / (e + a / m), 1e-3, 1e7) / unit
        wanted = np.clip(wanted, old / 30, old * 30)
        assert new == pytest.approx(wanted if there else old, rel=1e-6)


@pytest.mark.parametrize("penalty", [1e-3, 1.0, 1e3])
def test_degrees_of_freedom_are_those_of_the_whole_block_but_for_a_bound(penalty):
    """A coordinate left on its own may count by h / (h + D) <= 1/31 too much, others hardly."""
    from laconic.additive._numba_terms import evidence_sums

    singles, _ = singles_of(np.random.default_rng(0).normal(size=(300, 1)))
    r = int(singles.rank[0])
    H = np.cov(np.random.default_rng(1).normal(size=(r, 40)))
    D = penalty * 10.0 ** np.linspace(0.0, 3.0, r)
    sums = np.empty((1, 6))
    work, place, g = np.array([0]), np.array([0, r * r]), np.zeros((1, r))
    blocks = CurvatureBlocks(work, H.ravel(), place)
    evidence_sums(singles.packed[1], blocks, D, D, g, 30.0, sums)
    exact = r - D @ np.diag(np.linalg.inv(H + np.diag(D)))
    n_alone = int((30.0 * np.diag(H) < D).sum())
    assert (n_alone > 0) == (penalty > 1e-3)
    assert exact - 1e-9 <= r - sums[0, 1] <= exact + 1e-9 + n_alone / 31
