"""Points for the parts of each column, weighed together."""

from laconic._door import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "ScorecardClassifier": "estimator",
    },
)
