r"""Probabilities that labelled rows correct only where they must.

:math:`q_k \propto p_k^a e^{b_k}`. Of (a, b) = (1, 0), a alone, and both, the likeliest on labelled
rows is taken, each further parameter at a price: probabilities that rest on many rows of a fit
should not be replaced by what a few hundred others say, unless these clearly object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from laconic._typing import Floats, Ints
from laconic.decide.tuning import PRICE_OF_RECALIBRATION

_LEAST = 1e-12


@dataclass(frozen=True)
class Recalibration:
    """Power and biases of the probabilities, and the class mix that they are then right for.

    >>> draw = np.random.default_rng(0)
    >>> p = draw.random(4000)
    >>> y = (draw.random(4000) < p).astype(int)
    >>> Recalibration.of(np.column_stack([1 - p, p]), y).power
    1.0
    >>> sure = p**3 / (p**3 + (1 - p) ** 3)
    >>> bool(abs(Recalibration.of(np.column_stack([1 - sure, sure]), y).power - 1 / 3) < 0.05)
    True
    """

    power: float
    bias: Floats
    prior: Floats | None
    """None: the class mix of the fit, since nothing was changed."""

    @classmethod
    def of(cls, proba: Floats, codes: Ints) -> Recalibration:
        n_classes = proba.shape[1]
        logs = np.log(np.maximum(proba, _LEAST))
        truth = np.eye(n_classes)[codes]

        def loss(theta: Floats) -> tuple[float, Floats]:
            score = theta[0] * logs + _biases(theta, n_classes)
            log_q = score - logsumexp(score, axis=1, keepdims=True)
            wrong = np.exp(log_q) - truth
            slope = np.array([(wrong * logs).sum(), *wrong[:, 1:].sum(axis=0)])
            return float(-(truth * log_q).sum()), slope[: len(theta)]

        best, least = np.array([1.0]), loss(np.array([1.0]))[0]
        found = best
        for size in (1, n_classes):
            start = np.zeros(size)
            start[0] = 1.0
            tried = minimize(loss, start, jac=True, method="L-BFGS-B")
            value = float(tried.fun) + PRICE_OF_RECALIBRATION * size
            if value < least and tried.x[0] > 0.0:
                found, least = tried.x, value
        if found is best:
            return cls(1.0, np.zeros(n_classes), None)
        bias = _biases(found, n_classes)
        own = cls(float(found[0]), bias, None)
        return cls(own.power, bias, own.apply(proba).mean(axis=0))

    def apply(self, proba: Floats) -> Floats:
        """The corrected probabilities, (rows, classes)."""
        if self.prior is None and self.power == 1.0:
            return proba
        score = self.power * np.log(np.maximum(proba, _LEAST)) + self.bias
        return np.asarray(np.exp(score - logsumexp(score, axis=1, keepdims=True)))

    def to_dict(self) -> dict[str, Any]:
        return {
            "power": self.power,
            "bias": self.bias.tolist(),
            "prior": None if self.prior is None else self.prior.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], n_classes: int) -> Recalibration:
        prior = None if data["prior"] is None else np.array(data["prior"], dtype=np.float64)
        found = cls(float(data["power"]), np.array(data["bias"], dtype=np.float64), prior)
        shapes = {found.bias.shape, (n_classes,) if prior is None else prior.shape}
        numbers = np.concatenate([[found.power], found.bias, [0.0] if prior is None else prior])
        if shapes != {(n_classes,)} or not np.isfinite(numbers).all() or found.power <= 0.0:
            raise ValueError("the recalibration does not fit the classes")
        if prior is not None and not ((prior > 0).all() and abs(prior.sum() - 1.0) < 1e-6):
            raise ValueError("the recalibration needs a class mix")
        return found


def _biases(theta: Floats, n_classes: int) -> Floats:
    return np.concatenate([[0.0], theta[1:], np.zeros(n_classes - len(theta))])
