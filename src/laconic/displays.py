"""Drawings of models and decisions, each with its numbers; matplotlib loads at the first one."""

from laconic._door import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "AdditivePathDisplay": "laconic.additive.displays",
        "BayesRiskDisplay": "laconic.minimax.displays",
        "CandidatesDisplay": "laconic.choose.displays",
        "ClassRisksDisplay": "laconic.minimax.displays",
        "ContributionDisplay": "laconic.core.explanation",
        "CorrelationCircleDisplay": "laconic.convex.displays",
        "CostCurveDisplay": "laconic.decide.displays",
        "CostRegionDisplay": "laconic.decide.curves",
        "DecisionCurveDisplay": "laconic.decide.curves",
        "KPathDisplay": "laconic.convex.displays",
        "LevelDisplay": "laconic.modl.displays",
        "PartitionDisplay": "laconic.modl.displays",
        "PriorRiskDisplay": "laconic.decide.displays",
        "ReliabilityDisplay": "laconic.decide.displays",
        "RobustnessPriceDisplay": "laconic.minimax.displays",
        "RowMapDisplay": "laconic.convex.displays",
        "SearchDisplay": "laconic.bayes.displays",
        "SupportShareDisplay": "laconic.linear.displays",
        "TermsDisplay": "laconic.additive.displays",
        "TrueProbabilityDisplay": "laconic.linear.displays",
        "VoteCurveDisplay": "laconic.votes.displays",
        "VoteRiskDisplay": "laconic.votes.displays",
        "VoteRulesDisplay": "laconic.votes.displays",
        "WeightPathDisplay": "laconic.bayes.displays",
        "ZoneCostDisplay": "laconic.linear.displays",
    },
)
