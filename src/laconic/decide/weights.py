r"""Class weights, and a price of abstaining, that hold promises of several classes.

The rule takes the decision d of least :math:`\sum_k w_k p_k \mathrm{costs}[k, d]` and abstains
where that exceeds :math:`\rho`. Weights and price are learned on one half of the calibration rows:
the cheapest that keep every level there with a margin of t standard errors, for several t. The
other half tests these few rules, the likeliest to pass first (as the first half says), each by the
largest of the p-values of its promises, and stops at the first that fails (Learn then Test with a
fixed sequence, Angelopoulos et al. 2021). A rule that breaks any promise passes with probability
delta at most, and so does the first such rule of the sequence: several promises at once cost
nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from laconic._typing import Floats, Ints, Mask
from laconic.core.decisions import class_codes, cost_matrix
from laconic.data.row_keys import number_keys, place_keys
from laconic.decide.guarantee import (
    OF_A_CLASS,
    Guarantee,
    NoThresholdError,
    Promise,
    check_confidence,
    mean_p_value,
    read_guarantees,
    refuse_too_few,
)
from laconic.decide.tuning import MARGINS, STEPS, SWEEPS


@dataclass(frozen=True)
class GuaranteedWeights:
    """Decide by least weighted cost, abstain above ``reject``; every promise holds."""

    weights: tuple[float, ...]
    reject: float | None
    cost: float | None
    promises: tuple[Promise, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "weights": list(self.weights),
            "reject": self.reject,
            "cost": self.cost,
            "promises": [one.to_dict() for one in self.promises],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> GuaranteedWeights:
        weights = tuple(float(w) for w in data["weights"])
        if not all(0.0 < w < np.inf for w in weights):
            raise ValueError("class weights must be positive numbers")
        reject = None if data["reject"] is None else float(data["reject"])
        promises = tuple(map(Promise.from_dict, data["promises"]))
        cost = None if data["cost"] is None else float(data["cost"])
        return cls(weights, reject, cost, promises)

    def rule_costs(self, costs: Floats) -> Floats:
        """Costs whose least expectation decides by the weights."""
        if costs.shape != (len(self.weights),) * 2:
            raise ValueError("there is one weight for each class")
        return np.asarray(np.array(self.weights)[:, None] * costs)

    def for_mix(self, ratio: Floats) -> GuaranteedWeights:
        """The same decisions after probabilities were multiplied by ``ratio``, class by class.

        Recall within a class stays, since no decision moves; what depends on the mix is promised
        no longer.
        """
        kept = tuple(one for one in self.promises if one.holds_under_shift)
        if not kept or self.reject is not None or (ratio <= 0.0).any():
            raise ValueError(
                f"{', '.join(str(one.guarantee) for one in self.promises)} was promised for the "
                "class mix of its rows and says nothing about another one; fit again with this "
                "prior."
            )
        weights = np.array(self.weights) / ratio
        return GuaranteedWeights(tuple((weights / weights.max()).tolist()), None, None, kept)


def guaranteed_weights(
    proba: ArrayLike,
    y: ArrayLike,
    guarantees: str | Guarantee | Sequence[str | Guarantee],
    *,
    classes: ArrayLike,
    costs: Any = None,
    reject_cost: float | None = None,
    positive: Any = None,
    confidence: float = 0.95,
) -> GuaranteedWeights:
    """A cheap rule for any number of classes that holds every guarantee at once.

    Parameters
    ----------
    proba : array-like of shape (n, K)
        Probabilities for rows that had no part in the fit nor in its choice.
    y : array-like of shape (n,)
        Their classes.
    guarantees : str, Guarantee or a sequence of them
        For instance ``["recall(a)>=0.9", "error<=0.05", "abstentions<=0.2"]``.
    classes : array-like of shape (K,)
    costs : as in DecisionClassifier, default=None
    reject_cost : float, default=None
        Cost of abstaining. None: never abstain.
    positive : class, default=None
        Meant where a guarantee names no class.
    confidence : float, default=0.95

    Returns
    -------
    GuaranteedWeights

    Examples
    --------
    >>> draw = np.random.default_rng(0)
    >>> y = draw.integers(0, 3, 3000)
    >>> proba = draw.dirichlet([1, 1, 1], 3000) + 0.4 * np.eye(3)[y]
    >>> proba /= proba.sum(axis=1, keepdims=True)
    >>> found = guaranteed_weights(proba, y, "recall(2)>=0.9", classes=[0, 1, 2])
    >>> found.weights[2] > found.weights[1], found.promises[0].measured >= 0.9
    (True, True)
    """
    names = np.asarray(classes)
    values, codes = np.asarray(proba, dtype=np.float64), class_codes(np.asarray(y), names, "y")
    asked = with_classes(read_guarantees(guarantees), names.tolist(), positive, reject_cost)
    check_confidence(confidence)
    matrix = cost_matrix(costs, names, positive=positive)
    rows = _Rows(values, codes, matrix, reject_cost, tuple(asked))
    learn = _learning_half(
        values, codes, within_classes=all(one.measure == "recall" for one, _ in asked)
    )
    judges = rows.part(~learn)
    _refuse(asked, judges, confidence)
    learned = _path(rows.part(learn)) if learn.any() else []
    best: tuple[float, _Rule] | None = None
    for rule in learned:
        decided = judges.decide(rule)
        if max(judges.p_value(one, decided) for one, _ in asked) > 1.0 - confidence:
            break
        paid = float(judges.paid(decided).mean())
        if best is None or paid < best[0]:
            best = paid, rule
    if best is None:
        raise NoThresholdError(
            f"No rule was found that holds {' and '.join(str(one) for one, _ in asked)} at "
            f"{confidence:.0%} confidence on these {len(codes)} rows; ask for less, or hold more "
            "rows out."
        )
    decided = judges.decide(best[1])
    promises = tuple(judges.promise(one, k, decided, confidence) for one, k in asked)
    return GuaranteedWeights(
        tuple(np.exp(best[1].logs).tolist()), best[1].reject, best[0], promises
    )


def _learning_half(proba: Floats, codes: Ints, *, within_classes: bool) -> Mask:
    """Half of the rows, drawn at random whatever their order.

    Rows of equal probabilities fall on both sides: each half has the law of the rows, also where a
    model tells few cases apart. For promises ``within_classes`` it is half of each class; others
    depend on the class mix, and that of the half that judges may not be known to the one that
    learns.
    """
    keys = number_keys(proba, place_keys(proba.shape[1])).sum(axis=1, dtype=np.uint64)
    draw = np.random.default_rng([int(keys.sum(dtype=np.uint64)), len(keys)])
    order = np.lexsort((codes, keys))
    learn = np.zeros(len(codes), dtype=bool)
    parts = [order[codes[order] == k] for k in np.unique(codes)] if within_classes else [order]
    for own in map(draw.permutation, parts):
        learn[own[: len(own) // 2]] = True
    return learn


Asked = list[tuple[Guarantee, int | None]]


def with_classes(
    asked: Sequence[Guarantee], classes: list[Any], positive: Any, reject_cost: float | None
) -> Asked:
    """Each guarantee with the place of the class that it is about."""
    places = {str(name): k for k, name in enumerate(classes)}
    found: Asked = []
    for one in asked:
        if one.measure not in OF_A_CLASS:
            if one.measure == "abstentions" and reject_cost is None:
                raise ValueError(f"guarantee: {one} needs a price of abstaining, reject_cost=.")
            found.append((one, None))
            continue
        name = positive if one.of is None else one.of
        if name is None or str(name) not in places:
            said = "which class is meant" if name is None else f"{name!r} is no class"
            raise ValueError(
                f"guarantee: {one}: {said}; write {one.measure}(NAME) with one of "
                f"{', '.join(places)}."
            )
        found.append((one, places[str(name)]))
    if not found:
        raise ValueError("guarantee: nothing is asked for.")
    return found


def enough_for_weights(
    asked: Asked, class_rows: Ints, confidence: float, have: str = "here are"
) -> None:
    """An error where so many rows of each class cannot hold a guarantee whatever is decided."""
    total = int(class_rows.sum())
    rows = []
    for one, k in asked:
        own = 0 if k is None else int(class_rows[k])
        rows.append({"recall": own, "false_alarms": total - own}.get(one.measure, total))
    refuse_too_few([one for one, _ in asked], rows, confidence, 1.0 - confidence, have)


def _refuse(asked: Asked, judges: _Rows, confidence: float) -> None:
    counts = np.bincount(judges.codes, minlength=len(judges.matrix))
    enough_for_weights(asked, counts, confidence, "after half of them chose the rule here are")


@dataclass(frozen=True)
class _Rule:
    logs: Floats
    """Logarithms of the class weights."""
    reject: float | None


@dataclass(frozen=True)
class _Rows:
    """Probabilities and truth of some rows, and what was asked of the decisions."""

    proba: Floats
    codes: Ints
    matrix: Floats
    reject_cost: float | None
    asked: tuple[tuple[Guarantee, int | None], ...]

    def part(self, kept: Mask) -> _Rows:
        return _Rows(self.proba[kept], self.codes[kept], self.matrix, self.reject_cost, self.asked)

    def decide(self, rule: _Rule) -> Ints:
        paid = self.proba @ (np.exp(rule.logs)[:, None] * self.matrix)
        decided = paid.argmin(axis=1)
        if rule.reject is not None:
            decided[paid.min(axis=1) > rule.reject] = -1
        return np.asarray(decided)

    def paid(self, decided: Ints) -> Floats:
        cost = self.matrix[self.codes, np.maximum(decided, 0)]
        if self.reject_cost is None:
            return cost
        return np.where(decided < 0, self.reject_cost, cost)

    def counts(self, one: Guarantee, k: int | None, decided: Ints) -> tuple[int, int]:
        """Rows on the wrong side of a promise, and rows that it is about."""
        if one.measure == "error":
            taken = decided >= 0
            return int((taken & (decided != self.codes)).sum()), int(taken.sum())
        if one.measure == "abstentions":
            return int((decided < 0).sum()), len(decided)
        own, said = self.codes == k, decided == k
        n_own, n_said, both = int(own.sum()), int(said.sum()), int((own & said).sum())
        return {
            "recall": (n_own - both, n_own),
            "false_alarms": (n_said - both, len(own) - n_own),
            "alarms": (n_said, len(own)),
            "precision": (n_said - both, n_said),
        }[one.measure]

    def p_value(self, one: Guarantee, decided: Ints) -> float:
        """Of "the promise is broken"."""
        if one.measure == "cost":
            paid = self.paid(decided)
            reject = () if self.reject_cost is None else (self.reject_cost,)
            prices = np.array([*self.matrix.ravel(), *reject])
            return float(mean_p_value(np.array(paid.mean()), one.level, prices, len(paid)))
        wrong, of = self.counts(one, dict(self.asked)[one], decided)
        level = 1.0 - one.level if one.measure in ("recall", "precision") else one.level
        return float(binom.cdf(wrong, of, level)) if of else 1.0

    def lack(self, decided: Ints, margin: float) -> float:
        """By how much levels are missed, with ``margin`` standard errors to spare."""
        total = 0.0
        for one, k in self.asked:
            if one.measure == "cost":
                paid = self.paid(decided)
                spread = float(paid.std()) / np.sqrt(len(paid))
                over = paid.mean() + margin * spread - one.level
                total += max(float(over), 0.0) / one.level
                continue
            wrong, of = self.counts(one, k, decided)
            level = 1.0 - one.level if one.measure in ("recall", "precision") else one.level
            if not of:
                total += 1.0
                continue
            allowed = level - margin * np.sqrt(level * (1.0 - level) / of)
            total += max(wrong / of - max(allowed, 0.0), 0.0)
        return total

    def promise(self, one: Guarantee, k: int | None, decided: Ints, confidence: float) -> Promise:
        if one.measure == "cost":
            paid = self.paid(decided)
            return Promise(one, confidence, float(paid.mean()), len(paid), False)
        wrong, of = self.counts(one, k, decided)
        right = one.measure in ("recall", "precision")
        share = 1.0 - wrong / of if right else wrong / of
        # false alarms of one of several classes mix the laws of the others
        stays = one.measure == "recall" or (one.measure == "false_alarms" and len(self.matrix) == 2)
        return Promise(one, confidence, share, of, stays)


def _path(rows: _Rows) -> list[_Rule]:
    """Rules learned from rows, the likeliest to hold every promise first."""
    found: list[tuple[float, _Rule]] = []
    rule = _Rule(np.zeros(len(rows.matrix)), rows.reject_cost)
    # the least margin first: each search starts where the last one ended
    for margin in sorted(MARGINS):
        rule = _search(rows, rule, margin)
        decided = rows.decide(rule)
        found.append((max(rows.p_value(one, decided) for one, _ in rows.asked), rule))
    return [own for _, own in sorted(found, key=lambda pair: pair[0])]


def _search(rows: _Rows, start: _Rule, margin: float) -> _Rule:
    """Coordinate descent on lack, then cost: one class weight, or the price, at a time."""

    def worth(rule: _Rule) -> tuple[float, float]:
        decided = rows.decide(rule)
        return rows.lack(decided, margin), float(rows.paid(decided).mean())

    best, score = start, worth(start)
    for _ in range(SWEEPS):
        before = score
        for k in range(len(rows.matrix) + (start.reject is not None)):
            for step in STEPS:
                logs, reject = best.logs.copy(), best.reject
                if k < len(logs):
                    logs[k] += step
                elif reject is not None:
                    reject *= float(np.exp(step))
                tried = _Rule(logs, reject)
                own = worth(tried)
                if own < score:
                    best, score = tried, own
        if score == before:
            break
    return best
