"""Every public estimator, with options that make one fit of a small table quick."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import laconic
from laconic.bayes import SelectiveNaiveBayes
from laconic.boosted import BoostedStepsClassifier
from laconic.convex import ConvexRiskRegressor, KMeansK, PairwiseRanker, PrincipalMap
from laconic.kernel import RankKernelClassifier
from laconic.minimax import MinimaxPriorClassifier
from laconic.scorecard import OptimalScorecardClassifier
from laconic.votes import (
    CBBoostClassifier,
    CGBoostClassifier,
    ForestVoters,
    KernelVoters,
    LPBoostClassifier,
    MinCqClassifier,
    StumpVoters,
)


def _linear() -> list[Any]:
    gray = laconic.GrayZoneLogisticRegression
    return [
        laconic.PlainLogisticRegression(),
        laconic.PlainLogisticRegression(C=100.0),
        gray(),
        gray(zone=(0.3, 0.7), class_weight="balanced"),
        gray(zone=0.8),
        laconic.GrayZoneLogisticRegressionCV(zones=[(0.2, 0.8)], Cs=[0.1, 1.0], cv=2),
        laconic.GrayZoneKernelClassifier(),
        laconic.GrayZoneKernelClassifier("poly", zone=(0.2, 0.8), coef0=1.0, degree=2),
        RankKernelClassifier(),
    ]


def _convex() -> list[Any]:
    risk, regress = laconic.ConvexRiskClassifier, ConvexRiskRegressor
    return [
        risk(),
        risk("hinge"),
        risk("squared", C=0.1),
        risk("exponential", multi_class="ovr"),
        risk("hinge", kernel="linear"),
        risk("hinge", kernel="rbf"),
        regress(),
        regress("absolute"),
        regress("huber"),
        regress("huber", kernel="rbf"),
        PairwiseRanker(),
        PairwiseRanker("hinge", C=0.1),
        KMeansK(k_max=4),
        PrincipalMap(),
    ]


def _votes() -> list[Any]:
    return [
        laconic.CqBoostClassifier(),
        laconic.CqBoostClassifier("rbf", mu="least-squares", max_voters=10),
        laconic.CqBoostClassifier(StumpVoters("midpoints"), mu="bound", proba="calibrated"),
        MinCqClassifier(),
        MinCqClassifier(ForestVoters(5), multi_class="tandem", random_state=0),
        LPBoostClassifier(),
        CGBoostClassifier(KernelVoters(n_landmarks=4), C=10.0, random_state=0),
        CBBoostClassifier(n_rounds=20),
    ]


def _tables() -> list[Any]:
    minimax = laconic.MinimaxClassifier
    return [
        laconic.SparseAdditiveClassifier(),
        laconic.SparseAdditiveClassifier(group_penalty=0.02, pairs=2, max_knots=6, zone=(0.0, 1.0)),
        laconic.WeightedNaiveBayes(random_state=0),
        laconic.WeightedNaiveBayes(power=0.5, penalty=0.3, level=3, random_state=0),
        SelectiveNaiveBayes(n_starts=3, random_state=0),
        laconic.ModlEncoder(),
        laconic.ModlEncoder(pairs=1, trees=2, random_state=0),
        minimax(cv=None),
        minimax(profiles="tree", n_profiles=5, tie="deterministic", cv=None),
        minimax(profiles="kmeans", n_profiles=5, tie="deterministic", cv=None),
        minimax(binning="modl", smoothing="nearest", tie="deterministic", cv=None),
        MinimaxPriorClassifier(laconic.PlainLogisticRegression(), cv=2),
        laconic.SparseRulesClassifier(max_rules=20, cv=2, random_state=0),
        laconic.ScorecardClassifier(random_state=0),
        OptimalScorecardClassifier(2, points=(-2, 2), max_cuts=2, max_candidates=8),
        laconic.ScorecardClassifier("lines", C=0.5),
        laconic.BlendedClassifier(
            [laconic.PlainLogisticRegression(), laconic.WeightedNaiveBayes(random_state=0)]
        ),
        laconic.DecisionClassifier(laconic.PlainLogisticRegression(), prior="balanced"),
        laconic.LaconicClassifier(candidates=["logistic", "bayes"], cv=2, random_state=0),
    ]


def _later() -> list[Any]:
    """Models that came when tables had been tried: the numbers of those keep their models."""
    return [BoostedStepsClassifier(bags=2, random_state=0)]


N_LATER = len(_later())


@lru_cache(maxsize=1)
def models() -> tuple[tuple[str, Any], ...]:
    """(name, estimator) of each."""
    made = [*_linear(), *_convex(), *_votes(), *_tables(), *_later()]
    return tuple((type(model).__name__, model) for model in made)
