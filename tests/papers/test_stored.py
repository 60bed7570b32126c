"""What is stored of the full run: every cell has a verdict, and what guides quote stands in it."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from laconic.data.datasets import available
from laconic.papers.engine import Kept, run
from laconic.papers.naive_bayes import TABLE_1, WITH_NAMES
from laconic.papers.pages import QUOTED, document_page, figure_file, filled, index_page
from laconic.papers.registry import DOCUMENTS, Draws, Measured, cells_of, figures_of, judge

PROJECT = Path(__file__).parents[2]
DOCS = PROJECT / "docs"
RESULTS = json.loads((DOCS / "papers" / "results.json").read_text(encoding="utf-8"))
GUIDES = [PROJECT / "README.md", *sorted(DOCS.glob("*.md"))]


def number(value):
    return math.nan if value is None else value


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_cell_has_a_verdict_and_every_verdict_a_run(document):
    stored = RESULTS[document]["cells"]
    cells = cells_of(document)
    assert [(row["place"], row["what"]) for row in stored] == [(c.place, c.what) for c in cells]
    for row, cell in zip(stored, cells, strict=True):
        assert row["draws"] >= 1, f"{cell.place}, {cell.what}: no draw"
        assert row["published"] == cell.published
        ours = Measured(number(row["mean"]), number(row["sd"]), row["draws"])
        words = {judge(cell.published, ours, cell.published_sd).word}
        if words == {"refuted"} and (cell.unsaid or cell.others is not None):
            words = {"undetermined"} if cell.others is None else {"undetermined", "refuted"}
        assert row["verdict"] in words
        assert row["reason"].endswith(".")
        assert row["protocol"]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_pages_and_figures_are_written_from_the_results(document):
    files = [figure_file(figure) for figure in figures_of(document)]
    for name in files:
        assert (DOCS / "papers" / name).read_text(encoding="utf-8").startswith("<svg")
    page = (DOCS / "papers" / f"{document}.md").read_text(encoding="utf-8")
    assert page == document_page(document, RESULTS[document], files)
    assert RESULTS[document]["stamp"]["commit"]


def test_the_index_counts_and_links():
    text = (DOCS / "papers" / "index.md").read_text(encoding="utf-8")
    assert text == index_page(RESULTS)
    assert "(docs/papers/index.md)" in GUIDES[0].read_text(encoding="utf-8")
    assert all(f"({document}.md)" in text for document in DOCUMENTS)


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.name)
def test_guides_quote_the_stored_numbers(path):
    text = path.read_text(encoding="utf-8")
    assert filled(text, RESULTS) == text


def test_the_guides_of_the_papers_do_quote():
    for name, least in {"gray_zone.md": 30, "minimax.md": 20}.items():
        assert len(QUOTED.findall((DOCS / name).read_text(encoding="utf-8"))) >= least
    # a comment that names a cell but follows no number would never be checked
    for path in GUIDES:
        text = path.read_text(encoding="utf-8")
        assert len(re.findall(r"<!-- \d{3};", text)) == len(QUOTED.findall(text))


def test_a_sample_is_computed_again():
    """Quantities that no draw changes; those of Table 1 of document 001 where its set is here."""
    exact = []
    for document in ("000", "001", "003"):
        for row, cell in zip(RESULTS[document]["cells"], cells_of(document), strict=True):
            name = cell.place.partition(", ")[2]
            here = document != "001" or (
                name in TABLE_1 and available(WITH_NAMES.get(name, TABLE_1[name]))
            )
            # Covertype takes seconds to read, and so do the largest sets
            slow = cell.protocol == "count" or row["mean"] in (58000.0, 48842.0, 20000.0)
            if row["draws"] == 1 and row["sd"] == 0.0 and here and not slow:
                exact.append((row, cell))
    assert len(exact) > 15
    chosen = np.random.default_rng(7).choice(len(exact), 12, replace=False)
    draws = Draws()
    for k in chosen:
        row, cell = exact[k]
        assert cell.compute(draws).mean == pytest.approx(row["mean"], rel=1e-5, abs=1e-12)


@pytest.mark.dataset("abalone")
def test_a_quick_run_agrees_with_what_is_stored():
    """Means of the minimax table from twelve trials: the verdicts of 80, and means near theirs."""
    cells = [
        cell
        for cell in cells_of("003")
        if cell.place == "Table 1" and "standard deviation" not in cell.what
    ]
    found, _ = run(cells, [], kept=Kept(), quick=True)
    rows = {row["what"]: row for row in RESULTS["003"]["cells"] if row["place"] == "Table 1"}
    assert len(found) == 19
    for cell, (ours, verdict) in found.items():
        row = rows[cell.what]
        assert verdict.word == row["verdict"], cell.what
        error = 4 * row["sd"] / np.sqrt(ours.n_draws)
        assert ours.mean == pytest.approx(row["mean"], rel=1e-5, abs=error)
