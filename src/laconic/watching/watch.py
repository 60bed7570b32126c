"""``laconic.watch``: what new rows say about a model, before their labels come."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import chi2

from laconic._typing import Floats, Ints
from laconic.core.decisions import class_codes
from laconic.data.tables.columns import Table
from laconic.decide.reference import ColumnReference, Reference, decisions_of, reference_of
from laconic.watching.mix import MixEstimate, cell_shares, estimate_mix
from laconic.watching.sequential import MeanWatch

ALARM = 0.03
"""Chance of an alarm when only the mix moved, half for the scores and half for all columns. The
tests are approximate: in simulations this gives three to five alarms in a hundred."""


@dataclass(frozen=True)
class MovedColumn:
    """A column whose cells fall otherwise than the new class mix explains."""

    name: str
    p_value: float
    """Corrected for looking at all columns (Holm)."""
    largest: str
    """The bin that moved most, with its shares then and now."""
    before: float
    now: float


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
    moved: tuple[MovedColumn, ...]
    unseen: dict[str, int] = field(default_factory=dict)
    labelled: dict[str, Any] | None = None

    @property
    def mix_explains(self) -> bool:
        """Whether a moved class mix alone explains the scores."""
        return self.mix.p_value >= ALARM / 2

    @property
    def mix_moved(self) -> bool:
        """Whether the old class mix lies outside the interval of the new one."""
        old = self.reference_mix
        return bool(((old < self.mix.low) | (old > self.mix.high)).any())

    @property
    def alarm(self) -> bool:
        """Something other than the class mix has moved, or labels show that the cost has."""
        costly = self.labelled is not None and self.labelled["alarm_at"] is not None
        return not self.mix_explains or bool(self.moved) or costly

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
            "moved": [
                {
                    "column": one.name,
                    "p_value": one.p_value,
                    "bin": one.largest,
                    "before": one.before,
                    "now": one.now,
                }
                for one in self.moved
            ],
            "unseen": self.unseen,
            "labelled": self.labelled,
        }


class Counter:
    """Counts of the new rows, chunk after chunk: the memory does not grow with them."""

    def __init__(self, model: Any, reference: Reference) -> None:
        self.model, self.reference = model, reference
        self.n_rows = 0
        self.seen = np.zeros(reference.n_bins)
        self.columns = [np.zeros(one.n_bins) for one in reference.columns]
        self.unseen: dict[str, int] = {}
        self.costs: list[Floats] = []

    def add(self, X: Any, y: Any = None) -> None:
        """Count some rows."""
        inner = self.model.estimator_
        table: Table = inner._read_rows(X)
        raw = np.asarray(inner.predict_proba(X), dtype=np.float64)
        self.n_rows += len(raw)
        self.seen += self.reference.bin_counts(raw)
        for one, counts in zip(self.reference.columns, self.columns, strict=True):
            counts += np.bincount(one.bins(table), minlength=one.n_bins)
            self._count_unseen(one, table)
        if y is not None:
            self.costs.append(self._paid(decisions_of(self.model, raw), np.asarray(y)))

    def _count_unseen(self, one: ColumnReference, table: Table) -> None:
        j = table.place(one.name)
        if table.kinds[j] == "categorical":
            new = int((table.column(j) == -2).sum())
            if new:
                self.unseen[one.name] = self.unseen.get(one.name, 0) + new

    def _paid(self, decided: Ints, y: Any) -> Floats:
        codes = class_codes(y, self.model.classes_, "labels")
        paid = self.model.cost_matrix_[codes, np.maximum(decided, 0)]
        if self.model.reject_cost is not None:
            paid = np.where(decided < 0, self.model.reject_cost, paid)
        return np.asarray(paid)


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
        Their classes, in the order in which they came, when known.
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
    rows = known.counts.sum(axis=1)
    base = rows / rows.sum()
    risks = _risks_of(model, known.counts, known.decisions)
    # the mix and the class risks rest on the same rows: they are redrawn together
    spread = (mix.draws * _risks_of(model, mix.redrawn, known.decisions)).sum(axis=1)
    tail = (1.0 - confidence) / 2.0
    now = float(mix.prior @ risks)
    low, high = np.quantile(spread, [tail, 1.0 - tail])
    adopted = _adopted(model, known, mix.prior)
    return Watched(
        model.classes_.tolist(),
        counter.n_rows,
        mix,
        base,
        (now, min(float(low), now), max(float(high), now)),
        float(base @ risks),
        float(mix.prior @ _risks_of(model, known.counts, adopted)),
        _cautious(model, known, mix),
        _moved_columns(counter, mix),
        counter.unseen,
        _labelled(counter, float(high)),
    )


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
    if model.train_prior_ is None:
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


def _moved_columns(counter: Counter, mix: MixEstimate) -> tuple[MovedColumn, ...]:
    columns = counter.reference.columns
    tests = [
        _column_test(one, seen, mix) for one, seen in zip(columns, counter.columns, strict=True)
    ]
    order = np.argsort([p for p, *_ in tests], kind="stable")
    found = []
    worst = 0.0
    for rank, j in enumerate(order.tolist()):
        worst = max(worst, min(tests[j][0] * (len(tests) - rank), 1.0))
        if worst >= ALARM / 2:
            break
        _, b, before, now = tests[j]
        found.append(MovedColumn(columns[j].name, worst, columns[j].label(b), before, now))
    return tuple(found)


def _column_test(
    one: ColumnReference, seen: Floats, mix: MixEstimate
) -> tuple[float, int, float, float]:
    """P-value of "the column follows the mix", and the bin that moved most."""
    shares = cell_shares(one.counts)
    rows = np.maximum(one.counts.sum(axis=1), 1.0)
    total = max(seen.sum(), 1.0)
    expected = mix.prior @ shares
    doubt = mix.draws.std(axis=0) @ np.abs(shares - expected)
    variance = (
        expected * (1.0 - expected) / total
        + (mix.prior**2 / rows) @ (shares * (1.0 - shares))
        + doubt**2
    )
    now = seen / total
    used = (one.counts.sum(axis=0) + seen) >= 5.0  # a sum of squares needs some rows in each bin
    if used.sum() < 2:
        return 1.0, 0, 0.0, 0.0
    distance = np.where(used, (now - expected) ** 2 / variance, 0.0)
    b = int(distance.argmax())
    p_value = float(chi2.sf(distance.sum(), int(used.sum()) - 1))
    return p_value, b, float(expected[b]), float(now[b])


def _labelled(counter: Counter, high: float) -> dict[str, Any] | None:
    """Whether the costs paid left the band that unlabelled rows promise, and after which row."""
    if not counter.costs:
        return None
    paid = np.concatenate(counter.costs)
    matrix = counter.model.cost_matrix_
    reject = counter.model.reject_cost
    ceiling = float(max(matrix.max(), 0.0 if reject is None else reject))
    bound = float(min(high, np.nextafter(ceiling, 0.0)))
    test = MeanWatch(bound, float(min(matrix.min(), 0.0)), ceiling)
    test.add(paid)
    at = test.alarm_at()
    return {"rows": len(paid), "cost": float(paid.mean()), "band": bound, "alarm_at": at}
