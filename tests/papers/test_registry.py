"""The rule by which a published number or claim is judged."""

from __future__ import annotations

import math

import numpy as np
import pytest

from laconic.data.datasets import DatasetNotFoundError
from laconic.papers.engine import Kept, code_stamp, make_draws, missing_sets, run
from laconic.papers.registry import (
    NOT_PRINTED,
    Call,
    Cell,
    Draws,
    Figure,
    Measured,
    cells_of,
    judge,
    reproduce,
)


@pytest.mark.parametrize(
    ("published", "ours", "word"),
    [
        (0.42, Measured(0.4249, 0.0, 1), "reproduced"),  # inside the rounding
        (0.42, Measured(0.4251, 0.0, 1), "refuted"),
        (0.42, Measured(0.45, 0.016, 10), "reproduced"),  # within two standard deviations
        (0.42, Measured(0.45, 0.012, 10), "undetermined"),  # one more draw in twenty is there
        (0.42, Measured(0.45, 0.010, 10), "refuted"),
        (0.42, Measured(0.45, 0.012, 200), "refuted"),
        (0.42, Measured(0.45, 0.006, 3), "undetermined"),
        (8.0, Measured(9.0, math.nan, 1), "undetermined"),  # one draw
        (8.0, Measured(8.4, math.nan, 1), "reproduced"),
        (8.0, Measured(math.nan, math.nan, 0), "undetermined"),
        ("< 0", Measured(-0.1, 1.0, 10), "reproduced"),
        ("< 0", Measured(0.1, 1.0, 10), "undetermined"),
        ("< 0", Measured(0.1, 0.04, 10), "refuted"),
        ("< 0", Measured(0.1, 0.04, 3), "undetermined"),
        ("> 0", Measured(-0.1, 0.04, 10), "refuted"),
        ("> 0", Measured(0.1, 0.04, 10), "reproduced"),
        ("< 100", Measured(100.0, 0.0, 1), "refuted"),
        ("< 100", Measured(101.0, math.nan, 1), "undetermined"),
        ("0 within 0.1", Measured(0.09, 0.001, 10), "reproduced"),
        ("0 within 0.1", Measured(0.2, 0.11, 10), "reproduced"),
        ("0 within 0.1", Measured(0.2, 0.09, 10), "undetermined"),
        ("0 within 0.1", Measured(0.2, 0.08, 10), "refuted"),
        (NOT_PRINTED, Measured(0.5, 0.1, 10), "undetermined"),
    ],
)
def test_the_rule(published, ours, word):
    verdict = judge(published, ours)
    assert verdict.word == word
    assert verdict.reason.endswith(".")


def test_one_more_draw_is_refuted_once_in_twenty():
    """Of normal draws that differ in nothing from the printed one."""
    draw = np.random.default_rng(0)
    for n in (2, 3, 5, 10, 40):
        values = draw.normal(size=(4000, n + 1))
        words = [judge(round(float(own[0]), 12), Measured.of(own[1:])).word for own in values]
        assert words.count("refuted") / len(words) == pytest.approx(0.05, abs=0.012)


def test_a_printed_spread_counts():
    ours = Measured(3.95, 0.003, 10)
    assert judge(3.75, ours).word == "refuted"
    assert judge(3.75, ours, 0.23).word == "reproduced"
    # two samples of one law: their standard deviations differ as is said
    values = np.random.default_rng(1).normal(size=(4000, 2, 10))
    theirs = values[:, 1].std(axis=1, ddof=1)
    ours = [Measured.spread(own, 10) for own in values[:, 0]]
    away = np.array([own.mean for own in ours]) - theirs
    assert np.sqrt(np.mean([own.sd**2 for own in ours])) == pytest.approx(away.std(), rel=0.06)


def test_what_a_document_leaves_open_is_tried():
    def cell(others=None, unsaid=""):
        return Cell("x", "Table 1", "risk", 0.3, "p", lambda draws: Measured(0.2, 0.01, 10),
                    others=others, unsaid=unsaid)  # fmt: skip

    def said(own):
        return own.outcome(Draws())[1]

    tried = {"C = 1": Measured(0.21, 0.01, 5), "C = 9": Measured(0.29, 0.02, 5)}
    assert said(cell()).word == "refuted"
    assert said(cell(unsaid="No C is given.")).reason.endswith("draws. No C is given.")
    found = said(cell(lambda draws: tried, "No C is given."))
    assert found.word == "undetermined"
    assert "It comes out with C = 9 (0.29, sd 0.02). No C is given." in found.reason
    found = said(cell(lambda draws: {"C = 1": tried["C = 1"]}, "No C is given."))
    assert found.word == "refuted"
    assert found.reason.endswith("Nor does it come out with C = 1.")
    assert said(cell(lambda draws: None, "No C is given.")).word == "undetermined"


