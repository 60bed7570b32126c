"""The main job: from a table and costs to a small decision model, its file and its report."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.choose.estimator import LaconicClassifier
from laconic.choose.tuning import PAGE
from laconic.core.decisions import cost_matrix, decision_threshold, positive_class
from laconic.core.folds import copies_of, held_out_rows
from laconic.core.progress import report_step
from laconic.data.reading.reading import Reading
from laconic.data.reading.words import YES_NO
from laconic.data.row_keys import row_keys
from laconic.data.tables.cells import is_plain_number
from laconic.data.tables.text import TextFormat, csv_rows, header_of
from laconic.decide.costs import expected_cost
from laconic.decide.estimator import DecisionClassifier
from laconic.decide.reference import Reference, reference_of
from laconic.export.atomic import write_together
from laconic.export.model_file import as_text, model_content
from laconic.job.rows import JobRows
from laconic.linear.plain import PlainLogisticRegression
from laconic.reporting.business import read_volume
from laconic.reporting.render import to_html
from laconic.reporting.summary import compact, summarise

TEST_SHARE = 0.25


@dataclass(frozen=True)
class JobOptions:
    """What the user asks for beside the rows: the options of ``laconic fit``.

    ``costs`` holds "fp" and "fn", or the whole matrix by class names. ``prior`` holds the share of
    some classes; the others share the rest as they do in the rows.
    """

    costs: Mapping[str, Any] = field(default_factory=lambda: {"fp": 1.0, "fn": 1.0})
    positive: str | None = None
    prior: Mapping[str, float] = field(default_factory=dict)
    reject_cost: float | None = None
    candidates: Any = "auto"
    budget: float | None = None
    seed: int = 0
    language: str = "en"
    max_size: float | None = None
    target: str = ""
    """Name of the column of classes, for classes that say nothing without it: 0 and 1."""
    guarantee: tuple[str, ...] = ()
    capacity: str | None = None
    confidence: float = 0.95
    cases: str | None = None
    currency: str | None = None
    monotone: Mapping[str, int] = field(default_factory=dict)
    forbid: tuple[tuple[str, str], ...] = ()
    scenarios: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Other costs by name, written as ``costs``."""


@dataclass(frozen=True)
class Problem:
    """Classes, costs and class mix, checked."""

    classes: NDArray[np.str_]
    positive: str
    costs: NDArray[np.float64]
    prior: NDArray[np.float64] | None

    @property
    def place(self) -> int:
        """Where the positive class is among the classes."""
        return int(np.flatnonzero(self.classes == self.positive)[0])


@dataclass(frozen=True)
class JobResult:
    """What the job leaves behind; ``shown`` is the summary with classes as a reader knows them."""

    model: LaconicClassifier
    summary: dict[str, Any]
    shown: dict[str, Any]
    positive: str
    model_path: Path
    report_path: Path


def read_problem(label: NDArray[np.str_], options: JobOptions) -> Problem:
    """Check the options against the classes that are there."""
    classes, counts = np.unique(label, return_counts=True)
    if len(classes) < 2:
        only = str(classes[0])
        raise ValueError(f"The target has one class only: {only!r}; add rows of another.")
    _refuse_spellings(classes)
    return problem_of(classes, counts, options)


def _refuse_spellings(classes: NDArray[np.str_]) -> None:
    """Yes and yes are hardly two classes; single letters may be."""
    alike: dict[str, list[str]] = {}
    for name in map(str, classes):
        alike.setdefault(name.lower(), []).append(name)
    for own in alike.values():
        if len(own) > 1 and len(own[0]) > 1:
            raise ValueError(
                f"The target's classes {', '.join(map(repr, own))} differ in capitals alone; write "
                "them in one way."
            )


def problem_of(classes: NDArray[np.str_], counts: NDArray[Any], options: JobOptions) -> Problem:
    """The options for classes of given names and weights."""
    _refuse_two_costs(classes, options.costs)
    positive = _positive_class(classes, counts, options)
    costs = _cost_matrix(classes, positive, options.costs)
    prior = _prior(classes, counts / counts.sum(), positive, options.prior)
    return Problem(classes, positive, costs, prior)


