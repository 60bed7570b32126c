"""Rows drawn by what they hold: any order, any blocks, copies in proportion."""

from __future__ import annotations

import numpy as np
import pytest

from laconic.data.row_draws import CopyDraw, PossibleRows, copy_keys
from laconic.data.row_keys import mixed


def copied(n: int, seed: int = 0) -> np.ndarray:
    """Rows of which a tenth are one and the same, some come a few times, most once."""
    draw = np.random.default_rng(seed)
    kind = draw.choice(3, n, p=[0.1, 0.3, 0.6])
    few, once = draw.integers(1, n // 20, n), n + np.arange(n)
    return np.select([kind == 0, kind == 1], [0, few], once)


@pytest.mark.parametrize("rate", [0.002, 0.01, 0.3, 0.9])
def test_blocks_draw_what_all_rows_in_memory_draw(rate):
    rows, draw = copied(20_000), CopyDraw(rate)
    keys = mixed(rows.astype(np.uint64))
    wanted = np.sort(rows[draw.places(keys)])
    blocks = np.array_split(np.random.default_rng(1).permutation(len(rows)), 7)
    tally = sum(draw.tally(keys[own]) for own in blocks)
    parts = []
    for own in blocks:
        own = own[draw.possible(keys[own], tally)]
        parts.append(PossibleRows.of(keys[own], (rows[own], np.stack([rows[own]] * 2))))
    found, twice = PossibleRows.joined(parts).drawn(draw)
    np.testing.assert_array_equal(np.sort(found), wanted)
    np.testing.assert_array_equal(twice, [found, found])
    if rate < 0.1:  # few rows travel that are not drawn
        assert sum(len(part.keys) for part in parts) < 12 * len(wanted)


@pytest.mark.parametrize("rate", [0.003, 0.05, 0.7])
def test_copies_are_drawn_in_proportion(rate):
    rows = copied(200_000)
    drawn = rows[CopyDraw(rate).places(mixed(rows.astype(np.uint64)))]
    distinct, counts = np.unique(rows, return_counts=True)
    places = np.searchsorted(distinct, drawn)
    found = np.bincount(places, minlength=len(distinct))
    assert (np.abs(found - rate * counts) < 1.0).all()
    # rows that come once are drawn like any others
    mean = rate * len(rows)
    assert abs(len(drawn) - mean) < 5 * np.sqrt(mean)
    once = counts == 1
    assert abs(found[once].sum() - rate * once.sum()) < 5 * np.sqrt(rate * once.sum())


def test_class_and_weight_tell_rows_apart():
    keys, one = np.array([7, 7, 7], dtype=np.uint64), np.ones(3)
    found = copy_keys(keys, np.array([0, 1, 0]), one)
    assert found[0] == found[2] != found[1]
    found = copy_keys(keys, np.zeros(3, dtype=np.int64), np.array([1.0, 2.0, 1.0]))
    assert found[0] == found[2] != found[1]
