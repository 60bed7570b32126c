"""Boosted steps: bags of cuts of one column and crosses of two, whose mean is tables and grids."""

from laconic._door import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "BoostedStepsClassifier": "estimator",
    },
)
