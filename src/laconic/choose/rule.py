"""The rule of choice: candidates compared, a committee weighed, a page composed, its cost told."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from laconic.choose.budget import rows_in_time
from laconic.choose.candidates import Candidate
from laconic.choose.committee import weighted_mean
from laconic.choose.comparison import Outcome
from laconic.choose.page.pages import PageChoice, formed, offered_pages
from laconic.choose.page.teaching import taught
from laconic.choose.race import Race
from laconic.choose.reported import Estimate, reported
from laconic.choose.tuning import CLEARLY, FRONT, PARTNER, PROBE_ROWS, TAUGHT_ROWS, TEACHERS
from laconic.core.progress import report_step
from laconic.linear.plain import PlainLogisticRegression


@dataclass(frozen=True)
class Rule:
    """What the user asks of the choice.

    ``rules_allowed``: a candidate that says decisions and no probabilities may be kept.
    """

    readable: bool
    tolerance: float
    rules_allowed: bool
    teach: bool
    seed: int


@dataclass(frozen=True)
class Decided:
    """What to keep, what to list, and what new rows will cost."""

    kept: Outcome
    listed: tuple[Outcome, ...]
    cost: Estimate
    price: Estimate
    is_committee: bool = False


def decide(offered: Sequence[Candidate], race: Race, rule: Rule) -> Decided:
    """From candidates to what is kept."""
    outcomes = compare(offered, race)
    complete = [out for out in outcomes if out.complete and not out.candidate.beside]
    able = [out for out in complete if rule.rules_allowed or not out.candidate.decides]
    members = [out for out in able if not out.candidate.decides]
    if not any(np.isfinite(out.row_cost).any() for out in able):
        return _unjudged(outcomes, able, race)
    if not members:
        return _alone(min(able, key=lambda out: race.judge.mean(out.row_cost)[0]), outcomes, race)
    committee = weighted_mean(members, race.judge, race.rows.folds, forms=False)
    if not rule.readable:
        return _alone(committee, [*outcomes, committee], race, is_committee=True)
    choice = _pages(members, committee, race, rule)
    kept = _clearly_better(choice.chosen(), able, race)
    listed = [*outcomes, committee]
    listed += [kept] if kept.name not in {out.name for out in listed} else []
    if kept not in choice.pages:
        choice = PageChoice.of([kept], race.judge)
    cost, price = reported(choice, committee.row_cost, race.rows.groups, rule.seed)
    return Decided(kept, tuple(listed), cost, price)


def _alone(
    kept: Outcome, listed: Sequence[Outcome], race: Race, is_committee: bool = False
) -> Decided:
    """One outcome without a choice."""
    choice = PageChoice.of([kept], race.judge)
    cost, price = reported(choice, kept.row_cost, race.rows.groups, 0)
    return Decided(kept, tuple(listed), cost, price, is_committee)


def compare(offered: Sequence[Candidate], race: Race) -> list[Outcome]:
    """The outcome of every candidate, tried or not."""
    outcomes: list[Outcome] = []
    n_rows, n_classes = race.rows.n_rows, len(race.rows.classes)
    for number, candidate in enumerate(offered):
        report_step(f"comparing {candidate.name}", 0.8 * number / len(offered))
        if _same_as_another(candidate, outcomes):
            continue
        front = None
        # what the user asks about is judged on all folds, and so is what has a weight beforehand
        if not candidate.own and candidate.name != PARTNER:
            front = next((out for out in outcomes if out.complete), None)
        try:
            note = candidate.left_out or race.refused(candidate)
            if note:
                outcomes.append(Outcome.empty(candidate, n_rows, n_classes, note))
                continue
            outcomes.append(race.run(candidate, front))
        except ValueError as error:
            if len(offered) == 1:
                raise
            outcomes.append(Outcome.empty(candidate, n_rows, n_classes, f"refused: {error}"))
    return outcomes


def _same_as_another(candidate: Candidate, outcomes: Sequence[Outcome]) -> bool:
    for out in outcomes:
        if out.name == candidate.unless_single and out.fitted is not None:
            return all(len(term.columns) == 1 for term in out.fitted.form_.terms)
    return False


def _pages(members: Sequence[Outcome], committee: Outcome, race: Race, rule: Rule) -> PageChoice:
    """Pages to choose from; where no candidate fits on a page, the best of all with a warning."""
    pool = formed(members)
    if pool:
        report_step("shortening pages", 0.8)
        pages, student = offered_pages(pool, race, rule.tolerance)
    else:
        short = [out for out in members if out.size <= race.max_size]
        judge = race.judge
        student = min(short or members, key=lambda out: judge.mean(judge.tailored(out))[0])
        pages = [student]
        if not short:
            _say(
                f"No candidate fits on max_size={race.max_size:g} entries: {student.name} is kept, "
                f'with {student.size:g}. Name "additive" among the candidates for a shorter one, '
                "or set readable=False for the best of all of them together."
            )
    plain = len(pages)
    if rule.teach and _may_teach(student, committee, race):
        report_step(f"teaching {student.name}", 0.85)
        pupil = taught(student, committee, race)
        others = [out for out in pool if out is not student]
        again = [pupil, *others]
        pages += offered_pages(again, race, rule.tolerance)[0] if pool else [pupil]
    return PageChoice.of(pages, race.judge, plain)


def _may_teach(student: Outcome, committee: Outcome, race: Race) -> bool:
    """Whether others than the student have a say, on few rows, with time for it."""
    pairs = zip(committee.members, committee.weights, strict=True)
    others = sum(weight for out, weight in pairs if out.name not in (*FRONT, student.name))
    able = student.name in (*FRONT, "card") and race.rows.exchangeable and len(race.rows.folds) > 2
    again = sum(out.fit_seconds for out in committee.members) + 2.0 * student.fit_seconds
    in_time = not race.budget.limited or race.budget.allows(len(race.rows.folds) * again)
    return others >= TEACHERS and able and in_time and race.rows.n_rows <= TAUGHT_ROWS


def _clearly_better(page: Outcome, able: Sequence[Outcome], race: Race) -> Outcome:
    """A form that has no mean with others, or a rule of decisions, where it is clearly better.

    So is any candidate that is a page by itself, where the page is far from what taught it: many
    classes have sums that no page holds. Rules say no probabilities: they are compared by what
    decisions cost.
    """
    judge, far = race.judge, page.far
    for out in able:
        if out.candidate.decides:
            gap, error = judge.paired(out.row_cost, page.row_cost)
            error = 0.0
        else:
            gap, error = judge.paired(judge.tailored(out), judge.tailored(page))
        apart = far or out.candidate.decides or not formed([out])
        if out.size <= race.max_size and apart and gap < -CLEARLY * error:
            page = out
    return page


def _unjudged(outcomes: list[Outcome], able: Sequence[Outcome], race: Race) -> Decided:
    """Nothing was judged: the first candidate that could be, or a plain model in no time."""
    nothing = Estimate(*[float("nan")] * 4)
    if able:
        return Decided(able[0], tuple(outcomes), nothing, nothing)
    refused = [out.note for out in outcomes if out.note.startswith("refused")]
    if refused and len(refused) == len(outcomes):
        raise ValueError(f"No candidate could be fitted: {refused[0]}")
    plain = Candidate("logistic", PlainLogisticRegression())
    kept = Outcome.empty(plain, race.rows.n_rows, len(race.rows.classes), "time_budget ended")
    known, spare = race.known.get(plain.name), race.budget.left + 0.1 * race.budget.seconds
    most = PROBE_ROWS if known is None else rows_in_time(known, race.rows.n_rows, 1.0, spare)
    few = race.few_rows(most)
    kept.fitted = race.rows.fit(plain.model, few)
    _say(
        f"time_budget={race.budget.seconds:g}: no candidate could be compared in time; a plain "
        f"logistic regression on {len(few)} rows is kept. Give more seconds."
    )
    listed = outcomes if any(out.name == kept.name for out in outcomes) else [*outcomes, kept]
    return Decided(kept, tuple(listed), nothing, nothing)


def _say(sentence: str) -> None:
    # the caller's line: decide, _keep, fit and its wrappers stand between
    warnings.warn(sentence, UserWarning, stacklevel=6)
