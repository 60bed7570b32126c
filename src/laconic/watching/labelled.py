"""Labels that came: has the cost, or a promise, left its band? Tests valid after every row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints, Mask
from laconic.data.tables.columns import is_missing
from laconic.decide.guarantee import SENSE, Promise
from laconic.watching.sequential import MeanWatch


def class_positions(y: NDArray[Any], classes: NDArray[Any]) -> Ints:
    """Position of the class of each cell, -1 where none has come; a text file holds all as texts.

    >>> class_positions(np.array(["1", "", "0.0"]), np.array([0, 1])).tolist()
    [1, -1, 0]
    """
    known = {form: k for k, label in enumerate(classes.tolist()) for form in _forms(label)}
    found: dict[Any, int] = {}
    cells = y.tolist()
    for cell in set(cells):
        gone = is_missing(cell) or (isinstance(cell, str) and not cell.strip())
        places = [-1] if gone else [known[form] for form in _forms(cell) if form in known]
        if not places:
            raise ValueError(
                f"labels holds {cell!r}, which is not among the classes {classes.tolist()}."
            )
        found[cell] = places[0]
    return np.array([found[cell] for cell in cells], dtype=np.int64)


def _forms(value: Any) -> list[str]:
    """How a class may be written, its own text first: numbers whole or not, truth values."""
    text = str(value).strip()
    forms = [text, text.lower()] if text.lower() in ("true", "false") else [text]
    try:
        return [*forms, repr(float(text))]
    except ValueError:
        return forms


class Labels:
    """Truth and decision of labelled rows in the order in which they came, a byte or two a row."""

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes
        self._kind = np.min_scalar_type(n_classes * (n_classes + 1))
        self._parts: list[Any] = []

    def add(self, codes: Ints, decided: Ints) -> None:
        """Positions of the class and of the decision, -1 for an abstention."""
        self._parts.append((codes * (self.n_classes + 1) + decided + 1).astype(self._kind))

    def __bool__(self) -> bool:
        return bool(self._parts)

    def blocks(self) -> Iterator[tuple[Ints, Ints]]:
        """Truth and decisions, as many rows at a time as came at once."""
        for own in self._parts:
            both = own.astype(np.int64)
            yield both // (self.n_classes + 1), both % (self.n_classes + 1) - 1


@dataclass
class Band:
    """A mean that is watched row by row, and what it was."""

    bound: float
    low: float
    high: float
    doubt: float
    seen: int = 0
    """Rows of any kind that came, of which ``rows`` count."""
    rows: int = 0
    total: float = 0.0
    alarm_at: int | None = None
    """The row, counted from 1 among all that came, after which the mean has left its band."""

    def __post_init__(self) -> None:
        inside = self.low <= self.bound < self.high
        self._test = MeanWatch(self.bound, self.low, self.high, self.doubt) if inside else None

    def add(self, values: Floats, counts: Mask) -> None:
        """Values of the rows that came, of which those that ``counts`` say are watched."""
        own = np.flatnonzero(counts)
        before = self.rows
        self.rows += len(own)
        self.total += float(values[own].sum())
        if self._test is not None and len(own) and self.alarm_at is None:
            self._test.add(values[own])
            at = self._test.alarm_at()
            self.alarm_at = None if at is None else self.seen + int(own[at - before - 1]) + 1
        self.seen += len(values)

    @property
    def mean(self) -> float | None:
        return self.total / self.rows if self.rows else None


def watch_labels(model: Any, labels: Labels, band: float, doubt: float) -> dict[str, Any] | None:
    """Whether costs left the band that unlabelled rows leave, or a promise its level.

    Each of them has an equal part of ``doubt``, the chance of an alarm when none has.
    """
    if not labels:
        return None
    held = () if model.guaranteed_ is None else model.guaranteed_.promises
    own = doubt / (1 + len(held))
    prices = _prices(model)
    low, high = min(float(prices.min()), 0.0), float(prices.max())
    band = float(np.clip(band, low, np.nextafter(high, low)))
    costs = Band(band, low, high, own)
    bands = [
        Band(one.guarantee.level, low, high, own)
        if one.guarantee.measure == "cost"
        else Band(_level(one), 0.0, 1.0, own)
        for one in held
    ]
    for codes, decided in labels.blocks():
        paid = prices[codes, decided]
        costs.add(paid, np.ones(len(paid), dtype=bool))
        for one, its in zip(held, bands, strict=True):
            its.add(*_sides(model, one, codes, decided, paid))
    promises = [_promise_kept(one, its) for one, its in zip(held, bands, strict=True)]
    return {
        "rows": costs.rows,
        "cost": costs.mean,
        "band": band,
        "alarm_at": costs.alarm_at,
        "promises": promises,
        "alarm": any(its.alarm_at is not None for its in (costs, *bands)),
    }


def _prices(model: Any) -> Floats:
    """Costs by truth and decision; the last column, which -1 reads, for abstaining."""
    reject = 0.0 if model.reject_cost is None else float(model.reject_cost)
    matrix = model.cost_matrix_
    return np.hstack([matrix, np.full((len(matrix), 1), reject)])


def _level(one: Promise) -> float:
    """The share of rows on the wrong side that a promise allows."""
    asked = one.guarantee
    return 1.0 - asked.level if SENSE[asked.measure] == ">=" else asked.level


def _promise_kept(one: Promise, band: Band) -> dict[str, Any]:
    """One promise: what labels show, and the row after which it is broken for certain."""
    share = band.mean
    if share is not None and SENSE[one.guarantee.measure] == ">=":
        share = 1.0 - share
    return {
        "promise": str(one.guarantee),
        "measured": share,
        "rows": band.rows,
        "alarm_at": band.alarm_at,
    }


def _sides(
    model: Any, one: Promise, codes: Ints, decided: Ints, paid: Floats
) -> tuple[Floats, Mask]:
    """1 for rows on the wrong side of a promise (or what they cost), and rows that it is about."""
    asked = one.guarantee
    every = np.ones(len(codes), dtype=bool)
    if asked.measure == "cost":
        return paid, every
    name = model.positive_ if asked.of is None else asked.of
    names = [str(label) for label in model.classes_.tolist()]
    k = names.index(str(name)) if str(name) in names else -2
    own, said = codes == k, decided == k
    rows, wrong = {
        "recall": (own, ~said),
        "false_alarms": (~own, said),
        "alarms": (every, said),
        "precision": (said, ~own),
        "error": (decided >= 0, decided != codes),
        "abstentions": (every, decided < 0),
    }[asked.measure]
    return wrong.astype(np.float64), rows
