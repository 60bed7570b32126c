"""The main job: from a table and costs to a decision model, its file and its report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from laconic.data.columns import Table
from laconic.estimators.decision import DecisionClassifier
from laconic.estimators.plain_logistic import PlainLogisticRegression
from laconic.export.model_file import save, write_atomically
from laconic.report.render import to_html
from laconic.report.summary import summarise

JOB_STEPS = ("splitting the rows", "fitting", "measuring", "writing")
TEST_SHARE = 0.25


@dataclass(frozen=True)
class JobResult:
    """What the job leaves behind."""

    summary: dict[str, Any]
    positive: str
    model_path: Path
    report_path: Path


def run_job(
    X: Table,
    label: NDArray[np.str_],
    *,
    costs: dict[str, float],
    positive: str | None,
    out: Path,
    seed: int,
    title: str,
    on_step: Callable[[str], None] = lambda step: None,
) -> JobResult:
    """Split, fit, measure on the rows held out, and write ``model.json`` and ``report.html``."""
    classes, counts = np.unique(label, return_counts=True)
    if len(classes) < 2:
        raise ValueError(f"The target has one class only: {classes[0]!r}.")
    positive = _positive_class(classes, counts, positive)
    matrix = _cost_matrix(classes, positive, costs)
    if counts.min() < 2:
        raise ValueError(
            f"Class {str(classes[counts.argmin()])!r} has one row; it takes two to hold one out."
        )
    on_step(JOB_STEPS[0])
    train, test = train_test_split(
        np.arange(len(label)), test_size=TEST_SHARE, stratify=label, random_state=seed
    )
    on_step(JOB_STEPS[1])
    model = DecisionClassifier(PlainLogisticRegression(), costs=matrix)
    model.fit(X[np.sort(train)], label[np.sort(train)])
    on_step(JOB_STEPS[2])
    summary = summarise(model, X[test], label[test], matrix, positive=positive, n_train=len(train))
    on_step(JOB_STEPS[3])
    out.mkdir(parents=True, exist_ok=True)
    save(model, out / "model.json", summary=summary)
    write_atomically(out / "report.html", to_html(summary, title=title))
    return JobResult(summary, positive, out / "model.json", out / "report.html")


def _positive_class(
    classes: NDArray[np.str_], counts: NDArray[np.int64], positive: str | None
) -> str:
    if positive is None:
        return str(classes[counts.argmin()])
    if positive not in classes:
        raise ValueError(
            f"--positive {positive}: the classes are {', '.join(map(str, classes[:8]))}."
        )
    return positive


def _cost_matrix(
    classes: NDArray[np.str_], positive: str, costs: dict[str, float]
) -> NDArray[np.float64]:
    """A miss of the positive class costs ``fn``; every other error costs ``fp``."""
    matrix = np.full((len(classes), len(classes)), costs["fp"])
    matrix[classes == positive, :] = costs["fn"]
    np.fill_diagonal(matrix, 0.0)
    return matrix
