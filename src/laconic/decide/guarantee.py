"""Thresholds that hold a promise on recall, false alarms, alarms, precision or cost.

Rows that chose nothing judge every threshold of a score. Three kinds of promise, all valid for
finite samples whatever the law of the scores:

* recall, false alarm rate and share of alarms move one way with the threshold. With n rows of the
  class concerned and r of them on the wrong side of the threshold, the promise fails with
  probability P(Bin(n, level) <= r - 1) at most, so the last r for which that is at most delta is
  an order statistic of the scores, known before any score is seen. Every threshold beyond it holds
  the promise too.
* precision moves both ways: among m alarms, k of them right, the promise is tested by
  P(Bin(m, level) >= k) on a grid fixed beforehand, delta shared over the grid (Learn then Test,
  Angelopoulos et al. 2021).
* cost per case likewise, with the p-value of Hoeffding and Bentkus for the mean of bounded costs.

Several promises share delta. Of the thresholds that hold all of them, the cheapest on the same
rows is taken: the promises hold for all of these at once, so choosing among them costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from scipy.stats import binom

from laconic._typing import Floats, Mask
from laconic.core.decisions import cost_matrix, decision_threshold

Measure = Literal["recall", "false_alarms", "alarms", "precision", "cost"]

SENSE: dict[str, str] = {
    "recall": ">=",
    "false_alarms": "<=",
    "alarms": "<=",
    "precision": ">=",
    "cost": "<=",
}
GRID = expit(np.linspace(-7.0, 7.0, 57))
"""Where precision and cost are tested: thresholds from .001 to .999, a quarter of log-odds apart.
All of them share the doubt, so more of them would be finer and each less certain."""


class NoThresholdError(ValueError):
    """No threshold holds what was asked; the sentence says how many rows would be needed."""


@dataclass(frozen=True)
class Guarantee:
    """One promise: a measure of the decisions and the level it must keep.

    ``recall`` is the share of the positive class that is decided positive, ``false_alarms`` the
    share of the negative class that is, ``alarms`` the share of all rows, ``precision`` the share
    of alarms that are right and ``cost`` the mean cost of a decision.

    >>> Guarantee.parse("recall >= 0.95")
    Guarantee(measure='recall', level=0.95)
    >>> Guarantee.parse("alarms<=100/5000").level
    0.02
    """

    measure: Measure
    level: float

    def __post_init__(self) -> None:
        if self.measure not in SENSE:
            raise ValueError(
                f"guarantee: {self.measure!r} is not known; choose one of {', '.join(SENSE)}."
            )
        share = self.measure != "cost"
        if share and not 0.0 < self.level < 1.0:
            raise ValueError(
                f"guarantee: the level of {self.measure} must lie strictly between 0 and 1, got "
                f"{self.level:g}."
            )
        if not share and not (self.level > 0.0 and np.isfinite(self.level)):
            raise ValueError(f"guarantee: a cost must be a positive number, got {self.level:g}.")

    @classmethod
    def parse(cls, text: str | Guarantee) -> Guarantee:
        """Read ``"recall>=0.95"``; a level may be a ratio of two numbers."""
        if isinstance(text, Guarantee):
            return text
        number = r"([0-9.eE+-]+)"
        found = re.fullmatch(rf"\s*([a-z_ ]+?)\s*(>=|<=)\s*{number}(?:\s*/\s*{number})?\s*", text)
        try:
            if found is None:
                raise ValueError
            level = float(found[3]) / float(found[4] or 1.0)
        except (ValueError, ZeroDivisionError):
            raise ValueError(
                f"guarantee: {text!r} cannot be read; write for instance 'recall>=0.95' or "
                "'alarms<=100/5000'."
            ) from None
        measure = found[1].replace(" ", "_")
        if found[2] != SENSE.get(measure, found[2]):
            raise ValueError(f"guarantee: {measure} can be promised with {SENSE[measure]} only.")
        return cls(measure, level)  # type: ignore[arg-type]

    def __str__(self) -> str:
        return f"{self.measure}{SENSE[self.measure]}{self.level:g}"


@dataclass(frozen=True)
class Promise:
    """A guarantee that a threshold holds, with what the rows showed."""

    guarantee: Guarantee
    confidence: float
    measured: float
    rows: int
    """Rows that the promise rests on: of the class concerned, alarms, or all."""
    holds_under_shift: bool
    """Whether it stays when only the shares of the classes move."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "measure": self.guarantee.measure,
            "level": self.guarantee.level,
            "confidence": self.confidence,
            "measured": self.measured,
            "rows": self.rows,
        }


