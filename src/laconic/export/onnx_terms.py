"""The operators of a fitted form: terms, links, class mix, costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

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
from laconic.data.tables.columns import shown
from laconic.export.parts import DecisionRule, NotExportableError, Parts, uniform_labels

INT64, DOUBLE = 7, 11
"""Numbers of the tensor types in the ONNX standard."""


class Graph(Protocol):
    """Where operators are written to; both methods return the name of what they made."""

    def node(self, op: str, *inputs: str, output: str = "", domain: str = "", **more: Any) -> str:
        """One operator with one output."""

    def constant(self, values: NDArray[Any]) -> str:
        """One constant tensor."""


def write_model(
    graph: Graph, parts: Parts, cells: dict[str, str], missing_text: str
) -> tuple[str, str]:
    """The names of the decision, (rows,), and of the probabilities, (rows, classes).

    ``cells`` names the tensor of each column, in any shape with one value for each row.
    """
    flat = graph.constant(np.array([-1]))
    columns = {name: graph.node("Reshape", cell, flat) for name, cell in cells.items()}
    writer = _Terms(graph, parts, columns, missing_text)
    score = writer.start()
    for term in parts.form.terms:
        score = graph.node("Add", score, writer.write(term))
    proba = _clipped(graph, parts.clip, _probabilities(graph, parts.form, score))
    proba = _corrected(graph, parts.rule, proba)
    return _decision(graph, parts.rule, proba), proba


@dataclass(frozen=True)
class _Terms:
    graph: Graph
    parts: Parts
    columns: dict[str, str]
    missing_text: str

    def start(self) -> str:
        """The intercept, once for each row."""
        intercept = self.parts.form.intercept
        if self.columns:
            any_column = next(iter(self.columns.values()))
            rows = self.graph.node("Shape", any_column)
            one = self.graph.constant(np.array([1]))
            shape = self.graph.node("Concat", rows, one, axis=0)
            return self.graph.node("Expand", self._number(intercept[None, :]), shape)
        raise NotExportableError("The model reads no column: its probabilities are constants.")

    def _number(self, values: Any) -> str:
        return self.graph.constant(np.array(values, dtype=np.float64))

    def write(self, term: Term) -> str:
        """The contribution of a term, (rows, scores)."""
        if isinstance(term, LineTerm):
            return self._line(term)
        if isinstance(term, RulesTerm):
            return self._tree(term)
        return self._slots(term)

    def _line(self, term: LineTerm) -> str:
        g, x = self.graph, self.columns[term.column]
        gone = g.node("IsNaN", x)
        known = g.node("Where", gone, self._number(term.origin), x)
        distance = self._upright(g.node("Sub", known, self._number(term.origin)))
        product = g.node("Mul", distance, self._number(term.slope))
        assert term.missing is not None
        return g.node("Where", self._upright(gone), self._number(term.missing[None, :]), product)

    def _upright(self, vector: str) -> str:
        return self.graph.node("Reshape", vector, self.graph.constant(np.array([-1, 1])))

    def _tree(self, term: RulesTerm) -> str:
        g = self.graph
        codes = []
        for name, axis, ranks in zip(term.columns, term.axes, term.ranks, strict=True):
            slot, _ = self._encode(axis, name)
            codes.append(self._upright(g.node("Gather", g.constant(ranks), slot, axis=0)))
        found: dict[int, str] = {}
        for t in reversed(range(len(term.column))):  # children come after their parent
            if term.column[t] < 0:
                found[t] = self._number(term.values[t][None, :])
                continue
            limit = g.constant(np.array(int(term.threshold[t])))
            left = g.node("LessOrEqual", codes[int(term.column[t])], limit)
            found[t] = g.node("Where", left, found[int(term.left[t])], found[int(term.right[t])])
        return found[0]

    def _slots(self, term: SlotTerm) -> str:
        slot, fraction = self._encode(term.axes[0], term.columns[0])
        if len(term.axes) == 1:
            return self._between(term.values, slot, fraction, len(term.values))
        g, (n_rows, width) = self.graph, term.values.shape[:2]
        flat = term.values.reshape(n_rows * width, -1)
        across, over = self._encode(term.axes[1], term.columns[1])
        stride = g.constant(np.array(width))

        def row(index: str) -> str:
            start = g.node("Mul", index, stride)
            low = self._at(flat, g.node("Add", start, across))
            if over is None:
                return low
            after = g.node("Add", start, self._next(across, width))
            return self._mixed(low, self._at(flat, after), over)

        low = row(slot)
        return (
            low if fraction is None else self._mixed(low, row(self._next(slot, n_rows)), fraction)
        )

    def _between(
        self, values: NDArray[np.float64], slot: str, fraction: str | None, size: int
    ) -> str:
        low = self._at(values, slot)
        if fraction is None:
            return low
        return self._mixed(low, self._at(values, self._next(slot, size)), fraction)

    def _at(self, values: NDArray[np.float64], slot: str) -> str:
        return self.graph.node("Gather", self._number(values), slot, axis=0)

    def _next(self, slot: str, size: int) -> str:
        after = self.graph.node("Add", slot, self.graph.constant(np.array(1)))
        return self.graph.node("Min", after, self.graph.constant(np.array(size - 1)))

    def _mixed(self, low: str, high: str, fraction: str) -> str:
        g = self.graph
        rest = g.node("Sub", self._number(1.0), fraction)
        return g.node("Add", g.node("Mul", rest, low), g.node("Mul", fraction, high))

    def _encode(self, axis: Axis, name: str) -> tuple[str, str | None]:
        """Slot of each row, (rows,), and how far it lies towards the next, (rows, 1)."""
        if isinstance(axis, CategoryAxis):
            return self._categories(axis, name), None
        if isinstance(axis, IntervalAxis):
            x = self.columns[name]
            slot = self._count("Less", axis.bounds, x)
            slot = self._special(slot, x, axis.specials, len(axis.bounds) + 1)
            return self._unless_missing(slot, x, axis.missing), None
        return self._knots(axis, self.columns[name])

    def _categories(self, axis: CategoryAxis, name: str) -> str:
        g, x = self.graph, self.columns[name]
        if self.parts.kind(name) != "categorical":  # a column without a value at fit
            missing = g.constant(np.array(axis.missing))
            return g.node("Where", g.node("IsNaN", x), missing, missing)
        known = self.parts.categories(name)
        if self.missing_text in known:
            raise NotExportableError(
                f"missing_text {self.missing_text!r} is a category of column {shown(name)}; "
                "choose another text for missing values."
            )
        slots = {text: slot for text, slot in axis.slot_of().items() if text in known}
        for word, meant in self.parts.spellings(name):
            for text in (word, word.upper(), word.capitalize()):
                slots.setdefault(text, slots.get(meant, axis.other))
        slots[self.missing_text] = axis.missing
        return g.node(
            "LabelEncoder",
            x,
            domain="ai.onnx.ml",
            keys_strings=list(slots),
            values_int64s=list(slots.values()),
            default_int64=axis.other,
        )

    def _count(self, comparison: str, bounds: NDArray[np.float64], x: str) -> str:
        """How many bounds are below x (or not above, for LessOrEqual)."""
        g = self.graph
        if not len(bounds):
            return g.node("Cast", g.node("IsNaN", x), to=INT64)  # 0 where x is there
        below = g.node(comparison, self._number(bounds[None, :]), self._upright(x))
        whole = g.node("Cast", below, to=INT64)
        return g.node("ReduceSum", whole, g.constant(np.array([1])), keepdims=0)

    def _special(self, slot: str, x: str, specials: Any, first: int) -> str:
        for k, special in enumerate(specials):
            at = self.graph.node("Equal", x, self._number(float(special)))
            slot = self.graph.node("Where", at, self.graph.constant(np.array(first + k)), slot)
        return slot

    def _unless_missing(self, slot: str, x: str, missing: int) -> str:
        gone = self.graph.node("IsNaN", x)
        return self.graph.node("Where", gone, self.graph.constant(np.array(missing)), slot)

    def _knots(self, axis: KnotAxis, x: str) -> tuple[str, str | None]:
        g, n = self.graph, len(axis.knots)
        if n == 1:
            slot = g.node("Mul", self._count("Less", axis.knots, x), g.constant(np.array(0)))
            slot = self._special(slot, x, axis.specials, 1)
            return self._unless_missing(slot, x, axis.missing), None
        first, last = self._number(axis.knots[0]), self._number(axis.knots[-1])
        gone = g.node("IsNaN", x)
        there = g.node("Where", gone, first, x)
        inside = g.node("Min", g.node("Max", there, first), last)
        slot = self._count("LessOrEqual", axis.knots[1:-1], inside)
        with np.errstate(over="ignore"):
            wide = np.isinf(np.diff(axis.knots))
            # two knots at the two ends of the float range are halved, as Python does it
            scale = np.where(wide, 0.5, 1.0)
            low = scale * axis.knots[:-1]
            gap = scale * axis.knots[1:] - low
        scaled = inside
        if wide.any():
            scaled = g.node("Mul", inside, g.node("Gather", self._number(scale), slot, axis=0))
        distance = g.node("Sub", scaled, g.node("Gather", self._number(low), slot, axis=0))
        fraction = g.node("Div", distance, g.node("Gather", self._number(gap), slot, axis=0))
        for special in axis.specials:
            at = g.node("Equal", x, self._number(float(special)))
            fraction = g.node("Where", at, self._number(0.0), fraction)
        fraction = g.node("Where", gone, self._number(0.0), fraction)
        slot = self._special(slot, x, axis.specials, n)
        return self._unless_missing(slot, x, axis.missing), self._upright(fraction)


def _number(graph: Graph, value: Any) -> str:
    return graph.constant(np.array(value, dtype=np.float64))


def _small_exp(g: Graph, score: str) -> str:
    """exp(-|score|), which never overflows."""
    return g.node("Exp", g.node("Neg", g.node("Abs", score)))


def _sigmoid(g: Graph, score: str) -> tuple[str, str]:
    """The sigmoid of -score and of score."""
    one = _number(g, 1.0)
    e = _small_exp(g, score)
    near = g.node("Div", one, g.node("Add", one, e))
    far = g.node("Div", e, g.node("Add", one, e))
    negative = g.node("Less", score, _number(g, 0.0))
    return g.node("Where", negative, near, far), g.node("Where", negative, far, near)


def _column(g: Graph, matrix: str, k: int) -> str:
    return g.node("Gather", matrix, g.constant(np.array([k])), axis=1)


def _row_sum(g: Graph, matrix: str) -> str:
    return g.node("ReduceSum", matrix, g.constant(np.array([1])), keepdims=1)


def _softmax(g: Graph, score: str, n: int) -> str:
    top = g.node("Max", *(_column(g, score, k) for k in range(n)))
    powers = g.node("Exp", g.node("Sub", score, top))
    return g.node("Div", powers, _row_sum(g, powers))


def _probabilities(g: Graph, form: AdditiveScore, score: str) -> str:
    n_classes = len(form.classes)
    if form.link == "logit":
        found = g.node("Concat", *_sigmoid(g, score), axis=1)
    elif form.link == "softmax":
        found = _softmax(g, score, n_classes)
    elif form.link == "ovr":
        tail = g.node("Log", g.node("Add", _number(g, 1.0), _small_exp(g, score)))
        below = g.node("Min", score, _number(g, 0.0))
        found = _softmax(g, g.node("Sub", below, tail), n_classes)
    elif form.link == "points":
        found = _of_totals(g, form, score)
    else:
        found = _votes(g, form, score)
    if form.smoothing:
        raised = g.node("Add", found, _number(g, form.smoothing / n_classes))
        found = g.node("Div", raised, _number(g, 1.0 + form.smoothing))
    return found


def _of_totals(g: Graph, form: AdditiveScore, score: str) -> str:
    totals = np.array([total for total, _ in form.calibration or ()])
    proba = probabilities(totals[:, None], "points", 0.0, form.calibration)
    inside = g.node("Min", g.node("Max", score, _number(g, totals[0])), _number(g, totals[-1]))
    place = g.node("Round", g.node("Sub", inside, _number(g, totals[0])))
    flat = g.node("Reshape", g.node("Cast", place, to=INT64), g.constant(np.array([-1])))
    return g.node("Gather", g.constant(proba), flat, axis=0)


def _votes(g: Graph, form: AdditiveScore, score: str) -> str:
    edge = 1.0 if form.calibration is None else MOST_VOTE
    vote = g.node("Min", g.node("Max", score, _number(g, -edge)), _number(g, edge))
    grain, one = _number(g, 1e12), _number(g, 1.0)
    vote = g.node("Div", g.node("Round", g.node("Mul", vote, grain)), grain)
    if form.calibration is None:
        share = g.node("Div", g.node("Add", one, vote), _number(g, 2.0))
    else:
        slope, intercept = np.array(form.calibration).T
        odds = g.node("Div", g.node("Add", one, vote), g.node("Sub", one, vote))
        line = g.node("Mul", g.node("Log", odds), _number(g, slope))
        share = _sigmoid(g, g.node("Add", line, _number(g, intercept)))[1]
    if form.n_scores == 1:
        return g.node("Concat", g.node("Sub", one, share), share, axis=1)
    total = _row_sum(g, share)
    said = g.node("Less", _number(g, 1e-9), total)
    shares = g.node("Div", share, g.node("Where", said, total, one))
    return g.node("Where", said, shares, _number(g, 1.0 / form.n_scores))


def _clipped(g: Graph, clip: tuple[float, float] | None, proba: str) -> str:
    if clip is None:
        return proba
    last = g.node("Max", _column(g, proba, 1), _number(g, clip[0]))
    last = g.node("Min", last, _number(g, clip[1]))
    return g.node("Concat", g.node("Sub", _number(g, 1.0), last), last, axis=1)


def _corrected(g: Graph, rule: DecisionRule, proba: str) -> str:
    ratio = rule.prior_ratio
    if ratio is None:
        return proba
    weighted = g.node("Mul", proba, _number(g, ratio))
    total = _row_sum(g, weighted)
    none = g.node("Equal", total, _number(g, 0.0))
    shares = g.node("Div", weighted, g.node("Where", none, _number(g, 1.0), total))
    return g.node("Where", none, _number(g, np.asarray(rule.prior)[None, :]), shares)


def _decision(g: Graph, rule: DecisionRule, proba: str) -> str:
    """Classes are summed one after another, as Python does it, so that ties stay ties."""
    costs = ""
    for k in range(rule.n_classes):
        charged = g.node("Mul", _column(g, proba, k), _number(g, rule.costs[k][None, :]))
        costs = g.node("Add", costs, charged) if costs else charged
    place = g.node("ArgMin", costs, axis=1, keepdims=0)
    labels = np.asarray(uniform_labels(rule))
    chosen = g.node("Gather", g.constant(labels[: rule.n_classes]), place, axis=0)
    if rule.reject_cost is None:
        return chosen
    least = g.node("Min", *(_column(g, costs, d) for d in range(rule.n_classes)))
    flat = g.node("Reshape", least, g.constant(np.array([-1])))
    dear = g.node("Less", _number(g, rule.reject_cost), flat)
    return g.node("Where", dear, g.constant(labels[-1:]), chosen)