def test_cells_share_what_they_compute():
    made = []

    def compute(draws):
        return Measured.of([draws.once("number", lambda: made.append(1) or 2.0), 4.0])

    cells = [Cell("x", "here", what, 3.0, "mean", compute) for what in ("one", "other")]
    found = list(reproduce(cells, Draws()))
    assert [ours.mean for _, ours, _ in found] == [3.0, 3.0]
    assert found[0][1].sd == pytest.approx(math.sqrt(2))
    assert len(made) == 1


def test_the_spread_is_the_standard_deviation_of_draws():
    values = np.random.default_rng(0).normal(0.0, 2.0, (4000, 10))
    spreads = [Measured.spread(own) for own in values]
    # the standard deviation that is stated is the one over repetitions
    assert np.mean([own.sd for own in spreads]) == pytest.approx(
        np.std([own.mean for own in spreads]), rel=0.05
    )


def test_draws_are_asked_for_made_once_and_kept(tmp_path):
    seen = []

    def cube_sum(draws):
        return Measured.of(draws.each(math.pow, [(k, 3) for k in range(4)]))

    def staged(draws):
        (first,) = draws.each(math.sqrt, [(16,)])
        return Measured.exact(draws.each(math.pow, [(first, 2)])[0])

    cells = [
        Cell("x", "Table 1", "cubes", 9.0, "mean", cube_sum),
        Cell("x", "Table 1", "staged", 16.0, "power", staged, "A remark."),
    ]
    kept = Kept(tmp_path / "draws.jsonl")
    found, _ = run(cells, [], kept=kept, follow=seen.append)
    assert [own.mean for own, _ in found.values()] == [9.0, 16.0]
    assert found[cells[1]][1].reason.endswith("last digit. A remark.")
    assert len(seen) == 6
    again = Kept(tmp_path / "draws.jsonl")
    assert len(again) == 6
    repeated, _ = run(cells, [], kept=again, follow=seen.append)
    assert len(seen) == 6
    assert {cell.what: own for cell, own in repeated.items()} == {
        cell.what: own for cell, own in found.items()
    }


def test_draws_of_other_code_and_torn_lines_are_not_used(tmp_path):
    path = tmp_path / "draws.jsonl"
    Kept(path).keep(Call(math.sqrt, (4,)), 2.0, 0.0)
    right = path.read_text()
    path.write_text(right.replace(code_stamp("math"), "0" * 12) + '{"key": "math.sq')
    torn = Kept(path)
    assert not torn
    torn.keep(Call(math.sqrt, (9,)), 3.0, 0.0)
    assert dict(Kept(path)) == {"math.sqrt[9]": 3.0}
    path.write_text(right)
    assert dict(Kept(path)) == {"math.sqrt[4]": 2.0}
    fresh = Kept(path, fresh=True)
    assert not fresh
    fresh.keep(Call(math.sqrt, (4,)), 2.5, 0.0)
    assert dict(Kept(path)) == {"math.sqrt[4]": 2.5}


def test_processes_give_what_one_gives():
    calls = [Call(math.factorial, (k,)) for k in range(6)]
    both = [Kept(), Kept()]
    for jobs, kept in zip((1, 2), both, strict=True):
        make_draws(calls, kept, jobs=jobs, follow=lambda now: None)
    assert dict(both[0]) == dict(both[1])


def test_a_set_that_is_missing_is_said_and_the_rest_goes_on():
    def absent(draws):
        raise DatasetNotFoundError("Data set 'x' is not here.")

    cells = [
        Cell("x", "Table 1", "absent", 1.0, "p", absent),
        Cell("x", "Table 1", "there", 1.0, "p", lambda draws: Measured.exact(1.0)),
    ]
    found, drawn = run(cells, [Figure("x", "1", "c", absent)], kept=Kept())
    assert [verdict.word for _, verdict in found.values()] == ["undetermined", "reproduced"]
    assert missing_sets(found.values()) == ["Data set 'x' is not here."]
    assert list(drawn.values()) == [None]


def test_the_stamp_follows_imports():
    own = code_stamp("laconic.papers.registry")
    assert own != code_stamp("laconic.papers.engine")
    assert own == code_stamp("laconic.papers.registry")
    assert code_stamp("math") == code_stamp("cmath")  # not of the package: no files


def test_unknown_documents_are_named():
    with pytest.raises(ValueError, match="'999'"):
        cells_of("999")
