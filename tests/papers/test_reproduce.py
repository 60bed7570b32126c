"""The command that computes the papers' numbers: what it writes, and that it goes on."""

from __future__ import annotations

import json
import sys
from types import ModuleType

import pytest

from laconic.cli.app import main
from laconic.data.datasets import DatasetNotFoundError
from laconic.papers import pages, registry
from laconic.papers.drawing import Panel, Series, plot
from laconic.papers.registry import Cell, Figure, Measured

ASKED = []


def halved(number, seed):
    ASKED.append(number)
    return number / 2


def _draw(draws):
    return Measured.of(draws.each(halved, [(k, 0) for k in range(draws.count(6, 2))]))


def _absent(draws):
    raise DatasetNotFoundError("Data set 'moon' is not here.")


def _picture(draws):
    y = draws.each(halved, [(k, 1) for k in range(3)])
    return plot(Panel("halves", "x", "y", [Series("y", range(3), y)]))


@pytest.fixture
def toy(monkeypatch, tmp_path):
    module = ModuleType("toy_paper")
    module.cells = lambda: [
        Cell("000", "Table 1", "half", 1.25, "halves of numbers", _draw, "A remark."),
        Cell("000", "Table 1, moon", "dust", 1.0, "sweep", _absent),
        Cell("000", "Table 2", "pipe | dream", 3.0, "p", lambda draws: Measured.exact(3.0)),
    ]
    module.figures = lambda: [Figure("000", "1", "Halves.", _picture)]
    monkeypatch.setitem(sys.modules, "toy_paper", module)
    for place in (registry, pages):
        monkeypatch.setattr(place, "DOCUMENTS", {"000": "toy_paper"})
    ASKED.clear()
    return tmp_path / "out"


def run(*words):
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", *map(str, words)])
    return stop.value.code


def test_results_tables_and_figures_are_written(toy, capsys):
    assert run("all", "--jobs", 1, "--out", toy) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "000: 2 reproduced, 1 undetermined; 1 figures" in said
    assert "missing: Data set 'moon' is not here." in said
    own = json.loads((toy / "results.json").read_text())["000"]
    assert own["cells"][0]["mean"] == 1.25
    assert own["cells"][0]["draws"] == 6
    assert own["cells"][1]["mean"] is None
    assert own["stamp"]["quick"] is False
    page = (toy / "000.md").read_text()
    assert "![Halves.](000_figure_1.svg)" in page
    assert "pipe \\| dream" in page
    assert "A remark." in page
    assert (toy / "000_figure_1.svg").read_text().startswith("<svg")
    assert "| 2 | 0 | 1 | 0 |" in (toy / "index.md").read_text()


def test_a_second_run_draws_nothing_and_writes_the_same(toy):
    run("000", "--jobs", 1, "--out", toy)
    first = {path.name: path.read_bytes() for path in toy.iterdir()}
    assert len(ASKED) == 9
    run("000", "--jobs", 1, "--out", toy)
    assert len(ASKED) == 9
    assert {path.name: path.read_bytes() for path in toy.iterdir()} == first
    run("000", "--jobs", 1, "--out", toy, "--fresh")
    assert len(ASKED) == 18


def test_an_interrupted_run_keeps_what_is_done_and_goes_on(toy, monkeypatch, capsys):
    def stop_at_three(call):
        if call.arguments == (3, 0):
            raise KeyboardInterrupt
        return call.made(), 0.0

    with monkeypatch.context() as own:
        own.setattr("laconic.papers.engine._timed", stop_at_three)
        assert run("000", "--jobs", 1, "--out", toy) == 130
    said = " ".join(capsys.readouterr().err.split())
    assert "3 new draws are kept" in said
    assert "nothing was written" not in said
    assert sorted(ASKED) == [0, 1, 2]
    assert run("000", "--jobs", 1, "--out", toy) == 0
    assert len(ASKED) == 9


def test_an_interruption_between_two_files_says_what_is_kept(toy, monkeypatch, capsys):
    def stop(results):
        raise KeyboardInterrupt

    with monkeypatch.context() as own:
        own.setattr("laconic.papers.pages.index_page", stop)
        assert run("000", "--jobs", 1, "--out", toy) == 130
    said = " ".join(capsys.readouterr().err.split())
    assert (toy / "000.md").exists()
    assert "9 new draws are kept" in said
    assert "nothing was written" not in said
    run("000", "--jobs", 1, "--out", toy)
    assert (toy / "index.md").exists()


def test_one_table_changes_only_its_cells(toy):
    run("000", "--jobs", 1, "--out", toy, "--share", "0.5")
    rows = json.loads((toy / "results.json").read_text())["000"]["cells"]
    assert [row["draws"] for row in rows] == [3, 0, 1]
    run("000", "--table", 2, "--jobs", 1, "--out", toy)
    assert json.loads((toy / "results.json").read_text())["000"]["cells"] == rows
    run("000", "--table", 1, "--jobs", 1, "--out", toy)
    rows = json.loads((toy / "results.json").read_text())["000"]["cells"]
    assert [row["draws"] for row in rows] == [6, 0, 1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("999",), "one of 000 or all, got '999'"),
        (("000", "--table", 7), "has no Table 7"),
        (("000", "--table", 1, "--figure", 1), "exclude each other"),
        (("000", "--share", 0), "--share must be in (0, 1]"),
    ],
)
def test_wrong_words_are_named_and_nothing_is_written(toy, capsys, words, said):
    assert run(*words, "--out", toy) == 2
    assert said in capsys.readouterr().err
    assert not toy.exists()


def test_quick_and_full_results_are_not_mixed(toy, capsys):
    run("000", "--jobs", 1, "--out", toy)
    assert run("000", "--quick", "--out", toy) == 2
    assert "holds results of a full run" in capsys.readouterr().err


def test_drawings_put_numbers_where_they_belong():
    text = plot(Panel("a & b", "x", "y", [Series("y", [0, 1], [0.0, 1.0])], (0, 1), (0, 1)))
    assert "a &amp; b" in text
    assert 'd="M62.0 274.0L446.0 30.0"' in text  # from the lower left corner to the upper right
    assert text == plot(Panel("a & b", "x", "y", [Series("y", [0, 1], [0.0, 1.0])], (0, 1), (0, 1)))
