"""What makes the additive fit fast and its shapes honest: rows that curve, powers of roughness."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from laconic.additive import solver as additive_model
from laconic.additive.criterion import AdditiveProblem, loss_slopes, slopes_by_term
from laconic.additive.evidence import POWERS, Smoothness
from laconic.additive.pairs import evidence_fit
from laconic.additive.solver import QuadraticModel, compact, solve_additive
from laconic.additive.structure import AdditivePlan
from laconic.additive.terms import TermSet, pair_terms, single_terms
from laconic.core.gray_zone import TruncatedLogistic
from laconic.data.tables.columns import Schema, Table
from laconic.data.tables.knots import KnotRule, encode, learn_axes


def table_of(n: int, rng: np.random.Generator) -> Table:
    """A line, a yes/no, a yes/no with missing values, a count."""
    gone = np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 2, n))
    X = np.column_stack(
        [rng.normal(size=n), rng.integers(0, 2, n), gone, rng.poisson(1.0, n).clip(0, 3)]
    )
    return Schema.learn(X).table


def terms_of(n: int = 2_003, seed: int = 0) -> tuple[TermSet, np.ndarray, np.ndarray]:
    """Singles and three pairs, of which one has both columns on knots; labels; weights."""
    rng = np.random.default_rng(seed)
    table, weight = table_of(n, rng), np.ones(n)
    singles = single_terms(encode(table, learn_axes(table, weight, KnotRule(8))), weight)
    terms = singles.extended(pair_terms(singles, [(0, 1), (1, 2), (0, 3)], weight))
    x, flag = table.column(0), table.column(1)
    f = 12.0 * x + 3.0 * flag * np.sign(x) - 2.0
    y = (rng.random(n) < 1 / (1 + np.exp(-f))).astype(np.int64)
    return terms, y, weight


def dense(terms: TermSet, t: int) -> np.ndarray:
    """Share of every row in every slot, from the definition of the axes."""
    shares = []
    for j in terms.terms[t].columns:
        slot, way = terms.rows.column(j)
        if len(terms.terms[t].columns) == 2:
            coarse = terms.coarse[j]
            way = coarse.base[slot] + coarse.step[slot] * way
            slot = coarse.index[slot].astype(int)
        size = terms.terms[t].axes[len(shares)].size
        own = np.zeros((len(slot), size + 1))
        own[np.arange(len(slot)), slot] += 1 - way
        own[np.arange(len(slot)), slot + 1] += way
        shares.append(own[:, :size])
    if len(shares) == 1:
        return shares[0]
    return np.einsum("ia,ib->iab", *shares).reshape(len(shares[0]), -1)


@pytest.mark.parametrize("n", [5, 2_003])
def test_compiled_sums_are_those_of_the_dense_design(n):
    terms, _, _ = terms_of(2_003)
    terms = terms.on(terms.rows.take(np.arange(n)))
    values = np.random.default_rng(1).normal(size=(1, n))
    found = slopes_by_term(terms, values)
    ways = terms.packed[0].coarse_way
    assert ways[1] == ways[2] == 0 < ways[0]
    for t in range(len(terms.terms)):
        wanted = values @ dense(terms, t) @ terms.terms[t].shape.basis
        part = slice(terms.start[t], terms.start[t] + terms.rank[t])
        np.testing.assert_allclose(found[:, part], wanted, atol=1e-4)


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
def test_rows_that_hardly_curve_change_the_way_and_not_the_end(group, monkeypatch):
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
    monkeypatch.setattr(additive_model, "_FEW_ROWS", 10**9)
    every = solve_additive(problem, tol=1e-8, max_iter=200)
    assert few.why_stopped == every.why_stopped == "gap"
    assert few.value == pytest.approx(every.value, rel=2e-8)
    np.testing.assert_allclose(few.point.coordinates, every.point.coordinates, atol=2e-2)


def fitted_powers(shape, n: int = 20_000) -> float:
    """Power that the evidence finds for one column with log-odds ``shape``."""
    rng = np.random.default_rng(3)
    x = rng.random((n, 1))
    table, weight = Schema.learn(x).table, np.ones(n)
    terms = single_terms(encode(table, learn_axes(table, weight, KnotRule(32))), weight)
    y = (rng.random(n) < 1 / (1 + np.exp(-shape(x[:, 0])))).astype(np.int64)
    from laconic.core.gray_zone import TruncatedLogistic

    plan = AdditivePlan(2, TruncatedLogistic())
    smooth, _ = evidence_fit(plan, terms, y, weight, Smoothness.start(terms))
    return float(smooth.power[0])


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
        for amount in 10.0 ** np.arange(-2.0, 6.5, 0.5):
            d = np.where(ratio > 0, amount * np.where(ratio > 0, ratio, 1.0) ** power, 0.0)
            bent = ratio > 0
            A, D = H[np.ix_(bent, bent)], np.diag(d[bent])
            told = b[bent] @ np.linalg.solve(A + D, b[bent])
            value = 0.5 * (told - np.linalg.slogdet(np.eye(len(A)) + np.linalg.inv(D) @ A)[1])
            best[power] = max(best.get(power, -np.inf), value)
    for start in POWERS:
        own = Smoothness(terms, smooth.bend.copy(), smooth.line.copy(), smooth.power.copy())
        own.power[0] = start
        # the same b whatever the power it starts from
        D = own.diagonal()[:r]
        g = np.zeros_like(point.coordinates)
        g[0, :r] = np.linalg.solve(H + np.diag(D), b)
        own.choose_powers(g, H.ravel(), np.array([0, r * r]), work)
        top = max(best, key=lambda power: best[power])
        wanted = top if best[top] > best[start] + 2.0 else start
        assert own.power[0] == wanted


@pytest.mark.parametrize(("pull", "mean"), [(1.0, 40.0), (8.0, 3.0)])
def test_amounts_of_many_columns_tell_their_population(pull, mean):
    """m e / f follows Fisher's F: against scipy's density, and against the draws' own numbers."""
    from scipy.stats import f as fisher

    from laconic.additive.evidence import population

    rng = np.random.default_rng(0)
    freedom = rng.uniform(0.5, 6.0, 4_000)
    amounts = rng.gamma(pull / 2, 2 * mean / pull, len(freedom))
    energy = rng.chisquare(freedom) / amounts
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


