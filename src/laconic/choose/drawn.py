"""The same score with fewer entries: fewer bends in a shape, levels that nearly agree joined.

Each term moves by at most ``reach`` (in log-odds) at any value of its column, so that the score of
a row moves by at most ``reach`` times the number of terms. A path in size: the larger the reach,
the shorter the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from laconic._typing import Floats
from laconic.choose.tuning import REACHES
from laconic.core.compact import bend_places, term_size
from laconic.core.forms import AdditiveScore, SlotTerm, Term
from laconic.data.tables.axes import KnotAxis


def form_size(form: AdditiveScore) -> int:
    """Entries that a reader must look at."""
    return sum(term_size(term) for term in form.terms)


def drawn_form(form: AdditiveScore, reach: float) -> AdditiveScore:
    """The form with every shape and table of one column drawn within ``reach``.

    >>> axis = KnotAxis(np.array([0.0, 1.0, 2.0, 3.0]), np.empty(0))
    >>> values = np.array([[0.0], [0.98], [2.02], [3.0], [0.04]])
    >>> form = AdditiveScore((0, 1), np.zeros(1), (SlotTerm(("x",), (axis,), values),))
    >>> drawn = drawn_form(form, 0.05)
    >>> drawn.terms[0].axes[0].knots.tolist(), drawn.terms[0].values.ravel().tolist()
    ([0.0, 3.0], [0.0, 3.0, 0.0])
    """
    return replace(form, terms=tuple(drawn_term(term, reach) for term in form.terms))


def drawn_term(term: Term, reach: float) -> Term:
    """A shape or table of one column within ``reach``; lines, grids and trees as they are."""
    if not isinstance(term, SlotTerm) or len(term.axes) > 1:
        return term
    axis, values = term.axes[0], np.asarray(term.values)
    if not isinstance(axis, KnotAxis):
        return replace(term, values=_joined(values, reach))
    n = len(axis.knots)
    kept = bend_places(axis.knots, values[:n], reach)
    apart = _joined(values[n:], reach)
    fewer = KnotAxis(axis.knots[kept], axis.specials)
    return SlotTerm(term.columns, (fewer,), np.vstack([values[kept], apart]))


def _joined(values: Floats, reach: float) -> Floats:
    """Each score's levels that lie within ``reach`` of one number as that number, zero first."""
    out = np.array(values)
    for own in out.T:
        own[np.abs(own) <= reach] = 0.0
        left = np.unique(own[own != 0.0])
        while len(left):
            near = left[left <= left[0] + 2.0 * reach]
            # levels of both signs are never joined: one of them would change its meaning
            near = near[np.sign(near) == np.sign(left[0])]
            own[np.isin(own, near)] = (near[0] + near[-1]) / 2.0
            left = left[len(near) :]
    return out


def drawn_to_fit(
    form: AdditiveScore, most: float, reaches: Sequence[float] = REACHES
) -> tuple[AdditiveScore, float]:
    """The form at the least reach with at most ``most`` entries (else the largest), and the reach.

    A drawing that spares nothing is left undone: its reach is zero.
    """
    drawn, reach = form, 0.0
    for reach in reaches:
        drawn = drawn_form(form, reach)
        if form_size(drawn) <= most:
            break
    return (drawn, reach) if form_size(drawn) < form_size(form) else (form, 0.0)
