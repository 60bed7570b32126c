"""One term of a fitted form as one CASE, with the arithmetic of Python in Python's order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laconic.data.axes import Axis, CategoryAxis, IntervalAxis, KnotAxis
from laconic.estimators.forms import LineTerm, SlotTerm, Term
from laconic.estimators.rule_terms import RulesTerm
from laconic.export.parts import Parts
from laconic.export.sql_dialects import Dialect

Floats = NDArray[np.float64]
ValueOf = Callable[[int], str]
"""The SQL text of the value in a slot."""


@dataclass(frozen=True)
class TermWriter:
    """Writes terms for one dialect; ``cell`` maps a column to the name of its cleaned cell."""

    dialect: Dialect
    parts: Parts
    cell: dict[str, str]

    def write(self, term: Term, k: int) -> str:
        """The contribution of ``term`` to score ``k``."""
        if isinstance(term, LineTerm):
            return self.dialect.to_float(self._line(term, k))
        if isinstance(term, RulesTerm):
            return self.dialect.to_float(self._node(term, k, 0))
        return self.dialect.to_float(self._slots(term, k))

    def _node(self, term: RulesTerm, k: int, t: int) -> str:
        """What a row at node ``t`` of a tree reads."""
        c = int(term.column[t])
        if c < 0:
            return self.dialect.float(float(term.values[t, k]))
        rank = self._on_axis(
            term.axes[c], term.columns[c], lambda slot: str(int(term.ranks[c][slot]))
        )
        left = self._node(term, k, int(term.left[t])).replace("\0", "\0  ")
        right = self._node(term, k, int(term.right[t])).replace("\0", "\0  ")
        rank = rank.replace("\0", "\0  ")
        return f"CASE\0  WHEN {rank} <= {int(term.threshold[t])} THEN {left}\0  ELSE {right}\0END"

    def _line(self, term: LineTerm, k: int) -> str:
        assert term.missing is not None
        x, number = self.cell[term.column], self.dialect.float
        distance = f"({x} - {number(term.origin)})" if term.origin else x
        missing, slope = number(term.missing[k]), number(term.slope[k])
        return f"CASE WHEN {x} IS NULL THEN {missing} ELSE {distance} * {slope} END"

    def _slots(self, term: SlotTerm, k: int) -> str:
        values = term.values[..., k]
        first = term.axes[0]
        if len(term.axes) == 1:
            return self._on_axis(
                first, term.columns[0], lambda slot: self.dialect.float(float(values[slot]))
            )
        second, across = term.axes[1], term.columns[1]
        return self._on_axis(
            first,
            term.columns[0],
            lambda row: self._on_axis(
                second, across, lambda slot: self.dialect.float(float(values[row, slot]))
            ),
        )

    def _on_axis(self, axis: Axis, column: str, value: ValueOf) -> str:
        """A CASE over the slots of ``axis``, each branch the value that a row there reads."""
        if isinstance(axis, CategoryAxis):
            if self.parts.kind(column) != "categorical":  # a column without a value at fit
                return value(axis.missing)
            branches = self._categories(axis, column, value)
        elif isinstance(axis, IntervalAxis):
            branches = self._intervals(axis, column, value)
        else:
            branches = self._knots(axis, column, value)
        x = self.cell[column]
        lines = [f"WHEN {x} IS NULL THEN {value(axis.missing)}"]
        for condition, result in branches:
            lines.append(f"WHEN {condition} THEN {result}" if condition else f"ELSE {result}")
        inner = "\0".join(lines).replace("\0", "\0  ")
        return f"CASE\0  {inner}\0END"

    def _categories(
        self, axis: CategoryAxis, column: str, value: ValueOf
    ) -> Iterator[tuple[str, str]]:
        known = set(self.parts.categories(column))
        texts: dict[int, list[str]] = {}
        for text, slot in axis.slot_of().items():
            literal = self.dialect.compared(text)
            # a text that the training rows did not have reads as any other
            if text in known and literal is not None:
                texts.setdefault(slot, []).append(literal)
        for slot, literals in sorted(texts.items()):
            if len(literals) == 1:
                yield f"{self.cell[column]} = {literals[0]}", value(slot)
            else:
                yield f"{self.cell[column]} IN ({', '.join(literals)})", value(slot)
        yield "", value(axis.other)

    def _intervals(
        self, axis: IntervalAxis, column: str, value: ValueOf
    ) -> Iterator[tuple[str, str]]:
        x, number, n = self.cell[column], self.dialect.float, len(axis.bounds)
        for s, special in enumerate(axis.specials):
            yield f"{x} = {number(special)}", value(n + 1 + s)
        for slot, bound in enumerate(axis.bounds):
            yield f"{x} <= {number(bound)}", value(slot)
        yield "", value(n)

    def _knots(self, axis: KnotAxis, column: str, value: ValueOf) -> Iterator[tuple[str, str]]:
        x, number, n = self.cell[column], self.dialect.float, len(axis.knots)
        for s, special in enumerate(axis.specials):
            yield f"{x} = {number(special)}", value(n + s)
        if n > 1:
            yield f"{x} <= {number(axis.knots[0])}", value(0)
            for i in range(n - 1):
                way = self._way(x, float(axis.knots[i]), float(axis.knots[i + 1]))
                between = f"({number(1.0)} - {way}) * {value(i)} + {way} * {value(i + 1)}"
                yield f"{x} < {number(axis.knots[i + 1])}", between
        yield "", value(n - 1)

    def _way(self, x: str, low: float, high: float) -> str:
        """How far x lies from one knot to the next."""
        number = self.dialect.float
        with np.errstate(over="ignore"):
            gap = float(np.float64(high) - np.float64(low))
        if np.isinf(gap):  # two knots at the two ends of the float range
            half = number(0.5)
            width = number(0.5 * high - 0.5 * low)
            return f"(({half} * {x} - {number(0.5 * low)}) / {width})"
        distance = f"({x} - {number(low)})" if low else x
        return f"({distance} / {number(gap)})"