@dataclass(frozen=True)
class GuaranteedThreshold:
    """Decide positive where the probability is above ``threshold``."""

    threshold: float
    lowest: float
    highest: float
    """Every threshold from ``lowest`` to ``highest`` that was a candidate holds the promises."""
    cost: float
    promises: tuple[Promise, ...]

    def to_dict(self) -> dict[str, Any]:
        """Numbers and texts, for a model file."""
        return {
            "threshold": self.threshold,
            "lowest": self.lowest,
            "highest": self.highest,
            "cost": self.cost,
            "promises": [one.to_dict() for one in self.promises],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> GuaranteedThreshold:
        promises = tuple(
            Promise(
                Guarantee(one["measure"], float(one["level"])),
                float(one["confidence"]),
                float(one["measured"]),
                int(one["rows"]),
                one["measure"] in CONDITIONAL,
            )
            for one in data["promises"]
        )
        threshold = float(data["threshold"])
        if not 0.0 < threshold < 1.0:
            raise ValueError(f"a threshold must lie strictly between 0 and 1, got {threshold}")
        lowest, highest = float(data["lowest"]), float(data["highest"])
        return cls(threshold, lowest, highest, float(data["cost"]), promises)


CONDITIONAL = ("recall", "false_alarms")
"""Promises within one class: a moved class mix leaves them as they are."""


def rows_needed(level: float, delta: float) -> int:
    """Rows of a class without which no order statistic promises ``level`` with doubt ``delta``.

    >>> [rows_needed(level, 0.05) for level in (0.90, 0.95, 0.99)]
    [29, 59, 299]
    """
    return int(np.ceil(np.log(delta) / np.log(level)))


def order_of_the_promise(n_rows: int, wrong: float, delta: float) -> int:
    """How many of ``n_rows`` may be on the wrong side: the largest r with
    P(Bin(n_rows, wrong) <= r) <= delta, or -1 where even none is too many.

    >>> order_of_the_promise(59, 0.05, 0.05), order_of_the_promise(58, 0.05, 0.05)
    (0, -1)
    """
    most = np.arange(n_rows + 1)
    return int(np.count_nonzero(binom.cdf(most, n_rows, wrong) <= delta)) - 1


def guaranteed_threshold(
    score: ArrayLike,
    positive: ArrayLike,
    guarantees: str | Guarantee | Sequence[str | Guarantee],
    *,
    costs: Any = None,
    confidence: float = 0.95,
) -> GuaranteedThreshold:
    """The cheapest threshold that holds every guarantee with the stated confidence.

    Parameters
    ----------
    score : array-like of shape (n,)
        Probabilities of the positive class for rows that had no part in the fit nor in its choice.
    positive : array-like of shape (n,)
        True where the class is the positive one.
    guarantees : str, Guarantee or a sequence of them
        For instance ``"recall>=0.95"`` or ``["recall>=0.9", "alarms<=0.02"]``.
    costs : as in DecisionClassifier, default=None
        Of two classes, the positive one last; they choose among the thresholds that hold.
    confidence : float, default=0.95
        Probability, over the draw of these rows, that all promises hold for new rows.

    Returns
    -------
    GuaranteedThreshold

    Examples
    --------
    >>> draw = np.random.default_rng(0)
    >>> positive = draw.random(4000) < 0.1
    >>> score = expit(draw.normal(np.where(positive, 1.0, -2.5), 1.0))
    >>> found = guaranteed_threshold(score, positive, "recall>=0.9", costs={"fp": 1, "fn": 3})
    >>> found.promises[0].rows, found.promises[0].measured >= 0.9
    (415, True)
    """
    score, positive = _checked(score, positive)
    wanted = [guarantees] if isinstance(guarantees, str | Guarantee) else list(guarantees)
    asked = [Guarantee.parse(one) for one in wanted]
    if not asked:
        raise ValueError("guarantee: nothing is asked for.")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie strictly between 0 and 1, got {confidence!r}.")
    matrix = cost_matrix(costs, [0, 1])
    delta = (1.0 - confidence) / len(asked)
    candidates = _candidates(score, decision_threshold(matrix))
    holds = np.ones(len(candidates), dtype=bool)
    for one in asked:
        own = _held(one, candidates, score, positive, matrix, delta)
        if not (holds & own).any():
            raise NoThresholdError(_why_none(one, asked, own, score, positive, confidence, delta))
        holds &= own
    paid = _costs_at(candidates, score, positive, matrix)
    best = int(np.flatnonzero(holds)[np.argmin(paid[holds])])
    kept = candidates[holds]
    promises = tuple(
        _promise(one, float(candidates[best]), score, positive, matrix, confidence) for one in asked
    )
    return GuaranteedThreshold(
        float(candidates[best]), float(kept.min()), float(kept.max()), float(paid[best]), promises
    )


def _checked(score: ArrayLike, positive: ArrayLike) -> tuple[Floats, Mask]:
    values = np.asarray(score, dtype=np.float64)
    truth = np.asarray(positive, dtype=bool)
    if values.ndim != 1 or values.shape != truth.shape or not len(values):
        raise ValueError(
            "A guarantee needs one score and one class for each of at least one row, got shapes "
            f"{values.shape} and {truth.shape}."
        )
    if not ((values >= 0.0) & (values <= 1.0)).all():
        raise ValueError("A guarantee needs scores between 0 and 1.")
    if not truth.any():
        raise NoThresholdError(
            "The rows that should hold the guarantee have no row of the positive class."
        )
    return values, truth


def _candidates(score: Floats, cheapest: float) -> Floats:
    """Cuts in the middle between neighbouring scores, the grid, and the rule of least cost."""
    distinct = np.unique(score)
    middle = 0.5 * (distinct[1:] + distinct[:-1])
    # a middle that rounds to one of its scores would decide that score by luck
    middle = middle[(middle > distinct[:-1]) & (middle < distinct[1:])]
    ends = [0.5 * distinct[0], 0.5 * (1.0 + distinct[-1])]
    grid = GRID[~np.isin(GRID, distinct)]
    inside = [cheapest] if 0.0 < cheapest < 1.0 and cheapest not in distinct else []
    return np.unique(np.concatenate([middle, ends, grid, inside]))


def _above(cuts: Floats, score: Floats) -> Floats:
    """How many scores lie above each cut."""
    return len(score) - np.searchsorted(np.sort(score), cuts, "right").astype(np.float64)


def _held(
    one: Guarantee, cuts: Floats, score: Floats, positive: Mask, matrix: Floats, delta: float
) -> Mask:
    """Which cuts hold a guarantee, all of them at once, with doubt ``delta``."""
    if one.measure == "recall":
        missed = positive.sum() - _above(cuts, score[positive])
        most = order_of_the_promise(int(positive.sum()), 1.0 - one.level, delta)
        return np.asarray(missed <= most)
    if one.measure in ("false_alarms", "alarms"):
        rows = score if one.measure == "alarms" else score[~positive]
        most = order_of_the_promise(len(rows), one.level, delta)
        return np.asarray(_above(cuts, rows) <= most)
    on_grid = np.isin(cuts, GRID)
    own = delta / len(GRID)
    alarms = _above(cuts, score)
    if one.measure == "precision":
        right = _above(cuts, score[positive])
        p_value = binom.sf(right - 1, alarms, one.level)
        return np.asarray(on_grid & (alarms > 0) & (p_value <= own))
    paid = _costs_at(cuts, score, positive, matrix)
    return np.asarray(on_grid & (mean_p_value(paid, one.level, matrix, len(score)) <= own))


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


def _costs_at(cuts: Floats, score: Floats, positive: Mask, matrix: Floats) -> Floats:
    """Mean cost of deciding positive above each cut."""
    hits, alarms = _above(cuts, score[positive]), _above(cuts, score[~positive])
    n_positive, n_negative = positive.sum(), (~positive).sum()
    total = (
        alarms * matrix[0, 1]
        + (n_negative - alarms) * matrix[0, 0]
        + hits * matrix[1, 1]
        + (n_positive - hits) * matrix[1, 0]
    )
    return np.asarray(total / len(score))


def _promise(
    one: Guarantee, cut: float, score: Floats, positive: Mask, matrix: Floats, confidence: float
) -> Promise:
    alarm, negative = score > cut, ~positive
    measured, rows = {
        "recall": (alarm[positive].mean(), int(positive.sum())),
        "false_alarms": (alarm[negative].mean() if negative.any() else 0.0, int(negative.sum())),
        "alarms": (alarm.mean(), len(score)),
        "precision": (positive[alarm].mean() if alarm.any() else np.nan, int(alarm.sum())),
        "cost": (_costs_at(np.array([cut]), score, positive, matrix)[0], len(score)),
    }[one.measure]
    return Promise(one, confidence, float(measured), rows, one.measure in CONDITIONAL)


def _why_none(
    one: Guarantee,
    asked: Sequence[Guarantee],
    own: Mask,
    score: Floats,
    positive: Mask,
    confidence: float,
    delta: float,
) -> str:
    said = f"at {confidence:.0%} confidence"
    if own.any():
        others = ", ".join(str(other) for other in asked if other != one)
        return f"No threshold holds {one} together with {others} {said}; ask for less of one."
    rows = {"recall": int(positive.sum()), "false_alarms": int((~positive).sum())}
    if one.measure in ("recall", "false_alarms", "alarms"):
        have = rows.get(one.measure, len(score))
        level = one.level if one.measure == "recall" else 1.0 - one.level
        kind = {"recall": "positive ", "false_alarms": "negative "}.get(one.measure, "")
        needed = rows_needed(level, delta)
        return (
            f"{one} {said} needs at least {needed} {kind}rows that chose nothing, here are {have}; "
            "hold more rows out, or ask for less."
        )
    return f"No threshold holds {one} {said} on these {len(score)} rows; ask for less."
