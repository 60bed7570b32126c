"""Long forms on one page: few entries, close to what they were taught, by the cheapest steps."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from laconic import SparseAdditiveClassifier, SparseRulesClassifier
from laconic.choose.page._numba import leave_in_turn, squares_off_chord
from laconic.choose.page.parts import parts_of
from laconic.choose.page.paths import Path, allocated, chord_sums
from laconic.choose.page.shortening import Shortening, form_size
from laconic.core.forms import AdditiveScore, LineTerm, RulesTerm, SlotTerm
from laconic.data.tables.axes import CategoryAxis, IntervalAxis, KnotAxis
from laconic.data.tables.columns import Table

TEXTS = ("a", "b", "c", "d", "e")


def _form(draw, n_scores):
    knots = np.unique(np.round(draw.normal(size=20), 2))
    axes = (
        KnotAxis(knots, np.array([7.0])),
        IntervalAxis(np.sort(draw.normal(size=6))),
        CategoryAxis(tuple((text,) for text in TEXTS)),
    )
    terms = [
        SlotTerm((name,), (axis,), draw.normal(scale=0.3, size=(axis.size, n_scores)))
        for name, axis in zip("uvw", axes, strict=True)
    ]
    grid = SlotTerm(("u", "v"), axes[:2], draw.normal(size=(axes[0].size, axes[1].size, n_scores)))
    line = LineTerm("u", draw.normal(size=n_scores))
    tree = RulesTerm(
        ("v",), (axes[1],), (np.arange(axes[1].size),), np.array([0, -1, -1]), np.array([2, 0, 0]),
        np.array([1, 0, 0]), np.array([2, 0, 0]), draw.normal(size=(3, n_scores)),
    )  # fmt: skip
    classes, link = ((0, 1), "logit") if n_scores == 1 else ((0, 1, 2), "softmax")
    return AdditiveScore(classes, np.zeros(n_scores), (*terms, grid, line, tree), link)


def _table(draw, n=1000):
    u, v = np.round(draw.normal(size=(2, n)), 2)
    u[:50], u[50:100], v[:20] = 7.0, np.nan, np.nan
    w = draw.integers(-2, 5, n).astype(np.int32)
    kinds = ("numeric", "numeric", "categorical")
    return Table(("u", "v", "w"), kinds, (None, None, TEXTS), columns=(u, v, w))


@pytest.mark.parametrize("n_scores", [1, 3])
def test_pages_are_no_longer_than_asked_and_grow_closer_with_their_length(n_scores):
    for seed in range(2):
        draw = np.random.default_rng(seed)
        form, table = _form(draw, n_scores), _table(draw)
        path = Shortening(form, table, np.ones(1000))
        off = []
        for most in (form_size(form), 120, 60, 30, 10, 0):
            page = path.to(most)
            assert form_size(page) <= most
            off.append(float((path.weight * (page.score(table) - form.score(table)) ** 2).sum()))
        assert path.form.terms == ()
        assert off[0] == 0.0
        assert all(a <= 1.01 * b for a, b in itertools.pairwise(off))
        # nothing but an intercept, fitted: the weighted variance of the scores
        scores, w = form.score(table), path.weight
        around = (w * scores).sum(axis=0) / w.sum(axis=0)
        assert off[-1] == pytest.approx(float((w * (scores - around) ** 2).sum()), rel=0.02)


def test_the_unit_of_a_line_changes_nothing_on_a_page():
    """A sum of large cells once stood for rows: joined levels then had weights below zero."""
    draw = np.random.default_rng(0)
    levels = SlotTerm(("w",), (CategoryAxis(tuple((t,) for t in TEXTS)),), draw.normal(size=(7, 1)))
    x, w = draw.normal(size=400), draw.integers(0, 5, 400).astype(np.int32)
    kinds, known = ("numeric", "categorical"), (None, TEXTS)
    said = []
    for unit in (1.0, -1e6):
        table = Table(("x", "w"), kinds, known, columns=(x * unit + 9.0 * unit, w))
        line = LineTerm("x", np.array([0.5 / unit]))
        form = AdditiveScore((0, 1), np.zeros(1), (levels, line))
        page = Shortening(form, table, np.ones(400)).to(4)
        assert form_size(page) == 4
        said.append(page.score(table))
    np.testing.assert_allclose(*said, rtol=1e-6)


def test_what_is_left_is_the_least_squares_fit():
    """Against numpy's own least squares on indicator columns, levels joined by hand."""
    draw = np.random.default_rng(1)
    axis = CategoryAxis(tuple((text,) for text in TEXTS))
    values = np.array([0.0, 0.1, 2.0, 2.1, 5.0, 0.0, 0.0])[:, None]
    line = LineTerm("u", np.array([0.7]))
    form = AdditiveScore((0, 1), np.zeros(1), (SlotTerm(("w",), (axis,), values), line))
    table = _table(draw)
    path = Shortening(form, table, np.ones(1000))
    page = path.to(4)
    groups = [[0, 1, 5, 6], [2, 3], [4]]
    level = np.asarray(table.column(2))
    read = np.where(level == -1, 6, np.where(level == -2, 5, level))
    u = np.nan_to_num(np.asarray(table.column(0)))
    X = np.column_stack([*(np.isin(read, own) for own in groups), u]).astype(float)
    root = np.sqrt(path.weight[:, 0])
    best = np.linalg.lstsq(X * root[:, None], form.score(table)[:, 0] * root, rcond=None)[0]
    np.testing.assert_allclose(page.score(table)[:, 0], X @ best, atol=5e-3)
    assert {len(np.unique(term.values)) for term in page.terms if isinstance(term, SlotTerm)} == {3}