def classifier_of(
    problem: Problem, options: JobOptions, reading: Reading | None = None
) -> LaconicClassifier:
    return LaconicClassifier(
        costs=problem.costs,
        prior=problem.prior,
        positive=problem.positive if len(problem.classes) == 2 else None,
        reject_cost=options.reject_cost,
        guarantee=list(options.guarantee) or None,
        capacity=options.capacity,
        confidence=options.confidence,
        candidates=options.candidates,
        max_size=PAGE if options.max_size is None else options.max_size,
        time_budget=options.budget,
        n_jobs=-1,
        random_state=options.seed,
        reading=reading,
        monotone=dict(options.monotone) or None,
        forbid=list(options.forbid) or None,
        scenarios={
            name: _cost_matrix(problem.classes, problem.positive, costs)
            for name, costs in options.scenarios.items()
        },
    )


def compare_rows(rows: JobRows, options: JobOptions) -> LaconicClassifier:
    """What ``laconic compare`` fits: on all rows, none held out for a report."""
    problem = read_problem(rows.label, options)
    by_row = _costs_by_row(rows, problem, options)
    beside = {"groups": rows.groups, "time": rows.time, "costs": by_row}
    given = {name: value for name, value in beside.items() if value is not None}
    model = classifier_of(problem, options, rows.reading)
    return model.fit(rows.table, rows.label, rows.weight, **given)


def run_job(rows: JobRows, options: JobOptions, *, out: Path, title: str) -> JobResult:
    """Split, compare, fit, measure on the rows held out; write ``model.json``, ``report.html``."""
    read_volume(options.cases, options.currency)  # said before a long fit
    problem = read_problem(rows.label, options)
    _, counts = np.unique(rows.label, return_counts=True)
    if counts.min() < 2:
        rare = str(problem.classes[counts.argmin()])
        raise ValueError(f"Class {rare!r} has one row; it takes two to hold one out.")
    with writable(out):
        return _fit_and_report(rows, problem, options, out, title)


def _fit_and_report(
    rows: JobRows, problem: Problem, options: JobOptions, out: Path, title: str
) -> JobResult:
    X, label = rows.table, rows.label
    codes = np.unique(label, return_inverse=True)[1]
    # equal rows stay on one side: a copy of a training row tells nothing about new ones
    keys, groups, time = row_keys(X, options.seed), rows.groups, rows.time
    train, test = held_out_rows(keys, codes, TEST_SHARE, groups, time, seed=options.seed)
    _refuse_lone_classes(problem, codes[train])
    if options.scenarios and (options.guarantee or options.capacity is not None):
        raise ValueError("--scenario moves the threshold that a guarantee holds; choose one.")
    weight = None if rows.weight is None else rows.weight[train]
    by_row = _costs_by_row(rows, problem, options)
    given = {} if by_row is None else {"costs": by_row[train]}
    if groups is not None:
        given["groups"] = groups[train]
    if time is not None:
        given["time"] = time[train]
    model = classifier_of(problem, options, rows.reading)
    model.fit(X[train], label[train], weight, **given)
    if rows.row_costs is not None:
        model.decision_.row_costs_ = rows.row_costs
    report_step("measuring on the rows held out", 0.95)
    baseline = DecisionClassifier(
        PlainLogisticRegression(), costs=problem.costs, prior=problem.prior
    ).fit(X[train], label[train], sample_weight=weight)
    summary = summarise(
        model,
        X[test],
        label[test],
        problem.costs,
        positive=problem.positive,
        n_train=len(train) - model.n_calibration_,
        comparison=model.comparison_,
        baseline=baseline,
        cases=options.cases,
        currency=options.currency,
        seed=options.seed,
        by_row=None if by_row is None else by_row[test],
        clusters=groups[test] if groups is not None else copies_of(keys[test], codes[test]),
        champion=None if rows.champion is None else (rows.champion[0], rows.champion[1][test]),
    )
    summary["scenarios"] = _scenarios(model, X[test], label[test], problem)
    reference = None
    if isinstance(model.decision_, DecisionClassifier):  # a minimax rule decides itself
        reference = reference_of(model.decision_, X[test], label[test])
    return written(model, summary, problem, options, out, title, reference)


def _refuse_lone_classes(problem: Problem, codes: NDArray[np.int64]) -> None:
    absent = np.setdiff1d(np.arange(len(problem.classes)), codes)
    if len(absent):
        raise ValueError(
            f"All rows of class {str(problem.classes[absent[0]])!r} are in few groups, which are "
            "held out together; say --no-group, or group by another column."
        )


