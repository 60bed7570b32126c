"""One term of a fitted form as one CASE, with the arithmetic of Python in Python's order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from laconic.core.forms import (
    MOST_VOTE,
    AdditiveScore,
    LineTerm,
    RulesTerm,
    SlotTerm,
    Term,
    probabilities,
)
from laconic.data.tables.axes import Axis, CategoryAxis, IntervalAxis, KnotAxis
from laconic.export.parts import DecisionRule, Parts
from laconic.export.sql_dialects import Dialect

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
        written = self._slots(term, k)
        return written if self.whole else self.dialect.to_float(written)

    @property
    def whole(self) -> bool:
        """Whether the terms are whole points, which are added up as integers."""
        return self.parts.form.link == "points"

    def _value(self, value: float) -> str:
        return str(int(value)) if self.whole else self.dialect.float(float(value))

    def _node(self, term: RulesTerm, k: int, t: int) -> str:
        """What a row at node ``t`` of a tree reads."""
        c = int(term.column[t])
        if c < 0:
            return self.dialect.float(float(term.values[t, k]))
        left = self._node(term, k, int(term.left[t])).replace("\0", "\0  ")
        right = self._node(term, k, int(term.right[t])).replace("\0", "\0  ")
        goes_left = self._goes_left(term, c, int(term.threshold[t]))
        return f"CASE\0  WHEN {goes_left} THEN {left}\0  ELSE {right}\0END"

    def _goes_left(self, term: RulesTerm, c: int, threshold: int) -> str:
        """The condition of a node; a comparison with NULL is not true."""
        axis, name, ranks = term.axes[c], term.columns[c], term.ranks[c]
        left = ranks <= threshold
        if isinstance(axis, IntervalAxis) and not axis.specials:
            numbers, n = left[: len(axis.bounds) + 1], int(left[: len(axis.bounds) + 1].sum())
            if 0 < n < len(numbers) and numbers[:n].all():
                x = self.cell[name]
                below = f"{x} <= {self.dialect.float(float(axis.bounds[n - 1]))}"
                return f"({x} IS NULL OR {below})" if left[axis.missing] else below
        rank = self._on_axis(axis, name, lambda slot: str(int(ranks[slot])))
        return f"{rank} <= {threshold}".replace("\0", "\0  ")

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
            return self._on_axis(first, term.columns[0], lambda slot: self._value(values[slot]))
        second, across = term.axes[1], term.columns[1]
        return self._on_axis(
            first,
            term.columns[0],
            lambda row: self._on_axis(second, across, lambda slot: self._value(values[row, slot])),
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
                fraction = self._fraction(x, float(axis.knots[i]), float(axis.knots[i + 1]))
                between = f"({number(1.0)} - {fraction}) * {value(i)} + {fraction} * {value(i + 1)}"
                yield f"{x} < {number(axis.knots[i + 1])}", between
        yield "", value(n - 1)

    def _fraction(self, x: str, low: float, high: float) -> str:
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


# From scores to probabilities in SQL, step by step; see :mod:`laconic.core.forms`.
#
# No step takes the exponential of a large positive number, so none overflows.


@dataclass
class Steps:
    """A chain of named sub-queries, each reading the one before it.

    ``carried`` are the columns that every step hands on.
    """

    dialect: Dialect
    prefix: str
    carried: tuple[str, ...] = ()
    done: list[str] = field(default_factory=list)
    last: str = ""

    def add(self, name: str, columns: Mapping[str, str], *, alias: str = "") -> None:
        """A step with ``columns``: name -> expression over the columns of the step before.

        ``alias`` is what the expressions call that step.
        """
        source = f"{self.last} AS {alias}" if alias else self.last
        self.add_body(
            name, self.select({**{kept: kept for kept in self.carried}, **columns}, source)
        )

    def add_body(self, name: str, body: str) -> None:
        self.last = f"{self.prefix}{len(self.done) + 1}_{name}"
        indented = "  " + body.replace("\0", "\0  ")
        self.done.append(self.dialect.step.format(name=self.last, body=indented))

    @staticmethod
    def select(columns: Mapping[str, str], source: str) -> str:
        shown = [
            expression if expression == name else f"{expression} AS {name}"
            for name, expression in columns.items()
        ]
        return "SELECT\0  " + ",\0".join(shown).replace("\0", "\0  ") + f"\0FROM {source}"

    def carry(self, names: Sequence[str]) -> None:
        self.carried = (*self.carried, *names)


def numbered(letter: str, n: int) -> list[str]:
    return [f"{letter}_{k + 1}" for k in range(n)]


def total(names: Sequence[str]) -> str:
    return " + ".join(names)


def write_probabilities(steps: Steps, form: AdditiveScore) -> None:
    """Steps from the columns s_1, s_2, ... to p_1, ..., p_K."""
    n_classes = len(form.classes)
    if form.link == "logit":
        _sigmoids(steps, ["s_1"])
        steps.add("probabilities", {"p_1": "low_1", "p_2": "high_1"})
    elif form.link == "softmax":
        _softmax(steps, n_classes)
    elif form.link == "ovr":
        _log_sigmoids(steps, n_classes)
        _softmax(steps, n_classes)
    elif form.link == "points":
        _of_totals(steps, form)
    else:
        _votes(steps, form)
    if form.smoothing:
        share, whole = form.smoothing / n_classes, 1.0 + form.smoothing
        number = steps.dialect.float
        smooth = {p: f"({p} + {number(share)}) / {number(whole)}" for p in numbered("p", n_classes)}
        steps.add("smoothed", smooth)


def write_clip(steps: Steps, clip: tuple[float, float] | None) -> None:
    """A step that bounds the probability of the last of two classes."""
    if clip is None:
        return
    low, high = (steps.dialect.float(bound) for bound in clip)
    last = f"CASE WHEN p_2 < {low} THEN {low} WHEN p_2 > {high} THEN {high} ELSE p_2 END"
    steps.add("clipped", {"p_2": last})
    steps.add("complement", {"p_1": f"{steps.dialect.float(1.0)} - p_2", "p_2": "p_2"})


def _sigmoids(steps: Steps, scores: Sequence[str]) -> None:
    """high_k = 1 / (1 + exp(-s_k)) and low_k = 1 / (1 + exp(s_k))."""
    one = steps.dialect.float(1.0)
    exps = numbered("e", len(scores))
    minus = {e: steps.dialect.exp.format(f"-ABS({s})") for e, s in zip(exps, scores, strict=True)}
    steps.add("exponentials", {**{s: s for s in scores}, **minus})
    found = {}
    for k, (s, e) in enumerate(zip(scores, exps, strict=True), 1):
        near, far = f"{one} / ({one} + {e})", f"{e} / ({one} + {e})"
        found[f"low_{k}"] = f"CASE WHEN {s} < 0 THEN {near} ELSE {far} END"
        found[f"high_{k}"] = f"CASE WHEN {s} < 0 THEN {far} ELSE {near} END"
    steps.add("sigmoids", found)


def _of_totals(steps: Steps, form: AdditiveScore) -> None:
    """The probabilities of each total, as literals: nothing is left to compute."""
    totals = np.array([[total] for total, _ in form.calibration or ()])
    proba = probabilities(totals, "points", 0.0, form.calibration)
    found = {}
    for k in range(2):
        lines = [
            f"WHEN s_1 <= {int(total[0])} THEN {steps.dialect.float(float(own))}"
            for total, own in zip(totals[:-1], proba[:-1, k], strict=True)
        ]
        last = steps.dialect.float(float(proba[-1, k]))
        found[f"p_{k + 1}"] = "\0  ".join(["CASE", *lines, f"ELSE {last}"]) + "\0END"
        if not lines:
            found[f"p_{k + 1}"] = last
    steps.add("probabilities", found)


def _log_sigmoids(steps: Steps, n_classes: int) -> None:
    one, zero = steps.dialect.float(1.0), steps.dialect.float(0.0)
    logs = {}
    for s in numbered("s", n_classes):
        tail = steps.dialect.log.format(f"{one} + {steps.dialect.exp.format(f'-ABS({s})')}")
        logs[s] = f"CASE WHEN {s} < 0 THEN {s} ELSE {zero} END - {tail}"
    steps.add("log_sigmoids", logs)


def _softmax(steps: Steps, n_classes: int) -> None:
    scores, exps = numbered("s", n_classes), numbered("e", n_classes)
    steps.add("largest", {**{s: s for s in scores}, "s_top": steps.dialect.largest(scores)})
    powers = {
        e: steps.dialect.exp.format(f"{s} - s_top") for e, s in zip(exps, scores, strict=True)
    }
    steps.add("exponentials", powers)
    steps.add("totals", {**{e: e for e in exps}, "whole": total(exps)})
    shares = {p: f"{e} / whole" for p, e in zip(numbered("p", n_classes), exps, strict=True)}
    steps.add("probabilities", shares)


def _votes(steps: Steps, form: AdditiveScore) -> None:
    number, n = steps.dialect.float, form.n_scores
    scores, highs = numbered("s", n), numbered("high", n)
    grain = number(1e12)
    edge = MOST_VOTE if form.calibration is not None else 1.0
    # kept inside first: a rounded vote is then inside too, and no product overflows
    steps.add("votes", {s: _clipped(s, edge, steps.dialect) for s in scores})
    rounded = {s: f"{steps.dialect.round.format(f'{s} * {grain}')} / {grain}" for s in scores}
    steps.add("rounded", rounded)
    one, two = number(1.0), number(2.0)
    if form.calibration is None:
        shares = {h: f"({one} + {s}) / {two}" for h, s in zip(highs, scores, strict=True)}
        steps.add("shares", shares)
    else:
        odds = {}
        for s, (slope, intercept) in zip(scores, form.calibration, strict=True):
            log_odds = steps.dialect.log.format(f"({one} + {s}) / ({one} - {s})")
            odds[s] = f"{log_odds} * {number(slope)} + {number(intercept)}"
        steps.add("log_odds", odds)
        _sigmoids(steps, scores)
    if n == 1:
        steps.add("probabilities", {"p_1": f"{one} - high_1", "p_2": "high_1"})
        return
    steps.add("totals", {**{h: h for h in highs}, "whole": total(highs)})
    nothing, equal = number(1e-9), number(1.0 / n)
    normalised = {
        p: f"CASE WHEN whole > {nothing} THEN {h} / whole ELSE {equal} END"
        for p, h in zip(numbered("p", n), highs, strict=True)
    }
    steps.add("probabilities", normalised)


def _clipped(x: str, edge: float, dialect: Dialect) -> str:
    high, low = dialect.float(edge), dialect.float(-edge)
    return f"CASE WHEN {x} > {high} THEN {high} WHEN {x} < {low} THEN {low} ELSE {x} END"


def write_prior(steps: Steps, rule: DecisionRule) -> None:
    """Steps from p_1, ... to the probabilities under the class mix of deployment."""
    ratio = rule.prior_ratio
    if ratio is None:
        return
    assert rule.prior is not None
    number = steps.dialect.float
    names, weights = numbered("p", rule.n_classes), numbered("w", rule.n_classes)
    # exact, and PostgreSQL would report an underflow
    weighted = {
        w: f"{p} * {number(r)}" if 0 < r < 1 else (p if r else number(0.0))
        for w, p, r in zip(weights, names, ratio.tolist(), strict=True)
    }
    steps.add("weighted", {w: steps.dialect.to_float(text) for w, text in weighted.items()})
    steps.add("weighted_totals", {**{w: w for w in weights}, "whole": total(weights)})
    corrected = {
        p: f"CASE WHEN whole = 0 THEN {number(share)} ELSE {w} / whole END"
        for p, w, share in zip(names, weights, rule.prior.tolist(), strict=True)
    }
    steps.add("corrected", corrected)


def write_costs(steps: Steps, rule: DecisionRule) -> None:
    """A step that adds c_1, ..., c_K, the expected costs, and ``c_least``, to p_1, ..., p_K."""
    names, costs = numbered("p", rule.n_classes), numbered("c", rule.n_classes)
    found = {}
    for d, c in enumerate(costs):
        charged = [
            p if cost == 1 else f"{p} * {steps.dialect.float(cost)}"
            for p, cost in zip(names, rule.costs[:, d].tolist(), strict=True)
            if cost
        ]
        found[c] = total(charged) if charged else steps.dialect.to_float(steps.dialect.float(0.0))
    steps.add("costs", {**{p: p for p in names}, **found})
    kept = {name: name for name in (*names, *costs)}
    steps.add("least_cost", {**kept, "c_least": steps.dialect.smallest(costs)})


def chosen(rule: DecisionRule, results: Sequence[str], rejected: str, dialect: Dialect) -> str:
    """A CASE that gives the result of the decision: the first class of least cost."""
    lines = []
    if rule.reject_cost is not None:
        lines.append(f"WHEN c_least > {dialect.float(rule.reject_cost)} THEN {rejected}")
    lines += [
        f"WHEN c_{d} <= c_least THEN {result}" for d, result in enumerate(results[:-1], start=1)
    ]
    return "CASE\0  " + "\0  ".join([*lines, f"ELSE {results[-1]}"]) + "\0END"