def test_the_cheapest_steps_are_taken():
    """On convex paths the greedy rule is the best of all allocations, by brute force."""
    draw = np.random.default_rng(2)
    part = parts_of(LineTerm("u", np.ones(1)), 0, 0)[0]
    for _ in range(20):
        paths = []
        for _ in range(3):
            errors = np.append(0.0, np.cumsum(np.sort(draw.random(3))))
            paths.append(Path(part, np.arange(3, -1, -1), errors, np.arange(3), np.ones(3)))
        for most in range(10):
            states = allocated(paths, most)
            spent = sum(path.errors[s] for path, s in zip(paths, states, strict=True))
            every = itertools.product(range(4), repeat=3)
            best = min(
                sum(path.errors[s] for path, s in zip(paths, own, strict=True))
                for own in every
                if sum(3 - s for s in own) <= most
            )
            assert spent == pytest.approx(best)


def test_knots_leave_in_the_order_of_what_they_cost():
    """Against squares counted point by point, after every knot that has left."""
    draw = np.random.default_rng(6)
    x, v, mass = np.cumsum(draw.uniform(0.1, 2.0, 9)), draw.normal(size=9), draw.uniform(size=9)
    order, paid = leave_in_turn(True, *chord_sums(x, v, mass))

    def squares(stays):
        return float(mass @ (v - np.interp(x, x[stays], v[stays])) ** 2)

    stays = list(range(9))
    for j, cost in zip(order.tolist(), paid, strict=True):
        costs = {i: squares([k for k in stays if k != i]) - squares(stays) for i in stays[1:-1]}
        assert j == min(costs, key=costs.get)
        assert cost == pytest.approx(max(costs[j], 0.0), abs=1e-12)
        stays.remove(j)
    assert stays == [0, 8]


def test_levels_join_in_the_order_of_what_it_costs():
    draw = np.random.default_rng(7)
    v, mass = np.sort(draw.normal(size=7)), draw.uniform(0.1, 1.0, 7)
    sums = [np.append(0.0, np.cumsum(own)) for own in (mass, mass * v)]
    order, paid = leave_in_turn(False, *sums, np.empty((0, 6)))

    def squares(borders):
        cut = zip([0, *borders], [*borders, 7], strict=True)
        parts = [(mass[a:b], v[a:b]) for a, b in cut]
        return sum(float(m @ (w - m @ w / m.sum()) ** 2) for m, w in parts)

    borders = list(range(1, 7))
    for j, cost in zip(order.tolist(), paid, strict=True):
        costs = {i: squares([k for k in borders if k != i]) - squares(borders) for i in borders}
        assert j == min(costs, key=costs.get)
        assert cost == pytest.approx(costs[j])
        borders.remove(j)


