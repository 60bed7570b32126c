"""Labels that came: has the cost, or a promise, left its band? Tests valid after every row."""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic._typing import Floats, Ints, Mask
from laconic.decide.guarantee import SENSE, Promise
from laconic.watching.sequential import MeanWatch


class Labels:
    """Truth and decision of labelled rows in the order in which they came, a few bytes a row."""

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes
        self._kind = np.min_scalar_type(n_classes * (n_classes + 1))
        self._parts: list[Any] = []

    def add(self, codes: Ints, decided: Ints) -> None:
        """Positions of the class and of the decision, -1 for an abstention."""
        self._parts.append((codes * (self.n_classes + 1) + decided + 1).astype(self._kind))

    def __bool__(self) -> bool:
        return bool(self._parts)

    def read(self) -> tuple[Ints, Ints]:
        """Truth and decisions of all rows."""
        both = np.concatenate(self._parts)
        return both // (self.n_classes + 1), both.astype(np.int64) % (self.n_classes + 1) - 1


def watch_labels(model: Any, labels: Labels, band: float, doubt: float) -> dict[str, Any] | None:
    """Whether costs left the band that unlabelled rows leave, or a promise its level.

    Each of them has an equal part of ``doubt``, the chance of an alarm when none has.
    """
    if not labels:
        return None
    codes, decided = labels.read()
    held = () if model.guaranteed_ is None else model.guaranteed_.promises
    own = doubt / (1 + len(held))
    prices = _prices(model)
    paid = prices[codes, decided]
    low, high = min(float(prices.min()), 0.0), float(prices.max())
    band = float(np.clip(band, low, np.nextafter(high, low)))
    at = _alarm_at(paid, band, low, high, own)
    told = [_of_promise(model, one, codes, decided, paid, own) for one in held]
    return {
        "rows": len(paid),
        "cost": float(paid.mean()),
        "band": band,
        "alarm_at": at,
        "promises": told,
        "alarm": at is not None or any(one["alarm_at"] is not None for one in told),
    }


def _prices(model: Any) -> Floats:
    """Costs by truth and decision; the last column, which -1 reads, for abstaining."""
    reject = 0.0 if model.reject_cost is None else float(model.reject_cost)
    matrix = model.cost_matrix_
    return np.hstack([matrix, np.full((len(matrix), 1), reject)])


def _alarm_at(values: Floats, bound: float, low: float, high: float, doubt: float) -> int | None:
    if not low <= bound < high:
        return None
    test = MeanWatch(bound, low, high, doubt)
    test.add(values)
    return test.alarm_at()


def _of_promise(
    model: Any, one: Promise, codes: Ints, decided: Ints, paid: Floats, doubt: float
) -> dict[str, Any]:
    """One promise: what labels show, and the row after which it is broken for certain."""
    asked = one.guarantee
    if asked.measure == "cost":
        prices = _prices(model)
        low, high = min(float(prices.min()), 0.0), float(prices.max())
        rows, level = np.ones(len(paid), dtype=bool), asked.level
        wrong: Floats = paid
    else:
        name = model.positive_ if asked.of is None else asked.of
        names = [str(label) for label in model.classes_.tolist()]
        k = names.index(str(name)) if str(name) in names else -2
        rows, side = _sides(asked.measure, codes, decided, k)
        wrong, low, high = side.astype(np.float64), 0.0, 1.0
        level = 1.0 - asked.level if SENSE[asked.measure] == ">=" else asked.level
    values = wrong[rows]
    at = _alarm_at(values, level, low, high, doubt) if len(values) else None
    share = float(values.mean()) if len(values) else None
    if share is not None and SENSE[asked.measure] == ">=":
        share = 1.0 - share
    row = None if at is None else int(np.flatnonzero(rows)[at - 1]) + 1
    return {"promise": str(asked), "measured": share, "rows": len(values), "alarm_at": row}


def _sides(measure: str, codes: Ints, decided: Ints, k: int) -> tuple[Mask, Mask]:
    """Rows that a promise is about, and those on its wrong side."""
    own, said, all_ = codes == k, decided == k, np.ones(len(codes), dtype=bool)
    return {
        "recall": (own, ~said),
        "false_alarms": (~own, said),
        "alarms": (all_, said),
        "precision": (said, ~own),
        "error": (decided >= 0, decided != codes),
        "abstentions": (all_, decided < 0),
    }[measure]
