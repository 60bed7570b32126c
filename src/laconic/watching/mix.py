r"""The class mix of unlabelled rows, from how their scores fall into cells.

Held-out rows of class k fell into cell c in the share :math:`f_{kc}`. When only the class mix
moves, new rows fall into it with probability :math:`\sum_k \pi_k f_{kc}`, so the shares
:math:`\pi` of largest likelihood

.. math:: \sum_c N_c \log \sum_k \pi_k f_{kc}

tell the mix, whether or not the model's probabilities are calibrated (they only name the cells).
The interval redraws both the counts of the new rows (a Bayesian bootstrap, Rubin 1981) and those of
the reference; whether a shift of the mix alone explains the new counts is judged against draws of
both, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import chi2

from laconic._typing import Floats
from laconic.watching.tuning import DRAWS

_STEPS = 400
_SMOOTH = 0.5


@dataclass(frozen=True)
class MixEstimate:
    """Class shares with an interval for each, and whether a moved mix explains the rows."""

    prior: Floats
    low: Floats
    high: Floats
    by_cells: Floats
    """The likeliest shares by the cells alone, around which the draws lie."""
    draws: Floats
    """(draws, classes): redrawn shares, for what follows from them."""
    redrawn: Floats
    """(draws, classes, cells): the redrawn reference behind them."""
    p_value: float
    """Of "only the mix moved": small when the scores of some class fall elsewhere now."""

    def told_by(self, prior: Floats) -> MixEstimate:
        """The same with another best guess, drawn into the intervals where it lies outside."""
        return replace(self, prior=np.clip(prior, self.low, self.high))


def cell_shares(counts: Floats) -> Floats:
    """Shares of the cells within each class, (.., classes, cells), never zero."""
    padded = counts + _SMOOTH
    return np.asarray(padded / padded.sum(axis=-1, keepdims=True))


def likeliest_mix(shares: Floats, seen: Floats) -> Floats:
    """Class shares of largest likelihood, (.., classes), for counts ``seen`` of (.., cells).

    >>> f = np.array([[0.8, 0.2], [0.3, 0.7]])
    >>> likeliest_mix(f, np.array([55.0, 45.0])).round(3).tolist()
    [0.5, 0.5]
    """
    n_classes = shares.shape[-2]
    if n_classes == 2:
        return _of_two(shares, seen)
    prior = np.full((*np.broadcast_shapes(shares.shape[:-2], seen.shape[:-1]), n_classes), 1.0)
    prior /= n_classes
    weight = seen / np.maximum(seen.sum(axis=-1, keepdims=True), 1.0)
    for _ in range(_STEPS):  # EM on a few dozen cells: a step costs next to nothing
        density = np.einsum("...k,...kc->...c", prior, shares)
        slope = np.einsum("...kc,...c->...k", shares, weight / density)
        prior = prior * slope
        prior /= prior.sum(axis=-1, keepdims=True)
    return prior


def _of_two(shares: Floats, seen: Floats) -> Floats:
    """Where the slope of the concave likelihood changes sign, by halving."""
    first, step = shares[..., 0, :], shares[..., 1, :] - shares[..., 0, :]
    shape = np.broadcast_shapes(first.shape[:-1], seen.shape[:-1])
    low, high = np.zeros(shape), np.ones(shape)
    for _ in range(40):
        middle = 0.5 * (low + high)
        rises = (seen * step / (first + middle[..., None] * step)).sum(axis=-1) > 0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    share = 0.5 * (low + high)
    return np.stack([1.0 - share, share], axis=-1)


def estimate_mix(
    reference: Floats,
    seen: Floats,
    *,
    by_bin: Callable[[Floats], Floats] = lambda counts: counts,
    confidence: float = 0.95,
    seed: int = 0,
) -> MixEstimate:
    """Class mix of new rows.

    Parameters
    ----------
    reference : array of shape (classes, cells)
        Counts of labelled rows that the fit has not seen.
    seen : array of shape (bins,)
        Counts of the new rows.
    by_bin : callable, default: cells are bins
        Adds counts of cells, (.., cells), up to bins.
    confidence : float, default=0.95
    seed : int, default=0

    Returns
    -------
    MixEstimate

    Examples
    --------
    >>> reference = np.array([[700.0, 200.0, 100.0], [20.0, 40.0, 140.0]])
    >>> found = estimate_mix(reference, np.array([500.0, 200.0, 300.0]))
    >>> bool(found.low[1] < found.prior[1] < found.high[1]), bool(found.p_value > 0.05)
    (True, True)
    """
    if not seen.sum() > 0:
        raise ValueError("There are no rows to watch.")
    draw = np.random.default_rng(seed)
    known = by_bin(reference)
    prior = likeliest_mix(cell_shares(known), seen)
    redrawn = _redrawn(draw, reference)
    # one row more, of any class: what few rows do not show may come all the same
    likely = draw.dirichlet(seen + cell_shares(known).mean(axis=0), DRAWS)
    counts = seen.sum() * likely
    draws = likeliest_mix(cell_shares(by_bin(redrawn)), counts)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(draws, [tail, 1.0 - tail], axis=0)
    p_value = _fit_p_value(draw, known, seen, prior)
    low, high = np.minimum(low, prior), np.maximum(high, prior)
    return MixEstimate(prior, low, high, prior, draws, redrawn, p_value)


def _redrawn(draw: np.random.Generator, reference: Floats) -> Floats:
    """Reference counts as they might have come, (draws, classes, cells)."""
    shares = cell_shares(reference)
    rows = reference.sum(axis=1).astype(int)
    classes = range(len(reference))
    drawn = [draw.multinomial(max(rows[k], 1), shares[k], DRAWS) for k in classes]
    return np.stack(drawn, axis=1).astype(np.float64)


def _misfit(shares: Floats, seen: Floats, rows: Floats, prior: Floats) -> Floats:
    """Squared distance between new shares and the best mixture, by its variance from both sides."""
    total = seen.sum(axis=-1, keepdims=True)
    density = np.einsum("...k,...kc->...c", prior, shares)
    of_reference = np.einsum("...k,...kc->...c", prior**2 / rows, shares * (1.0 - shares))
    variance = density * (1.0 - density) / total + of_reference
    return np.asarray(((seen / total - density) ** 2 / variance).sum(axis=-1))


def _fit_p_value(
    draw: np.random.Generator, reference: Floats, seen: Floats, prior: Floats
) -> float:
    shares = cell_shares(reference)
    rows = np.maximum(reference.sum(axis=1), 1.0)
    found = float(_misfit(shares, seen, rows, prior))
    # what the misfit is when the mix alone moved: both sides drawn anew, the mix found anew
    redrawn = cell_shares(_redrawn(draw, reference))
    counts = draw.multinomial(int(seen.sum()), _sums_to_one(prior @ shares), DRAWS)
    drawn = counts.astype(np.float64)
    usual = _misfit(redrawn, drawn, rows, likeliest_mix(redrawn, drawn))
    if found > usual.max():
        # beyond all draws: the tail of a chi square of the same mean
        mean = float(usual.mean())
        return float(min(chi2.sf(found * len(seen) / mean, len(seen)), 1.0 / (DRAWS + 1)))
    return float((1 + np.count_nonzero(usual >= found)) / (DRAWS + 1))


def _sums_to_one(shares: Floats) -> Floats:
    return np.asarray(shares / shares.sum())
