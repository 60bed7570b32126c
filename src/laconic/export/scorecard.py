"""A fitted decision model as a scorecard: whole points to add up, and what rounding them costs."""

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
from laconic.core.folds import held_out_rows
from laconic.core.forms import AdditiveScore, probabilities
from laconic.data.row_keys import row_keys
from laconic.data.tables.columns import Table
from laconic.export.card import inert, table
from laconic.export.parts import Parts, decision_layer, parts_of, uniform_labels
from laconic.export.points import Points, in_points, joined
from laconic.scorecard.optimal import OptimalScorecardClassifier
from laconic.scorecard.risk import doubling

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
    offset : float
        Points at even odds: with a ``base_score``, what puts it at its odds.
    scored : object
        Two classes: the one whose odds more points raise.
    bins : dict or None
        With labelled rows, how many of them fall in each part, and how many events are among
        them.
    """

    parts: Parts
    variables: tuple[Points, ...]
    base: tuple[int, ...]
    factor: float
    loss: dict[str, float] | None = None
    offset: float = 0.0
    scored: Any = None
    bins: Bins | None = None
    scale: tuple[float, float] | None = None
    """Base score and its odds, as they were asked for."""

    @property
    def _sign(self) -> float:
        labels = self.parts.rule.labels
        return -1.0 if len(self.base) == 1 and self.scored == labels[0] else 1.0

    @property
    def _doubling(self) -> float | None:
        """Points that double the odds."""
        form = self.parts.form
        if form.link == "points":
            double = doubling(form)
            return None if double is None else self.factor * double
        return None if form.link == "vote" else self.factor * math.log(2.0)

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
        scores = np.asarray(self._sign * (totals - self.offset) / self.factor, dtype=np.float64)
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
        for row in self._rows():
            for name, value in zip(columns, row, strict=True):
                columns[name].append(value)
        try:
            import pandas as pd
        except ImportError:
            return columns
        return pd.DataFrame(columns)

    @property
    def tables(self) -> tuple[Points, ...]:
        """What a reader adds up: one table for each column, where one table can say it."""
        return joined(self.variables)

    @property
    def without_points(self) -> tuple[str, ...]:
        """Columns of which every part has 0 points; they are not printed."""
        counting = {name for one in self.tables if one.term.values.any() for name in one.columns}
        read = dict.fromkeys(name for one in self.tables for name in one.columns)
        return tuple(name for name in read if name not in counting)

    def _heads(self) -> list[str]:
        heads = [f"points for {label}" for label in self.parts.rule.labels]
        heads = ["points"] if len(self.base) == 1 else heads
        return heads if self.bins is None else [*heads, *self.bins.heads()]

    def _rows(self) -> list[list[Any]]:
        """Variable, part, points and, with labelled rows, counts."""
        counted = self.bins is not None
        first: list[Any] = ["(every row)", "", *self.base]
        rows = [[*first, *self.bins.total()] if self.bins is not None else first]
        names: list[str] = []
        for v, one in enumerate(self.tables):
            if not one.term.values.any():
                continue
            names.append(" and ".join(one.columns))
            name = names[-1] + (", again: add both" if names.count(names[-1]) > 1 else "")
            for place, (part, own) in enumerate(one.parts()):
                counts = self.bins.cells(v, place) if counted and self.bins is not None else []
                rows.append([name, part, *own, *counts])
        return rows

    def to_csv(self) -> str:
        """The parts and their points."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["variable", "part", *self._heads()])
        writer.writerows(self._rows())
        return text.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON can hold it."""
        many = len(self.base)
        heads = self._heads()
        return {
            "factor": self.factor,
            "offset": self.offset,
            "scored": None if self.scored is None else str(self.scored),
            "base_score": None if self.scale is None else self.scale[0],
            "base_odds": None if self.scale is None else self.scale[1],
            "points_to_double": self._doubling,
            "scores": heads[:many],
            "parts": [
                {"variable": row[0], "part": row[1], "points": row[2 : 2 + many]}
                | dict(zip(heads[many:], row[2 + many :], strict=True))
                for row in self._rows()
            ],
            "decisions": [
                {"from": low, "to": high, "decision": label}
                for low, high, label in self.decisions()
            ],
            "without_points": list(self.without_points),
            "loss": self.loss,
        }

    def to_markdown(self, title: str = "Scorecard") -> str:
        """A page: points, decisions by total, and what rounding costs."""
        lines = [f"# {inert(title)}", "", self._how(), ""]
        rows = [["" if cell is None else cell for cell in row] for row in self._rows()]
        lines += table(["Variable", "Part", *self._heads()], rows)
        if self.without_points:
            lines += ["", _left_out(len(self.without_points))]
        decided = self.decisions()
        if decided:
            last = self.parts.rule.labels[-1]
            heads = ["From", "To", "Decision", f"Probability of {last}"]
            rows = []
            if self.bins is not None:
                heads += ["rows", f"rate of {self.bins.event}"]
            for low, high, label in decided:
                ends = self.of_totals(np.array([[low], [high]]))[:, -1]
                rows.append([low, high, label, f"{ends[0]:.4g} to {ends[1]:.4g}"])
                if self.bins is not None:
                    rows[-1] += self.bins.between(low, high)
            lines += ["", "## Decision by total", "", *table(heads, rows)]
        if self.loss is not None:
            what = "the card" if "gap" in self.loss else "rounding"
            lines += ["", f"## What {what} costs", "", *_loss_lines(self.loss)]
        return "\n".join(lines) + "\n"

    def _how(self) -> str:
        link = self.parts.form.link
        about = self.parts.rule.labels[-1] if self.scored is None else self.scored
        if link == "points" and self.scale is None:
            return (
                f"Add the points of every row that applies; more points mean more {inert(about)}."
            )
        if link == "vote":
            return f"Add the points of every row that applies; {self.factor:g} are a full vote."
        double = self._doubling or 0.0
        if len(self.base) == 1:
            text = (
                f"Add the points of every row that applies. {double:.4g} points more double "
                f"the odds of {inert(about)}, before the class mix is corrected."
            )
            if self.scale is None:
                return text
            score, odds = self.scale
            near = "about " if link == "points" else ""
            return f"{text} A total of {score:g} is {near}odds of {odds:g} to 1 for {inert(about)}."
        return (
            "Add the points of every row that applies, for each class. A lead of "
            f"{double:g} points over another class is odds of two to one, before the class mix is "
            "corrected."
        )


def _left_out(many: int) -> str:
    if many == 1:
        return "One more column is read; all its parts round to 0 points."
    return f"{many} more columns are read; all their parts round to 0 points."


def _loss_lines(loss: dict[str, float]) -> list[str]:
    rows = [
        ["expected cost", loss["expected_cost"], loss["expected_cost_rounded"]],
        ["log loss", loss["log_loss"], loss["log_loss_rounded"]],
    ]
    changed = (
        f"On {int(loss['rows']):,} rows, {loss['decisions_changed']:.3%} of the decisions changed; "
        f"no probability moved by more than {loss['largest_change']:.3g}."
    )
    if "gap" in loss:
        changed += (
            " The card was searched on other rows, and no card of its conditions and points loses "
            f"less by more than {loss['gap']:.1%} there."
        )
    heads = ["", "model", "card"] if "gap" in loss else ["", "exact", "in points"]
    return [*table(heads, rows), "", changed]


def to_scorecard(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    points_to_double: float = 20.0,
    most_parts: int | None = 12,
    base_score: float | None = None,
    base_odds: float = 1.0,
    scored: Any = None,
    exact: int | None = None,
) -> Scorecard:
    """Round a model to whole points, or search the best small card, and measure what that changes.

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
        one point, with cuts moved a little for fewer digits. None: steps of one point, exactly.
    base_score : float, default=None
        Two classes: the total that means odds of ``base_odds`` to 1, such as 600 points at odds
        of 50. None: even odds are 0 points. The points of a card are multiplied by a whole number
        and moved by another, as near as that comes, so that it stays the same card.
    base_odds : float, default=1
    scored : class, default=None
        Two classes: the one whose odds more points raise. None: the last one; with a
        ``base_score`` the one that is not the positive class, so that more points are safer.
    exact : int, default=None
        At most so many conditions: instead of rounding, the best card of the columns that the model
        reads is searched on three quarters of ``X`` and ``y``
        (:class:`~laconic.OptimalScorecardClassifier`), for the same decision; the loss is measured
        on the others. A model that is such a card is written as it is.

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
    parts = fitted = parts_of(model)
    gap: dict[str, float] = {}
    if exact is not None:
        parts, X, y, gap = _searched(fitted, X, y, exact)
    form = parts.form
    event, scored = _event_and_scored(model, parts, base_score, base_odds, scored)
    sign = -1.0 if form.n_scores == 1 and scored == parts.rule.labels[0] else 1.0
    if form.link == "points":
        factor, offset = _card_scale(form, sign, points_to_double, base_score, base_odds)
    else:
        factor = _VOTE_POINTS if form.link == "vote" else points_to_double / math.log(2.0)
        offset = 0.0 if base_score is None else base_score - factor * math.log(base_odds)
    rows = None if X is None else parts.schema.apply(X)
    shown = form if sign > 0 else form.reversed()
    variables = tuple(in_points(term, factor, parts, rows, most_parts) for term in shown.terms)
    base = np.rint(offset + factor * shown.intercept).astype(np.int64)
    for variable in variables:
        base = base + variable.lowest
    rounded = AdditiveScore(
        form.classes,
        np.asarray(sign * (base - offset) / factor, dtype=np.float64),
        tuple(variable.scaled(sign * factor) for variable in variables),
        form.link,
        form.smoothing,
        form.calibration,
    )
    card = Scorecard(
        Parts(parts.schema, rounded, parts.rule, parts.clip),
        variables,
        tuple(int(value) for value in base),
        factor,
        offset=offset,
        scored=scored if form.n_scores == 1 else None,
        scale=None if base_score is None else (float(base_score), float(base_odds)),
    )
    if rows is None or y is None:
        return card
    loss = _measured_loss(fitted, card, rows, np.asarray(y)) | gap
    return replace(card, loss=loss, bins=_counted(card, rows, np.asarray(y), event))


