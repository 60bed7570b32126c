"""What the partition searches share: tables of ln x!, exact layers, bounds on the cost.

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

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Weights = NDArray[np.int64] | NDArray[np.float64]

EXACT_WORK = 1 << 21
"""Exact search when V^2 times the width of the table is at most this."""
_TABLE_LIMIT = 1 << 22


@lru_cache(maxsize=2)
def _log_factorials(size: int) -> Floats:
    return np.asarray(gammaln(np.arange(size, dtype=np.float64) + 1.0))


@dataclass(frozen=True)
class WeightTable:
    """Class weights of V ordered values (or of unordered ones), ready for compiled code.

    ``weights`` has shape (V, B * J), integers when all weights are; ``table`` holds ln x!.
    """

    weights: Weights
    n_classes: int
    table: Floats

    @staticmethod
    def of(weights: Weights, n_classes: int) -> WeightTable:
        total = float(weights.sum())
        if total + n_classes + 1 < _TABLE_LIMIT:
            whole = np.asarray(weights).astype(np.int64)
            if np.array_equal(whole, weights):
                size = 1 << int(total + n_classes + 1).bit_length()
                return WeightTable(whole, n_classes, _log_factorials(max(size, 1024)))
        small = _log_factorials(1024)
        if n_classes > len(small):
            small = _log_factorials(1 << n_classes.bit_length())
        return WeightTable(np.asarray(weights, dtype=np.float64), n_classes, small)

    @property
    def n_values(self) -> int:
        return len(self.weights)

    @property
    def width(self) -> int:
        return int(self.weights.shape[1])

    @property
    def total(self) -> float:
        return float(self.weights.sum())

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
        from laconic.solvers.hot_partition import trace_back

        out: Ints = trace_back(self.packed, self.table, n_parts)
        return out

    def lower_bound(self, n_parts: int) -> Floats:
        """Lower bounds of best_1 ... best_n, exact where layers were computed."""
        bound = np.full(n_parts, self.tail_bound[-1] if len(self.tail_bound) else np.inf)
        known = min(n_parts, len(self.tail_bound))
        bound[:known] = self.tail_bound[:known]
        done = min(n_parts, len(self.best))
        bound[:done] = self.best[:done]
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
    from laconic.solvers.hot_partition import (
        all_run_costs,
        first_layer,
        next_layer,
        penalised_minimum,
    )

    n_values = len(prefix) - 1
    most = min(len(prior), n_values)
    packed = all_run_costs(prefix, n_classes, min_weight, table)
    parts = np.arange(1, most + 1)
    steepest = max(1e-6, float(np.diff(prior[: min(most, 4)]).min())) if most > 1 else 1.0
    tail = np.zeros(most)
    for penalty in (steepest, 0.6 * steepest, 0.3 * steepest, 0.0):
        least = penalised_minimum(packed, n_values, penalty)
        if np.isfinite(least):
            tail = np.maximum(tail, least - penalty * parts)
    layers = [first_layer(packed, n_values)]
    low = min(incumbent, prior[0] + layers[0][n_values])
    possible = prior[:most] + tail
    for n_parts in range(2, most + 1):
        if possible[n_parts - 1 :].min() >= low:
            break
        layers.append(next_layer(packed, layers[-1], n_parts))
        low = min(low, prior[n_parts - 1] + layers[-1][n_values])
    stacked = np.array(layers)
    return Layers(packed, stacked, stacked[:, n_values].copy(), tail)
