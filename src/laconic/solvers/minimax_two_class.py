"""Two classes: the least favourable prior in closed form.

With ``x = pi_0``, each profile decides class 0 above its break point
``x_t = p_1t g_1 / (p_0t g_0 + p_1t g_1)``, where ``g_0 = L_01 - L_00`` and ``g_1 = L_10 - L_11``.
The slope ``V'(x) = R_0 - R_1`` falls by ``p_0t g_0 + p_1t g_1`` there: the maximum is at the break
point where the slope changes sign, and the two rules around it, mixed, equalise the risks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from laconic.criteria.minimax import Laws, MixtureRule
from laconic.criteria.prior_box import PriorBox
from laconic.solvers.solution import Solution

Floats = NDArray[np.float64]

_BUCKETS = 4096


def two_class_minimax(laws: Laws, loss: Floats, box: PriorBox, *, tol: float = 1e-8) -> Solution:
    """Exact least favourable prior and minimax rule of two classes."""
    law = laws.rows(0, laws.n_profiles)
    gain = np.array([loss[0, 1] - loss[0, 0], loss[1, 0] - loss[1, 1]])
    least = max(box.low[0], 1.0 - box.high[1])
    most = max(min(box.high[0], 1.0 - box.low[1]), least)
    if gain[0] * gain[1] <= 0:
        # one decision is never dearer than the other: V is affine
        always = 0 if gain[0] >= 0 >= gain[1] else 1
        labels = np.full((1, len(law)), always, dtype=np.int32)
        risks = (loss[:, always] * _totals(law))[None]
        x = float(most if risks[0, 0] > risks[0, 1] else least)
        return _solution(x, labels, risks, np.ones(1), box, tol)
    first, second = law[:, 0] * abs(gain[0]), law[:, 1] * abs(gain[1])
    drop = first + second
    breaks = np.divide(second, drop, out=np.zeros(len(law)), where=drop > 0)
    upper = 0 if gain[0] > 0 else 1  # decided above the break point
    totals = _totals(law)
    slope = float(totals[0] * loss[0, 1 - upper] - totals[1] * loss[1, 1 - upper])
    x = float(np.clip(_crossing(breaks, drop, slope), least, most))
    return _around(x, breaks, law, loss, upper, box, tol)


def _crossing(breaks: Floats, drop: Floats, slope: float) -> float:
    """The point of [0, 1] where a slope that falls by ``drop`` at each break is not positive.

    Breaks are first summed in buckets, and only those of the bucket where the slope changes sign
    are sorted: linear in the number of profiles.
    """
    if slope <= 0:
        return 0.0
    bucket = (breaks * _BUCKETS).astype(np.int64)
    fallen = np.cumsum(np.bincount(bucket, drop, minlength=_BUCKETS + 1))
    found = int(np.searchsorted(fallen, slope))
    if found > _BUCKETS:
        return 1.0
    inside = np.flatnonzero(bucket == found)
    order = inside[np.argsort(breaks[inside])]
    before = fallen[found - 1] if found else 0.0
    place = int(np.searchsorted(before + np.cumsum(drop[order]), slope))
    # the two sums round differently: the last break of the bucket ends the search
    return float(breaks[order[min(place, len(order) - 1)]])


def _totals(law: Floats, rows: NDArray[np.bool_] | None = None) -> Floats:
    """Sums of the two columns, over some rows; numpy sums a long thin table slowly by axis."""
    chosen = True if rows is None else rows
    return np.array([law[:, 0].sum(where=chosen), law[:, 1].sum(where=chosen)])


def _around(
    x: float, breaks: Floats, law: Floats, loss: Floats, upper: int, box: PriorBox, tol: float
) -> Solution:
    """Mix the rules just below and just above ``x`` so that the slope of the mixture is zero."""
    ties = np.flatnonzero(breaks == x)
    labels = np.empty((2, len(law)), dtype=np.int32)
    labels[:] = np.where(breaks < x, upper, 1 - upper)
    labels[1, ties] = upper
    mass = np.empty((2, 2, 2))  # rule, class, decision
    mass[0, :, 1] = _totals(law, labels[0] == 1)
    moved = _totals(law[ties])
    mass[1, :, 1] = mass[0, :, 1] + (moved if upper else -moved)
    mass[:, :, 0] = _totals(law) - mass[:, :, 1]
    risks = (mass * loss).sum(axis=2)
    slope = risks[:, 0] - risks[:, 1]
    fall = slope[0] - slope[1]
    share = float(np.clip(slope[0] / fall, 0.0, 1.0)) if fall > 0 else 0.0
    weights = np.array([1.0 - share, share])
    kept = weights > 0
    return _solution(x, labels[kept], risks[kept], weights[kept], box, tol)


def _solution(
    x: float,
    labels: NDArray[np.int32],
    risks: Floats,
    weights: Floats,
    box: PriorBox,
    tol: float,
) -> Solution:
    prior = np.array([x, 1.0 - x])
    rule = MixtureRule(np.tile(prior, (len(weights), 1)), weights, labels, risks)
    low = float((risks @ prior).min())
    worst, _ = box.worst(rule.class_risks)
    gap = max(worst - low, 0.0)
    details = {"rule": rule, "lower_bound": low, "n_passes": 1}
    return Solution(prior, worst, gap, 1, "gap" if gap <= tol else "stalled", details)