def _event_and_scored(
    model: Any, parts: Parts, base_score: Any, base_odds: Any, scored: Any
) -> tuple[Any, Any]:
    """The class that is counted as an event, and the one whose odds the points raise."""
    labels = list(parts.rule.labels)
    known = getattr(decision_layer(model), "positive_", None)
    event = known if known in labels else labels[-1]
    numbers = [value for value in (base_score, base_odds) if value is not None]
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in numbers):
        raise ValueError(f"base_score and base_odds must be numbers, got {numbers}.")
    if not base_odds > 0:
        raise ValueError(f"base_odds must be above 0, got {base_odds!r}.")
    if (base_score is not None or scored is not None) and (
        parts.form.n_scores != 1 or parts.form.link == "vote"
    ):
        raise ValueError("base_score and scored are for log-odds of two classes.")
    if scored is None:
        return event, next(c for c in labels if c != event) if base_score is not None else labels[
            -1
        ]
    named = {str(label): label for label in labels}
    if str(scored) not in named:
        raise ValueError(f"scored must be one of {', '.join(named)}, got {scored!r}.")
    return event, named[str(scored)]


@dataclass(frozen=True)
class Bins:
    """Labelled rows in the parts of a scorecard: how many, and how many of them are events."""

    event: Any
    rows: tuple[Ints, ...]
    events: tuple[Ints, ...]
    totals: Ints
    hit: NDArray[np.bool_]

    def heads(self) -> list[str]:
        return ["rows", "share of rows", f"rate of {self.event}", "WoE"]

    def total(self) -> list[Any]:
        n = len(self.hit)
        return [n, 1.0, round(float(self.hit.mean()), 4) if n else None, None]

    def cells(self, variable: int, part: int) -> list[Any]:
        """Rows, their share, event rate, and ln of (share of non-events / share of events)."""
        n, events = int(self.rows[variable][part]), int(self.events[variable][part])
        all_events, others = int(self.hit.sum()), len(self.hit) - int(self.hit.sum())
        woe = None
        if 0 < events < n:
            woe = round(math.log((n - events) / others) - math.log(events / all_events), 4)
        return [n, round(n / len(self.hit), 4), round(events / n, 4) if n else None, woe]

    def between(self, low: int, high: int) -> list[Any]:
        """Rows whose total is in a range, and their event rate."""
        here = (self.totals >= low) & (self.totals <= high)
        return [int(here.sum()), round(float(self.hit[here].mean()), 4) if here.any() else ""]


