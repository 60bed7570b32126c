"""The models that the main job compares, in the order of what they promise for their time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from laconic._typing import Floats
from laconic.additive.estimator import SparseAdditiveClassifier
from laconic.bayes.estimator import WeightedNaiveBayes
from laconic.choose.tuning import (
    LANDMARKS,
    MOST_KERNEL_ROWS,
    MOST_RULES_ROWS,
    TREES,
    ZONE_WIDTH,
)
from laconic.core.decisions import decision_threshold, gray_zone
from laconic.kernel.rank_kernel import RankKernelClassifier
from laconic.linear.plain import PlainLogisticRegression
from laconic.minimax.estimator import MinimaxClassifier
from laconic.rules.estimator import SparseRulesClassifier
from laconic.scorecard.estimator import ScorecardClassifier
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
    only when it is named: in a committee of the others it changed nothing (docs/main_job.md).
    """

    name: str
    model: Any
    decides: bool = False
    own_folds: bool = False
    unless_single: str | None = None
    by_default: bool = True


def auto_candidates(
    costs: Floats, prior_bounds: Any, seed: int, n_jobs: int | None, n_rows: int = 0
) -> list[Candidate]:
    """Every family that reads a table as it comes."""
    landmarks = LANDMARKS if n_rows > MOST_KERNEL_ROWS else None
    shared: dict[str, Any] = {"random_state": seed, "n_jobs": n_jobs}
    made = [
        Candidate("additive", SparseAdditiveClassifier(**shared), own_folds=True),
        Candidate(
            "additive-single",
            SparseAdditiveClassifier(pairs=0, **shared),
            own_folds=True,
            unless_single="additive",
        ),
        Candidate("logistic", PlainLogisticRegression()),
        Candidate(
            "rules",
            SparseRulesClassifier(random_state=seed),
            own_folds=True,
            by_default=n_rows <= MOST_RULES_ROWS,
        ),
        Candidate("kernel", RankKernelClassifier(landmarks=landmarks, random_state=seed)),
        Candidate("scorecard-built", ScorecardClassifier(trees=10, **shared)),
        Candidate("bayes", WeightedNaiveBayes(**shared), by_default=False),
        Candidate("scorecard", ScorecardClassifier(**shared), by_default=False),
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
    zone = decision_zone(costs)
    if zone is not None:
        lines = ScorecardClassifier("lines", zone=zone, **shared)
        made.insert(6, Candidate("gray-zone", lines, by_default=False))
    return made


def decision_zone(costs: Floats) -> tuple[float, float] | None:
    """The gray zone around the threshold of two classes; None when costs fix no threshold."""
    if len(costs) != 2:
        return None
    threshold = decision_threshold(costs)
    return gray_zone(threshold, ZONE_WIDTH) if 0 < threshold < 1 else None


def read_candidates(given: Any, auto: Sequence[Candidate]) -> list[Candidate]:
    """ "auto", names of the automatic ones, or a mapping from name to classifier."""
    if isinstance(given, str) and given == "auto":
        return [candidate for candidate in auto if candidate.by_default]
    if isinstance(given, Mapping):
        if not given:
            raise ValueError("candidates is empty; name at least one model.")
        return [_own(name, model) for name, model in given.items()]
    known = {candidate.name: candidate for candidate in auto}
    if isinstance(given, str) or not isinstance(given, Sequence) or not len(given):
        raise ValueError(
            'candidates must be "auto", a list of names or a dict from name to classifier, got '
            f"{given!r}."
        )
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ValueError(
            f"candidates names {unknown[0]!r}; the models offered here are {', '.join(known)}."
        )
    return [known[name] for name in given]


def _own(name: str, model: Any) -> Candidate:
    if not hasattr(model, "predict_proba") or not hasattr(model, "fit"):
        raise TypeError(
            f"candidates[{name!r}] must be a classifier with predict_proba, got "
            f"{type(model).__name__}."
        )
    return Candidate(str(name), model, decides=isinstance(model, MinimaxClassifier))
