"""What held-out rows say of a candidate: cost of its decisions, losses, the table of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from laconic._typing import Floats, Ints
from laconic.choose.candidates import Candidate
from laconic.choose.tailored import decision_costs, tailored_losses
from laconic.choose.tuning import CONCENTRATION
from laconic.core.compact import additive_form, model_size, variables_of
from laconic.core.decisions import correct_prior, decision_threshold, expected_costs
from laconic.core.forms import AdditiveScore
from laconic.minimax.criterion import PosteriorLaws, PriorBox
from laconic.minimax.solver import solve_minimax


@dataclass(frozen=True)
class OperatingCondition:
    """What decisions cost and the class mix that they are made in (together: operating condition).

    ``train_prior`` is the mix of the training rows, ``prior`` that of deployment when it is known,
    ``box`` the mixes that are possible when it is not.
    """

    costs: Floats
    train_prior: Floats
    prior: Floats | None = None
    box: PriorBox | None = None
    reject_cost: float | None = None
    by_row: Floats | None = None
    """One cost matrix for each row, of which ``costs`` is the mean."""

    def part(self, places: Ints) -> OperatingCondition:
        """The same for some of the rows."""
        return self if self.by_row is None else replace(self, by_row=self.by_row[places])

    def deployed(self, proba: Floats, weight: Floats) -> Floats | None:
        """The prior to decide with: the one given, or the least favourable one of the box."""
        if self.box is None:
            return self.prior
        matched = PosteriorLaws.match(proba, weight, self.train_prior)
        found = solve_minimax(matched.laws(proba, weight), self.costs, self.box)
        return np.asarray(found.point)

    def at_deployment(self, proba: Floats, prior: Floats | None) -> Floats:
        """Probabilities at the class mix that decisions are made in."""
        return proba if prior is None else correct_prior(proba, self.train_prior, prior)

    def row_costs(self, proba: Floats, y: Ints, prior: Floats | None) -> Floats:
        """Cost of the cheapest decision of each row, the truth being ``y``."""
        costs = self.costs if self.by_row is None else self.by_row
        return decision_costs(self.at_deployment(proba, prior), y, costs, self.reject_cost)

    def mix(self, risks: Floats) -> Floats:
        """The class shares that class risks are averaged with."""
        if self.box is not None:
            return np.asarray(self.box.worst(risks)[1])
        return self.train_prior if self.prior is None else self.prior


@dataclass(eq=False)
class Outcome:
    """What held-out rows say about one candidate.

    ``raw`` are the held-out probabilities before the smoothing of the model's form, whose link,
    smoothing and columns are kept beside them. ``forms`` are, by the number of the fold, those that
    were fitted without its rows. A weighted mean of candidates names its ``members`` and their
    ``weights``; a page has a ``limit``, the most entries it may have, and is ``far`` where it
    cannot say on so many what taught it.
    """

    candidate: Candidate
    proba: Floats
    row_cost: Floats
    raw: Floats | None = None
    link: str | None = None
    smoothing: float = 0.0
    columns: frozenset[str] = frozenset()
    members: tuple[Outcome, ...] = ()
    weights: tuple[float, ...] = ()
    fit_seconds: float = 0.0
    one_fit_seconds: float = 0.0
    sizes: list[float] = field(default_factory=list)
    forms: dict[int, AdditiveScore] = field(default_factory=dict)
    limit: float = float("inf")
    far: bool = False
    variables: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    prior: Floats | None = None
    fitted: Any = None
    note: str = ""
    complete: bool = False

    @classmethod
    def empty(cls, candidate: Candidate, n_rows: int, n_classes: int, note: str = "") -> Outcome:
        nothing = np.full((n_rows, n_classes), np.nan)
        return cls(candidate, nothing, nothing[:, 0].copy(), note=note)

    @property
    def name(self) -> str:
        return self.candidate.name

    @property
    def size(self) -> float:
        return float(np.median(self.sizes)) if self.sizes else float("nan")

    def note_model(self, fitted: Any, fold: int | None = None) -> None:
        """Size, columns and certificate of one fit, the form of a fold."""
        self.sizes.append(model_size(fitted))
        self.variables.append(variables_of(fitted))
        form = additive_form(fitted)
        if form is not None:
            self.link, self.smoothing = form.link, form.smoothing
            self.columns = self.columns | set(form.columns)
            if fold is not None:
                self.forms[fold] = form
        gap, value = getattr(fitted, "duality_gap_", None), getattr(fitted, "objective_", None)
        if gap is not None:
            scale = 1.0 if value is None else max(abs(float(np.sum(value))), 1e-300)
            self.gaps.append(float(np.sum(gap)) / scale)


@dataclass(frozen=True)
class Judge:
    """Held-out rows, their true classes and weights, and what decisions about them cost."""

    y: Ints
    weight: Floats
    condition: OperatingCondition

    def price(self, out: Outcome) -> Outcome:
        """What the decisions cost, at the class mix they are meant for."""
        seen = np.flatnonzero(np.isfinite(out.proba[:, 0]))
        if not len(seen):
            return out
        if out.candidate.decides:
            paid = out.proba[seen] * self.condition.costs[self.y[seen]]
            out.row_cost[seen] = paid.sum(axis=1)
            return out
        out.prior = self.condition.deployed(out.proba[seen], self.weight[seen])
        own = self.condition.part(seen)
        out.row_cost[seen] = own.row_costs(out.proba[seen], self.y[seen], out.prior)
        return out

    def tailored(self, out: Outcome) -> Floats:
        """Loss of each row that looks at probabilities near the decision; NaN where not seen."""
        if out.candidate.decides:
            return out.row_cost
        losses = np.full(len(self.y), np.nan)
        seen = np.flatnonzero(np.isfinite(out.proba[:, 0]))
        own = self.condition.part(seen)
        proba = own.at_deployment(out.proba[seen], out.prior)
        costs = own.costs if own.by_row is None else own.by_row
        losses[seen] = tailored_losses(proba, self.y[seen], costs, CONCENTRATION, own.reject_cost)
        return losses

    def class_risks(self, rows: Floats) -> tuple[Floats, Floats]:
        """Mean of the rows of each class, and the variance of that mean (a weight is so many rows).

        A class without a priced row has risk zero: nothing is known to speak against it.
        """
        n_classes = len(self.condition.costs)
        risk, variance = np.zeros(n_classes), np.zeros(n_classes)
        for k in range(n_classes):
            own = (self.y == k) & np.isfinite(rows)
            total = self.weight[own].sum()
            if total > 0:
                share = self.weight[own] / total  # the square of a total of 1e-200 is zero
                risk[k] = share @ rows[own]
                variance[k] = share @ (rows[own] - risk[k]) ** 2 / total
        return risk, variance

    def mean(self, rows: Floats) -> tuple[float, float]:
        """Mean over the class mix of deployment, and its standard error."""
        risk, variance = self.class_risks(rows)
        mix = self.condition.mix(risk)
        return float(mix @ risk), float(np.sqrt(mix**2 @ variance))

    def paired(self, one: Floats, other: Floats) -> tuple[float, float]:
        """Mean difference on the rows that both have priced, and its standard error."""
        gap = one - other
        own = np.where(np.isfinite(gap), one, np.nan)
        mix = self.condition.mix(self.class_risks(own)[0])
        risk, variance = self.class_risks(gap)
        return float(mix @ risk), float(np.sqrt(mix**2 @ variance))

    def cheapest(self, outcomes: Sequence[Outcome]) -> Outcome:
        """The complete outcome of least cost; if none is, the one with most rows priced."""
        complete = [out for out in outcomes if out.complete]
        if not complete:
            return max(outcomes, key=lambda out: int(np.isfinite(out.row_cost).sum()))
        return min(complete, key=lambda out: self.mean(out.row_cost)[0])

    def log_losses(self, out: Outcome) -> Floats:
        """-ln p of the class of each row; NaN for rows that no fold held out."""
        p = out.proba[np.arange(len(self.y)), self.y]
        # a class absent from a fold's training rows has probability zero there
        return np.asarray(-np.log(np.maximum(p, np.finfo(float).eps)))

    def log_loss(self, out: Outcome) -> float:
        """Mean over the rows as they are; NaN for rules that say no probabilities."""
        losses = self.log_losses(out)
        seen = np.isfinite(losses)
        if out.candidate.decides or not seen.any():
            return float("nan")
        return float(np.average(losses[seen], weights=self.weight[seen]))

    def auc(self, out: Outcome) -> float:
        """Area under the curve; the mean over classes against the rest when there are several."""
        from sklearn.metrics import roc_auc_score

        seen = np.flatnonzero(np.isfinite(out.proba[:, 0]))
        n_classes = out.proba.shape[1]
        areas = []
        for k in [1] if n_classes == 2 else range(n_classes):
            truth, p = self.y[seen] == k, out.proba[seen, k]
            if not out.candidate.decides and truth.any() and not truth.all():
                areas.append(roc_auc_score(truth, p, sample_weight=self.weight[seen]))
        return float(np.mean(areas)) if areas else float("nan")

    def table(self, outcomes: Sequence[Outcome], kept: Outcome) -> dict[str, list[Any]]:
        """The comparison as columns; costs at the class mix of deployment, or the worst of it."""
        best = self.cheapest(outcomes)
        rows = [self._row(out, best, kept) for out in outcomes]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def _row(self, out: Outcome, best: Outcome, kept: Outcome) -> dict[str, Any]:
        priced = bool(np.isfinite(out.row_cost).any())
        nothing = (float("nan"), float("nan"))
        cost, cost_se = self.mean(out.row_cost) if priced else nothing
        behind, behind_se = self.paired(out.row_cost, best.row_cost) if priced else nothing
        above, above_se = self.paired(out.row_cost, kept.row_cost) if priced else nothing
        return {
            "candidate": out.name,
            "cost": cost,
            "cost_se": cost_se,
            "behind": behind,
            "behind_se": behind_se,
            "above_kept": above,
            "above_kept_se": above_se,
            "worst_class_risk": self.class_risks(out.row_cost)[0].max() if priced else np.nan,
            "tailored_loss": self.mean(self.tailored(out))[0] if priced else np.nan,
            "log_loss": self.log_loss(out),
            "auc": self.auc(out),
            "size": out.size,
            "variables": float(np.median(out.variables)) if out.variables else np.nan,
            "fit_seconds": out.fit_seconds,
            "certificate": max(out.gaps) if out.gaps else np.nan,
            "own": out.candidate.own,
            "note": out.note,
        }


def scenario_table(
    scenarios: Mapping[str, Floats], kept: Outcome, judge: Judge, positive: int = 1
) -> dict[str, list[Any]]:
    """Decisions of the kept model under other costs: threshold, held-out cost, and what those
    taken under the costs of the fit would cost."""
    names = ("scenario", "threshold", "cost", "cost_se", "cost_of_usual")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    seen = np.flatnonzero(np.isfinite(kept.proba[:, 0]))
    usual = judge.condition.part(seen)
    own = usual.costs if usual.by_row is None else usual.by_row
    proba = usual.at_deployment(kept.proba[seen], kept.prior)
    taken = expected_costs(proba, own).argmin(axis=1)
    for name, costs in scenarios.items():
        row, stale = np.full((2, len(judge.y)), np.nan)
        row[seen] = decision_costs(proba, judge.y[seen], costs, usual.reject_cost)
        stale[seen] = costs[judge.y[seen], taken]
        threshold = decision_threshold(costs) if len(costs) == 2 else np.nan
        threshold = threshold if positive else 1.0 - threshold
        values = (name, threshold, *judge.mean(row), judge.mean(stale)[0])
        for column, value in zip(names, values, strict=True):
            columns[column].append(value)
    return columns
