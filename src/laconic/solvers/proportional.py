"""Profiles with proportional class counts decide alike at every prior: solve them as one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from laconic.criteria.minimax import SparseLaws

Ints = NDArray[np.int64]


def merge_proportional(laws: SparseLaws) -> tuple[SparseLaws, Ints]:
    """Merged laws and the group of each profile; V and all class risks are unchanged.

    ``laws.mass`` should hold counts: equal ratios of counts below 2**26 are then found exactly.
    (Probabilities would do with rounding: profiles that should merge may stay apart.)

    >>> laws = SparseLaws.of(np.array([[1.0, 2.0], [3.0, 0.0], [2.0, 4.0]]))
    >>> merged, group = merge_proportional(laws)
    >>> merged.n_profiles, bool(group[0] == group[2])
    (2, True)
    """
    from laconic.solvers import hot_minimax as hot

    ratio, keys = hot.proportion_keys(laws.start, laws.klass, laws.mass)
    order = np.argsort(keys, kind="stable")
    group, n_groups = hot.proportional_groups(order, keys, laws.start, laws.klass, ratio)
    head = np.full(n_groups, -1, dtype=np.int64)
    head[group[::-1]] = np.arange(laws.n_profiles)[::-1]
    width = np.diff(laws.start)[head]
    start = np.concatenate(([0], np.cumsum(width)))
    # cell c of a profile goes to cell c of its group: same classes in the same order
    profile = np.repeat(np.arange(laws.n_profiles), np.diff(laws.start))
    offset = np.arange(len(laws.mass)) - laws.start[profile]
    cell = start[group[profile]] + offset
    mass = np.bincount(cell, laws.mass, minlength=int(start[-1])).astype(np.float64)
    klass = np.empty(len(mass), dtype=np.int32)
    klass[cell] = laws.klass
    return SparseLaws(start, klass, mass, laws.n_classes), group
