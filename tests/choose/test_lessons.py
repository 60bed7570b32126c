"""Rows that teach a page: few ones get company that depends on values alone."""

import numpy as np
import pytest

from laconic.choose.page.lessons import Lesson
from laconic.choose.page.shortening import Shortening
from laconic.choose.tuning import MINGLED_ROWS
from laconic.core.contract import Training
from laconic.core.forms import AdditiveScore, LineTerm, SlotTerm
from laconic.data.tables.axes import KnotAxis
from laconic.data.tables.columns import Table


def numbers(matrix, names=None):
    names = tuple(f"x{j}" for j in range(matrix.shape[1])) if names is None else names
    nothing = (None,) * len(names)
    return Table(names, ("numeric",) * len(names), nothing, matrix=np.ascontiguousarray(matrix))


def training(matrix, y, weight=None, names=None):
    weight = np.ones(len(y)) if weight is None else weight
    return Training(numbers(matrix, names), y, weight, np.arange(len(y)))


def lines(names):
    terms = tuple(LineTerm(name, np.ones(1), 0.0, np.zeros(1)) for name in names)
    return AdditiveScore((0, 1), np.zeros(1), terms)


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    x = rng.normal(size=90)
    X = np.column_stack([x, x + 0.1 * rng.normal(size=90), rng.integers(0, 3, 90)])
    return X, (rng.random(90) < 0.5).astype(np.int64)


def drawn(X, y, weight=None, names=("x0", "x1", "x2")):
    """Rows of the lesson in the columns x0, x1, x2, sorted, with their weights."""
    table, weight = Lesson.of(training(X, y, weight, names)).rows_for(lines(names))
    cells = np.column_stack([table.column(table.place(name)) for name in ("x0", "x1", "x2")])
    order = np.lexsort(cells.T)
    return cells[order], weight[order]


def test_places_of_rows_and_columns_change_nothing(rows):
    X, y = rows
    cells, weight = drawn(X, y)
    assert MINGLED_ROWS <= len(cells) < MINGLED_ROWS + 90
    order = np.random.default_rng(0).permutation(90)
    moved = drawn(X[order], y[order])
    np.testing.assert_array_equal(moved[0], cells)
    turned = drawn(X[:, [2, 0, 1]], y, names=("x2", "x0", "x1"))
    np.testing.assert_array_equal(turned[0], cells)
    np.testing.assert_array_equal(turned[1], weight)


def test_a_weight_of_two_is_two_rows(rows):
    X, y = rows
    weight = np.where(np.arange(90) < 30, 2.0, 1.0)
    cells, mass = drawn(X, y, weight)
    twice = drawn(np.vstack([X, X[:30]]), np.append(y, y[:30]))
    kept, place = np.unique(cells, axis=0, return_inverse=True)
    again, where = np.unique(twice[0], axis=0, return_inverse=True)
    np.testing.assert_array_equal(kept, again)
    np.testing.assert_allclose(np.bincount(place, mass), np.bincount(where, twice[1]))


def test_columns_keep_their_laws_and_half_of_what_they_do_together(rows):
    X, y = rows
    table, _ = Lesson.of(training(X, y)).rows_for(lines(("x0", "x1", "x2")))
    cells = np.column_stack([table.column(j) for j in range(3)])
    own, mingled = cells[:90], cells[90:]
    assert set(mingled[:, 0]) <= set(X[:, 0])
    assert abs(mingled[:, 0].mean() - X[:, 0].mean()) < 0.15
    together = np.corrcoef(mingled[:, :2].T)[0, 1]
    # both cells are the row's own a quarter of the time
    assert 0.12 < together < 0.4
    assert 0.4 < np.mean(mingled[:, 0] == np.tile(own[:, 0], len(mingled) // 90)) < 0.6


def test_equal_rows_draw_once():
    """Of 14 different rows among a thousand, all thousand were copied a hundred times."""
    X = np.tile(np.arange(14.0)[:, None], (80, 3))
    table, weight = Lesson.of(training(X, np.arange(len(X)) % 2)).rows_for(lines(("x0", "x1")))
    assert MINGLED_ROWS <= table.n_rows < MINGLED_ROWS + 14
    assert set(weight) == {80.0}


def test_many_rows_stay_as_they_are():
    X = np.random.default_rng(0).normal(size=(MINGLED_ROWS, 2))
    table, weight = Lesson.of(training(X, np.arange(len(X)) % 2)).rows_for(lines(("x0",)))
    assert table.n_rows == len(weight) == MINGLED_ROWS
    assert table.names == ("x0", "x1")


def test_a_page_of_few_rows_says_what_the_long_form_says_of_others():
    rng = np.random.default_rng(1)
    n_columns, off = 12, []
    axis = KnotAxis(np.linspace(-2.0, 2.0, 9), np.empty(0))
    names = tuple(f"x{j}" for j in range(n_columns))
    terms = []
    for name in names:
        values = np.append(np.cumsum(rng.normal(size=9)), 0.0)[:, None]
        terms.append(SlotTerm((name,), (axis,), values))
    form = AdditiveScore((0, 1), np.zeros(1), tuple(terms))
    X, new = rng.normal(size=(60, n_columns)), numbers(rng.normal(size=(2000, n_columns)), names)
    own = training(X, np.arange(60) % 2, names=names)
    for table, weight in (Lesson.of(own).rows_for(form), (own.table, own.weight)):
        page = Shortening(form, table, weight).to(48)
        off.append(float(((page.score(new) - form.score(new)) ** 2).mean()))
    assert off[0] < 0.75 * off[1]
