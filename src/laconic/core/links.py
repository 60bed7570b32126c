"""From scores to class probabilities: the last step of every fitted form."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import expit, log_expit, softmax

from laconic._typing import Floats

Link = Literal["logit", "softmax", "ovr", "vote", "points", "identity"]

LINKS: tuple[Link, ...] = ("logit", "softmax", "ovr", "vote", "points", "identity")
MOST_VOTE = 0.9995
"""Votes are kept this far inside [-1, 1] before their log-odds are taken."""


def n_scores_of(link: Link, n_classes: int, given: int) -> int:
    """How many scores a link reads: one for "logit" and "points", K for "softmax" and "ovr".

    A vote has one score for two classes and K for more; "identity" takes what it is given.
    """
    if link in ("logit", "points"):
        return 1
    if link == "vote":
        return 1 if n_classes == 2 else n_classes
    return given if link == "identity" else n_classes


def probabilities(
    scores: Floats,
    link: Link,
    smoothing: float = 0.0,
    calibration: tuple[tuple[float, float], ...] | None = None,
) -> Floats:
    """(rows, classes) from (rows, scores).

    ========  =====================================================================
    link      probabilities
    ========  =====================================================================
    logit     sigmoid of the score, for the last of two classes
    softmax   exp(score_k), normalised
    ovr       sigmoid of each score, normalised
    vote      (1 + vote) / 2, or the sigmoid of its calibrated log-odds; normalised
    points    sigmoid of the log-odds that a table gives to the total of whole points
    ========  =====================================================================

    ``calibration`` holds (slope, intercept) for the log-odds ln((1 + v) / (1 - v)) of each vote,
    or, for points, (total, log-odds) for every whole number from the least total to the largest.
    ``smoothing`` h turns p_k into (p_k + h / K) / (1 + h).

    >>> probabilities(np.array([[0.0]]), "logit").tolist()
    [[0.5, 0.5]]
    >>> probabilities(np.array([[0.5]]), "vote").tolist()
    [[0.25, 0.75]]
    """
    found = _unsmoothed(scores, link, calibration)
    if smoothing:
        found = (found + smoothing / found.shape[1]) / (1.0 + smoothing)
    return np.asarray(found)


def refuse_overflow(scores: Floats) -> Floats:
    """The scores, unless one of them is not finite: then the row is named."""
    sane = np.isfinite(scores).all(axis=1)
    if not sane.all():
        row = int(np.argmin(sane))
        raise ValueError(f"The values of row {row} are too large: its score is not finite.")
    return scores


def _unsmoothed(
    scores: Floats, link: Link, calibration: tuple[tuple[float, float], ...] | None
) -> Floats:
    if link == "logit":
        return np.stack([expit(-scores[:, 0]), expit(scores[:, 0])], axis=1)
    if link == "softmax":
        return np.asarray(softmax(scores, axis=1))
    if link == "ovr":
        return np.asarray(softmax(log_expit(scores), axis=1))
    if link == "vote":
        return _of_votes(scores, calibration)
    if link == "points":
        return _unsmoothed(log_odds_of_points(scores, calibration), "logit", None)
    raise ValueError("A score with link 'identity' has no probabilities.")


def log_odds_of_points(
    totals: Floats, calibration: tuple[tuple[float, float], ...] | None
) -> Floats:
    """The log-odds of each total; beyond the table, those of its ends.

    >>> log_odds_of_points(np.array([[0.0], [5.0]]), ((-1.0, -2.0), (0.0, 0.0), (1.0, 3.0))).ravel()
    array([0., 3.])
    """
    table = np.asarray(calibration, dtype=np.float64)
    place = np.rint(totals - table[0, 0]).astype(np.int64)
    return np.asarray(table[np.clip(place, 0, len(table) - 1), 1])


def rounded_votes(votes: Floats) -> Floats:
    """In [-1, 1], and rounded: a tie is a tie whatever the order in which weights were summed."""
    return np.asarray(np.clip(np.round(votes, 12), -1.0, 1.0) + 0.0)


def vote_log_odds(votes: Floats) -> Floats:
    """ln((1 + v) / (1 - v)), with votes kept off the ends."""
    return np.asarray(2.0 * np.arctanh(np.clip(votes, -MOST_VOTE, MOST_VOTE)))


def _of_votes(votes: Floats, calibration: tuple[tuple[float, float], ...] | None) -> Floats:
    votes = rounded_votes(votes)
    if calibration is None:
        share = (1.0 + votes) / 2.0
    else:
        slope, intercept = np.array(calibration).T
        share = expit(vote_log_odds(votes) * slope + intercept)
    if share.shape[1] == 1:
        return np.column_stack([1.0 - share[:, 0], share[:, 0]])
    total = share.sum(axis=1, keepdims=True)
    said = total > 1e-9  # every class voted down: nothing to tell them apart
    return np.where(said, share / np.where(said, total, 1.0), 1.0 / share.shape[1])
