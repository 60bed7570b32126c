"""Arrays by what is in them: the names that annotations of every module use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Signs = NDArray[np.int8]
Keys = NDArray[np.uint64]
Mask = NDArray[np.bool_]
AnyArray = NDArray[Any]