def _costs_by_row(
    rows: JobRows, problem: Problem, options: JobOptions
) -> NDArray[np.float64] | None:
    """What errors cost on each row: amounts of columns, the other costs as asked."""
    if rows.row_costs is None:
        return None
    if len(problem.classes) != 2:
        raise ValueError(
            f"--cost-column is for two classes, and the target has {len(problem.classes)}."
        )
    if positive_class(problem.classes, options.positive) is None:
        first, last = problem.classes
        raise ValueError(
            f"--cost-column: which class is positive is not known; say --positive {first} or "
            f"--positive {last}."
        )
    if options.guarantee or options.capacity is not None:
        raise ValueError("--cost-column decides row by row and can hold no guarantee; choose one.")
    place = problem.place
    standing = {"fp": problem.costs[1 - place, place], "fn": problem.costs[place, 1 - place]}
    n_rows = len(rows.label)
    given = {**standing, **rows.row_costs_values}
    each = {name: np.broadcast_to(cost, n_rows) for name, cost in given.items()}
    return cost_matrix(each, problem.classes, n_rows=n_rows, positive=problem.positive)


def _scenarios(
    model: LaconicClassifier, X: Any, y: NDArray[Any], problem: Problem
) -> list[dict[str, Any]]:
    """What decisions under other costs cost on the rows held out, and how many they are."""
    found = []
    for name, costs in getattr(model.decision_, "scenarios_", {}).items():
        taken = model.predict(X, scenario=name)
        usual = model.predict(X)
        found.append(
            {
                "name": name,
                "costs": costs.tolist(),
                "threshold": _threshold(costs, problem.place),
                "cost": expected_cost(y, taken, costs, labels=problem.classes),
                "cost_of_usual": expected_cost(y, usual, costs, labels=problem.classes),
                "decided": float(np.mean(taken == problem.positive)),
            }
        )
    return found


def _threshold(costs: NDArray[np.float64], place: int) -> float | None:
    if len(costs) != 2:
        return None
    order = [1 - place, place]
    return decision_threshold(costs[np.ix_(order, order)])


def written(
    model: LaconicClassifier,
    summary: dict[str, Any],
    problem: Problem,
    options: JobOptions,
    out: Path,
    title: str,
    reference: Reference | None = None,
) -> JobResult:
    """Write ``model.json`` and ``report.html``, which names the digest of the model it is about."""
    report_step("writing", 0.99)
    kept = compact(summary) | {"target": options.target}
    content = model_content(model, summary=kept, reference=reference)
    shown = named_classes(summary, options.target)
    page = to_html(shown, title=title, language=options.language, digest=content["digest"])
    out.mkdir(parents=True, exist_ok=True)  # a job beside this one that failed has removed it
    write_together({out / "model.json": as_text(content), out / "report.html": page})
    return JobResult(
        model, summary, shown, problem.positive, out / "model.json", out / "report.html"
    )


def class_name(label: str, target: str) -> str:
    """A class by name: with that of its column where the label alone says nothing.

    >>> class_name("1", "default"), class_name("fraud", "kind of payment")
    ('default = 1', 'fraud')
    """
    bare = is_plain_number(label) or label.lower() in {word for pair in YES_NO for word in pair}
    return f"{target} = {label}" if target and bare else label


def named_classes(summary: Mapping[str, Any], target: str) -> dict[str, Any]:
    """The summary with :func:`class_name` for every class, for pages and terminals."""

    def renamed(costs: Mapping[str, Any]) -> dict[str, Any]:
        return {
            f"always {class_name(key[7:], target)}" if key.startswith("always ") else key: value
            for key, value in costs.items()
        }

    found = dict(summary)
    found["classes"] = [class_name(label, target) for label in summary["classes"]]
    found["positive"] = class_name(summary["positive"], target)
    found["certificates"] = [
        entry | {"name": class_name(entry["name"], target)} if entry["kind"] == "promise" else entry
        for entry in summary["certificates"]
    ]
    for key in ("baselines", "alternatives"):
        if isinstance(found.get(key), Mapping):
            found[key] = renamed(found[key])
    return found


@contextmanager
def writable(folder: Path) -> Iterator[None]:
    """Make the folder and try to write in it before a long fit; a failed job leaves no folder."""
    there = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ValueError(f"--out {folder} cannot be written to ({why}); name another.") from error
    try:
        yield
    except BaseException:
        if not there:
            with suppress(OSError):  # not empty, or already removed by a job beside this one
                folder.rmdir()
        raise


