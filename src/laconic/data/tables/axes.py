"""How one column is read by a fitted model: a slot, and how far it lies towards the next slot.

Every axis turns a column into ``(index, fraction)``: a row reads the value
``(1 - fraction) v[index] + fraction v[index + 1]`` of a vector ``v`` with one entry for each slot.
Three axes are enough for every additive model of the library: knots (a piecewise-linear shape with
levels of its own for special values), categories and intervals. The last slot of every axis is the
missing value; a category axis has one more, before it, for texts that have no slot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.data.tables.columns import Table
from laconic.data.tables.kinds import MISSING

Encoded = tuple[NDArray[np.int64], NDArray[np.float64]]


def _increasing(values: NDArray[np.float64], what: str) -> None:
    if values.ndim != 1 or not np.isfinite(values).all() or (values[1:] <= values[:-1]).any():
        raise ValueError(f"{what} must be finite numbers in increasing order.")


class _LastIsMissing:
    """What all axes share: the last slot is the missing value."""

    @property
    def size(self) -> int:
        raise NotImplementedError

    @property
    def missing(self) -> int:
        return self.size - 1

    @property
    def interpolates(self) -> bool:
        """Whether a row may lie between two slots."""
        return False


@dataclass(frozen=True)
class KnotAxis(_LastIsMissing):
    """Slots: one for each knot, then one for each special value, then missing.

    Between two knots the fraction is linear in x; beyond the first and the last knot it is flat.
    A value listed in ``specials`` has a slot of its own, whatever its place among the knots.

    >>> axis = KnotAxis(np.array([0.0, 10.0, 20.0]), specials=np.array([99.0]))
    >>> index, fraction = axis.encode(np.array([-5.0, 2.5, 20.0, 99.0, np.nan]))
    >>> index.tolist(), fraction.tolist()
    ([0, 0, 1, 3, 4], [0.0, 0.25, 1.0, 0.0, 0.0])
    """

    knots: NDArray[np.float64]
    specials: NDArray[np.float64]

    def __post_init__(self) -> None:
        if len(self.knots) == 0:
            raise ValueError("A knot axis needs at least one knot.")
        _increasing(self.knots, "knots")
        _increasing(self.specials, "specials")

    @property
    def size(self) -> int:
        return len(self.knots) + len(self.specials) + 1

    @property
    def interpolates(self) -> bool:
        return len(self.knots) > 1

    def encode(self, values: NDArray[Any]) -> Encoded:
        x = np.asarray(values, dtype=np.float64)
        fraction = np.zeros(len(x))
        index = np.zeros(len(x), dtype=np.int64)
        if len(self.knots) > 1:
            inside = np.clip(x, self.knots[0], self.knots[-1])
            index = np.searchsorted(self.knots, inside, "right") - 1
            index = np.clip(index, 0, len(self.knots) - 2)
            low, high = self.knots[index], self.knots[index + 1]
            with np.errstate(over="ignore", invalid="ignore"):
                gap = high - low
                fraction = (inside - low) / gap
            wide = np.isinf(gap)
            if wide.any():  # two knots at the two ends of the float range
                half = 0.5 * low[wide]
                fraction[wide] = (0.5 * inside[wide] - half) / (0.5 * high[wide] - half)
        for k, special in enumerate(self.specials):
            at = x == special
            index[at] = len(self.knots) + k
            fraction[at] = 0.0
        gone = np.isnan(x)
        index[gone] = self.missing
        fraction[gone] = 0.0
        return index, fraction

    def labels(self) -> list[str]:
        texts = [f"{value:g}" for value in self.knots]
        return [*texts, *(f"= {value:g}" for value in self.specials), "missing"]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "knots", "knots": self.knots.tolist(), "specials": self.specials.tolist()}


@dataclass(frozen=True)
class CategoryAxis(_LastIsMissing):
    """Slots: one for each group of texts, then every other text, then missing.

    >>> axis = CategoryAxis((("cook",), ("smith", "joiner")))
    >>> axis.encode(np.array([0, 1, 2, -1, -2]), ("cook", "joiner", "smith"))[0].tolist()
    [0, 1, 1, 3, 2]
    """

    groups: tuple[tuple[str, ...], ...]

    @property
    def size(self) -> int:
        return len(self.groups) + 2

    @property
    def other(self) -> int:
        return len(self.groups)

    def slot_of(self) -> dict[str, int]:
        return {text: slot for slot, texts in enumerate(self.groups) for text in texts}

    def encode(self, codes: NDArray[Any], categories: tuple[str, ...]) -> Encoded:
        """``codes`` into ``categories``, as a table holds them."""
        slots = self.slot_of()
        # the two extra entries are what the codes -2 (unseen) and -1 (missing) read
        place = [slots.get(text, self.other) for text in categories]
        table = np.array([*place, self.other, self.missing], dtype=np.int64)
        codes = np.asarray(codes)
        return table[codes], np.zeros(len(codes))

    def labels(self) -> list[str]:
        return [*(", ".join(texts) for texts in self.groups), "any other", "missing"]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "categories", "groups": [list(texts) for texts in self.groups]}


@dataclass(frozen=True)
class IntervalAxis(_LastIsMissing):
    """Slots: the intervals between bounds, each closed on the right, special values, missing.

    >>> IntervalAxis(np.array([1.0, 2.0])).encode(np.array([1.0, 1.5, 9.0, np.nan]))[0].tolist()
    [0, 1, 2, 3]
    >>> IntervalAxis(np.array([1.0]), (7.0,)).encode(np.array([0.5, 7.0, 8.0]))[0].tolist()
    [0, 2, 1]
    """

    bounds: NDArray[np.float64]
    specials: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        _increasing(self.bounds, "bounds")

    @property
    def size(self) -> int:
        return len(self.bounds) + len(self.specials) + 2

    def encode(self, values: NDArray[Any]) -> Encoded:
        x = np.asarray(values, dtype=np.float64)
        index = np.searchsorted(self.bounds, x, "left").astype(np.int64)
        for k, special in enumerate(self.specials):
            index[x == special] = len(self.bounds) + 1 + k
        index[np.isnan(x)] = self.missing
        return index, np.zeros(len(x))

    def labels(self) -> list[str]:
        low = ["-inf", *(f"{value:g}" for value in self.bounds)]
        high = [*(f"{value:g}" for value in self.bounds), "inf"]
        texts = [f"({a}, {b}]" for a, b in zip(low, high, strict=True)]
        return [*texts, *(f"= {value:g}" for value in self.specials), "missing"]

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "intervals",
            "bounds": self.bounds.tolist(),
            "specials": list(self.specials),
        }


Axis = KnotAxis | CategoryAxis | IntervalAxis


def axis_from_dict(data: Mapping[str, Any]) -> Axis:
    """The axis that ``to_dict`` described."""
    kind = data["kind"]
    if kind == "knots":
        return KnotAxis(
            np.array(data["knots"], dtype=np.float64), np.array(data["specials"], dtype=np.float64)
        )
    if kind == "categories":
        return CategoryAxis(tuple(tuple(texts) for texts in data["groups"]))
    if kind == "intervals":
        specials = tuple(float(value) for value in data.get("specials", ()))
        return IntervalAxis(np.array(data["bounds"], dtype=np.float64), specials)
    raise ValueError(f"Unknown axis kind {kind!r}; expected knots, categories or intervals.")


def encode_column(axis: Axis, table: Table, j: int) -> Encoded:
    """Column ``j`` of a table on ``axis``."""
    values = table.column(j)
    if isinstance(axis, CategoryAxis):
        categories = table.categories[j]
        if table.kinds[j] != "categorical" or categories is None:
            # a column without any value agrees with every kind (see Schema)
            return axis.encode(np.full(len(values), MISSING), ())
        return axis.encode(values, categories)
    if table.kinds[j] == "categorical":
        raise ValueError(f"Column {table.names[j]!r} is categorical; its axis expects numbers.")
    return axis.encode(values)
