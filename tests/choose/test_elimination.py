"""Entries leave one at a time: against brute force, which fits what is left after every removal."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from laconic.choose.page.elimination import Elimination, Squares
from laconic.choose.page.parts import Part, parts_of
from laconic.choose.page.shortening import Shortening
from laconic.core.forms import AdditiveScore, LineTerm, SlotTerm
from laconic.data.tables.axes import KnotAxis
from laconic.data.tables.columns import Table

KNOTS = np.array([0.0, 1.0, 2.5, 3.0])
NONE = np.empty(0)


def _part(t, kind, values, places=None, price=1):
    slots = np.arange(len(values) if places is None else len(places))
    places = np.arange(len(values)) if places is None else np.asarray(places)
    return Part(t, 0, kind, slots, places, np.asarray(values), KNOTS, price)


def _parts(draw):
    return [
        _part(0, "shape", draw.normal(size=4)),
        _part(0, "apart", draw.normal(size=2), places=[0, 1, -1]),
        _part(1, "levels", draw.normal(size=4)),
        _part(2, "line", draw.normal(size=1)),
        _part(3, "tree", draw.normal(size=1), places=[0], price=3),
    ]


def _squares(draw):
    parts = _parts(draw)
    values = np.concatenate([[0.3], *(part.values for part in parts)])
    X = draw.normal(size=(30, len(values))) @ np.diag(draw.uniform(0.1, 3.0, len(values)))
    X[:, 3] = X[:, 6] + 0.05 * X[:, 3]  # entries of two parts move together
    return Squares(parts, values, X.T @ X + 0.1 * np.eye(len(values)))


def _basis(squares, left):
    """(entries, free numbers): what the entries of the first parts may be, given those left."""
    columns = [np.eye(len(squares.values))[:, 0]]
    at = 1
    kept = {(part.term, part.kind): part for part in left}
    for part in squares.parts:
        n = len(part.values)
        own = kept.get((part.term, part.kind))
        if own is not None:
            if part.kind == "shape":
                x = KNOTS[own.places]
                made = [np.interp(KNOTS, x, hat) for hat in np.eye(len(x))]
            elif part.kind in ("levels", "apart"):
                first = [int(np.flatnonzero(part.places == e)[0]) for e in range(n)]
                made = [own.places[first] == e for e in range(len(own.values))]
            else:
                made = [np.ones(1)]
            for column in made:
                columns.append(np.zeros(len(squares.values)))
                columns[-1][at : at + n] = column
        at += n
    return np.column_stack(columns)


def _least(squares, left):
    """The least squares with these parts left, and the entries there."""
    B = _basis(squares, left)
    H = squares.curvature
    entries = B @ np.linalg.solve(B.T @ H @ B, B.T @ H @ squares.values)
    return float((entries - squares.values) @ H @ (entries - squares.values)), entries


def _neighbours(left, values_of):
    """What may be left after one removal, and how many entries that spares."""
    apart = any(part.kind == "apart" for part in left)
    for i, part in enumerate(left):
        others, n = left[:i] + left[i + 1 :], len(part.values)
        if part.kind in ("line", "tree"):
            yield others, part.price
        elif part.kind == "shape":
            if n == 2 and not apart:
                yield others, 2
            for j in range(1, n - 1):
                fewer = replace(part, places=np.delete(part.places, j), values=part.values[1:])
                yield [*others, fewer], 1
        else:
            order = np.argsort(values_of[part.term, part.kind], kind="stable")
            if part.kind == "levels" and n == 2:
                yield others, 2
                continue
            for a, b in pairwise(order):
                yield [*others, _joined(part, int(b), int(a))], 1
            if part.kind == "apart":
                for e in range(n):
                    fewer = _joined(part, e, -1)
                    yield ([*others, fewer] if len(fewer.values) else others), 1


def _joined(part, gone, into):
    places = np.where(part.places == gone, into, part.places)
    places = places - (places > gone)
    return replace(part, places=places, values=part.values[1:])


@pytest.mark.parametrize("seed", range(8))
def test_every_step_is_the_cheapest_one_and_all_others_take_over(seed):
    squares = _squares(np.random.default_rng(seed))
    path = Elimination([squares])
    left, size, spent = list(squares.parts), path.size, 0.0
    assert size == 14
    while size > 0:
        values_of = {(part.term, part.kind): part.values for part in left}
        found = []
        for parts, spares in _neighbours(left, values_of):
            found.append((_least(squares, parts)[0] - spent) / spares)
        before = size
        intercept, left = path.to(size - 1)
        size = path.size
        now, entries = _least(squares, left)
        assert (now - spent) / (before - size) == pytest.approx(min(found), rel=1e-6, abs=1e-9)
        spent = now
        assert intercept[0] == pytest.approx(entries[0])
        B = _basis(squares, left)
        own = np.concatenate([intercept, *(part.values for part in left)])
        np.testing.assert_allclose(B @ own, entries, atol=1e-8)
    assert not left


def test_the_scores_of_many_classes_share_one_page():
    """What costs a million times as much stays until all else has left."""
    squares = _squares(np.random.default_rng(0))
    dear = [replace(part, score=1) for part in squares.parts]
    both = Elimination([squares, Squares(dear, squares.values, 1e6 * squares.curvature)])
    intercepts, left = both.to(14)
    assert len(intercepts) == 2
    assert [(part.score, part.kind) for part in left] == [(1, part.kind) for part in dear]
    for part, whole in zip(left, dear, strict=True):
        np.testing.assert_allclose(np.sort(part.values), np.sort(whole.values))


def test_a_line_that_a_shape_says_leaves_for_nothing():
    """Alone, a bend of the shape would cost less than the steep line."""
    values = np.append(np.random.default_rng(1).normal(size=5), 0.0)[:, None]
    shape = SlotTerm(("x",), (KnotAxis(np.arange(5.0), NONE),), values)
    form = AdditiveScore((0, 1), np.zeros(1), (shape, LineTerm("x", np.array([0.2]))))
    table = Table(("x",), ("numeric",), (None,), matrix=np.tile(np.arange(5.0), 40)[:, None])
    page = Shortening(form, table, np.ones(200)).to(5)
    assert [type(term) for term in page.terms] == [SlotTerm]
    np.testing.assert_allclose(page.score(table), form.score(table), atol=0.02)


def test_a_shape_beside_missing_cells_is_not_taken_for_the_intercept():
    """A shape that is level still tells who has a number: it leaves last."""
    values = np.array([1.0, 1.02, 0.98, 0.0])[:, None]
    level = SlotTerm(("x",), (KnotAxis(np.arange(3.0), NONE),), values)
    line = LineTerm("z", np.array([0.3]))
    form = AdditiveScore((0, 1), np.zeros(1), (level, line))
    draw = np.random.default_rng(2)
    x, z = draw.integers(0, 3, 300).astype(float), draw.normal(size=300)
    x[:150] = np.nan
    table = Table(("x", "z"), ("numeric",) * 2, (None,) * 2, columns=(x, z))
    assert [term.columns for term in Shortening(form, table, np.ones(300)).to(2).terms] == [("x",)]


def test_directions_are_those_of_the_long_form():
    falls = SlotTerm(
        ("x",), (KnotAxis(np.arange(3.0), NONE),), np.array([[2.0], [2.0], [1.0], [9]])
    )
    assert [part.sign for part in parts_of(falls, 0, 0)] == [-1.0, 0.0]
    assert parts_of(LineTerm("x", np.array([-0.5])), 0, 0)[0].sign == -1.0
