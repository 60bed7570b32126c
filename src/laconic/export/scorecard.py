"""Terms of a fitted form rounded to whole points, as tables a person can add up."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.core.decisions import class_codes
from laconic.core.forms import AdditiveScore, LineTerm, RulesTerm, SlotTerm, Term
from laconic.core.links import probabilities
from laconic.data.tables.axes import Axis, IntervalAxis, KnotAxis
from laconic.data.tables.columns import Table
from laconic.data.tables.kinds import shown
from laconic.export.card import inert, table
from laconic.export.parts import NotExportableError, Parts, parts_of

_MOST_PARTS = 2_000
"""Parts of one variable, above which nobody reads them."""


@dataclass(frozen=True)
class Points:
    """One variable of a scorecard: a term whose values are whole points >= 0.

    ``term.values`` are the points as floats; ``lowest`` was taken off them, by score.
    """

    term: SlotTerm | RulesTerm
    lowest: Ints

    @property
    def columns(self) -> tuple[str, ...]:
        return self.term.columns

    def parts(self) -> list[tuple[str, list[int]]]:
        """Text of each part and its points by score."""
        values = self.term.values.astype(np.int64)
        if isinstance(self.term, RulesTerm):
            return [
                (" and ".join(path) or "always", values[leaf].tolist())
                for leaf, path in _paths(self.term, 0, ())
            ]
        labels = [axis.labels() for axis in self.term.axes]
        if len(labels) == 1:
            return [(text, own.tolist()) for text, own in zip(labels[0], values, strict=True)]
        return [
            (f"{first} and {second}", values[i, j].tolist())
            for i, first in enumerate(labels[0])
            for j, second in enumerate(labels[1])
        ]

    def scaled(self, factor: float) -> SlotTerm | RulesTerm:
        """The term in units of the score, ``factor`` points to the unit."""
        return replace(self.term, values=self.term.values / factor)


def _paths(term: RulesTerm, t: int, path: tuple[str, ...]) -> list[tuple[int, tuple[str, ...]]]:
    c = int(term.column[t])
    if c < 0:
        return [(t, path)]
    labels, ranks, limit = term.axes[c].labels(), term.ranks[c], int(term.threshold[t])
    sides = []
    for child, goes in ((term.left[t], ranks <= limit), (term.right[t], ranks > limit)):
        texts = [text for text, here in zip(labels, goes, strict=True) if here]
        said = f"{term.columns[c]} in {', '.join(texts)}"
        sides += _paths(term, int(child), (*path, said))
    return sides


def in_points(
    term: Term, factor: float, parts: Parts, rows: Table | None, most_parts: int | None
) -> Points:
    """``term`` times ``factor``, rounded; lines and shapes are cut where the rounding steps."""
    if isinstance(term, RulesTerm):
        rounded = np.rint(factor * term.values)
        # inner nodes have values too, which nothing reads
        lowest = rounded[term.column < 0].min(axis=0)
        values = np.where((term.column < 0)[:, None], rounded - lowest, 0.0)
        return Points(replace(term, values=values), lowest.astype(np.int64))
    if isinstance(term, LineTerm):
        term = _as_shape(term, parts, rows)
    if len(term.axes) == 2:
        term = _cut_grid(term)
    elif isinstance(term.axes[0], KnotAxis):
        term = _cut_shape(term, factor, most_parts)
    rounded = np.rint(factor * term.values)
    lowest = rounded.min(axis=tuple(range(len(term.axes))))
    return Points(replace(term, values=rounded - lowest), lowest.astype(np.int64))


def _as_shape(term: LineTerm, parts: Parts, rows: Table | None) -> SlotTerm:
    """A line between the least and the largest value of its column; flat beyond them."""
    if parts.kind(term.column) == "boolean":
        ends = np.array([0.0, 1.0])
    elif rows is None:
        raise NotExportableError(
            f"Column {shown(term.column)} has a slope, and a scorecard needs its range: give rows."
        )
    else:
        values = rows.column(rows.place(term.column))
        if np.isnan(values).all():
            raise NotExportableError(f"Column {shown(term.column)} has no value in the rows.")
        ends = np.unique([np.nanmin(values), np.nanmax(values)])
    assert term.missing is not None
    at_ends = (ends - term.origin)[:, None] * term.slope
    axis = KnotAxis(ends, np.empty(0))
    return SlotTerm((term.column,), (axis,), np.concatenate([at_ends, term.missing[None, :]]))


def _cut_shape(term: SlotTerm, factor: float, most_parts: int | None) -> SlotTerm:
    """Intervals on which the shape, rounded to a step of whole points, is constant."""
    axis = term.axes[0]
    assert isinstance(axis, KnotAxis)
    n = len(axis.knots)
    points = factor * term.values[:n]
    climbed = float(np.abs(np.diff(points, axis=0)).sum())
    if most_parts is None and climbed > _MOST_PARTS:
        raise NotExportableError(
            f"Column {shown(term.columns[0])} would have about {climbed:,.0f} parts; ask for "
            "fewer (most_parts), or for fewer points (points_to_double)."
        )
    step = 1.0 if most_parts is None else max(1.0, np.ceil(climbed / most_parts))
    bounds = np.unique(
        np.concatenate(
            [np.empty(0)]
            + [
                _crossings(axis.knots[i : i + 2], points[i : i + 2, k] / step)
                for i in range(n - 1)
                for k in range(points.shape[1])
            ]
        )
    )
    inner = 0.5 * bounds[:-1] + 0.5 * bounds[1:]
    ends = [axis.knots[:1], inner, axis.knots[-1:]] if len(bounds) else [axis.knots[:1]]
    index, way = KnotAxis(axis.knots, np.empty(0)).encode(np.concatenate(ends))
    after = np.minimum(index + 1, n - 1)
    inside = (1.0 - way)[:, None] * points[index] + way[:, None] * points[after]
    whole = step * np.rint(inside / step)
    # parts with the same points are one part
    steps = (whole[1:] != whole[:-1]).any(axis=1)
    kept = np.concatenate([[True], steps])
    values = np.concatenate([whole[kept] / factor, term.values[n:]])
    cut = IntervalAxis(bounds[steps], tuple(axis.specials.tolist()))
    return SlotTerm(term.columns, (cut,), values)


def _crossings(x: Floats, points: Floats) -> Floats:
    """Where a line between two knots passes from one whole number to the next."""
    low, high = np.sort(points)
    halves = np.arange(np.floor(low - 0.5) + 1.5, high, 1.0)
    halves = halves[(halves > low) & (halves < high)]
    way = (halves - points[0]) / (points[1] - points[0]) if len(halves) else halves
    return np.asarray((1.0 - way) * x[0] + way * x[1])


def _cut_grid(term: SlotTerm) -> SlotTerm:
    """Cells between knots, each with the value in its middle."""
    values = term.values
    axes: list[Axis] = []
    for place, axis in enumerate(term.axes):
        if not isinstance(axis, KnotAxis):
            axes.append(axis)
            continue
        n = len(axis.knots)
        flat = np.moveaxis(values, place, 0)
        middle = 0.5 * flat[: n - 1] + 0.5 * flat[1:n]
        cut = np.concatenate([flat[:1], middle, flat[n - 1 :]])
        values = np.moveaxis(cut, 0, place)
        axes.append(IntervalAxis(axis.knots, tuple(axis.specials.tolist())))
    return SlotTerm(term.columns, tuple(axes), values)


# A fitted decision model as a scorecard: whole points to add up, and what rounding them costs.


_VOTE_POINTS = 1000.0
"""Points of a vote of 1, for models whose scores are votes and not log-odds."""
_MOST_TOTALS = 1_000_000


@dataclass(frozen=True)
class Scorecard:
    """Whole points for the parts of each variable.

    The total of a row is ``base`` plus the points of its parts; ``factor`` points are one unit of
    the score (log-odds, for most models).

    Attributes
    ----------
    parts : Parts
        Columns, rounded form and decision rule: the scorecard as a model.
    variables : tuple of Points
    base : tuple of int
        Points of every row, one number for each score.
    factor : float
    loss : dict or None
        What rounding changed on the rows given to :func:`to_scorecard`.
    """

    parts: Parts
    variables: tuple[Points, ...]
    base: tuple[int, ...]
    factor: float
    loss: dict[str, float] | None = None

    def points(self, X: Any) -> NDArray[np.int64]:
        """Total points of each row, (rows,) or (rows, scores)."""
        rows = X if isinstance(X, Table) else self.parts.schema.apply(X)
        total = np.repeat(np.array([self.base], dtype=np.float64), rows.n_rows, axis=0)
        for variable in self.variables:
            total += variable.term.contribution(rows)
        found = np.rint(total).astype(np.int64)
        return found[:, 0] if len(self.base) == 1 else found

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities by the points, (rows, classes)."""
        return self.of_totals(np.reshape(self.points(X), (-1, len(self.base))))

    def predict(self, X: Any) -> NDArray[Any]:
        """Decisions by the points."""
        rule = self.parts.rule
        labels = np.array([*rule.labels, rule.reject_label], dtype=object)
        return np.asarray(labels[rule.decide(self.predict_proba(X))])

    def of_totals(self, totals: NDArray[np.int64]) -> Floats:
        """Class probabilities of total points, (rows, classes) from (rows, scores)."""
        form = self.parts.form
        scores = totals / self.factor
        proba = probabilities(scores, form.link, form.smoothing, form.calibration)
        return self.parts.rule.corrected(self.parts.clipped(proba))

    def decisions(self) -> list[tuple[int, int, Any]]:
        """With one score: (first total, last total, decision), for every total there can be."""
        if len(self.base) != 1:
            return []
        low = self.base[0]
        high = low + sum(max(own[0] for _, own in one.parts()) for one in self.variables)
        if high - low > _MOST_TOTALS:
            return []
        totals = np.arange(low, high + 1)
        rule = self.parts.rule
        decided = rule.decide(self.of_totals(totals[:, None])).tolist()
        labels = [*rule.labels, rule.reject_label]
        found = []
        for place, group in groupby(zip(decided, totals.tolist(), strict=True), lambda p: p[0]):
            own = [total for _, total in group]
            found.append((own[0], own[-1], labels[place]))
        return found

    def frame(self) -> Any:
        """One row for each part: variable, part and points; pandas frame or dict of columns."""
        columns: dict[str, list[Any]] = {"variable": [], "part": []}
        heads = self._heads()
        columns |= {head: [] for head in heads}
        for variable, part, own in self._rows():
            columns["variable"].append(variable)
            columns["part"].append(part)
            for head, value in zip(heads, own, strict=True):
                columns[head].append(value)
        try:
            import pandas as pd
        except ImportError:
            return columns
        return pd.DataFrame(columns)

    def _heads(self) -> list[str]:
        if len(self.base) == 1:
            return ["points"]
        return [f"points for {label}" for label in self.parts.rule.labels]

    def _rows(self) -> list[tuple[str, str, list[int]]]:
        rows = [("(every row)", "", list(self.base))]
        for one in self.variables:
            rows += [(" and ".join(one.columns), part, own) for part, own in one.parts()]
        return rows

    def to_csv(self) -> str:
        """The parts and their points."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["variable", "part", *self._heads()])
        for variable, part, own in self._rows():
            writer.writerow([variable, part, *own])
        return text.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON can hold it."""
        return {
            "factor": self.factor,
            "scores": self._heads(),
            "parts": [
                {"variable": variable, "part": part, "points": own}
                for variable, part, own in self._rows()
            ],
            "decisions": [
                {"from": low, "to": high, "decision": label}
                for low, high, label in self.decisions()
            ],
            "loss": self.loss,
        }

    def to_markdown(self, title: str = "Scorecard") -> str:
        """A page: points, decisions by total, and what rounding costs."""
        lines = [f"# {inert(title)}", "", self._how(), ""]
        lines += table(
            ["Variable", "Part", *self._heads()], [[v, p, *o] for v, p, o in self._rows()]
        )
        decided = self.decisions()
        if decided:
            last = self.parts.rule.labels[-1]
            heads = ["From", "To", "Decision", f"Probability of {last}"]
            rows = []
            for low, high, label in decided:
                ends = self.of_totals(np.array([[low], [high]]))[:, -1]
                rows.append([low, high, label, f"{ends[0]:.4g} to {ends[1]:.4g}"])
            lines += ["", "## Decision by total", "", *table(heads, rows)]
        if self.loss is not None:
            lines += ["", "## What rounding costs", "", *_loss_lines(self.loss)]
        return "\n".join(lines) + "\n"

    def _how(self) -> str:
        link = self.parts.form.link
        if link == "vote":
            return f"Add the points of every row that applies; {self.factor:g} are a full vote."
        double = self.factor * math.log(2.0)
        if len(self.base) == 1:
            last = inert(self.parts.rule.labels[-1])
            return (
                f"Add the points of every row that applies. {double:g} points more double "
                f"the odds of {last}, before the class mix is corrected."
            )
        return (
            "Add the points of every row that applies, for each class. A lead of "
            f"{double:g} points over another class is odds of two to one, before the class mix is "
            "corrected."
        )


