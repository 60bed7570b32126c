"""The models that the main job compares, in the order of what they promise for their time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from laconic._typing import Floats
from laconic.additive.estimator import SparseAdditiveClassifier
from laconic.bayes.estimator import WeightedNaiveBayes
from laconic.boosted.estimator import BoostedStepsClassifier
from laconic.choose.tuning import (
    CARD_GAP,
    CARD_SECONDS,
    LANDMARKS,
    MANY_LEVELS,
    MOST_BOOSTED_ROWS,
    MOST_KERNEL_LEVELS,
    MOST_KERNEL_ROWS,
    MOST_RULES_ROWS,
    PARTNER,
    TREES,
    ZONE_WIDTH,
)
from laconic.core.decisions import decision_threshold, gray_zone
from laconic.data.reading.reading import Reading
from laconic.data.tables.columns import Schema, forbidden_pairs, shown
from laconic.kernel.rank_kernel import RankKernelClassifier
from laconic.linear.plain import PlainLogisticRegression
from laconic.minimax.estimator import MinimaxClassifier
from laconic.rules.estimator import SparseRulesClassifier
from laconic.scorecard.estimator import ScorecardClassifier
from laconic.scorecard.optimal import OptimalScorecardClassifier
from laconic.votes.estimator import CqBoostClassifier
from laconic.votes.voters.forest import ForestVoters


@dataclass(frozen=True)
class Candidate:
    """One model of the comparison.

    ``decides`` says that ``predict_proba`` holds probabilities of decisions (the minimax rule)
    and not of classes. ``own_folds`` models have a parameter ``cv`` and keep the probabilities of
    held-out rows (``held_out_proba_``): one fit tells all. The others give up after two folds when
    they cannot matter. A model that would be the same as another one is left out: ``unless_single``
    names the candidate whose terms must not all be of one column. What is not ``by_default`` runs
    only when it is named: in a committee of the others it changed nothing.
    ``keeps`` are the demands of :class:`Known` that it can keep; ``left_out`` says why it is not
    tried. The user's ``own`` models are only compared where there are demands.
    """

    name: str
    model: Any
    decides: bool = False
    own_folds: bool = False
    unless_single: str | None = None
    by_default: bool = True
    keeps: tuple[str, ...] = ()
    left_out: str = ""
    own: bool = False
    beside: bool = False
    """Compared, and no part of what is kept."""
    mixes: bool = False
    """It stops by rows that it draws itself, and is refused where rows must be kept apart."""


@dataclass(frozen=True)
class Known:
    """What the user knows of the columns that the models see.

    ``monotone``: +1 or -1 by column, for the probability of the last class; ``forbid``: pairs of
    columns that may not enter a term together.
    """

    monotone: Mapping[str, int] = field(default_factory=dict)
    forbid: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def of(
        schema: Schema,
        n_classes: int,
        monotone: Mapping[str, int],
        forbid: Sequence[Sequence[str]],
        turned: bool,
    ) -> Known:
        """Of the user's columns; ``turned``: the first class is the positive one."""
        if monotone and n_classes > 2:
            raise ValueError(f"monotone is for two classes and y has {n_classes}.")
        if any(isinstance(pair, str) or len(pair) != 2 for pair in forbid):
            raise ValueError(f"forbid must hold pairs of two columns, got {forbid!r}.")
        signs = {}
        for name, sign in monotone.items():
            first = _seen_columns(schema, name)[0]
            if sign not in (-1, 1):
                raise ValueError(f"monotone of column {shown(name)} must be -1 or 1, got {sign!r}.")
            if schema.kinds[schema.names.index(first)] == "categorical":
                raise ValueError(f"monotone: column {shown(name)} is no number and has no order.")
            signs[first] = -sign if turned else sign
        pairs = [
            (a, b)
            for one, other in forbid
            for a in _seen_columns(schema, one)
            for b in _seen_columns(schema, other)
        ]
        forbidden_pairs(pairs, schema.names)
        return Known(signs, tuple(pairs))

    @property
    def demands(self) -> tuple[str, ...]:
        return ("monotone",) * bool(self.monotone) + ("forbid",) * bool(self.forbid)

    def settings(self, *names: str) -> dict[str, Any]:
        """Parameters of a candidate that keeps these demands."""
        given = {"monotone": dict(self.monotone) or None, "forbid": list(self.forbid) or None}
        return {name: given[name] for name in names}

    def imposed(self, offered: Sequence[Candidate]) -> list[Candidate]:
        """The candidates, those that cannot keep a demand marked; an error where none can."""
        marked = []
        for own in offered:
            lost = " and ".join(name for name in self.demands if name not in own.keeps)
            if lost and own.own:
                own = replace(own, beside=True)
            elif lost:
                own = replace(own, left_out=f"left out: it cannot keep {lost}")
            marked.append(own)
        if all(own.left_out or own.beside for own in marked):
            raise ValueError(
                f"No candidate can keep {' and '.join(self.demands)}: name additive among them."
            )
        # the first one tried sets the pace
        return sorted(marked, key=lambda own: bool(own.left_out))


def _seen_columns(schema: Schema, name: str) -> tuple[str, ...]:
    """What the models see of a column: itself, or what the reading makes of it."""
    columns = schema.reading.columns if isinstance(schema.reading, Reading) else ()
    own = next((column for column in columns if column.name == name), None)
    if own is not None and not own.used:
        raise ValueError(f"Column {shown(name)} is left out: {own.said}.")
    if own is None and name not in schema.names:
        raise ValueError(f"There is no column {shown(name)} in the table.")
    return (name,) if own is None else own.made


