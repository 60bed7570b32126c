"""From a zone and rows to fitted coefficients: which loss, which solver, which problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from laconic._typing import Floats
from laconic.core.losses import Solution, TruncatedLogistic, TruncatedMultinomial
from laconic.data.source import ArraySource, Source, one_blas_thread
from laconic.linear.tuning import FAR_FROM_ZERO, FAR_TO_WIDE, WIDEST_DENSE, WIDEST_SPARSE


@dataclass(frozen=True)
class Task:
    """What to fit on which rows: y holds class codes, weight the sample and class weights."""

    X: Any
    y: NDArray[np.int64]
    weight: Floats
    C: float
    fit_intercept: bool
    solver: str
    tol: float
    max_iter: int


@dataclass(frozen=True)
class Fit:
    """Coefficients with their certificate and each training row's part in them.

    Rows that were read block by block are not held, nor is their part.
    """

    coef: Floats
    intercept: Floats
    objective: float
    gap: float
    n_iter: NDArray[np.int64]
    partition: NDArray[np.int8] | None
    dual: Floats | None
    solutions: tuple[Solution, ...]


def joint(multi_class: str, zone: Any, solver: str) -> bool:
    """Whether more than two classes are fitted jointly.

    "auto" reads it from the rest: caps and the full zone are joint, a pair (p_min, p_max) or a
    solver for two classes mean one against rest.
    """
    if multi_class != "auto":
        return multi_class == "multinomial"
    if solver in ("newton-cg", "paper"):
        return False
    if isinstance(zone, Real) or len(zone) != 2:
        return True
    return tuple(zone) == (0.0, 1.0)


def _far_from_zero(task: Task) -> Floats | None:
    """The middle of columns that lie further from zero than they are wide, zero for the others.

    With an intercept the problem is the same on columns moved there, b apart, and its Hessian is
    not singular to rounding. A constant column becomes zero exactly.
    """
    if not task.fit_intercept or issparse(task.X):
        return None
    mean = np.full(len(task.y), 1.0 / len(task.y)) @ task.X
    far = np.flatnonzero(np.abs(mean) > FAR_FROM_ZERO)
    low, high = task.X[:, far].min(axis=0), task.X[:, far].max(axis=0)
    narrow = np.abs(mean[far]) > FAR_TO_WIDE * (high - low)
    if not narrow.any():
        return None
    shift = np.zeros(len(mean))
    shift[far] = np.where(narrow, 0.5 * low + 0.5 * high, 0.0)
    return shift


def _solved(
    solve: Any, task: Task, y: NDArray[Any], loss: Any, start: Floats | None
) -> tuple[Solution, Floats]:
    """What a solver finds, and its point (w, b) for the rows as they are given."""
    shift = _far_from_zero(task)
    X = task.X if shift is None else task.X - shift
    if shift is not None and start is not None:
        start = np.array(start)
        start[..., -1] += start[..., :-1] @ shift
    with one_blas_thread():  # the same bits whatever the number of threads
        found: Solution = solve(
            ArraySource(X, y, task.weight),
            loss,
            C=task.C,
            fit_intercept=task.fit_intercept,
            tol=task.tol,
            max_iter=task.max_iter,
            start=start,
        )
    point = found.point.copy()
    if shift is not None:
        point[..., -1] -= point[..., :-1] @ shift
    return found, point


def fit_binary(task: Task, loss: TruncatedLogistic, start: Floats | None = None) -> Fit:
    """Class 1 against class 0."""
    target = np.where(task.y > 0, 1.0, -1.0)
    found, point = _solved(_linear_solver(task), task, target, loss, start)
    parts = loss.partition(found.details["scores"], target, found.details["on_kink"])
    dual = -task.C * task.weight * found.details["dual"]
    return Fit(
        point[None, :-1].copy(),
        point[-1:].copy(),
        found.value,
        found.gap,
        np.array([max(found.n_iter, 1)]),
        parts,
        dual[None],
        (found,),
    )


def fit_one_vs_rest(
    task: Task, loss: TruncatedLogistic, n_classes: int, start: Floats | None = None
) -> Fit:
    """One problem per class; objective and gap are those of their sum."""
    fits = [
        fit_binary(
            replace(task, y=(task.y == k).astype(np.int64)),
            loss,
            None if start is None else start[k],
        )
        for k in range(n_classes)
    ]
    return Fit(
        np.concatenate([fit.coef for fit in fits]),
        np.concatenate([fit.intercept for fit in fits]),
        sum(fit.objective for fit in fits),
        sum(fit.gap for fit in fits),
        np.concatenate([fit.n_iter for fit in fits]),
        np.stack([fit.partition for fit in fits if fit.partition is not None], axis=1),
        np.concatenate([fit.dual for fit in fits if fit.dual is not None]),
        tuple(solution for fit in fits for solution in fit.solutions),
    )


def fit_multinomial(task: Task, loss: TruncatedMultinomial, start: Floats | None = None) -> Fit:
    """All classes jointly."""
    from laconic.linear.solvers.multinomial import solve_multinomial

    width = task.X.shape[1] * len(loss.caps)
    kinked = any(cap < 1.0 for cap in loss.caps)
    if (kinked and width > 2 * WIDEST_DENSE) or task.solver in ("paper", "newton-cg"):
        raise ValueError(
            "The joint multinomial is solved by 'newton', with caps for at most "
            f"{2 * WIDEST_DENSE} coefficients (here {width}, solver={task.solver!r}); use "
            "multi_class='ovr'."
        )
    found, point = _solved(solve_multinomial, task, task.y, loss, start)
    scores, share, on_kink = (found.details[key] for key in ("scores", "share", "on_kink"))
    slope = TruncatedMultinomial((1.0,) * len(loss.caps)).slope(scores, task.y)
    parts = np.where(on_kink, 1, np.where(share > 0, 2, 0)).astype(np.int8)
    return Fit(
        point[:, :-1].copy(),
        point[:, -1].copy(),
        found.value,
        found.gap,
        np.array([max(found.n_iter, 1)]),
        parts,
        -task.C * (task.weight * share) * slope.T,
        (found,),
    )


def _linear_solver(task: Task) -> Any:
    widest = WIDEST_SPARSE if issparse(task.X) else WIDEST_DENSE
    solver = task.solver
    if solver == "auto":
        solver = "newton-cg" if task.X.shape[1] > widest else "newton"
    if solver == "newton":
        from laconic.linear.solvers.newton import solve_linear

        return solve_linear
    if solver == "newton-cg":
        from laconic.linear.solvers.newton_cg import solve_linear_cg

        return solve_linear_cg
    from laconic.linear.solvers.newton import solve_paper

    return solve_paper


@dataclass(frozen=True)
class ScanTask:
    """What to fit on rows read block by block: ``factors`` holds the weight of each class."""

    source: Source
    n_columns: int
    factors: Floats
    C: float
    fit_intercept: bool
    tol: float
    max_iter: int


def fit_scanned(
    task: ScanTask, loss: Any, positives: Sequence[int], start: Floats | None = None
) -> Fit:
    """One problem for each class in ``positives``, against the others."""
    from laconic.linear.solvers.scan import ScoredBlocks, Scorer, solve_scanned

    codes = np.arange(len(task.factors))
    found = [
        solve_scanned(
            ScoredBlocks(
                task.source,
                Scorer(loss, np.where(codes == k, 1.0, -1.0), task.C * task.factors),
                task.n_columns,
            ),
            fit_intercept=task.fit_intercept,
            tol=task.tol,
            max_iter=task.max_iter,
            start=None if start is None else np.atleast_2d(start)[place],
        )
        for place, k in enumerate(positives)
    ]
    points = np.vstack([solution.point for solution in found])
    return Fit(
        np.ascontiguousarray(points[:, :-1]),
        points[:, -1].copy(),
        sum(solution.value for solution in found),
        sum(solution.gap for solution in found),
        np.array([max(solution.n_iter, 1) for solution in found]),
        None,
        None,
        tuple(found),
    )


def fit_scanned_multinomial(task: ScanTask, start: Floats | None = None) -> Fit:
    """All classes jointly, by plain likelihood, on rows read block by block."""
    from laconic.linear.solvers.scan_multinomial import ClassRows, solve_scanned_multinomial

    width = task.n_columns * len(task.factors)
    if width > 2 * WIDEST_DENSE:
        raise ValueError(
            f"The joint multinomial of a scan takes at most {2 * WIDEST_DENSE} coefficients (here "
            f"{width}); use multi_class='ovr'."
        )
    rows = ClassRows(task.source, task.C * task.factors, task.n_columns, task.fit_intercept)
    found = solve_scanned_multinomial(rows, tol=task.tol, max_iter=task.max_iter, start=start)
    coef, intercept = found.point[:, :-1].copy(), found.point[:, -1].copy()
    n_iter = np.array([max(found.n_iter, 1)])
    return Fit(coef, intercept, found.value, found.gap, n_iter, None, None, (found,))


def stacked(coef: Floats, intercept: Floats | Sequence[float]) -> Floats:
    """(w, b) rows, as the solvers take their start."""
    return np.asarray(np.c_[coef, np.asarray(intercept)])
