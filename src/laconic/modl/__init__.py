"""Columns cut into few parts without parameters: MODL partitions, grids, trees, the encoder."""

from laconic._door import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "ModlEncoder": "estimator",
        "Partition": "partition",
    },
)
