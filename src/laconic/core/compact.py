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

from html import escape
from typing import Any

import numpy as np

from laconic._typing import Floats
from laconic.core.forms import AdditiveScore, LineTerm, RulesTerm, SlotTerm, Term
from laconic.data.tables.axes import KnotAxis

_SEEN = 0.02  # share of the range that an eye does not miss; by convention


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
    bends = bend_places(axis.knots, shape[:, None], _SEEN * float(np.ptp(values)))
    return len(bends) + len(np.unique(own[own != 0]))


def bend_places(knots: Floats, values: Floats, reach: float) -> list[int]:
    """Knots of a polygon that stays within ``reach`` of every score of a shape, ends included.

    >>> knots = np.array([0.0, 1.0, 2.0, 3.0])
    >>> bend_places(knots, np.array([[0.0], [1.0], [2.0], [0.0]]), 0.1)
    [0, 2, 3]
    """
    kept, stack = {0, len(knots) - 1}, [(0, len(knots) - 1)]
    while stack:
        a, b = stack.pop()
        if b - a < 2:
            continue
        x, ends = knots[a : b + 1], knots[[a, b]]
        off = np.zeros(b - a + 1)
        for own in values.T:
            off = np.maximum(off, np.abs(own[a : b + 1] - np.interp(x, ends, own[[a, b]])))
        worst = int(off.argmax())
        if off[worst] > reach:
            kept.add(a + worst)
            stack += [(a, a + worst), (a + worst, b)]
    return sorted(kept)


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


# A fitted model in a few lines, for notebooks.


_MOST_NAMES = 8


def facts(model: Any) -> list[tuple[str, str]]:
    """What a reader wants first: classes, columns, size, threshold, certificate."""
    inner = getattr(model, "estimator_", model)
    found = [("classes", _some([str(name) for name in getattr(model, "classes_", ())]))]
    if hasattr(model, "candidate_"):
        found.append(("kept", str(model.candidate_)))
    columns = _columns(inner)
    variables = variables_of(inner)
    if np.isfinite(variables):
        found.append(("columns read", f"{variables:.0f}" + (f": {columns}" if columns else "")))
    size = model_size(inner)
    if np.isfinite(size):
        found.append(("entries to look at", f"{size:,.0f}"))
    if hasattr(model, "threshold_"):
        found.append(_threshold_fact(model))
    gap = getattr(inner, "duality_gap_", None)
    if gap is not None and np.isfinite(gap).all():
        found.append(("within", f"{float(np.max(gap)):.2g} of the best objective, certified"))
    return [(name, text) for name, text in found if text]


def _threshold_fact(model: Any) -> tuple[str, str]:
    """Which class is decided above which probability; the positive one where it is known."""
    classes, above = model.classes_.tolist(), float(model.threshold_)
    positive = getattr(model, "positive_", None)
    if positive == classes[0]:
        return "decides", f"{positive!r} (positive) from a probability of {1.0 - above:.4g} on"
    said = f"{classes[1]!r}" + (" (positive)" if positive == classes[1] else "")
    return "decides", f"{said} above a probability of {above:.4g}"


def compact_html(model: Any) -> str:
    """The facts as a small table; nothing before the fit."""
    if not hasattr(model, "classes_"):
        return ""
    rows = "".join(
        f"<tr><th style='text-align:left;padding:0 1em 0 0'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(text)}</td></tr>"
        for name, text in facts(model)
    )
    return f"<table style='margin:0 0 .5em 0'>{rows}</table>"


def _columns(model: Any) -> str:
    try:
        names = list(model.form_.columns)
    except (AttributeError, ValueError):
        return ""
    return _some([str(name) for name in names])


def _some(names: list[str]) -> str:
    shown = [name if len(name) <= 40 else name[:39] + "\u2026" for name in names[:_MOST_NAMES]]
    return ", ".join(shown) + (", ..." if len(names) > _MOST_NAMES else "")
