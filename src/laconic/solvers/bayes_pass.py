"""The compiled pass over profiles that every minimax solver repeats."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from laconic.criteria.minimax import DenseLaws, Laws, MixtureRule, SparseLaws, zero_one

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BayesPass:
    """Bayes decisions and class risks at a prior: one pass over profiles, O(profiles x classes).

    >>> tables = DenseLaws(np.array([[0.75, 0.25], [0.25, 0.75]]))
    >>> BayesPass(tables, zero_one(2)).risks(np.array([0.5, 0.5]))
    array([0.25, 0.25])
    """

    laws: Laws
    loss: Floats
    _totals: Floats = field(init=False, repr=False)
    _counts_errors: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_totals", self.laws.totals)
        counts_errors = bool((self.loss == zero_one(len(self.loss))).all())
        object.__setattr__(self, "_counts_errors", counts_errors)

    @property
    def n_classes(self) -> int:
        return len(self.loss)

    def __call__(self, prior: Floats) -> tuple[NDArray[np.int32], Floats]:
        """Labels of the profiles and risks of the classes."""
        from laconic.solvers import hot_minimax as hot

        laws = self.laws
        labels = np.empty(laws.n_profiles, dtype=np.int32)
        if isinstance(laws, SparseLaws):
            parts = (laws.start, laws.klass, laws.mass, prior)
            if self._counts_errors:
                return labels, self._totals - hot.sparse_labels(*parts, labels)
            return labels, hot.sparse_loss_labels(*parts, self.loss, labels)
        assert isinstance(laws, DenseLaws)
        if self._counts_errors:
            return labels, self._totals - hot.dense_labels(laws.law, prior, labels)
        return labels, hot.dense_loss_labels(laws.law, prior, self.loss, labels)

    def risks(self, prior: Floats) -> Floats:
        return self(prior)[1]

    def rule(self, priors: Floats, weights: Floats) -> MixtureRule:
        """The mixture of the Bayes rules at some priors."""
        passes = [self(prior) for prior in priors]
        return MixtureRule(
            priors=np.array(priors),
            weights=np.array(weights),
            labels=np.array([labels for labels, _ in passes]),
            risks=np.array([risks for _, risks in passes]),
        )
