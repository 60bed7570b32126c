"""A map of rows: where the classes lie on two principal components, and where the doubt is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.data.columns import Schema, Table
from laconic.estimators.forms import AdditiveScore
from laconic.estimators.principal_map import PrincipalMap
from laconic.reporting.measured import Measured, rows_at
from laconic.reporting.shapes import name_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

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
        table = _table_of(rows, rows_at(X, places))
        of_parts = form is not None and len(form.terms) > 1
        numbers, names = parts_of(form, table) if form and of_parts else numbers_of(table)
    except (TypeError, ValueError) as refused:
        return {"why_not": str(refused)[:300]}
    if min(numbers.shape) < 2:
        return {"why_not": TOO_FEW}
    fitted = PrincipalMap(n_components=2).fit(numbers)
    points = fitted.row_scores(numbers, 2)
    loading = np.abs(fitted.axes_[:2] * fitted.singular_values_[:2, None]).max(axis=0)
    largest = np.argsort(-loading, kind="stable")[:6]
    return {
        "x": np.round(points[:, 0], 3).tolist(),
        "y": np.round(points[:, 1], 3).tolist(),
        "truth": rows.truth[places].tolist(),
        "doubt": _doubt(rows, places, zone, k).astype(int).tolist(),
        "wrong": (rows.decided[places] != rows.truth[places]).astype(int).tolist(),
        "variance": fitted.explained_variance_ratio_[:2].tolist(),
        "arrows": [
            [names[j], *np.round(fitted.correlations_[j, :2], 4).tolist()] for j in largest.tolist()
        ],
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
    """What each part of a sum contributes to each score, where it varies."""
    given = form.contributions(table)
    flat = given.reshape(len(given), -1)
    names = [name_of(term) for term in form.terms for _ in range(form.n_scores)]
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
