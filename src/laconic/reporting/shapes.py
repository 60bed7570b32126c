"""The model itself, as the page draws it: terms with their parts, rules, or profiles."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.convex.principal_map import PrincipalMap
from laconic.core.contract import take_rows
from laconic.core.forms import AdditiveScore, LineTerm, SlotTerm, Term
from laconic.data.tables.axes import CategoryAxis, KnotAxis, encode_column
from laconic.data.tables.columns import Schema, Table
from laconic.minimax.estimator import MinimaxClassifier
from laconic.minimax.profiles import BinGrid
from laconic.reporting.measured import Measured
from laconic.reporting.paper_card import paper_card

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
    found: dict[str, Any] = {
        "family": getattr(inner, "family_", type(inner).__name__),
        "kind": "other",
    }
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
    table = rows.inner._read_rows(take_rows(X, places))
    truth = rows.truth[places]
    terms = [_describe_term(term, table, truth == k) for term in form.terms]
    order = sorted(range(len(terms)), key=lambda t: -terms[t]["importance"])
    variables = _variables(form, terms, table)
    found: dict[str, Any] = {
        "kind": "additive",
        "n_columns": len(form.columns),
        "n_terms": len(variables),
        "described_rows": len(places),
        "order": order,
        "variables": variables,
        "importance": [
            [name_of(form.terms[own["terms"][0]]), own["importance"]]
            for own in variables[:MOST_LISTED]
        ],
        "form": None,
        "what_if": False,
    }
    shown = form.reversed() if form.n_scores == 1 and k == 0 else form
    if shown is not form:  # the page speaks of the score of the positive class
        terms = [term | drawn.to_dict() for term, drawn in zip(terms, shown.terms, strict=True)]
    embedded = shown.to_dict() | {"terms": terms}
    columns = [_describe_column(name, form, table) for name in form.columns]
    if len(json.dumps([embedded, columns])) > LARGEST_FORM:
        return found
    found |= {"form": embedded, "columns": columns}
    if form.link == "points":
        found["card"] = paper_card(shown, table, truth == k, rows.decided[places] == k)
    found["what_if"] = bool(form.terms) and _agrees(form, rows, table, places)
    return found


def _variables(form: AdditiveScore, terms: list[Any], table: Table) -> list[dict[str, Any]]:
    """Terms that read the same columns are one variable: drawn once, told once."""
    found = []
    for own in together(form):
        size = terms[own[0]]["importance"]
        if len(own) > 1:
            total = sum(form.terms[t].contribution(table) for t in own)
            size = float(np.asarray(total).std(axis=0).max(initial=0.0))
        found.append({"terms": own, "importance": size})
    return sorted(found, key=lambda one: -one["importance"])


def together(form: AdditiveScore) -> list[list[int]]:
    """Places of the terms that read the same columns."""
    places: dict[frozenset[str], list[int]] = {}
    for t, term in enumerate(form.terms):
        places.setdefault(frozenset(term.columns), []).append(t)
    return list(places.values())


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
        slot, fraction = encode_column(term.axes[0], table, j)
        nearest = slot + (fraction >= 0.5)
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
        "kind": "boolean" if _is_switch(name, form, values) else table.kinds[j],
        "start": None if reach is None or missing else float(f"{reach[3]:.4g}"),
        "reach": reach,
    }


def _is_switch(name: str, form: AdditiveScore, values: NDArray[Any]) -> bool:
    """Whether a number is 1 or 0 and no part of the model lies beyond: a word that a text has."""
    known = values[~np.isnan(values)]
    marks = [
        axis.knots if isinstance(axis, KnotAxis) else axis.bounds
        for term in form.terms
        if not isinstance(term, LineTerm)
        for column, axis in zip(term.columns, term.axes, strict=True)
        if column == name and not isinstance(axis, CategoryAxis)
    ]
    inside = all(((own >= 0.0) & (own <= 1.0)).all() for own in marks)
    return bool(len(known)) and bool(np.isin(known, (0.0, 1.0)).all()) and inside


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
    fitted, form = model.model_, model.model_.form
    weights = fitted.laws.rows(0, form.index.n_profiles)
    mass = weights @ fitted.class_prior
    heaviest = np.argsort(-mass, kind="stable")[:60]
    decisions = form.rule.decide(heaviest)
    codes = form.index.codes()[heaviest]
    names = _profile_names(model, codes)
    return {
        "kind": "profiles",
        "n_profiles": int(form.index.n_profiles),
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
    coder = model.model_.form.coder
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


# A map of rows: where the classes lie on two principal components, and where the doubt is.


TOO_FEW = "map_too_few"
MOST_ROWS = 1200
LEAST_PER_CLASS = 100
MOST_COLUMNS = 100
MOST_TEXTS = 8


def map_rows(
    rows: Measured, X: Any, *, form: AdditiveScore | None, zone: Any, k: int, seed: int = 0
) -> dict[str, Any]:
    """Rows drawn at random on two principal components.

    With a form, components of what its parts contribute: the rows as the model sees them. Without,
    of the columns: a missing number stands at the mean; a text is one column for each of its
    commonest values. Both are standardised. ``doubt`` marks rows whose probability of class ``k``
    lies in ``zone`` or, without a zone, whose likeliest class has a probability under one half.
    """
    places = drawn_rows(rows, seed)
    try:
        table = _table_of(rows, take_rows(X, places))
        of_parts = form is not None and len(form.terms) > 1
        numbers, names = parts_of(form, table) if form and of_parts else numbers_of(table)
    except (TypeError, ValueError) as refused:
        return {"why_not": str(refused)[:300]}
    if min(numbers.shape) < 2:
        return {"why_not": TOO_FEW}
    fitted = PrincipalMap(n_components=2).fit(numbers)
    points = fitted.row_scores(numbers, 2)
    loading = np.abs(fitted.axes_[:2] * fitted.singular_values_[:2, None]).max(axis=0)
    ordered = np.argsort(-loading, kind="stable").tolist()
    first = {names[j]: j for j in reversed(ordered)}  # a variable moves several scores
    largest = [j for j in ordered if first[names[j]] == j][:6]
    return {
        "x": np.round(points[:, 0], 3).tolist(),
        "y": np.round(points[:, 1], 3).tolist(),
        "truth": rows.truth[places].tolist(),
        "doubt": _doubt(rows, places, zone, k).astype(int).tolist(),
        "wrong": (rows.decided[places] != rows.truth[places]).astype(int).tolist(),
        "variance": fitted.explained_variance_ratio_[:2].tolist(),
        "arrows": [[names[j], *np.round(fitted.correlations_[j, :2], 4).tolist()] for j in largest],
        "of": "parts" if of_parts else "columns",
        "n_places": len(np.unique(np.round(points, 3), axis=0)),
        "n_rows": len(places),
        "n_columns": numbers.shape[1],
    }


def drawn_rows(rows: Measured, seed: int) -> Ints:
    """A random sample in which a rare class still has points; places in increasing order."""
    draw = np.random.default_rng(seed)
    order = draw.permutation(rows.n_rows)
    chosen = np.zeros(rows.n_rows, dtype=bool)
    chosen[order[:MOST_ROWS]] = True
    for code in range(rows.n_classes):
        chosen[order[rows.truth[order] == code][:LEAST_PER_CLASS]] = True
    return np.flatnonzero(chosen)


def _table_of(rows: Measured, X: Any) -> Table:
    if hasattr(rows.inner, "_read_rows"):
        found: Table = rows.inner._read_rows(X)
        return found
    return Schema.learn(X, allow_sparse=True).table


def parts_of(form: AdditiveScore, table: Table) -> tuple[Floats, list[str]]:
    """What each variable of a sum contributes to each score, where it varies."""
    given, own = form.contributions(table), together(form)
    flat = np.hstack([given[:, places].sum(axis=1) for places in own])
    names = [name_of(form.terms[places[0]]) for places in own for _ in range(form.n_scores)]
    kept = np.flatnonzero(np.ptp(flat, axis=0) > 0)
    return flat[:, kept], [names[j] for j in kept]


def numbers_of(table: Table) -> tuple[Floats, list[str]]:
    """Columns that vary as numbers, with their names; texts as indicators."""
    values: list[Floats] = []
    names: list[str] = []
    for j, name in enumerate(table.names[:MOST_COLUMNS]):
        column = table.column(j)
        if table.kinds[j] == "categorical":
            for code in _commonest(column):
                values.append((column == code).astype(np.float64))
                names.append(f"{name} = {table.categories[j][code]}")  # type: ignore[index]
        elif not np.isnan(column).all():
            values.append(np.where(np.isnan(column), np.nanmean(column), column))
            names.append(name)
    kept = [j for j, column in enumerate(values) if np.ptp(column) > 0]
    matrix = np.column_stack([values[j] for j in kept]) if kept else np.empty((table.n_rows, 0))
    return matrix, [names[j] for j in kept]


def _commonest(codes: NDArray[Any]) -> list[int]:
    counts = np.bincount(codes[codes >= 0], minlength=1)
    order = np.argsort(-counts, kind="stable")[:MOST_TEXTS]
    return [int(code) for code in order if counts[code]]


def _doubt(rows: Measured, places: Ints, zone: Any, k: int) -> NDArray[np.bool_]:
    if rows.raw is None:
        return np.zeros(len(places), dtype=bool)
    q = rows.raw[places]
    if zone is not None:
        return np.asarray((q[:, k] >= zone[0]) & (q[:, k] <= zone[1]))
    return np.asarray(q.max(axis=1) < 0.5)