def auto_candidates(
    costs: Floats,
    prior_bounds: Any,
    seed: int,
    n_jobs: int | None,
    n_rows: int = 0,
    known: Known | None = None,
    levels: Sequence[int] = (),
) -> list[Candidate]:
    """Every family that reads a table as it comes; ``levels`` are the numbers of levels of its
    columns of categories."""
    known = known or Known()
    both, pairs = ("monotone", "forbid"), ("forbid",)
    landmarks = LANDMARKS if n_rows > MOST_KERNEL_ROWS else None
    shared: dict[str, Any] = {"random_state": seed, "n_jobs": n_jobs}
    made = [
        Candidate(
            "additive",
            SparseAdditiveClassifier(**shared, **known.settings(*both)),
            own_folds=True,
            keeps=both,
        ),
        Candidate(
            "additive-single",
            SparseAdditiveClassifier(pairs=0, **shared, **known.settings("monotone")),
            own_folds=True,
            by_default=False,  # beside "additive" it never had weight: 110 halves of 25 sets
            unless_single="additive",
            keeps=both,
        ),
        Candidate(
            PARTNER,
            BoostedStepsClassifier(random_state=seed, **known.settings("forbid")),
            by_default=n_rows <= MOST_BOOSTED_ROWS and len(costs) == 2,
            keeps=pairs,
            mixes=True,
        ),
        Candidate("logistic", PlainLogisticRegression(), keeps=pairs),
        Candidate(
            "levels",
            PlainLogisticRegression(levels="all", tol=1e-6),
            by_default=max(levels, default=0) >= MANY_LEVELS and len(costs) == 2,
            keeps=pairs,
        ),
        Candidate(
            "rules",
            SparseRulesClassifier(random_state=seed, **known.settings("forbid")),
            own_folds=True,
            by_default=n_rows <= MOST_RULES_ROWS,
            keeps=pairs,
        ),
        Candidate(
            "kernel",
            RankKernelClassifier(landmarks=landmarks, random_state=seed),
            by_default=sum(levels) <= MOST_KERNEL_LEVELS,
        ),
        Candidate("scorecard-built", ScorecardClassifier(trees=10, **shared)),
        Candidate("bayes", WeightedNaiveBayes(**shared), by_default=False, keeps=pairs),
        Candidate("scorecard", ScorecardClassifier(**shared), by_default=False, keeps=pairs),
        Candidate(
            "votes", CqBoostClassifier(proba="calibrated", random_state=seed), by_default=False
        ),
        Candidate("bayes-built", WeightedNaiveBayes(trees=10, **shared), by_default=False),
        Candidate(
            "forest-votes",
            CqBoostClassifier(ForestVoters(n_trees=TREES), proba="calibrated", random_state=seed),
            by_default=False,
        ),
        Candidate(
            "minimax",
            MinimaxClassifier(costs, prior_bounds, cv=None, random_state=seed),
            decides=True,
            by_default=prior_bounds is not None,
        ),
    ]
    if len(costs) == 2:
        card = OptimalScorecardClassifier(
            points=(-5, 5), pool=0.0, time_limit=CARD_SECONDS, gap=CARD_GAP, **shared,
            **known.settings("monotone"),
        )  # fmt: skip
        made.append(Candidate("card", card, by_default=False, keeps=both))
    zone = decision_zone(costs)
    if zone is not None:
        lines = ScorecardClassifier("lines", zone=zone, **shared)
        made.insert(6, Candidate("gray-zone", lines, by_default=False, keeps=pairs))
    return made


def decision_zone(costs: Floats) -> tuple[float, float] | None:
    """The gray zone around the threshold of two classes; None when costs fix no threshold."""
    if len(costs) != 2:
        return None
    threshold = decision_threshold(costs)
    return gray_zone(threshold, ZONE_WIDTH) if 0 < threshold < 1 else None


def read_candidates(given: Any, auto: Sequence[Candidate]) -> list[Candidate]:
    """ "auto", a list of names and of (name, classifier) pairs, or a mapping of such pairs."""
    if isinstance(given, str) and given == "auto":
        return [candidate for candidate in auto if candidate.by_default]
    if isinstance(given, Mapping):
        if not given:
            raise ValueError("candidates is empty; name at least one model.")
        return [_own(name, model) for name, model in given.items()]
    known = {candidate.name: candidate for candidate in auto}
    if isinstance(given, str) or not isinstance(given, Sequence) or not len(given):
        raise ValueError(
            'candidates must be "auto", a list of names and of (name, classifier) pairs or a dict '
            f"from name to classifier, got {given!r}."
        )
    found: list[Candidate] = []
    for entry in given:
        if isinstance(entry, str) and entry == "auto":
            found += [candidate for candidate in auto if candidate.by_default]
        elif isinstance(entry, tuple) and len(entry) == 2:
            found.append(_own(*entry))
        elif entry in known:
            found.append(known[entry])
        else:
            raise ValueError(
                f"candidates names {entry!r}; the models offered here are {', '.join(known)}."
            )
    names = [candidate.name for candidate in found]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"candidates: {twice[0]!r} stands twice; give your own another name.")
    return found


def _own(name: str, model: Any) -> Candidate:
    if not hasattr(model, "predict_proba") or not hasattr(model, "fit"):
        raise TypeError(
            f"candidates[{name!r}] must be a classifier with predict_proba, got "
            f"{type(model).__name__}."
        )
    return Candidate(str(name), model, decides=isinstance(model, MinimaxClassifier), own=True)
