"""What decisions can promise, how it is written, and the tests behind it.

Rows that chose nothing judge every rule of a family. Three kinds of promise, all valid for finite
samples whatever the law of the scores:

* a share that moves one way with a threshold (recall, false alarms, alarms). With n rows of the
  class concerned, r of them on the wrong side, the promise fails with probability
  P(Bin(n, level) <= r - 1) at most, so the last r for which that is at most delta is an order
  statistic of the scores, known before any score is seen. Every threshold beyond it holds too.
* a share that moves both ways (precision, errors among accepted rows): P(Bin(m, level) <= k) for k
  errors among m rows, on rules fixed beforehand (Learn then Test, Angelopoulos et al. 2021).
* cost per case likewise, with the p-value of Hoeffding and Bentkus for the mean of bounded costs.

:mod:`laconic.decide.threshold` finds the threshold of two classes, :mod:`laconic.decide.weights`
the class weights of several classes and of rules that abstain.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.stats import binom

from laconic._typing import Floats, Mask

Measure = Literal["recall", "false_alarms", "alarms", "precision", "cost", "error", "abstentions"]

SENSE: dict[str, str] = {
    "recall": ">=",
    "false_alarms": "<=",
    "alarms": "<=",
    "precision": ">=",
    "cost": "<=",
    "error": "<=",
    "abstentions": "<=",
}
CONDITIONAL = ("recall", "false_alarms")
"""Promises within one class of two: a moved class mix leaves them as they are."""
OF_A_CLASS = ("recall", "false_alarms", "alarms", "precision")


class NoThresholdError(ValueError):
    """No rule holds what was asked; the sentence says how many rows would be needed."""


@dataclass(frozen=True)
class Guarantee:
    """One promise: a measure of the decisions and the level it must keep.

    ``recall`` is the share of a class that is decided so, ``false_alarms`` the share of the other
    rows that is, ``alarms`` the share of all rows, ``precision`` the share of these decisions that
    are right, ``cost`` the mean cost of a decision, ``error`` the share of wrong decisions among
    those taken and ``abstentions`` the share of rows without one. The class is the positive one
    unless ``of`` names it.

    >>> Guarantee.parse("recall >= 0.95")
    Guarantee(measure='recall', level=0.95, of=None)
    >>> Guarantee.parse("alarms<=100/5000").level
    0.02
    >>> str(Guarantee.parse("precision(spam)>=0.9"))
    'precision(spam)>=0.9'
    """

    measure: Measure
    level: float
    of: Any = None

    def __post_init__(self) -> None:
        if self.measure not in SENSE:
            raise ValueError(
                f"guarantee: {self.measure!r} is not known; choose one of {', '.join(SENSE)}."
            )
        if self.of is not None and self.measure not in OF_A_CLASS:
            raise ValueError(f"guarantee: {self.measure} is not about one class ({self.of!r}).")
        share = self.measure != "cost"
        if self.measure == "alarms" and self.level == 0.0:
            raise ValueError(
                "guarantee: a capacity of zero allows no alarm at all; give at least one case."
            )
        if share and not 0.0 < self.level < 1.0:
            raise ValueError(
                f"guarantee: the level of {self.measure} must lie strictly between 0 and 1, got "
                f"{self.level:g}{_as_a_share(self.level)}."
            )
        if not share and not (self.level > 0.0 and np.isfinite(self.level)):
            raise ValueError(f"guarantee: a cost must be a positive number, got {self.level:g}.")

    @classmethod
    def parse(cls, text: str | Guarantee) -> Guarantee:
        """Read ``"recall>=0.95"`` or ``"recall(spam)>=0.95"``; a level may be a ratio."""
        if isinstance(text, Guarantee):
            return text
        number = r"([0-9.eE+-]+)"
        measure = r"\s*([a-z_ ]+?)\s*(?:\((.*)\)|\[(.*)\])?\s*"
        found = re.fullmatch(rf"{measure}(>=|<=)\s*{number}(?:\s*/\s*{number})?\s*", str(text))
        try:
            if found is None:
                raise ValueError
            level = float(found[5]) / float(found[6] or 1.0)
        except (ValueError, ZeroDivisionError):
            raise ValueError(
                f"guarantee: {text!r} cannot be read; write for instance 'recall>=0.95', "
                "'recall(name)>=0.95' or 'alarms<=100/5000'."
            ) from None
        name = found[1].replace(" ", "_")
        if found[4] != SENSE.get(name, found[4]):
            raise ValueError(f"guarantee: {name} can be promised with {SENSE[name]} only.")
        return cls(name, level, found[2] or found[3])  # type: ignore[arg-type]

    def __str__(self) -> str:
        of = "" if self.of is None else f"({self.of})"
        return f"{self.measure}{of}{SENSE[self.measure]}{self.level:g}"


def _as_a_share(level: float) -> str:
    """A level that was meant as per cent."""
    return f"; {level:g} % is {level / 100:g}" if 1.0 < level < 100.0 else ""


@dataclass(frozen=True)
class Promise:
    """A guarantee that a rule holds, with what the rows showed."""

    guarantee: Guarantee
    confidence: float
    measured: float | None
    """None after another class mix was adopted: the rule is not the one that was measured."""
    rows: int
    """Rows that the promise rests on: of the class concerned, alarms, or all."""
    holds_under_shift: bool
    """Whether it stays when only the shares of the classes move."""

    def to_dict(self) -> dict[str, Any]:
        of = {} if self.guarantee.of is None else {"of": self.guarantee.of}
        return {
            "measure": self.guarantee.measure,
            **of,
            "level": self.guarantee.level,
            "confidence": self.confidence,
            "measured": self.measured,
            "rows": self.rows,
            "holds_under_shift": self.holds_under_shift,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Promise:
        measured, shift = data["measured"], data["holds_under_shift"]
        if not isinstance(shift, bool):
            raise ValueError("whether a promise stays under another mix must be true or false")
        return cls(
            Guarantee(data["measure"], float(data["level"]), data.get("of")),
            float(data["confidence"]),
            None if measured is None else float(measured),
            int(data["rows"]),
            shift,
        )


def read_guarantees(given: Any, capacity: Any = None) -> list[Guarantee]:
    """Guarantees from texts; a capacity such as ``"100/5000"`` is a share of alarms.

    >>> [str(one) for one in read_guarantees("recall>=0.9", "100/5000")]
    ['recall>=0.9', 'alarms<=0.02']
    """
    listed = [given] if isinstance(given, str | Guarantee) else list(given or ())
    if capacity is not None:
        try:
            listed.append(Guarantee.parse(f"alarms<={capacity}"))
        except ValueError as error:
            raise ValueError(
                f"capacity: {capacity!r} is no share of cases above 0 and below 1; write for "
                "instance '100/5000'."
            ) from error
    return [Guarantee.parse(one) for one in listed]


def check_confidence(confidence: float) -> None:
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie strictly between 0 and 1, got {confidence!r}.")


def rows_needed(level: float, delta: float) -> int:
    """Rows of a class without which no order statistic promises ``level`` with doubt ``delta``.

    >>> [rows_needed(level, 0.05) for level in (0.90, 0.95, 0.99)]
    [29, 59, 299]
    """
    return int(np.ceil(np.log(delta) / np.log(level)))


def refuse_too_few(
    asked: Sequence[Guarantee], rows: Sequence[int], confidence: float, delta: float, have: str
) -> None:
    """An error that says how many rows are needed, where ``rows`` are too few for a guarantee.

    ``rows`` holds, for each guarantee, the most rows that it can rest on.
    """
    for one, n in zip(asked, rows, strict=True):
        if one.measure == "cost":
            continue
        level = one.level if SENSE[one.measure] == ">=" else 1.0 - one.level
        needed = rows_needed(level, delta)
        if n < needed:
            kind = {"recall": "positive ", "false_alarms": "negative "}.get(one.measure, "")
            kind = kind if one.of is None else {"recall": f"{one.of!r} "}.get(one.measure, "")
            raise NoThresholdError(
                f"{one} at {confidence:.0%} confidence needs at least {needed} {kind}rows that "
                f"chose nothing, {have} {n}; hold more rows out, or ask for less."
            )


def order_of_the_promise(n_rows: int, wrong: float, delta: float) -> int:
    """How many of ``n_rows`` may be on the wrong side: the largest r with
    P(Bin(n_rows, wrong) <= r) <= delta, or -1 where even none is too many.

    >>> order_of_the_promise(59, 0.05, 0.05), order_of_the_promise(58, 0.05, 0.05)
    (0, -1)
    """
    low, high = -1, n_rows
    while low < high:
        middle = (low + high + 1) // 2
        if binom.cdf(middle, n_rows, wrong) <= delta:
            low = middle
        else:
            high = middle - 1
    return low


def mean_p_value(mean: Floats, level: float, matrix: Floats, n_rows: int) -> Floats:
    """P-value of "the mean cost exceeds ``level``", of Hoeffding and Bentkus, for bounded costs."""
    low, high = float(matrix.min()), float(matrix.max())
    m = np.clip((mean - low) / (high - low), 0.0, 1.0)
    a = np.clip((level - low) / (high - low), 1e-12, 1.0)
    if a >= 1.0:
        return np.zeros_like(m)
    below = np.minimum(m, a)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(below > 0, below * np.log(below / a), 0.0)
        second = np.where(below < 1, (1 - below) * np.log((1 - below) / (1 - a)), 0.0)
    hoeffding = np.exp(-n_rows * (first + second))
    bentkus = np.e * binom.cdf(np.ceil(n_rows * m), n_rows, a)
    return np.asarray(np.minimum(np.where(m < a, hoeffding, 1.0), np.minimum(bentkus, 1.0)))


def fallback(p_values: Floats, delta: float) -> Mask:
    """Which of several tests in a fixed order pass, with doubt ``delta`` for all of them at once.

    Each has an equal part of the doubt, and hands what it used on to the next when it passes (Wiens
    and Dmitrienko 2005): along a run of tests that pass, the doubt adds up.

    >>> fallback(np.array([0.5, 0.01, 0.03, 0.06, 0.2]), 0.1).tolist()
    [False, True, True, True, False]
    >>> fallback(np.array([0.5, 0.03]), 0.04).tolist()  # what failed hands nothing on
    [False, False]
    """
    kept = np.zeros(len(p_values), dtype=bool)
    carried = 0.0
    for i, p in enumerate(p_values.tolist()):
        own = carried + delta / len(p_values)
        kept[i] = p <= own
        carried = own if kept[i] else 0.0
    return kept
