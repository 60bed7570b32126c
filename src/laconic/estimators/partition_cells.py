"""Which part a value falls in: intervals, groups, grids and rules, as printed and as applied.

Every kind has ``n_parts``, ``codes(columns)`` for columns as :class:`~laconic.data.columns.Table`
holds them (floats with NaN, or category codes), and ``labels(names)``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.data.column_kinds import MISSING

Codes = NDArray[np.int32]


def readable_between(low: float, high: float) -> float:
    """The shortest decimal near the middle of two numbers, at least ``low`` and below ``high``.

    It lies in the central tenth of the gap; of the decimals with fewest digits there, the one
    nearest to the middle.

    >>> readable_between(21.0, 22.0), readable_between(0.1, 1.5), readable_between(79000.0, 80400.0)
    (21.5, 0.8, 79700.0)
    """
    gap = high / 2.0 - low / 2.0
    middle = low + gap
    reach = 0.1 * gap
    if not (low < middle - reach and middle + reach < high):
        return low  # neighbouring floats: the lower one is the only cut
    digits = math.floor(math.log10(reach))
    for exponent in range(digits + 2, digits - 2, -1):
        text = f"{_multiple(middle, exponent)}e{exponent}"
        value = float(text)
        if abs(value - middle) <= reach:
            return value
    return middle


def _multiple(middle: float, exponent: int) -> int:
    """The integer m with m * 10^exponent nearest to ``middle``."""
    from decimal import ROUND_HALF_EVEN, Decimal

    scaled = Decimal(middle).scaleb(-exponent)
    return int(scaled.to_integral_value(rounding=ROUND_HALF_EVEN))


def show_number(value: float) -> str:
    return f"{value:.15g}"


@dataclass(frozen=True)
class Intervals:
    """Parts of a numeric column: missing alone (if so), intervals, then special values.

    ``bounds`` are the upper bounds (inclusive) of all intervals but the last.
    """

    bounds: NDArray[np.float64]
    missing_alone: bool = False
    special: tuple[float, ...] = ()
    missing_seen: bool = False

    @property
    def first(self) -> int:
        return int(self.missing_alone)

    @property
    def n_parts(self) -> int:
        return self.first + len(self.bounds) + 1 + len(self.special)

    def codes(self, columns: Sequence[NDArray[Any]]) -> Codes:
        x = np.asarray(columns[0], dtype=np.float64)
        out = np.searchsorted(self.bounds, x, side="left").astype(np.int32)
        out += self.first
        gone = np.isnan(x)
        if gone.any():
            out[gone] = 0  # missing is below every number
        place = self.first + len(self.bounds) + 1
        for k, value in enumerate(self.special):
            out[x == value] = place + k
        return out

    def labels(self, names: Sequence[str] = ()) -> list[str]:
        ends = ["-inf", *(show_number(b) for b in self.bounds), "inf"]
        closing = ["]"] * len(self.bounds) + [")"]
        shown = [f"({a}, {b}{c}" for a, b, c in zip(ends[:-1], ends[1:], closing, strict=True)]
        if self.missing_alone:
            shown = ["missing", *shown]
        elif self.missing_seen:
            shown[0] = f"missing or {shown[0]}"
        return shown + [f"= {show_number(value)}" for value in self.special]


@dataclass(frozen=True)
class Groups:
    """Parts of a categorical column: ``part_of[k]`` for category k, the last for missing.

    ``default`` takes texts that were not there at fit; ``missing_seen`` says whether missing cells
    were.
    """

    categories: tuple[str, ...]
    part_of: Codes
    n_parts: int
    default: int
    missing_seen: bool = False

    def codes(self, columns: Sequence[NDArray[Any]]) -> Codes:
        values = np.asarray(columns[0])
        if values.dtype.kind not in "iu":
            values = self._codes_of_texts(values)
        lookup = np.append(self.part_of, np.int32(self.default))
        # MISSING = -1 and UNSEEN = -2 index the lookup from its end: order default, missing
        lookup[[-1, -2]] = lookup[[-2, -1]]
        return np.asarray(lookup[values], dtype=np.int32)

    def _codes_of_texts(self, values: NDArray[Any]) -> NDArray[np.int64]:
        place = self._place
        return np.array(
            [
                MISSING if v is None or v != v else place.get(str(v), MISSING - 1)
                for v in values.tolist()
            ],
            dtype=np.int64,
        )

    @cached_property
    def _place(self) -> dict[str, int]:
        return {text: k for k, text in enumerate(self.categories)}

    def members(self) -> list[tuple[str | None, ...]]:
        """Texts of each group; None stands for missing."""
        groups: list[list[str | None]] = [[] for _ in range(self.n_parts)]
        for text, part in zip(self.categories, self.part_of[:-1], strict=True):
            groups[part].append(text)
        if self.missing_seen:
            groups[self.part_of[-1]].append(None)
        return [tuple(group) for group in groups]

    def labels(self, names: Sequence[str] = ()) -> list[str]:
        shown = []
        for part, group in enumerate(self.members()):
            texts = ["missing" if text is None else text for text in group]
            if part == self.default and self.n_parts > 1:
                texts.append("other")
            if len(texts) > 6:
                texts = [*texts[:4], f"... {len(texts) - 5} more", texts[-1]]
            shown.append(", ".join(texts))
        return shown


Side = Intervals | Groups


@dataclass(frozen=True)
class Grid:
    """Cells of two partitioned columns, row by row."""

    sides: tuple[Side, Side]

    @property
    def shape(self) -> tuple[int, int]:
        return self.sides[0].n_parts, self.sides[1].n_parts

    @property
    def n_parts(self) -> int:
        return self.shape[0] * self.shape[1]

    def codes(self, columns: Sequence[NDArray[Any]]) -> Codes:
        first, second = (side.codes([x]) for side, x in zip(self.sides, columns, strict=True))
        return first * np.int32(self.shape[1]) + second

    def labels(self, names: Sequence[str] = ()) -> list[str]:
        first, second = (side.labels() for side in self.sides)
        a, b = names or ("first", "second")
        return [f"{a}: {x} & {b}: {y}" for x in first for y in second]


@dataclass(frozen=True)
class Rules:
    """Leaves of a small tree. Node t sends a row left when its code in column ``column[t]`` is at
    most ``threshold[t]``; ``column[t] = -1`` marks a leaf, whose part is ``part[t]``.

    ``ladders[c]`` gives the codes of column c: parts in the order that the tree cuts.
    """

    ladders: tuple[Side, ...]
    column: NDArray[np.int64]
    threshold: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    part: NDArray[np.int64]

    @property
    def n_parts(self) -> int:
        return int(self.part.max()) + 1

    def codes(self, columns: Sequence[NDArray[Any]]) -> Codes:
        if not self.ladders:
            return np.zeros(len(columns[0]), dtype=np.int32)
        steps = np.stack(
            [side.codes([x]) for side, x in zip(self.ladders, columns, strict=True)], axis=1
        )
        node = np.zeros(len(steps), dtype=np.int64)
        moving = np.arange(len(steps))
        while len(moving):
            t = node[moving]
            column = self.column[t]
            if (column < 0).any():
                inner = column >= 0
                moving, t, column = moving[inner], t[inner], column[inner]
            goes_left = steps[moving, column] <= self.threshold[t]
            node[moving] = np.where(goes_left, self.left[t], self.right[t])
        return self.part[node].astype(np.int32)

    def labels(self, names: Sequence[str] = ()) -> list[str]:
        out = [""] * self.n_parts
        names = names or [f"column {c}" for c in range(len(self.ladders))]
        for part, limits in self._leaves():
            rules = []
            for c, (low, high) in sorted(limits.items()):
                rules.append(f"{names[c]}: {_span_label(self.ladders[c], low, high)}")
            out[part] = " & ".join(rules) or "all"
        return out

    def _leaves(self) -> list[tuple[int, dict[int, tuple[int, int]]]]:
        """Part and code range (inclusive) per column of every leaf."""
        found = []
        stack: list[tuple[int, dict[int, tuple[int, int]]]] = [(0, {})]
        while stack:
            t, limits = stack.pop()
            c = int(self.column[t])
            if c < 0:
                found.append((int(self.part[t]), limits))
                continue
            low, high = limits.get(c, (0, self.ladders[c].n_parts - 1))
            cut = int(self.threshold[t])
            stack.append((int(self.left[t]), {**limits, c: (low, min(high, cut))}))
            stack.append((int(self.right[t]), {**limits, c: (max(low, cut + 1), high)}))
        return found


def _span_label(side: Side, low: int, high: int) -> str:
    if isinstance(side, Groups):
        texts = [
            "missing" if text is None else text
            for group in side.members()[low : high + 1]
            for text in group
        ]
        more = [f"... {len(texts) - 5} more"] if len(texts) > 6 else []
        return ", ".join(texts[:5] + more if more else texts)
    shown = side.labels()
    if side.missing_alone and low == 0:
        if high == 0:
            return "missing"
        return f"missing or (-inf, {shown[high].split(', ')[1]}"
    start = shown[low].split(", ")[0].replace("missing or ", "")
    prefix = "missing or " if shown[low].startswith("missing or ") else ""
    return f"{prefix}{start}, {shown[high].split(', ')[1]}"


Cells = Intervals | Groups | Grid | Rules
