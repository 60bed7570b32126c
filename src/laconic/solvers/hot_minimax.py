"""One pass over profiles: the Bayes decision of each and the risk of each class.

``start, klass, mass`` hold the class laws by profile: profile t has the probabilities
``mass[start[t]:start[t + 1]]`` of the classes ``klass[...]`` and zero of the others.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Labels = NDArray[np.int32]
Keys = NDArray[np.uint64]


@njit(cache=True)
def dense_labels(law: Floats, prior: Floats, labels: Labels) -> Floats:
    """0-1 loss: ``argmax_k prior_k p_kt`` of each row of ``law``; returns the mass well decided."""
    n_profiles, n_classes = law.shape
    hit = np.zeros(n_classes)
    for t in range(n_profiles):
        best = 0
        top = prior[0] * law[t, 0]
        for k in range(1, n_classes):
            score = prior[k] * law[t, k]
            if score > top:
                top = score
                best = k
        labels[t] = best
        hit[best] += law[t, best]
    return hit


@njit(cache=True)
def dense_loss_labels(law: Floats, prior: Floats, loss: Floats, labels: Labels) -> Floats:
    """Any loss: ``argmin_l sum_k L_kl prior_k p_kt``; returns the class risks."""
    n_profiles, n_classes = law.shape
    risk = np.zeros(n_classes)
    cost = np.empty(n_classes)
    for t in range(n_profiles):
        cost[:] = 0.0
        for k in range(n_classes):
            share = prior[k] * law[t, k]
            for decided in range(n_classes):
                cost[decided] += loss[k, decided] * share
        best = 0
        for decided in range(1, n_classes):
            if cost[decided] < cost[best]:
                best = decided
        labels[t] = best
        for k in range(n_classes):
            risk[k] += loss[k, best] * law[t, k]
    return risk


@njit(cache=True)
def sparse_labels(
    start: Ints, klass: Labels, mass: Floats, prior: Floats, labels: Labels
) -> Floats:
    """0-1 loss over the classes that a profile holds; returns the mass well decided."""
    hit = np.zeros(len(prior))
    for t in range(len(start) - 1):
        best = start[t]
        top = prior[klass[best]] * mass[best]
        for at in range(start[t] + 1, start[t + 1]):
            score = prior[klass[at]] * mass[at]
            if score > top:
                top = score
                best = at
        labels[t] = klass[best]
        hit[klass[best]] += mass[best]
    return hit


@njit(cache=True)
def sparse_loss_labels(
    start: Ints, klass: Labels, mass: Floats, prior: Floats, loss: Floats, labels: Labels
) -> Floats:
    """Any loss over the classes that a profile holds."""
    n_classes = len(prior)
    risk = np.zeros(n_classes)
    cost = np.empty(n_classes)
    for t in range(len(start) - 1):
        cost[:] = 0.0
        for at in range(start[t], start[t + 1]):
            share = prior[klass[at]] * mass[at]
            for decided in range(n_classes):
                cost[decided] += loss[klass[at], decided] * share
        best = 0
        for decided in range(1, n_classes):
            if cost[decided] < cost[best]:
                best = decided
        labels[t] = best
        for at in range(start[t], start[t + 1]):
            risk[klass[at]] += loss[klass[at], best] * mass[at]
    return risk


@njit(cache=True)
def proportion_keys(start: Ints, klass: Labels, mass: Floats) -> tuple[Floats, Keys]:
    """A 64-bit key of each profile's class mix, equal when the counts are proportional.

    The ratio to the first count is correctly rounded, so equal fractions give equal bits.
    """
    ratio = np.empty(len(mass))
    for t in range(len(start) - 1):
        for at in range(start[t], start[t + 1]):
            ratio[at] = mass[at] / mass[start[t]]
    bits = ratio.view(np.uint64)
    keys = np.empty(len(start) - 1, dtype=np.uint64)
    for t in range(len(start) - 1):
        key = np.uint64(0x9E3779B97F4A7C15)
        for at in range(start[t], start[t + 1]):
            key ^= bits[at] + np.uint64(klass[at]) * np.uint64(0xC2B2AE3D27D4EB4F)
            key *= np.uint64(0xFF51AFD7ED558CCD)
            key ^= key >> np.uint64(32)
        keys[t] = key
    return ratio, keys


@njit(cache=True)
def proportional_groups(
    order: Ints, keys: Keys, start: Ints, klass: Labels, ratio: Floats
) -> tuple[Ints, int]:
    """Group number of each profile; neighbours in ``order`` join when they are truly equal."""
    group = np.empty(len(keys), dtype=np.int64)
    now = -1
    for rank in range(len(order)):
        t = order[rank]
        same = rank > 0 and keys[t] == keys[order[rank - 1]]
        if same:
            other = order[rank - 1]
            same = start[t + 1] - start[t] == start[other + 1] - start[other]
            step = 0
            while same and step < start[t + 1] - start[t]:
                here = start[t] + step
                there = start[other] + step
                same = klass[here] == klass[there] and ratio[here] == ratio[there]
                step += 1
        if not same:
            now += 1
        group[t] = now
    return group, now + 1
