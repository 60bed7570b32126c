"""Promises of a decision rule: which method holds them, and whether the rows can be enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.decide.guarantee import (
    CONDITIONAL,
    Guarantee,
    check_confidence,
    read_guarantees,
)
from laconic.decide.threshold import (
    GuaranteedThreshold,
    enough_for_threshold,
    guaranteed_threshold,
)
from laconic.decide.weights import (
    GuaranteedWeights,
    enough_for_weights,
    guaranteed_weights,
    with_classes,
)

Guaranteed = GuaranteedThreshold | GuaranteedWeights


@dataclass(frozen=True)
class Judges:
    """Rows that hold a guarantee: neither the fit nor its choice has seen them."""

    X: Any
    y: NDArray[Any]
    mix: Floats | None
    """Class shares that weights say; None: those of the rows."""
    held: int
    """Rows that were held out for it: of copies and groups one row judges."""


@dataclass(frozen=True)
class Wanted:
    """What is asked of the decisions about some classes.

    One threshold holds the promises about the positive one of two classes; several classes,
    promises about the other one, and rules that abstain need class weights.
    """

    asked: list[Guarantee]
    classes: NDArray[Any]
    positive: Any
    reject_cost: float | None
    confidence: float

    @classmethod
    def read(
        cls,
        given: Any,
        capacity: Any,
        classes: NDArray[Any],
        positive: Any,
        *,
        reject_cost: float | None = None,
        confidence: float = 0.95,
    ) -> Wanted:
        """Check the wishes against the classes."""
        asked = read_guarantees(given, capacity)
        if not asked:
            raise ValueError("guarantee: nothing is asked for; write for instance 'recall>=0.95'.")
        check_confidence(confidence)
        found = cls(asked, classes, positive, reject_cost, confidence)
        if not found.by_threshold or positive is None:
            with_classes(asked, classes.tolist(), positive, reject_cost)
        return found

    @property
    def by_threshold(self) -> bool:
        named = [one for one in self.asked if one.of not in (None, str(self.positive))]
        other = any(one.measure in ("error", "abstentions") for one in self.asked)
        return len(self.classes) == 2 and self.reject_cost is None and not named and not other

    @property
    def within_classes(self) -> bool:
        """Whether every promise is about the rows of one class alone."""
        return self.by_threshold and all(one.measure in CONDITIONAL for one in self.asked)

    def mix_of_weights(self, codes: Ints, weight: Floats | None) -> Floats | None:
        """Class shares by weight, where rows of some class weigh more; None where all weigh alike.

        A promise counts rows: weights of classes say where the model is used, as a prior does, and
        weights that differ within a class have no binomial law.
        """
        if weight is None or not len(weight) or weight.min() == weight.max():
            return None
        total = np.zeros(len(self.classes))
        for k, name in enumerate(self.classes.tolist()):
            own = weight[codes == k]
            if len(own) and own.min() < own.max():
                raise ValueError(
                    f"guarantee: sample_weight differs among the rows of class {name!r}, and a "
                    "promise counts rows as they come; leave the weights out, or fit with them "
                    "first and then use prefit=True with rows drawn like new cases."
                )
            total[k] = own.sum()
        return np.asarray(total / total.sum())

    def refuse_too_few(
        self, class_rows: Ints, have: str = "here are", *, another_mix: bool = False
    ) -> None:
        """An error that says how many rows are needed, before hours of fitting."""
        if self.by_threshold:
            place = self.classes.tolist().index(self.positive)
            counts = int(class_rows[place]), int(class_rows[1 - place])
            any_mix = (0.0, 1.0) if another_mix else None
            enough_for_threshold(self.asked, *counts, self.confidence, have, any_mix)
            return
        asked = with_classes(self.asked, self.classes.tolist(), self.positive, self.reject_cost)
        enough_for_weights(asked, class_rows // 2, self.confidence, f"half of those {have}")

    def found(
        self,
        proba: Floats,
        y: NDArray[Any],
        costs: Floats,
        shares: tuple[float, float] | None = None,
    ) -> Guaranteed:
        """The cheapest rule that keeps every promise, from rows that chose nothing."""
        if not self.by_threshold:
            if shares is not None and any(one.measure != "recall" for one in self.asked):
                raise ValueError(
                    "guarantee: with prior, prior_bounds or weights of classes, several classes "
                    "or a rule that abstains can promise recall(NAME) only; other measures need "
                    "rows of that mix."
                )
            return guaranteed_weights(
                proba,
                y,
                self.asked,
                classes=self.classes,
                costs=costs,
                reject_cost=self.reject_cost,
                positive=self.positive,
                confidence=self.confidence,
            )
        place = self.classes.tolist().index(self.positive)
        order = [1 - place, place]
        return guaranteed_threshold(
            proba[:, place],
            np.asarray(y == self.positive),
            self.asked,
            costs=costs[np.ix_(order, order)],
            confidence=self.confidence,
            shares=shares,
        )


def guaranteed_from_dict(data: Any) -> Guaranteed:
    """What a model file holds."""
    kind = GuaranteedWeights if "weights" in data else GuaranteedThreshold
    return kind.from_dict(data)
