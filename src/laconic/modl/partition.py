"""A fitted partition: which part a value falls in, the class weights there, what that is worth.

Parts are cells of one of four kinds: intervals, groups, grids and rules. Every kind has
``n_parts``, ``codes(columns)`` for columns as a :class:`~laconic.data.tables.columns.Table` holds
them (floats with NaN, or category codes), and ``labels(names)``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.core.drawing import frame_of
from laconic.data.tables.columns import MISSING, Table
from laconic.modl.criterion import Costs, level_of

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

    bounds: Floats
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

    def _codes_of_texts(self, values: NDArray[Any]) -> Ints:
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
    column: Ints
    threshold: Ints
    left: Ints
    right: Ints
    part: Ints

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
_KINDS: dict[type, str] = {
    Intervals: "numeric",
    Groups: "categorical",
    Grid: "pair",
    Rules: "tree",
}


@dataclass(frozen=True)
class Partition:
    """Parts of one variable (a column, or one built from several).

    Attributes
    ----------
    name : str
    column_names : tuple of str
        Columns that the codes are computed from: one, two for a pair, several for a tree.
    columns : tuple of int
        Their places in the training table.
    cells : Intervals, Groups, Grid or Rules
    classes : ndarray of shape (n_classes,)
    class_weights : ndarray of shape (n_parts, n_classes)
        Weight of each class in each part.
    costs, null_costs : Costs
        Description length of the partition and of the single part, in nats.
    granularity : int
        The granularity that the prior was paid for (0 for one part).
    exact : bool
        Whether the partition is proven optimal.
    gap : float
        Bound on how far the cost is above the least one.
    """

    name: str
    column_names: tuple[str, ...]
    columns: tuple[int, ...]
    cells: Cells
    classes: NDArray[Any]
    class_weights: Floats
    costs: Costs
    null_costs: Costs
    granularity: int = 0
    exact: bool = False
    gap: float = 0.0

    @property
    def kind(self) -> str:
        """ "numeric", "categorical", "pair" or "tree"."""
        return _KINDS[type(self.cells)]

    @property
    def n_parts(self) -> int:
        return len(self.class_weights)

    @property
    def construction_cost(self) -> float:
        return self.costs.construction

    @property
    def preparation_cost(self) -> float:
        return self.costs.preparation

    @property
    def data_cost(self) -> float:
        return self.costs.data

    @property
    def cost(self) -> float:
        """construction + preparation + data."""
        return self.costs.total

    @property
    def null_cost(self) -> float:
        return self.null_costs.total

    @property
    def level(self) -> float:
        """1 - cost / null cost, at least 0."""
        return level_of(self.cost, self.null_cost)

    @property
    def informative(self) -> bool:
        return self.n_parts > 1 and self.cost < self.null_cost

    @property
    def bounds(self) -> Floats:
        """Cut points of a numeric column; a value equal to a cut belongs below it."""
        if not isinstance(self.cells, Intervals):
            raise AttributeError(f"{self.name!r} has no bounds: it is a {self.kind} partition.")
        return self.cells.bounds

    @property
    def groups(self) -> list[tuple[str | None, ...]]:
        """Texts of each group of a categorical column; None stands for missing."""
        if not isinstance(self.cells, Groups):
            raise AttributeError(f"{self.name!r} has no groups: it is a {self.kind} partition.")
        return self.cells.members()

    @property
    def labels(self) -> list[str]:
        """One readable text per part."""
        return self.cells.labels(self.column_names)

    def codes(self, *column_values: Any) -> Codes:
        """Part of each row, from the values of the partition's column (or columns, in order).

        Numeric values are floats with NaN for missing; categorical ones are texts, or the integer
        codes of a :class:`~laconic.data.tables.columns.Table`.
        """
        if len(column_values) != len(self.columns):
            names = ", ".join(self.column_names)
            raise ValueError(
                f"{self.name!r} needs the values of {len(self.columns)} columns ({names}), got "
                f"{len(column_values)}."
            )
        return self.cells.codes([np.asarray(values) for values in column_values])

    def conditional_log_probabilities(self) -> Floats:
        """ln P(part | class), shape (n_parts, n_classes).

        P(i | j) = (n_ij + e) / (N_j + I e), with e = 1 / (N + 1).
        """
        e = 1.0 / (self.class_weights.sum() + 1.0)
        per_class = self.class_weights.sum(axis=0)
        return np.asarray(np.log((self.class_weights + e) / (per_class + self.n_parts * e)))

    def class_rates(self) -> Floats:
        """Share of each class in each part (the overall share where a part is empty)."""
        overall = self.class_weights.sum(axis=0) / self.class_weights.sum()
        weight = self.class_weights.sum(axis=1, keepdims=True)
        return np.asarray(
            np.where(weight > 0, self.class_weights / np.maximum(weight, 1e-300), overall)
        )

    def interest(self) -> Floats:
        """Share of each part in the mutual information of part and class (0 for one part)."""
        joint = self.class_weights / self.class_weights.sum()
        expected = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
        ratio = np.divide(joint, expected, out=np.ones_like(joint), where=joint > 0)
        own = (joint * np.log(ratio)).sum(axis=1)
        total = own.sum()
        return np.asarray(own / total) if total > 0 else np.zeros(self.n_parts)

    def to_frame(self) -> Any:
        """One row per part: label, weights, class rates, share of the information.

        A pandas frame when pandas is installed, a dict of columns otherwise.
        """
        weight = self.class_weights.sum(axis=1)
        columns: dict[str, Any] = {"part": np.arange(self.n_parts), "label": self.labels}
        columns |= {"weight": weight, "coverage": weight / weight.sum()}
        for name, own, rate in zip(
            self.classes, self.class_weights.T, self.class_rates().T, strict=True
        ):
            columns[f"weight {name}"] = own
            columns[f"rate {name}"] = rate
        return frame_of(columns | {"interest": self.interest()})

    def plot(self, ax: Any = None) -> Any:
        """Class rates per part with confidence bars; returns the display."""
        from laconic.modl.displays import PartitionDisplay  # loaded only when one is drawn

        return PartitionDisplay.from_partition(self).plot(ax=ax)

    def __str__(self) -> str:
        proof = "proven optimal" if self.exact else "not proven optimal"
        head = (
            f"{self.name}: {self.n_parts} parts, level {self.level:.6g}, cost {self.cost:.2f} "
            f"against {self.null_cost:.2f} for one part ({proof})"
        )
        rates = self.class_rates()
        lines = [
            f"  {label}: "
            + ", ".join(f"{name} {rate:.3g}" for name, rate in zip(self.classes, row, strict=True))
            for label, row in zip(self.labels, rates, strict=True)
        ]
        return "\n".join([head, *lines])


def code_matrix(table: Table, partitions: Sequence[Partition], dtype: Any = None) -> NDArray[Any]:
    """Part of every row in every partition, shape (n_rows, n_partitions).

    Without ``dtype``, in the smallest unsigned integers that hold them.
    """
    if dtype is None:
        dtype = np.min_scalar_type(max((p.n_parts for p in partitions), default=1) - 1)
    out = np.empty((table.n_rows, len(partitions)), dtype=dtype)
    for k, partition in enumerate(partitions):
        out[:, k] = partition.codes(*(table.column(j) for j in partition.columns))
    return out


def by_content(partition: Partition) -> tuple[int, bytes, str]:
    """A key to sort variables by what they say of the classes; by name where they say the same."""
    return partition.n_parts, partition.class_weights.tobytes(), partition.name