def test_amounts_of_single_columns_are_drawn_together_and_pairs_are_not():
    """One Fellner-Schall step with the prior of the population, against its formula."""
    from laconic.additive.evidence import population

    terms, y, weight = terms_of(400)
    smooth, point = evidence_fit(
        AdditivePlan(2, TruncatedLogistic()), terms, y, weight, Smoothness.start(terms)
    )
    problem = AdditivePlan(2, TruncatedLogistic()).problem(terms, y, weight, smooth.diagonal())
    curves = loss_slopes(problem, point.scores)[1]
    blocks, places = [], [0]
    for t in range(len(terms.terms)):
        Z = dense(terms, t) @ terms.terms[t].shape.basis
        blocks.append((Z.T * curves[0]) @ Z)
        places.append(places[-1] + blocks[-1].size)
    told, units, D = [], smooth.units, smooth.diagonal()
    for part, amounts, unit in ((True, smooth.bend, units), (False, smooth.line, np.ones(7))):
        for t, H in enumerate(blocks):
            own = np.flatnonzero(terms.owner == t)
            rough = smooth.roughness()[own]
            S = np.where(rough > 0, rough, 0.0) if part else (rough == 0).astype(float)
            V = np.linalg.inv(decoupled(H, D[own]) + np.diag(D[own]))
            g = point.coordinates[0, own]
            freedom = (S > 0).sum() - amounts[t] * (np.diag(V) * S).sum()
            told.append((t, max(freedom, 0.0), g**2 @ S / unit[t], unit[t], (S > 0).any()))
    single = [row for row in told if row[0] < 4 and row[4]]
    pull, mean = population(*(np.array([row[k] for row in single]) for k in (1, 2)))
    drawn = replace(smooth.copy(), drawn=True)
    H = np.concatenate([block.ravel() for block in blocks])
    drawn.update(point.coordinates, H, np.array(places), np.arange(len(terms.terms)))
    found = np.concatenate([drawn.bend, drawn.line])
    before = np.concatenate([smooth.bend, smooth.line])
    for (t, f, e, unit, there), old, new in zip(told, before, found, strict=True):
        a, m = (pull, mean) if t < 4 else (0.25, unit**2)
        wanted = np.clip((f + a) / (e + a / m), 1e-3, 1e7) / unit
        wanted = np.clip(wanted, old / 30, old * 30)
        assert new == pytest.approx(wanted if there else old, rel=1e-6)


def test_folds_that_do_not_judge_follow(monkeypatch):
    """In one go they come to the fit that the judges reach step by step."""
    from laconic import SparseAdditiveClassifier
    from laconic.additive import selection as additive_choice
    from laconic.additive import selection as steps

    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    y = rng.random(400) < 1 / (1 + np.exp(-X[:, 0] - np.sin(3 * X[:, 1]) - X[:, 2] * X[:, 3]))
    monkeypatch.setattr(additive_choice, "FEW_ROWS", 0)
    seen = []

    def watched(plan, fold, codes, *chosen):
        seen.append((plan, fold, codes, chosen))
        return steps.follow(plan, fold, codes, *chosen)

    monkeypatch.setattr(additive_choice, "follow", watched)
    model = SparseAdditiveClassifier(random_state=0).fit(X, y)
    assert len(seen) == 3
    assert len({chosen[:3] for *_, chosen in seen}) == 1
    assert all(np.isfinite(term.errors).all() for term in model.terms_)
    plan, fold, codes, (_, amount, _, guess) = seen[0]
    assert np.isfinite(amount)
    for factor, ratio in ((1.0, 0.0), (2.0, 0.0), (2.0, 0.02)):
        at_once = steps.follow(plan, fold, codes, factor, amount, ratio, guess)
        slow = steps.fold_scaled(plan, fold, codes, factor)
        slow = steps.path_start(steps.fold_at_amount(plan, slow, codes, amount), amount)
        if ratio:
            slow = steps.path_step(plan, slow, codes, ratio)
        np.testing.assert_allclose(
            at_once.fold.structure.diagonal, slow.fold.structure.diagonal, rtol=1e-12
        )
        # both are certified to a hundredth of the criterion, from different starts
        apart = np.abs(at_once.scores[0] - slow.scores[-1]).mean()
        assert apart < 0.1 * slow.scores[-1].std()
        assert len(at_once.scores) == len(at_once.coordinates) == 1


