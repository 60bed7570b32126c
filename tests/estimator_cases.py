"""Instances of every public estimator: the default and at least one that is not."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

import laconic


def _decision() -> list[BaseEstimator]:
    make = laconic.DecisionClassifier
    return [
        make(LogisticRegression()),
        make(LogisticRegression(C=0.1), prior="balanced"),
    ]


def _plain() -> list[BaseEstimator]:
    return [laconic.PlainLogisticRegression(), laconic.PlainLogisticRegression(C=0.05)]


def _weighted_bayes() -> list[BaseEstimator]:
    make = laconic.WeightedNaiveBayes
    return [
        make(random_state=0),
        make(power=0.5, penalty=0.3, level=3, random_state=0),
        make(solver="dgml-vns", level=2, random_state=0),
        make(min_gain=0.5, random_state=0),
    ]


def _selective_bayes() -> list[BaseEstimator]:
    make = laconic.bayes.SelectiveNaiveBayes
    return [make(n_starts=3, random_state=0), make("map", n_starts=3, random_state=0)]


def _minimax() -> list[BaseEstimator]:
    make = laconic.MinimaxClassifier
    return [
        make(),
        make(tie="deterministic"),
        make(profiles="tree", n_profiles=20, tie="deterministic"),
        make(binning="modl", smoothing="nearest", tie="deterministic", cv=None),
    ]


def _minimax_prior() -> list[BaseEstimator]:
    make = laconic.minimax.MinimaxPriorClassifier
    return [make(LogisticRegression()), make(LogisticRegression(C=0.1), cv=3)]


def _modl() -> list[BaseEstimator]:
    make = laconic.ModlEncoder
    return [
        make(),
        make(code="2006", output="logprob"),
        make(output="onehot", max_parts=4, min_part_weight=5, drop_uninformative=True),
        make(pairs=1, trees=2, random_state=0),
    ]


def _additive() -> list[BaseEstimator]:
    make = laconic.SparseAdditiveClassifier
    return [make(), make(group_penalty=0.02, smoothness=1.0, pairs=2, max_knots=6)]


def _convex_risk() -> list[BaseEstimator]:
    make = laconic.ConvexRiskClassifier
    return [
        make(),
        make("hinge"),
        make("squared", C=0.1),
        make("exponential", multi_class="ovr"),
        make("hinge", kernel="rbf", tol=1e-11),
        make(kernel="poly", degree=2, coef0=1.0, C=0.3),
    ]


def _convex_regressor() -> list[BaseEstimator]:
    make = laconic.convex.ConvexRiskRegressor
    return [make(), make("absolute"), make("huber", kernel="rbf", tol=1e-11)]


def _ranker() -> list[BaseEstimator]:
    return [laconic.convex.PairwiseRanker(), laconic.convex.PairwiseRanker("hinge", C=0.1)]


def _clusters() -> list[BaseEstimator]:
    return [laconic.convex.KMeansK(), laconic.convex.KMeansK(k_max=4, criterion="bic")]


def _map() -> list[BaseEstimator]:
    return [
        laconic.convex.PrincipalMap(),
        laconic.convex.PrincipalMap(n_components=2, standardize=False),
    ]


def _gray_zone() -> list[BaseEstimator]:
    make = laconic.GrayZoneLogisticRegression
    return [
        make(),
        make(zone=(0.3, 0.7), C=0.1, class_weight="balanced"),
        make(zone=0.8),
    ]


def _gray_zone_kernel() -> list[BaseEstimator]:
    make = laconic.GrayZoneKernelClassifier
    return [
        make(),
        make(zone=(0.3, 0.7), C=2.0, class_weight="balanced"),
        make("poly", zone=(0.2, 0.8), solver="block", coef0=1.0, degree=2, tol=1e-12),
    ]


def _gray_zone_cv() -> list[BaseEstimator]:
    make = laconic.GrayZoneLogisticRegressionCV
    return [make(), make(zones=[(0.2, 0.8)], Cs=[0.1, 1.0], selection="1se", cv=3)]


def _cq_boost() -> list[BaseEstimator]:
    make = laconic.CqBoostClassifier
    return [
        make(),
        make(mu="bound", max_voters=5),
        make("rbf", mu="least-squares", max_voters=10),
        make(laconic.votes.ForestVoters(20), random_state=0),
        make(laconic.votes.KernelVoters(n_landmarks=8), random_state=0),
    ]


def _min_cq() -> list[BaseEstimator]:
    make = laconic.votes.MinCqClassifier
    return [make(), make(constraint="sum-to-one", mu="bound")]


def _lp_boost() -> list[BaseEstimator]:
    return [laconic.votes.LPBoostClassifier(), laconic.votes.LPBoostClassifier(nu=0.5)]


def _cg_boost() -> list[BaseEstimator]:
    return [laconic.votes.CGBoostClassifier(), laconic.votes.CGBoostClassifier(C=0.5)]


def _cb_boost() -> list[BaseEstimator]:
    return [laconic.votes.CBBoostClassifier(), laconic.votes.CBBoostClassifier(n_rounds=20)]


def _laconic() -> list[BaseEstimator]:
    make = laconic.LaconicClassifier
    return [
        make(candidates=["logistic", "bayes", "additive"], cv=3, random_state=0),
        make(candidates=["scorecard", "votes"], cv=3, tolerance=0.0, random_state=0),
        make(candidates=["logistic", "bayes"], cv=3, readable=False, random_state=0),
    ]


def _rank_kernel() -> list[BaseEstimator]:
    make = laconic.kernel.RankKernelClassifier
    return [make(), make(C=1.0, gamma=0.5)]


def _scorecard() -> list[BaseEstimator]:
    make = laconic.ScorecardClassifier
    return [
        make(random_state=0),
        make("lines", C=0.5),
        make(trees=2, C=0.3, random_state=0),
    ]


def _optimal_scorecard() -> list[BaseEstimator]:
    make = laconic.OptimalScorecardClassifier
    return [
        make(3, (-3, 3), gap=0.0),
        make(2, (0, 5), cutting="quantile", parts="bins", max_cuts=3),
        make(2, (-2, 2), cutting="both", max_cuts=2, costs=[[0, 1], [3, 0]]),
    ]


def _rules() -> list[BaseEstimator]:
    make = laconic.SparseRulesClassifier
    return [
        make(random_state=0),
        make(max_rules=40, penalty=0.1),
        make(max_cuts=3, selection="1se", cv=3, random_state=1),
    ]


def _boosted() -> list[BaseEstimator]:
    make = laconic.boosted.BoostedStepsClassifier
    return [make(random_state=0), make(2, pairs=0.0, max_cuts=5)]


def _blended() -> list[BaseEstimator]:
    make = laconic.BlendedClassifier
    bayes = laconic.WeightedNaiveBayes(random_state=0)
    return [make(), make([laconic.PlainLogisticRegression(C=0.5), bayes])]


CASES: dict[str, Callable[[], list[BaseEstimator]]] = {
    "BlendedClassifier": _blended,
    "BoostedStepsClassifier": _boosted,
    "CBBoostClassifier": _cb_boost,
    "CGBoostClassifier": _cg_boost,
    "CqBoostClassifier": _cq_boost,
    "LPBoostClassifier": _lp_boost,
    "MinCqClassifier": _min_cq,
    "GrayZoneKernelClassifier": _gray_zone_kernel,
    "GrayZoneLogisticRegression": _gray_zone,
    "GrayZoneLogisticRegressionCV": _gray_zone_cv,
    "ConvexRiskClassifier": _convex_risk,
    "ConvexRiskRegressor": _convex_regressor,
    "KMeansK": _clusters,
    "PairwiseRanker": _ranker,
    "PrincipalMap": _map,
    "PlainLogisticRegression": _plain,
    "DecisionClassifier": _decision,
    "ModlEncoder": _modl,
    "LaconicClassifier": _laconic,
    "RankKernelClassifier": _rank_kernel,
    "ScorecardClassifier": _scorecard,
    "OptimalScorecardClassifier": _optimal_scorecard,
    "SparseRulesClassifier": _rules,
    "SparseAdditiveClassifier": _additive,
    "MinimaxClassifier": _minimax,
    "MinimaxPriorClassifier": _minimax_prior,
    "SelectiveNaiveBayes": _selective_bayes,
    "WeightedNaiveBayes": _weighted_bayes,
}


FAMILIES = (
    "additive", "bayes", "boosted", "choose", "convex", "decide", "kernel", "linear", "minimax",
    "modl", "rules", "scorecard", "votes",
)  # fmt: skip


def public_classes() -> dict[str, type[BaseEstimator]]:
    """Every estimator that a family package lists, by name."""
    found: dict[str, type[BaseEstimator]] = {}
    for family in FAMILIES:
        package = import_module(f"laconic.{family}")
        for name in package.__all__:
            thing: Any = getattr(package, name)
            if isinstance(thing, type) and issubclass(thing, BaseEstimator):
                found[name] = thing
    return dict(sorted(found.items()))


def public_estimators() -> list[str]:
    """Their names."""
    return list(public_classes())


def cases_of(name: str) -> list[BaseEstimator]:
    return CASES[name]() if name in CASES else [public_classes()[name]()]


def all_cases() -> list[tuple[str, BaseEstimator]]:
    return [(name, case) for name in public_estimators() for case in cases_of(name)]


def expected_failures(case: BaseEstimator) -> dict[str, str]:
    """The one check of scikit-learn that contradicts what a model is for, and why."""
    if isinstance(case, laconic.MinimaxClassifier) and case.tie == "randomized":
        return {"check_classifiers_train": "predict draws, the check wants the likeliest"}
    return {}
