"""The model itself, as the page draws it: terms with their parts, rules, or profiles."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.data.axes import CategoryAxis, encode_column
from laconic.data.columns import Table
from laconic.data.profiles import BinGrid
from laconic.estimators.forms import AdditiveScore, LineTerm, SlotTerm, Term
from laconic.estimators.minimax import MinimaxClassifier
from laconic.reporting.measured import Measured, rows_at

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DESCRIBED_ROWS = 50_000
"""Rows that describe the parts of a variable: shares and class rates need no more."""
LARGEST_FORM = 1_200_000
"""Characters of a model that a page embeds; a larger one is listed, not drawn."""
CHECKED_ROWS = 500
MOST_LISTED = 400

_AGREE = 1e-9


def some_rows(n_rows: int, most: int) -> Ints:
    """Evenly spaced places, all of them when there are few."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.linspace(0, n_rows - 1, most).astype(np.int64)


def describe_model(rows: Measured, X: Any, k: int) -> dict[str, Any]:
    """What the fitted model is, in numbers and texts.

    ``kind`` is "additive" (with ``columns``, ``terms`` and the ``form``), "rules", "profiles" or
    "other". ``k`` is the class whose rates are shown.
    """
    inner = rows.inner
    found: dict[str, Any] = {"family": type(inner).__name__, "kind": "other"}
    form, why_not = form_of(inner)
    if form is not None:
        found |= _describe_form(form, rows, X, k)
    elif isinstance(inner, MinimaxClassifier):
        found |= _describe_profiles(inner)
    if why_not is not None:
        found["why_not"] = why_not
    if hasattr(inner, "rules"):
        listed = inner.rules()
        found |= {
            "kind": "rules" if found["kind"] == "other" else found["kind"],
            "rules": [[float(weight), str(text)] for weight, text in listed[:MOST_LISTED]],
            "n_rules": len(listed),
        }
    found["size"] = model_size(found, inner)
    return found


def form_of(inner: Any) -> tuple[AdditiveScore | None, str | None]:
    """The model as a sum of parts, or the reason that it gives for not being one."""
    try:
        form = getattr(inner, "form_", None)
    except ValueError as reason:
        return None, str(reason)[:300]
    readable = isinstance(form, AdditiveScore) and hasattr(inner, "_read_rows")
    return (form if readable else None), None


def model_size(found: dict[str, Any], inner: Any) -> dict[str, Any]:
    """How much there is to read: a count and what is counted."""
    if found["kind"] == "additive":
        return {"count": found["n_columns"], "unit": "columns"}
    if found["kind"] == "rules":
        return {"count": found["n_rules"], "unit": "rules"}
    if found["kind"] == "profiles":
        return {"count": found["n_profiles"], "unit": "profiles"}
    width = getattr(inner, "n_features_in_", None)
    return {"count": None if width is None else int(width), "unit": "columns"}


def _describe_form(form: AdditiveScore, rows: Measured, X: Any, k: int) -> dict[str, Any]:
    places = some_rows(rows.n_rows, DESCRIBED_ROWS)
    table = rows.inner._read_rows(rows_at(X, places))
    truth = rows.truth[places]
    terms = [_describe_term(term, table, truth == k) for term in form.terms]
    order = sorted(range(len(terms)), key=lambda t: -terms[t]["importance"])
    found: dict[str, Any] = {
        "kind": "additive",
        "n_columns": len(form.columns),
        "n_terms": len(terms),
        "drawn_twice": len({term.columns for term in form.terms}) < len(form.terms),
        "described_rows": len(places),
        "order": order,
        "importance": [
            [name_of(form.terms[t]), terms[t]["importance"]] for t in order[:MOST_LISTED]
        ],
        "form": None,
        "what_if": False,
    }
    embedded = form.to_dict() | {"terms": terms}
    columns = [_describe_column(name, form, table) for name in form.columns]
    if len(json.dumps([embedded, columns])) > LARGEST_FORM:
        return found
    found |= {"form": embedded, "columns": columns}
    found["what_if"] = bool(form.terms) and _agrees(form, rows, table, places)
    return found


def name_of(term: Term) -> str:
    """The columns that a term reads, in one text."""
    return " \u00d7 ".join(term.columns)


def _agrees(form: AdditiveScore, rows: Measured, table: Table, places: Ints) -> bool:
    """Whether the form's probabilities are the model's: else the page computes none."""
    if rows.raw is None or form.link == "identity":
        return False
    few = min(len(places), CHECKED_ROWS)
    gap = np.abs(form.proba(table[:few]) - rows.raw[places[:few]]).max(initial=0.0)
    return bool(gap <= _AGREE)


