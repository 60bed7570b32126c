"""What a model was like on rows it had not seen, in counts: the yardstick for rows to come.

No row is kept. Scores are counted by class in cells (the decision taken, and how high the score
was), columns by class in a few bins (intervals, the commonest texts, missing, any other).
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.core.decisions import (
    class_codes,
    correct_prior,
    decision_threshold,
    expected_costs,
)
from laconic.data.tables.columns import Table
from laconic.data.tables.spoken import day_text, is_days
from laconic.decide.recalibration import Recalibration
from laconic.decide.threshold import GuaranteedThreshold
from laconic.decide.tuning import COLUMN_BINS, MOST_TEXTS, SCORE_BINS


@dataclass(frozen=True)
class ColumnReference:
    """How the cells of one column fell: intervals or texts, then any other, then missing."""

    name: str
    edges: Floats | None
    texts: tuple[str, ...] | None
    counts: Floats
    """(classes, bins)."""

    @property
    def n_bins(self) -> int:
        known = len(self.texts) if self.texts is not None else len(self.edges) + 1  # type: ignore[arg-type]
        return known + 2

    def bins(self, table: Table) -> Ints:
        """The bin of every row of a table."""
        j = table.place(self.name)
        values = table.column(j)
        if self.texts is None:
            numbers = np.asarray(values, dtype=np.float64)
            found = np.searchsorted(self.edges, numbers, "left")  # type: ignore[call-overload]
            return np.where(np.isnan(numbers), self.n_bins - 1, found).astype(np.int64)
        place = {text: b for b, text in enumerate(self.texts)}
        own = [place.get(text, self.n_bins - 2) for text in table.categories[j] or ()]
        # the codes -2 (new text) and -1 (missing) read the last two entries
        table_of = np.array([*own, self.n_bins - 2, self.n_bins - 1], dtype=np.int64)
        return np.asarray(table_of[values])

    def label(self, b: int) -> str:
        if b >= self.n_bins - 2:
            return ("any other", "missing")[b - (self.n_bins - 2)]
        if self.texts is not None:
            return self.texts[b]
        assert self.edges is not None
        if not len(self.edges):
            return "any number"
        edge = float(self.edges[max(b - 1, 0)])
        said = (day_text(edge) if is_days(self.name) else "") or f"{edge:.4g}"
        return f"{'>' if b else '≤'} {said}"


@dataclass(frozen=True)
class Reference:
    """Counts of labelled rows that the fit has not seen.

    >>> draw = np.random.default_rng(0)
    >>> p = draw.random(500)
    >>> proba, codes = np.column_stack([1 - p, p]), (draw.random(500) < p).astype(int)
    >>> decided = (p > 0.3).astype(int)
    >>> reference = Reference.of_scores(proba, codes, decided, 2)
    >>> int(reference.counts.sum()), reference.counts.shape[0]
    (500, 2)
    """

    edges: Floats
    """Cuts of the score: the probability of the last of two classes; of more, the largest one, in
    a range of its own for each class that it may belong to."""
    decisions: Ints
    """What was decided in each cell; -1 for an abstention."""
    bins: Ints
    """Bin of the score that each cell belongs to: a cell is a bin and a decision."""
    counts: Floats
    """(classes, cells)."""
    proba: Floats
    """(cells, classes): mean probabilities of the model, before any correction."""
    columns: tuple[ColumnReference, ...] = ()
    recalibration: Recalibration | None = None
    """How the probabilities are best read for the class mix of new rows."""
    average: Mapping[str, list[float]] | None = None
    """Mean contributions of each variable, by score: the average row of reasons in words."""

    @classmethod
    def of_scores(
        cls,
        proba: Floats,
        codes: Ints,
        decided: Ints,
        n_classes: int,
        columns: tuple[ColumnReference, ...] = (),
        average: Mapping[str, list[float]] | None = None,
        train_prior: Floats | None = None,
    ) -> Reference:
        """Bins that separate the classes, cut further where decisions change inside one."""
        score = _score(proba)
        # of many classes fewer quantiles each: every bin costs rows of every class
        parts = SCORE_BINS if n_classes == 2 else max(round(2 * SCORE_BINS / n_classes), 1)
        levels = np.linspace(0.0, 1.0, parts + 1)[1:-1]
        group = codes if n_classes == 2 else proba.argmax(axis=1)
        groups = [score[group == k] for k in range(n_classes)]
        cuts = [np.quantile(own, levels) for own in groups if len(own)]
        if n_classes > 2:
            cuts.append(2.0 * np.arange(1, n_classes) - 0.5)  # between the ranges of the classes
        edges = np.unique(np.concatenate(cuts))
        n_bins = len(edges) + 1
        flat = (decided + 1) * n_bins + np.searchsorted(edges, score, "left")
        used, cell = np.unique(flat, return_inverse=True)
        counts = np.zeros((n_classes, len(used)))
        np.add.at(counts, (codes, cell), 1.0)
        means = np.zeros((len(used), n_classes))
        np.add.at(means, cell, proba)
        means /= counts.sum(axis=0)[:, None]
        again = Recalibration.of(proba, codes, train_prior)
        return cls(edges, used // n_bins - 1, used % n_bins, counts, means, columns, again, average)

    @property
    def n_bins(self) -> int:
        return len(self.edges) + 1

    def bins_of(self, proba: Floats) -> Ints:
        """The bin of the score of every row."""
        return np.searchsorted(self.edges, _score(proba), "left")

    def by_bin(self, counts: Floats) -> Floats:
        """Counts of cells, (.., cells), added up to bins."""
        total = np.zeros((*counts.shape[:-1], self.n_bins))
        np.add.at(total, (..., self.bins), counts)  # type: ignore[arg-type]
        return total

    def to_dict(self) -> dict[str, Any]:
        return {
            "edges": self.edges.tolist(),
            "decisions": self.decisions.tolist(),
            "bins": self.bins.tolist(),
            "counts": self.counts.tolist(),
            "proba": self.proba.tolist(),
            "columns": [
                {
                    "name": column.name,
                    "edges": None if column.edges is None else column.edges.tolist(),
                    "texts": None if column.texts is None else list(column.texts),
                    "counts": column.counts.tolist(),
                }
                for column in self.columns
            ],
            "recalibration": None if self.recalibration is None else self.recalibration.to_dict(),
            "average": None if self.average is None else dict(self.average),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Reference:
        columns = tuple(
            ColumnReference(
                str(one["name"]),
                None if one["edges"] is None else _numbers(one["edges"], "edges"),
                None if one["texts"] is None else tuple(str(text) for text in one["texts"]),
                _numbers(one["counts"], "counts"),
            )
            for one in data["columns"]
        )
        found = cls(
            _numbers(data["edges"], "edges"),
            np.array(data["decisions"], dtype=np.int64),
            np.array(data["bins"], dtype=np.int64),
            _numbers(data["counts"], "counts"),
            _numbers(data["proba"], "proba"),
            columns,
            None
            if data.get("recalibration") is None
            else Recalibration.from_dict(data["recalibration"], len(data["counts"])),
            _average(data.get("average")),
        )
        found._check()
        return found

    def _check(self) -> None:
        n_classes, n_cells = self.counts.shape
        right = (
            len(self.decisions) == n_cells
            and self.proba.shape == (n_cells, n_classes)
            and self.bins.shape == (n_cells,)
            and ((self.bins >= 0) & (self.bins < self.n_bins)).all()
            and ((self.decisions >= -1) & (self.decisions < n_classes)).all()
            and (self.counts >= 0).all()
            and all(
                one.counts.shape == (n_classes, one.n_bins)
                and (one.edges is None) != (one.texts is None)
                for one in self.columns
            )
        )
        if not right:
            raise ValueError("the reference does not fit its own cells")


def reference_of(model: Any, X: Any, y: Any) -> Reference:
    """Count labelled rows that the fit of a DecisionClassifier has not seen.

    Parameters
    ----------
    model : fitted DecisionClassifier whose inner model belongs to this library
    X, y : rows and their classes

    Returns
    -------
    Reference
    """
    codes = class_codes(np.asarray(y), model.classes_, "y")
    table = model.estimator_._read_rows(X)
    raw = np.asarray(model.estimator_.predict_proba(X), dtype=np.float64)
    n_classes = len(model.classes_)
    columns = tuple(_column_reference(table, j, codes, n_classes) for j in range(len(table.names)))
    average = _average_row(model.estimator_, table) if hasattr(model, "explain") else None
    decided = decisions_of(model, raw)
    prior = model.train_prior_
    return Reference.of_scores(raw, codes, decided, n_classes, columns, average, prior)


_BLOCK = 8192


def _average_row(model: Any, table: Table) -> dict[str, list[float]] | None:
    """Mean contributions, summed over blocks of rows: all of them at once may not fit."""
    if not table.n_rows:
        return None
    total, names = None, ()
    for start in range(0, table.n_rows, _BLOCK):
        why = model.explain(table[start : start + _BLOCK])
        own, names = why.contributions.sum(axis=0), why.names
        total = own if total is None else total + own
    mean = np.asarray(total) / table.n_rows
    return dict(zip(names, mean.tolist(), strict=True))


def _average(data: Any) -> dict[str, list[float]] | None:
    if data is None:
        return None
    found = {str(name): _numbers(own, "average") for name, own in data.items()}
    if len({own.shape for own in found.values()}) > 1 or any(
        own.ndim != 1 for own in found.values()
    ):
        raise ValueError("the average row must have one number for each score")
    return {name: own.tolist() for name, own in found.items()}


def decisions_of(model: Any, raw: Floats, prior: Floats | None = None) -> Ints:
    """Decisions as positions, -1 for an abstention, from the inner model's probabilities.

    For another ``prior`` they are those of the model that adopts it, promises kept.
    """
    model = model if prior is None else adopting(model, prior)
    proba = raw
    if model.prior_ is not None and model.train_prior_ is not None:
        proba = correct_prior(raw, model.train_prior_, model.prior_)
    paid = expected_costs(proba, model.rule_costs_)
    decided = paid.argmin(axis=1)
    if model.rule_reject_ is not None:
        decided = np.where(paid.min(axis=1) > model.rule_reject_, -1, decided)
    return np.asarray(decided, dtype=np.int64)


def adopts(model: Any, prior: Floats) -> bool:
    """Whether a fitted DecisionClassifier can decide for another class mix.

    It must know the mix of its probabilities, and one of its promises must stay, if it made any.
    """
    held = model.guaranteed_
    if held is None or model.train_prior_ is None:
        return model.train_prior_ is not None
    stays = any(one.holds_under_shift for one in held.promises)
    return bool(stays and getattr(held, "reject", None) is None and np.min(prior) > 0.0)


def threshold_for(model: Any, prior: Floats) -> float | None:
    """Two classes: the probability of the positive one, as the model gives it now, above which the
    model that adopts ``prior`` decides it. The positive class is the last one if none is named.
    """
    now = model.train_prior_ if model.prior_ is None else model.prior_
    plain = len(model.classes_) == 2 and model.rule_reject_ is None
    if not plain or not adopts(model, prior) or min(*prior, *now) <= 0.0:
        return None
    cut = float(adopting(model, prior).threshold_)
    # p' / (1 - p') = factor p / (1 - p)
    factor = float(prior[1] * now[0] / (prior[0] * now[1]))
    own = cut / (cut + (1.0 - cut) * factor)
    return 1.0 - own if model.positive_ == model.classes_[0] else own


def adopting(model: Any, prior: Floats) -> Any:
    """A copy of a fitted DecisionClassifier that decides for another class mix.

    A promise within a class stays: its threshold moves with the odds. One that depends on the mix
    is promised no longer.
    """
    found = copy(model)
    old = model.train_prior_ if model.prior_ is None else model.prior_
    found.prior = found.prior_ = np.asarray(prior, dtype=np.float64)
    held = model.guaranteed_
    if isinstance(held, GuaranteedThreshold):
        k = model.classes_.tolist().index(model.positive_)
        ends = (old[k], old[1 - k], prior[k], prior[1 - k])
        if min(ends) <= 0.0:
            raise ValueError("A guaranteed threshold needs a share above zero of both classes.")
        factor = prior[k] * old[1 - k] / (prior[1 - k] * old[k])
        order = [1 - k, k]
        cheapest = decision_threshold(model.cost_matrix_[np.ix_(order, order)])
        found.hold(held.for_mix(float(factor), cheapest))
    elif held is not None:
        found.hold(held.for_mix(np.asarray(prior) / old))
    return found


def _score(proba: Floats) -> Floats:
    if proba.shape[1] == 2:
        return proba[:, 1]
    return np.asarray(2.0 * proba.argmax(axis=1) + proba.max(axis=1))


def _column_reference(table: Table, j: int, codes: Ints, n_classes: int) -> ColumnReference:
    values: NDArray[Any] = table.column(j)
    edges, texts = None, None
    if table.kinds[j] == "categorical":
        known = table.categories[j] or ()
        often = np.bincount(values[values >= 0], minlength=len(known))
        common = np.argsort(-often, kind="stable")[:MOST_TEXTS]
        texts = tuple(known[c] for c in sorted(common.tolist()) if often[c])
    else:
        numbers = np.asarray(values, dtype=np.float64)
        numbers = numbers[~np.isnan(numbers)]
        levels = np.linspace(0.0, 1.0, COLUMN_BINS + 1)[1:-1]
        edges = (
            np.unique(np.quantile(numbers, levels, method="inverted_cdf"))
            if len(numbers)
            else np.empty(0)
        )
    empty = ColumnReference(table.names[j], edges, texts, np.zeros((n_classes, 0)))
    counts = np.zeros((n_classes, empty.n_bins))
    np.add.at(counts, (codes, empty.bins(table)), 1.0)
    return ColumnReference(table.names[j], edges, texts, counts)


def _numbers(values: Any, name: str) -> Floats:
    found = np.array(values, dtype=np.float64)
    if not np.isfinite(found).all():
        raise ValueError(f"{name} of the reference must be finite numbers")
    return found
