"""What a model said on the rows that judge it, read once for all the panels of a report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

from laconic._typing import Floats, Ints
from laconic.core.decisions import class_codes, correct_prior, cost_matrix, expected_costs
from laconic.decide.estimator import DecisionClassifier

ABSTAINED = -1


@dataclass(frozen=True)
class Measured:
    """Truth, probabilities and decisions of ``n`` rows, with the rule that took them.

    ``raw`` are the probabilities of the wrapped model, ``proba`` those corrected for the deployed
    class mix; both are None for a rule without class probabilities. ``forced`` are the decisions
    without abstention, ``decided`` those taken (:data:`ABSTAINED` for none).
    """

    classes: list[Any]
    truth: Ints
    raw: Floats | None
    proba: Floats | None
    forced: Ints
    decided: Ints
    costs: Floats
    reject_cost: float | None
    train_prior: Floats | None
    prior: Floats | None
    inner: Any
    """The wrapped model: what the page describes."""
    by_row: Floats | None = None
    """A cost matrix for each row, where errors cost different amounts."""
    clusters: NDArray[Any] | None = None
    """Rows with the same entry go together: copies, visits of one patient."""

    @property
    def n_rows(self) -> int:
        return len(self.truth)

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def class_rows(self) -> Ints:
        return np.bincount(self.truth, minlength=self.n_classes).astype(np.int64)

    def cost_of_rows(self) -> Floats:
        """What each decision cost; an abstention costs ``reject_cost``."""
        taken = self.decided != ABSTAINED
        cost = self.price_of(np.maximum(self.decided, 0))
        if self.reject_cost is None:
            return cost
        return np.where(taken, cost, self.reject_cost)

    def price_of(self, decided: Ints) -> Floats:
        """What decisions cost on these rows."""
        if self.by_row is None:
            return np.asarray(self.costs[self.truth, decided])
        return np.asarray(self.by_row[np.arange(self.n_rows), self.truth, decided])

    def paid(self) -> Floats:
        """Costs by truth and decision; a last column for abstaining where that is allowed."""
        if self.reject_cost is None:
            return self.costs
        return np.hstack([self.costs, np.full((self.n_classes, 1), self.reject_cost)])

    def confusion(self) -> Ints:
        """(K, K + 1): truth by decision; the last column counts abstentions."""
        place = np.where(self.decided == ABSTAINED, self.n_classes, self.decided)
        cells = self.truth * (self.n_classes + 1) + place
        counts = np.bincount(cells, minlength=self.n_classes * (self.n_classes + 1))
        return counts.reshape(self.n_classes, self.n_classes + 1).astype(np.int64)


def with_row_costs(rows: Measured, by_row: Floats | None) -> Measured:
    """The same rows decided and priced at costs of their own; ``costs`` are then their means."""
    if by_row is None or rows.proba is None:
        return rows
    paid = expected_costs(rows.proba, by_row)
    decided = forced = paid.argmin(axis=1)
    if rows.reject_cost is not None:
        decided = np.where(paid.min(axis=1) > rows.reject_cost, ABSTAINED, forced)
    means = [
        np.mean(by_row[rows.truth == k, k] if count else by_row[:, k], axis=0)
        for k, count in enumerate(rows.class_rows)
    ]
    return replace(rows, by_row=by_row, costs=np.stack(means), forced=forced, decided=decided)


def at_mean_costs(rows: Measured) -> Measured:
    """The same rows under one cost matrix: what sliders over costs and class mixes play with."""
    if rows.by_row is None or rows.proba is None:
        return rows
    paid = expected_costs(rows.proba, rows.costs)
    decided = forced = paid.argmin(axis=1)
    if rows.reject_cost is not None:
        decided = np.where(paid.min(axis=1) > rows.reject_cost, ABSTAINED, forced)
    return replace(rows, by_row=None, forced=forced, decided=decided)


def row_costs_of(model: Any, costs: Any, positive: Any, n_rows: int) -> Floats | None:
    """n x K x K costs where ``costs`` has one for each row; None where it is one matrix."""
    classes = getattr(model, "classes_", None)
    if costs is None or classes is None:
        return None
    for name in ("positive_", "positive"):
        positive = getattr(model, name, None) if positive is None else positive
    matrix = cost_matrix(costs, classes, n_rows=n_rows, positive=positive)
    return matrix if matrix.ndim == 3 else None


def decision_model(model: Any, costs: Any = None, positive: Any = None) -> Any:
    """The model as a decision maker: itself, or wrapped when it only gives probabilities.

    A model that decides by itself (a minimax rule, a classifier without ``predict_proba``) stays
    as it is.
    """
    model = getattr(model, "decision_", model)
    if isinstance(model, DecisionClassifier) or not _gives_probabilities(model):
        return model
    costs = costs_of(model, costs, positive)
    return DecisionClassifier(model, costs=costs, positive=positive, prefit=True).fit(None, None)


def costs_of(model: Any, costs: Any = None, positive: Any = None) -> Floats:
    """K x K costs: those given, else the model's own, else one for every error."""
    for name in ("positive_", "positive"):
        positive = getattr(model, name, None) if positive is None else positive
    if costs is None:
        costs = getattr(model, "cost_matrix_", None)
    if costs is None:
        costs = getattr(model, "costs", None)
    return cost_matrix(costs, model.classes_, positive=positive)


def measure(model: Any, X: Any, y: Any, costs: Any = None, positive: Any = None) -> Measured:
    """Run ``model`` (see :func:`decision_model`) on labelled rows, once."""
    classes = np.asarray(model.classes_)
    truth = class_codes(column_or_1d(y), classes, "y")
    if not len(truth):
        raise ValueError("A report needs at least one row to measure on; X and y are empty.")
    matrix = costs_of(model, costs, positive)
    if isinstance(model, DecisionClassifier) and _gives_probabilities(model.estimator_):
        return _measure_probabilities(model, X, truth, matrix)
    decided = class_codes(np.asarray(model.predict(X)), classes, "decisions")
    inner = getattr(model, "estimator_", model)
    return Measured(
        classes.tolist(),
        truth,
        None,
        None,
        decided,
        decided,
        matrix,
        None,
        getattr(model, "train_prior_", None),
        None,
        inner,
    )


def _measure_probabilities(
    model: DecisionClassifier, X: Any, truth: Ints, matrix: Floats
) -> Measured:
    raw = np.asarray(model.estimator_.predict_proba(X), dtype=np.float64)
    if len(raw) != len(truth):
        raise ValueError(f"X has {len(raw)} rows and y has {len(truth)}.")
    proba = raw
    if model.prior_ is not None:
        proba = correct_prior(raw, model.train_prior_, model.prior_)
    own_rule = model.guaranteed_ is not None
    paid = expected_costs(proba, model.rule_costs_ if own_rule else matrix)
    forced = paid.argmin(axis=1)
    decided = forced
    if model.rule_reject_ is not None:
        decided = np.where(paid.min(axis=1) > model.rule_reject_, ABSTAINED, forced)
    return Measured(
        np.asarray(model.classes_).tolist(),
        truth,
        raw,
        proba,
        forced,
        decided,
        matrix,
        model.reject_cost,
        model.train_prior_,
        model.prior_,
        model.estimator_,
    )


def _gives_probabilities(model: Any) -> bool:
    """A minimax rule's ``predict_proba`` are the probabilities of its decisions."""
    return hasattr(model, "predict_proba") and not getattr(model, "decides", False)
