"""Pages drawn with fewer entries stay within the reach they promise."""

from __future__ import annotations

import numpy as np
import pytest

from laconic.choose.blends import drawn_form, drawn_to_fit, form_size
from laconic.core.forms import AdditiveScore, LineTerm, SlotTerm
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
    classes, link = ((0, 1), "logit") if n_scores == 1 else ((0, 1, 2), "softmax")
    return AdditiveScore(classes, np.zeros(n_scores), (*terms, grid, line), link)


def _table(draw, n=2000):
    u, v = np.round(draw.normal(size=(2, n)), 2)
    u[:50], u[50:100], v[:20] = 7.0, np.nan, np.nan
    w = draw.integers(-2, 5, n).astype(np.int32)
    kinds = ("numeric", "numeric", "categorical")
    return Table(("u", "v", "w"), kinds, (None, None, TEXTS), columns=(u, v, w))


@pytest.mark.parametrize("n_scores", [1, 3])
@pytest.mark.parametrize("reach", [0.02, 0.1, 0.5])
def test_no_term_moves_beyond_the_reach(n_scores, reach):
    shorter = 0
    for seed in range(5):
        draw = np.random.default_rng(seed)
        form, table = _form(draw, n_scores), _table(draw)
        drawn = drawn_form(form, reach)
        for before, after in zip(form.terms, drawn.terms, strict=True):
            moved = np.abs(before.contribution(table) - after.contribution(table)).max()
            assert moved <= reach + 1e-12
            assert moved == 0.0 or len(before.columns) == 1
        assert form_size(drawn) <= form_size(form)
        shorter += form_size(drawn) < form_size(form)
    assert shorter or reach < 0.1


def test_the_least_reach_that_fits_is_taken():
    draw = np.random.default_rng(0)
    knots = np.arange(30.0)
    values = np.append(np.cumsum(draw.normal(scale=0.1, size=30)), 0.0)[:, None]
    form = AdditiveScore(
        (0, 1), np.zeros(1), (SlotTerm(("x",), (KnotAxis(knots, np.empty(0)),), values),)
    )
    sizes = [form_size(drawn_form(form, reach)) for reach in (0.05, 0.1, 0.3)]
    assert sizes[0] > sizes[1] > sizes[2]
    for most, expected in ((sizes[0], 0.05), (sizes[0] - 1, 0.1), (sizes[2], 0.3), (1, 0.3)):
        drawn, reach = drawn_to_fit(form, most, (0.05, 0.1, 0.3))
        assert reach == expected
        assert form_size(drawn) == form_size(drawn_form(form, reach))


def test_a_drawing_that_spares_nothing_is_left_undone():
    form = AdditiveScore((0, 1), np.zeros(1), (LineTerm("x", np.array([0.01])),))
    assert drawn_to_fit(form, 300) == (form, 0.0)
