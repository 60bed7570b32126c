r"""Proper losses that look at probabilities near the decision, between counting and log loss.

Counting the cost of decisions is the most direct judge and the noisiest: a row speaks only when its
probability crosses the threshold. Averaging the same cost over thresholds :math:`t` around the true
one, :math:`t \sim \mathrm{Beta}(ck, (1 - c)k)`, keeps the judge proper and lets every row near the
threshold speak (Buja, Stuetzle and Shen, 2005). With F the Beta cdf, a = ck and b = (1 - c)k:

.. math:: \ell(1, p) = [1 - F(p; a, b)] - c\,[1 - F(p; a + 1, b)], \qquad
          \ell(0, p) = c\,F(p; a + 1, b)

In general the costs of class k are multiplied by :math:`\omega_k / r_k`, with :math:`\omega` drawn
from a Dirichlet law of mean r and concentration k, and :math:`r_k` the dearest error of class k: a
mixture of proper losses is proper. For two classes this is the formula above.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betainc
from scipy.stats import beta

from laconic._typing import Floats, Ints
from laconic.choose.tuning import TILTS
from laconic.core.decisions import expected_costs


def tailored_losses(
    proba: Floats,
    y: Ints,
    costs: Floats,
    concentration: float,
    reject_cost: float | None = None,
) -> Floats:
    """Loss of each row, in the units of ``costs``; an infinite concentration is counting.

    Parameters
    ----------
    proba : ndarray of shape (n, K)
        Probabilities at the class mix of deployment.
    y : ndarray of int of shape (n,)
    costs : ndarray of shape (K, K) or (n, K, K)
        Rows are the true class, columns the decision; or such a matrix for each row. Of more than
        two classes with a matrix for each row, decisions are counted.
    concentration : float
        How close to the given costs those averaged over are.
    reject_cost : float, default=None
        Cost of abstaining, which does not vary.

    Examples
    --------
    >>> costs = np.array([[0.0, 1.0], [3.0, 0.0]])
    >>> proba = np.array([[0.9, 0.1], [0.7, 0.3]])
    >>> tailored_losses(proba, np.array([1, 1]), costs, np.inf).tolist()
    [3.0, 0.0]
    >>> tailored_losses(proba, np.array([1, 1]), costs, 8.0).round(2).tolist()
    [2.44, 0.77]
    """
    if costs.ndim == 3:
        return _by_row(proba, y, costs, concentration, reject_cost)
    least = costs.min(axis=1)
    scale = costs.max(axis=1) - least
    if np.isinf(concentration) or np.count_nonzero(scale) < 2:
        return decision_costs(proba, y, costs, reject_cost)
    if reject_cost is None and len(costs) == 2 and (np.diag(costs) == least).all():
        return np.asarray(_beta_losses(proba[:, 1], y, scale, concentration) + least[y])
    total = np.zeros(len(y))
    tilts = _tilts(scale / scale.sum(), concentration)
    for tilt in tilts:
        # what even the right decision costs is no error and does not vary
        tilted = least[:, None] + tilt[:, None] * (costs - least[:, None])
        total += decision_costs(proba, y, tilted, reject_cost)
    return total / len(tilts)


def _by_row(
    proba: Floats, y: Ints, costs: Floats, concentration: float, reject_cost: float | None
) -> Floats:
    """The loss of each row at its own costs; a row of which one error is free is counted."""
    found = decision_costs(proba, y, costs, reject_cost)
    if reject_cost is not None or proba.shape[1] != 2 or np.isinf(concentration):
        return found
    least = costs.min(axis=2)
    scale = costs.max(axis=2) - least
    usual = np.diagonal(costs, axis1=1, axis2=2) == least
    able = np.flatnonzero((scale > 0).all(axis=1) & usual.all(axis=1))
    own = _beta_losses(proba[able, 1], y[able], scale[able], concentration)
    found[able] = own + least[able, y[able]]
    return found


def _beta_losses(p: Floats, y: Ints, scale: Floats, k: float) -> Floats:
    """Two classes in closed form; ``scale`` is what an error costs on a row of each."""
    total = scale.sum(axis=-1)
    c = scale[..., 0] / total
    a, b = c * k, (1.0 - c) * k
    positive = (1.0 - betainc(a, b, p)) - c * (1.0 - betainc(a + 1.0, b, p))
    negative = c * betainc(a + 1.0, b, p)
    return np.asarray(total * np.where(y == 1, positive, negative))


def _tilts(mean: Floats, k: float) -> Floats:
    """Factors of the classes' costs: draws of the Dirichlet law over its mean, fixed once for all.

    Two classes take the quantiles of the Beta law: evenly spaced, so that few of them do.
    """
    if len(mean) == 2:
        even = (np.arange(TILTS) + 0.5) / TILTS
        first = beta.ppf(even, mean[0] * k, mean[1] * k)
        drawn = np.stack([first, 1.0 - first], axis=1)
    else:
        able = mean > 0
        drawn = np.zeros((TILTS, len(mean)))
        drawn[:, able] = np.random.default_rng(0).dirichlet(k * mean[able], size=TILTS)
    return np.asarray(np.divide(drawn, mean, out=np.ones_like(drawn), where=mean > 0))


def decision_costs(proba: Floats, y: Ints, costs: Floats, reject_cost: float | None) -> Floats:
    """Cost of the cheapest decision of each row, the truth being ``y``."""
    expected = expected_costs(proba, costs)
    decided = expected.argmin(axis=1)
    paid = costs[y, decided] if costs.ndim == 2 else costs[np.arange(len(y)), y, decided]
    if reject_cost is None:
        return np.asarray(paid)
    return np.where(expected.min(axis=1) > reject_cost, reject_cost, paid)