def _describe_term(term: Term, table: Table, hit: NDArray[np.bool_]) -> dict[str, Any]:
    given = term.contribution(table)
    found = term.to_dict() | {"importance": float(given.std(axis=0).max(initial=0.0))}
    if isinstance(term, SlotTerm) and len(term.axes) == 1:
        j = table.names.index(term.columns[0])
        slot, way = encode_column(term.axes[0], table, j)
        nearest = slot + (way >= 0.5)
        mass = np.bincount(nearest, minlength=term.axes[0].size)
        hits = np.bincount(nearest, weights=hit, minlength=term.axes[0].size)
        found["mass"] = (mass / max(len(hit), 1)).tolist()
        found["rate"] = [float(h / m) if m else None for h, m in zip(hits, mass, strict=True)]
    if isinstance(term, LineTerm):
        found["reach"] = _reach(table.column(table.names.index(term.column)))
    return found


def _reach(values: NDArray[Any]) -> list[float] | None:
    """Quantiles 0, 5, 25, 50, 75, 95 and 100 % of the values that are there."""
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    if not len(known):
        return None
    levels = [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0]
    return [float(q) for q in np.quantile(known, levels, method="inverted_cdf")]


def _describe_column(name: str, form: AdditiveScore, table: Table) -> dict[str, Any]:
    """What the what-if form offers for a column: texts to choose from, or a number."""
    j = table.names.index(name)
    values = table.column(j)
    if table.kinds[j] == "categorical":
        texts = [text for term in form.terms for text in _texts_of(term, name)]
        counts = np.bincount(values[values >= 0], minlength=1)
        known = table.categories[j] or ()
        likeliest = known[int(counts.argmax())] if counts.any() else None
        return {
            "name": name,
            "kind": "categorical",
            "texts": list(dict.fromkeys(texts)),
            "start": likeliest,
        }
    reach = _reach(values)
    missing = bool(np.isnan(values).mean() > 0.5)
    return {
        "name": name,
        "kind": table.kinds[j],
        "start": None if reach is None or missing else float(f"{reach[3]:.4g}"),
        "reach": reach,
    }


def _texts_of(term: Term, name: str) -> list[str]:
    if isinstance(term, LineTerm):
        return []
    return [
        text
        for column, axis in zip(term.columns, term.axes, strict=True)
        if column == name and isinstance(axis, CategoryAxis)
        for group in axis.groups
        for text in group
    ]


def _describe_profiles(model: MinimaxClassifier) -> dict[str, Any]:
    """Profiles of a minimax rule: the heaviest, with their shares by class and the decision."""
    fitted = model.model_
    weights = fitted.laws.rows(0, fitted.index.n_profiles)
    mass = weights @ fitted.class_prior
    heaviest = np.argsort(-mass, kind="stable")[:60]
    decisions = fitted.rule.decide(heaviest)
    codes = fitted.index.codes()[heaviest]
    names = _profile_names(model, codes)
    return {
        "kind": "profiles",
        "n_profiles": int(fitted.index.n_profiles),
        "profiles": [
            {
                "name": names[i],
                "mass": float(mass[t]),
                "law": weights[t].tolist(),
                "decides": decisions[i].tolist(),
            }
            for i, t in enumerate(heaviest)
        ],
    }


def _profile_names(model: MinimaxClassifier, codes: Ints) -> list[list[str]]:
    """For each profile, one text per column; "group 7" where profiles are clusters or leaves."""
    coder = model.model_.coder
    if not isinstance(coder, BinGrid):
        return [[f"#{int(row[0])}"] for row in codes]
    schema = model.schema_
    return [
        [
            f"{name} {_bin_text(coder.columns[j], int(row[j]), schema.categories[j])}"
            for j, name in enumerate(schema.names[:8])
        ]
        for row in codes
    ]


def _bin_text(column: Any, code: int, texts: tuple[str, ...] | None) -> str:
    if code == column.n_bins:
        return "= missing"
    if code > column.n_bins:
        return "= unseen"
    if column.cuts is None:
        return f"= {texts[code]}" if texts else f"= {code}"
    low = "" if code == 0 else f"> {column.cuts[code - 1]:.4g}"
    high = "" if code == len(column.cuts) else f"≤ {column.cuts[code]:.4g}"
    return f"{low} {high}".strip() or "any"
