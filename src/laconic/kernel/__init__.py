"""The gray zone on kernels: few rows carry the boundary."""

from laconic._door import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "GrayZoneKernelClassifier": "estimator",
        "KernelScore": "form",
        "RankKernelClassifier": "rank_kernel",
        "parzen_bandwidth": "kernels",
    },
)
