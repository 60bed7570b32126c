"""A card of whole points as a form to print: lines with points, then the risk of each total."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from laconic._typing import Floats, Ints, Mask
from laconic.core.forms import AdditiveScore, SlotTerm, probabilities
from laconic.data.tables.axes import CategoryAxis, IntervalAxis
from laconic.data.tables.columns import Table
from laconic.decide.intervals import rate_interval
from laconic.scorecard.items import whole_numbers
from laconic.scorecard.risk import doubling

_MOST_TOTALS = 30
"""Totals on the form; where there are more, those that no row had are left out."""
_MOST_TEXTS = 6


def paper_card(form: AdditiveScore, table: Table, hit: Mask, says: Mask) -> dict[str, Any]:
    """Lines (column, part, points) and totals (rows, hits, interval, risk) of a card.

    ``form`` speaks of its second class, ``hit`` says which rows of ``table`` are of it and ``says``
    which are decided to be. ``risks`` are all totals that are possible; ``doubling`` is how many
    points double the odds, where it is the same from every total on; ``between`` are the largest
    total decided otherwise and the least one decided so, where totals decide.
    """
    lines = []
    for term in form.terms:
        assert isinstance(term, SlotTerm)
        for text, value in zip(_parts(term, table), term.values[:, 0].tolist(), strict=True):
            if value:
                lines.append({"column": term.columns[0], "part": text, "points": int(value)})
    base = float(form.intercept[0])
    seen = np.rint(form.score(table)[:, 0] - base).astype(np.int64)
    known = np.array([total for total, _ in form.calibration or ()], dtype=np.float64)
    totals = np.rint(known - base).astype(np.int64)
    risk = probabilities(known[:, None], "points", 0.0, form.calibration)[:, 1]
    place = np.clip(seen - totals[0], 0, len(totals) - 1)
    rows = np.bincount(place, minlength=len(totals))
    hits: Any = np.bincount(place, hit.astype(float), minlength=len(totals))
    low, high = rate_interval(hits / np.maximum(rows, 1), rows)
    shown = np.flatnonzero(rows > 0) if len(totals) > _MOST_TOTALS else np.arange(len(totals))
    return {
        "lines": lines,
        "risks": [[int(total), float(p)] for total, p in zip(totals, risk, strict=True)],
        "doubling": doubling(form),
        "between": _between(seen, says),
        "totals": [_total(i, totals, rows, hits, low, high, risk) for i in shown.tolist()],
    }


def _between(seen: Ints, says: Mask) -> list[int] | None:
    if not says.any() or says.all() or seen[~says].max() >= seen[says].min():
        return None
    return [int(seen[~says].max()), int(seen[says].min())]


def _total(
    i: int, totals: Any, rows: Any, hits: Floats, low: Floats, high: Floats, risk: Floats
) -> dict[str, Any]:
    found = {"total": int(totals[i]), "rows": int(rows[i]), "hits": int(hits[i])}
    return found | {"low": float(low[i]), "high": float(high[i]), "risk": float(risk[i])}


def _parts(term: SlotTerm, table: Table) -> list[str]:
    """The slots of one column in words that need no mathematics.

    Words that depend on the language are keys: "missing", "other", "yes", "no", after a NUL.
    """
    axis = term.axes[0]
    if isinstance(axis, CategoryAxis):
        return [*(_listed(texts) for texts in axis.groups), "\0other", "\0missing"]
    assert isinstance(axis, IntervalAxis)
    if table.kinds[table.place(term.columns[0])] == "boolean" and len(axis.bounds) == 1:
        return ["\0no", "\0yes", "\0missing"]
    if not len(axis.bounds):
        return ["\0card_any", "\0missing"]
    values = np.asarray(table.column(table.place(term.columns[0])), dtype=np.float64)
    if whole_numbers(values) and np.abs(axis.bounds).max() < 1e15:
        return [*_whole_parts(np.floor(axis.bounds).astype(np.int64).tolist()), "\0missing"]
    ends = [f"{bound:.6g}" for bound in axis.bounds]
    between = [f"> {a}, \u2264 {b}" for a, b in pairwise(ends)]
    return [f"\u2264 {ends[0]}", *between, f"> {ends[-1]}", "\0missing"]


def _whole_parts(ends: list[int]) -> list[str]:
    """Parts of a column of whole numbers, by the last number of each but the last part."""
    between = [f"{a + 1} \u2013 {b}" if a + 1 < b else f"{b}" for a, b in pairwise(ends)]
    return [f"\u2264 {ends[0]}", *between, f"\u2265 {ends[-1] + 1}"]


def _listed(texts: tuple[str, ...]) -> str:
    more = len(texts) - _MOST_TEXTS
    return ", ".join(texts[:_MOST_TEXTS]) + (f", \u2026 (+{more})" if more > 0 else "")