def _loss_lines(loss: dict[str, float]) -> list[str]:
    rows = [
        ["expected cost", loss["expected_cost"], loss["expected_cost_rounded"]],
        ["log loss", loss["log_loss"], loss["log_loss_rounded"]],
    ]
    changed = (
        f"On {int(loss['rows']):,} rows, {loss['decisions_changed']:.3%} of the decisions changed; "
        f"no probability moved by more than {loss['largest_change']:.3g}."
    )
    return [*table(["", "exact", "in points"], rows), "", changed]


def to_scorecard(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    points_to_double: float = 20.0,
    most_parts: int | None = 12,
) -> Scorecard:
    """Round a model to whole points, and measure what that changes.

    Tables are rounded. Piecewise-linear shapes and lines are cut where their rounded value steps;
    a line is followed over the range of ``X`` and is flat beyond it. Cells of a grid get the value
    of their middle. ``loss`` of the result says what all that costs.

    Parameters
    ----------
    model : DecisionClassifier, or a model whose ``decision_`` is one
        Fitted, with an additive form (see :func:`laconic.export.parts.parts_of`).
    X, y : rows and their classes, default=None
        Rows not used for the fit, to measure the loss; ``X`` also gives the range of lines.
    points_to_double : float, default=20
        Points that double the odds: fewer points, coarser card. A vote of 1 is 1000 points
        whatever this number is.
    most_parts : int or None, default=12
        About how many parts a shape or line is cut into at most, by rounding to larger steps than
        one point. None: steps of one point.

    Returns
    -------
    Scorecard

    Examples
    --------
    >>> import numpy as np
    >>> from laconic import DecisionClassifier, SparseAdditiveClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = (X[:, 0] + X[:, 1] ** 2 + rng.normal(size=500) > 1).astype(int)
    >>> model = DecisionClassifier(SparseAdditiveClassifier(), costs={"fp": 1, "fn": 3}).fit(X, y)
    >>> card = to_scorecard(model, X, y)
    >>> card.points(X[:1]).dtype.kind
    'i'
    >>> abs(card.loss["expected_cost_rounded"] - card.loss["expected_cost"]) < 0.02
    True
    """
    if not (isinstance(points_to_double, int | float) and 0 < points_to_double < math.inf):
        raise ValueError(f"points_to_double must be a number above 0, got {points_to_double!r}.")
    if most_parts is not None and not (isinstance(most_parts, int) and most_parts >= 1):
        raise ValueError(f"most_parts must be a whole number >= 1 or None, got {most_parts!r}.")
    parts = parts_of(model)
    form = parts.form
    factor = _VOTE_POINTS if form.link == "vote" else points_to_double / math.log(2.0)
    rows = None if X is None else parts.schema.apply(X)
    variables = tuple(in_points(term, factor, parts, rows, most_parts) for term in form.terms)
    base = np.rint(factor * form.intercept).astype(np.int64)
    for variable in variables:
        base = base + variable.lowest
    rounded = AdditiveScore(
        form.classes,
        base / factor,
        tuple(variable.scaled(factor) for variable in variables),
        form.link,
        form.smoothing,
        form.calibration,
    )
    card = Scorecard(
        Parts(parts.schema, rounded, parts.rule, parts.clip),
        variables,
        tuple(int(value) for value in base),
        factor,
    )
    if rows is None or y is None:
        return card
    loss = _measured_loss(parts, card, rows, np.asarray(y))
    return Scorecard(card.parts, card.variables, card.base, card.factor, loss)


