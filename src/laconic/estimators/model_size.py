"""The size of a model: how many entries a reader must look at.

One definition for every family, so that sizes can be compared:

* a line is one entry (two with a value of its own for missing);
* a table is one entry for each different value in it: parts that share a value are read as one;
* a shape is one entry for each bend needed to draw it within 2 % of its range, and for each
  special value;
* a grid of two columns is one entry for each different cell;
* a tree is one entry for each leaf;
* a kernel model is one entry for each number of its support examples;
* a minimax rule is one entry for each profile.

With K > 2 classes, entries count once for each class that has a score of its own. The intercept is
not counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.data.axes import KnotAxis
from laconic.estimators.forms import AdditiveScore, LineTerm, SlotTerm, Term
from laconic.estimators.rule_terms import RulesTerm

Floats = NDArray[np.float64]

_SEEN = 0.02


def model_size(model: Any) -> float:
    """Entries of a fitted classifier of this library; NaN for a model that it does not know.

    >>> import numpy as np
    >>> from laconic import GrayZoneLogisticRegression
    >>> X, y = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0], [3.0, 0.5]]), [0, 0, 1, 1]
    >>> model_size(GrayZoneLogisticRegression().fit(X, y))
    2.0
    """
    form = additive_form(model)
    if form is not None:
        return float(sum(term_size(term) for term in form.terms))
    if hasattr(model, "n_profiles_"):
        return float(model.n_profiles_)
    if hasattr(model, "support_vectors_"):
        return float(np.size(model.support_vectors_))
    if hasattr(model, "votes_"):
        return float(sum(_voters_size(vote.voters) for vote in model.votes_))
    return float("nan")


def variables_of(model: Any) -> float:
    """Columns that a fitted classifier reads; NaN when it is not known."""
    form = additive_form(model)
    if form is not None:
        return float(len(form.columns))
    return float(getattr(model, "n_features_in_", np.nan))


def term_size(term: Term) -> int:
    """Entries of one term."""
    if isinstance(term, LineTerm):
        assert term.missing is not None
        return int((term.slope != 0).sum() + (term.missing != 0).sum())
    if isinstance(term, RulesTerm):
        return int(term.n_leaves * term.n_scores)
    return sum(_values_size(term, k) for k in range(term.n_scores))


def _values_size(term: SlotTerm, k: int) -> int:
    values = term.values[..., k]
    axis = term.axes[0]
    if len(term.axes) == 2 or not isinstance(axis, KnotAxis):
        return len(np.unique(values))
    shape, own = values[: len(axis.knots)], values[len(axis.knots) :]
    bends = _bends(axis.knots, shape, _SEEN * float(np.ptp(values)))
    return bends + len(np.unique(own[own != 0]))


def _bends(knots: Floats, values: Floats, reach: float) -> int:
    """Points of a polygon that stays within ``reach`` of the shape, ends included."""
    kept, stack = {0, len(knots) - 1}, [(0, len(knots) - 1)]
    while stack:
        a, b = stack.pop()
        if b - a < 2:
            continue
        drawn = np.interp(knots[a : b + 1], knots[[a, b]], values[[a, b]])
        off = np.abs(values[a : b + 1] - drawn)
        worst = int(off.argmax())
        if off[worst] > reach:
            kept.add(a + worst)
            stack += [(a, a + worst), (a + worst, b)]
    return len(kept)


def additive_form(model: Any) -> AdditiveScore | None:
    try:
        form = model.form_
    except (AttributeError, ValueError):
        return None
    return form if isinstance(form, AdditiveScore) else None


def _voters_size(voters: Any) -> int:
    trees = getattr(voters, "trees", None)
    if trees is not None:
        return int(sum(tree.get_n_leaves() for tree in trees))
    return len(voters.rules())
