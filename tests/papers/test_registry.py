"""The rule by which a published number or claim is judged."""

from __future__ import annotations

import math

import pytest

from laconic.papers.registry import NOT_PRINTED, Cell, Draws, Measured, cells_of, judge, reproduce


@pytest.mark.parametrize(
    ("published", "ours", "word"),
    [
        (0.42, Measured(0.4249, 0.0, 1), "reproduced"),  # inside the rounding
        (0.42, Measured(0.4251, 0.0, 1), "refuted"),
        (0.42, Measured(0.45, 0.016, 10), "reproduced"),  # within two standard deviations
        (0.42, Measured(0.45, 0.014, 10), "refuted"),
        (8.0, Measured(9.0, math.nan, 1), "undetermined"),  # one draw
        (8.0, Measured(8.4, math.nan, 1), "reproduced"),
        (8.0, Measured(math.nan, math.nan, 0), "undetermined"),
        ("< 0", Measured(-0.1, 1.0, 10), "reproduced"),
        ("< 0", Measured(0.1, 1.0, 10), "undetermined"),
        ("< 0", Measured(0.1, 0.04, 10), "refuted"),
        ("> 0", Measured(-0.1, 0.04, 10), "refuted"),
        ("> 0", Measured(0.1, 0.04, 10), "reproduced"),
        ("< 100", Measured(100.0, 0.0, 1), "refuted"),
        ("< 100", Measured(101.0, math.nan, 1), "undetermined"),
        ("0 within 0.1", Measured(0.09, 0.001, 10), "reproduced"),
        ("0 within 0.1", Measured(0.2, 0.11, 10), "reproduced"),
        ("0 within 0.1", Measured(0.2, 0.09, 10), "refuted"),
        (NOT_PRINTED, Measured(0.5, 0.1, 10), "undetermined"),
    ],
)
def test_the_rule(published, ours, word):
    verdict = judge(published, ours)
    assert verdict.word == word
    assert verdict.reason.endswith(".")


def test_cells_share_what_they_compute():
    made = []

    def compute(draws):
        return Measured.of([draws.once("number", lambda: made.append(1) or 2.0), 4.0])

    cells = [Cell("x", "here", what, 3.0, "mean", compute) for what in ("one", "other")]
    found = list(reproduce(cells, Draws()))
    assert [ours.mean for _, ours, _ in found] == [3.0, 3.0]
    assert found[0][1].sd == pytest.approx(math.sqrt(2))
    assert len(made) == 1


def test_unknown_documents_are_named():
    with pytest.raises(ValueError, match="'999'"):
        cells_of("999")