def _measured_loss(parts: Parts, card: Scorecard, rows: Table, y: NDArray[Any]) -> dict[str, float]:
    if len(y) != rows.n_rows:
        raise ValueError(f"y has {len(y)} classes for {rows.n_rows} rows.")
    truth = class_codes(y, list(parts.rule.labels), "y")
    exact, rounded = parts.proba(rows), card.predict_proba(rows)
    said, now = parts.rule.decide(exact), parts.rule.decide(rounded)
    return {
        "rows": float(rows.n_rows),
        "expected_cost": _mean_cost(parts, truth, said),
        "expected_cost_rounded": _mean_cost(parts, truth, now),
        "log_loss": _log_loss(exact, truth),
        "log_loss_rounded": _log_loss(rounded, truth),
        "decisions_changed": float(np.mean(said != now)),
        "largest_change": float(np.abs(exact - rounded).max()),
    }


def _mean_cost(parts: Parts, truth: NDArray[np.int64], said: NDArray[np.int64]) -> float:
    rule = parts.rule
    costs = rule.costs[truth, np.maximum(said, 0)]
    if rule.reject_cost is not None:
        costs = np.where(said < 0, rule.reject_cost, costs)
    return float(costs.mean())


def _log_loss(proba: Floats, truth: NDArray[np.int64]) -> float:
    own = proba[np.arange(len(truth)), truth]
    return float(-np.log(np.maximum(own, np.finfo(np.float64).tiny)).mean())
