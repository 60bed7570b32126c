"""Convex risks: a certified solver for every loss, ranking, k-means with its K, principal maps."""

from laconic._door import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "ConvexRiskClassifier": "estimator",
        "ConvexRiskRegressor": "estimator",
        "KMeansK": "kmeans",
        "PairwiseRanker": "ranking",
        "PrincipalMap": "principal_map",
        "decision_zones": "displays",
    },
)
