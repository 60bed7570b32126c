"""A few conditions and agreements of two, weighed together."""

from laconic._door import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "SparseRulesClassifier": "estimator",
    },
)
