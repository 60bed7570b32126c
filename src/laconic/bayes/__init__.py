"""Naive Bayes with few variables: weights by certified Newton or by the searches of the paper."""

from laconic._door import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "SelectiveNaiveBayes": "selective",
        "WeightedNaiveBayes": "estimator",
    },
)
