"""Means of two candidates, judged on the held-out rows that their members were judged on.

The mean of two sums of terms is a sum of terms (:mod:`laconic.estimators.mean_form`). Its held-out
probabilities follow from those of its members, so that every pair is compared at no cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from laconic.estimators.blended import BlendedClassifier
from laconic.estimators.candidates import Candidate
from laconic.estimators.comparison import Market, Outcome, price
from laconic.estimators.mean_form import MEAN_LINKS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def blended_outcomes(
    outcomes: Sequence[Outcome], y: Ints, weight: Floats, market: Market, largest: float
) -> list[Outcome]:
    """The mean of every two complete candidates that together have at most ``largest`` entries."""
    able = [out for out in outcomes if out.complete and out.link in MEAN_LINKS]
    able = [out for out in able if out.raw is not None and out.size <= largest]
    found = []
    for one, other in combinations(able, 2):
        if one.link == other.link and one.size + other.size <= largest:
            blend = _mean_of(one, other)
            price(blend, y, weight, market)
            found.append(blend)
    return found


def _mean_of(one: Outcome, other: Outcome) -> Outcome:
    tiny = np.finfo(np.float64).tiny
    assert one.raw is not None
    assert other.raw is not None
    # a row that one of the two was not asked about (NaN) stays unknown
    logs = np.log(np.maximum(one.raw, tiny)) + np.log(np.maximum(other.raw, tiny))
    raw = softmax(logs / 2.0, axis=1)
    smoothing = (one.smoothing + other.smoothing) / 2.0
    proba = (raw + smoothing / raw.shape[1]) / (1.0 + smoothing)
    members = (one, other)
    columns = one.columns | other.columns
    return Outcome(
        Candidate(
            " + ".join(out.candidate.name for out in members),
            BlendedClassifier([out.candidate.model for out in members]),
        ),
        proba,
        np.full(len(proba), np.nan),
        raw=raw,
        link=one.link,
        smoothing=smoothing,
        columns=columns,
        members=members,
        fit_seconds=one.fit_seconds + other.fit_seconds,
        sizes=[one.size + other.size],
        variables=[float(len(columns))],
        gaps=one.gaps + other.gaps,
        note="mean",
        complete=True,
    )


def fitted_blend(blend: Outcome, fit: Callable[[Any], Any]) -> BlendedClassifier:
    """The chosen mean on all rows: members that are fitted there already are not fitted again."""
    return BlendedClassifier.of(
        [fit(out.candidate.model) if out.fitted is None else out.fitted for out in blend.members]
    )


__all__ = ["blended_outcomes", "fitted_blend"]
