"""Linear scores: the gray-zone logistic regression, the plain one, and their Newton methods."""

from laconic._door import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "GrayZoneLogisticRegression": "estimator",
        "GrayZoneLogisticRegressionCV": "cv",
        "PlainLogisticRegression": "plain",
    },
)
