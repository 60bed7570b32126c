"""The main job on rows that are not read into memory: files by glob, a folder, a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from laconic.choose.estimator import LaconicClassifier
from laconic.choose.tuning import CHOICE_ROWS
from laconic.core.progress import report_step
from laconic.data.reading.asked import Asked
from laconic.data.reading.look import Look, suspicions
from laconic.data.reading.reading import Reading
from laconic.data.scan.scan import Scan, scan
from laconic.data.scan.survey import read_labels
from laconic.data.tables.columns import Table
from laconic.data.tables.files import split_target
from laconic.data.tables.text import TextFormat
from laconic.decide.estimator import DecisionClassifier
from laconic.decide.reference import reference_of
from laconic.job.rows import Beside, repeated_id
from laconic.job.table import (
    TEST_SHARE,
    JobOptions,
    JobResult,
    Problem,
    classifier_of,
    problem_of,
    writable,
    written,
)
from laconic.linear.plain import PlainLogisticRegression
from laconic.reporting.summary import summarise

MOST_AT_ONCE = 4
"""Runs of rows that are read side by side, some 200 MB each for 25 columns."""
MOST_TEST_ROWS = 250_000
"""Rows held out for the report, at most."""


def run_scan_job(
    data: str,
    target: str,
    options: JobOptions,
    text: TextFormat,
    asked: Asked,
    *,
    beside: Beside,
    cluster: str | None,
    out: Path,
    title: str,
    on_read: Callable[[Reading], None] = lambda reading: None,
    on_group: Callable[[str], None] = lambda name: None,
) -> JobResult:
    """Hold rows out, choose on a sample of the others, fit on all of them, measure, write."""
    given = scan_files(data, target, text, beside=beside, cluster=cluster)
    with following(given):
        rows = _read(given, asked, beside, on_read, on_group)
        share = min(TEST_SHARE, MOST_TEST_ROWS / rows.n_given)
        report_step("drawing the rows held out", 0.0)
        training, frame = rows.hold_out(share, options.seed)
        with following(training), writable(out):
            return _fit_and_write(training, frame, target, options, out, title)


def _read(
    given: Scan,
    asked: Asked,
    beside: Beside,
    on_read: Callable[[Reading], None],
    on_group: Callable[[str], None],
) -> Scan:
    """The rows as their columns are to be read, in groups where an id repeats."""
    report_step("looking at the columns", 0.0)
    evidence = given.gather(asked)
    reading = Reading.decide(evidence, asked)
    on_read(reading)
    repeated = repeated_id(reading, evidence)
    if beside.group is None and beside.time is None and repeated is not None:
        given = given.grouped(repeated)
        on_group(repeated)
    return given.read_by(reading)


def _fit_and_write(
    training: Scan, frame: Any, target: str, options: JobOptions, out: Path, title: str
) -> JobResult:
    classes = training.survey.classes
    assert classes is not None
    problem = scan_problem(training, options)
    held = nw.from_native(frame, eager_only=True)
    assert training.reading is not None
    X = training.reading.apply(held.select(*training.columns).to_native())
    y = read_labels(held[target], target)
    model = classifier_of(problem, options).fit(training)
    report_step("measuring on the rows held out", 0.95)
    sample = training.sample(CHOICE_ROWS, options.seed)
    baseline = DecisionClassifier(
        PlainLogisticRegression(), costs=problem.costs, prior=problem.prior
    ).fit(sample.table, classes[sample.y], sample_weight=sample.weight)
    known = np.isin(y, classes)
    rows, groups = X[np.flatnonzero(known)], training.groups_of(held)
    summary = summarise(
        model,
        rows,
        y[known],
        problem.costs,
        positive=classes[problem.place],
        n_train=training.n_rows - model.n_calibration_,
        comparison=model.comparison_,
        baseline=baseline,
        cases=options.cases,
        currency=options.currency,
        seed=options.seed,
        clusters=None if groups is None else groups[known],
    )
    reference = reference_of(model.decision_, rows, y[known])
    return written(model, summary, problem, options, out, title, reference)


def scan_files(
    data: str,
    target: str | None,
    text: TextFormat,
    *,
    beside: Beside | None = None,
    cluster: str | None = None,
) -> Scan:
    """The rows of files; numbers that could be thousands stay texts until all were looked at."""
    beside = beside or Beside()
    return scan(
        data,
        target,
        weight=beside.weight,
        group=beside.group or None,
        time=beside.time,
        cluster=cluster,
        n_jobs=min(MOST_AT_ONCE, os.cpu_count() or 1),
        separator=text.separator,
        encoding=text.encoding,
        doubts=True,
    )


def compare_scan(
    data: str,
    target: str,
    options: JobOptions,
    text: TextFormat,
    asked: Asked,
    *,
    beside: Beside,
    cluster: str | None,
    on_read: Callable[[Reading], None],
    on_group: Callable[[str], None],
) -> LaconicClassifier:
    """What ``laconic compare`` fits of files that are not read into memory."""
    with (
        following(scan_files(data, target, text, beside=beside, cluster=cluster)) as given,
        following(_read(given, asked, beside, on_read, on_group)) as rows,
    ):
        return classifier_of(scan_problem(rows, options), options).fit(rows)


def drawn_rows_for(
    model: DecisionClassifier, data: str, target: str, text: TextFormat
) -> tuple[Table, NDArray[Any], int]:
    """At most :data:`MOST_TEST_ROWS` rows of files as a model reads them, their classes, and how
    many rows there are."""
    with following(scan_files(data, target, text)) as rows:
        frame = rows.hold_out(min(1.0, MOST_TEST_ROWS / rows.n_given))[1]
        drawn = split_target(frame, target)
        label = drawn.label.astype(model.classes_.dtype)
        return model.estimator_.schema_.apply(drawn.X), label, rows.n_given


def look_at_scan(data: str, target: str | None, text: TextFormat, asked: Asked) -> Look:
    """What ``laconic look`` says of files that are not read into memory."""
    with following(scan_files(data, target, text)) as rows:
        evidence = rows.gather(asked)
        reading = Reading.decide(evidence, asked)
        found = suspicions(reading, evidence, None, None)
        return Look(reading, evidence, rows.n_given, tuple(found))


def scan_problem(rows: Scan, options: JobOptions) -> Problem:
    """The options checked against the classes of a scan."""
    classes = rows.survey.classes
    assert classes is not None
    if len(classes) < 2:
        raise ValueError(f"The target has one class only: {classes[0]!r}; add rows of another.")
    names = np.array([_text(label) for label in classes.tolist()])
    return problem_of(names, rows.class_weights(), options)


def _text(label: Any) -> str:
    """A label as ``laconic fit`` writes those of a table in memory."""
    return label if isinstance(label, str) else f"{float(label):.17g}"


@contextmanager
def following(rows: Scan) -> Iterator[Scan]:
    """Passes of a scan as steps of the job."""

    def tell(number: int, done: int, runs: int) -> None:
        # the share of the job stays: nobody knows how many passes are still to come
        report_step(f"pass {number} over {rows.n_given:,} rows, {done / runs:.0%} of it")

    rows.on_run = tell
    try:
        yield rows
    finally:
        rows.close()
