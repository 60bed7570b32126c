r"""A page that learns from the committee: labels softened by its held-out probabilities.

With p the probability that the committee gives each class of a row it was not fitted on, the
student is fitted to

.. math:: s_k = a\,1[y = k] + (1 - a)\,p_k

every row entering once for each class, with weight :math:`s_k`: the committee takes noise out of
the labels and sees patterns that a page cannot hold. Whether that helped is asked of rows that
neither the student nor its teacher has seen: for every fold the committee is weighed and cross-
fitted anew on the other folds. (Held-out rows of the student alone would be too kind: its labels
know those of neighbouring rows through the teacher.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from laconic._typing import Floats
from laconic.choose.candidates import Candidate
from laconic.choose.committee import weighted_mean
from laconic.choose.comparison import Outcome
from laconic.choose.race import Race, Rows
from laconic.choose.tuning import OWN_LABEL


def taught(student: Outcome, committee: Outcome, race: Race) -> Outcome:
    """The student's model fitted on softened labels, with its honest held-out probabilities."""
    rows, model = race.rows, student.candidate.model
    start = race.budget.now()
    name = f"taught {student.name}"
    out = Outcome.empty(Candidate(name, model), rows.n_rows, len(rows.classes))
    for fold, (train, test) in enumerate(rows.folds):
        part = rows.part(train)
        judge = replace(race.judge, y=part.training.y, weight=part.training.weight)
        inner = replace(race, rows=part, judge=judge)
        teacher = _committee_again(committee.members, inner)
        fitted = fit_softened(part, model, teacher.proba)
        out.proba[test] = fitted.predict_proba(rows.training.table[test])
        out.forms[fold] = fitted.form_
    one = race.budget.now()
    out.fitted = fit_softened(rows, model, committee.proba)
    out.one_fit_seconds = race.budget.now() - one
    out.note_model(out.fitted)
    out.raw, out.note, out.complete = out.proba, "taught by the committee", True
    out.fit_seconds = race.budget.now() - start
    return race.judge.price(out)


def _committee_again(members: Sequence[Outcome], race: Race) -> Outcome:
    """The same members on fewer rows, weighed anew."""
    again = [race.run(out.candidate, None) for out in members]
    return weighted_mean(again, race.judge, race.rows.folds, forms=False)


def fit_softened(rows: Rows, model: Any, proba: Floats) -> Any:
    """A copy of the model on softened labels; rows without a teacher's word keep their own.

    The copies of a row stay together in every fold.
    """
    n_rows, n_classes = rows.n_rows, len(rows.classes)
    own = np.eye(n_classes)[rows.training.y]
    soft = OWN_LABEL * own + (1.0 - OWN_LABEL) * np.where(np.isfinite(proba), proba, own)
    weight = (soft * rows.training.weight[:, None]).T.ravel()
    copies = np.tile(np.arange(n_rows), n_classes)
    folds = [(_copied(train, n_rows, n_classes), _copied(test, n_rows, n_classes))
             for train, test in rows.folds]  # fmt: skip
    fitted, own_folds = clone(model), "cv" in model.get_params()
    if own_folds:
        fitted.set_params(cv=folds)
    labels = np.repeat(rows.classes, n_rows)
    fitted.fit(rows.training.table[copies], labels, sample_weight=weight)
    return fitted.set_params(cv=model.cv) if own_folds else fitted


def _copied(places: Any, n_rows: int, n_classes: int) -> Any:
    return np.concatenate([places + k * n_rows for k in range(n_classes)])
