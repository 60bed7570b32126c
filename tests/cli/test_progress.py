"""What a long command says while it works: the time left, and no endless silence."""

import io
import re
import time

import numpy as np
import pytest

from laconic.cli.progress import Pace, progress
from laconic.cli.screen import speak
from laconic.core.progress import Step, listening, report_step


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize("lengths", [[10] * 10, [2] * 9 + [300], [300] + [2] * 9, [1, 5, 60, 5, 1]])
def test_the_time_left_is_never_told_small_while_a_step_goes_on_and_on(lengths):
    clock = Clock()
    pace, told = Pace(clock), []
    for k, seconds in enumerate(lengths):
        pace.follow(Step(f"step {k}", k / len(lengths)))
        for _ in range(seconds):
            clock.now += 1.0
            told.append((clock.now, pace.left()))
    total = sum(lengths)
    known = [(now, left) for now, left in told if left is not None]
    assert known
    # a step that lasts s seconds is told to need about s more, whatever the pace was before
    started = 0.0
    for k, seconds in enumerate(lengths):
        for now, left in known:
            if k and started < now <= started + seconds:
                assert left >= now - started - 1e-9
        started += seconds
    if len(set(lengths)) == 1:  # at an even pace it is right, to the length of a step
        assert all(abs(now + left - total) <= lengths[0] for now, left in known)


def test_one_line_now_and_then_in_a_pipe():
    stream = io.StringIO()
    with progress(every=0.02, stream=stream):
        report_step("comparing additive", 0.5)
        time.sleep(0.15)
    lines = stream.getvalue().splitlines()
    assert 2 <= len(lines) <= 8
    left = r"(about \S+ s left|time left not known)"
    assert all(re.fullmatch(rf"laconic: \S+ s: comparing additive, {left}", x) for x in lines)
    time.sleep(0.05)
    assert len(stream.getvalue().splitlines()) == len(lines)


def test_short_work_is_silent_in_a_pipe():
    stream = io.StringIO()
    with progress(stream=stream):
        report_step("reading", 0.0)
    assert stream.getvalue() == ""


def test_a_terminal_gets_a_bar_that_leaves_nothing():
    class Screen(io.StringIO):
        def isatty(self):
            return True

    stream = Screen()
    with progress(stream=stream) as step:
        step(Step("12 rows written", 0.4))
        time.sleep(0.25)
    assert "12 rows written" in stream.getvalue()


def test_passes_over_a_scan_are_told_and_do_not_move_the_share_of_the_job():
    import polars as pl

    from laconic import scan
    from laconic.job.scan import following

    rows = scan(pl.DataFrame({"x": np.arange(9_000.0)}), block_rows=250)
    pace = Pace()
    with listening(pace.follow), following(rows):
        report_step("comparing additive", 0.5)
        assert rows.n_rows == 9_000
    assert pace.step == Step("pass 1 over 9,000 rows, 100% of it", 0.5)


def test_a_step_that_outlasts_all_that_was_expected_has_no_time_left_to_tell():
    """Pages of wide tables are shortened for longer than the fifth of the way that they are."""
    clock = Clock()
    pace = Pace(clock)
    pace.follow(Step("comparing additive", 0.0))
    clock.now = 100.0
    pace.follow(Step("shortening pages", 0.8))
    clock.now = 110.0
    assert pace.said().endswith("about 25 s left")
    clock.now = 400.0
    assert pace.said().endswith("shortening pages, time left not known")


def test_lines_of_a_long_command_are_french_where_french_is_asked_for():
    stream = io.StringIO()
    speak(["fit", "rows.csv", "--language", "fr"])
    try:
        with progress(every=0.02, stream=stream):
            report_step("shortening pages", 0.8)
            time.sleep(0.1)
    finally:
        speak([])
    assert "raccourcissement des pages, " in stream.getvalue()
    assert "left" not in stream.getvalue()