def test_a_shape_of_one_knot_has_nowhere_to_go():
    order, paid = leave_in_turn(True, np.zeros(1), np.zeros(1), np.zeros((2, 6)))
    assert len(order) == len(paid) == 0


@pytest.mark.parametrize("model", [SparseAdditiveClassifier(cv=3), SparseRulesClassifier(cv=3)])
def test_forms_of_folds_say_what_was_held_out(model):
    draw = np.random.default_rng(3)
    X = draw.normal(size=(240, 3))
    y = (X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * draw.normal(size=240) > 0).astype(int)
    model._keeps_forms = True
    model.fit(X, y)
    told = np.zeros(240)
    for rows, form in model._held_out_forms:
        score = form.score(model._read_rows(X[rows]))[:, 0]
        np.testing.assert_allclose(
            1 / (1 + np.exp(-score)), model.held_out_proba_[rows, 1], atol=1e-6
        )
        told[rows] += 1
    assert (told == 1).all()


def test_a_short_form_is_left_alone():
    form = AdditiveScore((0, 1), np.zeros(1), (LineTerm("u", np.array([0.01])),))
    table = _table(np.random.default_rng(0))
    assert Shortening(form, table, np.ones(1000)).to(300) == form


@pytest.mark.parametrize("settled", [False, True])
def test_what_never_falls_never_falls_on_a_page(settled):
    """The columns are nearly one: least squares alone would trade one shape against the other."""
    draw = np.random.default_rng(4)
    u = draw.normal(size=500)
    table = Table(
        ("u", "v"), ("numeric",) * 2, (None,) * 2, columns=(u, u + 0.05 * draw.normal(size=500))
    )
    knots = np.linspace(-2, 2, 15)
    stairs = np.append(np.cumsum(np.arange(15) % 2), 0.0)[:, None]
    wild = np.append(draw.normal(size=15), 0.0)[:, None]
    axes = (KnotAxis(knots, np.empty(0)),)
    terms = (SlotTerm(("u",), axes, stairs), SlotTerm(("v",), axes, wild))
    form = AdditiveScore((0, 1), np.zeros(1), terms)
    for most in (28, 24, 20, 16):
        page = Shortening(form, table, np.ones(500)).to(most, settled=settled)
        own = next(term for term in page.terms if term.columns == ("u",))
        assert (np.diff(own.values[:-1, 0]) >= 0).all()


def test_scores_of_many_classes_do_not_empty_a_page():
    """A tree that is kept for one class of five counts for all: what is left must not be cut off.

    Forty trees of three leaves and five classes are 600 entries; each class needs trees of its own.
    """
    draw = np.random.default_rng(0)
    axis = IntervalAxis(np.linspace(0.1, 0.9, 9))
    terms = []
    for t in range(40):
        values = 0.1 * draw.normal(size=(5, 5))
        values[:, t % 5] *= 10.0
        terms.append(
            RulesTerm(
                ("abcd"[t % 4],), (axis,), (np.arange(axis.size),), np.array([0, 0, -1, -1, -1]),
                np.array([draw.integers(4, 8), draw.integers(1, 4), 0, 0, 0]),
                np.array([1, 3, 0, 0, 0]), np.array([2, 4, 0, 0, 0]), values,
            )
        )  # fmt: skip
    form = AdditiveScore((0, 1, 2, 3, 4), np.zeros(5), tuple(terms), link="softmax")
    assert form_size(form) == 600
    rows = Table(tuple("abcd"), ("numeric",) * 4, (None,) * 4, matrix=draw.random((400, 4)))
    for most in (300, 120):
        page = Shortening(form, rows, np.ones(400)).to(most)
        assert 0.4 * most <= form_size(page) <= most


def test_squares_off_a_chord_are_those_of_its_points():
    draw = np.random.default_rng(5)
    x, v, mass = (
        np.cumsum(draw.uniform(0.1, 3.0, 12)) + 1e4,
        draw.normal(size=12),
        draw.uniform(size=12),
    )
    sums = chord_sums(x, v, mass)
    for a, b in itertools.combinations(range(12), 2):
        drawn = np.interp(x[a : b + 1], x[[a, b]], v[[a, b]])
        assert squares_off_chord(*sums, a, b) == pytest.approx(
            mass[a : b + 1] @ (v[a : b + 1] - drawn) ** 2, abs=1e-12
        )
