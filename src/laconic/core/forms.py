"""Fitted forms: what a model is once training is over.

:class:`AdditiveScore` is an intercept plus terms: a line, a table, a piecewise-linear shape, a
bilinear grid, or the leaves of a small tree. Linear models, sparse additive models, naive Bayes on
intervals and votes of stumps are all of this form, so that a model file, SQL, ONNX, a scorecard or
a report is written once. A form holds numbers and texts only; its values, its contributions and its
dictionary are exact: ``from_dict(to_dict())`` gives the same bits, through JSON too. Its link leads
from scores to class probabilities (:func:`probabilities`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, softmax

from laconic._typing import Floats, Ints
from laconic.data.tables.axes import Axis, KnotAxis, axis_from_dict, encode_column
from laconic.data.tables.columns import Table

Link = Literal["logit", "softmax", "ovr", "vote", "points", "identity"]

LINKS: tuple[Link, ...] = ("logit", "softmax", "ovr", "vote", "points", "identity")
MOST_VOTE = 0.9995
"""Votes are kept this far inside [-1, 1] before their log-odds are taken."""


def n_scores_of(link: Link, n_classes: int, given: int) -> int:
    """How many scores a link reads: one for "logit" and "points", K for "softmax" and "ovr".

    A vote has one score for two classes and K for more; "identity" takes what it is given.
    """
    if link in ("logit", "points"):
        return 1
    if link == "vote":
        return 1 if n_classes == 2 else n_classes
    return given if link == "identity" else n_classes


def probabilities(
    scores: Floats,
    link: Link,
    smoothing: float = 0.0,
    calibration: tuple[tuple[float, float], ...] | None = None,
) -> Floats:
    """(rows, classes) from (rows, scores).

    ========  =====================================================================
    link      probabilities
    ========  =====================================================================
    logit     sigmoid of the score, for the last of two classes
    softmax   exp(score_k), normalised
    ovr       sigmoid of each score, normalised
    vote      (1 + vote) / 2, or the sigmoid of its calibrated log-odds; normalised
    points    sigmoid of the log-odds that a table gives to the total of whole points
    ========  =====================================================================

    ``calibration`` holds (slope, intercept) for the log-odds ln((1 + v) / (1 - v)) of each vote,
    or, for points, (total, log-odds) for every whole number from the least total to the largest.
    ``smoothing`` h turns p_k into (p_k + h / K) / (1 + h).

    >>> probabilities(np.array([[0.0]]), "logit").tolist()
    [[0.5, 0.5]]
    >>> probabilities(np.array([[0.5]]), "vote").tolist()
    [[0.25, 0.75]]
    """
    found = _unsmoothed(scores, link, calibration)
    if smoothing:
        found = (found + smoothing / found.shape[1]) / (1.0 + smoothing)
    return np.asarray(found)


def refuse_overflow(scores: Floats) -> Floats:
    """The scores, unless one of them is not finite: then the row is named."""
    sane = np.isfinite(scores).all(axis=1)
    if not sane.all():
        row = int(np.argmin(sane))
        raise ValueError(f"The values of row {row} are too large: its score is not finite.")
    return scores


def _unsmoothed(
    scores: Floats, link: Link, calibration: tuple[tuple[float, float], ...] | None
) -> Floats:
    if link == "logit":
        return np.stack([expit(-scores[:, 0]), expit(scores[:, 0])], axis=1)
    if link == "softmax":
        return np.asarray(softmax(scores, axis=1))
    if link == "ovr":
        return np.asarray(softmax(log_expit(scores), axis=1))
    if link == "vote":
        return _of_votes(scores, calibration)
    if link == "points":
        return _unsmoothed(log_odds_of_points(scores, calibration), "logit", None)
    raise ValueError("A score with link 'identity' has no probabilities.")


def log_odds_of_points(
    totals: Floats, calibration: tuple[tuple[float, float], ...] | None
) -> Floats:
    """The log-odds of each total; beyond the table, those of its ends.

    >>> log_odds_of_points(np.array([[0.0], [5.0]]), ((-1.0, -2.0), (0.0, 0.0), (1.0, 3.0))).ravel()
    array([0., 3.])
    """
    table = np.asarray(calibration, dtype=np.float64)
    place = np.rint(totals - table[0, 0]).astype(np.int64)
    return np.asarray(table[np.clip(place, 0, len(table) - 1), 1])


def rounded_votes(votes: Floats) -> Floats:
    """In [-1, 1], and rounded: a tie is a tie whatever the order in which weights were summed."""
    return np.asarray(np.clip(np.round(votes, 12), -1.0, 1.0) + 0.0)


def vote_log_odds(votes: Floats) -> Floats:
    """ln((1 + v) / (1 - v)), with votes kept off the ends."""
    return np.asarray(2.0 * np.arctanh(np.clip(votes, -MOST_VOTE, MOST_VOTE)))


def _of_votes(votes: Floats, calibration: tuple[tuple[float, float], ...] | None) -> Floats:
    votes = rounded_votes(votes)
    if calibration is None:
        share = (1.0 + votes) / 2.0
    else:
        slope, intercept = np.array(calibration).T
        share = expit(vote_log_odds(votes) * slope + intercept)
    if share.shape[1] == 1:
        return np.column_stack([1.0 - share[:, 0], share[:, 0]])
    total = share.sum(axis=1, keepdims=True)
    said = total > 1e-9  # every class voted down: nothing to tell them apart
    return np.where(said, share / np.where(said, total, 1.0), 1.0 / share.shape[1])


MOST_SCORE = 1e300  # beyond it the sum of a few scores may overflow
TermKind = Literal["line", "table", "piecewise", "grid", "rules"]


def _as_values(values: ArrayLike, what: str) -> Floats:
    array = np.array(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{what} must be finite numbers.")
    array.setflags(write=False)
    return array


@dataclass(frozen=True)
class LineTerm:
    """slope_k (x - origin) for each score k; ``missing_k`` where x is missing.

    >>> table = Table(("x",), ("numeric",), (None,), matrix=np.array([[3.0], [np.nan]]))
    >>> LineTerm("x", np.array([2.0]), origin=1.0).contribution(table).ravel()
    array([4., 0.])
    """

    column: str
    slope: Floats
    origin: float = 0.0
    missing: Floats | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "slope", _as_values(self.slope, "slope"))
        missing = np.zeros(len(self.slope)) if self.missing is None else self.missing
        object.__setattr__(self, "missing", _as_values(missing, "missing"))

    @property
    def kind(self) -> TermKind:
        return "line"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def n_scores(self) -> int:
        return len(self.slope)

    def contribution(self, table: Table) -> Floats:
        """(rows, scores)."""
        x = np.asarray(table.column(table.place(self.column)), dtype=np.float64)
        gone = np.isnan(x)
        with np.errstate(over="ignore", invalid="ignore"):  # the sum refuses what is not finite
            apart = np.where(gone, self.origin, x) - self.origin
            out = apart[:, None] * self.slope
            far = np.isinf(apart)  # 1e308 less -1e308: in halves
            out[far] = 2.0 * ((0.5 * x[far] - 0.5 * self.origin)[:, None] * self.slope)
        assert self.missing is not None
        return np.where(gone[:, None], self.missing, out)

    def to_dict(self) -> dict[str, Any]:
        assert self.missing is not None
        return {
            "kind": "line",
            "columns": [self.column],
            "slope": self.slope.tolist(),
            "origin": float(self.origin),
            "missing": self.missing.tolist(),
        }


@dataclass(frozen=True)
class SlotTerm:
    """Values on the slots of one axis (table, piecewise-linear) or on a grid of two axes.

    ``values`` has one dimension for each axis and a last one for the scores. A row reads the
    values of the slots it lies between, weighted by its fractions (see
    :mod:`laconic.data.tables.axes`); on a grid, bilinearly.

    >>> axis = KnotAxis(np.array([0.0, 10.0]), np.empty(0))
    >>> shape = SlotTerm(("age",), (axis,), np.array([[-1.0], [1.0], [0.25]]))
    >>> table = Table(("age",), ("numeric",), (None,), matrix=np.array([[5.0], [99.0], [np.nan]]))
    >>> shape.kind, shape.contribution(table).ravel().tolist()
    ('piecewise', [0.0, 1.0, 0.25])
    """

    columns: tuple[str, ...]
    axes: tuple[Axis, ...]
    values: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _as_values(self.values, f"values of {self.columns}"))
        expected = tuple(axis.size for axis in self.axes)
        if len(self.columns) != len(self.axes) or len(self.axes) not in (1, 2):
            raise ValueError("A term has one or two columns, and one axis for each.")
        if self.values.ndim != len(self.axes) + 1 or self.values.shape[:-1] != expected:
            raise ValueError(
                f"values of {self.columns} must have shape {(*expected, 'scores')}, got "
                f"{self.values.shape}."
            )

    @property
    def kind(self) -> TermKind:
        if len(self.axes) == 2:
            return "grid"
        return "piecewise" if isinstance(self.axes[0], KnotAxis) else "table"

    @property
    def n_scores(self) -> int:
        return int(self.values.shape[-1])

    def contribution(self, table: Table) -> Floats:
        """(rows, scores)."""
        places = [table.place(name) for name in self.columns]
        slots, parts = zip(
            *(encode_column(a, table, j) for a, j in zip(self.axes, places, strict=True)),
            strict=True,
        )
        after = [np.minimum(slot + 1, a.size - 1) for slot, a in zip(slots, self.axes, strict=True)]
        if len(self.axes) == 1:
            if not self.axes[0].interpolates:
                return np.asarray(self.values[slots[0]])
            return _between(self.values[slots[0]], self.values[after[0]], parts[0])
        low, high = (
            _between(self.values[row, slots[1]], self.values[row, after[1]], parts[1])
            for row in (slots[0], after[0])
        )
        return _between(low, high, parts[0])

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "columns": list(self.columns),
            "axes": [axis.to_dict() for axis in self.axes],
            "values": self.values.tolist(),
        }


@dataclass(frozen=True)
class RulesTerm:
    """Values on the leaves of a tree.

    Node t sends a row left when ``ranks[c][slot] <= threshold[t]``, with c = ``column[t]`` and the
    slot of the row on ``axes[c]``; ``column[t] = -1`` marks a leaf, which gives ``values[t]``.
    Children come after their parent.

    >>> from laconic.data.tables.axes import IntervalAxis
    >>> term = RulesTerm(
    ...     ("age",), (IntervalAxis(np.array([30.0])),), (np.array([1, 2, 0]),),
    ...     np.array([0, -1, -1]), np.array([1, 0, 0]), np.array([1, 0, 0]), np.array([2, 0, 0]),
    ...     np.array([[0.0], [-1.0], [1.0]]),
    ... )
    >>> table = Table(("age",), ("numeric",), (None,), matrix=np.array([[20.0], [40.0], [np.nan]]))
    >>> term.contribution(table).ravel().tolist()
    [-1.0, 1.0, -1.0]
    """

    columns: tuple[str, ...]
    axes: tuple[Axis, ...]
    ranks: tuple[Ints, ...]
    column: Ints
    threshold: Ints
    left: Ints
    right: Ints
    values: Floats

    def __post_init__(self) -> None:
        for name in ("column", "threshold", "left", "right"):
            object.__setattr__(self, name, np.array(getattr(self, name), dtype=np.int64))
        object.__setattr__(self, "ranks", tuple(np.array(r, dtype=np.int64) for r in self.ranks))
        object.__setattr__(self, "values", np.array(self.values, dtype=np.float64))
        self._check()

    def _check(self) -> None:
        n_nodes = len(self.column)
        if self.values.ndim != 2 or not np.isfinite(self.values).all():
            raise ValueError("values of a tree must be finite numbers, (nodes, scores).")
        if not n_nodes == len(self.threshold) == len(self.left) == len(self.right):
            raise ValueError("A tree has one threshold, left and right for each node.")
        if not n_nodes == len(self.values) or not n_nodes:
            raise ValueError("A tree has values for each node.")
        if not len(self.columns) == len(self.axes) == len(self.ranks):
            raise ValueError("A tree has one axis and one list of ranks for each column.")
        if any(rank.shape != (a.size,) for rank, a in zip(self.ranks, self.axes, strict=True)):
            raise ValueError("A tree's ranks must match the slots of its axes.")
        inner = np.flatnonzero(self.column >= 0)
        children = np.concatenate([self.left[inner], self.right[inner]])
        later = (self.left[inner] > inner).all() and (self.right[inner] > inner).all()
        if self.column.max() >= len(self.columns) or not later or (children >= n_nodes).any():
            raise ValueError("The nodes of a tree must lead to later nodes and known columns.")

    @property
    def kind(self) -> str:
        return "rules"

    @property
    def n_scores(self) -> int:
        return int(self.values.shape[-1])

    @property
    def n_leaves(self) -> int:
        return int((self.column < 0).sum())

    def contribution(self, table: Table) -> Floats:
        """(rows, scores)."""
        codes = [
            rank[encode_column(axis, table, table.place(name))[0]]
            for name, axis, rank in zip(self.columns, self.axes, self.ranks, strict=True)
        ]
        node = np.zeros(table.n_rows, dtype=np.int64)
        while True:
            column = self.column[node]
            if not (column >= 0).any():
                return np.asarray(self.values[node])
            for c, code in enumerate(codes):
                here = np.flatnonzero(column == c)
                t = node[here]
                goes_left = code[here] <= self.threshold[t]
                node[here] = np.where(goes_left, self.left[t], self.right[t])

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "rules",
            "columns": list(self.columns),
            "axes": [axis.to_dict() for axis in self.axes],
            "ranks": [rank.tolist() for rank in self.ranks],
            "column": self.column.tolist(),
            "threshold": self.threshold.tolist(),
            "left": self.left.tolist(),
            "right": self.right.tolist(),
            "values": self.values.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RulesTerm:
        return cls(
            tuple(data["columns"]),
            tuple(axis_from_dict(axis) for axis in data["axes"]),
            tuple(np.array(rank, dtype=np.int64) for rank in data["ranks"]),
            values=np.array(data["values"], dtype=np.float64),
            **{name: np.array(data[name]) for name in ("column", "threshold", "left", "right")},
        )


Term = LineTerm | SlotTerm | RulesTerm


def _between(low: Floats, high: Floats, fraction: Floats) -> Floats:
    """Linear interpolation, row by row."""
    part = fraction[:, None]
    return np.asarray((1.0 - part) * low + part * high)


def term_from_dict(data: Mapping[str, Any]) -> Term:
    """The term that ``to_dict`` described."""
    if data["kind"] == "line":
        return LineTerm(data["columns"][0], data["slope"], data["origin"], data["missing"])
    if data["kind"] == "rules":
        return RulesTerm.from_dict(data)
    axes = tuple(axis_from_dict(axis) for axis in data["axes"])
    return SlotTerm(tuple(data["columns"]), axes, data["values"])


def _negative(term: Term) -> Term:
    if isinstance(term, LineTerm):
        assert term.missing is not None
        return replace(term, slope=-term.slope, missing=-term.missing)
    return replace(term, values=-term.values)


@dataclass(frozen=True)
class AdditiveScore:
    """score_k(x) = intercept_k + sum of terms; one score for two classes, K for K classes.

    ``link``, ``smoothing`` and ``calibration`` say how scores become probabilities
    (:func:`laconic.core.forms.probabilities`): "logit" (log-odds of the last of two
    classes), "softmax", "ovr", "vote", "points" (a table from whole totals to log-odds), or
    "identity", which has none.

    >>> line = LineTerm("x", np.array([2.0]))
    >>> model = AdditiveScore(("no", "yes"), np.array([-1.0]), (line,))
    >>> table = Table(("x",), ("numeric",), (None,), matrix=np.array([[0.5], [2.0]]))
    >>> model.score(table).ravel().tolist()
    [0.0, 3.0]
    >>> AdditiveScore.from_dict(model.to_dict()) == model
    True
    """

    classes: tuple[Any, ...]
    intercept: Floats
    terms: tuple[Term, ...]
    link: Link = "logit"
    smoothing: float = 0.0
    calibration: tuple[tuple[float, float], ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "intercept", _as_values(self.intercept, "intercept"))
        if self.link not in LINKS:
            raise ValueError(f"Unknown link {self.link!r}; expected one of {', '.join(LINKS)}.")
        expected = n_scores_of(self.link, len(self.classes), len(self.intercept))
        self._check_calibration(expected)
        if len(self.classes) < 2 or len(self.intercept) != expected:
            raise ValueError(f"{self.link} of {len(self.classes)} classes needs {expected} scores.")
        if any(term.n_scores != expected for term in self.terms):
            raise ValueError("Every term must have as many scores as the intercept.")
        if not (self.smoothing >= 0.0 and np.isfinite(self.smoothing)):
            raise ValueError(f"smoothing must be a number >= 0, got {self.smoothing!r}.")
        if not self._largest_score() < MOST_SCORE:
            raise ValueError("The values of the terms are too large to be added up.")

    def _check_calibration(self, expected: int) -> None:
        table = self.calibration
        if self.link == "points":
            totals = np.array([pair[0] for pair in table or ()], dtype=np.float64)
            if not len(totals) or (np.diff(totals) != 1.0).any():
                raise ValueError("The link 'points' needs the log-odds of every total in a row.")
        elif table is not None and (self.link != "vote" or np.shape(table) != (expected, 2)):
            raise ValueError("calibration needs the link 'vote' and (slope, intercept) by score.")
        if table is not None and not np.isfinite(table).all():
            raise ValueError("calibration must be finite numbers.")

    def _largest_score(self) -> float:
        """A bound on every score, lines aside: what they add depends on the row."""
        tables = [term.values for term in self.terms if not isinstance(term, LineTerm)]
        return float(
            sum(float(np.abs(part).max(initial=0.0)) for part in [self.intercept, *tables])
        )

    @property
    def n_scores(self) -> int:
        return len(self.intercept)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that the model reads, in order of first use."""
        return tuple(dict.fromkeys(name for term in self.terms for name in term.columns))

    def contributions(self, table: Table) -> Floats:
        """(rows, terms, scores); with the intercept they add up to :meth:`score`, in this order."""
        out = np.empty((table.n_rows, len(self.terms), self.n_scores))
        for t, term in enumerate(self.terms):
            out[:, t] = term.contribution(table)
        return out

    def score(self, table: Table) -> Floats:
        """(rows, scores). A row's score does not depend on the other rows."""
        total = np.repeat(self.intercept[None, :], table.n_rows, axis=0)
        for term in self.terms:
            total += term.contribution(table)
        return total

    def proba(self, table: Table) -> Floats:
        """(rows, classes), for the links that have probabilities."""
        scores = refuse_overflow(self.score(table))
        return probabilities(scores, self.link, self.smoothing, self.calibration)

    def without(self, t: int) -> AdditiveScore:
        return replace(self, terms=self.terms[:t] + self.terms[t + 1 :])

    def with_term(self, t: int, term: Term) -> AdditiveScore:
        return replace(self, terms=(*self.terms[:t], term, *self.terms[t + 1 :]))

    def reversed(self) -> AdditiveScore:
        """The same model of two classes, its score that of the other class.

        >>> model = AdditiveScore(("no", "yes"), np.array([1.5]), ())
        >>> model.reversed().classes, model.reversed().intercept.tolist()
        (('yes', 'no'), [-1.5])
        """
        if self.n_scores != 1 or len(self.classes) != 2:
            raise ValueError("Only a score of two classes can be that of the other class.")
        return replace(
            self,
            classes=self.classes[::-1],
            intercept=-self.intercept,
            terms=tuple(_negative(term) for term in self.terms),
            calibration=self._reversed_calibration(),
        )

    def _reversed_calibration(self) -> tuple[tuple[float, float], ...] | None:
        if self.calibration is None or self.link != "points":
            return self.calibration and tuple((a, -b) for a, b in self.calibration)
        return tuple((-total, -odds) for total, odds in self.calibration[::-1])

    def to_dict(self) -> dict[str, Any]:
        """Numbers, texts, lists: ``json.dumps`` keeps every bit."""
        return {
            "form": "additive",
            "link": self.link,
            "classes": [plain_label(c) for c in self.classes],
            "intercept": self.intercept.tolist(),
            "terms": [term.to_dict() for term in self.terms],
            "smoothing": float(self.smoothing),
            "calibration": self.calibration and [list(pair) for pair in self.calibration],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AdditiveScore:
        if data.get("form") != "additive":
            raise ValueError(f"Expected an additive form, got {data.get('form')!r}.")
        terms: Sequence[Term] = [term_from_dict(term) for term in data["terms"]]
        calibration = data.get("calibration")
        return cls(
            tuple(data["classes"]),
            data["intercept"],
            tuple(terms),
            data["link"],
            float(data.get("smoothing", 0.0)),
            None if calibration is None else tuple((float(a), float(b)) for a, b in calibration),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AdditiveScore) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]


def plain_label(value: Any) -> Any:
    """A class label as JSON can hold it."""
    return value.item() if isinstance(value, np.generic) else value


def linear_score(
    classes: Sequence[Any],
    names: Sequence[str],
    coef: ArrayLike,
    intercept: ArrayLike,
    link: Link = "logit",
) -> AdditiveScore:
    """The form of a linear model: ``coef`` is (scores, columns); zero coefficients give no term.

    >>> linear_score([0, 1], ["a", "b"], [[1.0, 0.0]], [0.5]).columns
    ('a',)
    """
    slopes = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    terms = tuple(
        LineTerm(name, slopes[:, j]) for j, name in enumerate(names) if slopes[:, j].any()
    )
    bias = np.atleast_1d(np.asarray(intercept, dtype=np.float64))
    return AdditiveScore(tuple(plain_label(c) for c in classes), bias, terms, link)
