"""``laconic.watch``: what new rows say about a model, before their labels come."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.data.tables.columns import Table
from laconic.decide.reference import (
    ColumnReference,
    Reference,
    adopts,
    decisions_of,
    reference_of,
    threshold_for,
)
from laconic.decide.shift import estimate_prior
from laconic.watching.columns import MovedColumn, moved_columns, moved_days
from laconic.watching.labelled import Labels, class_positions, watch_labels
from laconic.watching.mix import MixEstimate, estimate_mix
from laconic.watching.tuning import (
    ALARM,
    COLUMNS,
    KEPT_ROWS,
    LABELLED,
    SCORES,
)


@dataclass(frozen=True)
class Watched:
    """What new rows say about a model."""

    classes: list[Any]
    n_rows: int
    mix: MixEstimate
    reference_mix: Floats
    cost: tuple[float, float, float]
    """Expected cost of the decisions on the new rows, with its interval."""
    reference_cost: float
    adopted_cost: float
    """The same, had the decisions been taken for the new mix."""
    cautious: Floats
    """The mix in the interval for which decisions have the least worst cost over it."""
    thresholds: dict[str, float | None]
    """Two classes: probabilities of the positive one, as the model gives them, above which it is
    decided: ``now``, ``adopted`` (the new mix) and ``cautious``. None where there is no such."""
    moved: tuple[MovedColumn, ...]
    unseen: dict[str, int] = field(default_factory=dict)
    labelled: dict[str, Any] | None = None
    days: tuple[MovedColumn, ...] = ()
    """Columns of days or months that moved, as they do when time passes: no alarm by themselves."""

    @property
    def mix_explains(self) -> bool:
        """Whether a moved class mix alone explains the scores."""
        return self.mix.p_value >= SCORES * _unlabelled(self.labelled is not None)

    @property
    def mix_moved(self) -> bool:
        """Whether the old class mix lies outside the interval of the new one."""
        old = self.reference_mix
        return bool(((old < self.mix.low) | (old > self.mix.high)).any())

    @property
    def alarm(self) -> bool:
        """Something other than the class mix has moved, or labels show a cost or promise broken."""
        broken = self.labelled is not None and self.labelled["alarm"]
        return not self.mix_explains or bool(self.moved) or broken

    def to_dict(self) -> dict[str, Any]:
        """Numbers, texts and lists."""
        low, high = self.mix.low, self.mix.high
        return {
            "rows": self.n_rows,
            "alarm": self.alarm,
            "mix": {
                str(name): {"share": p, "low": a, "high": b, "reference": q}
                for name, p, a, b, q in zip(
                    self.classes,
                    self.mix.prior.tolist(),
                    low.tolist(),
                    high.tolist(),
                    self.reference_mix.tolist(),
                    strict=True,
                )
            },
            "mix_explains_scores": self.mix_explains,
            "mix_p_value": self.mix.p_value,
            "cost": dict(zip(("expected", "low", "high"), self.cost, strict=True)),
            "reference_cost": self.reference_cost,
            "adopted_cost": self.adopted_cost,
            "cautious_mix": self.cautious.tolist(),
            "thresholds": self.thresholds,
            "moved": [_told(one) for one in self.moved],
            "days": [_told(one) for one in self.days],
            "unseen": self.unseen,
            "labelled": self.labelled,
        }


def _told(one: MovedColumn) -> dict[str, Any]:
    return {
        "column": one.name,
        "p_value": one.p_value,
        "bin": one.largest,
        "before": one.before,
        "now": one.now,
    }


class Counter:
    """Counts of the new rows, chunk after chunk: the memory does not grow with them.

    Labels, whose order matters to the test, take a byte a row.
    """

    def __init__(self, model: Any, reference: Reference) -> None:
        self.model, self.reference = model, reference
        self.n_rows = 0
        self.seen = np.zeros(reference.n_bins)
        self.sums = np.zeros((reference.n_bins, len(model.classes_)))
        """Probabilities added up over the rows of each bin."""
        self.kept: list[Floats] = []
        """Probabilities of all rows while these are few."""
        self.columns = [np.zeros(one.n_bins) for one in reference.columns]
        self.unseen: dict[str, int] = {}
        self.labels = Labels(len(model.classes_))

    def add(self, X: Any, y: Any = None) -> None:
        """Count some rows."""
        inner = self.model.estimator_
        table: Table = inner._read_rows(X)
        # read once: a form takes the table as it is
        raw = np.asarray(inner.predict_proba(table), dtype=np.float64)
        self.n_rows += len(raw)
        self.kept = [*self.kept, raw] if self.n_rows <= KEPT_ROWS else []
        place = self.reference.bins_of(raw)
        self.seen += np.bincount(place, minlength=len(self.seen))
        for k, own in enumerate(raw.T):
            self.sums[:, k] += np.bincount(place, own, minlength=len(self.seen))
        for one, counts in zip(self.reference.columns, self.columns, strict=True):
            counts += np.bincount(one.bins(table), minlength=one.n_bins)
            self._count_unseen(one, table)
        if y is not None:
            self._add_labels(np.asarray(y), raw)

    def _add_labels(self, y: NDArray[Any], raw: Floats) -> None:
        """Classes of the rows; one that has not come yet is a missing or an empty cell."""
        if len(y) != len(raw):
            raise ValueError(
                f"labels must hold one class for each of {len(raw)} rows, got {len(y)}."
            )
        codes = class_positions(y, self.model.classes_)
        came = codes >= 0
        if came.any():
            self.labels.add(codes[came], decisions_of(self.model, raw[came]))

    def _count_unseen(self, one: ColumnReference, table: Table) -> None:
        j = table.place(one.name)
        if table.kinds[j] == "categorical":
            new = int((table.column(j) == -2).sum())
            if new:
                self.unseen[one.name] = self.unseen.get(one.name, 0) + new

    def likeliest_mix(self) -> Floats | None:
        """By the probabilities themselves, recalibrated as far as the reference asks for it."""
        again = self.reference.recalibration
        prior = self.model.train_prior_ if again is None or again.prior is None else again.prior
        if prior is None or not (prior > 0).all():
            return None
        if self.kept:
            proba, weight = np.vstack(self.kept), None
        else:
            used = self.seen > 0
            proba, weight = self.sums[used] / self.seen[used, None], self.seen[used]
        proba = proba if again is None else again.apply(proba)
        return np.asarray(estimate_prior(proba, prior, sample_weight=weight, tol=1e-6).point)


def watch(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    reference: Any = None,
    chunks: Iterable[Any] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Watched:
    """What new rows say about a model: class mix, cost, and whether anything else has moved.

    Parameters
    ----------
    model : fitted DecisionClassifier, or a model that :func:`laconic.load` gave
    X : rows, as the model accepts them
    y : array-like, default=None
        Their classes, in the order in which they came, when known; None or NaN where a class has
        not come yet.
    reference : Reference, or (X, y), default=None
        Labelled rows that the fit has not seen. None: what the model file holds.
    chunks : iterable of rows or of (rows, classes), default=None
        Read instead of ``X``, for rows that do not fit in memory.
    confidence : float, default=0.95
    seed : int, default=0
        Of the redraws behind the intervals.

    Returns
    -------
    Watched

    Examples
    --------
    >>> from laconic import DecisionClassifier, PlainLogisticRegression
    >>> from laconic.data.demo import make_payments
    >>> payments, label = make_payments(6000)
    >>> costs = {"fraud": {"genuine": 25}, "genuine": {"fraud": 1}}
    >>> model = DecisionClassifier(PlainLogisticRegression(), costs)
    >>> model = model.fit(payments[:2000], label[:2000])
    >>> held_out = payments[2000:4000], label[2000:4000]
    >>> found = watch(model, payments[4000:], reference=held_out)
    >>> found.alarm, bool(found.mix.low[0] < 0.03 < found.mix.high[0])
    (False, True)
    """
    model = getattr(model, "decision_", model)
    known = reference_for(model, reference)
    counter = Counter(model, known)
    if chunks is None:
        counter.add(X, y)
    for chunk in chunks or ():
        counter.add(*(chunk if isinstance(chunk, tuple) else (chunk,)))
    return conclude(counter, confidence=confidence, seed=seed)


def conclude(counter: Counter, *, confidence: float = 0.95, seed: int = 0) -> Watched:
    """From counts to statements."""
    model, known = counter.model, counter.reference
    mix = estimate_mix(
        known.counts, counter.seen, by_bin=known.by_bin, confidence=confidence, seed=seed
    )
    best = counter.likeliest_mix()
    mix = mix if best is None else mix.told_by(best)
    rows = known.counts.sum(axis=1)
    base = rows / rows.sum()
    cost = cost_interval(model, known, mix, confidence)
    adopted = _adopted(model, known, mix.prior)
    cautious = _cautious(model, known, mix)
    before = model.train_prior_ if model.prior_ is None else model.prior_
    doubt = COLUMNS * _unlabelled(bool(counter.labels))
    return Watched(
        model.classes_.tolist(),
        counter.n_rows,
        mix,
        base,
        cost,
        float(base @ _risks_of(model, known.counts, known.decisions)),
        float(mix.prior @ _risks_of(model, known.counts, adopted)),
        cautious,
        {
            name: threshold_for(model, prior)
            for name, prior in (("now", before), ("adopted", mix.prior), ("cautious", cautious))
        },
        moved_columns(known.columns, counter.columns, mix, doubt),
        counter.unseen,
        watch_labels(model, counter.labels, cost[2], ALARM * LABELLED),
        moved_days(known.columns, counter.columns, mix, doubt),
    )


def cost_interval(
    model: Any, known: Reference, mix: MixEstimate, confidence: float
) -> tuple[float, float, float]:
    """Expected cost of the decisions for a class mix, and its interval."""
    now = float(mix.prior @ _risks_of(model, known.counts, known.decisions))
    # the mix and the class risks rest on the same rows: they are redrawn together
    spread = (mix.draws * _risks_of(model, mix.redrawn, known.decisions)).sum(axis=1)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(spread, [tail, 1.0 - tail]).tolist()
    return now, min(low, now), max(high, now)


def _unlabelled(labelled: bool) -> float:
    """The chance of a false alarm that the tests without labels share."""
    return ALARM * (1.0 - LABELLED) if labelled else ALARM


def reference_for(model: Any, given: Any = None) -> Reference:
    """What new rows are compared with: what is given, else what the model file holds."""
    if isinstance(given, Reference):
        return given
    if given is not None:
        return reference_of(model, *given)
    own = getattr(model, "reference_", None)
    if own is None:
        raise ValueError(
            "The model has no reference to compare with; give reference=(X, y) with labelled rows "
            "that the fit has not seen, or fit it again with `laconic fit`."
        )
    return own if isinstance(own, Reference) else Reference.from_dict(own)


def _risks_of(model: Any, counts: Floats, decisions: Ints) -> Floats:
    """Mean cost within each class, (.., classes), for counts of (.., classes, cells)."""
    price = model.cost_matrix_[:, np.maximum(decisions, 0)]
    if model.reject_cost is not None:
        price = np.where(decisions == -1, model.reject_cost, price)
    total = np.maximum(counts.sum(axis=-1), 1e-300)
    return np.asarray((counts * price).sum(axis=-1) / total)


def _adopted(model: Any, known: Reference, prior: Floats) -> Ints:
    """What would be decided in each cell for another class mix."""
    if not adopts(model, prior):
        return known.decisions
    return decisions_of(model, known.proba, prior)


def _cautious(model: Any, known: Reference, mix: MixEstimate) -> Floats:
    """Of the mixes between the ends of the interval, the one whose decisions do least badly."""
    ends = [_between(mix, side) for side in (mix.low, mix.high)]
    grid = [(1.0 - t) * ends[0] + t * ends[1] for t in np.linspace(0.0, 1.0, 11)]
    worst = []
    for prior in grid:
        risks = _risks_of(model, known.counts, _adopted(model, known, prior))
        worst.append(max(float(end @ risks) for end in ends))
    return np.asarray(grid[int(np.argmin(worst))])


def _between(mix: MixEstimate, side: Floats) -> Floats:
    """A mix at one end of the interval of the last class, the others in proportion."""
    prior = mix.prior.copy()
    rest = prior[:-1].sum()
    prior[-1] = side[-1]
    prior[:-1] *= (1.0 - side[-1]) / rest if rest > 0 else 0.0
    if rest == 0:
        prior[:-1] = (1.0 - side[-1]) / len(prior[:-1])
    return prior
