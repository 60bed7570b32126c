"""What every solver returns: a point, its value, and a bound on how far it is from the best."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from sklearn.exceptions import ConvergenceWarning

WhyStopped = Literal["gap", "max_iter", "budget", "stalled"]


@dataclass(frozen=True)
class Solution:
    """Result of an optimiser.

    ``gap >= value - minimum >= 0`` holds whatever ``why_stopped`` says; ``math.inf`` means that
    nothing is certified.

    >>> found = Solution(point=2.0, value=1.5, gap=1e-9, n_iter=4, why_stopped="gap")
    >>> found.converged
    True
    """

    point: Any
    value: float
    gap: float
    n_iter: int
    why_stopped: WhyStopped
    details: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def converged(self) -> bool:
        return self.why_stopped == "gap"

    def warn_if_short(self, who: str, remedy: str = "raise max_iter or tol") -> Solution:
        """Say aloud that the optimiser stopped before its target, with the gap it reached."""
        if not self.converged:
            warnings.warn(
                f"{who} stopped early ({self.why_stopped}) after {self.n_iter} iterations: the "
                f"objective {self.value:.6g} is certified within {self.gap:.3g} of the best; "
                f"{remedy}.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self
