"""Safety when the class mix is unknown: the least favourable prior and its rule."""

from laconic._door import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "MinimaxClassifier": "estimator",
        "MinimaxPriorClassifier": "prior_classifier",
    },
)