def test_coordinates_penalised_far_more_than_they_curve_are_on_their_own():
    from laconic.additive._numba_blocks import decouple

    terms, _, _ = terms_of(300)
    packed, work = terms.packed[1], np.array([0, 4], dtype=np.int64)
    rng = np.random.default_rng(0)
    D = np.resize([0.01, 1e4, 1.0], terms.n_coordinates)
    given = [np.atleast_2d(np.cov(rng.normal(size=(r, 50)))) for r in terms.rank[work]]
    H = np.concatenate([block.ravel() for block in given])
    decouple(packed, work, H, np.cumsum([0, *(b.size for b in given)]), D, 30.0)
    at = 0
    for t, block in zip(work, given, strict=True):
        found = H[at : at + block.size].reshape(block.shape)
        at += block.size
        alone = D[terms.owner == t] > 30.0 * np.diag(block)
        assert alone.any()
        assert not alone.all()
        together = ~(alone[:, None] | alone) | np.eye(len(block), dtype=bool)
        np.testing.assert_array_equal(found, np.where(together, block, 0.0))


def test_pairs_are_picked_beside_all_others():
    """Two columns that nearly agree share what they tell with a third: another pair tells more."""
    from laconic.additive.pairs import _largest, screen_pairs

    rng = np.random.default_rng(1)
    X = rng.normal(size=(1_000, 6))
    X[:, 1] = X[:, 0] + 0.1 * rng.normal(size=1_000)
    f = 1.2 * X[:, 0] * X[:, 2] + 0.9 * X[:, 3] * X[:, 4]
    y = (rng.random(1_000) < 1 / (1 + np.exp(-f))).astype(np.int64)
    table, weight = Schema.learn(X).table, np.ones(1_000)
    singles = single_terms(encode(table, learn_axes(table, weight, KnotRule(8))), weight)
    plan = AdditivePlan(2, TruncatedLogistic())
    smooth, point = evidence_fit(plan, singles, y, weight, Smoothness.start(singles))
    problem = plan.problem(singles, y, weight, smooth.diagonal())
    slopes = loss_slopes(problem, point.scores)
    alone, _ = screen_pairs(singles, np.arange(6), *slopes)
    assert set(alone[:2]) == {(0, 2), (1, 2)}
    grids = pair_terms(singles, alone, weight)
    (beside,) = _largest(plan, smooth, point, y, weight, grids, 10.0, 1)
    assert beside.columns == (3, 4)


def test_a_term_must_spare_its_price():
    """Least loss without a price; with one, the point whose terms are worth it; then a share of
    the standard error on top."""
    from laconic.additive.selection import PathPoint, choose

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
    """A quarter of a row of which nothing is known; nothing below 2,500 rows."""
    from laconic.additive.selection import Choosing, HeldOutRows

    matrix = None if costs is None else np.array(costs)
    for n, wanted in ((2_499, 0.0), (2_500, 0.25 * (np.log(2) if costs is None else 0.5))):
        rows = HeldOutRows(np.arange(n) % 2, np.ones(n), matrix)
        found = Choosing(None, rows, [], "best", None, None)._price
        assert found == pytest.approx(wanted / n)


@pytest.mark.parametrize(
    ("n_rows", "n_folds", "wanted"),
    [(2_499, 5, 5), (2_500, 5, 2), (5_003, 10, 4)],
)
def test_judges_hold_out_enough_rows(n_rows, n_folds, wanted):
    from laconic.additive.selection import Choosing, Fold, HeldOutRows

    rows = HeldOutRows(np.arange(n_rows) % 2, np.ones(n_rows))
    parts = np.array_split(np.arange(n_rows), n_folds)
    folds = [Fold(part, np.ones(n_rows), None, None) for part in parts]
    assert Choosing(None, rows, [], "best", None, None)._n_judges(folds) == wanted


def test_a_fold_without_a_class_is_no_start_for_the_others():
    """Its fit has driven the class far away: the fit on all rows must not begin there."""
    from laconic import SparseAdditiveClassifier

    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 6))
    y = np.r_[np.zeros(4, dtype=int), rng.integers(1, 3, 36)]
    first = np.arange(12)
    folds = [(np.setdiff1d(np.arange(40), test), test) for test in (first, np.arange(12, 40))]
    model = SparseAdditiveClassifier(cv=folds, random_state=0).fit(X, y)
    assert model.duality_gap_ <= 1e-5 * model.objective_
    assert np.abs(model.intercept_).max() < 10.0
