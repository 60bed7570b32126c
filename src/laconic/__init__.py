"""Small, certified classifiers for rare classes, unequal costs and a moving class mix."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0.dev0"

# Public name -> module that defines it. Modules load on first use, so that `import laconic`
# stays cheap and numba is not imported before a fit needs it.
_HOME = {
    "AdditivePathDisplay": "laconic.evaluation.additive_displays",
    "AdditiveScore": "laconic.estimators.forms",
    "BayesRiskDisplay": "laconic.evaluation.minimax_displays",
    "BlendedClassifier": "laconic.estimators.blended",
    "CBBoostClassifier": "laconic.estimators.boosting",
    "CGBoostClassifier": "laconic.estimators.boosting",
    "CandidatesDisplay": "laconic.evaluation.candidate_displays",
    "ClassRisksDisplay": "laconic.evaluation.minimax_displays",
    "ContributionDisplay": "laconic.evaluation.bayes_displays",
    "ConvexRiskClassifier": "laconic.estimators.convex_risk",
    "ConvexRiskRegressor": "laconic.estimators.convex_regressor",
    "CorrelationCircleDisplay": "laconic.evaluation.convex_displays",
    "CostCurveDisplay": "laconic.evaluation.displays",
    "CqBoostClassifier": "laconic.estimators.votes",
    "DecisionClassifier": "laconic.estimators.decision",
    "ForestVoters": "laconic.estimators.given_voters",
    "GrayZoneKernelClassifier": "laconic.estimators.gray_zone_kernel",
    "GrayZoneLogisticRegression": "laconic.estimators.gray_zone",
    "GrayZoneLogisticRegressionCV": "laconic.estimators.gray_zone_cv",
    "KMeansK": "laconic.estimators.kmeans_k",
    "KPathDisplay": "laconic.evaluation.convex_displays",
    "KernelScore": "laconic.estimators.kernel_form",
    "KernelVoters": "laconic.estimators.kernel_voters",
    "LPBoostClassifier": "laconic.estimators.boosting",
    "LaconicClassifier": "laconic.estimators.laconic_classifier",
    "LevelDisplay": "laconic.evaluation.partition_displays",
    "MinCqClassifier": "laconic.estimators.votes",
    "MinimaxClassifier": "laconic.estimators.minimax",
    "MinimaxPriorClassifier": "laconic.estimators.minimax_prior",
    "ModlEncoder": "laconic.estimators.modl_encoder",
    "PairwiseRanker": "laconic.estimators.ranking",
    "Partition": "laconic.estimators.partition",
    "PartitionDisplay": "laconic.evaluation.partition_displays",
    "PlainLogisticRegression": "laconic.estimators.plain_logistic",
    "PrincipalMap": "laconic.estimators.principal_map",
    "PriorRiskDisplay": "laconic.evaluation.displays",
    "RankKernelClassifier": "laconic.estimators.rank_kernel",
    "ReliabilityDisplay": "laconic.evaluation.displays",
    "RobustnessPriceDisplay": "laconic.evaluation.minimax_displays",
    "RowMapDisplay": "laconic.evaluation.convex_displays",
    "Scorecard": "laconic.export.scorecard",
    "ScorecardClassifier": "laconic.estimators.scorecard",
    "SparseRulesClassifier": "laconic.estimators.sparse_rules",
    "SearchDisplay": "laconic.evaluation.bayes_displays",
    "SelectiveNaiveBayes": "laconic.estimators.selective_naive_bayes",
    "SparseAdditiveClassifier": "laconic.estimators.additive",
    "StumpVoters": "laconic.estimators.voters",
    "SupportShareDisplay": "laconic.evaluation.gray_zone_displays",
    "TermsDisplay": "laconic.evaluation.additive_displays",
    "TrueProbabilityDisplay": "laconic.evaluation.gray_zone_displays",
    "VoteCurveDisplay": "laconic.evaluation.vote_displays",
    "VoteRiskDisplay": "laconic.evaluation.vote_displays",
    "VoteRulesDisplay": "laconic.evaluation.vote_displays",
    "WeightPathDisplay": "laconic.evaluation.bayes_displays",
    "WeightedNaiveBayes": "laconic.estimators.naive_bayes",
    "ZoneCostDisplay": "laconic.evaluation.gray_zone_displays",
    "baseline_costs": "laconic.evaluation.costs",
    "check_calibrated": "laconic.criteria.calibration",
    "class_risks": "laconic.evaluation.shift",
    "correct_prior": "laconic.criteria.decisions",
    "cost_scorer": "laconic.evaluation.costs",
    "decision_threshold": "laconic.criteria.decisions",
    "decision_zones": "laconic.evaluation.convex_displays",
    "estimate_prior": "laconic.evaluation.shift",
    "expected_cost": "laconic.evaluation.costs",
    "gray_zone": "laconic.criteria.decisions",
    "load": "laconic.export.model_file",
    "model_card": "laconic.export.card",
    "register_onnx_converters": "laconic.export.onnx_graph",
    "parzen_bandwidth": "laconic.criteria.kernels",
    "reject_zone": "laconic.criteria.decisions",
    "report": "laconic.reporting.report",
    "risk_by_prior": "laconic.evaluation.shift",
    "save": "laconic.export.model_file",
    "scan": "laconic.data.scan",
    "to_onnx": "laconic.export.onnx_graph",
    "to_scorecard": "laconic.export.scorecard",
    "to_sql": "laconic.export.sql",
}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'laconic' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