def read_costs(path: str | Path) -> dict[str, dict[str, float]]:
    """A cost matrix from a CSV: a row for each true class (first cell), a column by decision."""
    with csv_rows(path, TextFormat()) as rows:
        decisions = header_of(rows, Path(path).name)[1:]
        found: dict[str, dict[str, float]] = {}
        for line, row in enumerate(rows, start=2):
            if not row:
                continue
            try:
                found[row[0].strip()] = {
                    decision.strip(): float(cell)
                    for decision, cell in zip(decisions, row[1:], strict=True)
                }
            except ValueError:
                raise ValueError(
                    f"{Path(path).name}, line {line}: write the true class, then one cost for "
                    f"each of the {len(decisions)} decisions of the header."
                ) from None
    return found


def _refuse_two_costs(classes: NDArray[np.str_], costs: Mapping[str, Any]) -> None:
    """fp and fn are two kinds of error: more classes have more."""
    shorthand = not any(isinstance(value, Mapping) for value in costs.values())
    if len(classes) > 2 and shorthand and costs["fp"] != costs["fn"]:
        raise ValueError(
            f"--cost fp and fn are for two classes, and the target has {len(classes)} "
            f"({', '.join(map(str, classes[:5]))}); give --costs FILE.csv with a row for each true "
            "class and a column for each decision."
        )


def _positive_class(
    classes: NDArray[np.str_], counts: NDArray[np.int64], options: JobOptions
) -> str:
    """As named, else as the labels say (1 of 0/1); a class to speak of where no cost depends on it.

    Costs or a share of "the positive class" must not depend on which class happens to be rarer.
    """
    if options.positive is not None and options.positive not in classes:
        raise ValueError(
            f"--positive {options.positive}: the classes are {', '.join(map(str, classes[:8]))}."
        )
    known = positive_class(classes, options.positive)
    if known is not None:
        return str(known)
    costs = options.costs
    shorthand = not any(isinstance(value, Mapping) for value in costs.values())
    uneven = shorthand and costs["fp"] != costs["fn"]
    if uneven or "" in options.prior:
        what = "--cost" if uneven else "--prior"
        raise ValueError(
            f"{what}: which class is positive is not known; say --positive "
            f"{' or --positive '.join(map(str, classes[:3]))}, or name the classes in "
            f"{'--costs' if uneven else '--prior class=share'}."
        )
    return str(classes[counts.argmin()])


def _cost_matrix(
    classes: NDArray[np.str_], positive: str, costs: Mapping[str, Any]
) -> NDArray[np.float64]:
    """From a matrix by names; or a miss of the positive class costs ``fn``, other errors ``fp``."""
    if any(isinstance(value, Mapping) for value in costs.values()):
        names = [str(name) for name in classes]
        odd = [n for n in [*costs, *next(iter(costs.values()))] if n not in names]
        absent = [n for n in names if n not in costs or n not in costs[n]]
        if odd or absent:
            own = ", ".join(dict.fromkeys(odd or absent))
            raise ValueError(
                f"--costs names other classes than the target: {own}; the target has "
                f"{', '.join(names[:8])}."
            )
        return np.array([[float(costs[truth][said]) for said in names] for truth in names])
    matrix = np.full((len(classes), len(classes)), float(costs["fp"]))
    matrix[classes == positive, :] = float(costs["fn"])
    np.fill_diagonal(matrix, 0.0)
    return matrix


def _prior(
    classes: NDArray[np.str_],
    shares: NDArray[np.float64],
    positive: str,
    prior: Mapping[str, float],
) -> NDArray[np.float64] | None:
    """Named shares as they are, the other classes in proportion; "" names the positive class."""
    if not prior:
        return None
    given = np.full(len(classes), np.nan)
    for name, share in prior.items():
        at = np.flatnonzero(classes == (name or positive))
        if not len(at):
            raise ValueError(f"--prior {name}: the classes are {', '.join(map(str, classes[:8]))}.")
        given[at] = share
    open_ = np.isnan(given)
    rest = 1.0 - np.nansum(given)
    if (given < 0).any() or rest < -1e-9 or (not open_.any() and abs(rest) > 1e-9):
        raise ValueError("--prior: shares must be at least 0 and sum to 1.")
    if open_.any():
        given[open_] = max(rest, 0.0) * shares[open_] / shares[open_].sum()
    return given
