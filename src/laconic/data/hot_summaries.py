"""Compiled pooling of neighbouring values."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True)
def pool_ends(weight: NDArray[np.float64], heavy: float, full: float) -> NDArray[np.bool_]:
    """Which values end a pool: heavy ones, the last, and light ones once ``full`` is gathered."""
    ends = np.zeros(weight.shape[0], dtype=np.bool_)
    gathered = 0.0
    for i in range(weight.shape[0]):
        gathered += weight[i]
        if weight[i] >= heavy or gathered >= full:
            ends[i] = True
            gathered = 0.0
    ends[-1] = True
    return ends
