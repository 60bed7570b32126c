"""Points for the parts of each column, and small cards of whole points with a proof."""

from laconic._door import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "Card": "card",
        "CardItem": "card",
        "OptimalScorecardClassifier": "optimal",
        "ScorecardClassifier": "estimator",
    },
)
