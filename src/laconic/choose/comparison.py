"""Candidates compared on rows that they were not fitted on, at the price of their decisions."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from laconic._typing import Floats, Ints
from laconic.choose.candidates import Candidate
from laconic.choose.tuning import BEHIND, RACE_FOLDS
from laconic.core.compact import additive_form, model_size, variables_of
from laconic.core.contract import TableReader, Training, take_rows
from laconic.core.decisions import correct_prior, expected_costs
from laconic.core.links import probabilities
from laconic.core.progress import Deadline
from laconic.minimax.criterion import PosteriorLaws
from laconic.minimax.prior_box import PriorBox
from laconic.minimax.solver import solve_minimax


@dataclass(frozen=True)
class OperatingCondition:
    """What decisions cost and the class mix that they are made in (together: operating condition).

    ``train_prior`` is the mix of the training rows, ``prior`` that of deployment when it is known,
    ``box`` the mixes that are possible when it is not.
    """

    costs: Floats
    train_prior: Floats
    prior: Floats | None
    box: PriorBox | None
    reject_cost: float | None

    def deployed(self, proba: Floats, weight: Floats) -> Floats | None:
        """The prior to decide with: the one given, or the least favourable one of the box."""
        if self.box is None:
            return self.prior
        matched = PosteriorLaws.match(proba, weight, self.train_prior)
        found = solve_minimax(matched.laws(proba, weight), self.costs, self.box)
        return np.asarray(found.point)

    def row_costs(self, proba: Floats, y: Ints, prior: Floats | None) -> Floats:
        """Cost of the cheapest decision of each row, the truth being ``y``."""
        if prior is not None:
            proba = correct_prior(proba, self.train_prior, prior)
        expected = expected_costs(proba, self.costs)
        paid = self.costs[y, expected.argmin(axis=1)]
        if self.reject_cost is None:
            return np.asarray(paid)
        return np.where(expected.min(axis=1) > self.reject_cost, self.reject_cost, paid)

    def mix(self, risks: Floats) -> Floats:
        """The class shares that class risks are averaged with."""
        if self.box is not None:
            return np.asarray(self.box.worst(risks)[1])
        return self.train_prior if self.prior is None else self.prior


@dataclass
class Outcome:
    """What held-out rows say about one candidate.

    ``raw`` are the held-out probabilities before the smoothing of the model's form, whose link,
    smoothing and columns are kept beside them; a mean of two candidates names its ``members``.
    """

    candidate: Candidate
    proba: Floats
    row_cost: Floats
    raw: Floats | None = None
    link: str | None = None
    smoothing: float = 0.0
    columns: frozenset[str] = frozenset()
    members: tuple[Outcome, ...] = ()
    fit_seconds: float = 0.0
    sizes: list[float] = field(default_factory=list)
    variables: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    prior: Floats | None = None
    fitted: Any = None
    note: str = ""
    complete: bool = False

    @property
    def size(self) -> float:
        return float(np.median(self.sizes)) if self.sizes else float("nan")


@dataclass(frozen=True)
class Rows:
    """Training rows as the library reads them, and as they were given."""

    training: Training
    raw: Any
    weighted: bool

    def fit(self, model: Any, places: Ints | None, classes: NDArray[Any]) -> Any:
        whole = places is None or len(places) == self.training.n_rows
        at = slice(None) if whole else places
        given = {"sample_weight": self.training.weight[at]} if self.weighted else {}
        return clone(model).fit(self.take(model, None if whole else places),
                                classes[self.training.y[at]], **given)  # fmt: skip

    def take(self, model: Any, places: Ints | None) -> Any:
        if isinstance(model, TableReader):
            return self.training.table if places is None else self.training.table[places]
        return self.raw if places is None else take_rows(self.raw, places)


def class_risks(row_cost: Floats, y: Ints, weight: Floats, n_classes: int) -> tuple[Floats, Floats]:
    """Mean cost of the rows of each class, and the variance of that mean.

    A class without a priced row has risk zero: nothing is known to speak against it.
    """
    risk, variance = np.zeros(n_classes), np.zeros(n_classes)
    for k in range(n_classes):
        own = (y == k) & np.isfinite(row_cost)
        total = weight[own].sum()
        if total > 0:
            risk[k] = weight[own] @ row_cost[own] / total
            variance[k] = (weight[own] ** 2) @ (row_cost[own] - risk[k]) ** 2 / total**2
    return risk, variance


def run_candidate(
    candidate: Candidate,
    rows: Rows,
    folds: Sequence[tuple[Ints, Ints]],
    classes: NDArray[Any],
    condition: OperatingCondition,
    best: Outcome | None,
    deadline: Deadline,
) -> Outcome:
    """Decide the rows of every fold without having seen them, and price the decisions."""
    shape = (rows.training.n_rows, len(classes))
    out = Outcome(candidate, np.full(shape, np.nan), np.full(shape[0], np.nan))
    start = time.perf_counter()
    with warnings.catch_warnings():
        # a fold that stops short is told in the table; the refit of the chosen model warns
        warnings.simplefilter("ignore", ConvergenceWarning)
        if candidate.own_folds and folds:
            out.fitted = rows.fit(clone(candidate.model).set_params(cv=folds), None, classes)
            out.fitted.set_params(cv=candidate.model.cv)
            if out.fitted.held_out_proba_ is not None:
                out.proba = out.fitted.held_out_proba_
            _note_model(out, out.fitted)
            out.raw = out.proba
            out.complete = True
        else:
            _run_folds(out, rows, folds, classes, condition, best, deadline)
    out.fit_seconds = time.perf_counter() - start
    price(out, rows.training.y, rows.training.weight, condition)
    return out


def _run_folds(
    out: Outcome,
    rows: Rows,
    folds: Sequence[tuple[Ints, Ints]],
    classes: NDArray[Any],
    condition: OperatingCondition,
    best: Outcome | None,
    deadline: Deadline,
) -> None:
    model, y = out.candidate.model, rows.training.y
    for number, (train, test) in enumerate(folds):
        if deadline.passed():
            out.note = "time_budget ended before the last fold"
            return
        if len(np.unique(y[train])) < 2:
            continue
        fitted = rows.fit(model, train, classes)
        given = rows.take(model, test)
        said = np.asarray(fitted.predict_proba(given), dtype=np.float64)
        _note_model(out, fitted)
        own = np.ix_(test, np.searchsorted(classes, fitted.classes_))
        out.proba[test] = 0.0
        out.proba[own] = said
        if out.link is not None:
            out.raw = np.full_like(out.proba, np.nan) if out.raw is None else out.raw
            out.raw[test] = 0.0
            out.raw[own] = _unsmoothed(fitted, given) if out.smoothing else said
        if number + 1 == RACE_FOLDS < len(folds) and _behind(
            out, best, y, rows.training.weight, condition
        ):
            out.note = f"{RACE_FOLDS} folds"
            return
    out.complete = True


def _unsmoothed(fitted: Any, table: Any) -> Floats:
    return probabilities(fitted.form_.score(table), fitted.form_.link)


def _note_model(out: Outcome, fitted: Any) -> None:
    out.sizes.append(model_size(fitted))
    out.variables.append(variables_of(fitted))
    form = additive_form(fitted)
    if form is not None:
        out.link, out.smoothing = form.link, form.smoothing
        out.columns = out.columns | set(form.columns)
    gap, value = getattr(fitted, "duality_gap_", None), getattr(fitted, "objective_", None)
    if gap is not None:
        scale = 1.0 if value is None else max(abs(float(np.sum(value))), 1e-300)
        out.gaps.append(float(np.sum(gap)) / scale)


def price(out: Outcome, y: Ints, weight: Floats, condition: OperatingCondition) -> None:
    """What the decisions of the held-out rows cost, at the class mix they are meant for."""
    seen = np.flatnonzero(np.isfinite(out.proba[:, 0]))
    if not len(seen):
        return
    if out.candidate.decides:
        out.row_cost[seen] = (out.proba[seen] * condition.costs[y[seen]]).sum(axis=1)
        return
    out.prior = condition.deployed(out.proba[seen], weight[seen])
    out.row_cost[seen] = condition.row_costs(out.proba[seen], y[seen], out.prior)


def _behind(
    out: Outcome, best: Outcome | None, y: Ints, weight: Floats, condition: OperatingCondition
) -> bool:
    if best is None:
        return False
    price(out, y, weight, condition)
    difference, error = paired(out, best, y, weight, condition)
    return difference > BEHIND * error


def paired(
    one: Outcome, other: Outcome, y: Ints, weight: Floats, condition: OperatingCondition
) -> tuple[float, float]:
    """Difference of the mean costs on the rows that both have priced, and its standard error."""
    n_classes = len(condition.costs)
    gap = one.row_cost - other.row_cost
    own = np.where(np.isfinite(gap), one.row_cost, np.nan)
    mix = condition.mix(class_risks(own, y, weight, n_classes)[0])
    risk, variance = class_risks(gap, y, weight, n_classes)
    return float(mix @ risk), float(np.sqrt(mix**2 @ variance))


def table_of(
    outcomes: Sequence[Outcome], y: Ints, weight: Floats, condition: OperatingCondition
) -> dict[str, list[Any]]:
    """The comparison as columns; costs at the class mix of deployment (or the worst of the box)."""
    best = cheapest(outcomes, y, weight, condition)
    columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    for out in outcomes:
        risk, variance = class_risks(out.row_cost, y, weight, len(condition.costs))
        mix = condition.mix(risk)
        priced = bool(np.isfinite(out.row_cost).any())
        behind = paired(out, best, y, weight, condition) if priced else (np.nan, np.nan)
        row = {
            "candidate": out.candidate.name,
            "cost": float(mix @ risk) if priced else np.nan,
            "cost_se": float(np.sqrt(mix**2 @ variance)) if priced else np.nan,
            "behind": behind[0],
            "behind_se": behind[1],
            "worst_class_risk": float(risk.max()) if priced else np.nan,
            "log_loss": np.nan if out.candidate.decides else log_loss_of(out, y, weight),
            "auc": np.nan if out.candidate.decides else auc_of(out, y, weight),
            "size": out.size,
            "variables": float(np.median(out.variables)) if out.variables else np.nan,
            "fit_seconds": out.fit_seconds,
            "certificate": max(out.gaps) if out.gaps else np.nan,
            "note": out.note,
        }
        for name in _COLUMNS:
            columns[name].append(row[name])
    return columns


_COLUMNS = (
    "candidate", "cost", "cost_se", "behind", "behind_se", "worst_class_risk", "log_loss", "auc",
    "size", "variables", "fit_seconds", "certificate", "note",
)  # fmt: skip


def cheapest(
    outcomes: Sequence[Outcome], y: Ints, weight: Floats, condition: OperatingCondition
) -> Outcome:
    """The complete outcome of least cost; if none is complete, the one with most rows priced."""
    complete = [out for out in outcomes if out.complete]
    if not complete:
        return max(outcomes, key=lambda out: int(np.isfinite(out.row_cost).sum()))

    def cost(out: Outcome) -> float:
        risk, _ = class_risks(out.row_cost, y, weight, len(condition.costs))
        return float(condition.mix(risk) @ risk)

    return min(complete, key=cost)


def log_losses(out: Outcome, y: Ints) -> Floats:
    """-ln p of the class of each row; zero for rows that no fold held out."""
    p = out.proba[np.arange(len(y)), y]
    # a class absent from a fold's training rows has probability zero there
    return np.asarray(-np.log(np.clip(np.where(np.isnan(p), 1.0, p), np.finfo(float).eps, 1.0)))


def log_loss_of(out: Outcome, y: Ints, weight: Floats) -> float:
    seen = np.isfinite(out.proba[:, 0])
    if not seen.any():
        return float("nan")
    return float(np.average(log_losses(out, y)[seen], weights=weight[seen]))


def auc_of(out: Outcome, y: Ints, weight: Floats) -> float:
    """Area under the curve; the mean over classes against the rest when there are several."""
    seen = np.flatnonzero(np.isfinite(out.proba[:, 0]))
    n_classes = out.proba.shape[1]
    areas = []
    for k in [1] if n_classes == 2 else range(n_classes):
        truth = y[seen] == k
        if truth.any() and not truth.all():
            areas.append(roc_auc_score(truth, out.proba[seen, k], sample_weight=weight[seen]))
    return float(np.mean(areas)) if areas else float("nan")
