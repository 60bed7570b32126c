"""When the class mix moves: risk as a function of the prior, and the prior of unlabelled rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d

from laconic._typing import Floats
from laconic.core.decisions import class_codes, class_prior, correct_prior
from laconic.core.losses import Solution
from laconic.decide.costs import cost_of_rows, labels_of, row_weights

__all__ = ["class_risks", "correct_prior", "estimate_prior", "risk_by_prior", "worst_prior"]


def class_risks(
    y: ArrayLike,
    decisions: ArrayLike,
    costs: Any = None,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    **options: Any,
) -> Floats:
    """Mean cost within each class, in the order of the classes; NaN for a class without rows.

    The parameters are those of :func:`~laconic.decide.costs.expected_cost`, ``positive``,
    ``reject_label`` and ``reject_cost`` too.

    Examples
    --------
    >>> class_risks([0, 0, 0, 1], [0, 0, 1, 0], {"fp": 3, "fn": 10})
    array([ 1., 10.])
    """
    truth = column_or_1d(y)
    taken = _only_classes(decisions, options.get("reject_label"))
    classes = labels_of(truth, costs, labels, also=taken)
    cost = cost_of_rows(truth, decisions, costs, labels=classes, **options)
    weight = row_weights(sample_weight, cost)
    codes = class_codes(truth, classes, "y")
    spent = np.bincount(codes, weights=cost * weight, minlength=len(classes))
    rows = np.bincount(codes, weights=weight, minlength=len(classes))
    risks = np.full(len(classes), np.nan)
    return np.asarray(np.divide(spent, rows, out=risks, where=rows > 0))


def risk_by_prior(
    y: ArrayLike,
    decisions: ArrayLike,
    costs: Any = None,
    priors: ArrayLike | None = None,
    **options: Any,
) -> Floats:
    r"""Risk of fixed decisions as a function of the class mix, :math:`\sum_k \pi_k R_k`.

    The class risks :math:`R_k` do not move when only the class shares do, so the risk is linear
    in the prior: for two classes, a straight line between the two class risks.

    Parameters
    ----------
    y, decisions, costs : as in :func:`~laconic.decide.costs.expected_cost`
    priors : array-like of shape (m,) or (m, K), optional
        Class mixes. One number per mix is the share of the second of two classes. By default 101
        shares from 0 to 1, for two classes.
    **options : positive, labels, sample_weight, reject_label, reject_cost

    Returns
    -------
    ndarray of shape (m,)

    Examples
    --------
    >>> risk_by_prior([0, 0, 0, 1], [0, 0, 1, 0], {"fp": 3, "fn": 10}, [0.0, 0.5, 1.0])
    array([ 1. ,  5.5, 10. ])
    """
    risks = class_risks(y, decisions, costs, **options)
    mixes = prior_grid(priors, len(risks))
    unknown = np.isnan(risks) & (mixes > 0).any(axis=0)
    if unknown.any():
        raise ValueError(
            f"priors give a share to the class at position {int(np.argmax(unknown))}, of which y "
            "has no row: its risk is unknown."
        )
    return np.asarray(mixes @ np.nan_to_num(risks))


def prior_grid(priors: ArrayLike | None, n_classes: int) -> Floats:
    """Class mixes, one per row; see ``priors`` in :func:`risk_by_prior`."""
    if priors is None:
        if n_classes != 2:
            raise ValueError(f"Give priors: there is no default grid for {n_classes} classes.")
        priors = np.linspace(0.0, 1.0, 101)
    mixes = np.asarray(priors, dtype=np.float64)
    if mixes.ndim == 1 and n_classes == 2:
        mixes = np.column_stack([1.0 - mixes, mixes])
    if mixes.ndim != 2 or mixes.shape[1] != n_classes:
        raise ValueError(
            f"priors must have one row per mix and {n_classes} shares, got shape {mixes.shape}."
        )
    if not (mixes >= 0).all() or np.abs(mixes.sum(axis=1) - 1.0).max(initial=0.0) > 1e-6:
        raise ValueError("Each row of priors must hold shares >= 0 that sum to 1.")
    return mixes


def worst_prior(risks: ArrayLike) -> tuple[int, float]:
    """Position and risk of the class whose mix is the worst: a linear risk peaks at a corner.

    >>> worst_prior([0.1, 0.4, 0.2])
    (1, 0.4)
    """
    each = np.asarray(risks, dtype=np.float64)
    position = int(np.nanargmax(each))
    return position, float(each[position])


def estimate_prior(
    proba: ArrayLike,
    train_prior: Any,
    *,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
) -> Solution:
    r"""Class shares of unlabelled rows, by maximum likelihood (EM of Saerens et al., 2002).

    Under label shift the rows have likelihood :math:`\prod_i \sum_k \pi_k\, p_{ik}/\pi^{train}_k`,
    which is concave in :math:`\log`, and one EM step is
    :math:`\pi_k \leftarrow \pi_k g_k` with :math:`g_k` the k-th slope of the mean log-likelihood.
    As :math:`\sum_k \pi_k g_k = 1`, no prior can be more than :math:`\max_k g_k - 1` better: this
    is the certified gap, which the EM of the paper does not report. Two EM steps are
    extrapolated (SQUAREM) when that raises the likelihood, since plain EM crawls when classes
    overlap.

    Parameters
    ----------
    proba : array-like of shape (n, K)
        Probabilities of a model, right under ``train_prior``.
    train_prior : float, array-like of shape (K,) or mapping
    sample_weight : array-like of shape (n,), optional
    tol : float, default=1e-8
        Gap at which to stop, in mean log-likelihood.
    max_iter : int, default=1000
        Largest number of EM steps; a ``ConvergenceWarning`` says when it was short.

    Returns
    -------
    Solution
        ``point`` is the prior, ``value`` minus the mean log-likelihood ratio to ``train_prior``,
        ``gap`` bounds its distance from the best.

    References
    ----------
    Saerens, Latinne, Decaestecker. Adjusting the outputs of a classifier to new a priori
    probabilities: a simple procedure. Neural Computation 14(1), 2002.

    Examples
    --------
    >>> proba = [[0.9, 0.1]] * 3 + [[0.1, 0.9]]
    >>> found = estimate_prior(proba, train_prior=0.5)
    >>> found.point.round(4), found.converged
    (array([0.8125, 0.1875]), True)
    """
    probabilities = np.asarray(proba, dtype=np.float64)
    if probabilities.ndim != 2 or not len(probabilities):
        raise ValueError(f"proba must be n x K with n > 0, got shape {probabilities.shape}.")
    if not np.isfinite(probabilities).all() or (probabilities < 0).any():
        raise ValueError("proba must hold finite numbers >= 0.")
    if not probabilities.any(axis=1).all():
        raise ValueError("proba: each row must give some class a positive probability.")
    start = class_prior(train_prior, np.arange(probabilities.shape[1]), "train_prior")
    if (start == 0).any():
        raise ValueError("train_prior must give every class a positive share.")
    weight = row_weights(sample_weight, probabilities)
    mixture = _Mixture(probabilities / start, weight / weight.sum())
    return mixture.maximise(start, tol, max_iter).warn_if_short("estimate_prior")


class _Mixture:
    """Mean log-likelihood of class shares, given the likelihood ratios of the rows."""

    def __init__(self, ratios: Floats, weight: Floats) -> None:
        self.ratios = ratios
        self.weight = weight

    def value_and_slope(self, prior: Floats) -> tuple[float, Floats]:
        density = self.ratios @ prior
        with np.errstate(divide="ignore"):
            value = float(self.weight @ np.log(density))
        share = np.divide(self.weight, density, out=np.zeros_like(density), where=density > 0)
        return value, share @ self.ratios

    def maximise(self, start: Floats, tol: float, max_iter: int) -> Solution:
        prior = start
        value, slope = self.value_and_slope(prior)
        n_iter = 0
        while slope.max() - 1.0 > tol and n_iter < max_iter:
            once = _normalised(prior * slope)
            _, slope_once = self.value_and_slope(once)
            twice = _normalised(once * slope_once)
            prior, value, slope = self._best_of(_extrapolated(prior, once, twice), twice)
            n_iter += 2
        gap = max(float(slope.max()) - 1.0, 0.0)
        return Solution(prior, -value, gap, n_iter, "gap" if gap <= tol else "max_iter")

    def _best_of(self, bold: Floats, safe: Floats) -> tuple[Floats, float, Floats]:
        value, slope = self.value_and_slope(safe)
        bold_value, bold_slope = self.value_and_slope(bold)
        if bold_value > value:
            return bold, bold_value, bold_slope
        return safe, value, slope


def _extrapolated(prior: Floats, once: Floats, twice: Floats) -> Floats:
    step, bend = once - prior, (twice - once) - (once - prior)
    curvature = np.linalg.norm(bend)
    if curvature == 0:
        return twice
    length = max(float(np.linalg.norm(step) / curvature), 1.0)
    bold = prior + 2 * length * step + length**2 * bend
    # a share of exactly zero could never grow again
    return _normalised(np.maximum(bold, 1e-3 * twice))


def _normalised(shares: Floats) -> Floats:
    return np.asarray(shares / shares.sum())


def _only_classes(decisions: ArrayLike, reject_label: Any) -> NDArray[Any]:
    taken: NDArray[Any] = column_or_1d(decisions)
    if reject_label is None:
        return taken
    kept = np.array([value != reject_label for value in taken.tolist()], dtype=bool)
    return np.asarray(taken[kept])
