"""Compiled passes of the l1-penalised logistic fit over signs: arrays in, arrays out.

``signs[j, i]`` is +1 or -1: the side of condition j on which row i lies.
"""

from __future__ import annotations

import numpy as np

from laconic._jit import njit
from laconic._typing import Floats, Signs


@njit(cache=True, nogil=True)
def sign_sums(signs: Signs, values: Floats, out: Floats) -> None:
    """out[j] = sum over rows of signs[j, i] values[i]."""
    for j in range(signs.shape[0]):
        total = 0.0
        for i in range(signs.shape[1]):
            total += signs[j, i] * values[i]
        out[j] = total


@njit(cache=True, nogil=True)
def descend(
    gram: Floats, slope: Floats, weights: Floats, penalty: float, max_sweeps: int, tol: float
) -> Floats:
    """Coordinate descent on a quadratic model with an l1 penalty; coordinate 0 is not penalised.

    Minimises slope'd + d' gram d / 2 + penalty |weights + d|_1 (without the first entry) over d.
    Sweeps end when no step changes the model by more than ``tol``.
    """
    m = slope.shape[0]
    step = np.zeros(m)
    pull = slope.copy()  # slope + gram d
    for _ in range(max_sweeps):
        worst = 0.0
        for j in range(m):
            curvature = gram[j, j]
            now = weights[j] + step[j]
            target = now - pull[j] / curvature
            if j > 0:
                reach = penalty / curvature
                if target > reach:
                    target -= reach
                elif target < -reach:
                    target += reach
                else:
                    target = 0.0
            d = target - now
            if d == 0.0:
                continue
            step[j] += d
            for k in range(m):
                pull[k] += gram[j, k] * d
            worst = max(worst, curvature * d * d)
        if worst <= tol:
            break
    return step
