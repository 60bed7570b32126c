"""A short piece of each part of ``python -m stress``: the programme itself works."""

from __future__ import annotations

import json
import re

import pytest
from stress import mutants, numbers, tables
from stress.__main__ import PARTS, rows_of
from stress.mendings import MENDINGS
from stress.models import models
from stress.run import FAILED, Part, Record, again, run

from estimator_cases import public_classes


def test_a_run_goes_on_where_it_was_stopped(tmp_path):
    tried: list[int] = []

    def outcome(number: int) -> str:
        tried.append(number)
        return f"{FAILED}: seven" if number == 7 else "holds"

    part = Part("toy", "cases", "", outcome, size=10, quick=2)
    path = tmp_path / "run.json"
    run(part, Record(path), count=4, seconds=60.0)
    tally = run(part, Record(path), count=None, seconds=60.0)
    assert tried == list(range(10))
    assert (tally.tried, tally.failed, tally.failures) == (10, 1, [7])
    assert json.loads(path.read_text())["toy"]["outcomes"] == {"holds": 9, f"{FAILED}: seven": 1}


def test_what_was_broken_is_tried_again(tmp_path):
    cured: list[int] = []

    def outcome(number: int) -> str:
        return f"{FAILED}: odd" if number % 2 and number not in cured else "holds"

    part = Part("toy", "cases", "", outcome, size=6, quick=2)
    record = Record(tmp_path / "run.json")
    run(part, record, count=None, seconds=60.0)
    cured += [1, 5]
    tally = again(part, record)
    assert (tally.tried, tally.failures) == (6, [3])
    assert tally.outcomes == {"holds": 5, f"{FAILED}: odd": 1}


def test_the_page_quotes_the_stored_run():
    record = Record(mutants.ROOT / "stress" / "results.json")
    page = (mutants.ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    quoted = [line for line in page.splitlines() if re.match(r"\| `\w+` \| [\d,]+ \w+ \|", line)]
    assert quoted == rows_of(record)
    for tally in record.tallies.values():
        assert tally.tried == sum(tally.outcomes.values())
        assert tally.failed == len(tally.failures)


def test_every_public_estimator_gets_generated_tables():
    assert {name for name, _ in models()} == set(public_classes())


# each of these tables once broke a promise
@pytest.mark.parametrize(
    "number",
    [
        9, 99, 101, 146, 199, 547, 1073, 1160, 1263, 3293, 3899, 4401, 4666, 5425, 6353, 6695, 6870,
        7472, 8550, 9149, 11081, 11539, 13010, 16146, 17479, 20386,
    ],
)  # fmt: skip
def test_tables_that_broke_a_promise(number):
    assert not tables.outcome(number).startswith(FAILED)


@pytest.mark.parametrize("number", range(0, 98, 7))
def test_generated_tables(number):
    assert not tables.outcome(number).startswith(FAILED)


@pytest.mark.parametrize("number", range(0, len(numbers.CASES), 13))
def test_hard_numbers_end_in_a_certificate_or_a_warning(number):
    assert not numbers.outcome(number).startswith(FAILED)


def test_every_mutant_stands_once_in_the_code_and_names_tests_that_exist():
    for mutant in mutants.MUTANTS:
        text = (mutants.ROOT / mutant.file).read_text(encoding="utf-8")
        for old, new in mutant.changes:
            assert text.count(old) == 1, mutant
            assert new not in (old, text)
        assert all(_exists(test) for test in mutant.tests.split())


UNDONE_BY_NONE = {
    "Ctrl-C waits up to 20 s": "a time, and a segfault that never came again",
    "formulas go into CSV": "documented: nothing was mended",
    "kernel votes differ in the last bits": "needs processes with other numbers of threads",
}


def test_every_line_of_the_defects_names_tests_that_failed_without_its_mending():
    page = (mutants.ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| (.+) \| (`.+`) \|$", page.split("## Defects found")[1], flags=re.M)
    named = {mutant.tests for mutant in mutants.MUTANTS}
    without = []
    for defect, cell in lines:
        tests = re.findall("`([^`]+)`", cell)
        parts = [test.split()[-1] for test in tests if test.startswith("python -m stress ")]
        tests = [test for test in tests if not test.startswith("python")]
        assert all(map(_exists, tests)), defect
        assert set(parts) <= set(PARTS), defect
        if not named & set(tests):
            without.append(defect)
    assert len(without) == len(UNDONE_BY_NONE)
    for defect, start in zip(without, UNDONE_BY_NONE, strict=True):
        assert defect.startswith(start)
    mended = {test for _, cell in lines for test in re.findall("`([^`]+)`", cell)}
    assert {test for _, test, *_ in MENDINGS} <= mended


def _exists(test: str) -> bool:
    file, _, name = test.partition("[")[0].partition("::")
    path = mutants.ROOT / file
    return path.exists() and (not name or f"def {name}(" in path.read_text(encoding="utf-8"))
