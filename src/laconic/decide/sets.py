"""Sets of classes that hold the truth, and decisions whose accepted part errs seldom enough.

Both rest on calibration rows that had no part in the fit. For a class k with n_k of them, let q_k
be the floor(a (n_k + 1))-th smallest probability that they were given of being k. A new row of
class k has p_k >= q_k with probability 1 - a at least, whatever the law of the rows and whatever
the shares of the classes (class-conditional split conformal prediction, Vovk 2012). So the set of
all k with p_k >= q_k misses a class no more often than a, under label shift too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from laconic._typing import Floats, Ints, Mask
from laconic.decide.guarantee import NoThresholdError, fallback

GRID_SIZE = 40
"""Cuts of the certainty at which the error of accepted rows is tested; all share the doubt."""


@dataclass(frozen=True)
class PredictionSets:
    """Least probability at which a class belongs to the set of a row, class by class.

    >>> draw = np.random.default_rng(0)
    >>> codes = draw.integers(0, 3, 900)
    >>> proba = draw.dirichlet([1, 1, 1], 900) + 2 * np.eye(3)[codes]
    >>> proba /= proba.sum(axis=1, keepdims=True)
    >>> sets = prediction_sets(proba[:600], codes[:600], level=0.9)
    >>> inside = sets.contains(proba[600:])
    >>> bool(inside[np.arange(300), codes[600:]].mean() > 0.85)
    True
    """

    level: float
    least: Floats
    rows: Ints
    """Calibration rows of each class."""

    def contains(self, proba: ArrayLike) -> Mask:
        """(rows, classes): whether each class is in the set of each row."""
        return np.asarray(np.asarray(proba, dtype=np.float64) >= self.least)


def prediction_sets(proba: ArrayLike, codes: ArrayLike, level: float = 0.9) -> PredictionSets:
    """Sets that hold the true class with probability ``level`` at least, within every class.

    Parameters
    ----------
    proba : array-like of shape (n, K)
        Probabilities of calibration rows: none of them was used for the fit.
    codes : array-like of shape (n,)
        Position of the true class of each row.
    level : float, default=0.9

    Returns
    -------
    PredictionSets
        A class with too few rows (fewer than 1 / (1 - level) - 1) belongs to every set.
    """
    values, truth = np.asarray(proba, dtype=np.float64), np.asarray(codes, dtype=np.int64)
    if values.ndim != 2 or len(values) != len(truth) or not len(truth):
        raise ValueError(f"proba must be n x K and codes n, got {values.shape}, {truth.shape}.")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie strictly between 0 and 1, got {level!r}.")
    n_classes = values.shape[1]
    least = np.zeros(n_classes)
    for k in range(n_classes):
        own = np.sort(values[truth == k, k])
        # rounding must not turn 0.1 (n + 1) = 3 into 2.9999...
        place = int(np.floor((1.0 - level) * (len(own) + 1) + 1e-9))
        if place >= 1:
            least[k] = own[place - 1]
    return PredictionSets(level, least, np.bincount(truth, minlength=n_classes))


@dataclass(frozen=True)
class Acceptance:
    """Accept a row when the probability of its class is above ``certainty``."""

    certainty: float
    error: float
    confidence: float
    measured: float
    accepted: float


def accepted_error(
    certainty: ArrayLike, right: ArrayLike, *, error: float, confidence: float = 0.95
) -> Acceptance:
    """The least certainty above which at most a share ``error`` of accepted rows is wrong.

    Of m accepted calibration rows with k errors, a cut fails with p-value P(Bin(m, error) <= k).
    The cuts are order statistics of the certainties, so rows above one are drawn, each on its own,
    from all rows above it. They share the doubt 1 - confidence, the highest cut first
    (:func:`laconic.decide.guarantee.fallback`).

    Parameters
    ----------
    certainty : array-like of shape (n,)
        Largest probability of each calibration row.
    right : array-like of shape (n,)
        Whether its decision was right.
    error : float
    confidence : float, default=0.95

    Returns
    -------
    Acceptance

    Examples
    --------
    >>> draw = np.random.default_rng(0)
    >>> sure = draw.uniform(0.5, 1.0, 4000)
    >>> found = accepted_error(sure, draw.random(4000) < sure, error=0.1)
    >>> 0.75 < found.certainty < 0.95, found.measured < 0.1
    (True, True)
    """
    sure, good = np.asarray(certainty, dtype=np.float64), np.asarray(right, dtype=bool)
    if sure.ndim != 1 or sure.shape != good.shape or not len(sure):
        raise ValueError("One certainty and one verdict are needed for each of at least one row.")
    if not (0.0 < error < 1.0 and 0.0 < confidence < 1.0):
        raise ValueError("error and confidence must lie strictly between 0 and 1.")
    levels = np.linspace(0.0, 1.0, GRID_SIZE, endpoint=False)
    cuts = np.concatenate([[-1.0], np.quantile(sure, levels, method="inverted_cdf")])
    kept = sure[:, None] > cuts
    wrong, rows = (~good[:, None] & kept).sum(axis=0), kept.sum(axis=0)
    p_values = np.where(rows > 0, binom.cdf(wrong, rows, error), 1.0)
    passed = np.flatnonzero(fallback(p_values[::-1], 1.0 - confidence)[::-1])
    if not len(passed):
        raise NoThresholdError(
            f"No part of these {len(sure)} rows errs on at most {error:g} of its rows at "
            f"{confidence:.0%} confidence; allow more errors or give more rows."
        )
    least = passed[0]
    share, taken = float(wrong[least] / rows[least]), float(rows[least] / len(sure))
    return Acceptance(float(cuts[least]), error, confidence, share, taken)
