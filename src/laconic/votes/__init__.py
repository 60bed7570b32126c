"""Majority votes of few voters: MinCq, CqBoost, their rivals; C-bound and PAC-Bayes bounds."""

from laconic._door import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "CBBoostClassifier": "boosting",
        "CGBoostClassifier": "boosting",
        "CqBoostClassifier": "estimator",
        "ForestVoters": "voters.forest",
        "KernelVoters": "voters.kernels",
        "LPBoostClassifier": "boosting",
        "MinCqClassifier": "estimator",
        "StumpVoters": "voters.stumps",
    },
)
