"""What a zone means: its loss, and the decisions of a model whose likelihood counts inside it."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils.class_weight import compute_class_weight

from laconic._typing import Floats
from laconic.core.contract import TableClassifier, Training
from laconic.core.gray_zone import TruncatedLogistic, TruncatedMultinomial, log_odds


def binary_loss(zone: Any) -> TruncatedLogistic:
    """The loss of a zone (p_min, p_max), or of one cap for both classes."""
    if isinstance(zone, Real) and not isinstance(zone, bool):
        cap = float(zone)
        if not 0.5 < cap <= 1.0:
            raise ValueError(f"zone={zone}: one cap for two classes must lie in (0.5, 1].")
        return TruncatedLogistic(1.0 - cap, cap)
    return pair_loss(zone)


def pair_loss(zone: Any) -> TruncatedLogistic:
    """The loss of a zone (p_min, p_max)."""
    try:
        low, high = (float(end) for end in zone)
    except (TypeError, ValueError):
        raise ValueError(
            f"zone must be a pair (p_min, p_max) for two classes, got {zone!r}."
        ) from None
    return TruncatedLogistic(low, high)


def multinomial_loss(zone: Any, n_classes: int) -> TruncatedMultinomial:
    """One cap for all classes, or one per class in the order of ``classes_``."""
    if isinstance(zone, Real) and not isinstance(zone, bool):
        return TruncatedMultinomial((float(zone),) * n_classes)
    try:
        caps = tuple(float(cap) for cap in zone)
    except (TypeError, ValueError):
        raise ValueError(f"zone must be one cap or one per class, got {zone!r}.") from None
    if caps == (0.0, 1.0):
        return TruncatedMultinomial((1.0,) * n_classes)
    if len(caps) != n_classes:
        raise ValueError(
            f"zone holds {len(caps)} caps but y has {n_classes} classes; give one cap in (0, 1], "
            'one per class, or multi_class="ovr" to use (p_min, p_max) for each class.'
        )
    return TruncatedMultinomial(caps)


class ZoneDecisions(TableClassifier):
    """Decisions from log-odds, linear or of a kernel."""

    zone: Any
    threshold: float | None
    class_weight: Any
    proba: str

    @abstractmethod
    def log_odds(self, X: Any) -> Floats:
        """Log-odds of the second class, or one score per class."""

    def decision_function(self, X: Any) -> Floats:
        """Log-odds beyond those of ``threshold_`` (two classes): positive where it decides for.

        More classes: one score per class, the largest decides.
        """
        scores = self.log_odds(X)
        return scores - log_odds(self.threshold_) if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The second class above ``threshold_``; the best class when there are more than two."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])

    def in_zone(self, X: Any) -> NDArray[np.bool_]:
        """Rows that are gray: the probability (of some class against the rest) is in the zone."""
        loss = binary_loss(self._zone())
        p = expit(self.log_odds(X))
        inside = (p >= loss.p_min) & (p <= loss.p_max)
        return np.asarray(inside if inside.ndim == 1 else inside.any(axis=1))

    def _zone(self) -> Any:
        return self.zone

    def _zone_ends(self) -> tuple[float, float]:
        loss = binary_loss(self._zone())
        return loss.p_min, loss.p_max

    def _set_threshold(self, loss: TruncatedLogistic) -> TruncatedLogistic:
        threshold = loss.centre if self.threshold is None else float(self.threshold)
        if not loss.p_min <= threshold <= loss.p_max:
            raise ValueError(
                f"threshold={threshold} lies outside the zone ({loss.p_min}, {loss.p_max}), where "
                "the model knows nothing; move one of them."
            )
        self.threshold_ = threshold
        return loss

    def _refuse_threshold(self) -> None:
        """More than two classes have no threshold, and no zone to clip to."""
        n_classes = len(self.classes_)
        if self.threshold is not None:
            raise ValueError(f"threshold is for two classes, y has {n_classes}; leave it None.")
        if self.proba == "clip":
            raise ValueError(f"proba='clip' is for two classes, y has {n_classes}.")
        self.__dict__.pop("threshold_", None)

    def _class_weighted(self, rows: Training) -> Floats:
        """Weights of the rows times those of their classes."""
        if self.class_weight is None:
            return rows.weight
        by_class = compute_class_weight(
            self.class_weight, classes=self.classes_, y=self.classes_[rows.y],
            sample_weight=rows.weight,
        )  # fmt: skip
        return np.asarray(rows.weight * by_class[rows.y])
