r"""Confidence intervals of error rates and of mean costs, valid for zero errors and few positives.

A mean cost is :math:`\sum_c w_c p_c`, with the rate :math:`p_c` of each kind of error and what it
costs, :math:`w_c \ge 0`. The usual "plus or minus 1.96 standard errors" is 0 wide when no error was
seen, and far too narrow when few were. Here each rate has Wilson's score interval with continuity
correction, :math:`[l_c, u_c]`, and they are combined by the squares of their reaches (Zou and
Donner 2008),

.. math:: U = \hat m + \sqrt{\textstyle\sum_c w_c^2 (u_c - \hat p_c)^2}, \qquad
          L = \hat m - \sqrt{\textstyle\sum_c w_c^2 (\hat p_c - l_c)^2}.

Errors of one price on the same rows are one kind: their number is binomial too, and thirty classes
do not widen the interval. Squares suppose symmetric errors, and one event of two kinds each is
not: L is also kept below the lower quantile of a gamma law with the mean and the variance observed
(Fay and Feuer 1997, by the formula of Wilson and Hilferty), which is exact for few events of equal
price. All is in closed form, so the page computes the same in JavaScript.
``tests/decide/test_intervals.py`` enumerates samples: the coverage of the 95 % interval was at
least 95 % in thousands of settings, from 2 rows of a class on and from rates of 0 on.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import gamma, norm

from laconic._typing import Floats

CONFIDENCE = 0.95


def rate_interval(
    rate: ArrayLike, rows: ArrayLike, confidence: float = CONFIDENCE
) -> tuple[Floats, Floats]:
    """Wilson's interval with continuity correction for binomial rates; (0, 1) without rows.

    ``rows`` may be an effective number of weighted rows.

    >>> low, high = rate_interval([0.0, 0.5], [10, 10])
    >>> low.round(3), high.round(3)
    (array([0.   , 0.201]), array([0.345, 0.799]))
    """
    p, n = np.broadcast_arrays(np.asarray(rate, np.float64), np.asarray(rows, np.float64))
    z = float(norm.ppf(0.5 + confidence / 2))
    some = np.where(n > 0, n, 1.0)
    low_root = np.maximum(z * z - 2.0 - 1.0 / some + 4.0 * p * (some * (1.0 - p) + 1.0), 0.0)
    high_root = np.maximum(z * z + 2.0 - 1.0 / some + 4.0 * p * (some * (1.0 - p) - 1.0), 0.0)
    scale = 2.0 * (some + z * z)
    low = (2.0 * some * p + z * z - 1.0 - z * np.sqrt(low_root)) / scale
    high = (2.0 * some * p + z * z + 1.0 + z * np.sqrt(high_root)) / scale
    low = np.where((n > 0) & (p > 0), np.clip(low, 0.0, p), 0.0)
    high = np.where((n > 0) & (p < 1), np.clip(high, p, 1.0), 1.0)
    return low, high


def sum_interval(
    weights: ArrayLike,
    rates: ArrayLike,
    rows: ArrayLike,
    confidence: float = CONFIDENCE,
) -> tuple[float, float]:
    """Interval of the sum of ``weights`` times rates, each rate seen on its number of rows."""
    w, p, n = (np.asarray(values, np.float64) for values in (weights, rates, rows))
    low, high = rate_interval(p, n, confidence)
    mean = float(w @ p)
    below = mean - math.sqrt(float(np.sum((w * (p - low)) ** 2)))
    above = mean + math.sqrt(float(np.sum((w * (high - p)) ** 2)))
    if mean <= 0:
        return 0.0, above
    variance = float(np.sum(w**2 * p * (1.0 - p) / np.maximum(n, 1.0)))
    return min(below, _gamma_quantile(mean, variance, confidence)), above


def _by_price(
    weights: Floats, rates: Floats, rows: Floats, used: NDArray[np.bool_], together: bool
) -> tuple[Floats, Floats, Floats]:
    """Weights, rates and rows, errors of one price on the same rows taken as one kind.

    All are of shape (classes, kinds); classes are seen on rows of their own unless ``together``.

    >>> w, p, n = np.array([[1.0, 2.0], [1.0, 1.0]]), np.full((2, 2), 0.1), np.full((2, 2), 50.0)
    >>> _by_price(w, p, n, w > 0, together=True)
    (array([1., 2.]), array([0.3, 0.1]), array([50., 50.]))
    """
    place = np.zeros(used.shape) if together else np.indices(used.shape)[0]
    keys = np.stack([place[used], weights[used]])
    kinds, first, of = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    pooled = np.bincount(of.ravel(), rates[used], minlength=kinds.shape[1])
    return kinds[1], np.minimum(pooled, 1.0), rows[used][first]


def _gamma_quantile(mean: float, variance: float, confidence: float) -> float:
    """Lower quantile of a gamma law, by the cube-root formula; a little low for few events."""
    z = float(norm.ppf(0.5 + confidence / 2))
    spread = variance / mean**2
    return mean * max(1.0 - spread / 9.0 - z * math.sqrt(spread) / 3.0, 0.0) ** 3


def mean_cost_interval(
    counts: ArrayLike,
    costs: ArrayLike,
    shares: ArrayLike | None = None,
    confidence: float = CONFIDENCE,
) -> tuple[float, float]:
    """Interval of the mean cost of decisions in the long run.

    Parameters
    ----------
    counts : array-like of shape (K, D)
        Rows by true class and decision.
    costs : array-like of shape (K, D)
    shares : array-like of shape (K,), optional
        The class mix where the cost is asked for. None: that of the rows, which was drawn with
        them; the interval is then wider, since the mix in the long run is not known either.
    confidence : float, default=0.95

    Returns
    -------
    (float, float)

    Examples
    --------
    No error on 200 rows, 5 of them positive; a miss costs 10:

    >>> low, high = mean_cost_interval([[195, 0], [0, 5]], [[0, 1], [10, 0]])
    >>> round(low, 3), round(high, 3)
    (0.0, 0.236)
    """
    seen = np.asarray(counts, dtype=np.float64)
    paid = np.asarray(costs, dtype=np.float64)
    by_class = np.repeat(seen.sum(axis=1, keepdims=True), seen.shape[1], axis=1)
    if shares is None:
        floor = float(paid.min())
        weights, rows = paid - floor, np.full_like(seen, seen.sum())
    else:
        mix = np.asarray(shares, dtype=np.float64)[:, None]
        least = paid.min(axis=1, keepdims=True)
        floor = float(np.sum(mix * least))
        weights, rows = mix * (paid - least), by_class
    used = weights > 0  # the cheapest decision of a class adds nothing to the floor
    rates = seen / np.maximum(rows, 1.0)
    low, high = sum_interval(*_by_price(weights, rates, rows, used, shares is None), confidence)
    most = float(paid.max() if shares is None else np.sum(mix[:, 0] * paid.max(axis=1)))
    return floor + low, min(floor + high, most)


def difference_interval(
    counts: ArrayLike,
    differences: ArrayLike,
    shares: ArrayLike | None = None,
    confidence: float = CONFIDENCE,
) -> tuple[float, float]:
    """Interval of the mean difference in cost of two ways to decide the same rows.

    Parameters
    ----------
    counts : array-like of shape (K, P)
        Rows by true class and pair of decisions.
    differences : array-like of shape (K, P)
        What the first decision of a pair costs more than the second.
    shares : array-like of shape (K,), optional
        As in :func:`mean_cost_interval`.
    confidence : float, default=0.95

    Returns
    -------
    (float, float)
        What is dearer and what is cheaper have intervals of their own, combined by the squares of
        their reaches and by their correlation (Zou and Donner 2008).

    Examples
    --------
    Of 100 rows, 6 are decided right by the first alone and 2 by the second alone:

    >>> low, high = difference_interval([[92.0, 6.0, 2.0]], [[0.0, -1.0, 1.0]])
    >>> round(low, 3), round(high, 3)
    (-0.114, 0.03)
    """
    seen, each = np.asarray(counts, np.float64), np.asarray(differences, np.float64)
    by_class = np.repeat(seen.sum(axis=1, keepdims=True), seen.shape[1], axis=1)
    rows = np.full_like(seen, seen.sum()) if shares is None else by_class
    mix = 1.0 if shares is None else np.asarray(shares, np.float64)[:, None]
    rates = seen / np.maximum(rows, 1.0)
    parts = []
    for sign in (1.0, -1.0):
        used = sign * each > 0
        weights = np.broadcast_to(mix * sign * each, each.shape)
        mean = float(weights[used] @ rates[used])
        kinds = _by_price(weights, rates, rows, used, shares is None)
        parts.append((mean, *sum_interval(*kinds, confidence)))
    group = [slice(None)] if shares is None else [slice(k, k + 1) for k in range(len(seen))]
    moments = np.zeros(3)
    weighted = mix * each * np.ones_like(seen)
    for own in group:  # a row that is dearer is not cheaper: the two rates go against each other
        n = max(float(seen[own].sum()), 1.0)
        up, down = np.maximum(weighted[own], 0.0), np.maximum(-weighted[own], 0.0)
        p = seen[own] / n
        a, b = float((up * p).sum()), float((down * p).sum())
        squares = float((up**2 * p).sum()) - a * a, float((down**2 * p).sum()) - b * b
        moments += np.array([*squares, -a * b]) / n
    return _apart(parts[0], parts[1], moments)


def _apart(
    dearer: tuple[float, float, float], cheaper: tuple[float, float, float], moments: ArrayLike
) -> tuple[float, float]:
    """Interval of a difference of two means with intervals of their own (Zou and Donner 2008).

    Each is (mean, low, high); ``moments`` are their variances and their covariance.
    """
    (a, a_low, a_high), (b, b_low, b_high) = dearer, cheaper
    one, other, both = np.asarray(moments, dtype=np.float64)
    spread = math.sqrt(max(one, 0.0) * max(other, 0.0))
    turn = 2.0 * max(both / spread, -1.0) if spread > 0 else 0.0

    def reach(x: float, y: float) -> float:
        return math.sqrt(max(x * x + y * y - turn * x * y, 0.0))

    return a - b - reach(a - a_low, b_high - b), a - b + reach(a_high - a, b - b_low)


def paid_interval(
    paid: ArrayLike, most: float, repeats: float = 1.0, confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """Interval of a mean of amounts >= 0, most of them 0, none above ``most``.

    ``repeats`` is the design effect: so many rows are worth one.

    A sum of payments is a weighted sum of rare events: its limits are gamma quantiles with the mean
    and the variance observed, the upper one as if one more event of price ``most`` had been seen
    (Fay and Feuer 1997), so that it is not 0 where nothing was paid.

    >>> low, high = paid_interval(np.zeros(100), 50.0)
    >>> low, round(high, 3)
    (0.0, 1.844)
    """
    each = np.asarray(paid, dtype=np.float64)
    n_rows, tail = len(each) / repeats, (1.0 - confidence) / 2.0
    total, square = float(each.sum()) / repeats, float(each @ each) / repeats
    low = 0.0
    if total > 0:
        low = float(gamma.ppf(tail, total**2 / square, scale=square / total))
    total, square = total + most, square + most**2
    high = 0.0
    if most > 0:
        high = float(gamma.ppf(1.0 - tail, total**2 / square, scale=square / total))
    return low / n_rows, high / n_rows


def paid_difference_interval(
    differences: ArrayLike, most: float, repeats: float = 1.0, confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """Interval of a mean of differences of amounts, what is dearer and what is cheaper apart, as in
    :func:`difference_interval`.

    >>> low, high = paid_difference_interval([0.0] * 90 + [-5.0] * 9 + [4.0], 20.0)
    >>> bool(low < -0.41 < high)
    True
    """
    each = np.asarray(differences, dtype=np.float64)
    up, down = np.maximum(each, 0.0), np.maximum(-each, 0.0)
    ends = [
        (float(part.mean()), *paid_interval(part, most, repeats, confidence)) for part in (up, down)
    ]
    n_rows = len(each) / repeats
    moments = np.array([up.var(), down.var(), -up.mean() * down.mean()]) / n_rows
    return _apart(ends[0], ends[1], moments)


def design_effect(values: ArrayLike, clusters: ArrayLike | None) -> float:
    r"""By what the variance of a mean grows because rows of one cluster go together.

    .. math:: \frac{\sum_g \big(\sum_{i \in g} (v_i - \bar v)\big)^2}{\sum_i (v_i - \bar v)^2},

    at least 1; where all values are equal, its largest possible value. So many times fewer rows
    are worth as much.

    >>> design_effect([1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]), design_effect([1.0, 0.0], None)
    (3.0, 1.0)
    """
    if clusters is None:
        return 1.0
    each = np.asarray(values, dtype=np.float64)
    place = np.unique(np.asarray(clusters), return_inverse=True)[1]
    size = np.bincount(place)
    away = each - each.mean()
    square = float(away @ away)
    if square <= 1e-12 * float(each @ each) or square == 0.0:
        return float(size @ size) / len(each)
    together = np.bincount(place, away)
    return max(1.0, float(together @ together) / square)
