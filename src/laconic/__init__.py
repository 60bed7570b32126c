"""Small, certified classifiers for rare classes, unequal costs and a moving class mix."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0.dev0"

# Public name -> module that defines it. Modules load on first use, so that `import laconic`
# stays cheap and numba is not imported before a fit needs it.
_HOME = {
    "AdditivePathDisplay": "laconic.additive.displays",
    "AdditiveScore": "laconic.core.forms",
    "BayesRiskDisplay": "laconic.minimax.displays",
    "BlendedClassifier": "laconic.choose.blends",
    "CBBoostClassifier": "laconic.votes.boosting",
    "CGBoostClassifier": "laconic.votes.boosting",
    "CandidatesDisplay": "laconic.choose.displays",
    "ClassRisksDisplay": "laconic.minimax.displays",
    "ContributionDisplay": "laconic.bayes.displays",
    "ConvexRiskClassifier": "laconic.convex.estimator",
    "ConvexRiskRegressor": "laconic.convex.regressor",
    "CorrelationCircleDisplay": "laconic.convex.displays",
    "CostCurveDisplay": "laconic.decide.displays",
    "CqBoostClassifier": "laconic.votes.estimator",
    "DecisionClassifier": "laconic.decide.estimator",
    "ForestVoters": "laconic.votes.given_voters",
    "GrayZoneKernelClassifier": "laconic.kernel.estimator",
    "GrayZoneLogisticRegression": "laconic.linear.estimator",
    "GrayZoneLogisticRegressionCV": "laconic.linear.cv",
    "KMeansK": "laconic.convex.kmeans",
    "KPathDisplay": "laconic.convex.displays",
    "KernelScore": "laconic.kernel.form",
    "KernelVoters": "laconic.votes.kernel_voters",
    "LPBoostClassifier": "laconic.votes.boosting",
    "LaconicClassifier": "laconic.choose.estimator",
    "LevelDisplay": "laconic.modl.displays",
    "MinCqClassifier": "laconic.votes.estimator",
    "MinimaxClassifier": "laconic.minimax.estimator",
    "MinimaxPriorClassifier": "laconic.minimax.prior_classifier",
    "ModlEncoder": "laconic.modl.estimator",
    "PairwiseRanker": "laconic.convex.ranking",
    "Partition": "laconic.modl.partition",
    "PartitionDisplay": "laconic.modl.displays",
    "PlainLogisticRegression": "laconic.linear.plain",
    "PrincipalMap": "laconic.convex.principal_map",
    "PriorRiskDisplay": "laconic.decide.displays",
    "RankKernelClassifier": "laconic.kernel.rank_kernel",
    "ReliabilityDisplay": "laconic.decide.displays",
    "RobustnessPriceDisplay": "laconic.minimax.displays",
    "RowMapDisplay": "laconic.convex.displays",
    "Scorecard": "laconic.export.scorecard",
    "ScorecardClassifier": "laconic.scorecard.estimator",
    "SparseRulesClassifier": "laconic.rules.estimator",
    "SearchDisplay": "laconic.bayes.displays",
    "SelectiveNaiveBayes": "laconic.bayes.selective",
    "SparseAdditiveClassifier": "laconic.additive.estimator",
    "StumpVoters": "laconic.votes.voters",
    "SupportShareDisplay": "laconic.linear.displays",
    "TermsDisplay": "laconic.additive.displays",
    "TrueProbabilityDisplay": "laconic.linear.displays",
    "VoteCurveDisplay": "laconic.votes.displays",
    "VoteRiskDisplay": "laconic.votes.displays",
    "VoteRulesDisplay": "laconic.votes.displays",
    "WeightPathDisplay": "laconic.bayes.displays",
    "WeightedNaiveBayes": "laconic.bayes.estimator",
    "ZoneCostDisplay": "laconic.linear.displays",
    "baseline_costs": "laconic.decide.costs",
    "check_calibrated": "laconic.core.calibration",
    "class_risks": "laconic.decide.shift",
    "correct_prior": "laconic.core.decisions",
    "cost_scorer": "laconic.decide.costs",
    "decision_threshold": "laconic.core.decisions",
    "decision_zones": "laconic.convex.displays",
    "estimate_prior": "laconic.decide.shift",
    "expected_cost": "laconic.decide.costs",
    "gray_zone": "laconic.core.decisions",
    "load": "laconic.export.model_file",
    "model_card": "laconic.export.card",
    "register_onnx_converters": "laconic.export.onnx_graph",
    "parzen_bandwidth": "laconic.kernel.kernels",
    "reject_zone": "laconic.core.decisions",
    "report": "laconic.reporting.report",
    "risk_by_prior": "laconic.decide.shift",
    "save": "laconic.export.model_file",
    "scan": "laconic.data.scan.scan",
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
