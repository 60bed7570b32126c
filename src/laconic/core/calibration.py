"""From an excess of a convex risk to an excess of the error rate.

For a margin loss phi, with eta the probability of the class +1,

    H(eta) = inf_f  eta phi(f) + (1 - eta) phi(-f)
    psi(theta) = phi(0) - H((1 + theta) / 2)

and psi(R(f) - R*) <= R_phi(f) - R_phi* (Bartlett, Jordan and McAuliffe, 2006, theorem 1). Both R*
and R_phi* are infima over *all* functions of the row. The optimum of a penalised or linear family
is larger than R_phi*, so a duality gap is no excess in this sense and bounds no error rate. For a
convex phi this holds with psi(theta) > 0 for theta > 0 exactly when phi is differentiable at 0 with
phi'(0) < 0 (their theorem 2); then the infimum over scores of the wrong sign is phi(0).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import rel_entr

from laconic._typing import Floats
from laconic.core.losses import TruncatedLogistic, invert_psi

Loss = Callable[[Any], Any]

_FAR = 700.0
"""Scores searched by the numerical infimum: exp stays finite."""


def calibration_function(phi: Loss, theta: ArrayLike) -> Floats:
    """psi(theta) of a convex loss of the margin, by numerical minimisation.

    >>> hinge = lambda m: np.maximum(0.0, 1.0 - m)
    >>> calibration_function(hinge, [0.0, 0.25, 1.0]).round(6)
    array([0.  , 0.25, 1.  ])
    """
    theta = np.atleast_1d(np.asarray(theta, dtype=np.float64))
    if np.any(np.abs(theta) > 1):
        raise ValueError("theta is a difference of error rates and must lie in [-1, 1].")
    eta = (1.0 + np.abs(theta)) / 2.0
    at_zero = np.asarray(phi(np.zeros_like(eta)), dtype=np.float64)
    return np.maximum(at_zero - _smallest_risk(phi, eta), 0.0)


def _smallest_risk(phi: Loss, eta: Floats) -> Floats:
    """inf over scores of the convex function eta phi(f) + (1 - eta) phi(-f), for each eta."""
    golden = (np.sqrt(5.0) - 1.0) / 2.0

    def risk(score: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            right = np.where(eta > 0, eta * phi(score), 0.0)
            wrong = np.where(eta < 1, (1.0 - eta) * phi(-score), 0.0)
        return np.asarray(right + wrong, dtype=np.float64)

    # for eta >= 1/2 a score below zero is never better
    low, high = np.zeros_like(eta), np.full_like(eta, _FAR)
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = risk(left), risk(right)
    best = np.minimum(risk(low), risk(high))
    for _ in range(90):
        shrink_right = at_left <= at_right
        high, low = np.where(shrink_right, right, high), np.where(shrink_right, low, left)
        left, right = high - golden * (high - low), low + golden * (high - low)
        at_left, at_right = risk(left), risk(right)
        best = np.minimum(best, np.minimum(at_left, at_right))
    return best


def zone_psi(loss: TruncatedLogistic, theta: ArrayLike) -> Floats:
    """Calibration function of the gray-zone loss for the cut at the zone's centre c.

    The risk is the error rate with weight 2 (1 - c) on missed positives and 2 c on false alarms
    (the plain error rate when c = 1/2). A row whose probability eta is theta / 2 away from c then
    costs theta when it is decided wrongly, and the loss exceeds its infimum by at least
    KL(eta || c) - KL(eta || eta clipped to the zone); the smaller of both sides counts.
    """
    theta = np.asarray(theta, dtype=np.float64)
    return np.minimum(_zone_side(loss, theta, 1.0), _zone_side(loss, theta, -1.0))


def _zone_side(loss: TruncatedLogistic, theta: Floats, side: float) -> Floats:
    c = loss.centre
    eta = c + side * theta / 2.0
    inside = np.clip(eta, 0.0, 1.0)
    best = np.clip(inside, loss.p_min, loss.p_max)
    to_centre = rel_entr(inside, c) + rel_entr(1.0 - inside, 1.0 - c)
    to_best = rel_entr(inside, best) + rel_entr(1.0 - inside, 1.0 - best)
    return np.where(inside == eta, np.maximum(to_centre - to_best, 0.0), np.inf)


def excess_error_bound(loss: Any, excess: ArrayLike) -> Floats:
    """psi^{-1}(excess): what an excess of the convex risk may cost in error rate, at most.

    ``excess`` is over the least convex risk of all functions, which needs the class probabilities
    of every row; a duality gap is not such an excess.

    >>> from laconic.core.losses import HingeLoss
    >>> float(excess_error_bound(HingeLoss(), 0.1))
    0.1

    Uses the loss's own ``psi_inverse``; for a gray zone that is not symmetric the sum of both
    sides' inverses, because their maximum is not concave and the theorem averages over rows; for
    any other loss psi by numerical minimisation.
    """
    excess = np.asarray(excess, dtype=np.float64)
    if hasattr(loss, "psi_inverse"):
        return np.asarray(loss.psi_inverse(excess))
    if isinstance(loss, TruncatedLogistic):
        # a row costs at most 2 (1 - c) when it is missed and 2 c when it is a false alarm
        missed, alarm = 2.0 * (1.0 - loss.centre), 2.0 * loss.centre
        above = invert_psi(lambda theta: _zone_side(loss, theta, 1.0), excess, missed)
        if loss.p_min + loss.p_max == 1.0:
            return above
        below = invert_psi(lambda theta: _zone_side(loss, theta, -1.0), excess, alarm)
        return np.minimum(above + below, max(missed, alarm))
    return invert_psi(
        lambda t: calibration_function(lambda m: loss.value(m, np.ones_like(m)), t), excess
    )


def check_calibrated(phi: Any, *, reach: float = 30.0) -> float:
    """Refuse a loss of the margin that is not classification-calibrated.

    Checks on a grid that ``phi`` is finite and convex on [-reach, reach], differentiable at zero,
    and that its slope there is negative. These three numerical checks can miss a fault between the
    grid points.

    Parameters
    ----------
    phi : callable or object with a method ``value``
        The loss of an array of margins.
    reach : float, default=30
        Half-width of the grid.

    Returns
    -------
    float
        The slope of ``phi`` at zero.

    >>> round(check_calibrated(lambda m: np.log1p(np.exp(-m))), 6)
    -0.5
    >>> check_calibrated(lambda m: np.maximum(0.0, -m))
    Traceback (most recent call last):
    ...
    ValueError: phi is not differentiable at 0 (slope -1 on the left, 0 on the right): ...
    """
    value: Loss = getattr(phi, "value", phi)
    if not callable(value):
        raise TypeError("phi must be a function of an array of margins, or have a method value.")
    _check_convex(value, reach)
    left, right = _one_sided_slopes(value)
    scale = max(abs(left), abs(right), 1e-300)
    if abs(right - left) > 1e-4 * scale:
        raise ValueError(
            f"phi is not differentiable at 0 (slope {left:.4g} on the left, {right:.4g} on the "
            "right): a small excess of its risk then says nothing about errors; move the kink."
        )
    slope = (left + right) / 2.0
    if not slope < -1e-10:
        raise ValueError(
            f"phi has slope {slope:.4g} at 0, which must be negative: the loss must reward a "
            "positive margin; check the sign convention phi(y f)."
        )
    return slope


def _check_convex(value: Loss, reach: float) -> None:
    grid = np.concatenate([np.linspace(-reach, reach, 1201), np.linspace(-3.0, 3.0, 1201)])
    grid = np.unique(grid)
    at = np.asarray(value(grid), dtype=np.float64)
    if at.shape != grid.shape:
        raise ValueError(f"phi must give one loss per margin, got shape {at.shape}.")
    if not np.all(np.isfinite(at)):
        where = grid[~np.isfinite(at)][0]
        raise ValueError(f"phi is not finite at margin {where:.4g}; the loss must be finite.")
    slopes = np.diff(at) / np.diff(grid)
    rounding = 8 * np.finfo(float).eps * np.maximum(np.abs(at[1:]), np.abs(at[:-1]))
    noise = rounding / np.diff(grid)
    drop = np.diff(slopes) + noise[1:] + noise[:-1]
    if np.any(drop < 0):
        where = grid[1:-1][np.argmin(drop)]
        raise ValueError(f"phi is not convex near margin {where:.4g}; use a convex loss.")


def _one_sided_slopes(value: Loss) -> tuple[float, float]:
    """Slopes at zero from both sides, by one step of Richardson's extrapolation."""
    step = 1e-5
    at = np.asarray(value(np.array([-2.0, -1.0, 0.0, 1.0, 2.0]) * step), dtype=np.float64)
    left = (3.0 * at[2] - 4.0 * at[1] + at[0]) / (2.0 * step)
    right = (-3.0 * at[2] + 4.0 * at[3] - at[4]) / (2.0 * step)
    return float(left), float(right)
