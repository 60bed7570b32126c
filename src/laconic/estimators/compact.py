"""A fitted model in a few lines, for notebooks."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from laconic.estimators.model_size import model_size, variables_of

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
        found.append(("threshold", f"{float(model.threshold_):.4g}"))
    gap = getattr(inner, "duality_gap_", None)
    if gap is not None and np.ndim(gap) == 0 and np.isfinite(gap):
        found.append(("within", f"{float(gap):.2g} of the best objective, certified"))
    return [(name, text) for name, text in found if text]


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
