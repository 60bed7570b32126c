"""Costs, the deployed class mix and abstention, over any probability model."""

from laconic._door import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "DecisionClassifier": "estimator",
        "Guarantee": "guarantee",
        "accepted_error": "sets",
        "baseline_costs": "costs",
        "class_risks": "shift",
        "correct_prior": "laconic.core.decisions",
        "cost_scorer": "costs",
        "decision_threshold": "laconic.core.decisions",
        "estimate_prior": "shift",
        "expected_cost": "costs",
        "gray_zone": "laconic.core.decisions",
        "guaranteed_threshold": "threshold",
        "guaranteed_weights": "weights",
        "prediction_sets": "sets",
        "reference_of": "reference",
        "reject_zone": "laconic.core.decisions",
        "risk_by_prior": "shift",
    },
)
