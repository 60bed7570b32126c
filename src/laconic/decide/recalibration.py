r"""Probabilities, moved a little towards what labelled rows say.

:math:`q_k \propto p_k^a e^{b_k}`, with the likeliest (a, b) on labelled rows under a normal prior
around (1, 0): probabilities that rest on many rows of a fit are not replaced by what a few hundred
others say, unless these clearly object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from laconic._typing import Floats, Ints
from laconic.decide.tuning import RECALIBRATION_SPREAD

_LEAST = 1e-12


@dataclass(frozen=True)
class Recalibration:
    """Power and biases of the probabilities, and the class mix that they are then right for.

    >>> draw = np.random.default_rng(0)
    >>> p = draw.random(4000)
    >>> y = (draw.random(4000) < p).astype(int)
    >>> round(Recalibration.of(np.column_stack([1 - p, p]), y).power, 1)
    1.0
    >>> sure = p**3 / (p**3 + (1 - p) ** 3)
    >>> bool(abs(Recalibration.of(np.column_stack([1 - sure, sure]), y).power - 1 / 3) < 0.05)
    True
    """

    power: float
    bias: Floats
    prior: Floats | None
    """None: the class mix of the fit, in files that changed nothing."""

    @classmethod
    def of(cls, proba: Floats, codes: Ints, prior: Floats | None = None) -> Recalibration:
        """From labelled rows; ``prior`` is the class mix that the probabilities are right for.

        The corrected ones are right for that mix and what the correction adds to their mean. The
        mean itself would take the luck of the labelled rows for a mix.
        """
        n_classes = proba.shape[1]
        logs = np.log(np.maximum(proba, _LEAST))
        truth = np.eye(n_classes)[codes]

        def loss(theta: Floats) -> tuple[float, Floats]:
            score = theta[0] * logs + theta[1:]
            log_q = score - logsumexp(score, axis=1, keepdims=True)
            wrong = np.exp(log_q) - truth
            slope = np.array([(wrong * logs).sum(), *wrong.sum(axis=0)])
            away = (theta - start) / RECALIBRATION_SPREAD**2
            value = -(truth * log_q).sum() + 0.5 * float(away @ (theta - start))
            return float(value), slope + away

        start = np.array([1.0, *np.zeros(n_classes)])
        bounds = [(0.05, None), *[(None, None)] * n_classes]
        found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
        own = cls(float(found[0]), found[1:], None)
        mean = own.apply(proba).mean(axis=0)
        if prior is not None:
            mean = np.maximum(prior + mean - proba.mean(axis=0), 0.1 * prior)
        return cls(own.power, own.bias, mean / mean.sum())

    def apply(self, proba: Floats) -> Floats:
        """The corrected probabilities, (rows, classes)."""
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
