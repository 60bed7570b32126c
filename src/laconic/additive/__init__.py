"""The sparse additive model: few curves and grids, chosen on held-out rows, certified."""

from laconic._door import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "SparseAdditiveClassifier": "estimator",
    },
)
