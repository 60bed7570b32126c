"""The main job: candidates compared on held-out rows, blends, the model that is kept."""

from laconic._door import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "BlendedClassifier": "blends",
        "LaconicClassifier": "estimator",
    },
)
