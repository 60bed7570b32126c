"""What the searches of one variable share: tables of class weights, exact layers, bounds.

The minimum over partitions of ``prior(I) + sum of part costs`` is found by dynamic programming on
the number of parts I. Lagrangian minima L(x) = min over partitions of (part costs + x I) bound the
layers from below, best_I >= L(x) - x I, and say when no further layer can improve.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from laconic._typing import Floats, Ints
from laconic.modl.tuning import MOST_FACTORIALS

Weights = NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True)
class Limits:
    """What the user asks of a partition; ``monotone`` is +1 or -1 when the rate of class 1 must go
    up or down with the values."""

    max_parts: int | None = None
    min_weight: float = 0.0
    monotone: int = 0

    def most_parts(self, n_values: int) -> int:
        return n_values if self.max_parts is None else min(n_values, self.max_parts)


@lru_cache(maxsize=2)
def _log_factorials(size: int) -> Floats:
    return np.asarray(gammaln(np.arange(size, dtype=np.float64) + 1.0))


@dataclass(frozen=True)
class WeightTable:
    """Class weights of V values, ordered or not, ready for compiled code.

    ``weights`` has shape (V, B * J), integers when all weights are; ``table`` holds ln x!.
    """

    weights: Weights
    n_classes: int
    table: Floats

    @staticmethod
    def of(weights: Weights, n_classes: int) -> WeightTable:
        total = float(weights.sum())
        if total + n_classes + 1 < MOST_FACTORIALS:
            whole = np.asarray(weights).astype(np.int64)
            if np.array_equal(whole, weights):
                size = 1 << int(total + n_classes + 1).bit_length()
                return WeightTable(whole, n_classes, _log_factorials(max(size, 1024)))
        size = max(1024, 1 << n_classes.bit_length())
        return WeightTable(np.asarray(weights, dtype=np.float64), n_classes, _log_factorials(size))

    @property
    def n_values(self) -> int:
        return len(self.weights)

    @property
    def width(self) -> int:
        return int(self.weights.shape[1])

    def prefix(self) -> Weights:
        """Cumulated weights, one row more than values."""
        first = np.zeros_like(self.weights, shape=(1, self.width))
        return np.concatenate([first, np.cumsum(self.weights, axis=0)])

    def entropy_bound(self) -> float:
        """Sum over values of N_v H_v: no partition has a lower sum of part costs."""
        mixed = self.weights[(self.weights > 0).sum(axis=1) > 1]
        cells = mixed.astype(np.float64).reshape(
            len(mixed), self.width // self.n_classes, self.n_classes
        )
        total = cells.sum(axis=2)
        own = np.where(cells > 0.0, cells * np.log(np.maximum(cells, 1e-300)), 0.0).sum()
        return max(0.0, float((total * np.log(np.maximum(total, 1e-300))).sum() - own))


@dataclass(frozen=True)
class Layers:
    """best[I - 1] = least sum of run costs in exactly I parts, and how to get it."""

    packed: Floats
    table: Floats
    best: Floats
    tail_bound: Floats

    def cuts(self, n_parts: int) -> Ints:
        from laconic.modl._numba import trace_back

        out: Ints = trace_back(self.packed, self.table, n_parts)
        return out

    def lower_bound(self, n_parts: int) -> Floats:
        """Lower bounds of best_1 ... best_n, exact where layers were computed."""
        bound = np.full(n_parts, self.tail_bound[-1] if len(self.tail_bound) else np.inf)
        for known in (self.tail_bound, self.best):
            upto = min(n_parts, len(known))
            bound[:upto] = known[:upto]
        return bound


def solve_layers(
    prefix: Weights,
    n_classes: int,
    prior: Floats,
    incumbent: float,
    min_weight: float,
    table: Floats,
) -> Layers:
    """Layers I = 1, 2, ... until prior[I - 1] + any further layer is above the incumbent."""
    from laconic.modl import _numba as hot

    n_values = len(prefix) - 1
    most = min(len(prior), n_values)
    packed = hot.all_run_costs(prefix, n_classes, min_weight, table)
    parts = np.arange(1, most + 1)
    # the multipliers worth trying are below what the prior charges for one part more
    steepest = max(1e-6, float(np.diff(prior[: min(most, 4)]).min())) if most > 1 else 1.0
    tail = np.zeros(most)
    for multiplier in (steepest, 0.6 * steepest, 0.3 * steepest, 0.0):
        least = hot.penalised_minimum(packed, n_values, multiplier)
        if np.isfinite(least):
            tail = np.maximum(tail, least - multiplier * parts)
    layers = [hot.first_layer(packed, n_values)]
    low = min(incumbent, prior[0] + layers[0][n_values])
    possible = prior[:most] + tail
    for n_parts in range(2, most + 1):
        if possible[n_parts - 1 :].min() >= low:
            break
        layers.append(hot.next_layer(packed, layers[-1], n_parts))
        low = min(low, prior[n_parts - 1] + layers[-1][n_values])
    stacked = np.array(layers)
    return Layers(packed, stacked, stacked[:, n_values].copy(), tail)