def _counted(card: Scorecard, rows: Table, y: NDArray[Any], event: Any) -> Bins:
    labels = list(card.parts.rule.labels)
    hit = class_codes(y, labels, "y") == labels.index(event)
    counts, events = [], []
    for one in card.tables:
        places, many = one.places(rows), len(one.parts())
        counts.append(np.bincount(places, minlength=many))
        events.append(np.bincount(places[hit], minlength=many))
    totals = card.points(rows)
    totals = totals if totals.ndim == 1 else totals[:, labels.index(event)]
    return Bins(event, tuple(counts), tuple(events), totals, hit)


def _card_scale(
    form: AdditiveScore, sign: float, points_to_double: float, base_score: Any, base_odds: float
) -> tuple[float, float]:
    """Factor and offset of a card whose points are whole already: whole numbers, so that it stays
    the same card. Without a base score the points are those of the card."""
    if base_score is None:
        return 1.0, 0.0
    double = doubling(form)
    if double is None:
        raise ValueError(
            "base_score needs log-odds that are a line of the total; this card's are not "
            "(isotonic or held to a threshold). Leave it out, or fit the card with risk='fit'."
        )
    pace, (total, odds) = math.log(2.0) / double, (form.calibration or ((0.0, 0.0),))[0]
    factor = max(1.0, float(round(points_to_double / double)))
    even = total - odds / pace  # the total of even odds
    wanted = sign * even + math.log(base_odds) / pace
    return factor, float(round(base_score - factor * wanted))


def _searched(
    parts: Parts, X: Any, y: Any, exact: int
) -> tuple[Parts, Table, NDArray[Any], dict[str, float]]:
    """The best card of the model's columns on some of the rows; the others, and its gap."""
    if X is None or y is None:
        raise ValueError("exact searches a card and needs rows and their classes (X and y).")
    rows, truth = parts.schema.apply(X), class_codes(np.asarray(y), list(parts.rule.labels), "y")
    if len(truth) != rows.n_rows:
        raise ValueError(f"y has {len(truth)} classes for {rows.n_rows} rows.")
    # the fold of a row is drawn from its values: a card does not depend on the order of the rows
    search, judged = held_out_rows(row_keys(rows), truth, 0.25)
    labels = np.asarray(uniform_labels(parts.rule))[truth]
    forbidden = [name for name in parts.schema.names if name not in parts.form.columns]
    own = OptimalScorecardClassifier(exact, pool=0.0, forbidden=forbidden)
    own.fit(rows[search], labels[search])
    form = replace(own.form_, classes=parts.form.classes)
    made = Parts(parts.schema, form, parts.rule, None)
    return made, rows[judged], np.asarray(y)[judged], {"gap": own.optimality_gap_}


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
