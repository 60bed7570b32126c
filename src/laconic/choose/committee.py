"""The committee: every candidate weighed on held-out rows, the best that is known and no page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from laconic._typing import Floats
from laconic.choose.blends import mean_form
from laconic.choose.candidates import Candidate
from laconic.choose.comparison import Judge, Outcome
from laconic.choose.race import Folds
from laconic.choose.stacking import (
    StackProblem,
    cross_fitted,
    fold_weights,
    log_probabilities,
    solve_stack,
    stacked,
)
from laconic.choose.tuning import FRONT, PAIR_PENALTY, PARTNER, PARTNER_SHARE, STACK_PENALTY
from laconic.core.contract import TableClassifier, TableReader
from laconic.core.forms import AdditiveScore

COMMITTEE = "committee"


def front_of(outcomes: Sequence[Outcome], judge: Judge) -> int:
    """Place of the member that the weights are shrunk to: the front runner, else the best.

    Of many candidates the one with the least held-out loss was often lucky; the front runner was
    best over many tables before these rows were seen.
    """
    names = [out.name for out in outcomes]
    for name in FRONT:
        if name in names:
            return names.index(name)
    return int(np.argmin([judge.log_loss(out) for out in outcomes]))


def centre_of(outcomes: Sequence[Outcome], judge: Judge) -> tuple[Floats, float]:
    """Weights that those of a committee are shrunk to, and how strongly.

    The front runner has all the weight, or leaves some of it to its partner, which errs elsewhere.
    """
    weights = np.zeros(len(outcomes))
    front = front_of(outcomes, judge)
    weights[front] = 1.0
    names = [out.name for out in outcomes]
    if outcomes[front].name not in FRONT or PARTNER not in names:
        return weights, STACK_PENALTY
    weights[front], weights[names.index(PARTNER)] = 1.0 - PARTNER_SHARE, PARTNER_SHARE
    return weights, PAIR_PENALTY


def weighted_mean(
    members: Sequence[Outcome], judge: Judge, folds: Folds, *, forms: bool
) -> Outcome:
    """The stack of complete outcomes; its own held-out probabilities have cross-fitted weights.

    ``forms``: the members' scores are averaged, before the smoothing of their probabilities, as the
    mean of their forms will be. Members without weight are left out.
    """
    said = [out.raw if forms and out.raw is not None else out.proba for out in members]
    seen = np.flatnonzero(np.all([np.isfinite(own[:, 0]) for own in said], axis=0))
    n_rows, total = len(judge.y), float(judge.weight.sum())
    logs = np.stack([log_probabilities(own[seen], total) for own in said])
    problem = StackProblem(logs, judge.y[seen], judge.weight[seen], *centre_of(members, judge))
    solution = solve_stack(problem).warn_if_short("The committee's weights", "report the table")
    place = np.full(n_rows, -1, dtype=np.int64)
    place[seen] = np.arange(len(seen))
    parts = [place[test][place[test] >= 0] for _, test in folds]
    raw = np.full((n_rows, logs.shape[2]), np.nan)
    weights = fold_weights(problem, parts, solution.point)
    raw[seen] = cross_fitted(problem, parts, weights)
    on = np.flatnonzero(solution.point > 0).tolist()
    out = _outcome([members[m] for m in on], solution.point[on], raw, forms)
    if forms:
        out.forms = dict(members[on[0]].forms) if len(on) == 1 else _mean_forms(members, weights)
    if all(member.gaps for member in out.members):
        out.gaps.append(solution.gap / max(solution.value, 1e-300))
    else:  # where a member solves no convex problem, nothing certifies the mean
        out.gaps.clear()
    return judge.price(out)


def _mean_forms(
    members: Sequence[Outcome], weights: Sequence[Floats | None]
) -> dict[int, AdditiveScore]:
    """By the number of the fold, the mean of the members' forms with the weights of the others.

    A class may be absent from the training rows of a fold, and not all members know of it then:
    those that know the classes of the weightiest one are averaged.
    """
    found = {}
    for fold, v in enumerate(weights):
        if v is not None and all(fold in out.forms for out in members):
            forms = [out.forms[fold] for out in members]
            classes = forms[int(v.argmax())].classes
            shares = np.array([v[m] * (own.classes == classes) for m, own in enumerate(forms)])
            on = np.flatnonzero(shares > 0).tolist()
            found[fold] = mean_form([forms[m] for m in on], (shares[on] / shares.sum()).tolist())
    return found


def _outcome(members: list[Outcome], weights: Floats, raw: Floats, forms: bool) -> Outcome:
    if len(members) == 1:
        # cross-fitted weights may differ from fold to fold where those of all rows are one
        only = members[0]
        raw = only.raw if forms and only.raw is not None else only.proba
    smoothing = float(sum(w * out.smoothing for w, out in zip(weights, members, strict=True)))
    smoothing = smoothing if forms else 0.0
    proba = (raw + smoothing / raw.shape[1]) / (1.0 + smoothing)
    order = sorted(range(len(members)), key=lambda m: -weights[m])
    members = [members[m] for m in order]
    columns = frozenset().union(*(out.columns for out in members))
    return Outcome(
        Candidate(" + ".join(out.name for out in members) if forms else COMMITTEE, None),
        proba,
        np.full(len(proba), np.nan),
        raw=raw,
        link=members[0].link if forms else None,
        smoothing=smoothing,
        columns=columns,
        members=tuple(members),
        weights=tuple(float(weights[m]) for m in order),
        fit_seconds=sum(out.fit_seconds for out in members),
        sizes=[sum(out.size for out in members)],
        variables=[float(len(columns))] if forms else [],
        gaps=[gap for out in members for gap in out.gaps],
        note="weighted mean",
        complete=True,
    )


class Committee(TableClassifier):
    """Fitted classifiers that decide together: p is proportional to the product of p_m to v_m.

    It has no form: nothing to read, no SQL, no model file. ``estimators_`` and ``weights_`` say who
    decides and how much.
    """

    def __init__(self, estimators: Any = None, weights: Any = None) -> None:
        self.estimators = estimators
        self.weights = weights

    @classmethod
    def of(
        cls, fitted: Sequence[Any], weights: Sequence[float], schema: Any, classes: NDArray[Any],
        total: float,
    ) -> Committee:  # fmt: skip
        """A committee of models that were fitted on rows of one table, ``total`` their weight."""
        model = cls(list(fitted), list(weights))
        model.schema_, model.classes_ = schema, classes
        model._publish_names()
        model._publish(fitted, total)
        return model

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Committee:
        """Fit every member again; the weights stay as they were given."""
        rows = self._read_training(X, y, sample_weight)
        labels = self.classes_[rows.y]
        given = {} if sample_weight is None else {"sample_weight": rows.weight}
        fitted = [clone(own).fit(rows.table, labels, **given) for own in self.estimators]
        self._publish(fitted, float(rows.weight.sum()))
        return self

    def _publish(self, fitted: Sequence[Any], total: float) -> None:
        for member in fitted:
            if isinstance(member, TableReader):
                # a member is fitted on a table, which has names even where the user's X has none
                member.schema_ = self.schema_
                member._publish_names()
        self.total_weight_, self.estimators_ = total, list(fitted)
        self.weights_ = np.asarray(self.weights, dtype=np.float64)

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class, in the order of ``classes_``."""
        check_is_fitted(self, "estimators_")
        n_rows = self._read_rows(X).n_rows
        logs = []
        for member in self.estimators_:
            proba = np.zeros((n_rows, len(self.classes_)))
            own = np.searchsorted(self.classes_, member.classes_)
            proba[:, own] = member.predict_proba(X)
            logs.append(log_probabilities(proba, self.total_weight_))
        return stacked(np.stack(logs), self.weights_)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])
