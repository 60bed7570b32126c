"""Small, certified classifiers for rare classes, unequal costs and a moving class mix."""

from importlib import import_module
from typing import Any

from laconic._door import door

__version__ = "0.1.0.dev0"

# What most users start with, by the module that defines it. The rest is in the family packages
# (laconic.votes, laconic.convex, ...), the drawings are in laconic.displays; docs/api.md lists all.
_HOME = {
    "BlendedClassifier": "laconic.choose.blends",
    "ConvexRiskClassifier": "laconic.convex.estimator",
    "CqBoostClassifier": "laconic.votes.estimator",
    "DecisionClassifier": "laconic.decide.estimator",
    "GrayZoneKernelClassifier": "laconic.kernel.estimator",
    "GrayZoneLogisticRegression": "laconic.linear.estimator",
    "GrayZoneLogisticRegressionCV": "laconic.linear.cv",
    "LaconicClassifier": "laconic.choose.estimator",
    "MinimaxClassifier": "laconic.minimax.estimator",
    "ModlEncoder": "laconic.modl.estimator",
    "OptimalScorecardClassifier": "laconic.scorecard.optimal",
    "PlainLogisticRegression": "laconic.linear.plain",
    "ScorecardClassifier": "laconic.scorecard.estimator",
    "SparseAdditiveClassifier": "laconic.additive.estimator",
    "SparseRulesClassifier": "laconic.rules.estimator",
    "WeightedNaiveBayes": "laconic.bayes.estimator",
    "baseline_costs": "laconic.decide.costs",
    "cost_scorer": "laconic.decide.costs",
    "decision_threshold": "laconic.core.decisions",
    "estimate_prior": "laconic.decide.shift",
    "expected_cost": "laconic.decide.costs",
    "gray_zone": "laconic.core.decisions",
    "load": "laconic.export.model_file",
    "look": "laconic.data.reading.look",
    "model_card": "laconic.export.card",
    "report": "laconic.reporting.report",
    "save": "laconic.export.model_file",
    "scan": "laconic.data.scan.scan",
    "to_onnx": "laconic.export.onnx_graph",
    "to_scorecard": "laconic.export.scorecard",
    "to_sql": "laconic.export.sql",
    "watch": "laconic.watching.watch",
}

_PACKAGES = {
    "additive", "bayes", "boosted", "choose", "convex", "core", "decide", "displays", "export",
    "kernel", "linear", "minimax", "modl", "rules", "scorecard", "votes",
}  # fmt: skip

_open, _, _names = door(__name__, _HOME)
__all__ = ["__version__", *_names]


def __getattr__(name: str) -> Any:
    # laconic.votes.MinCqClassifier works after a plain "import laconic"
    return import_module(f"laconic.{name}") if name in _PACKAGES else _open(name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_PACKAGES})
